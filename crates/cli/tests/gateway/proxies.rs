//! The documented changes by curl, and the documented reverse proxy with TLS, as they stand there.

use std::fs;
use std::process::{Command, Stdio};

use apportion_core::units::{Span, Time};
use apportion_linux::clock::{Clock, pause};
use apportion_testing::child::{self, Running};
use apportion_testing::skip;
use serde_json::{Value, json};

use super::place::{PLAIN, Place, get, place};

/// Block of this language in the pages of gateways that begins with `begins`; its paths in /etc are moved to
/// the folder of the test.
fn documented(place: &Place, language: &str, begins: &str) -> String {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let pages = ["gateway.md", "gateway-http.md"];
    let text = pages.map(|page| fs::read_to_string(format!("{docs}/{page}")).unwrap()).concat();
    let (_, rest) = text.split_once(&format!("```{language}\n{begins}")).unwrap();
    let block = format!("{begins}{}", rest.split_once("```").unwrap().0);
    let folder = place.folder.path().to_str().unwrap();
    ["/etc/apportion", "/etc/nginx"].iter().fold(block, |block, path| block.replace(path, folder))
}

/// Output of a shell that runs `text`.
fn shell(text: &str, environment: &[(&str, &str)]) -> String {
    let mut command = Command::new("bash");
    let output = child::output(command.args(["-ec", text]).envs(environment.iter().copied()));
    let [said, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{text}\n{said}{error}");
    said
}

/// Starts nginx with this server, as a process that ends with the test.
fn start_nginx(place: &Place, server: &str) -> Running {
    let folder = place.folder.path().display();
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .concat();
    let text = format!(
        "daemon off;\nmaster_process off;\nuser root root;\npid {folder}/nginx.pid;\nerror_log {folder}/nginx.log;\nevents {{ }}\n\
             http {{\naccess_log off;\n{temporary}{server}}}\n"
    );
    let path = place.folder.path().join("nginx.conf");
    fs::write(&path, text).unwrap();
    Running::start(Command::new("nginx").arg("-c").arg(path).stderr(Stdio::null()))
}

/// Makes the documented change with curl and these variables, and checks its output.
fn change(place: &Place, environment: &[(&str, &str)]) {
    let said = shell(&documented(place, "sh", "gateway="), environment);
    let answers: Vec<Value> = said
        .lines()
        .flat_map(|line| serde_json::Deserializer::from_str(line).into_iter())
        .map(|answer| answer.unwrap_or_else(|why| panic!("{why}: {said}")))
        .collect();
    let [shown, done] = &answers[..] else { panic!("{said}") };
    let changes = json!(["up.rate: 20Mbit -> 18Mbit", "rule.calls.weight: 1.0 -> 4.0"]);
    assert_eq!((&shown["applied"], &shown["changes"]), (&json!(false), &changes), "{said}");
    assert_eq!((&done["applied"], &done["changes"]), (&json!(true), &changes), "{said}");
}

pub fn a_change_by_curl_and_through_nginx_is_as_documented() {
    if !skip::unless_found(&["bash", "curl", "jq", "openssl"]) {
        return;
    }
    let place = place();
    shell(&documented(&place, "sh", "umask"), &[]);
    let keys = documented(&place, "toml", "metrics");
    let text = PLAIN
        .replace("metrics = \"127.0.0.1:9617\"\n", "")
        .replace("up.rate = \"10Mbit\"", "up.rate = \"20Mbit\"");
    let path = place.write(&format!("{keys}{text}[[rule]]\nname = \"calls\"\nto_port = 5004\n"));
    let gateway = place.start(&path);
    change(&place, &[]);

    if !skip::unless_found(&["nginx"]) {
        return;
    }
    assert_eq!(place.ask(&["reload"], &path).0, 0);
    let sample = documented(&place, "sh", "openssl");
    let (certificates, request) = sample.split_once("curl ").unwrap();
    shell(certificates, &[]);
    let nginx = start_nginx(&place, &documented(&place, "nginx", "server"));
    let log = || fs::read_to_string(place.folder.path().join("nginx.log")).unwrap_or_default();
    let clock = Clock::start();
    while std::net::TcpStream::connect("127.0.0.1:8443").is_err() {
        assert!(clock.now() < Time::from_secs(20), "{}", log());
        pause(Span::from_millis(50));
    }
    let request = format!("curl {request}");
    assert_eq!(shell(&request, &[]), "frames pass\n", "{}", log());
    // A client without a certificate sees nothing.
    let (head, tail) = request.split_once(" --cert ").unwrap();
    let (_, tail) = tail.split_once(" https").unwrap();
    let refused = shell(&format!("{head} https{tail}"), &[]);
    assert!(refused.contains("No required SSL certificate was sent"), "{refused}");
    let options = place.folder.path().join(".curlrc");
    let file = |name: &str| place.folder.path().join(name).display().to_string();
    let [pem, key] = ["gateway.pem", "gateway.key"].map(file);
    fs::write(&options, format!("cacert = {pem}\ncert = {pem}\nkey = {key}\n")).unwrap();
    let home = place.folder.path().to_str().unwrap();
    change(&place, &[("gateway", "https://localhost:8443"), ("CURL_HOME", home)]);
    assert!(get("/control").contains("\"rule.calls.weight\":4.0"));
    drop(nginx);
    gateway.stop();
}
