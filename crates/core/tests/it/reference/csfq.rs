//! CSFQ for one queue: Stoica, Shenker, Zhang 1998, figure 3, with the readings of the authors' own code.

/// An exponential average of eq. (3); a gap of zero keeps the amount for the next one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Average {
    /// The rate as of the last gap.
    pub rate: f64,
    last: u64,
    kept: f64,
}

impl Average {
    /// An amount of `l` at `now`, in nanoseconds, averaged over `k` seconds.
    pub fn estimate_rate(&mut self, now: u64, l: f64, k: f64) -> f64 {
        if now == self.last {
            self.kept += l;
            return self.rate;
        }
        let t = (now - self.last) as f64 / 1e9;
        let w = (-t / k).exp();
        self.rate = (1.0 - w) * (self.kept + l) / t + w * self.rate;
        self.kept = 0.0;
        self.last = now;
        self.rate
    }
}

/// A packet that arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The arrival time in nanoseconds.
    pub now: u64,
    /// The flow of the packet.
    pub flow: usize,
    /// The size of the packet.
    pub bits: f64,
    /// The label with which it arrived.
    pub label: Option<f64>,
    /// Packets in the queue.
    pub q: u64,
}

/// The decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The packet joins.
    Enqueue,
    /// Dropped for its label.
    Early,
    /// Dropped at a full buffer.
    Overflow,
}

/// The parameters, in packets, seconds and bits a second.
#[derive(Clone, Debug)]
pub struct Params {
    /// Packets in the buffer.
    pub limit: u64,
    /// Packets up to which the link counts as uncongested if alpha is unknown.
    pub threshold: u64,
    /// K.
    pub k: f64,
    /// K_alpha.
    pub k_alpha: f64,
    /// K_c, in nanoseconds.
    pub k_c: u64,
    /// C.
    pub c: f64,
    /// Weights by flow.
    pub weights: Vec<f64>,
}

/// The state. 0 is "unknown" for alpha and tmp_alpha, as in the authors' code.
#[derive(Clone, Debug)]
pub struct Csfq {
    /// The parameters.
    pub params: Params,
    rates: Vec<Average>,
    /// The fair share.
    pub alpha: f64,
    tmp_alpha: f64,
    a: Average,
    f: Average,
    a_rate: f64,
    f_rate: f64,
    /// Whether A >= C.
    pub congested: bool,
    start_time: u64,
    count: i32,
}

impl Csfq {
    /// Congested since time 0, with an unknown share.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            rates: vec![Average::default(); params.weights.len()],
            params,
            alpha: 0.0,
            tmp_alpha: 0.0,
            a: Average::default(),
            f: Average::default(),
            a_rate: 0.0,
            f_rate: 0.0,
            congested: true,
            start_time: 0,
            count: 29,
        }
    }

    /// A packet arrives. `write` rounds a number to a label; `uniform` was drawn from [0, 1). Returns the
    /// fate and the new label.
    pub fn arrive(&mut self, arrival: Arrival, write: impl Fn(f64) -> f64, uniform: f64) -> (Outcome, f64) {
        let Arrival { now, flow, bits, label, q } = arrival;
        let label = match label {
            Some(label) => label,
            None => {
                let rate = self.rates[flow].estimate_rate(now, bits, self.params.k);
                write(if rate > 0.0 {
                    (rate / self.params.weights[flow]).max(1.0)
                } else {
                    (self.f_rate / 2.0).max(1.0)
                })
            }
        };
        let prob =
            if self.alpha == 0.0 || label == 0.0 { 0.0 } else { f64::max(0.0, 1.0 - self.alpha / label) };
        let dropped = prob > uniform;
        self.estimate_alpha(now, bits, label, dropped, q);
        if dropped {
            return (Outcome::Early, 0.0);
        }
        if q >= self.params.limit {
            if self.count >= 0 {
                self.alpha *= 0.99;
            }
            self.count -= 1;
            return (Outcome::Overflow, 0.0);
        }
        let out = if self.alpha > 0.0 && label > self.alpha { self.alpha.max(1.0) } else { label };
        (Outcome::Enqueue, write(out))
    }

    fn estimate_alpha(&mut self, now: u64, bits: f64, label: f64, dropped: bool, q: u64) {
        let Params { threshold, k_alpha, k_c, c, .. } = self.params;
        self.a_rate = self.a.estimate_rate(now, bits, k_alpha);
        self.f_rate = self.f.estimate_rate(now, if dropped { 0.0 } else { bits }, k_alpha);
        if self.alpha == 0.0 {
            self.tmp_alpha = self.tmp_alpha.max(label);
            if q <= threshold {
                return;
            }
            self.alpha = if self.tmp_alpha > 0.0 { self.tmp_alpha } else { c / 2.0 };
            self.tmp_alpha = 0.0;
        }
        if self.a_rate >= c {
            if !self.congested {
                self.congested = true;
                self.start_time = now;
                self.count = 29;
            } else if now >= self.start_time + k_c {
                let smallest = self.params.weights.iter().copied().fold(1.0, f64::min);
                self.alpha = f64::min(self.alpha * c / self.f_rate, c / smallest);
                self.start_time = now;
            }
        } else if self.congested {
            self.congested = false;
            self.start_time = now;
            self.tmp_alpha = 0.0;
        } else {
            self.tmp_alpha = self.tmp_alpha.max(label);
            if now >= self.start_time + k_c {
                self.alpha = if q <= threshold { 0.0 } else { self.tmp_alpha };
                self.tmp_alpha = 0.0;
                self.start_time = now;
            }
        }
    }
}
