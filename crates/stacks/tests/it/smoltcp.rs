//! smoltcp in simulated time: windows limit it, files arrive whole, and it repeats byte by byte.

use crate::common::{captured, mbps, outcome, text};

#[test]
fn its_window_and_the_round_trip_limit_it() {
    // Whole segments of a window in 40 ms and the time of a packet; acknowledgments wait for up to 10 ms.
    for (buffer, least, most) in [("16kB", 2.5, 3.2), ("65535B", 9.0, 13.2), ("1MB", 12.0, 19.5)] {
        let keys = format!("transport = {{ kind = \"smoltcp\", buffer = \"{buffer}\" }}");
        let outcome = outcome(&text("queue = { kind = \"fifo\", limit = \"1000p\" }", &[&keys]));
        let rate = mbps(&outcome.flows[0]);
        assert!(rate > least && rate < most, "{buffer}: {rate}");
    }
}

#[test]
fn files_arrive_whole_through_losses() {
    let keys = "transport = \"smoltcp\"\nconnections = 5\nsource = { kind = \"file\", size = \"300kB\" }";
    let outcome = outcome(&text("loss = \"1%\"", &[keys]));
    let flow = &outcome.flows[0];
    assert_eq!((flow.completions.len(), flow.goodput.unwrap().get()), (5, 1_500_000));
    assert_eq!(flow.retransmits, None, "smoltcp does not count them");
}

#[test]
fn a_seed_gives_the_same_packets() {
    let text =
        text("queue = \"codel\"\nloss = \"0.5%\"", &["transport = \"smoltcp\"", "transport = \"quinn\""]);
    let first = captured(&text, 1);
    assert!(first == captured(&text, 1));
    assert!(first.1 != captured(&text, 2).1);
}
