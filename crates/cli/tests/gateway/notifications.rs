//! Overload notifications to an application.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;
use serde_json::Value;

use super::place::{PLAIN, place};

pub fn an_application_reads_overload_notifications_until_the_gateway_stops() {
    let place = place();
    let socket = place.folder.path().join("notifications.sock");
    let text = PLAIN.replace("up.rate = \"10Mbit\"", "up.rate = \"1Mbit\"\nup.queue = \"ramp\"")
        + &format!("notifications = \"{}\"\n", socket.display())
        + "[[rule]]\nname = \"film\"\nclass = \"real_rate\"\nto_port = 9\n";
    let path = place.write(&text);
    let gateway = place.start(&path);
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o660);
    let reader = UnixStream::connect(&socket).unwrap();
    reader.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let mut lines = BufReader::new(reader).lines();
    let mut line = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    assert_eq!(line()["title"], "x");
    // 0.8 s worth of the link at once.
    let clock = Clock::start();
    let send = || {
        let film = UdpSocket::bind("10.0.0.1:7000").unwrap();
        for _ in 0..100 {
            film.send_to(&[0; 972], "10.0.0.2:9").unwrap();
        }
    };
    place.hosts[0].namespace.run(send).unwrap();
    let notice = line();
    let took = clock.now();
    // 200 ms are asked for; the rest is for a busy machine.
    assert!(took.since(Time::ZERO) < Span::from_millis(400), "{took}: {notice}");
    assert_eq!((&notice["rule"], &notice["flow"]["from_port"]), (&"film".into(), &7_000.into()));
    assert!(
        notice["is_over"] == false && notice["allocation_bps"].as_u64() < notice["requirement_bps"].as_u64()
    );
    let (status, stats, _) = place.ask(&["stats"], &path);
    let stats: Value = serde_json::from_str(&stats).unwrap();
    assert_eq!((status, &stats["notification_readers"]), (0, &1.into()));
    assert_eq!(stats["real_rate"][0]["flow"], "udp 10.0.0.1:7000 > 10.0.0.2:9");
    gateway.stop();
    assert!(!socket.exists());
}
