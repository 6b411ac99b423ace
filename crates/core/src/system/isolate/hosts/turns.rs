//! Turns at a host: its peers take turns, and so do the flows of each peer.
//!
//! All peers have equal weights, whatever the weights of their flows: they are hosts, and a heavy flow to a
//! server must not take the part of another host at that server.

use super::super::pairs::ENDS;
use super::{Hosts, SEATS};
use crate::packet::Packet;
use crate::schedule::drr::{Quanta, scaled};
use crate::units::Bytes;

/// A group that yields takes one turn in this many. Chosen: it leaves 16 of 17 parts to a competitor, and
/// still advances.
const TURN_IN: u8 = 16;

impl<P: Packet> Hosts<P> {
    /// The seat in turn at a host: in the group in turn, the seat that can pay for the packet at its head.
    ///
    /// Terminates: a quantum is at least the largest packet, so at most one group passes its turn on, besides
    /// at most [`TURN_IN`] that yield.
    pub(super) fn turn(&mut self, number: usize) -> Option<usize> {
        let quantum = scaled(self.largest());
        let mut passed = 0;
        loop {
            let group = self.hosts[number].round.front()?;
            let is_new = !self.hosts[number].in_turn;
            if is_new && passed < TURN_IN && self.passes(group) {
                passed += 1;
            } else {
                if is_new {
                    self.pairs.groups[group].deficit += quantum;
                    self.hosts[number].in_turn = true;
                }
                let seat = self.turn_in(group)?;
                let head = self.flows[seat / SEATS].queue.front(&self.packets)?;
                if scaled(head.packet.size()) <= self.pairs.groups[group].deficit {
                    return Some(seat);
                }
            }
            let host = &mut self.hosts[number];
            host.round.rotate(&mut self.pairs.groups);
            host.in_turn = false;
        }
    }

    /// The seat in turn in a group, which can pay for the packet at its head.
    ///
    /// Terminates for the same reason as `turn`.
    fn turn_in(&mut self, group: usize) -> Option<usize> {
        let largest = self.largest();
        let group = &mut self.pairs.groups[group];
        loop {
            let seat = group.round.front()?;
            let flow = &self.flows[seat / SEATS];
            if !group.in_turn {
                self.seats[seat].deficit += Quanta::new(largest, self.smallest_weight).of(flow.weight);
                group.in_turn = true;
            }
            let head = flow.queue.front(&self.packets)?;
            if scaled(head.packet.size()) <= self.seats[seat].deficit {
                return Some(seat);
            }
            group.round.rotate(&mut self.seats);
            group.in_turn = false;
        }
    }

    /// Whether `group` passes its present turn on.
    fn passes(&mut self, group: usize) -> bool {
        let yields = self.yields(group);
        let group = &mut self.pairs.groups[group];
        let passes = yields && group.passed < TURN_IN - 1;
        group.passed = if passes { group.passed + 1 } else { 0 };
        passes
    }

    /// Whether `group` yields to others at its host because its peer also has a part of the link, so that it
    /// would have two: its packets belonged here when they arrived, and later ones belong to the peer.
    fn yields(&self, group: usize) -> bool {
        let (host, peer) = self.pairs.hosts(group);
        let [host, peer] = [host, peer].map(|host| &self.hosts[host].round);
        if host.is_single() {
            return false;
        }
        if self.owner(group / ENDS) == group {
            // The other packets of the pair belong to the peer, and are all that it has.
            peer.is_single() && peer.front() == Some(group ^ 1)
        } else {
            !peer.is_empty()
        }
    }

    /// The size of the largest packet so far.
    fn largest(&self) -> Bytes {
        self.sizes.map_or(Bytes::ZERO, |(_, largest)| largest)
    }
}
