//! The tutorials in which a discipline or a congestion control is a crate of its own, followed from an empty folder.
//!
//! rustc compiles their files as cargo would, with the crates that the manifest names, as they are built already: cargo itself would build
//! all of them again, in minutes.
#![cfg(all(feature = "live", target_os = "linux"))]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use apportion_testing::child::Running;
use serde_json::Value;

use crate::own_discipline::build;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// The folder of the reader, next to a checkout, and what the manifest names.
struct Reader {
    folder: PathBuf,
    name: String,
    /// Arguments of rustc: the crates that the package, and its tests in addition, depend on.
    crates: Vec<String>,
    crates_of_tests: Vec<String>,
}

impl Reader {
    /// Reads the manifest in `folder`. Each crate that it names must be where it says, in that version.
    fn new(folder: &Path, libraries: &[PathBuf]) -> Self {
        let metadata = ["metadata", "--no-deps", "--offline", "--format-version=1"];
        let metadata = output(Command::new(env!("CARGO")).args(metadata).current_dir(folder));
        let metadata: Value = serde_json::from_str(&metadata).unwrap();
        let package = &metadata["packages"][0];
        let (mut crates, mut crates_of_tests) = (Vec::new(), Vec::new());
        for dependency in package["dependencies"].as_array().unwrap() {
            let [name, path, version] = ["name", "path", "req"].map(|key| dependency[key].as_str().unwrap());
            let manifest = fs::read_to_string(Path::new(path).join("Cargo.toml")).unwrap();
            assert!(manifest.contains(&format!("\nname = \"{name}\"\n")), "{path}");
            assert_eq!(version, concat!("^", env!("CARGO_PKG_VERSION")), "{name}");
            assert_eq!(dependency["features"].as_array().map(Vec::len), Some(0), "{name}");
            let name = name.replace('-', "_");
            let library = libraries.iter().find(|path| is_library(path, &name)).unwrap();
            let is_for_tests = dependency["kind"] == "dev";
            let list = if is_for_tests { &mut crates_of_tests } else { &mut crates };
            list.push(format!("--extern={name}={}", library.display()));
        }
        let name = package["name"].as_str().unwrap().to_owned();
        Self { folder: folder.to_owned(), name, crates, crates_of_tests }
    }

    /// Follows a line of a block of `sh`: what it prints.
    fn follow(&self, line: &str) -> String {
        match line {
            "cargo test" => {
                let tests: Vec<_> =
                    [&self.crates[..], &self.crates_of_tests, &["--test".to_owned()]].concat();
                let said = output(&mut self.program("src/lib.rs", &tests));
                assert!(said.contains("test result: ok. 1 passed"), "{said}");
                said
            }
            "cargo run --release" => {
                self.compile("src/lib.rs", &[&self.crates[..], &["--crate-type=rlib".to_owned()]].concat());
                let library = self.folder.join(format!("lib{}.rlib", self.name));
                let library = format!("--extern={}={}", self.name, library.display());
                output(&mut self.program("src/main.rs", &[&self.crates[..], &[library]].concat()))
            }
            _ => panic!("`{line}` is not followed"),
        }
    }

    fn compile(&self, source: &str, arguments: &[String]) {
        let deps = std::env::current_exe().unwrap();
        let mut rustc = Command::new(Path::new(env!("CARGO")).with_file_name("rustc"));
        rustc.args(["--edition=2024", "-Dwarnings", "-Cstrip=debuginfo", "-L"]).arg(deps.parent().unwrap());
        let _ = output(
            rustc.args(["--crate-name", &self.name, source]).args(arguments).current_dir(&self.folder),
        );
    }

    /// The program of a source, which is compiled.
    fn program(&self, source: &str, arguments: &[String]) -> Command {
        self.compile(source, arguments);
        let mut program = Command::new(self.folder.join(&self.name));
        program.current_dir(&self.folder);
        program
    }
}

fn is_library(path: &Path, name: &str) -> bool {
    let file = path.file_name().unwrap().to_str().unwrap();
    let rest = file.strip_prefix("lib").and_then(|rest| rest.strip_prefix(name));
    rest.is_some_and(|rest| rest.starts_with(['-', '.'])) && file.ends_with(".rlib")
}

/// What a command prints, which must succeed.
fn output(command: &mut Command) -> String {
    let running = Running::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    // A program of all crates takes minutes to link where much else runs.
    let (output, ended) = running.output_within(Duration::from_secs(600));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(ended && output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The libraries of this workspace, as cargo has built them.
fn libraries() -> Vec<PathBuf> {
    let messages = build(&["--message-format=json"]);
    let messages = messages.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let artifacts = messages.filter(|message| message["reason"] == "compiler-artifact");
    let files = artifacts.flat_map(|artifact| artifact["filenames"].as_array().cloned().unwrap_or_default());
    files.map(|file| PathBuf::from(file.as_str().unwrap())).collect()
}

fn follow(page: &str) {
    let place = tempfile::tempdir().unwrap();
    symlink(WORKSPACE, place.path().join("apportion")).unwrap();
    let folder = place.path().join("own");
    fs::create_dir_all(folder.join("src")).unwrap();
    let page = fs::read_to_string(Path::new(WORKSPACE).join("docs/tutorials").join(page)).unwrap();
    let blocks = page.split("```").skip(1).step_by(2).map(|block| block.split_once('\n').unwrap());
    let (files, steps): (Vec<_>, Vec<_>) = blocks.partition(|(words, _)| words.contains("title="));
    for (words, text) in files {
        let (_, name) = words.split_once("title=").unwrap();
        fs::write(folder.join(name.trim_matches('"')), text).unwrap();
    }
    let reader = Reader::new(&folder, &libraries());
    let mut said = String::new();
    for (words, text) in steps {
        match words {
            "sh" => said = text.lines().map(|line| reader.follow(line)).collect(),
            "text" => assert!(said.contains(text), "{said}"),
            _ => assert_eq!(words, "sh no-run"),
        }
    }
    assert!(said.contains(&reader.name) && folder.join("results/compare/1/report.html").exists());
}

#[test]
fn a_discipline_in_a_crate_of_ones_own() {
    follow("own-discipline.md");
}

#[test]
fn a_congestion_control_in_a_crate_of_ones_own() {
    follow("own-congestion-control.md");
}
