//! COBALT, "CoDel-BLUE alternate": CoDel for responsive senders and BLUE for unresponsive ones, side by side.
//!
//! Palmei, Gupta, Imputato, Morton, Tahiliani, Avallone, Täht, "Design and evaluation of COBALT queue
//! discipline", LANMAN 2019; Høiland-Jørgensen, Täht, Morton, "Piece of CAKE", LANMAN 2018; Morton's posts in
//! the archive of the list "cake", 20 May 2016 and 24 October 2018. Both parts decide when a packet leaves.
//!
//! - CoDel's control law as in RFC 8289: the n-th signal follows `interval` / √n after the one before, while
//!   packets wait `target` or longer. Below `target` the ramp runs backwards: a signal is taken back whenever
//!   one would have been due. The ramp continues from there when the delay rises again. RFC 8289 section 5.4
//!   has a rule of thumb instead.
//! - BLUE (Feng, Shin, Kandlur, Saha, ToN 2002): a probability that rises when the buffer overflows, since
//!   CoDel has then lost control, and falls when the queue has run empty, each at most once in `target`. It
//!   drops packets whether they are ECN-capable or not.
//! - The last packet of a queue is never dropped or marked: its loss would show only by a timeout. Unlike in
//!   RFC 8289 section 5.6, its delay still counts: in Linux a flow whose packets wait alone for 39 ms, for a
//!   second and more, loses none of them, and then the first that leaves another behind (`docs/parity.md`).
//!
//! Readings:
//! - The queue is empty from the departure of its last packet on. The signals to be taken back until the next
//!   arrival are taken back at that arrival.
//! - A ramp that continues first waits for one spacing of its present rate, as at its start.
//! - A packet that is exempt uses up no signal.
//! - On a slow link `target` is at least 1.5 times the time of a full packet, and `interval` twice that, as
//!   in CAKE; RFC 8289 exempts the last packet's worth of bytes instead.
//!
//! Deviation: at most [`MAX_DROPS_PER_DEQUEUE`](super::per_queue::MAX_DROPS_PER_DEQUEUE) drops in one call,
//! so that a call has a bound.
//!
//! Behind a scheduler with per-flow queues, each queue has its own COBALT (`per_queue.rs`).
//!
//! Cost: O(1) per packet plus the drops, amortised; no state per flow behind a FIFO. Parameters: [`ENTRY`].

use super::Admission;
use super::codel::{ECN, INTERVAL, TARGET, control_law};
use super::per_queue::{Control, Head, PerQueue, Verdict};
use crate::limit::BufferSize;
use crate::packet::Packet;
use crate::param::{Entry, Inside, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::queue::Backlog;
use crate::random::Stream;
use crate::units::{Bytes, Rate, Ratio, Span, Time};

/// COBALT in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "cobalt",
    role: Role::Policy,
    summary: "CoDel with BLUE: drops at the head by sojourn time, and at random once the buffer has overflowed.",
    reference: "Palmei et al. 2019",
    cost: "O(1) per packet, no state per flow; behind a fair scheduler mostly O(1), 120 bytes per flow",
    params: CobaltParams::PARAMS,
    traits: Traits {
        inside: Inside::Part,
        shares: Shares::Kept,
        limits: "It controls delay, not shares: a flood keeps 13 of 20 Mb/s. On a link of varying rate it left 29 \
            % of the rate unused: use CoDel.",
        ..Traits::NONE
    },
};

/// A full packet of Ethernet with its header, whose transmission time matters on a slow link.
const FULL: Bytes = Bytes::new(1_514);

params! {
    /// Parameters of the control loop, for one queue or for each of many.
    pub struct CobaltControl {
        target: Span = TARGET,
        interval: Span = INTERVAL,
        /// What an overflow adds to the drop probability, at most once in `target`; 0: CoDel alone.
        increment: Ratio = Param::of("0.390625%", "1/256, as in Linux and ns-3").symbol("d1"),
        /// What is taken off the drop probability for each `target` in which the queue is empty.
        decrement: Ratio = Param::of("0.0244140625%", "1/4096, as in Linux and ns-3").symbol("d2"),
        ecn: bool = ECN,
    }
    check: |params: &Self, _| params.check()
}

impl CobaltControl {
    fn check(&self) -> Result<(), ParamError> {
        require(self.target > Span::ZERO, "target", "it must be above zero; write for example \"5ms\"")?;
        require(self.target <= self.interval, "target", "it must not be longer than `interval`")
    }

    /// Creates a control as [`at`](Control::at) does, for a tin of CAKE that has `rate`: `interval` grows by
    /// as much as `target`. A round trip through a longer queue takes longer (Høiland-Jørgensen, Täht, Morton
    /// 2018).
    pub(crate) fn of_tin(&self, rate: Rate) -> Self {
        let slow = self.at(rate);
        Self { interval: slow.interval.max(self.interval + slow.target.saturating_sub(self.target)), ..slow }
    }
}

params! {
    /// Parameters of [`Cobalt`].
    pub struct CobaltParams {
        limit: Option<BufferSize> = LIMIT,
        /// The control loop.
        ..control: CobaltControl,
    }
}

/// The state of COBALT for one queue.
#[derive(Clone, Debug, Default)]
pub struct CobaltState {
    /// Signals of the ramp, minus those taken back.
    count: u32,
    /// Whether the delay was above target at the last packet.
    is_above: bool,
    /// The time of the next signal or, below target, of the next that is taken back.
    drop_next: Time,
    /// BLUE's probability.
    drop_prob: f64,
    /// The time of the last change of `drop_prob`.
    changed: Option<Time>,
    /// The time at which the queue last ran empty.
    empty_since: Time,
}

impl CobaltState {
    fn is_frozen(&self, control: &CobaltControl, now: Time) -> bool {
        self.changed.is_some_and(|changed| now.since(changed) < control.target)
    }

    /// Raises BLUE's probability after a packet was lost because the buffer is full.
    pub(crate) fn overflowed(&mut self, control: &CobaltControl, now: Time) {
        if !self.is_frozen(control, now) {
            self.drop_prob = (self.drop_prob + control.increment.get()).min(1.0);
            self.changed = Some(now);
        }
    }

    fn emptied(&mut self, control: &CobaltControl, now: Time) {
        self.empty_since = now;
        if self.drop_prob > 0.0 && !self.is_frozen(control, now) {
            self.take_back(control, 1);
            self.changed = Some(now);
        }
    }

    /// Notes a packet that arrives at the empty queue.
    pub(crate) fn ends_idle(&mut self, control: &CobaltControl, now: Time) {
        if self.drop_prob > 0.0 {
            let from = self.changed.map_or(self.empty_since, |changed| changed.max(self.empty_since));
            let periods = now.since(from).as_nanos() / control.target.as_nanos();
            if periods > 0 {
                self.take_back(control, periods);
                self.changed = Some(from + control.target * periods);
            }
        }
    }

    fn take_back(&mut self, control: &CobaltControl, steps: u64) {
        self.drop_prob = (self.drop_prob - control.decrement.get() * steps as f64).max(0.0);
    }

    /// Whether CoDel signals by a packet that waited for `sojourn`.
    #[inline]
    fn signals(&mut self, control: &CobaltControl, now: Time, sojourn: Span, is_last: bool) -> bool {
        if sojourn < control.target {
            self.is_above = false;
            // Terminates: each pass takes one signal back, so there are as many passes as there were signals.
            while self.count > 0 && self.drop_next <= now {
                self.count -= 1;
                self.drop_next = control_law(self.drop_next, control.interval, self.count.max(1));
            }
            return false;
        }
        if !self.is_above {
            self.is_above = true;
            self.drop_next = control_law(now, control.interval, self.count.max(1));
            return false;
        }
        if now < self.drop_next || is_last {
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.drop_next = control_law(self.drop_next, control.interval, self.count);
        true
    }
}

impl Control for CobaltControl {
    type State = CobaltState;

    /// A packet must not be late because of its own transmission.
    fn at(&self, rate: Rate) -> Self {
        let full = if rate > Rate::ZERO { rate.time_for(FULL) } else { Span::ZERO };
        let target = self.target.max((full * 3).div(2));
        Self { target, interval: self.interval.max(target * 2), ..self.clone() }
    }

    fn admit<P: Packet>(
        &self,
        state: &mut CobaltState,
        now: Time,
        _packet: &P,
        backlog: Backlog,
        _random: &mut Stream,
    ) -> Admission {
        if backlog.is_empty() {
            state.ends_idle(self, now);
        }
        Admission::Accept
    }

    #[inline(always)]
    fn judge(&self, state: &mut CobaltState, now: Time, head: Head, random: &mut Stream) -> Verdict {
        let is_last = head.behind == Bytes::ZERO;
        let signals = state.signals(self, now, head.sojourn, is_last);
        if is_last {
            state.emptied(self, now);
            return Verdict::Send;
        }
        let is_lost = state.drop_prob > 0.0 && random.chance(state.drop_prob);
        match signals {
            _ if is_lost => Verdict::Drop,
            true if self.ecn && head.ecn.is_capable() => Verdict::Mark,
            true => Verdict::Drop,
            false => Verdict::Send,
        }
    }

    fn overflowed(&self, state: &mut CobaltState, now: Time) {
        state.overflowed(self, now);
    }

    fn statistics(state: &CobaltState, show: &mut dyn FnMut(&'static str, f64)) {
        show("drop_prob", state.drop_prob);
    }
}

/// COBALT on each queue of a scheduler.
pub type Cobalt = PerQueue<CobaltControl>;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::aqm::per_queue::MAX_DROPS_PER_DEQUEUE;
    use crate::buffer::Buffer;
    use crate::limit::Limit;
    use crate::packet::{Ecn, SimplePacket};
    use crate::param::EntryArgs;
    use crate::queue::DropReason;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::Packets;

    fn cobalt(limit: u64, change: impl FnOnce(&mut CobaltControl)) -> Buffer<Fifo<SimplePacket>, Cobalt> {
        let mut params = CobaltParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = Some(Limit::Packets(Packets::new(limit)).into());
        change(&mut params.control);
        let random = Stream::new(1, "cobalt");
        Buffer::new(Fifo::new(), Cobalt::new(params.limit, &params.control, Rate::from_mbit(10), random))
    }

    fn control() -> CobaltControl {
        CobaltParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap().control
    }

    /// A queue that stands for 400 ms, served once a millisecond.
    fn standing(ecn: Ecn) -> Log {
        let (mut queue, mut log) = (cobalt(100_000, |_| {}), Log::default());
        for id in 0..5_000 {
            queue.enqueue(Time::ZERO, SimplePacket { ecn, ..packet(id, 0, 1_000) }, &mut log);
        }
        for t in 1..=400 {
            queue.dequeue(Time::from_millis(t), &mut log);
        }
        log
    }

    #[test]
    fn the_first_five_signals_are_those_of_codel() {
        // As in codel.rs: 5 + 100, + 100/√1, + 100/√2, + 100/√3, + 100/√4.
        let due = [105, 205, 276, 334, 384].map(Time::from_millis);
        let dropped: Vec<_> = standing(Ecn::NotEct).dropped.iter().map(|&(now, ..)| now).collect();
        assert_eq!(dropped, due);
        let log = standing(Ecn::Ect0);
        assert_eq!(
            (log.marked.iter().map(|&(now, _)| now).collect::<Vec<_>>(), log.dropped.len()),
            (due.into(), 0)
        );
    }

    #[test]
    fn the_ramp_runs_backwards_below_target_and_goes_on_from_there() {
        let (control, mut state) = (control(), CobaltState::default());
        let mut at = |ms: u64, sojourn| {
            state.signals(&control, Time::from_millis(ms), Span::from_millis(sojourn), false)
        };
        let due = [105, 205, 276, 334, 384];
        assert!(!at(5, 5) && due.iter().all(|&ms| at(ms, 50)));
        // The next signal would be due 100/√5 after 383.4, at 428.2; it and one 100/√4 later are taken back.
        assert!(!at(479, 1));
        assert_eq!(state.count, 3);
        // One spacing of the present rate, 100/√3, and not 100, after the delay is above again.
        let mut at = |ms: u64, sojourn| {
            state.signals(&control, Time::from_millis(ms), Span::from_millis(sojourn), false)
        };
        assert!(!at(500, 50) && !at(557, 50) && at(558, 50));
        // A second later the ramp is back at zero.
        assert!(!at(2_000, 1));
        assert_eq!(state.count, 0);
    }

    #[test]
    fn packets_that_wait_alone_are_spared_and_the_first_that_leaves_another_behind_is_not() {
        // As measured with Linux 6.1: a link that sends one each 40 ms gets one each 39.3 ms, so that each
        // waits 0.7 ms longer than the one before.
        let (mut queue, mut log) = (cobalt(100, |_| {}), Log::default());
        let (mut free, mut next) = (Time::ZERO, 0);
        while log.dropped.is_empty() {
            let arrival = Time::ZERO + Span::from_micros(39_300) * u64::from(next);
            if queue.backlog().is_empty() || arrival <= free {
                queue.enqueue(arrival, packet(next, 0, 1_500), &mut log);
                next += 1;
                continue;
            }
            queue.dequeue(free, &mut log).unwrap();
            free += Span::from_millis(40);
        }
        // The first packet whose successor arrives before it leaves: 40 n >= 39.3 (n + 1).
        let (at, id, reason) = log.dropped[0];
        assert_eq!((at, id, reason), (Time::from_millis(2_280), 57, DropReason::Early));
    }

    /// Sends twice the link rate for `ms`: packets of 1000 B, of which one leaves each millisecond. Returns
    /// the largest backlog of the last second, and the queue.
    fn flood(
        ms: u64,
        change: impl FnOnce(&mut CobaltControl),
    ) -> (u64, Buffer<Fifo<SimplePacket>, Cobalt>, Log) {
        let (mut queue, mut log, mut most) = (cobalt(200, change), Log::default(), 0);
        for t in 0..ms {
            for _ in 0..2 {
                let ecn = Ecn::Ect0;
                queue.enqueue(
                    Time::from_millis(t),
                    SimplePacket { ecn, ..packet(t as u32, 0, 1_000) },
                    &mut log,
                );
            }
            queue.dequeue(Time::from_millis(t), &mut log);
            if t + 1_000 >= ms {
                most = most.max(queue.backlog().packets.get());
            }
        }
        (most, queue, log)
    }

    #[test]
    fn blue_holds_a_flood_that_codel_does_not() {
        let (most, queue, log) = flood(10_000, |_| {});
        // Half of the packets must be dropped: 128 steps of 1/256. It rises while the buffer overflows, so it
        // is this or a little more.
        let p = queue.policy().states[0].drop_prob;
        assert!((0.45..0.6).contains(&p) && most < 150, "{p} {most}");
        assert!(log.dropped.iter().any(|&(.., reason)| reason == DropReason::Early), "ECN does not protect");
        let (most, queue, log) = flood(10_000, |control| control.increment = Ratio::clamped(0.0));
        assert_eq!(
            (most, queue.policy().states[0].drop_prob),
            (199, 0.0),
            "the buffer is full again with the next arrival"
        );
        assert!(log.dropped.iter().all(|&(.., reason)| reason == DropReason::Overflow));
    }

    #[test]
    fn blue_steps_at_most_once_in_a_target_and_makes_up_idle_time() {
        let (control, mut state) = (control(), CobaltState::default());
        for ms in 100..110 {
            state.overflowed(&control, Time::from_millis(ms));
        }
        assert_eq!(state.drop_prob, 2.0 / 256.0);
        // Changed at 105: unchanged at 109, one step at 112, four more in the 20 ms after that.
        state.emptied(&control, Time::from_millis(109));
        assert_eq!(state.drop_prob, 32.0 / 4_096.0);
        state.emptied(&control, Time::from_millis(112));
        state.ends_idle(&control, Time::from_millis(134));
        assert_eq!((state.drop_prob, state.changed), (27.0 / 4_096.0, Some(Time::from_millis(132))));
        state.emptied(&control, Time::from_millis(140));
        state.ends_idle(&control, Time::from_secs(60));
        assert_eq!(state.drop_prob, 0.0);
    }

    #[test]
    fn the_last_packet_passes_and_a_call_drops_a_bounded_number() {
        let (mut queue, mut log) = (cobalt(1_000, |_| {}), Log::default());
        queue.policy_mut().states[0].drop_prob = 1.0;
        for id in 0..3 {
            queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log);
        }
        queue.policy_mut().states[0].drop_prob = 1.0;
        assert_eq!(queue.dequeue(Time::from_secs(9), &mut log).map(|packet| packet.id), Some(2));
        (0..1_000).for_each(|id| queue.enqueue(Time::from_secs(9), packet(id, 0, 1_000), &mut log));
        queue.dequeue(Time::from_secs(9), &mut log);
        assert_eq!(log.dropped.len(), 2 + MAX_DROPS_PER_DEQUEUE as usize);
    }

    #[test]
    fn a_slow_link_has_the_times_of_its_packets() {
        // 1514 B take 12.112 ms at 1 Mb/s: 18.168 ms. At 100 kb/s that is 181.68 ms, and twice it the interval.
        let at = |kbit| control().at(Rate::from_kbit(kbit));
        assert_eq!((at(1_000).target.as_nanos(), at(1_000).interval), (18_168_000, Span::from_millis(100)));
        assert_eq!((at(100).target.as_nanos(), at(100).interval.as_nanos()), (181_680_000, 363_360_000));
        assert_eq!(at(10_000), control());
    }
}
