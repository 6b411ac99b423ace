//! Two gateways in a row that report their drops to each other.

use std::net::UdpSocket;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;
use apportion_live::router::frames::PORT;

use crate::common::{Wire, enter, host, judge_by_time, metrics, open, pause, start, wire_between};
use crate::line::Ip;

/// The configurations of the first gateway, whose link up is fast, and of the second, whose link up is slow,
/// with addresses of this version. In front of a FIFO datagrams are reported at once, not only once they are
/// known to ignore losses.
fn configs(ip: Ip, keys: [&str; 2]) -> [String; 2] {
    let net = if ip == Ip::V4 { "192.0.2." } else { "2001:db8::" };
    let config = |inside: &str, outside: &str, last: u8, rate: &str, key: &str| {
        format!(
            "inside = \"{inside}\"\noutside = \"{outside}\"\naddress = \"{net}{last}\"\n\
             report_key = \"{key}\"\ndown.rate = \"20Mbit\"\n[up]\nrate = \"{rate}\"\n\
             queue = {{ kind = \"sffc\", discipline = \"fifo\", report_discards = 0.1, trust = \"full\" }}\n"
        )
    };
    [config("near", "m1", 1, "20Mbit", keys[0]), config("m2", "far", 2, "2Mbit", keys[1])]
}

/// The value of the metric with this name and labels; zero if there is none.
fn value(text: &str, metric: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix("apportion_gateway_")?.strip_prefix(metric));
    line.map_or(0.0, |value| value.trim().parse().unwrap())
}

/// Sends datagrams at 4 Mb/s for 3 s. Returns the metrics of both gateways.
fn metrics_of(ip: Ip, keys: [&str; 2]) -> [String; 2] {
    judge_by_time();
    enter();
    let (near, _far) = (host("near", 11), host("far", 12));
    wire_between();
    let gateways = configs(ip, keys).map(|config| start(open(&config), |_| ()));
    let sender = near.namespace.spawn("sender", move || {
        let (mut wire, clock) = (Wire::open(), Clock::start());
        // 1000 B of IP each: 500 packets a second.
        let frame = ip.datagram((5_004, 9), 1_000);
        for round in 1..=1_500 {
            wire.send(&frame);
            let due = Time::from_millis(2 * round);
            while clock.until(due) > Span::ZERO {
                pause(1);
            }
        }
    });
    sender.unwrap().join().unwrap();
    gateways.map(|gateway| metrics(&mut gateway.stop()))
}

/// Packets that each gateway dropped by policy, and packets that left the second.
fn discarded_and_sent(text: &[String; 2]) -> [f64; 3] {
    let discarded = "dropped_packets_total{direction=\"up\",rule=\"unmatched\",reason=\"policy\"}";
    let sent = "sent_packets_total{direction=\"up\",rule=\"unmatched\"}";
    [value(&text[0], discarded), value(&text[1], discarded), value(&text[1], sent)]
}

/// Packets that do not fit at the second gateway are dropped at the first.
fn is_discarded_early(ip: Ip) {
    let text = metrics_of(ip, ["00112233445566778899aabbccddeeff"; 2]);
    // Half of 1500 packets do not fit: 750; the first gateway learns of most of them.
    let [first, second, sent] = discarded_and_sent(&text);
    assert!(first > 450.0 && second < 250.0 && sent > 550.0, "{first} {second} {sent}");
    assert!(value(&text[0], "reports_total{what=\"heard\"}") > 10.0, "{}", text[0]);
    assert!(value(&text[0], "reports_total{what=\"answers_sent\"}") > 0.0, "{}", text[0]);
    assert!(value(&text[1], "reports_total{what=\"reports_sent\"}") > 10.0, "{}", text[1]);
}

pub fn what_the_second_gateway_loses_is_discarded_at_the_first() {
    is_discarded_early(Ip::V4);
}

pub fn it_is_so_in_ipv6() {
    is_discarded_early(Ip::V6);
}

pub fn a_message_of_a_host_of_this_machine_is_not_damaged() {
    enter();
    let (near, _far) = (host("near", 11), host("far", 12));
    wire_between();
    let [config, _] = configs(Ip::V4, ["00112233445566778899aabbccddeeff"; 2]);
    let gateway = start(open(&config), |_| ());
    // The device would compute the checksum. The payload looks like a message of an unknown version.
    let socket = near.namespace.run(|| UdpSocket::bind(("0.0.0.0", PORT)).unwrap()).unwrap();
    socket.set_ttl(255).unwrap();
    for _ in 0..5 {
        socket.send_to(b"SFFC and no more", ("192.0.2.1", PORT)).unwrap();
    }
    pause(200);
    let text = metrics(&mut gateway.stop());
    let refused = |why| value(&text, &format!("reports_total{{what=\"refused_{why}\"}}"));
    assert_eq!((refused("checksum"), refused("version")), (0.0, 5.0), "{text}");
}

pub fn reports_of_a_gateway_without_the_key_are_refused() {
    let text = metrics_of(Ip::V6, ["00112233445566778899aabbccddeeff", "ffeeddccbbaa99887766554433221100"]);
    let [first, second, _] = discarded_and_sent(&text);
    assert!(first == 0.0 && second > 600.0, "{first} {second}");
    assert!(value(&text[0], "reports_total{what=\"refused_forged\"}") > 0.0, "{}", text[0]);
    assert_eq!(value(&text[0], "reports_total{what=\"heard\"}"), 0.0);
}
