//! CUBIC: the window grows as a cubic function of the time since the last loss.
//!
//! RFC 9438 sections 4.2 to 4.8. Deviations: the window is in real-valued segments; a period limited by the
//! application or the receiver is excluded from the epoch's time (section 5.8) ACK by ACK. Cost: one cube
//! root per loss.
//!
//! [`CubicForm::Linux`] counts whole segments, as the kernel does: a *pace* is the number of segments that
//! must be acknowledged for each segment of growth, and follows the target.

use apportion_core::congestion::{Ack, CongestionControl, CongestionEvent, Response, Window};
use apportion_core::units::{Span, Time};
use apportion_scenario::tcp::CubicForm;

/// RFC 9438 section 4.1: the aggressiveness, in segments per second cubed.
pub const C: f64 = 0.4;
/// RFC 9438 section 4.6: the factor of the window after a loss.
pub const BETA: f64 = 0.7;
/// RFC 9438 section 4.3: the additive increase that equals Reno's rate under this `BETA`.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Linux: the slowest pace before the first loss, in segments.
const SEARCH: f64 = 20.0;
/// Linux: the pace of a window that has reached its target, in windows.
const CREEP: f64 = 100.0;
/// Linux: the fastest pace, in segments.
const FASTEST: f64 = 2.0;
/// Linux: windows that must be acknowledged for one segment of growth of Reno's window: 1 / `ALPHA`, in
/// eighths.
const RENO: f64 = 15.0 / 8.0;
/// Linux: the time for which a pace holds while the window stays, a 32nd of a second.
const HOLD: Span = Span::from_micros(31_250);

/// The state of CUBIC, named as in RFC 9438 section 4.1.
#[derive(Clone, Copy, Debug)]
pub struct Cubic {
    form: CubicForm,
    /// Window just before the last reduction, lowered by fast convergence; zero if there was none.
    w_max: f64,
    /// Window just before the last reduction.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    /// Linux: acknowledged segments that have not yet increased the window.
    credit: f64,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Seconds from `start` until the window is `w_max` again.
    k: f64,
    w_max: f64,
    /// The window of Reno.
    w_est: f64,
    last_ack: Time,
    /// Linux: acknowledged segments that have not yet increased `w_est`.
    credit_est: f64,
    /// Linux: the present pace, the time until which it holds, and its window.
    pace: Option<(f64, Time, f64)>,
}

/// The window `t` seconds into an epoch (RFC 9438 equation (1)).
#[must_use]
pub fn w_cubic(t: f64, k: f64, w_max: f64) -> f64 {
    let distance = t - k;
    C * distance * distance * distance + w_max
}

/// The time to grow from `cwnd` back to `w_max` (RFC 9438 equation (2)).
#[must_use]
pub fn k(cwnd: f64, w_max: f64) -> f64 {
    libm::cbrt((w_max - cwnd).max(0.0) / C)
}

/// An ACK in congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Growth {
    now: Time,
    /// Segments acknowledged.
    acked: f64,
    /// The round-trip time by which the window looks ahead.
    ahead: Span,
    /// Whether the window, rather than the application or the receiver, limited sending.
    limited: bool,
}

impl CongestionControl for Cubic {
    #[inline(always)]
    fn on_ack(&mut self, window: &mut Window, ack: &Ack) {
        // The ACK with which HyStart ends slow start still follows the rule of slow start.
        if ack.slow_start && !ack.may_grow {
            return;
        }
        if window.is_slow_start() {
            return window.grow_as_reno(ack.counted, ack.abc_limit);
        }
        let ahead = match self.form {
            CubicForm::Linux => ack.min_rtt,
            CubicForm::Rfc9438 => ack.srtt,
        };
        let growth =
            Growth { now: ack.now, acked: ack.acked, ahead, limited: ack.is_limited || ack.slow_start };
        window.cwnd = self.grow(window.cwnd, growth);
    }

    fn on_loss(&mut self, _: &mut Window, event: &CongestionEvent) -> Response {
        self.reduce(event.cwnd);
        Response::Reduce(event.basis * BETA)
    }

    fn on_timeout(&mut self, _: &Window, event: &CongestionEvent) -> f64 {
        if !event.again {
            self.reduce(event.cwnd);
        }
        self.forget();
        event.basis * BETA
    }

    fn on_restart(&mut self) {
        self.forget();
    }

    fn observes_segments(&self) -> bool {
        false
    }
}

impl Cubic {
    /// A connection without losses so far.
    #[must_use]
    pub const fn new(form: CubicForm) -> Self {
        Self { form, w_max: 0.0, cwnd_prior: 0.0, epoch: None, credit: 0.0 }
    }

    /// Congestion at window `cwnd`: stores it, reduced if the window had not recovered from the previous
    /// congestion.
    fn reduce(&mut self, cwnd: f64) {
        // RFC 9438 section 4.7, fast convergence.
        let w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.w_max = if self.form == CubicForm::Linux { w_max.floor() } else { w_max };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.credit = 0.0;
    }

    /// A timeout or an idle period: the next epoch starts at its own plateau (RFC 9438 section 4.8).
    fn forget(&mut self) {
        self.w_max = 0.0;
        self.epoch = None;
        self.credit = 0.0;
    }

    /// The window after an ACK in congestion avoidance.
    fn grow(&mut self, cwnd: f64, ack: Growth) -> f64 {
        let (w_max, cwnd_prior) = (self.w_max, self.cwnd_prior);
        let epoch = self.epoch.get_or_insert_with(|| {
            // RFC 9438 section 4.8: without a loss to recover from, W_max = cwnd and K = 0.
            let w_max = w_max.max(cwnd);
            Epoch {
                start: ack.now,
                k: k(cwnd, w_max),
                w_max,
                w_est: cwnd,
                last_ack: ack.now,
                credit_est: 0.0,
                pace: None,
            }
        });
        if !ack.limited {
            epoch.start += ack.now.since(epoch.last_ack);
        }
        epoch.last_ack = ack.now;
        if !ack.limited {
            return cwnd;
        }
        if self.form == CubicForm::Linux {
            let pace = epoch.pace(cwnd.floor().max(1.0), w_max == 0.0, ack);
            return cwnd + self.spend(pace, ack.acked);
        }
        let t = ack.now.since(epoch.start).as_secs_f64();
        // RFC 9438 section 4.3, equation (4); alpha is 1 once the window is back at its previous size.
        let alpha = if epoch.w_est >= cwnd_prior { 1.0 } else { ALPHA };
        epoch.w_est += alpha * ack.acked / cwnd;
        if w_cubic(t, epoch.k, epoch.w_max) < epoch.w_est {
            return epoch.w_est.max(cwnd);
        }
        // RFC 9438 sections 4.2, 4.4 and 4.5: the target is the window one RTT ahead, at most half as much
        // again.
        let ahead = w_cubic(t + ack.ahead.as_secs_f64(), epoch.k, epoch.w_max);
        let target = ahead.clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) / cwnd * ack.acked
    }

    /// The growth of the window when `acked` segments are acknowledged, at `pace`. Credit from a slower pace
    /// is worth at most one segment.
    fn spend(&mut self, pace: f64, acked: f64) -> f64 {
        let (saved, credit) = if self.credit >= pace { (1.0, acked) } else { (0.0, self.credit + acked) };
        let grown = (credit / pace).floor();
        self.credit = credit - grown * pace;
        saved + grown
    }
}

impl Epoch {
    /// The number of segments that must be acknowledged for each segment of growth of a window in whole
    /// segments. `searches`: the window has met no loss yet, and is not a plateau to stay at.
    fn pace(&mut self, cwnd: f64, searches: bool, ack: Growth) -> f64 {
        self.credit_est += ack.acked;
        if let Some((pace, until, of)) = self.pace
            && of == cwnd
            && ack.now <= until
        {
            return pace;
        }
        let step = (cwnd * RENO).floor();
        while self.credit_est > step {
            self.credit_est -= step;
            self.w_est += 1.0;
        }
        let ahead = (ack.now.since(self.start) + ack.ahead).as_secs_f64();
        // The distance from the plateau is truncated to whole segments: below it, this is a target rounded
        // up.
        let target = self.w_max + (w_cubic(ahead, self.k, self.w_max) - self.w_max).trunc();
        let lead = target.max(self.w_est.floor()) - cwnd;
        let pace = if lead > 0.0 { (cwnd / lead).floor() } else { CREEP * cwnd };
        let pace = if searches { pace.min(SEARCH) } else { pace }.max(FASTEST);
        self.pace = Some((pace, ack.now + HOLD, cwnd));
        pace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now: Time) -> Growth {
        Growth { now, acked: 1.0, ahead: Span::from_millis(100), limited: true }
    }

    #[test]
    fn the_cubic_passes_its_worked_points() {
        // W_max 100, cut to 70: K = cbrt(30 / 0.4) = cbrt(75) = 4.217163 s.
        let k = k(70.0, 100.0);
        assert!((k - 4.217_163).abs() < 1e-6);
        // At 0: 0.4·(-75) + 100 = 70. At K: 100. At K + 5: 0.4·125 + 100 = 150.
        for (t, w) in [(0.0, 70.0), (k, 100.0), (k + 5.0, 150.0)] {
            assert!((w_cubic(t, k, 100.0) - w).abs() < 1e-9, "{t}");
        }
    }

    #[test]
    fn fast_convergence_gives_up_part_of_the_plateau() {
        let mut cubic = Cubic::new(CubicForm::Rfc9438);
        cubic.reduce(100.0);
        assert_eq!(cubic.w_max, 100.0);
        // 80 < 100: 80 · 1.7/2 = 68.
        cubic.reduce(80.0);
        assert!((cubic.w_max - 68.0).abs() < 1e-9);
        assert_eq!(cubic.cwnd_prior, 80.0);
    }

    #[test]
    fn the_window_is_back_after_k_seconds_of_acks() {
        let mut cubic = Cubic::new(CubicForm::Rfc9438);
        cubic.reduce(1000.0);
        // K = cbrt(300/0.4) = 9.0856 s. RTT 100 ms, cwnd ACKs per RTT, one RTT of lead in the target.
        let (mut cwnd, mut now) = (700.0, Time::ZERO);
        while now.as_secs_f64() < 9.0856 {
            for _ in 0..cwnd as u64 {
                cwnd = cubic.grow(cwnd, ack(now));
            }
            now += Span::from_millis(100);
        }
        assert!((cwnd - 1000.0).abs() < 1.0, "{cwnd}");
    }

    #[test]
    fn a_small_window_grows_as_reno_would() {
        let mut cubic = Cubic::new(CubicForm::Rfc9438);
        cubic.reduce(10.0);
        // From 7 at RTT 10 ms the cubic needs K = cbrt(3/0.4) = 1.96 s; Reno needs 6 RTTs at 0.53 a RTT.
        let (mut cwnd, mut now) = (7.0, Time::ZERO);
        for _ in 0..6 {
            for _ in 0..cwnd as u64 {
                let growth = Growth { ahead: Span::from_millis(10), ..ack(now) };
                cwnd = cubic.grow(cwnd, growth);
            }
            now += Span::from_millis(10);
        }
        // 6 RTTs of floor(cwnd)/cwnd · 0.529.
        assert!((9.7..10.2).contains(&cwnd), "{cwnd}");
    }

    #[test]
    fn time_limited_by_the_application_does_not_count() {
        let mut cubic = Cubic::new(CubicForm::Rfc9438);
        cubic.reduce(100.0);
        let cwnd = cubic.grow(70.0, ack(Time::ZERO));
        let idle = Growth { limited: false, ..ack(Time::from_secs(20)) };
        assert_eq!(cubic.grow(cwnd, idle), cwnd);
        // Without the rule t would be 20 s and the target 1.5·cwnd.
        let next = cubic.grow(cwnd, ack(Time::from_secs(20)));
        assert!(next - cwnd < 0.05, "{}", next - cwnd);
    }

    #[test]
    fn in_linux_credit_from_a_slower_pace_is_worth_one_segment() {
        let mut cubic = Cubic::new(CubicForm::Linux);
        // 3 for each: 2, 4 - 3, 1 + 6 - 2 · 3; then a credit of 20 for 100 is one segment at a pace of 2.
        let grown = [(3.0, 2.0), (3.0, 2.0), (3.0, 6.0), (100.0, 19.0), (2.0, 1.0), (2.0, 1.0)];
        let grown = grown.map(|(pace, acked)| cubic.spend(pace, acked));
        assert_eq!(grown, [0.0, 1.0, 2.0, 0.0, 1.0, 1.0]);
        assert_eq!(cubic.credit, 0.0);
    }

    #[test]
    fn in_linux_a_window_of_two_grows_faster_than_reno() {
        let mut cubic = Cubic::new(CubicForm::Linux);
        cubic.reduce(2.0);
        // The plateau is the window. Reno's is 3 after more than floor(2 · 15/8) = 3 segments, and 4 after
        // floor(3 · 15/8) = 5 more; the existing credit of 3 and 4 makes the window follow at once.
        let mut now = Time::ZERO;
        let mut cwnd = 2.0;
        let windows = [(); 9].map(|()| {
            cwnd = cubic.grow(cwnd, ack(now));
            now += Span::from_millis(32);
            cwnd
        });
        assert_eq!(windows, [2.0, 2.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0, 4.0]);
    }

    #[test]
    fn in_linux_a_pace_holds_for_a_32nd_of_a_second() {
        // As above: the fourth segment is enough only if it comes late enough for the pace to be recomputed.
        for (last, window) in [(31, 2.0), (32, 3.0)] {
            let mut cubic = Cubic::new(CubicForm::Linux);
            cubic.reduce(2.0);
            for at in [0, 0, 0] {
                assert_eq!(cubic.grow(2.0, ack(Time::from_millis(at))), 2.0);
            }
            assert_eq!(cubic.grow(2.0, ack(Time::from_millis(last))), window, "{last} ms");
        }
    }

    #[test]
    fn in_linux_the_target_is_a_whole_segment_nearer_to_the_plateau() {
        let mut cubic = Cubic::new(CubicForm::Linux);
        cubic.reduce(10.0);
        // From 7, 100 ms ahead of the start: K = cbrt(3/0.4) = 1.957 s, 0.4 · 1.857^3 = 2.56 below 10, in
        // whole segments 2: the target is 8, so that 7 acknowledged segments increase the window, and 6 do
        // not.
        let mut cwnd = 7.0;
        for grown in [7.0, 7.0, 7.0, 7.0, 7.0, 7.0, 8.0] {
            cwnd = cubic.grow(cwnd, ack(Time::ZERO));
            assert_eq!(cwnd, grown);
        }
        // 9 · 1.7 / 2 = 7.65.
        cubic.reduce(9.0);
        assert_eq!((cubic.w_max, cubic.credit), (7.0, 0.0));
    }
}
