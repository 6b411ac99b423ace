//! The gateway against a machine that fails: its threads take turns on a simulated machine, and a seed
//! determines all events.
//!
//! `APPORTION_FAULT_SEED=7 cargo test -p apportion-live simulation` replays the run of that seed, and `APPORTION_FAULT_STEPS` makes it
//! longer; a failure prints both. A step is one wait of the packet thread.
//!
//! Not simulated: blocking system calls, threads that run at the same time, and the work of
//! [`Port`](apportion_linux::port::Port) on the bytes of a frame. These have tests on real interfaces.

mod machine;
mod system;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

use apportion_core::queue::Backlog;
use apportion_core::units::{Bytes, Span, Time};
use apportion_linux::pool::Pool;
use apportion_scenario::gateway::GatewayConfig;

use self::machine::{Fault, INITIAL, INITIAL_SEGMENTS, Machine, NAMES};
use self::system::{SimIo, SimLog, SimSocket, System};
use super::Gateway;
use super::attachment::{Attachment, PERIOD};
use super::control::{Order, Shared};
use super::interface_lock;
use super::interfaces::Interface;
use super::log::Lost;
use super::offloads::Prepared;
use super::run::Runner;
use super::snapshot::Reloads;

/// Steps of a test, unless the environment says otherwise.
const STEPS: u64 = 1_000_000;
/// Number of buffers of the gateway.
const FRAMES: u32 = 150;
/// The state file on the machine's disk.
const STATE: &str = "/run/apportion-sim.offloads.json";
/// Frames sent in one direction without obstacles, at least one of which must leave.
const MANY: u64 = 100;

/// Queues of the configurations that the gateway is reloaded with.
const QUEUES: [(&str, &str); 8] = [
    ("\"fifo\"", "5Mbit"),
    ("\"drr\"", "8Mbit"),
    ("\"fq_codel\"", "6Mbit"),
    ("{ kind = \"stfq\", limit = \"100p\" }", "20Mbit"),
    ("{ kind = \"drr\", limit = \"20p\" }", "3Mbit"),
    ("{ kind = \"red\", limit = \"60p\" }", "7Mbit"),
    ("{ kind = \"drr\", isolate = \"both\" }", "6Mbit"),
    ("{ kind = \"fq_codel\", isolate = \"source\", limit = \"40p\" }", "2Mbit"),
];

fn config(at: usize) -> GatewayConfig {
    let (queue, rate) = QUEUES[at];
    let text = format!(
        "title = \"sim\"\ninside = \"{}\"\noutside = \"{}\"\nup = {{ rate = \"{rate}\", queue = {queue} }}\n\
         down = {{ rate = \"{rate}\", queue = {queue} }}\n",
        NAMES[0], NAMES[1]
    );
    GatewayConfig::load(&text, Path::new("sim.toml")).unwrap()
}

/// A running gateway.
struct Running {
    shared: Arc<Shared>,
    runner: Runner<SimIo>,
    attachment: Attachment<System, System>,
    prepared: Arc<Prepared<System>>,
    sender: Sender<Order<SimSocket>>,
    orders: Receiver<Order<SimSocket>>,
    /// Time at which the thread of the interfaces last checked them.
    looked: Time,
}

struct Trial {
    system: System,
    locks: tempfile::TempDir,
    lost: Arc<Lost>,
    kills: u64,
}

impl Trial {
    fn new(seed: u64, without: &[Fault]) -> Self {
        let system = System::new(Machine::new(seed, without));
        Self { system, locks: tempfile::tempdir().unwrap(), lost: Arc::new(Lost::new()), kills: 0 }
    }

    /// Starts a gateway, as `run::run` does.
    fn start(&self) -> Result<Running, String> {
        let mut devices = self.system.clone();
        let found = NAMES.map(|name| Interface::look(&mut devices, name));
        let [Ok(inside), Ok(outside)] = found else { return Err(format!("{found:?}")) };
        let found = [inside, outside];
        let interface_locks =
            interface_lock::take_both(self.locks.path(), &found).map_err(|problems| problems.join("; "))?;
        let prepared = Arc::new(Prepared::new(self.system.clone(), STATE.into()));
        let shared = Arc::new(Shared::new().map_err(|error| error.to_string())?);
        let (sender, orders) = channel();
        let mut attachment = Attachment::new(
            devices,
            self.locks.path().to_owned(),
            Arc::clone(&prepared),
            Arc::clone(&shared),
            sender.clone(),
        );
        let sockets =
            attachment.attach_both(&found, interface_locks).map_err(|problems| problems.join("; "))?;
        let io = SimIo::new(self.system.clone(), sockets);
        let hardware = [[2, 0, 0, 0, 0, 0], [2, 0, 0, 0, 0, 1]];
        let gateway = Gateway::over(config(0), io, hardware, Pool::new(FRAMES, 1_600)).unwrap();
        let looked = gateway.now();
        let runner = Runner::new(gateway, Arc::clone(&shared));
        Ok(Running { runner, shared, attachment, prepared, sender, orders, looked })
    }

    /// Starts a gateway until it succeeds, as a service manager does.
    fn restart(&self) -> Running {
        loop {
            match self.start() {
                Ok(running) => {
                    self.system.machine().start();
                    return running;
                }
                Err(error) => {
                    let mut machine = self.system.machine();
                    assert!(
                        !machine.can_pass() || machine.has(Fault::Renamed, None),
                        "it does not start: {error}"
                    );
                    let until = machine.now + Span::from_millis(100);
                    while machine.now < until {
                        machine.wait(until);
                    }
                }
            }
        }
    }

    fn run(&mut self, steps: u64) {
        let mut running = self.restart();
        while self.system.machine().steps < steps {
            let stopped = running.runner.round(&running.orders).unwrap();
            assert_eq!(stopped, None);
            self.look(&mut running);
            let (killed, reloaded) = {
                let mut machine = self.system.machine();
                (std::mem::take(&mut machine.killed), std::mem::take(&mut machine.reloaded))
            };
            if reloaded {
                reload(&self.system, &mut running);
            }
            self.check(&mut running);
            if killed {
                self.kills += 1;
                drop(running);
                running = self.restart();
            }
        }
        self.end(&running);
    }

    /// Plays the thread that watches the interfaces: at a notification, and once in a while.
    fn look(&self, running: &mut Running) {
        let now = self.system.machine().now;
        let is_notified = std::mem::take(&mut self.system.machine().notified);
        if is_notified || now.since(running.looked) >= PERIOD {
            running.looked = now;
            running.attachment.look_at_both();
            self.system.machine().woken = true;
        }
    }

    /// Checks invariants, and conditions that hold when the machine has been well for a second.
    fn check(&self, running: &mut Running) {
        check_counts(&mut running.runner.gateway);
        let machine = self.system.machine();
        assert_eq!(self.lost.lines(), machine.lines.1, "lines of the log that were lost");
        for (came, left) in machine.passed {
            assert!(came < MANY || left > 0, "of {came} frames none left, though nothing is in the way");
        }
        // The thread of the interfaces has checked them by then.
        if machine.is_well() && machine.now.since(machine.wrong) > Span::from_millis(1_100) {
            for device in &machine.devices {
                let it = device.offloads;
                assert!(!(it.gro || it.lro), "{}: {it:?}, though all is well", device.name);
            }
        }
    }

    /// Ends the gateway, which must leave its interfaces as they were.
    fn end(&self, running: &Running) {
        self.system.machine().heal();
        running.prepared.restore(&mut self.system.clone());
        let machine = self.system.machine();
        for device in &machine.devices {
            assert_eq!(device.offloads, INITIAL, "{} after the end", device.name);
            assert_eq!(device.device.gso_max_segs, INITIAL_SEGMENTS);
        }
        assert!(machine.files.is_empty(), "{:?}", machine.files.keys());
    }
}

/// Applies another configuration, as the control thread does.
fn reload(system: &System, running: &mut Running) {
    let new = config(system.machine().below(QUEUES.len() as u64) as usize);
    let difference = running.runner.gateway.config().difference(&new).unwrap();
    let (reply, answer) = sync_channel(1);
    running.sender.send(Order::Apply(Box::new(new), difference, reply)).unwrap();
    system.machine().woken = true;
    while let Err(std::sync::mpsc::TryRecvError::Empty) = answer.try_recv() {
        assert_eq!(running.runner.round(&running.orders).unwrap(), None);
    }
}

/// Checks, by the metrics of the gateway, that every frame that entered has left, was dropped for a counted
/// reason, or is in flight, and that memory is bounded.
fn check_counts(gateway: &mut Gateway<SimIo>) {
    let config = Arc::new(gateway.config().clone());
    let lateness = gateway.engine.lateness().clone();
    let snapshot = gateway.snapshot(config, &lateness);
    let (mut arrived, mut delivered, mut gone) = (0, 0, 0);
    for (_, counters) in snapshot.directions.iter().flat_map(|direction| &direction.accounts) {
        arrived += counters.sent.packets.get();
        delivered += counters.delivered.packets.get();
        gone += counters.dropped.iter().sum::<u64>() + counters.lost;
    }
    let sum = |count: fn(&apportion_linux::port::PortCounts) -> u64| -> u64 {
        snapshot.ports.iter().map(count).sum()
    };
    let malformed: u64 = snapshot.malformed.iter().map(|(_, count)| count).sum();
    let shed: u64 = snapshot.directions.iter().map(|direction| direction.shed).sum();
    assert_eq!(sum(|port| port.received), arrived + malformed + shed, "frames that came in");
    let outbox = delivered - sum(|port| port.sent) - sum(|port| port.unsent);
    let waiting: Backlog = snapshot.directions[0].backlog;
    assert!(waiting.packets.get() <= snapshot.frames);
    assert_eq!(arrived, delivered + gone + snapshot.frames - outbox, "frames under way");
    assert!(snapshot.frames <= u64::from(FRAMES));
    assert!(snapshot.directions.iter().all(|direction| direction.flows <= gateway.config().flows));
}

/// The value of this environment variable, or `default`.
fn from_environment(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

fn survives(seed: u64, without: &[Fault]) {
    let seed = from_environment("APPORTION_FAULT_SEED", seed);
    let steps = from_environment("APPORTION_FAULT_STEPS", STEPS);
    let mut trial = Trial::new(seed, without);
    let log = SimLog { system: trial.system.clone(), lost: Arc::clone(&trial.lost) };
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || log.clone()).finish();
    let replay = Replay { seed, steps, system: trial.system.clone() };
    tracing::subscriber::with_default(subscriber, || trial.run(steps));
    std::mem::forget(replay);
    let machine = trial.system.machine();
    println!("seed {seed}: {:.0} s, faults {:?}", machine.now.as_secs_f64(), machine.count);
    // Faults that never happen test nothing.
    let rare: Vec<_> = machine.count.iter().filter(|(_, count)| **count < 5).collect();
    assert!(rare.is_empty() || steps < STEPS, "{rare:?}");
    assert!(machine.lines.0 > 100 || steps < STEPS);
}

/// Prints the events before a failure, and how to replay them.
struct Replay {
    seed: u64,
    steps: u64,
    system: System,
}

impl Drop for Replay {
    fn drop(&mut self) {
        let machine = self.system.machine();
        machine.history.iter().for_each(|line| println!("{line}"));
        println!("{} after step {}; wrong until {}", machine.now, machine.steps, machine.wrong);
        println!("replay with APPORTION_FAULT_SEED={} APPORTION_FAULT_STEPS={}", self.seed, self.steps);
    }
}

#[test]
fn no_frames_pass_while_an_interface_is_down() {
    let trial = Trial::new(1, &[]);
    let mut running = trial.start().unwrap();
    let mut said = |port: usize, is_running: bool| {
        trial.system.machine().devices[port].device.is_running = is_running;
        running.attachment.look_at_both();
        let gateway = &mut running.runner.gateway;
        let (config, lateness) = (Arc::new(gateway.config().clone()), gateway.engine.lateness().clone());
        let mut snapshot = gateway.snapshot(config, &lateness);
        snapshot.events = running.shared.events.read();
        let up = format!(
            "apportion_gateway_interface_up{{interface=\"{}\"}} {}\n",
            NAMES[port],
            u8::from(is_running)
        );
        assert!(snapshot.prometheus(&Reloads::default(), Span::ZERO).contains(&up), "{up}");
        assert_eq!(
            snapshot.json(&Reloads::default(), Span::ZERO)["interfaces"][NAMES[port]]["up"],
            is_running
        );
        snapshot.obstacles()
    };
    for port in [0, 1] {
        assert_eq!(said(port, true), "");
        assert_eq!(said(port, false), format!("the interface {} is down\n", NAMES[port]));
        assert_eq!(said(port, true), "");
    }
}

#[test]
fn the_log_warns_of_an_mtu_only_while_it_differs_from_the_other_one() {
    let trial = Trial::new(1, &[]);
    let mut running = trial.start().unwrap();
    let log = SimLog { system: trial.system.clone(), lost: Arc::clone(&trial.lost) };
    let subscriber =
        tracing_subscriber::fmt().with_ansi(false).without_time().with_writer(move || log.clone()).finish();
    tracing::subscriber::with_default(subscriber, || {
        for (port, warns) in [(0, true), (1, false)] {
            trial.system.machine().devices[port].device.mtu = Bytes::new(1_400);
            running.attachment.look_at_both();
            let machine = trial.system.machine();
            let line = machine.history.back().unwrap();
            assert!(line.contains("the MTU changed") && line.contains("WARN") == warns, "{line}");
        }
    });
}

#[test]
fn the_link_survives_every_fault_1() {
    survives(1, &[]);
}

#[test]
fn the_link_survives_every_fault_2() {
    survives(2, &[]);
}

#[test]
fn the_link_survives_every_fault_3() {
    survives(3, &[]);
}

/// Long enough for effects that only long runs show.
#[test]
fn the_link_survives_faults_without_kills() {
    survives(4, &[Fault::Killed]);
}
