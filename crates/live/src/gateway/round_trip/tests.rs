//! Crafted segments that yield a sample of a half, and others that do not.

use apportion_core::random::Stream;
use apportion_core::units::Bytes;

use super::*;

const SYN: u8 = 1 << 1;
const RST: u8 = 1 << 2;
const ACK: u8 = 1 << 4;

const fn at(ms: u64) -> Time {
    Time::from_millis(ms)
}

const fn ms(ms: u64) -> Span {
    Span::from_millis(ms)
}

fn data(sequence: u32, bytes: u64) -> Segment {
    Segment { flags: ACK, sequence, payload: Bytes::new(bytes), acknowledges: Some(1) }
}

fn syn(sequence: u32) -> Segment {
    Segment { flags: SYN, acknowledges: None, ..data(sequence, 0) }
}

fn ack(number: u32) -> Segment {
    Segment { acknowledges: Some(number), ..data(7, 0) }
}

fn stamps(value: u32, echo: u32) -> Option<Timestamps> {
    Some(Timestamps { value, echo: Some(echo) })
}

/// A segment without data leaves with this TSval.
fn stamp(half: &mut Half, now: Time, value: u32) {
    half.departed(now, ack(1), stamps(value, 0));
}

/// An answer with this echo arrives, and acknowledges nothing new.
fn echo(half: &mut Half, now: Time, echo: u32) -> bool {
    half.answered(now, ack(0), stamps(0, echo))
}

fn shortest(half: &mut Half, now: Time) -> Option<Span> {
    half.shortest.get(now)
}

#[test]
fn the_syn_and_its_answer_are_the_first_sample_and_later_ones_make_it_shorter_only() {
    let mut half = Half::default();
    half.departed(at(0), syn(99), None);
    assert!(!half.answered(at(29), ack(99), None), "it acknowledges the byte before the SYN");
    assert!(half.answered(at(30), Segment { flags: SYN | ACK, ..ack(100) }, None));
    assert!(!half.answered(at(31), ack(100), None), "once");
    assert_eq!(shortest(&mut half, at(31)), Some(ms(30)));
    // One segment at a time: the one of 100 B is timed, and answered together with the 200 B behind it.
    half.departed(at(40), data(100, 100), None);
    half.departed(at(50), data(200, 200), None);
    assert!(!half.answered(at(60), ack(199), None));
    assert!(half.answered(at(65), ack(400), None));
    assert_eq!(shortest(&mut half, at(65)), Some(ms(25)));
    half.departed(at(70), data(400, 1), None);
    assert!(half.answered(at(170), ack(401), None));
    assert_eq!(shortest(&mut half, at(170)), Some(ms(25)));
}

#[test]
fn what_was_sent_again_measures_nothing() {
    // A SYN, and data: repeated whole, in part, and together with more.
    for (first, again) in [(syn(0), syn(0)), (data(5, 10), data(5, 10)), (data(5, 10), data(14, 90))] {
        let mut half = Half::default();
        half.departed(at(0), first, None);
        half.departed(at(500), again, None);
        assert!(!half.answered(at(530), ack(first.sequence.wrapping_add(first.numbers())), None));
        assert_eq!(shortest(&mut half, at(530)), None);
        // The next new data yields one.
        half.departed(at(600), data(104, 1), None);
        assert!(half.answered(at(630), ack(105), None));
    }
}

#[test]
fn segments_in_another_order_measure_nothing_wrong() {
    let mut half = Half::default();
    // An earlier segment was overtaken, which looks like a retransmission to the gateway.
    half.departed(at(0), data(100, 100), None);
    half.departed(at(5), data(0, 100), None);
    assert!(!half.answered(at(20), ack(200), None));
    // TSvals out of order: the newest is timed, and an older one starts no sample.
    stamp(&mut half, at(100), 50);
    stamp(&mut half, at(104), 49);
    assert!(!echo(&mut half, at(120), 49));
    assert!(echo(&mut half, at(122), 50));
    assert_eq!(shortest(&mut half, at(122)), Some(ms(22)));
}

#[test]
fn numbers_and_timestamps_wrap() {
    let mut half = Half::default();
    half.departed(at(0), data(u32::MAX - 4, 10), stamps(u32::MAX, 0));
    assert!(!half.answered(at(8), ack(u32::MAX), None));
    assert!(half.answered(at(9), ack(5), None));
    assert!(echo(&mut half, at(12), u32::MAX));
    // The clock wraps to 0.
    stamp(&mut half, at(20), 0);
    assert!(!echo(&mut half, at(24), u32::MAX));
    assert!(echo(&mut half, at(27), 0));
    assert_eq!(shortest(&mut half, at(27)), Some(ms(7)));
}

#[test]
fn the_first_segment_with_a_timestamp_is_timed_to_the_first_that_echoes_it() {
    let mut half = Half::default();
    // Three segments within a tick of the clock.
    for now in [0, 4, 8] {
        stamp(&mut half, at(now), 1);
    }
    stamp(&mut half, at(10), 2);
    assert!(!echo(&mut half, at(40), 0));
    assert!(echo(&mut half, at(41), 1) && !echo(&mut half, at(45), 1));
    // 2 departed while 1 was in flight, and is not timed; an answer skips 3.
    stamp(&mut half, at(50), 3);
    stamp(&mut half, at(60), 4);
    assert!(!echo(&mut half, at(90), 4));
    stamp(&mut half, at(100), 5);
    assert!(echo(&mut half, at(131), 5));
    assert_eq!(shortest(&mut half, at(131)), Some(ms(31)));
}

#[test]
fn who_sends_what_is_lost_and_sends_it_again_gains_nothing() {
    // The host on the other side drops the first, for its checksum, and answers the second at once.
    let mut half = Half::default();
    for round in 0..100_u32 {
        let now = |later| at(u64::from(round) * 2_000 + later);
        half.departed(now(0), data(round, 1), stamps(round, 0));
        half.departed(now(900), data(round, 1), stamps(round, 0));
        assert!(!half.answered(now(905), ack(round + 1), stamps(0, round)));
        assert_eq!(shortest(&mut half, now(905)), None);
    }
}

#[test]
fn nobody_can_acknowledge_or_echo_what_has_not_departed() {
    let mut half = Half::default();
    half.departed(at(0), data(0, 100), stamps(10, 0));
    for (number, echo) in [(101, 11), (1 << 31, 1 << 31), (u32::MAX, u32::MAX)] {
        assert!(!half.answered(at(1), ack(number), stamps(0, echo)));
    }
    assert!(!half.answered(at(1), Segment { flags: ACK | RST, ..ack(100) }, stamps(0, 10)));
    // None of these left any state.
    assert!(half.answered(at(20), ack(100), stamps(0, 10)));
    assert_eq!(shortest(&mut half, at(20)), Some(ms(20)));
}

#[test]
fn an_answer_that_comes_too_late_is_of_something_else() {
    let mut half = Half::default();
    half.departed(at(0), data(0, 1), stamps(1, 0));
    assert!(!half.answered(at(1_001), ack(1), stamps(0, 1)));
    // A segment without an answer is given up.
    half.departed(at(2_000), data(1, 1), stamps(2, 0));
    half.departed(at(3_001), data(2, 1), stamps(3, 0));
    assert!(half.answered(at(3_031), ack(3), stamps(0, 3)));
    assert_eq!(shortest(&mut half, at(3_031)), Some(ms(30)));
}

#[test]
fn another_connection_of_the_same_ports_starts_anew() {
    let mut half = Half::default();
    half.departed(at(0), data(1 << 30, 1), stamps(1 << 30, 0));
    half.departed(at(1), syn(0), stamps(0, 0));
    assert!(half.answered(at(40), ack(1), stamps(0, 0)));
    assert_eq!(shortest(&mut half, at(40)), Some(ms(39)));
}

#[test]
fn the_shortest_follows_a_longer_path_within_two_windows_and_is_forgotten_after_them() {
    let mut half = Half::default();
    for second in 0..620 {
        let rtt = if second < 60 { 10 } else { 50 };
        half.departed(at(second * 1_000), data(second as u32, 1), None);
        assert!(half.answered(at(second * 1_000 + rtt), ack(second as u32 + 1), None));
        let expected = if second < 600 { 10 } else { 50 };
        assert_eq!(shortest(&mut half, at(second * 1_000 + rtt)), Some(ms(expected)), "{second}");
    }
    assert_eq!(shortest(&mut half, at(620_000 + 299_000)), Some(ms(50)));
    assert_eq!(shortest(&mut half, at(620_000 + 600_000)), None);
}

#[test]
fn a_round_trip_is_bounded_and_small_changes_are_kept_from_queues() {
    let mut trips = RoundTrips::default();
    assert!(!trips.confirm(at(0), 1, ms(30)), "a flow that departed nothing");
    trips.half(1, 2);
    assert!(trips.confirm(at(0), 1, ms(30)));
    // An eighth of 30 ms is 3.75 ms.
    assert!(!trips.confirm(at(1), 1, ms(33)) && !trips.confirm(at(2), 1, ms(27)));
    assert!(trips.confirm(at(3), 1, ms(34)));
    for (halves, rtt) in [(ms(1_700), ms(1_000)), (Span::from_micros(20), ms(1))] {
        assert!(trips.confirm(at(4), 1, halves));
        assert_eq!(trips.rtt(1), rtt);
    }
    trips.half(0, 2);
    assert!(trips.confirm(at(4), 0, ms(3)));
    assert_eq!(trips.known(), (2, ms(2)));
    // Ten minutes later.
    assert!(!trips.expire(at(600_003), 0) && trips.expire(at(600_004), 0) && !trips.expire(at(600_005), 0));
    assert_eq!((trips.known(), trips.rtt(0)), ((1, ms(1)), Span::ZERO));
    trips.forget(1);
    assert_eq!((trips.known(), trips.shortest(at(700_000), 1)), ((0, Span::ZERO), None));
}

#[test]
fn whatever_comes_no_sample_is_longer_than_the_longest_or_than_the_connection_is_old() {
    let mut random = Stream::new(1, "round trips");
    for _ in 0..300 {
        let (mut half, mut now) = (Half::default(), at(0));
        for _ in 0..300 {
            let mut below = |n: u32| (random.uniform() * f64::from(n)) as u32;
            let bits = below(22);
            now += Span::from_micros(below(1 << bits).into());
            // Numbers near each other, near the wrap and anywhere.
            let mut number = || match below(3) {
                0 => below(2_000).wrapping_sub(1_000),
                1 => below(2_000),
                _ => (below(1 << 16) << 16) | below(1 << 16),
            };
            let (sequence, acknowledged, value, echo) = (number(), number(), number(), number());
            let flags = below(64) as u8;
            let acknowledges = (flags & ACK != 0).then_some(acknowledged);
            let segment = Segment { flags, sequence, payload: Bytes::new(below(1_500).into()), acknowledges };
            let stamps = (below(4) > 0).then_some(Timestamps { value, echo: acknowledges.map(|_| echo) });
            if below(2) == 0 {
                half.departed(now, segment, stamps);
            } else if half.answered(now, segment, stamps) {
                let found = shortest(&mut half, now).unwrap();
                assert!(found <= LONGEST && found <= now.since(Time::ZERO));
            }
        }
    }
}
