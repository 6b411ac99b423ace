//! Two hosts, the links between them, and the driver of their applications.

use std::net::SocketAddr;
use std::sync::Arc;

use apportion_core::random::Stream;
use apportion_core::system::catalog::Selection;
use apportion_core::system::{DisciplineParams, LinkContext};
use apportion_core::units::{Bytes, Rate, Ratio, Span, Time};
use apportion_linux::host::Host;
use apportion_linux::port::Port;
use apportion_live::bridge::Bridge;
use apportion_live::engine::Engine;
use apportion_live::lab::driver::{Connection, Driver, DriverOutcome, End, Plan, Running};
use apportion_live::link::Link;
use apportion_live::pace::Pace;
use apportion_runtime::connections::Workload;
use apportion_runtime::link::LinkParts;
use apportion_scenario::model::{Cbr, Source, Transport};
use apportion_scenario::tcp::TcpParams;

use apportion_testing::processes::{enter, judge_by_time};

pub const RATE: Rate = Rate::from_mbit(10);
pub const DELAY: Span = Span::from_millis(10);

/// Two hosts, 10.0.0.1 and 10.0.0.2.
pub fn hosts() -> [Host; 2] {
    enter();
    [("near", 1), ("far", 2)]
        .map(|(name, last)| Host::create(name, &[[10, 0, 0, last].into()], Bytes::new(1_500)).unwrap())
}

/// The engine between the hosts; a packet counts with its IP length.
pub fn engine(hosts: &[Host; 2], limit: &str) -> Engine<Bridge> {
    let ports = [0, 1].map(|host| Port::open(hosts[host].port).unwrap());
    Bridge::between(ports, [link(0, limit), link(1, limit)], Bytes::ZERO).unwrap()
}

fn link(number: u32, limit: &str) -> Link {
    let mut selection = Selection::new("fifo", None, None).unwrap();
    selection.set("limit", limit).unwrap();
    let queue = DisciplineParams::from_args(&selection).unwrap().build(&LinkContext::new(RATE, 1, "wire"));
    let parts = LinkParts { delay: DELAY, ..LinkParts::new(number, queue, RATE) };
    Link::new(parts, Pace::rate(RATE), None)
}

pub fn end(host: usize, port: u16) -> End {
    End { host, address: SocketAddr::from(([10, 0, 0, host as u8 + 1], port)) }
}

pub fn params(changes: &[(&str, &str)]) -> TcpParams {
    let mut params = TcpParams::profile("rfc").unwrap();
    changes.iter().for_each(|(name, text)| params.set(name, text).unwrap());
    params
}

/// A connection from the first host to the second for the whole run; the ports follow from its flow.
pub fn tcp(flow: u32, changes: &[(&str, &str)], workload: Workload) -> Connection {
    connection(flow, Transport::Tcp(Arc::new(params(changes))), workload)
}

pub fn udp(flow: u32, source: &Source) -> Connection {
    let transport = Transport::Udp { packet: Bytes::new(1_000), header: Bytes::new(28) };
    connection(flow, transport, writes(source))
}

fn connection(flow: u32, transport: Transport, workload: Workload) -> Connection {
    Connection {
        flow,
        source: end(0, 20_000 + flow as u16),
        sink: end(1, 10_000 + flow as u16),
        start: Time::from_millis(100),
        stop: Time::from_secs(60),
        transport,
        workload,
    }
}

pub fn writes(source: &Source) -> Workload {
    let (start, stop) = (Time::from_millis(100), Time::from_secs(60));
    Workload::new(source, start, stop, Stream::new(1, "source"))
}

pub fn cbr(kbit: u64, write: u64) -> Source {
    Source::Cbr(Cbr { rate: Rate::from_kbit(kbit), packet: Bytes::new(write), jitter: Ratio::ZERO })
}

/// A plan with samples each 100 ms, and counts from `from` to `stop`, in milliseconds.
pub fn plan(flows: usize, from: u64, stop: u64) -> Plan {
    Plan {
        flows,
        sample: Span::from_millis(100),
        measure_from: Time::from_millis(from),
        stop: Time::from_millis(stop),
    }
}

/// Plays connections to the plan's end. `meanwhile` runs at half of it.
pub fn play_with(
    engine: &mut Engine<Bridge>,
    hosts: &[Host; 2],
    connections: Vec<Connection>,
    plan: Plan,
    meanwhile: impl FnOnce(&Running),
) -> DriverOutcome {
    judge_by_time();
    let driver = Driver::open(hosts, connections, plan).unwrap();
    let running = driver.start(engine.clock()).unwrap();
    let half = Time::from_nanos(plan.stop.as_nanos() / 2);
    engine.run(half, None).unwrap();
    meanwhile(&running);
    engine.run(plan.stop, None).unwrap();
    running.finish().unwrap()
}

/// Plays connections over the usual links, with queues of 50 packets.
pub fn play(connections: Vec<Connection>, plan: Plan) -> DriverOutcome {
    let hosts = hosts();
    play_with(&mut engine(&hosts, "50p"), &hosts, connections, plan, |_| ())
}

/// The rate of `goodput` over the measured part of the plan, in Mbit/s.
pub fn mbit(goodput: Bytes, plan: Plan) -> f64 {
    goodput.bits() as f64 / plan.stop.since(plan.measure_from).as_secs_f64() / 1e6
}
