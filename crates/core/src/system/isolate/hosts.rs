//! Hosts, their flows and the packets of these; and the tokens that stand for packets in the discipline.

use alloc::vec::Vec;

use super::Isolate;
use super::longest::Longest;
use crate::list::{Link, Linked, List, PacketQueue, Pool};
use crate::packet::{Ecn, FlowId, HostPair, LabelKind, Packet, SimplePacket};
use crate::queue::Backlog;
use crate::schedule::drr::{Quanta, scaled};
use crate::schedule::{End, Queued};
use crate::units::{Bytes, Time, Weight};

/// Ends of a flow: its source and its destination.
const ENDS: usize = 2;
/// Hosts that the waiting packets of a flow can belong to: it may change from one to another while packets wait.
const SEATS: usize = 2;

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    queue: PacketQueue,
    hosts: HostPair,
    weight: Weight,
}

/// A flow at a host: how many of its packets belong to that host, and its turn among the flows there. Those of a flow
/// stand next to each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seat {
    /// In the round of the host.
    link: Link,
    /// Bytes per weight.
    pub length: f64,
    /// Its place in the heap of the host.
    pub place: u32,
    /// The host, while there are packets.
    host: u32,
    packets: u32,
    /// Of these packets. Packets of a flow leave in order, by the turn of either host: with packets at two hosts, this
    /// is what came less what left, and the sum over both is right.
    bytes: i64,
    /// As in DRR.
    deficit: u64,
}

impl Linked for Seat {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// A host as a source, or as a destination.
#[derive(Clone, Debug)]
struct Host {
    /// Seats with packets, in turn.
    round: List,
    /// Whether the seat at the front has had its quantum of this turn.
    in_turn: bool,
    longest: Longest,
    /// Tokens in the discipline, in order of arrival.
    tokens: List,
    /// Flows that are backlogged and have this end, whichever end their packets belong to.
    load: u32,
    /// Marks that wait for a packet that is ECN-capable.
    marks: u32,
    /// Bytes that its next tokens must have in addition to their packets: what was dropped of tokens less what was dropped
    /// of packets.
    carry: i64,
}

const IDLE: Host = Host {
    round: List::EMPTY,
    in_turn: false,
    longest: Longest::EMPTY,
    tokens: List::EMPTY,
    load: 0,
    marks: 0,
    carry: 0,
};

/// The place of a token among those of its host.
#[derive(Clone, Copy, Debug)]
struct Token {
    link: Link,
}

impl Linked for Token {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// All hosts behind a link.
#[derive(Debug)]
pub(super) struct Hosts<P> {
    isolate: Isolate,
    hosts: Vec<Host>,
    flows: Vec<Flow>,
    seats: Vec<Seat>,
    tokens: Vec<Token>,
    free_tokens: Vec<u32>,
    packets: Pool<P>,
    backlog: Backlog,
    /// The smallest weight of a flow. Its turn is worth the largest packet.
    smallest_weight: Weight,
    /// Sizes of the smallest and the largest packet so far.
    sizes: Option<(Bytes, Bytes)>,
}

impl<P: Packet> Hosts<P> {
    pub const fn new(isolate: Isolate, smallest_weight: Weight) -> Self {
        Self {
            isolate,
            hosts: Vec::new(),
            flows: Vec::new(),
            seats: Vec::new(),
            tokens: Vec::new(),
            free_tokens: Vec::new(),
            packets: Pool::new(),
            backlog: Backlog::EMPTY,
            smallest_weight,
            sizes: None,
        }
    }

    pub const fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) {
        let at = self.flow(flow);
        self.flows[at].weight = weight;
        for seat in SEATS * at..SEATS * (at + 1) {
            self.weigh(seat);
        }
    }

    pub fn set_hosts(&mut self, flow: FlowId, hosts: HostPair) {
        let at = self.flow(flow);
        let is_backlogged = !self.flows[at].queue.is_empty();
        if is_backlogged {
            self.count_flow(at, false);
        }
        self.flows[at].hosts = hosts;
        if is_backlogged {
            self.count_flow(at, true);
        }
    }

    /// Takes a packet in. The token that stands for it.
    pub fn admit(&mut self, now: Time, packet: P) -> SimplePacket {
        let flow = self.flow(packet.flow());
        let (smallest, largest) = self.sizes.unwrap_or((packet.size(), packet.size()));
        let sizes = (smallest.min(packet.size()), largest.max(packet.size()));
        self.sizes = Some(sizes);
        if self.flows[flow].weight < self.smallest_weight {
            self.smallest_weight = self.flows[flow].weight;
        }
        let seat = self.seat(flow);
        let host = self.seats[seat].host;
        let token = self.issue(host as usize, &packet, sizes);
        let was_idle = self.flows[flow].queue.is_empty();
        self.backlog.add(&packet);
        self.seats[seat].packets += 1;
        self.seats[seat].bytes += signed(packet.size());
        self.flows[flow].queue.push(&mut self.packets, Queued { packet, arrived: now });
        if self.seats[seat].packets == 1 {
            let host = &mut self.hosts[host as usize];
            host.round.push_back(&mut self.seats, seat);
            self.seats[seat].length = self.flows[flow].length(&self.seats[seat]);
            host.longest.insert(&mut self.seats, seat);
        } else {
            self.weigh(seat);
        }
        if was_idle {
            self.count_flow(flow, true);
        }
        token
    }

    /// The next packet of the host of a token that the discipline has served.
    pub fn serve(&mut self, token: &SimplePacket) -> Option<P> {
        let (host, _) = self.take_back(token)?;
        let seat = self.turn(host)?;
        let packet = self.remove(seat, End::Head)?;
        if self.seats[seat].packets > 0 {
            self.seats[seat].deficit -= scaled(packet.size());
        }
        Some(packet)
    }

    /// Whether `packet`, which leaves by `token`, is to be marked.
    pub fn marks(&mut self, token: &SimplePacket, packet: &P) -> bool {
        let host = &mut self.hosts[token.flow.index()];
        if token.ecn == Ecn::Ce {
            host.marks = host.marks.saturating_add(1);
        }
        let marks = host.marks > 0 && packet.ecn().is_capable();
        host.marks -= u32::from(marks);
        marks
    }

    /// The packet that is dropped for a token that the discipline has dropped.
    pub fn drop_for(&mut self, token: &SimplePacket) -> Option<P> {
        let (host, end) = self.take_back(token)?;
        let seat = self.hosts[host].longest.first()?;
        let packet = self.remove(seat, end)?;
        self.hosts[host].carry += signed(token.size) - signed(packet.size());
        Some(packet)
    }

    /// The memory of flows and hosts; that of packets and tokens is apart.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let heaps: usize = self.hosts.iter().map(|host| host.longest.bytes()).sum();
        let (flows, seats) = (self.flows.capacity(), self.seats.capacity());
        flows * size_of::<Flow>()
            + seats * size_of::<Seat>()
            + self.hosts.capacity() * size_of::<Host>()
            + heaps
    }

    /// The place of a flow, which may be new.
    fn flow(&mut self, id: FlowId) -> usize {
        if id.slot() >= self.flows.len() {
            let idle = Flow { queue: PacketQueue::EMPTY, hosts: HostPair::default(), weight: Weight::ONE };
            let seat =
                Seat { link: Link::NONE, length: 0.0, place: 0, host: 0, packets: 0, bytes: 0, deficit: 0 };
            self.flows.resize(id.slot() + 1, idle);
            self.seats.resize(SEATS * self.flows.len(), seat);
        }
        id.slot()
    }

    /// The numbers of the hosts of a flow: the ends have numbers of their own.
    fn ends(&mut self, flow: usize) -> [usize; ENDS] {
        let HostPair { source, destination } = self.flows[flow].hosts;
        let ends = match self.isolate {
            Isolate::Both => [(source, 0), (destination, 1)].map(|(host, end)| {
                let host = host as usize % (FlowId::SLOTS / ENDS);
                ENDS * host + end
            }),
            Isolate::Source | Isolate::Destination => [source, destination].map(|host| FlowId(host).slot()),
        };
        let most = ends[0].max(ends[1]);
        if most >= self.hosts.len() {
            self.hosts.resize(most + 1, IDLE);
        }
        ends
    }

    /// The seat that a packet of `flow` belongs to now.
    fn seat(&mut self, flow: usize) -> usize {
        let ends = self.ends(flow);
        let end = match self.isolate {
            Isolate::Source => 0,
            Isolate::Destination => 1,
            Isolate::Both => usize::from(self.hosts[ends[1]].load > self.hosts[ends[0]].load),
        };
        // At most `FlowId::SLOTS`.
        let host = ends[end] as u32;
        let own = SEATS * flow..SEATS * (flow + 1);
        let is_there = |seat: &usize| self.seats[*seat].packets > 0 && self.seats[*seat].host == host;
        if let Some(seat) = own.clone().find(is_there) {
            return seat;
        }
        let free = own.clone().find(|seat| self.seats[*seat].packets == 0);
        if let Some(seat) = free {
            self.seats[seat].host = host;
        }
        // A flow that changes twice while packets wait stays where it is until the first have left.
        free.unwrap_or(own.start)
    }

    /// Counts a flow that is or was backlogged in or out at both ends, where that is asked for.
    fn count_flow(&mut self, flow: usize, enters: bool) {
        if self.isolate != Isolate::Both {
            return;
        }
        for host in self.ends(flow) {
            let load = &mut self.hosts[host].load;
            *load = if enters { *load + 1 } else { *load - 1 };
        }
    }

    /// A token for a packet that arrives.
    fn issue(&mut self, number: usize, packet: &P, (smallest, largest): (Bytes, Bytes)) -> SimplePacket {
        let host = &mut self.hosts[number];
        if host.tokens.is_empty() {
            // What it sends from now on has met no congestion yet.
            host.marks = 0;
        }
        let size = (signed(packet.size()) + host.carry).clamp(signed(smallest), signed(largest));
        host.carry -= size - signed(packet.size());
        let id = self.free_tokens.pop().unwrap_or_else(|| {
            self.tokens.push(Token { link: Link::NONE });
            self.tokens.len() as u32 - 1
        });
        host.tokens.push_back(&mut self.tokens, id as usize);
        SimplePacket {
            protocol: packet.protocol(),
            // So that a mark of the discipline can be told from one that came.
            ecn: if packet.ecn() == Ecn::Ce { Ecn::Ect0 } else { packet.ecn() },
            colour: packet.colour(),
            labels: LabelKind::ALL.map(|kind| packet.label(kind)),
            ..SimplePacket::new(id, FlowId(number as u32), Bytes::new(size.unsigned_abs()))
        }
    }

    /// Takes a token from its host: that host, and at which end of its tokens it was; anywhere else counts as the tail.
    fn take_back(&mut self, token: &SimplePacket) -> Option<(usize, End)> {
        let (number, id) = (token.flow.index(), token.id as usize);
        let host = self.hosts.get_mut(number)?;
        let end = if host.tokens.front() == Some(id) { End::Head } else { End::Tail };
        host.tokens.remove(&mut self.tokens, id);
        self.free_tokens.push(token.id);
        Some((number, end))
    }

    /// The seat whose turn it is at a host, and that can pay for the packet at its head.
    ///
    /// Terminates: a quantum is at least the largest packet, so at most one seat passes its turn on.
    fn turn(&mut self, number: usize) -> Option<usize> {
        let largest = self.sizes.map_or(Bytes::ZERO, |(_, largest)| largest);
        let host = &mut self.hosts[number];
        loop {
            let seat = host.round.front()?;
            let flow = &self.flows[seat / SEATS];
            if !host.in_turn {
                self.seats[seat].deficit += Quanta::new(largest, self.smallest_weight).of(flow.weight);
                host.in_turn = true;
            }
            let head = flow.queue.front(&self.packets)?;
            if scaled(head.packet.size()) <= self.seats[seat].deficit {
                return Some(seat);
            }
            host.round.rotate(&mut self.seats);
            host.in_turn = false;
        }
    }

    /// Takes a packet of a seat out.
    fn remove(&mut self, seat: usize, end: End) -> Option<P> {
        let flow = seat / SEATS;
        let Queued { packet, .. } = self.flows[flow].queue.pop(&mut self.packets, end)?;
        self.backlog.remove(&packet);
        self.seats[seat].packets -= 1;
        self.seats[seat].bytes -= signed(packet.size());
        if self.seats[seat].packets == 0 {
            self.leave(seat);
        } else {
            self.weigh(seat);
        }
        if self.flows[flow].queue.is_empty() {
            self.count_flow(flow, false);
        }
        Some(packet)
    }

    /// Takes a seat without packets out of the round of its host.
    fn leave(&mut self, seat: usize) {
        let host = &mut self.hosts[self.seats[seat].host as usize];
        if host.round.front() == Some(seat) {
            host.in_turn = false;
        }
        host.round.remove(&mut self.seats, seat);
        host.longest.remove(&mut self.seats, seat);
        self.seats[seat].deficit = 0;
        let rest = core::mem::take(&mut self.seats[seat].bytes);
        self.seats[seat ^ 1].bytes += rest;
        self.weigh(seat ^ 1);
    }

    /// Brings the heap of the host up to date with the length of a seat, if that has packets.
    fn weigh(&mut self, seat: usize) {
        if self.seats[seat].packets > 0 {
            self.seats[seat].length = self.flows[seat / SEATS].length(&self.seats[seat]);
            let host = &mut self.hosts[self.seats[seat].host as usize];
            host.longest.update(&mut self.seats, seat);
        }
    }
}

impl Flow {
    fn length(&self, seat: &Seat) -> f64 {
        seat.bytes as f64 / self.weight.get()
    }
}

/// No packet is longer than 2^63 bytes.
fn signed(size: Bytes) -> i64 {
    size.get() as i64
}
