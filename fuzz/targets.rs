//! What must hold of any bytes that are parsed: one function for each format. The fuzzers of this folder call them, and so does
//! `crates/apportion/tests/it/mutations.rs`, which needs no nightly compiler.
#![allow(dead_code, reason = "a fuzzer calls one of them")]

use std::fs;
use std::path::Path;

use apportion_core::FlowId;
use apportion_core::random::Stream;
use apportion_core::system::Catalog;
use apportion_core::units::{Span, Time};
use apportion_runtime::sffc::message::{FlowKey, Key, MAX_SIZE, Message, RouterId};
use apportion_runtime::sffc::{FlowReport, Forwarding, Manager, ManagerParams, Port};
use apportion_scenario::gateway::GatewayConfig;

#[path = "../crates/live/tests/common/laws.rs"]
mod frame_laws;
#[path = "../crates/linux/tests/common/segments.rs"]
mod segment_laws;

/// Any bytes as an Ethernet frame: no panic, and an edit changes its field, the checksum and nothing else.
pub fn frame(data: &[u8]) {
    frame_laws::hold(data);
}

/// Any bytes as a super-packet: no panic, and its segments hold its payload.
pub fn segment(data: &[u8]) {
    segment_laws::hold(data);
}

/// Any bytes as the configuration of a gateway: no panic, what is refused is refused with a reason, and what loads survives
/// its canonical text.
pub fn gateway_config(data: &[u8]) {
    // What follows the first zero byte is the file of plans.
    let (text, file) = parts(data);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let load = |text: &str| {
        GatewayConfig::load_with(&Catalog::default(), text, Path::new("fuzz.toml"), &|_| Ok(file.to_vec()))
    };
    match load(text) {
        Ok(config) => {
            let again = load(&config.canonical());
            assert_eq!(again.as_ref(), Ok(&config), "{}", config.canonical());
        }
        Err(problems) => assert!(!problems.is_empty()),
    }
}

/// What is in front of the first zero byte and behind it.
fn parts(data: &[u8]) -> (&[u8], &[u8]) {
    match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[]),
    }
}

/// Any bytes as a scenario file, and as every file that it refers to: no panic, and what loads survives its canonical text.
pub fn load(data: &[u8]) {
    // What follows the first zero byte is the content of files.
    let (text, file) = parts(data);
    let Ok(text) = std::str::from_utf8(text) else { return };
    let read = |_: &Path| Ok(file.to_vec());
    match apportion_scenario::load(text, Path::new("fuzz.toml"), &[], &read) {
        Ok(suite) => {
            let again = apportion_scenario::load(&suite.canonical, Path::new("fuzz.toml"), &[], &read)
                .expect("canonical text loads");
            assert_eq!(again.hash, suite.hash, "{}", suite.canonical);
        }
        Err(problems) => assert!(!problems.is_empty()),
    }
}

/// Any bytes as files of other programs, which begin behind zero bytes: no panic, what is refused is refused with a reason, and what is
/// imported loads, since that is looked at there.
pub fn import(data: &[u8]) {
    use apportion_scenario::import::{File, Kind, Options, import};
    let Ok(text) = std::str::from_utf8(data) else { return };
    let file = |(number, text): (usize, &str)| File { name: format!("file {number}"), text: text.to_owned() };
    let files: Vec<File> = text.split('\0').enumerate().map(file).collect();
    for kind in [None].into_iter().chain(Kind::ALL.map(Some)) {
        for gateway in [false, true] {
            let options = Options { kind, gateway, plans: "plans.csv".to_owned() };
            match import(&files, &options) {
                Ok(imported) => assert!(!imported.text.is_empty()),
                Err(problems) => {
                    assert!(!problems.is_empty());
                    for problem in problems {
                        let is_own = problem.message.contains("what follows from it is refused");
                        assert!(!problem.message.is_empty() && !is_own, "{problem}");
                    }
                }
            }
        }
    }
}

/// Any bytes as the experiments of a paper: no panic, and what is refused is refused with a reason.
pub fn expect(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let path = Path::new("papers/pps/expect.toml");
    if let Err(problems) =
        apportion_reproduce::expect::parse(path, apportion_reproduce::Files::Embedded, text)
    {
        assert!(!problems.to_string().is_empty());
    }
}

/// Any bytes as a packet capture: no panic, and its packets ascend in time from its first on.
pub fn capture(data: &[u8]) {
    match apportion_scenario::Capture::parse(data) {
        Ok(capture) => {
            assert_eq!(capture.packets.first().map(|(at, _)| *at), Some(Span::ZERO));
            assert!(capture.packets.is_sorted_by_key(|(at, _)| *at));
            assert!(capture.packets.len() <= data.len());
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}

/// Any bytes as a trace of delivery opportunities, or behind a line that begins with `=` as the table whose columns that line says: no
/// panic, and each packet that is sent has a time.
pub fn trace(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let table = text.strip_prefix('=').and_then(|text| text.split_once('\n'));
    let (columns, text) = table.map_or((None, text), |(columns, text)| (columns.parse().ok(), text));
    match apportion_scenario::delivery_trace(text, columns.as_ref()) {
        Ok(mut trace) => {
            let mut now = Time::ZERO;
            for _ in 0..20 {
                let sent = trace.send(now, apportion_core::units::Bytes::new(1_500));
                assert!(sent >= now);
                now = sent;
            }
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}

/// Any bytes as the steps of a rate, as the table of a queue, as a distribution of sizes, and as the values of units: no panic.
pub fn values(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = apportion_live::shell::Speed::parse_steps(text);
    if let Ok(params) = apportion_scenario::queue::from_text(text) {
        let link = apportion_core::system::LinkContext::new(
            apportion_core::units::Rate::from_bit(1_000_000),
            1,
            "fuzz",
        );
        drop(params.build::<apportion_core::packet::SimplePacket>(&link));
    }
    match apportion_scenario::model::Cdf::parse(text) {
        Ok(cdf) => {
            let sizes = apportion_scenario::model::Sizes::Empirical(std::sync::Arc::new(cdf));
            for share in [0.0, 0.3, 0.5, 0.999_999] {
                assert!((0.0..=1e15).contains(&sizes.quantile(share)));
            }
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
    let _ = text.parse::<Span>();
    let _ = text.parse::<apportion_core::units::Rate>();
    let _ = text.parse::<apportion_core::units::Bytes>();
}

/// Any bytes as one of the files of a folder of results, which holds a run: no panic, and what is refused is refused with a
/// reason. The first byte says which file; it is as it was afterwards.
pub fn results(folder: &Path, data: &[u8]) {
    let Some((which, data)) = data.split_first() else { return };
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    let path = &files[usize::from(*which) % files.len()];
    let before = fs::read(path).unwrap();
    fs::write(path, data).unwrap();
    if let Err(error) = apportion_report::store::load(folder) {
        assert!(!error.to_string().is_empty());
    }
    fs::write(path, before).unwrap();
}

/// A router that carries every flow by every port; flows differ by the first byte of their names.
struct Router;

impl Forwarding for Router {
    fn key(&self, flow: FlowId) -> Option<FlowKey> {
        FlowKey::from_bytes(&[flow.0 as u8])
    }
    fn flow(&self, key: &FlowKey) -> Option<FlowId> {
        key.as_bytes().first().map(|byte| FlowId(u32::from(*byte)))
    }
    fn carries(&self, _: Port, _: FlowId) -> bool {
        true
    }
    fn on_report(&mut self, _: Port, report: FlowReport) {
        assert!(report.departed <= report.arrived && report.interval > Span::ZERO);
    }
}

/// Any bytes as a message of SF-FC: no panic, what is read can be written and read again, and a manager bears it.
pub fn sffc_message(data: &[u8]) {
    if let Ok(message) = Message::decode(data, None) {
        let again = message.encode(None).expect("what was read fits a message");
        assert_eq!(Message::decode(&again, None), Ok(message));
    }
    _ = Message::decode(data, Some(&Key::new(b"key")));
    let random = Stream::new(1, "fuzz");
    let mut manager = Manager::new(RouterId(1), &ManagerParams::default(), None, random);
    for at in 0..3 {
        manager.receive(Time::from_secs(at), Port(0), data, &mut Router);
        while let Some(out) = manager.transmit() {
            assert!(out.bytes.len() <= MAX_SIZE);
        }
    }
}
