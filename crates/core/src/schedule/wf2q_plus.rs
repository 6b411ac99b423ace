//! WF2Q+, worst-case fair weighted fair queueing: of the packets whose service would have begun in virtual
//! time, the one whose service would finish first is served next.
//!
//! Bennett, Zhang, "Hierarchical packet fair queueing algorithms", IEEE/ACM ToN 5(5), 1997, section IV. The
//! head of each flow has S = F of the flow's previous packet if the flow was backlogged, else the larger of F
//! and V (eq. 28), and F = S + l/r (eq. 29). A head is eligible once S <= V; the smallest F of eligible heads
//! is served. V is the larger of V plus the service given and the smallest S of the backlogged flows (eq.
//! 27).
//!
//! Readings:
//! - The sum of weights covers only flows that are backlogged or have F > V: V rises by the bytes served over
//!   this sum. The paper sums over all flows, which may be a million of which ten send. A flow that has just
//!   run empty must count until V reaches its F: otherwise V would run ahead by the service that the flow got
//!   early, and each such flow would push V further from the others.
//! - V rises by the whole packet when the packet is taken for service, not during its transmission: a
//!   scheduler does not know the rate of its link, nor therefore the part that has been sent. V is exact only
//!   between packets. A packet that arrives during a transmission is stamped up to L/(sum of weights) late,
//!   as if it had arrived at the end, which is up to L/r later. From there the paper's bound holds, so that
//!   the longest delay of a flow with burst sigma and rate g is sigma/g + 2 L/r where the paper has one L/r
//!   (validation/formulas). A stamp with the V at the beginning of the transmission is no remedy. A flow
//!   counts in the sum of weights from its stamp to its F, so its earlier stamp would leave a part of its
//!   packet uncharged; each such packet pushes V further ahead of the backlogged flows, and delays grow.
//! - Equal tags: the lower flow number goes first. Tags are the integers of `tags.rs`.
//! - The link is idle when it asks and there is no packet; V is then the largest F served.
//!
//! Fairness (Theorem 4): while flow i is backlogged, its service falls short of its share of what the link
//! serves by at most L_i + (L - L_i) r_i/r: no more than a packet, however many flows there are. Flows that
//! are always backlogged are also no more than L_i (1 - r_i/r) ahead of the fluid and a packet behind it
//! (WF2Q, INFOCOM 1996, theorems 1 and 2).
//!
//! Cost: O(log flows) per packet, in two trees; at most 110 bytes per flow: records of 32, allocated for up
//! to twice as many flows, and 23 for each tree. Parameters: none.

use super::tags::Flows;
use super::{End, Queued, Scheduler};
use crate::flow_setting::FlowSetting;
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Heeds, Inside, Role, Shares, Traits};
use crate::queue::Backlog;
use crate::smallest::Smallest;
use crate::units::{Bytes, Time, Weight};

/// WF2Q+ in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "wf2q_plus",
    role: Role::Scheduler,
    summary: "WF2Q+: smallest virtual finish among packets whose service would have begun.",
    reference: "Bennett, Zhang 1997",
    cost: "O(log flows) per packet, at most 110 bytes per flow",
    params: &[],
    traits: Traits {
        heeds: &[Heeds::Weight],
        inside: Inside::Part,
        shares: Shares::Given,
        limits: "Weights span a factor of 2^26. A packet may wait for one packet time of the link longer than the \
            paper's bound.",
        ..Traits::NONE
    },
};

/// WF2Q+ over flows. A flow is in one of the two trees, or in none and forgotten.
#[derive(Clone, Debug)]
pub struct Wf2qPlus<P> {
    flows: Flows<P>,
    /// Backlogged flows with S <= V, by F of their head.
    eligible: Smallest,
    /// Flows whose tag is above V, by this tag: S of backlogged flows, F of idle ones.
    ahead: Smallest,
    /// The sum of the weights of the flows in the two trees; 2^16 is the smallest weight.
    shares: u64,
    /// Virtual time.
    v: u64,
    /// The largest F of any packet served.
    latest: u64,
}

impl<P: Packet> Wf2qPlus<P> {
    /// An empty scheduler. `smallest` is the smallest weight of a flow.
    #[must_use]
    pub fn new(smallest: Weight) -> Self {
        Self {
            flows: Flows::new(smallest),
            eligible: Smallest::new(),
            ahead: Smallest::new(),
            shares: 0,
            v: 0,
            latest: 0,
        }
    }

    /// Puts a flow that is not in `ahead` into its tree. An idle flow whose F is not above V is forgotten.
    fn place(&mut self, index: usize) {
        let flow = *self.flows.get(index);
        if flow.tag > self.v {
            self.ahead.set(index, flow.tag);
        } else if let Some(finish) = self.flows.finish(index) {
            return self.eligible.set(index, finish);
        } else {
            self.shares -= flow.share();
        }
        self.eligible.remove(index);
    }

    /// Moves flows whose tag V has reached. If no flow is eligible, V jumps to the smallest S.
    fn settle(&mut self) {
        while let Some((tag, index)) = self.ahead.first() {
            if tag > self.v {
                let stuck = self.eligible.first().is_none() && !self.flows.backlog.is_empty();
                if !stuck {
                    return;
                }
                // V jumps to the smallest S, past smaller F of idle flows.
                self.v = tag;
            }
            self.ahead.remove(index);
            self.place(index);
        }
    }

    /// V's rise for a packet: its bytes over the sum of weights. Rounded down: a V that is behind catches up
    /// with the next smallest S, but a V that is ahead would stay ahead.
    fn rise(&self, size: Bytes) -> u64 {
        // 2^24 bytes × 2^40 fit in 64 bits.
        (size.get().min((1 << 24) - 1) << 40) / self.shares.max(1)
    }

    fn rebase(&mut self) {
        if let Some(by) = self.flows.rebase(self.v) {
            self.eligible.shift(by);
            self.ahead.shift(by);
            self.v -= by;
            self.latest = self.latest.saturating_sub(by);
        }
    }
}

impl<P: Packet> Scheduler<P> for Wf2qPlus<P> {
    fn push(&mut self, now: Time, packet: P) {
        let index = packet.flow().slot();
        if !self.flows.push(now, packet) {
            return;
        }
        if self.ahead.contains(index) {
            self.ahead.remove(index);
        } else {
            let flow = self.flows.get(index);
            flow.tag = self.v;
            self.shares += flow.share();
        }
        self.place(index);
        self.settle();
    }

    fn pop(&mut self, _now: Time) -> Option<Queued<P>> {
        let Some((finish, index)) = self.eligible.first() else {
            self.v = self.v.max(self.latest);
            self.settle();
            return None;
        };
        let queued = self.flows.take(index, End::Head)?;
        self.flows.get(index).tag = finish;
        self.latest = self.latest.max(finish);
        self.v += self.rise(queued.packet.size());
        self.place(index);
        self.settle();
        self.rebase();
        Some(queued)
    }

    fn push_out(&mut self, _now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        let index = flow.slot();
        let queued = self.flows.take(index, end)?;
        // The packet behind gets the same S; a flow left empty gets it as its F.
        self.ahead.remove(index);
        self.place(index);
        self.settle();
        Some(queued)
    }

    fn next_flow(&self) -> Option<FlowId> {
        self.eligible.first().map(|(_, index)| FlowId(index as u32))
    }

    fn front(&self) -> Option<&Queued<P>> {
        self.flows.head(self.eligible.first()?.1)
    }

    fn backlog(&self) -> Backlog {
        self.flows.backlog
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        let index = flow.slot();
        let counts = self.eligible.contains(index) || self.ahead.contains(index);
        let before = self.flows.get(index).share();
        self.flows.set_weight(flow, weight);
        if counts {
            self.shares = self.shares - before + self.flows.get(index).share();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::packet::SimplePacket;
    use crate::schedule::testing::{order, push, serve, weighted};

    /// A scheduler with flows of these weights; the smallest is 1.
    fn wf2q(weights: &[f64]) -> Wf2qPlus<SimplePacket> {
        weighted(Wf2qPlus::new(Weight::ONE), weights)
    }

    fn flows(wf2q: &mut Wf2qPlus<SimplePacket>, n: usize) -> Vec<u32> {
        (0..n).map_while(|_| wf2q.pop(Time::ZERO)).map(|queued| queued.packet.flow.0).collect()
    }

    #[test]
    fn the_example_of_the_wf2q_paper() {
        // INFOCOM 1996, figures 1 to 3: flow 0 has half of the link and eleven packets, ten flows have a
        // twentieth and a packet each. Fair queueing by finish alone sends ten of flow 0 in a row, then ten
        // others; worst-case fair, every second packet is of flow 0. S = 0, 2, 4 ... in units of a packet at
        // the whole rate.
        let mut wf2q = wf2q(&[10.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
        push(&mut wf2q, 0, &[(0, 100); 11]);
        push(&mut wf2q, 11, &(1..11).map(|flow| (flow, 100)).collect::<Vec<_>>());
        let order = [0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 9, 0, 10, 0];
        assert_eq!(flows(&mut wf2q, 99), order);
    }

    #[test]
    fn virtual_time_rises_by_service_over_the_weights_that_count() {
        let mut wf2q = wf2q(&[1.0, 3.0, 1.0]);
        push(&mut wf2q, 1, &[(0, 400), (1, 600), (1, 600)]);
        // F: 400 for packet 1, 200 for packet 2. Packet 2 goes; V = 600 / 4 = 150; packet 3 has S = 200.
        assert_eq!(serve(&mut wf2q, 1), [2]);
        assert_eq!(wf2q.v >> 24, 150);
        // Only packet 1 is eligible, and V = 150 + 400 / 4 = 250: its flow is idle, with F = 400.
        assert_eq!(serve(&mut wf2q, 1), [1]);
        assert_eq!((wf2q.v >> 24, wf2q.shares), (250, 4 << 16));
        // The idle flow still counts: V = 250 + 600 / 4 = 400. Then flow 0 is forgotten, and flow 1, F = 400,
        // which was the only one left, is forgotten too.
        assert_eq!(serve(&mut wf2q, 1), [3]);
        assert_eq!((wf2q.v >> 24, wf2q.shares), (400, 0));
    }

    #[test]
    fn a_flow_alone_is_served_though_its_start_is_ahead() {
        let mut wf2q = wf2q(&[1.0, 9.0]);
        push(&mut wf2q, 1, &[(0, 100), (0, 100), (1, 100)]);
        // F: 100 and 11.1. After 3 and 1, V = 20 and packet 2 has S = 100: V jumps there.
        assert_eq!(serve(&mut wf2q, 9), [3, 1, 2]);
    }

    #[test]
    fn a_packet_pushed_out_is_not_charged() {
        let mut wf2q = wf2q(&[1.0; 2]);
        push(&mut wf2q, 1, &[(0, 1_000), (0, 100), (0, 100), (1, 500), (1, 500)]);
        // Without packet 1 flow 0 has F = 100 and 200; flow 1 has F = 500 and 1000.
        assert_eq!(wf2q.push_out(Time::ZERO, FlowId(0), End::Head).map(|queued| queued.packet.id), Some(1));
        // 2 goes, V = 50; 3 has S = 100, so 4 goes, V = 300; then 3, V = 350; then 5, S = 500.
        assert_eq!(serve(&mut wf2q, 9), [2, 4, 3, 5]);
        // A flow that push-out emptied, waiting or eligible, leaves no state.
        push(&mut wf2q, 6, &[(0, 100), (1, 100)]);
        for flow in [0, 1] {
            assert!(wf2q.push_out(Time::ZERO, FlowId(flow), End::Tail).is_some());
            assert_eq!(wf2q.push_out(Time::ZERO, FlowId(flow), End::Tail), None);
        }
        assert_eq!(wf2q.next_flow(), None);
        assert_eq!(wf2q.pop(Time::ZERO), None);
        assert_eq!(wf2q.shares, 0);
    }

    #[test]
    fn a_weight_that_changes_keeps_the_sum() {
        let mut wf2q = wf2q(&[1.0, 2.0]);
        push(&mut wf2q, 1, &[(0, 100), (1, 100), (1, 100)]);
        wf2q.set_flow(FlowId(1), FlowSetting::Weight(Weight::new(5.0).unwrap()));
        wf2q.set_flow(FlowId(2), FlowSetting::Weight(Weight::new(7.0).unwrap()));
        assert_eq!(wf2q.shares >> 16, 6);
        assert_eq!(serve(&mut wf2q, 9).len(), 3);
        assert_eq!((wf2q.pop(Time::ZERO), wf2q.shares), (None, 0));
    }

    #[test]
    fn moving_all_numbers_down_changes_no_order() {
        let orders = [0, (1_u64 << 62) - 20_000].map(|v| {
            let mut wf2q = wf2q(&[1.0, 3.0, 7.0]);
            wf2q.v = v;
            let order = order(&mut wf2q);
            assert!(wf2q.v < 1 << 62);
            order
        });
        assert_eq!(orders[0], orders[1]);
    }
}
