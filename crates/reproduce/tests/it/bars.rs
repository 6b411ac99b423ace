//! Figures with groups of bars, on flows whose throughput is known.

use apportion_report::statistics::Estimate;
use apportion_reproduce::page::page;
use apportion_reproduce::{Files, Plan, Problems, Scope, expect, judge};

use crate::simulated;

/// Flows of 1, 2 and 3 Mb/s, and one whose packets arrive at random, on a link with room for all.
const SCENARIO: &str = r#"
seed = 1
stop = "20s"
sample = "1s"
defaults.flow.jitter = "0s"     # numbers are computed
[link.wide]
from = "a"
to = "b"
rate = "20Mbit"
delay = "1ms"
[flow.u]
from = "a"
to = "b"
count = 3
source = { kind = "cbr", rate = "1Mbit * i", packet = "500B" }
[flow.random]
from = "a"
to = "b"
source = { kind = "poisson", rate = "1Mbit", packet = "500B" }
"#;

const HEAD: &str = r#"
title = "Toy"
paper = "A. Author"
[[experiment]]
id = "toy/one"
source = "nowhere"
summary = "four flows"
[experiment.run.main]
scenario = "x.toml"
[experiment.run.half]
scenario = "x.toml"
set = { "flow.u.source.rate" = "500kbit * i" }
[[experiment.metric]]
name = "random"
unit = "Mb/s"
kind = "derived"
op = "record"
value = 1
measure = { kind = "throughput", of = ["random"] }
"#;

const FIGURE: &str = r#"
[[experiment.figure]]
kind = "bars"
title = "Fig. 1"
y = "throughput, Mb/s"
groups = ["one", "two", "three"]
ideal = { kind = "constant", value = [1, 2.5, 3] }
series = [
    { label = "whole", measure = { kind = "throughput", of = ["u.1", "u.2", "random"] } },
    { label = "half & half", measure = { kind = "throughput", of = ["u"], run = "half" } },
]
"#;

fn plan(figure: &str) -> Result<Plan, Problems> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    let paper = expect::parse(&folder.path().join("expect.toml"), Files::Disk, &format!("{HEAD}{figure}"))?;
    Plan::new(vec![paper], &[], Scope::Usual)
}

/// Renders the page, and returns the estimate of `random`.
fn drawn(figure: &str) -> (String, Estimate) {
    let plan = plan(figure).unwrap();
    let results = simulated::results(&plan, 5);
    let claims = judge(&plan, &results);
    let html = page(&plan.papers[0], &results, &claims.iter().collect::<Vec<_>>(), None, "command");
    let random = &claims[0].elements[0];
    (html, Estimate { mean: random.measured, ci95: random.ci95, n: 5 })
}

/// Rows of the table of numbers below the figure.
fn rows(html: &str) -> Vec<Vec<String>> {
    let (_, rest) = html.split_once("<summary>Numbers</summary>").unwrap();
    let (table, _) = rest.split_once("</table>").unwrap();
    let cells = |row: &str| {
        let cells = row.split("</td>").flat_map(|cell| cell.split("</th>"));
        cells.filter_map(|cell| Some(cell.rsplit_once('>')?.1.to_owned())).collect::<Vec<_>>()
    };
    let mut rows: Vec<Vec<String>> = table.split("</tr>").map(cells).collect();
    rows.retain_mut(|row| {
        row.retain(|cell| !cell.trim().is_empty());
        !row.is_empty()
    });
    rows
}

/// Message without its line number, which has its own test.
fn without_line(message: &str) -> String {
    let (before, after) = message.split_once("expect.toml:").unwrap();
    format!("{before}expect.toml{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[test]
fn a_bar_is_the_mean_over_seeds_and_its_number_stands_in_the_table() {
    let (html, random) = drawn(FIGURE);
    // Random arrivals: the interval is a few hundredths of a Mb/s.
    assert!(random.ci95.unwrap() > 1e-3, "{random:?}");
    let random = random.to_string();
    let expected = [
        ["Group", "whole", "half &amp; half", "ideal"],
        ["one", "1.00", "0.500", "1"],
        ["two", "2.00", "1.00", "2.50"],
        ["three", random.as_str(), "1.50", "3"],
    ];
    let found = rows(&html);
    let close = |(found, expected): (&String, &&str)| match (found.parse::<f64>(), expected.parse::<f64>()) {
        // One packet is 0.2 kb/s.
        (Ok(found), Ok(expected)) => (found - expected).abs() < 0.005,
        _ => found == expected,
    };
    assert!(found.len() == 4 && found.iter().all(|row| row.len() == 4), "{found:?}");
    for (row, expected) in found.iter().zip(&expected) {
        assert!(row.iter().zip(expected).all(close), "{row:?} is not {expected:?}");
    }
    assert!(
        html.contains("<figcaption>throughput, Mb/s; thin lines: 95 % intervals.</figcaption>"),
        "{html}"
    );
    let bars = |colour: &str| html.lines().filter(|l| l.starts_with("<rect") && l.contains(colour)).count();
    assert_eq!((bars("fill=\"#0072B2\""), bars("fill=\"#D55E00\"")), (3, 3));
    assert!(html.contains("<span class=\"level\"></span>ideal"), "{html}");
}

#[test]
fn a_figure_without_an_ideal_has_no_line_and_no_column_for_it() {
    let line = "ideal = { kind = \"constant\", value = [1, 2.5, 3] }\n";
    let (html, _) = drawn(&FIGURE.replace(line, ""));
    assert_eq!(rows(&html)[0], ["Group", "whole", "half &amp; half"]);
    assert!(!html.contains("<span class=\"level\">"), "{html}");
}

#[test]
fn a_number_that_cannot_be_said_leaves_its_place_empty() {
    let constant = "{ kind = \"constant\", value = [0, 1, 1] }";
    let ratio = format!("{{ kind = \"quotient\", of = [{constant}, {constant}] }}");
    let (html, _) = drawn(&FIGURE.replace(r#"{ kind = "throughput", of = ["u"], run = "half" }"#, &ratio));
    let column: Vec<String> = rows(&html).iter().skip(1).map(|row| row[2].clone()).collect();
    assert_eq!(column, ["–", "1", "1"]);
    assert_eq!(html.lines().filter(|l| l.starts_with("<rect") && l.contains("#D55E00")).count(), 2);
}

#[test]
fn every_error_names_figure_and_series() {
    let error = |from: &str, to: &str| {
        assert!(FIGURE.contains(from), "{from}");
        let Problems(lines) = plan(&FIGURE.replace(from, to)).unwrap_err();
        assert_eq!(lines.len(), 1, "{lines:?}");
        without_line(&lines[0]).rsplit_once("expect.toml: ").unwrap().1.to_owned()
    };
    assert_eq!(
        error(r#"["u.1", "u.2", "random"]"#, r#"["u.1", "u.2"]"#),
        "toy/one: figure[1].series: `whole`: 2 numbers for 3 groups; write one for each"
    );
    assert_eq!(
        error(r#"["u"], run = "half""#, r#"["u"], as = "mean", run = "half""#),
        "toy/one: figure[1].series: `half & half`: 1 numbers for 3 groups; write one for each"
    );
    assert_eq!(
        error(r#"run = "half""#, r#"run = "hald""#),
        "toy/one: figure[1].series: `half & half`: measure.run: there is no run `hald` (did you mean `half`?)\
         ; there are half, main"
    );
    assert_eq!(
        error("[1, 2.5, 3]", "[1, 2.5]"),
        "toy/one: figure[1].ideal: 2 numbers for 3 groups; write one for each"
    );
    assert_eq!(
        error(r#"["one", "two", "three"]"#, "[]"),
        "toy/one: figure[1].groups: it is empty; write a name for each group of bars"
    );
}
