//! Verdicts as text tables and as JSON lines.

use std::fmt::Write as _;

use apportion_report::statistics::{Estimate, number};

use crate::expect::{Metric, Op, Origin};
use crate::judge::{Claim, Element, Tally, Verdict};
use crate::plan::title;
use crate::value::plain;

/// Formats claims as JSON, one object a line.
#[must_use]
pub fn json_lines<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> String {
    let line =
        |claim: &Claim| serde_json::to_string(&claim.row()).map(|line| line + "\n").unwrap_or_default();
    claims.into_iter().map(line).collect()
}

/// Formats a table per experiment, and the count.
#[must_use]
pub fn tables(claims: &[Claim]) -> String {
    let mut out = String::new();
    for claims in claims.chunk_by(Claim::same_experiment) {
        let _ = writeln!(out, "{}", title(&claims[0].experiment, claims[0].control.as_deref()));
        let variants = variant_names(claims);
        let mut rows: Vec<Vec<String>> =
            vec![["claim", "of", "published", "ideal", "measured", "deviation"].map(str::to_owned).to_vec()];
        rows[0].extend(variants.iter().map(|name| (*name).to_owned()).chain(["verdict".to_owned()]));
        for claim in claims {
            for (k, element) in claim.elements.iter().enumerate() {
                let once = |text: &str| if k == 0 { text.to_owned() } else { String::new() };
                let mark = match element.verdict {
                    Verdict::Recorded | Verdict::Holds => "",
                    Verdict::Undecided => " ?",
                    Verdict::Refuted | Verdict::Fails => " !",
                };
                let mut row = vec![
                    once(&claim.metric.name),
                    element.label.clone(),
                    claim.metric.expected(element.published),
                    element.ideal.map_or_else(|| "–".to_owned(), number),
                    element.shown() + mark,
                    percent(claim.deviation(element)).unwrap_or_else(|| "–".to_owned()),
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

/// Names of the variants in which at least one of these claims was measured.
pub(crate) fn variant_names<'a>(claims: impl IntoIterator<Item = &'a Claim>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in claims.into_iter().flat_map(|claim| &claim.variants) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// A fraction in percent, with its sign.
pub(crate) fn percent(share: Option<f64>) -> Option<String> {
    let text = format!("{:+.1} %", share? * 100.0);
    Some(if text == "-0.0 %" || text == "+0.0 %" { "0 %".to_owned() } else { text })
}

/// Number of claims by verdict, in a few sentences.
#[must_use]
pub fn headline(claims: &[Claim]) -> String {
    let mut text = match claims.iter().any(|claim| claim.control.is_some()) {
        true => headline_of_controls(claims),
        false => headline_of_claims(&Tally::of(claims)),
    };
    if claims.first().is_some_and(|claim| claim.seeds == 1) {
        text.push_str(" One seed has no interval: these are verdicts on a single run.");
    }
    text
}

fn headline_of_claims(tally: &Tally) -> String {
    let mut text = if tally.claims() == 0 {
        format!("{} numbers are recorded; none has a bound.", tally.recorded)
    } else {
        format!("{} of {} claims hold", tally.hold, tally.claims())
    };
    if tally.claims() == 0 {
        return text;
    }
    if tally.on_edge > 0 {
        let _ = write!(text, ", {} of them on a knife edge", tally.on_edge);
    }
    let others = [(tally.undecided, "undecided"), (tally.refuted, "refuted"), (tally.fail, "failed")];
    for (count, name) in others.into_iter().filter(|(count, _)| *count > 0) {
        let _ = write!(text, "; {count} {name}");
    }
    text.push('.');
    if tally.hold_refuted > 0 {
        let _ = write!(text, " {} that hold are marked as refuted: correct the file.", tally.hold_refuted);
    }
    if tally.recorded > 0 {
        let _ = write!(text, " {} more numbers are recorded without a bound.", tally.recorded);
    }
    text
}

fn headline_of_controls(claims: &[Claim]) -> String {
    let must: Vec<&Claim> = claims.iter().filter(|claim| claim.must_fail()).collect();
    let tally = Tally::of(must.iter().copied());
    let mut text =
        format!("With a mechanism switched off, {} of {} claims that must fail do", tally.fail, must.len());
    for (count, name) in [(tally.undecided, "undecided"), (tally.hold, "hold")] {
        if count > 0 {
            let _ = write!(text, "; {count} {name}");
        }
    }
    let others = Tally::of(claims.iter().filter(|claim| !claim.must_fail()));
    let _ = write!(text, ". {} of the {} others hold.", others.hold, others.claims());
    text
}

impl Claim {
    /// The `k`th number as measured in the variant `name`.
    pub(crate) fn shown_variant(&self, name: &str, k: usize) -> String {
        let other = self.variants.iter().find(|(known, _)| known == name);
        other.and_then(|(_, claim)| claim.elements.get(k)).map_or_else(|| "-".to_owned(), Element::shown)
    }

    /// Whether both belong to the same experiment, with the same control.
    fn same_experiment(&self, other: &Self) -> bool {
        self.experiment == other.experiment && self.control == other.control
    }

    /// The verdict in words.
    #[must_use]
    pub fn verdict_in_words(&self) -> &'static str {
        match self.verdict {
            Verdict::Holds if self.must_fail() => "HOLDS, MUST FAIL",
            Verdict::Undecided if self.must_fail() => "undecided, must fail",
            Verdict::Fails if self.must_fail() => "fails, as it must",
            Verdict::Holds if self.holds_though_refuted() => "HOLDS, MARKED REFUTED",
            Verdict::Holds if self.knife_edge() => "holds (knife edge)",
            Verdict::Fails if self.control.is_none() => "FAILS",
            verdict => verdict.name(),
        }
    }
}

impl Metric {
    /// A published value with its comparison, for example `0.560 ± 15 %` or `≥ 0.950`; a dash if there is
    /// none.
    #[must_use]
    pub fn expected(&self, value: Option<f64>) -> String {
        let Some(value) = value.map(plain) else { return "–".to_owned() };
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
