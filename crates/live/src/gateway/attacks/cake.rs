//! CAKE on a gateway: the sizes that it charges, and the fields that it reads.

use super::*;

/// Packets with `length` bytes of IP that leave each second, where CAKE with `keys` and 1 Mb/s is saturated.
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
    // Keywords of tc-cake(8), with the bytes charged for packets of 100 and of 40 B of IP.
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

/// Packets of 1000 B that leave each second, of two flows with these codepoints, each of which sends 2 Mb/s
/// into 1 Mb/s.
fn tins(tins: &str, codepoints: [u8; 2]) -> [f64; 2] {
    let mut bench = Bench::new(&format!(
        "down.rate = \"100Mbit\"\n[up]\nrate = \"1Mbit\"\noverhead = \"0B\"\n\
         queue = {{ kind = \"cake\", hosts = \"none\", tins = \"{tins}\" }}\n"
    ));
    for (port, dscp) in [1_001, 1_002].into_iter().zip(codepoints) {
        let mut frame = datagram([inside(1), SERVER], [port, 80], 1_000);
        frame[15] = dscp << 2;
        bench.play(INSIDE, [0, 22_000], 250, move |_| frame.clone());
    }
    bench.run(22_000);
    [1_001, 1_002].map(|port| bench.count(OUTSIDE, port, [2_000, 22_000]) as f64 / 20.0)
}

#[test]
fn frames_have_tins_by_their_codepoints() {
    let near = |found: [f64; 2], due: f64| {
        assert!(
            (found[0] - due).abs() < 2.0 && (found[0] + found[1] - 125.0).abs() < 2.0,
            "{found:?}, not {due}"
        );
    };
    let [le, be, cs6] = [1, 0, 48];
    near(tins("besteffort", [le, be]), 125.0 / 2.0);
    near(tins("diffserv3", [le, be]), 125.0 / 16.0);
    near(tins("diffserv4", [le, be]), 125.0 / 16.0);
    near(tins("diffserv8", [le, be]), 125.0 * (1.0 - 49.0 / 64.0));
    near(tins("precedence", [be, cs6]), 125.0 * (1.0 - 0.875_f64.powi(6)));
}

/// Acknowledgement numbers of the ACKs that leave 0.1 Mb/s in a second, and when the last one left, in ms.
/// 500 ACKs arrive, each number `repeats` times.
fn acknowledged(filter: &str, repeats: u64) -> (Vec<u32>, u64) {
    let mut bench = Bench::new(&format!(
        "down.rate = \"100Mbit\"\n[up]\nrate = \"0.1Mbit\"\noverhead = \"0B\"\nqueue = {{ kind = \"cake\", ack_filter = \"{filter}\", target = \"1s\", interval = \"1s\" }}\n"
    ));
    bench.play(INSIDE, [0, 1_000], 500, move |n| {
        segment([inside(1), SERVER], [1_001, 80], (0x10, 1_000 * (n / repeats) as u32), 40)
    });
    bench.run(5_000);
    let sent = &bench.engine.io_mut().sent;
    let number = |sent: &Sent| frame::parse(&sent.frame).ok()?.segment?.acknowledges;
    (sent.iter().filter_map(number).collect(), sent.last().map_or(0, |sent| sent.at.as_nanos() / 1_000_000))
}

#[test]
fn the_ack_filter_lets_the_last_ack_pass_in_time_and_no_duplicate_go() {
    // 500 ACKs are 160 kb/s.
    let (all, late) = acknowledged("none", 1);
    assert!(all.len() > 400 && late > 1_500, "{} {late}", all.len());
    for filter in ["conservative", "aggressive"] {
        let (some, late) = acknowledged(filter, 1);
        assert!(
            some.len() < 330 && some.is_sorted() && some.last() == Some(&499_000) && late < 1_010,
            "{some:?} {late}"
        );
        // Two numbers come 250 times each, and all copies of the second leave.
        let (copies, _) = acknowledged(filter, 250);
        assert_eq!(copies.iter().filter(|number| **number == 1_000).count(), 250, "{copies:?}");
    }
}
