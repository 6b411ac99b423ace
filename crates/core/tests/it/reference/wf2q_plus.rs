//! WF2Q+: Bennett, Zhang 1997, section IV, with tags given to heads of line and the weights that count.

/// The state. Packets are `(id, size)`; virtual time is bytes per weight, in whole units of the caller, so
/// that the test can compare virtual times for equality.
#[derive(Clone, Debug, Default)]
pub struct Wf2qPlus {
    /// Per flow: its weight.
    pub weight: Vec<u64>,
    /// Per flow: its packets.
    pub queue: Vec<Vec<(u32, u64)>>,
    /// Per flow: S of its head.
    start: Vec<u64>,
    /// Per flow: F of its last packet served.
    finish: Vec<u64>,
    v: u64,
    /// Units of virtual time in a byte.
    unit: u64,
}

impl Wf2qPlus {
    /// No packets; one flow per weight, each of which divides `unit`.
    #[must_use]
    pub fn new(weight: Vec<u64>, unit: u64) -> Self {
        let n = weight.len();
        let (queue, start, finish) = (vec![Vec::new(); n], vec![0; n], vec![0; n]);
        Self { weight, queue, start, finish, v: 0, unit }
    }

    fn flows(&self) -> std::ops::Range<usize> {
        0..self.queue.len()
    }

    fn backlogged(&self) -> impl Iterator<Item = usize> {
        self.flows().filter(|&flow| !self.queue[flow].is_empty())
    }

    /// V = max(V, smallest S of the backlogged).
    fn catch_up(&mut self) {
        if let Some(smallest) = self.backlogged().map(|flow| self.start[flow]).min() {
            self.v = self.v.max(smallest);
        }
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, flow: usize, id: u32, size: u64) {
        if self.queue[flow].is_empty() {
            self.start[flow] = self.v.max(self.finish[flow]);
        }
        self.queue[flow].push((id, size));
        self.catch_up();
    }

    /// The next packet; when there is none, the link is idle.
    pub fn dequeue(&mut self) -> Option<u32> {
        let tag = |flow: usize| self.start[flow] + self.queue[flow][0].1 * self.unit / self.weight[flow];
        let eligible = self.backlogged().filter(|&flow| self.start[flow] <= self.v);
        let Some(flow) = eligible.min_by_key(|&flow| tag(flow)) else {
            self.v = self.finish.iter().copied().fold(self.v, u64::max);
            return None;
        };
        self.finish[flow] = tag(flow);
        self.start[flow] = self.finish[flow];
        // Before the service, flows count that are backlogged or still have F above V.
        let counts = |&other: &usize| !self.queue[other].is_empty() || self.finish[other] > self.v;
        let weights: u64 = self.flows().filter(counts).map(|flow| self.weight[flow]).sum();
        let (id, size) = self.queue[flow].remove(0);
        self.v += size * self.unit / weights;
        self.catch_up();
        Some(id)
    }

    /// Loses a packet of `flow` from its head or tail.
    pub fn push_out(&mut self, flow: usize, head: bool) -> Option<u32> {
        let last = self.queue[flow].len().checked_sub(1)?;
        let (id, _) = self.queue[flow].remove(if head { 0 } else { last });
        self.finish[flow] = self.finish[flow].max(self.start[flow]);
        self.catch_up();
        Some(id)
    }
}
