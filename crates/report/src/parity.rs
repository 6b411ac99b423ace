//! Parity: the results of one scenario in the simulator and in the lab, and whether they agree within tolerances.
//!
//! [`Tolerances`] has the tolerances; `docs/parity.md` gives the reason for each. Random variation between
//! runs is added to a tolerance as long as it does not exceed it: values that agree differ by less than twice
//! the tolerance, whatever their variance.

use std::fmt;

use apportion_runtime::outcome::{FlowOutcome, Outcome};
pub use apportion_runtime::tolerances::{TOLERANCES, Tolerances};
use serde::Serialize;

use crate::run_results::{PointResults, RunResults};
use crate::statistics::{mean, number};
use crate::summary::align;

/// Differences up to this many standard deviations between runs of the simulator count as random: one in
/// twenty is larger.
const SIGMAS: f64 = 2.0;

/// Least number of a flow's packets for comparing delays. With fewer, the 95th percentile is the slowest
/// packet.
const DELAYED: u64 = 20;

/// Not comparable: one of the numbers is of too few packets.
const FEW_PACKETS: &str = "few packets";
/// Not comparable: runs of the simulator vary by more than the tolerance.
const SCATTER: &str = "scatter";

/// The verdict on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", content = "why", rename_all = "snake_case")]
pub enum Agreement {
    /// The difference is within the tolerance.
    Within,
    /// The difference exceeds the tolerance.
    Beyond,
    /// They cannot be compared, for this reason.
    NotComparable(&'static str),
}

/// One metric in the simulator and in the lab.
#[derive(Clone, Debug, Serialize)]
pub struct ParityRow {
    /// The point of the sweep; empty without one.
    pub point: String,
    /// The flow.
    pub flow: String,
    /// The metric, with its unit.
    pub metric: &'static str,
    /// Value in the simulator; `None` if there are too few packets.
    pub sim: Option<f64>,
    /// Value in the lab; `None` if there are too few packets.
    pub lab: Option<f64>,
    /// The lab's value minus the simulator's.
    pub difference: Option<f64>,
    /// The tolerance, in either direction.
    pub allowed: Option<f64>,
    /// Random variation between runs, which is added to the tolerance.
    pub chance: Option<f64>,
    /// The verdict.
    #[serde(flatten)]
    pub verdict: Agreement,
}

/// The comparison of simulator and lab.
#[derive(Clone, Debug)]
pub struct Parity {
    /// The rows by point, flow and metric.
    pub rows: Vec<ParityRow>,
    /// Reasons why points cannot be compared.
    pub faults: Vec<String>,
    /// Reasons why runs of the lab are not valid.
    pub invalid: Vec<String>,
}

impl Parity {
    /// Compares the runs of one scenario in the simulator and in the lab.
    #[must_use]
    pub fn new(sim: &RunResults, lab: &RunResults, tolerances: Tolerances) -> Self {
        let (mut rows, mut faults) = (Vec::new(), Vec::new());
        for at in 0..sim.points.len().max(lab.points.len()) {
            match (sim.points.get(at), lab.points.get(at)) {
                (Some(sim), Some(lab)) if are_alike(sim, lab) => rows.extend(compare(sim, lab, tolerances)),
                (sim, lab) => faults.extend(sim.or(lab).map(|point| {
                    format!("{}: run it in the simulator and in the lab with the same flows", point.name())
                })),
            }
        }
        Self { rows, faults, invalid: lab.faults() }
    }

    /// Whether all runs are valid and [agree](Self::agrees).
    #[must_use]
    pub fn holds(&self) -> bool {
        self.invalid.is_empty() && self.agrees()
    }

    /// Whether no difference exceeds its tolerance, and each point has at least one within it: a point
    /// without comparable numbers does not pass. Invalid runs count as well.
    #[must_use]
    pub fn agrees(&self) -> bool {
        let of_point =
            |point: &str, is: Agreement| self.rows.iter().any(|row| row.point == point && row.verdict == is);
        let is_shown = self.rows.iter().all(|row| of_point(&row.point, Agreement::Within));
        self.faults.is_empty() && is_shown && self.count(|verdict| verdict == Agreement::Beyond) == 0
    }

    fn count(&self, is: impl Fn(Agreement) -> bool) -> usize {
        self.rows.iter().filter(|row| is(row.verdict)).count()
    }
}

/// Whether the two are the same point, run in the simulator and in the lab.
fn are_alike(sim: &PointResults, lab: &PointResults) -> bool {
    let flows = |point: &PointResults| point.flows.iter().map(|flow| flow.name.clone()).collect::<Vec<_>>();
    let were_run = !sim.outcomes.is_empty() && !lab.outcomes.is_empty();
    were_run && sim.label == lab.label && flows(sim) == flows(lab)
}

/// The compared metrics, in the order of the rows of a flow.
const METRICS: [&str; 5] =
    ["throughput, Mb/s", "share, %", "delay median, ms", "delay p95, ms", "dropped, %"];

/// The metrics of one flow in one run; `None` where there are too few packets.
fn measured(outcome: &Outcome, flow: usize, tolerances: Tolerances) -> [Option<f64>; METRICS.len()] {
    let seconds = outcome.measured.as_secs_f64().max(f64::MIN_POSITIVE);
    let throughput = |flow: &FlowOutcome| flow.delivered.bytes.bits() as f64 / seconds / 1e6;
    let all: f64 = outcome.flows.iter().map(throughput).sum();
    let flow = &outcome.flows[flow];
    let delay = |share| {
        let span = flow.delay.quantile(share).filter(|_| flow.delay.count >= DELAYED)?;
        Some(span.as_secs_f64() * 1e3)
    };
    let dropped = flow.dropped.values().sum::<u64>() as f64;
    // Percentage points per packet: a single packet must not decide.
    let point = 100.0 / flow.sent.packets.get() as f64;
    [
        Some(throughput(flow)),
        (all > 0.0).then(|| 100.0 * throughput(flow) / all),
        delay(0.5),
        delay(0.95),
        (point <= tolerances.drops).then_some(dropped * point),
    ]
}

/// A metric over the runs of the simulator or of the lab.
#[derive(Clone, Copy, Debug)]
struct OverRuns {
    mean: f64,
    /// The standard deviation from run to run; zero for one run.
    deviation: f64,
}

/// The metrics of a flow over all runs; `None` where one run has none, because the others would be a biased
/// sample.
fn over_runs(point: &PointResults, flow: usize, tolerances: Tolerances) -> [Option<OverRuns>; METRICS.len()] {
    let runs: Vec<_> = point.outcomes.iter().map(|outcome| measured(outcome, flow, tolerances)).collect();
    std::array::from_fn(|metric| {
        let values: Vec<f64> = runs.iter().map(|run| run[metric]).collect::<Option<_>>()?;
        let mean = mean(&values)?;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let freedom = (values.len() - 1).max(1) as f64;
        Some(OverRuns { mean, deviation: (squares / freedom).sqrt() })
    })
}

/// The rows of a point.
fn compare(sim: &PointResults, lab: &PointResults, tolerances: Tolerances) -> Vec<ParityRow> {
    let count = sim.flows.len().max(1) as f64;
    let of_flow = |flow| (over_runs(sim, flow, tolerances), over_runs(lab, flow, tolerances));
    let all: Vec<_> = (0..sim.flows.len()).map(of_flow).collect();
    // The throughput of each flow if all had the same.
    let even = all.iter().filter_map(|(sim, _)| Some(sim[0]?.mean)).sum::<f64>() / count;
    let runs = |point: &PointResults| point.outcomes.len().max(1) as f64;
    // The random difference of two means, for a standard deviation of 1.
    let by_chance = (1.0 / runs(sim) + 1.0 / runs(lab)).sqrt();
    let mut rows = Vec::new();
    for (flow, (in_sim, in_lab)) in sim.flows.iter().zip(&all) {
        for (at, metric) in METRICS.into_iter().enumerate() {
            let (in_sim, in_lab) = (in_sim[at], in_lab[at]);
            let allowed = in_sim.map(|sim| match at {
                0 => tolerances.throughput * even,
                1 => tolerances.throughput * 100.0 / count,
                2 | 3 => (tolerances.delay * sim.mean).max(tolerances.delay_ms),
                _ => tolerances.drops,
            });
            let chance = in_sim.map(|sim| SIGMAS * sim.deviation * by_chance);
            let difference = in_sim.zip(in_lab).map(|(sim, lab)| lab.mean - sim.mean);
            rows.push(ParityRow {
                point: sim.label.clone(),
                flow: flow.name.clone(),
                metric,
                sim: in_sim.map(|sim| sim.mean),
                lab: in_lab.map(|lab| lab.mean),
                difference,
                allowed,
                chance,
                verdict: verdict(difference, allowed, chance),
            });
        }
    }
    rows
}

/// The verdict. Where random variation may exceed the tolerance, a small difference does not show parity, but
/// a large one disproves it.
fn verdict(difference: Option<f64>, allowed: Option<f64>, chance: Option<f64>) -> Agreement {
    let (Some(difference), Some(allowed), Some(chance)) = (difference, allowed, chance) else {
        return Agreement::NotComparable(FEW_PACKETS);
    };
    if difference.abs() > allowed + chance {
        Agreement::Beyond
    } else if chance > allowed {
        Agreement::NotComparable(SCATTER)
    } else {
        Agreement::Within
    }
}

impl fmt::Display for Parity {
    /// Writes a table with a line for each number, in which those outside their tolerance are marked, then
    /// the counts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["point", "flow", "measured", "sim", "lab", "difference", "allowed", "chance", ""];
        let mut table = vec![head.map(str::to_owned).to_vec()];
        let shown = |x: Option<f64>| x.map_or_else(|| "-".to_owned(), number);
        let signed = |x: f64| format!("{}{}", if x < 0.0 { "-" } else { "+" }, number(x.abs()));
        for row in &self.rows {
            table.push(vec![
                row.point.clone(),
                row.flow.clone(),
                row.metric.to_owned(),
                shown(row.sim),
                shown(row.lab),
                row.difference.map_or_else(|| "-".to_owned(), signed),
                shown(row.allowed),
                shown(row.chance),
                match row.verdict {
                    Agreement::Within => String::new(),
                    Agreement::Beyond => "BEYOND".to_owned(),
                    Agreement::NotComparable(why) => format!("not comparable: {why}"),
                },
            ]);
        }
        write!(f, "{}", align(&table))?;
        for fault in self.faults.iter().chain(&self.invalid) {
            writeln!(f, "NOT VALID: {fault}")?;
        }
        let [within, beyond] = [Agreement::Within, Agreement::Beyond].map(|of| self.count(|is| is == of));
        let rest = self.rows.len() - within - beyond;
        writeln!(
            f,
            "{} differences: {within} within tolerance, {beyond} beyond it, {rest} not comparable",
            self.rows.len()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::slice::from_ref;

    use apportion_core::queue::DropReason;
    use apportion_core::units::{Bytes, Packets, Span, Time};
    use apportion_runtime::outcome::{Distribution, Timekeeping};

    use super::*;
    use crate::replication::FlowInfo;

    /// A flow of `mbit` over 8 s, with 1000 packets of 40 ms and no drops.
    fn flow(mbit: f64) -> FlowOutcome {
        let mut flow = FlowOutcome { delay: delays(1_000, 40.0, 40.0), ..FlowOutcome::default() };
        flow.delivered.bytes = Bytes::new((mbit * 1e6) as u64);
        flow.sent.packets = Packets::new(1_000);
        flow
    }

    /// Delays of `count` packets, with median and 95th percentile in milliseconds.
    fn delays(count: u64, median: f64, p95: f64) -> Distribution {
        let span = |ms: f64| Span::from_nanos((ms * 1e6).round() as u64);
        let quantiles = vec![(0.5, span(median)), (0.95, span(p95)), (0.99, span(p95))];
        Distribution { count, mean: span(median), quantiles }
    }

    fn delayed(count: u64, median: f64, p95: f64) -> FlowOutcome {
        FlowOutcome { delay: delays(count, median, p95), ..flow(5.0) }
    }

    fn dropped(dropped: u64, sent: u64) -> FlowOutcome {
        let mut flow = flow(5.0);
        flow.sent.packets = Packets::new(sent);
        flow.dropped.insert(DropReason::Overflow, dropped);
        flow
    }

    /// A point with the flows of each run.
    fn point(label: &str, runs: &[&[FlowOutcome]]) -> PointResults {
        let outcome = |flows: &&[FlowOutcome]| Outcome {
            seed: 1,
            measured: Span::from_secs(8),
            flows: flows.to_vec(),
            links: Vec::new(),
            packet_hops: 0,
            events: 0,
            timekeeping: None,
        };
        let info =
            |at| FlowInfo { name: format!("f{at}"), group: "f".into(), customer: None, entitlement: None };
        let flows = (0..runs.first().map_or(1, |flows| flows.len())).map(info).collect();
        let mut point = PointResults::new(label.to_owned(), Vec::new(), Time::ZERO, Span::ZERO, flows);
        point.outcomes = runs.iter().map(outcome).collect();
        point
    }

    fn run(points: Vec<PointResults>) -> RunResults {
        RunResults {
            title: String::new(),
            scenario: String::new(),
            hash: String::new(),
            versions: BTreeMap::new(),
            seeds: vec![1],
            complete: true,
            warnings: Vec::new(),
            points,
        }
    }

    fn parity(sim: Vec<PointResults>, lab: Vec<PointResults>) -> Parity {
        Parity::new(&run(sim), &run(lab), TOLERANCES)
    }

    /// Compares flows in one run of the laboratory with those in runs of the simulator, without a sweep.
    fn one_point(sim: &[&[FlowOutcome]], lab: &[FlowOutcome]) -> Parity {
        parity(vec![point("", sim)], vec![point("", &[lab])])
    }

    /// The verdict on one metric of the first flow.
    fn said(parity: &Parity, metric: &str) -> Agreement {
        parity.rows.iter().find(|row| row.metric == metric).unwrap().verdict
    }

    fn close(a: Option<f64>, b: f64) -> bool {
        a.is_some_and(|a| (a - b).abs() < 1e-9)
    }

    #[test]
    fn a_difference_is_relative_to_the_mean_of_the_flows() {
        // 5 Mb/s each on average; 15 % of that is 0.75: 1.7 for 1 is within, 1.8 is not.
        let parity = |lab: f64| one_point(&[&[flow(1.0), flow(9.0)]], &[flow(lab), flow(9.0)]);
        assert!(parity(1.0).holds() && parity(1.7).holds() && parity(0.3).holds());
        assert!(!parity(1.8).holds() && !parity(0.2).holds());
        let row = &parity(2.0).rows[0];
        assert_eq!((row.metric, row.verdict), ("throughput, Mb/s", Agreement::Beyond));
        assert!(close(row.difference, 1.0) && close(row.allowed, 0.75) && close(row.chance, 0.0), "{row:?}");
        // 2 of 11 for 1 of 10 are 8.2 points more, and 15 % of a half are 7.5; 1.8 of 10.8 are 6.7 more.
        assert_eq!(said(&parity(2.0), "share, %"), Agreement::Beyond);
        let row = &parity(1.8).rows[1];
        assert_eq!((row.metric, row.verdict), ("share, %", Agreement::Within));
        assert!(close(row.allowed, 7.5), "{row:?}");
    }

    #[test]
    fn delays_may_differ_by_a_quarter_or_three_milliseconds() {
        let parity = |sim, lab| one_point(&[&[sim]], &[lab]);
        let median = |sim, lab| said(&parity(delayed(20, sim, 90.0), delayed(20, lab, 90.0)), METRICS[2]);
        // A quarter of 40 ms is 10.
        assert_eq!(median(40.0, 50.0), Agreement::Within);
        assert_eq!(median(40.0, 50.1), Agreement::Beyond);
        assert_eq!(median(40.0, 29.9), Agreement::Beyond);
        // A quarter of 4 ms is 1, and 3 is more.
        assert_eq!(median(4.0, 7.0), Agreement::Within);
        assert_eq!(median(4.0, 7.1), Agreement::Beyond);
        // The 95th percentile separately: a quarter of 90 ms is 22.5.
        let p95 = |lab| parity(delayed(20, 40.0, 90.0), delayed(20, 40.0, lab));
        assert!(p95(112.5).holds());
        let beyond = p95(112.6);
        assert_eq!(said(&beyond, METRICS[3]), Agreement::Beyond);
        assert!(!beyond.holds() && said(&beyond, METRICS[2]) == Agreement::Within);
    }

    #[test]
    fn drops_may_differ_by_three_points() {
        // 5 % in the simulator: 8 % is within, 8.1 % is not.
        let parity = |lab| one_point(&[&[dropped(50, 1_000)]], &[dropped(lab, 1_000)]);
        assert!(parity(80).holds() && parity(20).holds());
        assert_eq!(said(&parity(81), METRICS[4]), Agreement::Beyond);
        assert_eq!(said(&parity(19), METRICS[4]), Agreement::Beyond);
    }

    #[test]
    fn chance_is_added_to_the_tolerance_and_shown_separately() {
        // Two runs of 4.9 and 5.1: a deviation of sqrt(0.02) = 0.1414. The difference between a mean of two
        // runs and one run has sqrt(1/2 + 1) times that; twice this is random: 0.3464. With 15 % of 5, 1.096
        // is allowed.
        let parity = |lab| one_point(&[&[flow(4.9)], &[flow(5.1)]], &[flow(lab)]);
        let row = &parity(6.09).rows[0];
        assert!(close(row.allowed, 0.75) && close(row.chance, 0.12_f64.sqrt()), "{row:?}");
        assert_eq!(row.verdict, Agreement::Within);
        assert_eq!(said(&parity(6.1), METRICS[0]), Agreement::Beyond);
        let text = parity(6.09).to_string();
        let cells = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut lines = text.lines().map(cells);
        let head = lines.next().unwrap();
        assert_eq!(head[head.len() - 3..], ["difference", "allowed", "chance"]);
        assert_eq!(
            lines.next().unwrap()[1..],
            ["throughput,", "Mb/s", "5.00", "6.09", "+1.09", "0.750", "0.346"]
        );
    }

    #[test]
    fn what_scatters_more_than_it_may_differ_proves_nothing() {
        // 4 and 6 Mb/s deviate by sqrt(2): random variation is 2 · sqrt(2) · sqrt(3/2) = 3.46, more than
        // 0.75.
        let parity = |lab| one_point(&[&[flow(4.0)], &[flow(6.0)]], &[flow(lab)]);
        for lab in [5.0, 9.0, 1.0] {
            assert_eq!(said(&parity(lab), METRICS[0]), Agreement::NotComparable("scatter"), "{lab}");
            assert!(parity(lab).holds(), "no reason to fail either");
        }
        // A difference of 4.21 is more than both together.
        assert_eq!(said(&parity(9.3), METRICS[0]), Agreement::Beyond);
        assert!(!parity(9.3).holds());
    }

    #[test]
    fn delays_of_few_packets_are_no_measurement() {
        let enough = delayed(20, 13.0, 13.0);
        // One packet of 135 ms against 13 ms, as behind a full queue.
        let few = delayed(19, 135.0, 135.0);
        let delay = |parity: &Parity| [METRICS[2], METRICS[3]].map(|metric| said(parity, metric));
        assert_eq!(
            delay(&one_point(&[from_ref(&enough)], &[delayed(20, 135.0, 135.0)])),
            [Agreement::Beyond; 2]
        );
        for (sim, lab) in [(&enough, &few), (&few, &enough)] {
            let parity = one_point(&[from_ref(sim)], from_ref(lab));
            assert_eq!(delay(&parity), [Agreement::NotComparable("few packets"); 2]);
            assert!(parity.holds());
            // Throughput is still compared.
            assert_eq!(said(&parity, METRICS[0]), Agreement::Within);
        }
        // One run of several is enough: a mean without it would be biased.
        let parity = one_point(&[from_ref(&enough), &[few]], from_ref(&enough));
        assert_eq!((parity.rows[2].sim, parity.rows[2].difference), (None, None));
        assert_eq!(parity.rows[2].lab, Some(13.0));
    }

    #[test]
    fn a_share_of_drops_is_measured_where_a_packet_is_worth_less_than_the_tolerance() {
        // One of 34 packets is 2.94 points, one of 33 is 3.03.
        let parity = |sent| one_point(&[&[dropped(0, sent)]], &[dropped(sent / 2, sent)]);
        assert_eq!(said(&parity(34), METRICS[4]), Agreement::Beyond);
        assert_eq!(said(&parity(33), METRICS[4]), Agreement::NotComparable("few packets"));
        assert_eq!(said(&parity(0), METRICS[4]), Agreement::NotComparable("few packets"));
        let neither = one_point(&[&[flow(0.0)]], &[flow(0.0)]);
        assert_eq!(said(&neither, METRICS[1]), Agreement::NotComparable("few packets"), "a share of nothing");
    }

    #[test]
    fn runs_that_were_late_do_not_count() {
        let parity = |late: f64| {
            let mut lab = point("queue=drr", &[&[flow(5.0)], &[flow(5.0)]]);
            let limit = Span::from_millis(2);
            let lateness = delays(1_000, 0.1, late);
            lab.outcomes[1].timekeeping = Some(Timekeeping { lateness, limit, ..Timekeeping::default() });
            parity(vec![point("queue=drr", &[&[flow(5.0)]])], vec![lab])
        };
        assert!(parity(2.0).holds());
        let late = parity(2.1);
        assert!(!late.holds());
        assert!(late.agrees() && late.faults.is_empty());
        assert_eq!(late.invalid.len(), 1);
        assert!(
            late.invalid[0].starts_with("queue=drr, seed 1: 1 % of packets left 2.10 ms late"),
            "{:?}",
            late.invalid
        );
        assert!(late.to_string().contains("\nNOT VALID: queue=drr, seed 1: "), "{late}");
    }

    #[test]
    fn every_point_is_compared_with_its_own() {
        let points = |second| vec![point("a", &[&[flow(5.0)]]), point("b", &[&[flow(second)]])];
        let parity = |sim, lab| parity(points(sim), points(lab));
        assert!(parity(9.0, 9.0).holds());
        let beyond = parity(9.0, 5.0);
        let found: Vec<_> = beyond.rows.iter().filter(|row| row.verdict == Agreement::Beyond).collect();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].point.as_str(), found[0].metric), ("b", METRICS[0]));
    }

    #[test]
    fn a_point_that_one_backend_lacks_is_a_fault() {
        let both = || vec![point("a", &[&[flow(5.0)]]), point("b", &[&[flow(5.0)]])];
        let one = || both().into_iter().take(1).collect::<Vec<_>>();
        let not_run = || vec![point("a", &[&[flow(5.0)]]), point("b", &[])];
        let other_flows = || vec![point("a", &[&[flow(5.0)]]), point("b", &[&[flow(5.0), flow(5.0)]])];
        let other_point = || vec![point("a", &[&[flow(5.0)]]), point("c", &[&[flow(5.0)]])];
        assert!(parity(both(), both()).holds());
        for (sim, lab) in [
            (both(), one()),
            (one(), both()),
            (both(), not_run()),
            (not_run(), both()),
            (both(), other_flows()),
            (other_flows(), both()),
            (both(), other_point()),
        ] {
            let parity = parity(sim, lab);
            assert!(!parity.holds());
            assert_eq!(parity.faults, ["b: run it in the simulator and in the lab with the same flows"]);
            assert_eq!(parity.rows.len(), METRICS.len(), "of the first point");
        }
    }

    #[test]
    fn the_last_line_counts_all_verdicts_and_rows_carry_theirs() {
        // Throughput and share of both are within, the first flow has few delays, and its drops are beyond.
        let lab = [FlowOutcome { delay: delays(3, 1.0, 1.0), ..dropped(100, 1_000) }, flow(5.0)];
        let parity = one_point(&[&[flow(5.0), flow(5.0)]], &lab);
        let text = parity.to_string();
        let last = text.lines().last().unwrap();
        assert_eq!(last, "10 differences: 7 within tolerance, 1 beyond it, 2 not comparable");
        let marked = |mark: &str| text.lines().filter(|line| line.ends_with(mark)).count();
        assert_eq!((marked("BEYOND"), marked("not comparable: few packets")), (1, 2), "{text}");
        let row = |at: usize| serde_json::to_value(&parity.rows[at]).unwrap();
        assert_eq!((&row(0)["verdict"], row(0).get("why")), (&"within".into(), None));
        assert_eq!((&row(0)["allowed"], &row(0)["chance"]), (&0.75.into(), &0.0.into()));
        assert_eq!((&row(2)["verdict"], &row(2)["why"]), (&"not_comparable".into(), &"few packets".into()));
        assert!(row(2)["lab"].is_null() && row(2)["difference"].is_null());
        assert_eq!(row(4)["verdict"], "beyond");
    }
}
