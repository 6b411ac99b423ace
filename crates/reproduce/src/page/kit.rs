//! Contents of a page for use in a paper: figures as SVG and PDF, and tables in LaTeX.

use apportion_report::latex::Table;

use super::{HEADS, MEASURED};
use super::{cells, figures, of_experiment, variant_names};
use crate::judge::{Claim, Element, Verdict};
use crate::plan::{PlannedExperiment, PlannedPaper, Results};

/// Files by name with their contents. For each experiment, the table of claims is `EXPERIMENT.tex`; figures
/// and tables are numbered, `EXPERIMENT-1.svg`.
#[must_use]
pub fn kit(
    paper: &PlannedPaper,
    results: &Results,
    claims: &[&Claim],
    command: &str,
) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    for planned in &paper.experiments {
        let name = name(planned);
        let about = |what: &str| vec![format!("{}: {what}", planned.title()), format!("`{command}`")];
        let table = claims_of(&of_experiment(planned, claims), about("claims"));
        files.push((format!("{name}.tex"), table.text().into_bytes()));
        for (number, figure) in (1..).zip(&planned.experiment.figures) {
            let file = |ending: &str| format!("{name}-{number}.{ending}");
            if let Some((title, head, rows)) = figures::tabled(figure, planned, claims) {
                let table = Table { comment: about(title), ..Table::of_numbers(head, rows) };
                files.push((file("tex"), table.text().into_bytes()));
            } else if let Some(card) = figures::drawn(figure, planned, results) {
                let drawing = card.alone();
                files.push((file("svg"), drawing.svg().into_bytes()));
                files.push((file("pdf"), drawing.pdf()));
            }
        }
    }
    files
}

/// The id of an experiment without its paper, with its control.
fn name(planned: &PlannedExperiment) -> String {
    let title = planned.title();
    let own = title.split_once('/').map_or(title.as_str(), |(_, own)| own);
    let words: Vec<&str> = own.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
    words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

/// Claims, a row per number, and a rule between claims.
fn claims_of(claims: &[&Claim], comment: Vec<String>) -> Table {
    let variants = variant_names(claims.iter().copied());
    let mark = |element: &Element| match element.verdict {
        Verdict::Recorded | Verdict::Holds => "",
        Verdict::Undecided => " ?",
        Verdict::Refuted | Verdict::Fails => " !",
    };
    let group = |claim: &&Claim| -> Vec<Vec<String>> {
        let unit = if claim.metric.unit == "1" { String::new() } else { format!(", {}", claim.metric.unit) };
        let first = |k: usize, text: String| if k == 0 { text } else { String::new() };
        let rows = cells(claim, &variants).into_iter().zip(&claim.elements).enumerate();
        let row = |(k, (mut cells, element)): (usize, (Vec<String>, &Element))| {
            cells[MEASURED] += mark(element);
            let verdict = first(k, claim.verdict_in_words().to_owned());
            [vec![first(k, format!("{}{unit}", claim.metric.name))], cells, vec![verdict]].concat()
        };
        rows.map(row).collect()
    };
    let head = ["Claim"].into_iter().chain(HEADS).chain(variants.iter().copied()).chain(["Verdict"]);
    let head: Vec<String> = head.map(str::to_owned).collect();
    let columns = (0..head.len()).map(|at| if at < 2 || at + 1 == head.len() { 'l' } else { 'r' }).collect();
    Table { comment, columns, head, groups: claims.iter().map(group).collect(), ..Table::default() }
}
