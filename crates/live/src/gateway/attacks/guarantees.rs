//! Guarantees that an attacker reserves without using them, against a call.

use apportion_core::units::Rate;

use super::*;
use crate::gateway::guarantees::Exceeded;

/// 4 Mb/s up, with a guarantee of 100 kb/s for each call.
const CALLS: &str = "down.rate = \"100Mbit\"\n[up]\nrate = \"4Mbit\"\nqueue = \"mcsfq\"\n\
    [[rule]]\nname = \"calls\"\nto_port = 5004\nguarantee = \"100kbit\"\n";
const CALL: u16 = 4_000;
const CALL_RATE: u64 = 50;
const G: Rate = Rate::from_kbit(100);
const ACK: u8 = 1 << 4;
const SYN: u8 = 1 << 1;
const RST: u8 = 1 << 2;

/// A gateway whose link up gets twice its rate from other flows of 50 kb/s each: without a guarantee a call
/// loses most of its packets.
fn congested(more: &str) -> Bench {
    congested_with(&format!("{CALLS}{more}"))
}

fn congested_with(config: &str) -> Bench {
    let mut bench = Bench::new(config);
    bench.play(INSIDE, [0, 60_000], 1_000, |number| {
        datagram([inside(9), SERVER], [10_000 + (number % 160) as u16, 80], 986)
    });
    bench
}

/// Sends a call of 85.6 kb/s.
fn call(bench: &mut Bench, times: [u64; 2]) {
    bench.play(INSIDE, times, CALL_RATE, |_| datagram([inside(1), SERVER], [CALL, 5_004], 200));
}

/// The loss of the call's packets between these times, in percent.
fn loss(bench: &mut Bench, [start, end]: [u64; 2]) -> f64 {
    let sent = (end - start) * CALL_RATE / 1_000;
    100.0 - bench.count(OUTSIDE, CALL, [start, end]) as f64 * 100.0 / sent as f64
}

fn reserved(bench: &Bench) -> Rate {
    bench.direction(Direction::Up).flows.guarantees().reserved()
}

fn refused(bench: &Bench, limit: Exceeded) -> u64 {
    bench.direction(Direction::Up).flows.guarantees().counts().refused[limit as usize]
}

#[test]
fn a_call_without_a_guarantee_loses_most_of_its_packets() {
    // Shows that the guarantee makes the difference in the other tests.
    let mut bench = congested("direction = \"down\"\n");
    call(&mut bench, [1_000, 11_000]);
    bench.run(11_000);
    let loss = loss(&mut bench, [3_000, 11_000]);
    assert!(loss > 60.0, "{loss} %");
}

#[test]
fn a_call_has_its_guarantee_also_where_the_part_of_its_customer_is_less() {
    let loss = |guarantee: &str| {
        let rules = CALLS.replace("mcsfq", "hcsfq").replace("guarantee = \"100kbit\"", guarantee);
        let mut bench = congested_with(&(rules + "customer = \"home\"\n[customer.home]\nweight = 0.01\n"));
        call(&mut bench, [1_000, 21_000]);
        bench.run(21_000);
        loss(&mut bench, [2_100, 21_000])
    };
    // A hundredth of 4 Mb/s is 40 kb/s, half of what the call needs.
    let (with, without) = (loss("guarantee = \"100kbit\""), loss("weight = 1"));
    assert!(with < 1.0 && without > 10.0, "{with} and {without} %");
}

#[test]
fn forged_datagrams_reserve_nothing() {
    let mut bench = congested("");
    // As many flows as there are guarantees, one each.
    bench.play(INSIDE, [0, 400], 100, |number| {
        datagram([inside(100 + number as u16), SERVER], [1, 5_004], 200)
    });
    call(&mut bench, [1_000, 21_000]);
    bench.run(1_000);
    assert_eq!(reserved(&bench), Rate::ZERO);
    bench.run(21_000);
    assert_eq!(reserved(&bench), G);
    let loss = loss(&mut bench, [2_100, 21_000]);
    assert!(loss < 1.0, "{loss} %");
}

#[test]
fn a_thousand_forged_packets_a_second_cost_a_call_nothing() {
    for length in [60, 333, 1_400] {
        let mut bench = congested("");
        call(&mut bench, [0, 20_000]);
        // Each packet from another host and port, from the third second on.
        bench.play(INSIDE, [3_000, 20_000], 1_000, move |number| {
            let host = inside(0x8000 | (number * 7_919) as u16);
            datagram([host, SERVER], [(number % 60_000) as u16, 5_004], length)
        });
        bench.run(20_000);
        assert_eq!(reserved(&bench), G, "of {length} B");
        let loss = loss(&mut bench, [1_100, 20_000]);
        assert!(loss < 1.0, "{loss} % at {length} B");
    }
}

/// A call and forty flows of `hosts` inside hosts that send twice the guarantee each.
fn with_senders(more: &str, hosts: u64) -> Bench {
    let mut bench = congested(more);
    call(&mut bench, [0, 20_000]);
    bench.play(INSIDE, [3_000, 20_000], 1_000, move |number| {
        let flow = number % 40;
        datagram([inside(100 + (flow % hosts) as u16), SERVER], [1 + flow as u16, 5_004], 986)
    });
    bench.run(20_000);
    bench
}

#[test]
fn who_sends_long_enough_takes_no_guarantee_from_its_holder() {
    let mut bench = with_senders("", 40);
    // All 40 guarantees fit except that of the call.
    assert_eq!((reserved(&bench), refused(&bench, Exceeded::Rate)), (Rate::from_mbit(4), 1));
    let loss = loss(&mut bench, [1_100, 20_000]);
    assert!(loss < 1.0, "{loss} %");
}

#[test]
fn one_host_and_one_rule_have_limits() {
    let bench = with_senders("", 1);
    assert_eq!((reserved(&bench), refused(&bench, Exceeded::Host)), (Rate::from_kbit(500), 36));
    let bench = with_senders("guarantee_limit_per_host = \"150kbit\"\n", 4);
    assert_eq!((reserved(&bench), refused(&bench, Exceeded::Host)), (Rate::from_kbit(500), 36));
    let bench = with_senders("guarantee_limit = \"1Mbit\"\n", 40);
    assert_eq!((reserved(&bench), refused(&bench, Exceeded::Rule)), (Rate::from_mbit(1), 31));
}

#[test]
fn a_network_has_one_guarantee_whichever_of_its_hosts_sends() {
    let mut bench = congested("flows = \"address/24\"\nguarantee_limit = \"200kbit\"\n");
    let mut play = |host: u16, times| {
        bench.play(INSIDE, times, CALL_RATE, move |_| datagram([inside(host), SERVER], [CALL, 5_004], 200));
    };
    // Host 1 hands over to host 2 of its network; two other networks want a guarantee each.
    play(0x0101, [0, 3_000]);
    play(0x0102, [3_000, 9_000]);
    play(0x0201, [4_000, 9_000]);
    play(0x0301, [4_500, 9_000]);
    bench.run(3_990);
    assert_eq!(reserved(&bench), G);
    bench.run(9_000);
    assert_eq!((reserved(&bench), refused(&bench, Exceeded::Rule)), (Rate::from_kbit(200), 1));
    let counts = bench.direction(Direction::Up).flows.guarantees().counts();
    assert_eq!((counts.unused, refused(&bench, Exceeded::Host)), (0, 0));
}

#[test]
fn silence_gives_a_guarantee_back_within_two_seconds_and_another_flow_gets_it() {
    let mut bench = congested("guarantee_limit = \"100kbit\"\n");
    call(&mut bench, [0, 5_000]);
    let other = |_| datagram([inside(2), SERVER], [CALL + 1, 5_004], 200);
    bench.play(INSIDE, [500, 12_000], CALL_RATE, other);
    bench.run(4_990);
    assert_eq!((reserved(&bench), refused(&bench, Exceeded::Rule)), (G, 1));
    let guarantees = |bench: &Bench| bench.direction(Direction::Up).flows.guarantees().counts();
    bench.run(6_800);
    assert_eq!(guarantees(&bench).unused, 0);
    bench.run(7_000);
    assert_eq!(guarantees(&bench).unused, 1);
    // The other flow tries again every second.
    bench.run(12_000);
    let kept = bench.count(OUTSIDE, CALL + 1, [8_100, 12_000]);
    assert_eq!(reserved(&bench), G);
    assert!(kept >= 193, "{kept} of 195");
}

#[test]
fn who_uses_less_than_a_quarter_gives_a_guarantee_back() {
    let mut bench = Bench::new(CALLS);
    call(&mut bench, [0, 3_000]);
    // 214 bytes ten times a second: 17 kb/s.
    bench.play(INSIDE, [3_000, 9_000], 10, |_| datagram([inside(1), SERVER], [CALL, 5_004], 200));
    bench.run(3_000);
    assert_eq!(reserved(&bench), G);
    bench.run(9_000);
    assert_eq!(reserved(&bench), Rate::ZERO);
}

/// A connection that sends 100 bytes every 200 ms, less than a tenth of its guarantee, and the segments of
/// the other end.
fn connection(flags: u8, step: u32) -> Bench {
    let mut bench = Bench::new(CALLS);
    let (up, down) = ([inside(1), SERVER], [SERVER, inside(1)]);
    bench.play(INSIDE, [0, 6_000], 5, move |_| segment(up, [CALL, 5_004], (ACK, 1), 140));
    bench.play(OUTSIDE, [100, 6_000], 5, move |number| {
        segment(down, [5_004, CALL], (flags, (u32::MAX - 300).wrapping_add(step * number as u32)), 40)
    });
    bench.run(6_000);
    bench
}

#[test]
fn a_squeezed_connection_earns_its_guarantee_by_acknowledgements() {
    assert_eq!(reserved(&connection(ACK, 100)), G);
    assert_eq!(reserved(&connection(ACK, 0)), Rate::ZERO, "nothing new");
    // Hosts answer unexpected segments so.
    assert_eq!(reserved(&connection(ACK | RST, 100)), Rate::ZERO);
    assert_eq!(reserved(&connection(ACK | SYN, 100)), Rate::ZERO);
}
