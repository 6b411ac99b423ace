//! The long-term rate of BBR, behind a policer.
//!
//! A token bucket passes a burst at the rate of the link and drops the rest, so the largest sample of ten
//! rounds is far above its long-term rate. Linux's BBR takes a path with many losses, at a constant rate, as
//! policed, and then sends at that rate for a while (Linux commit 0682e6902a52, "tcp: count packets marked
//! lost": "BBR uses a high packet loss rate as one signal in its policer detection and policer bandwidth
//! estimation"). No draft has it. The algorithm here was inferred from measurements of Linux 6.1, from
//! outside: see `validation/kernel-controls/README.md`.
//!
//! | here | measured |
//! |---|---|
//! | `LOSS_SHARE` | between 0.185 and 0.196 of what is delivered: 21 of 128 lost are enough, 5 of 32 are not |
//! | `MIN_ROUNDS` | with 4, counted by time, nine beginnings of a held rate are found within 0.02 to 0.35 s; with 6 they are not |
//! | `MAX_ROUNDS` | there is a bound: few losses for two seconds hardly delay what many then do; 12 and 24 are not excluded |
//! | `AGREEMENT` | intervals that differ by 9 % agree, and half is too much; chosen between them |
//! | `HOLD_ROUNDS` | 49 to 52 smoothed round trips of 22 to 65 ms, which are a little shorter than rounds |
//!
//! Readings: an interval begins and ends with a loss; the rate is the mean of two intervals; an
//! application-limited interval means nothing. Cost: O(1) per ACK; 80 bytes per connection.

use apportion_core::units::{Bytes, Rate, Span, Time};

/// The minimum of lost segments in an interval, as a part of the delivered ones: 50/256.
const LOSS_SHARE: f64 = 50.0 / 256.0;
/// The minimum length of an interval, in round trips.
const MIN_ROUNDS: u32 = 4;
const MAX_ROUNDS: u32 = 16;
/// The tolerated difference between the rates of two intervals, relative to the first.
const AGREEMENT: f64 = 0.125;
/// The number of round trips for which their mean is the rate.
const HOLD_ROUNDS: u32 = 48;

/// The progress of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    pub now: Time,
    /// Segments delivered so far.
    pub delivered: u64,
    /// Segments lost so far.
    pub lost: u64,
    /// Whether a round trip begins.
    pub round_start: bool,
    pub is_app_limited: bool,
}

/// Looks for a policer, interval by interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// The progress at the start of the interval; none before the first loss.
    began: Option<Progress>,
    rounds: u32,
    /// The rate of the previous interval.
    before: Option<Rate>,
    held: Option<Rate>,
    /// The number of losses at the last ACK.
    seen_lost: u64,
}

impl Policer {
    /// The rate of the policer, while one is assumed.
    pub(super) const fn rate(&self) -> Option<Rate> {
        self.held
    }

    /// Takes an ACK of segments of `wire` bytes. Returns whether a policer is no longer assumed.
    pub(super) fn on_ack(&mut self, progress: Progress, wire: Bytes) -> bool {
        let loses = progress.lost > self.seen_lost;
        self.seen_lost = progress.lost;
        self.rounds += u32::from(progress.round_start);
        if self.held.is_some() {
            let is_over = self.rounds >= HOLD_ROUNDS;
            if is_over {
                self.forget();
            }
            return is_over;
        }
        let Some(began) = self.began else {
            if loses {
                self.begin(progress);
            }
            return false;
        };
        if progress.is_app_limited || self.rounds > MAX_ROUNDS {
            self.forget();
        } else if loses && self.rounds >= MIN_ROUNDS {
            self.judge(began, progress, wire);
        }
        false
    }

    /// Ends an interval that is long enough and has enough losses.
    fn judge(&mut self, began: Progress, progress: Progress, wire: Bytes) {
        let delivered = (progress.delivered - began.delivered) as f64;
        let (lost, elapsed) = ((progress.lost - began.lost) as f64, progress.now.since(began.now));
        if delivered == 0.0 || elapsed == Span::ZERO || lost < LOSS_SHARE * delivered {
            return;
        }
        let rate = delivered * wire.bits() as f64 / elapsed.as_secs_f64();
        let before = self.before.replace(Rate::from_bit(rate as u64)).map(|before| before.as_bit() as f64);
        self.begin(progress);
        if let Some(before) = before.filter(|before| (rate - before).abs() <= AGREEMENT * before) {
            self.held = Some(Rate::from_bit(f64::midpoint(rate, before) as u64));
        }
    }

    fn begin(&mut self, progress: Progress) {
        (self.began, self.rounds) = (Some(progress), 0);
    }

    fn forget(&mut self) {
        *self = Self { seen_lost: self.seen_lost, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: Bytes = Bytes::new(1_250);

    /// One segment each ms, with `lost(n)` lost segments beside the one that arrives; round trips of 10 ms.
    /// Returns the assumed rate after each.
    fn run(until: u64, rate: impl Fn(u64) -> u64, lost: impl Fn(u64) -> bool) -> Vec<Option<Rate>> {
        let (mut policer, mut progress) = (Policer::default(), Progress::default());
        (0..until)
            .map(|n| {
                progress.now = Time::from_millis(n);
                progress.delivered += rate(n);
                progress.lost += u64::from(lost(n));
                progress.round_start = n % 10 == 0;
                policer.on_ack(progress, WIRE);
                policer.rate()
            })
            .collect()
    }

    fn first(seen: &[Option<Rate>]) -> Option<usize> {
        seen.iter().position(Option::is_some)
    }

    #[test]
    fn two_intervals_of_many_losses_and_one_rate_make_a_policer_for_forty_eight_rounds() {
        let seen = run(1_000, |_| 1, |n| n % 4 == 3);
        // From the loss at 3 ms: four rounds until 40, and the next loss; four more until 80.
        assert_eq!(first(&seen), Some(83));
        assert_eq!(seen[83], Some(Rate::from_mbit(10)));
        // 48 rounds from the one that begins at 90.
        let held = seen[83..].iter().position(Option::is_none);
        assert_eq!(held, Some(560 - 83));
        // Detection begins anew with the next loss.
        assert_eq!(first(&seen[560..]), Some(643 - 560));
    }

    #[test]
    fn a_fifth_of_what_is_delivered_is_enough_and_a_sixth_is_not() {
        assert!(first(&run(2_000, |_| 1, |n| n % 5 == 0)).is_some());
        assert_eq!(first(&run(2_000, |_| 1, |n| n % 6 == 0)), None);
    }

    #[test]
    fn intervals_that_differ_do_not_agree() {
        // Alternately 1 ms and 2 ms for a segment, each for a round trip more than an interval.
        let changing = |n: u64| if (n / 50).is_multiple_of(2) { 2 } else { 1 };
        assert_eq!(first(&run(300, changing, |_| true)), None);
        // Once the rate is constant, the next two intervals agree.
        let settled = first(&run(600, |n| if n < 300 { changing(n) } else { 1 }, |_| true));
        assert!(settled.is_some_and(|at| (340..440).contains(&at)), "{settled:?}");
    }

    #[test]
    fn an_interval_without_losses_enough_ends_after_sixteen_rounds() {
        // One of ten is lost for a second, then one of two: detected less than three intervals later, not
        // when the mean reaches a fifth.
        let seen = run(2_000, |_| 1, |n| if n < 1_000 { n % 10 == 0 } else { n % 2 == 0 });
        assert!(first(&seen).is_some_and(|at| at < 1_000 + 170 + 90), "{:?}", first(&seen));
    }

    #[test]
    fn an_interval_short_of_data_says_nothing() {
        let (mut policer, mut progress) = (Policer::default(), Progress::default());
        for n in 0..500 {
            progress = Progress {
                now: Time::from_millis(n),
                delivered: progress.delivered + 1,
                lost: progress.lost + 1,
                round_start: n % 10 == 0,
                is_app_limited: n % 30 == 0,
            };
            policer.on_ack(progress, WIRE);
            assert_eq!(policer.rate(), None, "{n}");
        }
    }
}
