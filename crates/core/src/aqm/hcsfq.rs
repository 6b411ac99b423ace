//! HCSFQ, hierarchical core-stateless fair queueing: a link is divided among customers and the part of each
//! customer among its flows, with state for customers and none for flows.
//!
//! Yu, Wu, Braverman, Stoica, Jin, "Twenty years after: hierarchical core-stateless fair queueing", NSDI
//! 2021. The idea is theirs: labels carry the rates of flows, and a router keeps state for the inner nodes of
//! the tree only. The loops below are those of CSFQ, written anew from Stoica, Shenker, Zhang, SIGCOMM 1998.
//!
//! A link of rate C has customers n of weight W_n, which have flows i of weight w_i and rate r_i. A_n is the
//! arrival rate of customer n, measured here.
//!
//! - The root: FS is such that Σ_n min(A_n, W_n FS) = C. Customer n may use C_n = W_n FS. With the papers'
//!   law it may use C while arrivals do not exceed C.
//! - A customer: FS_n is such that Σ_i min(r_i, w_i FS_n) = C_n, over its own flows.
//! - A packet carries the label r_i / w_i. It is dropped with probability max(0, 1 - FS_n / label) and leaves
//!   with min(label, FS_n).
//!
//! A flow may have a guarantee g_i. The customer pays for W_n, so the guarantees of its flows are served
//! within this part, and raise it only if it is too small. G_n is the rate of the customer's packets that
//! guarantees cover, measured here.
//!
//! - The root: FS is such that Σ_n min(A_n, C_n) = C with C_n = max(W_n FS, G_n).
//! - A customer: Σ_i min(r_i, g_i + w_i FS_n) = C_n, as in MCSFQ for a link of rate C_n.
//! - A packet that a guarantee covers carries the label 0, and is dropped only by the full buffer.
//!
//! Guarantees thus need no flow state in a core either. Two other divisions were considered. With guarantees
//! served before all customers, C_n = G_n + W_n FS, a customer gains by declaring guarantees. With C_n = W_n
//! FS a guarantee would not hold when customers come and go.
//!
//! Both equations are solved by the loop of [`fair_share`], which needs F, the rate that its share lets
//! through:
//! - The root's F averages what would pass if a customer were one flow of CSFQ with the label A_n / W_n: a
//!   draw for each packet, which has no other effect.
//! - A customer's F averages what does pass.
//!
//! The root is thus CSFQ by itself, and a customer is CSFQ for a link of rate C_n: two loops in series. If
//! the root averaged what passes, it would wait for the loops of the customers, which wait for it: two
//! integrators with the same K_c in one loop, each correcting what the other is about to correct.
//!
//! Choices:
//! - When C_n changes, FS_n and F of a customer that sends more are multiplied by the same factor at once.
//!   For a customer whose flows are all limited this is the solution; others are corrected by their loop.
//!   Otherwise each change of the root would need a second K_c to take effect.
//! - By queueing delay (`target_delay`) C_n is W_n FS also while arrivals are below C: FS does not fall then,
//!   and above all labels it limits no flow. The mean arrival rate of TCP is C, so that C_n would alternate
//!   between C and its part within milliseconds. F of customers that exceed their part at that moment would
//!   alternate too: with thirty customers F would be thirty times the arrivals, and FS_n would be halved in
//!   each of the next windows.
//! - By queueing delay a customer that sends less than C_n has no drops: the queue belongs to all customers.
//! - The root labels customers with `credit`, so FS lets A_n FS / label_n of a customer pass, which is up to 1.5 W_n FS in
//!   a burst. C_n rises by the same factor while the queue is empty, and by less the longer packets wait: by none from twice
//!   the target on. With W_n FS as C_n the difference would stay unused, by as much as a third of the link while floods begin.
//!   With the whole factor at any queue, customers with many TCP flows keep the queue long, and get more than those that send
//!   evenly.
//! - C_n is not cut to A_n. A customer below its part is thus uncongested, and not at the edge of congestion.
//!   FS_n is bounded by C for a weight of 1. With the bound C_n a customer with one flow would lose half of
//!   the noise.
//! - A silent customer leaves the root's F; FS grows and the others get the rest.
//! - A full buffer lowers FS, and FS_n if customer n, which sent the packet, sends more than C_n.
//! - The readings of CSFQ are those of 1998, except that guaranteed traffic is estimated and set aside.
//! - For the root a customer with G_n above W_n FS is its guaranteed traffic, which passes and is set aside,
//!   and the rest does not pass. Other customers are one flow each, whatever their labels. If drawn with
//!   probability 1 - C_n / A_n instead, the sum would be the same, but FS would be scaled as if G_n followed
//!   it, and the loop would need many windows where large guarantees exist.
//! - Packets of a debt (see [`rate_label`](crate::mark::rate_label)) count as guaranteed: a guarantee covers
//!   them, only later. The core takes a label of 1 for a debt if the customer has guaranteed packets as well.
//! - A customer whose guarantees use all of C_n leaves its other flows a hundredth of C_n.
//! - A table by flow number holds the customer of each flow, like the weights; on live traffic a classifier
//!   by address ranges or VLANs fills it. Packets add nothing to the table. All flows without an entry belong
//!   together to one more customer of weight 1, [`CustomerId::OTHERS`]: if each were a customer of its own,
//!   packets would create state, and opening flows would pay off. Without a table flows share as with CSFQ,
//!   with a second loop and a percent less of the link.
//! - Labels, `role`, `egress` and `by_flow` are as in [`csfq`](super::csfq). The turns of a flow are weighted by FS_n: with equal
//!   turns, the only flow of a customer would wait for twelve of another, and could not use its part.
//!
//! Cost: O(1) per packet, three exponentials (four at the edge, and one more for a guaranteed packet); 536 bytes per
//! customer, 4 bytes per flow in the table, 40 bytes per flow at the edge, 128 more per guarantee.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::csfq::{
    BY_FLOW, EDGE, EGRESS, L4S_BY_PACKET, LIMIT_OF_1998, ROLE, RouterRole, SHARE, THRESHOLD_OF_1998,
};
use super::l4s::Signal;
use super::l4s_lane::{self, Decision, Lane, Parts};
use super::reserve::{RESERVE, Reserve};
use super::{Admission, BufferPolicy};
use crate::estimate::exponential::Exponentials;
use crate::estimate::fair_share::{self, Arrival, FairShare, FairShareEstimator, FairShareParams};
use crate::flow_setting::FlowSetting;
use crate::label::Format;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::mark::rate_label::{Marking, RateLabel, RateLabelParams, RateLabels};
use crate::packet::{CustomerId, Customers, FlowId, LabelKind, MAX_CUSTOMERS, Packet};
use crate::param::{Entry, GoesBy, Heeds, Role, Shares, Traits};
use crate::params;
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler, Turn};
use crate::units::{Rate, Ratio, Span, Time, Weight};

/// HCSFQ in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "hcsfq",
    role: Role::Policy,
    summary: "CSFQ at two levels: shares the link among customers, then each customer's share among its flows.",
    reference: "Yu, Wu, Braverman, Stoica, Jin 2021",
    cost: "O(1) per packet, 536 bytes per customer, none per flow in the core; at the edge O(log flows), 127 bytes per flow, \
           128 more per guarantee",
    params: HcsfqParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight, Heeds::Guarantee, Heeds::Customer],
        writes: Some(LabelKind::Rate),
        reads: Some(LabelKind::Rate),
        goes_by: Some(GoesBy::Customers),
        shares: Shares::Approximate,
        limits: "Rates of flows are estimated. TCP gets 0.85 to 0.97 of its due over two to eight congested hops, \
            and a single TCP flow leaves an eighth of the link idle. The worst of thirty customers gets 0.84 of its due over TCP. Customers have no guarantees; \
            if those of its flows exceed a customer's part, its other flows get almost nothing.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Hcsfq`].
    pub struct HcsfqParams {
        limit: Option<BufferSize> = LIMIT_OF_1998,
        threshold: Ratio = THRESHOLD_OF_1998,
        ..EDGE.0,
        ..SHARE.0,
        role: RouterRole = ROLE,
        egress: bool = EGRESS,
        by_flow: bool = BY_FLOW,
        ..EDGE.1,
        reserve: Ratio = RESERVE.in_paper("0%"),
        l4s: bool = L4S_BY_PACKET,
        /// Settings for rates and labels at the edge.
        edge: RateLabelParams => RateLabelParams::from_args,
        /// Settings for the estimates of fair shares: the readings of 1998, except for guaranteed traffic.
        fair_share: FairShareParams => FairShareParams::from_args,
    }
    check: |params: &Self, args| {
        let target_delay = params.fair_share.target_delay;
        fair_share::refuse_unused(args, target_delay)?;
        Reserve::check(params.threshold, params.reserve, target_delay)
    }
}

impl HcsfqParams {
    /// Whether packets take [turns](crate::schedule::turns) if no other scheduler is chosen.
    #[must_use]
    pub fn takes_turns(&self) -> bool {
        self.by_flow && self.role != RouterRole::Core
    }
}

/// A customer: an inner node of the tree.
#[derive(Clone, Debug)]
struct Customer {
    /// W_n, the weight.
    weight: Weight,
    /// FS_n, the fair share of C_n.
    share: FairShareEstimator,
}

/// The root of the tree.
#[derive(Clone, Debug)]
struct Root {
    /// A_n, with labels for customers as if each were a flow.
    arrivals: RateLabels,
    /// FS, the fair share of C.
    share: FairShareEstimator,
    /// The rate of guaranteed packets of all customers; updated by these only.
    guaranteed: Exponentials<1>,
    random: Stream,
}

impl HcsfqParams {
    /// Whether L4S packets are marked; the law of the papers drops them like others.
    #[must_use]
    pub fn marks_l4s(&self) -> bool {
        self.l4s && self.fair_share.target_delay > Span::ZERO
    }
}

/// The state of an HCSFQ queue: the estimates of its link and of each customer.
#[derive(Clone, Debug)]
pub struct Hcsfq {
    limit: LinkLimit,
    threshold: Ratio,
    role: RouterRole,
    egress: bool,
    reserve: Reserve,
    l4s: bool,
    lane: Lane,
    format: Format,
    /// r_i, the rates of the flows that are labelled here.
    edge: RateLabels,
    /// n, the customer, by flow.
    customer_of: Vec<CustomerId>,
    /// The customers by number; never empty.
    customers: Vec<Customer>,
    root: Box<Root>,
    random: Stream,
    /// How the last packet joins.
    turn: Turn,
}

impl Customer {
    /// G_n, as of its last arrival.
    fn guaranteed(&self) -> f64 {
        self.share.guaranteed_rate()
    }
}

impl Root {
    /// Returns what FS lets pass of customer `n`: W_n FS, and in a burst `room` of what the label would let pass beyond.
    fn part(&self, n: usize, customer: &Customer, fs: f64, room: f64) -> f64 {
        let burst = self.arrivals.burst(FlowId(n as u32));
        customer.weight.get() * fs * (1.0 + room * (burst - 1.0))
    }

    /// Updates the root for a packet of customer `n`: a draw decides whether the packet would pass, with no
    /// effect on the packet.
    fn update(&mut self, now: Time, n: usize, customer: &Customer, packet: Arrival, room: f64) {
        let unknown = self.share.accepted_rate() / 2.0;
        let label = self.arrivals.label_or(now, FlowId(n as u32), packet.size, unknown);
        let share = self.share.fair_share();
        let drawn = self.random.chance(share.drop_probability(label));
        let is_above =
            share.rate().is_some_and(|fs| self.part(n, customer, fs, room) < customer.guaranteed());
        let (label, dropped) = match (is_above, packet.label) {
            (true, RateLabel::Guaranteed) => (RateLabel::Guaranteed, false),
            (true, RateLabel::Excess(_)) => (label, true),
            (false, _) => (label, drawn),
        };
        self.share.update(now, Arrival { label, dropped, ..packet });
    }

    /// Whether guaranteed packets use more than a thousandth of the link.
    fn has_guarantees(&self, now: Time) -> bool {
        let [rate] = self.guaranteed.rates(now);
        rate > self.share.link() * 0.001
    }
}

impl Hcsfq {
    /// HCSFQ for a link of `link_rate`. One stream decides about drops, one draws for the root, and one marks
    /// guarantees.
    #[must_use]
    pub fn new(
        params: &HcsfqParams,
        link_rate: Rate,
        customers: &Customers<'_>,
        [random, root_random, marking]: [Stream; 3],
    ) -> Self {
        let share = FairShareEstimator::new(&params.fair_share, link_rate);
        let labels = RateLabels::new(&params.edge, marking);
        let root = Root {
            // Customers themselves have no guarantees, so that this stream draws nothing.
            arrivals: labels.clone(),
            share: share.clone(),
            guaranteed: Exponentials::new(params.fair_share.k_alpha, [0.0], Time::ZERO),
            random: root_random,
        };
        let mut hcsfq = Self {
            limit: LinkLimit::new(params.limit, link_rate),
            threshold: params.threshold,
            role: params.role,
            egress: params.egress,
            reserve: Reserve { part: params.reserve, pays_debts: params.edge.marking == Marking::Debt },
            l4s: params.marks_l4s(),
            lane: Lane::new(),
            format: params.edge.format(),
            edge: labels,
            customer_of: customers.of_flows.to_vec(),
            customers: Vec::new(),
            root: Box::new(root),
            random,
            turn: Turn::Arrival,
        };
        let others = customers.weights.is_empty().then_some(Weight::ONE);
        for weight in others.into_iter().chain(customers.weights.iter().copied()).take(MAX_CUSTOMERS + 1) {
            let n = FlowId(hcsfq.customers.len() as u32);
            hcsfq.root.arrivals.set_weight(n, weight);
            hcsfq.root.share.note_weight(weight);
            hcsfq.customers.push(Customer { weight, share: share.clone() });
        }
        hcsfq
    }

    /// The same, with the round-trip times of flows; zero if unknown.
    #[must_use]
    pub fn with_rtts(mut self, rtts: &[Span]) -> Self {
        self.root.share.set_rtts(rtts);
        self.customers.iter_mut().for_each(|customer| customer.share.set_rtts(rtts));
        self
    }

    /// The place of `flow`'s customer.
    fn customer(&self, flow: FlowId) -> usize {
        let n = self.customer_of.get(flow.slot()).map_or(0, |customer| customer.0 as usize);
        if n < self.customers.len() { n } else { 0 }
    }

    /// C_n; with the papers' law C while total arrivals do not exceed C.
    fn capacity(&self, n: usize, room: f64) -> f64 {
        let c = self.root.share.link();
        let customer = &self.customers[n];
        match self.root.share.fair_share() {
            FairShare::Rate(fs) if self.root.share.is_by_delay() || self.root.share.is_congested() => {
                self.root.part(n, customer, fs, room).max(customer.guaranteed()).min(c)
            }
            _ => c,
        }
    }

    /// The label that counts for customer `n`: a guarantee covers a debt too.
    fn counted(&self, n: usize, label: RateLabel) -> RateLabel {
        let is_debt = self.reserve.is_debt(label) && self.customers[n].share.guaranteed_rate() > 0.0;
        if is_debt { RateLabel::Guaranteed } else { label }
    }

    /// Whether the room beyond `backlog` is reserved for guaranteed packets and `label` is not one of them.
    fn is_reserved(&self, now: Time, label: RateLabel, filled: f64) -> bool {
        self.reserve.is_closed(label, filled) && self.root.has_guarantees(now)
    }
}

impl<P: Packet> BufferPolicy<P> for Hcsfq {
    // Not inlined, for the reason in CSFQ.
    #[inline(never)]
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let n = self.customer(packet.flow());
        self.turn = self.role.turn(packet);
        let Some(label) = self.role.label(now, packet, &mut self.edge, &self.customers[n].share) else {
            return Admission::Drop(DropReason::Policy);
        };
        let calm =
            !self.root.share.is_by_delay() && self.limit.get().is_filled_up_to(backlog, self.threshold);
        let limit = self.limit.get();
        let marks = self.l4s && packet.ecn().is_l4s();
        let counted = self.counted(n, label);
        let part = self.lane.parts(&self.root.share, marks, backlog, limit).link;
        let arrival = Arrival { size: packet.size(), label: counted, dropped: false, calm, part };
        let room = self.root.share.room_at(backlog.bytes);
        if let Some(rate) = self.customers[n].share.least_rate() {
            self.root.share.note_flows(rate);
        }
        self.root.update(now, n, &self.customers[n], arrival, room);
        if label == RateLabel::Guaranteed {
            self.root.guaranteed.update(now, [packet.size().bits() as f64]);
        }
        let capacity = self.capacity(n, room);
        let share = &mut self.customers[n].share;
        share.set_part(capacity, self.root.share.link());
        let Parts { own, link: part, first } = self.lane.parts(share, marks, backlog, limit);
        // A customer below its part has no share either, once parts are known.
        let unknown = if self.root.share.fair_share() == FairShare::Unknown { first } else { 1.0 };
        let Decision { signal, keeps_label } =
            l4s_lane::decide(share.share_at(own), counted, unknown, marks, &mut self.random);
        let dropped = signal == Signal::Dropped;
        share.update(now, Arrival { dropped, part, ..arrival });
        self.lane.arrived(now, packet.size(), marks, !dropped);
        if dropped {
            return Admission::Drop(DropReason::Early);
        }
        if !self.limit.get().admits(packet, backlog) || self.is_reserved(now, label, limit.filled_by(backlog))
        {
            self.root.share.overflow();
            let share = &mut self.customers[n].share;
            if share.is_congested() {
                share.overflow();
            }
            return Admission::Drop(DropReason::Overflow);
        }
        let share = self.customers[n].share.share_at(own);
        if self.turn == Turn::Flow && label == RateLabel::Guaranteed {
            self.turn = Turn::First;
        } else if self.turn == Turn::Flow {
            let link = self.root.share.link();
            let fair = share.rate().unwrap_or(link).min(link);
            self.turn = self.edge.turn(packet.flow(), fair / link, fair);
        }
        if self.egress {
            packet.clear_label(LabelKind::Rate);
        } else if keeps_label {
            label.write(packet);
        } else {
            share.relabel(label, self.format).write(packet);
        }
        if signal == Signal::Marked { Admission::Mark } else { Admission::Accept }
    }

    #[inline]
    fn turn(&self) -> Turn {
        self.turn
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let queued = scheduler.pop(now);
        let size = queued.as_ref().map(|queued| queued.packet.size());
        self.root.share.departed(now, size, !scheduler.backlog().is_empty());
        self.lane.holds(scheduler.l4s_backlog());
        queued
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.root.share.statistics(show);
        show("customers", self.customers.len() as f64);
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.root.share.set_link_rate(rate);
        self.limit.set_link_rate(rate);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let labels = self.role != RouterRole::Core;
        match setting {
            FlowSetting::Customer(customer) => {
                let slot = flow.slot();
                if slot >= self.customer_of.len() {
                    self.customer_of.resize(slot + 1, CustomerId::OTHERS);
                }
                self.customer_of[slot] = customer;
                true
            }
            FlowSetting::Weight(weight) => {
                if labels {
                    self.edge.set_weight(flow, weight);
                }
                let n = self.customer(flow);
                self.customers[n].share.note_weight(weight);
                true
            }
            FlowSetting::Guarantee(guarantee, rtt) if labels => {
                self.edge.set_guarantee(flow, guarantee, rtt);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
