//! CAKE on a gateway: what it charges frames.

use super::*;

/// Packets of `length` bytes of IP that leave each second where 1 Mb/s of CAKE with `keys` is full.
fn per_second(length: usize, direction: &str, keys: &str) -> f64 {
    let mut bench = Bench::new(&format!(
        "down.rate = \"100Mbit\"\n[up]\nrate = \"100Mbit\"\n{direction}\n\
         queue = {{ kind = \"cake\", bandwidth = \"1Mbit\", {keys} }}\n"
    ));
    let frame = datagram([inside(1), SERVER], [1_001, 80], length);
    bench.play(INSIDE, [0, 12_000], 4_000, move |_| frame.clone());
    bench.run(12_000);
    bench.count(OUTSIDE, 1_001, [2_000, 12_000]) as f64 / 10.0
}

#[test]
fn a_packet_is_charged_as_by_the_overheads_of_tc_cake() {
    // Keywords of tc-cake(8), with what packets of 100 and of 40 B of IP take.
    for (keyword, keys, taken) in [
        ("raw", "hosts = \"none\"", [114, 54]),
        ("ethernet", "overhead = \"38B\", mpu = \"84B\"", [138, 84]),
        ("docsis", "overhead = \"18B\", mpu = \"64B\"", [118, 64]),
        ("pppoe-ptm", "overhead = \"30B\", framing = \"ptm\"", [133, 72]),
        ("bridged-ptm", "overhead = \"22B\", framing = \"ptm\"", [124, 63]),
        ("conservative", "overhead = \"48B\", framing = \"atm\"", [4 * 53, 2 * 53]),
        ("pppoe-llcsnap", "overhead = \"40B\", framing = \"atm\"", [3 * 53, 2 * 53]),
        ("bridged-vcmux", "overhead = \"24B\", framing = \"atm\"", [3 * 53, 2 * 53]),
        ("ipoa-vcmux", "overhead = \"8B\", framing = \"atm\"", [3 * 53, 53]),
    ] {
        for (length, taken) in [100, 40].into_iter().zip(taken) {
            let found = per_second(length, "", keys);
            let due = 1e6 / 8.0 / f64::from(taken);
            assert!((found - due).abs() <= 0.2, "{keyword} {length}: {found}, not {due}");
        }
    }
}

#[test]
fn the_overhead_of_cake_stands_in_place_of_the_direction_s() {
    for direction in ["overhead = \"0B\"", "overhead = \"22B\""] {
        let found = per_second(100, direction, "overhead = \"38B\"");
        assert!((found - 1e6 / 8.0 / 138.0).abs() <= 0.2, "{direction}: {found}");
    }
}
