//! CoDel: the pseudo-code of RFC 8289 section 5 over a vector, without marking and without a cap on drops.

/// The state. Times are nanoseconds; `first_above_time` 0 means "not above", as in the RFC, so time starts
/// above 0.
#[derive(Clone, Debug)]
pub struct Codel {
    /// Packets as `(id, size, arrival)`.
    pub queue: Vec<(u32, u64, u64)>,
    target: u64,
    interval: u64,
    maxpacket: u64,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// The packets dropped so far.
    pub dropped: Vec<u32>,
}

impl Codel {
    /// An empty queue.
    #[must_use]
    pub fn new(target: u64, interval: u64, maxpacket: u64) -> Self {
        Self {
            queue: Vec::new(),
            target,
            interval,
            maxpacket,
            first_above_time: 0,
            drop_next: 0,
            count: 0,
            lastcount: 0,
            dropping: false,
            dropped: Vec::new(),
        }
    }

    fn control_law(&self, t: u64, count: u32) -> u64 {
        t + (self.interval as f64 / f64::from(count).sqrt()) as u64
    }

    fn dodequeue(&mut self, now: u64) -> (Option<u32>, bool) {
        if self.queue.is_empty() {
            self.first_above_time = 0;
            return (None, false);
        }
        let (id, _, arrival) = self.queue.remove(0);
        let bytes: u64 = self.queue.iter().map(|packet| packet.1).sum();
        let mut ok_to_drop = false;
        if now - arrival < self.target || bytes <= self.maxpacket {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + self.interval;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(id), ok_to_drop)
    }

    /// The next packet.
    pub fn dequeue(&mut self, now: u64) -> Option<u32> {
        let mut r = self.dodequeue(now);
        if self.dropping {
            if !r.1 {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.dropped.extend(r.0);
                self.count += 1;
                r = self.dodequeue(now);
                if r.1 {
                    self.drop_next = self.control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if r.1 {
            self.dropped.extend(r.0);
            r = self.dodequeue(now);
            self.dropping = true;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && (now as i64) - (self.drop_next as i64) < 16 * self.interval as i64 {
                self.count = delta;
            }
            self.drop_next = self.control_law(now, self.count);
            self.lastcount = self.count;
        }
        r.0
    }
}
