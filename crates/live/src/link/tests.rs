//! A link with hand-made times.

use apportion_core::packet::{Ecn, Protocol};
use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext};
use apportion_core::units::{Bytes, Packets};
use apportion_linux::pool::HEAD;

use super::*;
use crate::packet::Description;

fn queue(kind: &str, limit: &str) -> Discipline<Packet> {
    let mut selection = Selection::new(kind, None, None).unwrap();
    selection.set("limit", limit).unwrap();
    DisciplineParams::from_args(&selection).unwrap().build(&LinkContext::new(Rate::from_mbit(10), 1, "link"))
}

/// 10 Mb/s and 20 ms, with a FIFO of 10 packets.
fn link() -> Link {
    Link::new(LinkParts {
        delay: Span::from_millis(20),
        ..LinkParts::new(0, queue("fifo", "10p"), Pace::rate(Rate::from_mbit(10)), Stream::new(1, "loss"))
    })
}

fn books() -> Books {
    Books::new(Pool::new(64, 1_514), 2)
}

/// A packet of 1250 bytes, 1 ms at 10 Mb/s.
fn packet(books: &mut Books, now: Time) -> Packet {
    let buffer = books.pool.take(0).unwrap();
    let description = Description {
        flow: FlowId(1),
        size: Bytes::new(1_250),
        protocol: Protocol::Udp,
        ecn: Ecn::NotEct,
        label: None,
        account: 1,
        counts: true,
        ip: None,
        acknowledgement: 0,
    };
    Packet::new((buffer, HEAD as u8, 1_250), &description, 0, now)
}

fn enter(link: &mut Link, books: &mut Books, now: Time) {
    let packet = packet(books, now);
    link.enter(now, packet, books);
}

/// Handles what is due, each at its time, though nobody came before `late`; the times of arrivals.
fn arrivals(link: &mut Link, books: &mut Books, late: Time) -> Vec<Time> {
    let mut all = Vec::new();
    while link.next() <= late {
        let at = link.next();
        if let Some(packet) = link.handle(at, books) {
            books.pool.give_back(packet.buffer);
            all.push(at);
        }
    }
    all
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[test]
fn departures_follow_from_the_last_one_however_late_somebody_comes() {
    let (mut link, mut books) = (link(), books());
    (0..3).for_each(|_| enter(&mut link, &mut books, ms(0)));
    // Each takes 1 ms and is under way for 20 ms; the caller comes after half a second.
    assert_eq!(arrivals(&mut link, &mut books, ms(500)), [ms(21), ms(22), ms(23)]);
    assert_eq!((link.next(), books.pool.used()), (Time::MAX, 0));
    assert_eq!(link.busy(), Span::from_millis(3));
}

#[test]
fn a_full_queue_drops_and_gives_buffers_back() {
    let (mut link, mut books) = (link(), books());
    // One in transmission and ten that wait.
    (0..15).for_each(|_| enter(&mut link, &mut books, ms(0)));
    assert_eq!(link.backlog().packets, Packets::new(10));
    assert_eq!(books.flows[1].dropped[DropReason::Overflow as usize], 4);
    assert_eq!((books.pool.used(), arrivals(&mut link, &mut books, ms(100)).len()), (11, 11));
    assert_eq!(books.pool.used(), 0);
}

#[test]
fn rate_zero_holds_packets_until_there_is_a_rate_again() {
    let (mut link, mut books) = (link(), books());
    enter(&mut link, &mut books, ms(0));
    link.set_pace(ms(0), Pace::rate(Rate::ZERO), &mut books);
    enter(&mut link, &mut books, ms(0));
    // The one in transmission finishes as it began.
    assert_eq!(arrivals(&mut link, &mut books, ms(1_000)), [ms(21)]);
    link.set_pace(ms(1_000), Pace::rate(Rate::from_mbit(1)), &mut books);
    // 10 ms at the new rate.
    assert_eq!(arrivals(&mut link, &mut books, ms(2_000)), [ms(1_030)]);
}

#[test]
fn no_packet_overtakes_another_when_the_delay_shrinks() {
    let (mut link, mut books) = (link(), books());
    (0..2).for_each(|_| enter(&mut link, &mut books, ms(0)));
    link.set_delay(Span::from_millis(1));
    // The first left before the change. The second would be there at 3 ms.
    assert_eq!(arrivals(&mut link, &mut books, ms(100)), [ms(21), ms(21)]);
}

#[test]
fn another_discipline_loses_no_packet_and_keeps_their_order() {
    let (mut link, mut books) = (link(), books());
    (0..5).for_each(|_| enter(&mut link, &mut books, ms(0)));
    link.set_queue(ms(0), queue("drr", "10p"), &mut books);
    assert_eq!(link.backlog().packets, Packets::new(4));
    assert_eq!(arrivals(&mut link, &mut books, ms(100)), [ms(21), ms(22), ms(23), ms(24), ms(25)]);
}
