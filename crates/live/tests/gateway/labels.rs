//! Two gateways in a row: the edge writes rates, and the core schedules by them. In both versions of IP.

use apportion_core::packet::LabelKind;
use apportion_core::units::Span;

use crate::common::{Wire, enter, host, metrics, open, udp};
use crate::line::{Ip, Outcome, counts, label, labelled, run};

const ENDS: [&str; 2] = ["inside = \"near\"\noutside = \"m1\"\n", "inside = \"m2\"\noutside = \"far\"\n"];
const EDGE: &str = "down.rate = \"100Mbit\"\n[up]\nrate = \"100Mbit\"\n\
    queue = { kind = \"csfq\", role = \"edge\" }\nlabels = { writes = true }\n";
const WEIGHTS: &str = "[[rule]]\nname = \"two\"\nfrom_port = 1002\nweight = 2\n\
    [[rule]]\nname = \"three\"\nfrom_port = 1003\nweight = 3\n";
const CORE: &str = "down.rate = \"100Mbit\"\n[up]\nrate = \"6Mbit\"\n\
    queue = { kind = \"csfq\", role = \"core\", egress = true }\nlabels = { reads = true }\n";
const PORTS: [u16; 3] = [1_001, 1_002, 1_003];
/// Interval between packets of 1000 B in a flow of 6 Mb/s.
const GAP: Span = Span::from_nanos(4_000_000 / 3);

/// Sends these flows at 6 Mb/s each for some milliseconds.
fn run_flows(edge: &str, core: &str, frames: &[Vec<u8>; 3], milliseconds: u64) -> Outcome {
    let [edge, core] = [format!("{}{edge}", ENDS[0]), format!("{}{core}", ENDS[1])];
    let outcome = run(&edge, &core, [frames.to_vec(), Vec::new()], GAP, milliseconds);
    assert!(outcome.far.len() as u64 > 200 * milliseconds / 1_000, "{}", outcome.metrics[1]);
    for frame in &outcome.far {
        assert_eq!(label(frame), None, "the last gateway takes labels off");
    }
    outcome
}

/// The shares of flows, as sixths.
fn sixths(outcome: &Outcome) -> [f64; 3] {
    let counts = counts(&outcome.far, PORTS);
    counts.map(|count| count as f64 / outcome.far.len() as f64 * 6.0)
}

/// Estimates take a part of a second to settle, and drops are random.
fn assert_close(shares: [f64; 3], expected: [f64; 3]) {
    for (share, expected) in shares.into_iter().zip(expected) {
        assert!((share / expected - 1.0).abs() < 0.25, "{shares:?}, not {expected:?}");
    }
}

/// The first flow in one version of IP, the others in the other.
fn flows([first, others]: [Ip; 2]) -> [Vec<u8>; 3] {
    [(first, PORTS[0]), (others, PORTS[1]), (others, PORTS[2])].map(|(ip, port)| ip.datagram((port, 9), 986))
}

pub fn an_edge_and_a_core_divide_by_weights() {
    let outcome = run_flows(&(EDGE.to_owned() + WEIGHTS), CORE, &flows([Ip::V4, Ip::V6]), 6_000);
    // 6 Mb/s by 1 : 2 : 3.
    assert_close(sixths(&outcome), [1.0, 2.0, 3.0]);
}

pub fn the_versions_of_ip_change_places() {
    let outcome = run_flows(&(EDGE.to_owned() + WEIGHTS), CORE, &flows([Ip::V6, Ip::V4]), 6_000);
    assert_close(sixths(&outcome), [1.0, 2.0, 3.0]);
}

pub fn a_core_divides_among_customers_by_labels() {
    let customers = "[customer.alice]\nweight = 1\n[customer.bob]\nweight = 1\n\
        [[rule]]\nname = \"alice\"\nfrom_port = \"1001-1002\"\ncustomer = \"alice\"\n\
        [[rule]]\nname = \"bob\"\nfrom_port = 1003\ncustomer = \"bob\"\n";
    // With the default credit of 5 s the shares are not reached in this time.
    let core = CORE.replace("\"csfq\"", "\"hcsfq\", credit = \"0s\"") + customers;
    let outcome = run_flows(EDGE, &core, &flows([Ip::V4, Ip::V6]), 6_000);
    // 3 Mb/s for each customer; each of Alice's flows gets half. Without customers each flow would get 2.
    assert_close(sixths(&outcome), [1.5, 1.5, 3.0]);
}

/// The shares if the labels of the first flow claim that it sends next to nothing.
fn with_a_liar(edge: &str) -> [f64; 3] {
    let [liar, second, third] = flows([Ip::V4, Ip::V6]);
    sixths(&run_flows(edge, CORE, &[labelled(liar, LabelKind::Rate, 1_000.0), second, third], 5_000))
}

pub fn who_labels_its_own_packets_gains_nothing_behind_an_edge() {
    assert_close(with_a_liar(EDGE), [2.0, 2.0, 2.0]);
}

pub fn who_labels_its_own_packets_gains_all_where_it_is_believed() {
    // Without an edge, which shows that the edge makes the difference in the test above. The other flows have
    // no label, and are dropped.
    let trusting =
        "down.rate = \"100Mbit\"\n[up]\nrate = \"100Mbit\"\nlabels = { reads = true, writes = true }\n";
    let shares = with_a_liar(trusting);
    assert!(shares[0] > 5.9, "{shares:?}");
}

pub fn a_packet_without_room_has_no_label_and_is_dropped_by_the_core() {
    let mut frames = flows([Ip::V4, Ip::V6]);
    // The packet may be fragmented, so its identification is its own; its checksum is wrong, which routers
    // refuse.
    frames[0][20] = 0;
    let outcome = run_flows(EDGE, CORE, &frames, 3_000);
    assert_close(sixths(&outcome).map(|share| share + 1e-9), [1e-9, 3.0, 3.0]);
    let unlabelled = "unlabelled_packets_total{direction=\"up\"} 0\n";
    assert!(
        !outcome.metrics[0].contains(unlabelled) && outcome.metrics[1].contains(unlabelled),
        "{}",
        outcome.metrics[0]
    );
}

pub fn a_label_from_outside_is_not_believed() {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    let mut gateway =
        open("inside = \"near\"\noutside = \"far\"\nup.rate = \"100Mbit\"\ndown.rate = \"100Mbit\"\n");
    let mut a = near.namespace.run(Wire::open).unwrap();
    let mut b = far.namespace.run(Wire::open).unwrap();
    let mut ignored = 0;
    for ip in Ip::BOTH {
        let plain = ip.datagram((1_001, 9), 100);
        for kind in [LabelKind::Rate, LabelKind::Tickets, LabelKind::AckTickets] {
            let mut pass = |from: &mut Wire, to: &mut Wire| {
                from.send(&labelled(plain.clone(), kind, 1.0));
                let until = gateway.now() + Span::from_millis(100);
                gateway.run_until(until, None).unwrap();
                // The label is off and the checksum right, as before the label.
                assert_eq!(to.next(1_000).as_ref(), Some(&plain), "{ip:?} {kind:?}");
            };
            pass(&mut a, &mut b);
            pass(&mut b, &mut a);
            ignored += 1;
        }
    }
    // Other values stay: identification and flow label are the host's.
    let own = udp((1, 2), &[7; 50]);
    a.send(&own);
    gateway.run_until(gateway.now() + Span::from_millis(100), None).unwrap();
    assert_eq!(b.next(1_000), Some(own));
    let text = metrics(&mut gateway);
    for direction in ["up", "down"] {
        let line = format!("labels_ignored_total{{direction=\"{direction}\"}} {ignored}\n");
        assert!(text.contains(&line), "{text}");
    }
}
