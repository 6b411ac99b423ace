//! PFD of Srinivasan, Vaidyanathan, Baras, figure 3, with q_i decremented where the figure omits it and the
//! test repeated while the buffer is exceeded; and RND as described in their section 3.
//!
//! There is no scheduler here: the caller that serves a packet names its flow.

/// The parameters.
#[derive(Clone, Debug)]
pub struct Params {
    /// B.
    pub b: f64,
    /// Whether B and q_i are bytes.
    pub in_bytes: bool,
    /// p.
    pub p: f64,
    /// thresh.
    pub thresh: f64,
    /// The shares to which thresholds are proportional, by flow; equal among the active if absent.
    pub shares: Option<Vec<f64>>,
    /// The choice of the victim.
    pub victim: Victim,
    /// Thresholds are rounded down to whole multiples of this, if any.
    pub cell: Option<f64>,
}

/// The choice of the victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// Largest q_i/b_i.
    Ratio,
    /// Largest q_i - b_i.
    Difference,
    /// With probability proportional to q_i/b_i.
    Proportional,
}

/// The buffer: identity and size of each packet, by flow.
#[derive(Clone, Debug)]
pub struct Pfd {
    params: Params,
    /// The queues.
    pub queues: Vec<Vec<(u32, u64)>>,
}

impl Pfd {
    /// An empty buffer for `flows` flows.
    #[must_use]
    pub fn new(params: Params, flows: usize) -> Self {
        Self { params, queues: vec![Vec::new(); flows] }
    }

    fn q(&self, i: usize) -> f64 {
        let queue = &self.queues[i];
        if self.params.in_bytes {
            queue.iter().map(|packet| packet.1 as f64).sum()
        } else {
            queue.len() as f64
        }
    }

    fn q_size(&self) -> f64 {
        (0..self.queues.len()).map(|i| self.q(i)).sum()
    }

    fn b(&self, i: usize) -> f64 {
        let b = match &self.params.shares {
            None => self.params.b / self.queues.iter().filter(|queue| !queue.is_empty()).count() as f64,
            Some(shares) => self.params.b / shares.iter().sum::<f64>() * shares[i],
        };
        self.params.cell.map_or(b, |cell| (b / cell).floor() * cell)
    }

    /// Whether the buffer holds more than fits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.q_size() > self.params.b
    }

    /// The flows with q_i > b_i.
    #[must_use]
    pub fn above(&self) -> Vec<usize> {
        (0..self.queues.len()).filter(|&i| self.q(i) > self.b(i)).collect()
    }

    /// Removes the packet at the head of flow `i`.
    pub fn take(&mut self, i: usize) -> Option<u32> {
        (!self.queues[i].is_empty()).then(|| self.queues[i].remove(0).0)
    }

    /// A packet joins. No packet is pushed out.
    pub fn join(&mut self, id: u32, i: usize, size: u64) {
        self.queues[i].push((id, size));
    }

    /// A packet arrives. Returns the packets pushed out, and whether early. Among equals the victim is the
    /// first in `preferred`. `uniform` draws from [0, 1).
    pub fn arrive(
        &mut self,
        id: u32,
        i: usize,
        size: u64,
        preferred: &[u32],
        mut uniform: impl FnMut() -> f64,
    ) -> Vec<(u32, bool)> {
        self.join(id, i, size);
        let mut pushed_out = Vec::new();
        if self.q_size() > self.params.b {
            while self.q_size() > self.params.b {
                pushed_out.push((self.drop_from_longest_normalized_q(preferred, &mut uniform), false));
            }
        } else if self.q_size() > self.params.thresh * self.params.b && uniform() < self.params.p {
            pushed_out.push((self.drop_from_longest_normalized_q(preferred, &mut uniform), true));
        }
        pushed_out
    }

    fn drop_from_longest_normalized_q(&mut self, preferred: &[u32], uniform: impl FnOnce() -> f64) -> u32 {
        let active: Vec<usize> = (0..self.queues.len()).filter(|&i| !self.queues[i].is_empty()).collect();
        let drop_q = if self.params.victim == Victim::Proportional {
            let n: Vec<f64> = active.iter().map(|&i| self.q(i) / self.b(i)).collect();
            let mut rest = uniform() * n.iter().sum::<f64>();
            let mut drawn = 0;
            while rest >= n[drawn] && drawn + 1 < n.len() {
                rest -= n[drawn];
                drawn += 1;
            }
            active[drawn]
        } else {
            let excess = |i: usize| match self.params.victim {
                Victim::Difference => self.q(i) - self.b(i),
                _ => self.q(i) / self.b(i),
            };
            let most = active.iter().map(|&i| excess(i)).fold(f64::NEG_INFINITY, f64::max);
            let longest = active.iter().copied().filter(|&i| excess(i) == most);
            let rank = |&i: &usize| {
                let head = self.queues[i][0].0;
                preferred.iter().position(|&id| id == head).unwrap_or(usize::MAX)
            };
            longest.min_by_key(rank).unwrap_or(active[0])
        };
        self.queues[drop_q].remove(0).0
    }
}
