//! AFQ: Sharma, Liu, Atreya, Krishnamurthy 2018, section 3, with a dynamic threshold, an exact bid for each flow and a map for the calendar.

use std::collections::BTreeMap;

/// The state. Sizes, bids and BpR are whole numbers of one unit.
#[derive(Clone, Debug, Default)]
pub struct Afq {
    bytes_per_round: u64,
    queues: u64,
    limit: usize,
    full: u64,
    /// The start of the round in service.
    start: u64,
    /// Bids by flow.
    bid: BTreeMap<u32, u64>,
    /// Packets by the start of their round.
    calendar: BTreeMap<u64, Vec<u32>>,
}

impl Afq {
    /// No packets. All queues together hold `limit` of them; each counts as `full` in the test that a flow
    /// leaves as much free as it holds.
    #[must_use]
    pub fn new(queues: u64, bytes_per_round: u64, limit: usize, full: u64) -> Self {
        Self { bytes_per_round, queues, limit, full, ..Self::default() }
    }

    /// A packet arrives. Returns whether it is admitted.
    pub fn enqueue(&mut self, flow: u32, id: u32, size: u64) -> bool {
        let bid = self.bid.get(&flow).copied().unwrap_or(0).max(self.start);
        let held: usize = self.calendar.values().map(Vec::len).sum();
        let free = (self.limit - held) as u64 * self.full;
        let is_too_far = |start: u64| {
            let ahead = bid - start;
            ahead / self.bytes_per_round >= self.queues || ahead > free
        };
        // Nothing waits before it.
        if held == 0 && is_too_far(self.start) {
            self.start = bid;
        } else if held == self.limit || is_too_far(self.start) {
            return false;
        }
        self.bid.insert(flow, bid + size);
        let rounds = (bid - self.start) / self.bytes_per_round;
        self.calendar.entry(self.start + rounds * self.bytes_per_round).or_default().push(id);
        true
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        let (&start, packets) = self.calendar.iter_mut().next()?;
        self.start = start;
        let id = packets.remove(0);
        if packets.is_empty() {
            self.calendar.remove(&start);
        }
        Some(id)
    }
}
