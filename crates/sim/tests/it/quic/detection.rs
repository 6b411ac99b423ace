//! Transcripts of a sender: loss detection by RFC 9002, probe timeouts, and the window.

use apportion_core::Ecn;
use apportion_core::units::{Span, Time};
use apportion_sim::quic::packet::Packet;

use super::transcript::{RTT, Script, at};

fn ms(time: Time) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Ten packets in flight, sent when the pacer allows: the times of sending are irrelevant.
fn ten() -> Script {
    let mut script = Script::open(&[]);
    let first = script.supply(at(100), 10).len();
    let rest = script.wait(at(199)).len();
    assert_eq!((first + rest, script.sender.in_flight()), (10, 10));
    script
}

#[test]
fn packets_leave_at_twice_the_window_in_a_round_trip_two_at_a_time() {
    // 2 · 10 packets of 1500 bytes in 100 ms are 2.4 Mb/s: two of them take 10 ms.
    let mut script = Script::open(&[]);
    assert_eq!(script.supply(at(100), 10).len(), 2);
    let times: Vec<f64> = script.wait(at(199)).iter().map(|(now, _)| ms(*now)).collect();
    assert_eq!(times, [110.0, 110.0, 120.0, 120.0, 130.0, 130.0, 140.0, 140.0]);
}

#[test]
fn a_packet_is_lost_when_the_third_after_it_is_acknowledged_and_its_data_leave_in_a_new_one() {
    let mut script = ten();
    // Section 6.1.1: 2 is less than kPacketThreshold after 0.
    assert_eq!(script.ack(at(210), &[(1, 2)]), []);
    assert_eq!(script.sender.stats().lost, 0);
    // Packet 3 is at the threshold. No new data wait: the data of 0 leave in packet 10.
    let sent = script.ack(at(215), &[(1, 3)]);
    assert_eq!(sent, [(10, 0, 1_431)]);
    let stats = *script.sender.stats();
    assert_eq!((stats.lost, stats.retransmits, stats.recoveries), (1, 1, 1));
    // Packet numbers continue, whatever the content.
    script.ack(at(320), &[(1, 10)]);
    assert_eq!((script.supply(at(321), 1)[0].0, script.sender.in_flight()), (11, 1));
}

#[test]
fn the_packet_threshold_is_a_parameter() {
    let mut script = Script::open(&[("packet_threshold", "5")]);
    script.supply(at(100), 10);
    script.wait(at(199));
    script.ack(at(205), &[(1, 4)]);
    assert_eq!(script.sender.stats().lost, 0);
    script.ack(at(206), &[(1, 5)]);
    assert_eq!(script.sender.stats().lost, 1);
}

#[test]
fn a_packet_is_lost_nine_eighths_of_a_round_trip_after_it_was_sent_if_a_later_one_arrived() {
    let mut script = Script::open(&[]);
    // Two packets leave at once, which is the pacer's quantum.
    assert_eq!(script.supply(at(100), 2).len(), 2);
    // 1 took 96 ms: smoothed 99.5, and 9/8 of the longer are 111.9375 ms after 100.
    script.ack(at(196), &[(1, 1)]);
    let lost_at = script.sender.next_timer().unwrap();
    assert!((ms(lost_at) - 211.9375).abs() < 1e-3, "{lost_at}");
    // Before the timer nothing happens; then the data of 0 leave in packet 2.
    script.sender.on_timer(at(211), &mut script.out);
    assert_eq!((script.out.data().len(), script.sender.stats().lost), (0, 0));
    assert_eq!(script.wait(lost_at), [(lost_at, 2)]);
    let stats = *script.sender.stats();
    assert_eq!((stats.lost, stats.probe_timeouts), (1, 0));
}

#[test]
fn without_an_acknowledgment_two_packets_leave_after_each_probe_timeout_which_doubles() {
    let mut script = Script::open(&[]);
    assert_eq!(script.supply(at(100), 2).len(), 2);
    // Section 6.2.1: 100 + 4 · 50 + 25 = 325 ms after the last packet, then twice and four times that.
    let probes = script.wait(at(3_000));
    let times: Vec<f64> = probes.iter().map(|(now, _)| ms(*now)).collect();
    assert_eq!(times, [425.0, 425.0, 1_075.0, 1_075.0, 2_375.0, 2_375.0]);
    let numbers: Vec<u32> = probes.iter().map(|(_, number)| *number).collect();
    assert_eq!(numbers, [2, 3, 4, 5, 6, 7]);
    // A probe timeout does not indicate loss, and does not reduce the window (section 6.2).
    let stats = *script.sender.stats();
    assert_eq!((stats.lost, stats.recoveries, script.sender.cwnd()), (0, 0, 10.0));
    assert_eq!((stats.probe_timeouts, stats.retransmits), (3, 6));
    // An acknowledgment ends backoff: the next timeout is one period after the next transmission.
    script.ack(at(3_100), &[(6, 7)]);
    assert_eq!(script.sender.in_flight(), 0);
    script.supply(at(4_000), 1);
    let wait = script.sender.next_timer().unwrap().since(at(4_000));
    assert!(wait < Span::from_secs(3), "{wait}");
}

#[test]
fn probes_carry_new_data_if_there_are_any_and_exceed_the_window() {
    let mut script = Script::open(&[]);
    script.supply(at(100), 100);
    script.wait(at(300));
    assert_eq!(script.sender.in_flight(), 10);
    let at = script.sender.next_timer().unwrap();
    script.sender.on_timer(at, &mut script.out);
    assert_eq!(script.out.data(), [(10, 14_310, 1_431), (11, 15_741, 1_431)]);
    assert_eq!(script.sender.in_flight(), 12);
}

#[test]
fn the_handshake_is_sent_again_after_a_second_and_its_answer_is_timed_by_its_number() {
    let mut script = Script::start(&[]);
    script.wait(at(3_500));
    // Sections 6.2.1 and 6.2.2: 999 ms, then twice that; the last is answered.
    script.sender.on_packet(at(3_047), &Packet::Accept(2), &[], &mut script.out);
    assert_eq!(script.sender.stats().probe_timeouts, 2);
    assert_eq!(script.sender.srtt(), Some(Span::from_millis(3_047 - 2_997)));
    assert_eq!(script.supply(at(3_100), 1), [(0, 0, 1_431)]);
}

/// Packet 0 is acknowledged, and 1 to 6 leave 200 ms apart from 0.4 s on, of which `ranges` are acknowledged
/// at 1.5 s. The probe timeout is then 100 + 4 · 28.125 + 25 ms: three of them are 712.5 ms.
fn six_in_a_second(ranges: &[(u32, u32)]) -> Script {
    let mut script = Script::open(&[]);
    script.supply(at(200), 1);
    script.ack(at(300), &[(0, 0)]);
    for number in 1..=6 {
        assert_eq!(script.supply(at(200 + 200 * number), 1).len(), 1);
    }
    script.ack(at(1_500), ranges);
    script
}

#[test]
fn persistent_congestion_leaves_two_packets_of_the_window() {
    // 1 to 5, which left from 0.4 to 1.2 s, are lost. The loss halved the window, which determines where slow
    // start ends.
    let script = six_in_a_second(&[(6, 6)]);
    let stats = *script.sender.stats();
    assert_eq!((stats.lost, stats.persistent, stats.recoveries), (5, 1, 1));
    assert_eq!((script.sender.cwnd(), script.sender.ssthresh()), (2.0, 5.0));
}

#[test]
fn losses_before_and_after_a_packet_that_arrived_are_no_persistent_congestion() {
    let script = six_in_a_second(&[(6, 6), (3, 3)]);
    let stats = *script.sender.stats();
    assert_eq!((stats.lost, stats.persistent, script.sender.cwnd()), (4, 0, 5.0));
}

#[test]
fn losses_within_less_than_three_probe_timeouts_are_no_persistent_congestion() {
    // 2 to 5 left within 600 ms.
    let script = six_in_a_second(&[(6, 6), (1, 1)]);
    assert_eq!((script.sender.stats().lost, script.sender.stats().persistent), (4, 0));
}

#[test]
fn a_packet_that_was_only_late_is_counted_and_not_sent_again_if_there_is_time() {
    let mut script = Script::open(&[]);
    script.supply(at(100), 10);
    script.wait(at(199));
    // 0 and 1 are presumed lost; the window is 5, with 5 in flight, and recovery lets one packet out.
    let sent = script.ack(at(210), &[(2, 4)]);
    assert_eq!(sent, [(10, 0, 1_431)]);
    // Both arrive after all: neither is sent again any more.
    script.ack(at(212), &[(0, 6)]);
    let stats = *script.sender.stats();
    assert_eq!((stats.lost, stats.spurious, stats.retransmits), (2, 2, 1));
    // RFC 9002 does not restore the window.
    assert_eq!(script.sender.cwnd(), 5.0);
}

#[test]
fn a_packet_that_was_only_late_opens_the_window_of_flow_control_at_once() {
    // The receiver's limit allows four packets beyond the data received in order.
    let mut script = Script::open(&[("window", "5724B")]);
    let first = script.supply(at(100), 100).len();
    assert_eq!(first + script.wait(at(199)).len(), 4);
    // 0 is presumed lost: its data leave again, and new data may not.
    assert_eq!(script.ack(at(215), &[(1, 3)]), [(4, 0, 1_431)]);
    script.wait(at(240));
    // Packet 0 arrives after all, and all data sent are in order.
    assert_eq!(script.ack(at(240), &[(0, 3)]), [(5, 5_724, 1_431)]);
    assert_eq!((script.sender.stats().spurious, script.sender.in_flight()), (1, 2));
}

#[test]
fn losses_of_one_round_trip_halve_the_window_once_and_those_of_the_next_again() {
    let mut script = Script::open(&[]);
    script.supply(at(100), 1_000);
    script.wait(at(199));
    script.ack(at(200), &[(0, 9)]);
    script.wait(at(299));
    assert_eq!((script.sender.cwnd(), script.sender.in_flight()), (20.0, 20));
    // 10 is lost, and 14: one reduction.
    script.ack(at(300), &[(11, 13)]);
    assert_eq!((script.sender.cwnd(), script.sender.stats().recoveries), (10.0, 1));
    script.ack(at(305), &[(15, 17), (11, 13)]);
    assert_eq!((script.sender.cwnd(), script.sender.stats().lost), (10.0, 2));
    script.wait(at(399));
    // Packets sent until the loss was detected do not increase it (section 7.3.2): up to 30, which recovery
    // released at once.
    script.ack(at(399), &[(15, 29), (11, 13)]);
    script.ack(at(400), &[(15, 30), (11, 13)]);
    assert_eq!(script.sender.cwnd(), 10.0);
    script.wait(at(480));
    // 31 was sent later: recovery is over, and the window grows by a tenth of a packet. 32 is lost: the
    // window is halved again.
    script.ack(at(500), &[(15, 31), (11, 13)]);
    let open = script.sender.cwnd();
    assert!((open - 10.1).abs() < 1e-9, "{open}");
    script.ack(at(505), &[(33, 35), (15, 31)]);
    assert_eq!((script.sender.cwnd(), script.sender.stats().recoveries), (open / 2.0, 2));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // Section 7.8: three packets of ten, repeatedly.
    let mut script = Script::open(&[]);
    for round in 0..5 {
        script.supply(at(100 + 200 * round), 3);
        script.wait(at(150 + 200 * round));
        let first = 3 * round as u32;
        script.ack(at(200 + 200 * round), &[(first, first + 2)]);
    }
    assert_eq!(script.sender.cwnd(), 10.0);
}

#[test]
fn time_in_which_the_window_is_not_used_does_not_count_for_cubic() {
    let mut script = Script::open(&[("algorithm", "cubic")]);
    script.supply(at(100), 20);
    script.wait(at(199));
    // 0 is lost: 0.7 of 10 are left. An ACK of a later packet begins an epoch.
    script.ack(at(210), &[(1, 9)]);
    script.wait(at(300));
    script.ack(at(320), &[(1, 16)]);
    script.wait(at(400));
    let last = 16 + script.sender.in_flight();
    script.ack(at(420), &[(1, last)]);
    let before = script.sender.cwnd();
    assert!((7.0..9.0).contains(&before), "{before}");
    // A packet per second for twenty seconds.
    for k in 1..=20 {
        script.supply(at(1_000 * k), 1);
        script.ack(at(1_000 * k + 100), &[(1, last + k as u32)]);
    }
    script.supply(at(20_110), 100);
    script.wait(at(20_209));
    script.ack(at(20_230), &[(1, last + 20 + script.sender.in_flight())]);
    // A cubic function that had continued for twenty seconds would increase it by half in a round trip.
    let grown = script.sender.cwnd() - before;
    assert!(grown < 2.0, "{before} and {grown}");
}

#[test]
fn marks_halve_the_window_once_a_round_trip() {
    let mut script = Script::open(&[("ecn", "true")]);
    script.sender.supply(at(100), 1_431_000, &mut script.out);
    assert!(script.out.0.iter().all(|(.., ecn)| *ecn == Ecn::Ect0));
    script.out.0.clear();
    script.wait(at(199));
    script.ack_with(at(205), &[(0, 1)], Span::ZERO, 1);
    assert_eq!(script.sender.cwnd(), 5.0);
    // Another mark on an earlier packet: the same congestion. No mark: none.
    script.ack_with(at(206), &[(0, 3)], Span::ZERO, 2);
    script.ack_with(at(207), &[(0, 5)], Span::ZERO, 2);
    assert_eq!((script.sender.cwnd(), script.sender.stats().ecn_reductions), (5.0, 1));
}

#[test]
fn the_delay_that_a_receiver_names_is_not_part_of_the_round_trip() {
    let mut script = Script::open(&[]);
    script.supply(at(100), 1);
    script.ack_with(at(220), &[(0, 0)], Span::from_millis(20), 0);
    assert_eq!(script.sender.srtt(), Some(RTT));
}

#[test]
fn an_acknowledgment_of_what_was_never_sent_means_nothing() {
    let mut script = ten();
    assert_eq!(script.ack(at(210), &[(10, 10), (0, 8)]), []);
    assert_eq!(script.sender.in_flight(), 10);
    // An ACK without new ranges restarts no timer.
    script.ack(at(211), &[(0, 9)]);
    let timer = script.sender.next_timer();
    script.ack(at(212), &[(0, 9)]);
    assert_eq!((script.sender.in_flight(), script.sender.next_timer()), (0, timer));
}
