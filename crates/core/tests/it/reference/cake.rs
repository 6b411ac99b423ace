//! CAKE's turns: flows and hosts of one tin, one round at a time, without hashing, COBALT and shaper.

/// A flow.
#[derive(Clone, Debug)]
struct Flow {
    source: usize,
    destination: usize,
    /// Packets as `(id, size)`.
    queue: Vec<(u32, u64)>,
    /// The credit in 1/65536 of a byte.
    credits: i64,
    /// The credit for each round that it waits.
    turn: i64,
    /// Whether it can send in this round.
    is_ready: bool,
}

/// The flows and their rounds.
#[derive(Clone, Debug)]
pub struct Cake {
    quantum: u64,
    flows: Vec<Flow>,
    /// New and old flows, those deferred last at the end.
    new: Vec<usize>,
    old: Vec<usize>,
}

impl Cake {
    /// No packets; flows with the numbers of their sources and destinations.
    #[must_use]
    pub fn new(quantum: u64, hosts: &[(usize, usize)]) -> Self {
        let flow = |&(source, destination)| Flow {
            source,
            destination,
            queue: Vec::new(),
            credits: 0,
            turn: 0,
            is_ready: false,
        };
        Self { quantum, flows: hosts.iter().map(flow).collect(), new: Vec::new(), old: Vec::new() }
    }

    /// The quantum divided by the number of busy flows at the end that has more.
    fn turn(&self, flow: usize) -> i64 {
        let busy = || self.new.iter().chain(&self.old).map(|&other| &self.flows[other]);
        let sources = busy().filter(|other| other.source == self.flows[flow].source).count();
        let destinations = busy().filter(|other| other.destination == self.flows[flow].destination).count();
        (self.quantum * 65_536 / sources.max(destinations) as u64) as i64
    }

    /// A packet arrives.
    pub fn enqueue(&mut self, flow: usize, id: u32, size: u64) {
        self.flows[flow].queue.push((id, size));
        if !self.new.contains(&flow) && !self.old.contains(&flow) {
            self.new.push(flow);
            self.flows[flow].credits = self.turn(flow);
        }
    }

    fn put_off(&mut self, flow: usize, turn: i64) {
        self.new.retain(|&other| other != flow);
        self.old.retain(|&other| other != flow);
        self.old.push(flow);
        self.flows[flow].turn = turn;
        self.flows[flow].is_ready = false;
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        loop {
            let ready = self.old.iter().find(|&&flow| self.flows[flow].is_ready).copied();
            let Some(flow) = self.new.first().copied().or(ready) else {
                if self.old.is_empty() {
                    return None;
                }
                for &flow in &self.old {
                    let flow = &mut self.flows[flow];
                    flow.credits += flow.turn;
                    flow.is_ready = flow.credits > 0;
                }
                continue;
            };
            if self.flows[flow].credits <= 0 {
                let turn = self.turn(flow);
                self.put_off(flow, turn);
            } else if !self.flows[flow].queue.is_empty() {
                let (id, size) = self.flows[flow].queue.remove(0);
                self.flows[flow].credits -= size as i64 * 65_536;
                return Some(id);
            } else if self.new.contains(&flow) {
                // The flow passes through the old ones once, with its credit.
                self.put_off(flow, 0);
            } else {
                self.old.retain(|&other| other != flow);
            }
        }
    }
}
