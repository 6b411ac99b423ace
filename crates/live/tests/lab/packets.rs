//! Effects of links on packets: rate, delay, order of service, changes.
//!
//! Links follow their model, not the clock, so even on a busy machine their throughput is exact while packets
//! wait for them: queues hold more than half a second where that matters, and few packets are sent, so that
//! the buffers of sockets suffice. Results that depend on the scheduling of threads have the [`patience`] of
//! their run.

use apportion_core::units::{Rate, Span};
use apportion_runtime::outcome::Outcome;

use crate::common::{flow, is_about, link, patience, run};

/// Goodput of a flow relative to `mbit`, and its tolerance.
fn goodput(outcome: &Outcome, name: &str, mbit: f64) -> (f64, f64) {
    let seconds = outcome.measured.as_secs_f64();
    let share = flow(outcome, name).goodput.unwrap().bits() as f64 / seconds / 1e6 / mbit;
    (share, patience(outcome) / seconds)
}

pub fn a_full_link_carries_its_rate_in_bytes_of_the_scenario() {
    let outcome = run(r#"
        seed = 1
        stop = "3s"
        measure_from = "1s"
        link.slow = { from = "src", to = "dst", rate = "1Mbit", delay = "5ms", queue = { kind = "fifo", limit = "100p" } }
        link.fast = { from = "near", to = "far", rate = "10Mbit", delay = "5ms", queue = { kind = "fifo", limit = "300p" } }
        [flow.udp]
        from = "src"
        to = "dst"
        source = { kind = "cbr", rate = "2Mbit", packet = "1000B" }
        [flow.tcp]
        from = "near"
        to = "far"
        tcp = { profile = "rfc", algorithm = "cubic", header = "100B" }
    "#);
    // 1 Mb/s for 2 s are 250 packets of 1000 bytes, headers of IP and UDP included; one more or less is in
    // flight at the start and at the end.
    let slow = link(&outcome, "slow").sent;
    assert!(slow.packets.get().abs_diff(250) <= 1, "{slow:?}");
    assert_eq!(slow.bytes.get(), slow.packets.get() * 1_000);
    let udp = flow(&outcome, "udp");
    assert_eq!(udp.delivered.bytes.get(), udp.delivered.packets.get() * 1_000);
    // 28 of the 1000 bytes are headers.
    let (read, late) = goodput(&outcome, "udp", 0.972);
    assert!((read - 1.0).abs() < 0.01 + late, "{read}");
    // The flow sends as much again, which is dropped.
    assert!(is_about(udp.dropped.values().sum(), 125.0, 2.0, &outcome), "{udp:?}");

    // TCP is charged the headers of the scenario, though Linux has no headers of 100 bytes.
    let (fast, tcp) = (link(&outcome, "fast"), flow(&outcome, "tcp"));
    assert!(fast.utilisation > 0.95 - patience(&outcome) / 2.0 && fast.utilisation < 1.001, "{fast:?}");
    let size = tcp.delivered.bytes.get() as f64 / tcp.delivered.packets.get() as f64;
    assert!(size > 1_550.0 && size <= 1_560.0, "{size}");
    // The queue of 370 ms empties if a thread stops for longer, and a twentieth of the data was retransmitted
    // or sent before.
    let (read, late) = goodput(&outcome, "tcp", 10.0 * 1_460.0 / 1_560.0);
    assert!((read - 1.0).abs() < 0.1 + late, "{read}");
}

pub fn packets_take_the_delay_of_their_links() {
    let outcome = run(r#"
        seed = 1
        stop = "2s"
        sample = "100ms"
        # Room for what a sender that was late sends at once.
        defaults.link.queue = { kind = "fifo", limit = "500p" }
        link.one = { from = "src", to = "mid", rate = "10Mbit", delay = "5ms" }
        link.two = { from = "mid", to = "dst", rate = "5Mbit", delay = "10ms" }
        link.wire = { from = "near", to = "far", rate = "100Mbit", delay = "15ms" }
        [flow.udp]
        from = "src"
        to = "dst"
        source = { kind = "cbr", rate = "1Mbit", packet = "1000B" }
        [flow.tcp]
        from = "near"
        to = "far"
        # Four segments.
        tcp = { profile = "rfc", algorithm = "cubic", window = "5840B" }
    "#);
    // 1 Mb/s are 125 packets a second; two are in flight at the end.
    let udp = flow(&outcome, "udp");
    assert!(is_about(udp.sent.packets.get(), 125.0, 2.0, &outcome), "{:?}", udp.sent);
    assert!(is_about(udp.delivered.packets.get() + 2, 125.0, 2.0, &outcome), "{:?}", udp.delivered);
    assert!(udp.dropped.is_empty());
    // 972 bytes each, as the sink read them.
    let read = udp.goodput.unwrap().get() / 972;
    assert!(is_about(read + 2, 125.0, 2.0, &outcome) && read <= udp.delivered.packets.get(), "{read}");
    // 5 + 10 ms of delay, and 0.8 + 1.6 ms of transmission. Packets of a late sender wait for each other.
    let delay = |share| udp.delay.quantile(share).unwrap();
    assert_eq!(delay(0.0), Span::from_micros(17_400));
    assert!(delay(0.5) < Span::from_millis(25), "{}", delay(0.5));
    // The kernel's measurement: 30 ms there and back, and its own time. A frame that is read late counts as
    // of the lab's last round, which makes up for a part of its lateness.
    let srtt = flow(&outcome, "tcp").tcp.iter().filter_map(|sample| sample.srtt).min().unwrap();
    assert!(srtt > Span::from_millis(20) && srtt < Span::from_millis(40), "{srtt}");
    // Frames leave when they are due, not when the thread next runs for another reason. On a busy machine
    // that holds only for frames that find a processor idle: with ten busy loops on two processors a quarter
    // of them, 20 to 50 µs late.
    let late = outcome.timekeeping.as_ref().unwrap().lateness.quantile(0.1).unwrap();
    assert!(late < Span::from_micros(200), "{late}");
}

pub fn a_fair_queue_divides_by_weights() {
    let outcome = run(r#"
        seed = 1
        stop = "3500ms"
        measure_from = "1500ms"
        [topology]
        kind = "dumbbell"
        pairs = 3
        bottleneck = { rate = "10Mbit", delay = "5ms", queue = { kind = "stfq", limit = "150p" } }
        access = { rate = "100Mbit", delay = "1ms" }
        [flow.tcp]
        count = 3
        from = "l{i}"
        to = "r{i}"
        weight = "max(i, 4 * (i - 2))"
        tcp = { profile = "rfc", algorithm = "cubic" }
    "#);
    let all: u64 = outcome.flows.iter().map(|flow| flow.delivered.bytes.get()).sum();
    // Flows with a backlog differ by a few packets of 1667. A twentieth allows for times in which one has
    // none after a loss. A pause empties a queue of 150 packets, a third of which belongs to the first flow:
    // 50 of its 238 packets.
    let most = if patience(&outcome) < 0.1 { 0.05 } else { 0.3 };
    for (name, weight) in [("tcp.1", 1.0), ("tcp.2", 2.0), ("tcp.3", 4.0)] {
        // Without weights the shares would be 2.33, 1.17 and 0.58.
        let share = flow(&outcome, name).delivered.bytes.get() as f64 / all as f64 * 7.0 / weight;
        assert!((share - 1.0).abs() < most, "{name}: {share}");
    }
}

pub fn a_change_of_rate_comes_at_its_time() {
    let outcome = run(r#"
        seed = 1
        stop = "2s"
        sample = "100ms"
        link.wire = { from = "src", to = "dst", rate = "2Mbit", delay = "5ms", queue = { kind = "fifo", limit = "300p" }, watch = true }
        [flow.udp]
        from = "src"
        to = "dst"
        source = { kind = "cbr", rate = "8Mbit", packet = "1000B" }
        [[change]]
        at = "1s"
        set = "link.wire.rate"
        to = "500kbit"
        [[change]]
        at = "1500ms"
        set = "link.wire.rate"
        to = "1Mbit"
    "#);
    let wire = link(&outcome, "wire");
    // 2 Mb/s for half of the time, and 0.5 and 1 Mb/s for a quarter each.
    assert!(wire.rate.as_bit().abs_diff(1_375_000) <= 1, "{}", wire.rate);
    // 25 packets in 0.1 s, later 6.25 and 12.5; after the first 0.7 s there is always a backlog. One more at
    // a boundary, and a packet that began at another rate finishes at it.
    assert_eq!(wire.series.len(), 20);
    for (at, sent) in wire.series.iter().enumerate().skip(7) {
        let expected = [25_000, 6_250, 12_500][usize::from(at >= 10) + usize::from(at >= 15)];
        assert!(sent.get().abs_diff(expected) <= 2_000, "{at}: {:?}", wire.series);
    }
    let slow: u64 = wire.series[10..15].iter().map(|sent| sent.get()).sum();
    assert!(slow.abs_diff(31_250) <= 2_000, "{slow}");
}

pub fn a_change_of_a_flows_rate_reaches_its_source() {
    let outcome = run(r#"
        seed = 1
        stop = "2s"
        sample = "100ms"
        link.wire = { from = "src", to = "dst", rate = "10Mbit", delay = "5ms" }
        [flow.udp]
        from = "src"
        to = "dst"
        source = { kind = "cbr", rate = "1Mbit", packet = "1000B" }
        [[change]]
        at = "1s"
        set = "flow.udp.rate"
        to = "0bit"
    "#);
    // 125 packets in the first second, and none after it but those on the wire. A source that was stopped
    // over the change gets the new rate first or writes first, up to half a second's worth.
    let udp = flow(&outcome, "udp");
    assert!(udp.sent.packets.get().abs_diff(125) <= 63, "{:?}", udp.sent);
    let late: u64 = udp.series[16..].iter().map(|bytes| bytes.get()).sum();
    assert_eq!(late, 0, "{:?}", udp.series);
    assert_eq!(link(&outcome, "wire").rate, Rate::from_mbit(10));
}
