//! RAMP in the simulator: in the sending host, before the interface.

use apportion_core::units::Span;
use apportion_runtime::outcome::Outcome;
use apportion_testing::net::net;

use crate::common::{self, flow, link, run, throughput};

/// A 10 Mb/s interface with RAMP, with 20 Mb/s of UDP in addition to the flows of `flow`.
fn sender(queue: &str, flows: &str) -> String {
    net(&format!(
        "
            stop = 20s, measure_from = 5s, sample = 100ms
            link interface: host -> receiver, rate = 10Mbit, delay = 1ms, queue = {queue}, watch = true,
                back.queue = {{ kind = fifo, limit = 1000p }}
            flow greedy: host -> receiver, source = {{ kind = cbr, rate = 20Mbit, packet = 1400B, jitter = 0.5 }}
            {flows}
        "
    ))
}

/// The paper's controller, with a target of 16 KiB per queue.
const PAPER: &str = r#"{ kind = "ramp", preset = "paper" }"#;

/// Greedy flows share one queue, as in the paper.
const ONE_QUEUE: &str = r#"{ kind = "ramp", greedy = "fifo" }"#;

/// UDP at a constant rate.
fn steady(name: &str, rate: &str, class: &str) -> String {
    format!(
        r#"
[flow.{name}]
from = "host"
to = "receiver"
class = "{class}"
source = {{ kind = "cbr", rate = "{rate}", packet = "1000B" }}
"#
    )
}

#[test]
fn a_real_rate_flow_beside_a_greedy_one_gets_what_it_needs() {
    let of = |class: &str| {
        let outcome = run(&sender(ONE_QUEUE, &steady("call", "1Mbit", class)));
        (throughput(&outcome, "call"), throughput(&outcome, "greedy"))
    };
    let (call, greedy) = of("real_rate");
    assert!((call / 1e6 - 1.0).abs() < 0.01 && (greedy / 1e6 - 9.0).abs() < 0.05, "{call} {greedy}");
    // As a greedy flow it gets at most its part of the arrivals: 1 of 21, of 10 Mb/s.
    let (call, _) = of("greedy");
    assert!(call / 1e6 < 0.476, "{call}");
}

#[test]
fn a_change_of_class_moves_a_flow_while_the_run_goes_on() {
    let change = |from: &str, to: &str| {
        let flows = steady("call", "1Mbit", from);
        let change = format!("[[change]]\nat = \"10s\"\nset = \"flow.call.class\"\nto = \"{to}\"\n");
        let outcome = run(&sender(ONE_QUEUE, &(flows + &change)));
        let call = &flow(&outcome, "call").series;
        let mbps = |part: std::ops::Range<usize>| {
            call[part.clone()].iter().map(|bytes| bytes.bits()).sum::<u64>() as f64 / part.len() as f64 / 1e5
        };
        (mbps(50..100), mbps(150..200))
    };
    let (before, after) = change("greedy", "real_rate");
    assert!(before < 0.55 && (after - 1.0).abs() < 0.02, "{before} {after}");
    let (before, after) = change("real_rate", "greedy");
    assert!((before - 1.0).abs() < 0.02 && after < 0.55, "{before} {after}");
}

#[test]
fn a_queue_that_comes_later_knows_the_classes_too() {
    let change = "[[change]]\nat = \"2s\"\nset = \"link.interface.queue\"\nto = \"ramp\"\n";
    let outcome = run(&sender(r#""fifo""#, &(steady("call", "1Mbit", "real_rate") + change)));
    let call = throughput(&outcome, "call");
    assert!((call / 1e6 - 1.0).abs() < 0.01, "{call}");
}

#[test]
fn allocations_follow_what_flows_send_and_add_up_exactly() {
    let change = "[[change]]\nat = \"10s\"\nset = \"flow.call.rate\"\nto = \"3Mbit\"\n";
    let outcome = run(&sender(PAPER, &(steady("call", "1Mbit", "real_rate") + change)));
    let [allocation] = &link(&outcome, "interface").allocations[..] else { panic!() };
    assert_eq!(outcome.flows[allocation.flow].name, "call");
    let mbps = |part: std::ops::Range<usize>| {
        let bits: u64 = allocation.series[part.clone()].iter().map(|bytes| bytes.bits()).sum();
        bits as f64 / part.len() as f64 / 1e5
    };
    assert!((mbps(50..100) - 1.0).abs() < 0.03 && (mbps(150..200) - 3.0).abs() < 0.09);
    // The target is 16 KiB.
    let fill = allocation.fill[150..].iter().map(|bytes| bytes.get()).sum::<u64>() as f64 / 50.0;
    assert!((fill / 16_384.0 - 1.0).abs() < 0.2, "{fill}");
    // From 5 s to 20 s: the 150 intervals, each rounded down by a byte at most.
    let sum: u64 = allocation.series[50..].iter().map(|bytes| bytes.get()).sum();
    assert_eq!((allocation.series.len(), allocation.fill.len()), (200, 200));
    assert_eq!(allocation.measured.get(), sum);
}

#[test]
fn watching_a_queue_changes_nothing() {
    let text = sender(r#""ramp""#, &steady("call", "1Mbit", "real_rate"));
    let (watched, other) = (run(&text), run(&text.replace("watch = true", "watch = false")));
    assert!(link(&other, "interface").allocations.is_empty());
    assert_eq!(flow(&watched, "call").series, flow(&other, "call").series);
    assert_eq!(flow(&watched, "greedy").series, flow(&other, "greedy").series);
}

#[test]
fn an_allocation_ends_with_the_class_and_with_the_queue() {
    let change = |set: &str, to: &str| {
        let change = format!("[[change]]\nat = \"10.05s\"\nset = \"{set}\"\nto = \"{to}\"\n");
        let flows = steady("call", "1Mbit", "real_rate") + &change;
        let outcome = run(&sender(r#""ramp""#, &flows));
        let [allocation] = &link(&outcome, "interface").allocations[..] else { panic!() };
        let half = allocation.series[100].bits() as f64 / 1e5;
        assert!((half - 0.5).abs() < 0.1, "half of an interval: {half}");
        let later = (allocation.series[101], allocation.fill[101]);
        (later.0.get(), later.1.get())
    };
    assert_eq!(change("flow.call.class", "greedy"), (0, 0));
    assert_eq!(change("link.interface.queue", "fifo"), (0, 0));
    // Another RAMP starts from its floor, and its totals from zero.
    let (allocated, _) = change_to_another();
    assert!((2_000..12_500).contains(&allocated), "{allocated}");
}

/// The allocation in the interval after a RAMP replaced another.
fn change_to_another() -> (u64, u64) {
    let change = "[[change]]\nat = \"10s\"\nset = \"link.interface.queue\"\nto = \"ramp\"\n";
    let outcome = run(&sender(r#""ramp""#, &(steady("call", "1Mbit", "real_rate") + change)));
    let [allocation] = &link(&outcome, "interface").allocations[..] else { panic!() };
    (allocation.series[100].get(), allocation.fill[100].get())
}

#[test]
fn a_tcp_flow_of_one_connection_shows_its_window_and_rtt() {
    let tcp = "[flow.bulk]\nfrom = \"host\"\nto = \"receiver\"\ntcp = \"reno-1999\"\n\
               source = { kind = \"cbr\", rate = \"1Mbit\" }\nclass = \"real_rate\"\nstart = \"1s\"\n";
    let outcome = run(&sender(PAPER, tcp));
    let samples = &flow(&outcome, "bulk").tcp;
    assert_eq!((samples.len(), samples[8].window, samples[8].srtt), (200, 0.0, None));
    // 16 KiB at 1 Mb/s are 131 ms, the interface queue of 100 packets of 1400 B at 10 Mb/s 112 ms; 2 ms of
    // propagation.
    let rtt = samples[150..].iter().filter_map(|tcp| tcp.srtt).map(Span::as_secs_f64).sum::<f64>() / 50.0;
    assert!((0.23..0.26).contains(&rtt), "{rtt}");
    assert!(samples[199].window >= 11.0, "{}", samples[199].window);
    assert!(flow(&outcome, "greedy").tcp.is_empty());
    let two = run(&sender(PAPER, &(tcp.to_owned() + "connections = 2\n")));
    assert!(flow(&two, "bulk").tcp.is_empty());
}

/// Two videos of 7 Mb/s each over UDP, without greedy traffic.
fn two_videos(adaptive: bool) -> String {
    let video = |name: &str| {
        format!(
            "[flow.{name}]\nfrom = \"host\"\nto = \"receiver\"\nclass = \"real_rate\"\n\
             source = {{ kind = \"video\", mean = \"7Mbit\", adaptive = {adaptive} }}\n"
        )
    };
    sender(r#"{ kind = "ramp", limit = "100000p" }"#, &(video("one") + &video("two")))
        .replace("20Mbit", "1kbit")
}

#[test]
fn two_overloaded_videos_are_notified_and_lower_their_quality() {
    let rate = |text: &str| {
        let outcome = run(text);
        ["one", "two"].map(|name| {
            let flow = flow(&outcome, name);
            let sent = flow.sent.bytes.bits() as f64 / outcome.measured.as_secs_f64() / 1e6;
            (sent, flow.overloads, flow.delay.quantile(0.95).unwrap().as_secs_f64())
        })
    };
    let [one, two] = rate(&two_videos(true));
    // Both share 9.5 Mb/s; their packets fit, and never wait for long.
    assert!(one.1 > 0 && two.1 > 0, "{one:?} {two:?}");
    assert!(one.0 + two.0 < 9.5 && one.0 > 2.0 && two.0 > 2.0, "{one:?} {two:?}");
    assert!(one.2 < 0.21 && two.2 < 0.21, "{one:?} {two:?}");
    // Videos that do not adapt are notified as often and do not react: their excess over 9.5 Mb/s waits for
    // 200 ms and is dropped, or waits for seconds without a maximum delay.
    let [one, two] = rate(&two_videos(false));
    assert!(one.0 + two.0 > 12.0 && one.1 > 10 && one.2 < 0.21 && two.2 < 0.21, "{one:?} {two:?}");
    let patient = two_videos(false).replace("\"ramp\", ", "\"ramp\", patience = \"1h\", ");
    let [one, two] = rate(&patient);
    assert!(one.1 > 10 && one.2 + two.2 > 4.0, "{one:?} {two:?}");
}

#[test]
fn an_exception_comes_within_200_ms_of_the_overload() {
    // 2 x 7 Mb/s from 2 s on; measured until 2.2 s and from 1.5 s.
    let call = |name: &str| steady(name, "2Mbit", "real_rate");
    let change =
        |name: &str| format!("[[change]]\nat = \"2s\"\nset = \"flow.{name}.rate\"\nto = \"7Mbit\"\n");
    let flows = call("one") + &call("two") + &change("one") + &change("two");
    let text = |stop: &str, from: &str| {
        let text = sender(r#""ramp""#, &flows).replace("stop = \"20s\"", &format!("stop = \"{stop}\""));
        text.replace("measure_from = \"5s\"", &format!("measure_from = \"{from}\""))
    };
    let notified = |stop: &str, from: &str| {
        let outcome = run(&text(stop, from));
        ["one", "two"].map(|name| flow(&outcome, name).overloads)
    };
    assert_eq!(notified("2s", "1.5s"), [0, 0]);
    assert_eq!(notified("2.2s", "1.5s"), [1, 1]);
}

#[test]
fn a_notification_takes_the_delay_of_the_wires() {
    // A queue with 300 ms of propagation from the source.
    let text = |at: &str| {
        let call = |name: &str| steady(name, "7Mbit", "real_rate").replace("\"host\"", "\"far\"");
        let far = "[link.far]\nfrom = \"far\"\nto = \"host\"\nrate = \"100Mbit\"\ndelay = \"300ms\"\n";
        let text = sender(r#""ramp""#, &(call("one") + &call("two") + far));
        text.replace("stop = \"20s\"", &format!("stop = \"{at}\"")).replace("\"5s\"", "\"0s\"")
    };
    let notified = |at: &str| flow(&run(&text(at)), "one").overloads;
    let first = (1..20).map(|k| k * 50).find(|k| notified(&format!("{k}ms")) > 0).unwrap();
    // 300 ms there, 100 to 200 ms until it is noticed, 300 ms back.
    assert!((650..=850).contains(&first), "{first} ms");
}

#[test]
fn a_window_limited_tcp_is_allocated_what_its_window_carries() {
    let of = |queue: &str| {
        let tcp = "[flow.bulk]\nfrom = \"host\"\nto = \"receiver\"\nclass = \"real_rate\"\n\
                   tcp = { profile = \"reno-1999\", window = \"64kB\" }\n";
        let text = sender(queue, tcp).replace("20Mbit", "1kbit").replace("\"1ms\"", "\"50ms\"");
        run(&text.replace("stop = \"20s\"", "stop = \"40s\"").replace("\"5s\"", "\"20s\""))
    };
    let (fifo, ramp) = (of(r#""fifo""#), of(PAPER));
    // 43 segments of 1460 B fit the window, 42 of them in pairs with an ACK for each: 42 packets of 1500 B
    // every 101.2 ms.
    let whole = throughput(&fifo, "bulk") / 1e6;
    assert!((whole / (42.0 * 0.012 / 0.1012) - 1.0).abs() < 0.02, "{whole}");
    // 16 KiB of the window are always queued.
    let rest = throughput(&ramp, "bulk") / 1e6;
    let expected = whole * (1.0 - 16_384.0 / 63_000.0);
    assert!((rest / expected - 1.0).abs() < 0.05, "{rest} {expected}");
    let allocated = link(&ramp, "interface").allocations[0].measured.bits() as f64 / 20e6;
    assert!((allocated / rest - 1.0).abs() < 0.05, "{allocated} {rest}");
    assert_eq!((flow(&ramp, "bulk").timeouts, flow(&fifo, "bulk").timeouts), (Some(0), Some(0)));
}

#[test]
fn a_tcp_video_beside_greedy_udp_is_isolated_by_ramp_alone() {
    let video = "[flow.video]\nfrom = \"host\"\nto = \"receiver\"\nclass = \"real_rate\"\n\
                 source = { kind = \"video\", mean = \"1.2Mbit\" }\n\
                 tcp = { profile = \"reno-1999\", window = \"64kB\" }\n";
    let outcome = |queue: &str, greedy: &str| {
        let text = sender(queue, video).replace("20Mbit", greedy).replace("stop = \"20s\"", "stop = \"60s\"");
        run(&text.replace("\"5s\"", "\"0s\""))
    };
    let goodput = |outcome: &Outcome| flow(outcome, "video").goodput.unwrap().bits() as f64;
    let fifo = r#"{ kind = "fifo", limit = "100p" }"#;
    let (alone, contended) = (goodput(&outcome(fifo, "1kbit")), goodput(&outcome(fifo, "20Mbit")));
    let ramp = outcome(r#""ramp""#, "20Mbit");
    // The shortfall after a minute, relative to the rate alone.
    let lacks = |with: f64| (alone - with).abs() / alone;
    assert!(
        lacks(goodput(&ramp)) < 0.03 && lacks(contended) > 0.2,
        "{} {}",
        lacks(goodput(&ramp)),
        lacks(contended)
    );
    // The reason is not an excessive allocation.
    let allocated = link(&ramp, "interface").allocations[0].measured.bits() as f64 / 60.0;
    let over = allocated / throughput(&ramp, "video");
    assert!((1.0..1.15).contains(&over), "{over}");
}

#[test]
fn behind_a_shaper_it_does_what_it_does_on_a_link_of_that_rate() {
    // Real-rate flows next to 20 Mb/s of UDP on 4 Mb/s: throughput in Mb/s, and notifications.
    let of = |rate: &str, queue: &str, wild: &str| {
        let flows = steady("call", "0.5Mbit", "real_rate") + &steady("wild", wild, "real_rate");
        let text = sender(queue, &flows).replace("rate = \"10Mbit\"", &format!("rate = \"{rate}\""));
        let outcome = run(&text);
        let rates = ["call", "wild", "greedy"].map(|name| throughput(&outcome, name) / 1e6);
        (rates, flow(&outcome, "wild").overloads)
    };
    let are_near = |a: [f64; 3], b: [f64; 3]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.04);
    // Less than the capacity, and more: then the greedy minimum is left, 5 % of the shaper's rate and not of
    // the link's.
    for (wild, due) in [("1.5Mbit", [0.5, 1.5, 2.0]), ("9Mbit", [0.5, 3.3, 0.2])] {
        let shaper = "{ kind = \"ramp\", shaper = \"token_bucket\", rate = \"4Mbit\" }";
        let (link, notified) = of("4Mbit", "\"ramp\"", wild);
        let (shaped, notified_too) = of("300Mbit", shaper, wild);
        assert!(are_near(link, due) && are_near(shaped, due), "{wild}: {link:?} {shaped:?}");
        assert!(
            notified.abs_diff(notified_too) <= 1 && (notified > 0) == (wild == "9Mbit"),
            "{notified} {notified_too}"
        );
    }
}

#[test]
fn each_flow_waits_as_its_own_target_asks() {
    // With the paper's controller a queue must reach its target: 20, 90 and, at 1 Mb/s, 16 KiB or 131 ms.
    let flow = |name: &str, target: &str| steady(name, "1Mbit", "real_rate") + target;
    let flows = flow("quick", "target_delay = \"20ms\"\n") + &flow("slow", "target_delay = \"90ms\"\n");
    let flows = flows + &flow("plain", "");
    let outcome = run(&sender(r#"{ kind = "ramp", preset = "paper", interface_queue = "1p" }"#, &flows));
    let wait = |name: &str| 1e3 * common::flow(&outcome, name).delay.mean.as_secs_f64();
    let waits = ["quick", "slow", "plain"].map(wait);
    // Plus the wire of 1 ms, the packet itself, and the one ahead of it.
    let due = [20.0, 90.0, 131.0].map(|target| target + 3.0);
    assert!(waits.iter().zip(due).all(|(wait, due)| (wait / due - 1.0).abs() < 0.12), "{waits:?}");
}

#[test]
fn greedy_flows_beside_one_that_changes_class_are_divided() {
    // A transfer next to an unresponsive flow at five times the link; a flow that sends almost nothing
    // changes its class 20 times per second.
    let share = |changes: u64| {
        let text = "
            seed = 3, stop = 15s, measure_from = 5s
            link narrow: a -> b, rate = 3Mbit, delay = 8ms, queue = ramp
            flow flood: a -> b, source = { kind = cbr, rate = 15Mbit, packet = 900B }
            flow bulk: a -> b
            flow other: a -> b, source = { kind = cbr, rate = 2kbit, packet = 100B }
        ";
        let changes = (0..changes).map(|at| {
            let class = if at % 2 == 0 { "real_rate" } else { "greedy" };
            let at = 3_000 + at * 50;
            format!("[[change]]\nat = \"{at}ms\"\nset = \"flow.other.class\"\nto = \"{class}\"\n")
        });
        throughput(&run(&(text.to_owned() + &changes.collect::<String>())), "bulk") / 1e6
    };
    let (with, without) = (share(240), share(0));
    assert!(without > 1.3 && with > 0.97 * without, "{with} against {without}");
}
