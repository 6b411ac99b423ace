//! The rate of a call: Google Congestion Control with the delay-based estimate at the receiver and losses at the sender, as in
//! draft-ietf-rmcat-gcc-02. The gradient of delay is that of libwebrtc since 2017: a line through the smoothed delays of the last groups
//! (its `TrendlineEstimator`) in place of the draft's Kalman filter.
//!
//! | symbol | here | unit | value | from |
//! |---|---|---|---|---|
//! | `burst_time` | `BURST` | ms | 5 | draft, section 5.2 and table 1 |
//! | – | `GROUPS` | groups | 20 | libwebrtc, `kDefaultTrendlineWindowSize` |
//! | – | `DELAY_SMOOTHING` | – | 0.9 | `kDefaultTrendlineSmoothingCoeff` |
//! | – | `GAIN` | – | 4 | `kDefaultTrendlineThresholdGain` |
//! | – | `MOST_GROUPS` | groups | 60 | `kMinNumDeltas` |
//! | `del_var_th(0)` | `threshold` | ms | 12.5, held within 6 to 600 | section 5.4 |
//! | `K_u`, `K_d` | `GAIN_UP`, `GAIN_DOWN` | ms⁻¹ | 0.0087, 0.039 | libwebrtc; Carlucci, De Cicco, Holmer, Mascolo, MMSys 2016 |
//! | `overuse_time_th` | `OVERUSE_TIME` | ms | 10 | table 1 |
//! | `T` | `WINDOW` | s | 1 | within [0.5, 1] of table 1 |
//! | `beta` | `BETA` | – | 0.85 | table 1 |
//! | `eta` | – | – | 1.08 a second | section 5.5 |
//!
//! A group consists of the packets sent within 5 ms. The routine of section 5.5 runs once a response time, as
//! it recommends, and at once with the first sign of over-use. Deviations from the draft:
//!
//! - The Kalman filter's `m(i)` is a difference of delay per group, which is larger if groups are rarer: the
//!   slower one of two calls would detect over-use first, and get 0.5 of 8 Mb/s for minutes. The slope of a
//!   line is a difference per time.
//! - Growth is additive from the first over-use on, until more arrives than the rate at which over-use began explains (`Capacity`). In the draft
//!   it is additive only within three deviations of that rate, so each cycle begins below them, with growth in proportion, which leaves
//!   the shares of two calls as they are.
//! - The bound of 1.5 times the arrival rate keeps the estimate from growing and does not lower it, as in
//!   libwebrtc: the arrival rate is an average over a second, and a probe may have found more.
//!
//! Cost: O(1) for each packet, O(`GROUPS`) for each group. Memory: 16 bytes for each packet of the window.

use std::collections::VecDeque;

use apportion_core::units::{Bytes, Rate, Span, Time};

const BURST: Span = Span::from_millis(5);
const LONGEST_BURST: Span = Span::from_millis(100);
const GROUPS: usize = 20;
const DELAY_SMOOTHING: f64 = 0.9;
const GAIN: f64 = 4.0;
const MOST_GROUPS: u32 = 60;
const GAIN_UP: f64 = 0.0087;
const GAIN_DOWN: f64 = 0.039;
const LEAST_THRESHOLD: f64 = 6.0;
const GREATEST_THRESHOLD: f64 = 600.0;
/// Excess over the threshold that the threshold does not follow (section 5.4), ms.
const OUTLIER: f64 = 15.0;
/// The longest time between groups that moves the threshold, ms.
const LONGEST_STEP: f64 = 100.0;
const OVERUSE_TIME: f64 = 10.0;
const WINDOW: Span = Span::from_secs(1);
const BETA: f64 = 0.85;
/// Smoothing of the average of rates at which over-use began (section 5.5).
const SMOOTHING: f64 = 0.95;
/// Minimum of their deviation, kbit/s.
const LEAST_DEVIATION: f64 = 0.4;
const GREATEST_DEVIATION: f64 = 2.5;

/// The detector's signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Normal,
    Over,
    Under,
}

/// The state of the rate control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Hold,
    Increase,
    Decrease,
}

/// The packets that were sent within [`BURST`].
#[derive(Clone, Copy, Debug)]
struct Group {
    /// Times at which the first and the last of them were sent.
    first: Time,
    sent: Time,
    /// Times at which the first and the last of them arrived.
    began: Time,
    arrived: Time,
}

/// The delay-based controller, at the receiver.
#[derive(Debug)]
pub struct DelayControl {
    /// The group whose packets are arriving, and the one before.
    group: Option<Group>,
    before: Option<Group>,
    /// Delay since the first group, ms, plain and smoothed.
    delay: f64,
    smoothed: f64,
    /// Arrival times of the last groups, ms after the first, and their smoothed delays.
    line: VecDeque<(f64, f64)>,
    /// Time at which the first group arrived.
    origin: Time,
    /// The slope of that line.
    slope: f64,
    /// Number of groups so far, at most [`MOST_GROUPS`].
    count: u32,
    threshold: f64,
    /// Time for which the trend has been above the threshold, ms.
    over_for: f64,
    signal: Signal,
    state: State,
    /// `A_hat`, bit/s.
    estimate: f64,
    updated: Option<Time>,
    /// Arrivals of the last [`WINDOW`].
    window: VecDeque<(Time, Bytes)>,
    in_window: Bytes,
    began: Option<Time>,
    /// The rate at which over-use begins, once it is known.
    capacity: Option<Capacity>,
}

fn ms(later: Time, earlier: Time) -> f64 {
    (later.as_nanos() as f64 - earlier.as_nanos() as f64) / 1e6
}

impl DelayControl {
    /// A controller that begins with this estimate.
    #[must_use]
    pub fn new(first: Rate) -> Self {
        Self {
            group: None,
            before: None,
            delay: 0.0,
            smoothed: 0.0,
            line: VecDeque::new(),
            origin: Time::ZERO,
            slope: 0.0,
            count: 0,
            threshold: 12.5,
            over_for: 0.0,
            signal: Signal::Normal,
            state: State::Increase,
            estimate: first.as_bit() as f64,
            updated: None,
            window: VecDeque::new(),
            in_window: Bytes::ZERO,
            began: None,
            capacity: None,
        }
    }

    /// The estimated rate of the path.
    #[must_use]
    pub fn estimate(&self) -> Rate {
        Rate::from_bit(self.estimate as u64)
    }

    /// Handles a packet that arrives and was sent at `sent`; `rtt` is the last measured round-trip time.
    pub fn on_packet(&mut self, now: Time, sent: Time, size: Bytes, rtt: Span) {
        self.began.get_or_insert(now);
        self.window.push_back((now, size));
        self.in_window += size;
        while self.window.front().is_some_and(|&(at, _)| now.since(at) >= WINDOW) {
            self.in_window -= self.window.pop_front().map_or(Bytes::ZERO, |(_, size)| size);
        }
        let Some(group) = &mut self.group else {
            self.group = Some(Group { first: sent, sent, began: now, arrived: now });
            return;
        };
        // Packets that were held up and arrive at once are one group (section 5.2), for at most libwebrtc's
        // `kMaxBurstDuration`.
        let is_burst = now.since(group.arrived) < BURST
            && ms(now, group.arrived) < ms(sent, group.sent)
            && now.since(group.began) < LONGEST_BURST;
        if sent < group.first + BURST || is_burst {
            (group.sent, group.arrived) = (group.sent.max(sent), now);
            return;
        }
        let done = std::mem::replace(group, Group { first: sent, sent, began: now, arrived: now });
        if let Some(before) = self.before.replace(done) {
            self.on_group(now, before, done, rtt);
        }
    }

    /// Takes the rate that a cluster of packets has found, unless the path is over-used.
    pub fn on_probe(&mut self, rate: Rate) {
        if self.state != State::Decrease {
            self.estimate = rate.as_bit() as f64;
        }
    }

    fn on_group(&mut self, now: Time, before: Group, group: Group, rtt: Span) {
        let (gap, between) = (ms(group.sent, before.sent), ms(group.arrived, before.arrived));
        let last = self.slope;
        self.fit(group.arrived, between - gap);
        self.count = (self.count + 1).min(MOST_GROUPS);
        let signal = self.detect(gap, between, last);
        let response = 100.0 + rtt.as_secs_f64() * 1e3;
        let since = self.updated.map(|at| ms(now, at));
        let is_new = signal == Signal::Over && self.state != State::Decrease;
        if is_new || since.is_none_or(|since| since >= response) {
            self.update(signal, since.unwrap_or(0.0), response);
            self.updated = Some(now);
        }
    }

    /// Fits the line of delays after a group with this `variation`; in place of the arrival-time filter of
    /// section 5.3.
    fn fit(&mut self, arrived: Time, variation: f64) {
        if self.count == 0 {
            self.origin = arrived;
        }
        self.delay += variation;
        self.smoothed = DELAY_SMOOTHING * self.smoothed + (1.0 - DELAY_SMOOTHING) * self.delay;
        if self.line.len() == GROUPS {
            self.line.pop_front();
        }
        self.line.push_back((ms(arrived, self.origin), self.smoothed));
        if self.line.len() < GROUPS {
            return;
        }
        let mean = |of: fn(&(f64, f64)) -> f64| self.line.iter().map(of).sum::<f64>() / GROUPS as f64;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let over: f64 = self.line.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let under: f64 = self.line.iter().map(|point| (point.0 - x) * (point.0 - x)).sum();
        if under > 0.0 {
            self.slope = over / under;
        }
    }

    /// The over-use detector (section 5.4) for a group sent `gap` ms and arrived `between` ms after the one
    /// before; `last` is the slope before.
    fn detect(&mut self, gap: f64, between: f64, last: f64) -> Signal {
        let trend = self.slope * f64::from(self.count) * GAIN;
        let size = trend.abs();
        let signal = if trend > self.threshold {
            // The first group above the threshold counts for half of its time, and is no over-use alone.
            let is_first = self.over_for == 0.0;
            self.over_for += if is_first { gap / 2.0 } else { gap };
            if !is_first && self.over_for > OVERUSE_TIME && self.slope >= last {
                self.over_for = 0.0;
                Signal::Over
            } else {
                self.signal
            }
        } else {
            self.over_for = 0.0;
            if trend < -self.threshold { Signal::Under } else { Signal::Normal }
        };
        if size - self.threshold <= OUTLIER {
            let gain = if size < self.threshold { GAIN_DOWN } else { GAIN_UP };
            let moved = self.threshold + between.clamp(0.0, LONGEST_STEP) * gain * (size - self.threshold);
            self.threshold = moved.clamp(LEAST_THRESHOLD, GREATEST_THRESHOLD);
        }
        self.signal = signal;
        signal
    }

    /// The rate control (section 5.5), `since` ms after its last run.
    fn update(&mut self, signal: Signal, since: f64, response: f64) {
        self.state = match (signal, self.state) {
            (Signal::Over, _) => State::Decrease,
            (Signal::Normal, State::Hold) => State::Increase,
            (Signal::Normal, State::Decrease) | (Signal::Under, State::Increase | State::Decrease) => {
                State::Hold
            }
            (_, state) => state,
        };
        let incoming = self.incoming();
        match self.state {
            State::Hold => (),
            State::Increase => self.increase(incoming, since, response),
            State::Decrease => {
                let Some(incoming) = incoming else { return self.estimate *= BETA };
                let capacity = self.capacity.filter(|capacity| incoming >= capacity.bounds().0);
                self.capacity =
                    Some(capacity.map_or_else(|| Capacity::new(incoming), |one| one.next(incoming)));
                self.estimate = self.estimate.min(BETA * incoming);
            }
        }
    }

    fn increase(&mut self, incoming: Option<f64>, since: f64, response: f64) {
        self.capacity =
            self.capacity.filter(|one| incoming.is_none_or(|incoming| incoming <= one.bounds().1));
        let grown = if self.capacity.is_some() {
            let frame = self.estimate / 30.0;
            let packet = frame / (frame / (1_200.0 * 8.0)).ceil().max(1.0);
            self.estimate + (since / response).min(1.0) * packet
        } else {
            self.estimate * libm::pow(1.08, (since / 1e3).min(1.0))
        };
        let bound = incoming.map_or(f64::INFINITY, |incoming| 1.5 * incoming);
        self.estimate = grown.min(bound.max(self.estimate));
    }

    /// `R_hat`, bit/s, once it has been measured over a whole window.
    fn incoming(&self) -> Option<f64> {
        let &(last, _) = self.window.back()?;
        let is_whole = last.since(self.began?) >= WINDOW;
        is_whole.then(|| self.in_window.bits() as f64 / WINDOW.as_secs_f64())
    }
}

/// The rate at which over-use began, averaged, and the square of its deviation by the mean: libwebrtc's `LinkCapacityEstimator`. kbit/s.
#[derive(Clone, Copy, Debug)]
struct Capacity {
    mean: f64,
    deviation: f64,
}

impl Capacity {
    fn new(incoming: f64) -> Self {
        Self { mean: incoming / 1e3, deviation: LEAST_DEVIATION }
    }

    fn next(self, incoming: f64) -> Self {
        let mean = SMOOTHING * self.mean + (1.0 - SMOOTHING) * incoming / 1e3;
        let off = mean - incoming / 1e3;
        let deviation = SMOOTHING * self.deviation + (1.0 - SMOOTHING) * off * off / mean.max(1.0);
        Self { mean, deviation: deviation.clamp(LEAST_DEVIATION, GREATEST_DEVIATION) }
    }

    /// Three deviations below and above it, bit/s: beyond them the path has changed.
    fn bounds(self) -> (f64, f64) {
        let three = 3.0 * libm::sqrt(self.deviation * self.mean);
        ((self.mean - three) * 1e3, (self.mean + three) * 1e3)
    }
}

/// The loss-based controller, at the sender (section 6): the new estimate after a report of this share of lost packets.
#[must_use]
pub fn after_loss(estimate: Rate, lost: f64) -> Rate {
    let estimate = estimate.as_bit() as f64;
    Rate::from_bit(if lost > 0.1 {
        estimate * (1.0 - 0.5 * lost)
    } else if lost < 0.02 {
        estimate * 1.05
    } else {
        estimate
    } as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: u64 = 33;

    /// Delivers frames of one packet of `size` for some seconds; `delay` returns the delay of each by number,
    /// ms.
    fn feed(
        control: &mut DelayControl,
        from: u64,
        seconds: u64,
        size: u64,
        delay: impl Fn(u64) -> u64,
    ) -> u64 {
        let frames = seconds * 1_000 / FRAME;
        for k in from..from + frames {
            let sent = Time::from_millis(FRAME * k);
            control.on_packet(
                sent + Span::from_millis(delay(k - from)),
                sent,
                Bytes::new(size),
                Span::from_millis(50),
            );
        }
        from + frames
    }

    #[test]
    fn with_constant_delay_it_grows_by_eight_percent_a_second_up_to_what_arrives_and_half() {
        let mut control = DelayControl::new(Rate::from_kbit(300));
        feed(&mut control, 0, 4, 1_250, |_| 20);
        // Four seconds, minus the first group and the last response time.
        let grown = control.estimate / 300e3;
        assert!(grown > 1.08_f64.powf(3.5) && grown < 1.08_f64.powi(4), "{grown}");
        feed(&mut control, 200, 60, 1_250, |_| 20);
        // 1,250 B every 33 ms are 303 kb/s.
        assert!((control.estimate / (1.5 * 303e3) - 1.0).abs() < 0.05, "{}", control.estimate);
    }

    #[test]
    fn growing_delay_is_over_use_and_takes_fifteen_percent_off_what_arrives() {
        let mut control = DelayControl::new(Rate::from_kbit(300));
        let next = feed(&mut control, 0, 3, 1_250, |_| 20);
        // Each frame 15 ms later than the one before: the arrival rate falls, as behind a link with two
        // thirds of the rate.
        feed(&mut control, next, 4, 1_250, |k| 20 + 15 * k);
        let arrives = 1_250.0 * 8.0 / 48e-3;
        assert!((control.estimate / (BETA * arrives) - 1.0).abs() < 0.06, "{}", control.estimate);
        assert_eq!(control.state, State::Decrease);
    }

    #[test]
    fn a_drained_queue_holds_the_estimate_and_a_quiet_one_lets_it_grow() {
        let mut control = DelayControl::new(Rate::from_kbit(300));
        let next = feed(&mut control, 0, 3, 1_250, |_| 300);
        let next = feed(&mut control, next, 2, 1_250, |k| 300 - 3 * k);
        assert_eq!(control.state, State::Hold);
        let held = control.estimate;
        feed(&mut control, next, 10, 1_250, |_| 120);
        assert!(control.state == State::Increase && control.estimate > held);
    }

    #[test]
    fn the_threshold_follows_the_trend_and_not_outliers() {
        let mut control = DelayControl::new(Rate::from_kbit(300));
        // A trend of 20 ms, above the threshold by 7.5.
        (control.slope, control.count) = (0.125, 40);
        control.detect(33.0, 33.0, 0.125);
        assert!((control.threshold - (12.5 + 33.0 * GAIN_UP * 7.5)).abs() < 1e-9);
        (control.slope, control.threshold) = (0.25, 12.5);
        control.detect(33.0, 33.0, 0.25);
        assert!((control.threshold - 12.5).abs() < 1e-9);
        control.slope = 0.0;
        control.detect(33.0, 10.0, 0.0);
        assert!((control.threshold - 12.5 * (1.0 - 10.0 * GAIN_DOWN)).abs() < 1e-9);
    }

    #[test]
    fn growth_is_additive_near_the_rate_of_over_use() {
        let mut control = DelayControl::new(Rate::from_kbit(300));
        let next = feed(&mut control, 0, 3, 1_250, |_| 20);
        let next = feed(&mut control, next, 4, 1_250, |k| 20 + 15 * k);
        let capacity = control.capacity.unwrap();
        // The arrival rate, 206 kb/s, is within its bounds.
        let next = feed(&mut control, next, 1, 850, |_| 20 + 15 * 121);
        let (least, most) = capacity.bounds();
        assert!((least..most).contains(&206e3), "{capacity:?}");
        let before = control.estimate;
        let next = feed(&mut control, next, 2, 850, |_| 20 + 15 * 121);
        // A frame of a thirtieth of a second each response time, which is 150 ms: a fifth in a second.
        let grown = control.estimate / before;
        assert!((1.2..1.5).contains(&grown), "{grown}");
        // Twice as much shows that the path has changed.
        feed(&mut control, next, 3, 2_500, |_| 20 + 15 * 121);
        assert!(control.capacity.is_none());
    }

    #[test]
    fn losses_below_two_percent_are_room_and_above_ten_congestion() {
        let after = |lost| after_loss(Rate::from_kbit(1_000), lost).as_bit();
        assert_eq!([after(0.0), after(0.05), after(0.2)], [1_050_000, 1_000_000, 900_000]);
    }
}
