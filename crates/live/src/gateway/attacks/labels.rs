//! Labels that claim a tiny rate on the packets of a large flow, against flows with honest labels.

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;

use super::*;
use crate::wire_label;

/// Source ports of flows from 10.0.0.1, 0.2 and 0.3, of 6 Mb/s each: 750 packets of 1000 B.
const PORTS: [u16; 3] = [1_001, 1_002, 1_003];
const PACKETS: u64 = 750;
const HONEST: f64 = 6e6;
const LIE: f64 = 1_000.0;

fn labelled(mut frame: Vec<u8>, rate: f64) -> Vec<u8> {
    let ip = frame::parse(&frame).unwrap().ip();
    assert!(wire_label::write(&mut frame, ip, LabelKind::Rate, Label::new(rate)));
    frame
}

/// Shares in Mb/s up of a first flow of 6 Mb/s whose labels claim 1 kb/s, and of two flows with honest
/// labels; and the metrics of labels: ignored, above the limit.
fn shares(role: &str, reads: &str, rules: &str) -> ([f64; 3], [u64; 2]) {
    let mut bench = Bench::new(&format!(
        "down.rate = \"100Mbit\"\n[up]\nrate = \"6Mbit\"\noverhead = \"0B\"\nlabels = {{ reads = {reads} }}\n\
         queue = {{ kind = \"csfq\", role = \"{role}\", egress = true }}\n{rules}"
    ));
    for (host, port) in (1..).zip(PORTS) {
        let rate = if host == 1 { LIE } else { HONEST };
        // At different instants, since otherwise the first flow would always find the room that the others do
        // not.
        let frame = labelled(datagram([inside(host), SERVER], [port, 80], 1_000), rate);
        bench.play_at(
            INSIDE,
            [Time::from_nanos(u64::from(host) * 444_444), Time::from_secs(20)],
            PACKETS,
            move |_| frame.clone(),
        );
    }
    bench.run(20_000);
    let rate = |port| bench.count(OUTSIDE, port, [5_000, 20_000]) as f64 * 8_000.0 / 15e6;
    let shares = PORTS.map(rate);
    let state = bench.direction(Direction::Up);
    (shares, [state.ignored, state.over_limit])
}

#[test]
fn a_label_from_an_address_that_is_not_trusted_gains_nothing() {
    let (shares, counts) = shares("any", "[\"10.0.0.2/31\"]", "");
    assert_eq!(counts, [20 * PACKETS, 0]);
    assert!(shares.iter().all(|share| (share / 2.0 - 1.0).abs() < 0.1), "{shares:?}");
    // A router that does not measure drops packets without a label.
    let (shares, _) = self::shares("core", "[\"10.0.0.2/31\"]", "");
    assert_eq!(shares[0], 0.0);
    assert!(shares[1..].iter().all(|share| (share / 3.0 - 1.0).abs() < 0.1), "{shares:?}");
}

#[test]
fn a_label_from_an_address_that_is_trusted_is_believed() {
    for reads in ["true", "[\"10.0.0.0/8\"]"] {
        let (shares, counts) = shares("any", reads, "");
        assert_eq!(counts, [0, 0]);
        assert!(shares[0] > 5.5, "{shares:?}");
    }
}

#[test]
fn the_limit_of_a_rule_bounds_what_labels_claim() {
    let rule = "[[rule]]\nname = \"liar\"\nfrom = \"10.0.0.1\"\nlabel_limit = \"900kbit\"\n";
    let grouped = |flows: &str| format!("{rule}flows = \"{flows}\"\n");
    for rule in [rule.to_owned(), grouped("one"), grouped("address/32")] {
        // 0.9 Mb/s pass with the tiny rate that they claim; 5.1 Mb/s are divided by three, because the rest
        // is measured.
        let (shares, counts) = shares("any", "true", &rule);
        assert!((shares[0] / 2.6 - 1.0).abs() < 0.1, "{shares:?}");
        assert!(shares[1..].iter().all(|share| (share / 1.7 - 1.0).abs() < 0.1), "{shares:?}");
        assert!((12_700..12_800).contains(&counts[1]), "{counts:?}");
        // A core drops the rest.
        let (shares, _) = self::shares("core", "true", &rule);
        assert!((shares[0] / 0.9 - 1.0).abs() < 0.02, "{shares:?}");
    }
}

#[test]
fn one_customer_of_a_rule_above_its_limit_costs_the_others_no_label() {
    let rule = "[[rule]]\nname = \"customers\"\nfrom = \"10.0.0.0/8\"\nlabel_limit = \"6100kbit\"\n";
    let over = |flows: &str, liar: u64| {
        let text = format!(
            "down.rate = \"100Mbit\"\n[up]\nrate = \"6Mbit\"\noverhead = \"0B\"\nlabels = {{ reads = true }}\n\
             queue = {{ kind = \"csfq\", egress = true }}\n{rule}flows = \"{flows}\"\n"
        );
        let mut bench = Bench::new(&text);
        for (host, per_second) in [(1, liar), (2, PACKETS), (3, PACKETS)] {
            let frame = labelled(datagram([inside(host), SERVER], [host, 80], 1_000), LIE);
            bench.play(INSIDE, [0, 10_000], per_second, move |_| frame.clone());
        }
        bench.run(10_000);
        bench.direction(Direction::Up).over_limit
    };
    // 6 Mb/s of each address are below the limit; 24 Mb/s of one are 17.9 Mb/s above it, 22375 packets in
    // 10 s.
    assert_eq!(over("address/32", PACKETS), 0);
    let one = over("address/32", 4 * PACKETS);
    assert!((22_200..22_400).contains(&one), "{one}");
    // Two addresses in a network share its limit, and the third has its own: 5.9 Mb/s too much.
    let two = over("address/31", PACKETS);
    assert!((7_250..7_400).contains(&two), "{two}");
    // All packets of the rule share its limit.
    let all = over("each", PACKETS);
    assert!((14_750..14_900).contains(&all), "{all}");
}

#[test]
fn the_state_of_limits_is_bounded_and_a_new_customer_inherits_none() {
    let rule = "[[rule]]\nname = \"customers\"\nlabel_limit = \"100kbit\"\nflows = \"address/32\"\n";
    let mut bench = Bench::new(&format!(
        "flows = 64\ndown.rate = \"100Mbit\"\n[up]\nrate = \"6Mbit\"\nlabels = {{ reads = true }}\n\
         queue = {{ kind = \"csfq\", egress = true }}\n{rule}"
    ));
    // Each address sends one packet, within the limit, and takes the number of another one.
    bench.play(INSIDE, [0, 5_000], 1_000, |number| {
        labelled(datagram([inside(number as u16), SERVER], [1, 80], 1_000), LIE)
    });
    bench.run(5_000);
    let state = bench.direction(Direction::Up);
    assert_eq!((state.over_limit, state.flows.count()), (0, 64));
}

#[test]
fn a_customer_within_its_limit_keeps_its_labels() {
    let rule = "[[rule]]\nname = \"customer\"\nfrom = \"10.0.0.2\"\nlabel_limit = \"6100kbit\"\n";
    let (_, counts) = shares("any", "true", rule);
    assert_eq!(counts, [0, 0]);
}
