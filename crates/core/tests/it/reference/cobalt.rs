//! COBALT over a vector: CoDel's ramp, also backwards, and BLUE. Times are nanoseconds. Without marking and
//! without a cap on drops.

/// The state.
#[derive(Clone, Debug)]
pub struct Cobalt {
    /// Packets as `(id, arrival)`.
    pub queue: Vec<(u32, u64)>,
    /// BLUE's probability, in 1/4096.
    pub p: u64,
    /// Signals minus those taken back.
    pub count: u64,
    limit: usize,
    target: u64,
    interval: u64,
    was_above: bool,
    next: u64,
    changed: Option<u64>,
    empty_since: u64,
}

impl Cobalt {
    /// An empty queue for `limit` packets. Steps of BLUE are 1/256 and 1/4096.
    #[must_use]
    pub fn new(limit: usize, target: u64, interval: u64) -> Self {
        Self {
            queue: Vec::new(),
            p: 0,
            count: 0,
            limit,
            target,
            interval,
            was_above: false,
            next: 0,
            changed: None,
            empty_since: 0,
        }
    }

    fn spacing(&self) -> u64 {
        (self.interval as f64 / (self.count.max(1) as f64).sqrt()) as u64
    }

    fn may_change(&self, now: u64) -> bool {
        self.changed.is_none_or(|changed| now - changed >= self.target)
    }

    /// A packet arrives. Returns whether it joins.
    pub fn enqueue(&mut self, now: u64, id: u32) -> bool {
        if self.queue.is_empty() && self.p > 0 {
            // Each `target` of the idle time is a step down, once the last change is that old.
            let mut from = self.empty_since.max(self.changed.unwrap_or(0));
            while from + self.target <= now {
                from += self.target;
                self.p = self.p.saturating_sub(1);
                self.changed = Some(from);
            }
        }
        if self.queue.len() < self.limit {
            self.queue.push((id, now));
            return true;
        }
        if self.may_change(now) {
            self.p = (self.p + 16).min(4_096);
            self.changed = Some(now);
        }
        false
    }

    /// Returns the next packet, and those lost before it.
    pub fn dequeue(&mut self, now: u64, mut uniform: impl FnMut() -> f64) -> (Option<u32>, Vec<u32>) {
        let mut lost = Vec::new();
        while !self.queue.is_empty() {
            let (id, arrival) = self.queue.remove(0);
            let is_last = self.queue.is_empty();
            let mut signal = false;
            if now - arrival < self.target {
                self.was_above = false;
                while self.count > 0 && now >= self.next {
                    self.count -= 1;
                    self.next += self.spacing();
                }
            } else if !self.was_above {
                self.was_above = true;
                self.next = now + self.spacing();
            } else if now >= self.next && !is_last {
                self.count += 1;
                self.next += self.spacing();
                signal = true;
            }
            if is_last {
                self.empty_since = now;
                if self.p > 0 && self.may_change(now) {
                    self.p -= 1;
                    self.changed = Some(now);
                }
                return (Some(id), lost);
            }
            let unlucky = self.p > 0 && uniform() < self.p as f64 / 4_096.0;
            if !signal && !unlucky {
                return (Some(id), lost);
            }
            lost.push(id);
        }
        (None, lost)
    }
}
