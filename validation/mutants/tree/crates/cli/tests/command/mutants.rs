//! `apportion reproduce --mutants`.

use tempfile::TempDir;

use crate::common::{Run, apportion};

/// A paper about probabilistic fair drop, with one claim: arrivals above a third of the buffer cause early drops.
const PAPER: &str = r#"
title = "Early drops"
paper = "A toy"
[[experiment]]
id = "pfd/early"
source = "Fig. 1"
summary = "three flows"
[experiment.run.main]
scenario = "early.toml"
[[experiment.metric]]
name = "early_drops"
unit = "packets"
kind = "derived"
op = "ge"
value = 5
measure = { kind = "drops", as = "sum", reason = "early" }
"#;

const SCENARIO: &str = r#"
seed = 23
stop = "7s"
[topology]
kind = "dumbbell"
pairs = 3
bottleneck = { rate = "2Mbit", delay = "9ms", queue = { kind = "drr", drop = "pfd", limit = "40p", p = 0.1, thresh = 0.33 } }
[flow.tcp]
count = 3
from = "l{i}"
to = "r{i}"
tcp = "ns2-2000"
"#;

/// Runs `apportion reproduce --seeds 2` with these arguments in a folder with that paper.
fn reproduce(arguments: &[&str]) -> (TempDir, Run) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("papers/pfd");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("expect.toml"), PAPER).unwrap();
    std::fs::write(home.join("early.toml"), SCENARIO).unwrap();
    let run = apportion(folder.path(), &[&["reproduce", "--seeds", "2"], arguments].concat());
    (folder, run)
}

#[test]
fn a_mutant_that_a_claim_notices_is_killed_with_both_measurements() {
    let (_folder, run) = reproduce(&["--mutants", "pfd-p-zero"]);
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    let lines: Vec<&str> = run.out.lines().collect();
    assert_eq!(lines[0], "killed    pfd-p-zero (nothing is dropped early: p is 0)");
    let by = lines[1];
    assert!(
        by.starts_with("          by pfd/early early_drops: 0 ") && by.ends_with(" without, expected ≥ 5"),
        "{by}"
    );
    assert_eq!(lines[2..], ["", "pfd: 1 of 1 mutants killed by claims"]);
}

#[test]
fn a_mutant_that_survives_exits_with_1_and_names_its_unit_test() {
    // Ten times as many early drops as there should be are at least five.
    let (_folder, run) = reproduce(&["--mutants", "pfd-p-tenfold", "pfd-p-zero", "--json"]);
    assert_eq!((run.status, run.err.as_str()), (1, ""), "{}", run.out);
    let rows: Vec<serde_json::Value> =
        run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |name: &str| rows.iter().find(|row| row["mutant"] == name).unwrap();
    let (survivor, killed) = (of("pfd-p-tenfold"), of("pfd-p-zero"));
    assert_eq!(rows.len(), 2);
    assert_eq!((&survivor["killed"], &survivor["claims"]), (&false.into(), &1.into()));
    assert!(survivor["experiment"].is_null() && survivor["test"].as_str().unwrap().starts_with("aqm::pfd::"));
    assert_eq!((&killed["killed"], &killed["experiment"]), (&true.into(), &"pfd/early".into()));
}

#[test]
fn what_cannot_be_run_exits_with_2_and_says_why() {
    let error = |arguments: &[&str]| {
        let (_folder, run) = reproduce(arguments);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
        run.err
    };
    assert_eq!(
        error(&["--mutants", "pfd-p-zeor"]),
        "error: no mutant or system of mutants is called `pfd-p-zeor` (did you mean `pfd-p-zero`?); \
         write experiments before --mutants\n"
    );
    assert_eq!(
        error(&["--mutants", "ramp-no-d"]),
        "error: no chosen experiment is about `ramp` and has claims\n"
    );
    assert_eq!(
        error(&["pfd/earyl", "--mutants", "pfd"]),
        "error: no experiment or paper is called `pfd/earyl` (did you mean `pfd/early`?); papers are pfd, and \
         `apportion list experiments` prints their experiments\n"
    );
    assert_eq!(
        error(&["--world", "lab", "--mutants", "pfd"]),
        "error: mutants run in the simulator only: leave out --world lab or --mutants\n"
    );
}
