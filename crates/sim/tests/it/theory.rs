//! The simulator compared with results known from theory.

use crate::common::{dropped, flow, link, run, sweep, throughput};

#[test]
fn the_wait_of_an_m_d_1_queue_follows_pollaczek_and_khinchine() {
    // 1000 B at 100 Mb/s: service s = 80 us. Load 0.8: W = rho s / (2 (1 - rho)) = 0.8 * 80 / 0.4 = 160 us.
    //
    // The relative variance of a time average of reflected Brownian motion with drift -m and variance v (per
    // service time) is 2 v / m^2 over the number of service times: 2 * 0.8 / 0.2^2 = 40. Over 96 s there are
    // 1.2 million service times: a standard error of sqrt(40 / 1.2e6) = 0.58 %, and 3 % are five of them.
    let outcome = run("
        stop = 97s, measure_from = 1s
        link server: source -> sink, rate = 100Mbit, delay = 1ms, queue = { kind = fifo, limit = 10000p },
            watch = true
        flow load: source -> sink, source = { kind = poisson, rate = 80Mbit, packet = 1000B }
    ");
    let wait = link(&outcome, "server").queue_delay.mean.as_secs_f64();
    assert!((wait / 160e-6 - 1.0).abs() < 0.03, "{wait} s");
    // Little's law: packets in the queue are the arrival rate times the wait, 10,000 * W.
    let little = link(&outcome, "server").queue_mean / (wait * 10_000.0);
    assert!((little - 1.0).abs() < 0.01, "{little}");
    assert_eq!(dropped(&link(&outcome, "server").dropped), 0);
}

#[test]
fn the_utilisation_by_constant_bit_rate_is_exact() {
    // 3 Mb/s of 1000 B is a packet every 8/3 ms: 3750 in 10 s, 30 Mbit out of 100.
    let outcome = run("
        stop = 11001ms, measure_from = 1001ms
        link wire: source -> sink, rate = 10Mbit, delay = 1ms, watch = true
        flow cbr: source -> sink, source = { kind = cbr, rate = 3Mbit, packet = 1000B }
    ");
    let wire = link(&outcome, "wire");
    assert_eq!(wire.sent.packets.get(), 3_750);
    assert!((wire.utilisation - 0.3).abs() < 1e-12, "{}", wire.utilisation);
    // No packet meets another one.
    assert_eq!((wire.queue_delay.count, wire.queue_delay.mean.as_nanos()), (3_750, 0));
}

#[test]
fn datagrams_behind_weighted_schedulers_have_their_weights() {
    // Two flows of 10 Mb/s each over 10 Mb/s, weights 1 and w: 1/(1 + w) for the light one, 9.09 % or 0.0999
    // % of 50,000 packets in 20 s. It may be ahead or behind by a quantum of DRR, three packets in 1.2 s, so
    // that at w = 1000 it gets at least 0.9 of its share; less would be starvation.
    for scheduler in ["stfq", "scfq", "wfq", "wf2q", "wf2q_plus", "drr"] {
        for weight in [10.0, 1_000.0] {
            let outcome = run(&format!(
                "
                    stop = 22s, measure_from = 2s
                    link wire: source -> sink, rate = 10Mbit, delay = 1ms,
                        queue = {{ kind = {scheduler}, limit = 5000p }}
                    flow light: source -> sink, weight = 1, source = {{ kind = cbr, rate = 10Mbit, packet = 500B }}
                    flow heavy: source -> sink, weight = {weight},
                        source = {{ kind = cbr, rate = 10Mbit, packet = 500B }}
                "
            ));
            let [light, heavy] = ["light", "heavy"].map(|name| throughput(&outcome, name) / 10e6);
            let due = 1.0 / (1.0 + weight);
            let place = format!("{scheduler}, 1:{weight}: {light} and {heavy} against {due}");
            assert!((light - due).abs() < 0.002 && (heavy - (1.0 - due)).abs() < 0.002, "{place}");
            assert!(light > 0.9 * due, "{place}");
        }
    }
}

#[test]
fn drr_divides_by_weights_as_a_fluid() {
    // 1 : 2 : 3 of 6 Mb/s. The services of two backlogged flows by weight differ by about a packet of each
    // (Shreedhar and Varghese 1995, theorem 2): 16 kbit in 20 s are 0.0008 Mb/s, 0.08 % of the smallest
    // share.
    let outcome = run("
        stop = 25s, measure_from = 5s
        link wire: a -> b, rate = 6Mbit, delay = 1ms,
            queue = { kind = drr, drop = lqd, limit = 300p, quantum = 1000B }
        flow cbr: a -> b, count = 3, weight = i, source = { kind = cbr, rate = 9Mbit, packet = 1000B, jitter = 5% }
    ");
    for (name, share) in [("cbr.1", 1e6), ("cbr.2", 2e6), ("cbr.3", 3e6)] {
        let got = throughput(&outcome, name);
        assert!((got / share - 1.0).abs() < 0.005, "{name}: {got}");
    }
}

#[test]
fn fq_codel_is_fair_to_a_thousand_flows_but_for_collisions() {
    // A queue per flow: in 10 s at 100 Mb/s each gets 125 packets of 1000 B; a round more or less leaves
    // Jain's index above 1 - (1/125)^2 = 0.9999.
    //
    // Hashed into m = 1024 buckets, colliding flows split a share: with k_b flows in bucket b and B buckets
    // in use, Jain is B^2 / (n sum 1/k_b). For n = 1000 uniform choices k is about Poisson of 0.977:
    // B = 1024 (1 - e^-0.977) = 638.5 and sum 1/k = 1024 e^-0.977 sum 0.977^k / (k! k) = 493, so Jain is
    // 638.5^2 / (1000 * 493) = 0.83.
    let outcomes = sweep(
        "
            stop = 12s, measure_from = 2s
            link wire: a -> b, rate = 100Mbit, delay = 1ms,
                queue = { kind = fq_codel, classify = [exact, hashed], quantum = 1000B, limit = 20000p }
            flow cbr: a -> b, count = 1000, source = { kind = cbr, rate = 200kbit, packet = 1000B, jitter = 50% },
                start = { between = [0s, 40ms] }
        ",
    );
    let jain: Vec<f64> = outcomes
        .iter()
        .map(|outcome| {
            let rates: Vec<f64> = outcome.flows.iter().map(|flow| throughput(outcome, &flow.name)).collect();
            let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|x| x * x).sum::<f64>());
            sum * sum / (rates.len() as f64 * squares)
        })
        .collect();
    assert!(jain[0] >= 0.999, "exact: {}", jain[0]);
    assert!((0.80..0.88).contains(&jain[1]), "hashed: {}", jain[1]);
}

#[test]
fn reno_under_random_loss_follows_the_square_root_law() {
    // Mean window sqrt(3 / (2 p)) packets with an ACK for each (Mathis et al. 1997). For p = 0.01: sqrt(150)
    // = 12.25 packets of 8000 bit in a round trip of 100 ms: 0.980 Mb/s. The link takes 0.08 ms per packet
    // and never has a queue.
    let outcome = run("
        stop = 1010s, measure_from = 10s
        link wire: a -> b, rate = 100Mbit, delay = 50ms, loss = 1%
        flow reno: a -> b, tcp = { profile = ns2-235, header = 0B, window = 1000p }
    ");
    let (got, law) = (throughput(&outcome, "reno"), 150f64.sqrt() * 8_000.0 / 0.1);
    assert!((got / law - 1.0).abs() < 0.15, "{got} instead of {law}");
    let reno = flow(&outcome, "reno");
    let share = reno.lost as f64 / reno.sent.packets.get() as f64;
    // About 122,000 packets: the standard deviation of the share is sqrt(0.01 * 0.99 / 122000) = 0.00028.
    assert!((share - 0.01).abs() < 0.0012, "{share}");
}

/// Returns the share of 10 Mb/s that a UDP flow of `rate` gets next to twenty TCP flows, for a sweep over
/// `queue` or `rate`.
fn unresponsive(queue: &str, rate: &str) -> Vec<f64> {
    let outcomes = sweep(&format!(
        "
            seed = 13, stop = 40s, measure_from = 10s
            [topology] kind = dumbbell, pairs = 21, access = {{ rate = 100Mbit, delay = 5ms }},
                bottleneck = {{ rate = 10Mbit, delay = 10ms, queue = {queue} }}
            flow tcp: l{{i}} -> r{{i}}, count = 20, tcp = rfc, start = {{ between = [0s, 1s] }}
            flow udp: l21 -> r21, source = {{ kind = cbr, rate = {rate}, packet = 1000B, jitter = 5% }}
        "
    ));
    outcomes.iter().map(|outcome| throughput(outcome, "udp") / 10e6).collect()
}

#[test]
fn an_unresponsive_flow_behind_choke_peaks_below_its_bound() {
    // Tang, Wang, Low, "Understanding CHOKe", ToN 12(4), 2004: with many TCP flows the share of one UDP flow
    // is at most 1/(e + 1) = 0.269, at slightly more than the rate of the link, and tends to 0 as it sends
    // more.
    let queue = r#"{ kind = "choke", limit = "200p", min_th = "25p", max_th = "100p" }"#;
    let shares = unresponsive(queue, r#"["8Mbit", "10Mbit", "11Mbit", "15Mbit", "60Mbit"]"#);
    assert!(shares.iter().all(|&share| share < 0.269), "{shares:?}");
    assert!(shares[4] < 0.6 * shares[1], "{shares:?}");
}

#[test]
fn an_unresponsive_flow_is_held_by_fred_and_bred_not_by_red() {
    // The fair share is 1/21 = 0.048. FRED limits a flow with strikes to the average per flow. BRED lets it
    // hold W_m = 12 packets of 1 kB of a queue that the windows of the others make about 110 ms long: 12/137
    // = 0.088.
    let queues = r#"[
        { kind = "fred", limit = "200p", min_th = "50p", max_th = "100p" },
        { kind = "bred", limit = "200p" },
        { kind = "red", limit = "200p", min_th = "25p", max_th = "100p" },
        { kind = "sred", limit = "200p", crowd = 16 },
    ]"#;
    let shares = unresponsive(queues, r#""15Mbit""#);
    assert!((shares[0] * 21.0 - 1.0).abs() < 0.15, "FRED: {}", shares[0]);
    assert!(shares[1] < 0.11, "BRED: {}", shares[1]);
    assert!(shares[2] > 0.9 && shares[3] > 0.9, "RED and SRED: {shares:?}");
}

#[test]
fn pie_and_dualpi2_with_gains_keep_the_mean_delay_near_target() {
    // The integral term leaves no steady-state error while the windows can follow: the mean delay is the
    // target, within a fifth for the oscillation. Without gains the delay is that of the buffer, 100 ms.
    let delay = |mbit: u32, flows: u32, queue: &str| {
        let outcome = run(&format!(
            "
                stop = 30s, measure_from = 10s
                [topology] kind = dumbbell, pairs = {flows}, access = {{ rate = 1Gbit, delay = 1ms }}
                [topology.bottleneck] rate = {mbit}Mbit, delay = 20ms, queue = {{ kind = {queue} }}
                flow tcp: l{{i}} -> r{{i}}, count = {flows}, start = {{ between = [0s, 1s] }}
            "
        ));
        link(&outcome, "bottleneck").queue_delay.mean.as_secs_f64() * 1e3
    };
    for queue in ["\"pie\"", "\"dualpi2\""] {
        for (mbit, flows) in [(10, 10), (30, 10), (30, 30)] {
            let mean = delay(mbit, flows, queue);
            assert!((12.0..18.0).contains(&mean), "{queue}, {mbit} Mb/s, {flows} flows: {mean} ms");
        }
    }
    let slow = delay(10, 10, "\"pie\", target = \"30ms\"");
    assert!((24.0..36.0).contains(&slow), "{slow} ms");
    let off = delay(10, 10, "\"pie\", alpha = 0, beta = 0");
    assert!(off > 60.0, "{off} ms");
}
