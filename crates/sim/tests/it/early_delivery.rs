//! Links with early delivery and deferred transmissions give the same results as links that run each step at
//! its time.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Time};
use apportion_runtime::outcome::Outcome;
use apportion_runtime::probe::Samples;
use apportion_scenario::model::Scenario;
use apportion_sim::capture::LinkCapture;
use apportion_sim::observer::Observer;
use apportion_sim::{Detail, Simulation};

use crate::common;

/// An observer, with which every step is in the order of time: no link delivers early.
struct Silent;

impl Observer for Silent {
    fn dropped(&self, _: Time, _: usize, _: Option<usize>, _: Bytes, _: Option<DropReason>) {}
    fn marked(&self, _: Time, _: usize, _: Option<usize>, _: Bytes) {}
    fn sampled(&self, _: &Samples<'_>) {}
}

fn outcome(scenario: &Scenario, in_order: bool) -> Outcome {
    let mut simulation = Simulation::new(scenario, scenario.seed, Detail::Full, &mut |_| None).unwrap();
    if in_order {
        simulation.observe(&Silent);
    }
    assert!(simulation.run(&AtomicBool::new(false)));
    simulation.outcome()
}

/// Returns the scenarios of a file, shortened; none if that is impossible.
fn short(path: &Path, jitter: Option<&str>) -> Vec<Scenario> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut overrides = vec![("stop", "2300ms"), ("measure_from", "900ms")];
    overrides.extend(jitter.map(|jitter| ("defaults.flow.jitter", jitter)));
    let overrides: Vec<_> =
        overrides.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    let suite = apportion_scenario::load(&text, path, &overrides, &|path| std::fs::read(path));
    suite.map(|suite| suite.points.into_iter().map(|point| point.scenario).collect()).unwrap_or_default()
}

/// Returns the scenarios in a folder of the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

/// Returns the first difference of two outcomes, ignoring the numbers of events.
fn difference(one: Outcome, other: Outcome) -> Option<(String, String)> {
    let [one, other] = [one, other].map(|outcome| format!("{:?}", Outcome { events: 0, ..outcome }));
    let at = one.bytes().zip(other.bytes()).position(|(one, other)| one != other)?;
    let around = |text: &str| text[at.saturating_sub(90)..text.len().min(at + 40)].to_owned();
    Some((around(&one), around(&other)))
}

#[test]
fn links_out_of_order_give_what_links_in_order_give() {
    let (mut compared, mut spared) = (0, 0);
    for path in ["scenarios", "papers/pps", "papers/csfq", "validation/theory"].into_iter().flat_map(files) {
        // Without jitter many events coincide.
        for jitter in [None, Some("0s")] {
            for scenario in short(&path, jitter).iter().take(3) {
                let [ahead, in_order] = [false, true].map(|in_order| outcome(scenario, in_order));
                spared += u64::from(ahead.events < in_order.events);
                if let Some((ahead, in_order)) = difference(ahead, in_order) {
                    panic!("{} with jitter {jitter:?}: ahead {ahead}, in order {in_order}", path.display());
                }
                compared += 1;
            }
        }
    }
    assert!(compared > 60 && spared > compared / 2, "{compared} compared, {spared} with fewer events");
}

/// The bytes of a capture.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the capture of the only link of a scenario, finished before the outcome as by
/// [`apportion_sim::replicate()`].
fn capture(scenario: &Scenario, in_order: bool) -> Vec<u8> {
    let written = Written::default();
    let mut open = |_| Some(Box::new(LinkCapture::new(Box::new(written.clone())).unwrap()));
    let mut simulation = Simulation::new(scenario, scenario.seed, Detail::Full, &mut open).unwrap();
    if in_order {
        simulation.observe(&Silent);
    }
    assert!(simulation.run(&AtomicBool::new(false)));
    simulation.finish_captures().unwrap();
    written.0.lock().unwrap().clone()
}

/// A waiting burst takes most of the run to send, and nothing uses the link after the only sample:
/// propagation takes half of the run.
#[test]
fn captures_hold_what_a_link_makes_up_for_at_the_end() {
    let text = "
        stop = 100ms, sample = 60ms
        link a: n1 -> n2, rate = 8Mbit, delay = 50ms, back = false
        flow burst: n1 -> n2, jitter = 0s, stop = 8ms, source = { kind = cbr, rate = 80Mbit, packet = 1000B }
    ";
    let scenario = common::scenarios(text).pop().unwrap();
    let [ahead, in_order] = [false, true].map(|in_order| capture(&scenario, in_order));
    assert_eq!((ahead.len(), ahead == in_order), (in_order.len(), true));
}

/// Two bursts wait in a fair queue when the weight of one increases. No packet arrives and no sample is taken
/// around that time, so that the change itself must catch up with the transmissions due.
#[test]
fn a_change_of_weight_finds_sent_what_was_due() {
    let text = "
        stop = 150ms, sample = 140ms
        link a: n1 -> n2, rate = 8Mbit, delay = 60ms, queue = drr, back = false
        [defaults.flow] jitter = 0s, stop = 8ms, source = { kind = cbr, rate = 40Mbit, packet = 1000B }
        flow heavy: n1 -> n2
        flow light: n1 -> n2
        change 40ms: flow.heavy.weight = 3
    ";
    let scenario = common::scenarios(text).pop().unwrap();
    let [ahead, in_order] = [false, true].map(|in_order| outcome(&scenario, in_order));
    assert!(ahead.events < in_order.events);
    assert_eq!(difference(ahead, in_order), None);
}

/// Greedy flows over one link, with neighbours whose hosts may never receive ahead of time, or only for part
/// of the run.
fn around_one_link(neighbours: &str) -> Scenario {
    let text = format!(
        "
            seed = 5, stop = 2s, measure_from = 1100ms, sample = 70ms
            link a: n1 -> n2, rate = 20Mbit, delay = 7ms, queue = {{ kind = fifo, limit = 20p }}
            [defaults.flow] tcp = {{ profile = ns2-235, segment = 1000B }}
            flow greedy: n1 -> n2, count = 5, start = {{ between = [0s, 300ms] }}
            {neighbours}
        "
    );
    common::scenarios(&text).pop().unwrap()
}

#[test]
fn hosts_that_acknowledge_at_once_receive_early() {
    let spared = |scenario: &Scenario| {
        let [ahead, in_order] = [false, true].map(|in_order| outcome(scenario, in_order));
        let spared = 1.0 - ahead.events as f64 / in_order.events as f64;
        assert_eq!(difference(ahead, in_order), None);
        spared
    };
    // Without early delivery a packet and its ACK each have an event, and some transmissions too.
    let all = spared(&around_one_link(""));
    let with = |name: &str, more: &str| {
        let (from, to) = if name == "back" { ("n2", "n1") } else { ("n1", "n2") };
        spared(&around_one_link(&format!("[flow.{name}]\nfrom = \"{from}\"\nto = \"{to}\"\n{more}")))
    };
    let half = with("early", r#"stop = "1s""#);
    let datagrams = with("udp", r#"source = { kind = "cbr", rate = "2Mbit", packet = "500B" }"#);
    let none = [
        with("file", r#"source = { kind = "file", size = "300kB" }"#),
        with("late", r#"tcp = "rfc""#),
        with("back", ""),
        with("far", r#"jitter = "1ms""#),
    ];
    let most = none.into_iter().fold(0.0, f64::max);
    assert!(all > most + 0.2 && datagrams > most + 0.2, "{all} {datagrams} {none:?}");
    assert!(most + 0.05 < half && half < all - 0.05, "{half} of {all}, {none:?}");
}

/// Greedy flows over a dumbbell with `pairs` pairs of hosts; `flow` adds settings to each.
fn around_a_dumbbell(pairs: u32, flow: &str) -> Scenario {
    let text = format!(
        "
            seed = 5, stop = 2s, measure_from = 1100ms, sample = 70ms
            [topology] kind = dumbbell, pairs = {pairs},
                bottleneck = {{ rate = 20Mbit, delay = 7ms, queue = {{ kind = fifo, limit = 20p }} }},
                access = {{ rate = 50Mbit, delay = 3ms }}
            [defaults.flow] tcp = {{ profile = ns2-235, segment = 1000B }}
            flow greedy: l{{i % {pairs} + 1}} -> r{{i % {pairs} + 1}}, count = 4, start = {{ between = [0s, 300ms] }}
            {flow}
        "
    );
    common::scenarios(&text).pop().unwrap()
}

#[test]
fn sources_with_links_of_their_own_receive_early() {
    let events = |pairs: u32, flow: &str| {
        let scenario = around_a_dumbbell(pairs, flow);
        let [ahead, in_order] = [false, true].map(|in_order| outcome(&scenario, in_order));
        let events = ahead.events as f64 / ahead.packet_hops as f64;
        assert_eq!(difference(ahead, in_order), None);
        events
    };
    let all = events(4, "").max(events(4, r#"stop = "1900ms""#));
    // Access links that carry the data of two flows, several connections, and sources that send by timers.
    let none = [
        events(2, ""),
        events(4, "connections = 2"),
        events(4, r#"source = { kind = "on_off", rate = "9Mbit", on = "1s", off = "100ms" }"#),
    ];
    let least = none.into_iter().fold(f64::INFINITY, f64::min);
    assert!(all + 0.2 < least, "{all} {none:?}");
}

/// Links with different delays for different packets, or with packets that arrive together.
#[test]
fn links_with_jitter_or_aggregates_spare_events_too() {
    for link in [
        "",
        "jitter = 2ms",
        "jitter = { max = 2ms, reorder = true }",
        "aggregate = { packets = 8, overhead = 100us, header = 0B }",
    ] {
        let scenario = common::scenarios(&format!(
            "
                seed = 5, stop = 2s, measure_from = 1100ms, sample = 70ms
                link a: n1 -> n2, rate = 20Mbit, delay = 7ms, queue = {{ kind = fifo, limit = 20p }}, back = {{ {link} }}
                {link}
                link b: n2 -> n3, rate = 50Mbit, delay = 3ms, back = {{ {link} }}
                {link}
                [defaults.flow] tcp = {{ profile = ns2-235, segment = 1000B }}
                flow greedy: n1 -> n3, count = 5, start = {{ between = [0s, 300ms] }}
            "
        ));
        let [early, in_order] = [false, true].map(|in_order| outcome(&scenario[0], in_order));
        let spared = in_order.events - early.events;
        assert_eq!(difference(early, in_order), None, "{link}");
        assert!(spared > 1_000, "{link}: {spared}");
    }
}
