//! `apportion gateway --backend kernel` as a user meets it, between two veths of a network namespace. Without
//! the rights to load tc programs it is skipped with a line. A program of its own: here root makes a place;
//! in the program `gateway` a user namespace does.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(dead_code, reason = "places serve more tests than these")]

#[path = "gateway/place.rs"]
mod place;

/// Namespaces of a place: here a network namespace is enough, and a user namespace may load no programs.
mod processes {
    pub fn enter() {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
    }
}

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::time::Duration;

use apportion_core::units::Span;
use apportion_linux::clock::pause;
use apportion_linux::host::Host;
use apportion_linux::netlink::Netlink;
use apportion_linux::netlink::htb::HtbClass;
use apportion_testing::child::Running;
use apportion_testing::skip;
use nix::sys::signal::Signal;
use place::{Place, get, place};

const CONFIG: &str = "inside = \"near\"\noutside = \"far\"\nmetrics = \"127.0.0.1:9617\"\nplans = \"plans.csv\"\n\
    [up]\nrate = \"8Mbit\"\nqueue = { kind = \"htb\", discipline = \"fifo\", plans = \"up\" }\n\
    [down]\nrate = \"8Mbit\"\nqueue = { kind = \"fifo\", drop = \"tail\" }\n";
const PLANS: &str = "name, parent, addresses, down, up\n\
    first, , 10.0.0.1, 8Mbit, 6Mbit\nothers, , , 8Mbit, 1Mbit\n";

/// Makes a place with both files; none without the rights, or if the kernel has no HTB.
fn ready() -> Option<(Place, std::path::PathBuf)> {
    if !nix::unistd::geteuid().is_root() {
        skip::because("only root may load tc programs; run it as root");
        return None;
    }
    let place = place();
    fs::write(place.folder.path().join("plans.csv"), PLANS).unwrap();
    let path = place.write(CONFIG);
    let mut child = place.command(&["--backend", "kernel"], &path);
    let mut child = Running::start(child.stderr(std::process::Stdio::piped()));
    pause(Span::from_millis(500));
    if child.has_ended() {
        let (status, said) = (child.wait(), std::io::read_to_string(child.stderr()).unwrap());
        let reasons = ["EPERM", "ENOENT", "ENOSYS", "no clang", "not part of this build"];
        assert!(reasons.iter().any(|reason| said.contains(reason)), "{status}: {said}");
        skip::because(said);
        return None;
    }
    child.kill();
    Some((place, path))
}

/// Number of 20 datagrams of 972 B, 2 ms apart, that cross from the host inside to the one outside.
fn crossing(place: &Place) -> usize {
    let receiver = place.hosts[1].namespace.run(|| UdpSocket::bind("10.0.0.2:9000").unwrap()).unwrap();
    receiver.set_read_timeout(Some(Duration::from_millis(400))).unwrap();
    let send = || {
        let socket = UdpSocket::bind("10.0.0.1:0").unwrap();
        for _ in 0..20 {
            let _ = socket.send_to(&[7; 972], "10.0.0.2:9000");
            pause(Span::from_millis(2));
        }
    };
    place.hosts[0].namespace.run(send).unwrap();
    std::iter::from_fn(|| receiver.recv(&mut [0; 2048]).ok()).count()
}

fn start(place: &Place, path: &Path) -> place::Gateway {
    place.start_by(&["--backend", "kernel"], path)
}

fn stats(place: &Place, path: &Path) -> serde_json::Value {
    let (status, text, why) = place.ask(&["stats"], path);
    assert_eq!(status, 0, "{why}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn it_is_asked_reloaded_and_stopped() {
    let Some((place, path)) = ready() else { return };
    let (status, said, _) = place.ask(&["check", "--backend", "kernel"], &path);
    assert!(status == 0 && said.contains("the configuration is valid"), "{said}");
    let gateway = start(&place, &path);
    assert_eq!(crossing(&place), 20);
    let first = |place: &Place| stats(place, &path)["directions"]["up"]["customers"]["first"].clone();
    let before = first(&place)["sent_packets"].as_u64().unwrap();
    assert!(before >= 20, "{before}");
    assert!(get("/metrics").contains("sent_packets_total{direction=\"up\",customer=\"first\"} "));
    assert!(get("/healthz").starts_with("HTTP/1.0 200"));

    // The same classes with another number change in place, so that counters go on.
    fs::write(place.folder.path().join("plans.csv"), PLANS.replace("6Mbit", "4Mbit")).unwrap();
    let (status, changes, why) = place.ask(&["reload"], &path);
    assert!(status == 0 && changes.contains("4Mbit"), "{changes}{why}");
    assert_eq!(crossing(&place), 20);
    let after = first(&place)["sent_packets"].as_u64().unwrap();
    assert!(after >= before + 20, "{before} {after}");
    assert!(place.ask(&["show", "--running"], &path).1.contains("plans.csv"));

    // Another customer sets the tree up anew, and the counts stay.
    fs::write(place.folder.path().join("plans.csv"), format!("{PLANS}last, , 10.0.0.9, 8Mbit, 1Mbit\n"))
        .unwrap();
    assert_eq!(place.ask(&["reload"], &path).0, 0);
    assert!(first(&place)["sent_packets"].as_u64().unwrap() >= after);
    assert_eq!(crossing(&place), 20);

    // An invalid configuration changes nothing.
    place.write(&CONFIG.replace("\"fifo\", plans", "\"fq_codel\", plans"));
    let (status, _, why) = place.ask(&["reload"], &path);
    assert!(status != 0 && why.contains("up.queue"), "{why}");
    place.write(&CONFIG.replace("\"far\"", "\"faraway\""));
    assert!(place.ask(&["reload"], &path).2.contains("restart the gateway"));
    assert_eq!(crossing(&place), 20);
    let reloads = stats(&place, &path)["reloads"].clone();
    assert_eq!((&reloads["applied"], &reloads["refused"]), (&2.into(), &2.into()), "{reloads}");

    place.write(CONFIG);
    gateway.signal(Signal::SIGHUP);
    pause(Span::from_millis(300));
    let said = gateway.stop();
    assert!(said.contains("reloaded") && said.contains("the gateway stops"), "{said}");
    assert_eq!(crossing(&place), 0);
    assert!(
        fs::read_dir(place.folder.path())
            .unwrap()
            .all(|file| { !file.unwrap().file_name().to_string_lossy().ends_with(".sock") })
    );
}

#[test]
fn another_gateway_of_the_interfaces_is_refused() {
    let Some((place, path)) = ready() else { return };
    let gateway = start(&place, &path);
    let other = place.folder.path().join("other.toml");
    fs::write(&other, format!("title = \"other\"\n{}", CONFIG.replace("9617", "9618"))).unwrap();
    for arguments in [&["--backend", "kernel"][..], &[]] {
        let (status, _, why) = place.ask(arguments, &other);
        assert!(status == 2 && why.contains("a gateway is already running on it"), "{status} {why}");
    }
    let (status, _, why) = place.ask(&["--backend", "kernel"], &path);
    assert!(status == 2 && why.contains("already running"), "{status} {why}");
    // The first gateway is as it was.
    assert_eq!(crossing(&place), 20);
    gateway.stop();
}

/// Frames pass undivided without a gateway, and the next one takes over the queues left behind.
#[test]
fn one_that_was_killed_leaves_frames_passing_and_is_started_again() {
    let Some((place, path)) = ready() else { return };
    let mut gateway = start(&place, &path);
    gateway.signal(Signal::SIGKILL);
    gateway.child.wait();
    assert_eq!(crossing(&place), 20);
    let gateway = start(&place, &path);
    assert_eq!(crossing(&place), 20);
    gateway.stop();
    assert_eq!(crossing(&place), 0);
    let open = place.start_by(&["--backend", "kernel", "--fail-open"], &path);
    open.stop();
    assert_eq!(crossing(&place), 20);
}

/// A start that fails leaves the link as it was, and the commands of the bypass remove the queues of a killed
/// gateway.
#[test]
fn what_a_killed_one_left_is_kept_by_a_failed_start_and_taken_by_the_bypass() {
    let Some((place, path)) = ready() else { return };
    let major = apportion_kernel::htb::MAJOR;
    let mut netlink = Netlink::open().unwrap();
    let [near, far] = ["near", "far"].map(|name| netlink.index_of(name).unwrap());
    let merges = |netlink: &mut Netlink| netlink.offloads("far").unwrap().gro;
    netlink
        .restore(
            "far",
            &apportion_linux::netlink::Offloads { gro: true, ..netlink.offloads("far").unwrap() },
            0,
        )
        .unwrap();
    assert!(merges(&mut netlink));
    let mut gateway = start(&place, &path);
    assert!(!merges(&mut netlink));
    gateway.signal(Signal::SIGKILL);
    gateway.child.wait();

    // Another program's queue stands where the gateway's is to be.
    netlink.delete_queue(far, major).unwrap();
    netlink.add_htb(far, 7, 1).unwrap();
    assert_eq!(place.ask(&["--backend", "kernel"], &path).0, 2);
    assert_eq!(crossing(&place), 20);
    netlink.delete_queue(far, 7).unwrap();

    let mut gateway = start(&place, &path);
    gateway.signal(Signal::SIGKILL);
    gateway.child.wait();
    assert!(!netlink.class_statistics(far, major).unwrap().is_empty());
    assert_eq!(place.ask(&["bypass"], &path).0, 0);
    assert!(netlink.class_statistics(far, major).unwrap().is_empty());
    assert_eq!(crossing(&place), 20);

    // One interface is away: nothing is left at the other one either.
    netlink.delete(far).unwrap();
    assert!(netlink.is_redirecting(near).unwrap());
    assert_ne!(place.ask(&["bypass", "--off"], &path).0, 0);
    assert!(!netlink.is_redirecting(near).unwrap());
}

/// Offloads that merge packets are as they were before, also if the gateway ends while an interface is away.
#[test]
fn an_end_leaves_nothing_at_the_interfaces() {
    let Some((place, path)) = ready() else { return };
    let mut netlink = Netlink::open().unwrap();
    let [near, far] = ["near", "far"].map(|name| netlink.index_of(name).unwrap());
    let before = netlink.offloads("near").unwrap();
    let gateway = start(&place, &path);
    assert!(netlink.is_redirecting(near).unwrap());
    netlink.delete(far).unwrap();
    gateway.stop();
    assert!(!netlink.is_redirecting(near).unwrap());
    assert!(netlink.class_statistics(near, apportion_kernel::htb::MAJOR).unwrap().is_empty());
    assert!(!netlink.device("near").unwrap().is_promiscuous);
    assert_eq!(netlink.offloads("near").unwrap(), before);
}

/// The rights that the gateway keeps suffice.
#[test]
fn an_interface_that_is_made_anew_is_set_up_again() {
    let Some((mut place, path)) = ready() else { return };
    let gateway = start(&place, &path);
    assert_eq!(crossing(&place), 20);
    let host =
        |name| Host::create(name, &[[10, 0, 0, 2].into()], apportion_core::units::Bytes::new(1500)).unwrap();
    // The interface goes away with its host.
    drop(std::mem::replace(&mut place.hosts[1], host("spare")));
    pause(Span::from_millis(1_500));
    assert!(get("/healthz").contains("HTTP/1.0 503") && get("/healthz").contains("up: `far` is not set up"));
    drop(std::mem::replace(&mut place.hosts[1], host("far")));
    pause(Span::from_millis(1_500));
    assert_eq!(crossing(&place), 20);
    assert!(get("/healthz").starts_with("HTTP/1.0 200"));
    assert!(gateway.stop().contains("set up again"));
}

/// The gateway replaces a removed queue within a second; a queue that another program set instead stays, and
/// is reported.
#[test]
fn what_is_taken_away_from_an_interface_is_set_up_again() {
    let Some((place, path)) = ready() else { return };
    let gateway = start(&place, &path);
    let mut netlink = Netlink::open().unwrap();
    let [near, far] = ["near", "far"].map(|name| netlink.index_of(name).unwrap());
    let classes = |netlink: &mut Netlink| {
        netlink.class_statistics(far, apportion_kernel::htb::MAJOR).map(|classes| classes.len()).unwrap()
    };
    let before = classes(&mut netlink);
    assert!(before > 1);

    assert!(netlink.delete_queue(far, apportion_kernel::htb::MAJOR).unwrap());
    assert_eq!(classes(&mut netlink), 0);
    pause(Span::from_millis(1_500));
    assert_eq!(classes(&mut netlink), before);
    assert!(netlink.delete_class(far, apportion_kernel::htb::MAJOR, 1).unwrap());
    assert_eq!(classes(&mut netlink), before - 1);
    // The pause above a whole number of seconds and a half keeps what follows away from a poll.
    pause(Span::from_secs(2));
    assert_eq!(classes(&mut netlink), before);

    assert!(netlink.stop_redirecting(near).unwrap());
    assert_eq!(crossing(&place), 0);
    pause(Span::from_millis(1_500));
    assert_eq!(crossing(&place), 20);

    netlink.delete_queue(far, apportion_kernel::htb::MAJOR).unwrap();
    netlink.add_htb(far, 7, 1).unwrap();
    pause(Span::from_millis(1_500));
    assert!(get("/healthz").contains("up: `far` is not set up"));
    netlink.delete_queue(far, 7).unwrap();
    pause(Span::from_millis(1_500));
    assert!(get("/healthz").starts_with("HTTP/1.0 200"));
    let log = gateway.stop();
    assert!(log.contains("set up again") && log.contains("classes=1"), "{log}");
}

/// A queue that another program set is not removed.
#[test]
fn a_queue_that_was_set_before_is_refused_and_stays() {
    let Some((place, path)) = ready() else { return };
    let mut netlink = Netlink::open().unwrap();
    let device = netlink.index_of("far").unwrap();
    netlink.delete_queue(device, apportion_kernel::htb::MAJOR).unwrap();
    netlink.add_htb(device, 7, 1).unwrap();
    let rate = apportion_core::units::Rate::from_mbit(1);
    let bytes = apportion_core::units::Bytes::new(3_000);
    let class = HtbClass {
        minor: 1,
        parent: 0,
        rate,
        ceil: rate,
        burst: bytes,
        cburst: bytes,
        quantum: bytes,
        prio: 0,
    };
    netlink.add_htb_class(device, 7, &class).unwrap();
    let (status, _, why) = place.ask(&["--backend", "kernel"], &path);
    assert!(status == 2 && why.contains("far") && why.contains("EEXIST"), "{status} {why}");
    assert_eq!(netlink.class_statistics(device, 7).unwrap().len(), 1);
}
