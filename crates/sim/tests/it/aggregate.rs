//! Links that send several packets per medium access.

use apportion_core::random::Stream;
use apportion_runtime::due::dues;

use crate::common::{self, flow, link, run, scenarios, throughput};

/// Packets of flow `x` that have reached the sink `nanos` after the start.
fn arrived(text: &str, nanos: u64) -> u64 {
    flow(&run(&format!("seed = 1\nstop = \"{nanos}ns\"\n{text}")), "x").delivered.packets.get()
}

/// Asserts that packets number `from` to `to` of flow `x` arrive `micros` after the start, all at the same
/// instant.
#[track_caller]
fn arrive(text: &str, from: u64, to: u64, micros: u64) {
    let (before, at) = (arrived(text, 1_000 * micros - 1), arrived(text, 1_000 * micros));
    assert_eq!((before, at), (from - 1, to), "at {micros} us");
}

/// A link of 8 Mb/s, on which 1000 B take 1 ms, with a propagation delay of 1 ms; five packets of 1000 B, one
/// every microsecond.
fn wire(aggregate: &str, rest: &str) -> String {
    format!(
        "sample = \"1ms\"\n[link.wire]\nfrom = \"a\"\nto = \"b\"\nrate = \"8Mbit\"\ndelay = \"1ms\"\naggregate = {{ {aggregate} }}\n\
         queue = {{ kind = \"fifo\", limit = \"100p\" }}\n{rest}\n\
         [flow.x]\nfrom = \"a\"\nto = \"b\"\nstop = \"5us\"\nsource = {{ kind = \"cbr\", rate = \"8Gbit\" }}\n"
    )
}

#[test]
fn packets_of_an_aggregate_arrive_together_after_its_overhead_and_all_of_their_bytes() {
    // The first packet finds the medium idle: 1 ms of access, 1 ms of transmission, 1 ms of propagation. At 2
    // ms three are taken, 1 + 3 ms, and at 6 ms the last, 1 + 1 ms.
    let three = wire("packets = 3, overhead = \"1ms\", header = \"0B\"", "");
    for (from, to, ms) in [(1, 1, 3), (2, 4, 7), (5, 5, 9)] {
        arrive(&three, from, to, 1_000 * ms);
    }
    // With headers of 500 bytes each takes 1.5 ms: 2.5 ms, then 1 + 4.5 ms, then 1 + 1.5 ms.
    let headers = wire("packets = 3, airtime = \"9ms\", overhead = \"1ms\", header = \"500B\"", "");
    for (from, to, us) in [(1, 1, 3_500), (2, 4, 9_000), (5, 5, 11_500)] {
        arrive(&headers, from, to, us);
    }
}

#[test]
fn a_packet_that_does_not_fit_is_the_first_of_the_next_aggregate() {
    // Two of 1000 bytes fit into 2500 bytes, and into 2.5 ms: 1 + 2 ms from 2 ms on, and from 5 ms on.
    for limit in ["bytes = \"2500B\"", "airtime = \"2500us\""] {
        let two = wire(&format!("{limit}, overhead = \"1ms\", header = \"0B\""), "");
        for (from, to, ms) in [(1, 1, 3), (2, 3, 6), (4, 5, 9)] {
            arrive(&two, from, to, 1_000 * ms);
        }
        // The link stops while a packet is held for the next aggregate: it waits, is not lost, and goes
        // first.
        let stops = format!(
            "{two}[[change]]\nat = \"3ms\"\nset = \"link.wire.rate\"\nto = \"0Mbit\"\n\
             [[change]]\nat = \"20ms\"\nset = \"link.wire.rate\"\nto = \"8Mbit\"\n"
        );
        arrive(&stops, 2, 3, 6_000);
        arrive(&stops, 4, 5, 24_000);
    }
    // None fits: each goes alone.
    let none = wire("bytes = \"10B\", overhead = \"1ms\", header = \"0B\"", "");
    for count in 1..=5 {
        arrive(&none, count, count, 1_000 + 2_000 * count);
    }
}

#[test]
fn a_recorded_link_sends_the_bytes_of_an_aggregate_at_its_opportunities() {
    let path = std::env::temp_dir().join(format!("apportion-{}-aggregate", std::process::id()));
    std::fs::write(&path, "10\n20\n40\n").unwrap();
    let trace = format!("{{ trace = \"{}\" }}", path.display());
    let recorded = |limit: &str| {
        let text = wire(&format!("{limit}, overhead = \"1ms\", header = \"0B\""), "");
        text.replace("\"8Mbit\"", &trace)
    };
    // Opportunities of 1504 bytes: the first packet at 10 ms. From 11 ms on 3000 bytes: at 20 and 40 ms. From
    // 41 ms on the last: 50 ms.
    let three = recorded("packets = 3, airtime = \"1s\"");
    for (from, to, ms) in [(1, 1, 11), (2, 4, 41), (5, 5, 51)] {
        arrive(&three, from, to, 1_000 * ms);
    }
    // Two would take until 40 ms, 29 ms after access, so the second goes alone at 20 ms, and so does the
    // third at 40 ms. From 41 ms on two take 19 ms.
    let short = recorded("airtime = \"28ms\"");
    for (from, to, ms) in [(1, 1, 11), (2, 2, 21), (3, 3, 41), (4, 5, 61)] {
        arrive(&short, from, to, 1_000 * ms);
    }
}

/// A link whose queue never empties, for `secs` after a warm-up of half a second.
fn saturated(rate: u64, size: u64, aggregate: &str, secs: u64, rest: &str) -> String {
    format!(
        "seed = 5\nstop = \"{}ms\"\nmeasure_from = \"500ms\"\n[link.wire]\nfrom = \"a\"\nto = \"b\"\nrate = \"{rate}bit\"\ndelay = \"1ms\"\n\
         aggregate = {{ {aggregate} }}\n{rest}\n\
         [flow.x]\nfrom = \"a\"\nto = \"b\"\nsource = {{ kind = \"cbr\", rate = \"{}bit\", packet = \"{size}B\" }}\n",
        500 + 1_000 * secs,
        rate + rate / 5
    )
}

#[test]
fn a_queue_that_never_empties_is_served_as_the_closed_form_says() {
    let mut random = Stream::new(11, "aggregate");
    let mut many = 0;
    for _ in 0..40 {
        let mut draw = |least: u64, most: u64| least + random.below(most - least + 1);
        let (rate, size, header) = (draw(6_000_000, 300_000_000), draw(100, 1_500), draw(0, 60));
        let (packets, bytes) = (draw(1, 64), draw(2_000, 65_535));
        let (airtime, overhead) = (draw(300_000, 5_000_000), draw(20_000, 500_000));
        let text = format!(
            "packets = {packets}, bytes = \"{bytes}B\", airtime = \"{airtime}ns\", overhead = \"{overhead}ns\", header = \"{header}B\""
        );
        let got = throughput(&run(&saturated(rate, size, &text, 2, "")), "x");
        // n packets in the overhead plus n times the time of a packet with its header.
        let each = size + header;
        let by_time = (u128::from(airtime) * u128::from(rate) / 8_000_000_000) as u64;
        let n = packets.min(bytes / each).min(by_time / each).max(1) as f64;
        many += u32::from(n >= 8.0);
        let seconds = overhead as f64 / 1e9 + n * 8.0 * each as f64 / rate as f64;
        let expected = n * 8.0 * size as f64 / seconds;
        // 1 %: one aggregate of some hundred at each end of the two seconds.
        assert!((got / expected - 1.0).abs() < 0.01, "{got} for {expected}: {rate} bit/s, {size} B, {text}");
    }
    assert!(many >= 10, "{many} with eight packets or more");
}

#[test]
fn losses_on_the_wire_are_of_packets_and_what_is_sent_again_is_of_aggregates() {
    let aggregate = "packets = 8, overhead = \"100us\", header = \"0B\"";
    let outcome = run(&saturated(80_000_000, 1_000, aggregate, 20, "loss = \"5%\""));
    let wire = link(&outcome, "wire");
    let (sent, lost) = (wire.sent.packets.get() as f64, wire.lost as f64);
    // Four standard errors of a binomial.
    assert!((lost / sent - 0.05).abs() < 4.0 * (0.05 * 0.95 / sent).sqrt(), "{lost} of {sent}");
    // 8 packets in 0.9 ms, and a quarter of the aggregates is sent again: 1 / 0.75 times on average, with a
    // standard deviation of sqrt(0.25) / .75.
    let again = format!("{aggregate}, retry = \"25%\"");
    let got = throughput(&run(&saturated(80_000_000, 1_000, &again, 20, "")), "x");
    let expected = 64_000.0 / (0.9e-3 / 0.75);
    let count: f64 = 20.0 / (0.9e-3 / 0.75);
    assert!((got / expected - 1.0).abs() < 4.0 * 0.5 / count.sqrt(), "{got} for {expected}");
}

/// A download over an access point with this queue and these aggregates.
fn access_point(aggregate: &str, queue: &str) -> String {
    format!(
        "seed = 2\nstop = \"15s\"\nmeasure_from = \"5s\"\n\
         link.wan = {{ from = \"server\", to = \"ap\", rate = \"1Gbit\", delay = \"10ms\" }}\n\
         link.air = {{ from = \"ap\", to = \"b\", rate = \"65Mbit\", delay = \"1us\", aggregate = {{ {aggregate} }}, queue = \"{queue}\", watch = true }}\n\
         flow.x = {{ from = \"server\", to = \"b\", tcp = {{ profile = \"linux\", segment = \"1448B\", header = \"52B\" }} }}\n"
    )
}

#[test]
fn tcp_fills_what_overhead_leaves_and_comes_in_bursts() {
    for queue in ["fifo", "fq_codel"] {
        let mut rates = Vec::new();
        // 21 packets of 1542 bytes are the most of 4 ms at 65 Mb/s.
        for (packets, n) in [(1, 1.0), (4, 4.0), (64, 21.0)] {
            let outcome = run(&access_point(&format!("packets = {packets}"), queue));
            let got = throughput(&outcome, "x");
            let expected = n * 12_000.0 / (186e-6 + n * 12_336.0 / 65e6);
            assert!(
                got / expected > 0.93 && got / expected < 1.01,
                "{got} for {expected}: {packets}, {queue}"
            );
            rates.push(got);
        }
        assert!(rates[0] < 0.6 * rates[2] && rates[1] < 0.9 * rates[2], "{rates:?}");
    }
    // Entitlements are parts of the throughput of full packets.
    let scenario = scenarios(&access_point("packets = 64", "fifo")).pop().unwrap();
    let outcome = common::run_with(&scenario, 2);
    let due = dues(&scenario, &outcome).unwrap().flows[0].measured.as_mbit_f64();
    assert!((due - 21.0 * 12_000.0 / (186.0 + 21.0 * 12_336.0 / 65.0)).abs() < 0.01, "{due}");
    // The base round-trip time includes the access: 2 x 10 ms, 2 us, 12 us and 0.4 us of the wired link, 186
    // us and 190 us.
    let rtt = scenario.base_rtt(&scenario.flows[0]).unwrap().as_secs_f64();
    assert!((rtt - 0.020_4).abs() < 0.000_05, "{rtt}");
}
