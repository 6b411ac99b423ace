//! The tutorials and the how-to pages, followed literally from an empty folder: blocks with a title are files, blocks of `sh` are run, and
//! blocks of `text` are the beginnings of lines that the block before them prints.

#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::thread;

use apportion_testing::child;

/// Pages that other tests follow: those with Python `python/tests/test_documents.py`, those with a crate `own_crates.rs` of
/// crates/apportion, and the gateway's `gateway/tutorial.rs`.
const ELSEWHERE: [&str; 5] =
    ["from-python", "read-results", "own-discipline", "own-congestion-control", "gateway"];

/// A block of a page between fences: the words after the first fence, and its text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("```").skip(1).step_by(2);
    parts.map(|block| block.split_once('\n').unwrap()).collect()
}

fn pages() -> Vec<PathBuf> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let folders = ["tutorials", "howto"].map(|folder| fs::read_dir(docs.join(folder)).unwrap());
    folders.into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

/// Runs a block of commands: what it prints.
fn run(text: &str, page: &Path, folder: &Path) -> String {
    let program = assert_cmd::cargo::cargo_bin("apportion");
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-euc", text])
        .env("PATH", path)
        .env("APPORTION_CACHE_DIR", folder.join("cache"))
        .current_dir(folder)
        .process_group(0);
    let output = child::output(&mut shell);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}\n{error}", page.display());
    String::from_utf8(output.stdout).unwrap()
}

/// How many commands the page has.
fn follow(page: &Path) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(page).unwrap();
    let (mut said, mut commands) = (String::new(), 0);
    for (words, text) in blocks(&text) {
        if let Some((_, name)) = words.split_once("title=") {
            fs::write(folder.path().join(name.trim_matches('"')), text).unwrap();
        } else if words == "sh" {
            said = run(text, page, folder.path());
            commands += text.lines().count();
        } else if words == "text" {
            for line in text.lines() {
                assert!(
                    said.lines().any(|of| of.starts_with(line)),
                    "{}: {line}\nis not in\n{said}",
                    page.display()
                );
            }
        }
    }
    commands
}

#[test]
fn every_page_can_be_followed_from_an_empty_folder() {
    let mut pages = pages();
    for name in ELSEWHERE {
        let before = pages.len();
        pages.retain(|page| page.file_stem().unwrap() != name);
        assert_eq!(pages.len(), before - 1, "{name}");
    }
    let pages = Mutex::new(pages.into_iter());
    let work = || {
        while let Some(page) = { pages.lock().unwrap().next() } {
            assert!(follow(&page) > 0, "{}: no commands found", page.display());
        }
    };
    thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
}
