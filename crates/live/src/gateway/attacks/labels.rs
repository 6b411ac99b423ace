//! A label that says next to nothing on the packets of a flow that sends much, against flows with honest ones.

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;

use super::*;
use crate::wire_label;

/// From 10.0.0.1, .2 and .3, of 6 Mb/s each: 750 packets of 1000 B.
const PORTS: [u16; 3] = [1_001, 1_002, 1_003];
const PACKETS: u64 = 750;
const HONEST: f64 = 6e6;
const LIE: f64 = 1_000.0;

fn labelled(mut frame: Vec<u8>, rate: f64) -> Vec<u8> {
    let ip = frame::parse(&frame).unwrap().ip();
    assert!(wire_label::write(&mut frame, ip, LabelKind::Rate, Label::new(rate)));
    frame
}

/// 6 Mb/s up for the first flow, whose packets say 1 kb/s, and two with honest labels. What they get, in Mb/s, and the
/// metrics of labels: ignored, above the limit.
fn shares(role: &str, reads: &str, rules: &str) -> ([f64; 3], [u64; 2]) {
    let mut bench = Bench::new(&format!(
        "down.rate = \"100Mbit\"\n[up]\nrate = \"6Mbit\"\noverhead = \"0B\"\nlabels = {{ reads = {reads} }}\n\
         queue = {{ kind = \"csfq\", role = \"{role}\", egress = true }}\n{rules}"
    ));
    for (host, port) in (1..).zip(PORTS) {
        let rate = if host == 1 { LIE } else { HONEST };
        // Not all in one instant, in which the first would find the room that the others do not.
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
    // A router that measures nothing drops what has no label.
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
        // 0.9 Mb/s pass as they say they are little; 5.1 Mb/s are divided by three, as the rest is measured.
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
fn a_customer_within_its_limit_keeps_its_labels() {
    let rule = "[[rule]]\nname = \"customer\"\nfrom = \"10.0.0.2\"\nlabel_limit = \"6100kbit\"\n";
    let (_, counts) = shares("any", "true", rule);
    assert_eq!(counts, [0, 0]);
}
