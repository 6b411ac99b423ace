//! UDP, and commands.

use apportion_core::units::{Rate, Time};
use apportion_linux::pool::Pool;
use apportion_live::lab::driver::{Command, Connection};

use crate::setup::{cbr, end, engine, hosts, mbit, plan, play_with, udp};

pub fn a_constant_rate_arrives() {
    let (plan, hosts) = (plan(1, 1_000, 3_000), hosts());
    let mut engine = engine(&hosts, "50p");
    // Writes of 1500 B are datagrams of 1000 and of 500 B.
    let outcome = play_with(&mut engine, &hosts, vec![udp(0, &cbr(2_000, 1_500))], plan, |_| ());
    // 28 bytes of each datagram, of 1500 on the wire, are headers, twice.
    let got = mbit(outcome.flows[0].goodput, plan);
    let expected = 2.0 * (1_500.0 - 56.0) / 1_500.0;
    assert!((got / expected - 1.0).abs() < 0.01, "{got} instead of {expected}");
    assert_eq!((outcome.unsent, &outcome.failures[..]), (0, &[][..]));
    // From 100 ms to 2990 ms, 6 ms apart: 482 writes, of two datagrams each.
    let (_, carried) = engine.port_counts(1).unwrap();
    let packets = carried.packets.get();
    assert!((960..=968).contains(&packets), "{packets}");
    assert_eq!(carried.bytes.get(), packets / 2 * 1_500);
}

pub fn a_queue_without_a_limit_leaves_the_way_back_its_buffers() {
    let (plan, hosts) = (plan(2, 500, 2_000), hosts());
    let mut engine = engine(&hosts, "1000000p");
    // This many frames arrive within 0.1 s while 10 Mbit/s leave, plus the buffers for reading.
    engine.shared.pool = Pool::new(512, 1_522);
    let back = Connection { source: end(1, 7_001), sink: end(0, 7_001), ..udp(1, &cbr(2_000, 1_000)) };
    let outcome = play_with(&mut engine, &hosts, vec![udp(0, &cbr(40_000, 1_000)), back], plan, |_| ());
    let full = engine.link(0).unwrap().state.backlog().packets.get();
    assert!((200..=256).contains(&full), "{full} wait");
    // 28 of 1000 bytes on the wire are headers.
    let got = mbit(outcome.flows[1].goodput, plan);
    assert!((got / (2.0 * 0.972) - 1.0).abs() < 0.02, "{got} came back");
}

pub fn rate_zero_silences() {
    let (plan, hosts) = (plan(2, 0, 2_000), hosts());
    let both = vec![udp(0, &cbr(2_000, 1_000)), udp(1, &cbr(2_000, 1_000))];
    let outcome = play_with(&mut engine(&hosts, "50p"), &hosts, both, plan, |running| {
        assert!(running.send(Command::SetRate(0, Rate::ZERO)));
    });
    // 972 B of payload each 4 ms, from 0.1 s to 1 s and to 2 s.
    let [silenced, other] = [0, 1].map(|flow| outcome.flows[flow].goodput.get() / 972);
    assert!(silenced.abs_diff(225) <= 10, "{silenced}");
    assert!(other.abs_diff(473) <= 5, "{other}");
}

pub fn stop_ends_it_at_once() {
    let (plan, hosts) = (plan(1, 0, 2_000), hosts());
    let outcome =
        play_with(&mut engine(&hosts, "50p"), &hosts, vec![udp(0, &cbr(2_000, 1_000))], plan, |running| {
            assert!(running.send(Command::Stop));
        });
    let limit = (Time::from_millis(1_000), Time::from_millis(1_100));
    assert!(outcome.ended >= limit.0 && outcome.ended < limit.1, "{}", outcome.ended);
}
