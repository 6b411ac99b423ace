//! Strict priority.

/// The state: the packets of each priority, the highest first.
#[derive(Clone, Debug)]
pub struct Prio(Vec<Vec<u32>>, usize);

impl Prio {
    /// No packets; each priority holds `limit` of them.
    #[must_use]
    pub fn new(priorities: usize, limit: usize) -> Self {
        Self(vec![Vec::new(); priorities], limit)
    }

    /// A packet arrives. Returns whether it is kept.
    pub fn enqueue(&mut self, priority: usize, id: u32) -> bool {
        let is_kept = self.0[priority].len() < self.1;
        if is_kept {
            self.0[priority].push(id);
        }
        is_kept
    }

    /// The packet that is served.
    pub fn dequeue(&mut self) -> Option<u32> {
        let queue = self.0.iter_mut().find(|queue| !queue.is_empty())?;
        Some(queue.remove(0))
    }
}
