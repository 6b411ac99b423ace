//! The start tags of Goyal, Vin, Cheng 1997, eq. 4 and 5, given at arrival, and two schedulers by them: SP-PIFO (Alcoz, Dietmüller,
//! Vanbever 2020, algorithm 1) and AIFO (Yu, Hu, Wu, Jin 2021, section 4). Ranks are whole numbers of one unit.

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

/// SP-PIFO in which a packet joins no queue ahead of one of its flow.
#[derive(Clone, Debug)]
pub struct SpPifo {
    tags: Tags,
    limit: usize,
    bounds: Vec<u64>,
    /// Flow, number and rank of the packets by queue, the highest priority first.
    queues: Vec<Vec<(u32, u32, u64)>>,
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
        let last = self.queues.iter().rposition(|queue| queue.iter().any(|packet| packet.0 == flow));
        let queue = queue.max(last.unwrap_or(0));
        let part = (self.limit / self.queues.len()).max(1);
        if self.queues[queue].len() >= part || self.queues.iter().map(Vec::len).sum::<usize>() >= self.limit {
            return false;
        }
        self.tags.finish.insert(flow, rank + size);
        self.queues[queue].push((flow, id, rank));
        true
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let queue = self.queues.iter_mut().find(|queue| !queue.is_empty())?;
        let (_, id, rank) = queue.remove(0);
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
