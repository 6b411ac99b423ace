//! Every file in `scenarios/` loads, has a title and comments, and survives its canonical text.

use std::path::{Path, PathBuf};

use apportion_core::system::DisciplineParams;
use apportion_core::units::Rate;
use apportion_scenario::model::Scenario;
use apportion_scenario::{Suite, load};

/// Files for all users, then those that compare the simulator with Linux, those of docs/choosing.md, and
/// those with plans.
fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        files.sort();
        files
    };
    ["", "parity", "choosing", "plans"].map(|name| files(folder.join(name))).concat()
}

#[test]
fn every_example_loads_and_reads_back_from_its_canonical_text() {
    let names: Vec<_> = examples().iter().map(|path| path.file_stem().unwrap().to_owned()).collect();
    assert_eq!(
        names,
        [
            "approximate-fairness",
            "asymmetric",
            "bufferbloat",
            "bursty-loss",
            "classes",
            "core-stateless",
            "customers",
            "elephants",
            "fat-tree",
            "gfc",
            "hosts",
            "household",
            "jitter",
            "l4s-shares",
            "neighbours",
            "parking-lot",
            "queueing-delay",
            "quic",
            "quickstart",
            "rate-matching",
            "rtt-unfairness",
            "satellite",
            "short-flows",
            "tickets",
            "unresponsive",
            "variable-rate",
            "video-calls",
            "video-vs-bulk",
            "web",
            "wifi",
            "classes",
            "guarantees",
            "hosts",
            "neighbours",
            "protection",
            "queues",
            "video",
            "weights",
            "core",
            "customers",
            "floods",
            "home-uplink",
            "long-round-trips",
            "partial",
            "varying-rate",
            "video-and-calls",
            "evening",
        ]
    );
    for path in examples() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with('#'), "{}: the first line says what it is about", path.display());
        let suite = load(&text, &path, &[], &|path| std::fs::read(path)).unwrap_or_else(|problems| {
            panic!("{}", problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())
        });
        assert!(suite.points.len() > 1, "{}: an example compares disciplines", path.display());
        // Entitlements by classes are unknown.
        let with_classes =
            |queue: &DisciplineParams| queue.classes().is_some_and(|classes| classes.leaves.len() > 1);
        let is_known = |scenario: &Scenario| scenario.links.iter().all(|link| !with_classes(&link.queue));
        let mut known =
            suite.points.iter().map(|point| &point.scenario).filter(|scenario| is_known(scenario));
        let entitled = known.all(|scenario| scenario.hashed(1).is_some_and(|of| of.entitlements().is_some()));
        assert!(entitled, "{}: every flow is entitled to something", path.display());
        let again = load(&suite.canonical, &path, &[], &|path| std::fs::read(path)).unwrap();
        // Labels may be longer there, because it spells out the defaults that distinguish alternatives.
        let scenarios = |suite: &Suite| -> String {
            suite.points.iter().map(|point| format!("{:?}\n", point.scenario)).collect()
        };
        assert!(scenarios(&again) == scenarios(&suite), "{}", suite.canonical);
        assert_eq!((again.canonical, again.hash), (suite.canonical, suite.hash));
    }
}

#[test]
fn the_quickstart_compares_four_queues() {
    let path = examples().into_iter().find(|path| path.ends_with("quickstart.toml")).unwrap();
    let suite =
        load(&std::fs::read_to_string(&path).unwrap(), &path, &[], &|path| std::fs::read(path)).unwrap();
    let labels: Vec<_> = suite.points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["queue=fifo", "queue=red min_th=10p max_th=50p", "queue=drr", "queue=fq_codel"]);
    // Eleven flows that all want more than 10/11 Mb/s.
    let entitlements = suite.points[0].scenario.entitlements().unwrap();
    assert_eq!(entitlements, [Rate::from_bit(909_091); 11]);
}

/// Papers used ns-2, whose hosts take no time unless `overhead_` is set, and formulas, with the same
/// assumption. Folders `KEY-stress` test the defaults.
#[test]
fn scenarios_of_papers_and_of_validation_say_what_time_hosts_take_and_those_of_papers_their_preset() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["papers", "validation"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap() {
            let folder = entry.unwrap().path();
            let Ok(entries) = std::fs::read_dir(&folder) else { continue };
            // Settings of our own, with default parameters.
            let name = folder.file_name().unwrap().to_string_lossy();
            if name.ends_with("-stress") || name.starts_with("rfc") || name == "l4s-team" {
                continue;
            }
            files.extend(entries.map(|entry| entry.unwrap().path()).filter(|path| {
                path.extension().is_some_and(|of| of == "toml") && !path.ends_with("expect.toml")
            }));
        }
    }
    assert!(files.len() > 50, "{}", files.len());
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let suite = load(&text, &path, &[], &|path| std::fs::read(path)).unwrap();
        if path.starts_with(root.join("papers")) {
            let says = suite.canonical.contains("preset = \"paper\"");
            assert!(says, "{}: write `defaults.preset = \"paper\"`", path.display());
        }
        let flows = suite.points.iter().flat_map(|point| &point.scenario.flows);
        let silent: Vec<_> = flows.filter(|flow| flow.jitter.is_none()).map(|flow| &flow.name).collect();
        assert!(silent.is_empty(), "{}: write `defaults.flow.jitter = \"0s\"`; {silent:?}", path.display());
    }
}
