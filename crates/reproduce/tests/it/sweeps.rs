//! Sweeps in experiments, and measures along them, on flows whose throughput is known.

use apportion_reproduce::{Claim, Files, Plan, Problems, Scope, expect, judge};

use crate::simulated;

/// Two flows of 1 Mb/s, a swept flow and a short file, on a link with room for all.
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
[flow.one]
from = "a"
to = "b"
count = 2
source = { kind = "cbr", rate = "1Mbit", packet = "500B" }
[flow.file]
from = "a"
to = "b"
tcp = { profile = "ns2-2000", initial_window = "2p" }
source = { kind = "file", size = "2kB" }
[flow.swept]
from = "a"
to = "b"
source = { kind = "cbr", rate = "1Mbit", packet = "500B" }
"#;

const HEAD: &str = r#"
title = "Toy"
paper = "A. Author"
[sweep.rate]
axis = "rate, Mb/s"
at = [1, 2, 4]
set = { "flow.swept.source.rate" = ["1Mbit", "2Mbit", "4Mbit"] }
[sweep.other]
axis = "rate, Mb/s"
at = [1, 3]
set = { "flow.swept.source.rate" = ["1Mbit", "3Mbit"] }
[[experiment]]
id = "toy/one"
source = "nowhere"
summary = "three flows"
[experiment.run.main]
scenario = "x.toml"
[experiment.run.s]
scenario = "x.toml"
sweep = "rate"
[experiment.run.quiet]
scenario = "x.toml"
set = { "flow.one.stop" = "10s" }
"#;

const SWEPT: &str = r#"{ kind = "throughput", of = ["swept"], run = "s" }"#;

fn plan(head: &str, measures: &[&str]) -> Result<Plan, Problems> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.toml"), SCENARIO).unwrap();
    let metric = |(k, measure): (usize, &&str)| {
        format!(
            "[[experiment.metric]]\nname = \"m{k}\"\nunit = \"1\"\nkind = \"derived\"\nop = \"record\"\nvalue = 0\n\
             measure = {measure}\n"
        )
    };
    let text = head.to_owned() + &measures.iter().enumerate().map(metric).collect::<String>();
    let paper = expect::parse(&folder.path().join("expect.toml"), Files::Disk, &text)?;
    Plan::new(vec![paper], &[], Scope::Usual)
}

/// Values of the measures.
fn measured(measures: &[&str]) -> Vec<Vec<f64>> {
    let plan = plan(HEAD, measures).unwrap();
    let results = simulated::results(&plan, 1);
    let numbers = |claim: &Claim| claim.elements.iter().map(|element| element.measured).collect();
    judge(&plan, &results).iter().map(numbers).collect()
}

/// Whether the values agree within a packet more or less.
fn close(found: &[f64], expected: &[f64]) -> bool {
    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.005)
}

/// Message without its line number, which has its own test.
fn without_line(message: &str) -> String {
    let (before, after) = message.split_once("expect.toml:").unwrap();
    format!("{before}expect.toml{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[test]
fn a_measure_is_taken_at_each_point_and_reduced() {
    let over = |rest: &str| format!("{{ kind = \"over_sweep\", of = {SWEPT}{rest} }}");
    let cases: [(&str, &[f64]); 7] = [
        ("", &[1.0, 2.0, 4.0]),
        (r#", give = "mean""#, &[7.0 / 3.0]),
        (r#", give = "mean", from = 2"#, &[3.0]),
        (r#", give = "mean", to = 2"#, &[1.5]),
        (r#", give = "min""#, &[1.0]),
        (r#", give = "max""#, &[4.0]),
        (r#", give = "slope""#, &[1.0]),
    ];
    let texts: Vec<String> = cases.iter().map(|(rest, _)| over(rest)).collect();
    let found = measured(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    for ((case, expected), found) in cases.iter().zip(&found) {
        assert!(close(found, expected), "{case}: {found:?}");
    }
}

#[test]
fn the_first_is_ranked_at_each_point_also_against_runs_that_are_not_swept() {
    let rank = r#"{ kind = "over_sweep", of = { kind = "rank", of = [
        { kind = "throughput", of = ["swept"] },
        { kind = "throughput", of = ["swept"], run = "s" },
        { kind = "constant", value = 3 },
    ] } }"#;
    let best = r#"{ kind = "over_sweep", give = "mean", of = { kind = "best", within = 0.1, of = [
        { kind = "throughput", of = ["swept"], run = "s" },
        { kind = "constant", value = 2.1 },
    ] } }"#;
    let found = measured(&[&rank.replace('\n', ""), &best.replace('\n', "")]);
    // 1 against 1, 2, 4 and 3. The same run twice gives the same number: ranks 2 and 3 are shared.
    assert!(close(&found[0], &[2.5, 3.0, 3.0]), "{found:?}");
    // 1 is not within a tenth of 2.1, 2 is (1.89), 4 is above.
    assert!(close(&found[1], &[2.0 / 3.0]), "{found:?}");
}

#[test]
fn fairness_of_windows_is_not_that_of_the_whole() {
    // Three at 1 Mb/s for 10 s, then one of them alone: indices 1 and 1/3. Over all: (1/2, 1/2, 1) gives
    // 4 / (3 · 1.5) = 0.889.
    let found = measured(&[
        r#"{ kind = "windowed_jain", of = ["one", "swept"], run = "quiet", window = "10s" }"#,
        r#"{ kind = "throughput", of = ["one", "swept"], run = "quiet", as = "jain" }"#,
        r#"{ kind = "windowed_jain", of = ["one", "swept"], window = "10s" }"#,
    ]);
    assert!(close(&found.concat(), &[2.0 / 3.0, 8.0 / 9.0, 1.0]), "{found:?}");
}

#[test]
fn a_transfer_takes_as_long_as_its_packets_do() {
    // Two packets of 1000 B at once: 2 x 0.4 ms at 20 Mb/s and 1 ms of wire, and at most one packet of each of
    // the others before them, 0.2 ms each.
    let found = measured(&[r#"{ kind = "transfer_time", of = ["file"] }"#]);
    assert!((0.0018..=0.0024).contains(&found[0][0]), "{found:?}");
    assert!(measured(&[r#"{ kind = "transfer_time", of = ["one"] }"#])[0][0].is_nan());
}

#[test]
fn runs_that_differ_are_distinguished_from_those_that_do_not() {
    let found = measured(&[
        r#"{ kind = "differing", runs = ["main", "main"] }"#,
        r#"{ kind = "differing", runs = ["main", "quiet"] }"#,
    ]);
    // Two flows are silent for 10 intervals; the first interval still has a packet that was in flight.
    assert_eq!(found[0], [0.0]);
    assert!((18.0..=20.0).contains(&found[1][0]), "{found:?}");
}

#[test]
fn every_error_names_the_fix() {
    let error = |head: &str, measure: &str| {
        let Problems(lines) = plan(head, &[measure]).unwrap_err();
        assert_eq!(lines.len(), 1, "{lines:?}");
        without_line(&lines[0]).rsplit_once("expect.toml: ").unwrap().1.to_owned()
    };
    let over = |of: &str| format!("{{ kind = \"over_sweep\", of = {of} }}");
    assert_eq!(
        error(HEAD, SWEPT),
        "toy/one: metric m0: measure.run: `s` is swept; put the measure into the `of` of an `over_sweep`"
    );
    assert_eq!(
        error(HEAD, &over(r#"{ kind = "throughput", run = "s" }"#)),
        "toy/one: metric m0: measure.of: 4 numbers at each point; make it one, for example as = \"mean\""
    );
    assert_eq!(
        error(&HEAD.replace("\nsweep = \"rate\"", ""), &over(SWEPT)),
        "toy/one: metric m0: measure.of: no run of the experiment is swept; give one a `sweep`"
    );
    assert_eq!(
        error(&HEAD.replace("= \"rate\"", "= \"rat\""), &over(SWEPT)),
        "toy/one: run s: sweep: the file has no [sweep.rat] (did you mean `rate`?)"
    );
    assert_eq!(
        error(&HEAD.replace("[1, 3]", "[3, 1]"), SWEPT),
        "sweep.other.at: no points, or not ascending; write numbers in ascending order, for example [10, 20]"
    );
    assert_eq!(
        error(&HEAD.replace("[1, 3]", "[1, 2, 3]"), SWEPT),
        "sweep.other.set.flow.swept.source.rate: 2 values for 3 points; write one for each"
    );
    let head = HEAD.replace("[experiment.run.quiet]", "[experiment.run.quiet]\nsweep = \"other\"");
    assert_eq!(
        error(&head, &over(SWEPT)),
        "toy/one: metric m0: measure.of: runs `quiet` and `s` have different points; write the same `at`"
    );
    assert_eq!(
        error(HEAD, r#"{ kind = "windowed_jain", window = "30s" }"#),
        "toy/one: metric m0: measure.window: must be at least the sample of 1s, and at most the measured part of 20s"
    );
}
