//! Frame buffers: a bounded number of one size, allocated once.
//!
//! Each is taken by an owner, the port that its frame comes in by. An owner can hold at most as many as are left to all, the
//! dynamic threshold of A. K. Choudhury and E. L. Hahne, "Dynamic queue length thresholds for shared-memory packet
//! switches" (1998): one queue without a limit fills half of them, two a third each, and others still get some.
//!
//! Memory is taken when a buffer is first used: the system hands out zeroed pages on touch, and the buffer
//! given back last is taken next.

use std::ops::Range;

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

    /// A buffer for `owner`; none if there is no [room](Self::room).
    pub fn take(&mut self, owner: u16) -> Option<BufferId> {
        if self.room(owner) == 0 {
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

    /// How many more there are for `owner`, if it alone takes some: half of what is left beyond what it holds, rounded up.
    #[must_use]
    pub fn room(&self, owner: u16) -> u32 {
        let held = self.held.get(usize::from(owner)).copied().unwrap_or(0);
        (self.count - self.used()).saturating_sub(held).div_ceil(2)
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

    /// Where these bytes of a buffer are, for a system call that is given many of them. Nothing is borrowed: it holds until
    /// bytes of the pool are next referred to.
    ///
    /// # Panics
    /// If the buffer has no such bytes: it is of another pool, or the range of another frame.
    pub fn pointer(&mut self, buffer: BufferId, range: &Range<usize>) -> *mut u8 {
        let start = buffer.0 as usize * self.each;
        let is_there = range.start <= range.end && range.end <= self.each && start < self.memory.len();
        assert!(is_there, "bytes {range:?} of {buffer:?}");
        self.memory.as_mut_ptr().wrapping_add(start + range.start)
    }

    /// The longest frame that a buffer holds.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.each - HEAD
    }

    /// Whether more than half are in use: ports should not keep spare ones.
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
    fn an_owner_can_hold_as_many_as_are_left() {
        let mut pool = Pool::new(6, 64);
        assert_eq!(pool.room(0), 3);
        let mine = [0; 3].map(|owner| pool.take(owner).unwrap());
        assert_eq!((pool.take(0), pool.room(7)), (None, 2));
        let others = [pool.take(7).unwrap(), pool.take(7).unwrap()];
        // One is left, for an owner that holds none.
        assert_eq!((pool.take(0), pool.take(7), pool.room(1)), (None, None, 1));
        pool.give_back(mine[0]);
        others.into_iter().for_each(|buffer| pool.give_back(buffer));
        assert_eq!((pool.used(), pool.room(0)), (2, 1));
    }

    #[test]
    #[should_panic(expected = "bytes 0..200 of BufferId(0)")]
    fn there_is_no_pointer_to_bytes_that_a_buffer_lacks() {
        let mut pool = Pool::new(2, 64);
        let buffer = pool.take(0).unwrap();
        pool.pointer(buffer, &(0..200));
    }
}
