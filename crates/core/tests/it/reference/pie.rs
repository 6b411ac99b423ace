//! PIE: RFC 8033 appendices A and B over a vector, with a timer that is checked at every nanosecond at which
//! it is due.

/// The state. Times are nanoseconds, delays and periods of the controller seconds.
#[derive(Clone, Debug)]
pub struct Pie {
    /// Packets as `(id, size, arrival)`.
    pub queue: Vec<(u32, u64, u64)>,
    /// The drop probability.
    pub drop_prob: f64,
    accu_prob: f64,
    current_qdelay: u64,
    qdelay_old: u64,
    burst_allowance: u64,
    timer: Option<u64>,
    target: u64,
    t_update: u64,
    max_burst: u64,
    mean_pktsize: u64,
}

impl Pie {
    /// An empty queue.
    #[must_use]
    pub fn new(target: u64, t_update: u64, max_burst: u64, mean_pktsize: u64) -> Self {
        Self {
            queue: Vec::new(),
            drop_prob: 0.0,
            accu_prob: 0.0,
            current_qdelay: 0,
            qdelay_old: 0,
            burst_allowance: 0,
            timer: None,
            target,
            t_update,
            max_burst,
            mean_pktsize,
        }
    }

    /// Advances time to `now`.
    pub fn advance(&mut self, now: u64) {
        while let Some(at) = self.timer.filter(|at| *at <= now) {
            self.calculate_drop_prob();
            self.timer = Some(at + self.t_update);
        }
    }

    fn calculate_drop_prob(&mut self) {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let (now, old, target) =
            (seconds(self.current_qdelay), seconds(self.qdelay_old), seconds(self.target));
        let mut p = 0.125 * (now - target) + 1.25 * (now - old);
        p = if self.drop_prob < 0.000_001 {
            p / 2048.0
        } else if self.drop_prob < 0.000_01 {
            p / 512.0
        } else if self.drop_prob < 0.000_1 {
            p / 128.0
        } else if self.drop_prob < 0.001 {
            p / 32.0
        } else if self.drop_prob < 0.01 {
            p / 8.0
        } else if self.drop_prob < 0.1 {
            p / 2.0
        } else {
            p.min(0.02)
        };
        self.drop_prob += p;
        if self.current_qdelay == 0 && self.qdelay_old == 0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.t_update);
    }

    /// Returns whether packet `id` joins. `draw` returns numbers in [0, 1).
    pub fn enque(&mut self, now: u64, id: u32, size: u64, mut draw: impl FnMut() -> f64) -> bool {
        self.advance(now);
        self.timer.get_or_insert(now + self.t_update);
        if self.drop_prob == 0.0 && 2 * self.current_qdelay < self.target && 2 * self.qdelay_old < self.target
        {
            self.burst_allowance = self.max_burst;
        }
        if self.burst_allowance == 0 && self.drop_early(&mut draw) {
            return false;
        }
        self.queue.push((id, size, now));
        true
    }

    fn drop_early(&mut self, draw: &mut impl FnMut() -> f64) -> bool {
        let bytes: u64 = self.queue.iter().map(|packet| packet.1).sum();
        if (2 * self.qdelay_old < self.target && self.drop_prob < 0.2) || bytes <= 2 * self.mean_pktsize {
            return false;
        }
        if self.drop_prob == 0.0 {
            self.accu_prob = 0.0;
        }
        self.accu_prob += self.drop_prob;
        if self.accu_prob < 0.85 {
            return false;
        }
        if self.accu_prob >= 8.5 || draw() < self.drop_prob {
            self.accu_prob = 0.0;
            return true;
        }
        false
    }

    /// The next packet.
    pub fn deque(&mut self, now: u64) -> Option<u32> {
        self.advance(now);
        if self.queue.is_empty() {
            return None;
        }
        let (id, _, arrival) = self.queue.remove(0);
        self.current_qdelay = if self.queue.is_empty() { 0 } else { now - arrival };
        Some(id)
    }
}
