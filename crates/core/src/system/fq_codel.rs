//! FQ-CoDel: flows take turns as in DRR, flows that have just become active go first, and each has its own
//! CoDel.
//!
//! Høiland-Jørgensen, McKenney, Täht, Gettys, Dumazet, RFC 8290, section 4. A system rather than a scheduler
//! with a policy: CoDel drops from the flow in turn while the turn goes on, and an empty flow stays in the
//! round until its turn shows it empty, so neither half works alone.
//!
//! Deviations:
//! - With `classify = "exact"`, the default, a flow's own number picks its queue, so no two flows below
//!   `flows` ever share one; the flows from `flows - 1` on share the last. "hashed" is the RFC's: `flows`
//!   buckets, by a hash with a salt drawn from the run's seed.
//! - Queues can have weights, which scale their quantum; the smallest weight has `quantum` itself. A bucket
//!   is shared by strangers, so "hashed" has no weights.
//! - The fattest queue is found by a tournament tree; the RFC searches all queues for it.
//! - CoDel's "is there more than an MTU left" looks at the whole backlog, not at one queue: its purpose is to
//!   keep the link busy (RFC 8289 section 5.5), and a thousand flows with a packet each are a standing queue.
//!
//! Cost: O(1) per packet, O(log queues) per cut; 128 bytes per queue, kept while it is idle. Parameters:
//! [`ENTRY`].

use alloc::vec::Vec;

use super::contract::System;
use crate::aqm::codel::{CodelControl, CodelState, ECN, INTERVAL, MTU, Source, TARGET};
use crate::limit::{Limit, LinkLimit};
use crate::list::{Link, Linked, List, PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, EntryArgs, Kind, LIMIT, Paper, Param, ParamError, Role, require};
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::{Stream, mix};
use crate::schedule::drr::{Quanta, scaled};
use crate::schedule::{End, Queued};
use crate::tree::{Largest, Summary, Tree};
use crate::units::{Bytes, Rate, Time, Weight};

/// FQ-CoDel in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "fq_codel",
    role: Role::System,
    summary: "Flow queueing with CoDel: a round robin that serves sparse flows first, CoDel on every queue.",
    reference: "RFC 8290",
    cost: "O(1) per packet, O(log queues) per cut, 128 bytes per queue",
    params: &[
        Param {
            paper: Paper::Is("10240p"),
            doc: "Size of all queues together, beyond which the longest loses packets; if not set 100 ms of the link, at \
                  least 96 kB.",
            ..LIMIT
        },
        Param {
            name: "memory_limit",
            symbol: "–",
            kind: Kind::Bytes,
            default: None,
            paper: Paper::Is("32MB"),
            source: "tc-fq_codel(8)",
            doc: "Bytes in all queues together, besides a `limit` in packets; if not set, `limit` alone counts.",
        },
        Param {
            name: "quantum",
            symbol: "quantum",
            kind: Kind::Bytes,
            default: Some("1514B"),
            paper: Paper::AsDefault,
            source: "RFC 8290 section 5.2.4: the MTU of Ethernet",
            doc: "Bytes that the flow with the smallest weight sends in a turn; others send more in proportion to their weights.",
        },
        Param {
            name: "drop_batch",
            symbol: "–",
            kind: Kind::Count,
            default: Some("64"),
            paper: Paper::AsDefault,
            source: "RFC 8290 section 4.1",
            doc: "Maximum number of packets dropped from the longest queue at once; never more than half of it.",
        },
        Param {
            name: "classify",
            symbol: "–",
            kind: Kind::Choice(&["exact", "hashed"]),
            default: Some("exact"),
            paper: Paper::AsDefault,
            source: "chosen: flows are numbered already, so nothing needs to collide",
            doc: "How a flow finds its queue: by its number, or by a salted hash as in the RFC.",
        },
        Param {
            name: "flows",
            symbol: "–",
            kind: Kind::Count,
            default: None,
            paper: Paper::AsDefault,
            source: "hashed: 1024, RFC 8290 section 5.2.5; exact: 65536, chosen: 8 MB at most",
            doc: "Most queues. Exact: the flows beyond share the last one.",
        },
        TARGET,
        INTERVAL,
        MTU,
        ECN,
    ],
};

/// How a flow finds its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classify {
    /// By its number.
    Exact,
    /// By a salted hash of its number.
    Hashed,
}

/// Parameters of [`FqCodel`]; [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
pub struct FqCodelParams {
    /// Size of all queues together, in packets or bytes. Default that of the link, see [`LinkLimit`].
    pub limit: Option<Limit>,
    /// Bytes in all queues together, besides `limit`. Default none.
    pub memory_limit: Option<Bytes>,
    /// Bytes that a flow of the smallest weight sends in a turn. Default 1514.
    pub quantum: Bytes,
    /// Maximum number of packets dropped from the longest queue at once; never more than half of it. Default 64.
    pub drop_batch: u64,
    /// How a flow finds its queue. Default by its number.
    pub classify: Classify,
    /// Number of queues. Default 65536, or 1024 if hashed.
    pub flows: u32,
    /// CoDel on each queue.
    pub control: CodelControl,
}

impl FqCodelParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When one of them leaves nothing to work with.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let (classify, default_flows) = match args.choice("classify") {
            "hashed" => (Classify::Hashed, 1_024),
            _ => (Classify::Exact, 65_536),
        };
        let params = Self {
            limit: args.limit_if_set("limit"),
            memory_limit: args.bytes_if_set("memory_limit"),
            quantum: args.bytes("quantum"),
            drop_batch: args.count("drop_batch"),
            classify,
            flows: u32::try_from(args.count_if_set("flows").unwrap_or(default_flows)).unwrap_or(u32::MAX),
            control: CodelControl::from_args(args)?,
        };
        require(params.quantum > Bytes::ZERO, "quantum", "a quantum must be at least 1B")?;
        require(params.drop_batch > 0, "drop_batch", "overload must drop at least 1")?;
        require((1..=MAX_FLOWS).contains(&params.flows), "flows", "it must lie between 1 and 1048576")?;
        Ok(params)
    }
}

/// Most queues that can be asked for. Chosen: 128 MB of state.
const MAX_FLOWS: u32 = 1 << 20;

/// The queues, the two rounds and the packets.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    pub(super) params: FqCodelParams,
    limit: LinkLimit,
    quanta: Quanta,
    salt: u64,
    queues: Vec<FlowQueue>,
    packets: Pool<P>,
    new_flows: List,
    old_flows: List,
    /// Queues by bytes, to find the fattest.
    fattest: Tree<Largest>,
    backlog: Backlog,
}

#[derive(Clone, Debug)]
struct FlowQueue {
    link: Link,
    queue: PacketQueue,
    backlog: Backlog,
    round: Round,
    quantum: i64,
    credits: i64,
    codel: CodelState,
}

/// Which list a queue is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Idle,
    New,
    Old,
}

impl Linked for FlowQueue {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// One queue as CoDel sees it.
struct One<'a, P> {
    queue: &'a mut PacketQueue,
    held: &'a mut Backlog,
    packets: &'a mut Pool<P>,
    backlog: &'a mut Backlog,
}

impl<P: Packet> Source<P> for One<'_, P> {
    fn pop(&mut self, _now: Time) -> Option<Queued<P>> {
        let queued = self.queue.pop(self.packets, End::Head)?;
        self.held.remove(&queued.packet);
        self.backlog.remove(&queued.packet);
        Some(queued)
    }
    fn bytes(&self) -> Bytes {
        self.backlog.bytes
    }
}

impl<P: Packet> FqCodel<P> {
    /// No queues yet. A flow of weight `smallest` has one quantum a turn; `random` gives the salt of the
    /// hash.
    #[must_use]
    pub fn new(params: &FqCodelParams, link_rate: Rate, smallest: Weight, mut random: Stream) -> Self {
        Self {
            limit: LinkLimit::new(params.limit, link_rate),
            params: params.clone(),
            quanta: Quanta::new(params.quantum, smallest),
            salt: random.below(u64::MAX),
            queues: Vec::new(),
            packets: Pool::new(),
            new_flows: List::EMPTY,
            old_flows: List::EMPTY,
            fattest: Tree::new(),
            backlog: Backlog::EMPTY,
        }
    }

    /// The number of the queue of `flow`.
    fn classify(&self, flow: FlowId) -> usize {
        let flows = u64::from(self.params.flows);
        let index = match self.params.classify {
            Classify::Exact => u64::from(flow.0).min(flows - 1),
            // The high half of hash × flows lies in 0..flows, without a division.
            Classify::Hashed => {
                ((u128::from(mix(u64::from(flow.0) ^ self.salt)) * u128::from(flows)) >> 64) as u64
            }
        };
        index as usize
    }

    /// The number of the queue of `flow`, which is there from now on.
    fn queue_of(&mut self, flow: FlowId) -> usize {
        let index = self.classify(flow);
        if index >= self.queues.len() {
            self.grow(index + 1);
        }
        index
    }

    // Apart: with it, each call of `queue_of` saves all registers.
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
            codel: CodelState::default(),
        };
        self.queues.resize(queues, idle);
    }

    fn is_overloaded(&self) -> bool {
        let memory_limit = self.params.memory_limit;
        self.limit.get().is_exceeded_by(self.backlog)
            || memory_limit.is_some_and(|limit| self.backlog.bytes > limit)
    }

    /// Drops half of the fattest queue, or a batch, from its head. Whether there was one.
    // RFC 8290 section 4.1
    fn cut_fattest(&mut self, now: Time, sink: &mut dyn Sink<P>) -> bool {
        let Some(index) = self.fattest.largest() else { return false };
        let victim = &mut self.queues[index];
        let batch = victim.backlog.packets.get().div_ceil(2).min(self.params.drop_batch);
        for _ in 0..batch {
            let Some(queued) = victim.queue.pop(&mut self.packets, End::Head) else { break };
            victim.backlog.remove(&queued.packet);
            self.backlog.remove(&queued.packet);
            sink.dropped(now, queued.packet, DropReason::PushOut);
        }
        self.weigh(index);
        true
    }

    /// Brings the tree up to date with queue `index`.
    fn weigh(&mut self, index: usize) {
        let held = self.queues[index].backlog;
        let bytes = Largest::of(index, held.bytes.get() as f64);
        self.fattest.set(index, if held.is_empty() { Largest::ABSENT } else { bytes });
    }

    /// Moves the queue whose turn it is to the end of the old ones, or takes it out of the round.
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
    }
}

impl<P: Packet> System<P> for FqCodel<P> {
    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        if self.params.classify == Classify::Hashed || flow.0 >= self.params.flows - 1 {
            return false;
        }
        let index = self.queue_of(flow);
        self.queues[index].quantum = self.quanta.of(weight) as i64;
        true
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

    // A queue that runs empty stays in its round until its turn, as one that CoDel empties.
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
        // Terminates: each pass takes a queue out of the rounds or gives a packet.
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
}

impl<P: Packet> Queue<P> for FqCodel<P> {
    // RFC 8290 section 4.1
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let index = self.queue_of(packet.flow());
        self.backlog.add(&packet);
        let flow = &mut self.queues[index];
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
        // Terminates: each pass pays a quantum to a queue, takes a queue out, or serves a packet.
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
            let sent = flow.codel.dequeue(&self.params.control, now, &mut one, sink);
            self.weigh(index);
            match sent {
                Some(queued) => {
                    self.queues[index].credits -= scaled(queued.packet.size()) as i64;
                    return Some(queued.packet);
                }
                // A new queue that runs empty goes through the old ones, so that it cannot come back as new
                // at once and starve them.
                None if self.queues[index].round == Round::New => self.end_turn(index, Round::Old),
                None => self.end_turn(index, Round::Idle),
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::system::catalog::Selection;
    use crate::testing::{Log, packet};

    fn fq_codel(change: impl FnOnce(&mut FqCodelParams)) -> FqCodel<SimplePacket> {
        let mut params = FqCodelParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        change(&mut params);
        FqCodel::new(&params, Rate::from_mbit(10), Weight::ONE, Stream::new(1, "fq_codel"))
    }

    fn serve(queue: &mut FqCodel<SimplePacket>, n: usize) -> Vec<u32> {
        let mut log = Log::default();
        (0..n).map_while(|_| queue.dequeue(Time::ZERO, &mut log)).map(|packet| packet.id).collect()
    }

    #[test]
    fn a_flow_that_has_just_become_active_goes_first_for_a_quantum() {
        let mut queue = fq_codel(|params| params.quantum = Bytes::new(1_000));
        let mut log = Log::default();
        for id in 0..4 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        assert_eq!(serve(&mut queue, 2), [0, 1]);
        queue.enqueue(Time::ZERO, packet(10, 1, 100), &mut log);
        queue.enqueue(Time::ZERO, packet(11, 1, 100), &mut log);
        assert_eq!(serve(&mut queue, 9), [10, 11, 2, 3]);
    }

    #[test]
    fn a_new_flow_that_runs_empty_waits_behind_the_old_before_it_is_new_again() {
        let mut queue = fq_codel(|params| params.quantum = Bytes::new(100));
        let mut log = Log::default();
        for id in 0..4 {
            queue.enqueue(Time::ZERO, packet(id, 0, 100), &mut log);
        }
        queue.enqueue(Time::ZERO, packet(10, 1, 50), &mut log);
        // Flow 0 spends its quantum and becomes old; flow 1 sends and has 50 left.
        assert_eq!(serve(&mut queue, 2), [0, 10]);
        // Flow 1 is found empty while new, so it becomes old; flow 0 has the turn.
        assert_eq!(serve(&mut queue, 1), [1]);
        queue.enqueue(Time::ZERO, packet(11, 1, 50), &mut log);
        assert_eq!(queue.queues[1].round, Round::Old, "it does not jump the queue again");
    }

    #[test]
    fn a_flow_that_comes_back_starts_with_a_quantum_whatever_it_owed() {
        let mut queue = fq_codel(|params| params.quantum = Bytes::new(100));
        let mut log = Log::default();
        queue.enqueue(Time::ZERO, packet(0, 0, 1_000), &mut log);
        assert_eq!(serve(&mut queue, 9), [0]);
        assert_eq!((queue.queues[0].round, queue.queues[0].credits >> 16), (Round::Idle, 100));
        queue.queues[0].credits = -900 << 16;
        queue.enqueue(Time::ZERO, packet(1, 0, 1_000), &mut log);
        assert_eq!((queue.queues[0].round, queue.queues[0].credits >> 16), (Round::New, 100));
    }

    #[test]
    fn the_number_of_queues_defaults_by_how_flows_find_them() {
        let mut selection = Selection::new("fq_codel", None, None).unwrap();
        assert_eq!(FqCodelParams::from_args(&selection.args.of(&ENTRY)).unwrap().flows, 65_536);
        selection.set("classify", "hashed").unwrap();
        assert_eq!(FqCodelParams::from_args(&selection.args.of(&ENTRY)).unwrap().flows, 1_024);
    }

    #[test]
    fn overload_cuts_half_of_the_fattest_queue_up_to_a_batch() {
        for (drop_batch, cut) in [(64, 5), (3, 3)] {
            let mut queue = fq_codel(|params| {
                params.limit = Some(Limit::Packets(crate::units::Packets::new(11)));
                params.drop_batch = drop_batch;
            });
            let mut log = Log::default();
            for (id, flow) in [(0, 0), (1, 0), (2, 0)].into_iter().chain((3..12).map(|id| (id, 1))) {
                queue.enqueue(Time::ZERO, packet(id, flow, 100), &mut log);
            }
            // The twelfth packet finds flow 1 with nine: half of nine, rounded up, is five, from number 3 on.
            let ids: Vec<_> = log.dropped.iter().map(|&(_, id, _)| id).collect();
            assert_eq!(ids, (3..3 + cut).collect::<Vec<_>>());
        }
    }

    #[test]
    fn memory_limit_holds_in_bytes() {
        let mut queue = fq_codel(|params| params.memory_limit = Some(Bytes::new(2_500)));
        let mut log = Log::default();
        for id in 0..3 {
            queue.enqueue(Time::ZERO, packet(id, id, 1_000), &mut log);
        }
        assert_eq!(queue.backlog().bytes.get(), 2_000);
    }

    #[test]
    fn flows_beyond_the_bound_share_the_last_queue_and_state_stays_bounded() {
        let mut queue = fq_codel(|params| params.flows = 4);
        let mut log = Log::default();
        for flow in 0..1_000 {
            queue.enqueue(Time::ZERO, packet(flow, flow, 100), &mut log);
        }
        assert_eq!(queue.queues.len(), 4);
        assert_eq!(queue.queues[3].backlog.packets.get(), 997);
        assert!(queue.set_weight(FlowId(2), Weight::ONE) && !queue.set_weight(FlowId(3), Weight::ONE));
    }

    #[test]
    fn only_the_flow_whose_own_queue_stands_loses_packets() {
        let mut queue = fq_codel(|params| {
            params.limit = Some(Limit::Bytes(Bytes::new(2_000_000)));
            params.control.ecn = false;
        });
        let mut log = Log::default();
        for id in 0..1_000 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        for ms in 1..=300 {
            let now = Time::from_millis(ms);
            queue.enqueue(now, packet(100_000 + ms as u32, 1, 100), &mut log);
            queue.dequeue(now, &mut log);
            queue.dequeue(now, &mut log);
        }
        assert!(log.dropped.len() >= 2);
        assert!(log.dropped.iter().all(|&(_, id, reason)| id < 1_000 && reason == DropReason::Early));
    }
}
