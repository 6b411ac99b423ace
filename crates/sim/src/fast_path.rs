//! The fast path: steps that the simulator takes early or late, or leaves out, without an effect on results.
//!
//! *In order*, each packet arrives by an event of its own and each transmission ends by one. A step may be
//! made at another time if no step in between writes what it reads or writes, or reads what it writes.
//! Therefore each decision below lists, above one function, sufficient conditions, and the in-order steps of
//! each packet that it replaces. The functions return at the first condition that does not hold; code that
//! needs a decision calls its function and tests nothing else.
//!
//! | decision | it saves |
//! |---|---|
//! | [`Link::fastest_tx_mode`], [`Link::can_bypass`], [`Link::skips_queue`] | the calls of a discipline |
//! | [`may_batch`] | an event for the end of each transmission |
//! | [`may_be_fed`], [`Link::takes_early`] | an event for each arrival at the next link |
//! | [`Hosts::owns_first_link`], [`Link::may_leave_early`] | an event for each departure from a host |
//! | [`Simulation::delivers_early`] and its preparations | an event for each arrival at a host |
//! | [`Simulation::find_plain_hosts`] | the work of hosts on packets |
//!
//! The tests remove one condition after another, and show a result that changes.

use apportion_core::units::{Rate, Time};
use apportion_runtime::connections::Workload;
use apportion_runtime::ways::Way;
use apportion_scenario::model::{Flow, Path, Scenario, Transport};
use apportion_scenario::tcp::SackRecovery;

use crate::connection::{Connection, TransportState};
use crate::hosts::Hosts;
use crate::link::{Link, Transmitter, TxMode};
use crate::link_users::{answering_links, changed_links, feeders, users};
use crate::simulation::{SOURCE, Simulation};
use crate::wire::OnWire;

#[cfg(test)]
mod tests;

/// The decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Decision {
    LeaveOrder,
    Bypass,
    SkipQueue,
    Batch,
    HandOver,
    LeaveEarly,
    EarlyDelivery,
    SinkAnswers,
    SourceAnswers,
    PlainHosts,
    InPlace,
}

use Decision::{
    Batch, Bypass, EarlyDelivery, HandOver, InPlace, LeaveEarly, LeaveOrder, PlainHosts, SinkAnswers,
    SkipQueue, SourceAnswers,
};

/// Whether the condition with this number of a decision holds. Tests can remove conditions.
#[cfg(not(test))]
#[inline(always)]
const fn holds(_: Decision, _: u32, condition: bool) -> bool {
    condition
}
#[cfg(test)]
use tests::holds;

impl Simulation<'_> {
    /// Whether any step may be out of order.
    ///
    /// 1. No routers exchange reports: they read queues at any time, and their messages may use any link.
    /// 2. No observer is attached: an observer gets drops and marks in the order of time.
    ///    [`Simulation::observe`] revokes earlier decisions.
    pub(crate) fn may_leave_order(has_routers: bool, is_observed: bool) -> bool {
        if !holds(LeaveOrder, 1, !has_routers) {
            return false;
        }
        holds(LeaveOrder, 2, !is_observed)
    }
}

impl Link {
    /// How a link sends: not at all, at transmission opportunities, through its queue or past it.
    ///
    /// In order, a packet that finds the link free is measured, joins the queue, leaves it, is measured again
    /// and goes on the wire for the time of its transmission and the delay. All of this reduces to a count if
    ///
    /// 1. the link has a rate: without one the packet waits;
    /// 2. it has no trace and does not aggregate: these determine the end of the transmission;
    /// 3. it is plain: it neither measures, captures, exchanges nor loses packets, and the wire has one
    ///    delay;
    /// 4. its discipline is transparent: otherwise RED would age its average, and PIE see a departure.
    pub(crate) fn fastest_tx_mode(&self) -> TxMode {
        if !holds(Bypass, 1, self.rate() > Rate::ZERO) {
            return TxMode::Stopped;
        }
        if !holds(Bypass, 2, self.trace.is_none() && self.aggregation.is_none()) {
            return TxMode::Opportunities;
        }
        if !holds(Bypass, 3, self.state.is_plain()) || !holds(Bypass, 4, self.state.is_transparent()) {
            return TxMode::Queued;
        }
        TxMode::Bypass
    }

    /// Whether a packet that arrives at `at`, before any other, is [sent](Self::receive) at that time without
    /// waiting (as TCQ_F_CAN_BYPASS of tc). Then it may arrive now, with that time: it changes only the
    /// transmitter, the wire and a count.
    ///
    /// 5. The mode (`tx_mode`) permits it.
    /// 6. Nothing waits; otherwise the packet would overtake it.
    /// 7. The last transmission has ended; otherwise there would be two at a time.
    #[must_use]
    #[inline(always)]
    pub fn can_bypass(&self, at: Time) -> bool {
        holds(Bypass, 5, self.tx_mode == TxMode::Bypass)
            && holds(Bypass, 6, matches!(self.transmitter, Transmitter::Idle | Transmitter::Draining))
            && holds(Bypass, 7, at >= self.free_at)
    }

    /// Whether a packet that arrives now, and has been measured, is sent without joining the queue: as
    /// [`can_bypass`](Self::can_bypass), for transmissions that involve more than a count.
    ///
    /// 1. Nothing waits and the last transmission has ended.
    /// 2. The discipline is transparent.
    /// 3. There is a rate.
    #[inline(always)]
    pub(crate) fn skips_queue(&self, now: Time) -> bool {
        let is_free =
            matches!(self.transmitter, Transmitter::Idle | Transmitter::Draining) && now >= self.free_at;
        holds(SkipQueue, 1, is_free)
            && holds(SkipQueue, 2, self.state.is_transparent())
            && holds(SkipQueue, 3, self.rate() > Rate::ZERO)
    }
}

/// Whether one event may stand for the transmissions of a link that end within the delay of its wire, the
/// *slack*.
///
/// The end of a transmission moves the next packet from the queue to the wire. This has no effect elsewhere
/// until that packet has crossed the wire: at least a slack later, also with jitter or in an aggregate. The
/// link itself, and readers of counters, first [catch up](Link::catch_up) with due transmissions. Late
/// processing is exact if
///
/// 1. the discipline affects its link alone: one that holds packets back, notifies sources or calls a program
///    does so at its time;
/// 2. labels are not exchanged: exchanges follow an issue from elsewhere until the packet is sent;
/// 3. nothing changes the link: a loss would begin too early, and after a shorter delay the slack would be
///    too long.
pub(crate) fn may_batch(link: &Link, is_changed: bool) -> bool {
    if !holds(Batch, 1, link.state.queue().allows_deferred_dequeue()) {
        return false;
    }
    if !holds(Batch, 2, link.state.exchanges().is_empty()) {
        return false;
    }
    holds(Batch, 3, !is_changed)
}

/// Whether packets may be passed to a link when the previous link begins to send them, each with its arrival
/// time.
///
/// They are passed in the order of their arrivals: a wire on which packets overtake others passes none early.
///
/// 1. All packets come from that link, none from others or from hosts: so those that arrive before that time
///    have been passed already.
/// 2. Nothing changes the link: it would send the packet as it is now, and not as it will be.
pub(crate) fn may_be_fed(has_others: bool, is_changed: bool) -> bool {
    if !holds(HandOver, 1, !has_others) {
        return false;
    }
    holds(HandOver, 2, !is_changed)
}

impl Link {
    /// Whether a packet whose transmission has begun on the previous link may be [received](Self::receive)
    /// now, with its arrival time. If not, it is expected later.
    ///
    /// 3. The link may be fed (`may_be_fed`).
    /// 4. The transmission has begun by `now`. A packet that a previous link sends later is [not
    ///    counted](Self::counts) as long as it is on its wire.
    /// 5. No other packet is expected: it would be overtaken.
    /// 6. The packet [bypasses the queue](Self::can_bypass): otherwise it would be queued too early.
    #[inline]
    pub fn takes_early(&mut self, now: Time, sent: &OnWire) -> bool {
        if !holds(HandOver, 3, self.is_fed) {
            return false;
        }
        let takes = holds(HandOver, 4, sent.begun <= now)
            && holds(HandOver, 5, self.expected == 0)
            && holds(HandOver, 6, self.can_bypass(sent.at));
        self.expected += u32::from(!takes);
        takes
    }
}

impl Hosts {
    /// Whether the first link of a way carries only the packets of one host, so that they may enter it before
    /// they leave the host.
    ///
    /// 1. One direction of one flow uses the link, and nothing changes it.
    /// 2. There is no choice at the first hop: otherwise packets may take another link than the path's first.
    /// 3. No routers exchange reports: their messages may use any link.
    pub(crate) fn owns_first_link(
        scenario: &Scenario,
        users: &[usize],
        (flow, path): (&Flow, &Path),
        has_routers: bool,
    ) -> bool {
        let Some(first) = path.first() else { return false };
        if !holds(LeaveEarly, 1, users[first.index()] == 1) {
            return false;
        }
        if !holds(LeaveEarly, 2, !scenario.chooses_first(flow, path)) {
            return false;
        }
        holds(LeaveEarly, 3, !has_routers)
    }
}

impl Link {
    /// Whether a packet that leaves its host at `at` may enter its first link now, with that time.
    ///
    /// 4. The host [owns](Hosts::owns_first_link) the link.
    /// 5. The packet [bypasses the queue](Link::can_bypass): otherwise it would be queued too early.
    ///
    /// The caller ensures that no other packet waits in the host, behind which this one would have to wait.
    pub(crate) fn may_leave_early(&self, owns_link: bool, at: Time) -> bool {
        holds(LeaveEarly, 4, owns_link) && holds(LeaveEarly, 5, self.can_bypass(at))
    }
}

impl Simulation<'_> {
    /// Determines the steps that links and hosts may take out of order, for the whole run.
    pub(crate) fn find_fast_paths(&mut self, ways: &[Way]) {
        if !Self::may_leave_order(self.routers.is_some(), false) {
            return;
        }
        let changed = changed_links(self.scenario);
        for (index, (feeder, &is_changed)) in
            feeders(changed.len(), ways).into_iter().zip(&changed).enumerate()
        {
            if may_batch(&self.links[index], is_changed) {
                self.links[index].enable_batching();
            }
            if let Some(from) = feeder.link
                && may_be_fed(feeder.others, is_changed)
            {
                self.links[index].set_fed();
                self.links[from as usize].set_feeder();
            }
        }
        self.find_early_deliveries(ways, &changed);
    }

    /// Determines the links whose packets may reach their hosts when the link begins to send them, each with
    /// its arrival time.
    ///
    /// A packet at the end of its flow affects the end of its connection, counters, and the link over which
    /// the host answers. Its own link has begun to send it, so later changes of that link do not affect it.
    /// Early delivery is exact if, for the whole run,
    ///
    /// 1. hosts take no time: an answer would come later than the packet, perhaps behind others;
    /// 2. no flow has marks: the issue of the host may change until then;
    /// 3. hosts answer over one link, which [`delivers_early`](Self::delivers_early) tests;
    /// 4. that link carries nothing else, which could precede the answer;
    /// 5. nothing changes that link: it would send the answer as it is now, and not as it will be.
    fn find_early_deliveries(&mut self, ways: &[Way], changed: &[bool]) {
        if !holds(EarlyDelivery, 1, self.hosts.take_no_time())
            || !holds(EarlyDelivery, 2, self.marks.is_empty())
        {
            return;
        }
        let until = self.answered_until(ways);
        for (link, [answers, origins]) in answering_links(changed.len(), ways).into_iter().enumerate() {
            let Some(over) = answers.link else { continue };
            if !holds(EarlyDelivery, 3, !answers.others)
                || !holds(EarlyDelivery, 4, origins.link == Some(link as u32) && !origins.others)
                || !holds(EarlyDelivery, 5, !changed[over as usize])
            {
                continue;
            }
            if until[link] > Time::ZERO {
                self.links[link].set_answers(over, until[link]);
            }
        }
    }

    /// For each link the time until which all its arrivals may be delivered early.
    fn answered_until(&self, ways: &[Way]) -> Vec<Time> {
        let users = users(self.scenario, ways);
        let mut until = vec![self.scenario.stop; self.links.len()];
        for way in ways {
            if let Some(last) = way.path.last() {
                let until = &mut until[last.index()];
                *until = (*until).min(self.sink_answers_until(way));
            }
            if let Some(last) = way.back.last() {
                let until = &mut until[last.index()];
                *until = (*until).min(self.source_answers_until(way, &users));
            }
        }
        until
    }

    /// The time until which sinks at the end of a way treat early packets the same; zero if never.
    ///
    /// 1. They answer at once, or not at all: another packet, or a timer, would find that the last
    ///    acknowledgement is due.
    /// 2. The data of their sources are unlimited and nothing waits for them: no other event begins when the
    ///    last of them arrives.
    /// 3. The flow does not stop: a connection that ends does not receive later arrivals.
    fn sink_answers_until(&self, way: &Way) -> Time {
        let flow = &self.scenario.flows[way.flow as usize];
        let waits = match &flow.transport {
            Transport::Tcp(params) => params.delayed_ack.is_some(),
            Transport::Quic(_) | Transport::Stack(_) => true,
            Transport::Udp { .. } => false,
        };
        if !holds(SinkAnswers, 1, !waits) {
            return Time::ZERO;
        }
        let ends = |workload: &Workload| {
            matches!(workload, Workload::File(_) | Workload::Web(_) | Workload::Media(_) | Workload::Arrived)
        };
        if !holds(SinkAnswers, 2, !self.workloads(way).any(ends)) {
            return Time::ZERO;
        }
        let (end, stop) = (self.scenario.stop, self.stop_of(flow));
        if holds(SinkAnswers, 3, stop >= end) { end } else { stop }
    }

    /// The time until which the source of a way treats early acknowledgements the same; zero if never.
    ///
    /// The source's packets enter its first link, which has sent everything that was
    /// [due](Link::transmit_until) before. So
    ///
    /// 1. the source is greedy: it acts on acknowledgements, on its timer, and when it starts and stops, and
    ///    not on writes;
    /// 2. it is one connection; otherwise others could send in between;
    /// 3. nothing else uses the first link, or changes it;
    /// 4. the flow does not stop: then nothing is sent.
    ///
    /// Never if the first link is the last one as well. This does not concern results: data that reach their
    /// sink at once return as an acknowledgement, and one event would carry the connection to the next time
    /// at which something is counted.
    fn source_answers_until(&self, way: &Way, users: &[usize]) -> Time {
        let (Some(first), flow) = (way.path.first(), &self.scenario.flows[way.flow as usize]) else {
            return self.scenario.stop;
        };
        if !holds(SourceAnswers, 1, self.workloads(way).all(|workload| matches!(workload, Workload::Greedy)))
        {
            return Time::ZERO;
        }
        if !holds(SourceAnswers, 2, self.members(way.flow as usize).len() == 1) {
            return Time::ZERO;
        }
        if !holds(SourceAnswers, 3, users[first.index()] == 1) {
            return Time::ZERO;
        }
        if way.path.len() == 1 {
            return Time::ZERO;
        }
        let (end, stop) = (self.scenario.stop, self.stop_of(flow));
        if holds(SourceAnswers, 4, stop >= end) { end } else { stop }
    }

    fn workloads(&self, way: &Way) -> impl Iterator<Item = &Workload> {
        self.members(way.flow as usize).map(|member| &self.connections[member as usize].workload)
    }

    fn stop_of(&self, flow: &Flow) -> Time {
        flow.stop.unwrap_or(self.scenario.stop)
    }

    /// Whether a packet whose route ends with `end` behind `link` may be delivered to its host now.
    /// `is_first`: none is on the wire before it.
    ///
    /// 6. Hosts behind the link [answer early](Self::find_early_deliveries) until it arrives.
    /// 7. Deliveries are not counted before: it would be counted too early.
    /// 8. No timer of a source expires before: it would find the acknowledgement.
    /// 9. The answer [bypasses the queue](Link::can_bypass) of its link, once earlier due packets have been
    ///    sent.
    /// 10. No packet is on the wire before it: that one would reach its host later.
    #[inline(always)]
    pub(crate) fn delivers_early(&mut self, link: u32, end: u32, sent: &OnWire, is_first: bool) -> bool {
        let Some((answers, until)) = self.links[link as usize].answers() else { return false };
        if !holds(EarlyDelivery, 10, is_first)
            || !holds(EarlyDelivery, 6, sent.at < until)
            || !holds(EarlyDelivery, 7, sent.at < self.next_count)
        {
            return false;
        }
        if end == SOURCE {
            let connection = &self.connections[self.connection_of(sent.packet) as usize];
            if !holds(EarlyDelivery, 8, sent.at < connection.armed) {
                return false;
            }
            self.links[answers as usize].transmit_until(sent.at, &mut self.shared);
        }
        holds(EarlyDelivery, 9, self.links[answers as usize].can_bypass(sent.at))
    }

    /// Determines whether hosts send packets at once and unchanged, and whether ends of TCP may answer [in
    /// place](crate::in_place).
    ///
    /// 1. No host takes time.
    /// 2. No flow has marks.
    /// 3. Each packet names its real transport.
    pub(crate) fn find_plain_hosts(&mut self) {
        self.hosts_are_plain = holds(PlainHosts, 1, self.hosts.take_no_time())
            && holds(PlainHosts, 2, self.marks.is_empty())
            && holds(PlainHosts, 3, self.protocols.is_empty());
        // If every sink delays its ACKs and every sender keeps a record of its segments, none would answer in
        // place.
        let would = |transport: &Transport| match transport {
            Transport::Tcp(params) => {
                params.delayed_ack.is_none() || params.sack_recovery != SackRecovery::Rack
            }
            Transport::Quic(_) | Transport::Stack(_) | Transport::Udp { .. } => false,
        };
        let some = self.scenario.flows.iter().any(|flow| would(&flow.transport));
        self.answers_in_place = holds(InPlace, 4, self.hosts_are_plain) && some;
    }
}

/// Whether a packet that arrives at the sink of a connection may be answered [in place](crate::in_place):
/// returns the place of its TCP, whose receiver decides finally.
///
/// 4. Hosts are [plain](Simulation::find_plain_hosts).
/// 5. Nothing waits for the arriving data, as the end of a file and the next page do. (The data that an
///    acknowledgement releases need no such condition: the sender itself reports that they have no end.)
#[inline(always)]
pub(crate) fn may_answer_in_place(connection: &Connection) -> Option<u32> {
    let TransportState::Open(place) = connection.transport else { return None };
    holds(InPlace, 5, matches!(connection.workload, Workload::Greedy)).then_some(place)
}
