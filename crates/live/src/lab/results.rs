//! Measurements while the laboratory runs, and the results at the end.

use apportion_core::units::Time;
use apportion_linux::machine::{CpuShares, CpuTime, ThreadShares, ThreadTime};
use apportion_linux::port::PortCounts;
use apportion_linux::precision::Precision;
use apportion_runtime::histogram::Histogram;
use apportion_runtime::outcome::{CpuUse, FlowOutcome, LinkOutcome, Outcome, ThreadUse, Timekeeping};
use apportion_runtime::probe::{Counters, LinkCounts, Samples};
use apportion_runtime::tolerances::{LatenessLimits, TOLERANCES};
use apportion_scenario::model::Scenario;

use super::driver::{DriverOutcome, Failure};
use super::error::LabError;
use super::play::{Lab, Watcher};
use crate::engine::Engine;

/// All counts at one time.
#[derive(Debug)]
pub(super) struct Baseline {
    at: Time,
    flows: Vec<Counters>,
    links: Vec<LinkCounts>,
    ports: PortCounts,
    malformed: u64,
    cpu: Option<CpuTime>,
    /// CPU time of the thread that moves packets, which does the counting.
    thread: Option<ThreadTime>,
}

impl Lab<'_> {
    /// Begins the measured part.
    pub fn begin_measuring(&mut self, now: Time) {
        for link in 0..self.scenario.links.len() {
            self.engine.change(link, |link, shared| link.state.begin_measuring(now, shared));
        }
        for probe in &mut self.engine.world.probes {
            probe.delay = Histogram::default();
        }
        self.engine.forget_lateness();
        self.baseline = Some(self.counts(now));
    }

    fn counts(&mut self, now: Time) -> Baseline {
        let links = 0..self.scenario.links.len();
        let mut ports = all_ports(&mut self.engine);
        ports.missed += self.queues.as_mut().map_or(0, |queues| queues.lost());
        Baseline {
            at: now,
            flows: self.engine.shared.flows.clone(),
            links: links.filter_map(|link| Some(self.engine.link(link)?.state.counts(now))).collect(),
            ports,
            malformed: self.engine.malformed().map(|(_, count)| count).sum(),
            cpu: CpuTime::read(),
            thread: ThreadTime::read(),
        }
    }

    /// Ends a sample interval.
    pub fn take_sample(&mut self, now: Time) {
        for link in 0..self.scenario.links.len() {
            self.engine.change(link, |link, shared| link.state.sample(now, shared));
        }
        for (flow, probe) in self.engine.world.probes.iter_mut().enumerate() {
            let ids = self.numbers.ids(flow);
            let counters = &self.engine.shared.flows[ids.start as usize..ids.end as usize];
            probe.sample(counters.iter().map(|counters| counters.delivered.bytes).sum());
        }
        if let Watcher(Some(on_sample)) = self.watcher {
            let links = 0..self.scenario.links.len();
            let last = |link| Some((link, self.engine.link(link)?.state.last_sample()?));
            let links: Vec<_> = links.filter_map(last).collect();
            let delivered = |flow| {
                let ids = self.numbers.ids(flow);
                let counters = &self.engine.shared.flows[ids.start as usize..ids.end as usize];
                counters.iter().map(|counters| counters.delivered.bytes).sum()
            };
            let flows = &self.engine.world.probes;
            on_sample(&Samples { at: now, flows, links: &links, delivered: &delivered });
        }
    }

    /// The results of a run that has ended.
    pub fn outcome(mut self) -> Result<Outcome, LabError> {
        let stop = self.scenario.stop;
        let end = self.counts(stop);
        // Taken when the measured part began, which is not after the end.
        let start = self.baseline.take().unwrap_or_else(|| self.counts(stop));
        let links =
            (0..self.scenario.links.len()).map(|link| self.link_outcome(link, &start, end.at)).collect();
        let mut timekeeping = self.timekeeping(&start, &end);
        let mut flows: Vec<FlowOutcome> =
            (0..self.scenario.flows.len()).map(|flow| self.flow_outcome(flow, &start, &end)).collect();
        let driver: DriverOutcome = self.driver.finish()?;
        timekeeping.refused += driver.unsent;
        timekeeping.writes = driver.lateness.distribution();
        timekeeping.applications = driver.thread.map(thread_use);
        timekeeping.failures = failures(self.scenario, &driver.failures);
        for (outcome, totals) in flows.iter_mut().zip(driver.flows) {
            outcome.goodput = Some(totals.goodput);
            outcome.retransmits = Some(totals.retransmits);
            outcome.timeouts = driver.knows_timeouts.then_some(totals.timeouts);
            outcome.earlier = totals.earlier;
            outcome.completions = totals.completions;
            outcome.completions.sort_by_key(|completion| completion.start);
            outcome.tcp = totals.tcp;
        }
        let hops = end.links.iter().zip(&start.links);
        let hops = hops.map(|(end, start)| end.sent.packets.get() - start.sent.packets.get());
        Ok(Outcome {
            seed: self.seed,
            measured: stop.since(start.at),
            flows,
            links,
            packet_hops: hops.sum(),
            events: 0,
            timekeeping: Some(timekeeping),
        })
    }

    fn flow_outcome(&mut self, index: usize, start: &Baseline, end: &Baseline) -> FlowOutcome {
        let flow = &self.scenario.flows[index];
        let mut outcome =
            FlowOutcome { name: flow.name.clone(), group: flow.group.clone(), ..FlowOutcome::default() };
        for id in self.numbers.ids(index) {
            end.flows[id as usize].add_since(&start.flows[id as usize], &mut outcome);
        }
        let probe = &mut self.engine.world.probes[index];
        outcome.delay = probe.delay.distribution();
        outcome.series = std::mem::take(&mut probe.series);
        outcome
    }

    fn link_outcome(&mut self, index: usize, start: &Baseline, end: Time) -> LinkOutcome {
        let (model, numbers) = (&self.scenario.links[index], &self.numbers);
        let (before, measured) = (&start.links[index], end.since(start.at));
        let mut outcome = LinkOutcome::default();
        self.engine.change(index, |link, shared| {
            outcome = link.state.outcome(end, before, measured, &|id| numbers.flow_of(id), shared);
        });
        outcome.name.clone_from(&model.name);
        if let Some(routers) = &self.engine.world.routers {
            routers
                .statistics(index as u32, &mut |name, value| outcome.statistics.push((name.into(), value)));
        }
        outcome
    }

    fn timekeeping(&self, start: &Baseline, end: &Baseline) -> Timekeeping {
        let (before, after) = (&start.ports, &end.ports);
        let malformed = end.malformed - start.malformed;
        let limits = LatenessLimits::new(self.scenario, &TOLERANCES);
        let Precision { real_time, locked } = Precision::read();
        Timekeeping {
            lateness: self.engine.lateness().distribution(),
            limit: limits.most,
            mean_limit: limits.mean,
            missed: after.missed - before.missed,
            refused: after.unsent - before.unsent,
            unusable: after.oversize + after.super_packets - before.oversize - before.super_packets
                + malformed,
            cpu: start.cpu.zip(end.cpu).and_then(|(start, end)| end.since(&start)).map(cpu_use),
            packets: start
                .thread
                .zip(end.thread)
                .and_then(|(before, after)| after.since(&before, end.at.since(start.at)))
                .map(thread_use),
            real_time,
            locked,
            attempts: 1,
            // The lateness of the applications, which have not ended yet, is added later.
            ..Timekeeping::default()
        }
    }
}

/// Shares of CPU time, in the form of results.
fn cpu_use(shares: CpuShares) -> CpuUse {
    let CpuShares { own, others, interrupts, stolen } = shares;
    CpuUse { own, others, interrupts, stolen }
}

/// Shares of a thread's time, in the form of results.
fn thread_use(shares: ThreadShares) -> ThreadUse {
    let ThreadShares { ran, waited } = shares;
    ThreadUse { ran, waited }
}

/// Sums of the counts of all ports.
fn all_ports<W>(engine: &mut Engine<W>) -> PortCounts {
    let mut all = PortCounts::default();
    for port in 0.. {
        let Some((counts, _)) = engine.port_counts(port) else { break };
        all += counts;
    }
    all
}

/// Failures of connections as text, the first of at most [`MAX_FAILURES`].
fn failures(scenario: &Scenario, failures: &[Failure]) -> Vec<String> {
    let described = failures.iter().take(MAX_FAILURES).map(|Failure { flow, at, what, error }| {
        let name = scenario.flows.get(*flow as usize).map_or("", |flow| flow.name.as_str());
        format!("flow {name}: cannot {what} at {:.3} s: {error}", at.as_secs_f64())
    });
    let more = failures.len().saturating_sub(MAX_FAILURES);
    described.chain((more > 0).then(|| format!("{more} more connections failed"))).collect()
}

/// Maximum of failures that results list. Chosen: enough to see the cause.
const MAX_FAILURES: usize = 5;
