//! Results of variants: a table per paper with a row per variant, and its JSON lines.

use std::fmt::Write as _;

use apportion_report::html::{escape, table as html_table};
use apportion_report::statistics::Estimate;
use serde::Serialize;

use crate::judge::{Claim, Sampled, Tally, Verdict, claims_of, sample};
use crate::plan::{Plan, PlannedExperiment, PlannedPaper, Results};
use crate::value::Numbers;
use crate::variant::{Column, Reduction};

/// The table of a paper.
#[derive(Clone, Debug)]
pub struct Table<'a> {
    columns: &'a [Column],
    /// Rows; the unchanged experiments come first.
    rows: Vec<Row<'a>>,
    seeds: usize,
}

/// Numbers of a variant.
#[derive(Clone, Debug)]
struct Row<'a> {
    /// Name of the variant; `None` for the unchanged experiments.
    variant: Option<&'a str>,
    about: &'a str,
    /// Numbers; `None` where the variant lacks the experiment, or the number is undefined.
    cells: Vec<Option<Cell>>,
    claims: Vec<Claim>,
}

/// A number of the table, with half its 95 % interval if any.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    value: f64,
    ci95: Option<f64>,
    /// Whether the number is shown in percent.
    share: bool,
}

/// Tables of the papers that have variants.
#[must_use]
pub fn tables<'a>(plan: &'a Plan, results: &Results) -> Vec<Table<'a>> {
    let papers = plan.papers.iter().filter(|paper| !paper.variants.is_empty());
    papers.map(|paper| Table::of(paper, results)).collect()
}

impl<'a> Table<'a> {
    pub(crate) fn of(paper: &'a PlannedPaper, results: &Results) -> Self {
        let content = &paper.paper.content;
        let row = |variant, about, experiments: &[&PlannedExperiment]| {
            let claims = claims_of(experiments.iter().copied(), results);
            let cells =
                content.columns.iter().map(|column| cell(column, experiments, &claims, results)).collect();
            Row { variant, about, cells, claims }
        };
        // The same experiments as in most variants, so that counts of claims can be compared.
        let usual = |planned: &&PlannedExperiment| {
            content.columns.is_empty()
                || content.columns.iter().any(|column| column.place().0 == planned.experiment.id)
        };
        let own: Vec<_> = paper.experiments.iter().filter(usual).collect();
        let mut rows = vec![row(None, "The scenarios as they are.", &own)];
        for planned in &paper.variants {
            let variant = &planned.variant;
            let experiments: Vec<_> = planned.experiments.iter().collect();
            rows.push(row(Some(variant.name.as_str()), &variant.about, &experiments));
        }
        Self { columns: &content.columns, rows, seeds: results.seeds }
    }

    #[must_use]
    pub fn markdown(&self) -> String {
        let seeds = if self.seeds == 1 { "1 seed".to_owned() } else { format!("{} seeds", self.seeds) };
        let mut out = format!("Effect of variants, {seeds}. Columns:\n\n");
        for (number, column) in (1..).zip(self.columns) {
            let _ = writeln!(out, "{number}. {}", column.title);
        }
        let (head, body) = self.text(&(1..=self.columns.len()).map(|n| n.to_string()).collect::<Vec<_>>());
        let width = |c: usize| {
            let cells = body.iter().map(|row| &row[c]).chain([&head[c]]);
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        out.push('\n');
        for row in [&head, &rule].into_iter().chain(&body) {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("| {cell:width$} "));
            let _ = writeln!(out, "{}|", cells.collect::<String>());
        }
        out
    }

    /// Formats the table as a section of a page.
    #[must_use]
    pub fn html(&self) -> String {
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        let (head, body) = self.text(&titles);
        let mut out =
            format!("<h2 id=\"variants\">Effect of variants</h2>\n{}<dl>\n", html_table(&head, &body));
        for row in self.rows.iter().skip(1) {
            let (name, about) = (escape(row.name()), escape(row.about));
            let _ = writeln!(out, "<dt>{name}</dt><dd>{about}</dd>");
        }
        out + "</dl>\n"
    }

    fn text(&self, titles: &[String]) -> (Vec<String>, Vec<Vec<String>>) {
        let mut head = vec!["variant".to_owned()];
        head.extend_from_slice(titles);
        head.push("claims held".to_owned());
        let line = |row: &Row<'_>| {
            let mut line = vec![row.name().to_owned()];
            line.extend(row.cells.iter().map(|cell| cell.map_or_else(|| "–".to_owned(), Cell::shown)));
            let tally = Tally::of(&row.claims);
            line.push(format!("{} of {}", tally.hold, tally.claims()));
            line
        };
        (head, self.rows.iter().map(line).collect())
    }

    /// Formats JSON, an object a line: the claims of each variant, then its columns. The unchanged
    /// experiments have no name.
    #[must_use]
    pub fn json_lines(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            for claim in &row.claims {
                push(
                    &mut out,
                    &ClaimLine {
                        variant: row.variant,
                        experiment: &claim.experiment,
                        metric: &claim.metric.name,
                        measured: claim.measured(),
                        verdict: claim.verdict,
                    },
                );
            }
            for (column, cell) in self.columns.iter().zip(&row.cells) {
                let finite = |x: f64| Some(x).filter(|x| x.is_finite());
                push(
                    &mut out,
                    &ColumnLine {
                        variant: row.variant,
                        column: &column.title,
                        measured: cell.and_then(|cell| finite(cell.value)),
                        ci95: cell.and_then(|cell| cell.ci95),
                    },
                );
            }
        }
        out
    }
}

impl Row<'_> {
    fn name(&self) -> &str {
        self.variant.unwrap_or("(as they are)")
    }
}

#[derive(Serialize)]
struct ClaimLine<'a> {
    variant: Option<&'a str>,
    experiment: &'a str,
    metric: &'a str,
    measured: Numbers<Option<f64>>,
    verdict: Verdict,
}

#[derive(Serialize)]
struct ColumnLine<'a> {
    variant: Option<&'a str>,
    column: &'a str,
    measured: Option<f64>,
    ci95: Option<f64>,
}

fn push(out: &mut String, line: &impl Serialize) {
    if let Ok(line) = serde_json::to_string(line) {
        out.push_str(&line);
        out.push('\n');
    }
}

/// A number of one column.
fn cell(
    column: &Column,
    experiments: &[&PlannedExperiment],
    claims: &[Claim],
    results: &Results,
) -> Option<Cell> {
    let (id, metric) = column.place();
    let planned = experiments.iter().find(|planned| planned.experiment.id == id)?;
    let (numbers, published) = match (&column.measure, metric) {
        (Some(measure), _) => {
            let runs = planned.runs(results);
            let count = measure.evaluate(&runs, crate::runs::Basis::Seed(0))?.len();
            (sample(measure, &runs, results.seeds, count), Vec::new())
        }
        (None, Some(name)) => {
            let claim = claims.iter().find(|claim| claim.experiment == id && claim.metric.name == name)?;
            let sampled = |element: &crate::judge::Element| Sampled {
                estimate: Some(Estimate { mean: element.measured, ci95: element.ci95, n: claim.seeds }),
                ideal: element.ideal,
            };
            let published = claim.elements.iter().map(|element| element.published).collect();
            (claim.elements.iter().map(sampled).collect(), published)
        }
        (None, None) => return None,
    };
    let share = |value: Option<f64>| Some(Cell { value: value?, ci95: None, share: true });
    match column.give {
        Reduction::Measured => {
            let [Sampled { estimate: Some(one), .. }] = numbers.as_slice() else { return None };
            Some(Cell { value: one.mean, ci95: one.ci95, share: false })
        }
        Reduction::RmsPublished => share(rms(&errors(&numbers, published.iter().copied())?)),
        Reduction::RmsIdeal => share(rms(&errors(&numbers, numbers.iter().map(|one| one.ideal))?)),
        Reduction::WorstIdeal => {
            let errors = errors(&numbers, numbers.iter().map(|one| one.ideal))?;
            share(errors.into_iter().map(f64::abs).max_by(f64::total_cmp))
        }
    }
}

/// Relative errors of means; `None` if one of them is undefined.
fn errors(numbers: &[Sampled], against: impl Iterator<Item = Option<f64>>) -> Option<Vec<f64>> {
    let error = |(one, value): (&Sampled, Option<f64>)| {
        Some(one.estimate?.mean / value? - 1.0).filter(|error| error.is_finite())
    };
    numbers.iter().zip(against).map(error).collect()
}

/// The root of the mean square.
fn rms(errors: &[f64]) -> Option<f64> {
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    (!errors.is_empty()).then(|| (squares / errors.len() as f64).sqrt())
}

impl Cell {
    fn shown(self) -> String {
        match self {
            Self { value, .. } if value.is_nan() => "–".to_owned(),
            Self { value, .. } if value.is_infinite() => "never".to_owned(),
            Self { value, share: true, .. } => format!("{:.1} %", value * 100.0),
            Self { value, ci95, .. } => Estimate { mean: value, ci95, n: 1 }.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_relative_and_of_means() {
        // 1.1 of 1 and 1.6 of 2 are 0.1 and -0.2 off: √((0.01 + 0.04) / 2) = 0.158.
        let number = |mean| Sampled { estimate: Some(Estimate { mean, ci95: None, n: 1 }), ideal: None };
        let numbers = [number(1.1), number(1.6)];
        let found = errors(&numbers, [Some(1.0), Some(2.0)].into_iter()).unwrap_or_default();
        assert!((rms(&found).unwrap_or(0.0) - 0.025_f64.sqrt()).abs() < 1e-12, "{found:?}");
        assert_eq!(errors(&numbers, [Some(1.0), None].into_iter()), None);
        assert_eq!(errors(&numbers, [Some(1.0), Some(0.0)].into_iter()), None);
    }

    #[test]
    fn cells_read_as_people_write_them() {
        let cell = |value, share| Cell { value, ci95: None, share }.shown();
        assert_eq!([cell(0.0283, true), cell(0.994, false)], ["2.8 %", "0.994"]);
        assert_eq!([cell(f64::INFINITY, false), cell(f64::NAN, false)], ["never", "–"]);
    }
}
