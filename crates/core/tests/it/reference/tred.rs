//! TRED for one FIFO: Zhang et al. 2002, section II-C.1, with the count of ns-2's RED.

use super::red::Outcome;
use super::tickets::Tsw;

/// The place of the factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The factor multiplies p before the count spaces drops.
    Before,
    /// The factor multiplies p after the count.
    After,
    /// There is no count.
    None,
}

/// The parameters.
#[derive(Clone, Debug)]
pub struct Params {
    /// Packets in the buffer.
    pub limit: usize,
    /// MinThresh.
    pub min_thresh: f64,
    /// MaxThresh.
    pub max_thresh: f64,
    /// MaxP.
    pub max_p: f64,
    /// Weight of the average.
    pub w_q: f64,
    /// Drops at least 1/p apart.
    pub wait: bool,
    /// Packets that leave in a second.
    pub packets_per_second: f64,
    /// WinLength, in seconds.
    pub win_length: f64,
    /// Exponent of the factor.
    pub n: i32,
    /// The place of the factor.
    pub stage: Stage,
    /// K; 0 filters nothing.
    pub k: f64,
    /// Half of the interval of MinTkt, in nanoseconds.
    pub half: u64,
    /// MinTkt is the tickets of this rank, the least being 1.
    pub rank: usize,
}

/// The queue and the state.
#[derive(Clone, Debug)]
pub struct Tred {
    params: Params,
    /// The packets that wait.
    pub queue: Vec<u32>,
    avg_q_len: f64,
    idle: Option<u64>,
    /// Time and tickets of all tagged packets.
    arrivals: Vec<(u64, f64)>,
    expect_tkt_rate: Tsw,
    expect_pkt_rate: Tsw,
    /// Whether a packet has passed the filter.
    expects: bool,
    /// The number of packets that did not pass the filter.
    pub filtered: u64,
    count: f64,
    old: bool,
}

impl Tred {
    /// Idle from time 0 with an average of 0.
    #[must_use]
    pub const fn new(params: Params) -> Self {
        let none = Tsw::new(params.win_length, 0.0, 0);
        Self {
            params,
            queue: Vec::new(),
            avg_q_len: 0.0,
            idle: Some(0),
            arrivals: Vec::new(),
            expect_tkt_rate: none,
            expect_pkt_rate: none,
            expects: false,
            filtered: 0,
            count: 0.0,
            old: false,
        }
    }

    /// The link asks at `now`, in nanoseconds.
    pub fn leave(&mut self, now: u64) -> Option<u32> {
        if self.queue.is_empty() {
            self.idle = self.idle.or(Some(now));
            return None;
        }
        Some(self.queue.remove(0))
    }

    /// The tickets of this rank among the arrivals of this half of the interval and the one before.
    fn min_tkt(&self, now: u64) -> Option<f64> {
        let half = |at: u64| at / self.params.half;
        let recent = self.arrivals.iter().filter(|arrival| half(arrival.0) + 1 >= half(now));
        let mut tickets: Vec<f64> = recent.map(|arrival| arrival.1).collect();
        tickets.sort_by(f64::total_cmp);
        tickets.get(self.params.rank - 1).copied()
    }

    /// A packet arrives. `uniform` draws from [0, 1).
    pub fn arrive(
        &mut self,
        now: u64,
        id: u32,
        in_tkt: Option<u32>,
        uniform: impl FnOnce() -> f64,
    ) -> Outcome {
        let p = self.params.clone();
        // Compute AvgQLen the same as in RED.
        if let Some(since) = self.idle.take() {
            let m = (p.packets_per_second * (now - since) as f64 / 1e9) as i64;
            for _ in 0..m {
                self.avg_q_len *= 1.0 - p.w_q;
            }
        }
        let q = self.queue.len();
        self.avg_q_len = (1.0 - p.w_q) * self.avg_q_len + p.w_q * q as f64;

        let mut factor = 1.0;
        if let Some(in_tkt) = in_tkt {
            let in_tkt = f64::from(in_tkt.max(1));
            self.arrivals.push((now, in_tkt));
            if p.k == 0.0 || self.min_tkt(now).is_none_or(|min_tkt| in_tkt < p.k * min_tkt) {
                self.expect_tkt_rate.arrive(now, in_tkt);
                self.expect_pkt_rate.arrive(now, 1.0);
                self.expects = true;
            } else {
                self.filtered += 1;
            }
            if self.expects {
                let expect_tkt = self.expect_tkt_rate.avg_rate / self.expect_pkt_rate.avg_rate;
                factor = (expect_tkt / in_tkt).powi(p.n);
            }
        }

        self.count += 1.0;
        let mut outcome = Outcome::Enqueue;
        if self.avg_q_len <= p.min_thresh || q <= 1 {
            self.old = false;
        } else if self.avg_q_len >= p.max_thresh {
            outcome = Outcome::Forced;
        } else if !self.old {
            self.old = true;
            self.count = 1.0;
        } else if uniform() < self.probability(factor) {
            outcome = Outcome::Early;
        }
        if q >= p.limit {
            outcome = Outcome::Overflow;
        }
        if outcome == Outcome::Enqueue {
            self.queue.push(id);
        } else {
            self.count = 0.0;
        }
        outcome
    }

    fn probability(&self, factor: f64) -> f64 {
        let p = &self.params;
        let p_b = p.max_p * (self.avg_q_len - p.min_thresh) / (p.max_thresh - p.min_thresh);
        let probability = match p.stage {
            Stage::Before => self.counted((p_b * factor).min(1.0)),
            Stage::After => self.counted(p_b) * factor,
            Stage::None => p_b * factor,
        };
        probability.min(1.0)
    }

    fn counted(&self, p_b: f64) -> f64 {
        let x = self.count * p_b;
        if self.params.wait {
            if x < 1.0 {
                0.0
            } else if x < 2.0 {
                p_b / (2.0 - x)
            } else {
                1.0
            }
        } else if x < 1.0 {
            p_b / (1.0 - x)
        } else {
            1.0
        }
    }
}
