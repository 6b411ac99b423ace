//! The rate of a call: Google Congestion Control as in draft-ietf-rmcat-gcc-02, with the gradient of delay at the receiver and losses at
//! the sender. Carlucci, De Cicco, Holmer, Mascolo, "Analysis and Design of the Google Congestion Control for Web Real-time
//! Communication", MMSys 2016, has the same filter, threshold and states.
//!
//! | symbol | here | unit | value | from |
//! |---|---|---|---|---|
//! | `burst_time` | `BURST` | ms | 5 | draft, section 5.2 and table 1 |
//! | `q`, `e(0)` | `STATE_NOISE`, `error` | – | 0.001, 0.1 | table 1 |
//! | `chi` | `CHI` | – | 0.01 | within [0.1, 0.001] of table 1 |
//! | `K` | `GROUPS` | groups | 60 | chosen: two seconds of video |
//! | – | `MOST_GROUPS` | groups | 60 | what implementations take, see below |
//! | `del_var_th(0)` | `threshold` | ms | 12.5, held within 6 to 600 | section 5.4 |
//! | `K_u`, `K_d` | `GAIN_UP`, `GAIN_DOWN` | ms⁻¹ | 0.01, 0.00018 | table 1 |
//! | `overuse_time_th` | `OVERUSE_TIME` | ms | 10 | table 1 |
//! | `T` | `WINDOW` | s | 1 | within [0.5, 1] of table 1 |
//! | `beta` | `BETA` | – | 0.85 | table 1 |
//! | `eta` | – | – | 1.08 a second | section 5.5 |
//!
//! A group is the packets that were sent within 5 ms. The routine of section 5.5 runs once a response time, as it recommends,
//! and at once with the first sign of over-use. What deviates: the
//! detector compares the threshold with `m(i)` times the number of groups so far, at most 60, as implementations do. The draft has `m(i)` alone, of
//! which a threshold of 12.5 ms is a queue that grows by a third of the time, and one of 600 ms none at all.
//!
//! Cost: O(1) for each packet, O(K) for each group. Memory: 16 bytes for each packet of the window.

use std::collections::VecDeque;

use apportion_core::units::{Bytes, Rate, Span, Time};

const BURST: Span = Span::from_millis(5);
const STATE_NOISE: f64 = 1e-3;
const CHI: f64 = 0.01;
const GROUPS: usize = 60;
const MOST_GROUPS: u32 = 60;
const GAIN_UP: f64 = 0.01;
const GAIN_DOWN: f64 = 0.000_18;
const LEAST_THRESHOLD: f64 = 6.0;
const GREATEST_THRESHOLD: f64 = 600.0;
/// The threshold does not follow what exceeds it by more (section 5.4), ms.
const OUTLIER: f64 = 15.0;
const OVERUSE_TIME: f64 = 10.0;
const WINDOW: Span = Span::from_secs(1);
const BETA: f64 = 0.85;
/// Of the average of rates at which over-use began (section 5.5).
const SMOOTHING: f64 = 0.95;

/// What the detector sees.
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

/// Packets that were sent within [`BURST`].
#[derive(Clone, Copy, Debug)]
struct Group {
    /// When the first of them was sent, and the last.
    first: Time,
    sent: Time,
    /// When the last of them arrived.
    arrived: Time,
}

/// The delay-based controller, at the receiver.
#[derive(Debug)]
pub struct DelayControl {
    /// The group whose packets arrive, and the one before.
    group: Option<Group>,
    before: Option<Group>,
    /// `m(i)`, ms.
    gradient: f64,
    /// Groups so far, as many as count.
    count: u32,
    /// `e(i)`.
    error: f64,
    /// `var_v_hat(i)`, ms².
    noise: f64,
    /// Times between the sendings of the last groups, ms.
    gaps: VecDeque<f64>,
    threshold: f64,
    /// For how long the gradient has been above the threshold, ms.
    over_for: f64,
    state: State,
    /// `A_hat`, bit/s.
    estimate: f64,
    updated: Option<Time>,
    /// Arrivals of the last [`WINDOW`].
    window: VecDeque<(Time, Bytes)>,
    in_window: Bytes,
    began: Option<Time>,
    /// Mean and variance of the rates at which over-use began.
    limit: Option<(f64, f64)>,
}

fn ms(later: Time, earlier: Time) -> f64 {
    (later.as_nanos() as f64 - earlier.as_nanos() as f64) / 1e6
}

impl DelayControl {
    /// One that begins with this estimate.
    #[must_use]
    pub fn new(first: Rate) -> Self {
        Self {
            group: None,
            before: None,
            gradient: 0.0,
            count: 0,
            error: 0.1,
            noise: 1.0,
            gaps: VecDeque::new(),
            threshold: 12.5,
            over_for: 0.0,
            state: State::Increase,
            estimate: first.as_bit() as f64,
            updated: None,
            window: VecDeque::new(),
            in_window: Bytes::ZERO,
            began: None,
            limit: None,
        }
    }

    /// The rate that the path can carry.
    #[must_use]
    pub fn estimate(&self) -> Rate {
        Rate::from_bit(self.estimate as u64)
    }

    /// A packet arrives that was sent at `sent`; `rtt` is the last round-trip time that was measured.
    pub fn on_packet(&mut self, now: Time, sent: Time, size: Bytes, rtt: Span) {
        self.began.get_or_insert(now);
        self.window.push_back((now, size));
        self.in_window += size;
        while self.window.front().is_some_and(|&(at, _)| now.since(at) >= WINDOW) {
            self.in_window -= self.window.pop_front().map_or(Bytes::ZERO, |(_, size)| size);
        }
        let Some(group) = &mut self.group else {
            self.group = Some(Group { first: sent, sent, arrived: now });
            return;
        };
        // What was held up and comes at once is one group (section 5.2).
        let is_burst = now.since(group.arrived) < BURST && ms(now, group.arrived) < ms(sent, group.sent);
        if sent < group.first + BURST || is_burst {
            (group.sent, group.arrived) = (group.sent.max(sent), now);
            return;
        }
        let done = std::mem::replace(group, Group { first: sent, sent, arrived: now });
        if let Some(before) = self.before.replace(done) {
            self.on_group(now, before, done, rtt);
        }
    }

    fn on_group(&mut self, now: Time, before: Group, group: Group, rtt: Span) {
        let (gap, between) = (ms(group.sent, before.sent), ms(group.arrived, before.arrived));
        if self.gaps.len() == GROUPS {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
        let last = self.gradient;
        self.filter(between - gap);
        self.count = (self.count + 1).min(MOST_GROUPS);
        let signal = self.detect(between, last);
        let response = 100.0 + rtt.as_secs_f64() * 1e3;
        let since = self.updated.map(|at| ms(now, at));
        let is_new = signal == Signal::Over && self.state != State::Decrease;
        if is_new || since.is_none_or(|since| since >= response) {
            self.update(signal, since.unwrap_or(0.0), response);
            self.updated = Some(now);
        }
    }

    /// The arrival-time filter (section 5.3).
    fn filter(&mut self, variation: f64) {
        // Gaps are above zero: each group was sent after the one before.
        let fastest = self.gaps.iter().copied().fold(f64::INFINITY, f64::min);
        let alpha = libm::pow(1.0 - CHI, 30.0 / 1e3 * fastest);
        let innovation = variation - self.gradient;
        let bound = 3.0 * libm::sqrt(self.noise);
        let bounded = innovation.clamp(-bound, bound);
        self.noise = (alpha * self.noise + (1.0 - alpha) * bounded * bounded).max(1.0);
        let gain = (self.error + STATE_NOISE) / (self.noise + self.error + STATE_NOISE);
        self.error = (1.0 - gain) * (self.error + STATE_NOISE);
        self.gradient += innovation * gain;
    }

    /// The over-use detector (section 5.4).
    fn detect(&mut self, between: f64, last: f64) -> Signal {
        let trend = self.gradient * f64::from(self.count);
        let size = trend.abs();
        let signal = if trend > self.threshold {
            self.over_for += between;
            // The first group above it tells nothing of how long it has been so.
            let is_long = self.over_for >= OVERUSE_TIME;
            if is_long && self.gradient >= last { Signal::Over } else { Signal::Normal }
        } else {
            self.over_for = 0.0;
            if trend < -self.threshold { Signal::Under } else { Signal::Normal }
        };
        if size - self.threshold <= OUTLIER {
            let gain = if size < self.threshold { GAIN_DOWN } else { GAIN_UP };
            let moved = self.threshold + between * gain * (size - self.threshold);
            self.threshold = moved.clamp(LEAST_THRESHOLD, GREATEST_THRESHOLD);
        }
        signal
    }

    /// The rate control (section 5.5), `since` ms after it ran last.
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
                let (mean, variance) = self.limit.unwrap_or((incoming, 0.0));
                let off = incoming - mean;
                let variance = SMOOTHING * (variance + (1.0 - SMOOTHING) * off * off);
                self.limit = Some((mean + (1.0 - SMOOTHING) * off, variance));
                self.estimate = self.estimate.min(BETA * incoming);
            }
        }
    }

    fn increase(&mut self, incoming: Option<f64>, since: f64, response: f64) {
        let mut is_close = false;
        if let (Some(incoming), Some((mean, variance))) = (incoming, self.limit) {
            let deviation = 3.0 * libm::sqrt(variance);
            is_close = (incoming - mean).abs() <= deviation;
            if incoming > mean + deviation {
                self.limit = None;
            }
        }
        if is_close {
            let frame = self.estimate / 30.0;
            let packet = frame / (frame / (1_200.0 * 8.0)).ceil().max(1.0);
            self.estimate += (0.5 * (since / response).min(1.0) * packet).max(1_000.0);
        } else {
            self.estimate *= libm::pow(1.08, (since / 1e3).min(1.0));
        }
        if let Some(incoming) = incoming {
            self.estimate = self.estimate.min(1.5 * incoming);
        }
    }

    /// `R_hat`, bit/s, once it has been measured over a whole window.
    fn incoming(&self) -> Option<f64> {
        let &(last, _) = self.window.back()?;
        let is_whole = last.since(self.began?) >= WINDOW;
        is_whole.then(|| self.in_window.bits() as f64 / WINDOW.as_secs_f64())
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

    /// Lets frames of one packet of `size` arrive for so many seconds; the delay of each is `delay` of its number, ms.
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
        // Of four seconds, less the first group and the last response time.
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
        // Each frame 15 ms later than the one before: what arrives falls, as behind a link with two thirds of the rate.
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
    fn the_threshold_rises_with_the_gradient_and_not_with_outliers() {
        let mut control = DelayControl::new(Rate::from_kbit(300));
        (control.gradient, control.count) = (0.5, 40);
        control.detect(33.0, 0.5);
        assert!((control.threshold - (12.5 + 33.0 * 0.01 * 7.5)).abs() < 1e-9);
        (control.gradient, control.threshold) = (1.0, 12.5);
        control.detect(33.0, 1.0);
        assert!((control.threshold - 12.5).abs() < 1e-9);
        control.gradient = 0.0;
        control.detect(33.0, 0.0);
        assert!((control.threshold - 12.5 * (1.0 - 33.0 * 0.00018)).abs() < 1e-9);
    }

    #[test]
    fn losses_below_two_percent_are_room_and_above_ten_congestion() {
        let after = |lost| after_loss(Rate::from_kbit(1_000), lost).as_bit();
        assert_eq!([after(0.0), after(0.05), after(0.2)], [1_050_000, 1_000_000, 900_000]);
    }
}
