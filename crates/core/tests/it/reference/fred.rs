//! FRED for one FIFO: the pseudo-code of Lin, Morris 1997, with the link's idle time.

use std::collections::BTreeMap;

/// The decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet joins.
    Enqueue,
    /// The flow is unresponsive.
    NonAdaptive,
    /// Random drop.
    Random,
    /// Drop-tail mode.
    DropTail,
    /// No room.
    Full,
}

/// The parameters, in packets.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Packets in the buffer.
    pub limit: usize,
    /// Lower threshold, and the most that a flow may hold.
    pub min_th: f64,
    /// Upper threshold.
    pub max_th: f64,
    /// Probability at the upper threshold.
    pub max_p: f64,
    /// Weight of the average.
    pub w_q: f64,
    /// Packets that a flow may hold without being dropped at random.
    pub min_q: f64,
    /// Two packets a flow above the upper threshold.
    pub many_flows: bool,
    /// Packets that leave in a second.
    pub packets_per_second: f64,
}

/// The queue itself: identity and flow.
#[derive(Clone, Debug)]
pub struct Fred {
    params: Params,
    /// The packets that wait.
    pub queue: Vec<(u32, u32)>,
    avg: f64,
    count: f64,
    strike: BTreeMap<u32, u32>,
    idle: Option<u64>,
}

impl Fred {
    /// Idle from time 0 with an average of 0.
    #[must_use]
    pub const fn new(params: Params) -> Self {
        Self { params, queue: Vec::new(), avg: 0.0, count: -1.0, strike: BTreeMap::new(), idle: Some(0) }
    }

    fn qlen(&self, flow: u32) -> f64 {
        self.queue.iter().filter(|packet| packet.1 == flow).count() as f64
    }

    fn avgcq(&self) -> f64 {
        let mut active: Vec<u32> = self.queue.iter().map(|packet| packet.1).collect();
        active.sort_unstable();
        active.dedup();
        let avgcq = if active.is_empty() { self.avg } else { self.avg / active.len() as f64 };
        if avgcq < 1.0 { 1.0 } else { avgcq }
    }

    /// The link asks at `now`, in nanoseconds.
    pub fn leave(&mut self, now: u64) -> Option<u32> {
        if self.queue.is_empty() {
            self.idle = self.idle.or(Some(now));
            return None;
        }
        let (id, flow) = self.queue.remove(0);
        let p = self.params;
        self.avg = (1.0 - p.w_q) * self.avg + p.w_q * self.queue.len() as f64;
        if self.qlen(flow) == 0.0 {
            self.strike.remove(&flow);
        }
        Some(id)
    }

    /// A packet arrives. `uniform` draws from [0, 1).
    pub fn arrive(&mut self, now: u64, id: u32, flow: u32, uniform: impl FnOnce() -> f64) -> Outcome {
        let p = self.params;
        if let Some(since) = self.idle.take() {
            let m = (p.packets_per_second * (now - since) as f64 / 1e9) as i32;
            self.avg *= (1.0 - p.w_q).powi(m);
        }
        self.avg = (1.0 - p.w_q) * self.avg + p.w_q * self.queue.len() as f64;

        let (avg, avgcq, qlen) = (self.avg, self.avgcq(), self.qlen(flow));
        let mut max_q = p.min_th;
        if p.many_flows && avg >= p.max_th {
            max_q = 2.0;
        }
        let strike = self.strike.entry(flow).or_insert(0);
        if qlen >= max_q || (avg >= p.max_th && qlen > 2.0 * avgcq) || (qlen >= avgcq && *strike > 1) {
            *strike += 1;
            return Outcome::NonAdaptive;
        }
        if p.min_th <= avg && avg < p.max_th {
            self.count += 1.0;
            if qlen >= p.min_q.max(avgcq) {
                let p_b = p.max_p * (avg - p.min_th) / (p.max_th - p.min_th);
                let p_a = if self.count * p_b < 1.0 { p_b / (1.0 - self.count * p_b) } else { 1.0 };
                if uniform() < p_a {
                    self.count = 0.0;
                    return Outcome::Random;
                }
            }
        } else if avg < p.min_th {
            self.count = -1.0;
        } else {
            self.count = 0.0;
            if !p.many_flows {
                return Outcome::DropTail;
            }
        }
        if self.queue.len() >= p.limit {
            return Outcome::Full;
        }
        self.queue.push((id, flow));
        Outcome::Enqueue
    }
}
