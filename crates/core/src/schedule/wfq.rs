//! WFQ, weighted fair queueing by the virtual time of a fluid (PGPS), and WF2Q, worst-case fair weighted fair
//! queueing.
//!
//! Demers, Keshav, Shenker, "Analysis and simulation of a fair queueing algorithm", SIGCOMM 1989; Parekh,
//! Gallager 1993 (`gps.rs`). Each packet has S = F of the flow's packet before it, or V at its arrival if that is
//! larger, and F = S + l/r. WFQ serves the smallest F. Bennett, Zhang, "WF2Q: worst-case fair weighted fair
//! queueing", INFOCOM 1996: WF2Q serves the smallest F among packets whose service has begun in the fluid, S <= V.
//!
//! Readings:
//! - V rises by the service of the link (`gps.rs`). While a packet is sent, the part that has left is the time
//!   since its beginning at the rate of the link, and at most the packet; what is missing is added when the link
//!   asks for the next one. A rate that is wrong or unknown thus puts the V of an arrival off by at most the packet
//!   in transmission, and no error stays.
//! - A packet that is pushed out is not charged. The packet behind a head that is pushed out starts where this one
//!   would have started, but not before it arrived.
//! - Equal tags: the lower flow number goes first. Tags are the integers of `tags.rs`.
//! - If no packet is eligible, which rounding and drops can cause, the smallest S is served.
//!
//! With both, a packet leaves at most L/C after the fluid has served it (Parekh, Gallager 1993, theorem 1). Ahead
//! of the fluid a flow can be by half of the number of flows, in packets, with WFQ, and by (1 - r_i/r) L_i with
//! WF2Q (Bennett, Zhang 1996, section 3 and theorem 1). [WF2Q+](super::wf2q_plus) has this bound without the fluid.
//!
//! Cost: O(log flows) per packet in the long run. Many flows may leave the fluid during one transmission, and that
//! packet pays for all of them. At most 133 bytes per flow: records of 32, allocated for up to twice as many flows,
//! and 23 for each of three trees; 24 bytes more for each packet. Parameters: none.

use super::gps::Gps;
use super::tags::Flows;
use super::{End, Queued, Scheduler};
use crate::flow_setting::FlowSetting;
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Heeds, Inside, Role, Shares, Traits};
use crate::queue::Backlog;
use crate::smallest::Smallest;
use crate::units::{Bytes, Rate, Time, Weight};

/// WFQ in the catalogue.
pub const WFQ: Entry = Entry {
    name: "wfq",
    role: Role::Scheduler,
    summary: "Weighted fair queueing: smallest finish of service in a fluid (GPS).",
    reference: "Demers, Keshav, Shenker 1989; Parekh, Gallager 1993",
    cost: "O(log flows) per packet in the long run, at most 133 bytes per flow",
    params: &[],
    traits: Traits {
        heeds: &[Heeds::Weight],
        inside: Inside::Part,
        shares: Shares::Given,
        limits: "Weights span a factor of 2^26. A flow of large weight may be ahead of its share by half as many packets \
            as there are flows, and then waits as long: use `wf2q` or `wf2q_plus`.",
        ..Traits::NONE
    },
};

/// WF2Q in the catalogue.
pub const WF2Q: Entry = Entry {
    name: "wf2q",
    summary: "WF2Q: smallest finish of service in a fluid (GPS), among packets whose service has begun there.",
    reference: "Bennett, Zhang 1996",
    traits: Traits { limits: "Weights span a factor of 2^26.", ..WFQ.traits },
    ..WFQ
};

/// Which packets may be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eligible {
    /// All: WFQ.
    All,
    /// Those whose service has begun in the fluid: WF2Q.
    Begun,
}

/// A packet and V at its arrival.
#[derive(Clone, Debug)]
struct Stamped<P> {
    queued: Queued<P>,
    came: u64,
}

impl<P: Packet> Packet for Stamped<P> {
    fn flow(&self) -> FlowId {
        self.queued.packet.flow()
    }

    fn size(&self) -> Bytes {
        self.queued.packet.size()
    }
}

/// The packet in transmission.
#[derive(Clone, Copy, Debug)]
struct Sending {
    since: Time,
    size: Bytes,
    /// Its work in the fluid.
    work: u128,
    /// The part of this work that the fluid has served.
    served: u128,
}

impl Sending {
    /// The work that has left at `now`.
    fn until(&self, now: Time, rate: Rate) -> u128 {
        let sent = u128::from(rate.as_bit()) * u128::from(now.since(self.since).as_nanos());
        let whole = u128::from(self.size.get()) * 8_000_000_000;
        if sent >= whole { self.work } else { self.work.saturating_mul(sent) / whole }
    }
}

/// WFQ or WF2Q over flows.
#[derive(Clone, Debug)]
pub struct Wfq<P> {
    eligible_are: Eligible,
    flows: Flows<Stamped<P>>,
    fluid: Gps,
    /// Backlogged flows that may be served, by F of their head.
    eligible: Smallest,
    /// Backlogged flows whose head has S > V, by this S.
    ahead: Smallest,
    sending: Option<Sending>,
    rate: Rate,
    /// The largest F of any packet served.
    latest: u64,
}

impl<P: Packet> Wfq<P> {
    /// An empty scheduler of a link of `rate`. `smallest` is the smallest weight of a flow.
    #[must_use]
    pub fn new(eligible_are: Eligible, smallest: Weight, rate: Rate) -> Self {
        Self {
            eligible_are,
            flows: Flows::new(smallest),
            fluid: Gps::new(),
            eligible: Smallest::new(),
            ahead: Smallest::new(),
            sending: None,
            rate,
            latest: 0,
        }
    }

    /// The fluid serves what has left of the packet in transmission; all of it without `now`.
    fn advance(&mut self, now: Option<Time>) {
        let Some(sending) = &mut self.sending else { return };
        let until = now.map_or(sending.work, |now| sending.until(now, self.rate));
        let more = until.saturating_sub(sending.served);
        sending.served += more;
        let flows = &mut self.flows;
        self.fluid.serve(more, |index| flows.get(index).share());
    }

    /// Gives the head of a flow its S and a place; an empty flow has none.
    fn place(&mut self, index: usize) {
        let came = self.flows.head(index).map_or(0, |head| head.packet.came);
        let flow = self.flows.get(index);
        flow.tag = flow.tag.max(came);
        let start = flow.tag;
        let may_begin = self.eligible_are == Eligible::All || start <= self.fluid.v();
        match self.flows.finish(index) {
            Some(finish) if may_begin => {
                self.ahead.remove(index);
                return self.eligible.set(index, finish);
            }
            Some(_) => self.ahead.set(index, start),
            None => self.ahead.remove(index),
        }
        self.eligible.remove(index);
    }

    /// Moves flows whose S V has reached.
    fn settle(&mut self) {
        while let Some((start, index)) = self.ahead.first() {
            if start > self.fluid.v() {
                return;
            }
            self.place(index);
        }
    }

    /// The flow to serve next.
    fn next(&self) -> Option<usize> {
        self.eligible.first().or_else(|| self.ahead.first()).map(|(_, index)| index)
    }

    fn rebase(&mut self) {
        if let Some(by) = self.flows.rebase(self.fluid.v()) {
            self.eligible.shift(by);
            self.ahead.shift(by);
            self.fluid.rebase(by);
            self.latest = self.latest.saturating_sub(by);
            self.flows.packets_mut().for_each(|packet| packet.came = packet.came.saturating_sub(by));
        }
    }
}

impl<P: Packet> Scheduler<P> for Wfq<P> {
    fn push(&mut self, now: Time, packet: P) {
        self.advance(Some(now));
        let (index, size) = (packet.flow().slot(), packet.size());
        let stamped = Stamped { queued: Queued { packet, arrived: now }, came: self.fluid.v() };
        let is_head = self.flows.push(now, stamped);
        let flow = self.flows.get(index);
        self.fluid.arrive(index, flow.length(size), flow.share());
        if is_head {
            self.place(index);
        }
        self.settle();
    }

    fn link_is_free(&mut self, _now: Time) {
        self.advance(None);
        self.sending = None;
        self.settle();
    }

    fn pop(&mut self, now: Time) -> Option<Queued<P>> {
        self.link_is_free(now);
        let Some(index) = self.next() else {
            self.fluid.idle(self.latest);
            return None;
        };
        let queued = self.flows.take(index, End::Head)?.packet.queued;
        let (flow, size) = (self.flows.get(index), queued.packet.size());
        let length = flow.length(size);
        flow.tag += length;
        self.latest = self.latest.max(flow.tag);
        let work = u128::from(length) * u128::from(flow.share());
        self.sending = Some(Sending { since: now, size, work, served: 0 });
        self.place(index);
        self.rebase();
        Some(queued)
    }

    fn push_out(&mut self, now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        let index = flow.slot();
        let queued = self.flows.take(index, end)?.packet.queued;
        self.advance(Some(now));
        let flows = &mut self.flows;
        let length = flows.get(index).length(queued.packet.size());
        self.fluid.withdraw(index, length, |index| flows.get(index).share());
        self.place(index);
        self.settle();
        Some(queued)
    }

    fn next_flow(&self) -> Option<FlowId> {
        self.next().map(|index| FlowId(index as u32))
    }

    fn front(&self) -> Option<&Queued<P>> {
        self.flows.head(self.next()?).map(|head| &head.packet.queued)
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        let index = flow.slot();
        let before = self.flows.get(index).share();
        self.flows.set_weight(flow, weight);
        self.fluid.reweigh(index, before, self.flows.get(index).share());
        self.place(index);
        true
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    use super::*;
    use crate::packet::SimplePacket;
    use crate::schedule::testing::{order, push, serve, weighted};
    use crate::testing::packet;

    /// A scheduler of a link of a byte per microsecond with flows of these weights; the smallest is 1.
    fn wfq(eligible: Eligible, weights: &[f64]) -> Wfq<SimplePacket> {
        weighted(Wfq::new(eligible, Weight::ONE, Rate::from_mbit(8)), weights)
    }

    fn flows(wfq: &mut Wfq<SimplePacket>, n: usize) -> Vec<u32> {
        (0..n).map_while(|_| wfq.pop(Time::ZERO)).map(|queued| queued.packet.flow.0).collect()
    }

    #[test]
    fn the_example_of_the_wf2q_paper() {
        // INFOCOM 1996, figures 1 to 3: flow 0 has half of the link and eleven packets, ten flows have a
        // twentieth and a packet each. F of flow 0 is 2, 4, .. 20, 22 packets and F of the others 20: WFQ sends
        // ten of flow 0 in a row, five ahead of the fluid. WF2Q sends every second packet of flow 0.
        let in_a_row: Vec<u32> = [0; 10].into_iter().chain(1..=10).chain([0]).collect();
        let in_turn: Vec<u32> = (1..=10).flat_map(|flow| [0, flow]).chain([0]).collect();
        for (eligible, order) in [(Eligible::All, in_a_row), (Eligible::Begun, in_turn)] {
            let mut wfq = wfq(eligible, &[10.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
            push(&mut wfq, 0, &[(0, 100); 11]);
            push(&mut wfq, 11, &(1..11).map(|flow| (flow, 100)).collect::<Vec<_>>());
            assert_eq!(flows(&mut wfq, 99), order, "{eligible:?}");
        }
    }

    #[test]
    fn a_packet_during_a_transmission_starts_at_what_was_served() {
        let mut wfq = wfq(Eligible::All, &[1.0, 1.0, 1.0]);
        push(&mut wfq, 1, &[(0, 1_000), (0, 1_000), (1, 1_000)]);
        assert_eq!(serve(&mut wfq, 1), [1]);
        // 600 bytes have left: V = 300. F = 300 + 800 is above the F = 1000 of packet 3; at V = 0 it is below.
        wfq.push(Time::ZERO + crate::units::Span::from_micros(600), packet(4, 2, 800));
        assert_eq!(wfq.fluid.v() >> 24, 300);
        assert_eq!(serve(&mut wfq, 9), [3, 4, 2]);
        assert_eq!(wfq.pop(Time::ZERO), None);
    }

    #[test]
    fn time_beyond_the_transmission_serves_nothing() {
        for rate in [0, 1, 8_000] {
            let mut wfq = wfq(Eligible::Begun, &[1.0, 1.0]);
            Scheduler::<SimplePacket>::set_link_rate(&mut wfq, Rate::from_mbit(rate));
            push(&mut wfq, 1, &[(0, 1_000), (0, 1_000), (1, 1_000), (1, 1_000)]);
            assert_eq!(serve(&mut wfq, 1), [1]);
            // A second later the link is still sending: V is at most 500.
            wfq.push(Time::from_millis(1_000), packet(5, 0, 100));
            assert_eq!(wfq.fluid.v() >> 24, if rate == 0 { 0 } else { 500 }, "{rate}");
            // What is missing follows with the next packet: V = 500 whatever the rate.
            wfq.link_is_free(Time::from_millis(1_000));
            assert_eq!(wfq.fluid.v() >> 24, 500, "{rate}");
            assert_eq!(serve(&mut wfq, 9), [3, 2, 4, 5]);
        }
    }

    #[test]
    fn a_packet_pushed_out_is_not_charged() {
        for eligible in [Eligible::All, Eligible::Begun] {
            let mut wfq = wfq(eligible, &[1.0; 2]);
            push(&mut wfq, 1, &[(0, 1_000), (0, 100), (0, 100), (1, 500), (1, 500)]);
            // Without packet 1 flow 0 has F = 100 and 200; flow 1 has F = 500 and 1000. The fluid begins packet 3
            // at V = 100, after 200 bytes.
            let out = wfq.push_out(Time::ZERO, FlowId(0), End::Head);
            assert_eq!(out.map(|queued| queued.packet.id), Some(1));
            let order = if eligible == Eligible::All { [2, 3, 4, 5] } else { [2, 4, 3, 5] };
            assert_eq!(serve(&mut wfq, 9), order);
            assert_eq!(wfq.pop(Time::ZERO), None);
            assert_eq!(wfq.push_out(Time::ZERO, FlowId(0), End::Tail), None);
        }
    }

    #[test]
    fn moving_all_numbers_down_changes_no_order() {
        for eligible in [Eligible::All, Eligible::Begun] {
            let orders = [0, (1_u64 << 62) - 20_000].map(|v| {
                let mut wfq = wfq(eligible, &[1.0, 3.0, 7.0]);
                wfq.fluid.idle(v);
                let order = order(&mut wfq);
                assert!(wfq.fluid.v() < 1 << 62);
                order
            });
            assert_eq!(orders[0], orders[1]);
        }
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Arrivals, services, drops and pauses; 3 of 10 packets are dropped from either end.
        #[test]
        fn the_fluid_holds_the_work_that_the_link_has_left(
            ops in prop::collection::vec((0u8..10, 0u32..6, 40u64..1_500, any::<bool>()), 1..400),
            weights in prop::collection::vec(1u8..10, 6),
            rate in 0u64..20,
        ) {
            let weights: Vec<f64> = weights.into_iter().map(f64::from).collect();
            let mut wfq = wfq(Eligible::Begun, &weights);
            Scheduler::<SimplePacket>::set_link_rate(&mut wfq, Rate::from_mbit(rate));
            let (mut now, mut waiting) = (Time::ZERO, 0_u128);
            for (op, flow, size, end) in ops {
                let work = |wfq: &mut Wfq<SimplePacket>, flow: FlowId, size| {
                    let flow = wfq.flows.get(flow.slot());
                    u128::from(flow.length(size)) * u128::from(flow.share())
                };
                match op {
                    0..4 => {
                        wfq.push(now, packet(0, flow, size));
                        waiting += work(&mut wfq, FlowId(flow), Bytes::new(size));
                    }
                    4..7 => {
                        let end = if end { End::Head } else { End::Tail };
                        let out = wfq.push_out(now, FlowId(flow), end);
                        waiting -= out.map_or(0, |out| work(&mut wfq, out.packet.flow, out.packet.size));
                    }
                    7 => now += crate::units::Span::from_micros(size),
                    _ => {
                        let sent = wfq.pop(now);
                        waiting -= sent.map_or(0, |sent| work(&mut wfq, sent.packet.flow, sent.packet.size));
                    }
                }
                let left = wfq.sending.map_or(0, |sending| sending.work - sending.served);
                prop_assert_eq!(wfq.fluid.work(|index| weights[index] as u64), waiting + left);
            }
        }
    }
}
