//! Whose turn it is at a host: its peers take turns, and so do the flows of each.
//!
//! All peers weigh alike, whatever their flows weigh: they are hosts, and a heavy flow to a server must not take the part
//! that another host has of that server.

use super::super::pairs::ENDS;
use super::{Hosts, SEATS};
use crate::packet::Packet;
use crate::schedule::drr::{Quanta, scaled};
use crate::units::Bytes;

/// A group that yields takes one turn in this many. Chosen: it leaves 16 parts of 17 to one other, and still gets on.
const TURN_IN: u8 = 16;

impl<P: Packet> Hosts<P> {
    /// The seat whose turn it is at a host: that of the group whose turn it is, which can pay for the packet at its head.
    ///
    /// Terminates: a quantum is at least the largest packet, so at most one group passes its turn on, besides [`TURN_IN`] at
    /// most that yield.
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

    /// The seat whose turn it is in a group, and that can pay for the packet at its head.
    ///
    /// Terminates, as `turn` does.
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

    /// Whether `group` passes the turn on that it has now.
    fn passes(&mut self, group: usize) -> bool {
        let yields = self.yields(group);
        let group = &mut self.pairs.groups[group];
        let passes = yields && group.passed < TURN_IN - 1;
        group.passed = if passes { group.passed + 1 } else { 0 };
        passes
    }

    /// Whether `group` yields to others at its host, since its peer has a part of the link meanwhile and so would have two:
    /// its packets belonged here when they came, and others have come since.
    fn yields(&self, group: usize) -> bool {
        let (host, peer) = self.pairs.hosts(group);
        let [host, peer] = [host, peer].map(|host| &self.hosts[host].round);
        if host.is_single() {
            return false;
        }
        if self.owner(group / ENDS) == group {
            // The others of the pair belonged to the peer, and are all that it has.
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
