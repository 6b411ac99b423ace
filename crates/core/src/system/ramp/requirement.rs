//! RAMP's requirement monitor and feedback controller: infers a flow's rate from the fill of its queue.
//!
//! Li, Walpole, McNamee, Pu, Steere 2001, sections 3.1 and 3.2. The pressure `e = fill - target` goes through
//! a low-pass filter and a PID controller; the output is the part of the link that the flow needs.
//!
//! Readings, where the paper leaves room:
//! - Units of the gains are not given. `units = "percent"`, from KB (1024 B) to percent of the link, follows
//!   its words ("16Kbytes", "percentage of the total bandwidth") and is the only one of three readings close
//!   to its figure 6, with a `control_delay` of 150 ms, which the paper does not mention.
//! - Sums and differences are per sample: per second, I would be 0.00005 and nothing would settle.
//! - Section 3.1 lets a flow specify its own target fill. It replaces the default target, also in the unit
//!   `fraction`.
//! - An allocation has a `floor`. Otherwise an empty queue, 16 KB below its target, gives a flow nothing, and
//!   its first packet never leaves.
//! - `I sum(x)` stays between the floor and the whole link unless `anti_windup` is off, and does not grow
//!   while the link cannot give the requested part.
//!
//! Beyond the paper, and off with `preset = "paper"`:
//! - `target_delay`, a target in time, which section 6.2 plans: the target is the amount that the flow sends
//!   in that time at the rate that the controller has learned (`I sum(x)`).
//! - `gains = "designed"`: gains for this loop instead of the printed ones, whatever the rate of the link.
//! - `feed_forward`: an empty queue does not prove that a flow needs nothing: its window may be too small for
//!   the target, or a link further on may limit it. Therefore the arrival rate, averaged over 1/6 s, replaces
//!   `I sum(x)`, and the target is an upper bound of the queue, not a set point: pressure below zero does not
//!   count. A flow then gets its arrival rate plus the rate that drains its queue.
//! - `predictor`: the controller sees the queue as it will be when orders under way have been carried out.
//!
//! Cost: O(1) per flow and sample, O(`control_delay` / `sample`) with a predictor; 100 bytes per flow, 8 for
//! each sample of control delay.

use super::params::RampParams;
use crate::choice;
use crate::control::dead_time::DeadTime;
use crate::control::low_pass::LowPass;
use crate::control::pid::{Bounds, Gains, Pid};
use crate::packet::FillTarget;
use crate::units::{Bytes, Rate, Ratio, Span};

choice! {
    /// The units of input and output to which the gains apply.
    pub enum Units {
        /// KB into percent of the link.
        Percent = "percent",
        /// Bytes into bytes per sample.
        Bytes = "bytes",
        /// Parts of the target into parts of the link.
        Fraction = "fraction",
    }
}

choice! {
    /// The source of the gains.
    pub enum Tuning {
        /// `p`, `i` and `d`, in `units`.
        Printed = "printed",
        /// Designed for the loop.
        Designed = "designed",
    }
}

/// Bandwidth of the designed loop, per second. Chosen: it settles in 0.4 s, and one more packet of 1500 B in
/// the queue changes the allocation by no more than 72 kb/s.
const BANDWIDTH: f64 = 6.0;
/// Damping of the designed loop. Chosen: the queue that a step leaves drains slowly enough that the
/// allocation overshoots by 3 % of the step, and by 10 % with a predictor and 300 ms of control delay.
const DAMPING: f64 = 2.5;
/// The maximum part of an error in bytes that a designed loop corrects within a sample. Chosen: with more
/// than a quarter the low-pass filter, a sample or two late, makes it ring.
const MAX_STEP: f64 = 0.25;

/// The common part of the controllers of all flows.
#[derive(Clone, Debug)]
pub struct Controller {
    gains: Gains,
    weight: Ratio,
    /// The controller's input per byte of error; none: the error is a part of the target.
    error: Option<f64>,
    /// The part of the link for a controller output of 1.
    output: f64,
    /// Bytes that the link carries in a sample, and the inverse.
    capacity: f64,
    per_byte: f64,
    /// The target of flows without one of their own.
    target: FillTarget,
    /// The size to which errors are relative if the target is a time.
    size: Bytes,
    /// The sampling interval in seconds.
    sample: f64,
    floor: f64,
    /// The requirement below which a flow has none: 1 bit/s, as a part of the link.
    negligible: f64,
    anti_windup: bool,
    predictor: bool,
    delay: usize,
    /// Weight of the newest sample in the measured arrival rate; none without a feed-forward.
    input: Option<Ratio>,
}

impl Controller {
    /// A controller for a link of `link_rate`.
    #[must_use]
    pub fn new(params: &RampParams, link_rate: Rate) -> Self {
        let sample = params.sample.as_secs_f64();
        let capacity = link_rate.as_bit() as f64 / 8.0 * sample;
        let per_byte = 1.0 / capacity.max(f64::MIN_POSITIVE);
        let feed_forward = params.feed_forward;
        let printed = Gains { p: params.p, i: params.i, d: params.d };
        let (gains, error, output) = match (params.gains, params.units) {
            (Tuning::Designed, _) => (designed(params.sample), Some(1.0), per_byte),
            (Tuning::Printed, Units::Percent) => (printed, Some(1.0 / 1_024.0), 0.01),
            (Tuning::Printed, Units::Bytes) => (printed, Some(1.0), per_byte),
            (Tuning::Printed, Units::Fraction) => (printed, None, 1.0),
        };
        // The measured rate replaces the learned one.
        let gains = if feed_forward { Gains { i: 0.0, ..gains } } else { gains };
        Self {
            gains,
            weight: params.l,
            error,
            output,
            capacity,
            per_byte,
            target: params.target_delay.map_or(FillTarget::Size(params.target), FillTarget::Delay),
            size: params.target,
            sample,
            floor: params.floor.get(),
            negligible: if feed_forward { 1.0 / link_rate.as_bit() as f64 } else { 0.0 },
            anti_windup: params.anti_windup,
            predictor: params.predictor,
            delay: (params.control_delay.as_nanos() / params.sample.as_nanos()) as usize,
            input: feed_forward.then(|| Ratio::clamped(step(params.sample))),
        }
    }

    /// Whether the arrival rate is allocated.
    pub(super) const fn feeds_forward(&self) -> bool {
        self.input.is_some()
    }

    /// The minimum requirement of a flow if all get at least `floor`. An empty queue shows no need below the
    /// floor, but if the arrival rate is measured, silence does.
    pub(super) fn least(&self, floor: f64) -> f64 {
        if self.feeds_forward() { 0.0 } else { floor }
    }

    /// The minimum part of the link of each of `flows` flows: the floor, or an equal part of `available` if
    /// all floors together exceed it.
    pub(super) fn floor_among(&self, flows: usize, available: f64) -> f64 {
        self.floor.min(available / flows.max(1) as f64)
    }

    /// The target of a flow that may have its `own`.
    pub(super) fn target(&self, own: Option<FillTarget>) -> FillTarget {
        own.unwrap_or(self.target)
    }

    /// The target fill of a queue with this target while the flow needs `learned` of the link.
    fn aim(&self, target: FillTarget, learned: f64) -> f64 {
        match target {
            FillTarget::Size(size) => size.get() as f64,
            FillTarget::Delay(delay) => delay.as_secs_f64() / self.sample * learned * self.capacity,
        }
    }

    /// The part of the link that drains `fill` within the time of its target, in addition to `wanted`, which
    /// the flow needs for its arrivals.
    pub(super) fn drain(&self, target: FillTarget, fill: Bytes, wanted: f64) -> f64 {
        let fill = fill.get() as f64;
        match target {
            FillTarget::Size(size) => wanted * fill / size.get().max(1) as f64,
            FillTarget::Delay(delay) => {
                fill * self.per_byte * self.sample / delay.as_secs_f64().max(self.sample)
            }
        }
    }

    /// The controller's input per byte of error for a flow with this target.
    fn error(&self, target: FillTarget) -> f64 {
        let part = || match target {
            FillTarget::Size(size) => 1.0 / size.get() as f64,
            FillTarget::Delay(_) => 1.0 / self.size.get() as f64,
        };
        self.error.unwrap_or_else(part)
    }
}

/// The part of an error that a designed loop corrects within a sample.
fn step(sample: Span) -> f64 {
    (BANDWIDTH * sample.as_secs_f64()).min(MAX_STEP)
}

/// P and I of a loop in bytes: from the bandwidth, and the damping of the second-order loop that a queue
/// forms with a PI controller, `damping = P / (2 sqrt(I))`.
fn designed(sample: Span) -> Gains {
    let p = step(sample);
    let half = p / (2.0 * DAMPING);
    Gains { p, i: half * half, d: 0.0 }
}

/// The monitor and the controller of one flow.
#[derive(Clone, Debug)]
pub struct Requirement {
    filter: LowPass,
    /// The arrival rate, in bytes a sample.
    input: LowPass,
    pid: Pid,
    pending: DeadTime,
    /// The newest output, in parts of the link.
    latest: f64,
    /// The number of samples in a row that changed nothing, or asked for nothing.
    settled: usize,
}

impl Requirement {
    /// The state of an unknown flow: it needs the minimum.
    #[must_use]
    pub fn new(controller: &Controller) -> Self {
        let least = controller.least(controller.floor);
        Self {
            filter: LowPass::new(controller.weight, 0.0),
            input: LowPass::new(controller.input.unwrap_or(Ratio::ONE), 0.0),
            pid: Pid::new(controller.gains, least / controller.output),
            pending: DeadTime::new(controller.delay, least),
            latest: least,
            settled: 0,
        }
    }

    /// Takes a sample of the queue, of which `arrived` came since the last one, and returns the part of the
    /// link for the flow, with a target of its `own` or none, at least `least`. `saturated`: it got less than
    /// its part.
    pub fn sample(
        &mut self,
        controller: &Controller,
        (fill, arrived): (Bytes, Bytes),
        own: Option<FillTarget>,
        least: f64,
        saturated: bool,
    ) -> f64 {
        let before = (self.filter, self.input, self.pid, self.latest);
        let output = Bounds { low: least / controller.output, high: 1.0 / controller.output };
        let (integral, saturated) =
            if controller.anti_windup { (output, saturated) } else { (Bounds::NONE, false) };
        if controller.input.is_some() {
            let input = self.input.update(arrived.get() as f64) * controller.per_byte / controller.output;
            self.pid.set_integral(output.clamp(input));
        }
        let learned = self.pid.integral() * controller.output;
        let mut level = fill.get() as f64;
        if controller.predictor {
            level += controller.capacity * self.pending.predict(0.0, learned);
        }
        // Requirement monitor: e = fill - target; low-pass filter: x = L e + (1 - L) x'.
        let target = controller.target(own);
        let mut e = level - controller.aim(target, learned);
        if controller.input.is_some() {
            e = e.max(0.0);
        }
        let x = self.filter.update(e * controller.error(target));
        // u = P x + I sum(x) + D (x - x').
        self.latest = self.pid.update(x, output, integral, saturated) * controller.output;
        let is_same = before == (self.filter, self.input, self.pid, self.latest);
        let is_settled = is_same || self.latest < controller.negligible;
        self.settled = if is_settled { self.settled.saturating_add(1) } else { 0 };
        self.pending.push(self.latest)
    }

    /// The newest order of the controller, which `control_delay` may still hold back.
    #[must_use]
    pub const fn latest(&self) -> f64 {
        self.latest
    }

    /// The arrival rate as a part of the link, with the bytes that `arrived` since the last sample; beyond
    /// any level without a feed-forward.
    pub(super) fn arrival(&self, controller: &Controller, arrived: Bytes) -> f64 {
        let mut input = self.input;
        let rate = input.update(arrived.get() as f64) * controller.per_byte;
        if controller.feeds_forward() { rate } else { f64::INFINITY }
    }

    /// Notes that the target has changed, so that another equal sample may change the output.
    pub(super) const fn unsettle(&mut self) {
        self.settled = 0;
    }

    /// Whether another equal sample would change nothing that matters.
    pub(super) const fn is_settled(&self, controller: &Controller) -> bool {
        self.settled > controller.delay
    }
}
