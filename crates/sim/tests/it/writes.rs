//! Send buffers: an application whose data have no room stops, and does not make up for it.

use crate::common::{flow, run, throughput};

/// 4 Mb/s of TCP on a link of 2 Mb/s until 10 s, then 0.5 Mb/s; measured from 11 s.
fn film(tcp: &str) -> String {
    format!(
        "stop = 21s, measure_from = 11s
         link wire: a -> b, rate = 2Mbit, delay = 10ms, queue = {{ kind = fifo, limit = 30p }}
         flow film: a -> b, source = {{ kind = cbr, rate = 4Mbit, packet = 1000B, jitter = 0.0 }}, tcp = {tcp}
         [[change]]\nat = \"10s\"\nset = \"flow.film.rate\"\nto = \"0.5Mbit\"\n"
    )
}

#[test]
fn a_blocked_application_skips_writes() {
    let rate_of = |outcome| throughput(&outcome, "film") / 1e6;
    // Without a buffer 2.5 MB wait in the application, for 13 s.
    let unbounded = run(&film("{ profile = linux }"));
    assert_eq!(flow(&unbounded, "film").skipped, 0);
    assert!(rate_of(unbounded) > 1.9);
    let blocked = run(&film("{ profile = linux, send_buffer = 64kB }"));
    let rate = rate_of(blocked);
    assert!((0.5..0.56).contains(&rate), "{rate}");
    // All of it is counted: half of 500 writes a second find no room.
    let whole =
        run(&film("{ profile = linux, send_buffer = 64kB }")
            .replace("measure_from = 11s", "measure_from = 1s"));
    let (skipped, rate) = (flow(&whole, "film").skipped, throughput(&whole, "film") / 1e6 / 20.0);
    assert!((2_000..2_500).contains(&skipped), "{skipped} {rate}");
}

#[test]
fn a_send_buffer_bounds_the_window_of_greedy_flows() {
    let of = |tcp: &str| {
        throughput(
            &run(&format!(
                "stop = 20s, measure_from = 5s
                 link wire: a -> b, rate = 10Mbit, delay = 50ms, queue = {{ kind = fifo, limit = 100p }}
                 flow file: a -> b, tcp = {tcp}"
            )),
            "file",
        ) / 1e6
    };
    // 29 segments of 1448 B in a round trip of 101 ms, with headers.
    let rate = of("{ profile = linux, send_buffer = 42kB }");
    assert!((3.2..3.5).contains(&rate), "{rate}");
    assert!(of("{ profile = linux }") > 9.0);
}

#[test]
fn a_rate_of_zero_ends_a_blocked_write() {
    let silent = film("{ profile = linux, send_buffer = 64kB }").replace("0.5Mbit", "0Mbit");
    assert_eq!(throughput(&run(&silent), "film"), 0.0);
    let again = format!("{silent}[[change]]\nat = \"15s\"\nset = \"flow.film.rate\"\nto = \"1Mbit\"\n");
    let rate = throughput(&run(&again), "film") / 1e6;
    assert!((0.6..0.66).contains(&rate), "{rate}");
}
