//! RIO for one FIFO: Clark, Fang 1998, with the count and the first arrival of ns-2's RED.

use super::red::Outcome;

/// One ramp, in packets.
#[derive(Clone, Copy, Debug)]
pub struct Ramp {
    /// Lower threshold.
    pub min_th: f64,
    /// Upper threshold.
    pub max_th: f64,
    /// Probability at the upper threshold.
    pub max_p: f64,
}

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Packets in the buffer.
    pub limit: usize,
    /// The ramp of IN packets.
    pub input: Ramp,
    /// The ramp of OUT packets.
    pub output: Ramp,
    /// Weight of the averages.
    pub w_q: f64,
    /// Ramp up to twice the maximum.
    pub gentle: bool,
    /// Drops at least 1/p apart.
    pub wait: bool,
    /// Packets that leave in a second.
    pub packets_per_second: f64,
    /// Whether arrivals of OUT packets leave the averages alone.
    pub stale_out: bool,
}

/// The queue itself: identity and whether IN.
#[derive(Clone, Debug)]
pub struct Rio {
    params: Params,
    /// The packets that wait.
    pub queue: Vec<(u32, bool)>,
    avg_in: f64,
    avg_total: f64,
    idle_in: Option<u64>,
    idle_total: Option<u64>,
    count_in: f64,
    count_out: f64,
    old_in: bool,
    old_out: bool,
}

impl Rio {
    /// Idle from time 0 with averages of 0.
    #[must_use]
    pub const fn new(params: Params) -> Self {
        Self {
            params,
            queue: Vec::new(),
            avg_in: 0.0,
            avg_total: 0.0,
            idle_in: Some(0),
            idle_total: Some(0),
            count_in: 0.0,
            count_out: 0.0,
            old_in: false,
            old_out: false,
        }
    }

    /// The link asks at `now`, in nanoseconds.
    pub fn leave(&mut self, now: u64) -> Option<u32> {
        if self.queue.is_empty() {
            self.idle_in = self.idle_in.or(Some(now));
            self.idle_total = self.idle_total.or(Some(now));
            return None;
        }
        Some(self.queue.remove(0).0)
    }

    /// A packet arrives. `uniform` draws from [0, 1).
    pub fn arrive(&mut self, now: u64, id: u32, is_in: bool, uniform: impl FnOnce() -> f64) -> Outcome {
        let p = self.params;
        let q = self.queue.len() as f64;
        let q_in = self.queue.iter().filter(|packet| packet.1).count() as f64;
        if is_in || !p.stale_out {
            let w = p.w_q;
            let room = |since: u64| (p.packets_per_second * (now - since) as f64 / 1e9) as i32;
            if let Some(since) = self.idle_total.take() {
                self.avg_total *= (1.0 - w).powi(room(since));
            }
            if let Some(since) = self.idle_in.take() {
                self.avg_in *= (1.0 - w).powi(room(since));
            }
            self.avg_total = (1.0 - w) * self.avg_total + w * q;
            if is_in {
                self.avg_in = (1.0 - w) * self.avg_in + w * q_in;
            }
        }
        let (avg, waiting, ramp, count, old) = if is_in {
            (self.avg_in, q_in, p.input, &mut self.count_in, &mut self.old_in)
        } else {
            (self.avg_total, q, p.output, &mut self.count_out, &mut self.old_out)
        };
        *count += 1.0;
        let mut outcome = Outcome::Enqueue;
        if avg < ramp.min_th || waiting <= 1.0 {
            *old = false;
        } else if avg >= if p.gentle { 2.0 * ramp.max_th } else { ramp.max_th } {
            outcome = Outcome::Forced;
        } else if !*old {
            *old = true;
            *count = 1.0;
        } else {
            let p_b = if avg < ramp.max_th {
                ramp.max_p * (avg - ramp.min_th) / (ramp.max_th - ramp.min_th)
            } else {
                ramp.max_p + (1.0 - ramp.max_p) * (avg - ramp.max_th) / ramp.max_th
            };
            let p_a = match (*count * p_b, p.wait) {
                (x, true) if x < 1.0 => 0.0,
                (x, true) if x < 2.0 => p_b / (2.0 - x),
                (x, false) if x < 1.0 => p_b / (1.0 - x),
                _ => 1.0,
            };
            if uniform() < p_a {
                outcome = Outcome::Early;
            }
        }
        if self.queue.len() >= p.limit {
            outcome = Outcome::Overflow;
        }
        if outcome == Outcome::Enqueue {
            self.queue.push((id, is_in));
        } else {
            *count = 0.0;
        }
        outcome
    }
}
