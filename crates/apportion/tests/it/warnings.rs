//! Warnings about a run beyond its scenario: full links that are not watched.

use apportion::{Run, ScenarioBuilder};

/// 150 Mb/s of datagrams over access links of 100 Mb/s to a bottleneck of 500 Mb/s, 100 ms of which are
/// measured.
const SCENARIO: &str = r#"
    seed = 1
    stop = "300ms"
    measure_from = "200ms"
    topology = { kind = "dumbbell", pairs = 2, bottleneck = { rate = "500Mbit", delay = "1ms" } }
    flow.flood = { count = 2, from = "l{i}", to = "r{i}", source = { kind = "cbr", rate = "150Mbit", packet = "1500B" } }
"#;

fn warnings(set: &[(&str, &str)]) -> Vec<String> {
    let builder = set
        .iter()
        .fold(ScenarioBuilder::from_text(SCENARIO), |builder, (path, value)| builder.set(*path, *value));
    let results = Run::new(&builder.load().unwrap()).simulate().unwrap();
    let line = results.json_lines().lines().next().unwrap().to_owned();
    let page = results.report();
    for warning in results.warnings() {
        assert!(line.contains(&format!("{warning:?}")), "{line}");
        let plain = warning.split('`').next().unwrap();
        assert!(page.contains(plain), "{warning}");
    }
    results.warnings().to_vec()
}

const SHORT: &str = "only 0.1 s are measured, of which chance and slow start decide much; write a later `stop`, for 10 s or more";

#[test]
fn an_access_link_that_the_topology_implies_is_named_with_the_key_that_makes_it_faster() {
    let all = warnings(&[]);
    let [short, full] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(short, SHORT);
    // The second link may be full to the last packet too.
    let is_of = |n: u8| {
        full.starts_with(&format!(
            "link `l{n}-left` (and 3 more) was 100 % full and limits `flood.{n}`, and "
        ))
    };
    assert!(is_of(1) || is_of(2), "{full}");
    let end = "; write a higher `topology.access.rate`, or watch = true if it is meant as a bottleneck";
    assert!(
        full.contains("and `bottleneck`, the fullest on its way that is watched, 4") && full.ends_with(end),
        "{full}"
    );
}

#[test]
fn of_a_reverse_direction_it_is_said_which_way_it_leads() {
    let swapped = [("flow.flood.from", "r{i}"), ("flow.flood.to", "l{i}"), ("topology.access.rate", "1Gbit")];
    let slow = ("topology.bottleneck.back", "{ rate = \"200Mbit\", watch = false }");
    let all = warnings(&[swapped[0], swapped[1], swapped[2], slow]);
    let start = "link `bottleneck.back` (from `right` to `left`) was 100 % full and limits `flood.1`, and `bottleneck`, the";
    assert!(all.len() == 2 && all[1].starts_with(start), "{all:?}");
}

#[test]
fn one_that_has_a_rate_of_its_own_is_named_without_that_key() {
    let all = warnings(&[("link.l1-left.rate", "100Mbit")]);
    let end = "; write a higher rate, or watch = true if it is meant as a bottleneck";
    assert!(all.last().unwrap().ends_with(end), "{all:?}");
}

#[test]
fn a_link_that_is_nearly_full_and_loses_nothing_is_not_named() {
    // 95 of 100 Mb/s.
    assert_eq!(warnings(&[("flow.flood.source.rate", "95Mbit")]), [SHORT]);
}

#[test]
fn a_link_behind_a_slower_shaper_is_named() {
    let shaper = "{ kind = \"fifo\", limit = \"20p\", shaper = \"token_bucket\", rate = \"100Mbit\" }";
    let all = warnings(&[("topology.access.rate", "1Gbit"), ("link.l1-left.queue", shaper)]);
    let start = "link `l1-left` was 100 % full and limits `flood.1`, and `bottleneck`, the fullest on its way that is watched, 50 %";
    assert!(all.len() == 2 && all[1].starts_with(start), "{all:?}");
}

#[test]
fn links_that_are_fast_enough_or_watched_are_not_named() {
    assert_eq!(warnings(&[("topology.access.rate", "1Gbit")]), [SHORT]);
    assert_eq!(warnings(&[("link", "{ l1-left = { watch = true }, l2-left = { watch = true } }")]), [SHORT]);
}

#[test]
fn a_full_link_is_named_where_no_link_is_watched() {
    let all = warnings(&[("link.bottleneck.watch", "false"), ("topology.access.rate", "1Gbit")]);
    assert_eq!(all, [SHORT]);
    let all = warnings(&[
        ("link.bottleneck.watch", "false"),
        ("topology.bottleneck.rate", "250Mbit"),
        ("topology.access.rate", "1Gbit"),
    ]);
    let full = "link `bottleneck` was 100 % full and limits `flood.1`, and no link is watched; write `watch = true` to see its queue";
    assert_eq!(all, [SHORT, full]);
}

#[test]
fn tags_that_were_too_narrow_are_named() {
    // 12,500 packets a second for each flow: 100 and 400 tickets a packet.
    let full = |tickets| {
        let mark = ("flow.flood.mark", r#"{ kind = "tickets", bits = 8 }"#);
        let all = warnings(&[("topology.access.rate", "1Gbit"), mark, ("flow.flood.tickets", tickets)]);
        all.into_iter().find(|warning| warning.contains("had more tickets"))
    };
    let told = "100 % of the packets of flow `flood.1` had more tickets than their tags hold, which were lost, so shares do not \
                follow tickets; write mark = { bits = 17 }, or issue fewer tickets to all";
    assert_eq!(full("5000000").as_deref(), Some(told));
    assert_eq!(full("1250000"), None);
}

#[test]
fn a_warning_of_some_points_says_of_how_many() {
    let all = warnings(&[("topology.access.rate", "[\"100Mbit\", \"1Gbit\"]")]);
    assert_eq!(all[0], SHORT);
    assert!(all[1].ends_with(" (1 of 2 points)"), "{all:?}");
}

#[test]
fn warnings_that_differ_by_numbers_are_one_line() {
    let all = warnings(&[("topology.access.rate", "1Gbit"), ("stop", r#"["300ms", "400ms"]"#)]);
    assert_eq!(all, [format!("{SHORT} (2 of 2 points; the numbers are those of the first)")]);
}

#[test]
fn a_swept_key_that_another_key_overrides_is_named() {
    let queues = ("topology.bottleneck.queue", r#"["fifo", "drr"]"#);
    let named = |all: Vec<String>| all.iter().filter(|line| line.contains("make no difference")).count();
    assert_eq!(named(warnings(&[queues])), 0);
    let all = warnings(&[queues, ("link.bottleneck.queue", "red")]);
    assert!(all[0].starts_with("the values of `topology.bottleneck.queue` make no difference"), "{all:?}");
    assert_eq!(
        named(warnings(&[
            queues,
            ("link.bottleneck.queue", "red"),
            ("topology.access.rate", r#"["100Mbit", "1Gbit"]"#)
        ])),
        1
    );
    // No two points differ only in one of several keys that vary together.
    let together = [
        ("topology.bottleneck.rate", r#"["5Mbit", "10Mbit"]"#),
        ("topology.bottleneck.delay", r#"["4ms", "2ms"]"#),
        ("sweep.zip", r#"[["rate", "delay"]]"#),
    ];
    assert_eq!(named(warnings(&together)), 0);
    // A single value cannot make a difference.
    assert_eq!(named(warnings(&[("topology.access.rate", r#"["1Gbit"]"#)])), 0);
}
