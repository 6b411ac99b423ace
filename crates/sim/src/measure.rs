//! Measurements during a simulation, and the outcome at its end.

use apportion_core::packet::FlowId;
use apportion_core::stack::Counts;
use apportion_core::units::{Bytes, Span, Time};
use apportion_runtime::connections::Workload;
use apportion_runtime::marks::Marks;
use apportion_runtime::outcome::{Completion, Count, FlowOutcome, LinkOutcome, Outcome, TcpSample};
use apportion_runtime::probe::{Counters, FlowCounts, LinkCounts, Samples};
use apportion_scenario::model::{Source, Transport};

use crate::connection::{Ends, Quic, Quics, Tcp, Tcps, Totals, TransportState};
use crate::events::{Event, Events};
use crate::hosts::Hosts;
use crate::link::Link;
use crate::observer::{Observed, Observer};
use crate::packet::{Packet, Store};
use crate::simulation::Simulation;

/// All counts at the start of the measured part, to be subtracted at the end.
#[derive(Debug)]
pub struct Baseline {
    at: Time,
    counters: FlowCounts,
    totals: Vec<Totals>,
    links: Vec<LinkCounts>,
    /// By flow; empty if no flow is marked.
    full_tags: Vec<u64>,
}

impl<'a> Simulation<'a> {
    /// Reports all following events to `observer`.
    pub fn observe(&mut self, observer: &'a dyn Observer) {
        let flow_of_id = self.numbers.flows_by_id();
        self.shared.observed = Some(Box::new(Observed { observer, flow_of_id }));
        if !Self::may_leave_order(false, true) {
            self.links.iter_mut().for_each(Link::disable_batching);
        }
    }
}

impl Simulation<'_> {
    /// Begins the measured part.
    pub(crate) fn begin_measuring(&mut self, now: Time) {
        self.catch_up(now);
        for link in &mut self.links {
            link.state.begin_measuring(now, &mut self.shared);
        }
        for probe in &mut self.probes {
            probe.delay = apportion_runtime::histogram::Histogram::default();
        }
        self.earlier = std::mem::take(&mut self.completions);
        self.begin_measuring_media(now);
        // Other events at this time come later.
        self.baseline = Some(Box::new(Baseline {
            at: now,
            counters: self.shared.counters.clone(),
            totals: self.all_totals(),
            links: self.links.iter().map(|link| link.counts(now, now)).collect(),
            full_tags: match self.marks.is_empty() {
                true => Vec::new(),
                false => (0..self.scenario.flows.len()).map(|flow| self.full_tags(flow)).collect(),
            },
        }));
        self.find_next_count();
    }

    /// Finds the next time at which deliveries are counted: the start of the measured part, the end of a
    /// sample interval, or of the run.
    pub(crate) fn find_next_count(&mut self) {
        let measure = Some(self.scenario.measure_from).filter(|_| self.baseline.is_none());
        let times = [measure.filter(|&at| at > Time::ZERO), self.next_sample];
        self.next_count = times.into_iter().flatten().fold(self.end, Time::min);
    }

    /// Packets of a flow so far with more tickets than their tags hold.
    fn full_tags(&self, flow: usize) -> u64 {
        let marks = self.ids(flow).filter_map(|id| self.marks.get(id as usize)?.as_deref());
        marks.map(Marks::full_tags::<Packet>).sum()
    }

    fn all_totals(&self) -> Vec<Totals> {
        (0..self.connections.len()).map(|index| self.totals(index as u32)).collect()
    }

    /// Transmissions over all links since the start of the run, including those that links have begun early.
    #[must_use]
    pub fn packet_hops(&self) -> u64 {
        self.links.iter().map(|link| link.state.sent().packets.get()).sum()
    }

    /// Runs the due transmissions of all links at the end of the run: captures are finished before the
    /// outcome.
    pub(crate) fn end_run(&mut self) {
        let stop = self.end;
        self.shared.events.finish(stop);
        self.catch_up(stop);
    }

    /// Runs the transmissions of all links that are due by now.
    fn catch_up(&mut self, now: Time) {
        for link in 0..self.links.len() {
            self.links[link].catch_up(&mut self.shared);
            // Packets of one link must not overtake packets that the next link has sent before.
            self.hand_over(now);
        }
    }

    /// The totals of a connection since its start.
    pub(crate) fn totals(&self, index: u32) -> Totals {
        let mut totals = self.transport_totals(index);
        if let Workload::Web(web) = self.connections[index as usize].workload {
            totals += self.webs[web as usize].past(index);
        }
        totals
    }

    /// The totals of the TCP or QUIC that carries it, or carried it until its end.
    pub(crate) fn transport_totals(&self, index: u32) -> Totals {
        match &self.connections[index as usize].transport {
            &TransportState::Open(place) => {
                let Some(tcp) = self.tcps.get(place) else { return Totals::default() };
                let stats = tcp.sender.stats();
                Totals {
                    goodput: tcp.receiver.delivered(),
                    retransmits: stats.retransmits,
                    timeouts: stats.timeouts,
                    fast_retransmits: stats.fast_retransmits,
                }
            }
            &TransportState::OpenQuic(place) => {
                let Some(quic) = self.quics.get(place) else { return Totals::default() };
                let stats = quic.sender.stats();
                Totals {
                    goodput: quic.receiver.delivered(),
                    retransmits: stats.retransmits,
                    timeouts: stats.probe_timeouts,
                    fast_retransmits: stats.recoveries,
                }
            }
            &TransportState::OpenStack(place) => self.stacks.get(place).map(Ends::totals).unwrap_or_default(),
            TransportState::Ended(totals) => **totals,
            TransportState::Closed(_)
            | TransportState::ClosedQuic(_)
            | TransportState::ClosedStack(_)
            | TransportState::Udp { .. } => Totals::default(),
        }
    }

    /// Ends a sample interval.
    pub(crate) fn sample(&mut self, now: Time) {
        self.catch_up(now);
        for link in &mut self.links {
            link.state.sample(now, &mut self.shared);
        }
        for (flow, probe) in self.probes.iter_mut().enumerate() {
            let ids = self.numbers.ids(flow);
            probe.sample(self.shared.counters.delivered_by(ids));
            let members = self.numbers.members(flow);
            if let [member] = &self.connections[members.start as usize..members.end as usize]
                && !matches!(member.transport, TransportState::Udp { .. })
            {
                let sample = match member.transport {
                    TransportState::Open(place) => self.tcps.get(place).map(tcp_sample),
                    TransportState::OpenQuic(place) => self.quics.get(place).map(|quic| quic_sample(quic)),
                    TransportState::OpenStack(place) => self.stacks.get(place).map(Ends::sample),
                    _ => None,
                };
                probe.tcp.push(sample.unwrap_or_default());
            }
        }
        if let Some(observed) = &self.shared.observed {
            let links = self.links.iter().enumerate();
            let links: Vec<_> =
                links.filter_map(|(at, link)| Some((at, link.state.last_sample()?))).collect();
            let delivered = |flow| self.shared.counters.delivered_by(self.numbers.ids(flow));
            observed.observer.sampled(&Samples {
                at: now,
                flows: &self.probes,
                links: &links,
                delivered: &delivered,
            });
        }
        let next = now + self.scenario.sample;
        self.shared.events.schedule(now, next, Event::Sample);
        self.next_sample = Some(next);
        self.find_next_count();
    }

    /// The outcome of a run that has ended.
    #[must_use]
    pub fn outcome(mut self) -> Outcome {
        let stop = self.end;
        let after = stop + Span::from_nanos(1);
        let hops = |links: &[LinkCounts]| links.iter().map(|link| link.sent.packets.get()).sum::<u64>();
        let links: Vec<_> = self.links.iter().map(|link| link.counts(stop, after)).collect();
        self.links.iter_mut().for_each(|link| link.take_back_early(stop, after));
        let totals = self.all_totals();
        for completions in [&mut self.completions, &mut self.earlier] {
            completions.sort_by_key(|&(flow, _)| flow);
        }
        let baseline = self.baseline.take();
        let before = baseline.as_deref();
        let measured = stop.since(before.map_or(Time::ZERO, |baseline| baseline.at));
        let packet_hops = hops(&links) - before.map_or(0, |baseline| hops(&baseline.links));
        let links = (0..links.len()).map(|link| self.link_outcome(link, before, measured)).collect();
        let media: Vec<_> = (0..self.scenario.flows.len()).map(|flow| self.media_outcome(flow)).collect();
        // The results of flows replace the state that moved their packets.
        self.links = Vec::new();
        self.shared.events = Events::new(0, Span::ZERO, 0.0);
        self.shared.store = Store::default();
        self.hosts = Hosts::default();
        self.connections = Vec::new();
        self.tcps = Tcps::default();
        self.quics = Quics::default();
        Outcome {
            seed: self.seed,
            measured,
            flows: media
                .into_iter()
                .enumerate()
                .map(|(flow, media)| FlowOutcome { media, ..self.flow_outcome(flow, before, &totals) })
                .collect(),
            links,
            packet_hops,
            events: self.events_handled,
            timekeeping: None,
        }
    }

    /// The outcome of a flow since `baseline`, or the start of the run; its connections have reached
    /// `totals`.
    fn flow_outcome(&mut self, index: usize, baseline: Option<&Baseline>, totals: &[Totals]) -> FlowOutcome {
        let flow = &self.scenario.flows[index];
        let mut outcome =
            FlowOutcome { name: flow.name.clone(), group: flow.group.clone(), ..Default::default() };
        let mut goodput = Bytes::ZERO;
        for id in self.ids(index).map(FlowId) {
            let before = baseline.map_or(Counters::default(), |baseline| baseline.counters.of(id));
            let after = self.shared.counters.of(id);
            after.add_since(&before, &mut outcome);
            if let Transport::Udp { header, .. } = flow.transport {
                goodput += payload(after.delivered, header) - payload(before.delivered, header);
            }
        }
        let (mut retransmits, mut timeouts, mut fast_retransmits) = (0, 0, 0);
        for member in self.members(index) {
            let before = baseline.map_or(Totals::default(), |baseline| baseline.totals[member as usize]);
            let after = &totals[member as usize];
            // Totals of a stack from outside may break its contract and fall.
            goodput += Bytes::new(after.goodput.saturating_sub(before.goodput));
            retransmits += after.retransmits.saturating_sub(before.retransmits);
            timeouts += after.timeouts.saturating_sub(before.timeouts);
            fast_retransmits += after.fast_retransmits.saturating_sub(before.fast_retransmits);
        }
        let full_before = baseline.and_then(|baseline| baseline.full_tags.get(index)).copied();
        outcome.full_tags = self.full_tags(index) - full_before.unwrap_or_default();
        outcome.failures = self.failures.remove(&(index as u32));
        outcome.goodput = Some(goodput);
        outcome.retransmits = Some(retransmits);
        outcome.timeouts = Some(timeouts);
        outcome.fast_retransmits = Some(fast_retransmits);
        if let Transport::Stack(params) = &flow.transport {
            let Counts { lost, timeouts, reductions } = params.stack().counts();
            outcome.retransmits = outcome.retransmits.filter(|_| lost);
            outcome.timeouts = outcome.timeouts.filter(|_| timeouts);
            outcome.fast_retransmits = outcome.fast_retransmits.filter(|_| reductions);
        }
        outcome.is_probe = matches!(&flow.source, Source::Web(web) if web.is_probe);
        outcome.earlier = completions_of(&self.earlier, index);
        outcome.completions = completions_of(&self.completions, index);
        outcome.completions.sort_by_key(|completion| completion.start);
        if let Some(probe) = self.probes.get_mut(index) {
            outcome.delay = probe.delay.distribution();
            outcome.series = std::mem::take(&mut probe.series);
            outcome.tcp = std::mem::take(&mut probe.tcp);
        }
        outcome
    }

    fn link_outcome(&mut self, index: usize, baseline: Option<&Baseline>, measured: Span) -> LinkOutcome {
        let before = baseline.map_or(LinkCounts::default(), |baseline| baseline.links[index]);
        let numbers = &self.numbers;
        let mut outcome = self.links[index].state.outcome(
            self.end,
            &before,
            measured,
            &|id| numbers.flow_of(id),
            &mut self.shared,
        );
        outcome.name.clone_from(&self.scenario.links[index].name);
        outcome.watched = self.scenario.links[index].watched;
        if let Some(routers) = &self.routers {
            routers
                .statistics(index as u32, &mut |name, value| outcome.statistics.push((name.into(), value)));
        }
        outcome
    }
}

/// The completions of one flow, among all in the order of flows.
fn completions_of(all: &[(u32, Completion)], flow: usize) -> Vec<Completion> {
    let first = all.partition_point(|&(of, _)| (of as usize) < flow);
    all[first..]
        .iter()
        .take_while(|&&(of, _)| of as usize == flow)
        .map(|&(_, completion)| completion)
        .collect()
}

fn tcp_sample(tcp: &Tcp) -> TcpSample {
    TcpSample { window: tcp.sender.cwnd(), srtt: tcp.sender.srtt() }
}

fn quic_sample(quic: &Quic) -> TcpSample {
    TcpSample { window: quic.sender.cwnd(), srtt: quic.sender.srtt() }
}

/// The bytes of `count` without `header` for each packet.
fn payload(count: Count, header: Bytes) -> Bytes {
    Bytes::new(count.bytes.get().saturating_sub(header.get() * count.packets.get()))
}
