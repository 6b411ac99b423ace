//! Each condition is necessary: a run in which a result changes when it is removed.
//! `tests/it/early_delivery.rs` shows for many runs that all conditions together are sufficient, and this
//! file for these runs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use apportion_core::queue::DropReason;
use apportion_core::units::Bytes;
use apportion_runtime::outcome::Outcome;
use apportion_runtime::probe::Samples;
use apportion_testing::net::net;

use super::*;
use crate::build::Detail;
use crate::observer::Observer;

thread_local! {
    /// The condition that is removed.
    static OUT: Cell<Option<(Decision, u32)>> = const { Cell::new(None) };
    /// The conditions that were tested.
    static ASKED: RefCell<BTreeSet<(Decision, u32)>> = const { RefCell::new(BTreeSet::new()) };
}

/// Whether a condition holds, or is removed.
pub(super) fn holds(decision: Decision, number: u32, condition: bool) -> bool {
    ASKED.with_borrow_mut(|asked| asked.insert((decision, number)));
    condition || OUT.get() == Some((decision, number))
}

/// The times of drops that an observer gets.
#[derive(Default)]
struct Drops(Mutex<Vec<Time>>);

impl Observer for Drops {
    fn dropped(&self, at: Time, _: usize, _: Option<usize>, _: Bytes, _: Option<DropReason>) {
        self.0.lock().unwrap().push(at);
    }
    fn marked(&self, _: Time, _: usize, _: Option<usize>, _: Bytes) {}
    fn sampled(&self, _: &Samples<'_>) {}
}

fn scenario(text: &str) -> Scenario {
    let suite = apportion_scenario::load(&net(text), Path::new("x"), &[], &|path| std::fs::read(path));
    suite.unwrap_or_else(|problems| panic!("{}", problems[0])).points.remove(0).scenario
}

/// The outcome of a run, without the number of its events.
fn outcome(scenario: &Scenario, observer: Option<&Drops>) -> String {
    let mut simulation = Simulation::new(scenario, scenario.seed, Detail::Full, &mut |_| None).unwrap();
    if let Some(observer) = observer {
        simulation.observe(observer);
    }
    assert!(simulation.run(&AtomicBool::new(false)));
    format!("{:?}", Outcome { events: 0, ..simulation.outcome() })
}

/// Greedy flows over two links.
fn two_links(more: &str) -> String {
    format!(
        "
        seed = 5, stop = 2s, measure_from = 900ms, sample = 70ms
        link a: n1 -> n2, rate = 20Mbit, delay = 7ms, queue = {{ kind = fifo, limit = 20p }}
        link b: n2 -> n3, rate = 50Mbit, delay = 3ms
        [defaults.flow] jitter = 0s, tcp = {{ profile = ns2-235, segment = 1000B }}
        flow greedy: n1 -> n3, count = 5, start = {{ between = [0s, 300ms] }}
        {more}
        "
    )
}

/// Greedy flows over two links, with a temporary change.
fn changed(what: &str, to: &str, back: &str) -> String {
    two_links(&format!("change 700ms: {what} = {to}\nchange 1s: {what} = {back}"))
}

/// Flows with `more` over a link that each of `pairs` pairs of hosts reaches by links of its own.
fn dumbbell(pairs: u32, more: &str) -> String {
    format!(
        "
        seed = 5, stop = 2s, measure_from = 900ms, sample = 70ms
        [topology] kind = dumbbell, pairs = {pairs}, access = {{ rate = 50Mbit, delay = 3ms }},
            bottleneck = {{ rate = 20Mbit, delay = 7ms, queue = {{ kind = fifo, limit = 20p }} }}
        flow greedy: l{{i % {pairs} + 1}} -> r{{i % {pairs} + 1}}, count = 4, start = {{ between = [0s, 300ms] }},
            {more}
        "
    )
}

const NS2: &str = "tcp = { profile = ns2-235, segment = 1000B }";

const FIFO: &str = "queue = { kind = fifo, limit = 20p }";

/// Flows over one link.
fn one_link(of_link: &str, more: &str) -> String {
    format!(
        "
        seed = 5, stop = 2s, measure_from = 900ms, sample = 70ms
        link a: n1 -> n2, rate = 20Mbit, delay = 7ms, {of_link}
        [defaults.flow] jitter = 0s, tcp = {{ profile = ns2-235, segment = 1000B }}
        flow greedy: n1 -> n2, count = 5, start = {{ between = [0s, 300ms] }}
        {more}
        "
    )
}

/// A segment that is retransmitted although it is on its way, and arrives after its connection has ended.
fn sent_twice(more: &str) -> String {
    let tcp = "tcp = { profile = ns2-235, syn = false, initial_rto = 1s, min_rto = 200ms }";
    format!(
        "
        stop = 4s, sample = 4s
        link a: n1 -> n2, rate = 20Mbit, delay = 800ms
        flow x: n1 -> n2, jitter = 0s, {tcp}, {more}
        "
    )
}

/// Sources whose tickets change continually.
fn tickets() -> String {
    let change = |at: u32| {
        format!("change {at}00ms: flow.x.{}.tickets = {}\n", at % 4 + 1, [1000, 20][at as usize % 2])
    };
    let changes: String = (3..19).map(change).collect();
    format!(
        "
        seed = 5, stop = 2s, sample = 4s
        [topology] kind = dumbbell, pairs = 4, access = {{ rate = 50Mbit, delay = 30ms }},
            bottleneck = {{ rate = 2Mbit, delay = 5ms, queue = {{ kind = tred, limit = 60p }} }}
        flow x: l{{i}} -> r{{i}}, count = 4, jitter = 0s, tcp = {{ profile = ns2-235, segment = 200B }},
            tickets = 1000, mark = {{ kind = tickets, window = 100ms }}
        {changes}
        "
    )
}

/// TCP and datagrams over two routers that exchange reports.
fn reports(more: &str) -> String {
    let queue = "queue = { kind = sffc, preset = paper, limit = 20kB }";
    format!(
        "
        seed = 5, stop = 2s, sample = 70ms
        link middle: r1 -> r2, rate = 10Mbit, delay = 2ms, {queue}
        {}
        ",
        more.replace("QUEUE", queue)
    )
}

/// A group of links, of which one of four flows takes one, and the others another.
const GROUP: &str = "
    stop = 2s, measure_from = 900ms, sample = 70ms
    link in: s -> r, rate = 10Mbit, delay = 1ms, count = 2
    link out: r -> d, rate = 10Mbit, delay = 1ms
    flow udp: s -> d, count = 4, jitter = 5ms, source = { kind = cbr, rate = 3Mbit, packet = 1000B }
";

/// A scenario for each condition.
fn needed() -> Vec<(Decision, u32, String)> {
    let shaped = "queue = { kind = fifo, limit = 20p, shaper = token_bucket, rate = 5Mbit, burst = 3kB }";
    let aggregate = "aggregate = { packets = 8, overhead = 100us, header = 0B }";
    let zero = || changed("link.b.rate", "0bit", "50Mbit");
    let red = || changed("link.a.queue", "red", "fifo");
    let crossing = "flow cross: n2 -> n3, source = { kind = cbr, rate = 30Mbit, packet = 300B }";
    let fork = "
        link c: n2 -> n4, rate = 50Mbit, delay = 3ms
        flow fork: n1 -> n4
        flow cross: n2 -> n3, source = { kind = cbr, rate = 30Mbit, packet = 300B }
    ";
    let chain = || {
        let third = "link c: n3 -> n4, rate = 50Mbit, delay = 3ms";
        two_links(third)
            .replace("measure_from = 900ms, ", "")
            .replace("n1 -> n3", "n1 -> n4")
            .replace("n3, rate = 50Mbit, delay = 3ms", "n3, rate = 50Mbit, delay = 7ms")
    };
    let no_time = |more: &str| dumbbell(4, &format!("{NS2}, jitter = 0s, {more}"));
    let jitter = |pairs| dumbbell(pairs, &format!("{NS2}, jitter = 1ms"));
    vec![
        // Router messages use links that packets enter early.
        (LeaveOrder, 1, reports(
            "
            link in: s -> r1, rate = 100Mbit, delay = 1ms
            link out: r2 -> d, rate = 5Mbit, delay = 3ms, QUEUE
            flow tcp: s -> d, count = 3, tcp = ns2-235, jitter = 0s
            flow udp: s -> d, jitter = 0s, source = { kind = cbr, rate = 9Mbit, packet = 1000B }
            ",
        )),
        (Bypass, 1, zero()),
        (Bypass, 2, one_link(aggregate, "")),
        (Bypass, 3, changed("link.a.loss", "30%", "0")),
        (Bypass, 4, red()),
        (Bypass, 5, red()),
        (Bypass, 6, two_links("")),
        (Bypass, 7, two_links("")),
        (SkipQueue, 1, two_links("")),
        (SkipQueue, 2, red()),
        (SkipQueue, 3, zero()),
        (Batch, 1, one_link(shaped, "")),
        (Batch, 2, one_link("queue = tred, ack_tickets = 800", "flow x: n1 -> n2, count = 3, ack_tickets = 1000")
            .replace("20Mbit", "5Mbit")),
        (Batch, 3, changed("link.a.delay", "2ms", "9ms")),
        (HandOver, 1, two_links(crossing)),
        (HandOver, 2, changed("link.b.delay", "1ms", "9ms")),
        (HandOver, 3, two_links(fork)),
        (HandOver, 4, chain()),
        (HandOver, 5, chain()),
        (HandOver, 6, two_links("").replace("50Mbit", "15Mbit")),
        (LeaveEarly, 1, jitter(2)),
        (LeaveEarly, 2, GROUP.to_owned()),
        (LeaveEarly, 2, GROUP.replace(", count = 2", "\n    link on: s -> r, rate = 10Mbit, delay = 1ms")
            .replace("stop = 2s", "seed = 2, stop = 2s")),
        // A router behind the link asks over its other direction, the first link of acknowledgements.
        (LeaveEarly, 3, reports(
            "
            link out: r2 -> d, rate = 8Mbit, delay = 3ms, QUEUE,
                back = { rate = 100kbit, queue = { kind = fifo, limit = 100p } }
            link on: d -> x, rate = 1Mbit, delay = 3ms, QUEUE, back = false
            flow tcp: r1 -> d, tcp = ns2-235, jitter = 20ms
            flow udp: r1 -> x, count = 3, jitter = 20ms, source = { kind = cbr, rate = 3Mbit, packet = 1000B }
            ",
        )),
        (LeaveEarly, 4, jitter(2)),
        (LeaveEarly, 5, jitter(4)),
        (EarlyDelivery, 1, jitter(4)),
        (EarlyDelivery, 2, tickets()),
        (EarlyDelivery, 3, one_link(FIFO, "
            link up: n2 -> n1, rate = 100kbit, delay = 7ms, back = false
            flow other: n1 -> n2, return_path = [up]
        ").replace("seed = 5", "seed = 5, routing = single")),
        (EarlyDelivery, 4, one_link(FIFO, "
            link c: n3 -> n2, rate = 10Mbit, delay = 1ms
            flow other: n3 -> n1, path = [c, a.back], source = { kind = cbr, rate = 5Mbit, packet = 500B }
        ")),
        (EarlyDelivery, 5, one_link(FIFO, "
            change 600ms: link.a.back.rate = 0bit
            change 610ms: link.a.back.rate = 1Mbit
        ")),
        (EarlyDelivery, 6, no_time("stop = 1500ms")),
        (EarlyDelivery, 7, two_links("")),
        (EarlyDelivery, 8, dumbbell(4, "tcp = linux, jitter = 0s")),
        (EarlyDelivery, 9, changed("link.b.delay", "1ms", "9ms")),
        (EarlyDelivery, 10, changed("link.a.delay", "2ms", "9ms")),
        (SinkAnswers, 1, dumbbell(4, "quic = { algorithm = cubic }, jitter = 0s")),
        (SinkAnswers, 2, sent_twice("source = { kind = file, size = 1kB }")),
        (SinkAnswers, 3, sent_twice("stop = 50ms")),
        (SourceAnswers, 1, no_time("source = { kind = video, mean = 2Mbit }")),
        (SourceAnswers, 2, no_time("connections = 2")),
        (SourceAnswers, 3, two_links("flow back: n3 -> n1")),
        (SourceAnswers, 4, no_time("stop = 1500ms")),
        (PlainHosts, 1, jitter(4)),
        (PlainHosts, 2, tickets()),
        (PlainHosts, 3, reports(
            "
            link out: r2 -> d, rate = 5Mbit, delay = 3ms, QUEUE
            flow tcp: r1 -> d, count = 3, tcp = ns2-235, jitter = 0s
            flow udp: r1 -> d, jitter = 0s, protocol = tcp, source = { kind = cbr, rate = 9Mbit, packet = 1000B }
            ",
        )),
        (InPlace, 4, jitter(4)),
        (InPlace, 5, no_time("source = { kind = file, size = 600kB }")),
    ]
}

#[test]
fn a_result_without_one_of_the_conditions_is_another() {
    let is_needless = |(decision, number, text): &(Decision, u32, String)| {
        let scenario = scenario(text);
        let with = outcome(&scenario, None);
        assert_eq!(with, outcome(&scenario, Some(&Drops::default())), "{decision:?} {number}: {text}");
        OUT.set(Some((*decision, *number)));
        // In some runs time goes backwards, which panics.
        let without = catch_unwind(AssertUnwindSafe(|| outcome(&scenario, None)));
        OUT.set(None);
        without.is_ok_and(|without| without == with)
    };
    let needed = needed();
    let of = |(decision, number, _): &(Decision, u32, String)| (*decision, *number);
    let needless: Vec<_> = needed.iter().filter(|row| is_needless(row)).map(of).collect();
    assert_eq!(needless, []);
    // Observers' reports are no results: the next test covers that condition.
    let tested: BTreeSet<_> = needed.iter().map(of).chain([(LeaveOrder, 2)]).collect();
    assert_eq!(tested, ASKED.take(), "conditions with a run here, and in the code");
}

#[test]
fn an_observer_is_told_of_drops_in_the_order_of_time() {
    // CoDel drops when it is asked for a packet, which may be late.
    let codel = "queue = { kind = codel, target = 1ms, interval = 10ms }";
    let text = scenario(&format!(
        "
        seed = 5, stop = 1s, defaults.flow.jitter = 0s
        link a: n1 -> n2, rate = 20Mbit, delay = 7ms, {codel}
        link b: n2 -> n3, rate = 15Mbit, delay = 7ms, {codel}
        flow near: n1 -> n2, source = {{ kind = cbr, rate = 30Mbit, packet = 1000B }}
        flow far: n2 -> n3, source = {{ kind = cbr, rate = 20Mbit, packet = 900B }}
        "
    ));
    let in_order = || {
        let drops = Drops::default();
        outcome(&text, Some(&drops));
        let drops = drops.0.into_inner().unwrap();
        assert!(drops.len() > 50, "{}", drops.len());
        drops.is_sorted()
    };
    assert!(in_order());
    OUT.set(Some((LeaveOrder, 2)));
    assert!(!in_order());
    OUT.set(None);
}
