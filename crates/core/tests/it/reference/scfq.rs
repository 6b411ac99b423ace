//! SCFQ: Golestani 1994, section 3, with tags given to heads of line.

/// The state. Packets are `(id, size)`; virtual time is bytes per weight.
#[derive(Clone, Debug, Default)]
pub struct Scfq {
    /// Per flow: its weight.
    pub weight: Vec<f64>,
    /// Per flow: its packets.
    pub queue: Vec<Vec<(u32, f64)>>,
    /// Per flow: where the service of its head starts, `max(v, F of the last packet served)`.
    start: Vec<f64>,
    /// Per flow: F of its last packet served.
    finish: Vec<f64>,
    v: f64,
    /// Per flow: the place of its head among all in the order in which they came to the head.
    turn: Vec<u64>,
    heads: u64,
}

impl Scfq {
    /// No packets; one flow per weight.
    #[must_use]
    pub fn new(weight: Vec<f64>) -> Self {
        let n = weight.len();
        let (queue, start, finish) = (vec![Vec::new(); n], vec![0.0; n], vec![0.0; n]);
        Self { weight, queue, start, finish, v: 0.0, turn: vec![0; n], heads: 0 }
    }

    fn take_turn(&mut self, flow: usize) {
        self.heads += 1;
        self.turn[flow] = self.heads;
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, flow: usize, id: u32, size: f64) {
        if self.queue[flow].is_empty() {
            self.start[flow] = self.v.max(self.finish[flow]);
            self.take_turn(flow);
        }
        self.queue[flow].push((id, size));
    }

    /// The next packet; when there is none, the link is idle and everything starts from zero.
    pub fn dequeue(&mut self) -> Option<u32> {
        let tag = |flow: usize| self.start[flow] + self.queue[flow][0].1 / self.weight[flow];
        let backlogged = (0..self.queue.len()).filter(|&flow| !self.queue[flow].is_empty());
        let Some(flow) =
            backlogged.min_by(|&a, &b| tag(a).total_cmp(&tag(b)).then(self.turn[a].cmp(&self.turn[b])))
        else {
            self.finish.fill(0.0);
            self.v = 0.0;
            return None;
        };
        self.finish[flow] = tag(flow);
        self.start[flow] = self.finish[flow];
        self.v = self.v.max(self.finish[flow]);
        self.take_turn(flow);
        Some(self.queue[flow].remove(0).0)
    }

    /// Loses a packet of `flow` from its head or tail.
    pub fn push_out(&mut self, flow: usize, head: bool) -> Option<u32> {
        let last = self.queue[flow].len().checked_sub(1)?;
        Some(self.queue[flow].remove(if head { 0 } else { last }).0)
    }
}
