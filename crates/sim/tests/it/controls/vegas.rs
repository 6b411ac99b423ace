//! Vegas: its equilibrium by Brakmo and Peterson 1995, section III.B.

use super::{flows, run, windows};
use crate::common::{flow, link, throughput};

const TCP: &str = "tcp = { profile = \"linux\", algorithm = \"vegas\", delayed_ack = \"off\" }";

fn fifo(rate: u64, rtt_ms: u64, limit: u64) -> String {
    format!(
        "rate = \"{rate}Mbit\"\ndelay = \"{}us\"\nqueue = {{ kind = \"fifo\", limit = \"{limit}p\" }}",
        500 * rtt_ms
    )
}

#[test]
fn each_flow_keeps_two_to_four_packets_in_the_queue_and_the_link_is_full() {
    for (rate, rtt, n) in [(10, 40, 1), (50, 20, 1), (20, 60, 3), (100, 30, 5_u64)] {
        // Reno would overflow a buffer of 40 packets repeatedly.
        let start = |i| flows(&format!("v{i}"), &format!("{TCP}\nstart = \"{}ms\"", 1 + 7 * i));
        let outcome = run(&fifo(rate, rtt, 40), 20, 60, &(0..n).map(start).collect::<String>());
        let wire = link(&outcome, "wire");
        // One of the packets is in transmission, not in the queue.
        let (least, most) = ((2 * n - 1) as f64, (4 * n) as f64);
        let place = format!("{n} flows, {rate} Mb/s: {} packets", wire.queue_mean);
        assert!((least..=most).contains(&wire.queue_mean), "{place}");
        assert!(wire.utilisation > 0.999, "{place}");
        for i in 0..n {
            let name = format!("v{i}");
            assert_eq!(flow(&outcome, &name).retransmits, Some(0), "{place}");
            // Two to four packets of each flow in the queue: shares within a factor of two of each other.
            let share = throughput(&outcome, &name) * n as f64 / (rate * 1_000_000) as f64;
            assert!((0.5..=2.0).contains(&share), "{place}, {share}");
            // In equilibrium the window does not change.
            let windows = windows(&outcome, &name, 20);
            assert!(windows.iter().all(|&w| w == windows[0]), "{place}");
        }
    }
}

#[test]
fn it_grows_from_a_window_of_one_segment() {
    let tcp = TCP.replace("delayed_ack", "initial_window = \"1p\", delayed_ack");
    let outcome = run(&fifo(20, 20, 100), 10, 30, &flows("v", &tcp));
    assert!(link(&outcome, "wire").utilisation > 0.999, "{}", link(&outcome, "wire").utilisation);
}

#[test]
fn it_yields_to_reno_in_a_deep_queue() {
    // Reno fills the queue, to which Vegas responds by slowing down (Mo et al., "Analysis and comparison of
    // TCP Reno and Vegas", INFOCOM 1999).
    let reno = flows("r", "tcp = { profile = \"linux\", algorithm = \"sack\" }");
    let outcome = run(&fifo(20, 40, 150), 20, 80, &(flows("v", TCP) + &reno));
    let (vegas, reno) = (throughput(&outcome, "v"), throughput(&outcome, "r"));
    assert!(vegas < 0.25 * reno, "{vegas} and {reno}");
}
