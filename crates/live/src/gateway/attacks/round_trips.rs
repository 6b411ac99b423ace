//! Round-trip times as the gateway measures them, and hosts that claim long ones.

use super::*;

const SYN: u8 = 1 << 1;
const ACK: u8 = 1 << 4;
const SERVER_PORT: u16 = 443;
const QUEUE: &str = "queue = { kind = \"fifo\", drop = \"lqd\", thresholds = \"rtt\", limit = \"100p\" }\n";

/// A gateway of 1 Mb/s up, whose queue divides its buffer by round-trip times.
fn bench(more: &str) -> Bench {
    Bench::new(&format!("[down]\nrate = \"100Mbit\"\n[up]\nrate = \"1Mbit\"\n{QUEUE}{more}"))
}

/// A segment of the connection from this port of host 1 inside: flags, sequence and acknowledgement number,
/// timestamps, length.
#[derive(Clone, Copy)]
struct Segment {
    flags: u8,
    number: u32,
    acknowledged: u32,
    stamps: Option<[u32; 2]>,
    data: usize,
}

const BARE: Segment = Segment { flags: ACK, number: 0, acknowledged: 0, stamps: None, data: 0 };

impl Segment {
    fn frame(self, ends: [[u8; 4]; 2], ports: [u16; 2]) -> Vec<u8> {
        let mut header = ports.map(u16::to_be_bytes).concat();
        header.extend(self.number.to_be_bytes());
        header.extend(self.acknowledged.to_be_bytes());
        let words = if self.stamps.is_some() { 8 } else { 5 };
        header.extend([words << 4, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        if let Some(stamps) = self.stamps {
            header.extend([1, 1, 8, 10]);
            header.extend(stamps.map(u32::to_be_bytes).concat());
        }
        let length = 20 + header.len() + self.data;
        packet(ends, 6, &header, length)
    }

    fn up(self, port: u16) -> Vec<u8> {
        self.frame([inside(1), SERVER], [port, SERVER_PORT])
    }

    fn down(self, port: u16) -> Vec<u8> {
        self.frame([SERVER, inside(1)], [SERVER_PORT, port])
    }
}

impl Bench {
    /// Sends this frame into `port` at this time, in ms.
    fn once(&mut self, port: u32, at: u64, frame: Vec<u8>) {
        self.play(port, [at, at + 1], 1, move |_| frame.clone());
    }

    /// Opens a connection from this port, whose halves take these times, in ms.
    fn open(&mut self, at: u64, port: u16, [outside, inside]: [u64; 2]) {
        let answer = Segment { flags: SYN | ACK, acknowledged: 1, ..BARE };
        self.once(INSIDE, at, Segment { flags: SYN, ..BARE }.up(port));
        self.once(OUTSIDE, at + outside, answer.down(port));
        self.once(INSIDE, at + outside + inside, Segment { number: 1, acknowledged: 1, ..BARE }.up(port));
    }

    /// Number of flows with a measured round-trip time, and the mean in ms, rounded up because a segment
    /// takes some time to leave.
    fn measured(&self, direction: Direction) -> (usize, u64) {
        let (flows, mean) = self.direction(direction).flows.measured_rtts();
        (flows, mean.as_nanos().div_ceil(1_000_000))
    }
}

#[test]
fn a_handshake_gives_both_directions_the_sum_of_both_halves() {
    let mut bench = bench("");
    bench.open(0, 1, [40, 5]);
    bench.run(44);
    assert_eq!(Direction::BOTH.map(|way| bench.measured(way)), [(0, 0); 2], "one half is no round trip");
    bench.run(50);
    assert_eq!(Direction::BOTH.map(|way| bench.measured(way)), [(1, 45); 2]);
    // Another connection, with three times that round trip.
    bench.open(50, 2, [100, 35]);
    bench.run(300);
    assert_eq!(Direction::BOTH.map(|way| bench.measured(way)), [(2, 90); 2]);
}

#[test]
fn without_a_queue_that_asks_or_the_answers_nothing_is_measured() {
    let mut silent = Bench::new("[down]\nrate = \"100Mbit\"\n[up]\nrate = \"1Mbit\"\nqueue = \"lqd\"\n");
    silent.open(0, 1, [40, 5]);
    silent.run(100);
    let mut one_way = bench("");
    for number in 0..10 {
        let segment = Segment { number, stamps: Some([number, 0]), data: 1, ..BARE };
        one_way.once(INSIDE, 10 * u64::from(number), segment.up(1));
    }
    one_way.run(200);
    for bench in [silent, one_way] {
        assert_eq!(Direction::BOTH.map(|way| bench.measured(way)), [(0, 0); 2]);
    }
}

#[test]
fn what_waits_in_the_gateway_is_no_part_of_a_round_trip_and_what_its_links_add_is() {
    let mut bench = bench("delay = \"7ms\"\n");
    // 10 packets of 1236 B and 14 B take 100 ms at 1 Mb/s; the SYN, of 54 B, leaves behind them and 7 ms later.
    bench.play(INSIDE, [0, 10], 1_000, |_| datagram([inside(9), SERVER], [9, 9], 1_236));
    bench.once(INSIDE, 11, Segment { flags: SYN, ..BARE }.up(1));
    bench.once(OUTSIDE, 107 + 40, Segment { flags: SYN | ACK, acknowledged: 1, ..BARE }.down(1));
    bench.once(INSIDE, 107 + 45, Segment { number: 1, acknowledged: 1, ..BARE }.up(1));
    bench.run(300);
    assert_eq!(bench.measured(Direction::Up), (1, 40 + 5 + 7));
}

#[test]
fn timestamps_measure_a_connection_whose_handshake_was_not_seen() {
    let mut bench = bench("");
    // An upload: data every 50 ms, acknowledged 30 ms later. The next data echo that 20 ms later.
    for number in 0..20 {
        let at = 50 * u64::from(number);
        let data = Segment { number, stamps: Some([50 * number, 50 * number]), data: 1, ..BARE };
        let ack =
            Segment { acknowledged: number + 1, stamps: Some([50 * (number + 1), 50 * number]), ..BARE };
        bench.once(INSIDE, at, data.up(1));
        bench.once(OUTSIDE, at + 30, ack.down(1));
    }
    bench.run(1_100);
    assert_eq!(bench.measured(Direction::Up), (1, 50));
}

#[test]
fn who_is_late_once_has_the_round_trip_of_the_rest() {
    let mut bench = bench("");
    // The server answers the SYN after 400 ms, and data after 20. The sender's half is 5 ms.
    bench.open(0, 1, [400, 5]);
    for number in 1..10 {
        let at = 500 + 50 * u64::from(number);
        bench.once(INSIDE, at, Segment { number, data: 1, ..BARE }.up(1));
        bench.once(OUTSIDE, at + 20, Segment { acknowledged: number + 1, ..BARE }.down(1));
    }
    bench.run(450);
    assert_eq!(bench.measured(Direction::Up), (1, 405));
    bench.run(1_100);
    assert_eq!(bench.measured(Direction::Up), (1, 25));
}

#[test]
fn a_receiver_that_echoes_late_and_acknowledges_in_time_gains_nothing() {
    let mut bench = bench("");
    bench.open(0, 1, [20, 5]);
    // Each echo is 500 ms old; acknowledgements are not.
    for number in 1..40 {
        let at = 100 * u64::from(number);
        let stamp = 100 * number;
        let ack =
            Segment { acknowledged: number + 1, stamps: Some([stamp, stamp.saturating_sub(500)]), ..BARE };
        bench.once(INSIDE, at, Segment { number, stamps: Some([stamp, stamp]), data: 1, ..BARE }.up(1));
        bench.once(OUTSIDE, at + 20, ack.down(1));
    }
    bench.run(4_100);
    assert_eq!(bench.measured(Direction::Up), (1, 25));
}

#[test]
fn a_round_trip_that_nothing_confirms_is_forgotten_after_ten_minutes() {
    let mut bench = bench("");
    bench.open(0, 1, [40, 5]);
    // A keepalive a second without an answer.
    bench.play(INSIDE, [1_000, 700_000], 1, |_| Segment { number: 1, ..BARE }.up(1));
    bench.run(600_000);
    assert_eq!(bench.measured(Direction::Up), (1, 45));
    bench.run(602_000);
    assert_eq!(bench.measured(Direction::Up), (0, 0));
}

#[test]
fn a_number_that_passes_to_another_flow_keeps_no_round_trip() {
    let mut bench =
        Bench::new(&format!("flows = 1\n[down]\nrate = \"100Mbit\"\n[up]\nrate = \"1Mbit\"\n{QUEUE}"));
    bench.open(0, 1, [40, 5]);
    bench.run(100);
    assert_eq!(bench.measured(Direction::Up), (1, 45));
    bench.once(INSIDE, 100, BARE.up(2));
    bench.run(200);
    assert_eq!((bench.measured(Direction::Up), bench.measured(Direction::Down)), ((0, 0), (1, 45)));
}

#[test]
fn a_full_buffer_is_divided_by_what_was_measured_unless_a_rule_says_otherwise() {
    /// Packets that waited of the flows from ports 1 and 2 when both stopped.
    fn waited(more: &str) -> [u64; 2] {
        let mut bench = bench(more);
        bench.open(0, 1, [175, 5]);
        bench.open(0, 2, [15, 5]);
        for port in [1, 2] {
            bench.play(INSIDE, [300, 1_300], 1_000, move |number| {
                Segment { number: 1 + 900 * number as u32, data: 900, ..BARE }.up(port)
            });
        }
        bench.run(4_000);
        [1, 2].map(|port| bench.count(OUTSIDE, port, [1_300, 4_000]))
    }
    // 180 and 20 ms: 90 and 10 of 100 packets.
    let [long, short] = waited("");
    assert!((88..=91).contains(&long) && (9..=12).contains(&short), "{long} and {short}");
    let [long, short] = waited("[[rule]]\nname = \"all\"\nto_port = 443\nrtt = \"20ms\"\n");
    assert!((49..=52).contains(&long) && (49..=52).contains(&short), "{long} and {short}");
    // An aggregate of a rule has many round trips, and none is measured.
    let [one, other] = waited("[[rule]]\nname = \"all\"\nto_port = 443\nflows = \"one\"\n");
    assert!(one + other >= 99);
}
