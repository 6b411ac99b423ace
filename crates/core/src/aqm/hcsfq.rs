//! HCSFQ, hierarchical core-stateless fair queueing: a link is divided among customers and the part of each
//! customer among its flows, with state for customers and none for flows.
//!
//! Yu, Wu, Braverman, Stoica, Jin, "Twenty years after: hierarchical core-stateless fair queueing", NSDI
//! 2021. The idea is theirs: rates of flows come in labels, a router keeps state for the inner nodes of the
//! tree only. The loops below are those of CSFQ, written anew from Stoica, Shenker, Zhang, SIGCOMM 1998.
//!
//! A link of rate C has customers n of weight W_n, which have flows i of weight w_i and rate r_i. A_n is the
//! rate at which customer n arrives here, measured here.
//!
//! - The root: FS is such that Σ_n min(A_n, W_n FS) = C. Customer n may have C_n = W_n FS while more than C
//!   arrives, and C while not.
//! - A customer: FS_n is such that Σ_i min(r_i, w_i FS_n) = C_n, over its own flows.
//! - A packet carries the label r_i / w_i. It is dropped with probability max(0, 1 - FS_n / label) and leaves
//!   with min(label, FS_n).
//!
//! Both equations are solved by the loop of [`fair_share`], which needs to know
//! F, the rate that its share lets through:
//! - The root's F averages what would pass if a customer were one flow of CSFQ with the label A_n / W_n: a
//!   draw for each packet, which decides nothing else.
//! - A customer's F averages what does pass.
//!
//! So the root is CSFQ by itself, and a customer is CSFQ in front of a link of rate C_n: one loop after the
//! other. If the root averaged what passes, it would wait for the loops of the customers, which wait for it:
//! two integrators with the same K_c in one loop, each correcting what the other is about to correct.
//!
//! Choices:
//! - When C_n changes, FS_n and F of a customer that sends more are multiplied by as much, at once: for one
//!   whose flows are all held back this is the solution, and others are corrected by their loop. Otherwise each
//!   change of the root would take a second K_c to arrive.
//! - C_n is not cut to A_n. A customer below its part is thus uncongested, and not on the edge of being so.
//!   FS_n is bounded by C for a weight of 1; bounded by C_n a customer with one flow would lose half of the
//!   noise.
//! - A customer that falls silent leaves the root's F; FS grows and the others have what it leaves.
//! - A full buffer lowers FS, and FS_n if customer n, whose packet it was, sends more than C_n.
//! - Readings of CSFQ are those of 1998. There are no guarantees: a packet that another router's guarantee
//!   covers passes, and counts.
//! - The customer of each flow is in a table by flow number, like the weights; on live traffic a classifier by address
//!   ranges or VLANs fills it. Packets add nothing to it. A flow that is not in it belongs to one more
//!   customer of weight 1, [`CustomerId::OTHERS`], together with all others of its kind: if each were a
//!   customer of its own, packets would create state, and opening flows would pay off. Without a
//!   table flows share as with CSFQ, with one loop more and a percent less of the link.
//! - Labels, and what `role` and `egress` do, are as in [`csfq`](super::csfq).
//!
//! Cost: O(1) per packet, three exponentials (four at the edge); 490 bytes per customer, 4 bytes per flow in
//! the table, 40 bytes per flow at the edge.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::csfq::{EGRESS, LIMIT_OF_1998, ROLE, RouterRole, THRESHOLD_OF_1998};
use super::{Admission, BufferPolicy};
use crate::estimate::fair_share::{self, Arrival, FairShare, FairShareEstimator, FairShareParams, Fill};
use crate::label::Format;
use crate::limit::{Limit, LinkLimit};
use crate::mark::rate_label::{self, RateLabelParams, RateLabels};
use crate::packet::{CustomerId, Customers, FlowId, LabelKind, MAX_CUSTOMERS, Packet};
use crate::param::{Entry, EntryArgs, ParamError, Role};
use crate::queue::{Backlog, DropReason};
use crate::random::Stream;
use crate::units::{Rate, Ratio, Time, Weight};

/// HCSFQ in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "hcsfq",
    role: Role::Policy,
    summary: "CSFQ in two levels: the link is divided among customers, each customer's part among its flows.",
    reference: "Yu, Wu, Braverman, Stoica, Jin 2021",
    cost: "O(1) per packet, 490 bytes per customer, 40 bytes per flow at the edge, none in the core",
    params: &[
        LIMIT_OF_1998,
        THRESHOLD_OF_1998,
        rate_label::K,
        rate_label::CREDIT,
        fair_share::K_ALPHA,
        fair_share::K_C,
        fair_share::TARGET_DELAY,
        ROLE,
        EGRESS,
        rate_label::BITS,
    ],
};

/// Parameters of [`Hcsfq`]; [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
pub struct HcsfqParams {
    /// Size of the buffer, in packets or bytes, without the packet in transmission. Default: 100 ms of the link, at
    /// least 96 kB.
    pub limit: Option<Limit>,
    /// Part of the buffer up to which an uncongested link is not taken to be congested, 0 to 1. Default 0.25.
    pub threshold: Ratio,
    /// Whether the router labels packets, trusts their labels, or both. Default any.
    pub role: RouterRole,
    /// Whether packets leave without their labels. Default false.
    pub egress: bool,
    /// How the edge measures rates and writes labels.
    pub edge: RateLabelParams,
    /// How the fair shares are estimated.
    pub fair_share: FairShareParams,
}

impl HcsfqParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        fair_share::refuse_unused(args)?;
        Ok(Self {
            limit: args.limit_if_set("limit"),
            threshold: args.ratio("threshold"),
            role: RouterRole::from_args(args),
            egress: args.switch("egress"),
            edge: RateLabelParams::without_guarantees(args)?,
            fair_share: FairShareParams::of_1998(args)?,
        })
    }
}

/// A customer: an inner node of the tree.
#[derive(Clone, Debug)]
struct Customer {
    /// W_n.
    weight: Weight,
    /// FS_n, in front of C_n.
    share: FairShareEstimator,
}

/// The root of the tree.
#[derive(Clone, Debug)]
struct Root {
    /// A_n, labels of customers as if each were a flow.
    arrivals: RateLabels,
    /// FS, in front of C.
    share: FairShareEstimator,
    random: Stream,
}

/// The state of an HCSFQ queue: the estimates of its link and of each customer.
#[derive(Clone, Debug)]
pub struct Hcsfq {
    limit: LinkLimit,
    threshold: Ratio,
    role: RouterRole,
    egress: bool,
    format: Format,
    /// r_i of the flows that are labelled here.
    edge: RateLabels,
    /// n, by flow.
    customer_of: Vec<CustomerId>,
    /// By number; never empty.
    customers: Vec<Customer>,
    root: Box<Root>,
    random: Stream,
}

impl Root {
    /// The root's equation, for a packet of customer `n`: whether it would pass is drawn, and forgotten.
    fn update<P: Packet>(&mut self, now: Time, n: usize, packet: &P, calm: bool, queue: Fill) {
        let unknown = self.share.accepted_rate() / 2.0;
        let label = self.arrivals.label_or(now, FlowId(n as u32), packet.size(), unknown);
        let dropped = self.random.chance(self.share.fair_share().drop_probability(label));
        let part = self.share.part_at(queue);
        self.share.update(now, Arrival { size: packet.size(), label, dropped, calm, part });
    }
}

impl Hcsfq {
    /// HCSFQ in front of a link of `link_rate`. One stream decides about drops, the other draws for the root.
    #[must_use]
    pub fn new(
        params: &HcsfqParams,
        link_rate: Rate,
        customers: &Customers<'_>,
        random: Stream,
        root_random: Stream,
    ) -> Self {
        let share = FairShareEstimator::new(&params.fair_share, link_rate);
        // Nothing is guaranteed, so that nothing is marked by chance.
        let labels = RateLabels::new(&params.edge, root_random.clone());
        let mut hcsfq = Self {
            limit: LinkLimit::new(params.limit, link_rate),
            threshold: params.threshold,
            role: params.role,
            egress: params.egress,
            format: params.edge.format(),
            edge: labels.clone(),
            customer_of: customers.of_flows.to_vec(),
            customers: Vec::new(),
            root: Box::new(Root { arrivals: labels, share: share.clone(), random: root_random }),
            random,
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

    /// The place of the customer that `flow` belongs to.
    fn customer(&self, flow: FlowId) -> usize {
        let n = self.customer_of.get(flow.slot()).map_or(0, |customer| customer.0 as usize);
        if n < self.customers.len() { n } else { 0 }
    }

    /// C_n, which is C while not more than that arrives in all.
    fn capacity(&self, n: usize) -> f64 {
        let c = self.root.share.available();
        match self.root.share.fair_share() {
            FairShare::Rate(fs) if self.root.share.is_congested() => {
                (self.customers[n].weight.get() * fs).min(c)
            }
            _ => c,
        }
    }
}

impl<P: Packet> BufferPolicy<P> for Hcsfq {
    // As in CSFQ.
    #[inline(never)]
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let n = self.customer(packet.flow());
        let Some(label) = self.role.label(now, packet, &mut self.edge, &self.customers[n].share) else {
            return Admission::Drop(DropReason::Policy);
        };
        let calm =
            !self.root.share.is_by_delay() && self.limit.get().is_filled_up_to(backlog, self.threshold);
        let queue = Fill::of(backlog, self.limit.get());
        self.root.update(now, n, packet, calm, queue);
        let capacity = self.capacity(n);
        let share = &mut self.customers[n].share;
        share.set_part(capacity, self.root.share.available());
        let part = share.part_at(queue);
        let dropped = self.random.chance(share.share_at(part).drop_probability(label));
        share.update(now, Arrival { size: packet.size(), label, dropped, calm, part });
        if dropped {
            return Admission::Drop(DropReason::Early);
        }
        if !self.limit.get().admits(packet, backlog) {
            self.root.share.overflow();
            if share.is_congested() {
                share.overflow();
            }
            return Admission::Drop(DropReason::Overflow);
        }
        if self.egress {
            packet.clear_label(LabelKind::Rate);
        } else {
            share.share_at(part).relabel(label, self.format).write(packet);
        }
        Admission::Accept
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.root.share.statistics(show);
        show("customers", self.customers.len() as f64);
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.root.share.set_link_rate(rate);
        self.limit.set_link_rate(rate);
    }

    fn set_customer(&mut self, flow: FlowId, customer: CustomerId) -> bool {
        let slot = flow.slot();
        if slot >= self.customer_of.len() {
            self.customer_of.resize(slot + 1, CustomerId::OTHERS);
        }
        self.customer_of[slot] = customer;
        true
    }

    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        if self.role != RouterRole::Core {
            self.edge.set_weight(flow, weight);
        }
        let n = self.customer(flow);
        self.customers[n].share.note_weight(weight);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::Label;
    use crate::packet::SimplePacket;
    use crate::testing::packet;
    use crate::units::{Bytes, Packets, Span};
    use std::vec::Vec;

    /// A share that a label holds exactly: 2^20 bits a second.
    const SHARE: f64 = 1_048_576.0;
    const C: f64 = 8e6;

    /// In front of 8 Mb/s, a buffer of 64 packets; flow i belongs to customer i, whose weights are these.
    fn hcsfq(weights: &[f64], change: impl FnOnce(&mut HcsfqParams)) -> Hcsfq {
        let mut params = HcsfqParams::from_args(&EntryArgs::of_paper(&ENTRY)).unwrap();
        change(&mut params);
        let weights: Vec<Weight> = weights.iter().map(|&weight| Weight::new(weight).unwrap()).collect();
        let of_flows: Vec<CustomerId> = (0..weights.len() as u32).map(CustomerId).collect();
        let customers = Customers { of_flows: &of_flows, weights: &weights };
        let streams = ["hcsfq", "hcsfq.root"].map(|name| Stream::new(1, name));
        let [random, root] = streams;
        Hcsfq::new(&params, Rate::from_mbit(8), &customers, random, root)
    }

    /// The root and each customer start with that share, uncongested.
    fn with_share(weights: &[f64]) -> Hcsfq {
        hcsfq(weights, |params| params.fair_share.initial = Some(Rate::from_bit(SHARE as u64)))
    }

    fn labelled(flow: u32, label: f64) -> SimplePacket {
        let mut packet = packet(0, flow, 1_000);
        packet.set_label(LabelKind::Rate, Label::new(label));
        packet
    }

    fn queued(packets: u64) -> Backlog {
        Backlog { packets: Packets::new(packets), bytes: Bytes::new(1_000 * packets) }
    }

    /// Ten times the link's rate in packets of `flow`, for 20 ms: the root is congested, and its K_c not
    /// over.
    fn flood(hcsfq: &mut Hcsfq, flow: u32) {
        for i in 1..=200 {
            hcsfq.admit(Time::from_nanos(100_000 * i), &mut labelled(flow, 80e6), queued(20));
        }
        assert!(hcsfq.root.share.is_congested());
    }

    #[test]
    fn a_flow_that_changes_its_customer_is_dropped_by_the_share_of_the_new_one() {
        let mut hcsfq = hcsfq(&[1.0, 3.0], |_| {});
        assert_eq!((hcsfq.customer(FlowId(1)), hcsfq.customer(FlowId(5))), (1, 0));
        let set = |hcsfq: &mut Hcsfq, flow, customer| {
            BufferPolicy::<SimplePacket>::set_customer(hcsfq, FlowId(flow), CustomerId(customer))
        };
        assert!(set(&mut hcsfq, 5, 1) && set(&mut hcsfq, 1, 0));
        assert_eq!([1, 4, 5].map(|flow| hcsfq.customer(FlowId(flow))), [0, 0, 1]);
        // One that there is not is that of all others.
        set(&mut hcsfq, 5, 9);
        assert_eq!(hcsfq.customer(FlowId(5)), 0);
    }

    #[test]
    fn a_packet_is_dropped_by_the_share_of_its_customer_and_leaves_with_it() {
        // 1 - 1/4 of 10000 trials, 4 sigma = 4 sqrt(0.75·0.25·10000) = 173. The time does not move, so
        // neither do the averages and shares.
        let mut hcsfq = with_share(&[1.0, 1.0]);
        let early = Admission::Drop(DropReason::Early);
        let mut verdict = |label| hcsfq.admit(Time::ZERO, &mut labelled(1, label), queued(20));
        let drops = (0..10_000).filter(|_| verdict(4.0 * SHARE) == early).count();
        assert!(drops.abs_diff(7_500) < 173, "{drops}");
        assert!((0..10_000).all(|_| verdict(SHARE) == Admission::Accept));
        let mut relabelled = labelled(1, 4.0 * SHARE);
        while hcsfq.admit(Time::ZERO, &mut relabelled, queued(20)) != Admission::Accept {}
        assert_eq!(relabelled.label(LabelKind::Rate), Some(Label::new(SHARE)));
    }

    #[test]
    fn a_customer_has_its_weight_of_the_root_s_share_once_more_arrives_than_fits() {
        let mut hcsfq = with_share(&[1.0, 0.5, 3.0, 100.0]);
        assert_eq!([0, 1, 2, 3].map(|n| hcsfq.capacity(n)), [C; 4], "all of the link before that");
        flood(&mut hcsfq, 1);
        // W FS, and never more than the link.
        assert_eq!([0, 1, 2, 3].map(|n| hcsfq.capacity(n)), [SHARE, 0.5 * SHARE, 3.0 * SHARE, C]);
        // A root without an estimate limits no customer.
        let mut unknown = self::hcsfq(&[1.0, 1.0], |_| ());
        for i in 1..=200 {
            unknown.admit(Time::from_nanos(100_000 * i), &mut labelled(1, 80e6), queued(0));
        }
        assert_eq!((unknown.root.share.fair_share(), unknown.capacity(1)), (FairShare::Unknown, C));
    }

    #[test]
    fn the_root_counts_what_would_pass_if_customers_were_flows() {
        // Customer 1 arrives at 80 Mb/s and so passes one in 80e6/SHARE = 76 in the root's eyes once A_n is
        // known; its own share is known to be more. F after 20 ms at most: (1 - e^-0.2)·80e6 = 14.5e6 if all
        // passed.
        let mut hcsfq = with_share(&[1.0, 1.0]);
        hcsfq.customers[1].share = FairShareEstimator::new(
            &FairShareParams { initial: Some(Rate::from_mbit(1_000)), ..params() },
            Rate::from_mbit(8),
        );
        flood(&mut hcsfq, 1);
        let (root, customer) = (hcsfq.root.share.accepted_rate(), hcsfq.customers[1].share.accepted_rate());
        // 200 packets bring 14.5e6, one of them 76e3; as long as A_n grows the root lets more of them pass.
        assert!(customer > 14e6 && root < 0.25 * customer, "{root} and {customer}");
    }

    fn params() -> FairShareParams {
        HcsfqParams::from_args(&EntryArgs::of_paper(&ENTRY)).unwrap().fair_share
    }

    #[test]
    fn a_full_buffer_lowers_the_share_of_a_customer_above_its_part() {
        let mut hcsfq = with_share(&[1.0, 1.0, 1.0]);
        flood(&mut hcsfq, 1);
        let shares = |hcsfq: &Hcsfq| {
            let of = |share: &FairShareEstimator| share.fair_share().rate().unwrap() / SHARE;
            [of(&hcsfq.root.share), of(&hcsfq.customers[1].share), of(&hcsfq.customers[2].share)]
        };
        assert_eq!(shares(&hcsfq), [1.0; 3]);
        let at = Time::from_millis(20);
        let full = Admission::Drop(DropReason::Overflow);
        assert_eq!(hcsfq.admit(at, &mut labelled(1, 1.0), queued(64)), full);
        assert_eq!(shares(&hcsfq), [0.99, 0.99, 1.0]);
        // Customer 2 sends next to nothing: it did not fill the buffer.
        assert_eq!(hcsfq.admit(at, &mut labelled(2, 1.0), queued(64)), full);
        assert_eq!(shares(&hcsfq), [0.99 * 0.99, 0.99, 1.0]);
    }

    #[test]
    fn flows_that_are_in_no_table_share_one_customer() {
        let hcsfq = hcsfq(&[1.0, 1.0, 1.0], |_| ());
        assert_eq!([0, 1, 2, 3, 4_000_000_000].map(|flow| hcsfq.customer(FlowId(flow))), [0, 1, 2, 0, 0]);
        // Without a table there is one customer, and a number beyond the weights belongs to no customer.
        let bare = self::hcsfq(&[], |_| ());
        assert_eq!((bare.customers.len(), bare.customer(FlowId(3))), (1, 0));
        let of_flows = [CustomerId(7)];
        let customers = Customers { of_flows: &of_flows, weights: &[Weight::ONE] };
        let params = HcsfqParams::from_args(&EntryArgs::of_paper(&ENTRY)).unwrap();
        let stream = || Stream::new(1, "hcsfq");
        let beyond = Hcsfq::new(&params, Rate::from_mbit(8), &customers, stream(), stream());
        assert_eq!(beyond.customer(FlowId(0)), 0);
        let many = Customers { of_flows: &[], weights: &[Weight::ONE; MAX_CUSTOMERS + 9] };
        let many = Hcsfq::new(&params, Rate::from_mbit(8), &many, stream(), stream());
        assert_eq!(many.customers.len(), MAX_CUSTOMERS + 1, "bounded");
    }

    #[test]
    fn a_core_knows_customers_and_no_flows() {
        let role = |role| move |params: &mut HcsfqParams| params.role = role;
        let mut edge = hcsfq(&[1.0; 10], role(RouterRole::Any));
        let mut core = hcsfq(&[1.0; 10], role(RouterRole::Core));
        for i in 1..=5_000 {
            let mut fresh = packet(i, i % 1_000, 1_000);
            edge.admit(Time::from_millis(u64::from(i)), &mut fresh, queued(1));
            assert!(fresh.label(LabelKind::Rate).is_some());
            core.admit(Time::from_millis(u64::from(i)), &mut fresh, queued(1));
        }
        let state = |hcsfq: &Hcsfq| (hcsfq.edge.flows(), hcsfq.customers.len(), hcsfq.root.arrivals.flows());
        assert_eq!(state(&edge), (1_000, 10, 10));
        assert_eq!(state(&core), (0, 10, 10));
        assert_eq!(core.customer_of.len(), 10, "the table has grown by no packet");
        let fresh = Admission::Drop(DropReason::Policy);
        assert_eq!(core.admit(Time::from_secs(6), &mut packet(0, 0, 1_000), queued(1)), fresh);
        let bytes = size_of::<Customer>() + size_of::<crate::estimate::exponential::Averages<1>>() + 8;
        assert!(bytes <= 490, "{bytes} bytes a customer, as the head of this file says");
    }

    #[test]
    fn an_egress_takes_labels_off() {
        let mut hcsfq = hcsfq(&[], |params| params.egress = true);
        let mut packet = labelled(0, 1e6);
        assert_eq!(hcsfq.admit(Time::from_secs(1), &mut packet, queued(0)), Admission::Accept);
        assert_eq!(packet.label(LabelKind::Rate), None);
        let mut shown = Vec::new();
        BufferPolicy::<SimplePacket>::statistics(&hcsfq, &mut |name, _| shown.push(name));
        assert_eq!((shown.len(), shown.last()), (5, Some(&"customers")), "what the root shows, and its own");
    }

    /// C_n and FS_n of each customer after 10 s, with a queue that neither fills nor empties. Customer n has
    /// flows of weight 1 that send `rate` bits a second each, in packets of 1000 B.
    fn settled(weights: &[f64], flows: &[u32], rate: f64) -> Vec<[f64; 2]> {
        let mut hcsfq = hcsfq(weights, |_| ());
        let all: u32 = flows.iter().sum();
        hcsfq.customer_of =
            flows.iter().zip(0..).flat_map(|(&k, n)| (0..k).map(move |_| CustomerId(n))).collect();
        let gap = Span::from_secs_f64(8_000.0 / rate / f64::from(all));
        let mut now = Time::ZERO;
        let (mut sums, mut counted) = (std::vec![[0.0; 2]; flows.len()], 0.0);
        while now < Time::from_secs(10) {
            for flow in 0..all {
                now += gap;
                hcsfq.admit(now, &mut labelled(flow, rate), queued(20));
            }
            if now > Time::from_secs(2) {
                counted += 1.0;
                for (n, sum) in sums.iter_mut().enumerate() {
                    sum[0] += hcsfq.capacity(n);
                    sum[1] += hcsfq.customers[n].share.fair_share().rate().unwrap();
                }
            }
        }
        sums.into_iter().map(|sum| sum.map(|sum| sum / counted)).collect()
    }

    #[test]
    fn shares_settle_where_the_equations_say() {
        // 8 Mb/s by 1:1:2 are 2, 2 and 4; among 1, 4 and 8 flows of 2.5 Mb/s: 2, 0.5 and 0.5.
        let expected = [[2e6, 2e6], [2e6, 0.5e6], [4e6, 0.5e6]];
        for (settled, expected) in settled(&[1.0, 1.0, 2.0], &[1, 4, 8], 2.5e6).iter().zip(expected) {
            for (settled, expected) in settled.iter().zip(expected) {
                assert!((settled / expected - 1.0).abs() < 0.05, "{settled} for {expected}");
            }
        }
    }
}
