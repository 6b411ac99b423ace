//! A C program that uses the header and the static library: every call, misuse, and random sequences of calls
//! for every discipline, without leaks. Only on Linux: the libraries to link, and the search for leaks, differ elsewhere.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use apportion_core::param::Role;
use apportion_core::system::Catalog;
use apportion_testing::{child, skip};

/// The folder of the libraries: cargo puts them next to the tests.
fn libraries() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.parent().expect("it is in a folder").to_owned()
}

/// The system libraries that a static library of Rust needs (`rustc --print native-static-libs`).
const SYSTEM: [&str; 4] = ["-lpthread", "-ldl", "-lm", "-lgcc_s"];

fn compile(source: &Path, program: &Path, flags: &[&str]) -> Result<(), String> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-pedantic", "-Werror"]).args(flags);
    cc.arg("-I").arg(crate_dir.join("include")).arg("-o").arg(program).arg(source);
    cc.arg(libraries().join("libapportion_capi.a")).args(SYSTEM);
    let output = child::output(&mut cc);
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// The texts of queues with each scheduler, policy and system, some with a shaper, and of each scheduler with
/// the policies that push out or remove packets.
fn queues() -> Vec<String> {
    let mut queues: Vec<String> = Vec::new();
    for entry in Catalog::default().disciplines().filter(|entry| entry.role != Role::Shaper) {
        let limit = if entry.name == "ramp" { String::new() } else { ", limit = \"100p\"".to_owned() };
        queues.push(format!("{{ kind = \"{}\"{limit} }}", entry.name));
        let isolated = format!("{{ kind = \"{}\"{limit}, isolate = \"both\" }}", entry.name);
        queues.extend(Some(isolated).filter(|text| apportion_scenario::queue::from_text(text).is_ok()));
        if entry.name != "ramp" {
            let shaper = "shaper = \"token_bucket\", rate = \"3Mbit\"";
            queues.push(format!("{{ kind = \"{}\"{limit}, {shaper} }}", entry.name));
        }
        if entry.role == Role::Scheduler {
            for policy in ["tail", "head", "pfd", "red", "codel", "csfq", "sffc"] {
                queues.push(format!("{{ kind = \"{}\", drop = \"{policy}\"{limit} }}", entry.name));
            }
        }
    }
    queues
}

/// Runs a program that must succeed, and returns its output.
fn run(program: &Path, words: &[String]) -> String {
    let output = child::output(Command::new(program).args(words).env("ASAN_OPTIONS", "detect_leaks=1"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

/// Compiles a program of this folder, with AddressSanitizer where it works.
fn sanitized(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let empty = folder.join(format!("{name}-empty.c"));
    std::fs::write(&empty, "int main(void) { return 0; }\n").expect("writable");
    let mut flags = vec!["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    if let Err(why) = compile(&empty, &folder.join(format!("{name}-empty")), &flags) {
        skip::because(format!("in part: AddressSanitizer does not work here: {why}"));
        flags.clear();
    }
    let program = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/{name}.c"));
    compile(&source, &program, &flags).unwrap_or_else(|why| panic!("{why}"));
    program
}

#[test]
fn a_c_program_uses_the_library_without_leaks() {
    if skip::unless_found(&["cc"]) {
        println!("{}", run(&sanitized("interface"), &queues()));
    }
}

#[cfg(feature = "simulator")]
#[test]
fn a_transport_stack_in_c_runs_in_the_simulator() {
    if skip::unless_found(&["cc"]) {
        let program = sanitized("stack");
        let results = program.with_extension("results");
        let _ = std::fs::remove_dir_all(&results);
        println!("{}", run(&program, &[results.to_string_lossy().into_owned()]));
    }
}

/// Compiles the program `name.c` of the document, and compares what it prints.
fn check_document(name: &str) {
    if !skip::unless_found(&["cc"]) {
        return;
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/c-interface.md");
    let document = std::fs::read_to_string(document).expect("readable");
    let between = |begin: &str, end: &str| {
        let (_, rest) = document.split_once(begin).expect("it is there");
        rest.split_once(end).expect("it ends").0
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(format!("document-{name}")));
    let code = between(&format!("```c\n// {name}.c\n"), "```");
    std::fs::write(&source, code).expect("writable");
    compile(&source, &program, &[]).unwrap_or_else(|why| panic!("{why}"));
    assert_eq!(run(&program, &[]), between(&format!("./{name}\n"), "```"));
}

#[test]
fn the_program_of_the_document_prints_what_it_says() {
    check_document("link");
}

#[cfg(feature = "simulator")]
#[test]
fn the_stack_of_the_document_prints_what_it_says() {
    check_document("stack");
}
