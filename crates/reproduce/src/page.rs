//! A page for each paper: the count of claims that hold, each claim with its numbers, and figures like those of the
//! paper.

use std::fmt::Write as _;

use apportion_report::document;
use apportion_report::html::escape;
use apportion_report::statistics::number;

use crate::figure::Figure;
use crate::judge::{Claim, Element, Tally, Verdict};
use crate::plan::{PlannedExperiment, PlannedPaper, Results};
use crate::table::{headline, percent, variant_names};
use crate::variant_table::Table;

mod along;
mod bars;
mod card;
mod course;
mod figures;
mod kit;

pub use kit::kit;

/// Renders the page of a paper. `claims` are those of its experiments, `variants` is the table of its
/// variants if requested, `command` is the command line that produced the page.
#[must_use]
pub fn page(
    paper: &PlannedPaper,
    results: &Results,
    claims: &[&Claim],
    variants: Option<&Table<'_>>,
    command: &str,
) -> String {
    let content = &paper.paper.content;
    let owned: Vec<Claim> = claims.iter().map(|claim| (*claim).clone()).collect();
    let ablated = claims.iter().any(|claim| claim.control.is_some());
    let seeds = if results.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", results.seeds) };
    let mut out = format!(
        "<h1>{}</h1>\n<p class=\"sub\">{} · {seeds}</p>\n",
        escape(&content.title),
        escape(&content.paper)
    );
    if ablated {
        out.push_str(
            "<p class=\"warn\"><b>A mechanism of the scheme is switched off</b> in each experiment, by the control that \
             its title names. Claims that depend on it must fail here.</p>\n",
        );
    }
    let _ = writeln!(out, "<p class=\"lead\">{}</p>", escape(&headline(&owned)));
    out.push_str(&overview(paper, claims));
    for planned in &paper.experiments {
        out.push_str(&section(planned, results, claims));
    }
    out.push_str(&variants.map(Table::html).unwrap_or_default());
    let _ = write!(
        out,
        "<footer>\n<h2 id=\"reproduce\">Reproduce</h2>\n<p><code>{}</code></p>\n{MEANING}</footer>\n",
        escape(command)
    );
    let title = format!("{}: published and measured", content.title);
    document(&title, &out)
}

const MEANING: &str = "<h2 id=\"meaning\">What the numbers mean</h2>
<dl>
<dt>Published</dt><dd>A published value with the tolerance of this project; the authors state none.</dd>
<dt>Ideal</dt><dd>The same number if every flow received exactly its entitlement: computed, not simulated.</dd>
<dt>Measured</dt><dd>Mean over seeds ± half the 95 % interval (Student).</dd>
<dt>Holds, fails</dt><dd>The whole interval lies within the bound, or beyond it. With one seed there is no interval, and the \
mean decides.</dd>
<dt>Knife edge</dt><dd>The mean is less than the width of its interval away from the bound.</dd>
<dt>Undecided</dt><dd>The interval straddles the bound; more seeds may decide it.</dd>
<dt>Refuted</dt><dd>The claim fails, as is known: with the reason, and the settings under which it was looked for.</dd>
<dt>Recorded</dt><dd>A number without a bound. It is no claim, and nothing about it can hold.</dd>
<dt>R²</dt><dd>Of a line through the origin: 1 - Σ(y - slope x)² / Σ(y - mean)².</dd>
</dl>
";

fn of_experiment<'a>(planned: &PlannedExperiment, claims: &[&'a Claim]) -> Vec<&'a Claim> {
    let is_of =
        |claim: &&&Claim| claim.experiment == planned.experiment.id && claim.control == planned.control;
    claims.iter().filter(is_of).copied().collect()
}

fn anchor(planned: &PlannedExperiment) -> String {
    escape(&planned.title().replace(|c: char| !c.is_ascii_alphanumeric(), "-"))
}

/// All experiments, a row each.
fn overview(paper: &PlannedPaper, claims: &[&Claim]) -> String {
    let mut out = String::from(
        "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">Experiment</th>\
         <th scope=\"col\">Claims that hold</th><th scope=\"col\" class=\"words\">Source in the paper</th>\
         <th scope=\"col\" class=\"words\">Setup</th></tr></thead>\n<tbody>\n",
    );
    for planned in &paper.experiments {
        let experiment = &planned.experiment;
        let mine = of_experiment(planned, claims);
        let worst = mine.iter().map(|claim| class(claim)).max().unwrap_or(Verdict::Recorded);
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th><td class=\"{}\">{}</td>\
             <td class=\"words\">{}</td><td class=\"words\">{}</td></tr>",
            anchor(planned),
            escape(&planned.title()),
            worst.name(),
            counts(&Tally::of(mine)),
            escape(&experiment.source),
            escape(&experiment.summary),
        );
    }
    out + "</tbody>\n</table></div>\n"
}

/// Number of claims that hold out of all, with the other verdicts below.
fn counts(tally: &Tally) -> String {
    let mut out = match tally.claims() {
        0 => "–".to_owned(),
        claims => format!("{} of {claims}", tally.hold),
    };
    let others = [
        (tally.undecided, Verdict::Undecided),
        (tally.refuted, Verdict::Refuted),
        (tally.recorded, Verdict::Recorded),
    ];
    for (count, verdict) in others.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(out, "<small class=\"{0}\">{count} {0}</small>", verdict.name());
    }
    out
}

/// Verdict that colours a claim: one that makes the run fail looks like a failure, and one that fails as it
/// must does not.
fn class(claim: &Claim) -> Verdict {
    match claim.verdict {
        _ if claim.fails_run() => Verdict::Fails,
        Verdict::Fails => Verdict::Refuted,
        verdict => verdict,
    }
}

fn section(planned: &PlannedExperiment, results: &Results, claims: &[&Claim]) -> String {
    let experiment = &planned.experiment;
    let mine = of_experiment(planned, claims);
    let mut out = format!(
        "<h2 id=\"{}\">{} <span class=\"sub\">{}</span></h2>\n<p>{}</p>\n",
        anchor(planned),
        escape(&planned.title()),
        escape(&experiment.source),
        escape(&experiment.summary)
    );
    let draw = |table: bool| -> String {
        let figures =
            experiment.figures.iter().filter(|figure| matches!(figure, Figure::Table { .. }) == table);
        figures.map(|figure| figures::figure(figure, planned, results, claims)).collect()
    };
    let plots = draw(false);
    if !plots.is_empty() {
        let _ = write!(out, "<div class=\"plots\">\n{plots}</div>\n");
    }
    out.push_str(&draw(true));
    out.push_str(&table(&mine));
    out
}

/// Columns of the table of claims, after claim and verdict. Column [`MEASURED`] marks numbers that miss.
const HEADS: [&str; 6] = ["Flow or point", "Published", "Measured", "Off published", "Ideal", "Off ideal"];
const MEASURED: usize = 2;

/// Claims of an experiment, a row per number. Empty columns are left out.
fn table(claims: &[&Claim]) -> String {
    let variants = variant_names(claims.iter().copied());
    let rows: Vec<Vec<Vec<String>>> = claims.iter().map(|claim| cells(claim, &variants)).collect();
    let is_shown = |at: usize| rows.iter().flatten().any(|row| !matches!(row[at].as_str(), "" | "–"));
    let columns: Vec<usize> = (0..HEADS.len() + variants.len()).filter(|at| is_shown(*at)).collect();
    let mut out = String::from(
        "<div class=\"scroll\"><table class=\"claims\">\n<thead><tr><th scope=\"col\">Claim</th>\
         <th scope=\"col\">Verdict</th>",
    );
    let heads: Vec<&str> = HEADS.iter().chain(&variants).copied().collect();
    for at in &columns {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(heads[*at]));
    }
    out.push_str("</tr></thead>\n");
    for (claim, rows) in claims.iter().zip(&rows) {
        let _ = write!(
            out,
            "<tbody>\n<tr><th scope=\"rowgroup\" rowspan=\"{0}\">{1}</th>\
             <td rowspan=\"{0}\" class=\"verdict {2}\">{3}</td>",
            rows.len(),
            name(claim),
            class(claim).name(),
            escape(claim.verdict_in_words())
        );
        for (k, (row, element)) in rows.iter().zip(&claim.elements).enumerate() {
            out.push_str(if k == 0 { "" } else { "<tr>" });
            for at in &columns {
                let mark = if *at == MEASURED { missed(element) } else { "" };
                let _ = write!(out, "<td{mark}>{}</td>", escape(&row[*at]));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n");
    }
    out + "</table></div>\n"
}

/// Rows of a claim, one per number: [`HEADS`], then variants.
fn cells(claim: &Claim, variants: &[&str]) -> Vec<Vec<String>> {
    let row = |(k, element): (usize, &Element)| {
        let mut cells = vec![
            element.label.clone(),
            claim.metric.expected(element.published),
            element.shown(),
            percent(claim.deviation(element)).unwrap_or_else(|| "–".to_owned()),
            element.ideal.map_or_else(|| "–".to_owned(), number),
            // Dimensionless numbers such as R² have no relative difference.
            error(element, element.ideal.filter(|_| claim.metric.unit != "1")),
        ];
        cells.extend(variants.iter().map(|name| claim.shown_variant(name, k)));
        cells
    };
    claim.elements.iter().enumerate().map(row).collect()
}

/// The mark of a number that misses its bound.
fn missed(element: &Element) -> &'static str {
    match element.verdict {
        Verdict::Recorded | Verdict::Holds => "",
        Verdict::Undecided => " class=\"undecided\"",
        Verdict::Refuted | Verdict::Fails => " class=\"missed\"",
    }
}

/// The claim's name with its unit, kind and notes.
fn name(claim: &Claim) -> String {
    let metric = &claim.metric;
    let unit = if metric.unit == "1" { String::new() } else { format!(", {}", metric.unit) };
    // Names break after their words.
    let title = escape(&format!("{}{unit}", metric.name)).replace('_', "_<wbr>").replace('/', "/<wbr>");
    let mut out = format!("{title}<small>{}</small>", metric.kind.in_words());
    for text in [&metric.def, &metric.note].into_iter().flatten() {
        let _ = write!(out, "<small>{}</small>", escape(text));
    }
    if let Some(refuted) = metric.refuted.as_ref().filter(|_| claim.control.is_none()) {
        let (reason, searched) = (escape(&refuted.reason), escape(&refuted.searched));
        let _ =
            write!(out, "<small><b>Refuted:</b> {reason}</small><small><b>Searched:</b> {searched}</small>");
    }
    out
}

/// The difference between the measured number and `value`, in percent of `value`.
fn error(element: &Element, value: Option<f64>) -> String {
    let share = value.filter(|value| *value != 0.0).map(|value| element.measured / value - 1.0);
    percent(share.filter(|share| share.is_finite())).unwrap_or_else(|| "–".to_owned())
}
