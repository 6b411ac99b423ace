//! The library as a program uses it: scenarios, runs, tables, folders, errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use apportion::rows::{Cell, FlowRow, LinkRow, SeriesRow};
use apportion::{
    Cache, Cancel, Contents, KeepError, Progress, Results, Retain, Run, RunError, Scenario, ScenarioBuilder,
    ScenarioError, Simulations, Table,
};

const TEXT: &str = r#"
title = "Two flows"
seed = 3
stop = "2s"
[link.bottleneck]
from = "a"
to = "b"
rate = "1Mbit"
delay = "5ms"
queue = ["fifo", "drr"]
watch = true
[flow.tcp]
count = 2
from = "a"
to = "b"
tcp = "rfc"
"#;

fn scenario() -> Scenario {
    Scenario::from_text(TEXT).unwrap()
}

/// Returns every file of a folder by its name, including hidden ones.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|it| (it.file_name().into_string().unwrap(), std::fs::read(it.path()).unwrap())).collect()
}

/// Formats a table as the CSV file in a folder of results.
fn csv<R: Table>(results: &Results) -> String {
    let header: Vec<_> = R::COLUMNS.iter().map(|column| column.name).collect();
    let mut lines = vec![header.join(",")];
    for row in results.table::<R>() {
        let cell = |cell: &Cell<'_>| match cell {
            Cell::Text(text) => (*text).to_owned(),
            Cell::Integer(number) => number.to_string(),
            // The shortest text that reads back; integers with a zero.
            Cell::Number(number) => format!("{number:?}"),
            Cell::Flag(flag) => flag.to_string(),
            Cell::Missing => String::new(),
        };
        lines.push(row.cells().iter().map(cell).collect::<Vec<_>>().join(","));
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_scenario_of_a_report_gives_its_numbers() {
    let text = TEXT.replace("Two flows", "</script></pre> & 'two' \\\"flows\\\" \\u0001 é") + "# </script>";
    let scenario = Scenario::from_text(text).unwrap().set("stop", "3s").unwrap();
    let results = Run::new(&scenario).seeds(2).simulate().unwrap();
    let page = results.report();
    // The page's script reads the text of this element.
    let (_, rest) = page.split_once("<pre id=\"scenario\" data-seeds=\"2\">").expect("it has a link");
    let (html, _) = rest.split_once("</pre>").unwrap();
    assert!(!html.contains('<'));
    let text = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")]
        .iter()
        .fold(html.to_owned(), |text, (from, to)| text.replace(from, to));
    assert_eq!(text, scenario.canonical());
    let again = Run::new(&Scenario::from_text(text).unwrap()).seeds(2).simulate().unwrap();
    assert_eq!(csv::<FlowRow>(&again), csv::<FlowRow>(&results));
    assert_eq!(again.report(), page);
}

#[test]
fn tables_have_the_bytes_of_the_csv_files() {
    let folder = tempfile::tempdir().unwrap();
    let results = Run::new(&scenario()).seeds(2).folder(folder.path()).simulate().unwrap();
    let written = files(&folder.path().join("1"));
    let file = |name: &str| String::from_utf8(written[name].clone()).unwrap();
    assert_eq!(csv::<FlowRow>(&results), file("flows.csv"));
    assert_eq!(csv::<LinkRow>(&results), file("links.csv"));
    let mut series = Vec::new();
    apportion::export(folder.path(), "series", &mut series).unwrap();
    assert_eq!(csv::<SeriesRow>(&results), String::from_utf8(series).unwrap());
    assert_eq!(results.report(), file("report.html"));
    assert_eq!(results.flows().count(), 2 * 2 * 2);
    assert_eq!(results.links().filter(|row| row.watched).count(), 2 * 2);
    // A folder that is written later is the same.
    let later = tempfile::tempdir().unwrap();
    let later = results.write(later.path()).unwrap();
    assert!(files(&later) == written);
    assert_eq!(results.folder(), Some(folder.path().join("1").as_path()));
}

#[test]
fn threads_do_not_change_a_number_and_seeds_do() {
    let scenario = scenario();
    let flows = |run: Run<'_>| run.simulate().unwrap().flows().collect::<Vec<_>>();
    let one = flows(Run::new(&scenario).seeds(3).jobs(1));
    assert_eq!(one, flows(Run::new(&scenario).seeds(3).jobs(2)));
    let other = scenario.set("seed", 4).unwrap();
    assert_ne!(one, flows(Run::new(&other).seeds(3)));
}

#[test]
fn progress_counts_every_replication_and_twin_in_order() {
    let seen = Mutex::new(Vec::new());
    let scenario = scenario();
    let run = Run::new(&scenario).seeds(4);
    run.progress(|progress| seen.lock().unwrap().push(progress)).simulate().unwrap();
    let seen = seen.into_inner().unwrap();
    // The reports in between are about partial progress.
    let mut ended: Vec<usize> = seen.iter().map(|progress| progress.done).filter(|done| *done > 0).collect();
    ended.dedup();
    assert_eq!(ended, (1..=16).collect::<Vec<_>>());
    assert!(seen.iter().all(|progress| progress.total == 16 && progress.reused == 0), "{seen:?}");
    let last = seen.last().unwrap();
    assert!(last.done == 16 && last.partly.abs() < 1e-9, "{last:?}");
}

#[test]
fn progress_within_a_long_run_is_reported_until_it_is_stopped() {
    // Hours of simulated time, with an early report of partial progress.
    let scenario =
        scenario().edit().set("link.bottleneck.queue", "fifo").set("stop", "1000000s").load().unwrap();
    let cancel = Cancel::new();
    let seen = Mutex::new(Vec::new());
    let report = |progress: Progress| {
        let mut seen = seen.lock().unwrap();
        seen.push(progress.part());
        if seen.len() == 3 {
            cancel.cancel();
        }
    };
    let run = Run::new(&scenario).seeds(1).phase_check(false).force(true).cancel(&cancel).progress(report);
    assert!(!run.simulate().unwrap().is_complete());
    let seen = seen.lock().unwrap();
    assert!(seen.is_sorted() && seen[0] > 0.0 && seen[2] < 1.0, "{seen:?}");
}

#[test]
fn a_run_that_is_cancelled_keeps_what_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    // The second point would take hours.
    let scenario = scenario()
        .edit()
        .set("link.bottleneck.queue", "fifo")
        .set("stop", r#"["2s", "1000000s"]"#)
        .load()
        .unwrap();
    let cancel = Cancel::new();
    let run = Run::new(&scenario).jobs(1).cancel(&cancel).folder(folder.path());
    let results = run.progress(|_| cancel.cancel()).simulate().unwrap();
    assert!(!results.is_complete());
    assert_eq!(results.flows().count(), 2);
    assert!(results.summary().contains("interrupted"));
    let head = String::from_utf8(files(&folder.path().join("1"))["run.json"].clone()).unwrap();
    assert!(head.contains("\"complete\": false"), "{head}");
}

#[test]
fn a_run_of_which_nothing_has_ended_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, cancel) = (scenario(), Cancel::new());
    cancel.cancel();
    for retain in [Retain::Full, Retain::Rows, Retain::Metrics] {
        let run = Run::new(&scenario).seeds(2).retain(retain).cancel(&cancel).folder(folder.path());
        let results = run.simulate().unwrap();
        assert!(results.is_empty() && results.folder().is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

#[test]
fn a_run_under_way_is_cancelled_from_another_thread() {
    let scenario = scenario()
        .edit()
        .set("link.bottleneck.queue", "fifo")
        .set("stop", r#"["2s", "1000000s"]"#)
        .load()
        .unwrap();
    let cancel = Cancel::new();
    let (finished, first) = std::sync::mpsc::channel();
    let results = std::thread::scope(|scope| {
        let other = cancel.clone();
        scope.spawn(move || {
            first.recv().unwrap();
            other.cancel();
        });
        let run = Run::new(&scenario).jobs(2).cancel(&cancel);
        run.progress(|_| finished.send(()).unwrap_or_default()).simulate().unwrap()
    });
    assert!(!results.is_complete());
    assert_eq!((results.points()[0].outcomes.len(), results.points()[1].outcomes.len()), (1, 0));
}

#[test]
fn captures_are_written_to_the_folder_for_the_first_replication() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario().set("link.bottleneck.pcap", true).unwrap();
    Run::new(&scenario).seeds(2).folder(folder.path()).simulate().unwrap();
    let files = files(&folder.path().join("1"));
    for name in ["1-bottleneck.pcap", "2-bottleneck.pcap"] {
        // 24 bytes of file header; 2 s at 1 Mb/s are about 160 packets.
        assert!(files[name].len() > 24 + 100 * 16, "{name}: {} bytes", files[name].len());
    }
}

#[test]
fn a_capture_that_was_cut_short_is_no_complete_run() {
    let [folder, cache] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let scenario = scenario().set("link.bottleneck.pcap", true).unwrap();
    let cancel = Cancel::new();
    let run = || Run::new(&scenario).cache(&Cache::at(cache.path()), Cache::MOST).cancel(&cancel);
    assert!(run().folder(folder.path()).simulate().unwrap().is_complete());
    // All results are in the cache, except for the captures.
    cancel.cancel();
    assert!(!run().folder(folder.path()).simulate().unwrap().is_complete());
}

#[test]
fn a_folder_that_cannot_be_one_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let letter = folder.path().join("letter.txt");
    std::fs::write(&letter, "dear").unwrap();
    let scenario = scenario();
    let run = Run::new(&scenario).folder(&letter).progress(|_| panic!("it was run"));
    let error = run.simulate().unwrap_err();
    assert!(matches!(error, RunError::Write(_)));
    assert!(error.to_string().contains("it is a file, not a folder"), "{error}");
    assert_eq!(std::fs::read(letter).unwrap(), b"dear");
}

#[test]
fn a_run_that_holds_nothing_says_the_same_and_takes_and_gives_what_is_kept() {
    let [folder, cache] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let cache = Cache::at(cache.path());
    let scenario = scenario();
    let run = |retain: Retain, out: &str| {
        let run = Run::new(&scenario).seeds(3).phase_check(true).retain(retain).cache(&cache, u64::MAX);
        run.folder(folder.path().join(out)).simulate().unwrap()
    };
    let (lean, again) = (run(Retain::Metrics, "a"), run(Retain::Rows, "b"));
    let (full, full_again) = (run(Retain::Full, "c"), run(Retain::Metrics, "d"));
    // The stored results of a run that retains no outcomes are insufficient for one that does, apart from
    // perturbed copies; the reverse is possible.
    let all = 2 * 2 * 3;
    assert_eq!([&lean, &again, &full, &full_again].map(Results::reused), [0, all, all / 2, all]);
    for other in [&again, &full, &full_again] {
        assert_eq!((lean.summary(), lean.json_lines()), (other.summary(), other.json_lines()));
    }
    let table = |out: &str, name: &str| {
        let mut text = Vec::new();
        apportion::export(&folder.path().join(out), name, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    for name in apportion::TABLES {
        assert!(["b", "c", "d"].iter().all(|out| table(out, name) == table("a", name)), "{name}");
    }
    assert_eq!((lean.flows().count(), full.flows().count()), (0, 2 * 2 * 3));
    assert!(again.flows().eq(full.flows()) && again.links().eq(full.links()));
    // The run is short: its folder would have a report with details.
    assert!(again.write(folder.path().join("e")).unwrap_err().to_string().contains("did not hold"));
    assert!(lean.write(folder.path().join("e")).unwrap_err().to_string().contains("did not hold"));
}

#[test]
fn a_long_run_that_holds_rows_is_written_as_if_it_held_outcomes() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario().set("stop", "300ms").unwrap().set("measure_from", "100ms").unwrap();
    let seeds = Contents::LONG / 2 + 1;
    let run = |retain: Retain| Run::new(&scenario).seeds(seeds).phase_check(false).retain(retain);
    assert_eq!(Retain::of(2 * seeds), Retain::Rows);
    let rows = run(Retain::Rows).simulate().unwrap();
    assert!(rows.points().iter().all(|point| point.outcomes.is_empty()) && rows.series().next().is_none());
    let written = rows.write(folder.path()).unwrap();
    let direct = run(Retain::Metrics).folder(folder.path()).simulate().unwrap();
    let (written, mut direct) = (files(&written), files(direct.folder().unwrap()));
    direct.insert("run.json".into(), written["run.json"].clone());
    assert!(written == direct, "but for when and how");
}

#[test]
fn every_problem_of_a_scenario_is_in_the_error() {
    let bad = TEXT.replace("1Mbit", "10kbps").replace("stop", "stopp");
    let error = ScenarioBuilder::from_text(bad).origin("bad.toml").load().unwrap_err();
    let ScenarioError::Problems(problems) = &error else { panic!("{error}") };
    assert_eq!(problems.len(), 3);
    assert_eq!(problems[2].path, "link.bottleneck.rate");
    assert_eq!(
        error.to_string(),
        "bad.toml:1: stop: missing; write for example stop = \"20ms\"\n\
         bad.toml:4: stopp: unknown key (did you mean `stop`?); known here: title, seed, stop, measure_from, \
         sample, topology, routing, sweep, defaults, link, flow, customer, agreement, plans, change\n\
         bad.toml:8: link.bottleneck.rate: `10kbps` is not a rate: `bps` is ambiguous: bits or bytes?; \
         write for example \"10Mbit\""
    );
    let error = scenario().set("stop", 60).unwrap_err();
    assert_eq!(
        error.to_string(),
        "scenario: --set: stop: `60` is not a time: the unit is missing; write for example \"20ms\""
    );
    let error = Scenario::from_file("gone.toml").unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "gone.toml: cannot read the scenario: {}; name a TOML file, or an example of `apportion list scenarios`",
            std::io::Error::from_raw_os_error(2)
        )
    );
    let error = Scenario::from_file("quikstart").unwrap_err().to_string();
    assert!(error.contains("(os error 2) (did you mean `quickstart`?); name a TOML file"), "{error}");
}

#[test]
fn a_scenario_is_the_same_from_a_file_from_text_and_from_values() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    std::fs::write(&path, TEXT).unwrap();
    let from_file = Scenario::from_file(&path).unwrap();
    let from_values = Scenario::from_values(&TEXT.parse::<toml::Table>().unwrap()).unwrap();
    for other in [&from_file, &from_values] {
        assert_eq!(other.canonical(), scenario().canonical());
        assert_eq!(other.hash(), scenario().hash());
    }
    assert_eq!(Scenario::from_text(from_file.canonical()).unwrap().hash(), from_file.hash());
    // Files that a scenario refers to are relative to its own path, also after a change.
    std::fs::write(folder.path().join("frames.txt"), "1000\n500\n").unwrap();
    let video = r#"{ kind = "video", fps = 25, file = "frames.txt" }"#;
    let with_frames = from_file.edit().set("flow.tcp.source", video).load().unwrap();
    assert!(with_frames.set("stop", "3s").is_ok());
}

#[test]
fn a_program_sweeps() {
    let base = scenario().set("link.bottleneck.queue", "drr").unwrap();
    let throughput = |mbit: u64| {
        let scenario = base.set("link.bottleneck.rate", apportion::units::Rate::from_mbit(mbit)).unwrap();
        let results = Run::new(&scenario).simulate().unwrap();
        results.flows().map(|row| row.throughput_mbps).sum::<f64>()
    };
    let by_hand: Vec<f64> = [1, 2, 4].into_iter().map(throughput).collect();
    assert!(by_hand.is_sorted() && by_hand[0] > 0.7 && by_hand[2] > 2.5, "{by_hand:?}");
    // The same points as one sweep.
    let swept = base.set("link.bottleneck.rate", r#"["1Mbit", "2Mbit", "4Mbit"]"#).unwrap();
    let results = Run::new(&swept).simulate().unwrap();
    let metrics = results.metrics();
    let totals = metrics.iter().filter(|row| row.metric.name == "throughput_mbps");
    let totals: Vec<f64> = totals.map(|row| row.metric.samples[0]).collect();
    assert_eq!(totals.len(), 3);
    assert!(totals.iter().zip(&by_hand).all(|(one, other)| (one - other).abs() < 1e-9), "{totals:?}");
}

#[test]
fn stored_results_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (folder.path().join("one"), folder.path().join("two"));
    Run::new(&scenario()).folder(&one).simulate().unwrap();
    Run::new(&scenario().set("link.bottleneck.rate", "2Mbit").unwrap()).folder(&two).simulate().unwrap();
    let comparison =
        apportion::compare(&[apportion::load(&one).unwrap(), apportion::load(&two).unwrap()]).unwrap();
    let total = comparison.rows.iter().find(|row| row.metric == "throughput_mbps").unwrap();
    assert!(total.differences[0].unwrap().absolute > 0.5);
    assert!(apportion::load(folder.path()).unwrap_err().to_string().starts_with("cannot read results from"));
}

/// The scenario files below a folder of the repository.
fn scenario_files(folder: &Path) -> Vec<PathBuf> {
    let (mut all, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "toml") {
                all.push(path);
            }
        }
    }
    all
}

#[test]
fn no_example_and_no_scenario_of_a_paper_is_too_large() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut checked = 0;
    for path in
        ["scenarios", "papers", "validation"].map(|folder| scenario_files(&root.join(folder))).concat()
    {
        // Files of gateways and of claims are not scenarios.
        let Ok(scenario) = Scenario::from_file(&path) else { continue };
        let estimate = Run::new(&scenario).seeds(100).estimate();
        assert!(estimate.seconds() < 86_400.0 && estimate.memory < 2e9, "{}: {estimate}", path.display());
        checked += 1;
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn no_paper_is_too_large_with_all_its_variants() {
    // Tests run in the folder of their crate, where the built-in papers are used.
    let all = apportion::Reproduction::new(Vec::<String>::new()).variants(Vec::<String>::new());
    let estimate = all.seeds(20).estimate().unwrap();
    println!("{estimate}");
    assert!(estimate.seconds() < 86_400.0 && estimate.memory < 2e9, "{estimate}");
}

#[cfg(all(feature = "live", target_os = "linux"))]
#[test]
fn what_takes_more_than_a_day_in_the_lab_is_refused_unless_it_is_forced() {
    let refused = |path: &str, value: &str, seeds| {
        let scenario = ScenarioBuilder::from_text(TEXT).set(path, value).load().unwrap();
        let error = Run::new(&scenario).seeds(seeds).lab().unwrap_err();
        let parity = Run::new(&scenario).seeds(seeds).parity().unwrap_err();
        assert_eq!(error.to_string(), parity.to_string());
        error.to_string()
    };
    // Two points of 2 s each.
    let long = refused("title", "long", 21_601);
    assert!(long.contains("the lab would take 1.0 days in real time") && long.contains("--force"), "{long}");
    // Cancelled before it starts.
    let cancel = Cancel::new();
    cancel.cancel();
    let forced = Run::new(&scenario()).seeds(21_601).force(true).cancel(&cancel).lab().unwrap();
    assert!(!forced.is_complete());
    let large = refused("flow.tcp.count", "900000", 1);
    assert!(large.contains(" GB of memory, which"), "{large}");
}

#[test]
fn the_estimate_is_of_the_right_size() {
    for name in ["quickstart", "parking-lot", "short-flows", "unresponsive"] {
        let scenario = ScenarioBuilder::example(name).unwrap().set("stop", "20s").set("measure_from", "0s");
        let scenario = scenario.load().unwrap();
        let run = Run::new(&scenario);
        let estimate = run.estimate();
        let results = run.simulate().unwrap();
        let outcomes = results.points().iter().flat_map(|point| &point.outcomes);
        let hops = outcomes.map(|outcome| outcome.packet_hops as f64).sum::<f64>();
        let ratio = (estimate.hops + estimate.writes) / hops;
        assert!((0.4..3.0).contains(&ratio), "{name}: {estimate}, but {hops}");
    }
}

#[test]
fn a_run_in_parts_is_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = scenario();
    let cache = Cache::at(folder.path());
    let client = Simulations::new([&scenario], 3).phase_check(true).cache(&cache);
    // Another process loads the scenario from a packed one.
    let elsewhere = scenario.set("title", "other").unwrap().pack().unwrap().load().unwrap();
    let worker = Simulations::new([&elsewhere], 3).phase_check(true);
    assert_eq!(client.missing(), (0..12).collect::<Vec<_>>());
    for numbers in [&[7, 2, 3][..], &[11]] {
        for part in worker.simulate(numbers).unwrap() {
            client.keep(&part).unwrap();
        }
    }
    assert_eq!(client.missing(), [0, 1, 4, 5, 6, 8, 9, 10]);
    for part in client.simulate(&client.missing()).unwrap() {
        client.keep(&part).unwrap();
    }
    client.compact().unwrap();
    let run = || Run::new(&scenario).seeds(3);
    let (whole, alone) = (run().cache(&cache, Cache::MOST).simulate().unwrap(), run().simulate().unwrap());
    assert_eq!((whole.reused(), alone.reused()), (12, 0));
    assert_eq!(whole.report(), alone.report());
}

#[test]
fn simulations_of_two_scenarios_are_those_of_each() {
    let (one, two) = (scenario(), scenario().set("link.bottleneck.rate", "2Mbit").unwrap());
    let part = |of: &[&Scenario], number| {
        let all = Simulations::new(of.iter().copied(), 2);
        let part = all.simulate(&[number]).unwrap().remove(0);
        (part.key, part.frame.as_bytes().to_vec())
    };
    assert_eq!(Simulations::new([&one, &two], 2).total(), 8);
    for number in 0..4 {
        assert_eq!(part(&[&one, &two], number), part(&[&one], number));
        assert_eq!(part(&[&one, &two], 4 + number), part(&[&two], number));
    }
}

#[test]
fn a_part_of_another_run_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (scenario, cache) = (scenario(), Cache::at(folder.path()));
    let other = scenario.set("link.bottleneck.rate", "2Mbit").unwrap();
    let part = Simulations::new([&other], 1).simulate(&[0]).unwrap().remove(0);
    let all = Simulations::new([&scenario], 1).cache(&cache);
    assert!(matches!(all.keep(&part), Err(KeepError::Foreign)));
    assert_eq!(all.missing(), [0, 1]);
    let error = all.simulate(&[2]).err().unwrap();
    assert_eq!(error.to_string(), "there is no simulation 2: there are 2, from 0");
}

#[test]
fn a_packed_scenario_has_its_files_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, trace) = (folder.path().join("x.toml"), folder.path().join("frames.txt"));
    std::fs::write(&path, TEXT).unwrap();
    std::fs::write(&trace, "1000\n2000\n").unwrap();
    let video = r#"{ from = "a", to = "b", source = { kind = "video", file = "frames.txt", fps = 25 } }"#;
    let scenario = Scenario::from_file(&path).unwrap().set("flow.video", video).unwrap();
    let packed = scenario.pack().unwrap();
    std::fs::remove_file(&trace).unwrap();
    let part = |scenario: &Scenario| Simulations::new([scenario], 1).simulate(&[1]).unwrap().remove(0);
    let (here, there) = (part(&scenario), part(&packed.load().unwrap()));
    assert_eq!((here.key, here.frame.as_bytes()), (there.key, there.frame.as_bytes()));
    assert!(matches!(scenario.pack(), Err(ScenarioError::File { path, .. }) if path == trace));
}
