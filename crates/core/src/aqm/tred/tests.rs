use super::*;
use crate::packet::{Ecn, SimplePacket};
use crate::param::Role;
use crate::system::catalog::Selection;
use crate::testing::packet;
use crate::units::Bytes;
use crate::units::Packets;

/// TRED of the paper, with these parameters.
fn tred(pairs: &[(&str, &str)]) -> Tred {
    plain(&[&[("preset", "paper")], pairs].concat())
}

fn plain(pairs: &[(&str, &str)]) -> Tred {
    let mut selection = Selection::of(Role::Policy, "tred").unwrap();
    // An average that equals the queue.
    for (key, value) in [("w_q", "1")].iter().chain(pairs) {
        selection.set(key, value).unwrap();
    }
    let params = TredParams::from_args(&selection.args.of(&ENTRY)).unwrap();
    Tred::new(&params, Rate::from_mbit(1), Stream::new(1, "tred"))
}

fn tagged(tickets: f64) -> SimplePacket {
    let mut packet = packet(0, 0, 500);
    packet.set_label(LabelKind::Tickets, Label::new(tickets));
    packet
}

fn admit(tred: &mut Tred, at: Time, mut packet: SimplePacket, queued: u64) -> Admission {
    let backlog = Backlog { packets: Packets::new(queued), bytes: Bytes::new(500 * queued) };
    tred.admit(at, &mut packet, backlog)
}

/// Sends `count` packets of each of these tags, 10 ms apart, to an empty queue. Returns the time after the
/// last.
fn show(tred: &mut Tred, from: Time, tags: &[f64], count: u64) -> Time {
    let mut now = from;
    for i in 0..count {
        now += Span::from_millis(10);
        admit(tred, now, tagged(tags[i as usize % tags.len()]), 0);
    }
    now
}

/// The share of packets with `tag` that is dropped at an average of 30 when each is judged by itself: p_b =
/// 0.2 · 25/50 = 0.1.
fn dropped(tag: Option<f64>, factor: &str) -> f64 {
    let mut tred = tred(&[("stage", "none"), ("factor", factor), ("window", "500s")]);
    let now = show(&mut tred, Time::ZERO, &[40.0], 100);
    let drops = (0..10_000).filter(|_| {
        let packet = tag.map_or_else(|| packet(0, 0, 500), tagged);
        admit(&mut tred, now, packet, 30) != Admission::Accept
    });
    drops.count() as f64 / 10_000.0
}

#[test]
fn half_the_tickets_are_dropped_eight_times_as_often() {
    // ExpectTkt is 40 and a window of 500 s keeps it there during 10,000 packets of 56 or fewer; those of 80
    // and more are filtered. 4 standard deviations of 10,000 draws.
    for (tag, p) in [(80.0, 0.1 / 8.0), (120.0, 0.1 / 27.0)] {
        let band = 4.0 * (p * (1.0 - p) / 10_000.0_f64).sqrt();
        assert!(
            (dropped(Some(tag), "true") - p).abs() < band,
            "{tag}: {} for {p}",
            dropped(Some(tag), "true")
        );
    }
    let band = 4.0 * (0.1 * 0.9 / 10_000.0_f64).sqrt();
    assert!((dropped(Some(40.0), "true") - 0.1).abs() < band);
    // Without the factor, and without tickets, TRED is RED.
    assert!((dropped(Some(120.0), "false") - 0.1).abs() < band);
    assert!((dropped(None, "true") - 0.1).abs() < band);
}

#[test]
fn l4s_is_marked_by_twice_the_root_keeps_its_tickets_and_does_not_count_for_others() {
    // p_b = 0.1 at an average of 30. With twice the expected tickets 1/8 of it: p_C = 1/80, p_L = 0.224. With
    // half 0.8: an overload.
    let l4s = |tag: f64| SimplePacket { ecn: Ecn::Ect1, ..tagged(tag) };
    let of = |tag: f64| {
        let mut tred = tred(&[("l4s", "true"), ("window", "5000s"), ("relabel", "true")]);
        // These are so many that the mean hardly changes.
        let now = show(&mut tred, Time::ZERO, &[40.0], 20_000);
        admit(&mut tred, now, tagged(40.0), 30);
        let (mut marked, mut dropped, mut left) = (0.0, 0.0, 0.0);
        for _ in 0..1_000 {
            let mut packet = l4s(tag);
            let backlog = Backlog { packets: Packets::new(30), bytes: Bytes::new(15_000) };
            match tred.admit(now, &mut packet, backlog) {
                Admission::Drop(_) => dropped += 1.0,
                verdict => {
                    marked += if verdict == Admission::Mark { 1.0 } else { 0.0 };
                    left = packet.label(LabelKind::Tickets).unwrap().value();
                }
            }
        }
        // The count is still that of the one classic packet: p = 0.1 / (2 - 0.2) would be 1 after 20 of them.
        assert!(tred.spacing.spread(0.1) == 0.0);
        (marked / 1e3, dropped / 1e3, left)
    };
    let near =
        |share: f64, p: f64| assert!((share - p).abs() < 4.0 * (p * (1.0 - p) / 1e3).sqrt(), "{share} {p}");
    let (marked, dropped, left) = of(80.0);
    near(marked, 2.0 * (0.1_f64 / 8.0).sqrt());
    assert_eq!((dropped, left), (0.0, 80.0));
    let (marked, dropped, left) = of(20.0);
    near(dropped, 0.8);
    // The thousand bring the mean to (20,000 · 40 + 1,000 · 20) / 21,000 = 39.05, so at the end p = 0.744 and 20 / (1 - p) = 78.2.
    assert!((marked + dropped - 1.0).abs() < 1e-9 && (left / 78.2 - 1.0).abs() < 0.02, "{left}");
}

#[test]
fn a_flow_with_a_tenth_of_the_tickets_gets_nothing_through() {
    // (40/16)³ = 15.6, times 0.1 is above 1. Few packets, so that ExpectTkt stays near 40.
    let mut tred = tred(&[("stage", "none"), ("k", "0"), ("window", "500s")]);
    let now = show(&mut tred, Time::ZERO, &[40.0], 1_000);
    admit(&mut tred, now, tagged(40.0), 30);
    assert!((0..5).all(|_| admit(&mut tred, now, tagged(16.0), 30) == Admission::Drop(DropReason::Early)));
}

#[test]
fn the_factor_comes_before_the_count_after_it_or_there_is_no_count() {
    // p_b = 0.1 at an average of 30, tags of half the expected number: p_b × 8 = 0.8. The first arrival above
    // min_th starts the count at 1; the second has count 2.
    //  before: 2 × 0.8 = 1.6, so p = 0.8/(2 - 1.6) = 2, certain
    //  after: 2 × 0.1 < 1, so p = 0 × 8 = 0
    //  none: 0.8
    let share = |stage: &str| {
        let drops = (0..1_000).filter(|&i| {
            let mut tred = tred(&[("stage", stage), ("k", "0"), ("window", "5000s")]);
            tred.random = Stream::new(i, "tred");
            let now = show(&mut tred, Time::ZERO, &[40.0], 100);
            admit(&mut tred, now, tagged(40.0), 30);
            admit(&mut tred, now, tagged(20.2), 30) != Admission::Accept
        });
        drops.count() as f64 / 1_000.0
    };
    assert_eq!((share("before"), share("after")), (1.0, 0.0));
    // ExpectTkt is 40 - 20/102, so the factor is 7.7 and p 0.77; σ = √(0.77·0.23/1000) = 0.013.
    assert!((share("none") - 0.77).abs() < 0.055, "{}", share("none"));
}

#[test]
fn from_max_thresh_on_all_are_dropped_and_up_to_min_thresh_none() {
    let mut tred = tred(&[]);
    let verdicts =
        [54, 55, 109, 110, 4, 5].map(|queued| admit(&mut tred, Time::from_secs(1), tagged(255.0), queued));
    let (accept, drop) = (Admission::Accept, Admission::Drop);
    let (forced, overflow) = (drop(DropReason::Forced), drop(DropReason::Overflow));
    assert_eq!(verdicts, [accept, forced, forced, overflow, accept, accept]);
}

#[test]
fn at_min_thresh_exactly_it_operates_normally() {
    // Tags of 1 instead of 40: p_b = 0.2 · 1/50 at an average of 6, times 40³ is above 1. The count starts
    // with the first arrival above 5, which joins; the next is dropped with certainty.
    let mut tred = tred(&[("k", "0"), ("window", "500s")]);
    let now = show(&mut tred, Time::ZERO, &[40.0], 1_000);
    let verdicts = [5, 5, 6, 6].map(|queued| admit(&mut tred, now, tagged(1.0), queued));
    let accept = Admission::Accept;
    assert_eq!(verdicts, [accept, accept, accept, Admission::Drop(DropReason::Early)]);
}

#[test]
fn rich_flows_do_not_raise_what_is_expected_but_those_below_k_do() {
    // Paper, Fig. 1 with B at 0.16 Mbit/s: B carries 1.75 times the tickets of A and C: counted. Fig. 7: 6
    // times: filtered. Two in three packets carry 40 tickets.
    for (rich, expected, filtered) in [(70.0, 50.0, 0.0), (240.0, 40.0, 1.0 / 3.0)] {
        let mut tred = tred(&[]);
        show(&mut tred, Time::ZERO, &[40.0, 40.0, rich], 6_000);
        let expect_tkt = tred.expect_tkt().unwrap();
        assert!((expect_tkt / expected - 1.0).abs() < 0.01, "{expect_tkt} for {rich}");
        let share = tred.stats().filtered as f64 / tred.stats().packets as f64;
        assert!((share - filtered).abs() < 0.01, "{share} for {rich}");
    }
    let unfiltered = &mut tred(&[("k", "0")]);
    show(unfiltered, Time::ZERO, &[40.0, 40.0, 240.0], 6_000);
    assert!((unfiltered.expect_tkt().unwrap() / (320.0 / 3.0) - 1.0).abs() < 0.01);
}

#[test]
fn a_stray_packet_with_one_ticket_is_forgotten_within_two_intervals() {
    let mut tred = tred(&[]);
    let now = show(&mut tred, Time::ZERO, &[40.0], 1_000);
    let now = show(&mut tred, now, &[1.0], 1);
    let now = show(&mut tred, now, &[40.0], 20);
    // All but the stray are filtered then; ExpectTkt has (40·500 + 1)/501 tickets, and stays there.
    assert!(tred.stats().filtered >= 20);
    let now = show(&mut tred, now, &[40.0], 200);
    let before = tred.stats().filtered;
    show(&mut tred, now, &[40.0], 100);
    assert_eq!(tred.stats().filtered, before, "the filter still turns away normal packets");
    assert!((tred.expect_tkt().unwrap() / 40.0 - 1.0).abs() < 0.2);
}

#[test]
fn a_higher_rank_does_not_notice_single_strays() {
    for (rank, filtered) in [("1", true), ("3", false)] {
        let mut tred = tred(&[("min_tkt_rank", rank)]);
        let mut now = show(&mut tred, Time::ZERO, &[40.0], 200);
        let before = tred.stats().filtered;
        for stray in [1.0, 2.0] {
            now = show(&mut tred, now, &[stray], 1);
            now = show(&mut tred, now, &[40.0], 10);
        }
        assert_eq!(tred.stats().filtered > before, filtered, "rank {rank}");
    }
}

#[test]
fn before_the_first_ticket_nothing_is_known_and_a_tag_of_zero_is_one() {
    let mut tred = tred(&[]);
    assert_eq!(tred.expect_tkt(), None);
    admit(&mut tred, Time::from_secs(1), packet(0, 0, 40), 0);
    assert_eq!(tred.expect_tkt(), None, "untagged packets count nowhere");
    admit(&mut tred, Time::from_secs(1), tagged(0.0), 0);
    assert_eq!(tred.expect_tkt(), Some(1.0));
}

#[test]
fn adaptive_max_p_moves_towards_the_middle_of_the_thresholds() {
    // Target 25 to 35. Every half second: from 0.2 up by 0.01, or down to nine tenths.
    for (queued, max_p) in [(30, 0.2), (50, 0.22), (10, 0.2 * 0.81)] {
        let mut tred = tred(&[("adaptive", "true")]);
        for ms in [0, 400, 600] {
            admit(&mut tred, Time::from_millis(ms), tagged(40.0), queued);
        }
        let got = tred.max_p.relative * 0.2;
        assert!((got - max_p).abs() < 1e-12, "{got} at {queued}");
    }
}

#[test]
fn by_default_adaptive_max_p_keeps_the_average_at_twice_min_thresh() {
    // 5 to 15 packets: target 9 to 11.
    for (queued, max_p) in [(10, 0.2), (30, 0.22), (8, 0.2 * 0.81)] {
        let mut tred = plain(&[("adaptive", "true")]);
        for ms in [0, 400, 600] {
            admit(&mut tred, Time::from_millis(ms), tagged(40.0), queued);
        }
        let got = tred.max_p.relative * 0.2;
        assert!((got - max_p).abs() < 1e-12, "{got} at {queued}");
    }
}

#[test]
fn on_a_fast_link_max_p_falls_as_windows_grow() {
    // 200 Mb/s have 15 times the paper's buffer. An hour with a short queue.
    let least = |pairs: &[(&str, &str)], mbit| {
        let mut selection = Selection::of(Role::Policy, "tred").unwrap();
        pairs.iter().for_each(|(key, value)| selection.set(key, value).unwrap());
        let params = TredParams::from_args(&selection.args.of(&ENTRY)).unwrap();
        let mut tred = Tred::new(&params, Rate::from_mbit(mbit), Stream::new(1, "tred"));
        for s in 0..3_600 {
            admit(&mut tred, Time::from_secs(s), tagged(40.0), 2);
        }
        tred.max_p.relative * 0.2
    };
    let scale = 20.0 / 1.32;
    assert!((0.9..=1.0).contains(&(least(&[], 200) * scale * scale / 0.01)), "{}", least(&[], 200));
    assert_eq!(least(&[("adaptive", "false")], 200), 0.2);
    assert_eq!(least(&[], 10), 0.2);
}

#[test]
fn it_has_no_state_per_flow() {
    // TRED owns no memory, and packets of 100,000 flows would not fit into its size.
    assert!(size_of::<Tred>() < 1_024 && !core::mem::needs_drop::<Tred>());
}

/// A link of 200 packets a second with two flows of 4,000 tickets a second each, due 100 packets. Returns the
/// packets a second that pass in a minute: of a flow that sends 90 a second, and of one that sends ten times
/// its share.
fn flooded(tred: &mut Tred) -> (f64, f64) {
    let (mut queued, mut left) = (0_u64, [0.0; 2]);
    for ms in 0..60_000_u64 {
        queued = queued.saturating_sub(u64::from(ms % 5 == 0));
        let mut arrive = |flow: usize, tickets| {
            if admit(tred, Time::from_millis(ms), tagged(tickets), queued) == Admission::Accept {
                queued += 1;
                left[flow] += 1.0 / 60.0;
            }
        };
        if ms % 11 == 0 {
            arrive(0, 44.0);
        }
        arrive(1, 4.0);
    }
    (left[0], left[1])
}

#[test]
fn a_flood_moves_neither_what_is_expected_nor_what_others_lose() {
    let mut tred = plain(&[("w_q", "0.02")]);
    let (steady, flood) = flooded(&mut tred);
    // Of 91 packets a second, and of 100 due plus the rest that the steady flow leaves.
    assert!(steady > 88.0, "{steady}");
    assert!((80.0..=115.0).contains(&flood), "{flood}");
    // 40 tickets on a packet of 500 bytes.
    let expect_tkt = tred.expect_tkt().unwrap() * 500.0 / UNIT;
    assert!((33.0..=50.0).contains(&expect_tkt), "{expect_tkt}");
    // The mean below K × MinTkt follows the flood, and nothing protects the other flow from it.
    let mut tred = plain(&[("w_q", "0.02"), ("expect", "mean")]);
    let (steady, _) = flooded(&mut tred);
    assert!(steady < 60.0, "{steady}");
}

/// Sends packets of 500 bytes with 40 tickets, with a window so long that 40 stays the expected number.
fn expecting_40(pairs: &[(&str, &str)]) -> (Tred, Time) {
    let mut tred = plain(&[&[("stage", "none"), ("window", "5000s")], pairs].concat());
    let now = show(&mut tred, Time::ZERO, &[40.0], 10_000);
    admit(&mut tred, now, tagged(40.0), 30);
    (tred, now)
}

#[test]
fn a_flood_keeps_the_part_of_its_share_that_is_set() {
    // A tenth of the tickets: p_b × 10^6 is far above 1, and p at most 1 - keep / 10. 4 standard deviations.
    for (keep, p) in [("0.9", 0.91_f64), ("0.5", 0.95), ("0", 1.0)] {
        let (mut tred, now) = expecting_40(&[("keep", keep)]);
        let drops = (0..2_000).filter(|_| admit(&mut tred, now, tagged(4.0), 30) != Admission::Accept);
        let share = drops.count() as f64 / 2_000.0;
        assert!((share - p).abs() <= 4.0 * (p * (1.0 - p) / 2_000.0).sqrt(), "{share} for {p}");
    }
}

#[test]
fn above_max_thresh_tickets_still_decide() {
    // At an average of 80 p_b is 0.2 + 0.8 · 25/55 = 0.56, and p at most 1 - 0.9 / (lack · 80/55): none for
    // three times the expected tickets, 0.38 for the expected ones, 0.94 for a tenth. 4 standard deviations.
    let dropped = |gentle, tickets| {
        let (mut tred, now) = expecting_40(&[("gentle", gentle)]);
        let drops = (0..2_000).filter(|_| admit(&mut tred, now, tagged(tickets), 80) != Admission::Accept);
        drops.count() as f64 / 2_000.0
    };
    assert_eq!(dropped("true", 120.0), 0.0);
    for (tickets, p) in [(40.0, 1.0 - 0.9 * 55.0 / 80.0), (4.0, 1.0 - 0.09 * 55.0 / 80.0)] {
        let share = dropped("true", tickets);
        assert!((share - p).abs() < 4.0 * (p * (1.0 - p) / 2_000.0_f64).sqrt() + 0.02, "{share} for {p}");
    }
    // The paper's edge drops all.
    assert_eq!([120.0, 40.0, 4.0].map(|tickets| dropped("false", tickets)), [1.0; 3]);
}

#[test]
fn what_is_thinned_leaves_with_the_tickets_with_which_it_came() {
    // 2,000 packets with 4 tickets arrive, about 180 leave with 44 each; 4 standard deviations of their
    // number.
    for (relabel, expected) in [("true", 8_000.0), ("false", 720.0)] {
        let (mut tred, now) = expecting_40(&[("relabel", relabel)]);
        let backlog = Backlog { packets: Packets::new(30), bytes: Bytes::new(15_000) };
        let left = (0..2_000).filter_map(|_| {
            let mut packet = tagged(4.0);
            let accepted = tred.admit(now, &mut packet, backlog) == Admission::Accept;
            packet.label(LabelKind::Tickets).filter(|_| accepted).map(Label::value)
        });
        let sum: f64 = left.sum();
        assert!((sum / expected - 1.0).abs() < 4.0 * (0.09 * 0.91 / 2_000.0_f64).sqrt() / 0.09, "{sum}");
    }
}

#[test]
fn packets_of_any_size_are_judged_by_tickets_for_a_byte() {
    // Three times the bytes with three times the tickets: dropped with p_b = 0.1, times at most
    // (10,000/9,700)^6 as ExpectTkt rises with the drops. Per packet, they carry three times the expected
    // tickets, and none is dropped.
    for (per, range) in [("byte", 0.07..0.15), ("packet", 0.0..0.001)] {
        let (mut tred, now) = expecting_40(&[("per", per)]);
        let drops = (0..1_000).filter(|_| {
            let mut packet = packet(0, 0, 1_500);
            packet.set_label(LabelKind::Tickets, Label::new(120.0));
            admit(&mut tred, now, packet, 30) != Admission::Accept
        });
        let share = drops.count() as f64 / 1_000.0;
        assert!(range.contains(&share), "{share} per {per}");
    }
}

#[test]
fn what_is_expected_follows_the_least_tickets_when_poor_flows_leave() {
    // 4 tickets for 10 s, then 40: no drop shows the change, but no packet carries less.
    let mut tred = plain(&[]);
    let now = show(&mut tred, Time::ZERO, &[4.0], 1_000);
    show(&mut tred, now, &[40.0], 2_000);
    let expect_tkt = tred.expect_tkt().unwrap() * 500.0 / UNIT;
    assert!((expect_tkt / 40.0 - 1.0).abs() < 0.05, "{expect_tkt}");
}

#[test]
fn on_a_fast_link_thresholds_buffer_and_average_are_as_many_times_the_paper_s() {
    // 100 ms of 132 Mbit/s are 1.65 MB, ten times 110 full packets.
    let mut tred = of_link(&[], 132);
    let is_full = |tred: &mut Tred, queued| {
        let dropped = admit(tred, Time::ZERO, packet(0, 0, 500), queued);
        dropped == Admission::Drop(DropReason::Overflow)
    };
    assert_eq!([1_099, 1_100].map(|queued| is_full(&mut tred, queued)), [false, true]);
    // Each arrival moves the average by 0.0002 of the queue: 1000 arrivals that find 600 packets move it to
    // 109.
    let mut tred = of_link(&[], 132);
    let average = |tred: &Tred| tred.avg_q_len.get();
    for _ in 0..1_000 {
        admit(&mut tred, Time::ZERO, packet(0, 0, 500), 600);
    }
    assert!((average(&tred) - 600.0 * (1.0 - libm::exp(-0.2))).abs() < 0.1, "{}", average(&tred));
    // From 550 on the curve rises to 1 at 1,100, and up to 50 nothing is dropped.
    let zones = |tred: &mut Tred, averages: [f64; 4]| {
        averages.map(|avg| {
            tred.spacing.arrival(avg, Packets::new(100), 1.0);
            tred.spacing.arrival(avg, Packets::new(100), 1.0)
        })
    };
    assert_eq!(
        zones(&mut tred, [50.0, 300.0, 549.0, 1_100.0]),
        [Zone::Free, Zone::Curve(0.1), Zone::Curve(0.2 * 499.0 / 500.0), Zone::Forced]
    );
    // The rate of the link changes; below 13 Mbit/s sizes are the paper's.
    BufferPolicy::<SimplePacket>::set_link_rate(&mut tred, Rate::from_mbit(2));
    assert_eq!([109, 110].map(|queued| is_full(&mut tred, queued)), [false, true]);
    assert_eq!(
        zones(&mut tred, [5.0, 30.0, 54.0, 110.0]),
        [Zone::Free, Zone::Curve(0.1), Zone::Curve(0.2 * 49.0 / 50.0), Zone::Forced]
    );
    // A size that is set later is fixed.
    BufferPolicy::<SimplePacket>::set_limit(&mut tred, Limit::Packets(Packets::new(700)));
    BufferPolicy::<SimplePacket>::set_link_rate(&mut tred, Rate::from_mbit(132));
    assert_eq!([699, 700].map(|queued| is_full(&mut tred, queued)), [false, true]);
    // Any one of the four fixes the others.
    for set in [("limit", "120p"), ("min_th", "6p"), ("max_th", "54p"), ("w_q", "0.01"), ("preset", "paper")]
    {
        assert!(is_full(&mut of_link(&[set], 132), 120), "{set:?}");
    }
}

fn of_link(pairs: &[(&str, &str)], mbit: u64) -> Tred {
    let mut selection = Selection::of(Role::Policy, "tred").unwrap();
    for (key, value) in pairs {
        selection.set(key, value).unwrap();
    }
    let params = TredParams::from_args(&selection.args.of(&ENTRY)).unwrap();
    Tred::new(&params, Rate::from_mbit(mbit), Stream::new(1, "tred"))
}
