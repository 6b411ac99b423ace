//! `apportion league` and `apportion pairs`: output and files, refusals, and that a league resumes after a kill.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use apportion_testing::child::Running;
use tempfile::TempDir;

use crate::common::{apportion, apportion_with_cache, reused};

const SMALL: [&str; 7] =
    ["league", "--disciplines", "fifo,drr", "--situations", "floods,mixed-tcp", "--seeds", "2"];

#[test]
fn a_league_prints_a_table_and_writes_a_page_and_all_cells() {
    let folder = TempDir::new().unwrap();
    let run = apportion(folder.path(), &SMALL);
    assert_eq!(run.status, 0, "{}", run.err);
    let row = |name: &str| run.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(row("fifo").starts_with("fifo  0.0"), "{}", run.out);
    assert!(row("drr").split_whitespace().nth(1).unwrap() > "0.95", "{}", run.out);
    let page = "results/league/1/league.html";
    assert!(run.out.ends_with(&format!("page: {page}\n")), "{}", run.out);
    let page = std::fs::read_to_string(folder.path().join(page)).unwrap();
    assert!(page.contains("cells/floods/drr.html"));
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "it needs no network");
    let cells = std::fs::read_to_string(folder.path().join("results/league/1/cells.csv")).unwrap();
    assert!(cells.starts_with("situation,discipline,metric,unit,seeds,mean,half_width,reason\n"));
    assert!(cells.lines().any(|line| line.starts_with("floods,fifo,worst_share,,2,")));
}

#[test]
fn one_message_says_which_name_is_unknown() {
    let folder = TempDir::new().unwrap();
    let refused = |option: &str, name: &str, guess: &str| {
        let run = apportion(folder.path(), &["league", option, name, "--seeds", "1"]);
        assert_eq!((run.status, run.err.lines().count()), (2, 1), "{}", run.err);
        assert!(run.err.contains(&format!("did you mean `{guess}`?")), "{}", run.err);
    };
    refused("--disciplines", "fifo,fq_codell", "fq_codel");
    refused("--situations", "floods,partal", "partial");
    for option in ["--disciplines", "--situations"] {
        let run = apportion(folder.path(), &["league", option, " ,", "--estimate"]);
        assert_eq!(run.status, 2, "an empty list is not all: {}", run.out);
        assert!(run.err.contains(&format!("{option} names none")), "{}", run.err);
    }
    assert!(!folder.path().join("results").exists());
}

#[test]
fn a_scenario_file_joins_by_its_path_and_a_table_by_its_text() {
    let folder = TempDir::new().unwrap();
    let text = "# My office.\nseed = 1\nstop = \"20s\"\nlink.wire = { from = \"a\", to = \"b\", rate = \"4Mbit\", delay = \"5ms\", watch = true }\n\
                flow.tcp = { count = 2, from = \"a\", to = \"b\" }\n";
    let play = |text: &str| {
        std::fs::write(folder.path().join("office.toml"), text).unwrap();
        let disciplines = "fifo,{ kind = \"pie\", target = \"5ms\" }";
        apportion(
            folder.path(),
            &["league", "--situations", "office.toml", "--disciplines", disciplines, "--seeds", "1"],
        )
    };
    let run = play(text);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("it has no key `queue`"), "{}", run.err);
    let run = play(&text.replace("watch", "queue = \"drr\", watch"));
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.out.contains("My office."), "{}", run.out);
    assert!(
        run.out.contains("{ kind = \"pie\", target = \"5ms\" }") && !run.out.contains("drr"),
        "{}",
        run.out
    );
}

#[test]
fn a_league_that_was_played_gives_its_page_and_a_kit_again() {
    let folder = TempDir::new().unwrap();
    assert_eq!(apportion(folder.path(), &SMALL).status, 0);
    let again = ["league", "--from", "results/league/1", "--disciplines", "drr,drr", "--kit"];
    let run = apportion(folder.path(), &again);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.out.matches("\ndrr ").count() == 1 && !run.out.contains("fifo"), "{}", run.out);
    let kit = folder.path().join("results/league/2/kit");
    assert!(std::fs::read(kit.join("floods-front.pdf")).unwrap().starts_with(b"%PDF-"));
    assert!(std::fs::read_to_string(kit.join("floods.tex")).unwrap().contains("\\begin{tabular}"));
    // Finished cells are not run again.
    let run = apportion(folder.path(), &["league", "--from", "results/league/1", "--seeds", "3"]);
    assert_eq!(run.status, 2);
    assert!(run.err.contains("--seeds"), "{}", run.err);
    let run = apportion(folder.path(), &["league", "--from", "results"]);
    assert_eq!((run.status, run.err.lines().count()), (2, 1), "{}", run.err);
    assert!(run.err.contains("results/league.jsonl"), "{}", run.err);
}

#[test]
fn the_list_and_the_estimate_play_nothing() {
    let folder = TempDir::new().unwrap();
    let list = apportion(folder.path(), &["league", "--list"]);
    assert!(list.out.lines().count() >= 14 && list.out.contains("\nfloods "), "{}", list.out);
    let estimate = apportion(folder.path(), &["league", "--estimate", "--seeds", "1"]);
    assert!(estimate.out.contains(" simulations. All of them take "), "{}", estimate.out);
    assert!(!folder.path().join("results").exists());
}

/// Plays the league until it reports that part of it is done, ends it so, and plays it again. Returns the rest of what the
/// first said.
fn goes_on(end: impl FnOnce(&mut Running)) -> Vec<String> {
    let [folder, cache] = [(); 2].map(|()| TempDir::new().unwrap());
    let mut command = Command::new(assert_cmd::cargo::cargo_bin("apportion"));
    command
        .args([&SMALL[..], &["--jobs", "1"]].concat())
        .env("APPORTION_CACHE_DIR", cache.path())
        .current_dir(folder.path())
        .stderr(Stdio::piped());
    let mut child = Running::start(&mut command);
    let mut lines = BufReader::new(child.stderr()).lines();
    assert!(lines.next().unwrap().unwrap().contains("runs done"));
    end(&mut child);
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert!(!folder.path().join("results/league/1").exists());
    let run = apportion_with_cache(cache.path(), folder.path(), &SMALL);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(reused(&run) > 0, "{}", run.err);
    rest
}

#[test]
fn a_league_that_was_killed_goes_on_where_it_was() {
    goes_on(|league| {
        league.kill();
    });
}

#[cfg(target_os = "linux")]
#[test]
fn a_league_that_was_interrupted_goes_on_where_it_was() {
    let said = goes_on(|league| {
        league.signal(nix::sys::signal::Signal::SIGINT);
        assert_eq!(league.wait().code(), Some(1));
    });
    assert!(said.last().unwrap().ends_with("the same command resumes it"), "{said:?}");
}

#[test]
fn pairs_print_grids_and_write_a_page_and_all_cells() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("twice.toml"), "# Two files.\n\n[flow.file]\ncount = 2\n").unwrap();
    let words = "pairs --services flood,cubic,web,twice.toml --disciplines fifo,drr+isolate --rates 8Mbit --length 25s --seeds 2";
    let run = apportion(folder.path(), &words.split(' ').collect::<Vec<_>>());
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.out.ends_with("page: results/pairs/1/pairs.html\n"), "{}", run.out);
    let page = std::fs::read_to_string(folder.path().join("results/pairs/1/pairs.html")).unwrap();
    assert!(page.contains("8.00 Mb/s, drr+isolate") && page.contains("Two files."));
    let cells = std::fs::read_to_string(folder.path().join("results/pairs/1/pairs.csv")).unwrap();
    assert_eq!(cells.lines().count(), 1 + 2 * 16);
    assert!(page.contains("<h3>Median time of pages and files, s</h3>"), "{page}");
    let column = |at: usize, discipline: &str, contender: &str, incumbent: &str| {
        let is_it = |line: &&str| line.starts_with(&format!("8.0,{discipline},{contender},{incumbent},2,"));
        let cell = cells.lines().find(is_it).unwrap_or_else(|| panic!("{cells}"));
        cell.split(',').nth(at).unwrap().parse::<f64>().unwrap()
    };
    let score =
        |discipline: &str, contender: &str, incumbent: &str| column(9, discipline, contender, incumbent);
    // A FIFO gives all to a flood and two thirds to two flows; hosts share evenly.
    assert!(score("fifo", "flood", "cubic") < 0.1 && score("fifo", "twice", "cubic") < 0.85);
    // A file that fills a FIFO delays pages.
    let [alone, late, early] = [(11, "fifo"), (12, "fifo"), (12, "drr+isolate")]
        .map(|(at, discipline)| column(at, discipline, "cubic", "web"));
    assert!(late > 1.3 * alone && late > 1.3 * early, "{alone} {late} {early}");
    for pair in [("flood", "cubic"), ("cubic", "flood"), ("twice", "cubic"), ("cubic", "twice")] {
        let score = score("drr+isolate", pair.0, pair.1);
        assert!((0.95..=1.05).contains(&score), "{pair:?}: {score}");
    }
}

#[test]
fn one_message_says_why_a_service_cannot_join() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("x.toml"), "[flow.file]\nfrom = \"a\"\n").unwrap();
    std::fs::write(folder.path().join("y.toml"), "[flow.file]\ntpc = \"reno\"\n").unwrap();
    for (words, cause) in [
        ("--services cubci", "did you mean `cubic`?"),
        ("--services x.toml", "remove `from` of `flow.file`"),
        ("--services y.toml", "tpc"),
        ("--services ,", "--services names none"),
        ("--disciplines tred", "goes by tickets"),
        ("--length 0s", "--length"),
        ("--rates 0Mbit", "--rates"),
    ] {
        let words: Vec<&str> = ["pairs"].into_iter().chain(words.split(' ')).collect();
        let run = apportion(folder.path(), &words);
        assert_eq!((run.status, run.out.as_str()), (2, ""), "{words:?}: {}", run.err);
        assert!(run.err.contains(cause), "{words:?}: {}", run.err);
    }
    assert!(!folder.path().join("results").exists());
}
