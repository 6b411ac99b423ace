//! The start tags of Goyal, Vin, Cheng 1997, eq. 4 and 5, given at arrival, and schedulers by them: SP-PIFO (Alcoz, Dietmüller,
//! Vanbever 2020, algorithm 1), PACKS (Gran Alcoz et al. 2025), AIFO (Yu, Hu, Wu, Jin 2021, section 4), and RIFO (Mostafaei, Pacut, Schmid
//! 2023). Ranks are whole numbers of one unit.

use std::collections::BTreeMap;

/// The state of start-time fair queueing for the flows.
#[derive(Clone, Debug, Default)]
struct Tags {
    v: u64,
    finish: BTreeMap<u32, u64>,
}

impl Tags {
    fn start(&self, flow: u32) -> u64 {
        self.finish.get(&flow).copied().unwrap_or(0).max(self.v)
    }
}

/// SP-PIFO.
#[derive(Clone, Debug)]
pub struct SpPifo {
    tags: Tags,
    limit: usize,
    bounds: Vec<u64>,
    /// Number and rank of the packets by queue, the highest priority first.
    queues: Vec<Vec<(u32, u64)>>,
}

impl SpPifo {
    /// No packets; each queue holds its part of `limit`, and at least one.
    #[must_use]
    pub fn new(queues: usize, limit: usize) -> Self {
        Self { tags: Tags::default(), limit, bounds: vec![0; queues], queues: vec![Vec::new(); queues] }
    }

    /// A packet arrives. Returns whether it is admitted.
    pub fn enqueue(&mut self, flow: u32, id: u32, size: u64) -> bool {
        let rank = self.tags.start(flow);
        let mut queue = self.bounds.len() - 1;
        while queue > 0 && rank < self.bounds[queue] {
            queue -= 1;
        }
        if rank >= self.bounds[queue] {
            self.bounds[queue] = rank;
        } else {
            let cost = self.bounds[0] - rank;
            for bound in &mut self.bounds {
                *bound -= cost;
            }
        }
        let part = (self.limit / self.queues.len()).max(1);
        if self.queues[queue].len() >= part || self.queues.iter().map(Vec::len).sum::<usize>() >= self.limit {
            return false;
        }
        self.tags.finish.insert(flow, rank + size);
        self.queues[queue].push((id, rank));
        true
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let queue = self.queues.iter_mut().find(|queue| !queue.is_empty())?;
        let (id, rank) = queue.remove(0);
        self.tags.v = self.tags.v.max(rank);
        Some(id)
    }
}

/// AIFO.
#[derive(Clone, Debug)]
pub struct Aifo {
    tags: Tags,
    limit: usize,
    headroom: f64,
    size: usize,
    window: Vec<u64>,
    queue: Vec<(u32, u64)>,
}

impl Aifo {
    /// No packets; a window of `size` ranks.
    #[must_use]
    pub fn new(limit: usize, headroom: f64, size: usize) -> Self {
        Self { tags: Tags::default(), limit, headroom, size, window: Vec::new(), queue: Vec::new() }
    }

    /// A packet arrives. Returns whether it is admitted.
    pub fn enqueue(&mut self, flow: u32, id: u32, size: u64) -> bool {
        let rank = self.tags.start(flow);
        let below = self.window.iter().filter(|&&other| other < rank).count() as f64;
        let quantile = if self.window.is_empty() { 0.0 } else { below / self.window.len() as f64 };
        let free = 1.0 - self.queue.len() as f64 / self.limit as f64;
        self.window.push(rank);
        if self.window.len() > self.size {
            self.window.remove(0);
        }
        if self.queue.len() >= self.limit || quantile * (1.0 - self.headroom) > free {
            return false;
        }
        self.tags.finish.insert(flow, rank + size);
        self.queue.push((id, rank));
        true
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let (id, rank) = (!self.queue.is_empty()).then(|| self.queue.remove(0))?;
        self.tags.v = self.tags.v.max(rank);
        Some(id)
    }
}

/// PACKS.
#[derive(Clone, Debug)]
pub struct Packs {
    tags: Tags,
    limit: usize,
    headroom: f64,
    size: usize,
    /// Whether a queue's bound is its part of all that is free.
    total: bool,
    window: Vec<u64>,
    /// Number and rank of the packets by queue, the highest priority first.
    queues: Vec<Vec<(u32, u64)>>,
}

impl Packs {
    /// No packets; each queue holds its part of `limit`, and at least one; a window of `size` ranks.
    #[must_use]
    pub fn new(queues: usize, limit: usize, headroom: f64, size: usize, total: bool) -> Self {
        let queues = vec![Vec::new(); queues];
        Self { tags: Tags::default(), limit, headroom, size, total, window: Vec::new(), queues }
    }

    /// A packet arrives. Returns whether it is admitted.
    pub fn enqueue(&mut self, flow: u32, id: u32, size: u64) -> bool {
        let rank = self.tags.start(flow);
        self.window.push(rank);
        if self.window.len() > self.size {
            self.window.remove(0);
        }
        let below = self.window.iter().filter(|&&other| other < rank).count() as f64;
        let quantile = below / self.window.len() as f64 * (1.0 - self.headroom);
        let (limit, n) = (self.limit as f64, self.queues.len());
        let held: usize = self.queues.iter().map(Vec::len).sum();
        let free = 1.0 - held as f64 / limit;
        let part = (self.limit / n).max(1);
        let mut ahead = 0.0;
        for queue in 0..n {
            ahead += (1.0 / n as f64 - self.queues[queue].len() as f64 / limit).max(0.0);
            let accepts =
                if self.total { quantile < free * (queue + 1) as f64 / n as f64 } else { quantile <= ahead };
            if accepts && self.queues[queue].len() < part && held < self.limit {
                self.tags.finish.insert(flow, rank + size);
                self.queues[queue].push((id, rank));
                return true;
            }
        }
        false
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let queue = self.queues.iter_mut().find(|queue| !queue.is_empty())?;
        let (id, rank) = queue.remove(0);
        self.tags.v = self.tags.v.max(rank);
        Some(id)
    }
}

/// RIFO.
#[derive(Clone, Debug)]
pub struct Rifo {
    tags: Tags,
    limit: usize,
    headroom: f64,
    reset: usize,
    /// Whether the rule is that of the published programs.
    published: bool,
    /// The ranks since the last reset.
    ranks: Vec<u64>,
    queue: Vec<(u32, u64)>,
}

impl Rifo {
    /// No packets.
    #[must_use]
    pub fn new(limit: usize, headroom: f64, reset: usize, published: bool) -> Self {
        Self {
            tags: Tags::default(),
            limit,
            headroom,
            reset,
            published,
            ranks: Vec::new(),
            queue: Vec::new(),
        }
    }

    /// A packet arrives. Returns whether it is admitted.
    pub fn enqueue(&mut self, flow: u32, id: u32, size: u64) -> bool {
        let rank = self.tags.start(flow);
        if self.ranks.len() == self.reset {
            self.ranks.clear();
        }
        self.ranks.push(rank);
        let (least, most) = (self.ranks.iter().min().unwrap(), self.ranks.iter().max().unwrap());
        let score = if most > least { (rank - least) as f64 / (most - least) as f64 } else { 0.0 };
        let free = 1.0 - self.queue.len() as f64 / self.limit as f64;
        let is_low = score <= if self.published { 1.0 - free } else { free };
        if self.queue.len() >= self.limit || !(is_low || 1.0 - free <= self.headroom) {
            return false;
        }
        self.tags.finish.insert(flow, rank + size);
        self.queue.push((id, rank));
        true
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let (id, rank) = (!self.queue.is_empty()).then(|| self.queue.remove(0))?;
        self.tags.v = self.tags.v.max(rank);
        Some(id)
    }
}
