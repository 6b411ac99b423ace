//! Colours that markers write on packets for the queue of the same gateway.

use apportion_core::units::Span;

use crate::line::{Ip, counts, run};

const PORTS: [u16; 2] = [1_001, 1_002];

/// The share of the first of two flows of 3 Mb/s each on a link of 3 Mb/s, with profiles of 2 and of 0.5 Mb/s
/// in this marker.
fn part(queue: &str, mark: impl Fn(&str) -> String) -> f64 {
    let rule = |port, cir| format!("[[rule]]\nfrom_port = {port}\n{}", mark(cir));
    let edge = format!(
        "inside = \"near\"\noutside = \"m1\"\ndown.rate = \"100Mbit\"\n[up]\nrate = \"3Mbit\"\nqueue = {queue}\n{}{}",
        rule(PORTS[0], "2Mbit"),
        rule(PORTS[1], "500kbit"),
    );
    let core = "inside = \"m2\"\noutside = \"far\"\nup.rate = \"100Mbit\"\ndown.rate = \"100Mbit\"\n";
    let frames = vec![Ip::V4.datagram((PORTS[0], 9), 986), Ip::V6.datagram((PORTS[1], 9), 986)];
    // 1000 B each 2.667 ms.
    let outcome = run(&edge, core, [frames, Vec::new()], Span::from_nanos(8_000_000 / 3), 6_000);
    let [more, less] = counts(&outcome.far, PORTS).map(|count| count as f64);
    more / (more + less)
}

fn two_colours(cir: &str) -> String {
    format!("mark = {{ kind = \"tsw2cm\", cir = \"{cir}\" }}\n")
}

fn three_colours(cir: &str) -> String {
    format!("mark = {{ kind = \"tsw3cm\", cir = \"{cir}\", pir = \"4Mbit\" }}\n")
}

/// Colours and drops are random.
fn assert_close(part: f64, expected: f64) {
    assert!((part - expected).abs() < 0.08, "{part}, not {expected}");
}

const RIO: &str = "{ kind = \"rio\", limit = \"100p\", in_min_th = \"60p\", in_max_th = \"90p\", out_min_th = \"5p\", \
    out_max_th = \"40p\" }";

pub fn what_is_within_a_profile_passes() {
    // 2 and 0.5 Mb/s, and each flow gets half of the rest: 2.25 and 0.75 of 3.
    assert_close(part(RIO, two_colours), 0.75);
}

pub fn yellow_and_red_are_both_out_of_profile_to_rio() {
    assert_close(part(RIO, three_colours), 0.75);
}

pub fn without_a_marker_or_a_queue_that_looks_at_colours_both_have_the_same() {
    assert_close(part(RIO, |_| String::new()), 0.5);
    assert_close(part("\"red\"", two_colours), 0.5);
}
