//! A link with hand-made times.

use apportion_core::packet::{Ecn, FlowClass, Protocol};
use apportion_core::queue::DropReason;
use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext};
use apportion_core::units::{Bytes, Packets};
use apportion_linux::pool::HEAD;
use apportion_runtime::outcome::LinkOutcome;
use apportion_runtime::probe::LinkCounts;

use super::*;
use crate::packet::Description;

fn queue(kind: &str, limit: &str) -> LinkQueue<Packet> {
    let mut selection = Selection::new(kind, None, None).unwrap();
    selection.set("limit", limit).unwrap();
    DisciplineParams::from_args(&selection).unwrap().build(&LinkContext::new(Rate::from_mbit(10), 1, "link"))
}

/// 10 Mb/s and 20 ms, with a FIFO of 10 packets.
fn link() -> Link {
    let parts = LinkParts::new(0, queue("fifo", "10p"), Rate::from_mbit(10));
    let parts = LinkParts { delay: Span::from_millis(20), ..parts };
    Link::new(parts, Pace::rate(Rate::from_mbit(10)), None)
}

fn shared() -> SharedState {
    SharedState::new(Pool::new(64, 1_514), 2)
}

/// A packet of 1250 bytes, 1 ms at 10 Mb/s.
fn packet(shared: &mut SharedState, now: Time) -> Packet {
    packet_with(shared, now, Ecn::NotEct)
}

fn packet_with(shared: &mut SharedState, now: Time, ecn: Ecn) -> Packet {
    let buffer = shared.pool.take(0).unwrap();
    let description = Description {
        flow: FlowId(1),
        size: Bytes::new(1_250),
        protocol: Protocol::Udp,
        ecn,
        label: None,
        account: 1,
        counts: true,
        ip: None,
        acknowledgement: 0,
    };
    Packet::new((buffer, HEAD as u8, 1_250), &description, 0, now)
}

fn enter(link: &mut Link, shared: &mut SharedState, now: Time) {
    let packet = packet(shared, now);
    link.enter(now, packet, shared);
}

/// Handles due events, each at its time, though the first call is at `late`. Returns the times of arrivals.
fn arrivals(link: &mut Link, shared: &mut SharedState, late: Time) -> Vec<Time> {
    let mut all = Vec::new();
    while link.next() <= late {
        let at = link.next();
        if let Some(packet) = link.on_timer(at, shared) {
            shared.pool.give_back(packet.buffer);
            all.push(at);
        }
    }
    all
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[test]
fn departures_follow_from_the_last_one_however_late_the_caller_is() {
    let (mut link, mut shared) = (link(), shared());
    (0..3).for_each(|_| enter(&mut link, &mut shared, ms(0)));
    // Each takes 1 ms and is on the wire for 20 ms; the caller comes after half a second.
    assert_eq!(arrivals(&mut link, &mut shared, ms(500)), [ms(21), ms(22), ms(23)]);
    assert_eq!((link.next(), shared.pool.used()), (Time::MAX, 0));
    assert_eq!(link.busy(), Span::from_millis(3));
}

#[test]
fn a_full_queue_drops_and_gives_buffers_back() {
    let (mut link, mut shared) = (link(), shared());
    // One packet in transmission and ten that wait.
    (0..15).for_each(|_| enter(&mut link, &mut shared, ms(0)));
    assert_eq!(link.state.backlog().packets, Packets::new(10));
    assert_eq!(shared.flows[1].dropped[DropReason::Overflow as usize], 4);
    assert_eq!((shared.pool.used(), arrivals(&mut link, &mut shared, ms(100)).len()), (11, 11));
    assert_eq!(shared.pool.used(), 0);
}

#[test]
fn rate_zero_holds_packets_until_there_is_a_rate_again() {
    let (mut link, mut shared) = (link(), shared());
    enter(&mut link, &mut shared, ms(0));
    link.set_pace(ms(0), Pace::rate(Rate::ZERO), &mut shared);
    enter(&mut link, &mut shared, ms(0));
    // The packet in transmission finishes at its old rate.
    assert_eq!(arrivals(&mut link, &mut shared, ms(1_000)), [ms(21)]);
    link.set_pace(ms(1_000), Pace::rate(Rate::from_mbit(1)), &mut shared);
    // 10 ms at the new rate.
    assert_eq!(arrivals(&mut link, &mut shared, ms(2_000)), [ms(1_030)]);
}

#[test]
fn no_packet_overtakes_another_when_the_delay_shrinks() {
    let (mut link, mut shared) = (link(), shared());
    (0..2).for_each(|_| enter(&mut link, &mut shared, ms(0)));
    link.state.set_delay(Span::from_millis(1));
    // The first packet left before the change. The second would arrive at 3 ms.
    assert_eq!(arrivals(&mut link, &mut shared, ms(100)), [ms(21), ms(21)]);
}

#[test]
fn another_discipline_loses_no_packet_and_keeps_their_order() {
    let (mut link, mut shared) = (link(), shared());
    (0..5).for_each(|_| enter(&mut link, &mut shared, ms(0)));
    link.set_queue(ms(0), queue("drr", "10p"), &mut shared);
    assert_eq!(link.state.backlog().packets, Packets::new(4));
    assert_eq!(arrivals(&mut link, &mut shared, ms(100)), [ms(21), ms(22), ms(23), ms(24), ms(25)]);
}

type Change = dyn Fn(&mut Link, &mut SharedState, Time);

/// Measurements of a link of 10 Mb/s whose RAMP queue serves one real-rate flow: 4 Mb/s for a second, silence
/// to 1.17 s, when `change` is made, and 4 Mb/s again to 2 s. If `is_current`, the discipline is brought up
/// to date just before the change.
fn measured(is_current: bool, change: &Change) -> LinkOutcome {
    let mut link = Link::new(
        LinkParts { watched: true, ..LinkParts::new(0, ramp(), Rate::from_mbit(10)) },
        Pace::rate(Rate::from_mbit(10)),
        None,
    );
    let mut shared = SharedState::new(Pool::new(1_000, 1_514), 2);
    shared.flow_of_id = vec![0, 1];
    let sends = |link: &mut Link, shared: &mut SharedState, from: u64, to: u64| {
        for at in (from..to).map(|number| Time::from_nanos(2_500_000 * number)) {
            arrivals(link, shared, at);
            enter(link, shared, at);
        }
    };
    sends(&mut link, &mut shared, 0, 400);
    let at = ms(1_170);
    arrivals(&mut link, &mut shared, at);
    if is_current {
        link.state.catch_up(at, &mut shared);
    }
    change(&mut link, &mut shared, at);
    sends(&mut link, &mut shared, 480, 800);
    let end = ms(2_000);
    arrivals(&mut link, &mut shared, end);
    link.state.outcome(end, &LinkCounts::default(), end.since(Time::ZERO), &|_| Some(1), &mut shared)
}

fn ramp() -> LinkQueue<Packet> {
    let params = DisciplineParams::from_args(&Selection::new("ramp", None, None).unwrap()).unwrap();
    let classes = [FlowClass::Greedy, FlowClass::RealRate];
    params.build(&LinkContext { classes: &classes, ..LinkContext::new(Rate::from_mbit(10), 1, "link") })
}

#[test]
fn a_change_finds_a_discipline_that_has_done_what_was_due_before_it() {
    let unchanged = measured(false, &|_, _, _| ());
    assert!(unchanged.allocations[0].measured > Bytes::new(500_000), "{unchanged:?}");
    let changes: [(&str, &Change); 3] = [
        ("rate", &|link, shared, now| link.set_pace(now, Pace::rate(Rate::from_mbit(3)), shared)),
        ("class", &|link, shared, now| {
            link.set_flow(now, FlowId(1), FlowSetting::Class(FlowClass::Greedy), shared);
        }),
        ("queue", &|link, shared, now| link.set_queue(now, ramp(), shared)),
    ];
    for (name, change) in changes {
        let [late, current] = [false, true].map(|is_current| format!("{:?}", measured(is_current, change)));
        assert_eq!(late, current, "{name}");
        assert_ne!(late, format!("{unchanged:?}"), "{name}");
    }
}

#[test]
fn the_end_of_an_overload_is_told_by_a_link_that_is_idle() {
    let mut link =
        Link::new(LinkParts::new(0, ramp(), Rate::from_mbit(10)), Pace::rate(Rate::from_mbit(10)), None);
    let mut shared = SharedState::new(Pool::new(1_000, 1_514), 2);
    // 250 kB at once, which leave within 200 ms.
    (0..200).for_each(|_| enter(&mut link, &mut shared, Time::ZERO));
    assert_eq!(arrivals(&mut link, &mut shared, ms(1_500)).len(), 200);
    let told: Vec<_> = shared.overloads.iter().map(|(_, _, overload)| overload.is_over).collect();
    assert_eq!(told, [false, true]);
    assert_eq!(link.next(), Time::MAX);
}

#[test]
fn csfq_marks_packets_of_l4s_and_drops_others() {
    // 12 Mb/s for 10 s on 10 Mb/s: within 4/3 of the share all of the excess is marked.
    let outcome = |ecn| {
        let mut shared = SharedState::new(Pool::new(256, 1_514), 2);
        let parts = LinkParts::new(0, queue("csfq", "100kB"), Rate::from_mbit(10));
        let mut link = Link::new(parts, Pace::rate(Rate::from_mbit(10)), None);
        let mut marked = 0;
        for n in 0..12_000 {
            let now = Time::ZERO + Span::from_micros(833 * n);
            while link.next() <= now {
                let at = link.next();
                if let Some(packet) = link.on_timer(at, &mut shared) {
                    marked += u64::from(packet.was_marked());
                    shared.pool.give_back(packet.buffer);
                }
            }
            let packet = packet_with(&mut shared, now, ecn);
            link.enter(now, packet, &mut shared);
        }
        (marked, shared.flows[1].dropped.iter().sum::<u64>())
    };
    let (marked, dropped) = outcome(Ecn::Ect1);
    assert!(marked > 6_000, "{marked} marked, {dropped} dropped");
    let (marked, dropped) = outcome(Ecn::NotEct);
    assert!(marked == 0 && dropped > 1_500, "{marked} marked, {dropped} dropped");
}
