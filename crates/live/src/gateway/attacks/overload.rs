//! More packets than the gateway can move.

use super::*;

/// Half a core of a small machine: 300,000 frames a second if they are received and sent, 1,000,000 if they
/// are only received.
const COSTS: [Span; 2] = [Span::from_nanos(1_000), Span::from_nanos(2_333)];

/// A gateway of 10 Gb/s, so that queues drop nothing, with a kernel buffer of 40,000 frames a port.
fn bench() -> Bench {
    let text =
        "down.rate = \"10Gbit\"\n[up]\nrate = \"10Gbit\"\nqueue = { kind = \"fifo\", limit = \"10000p\" }\n";
    let mut bench = Bench::new(text);
    let io = bench.engine.io_mut();
    (io.costs, io.most) = (COSTS, 40_000);
    bench
}

/// Sends `per_second` forged datagrams a second from 1 s on, each of another flow.
fn flood(bench: &mut Bench, per_second: u64) {
    bench.play(INSIDE, [1_000, 10_000], per_second, |number| {
        let random = (number as u32).wrapping_mul(0x9e37_79b1);
        datagram([inside(random as u16), SERVER], [(random >> 16) as u16 | 0x8000, 9], 46)
    });
}

/// Sends a call of 50 packets a second both ways, 145 until 2.9 s.
fn call(bench: &mut Bench) {
    bench.play(INSIDE, [0, 2_900], 50, |_| datagram([inside(1), SERVER], [5_000, 5_001], 200));
    bench.play(OUTSIDE, [10, 2_910], 50, |_| datagram([SERVER, inside(1)], [5_001, 5_000], 200));
}

#[test]
fn what_is_established_passes_whatever_comes() {
    // A little more than the gateway can move, and three times as much; above a million a second receiving
    // alone takes too long.
    for per_second in [330_000, 900_000] {
        let mut bench = bench();
        call(&mut bench);
        flood(&mut bench, per_second);
        bench.run(3_000);
        assert_eq!(bench.count(OUTSIDE, 5_000, [0, 3_000]), 145, "{per_second}");
        assert_eq!(bench.count(INSIDE, 5_001, [0, 3_000]), 145, "{per_second}");
        assert!(bench.direction(Direction::Up).shed > 20_000, "{per_second}");
        assert_eq!(bench.engine.io_mut().missed, 0, "{per_second}");
    }
}

#[test]
fn packets_of_new_flows_get_through_in_turns() {
    let mut bench = bench();
    flood(&mut bench, 600_000);
    // Each SYN opens another connection.
    bench.play(INSIDE, [2_000, 10_000], 100, |number| {
        segment([inside(1), SERVER], [number as u16, 80], (2, 0), 60)
    });
    bench.run(5_000);
    let is_opening = |sent: &&Sent| sent.source_port().is_some_and(|port| port < 300);
    let opened = bench.engine.io_mut().sent.iter().filter(is_opening).count();
    assert!((30..300).contains(&opened), "{opened} of 300");
}

#[test]
fn a_stream_without_an_answer_is_established_by_its_age_and_answers_to_forged_packets_are_none() {
    let mut bench = bench();
    bench.play(INSIDE, [0, 30_000], 20, |_| datagram([inside(1), SERVER], [5_000, 5_001], 200));
    // An attacker forges a connection's packets; its supposed end resets it.
    bench.play(INSIDE, [0, 30_000], 20, |number| {
        segment([inside(2), SERVER], [6_000, 80], (0x10, number as u32), 60)
    });
    bench.play(OUTSIDE, [10, 30_000], 20, |_| segment([SERVER, inside(2)], [80, 6_000], (4, 0), 40));
    bench.run(9_000);
    let is_established = |bench: &mut Bench, frame: &[u8]| {
        let (now, tuple) = (bench.engine.now(), frame::parse(frame).unwrap().flow().unwrap());
        bench.engine.world.direction_mut(Direction::Up).flows.is_established(now, &tuple)
    };
    let stream = datagram([inside(1), SERVER], [5_000, 5_001], 200);
    let forged = segment([inside(2), SERVER], [6_000, 80], (0x10, 0), 60);
    assert!(!is_established(&mut bench, &stream) && !is_established(&mut bench, &forged));
    // The forged flow would be established as a stream by then; its resets do not count as answers.
    bench.run(11_000);
    assert!(is_established(&mut bench, &stream));
}

#[test]
fn a_burst_and_a_pause_of_the_system_cost_new_flows_nothing() {
    let mut bench = bench();
    // 150,000 a second is half of the capacity; the system stops the gateway for 15 ms each second.
    bench.play(INSIDE, [0, 10_000], 150_000, |number| {
        datagram([inside((number >> 8) as u16), SERVER], [number as u16, 9], 46)
    });
    for second in 1..4 {
        bench.run(1_000 * second);
        bench.engine.io_mut().now += Span::from_millis(15);
    }
    assert_eq!(bench.direction(Direction::Up).shed, 0);
}

#[test]
fn a_flood_does_not_delay_address_resolution() {
    let text = "down.rate = \"18Mbit\"\n[up]\nrate = \"18Mbit\"\nqueue = { kind = \"fq_codel\", isolate = \"both\" }\n";
    let mut bench = Bench::new(text);
    flood(&mut bench, 80_000);
    // ARP, and a neighbour solicitation.
    let mut solicitation =
        [&[0x33; 6][..], &[2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 24, 58, 255]].concat();
    solicitation.extend([&[0xfe; 32][..], &[135], &[0; 23]].concat());
    let kinds = [arp(), solicitation];
    for frame in kinds.clone() {
        bench.play(INSIDE, [1_500, 3_500], 10, move |_| frame.clone());
    }
    bench.run(3_500);
    for kind in kinds {
        let sent: Vec<Time> =
            bench.engine.io_mut().sent.iter().filter(|sent| sent.frame == kind).map(|sent| sent.at).collect();
        assert_eq!(sent.len(), 20);
        for (number, at) in (0..).zip(sent) {
            let delay = at.since(Time::from_millis(1_500 + 100 * number));
            assert!(delay < Span::from_millis(5), "{delay}");
        }
    }
}

/// An ARP request, a frame that is not IP.
fn arp() -> Vec<u8> {
    [&[0xff; 6][..], &[2, 0, 0, 0, 0, 2, 8, 6], &[0; 46]].concat()
}

#[test]
fn a_flood_of_frames_that_are_no_ip_costs_a_call_nothing_in_overload() {
    for per_second in [330_000, 900_000] {
        let mut bench = bench();
        call(&mut bench);
        bench.play(INSIDE, [1_000, 10_000], per_second, |_| arp());
        bench.run(3_000);
        assert_eq!(bench.count(OUTSIDE, 5_000, [0, 3_000]), 145, "{per_second}");
        assert_eq!(bench.count(INSIDE, 5_001, [0, 3_000]), 145, "{per_second}");
        assert!(bench.direction(Direction::Up).shed > 20_000, "{per_second}");
        assert_eq!(bench.engine.io_mut().missed, 0, "{per_second}");
        // Some pass, because hosts need them.
        let passed = bench.engine.io_mut().sent.iter().filter(|sent| sent.frame == arp()).count();
        assert!(passed > 2_000, "{per_second}: {passed}");
    }
}

#[test]
fn frames_that_are_no_ip_have_the_share_of_one_flow_in_a_queue() {
    // Three flows and a flood of others, each faster than the link; with hosts, two flows of the same one.
    for (queue, due) in [("\"drr\"", 0.25), ("{ kind = \"drr\", isolate = \"source\" }", 1.0 / 3.0)] {
        let text = format!("down.rate = \"10Mbit\"\n[up]\nrate = \"10Mbit\"\nqueue = {queue}\n");
        let mut bench = Bench::new(&text);
        for (host, port) in [(1, 1_000), (1, 2_000), (2, 3_000)] {
            bench
                .play(INSIDE, [0, 6_000], 2_000, move |_| datagram([inside(host), SERVER], [port, 9], 1_000));
            bench.play(OUTSIDE, [5, 6_000], 10, move |_| datagram([SERVER, inside(host)], [9, port], 60));
        }
        bench.play(INSIDE, [0, 6_000], 40_000, |_| arp());
        bench.run(6_000);
        let after = |sent: &&Sent| sent.port == OUTSIDE && sent.at >= Time::from_secs(1);
        let sent: Vec<&Sent> = bench.engine.io_mut().sent.iter().filter(after).collect();
        let bytes = |of: &dyn Fn(&Sent) -> bool| {
            sent.iter().filter(|sent| of(sent)).map(|sent| sent.frame.len()).sum::<usize>() as f64
        };
        let share = bytes(&|sent| sent.frame == arp()) / bytes(&|_| true);
        assert!((share / due - 1.0).abs() < 0.03, "{queue}: {share}");
    }
}

#[test]
fn a_device_that_takes_nothing_is_offered_frames_ever_less_often() {
    let mut bench = Bench::new("down.rate = \"1Gbit\"\nup.rate = \"1Gbit\"\n");
    // 10,000 a second; the device outside takes nothing for 350 us, and later for 2 s.
    bench.play(INSIDE, [0, 4_000], 10_000, |number| datagram([inside(1), SERVER], [number as u16, 9], 200));
    let times = [500_u64, 501].map(Time::from_millis);
    bench.engine.io_mut().full = [times[0], times[0] + Span::from_micros(350)];
    bench.run(900);
    let io = bench.engine.io_mut();
    // One offer with each frame that comes, because the device is full only for the time of a frame or two.
    assert!((3..=8).contains(&io.offers), "{}", io.offers);
    assert_eq!((io.given_up, io.sent.len()), (0, 9_000));
    (io.offers, io.full) = (0, [1_000, 3_000].map(Time::from_millis));
    bench.run(4_000);
    let io = bench.engine.io_mut();
    assert!((200..400).contains(&io.offers), "{} times in 2 s", io.offers);
    // All waiting frames leave in order within the longest pause; the oldest beyond the maximum are given up.
    let ports: Vec<u16> = io.sent.iter().filter_map(Sent::source_port).collect();
    assert!(ports.is_sorted() && (io.given_up as i64 - 19_000).abs() < 200, "{}", io.given_up);
    let first = io.sent.iter().map(|sent| sent.at).find(|at| *at >= Time::from_millis(3_000)).unwrap();
    assert!(first <= Time::from_millis(3_010), "{first}");
}
