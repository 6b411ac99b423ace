//! PIE, proportional integral controller enhanced: arrivals are dropped at random, with a probability that is
//! corrected each period by the deviation of the delay from its target and by the change of the delay.
//!
//! Pan, Natarajan, Baker, White, RFC 8033: random dropping (section 4.1), the controller with its auto-tuned
//! steps (4.2), the delay from timestamps (4.3), the burst allowance (4.4), marks (5.1), de-randomisation (5.4)
//! and the cap on steps (5.5).
//!
//! Readings, where the RFC leaves room:
//! - There is no timer. The next arrival or departure first runs the updates that were due, each with the
//!   delay at its time: the delay changes only with such calls. Thus the probability of an idle queue decays.
//! - The delay is the sojourn time of the last departure, and 0 once the queue has run empty.
//! - The probability decays as in section 4.2, when the delay is 0; in appendix B it does so below half of
//!   the target.
//! - The first period starts with the first arrival.
//! - "Queue of at most two packets" is `2 * mean_pktsize` of backlog without the arrival.
//!
//! Deviations:
//! - At most [`MAX_UPDATES_PER_CALL`] updates in one call, so that a call has a bound; further updates are
//!   skipped. At the defaults this concerns pauses of more than a minute, after which the state no longer
//!   changes.
//! - PIE is always active; section 5.3, which switches it off while the queue is short, is optional.
//!
//! Behind a scheduler with per-flow queues, each queue has its own PIE (`per_queue.rs`).
//!
//! Cost: O(1) per packet plus the updates; no state per flow behind a FIFO. Parameters: [`ENTRY`].

use super::Admission;
use super::per_queue::{Control, PerQueue};
use crate::limit::BufferSize;
use crate::packet::Packet;
use crate::param::{Entry, EntryArgs, Inside, LIMIT, Param, ParamError, Role, Shares, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason};
use crate::random::Stream;
use crate::schedule::End;
use crate::units::{Bytes, Ratio, Span, Time, larger};

/// PIE in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "pie",
    role: Role::Policy,
    summary: "Proportional integral controller enhanced: drops arrivals at random to keep the delay near a target.",
    reference: "RFC 8033",
    cost: "O(1) per packet, no state per flow; behind a fair scheduler mostly O(1), 125 bytes per flow",
    params: PieParams::PARAMS,
    traits: Traits {
        inside: Inside::Part,
        shares: Shares::Kept,
        limits: "Behind a scheduler the queue of a flood waits longer than the target (275 ms if it sends twice \
            the link's rate): set `derandomize = false` (33 ms), or use CoDel.",
        ..Traits::NONE
    },
};

/// The maximum number of updates in one call. Chosen: a minute at the default period, in which a probability
/// of 1 decays.
pub const MAX_UPDATES_PER_CALL: u32 = 4_096;

/// Probabilities below which a step is divided, and the divisors (RFC 8033 section 4.2).
const AUTO_TUNING: [(f64, f64); 6] =
    [(0.000_001, 2_048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
/// The factor of the probability after an idle period (RFC 8033 section 4.2).
const DECAY: f64 = 0.98;
/// The probability below which nothing is dropped while the delay is below half of its target (RFC 8033
/// section 4.1).
const LIGHT: f64 = 0.2;
/// The largest step, and the probability from which on it applies (RFC 8033 section 5.5).
const STEP_CAP: (f64, f64) = (0.02, 0.1);
/// Sums of probabilities: no drop below the first, and a drop from the second on (RFC 8033 section 5.4).
const ACCU_PROB: (f64, f64) = (0.85, 8.5);

params! {
    /// Parameters of the controller.
    pub struct PieLaw {
        /// Queueing delay that is aimed at.
        target: Span = Param::of("15ms", "RFC 8033 section 4.2").symbol("QDELAY_REF"),
        /// Period of the controller.
        tupdate: Span = Param::of("15ms", "RFC 8033 section 4.2").symbol("T_UPDATE"),
        /// Change of the probability in a period, for each second of delay above `target`, in Hz.
        alpha: f64 = Param::of("0.125", "RFC 8033 section 4.2").symbol("alpha"),
        /// Change of the probability, for each second by which the delay has grown since the period before, in Hz.
        beta: f64 = Param::of("1.25", "RFC 8033 section 4.2").symbol("beta"),
        /// How long a burst after a time without congestion passes undropped.
        max_burst: Span = Param::of("150ms", "RFC 8033 section 4.4").symbol("MAX_BURST"),
    }
    check: Self::check
}

params! {
    /// Parameters of the control loop, for one queue or for each of many.
    pub struct PieControl {
        /// The controller.
        ..law: PieLaw,
        /// While at most two packets of this size wait, nothing is dropped.
        mean_pktsize: Bytes = Param::of("1500B", "RFC 8033 has no value (RFC 8034 appendix A: 1024 B); chosen: a full packet of Ethernet")
            .symbol("MEAN_PKTSIZE"),
        /// Space drops more evenly: none soon after another, and one in any case when one is overdue.
        derandomize: bool = Param::of("true", "RFC 8033 section 5.4"),
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = Param::of("false", "RFC 8033 section 5.1: an option"),
        /// Probability from which on ECN-capable packets are dropped as others are.
        mark_ecnth: Ratio = Param::of("10%", "RFC 8033 section 5.1").symbol("mark_ecnth"),
    }
    check: Self::check
}

impl PieLaw {
    fn check(&self, _args: &EntryArgs<'_>) -> Result<(), ParamError> {
        require(self.target > Span::ZERO, "target", "it must be above zero; write for example \"15ms\"")?;
        require(self.tupdate > Span::ZERO, "tupdate", "it must be above zero; write for example \"15ms\"")?;
        require(self.alpha >= 0.0, "alpha", "a gain must not be negative")?;
        require(self.beta >= 0.0, "beta", "a gain must not be negative")
    }

    /// Whether the delay is below half of its target.
    fn is_low(&self, qdelay: Span) -> bool {
        qdelay < self.target.div(2)
    }
}

impl PieControl {
    fn check(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        args.refuse_idle(&[("mark_ecnth", !self.ecn, "it has no effect: only ecn = true marks packets")])
    }
}

params! {
    /// Parameters of [`Pie`].
    pub struct PieParams {
        limit: Option<BufferSize> = LIMIT,
        /// The control loop.
        ..control: PieControl,
    }
}

/// PIE's state, with the names of RFC 8033 appendices A and B.
#[derive(Clone, Debug, Default)]
pub struct PieState {
    drop_prob: f64,
    /// Sum of the probabilities since the last drop.
    accu_prob: f64,
    current_qdelay: Span,
    qdelay_old: Span,
    burst_allowance: Span,
    /// The time of the next update. None: nothing has arrived yet.
    next_update: Option<Time>,
}

impl PieState {
    /// Decides on an arrival at a queue that holds `backlog` (RFC 8033 sections 4.1, 4.4, 5.1; appendix B,
    /// `enque`).
    #[inline(always)]
    fn admit<P: Packet>(
        &mut self,
        control: &PieControl,
        now: Time,
        packet: &P,
        backlog: Backlog,
        random: &mut Stream,
    ) -> Admission {
        self.arrive(&control.law, now, backlog);
        if self.is_spared(control, backlog.bytes) || !self.drop_early(control, random) {
            return Admission::Accept;
        }
        if control.ecn && packet.ecn().is_capable() && self.drop_prob < control.mark_ecnth.get() {
            return Admission::Mark;
        }
        Admission::Drop(DropReason::Early)
    }

    /// Notes an arrival at a queue that holds `backlog`.
    #[inline(always)]
    pub(super) fn arrive(&mut self, law: &PieLaw, now: Time, backlog: Backlog) {
        if backlog.is_empty() {
            self.current_qdelay = Span::ZERO;
        }
        if self.next_update.is_none_or(|due| due <= now) {
            self.update(law, now);
        }
        if self.drop_prob == 0.0 && law.is_low(self.current_qdelay) && law.is_low(self.qdelay_old) {
            self.burst_allowance = law.max_burst;
        }
    }

    /// Whether nothing is dropped at present (RFC 8033 sections 4.1 and 4.4).
    #[inline(always)]
    pub(super) fn is_spared(&self, control: &PieControl, queued: Bytes) -> bool {
        self.burst_allowance > Span::ZERO
            || (control.law.is_low(self.qdelay_old) && self.drop_prob < LIGHT)
            || queued.get() <= 2 * control.mean_pktsize.get()
    }

    /// Raises the probability of a drop to at least `p`.
    pub(super) fn raise(&mut self, p: f64) {
        self.drop_prob = larger(self.drop_prob, p);
    }

    /// The probability of a drop.
    pub(super) const fn drop_prob(&self) -> f64 {
        self.drop_prob
    }

    /// Whether to signal congestion (RFC 8033 section 5.4; appendix B, `drop_early`).
    fn drop_early(&mut self, control: &PieControl, random: &mut Stream) -> bool {
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        let (none_below, always_from) = ACCU_PROB;
        let drops = if control.derandomize && self.accu_prob < none_below {
            false
        } else if control.derandomize && self.accu_prob >= always_from {
            true
        } else {
            random.chance(self.drop_prob)
        };
        if drops {
            self.accu_prob = 0.0;
        }
        drops
    }

    /// Runs the updates that were due until `now`. Cold: needed once in a period, not for each packet.
    #[cold]
    #[inline(never)]
    fn update(&mut self, law: &PieLaw, now: Time) {
        let mut due = self.next_update.unwrap_or(now + law.tupdate);
        for _ in 0..MAX_UPDATES_PER_CALL {
            if due > now || !self.calculate_drop_prob(law) {
                break;
            }
            due += law.tupdate;
        }
        if due <= now {
            let periods = now.since(due).as_nanos() / law.tupdate.as_nanos() + 1;
            due += law.tupdate * periods;
        }
        self.next_update = Some(due);
    }

    /// One update (RFC 8033 sections 4.2 and 5.5; appendix B, `calculate_drop_prob`). Returns whether it
    /// changed anything: if not, the next one with the same delay will not either.
    fn calculate_drop_prob(&mut self, law: &PieLaw) -> bool {
        let before = (self.drop_prob, self.qdelay_old, self.burst_allowance);
        let [current, old, target] =
            [self.current_qdelay, self.qdelay_old, law.target].map(Span::as_secs_f64);
        let mut p = law.alpha * (current - target) + law.beta * (current - old);
        if let Some((_, divisor)) = AUTO_TUNING.iter().find(|(below, _)| self.drop_prob < *below) {
            p /= divisor;
        }
        let (largest, capped_from) = STEP_CAP;
        if self.drop_prob >= capped_from && p > largest {
            p = largest;
        }
        self.drop_prob += p;
        if self.current_qdelay == Span::ZERO && self.qdelay_old == Span::ZERO {
            self.drop_prob *= DECAY;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(law.tupdate);
        before != (self.drop_prob, self.qdelay_old, self.burst_allowance)
    }
}

impl Control for PieControl {
    type State = PieState;

    // RFC 8033 drops the arrival at a full queue. The delay that PIE measures then depends on arrivals only.
    const OVERFLOW: End = End::Tail;

    #[inline(always)]
    fn admit<P: Packet>(
        &self,
        state: &mut PieState,
        now: Time,
        packet: &P,
        backlog: Backlog,
        random: &mut Stream,
    ) -> Admission {
        state.admit(self, now, packet, backlog, random)
    }

    #[inline]
    fn departed(&self, state: &mut PieState, now: Time, sojourn: Span, is_last: bool) {
        if state.next_update.is_some_and(|due| due <= now) {
            state.update(&self.law, now);
        }
        state.current_qdelay = if is_last { Span::ZERO } else { sojourn };
    }

    // RFC 8033 appendix B, `enque`
    fn overflowed(&self, state: &mut PieState, _now: Time) {
        state.accu_prob = 0.0;
    }

    fn statistics(state: &PieState, show: &mut dyn FnMut(&'static str, f64)) {
        show("drop_prob", state.drop_prob);
    }
}

/// PIE on each queue of a scheduler.
pub type Pie = PerQueue<PieControl>;

#[cfg(test)]
mod tests {
    use super::*;
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

    fn control() -> PieControl {
        PieParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap().control
    }

    fn state(drop_prob: f64, old_ms: u64, current_ms: u64) -> PieState {
        let [qdelay_old, current_qdelay] = [old_ms, current_ms].map(Span::from_millis);
        PieState { drop_prob, qdelay_old, current_qdelay, ..PieState::default() }
    }

    fn updated(mut state: PieState) -> f64 {
        state.calculate_drop_prob(&control().law);
        state.drop_prob
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn an_update_is_the_rfc_s_equation() {
        // 25 ms after 20 ms, target 15 ms: 0.125 (0.025 - 0.015) + 1.25 (0.025 - 0.020) = 0.00125 + 0.00625 = .0075.
        assert!(near(updated(state(0.2, 20, 25)), 0.2 + 0.0075));
        // 5 ms after 20 ms: 0.125 (-0.01) + 1.25 (-0.015) = -0.00125 - 0.01875 = -.02.
        assert!(near(updated(state(0.2, 20, 5)), 0.2 - 0.02));
        assert_eq!(updated(state(0.000_5, 40, 0)), 0.0, "bounded below: (-.001875 - .05) / 32 = -.00162");
    }

    #[test]
    fn small_probabilities_move_in_small_steps() {
        for (drop_prob, divisor) in [
            (0.0, 2_048.0),
            (0.000_005, 512.0),
            (0.000_05, 128.0),
            (0.000_5, 32.0),
            (0.005, 8.0),
            (0.05, 2.0),
            (0.5, 1.0),
        ] {
            assert!(near(updated(state(drop_prob, 20, 25)), drop_prob + 0.0075 / divisor), "{drop_prob}");
        }
    }

    #[test]
    fn steps_up_are_capped_from_a_tenth_on() {
        // 100 ms after 20 ms: 0.125 × 0.085 + 1.25 × 0.08 = 0.110625; below a tenth half of that, without a cap.
        assert!(near(updated(state(0.1, 20, 100)), 0.12));
        assert!(near(updated(state(0.09, 20, 100)), 0.09 + 0.055_312_5));
        assert_eq!(updated(state(0.99, 20, 100)), 1.0);
    }

    #[test]
    fn an_idle_queue_decays_by_the_periods_that_have_passed() {
        let mut random = Stream::new(1, "pie");
        let mut pie = PieState { next_update: Some(Time::from_millis(15)), ..state(0.5, 0, 0) };
        pie.admit(&control(), Time::from_millis(50), &packet(0, 0, 1_000), Backlog::EMPTY, &mut random);
        // At 15, 30 and 45 ms: (p - 0.125 × 0.015) × 0.98 each.
        let expected = (0..3).fold(0.5, |p, _| (p - 0.001_875) * 0.98);
        assert!(near(pie.drop_prob, expected), "{}", pie.drop_prob);
        assert_eq!(pie.next_update, Some(Time::from_millis(60)));
        // A day has six million periods.
        let now = Time::from_secs(86_400);
        pie.admit(&control(), now, &packet(0, 0, 1_000), Backlog::EMPTY, &mut random);
        assert_eq!((pie.drop_prob, pie.burst_allowance), (0.0, control().law.max_burst));
        assert_eq!(pie.next_update, Some(now + Span::from_millis(15)), "in step with the first period");
    }

    #[test]
    fn a_burst_passes_for_its_allowance_and_no_longer() {
        let mut params = PieParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = Some(Limit::Packets(Packets::new(100_000)).into());
        params.control.derandomize = false;
        let mut queue = Buffer::new(
            Fifo::new(),
            Pie::new(params.limit, &params.control, Rate::from_mbit(10), Stream::new(1, "pie")),
        );
        let mut log = Log::default();
        // Two arrivals and one departure a millisecond: the delay passes half of the target, 7.5 ms, at 15
        // ms. The allowance was last renewed before the update of 15 ms or, as that had the delay of 7 ms, of
        // 30 ms. Ten periods later it is spent: at 165 ms.
        for ms in 0..400 {
            for id in 0..2 {
                queue.enqueue(Time::from_millis(ms), packet(2 * ms as u32 + id, 0, 1_000), &mut log);
            }
            queue.dequeue(Time::from_millis(ms), &mut log);
        }
        let first = log.dropped.first().expect("the queue stands").0;
        assert!(first >= Time::from_millis(165) && first < Time::from_millis(400), "{first:?}");
        assert!(log.dropped.iter().all(|&(.., reason)| reason == DropReason::Early));
    }

    #[test]
    fn short_queues_and_light_congestion_are_left_alone() {
        let mut random = Stream::new(1, "pie");
        let mut drops = |drop_prob, old_ms, bytes| {
            let mut pie = state(drop_prob, old_ms, old_ms);
            let control = PieControl { derandomize: false, ..control() };
            (0..100)
                .any(|_| !pie.is_spared(&control, Bytes::new(bytes)) && pie.drop_early(&control, &mut random))
        };
        assert!(drops(0.19, 8, 9_000) && drops(0.2, 7, 9_000));
        assert!(!drops(0.19, 7, 9_000), "the delay is below half of the target");
        assert!(!drops(1.0, 100, 3_000) && drops(1.0, 100, 3_001), "two packets");
    }

    #[test]
    fn drops_are_neither_close_nor_far_apart() {
        let mut random = Stream::new(1, "pie");
        let mut pie = state(0.05, 20, 20);
        let fates: std::vec::Vec<bool> =
            (0..20_000).map(|_| pie.drop_early(&control(), &mut random)).collect();
        // The sum reaches 0.85 with the 17th packet, and 8.5 with the 170th.
        let gaps: std::vec::Vec<usize> = fates.split(|&dropped| dropped).map(<[bool]>::len).collect();
        let whole = &gaps[..gaps.len() - 1];
        assert!(whole.len() > 100 && whole.iter().all(|gap| (16..170).contains(gap)), "{gaps:?}");
    }

    #[test]
    fn marks_replace_drops_below_the_threshold_alone() {
        for (drop_prob, verdict) in [(0.099, Admission::Mark), (0.1, Admission::Drop(DropReason::Early))] {
            let mut pie = PieState {
                accu_prob: 9.0,
                next_update: Some(Time::from_secs(9)),
                ..state(drop_prob, 20, 20)
            };
            let capable = SimplePacket { ecn: Ecn::Ect0, ..packet(0, 0, 1_000) };
            let backlog = Backlog { packets: Packets::new(9), bytes: Bytes::new(9_000) };
            let control = PieControl { ecn: true, ..control() };
            let mut random = Stream::new(1, "pie");
            assert_eq!(pie.admit(&control, Time::ZERO, &capable, backlog, &mut random), verdict);
        }
    }
}
