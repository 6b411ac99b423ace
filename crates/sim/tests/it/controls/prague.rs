//! Prague, the congestion control for which DualPI2 (RFC 9332) is designed.

use apportion_runtime::outcome::Outcome;

use super::{flows, run};
use crate::common::{flow, link, throughput};

const PRAGUE: &str = "tcp = \"prague\"";

fn dualpi2(rate: u64, rtt_ms: u64) -> String {
    format!("rate = \"{rate}Mbit\"\ndelay = \"{}us\"\nqueue = {{ kind = \"dualpi2\" }}", 500 * rtt_ms)
}

/// The mean queueing delay of a flow over a path with this one-way delay, both in milliseconds.
fn queueing(outcome: &Outcome, name: &str, delay: f64) -> f64 {
    1e3 * flow(outcome, name).delay.mean.as_secs_f64() - delay
}

#[test]
fn alone_it_fills_the_link_with_a_queue_below_a_millisecond() {
    let outcome = run(&dualpi2(40, 40), 10, 40, &flows("p", PRAGUE));
    let wire = link(&outcome, "wire");
    // RFC 9332 section 2.5.1: L4S packets are marked from 1 ms on.
    assert!(wire.utilisation > 0.98 && wire.queue_delay.mean.as_secs_f64() < 1e-3, "{}", wire.utilisation);
    assert!(wire.marked > 0);
    assert_eq!(flow(&outcome, "p").retransmits, Some(0));
}

#[test]
fn a_train_of_paced_acks_does_not_end_slow_start() {
    // Paced ACKs are spread over the whole round trip on an empty link. From 2 to 6 s the rate was 55 Mb/s if
    // they ended slow start. The first mark halves Prague's window, and the next ones lower it nearly as much
    // until alpha has fallen.
    for (tcp, least) in
        [(PRAGUE, 0.25e9), ("tcp = { profile = \"linux\", algorithm = \"sack\", pacing = true }", 0.4e9)]
    {
        let outcome = run(&dualpi2(1_000, 40), 2, 6, &flows("p", tcp));
        assert!(throughput(&outcome, "p") > least, "{tcp}: {}", throughput(&outcome, "p"));
    }
}

#[test]
fn beside_classic_flows_it_gets_as_much_and_waits_for_less() {
    // RFC 9332 section 2.1: with the coupling k = 2, at p' Reno has a window of sqrt(3/2) / p' over 40 ms plus
    // a queue of 15 ms, Prague one of 2 / (2 p') over 40 ms if each round trip has a mark that lowers it: 1.12
    // times the rate. Marks are evenly spaced, three in a round trip, so the next reduction waits for a third
    // of a round trip more, and the ratio is up to 1.5.
    for ecn in [false, true] {
        let count = |flow: String| flow.replace("]\n", "]\ncount = 4\n");
        let reno = format!("tcp = {{ profile = \"linux\", algorithm = \"sack\", ecn = {ecn} }}");
        let classic = count(flows("r", &reno));
        let outcome = run(&dualpi2(40, 40), 20, 80, &(count(flows("p", PRAGUE)) + &classic));
        let sum =
            |group: &str| -> f64 { (1..=4).map(|n| throughput(&outcome, &format!("{group}.{n}"))).sum() };
        let ratio = sum("p") / sum("r");
        assert!((0.9..1.6).contains(&ratio), "{ratio}");
        let (prague, reno) = (queueing(&outcome, "p.1", 20.0), queueing(&outcome, "r.1", 20.0));
        // Both need 0.3 ms on the wire.
        assert!(prague < 1.0 && reno > 8.0, "{prague} and {reno} ms");
    }
}

#[test]
fn a_loss_in_the_round_trip_after_a_mark_lowers_the_window_too() {
    // 2 % of the packets are lost before the link, which marks if two more flows fill it. Without a response to
    // losses after a mark the flow got more beside them than alone.
    let lossy = "[link.far]\nfrom = \"c\"\nto = \"a\"\nrate = \"200Mbit\"\ndelay = \"5ms\"\nloss = \"2%\"\n"
        .to_owned()
        + &flows("lossy", PRAGUE).replace("from = \"a\"", "from = \"c\"");
    let alone = run(&dualpi2(40, 10), 5, 60, &lossy);
    let beside = run(&dualpi2(40, 10), 5, 60, &(lossy + &flows("p", PRAGUE) + &flows("q", PRAGUE)));
    assert!(flow(&beside, "lossy").marked > 500);
    let ratio = throughput(&beside, "lossy") / throughput(&alone, "lossy");
    assert!(ratio < 0.95, "{ratio}");
}

#[test]
fn a_fifth_of_the_round_trip_is_not_five_times_the_rate() {
    // 5 and 25 ms, both of which count as 25 ms.
    let far = "[link.far]\nfrom = \"c\"\nto = \"a\"\nrate = \"1Gbit\"\ndelay = \"10ms\"\n";
    let other = flows("far", PRAGUE).replace("from = \"a\"", "from = \"c\"");
    let outcome = run(&dualpi2(40, 5), 20, 80, &(flows("near", PRAGUE) + &other + far));
    let ratio = throughput(&outcome, "near") / throughput(&outcome, "far");
    assert!((0.6..2.0).contains(&ratio), "{ratio}");
}

#[test]
fn half_of_the_acks_lost_do_not_change_its_share_beside_a_classic_flow() {
    // Lost ACKs that echo single marks lose these marks, and other ACKs attribute marks to more packets: 1.2
    // of the throughput.
    let with = |loss: &str| {
        let link = format!("{}\nback = {{ loss = \"{loss}\" }}", dualpi2(40, 40));
        let outcome = run(&link, 20, 80, &(flows("p", PRAGUE) + &flows("c", "tcp = \"cubic\"")));
        assert!(flow(&outcome, "p").marked > 500, "ECN was agreed on");
        throughput(&outcome, "p")
    };
    let ratio = with("50%") / with("0%");
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
}
