//! SFQ: McKenney 1990, with the bucket of each packet as an argument.

/// The state.
#[derive(Clone, Debug)]
pub struct Sfq {
    limit: usize,
    /// The packets by bucket.
    queue: Vec<Vec<u32>>,
    /// Buckets with packets; the first has its turn.
    round: Vec<usize>,
}

impl Sfq {
    /// No packets; all buckets together hold `limit` of them.
    #[must_use]
    pub fn new(buckets: usize, limit: usize) -> Self {
        Self { limit, queue: vec![Vec::new(); buckets], round: Vec::new() }
    }

    /// A packet arrives. Returns the packet that is lost, if any: among equally long buckets `preferred`, if
    /// it is the last of one.
    pub fn enqueue(&mut self, bucket: usize, id: u32, preferred: Option<u32>) -> Option<u32> {
        if self.queue[bucket].is_empty() {
            self.round.push(bucket);
        }
        self.queue[bucket].push(id);
        if self.queue.iter().map(Vec::len).sum::<usize>() <= self.limit {
            return None;
        }
        let most = self.queue.iter().map(Vec::len).max()?;
        let is_longest = |queue: &Vec<u32>| queue.len() == most;
        let is_preferred = |queue: &Vec<u32>| is_longest(queue) && queue.last().copied() == preferred;
        let longest = self.queue.iter().position(is_preferred).or(self.queue.iter().position(is_longest))?;
        let lost = self.queue[longest].pop();
        if self.queue[longest].is_empty() {
            self.round.retain(|&other| other != longest);
        }
        lost
    }

    /// The next packet.
    pub fn dequeue(&mut self) -> Option<u32> {
        if self.round.is_empty() {
            return None;
        }
        let bucket = self.round.remove(0);
        let id = self.queue[bucket].remove(0);
        if !self.queue[bucket].is_empty() {
            self.round.push(bucket);
        }
        Some(id)
    }
}
