use super::*;
use crate::flow_setting::FlowSetting;
use crate::label::Label;
use crate::packet::SimplePacket;
use crate::param::EntryArgs;
use crate::testing::packet;
use crate::units::{Bytes, Packets, Span};
use std::vec::Vec;

/// A share that a label represents exactly: 2^20 bits a second.
const SHARE: f64 = 1_048_576.0;
const C: f64 = 8e6;

/// HCSFQ on 8 Mb/s with a buffer of 64 packets; flow i belongs to customer i with weight `weights[i]`.
fn hcsfq(weights: &[f64], change: impl FnOnce(&mut HcsfqParams)) -> Hcsfq {
    let mut params = HcsfqParams::from_args(&EntryArgs::of_paper(&ENTRY)).unwrap();
    change(&mut params);
    let weights: Vec<Weight> = weights.iter().map(|&weight| Weight::new(weight).unwrap()).collect();
    let of_flows: Vec<CustomerId> = (0..weights.len() as u32).map(CustomerId).collect();
    let customers = Customers { of_flows: &of_flows, weights: &weights, names: &[] };
    let streams = ["hcsfq", "hcsfq.root", "hcsfq.marking"].map(|name| Stream::new(1, name));
    Hcsfq::new(&params, Rate::from_mbit(8), &customers, streams)
}

/// HCSFQ whose root and customers start with that share, uncongested.
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

/// Sends ten times the link's rate in packets of `flow` for 20 ms: the root is congested, and its K_c has not
/// passed.
fn flood(hcsfq: &mut Hcsfq, flow: u32) {
    flood_from(hcsfq, Time::ZERO, flow);
}

fn flood_from(hcsfq: &mut Hcsfq, start: Time, flow: u32) {
    for i in 1..=200 {
        let at = start + Span::from_nanos(100_000 * i);
        hcsfq.admit(at, &mut labelled(flow, 80e6), queued(20));
    }
    assert!(hcsfq.root.share.is_congested());
}

#[test]
fn a_flow_that_changes_its_customer_is_dropped_by_the_share_of_the_new_one() {
    let mut hcsfq = hcsfq(&[1.0, 3.0], |_| {});
    assert_eq!((hcsfq.customer(FlowId(1)), hcsfq.customer(FlowId(5))), (1, 0));
    let set = |hcsfq: &mut Hcsfq, flow, customer| {
        BufferPolicy::<SimplePacket>::set_flow(
            hcsfq,
            FlowId(flow),
            FlowSetting::Customer(CustomerId(customer)),
        )
    };
    assert!(set(&mut hcsfq, 5, 1) && set(&mut hcsfq, 1, 0));
    assert_eq!([1, 4, 5].map(|flow| hcsfq.customer(FlowId(flow))), [0, 0, 1]);
    // A customer that does not exist stands for the one of all others.
    set(&mut hcsfq, 5, 9);
    assert_eq!(hcsfq.customer(FlowId(5)), 0);
}

#[test]
fn a_packet_is_dropped_by_the_share_of_its_customer_and_leaves_with_it() {
    // 1 - 1/4 of 10000 trials, 4 sigma = 4 sqrt(0.75·0.25·10000) = 173. Time stands still, and so do the
    // averages and shares.
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
    assert_eq!([0, 1, 2, 3].map(|n| hcsfq.capacity(n, 0.0)), [C; 4], "all of the link before that");
    flood(&mut hcsfq, 1);
    // W FS, and at most the link.
    assert_eq!([0, 1, 2, 3].map(|n| hcsfq.capacity(n, 0.0)), [SHARE, 0.5 * SHARE, 3.0 * SHARE, C]);
    // A root without an estimate limits no customer.
    let mut unknown = self::hcsfq(&[1.0, 1.0], |_| ());
    for i in 1..=200 {
        unknown.admit(Time::from_nanos(100_000 * i), &mut labelled(1, 80e6), queued(0));
    }
    assert_eq!((unknown.root.share.fair_share(), unknown.capacity(1, 0.0)), (FairShare::Unknown, C));
}

#[test]
fn by_delay_the_part_of_a_customer_does_not_follow_what_arrives() {
    let mut hcsfq = hcsfq(&[1.0; 10], |params| {
        params.fair_share.target_delay = Span::from_millis(20);
        params.fair_share.initial = Some(Rate::from_bit(SHARE as u64));
    });
    assert_eq!(hcsfq.capacity(3, 0.0), SHARE, "also while nothing arrives");
    // 1.2 of the link for 200 ms, then 0.8, in packets of ten customers, for 10 s. The queue stays at 30 ms.
    let (mut now, mut most) = (Time::ZERO, 0.0_f64);
    for i in 0_u32.. {
        if now >= Time::from_secs(10) {
            break;
        }
        let is_peak = now.as_nanos() / 200_000_000 % 2 == 0;
        now += Span::from_micros(if is_peak { 833 } else { 1_250 });
        hcsfq.admit(now, &mut labelled(i % 10, C / 10.0), queued(30));
        let customer = &hcsfq.customers[(i % 10) as usize].share;
        most = most.max(customer.accepted_rate() / customer.arrival_rate());
    }
    assert!(most < 1.05, "F of a customer is {most} of what arrives");
}

#[test]
fn the_root_counts_what_would_pass_if_customers_were_flows() {
    // Customer 1 arrives at 80 Mb/s, so one packet in 80e6/SHARE = 76 passes the root once A_n is known; its
    // own share is larger. F after 20 ms is at most (1 - e^-0.2)·80e6 = 14.5e6 if all passed.
    let mut hcsfq = with_share(&[1.0, 1.0]);
    hcsfq.customers[1].share = FairShareEstimator::new(
        &FairShareParams { initial: Some(Rate::from_mbit(1_000)), ..params() },
        Rate::from_mbit(8),
    );
    flood(&mut hcsfq, 1);
    let (root, customer) = (hcsfq.root.share.accepted_rate(), hcsfq.customers[1].share.accepted_rate());
    // 200 packets give 14.5e6, one of them 76e3; while A_n grows the root lets more of them pass.
    assert!(customer > 14e6 && root < 0.25 * customer, "{root} and {customer}");
}

fn params() -> FairShareParams {
    HcsfqParams::from_args(&EntryArgs::of_paper(&ENTRY)).unwrap().fair_share
}

#[test]
fn a_customer_has_at_least_what_its_guarantees_cover() {
    // 3 Mb/s of a flow for ten times K_α, then customer 1 floods, and the root has FS = SHARE until its K_c
    // has passed.
    let with = |flow, label| {
        let mut hcsfq = hcsfq(&[1.0, 4.0], |params| {
            params.fair_share.initial = Some(Rate::from_bit(SHARE as u64));
            params.fair_share.k_c = Span::from_secs(9);
        });
        for i in 0..375 {
            let at = Time::from_nanos(8_000_000 / 3 * i);
            hcsfq.admit(at, &mut labelled(flow, label), queued(20));
        }
        flood_from(&mut hcsfq, Time::from_secs(1), 1);
        [0, 1].map(|n| hcsfq.capacity(n, 0.0))
    };
    let [first, second] = with(0, 0.0);
    assert!((first / 3e6 - 1.0).abs() < 0.05 && second == 4.0 * SHARE, "{first} and {second}");
    assert_eq!(with(1, 0.0), [SHARE, 4.0 * SHARE], "within the plan a guarantee adds nothing");
    assert_eq!(with(0, 3e6), [SHARE, 4.0 * SHARE]);
}

#[test]
fn a_label_of_one_is_a_debt_where_guaranteed_packets_came_and_debts_are_paid() {
    let with = |marking, first: f64| {
        let mut hcsfq = hcsfq(&[1.0], |params| params.edge.marking = marking);
        for at in [1, 2] {
            hcsfq.admit(Time::from_millis(at), &mut labelled(0, first), queued(20));
        }
        let mut paid = labelled(0, 1.0);
        assert_eq!(hcsfq.admit(Time::from_millis(3), &mut paid, queued(20)), Admission::Accept);
        assert_eq!(paid.label(LabelKind::Rate), Some(Label::new(1.0)), "and stays one");
        hcsfq.counted(0, RateLabel::Excess(1.0)) == RateLabel::Guaranteed
    };
    assert!(with(Marking::Debt, 0.0));
    assert!(!with(Marking::Debt, 2.0) && !with(Marking::Probabilistic, 0.0));
}

#[test]
fn the_last_of_the_buffer_is_for_guaranteed_packets_of_any_customer() {
    // 10 % of 64 packets: from 58 on; for debts half of it: from 61 on.
    let verdicts = |first: f64| {
        let mut hcsfq = hcsfq(&[1.0, 1.0], |params| {
            params.edge.marking = Marking::Debt;
            params.reserve = Ratio::clamped(0.1);
        });
        let mut verdict = |flow, label, packets| {
            hcsfq.admit(Time::from_millis(1), &mut labelled(flow, label), queued(packets))
                == Admission::Accept
        };
        verdict(0, first, 0);
        [
            verdict(1, 1e3, 57),
            verdict(1, 1e3, 58),
            verdict(0, 1.0, 60),
            verdict(0, 1.0, 61),
            verdict(1, 0.0, 63),
        ]
    };
    assert_eq!(verdicts(0.0), [true, false, true, false, true]);
    assert_eq!(verdicts(1e3), [true; 5]);
}

#[test]
fn only_an_edge_marks_what_is_guaranteed() {
    for (role, knows) in [(RouterRole::Edge, true), (RouterRole::Any, true), (RouterRole::Core, false)] {
        let mut hcsfq = hcsfq(&[1.0], |params| params.role = role);
        let g = Rate::from_mbit(8);
        let taken = BufferPolicy::<SimplePacket>::set_flow(
            &mut hcsfq,
            FlowId(4),
            FlowSetting::Guarantee(g, Span::ZERO),
        );
        assert_eq!(taken, knows);
        assert_eq!(hcsfq.edge.flows(), if knows { 5 } else { 0 });
        let mut fresh = packet(0, 4, 1_000);
        hcsfq.admit(Time::from_secs(1), &mut fresh, queued(0));
        assert_eq!(fresh.label(LabelKind::Rate) == Some(Label::ZERO), knows);
    }
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
    // Customer 2 sends next to nothing: it has not filled the buffer.
    assert_eq!(hcsfq.admit(at, &mut labelled(2, 1.0), queued(64)), full);
    assert_eq!(shares(&hcsfq), [0.99 * 0.99, 0.99, 1.0]);
}

#[test]
fn flows_that_are_in_no_table_share_one_customer() {
    let hcsfq = hcsfq(&[1.0, 1.0, 1.0], |_| ());
    assert_eq!([0, 1, 2, 3, 4_000_000_000].map(|flow| hcsfq.customer(FlowId(flow))), [0, 1, 2, 0, 0]);
    // Without a table there is one customer, and a number beyond the weights names no customer.
    let bare = self::hcsfq(&[], |_| ());
    assert_eq!((bare.customers.len(), bare.customer(FlowId(3))), (1, 0));
    let of_flows = [CustomerId(7)];
    let customers = Customers { of_flows: &of_flows, weights: &[Weight::ONE], names: &[] };
    let params = HcsfqParams::from_args(&EntryArgs::of_paper(&ENTRY)).unwrap();
    let streams = || [Stream::new(1, "hcsfq"), Stream::new(1, "root"), Stream::new(1, "marking")];
    let beyond = Hcsfq::new(&params, Rate::from_mbit(8), &customers, streams());
    assert_eq!(beyond.customer(FlowId(0)), 0);
    let many = Customers { of_flows: &[], weights: &[Weight::ONE; MAX_CUSTOMERS + 9], names: &[] };
    let many = Hcsfq::new(&params, Rate::from_mbit(8), &many, streams());
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
    assert!(bytes <= 536, "{bytes} bytes a customer, as the head of this file says");
}

#[test]
fn turns_are_weighted_by_what_a_flow_may_send() {
    // No share is known: FS = C = 8 Mb/s. With a guarantee of 4 Mb/s 1 + 4/8. Covered packets go first.
    let mut hcsfq = hcsfq(&[], |_| ());
    let setting = FlowSetting::Guarantee(Rate::from_mbit(4), Span::ZERO);
    BufferPolicy::<SimplePacket>::set_flow(&mut hcsfq, FlowId(1), setting);
    let mut turn = |mut packet: SimplePacket| {
        hcsfq.admit(Time::from_secs(1), &mut packet, queued(0));
        BufferPolicy::<SimplePacket>::turn(&hcsfq)
    };
    let weighted = |weight| Turn::Weighted(Weight::new(weight).unwrap());
    assert_eq!(turn(packet(0, 0, 1_000)), weighted(1.0));
    assert_eq!(turn(packet(1, 1, 1_000)), Turn::First);
    assert_eq!(turn(labelled(1, 1e6)), Turn::Arrival);
    assert_eq!(hcsfq.edge.turn(FlowId(1), 1.0, 8e6), weighted(1.5));
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
/// `flows[n]` flows of weight 1 that send `rate` bits a second each, in packets of 1000 B. A guarantee covers
/// `covered[n]` of ten packets of its first flow.
fn settled(weights: &[f64], flows: &[u32], covered: &[u32], rate: f64) -> Vec<[f64; 2]> {
    let mut hcsfq = hcsfq(weights, |_| ());
    let all: u32 = flows.iter().sum();
    hcsfq.customer_of =
        flows.iter().zip(0..).flat_map(|(&k, n)| (0..k).map(move |_| CustomerId(n))).collect();
    let gap = Span::from_secs_f64(8_000.0 / rate / f64::from(all));
    let mut now = Time::ZERO;
    let (mut sums, mut counted) = (std::vec![[0.0; 2]; flows.len()], 0.0);
    for round in 0.. {
        if now >= Time::from_secs(10) {
            break;
        }
        for flow in 0..all {
            now += gap;
            let n = hcsfq.customer_of[flow as usize].0 as usize;
            let is_first = flow == flows[..n].iter().sum();
            let covered = if is_first { covered[n] } else { 0 };
            let label = if round % 10 < covered { 0.0 } else { rate * (1.0 - f64::from(covered) / 10.0) };
            hcsfq.admit(now, &mut labelled(flow, label), queued(20));
        }
        if now > Time::from_secs(2) {
            counted += 1.0;
            for (n, sum) in sums.iter_mut().enumerate() {
                sum[0] += hcsfq.capacity(n, 0.0);
                sum[1] += hcsfq.customers[n].share.fair_share().rate().unwrap();
            }
        }
    }
    sums.into_iter().map(|sum| sum.map(|sum| sum / counted)).collect()
}

/// Asserts that `settled` is within 5 % of `expected`.
fn assert_near(settled: &[[f64; 2]], expected: &[[f64; 2]]) {
    for (settled, expected) in settled.iter().flatten().zip(expected.iter().flatten()) {
        assert!((settled / expected - 1.0).abs() < 0.05, "{settled} for {expected}");
    }
}

#[test]
fn shares_settle_where_the_equations_say() {
    // 8 Mb/s by 1:1:2 are 2, 2 and 4; among 1, 4 and 8 flows of 2.5 Mb/s: 2, 0.5 and 0.5.
    let got = settled(&[1.0, 1.0, 2.0], &[1, 4, 8], &[0; 3], 2.5e6);
    assert_near(&got, &[[2e6, 2e6], [2e6, 0.5e6], [4e6, 0.5e6]]);
}

#[test]
fn guarantees_are_floors_of_customers_and_of_flows() {
    // Flows of 4 Mb/s. 2.8 of the first customer's are covered, above its share: 5.2 are left, by 1:2 1.73
    // and 3.47. In the latter 0.8 of a flow are covered: 2.67 are left for it and its two siblings, 0.89
    // each. The hundredth that siblings of the first get is within the tolerance.
    let got = settled(&[1.0, 1.0, 2.0], &[2, 4, 3], &[7, 0, 2], 4e6);
    assert_near(&got[..1], &[[2.8e6, got[0][1]]]);
    assert!(got[0][1] < 0.02 * 2.8e6, "{got:?}");
    assert_near(&got[1..], &[[1.733e6, 0.433e6], [3.467e6, 0.889e6]]);
}

/// The part of the link that two flows without customers use in the 4 s after the first, with default parameters. Both send
/// 8 Mb/s, the first only what a guarantee of `guarantee` Mb/s covers if there is one.
fn used(guarantee: u64) -> f64 {
    let params = HcsfqParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
    let streams = ["hcsfq", "hcsfq.root", "hcsfq.marking"].map(|name| Stream::new(1, name));
    let mut hcsfq = Hcsfq::new(&params, Rate::from_mbit(8), &Customers::default(), streams);
    let setting = FlowSetting::Guarantee(Rate::from_mbit(guarantee), Span::ZERO);
    BufferPolicy::<SimplePacket>::set_flow(&mut hcsfq, FlowId(0), setting);
    let (mut backlog, mut served) = (0, 0);
    // A packet leaves in each millisecond.
    for ms in 1..=5_000 {
        for flow in [0, 1] {
            let is_sent = flow == 1 || guarantee == 0 || ms % 8 < guarantee;
            let admits = |hcsfq: &mut Hcsfq| {
                let at = Time::from_millis(ms) + Span::from_micros(400) * u64::from(flow);
                hcsfq.admit(at, &mut packet(0, flow, 1_000), queued(backlog)) == Admission::Accept
            };
            backlog += u64::from(is_sent && admits(&mut hcsfq));
        }
        served += u64::from(backlog > 0 && ms > 1_000);
        backlog = backlog.saturating_sub(1);
    }
    served as f64 / 4_000.0
}

#[test]
fn floods_that_begin_use_the_link() {
    let used = used(0);
    assert!(used > 0.97, "{used}");
}

#[test]
fn a_large_guarantee_of_the_only_customer_leaves_the_rest() {
    let used = used(6);
    assert!(used > 0.95, "{used}");
}
