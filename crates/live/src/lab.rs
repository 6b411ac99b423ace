//! The laboratory: runs a scenario over the kernel's real TCP.
//!
//! Hosts are network namespaces; one [engine](crate::engine), in a namespace without addresses, runs
//! everything between them; one thread plays all applications. The namespaces disappear with the process that
//! holds them.
//!
//! | module | holds |
//! |---|---|
//! | `network` | which nodes are hosts, and the routes of packets |
//! | [`external`] | queues that something outside the engine carries out |
//! | `world` | classifies packets for the engine |
//! | `routers` | routers that exchange reports, as packets |
//! | `tcp` | the parameters of a scenario's TCP, as options and settings of the kernel |
//! | [`driver`] | the thread that plays all applications |
//! | `play` | the course of a run: samples, changes, notifications of sources |
//! | `results` | measurements |

pub mod driver;
mod error;
pub mod external;
mod network;
mod play;
mod results;
mod routers;
mod tcp;
mod world;

pub use apportion_linux::machine::kernel_release;
pub use apportion_linux::precision::Precision;
pub use error::LabError;
pub use play::OnSample;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use apportion_core::param::ParamError;
use apportion_core::units::Bytes;
use apportion_linux::clock::Clock;
use apportion_linux::frame_io::Ports;
use apportion_linux::namespace::{Identity, Isolation, Namespace, enter_user_namespace};
use apportion_linux::pool::Pool;
use apportion_runtime::connections::connections;
use apportion_runtime::flow_tables::FlowTables;
use apportion_runtime::marks::marks;
use apportion_runtime::outcome::Outcome;
use apportion_scenario::model::{LinkId, Scenario, Source, Transport};

use crate::bridge::ETHERNET;
use crate::engine::{Engine, EngineError};
use crate::link::SharedState;
use driver::Driver;
use external::{ExternalQueue, QueueBackend};
use network::Network;
use nix::sched::{CloneFlags, unshare};
use nix::sys::prctl::set_timerslack;
use play::Lab;
use routers::LabRouters;
use world::LabWorld;

/// Maximum bytes of frames in flight. Chosen: 0.4 s of 5 Gbit/s.
const MAX_BYTES: usize = 256 << 20;

/// Moves the whole process into a user namespace of its own. The process must have a single thread: call this
/// first. Before that the function asks for real-time scheduling of the calling thread and for locked memory,
/// so that runs on this thread keep real time; [`Precision::read`] says what the system granted.
///
/// # Errors
/// If the system forbids it; names the setting to change.
pub fn enter() -> Result<(), LabError> {
    Precision::ask();
    enter_user_namespace(Isolation { identity: Identity::Root, network: true, mounts: false })?;
    // This ends its thread: a process with two threads may not enter a user namespace.
    Precision::seal();
    Ok(())
}

/// Moves the calling thread into a network namespace of its own. The thread needs the rights of root and
/// keeps them, because programs of the kernel may not be loaded in a user namespace. Otherwise like
/// [`enter`].
///
/// # Errors
/// If the system forbids it.
pub fn enter_as_root() -> Result<(), LabError> {
    Precision::ask();
    unshare(CloneFlags::CLONE_NEWNET).map_err(LabError::Root)?;
    Precision::seal();
    Ok(())
}

/// Checks that a scenario can run here, without running it.
///
/// # Errors
/// The first key that only a simulator supports.
pub fn check(scenario: &Scenario) -> Result<(), LabError> {
    let refuse = |path: String, message| Err(LabError::Simulated { path, message });
    for link in &scenario.links {
        if !link.lost.is_empty() {
            let message =
                "losses by number are for `apportion run`, since Linux sends other packets; write `loss`";
            return refuse(format!("link.{}.lost", link.name), message);
        }
        if link.pcap {
            let message = "captures are for `apportion run`; leave `pcap` out";
            return refuse(format!("link.{}.pcap", link.name), message);
        }
        if link.aggregate.is_some() {
            let message = "aggregates are for `apportion run`; leave `aggregate` out";
            return refuse(format!("link.{}.aggregate", link.name), message);
        }
        if let Some(group) = &link.group {
            let message = "groups of links are for `apportion run`; leave `count` out";
            return refuse(format!("link.{}.count", group.name), message);
        }
    }
    for flow in &scenario.flows {
        let is_several = flow.connections > 1 || flow.source.opens_connections();
        if is_several && [&flow.path, &flow.back].into_iter().any(|path| scenario.chooses(flow, path)) {
            let message = "that connections of a flow take several paths of equal cost is for `apportion run`; write routing = \
                           \"single\", or a `path`";
            return refuse(format!("flow.{}.connections", flow.group), message);
        }
        if let Some(message) = simulated(&flow.source) {
            return refuse(format!("flow.{}.source", flow.group), message);
        }
        let packet = flow.transport.packet();
        let (of, fits, message) = match &flow.transport {
            Transport::Udp { .. } => (
                "source.packet",
                packet >= MIN_DATAGRAM,
                "a datagram on the wire has headers of 28 bytes and a byte of data at least",
            ),
            Transport::Tcp(tcp) => (
                "tcp.segment",
                tcp::has_segments(tcp.segment),
                "TCP segments of Linux have between 88 and 32755 bytes",
            ),
            Transport::Quic(_) => {
                let message = "QUIC is for `apportion run`, since Linux has none; write `tcp`, or run a program with QUIC in `apportion shell`";
                return refuse(format!("flow.{}.quic", flow.group), message);
            }
            Transport::Stack(_) => {
                let message = "a transport stack is for `apportion run`; write `tcp`, or run its program in `apportion shell`";
                return refuse(format!("flow.{}.transport", flow.group), message);
            }
        };
        let message = match fits {
            _ if packet > MAX_PACKET => "packets of the lab have 65000 bytes at most",
            true => continue,
            false => message,
        };
        return refuse(format!("flow.{}.{of}", flow.group), message);
    }
    Ok(())
}

/// The reason why only the simulator supports a source, if so.
const fn simulated(source: &Source) -> Option<&'static str> {
    match source {
        Source::Web(_) => {
            Some("web pages are for `apportion run`, since the lab sends no requests; write `short_flows`")
        }
        Source::Dash(_) => Some(
            "players of `dash` are for `apportion run`; run a real one in `apportion shell`, or write `file` or `on_off`",
        ),
        Source::Call(_) => Some(
            "adaptive calls are for `apportion run`; run a real one in `apportion shell`, or write `video`",
        ),
        Source::Voice { .. } => Some(
            "`voice` is for `apportion run`, which judges it; write { kind = \"cbr\", rate = \"80kbit\", packet = \"200B\" }",
        ),
        _ => None,
    }
}

/// Maximum of a packet in bytes: with its headers it fits a frame, below 2^16 bytes.
const MAX_PACKET: Bytes = Bytes::new(65_000);
/// Minimum of a datagram in bytes: IPv4 and UDP headers, and one byte.
const MIN_DATAGRAM: Bytes = Bytes::new(29);

/// The TCP parameters of a scenario that the kernel does not support, each once, with what the kernel does
/// instead.
#[must_use]
pub fn unsupported(scenario: &Scenario) -> Vec<String> {
    let mut all = BTreeSet::new();
    for flow in &scenario.flows {
        if let Transport::Tcp(params) = &flow.transport {
            all.extend(tcp::unsupported(params).into_iter().map(
                |tcp::Unsupported { parameter, instead }| {
                    format!("tcp.{parameter} is not supported by the kernel: {instead}")
                },
            ));
        }
    }
    all.into_iter().collect()
}

/// Runs a scenario. `seed` decides the random events of sources, disciplines and losses; the kernel's part is
/// never twice the same. Returns none if `cancel` was set before the end.
///
/// # Errors
/// If the scenario cannot run, or a run fails.
pub fn run(scenario: &Scenario, seed: u64, cancel: &AtomicBool) -> Result<Option<Outcome>, LabError> {
    run_with(scenario, seed, &Extras::default(), cancel)
}

/// Options of a run.
#[derive(Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Called at the end of each sample interval, on the thread that moves packets: the time of the call
    /// makes them late.
    pub on_sample: Option<OnSample<'a>>,
    /// Carries out queues in place of the engine; default: none.
    pub queues: Option<&'a dyn QueueBackend>,
}

/// Like [`run`], with options.
///
/// # Errors
/// Like [`run`]; also if a queue cannot run outside the engine.
pub fn run_with(
    scenario: &Scenario,
    seed: u64,
    extras: &Extras<'_>,
    cancel: &AtomicBool,
) -> Result<Option<Outcome>, LabError> {
    check(scenario)?;
    if let Some(backend) = extras.queues {
        check_queues(scenario, backend)?;
    }
    let hashed = scenario.hashed(seed);
    let scenario = hashed.as_deref().unwrap_or(scenario);
    // The kernel removes devices asynchronously, so the engine of each run has a namespace of its own.
    Namespace::create()?.run(|| run_here(scenario, seed, extras, cancel))?
}

/// Checks that `backend` can carry out those queues of a scenario that it should, without running it.
///
/// # Errors
/// The first queue that it cannot carry out.
pub fn check_queues(scenario: &Scenario, backend: &dyn QueueBackend) -> Result<(), LabError> {
    backend.check(scenario).map_err(|ParamError { key, message }| LabError::Queue { path: key, message })
}

fn run_here(
    scenario: &Scenario,
    seed: u64,
    extras: &Extras<'_>,
    cancel: &AtomicBool,
) -> Result<Option<Outcome>, LabError> {
    let (planned, numbers) = connections(scenario, seed);
    let mut network = Network::new(scenario, &planned)?;
    // Open first: it may fail.
    let opened = extras.queues.map(|backend| backend.open(scenario, &numbers)).transpose();
    let failed = |ParamError { key, message }| LabError::QueueFailed(format!("{key}: {message}"));
    let (mut queues, health) = match opened.map_err(failed)? {
        Some(outside) => (outside.queues, Some(outside.health)),
        None => (BTreeMap::new(), None),
    };
    let (hosts, ports) = network.make_hosts(scenario)?;
    let tables = FlowTables::new(scenario, &numbers, seed);
    let marks = marks(scenario, &planned, &numbers, seed);
    let plan = driver::Plan {
        flows: scenario.flows.len(),
        sample: scenario.sample,
        measure_from: scenario.measure_from,
        stop: scenario.stop,
    };
    let driver = Driver::open(&hosts, network.connections(scenario, planned), plan)?;

    let longest = (network::mtu(scenario) + ETHERNET).get() as usize;
    let pool = Pool::new((MAX_BYTES / longest) as u32, longest);
    // The last flow stands for messages between routers.
    let mut shared = SharedState::new(pool, numbers.id_count() + 1);
    shared.flow_of_id = numbers.flows_by_id();
    let signals = arrivals(&queues)?;
    let links = network::links(scenario, (&tables, &numbers), seed, &mut queues);
    let routers = LabRouters::new(scenario, seed, &numbers, &mut network.routes);
    let world = LabWorld::new(scenario, network.connections, numbers.clone(), marks, routers);
    // A timer is late by 50 µs by default, which would count as our lateness (prctl(2)).
    let _ = set_timerslack(1);
    let clock = Clock::start();
    let io = Ports::new(clock, ports).map_err(EngineError::Wait)?;
    let mut engine = Engine::new(io, links, network.routes, shared, world)?;
    for (link, exit) in signals {
        engine.retry_on(link.0, exit)?;
    }
    let driver = driver.start(clock)?;
    let lab = Lab::new(scenario, seed, engine, driver, tables, numbers);
    lab.watched(extras.on_sample).with_queues(health).run(cancel)
}

/// Descriptors that become readable when packets leave these queues.
fn arrivals(
    queues: &BTreeMap<LinkId, Box<dyn ExternalQueue>>,
) -> Result<Vec<(LinkId, std::os::fd::OwnedFd)>, LabError> {
    let exits = queues.iter().map(|(link, queue)| (*link, queue.exit().try_clone_to_owned()));
    exits
        .map(|(link, exit)| Ok((link, exit.map_err(|error| LabError::QueueFailed(error.to_string()))?)))
        .collect()
}
