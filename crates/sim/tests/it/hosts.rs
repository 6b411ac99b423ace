//! The jitter of hosts for the packets that they send.

use apportion_runtime::outcome::Outcome;

use crate::common::{flow, link, run, throughput};

/// Datagrams of 1000 B, 4 ms apart, over 8 Mb/s and 3 ms: 4 ms without jitter.
fn datagrams(jitter: &str) -> String {
    format!(
        "
            seed = 8, stop = 60s
            link x: a -> b, rate = 8Mbit, delay = 3ms
            flow f: a -> b, source = {{ kind = cbr, rate = 2Mbit, packet = 1000B }}, {jitter}
        "
    )
}

#[test]
fn a_packet_is_delayed_uniformly_by_its_host() {
    let delay = |jitter: &str| {
        let outcome = run(&datagrams(jitter));
        let delay = &flow(&outcome, "f").delay;
        [0.05, 0.25, 0.5, 0.75, 0.95].map(|share| delay.quantile(share).unwrap().as_secs_f64() * 1e3)
    };
    let near = |found: [f64; 5], wanted: [f64; 5]| {
        // Quantiles of 15,000 draws vary by 0.4 % of the range, and the histogram has a resolution of 1 %.
        let close = found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 0.06);
        assert!(close, "{found:?}, not {wanted:?}");
    };
    near(delay("jitter = \"0s\""), [4.0; 5]);
    near(delay("jitter = \"1800us\""), [0.05, 0.25, 0.5, 0.75, 0.95].map(|share| 4.0 + 1.8 * share));
}

#[test]
fn packets_stay_in_order() {
    // 40 ms for packets that are 2 ms apart, on a host whose link other flows use, and on one whose link they
    // do not use.
    for extra in ["", "flow g: a -> b, tcp = rfc, start = 59s"] {
        let text = "
            seed = 8, stop = 60s
            link x: a -> b, rate = 8Mbit, delay = 3ms, queue = { kind = fifo, limit = 9000p }
            flow f: a -> b, tcp = rfc, jitter = 40ms
        ";
        let outcome = run(&(text.to_owned() + extra));
        // A segment out of order would cause a duplicate ACK and a retransmission.
        let f = flow(&outcome, "f");
        assert_eq!((f.retransmits, f.timeouts, f.fast_retransmits), (Some(0), Some(0), Some(0)));
        assert!(throughput(&outcome, "f") > 1e6);
        assert!(link(&outcome, "x").sent.packets.get() > 10_000);
    }
}

/// Four TCP flows with separate hosts. `extra` uses their first links and sends nothing.
fn dumbbell(extra: &str) -> String {
    format!(
        r#"
            seed = 21, stop = 20s, measure_from = 3s
            [topology] kind = dumbbell, pairs = 4, access = {{ rate = 40Mbit, delay = "2ms * i" }},
                bottleneck = {{ rate = 7Mbit, delay = 6ms, queue = {{ kind = fifo, limit = 33p }} }}
            {extra}
            flow f: l{{i}} -> r{{i}}, count = 4, tcp = ns2-235, jitter = 1300us
        "#
    )
}

#[test]
fn a_link_that_takes_packets_early_gives_what_others_give() {
    let silent = "flow silent: l{i} -> r{i}, count = 4, tcp = rfc, start = 19999ms";
    let (early, late) = (run(&dumbbell("")), run(&dumbbell(silent)));
    let flows = |outcome: &Outcome| format!("{:?}", &outcome.flows[..4]);
    assert_eq!(flows(&early), flows(&late));
    assert!(early.events < late.events, "{} {}", early.events, late.events);
}
