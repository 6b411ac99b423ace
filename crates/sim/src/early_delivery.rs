//! Early deliveries: a packet reaches its host when its transmission over the last link begins, and not by an event of its
//! own when it arrives there.
//!
//! A packet that arrives at the end of its flow changes nothing but the receiver of its connection, counts, and the first link of
//! the way back. So an early delivery, with the time of the arrival, has the same effect if
//!
//! - its last link takes the same time for all packets and does not aggregate, and what comes over that link is acknowledged at once, by hosts
//!   that take no time, over one link, which carries nothing else and would [send](crate::link::Link::can_bypass) the acknowledgement as
//!   it comes,
//! - the scenario changes neither of these two links,
//! - no flow of the run has marks: hosts write them in order of time in both directions,
//! - its connection is open when it arrives: it carries no file, no web pages, no video that asks for more and no call, and is closed
//!   later, and
//! - no deliveries are counted before it arrives.
//!
//! The same holds for an acknowledgement that arrives at the source, and the data that it lets out, if the source always has data, no
//! timer of its connection may expire before, and the link of the data carries this connection alone.

use apportion_core::units::Time;
use apportion_runtime::connections::Workload;
use apportion_runtime::ways::Way;
use apportion_scenario::model::{Flow, Transport};

use crate::link_users::{answering_links, changed_links, users};
use crate::packet::Packet;
use crate::simulation::{SINK, SOURCE, Simulation};
use crate::wire::OnWire;

impl Simulation<'_> {
    /// Finds the links whose packets may be delivered early. Not with marks, which hosts write in order of time in both directions.
    pub(crate) fn enable_early_delivery(&mut self, ways: &[Way]) {
        if !self.hosts.take_no_time() || !self.marks.is_empty() {
            return;
        }
        let scenario = self.scenario;
        let (changed, users) = (changed_links(scenario), users(scenario, ways));
        let mut until = vec![scenario.stop; scenario.links.len()];
        for of_flow in ways.chunk_by(|a, b| a.flow == b.flow) {
            let index = of_flow[0].flow as usize;
            let flow = &scenario.flows[index];
            let early = self.delivers_early_until(index, flow);
            for way in of_flow {
                if let Some(last) = way.path.last() {
                    let until = &mut until[last.index()];
                    *until = (*until).min(early);
                }
                if let (Some(last), Some(first)) = (way.back.last(), way.path.first()) {
                    // Data that went to their sink at once would come back as an acknowledgement, and so on without end.
                    let is_alone =
                        users[first.index()] == 1 && way.path.len() > 1 && self.is_one_greedy(index);
                    let until = &mut until[last.index()];
                    *until = (*until).min(if is_alone { self.stop_of(flow) } else { Time::ZERO });
                }
            }
        }
        for (link, answers) in answering_links(scenario.links.len(), ways).into_iter().enumerate() {
            if let Some(answers) = answers
                && !changed[link]
                && !self.links[link].state.has_jitter()
                && !self.links[link].aggregates()
                && !changed[answers as usize]
                && until[link] > Time::ZERO
            {
                self.links[link].set_answers(answers, until[link]);
            }
        }
    }

    /// Until when the connections of a flow are open, and acknowledge at once.
    fn delivers_early_until(&self, index: usize, flow: &Flow) -> Time {
        let waits = match &flow.transport {
            Transport::Tcp(params) => params.delayed_ack.is_some(),
            Transport::Quic(_) => true,
            Transport::Udp { .. } => false,
        };
        let ends = self.members(index).any(|member| {
            let workload = &self.connections[member as usize].workload;
            matches!(workload, Workload::File(_) | Workload::Web(_) | Workload::Media(_) | Workload::Arrived)
        });
        if waits || ends { Time::ZERO } else { self.stop_of(flow) }
    }

    /// Whether a flow is one connection of TCP whose source acts only when it starts and stops, by its timer, and when an
    /// acknowledgement comes.
    fn is_one_greedy(&self, flow: usize) -> bool {
        let is_tcp = matches!(self.scenario.flows[flow].transport, Transport::Tcp(_));
        let members = self.members(flow);
        let mut workloads = members.clone().map(|member| &self.connections[member as usize].workload);
        is_tcp && members.len() == 1 && workloads.all(|workload| matches!(workload, Workload::Greedy))
    }

    fn stop_of(&self, flow: &Flow) -> Time {
        flow.stop.unwrap_or(self.scenario.stop)
    }

    /// Deliveries will be counted next when the measured part begins, when a sample interval ends, or at the end of the run.
    pub(crate) fn find_next_count(&mut self) {
        let measure = Some(self.scenario.measure_from).filter(|_| self.baseline.is_none());
        let times = [measure.filter(|&at| at > Time::ZERO), self.next_sample];
        self.next_count = times.into_iter().flatten().fold(self.scenario.stop, Time::min);
    }

    /// Whether a packet whose route ends with `end` behind `link` may be delivered to its host now, before all others on that link.
    #[inline(always)]
    pub(crate) fn delivers_early(&mut self, link: u32, end: u32, sent: &OnWire) -> bool {
        let Some((answers, until)) = self.links[link as usize].answers() else { return false };
        if sent.at >= until.min(self.next_count) {
            return false;
        }
        if end == SOURCE {
            if self.connections[self.connection_of(sent.packet) as usize].armed <= sent.at {
                return false;
            }
            // What it sent before may still wait.
            self.links[answers as usize].transmit_until(sent.at, &mut self.shared);
        }
        self.links[answers as usize].can_bypass(sent.at)
    }

    /// A packet arrives over a link that may deliver early: those behind it on the wire, which could not go early, may now.
    #[inline(never)]
    pub(crate) fn arrive_with_others(&mut self, now: Time, link: u32) {
        let Some(sent) = self.links[link as usize].take_off_wire() else { return };
        if self.prefetches {
            self.prefetch_along_wire(link);
        }
        self.pass_on(now, link, sent.packet.at_next_hop());
        while let Some(&sent) = self.links[link as usize].first_on_wire() {
            let packet = sent.packet.at_next_hop();
            let end = self.routes[packet.hop() as usize];
            if !matches!(end, SINK | SOURCE) || !self.delivers_early(link, end, &sent) {
                break;
            }
            self.links[link as usize].take_off_wire();
            self.deliver(sent.at, end, packet);
        }
        self.links[link as usize].await_arrival(&mut self.shared);
    }

    /// A packet reaches its host at the end of its route, the sink or the source of its flow.
    #[inline]
    pub(crate) fn deliver(&mut self, now: Time, end: u32, packet: Packet) {
        if end == SINK { self.deliver_to_sink(now, packet) } else { self.deliver_to_source(now, packet) }
    }
}
