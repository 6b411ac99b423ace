//! The cases of floods.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../gateway/place.rs"]
mod place;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_linux::host::INTERFACE;
use apportion_linux::netlink::Netlink;
use apportion_linux::pool::{HEAD, Pool};
use apportion_linux::port::{Port, Received};
use serde_json::Value;

use apportion_testing::processes::{self, Case, cases, judge_by_time};
use apportion_testing::skip;
use place::{Place, get, place};

/// A program of its own: tests that run at the same time would be disturbed.
const CASES: &[Case] = cases! {
    tests: a_connection_keeps_its_part;
};

pub fn main() -> ExitCode {
    processes::main(CASES, &[])
}

/// Neighbour of the host near, which floods, and the server of both.
const FLOODER: [u8; 4] = [10, 0, 0, 3];
const SERVER: [u8; 4] = [10, 0, 0, 2];

/// Packet rate that a gateway forwards on any machine, also without optimisation; packets/s.
const MOVABLE: u64 = 50_000;

/// A flood from the link of the host near.
#[derive(Clone, Copy, Debug)]
struct Flood {
    per_second: u64,
    /// Number of pairs of source and destination port, taken in a pseudo-random order.
    tuples: u32,
    /// Whether each packet has a new source address.
    forges: bool,
}

/// Writes the `number`th UDP frame of the flood, 60 bytes.
fn write_frame(bytes: &mut [u8], flood: Flood, number: u64) {
    // Multiplication by an odd number is a bijection of 32 bits.
    let random = ((number % u64::from(flood.tuples)) as u32).wrapping_mul(0x9e37_79b1);
    let source = if flood.forges { [10, 1, (number >> 8) as u8, number as u8] } else { FLOODER };
    bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 8, 0]);
    let ip = &mut bytes[14..60];
    ip[..12].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0, 0]);
    ip[12..16].copy_from_slice(&source);
    ip[16..20].copy_from_slice(&SERVER);
    let sum: u32 = ip[..20].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    ip[10..12].copy_from_slice(&(!((sum & 0xffff) as u16 + (sum >> 16) as u16)).to_be_bytes());
    ip[20..24].copy_from_slice(&random.to_be_bytes());
    ip[24..28].copy_from_slice(&[0, 26, 0, 0]);
}

/// Floods until `stop` is set. Returns the number of packets.
fn pour(flood: Flood, stop: &AtomicBool) -> u64 {
    const LENGTH: usize = 60;
    let mut port = Port::open(Netlink::open().unwrap().index_of(INTERFACE).unwrap()).unwrap();
    let mut pool = Pool::new(256, 1_522);
    let frames: Vec<_> = (0..64)
        .map(|_| Received { buffer: pool.take(0).unwrap(), start: HEAD as u8, length: LENGTH as u16 })
        .collect();
    let (clock, mut sent) = (Clock::start(), 0_u64);
    while !stop.load(Ordering::Relaxed) {
        let due = (u128::from(flood.per_second) * u128::from(clock.now().as_nanos()) / 1_000_000_000) as u64;
        if due < sent + 64 {
            pause(Span::from_micros(200));
            continue;
        }
        for (number, frame) in (sent..).zip(&frames) {
            let buffer = pool.bytes_mut(frame.buffer);
            buffer[..HEAD].fill(0);
            write_frame(&mut buffer[HEAD..HEAD + LENGTH], flood, number);
        }
        port.send(&mut pool, &frames).unwrap();
        sent += 64;
    }
    sent
}

/// Connects the host near to the server. Returns sender and receiver.
fn connect(place: &Place) -> (TcpStream, TcpStream) {
    let [near, far] = &place.hosts;
    let server = SocketAddr::from((SERVER, 5_001));
    let listener = far.namespace.run(|| TcpListener::bind(server).unwrap()).unwrap();
    let connect = || TcpStream::connect_timeout(&server, Duration::from_secs(10)).unwrap();
    let sender = near.namespace.run(connect).unwrap();
    sender.set_nonblocking(true).unwrap();
    let (receiver, _) = listener.accept().unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    (sender, receiver)
}

/// Goodput of the connection over `seconds`; bits/s.
fn transfer((sender, receiver): &mut (TcpStream, TcpStream), seconds: u64) -> f64 {
    let (clock, block) = (Clock::start(), vec![0; 1 << 14]);
    let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
    while clock.now() < Time::from_secs(seconds) {
        // Fill the buffer.
        while sender.write(&block).is_ok() {}
        bytes += receiver.read(&mut buffer).unwrap_or(0) as u64;
    }
    8.0 * bytes as f64 / seconds as f64
}

/// Share of a link of `mbit` Mb/s that a connection gets during a flood. None if other programs kept the
/// gateway from a core three times: the kernel lost frames of a flood, or the gateway shed more than one in
/// twenty at a rate that a core can forward.
fn part_during(place: &Place, mbit: u64, flood: Flood) -> Option<f64> {
    let is_valid = |run: &Run| run.missed == 0 && (flood.per_second > MOVABLE || 20 * run.shed < run.poured);
    (0..3).map(|_| try_flood(place, mbit, flood)).find(is_valid).map(|run| run.part)
}

/// Results of a flood, in packets.
struct Run {
    /// Share of the link that the connection got.
    part: f64,
    poured: u64,
    shed: u64,
    missed: u64,
}

fn try_flood(place: &Place, mbit: u64, flood: Flood) -> Run {
    let gateway = place.start(&place.write(&format!(
        "inside = \"near\"\noutside = \"far\"\nmetrics = \"127.0.0.1:9617\"\ndown.rate = \"{mbit}Mbit\"\n\
         [up]\nrate = \"{mbit}Mbit\"\nqueue = {{ kind = \"fq_codel\", isolate = \"both\" }}\n"
    )));
    let mut connection = connect(place);
    transfer(&mut connection, 1);
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let flooder = place.hosts[0].namespace.spawn("flooder", move || pour(flood, &stopped)).unwrap();
    // The slow start is not measured.
    transfer(&mut connection, 1);
    let rate = transfer(&mut connection, 3);
    stop.store(true, Ordering::Relaxed);
    let poured = flooder.join().unwrap();
    let answer = get("/stats.json");
    let stats: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let shed = stats["directions"]["up"]["shed_packets"].as_u64().unwrap();
    let missed = stats["interfaces"]["near"]["missed_frames"].as_u64().unwrap();
    let part = rate / (mbit * 1_000_000) as f64;
    println!("{mbit} Mb/s, {flood:?}: {part:.3} of the link, {poured} poured, {shed} shed, {missed} missed");
    gateway.stop();
    Run { part, poured, shed, missed }
}

mod tests {
    use super::*;

    pub fn a_connection_keeps_its_part() {
        // Up to nine floods of six seconds fit within the limit of a case.
        let place = place();
        let by_the_clock = skip::unless_judged_by_the_clock();
        judge_by_time();
        let flood = Flood { per_second: 40_000, tuples: 65_536, forges: false };
        // The connection of one host to the server of both, against 65536 tuples of the other host and
        // against forged hosts.
        for flood in [flood, Flood { forges: true, ..flood }] {
            let part = part_during(&place, 18, flood);
            // The entitlement is half; without fairness between hosts next to nothing is left. A gateway that
            // missed frames or shed load three times is not judged, except where tests are judged by the
            // clock: it has a core there.
            assert!(part.map_or(!by_the_clock, |part| part >= 0.45), "{flood:?}: {part:?}");
        }
        // As fast as a core can send, which may be more than the gateway can forward, and more than it can
        // read beside the flooder.
        if !by_the_clock {
            return;
        }
        let flood = Flood { per_second: 2_000_000, tuples: u32::MAX, forges: true };
        let part = part_during(&place, 100, flood);
        assert!(part.is_none_or(|part| part >= 0.2), "{flood:?}: {part:?}");
    }
}
