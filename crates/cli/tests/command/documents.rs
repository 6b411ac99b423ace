//! The commands in the documents work, and the paths that they name exist.

#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use apportion_testing::{child, skip};

/// The program as README builds it, to try it and to develop it.
const CARGO: [&str; 2] = ["cargo run -- ", "cargo run --release -- "];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md, then the pages of `docs/` and `docs/systems/` by name.
fn documents() -> Vec<PathBuf> {
    let entries = ["docs", "docs/systems"].map(|folder| std::fs::read_dir(root().join(folder)).unwrap());
    let mut pages: Vec<_> = entries.into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages.insert(0, root().join("README.md"));
    pages
}

/// Words after the program in the lines of fenced blocks that run it.
fn commands(text: &str) -> Vec<String> {
    let mut fenced = false;
    let mut lines = text.lines().map(str::trim).filter(|line| {
        fenced ^= line.starts_with("```");
        fenced
    });
    let mut commands = Vec::new();
    while let Some(line) = lines.next() {
        let mut line = line.trim_start_matches("$ ").to_owned();
        // A backslash at the end of a line continues it.
        while line.ends_with('\\') {
            line.pop();
            line += lines.next().unwrap_or_default();
        }
        commands.extend(CARGO.iter().find_map(|cargo| line.strip_prefix(cargo)).map(str::to_owned));
    }
    commands
}

/// Whether the system lets commands run behind a link; if not, prints a line.
fn has_shell() -> bool {
    let program = assert_cmd::cargo::cargo_bin("apportion");
    let output = child::output(Command::new(program).args(["shell", "--", "true"]));
    let err = String::from_utf8_lossy(&output.stderr);
    let has_shell = !err.contains("cannot make a");
    if !has_shell {
        skip::because(format!("in part: {err}"));
    }
    // Other systems have no such command.
    cfg!(target_os = "linux") && has_shell
}

#[test]
fn every_command_shown_runs() {
    let has_shell = has_shell();
    let documents = Mutex::new(documents().into_iter());
    let shown = AtomicUsize::new(0);
    let work = || {
        while let Some(document) = { documents.lock().unwrap().next() } {
            shown.fetch_add(run_all(&document, has_shell), Ordering::Relaxed);
        }
    };
    // Three workers: one of them mostly waits for a lab.
    thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(work))));
    let shown = shown.into_inner();
    assert!(shown > 4, "only {shown} commands found");
}

/// Runs the commands of a document in its own folder, in order: later ones use files of earlier ones. Returns
/// their number.
fn run_all(document: &Path, has_shell: bool) -> usize {
    let folder = tempfile::tempdir().unwrap();
    for name in ["papers", "scenarios", "validation"] {
        std::os::unix::fs::symlink(root().join(name), folder.path().join(name)).unwrap();
    }
    let mut commands = commands(&std::fs::read_to_string(document).unwrap());
    let needs_namespaces = ["shell ", "lab ", "compare --parity "];
    commands.retain(|command| has_shell || !needs_namespaces.iter().any(|start| command.starts_with(start)));
    for command in &commands {
        // Two labs at once are late, and would repeat their runs. A shorter run in real time is enough here.
        let command = match command.strip_prefix("lab ") {
            Some(words) => format!("lab --retries 0 {words}").replace("stop=12s", "stop=3s"),
            None => command.clone(),
        };
        // A shell reads the line, with its quotes and comments, as for the user.
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &format!("\"$APPORTION\" {command}")])
            .env("APPORTION", assert_cmd::cargo::cargo_bin("apportion"))
            .env("APPORTION_CACHE_DIR", folder.path().join("cache"))
            .current_dir(folder.path())
            .process_group(0);
        let output = child::output(&mut shell);
        let err = String::from_utf8_lossy(&output.stderr);
        // On a busy machine a run of the lab is not valid, and says so.
        let is_late = String::from_utf8_lossy(&output.stdout).contains("NOT VALID: ");
        assert!(output.status.success() || is_late, "{}: {command}\n{err}", document.display());
        assert!(!output.stdout.is_empty(), "{}: {command}", document.display());
        // A command that changes an overridden key does not show what the text says.
        assert!(!err.contains("make no difference"), "{}: {command}\n{err}", document.display());
    }
    commands.len()
}

#[test]
fn the_first_command_of_the_readme_writes_the_report_it_promises() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    let first = commands(&readme).remove(0);
    assert!(first.starts_with("run scenarios/quickstart.toml"), "{first}");
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    command
        .args(["run", root().join("scenarios/quickstart.toml").to_str().unwrap(), "--quiet", "--no-cache"])
        .current_dir(folder.path());
    assert!(child::output(&mut command).status.success());
    let promised = "results/quickstart/1/report.html";
    assert!(readme.contains(&format!("writes `{promised}`")));
    let page = std::fs::read_to_string(folder.path().join(promised)).unwrap();
    for queue in ["fifo", "red", "drr", "fq_codel"] {
        assert!(page.contains(&format!("queue={queue}")), "{queue}");
    }
}

/// Pages that people read, in all folders that have some.
fn pages() -> Vec<PathBuf> {
    let mut pages = documents();
    pages.extend(["CONTRIBUTING.md", "validation/README.md"].map(|page| root().join(page)));
    for folder in ["papers", "benches"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        pages.extend(
            entries.map(|entry| entry.unwrap().path().join("README.md")).filter(|page| page.exists()),
        );
    }
    pages
}

/// Paths from the root of the repository that a page names. A path ends before `*` and `{`, so that of
/// `crates/sim/src/{link,node}.rs` the folder counts; a path with a placeholder `KEY` or `NAME` does not
/// count.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    const ROOTS: [&str; 8] =
        ["crates", "scenarios", "docs", "papers", "validation", "benches", "contrib", ".ci"];
    let is_path = |c: char| c.is_ascii_alphanumeric() || "_-./@".contains(c);
    text.split(move |c| !is_path(c))
        .map(|path| {
            let mut path = path.trim_end_matches(['.', '/']);
            while let Some(rest) = path.strip_prefix("../") {
                path = rest;
            }
            path
        })
        .filter(|path| path.split_once('/').is_some_and(|(first, _)| ROOTS.contains(&first)))
        .filter(|path| !path.split(['/', '.']).any(|part| ["KEY", "NAME"].contains(&part)))
}

/// Crates in the table of the section "The crates".
fn crates_listed(design: &str) -> Vec<&str> {
    let section = design.split("\n## ").find(|section| section.starts_with("The crates")).unwrap_or_default();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name)
        .collect()
}

#[test]
fn the_design_lists_every_crate_of_the_workspace() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    assert!(manifest.contains("\nmembers = [\"crates/*\"]\n"));
    let folders = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let folders = folders.filter(|folder| folder.join("Cargo.toml").exists());
    let mut members: Vec<_> =
        folders.map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    members.sort();
    let design = std::fs::read_to_string(root().join("docs/design.md")).unwrap();
    let mut listed = crates_listed(&design);
    listed.sort_unstable();
    assert_eq!(listed, members);
}

#[test]
fn crates_are_found_in_their_table_alone() {
    let design =
        "# D\n\n## The crates\n\n| crate | holds |\n|---|---|\n| `a` | `b` |\n\n## Next\n\n| `c` | d |\n";
    assert_eq!(crates_listed(design), ["a"]);
}

#[test]
fn every_path_named_exists() {
    let mut missing = Vec::new();
    let mut named = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for path in paths(&text) {
            named += 1;
            if !root().join(path).exists() {
                missing.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(named > 100, "only {named} paths found");
    assert!(missing.is_empty(), "these paths do not exist:\n{}", missing.join("\n"));
}

#[test]
fn paths_are_found_in_text_and_links() {
    let text = "see `crates/a/src/b.rs`, [c](../docs/c.md#d), papers/KEY/expect.toml and crates/{e,f}.";
    assert_eq!(paths(text).collect::<Vec<_>>(), ["crates/a/src/b.rs", "docs/c.md"]);
}

/// The numbers of two digits and more in a sentence that ends in its source, `([text](page.md))`, with that page.
fn cited(text: &str) -> impl Iterator<Item = (&str, &str)> {
    const ENDS: [&str; 7] = [". ", ".\n", "| ", "\n\n", "\n- ", "\n|", "\n#"];
    text.match_indices("([").flat_map(move |(at, _)| {
        let link = text[at..].split_once("](").and_then(|(_, rest)| rest.split_once(')'));
        let page = link.and_then(|(target, _)| target.split('#').next()).filter(|page| page.ends_with(".md"));
        let from = ENDS.iter().filter_map(|end| Some(text[..at].rfind(end)? + end.len())).max();
        let words = text[from.unwrap_or(0)..at].split_whitespace();
        let is_number = |word: &&str| {
            word.bytes().all(|byte| byte.is_ascii_digit() || b".,".contains(&byte))
                && word.bytes().filter(u8::is_ascii_digit).count() > 1
        };
        let numbers = words.map(|word| word.trim_matches(|c: char| !c.is_ascii_digit())).filter(is_number);
        page.into_iter().flat_map(move |page| numbers.clone().map(move |number| (number, page)))
    })
}

/// Whether `page` has the number, and not as a part of another.
fn has_number(page: &str, number: &str) -> bool {
    page.split(|c: char| !c.is_ascii_digit() && !".,".contains(c))
        .any(|word| word.trim_matches(['.', ',']) == number)
}

#[test]
fn numbers_stand_in_the_page_that_is_cited_for_them() {
    let mut missing = Vec::new();
    let mut found = 0;
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (number, source) in cited(&text) {
            found += 1;
            let source = page.parent().unwrap().join(source);
            if !has_number(&std::fs::read_to_string(&source).unwrap(), number) {
                missing.push(format!("{}: {number} is not in {}", page.display(), source.display()));
            }
        }
    }
    assert!(found > 10, "only {found} numbers found");
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn a_number_that_the_cited_page_lacks_is_found() {
    let text = "Of ns-2 30 cases agree. All 2.9 million\npackets of 464 do ([how](a/b.md#c)).";
    assert_eq!(cited(text).collect::<Vec<_>>(), [("2.9", "a/b.md"), ("464", "a/b.md")]);
    assert!(has_number("| 464: Reno | 2.9 million.", "464") && has_number("of 2.9.", "2.9"));
    assert!(!has_number("1464, 46.4 and 12.9", "464") && !has_number("12.9", "2.9"));
}
