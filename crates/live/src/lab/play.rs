//! The course of a run: packets move until an event is due, which is handled at its time.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use apportion_core::packet::{FlowId, LabelKind};
use apportion_core::queue::Overload;
use apportion_core::units::{Rate, Span, Time};
use apportion_runtime::connections::Numbers;
use apportion_runtime::flow_tables::FlowTables;
use apportion_runtime::outcome::Outcome;
use apportion_runtime::probe::Samples;
use apportion_scenario::model::{Scenario, Setting};

use super::driver::{Command, Running};
use super::error::LabError;
use super::external::Health;
use super::results::Baseline;
use super::world::LabWorld;
use crate::engine::Engine;
use crate::pace::Pace;
use crate::packet::Packet;

/// Interval at which overload notifications are collected and the cancel flag is read. Chosen: short compared
/// with the intervals of disciplines.
const POLL_INTERVAL: Span = Span::from_millis(10);

/// A function to call at the end of each sample interval.
pub type OnSample<'a> = &'a dyn Fn(&Samples<'_>);

/// The function, if there is one.
pub(super) struct Watcher<'a>(pub Option<OnSample<'a>>);

impl fmt::Debug for Watcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watcher").field(&self.0.is_some()).finish()
    }
}

/// A run in progress.
#[derive(Debug)]
pub(super) struct Lab<'a> {
    pub scenario: &'a Scenario,
    pub seed: u64,
    pub engine: Engine<LabWorld<'a>>,
    pub driver: Running,
    pub tables: FlowTables,
    pub numbers: Numbers,
    pub baseline: Option<Baseline>,
    pub watcher: Watcher<'a>,
    /// The state of queues outside the engine; none if there are none.
    pub queues: Option<Box<dyn Health>>,
    /// Overload notifications on their way to sources, in order of arrival.
    overloads: BTreeMap<(Time, u64), (u32, Overload)>,
    overload_count: u64,
    /// Index of the next change of the scenario.
    changed: usize,
    /// Time at which the next sample is taken.
    sample: Time,
}

impl<'a> Lab<'a> {
    pub fn new(
        scenario: &'a Scenario,
        seed: u64,
        engine: Engine<LabWorld<'a>>,
        driver: Running,
        tables: FlowTables,
        numbers: Numbers,
    ) -> Self {
        Self {
            scenario,
            seed,
            engine,
            driver,
            tables,
            numbers,
            baseline: None,
            watcher: Watcher(None),
            queues: None,
            overloads: BTreeMap::new(),
            overload_count: 0,
            changed: 0,
            sample: Time::ZERO + scenario.sample,
        }
    }

    /// Calls `on_sample` at the end of each sample interval.
    pub fn watched(self, on_sample: Option<OnSample<'a>>) -> Self {
        Self { watcher: Watcher(on_sample), ..self }
    }

    /// Checks these queues outside the engine.
    pub fn with_queues(self, queues: Option<Box<dyn Health>>) -> Self {
        Self { queues, ..self }
    }

    /// Runs to the end of the scenario, or until `cancel` is set.
    pub fn run(mut self, cancel: &AtomicBool) -> Result<Option<Outcome>, LabError> {
        match self.play(cancel) {
            Ok(true) => self.outcome().map(Some),
            Ok(false) => Ok(None),
            // If the applications have ended, their error says why.
            Err(LabError::DriverStalled) => {
                self.driver.finish().map_err(LabError::from).and(Err(LabError::DriverStalled))
            }
            Err(error) => Err(error),
        }
    }

    /// Plays the run. Returns whether it reached its end.
    fn play(&mut self, cancel: &AtomicBool) -> Result<bool, LabError> {
        loop {
            let now = self.next().min(self.engine.now() + POLL_INTERVAL);
            self.engine.run(now, None)?;
            self.collect_overloads();
            self.do_what_is_due(now)?;
            if let Some(why) = self.queues.as_ref().and_then(|queues| queues.failure()) {
                return Err(LabError::QueueFailed(why));
            }
            if now >= self.scenario.stop {
                return Ok(true);
            }
            if cancel.load(Ordering::Relaxed) {
                return Ok(false);
            }
        }
    }

    /// The time of the next event.
    fn next(&self) -> Time {
        let change = self.scenario.changes.get(self.changed).map(|change| change.at);
        let overload = self.overloads.keys().next().map(|(at, _)| *at);
        let measure = self.baseline.is_none().then_some(self.scenario.measure_from);
        let all = [change, overload, measure, Some(self.scenario.stop), self.next_sample()];
        all.into_iter().flatten().min().unwrap_or(Time::MAX)
    }

    fn next_sample(&self) -> Option<Time> {
        (self.scenario.sample > Span::ZERO).then_some(self.sample)
    }

    fn do_what_is_due(&mut self, now: Time) -> Result<(), LabError> {
        while let Some(change) = self.scenario.changes.get(self.changed).filter(|change| change.at <= now) {
            self.change(now, &change.to)?;
            self.changed += 1;
        }
        while let Some(first) = self.overloads.first_entry().filter(|first| first.key().0 <= now) {
            let (flow, overload) = first.remove();
            self.notify_source(flow, overload)?;
        }
        if self.baseline.is_none() && self.scenario.measure_from <= now {
            self.begin_measuring(now);
        }
        if self.next_sample().is_some_and(|at| at <= now) {
            self.take_sample(now);
            self.sample += self.scenario.sample;
        }
        Ok(())
    }

    /// Collects overload notifications of disciplines, which reach their sources after the delay of the wires in between, as in a
    /// simulation.
    fn collect_overloads(&mut self) {
        while let Some((at, link, overload)) = self.engine.shared.overloads.pop_front() {
            let Some(flow) = self.numbers.flow_of(overload.flow) else { continue };
            let path = &self.scenario.flows[flow].path;
            let Some(before) = path.iter().position(|on| on.0 == link) else { continue };
            let delays =
                path[..before].iter().filter_map(|on| Some(self.engine.link(on.index())?.state.delay()));
            let arrival = at + delays.fold(Span::ZERO, |sum, delay| sum + delay);
            self.overloads.insert((arrival, self.overload_count), (flow as u32, overload));
            self.overload_count += 1;
        }
    }

    fn notify_source(&mut self, flow: u32, overload: Overload) -> Result<(), LabError> {
        if !overload.is_over
            && let Some(counters) = self.engine.shared.account(overload.flow.0)
        {
            counters.overloads += 1;
        }
        // Each connection gets an equal share.
        let members = self.numbers.members(flow as usize).len().max(1) as u64;
        let part = |rate: Rate| Rate::from_bit(rate.as_bit() / members);
        let overload =
            Overload { wanted: part(overload.wanted), granted: part(overload.granted), ..overload };
        self.send(Command::Overload(flow, overload))
    }

    /// Sends a command. Applications end by their own clock: commands at the end come too late for them,
    /// which is no fault.
    fn send(&self, command: Command) -> Result<(), LabError> {
        let is_over = || self.engine.now() >= self.scenario.stop;
        if self.driver.send(command) || is_over() { Ok(()) } else { Err(LabError::DriverStalled) }
    }

    fn change(&mut self, now: Time, to: &Setting) -> Result<(), LabError> {
        let engine = &mut self.engine;
        match to {
            Setting::LinkRate(link, rate) => {
                engine.change(link.index(), |link, shared| link.set_pace(now, Pace::rate(*rate), shared));
            }
            Setting::LinkDelay(link, delay) => {
                engine.change(link.index(), |link, _| link.state.set_delay(*delay));
            }
            Setting::LinkLoss(link, loss) => {
                engine.change(link.index(), |link, _| link.state.set_loss(*loss));
            }
            Setting::LinkQueue(at, params) => {
                let rate = engine.link(at.index()).map(|link| link.state.rate()).unwrap_or_default();
                let queue = self.tables.discipline(self.scenario, *at, params, rate);
                engine.change(at.index(), |link, shared| link.set_queue(now, queue, shared));
            }
            Setting::FlowRate(flow, rate) => {
                return self.send(Command::SetRate(*flow as u32, *rate));
            }
            Setting::FlowTickets(flow, tickets) => {
                self.marks(*flow, |marks| marks.issue::<Packet>(now, LabelKind::Tickets, *tickets));
            }
            Setting::FlowAckTickets(flow, tickets) => {
                self.marks(*flow, |marks| marks.issue::<Packet>(now, LabelKind::AckTickets, *tickets));
            }
            Setting::LinkTickets(link, tickets) => {
                engine.change(link.index(), |link, _| link.state.issue(now, LabelKind::Tickets, *tickets));
            }
            Setting::LinkAckTickets(link, tickets) => {
                // Tickets of acknowledgements are exchanged in their own direction.
                if let Some(other) = self.scenario.links[link.index()].other_way {
                    engine.change(other.index(), |link, _| {
                        link.state.issue(now, LabelKind::AckTickets, *tickets);
                    });
                }
            }
            Setting::FlowGuarantee(flow, _) | Setting::FlowClass(flow, _) | Setting::FlowWeight(flow, _) => {
                self.set_flow(now, *flow, to);
            }
        }
        Ok(())
    }

    /// Changes a setting of a flow, for all its ids on every link.
    fn set_flow(&mut self, now: Time, flow: usize, to: &Setting) {
        for id in self.numbers.ids(flow).map(FlowId) {
            let Some(setting) = self.tables.change(id, to) else { continue };
            for link in 0..self.scenario.links.len() {
                self.engine.change(link, |link, shared| {
                    link.set_flow(now, id, setting, shared);
                });
            }
        }
    }

    fn marks(&mut self, flow: usize, mut change: impl FnMut(&mut apportion_runtime::marks::Marks)) {
        for id in self.numbers.ids(flow) {
            if let Some(Some(marks)) = self.engine.world.marks.get_mut(id as usize) {
                change(marks);
            }
        }
    }
}
