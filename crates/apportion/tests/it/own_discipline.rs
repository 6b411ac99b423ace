//! The example of a registered discipline: within its length limit, lawful, and usable everywhere that others
//! are.
#![cfg(all(feature = "live", target_os = "linux"))]

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use apportion::{ScenarioBuilder, catalogue};
use apportion_core::buffer::Buffer;
use apportion_core::limit::LinkLimit;
use apportion_core::schedule::fifo::Fifo;
use apportion_testing::child::{self, Running};
use apportion_testing::skip;

use crate::example;

/// Builds the example and its dependencies, if they are not up to date. Returns cargo's output.
pub(crate) fn build(arguments: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    // With the features of all crates, as `cargo test --workspace` has built the dependencies.
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env_remove("RUSTC_BOOTSTRAP");
    cargo.args(["build", "-q", "--workspace", "--example", "own_discipline"]).args(arguments);
    if cfg!(feature = "bpf") {
        cargo.args(["--features", "apportion/bpf"]);
    }
    cargo.args((!cfg!(debug_assertions)).then_some("--release"));
    // A test of this crate alone has not built the dependencies of other crates: that takes minutes, in
    // processes of the same group.
    let cargo = Running::start(cargo.process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let (built, ended) = cargo.output_within(Duration::from_secs(1_200));
    assert!(ended && built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    String::from_utf8(built.stdout).unwrap()
}

/// Builds the example and runs it.
fn run(arguments: &[&str]) -> Output {
    build(&[]);
    // This test is in the folder `deps` next to the folder of examples.
    let program = std::env::current_exe().unwrap().with_file_name("../examples/own_discipline");
    child::output(Command::new(program).args(arguments))
}

#[test]
fn it_is_at_most_60_lines_and_keeps_the_laws() {
    assert!(include_str!("../../examples/own_discipline.rs").lines().count() <= 62);
    let limit = |link| LinkLimit::new(Some("6p".parse().unwrap()), link);
    apportion_laws::Laws::default()
        .limit(apportion::units::Packets::new(6))
        .check(|link| Buffer::new(Fifo::new(), example::Quadratic(limit(link.link_rate), link.stream())));
}

#[test]
fn it_is_listed_explained_and_in_the_schema() {
    let catalog = example::catalog().unwrap();
    let listed = catalogue::list(&catalog).into_iter().flat_map(|list| list.entries);
    assert!(listed.into_iter().any(|entry| entry.name == "quadratic"));
    assert!(catalogue::explain(&catalog, "quadratic").unwrap().contains("Drops with the square"));
    let guess = catalogue::explain(&catalog, "quadrtic").unwrap_err().to_string();
    assert!(guess.contains("did you mean `quadratic`?"), "{guess}");
    assert!(catalogue::schema(&catalog).to_string().contains("quadratic"));
}

#[test]
fn a_scenario_has_it_if_a_queue_is_of_its_kind() {
    let has = |queue: &str, change: &str| {
        // Its name is also the name of a host and of a flow.
        let text = format!(
            r#"
            seed = 1
            stop = "1s"
            link.x = {{ from = "quadratic", to = "b", rate = "2Mbit", delay = "5ms", queue = {queue} }}
            flow.quadratic = {{ from = "quadratic", to = "b" }}
            change = [{{ at = "0.5s", set = "link.x.queue", to = {change} }}]
            "#
        );
        let builder = ScenarioBuilder::from_text(text).catalog(&example::catalog().unwrap());
        builder.load().unwrap().has_own_code()
    };
    assert!(!has(r#""fifo""#, r#""drr""#));
    assert!(has(r#"["fifo", "quadratic"]"#, r#""drr""#));
    assert!(has(r#""fifo""#, r#""quadratic""#));
    assert!(has(r#""fifo""#, r#"{ kind = "quadratic", isolate = "source" }"#));
}

#[test]
fn it_runs_in_a_sweep_with_all_others() {
    let output = run(&[]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for name in ["=fifo ", "=red ", "=fq_codel ", "=ramp ", "=quadratic "] {
        assert!(text.contains(name), "{name} is not in\n{text}");
    }
}

#[test]
fn it_runs_on_real_packets() {
    let output = run(&["sh", "-c", "test -n \"$APPORTION_FAR\""]);
    let (text, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    // The example returns the error unchanged, which prints its fields.
    if error.contains("cannot make a") || error.contains("max_user_namespaces") {
        return skip::because(error);
    }
    assert!(output.status.success(), "{error}");
    assert!(text.contains("up") && !text.contains("fifo"), "{text}");
}
