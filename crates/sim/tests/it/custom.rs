//! A registered discipline: scenarios can name it, it runs like all others, and it does no harm if it is
//! wrong.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use apportion_core::limit::Limit;
use apportion_core::param::{Entry, Kind, Param, Role, Traits};
use apportion_core::system::{Catalog, Discipline, LinkContext};
use apportion_core::units::{Packets, Span, Time};
use apportion_core::{Backlog, DropReason, Queue, SimplePacket, Sink};
use apportion_runtime::outcome::LinkOutcome;
use apportion_scenario::model::Scenario;
use apportion_scenario::{describe, load_with};
use apportion_sim::{Job, replicate};

/// A FIFO with tail drop, like the catalogue's; with `loses`, it loses one of this many packets.
struct External {
    queue: VecDeque<SimplePacket>,
    backlog: Backlog,
    limit: Packets,
    loses: u64,
    arrived: u64,
}

impl Queue<SimplePacket> for External {
    fn enqueue(&mut self, now: Time, packet: SimplePacket, sink: &mut dyn Sink<SimplePacket>) {
        self.arrived += 1;
        if self.backlog.packets >= self.limit {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        if self.loses > 0 && self.arrived.is_multiple_of(self.loses) {
            return;
        }
        self.backlog.add(&packet);
        self.queue.push_back(packet);
    }
    fn dequeue(&mut self, _: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
        let packet = self.queue.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Discipline<SimplePacket> for External {
    fn drain(&mut self, _: Time) -> Option<SimplePacket> {
        self.queue.pop_front()
    }
    fn set_limit(&mut self, limit: Limit) {
        if let Limit::Packets(limit) = limit {
            self.limit = limit;
        }
    }
}

static ENTRY: Entry = Entry {
    name: "outside",
    role: Role::System,
    summary: "Tail drop from outside.",
    reference: "–",
    cost: "O(1) per packet, no state",
    params: &[
        Param::new("limit", "B", Kind::Packets, "50p", "chosen", "Size of the buffer."),
        Param::new("loses", "–", Kind::Count, "0", "chosen", "Loses one of so many packets; none if 0."),
    ],
    traits: Traits::NONE,
};

const OUTSIDE: &str = "\"outside\"";
/// The FIFO of the catalogue with the external one's default buffer.
const FIFO: &str = "{ kind = \"fifo\", limit = \"50p\" }";

fn catalog() -> Catalog {
    let mut catalog = Catalog::default();
    let build = |&(limit, loses): &(Packets, u64), _: &LinkContext<'_>| External {
        queue: VecDeque::new(),
        backlog: Backlog::EMPTY,
        limit,
        loses,
        arrived: 0,
    };
    catalog
        .register(&ENTRY, |args| Ok((args.packets("limit"), args.count("loses"))), build)
        .expect("a new name");
    catalog
}

fn load(queue: &str, more: &str) -> Result<Vec<Scenario>, String> {
    let text = format!(
        "seed = 1\nstop = \"4s\"\n\
         [link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"2Mbit\"\ndelay = \"10ms\"\nqueue = {queue}\n\
         [flow.tcp]\ncount = 3\ntcp = \"rfc\"\nfrom = \"a\"\nto = \"b\"\nsource = \"greedy\"\n\
         [flow.udp]\nfrom = \"a\"\nto = \"b\"\nsource = {{ kind = \"cbr\", rate = \"1Mbit\" }}\n\
         {more}"
    );
    let suite = load_with(&catalog(), &text, Path::new("x.toml"), &[], &|path| std::fs::read(path))
        .map_err(|problems| problems.iter().map(|problem| format!("{problem}\n")).collect::<String>())?;
    // The scenario loads back to an equal one: names and parameters are written as they were read.
    let again =
        load_with(&catalog(), &suite.canonical, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    assert_eq!(again.expect("the canonical text loads").canonical, suite.canonical);
    Ok(suite.points.into_iter().map(|point| point.scenario).collect())
}

/// Returns the bottleneck at the end of a run of each scenario, on two threads, since registered disciplines
/// are shared with the runs.
fn run(scenarios: &[Scenario]) -> Vec<LinkOutcome> {
    let jobs: Vec<Job<'_>> = scenarios.iter().map(|scenario| Job::new(scenario, scenario.seed)).collect();
    let outcomes = replicate(&jobs, 2, &|_| (), &AtomicBool::new(false)).expect("runs");
    let bottleneck = |mut links: Vec<LinkOutcome>| links.swap_remove(0);
    outcomes.into_iter().map(|outcome| bottleneck(outcome.expect("not cancelled").links)).collect()
}

#[test]
fn tail_drop_from_outside_does_what_tail_drop_of_the_catalogue_does() {
    let scenarios =
        load(&format!("[{OUTSIDE}, {FIFO}, {{ kind = \"outside\", limit = \"9p\" }}]"), "").unwrap();
    let links = run(&scenarios);
    assert!(links[0].dropped.values().sum::<u64>() > 0, "{:?}", links[0]);
    assert_eq!(format!("{:?}", links[0]), format!("{:?}", links[1]));
    assert_ne!(format!("{:?}", links[0]), format!("{:?}", links[2]));
}

#[test]
fn it_is_shaped_and_it_takes_the_place_of_another_while_packets_wait() {
    let shaped = "{ kind = \"outside\", shaper = \"token_bucket\", rate = \"1Mbit\" }";
    let links = run(&load(shaped, "").unwrap());
    // 1 Mb/s for 4 s is 500 kB.
    let sent = links[0].sent.bytes.get();
    assert!((450_000..=502_000).contains(&sent), "{sent}");
    let change = |to| format!("[[change]]\nat = \"2s\"\nset = \"link.l.queue\"\nto = {to}\n");
    let changed = [(OUTSIDE, FIFO), (FIFO, OUTSIDE), (FIFO, FIFO)].map(|(before, after)| {
        let scenarios = load(before, &change(after)).unwrap();
        format!("{:?}", run(&scenarios)[0])
    });
    // Waiting packets are moved in their order, so the order of the two disciplines makes no difference.
    assert_eq!(changed[0], changed[2]);
    assert_eq!(changed[1], changed[2]);
}

#[test]
fn a_discipline_that_loses_packets_leaves_the_run_whole_and_is_in_its_results() {
    let links = run(&load("{ kind = \"outside\", loses = 100 }", "").unwrap());
    let since = links[0].statistics.iter().find(|(name, _)| *name == "contract_broken_at");
    assert!(since.is_some_and(|(_, at)| (0.0..4.0).contains(at)), "{:?}", links[0]);
    let fault = links[0].fault.as_deref().unwrap_or_default();
    assert!(fault.starts_with("the discipline `outside` broke its contract at "), "{fault}");
    assert_eq!(run(&load("\"outside\"", "").unwrap())[0].fault, None);
}

#[test]
fn names_and_parameters_from_outside_are_in_messages_and_in_the_schema() {
    let unknown = load("\"outsde\"", "").unwrap_err();
    assert!(unknown.contains("x.toml:8") && unknown.contains("(did you mean `outside`?)"), "{unknown}");
    let unknown = load("{ kind = \"outside\", lmit = \"9p\" }", "").unwrap_err();
    assert!(unknown.contains("lmit") && unknown.contains("(did you mean `limit`?)"), "{unknown}");
    let wrong = load("{ kind = \"outside\", limit = \"9kB\" }", "").unwrap_err();
    assert!(wrong.contains("limit") && wrong.contains("9kB"), "{wrong}");
    let names = |catalog: &Catalog| describe::schema(catalog).to_string();
    assert!(names(&catalog()).contains("\"outside\"") && !names(&Catalog::default()).contains("\"outside\""));
    assert!(names(&catalog()).contains("Loses one of so many packets"));
}

/// A FIFO that has an event 100 ms after the last arrival, when it is mostly empty, as RAMP has at the end of
/// an overload.
#[derive(Default)]
struct Teller {
    queue: VecDeque<SimplePacket>,
    backlog: Backlog,
    due: Option<Time>,
    told: Vec<Time>,
}

impl Queue<SimplePacket> for Teller {
    fn enqueue(&mut self, now: Time, packet: SimplePacket, _: &mut dyn Sink<SimplePacket>) {
        self.due = Some(now + Span::from_millis(100));
        self.backlog.add(&packet);
        self.queue.push_back(packet);
    }
    fn dequeue(&mut self, now: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
        if self.due.is_some_and(|due| due <= now) {
            self.told.push(now);
            self.due = None;
        }
        let packet = self.queue.pop_front()?;
        self.backlog.remove(&packet);
        Some(packet)
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.due
    }
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Discipline<SimplePacket> for Teller {
    fn drain(&mut self, _: Time) -> Option<SimplePacket> {
        self.queue.pop_front()
    }
    fn set_limit(&mut self, _: Limit) {}
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.told.iter().for_each(|told| show("told_at", told.as_secs_f64()));
    }
}

#[test]
fn an_empty_discipline_is_called_when_it_asked_to_be() {
    static TELLER: Entry = Entry { name: "teller", params: &[], ..ENTRY };
    let mut catalog = Catalog::default();
    catalog.register(&TELLER, |_| Ok(()), |(), _| Teller::default()).expect("a new name");
    // Three packets in 40 ms; two at a time, so that the second waits; on a watched link and an unwatched
    // one.
    for (count, watch) in [(1, false), (2, false), (1, true), (2, true)] {
        let text = format!(
            "seed = 1\nstop = \"1s\"\n\
             [link.l]\nfrom = \"a\"\nto = \"b\"\nrate = \"2Mbit\"\ndelay = \"10ms\"\nqueue = \"teller\"\nwatch = {watch}\n\
             [flow.udp]\ncount = {count}\nfrom = \"a\"\nto = \"b\"\nstop = \"50ms\"\n\
             jitter = \"0s\"\nsource = {{ kind = \"cbr\", rate = \"400kbit\", packet = \"1000B\" }}\n"
        );
        let suite =
            load_with(&catalog, &text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        let scenarios: Vec<Scenario> = suite.points.into_iter().map(|point| point.scenario).collect();
        let [link] = &run(&scenarios)[..] else { panic!("one link") };
        let told: Vec<f64> = link.statistics.iter().map(|(_, at)| *at).collect();
        assert_eq!(told, [0.14], "{count} {watch}");
    }
}
