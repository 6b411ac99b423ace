//! Frame buffers: a bounded number of one size, allocated once.
//!
//! An owner takes each buffer: the port by which its frame enters. An owner may hold at most as many as are
//! free for all, the dynamic threshold of A. K. Choudhury and E. L. Hahne, "Dynamic queue length thresholds
//! for shared-memory packet switches" (1998): one queue without a limit fills half of them, two fill a third
//! each, and others still get some.
//!
//! A buffer takes memory when it is first used: the system commits zeroed pages on touch, and the buffer
//! given back last is taken next.

use std::ops::Range;

/// Offset of the frame in a buffer. In front of it is room for the header that packet sockets put before a
/// frame, and for a VLAN tag that they took out.
pub const HEAD: usize = 16;

/// The number of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferId(u32);

/// The buffers.
#[derive(Debug)]
pub struct Pool {
    memory: Vec<u8>,
    each: usize,
    /// Free buffers, the one given back last at the end.
    free: Vec<BufferId>,
    /// The last owner of each buffer; buffers from here on have never been used.
    owners: Vec<u16>,
    /// Number of buffers of each owner.
    held: Vec<u32>,
    count: u32,
}

impl Pool {
    /// A pool of at most `count` buffers for frames of at most `longest` bytes.
    #[must_use]
    pub fn new(count: u32, longest: usize) -> Self {
        // Rounded to cache lines.
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

    /// Number of further buffers that `owner` could take, if it alone takes some: half of the free ones
    /// beyond those that it holds, rounded up.
    #[must_use]
    pub fn room(&self, owner: u16) -> u32 {
        let held = self.held.get(usize::from(owner)).copied().unwrap_or(0);
        (self.count - self.used()).saturating_sub(held).div_ceil(2)
    }

    /// Gives a buffer back. Each buffer taken must be given back once.
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

    /// A pointer to these bytes of a buffer, for a system call that takes many of them. Nothing is borrowed:
    /// the pointer is valid until bytes of the pool are next referenced.
    ///
    /// # Panics
    /// If the buffer has no such bytes, because it is of another pool, or the range of another frame.
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

    /// Whether more than half of the buffers are in use: ports should then keep no spare ones.
    #[must_use]
    pub fn is_scarce(&self) -> bool {
        self.used() > self.count / 2
    }

    /// Number of buffers in use.
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
        // One buffer is left, for an owner that holds none.
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
