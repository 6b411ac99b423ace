//! The same scenario in two worlds, side by side: what flows got in the simulator and in the laboratory, and
//! whether they differ by no more than they may.
//!
//! What they may differ by is a [`Budget`]; `docs/parity.md` gives the reasons for each of its numbers.

use std::fmt;

use apportion_scenario::outcome::{FlowOutcome, Outcome};
use serde::Serialize;

use crate::record::{PointRecord, Run};
use crate::statistics::number;
use crate::summary::align;

/// What two worlds may differ by.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Of a flow's throughput, in what the link could carry divided by the number of flows.
    pub throughput: f64,
    /// Of the median and the 95th percentile of one-way delay, of the simulator's.
    pub delay: f64,
    /// Of the same, in milliseconds, where that is more.
    pub delay_ms: f64,
    /// Of the share of packets dropped, in points of 100.
    pub drops: f64,
}

/// What `docs/parity.md` gives the reasons for.
pub const BUDGET: Budget = Budget { throughput: 0.15, delay: 0.25, delay_ms: 3.0, drops: 3.0 };

/// Of what one run of the simulator differs from another by, in standard deviations, is added to a budget:
/// one of twenty is beyond by chance.
const SIGMAS: f64 = 2.0;

/// One number in both worlds.
#[derive(Clone, Debug, Serialize)]
pub struct ParityRow {
    /// The point of the sweep; empty without one.
    pub point: String,
    /// The flow.
    pub flow: String,
    /// What was measured, with its unit.
    pub metric: &'static str,
    /// In the simulator.
    pub sim: f64,
    /// In the laboratory.
    pub lab: f64,
    /// The second less the first.
    pub difference: f64,
    /// What that may be, either way, chance included.
    pub budget: f64,
    /// Whether it is no more.
    pub within: bool,
}

/// Both worlds side by side.
#[derive(Clone, Debug)]
pub struct Parity {
    /// By point, flow and metric.
    pub rows: Vec<ParityRow>,
    /// Why runs in real time do not count, if some do not.
    pub faults: Vec<String>,
}

impl Parity {
    /// Of the runs of one scenario in the simulator and in the laboratory.
    #[must_use]
    pub fn new(sim: &Run, lab: &Run, budget: Budget) -> Self {
        let points = sim.points.iter().zip(&lab.points);
        let rows = points.flat_map(|(sim, lab)| rows(sim, lab, budget)).collect();
        let faults = lab.points.iter().flat_map(|point| {
            let fault = |outcome: &Outcome| outcome.timekeeping.as_ref()?.fault();
            point.outcomes.iter().filter_map(fault).map(|fault| format!("{}: {fault}", point.name()))
        });
        Self { rows, faults: faults.collect() }
    }

    /// Whether every difference is within its budget, in runs that count.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.faults.is_empty() && self.rows.iter().all(|row| row.within)
    }
}

/// What is compared, in the order of the rows of a flow.
const METRICS: [&str; 5] =
    ["throughput, Mb/s", "share, %", "delay median, ms", "delay p95, ms", "dropped, %"];

/// The metrics of one flow in one run.
fn measured(outcome: &Outcome, flow: usize) -> [f64; METRICS.len()] {
    let seconds = outcome.measured.as_secs_f64().max(f64::MIN_POSITIVE);
    let throughput = |flow: &FlowOutcome| flow.delivered.bytes.bits() as f64 / seconds / 1e6;
    let all: f64 = outcome.flows.iter().map(throughput).sum();
    let flow = &outcome.flows[flow];
    let delay = |share| flow.delay.quantile(share).map_or(0.0, |span| span.as_secs_f64() * 1e3);
    let dropped = flow.dropped.values().sum::<u64>() as f64;
    [
        throughput(flow),
        100.0 * throughput(flow) / all.max(f64::MIN_POSITIVE),
        delay(0.5),
        delay(0.95),
        100.0 * dropped / flow.sent.packets.get().max(1) as f64,
    ]
}

/// The mean over runs of each metric of a flow, and its standard deviation from run to run; zero for one run.
fn over_runs(point: &PointRecord, flow: usize) -> [(f64, f64); METRICS.len()] {
    let runs: Vec<_> = point.outcomes.iter().map(|outcome| measured(outcome, flow)).collect();
    std::array::from_fn(|metric| {
        let values = || runs.iter().map(|run| run[metric]);
        let mean = values().sum::<f64>() / runs.len().max(1) as f64;
        let squares: f64 = values().map(|value| (value - mean).powi(2)).sum();
        (mean, if runs.len() > 1 { (squares / (runs.len() - 1) as f64).sqrt() } else { 0.0 })
    })
}

fn rows(sim: &PointRecord, lab: &PointRecord, budget: Budget) -> Vec<ParityRow> {
    let count = sim.flows.len().max(1) as f64;
    let all: Vec<_> = (0..sim.flows.len()).map(|flow| (over_runs(sim, flow), over_runs(lab, flow))).collect();
    // What flows would have each if they had the same.
    let even = all.iter().map(|(sim, _)| sim[0].0).sum::<f64>() / count;
    let runs = |point: &PointRecord| point.outcomes.len().max(1) as f64;
    // How much two means differ by chance, for a standard deviation of 1.
    let by_chance = (1.0 / runs(sim) + 1.0 / runs(lab)).sqrt();
    let mut rows = Vec::new();
    for (flow, (in_sim, in_lab)) in sim.flows.iter().zip(&all) {
        for (at, metric) in METRICS.into_iter().enumerate() {
            let ((sim_mean, deviation), (lab_mean, _)) = (in_sim[at], in_lab[at]);
            let allowed = match at {
                0 => budget.throughput * even,
                1 => budget.throughput * 100.0 / count,
                2 | 3 => (budget.delay * sim_mean).max(budget.delay_ms),
                _ => budget.drops,
            };
            let budget = allowed + SIGMAS * deviation * by_chance;
            let difference = lab_mean - sim_mean;
            rows.push(ParityRow {
                point: sim.label.clone(),
                flow: flow.name.clone(),
                metric,
                sim: sim_mean,
                lab: lab_mean,
                difference,
                budget,
                within: difference.abs() <= budget,
            });
        }
    }
    rows
}

impl fmt::Display for Parity {
    /// One table: a line a number, what is beyond its budget marked.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["point", "flow", "measured", "sim", "lab", "difference", "budget", ""];
        let mut table = vec![head.map(str::to_owned).to_vec()];
        for row in &self.rows {
            let mark = if row.within { "" } else { "BEYOND" };
            table.push(vec![
                row.point.clone(),
                row.flow.clone(),
                row.metric.to_owned(),
                number(row.sim),
                number(row.lab),
                format!("{}{}", if row.difference < 0.0 { "-" } else { "+" }, number(row.difference.abs())),
                number(row.budget),
                mark.to_owned(),
            ]);
        }
        write!(f, "{}", align(&table))?;
        for fault in &self.faults {
            writeln!(f, "NOT VALID: {fault}")?;
        }
        let beyond = self.rows.iter().filter(|row| !row.within).count();
        writeln!(f, "{} of {} differences are within their budget", self.rows.len() - beyond, self.rows.len())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use apportion_core::units::{Bytes, Span, Time};

    use super::*;
    use crate::record::FlowInfo;

    /// Two flows of `mbit` each over 8 s.
    fn run(mbit: [u64; 2]) -> Run {
        let flow = |mbit: u64| {
            let mut flow = FlowOutcome { name: "f".into(), ..FlowOutcome::default() };
            flow.delivered.bytes = Bytes::new(mbit * 1_000_000);
            flow
        };
        let outcome = Outcome {
            seed: 1,
            measured: Span::from_secs(8),
            flows: mbit.map(flow).to_vec(),
            links: Vec::new(),
            packet_hops: 0,
            events: 0,
            timekeeping: None,
        };
        let info = FlowInfo { name: "f".into(), group: "f".into(), entitlement: None };
        Run {
            title: String::new(),
            scenario: String::new(),
            hash: String::new(),
            versions: BTreeMap::new(),
            seeds: vec![1],
            complete: true,
            points: vec![PointRecord {
                label: String::new(),
                settings: Vec::new(),
                measure_from: Time::ZERO,
                sample: Span::ZERO,
                flows: vec![info.clone(), info],
                outcomes: vec![outcome],
            }],
        }
    }

    #[test]
    fn a_difference_is_held_against_what_the_flows_have_on_average() {
        // 5 Mb/s each on average, of which 15 % is 0.75: 4.3 for 5 is within, 4.2 is not.
        let parity = |lab| Parity::new(&run([5, 5]), &run(lab), BUDGET);
        assert!(parity([5, 5]).holds());
        let row = &parity([5, 4]).rows[5];
        assert_eq!((row.metric, row.difference, row.within), ("throughput, Mb/s", -1.0, false));
        assert!((row.budget - 0.75).abs() < 1e-12);
        // 44.4 % for 50 %: 5.6 points of the 7.5 that 15 % of a half are.
        let row = &parity([5, 4]).rows[6];
        assert!(row.within && (row.budget - 7.5).abs() < 1e-12, "{row:?}");
    }
}
