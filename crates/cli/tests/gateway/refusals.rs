//! Refused configurations, which change nothing.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::time::Duration;

use apportion_live::gateway::control::request;
use nix::sys::signal::Signal;

use super::place::{PLAIN, Place, place};

/// Configurations that are refused in the place of [`PLAIN`], with words of the message.
fn refused() -> Vec<(String, &'static str)> {
    let with = |from: &str, to: &str| PLAIN.replace(from, to);
    vec![
        (with("up.rate = \"10Mbit\"", "up.rate = \"10Mbitt\""), "x.toml:4: up.rate: `10Mbitt` is not a rate"),
        (with("up.rate", "up.rat"), "x.toml:4: up.rat: "),
        (PLAIN.to_owned() + "[[", "x.toml:6: not valid TOML: "),
        (PLAIN.to_owned() + "up.queue = \"fqcodel\"\n", "up.queue: `fqcodel` is not known here"),
        (with("\"near\"", "\"near2\""), "inside: near -> near2, which cannot change while the gateway runs"),
        (with("\"far\"", "\"far2\""), "outside: far -> far2, which cannot change while the gateway runs"),
        (PLAIN.to_owned() + "flows = 9\n", "flows: 65536 -> 9, which cannot change while the gateway runs"),
        ("title = \"y\"\n".to_owned() + PLAIN, "title: x -> y, which cannot change while the gateway runs"),
        (
            PLAIN.to_owned() + "[[rule]]\nguarantee = \"11Mbit\"\n",
            "direction `up` carries 10Mbit, but 11Mbit is guaranteed",
        ),
        (with("9617", "9618"), "metrics = \"127.0.0.1:9618\": cannot listen there"),
        (format!("# {}", "x".repeat(5 << 20)), "it is longer than 4 MiB"),
    ]
}

/// Sends a datagram from the inside to the outside.
fn passes(place: &Place) {
    let [near, far] = &place.hosts;
    let sink = far.namespace.run(|| UdpSocket::bind("10.0.0.2:9").unwrap()).unwrap();
    sink.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let send = || UdpSocket::bind("10.0.0.1:0").unwrap().send_to(b"word", "10.0.0.2:9").unwrap();
    near.namespace.run(send).unwrap();
    assert_eq!(sink.recv(&mut [0; 9]).unwrap(), 4);
}

pub fn a_reload_that_is_refused_says_why_and_changes_nothing() {
    let place = place();
    let path = place.write(PLAIN);
    let gateway = place.start(&path);
    let _taken = TcpListener::bind("127.0.0.1:9618").unwrap();
    let socket = |method, path| request(&[place.folder.path().to_owned()], "x", method, path).unwrap();
    let runs = socket("GET", "/config").1;
    let said_before = place.ask(&["show", "--running"], &path);
    let refused = refused();
    for (number, (text, why)) in refused.iter().enumerate() {
        place.write(text);
        let (status, said) = socket("POST", "/reload");
        assert!(status == 409 && said.contains(why) && said.contains("x.toml"), "{status} {said}");
        assert_eq!(socket("GET", "/config"), (200, runs.clone()), "{why}");
        let stats: serde_json::Value = serde_json::from_str(&socket("GET", "/stats.json").1).unwrap();
        let reloads = &stats["reloads"];
        assert_eq!((&reloads["applied"], &reloads["refused"]), (&0.into(), &(number + 1).into()));
        assert_eq!(reloads["last"]["refused"], said);
        passes(&place);
    }
    // The command says the same, and a gateway whose file is wrong still answers.
    place.write(&refused[0].0);
    let (status, out, error) = place.ask(&["reload"], &path);
    assert!(status == 2 && out.is_empty() && error.contains(refused[0].1), "{error}");
    assert_eq!(place.ask(&["show", "--running"], &path), said_before);
    assert_eq!(place.ask(&["stats"], &path).0, 0);
    fs::remove_file(&path).unwrap();
    let (status, _, error) = place.ask(&["reload"], &path);
    assert!(status == 2 && error.contains("x.toml: cannot read the configuration: No such file"), "{error}");
    assert_eq!(place.ask(&["show", "--running"], &path), said_before);
    // A valid file is applied again.
    place.write(&PLAIN.replace("up.rate = \"10Mbit\"", "up.rate = \"20Mbit\""));
    assert_eq!(socket("POST", "/reload"), (200, "up.rate: 10Mbit -> 20Mbit\n".to_owned()));
    passes(&place);
    let said = gateway.stop();
    assert_eq!(said.matches("\"message\":\"reloaded\"").count(), 1, "{said}");
}

pub fn a_reload_by_another_file_is_refused() {
    let place = place();
    let path = place.write(PLAIN);
    let gateway = place.start(&path);
    let other = place.folder.path().join("other.toml");
    fs::write(&other, format!("title = \"x\"\n{}", PLAIN.replace("10Mbit", "30Mbit"))).unwrap();
    let (status, out, error) = place.ask(&["reload"], &other);
    let own = format!("the gateway of this title runs by {}", path.canonicalize().unwrap().display());
    assert!(status == 2 && out.is_empty() && error.contains(&own), "{error}");
    // Another name of the same file.
    let link = place.folder.path().join("x2.toml");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    place.write(&format!("title = \"x\"\n{PLAIN}"));
    assert_eq!(place.ask(&["reload"], &link), (0, "nothing changed\n".to_owned(), String::new()));
    gateway.stop();
}

pub fn a_socket_that_one_left_behind_is_taken_over() {
    let place = place();
    let path = place.write(PLAIN);
    let mut gateway = place.start(&path);
    gateway.signal(Signal::SIGKILL);
    gateway.child.wait();
    assert!(Path::exists(&place.folder.path().join("apportion-x.sock")));
    let (status, _, error) = place.ask(&["stats"], &path);
    assert!(status == 2 && error.contains("no gateway with the title `x` answers"), "{error}");
    let gateway = place.start(&path);
    assert_eq!(place.ask(&["stats"], &path).0, 0);
    passes(&place);
    gateway.stop();
}
