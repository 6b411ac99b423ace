//! CUBIC: the window grows as a cubic function of the time since the last loss.
//!
//! RFC 9438 sections 4.2 to 4.8. Deviations: window in real-valued segments; a period limited by the
//! application or the receiver is left out of the epoch's time (section 5.8) ACK by ACK. Cost: one cube root
//! per loss.

use apportion_core::units::Time;
use apportion_scenario::tcp::CubicForm;

use super::congestion::Growth;

/// RFC 9438 section 4.1: the aggressiveness, in segments per second cubed.
pub const C: f64 = 0.4;
/// RFC 9438 section 4.6: what a loss leaves of the window.
pub const BETA: f64 = 0.7;
/// RFC 9438 section 4.3: the additive increase that equals Reno's rate under this `BETA`.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// Linux: what each acknowledged segment adds to the window at least, before the first loss.
const SEARCH: f64 = 1.0 / 20.0;
/// Linux: what a round trip adds to the window at least, in segments.
const CREEP: f64 = 1.0 / 100.0;

/// What each acknowledged segment adds to a window of whole segments, as in Linux: nothing moves before the target,
/// or Reno's window, is a whole segment larger. `searches`: the window has met no loss yet, and is not a plateau to
/// stay at.
fn by_segments(cwnd: f64, target: f64, w_est: f64, searches: bool) -> f64 {
    let window = cwnd.floor().max(1.0);
    let lead = target.max(w_est).floor() - window;
    let least = if searches { SEARCH } else { 0.0 };
    (lead.max(CREEP) / window).max(least).min(0.5)
}

/// CUBIC's memory, named as in RFC 9438 section 4.1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cubic {
    /// Window just before the last reduction, lowered by fast convergence; zero if there was none.
    w_max: f64,
    /// Window just before the last reduction.
    cwnd_prior: f64,
    epoch: Option<Epoch>,
}

/// A stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// Seconds from `start` until the window is `w_max` again.
    k: f64,
    w_max: f64,
    /// What Reno's window would be.
    w_est: f64,
    last_ack: Time,
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

impl Cubic {
    /// Congestion at window `cwnd`: remembers it, lower if the window had not recovered from the last one.
    pub fn reduce(&mut self, cwnd: f64) {
        // RFC 9438 section 4.7, fast convergence.
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
    }

    /// A timeout or an idle period: the next epoch starts at its own plateau (RFC 9438 section 4.8).
    pub fn forget(&mut self) {
        self.w_max = 0.0;
        self.epoch = None;
    }

    /// The window after an ACK in congestion avoidance.
    #[must_use]
    pub fn grow(&mut self, cwnd: f64, form: CubicForm, ack: Growth) -> f64 {
        let (w_max, cwnd_prior) = (self.w_max, self.cwnd_prior);
        let epoch = self.epoch.get_or_insert_with(|| {
            // RFC 9438 section 4.8: without a loss to recover from, W_max = cwnd and K = 0.
            let w_max = w_max.max(cwnd);
            Epoch { start: ack.now, k: k(cwnd, w_max), w_max, w_est: cwnd, last_ack: ack.now }
        });
        if !ack.limited {
            epoch.start += ack.now.since(epoch.last_ack);
        }
        epoch.last_ack = ack.now;
        if !ack.limited {
            return cwnd;
        }
        let t = ack.now.since(epoch.start).as_secs_f64();
        // RFC 9438 section 4.3, equation (4); alpha is 1 once the window is back where it was.
        let reached = form == CubicForm::Rfc9438 && epoch.w_est >= cwnd_prior;
        let alpha = if reached { 1.0 } else { ALPHA };
        epoch.w_est += alpha * ack.acked / cwnd;
        let ahead = w_cubic(t + ack.srtt.as_secs_f64(), epoch.k, epoch.w_max);
        if form == CubicForm::Linux {
            return cwnd + by_segments(cwnd, ahead, epoch.w_est, w_max == 0.0) * ack.acked;
        }
        if w_cubic(t, epoch.k, epoch.w_max) < epoch.w_est {
            return epoch.w_est.max(cwnd);
        }
        // RFC 9438 sections 4.2, 4.4 and 4.5: aim at the window one RTT ahead, at most half as much again.
        let target = ahead.clamp(cwnd, 1.5 * cwnd);
        cwnd + (target - cwnd) / cwnd * ack.acked
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Span;

    use super::*;

    const RFC: CubicForm = CubicForm::Rfc9438;

    fn ack(now: Time) -> Growth {
        Growth { now, acked: 1.0, srtt: Span::from_millis(100), limited: true }
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
        let mut cubic = Cubic::default();
        cubic.reduce(100.0);
        assert_eq!(cubic.w_max, 100.0);
        // 80 < 100: 80 · 1.7/2 = 68.
        cubic.reduce(80.0);
        assert!((cubic.w_max - 68.0).abs() < 1e-9);
        assert_eq!(cubic.cwnd_prior, 80.0);
    }

    #[test]
    fn the_window_is_back_after_k_seconds_of_acks() {
        let mut cubic = Cubic::default();
        cubic.reduce(1000.0);
        // K = cbrt(300/0.4) = 9.0856 s. RTT 100 ms, cwnd ACKs per RTT, one RTT of lead in the target.
        let (mut cwnd, mut now) = (700.0, Time::ZERO);
        while now.as_secs_f64() < 9.0856 {
            for _ in 0..cwnd as u64 {
                cwnd = cubic.grow(cwnd, RFC, ack(now));
            }
            now += Span::from_millis(100);
        }
        assert!((cwnd - 1000.0).abs() < 1.0, "{cwnd}");
    }

    #[test]
    fn a_small_window_grows_as_reno_would() {
        let mut cubic = Cubic::default();
        cubic.reduce(10.0);
        // From 7 at RTT 10 ms the cubic needs K = cbrt(3/0.4) = 1.96 s; Reno gets there at 0.53 a RTT, in 6
        // RTTs.
        let (mut cwnd, mut now) = (7.0, Time::ZERO);
        for _ in 0..6 {
            for _ in 0..cwnd as u64 {
                let growth = Growth { srtt: Span::from_millis(10), ..ack(now) };
                cwnd = cubic.grow(cwnd, RFC, growth);
            }
            now += Span::from_millis(10);
        }
        // 6 RTTs of floor(cwnd)/cwnd · 0.529.
        assert!((9.7..10.2).contains(&cwnd), "{cwnd}");
    }

    #[test]
    fn time_limited_by_the_application_does_not_count() {
        let mut cubic = Cubic::default();
        cubic.reduce(100.0);
        let cwnd = cubic.grow(70.0, RFC, ack(Time::ZERO));
        let idle = Growth { limited: false, ..ack(Time::from_secs(20)) };
        assert_eq!(cubic.grow(cwnd, RFC, idle), cwnd);
        // Without the rule t would be 20 s and the target 1.5·cwnd.
        let next = cubic.grow(cwnd, RFC, ack(Time::from_secs(20)));
        assert!(next - cwnd < 0.05, "{}", next - cwnd);
    }
}
