//! Reports of a gateway to a service manager (sd_notify(3)).

use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;
use nix::sys::signal::Signal;

use super::place::{PLAIN, place};

/// Limit of the watchdog.
const LIMIT: Duration = Duration::from_secs(2);
/// Maximum gap between two notifications to the watchdog.
const HALF: Span = Span::from_secs(1);
const FED: &str = "WATCHDOG=1";

/// Reports within `span`, with their times.
fn reports(socket: &UnixDatagram, clock: &Clock, span: Span) -> Vec<(Time, String)> {
    let (mut all, end) = (Vec::new(), clock.now() + span);
    let mut buffer = [0; 512];
    while clock.now() < end {
        if let Ok(length) = socket.recv(&mut buffer) {
            let lines = std::str::from_utf8(&buffer[..length]).unwrap();
            all.extend(lines.lines().map(|line| (clock.now(), line.to_owned())));
        }
    }
    all
}

fn lines(reports: &[(Time, String)]) -> Vec<&str> {
    reports.iter().map(|(_, line)| line.as_str()).collect()
}

pub fn a_service_manager_is_kept_informed_and_the_watchdog_fed_only_while_it_works() {
    let place = place();
    let path = place.write(PLAIN);
    let address = place.folder.path().join("notify");
    let socket = UnixDatagram::bind(&address).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let (clock, settle) = (Clock::start(), Span::from_millis(300));
    let gateway = place.start_service(&path, &address, LIMIT);
    let all = reports(&socket, &clock, Span::from_secs(5));
    assert_eq!(lines(&all).iter().filter(|line| **line == "READY=1").count(), 1, "{all:?}");
    let fed: Vec<Time> = all.iter().filter(|(_, line)| line == FED).map(|(at, _)| *at).collect();
    // The reports of the start waited in the socket.
    let gaps = fed.windows(2).map(|pair| pair[1].since(pair[0]));
    assert!(fed.len() > 5 && gaps.max().unwrap() <= HALF, "{all:?}");

    gateway.signal(Signal::SIGSTOP);
    reports(&socket, &clock, settle);
    let stopped = reports(&socket, &clock, Span::from_secs(3));
    assert!(stopped.is_empty(), "{stopped:?}");
    gateway.signal(Signal::SIGCONT);
    let again = reports(&socket, &clock, HALF);
    assert!(lines(&again).contains(&FED), "{again:?}");

    assert_eq!(place.ask(&["reload"], &path).0, 0);
    let reload = reports(&socket, &clock, settle);
    let reload: Vec<&str> = lines(&reload).into_iter().filter(|line| *line != FED).collect();
    assert_eq!(reload, ["RELOADING=1", "READY=1"]);
    gateway.stop();
    assert_eq!(lines(&reports(&socket, &clock, settle)).last(), Some(&"STOPPING=1"));
}
