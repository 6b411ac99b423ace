//! The contract with transport stacks from outside, by a stack of two dozen lines: bytes arrive as they were
//! sent, timers and bursts are bounded, and what stacks cannot do is refused.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use apportion_core::packet::Ecn;
use apportion_core::param::{Entry, Param, Role, Traits};
use apportion_core::stack::{Command, Datagram, Endpoint, Ends, MAX_BURST, Progress, Sizes, Stack, TICK};
use apportion_core::system::Catalog;
use apportion_core::units::{Bytes, Span, Time};
use apportion_runtime::outcome::Outcome;
use apportion_scenario::load_with;
use apportion_testing::net::net;

use crate::common::{flow, link, run_with};

apportion_core::params! {
    struct BlastParams {
        /// Whether its timer is always due.
        spins: bool = Param::of("false", "chosen"),
        /// Whether its ends are counted.
        counted: bool = Param::of("false", "chosen"),
        /// Whether its connections fail at the first datagram.
        fails: bool = Param::of("false", "chosen"),
    }
}

static ENTRY: Entry = Entry {
    name: "blast",
    role: Role::Stack,
    summary: "Sends everything at once and repeats nothing.",
    reference: "–",
    cost: "–",
    params: BlastParams::PARAMS,
    traits: Traits::NONE,
};

#[derive(Debug)]
struct Blast(BlastParams);

/// The payload of a datagram: its number, then the number's last byte.
const PAYLOAD: usize = 1_000;

#[derive(Debug, Default)]
struct End {
    spins: bool,
    supplied: u64,
    sent: u64,
    acked: u64,
    delivered: u64,
    closed: bool,
    acks: u64,
    /// Whether it is in [`LIVE`].
    counted: bool,
    fails: bool,
}

impl Stack for Blast {
    fn sizes(&self) -> Sizes {
        let [packet, payload, ack, memory] = [1_028, PAYLOAD as u64, 29, 100].map(Bytes::new);
        Sizes { packet, payload, ack, memory }
    }
    fn offers_ecn(&self) -> bool {
        true
    }
    fn connect(&self, ends: &Ends) -> [Box<dyn Endpoint>; 2] {
        assert_ne!(ends.seeds[0], ends.seeds[1]);
        let end = |spins| {
            let live = LIVE[0].fetch_add(u64::from(self.0.counted), Ordering::Relaxed) + 1;
            LIVE[1].fetch_max(live, Ordering::Relaxed);
            let mut end = End::default();
            (end.spins, end.counted, end.fails) = (spins, self.0.counted, self.0.fails);
            Box::new(end)
        };
        [end(self.0.spins), end(false)]
    }
}

/// Ends of connections that exist, and the most at one time.
static LIVE: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

impl Drop for End {
    fn drop(&mut self) {
        LIVE[0].fetch_sub(u64::from(self.counted), Ordering::Relaxed);
    }
}

/// Calls of timers, for the test that counts them.
static CALLS: AtomicU64 = AtomicU64::new(0);

impl Endpoint for End {
    fn command(&mut self, _: Time, command: Command) {
        match command {
            Command::Start => (),
            Command::Supply(bytes) => self.supplied += bytes,
            Command::SupplyUnlimited => panic!("this stack has no window"),
            Command::Close => self.closed = true,
        }
    }
    fn receive(&mut self, _: Time, _: Ecn, payload: Vec<u8>) {
        if payload.len() == 1 {
            self.acked += PAYLOAD as u64;
            return;
        }
        let (number, rest) = payload.split_first_chunk::<8>().unwrap();
        let number = u64::from_be_bytes(*number);
        assert!(rest.len() == PAYLOAD - 8 && rest.iter().all(|&byte| byte == number as u8));
        assert_eq!(number * PAYLOAD as u64, self.delivered, "out of order");
        self.delivered += PAYLOAD as u64;
        self.acks += 1;
    }
    fn transmit(&mut self, _: Time, payload: &mut Vec<u8>) -> Option<Datagram> {
        assert!(payload.is_empty());
        if self.acks > 0 {
            self.acks -= 1;
            payload.push(0);
            return Some(Datagram { size: 0, ecn: Ecn::NotEct });
        }
        if self.sent >= self.supplied {
            return None;
        }
        let number = self.sent / PAYLOAD as u64;
        payload.extend(number.to_be_bytes());
        payload.resize(PAYLOAD, number as u8);
        self.sent += PAYLOAD as u64;
        Some(Datagram { size: 1_028, ecn: Ecn::Ect0 })
    }
    fn next_timer(&mut self) -> Option<Time> {
        self.spins.then_some(Time::ZERO)
    }
    fn on_timer(&mut self, _: Time) {
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
    fn progress(&self) -> Progress {
        Progress { delivered: self.delivered, ..Progress::default() }
    }
    fn is_done(&self) -> bool {
        self.closed && self.acked >= self.supplied && !self.fails
    }
    fn failure(&self) -> Option<&str> {
        (self.fails && self.delivered + self.acked > 0).then_some("the first datagram was bad")
    }
}

fn load(text: &str) -> Result<Outcome, String> {
    let mut catalog = Catalog::default();
    catalog
        .register_stack(&ENTRY, |args| BlastParams::from_args(args).map(Blast))
        .map_err(|error| error.to_string())?;
    let exact = [("defaults.flow.jitter".to_owned(), "0s".to_owned())];
    let suite = load_with(&catalog, &net(text), Path::new("x.toml"), &exact, &|path| std::fs::read(path));
    let suite = suite.map_err(|problems| problems[0].to_string())?;
    let scenario = &suite.points[0].scenario;
    Ok(run_with(scenario, scenario.seed))
}

/// A flow from `a` to `b` over 100 Mb/s and 1 ms.
fn over(stop: &str, flow: &str) -> Result<Outcome, String> {
    load(&format!(
        "stop = {stop}\nlink wire: a -> b, rate = 100Mbit, delay = 1ms, watch = true, queue = {{ kind = fifo, limit = 9000p }}\n\
         flow x: a -> b, {flow}"
    ))
}

#[test]
fn real_bytes_cross_the_network_in_bursts() {
    let packets = 3 * MAX_BURST + 5;
    let bytes = packets * PAYLOAD;
    let outcome =
        over("1s", &format!("transport = blast, source = {{ kind = file, size = {bytes}B }}")).unwrap();
    let flow = flow(&outcome, "x");
    assert_eq!((flow.sent.packets.get(), flow.goodput.unwrap().get()), (packets as u64, bytes as u64));
    // All in one go, but for three ticks, which the link does not notice.
    let took = flow.completions[0].took.as_secs_f64();
    let due = 0.001 + packets as f64 * 1_028.0 * 8.0 / 100e6;
    assert!((took - due).abs() < 1e-6, "{took} {due}");
    assert_eq!(link(&outcome, "wire").sent.packets.get(), packets as u64);
}

#[test]
fn a_timer_that_is_always_due_expires_once_a_tick() {
    let before = CALLS.load(Ordering::Relaxed);
    over(
        "2ms",
        "transport = { kind = blast, spins = true }, source = { kind = file, size = 10kB }, start = 1ms",
    )
    .unwrap();
    let calls = CALLS.load(Ordering::Relaxed) - before;
    assert!(calls.abs_diff(1_000_000 / TICK.as_nanos()) < 3, "{calls}");
}

#[test]
fn a_connection_that_is_done_makes_room_for_the_next() {
    let flow = "transport = { kind = blast, counted = true }, source = { kind = short_flows, per_second = 20, mean_size = 20kB }";
    let outcome = over("5s", flow).unwrap();
    let flow = &outcome.flows[0];
    let (done, live) = (flow.completions.len() as u64, LIVE[1].load(Ordering::Relaxed));
    assert!(done > 50 && live < done, "{done} connections, {live} ends at a time");
}

#[test]
fn defaults_for_labels_are_for_other_flows() {
    let text = |mine: &str| {
        format!(
            "stop = 1s\ndefaults = {{ flow = {{ mark = tickets, tickets = 10 }} }}\n\
             link wire: a -> b, rate = 100Mbit, delay = 1ms\n\
             flow x: a -> b, transport = blast, source = {{ kind = file, size = 10kB }}{mine}\n\
             flow y: a -> b, tcp = cubic"
        )
    };
    let outcome = load(&text("")).unwrap();
    assert_eq!(flow(&outcome, "x").goodput.unwrap().get(), 10_000);
    let error = load(&text(", tickets = 5")).unwrap_err();
    assert!(error.contains("flow.x.tickets: the host writes marks"), "{error}");
}

#[test]
fn connections_that_fail_are_recorded_once_each() {
    let keys = |fails: &str| {
        format!(
            "transport = {{ kind = blast, fails = {fails} }}, source = {{ kind = file, size = 10kB }}, connections = 3, \
             start = 10ms"
        )
    };
    let outcome = over("1s", &keys("true")).unwrap();
    // Both ends say so, the sink when the first datagram of 1028 bytes has arrived.
    let failures = flow(&outcome, "x").failures.clone().unwrap();
    assert_eq!((failures.connections, failures.reason.as_str()), (3, "the first datagram was bad"));
    let first = failures.first.since(Time::from_millis(10));
    assert_eq!(first, Span::from_nanos(1_000_000 + 1_028 * 80));
    assert_eq!(flow(&over("1s", &keys("false")).unwrap(), "x").failures, None);
}

#[test]
fn what_a_stack_cannot_do_is_refused() {
    for (flow, message) in [
        ("transport = quack", "`quack` is not a transport stack here (known: blast)"),
        ("transport = { kind = blast, speed = 2 }", "unknown parameter"),
        ("transport = blast, tcp = cubic", "`tcp` says what carries the flow; leave one of the two out"),
        ("transport = blast, source = web", "opens TCP connections"),
        ("transport = blast, tickets = 10", "which a stack from outside does not say"),
        ("transport = blast, ecn = ect0", "it is for datagrams"),
    ] {
        let error = over("1s", flow).unwrap_err();
        assert!(error.contains(message), "{flow}: {error}");
    }
    let mut catalog = Catalog::default();
    let mut register = || catalog.register_stack(&ENTRY, |args| BlastParams::from_args(args).map(Blast));
    register().unwrap();
    assert!(register().unwrap_err().to_string().contains("another entry has this name"));
}
