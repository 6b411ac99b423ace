#[path = "../../../tests/it/reference/sffc.rs"]
mod reference;

use std::vec::Vec;

use apportion_testing::properties::cases;
use proptest::prelude::*;

use super::*;
use crate::aqm::BufferPolicy;
use crate::buffer::Buffer;
use crate::limit::Limit;
use crate::packet::{Protocol, SimplePacket};
use crate::param::EntryArgs;
use crate::queue::Queue;
use crate::schedule::fifo::Fifo;
use crate::system::catalog::Selection;
use crate::testing::{Log, packet};
use crate::units::Packets;

/// SF-FC on a link of 10 Mb/s with intervals of 50 ms: 62,500 bytes in each. Averages extend over one
/// interval, so that numbers are simple. Cuts are shares, and only overflows are reported, unless set;
/// `rates.rs` tests cuts of rates.
pub(super) struct Bench {
    pub(super) queue: Buffer<Fifo<SimplePacket>, Sffc>,
    log: Log,
}

const CAPACITY: f64 = 62_500.0;

/// Settings of the bench.
const PLAIN: [(&str, &str); 5] = [
    ("limit", "100MB"),
    ("history", "1"),
    ("discard", "share"),
    ("report_discards", "100%"),
    ("spare", "share"),
];

impl Bench {
    pub(super) fn new(pairs: &[(&str, &str)]) -> Self {
        let mut selection = Selection::new("sffc", None, None).unwrap();
        for (key, value) in PLAIN.iter().chain(pairs) {
            selection.set(key, value).unwrap();
        }
        let params = SffcParams::from_args(&selection.args.of(&SFFC)).unwrap();
        let sffc = Sffc::new(&params, Rate::from_mbit(10), Stream::new(1, "sffc"), Stream::new(1, "trials"));
        Self { queue: Buffer::new(Fifo::new(), sffc), log: Log::default() }
    }

    pub(super) fn sffc(&self) -> &Sffc {
        self.queue.policy()
    }

    pub(super) fn flow(&self, flow: u32) -> &Flow {
        self.sffc().flows.get(FlowId(flow)).unwrap()
    }

    /// One interval: `bytes` of each flow arrive in packets of 100, in turns, and packets that are not
    /// discarded leave at once.
    pub(super) fn interval(&mut self, flows: &[(u32, Protocol, u64)]) {
        let now = self.sffc().interval_ends() - Span::from_millis(1);
        let rounds = flows.iter().map(|&(.., bytes)| bytes / 100).max().unwrap_or(0);
        for round in 0..rounds {
            for &(flow, protocol, _) in flows.iter().filter(|&&(.., bytes)| round < bytes / 100) {
                let arriving = SimplePacket { protocol, ..packet(round as u32, flow, 100) };
                self.queue.enqueue(now, arriving, &mut self.log);
                self.queue.dequeue(now, &mut self.log);
            }
        }
        self.queue.policy_mut().advance(now + Span::from_millis(1));
    }

    pub(super) fn on_report(&mut self, flow: u32, arrived: u64, departed: u64) {
        self.queue.policy_mut().on_report(FlowReport {
            flow: FlowId(flow),
            arrived: Bytes::new(arrived),
            departed: Bytes::new(departed),
            interval: Span::from_millis(50),
        });
    }
}

use Protocol::{Tcp, Udp};

pub(super) fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
}

#[test]
fn a_report_moves_the_basic_discard_rate_to_what_the_next_router_could_forward() {
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 50_000)]);
    near(bench.flow(0).bdr, 0.0);
    // Eq. 2: 1 - (20/50)·50/50 = 0.6 would have avoided all losses; eq. 3 goes half the way from 0.
    bench.on_report(0, 50_000, 20_000);
    bench.interval(&[(0, Udp, 50_000)]);
    near(bench.flow(0).bdr, 0.3);
    near(bench.flow(0).v, 0.3);
    // In the next interval some 35,000 leave, of which it forwards 20,000: again 0.6 is wanted, 0.45 set.
    bench.interval(&[(0, Udp, 50_000)]);
    let left = bench.flow(0).left.mean(1);
    bench.on_report(0, left as u64, 20_000);
    bench.interval(&[(0, Udp, 50_000)]);
    let left_then = bench.flow(0).left.mean(1);
    let wanted = 1.0 - 20_000.0 / left * left_then / 50_000.0;
    near(bench.flow(0).bdr, 0.15 + wanted / 2.0);
    assert!((bench.flow(0).bdr - 0.45).abs() < 0.03, "{}", bench.flow(0).bdr);
}

#[test]
fn the_rates_of_reports_count_not_their_amounts() {
    // Half the bytes in half the time.
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 50_000)]);
    let (flow, interval) = (FlowId(0), Span::from_millis(25));
    let [arrived, departed] = [25_000, 10_000].map(Bytes::new);
    bench.queue.policy_mut().on_report(FlowReport { flow, arrived, departed, interval });
    bench.interval(&[(0, Udp, 50_000)]);
    near(bench.flow(0).bdr, 0.3);
}

#[test]
fn without_reports_a_flow_may_send_more_after_an_interval_of_patience() {
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 50_000)]);
    bench.on_report(0, 50_000, 20_000);
    bench.interval(&[(0, Udp, 50_000)]);
    bench.interval(&[(0, Udp, 50_000)]);
    near(bench.flow(0).bdr, 0.3);
    // Eq. 4: I is 0.5 % of 62,500, which is 0.00625 of 50,000.
    bench.interval(&[(0, Udp, 50_000)]);
    near(bench.flow(0).bdr, 0.3 - 0.006_25);
    for _ in 0..60 {
        bench.interval(&[(0, Udp, 50_000)]);
    }
    near(bench.flow(0).bdr, 0.0);
}

#[test]
fn a_report_of_regular_loss_lets_a_flow_send_more_too() {
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 50_000)]);
    bench.on_report(0, 50_000, 20_000);
    bench.interval(&[(0, Udp, 50_000)]);
    bench.on_report(0, 35_000, 33_600);
    bench.interval(&[(0, Udp, 50_000)]);
    near(bench.flow(0).bdr, 0.3 - 0.006_25);
}

#[test]
fn an_inflated_report_asks_for_no_less_than_what_it_says_has_left() {
    // 50,000, 50,000 and four times 20,000 bytes are sent; a report claims that 15,000 of 10^9 have left. Of
    // the 20,000 that arrive here 15,000 may go on: 0.25 is asked for, half of it set, and the honest report
    // gives the same result.
    for arrived in [1_000_000_000, 20_000] {
        let mut bench = Bench::new(&[("history", "3")]);
        for bytes in [50_000, 50_000, 20_000, 20_000, 20_000] {
            bench.interval(&[(0, Udp, bytes)]);
        }
        bench.on_report(0, arrived, 15_000);
        bench.interval(&[(0, Udp, 20_000)]);
        near(bench.flow(0).bdr, 0.125);
    }
    // More departures than arrivals are no loss.
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 50_000)]);
    bench.on_report(0, 10_000, 20_000);
    bench.interval(&[(0, Udp, 50_000)]);
    near(bench.flow(0).bdr, 0.0);
}

#[test]
fn a_report_counts_for_the_interval_it_comes_in() {
    // The flow is paused when the report comes, and returns: nothing is known of it then.
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 50_000)]);
    bench.on_report(0, 50_000, 20_000);
    bench.interval(&[(1, Udp, 100)]);
    bench.interval(&[(0, Udp, 50_000), (1, Udp, 100)]);
    near(bench.flow(0).bdr, 0.0);
    // Its pause is no interval without departures: the mean of three is the 50,000 of each time it sent.
    assert!(bench.flow(0).left.mean(3) > 40_000.0);
}

/// FB as a fraction of the link, with nine flows of low rate and one of 10 Mb/s, next to an adaptive one of 5
/// Mb/s.
fn fair_bandwidth_with_small_flows(share: &str) -> f64 {
    let mut bench = Bench::new(&[("share", share)]);
    let tiny = (1..10).map(|n| (n, Udp, 200));
    let flows: Vec<_> = tiny.chain([(0, Udp, 62_500), (10, Tcp, 31_200)]).collect();
    bench.interval(&flows);
    bench.sffc().fair_bandwidth / CAPACITY
}

#[test]
fn many_small_flows_do_not_make_a_greedy_one_rich() {
    // The small flows use 1,800 of 62,500 bytes and leave 60,700 to two.
    near(fair_bandwidth_with_small_flows("needs"), (1_800.0 + 60_700.0 / 2.0) / CAPACITY);
    // In eq. 5, ten of eleven flows have ten parts, and the one gets what the nine do not use.
    near(fair_bandwidth_with_small_flows("count"), 10.0 / 11.0);
}

#[test]
fn without_adaptive_flows_the_others_have_the_whole_link() {
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 100_000), (1, Udp, 10_000), (2, Udp, 100_000)]);
    near(bench.sffc().fair_bandwidth / CAPACITY, 1.0);
    near(bench.flow(0).v, 1.0 - 26_250.0 / 100_000.0);
    near(bench.flow(1).v, 0.0);
}

#[test]
fn flows_grow_together_by_what_one_alone_would() {
    // A flow of 10,000 bytes; I is 312.5. Three others are cut too, or only send.
    let rise = |group: &str, cut: u32| {
        let mut bench = Bench::new(&[("group", group)]);
        let flows = [0, 1, 2, 3].map(|flow| (flow, Udp, 10_000));
        bench.interval(&flows);
        (0..cut).for_each(|flow| bench.on_report(flow, 10_000, 4_000));
        bench.interval(&flows);
        bench.interval(&flows);
        let before = bench.flow(0).bdr;
        bench.interval(&flows);
        (before - bench.flow(0).bdr) * 10_000.0
    };
    near(rise("true", 1), 312.5);
    near(rise("true", 4), 312.5 / 4.0);
    near(rise("false", 4), 312.5);
}

#[test]
fn no_flow_is_starved_by_reports_about_it() {
    let mut bench = Bench::new(&[("active", "10s")]);
    for _ in 0..100 {
        bench.interval(&[(0, Udp, 50_000)]);
        bench.on_report(0, 50_000, 0);
    }
    // I of 312.5 bytes in 50 ms is left, 50 kbit/s.
    near(bench.flow(0).bdr, 1.0 - 312.5 / 50_000.0);
    // I is shared by two flows. If no packet of a flow remains by chance, there is nothing to be reported,
    // and it grows.
    let highest = (0..100).fold(0.0f64, |highest, _| {
        bench.interval(&[(0, Udp, 50_000), (1, Udp, 50_000)]);
        (0..2).for_each(|flow| bench.on_report(flow, 50_000, 0));
        highest.max(bench.flow(0).bdr)
    });
    near(highest, 1.0 - 312.5 / 2.0 / 50_000.0);
}

/// The bytes left of a flow of 60,000 after many reports without departures, next to this traffic.
fn left_of_a_flow(pairs: &[(&str, &str)], others: &[(u32, Protocol, u64)]) -> f64 {
    let mut bench = Bench::new(pairs);
    let flows = [&[(0, Udp, 60_000)], others].concat();
    for _ in 0..30 {
        bench.on_report(0, 60_000, 0);
        bench.interval(&flows);
    }
    60_000.0 * (1.0 - bench.flow(0).bdr)
}

#[test]
fn reports_that_are_trusted_within_bounds_cut_no_flow_below_its_fair_share() {
    const BOUNDED: &[(&str, &str)] = &[("trust", "bounded")];
    // On a link with room they have no effect, whatever the other flows. As in the paper, I is left: 0.5 % of
    // 62,500.
    for others in [&[][..], &[(1, Udp, 2_500)], &[(1, Tcp, 2_500)]] {
        near(left_of_a_flow(BOUNDED, others), 60_000.0);
        near(left_of_a_flow(&[], others), 312.5);
    }
    // The fair share: half of the link; the rest beside a small flow; a third.
    near(left_of_a_flow(BOUNDED, &[(1, Udp, 40_000)]), 31_250.0);
    near(left_of_a_flow(BOUNDED, &[(1, Udp, 5_000)]), 57_500.0);
    near(left_of_a_flow(BOUNDED, &[(1, Tcp, 2_600), (2, Tcp, 100)]), CAPACITY / 3.0);
}

#[test]
fn only_what_was_lost_to_an_overflow_is_reported() {
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 30_000), (1, Tcp, 10_000)]);
    assert_eq!(bench.queue.policy_mut().take_reports(), []);
    BufferPolicy::<SimplePacket>::set_limit(bench.queue.policy_mut(), Limit::Packets(Packets::new(1)));
    let now = bench.sffc().interval_ends() - Span::from_millis(1);
    for id in 0..3 {
        bench.queue.enqueue(now, packet(id, 0, 1_000), &mut bench.log);
    }
    bench.queue.dequeue(now, &mut bench.log);
    let end = bench.sffc().interval_ends();
    bench.queue.policy_mut().advance(end);
    // Adaptive flows are not reported.
    let [report] = bench.queue.policy_mut().take_reports()[..] else { panic!("one report") };
    assert_eq!((report.flow, report.arrived), (FlowId(0), Bytes::new(3_000)));
    assert_eq!((report.departed, report.interval), (Bytes::new(1_000), Span::from_millis(50)));
    let end = bench.sffc().interval_ends();
    bench.queue.policy_mut().advance(end);
    assert_eq!(bench.queue.policy_mut().take_reports(), [], "the next interval had no overflow");
}

#[test]
fn a_router_that_reports_its_own_discards_never_falls_silent() {
    let reports = |more: &[(&str, &str)]| {
        let mut bench = Bench::new(more);
        bench.interval(&[(0, Udp, 50_000)]);
        bench.on_report(0, 50_000, 20_000);
        bench.interval(&[(0, Udp, 50_000)]);
        bench.interval(&[(0, Udp, 50_000)]);
        bench.queue.policy_mut().take_reports().len()
    };
    assert_eq!(reports(&[]), 0);
    assert_eq!(reports(&[("report_discards", "5%")]), 1);
    assert_eq!(reports(&[("report_discards", "5%"), ("reports", "false")]), 0);
}

/// The rate that each flow may send after `intervals`, in Mb/s, with five unresponsive flows of 2, 4, 6, 8
/// and 10 Mb/s, and five adaptive ones of 1 Mb/s each that ignore losses.
fn five_and_five(intervals: u32, pairs: &[(&str, &str)]) -> Vec<f64> {
    let mut bench = Bench::new(pairs);
    // 1 Mb/s is 6,250 bytes in 50 ms; packets have 100.
    let udp = (1..=5).map(|n| (n, Udp, 12_500 * u64::from(n)));
    let flows: Vec<_> = udp.chain((6..=10).map(|n| (n, Tcp, 6_200))).collect();
    for _ in 0..intervals {
        bench.interval(&flows);
    }
    (1..=5).map(|n| (1.0 - bench.flow(n).v) * f64::from(2 * n)).collect()
}

#[test]
fn unresponsive_flows_share_their_part_max_min_fairly() {
    // W is half of 10 Mb/s: 1 each of five. The adaptive flows leave 10 - 5·6,200/6,250 = 5.04.
    let shares = five_and_five(3, &[]);
    assert!(shares.iter().all(|share| (share - 1.008).abs() < 1e-9), "{shares:?}");
}

#[test]
fn what_is_left_of_steady_adaptive_flows_is_not_below_the_share() {
    // They send 8 Mb/s and leave 2; W is 5. As printed, they keep what they take.
    let rates = |pairs: &[(&str, &str)]| {
        let mut bench = Bench::new(pairs);
        for _ in 0..3 {
            bench.interval(&[(0, Udp, 62_500), (1, Tcp, 50_000)]);
        }
        bench.sffc().fair_bandwidth / CAPACITY
    };
    near(rates(&[]), 0.5);
    near(rates(&[("spare", "printed")]), 0.2);
}

#[test]
fn what_adaptive_flows_leave_is_lent_slowly_and_taken_back_when_they_lose() {
    // W is 31,250; 10,000 of an adaptive flow leave 21,250, of which 2 % of the link, 1,250, stay.
    let mut bench = Bench::new(&[("spare", "lent")]);
    let flows = [(0, Udp, 62_500), (1, Tcp, 10_000)];
    bench.interval(&flows);
    near(bench.sffc().fair_bandwidth, 31_250.0 + 312.5);
    bench.interval(&flows);
    near(bench.sffc().fair_bandwidth, 31_250.0 + 625.0);
    (0..150).for_each(|_| bench.interval(&flows));
    near((bench.sffc().fair_bandwidth / 10.0).round(), (31_250.0f64 + 20_000.0) / 10.0);
    // The adaptive flow loses a packet.
    BufferPolicy::<SimplePacket>::set_limit(bench.queue.policy_mut(), Limit::Packets(Packets::ZERO));
    bench.interval(&flows);
    near((bench.sffc().fair_bandwidth / 10.0).round(), (31_250.0f64 + 10_000.0) / 10.0);
}

#[test]
fn growing_adaptive_flows_get_their_share() {
    // γ starts from zero, which brings ρ to 0.9, then doubles four times: 0.9 ρ + 0.05 each time. Below 0.9 W
    // counts, not the rest that they leave.
    let mut bench = Bench::new(&[]);
    for bytes in [1_000, 2_000, 4_000, 8_000, 16_000] {
        bench.interval(&[(0, Udp, 62_500), (1, Tcp, bytes)]);
    }
    near(bench.sffc().rho, 0.4 * 0.9 * 0.9 * 0.9 * 0.9 + 0.5);
    near(bench.sffc().fair_bandwidth / CAPACITY, 0.5);
}

#[test]
fn the_divisor_as_printed_starves_unresponsive_flows_with_departures_for_usage() {
    // W is 5 Mb/s, ten flows divide it: 0.5 each. 2.5 left, which is below W and becomes FB: 0.25, 0.125, ...
    let printed = [("usage", "departures"), ("divisor", "all"), ("recount", "true"), ("spare", "printed")];
    let after = |intervals| five_and_five(intervals, &printed)[4];
    near(after(1), 0.5);
    assert!((after(2) - 0.25).abs() < 0.02, "{}", after(2));
    assert!((after(3) - 0.125).abs() < 0.02, "{}", after(3));
    assert!(after(12) < 0.01, "{}", after(12));
    // By itself the printed form gives half of the due rate.
    let shares = five_and_five(12, &[("divisor", "all")]);
    assert!(shares.iter().all(|share| (0.45..0.56).contains(share)), "{shares:?}");
}

#[test]
fn departures_for_usage_freeze_flows_at_their_rate() {
    // An adaptive flow leaves 2 of 10 Mb/s to one of 10 Mb/s, with eq. 7 as printed. When it falls silent, W
    // is 5 and the whole link is left over. But the departures, 2, are below W, and so become FB again;
    // chance lowers them, and never raises them.
    let kept = |usage: &str| {
        let mut bench = Bench::new(&[("usage", usage), ("spare", "printed"), ("active", "10s")]);
        for _ in 0..3 {
            bench.interval(&[(0, Udp, 62_500), (1, Tcp, 50_000)]);
        }
        for _ in 0..20 {
            bench.interval(&[(0, Udp, 62_500)]);
        }
        1.0 - bench.flow(0).v
    };
    assert!(kept("departures") < 0.25, "{}", kept("departures"));
    near(kept("demand"), 1.0);
}

#[test]
fn the_final_rate_as_the_previous_one_makes_cuts_stay() {
    // FB cuts the flow of 10 Mb/s to 5 next to an adaptive one. When that is gone, BDR by itself is 0; from v
    // it has to climb by I.
    let bdr = |previous: &str| {
        let mut bench = Bench::new(&[("previous", previous), ("active", "50ms")]);
        for _ in 0..4 {
            bench.interval(&[(0, Udp, 62_500), (1, Tcp, 31_200)]);
        }
        for _ in 0..3 {
            bench.interval(&[(0, Udp, 62_500)]);
        }
        bench.flow(0).bdr
    };
    near(bdr("bdr"), 0.0);
    assert!(bdr("final") > 0.4, "{}", bdr("final"));
}

#[test]
fn recounting_gives_out_too_little() {
    let lambda = [0.6, 2.7, 4.7];
    let mut delta = Vec::new();
    max_min_estimate(7.8, &lambda, 3, true, &mut delta);
    assert!((delta.iter().sum::<f64>() - 6.9).abs() < 1e-9, "{delta:?}");
    max_min_estimate(7.8, &lambda, 3, false, &mut delta);
    assert!((delta[2] - 4.5).abs() < 1e-9, "{delta:?}");

    // Demands of 2,000, 9,000, 25,000 and 50,000 bytes for 62,500: 15,625 each; two leave 20,250, 10,125 more
    // for each of the others, of which the third leaves 750. With `recount`, four are satisfied by then and
    // the division ends.
    let share = |recount: &str| {
        let mut bench = Bench::new(&[("recount", recount)]);
        bench.interval(&[(0, Udp, 2_000), (1, Udp, 9_000), (2, Udp, 25_000), (3, Udp, 50_000)]);
        (1.0 - bench.flow(3).v) * 50_000.0
    };
    near(share("true"), 25_750.0);
    near(share("false"), 26_500.0);
}

#[test]
fn nbq_discards_what_is_reported_and_nothing_else() {
    let defaults = SffcParams::from_args(&EntryArgs::defaults(&NBQ)).unwrap();
    let params = SffcParams { discard: Discard::Share, ..defaults };
    let sffc = Sffc::new(&params, Rate::from_mbit(10), Stream::new(1, "nbq"), Stream::new(1, "trials"));
    let mut bench = Bench { queue: Buffer::new(Fifo::new(), sffc), log: Log::default() };
    bench.interval(&[(0, Udp, 100_000), (1, Tcp, 10_000)]);
    bench.interval(&[(0, Udp, 100_000), (1, Tcp, 10_000)]);
    near(bench.flow(0).v, 0.0);
    bench.on_report(0, 100_000, 50_000);
    bench.interval(&[(0, Udp, 100_000), (1, Tcp, 10_000)]);
    near(bench.flow(0).v, 0.25);
}

#[test]
fn messages_between_routers_are_neither_counted_nor_discarded() {
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Protocol::Control, 100_000)]);
    assert!(bench.sffc().flows.is_empty());
    assert_eq!(bench.log.dropped, []);
}

#[test]
fn a_silent_flow_is_forgotten_and_a_long_silence_costs_nothing() {
    let mut bench = Bench::new(&[]);
    for flow in 0..1_000 {
        bench.interval(&[(flow, Udp, 100)]);
    }
    // Active for 500 ms: this interval and the ten before.
    assert!(bench.sffc().flows.len() <= 11, "{}", bench.sffc().flows.len());
    let year = Time::from_secs(365 * 24 * 3_600);
    bench.queue.policy_mut().advance(year);
    assert!(bench.sffc().flows.is_empty());
    let ends = bench.sffc().interval_ends();
    assert!(ends > year && ends.since(year) <= Span::from_millis(50));
}

#[test]
fn a_flow_that_changes_its_protocol_starts_anew() {
    let mut bench = Bench::new(&[]);
    bench.interval(&[(0, Udp, 50_000)]);
    assert!(bench.sffc().carries(FlowId(0)));
    bench.interval(&[(0, Tcp, 50_000)]);
    assert!(!bench.sffc().carries(FlowId(0)));
}

proptest! {
    #![proptest_config(cases(10_000))]
    /// With both switches the result is the figure's; with neither, water filling.
    #[test]
    fn the_division_is_the_one_printed_or_the_one_meant(
        amount in 0.01..100.0,
        lambda in proptest::collection::vec(0.01..20.0, 1..30),
        adaptive in 0usize..10,
    ) {
        let mut delta = Vec::new();
        max_min_estimate(amount, &lambda, lambda.len() + adaptive, true, &mut delta);
        let literal = reference::max_min_estimate(amount, &lambda, adaptive);
        prop_assert_eq!(&delta, &literal);
        max_min_estimate(amount, &lambda, lambda.len(), false, &mut delta);
        let meant = reference::water_filling(amount, &lambda);
        for (share, due) in delta.iter().zip(&meant) {
            prop_assert!((share - due).abs() < 1e-6, "{:?} {:?}", delta, meant);
        }
    }
}

#[test]
fn departures_are_averaged_over_the_intervals_that_a_report_may_be_about() {
    let wanted = |history| {
        let params = SffcParams { history, ..SffcParams::from_args(&EntryArgs::defaults(&SFFC)).unwrap() };
        let mut flows = Flows::default();
        let flow = flows.seen(FlowId(0), Time::ZERO, false);
        flow.lambda = 3_000;
        [1_000, 2_000, 3_000].into_iter().for_each(|amount| flow.left.push(amount));
        flow.wanted_discard_rate([1_000.0, 500.0], &params).unwrap()
    };
    // Half of the arrivals passed. Of 3000 B, 1 - 0.5 · 2000/3000 are too much if 2000 B left here, and half
    // if 3000 B did.
    assert!((wanted(3) - 2.0 / 3.0).abs() < 1e-12, "{}", wanted(3));
    assert_eq!(wanted(1), 0.5);
}
