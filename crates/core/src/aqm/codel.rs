//! CoDel, controlled delay: signals congestion once packets have waited longer than `target` for a whole
//! `interval`.
//!
//! Nichols, Jacobson, McGregor, Iyengar, RFC 8289; the pseudo-code of section 5, unchanged. A standing queue
//! shows in the minimum delay over an interval. While it stays above `target`, packets are dropped at the
//! head, at decreasing intervals, until the delay falls below `target`.
//!
//! Deviations:
//! - At most [`MAX_DROPS_PER_DEQUEUE`](super::per_queue::MAX_DROPS_PER_DEQUEUE) drops in one call, so that a
//!   call has a bound; the next call continues.
//! - With `ecn`, an ECN-capable packet is marked and sent instead of dropped (as RFC 8290 section 4.2 permits
//!   for FQ-CoDel).
//! - `ce_threshold` is Linux's, and `l4s` is that of ns-3.
//!
//! Behind a scheduler with per-flow queues, each queue has its own CoDel (`per_queue.rs`).
//!
//! Cost: O(1) per packet plus the drops; no state per flow behind a FIFO. Parameters: [`ENTRY`].
//!
//! Statistics (section 5.1), per flow behind a scheduler with per-flow queues: `dropping`, 1 in the dropping
//! state and else 0; `count`, packets dropped or marked since the state was last entered; in that state also
//! `drop_next_s`, the time of the next drop in s from the start of the run.

use super::per_queue::{Control, Head, PerQueue, Verdict};
use crate::limit::BufferSize;
use crate::param::{Entry, Inside, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::random::Stream;
use crate::units::{Bytes, Span, Time};

/// CoDel in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "codel",
    role: Role::Policy,
    summary: "Controlled delay: drops at the head once the sojourn time stays above a target for an interval.",
    reference: "RFC 8289",
    cost: "O(1) per packet, no state per flow; behind a fair scheduler mostly O(1), 95 bytes per flow",
    params: CodelParams::PARAMS,
    traits: Traits { inside: Inside::Part, shares: Shares::Kept, ..Traits::NONE },
};

/// The acceptable standing delay.
pub(crate) const TARGET: Param = Param::of("5ms", "RFC 8289 section 4.3")
    .symbol("TARGET")
    .doc("Standing queueing delay that is acceptable.");
/// The observation window.
pub(crate) const INTERVAL: Param = Param::of("100ms", "RFC 8289 section 4.3")
    .symbol("INTERVAL")
    .doc("How long the delay has to stay above `target`: a round trip in the slow range of those expected.");
/// Whether ECN-capable packets are marked instead of dropped.
pub(crate) const ECN: Param =
    Param::of("true", "RFC 8290 section 5.2.6").doc("Mark ECN-capable packets instead of dropping them.");

params! {
    /// Parameters of the control loop, for one queue or for each of many.
    pub struct CodelControl {
        target: Span = TARGET,
        interval: Span = INTERVAL,
        /// The control loop drops and marks nothing while at most this waits behind the packet: the link must not become idle.
        mtu: Bytes = Param::of("1514B", "RFC 8289 section 5.5: the interface's; chosen: an Ethernet frame").symbol("maxpacket"),
        ecn: bool = ECN,
        /// Marks each ECN-capable packet that waited longer, at once and whatever `ecn` is, as DCTCP wants. The signals of
        /// the control loop stay. Unset: none.
        ce_threshold: Option<Span> = Param::unset("Linux, tc-codel(8)"),
        /// Whether `ce_threshold` is for L4S packets (ECT(1) or CE) alone, which then get no other signal.
        l4s: bool = Param::of("false", "chosen: `ce_threshold` is Linux's; RFC 9331 section 5.1 says which packets are L4S"),
    }
    check: |params: &Self, _| params.check()
}

impl CodelControl {
    fn check(&self) -> Result<(), ParamError> {
        require(
            !self.l4s || self.ce_threshold.is_some(),
            "l4s",
            "without `ce_threshold` L4S packets would get no signal; set it, for example \"1ms\"",
        )?;
        require(
            self.interval > Span::ZERO,
            "interval",
            "it must be above zero; write for example \"100ms\"",
        )?;
        require(self.target <= self.interval, "target", "it must not be longer than `interval`")
    }

    /// RFC 8289 section 5.4, `dequeue`, for one packet.
    #[inline(always)]
    fn control(&self, state: &mut CodelState, now: Time, head: Head) -> Verdict {
        if state.is_ok_to_drop(self, now, head) {
            return state.signal(self, now, head.ecn.is_capable());
        }
        (state.dropping, state.is_due) = (false, false);
        Verdict::Send
    }

    /// Decides as [`control`](Self::control), and by a threshold of the sojourn time.
    #[inline(never)]
    fn judge_above(&self, threshold: Span, state: &mut CodelState, now: Time, head: Head) -> Verdict {
        let is_above = head.sojourn > threshold;
        if self.l4s && head.ecn.is_l4s() {
            return if is_above { Verdict::Mark } else { Verdict::Send };
        }
        match self.control(state, now, head) {
            Verdict::Send if is_above && !self.l4s && head.ecn.is_capable() => Verdict::Mark,
            verdict => verdict,
        }
    }
}

params! {
    /// Parameters of [`Codel`].
    pub struct CodelParams {
        limit: Option<BufferSize> = LIMIT.in_paper("1000p"),
        /// The control loop.
        ..control: CodelControl where { ecn: Param::of("false", "RFC 8289 section 5: its pseudo-code drops") },
    }
}

/// CoDel's state, with the names of RFC 8289 section 5.1.
#[derive(Clone, Debug, Default)]
pub struct CodelState {
    /// The time at which the delay will have been above target for an interval. None: it is not above.
    first_above_time: Option<Time>,
    /// Time of the next drop.
    drop_next: Time,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when the dropping state was last entered.
    lastcount: u32,
    /// Whether in the dropping state.
    dropping: bool,
    /// Whether the drop at `drop_next` has been done: `drop_next` advances with the next packet, if that is
    /// late too.
    is_due: bool,
}

impl CodelState {
    /// Whether the delay has been above `target` for an interval: `ok_to_drop` of RFC 8289 section 5.5,
    /// `dodequeue`.
    fn is_ok_to_drop(&mut self, control: &CodelControl, now: Time, head: Head) -> bool {
        if head.sojourn < control.target || head.waiting <= control.mtu {
            self.first_above_time = None;
            return false;
        }
        let first_above_time = *self.first_above_time.get_or_insert(now + control.interval);
        now >= first_above_time
    }

    /// Whether this packet carries a signal, while it is ok to drop. Not inlined: with the control law, each
    /// packet would save all registers.
    #[inline(never)]
    fn signal(&mut self, control: &CodelControl, now: Time, is_capable: bool) -> Verdict {
        let signal = if control.ecn && is_capable { Verdict::Mark } else { Verdict::Drop };
        if !self.dropping {
            self.enter_dropping(control, now);
            return signal;
        }
        if core::mem::take(&mut self.is_due) {
            self.drop_next = control_law(self.drop_next, control.interval, self.count);
        }
        if now < self.drop_next {
            return Verdict::Send;
        }
        self.count = self.count.saturating_add(1);
        match signal {
            Verdict::Mark => self.drop_next = control_law(self.drop_next, control.interval, self.count),
            _ => self.is_due = true,
        }
        signal
    }

    /// Starts from the rate that controlled the queue last time, if that was recent.
    fn enter_dropping(&mut self, control: &CodelControl, now: Time) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.lastcount);
        let recent = now.since(self.drop_next) < control.interval * 16;
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = control_law(now, control.interval, self.count);
        self.lastcount = self.count;
    }
}

impl Control for CodelControl {
    type State = CodelState;

    #[inline(always)]
    fn judge(&self, state: &mut CodelState, now: Time, head: Head, _random: &mut Stream) -> Verdict {
        match self.ce_threshold {
            None => self.control(state, now, head),
            Some(threshold) => self.judge_above(threshold, state, now, head),
        }
    }

    fn found_empty(&self, state: &mut CodelState) {
        state.first_above_time = None;
        (state.dropping, state.is_due) = (false, false);
    }

    fn statistics(state: &CodelState, show: &mut dyn FnMut(&'static str, f64)) {
        let CodelState { dropping, count, drop_next, .. } = *state;
        show("dropping", f64::from(u8::from(dropping)));
        show("count", f64::from(count));
        if dropping {
            show("drop_next_s", drop_next.as_secs_f64());
        }
    }
}

/// The time of the next signal: `t + interval / sqrt(count)`, rounded down to a nanosecond (RFC 8289 section
/// 5.6).
pub(crate) fn control_law(t: Time, interval: Span, count: u32) -> Time {
    t + Span::from_nanos((interval.as_nanos() as f64 / libm::sqrt(f64::from(count))) as u64)
}

/// CoDel on each queue of a scheduler.
pub type Codel = PerQueue<CodelControl>;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::aqm::BufferPolicy;
    use crate::aqm::per_queue::MAX_DROPS_PER_DEQUEUE;
    use crate::buffer::Buffer;
    use crate::limit::Limit;
    use crate::packet::Ecn;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::Packets;
    use crate::units::Rate;

    fn codel(ecn: bool) -> Buffer<Fifo<SimplePacket>, Codel> {
        let mut params = CodelParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = Some(Limit::Packets(Packets::new(100_000)).into());
        params.control.ecn = ecn;
        let random = Stream::new(1, "codel");
        Buffer::new(Fifo::new(), Codel::new(params.limit, &params.control, Rate::from_mbit(10), random))
    }

    /// Serves a queue that was filled at `start` and never shrinks below the target, once a millisecond.
    fn drops_of_a_standing_queue(start: Time, ms: u64, ecn: Ecn) -> Log {
        let mut queue = codel(true);
        let mut log = Log::default();
        for id in 0..5_000 {
            queue.enqueue(start, SimplePacket { ecn, ..packet(id, 0, 1_000) }, &mut log);
        }
        for t in 1..=ms {
            queue.dequeue(start + Span::from_millis(t), &mut log);
        }
        log
    }

    #[test]
    fn a_threshold_marks_by_sojourn_time_alone() {
        let fields = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        for ecn in [false, true] {
            for (l4s, marked) in [(false, [false, true, true, true]), (true, [false, false, true, true])] {
                let mut control = CodelParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap().control;
                (control.ecn, control.l4s) = (ecn, l4s);
                control.ce_threshold = Some(Span::from_millis(2));
                let judge = |micros, ecn| {
                    let (sojourn, waits) = (Span::from_micros(micros), Bytes::ZERO);
                    let head = Head { sojourn, ecn, behind: waits, waiting: waits };
                    let now = Time::from_secs(1);
                    control.judge(&mut CodelState::default(), now, head, &mut Stream::new(1, "codel"))
                        == Verdict::Mark
                };
                assert_eq!(fields.map(|field| judge(2_000, field)), [false; 4]);
                assert_eq!(fields.map(|field| judge(2_001, field)), marked, "ecn = {ecn}, l4s = {l4s}");
            }
        }
    }

    #[test]
    fn l4s_needs_a_threshold() {
        let check = |ce_threshold| {
            let control = CodelParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap().control;
            CodelControl { l4s: true, ce_threshold, ..control }.check()
        };
        assert_eq!(check(None).unwrap_err().key, "l4s");
        check(Some(Span::ZERO)).unwrap();
    }

    #[test]
    fn control_law_divides_before_adding() {
        // 100 ms / sqrt(4) = 50 ms, after 1 s.
        let next = control_law(Time::from_secs(1), Span::from_millis(100), 4);
        assert_eq!(next, Time::from_millis(1_050));
    }

    #[test]
    fn the_first_five_drops_follow_the_square_root() {
        // Served each ms; the delay first reaches 5 ms at 5 ms, so the first drop is at 5 + 100 = 105 ms,
        // with count 1. drop_next: 105 + 100/√1 = 205; + 100/√2 = 275.71; + 100/√3 = 333.45; + 100/√4 =
        // 383.45 ms. A drop happens at the first service not before: 105, 205, 276, 334, 384 ms.
        let log = drops_of_a_standing_queue(Time::ZERO, 400, Ecn::NotEct);
        let times: Vec<_> = log.dropped.iter().map(|&(now, ..)| now).collect();
        assert_eq!(times, [105, 205, 276, 334, 384].map(Time::from_millis));
        // One packet leaves each ms and each drop removes one more: numbers 104, 205, 277, 336, 387.
        let ids: Vec<_> = log.dropped.iter().map(|&(_, id, _)| id).collect();
        assert_eq!(ids, [104, 205, 277, 336, 387], "the late packet itself is dropped");
    }

    #[test]
    fn its_state_is_shown() {
        // As above: the third drop is at 276 ms, and the next is due at 205 + 100/√2 + 100/√3 = 333.446 ms.
        let mut queue = codel(false);
        let mut log = Log::default();
        let shown = |queue: &Buffer<Fifo<SimplePacket>, Codel>| {
            let mut shown = Vec::new();
            BufferPolicy::<SimplePacket>::statistics(queue.policy(), &mut |name, value| {
                shown.push((name, value));
            });
            shown
        };
        assert_eq!(shown(&queue), [("dropping", 0.0), ("count", 0.0)]);
        for id in 0..500 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        for t in 1..=300 {
            queue.dequeue(Time::from_millis(t), &mut log);
        }
        assert_eq!(shown(&queue)[..2], [("dropping", 1.0), ("count", 3.0)]);
        assert!(shown(&queue)[2].0 == "drop_next_s" && (shown(&queue)[2].1 - 0.333_446).abs() < 1e-6);
        // The emptied queue leaves the state, and keeps the count.
        while queue.dequeue(Time::from_millis(301), &mut log).is_some() {}
        assert_eq!(shown(&queue), [("dropping", 0.0), ("count", 3.0)]);
    }

    #[test]
    fn a_clock_far_from_zero_changes_nothing() {
        // 2^32 µs is 71.6 minutes: a 32-bit clock wraps there.
        let start = Time::from_secs(80 * 60);
        let early = drops_of_a_standing_queue(Time::ZERO, 400, Ecn::NotEct).dropped;
        let late = drops_of_a_standing_queue(start, 400, Ecn::NotEct).dropped;
        assert!(
            early.iter().zip(&late).all(|(a, b)| a.1 == b.1 && b.0.since(start) == a.0.since(Time::ZERO))
        );
        assert_eq!(early.len(), late.len());
    }

    #[test]
    fn capable_packets_are_marked_at_the_times_of_the_drops() {
        let log = drops_of_a_standing_queue(Time::ZERO, 400, Ecn::Ect0);
        assert_eq!(log.dropped, []);
        let times: Vec<_> = log.marked.iter().map(|&(now, _)| now).collect();
        assert_eq!(times, [105, 205, 276, 334, 384].map(Time::from_millis));
    }

    #[test]
    fn the_last_mtu_is_left_alone_and_a_call_drops_a_bounded_number() {
        let mut queue = codel(false);
        let mut log = Log::default();
        // Two packets of 1000 B: 1000 B <= 1514 B wait behind the first.
        for id in 0..2 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        queue.dequeue(Time::from_secs(1), &mut log);
        queue.dequeue(Time::from_secs(2), &mut log);
        assert_eq!(log.dropped, []);

        for id in 0..1_000 {
            queue.enqueue(Time::from_secs(2), packet(id, 0, 1_000), &mut log);
        }
        for s in [3, 4, 4_000] {
            assert!(queue.dequeue(Time::from_secs(s), &mut log).is_some());
        }
        // The second call enters the dropping state with one drop; an hour later many are due.
        assert_eq!(log.dropped.len(), 1 + MAX_DROPS_PER_DEQUEUE as usize);
    }

    #[test]
    fn a_relapse_soon_after_starts_at_the_rate_that_worked() {
        let control = CodelParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap().control;
        let left =
            CodelState { count: 9, lastcount: 2, drop_next: Time::from_secs(10), ..CodelState::default() };
        // 16 intervals are 1.6 s: within them the count continues with 9 - 2 = 7, after them with 1.
        for (now, count) in [(11_599, 7), (11_600, 1)] {
            let mut state = left.clone();
            state.enter_dropping(&control, Time::from_millis(now));
            assert_eq!((state.count, state.lastcount), (count, count), "at {now} ms");
        }
    }
}
