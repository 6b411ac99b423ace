//! A page for each paper: the count of claims that hold, each claim with its numbers, and figures like those of the
//! paper.

use std::fmt::Write as _;

use apportion_report::document;
use apportion_report::html::escape;
use apportion_report::statistics::number;

use crate::expect::Op;
use crate::figure::Figure;
use crate::judge::{Claim, Element, Verdict};
use crate::plan::{PlannedExperiment, PlannedPaper, Results};
use crate::table::{headline, variant_names};
use crate::variant_table::Table;

mod along;
mod bars;
mod card;
mod course;
mod figures;

/// The page of a paper: `claims` are those of its experiments, `variants` is the table of its variants if requested,
/// `command` is the command line that produced the page.
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
    let ablated = claims.iter().any(|claim| claim.ablated);
    let seeds = if results.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", results.seeds) };
    let mut out = format!(
        "<h1>{}</h1>\n<p class=\"sub\">{} · {seeds}</p>\n",
        escape(&content.title),
        escape(&content.paper)
    );
    if ablated {
        out.push_str(
            "<p class=\"warn\"><b>The scheme's mechanism is switched off.</b> Claims that depend on it must fail \
             here.</p>\n",
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
<dt>Claim</dt><dd>A published value with the tolerance of this project; the authors state none.</dd>
<dt>Ideal</dt><dd>The same number if every flow received exactly its entitlement: computed, not simulated.</dd>
<dt>Measured</dt><dd>Mean over seeds ± half the 95 % interval (Student).</dd>
<dt>Refuted</dt><dd>A claim that is known not to be reproduced, with the reason.</dd>
<dt>R²</dt><dd>Of a line through the origin: 1 - Σ(y - slope x)² / Σ(y - mean)².</dd>
</dl>
";

fn of_experiment<'a>(planned: &PlannedExperiment, claims: &[&'a Claim]) -> Vec<&'a Claim> {
    claims.iter().filter(|claim| claim.experiment == planned.experiment.id).copied().collect()
}

fn anchor(id: &str) -> String {
    escape(&id.replace('/', "-"))
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
        let held = mine.iter().filter(|claim| claim.verdict == Verdict::Holds).count();
        let worst = mine.iter().map(|claim| class(claim)).max().unwrap_or_default();
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><a href=\"#{}\">{}</a></th><td class=\"{}\">{held} of {}</td>\
             <td class=\"words\">{}</td><td class=\"words\">{}</td></tr>",
            anchor(&experiment.id),
            escape(&experiment.id),
            worst.name(),
            mine.len(),
            escape(&experiment.source),
            escape(&experiment.summary),
        );
    }
    out + "</tbody>\n</table></div>\n"
}

/// The colour class of a verdict, the worst last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    #[default]
    Holds,
    Refuted,
    Fails,
}

impl Class {
    const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Refuted => "refuted",
            Self::Fails => "fails",
        }
    }
}

fn class(claim: &Claim) -> Class {
    match claim.verdict {
        _ if claim.fails_run() => Class::Fails,
        Verdict::Holds => Class::Holds,
        Verdict::Refuted | Verdict::Fails => Class::Refuted,
    }
}

fn section(planned: &PlannedExperiment, results: &Results, claims: &[&Claim]) -> String {
    let experiment = &planned.experiment;
    let mine = of_experiment(planned, claims);
    let mut out = format!(
        "<h2 id=\"{}\">{} <span class=\"sub\">{}</span></h2>\n<p>{}</p>\n",
        anchor(&experiment.id),
        escape(&experiment.id),
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

/// The claims of an experiment, a row for each number.
fn table(claims: &[&Claim]) -> String {
    let variants = variant_names(claims.iter().copied());
    let mut out = String::from("<div class=\"scroll\"><table class=\"claims\">\n<thead><tr>");
    let heads =
        ["Claim", "Flow or point", "Published", "Measured", "Difference", "Ideal", "Difference to ideal"];
    for head in heads.iter().chain(&variants).chain(&["Verdict"]) {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(head));
    }
    out.push_str("</tr></thead>\n");
    for claim in claims {
        out.push_str("<tbody>\n");
        for (k, element) in claim.elements.iter().enumerate() {
            out.push_str("<tr>");
            let rows = claim.elements.len();
            if k == 0 {
                let _ = write!(out, "<th scope=\"rowgroup\" rowspan=\"{rows}\">{}</th>", name(claim));
            }
            let ideal = element.ideal;
            let mut cells = vec![
                element.label.clone(),
                claim.metric.expected(element.published),
                element.shown(),
                // A difference to a bound has no meaning.
                error(element, Some(element.published).filter(|_| claim.metric.op == Op::Approx)),
                ideal.map_or_else(|| "–".to_owned(), number),
                // Dimensionless numbers such as R² have no relative difference.
                error(element, ideal.filter(|_| claim.metric.unit != "1")),
            ];
            cells.extend(variants.iter().map(|name| claim.shown_variant(name, k)));
            let missed = if element.holds { "" } else { " class=\"missed\"" };
            for (at, cell) in cells.iter().enumerate() {
                let mark = if at == 2 { missed } else { "" };
                let _ = write!(out, "<td{mark}>{}</td>", escape(cell));
            }
            if k == 0 {
                let _ = write!(
                    out,
                    "<td rowspan=\"{rows}\" class=\"verdict {}\">{}</td>",
                    class(claim).name(),
                    escape(claim.verdict_in_words())
                );
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody>\n");
    }
    out + "</table></div>\n"
}

/// The claim's name with its unit, kind and notes.
fn name(claim: &Claim) -> String {
    let metric = &claim.metric;
    let unit = if metric.unit == "1" { String::new() } else { format!(", {}", metric.unit) };
    let mut out =
        format!("{}<small>{}</small>", escape(&format!("{}{unit}", metric.name)), metric.kind.in_words());
    let refuted = metric.refuted.as_ref().filter(|_| claim.verdict == Verdict::Refuted);
    for text in [metric.def.as_ref(), metric.note.as_ref(), refuted].into_iter().flatten() {
        let _ = write!(out, "<small>{}</small>", escape(text));
    }
    out
}

/// The difference between the measured number and `value`, in percent of `value`.
fn error(element: &Element, value: Option<f64>) -> String {
    match value.filter(|value| *value != 0.0 && element.measured.is_finite()) {
        Some(value) => {
            let percent = (element.measured / value - 1.0) * 100.0;
            let text = format!("{percent:+.1} %");
            if text == "-0.0 %" || text == "+0.0 %" { "0 %".to_owned() } else { text }
        }
        None => "–".to_owned(),
    }
}
