//! Packets between the ends of a link.

use apportion_core::units::Time;

use crate::packet::Packet;

/// A packet on a wire.
#[derive(Clone, Copy, Debug)]
pub struct OnWire {
    /// The start of its transmission.
    pub begun: Time,
    /// The arrival time.
    pub at: Time,
    /// The packet.
    pub packet: Packet,
}

/// The packets on a wire in the order of their arrivals: a ring whose size is a power of two, so that an
/// index takes one operation.
#[derive(Debug, Default)]
pub struct Wire {
    /// Empty before the first packet.
    ring: Vec<OnWire>,
    first: u32,
    packets: u32,
}

impl Wire {
    /// The capacity for a wire that has had a packet. Chosen: two cache lines, since most access links have
    /// one packet or two.
    const LEAST: usize = 4;

    /// Whether there are no packets.
    #[must_use]
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    #[inline(always)]
    fn place(&self, packets: u32) -> usize {
        self.first.wrapping_add(packets) as usize & self.ring.len().wrapping_sub(1)
    }

    /// The packet that arrives after `others` others.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, others: u32) -> Option<&OnWire> {
        if others < self.packets { self.ring.get(self.place(others)) } else { None }
    }

    /// Adds a packet that arrives after all others.
    #[inline(always)]
    pub fn push(&mut self, sent: OnWire) {
        if self.packets as usize == self.ring.len() {
            self.grow(sent);
        }
        let place = self.place(self.packets);
        self.ring[place] = sent;
        self.packets += 1;
    }

    /// Removes the packet that arrives next.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<OnWire> {
        let first = *self.get(0)?;
        self.first = self.first.wrapping_add(1);
        self.packets -= 1;
        Some(first)
    }

    /// Adds a packet after all that arrive no later, by time and then by the start of their transmission.
    pub fn insert(&mut self, sent: OnWire) {
        self.push(sent);
        let mut at = self.packets - 1;
        while at > 0 {
            let (place, before) = (self.place(at), self.place(at - 1));
            let other = self.ring[before];
            if (other.at, other.begun) <= (sent.at, sent.begun) {
                return;
            }
            (self.ring[place], self.ring[before]) = (other, sent);
            at -= 1;
        }
    }

    /// All packets, the one that arrives last first.
    pub fn last_to_first(&self) -> impl Iterator<Item = &OnWire> {
        (0..self.packets).rev().filter_map(|others| self.get(others))
    }

    /// Grows the ring, filled with copies of `sent` as placeholders.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, sent: OnWire) {
        let (first, room) = (self.place(0), (2 * self.ring.len()).max(Self::LEAST));
        if !self.ring.is_empty() {
            self.ring.rotate_left(first);
        }
        self.ring.resize(room, sent);
        self.first = 0;
    }
}

/// A packet whose transmission over `link` has begun. In this order of fields it is copied by whole words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HandedOver {
    /// The packet.
    pub sent: OnWire,
    pub link: u32,
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use apportion_core::packet::{Ecn, FlowId};
    use apportion_core::units::Bytes;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::*;
    use crate::packet::Direction;

    fn sent(at: u64, begun: u64, body: u32) -> OnWire {
        let packet = Packet::new(body, FlowId(0), 0, Bytes::new(1), Ecn::NotEct, Direction::Forward);
        OnWire { begun: Time::from_nanos(begun), at: Time::from_nanos(at), packet }
    }

    fn bodies<'a>(packets: impl Iterator<Item = &'a OnWire>) -> Vec<u32> {
        packets.map(|sent| sent.packet.body()).collect()
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Against a list, through several sizes of the ring.
        #[test]
        fn packets_arrive_in_order(steps in proptest::collection::vec((0u32..5, 0u64..4, 0u64..2), 1..300)) {
            let (mut wire, mut list) = (Wire::default(), VecDeque::new());
            for (number, (step, at, begun)) in (0..).zip(steps) {
                let new = sent(at, begun, number);
                match step {
                    0 | 1 => {
                        wire.push(new);
                        list.push_back(new);
                    }
                    2 => {
                        // Packets on the wire are in order where packets overtake.
                        list.make_contiguous().sort_by_key(|sent| (sent.at, sent.begun));
                        wire = Wire::default();
                        list.iter().for_each(|&sent| wire.push(sent));
                        let place = list.partition_point(|other| (other.at, other.begun) <= (new.at, new.begun));
                        list.insert(place, new);
                        wire.insert(new);
                    }
                    _ => {
                        let (ours, theirs) = (wire.pop(), list.pop_front());
                        prop_assert_eq!(bodies(ours.iter()), bodies(theirs.iter()));
                    }
                }
                prop_assert_eq!(bodies(wire.last_to_first()), bodies(list.iter().rev()));
                prop_assert_eq!(bodies(wire.get(0).into_iter()), bodies(list.front().into_iter()));
                prop_assert_eq!(wire.is_empty(), list.is_empty());
            }
        }
    }
}
