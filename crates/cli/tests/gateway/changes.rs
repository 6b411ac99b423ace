//! Changes of a gateway that runs, by HTTP.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use crate::place::{PLAIN, Place, get, place};

const TOKEN: &str = "fedcba9876543210";

/// A file with a token of this mode.
fn write(place: &Place, mode: u32) -> PathBuf {
    let token = place.folder.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(mode)).unwrap();
    let control = format!("control = true\ncontrol_token = \"{}\"\n", token.display());
    place.write(&format!("{PLAIN}{control}[[rule]]\nname = \"calls\"\nto_port = 5004\n"))
}

/// Status and body of the answer to this change.
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
    // What it was made against runs no more.
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
