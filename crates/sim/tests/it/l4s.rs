//! Disciplines that mark L4S packets instead of dropping them, with Prague, CUBIC and an unresponsive
//! ECN-capable flow.

use apportion_runtime::outcome::{FlowOutcome, Outcome};

use crate::common::{dropped, link, run, throughput};

/// Returns the outcome of `count` flows each with Prague and with CUBIC over a link of `rate` Mb/s with a
/// round-trip time of `rtt` ms, and of further text.
fn beside(queue: &str, rate: u64, rtt: u64, count: usize, rest: &str) -> Outcome {
    let pairs = 2 * count + 3;
    // Queues whose packets carry rate labels take no tickets.
    let tickets = if queue.contains("tred") { "tickets = 1000" } else { "" };
    let (near, far) = (rtt * 1_000 / 8, rtt * 1_000 / 4);
    run(&format!(
        "seed = 7\nstop = \"40s\"\nmeasure_from = \"15s\"\n\
         [topology]\nkind = \"dumbbell\"\npairs = {pairs}\naccess = {{ rate = \"1Gbit\", delay = \"{near}us\" }}\n\
         bottleneck = {{ rate = \"{rate}Mbit\", delay = \"{far}us\", queue = {queue} }}\n\
         [defaults.flow]\nstart = {{ between = [\"0s\", \"1s\"] }}\njitter = \"100us\"\n{tickets}\n\
         [flow.prague]\ncount = {count}\nfrom = \"l{{i}}\"\nto = \"r{{i}}\"\ntcp = \"prague\"\n\
         [flow.cubic]\ncount = {count}\nfrom = \"l{{i + {count}}}\"\nto = \"r{{i + {count}}}\"\n{rest}"
    ))
}

fn group<'a>(outcome: &'a Outcome, group: &str) -> Vec<&'a FlowOutcome> {
    outcome.flows.iter().filter(|flow| flow.group == group).collect()
}

/// Returns the minimum and the maximum of a group, relative to `due` Mb/s.
fn shares(outcome: &Outcome, name: &str, due: f64) -> (f64, f64) {
    let rates = group(outcome, name).into_iter().map(|flow| throughput(outcome, &flow.name) / 1e6 / due);
    rates.fold((f64::INFINITY, 0.0), |(least, most), share| (share.min(least), share.max(most)))
}

fn marked_and_dropped(outcome: &Outcome, name: &str) -> (u64, u64) {
    let flows = group(outcome, name);
    (flows.iter().map(|flow| flow.marked).sum(), flows.iter().map(|flow| dropped(&flow.dropped)).sum())
}

/// Returns the 99 % delay of the first flow of a group, in ms.
fn delay(outcome: &Outcome, name: &str) -> f64 {
    group(outcome, name)[0].delay.quantile(0.99).unwrap().as_secs_f64() * 1e3
}

const FLOOD: &str = "[flow.flood]\nfrom = \"l5\"\nto = \"r5\"\necn = \"ect1\"\n\
                     source = { kind = \"cbr\", rate = \"60Mbit\", packet = \"1500B\", jitter = \"5%\" }\n";

#[test]
fn csfq_gives_scalable_and_classic_flows_and_a_flood_that_asks_for_marks_the_same() {
    let outcome = beside("\"csfq\"", 40, 20, 2, FLOOD);
    for name in ["prague", "cubic", "flood"] {
        let (least, most) = shares(&outcome, name, 8.0);
        assert!(least > 0.95 && most < 1.05, "{name}: {least} to {most}");
    }
    let (marked, lost) = marked_and_dropped(&outcome, "prague");
    assert!(marked > 1_000 && lost == 0, "{marked} marked, {lost} lost");
    // 10 ms of these are propagation.
    let [prague, cubic] = ["prague", "cubic"].map(|name| delay(&outcome, name));
    assert!(prague < 13.0 && cubic > 20.0, "{prague} {cubic}");
    // The part of the unresponsive flow beyond its share is dropped, and the rest is marked.
    let (marked, lost) = marked_and_dropped(&outcome, "flood");
    let sent = group(&outcome, "flood")[0].sent.packets.get();
    assert!(lost * 10 > sent * 8 && marked + lost + 100 > sent, "{marked} marked, {lost} lost of {sent}");
    // Without marking Prague loses packets as CUBIC does; DualPI2 enforces no shares.
    let outcome = beside("{ kind = \"csfq\", l4s = false }", 40, 20, 2, FLOOD);
    assert!(delay(&outcome, "prague") > 20.0);
    let (marked, lost) = marked_and_dropped(&outcome, "prague");
    assert!(marked == 0 && lost > 20, "{marked} marked, {lost} lost");
}

#[test]
fn weights_of_prague_hold_at_a_short_queue_under_csfq_and_hcsfq() {
    let flow = |name, pair, weight| {
        format!("[flow.{name}]\nfrom = \"l{pair}\"\nto = \"r{pair}\"\ntcp = \"prague\"\nweight = {weight}\n")
    };
    let rest: String =
        [("two", 4, 2), ("four", 5, 4)].map(|(name, pair, weight)| flow(name, pair, weight)).concat();
    for kind in ["csfq", "hcsfq"] {
        let outcome = beside(&format!("\"{kind}\""), 40, 20, 1, &rest);
        // Prague and CUBIC of weight 1, Prague of 2 and of 4.
        for (name, due) in [("prague", 5.0), ("cubic", 5.0), ("two", 10.0), ("four", 20.0)] {
            let (least, most) = shares(&outcome, name, due);
            assert!(least > 0.9 && most < 1.1, "{kind} {name}: {least} to {most}");
            // The share of a customer swings more, and HCSFQ drops a few packets.
            let may_lose = kind == "hcsfq" || name == "cubic";
            assert!(may_lose || marked_and_dropped(&outcome, name).1 == 0, "{kind} {name}");
            assert!(name == "cubic" || delay(&outcome, name) < 15.0, "{kind} {name}");
        }
    }
}

#[test]
fn pfd_behind_queues_for_flows_makes_prague_wait_for_little_and_keeps_its_share() {
    let with = beside("{ kind = \"stfq\", drop = \"pfd\", l4s = true }", 100, 10, 5, "");
    let without = beside("{ kind = \"stfq\", drop = \"pfd\" }", 100, 10, 5, "");
    // 5 ms of these are propagation. A round of ten flows takes 1.2 ms; early drops begin at 20 ms.
    let [prague, cubic, unmarked] =
        [(&with, "prague"), (&with, "cubic"), (&without, "prague")].map(|(of, name)| delay(of, name));
    assert!(prague < 9.0 && cubic > 20.0 && unmarked > 20.0, "{prague} {cubic} {unmarked}");
    let (least, most) = shares(&with, "prague", 10.0);
    assert!(least > 0.9 && most < 1.1, "{least} to {most}");
    assert_eq!(marked_and_dropped(&with, "prague").1, 0);
    assert!(link(&with, "bottleneck").utilisation > 0.98);
}

#[test]
fn tred_marks_prague_and_divides_by_tickets() {
    let outcome = beside("{ kind = \"tred\", l4s = true }", 20, 20, 2, "");
    for name in ["prague", "cubic"] {
        let (least, most) = shares(&outcome, name, 5.0);
        assert!(least > 0.85 && most < 1.15, "{name}: {least} to {most}");
    }
    let (marked, lost) = marked_and_dropped(&outcome, "prague");
    assert!(marked > 1_000 && lost == 0, "{marked} marked, {lost} lost");
}

#[test]
fn two_prague_flows_behind_dualpi2_have_the_same_after_10_s() {
    // At 20 Mb/s the threshold is less than two packets: pairs of packets exceed it, and the smaller one of
    // two flows does so more often.
    for (delay, second) in [("10ms", "1s"), ("5ms", "0.5s"), ("20ms", "3s")] {
        for seed in 1..=3 {
            let outcome = run(&format!(
                "seed = {seed}\nstop = \"60s\"\nmeasure_from = \"10s\"\n\
                 link.wire = {{ from = \"a\", to = \"b\", rate = \"20Mbit\", delay = \"{delay}\", queue = \"dualpi2\", watch = true }}\n\
                 flow.one = {{ from = \"a\", to = \"b\", tcp = \"prague\" }}\n\
                 flow.two = {{ from = \"a\", to = \"b\", tcp = \"prague\", start = \"{second}\" }}\n"
            ));
            let [one, two] = ["one", "two"].map(|name| throughput(&outcome, name) / 1e6);
            let mean = (one + two) / 2.0;
            assert!((one - mean).abs() < 0.1 * mean && mean > 9.5, "{delay}, seed {seed}: {one} and {two}");
        }
    }
}
