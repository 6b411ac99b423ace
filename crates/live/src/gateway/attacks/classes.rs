//! A host that marks its flood as a call, so that a rule makes it real-rate.

use super::*;

/// DSCP 46, expedited forwarding.
const EF: u8 = 46 << 2;

fn marked(mut frame: Vec<u8>) -> Vec<u8> {
    frame[15] = EF;
    frame
}

/// Shares in Mb/s of a flood of 8 Mb/s and a call of 100 kb/s that are marked EF, and of 3 Mb/s without a
/// mark, on 4 Mb/s.
fn shares(queue: &str, rule: &str) -> [f64; 3] {
    let mut bench = Bench::new(&format!(
        "down.rate = \"100Mbit\"\n[up]\nrate = \"4Mbit\"\noverhead = \"0B\"\nqueue = {queue}\n\
         [[rule]]\nname = \"calls\"\nclass = \"real_rate\"\n{rule}\n"
    ));
    let flows = [(1, 1_001, 1_000, 1_000, true), (2, 1_002, 62, 200, true), (3, 1_003, 375, 1_000, false)];
    for (host, port, per_second, length, is_marked) in flows {
        let frame = datagram([inside(host), SERVER], [port, 80], length);
        let frame = if is_marked { marked(frame) } else { frame };
        bench.play(INSIDE, [u64::from(host), 12_000], per_second, move |_| frame.clone());
    }
    bench.run(12_000);
    flows.map(|(_, port, _, length, _)| {
        bench.count(OUTSIDE, port, [2_000, 12_000]) as f64 * length as f64 * 8.0 / 10e6
    })
}

#[test]
fn who_marks_a_flood_as_a_call_has_all_but_the_greedy_minimum() {
    let [flood, call, other] = shares("\"ramp\"", "dscp = \"ef\"");
    assert!(flood > 3.6 && (other / 0.2 - 1.0).abs() < 0.1, "{flood} {other}");
    // In an overload a flow that wants less than the level gets it.
    assert!(call > 0.096, "{call}");
}

#[test]
fn an_address_in_the_rule_or_a_larger_minimum_keeps_a_flood_off_the_others() {
    // The flood is a greedy flow like any other: half of what the call leaves.
    let [flood, call, other] = shares("\"ramp\"", "dscp = \"ef\"\nfrom = \"10.0.0.2\"");
    assert!((other / flood - 1.0).abs() < 0.05 && call > 0.096, "{flood} {call} {other}");
    let [_, call, other] = shares("{ kind = \"ramp\", greedy_minimum = 0.4 }", "dscp = \"ef\"");
    assert!((other / 1.6 - 1.0).abs() < 0.05 && call > 0.096, "{call} {other}");
}
