//! What would have no effect is refused: changes and flows after the end of the run, and formulas of `i` where there
//! is no group.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

use std::io;
use std::path::Path;

use apportion_scenario::load;

/// The errors of a scenario with these lines in its flow and at its end.
fn errors(flow: &str, end: &str, overrides: &[(&str, &str)]) -> Vec<String> {
    let text = format!(
        "seed = 1\nstop = \"10s\"\n[link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
         [flow.f]\nfrom = \"a\"\nto = \"b\"\ntcp = \"rfc\"\n{flow}\n{end}"
    );
    let overrides: Vec<_> =
        overrides.iter().map(|(path, value)| ((*path).to_owned(), (*value).to_owned())).collect();
    let no_files = |_: &Path| Err(io::ErrorKind::NotFound.into());
    match load(&text, Path::new("x.toml"), &overrides, &no_files) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(ToString::to_string).collect(),
    }
}

#[test]
fn a_flow_that_starts_after_the_end_is_refused() {
    let late = |start: &str| errors(&format!("start = {start}"), "", &[]);
    assert!(late("\"9.9s\"").is_empty());
    assert!(late("{ between = [\"9s\", \"12s\"] }").is_empty());
    let message =
        "x.toml:12: flow.f.start: flow `f` starts at 10s, but the run stops at 10s; start it earlier";
    assert_eq!(late("\"10s\""), [message]);
    assert_eq!(late("{ between = [\"10s\", \"12s\"] }"), [message]);
    assert_eq!(
        errors("count = 6\nstart = \"2s * i\"", "", &[]),
        ["x.toml:13: flow.f.start: flow `f.5` starts at 10s, but the run stops at 10s; start it earlier"]
    );
}

#[test]
fn a_change_after_the_end_is_refused() {
    let at = |at: &str| {
        let change = format!("[[change]]\nat = \"{at}\"\nset = \"link.l.rate\"\nto = \"2Mbit\"\n");
        errors("", &change, &[])
    };
    assert!(at("9999ms").is_empty());
    assert_eq!(
        at("10s"),
        ["x.toml:14: change[1].at: 10s is not before the end of the run, 10s; write an earlier time"]
    );
}

/// As `--set stop=5s` does to look at the beginning only.
#[test]
fn an_override_may_cut_a_run_short() {
    let change = "[[change]]\nat = \"8s\"\nset = \"link.l.rate\"\nto = \"2Mbit\"\n";
    assert!(errors("start = \"7s\"", change, &[("stop", "\"5s\"")]).is_empty());
}

#[test]
fn a_formula_needs_a_group() {
    let no_i = |path: &str, formula: &str, example: &str| {
        vec![format!(
            "x.toml:12: flow.f.{path}: `{formula}` is a formula of `i`, but there is no `i` here; write an amount, for \
             example {example}"
        )]
    };
    assert_eq!(errors("weight = \"2 * i\"", "", &[]), no_i("weight", "2 * i", "2.5"));
    assert_eq!(errors("start = \"1s * i\"", "", &[]), no_i("start", "1s * i", "\"20ms\""));
    assert_eq!(
        errors("source = { kind = \"cbr\", rate = \"1kbit * i\" }", "", &[]),
        no_i("source.rate", "1kbit * i", "\"10Mbit\"")
    );
    assert!(errors("count = 2\nweight = \"2 * i\"\nstart = \"1s * i\"", "", &[]).is_empty());
    // Defaults are written once for groups and for flows by themselves.
    let default = "[defaults.flow]\nweight = \"2 * i\"\nstart = \"1s * i\"\n\
                   source = { kind = \"cbr\", rate = \"1kbit * i\" }\n";
    assert!(errors("", default, &[]).is_empty());
}

#[test]
fn a_formula_of_something_else_is_shown_its_i() {
    let found = errors("count = 2\nweight = \"2 * j\"", "", &[]);
    assert_eq!(
        found,
        [
            "x.toml:13: flow.f.weight: `2 * j` is not a number; write for example 2.5; a formula needs `i`, the number of \
          the member, for example \"2 * i\""
        ]
    );
}
