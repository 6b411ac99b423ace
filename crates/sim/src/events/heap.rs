//! A heap of keys.

use super::key::NOTHING;

/// A 4-ary min-heap of keys: half as deep as a binary one, and four children share a cache line.
#[derive(Debug)]
pub(super) struct Heap {
    keys: Vec<u128>,
    /// The smallest key; [`NOTHING`] if there is none.
    pub(super) first: u128,
}

impl Heap {
    const ARITY: usize = 4;

    pub(super) const fn new() -> Self {
        Self { keys: Vec::new(), first: NOTHING }
    }

    #[inline(never)]
    pub(super) fn push(&mut self, key: u128) {
        self.first = self.first.min(key);
        let mut hole = self.keys.len();
        self.keys.push(key);
        while hole > 0 {
            let parent = (hole - 1) / Self::ARITY;
            if self.keys[parent] <= key {
                break;
            }
            self.keys[hole] = self.keys[parent];
            hole = parent;
        }
        self.keys[hole] = key;
    }

    pub(super) fn pop(&mut self) {
        let Some(last) = self.keys.pop() else { return };
        let len = self.keys.len();
        if len == 0 {
            self.first = NOTHING;
            return;
        }
        let mut hole = 0;
        loop {
            let first_child = hole * Self::ARITY + 1;
            if first_child >= len {
                break;
            }
            let end = (first_child + Self::ARITY).min(len);
            let mut least = first_child;
            for child in first_child + 1..end {
                if self.keys[child] < self.keys[least] {
                    least = child;
                }
            }
            if last <= self.keys[least] {
                break;
            }
            self.keys[hole] = self.keys[least];
            hole = least;
        }
        self.keys[hole] = last;
        self.first = self.keys[0];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn the_heap_sorts(keys in proptest::collection::vec(any::<u64>(), 0..300)) {
            let mut heap = Heap::new();
            for &key in &keys {
                heap.push(u128::from(key));
            }
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            for key in sorted {
                prop_assert_eq!(heap.first, u128::from(key));
                heap.pop();
            }
            prop_assert_eq!(heap.first, NOTHING);
        }
    }
}
