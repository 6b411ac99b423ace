//! LEDBAT: its target delay, and the flows to which it yields (RFC 6817 sections 2.1 and 2.4).

use super::{flows, run};
use crate::common::{flow, link, throughput};

const TCP: &str = "tcp = \"ledbat\"";
const RENO: &str = "tcp = { profile = \"linux\", algorithm = \"sack\" }";

fn fifo(rate: u64, rtt_ms: u64, buffer_ms: u64) -> String {
    format!(
        "rate = \"{rate}Mbit\"\ndelay = \"{}us\"\nqueue = {{ kind = \"fifo\", limit = \"{}kB\" }}",
        500 * rtt_ms,
        rate * buffer_ms / 8
    )
}

#[test]
fn alone_it_queues_for_its_target_whatever_the_path() {
    for (rate, rtt, from) in [(10, 40, 60), (5, 150, 80), (30, 10, 200)] {
        let outcome = run(&fifo(rate, rtt, 500), from, from + 40, &flows("l", TCP));
        let wire = link(&outcome, "wire");
        let delay = 1e3 * wire.queue_delay.mean.as_secs_f64();
        // Delays are whole milliseconds, and the base delay includes a round of the first packets.
        assert!((95.0..=101.0).contains(&delay), "{rate} Mb/s, {rtt} ms: {delay} ms");
        assert!(wire.utilisation > 0.999);
        assert_eq!(flow(&outcome, "l").retransmits, Some(0));
    }
}

#[test]
fn it_comes_near_its_target_as_the_equation_says() {
    // The window w grows by (TARGET - q) / TARGET per round trip, and the part beyond the BDP is queued: q =
    // w / C - RTT. Integrated in steps of 10 ms.
    let outcome = run(&fifo(50, 20, 500), 0, 60, &flows("l", TCP));
    let backlog = &link(&outcome, "wire").backlog;
    let (c, base) = (50e6 / 12e3, 0.02);
    let (mut w, mut expected) = (10.0_f64, Vec::new());
    for _ in 0..6_000 {
        let q = (w / c - base).max(0.0);
        expected.push(q * c);
        w += (1.0 - q / 0.1) * 0.01 / (q + base);
    }
    for at in [1_000, 2_000, 4_000, 5_900] {
        let (seen, expected) = (backlog[at] as f64, expected[at]);
        assert!((seen / expected - 1.0).abs() < 0.1, "{at}: {seen} against {expected} packets");
    }
}

#[test]
fn it_leaves_the_link_to_reno_and_takes_what_reno_leaves() {
    // A queue of 300 ms, from which Reno halves its window when it is full: above the target most of the
    // time.
    let both = run(&fifo(20, 40, 300), 30, 120, &(flows("l", TCP) + &flows("r", RENO)));
    let (ledbat, reno) = (throughput(&both, "l"), throughput(&both, "r"));
    assert!(reno > 19e6 && ledbat < 0.05 * reno, "{ledbat} and {reno}");
    // Reno sends until 30 s; then LEDBAT has the whole link.
    let reno = flows("r", &format!("{RENO}\nstop = \"30s\""));
    let after = run(&fifo(20, 40, 300), 60, 100, &(flows("l", TCP) + &reno));
    assert!(throughput(&after, "l") > 19.9e6, "{}", throughput(&after, "l"));
}
