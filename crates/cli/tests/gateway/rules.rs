//! Flow rules for a router before a gateway, here the host of the sender.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_testing::child::{self, Running};
use apportion_testing::skip;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::place::{PLAIN, Place, place};

/// A gateway whose link up is slow. In front of a FIFO, datagrams are reported at once.
fn config(place: &Place, reports: bool) -> PathBuf {
    let queue = format!(
        "up.rate = \"1Mbit\"\nup.queue = {{ kind = \"sffc\", discipline = \"fifo\", reports = {reports} }}"
    );
    let key = "address = \"10.0.0.9\"\nreport_key = \"00112233445566778899aabbccddeeff\"\n";
    place.write(&(PLAIN.replace("up.rate = \"10Mbit\"", &queue) + if reports { key } else { "" }))
}

/// Sends datagrams at 4 Mb/s for some seconds.
fn flood(place: &Place, seconds: u64) -> std::thread::JoinHandle<()> {
    let send = move || {
        let (socket, clock) = (UdpSocket::bind("10.0.0.1:7000").unwrap(), Clock::start());
        for round in 1..=500 * seconds {
            // A firewall that drops the datagram may refuse it.
            let _ = socket.send_to(&[0; 972], "10.0.0.2:9");
            while clock.until(Time::from_millis(2 * round)) > Span::ZERO {
                pause(Span::from_millis(1));
            }
        }
    };
    place.hosts[0].namespace.spawn("flood", send).unwrap()
}

/// The command that prints rules.
fn rules(place: &Place, format: &str, path: &Path) -> Running {
    let mut command = place.command(&["rules", "--format", format], path);
    Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()))
}

/// The statistics of the gateway.
fn statistics(place: &Place, path: &Path) -> Value {
    let (status, stats, error) = place.ask(&["stats"], path);
    assert_eq!((status, error.as_str()), (0, ""));
    serde_json::from_str(&stats).unwrap()
}

const FLOW: &str = "match { source 10.0.0.1/32; destination 10.0.0.2/32; protocol udp; source-port =7000; destination-port =9; }";

pub fn a_rule_follows_a_flood_and_ends_after_it() {
    let place = place();
    let path = config(&place, true);
    let (status, out, error) = place.ask(&["rules", "--format", "exabgp"], &path);
    assert!(status == 2 && out.is_empty() && error.contains("answers"), "{error}");
    let gateway = place.start(&path);
    let mut child = rules(&place, "exabgp", &path);
    let mut lines = BufReader::new(child.stdout()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    let sender = flood(&place, 4);
    let first = line();
    let rate = first.strip_prefix(&format!("announce flow route {{ {FLOW} then {{ rate-limit ")).unwrap();
    // 125 kB a second, headers included, and a twentieth.
    let rate: u32 = rate.strip_suffix("; } }").unwrap().parse().unwrap();
    assert!((100_000..140_000).contains(&rate), "{first}");
    sender.join().unwrap();
    let clock = Clock::start();
    let withdrawal = format!("withdraw flow route {{ {FLOW} }}");
    while line() != withdrawal {}
    let after = clock.now().since(Time::ZERO);
    assert!((Span::from_secs(5)..Span::from_secs(14)).contains(&after), "{after}");
    child.signal(Signal::SIGTERM);
    assert!(child.wait().success());
    gateway.stop();
}

pub fn rules_are_withdrawn_when_the_gateway_stops() {
    let place = place();
    let path = config(&place, true);
    let gateway = place.start(&path);
    let mut child = rules(&place, "exabgp", &path);
    let mut out = BufReader::new(child.stdout());
    let sender = flood(&place, 3);
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("announce"), "{line}");
    gateway.stop();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.ends_with(&format!("withdraw flow route {{ {FLOW} }}\n")), "{rest}");
    assert_eq!(child.wait().code(), Some(2));
    sender.join().unwrap();
}

pub fn without_reports_there_are_no_rules() {
    let place = place();
    let path = config(&place, false);
    let gateway = place.start(&path);
    let mut child = rules(&place, "exabgp", &path);
    flood(&place, 3).join().unwrap();
    assert_eq!(statistics(&place, &path)["flow_rules"], Value::Array(Vec::new()));
    let mut text = String::new();
    let mut out = child.stdout();
    child.signal(Signal::SIGTERM);
    out.read_to_string(&mut text).unwrap();
    assert_eq!(text, "");
    gateway.stop();
}

/// The packets that the gateway has dropped.
fn dropped(place: &Place, path: &Path) -> f64 {
    let stats = statistics(place, path);
    let rules = stats["directions"]["up"]["rules"].as_object().cloned().unwrap_or_default();
    let all =
        rules.values().flat_map(|rule| rule["dropped_packets"].as_object().cloned().unwrap_or_default());
    all.map(|(_, count)| count.as_f64().unwrap()).sum()
}

pub fn nftables_of_the_sender_drops_what_the_gateway_would() {
    if !skip::unless_found(&["nft"]) {
        return;
    }
    let place = place();
    let path = config(&place, true);
    let gateway = place.start(&path);
    let mut child = rules(&place, "nft", &path);
    let out = BufReader::new(child.stdout());
    let load = move || {
        for line in out.lines() {
            let line = line.unwrap();
            let output = child::output(Command::new("nft").arg(&line));
            assert!(output.status.success(), "{line}\n{}", String::from_utf8_lossy(&output.stderr));
        }
        let kept = child::output(Command::new("nft").args(["list", "set", "inet", "apportion", "ipv4"]));
        String::from_utf8(kept.stdout).unwrap()
    };
    let router = place.hosts[0].namespace.spawn("nft", load).unwrap();
    let sender = flood(&place, 8);
    pause(Span::from_secs(4));
    let before = dropped(&place, &path);
    pause(Span::from_secs(3));
    let later = dropped(&place, &path);
    sender.join().unwrap();
    child.signal(Signal::SIGTERM);
    child.wait();
    // The last line withdraws the rule.
    assert!(!router.join().unwrap().contains("elements"));
    // 375 of 500 packets a second do not fit. With the rule a twentieth of 125 is lost.
    println!("dropped a second: {} before, {} with the rule", before / 4.0, (later - before) / 3.0);
    assert!(before > 300.0 && later - before < 3.0 * 100.0, "{before} {later}");
    gateway.stop();
}

pub fn tc_reads_the_rules() {
    if !skip::unless_found(&["tc"]) {
        return;
    }
    let place = place();
    let path = config(&place, true);
    let (status, _, error) = place.ask(&["rules", "--format", "tc"], &path);
    assert!(status == 2 && error.contains("--device"), "{error}");
    let (status, _, error) = place.ask(&["rules", "--format", "tc", "--device", "lo; reboot"], &path);
    assert!(status == 2 && error.contains("not the name of an interface"), "{error}");
    let gateway = place.start(&path);
    let mut command = place.command(&["rules", "--format", "tc", "--device", "lo"], &path);
    let mut child = Running::start(command.stdout(Stdio::piped()));
    let mut lines = BufReader::new(child.stdout()).lines();
    let sender = flood(&place, 3);
    let read: Vec<String> = lines.by_ref().take(3).map(Result::unwrap).collect();
    child.signal(Signal::SIGTERM);
    sender.join().unwrap();
    gateway.stop();
    assert!(
        read[2].starts_with("filter replace dev lo egress protocol ip pref 57332 handle 1 flower"),
        "{read:?}"
    );
    assert!(child::output(Command::new("tc").args(["qdisc", "add", "dev", "lo", "clsact"])).status.success());
    let arguments: Vec<&str> = read[2].split(' ').collect();
    let output = child::output(Command::new("tc").args(arguments));
    let error = String::from_utf8_lossy(&output.stderr);
    if error.contains("TC classifier not found") || error.contains("Failed to load TC action") {
        return skip::because(format!("the kernel has no cls_flower or no act_police: {error}"));
    }
    assert!(output.status.success(), "{error}");
}
