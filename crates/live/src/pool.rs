//! Buffers for frames: a bounded number of one size, made once.
//!
//! Memory is taken when a buffer is first used: the system hands out zeroed pages on touch, and the buffer
//! given back last is taken next.

/// Where the frame starts in a buffer. Before it lie the header that packet sockets put before a frame and
/// room for a VLAN tag that they took out.
pub const HEAD: usize = 16;

/// The number of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferId(u32);

/// The buffers.
#[derive(Debug)]
pub struct Pool {
    memory: Vec<u8>,
    each: usize,
    /// Given back, the last one last.
    free: Vec<BufferId>,
    /// Never used so far: all from this number on.
    fresh: u32,
    count: u32,
}

impl Pool {
    /// At most `count` buffers for frames of at most `longest` bytes.
    #[must_use]
    pub fn new(count: u32, longest: usize) -> Self {
        // Whole cache lines.
        let each = (HEAD + longest).next_multiple_of(64);
        Self { memory: vec![0; each * count as usize], each, free: Vec::new(), fresh: 0, count }
    }

    /// A buffer; none if all are in use.
    pub fn take(&mut self) -> Option<BufferId> {
        if let Some(buffer) = self.free.pop() {
            return Some(buffer);
        }
        let buffer = (self.fresh < self.count).then_some(BufferId(self.fresh))?;
        self.fresh += 1;
        Some(buffer)
    }

    /// Takes a buffer back. Each that was taken is given back once.
    pub fn give_back(&mut self, buffer: BufferId) {
        debug_assert!(buffer.0 < self.fresh && self.free.len() < self.fresh as usize);
        self.free.push(buffer);
    }

    /// The bytes of a buffer.
    #[must_use]
    pub fn bytes(&self, buffer: BufferId) -> &[u8] {
        let start = buffer.0 as usize * self.each;
        &self.memory[start..start + self.each]
    }

    /// The bytes of a buffer.
    pub fn bytes_mut(&mut self, buffer: BufferId) -> &mut [u8] {
        let start = buffer.0 as usize * self.each;
        &mut self.memory[start..start + self.each]
    }

    /// The longest frame that a buffer holds.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.each - HEAD
    }

    /// Whether all are in use.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.used() == self.count
    }

    /// Whether more than half are in use: nobody should keep one for later.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        self.used() > self.count / 2
    }

    /// Buffers in use.
    #[must_use]
    pub fn used(&self) -> u32 {
        // As many at most as there are fresh ones.
        self.fresh - self.free.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_bounded_and_come_back() {
        let mut pool = Pool::new(2, 1_518);
        // 16 + 1518 = 1534, rounded up to 24 lines of 64.
        assert_eq!(pool.longest(), 24 * 64 - HEAD);
        let (a, b) = (pool.take().unwrap(), pool.take().unwrap());
        assert_eq!((pool.take(), pool.used()), (None, 2));
        pool.bytes_mut(a).fill(1);
        pool.bytes_mut(b).fill(2);
        assert!(pool.bytes(a).iter().all(|byte| *byte == 1));
        pool.give_back(a);
        assert_eq!((pool.used(), pool.take()), (1, Some(a)));
    }
}
