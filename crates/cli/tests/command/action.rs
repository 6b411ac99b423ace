//! The action of `dist/action`, as GitHub runs its step: the environment, the summary, the status.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::Command;

use apportion_testing::child;

const SCENARIO: &str = r#"seed = 3
stop = "4s"
[link.bottleneck]
from = "a"
to = "b"
rate = "1Mbit"
delay = "5ms"
queue = "fifo"
[flow.tcp]
count = 2
from = "a"
to = "b"
[flow.flood]
from = "a"
to = "b"
source = { kind = "cbr", rate = "900kbit", packet = "1000B" }
"#;

fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.current_dir(folder).args(["-c", "user.name=me", "-c", "user.email=me@localhost"]).args(words);
    let output = child::output(&mut git);
    assert!(output.status.success(), "git {words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs the step in a repository against the commit `base`, or a stored run: its status, and its summary or what it says instead.
fn step(repository: &Path, base: &str, baseline: &str) -> (Option<i32>, String) {
    with(repository, &[("BASE", base), ("BASELINE", baseline)])
}

/// Runs the step with inputs and variables of GitHub.
fn with(repository: &Path, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let runner = tempfile::tempdir().unwrap();
    let at = |name: &str| runner.path().join(name);
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dist/action/compare");
    let mut step = Command::new(action);
    step.current_dir(repository)
        .env("RUNNER_TEMP", runner.path())
        .env("GITHUB_STEP_SUMMARY", at("summary"))
        .env("GITHUB_OUTPUT", at("output"))
        .env("APPORTION_CACHE_DIR", at("cache"))
        .env("COMMAND", assert_cmd::cargo::cargo_bin("apportion"))
        .envs([("SCENARIO", "x.toml"), ("SEEDS", "3"), ("FAIL_ON", "worst_share")])
        .envs([
            ("BASE", ""),
            ("PULL_REQUEST_BASE", ""),
            ("BASELINE", ""),
            ("GITHUB_SHA", ""),
            ("GITHUB_EVENT_NAME", "pull_request"),
        ])
        .envs(variables.iter().copied());
    let done = child::output(&mut step);
    let status = done.status.code();
    if let Ok(output) = fs::read_to_string(at("output")) {
        assert!(Path::new(output.trim().strip_prefix("page=").unwrap()).is_file(), "{output}");
    }
    let said = || String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    (status, fs::read_to_string(at("summary")).unwrap_or_else(|_| said()))
}

#[test]
fn the_action_fails_a_change_that_moves_the_worst_share() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    let write = |text: &str| fs::write(repository.join("x.toml"), text).unwrap();
    let commit = |what: &str| {
        git(repository, &["add", "--all"]);
        git(repository, &["commit", "--quiet", "--allow-empty", "--message", what]);
        git(repository, &["rev-parse", "HEAD"])
    };
    git(repository, &["init", "--quiet"]);
    let empty = commit("nothing");
    write(SCENARIO);
    let base = commit("a scenario");
    let (status, summary) = step(repository, &empty, "");
    assert!(status == Some(0) && summary.contains("x.toml is new"), "{status:?} {summary}");
    let (status, summary) = step(repository, &base, "");
    assert!(status == Some(0) && summary.contains("None of `worst_share` moved"), "{status:?} {summary}");
    write(&SCENARIO.replace("fifo", "drr"));
    let (status, summary) = step(repository, &base, "");
    assert!(status == Some(1) && summary.contains("\n- worst_share: "), "{status:?} {summary}");
    // Neither a stored run that is not there, nor no base at all, counts as a change.
    for (base, baseline, why) in
        [(base.as_str(), "nowhere", "cannot read results"), ("", "", "there is no base")]
    {
        let (status, said) = step(repository, base, baseline);
        assert!(status == Some(2) && said.contains(why), "{status:?} {said}");
    }
    assert_eq!(git(repository, &["worktree", "list"]).lines().count(), 1);
}

#[test]
fn the_action_compares_with_the_base_of_the_merge() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path();
    let commit = |what: &str| {
        git(repository, &["add", "--all"]);
        git(repository, &["commit", "--quiet", "--message", what]);
        git(repository, &["rev-parse", "HEAD"])
    };
    git(repository, &["init", "--quiet", "--initial-branch", "main"]);
    fs::write(repository.join("x.toml"), SCENARIO).unwrap();
    let old = commit("a scenario");
    git(repository, &["switch", "--quiet", "--create", "change"]);
    fs::write(repository.join("y"), "").unwrap();
    commit("a change that moves nothing");
    git(repository, &["switch", "--quiet", "main"]);
    fs::write(repository.join("x.toml"), SCENARIO.replace("fifo", "drr")).unwrap();
    commit("a change of main since the pull request was opened");
    git(repository, &["switch", "--quiet", "--detach"]);
    git(repository, &["merge", "--quiet", "--no-ff", "--message", "merge", "change"]);
    let merge = git(repository, &["rev-parse", "HEAD"]);
    let (status, summary) = with(repository, &[("PULL_REQUEST_BASE", &old), ("GITHUB_SHA", &merge)]);
    assert!(status == Some(0) && summary.contains("None of `worst_share` moved"), "{status:?} {summary}");
    // In a checkout of another commit, the base is that of the event.
    for other in
        [("GITHUB_SHA", old.as_str()), ("GITHUB_EVENT_NAME", "pull_request_target"), ("BASE", old.as_str())]
    {
        let (status, summary) =
            with(repository, &[("PULL_REQUEST_BASE", &old), ("GITHUB_SHA", &merge), other]);
        assert!(status == Some(1) && summary.contains("\n- worst_share: "), "{other:?} {status:?} {summary}");
    }
    // A commit that is no merge has no base of its own.
    git(repository, &["checkout", "--quiet", "main"]);
    let main = git(repository, &["rev-parse", "HEAD"]);
    let (status, summary) = with(repository, &[("PULL_REQUEST_BASE", &main), ("GITHUB_SHA", &main)]);
    assert!(status == Some(0) && summary.contains("None of `worst_share` moved"), "{status:?} {summary}");
}
