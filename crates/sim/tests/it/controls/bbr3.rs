//! BBR version 3: the differences from version 1 that draft-ietf-ccwg-bbr-05 states.

use apportion_runtime::outcome::Outcome;

use super::{flows, run, windows};
use crate::common::{flow, link, throughput};

const ONE: &str = "tcp = \"bbr\"";
const THREE: &str = "tcp = \"bbr3\"";

/// 20 Mb/s and 40 ms, which hold 66.7 packets of 1500 bytes.
const RATE: f64 = 20e6;
const BDP: f64 = 200.0 / 3.0;

fn path(buffer: f64) -> String {
    let limit = (buffer * BDP).round();
    format!("rate = \"20Mbit\"\ndelay = \"20ms\"\nqueue = {{ kind = \"fifo\", limit = \"{limit}p\" }}")
}

/// Returns the share of retransmissions among a flow's segments of 1448 bytes, measured and before.
fn lost(outcome: &Outcome, names: &[&str], stop: f64) -> f64 {
    let again: u64 = names.iter().map(|name| flow(outcome, name).retransmits.unwrap()).sum();
    let rate: f64 = names.iter().map(|name| throughput(outcome, name)).sum();
    again as f64 * 12_000.0 / (rate * stop)
}

#[test]
fn one_flow_fills_the_link_and_halves_what_it_has_in_the_network_each_five_seconds() {
    let outcome = run(&path(20.0), 5, 45, &flows("b", THREE));
    let (wire, windows) = (link(&outcome, "wire"), windows(&outcome, "b", 5));
    let dips = windows.windows(2).filter(|pair| pair[0] > 0.6 * BDP && pair[1] <= 0.6 * BDP).count();
    let least = windows.iter().copied().fold(f64::INFINITY, f64::min);
    let seen = format!("{}, {} packets, {dips} dips to {least}", wire.utilisation, wire.queue_mean);
    // Section 5.3.4.2: each costs at most half of the rate for 200 ms and a round trip or two.
    assert!(wire.utilisation > 0.96, "{seen}");
    assert!((7..=8).contains(&dips) && (least - BDP / 2.0).abs() < 2.0, "{seen}");
    assert_eq!(flow(&outcome, "b").retransmits, Some(0), "{seen}");
}

#[test]
fn a_buffer_of_half_the_path_loses_less_than_a_fiftieth_where_version_one_loses_far_more() {
    let seen = |tcp: &str| {
        let outcome = run(&path(0.5), 0, 60, &(flows("a", tcp) + &flows("b", tcp)));
        (lost(&outcome, &["a", "b"], 60.0), link(&outcome, "wire").utilisation)
    };
    let (one, three) = (seen(ONE), seen(THREE));
    let both = format!("{one:?} and {three:?}");
    assert!(three.0 < 0.02 && one.0 > 3.0 * three.0 && three.1 > 0.9, "{both}");
}

#[test]
fn what_cubic_has_beside_it_hardly_depends_on_the_buffer_and_beside_version_one_it_does() {
    let seen = |tcp: &str, buffer: f64| {
        let cubic = flows("cubic", "tcp = \"cubic\"");
        throughput(&run(&path(buffer), 20, 100, &(cubic + &flows("b", tcp))), "cubic") / RATE
    };
    let all: Vec<_> = [1.0, 2.0, 4.0].map(|buffer| (buffer, seen(ONE, buffer), seen(THREE, buffer))).into();
    // With 4 BDP, version 1 leaves CUBIC more than half: then its window of 2 BDP is the smaller one.
    let spread = |shares: Vec<f64>| {
        let most = shares.iter().copied().fold(0.0, f64::max);
        most - shares.iter().copied().fold(1.0, f64::min)
    };
    let ones = spread(all.iter().map(|&(_, one, _)| one).collect());
    let threes = spread(all.iter().map(|&(_, _, three)| three).collect());
    assert!(ones > 3.0 * threes && all.iter().all(|&(_, _, three)| three > 1.0 / 3.0), "{all:?}");
    assert!(all[0].2 > 2.0 * all[0].1, "{all:?}");
}

#[test]
fn it_survives_an_outage_a_tiny_buffer_a_long_path_and_short_transfers() {
    let whole = |link: &str, flow: &str| throughput(&run(link, 0, 60, &flows("b", flow)), "b");
    let tiny = whole(&path(0.03), THREE);
    let far =
        whole("rate = \"20Mbit\"\ndelay = \"300ms\"\nqueue = { kind = \"fifo\", limit = \"500p\" }", THREE);
    let one = whole(&path(1.0), "tcp = { algorithm = \"bbr3\", window = \"1p\", initial_window = \"1p\" }");
    let change =
        |at: u64, to: &str| format!("[[change]]\nat = \"{at}s\"\nset = \"link.wire.rate\"\nto = \"{to}\"\n");
    let change = change(10, "20kbit") + &change(15, "20Mbit");
    let outage = throughput(&run(&path(1.0), 30, 60, &(flows("b", THREE) + &change)), "b");
    let file = run(
        &path(1.0),
        0,
        60,
        &flows("b", &format!("{THREE}\nsource = {{ kind = \"file\", size = \"1MB\" }}")),
    );
    let sent = throughput(&file, "b") * 60.0 / 8e6;
    let all = format!("{tiny} {far} {one} {outage} {sent}");
    assert!(tiny > 0.2 * RATE && far > 0.5 * RATE && outage > 0.8 * RATE, "{all}");
    // A segment per round trip, plus the time for which its ACK is held back.
    assert!(one > 100e3 && (1.0..1.1).contains(&sent), "{all}");
}
