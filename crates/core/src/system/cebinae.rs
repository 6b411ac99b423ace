//! Cebinae: taxes the flows that use most of a full link, so that the others can grow.
//!
//! Yu, Sonchack, Liu, "Cebinae: scalable in-network fairness augmentation", SIGCOMM 2022. Time is divided
//! into rounds of dT. Every P rounds the port is *saturated* if it sent at least 1 - delta_p of its capacity.
//! Then the flows that sent at least 1 - delta_f of the largest flow's bytes are *top* flows. Together they
//! get 1 - tau of their previous rate, and the others get the rest of the link. A port that is not saturated
//! limits no flow. A flow that its congestion control favours is thus pushed back by tau a period, until
//! others reach its rate and are top flows too, or until the link is no longer full.
//!
//! - Each group has a leaky bucket: the bytes sent, and at least those that could have been sent by now in
//!   this round. A packet that exceeds the group's allocation for this round waits for the next one, in a
//!   second queue that is served when the first is empty; one that exceeds the next round's too is dropped.
//! - The bytes of flows are counted in a cache of slots selected by a hash: a slot belongs to the first of
//!   its flows in each period, and the others are not counted, so they are not top flows.
//!
//! Readings, where the text leaves room or was not available; the parameters are those of the authors'
//! experiments:
//! - A decision at the end of a round applies from the next one on; a switch needs some time in between.
//! - When a port becomes saturated, its backlog is divided between the groups in proportion to bytes sent.
//! - Packets left over from a round go first in the next.
//! - Nothing is marked, and virtual rounds within a round are infinitely short, as in the experiments (vdT =
//!   1 ns).
//!
//! dT should exceed the longest round trip: otherwise the next tax comes before a sender has responded to the
//! last.
//!
//! Cost: O(1) per packet, O(slots) every P rounds. Memory: 16 bytes a slot, a byte per flow. Parameters: [`ENTRY`].

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::discipline::Discipline;
use super::hash::bucket;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, LIMIT, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::units::{Bytes, Rate, Ratio, Span, Time};

/// Cebinae in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "cebinae",
    role: Role::System,
    summary: "Cebinae: taxes the largest flows of a saturated link and leaves the freed bandwidth to the others.",
    reference: "Yu, Sonchack, Liu 2022",
    cost: "O(1) per packet, 16 bytes per slot, one per flow",
    params: CebinaeParams::PARAMS,
    traits: Traits {
        divides_set_rate: true,
        limits: "It limits one flood, not several. A `tax` of 1 % takes a minute to halve a flow: over round \
            trips of 200 ms set 5 to 10 %.",
        ..Traits::NONE
    },
};

/// The maximum number of slots. Chosen: 16 MB of state.
const MAX_SLOTS: u32 = 1 << 20;

params! {
    /// Parameters of [`Cebinae`].
    pub struct CebinaeParams {
        limit: Option<BufferSize> = LIMIT,
        /// A round.
        interval: Span = Param::of("100ms", "chosen: above most round trips; the authors take the next power of two above theirs")
            .symbol("dT"),
        /// Rounds between two decisions.
        periods: u32 = Param::of("1", "the authors' experiments").symbol("P"),
        /// What top flows lose of what they had, each time.
        tax: Ratio = Param::of("1%", "the authors' experiments").symbol("τ"),
        /// A port is saturated that has no more than this part of its link left.
        delta_p: Ratio = Param::of("1%", "the authors' experiments").symbol("δp"),
        /// Top flows are no further below the largest.
        delta_f: Ratio = Param::of("1%", "the authors' experiments").symbol("δf"),
        /// Flows that can be counted.
        slots: u32 = Param::of("2048", "the authors' experiments"),
    }
    check: |params: &Self, _| params.check()
}

impl CebinaeParams {
    fn check(&self) -> Result<(), ParamError> {
        let lasts = (Span::from_micros(100)..=Span::from_secs(100)).contains(&self.interval);
        require(lasts, "interval", "it must lie between 100us and 100s; write for example \"100ms\"")?;
        require((1..=1_000).contains(&self.periods), "periods", "it must lie between 1 and 1000")?;
        for (name, value) in [("tax", self.tax), ("delta_p", self.delta_p), ("delta_f", self.delta_f)] {
            require(value < Ratio::ONE, name, "it must be below 1; write for example \"1%\"")?;
        }
        require((1..=MAX_SLOTS).contains(&self.slots), "slots", "it must lie between 1 and 1048576")
    }
}

/// The leaky bucket of a group, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// The bytes admitted since the round began, at least those that could have been sent.
    bytes: u64,
    /// The bytes allocated for this round.
    head: u64,
    /// The bytes allocated for the next round.
    tail: u64,
}

/// The place for a packet of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Head,
    Tail,
    Beyond,
}

impl Group {
    /// The level with a packet of `size` after `elapsed` of a round of `interval`, and the packet's place.
    fn with(&self, size: Bytes, elapsed: Span, interval: Span) -> (u64, Place) {
        let could = u128::from(self.head) * u128::from(elapsed.as_nanos()) / u128::from(interval.as_nanos());
        let bytes = self.bytes.max(could as u64) + size.get();
        let place = match bytes {
            _ if bytes <= self.head => Place::Head,
            _ if bytes <= self.head + self.tail => Place::Tail,
            _ => Place::Beyond,
        };
        (bytes, place)
    }

    /// Begins a round.
    fn rotate(&mut self, next: u64) {
        self.bytes = self.bytes.saturating_sub(self.head);
        (self.head, self.tail) = (self.tail, next);
    }
}

/// A slot of the cache: its flow in this period, and the flow's bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    flow: u32,
    bytes: u64,
}

/// The queues, the groups and the cache.
#[derive(Clone, Debug)]
pub struct Cebinae<P> {
    params: CebinaeParams,
    limit: LinkLimit,
    rate: Rate,
    salt: u64,
    /// The start of the round.
    base: Time,
    /// Rounds since the last decision.
    rounds: u32,
    is_saturated: bool,
    /// The bucket of all flows, which applies while the port is not saturated.
    all: Group,
    /// The buckets of top flows and of the others, which apply while it is.
    top: Group,
    bottom: Group,
    /// Whether each flow is a top flow.
    is_top: Vec<bool>,
    tops: Vec<FlowId>,
    cache: Vec<Slot>,
    sent: u64,
    head: VecDeque<P>,
    tail: VecDeque<P>,
    backlog: Backlog,
    /// The number of decisions, and of those that found the port saturated.
    decisions: [u64; 2],
}

impl<P: Packet> Cebinae<P> {
    /// Empty queues for a link that was idle.
    #[must_use]
    pub fn new(params: &CebinaeParams, link_rate: Rate, mut random: Stream) -> Self {
        let mut new = Self {
            limit: LinkLimit::new(params.limit, link_rate),
            rate: link_rate,
            salt: random.below(u64::MAX),
            base: Time::ZERO,
            rounds: 0,
            is_saturated: false,
            all: Group::default(),
            top: Group::default(),
            bottom: Group::default(),
            is_top: Vec::new(),
            tops: Vec::new(),
            cache: vec![Slot::default(); params.slots as usize],
            sent: 0,
            head: VecDeque::new(),
            tail: VecDeque::new(),
            backlog: Backlog::EMPTY,
            decisions: [0; 2],
            params: params.clone(),
        };
        (new.all.head, new.all.tail) = (new.capacity(), new.capacity());
        new
    }

    /// The bytes that the link carries in a round.
    fn capacity(&self) -> u64 {
        self.rate.bytes_in(self.params.interval).get()
    }

    /// Begins the rounds that are due by `now`.
    #[inline]
    fn advance(&mut self, now: Time) {
        if now.since(self.base) >= self.params.interval {
            self.rotate(now);
        }
    }

    #[inline(never)]
    fn rotate(&mut self, now: Time) {
        // After an idle period no work is left, so that a long pause costs no more.
        let due = now.since(self.base).as_nanos() / self.params.interval.as_nanos();
        let steps = due.min(u64::from(self.params.periods) + 2);
        for _ in 0..steps {
            self.rounds += 1;
            if self.rounds >= self.params.periods {
                self.rounds = 0;
                self.decide();
            }
            let capacity = self.capacity();
            let (top, bottom) = (self.top.tail, self.bottom.tail);
            self.all.rotate(capacity);
            self.top.rotate(top);
            self.bottom.rotate(bottom);
            // Packets left over go first.
            self.head.append(&mut self.tail);
        }
        self.base += self.params.interval * due;
    }

    /// Decides whether the port is saturated, which flows are top flows, and the allocations from the next
    /// round on.
    fn decide(&mut self) {
        let rounds = u64::from(self.params.periods);
        let could = self.capacity() * rounds;
        let was_saturated = self.is_saturated;
        self.is_saturated = self.sent as f64 >= (1.0 - self.params.delta_p.get()) * could as f64 && could > 0;
        self.decisions[0] += 1;
        self.decisions[1] += u64::from(self.is_saturated);
        for flow in self.tops.drain(..) {
            self.is_top[flow.slot()] = false;
        }
        if self.is_saturated {
            let had = self.find_top();
            let taxed = ((1.0 - self.params.tax.get()) * had as f64) as u64 / rounds;
            if !was_saturated {
                self.divide(had);
            }
            self.top.tail = taxed.min(self.capacity());
            self.bottom.tail = self.capacity() - self.top.tail;
        }
        self.cache.fill(Slot::default());
        self.sent = 0;
    }

    /// Marks the top flows. Returns their bytes.
    fn find_top(&mut self) -> u64 {
        let largest = self.cache.iter().map(|slot| slot.bytes).max().unwrap_or(0);
        let least = (1.0 - self.params.delta_f.get()) * largest as f64;
        let mut had = 0;
        for slot in self.cache.iter().filter(|slot| slot.bytes > 0 && slot.bytes as f64 >= least) {
            had += slot.bytes;
            let flow = FlowId(slot.flow);
            if flow.slot() >= self.is_top.len() {
                self.is_top.resize(flow.slot() + 1, false);
            }
            self.is_top[flow.slot()] = true;
            self.tops.push(flow);
        }
        had
    }

    /// Starts both groups when the port becomes saturated, with their parts of the bytes sent, of which top
    /// flows sent `had`.
    fn divide(&mut self, had: u64) {
        let part = had as f64 / self.sent.max(1) as f64;
        let of = |bytes: u64| (part.min(1.0) * bytes as f64) as u64;
        let Group { bytes, head, tail } = self.all;
        self.top = Group { bytes: of(bytes), head: of(head), tail: of(tail) };
        self.bottom =
            Group { bytes: bytes - self.top.bytes, head: head - self.top.head, tail: tail - self.top.tail };
    }

    /// Counts a packet that is sent.
    fn count(&mut self, packet: &P) {
        let (flow, size) = (packet.flow(), packet.size().get());
        self.sent += size;
        let slot = &mut self.cache[bucket(flow, self.salt, self.params.slots)];
        if slot.bytes == 0 {
            slot.flow = flow.0;
        }
        if slot.flow == flow.0 {
            slot.bytes += size;
        }
    }

    fn pop(&mut self) -> Option<P> {
        let packet = self.head.pop_front().or_else(|| self.tail.pop_front())?;
        self.backlog.remove(&packet);
        Some(packet)
    }
}

impl<P: Packet> Queue<P> for Cebinae<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        self.advance(now);
        if !self.limit.get().admits(&packet, self.backlog) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        let (elapsed, interval) = (now.since(self.base), self.params.interval);
        let (all, mut place) = self.all.with(packet.size(), elapsed, interval);
        if self.is_saturated {
            let is_top = self.is_top.get(packet.flow().slot()).copied().unwrap_or(false);
            let group = if is_top { &mut self.top } else { &mut self.bottom };
            let (bytes, own) = group.with(packet.size(), elapsed, interval);
            if own == Place::Beyond {
                return sink.dropped(now, packet, DropReason::Policy);
            }
            (group.bytes, place) = (bytes, own);
        }
        self.all.bytes = all;
        self.backlog.add(&packet);
        match place {
            Place::Head => self.head.push_back(packet),
            // Without groups only the buffer limits the backlog.
            Place::Tail | Place::Beyond => self.tail.push_back(packet),
        }
    }

    fn dequeue(&mut self, now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.advance(now);
        let packet = self.pop()?;
        self.count(&packet);
        Some(packet)
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Packet> Discipline<P> for Cebinae<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.pop()
    }
    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let is_meant = |packet: &P| packet.flow().slot() == flow.slot();
        let queue = [&mut self.head, &mut self.tail];
        let packet = queue.into_iter().find_map(|queue| queue.remove(queue.iter().position(is_meant)?))?;
        self.backlog.remove(&packet);
        Some(packet)
    }
    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }
    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.limit.set_link_rate(rate);
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let [all, saturated] = self.decisions;
        show("saturated", saturated as f64 / all.max(1) as f64);
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

    /// A link of 100 packets of 100 bytes in a round of 100 ms.
    fn cebinae(change: impl FnOnce(&mut CebinaeParams)) -> Cebinae<SimplePacket> {
        let mut params = CebinaeParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = Some(Limit::Packets(Packets::new(1_000)).into());
        change(&mut params);
        Cebinae::new(&params, Rate::from_bit(800_000), Stream::new(1, "hash"))
    }

    /// Sends a packet of each of `flows` every millisecond of `ms`, and lets one leave. Returns the number of
    /// departures of each flow.
    fn run(queue: &mut Cebinae<SimplePacket>, flows: &[u32], ms: core::ops::Range<u64>) -> Vec<u64> {
        let (mut log, mut left) = (Log::default(), vec![0; 8]);
        for now in ms.map(Time::from_millis) {
            flows.iter().for_each(|&flow| queue.enqueue(now, packet(0, flow, 100), &mut log));
            if let Some(sent) = queue.dequeue(now, &mut log) {
                left[sent.flow.slot()] += 1;
            }
        }
        left
    }

    #[test]
    fn the_largest_of_a_full_link_are_taxed_and_the_others_get_what_they_lose() {
        let mut queue = cebinae(|params| params.tax = Ratio::new(0.1).unwrap());
        // Two of three packets are of flow 0.
        run(&mut queue, &[0, 0, 1], 0..100);
        assert!(!queue.is_saturated);
        run(&mut queue, &[0, 0, 1], 100..101);
        assert!(queue.is_saturated && queue.is_top[0] && !queue.is_top.get(1).copied().unwrap_or(false));
        // 67 packets of 100 B left it, minus a tenth.
        assert_eq!((queue.top.head, queue.bottom.head), (6_030, 3_970));
        // A flow whose sender does not respond loses more and more; without tax it keeps its rate.
        let later = |queue: &mut Cebinae<SimplePacket>| {
            run(queue, &[0, 0, 1, 1], 101..2_000);
            run(queue, &[0, 0, 1, 1], 2_000..3_000)
        };
        let left = later(&mut queue);
        assert!(left[0] < left[1], "{left:?}");
        let mut untaxed = cebinae(|params| params.tax = Ratio::ZERO);
        run(&mut untaxed, &[0, 0, 1], 0..101);
        let left = later(&mut untaxed);
        assert!(left[0] > left[1] + 200, "{left:?}");
    }

    #[test]
    fn a_port_with_room_limits_no_one() {
        let mut queue = cebinae(|_| {});
        run(&mut queue, &[0], 0..101);
        assert!(queue.is_saturated);
        // Two rounds with every second packet are half of the link.
        for ms in (102..301).step_by(2) {
            run(&mut queue, &[0], ms..ms + 1);
        }
        assert!(!queue.is_saturated && queue.tops.is_empty() && !queue.is_top[0]);
    }

    #[test]
    fn a_flow_that_found_its_slot_taken_is_not_seen() {
        let mut queue = cebinae(|params| params.slots = 1);
        run(&mut queue, &[0, 1, 1], 0..101);
        assert_eq!(queue.tops, [FlowId(0)]);
    }

    #[test]
    fn a_pause_of_an_hour_costs_a_few_rounds() {
        let mut queue = cebinae(|_| {});
        run(&mut queue, &[0, 1], 0..101);
        let decisions = queue.decisions[0];
        run(&mut queue, &[0], 3_600_050..3_600_051);
        assert!(queue.decisions[0] <= decisions + 3 && !queue.is_saturated);
        assert_eq!(queue.base, Time::from_millis(3_600_000));
    }
}
