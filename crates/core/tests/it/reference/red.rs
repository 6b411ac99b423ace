//! RED for one FIFO: Floyd, Jacobson 1993, figure 2, with ns-2's additions.

/// The decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet joins.
    Enqueue,
    /// Random drop.
    Early,
    /// Dropped above the maximum.
    Forced,
    /// Dropped at a full buffer.
    Overflow,
}

/// The parameters. Thresholds are in bytes if `queue_in_bytes`, else in packets; `limit` is in packets.
#[derive(Clone, Debug)]
pub struct Params {
    /// Packets in the buffer.
    pub limit: f64,
    /// Lower threshold.
    pub min_th: f64,
    /// Upper threshold.
    pub max_th: f64,
    /// Weight of the average.
    pub w_q: f64,
    /// Probability at the upper threshold.
    pub max_p: f64,
    /// Ramp up to twice the maximum.
    pub gentle: bool,
    /// Drops at least 1/p apart.
    pub wait: bool,
    /// Drop by bytes.
    pub bytes: bool,
    /// Average over bytes.
    pub queue_in_bytes: bool,
    /// Bytes.
    pub mean_pktsize: f64,
    /// Bytes per second.
    pub bandwidth: f64,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Red {
    /// The parameters.
    pub params: Params,
    /// Average.
    pub avg: f64,
    count: f64,
    count_bytes: f64,
    old: bool,
    idle: Option<u64>,
}

impl Red {
    /// Idle from time 0 with an average of 0.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self { params, avg: 0.0, count: 0.0, count_bytes: 0.0, old: false, idle: Some(0) }
    }

    /// The link asked at `now`, in nanoseconds, and the queue was empty.
    pub fn empty(&mut self, now: u64) {
        if self.idle.is_none() {
            self.idle = Some(now);
        }
    }

    /// A packet of `size` arrives and finds `q` packets of `q_bytes` in all. `uniform` draws from [0, 1).
    pub fn arrive(
        &mut self,
        now: u64,
        size: f64,
        q: f64,
        q_bytes: f64,
        uniform: impl FnOnce() -> f64,
    ) -> Outcome {
        let p = self.params.clone();
        let mut m = 0;
        if let Some(since) = self.idle {
            let ptc = p.bandwidth / p.mean_pktsize;
            m = (ptc * (now - since) as f64 / 1e9) as i64;
            self.idle = None;
        }
        for _ in 0..m {
            self.avg *= 1.0 - p.w_q;
        }
        self.avg = (1.0 - p.w_q) * self.avg + p.w_q * if p.queue_in_bytes { q_bytes } else { q };
        self.count += 1.0;
        self.count_bytes += size;

        let mut outcome = Outcome::Enqueue;
        if self.avg >= p.min_th && q > 1.0 {
            if (!p.gentle && self.avg >= p.max_th) || (p.gentle && self.avg >= 2.0 * p.max_th) {
                outcome = Outcome::Forced;
            } else if !self.old {
                self.count = 1.0;
                self.count_bytes = size;
                self.old = true;
            } else if uniform() < self.probability(size) {
                outcome = Outcome::Early;
            }
        } else {
            self.old = false;
        }
        if q >= p.limit {
            outcome = Outcome::Overflow;
        }
        if outcome != Outcome::Enqueue {
            self.count = 0.0;
            self.count_bytes = 0.0;
        }
        outcome
    }

    fn probability(&self, size: f64) -> f64 {
        let p = &self.params;
        let p_b = if p.gentle && self.avg >= p.max_th {
            p.max_p + (1.0 - p.max_p) * (self.avg - p.max_th) / p.max_th
        } else {
            p.max_p * (self.avg - p.min_th) / (p.max_th - p.min_th)
        };
        let count = if p.bytes { self.count_bytes / p.mean_pktsize } else { self.count };
        let mut p_a = if p.wait {
            if count * p_b < 1.0 {
                0.0
            } else if count * p_b < 2.0 {
                p_b / (2.0 - count * p_b)
            } else {
                1.0
            }
        } else if count * p_b < 1.0 {
            p_b / (1.0 - count * p_b)
        } else {
            1.0
        };
        if p.bytes {
            p_a = p_a * size / p.mean_pktsize;
        }
        p_a
    }
}
