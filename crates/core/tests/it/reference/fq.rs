//! FQ: tc-fq(8), after Dumazet 2013, with a deficit bucket for each flow instead of the time at which it may
//! send.

/// A flow. Its bucket is in nanoseconds of `maxrate`.
#[derive(Clone, Debug, Default)]
struct Flow {
    packets: Vec<(u32, i64)>,
    credits: i64,
    bucket: i64,
    filled: i64,
}

/// The state.
#[derive(Clone, Debug)]
pub struct Fq {
    quanta: Vec<i64>,
    flow_limit: usize,
    limit: usize,
    /// Nanoseconds for a byte, and the depth of a bucket.
    maxrate: Option<(i64, i64)>,
    flows: Vec<Flow>,
    new: Vec<usize>,
    old: Vec<usize>,
    held_back: Vec<usize>,
}

impl Fq {
    /// Flows with these quanta, over a buffer of `limit` packets. `maxrate` is the nanoseconds for a byte,
    /// and the bytes that a flow may catch up.
    #[must_use]
    pub fn new(
        quanta: &[i64],
        initial: i64,
        flow_limit: usize,
        limit: usize,
        maxrate: Option<(i64, i64)>,
    ) -> Self {
        Self {
            quanta: quanta.to_vec(),
            flow_limit,
            limit,
            maxrate: maxrate.map(|(per_byte, bytes)| (per_byte, per_byte * bytes)),
            flows: vec![Flow { credits: initial, ..Flow::default() }; quanta.len()],
            new: Vec::new(),
            old: Vec::new(),
            held_back: Vec::new(),
        }
    }

    /// The backlog beyond the limit.
    #[must_use]
    pub fn excess(&self) -> usize {
        let held: usize = self.flows.iter().map(|flow| flow.packets.len()).sum();
        held.saturating_sub(self.limit)
    }

    /// A packet is pushed out of an exceeded buffer. Returns whether it is the last of a flow that holds most
    /// for its weight.
    pub fn push_out(&mut self, id: u32) -> bool {
        let is_last = |flow: &Flow| flow.packets.last().is_some_and(|&(last, _)| last == id);
        let Some(flow) = self.flows.iter().position(is_last) else { return false };
        let held = |flow: usize| self.flows[flow].packets.len() as i64;
        let is_longest = (0..self.flows.len())
            .all(|other| held(other) * self.quanta[flow] <= held(flow) * self.quanta[other]);
        self.flows[flow].packets.pop();
        if self.flows[flow].packets.is_empty() {
            self.held_back.retain(|&other| other != flow);
        }
        is_longest
    }

    /// A packet arrives. Returns whether it is admitted; the buffer may then be exceeded.
    pub fn enqueue(&mut self, flow: usize, id: u32, size: i64) -> bool {
        let least = self.quanta.iter().min().copied().unwrap_or(1);
        let most = self.flow_limit as i64 * (self.quanta[flow] / least);
        if self.flows[flow].packets.len() as i64 == most {
            return false;
        }
        self.flows[flow].packets.push((id, size));
        if ![&self.new, &self.old, &self.held_back].into_iter().any(|list| list.contains(&flow)) {
            self.flows[flow].credits = self.flows[flow].credits.max(self.quanta[flow]);
            self.new.push(flow);
        }
        true
    }

    /// The time at which the bucket of a flow is no longer below zero.
    fn due(&self, flow: usize) -> i64 {
        self.flows[flow].filled - self.flows[flow].bucket
    }

    /// The next packet at `now`, in nanoseconds.
    pub fn dequeue(&mut self, now: i64) -> Option<u32> {
        let mut due: Vec<usize> =
            self.held_back.iter().copied().filter(|&flow| self.due(flow) <= now).collect();
        due.sort_by_key(|&flow| (self.due(flow), flow));
        self.held_back.retain(|flow| !due.contains(flow));
        self.old.extend(due);
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let flow = *list.first()?;
            if self.flows[flow].packets.is_empty() {
                list.remove(0);
                let owes = self.flows[flow].credits < 0;
                if owes && !is_new {
                    self.flows[flow].credits += self.quanta[flow];
                }
                if owes || is_new {
                    self.old.push(flow);
                }
            } else if self.maxrate.is_some() && self.flows[flow].filled - self.flows[flow].bucket > now {
                list.remove(0);
                self.held_back.push(flow);
            } else if self.flows[flow].credits <= 0 {
                list.remove(0);
                self.flows[flow].credits += self.quanta[flow];
                self.old.push(flow);
            } else {
                return Some(self.send(now, flow));
            }
        }
    }

    fn send(&mut self, now: i64, flow: usize) -> u32 {
        let flow = &mut self.flows[flow];
        let (id, size) = flow.packets.remove(0);
        flow.credits -= size;
        if let Some((per_byte, most)) = self.maxrate {
            flow.bucket = (flow.bucket + now - flow.filled).min(most) - per_byte * size;
            flow.filled = now;
        }
        id
    }

    /// The time at which a held back flow may send, if no other has a packet.
    #[must_use]
    pub fn wakeup(&self) -> Option<i64> {
        let waits = self.new.is_empty() && self.old.is_empty();
        self.held_back.iter().filter(|_| waits).map(|&flow| self.due(flow)).min()
    }
}
