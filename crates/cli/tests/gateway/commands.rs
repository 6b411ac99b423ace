//! Commands to a running gateway, and their answers.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::netlink::Netlink;
use apportion_testing::child::{self, Running};
use apportion_testing::skip;
use nix::sys::signal::Signal;

use super::place::{PLAIN, Silent, get, place};

pub fn a_wrong_configuration_ends_with_status_2() {
    let place = place();
    let path = place.write(&PLAIN.replace("10Mbit", "10Mbitt"));
    for arguments in [&[][..], &["check"], &["show"], &["reload"]] {
        let (status, out, error) = place.ask(arguments, &path);
        assert_eq!((status, out.as_str()), (2, ""), "{error}");
        assert!(error.contains("x.toml:4") && error.contains("rate"), "{error}");
    }
    let path = place.write(&PLAIN.replace("\"far\"", "\"nowhere\""));
    for arguments in [&[][..], &["check"]] {
        let (status, _, error) = place.ask(arguments, &path);
        assert!(
            status == 2 && error.contains("outside = \"nowhere\"") && error.contains("No such device"),
            "{error}"
        );
    }
    let (status, _, error) = place.ask(&["stats"], &path);
    assert!(status == 2 && error.contains("no gateway with the title `x` answers"), "{error}");
}

pub fn check_looks_at_the_interfaces_and_changes_nothing() {
    let place = place();
    let mut netlink = Netlink::open().unwrap();
    let device = netlink.device("near").unwrap();
    let mut on = netlink.offloads("near").unwrap();
    (on.tso, on.gso, on.gro) = (true, true, true);
    netlink.restore("near", &on, 100).unwrap();
    let path = place.write(PLAIN);
    let (status, out, error) = place.ask(&["check"], &path);
    assert_eq!((status, error.as_str()), (0, ""));
    assert!(out.contains("inside near: up, MTU 1500B, would turn off GRO\n"), "{out}");
    assert!(out.contains("outside far: up, MTU 1500B, nothing to turn off\n"), "{out}");
    assert!(netlink.offloads("near").unwrap().tso);
    // A gateway turns off the offloads that merge incoming packets, and on again when it ends. It uses the
    // others.
    let gateway = place.start(&path);
    let now = netlink.offloads("near").unwrap();
    assert!(now.tso && now.gso && !now.gro);
    gateway.stop();
    assert_eq!(netlink.offloads("near").unwrap(), on);
    assert_eq!((device.gso_max_segs, netlink.device("near").unwrap().gso_max_segs), (1, 100));
    let (status, out, _) = place.ask(&["show"], &path);
    assert!(status == 0 && out.contains("flow_idle = \"60s\"\n"), "{out}");
}

pub fn check_refuses_an_address_that_is_taken_and_warns_of_the_rest() {
    let place = place();
    let path = place.write(PLAIN);
    let taken = TcpListener::bind("127.0.0.1:9617").unwrap();
    let (status, out, error) = place.ask(&["check"], &path);
    assert!(
        status == 2 && out.is_empty() && error.contains("127.0.0.1:9617") && error.contains("x.toml: "),
        "{error}"
    );
    drop(taken);
    // The gateway itself may hold the port.
    let gateway = place.start(&path);
    assert_eq!(place.ask(&["check"], &path).0, 0);
    gateway.stop();
    let mut netlink = Netlink::open().unwrap();
    let far = netlink.index_of("far").unwrap();
    netlink.set_mtu(far, Bytes::new(1_400)).unwrap();
    let plans = "name,parent,addresses,down,up\nsite,,,30Mbit,30Mbit\nothers,site,,,\n";
    fs::write(place.folder.path().join("plans.csv"), plans).unwrap();
    let planned =
        format!("plans = \"plans.csv\"\n{PLAIN}down.queue = {{ kind = \"htb\", plans = \"down\" }}\n");
    let path = place.write(&planned);
    let (status, out, _) = place.ask(&["check"], &path);
    assert!(status == 0 && out.contains("\nwarning: the MTUs differ: "), "{out}");
    assert!(out.contains("\nwarning: down.rate: 10Mbit is less than the plans"), "{out}");
    let (status, out, error) = place.ask(&["show"], &path);
    assert!(status == 0 && error.starts_with("warning: down.rate: 10Mbit"), "{error}");
    assert!(
        out.contains("plans = \"down\"")
            && out.ends_with("\n# others: down 30Mbit to 30Mbit, up 30Mbit to 30Mbit\n"),
        "{out}"
    );
}

pub fn a_gateway_is_asked_reloaded_and_stopped() {
    let place = place();
    let path = place.write(PLAIN);
    let gateway = place.start(&path);
    // Quantiles are checked only once a packet has left.
    let send = || UdpSocket::bind("10.0.0.1:5000").unwrap().send_to(&[0; 100], "10.0.0.2:9").unwrap();
    place.hosts[0].namespace.run(send).unwrap();
    while !get("/metrics").contains("apportion_gateway_lateness_seconds{quantile=") {
        nix::poll::poll(&mut [], 20_u8).unwrap();
    }
    let metrics = get("/metrics");
    lint(&metrics);
    check_alerts(&metrics);
    assert!(
        metrics.contains("apportion_gateway_rate_bytes_per_second{direction=\"up\"} 1250000\n"),
        "{metrics}"
    );
    assert!(get("/stats.json").contains("\"title\": \"x\""));
    // The port does not serve what only the owner may read.
    assert!(get("/config").starts_with("HTTP/1.0 404 "));
    let (status, stats, _) = place.ask(&["stats"], &path);
    let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
    assert_eq!((status, stats["interfaces"]["near"]["down"].as_u64()), (0, Some(0)));

    // A change, no change, a refused one, and one by SIGHUP.
    place.write(&PLAIN.replace("up.rate = \"10Mbit\"", "up.rate = \"20Mbit\""));
    assert_eq!(place.ask(&["reload"], &path), (0, "up.rate: 10Mbit -> 20Mbit\n".into(), String::new()));
    assert_eq!(place.ask(&["reload"], &path).1, "nothing changed\n");
    place.write(&format!("seed = 5\n{PLAIN}"));
    let (status, out, error) = place.ask(&["reload"], &path);
    assert!(status == 2 && out.is_empty() && error.contains("seed: 1 -> 5, which cannot change"), "{error}");
    let running = place.ask(&["show", "--running"], &path).1;
    assert!(running.contains("rate = \"20Mbit\"") && running.contains("seed = 1\n"), "{running}");
    place.write(&PLAIN.replace("9617", "9618"));
    gateway.signal(Signal::SIGHUP);
    // The new port opens before the old one closes.
    let answers = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
    for _ in 0..500 {
        if answers(9_618) && !answers(9_617) {
            break;
        }
        nix::poll::poll(&mut [], 10_u8).unwrap();
    }
    assert!(answers(9_618) && !answers(9_617));
    let said = gateway.stop();
    assert!(said.contains("\"message\":\"the reload is refused\"") && said.contains("SIGTERM"), "{said}");
    assert!(said.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()), "{said}");
    assert!(!place.folder.path().join("apportion-x.sock").exists());
}

/// Checks names, types and labels with Prometheus's own linter, where it is installed.
fn lint(answer: &str) {
    let (_, metrics) = answer.split_once("\r\n\r\n").unwrap();
    if !skip::unless_found(&["promtool"]) {
        return;
    }
    let mut command = Command::new("promtool");
    command.args(["check", "metrics"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    child.stdin().write_all(metrics.as_bytes()).unwrap();
    let out = child.output();
    let said = [out.stdout, out.stderr].concat();
    assert!(out.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

/// Checks that every metric in alerts exists, and that Prometheus reads the alerts, where it is installed.
fn check_alerts(metrics: &str) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/alerts.yml");
    let text = fs::read_to_string(file).unwrap();
    let is_of_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let names: Vec<&str> =
        text.split(|c| !is_of_name(c)).filter(|word| word.starts_with("apportion_gateway_")).collect();
    assert!(names.len() > 5, "{names:?}");
    for name in names {
        let is_sample = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        assert!(metrics.lines().any(is_sample), "{name} is not in\n{metrics}");
    }
    if skip::is_in_path("promtool") {
        let checked = child::output(Command::new("promtool").args(["check", "rules", file]));
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
    }
}

pub fn clients_that_are_silent_or_slow_delay_no_other() {
    let place = place();
    let path = place.write(PLAIN);
    let gateway = place.start(&path);
    let socket = place.folder.path().join("apportion-x.sock");
    // Half a request, and an empty connection.
    let mut slow = UnixStream::connect(&socket).unwrap();
    slow.write_all(b"POST /rel").unwrap();
    let _silent: Vec<_> = (0..30).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let prompt = |ask: &dyn Fn()| {
        let clock = Clock::start();
        ask();
        let took = clock.now().since(Time::ZERO);
        // Each request would take 150 ms and more if they were served in turn. The rest is margin for a busy
        // machine.
        assert!(took < Span::from_secs(2), "{took}");
    };
    let reload = || assert_eq!(place.ask(&["reload"], &path), (0, "nothing changed\n".into(), String::new()));
    prompt(&reload);
    // This is slower than any limit of a fifth of a second, and is still answered.
    nix::poll::poll(&mut [], 300_u16).unwrap();
    slow.write_all(b"oad HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 "), "{answer}");
    // More connections than are served at once.
    let _silent: Vec<_> = (0..200).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    let _reading: Vec<_> = (0..200).map(|_| TcpStream::connect("127.0.0.1:9617").unwrap()).collect();
    prompt(&reload);
    prompt(&|| assert!(get("/metrics").starts_with("HTTP/1.0 200 ")));
    gateway.stop();
}

pub fn a_second_gateway_of_the_same_title_is_refused() {
    let place = place();
    let path = place.write(PLAIN);
    let gateway = place.start(&path);
    use std::os::unix::fs::PermissionsExt as _;
    let socket = place.folder.path().join("apportion-x.sock");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let (status, _, error) = place.ask(&[], &path);
    assert!(status == 2 && error.contains("already running"), "{error}");
    // The first gateway goes on with a single capability: CAP_NET_ADMIN is bit 12.
    let process = fs::read_to_string(format!("/proc/{}/status", gateway.child.id())).unwrap();
    assert!(
        process.contains("CapEff:\t0000000000001000\n") && process.contains("NoNewPrivs:\t1\n"),
        "{process}"
    );
    assert_eq!(place.ask(&["stats"], &path).0, 0);
    gateway.stop();
}

pub fn the_log_may_have_no_reader() {
    let place = place();
    let path = place.write(PLAIN);
    let Silent { mut child, mut log } = place.start_unread(&path);
    let asked = |text: &str| {
        place.write(text);
        let folder = [place.folder.path().to_owned()];
        apportion_live::gateway::control::request(&folder, "x", "POST", "/reload").unwrap().0
    };
    // A few lines each, 200 kB in total.
    let other = PLAIN.replace("up.rate = \"10Mbit\"", "up.rate = \"20Mbit\"");
    for _ in 0..300 {
        assert_eq!((asked(&other), asked(PLAIN)), (200, 200));
    }
    child.signal(Signal::SIGTERM);
    assert!(child.wait().success());
    let mut said = String::new();
    log.read_to_string(&mut said).unwrap();
    assert!(said.len() < 70_000 && said.matches("\"message\":\"reloaded\"").count() > 50, "{}", said.len());
}
