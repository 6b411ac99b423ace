//! Cebinae: Yu, Sonchack, Liu 2022, with a slot for every flow and times in round numbers.

/// A group's bucket: admitted bytes, and the allocations for this round and the next.
type Bucket = (u64, u64, u64);

/// The state. A round has `interval` units of time.
#[derive(Clone, Debug)]
pub struct Cebinae {
    limit: usize,
    interval: u64,
    capacity: u64,
    tax: f64,
    near: f64,
    now: u64,
    saturated: bool,
    /// The buckets of all flows, of top flows, and of the others.
    buckets: [Bucket; 3],
    top: Vec<u32>,
    sent: Vec<(u32, u64)>,
    /// Packets of this round and of the next: flow, number, bytes.
    queues: [Vec<(u32, u32, u64)>; 2],
}

impl Cebinae {
    /// No packets; both queues together hold `limit`. A link of `capacity` bytes in a round of `interval`, P = 1, delta_p = 1 %.
    #[must_use]
    pub fn new(limit: usize, interval: u64, capacity: u64, tax: f64, near: f64) -> Self {
        let none = (0, 0, 0);
        let buckets = [(0, capacity, capacity), none, none];
        let (top, sent, queues) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        Self { limit, interval, capacity, tax, near, now: 0, saturated: false, buckets, top, sent, queues }
    }

    /// Advances time, round by round.
    pub fn advance(&mut self, by: u64) {
        for _ in 0..by {
            self.now += 1;
            if self.now.is_multiple_of(self.interval) {
                self.rotate();
            }
        }
    }

    fn rotate(&mut self) {
        let total: u64 = self.sent.iter().map(|flow| flow.1).sum();
        let was = self.saturated;
        self.saturated = total as f64 >= 0.99 * self.capacity as f64;
        self.top.clear();
        let mut next = [self.capacity, self.buckets[1].2, self.buckets[2].2];
        if self.saturated {
            let most = self.sent.iter().map(|flow| flow.1).max().unwrap_or(0);
            let tops = self.sent.iter().filter(|flow| flow.1 as f64 >= (1.0 - self.near) * most as f64);
            let had: u64 = tops.clone().map(|flow| flow.1).sum();
            self.top = tops.map(|flow| flow.0).collect();
            next[1] = (((1.0 - self.tax) * had as f64) as u64).min(self.capacity);
            next[2] = self.capacity - next[1];
            if !was {
                let part = (had as f64 / total as f64).min(1.0);
                let of = |bytes: u64| (part * bytes as f64) as u64;
                let (bytes, head, tail) = self.buckets[0];
                self.buckets[1] = (of(bytes), of(head), of(tail));
                self.buckets[2] = (bytes - of(bytes), head - of(head), tail - of(tail));
            }
            // The decision applies to the round after the next.
            (self.buckets[1].2, self.buckets[2].2) = (next[1], next[2]);
        }
        for (bucket, next) in self.buckets.iter_mut().zip(next) {
            *bucket = (bucket.0.saturating_sub(bucket.1), bucket.2, next);
        }
        let [head, tail] = &mut self.queues;
        head.append(tail);
        self.sent.clear();
    }

    /// A packet arrives. Returns whether it is admitted.
    pub fn enqueue(&mut self, flow: u32, id: u32, size: u64) -> bool {
        if self.queues[0].len() + self.queues[1].len() >= self.limit {
            return false;
        }
        let elapsed = self.now % self.interval;
        let with = |bucket: &Bucket| bucket.0.max(bucket.1 * elapsed / self.interval) + size;
        let of = if self.saturated { 2 - usize::from(self.top.contains(&flow)) } else { 0 };
        let (all, own) = (with(&self.buckets[0]), with(&self.buckets[of]));
        let (_, head, tail) = self.buckets[of];
        if self.saturated && own > head + tail {
            return false;
        }
        self.buckets[of].0 = own;
        self.buckets[0].0 = all;
        self.queues[usize::from(own > head)].push((flow, id, size));
        true
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let queue = self.queues.iter_mut().find(|queue| !queue.is_empty())?;
        let (flow, id, size) = queue.remove(0);
        match self.sent.iter_mut().find(|other| other.0 == flow) {
            Some(sent) => sent.1 += size,
            None => self.sent.push((flow, size)),
        }
        Some(id)
    }
}
