//! All parsers, tested with mutations of well-formed inputs: the targets of `fuzz/`, without its tools.
//!
//! `APPORTION_CASES` multiplies the number of mutations, as for properties; a failure prints the input. The
//! seed is fixed, so that a failure is reproducible.

#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, reason = "in tests a panic is the message")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use apportion::{Run, Scenario};
use apportion_core::random::Stream;
use apportion_testing::properties::cases;

#[path = "../../../../fuzz/targets.rs"]
mod targets;

/// Number of mutations of each format.
const MUTATIONS: u32 = 8_000;
/// The maximum size of an input.
const LONGEST: usize = 16 << 10;
/// Values that often lie at a boundary.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "1e400",
    "nan",
    "-inf",
    "0.0000001",
    "255",
    "65535",
    "65536",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "18446744073709551616",
    "1e19",
    "0x10",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files below these folders of the repository with names that end in `end`.
fn files(folders: &[&str], end: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(end) {
                found.push(fs::read(path).unwrap());
            }
        }
    }
    // The order of a folder depends on the file system.
    found.sort();
    found
}

/// Returns one of these inputs, changed in one to four places.
fn mutated(stream: &mut Stream, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut pick = |n: usize| stream.below(n.max(1) as u64) as usize;
    let mut data = corpus[pick(corpus.len())].clone();
    for _ in 0..=pick(4) {
        let at = pick(data.len() + 1);
        let end = (at + pick(64)).min(data.len());
        match pick(8) {
            0 if at < data.len() => data[at] ^= 1 << pick(8),
            1 if at < data.len() => data[at] = [0, 1, 0x7f, 0x80, 0xff][pick(5)],
            2 => drop(data.drain(at..end)),
            3 => data.insert(at, pick(256) as u8),
            4 => {
                let copy = data[at..end].to_vec();
                let to = pick(data.len() + 1);
                data.splice(to..to, copy);
            }
            5 => {
                let other = &corpus[pick(corpus.len())];
                let from = pick(other.len() + 1);
                let part = other[from..(from + pick(256)).min(other.len())].to_vec();
                data.splice(at..end, part);
            }
            6 => data.truncate(at),
            _ => {
                let digits: Vec<usize> =
                    (at..data.len()).take_while(|at| !data[*at].is_ascii_digit()).collect();
                let start = digits.last().map_or(at, |last| last + 1);
                let end = (start..data.len()).find(|at| !data[*at].is_ascii_digit()).unwrap_or(data.len());
                data.splice(start..end.max(start), NUMBERS[pick(NUMBERS.len())].bytes());
            }
        }
        data.truncate(LONGEST);
    }
    data
}

/// Calls `target` with the corpus and its mutations.
fn try_all(name: &str, share: u32, corpus: &[Vec<u8>], target: impl Fn(&[u8])) {
    assert!(!corpus.is_empty());
    let count = cases(MUTATIONS / share).cases;
    let mut stream = Stream::new(1, name);
    let mutations: Vec<_> = (0..count).map(|_| mutated(&mut stream, corpus)).collect();
    for data in corpus.iter().chain(&mutations) {
        // The message of the panic has already been printed.
        let result = catch_unwind(AssertUnwindSafe(|| target(data)));
        assert!(result.is_ok(), "{name}, {} bytes:\n{}\n{data:?}", data.len(), String::from_utf8_lossy(data));
    }
}

#[test]
fn frames() {
    try_all("frame", 1, &files(&["fuzz/corpus/frame"], ""), targets::frame);
}

#[test]
fn super_packets() {
    try_all("segment", 1, &files(&["fuzz/corpus/segment"], ""), targets::segment);
}

#[test]
fn messages_between_routers() {
    try_all("sffc_message", 1, &files(&["fuzz/corpus/sffc_message"], ""), targets::sffc_message);
}

#[test]
fn configurations_of_gateways() {
    let folders = ["fuzz/corpus/gateway_config", "scenarios/gateway"];
    try_all("gateway_config", 1, &files(&folders, ".toml"), targets::gateway_config);
}

#[test]
fn scenarios() {
    try_all("load", 1, &files(&["fuzz/corpus/load", "scenarios"], ".toml"), targets::load);
}

#[test]
fn files_of_other_programs() {
    try_all("import", 2, &files(&["fuzz/corpus/import", "scenarios/import"], ""), targets::import);
}

#[test]
fn experiments_of_papers() {
    try_all("expect", 10, &files(&["papers"], "expect.toml"), targets::expect);
}

#[test]
fn traces() {
    try_all("trace", 1, &files(&["fuzz/corpus/trace"], ""), targets::trace);
}

#[test]
fn captures() {
    try_all("capture", 1, &files(&["fuzz/corpus/capture"], ""), targets::capture);
}

#[test]
fn values() {
    try_all("values", 1, &files(&["fuzz/corpus/values"], ""), targets::values);
}

#[test]
fn folders_of_results() {
    let folder = tempfile::tempdir().unwrap();
    let text = "seed = 1\nstop = \"2s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
                [flow.f]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\n";
    let scenario = Scenario::from_text(text).unwrap();
    let run = Run::new(&scenario).simulate().unwrap().write(folder.path()).unwrap();
    let mut stored: Vec<_> = fs::read_dir(&run).unwrap().map(|entry| entry.unwrap().path()).collect();
    stored.retain(|path| path.is_file());
    stored.sort();
    let corpus = (0..).zip(&stored).map(|(which, path)| [&[which][..], &fs::read(path).unwrap()].concat());
    try_all("results", 10, &corpus.collect::<Vec<_>>(), |data| targets::results(&run, data));
}
