//! A tin: queues that a set-associative hash selects, and that take turns by flows and hosts.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::clock::LinkLayer;
use super::rounds::Rounds;
use super::tins::Share;
use crate::aqm::cobalt::{CobaltControl, CobaltState};
use crate::aqm::per_queue::Source;
use crate::choice;
use crate::list::{Link, Linked, List, PacketQueue, Pool};
use crate::packet::{FlowId, HostPair, Packet};
use crate::queue::Backlog;
use crate::random::Stream;
use crate::schedule::drr::scaled;
use crate::schedule::{End, Queued};
use crate::system::hash::bucket;
use crate::tree::{Largest, Summary, Tree};
use crate::units::{Bytes, Time};

choice! {
    /// Hosts among which a tin divides before it divides among flows.
    pub enum Hosts {
        /// Sources and destinations.
        Triple = "triple",
        /// Sources.
        Source = "source",
        /// Destinations.
        Destination = "destination",
        /// None: among flows alone.
        None = "none",
    }
}

/// The maximum number of distinct hosts. Chosen: 512 kB.
const MAX_HOSTS: usize = 1 << 16;
/// The number of packets of a queue that are searched for redundant ACKs. Chosen: more than the ACKs that a
/// filter leaves.
const MOST_LOOKED_AT: usize = 64;
/// The tag of a queue that belongs to no flow.
const NO_FLOW: u32 = u32::MAX;

/// The number of busy flows of each host.
#[derive(Clone, Debug)]
struct Busy {
    of: Hosts,
    sources: Vec<u32>,
    destinations: Vec<u32>,
}

const fn place_of(host: u32) -> usize {
    host as usize % MAX_HOSTS
}

fn of_host(counts: &mut Vec<u32>, host: u32) -> &mut u32 {
    let index = place_of(host);
    if index >= counts.len() {
        counts.resize(index + 1, 0);
    }
    &mut counts[index]
}

impl Busy {
    fn add(&mut self, hosts: HostPair) {
        *of_host(&mut self.sources, hosts.source) += 1;
        *of_host(&mut self.destinations, hosts.destination) += 1;
    }

    fn remove(&mut self, hosts: HostPair) {
        *of_host(&mut self.sources, hosts.source) -= 1;
        *of_host(&mut self.destinations, hosts.destination) -= 1;
    }

    /// The number of flows among which the part of a host is divided: of the end that has more. At least 1.
    #[inline]
    fn flows(&self, hosts: HostPair) -> u64 {
        let of = |counts: &[u32], host: u32| counts.get(place_of(host)).copied().unwrap_or(0);
        let (source, destination) =
            (of(&self.sources, hosts.source), of(&self.destinations, hosts.destination));
        let flows = match self.of {
            Hosts::Triple => source.max(destination),
            Hosts::Source => source,
            Hosts::Destination => destination,
            Hosts::None => 1,
        };
        u64::from(flows.max(1))
    }
}

/// The round of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Idle,
    New,
    Old,
}

/// The packets of a queue.
#[derive(Clone, Debug)]
struct Held {
    queue: PacketQueue,
    backlog: Backlog,
    /// The tag of the flow that owns the queue.
    owner: u32,
    /// The number of packets of other flows.
    strangers: u32,
}

#[derive(Clone, Debug)]
struct FlowQueue {
    link: Link,
    held: Held,
    round: Round,
    credits: i64,
    /// The hosts of the flow that made it busy.
    hosts: HostPair,
    state: CobaltState,
}

impl Linked for FlowQueue {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The packets of all tins, and their backlog.
#[derive(Clone, Debug)]
pub(super) struct Store<P> {
    packets: Pool<P>,
    pub backlog: Backlog,
}

impl<P> Store<P> {
    pub const fn new() -> Self {
        Self { packets: Pool::new(), backlog: Backlog::EMPTY }
    }
}

/// A queue as COBALT sees it.
pub(super) struct One<'a, P> {
    held: &'a mut Held,
    store: &'a mut Store<P>,
    /// The number of queues of the tin with packets.
    waiting: &'a mut u64,
}

impl<P: Packet> One<'_, P> {
    fn push(&mut self, queued: Queued<P>) {
        let Self { held, store, waiting } = self;
        **waiting += u64::from(held.backlog.is_empty());
        held.strangers += u32::from(tag_of(queued.packet.flow()) != held.owner);
        held.backlog.add(&queued.packet);
        store.backlog.add(&queued.packet);
        held.queue.push(&mut store.packets, queued);
    }

    /// Removes a packet by `take`.
    fn take(
        &mut self,
        take: impl FnOnce(&mut PacketQueue, &mut Pool<P>) -> Option<Queued<P>>,
    ) -> Option<Queued<P>> {
        let Self { held, store, waiting } = self;
        let queued = take(&mut held.queue, &mut store.packets)?;
        held.backlog.remove(&queued.packet);
        store.backlog.remove(&queued.packet);
        held.strangers -= u32::from(tag_of(queued.packet.flow()) != held.owner);
        **waiting -= u64::from(held.backlog.is_empty());
        Some(queued)
    }
}

impl<P: Packet> Source<P> for One<'_, P> {
    fn pop(&mut self) -> Option<Queued<P>> {
        self.take(|queue, packets| queue.pop(packets, End::Head))
    }
    fn behind(&self) -> Bytes {
        self.held.backlog.bytes
    }
}

fn tag_of(flow: FlowId) -> u32 {
    flow.slot() as u32
}

/// The parameters of a tin that depend on its rate.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    /// The bytes of a flow's turn.
    pub quantum: Bytes,
    pub control: CobaltControl,
}

/// The queues of a tin and their rounds.
#[derive(Clone, Debug)]
pub(super) struct Tin {
    pub share: Share,
    pace: Pace,
    ways: u32,
    sets: u32,
    salt: u64,
    /// The tags of the flows that own the queues, in one vector since each packet searches a set.
    tags: Vec<u32>,
    queues: Vec<FlowQueue>,
    new_flows: List,
    /// Old flows by the round in which they can send.
    old_flows: Rounds,
    busy: Busy,
    busy_queues: u64,
    /// The number of queues with packets.
    waiting: u64,
    /// Queues by bytes.
    fattest: Tree<Largest>,
    collisions: u64,
}

impl Tin {
    /// A tin with `flows` queues in sets of `ways`.
    pub fn new([flows, ways]: [u32; 2], hosts: Hosts, salt: u64, share: Share, pace: Pace) -> Self {
        Self {
            share,
            pace,
            ways,
            sets: flows / ways,
            salt,
            tags: Vec::new(),
            queues: Vec::new(),
            new_flows: List::EMPTY,
            old_flows: Rounds::new(),
            busy: Busy { of: hosts, sources: Vec::new(), destinations: Vec::new() },
            busy_queues: 0,
            waiting: 0,
            fattest: Tree::new(),
            collisions: 0,
        }
    }

    /// The number of packets that joined a queue of another flow.
    pub const fn collisions(&self) -> u64 {
        self.collisions
    }

    pub const fn busy_queues(&self) -> u64 {
        self.busy_queues
    }

    /// The number of queues with packets.
    pub const fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Changes the parameters that depend on the rate.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let queues = self.sets as usize * self.ways as usize;
        self.tags = vec![NO_FLOW; queues];
        let idle = FlowQueue {
            link: Link::NONE,
            held: Held { queue: PacketQueue::EMPTY, backlog: Backlog::EMPTY, owner: NO_FLOW, strangers: 0 },
            round: Round::Idle,
            credits: 0,
            hosts: HostPair::default(),
            state: CobaltState::default(),
        };
        self.queues = vec![idle; queues];
    }

    /// The set of queues for the flow with this tag.
    fn set_of(&self, tag: u32) -> Range<usize> {
        let first = bucket(FlowId(tag), self.salt, self.sets) * self.ways as usize;
        first..first + self.ways as usize
    }

    /// The queue of the set that it shares if all are busy.
    fn shared_of(&self, tag: u32, set: &Range<usize>) -> usize {
        set.start + bucket(FlowId(tag), !self.salt, self.ways)
    }

    /// The queue that it owns.
    fn own_of(&self, tag: u32, set: &Range<usize>) -> Option<usize> {
        let way = self.tags[set.clone()].iter().position(|&of| of == tag)?;
        Some(set.start + way)
    }

    /// The queue of `flow`, its own if possible.
    fn queue_of(&mut self, flow: FlowId) -> usize {
        if self.queues.is_empty() {
            self.grow();
        }
        let tag = tag_of(flow);
        let set = self.set_of(tag);
        self.own_of(tag, &set).unwrap_or_else(|| self.claim(tag, set))
    }

    /// An idle queue of the set, which the flow owns from here on, or the one that it shares. Not inlined:
    /// called at most once for each busy period of a flow.
    #[inline(never)]
    fn claim(&mut self, tag: u32, mut set: Range<usize>) -> usize {
        let shared = self.shared_of(tag, &set);
        // The flow's own packets may wait there: it must not overtake them.
        if self.queues[shared].held.strangers == 0
            && let Some(idle) = set.find(|&index| self.queues[index].round == Round::Idle)
        {
            self.tags[idle] = tag;
            self.queues[idle].held.owner = tag;
            self.queues[idle].state = CobaltState::default();
            return idle;
        }
        self.collisions += 1;
        shared
    }

    /// The turn of queue `index` in bytes, at least one.
    fn turn(&self, index: usize) -> i64 {
        let flows = self.busy.flows(self.queues[index].hosts);
        (scaled(self.pace.quantum) / flows).max(scaled(Bytes::new(1))) as i64
    }

    pub fn enqueue<P: Packet>(&mut self, now: Time, store: &mut Store<P>, packet: P, hosts: HostPair) {
        let index = self.queue_of(packet.flow());
        let flow = &mut self.queues[index];
        if flow.held.backlog.is_empty() {
            flow.state.ends_idle(&self.pace.control, now);
        }
        let mut one = One { held: &mut flow.held, store, waiting: &mut self.waiting };
        one.push(Queued { packet, arrived: now });
        if flow.round == Round::Idle {
            flow.round = Round::New;
            flow.hosts = hosts;
            self.busy.add(hosts);
            self.busy_queues += 1;
            self.queues[index].credits = self.turn(index);
            self.new_flows.push_back(&mut self.queues, index);
        }
        self.weigh(index);
    }

    /// The next packet, which `take` removes from the queue in turn, and its size on the wire.
    #[inline]
    pub fn next<P: Packet>(
        &mut self,
        store: &mut Store<P>,
        link_layer: LinkLayer,
        mut take: impl FnMut(&CobaltControl, &mut CobaltState, &mut One<'_, P>) -> Option<Queued<P>>,
    ) -> Option<(P, Bytes)> {
        // Terminates: each pass gives a queue a turn in which it can send, removes one, or serves a packet.
        loop {
            let index = self.new_flows.front().or_else(|| self.old_flows.front())?;
            let flow = &mut self.queues[index];
            if flow.credits <= 0 {
                self.pay_turns(index);
                continue;
            }
            let mut one = One { held: &mut flow.held, store: &mut *store, waiting: &mut self.waiting };
            match take(&self.pace.control, &mut flow.state, &mut one) {
                Some(queued) => {
                    let size = link_layer.size(queued.packet.size());
                    flow.credits -= scaled(size) as i64;
                    self.weigh(index);
                    return Some((queued.packet, size));
                }
                // The queue becomes an old one first, so that it cannot return as new at once and starve the
                // others.
                None if flow.round == Round::New => self.put_off(index, 1),
                None => {
                    flow.round = Round::Idle;
                    let hosts = flow.hosts;
                    self.busy.remove(hosts);
                    self.busy_queues -= 1;
                    self.old_flows.pop_front(&mut self.queues);
                }
            }
        }
    }

    /// Gives a queue the turns that it needs to send, or as many as there are rounds, and defers it until
    /// then.
    fn pay_turns(&mut self, index: usize) {
        let turn = self.turn(index);
        let flow = &mut self.queues[index];
        let turns = (-flow.credits / turn + 1).min(Rounds::MOST);
        flow.credits += turns * turn;
        self.put_off(index, turns as usize);
    }

    /// Moves the queue in turn to a later round.
    fn put_off(&mut self, index: usize, rounds: usize) {
        if self.queues[index].round == Round::New {
            self.new_flows.remove(&mut self.queues, index);
            self.queues[index].round = Round::Old;
        } else {
            self.old_flows.pop_front(&mut self.queues);
        }
        self.old_flows.push(&mut self.queues, index, rounds);
    }

    /// Removes the first packet of `flow`.
    pub fn take<P: Packet>(&mut self, store: &mut Store<P>, flow: FlowId) -> Option<P> {
        if self.queues.is_empty() {
            return None;
        }
        let tag = tag_of(flow);
        let set = self.set_of(tag);
        let index = self.own_of(tag, &set).unwrap_or_else(|| self.shared_of(tag, &set));
        self.take_from(store, index, |queue, packets| {
            queue.take_first(packets, |packet: &P| tag_of(packet.flow()) == tag)
        })
    }

    /// Removes an ACK from the queue of `newer`, which has not joined it yet, if `supersedes` holds for at
    /// least the filter's number of ACKs there.
    pub fn filter<P: Packet>(
        &mut self,
        store: &mut Store<P>,
        newer: &P,
        least: usize,
        supersedes: impl Fn(&P) -> bool,
    ) -> Option<P> {
        let index = self.queue_of(newer.flow());
        self.take_from(store, index, |queue, packets| {
            queue.take_first_of(packets, [least, MOST_LOOKED_AT], supersedes)
        })
    }

    /// Removes a packet of queue `index` by `take`.
    fn take_from<P: Packet>(
        &mut self,
        store: &mut Store<P>,
        index: usize,
        take: impl FnOnce(&mut PacketQueue, &mut Pool<P>) -> Option<Queued<P>>,
    ) -> Option<P> {
        let held = &mut self.queues[index].held;
        let queued = One { held, store, waiting: &mut self.waiting }.take(take)?;
        self.weigh(index);
        Some(queued.packet)
    }

    /// The bytes of the longest queue.
    pub fn longest(&mut self) -> Bytes {
        // Below 2^53, so exact; negative infinity, for no queue, becomes zero.
        Bytes::new(self.fattest.root().key as u64)
    }

    /// Drops a packet from the head of the longest queue, for lack of room; among equally long ones a random
    /// one.
    pub fn cut<P: Packet>(&mut self, now: Time, store: &mut Store<P>, random: &mut Stream) -> Option<P> {
        let index = self.fattest.largest(random)?;
        self.queues[index].state.overflowed(&self.pace.control, now);
        self.take_from(store, index, |queue, packets| queue.pop(packets, End::Head))
    }

    /// Updates the tree for queue `index`.
    fn weigh(&mut self, index: usize) {
        let held = self.queues[index].held.backlog;
        let bytes = Largest::of(held.bytes.get() as f64);
        self.fattest.set(index, if held.is_empty() { Largest::ABSENT } else { bytes });
    }
}
