//! Whether results depend on phases: each replication is compared with its perturbed copy, in which every
//! delay is moved by 1 µs, up or down.
//!
//! No delay is known to a microsecond, so a result that a microsecond changes is no result. The intervals of
//! means over seeds do not show this, because all seeds have the same delays.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, FisherSnedecor};

use crate::quantities::{JAIN, THROUGHPUT, TOTAL_THROUGHPUT};
use crate::replication::FlowInfo;
use crate::rows::PhaseSensitivityRow;
use crate::run_results::{PointResults, RunResults};
use crate::statistics::{Estimate, mean, number};
use crate::units::round6;

pub use crate::sample::Sample;

/// The level of the test over all comparisons of a run, equal to that of the 95 % intervals.
const LEVEL: f64 = 0.05;

/// The numbers of a perturbed copy.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PerturbedCopy {
    /// The number of its moves: perturbed copies with the same number move delays alike.
    pub moves: u64,
    /// The numbers that are compared.
    pub sample: Sample,
}

/// Compares the replications of all points of a run with their perturbed copies, and puts the result into
/// [`PointResults::phase_sensitivity`]: for each point, the perturbed copy of each of its outcomes, if it has finished.
pub fn judge(points: &mut [PointResults], copies: &[Vec<Option<PerturbedCopy>>]) {
    for (point, copies) in points.iter_mut().zip(copies) {
        point.phase_sensitivity = compare(point, copies);
    }
    let mut rows: Vec<&mut PhaseSensitivityRow> =
        points.iter_mut().flat_map(|point| &mut point.phase_sensitivity).collect();
    let judged: Vec<bool> = holm(&rows.iter().map(|row| row.p).collect::<Vec<_>>());
    for (row, significant) in rows.iter_mut().zip(judged) {
        row.significant = significant;
    }
}

/// The rows of a point, not yet judged.
fn compare(point: &PointResults, copies: &[Option<PerturbedCopy>]) -> Vec<PhaseSensitivityRow> {
    let pair = |(sample, copy): (_, &'_ Option<PerturbedCopy>)| Some((sample, copy.clone()?));
    let pairs: Vec<(&Sample, PerturbedCopy)> =
        point.summary().samples.iter().zip(copies).filter_map(pair).collect();
    let row = |flow: &str, metric: &str, of: &dyn Fn(&Sample) -> Option<f64>| {
        let both: Vec<Pair> = pairs
            .iter()
            .filter_map(|(is, copy)| Some(Pair { was: of(is)?, copy: of(&copy.sample)?, moves: copy.moves }))
            .collect();
        let was: Vec<f64> = both.iter().map(|pair| pair.was).collect();
        let Estimate { mean: middle, ci95, n } = Estimate::of(&was)?;
        let shifts: Vec<f64> = both.iter().map(Pair::shift).collect();
        Some(PhaseSensitivityRow {
            point: point.label.clone(),
            flow: flow.to_owned(),
            metric: metric.to_owned(),
            seeds: n as u64,
            mean: round6(middle),
            half_width: ci95.map(round6),
            shift: round6(mean(&shifts)?),
            largest_shift: round6(largest_shift(&both)?),
            p: by_chance(&both),
            significant: false,
        })
    };
    let of_flow = |(at, info): (usize, &FlowInfo)| {
        row(&info.name, THROUGHPUT.name, &|sample| sample.flows.get(at).copied())
    };
    let flows = point.flows.iter().enumerate().filter_map(of_flow);
    let total = row("", TOTAL_THROUGHPUT.name, &|sample| Some(sample.total));
    flows.chain(total).chain(row("", JAIN.name, &|sample| sample.jain)).collect()
}

/// A number of a replication and of its perturbed copy.
#[derive(Clone, Copy, Debug)]
struct Pair {
    was: f64,
    copy: f64,
    moves: u64,
}

impl Pair {
    fn shift(&self) -> f64 {
        exact(self.copy - self.was)
    }
}

/// Removes rounding errors.
fn exact(x: f64) -> f64 {
    (x * 1e9).round() / 1e9
}

/// Pairs with the same moves, in the order of moves.
fn by_moves(pairs: &[Pair]) -> impl Iterator<Item = &[Pair]> {
    pairs.chunk_by(|a, b| a.moves == b.moves)
}

/// The mean shift of the perturbed copies with the moves for which it is largest.
fn largest_shift(pairs: &[Pair]) -> Option<f64> {
    let shift = |pairs: &[Pair]| mean(&pairs.iter().map(Pair::shift).collect::<Vec<_>>());
    by_moves(pairs).filter_map(shift).max_by(|a, b| a.abs().total_cmp(&b.abs()))
}

/// The probability that numbers differ this much between moves by chance: the analysis of variance of the
/// replications as one group, and of the perturbed copies with the same moves as one group each. `None` for a
/// single pair.
///
/// The mean of a group varies by the moves and by chance. Within a group only chance acts, because all its
/// members are one scenario with different seeds. If no seed changes the number within any group, a
/// difference between groups is certain.
///
/// R. A. Fisher, "Statistical Methods for Research Workers", 1925, chapter VII.
fn by_chance(pairs: &[Pair]) -> Option<f64> {
    let first = pairs.first().filter(|_| pairs.len() > 1)?.was;
    // Relative to one of them and without rounding, so that equal numbers have no variance.
    let group = |of: fn(&Pair) -> f64, pairs: &[Pair]| -> Vec<f64> {
        pairs.iter().map(|pair| exact(of(pair) - first)).collect()
    };
    let mut groups = vec![group(|pair| pair.was, pairs)];
    groups.extend(by_moves(pairs).map(|pairs| group(|pair| pair.copy, pairs)));
    let (count, samples) = (groups.len() as f64, 2.0 * pairs.len() as f64);
    let middle = mean(&groups.concat())?;
    let (mut between, mut within) = (0.0, 0.0);
    for group in &groups {
        let own = mean(group)?;
        between += group.len() as f64 * (own - middle).powi(2);
        within += group.iter().map(|x| (x - own).powi(2)).sum::<f64>();
    }
    if within == 0.0 {
        return Some(if groups.concat().iter().all(|x| *x == 0.0) { 1.0 } else { 0.0 });
    }
    let f = between / (count - 1.0) / (within / (samples - count));
    FisherSnedecor::new(count - 1.0, samples - count).ok().map(|law| law.sf(f))
}

/// Returns which tests are significant: the smallest p at `LEVEL` / m, the next at `LEVEL` / (m - 1), and so
/// on until one fails.
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

/// Sentences about the points that depend on phases, one each with the name of the point; one sentence if
/// none does; none without perturbed copies.
pub(crate) fn sentences(run: &RunResults) -> Vec<String> {
    let name = |point: &PointResults| match run.points.len() {
        1 => String::new(),
        _ => format!("{}: ", point.name()),
    };
    let of_point = |point: &PointResults| Some(format!("{}{}", name(point), of_point(point)?));
    let sensitive: Vec<String> = run.points.iter().filter_map(of_point).collect();
    if sensitive.is_empty() { calm(run).into_iter().collect() } else { sensitive }
}

/// The sentence about the flow of a point that moves most, if the point depends on phases.
fn of_point(point: &PointResults) -> Option<String> {
    let moved: Vec<&PhaseSensitivityRow> =
        point.phase_sensitivity.iter().filter(|row| row.significant).collect();
    let flows = moved.iter().filter(|row| !row.flow.is_empty()).count();
    let row = most(&moved)?;
    let others = match flows {
        2.. => format!(", of {flows} flows the most"),
        _ => String::new(),
    };
    Some(format!("Depends on phases: delays moved by 1 µs move {}{others}.", moves(row)))
}

/// The sentence if no point depends on phases.
fn calm(run: &RunResults) -> Option<String> {
    let rows: Vec<&PhaseSensitivityRow> =
        run.points.iter().flat_map(|point| &point.phase_sensitivity).collect();
    let seeds = rows.iter().map(|row| row.seeds).min()?;
    Some(match seeds {
        1 => format!(
            "Phases: delays moved by 1 µs move {}. Several seeds would show whether that is chance.",
            moves(most(&rows)?)
        ),
        _ => format!(
            "Phases: {} differences looked at with delays moved by 1 µs, none beyond chance ({seeds} seeds). A dependence that few moves \
             show may be missed.",
            rows.len()
        ),
    })
}

/// The row that moves most; a flow's row if there is one.
fn most<'a>(rows: &[&'a PhaseSensitivityRow]) -> Option<&'a PhaseSensitivityRow> {
    let rank =
        |row: &PhaseSensitivityRow| (!row.flow.is_empty(), row.metric != JAIN.name, row.largest_shift.abs());
    rows.iter().copied().max_by(|a, b| {
        let (a, b) = (rank(a), rank(b));
        (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2))
    })
}

/// The text of a row, for example `tcp.3 by +0.810 Mb/s, from 1.50 ± 0.08 Mb/s`.
fn moves(row: &PhaseSensitivityRow) -> String {
    let (what, unit) = what(row);
    format!("{what} by {}{unit}, from {}{unit}", signed(row.largest_shift), value(row))
}

/// The subject of a row, and its unit after a space.
fn what(row: &PhaseSensitivityRow) -> (&str, &'static str) {
    match (row.flow.as_str(), row.metric.as_str()) {
        ("", name) if name == JAIN.name => ("Jain's index", ""),
        ("", _) => ("the total", " Mb/s"),
        (flow, _) => (flow, " Mb/s"),
    }
}

fn signed(shift: f64) -> String {
    format!("{}{}", if shift < 0.0 { "-" } else { "+" }, number(shift.abs()))
}

fn value(row: &PhaseSensitivityRow) -> String {
    Estimate { mean: row.mean, ci95: row.half_width, n: row.seeds as usize }.to_string()
}

/// The cells of a row in the report: subject, value, mean and largest shift, and p.
pub(crate) fn cells(row: &PhaseSensitivityRow) -> Vec<String> {
    let (what, unit) = what(row);
    let p =
        row.p.map_or_else(|| "–".to_owned(), |p| if p < 1e-4 { "< 0.0001".to_owned() } else { number(p) });
    vec![what.to_owned(), format!("{}{unit}", value(row)), signed(row.shift), signed(row.largest_shift), p]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(numbers: &[(f64, f64)]) -> Vec<Pair> {
        let pair = |(k, &(was, copy)): (usize, &(f64, f64))| Pair { was, copy, moves: k as u64 / 2 };
        numbers.iter().enumerate().map(pair).collect()
    }

    #[test]
    fn moves_that_agree_with_each_other_and_not_with_the_rest_are_found() {
        // Groups 1 2 3 4, 2 4 and 7 9: means 2.5, 3, 8 of 4; between 4 · 1.5² + 2 · 1² + 2 · 4² = 43 with 2 degrees of freedom, within
        // 5 + 2 + 2 = 9 with 5: F = 21.5 / 1.8 = 11.94. With 2 degrees of freedom above, p = (1 + 2 F / 5)^(-5 / 2) = 0.01246.
        let all = pairs(&[(1.0, 2.0), (2.0, 4.0), (3.0, 7.0), (4.0, 9.0)]);
        let p = by_chance(&all).unwrap();
        assert!((p - (1.0 + 43.0 / 9.0_f64).powf(-2.5)).abs() < 1e-9 && (p - 0.01246).abs() < 1e-5, "{p}");
        assert_eq!(largest_shift(&all), Some(4.5));
        // In another order the same perturbed copies do not agree with those of their moves: chance.
        let mixed = by_chance(&pairs(&[(1.0, 2.0), (2.0, 9.0), (3.0, 7.0), (4.0, 4.0)])).unwrap();
        assert!(mixed > 0.2, "{mixed}");
        assert_eq!((by_chance(&pairs(&[(0.7, 0.9)])), largest_shift(&[])), (None, None));
    }

    #[test]
    fn a_difference_is_certain_where_no_seed_changes_anything() {
        assert_eq!(by_chance(&pairs(&[(0.3, 0.3); 7])), Some(1.0));
        assert_eq!(by_chance(&pairs(&[(0.3, 0.1); 2])), Some(0.0));
        // The second moves change the number, the first do not.
        assert_eq!(by_chance(&pairs(&[(0.3, 0.3), (0.3, 0.3), (0.3, 0.4), (0.3, 0.4)])), Some(0.0));
        // A seed changes the number.
        assert!(by_chance(&pairs(&[(0.3, 0.3), (0.3, 0.3), (0.3, 0.4), (0.3, 0.3)])).unwrap() > 0.1);
    }

    #[test]
    fn the_smallest_p_meets_the_hardest_bound() {
        // The bounds are 0.0125, 0.0167, 0.025, 0.05.
        assert_eq!(holm(&[Some(0.01), Some(0.9), Some(0.016), Some(0.03)]), [true, false, true, false]);
        // A row without a test does not count: 0.0167, 0.025, 0.05.
        assert_eq!(holm(&[Some(0.03), Some(0.016), None, Some(0.02)]), [true, true, false, true]);
        // The second is above 0.05 / 2, so the third does not matter.
        assert_eq!(holm(&[Some(0.04), Some(0.001), Some(0.04)]), [false, true, false]);
        assert_eq!(holm(&[None, None]), [false, false]);
    }
}
