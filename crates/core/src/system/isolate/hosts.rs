//! Hosts, their peers, flows and packets, and the tokens that stand for packets in the discipline.

use alloc::vec::Vec;

use super::Isolate;
use super::longest::{Longest, Ranked};
use super::pairs::{ENDS, NONE, Pairs};
use crate::list::{Link, Linked, List, PacketQueue, Pool};
use crate::packet::{Ecn, FlowId, HostPair, LabelKind, Packet, SimplePacket};
use crate::queue::Backlog;
use crate::schedule::drr::scaled;
use crate::schedule::{End, Queued};
use crate::units::{Bytes, Time, Weight};

mod turns;

/// The number of hosts that the waiting packets of a flow can belong to: the host may change while packets
/// wait.
const SEATS: usize = 2;

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    queue: PacketQueue,
    hosts: HostPair,
    weight: Weight,
    /// The pair of its hosts, or an earlier one, when it was last backlogged.
    pair: u32,
}

/// A flow at a host: the packets of the flow that belong to the host, and its turn among the flows of its
/// group there. The two seats of a flow are adjacent.
#[derive(Clone, Copy, Debug)]
struct Seat {
    /// Links in the round of the group.
    link: Link,
    /// Bytes per weight; 0 with one packet.
    length: f64,
    /// The place in the heap of the group.
    place: u32,
    /// The group, while there are packets.
    group: u32,
    packets: u32,
    /// The bytes of these packets. Packets of a flow leave in order, by the turn of either host: with packets
    /// at two hosts, this is arrivals minus departures, and only the sum over both is exact.
    bytes: i64,
    /// The deficit, as in DRR.
    deficit: u64,
}

impl Linked for Seat {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

impl Ranked for Seat {
    fn length(&self) -> f64 {
        self.length
    }
    fn place(&mut self) -> &mut u32 {
        &mut self.place
    }
}

/// A host as a source, or as a destination.
#[derive(Clone, Debug)]
struct Host {
    /// Groups with packets, in turn.
    round: List,
    /// Whether the group at the front has got its quantum of this turn.
    in_turn: bool,
    longest: Longest,
    /// The host's tokens in the discipline, in order of arrival.
    tokens: List,
    /// The number of other ends of the backlogged flows that have this end, whichever end their packets
    /// belong to.
    peers: u32,
    /// The number of marks that wait for an ECN-capable packet.
    marks: u32,
    /// The bytes that its next tokens must have in addition to their packets: dropped bytes of tokens minus
    /// dropped bytes of packets.
    carry: i64,
}

const IDLE: Host = Host {
    round: List::EMPTY,
    in_turn: false,
    longest: Longest::EMPTY,
    tokens: List::EMPTY,
    peers: 0,
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
    pairs: Pairs,
    tokens: Vec<Token>,
    free_tokens: Vec<u32>,
    packets: Pool<P>,
    backlog: Backlog,
    /// The smallest weight of a flow. A turn of this flow is worth the largest packet.
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
            pairs: Pairs::new(),
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
            self.leave_pair(at);
        }
        self.flows[at].hosts = hosts;
        if is_backlogged {
            self.join_pair(at);
        }
    }

    /// Adds a packet. Returns the token for it.
    pub fn admit(&mut self, now: Time, packet: P) -> SimplePacket {
        let flow = self.flow(packet.flow());
        let (smallest, largest) = self.sizes.unwrap_or((packet.size(), packet.size()));
        let sizes = (smallest.min(packet.size()), largest.max(packet.size()));
        self.sizes = Some(sizes);
        if self.flows[flow].weight < self.smallest_weight {
            self.smallest_weight = self.flows[flow].weight;
        }
        if self.flows[flow].queue.is_empty() {
            self.join_pair(flow);
        }
        let seat = self.seat(flow);
        let (host, _) = self.pairs.hosts(self.seats[seat].group as usize);
        let token = self.issue(host, &packet, sizes);
        self.backlog.add(&packet);
        self.seats[seat].packets += 1;
        self.add_bytes(seat, signed(packet.size()));
        self.flows[flow].queue.push(&mut self.packets, Queued { packet, arrived: now });
        if self.seats[seat].packets == 1 {
            self.enter(seat);
        } else {
            self.weigh(seat);
        }
        token
    }

    /// Removes and returns the next packet of the host of a token that the discipline has served.
    pub fn serve(&mut self, token: &SimplePacket) -> Option<P> {
        let (host, _) = self.take_back(token)?;
        let seat = self.turn(host)?;
        let group = self.seats[seat].group as usize;
        let packet = self.remove(seat, End::Head)?;
        if self.seats[seat].packets > 0 {
            self.seats[seat].deficit -= scaled(packet.size());
        }
        let group = &mut self.pairs.groups[group];
        if !group.round.is_empty() {
            group.deficit -= scaled(packet.size());
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

    /// Removes and returns the packet that is dropped for a token that the discipline has dropped.
    pub fn drop_for(&mut self, token: &SimplePacket) -> Option<P> {
        let (host, end) = self.take_back(token)?;
        let group = self.hosts[host].longest.first()?;
        let group = &self.pairs.groups[group];
        let longest = group.longest.first()?;
        // An AQM keeps few packets: if each flow has only one, the lightest flow would lose all of its own.
        let seat = if self.seats[longest].length > 0.0 { longest } else { group.round.back()? };
        let packet = self.remove(seat, end)?;
        self.hosts[host].carry += signed(token.size) - signed(packet.size());
        Some(packet)
    }

    /// The memory of flows, hosts and pairs of hosts, without packets and tokens.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let heaps: usize = self.hosts.iter().map(|host| host.longest.bytes()).sum();
        let (flows, seats) = (self.flows.capacity(), self.seats.capacity());
        flows * size_of::<Flow>()
            + seats * size_of::<Seat>()
            + self.hosts.capacity() * size_of::<Host>()
            + self.pairs.bytes()
            + heaps
    }

    /// The place of a flow, which is added if it is new.
    fn flow(&mut self, id: FlowId) -> usize {
        if id.slot() >= self.flows.len() {
            let hosts = HostPair::default();
            let idle = Flow { queue: PacketQueue::EMPTY, hosts, weight: Weight::ONE, pair: NONE };
            let seat =
                Seat { link: Link::NONE, length: 0.0, place: 0, group: 0, packets: 0, bytes: 0, deficit: 0 };
            self.flows.resize(id.slot() + 1, idle);
            self.seats.resize(SEATS * self.flows.len(), seat);
        }
        id.slot()
    }

    /// The numbers of the hosts of a flow: with `both` the ends have separate numbers, otherwise the host is
    /// its own peer.
    fn ends(&mut self, flow: usize) -> [u32; ENDS] {
        let HostPair { source, destination } = self.flows[flow].hosts;
        let slot = |host: u32, slots: usize| host as usize % slots;
        let ends = match self.isolate {
            Isolate::Source => [slot(source, FlowId::SLOTS); ENDS],
            Isolate::Destination => [slot(destination, FlowId::SLOTS); ENDS],
            Isolate::Both => {
                let each = FlowId::SLOTS / ENDS;
                [ENDS * slot(source, each), ENDS * slot(destination, each) + 1]
            }
        };
        let most = ends[0].max(ends[1]);
        if most >= self.hosts.len() {
            self.hosts.resize(most + 1, IDLE);
        }
        // The numbers are below `FlowId::SLOTS`.
        ends.map(|end| end as u32)
    }

    /// Counts a flow that becomes backlogged, at its ends.
    fn join_pair(&mut self, flow: usize) {
        let ends = self.ends(flow);
        let (pair, is_first) = self.pairs.join(self.flows[flow].pair, ends);
        self.flows[flow].pair = pair;
        if is_first {
            for host in ends {
                self.hosts[host as usize].peers += 1;
            }
        }
    }

    /// Subtracts a flow that was backlogged, at its ends.
    fn leave_pair(&mut self, flow: usize) {
        let pair = self.flows[flow].pair;
        if self.pairs.leave(pair) {
            for host in self.pairs.ends(pair) {
                self.hosts[host as usize].peers -= 1;
            }
        }
    }

    /// The group of a pair to which packets belong that arrive at present.
    fn owner(&self, pair: usize) -> usize {
        let source = ENDS * pair;
        let [at_source, at_destination] = self.pairs.hosts(source).into();
        source + usize::from(self.hosts[at_destination].peers > self.hosts[at_source].peers)
    }

    /// The seat of a packet of `flow` that arrives at present. The flow must be in its pair.
    fn seat(&mut self, flow: usize) -> usize {
        // At most twice the number of pairs, of which each seat keeps at most one.
        let group = self.owner(self.flows[flow].pair as usize) as u32;
        let own = SEATS * flow..SEATS * (flow + 1);
        let is_there = |seat: &usize| self.seats[*seat].packets > 0 && self.seats[*seat].group == group;
        if let Some(seat) = own.clone().find(is_there) {
            return seat;
        }
        let free = own.clone().find(|seat| self.seats[*seat].packets == 0);
        if let Some(seat) = free {
            self.seats[seat].group = group;
        }
        // A flow that changes twice while packets wait keeps its seat until the first ones have left.
        free.unwrap_or(own.start)
    }

    /// Makes a token for an arriving packet.
    fn issue(&mut self, number: usize, packet: &P, (smallest, largest): (Bytes, Bytes)) -> SimplePacket {
        let host = &mut self.hosts[number];
        if host.tokens.is_empty() {
            // Later packets have met no congestion yet.
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
            // Distinguishes a mark of the discipline from one of an arrival.
            ecn: if packet.ecn() == Ecn::Ce { Ecn::Ect0 } else { packet.ecn() },
            colour: packet.colour(),
            labels: LabelKind::ALL.map(|kind| packet.label(kind)),
            ..SimplePacket::new(id, FlowId(number as u32), Bytes::new(size.unsigned_abs()))
        }
    }

    /// Removes a token from its host. Returns the host and the end of its tokens; any other place counts as
    /// the tail.
    fn take_back(&mut self, token: &SimplePacket) -> Option<(usize, End)> {
        let (number, id) = (token.flow.index(), token.id as usize);
        let host = self.hosts.get_mut(number)?;
        let end = if host.tokens.front() == Some(id) { End::Head } else { End::Tail };
        host.tokens.remove(&mut self.tokens, id);
        self.free_tokens.push(token.id);
        Some((number, end))
    }

    /// Removes a packet from a seat.
    fn remove(&mut self, seat: usize, end: End) -> Option<P> {
        let flow = seat / SEATS;
        let Queued { packet, .. } = self.flows[flow].queue.pop(&mut self.packets, end)?;
        self.backlog.remove(&packet);
        self.seats[seat].packets -= 1;
        self.add_bytes(seat, -signed(packet.size()));
        if self.seats[seat].packets == 0 {
            self.leave(seat);
        } else {
            self.weigh(seat);
        }
        if self.flows[flow].queue.is_empty() {
            self.leave_pair(flow);
        }
        Some(packet)
    }

    /// Adds a seat with its first packet to its group, and the group to the round of its host.
    fn enter(&mut self, seat: usize) {
        let number = self.seats[seat].group as usize;
        let (host, _) = self.pairs.hosts(number);
        let (host, groups) = (&mut self.hosts[host], &mut self.pairs.groups);
        if groups[number].round.is_empty() {
            host.round.push_back(groups, number);
            host.longest.insert(groups, number);
        }
        let group = &mut groups[number];
        group.round.push_back(&mut self.seats, seat);
        self.seats[seat].length = self.flows[seat / SEATS].length(&self.seats[seat]);
        group.longest.insert(&mut self.seats, seat);
        self.weigh_group(number);
    }

    /// Removes a seat without packets from its group, and the group from the round of its host if the seat
    /// was the last.
    fn leave(&mut self, seat: usize) {
        let number = self.seats[seat].group as usize;
        let group = &mut self.pairs.groups[number];
        if group.round.front() == Some(seat) {
            group.in_turn = false;
        }
        group.round.remove(&mut self.seats, seat);
        group.longest.remove(&mut self.seats, seat);
        self.seats[seat].deficit = 0;
        let rest = self.seats[seat].bytes;
        self.add_bytes(seat, -rest);
        if self.pairs.groups[number].round.is_empty() {
            self.leave_round(number);
        } else {
            self.weigh_group(number);
        }
        self.add_bytes(seat ^ 1, rest);
        self.weigh(seat ^ 1);
    }

    /// Removes a group without packets from the round of its host.
    fn leave_round(&mut self, number: usize) {
        let (host, _) = self.pairs.hosts(number);
        let (host, groups) = (&mut self.hosts[host], &mut self.pairs.groups);
        if host.round.front() == Some(number) {
            host.in_turn = false;
        }
        host.round.remove(groups, number);
        host.longest.remove(groups, number);
        (groups[number].deficit, groups[number].passed) = (0, 0);
        self.pairs.settle(number / ENDS);
    }

    /// Adds bytes, which may be negative, to a seat and its group. A seat without packets has no bytes to
    /// move.
    fn add_bytes(&mut self, seat: usize, bytes: i64) {
        if bytes != 0 {
            self.seats[seat].bytes += bytes;
            self.pairs.groups[self.seats[seat].group as usize].bytes += bytes;
        }
    }

    /// Updates the heaps for the length of a seat, if it has packets.
    fn weigh(&mut self, seat: usize) {
        if self.seats[seat].packets > 0 {
            self.seats[seat].length = self.flows[seat / SEATS].length(&self.seats[seat]);
            let number = self.seats[seat].group as usize;
            self.pairs.groups[number].longest.update(&mut self.seats, seat);
            self.weigh_group(number);
        }
    }

    /// Updates the host's heap for the bytes of a group with packets.
    fn weigh_group(&mut self, number: usize) {
        let (host, _) = self.pairs.hosts(number);
        self.hosts[host].longest.update(&mut self.pairs.groups, number);
    }
}

impl Flow {
    fn length(&self, seat: &Seat) -> f64 {
        if seat.packets > 1 { seat.bytes as f64 / self.weight.get() } else { 0.0 }
    }
}

/// No packet is longer than 2^63 bytes.
fn signed(size: Bytes) -> i64 {
    size.get() as i64
}
