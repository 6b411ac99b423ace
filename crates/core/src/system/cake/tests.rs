use crate::param::EntryArgs;
use std::vec;
use std::vec::Vec;

use super::*;
use crate::packet::SimplePacket;
use crate::testing::{Log, packet};
use crate::units::{Packets, Ratio, Span};

fn params(change: impl FnOnce(&mut CakeParams)) -> CakeParams {
    let mut params = CakeParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
    params.limit = Some(Limit::Packets(Packets::new(100_000)).into());
    change(&mut params);
    params
}

/// A CAKE queue on a link of 10 Mb/s.
fn seeded(seed: u64, change: impl FnOnce(&mut CakeParams)) -> Cake<SimplePacket> {
    Cake::new(&params(change), &LinkContext::new(Rate::from_mbit(10), seed, "cake"))
}

fn cake(change: impl FnOnce(&mut CakeParams)) -> Cake<SimplePacket> {
    seeded(1, change)
}

fn statistic(queue: &Cake<SimplePacket>, wanted: &str) -> f64 {
    let mut found = 0.0;
    queue.statistics(&mut |name, value| found = if name == wanted { value } else { found });
    found
}

/// The parts of the link that hosts of 1, 7 and 40 flows get, each with a permanent backlog.
fn shares(hosts: Hosts, pair: impl Fn(u32, u32) -> HostPair) -> [f64; 3] {
    let of_flow = |flow: u32| usize::from(flow >= 1) + usize::from(flow >= 8);
    let (mut queue, mut log) = (cake(|params| params.hosts = hosts), Log::default());
    for flow in 0..48 {
        queue.set_flow(FlowId(flow), FlowSetting::Hosts(pair(of_flow(flow) as u32, flow)));
    }
    let mut arrive = |queue: &mut Cake<_>, flow| queue.enqueue(Time::ZERO, packet(0, flow, 1_000), &mut log);
    (0..96).for_each(|i| arrive(&mut queue, i % 48));
    let mut shares = [0.0; 3];
    for _ in 0..12_000 {
        let sent = queue.dequeue(Time::ZERO, &mut Log::default()).unwrap();
        shares[of_flow(sent.flow.0)] += 1.0 / 12_000.0;
        arrive(&mut queue, sent.flow.0);
    }
    shares
}

#[test]
fn hosts_of_1_7_and_40_flows_have_a_third_each_in_both_directions() {
    let up = |host, flow| HostPair { source: host, destination: flow };
    let down = |host, flow| HostPair { source: flow, destination: host };
    let even = |shares: [f64; 3]| shares.iter().all(|share| (share - 1.0 / 3.0).abs() < 0.01);
    assert!(even(shares(Hosts::Triple, up)), "{:?}", shares(Hosts::Triple, up));
    assert!(even(shares(Hosts::Triple, down)), "{:?}", shares(Hosts::Triple, down));
    assert!(even(shares(Hosts::Source, up)) && even(shares(Hosts::Destination, down)));
    // Without isolation, or at the wrong end, each flow gets one part.
    for shares in [shares(Hosts::None, up), shares(Hosts::Source, down), shares(Hosts::Destination, up)] {
        let due = [1.0, 7.0, 40.0].map(|flows| flows / 48.0);
        assert!(shares.iter().zip(due).all(|(share, due)| (share - due).abs() < 0.01), "{shares:?}");
    }
}

#[test]
fn a_flow_has_the_part_that_the_end_with_more_flows_leaves_it() {
    // Source 0 sends flow 0 to server 0 and flow 1 to server 1, sources 1 to 9 send a flow each to server 1:
    // flow 0 is one of 2 at its source, flow 1 one of 10 at its server.
    let (mut queue, mut log) = (cake(|_| {}), Log::default());
    for flow in 0..11_u32 {
        let hosts = HostPair { source: flow.saturating_sub(1), destination: u32::from(flow > 0) };
        queue.set_flow(FlowId(flow), FlowSetting::Hosts(hosts));
    }
    let mut arrive = |queue: &mut Cake<_>, flow| queue.enqueue(Time::ZERO, packet(0, flow, 1_000), &mut log);
    (0..22).for_each(|i| arrive(&mut queue, i % 11));
    let mut sent_by = [0.0_f64; 11];
    for _ in 0..6_000 {
        let sent = queue.dequeue(Time::ZERO, &mut Log::default()).unwrap();
        sent_by[sent.flow.index()] += 1.0;
        arrive(&mut queue, sent.flow.0);
    }
    // 1/2 against 1/10 for each of ten: a third, and a fifteenth each.
    assert!((sent_by[0] / 6_000.0 - 1.0 / 3.0).abs() < 0.01, "{sent_by:?}");
    assert!(sent_by[1..].iter().all(|sent| (sent / 6_000.0 - 1.0 / 15.0).abs() < 0.01), "{sent_by:?}");
}

/// The packets that join a queue of another flow, if each of `n` flows has a packet; the mean over 40 seeds.
fn collisions(n: u32, ways: u32) -> f64 {
    let of_seed = |seed| {
        let mut queue = seeded(seed, |params| params.ways = ways);
        (0..n).for_each(|flow| queue.enqueue(Time::ZERO, packet(0, flow, 100), &mut Log::default()));
        assert_eq!(statistic(&queue, "busy_queues"), f64::from(n) - statistic(&queue, "collisions"));
        statistic(&queue, "collisions")
    };
    (0..40).map(of_seed).sum::<f64>() / 40.0
}

#[test]
fn eight_ways_collide_less_than_the_birthday_formula_says_of_a_hash() {
    for (n, parts) in [(100_u32, 0.01), (500, 0.15), (1_000, 0.4)] {
        // A hash leaves m (1 - 1/m)^n queues empty; flows in excess of the others collide.
        let (flows, m) = (f64::from(n), 1_024.0_f64);
        let plain = flows - m + m * (1.0 - 1.0 / m).powf(flows);
        // Each of 128 sets has a binomial number of flows, and those beyond eight collide.
        let mut p = (1.0 - 1.0 / 128.0_f64).powf(flows);
        let mut eight = 0.0;
        for k in 0..n {
            eight += 128.0 * p * f64::from(k.saturating_sub(8));
            p *= f64::from(n - k) / f64::from(k + 1) / 127.0;
        }
        // The variance is below the mean, so four sigma of the mean of 40.
        let near = |found: f64, wanted: f64| (found - wanted).abs() <= 4.0 * (wanted.max(0.1) / 40.0).sqrt();
        let [one, found] = [1, 8].map(|ways| collisions(n, ways));
        assert!(near(one, plain) && near(found, eight), "{n}: {one}, not {plain}; {found}, not {eight}");
        assert!(found <= parts * plain, "{n}: {found} of {plain}");
    }
}

#[test]
fn a_flow_that_shares_a_queue_stays_until_its_packets_have_left() {
    let (mut queue, mut log) = (cake(|params| (params.flows, params.ways) = (2, 2)), Log::default());
    let mut arrive =
        |queue: &mut Cake<_>, id, flow| queue.enqueue(Time::ZERO, packet(id, flow, 1_000), &mut log);
    for (id, flow) in [(0, 0), (1, 1), (2, 2), (3, 0), (4, 1)] {
        arrive(&mut queue, id, flow);
    }
    assert_eq!(statistic(&queue, "collisions"), 1.0);
    // Whatever queue becomes idle, flow 2 leaves in order.
    let mut left = Vec::new();
    for id in 5..40 {
        let sent = queue.dequeue(Time::ZERO, &mut Log::default()).unwrap();
        left.extend((sent.flow.0 == 2).then_some(sent.id));
        arrive(&mut queue, id, 2);
    }
    assert!(left.len() > 20 && left.is_sorted(), "{left:?}");
}

/// The longest wait of a packet of a flow that sends 160 B every `gap` ms, next to 40 flows that fill the
/// link with packets of a millisecond.
fn longest_wait(gap: u64) -> Span {
    let (mut queue, mut log) = (cake(|params| params.hosts = Hosts::None), Log::default());
    let (mut longest, mut sent_ids) = (Span::ZERO, 0);
    for ms in 0..4_000 {
        let now = Time::from_millis(ms);
        for flow in (1..=40).filter(|flow| u64::from(*flow) % 40 == ms % 40 || ms < 3) {
            queue.enqueue(now, packet(0, flow, 1_250), &mut log);
        }
        if ms % gap == gap - 1 {
            queue.enqueue(now, packet(ms as u32, 0, 160), &mut log);
        }
        if let Some(sent) = queue.dequeue(now, &mut log).filter(|sent| sent.flow.0 == 0) {
            longest = longest.max(now.since(Time::from_millis(u64::from(sent.id))));
            sent_ids += 1;
        }
    }
    assert!(sent_ids >= 4_000 / gap / 2, "{sent_ids}");
    longest
}

#[test]
fn a_sparse_flow_waits_for_no_more_than_a_packet_and_one_that_is_not_takes_turns() {
    // A round of 40 packets takes 40 to 80 ms: a flow without packets at its turn is new with the next one.
    assert!(longest_wait(100) <= Span::from_millis(1), "{:?}", longest_wait(100));
    assert!(longest_wait(5) >= Span::from_millis(20), "{:?}", longest_wait(5));
}

#[test]
fn blue_keeps_a_flood_in_its_queue_short() {
    let longest = |increment| {
        let mut queue = cake(|params| {
            params.limit = Some(Limit::Packets(Packets::new(300)).into());
            params.control.increment = Ratio::clamped(increment);
        });
        let (mut log, mut longest) = (Log::default(), 0);
        for ms in 0..8_000 {
            let now = Time::from_millis(ms);
            (0..3).for_each(|_| queue.enqueue(now, packet(0, 7, 1_250), &mut log));
            queue.dequeue(now, &mut log);
            longest = if ms < 7_000 { 0 } else { longest.max(queue.backlog().packets.get()) };
        }
        longest
    };
    let (with, without) = (longest(1.0 / 256.0), longest(0.0));
    assert!(with < 150 && without >= 299, "{with} {without}");
}

/// The parts of greedy and of real-rate flows, `flows` of each with a permanent backlog, if a packet leaves
/// each `gap`.
fn tins(change: impl FnOnce(&mut CakeParams), flows: [u32; 2], gap: Span) -> [f64; 2] {
    let (mut queue, mut log, mut sent) = (cake(change), Log::default(), [0.0; 2]);
    let all = (0..flows[0]).chain(100..100 + flows[1]);
    for flow in all.clone() {
        let class = if flow < 100 { FlowClass::Greedy } else { FlowClass::RealRate };
        queue.set_flow(FlowId(flow), FlowSetting::Class(class));
        (0..2).for_each(|_| queue.enqueue(Time::ZERO, packet(0, flow, 1_250), &mut log));
    }
    let mut now = Time::ZERO;
    for _ in 0..16_000 {
        let packet = queue.dequeue(now, &mut Log::default()).unwrap();
        sent[usize::from(packet.flow.0 >= 100)] += 1.0 / 16_000.0;
        now += gap;
        queue.enqueue(now, packet, &mut log);
    }
    sent
}

#[test]
fn real_rate_flows_have_a_quarter_or_their_fair_shares() {
    // 10 Mb/s are 1250 B a millisecond; a link may be slower than configured.
    for gap in [Span::from_millis(1), Span::from_millis(10)] {
        let part = |flows| tins(|_| {}, flows, gap)[1];
        let near = |part: f64, due: f64| assert!((part - due).abs() < 0.01, "{part} {due}");
        near(part([9, 1]), 1.0 / 4.0);
        near(part([30, 1]), 1.0 / 4.0);
        near(part([1, 1]), 1.0 / 2.0);
        near(part([2, 4]), 2.0 / 3.0);
        // Best effort keeps three sixteenths.
        near(part([1, 40]), 13.0 / 16.0);
        near(part([0, 3]), 1.0);
        near(part([3, 0]), 0.0);
        near(tins(|params| params.tins = Tins::Besteffort, [9, 1], gap)[1], 0.1);
    }
}

#[test]
fn a_call_goes_before_the_next_packet_of_another_tin() {
    let (mut queue, mut log) = (cake(|_| {}), Log::default());
    queue.set_flow(FlowId(1), FlowSetting::Class(FlowClass::RealRate));
    (0..3).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 1_500), &mut log));
    assert_eq!(queue.dequeue(Time::ZERO, &mut log).unwrap().id, 0);
    // 20, 40 and 60 ms into the 60 ms of a full packet at 0.2 Mb/s.
    (0..3).for_each(|id| {
        queue.enqueue(Time::from_millis(20 * u64::from(id)), packet(10 + id, 1, 60), &mut log);
    });
    let ids = (0..5).map(|_| queue.dequeue(Time::from_millis(60), &mut log).unwrap().id);
    assert_eq!(ids.collect::<Vec<_>>(), [10, 11, 12, 1, 2]);
}

#[test]
fn turns_and_times_follow_the_rate_of_a_tin() {
    let params = params(|_| {});
    let of = |kbit: u64| params.pace(Rate::from_bit(1_000 * kbit));
    // 1/4096 s: `tc -s qdisc` shows 762 B at 25 Mb/s, and 300 B at 6.25.
    let turns = [100_000, 25_000, 6_250].map(|kbit| of(kbit).quantum.get());
    assert_eq!(turns, [1_514, 762, 300]);
    // 1.5 × 1514 B take 18.168 ms at 1 Mb/s, and ten times as long at 0.1.
    let times = [10_000, 1_000, 100].map(|kbit| of(kbit).control).map(|it| (it.target, it.interval));
    let ms = |us: u64| Span::from_micros(us);
    assert_eq!(times, [(ms(5_000), ms(100_000)), (ms(18_168), ms(113_168)), (ms(181_680), ms(363_360))]);
    // The tin of real-rate flows has a quarter of the rate.
    let queue = Cake::<SimplePacket>::new(&params, &LinkContext::new(Rate::from_mbit(100), 1, "cake"));
    assert_eq!(
        [0, 1].map(|tin| queue.tins[tin].share.rate(Rate::from_mbit(100))),
        [100, 25].map(Rate::from_mbit)
    );
}

#[test]
fn codepoints_have_the_tins_of_tc_cake() {
    let af = |class: u8| (1..=3).map(move |precedence| 8 * class + 2 * precedence);
    let [le, va, ef] = [0b00_0001, 0b10_1100, 0b10_1110];
    let cs = |class: u8| 8 * class;
    // The codepoints in each of diffserv3, diffserv4 and diffserv8, as in tc-cake(8), including the two of
    // the TOS of RFC 1349.
    let mut rows: Vec<(u8, [usize; 3])> = vec![
        (le, [1, 1, 0]),
        (cs(1), [1, 1, 1]),
        (cs(2), [0, 2, 5]),
        (cs(3), [0, 2, 3]),
        (cs(4), [0, 3, 6]),
        (cs(5), [0, 3, 6]),
        (va, [2, 3, 6]),
        (ef, [2, 3, 6]),
        (cs(6), [2, 3, 7]),
        (cs(7), [2, 3, 7]),
        (2, [0, 0, 1]),
        (4, [2, 2, 4]),
    ];
    for (class, tins) in [(1, [0, 0, 1]), (2, [0, 2, 4]), (3, [0, 2, 3]), (4, [0, 2, 3])] {
        rows.extend(af(class).map(|dscp| (dscp, tins)));
    }
    for dscp in 0..64 {
        let tins = rows.iter().find(|row| row.0 == dscp).map_or([0, 0, 2], |row| row.1);
        let found = [Tins::Diffserv3, Tins::Diffserv4, Tins::Diffserv8].map(|tins| tins.tin_of(true, dscp));
        assert_eq!(found, tins, "{dscp}");
        assert_eq!(Tins::Precedence.tin_of(true, dscp), usize::from(dscp / 8));
        assert_eq!(Tins::Besteffort.tin_of(true, dscp), 0);
        assert_eq!([true, false].map(|is_real_rate| Tins::Class.tin_of(is_real_rate, dscp)), [1, 0]);
    }
}

/// The parts of flows with a permanent backlog, one for each of these codepoints.
fn parts<const N: usize>(tins: Tins, codepoints: [u8; N]) -> [f64; N] {
    let (mut queue, mut log, mut sent) = (cake(|params| params.tins = tins), Log::default(), [0.0; N]);
    let mut arrive = |queue: &mut Cake<_>, flow: u32| {
        let dscp = codepoints[flow as usize];
        queue.enqueue(Time::ZERO, SimplePacket { dscp, ..packet(0, flow, 1_250) }, &mut log);
    };
    (0..2 * N as u32).for_each(|i| arrive(&mut queue, i % N as u32));
    for _ in 0..16_000 {
        let flow = queue.dequeue(Time::ZERO, &mut Log::default()).unwrap().flow.0;
        sent[flow as usize] += 1.0 / 16_000.0;
        arrive(&mut queue, flow);
    }
    sent
}

#[test]
fn no_tin_starves_another() {
    fn near<const N: usize>(parts: [f64; N], due: [f64; N]) {
        assert!(parts.iter().zip(due).all(|(part, due)| (part - due).abs() < 0.01), "{parts:?}, not {due:?}");
    }
    let [be, le, af41, ef] = [0, 1, 34, 46];
    near(parts(Tins::Diffserv3, [be, le]), [15.0 / 16.0, 1.0 / 16.0]);
    near(parts(Tins::Diffserv3, [be, le, ef]), [29.0 / 48.0, 1.0 / 16.0, 1.0 / 3.0]);
    near(parts(Tins::Diffserv4, [be, le, af41, ef]), [3.0 / 16.0, 1.0 / 16.0, 0.5, 0.25]);
    near(parts(Tins::Diffserv4, [be, af41]), [0.5, 0.5]);
    // Bulk gets the rest.
    near(parts(Tins::Diffserv3, [le]), [1.0]);
    // Each of eight busy tins gets 7/8 of the one before; the later of two busy tins gets its threshold.
    let sum: f64 = (0..8).map(|tin| 0.875_f64.powi(tin)).sum();
    let all = core::array::from_fn(|tin| 0.875_f64.powi(tin as i32) / sum);
    near(parts(Tins::Precedence, [0, 8, 16, 24, 32, 40, 48, 56]), all);
    near(parts(Tins::Precedence, [0, 56]), [1.0 - 0.875_f64.powi(7), 0.875_f64.powi(7)]);
    near(parts(Tins::Diffserv8, [be, le]), [0.875_f64.powi(2), 1.0 - 0.875_f64.powi(2)]);
}

/// The departure times, in microseconds, of packets of these sizes that arrive at once.
fn departures(change: impl FnOnce(&mut CakeParams), sizes: &[u64]) -> Vec<u64> {
    let (mut queue, mut log, mut now) = (cake(change), Log::default(), Time::from_secs(1));
    for (id, &size) in (0..).zip(sizes) {
        queue.enqueue(now, packet(id, 0, size), &mut log);
    }
    let mut left = Vec::new();
    while !queue.backlog().is_empty() {
        match queue.dequeue(now, &mut log) {
            Some(_) => left.push((now.as_nanos() - 1_000_000_000) / 1_000),
            None => now = queue.next_wakeup().unwrap(),
        }
    }
    left
}

#[test]
fn the_shaper_pays_for_what_the_link_layer_makes_of_a_packet() {
    // One byte a microsecond.
    let shape = |params: &mut CakeParams| params.bandwidth = Some(Rate::from_mbit(8));
    assert_eq!(departures(shape, &[1_000, 100, 40, 40]), [0, 1_000, 1_100, 1_140]);
    let overhead = |params: &mut CakeParams| {
        shape(params);
        (params.overhead, params.mpu) = (Some(Bytes::new(38)), Bytes::new(84));
    };
    assert_eq!(departures(overhead, &[1_000, 100, 40, 40]), [0, 1_038, 1_176, 1_260]);
    let atm = |params: &mut CakeParams| {
        overhead(params);
        (params.mpu, params.framing) = (Bytes::ZERO, Framing::Atm);
    };
    // 1038 B are 22 cells, 138 B are 3, 78 B are 2.
    assert_eq!(departures(atm, &[1_000, 100, 40, 40]), [0, 22 * 53, 25 * 53, 27 * 53]);
    let ptm = |params: &mut CakeParams| {
        shape(params);
        params.framing = Framing::Ptm;
    };
    assert_eq!(departures(ptm, &[1_000, 64, 40]), [0, 1_016, 1_081]);
    assert_eq!(departures(|_| {}, &[1_000, 100]), [0, 0], "the link itself shapes");
}

#[test]
fn the_shaper_has_no_burst_after_a_pause_and_no_error_in_the_long_run() {
    let (mut queue, mut log) = (
        cake(|params| {
            params.bandwidth = Some(Rate::from_bit(7_654_321));
            params.control.target = Span::from_secs(1_000);
        }),
        Log::default(),
    );
    queue.enqueue(Time::ZERO, packet(0, 0, 1_000), &mut log);
    assert!(queue.dequeue(Time::ZERO, &mut log).is_some() && queue.next_wakeup().is_none());
    let start = Time::from_secs(5);
    let (mut now, mut left) = (start, 0);
    (0..10_001).for_each(|id| queue.enqueue(now, packet(id, 0, 1_000), &mut log));
    while left < 10_001 {
        match queue.dequeue(now, &mut log) {
            Some(_) => left += 1,
            None => now = queue.next_wakeup().unwrap(),
        }
    }
    // The last one leaves when 10,000 × 8,000 bits have been paid for.
    assert_eq!(now.since(start).as_nanos(), 80_000_000 * 1_000_000_000 / 7_654_321);
}

#[test]
fn a_flow_that_comes_back_has_the_hosts_that_it_was_given_meanwhile() {
    let (mut queue, mut log) = (cake(|_| {}), Log::default());
    for source in [4, 9] {
        queue.set_flow(FlowId(0), FlowSetting::Hosts(HostPair { source, destination: 0 }));
        queue.enqueue(Time::ZERO, packet(0, 0, 100), &mut log);
        assert!(queue.dequeue(Time::ZERO, &mut log).is_some());
        assert!(queue.dequeue(Time::ZERO, &mut log).is_none());
    }
    assert_eq!(statistic(&queue, "busy_queues"), 0.0);
}

#[test]
fn lack_of_room_takes_from_the_longest_queue_of_all_tins() {
    let (mut queue, mut log) =
        (cake(|params| params.limit = Some(Limit::Packets(Packets::new(9)).into())), Log::default());
    queue.set_flow(FlowId(1), FlowSetting::Class(FlowClass::RealRate));
    (0..4).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 0, 1_000), &mut log));
    (10..20).for_each(|id| queue.enqueue(Time::ZERO, packet(id, 1, 1_000), &mut log));
    let lost: Vec<_> = log.dropped.iter().map(|&(_, id, _)| id).collect();
    assert_eq!(lost, [10, 11, 12, 13, 14]);
}

/// A sink for which every packet of a flow supersedes earlier ones.
struct Acks(Log);

impl Sink<SimplePacket> for Acks {
    fn dropped(&mut self, now: Time, packet: SimplePacket, reason: DropReason) {
        self.0.dropped(now, packet, reason);
    }
    fn marked(&mut self, _now: Time, _packet: &SimplePacket) {}
    fn supersedes(&self, newer: &SimplePacket, older: &SimplePacket) -> bool {
        newer.flow == older.flow && newer.id > older.id
    }
}

#[test]
fn the_ack_filter_leaves_the_newest_or_the_two_newest() {
    let left = |ack_filter, protocol| {
        let (mut queue, mut sink) = (cake(|params| params.ack_filter = ack_filter), Acks(Log::default()));
        for id in 0..6 {
            queue.enqueue(Time::ZERO, SimplePacket { protocol, ..packet(id, id % 2, 40) }, &mut sink);
        }
        assert_eq!(queue.backlog().packets.get() + sink.0.dropped.len() as u64, 6);
        let ids = core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut sink).map(|sent| sent.id));
        let mut ids: Vec<_> = ids.collect();
        ids.sort_unstable();
        ids
    };
    assert_eq!(left(AckFilter::None, Protocol::Tcp), [0, 1, 2, 3, 4, 5]);
    assert_eq!(left(AckFilter::Conservative, Protocol::Tcp), [2, 3, 4, 5]);
    assert_eq!(left(AckFilter::Aggressive, Protocol::Tcp), [4, 5]);
    assert_eq!(left(AckFilter::Aggressive, Protocol::Udp), [0, 1, 2, 3, 4, 5]);
}
