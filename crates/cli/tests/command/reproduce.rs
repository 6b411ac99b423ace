//! `apportion reproduce` as people and scripts meet it.

use std::path::Path;

use tempfile::TempDir;

use crate::common::{apportion, apportion_with_cache, needs_linux, reused};

const SCENARIO: &str = r#"
seed = 1
stop = "10s"
[topology]
kind = "dumbbell"
pairs = 3
bottleneck = { rate = "3Mbit", delay = "10ms", queue = { kind = "drr", limit = "60p" } }
[flow.tcp]
count = 3
from = "l{i}"
to = "r{i}"
weight = "i"
tcp = "ns2-2000"
"#;

/// Deficit round robin divides by weights, FIFO does not.
const PAPER: &str = r#"
title = "Deficit round robin"
paper = "A toy"
[[experiment]]
id = "drr/weights"
source = "Fig. 1"
summary = "three weights"
[experiment.run.main]
scenario = "drr.toml"
ablate.FIFO = { "topology.bottleneck.queue.kind" = "fifo" }
[[experiment.metric]]
name = "r2"
unit = "1"
kind = "stated-claim"
op = "ge"
value = 0.9
breaks = ["FIFO"]
measure = { kind = "fit", of = ["tcp"], on = "weight", give = "r2" }
[[experiment.metric]]
name = "throughput_mbps/1_2_3"
unit = "Mb/s"
kind = "derived"
op = "approx"
value = [0.5, 1.0, 1.5]
tol_rel = 0.2
measure = { kind = "throughput", of = ["tcp"] }
[[experiment.figure]]
kind = "shares"
title = "Throughput over weight"
on = "weight"
series = [{ label = "DRR", of = ["tcp"] }]
[[experiment.figure]]
kind = "over_time"
title = "Throughput over time"
of = ["tcp"]
levels = [{ at = 0.5 }]
[[experiment.figure]]
kind = "table"
title = "Table I"
head = "Flow"
rows = ["1", "2", "3"]
columns = [{ label = "DRR", metric = "throughput_mbps/1_2_3", foot = "r2" }]
foot = "R²"

[[experiment]]
id = "drr/total"
source = "Fig. 2"
summary = "all of it"
[experiment.run.main]
scenario = "drr.toml"
[[experiment.metric]]
name = "total_mbps"
unit = "Mb/s"
kind = "derived"
op = "ge"
value = 2.8
measure = { kind = "throughput", as = "sum" }
"#;

fn checkout(paper: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("papers/drr");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("drr.toml"), SCENARIO).unwrap();
    std::fs::write(home.join("expect.toml"), paper).unwrap();
    folder
}

#[test]
fn claims_that_hold_exit_with_0_and_leave_a_page_and_lines() {
    let folder = checkout(PAPER);
    let run = apportion(folder.path(), &["reproduce", "--seeds", "2"]);
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    assert!(run.out.ends_with("3 of 3 claims hold.\npage: results/reproduce/drr.html\n"), "{}", run.out);
    // Both experiments have the same run, which was executed once with each seed.
    assert!(run.err.ends_with("2/2 runs done\n"), "{}", run.err);
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("results/reproduce").join(name)).unwrap();
    let page = read("drr.html");
    assert!(page.contains("3 of 3 claims hold.") && page.matches("<svg").count() == 2, "{page}");
    assert!(page.contains("<h3>Table I</h3>") && page.contains("apportion reproduce --seeds 2"));
    assert!(
        !page.contains("src=") && !page.contains("<link") && !page.contains("<script"),
        "it needs nothing from elsewhere"
    );
    assert_eq!(read("drr.jsonl").lines().count(), 3);
}

#[test]
fn a_kit_has_the_tables_and_figures_of_each_experiment() {
    let folder = checkout(PAPER);
    let kit = folder.path().join("results/reproduce/drr-kit");
    assert_eq!(apportion(folder.path(), &["reproduce", "--seeds", "2"]).status, 0);
    assert!(!kit.exists());
    assert_eq!(apportion(folder.path(), &["reproduce", "--seeds", "2", "--kit"]).status, 0);
    let mut names: Vec<String> = std::fs::read_dir(&kit)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let wanted = [
        "total.tex",
        "weights-1.pdf",
        "weights-1.svg",
        "weights-2.pdf",
        "weights-2.svg",
        "weights-3.tex",
        "weights.tex",
    ];
    assert_eq!(names, wanted);
    let read = |name: &str| std::fs::read_to_string(kit.join(name)).unwrap();
    assert!(std::fs::read(kit.join("weights-1.pdf")).unwrap().starts_with(b"%PDF-"));
    assert!(read("weights-2.svg").contains(">Throughput over time</text>"));
    let claims = read("weights.tex");
    assert!(
        claims.contains("throughput\\_mbps/1\\_2\\_3, Mb/s & ") && claims.contains("0.5 $\\pm$ 20 \\%"),
        "{claims}"
    );
    // Each flow's number has a cell in each column, with a rule between claims.
    let rows: Vec<usize> = claims
        .lines()
        .filter(|line| line.ends_with("\\\\"))
        .map(|line| line.matches(" & ").count())
        .collect();
    assert!(rows.len() == 5 && rows.iter().all(|count| *count == rows[0]), "{claims}");
    assert_eq!(claims.matches("\\midrule").count(), 2, "{claims}");
    assert!(read("weights-3.tex").contains("Flow & DRR: published"), "{}", read("weights-3.tex"));
}

#[test]
fn what_would_eat_the_machine_is_refused_with_an_estimate_unless_it_is_forced() {
    let folder = checkout(PAPER);
    let arguments = ["reproduce", "drr/total", "--seeds", "2", "--quiet"];
    let scenario = |rate: &str, delay: &str, stop: &str| {
        let text = format!(
            "seed = 1\nstop = \"{stop}\"\nlink.x = {{ from = \"a\", to = \"b\", rate = \"{rate}\", delay = \"{delay}\" }}\n\
             flow.tcp = {{ count = 3, from = \"a\", to = \"b\", tcp = \"ns2-2000\" }}\n"
        );
        std::fs::write(folder.path().join("papers/drr/drr.toml"), text).unwrap();
        apportion(folder.path(), &arguments)
    };
    let long = scenario("30Gbit", "10ms", "100000s");
    assert_eq!((long.status, long.out.as_str()), (2, ""), "{}", long.err);
    assert!(long.err.contains(" days of CPU time (") && long.err.contains("with --force"), "{}", long.err);
    // The link has room for 10^9 packets, but none arrives before the end.
    let large = scenario("1000Gbit", "9s", "8s");
    assert!(large.status == 2 && large.err.contains(" GB of memory, which"), "{}", large.err);
    assert!(!folder.path().join("results").exists());
    let forced = apportion(folder.path(), &[&arguments[..], &["--force"]].concat());
    assert!(forced.status != 2 && forced.err.is_empty(), "it runs: {}", forced.err);
}

#[test]
fn what_was_simulated_before_is_from_the_cache() {
    let (folder, cache) = (checkout(PAPER), tempfile::tempdir().unwrap());
    let reproduce = |out: &str, more: &[&str]| {
        let words = [&["reproduce", "--seeds", "3", "--out", out], more].concat();
        let run = apportion_with_cache(cache.path(), folder.path(), &words);
        assert_eq!(run.status, 0, "{}", run.err);
        run
    };
    let written = |out: &str| {
        let read = |name: &str| std::fs::read_to_string(folder.path().join(out).join(name)).unwrap();
        (read("drr.html"), read("drr.jsonl"))
    };
    let first = reproduce("one", &[]);
    let again = reproduce("two", &[]);
    assert_eq!((reused(&first), reused(&again)), (0, 3));
    assert_eq!(first.out.replace("one/", "two/"), again.out);
    assert_eq!(written("one"), written("two"));
    // A disabled mechanism is part of the key.
    assert_eq!(reused(&reproduce("off", &["--ablate"])), 0);
    // Runs of a scenario share its simulations.
    let run =
        apportion_with_cache(cache.path(), folder.path(), &["run", "papers/drr/drr.toml", "--seeds", "3"]);
    assert_eq!(reused(&run), 3, "{}", run.err);
    assert_eq!(reused(&reproduce("anew", &["--no-cache"])), 0);
    assert_eq!(written("one"), written("anew"));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_reproduction_goes_on_where_it_was() {
    use std::io::{BufRead as _, BufReader};
    use std::process::{Command, Stdio};

    use apportion_testing::child::Running;

    let (folder, cache) = (checkout(PAPER), tempfile::tempdir().unwrap());
    let words = ["reproduce", "drr/total", "--seeds", "400", "--jobs", "1"];
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    command
        .args(words)
        .current_dir(folder.path())
        .env("APPORTION_CACHE_DIR", cache.path())
        .stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    let mut lines = BufReader::new(child.stderr()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "40/400 runs done");
    child.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(child.wait().code(), Some(1));
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(said.last().unwrap().ends_with("; the same command resumes it"), "{said:?}");
    let resumed = apportion_with_cache(cache.path(), folder.path(), &words);
    assert!((40..400).contains(&reused(&resumed)), "{}", resumed.err);
    let anew = apportion(folder.path(), &words);
    assert_eq!((resumed.status, resumed.out), (0, anew.out));
}

#[test]
fn json_has_the_agreed_keys_in_the_agreed_order() {
    let folder = checkout(PAPER);
    let run = apportion(folder.path(), &["reproduce", "drr/weights", "--seeds", "2", "--json"]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let second = run.out.lines().nth(1).unwrap();
    let keys = [
        "experiment",
        "metric",
        "unit",
        "published",
        "ideal",
        "measured",
        "ci95",
        "deviation",
        "seeds",
        "op",
        "verdict",
        "knife_edge",
    ];
    let places: Vec<usize> = keys.iter().map(|key| second.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted(), "{second}");
    let row: serde_json::Value = serde_json::from_str(second).unwrap();
    assert_eq!(row.as_object().unwrap().len(), keys.len(), "{second}");
    assert_eq!(row["ideal"], serde_json::json!([0.5, 1.0, 1.5]));
    assert_eq!(row["ci95"].as_array().unwrap().len(), 3);
}

#[test]
fn a_failed_claim_exits_with_1_unless_it_is_refuted() {
    let wrong = PAPER.replace("value = 2.8", "value = 3.8");
    let folder = checkout(&wrong);
    let run = apportion(folder.path(), &["reproduce", "drr/total", "--seeds", "1"]);
    assert_eq!(run.status, 1, "{}", run.err);
    assert!(run.out.contains("FAILS"), "{}", run.out);
    let refuted = wrong.replace(
        "value = 3.8",
        "value = 3.8\nrefuted = { reason = \"the link has 3 Mb/s\", searched = \"one seed\" }",
    );
    let folder = checkout(&refuted);
    let run = apportion(folder.path(), &["reproduce", "drr/total", "--seeds", "1", "--json"]);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(
        run.out.contains(r#""refuted":{"reason":"the link has 3 Mb/s","searched":"one seed"}}"#),
        "{}",
        run.out
    );
}

#[test]
fn with_the_mechanism_off_a_claim_that_holds_exits_with_1() {
    let folder = checkout(PAPER);
    let run = apportion(folder.path(), &["reproduce", "--ablate", "--seeds", "2", "--json"]);
    assert_eq!(run.status, 0, "{}{}", run.out, run.err);
    // The experiment that switches nothing off is left out.
    assert_eq!(run.out.matches("\"control\":\"FIFO\",\"must_fail\":").count(), 2, "{}", run.out);
    assert!(!run.out.contains("drr/total"));
    assert!(folder.path().join("results/reproduce/drr-ablated.html").is_file());
    let folder = checkout(&PAPER.replace("value = 0.9", "value = -1e9"));
    let run = apportion(folder.path(), &["reproduce", "--ablate", "--seeds", "2", "--quiet"]);
    assert_eq!((run.status, run.out.as_str(), run.err.as_str()), (1, "", ""));
}

#[test]
fn an_experiment_is_named_by_id_paper_or_path() {
    let folder = checkout(PAPER);
    let lines = |name: &str| {
        let run = apportion(folder.path(), &["reproduce", name, "--seeds", "1", "--json"]);
        assert_eq!(run.status, 0, "{name}: {}", run.err);
        run.out.lines().count()
    };
    for (name, count) in [("drr", 3), ("drr/total", 1), ("papers/drr", 3), ("papers/drr/expect.toml", 3)] {
        assert_eq!(lines(name), count, "{name}");
    }
    let list = apportion(folder.path(), &["list", "experiments"]);
    assert_eq!(list.out, "drr/weights  Fig. 1  three weights\ndrr/total    Fig. 2  all of it\n");
}

#[test]
fn what_is_not_there_exits_with_2_and_says_what_is() {
    let error = |folder: &Path, arguments: &[&str]| {
        let run = apportion(folder, arguments);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{}", run.err);
        run.err
    };
    let folder = checkout(PAPER);
    assert_eq!(
        error(folder.path(), &["reproduce", "drr/wieghts"]),
        "error: no experiment or paper is called `drr/wieghts` (did you mean `drr/weights`?); papers are drr, \
         and `apportion list experiments` prints their experiments\n"
    );
    assert!(!folder.path().join("results").exists());
    let bare = tempfile::tempdir().unwrap();
    assert!(
        error(bare.path(), &["reproduce", "pps/tabel1-sender"]).contains("did you mean `pps/table1-sender`?")
    );
    assert!(error(folder.path(), &["reproduce", "drr/total", "--ablate"]).contains("leave --ablate out"));
    for of_lab in [&["--retries", "1"][..], &["--allow-late"]] {
        let said = error(folder.path(), &[&["reproduce", "drr/total"], of_lab].concat());
        let is_refused = said.ends_with("are about runs of the lab: add --world lab, or leave them out\n");
        assert!(is_refused || needs_linux(&said), "{said}");
    }
    let on_cluster = ["reproduce", "drr/total", "--cluster", "tcp://127.0.0.1:1"];
    assert!(error(folder.path(), &on_cluster).contains("only the `apportion` of the Python package"));
    let in_lab = error(folder.path(), &[&on_cluster[..], &["--world", "lab"]].concat());
    let refusal = "error: the lab is on this machine: leave out --cluster or --world lab\n";
    assert!(in_lab == refusal || needs_linux(&in_lab), "{in_lab}");
}

#[test]
fn papers_are_built_in_and_a_folder_replaces_them() {
    let bare = tempfile::tempdir().unwrap();
    let list = apportion(bare.path(), &["list", "experiments"]);
    assert_eq!((list.status, list.err.as_str()), (0, ""));
    assert!(list.out.contains("pps/table1-sender") && list.out.contains("sffc/fig2"), "{}", list.out);
    let run = apportion(bare.path(), &["reproduce", "sffc/fig2", "--seeds", "1", "--json"]);
    assert_eq!((run.status, run.err.as_str()), (0, ""));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let whole = apportion(&root, &["list", "experiments"]);
    assert_eq!(whole.out, list.out, "the program has the papers of the checkout");
    let own = checkout(PAPER);
    assert_eq!(apportion(own.path(), &["list", "experiments"]).out.lines().count(), 2);
}

const VARIANT: &str = r#"
[[column]]
title = "rms error"
of = "drr/weights:throughput_mbps/1_2_3"
give = "rms_ideal"
[[variant]]
name = "no weights"
about = "a FIFO"
set = { "topology.bottleneck.queue.kind" = "fifo" }
"#;

#[test]
fn variants_are_shown_on_request_and_change_no_verdict() {
    let folder = checkout(&(PAPER.to_owned() + VARIANT));
    let plain = apportion(folder.path(), &["reproduce", "--seeds", "2", "--json"]);
    assert!(plain.status == 0 && !plain.out.contains("no weights"), "{}", plain.out);
    let run = apportion(folder.path(), &["reproduce", "drr", "--variants", "no weights", "--seeds", "2"]);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.out.contains("| no weights "), "{}", run.out);
    let read =
        |name: &str| std::fs::read_to_string(folder.path().join("results/reproduce").join(name)).unwrap();
    assert!(read("drr.html").contains("Effect of variants"));
    // Two claims of the experiment and the column, original and changed.
    assert_eq!(read("drr-variants.jsonl").lines().count(), 6);
    let json = apportion(folder.path(), &["reproduce", "--variants", "--seeds", "2", "--json"]);
    assert_eq!(json.out, plain.out + &read("drr-variants.jsonl"));
    let wrong = apportion(folder.path(), &["reproduce", "--variants", "drr"]);
    assert_eq!(wrong.status, 2);
    let message = "no variant is called `drr`; write experiments before --variants; variants are no weights";
    assert!(wrong.err.contains(message), "{}", wrong.err);
}
