//! Links: rates, propagation, losses and changes while they carry traffic.
//!
//! Arrivals are located to the nanosecond by runs that stop at it and one before it.

use apportion_core::units::Span;
use apportion_runtime::outcome::Outcome;
use apportion_testing::net::net;
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{dropped, flow, link, run, throughput};

/// Packets of flow `x` that have reached the sink `nanos` after the start of a run of `text`, which has no
/// stop.
fn arrived(text: &str, nanos: u64) -> u64 {
    flow(&run(&format!("seed = 1\nstop = \"{nanos}ns\"\n{text}")), "x").delivered.packets.get()
}

/// Asserts that packet number `count` of flow `x` arrives exactly `nanos` after the start.
#[track_caller]
fn arrives(text: &str, count: u64, nanos: u64) {
    let (before, at) = (arrived(text, nanos - 1), arrived(text, nanos));
    assert!(before < count && at >= count, "{before} packets before {nanos} ns and {at} then");
}

/// A link of 1 Mb/s, on which 1000 B take 8 ms, with a propagation delay of 1 ms. A sample interval is the
/// time of one such packet.
const WIRE: &str = r#"
sample = "8ms"
[link.wire]
from = "a"
to = "b"
rate = "1Mbit"
delay = "1ms"
queue = { kind = "fifo", limit = "10000p" }
watch = true
"#;

/// `count` packets of 1000 B, practically at once: one every microsecond from the start on.
fn burst(count: u64) -> String {
    format!(
        "[flow.x]\nfrom = \"a\"\nto = \"b\"\nstop = \"{count}us\"\nsource = {{ kind = \"cbr\", rate = \"8Gbit\" }}\n"
    )
}

fn change(at: &str, set: &str, to: &str) -> String {
    format!("[[change]]\nat = \"{at}\"\nset = \"{set}\"\nto = {to}\n")
}

// Transmission

#[test]
fn a_rate_does_not_drift_by_rounding() {
    // 1000 packets of 8000 bit at 7 Mb/s end after 8 * 10^6 / (7 * 10^6) s = 1,142,857,142.86 ns, and 1 ms
    // later they arrive. Transmissions cut to whole nanoseconds would be 142 ns early.
    let text = WIRE.replace("1Mbit", "7Mbit") + &burst(1_000);
    arrives(&text, 1_000, 1_143_857_142);
}

/// The wire with a trace of these times in milliseconds instead of its rate.
fn recorded(name: &str, times: &str) -> String {
    let path = std::env::temp_dir().join(format!("apportion-{}-{name}", std::process::id()));
    std::fs::write(&path, times.replace(' ', "\n")).unwrap();
    WIRE.replace("\"1Mbit\"", &format!("{{ trace = \"{}\" }}", path.display()))
}

#[test]
fn a_recorded_link_sends_at_the_opportunities_of_its_trace() {
    // 1000 B, so that the second packet needs the rest of the first opportunity and part of the second. 1 ms
    // of propagation.
    let text = recorded("opportunities", "10 20 40") + &burst(5);
    for (count, ms) in [(1, 11), (2, 21), (3, 21), (4, 41), (5, 51)] {
        arrives(&text, count, ms * 1_000_000);
    }
    // An opportunity without a waiting packet is lost: one packet at 15 ms waits until 20 ms.
    let late = burst(1).replace("[flow.x]", "[flow.x]\nstart = \"15ms\"").replace("1us", "15001us");
    arrives(&(recorded("late", "10 20 40") + &late), 1, 21_000_000);
}

#[test]
fn use_of_a_recorded_link_is_of_measured_opportunities() {
    // Packets with the size of an opportunity, of which one always waits. The whole file, a part of it, and
    // two and a half times the file; four of five opportunities are early.
    let always = burst(1_000).replace("1000us", "10s").replace("8Gbit\"", "12Mbit\", packet = \"1504B\"");
    for (from, to, opportunities) in [(0, 1_000, 5), (0, 50, 4), (15, 50, 3), (0, 2_500, 14)] {
        let text = recorded("part", "10 20 30 40 1000").replace("10000p", "20p") + &always;
        let outcome = run(&format!("seed = 1\nmeasure_from = \"{from}ms\"\nstop = \"{to}ms\"\n{text}"));
        let wire = link(&outcome, "wire");
        assert_eq!((wire.sent.packets.get(), wire.utilisation), (opportunities, 1.0), "{from} to {to} ms");
        assert_eq!(wire.rate.as_bit(), opportunities * 8 * 1_504 * 1_000 / (to - from));
    }
}

#[test]
fn a_recorded_link_has_the_rate_of_its_trace_for_tcp_too() {
    // 8 opportunities of 1504 B in 10 ms, in two bursts: 9.6256 Mb/s. One more packet may begin than end
    // within the measurement.
    let wire = recorded("tcp", "2 2 2 2 2 2 10 10").replace("8ms", "100ms");
    let outcome = run(&format!(
        "seed = 1\nstop = \"20s\"\nmeasure_from = \"5s\"\n{wire}[flow.x]\nfrom = \"a\"\nto = \"b\"\nsource = \"greedy\"\n"
    ));
    let wire = link(&outcome, "wire").sent.bytes.bits() as f64 / 15.0;
    assert!((9.3e6..=9.64e6).contains(&wire), "{wire}");
}

#[test]
fn losses_of_a_burst_model_have_its_mean_and_stand_together() {
    // p / (p + r) = 4 %, in bursts of 5. About 800 bursts in 100,000 packets: a standard error of 0.0019,
    // times three.
    let wire = WIRE.replace("1Mbit", "100Mbit").replace("sample = \"8ms\"\n", "sample = \"1s\"\n");
    let lost = |loss: &str| {
        let text = format!("seed = 3\nstop = \"10s\"\n{wire}loss = {loss}\n")
            + "[flow.x]\nfrom = \"a\"\nto = \"b\"\nsource = { kind = \"cbr\", rate = \"80Mbit\" }\n";
        link(&run(&text), "wire").lost as f64 / 100_000.0
    };
    let bursts = lost("{ p = 0.0083333, r = 0.2 }");
    assert!((bursts - 0.04).abs() < 0.006, "{bursts}");
    let both = lost("{ p = 0.0083333, r = 0.2, h = 0.5, k = 0.99 }");
    assert!((both - (0.04 * 0.5 + 0.96 * 0.01)).abs() < 0.003, "{both}");
}

#[test]
fn the_packet_in_transmission_is_not_in_the_queue() {
    // Four packets at once: one is sent, one fits into the queue, two do not.
    let text = WIRE.replace("10000p", "1p") + &burst(4);
    let outcome = run(&format!("seed = 1\nstop = \"1s\"\n{text}"));
    let wire = link(&outcome, "wire");
    assert_eq!((wire.sent.packets.get(), dropped(&wire.dropped)), (2, 2));
    // The queued packet waits for the other one, minus the microsecond by which it arrived later: 8 ms in 1
    // s.
    assert!((wire.queue_mean - 0.007_999).abs() < 1e-9, "{}", wire.queue_mean);
}

#[test]
fn a_shaper_sends_at_its_rate_however_fast_the_link() {
    let text = "
        stop = 12s, measure_from = 2s
        link wire: a -> b, rate = 100Mbit, delay = 1ms,
            queue = { kind = fifo, shaper = token_bucket, rate = 3Mbit, burst = 10kB, limit = 50p }
        flow x: a -> b, source = { kind = cbr, rate = 5Mbit }
    ";
    let outcome = run(text);
    // In 10 s at 3 Mb/s one packet of 8 kbit is 0.03 %.
    let rate = throughput(&outcome, "x");
    assert!((rate / 3e6 - 1.0).abs() < 0.0004, "{rate}");
    assert!(dropped(&flow(&outcome, "x").dropped) > 2_000);
}

// Losses

#[test]
fn random_loss_takes_its_share() {
    let text = "
        stop = 10s
        link wire: a -> b, rate = 100Mbit, delay = 1ms, loss = 10%
        flow x: a -> b, stop = 9s, source = { kind = cbr, rate = 8Mbit }
    ";
    let outcome = run(text);
    let x = flow(&outcome, "x");
    // 9000 packets, of which 900 are lost, with a standard deviation of sqrt(9000 * 0.1 * 0.9) = 28.5.
    assert_eq!(x.sent.packets.get(), 9_000);
    assert!(x.lost.abs_diff(900) < 4 * 29, "{}", x.lost);
    assert_eq!(x.delivered.packets.get() + x.lost, 9_000);
    // Packets are lost on the wire, after transmission.
    let wire = link(&outcome, "wire");
    assert_eq!((wire.sent.packets.get(), wire.lost), (9_000, x.lost));
}

#[test]
fn listed_packets_are_lost_and_no_others() {
    // A packet every 8 ms, each in a separate sample; a second flow in between is counted separately.
    let text = "
        stop = 79ms, sample = 8ms
        link wire: a -> b, rate = 10Mbit, delay = 1ms,
            lost = [{ flow = x, packets = [1, 4, 5] }, { flow = y, packets = [2] }]
        flow x: a -> b, source = { kind = cbr, rate = 1Mbit }
        flow y: a -> b, start = 3ms, source = { kind = cbr, rate = 1Mbit }
    ";
    let outcome = run(text);
    let came =
        |name: &str| -> Vec<u64> { flow(&outcome, name).series.iter().map(|b| b.get() / 1_000).collect() };
    assert_eq!(came("x"), [0, 1, 1, 0, 0, 1, 1, 1, 1]);
    assert_eq!(came("y"), [1, 0, 1, 1, 1, 1, 1, 1, 1]);
    assert_eq!((flow(&outcome, "x").lost, flow(&outcome, "y").lost), (3, 1));
}

// Changes

#[test]
fn a_packet_in_transmission_finishes_at_the_old_rate() {
    let text = WIRE.to_owned() + &burst(2) + &change("4ms", "link.wire.rate", "\"10Mbit\"");
    arrives(&text, 1, 9_000_000);
    // The second packet takes 0.8 ms more.
    arrives(&text, 2, 9_800_000);
}

#[test]
fn rate_zero_holds_packets_until_there_is_a_rate_again() {
    let outage = change("4ms", "link.wire.rate", "\"0bit\"") + &change("20ms", "link.wire.rate", "\"1Mbit\"");
    let text = WIRE.to_owned() + &burst(3) + &outage;
    arrives(&text, 1, 9_000_000);
    arrives(&text, 2, 29_000_000);
    arrives(&text, 3, 37_000_000);
    // A packet that arrives while the link has no rate waits as well: a single one, 10 ms after the start.
    let late = burst(1).replace("stop = \"1us\"", "start = \"10ms\"\nstop = \"10001us\"");
    arrives(&(WIRE.to_owned() + &late + &outage), 1, 29_000_000);
}

#[test]
fn the_rate_of_a_link_is_reported_and_used_over_its_changes() {
    // 1 Mb/s for 4 s, nothing for 2 s, 3 Mb/s for 4 s: 1.6 Mb/s on average, used in full.
    let text = format!("seed = 1\nstop = \"10s\"\n{WIRE}").replace("sample = \"8ms\"\n", "")
        + &burst(5_000)
        + &change("4s", "link.wire.rate", "\"0bit\"")
        + &change("6s", "link.wire.rate", "\"3Mbit\"");
    let outcome = run(&text);
    let wire = link(&outcome, "wire");
    assert_eq!(wire.rate.as_bit(), 1_600_000);
    // To within one packet of 2000, which is counted when its transmission begins.
    assert!((wire.utilisation - 1.0).abs() < 0.0006, "{}", wire.utilisation);
}

#[test]
fn a_shorter_delay_lets_no_packet_overtake() {
    // Sent at 0, 8 and 16 ms. The first two arrive after 10 ms of wire, at 18 and 26 ms. The third one has 1
    // ms of wire and would come at 25 ms, before the second.
    let text = WIRE.replace("delay = \"1ms\"", "delay = \"10ms\"")
        + &burst(4)
        + &change("9ms", "link.wire.delay", "\"1ms\"");
    arrives(&text, 1, 18_000_000);
    arrives(&text, 2, 26_000_000);
    arrives(&text, 3, 26_000_000);
    arrives(&text, 4, 33_000_000);
}

#[test]
fn loss_may_begin_and_end_while_a_link_carries_traffic() {
    // Packets begin at 0, 8, 16 ... ms; all that begin in [20, 60) ms are lost: those of 24, 32, 40, 48 and
    // 56 ms. Without and with a probe, which uses another code path through the link.
    for watch in ["watch = true\n", ""] {
        let text = format!("seed = 1\nstop = \"1s\"\n{WIRE}").replace("watch = true\n", watch)
            + &burst(12)
            + &change("20ms", "link.wire.loss", "\"100%\"")
            + &change("60ms", "link.wire.loss", "0");
        let outcome = run(&text);
        let x = flow(&outcome, "x");
        assert_eq!((x.lost, x.delivered.packets.get()), (5, 7));
        let came: Vec<u64> = x.series.iter().take(13).map(|bytes| bytes.get() / 1_000).collect();
        assert_eq!(came, [0, 1, 1, 1, 0, 0, 0, 0, 0, 1, 1, 1, 1]);
    }
}

#[test]
fn a_queue_that_is_replaced_hands_over_what_waits() {
    // 20 packets at once. After 4 ms one is in transmission and 19 wait; queues of all kinds take them over.
    for queue in [
        "\"drr\"",
        "{ kind = \"fq_codel\", interval = \"1s\" }",
        "\"red\"",
        "{ kind = \"fifo\", limit = \"19p\" }",
    ] {
        let text = WIRE.to_owned() + &burst(20) + &change("4ms", "link.wire.queue", queue);
        assert_eq!(arrived(&text, 161_000_000), 20, "{queue}");
        arrives(&text, 20, 161_000_000);
    }
    // A shorter queue takes seven of them; the others are dropped.
    let text = format!("seed = 1\nstop = \"1s\"\n{WIRE}")
        + &burst(20)
        + &change("4ms", "link.wire.queue", "{ kind = \"fifo\", limit = \"7p\" }");
    let outcome = run(&text);
    let x = flow(&outcome, "x");
    assert_eq!((x.delivered.packets.get(), dropped(&x.dropped)), (8, 12));
}

/// Two flows of 2 Mb/s each share a DRR of 2 Mb/s from 1 s to 11 s; then the second one gets a weight of 3.
fn weighted(changes: &str) -> [f64; 2] {
    let text = "
        stop = 31s, measure_from = 11s
        link wire: a -> b, rate = 2Mbit, delay = 1ms,
            queue = { kind = drr, drop = lqd, limit = 100p, quantum = 1000B }
        flow x: a -> b, count = 2, source = { kind = cbr, rate = 2Mbit, jitter = 5% }
    ";
    let outcome = run(&(text.to_owned() + changes));
    ["x.1", "x.2"].map(|name| throughput(&outcome, name))
}

#[test]
fn a_weight_may_change_and_a_queue_that_comes_later_knows_it() {
    let near = |got: [f64; 2], expected: [f64; 2]| {
        // In 20 s a quantum of three packets is 0.24 % of the smallest share.
        got.iter().zip(expected).all(|(got, expected)| (got / expected - 1.0).abs() < 0.005)
    };
    let weight = change("10s", "flow.x.2.weight", "3");
    let queue = |at| {
        let drr = "{ kind = \"drr\", drop = \"lqd\", limit = \"90p\", quantum = \"1000B\" }";
        change(at, "link.wire.queue", drr)
    };
    assert!(near(weighted(""), [1e6, 1e6]), "{:?}", weighted(""));
    assert!(near(weighted(&weight), [0.5e6, 1.5e6]), "{:?}", weighted(&weight));
    for changes in [weight.clone() + &queue("10500ms"), queue("9s") + &weight] {
        assert!(near(weighted(&changes), [0.5e6, 1.5e6]), "{:?}", weighted(&changes));
    }
}

#[test]
fn a_buffer_is_shared_by_round_trip_times_measured_or_given() {
    // 1000 B take 4 ms on the bottleneck and 0.1 ms on the access links, each way, so round-trip times are
    // 8.2 ms plus twice the delays: 20 and 60 ms. In a FIFO flows get rates in proportion to their packets in
    // it: 1 : 3, or 1 : 1 if the scenario says so.
    let text = "
        stop = 31s, measure_from = 1s
        link access1: s1 -> r, rate = 80Mbit, delay = 4900us
        link access2: s2 -> r, rate = 80Mbit, delay = 24900us
        link bottleneck: r -> d, rate = 2Mbit, delay = 1ms,
            queue = { kind = pfd, limit = 40p, p = 0, thresh = 100%, thresholds = rtt, rtt_of = all, end = tail }
        flow x: s{i} -> d, count = 2, source = { kind = cbr, rate = 2Mbit, jitter = 5% }
    ";
    let ratio = |text: &str| {
        let outcome = run(text);
        throughput(&outcome, "x.2") / throughput(&outcome, "x.1")
    };
    assert!((ratio(text) / 3.0 - 1.0).abs() < 0.05, "{}", ratio(text));
    let said = text.to_owned() + "rtt = \"70ms\"\n";
    assert!((ratio(&said) - 1.0).abs() < 0.05, "{}", ratio(&said));
}

#[test]
fn a_queue_that_comes_later_knows_the_rate_of_the_link() {
    // RED ages its average by the packets that an idle link could have sent: at 100 Mb/s the average decays
    // to zero in an off period, at 1 Mb/s only slightly.
    let text = "
        stop = 60s
        link wire: a -> b, rate = 100Mbit, delay = 1ms
        flow x: a -> b, start = 3s, source = { kind = on_off, rate = 1200kbit, on = 500ms, off = 150ms }
    ";
    let changes = |rate_at, queue_at| {
        let red = "{ kind = \"red\", limit = \"50p\", min_th = \"2p\", max_th = \"8p\", w_q = 0.02 }";
        change(rate_at, "link.wire.rate", "\"1Mbit\"") + &change(queue_at, "link.wire.queue", red)
    };
    let rate_first = run(&(text.to_owned() + &changes("1s", "2s")));
    let queue_first = run(&(text.to_owned() + &changes("2s", "1s")));
    assert!(dropped(&flow(&rate_first, "x").dropped) > 10);
    assert_eq!(format!("{:?}", flow(&rate_first, "x")), format!("{:?}", flow(&queue_first, "x")));
}

#[test]
fn a_rate_may_change_at_a_start_in_between_and_to_nothing() {
    let sent = |changes: &str| {
        let text = "seed = 1\nstop = \"3s\"\n".to_owned()
            + &WIRE.replace("1Mbit", "100Mbit")
            + "[flow.x]\nfrom = \"a\"\nto = \"b\"\nstart = \"1s\"\nsource = { kind = \"cbr\", rate = \"1Mbit\" }\n";
        flow(&run(&(text + changes)), "x").sent.packets.get()
    };
    let to = |at, rate| change(at, "flow.x.rate", &format!("\"{rate}\""));
    // 125 packets per second and Mb/s. The new rate starts with a packet at once.
    assert_eq!(sent(""), 250);
    assert_eq!(sent(&to("2s", "4Mbit")), 125 + 500);
    assert_eq!(sent(&(to("1500ms", "0bit") + &to("2s", "2Mbit"))), 63 + 250);
    // A change before or at the start has the same effect as an initial setting.
    assert_eq!(sent(&to("500ms", "2Mbit")), 500);
    assert_eq!(sent(&to("1s", "2Mbit")), 500);
}

// Networks

#[test]
fn acknowledgements_may_return_another_way() {
    let text = "
        stop = 10s
        link down: a -> b, rate = 10Mbit, delay = 10ms
        link up: a -> b, rate = 10Mbit, delay = 50ms
        flow x: a -> b, tcp = rfc, path = [down], return_path = [up.back]
    ";
    let outcome = run(text);
    let packets = |name| link(&outcome, name).sent.packets.get();
    assert!(packets("down") > 1_000 && packets("up.back") > 500);
    assert_eq!((packets("down.back"), packets("up")), (0, 0));
}

#[test]
fn what_is_measured_is_what_came_after_measure_from() {
    let text = |head: &str| {
        net(&format!(
            "
                seed = 4
                {head}
                link wire: a -> b, rate = 2Mbit, delay = 20ms,
                    queue = {{ kind = red, limit = 40p, min_th = 4p, max_th = 12p }}, loss = 1%
                flow tcp: a -> b, count = 3, tcp = ns2-235
                flow web: a -> b, tcp = ns2-235, source = {{ kind = short_flows, per_second = 4, mean_size = 10kB }}
                flow udp: a -> b, source = {{ kind = poisson, rate = 300kbit }}
            "
        ))
    };
    // An instant without events. In the shortened run sources are silent from the same time on.
    let stops = |head: &str| text(head).replace("tcp = \"ns2-235\"", "tcp = \"ns2-235\"\nstop = \"20s\"");
    let whole = run(&stops("stop = \"20s\""));
    let first = run(&stops("stop = \"7000000007ns\""));
    let rest = run(&stops("stop = \"20s\"\nmeasure_from = \"7000000007ns\""));
    assert_eq!(rest.packet_hops, whole.packet_hops - first.packet_hops);
    for ((whole, first), rest) in whole.flows.iter().zip(&first.flows).zip(&rest.flows) {
        let counts = |flow: &apportion_runtime::outcome::FlowOutcome| {
            let (sent, delivered) = (flow.sent, flow.delivered);
            [
                sent.packets.get(),
                sent.bytes.get(),
                delivered.packets.get(),
                delivered.bytes.get(),
                flow.goodput.unwrap().get(),
                dropped(&flow.dropped),
                flow.lost,
                flow.retransmits.unwrap(),
                flow.timeouts.unwrap(),
                flow.fast_retransmits.unwrap(),
                flow.delay.count,
                flow.completions.len() as u64,
            ]
        };
        let (all, early) = (counts(whole), counts(first));
        assert!(early[0] > 100 && all[0] > early[0], "{}", whole.name);
        assert_eq!(counts(rest), std::array::from_fn(|i| all[i] - early[i]), "{}", whole.name);
    }
    for ((whole, first), rest) in whole.links.iter().zip(&first.links).zip(&rest.links) {
        assert_eq!(rest.sent.bytes, whole.sent.bytes - first.sent.bytes);
        assert_eq!(rest.lost, whole.lost - first.lost);
        assert_eq!(dropped(&rest.dropped), dropped(&whole.dropped) - dropped(&first.dropped));
    }
}

// Jitter

/// A wire of 100 Mb/s and 1 ms with this jitter.
fn jittery(jitter: &str) -> String {
    WIRE.replace("1Mbit", "100Mbit").replace("sample = \"8ms\"\n", "") + &format!("jitter = {jitter}\n")
}

/// Runs 2000 packets of 1000 B at 40 Mb/s over a wire with this jitter, until all have arrived.
fn datagrams(jitter: &str, seed: u64) -> Outcome {
    let source = "source = { kind = \"cbr\", rate = \"40Mbit\" }";
    let flow = format!("[flow.x]\nfrom = \"a\"\nto = \"b\"\nstop = \"400ms\"\n{source}\n");
    run(&format!("seed = {seed}\nstop = \"2s\"\n{}{flow}", jittery(jitter)))
}

proptest! {
    #![proptest_config(cases(32))]

    /// Jitter neither loses nor duplicates packets, and the delay of each is at least the delay of the link,
    /// and at most the jitter longer, in any order.
    #[test]
    fn jitter_loses_and_makes_no_packet(
        max in 0_u64..20_000,
        normal in any::<bool>(),
        reorder in any::<bool>(),
        seed in any::<u32>(),
    ) {
        let distribution = if normal { "normal" } else { "uniform" };
        let jitter = format!("{{ max = \"{max}us\", distribution = \"{distribution}\", reorder = {reorder} }}");
        let outcome = datagrams(&jitter, u64::from(seed));
        let x = flow(&outcome, "x");
        prop_assert_eq!(x.sent.packets.get(), 2_000);
        prop_assert_eq!(x.delivered, x.sent);
        // 80 us of transmission and 1 ms of propagation; the distribution has bins.
        let [least, longest] = [0.0, 1.0].map(|share| x.delay.quantile(share).unwrap().as_nanos());
        prop_assert!(least >= 1_060_000, "{least}");
        prop_assert!(longest <= (1_080_000 + max * 1_000) * 103 / 100, "{longest}");
    }
}

#[test]
fn the_mean_delay_with_reordering_is_that_of_the_distribution() {
    // 1.08 ms plus half of 6 ms, over 2000 packets with a standard deviation of 1.73 ms and 0.99 ms: a band
    // of four standard errors.
    for (distribution, band) in [("uniform", 155), ("normal", 89)] {
        let jitter = format!("{{ max = \"6ms\", distribution = \"{distribution}\", reorder = true }}");
        let mean = flow(&datagrams(&jitter, 3), "x").delay.mean;
        let off = mean.max(Span::from_micros(4_080)) - mean.min(Span::from_micros(4_080));
        assert!(off <= Span::from_micros(band), "{distribution}: {mean}");
    }
    // Without reordering, the delay of a packet is the maximum over the packets sent before, 200 us apart, of
    // their remaining delays: at most x if all draws J_j, from 0 to 6 ms, are at most x + j 200 us. About
    // seven neighbours arrive together: a standard error of about 40 us.
    let at_most =
        |x: f64| (0..).map(|j| (x + f64::from(j) * 0.2) / 6.0).take_while(|p| *p < 1.0).product::<f64>();
    let expected = 1.08 + (0..6_000).map(|x| 1.0 - at_most(f64::from(x) / 1e3)).sum::<f64>() / 1e3;
    let mean = flow(&datagrams("\"6ms\"", 3), "x").delay.mean.as_secs_f64() * 1e3;
    assert!((mean - expected).abs() < 0.16, "{mean} ms, not {expected}");
}

/// Runs a greedy flow of this profile over a wire of 20 Mb/s and 20 ms without drops. Returns its throughput
/// in Mb/s, and the number of its retransmissions.
fn greedy(jitter: &str, tcp: &str) -> (f64, u64) {
    let wire = jittery(jitter).replace("100Mbit", "20Mbit").replace("\"1ms\"", "\"20ms\"");
    let outcome = run(&format!(
        "seed = 1\nstop = \"30s\"\nmeasure_from = \"5s\"\n{wire}[flow.x]\nfrom = \"a\"\nto = \"b\"\n\
         tcp = {{ profile = \"{tcp}\", window = \"300kB\" }}\n"
    ));
    assert_eq!(dropped(&link(&outcome, "wire").dropped), 0);
    (throughput(&outcome, "x") / 1e6, flow(&outcome, "x").retransmits.unwrap())
}

#[test]
fn tcp_bears_jitter_in_order_and_rack_bears_reordering() {
    let reorder = "{ max = \"8ms\", reorder = true }";
    let [steady, in_order, by_time, by_count] =
        [("\"0s\"", "linux"), ("\"8ms\"", "rfc"), (reorder, "linux"), (reorder, "rfc")]
            .map(|(jitter, tcp)| greedy(jitter, tcp));
    assert!(steady.0 > 19.9 && in_order.0 > 19.9 && by_time.0 > 19.8, "{steady:?} {in_order:?} {by_time:?}");
    // Packets in order cause no three duplicate ACKs. A sender that counts them treats late packets as lost.
    assert_eq!((steady.1, in_order.1), (0, 0));
    assert!(by_count.1 > 100 && by_count.0 < 10.0, "{by_count:?}");
}
