//! RR, round robin: flows take turns, and each turn grants one packet.
//!
//! Nagle, "On packet switches with infinite storage", RFC 970, section 5. A flow of large packets gets more
//! than its share of the bytes; [`drr`](super::drr) corrects that.
//!
//! Weighted: the flow with the smallest weight sends one packet a turn, others proportionally more, and the
//! fraction of a packet is kept for the next turn. Weights 2 and 3 grant 1 and 1.5 packets a turn: the second
//! flow sends one and two packets alternately. This is deficit round robin in packets instead of bytes, so
//! its rules for a flow that runs empty or loses a packet to push-out, and its bound, hold here: over any
//! interval in which two flows are backlogged, their packets per weight, in units of the smallest, differ by
//! less than three.
//!
//! Cost: O(1) per packet, at most 64 bytes per flow. Parameters: none.

use super::drr::{Charge, Quanta, Turns, scaled};
use crate::packet::Packet;
use crate::param::{Entry, Heeds, Inside, Role, Shares, Traits};
use crate::units::{Bytes, Weight};

/// Round robin in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "rr",
    role: Role::Scheduler,
    summary: "Round robin: backlogged flows take turns of one packet times their weight.",
    reference: "Nagle 1985, RFC 970",
    cost: "O(1) per packet, at most 64 bytes per flow",
    params: &[],
    traits: Traits {
        heeds: &[Heeds::Weight],
        inside: Inside::Part,
        shares: Shares::Given,
        limits: "It divides by weight only if the buffer holds a round, which is a packet for the smallest weight \
            and in proportion for the others: raise `limit`.",
        ..Traits::NONE
    },
};

/// The charge of a packet is one packet, whatever its size.
#[derive(Clone, Copy, Debug)]
pub enum ByPackets {}

/// The charge of a packet. Chosen: [`Quanta`] grants at least one unit a turn, so a weight may fall to a
/// 1024th of the initial smallest weight before this minimum applies.
const PACKET: Bytes = Bytes::new(1_024);

impl Charge for ByPackets {
    fn of<P: Packet>(_: &P) -> u64 {
        scaled(PACKET)
    }
}

/// A round robin over flows.
pub type RoundRobin<P> = Turns<P, ByPackets>;

impl<P: Packet> RoundRobin<P> {
    /// An empty round in which a flow of weight `smallest` sends one packet a turn.
    #[must_use]
    pub fn new(smallest: Weight) -> Self {
        Self::with(Quanta::new(PACKET, smallest))
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::flow_setting::FlowSetting;
    use crate::packet::FlowId;
    use crate::packet::SimplePacket;
    use crate::schedule::{End, Scheduler};
    use crate::testing::packet;
    use crate::units::Time;

    /// A scheduler with flows of these weights, each with twenty packets of a size of its own.
    fn round(weights: &[f64]) -> RoundRobin<SimplePacket> {
        let weight = |w| Weight::new(w).unwrap();
        let smallest = weights.iter().copied().fold(f64::INFINITY, f64::min);
        let mut round = RoundRobin::new(weight(smallest));
        for (flow, &w) in (0..).zip(weights) {
            round.set_flow(FlowId(flow), FlowSetting::Weight(weight(w)));
        }
        for id in 0..20 {
            for flow in 0..weights.len() as u32 {
                round.push(Time::ZERO, packet(id, flow, 40 + 700 * u64::from(flow)));
            }
        }
        round
    }

    fn flows(round: &mut RoundRobin<SimplePacket>, n: usize) -> Vec<u32> {
        (0..n).filter_map(|_| round.pop(Time::ZERO)).map(|queued| queued.packet.flow.0).collect()
    }

    #[test]
    fn turns_are_packets_whatever_their_size() {
        assert_eq!(flows(&mut round(&[1.0; 3]), 9), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    }

    #[test]
    fn weights_are_packets_a_turn_and_a_fraction_is_kept() {
        // 3 / 1 = 3 packets a turn.
        assert_eq!(flows(&mut round(&[1.0, 3.0]), 8), [0, 1, 1, 1, 0, 1, 1, 1]);
        // 3 / 2 = 1.5: one packet and 0.5 kept, then 0.5 + 1.5 = 2.
        assert_eq!(flows(&mut round(&[2.0, 3.0]), 10), [0, 1, 0, 1, 1, 0, 1, 0, 1, 1]);
    }

    #[test]
    fn a_packet_pushed_out_costs_no_turn() {
        let mut round = round(&[1.0, 1.0]);
        assert!(round.push_out(Time::ZERO, FlowId(0), End::Head).is_some());
        assert_eq!(flows(&mut round, 4), [0, 1, 0, 1]);
    }
}
