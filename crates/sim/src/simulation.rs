//! One run of a scenario: the loop that moves packets and connections.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use apportion_core::Packet as _;
use apportion_core::packet::{Ecn, LabelKind, Protocol};
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};
use apportion_runtime::connections::{Numbers, Workload};
use apportion_runtime::flow_tables::FlowTables;
use apportion_runtime::marks::Marks;
use apportion_runtime::outcome::{Completion, Failures};
use apportion_runtime::probe::FlowProbe;
use apportion_scenario::model::Scenario;

use crate::capture::CaptureError;
use crate::connection::{Command, Connection, Quics, Stacks, Tcp, Tcps, TransportState};
use crate::events::Event;
use crate::hosts::Hosts;
use crate::link::Link;
use crate::measure::Baseline;
use crate::outlet::Outlet;
use crate::packet::{Body, Direction, Header, Packet};
use crate::pending_notices::PendingNotices;
use crate::router::Routers;
use crate::shared_state::SharedState;
use crate::tcp::{Receiver, Sender};
use crate::web_flow::{ISN, WebFlow};
use crate::wire::HandedOver;

/// Ends a route: the packet has reached the sink of its flow.
pub(crate) const SINK: u32 = u32::MAX;
/// Ends a route: the packet has reached the source of its flow.
pub(crate) const SOURCE: u32 = u32::MAX - 1;
/// Ends a route: the packet is a message to the router at the end of its last link.
pub(crate) const ROUTER: u32 = u32::MAX - 2;
/// The number of events between checks for cancellation and reports of progress.
const CHECK: u64 = 1 << 16;

/// A run of a scenario.
#[derive(Debug)]
pub struct Simulation<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) seed: u64,
    pub(crate) links: Vec<Link>,
    pub(crate) shared: SharedState<'a>,
    /// Links in order for each distinct path, each path ended by [`SINK`], [`SOURCE`] or [`ROUTER`].
    pub(crate) routes: Vec<u32>,
    pub(crate) connections: Vec<Connection>,
    /// The TCP states of open connections.
    pub(crate) tcps: Tcps,
    /// The QUIC states of open connections.
    pub(crate) quics: Quics,
    /// The state of open connections of stacks from outside.
    pub(crate) stacks: Stacks,
    /// Their connections that failed, by flow.
    pub(crate) failures: BTreeMap<u32, Failures>,
    /// The connections and ids of flows.
    pub(crate) numbers: Numbers,
    /// Whether some connections share an id; if none do, connections and ids have the same numbers.
    pub(crate) ids_are_shared: bool,
    /// The parameters of flows that disciplines need, for queues that are built during the run.
    pub(crate) tables: FlowTables,
    /// Markers by id; empty if no flow has any.
    pub(crate) marks: Vec<Option<Box<Marks>>>,
    /// The protocol fields of packets, by id; empty if each names its real transport.
    pub(crate) protocols: Vec<Protocol>,
    /// The routers that exchange reports; none if no queue does.
    pub(crate) routers: Option<Box<Routers<'a>>>,
    /// A probe for each flow of the scenario; empty if they are not measured.
    pub(crate) probes: Vec<FlowProbe>,
    /// Completions with the flow of the scenario, in order of time.
    pub(crate) completions: Vec<(u32, Completion)>,
    /// Completions before the measured part; empty if all of the run is measured.
    pub(crate) earlier: Vec<(u32, Completion)>,
    /// Flows of web pages, in the scenario's order.
    pub(crate) webs: Vec<WebFlow>,
    pub(crate) baseline: Option<Box<Baseline>>,
    /// Overload notifications on their way to sources.
    pub(crate) notices: PendingNotices,
    /// The packets that wait in hosts.
    pub(crate) hosts: Hosts,
    /// Whether hosts take no time and write only transport headers into packets.
    pub(crate) hosts_are_plain: bool,
    /// Whether some ends of TCP answer [in place](crate::in_place).
    pub(crate) answers_in_place: bool,
    /// Whether a flow has a send buffer, which may block its application.
    pub(crate) may_block: bool,
    /// Whether it [prefetches](crate::prefetch) the state of packets.
    pub(crate) prefetches: bool,
    /// Packets that an end of a connection sends, on their way to its first link.
    pub(crate) outbox: Vec<Packet>,
    /// The end of the pending sample interval; none if there are no samples.
    pub(crate) next_sample: Option<Time>,
    /// The next time at which deliveries are counted.
    pub(crate) next_count: Time,
    /// The end of the run: the end of the scenario, unless it is cut.
    pub(crate) end: Time,
    pub(crate) events_handled: u64,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// At the end of the scenario.
    Whole,
    /// Before the end, with measurements until then.
    Cut(Time),
    /// Before the end, without usable results.
    Cancelled,
}

impl Simulation<'_> {
    /// Runs to the end of the scenario. Returns false if `cancel` was set before: an observer may then have
    /// missed events.
    pub fn run(&mut self, cancel: &AtomicBool) -> bool {
        self.run_with(cancel, &|_| (), &|_| false) == Ending::Whole
    }

    /// Runs as [`run`](Self::run) does, and calls `reached` at intervals with the simulated time. When
    /// `cancel` is set, `cuts` decides for that time whether the run ends with the next sample and keeps its
    /// measurements; a run without samples does not.
    pub fn run_with(
        &mut self,
        cancel: &AtomicBool,
        reached: &dyn Fn(Time),
        cuts: &dyn Fn(Time) -> bool,
    ) -> Ending {
        let (mut end, mut is_cut) = (self.end, false);
        while let Some((now, event)) = self.shared.events.pop(end) {
            self.handle(now, event);
            self.events_handled += 1;
            if self.events_handled.is_multiple_of(CHECK) {
                if !is_cut && cancel.load(Ordering::Relaxed) {
                    is_cut = self.next_sample.is_some() && cuts(now);
                    if !is_cut {
                        return Ending::Cancelled;
                    }
                    // Deliveries before the next count may have been counted.
                    end = self.next_count;
                    self.end = end;
                }
                reached(now);
            }
        }
        self.end_run();
        match is_cut {
            true => Ending::Cut(self.end),
            false if cancel.load(Ordering::Relaxed) => Ending::Cancelled,
            false => Ending::Whole,
        }
    }

    #[inline(always)]
    fn handle(&mut self, now: Time, event: Event) {
        match event {
            Event::Arrival(link) => self.arrive(now, link),
            Event::Overtaking(link) => self.arrive_apart(now, link),
            Event::Ready(link) => self.links[link as usize].ready(&mut self.shared),
            Event::Wakeup(link) => self.links[link as usize].wakeup(now, &mut self.shared),
            Event::Timer(connection) => self.timer(now, connection),
            Event::Write(connection) => self.write(now, connection),
            Event::Media(connection) => self.media_timer(now, connection),
            Event::Start(connection) => self.start(now, connection),
            Event::Stop(connection) => self.stop(now, connection),
            Event::Change(index) => self.change(now, index),
            Event::Router(index) => self.manage(now, index),
            Event::Departure(host) => self.depart(now, host),
            Event::Notice => self.deliver_notices(now),
            Event::Measure => self.begin_measuring(now),
            Event::Sample => self.sample(now),
        }
        if !self.shared.handed_over.is_empty() {
            self.hand_over(now);
        }
        if !self.shared.overloads.is_empty() {
            self.send_notices(now);
        }
    }

    // Packets

    fn arrive(&mut self, now: Time, link: u32) {
        let from = &mut self.links[link as usize];
        if from.answers().is_some() {
            return self.arrive_with_others(now, link);
        }
        let Some(packet) = from.take_arrival(&mut self.shared) else { return };
        if self.prefetches {
            self.prefetch_along_wire(link);
        }
        self.pass_on(now, link, packet.at_next_hop());
    }

    /// A packet arrives over a link that may deliver early: packets behind it, which could not be delivered
    /// early, now may.
    #[inline(never)]
    fn arrive_with_others(&mut self, now: Time, link: u32) {
        let Some(sent) = self.links[link as usize].take_off_wire() else { return };
        if self.prefetches {
            self.prefetch_along_wire(link);
        }
        self.pass_on(now, link, sent.packet.at_next_hop());
        while let Some(&sent) = self.links[link as usize].first_on_wire() {
            let packet = sent.packet.at_next_hop();
            let end = self.routes[packet.hop() as usize];
            if !matches!(end, SINK | SOURCE) || !self.delivers_early(link, end, &sent, true) {
                break;
            }
            self.links[link as usize].take_off_wire();
            self.deliver(sent.at, end, packet);
        }
        self.links[link as usize].await_arrival(&mut self.shared);
    }

    /// The first packet arrives on a wire where each packet has its own event.
    #[inline(never)]
    fn arrive_apart(&mut self, now: Time, link: u32) {
        let Some(sent) = self.links[link as usize].take_off_wire() else { return };
        self.pass_on(now, link, sent.packet.at_next_hop());
    }

    /// A packet continues from the end of a link; its hop is the next one already.
    #[inline(always)]
    pub(crate) fn pass_on(&mut self, now: Time, link: u32, packet: Packet) {
        match self.routes[packet.hop() as usize] {
            SINK => self.deliver_to_sink(now, packet),
            SOURCE => self.deliver_to_source(now, packet),
            ROUTER => self.receive_message(now, link, packet, true),
            _ if packet.protocol() == Protocol::Control => self.receive_message(now, link, packet, false),
            next => {
                self.links[next as usize].note_arrived();
                self.enter(now, next, packet);
            }
        }
    }

    /// Gives packets whose transmission has begun to their next link or host, if that can take them with
    /// their arrival time, or else to the wire. All are of one link, or of links of which none leads to
    /// another.
    pub(crate) fn hand_over(&mut self, now: Time) {
        // Answers of hosts at the end of a link are added in turn.
        let mut done = 0;
        while let Some(&HandedOver { mut sent, mut link }) = self.shared.handed_over.get(done) {
            done += 1;
            if self.prefetches {
                self.prefetch_behind(link, done);
            }
            loop {
                let packet = sent.packet.at_next_hop();
                let end = self.routes[packet.hop() as usize];
                if let Some(next) = self.links.get_mut(end as usize) {
                    if next.takes_early(now, &sent) {
                        (sent, link) = (next.bypass(sent.at, packet), end);
                        continue;
                    }
                } else {
                    let is_first = self.links[link as usize].first_on_wire().is_none();
                    if self.delivers_early(link, end, &sent, is_first) {
                        self.deliver(sent.at, end, packet);
                        break;
                    }
                }
                if self.prefetches {
                    // On a short wire no other packet is far enough before it to prefetch for it.
                    self.prefetch_of(packet);
                }
                self.links[link as usize].put_on_wire(sent, &mut self.shared);
                break;
            }
        }
        self.shared.handed_over.clear();
    }

    /// Handles the arrival of a packet at a link.
    #[inline(always)]
    pub(crate) fn enter(&mut self, now: Time, link: u32, packet: Packet) {
        let to = &mut self.links[link as usize];
        to.receive(now, packet, &mut self.shared);
        if !to.state.is_plain() && packet.label(LabelKind::AckTickets).is_some() {
            self.issue_other_way(now, link);
        }
    }

    /// Receiver-based tickets: the tickets of acknowledgements on `link` are issued to its other direction.
    fn issue_other_way(&mut self, now: Time, link: u32) {
        let other_way = self.scenario.links[link as usize].other_way;
        let rate = self.links[link as usize].state.take_ack_ticket_rate();
        if let (Some(tickets), Some(other_way)) = (rate, other_way) {
            self.links[other_way.index()].state.set_tickets(now, tickets);
        }
    }

    /// A packet reaches its host at the end of its route, the sink or the source of its flow.
    #[inline]
    fn deliver(&mut self, now: Time, end: u32, packet: Packet) {
        if end == SINK { self.deliver_to_sink(now, packet) } else { self.deliver_to_source(now, packet) }
    }

    #[inline(never)]
    pub(crate) fn deliver_to_sink(&mut self, now: Time, packet: Packet) {
        let index = self.connection_of(packet);
        self.shared.counters.delivered(packet.flow(), packet.size());
        if !self.probes.is_empty() {
            let flow = self.connections[index as usize].flow;
            let sent = self.shared.store.get(packet.body()).sent;
            self.probes[flow as usize].delay.record(now.since(sent));
        }
        if self.answers_in_place && self.answer_in_place(now, index, packet) {
            return;
        }
        // Copies the segment only.
        let Header::Tcp(segment) = self.shared.store.get(packet.body()).header else {
            return self.deliver_datagram(now, index, packet);
        };
        self.act(now, index, Direction::Reverse, Some(packet.body()), |tcp, outlet| {
            tcp.receiver.on_segment(now, &segment, packet.ecn(), outlet);
        });
    }

    /// A packet other than TCP's reaches the end of its flow.
    #[inline(never)]
    fn deliver_datagram(&mut self, now: Time, index: u32, packet: Packet) {
        let &Body { sent, header, .. } = self.shared.store.get(packet.body());
        if let Header::Stack = header {
            return self.deliver_to_stack(now, index, packet);
        }
        self.shared.store.remove(packet.body());
        match header {
            Header::Rtp(number) => self.receive_rtp(now, index, number, sent, packet.size()),
            Header::Quic(sent) => self.deliver_quic_to_sink(now, index, &sent, packet),
            _ => (),
        }
    }

    #[inline(never)]
    pub(crate) fn deliver_to_source(&mut self, now: Time, packet: Packet) {
        let index = self.connection_of(packet);
        if self.answers_in_place && self.advance_in_place(now, index, packet) {
            if self.may_block {
                self.unblock(now, index);
            }
            return;
        }
        // Copies the segment only.
        let body = self.shared.store.get(packet.body());
        let Header::Tcp(segment) = body.header else {
            let (sent, header) = (body.sent, body.header);
            match header {
                Header::Quic(_) => return self.deliver_quic_to_source(now, index, packet),
                Header::Stack => return self.deliver_to_stack(now, index, packet),
                _ => (),
            }
            self.shared.store.remove(packet.body());
            return self.receive_feedback(now, index, sent, header);
        };
        if !self.marks.is_empty()
            && let Some(Some(marks)) = self.marks.get_mut(packet.flow().index())
            && let TransportState::Open(place) = self.connections[index as usize].transport
            && let Some(tcp) = self.tcps.get(place)
        {
            marks.acknowledged(now, &packet, tcp.sender.newly_acknowledged(&segment));
        }
        self.act(now, index, Direction::Forward, Some(packet.body()), |tcp, outlet| {
            tcp.sender.on_segment(now, &segment, outlet);
        });
        if self.may_block {
            self.unblock(now, index);
        }
    }

    /// The connection of a packet.
    pub(crate) fn connection_of(&self, packet: Packet) -> u32 {
        if self.ids_are_shared { self.connection_in_body(packet) } else { packet.flow().0 }
    }

    /// A call, so that the compiler makes a jump of the choice above and not a conditional move: with a move,
    /// the connection and its TCP would wait for the body in every scenario, three misses in sequence.
    #[inline(never)]
    fn connection_in_body(&self, packet: Packet) -> u32 {
        self.shared.store.get(packet.body()).connection
    }

    /// Passes a packet of a connection to its host, or to its first link if hosts take no time.
    #[inline(always)]
    pub(crate) fn inject(&mut self, now: Time, connection: u32, packet: Packet) {
        if packet.direction() == Direction::Forward {
            self.shared.counters.sent(packet.flow(), packet.size());
        }
        if self.hosts_are_plain {
            self.enter(now, self.routes[packet.hop() as usize], packet);
        } else {
            self.inject_later(now, connection, packet);
        }
    }

    /// Injects as [`inject`](Self::inject) does, if hosts take time or write into packets.
    #[inline(never)]
    fn inject_later(&mut self, now: Time, connection: u32, packet: Packet) {
        let packet = self.label(now, packet);
        let link = self.routes[packet.hop() as usize];
        if self.hosts.take_no_time() {
            return self.enter(now, link, packet);
        }
        let (flow, first) = (self.connections[connection as usize].flow, &mut self.links[link as usize]);
        if let Some(packet) = self.hosts.send(now, flow, packet, first, &mut self.shared) {
            self.enter(now, link, packet);
        }
    }

    /// Writes the host's additions to the transport header into a packet.
    fn label(&mut self, now: Time, mut packet: Packet) -> Packet {
        if let Some(Some(marks)) = self.marks.get_mut(packet.flow().index()) {
            match packet.direction() {
                Direction::Forward => marks.mark(now, &mut packet),
                Direction::Reverse => marks.mark_ack(now, &mut packet),
            }
        }
        match self.protocols.get(packet.flow().index()) {
            Some(&protocol) => packet.carrying(protocol),
            None => packet,
        }
    }

    /// A packet that waited in its host enters its first link.
    fn depart(&mut self, now: Time, host: u32) {
        if let Some(packet) = self.hosts.depart(now, host, &mut self.shared) {
            self.enter(now, self.routes[packet.hop() as usize], packet);
        }
    }

    /// Lets one end of a connection act, if it is open: its packets leave through the outlet, its timer is
    /// armed, and the connection ends if it is done. `spare` is the place of the body of the received packet.
    pub(crate) fn act(
        &mut self,
        now: Time,
        index: u32,
        direction: Direction,
        spare: Option<u32>,
        act: impl FnOnce(&mut Tcp, &mut Outlet<'_>),
    ) {
        let connection = &self.connections[index as usize];
        let (id, hop) = (connection.id, connection.first_hop(direction));
        let open = if let TransportState::Open(place) = connection.transport {
            self.tcps.get_mut(place)
        } else {
            None
        };
        let Some(tcp) = open else {
            spare.into_iter().for_each(|body| self.shared.store.remove(body));
            return;
        };
        let (store, packets) = (&mut self.shared.store, &mut self.outbox);
        let header = Packet::new(0, id, hop, Bytes::ZERO, Ecn::NotEct, direction).carrying(Protocol::Tcp);
        let mut outlet = Outlet { now, connection: index, header, spare, store, packets };
        act(tcp, &mut outlet);
        if let Some(body) = outlet.spare {
            outlet.store.remove(body);
        }

        // Only the end that acted can have moved its timer or finished; with many flows, reading the other
        // would miss the cache.
        let (due, done) = match direction {
            Direction::Forward => (tcp.sender.next_timer(), tcp.sender.is_done()),
            Direction::Reverse => (tcp.receiver.next_timer(), false),
        };
        self.conclude(now, index, direction, due, done);
    }

    /// One end of a connection has acted: its next call is `due`, and it may be `done`.
    #[inline(always)]
    pub(crate) fn conclude(
        &mut self,
        now: Time,
        index: u32,
        direction: Direction,
        due: Option<Time>,
        done: bool,
    ) {
        let connection = &mut self.connections[index as usize];
        // The armed event stays if it is early enough: it finds nothing due and arms itself again. A timer
        // that moves with every acknowledgement thus costs an event per timeout, not one per acknowledgement.
        if let Some(due) = due.filter(|&due| due < connection.armed) {
            connection.armed = due;
            self.shared.events.schedule(now, due, Event::Timer(index));
        }
        // The data of a greedy source never end.
        let is_watched = direction == Direction::Reverse && !matches!(connection.workload, Workload::Greedy);
        if is_watched {
            self.note_transfer(now, index);
        }
        for at in 0..self.outbox.len() {
            self.inject(now, index, self.outbox[at]);
        }
        self.outbox.clear();
        if done {
            self.end(index);
        }
        if is_watched {
            self.receive_objects(now, index);
        }
    }

    /// Data may have arrived at the sink of a connection with a finite workload.
    #[inline(never)]
    fn note_transfer(&mut self, now: Time, index: u32) {
        match self.connections[index as usize].workload {
            Workload::File(_) => self.note_completion(now, index),
            Workload::Media(_) => self.note_delivered(now, index),
            _ => (),
        }
    }

    /// Notes the complete arrival of a file.
    fn note_completion(&mut self, now: Time, index: u32) {
        if let Workload::File(size) = self.connections[index as usize].workload
            && self.delivered(index).is_some_and(|bytes| bytes >= size.get())
        {
            let connection = &mut self.connections[index as usize];
            connection.workload = Workload::Arrived;
            let completion = Completion { start: connection.start, took: now.since(connection.start), size };
            self.completions.push((connection.flow, completion));
        }
    }

    // Connections

    /// The connections of a flow of the scenario.
    pub(crate) fn members(&self, flow: usize) -> Range<u32> {
        self.numbers.members(flow)
    }

    /// The flow ids of its connections, for disciplines.
    pub(crate) fn ids(&self, flow: usize) -> Range<u32> {
        self.numbers.ids(flow)
    }

    /// Creates both ends of a closed connection, which starts at `isn`.
    pub(crate) fn open(&mut self, index: u32, isn: u32) {
        let connection = &mut self.connections[index as usize];
        if let TransportState::Closed(params) = &connection.transport {
            // Coarse clocks of hosts do not tick in step.
            let flow = &self.scenario.flows[connection.flow as usize];
            let member = index - self.numbers.members(connection.flow as usize).start;
            let mut clock = Stream::named(self.seed, format_args!("flow.{}.clock.{member}", flow.stream()));
            let phase = Span::from_nanos(clock.below(params.tick.as_nanos().max(1)));
            let sender = Sender::new(Arc::clone(params), isn).with_clock_phase(phase);
            let receiver = Receiver::new(Arc::clone(params), isn);
            connection.transport = TransportState::Open(self.tcps.insert(Tcp { sender, receiver }));
        }
    }

    fn start(&mut self, now: Time, index: u32) {
        if let Workload::Web(web) = self.connections[index as usize].workload {
            return self.start_users(now, index, web);
        }
        if self.prefetches {
            self.prefetch_timers();
        }
        self.open(index, ISN);
        self.open_quic(index);
        self.open_stack(index);
        let commands: &[Command] = match self.connections[index as usize].workload {
            Workload::Greedy => &[Command::Start, Command::SupplyUnlimited],
            Workload::File(size) => &[Command::Start, Command::Supply(size.get()), Command::Close],
            Workload::Writes(_) | Workload::Web(_) | Workload::Media(_) | Workload::Arrived => {
                &[Command::Start]
            }
        };
        self.command(now, index, commands);
        self.next_write(now, index);
        self.media_timer(now, index);
        let flow = &self.scenario.flows[self.connections[index as usize].flow as usize];
        let stop = flow.stop.unwrap_or(self.scenario.stop);
        self.shared.events.schedule(now, stop, Event::Stop(index));
    }

    fn stop(&mut self, now: Time, index: u32) {
        self.command(now, index, &[Command::Close]);
    }

    fn timer(&mut self, now: Time, index: u32) {
        if self.prefetches {
            self.prefetch_timers();
        }
        let connection = &mut self.connections[index as usize];
        if connection.armed != now {
            return;
        }
        connection.armed = Time::MAX;
        match connection.transport {
            TransportState::OpenQuic(_) => return self.quic_timer(now, index),
            TransportState::OpenStack(_) => return self.stack_timer(now, index),
            _ => (),
        }
        self.act(now, index, Direction::Reverse, None, |tcp, outlet| {
            if tcp.receiver.next_timer().is_some_and(|at| at <= now) {
                tcp.receiver.on_timer(now, outlet);
            }
        });
        self.act(now, index, Direction::Forward, None, |tcp, outlet| {
            if tcp.sender.next_timer().is_some_and(|at| at <= now) {
                tcp.sender.on_timer(now, outlet);
            }
        });
    }

    /// Completes the captures of all links.
    ///
    /// # Errors
    /// If one could not be written.
    pub fn finish_captures(&mut self) -> Result<(), CaptureError> {
        let captures = std::mem::take(&mut self.shared.captures);
        captures.into_iter().flatten().try_for_each(|capture| capture.finish())
    }
}
