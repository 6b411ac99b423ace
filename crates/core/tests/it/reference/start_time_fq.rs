//! Start-time fair queueing: Goyal, Vin, Cheng 1997, section II, with tags given to heads of line.

/// The state. Packets are `(id, size)`; virtual time is bytes per weight.
#[derive(Clone, Debug, Default)]
pub struct StartTimeFq {
    /// Per flow: its weight.
    pub weight: Vec<f64>,
    /// Per flow: its packets.
    pub queue: Vec<Vec<(u32, f64)>>,
    /// Per flow: the start tag of its head.
    start: Vec<f64>,
    /// Per flow: the finish tag of its last packet served.
    finish: Vec<f64>,
    v: f64,
    /// Per flow: the place of its head among all in the order in which they came to the head.
    turn: Vec<u64>,
    heads: u64,
}

impl StartTimeFq {
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

    /// The next packet; when there is none, the link is idle.
    pub fn dequeue(&mut self) -> Option<u32> {
        let backlogged = (0..self.queue.len()).filter(|&flow| !self.queue[flow].is_empty());
        let order = |a: usize, b: usize| {
            self.start[a].total_cmp(&self.start[b]).then(self.turn[a].cmp(&self.turn[b]))
        };
        let Some(flow) = backlogged.min_by(|&a, &b| order(a, b)) else {
            self.v = self.finish.iter().copied().fold(self.v, f64::max);
            return None;
        };
        let (id, size) = self.queue[flow].remove(0);
        self.v = self.start[flow];
        self.finish[flow] = self.start[flow] + size / self.weight[flow];
        self.start[flow] = self.finish[flow];
        self.take_turn(flow);
        Some(id)
    }

    /// Loses a packet of `flow` from its head or tail: the next one has the same start tag.
    pub fn push_out(&mut self, flow: usize, head: bool) -> Option<u32> {
        let last = self.queue[flow].len().checked_sub(1)?;
        Some(self.queue[flow].remove(if head { 0 } else { last }).0)
    }
}
