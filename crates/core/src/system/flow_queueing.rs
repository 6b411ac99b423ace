//! Flow queueing: flows take turns as in DRR, flows that have just become active go first, and each has a
//! queue with a control loop of its own. The common part of [`fq_codel`](super::fq_codel) and
//! [`fq_pie`](super::fq_pie).
//!
//! Høiland-Jørgensen, McKenney, Täht, Gettys, Dumazet, RFC 8290, section 4. Deviations: in `fq_codel.rs`.
//!
//! Statistics: `new_flows` and `old_flows`, the lengths of the two lists, which together are the active
//! queues; `rounds`, the number of completed rounds since the start. A round is complete when each queue that
//! was old at its beginning has had its turn.

use alloc::vec::Vec;

use super::discipline::Discipline;
use super::hash::bucket;
use crate::aqm::Admission;
use crate::aqm::per_queue::{Control, Source, dequeue};
use crate::flow_setting::FlowSetting;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::list::{Link, Linked, List, PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::param::{LIMIT, Param, ParamError, require};
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::schedule::drr::{Quanta, scaled};
use crate::schedule::{End, Queued};
use crate::tree::{Largest, Summary, Tree};
use crate::units::{Bytes, Rate, Time, Weight};
use crate::{choice, params};

/// Size of all queues together.
pub(super) const SIZE: Param = LIMIT.in_paper("10240p").doc(
    "Size of all queues together, beyond which the longest loses packets; if not set 100 ms of the link, at least 96 kB.",
);
/// The quantum of a turn.
pub(super) const QUANTUM: Param =
    Param::of("1514B", "RFC 8290 section 5.2.4: the MTU of Ethernet").symbol("quantum").doc(
        "Bytes that the flow with the smallest weight sends in a turn; others send more in proportion to their weights.",
    );

choice! {
    /// The choice of a flow's queue.
    pub enum Classify {
        /// By its number.
        Exact = "exact",
        /// By a salted hash of its number.
        Hashed = "hashed",
    }
}

params! {
    /// Parameters of [`FlowQueues`], besides those of the control loop on each queue.
    pub struct FlowQueuesParams {
        limit: Option<BufferSize> = SIZE,
        /// Bytes in all queues together, besides a `limit` in packets; if not set, `limit` alone counts.
        memory_limit: Option<Bytes> = Param::unset("tc-fq_codel(8)").in_paper("32MB"),
        quantum: Bytes = QUANTUM,
        /// Maximum number of packets dropped from the longest queue at once; never more than half of it.
        drop_batch: u64 = Param::of("64", "RFC 8290 section 4.1"),
        /// How a flow finds its queue: by its number, or by a salted hash as in the RFC.
        classify: Classify = Param::of("exact", "chosen: flows are numbered already, so nothing needs to collide"),
        /// Most queues. Exact: the flows beyond share the last one.
        flows: Option<u32> = Param::unset("hashed: 1024, RFC 8290 section 5.2.5; exact: 65536, chosen: 8 MB at most"),
    }
    check: |params: &Self, _| params.check()
}

impl FlowQueuesParams {
    fn check(&self) -> Result<(), ParamError> {
        require(self.quantum > Bytes::ZERO, "quantum", "a quantum must be at least 1B")?;
        let message = "a buffer holds at least one packet; write for example \"32MB\", or leave it out";
        require(self.memory_limit != Some(Bytes::ZERO), "memory_limit", message)?;
        require(self.drop_batch > 0, "drop_batch", "overload must drop at least 1")?;
        require((1..=MAX_FLOWS).contains(&self.flows()), "flows", "it must lie between 1 and 1048576")
    }

    /// Number of queues.
    pub(super) fn flows(&self) -> u32 {
        self.flows.unwrap_or(match self.classify {
            Classify::Exact => 65_536,
            Classify::Hashed => 1_024,
        })
    }
}

/// The maximum number of queues. Chosen: 128 MB of state.
const MAX_FLOWS: u32 = 1 << 20;

/// The queues, the two rounds and the packets.
#[derive(Clone, Debug)]
pub struct FlowQueues<P, C: Control> {
    pub(super) params: FlowQueuesParams,
    control: C,
    /// Number of queues.
    flows: u32,
    limit: LinkLimit,
    quanta: Quanta,
    salt: u64,
    random: Stream,
    pub(super) queues: Vec<FlowQueue<C::State>>,
    packets: Pool<P>,
    new_flows: List,
    old_flows: List,
    /// The old queue whose turn ends the round.
    last: Option<usize>,
    /// The number of completed rounds.
    rounds: u64,
    /// The number of turns that each queue's bytes take, to find the queue that is fattest for its weight.
    fattest: Tree<Largest>,
    backlog: Backlog,
}

/// A queue, with the state of its control loop.
#[derive(Clone, Debug)]
pub(super) struct FlowQueue<S> {
    link: Link,
    queue: PacketQueue,
    pub(super) backlog: Backlog,
    pub(super) round: Round,
    quantum: i64,
    pub(super) credits: i64,
    pub(super) state: S,
}

/// The list in which a queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Round {
    Idle,
    New,
    Old,
}

impl<S> Linked for FlowQueue<S> {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// A queue as seen by its control loop.
#[derive(Debug)]
pub struct One<'a, P> {
    queue: &'a mut PacketQueue,
    held: &'a mut Backlog,
    packets: &'a mut Pool<P>,
    backlog: &'a mut Backlog,
}

impl<P: Packet> Source<P> for One<'_, P> {
    fn pop(&mut self) -> Option<Queued<P>> {
        let queued = self.queue.pop(self.packets, End::Head)?;
        self.held.remove(&queued.packet);
        self.backlog.remove(&queued.packet);
        Some(queued)
    }
    fn behind(&self) -> Bytes {
        self.held.bytes
    }
    fn waiting(&self) -> Bytes {
        self.backlog.bytes
    }
}

impl<P: Packet, C: Control> FlowQueues<P, C> {
    /// No queues. A flow of weight `smallest` has one quantum a turn. `random` supplies the salt of the hash
    /// and chooses between equally fat queues.
    #[must_use]
    pub fn new(
        params: &FlowQueuesParams,
        control: &C,
        link_rate: Rate,
        smallest: Weight,
        mut random: Stream,
    ) -> Self {
        Self {
            limit: LinkLimit::new(params.limit, link_rate),
            params: params.clone(),
            control: control.clone(),
            flows: params.flows(),
            quanta: Quanta::new(params.quantum, smallest),
            salt: random.below(u64::MAX),
            random,
            queues: Vec::new(),
            packets: Pool::new(),
            new_flows: List::EMPTY,
            old_flows: List::EMPTY,
            last: None,
            rounds: 0,
            fattest: Tree::new(),
            backlog: Backlog::EMPTY,
        }
    }

    /// The number of the queue of `flow`.
    fn classify(&self, flow: FlowId) -> usize {
        match self.params.classify {
            Classify::Exact => flow.0.min(self.flows - 1) as usize,
            Classify::Hashed => bucket(flow, self.salt, self.flows),
        }
    }

    /// The number of the queue of `flow`, which is created if needed.
    fn queue_of(&mut self, flow: FlowId) -> usize {
        let index = self.classify(flow);
        if index >= self.queues.len() {
            self.grow(index + 1);
        }
        index
    }

    // Not inlined: otherwise each call of `queue_of` saves all registers.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, queues: usize) {
        let idle = FlowQueue {
            link: Link::NONE,
            queue: PacketQueue::EMPTY,
            backlog: Backlog::EMPTY,
            round: Round::Idle,
            quantum: self.quanta.of(Weight::ONE) as i64,
            credits: 0,
            state: C::State::default(),
        };
        self.queues.resize(queues, idle);
    }

    fn is_overloaded(&self) -> bool {
        let memory_limit = self.params.memory_limit;
        self.limit.get().is_exceeded_by(self.backlog)
            || memory_limit.is_some_and(|limit| self.backlog.bytes > limit)
    }

    /// Drops half of the fattest queue, at most a batch; among equally fat ones a random one (RFC 8290
    /// section 4.1). Returns whether there was one.
    fn cut_fattest(&mut self, now: Time, sink: &mut dyn Sink<P>) -> bool {
        let Some(index) = self.fattest.largest(&mut self.random) else { return false };
        let victim = &mut self.queues[index];
        let batch = victim.backlog.packets.get().div_ceil(2).min(self.params.drop_batch);
        for _ in 0..batch {
            let Some(queued) = victim.queue.pop(&mut self.packets, C::OVERFLOW) else { break };
            victim.backlog.remove(&queued.packet);
            self.backlog.remove(&queued.packet);
            sink.dropped(now, queued.packet, DropReason::PushOut);
        }
        self.weigh(index);
        true
    }

    /// Updates the tree for queue `index`.
    fn weigh(&mut self, index: usize) {
        let FlowQueue { backlog: held, quantum, .. } = self.queues[index];
        let turns = Largest::of(held.bytes.get() as f64 / quantum as f64);
        self.fattest.set(index, if held.is_empty() { Largest::ABSENT } else { turns });
    }

    /// Moves the queue in turn to the end of the old ones, or removes it from the round.
    fn end_turn(&mut self, index: usize, round: Round) {
        let list = match self.queues[index].round {
            Round::New => &mut self.new_flows,
            Round::Old | Round::Idle => &mut self.old_flows,
        };
        list.remove(&mut self.queues, index);
        if round == Round::Old {
            self.old_flows.push_back(&mut self.queues, index);
        }
        self.queues[index].round = round;
        if self.last == Some(index) {
            self.rounds += 1;
            self.last = None;
        }
        self.last = self.last.or(self.old_flows.back());
    }
}

impl<P: Packet, C: Control> Discipline<P> for FlowQueues<P, C> {
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        if self.params.classify == Classify::Hashed || flow.0 >= self.flows - 1 {
            return false;
        }
        let index = self.queue_of(flow);
        self.queues[index].quantum = self.quanta.of(weight) as i64;
        self.weigh(index);
        true
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let in_list = |list| self.queues.iter().filter(|queue| queue.round == list).count() as f64;
        show("new_flows", in_list(Round::New));
        show("old_flows", in_list(Round::Old));
        show("rounds", self.rounds as f64);
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
    }

    // A queue that runs empty stays in its round until its turn, like one that its control loop empties.
    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let index = self.classify(flow);
        let held = self.queues.get_mut(index)?;
        let is_meant = |packet: &P| packet.flow().slot() == flow.slot();
        let queued = held.queue.take_first(&mut self.packets, is_meant)?;
        held.backlog.remove(&queued.packet);
        self.backlog.remove(&queued.packet);
        self.weigh(index);
        Some(queued.packet)
    }

    fn drain(&mut self, _now: Time) -> Option<P> {
        // Terminates: each pass removes a queue from the rounds or returns a packet.
        loop {
            let index = self.new_flows.front().or(self.old_flows.front())?;
            let flow = &mut self.queues[index];
            if let Some(queued) = flow.queue.pop(&mut self.packets, End::Head) {
                flow.backlog.remove(&queued.packet);
                self.backlog.remove(&queued.packet);
                self.weigh(index);
                return Some(queued.packet);
            }
            self.end_turn(index, Round::Idle);
        }
    }

    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
}

impl<P: Packet, C: Control> Queue<P> for FlowQueues<P, C> {
    // RFC 8290 section 4.1
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) {
        let index = self.queue_of(packet.flow());
        let flow = &mut self.queues[index];
        let control = &self.control;
        match control.admit(&mut flow.state, now, &packet, flow.backlog, &mut self.random) {
            Admission::Drop(reason) => return sink.dropped(now, packet, reason),
            Admission::Mark => {
                packet.set_ce();
                sink.marked(now, &packet);
            }
            Admission::Accept => {}
        }
        self.backlog.add(&packet);
        flow.backlog.add(&packet);
        flow.queue.push(&mut self.packets, Queued { packet, arrived: now });
        if flow.round == Round::Idle {
            flow.round = Round::New;
            flow.credits = flow.quantum;
            self.new_flows.push_back(&mut self.queues, index);
        }
        self.weigh(index);
        // Terminates: each cut takes at least one packet.
        while self.is_overloaded() && self.cut_fattest(now, sink) {}
    }

    // RFC 8290 section 4.2
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        // Terminates: each pass pays a quantum to a queue, removes a queue, or serves a packet.
        loop {
            let index = self.new_flows.front().or(self.old_flows.front())?;
            let flow = &mut self.queues[index];
            if flow.credits <= 0 {
                flow.credits += flow.quantum;
                self.end_turn(index, Round::Old);
                continue;
            }
            let (packets, backlog) = (&mut self.packets, &mut self.backlog);
            let mut one = One { queue: &mut flow.queue, held: &mut flow.backlog, packets, backlog };
            let sent = dequeue(&self.control, &mut flow.state, now, &mut one, &mut self.random, sink);
            self.weigh(index);
            match sent {
                Some(queued) => {
                    self.queues[index].credits -= scaled(queued.packet.size()) as i64;
                    return Some(queued.packet);
                }
                // A new queue that runs empty becomes an old one, so that it cannot return as new at once and
                // starve the others.
                None if self.queues[index].round == Round::New => self.end_turn(index, Round::Old),
                None => self.end_turn(index, Round::Idle),
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}
