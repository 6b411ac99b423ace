//! Changes of a running gateway by HTTP.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_testing::processes::judge_by_time;
use serde_json::{Value, json};

use super::load::Busy;
use super::place::{PLAIN, Place, get, place};

const TOKEN: &str = "fedcba9876543210";

/// Writes a file with a token, with this mode.
fn write(place: &Place, mode: u32) -> PathBuf {
    let control = format!("control = true\n{}", token(place, mode));
    place.write(&format!("{PLAIN}{control}[[rule]]\nname = \"calls\"\nto_port = 5004\n"))
}

/// Configuration key that names a token file of this mode.
fn token(place: &Place, mode: u32) -> String {
    let token = place.folder.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(mode)).unwrap();
    format!("control_token = \"{}\"\n", token.display())
}

/// Status and body of the answer to a change.
fn change(token: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect("127.0.0.1:9617").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    write!(
        stream,
        "POST /change HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    (answer[9..12].parse().unwrap(), answer.split_once("\r\n\r\n").unwrap().1.to_owned())
}

fn read(path: &str) -> Value {
    serde_json::from_str(get(path).split_once("\r\n\r\n").unwrap().1).unwrap()
}

pub fn a_change_by_http_is_shown_and_applied_and_the_file_stays() {
    let place = place();
    let path = write(&place, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    let gateway = place.start(&path);
    let revision = read("/control")["revision"].clone();
    let set = json!({ "rule.calls.weight": 4, "down.queue": "fq_codel" });
    let mut body = json!({ "revision": revision, "set": set });
    assert_eq!(change("fedcba9876543211", &body.to_string()).0, 401);
    assert_eq!(change(TOKEN, "{").0, 400);
    let unknown = json!({ "revision": revision, "set": { "down.queue": "fq_kodel" } });
    let (status, said) = change(TOKEN, &unknown.to_string());
    assert!(status == 400 && said.starts_with("down.queue: `fq_kodel` is not known here"), "{said}");

    let shown: Value = serde_json::from_str(&change(TOKEN, &body.to_string()).1).unwrap();
    assert_eq!(shown["changes"][1], "rule.calls.weight: 1.0 -> 4.0", "{shown}");
    assert_eq!(read("/control")["revision"], revision);
    body["confirm"] = shown["confirm"].clone();
    let (status, done) = change(TOKEN, &body.to_string());
    let done: Value = serde_json::from_str(&done).unwrap_or_else(|_| panic!("{status} {done}"));
    assert_eq!((&done["applied"], &done["changes"]), (&json!(true), &shown["changes"]));
    // The configuration that the change was made against runs no more.
    assert_eq!(change(TOKEN, &body.to_string()).0, 409);

    let (_, runs, _) = place.ask(&["show", "--running"], &path);
    assert!(runs.contains("weight = 4.0\n") && runs.contains("queue = { kind = \"fq_codel\""), "{runs}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let events = read("/stats.json")["events"].to_string();
    assert!(events.contains("\"kind\":\"change\"") && events.contains("rule.calls.weight"), "{events}");
    let (status, out, error) = place.ask(&["reload"], &path);
    assert!(status == 0 && out.contains("rule.calls.weight: 4.0 -> 1.0"), "{out}{error}");
    let log = gateway.stop();
    assert!(log.contains("changed from the page") && log.contains("a change with a wrong token"), "{log}");
    assert!(!log.contains(TOKEN));
}

pub fn a_token_that_others_can_read_ends_with_status_2() {
    let place = place();
    let path = write(&place, 0o644);
    for arguments in [&["check"][..], &[]] {
        let (status, _, said) = place.ask(arguments, &path);
        assert!(
            status == 2 && said.contains("control_token: ") && said.contains("write chmod 600"),
            "{status} {said}"
        );
    }
}

/// Two rules, `one` and `other`, whose flows have the same weight.
const RULES: &str = "[[rule]]\nname = \"one\"\nto_port = 5001\n[[rule]]\nname = \"other\"\nto_port = 5002\n";
/// Capacity of the link in bytes/s; each flow below would fill it.
const CAPACITY: f64 = 10e6 / 8.0;

/// Time until the flows of both rules have their entitlements, these parts of the link, within 5 %.
fn shared_after(part: [f64; 2]) -> Span {
    let (clock, limit) = (Clock::start(), Time::from_secs(20));
    loop {
        let stats = read("/stats.json");
        let flows = &stats["traffic"]["up"]["flows"];
        let is_shared = ["one", "other"].into_iter().zip(part).all(|(rule, part)| {
            let flow = flows.as_array().into_iter().flatten().find(|flow| flow["rule"] == rule);
            let of = |key: &str| flow.and_then(|flow| flow[key].as_f64()).unwrap_or(0.0);
            let due = CAPACITY * part;
            let (rate, entitled) = (of("bytes_per_second"), of("entitlement_bytes_per_second"));
            (entitled / due - 1.0).abs() < 0.01 && (rate / entitled - 1.0).abs() < 0.05
        });
        let now = clock.now();
        if is_shared {
            return now.since(Time::ZERO);
        }
        assert!(now < limit, "{:#}", stats["traffic"]["up"]);
        pause(Span::from_millis(50));
    }
}

pub fn a_weight_that_is_set_by_http_moves_the_shares_within_3_s() {
    judge_by_time();
    let place = place();
    let control = format!("control = true\n{}", token(&place, 0o600));
    let plain = PLAIN.replace("up.rate = \"10Mbit\"", "up = { rate = \"10Mbit\", queue = \"drr\" }");
    let gateway = place.start(&place.write(&format!("{plain}{control}{RULES}")));
    // 18 Mb/s per flow.
    let flows = ["10.0.0.2:5001", "10.0.0.2:5002"].map(|to| ["10.0.0.1:0".to_owned(), to.to_owned()]);
    let load = Busy::datagrams(&place.hosts[0], 9, flows.to_vec());
    shared_after([0.5, 0.5]);

    let mut body = json!({ "revision": read("/control")["revision"], "set": { "rule.one.weight": 3 } });
    assert_eq!(change("fedcba9876543211", &body.to_string()).0, 401);
    let shown: Value = serde_json::from_str(&change(TOKEN, &body.to_string()).1).unwrap();
    assert_eq!(shown["changes"], json!(["rule.one.weight: 1.0 -> 3.0"]));
    body["confirm"] = shown["confirm"].clone();
    // A preview does not replace the token.
    assert_eq!(change("fedcba9876543211", &body.to_string()).0, 401);
    shared_after([0.5, 0.5]);
    let (status, done) = change(TOKEN, &body.to_string());
    assert!(status == 200 && done.contains("\"applied\":true"), "{status} {done}");
    let took = shared_after([0.75, 0.25]);
    assert!(took < Span::from_secs(3), "{took}");
    drop(load);
    gateway.stop();
}

pub fn nothing_is_set_where_control_is_off() {
    let place = place();
    let off = format!("control = false\n{}", token(&place, 0o600));
    for keys in ["", &off] {
        let gateway = place.start(&place.write(&format!("{PLAIN}{keys}{RULES}")));
        let stats = read("/stats.json");
        assert_eq!(stats["control"]["on"], json!(false));
        let body = json!({ "revision": stats["control"]["revision"], "set": { "rule.one.weight": 3 } });
        let (status, said) = change(TOKEN, &body.to_string());
        assert!(status == 404 && said.starts_with("control is off: "), "{status} {said}");
        assert!(get("/control").starts_with("HTTP/1.0 404 "));
        let (_, runs, _) = place.ask(&["show", "--running"], &place.folder.path().join("x.toml"));
        assert!(!runs.contains("weight = 3"), "{runs}");
        gateway.stop();
    }
}
