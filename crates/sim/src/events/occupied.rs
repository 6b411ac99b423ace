//! The occupied slots of a circular array.

/// A bit for each slot.
#[derive(Debug)]
pub(super) struct Occupied {
    words: Vec<u64>,
    count: usize,
}

impl Occupied {
    /// `slots` free slots, a power of two and at least 64.
    pub(super) fn new(slots: usize) -> Self {
        debug_assert!(slots.is_power_of_two() && slots >= 64);
        Self { words: vec![0; slots / 64], count: 0 }
    }

    /// Marks a free slot as occupied.
    #[inline(always)]
    pub(super) fn insert(&mut self, slot: usize) {
        debug_assert!(self.words[slot / 64] & 1 << (slot % 64) == 0);
        self.words[slot / 64] |= 1 << (slot % 64);
        self.count += 1;
    }

    /// Marks a slot as free.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: usize) {
        debug_assert!(self.words[slot / 64] & 1 << (slot % 64) != 0);
        self.words[slot / 64] &= !(1 << (slot % 64));
        self.count -= 1;
    }

    /// The first slot from `slot` on, around the array; `None` if all are free.
    #[inline]
    pub(super) fn next(&self, slot: usize) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        let mut word = slot / 64;
        let mut bits = self.words[word] & (!0 << (slot % 64));
        // Terminates: some slot is occupied. The word of `slot` is visited again for the slots before its
        // bit.
        while bits == 0 {
            word = (word + 1) & (self.words.len() - 1);
            bits = self.words[word];
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}
