//! Weighted round robin, packet by packet: one scan after another, a turn for each backlogged flow.

/// The state. Packets are numbers.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    /// Per flow: packets a turn, at least one.
    pub turn: Vec<f64>,
    /// Per flow: its packets.
    pub queue: Vec<Vec<u32>>,
    /// Per flow: the credit for more packets.
    credit: Vec<f64>,
    /// Backlogged flows; the first has its turn.
    order: Vec<usize>,
}

impl RoundRobin {
    /// No packets; one flow per turn.
    #[must_use]
    pub fn new(turn: Vec<f64>) -> Self {
        let n = turn.len();
        Self { turn, queue: vec![Vec::new(); n], credit: vec![0.0; n], order: Vec::new() }
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, flow: usize, id: u32) {
        self.queue[flow].push(id);
        if self.queue[flow].len() == 1 {
            self.order.push(flow);
            if self.order.len() == 1 {
                self.begin();
            }
        }
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let flow = *self.order.first()?;
        let id = self.queue[flow].remove(0);
        self.credit[flow] -= 1.0;
        if self.queue[flow].is_empty() {
            self.leave(flow);
        } else if self.credit[flow] < 1.0 {
            self.order.rotate_left(1);
            self.begin();
        }
        Some(id)
    }

    /// Loses a packet of `flow` from its head or tail.
    pub fn push_out(&mut self, flow: usize, head: bool) -> Option<u32> {
        let last = self.queue[flow].len().checked_sub(1)?;
        let id = self.queue[flow].remove(if head { 0 } else { last });
        if self.queue[flow].is_empty() {
            self.leave(flow);
        }
        Some(id)
    }

    fn begin(&mut self) {
        if let Some(&flow) = self.order.first() {
            self.credit[flow] += self.turn[flow];
        }
    }

    fn leave(&mut self, flow: usize) {
        let had_turn = self.order[0] == flow;
        self.credit[flow] = 0.0;
        self.order.retain(|&other| other != flow);
        if had_turn {
            self.begin();
        }
    }
}
