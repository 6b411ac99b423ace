//! Buffers for frames: a bounded number of one size, made once.
//!
//! Each is taken by an owner, the port that its frame comes in by, and no owner can hold more than half of
//! them: a queue without a limit that fills in one direction leaves the other its way.
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
    /// Who took each buffer last; those from here on were never used so far.
    owners: Vec<u16>,
    /// How many each owner holds.
    held: Vec<u32>,
    count: u32,
}

impl Pool {
    /// At most `count` buffers for frames of at most `longest` bytes.
    #[must_use]
    pub fn new(count: u32, longest: usize) -> Self {
        // Whole cache lines.
        let each = (HEAD + longest).next_multiple_of(64);
        let memory = vec![0; each * count as usize];
        Self { memory, each, free: Vec::new(), owners: Vec::new(), held: Vec::new(), count }
    }

    /// A buffer for `owner`; none if all are in use, or it holds half of them.
    pub fn take(&mut self, owner: u16) -> Option<BufferId> {
        if !self.has_room(owner) {
            return None;
        }
        let buffer = self.free.pop().unwrap_or_else(|| {
            self.owners.push(owner);
            BufferId(self.owners.len() as u32 - 1)
        });
        self.owners[buffer.0 as usize] = owner;
        if self.held.len() <= usize::from(owner) {
            self.held.resize(usize::from(owner) + 1, 0);
        }
        self.held[usize::from(owner)] += 1;
        Some(buffer)
    }

    /// Whether there is a buffer for `owner`.
    #[must_use]
    pub fn has_room(&self, owner: u16) -> bool {
        let held = self.held.get(usize::from(owner)).copied().unwrap_or(0);
        self.used() < self.count && held < self.count.div_ceil(2)
    }

    /// Takes a buffer back. Each that was taken is given back once.
    pub fn give_back(&mut self, buffer: BufferId) {
        debug_assert!(self.free.len() < self.owners.len());
        self.held[usize::from(self.owners[buffer.0 as usize])] -= 1;
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

    /// Where the bytes of a buffer are, [`HEAD`] and [`longest`](Self::longest) of them. What is pointed to stays valid until
    /// the pool is gone; nothing is borrowed, so that a system call can be given many of them.
    pub fn pointer(&mut self, buffer: BufferId) -> *mut u8 {
        self.memory.as_mut_ptr().wrapping_add(buffer.0 as usize * self.each)
    }

    /// The longest frame that a buffer holds.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.each - HEAD
    }

    /// Whether more than half are in use: nobody should keep one for later.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        self.used() > self.count / 2
    }

    /// Buffers in use.
    #[must_use]
    pub fn used(&self) -> u32 {
        (self.owners.len() - self.free.len()) as u32
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
        let (a, b) = (pool.take(0).unwrap(), pool.take(1).unwrap());
        assert_eq!((pool.take(2), pool.used()), (None, 2));
        pool.bytes_mut(a).fill(1);
        pool.bytes_mut(b).fill(2);
        assert!(pool.bytes(a).iter().all(|byte| *byte == 1));
        pool.give_back(a);
        assert_eq!((pool.used(), pool.take(2)), (1, Some(a)));
    }

    #[test]
    fn an_owner_can_hold_half() {
        let mut pool = Pool::new(4, 64);
        let mine = [pool.take(0).unwrap(), pool.take(0).unwrap()];
        assert_eq!(pool.take(0), None);
        assert!(pool.take(7).is_some());
        pool.give_back(mine[0]);
        assert_eq!(pool.take(0), Some(mine[0]));
    }
}
