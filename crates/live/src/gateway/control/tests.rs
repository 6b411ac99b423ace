//! Sockets, and reloads that the other thread does not answer.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::channel;

use apportion_linux::clock::pause;
use nix::sys::signal::raise;
use serde_json::json;

use super::*;
use crate::gateway::Gateway;
use crate::gateway::attacks::{Bench, HARDWARE, Memory, datagram, play};
use crate::gateway::run::Runner;
use crate::gateway::supervision::supervise;

mod changes;
mod customers;
mod work;

/// A gateway whose two threads take turns.
struct Place {
    folder: tempfile::TempDir,
    control: Control,
    runner: Runner<Memory>,
    orders: Receiver<Order>,
    now: Time,
}

impl Place {
    fn new() -> Self {
        Self::of(|_| RATES.to_owned())
    }

    /// A gateway with the configuration `text`, which gets the folder and lacks the interfaces.
    fn of(text: impl Fn(&Path) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.toml");
        let own = text(folder.path());
        let text = format!("inside = \"a\"\noutside = \"b\"\n{own}");
        fs::write(&path, &text).unwrap();
        let config = GatewayConfig::load(&text, &path).unwrap();
        let (sender, orders) = channel();
        let (control, shared) =
            Control::open(&path, &Catalog::default(), &config, folder.path(), sender).unwrap();
        let engine = Bench::of(config.clone()).engine;
        let gateway = Gateway { config, engine, hardware: HARDWARE, left_out: [0; 2] };
        let runner = Runner::new(gateway, shared);
        let mut place = Self { folder, control, runner, orders, now: Time::from_secs(1_000) };
        place.move_packets();
        place
    }

    /// Writes a file with this rate up, in Mb/s.
    fn write(&self, mbit: u64) {
        fs::write(self.folder.path().join("x.toml"), file(mbit)).unwrap();
    }

    /// Gives the thread that moves packets its turn.
    fn move_packets(&mut self) {
        assert_eq!(self.runner.round(&self.orders).unwrap(), None);
    }

    /// A client that sent a request, after a round of the control thread.
    fn ask(&mut self, request: &str) -> UnixStream {
        let mut client = UnixStream::connect(self.folder.path().join("apportion-x.sock")).unwrap();
        client.set_nonblocking(true).unwrap();
        write!(client, "{request} HTTP/1.0\r\n\r\n").unwrap();
        assert!(self.control.round(self.now));
        client
    }

    /// The client's input so far; empty if there is none.
    fn answer(&mut self, request: &str) -> String {
        got(&mut self.ask(request))
    }
}

/// The text of [`Bench`]'s file after the interfaces.
const RATES: &str = "up.rate = \"1Mbit\"\ndown.rate = \"1Mbit\"\n";

/// The text with this rate up.
fn file(mbit: u64) -> String {
    let rates = RATES.replacen('1', &mbit.to_string(), 1);
    format!("inside = \"a\"\noutside = \"b\"\n{rates}")
}

fn got(client: &mut UnixStream) -> String {
    let mut answer = String::new();
    let _ = client.read_to_string(&mut answer);
    answer
}

#[test]
fn clients_are_answered_while_a_reload_waits_for_a_thread_that_does_not_answer() {
    let mut place = Place::new();
    place.write(3);
    let mut first = place.ask("POST /reload");
    for health in ["frames pass\n", "has not reported for 3s\n", "has not reported for 6s\n"] {
        assert_eq!(got(&mut first), "");
        let answer = place.answer("GET /healthz");
        assert!(answer.ends_with(health), "{answer}");
        assert!(place.answer("GET /metrics").contains("reloads_total{result=\"applied\"} 0\n"));
        place.now += Span::from_secs(3);
    }
    let other = place.answer("POST /reload");
    assert!(other.starts_with("HTTP/1.0 409 ") && other.ends_with("being applied; try again\n"), "{other}");
    // The last moment, and one nanosecond later.
    place.now = Time::from_secs(1_010) - Span::from_nanos(1);
    assert!(place.control.round(place.now) && got(&mut first).is_empty());
    place.now += Span::from_nanos(1);
    assert!(place.control.round(place.now));
    let late = got(&mut first);
    assert!(late.starts_with("HTTP/1.0 409 ") && late.contains("not applied within 10 s"), "{late}");
    // There is only one order at a time.
    assert!(place.answer("POST /reload").ends_with("restart the gateway if this lasts\n"));
    assert!(place.answer("GET /stats.json").contains("\"refused\": 3"));
    assert_eq!(place.orders.try_iter().count(), 1);
}

#[test]
fn what_is_served_says_how_long_the_thread_that_moves_packets_stands_still() {
    let mut place = Place::new();
    let served = |place: &mut Place| {
        let (stats, metrics) = (place.answer("GET /stats.json"), place.answer("GET /metrics"));
        let stats: serde_json::Value = serde_json::from_str(stats.split_once("\r\n\r\n").unwrap().1).unwrap();
        let age = metrics.lines().find_map(|line| line.strip_prefix("apportion_gateway_turn_age_seconds "));
        assert_eq!(stats["turn_age_seconds"].as_f64(), age.map(|age| age.parse().unwrap()));
        (stats["turn_age_seconds"].as_f64(), stats["obstacles"].clone())
    };
    assert_eq!(served(&mut place), (Some(0.0), json!([])));
    // The thread counts as moving packets for up to 2 s.
    for (millis, obstacles) in [
        (2_000, json!([])),
        (2_001, json!(["the thread that moves packets has not reported for 2001ms"])),
        (63_000, json!(["the thread that moves packets has not reported for 63s"])),
    ] {
        place.now = Time::from_secs(1_000) + Span::from_millis(millis);
        // The encoded answer is used while its age in whole seconds is the same.
        place.control.written = place.control.written.take().filter(|_| millis != 2_001);
        assert_eq!(served(&mut place), (Some(millis as f64 / 1e3), obstacles));
    }
    while place.runner.gateway.now() < Time::from_secs(1) {
        place.move_packets();
    }
    assert_eq!(served(&mut place), (Some(0.0), json!([])));
}

#[test]
fn a_reload_is_answered_once_it_is_applied_and_a_signal_meanwhile_reads_the_file_again() {
    let mut place = Place::new();
    place.write(3);
    let mut first = place.ask("POST /reload");
    place.write(4);
    // Two signals cause one reload.
    for _ in 0..2 {
        raise(Signal::SIGHUP).unwrap();
        assert!(place.control.round(place.now));
    }
    assert_eq!(got(&mut first), "");
    place.move_packets();
    assert!(place.control.round(place.now));
    assert!(got(&mut first).ends_with("\r\n\r\nup.rate: 1Mbit -> 3Mbit\n"));
    place.move_packets();
    let stats = place.answer("GET /stats.json");
    assert!(stats.contains("\"applied\": \"up.rate: 3Mbit -> 4Mbit\\n\""), "{stats}");
    assert!(stats.contains("\"applied\": 2,") && place.orders.try_recv().is_err(), "{stats}");
}

#[test]
fn a_reload_that_is_applied_late_counts_and_the_next_one_is_ordered() {
    let mut place = Place::new();
    place.write(3);
    let mut first = place.ask("POST /reload");
    place.now += TO_APPLY;
    assert!(place.control.round(place.now) && got(&mut first).contains("not applied within"));
    place.move_packets();
    let stats = place.answer("GET /stats.json");
    assert!(stats.contains("\"applied\": 1,") && stats.contains("\"refused\": 1"), "{stats}");
    place.write(5);
    let mut next = place.ask("POST /reload");
    place.move_packets();
    assert!(place.control.round(place.now));
    assert!(got(&mut next).ends_with("up.rate: 3Mbit -> 5Mbit\n"));
}

#[test]
fn a_client_that_waits_for_a_reload_is_answered_when_the_gateway_stops() {
    let mut place = Place::new();
    let mut first = place.ask("POST /reload");
    raise(Signal::SIGTERM).unwrap();
    assert!(!place.control.round(place.now));
    let answer = got(&mut first);
    assert!(answer.starts_with("HTTP/1.0 503 Service Unavailable\r\n"), "{answer}");
}

#[test]
fn titles_that_look_alike_have_sockets_of_their_own() {
    assert_eq!(socket_name("home-1.a_b"), "apportion-home-1.a_b.sock");
    let long = "x".repeat(41);
    let names = ["a_b", "a b", "a/b", &long, &long[1..], "\u{e4}"].map(socket_name);
    for (at, name) in names.iter().enumerate() {
        assert!(!names[..at].contains(name) && name.len() <= 72 && name.is_ascii(), "{name}");
        assert!(!name.contains('/') && !name.contains(' '), "{name}");
    }
}

#[test]
fn one_that_does_not_start_leaves_no_socket_behind() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\nup.rate = \"1Mbit\"\ndown.rate = \"1Mbit\"\nmetrics = \"{}\"\n",
        taken.local_addr().unwrap()
    );
    let path = folder.path().join("x.toml");
    let config = GatewayConfig::load(&text, &path).unwrap();
    let error = Control::open(&path, &Catalog::default(), &config, folder.path(), channel().0).unwrap_err();
    assert!(matches!(error, ControlError::Metrics { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_gateway_that_does_not_answer_is_distinguished_from_one_that_does_not_run() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let paths = [folders[0].path().to_owned(), folders[1].path().to_owned()];
    let error = request(&paths, "x", "GET", "/").unwrap_err().to_string();
    for path in &paths {
        let line = format!("  {}/apportion-x.sock: No such file", path.display());
        assert!(error.contains(&line), "{error}");
    }
    let listener = UnixListener::bind(paths[1].join("apportion-x.sock")).unwrap();
    let dropping = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let error = request(&paths, "x", "GET", "/").unwrap_err();
    assert!(matches!(&error, ControlError::NoAnswer { path, .. } if path.starts_with(&paths[1])), "{error}");
    let error = error.to_string();
    assert!(error.contains("runs, but did not answer at") && !error.contains("No such file"), "{error}");
    dropping.join().unwrap();
}

#[test]
fn what_was_applied_is_reported_even_if_something_else_is_read_back() {
    let changes = "up.rate: 1Mbit -> 2Mbit\nup.delay: 0s -> 1ms\n".to_owned();
    assert_eq!(outcome(changes.clone(), Ok(())), Ok(changes.clone()));
    let said = outcome(changes.clone(), Err("up.rate is 1Mbit, not 2Mbit\n".to_owned())).unwrap_err();
    let lines: Vec<_> = said.lines().collect();
    assert_eq!((lines.len(), lines[1], lines[2]), (5, "up.rate is 1Mbit, not 2Mbit", "applied:"));
    assert!(said.ends_with(&changes), "{said}");
}

#[test]
fn a_control_thread_that_panicked_answers_again_and_is_counted() {
    let Place { folder, mut control, mut runner, orders, .. } = Place::new();
    let restarts = Arc::clone(&control.shared.restarts);
    let (mut runs, began) = (0, Clock::start());
    let serve = move || {
        runs += 1;
        assert!(runs > 2, "run {runs}");
        control.run()
    };
    supervise("control", Arc::clone(&restarts), serve).unwrap();
    while restarts.load(Ordering::Relaxed) < 2 && began.now() < Time::from_secs(20) {
        pause(Span::from_millis(10));
    }
    // The thread that moves packets does this all the time.
    assert_eq!(runner.round(&orders).unwrap(), None);
    let (status, metrics) = request(&[folder.path().to_owned()], "x", "GET", "/metrics").unwrap();
    assert!(status == 200 && metrics.contains("\napportion_gateway_thread_restarts_total 2\n"), "{metrics}");
}

#[test]
fn an_application_is_notified_within_200_ms_of_an_overload() {
    // A film of 0.6 Mb/s on 1 Mb/s; from 3.03 to 5.6 s the same ports send 2 Mb/s more than that.
    let film = |_| datagram([[10, 0, 0, 5], [198, 51, 100, 7]], [40_000, 5_004], 986);
    let text = |folder: &Path| {
        format!(
            "notifications = \"{}\"\nup.rate = \"1Mbit\"\nup.queue = \"ramp\"\ndown.rate = \"1Mbit\"\n[[rule]]\nname = \"film\"\n\
             class = \"real_rate\"\nto_port = 5004\n",
            folder.join("notifications").display()
        )
    };
    let mut place = Place::of(text);
    let engine = &mut place.runner.gateway.engine;
    for (times, rate) in [([0, 9_000], 75), ([3_030, 5_600], 250)] {
        play(engine, 0, times.map(Time::from_millis), rate, film);
    }
    let mut client = UnixStream::connect(place.folder.path().join("notifications")).unwrap();
    client.set_nonblocking(true).unwrap();
    let (mut lines, mut said) = (Vec::new(), String::new());
    while place.runner.gateway.now() < Time::from_secs(9) {
        place.move_packets();
        assert!(place.control.round(place.now));
        let _ = client.read_to_string(&mut said);
        let now = place.runner.gateway.now();
        lines.extend(std::mem::take(&mut said).lines().map(|line| (now, line.to_owned())));
    }
    let (greeting, notices) = lines.split_first().unwrap();
    assert_eq!(greeting.1, format!("{{\"title\":\"x\",\"version\":\"{}\"}}", env!("CARGO_PKG_VERSION")));
    let (at, first) = &notices[0];
    assert!(*at > Time::from_millis(3_030) && *at <= Time::from_millis(3_230), "{at} {first}");
    assert!(first.contains("\"rule\":\"film\"") && first.contains("\"is_over\":false"), "{first}");
    assert!(first.contains("\"from\":\"10.0.0.5\",\"from_port\":40000,"), "{first}");
    // One a second, and one that the overload is over.
    let over = notices.iter().filter(|(_, line)| line.contains("\"is_over\":true")).count();
    assert!((3..=5).contains(&notices.len()) && over == 1, "{notices:?}");

    let metrics = place.answer("GET /metrics");
    let labels = "{direction=\"up\",rule=\"film\",flow=\"udp 10.0.0.5:40000 > 198.51.100.7:5004\"}";
    let value = |name: &str| {
        let found = metrics.lines().find_map(|line| line.strip_prefix(&format!("apportion_gateway_{name} ")));
        found.unwrap_or_else(|| panic!("{name}\n{metrics}")).parse::<f64>().unwrap()
    };
    // 75 packets of 1000 bytes.
    let allocation = value(&format!("real_rate_allocation_bytes_per_second{labels}"));
    assert!((allocation / 75e3 - 1.0).abs() < 0.1, "{allocation}");
    assert_eq!(value(&format!("real_rate_notifications_total{labels}")), notices.len() as f64);
    assert_eq!((value("notification_readers"), value("notifications_lost_total")), (1.0, 0.0));
    assert_eq!(value("real_rate_flows{direction=\"up\"}"), 1.0);
}

#[test]
fn a_socket_for_notifications_replaces_none_that_is_used_and_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| {
        let text = format!("notifications = \"{}\"\n{RATES}", folder.path().join(name).display());
        let text = format!("inside = \"a\"\noutside = \"b\"\n{text}");
        let config = GatewayConfig::load(&text, &folder.path().join("x.toml")).unwrap();
        let (path, catalog) = (folder.path().join("x.toml"), Catalog::default());
        Control::open(&path, &catalog, &config, folder.path(), channel().0)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    fs::write(folder.path().join("file"), "kept").unwrap();
    for name in ["file", "no/such/folder"] {
        let error = open(name).unwrap_err();
        assert!(
            error.contains(": cannot listen there: ") && error.ends_with("in a folder that exists"),
            "{error}"
        );
    }
    assert_eq!(fs::read_to_string(folder.path().join("file")).unwrap(), "kept");
    let used = UnixListener::bind(folder.path().join("used")).unwrap();
    assert!(open("used").is_err());
    // A killed gateway left it behind.
    drop(used);
    assert_eq!(open("used"), Ok(()));
}

#[test]
fn the_largest_flows_their_entitlements_and_their_history_are_served() {
    // Each of the first two flows wants more than the rate; the third sends 5 packets of 1000 bytes a second.
    let flow = |port| move |_| datagram([[10, 0, 0, 5], [198, 51, 100, 7]], [40_000, port], 986);
    let rule = |name: &str, weight: u64, port: u64| {
        format!("[[rule]]\nname = \"{name}\"\nweight = {weight}\nto_port = {port}\n")
    };
    let rules = rule("one", 1, 5_001) + &rule("three", 3, 5_002);
    let text = format!(
        "up = {{ rate = \"1Mbit\", queue = {{ kind = \"drr\", limit = \"50p\" }}, delay = \"300ms\" }}\ndown.rate = \"1Mbit\"\n{rules}"
    );
    let mut place = Place::of(|_| text.clone());
    for (port, rate) in [(5_001, 200), (5_002, 200), (5_003, 5)] {
        let engine = &mut place.runner.gateway.engine;
        play(engine, 0, [Time::ZERO, Time::from_secs(9)], rate, flow(port));
    }
    while place.runner.gateway.now() < Time::from_millis(6_050) {
        place.move_packets();
        assert!(place.control.round(place.now));
    }
    let body = |answer: String| -> serde_json::Value {
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let stats = body(place.answer("GET /stats.json"));
    let up = &stats["traffic"]["up"];
    let flows = up["flows"].as_array().unwrap();
    let rules: Vec<_> = flows.iter().map(|flow| flow["rule"].as_str().unwrap()).collect();
    assert_eq!(rules, ["three", "one", "unmatched"], "{up:#}");
    // One flow wants 5 of 125 kB/s; the others get 120 by 3:1.
    for (flow, expected) in flows.iter().zip([90e3, 30e3, 5e3]) {
        let near = |key: &str, within: f64| {
            let value = flow[key].as_f64().unwrap();
            assert!((value / expected - 1.0).abs() < within, "{key} {flow:#}");
        };
        near("entitlement_bytes_per_second", 1e-9);
        // A second may have one packet more or less.
        near("bytes_per_second", 0.05);
    }
    // Some of 50 packets of 8 ms each wait before it; the wire's 300 ms do not count.
    let sojourn = &up["sojourn_seconds"];
    let [median, most] = ["0.5", "0.95"].map(|share| sojourn[share].as_f64().unwrap());
    assert!(median > 0.1 && most >= median && most < 0.3, "{sojourn}");

    let number = flows[0]["number"].as_u64().unwrap();
    let history = body(place.answer(&format!("GET /history?flow={number}")));
    let rates = history["bytes_per_second"].as_array().unwrap();
    assert_eq!((&history["rule"], &history["direction"]), (&json!("three"), &json!("up")));
    assert_eq!(rates.len(), history["at"].as_array().unwrap().len());
    assert!((5..=6).contains(&rates.len()) && rates[4] == flows[0]["bytes_per_second"], "{history}");
    let all = body(place.answer("GET /history"));
    assert_eq!(all["directions"]["up"]["rate_bytes_per_second"][2], json!(125_000));
    for (path, status) in [("/history?flow=99", "404"), ("/history?flow=x", "400"), ("/history?x", "400")] {
        let answer = place.answer(&format!("GET {path}"));
        assert!(answer.starts_with(&format!("HTTP/1.0 {status} ")), "{answer}");
    }
}

#[test]
fn all_that_look_between_two_snapshots_have_one_answer_and_a_reload_is_in_the_next() {
    let mut place = Place::new();
    let first = place.answer("GET /stats.json");
    let (of, age, text) = place.control.written.clone().unwrap();
    assert!(first.ends_with(&text) && Arc::ptr_eq(&of, &place.control.snapshot().unwrap()));
    place.control.written = Some((of, age, "written before\n".to_owned()));
    assert!(place.answer("GET /stats.json").ends_with("\r\n\r\nwritten before\n"));
    place.write(3);
    let _client = place.ask("POST /reload");
    place.move_packets();
    assert!(place.control.round(place.now));
    let next = place.answer("GET /stats.json");
    assert!(next.contains("\"applied\": 1,") && !next.contains("written before"), "{next}");
    while place.runner.gateway.now() < Time::from_secs(1) {
        place.move_packets();
    }
    assert_ne!(place.answer("GET /stats.json"), next);
}

#[test]
fn reloads_are_events() {
    let mut place = Place::new();
    place.write(3);
    let _client = place.ask("POST /reload");
    place.move_packets();
    assert!(place.control.round(place.now));
    fs::write(place.folder.path().join("x.toml"), "wrong").unwrap();
    assert!(place.answer("POST /reload").starts_with("HTTP/1.0 409 "));
    let events = place.control.history.events(9);
    let kinds: Vec<_> = events.as_array().unwrap().iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds, ["reload", "reload refused"]);
    assert_eq!(events[0]["what"], "up.rate: 1Mbit -> 3Mbit\n");
}

#[test]
fn the_page_is_served_with_a_policy_that_lets_it_run_and_ask_this_gateway_only() {
    let page = Place::new().answer("GET /");
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\nContent-Security-Policy: default-src 'none'; script-src 'sha256-"), "{head}");
    assert!(head.contains("connect-src 'self'") && !head.contains("unsafe"), "{head}");
    assert!(
        head.contains("\r\nContent-Type: text/html; charset=utf-8\r\n")
            && body == crate::gateway::page::PAGE.html()
    );
}

#[test]
fn the_dashboard_asks_for_metrics_that_are_served() {
    let dashboard = include_str!("../../../../../dist/grafana/apportion.json");
    let text = format!("{RATES}[[rule]]\nname = \"all\"\n");
    let mut place = Place::of(|_| text.clone());
    let engine = &mut place.runner.gateway.engine;
    let frame = |_| datagram([[10, 0, 0, 5], [198, 51, 100, 7]], [40_000, 5_001], 986);
    play(engine, 0, [Time::ZERO, Time::from_secs(1)], 10, frame);
    while place.runner.gateway.now() < Time::from_secs(1) {
        place.move_packets();
    }
    let metrics = place.answer("GET /metrics");
    let mut names = 0;
    for (at, _) in dashboard.match_indices("apportion_gateway_") {
        let name = &dashboard[at..];
        let name = &name[..name.find(|c: char| c != '_' && !c.is_ascii_lowercase()).unwrap()];
        assert!(
            metrics.contains(&format!("\n{name}{{")) || metrics.contains(&format!("\n{name} ")),
            "{name}"
        );
        names += 1;
    }
    assert!(names > 15, "{names}");
    serde_json::from_str::<serde_json::Value>(dashboard).unwrap();
}
