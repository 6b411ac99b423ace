//! Changes of load, and paths of several links.

use apportion_core::queue::DropReason;
use apportion_core::units::{Span, Time};

use super::statistic;
use crate::common::{flow, link, run, run_with, scenarios, sweep, throughput};

#[test]
fn a_stale_share_without_three_remedies_fills_the_buffer() {
    // A flow of 8 Mb/s ends at 5 s and leaves a fair share of as much. At 30 s five flows, until then half of
    // the link, send twice of it. Packets that the full buffer drops in the 2 K_c that follow, of three runs,
    // with K = K_c = 600 ms: CSFQ has forgotten the share, MCSFQ has not. In the order of the list, seeds 1
    // to 3 together: 255, 3506, 161, 1040, 1801, 0, 4296.
    let queues = [
        "kind = \"csfq\", preset = \"paper\", threshold = 0.5",
        "kind = \"mcsfq\", preset = \"paper\"",
        "kind = \"mcsfq\", preset = \"paper\", decay = 0.1",
        "kind = \"mcsfq\", preset = \"paper\", onset = true",
        "kind = \"mcsfq\", preset = \"paper\", avoidance = 0.5",
        "kind = \"mcsfq\", preset = \"paper\", decay = 0.1, onset = true, avoidance = 0.5",
        "kind = \"fifo\"",
    ];
    let overflows = queues.map(|queue| {
        let slow =
            if queue.contains("fifo") { "" } else { ", k = \"600ms\", k_alpha = \"600ms\", k_c = \"600ms\"" };
        let scenario = scenarios(&format!(
            "
                stop = 31.2s, measure_from = 30s
                link wire: a -> b, rate = 10Mbit, delay = 1ms, queue = {{ {queue}, limit = 64kB{slow} }}
                flow udp: a -> b, count = 5, source = {{ kind = cbr, rate = 1Mbit, packet = 1000B, jitter = 5% }}
                flow early: a -> b, source = {{ kind = cbr, rate = 8Mbit, packet = 1000B, jitter = 5% }}, stop = 5s
                change 30s: flow.udp.rate = 4Mbit
            "
        ))
        .remove(0);
        let of = |seed| link(&run_with(&scenario, seed), "wire").dropped.get(&DropReason::Overflow).copied();
        (1..=3).map(|seed| of(seed).unwrap_or(0)).sum::<u64>()
    });
    let [csfq, mcsfq, decay, onset, avoidance, all, fifo] = overflows;
    assert!(fifo > mcsfq && mcsfq > 10 * csfq, "{overflows:?}");
    assert!(3 * avoidance < 2 * mcsfq && 2 * onset < mcsfq && 10 * decay < mcsfq, "{overflows:?}");
    assert!(all < decay && all < onset && all < avoidance, "{overflows:?}");
}

#[test]
fn a_share_under_chattering_load_freezes_and_counts_show_it() {
    // Four flows of 5 Mb/s in waves of K_c / 2, together on or off: each crossing of the link rate starts a
    // window anew, and none ever ends. Five windows later the share must be another one, or the count must be
    // at least half of the ten waves up. With the same sources all the time on, the share moves and there is
    // one congestion.
    for kind in ["csfq", "mcsfq"] {
        let states = |source: &str| -> Vec<(f64, f64)> {
            let mut scenario = scenarios(&format!(
                "
                    stop = 20s
                    link wire: a -> b, rate = 10Mbit, delay = 1ms, queue = {{ kind = {kind}, preset = paper }}
                    flow wave: a -> b, count = 4, source = {{ {source}, rate = 5Mbit, packet = 1000B }}
                "
            ))
            .remove(0);
            let at = |half: u64| {
                scenario.stop = Time::from_millis(10_000 + 500 * half);
                let outcome = run_with(&scenario, 1);
                ["alpha", "congested_periods"].map(|name| statistic(&outcome, "wire", name))
            };
            (0..10).map(at).map(|[share, periods]| (share, periods)).collect()
        };
        let waves = states("kind = \"on_off\", on = \"25ms\", off = \"25ms\", shape = \"constant\"");
        for pair in waves.windows(2) {
            let [(share, periods), (next, later)] = pair else { continue };
            assert!(share != next || later - periods >= 5.0, "{kind}: {waves:?}");
        }
        assert!(waves.windows(2).any(|pair| pair[0].0 == pair[1].0), "{kind} is frozen at times: {waves:?}");
        let steady = states("kind = \"cbr\"");
        assert!(steady.windows(2).all(|pair| pair[0].0 != pair[1].0), "{kind}: {steady:?}");
        assert!(steady.iter().all(|(_, periods)| *periods <= 2.0), "{kind}: {steady:?}");
    }
}

#[test]
fn an_equal_division_of_half_a_link_is_not_fair() {
    // Pelsser02, figure 6: three datagram flows of 0.5 Mb/s leave 2.25 of 3.75 Mb/s to TCP. With K_c = 0.1 s
    // CSFQ takes the rate of a datagram flow for the fair share whenever TCP pauses: all are equal, and the
    // link is half empty.
    let outcomes = sweep(
        "
            stop = 120s, measure_from = 20s, defaults.link = { rate = 100Mbit, delay = 2.5ms }
            link s1: tcp -> edge
            link s2: udp -> edge
            link out: core -> sink
            link wire: edge -> core, rate = 3.75Mbit, delay = 10ms,
                queue = [
                    { kind = mcsfq, preset = paper },
                    { kind = csfq, preset = paper, limit = 64kB, threshold = 0.5, below_threshold = uncongested }
                ]
            flow tcp: tcp -> sink, tcp = reno-1999
            flow udp: udp -> sink, count = 3, source = { kind = cbr, rate = 500kbit, packet = 1000B, jitter = 5% }
        ",
    );
    let [(tcp, utilisation), (low, half)] = [0, 1].map(|at| {
        let outcome = &outcomes[at];
        for i in 1..=3 {
            assert!(throughput(outcome, &format!("udp.{i}")) > 0.49e6);
        }
        (throughput(outcome, "tcp") / 1e6, link(outcome, "wire").utilisation)
    });
    assert!(tcp >= 1.8 && utilisation > 0.9, "MCSFQ: {tcp} Mb/s, {utilisation}");
    assert!(low < 0.7 && half < 0.6, "CSFQ: {low} Mb/s, {half}");
}

#[test]
fn two_bottlenecks_in_a_row_both_divide_fairly() {
    // 6 and 3 Mb/s over two links of 4, and 4 Mb/s over the second alone: a third of it each. What happens to
    // labels that stay as they came is a law of the core.
    let outcome = run(r#"
        stop = 52s, measure_from = 12s, defaults.link = { rate = 4Mbit, delay = 1ms, queue = csfq }
        link first: a -> b
        link second: b -> c
        flow long: a -> c, count = 2, source = { kind = cbr, rate = "9Mbit - 3Mbit * i", packet = 1000B, jitter = 5% }
        flow cross: b -> c, source = { kind = cbr, rate = 4Mbit, packet = 1000B, jitter = 5% }
    "#);
    // With 5000 packets a flow that pass at random, ± 4 sqrt(0.75·5000) = 245 are 5 %.
    for name in ["long.1", "long.2", "cross"] {
        let share = throughput(&outcome, name) * 3.0 / 4e6;
        assert!((share - 1.0).abs() < 0.06, "{name}: {share}");
    }
}

#[test]
fn behind_the_egress_packets_have_no_label() {
    let text = |egress: bool| {
        format!(
            "
                stop = 10s, defaults.link = {{ rate = 4Mbit, delay = 1ms }}
                link x: a -> b, queue = {{ kind = csfq, role = edge }}
                link y: b -> c, queue = {{ kind = csfq, role = core }}
                link z: c -> d, queue = {{ kind = csfq, role = core, egress = {egress} }}
                link witness: d -> e, queue = csfq
                flow f: a -> e, source = {{ kind = cbr, rate = 2Mbit, packet = 1000B }}
            "
        )
    };
    for egress in [false, true] {
        let mut scenario = scenarios(&text(egress)).remove(0);
        // A file with this setting is refused: a core drops packets without a label.
        let core = scenario.links.iter().find(|link| link.name == "y").unwrap().queue.clone();
        scenario.links.iter_mut().find(|link| link.name == "witness").unwrap().queue = core;
        let outcome = run_with(&scenario, 1);
        let flow = flow(&outcome, "f");
        let unlabelled = *flow.dropped.get(&DropReason::Policy).unwrap_or(&0);
        let arrived = scenario.stop.since(Time::ZERO + Span::from_millis(20)).as_secs_f64() * 250.0;
        if egress {
            assert!(unlabelled as f64 >= arrived && flow.delivered.packets.get() == 0, "{unlabelled}");
        } else {
            assert!(unlabelled == 0 && flow.delivered.packets.get() as f64 >= arrived, "{unlabelled}");
        }
    }
}

#[test]
fn a_recorded_link_is_divided_at_its_present_rate() {
    // 3 Mb/s for 2 s, then 24 Mb/s for 2 s: 13.5 Mb/s on average. A flood of 12 Mb/s may have half of the link, and TCP the
    // rest. With the mean as C, TCP gets 0.6 of that, and the flood waits for 300 ms.
    let opportunities = (0..4_000_u32).flat_map(|ms| {
        let count = if ms < 2_000 { u32::from(ms % 4 == 0) } else { 2 };
        (0..count).map(move |_| format!("{}\n", ms + 1))
    });
    let path = std::env::temp_dir().join(format!("apportion-{}-csfq", std::process::id()));
    std::fs::write(&path, opportunities.collect::<String>()).unwrap();
    for kind in ["csfq", "hcsfq"] {
        let outcome = run(&format!(
            "
                stop = 42s, measure_from = 2s
                link wire: a -> b, rate = {{ trace = \"{}\" }}, delay = 10ms, queue = {kind}, watch = true
                flow tcp: a -> b, count = 3
                flow flood: a -> b, source = {{ kind = cbr, rate = 12Mbit, packet = 1000B, jitter = 5% }}
            ",
            path.display()
        ));
        let wire = link(&outcome, "wire");
        assert!(wire.utilisation > 0.95, "{kind}: {}", wire.utilisation);
    }
}
