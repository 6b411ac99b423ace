//! Verdicts as text tables and as JSON lines.

use std::fmt::Write as _;

use apportion_report::statistics::{Estimate, number};

use crate::expect::{Metric, Op, Origin};
use crate::judge::{Claim, Element, Verdict};
use crate::value::plain;

/// One JSON object a line.
#[must_use]
pub fn json_lines<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> String {
    let line =
        |claim: &Claim| serde_json::to_string(&claim.row()).map(|line| line + "\n").unwrap_or_default();
    claims.into_iter().map(line).collect()
}

/// A table for each experiment, and the count.
#[must_use]
pub fn tables(claims: &[Claim]) -> String {
    let mut out = String::new();
    for claims in claims.chunk_by(|a, b| a.experiment == b.experiment) {
        let _ = writeln!(out, "{}", claims[0].experiment);
        let variants = variant_names(claims);
        let mut rows: Vec<Vec<String>> =
            vec![["claim", "of", "published", "ideal", "measured"].map(str::to_owned).to_vec()];
        rows[0].extend(variants.iter().map(|name| (*name).to_owned()).chain(["verdict".to_owned()]));
        for claim in claims {
            for (k, element) in claim.elements.iter().enumerate() {
                let once = |text: &str| if k == 0 { text.to_owned() } else { String::new() };
                let missed = if element.holds { "" } else { " !" };
                let mut row = vec![
                    once(&claim.metric.name),
                    element.label.clone(),
                    claim.metric.expected(element.published),
                    element.ideal.map_or_else(|| "-".to_owned(), number),
                    element.shown() + missed,
                ];
                row.extend(variants.iter().map(|name| claim.shown_variant(name, k)));
                row.push(once(claim.verdict_in_words()));
                rows.push(row);
            }
        }
        let width = |c: usize| rows.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("  {cell:width$}"));
            let _ = writeln!(out, "{}", cells.collect::<String>().trim_end());
        }
        out.push('\n');
    }
    out + &headline(claims) + "\n"
}

/// The names of the variants in which at least one of these claims was measured.
pub(crate) fn variant_names<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in claims.into_iter().flat_map(|claim| &claim.variants) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// How many claims hold, in a sentence.
#[must_use]
pub fn headline(claims: &[Claim]) -> String {
    let count = |test: &dyn Fn(&Claim) -> bool| claims.iter().filter(|claim| test(claim)).count();
    let holds = count(&|claim| claim.verdict == Verdict::Holds);
    if claims.iter().any(|claim| claim.ablated) {
        let must = count(&|claim| claim.metric.breaks);
        let survive = count(&Claim::survives_ablation);
        return format!(
            "With the mechanism switched off, {} of {must} claims that must fail do; {holds} of all {} hold.",
            must - survive,
            claims.len()
        );
    }
    let refuted = count(&|claim| claim.verdict == Verdict::Refuted);
    let refuted = if refuted == 0 { String::new() } else { format!("; {refuted} refuted") };
    let recorded = count(&|claim| claim.metric.op == Op::Record);
    let recorded = if recorded == 0 { String::new() } else { format!(", {recorded} of them only recorded") };
    format!("{holds} of {} claims hold{recorded}{refuted}.", claims.len())
}

impl Claim {
    /// The `k`th number as measured in the variant `name`.
    pub(crate) fn shown_variant(&self, name: &str, k: usize) -> String {
        let other = self.variants.iter().find(|(known, _)| known == name);
        other.and_then(|(_, claim)| claim.elements.get(k)).map_or_else(|| "-".to_owned(), Element::shown)
    }

    /// Its verdict in words.
    #[must_use]
    pub fn verdict_in_words(&self) -> &'static str {
        match (self.ablated, self.metric.breaks, self.verdict) {
            (true, true, Verdict::Holds) => "HOLDS, MUST FAIL",
            (true, true, _) => "fails, as it must",
            (true, false, Verdict::Refuted | Verdict::Fails) => "fails",
            (_, _, Verdict::Holds) if self.metric.op == Op::Record => "recorded",
            (_, _, Verdict::Holds) => "holds",
            (false, _, Verdict::Refuted) => "refuted",
            (false, _, Verdict::Fails) => "FAILS",
        }
    }
}

impl Metric {
    /// A published value with its comparison, such as `0.560 ± 15 %` or `≥ 0.950`.
    #[must_use]
    pub fn expected(&self, value: f64) -> String {
        let value = plain(value);
        let widened =
            self.tol_abs.filter(|tol| *tol > 0.0).map_or(String::new(), |tol| format!(" (+ {})", plain(tol)));
        let less = widened.replace('+', "-");
        match self.op {
            Op::Approx => match (self.tol_rel, self.tol_abs) {
                (Some(tol), _) => format!("{value} ± {} %", plain(tol * 100.0)),
                (None, tol) => format!("{value} ± {}", plain(tol.unwrap_or(0.0))),
            },
            Op::Ge => format!("≥ {value}{less}"),
            Op::Gt => format!("> {value}{less}"),
            Op::Le => format!("≤ {value}{widened}"),
            Op::Lt => format!("< {value}{widened}"),
            Op::Record => value,
        }
    }
}

impl Origin {
    /// The origin of the value in words.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::PublishedNumber => "printed in the paper",
            Self::StatedClaim => "stated in the paper",
            Self::Derived => "computed from the paper's parameters",
        }
    }
}

impl Element {
    /// The measured number with its interval.
    #[must_use]
    pub fn shown(&self) -> String {
        if self.measured.is_nan() {
            return "not measured".to_owned();
        }
        if self.measured.is_infinite() {
            return "never".to_owned();
        }
        if self.measured.abs() < 1e-3 && self.measured != 0.0 {
            let half = self.ci95.map_or_else(String::new, |half| format!(" ± {half:.1e}"));
            return format!("{:.3e}{half}", self.measured);
        }
        Estimate { mean: self.measured, ci95: self.ci95, n: 1 }.to_string()
    }
}
