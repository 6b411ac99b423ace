//! DRR: Shreedhar, Varghese 1996, section III, with a vector per flow and a vector for the active list.

/// The state. Packets are `(id, size)`; sizes, quanta and counters are bytes.
#[derive(Clone, Debug, Default)]
pub struct Drr {
    /// Per flow: its quantum.
    pub quantum: Vec<f64>,
    /// Per flow: its packets.
    pub queue: Vec<Vec<(u32, f64)>>,
    deficit: Vec<f64>,
    /// Active flows; the first has its turn.
    active: Vec<usize>,
}

impl Drr {
    /// No packets; one flow per quantum.
    #[must_use]
    pub fn new(quantum: Vec<f64>) -> Self {
        let n = quantum.len();
        Self { quantum, queue: vec![Vec::new(); n], deficit: vec![0.0; n], active: Vec::new() }
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, flow: usize, id: u32, size: f64) {
        self.queue[flow].push((id, size));
        if !self.active.contains(&flow) {
            self.active.push(flow);
            if self.active.len() == 1 {
                self.deficit[flow] += self.quantum[flow];
                self.pass_on();
            }
        }
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let flow = *self.active.first()?;
        let (id, size) = self.queue[flow].remove(0);
        self.deficit[flow] -= size;
        self.tidy(flow);
        Some(id)
    }

    /// Loses a packet of `flow` from its head or tail.
    pub fn push_out(&mut self, flow: usize, head: bool) -> Option<u32> {
        let last = self.queue[flow].len().checked_sub(1)?;
        let (id, _) = self.queue[flow].remove(if head { 0 } else { last });
        self.tidy(flow);
        Some(id)
    }

    fn tidy(&mut self, flow: usize) {
        let had_turn = self.active[0] == flow;
        if self.queue[flow].is_empty() {
            self.deficit[flow] = 0.0;
            self.active.retain(|&other| other != flow);
            if had_turn && !self.active.is_empty() {
                self.deficit[self.active[0]] += self.quantum[self.active[0]];
            }
        }
        self.pass_on();
    }

    /// While the head of the flow in turn is too large: keep the rest, next turn.
    fn pass_on(&mut self) {
        while let Some(&flow) = self.active.first() {
            if self.queue[flow][0].1 <= self.deficit[flow] {
                return;
            }
            self.active.remove(0);
            self.active.push(flow);
            let next = self.active[0];
            self.deficit[next] += self.quantum[next];
        }
    }
}
