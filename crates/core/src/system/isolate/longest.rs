//! The longest of a host's flows: a heap of seats, the one with the most bytes per weight first.
//!
//! Cost: O(log seats) per change, O(1) while all are equally long. A heap that shrinks gives its memory back, so that
//! all heaps together take at most four places for each seat that is taken.

use alloc::vec::Vec;

use super::hosts::Seat;

/// Places that an empty heap keeps. Chosen: most hosts have no more flows, and need not allocate.
const KEPT: usize = 16;

/// Seats by their length, in a heap; each knows its place.
#[derive(Clone, Debug)]
pub(super) struct Longest(Vec<u32>);

impl Longest {
    pub const EMPTY: Self = Self(Vec::new());

    /// The longest; none if there is none. Of equally long ones, any.
    pub fn first(&self) -> Option<usize> {
        self.0.first().map(|&seat| seat as usize)
    }

    /// The memory of its places.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<u32>()
    }

    pub fn insert(&mut self, seats: &mut [Seat], seat: usize) {
        seats[seat].place = self.0.len() as u32;
        self.0.push(seat as u32);
        self.rise(seats, self.0.len() - 1);
    }

    /// The length of `seat`, which is in, has changed.
    pub fn update(&mut self, seats: &mut [Seat], seat: usize) {
        let place = self.rise(seats, seats[seat].place as usize);
        self.sink(seats, place);
    }

    /// Takes `seat`, which is in, out.
    pub fn remove(&mut self, seats: &mut [Seat], seat: usize) {
        let place = seats[seat].place as usize;
        self.0.swap_remove(place);
        if let Some(&moved) = self.0.get(place) {
            seats[moved as usize].place = place as u32;
            self.update(seats, moved as usize);
        }
        if self.0.capacity() > KEPT && self.0.len() < self.0.capacity() / 4 {
            self.0.shrink_to(KEPT.max(self.0.capacity() / 2));
        }
    }

    fn is_longer(&self, seats: &[Seat], a: usize, b: usize) -> bool {
        seats[self.0[a] as usize].length > seats[self.0[b] as usize].length
    }

    fn swap(&mut self, seats: &mut [Seat], a: usize, b: usize) {
        self.0.swap(a, b);
        for place in [a, b] {
            seats[self.0[place] as usize].place = place as u32;
        }
    }

    /// Moves what is at `place` up as far as it belongs, and says where it is then.
    fn rise(&mut self, seats: &mut [Seat], mut place: usize) -> usize {
        while place > 0 && self.is_longer(seats, place, (place - 1) / 2) {
            self.swap(seats, place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
        place
    }

    /// Moves what is at `place` down as far as it belongs.
    fn sink(&mut self, seats: &mut [Seat], mut place: usize) {
        loop {
            let below = (2 * place + 1..self.0.len()).take(2);
            let longer = below
                .fold(place, |best, other| if self.is_longer(seats, other, best) { other } else { best });
            if longer == place {
                return;
            }
            self.swap(seats, place, longer);
            place = longer;
        }
    }
}
