//! Reloads by the control socket, at a load above the link's rate.
#![allow(clippy::print_stdout, reason = "how long they take is of interest")]

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_live::gateway::control::request;
use apportion_testing::processes::judge_by_time;
use apportion_testing::skip;
use nix::poll::{PollTimeout, poll};
use nix::sys::socket::{setsockopt, sockopt::RcvBuf};
use serde_json::Value;

use super::place::{Place, eventually, place};

/// Number of reloads of a test, one per 20 ms or so: 100, or `APPORTION_RELOADS`. From a few thousand on,
/// raise `APPORTION_TEST_LIMIT`.
fn reloads() -> u64 {
    std::env::var("APPORTION_RELOADS").ok().and_then(|text| text.parse().ok()).unwrap_or(100)
}

/// Configuration of reload number `n`: other rates, delays, rules and queues, all with the same room.
fn text(n: u64) -> String {
    let queue = [
        "{ kind = \"fifo\", limit = \"200p\" }",
        "{ kind = \"drr\", limit = \"200p\" }",
        "{ kind = \"fq_codel\", limit = \"200p\", target = \"20s\", interval = \"100s\" }",
        "{ kind = \"stfq\", limit = \"200p\" }",
    ][n as usize % 4];
    format!(
        "inside = \"near\"\noutside = \"far\"\ndown.rate = \"10Mbit\"\n[up]\nrate = \"{}Mbit\"\nqueue = {queue}\n\
         delay = \"{}ms\"\n[[rule]]\nname = \"a{}\"\nfrom_port = {}\nweight = {}\n",
        2 + n % 2,
        n % 3,
        n % 5,
        5_000 + n % 4,
        1 + n % 3,
    )
}

/// Counters of a gateway in the direction up.
#[derive(Debug, Default)]
struct Counts {
    received: u64,
    sent: u64,
    dropped: u64,
    waiting: u64,
    /// Drops by reloads, included in `dropped`.
    left_out: u64,
    /// Packets that the kernel did not keep for the gateway.
    missed: u64,
}

impl Counts {
    fn of(stats: &str) -> Self {
        let stats: Value = serde_json::from_str(stats).unwrap();
        let number = |value: &Value| value.as_f64().unwrap() as u64;
        let up = &stats["directions"]["up"];
        let mut counts = Self {
            waiting: number(&up["backlog_packets"]),
            left_out: number(&up["reload_dropped_packets"]),
            missed: number(&stats["interfaces"]["near"]["missed_frames"]),
            ..Self::default()
        };
        for rule in up["rules"].as_object().unwrap().values() {
            counts.received += number(&rule["received_packets"]);
            counts.sent += number(&rule["sent_packets"]);
            counts.dropped += rule["dropped_packets"].as_object().unwrap().values().map(number).sum::<u64>();
        }
        counts
    }
}

fn socket(place: &Place, method: &str, path: &str) -> (u16, String) {
    request(&[place.folder.path().to_owned()], "x", method, path).unwrap()
}

fn counts(place: &Place) -> Counts {
    Counts::of(&socket(place, "GET", "/stats.json").1)
}

/// Sends numbered packets of four flows, 6 Mb/s in total, until `stop` is set; returns their number.
fn send(stop: &AtomicBool) -> u64 {
    let sockets = [0, 1, 2, 3].map(|flow| UdpSocket::bind(("10.0.0.1", 5_000 + flow)).unwrap());
    let clock = Clock::start();
    let mut number = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let packet = [&number.to_be_bytes()[..], &[0; 214 - 8]].concat();
        for socket in &sockets {
            // With headers 256 bytes: four packets every 1.365 ms.
            socket.send_to(&packet, "10.0.0.2:9").unwrap();
        }
        number += 1;
        let due = Time::ZERO + Span::from_micros(1_365) * number;
        let left = clock.until(due).as_nanos() / 1_000_000;
        poll(&mut [], PollTimeout::from(left as u16)).unwrap();
    }
    4 * number
}

/// Receives until `done` is set and nothing comes for a second. Returns the number of packets, and checks the
/// order within each flow.
fn receive(socket: &UdpSocket, done: &AtomicBool) -> u64 {
    socket.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    let (mut next, mut count) = ([0_u64; 4], 0);
    let mut buffer = [0; 2_048];
    loop {
        let was_done = done.load(Ordering::Relaxed);
        let Ok((_, from)) = socket.recv_from(&mut buffer) else {
            if was_done {
                return count;
            }
            continue;
        };
        let number = u64::from_be_bytes(*buffer.first_chunk().unwrap());
        let next = &mut next[usize::from(from.port() - 5_000)];
        assert!(number >= *next, "{from}: {number} after {next}");
        *next = number + 1;
        count += 1;
    }
}

/// Reloads through the socket, now and then by the command. Returns the longest time that a reload took.
fn reload_all(place: &Place) -> Span {
    let (clock, mut longest) = (Clock::start(), Span::ZERO);
    for n in 1..=reloads() {
        let path = place.write(&text(n));
        let before = clock.now();
        if n % 50 == 0 {
            let (status, out, error) = place.ask(&["reload"], &path);
            assert!(status == 0 && out.contains("up.rate: "), "{out}{error}");
        } else {
            let (status, answer) = socket(place, "POST", "/reload");
            assert!(status == 200 && answer.contains("up.queue: "), "{answer}");
            longest = longest.max(clock.now().since(before));
        }
        if n % 10 == 0 {
            // A received packet was sent, was dropped by the discipline, waits, is in transmission or on the
            // wire: 2 ms of 3 Mb/s are three packets.
            let Counts { received, sent, dropped, waiting, .. } = counts(place);
            let under_way = received.checked_sub(sent + dropped + waiting);
            assert!(under_way.is_some_and(|packets| packets <= 5), "{n}: {:?}", counts(place));
        }
        poll(&mut [], PollTimeout::from(15_u8)).unwrap();
    }
    longest
}

/// Packets of a run by outcome.
#[derive(Debug)]
struct Flow {
    offered: u64,
    arrived: u64,
    before: Counts,
    after: Counts,
}

/// Sends through a gateway with a full queue, and does `work` meanwhile.
fn under_load(place: &Place, work: impl FnOnce()) -> Flow {
    let gateway = place.start(&place.write(&text(0)));
    let [stop, done] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
    let [stopped, is_done] = [&stop, &done].map(Arc::clone);
    let [near, far] = &place.hosts;
    let sink = far.namespace.run(|| UdpSocket::bind("10.0.0.2:9").unwrap()).unwrap();
    // Room for arrivals while the reader waits for a core, as far as the system allows.
    setsockopt(&sink, RcvBuf, &(16 << 20)).unwrap();
    let receiver = far.namespace.spawn("receiver", move || receive(&sink, &is_done)).unwrap();
    let sender = near.namespace.spawn("sender", move || send(&stopped)).unwrap();
    // Wait until the queue is full.
    while counts(place).dropped == 0 {
        poll(&mut [], PollTimeout::from(10_u8)).unwrap();
    }
    work();
    let before = counts(place);
    stop.store(true, Ordering::Relaxed);
    let offered = sender.join().unwrap();
    // Wait until the gateway has seen every packet and holds none.
    let is_through = |counts: &Counts| counts.received == offered && counts.sent + counts.dropped == offered;
    eventually(|| is_through(&counts(place)));
    done.store(true, Ordering::Relaxed);
    let arrived = receiver.join().unwrap();
    let after = counts(place);
    gateway.stop();
    Flow { offered, arrived, before, after }
}

/// Checks that no packet is lost except by the discipline; holds with reloads and without.
fn check(Flow { offered, arrived, before, after }: &Flow) {
    assert!(before.waiting > 150, "the queue stands: {before:?}");
    assert_eq!((after.left_out, after.missed, after.waiting), (0, 0, 0), "{after:?}");
    assert_eq!((after.received, after.sent), (*offered, *arrived), "{after:?}");
    assert_eq!(*offered, arrived + after.dropped, "{after:?}");
}

pub fn by_the_socket_they_lose_and_reorder_nothing_of_a_standing_queue() {
    judge_by_time();
    let place = place();
    let (mut took, mut longest) = (Span::ZERO, Span::ZERO);
    let with = under_load(&place, || {
        let clock = Clock::start();
        longest = reload_all(&place);
        took = clock.now().since(Time::ZERO);
    });
    // For comparison: the same time without reloads.
    let without = under_load(&place, || pause(took));
    for (name, flow) in [("with", &with), ("without", &without)] {
        println!(
            "{name} reloads: {} packets offered, {} delivered, {} dropped by the queue, {} by reloads, {} missed, none \
             overtaken",
            flow.offered, flow.arrived, flow.after.dropped, flow.after.left_out, flow.after.missed
        );
        check(flow);
    }
    println!("{} reloads in {took}, the longest took {longest}", reloads());
    assert!(with.before.dropped > 10 * reloads(), "{with:?}");
    // A thousand reloads within a minute.
    if skip::unless_judged_by_the_clock() {
        assert!(took < Span::from_millis(60) * reloads(), "{took}");
    }
}

pub fn packets_dropped_by_a_smaller_queue_are_reported() {
    let place = place();
    let text = |limit: u32| {
        // A packet of 256 bytes takes two seconds.
        format!(
            "inside = \"near\"\noutside = \"far\"\ndown.rate = \"10Mbit\"\n[up]\nrate = \"1kbit\"\n\
             queue = {{ kind = \"fifo\", limit = \"{limit}p\" }}\n"
        )
    };
    let gateway = place.start(&place.write(&text(200)));
    let send = || {
        let socket = UdpSocket::bind("10.0.0.1:5000").unwrap();
        (0..100).for_each(|_| assert_eq!(socket.send_to(&[0; 214], "10.0.0.2:9").unwrap(), 214));
    };
    place.hosts[0].namespace.run(send).unwrap();
    // One packet is in transmission.
    while counts(&place).waiting < 99 {
        poll(&mut [], PollTimeout::from(10_u8)).unwrap();
    }
    for (limit, left_out, waiting) in [(150, 0, 99), (60, 39, 60), (200, 39, 60)] {
        let path = place.write(&text(limit));
        assert_eq!(place.ask(&["reload"], &path).0, 0);
        let counts = counts(&place);
        assert_eq!(
            (counts.left_out, counts.dropped, counts.waiting),
            (left_out, left_out, waiting),
            "{counts:?}"
        );
    }
    let said = gateway.stop();
    assert!(said.contains("\"waiting\":60"), "{said}");
}
