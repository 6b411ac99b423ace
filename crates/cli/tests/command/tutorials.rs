//! Follows the tutorials of `docs/tutorials` literally from an empty folder: blocks with a title are files,
//! and blocks of `sh` are run.

#![cfg(unix)]

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use apportion_testing::child;

/// Blocks of a page between fences: the words after the first fence, and the text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let parts = page.split("```").skip(1).step_by(2);
    parts.map(|block| block.split_once('\n').unwrap()).collect()
}

fn tutorials() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials");
    let mut pages: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages
}

#[test]
fn every_tutorial_can_be_followed_from_an_empty_folder() {
    let program = assert_cmd::cargo::cargo_bin("apportion");
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let mut commands = 0;
    for tutorial in tutorials() {
        let folder = tempfile::tempdir().unwrap();
        let page = fs::read_to_string(&tutorial).unwrap();
        for (words, text) in blocks(&page) {
            if let Some((_, name)) = words.split_once("title=") {
                fs::write(folder.path().join(name.trim_matches('"')), text).unwrap();
            } else if words == "sh" {
                let mut shell = Command::new("/bin/sh");
                shell
                    .args(["-euc", text])
                    .env("PATH", &path)
                    .env("APPORTION_CACHE_DIR", folder.path().join("cache"))
                    .current_dir(folder.path())
                    .process_group(0);
                let output = child::output(&mut shell);
                let error = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{}: {text}\n{error}", tutorial.display());
                commands += text.lines().count();
            }
        }
    }
    assert!(commands > 10, "only {commands} commands found");
}
