//! Tests of the reader and the Manager with the corpus of the fuzzer `sffc_message`, whole, cut and changed;
//! and of the examples of `docs/sffc-messages.md`.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

use std::path::{Path, PathBuf};

use apportion_core::FlowId;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};
use apportion_runtime::sffc::message::{
    Answer, FlowKey, FlowState, Key, MAX_SIZE, Message, Proof, Query, Report, RouterId, Scope,
};
use apportion_runtime::sffc::{FlowReport, Forwarding, Manager, ManagerParams, Port};

/// The key of the corpus and of the page.
const KEY: &[u8] = b"an example, never a key";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn flow(name: &str) -> FlowKey {
    FlowKey::from_bytes(name.as_bytes()).unwrap()
}

/// The report of the page.
fn report() -> Message {
    Message::Report(Report {
        router: RouterId(0x2001_0db8_0000_0000_0000_0000_0000_0002),
        proof: Proof { cookie: 0x0123_4567_89ab_cdef, sequence: 7 },
        interval: Span::from_millis(50),
        flows: vec![FlowState {
            key: flow("udp9"),
            arrived: Bytes::new(62_500),
            departed: Bytes::new(6_250),
        }],
    })
}

/// The corpus: each file's name, its message, and whether it has an authenticator.
fn messages() -> Vec<(&'static str, Message, bool)> {
    let (router, nonce) = (RouterId(2), 0xfeed_beef_cafe_f00d);
    let flows = || vec![flow("udp9"), flow("a five-tuple of IPv6 takes thirty-seven")];
    let proof = Some(Proof { cookie: 1, sequence: 2 });
    let query = |scope, proof, flows| Message::Query(Query { router, nonce, scope, proof, flows });
    let answer = Message::Answer(Answer { router: RouterId(1), nonce, cookie: 1, flows: flows() });
    vec![
        ("query", query(Scope::Neighbours, None, flows()), false),
        ("query_again", query(Scope::Neighbours, proof, flows()), true),
        ("query_towards_source", query(Scope::TowardsSource, None, vec![flow("udp9")]), false),
        ("answer", answer.clone(), false),
        ("answer_authenticated", answer, true),
        ("report", report(), false),
        ("report_authenticated", report(), true),
    ]
}

/// A router that carries every flow by every port.
#[derive(Default)]
struct Router {
    reports: usize,
}

impl Forwarding for Router {
    fn key(&self, _: FlowId) -> Option<FlowKey> {
        Some(flow("udp9"))
    }
    fn flow(&self, _: &FlowKey) -> Option<FlowId> {
        Some(FlowId(9))
    }
    fn carries(&self, _: Port, _: FlowId) -> bool {
        true
    }
    fn on_report(&mut self, _: Port, report: FlowReport) {
        assert!(report.departed <= report.arrived && report.interval > Span::ZERO);
        self.reports += 1;
    }
}

#[test]
fn the_corpus_is_what_the_writer_makes() {
    let key = Key::new(KEY);
    let folder = root().join("fuzz/corpus/sffc_message");
    let mut named = Vec::new();
    for (name, message, keyed) in messages() {
        let written = message.encode(keyed.then_some(&key)).unwrap();
        let path = folder.join(name);
        let found = std::fs::read(&path).unwrap_or_default();
        let hex: String = written.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        assert_eq!(found, written, "write it with: printf '{hex}' > {}", path.display());
        assert_eq!(Message::decode(&found, keyed.then_some(&key)), Ok(message));
        named.push(name.to_owned());
    }
    named.sort();
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, named);
}

#[test]
fn no_cut_or_changed_message_panics_or_makes_a_manager_send_much() {
    let params = ManagerParams::default();
    let mut random = Stream::new(1, "changes");
    let mut below = |n: usize| random.below(n as u64) as usize;
    let mut manager = Manager::new(RouterId(1), &params, None, Stream::new(1, "sffc"));
    let mut router = Router::default();
    let (mut read, mut refused, mut sent) = (0, 0, 0);
    for (_, message, keyed) in messages() {
        let whole = message.encode(keyed.then(|| Key::new(KEY)).as_ref()).unwrap();
        for round in 0..2_000_u64 {
            let mut bytes = whole.clone();
            match round % 3 {
                0 => bytes.truncate(below(bytes.len() + 1)),
                _ => (0..=below(3)).for_each(|_| {
                    let at = below(bytes.len());
                    bytes[at] = below(256) as u8;
                }),
            }
            match Message::decode(&bytes, None) {
                Ok(message) => {
                    read += 1;
                    let again = message.encode(None).unwrap();
                    assert_eq!(Message::decode(&again, None), Ok(message));
                }
                Err(_) => refused += 1,
            }
            manager.receive(Time::from_millis(round), Port(0), &bytes, &mut router);
            while let Some(out) = manager.transmit() {
                assert!(out.bytes.len() <= MAX_SIZE);
                sent += 1;
            }
        }
    }
    // Both sides must be large enough, or the test proves nothing.
    assert!(read > 1_000 && refused > 1_000 && sent > 100, "{read} read, {refused} refused, {sent} sent");
    assert_eq!(router.reports, 0, "no report shows the cookie");
}

#[test]
fn the_page_shows_what_the_writer_makes() {
    let page = std::fs::read_to_string(root().join("docs/sffc-messages.md")).unwrap();
    let example = page.split("\n## Example\n").nth(1).unwrap();
    let example = example.split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
    // Text after `;` is a remark.
    let digits: String = example.lines().flat_map(|line| line.split(';').next()).collect();
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    let shown: Vec<u8> = digits.chunks(2).map(byte).collect();
    let key = Key::new(KEY);
    let written = report().encode(Some(&key)).unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&shown), hex(&written));
    assert_eq!(Message::decode(&shown, Some(&key)), Ok(report()));
    assert!(page.contains(std::str::from_utf8(KEY).unwrap()));
    // The table of limits.
    assert!(page.contains(&format!("at most {MAX_SIZE} bytes", MAX_SIZE = "1,232")) && MAX_SIZE == 1_232);
}
