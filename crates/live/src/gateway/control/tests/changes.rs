//! Changes from the page.

use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::*;

const TOKEN: &str = "0123456789abcdef0123";

/// A gateway with a token, and with `own` after interfaces and addresses.
fn place(own: &str) -> Place {
    Place::of(|folder| {
        let token = folder.join("token");
        fs::write(&token, format!("{TOKEN}\n")).unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        format!("{}control = true\ncontrol_token = \"{}\"\n{own}", metrics(), token.display())
    })
}

/// A free address.
fn metrics() -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("metrics = \"{}\"\n", free.local_addr().unwrap())
}

/// A client of the page that sent this request.
fn send(place: &mut Place, request: &str) -> TcpStream {
    let address = place.control.readers.listener().unwrap().local_addr().unwrap();
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(request.as_bytes()).unwrap();
    client.set_nonblocking(true).unwrap();
    assert!(place.control.round(place.now));
    client
}

fn posted(fields: &str, body: &Value) -> String {
    let body = body.to_string();
    format!(
        "POST /change HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Status and body of the answer to this request, after a turn of both threads.
fn asked(place: &mut Place, request: &str) -> (u16, String) {
    let mut client = send(place, request);
    place.move_packets();
    assert!(place.control.round(place.now));
    let mut answer = String::new();
    let _ = client.read_to_string(&mut answer);
    let (head, body) =
        answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{request}: no answer: {answer}"));
    (head[9..12].parse().unwrap(), body.to_owned())
}

fn fields(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\nContent-Type: application/json; charset=utf-8\r\n")
}

/// Sends this change with the token.
fn change(place: &mut Place, body: &Value) -> (u16, String) {
    asked(place, &posted(&fields(TOKEN), body))
}

fn revision(place: &mut Place) -> String {
    let stats: Value =
        serde_json::from_str(place.answer("GET /stats.json").split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(stats["control"]["on"], json!(true));
    stats["control"]["revision"].as_str().unwrap().to_owned()
}

/// Previews a change and applies it. Returns the changes.
fn apply(place: &mut Place, set: &Value) -> Value {
    let mut body = json!({ "revision": revision(place), "set": set });
    let (status, shown) = change(place, &body);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((status, &shown["applied"]), (200, &json!(false)), "{shown}");
    body["confirm"] = shown["confirm"].clone();
    let (status, done) = change(place, &body);
    let done: Value = serde_json::from_str(&done).unwrap_or_else(|_| panic!("{status} {done}"));
    assert_eq!(
        (status, &done["applied"], &done["changes"]),
        (200, &json!(true), &shown["changes"]),
        "{done}"
    );
    assert_eq!(done["revision"], json!(revision(place)));
    done["changes"].clone()
}

const DIVIDED: &str = "up = { rate = \"1Mbit\", queue = { kind = \"drr\", limit = \"50p\" } }\ndown.rate = \"1Mbit\"\n\
    [[rule]]\nname = \"one\"\nto_port = 5001\n[[rule]]\nname = \"other\"\nto_port = 5002\n";

/// The share of the first rule in the last second.
fn share(place: &mut Place, until: Time) -> f64 {
    while place.runner.gateway.now() < until {
        place.move_packets();
        assert!(place.control.round(place.now));
    }
    let latest = place.control.history.latest();
    let flows = latest["up"]["flows"].as_array().unwrap();
    let of = |name: &str| {
        flows.iter().find(|flow| flow["rule"] == name).unwrap()["bytes_per_second"].as_f64().unwrap()
    };
    of("one") / (of("one") + of("other"))
}

#[test]
fn a_weight_that_is_set_moves_the_shares_and_a_reload_takes_it_back() {
    let mut place = place(DIVIDED);
    for port in [5_001, 5_002] {
        let flow = move |_| datagram([[10, 0, 0, 5], [198, 51, 100, 7]], [40_000, port], 986);
        play(&mut place.runner.gateway.engine, 0, [Time::ZERO, Time::from_secs(20)], 200, flow);
    }
    let near = |share: f64, due: f64| assert!((share / due - 1.0).abs() < 0.05, "{share} of {due}");
    near(share(&mut place, Time::from_millis(4_050)), 0.5);
    let file = fs::read_to_string(place.folder.path().join("x.toml")).unwrap();
    // A preview changes nothing.
    let body = json!({ "revision": revision(&mut place), "set": { "rule.one.weight": 3 } });
    assert!(change(&mut place, &body).1.contains("\"changes\":[\"rule.one.weight: 1.0 -> 3.0\"]"));
    near(share(&mut place, Time::from_millis(6_050)), 0.5);
    assert_eq!(apply(&mut place, &json!({ "rule.one.weight": 3 })), json!(["rule.one.weight: 1.0 -> 3.0"]));
    near(share(&mut place, Time::from_millis(9_050)), 0.75);
    assert_eq!(fs::read_to_string(place.folder.path().join("x.toml")).unwrap(), file);
    let events = place.control.history.events(9);
    assert_eq!(
        (&events[0]["kind"], &events[0]["what"]),
        (&json!("change"), &json!("rule.one.weight: 1.0 -> 3.0\n"))
    );
    assert!(place.answer("GET /metrics").contains("changes_total{result=\"applied\"} 1\n"));

    let mut reload = place.ask("POST /reload");
    place.move_packets();
    assert!(place.control.round(place.now));
    assert!(got(&mut reload).ends_with("rule.one.weight: 3.0 -> 1.0\n"));
    near(share(&mut place, Time::from_millis(12_050)), 0.5);
}

#[test]
fn rates_and_queues_are_set_together_and_offered_as_they_are() {
    let mut place = place(DIVIDED);
    let set = json!({ "up.rate": "2Mbit", "down.queue": { "kind": "fq_codel" }, "up.queue": "{ kind = \"stfq\" }" });
    let changes = apply(&mut place, &set);
    assert_eq!(changes.as_array().unwrap().len(), 3, "{changes}");
    assert_eq!(place.runner.gateway.config().up.rate.to_string(), "2Mbit");
    let (status, offered) = asked(&mut place, "GET /control HTTP/1.1\r\n\r\n");
    let offered: Value = serde_json::from_str(&offered).unwrap();
    assert_eq!((status, &offered["revision"]), (200, &json!(revision(&mut place))));
    let set = &offered["set"];
    assert_eq!((&set["up.rate"], &set["rule.one.weight"]), (&json!("2Mbit"), &json!(1.0)));
    assert!(set["up.queue"].as_str().unwrap().starts_with("{ kind = \"stfq\""), "{set}");
    // A value that is set already is no change, and cannot be confirmed.
    let body = json!({ "revision": revision(&mut place), "set": set });
    let same: Value = serde_json::from_str(&change(&mut place, &body).1).unwrap();
    assert_eq!((&same["changes"], &same["confirm"]), (&json!([]), &Value::Null));
}

#[test]
fn control_is_off_unless_the_file_says_otherwise() {
    let mut place = Place::of(|_| format!("{}{RATES}", metrics()));
    let body = json!({ "revision": "", "set": { "up.rate": "2Mbit" } });
    for request in [posted(&fields(TOKEN), &body), "GET /control HTTP/1.1\r\n\r\n".to_owned()] {
        let (status, said) = asked(&mut place, &request);
        assert!(
            status == 404 && said.starts_with("control is off: ") && said.contains("control = true"),
            "{said}"
        );
    }
    assert!(place.answer("GET /stats.json").contains("\"on\": false"));
}

#[test]
fn what_may_not_change_something_is_told_why() {
    let mut place = place(DIVIDED);
    let body = json!({ "revision": revision(&mut place), "set": { "up.rate": "2Mbit" } });
    let json = "Content-Type: application/json\r\n";
    let bearer = format!("Authorization: Bearer {TOKEN}\r\n");
    for (fields, status, expected) in [
        (json.to_owned(), 401, "a change needs the token"),
        (format!("{json}Authorization: Basic {TOKEN}\r\n"), 401, "a change needs the token"),
        (format!("{json}Authorization: Bearer {TOKEN}4\r\n"), 401, "this is not the token"),
        (format!("{json}Authorization: Bearer {}\r\n", &TOKEN[1..]), 401, "this is not the token"),
        (bearer.clone(), 415, "send it with Content-Type: application/json"),
        (format!("{bearer}Content-Type: text/plain\r\n"), 415, "a change is JSON"),
        (format!("{bearer}{json}Sec-Fetch-Site: cross-site\r\n"), 403, "a page of another site"),
        (format!("{bearer}{json}Sec-Fetch-Site: same-origin\r\n"), 200, "{\"applied\":false"),
    ] {
        let (found, said) = asked(&mut place, &posted(&fields, &body));
        assert!(found == status && said.contains(expected), "{fields}: {found} {said}");
    }
    let foreign = posted(&(bearer + json), &body).replace("localhost", "example.com");
    assert_eq!(asked(&mut place, &foreign).0, 421);
    assert_eq!(asked(&mut place, "OPTIONS /change HTTP/1.1\r\nHost: localhost\r\n\r\n").0, 405);
    // The socket for commands takes no token, and no changes.
    assert!(place.answer("POST /change").starts_with("HTTP/1.0 405 "));
    for _ in 0..20 {
        let _ = asked(&mut place, &posted(&fields("wrong"), &body));
    }
    assert_eq!(asked(&mut place, &posted(&fields("wrong"), &body)).0, 429);
    assert_eq!(change(&mut place, &body).0, 200, "the owner is not locked out");
    assert_eq!(place.runner.gateway.config().up.rate.to_string(), "1Mbit");
}

#[test]
fn a_change_that_is_wrong_is_told_the_key_and_the_mend() {
    let mut place = place(DIVIDED);
    let own = revision(&mut place);
    for (body, status, expected) in [
        (json!([]), 400, "the body is no JSON object; write for example"),
        (json!({ "set": { "up.rate": "2Mbit" } }), 400, "revision: missing; write the one of /control"),
        (json!({ "revision": 7, "set": {} }), 400, "revision: it is no string"),
        (json!({ "revision": own }), 400, "set: missing; write for example"),
        (json!({ "revision": own, "set": [] }), 400, "set: it is no object"),
        (json!({ "revision": own, "set": {} }), 400, "set: 0 keys; write 1 to 64"),
        (
            json!({ "revision": own, "set": {}, "confrim": "" }),
            400,
            "confrim: unknown key (did you mean `confirm`?)",
        ),
        (
            json!({ "revision": own, "set": { "up.rat": "2Mbit" } }),
            400,
            "up.rat: cannot be set while the gateway runs (did you mean `up.rate`?)",
        ),
        (json!({ "revision": own, "set": { "inside": "c" } }), 400, "inside: cannot be set"),
        (
            json!({ "revision": own, "set": { "control_token": "/etc/passwd" } }),
            400,
            "control_token: cannot be set",
        ),
        (json!({ "revision": own, "set": { "up.rate": 2 } }), 400, "up.rate: `2` "),
        (json!({ "revision": own, "set": { "rule.one.weight": -1 } }), 400, "rule.one.weight: "),
        (json!({ "revision": own, "set": { "up.queue": "drrr" } }), 400, "up.queue: "),
        (json!({ "revision": own, "set": { "up.queue": { "kind": "nosuch" } } }), 400, "up.queue.kind: "),
        (
            json!({ "revision": "0", "set": { "up.rate": "2Mbit" } }),
            409,
            "revision: the configuration has changed since",
        ),
        (
            json!({ "revision": own, "set": { "up.rate": "2Mbit" }, "confirm": "0" }),
            409,
            "confirm: it belongs to another change",
        ),
    ] {
        let (found, said) = change(&mut place, &body);
        assert!(
            found == status && said.starts_with(expected) && said.ends_with('\n'),
            "{body}: {found} {said}"
        );
    }
    let text = posted(&fields(TOKEN), &json!({})).replace("{}", "{x");
    assert!(asked(&mut place, &text).1.starts_with("the body is not JSON: "));
    assert_eq!(
        place.runner.gateway.config().canonical(),
        place.control.snapshot().unwrap().config.canonical()
    );
    assert_eq!(revision(&mut place), own);
}

#[test]
fn who_has_seen_an_older_configuration_undoes_nothing() {
    let mut place = place(DIVIDED);
    let mut late = json!({ "revision": revision(&mut place), "set": { "up.rate": "3Mbit" } });
    let shown: Value = serde_json::from_str(&change(&mut place, &late).1).unwrap();
    late["confirm"] = shown["confirm"].clone();
    apply(&mut place, &json!({ "up.rate": "2Mbit" }));
    assert_eq!(change(&mut place, &late).0, 409);
    assert_eq!(place.runner.gateway.config().up.rate.to_string(), "2Mbit");
}

#[test]
fn a_change_waits_for_no_thread_and_a_reload_meanwhile_is_refused() {
    let mut place = place(DIVIDED);
    let mut body = json!({ "revision": revision(&mut place), "set": { "up.rate": "2Mbit" } });
    let shown: Value = serde_json::from_str(&change(&mut place, &body).1).unwrap();
    body["confirm"] = shown["confirm"].clone();
    let mut first = send(&mut place, &posted(&fields(TOKEN), &body));
    assert!(place.answer("GET /healthz").ends_with("frames pass\n"));
    assert!(place.answer("POST /reload").ends_with("being applied; try again\n"));
    let mut second = send(&mut place, &posted(&fields(TOKEN), &body));
    let mut said = String::new();
    let _ = second.read_to_string(&mut said);
    assert!(said.starts_with("HTTP/1.0 409 ") && said.ends_with("being applied; try again\n"), "{said}");
    place.now += TO_APPLY;
    assert!(place.control.round(place.now));
    said.clear();
    let _ = first.read_to_string(&mut said);
    assert!(said.starts_with("HTTP/1.0 409 ") && said.contains("not applied within 10 s"), "{said}");
    let events = place.control.history.events(9).to_string();
    assert!(events.contains("change refused"), "{events}");
}

#[test]
fn a_reload_reads_the_token_again_and_may_turn_control_off() {
    let mut place = place(DIVIDED);
    let path = place.folder.path().join("token");
    fs::write(&path, "another-token-of-20ch").unwrap();
    let reload = |place: &mut Place| {
        let mut client = place.ask("POST /reload");
        place.move_packets();
        assert!(place.control.round(place.now));
        got(&mut client)
    };
    assert!(reload(&mut place).starts_with("HTTP/1.0 200 "));
    let body = json!({ "revision": revision(&mut place), "set": { "up.rate": "2Mbit" } });
    assert_eq!(change(&mut place, &body).0, 401);
    assert_eq!(asked(&mut place, &posted(&fields("another-token-of-20ch"), &body)).0, 200);
    fs::write(&path, "short").unwrap();
    let said = reload(&mut place);
    assert!(
        said.starts_with("HTTP/1.0 409 ")
            && said.contains("control_token: ")
            && said.contains("5 characters"),
        "{said}"
    );
    let file = place.folder.path().join("x.toml");
    let text = fs::read_to_string(&file).unwrap().replace("control = true", "control = false");
    fs::write(&file, text).unwrap();
    assert!(reload(&mut place).ends_with("\r\n\r\ncontrol: true -> false\n"));
    assert_eq!(change(&mut place, &body).0, 404);
}

#[test]
fn a_gateway_without_its_token_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    let text = format!(
        "inside = \"a\"\noutside = \"b\"\n{}control = true\ncontrol_token = \"{}\"\n{RATES}",
        metrics(),
        token.display()
    );
    let config = GatewayConfig::load(&text, &folder.path().join("x.toml")).unwrap();
    let path = folder.path().join("x.toml");
    let error = Control::open(&path, &Catalog::default(), &config, folder.path(), channel().0).unwrap_err();
    assert!(
        matches!(error, ControlError::Token(_)) && error.to_string().contains("cannot read it"),
        "{error}"
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
