//! SFQ, stochastic fairness queueing: a hash puts flows into buckets, and buckets take turns packet by packet.
//!
//! McKenney, "Stochastic fairness queueing", INFOCOM 1990. Flows that collide share a turn, so the hash is
//! perturbed at intervals. A full buffer drops from the longest bucket. It is named as in Linux; SFQ also
//! means start-time fair queueing (Goyal, Vin, Cheng 1997), which is
//! [`stfq`](crate::schedule::start_time_fq).
//!
//! Readings:
//! - Turns and lengths count packets, as in the paper, so a flow with large packets gets more bytes. DRR
//!   (`drr`, [`fq_codel`](super::fq_codel)) mends that.
//! - The longest bucket loses its last packet; among equal buckets a random one.
//! - A bucket that becomes backlogged joins the round at its tail.
//! - With a new hash the waiting packets move to their new buckets, in order within a flow; the paper lets
//!   them leave out of order.
//!
//! Limits: a flow shares its bucket with (n - 1)/`buckets` others on average. Next to a flood over 100 to 200
//! Mb/s the smallest share of 10 TCP flows is all of its due, of 100 flows 0.64 (0.88 with 8192 buckets), of
//! 1,000 flows 0.1, because of collisions and of hash changes within the measured time. A flood of 1000 B
//! gets two thirds of its due next to packets of 1500 B.
//!
//! Cost: O(1) per packet, O(log buckets) per drop; a perturbation moves all packets. Memory: 28 bytes or less a bucket, up to
//! twice as many in the tournament, and no state per flow. Parameters: [`ENTRY`].

use alloc::vec;
use alloc::vec::Vec;

use super::discipline::Discipline;
use super::hash::bucket;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::list::{Link, Linked, List, PacketQueue, Pool};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Inside, LIMIT, Param, Role, Shares, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::schedule::{End, Queued};
use crate::tree::{Largest, Summary, Tree};
use crate::units::{Rate, Span, Time};

/// Stochastic fairness queueing in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "sfq",
    role: Role::System,
    summary: "SFQ of 1990: hashed buckets take turns packet by packet, the longest loses; not start-time FQ.",
    reference: "McKenney 1990",
    cost: "O(1) per packet, O(log buckets) per drop, no state per flow",
    params: SfqParams::PARAMS,
    traits: Traits {
        inside: Inside::Part,
        shares: Shares::Approximate,
        limits: "There are no weights, and flows with small packets get less. Flows in one bucket share its turn \
            until the hash changes: beside a flood the least of 100 TCP flows gets 0.64 of its due, and of \
            1,000 a tenth.",
        ..Traits::NONE
    },
};

/// The maximum number of buckets. Chosen: 64 MB of state.
const MAX_BUCKETS: u32 = 1 << 20;

params! {
    /// Parameters of [`Sfq`].
    pub struct SfqParams {
        limit: Option<BufferSize> = LIMIT,
        /// Queues that flows are hashed to.
        buckets: u32 = Param::of("1024", "chosen: as hashed `fq_codel`"),
        /// Time after which the hash changes; 0s for never.
        perturb: Span = Param::of("10s", "chosen: long beside a round trip, short beside a transfer"),
    }
    check: |params: &Self, _| {
        require((1..=MAX_BUCKETS).contains(&params.buckets), "buckets", "it must lie between 1 and 1048576")
    }
}

#[derive(Clone, Debug)]
struct Bucket {
    link: Link,
    queue: PacketQueue,
    packets: u32,
}

impl Linked for Bucket {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }
}

/// The buckets and their round.
#[derive(Clone, Debug)]
pub struct Sfq<P> {
    params: SfqParams,
    limit: LinkLimit,
    random: Stream,
    salt: u64,
    /// The time at which the hash changes; none before the first packet.
    perturbed: Option<Time>,
    buckets: Vec<Bucket>,
    packets: Pool<P>,
    /// Buckets with packets; the first has its turn.
    round: List,
    longest: Tree<Largest>,
    backlog: Backlog,
}

impl<P: Packet> Sfq<P> {
    /// Empty buckets; `random` supplies the salts of the hash, and chooses between equally long buckets.
    #[must_use]
    pub fn new(params: &SfqParams, link_rate: Rate, mut random: Stream) -> Self {
        let empty = Bucket { link: Link::NONE, queue: PacketQueue::EMPTY, packets: 0 };
        Self {
            limit: LinkLimit::new(params.limit, link_rate),
            params: params.clone(),
            salt: random.below(u64::MAX),
            random,
            perturbed: None,
            buckets: vec![empty; params.buckets as usize],
            packets: Pool::new(),
            round: List::EMPTY,
            longest: Tree::new(),
            backlog: Backlog::EMPTY,
        }
    }

    fn push(&mut self, queued: Queued<P>) {
        self.backlog.add(&queued.packet);
        let index = bucket(queued.packet.flow(), self.salt, self.params.buckets);
        let bucket = &mut self.buckets[index];
        bucket.queue.push(&mut self.packets, queued);
        bucket.packets += 1;
        if bucket.packets == 1 {
            self.round.push_back(&mut self.buckets, index);
        }
        self.weigh(index);
    }

    /// Subtracts a packet that left bucket `index`, and removes the bucket if it is empty.
    fn left(&mut self, index: usize, queued: Queued<P>) -> Queued<P> {
        self.backlog.remove(&queued.packet);
        self.buckets[index].packets -= 1;
        if self.buckets[index].packets == 0 {
            self.round.remove(&mut self.buckets, index);
        }
        self.weigh(index);
        queued
    }

    fn take_from(&mut self, index: usize, end: End) -> Option<Queued<P>> {
        let queued = self.buckets[index].queue.pop(&mut self.packets, end)?;
        Some(self.left(index, queued))
    }

    /// Updates the tree for bucket `index`.
    fn weigh(&mut self, index: usize) {
        let packets = self.buckets[index].packets;
        let leaf = if packets > 0 { Largest::of(f64::from(packets)) } else { Largest::ABSENT };
        self.longest.set(index, leaf);
    }

    fn serve(&mut self) -> Option<P> {
        let index = self.round.front()?;
        self.round.rotate(&mut self.buckets);
        self.take_from(index, End::Head).map(|queued| queued.packet)
    }

    /// Changes the hash and moves the waiting packets, bucket by bucket in the order of their turns.
    #[cold]
    fn perturb(&mut self) {
        self.salt = self.random.below(u64::MAX);
        let mut waiting = Vec::new();
        // Terminates: each pass removes a packet.
        while let Some(index) = self.round.front() {
            waiting.extend(self.take_from(index, End::Head));
        }
        waiting.into_iter().for_each(|queued| self.push(queued));
    }
}

impl<P: Packet> Queue<P> for Sfq<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        let next = *self.perturbed.get_or_insert(now + self.params.perturb);
        if now >= next && self.params.perturb > Span::ZERO {
            self.perturbed = Some(now + self.params.perturb);
            self.perturb();
        }
        self.push(Queued { packet, arrived: now });
        // Terminates: each pass removes a packet, and an empty buffer exceeds no limit.
        while self.limit.get().is_exceeded_by(self.backlog) {
            let longest = self.longest.largest(&mut self.random);
            let Some(queued) = longest.and_then(|index| self.take_from(index, End::Tail)) else { return };
            sink.dropped(now, queued.packet, DropReason::PushOut);
        }
    }

    fn dequeue(&mut self, _now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.serve()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Packet> Discipline<P> for Sfq<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.serve()
    }
    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let index = bucket(flow, self.salt, self.params.buckets);
        let is_meant = |packet: &P| packet.flow().slot() == flow.slot();
        let queued = self.buckets[index].queue.take_first(&mut self.packets, is_meant)?;
        Some(self.left(index, queued).packet)
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
    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    fn queue(change: impl FnOnce(&mut SfqParams)) -> Sfq<SimplePacket> {
        let mut params = SfqParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        change(&mut params);
        Sfq::new(&params, Rate::from_mbit(10), Stream::new(1, "sfq"))
    }

    /// Sends a packet for each of these flows, numbered from `first`. Returns the numbers of dropped packets.
    fn push(queue: &mut Sfq<SimplePacket>, now: Time, first: u32, flows: &[u32]) -> Vec<u32> {
        let mut log = Log::default();
        for (id, &flow) in (first..).zip(flows) {
            queue.enqueue(now, packet(id, flow, 100 + 100 * u64::from(flow)), &mut log);
        }
        log.dropped.into_iter().map(|(_, id, _)| id).collect()
    }

    fn serve(queue: &mut Sfq<SimplePacket>, n: usize) -> Vec<u32> {
        (0..n).map_while(|_| queue.serve()).map(|packet| packet.id).collect()
    }

    #[test]
    fn buckets_take_turns_packet_by_packet_whatever_their_size() {
        let mut queue = queue(|_| {});
        push(&mut queue, Time::ZERO, 1, &[0, 0, 0, 1, 1, 2]);
        assert_eq!(serve(&mut queue, 3), [1, 4, 6]);
        // Flow 2 was empty and joins behind the others.
        push(&mut queue, Time::ZERO, 7, &[2]);
        assert_eq!(serve(&mut queue, 9), [2, 5, 7, 3]);
    }

    #[test]
    fn the_longest_bucket_loses_its_last_packet() {
        let mut queue = queue(|params| params.limit = Some(Limit::Packets(Packets::new(4)).into()));
        assert_eq!(push(&mut queue, Time::ZERO, 1, &[0, 0, 0, 0, 1, 2]), [4, 3]);
        assert_eq!(serve(&mut queue, 9), [1, 5, 6, 2]);
    }

    #[test]
    fn flows_of_one_bucket_share_its_turn() {
        let mut queue = queue(|params| params.buckets = 1);
        push(&mut queue, Time::ZERO, 1, &[0, 0, 1, 2]);
        assert_eq!(serve(&mut queue, 9), [1, 2, 3, 4]);
    }

    #[test]
    fn a_perturbation_parts_a_pair_and_keeps_the_order_of_each_flow() {
        let mut queue = queue(|params| params.buckets = 2);
        let of = |queue: &Sfq<SimplePacket>, flow| bucket(FlowId(flow), queue.salt, 2);
        let mate = (1..).find(|&flow| of(&queue, flow) == of(&queue, 0)).unwrap();
        push(&mut queue, Time::ZERO, 1, &[0, 0, mate, mate]);
        // Two buckets: a perturbation separates the two flows with probability one half.
        let mut parted = false;
        for round in 1..=20 {
            push(&mut queue, Time::from_secs(10 * round), 10 + round as u32, &[0]);
            parted |= of(&queue, 0) != of(&queue, mate);
        }
        assert!(parted);
        let left = serve(&mut queue, 99);
        let of_flow = |mates: bool| left.iter().copied().filter(move |id| [3, 4].contains(id) == mates);
        assert!(of_flow(true).eq([3, 4]) && of_flow(false).is_sorted() && left.len() == 24);
    }

    #[test]
    fn without_a_time_the_hash_stays() {
        let mut queue = queue(|params| params.perturb = Span::ZERO);
        let salt = queue.salt;
        for seconds in 0..100 {
            push(&mut queue, Time::from_secs(seconds), 1, &[0]);
        }
        assert_eq!(queue.salt, salt);
    }
}
