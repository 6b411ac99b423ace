//! LaTeX text: escaping, tables, and the metrics of a run as tables.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::store::{StoredPoint, StoredRun};

/// LaTeX for characters that it interprets, or that its default fonts lack; `validation/kit` has the same
/// list.
const AS: [(char, &str); 34] = [
    ('\\', "\\textbackslash{}"),
    ('{', "\\{"),
    ('}', "\\}"),
    ('$', "\\$"),
    ('&', "\\&"),
    ('#', "\\#"),
    ('%', "\\%"),
    ('_', "\\_"),
    ('^', "\\textasciicircum{}"),
    ('~', "\\textasciitilde{}"),
    ('<', "$<$"),
    ('>', "$>$"),
    ('|', "$|$"),
    ('"', "''"),
    ('`', "\\textasciigrave{}"),
    ('±', "$\\pm$"),
    ('≤', "$\\le$"),
    ('≥', "$\\ge$"),
    ('×', "$\\times$"),
    ('·', "$\\cdot$"),
    ('²', "$^2$"),
    ('³', "$^3$"),
    ('√', "$\\surd$"),
    ('µ', "$\\mu$"),
    ('μ', "$\\mu$"),
    ('α', "$\\alpha$"),
    ('λ', "$\\lambda$"),
    ('ρ', "$\\rho$"),
    ('σ', "$\\sigma$"),
    ('Σ', "$\\Sigma$"),
    ('∞', "$\\infty$"),
    ('–', "--"),
    ('—', "---"),
    ('…', "\\dots{}"),
];

/// `text` as LaTeX text, for the default fonts and encoding of LaTeX since 2018. Latin letters stay as they
/// are; other characters outside the list become question marks.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match AS.iter().find(|(known, _)| *known == c) {
            Some((_, written)) => out.push_str(written),
            None if c.is_ascii() && !c.is_control() => out.push(c),
            None if c.is_whitespace() => out.push(' '),
            None if c.is_alphabetic() && c <= '\u{17f}' => out.push(c),
            None => out.push('?'),
        }
    }
    out
}

/// A table for `\input`, with the rules of the package `booktabs`.
#[derive(Clone, Debug, Default)]
pub struct Table {
    /// Lines of comment above the table.
    pub comment: Vec<String>,
    /// The alignment of columns, a letter each: `l` or `r`.
    pub columns: String,
    /// The heads of the columns, as text like cells; lines of a head stand below each other.
    pub head: Vec<String>,
    /// Whether heads are rotated, for columns narrower than their heads: needs the package `graphicx`.
    pub is_upright: bool,
    /// Rows in groups, with a rule between groups. Missing cells are empty.
    pub groups: Vec<Vec<Vec<String>>>,
}

impl Table {
    /// A table with a first column of names and others of numbers.
    #[must_use]
    pub fn of_numbers(head: Vec<String>, rows: Vec<Vec<String>>) -> Self {
        let columns = (0..head.len()).map(|at| if at == 0 { 'l' } else { 'r' }).collect();
        Self { columns, head, groups: vec![rows], ..Self::default() }
    }

    /// The table as the text of a file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        for line in self.comment.iter().flat_map(|text| text.lines()) {
            let _ = writeln!(out, "% {line}");
        }
        let packages = if self.is_upright { "booktabs,graphicx" } else { "booktabs" };
        let _ = writeln!(out, "% Needs \\usepackage{{{packages}}}.");
        let _ = writeln!(out, "\\begin{{tabular}}{{@{{}}{}@{{}}}}", self.columns);
        let head = self.head.iter().enumerate().map(|(at, cell)| match self.is_upright && at > 0 {
            true => format!("\\rotatebox{{90}}{{{}}}", escape(cell)),
            false if cell.contains('\n') => {
                let lines: Vec<String> = cell.lines().map(escape).collect();
                format!("\\shortstack[r]{{{}}}", lines.join(" \\\\ "))
            }
            false => escape(cell),
        });
        let _ = writeln!(out, "\\toprule\n{} \\\\", head.collect::<Vec<_>>().join(" & "));
        for group in &self.groups {
            out.push_str("\\midrule\n");
            for row in group {
                let cells = (0..self.head.len()).map(|at| row.get(at).map_or_else(String::new, |c| cell(c)));
                let _ = writeln!(out, "{} \\\\", cells.collect::<Vec<_>>().join(" & "));
            }
        }
        out + "\\bottomrule\n\\end{tabular}\n"
    }
}

/// Maximum of points next to each other. Chosen: as many as fit A4 in `\scriptsize`, with margins of 25 mm.
const POINTS_ABREAST: usize = 4;

/// The metrics of a stored run: a row for each metric and a column for each point, with the mean and half of
/// its 95 % interval. Four points at most share a table, so that none is wider than a page.
#[must_use]
pub fn of_run(run: &StoredRun) -> String {
    let means = match run.seeds.len() {
        1 => "One seed: there are no intervals.".to_owned(),
        seeds => format!("Means over {seeds} seeds, and half of their 95 % intervals."),
    };
    let mut comment = vec![format!("{}, scenario {}", run.title, run.hash), means];
    if !run.complete {
        comment.push(match run.cut {
            Some(cut) => format!("The run was interrupted: results are partial, cut at {cut}."),
            None => "The run was interrupted: results are missing.".to_owned(),
        });
    }
    comment.extend(run.faults.iter().map(|fault| format!("NOT VALID: {fault}")));
    let table = |(at, points): (usize, &[StoredPoint])| {
        let comment = if at == 0 { comment.clone() } else { Vec::new() };
        let heads = points.iter().map(|point| match point.label.as_str() {
            "" => "mean".to_owned(),
            label => label.replace(", ", "\n").replace(' ', "\n"),
        });
        let head: Vec<String> = ["metric".to_owned(), "unit".to_owned()].into_iter().chain(heads).collect();
        let columns = "ll".to_owned() + &"r".repeat(points.len());
        Table { comment, columns, head, is_upright: false, groups: rows(points) }.text()
    };
    run.points
        .chunks(POINTS_ABREAST)
        .enumerate()
        .map(table)
        .collect::<Vec<_>>()
        .join("\\par\\medskip\\noindent\n")
}

/// A row for each metric of these points, in groups by group of flows, customer or link.
fn rows(points: &[StoredPoint]) -> Vec<Vec<Vec<String>>> {
    let mut known = BTreeSet::new();
    let mut parts: Vec<(Option<&str>, Vec<Vec<String>>)> = Vec::new();
    for metric in points.iter().flat_map(|point| point.summary.metrics.iter()) {
        if !known.insert(metric.name.as_str()) {
            continue;
        }
        let show = |point: &StoredPoint| point.summary.metrics.show(&metric.name).unwrap_or("–".to_owned());
        let row = [metric.name.clone(), metric.unit.to_owned()]
            .into_iter()
            .chain(points.iter().map(show))
            .collect();
        let part = metric.name.split_once('/').map(|(_, part)| part);
        match parts.iter_mut().find(|(of, _)| *of == part) {
            Some((_, rows)) => rows.push(row),
            None => parts.push((part, vec![row])),
        }
    }
    parts.into_iter().map(|(_, rows)| rows).collect()
}

/// A cell. A negative number gets a minus instead of a hyphen; a row that begins with `[` would be read as an
/// argument of the line before.
fn cell(text: &str) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => format!("$-${}", escape(rest)),
        _ if text.starts_with('[') => format!("{{}}{}", escape(text)),
        _ => escape(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_latex_reads_as_something_else_stays_text() {
        assert_eq!(escape("wf2q_plus & 5 % #1"), "wf2q\\_plus \\& 5 \\% \\#1");
        assert_eq!(
            escape("\\input{x}$~^"),
            "\\textbackslash{}input\\{x\\}\\$\\textasciitilde{}\\textasciicircum{}"
        );
        assert_eq!(escape("R² ≥ .9 ± 1 – é\n%"), "R$^2$ $\\ge$ .9 $\\pm$ 1 -- é \\%");
        assert_eq!(escape("\u{7}漢"), "??");
    }

    #[test]
    fn a_table_has_a_cell_for_each_column_and_a_rule_between_groups() {
        let head = ["", "worst", "R²"].map(str::to_owned).to_vec();
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
        let mut table = Table::of_numbers(head, vec![row(&["a_b", "-0.5 ± 0.1"]), row(&["[c]", "1", "2"])]);
        table.groups.push(vec![row(&["d"])]);
        table.comment.push("first\nsecond".to_owned());
        assert_eq!(
            table.text(),
            "% first\n% second\n% Needs \\usepackage{booktabs}.\n\\begin{tabular}{@{}lrr@{}}\n\\toprule\n & worst & R$^2$ \\\\\n\\midrule\n\
             a\\_b & $-$0.5 $\\pm$ 0.1 &  \\\\\n{}[c] & 1 & 2 \\\\\n\\midrule\nd &  &  \\\\\n\\bottomrule\n\\end{tabular}\n"
        );
        table.is_upright = true;
        assert!(
            table.text().contains("& \\rotatebox{90}{worst} &")
                && table.text().contains("{booktabs,graphicx}")
        );
    }
}
