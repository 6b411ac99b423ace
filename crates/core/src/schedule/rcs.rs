//! RCS: each link is divided by a tree of rights, which follows who pays whom.
//!
//! Brown et al., "Principles for Internet congestion management", SIGCOMM 2024 (recursive congestion shares).
//! The full text could not be had: this is our reading of the abstract and of published descriptions. The
//! tree comes with the link ([`Rights`]); scenarios derive it from agreements. Each vertex gets its part among
//! its siblings by weight. What a vertex does not use goes to its siblings, and then up. Flows of a host have
//! its part by their weights. A link without a tree is divided among flows.
//!
//! The paper uses hierarchical deficit round robin, as is known second-hand. Here each vertex is a server with
//! [start-time fair queueing](super::start_time_fq) over its children, whose theorem 1 holds for a server of
//! any rate, and so at each level (Goyal, Vin, Cheng 1997, section III). It chooses by start tags, so no size
//! of a packet is needed before its turn.
//!
//! - Tags belong to heads of line, in integers of 2^-24 bytes; ties go by turn (`tags.rs`). A packet that is
//!   pushed out is not charged at any level.
//! - A server that was idle owes nothing: it was if its own finish tag is not above the virtual time of its
//!   parent.
//! - `levels` cuts the tree: flows below share the part of the last vertex. With 1 only those who pay at the
//!   link itself are kept apart.
//!
//! Cost: O(depth · log children) per packet; at most 140 bytes per flow and 400 per vertex.

use alloc::vec::Vec;

use super::{End, Queued, Scheduler};
use crate::fairness::Right;
use crate::flow_setting::FlowSetting;
use crate::list::{PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, GoesBy, Heeds, Param, Role, Shares, Traits, require};
use crate::params;
use crate::queue::Backlog;
use crate::smallest::Smallest;
use crate::units::{Bytes, Time, Weight};

/// RCS in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "rcs",
    role: Role::Scheduler,
    summary: "Recursive congestion shares: a link is divided along the agreements of who pays whom, down to hosts.",
    reference: "Brown et al. 2024; our reading",
    cost: "O(depth log children) per packet, at most 140 bytes per flow and 400 per vertex of the tree",
    params: RcsParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        goes_by: Some(GoesBy::Agreements),
        shares: Shares::Given,
        limits: "Tables `[agreement.NAME]` of a scenario give the tree of each link. Without them each sending host has \
            the same part. A gateway does not know agreements. Flows with a small part of a fast link have long queues: \
            `drop = codel` shortens them.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Rcs`].
    #[derive(Default)]
    pub struct RcsParams {
        /// Levels of agreements that are kept apart, counted from the link; flows below divide the part of the last one. 1: only those who pay at the link.
        levels: Option<u32> = Param::unset("all; 1 is the paper's division by one hop"),
    }
    check: |params: &Self, _| require(params.levels != Some(0), "levels", "it must be at least 1")
}

/// The rights to a link.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rights<'a> {
    /// The vertices below the link, each after its parent.
    pub vertices: &'a [Right],
    /// The vertex that has each flow, by flow number; none, or beyond the end: the link.
    pub of_flows: &'a [Option<u32>],
}

/// The virtual time at which numbers are reduced, as in `tags.rs`.
const HORIZON: u64 = 1 << 62;
/// The bits of a place in the order that hold the turn among equal tags.
const TURN: u64 = (1 << 10) - 1;
/// The cost of a byte at the smallest weight, in virtual time times 2^16.
const BYTE: f64 = (1_u64 << 40) as f64;
/// The place of a flow that has had no packet.
const NOWHERE: u32 = u32::MAX;
/// The server that is the link.
const LINK: u32 = 0;

/// A flow or a vertex among its siblings.
#[derive(Clone, Copy, Debug)]
struct Child {
    /// The server that it belongs to.
    server: u32,
    /// Its place there.
    place: u32,
    /// The cost of a byte in virtual time, times 2^16.
    per_byte: u64,
    /// S of the next packet while it has packets, else F of the last one served.
    tag: u64,
}

impl Child {
    fn length(&self, size: Bytes) -> u64 {
        (size.get().saturating_mul(self.per_byte) >> 16).max(1)
    }
}

#[derive(Clone, Copy, Debug)]
struct Flow {
    queue: PacketQueue,
    child: Child,
}

#[derive(Clone, Copy, Debug)]
enum Member {
    Flow(u32),
    Server(u32),
}

/// The link or a vertex: start-time fair queueing over its children.
#[derive(Clone, Debug)]
struct Server {
    /// Itself among its siblings; of the link without meaning.
    child: Child,
    members: Vec<Member>,
    /// Children with packets, by place.
    order: Smallest,
    v: u64,
    /// The largest F served.
    latest: u64,
    /// The turn of the last child that became next.
    turn: u64,
}

impl Server {
    fn new(child: Child) -> Self {
        Self { child, members: Vec::new(), order: Smallest::new(), v: 0, latest: 0, turn: 0 }
    }

    fn is_active(&self) -> bool {
        self.order.first().is_some()
    }

    fn first(&self) -> Option<Member> {
        Some(self.members[self.order.first()?.1])
    }

    /// Adds a child by its tag, behind equal tags.
    fn set(&mut self, child: &Child) {
        self.turn = self.turn.wrapping_add(1);
        self.order.set(child.place as usize, child.tag & !TURN | self.turn & TURN);
    }
}

/// Hierarchical fair queueing along a tree of rights.
#[derive(Clone, Debug)]
pub struct Rcs<P> {
    /// The link, then the vertices.
    servers: Vec<Server>,
    flows: Vec<Flow>,
    /// The server of each flow, by flow number.
    of_flows: Vec<u32>,
    packets: Pool<P>,
    backlog: Backlog,
    smallest: f64,
}

impl<P: Packet> Rcs<P> {
    /// An empty scheduler. `smallest` is the smallest weight of a flow.
    #[must_use]
    pub fn new(params: &RcsParams, rights: &Rights<'_>, smallest: Weight) -> Self {
        let weights = rights.vertices.iter().map(|right| right.weight);
        let link = Server::new(Child { server: LINK, place: NOWHERE, per_byte: 0, tag: 0 });
        let mut it = Self {
            servers: alloc::vec![link],
            flows: Vec::new(),
            of_flows: Vec::new(),
            packets: Pool::new(),
            backlog: Backlog::EMPTY,
            smallest: weights.fold(smallest.get(), f64::min),
        };
        // The server of each vertex, and its level. Vertices below the last level have the server above.
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(rights.vertices.len());
        for right in rights.vertices {
            let (parent, level) =
                right.parent.and_then(|parent| places.get(parent).copied()).unwrap_or((LINK, 0));
            if params.levels.is_some_and(|levels| level >= levels) {
                places.push((parent, level));
                continue;
            }
            let server = it.servers.len() as u32;
            let per_byte = it.per_byte(right.weight);
            let place = it.join(parent, Member::Server(server));
            it.servers.push(Server::new(Child { server: parent, place, per_byte, tag: 0 }));
            places.push((server, level + 1));
        }
        let server_of = |vertex: &Option<u32>| {
            vertex.and_then(|vertex| places.get(vertex as usize)).map_or(LINK, |(server, _)| *server)
        };
        it.of_flows = rights.of_flows.iter().map(server_of).collect();
        it
    }

    /// Adds a member to a server. Returns its place.
    fn join(&mut self, server: u32, member: Member) -> u32 {
        let members = &mut self.servers[server as usize].members;
        members.push(member);
        members.len() as u32 - 1
    }

    /// As in `tags.rs`.
    fn per_byte(&self, weight: f64) -> u64 {
        libm::round(BYTE * (self.smallest / weight)).clamp(16_384.0, BYTE * 65_536.0) as u64
    }

    fn flow(&mut self, index: usize) -> &mut Flow {
        while self.flows.len() <= index {
            let server = self.of_flows.get(self.flows.len()).copied().unwrap_or(LINK);
            let child = Child { server, place: NOWHERE, per_byte: self.per_byte(1.0), tag: 0 };
            self.flows.push(Flow { queue: PacketQueue::EMPTY, child });
        }
        &mut self.flows[index]
    }

    fn child(&mut self, member: Member) -> &mut Child {
        match member {
            Member::Flow(flow) => &mut self.flows[flow as usize].child,
            Member::Server(server) => &mut self.servers[server as usize].child,
        }
    }

    /// Notes that a member of an active server has packets.
    fn activate(&mut self, member: Member) {
        let mut child = *self.child(member);
        let server = &mut self.servers[child.server as usize];
        child.tag = child.tag.max(server.v);
        server.set(&child);
        *self.child(member) = child;
    }

    /// Makes a server active, those above it first, so that it gets a member next.
    fn wake(&mut self, server: u32) {
        let (is_active, child) = {
            let server = &self.servers[server as usize];
            (server.is_active(), server.child)
        };
        if is_active || server == LINK {
            return;
        }
        self.wake(child.server);
        if child.tag <= self.servers[child.server as usize].v {
            let server = &mut self.servers[server as usize];
            server.v = server.v.max(server.latest);
        }
        self.activate(Member::Server(server));
    }

    fn take(&mut self, index: usize, end: End) -> Option<Queued<P>> {
        let queued = self.flows.get_mut(index)?.queue.pop(&mut self.packets, end)?;
        self.backlog.remove(&queued.packet);
        Some(queued)
    }

    fn first(&self) -> Option<usize> {
        let mut server = LINK;
        loop {
            match self.servers[server as usize].first()? {
                Member::Flow(flow) => return Some(flow as usize),
                Member::Server(next) => server = next,
            }
        }
    }

    /// Charges a packet to a flow and to all above it.
    fn charge(&mut self, index: usize, size: Bytes) {
        let (mut member, mut has_more) = (Member::Flow(index as u32), !self.flows[index].queue.is_empty());
        loop {
            let mut child = *self.child(member);
            let server = &mut self.servers[child.server as usize];
            server.v = server.v.max(child.tag);
            child.tag += child.length(size);
            server.latest = server.latest.max(child.tag);
            if has_more {
                server.set(&child);
            } else {
                server.order.remove(child.place as usize);
            }
            has_more = server.is_active();
            let is_late = server.v >= HORIZON;
            *self.child(member) = child;
            if is_late {
                self.rebase(child.server);
            }
            if child.server == LINK {
                return;
            }
            member = Member::Server(child.server);
        }
    }

    /// Reduces the numbers of a server.
    #[cold]
    fn rebase(&mut self, server: u32) {
        let members = core::mem::take(&mut self.servers[server as usize].members);
        let it = &self.servers[server as usize];
        let least = it.order.first().map_or(it.v, |(key, _)| key.min(it.v)) & !TURN;
        let it = &mut self.servers[server as usize];
        it.order.shift(least);
        it.v -= least;
        it.latest = it.latest.saturating_sub(least);
        for &member in &members {
            let child = self.child(member);
            child.tag = child.tag.saturating_sub(least);
        }
        self.servers[server as usize].members = members;
    }
}

impl<P: Packet> Scheduler<P> for Rcs<P> {
    fn push(&mut self, now: Time, packet: P) {
        let index = packet.flow().slot();
        self.backlog.add(&packet);
        let Flow { child, queue } = *self.flow(index);
        if child.place == NOWHERE {
            self.flows[index].child.place = self.join(child.server, Member::Flow(index as u32));
        }
        self.flows[index].queue.push(&mut self.packets, Queued { packet, arrived: now });
        if queue.is_empty() {
            self.wake(child.server);
            self.activate(Member::Flow(index as u32));
        }
    }

    fn pop(&mut self, _now: Time) -> Option<Queued<P>> {
        let Some(index) = self.first() else {
            let link = &mut self.servers[LINK as usize];
            link.v = link.v.max(link.latest);
            return None;
        };
        let queued = self.take(index, End::Head)?;
        self.charge(index, queued.packet.size());
        Some(queued)
    }

    fn push_out(&mut self, _now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        let index = flow.slot();
        let queued = self.take(index, end)?;
        let Flow { queue, mut child } = self.flows[index];
        let mut is_empty = queue.is_empty();
        while is_empty {
            let server = &mut self.servers[child.server as usize];
            server.order.remove(child.place as usize);
            is_empty = !server.is_active() && child.server != LINK;
            child = server.child;
        }
        Some(queued)
    }

    #[inline]
    fn next_flow(&self) -> Option<FlowId> {
        self.first().map(|index| FlowId(index as u32))
    }

    fn front(&self) -> Option<&Queued<P>> {
        self.flows[self.first()?].queue.front(&self.packets)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        let per_byte = self.per_byte(weight.get());
        self.flow(flow.slot()).child.per_byte = per_byte;
        true
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::packet::SimplePacket;
    use crate::schedule::testing::{order, push, serve};
    use crate::testing::packet;

    fn right(parent: Option<usize>, weight: f64) -> Right {
        Right { parent, weight }
    }

    fn rcs(levels: Option<u32>, vertices: &[Right], of_flows: &[Option<u32>]) -> Rcs<SimplePacket> {
        Rcs::new(&RcsParams { levels }, &Rights { vertices, of_flows }, Weight::ONE)
    }

    /// Operators 0 and 1 of weights 1 and 2; hosts 2 of the first, 3 and 4 of the second with weights 1 and 3.
    /// Flow 0 is of host 2, flow 1 of host 3, flows 2 and 3 of host 4.
    fn operators(levels: Option<u32>) -> Rcs<SimplePacket> {
        let vertices = [
            right(None, 1.0),
            right(None, 2.0),
            right(Some(0), 1.0),
            right(Some(1), 1.0),
            right(Some(1), 3.0),
        ];
        rcs(levels, &vertices, &[Some(2), Some(3), Some(4), Some(4)])
    }

    /// Packets of each flow among `n`, while all `flows` have packets.
    fn parts(scheduler: &mut Rcs<SimplePacket>, flows: &[u32], n: usize) -> Vec<usize> {
        let mut parts = vec![0; 8];
        flows.iter().for_each(|&flow| push(scheduler, flow, &[(flow, 1_000); 2]));
        for _ in 0..n {
            let sent = scheduler.pop(Time::ZERO).unwrap().packet.flow;
            parts[sent.index()] += 1;
            push(scheduler, 0, &[(sent.0, 1_000)]);
        }
        parts
    }

    fn near(parts: &[usize], due: &[usize]) -> bool {
        parts.iter().zip(due).all(|(part, due)| part.abs_diff(*due) <= 2)
    }

    #[test]
    fn each_level_divides_by_its_weights() {
        // Of 2400: 800 to the first operator; 400 and 1200 to the hosts of the second.
        let of_all = parts(&mut operators(None), &[0, 1, 2, 3], 2_400);
        assert!(near(&of_all, &[800, 400, 600, 600]), "{of_all:?}");
        // By one hop flows divide the part of their operator.
        let by_one = parts(&mut operators(Some(1)), &[0, 1, 2, 3], 2_400);
        assert!(near(&by_one, &[800, 533, 533, 533]), "{by_one:?}");
    }

    #[test]
    fn an_unused_part_goes_to_siblings_and_then_up() {
        // Without host 4 the second operator keeps its two thirds; without operator 1 the first has all.
        let parts_of = |flows: &[u32]| parts(&mut operators(None), flows, 1_200);
        assert!(near(&parts_of(&[0, 1]), &[400, 800, 0, 0]));
        assert!(near(&parts_of(&[0]), &[1_200]));
    }

    #[test]
    fn without_a_tree_flows_share_the_link() {
        let shared = parts(&mut rcs(None, &[], &[]), &[0, 1, 2], 900);
        assert!(near(&shared, &[300, 300, 300]), "{shared:?}");
        let mut weighted = rcs(None, &[], &[]);
        weighted.set_flow(FlowId(1), FlowSetting::Weight(Weight::new(2.0).unwrap()));
        let shared = parts(&mut weighted, &[0, 1], 900);
        assert!(near(&shared, &[300, 600]), "{shared:?}");
    }

    #[test]
    fn a_packet_pushed_out_is_charged_at_no_level() {
        let mut tree = operators(None);
        push(&mut tree, 1, &[(0, 1_000), (0, 100), (2, 500), (2, 500), (2, 500)]);
        let out = tree.push_out(Time::ZERO, FlowId(0), End::Head);
        assert_eq!(out.map(|queued| queued.packet.id), Some(1));
        // Operator 1 of weight 2: S = 0, 250, 500; flow 0 of operator 0: S = 0.
        assert_eq!(serve(&mut tree, 9), [2, 3, 4, 5]);
        push(&mut tree, 6, &[(1, 100)]);
        assert!(tree.push_out(Time::ZERO, FlowId(1), End::Tail).is_some());
        assert!(tree.push_out(Time::ZERO, FlowId(1), End::Tail).is_none());
        assert_eq!((tree.backlog().is_empty(), tree.next_flow()), (true, None));
    }

    #[test]
    fn a_host_that_was_idle_owes_nothing() {
        let vertices = [right(None, 1.0), right(None, 1.0)];
        let mut tree = rcs(None, &vertices, &[Some(0), Some(0), Some(1)]);
        push(&mut tree, 1, &[(0, 1_000)]);
        assert_eq!(serve(&mut tree, 1), [1]);
        // Others are served until the host's debt is past; then its flows start alike, in their order.
        push(&mut tree, 2, &[(2, 1_000), (2, 1_000), (2, 1_000)]);
        assert_eq!(serve(&mut tree, 2), [2, 3]);
        push(&mut tree, 5, &[(0, 100), (1, 100)]);
        assert_eq!(serve(&mut tree, 9), [5, 6, 4]);
    }

    #[test]
    fn moving_all_numbers_down_changes_no_order() {
        let orders = [0, (1_u64 << 62) - 20_000].map(|v| {
            let mut tree = operators(None);
            tree.servers.iter_mut().for_each(|server| server.v = v);
            let order = order(&mut tree);
            assert!(tree.servers.iter().all(|server| server.v < 1 << 62));
            order
        });
        assert_eq!(orders[0], orders[1]);
    }

    #[test]
    fn flows_beyond_the_bound_share_state() {
        let mut tree = operators(None);
        for (id, flow) in [(1, 1), (2, u32::MAX), (3, FlowId::SLOTS as u32 + 1), (4, 0)] {
            tree.push(Time::ZERO, packet(id, flow, 100));
        }
        let mut served = serve(&mut tree, 9);
        served.sort_unstable();
        assert_eq!(served, [1, 2, 3, 4]);
    }
}
