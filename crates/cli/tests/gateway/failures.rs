//! Failures around a gateway, which it survives.

use std::fs::File;
use std::net::UdpSocket;
use std::process::Stdio;
use std::time::Duration;

use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::host::Host;
use apportion_linux::netlink::Netlink;
use apportion_testing::child::Running;
use apportion_testing::skip;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::place::{PLAIN, Place, eventually, get, place};

/// Maximum time until a gateway forwards again, or answers, where nothing else runs.
const PROMPT: Span = Span::from_secs(1);

fn elapsed(since: Clock) -> Span {
    since.now().since(Time::ZERO)
}

/// Sends datagrams from the host near to the host far until one arrives. Returns how long that took; none
/// after five seconds.
fn until_it_passes(place: &Place) -> Option<Span> {
    let [near, far] = &place.hosts;
    let receiver = far.namespace.run(|| UdpSocket::bind("10.0.0.2:7000").unwrap()).unwrap();
    let sender = near.namespace.run(|| UdpSocket::bind("10.0.0.1:0").unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let began = Clock::start();
    while elapsed(began) < Span::from_secs(30) {
        // Sending fails while the device is down.
        let _ = sender.send_to(b"x", "10.0.0.2:7000");
        if receiver.recv(&mut [0; 8]).is_ok() {
            return Some(elapsed(began));
        }
    }
    None
}

fn stats() -> Value {
    let answer = get("/stats.json");
    serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// Number of times that an interface is deleted and made again: 20, or `APPORTION_RECREATIONS`.
fn recreations() -> u64 {
    std::env::var("APPORTION_RECREATIONS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

pub fn an_interface_that_is_deleted_and_made_again_forwards_within_a_second() {
    let by_the_clock = skip::unless_judged_by_the_clock();
    let mut place = place();
    let path = place.write(PLAIN);
    let gateway = place.start(&path);
    assert!(until_it_passes(&place).is_some());
    for round in 0..recreations() {
        let mut netlink = Netlink::open().unwrap();
        let near = netlink.index_of("near").unwrap();
        netlink.delete(near).unwrap();
        if round == 0 {
            assert!(eventually(|| get("/healthz").contains("503")), "{}", get("/healthz"));
            assert!(get("/healthz").contains("the interface near has gone"), "{}", get("/healthz"));
            assert_eq!(stats()["interfaces"]["near"]["attached"], false);
        }
        place.hosts[0] = Host::create("near", &[[10, 0, 0, 1].into()], Bytes::new(1500)).unwrap();
        let took = until_it_passes(&place);
        assert!(took.is_some_and(|took| took < PROMPT || !by_the_clock), "round {round}: {took:?}");
    }
    assert!(eventually(|| get("/healthz").contains("frames pass")));
    let (status, out, _) = place.ask(&["check"], &path);
    assert!(status == 0 && out.contains("a gateway of this title is running: frames pass"), "{out}");
    let counted = |event: &str| stats()["interfaces"]["near"]["events"][event] == recreations();
    assert!(eventually(|| counted("gone") && counted("back")), "{}", stats());
    let said = gateway.stop();
    assert_eq!(said.matches("the interface has gone").count() as u64, recreations(), "{said}");
}

pub fn a_gateway_whose_interface_is_down_says_that_no_frames_pass() {
    let place = place();
    let path = place.write(PLAIN);
    let gateway = place.start(&path);
    assert!(eventually(|| get("/healthz").starts_with("HTTP/1.0 200 ")), "{}", get("/healthz"));
    let mut netlink = Netlink::open().unwrap();
    let far = netlink.index_of("far").unwrap();
    netlink.set_down(far).unwrap();
    let is_down = || {
        let health = get("/healthz");
        health.starts_with("HTTP/1.0 503 ") && health.ends_with("the interface far is down\n")
    };
    assert!(eventually(is_down), "{}", get("/healthz"));
    let (status, out, _) = place.ask(&["check"], &path);
    assert!(
        status == 1 && out.ends_with("a gateway of this title is running: the interface far is down\n"),
        "{out}"
    );
    netlink.set_up(far).unwrap();
    assert!(eventually(|| get("/healthz").ends_with("frames pass\n")), "{}", get("/healthz"));
    assert_eq!(place.ask(&["check"], &path).0, 0);
    gateway.stop();
}

pub fn offloads_that_are_turned_on_are_turned_off_again_and_a_new_mtu_is_logged() {
    let place = place();
    let gateway = place.start(&place.write(PLAIN));
    let mut netlink = Netlink::open().unwrap();
    let mut on = netlink.offloads("near").unwrap();
    on.gro = true;
    netlink.restore("near", &on, 0).unwrap();
    assert!(eventually(|| !Netlink::open().unwrap().offloads("near").unwrap().gro));
    let far = netlink.index_of("far").unwrap();
    netlink.set_mtu(far, Bytes::new(1400)).unwrap();
    assert!(eventually(|| stats()["interfaces"]["far"]["events"]["mtu"] == 1));
    assert_eq!(stats()["interfaces"]["near"]["events"]["offloads"], 1);
    assert!(until_it_passes(&place).is_some());
    let said = gateway.stop();
    assert!(said.contains("offloads were turned on") && said.contains("the MTU changed"), "{said}");
}

pub fn offloads_are_restored_after_a_gateway_that_was_killed() {
    let place = place();
    let path = place.write(PLAIN);
    let mut netlink = Netlink::open().unwrap();
    let mut on = netlink.offloads("near").unwrap();
    (on.tso, on.gso, on.gro) = (true, true, true);
    netlink.restore("near", &on, 100).unwrap();
    let is_restored = || {
        let mut netlink = Netlink::open().unwrap();
        netlink.offloads("near").unwrap() == on && netlink.device("near").unwrap().gso_max_segs == 100
    };
    let die = || {
        let mut gateway = place.start(&path);
        assert!(!is_restored());
        assert_eq!(place.ask(&["restore"], &path).0, 2, "while it runs");
        gateway.signal(Signal::SIGKILL);
        gateway.child.wait();
        assert!(!is_restored());
    };
    // The command restores them.
    die();
    let (status, out, error) = place.ask(&["restore"], &path);
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(out.contains("near: offloads are restored") && is_restored(), "{out}");
    assert_eq!(place.ask(&["restore"], &path).1, "there is nothing to restore\n");
    // The next gateway restores them, and starts at once.
    die();
    let said = place.start(&path).stop();
    assert!(is_restored() && said.contains("offloads are restored"), "{said}");
    // The gateway does not take its own repairs for the work of another program.
    let said: String = (0..5).map(|_| place.start(&path).stop()).collect();
    assert!(!said.contains("turned off again"), "{said}");
}

/// Starts a gateway that logs to `log`, and waits until it answers.
fn start_with_log(place: &Place, log: Stdio) -> Running {
    let path = place.write(PLAIN);
    let child = Running::start(place.command(&["--log-format", "json"], &path).stderr(log));
    assert!(eventually(|| std::net::TcpStream::connect("127.0.0.1:9617").is_ok()));
    child
}

pub fn a_log_that_cannot_be_written_costs_its_lines_and_nothing_else() {
    let place = place();
    let no_reader = || {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        Stdio::from(writer)
    };
    let full = || Stdio::from(File::options().write(true).open("/dev/full").unwrap());
    for log in [full(), no_reader()] {
        let mut child = start_with_log(&place, log);
        assert!(until_it_passes(&place).is_some());
        for rate in ["20Mbit", "10Mbit"].repeat(10) {
            let path = place.write(&PLAIN.replace("up.rate = \"10Mbit\"", &format!("up.rate = \"{rate}\"")));
            let began = Clock::start();
            let (status, _, error) = place.ask(&["reload"], &path);
            assert_eq!((status, error.as_str()), (0, ""));
            assert!(elapsed(began) < PROMPT * 10);
        }
        // The thread that forwards packets has a message as well.
        let mut netlink = Netlink::open().unwrap();
        let near = netlink.index_of("near").unwrap();
        netlink.set_down(near).unwrap();
        assert!(eventually(|| stats()["interfaces"]["near"]["down"] != 0));
        netlink.set_up(near).unwrap();
        assert!(until_it_passes(&place).is_some());
        let lost = stats()["log_lines_lost"].as_u64().unwrap();
        assert!(lost > 40, "{lost}");
        child.signal(Signal::SIGTERM);
        assert!(child.wait().success());
    }
}

/// Number of arrivals from 40 datagrams sent from near to far, duplicates included.
fn passed(place: &Place) -> usize {
    let [near, far] = &place.hosts;
    let receiver = far.namespace.run(|| UdpSocket::bind("10.0.0.2:7001").unwrap()).unwrap();
    let sender = near.namespace.run(|| UdpSocket::bind("10.0.0.1:0").unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    (0..40).for_each(|_| drop(sender.send_to(b"x", "10.0.0.2:7001")));
    std::iter::from_fn(|| receiver.recv(&mut [0; 8]).ok()).count()
}

pub fn frames_bypass_a_gateway_that_fails_open_or_was_killed() {
    let place = place();
    let path = place.write(PLAIN);
    let (status, out, error) = place.ask(&["bypass"], &path);
    if error.contains("ENOENT") || error.contains("EOPNOTSUPP") {
        return skip::because(format!("the kernel has no cls_u32 or no act_mirred: {error}"));
    }
    assert_eq!((status, out.as_str()), (0, "frames bypass the gateway\n"), "{error}");
    assert_eq!(place.ask(&["bypass"], &path).0, 0, "once more");
    assert_eq!(passed(&place), 40);
    // A gateway turns the bypass off: each frame crosses once, and is counted.
    let mut gateway = place.start_by(&["--fail-open"], &path);
    assert_eq!(passed(&place), 40);
    let received = |stats: &Value| stats["interfaces"]["near"]["received_frames"].as_u64();
    assert!(eventually(|| received(&stats()).is_some_and(|count| count >= 40)), "{}", stats());
    let (status, _, error) = place.ask(&["bypass"], &path);
    assert!(status == 2 && error.contains("is running"), "{error}");
    gateway.signal(Signal::SIGKILL);
    gateway.child.wait();
    assert_eq!(passed(&place), 0);
    // ExecStopPost= of the unit does the same.
    assert_eq!(place.ask(&["bypass"], &path).0, 0);
    assert_eq!(passed(&place), 40);
    // A gateway that stops by itself does it.
    let said = place.start_by(&["--fail-open"], &path).stop();
    assert!(said.contains("the gateway fails open"), "{said}");
    assert_eq!(passed(&place), 40);
    let off = |place: &Place| place.ask(&["bypass", "--off"], &path).1;
    assert_eq!(off(&place), "frames do not bypass the gateway any more\n");
    assert_eq!(off(&place), "frames did not bypass the gateway\n");
    assert_eq!(passed(&place), 0);
    // Without --fail-open a gateway leaves no bypass.
    place.start(&path).stop();
    assert_eq!(passed(&place), 0);
}

/// A network card keeps frames to other hosts' addresses to itself unless it is promiscuous; veths do not.
pub fn interfaces_are_promiscuous_while_frames_bypass_the_gateway() {
    let place = place();
    let path = place.write(PLAIN);
    let mut netlink = Netlink::open().unwrap();
    let mut promiscuous = || ["near", "far"].map(|name| netlink.device(name).unwrap().is_promiscuous);
    assert_eq!(promiscuous(), [false; 2]);
    let (status, _, error) = place.ask(&["bypass"], &path);
    if error.contains("ENOENT") || error.contains("EOPNOTSUPP") {
        return skip::because(format!("the kernel has no cls_u32 or no act_mirred: {error}"));
    }
    assert_eq!((status, promiscuous()), (0, [true; 2]));
    place.ask(&["bypass"], &path);
    place.ask(&["bypass", "--off"], &path);
    assert_eq!(promiscuous(), [false; 2]);
    // An interface that was promiscuous before stays so.
    let far = Netlink::open().unwrap().index_of("far").unwrap();
    Netlink::open().unwrap().set_promiscuous(far, true).unwrap();
    for _ in 0..2 {
        place.ask(&["bypass"], &path);
        assert_eq!(promiscuous(), [true; 2]);
    }
    place.ask(&["bypass", "--off"], &path);
    assert_eq!(promiscuous(), [false, true]);
}
