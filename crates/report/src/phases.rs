//! Whether results depend on phases: each replication against its twin, the same with every delay moved by up to 1 µs.
//!
//! No delay is known to a microsecond, so an answer that a microsecond changes is not one. The intervals of means over seeds
//! do not show it: all seeds have the same delays.

use apportion_core::units::Rate;
use apportion_runtime::due::Dues;
use apportion_runtime::outcome::Outcome;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::metrics::judged;
use crate::record::{FlowInfo, PointRecord, Run};
use crate::rows::PhaseRow;
use crate::statistics::{Estimate, jain, mean, number};
use crate::tables::{mbps, round6};

/// The level of the test over all comparisons of a run: that of the 95 % intervals.
const LEVEL: f64 = 0.05;

/// The numbers of one replication, or of its twin, that are compared.
#[derive(Clone, Debug)]
pub struct Sample {
    /// Throughput of each flow, Mb/s.
    flows: Vec<f64>,
    /// Of all flows together.
    total: f64,
    jain: Option<f64>,
}

impl Sample {
    /// Those of an outcome, with what flows were due in it if that is known.
    #[must_use]
    pub fn of(outcome: &Outcome, dues: Option<&Dues>) -> Self {
        let flows: Vec<f64> =
            outcome.flows.iter().map(|flow| mbps(flow.delivered.bytes, outcome.measured)).collect();
        let due = |at: usize| Some(Rate::as_mbit_f64(dues?.flows.get(at)?.measured));
        let shares: Vec<f64> = judged((0..flows.len()).map(due))
            .map(|(at, entitlement)| flows[at] / entitlement.unwrap_or(1.0))
            .collect();
        Self { total: flows.iter().sum(), jain: jain(&shares), flows }
    }
}

/// Compares the replications of all points of a run with their twins and puts the result into
/// [`PointRecord::phases`]: for each point, the twin of each of its outcomes, if it has finished.
pub fn judge(points: &mut [PointRecord], twins: &[Vec<Option<Sample>>]) {
    for (point, twins) in points.iter_mut().zip(twins) {
        point.phases = compare(point, twins);
    }
    let mut rows: Vec<&mut PhaseRow> = points.iter_mut().flat_map(|point| &mut point.phases).collect();
    let judged: Vec<bool> = holm(&rows.iter().map(|row| row.p).collect::<Vec<_>>());
    for (row, significant) in rows.iter_mut().zip(judged) {
        row.significant = significant;
    }
}

/// The rows of a point, not yet judged.
fn compare(point: &PointRecord, twins: &[Option<Sample>]) -> Vec<PhaseRow> {
    let pair = |(at, outcome): (usize, &Outcome)| {
        let dues = point.dues.get(at).and_then(Option::as_ref);
        Some((Sample::of(outcome, dues), twins.get(at)?.clone()?))
    };
    let pairs: Vec<(Sample, Sample)> = point.outcomes.iter().enumerate().filter_map(pair).collect();
    let row = |flow: &str, metric: &str, of: &dyn Fn(&Sample) -> Option<f64>| {
        let both: Vec<(f64, f64)> =
            pairs.iter().filter_map(|(is, twin)| Some((of(is)?, of(twin)?))).collect();
        let was: Vec<f64> = both.iter().map(|pair| pair.0).collect();
        let Estimate { mean: middle, ci95, n } = Estimate::of(&was)?;
        // Below that it is rounding.
        let shifts: Vec<f64> = both.iter().map(|pair| ((pair.1 - pair.0) * 1e9).round() / 1e9).collect();
        Some(PhaseRow {
            point: point.label.clone(),
            flow: flow.to_owned(),
            metric: metric.to_owned(),
            seeds: n as u64,
            mean: round6(middle),
            half_width: ci95.map(round6),
            shift: round6(mean(&shifts)?),
            p: by_chance(&shifts, is_constant(&was)),
            significant: false,
        })
    };
    let of_flow = |(at, info): (usize, &FlowInfo)| {
        row(&info.name, "throughput_mbps", &|sample| sample.flows.get(at).copied())
    };
    let flows = point.flows.iter().enumerate().filter_map(of_flow);
    let total = row("", "throughput_mbps", &|sample| Some(sample.total));
    flows.chain(total).chain(row("", "jain", &|sample| sample.jain)).collect()
}

fn is_constant(samples: &[f64]) -> bool {
    samples.windows(2).all(|pair| pair[0] == pair[1])
}

/// How likely shifts as large are by chance: Student's paired t test. None for a single one.
///
/// Equal shifts have no variance that the test could use. If no seed changes the number, a shift is certain. If seeds do, and the
/// shifts are equal all the same (a packet more at the end of the measured part), their signs are what is known: all n of
/// them agree with probability 2 / 2^n.
fn by_chance(shifts: &[f64], is_deterministic: bool) -> Option<f64> {
    let n = shifts.len() as f64;
    if shifts.len() < 2 {
        return None;
    }
    let middle = mean(shifts)?;
    if is_constant(shifts) {
        return Some(match shifts[0] == 0.0 {
            true => 1.0,
            false if is_deterministic => 0.0,
            false => (1.0 - n).exp2(),
        });
    }
    let squares: f64 = shifts.iter().map(|shift| (shift - middle).powi(2)).sum();
    let t = middle / (squares / (n - 1.0) / n).sqrt();
    StudentsT::new(0.0, 1.0, n - 1.0).ok().map(|student| (2.0 * student.sf(t.abs())).min(1.0))
}

/// Which of these tests are significant: the smallest p at `LEVEL` / m, the next at `LEVEL` / (m - 1), and so on until one fails.
///
/// S. Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of Statistics 6, 1979.
fn holm(tests: &[Option<f64>]) -> Vec<bool> {
    let mut order: Vec<(f64, usize)> =
        tests.iter().enumerate().filter_map(|(at, p)| Some(((*p)?, at))).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut significant = vec![false; tests.len()];
    for (rank, &(p, at)) in order.iter().enumerate() {
        if p > LEVEL / (order.len() - rank) as f64 {
            break;
        }
        significant[at] = true;
    }
    significant
}

// ---------------------------------------------------------------------------------------------
// In words

/// Which points depend on phases, one sentence each with the name of the point; one sentence if none does, none if that was not
/// simulated.
pub(crate) fn sentences(run: &Run) -> Vec<String> {
    let name = |point: &PointRecord| match run.points.len() {
        1 => String::new(),
        _ => format!("{}: ", point.name()),
    };
    let of_point = |point: &PointRecord| Some(format!("{}{}", name(point), of_point(point)?));
    let sensitive: Vec<String> = run.points.iter().filter_map(of_point).collect();
    if sensitive.is_empty() { calm(run).into_iter().collect() } else { sensitive }
}

/// The flow of a point that moves most, if the point depends on phases.
fn of_point(point: &PointRecord) -> Option<String> {
    let moved: Vec<&PhaseRow> = point.phases.iter().filter(|row| row.significant).collect();
    let flows = moved.iter().filter(|row| !row.flow.is_empty()).count();
    let row = most(&moved)?;
    let others = match flows {
        2.. => format!(", of {flows} flows the most"),
        _ => String::new(),
    };
    Some(format!("Depends on phases: delays moved by up to 1 µs move {}{others}.", moves(row)))
}

/// What is said if no point depends on phases.
fn calm(run: &Run) -> Option<String> {
    let rows: Vec<&PhaseRow> = run.points.iter().flat_map(|point| &point.phases).collect();
    let seeds = rows.iter().map(|row| row.seeds).min()?;
    Some(match seeds {
        1 => format!(
            "Phases: delays moved by up to 1 µs move {}. Several seeds would show whether that is chance.",
            moves(most(&rows)?)
        ),
        _ => format!(
            "Phases: with delays moved by up to 1 µs all of {} differences are within chance ({seeds} seeds).",
            rows.len()
        ),
    })
}

/// The row that moves most: of a flow if there is one.
fn most<'a>(rows: &[&'a PhaseRow]) -> Option<&'a PhaseRow> {
    let rank = |row: &PhaseRow| (!row.flow.is_empty(), row.metric != "jain", row.shift.abs());
    rows.iter().copied().max_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2))
    })
}

/// Such as `tcp.3 by +0.810 Mb/s, from 1.50 ± 0.08 Mb/s`.
fn moves(row: &PhaseRow) -> String {
    let (what, unit) = what(row);
    format!("{what} by {}{unit}, from {}{unit}", shift(row), value(row))
}

/// What a row is about, and its unit after a space.
fn what(row: &PhaseRow) -> (&str, &'static str) {
    match (row.flow.as_str(), row.metric.as_str()) {
        ("", "jain") => ("Jain's index", ""),
        ("", _) => ("the total", " Mb/s"),
        (flow, _) => (flow, " Mb/s"),
    }
}

fn shift(row: &PhaseRow) -> String {
    format!("{}{}", if row.shift < 0.0 { "-" } else { "+" }, number(row.shift.abs()))
}

fn value(row: &PhaseRow) -> String {
    Estimate { mean: row.mean, ci95: row.half_width, n: row.seeds as usize }.to_string()
}

/// The cells of a row in the report: what, value, shift and p.
pub(crate) fn cells(row: &PhaseRow) -> Vec<String> {
    let (what, unit) = what(row);
    let p =
        row.p.map_or_else(|| "–".to_owned(), |p| if p < 1e-4 { "< 0.0001".to_owned() } else { number(p) });
    vec![what.to_owned(), format!("{}{unit}", value(row)), shift(row), p]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shifts_are_judged_by_their_own_variance() {
        // Mean 3, s = √2.5, n = 5: t = 3 / (√2.5 / √5) = 4.2426; two-sided p with 4 degrees of freedom 0.0132 (printed tables:
        // 0.02 at 3.747, 0.01 at 4.604).
        let p = by_chance(&[1.0, 2.0, 3.0, 4.0, 5.0], false).unwrap();
        assert!((p - 0.0132).abs() < 1e-4, "{p}");
        assert_eq!(by_chance(&[-1.0, 1.0], false), Some(1.0));
        assert_eq!(by_chance(&[0.7], true), None);
    }

    #[test]
    fn equal_shifts_are_certain_only_where_no_seed_changes_anything() {
        assert_eq!(by_chance(&[0.0; 7], true), Some(1.0));
        assert_eq!(by_chance(&[0.0; 7], false), Some(1.0));
        assert_eq!(by_chance(&[-0.3, -0.3], true), Some(0.0));
        // Two coins that agree.
        assert_eq!(by_chance(&[-0.3, -0.3], false), Some(0.5));
        assert_eq!(by_chance(&[0.3; 11], false), Some(1.0 / 1_024.0));
    }

    #[test]
    fn the_smallest_p_meets_the_hardest_bound() {
        // The bounds are 0.0125, 0.0167, 0.025, 0.05.
        assert_eq!(holm(&[Some(0.01), Some(0.9), Some(0.016), Some(0.03)]), [true, false, true, false]);
        // A row without a test is none of them: 0.0167, 0.025, 0.05.
        assert_eq!(holm(&[Some(0.03), Some(0.016), None, Some(0.02)]), [true, true, false, true]);
        // The second is above 0.05 / 2, so the third does not matter.
        assert_eq!(holm(&[Some(0.04), Some(0.001), Some(0.04)]), [false, true, false]);
        assert_eq!(holm(&[None, None]), [false, false]);
    }
}
