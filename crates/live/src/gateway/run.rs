//! Runs a gateway from start to end.

use std::io;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, PoisonError};

use apportion_core::system::Catalog;
use apportion_core::units::{Span, Time};
use apportion_linux::capabilities::{Capability, keep_capabilities};
use apportion_linux::files::Disk;
use apportion_linux::frame_io::{FrameIo, Ports};
use apportion_linux::netlink::{DeviceMonitor, Netlink, NetlinkError};
use apportion_linux::port::PortCounts;
use apportion_runtime::histogram::Histogram;
use apportion_scenario::gateway::{Direction, GatewayConfig};
use sd_notify::NotifyState;

use super::attachment::Attachment;
use super::bypass::{BypassError, FailOpen};
use super::control::{Control, ControlError, Order, Shared, check_token, load, take_orders};
use super::interfaces;
use super::offloads::{Prepared, RestoreAtEnd, state_file};
use super::supervision::{Watchdog, log_panics, notify, supervise};
use super::{Gateway, TICK, capabilities, interface_lock};
use crate::engine::EngineError;
use crate::notifications::Notice;
use crate::unix_socket::SocketFile;

/// Window of lateness, and the least interval of warnings that the gateway cannot keep up.
const WINDOW: Span = Span::from_secs(60);
/// 99th percentile of lateness at which the gateway warns. Chosen: ten times that of a busy desktop.
const TOO_LATE: Span = Span::from_millis(10);

/// Why a gateway did not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The configuration or the interfaces are wrong: one problem a line.
    #[error("{0}")]
    Config(String),
    /// The bypass of an earlier gateway cannot be turned off.
    #[error("cannot turn the bypass off: {0}")]
    Bypass(#[from] BypassError),
    /// Changes of interfaces cannot be monitored.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// Commands cannot be accepted.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Rights cannot be dropped, or a thread cannot start.
    #[error("cannot {what}: {error}")]
    System {
        /// The step that failed.
        what: &'static str,
        /// The error of the system call.
        error: io::Error,
    },
    /// Packets can no longer be moved.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// Runs the gateway of the configuration file at `path`, with queues of `catalog`, until a signal stops it;
/// the control socket is in `folder`. Call it with a single thread. With `fail_open` the kernel forwards
/// frames after the gateway ends ([`bypass`](super::bypass)).
///
/// # Errors
/// The reason why the gateway did not start, or stopped.
pub fn run(path: &Path, folder: &Path, catalog: &Catalog, fail_open: bool) -> Result<(), GatewayError> {
    log_panics();
    // The path as given: a symbolic link is followed each time that the file is read.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let config = load(&path, catalog).map_err(GatewayError::Config)?;
    let wrong = |problems: Vec<String>| {
        GatewayError::Config(
            problems.iter().map(|problem| format!("{}: {problem}\n", path.display())).collect(),
        )
    };
    let found = interfaces::look(&config).map_err(wrong)?;
    capabilities::to_start().map_err(|why| wrong(vec![why]))?;
    check_token(&config).map_err(|error| wrong(vec![error.to_string()]))?;
    let locks = interface_lock::folder(folder);
    let interface_locks = interface_lock::take_both(&locks, &found).map_err(wrong)?;
    warn(&config);
    interfaces::warn(&found);
    let (sender, orders) = channel();
    let (mut control, shared) = Control::open(&path, catalog, &config, folder, sender.clone())?;
    let socket = SocketFile(folder.join(super::control::socket_name(&config.title)));
    let _notifications = config.notifications.clone().map(SocketFile);
    let prepared = Arc::new(Prepared::new(Disk, state_file(&socket.0)));
    let _restore = RestoreAtEnd(Arc::clone(&prepared));
    // In this thread's namespace, and before the ports, so that no change is missed.
    let mut bypass = FailOpen::take_over(&config, fail_open)?;
    let (devices, monitor) = (Netlink::open()?, DeviceMonitor::open()?);
    let mut attachment = Attachment::new(devices, locks, prepared, Arc::clone(&shared), sender);
    let ports = attachment.attach_both(&found, interface_locks).map_err(wrong)?;
    let mtu = found[0].mtu.max(found[1].mtu);
    let title = config.title.clone();
    let token = config.control_token.clone().filter(|_| config.control);
    let mut runner = Runner::new(Gateway::new(config, ports, mtu)?, Arc::clone(&shared));
    runner.publish();
    let fail = |what| move |error| GatewayError::System { what, error };
    // A thread inherits the capabilities of the one that starts it, and drops those that it does not need.
    let restarts = || Arc::clone(&shared.restarts);
    let attach = move || {
        keep_capabilities(&[Capability::NetAdmin, Capability::NetRaw])?;
        attachment.run(&monitor).map_err(io::Error::from)
    };
    supervise("interfaces", restarts(), attach).map_err(fail("start a thread"))?;
    keep_capabilities(&[Capability::NetAdmin]).map_err(fail("drop capabilities"))?;
    for problem in [Some(&path), token.as_ref()]
        .into_iter()
        .flatten()
        .filter_map(|path| capabilities::to_read_again(path))
    {
        tracing::warn!("{problem}");
    }
    let serve = move || {
        keep_capabilities(&[])?;
        control.run().map_err(io::Error::from)
    };
    supervise("control", restarts(), serve).map_err(fail("start a thread"))?;
    bypass.started(fail_open);
    notify(NotifyState::Ready);
    tracing::info!(
        title,
        inside = found[0].name,
        outside = found[1].name,
        socket = %socket.0.display(),
        "the gateway is running"
    );
    let why = runner.run(&orders)?;
    notify(NotifyState::Stopping);
    // They are not sent: a wire that ends loses its packets, and a queue may take seconds.
    tracing::info!(
        why,
        waiting = runner.gateway.waiting(),
        "the gateway stops; packets that wait are dropped"
    );
    Ok(())
}

fn warn(config: &GatewayConfig) {
    if config.insecure {
        tracing::warn!(
            "insecure = true: every host on the links can forge reports, which make this gateway drop packets; write a \
             report_key"
        );
    }
    config.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
}

/// A gateway between start and end: the first thread.
pub(super) struct Runner<I: FrameIo = Ports> {
    pub(super) gateway: Gateway<I>,
    config: Arc<GatewayConfig>,
    shared: Arc<Shared>,
    /// Lateness of the window before; none before the first.
    lateness: Option<Histogram>,
    /// Packets of all past windows, and the sum of their lateness.
    late: (u64, Span),
    window: Time,
    /// Time at which the next snapshot is due.
    next: Time,
    watchdog: Watchdog,
    /// Time at which the log last warned that the gateway cannot keep up.
    warned: Option<Time>,
    /// Counts of the ports in the snapshot before.
    before: [PortCounts; 2],
    /// Packets shed until the snapshot before.
    shed: u64,
    /// Interfaces that were found down and have received no frame since.
    down: [bool; 2],
    /// Directions whose discipline broke its contract.
    faulty: [bool; 2],
}

impl<I: FrameIo> Runner<I> {
    pub(super) fn new(gateway: Gateway<I>, shared: Arc<Shared>) -> Self {
        let (config, window) = (Arc::new(gateway.config().clone()), gateway.now() + WINDOW);
        let (watchdog, next) = (Watchdog::new(gateway.now()), gateway.now() + TICK);
        let before = [PortCounts::default(); 2];
        Self {
            gateway,
            config,
            shared,
            lateness: None,
            late: Default::default(),
            window,
            next,
            watchdog,
            warned: None,
            before,
            shed: 0,
            down: [false; 2],
            faulty: [false; 2],
        }
    }

    /// Runs until the gateway is stopped, and returns the reason.
    fn run(&mut self, orders: &Receiver<Order<I::Socket>>) -> Result<&'static str, EngineError> {
        loop {
            if let Some(why) = self.round(orders)? {
                return Ok(why);
            }
        }
    }

    /// Moves packets until the next snapshot is due or an order comes, and handles it. Returns the reason to
    /// stop, if there is one.
    pub(super) fn round(
        &mut self,
        orders: &Receiver<Order<I::Socket>>,
    ) -> Result<Option<&'static str>, EngineError> {
        let shared = Arc::clone(&self.shared);
        self.gateway.run_until(self.next, Some(shared.wake.as_fd()))?;
        for order in take_orders(&shared, orders) {
            match order {
                Order::Stop(why) => return Ok(Some(why)),
                Order::Attach(port, socket) => self.gateway.attach(port, socket)?,
                Order::Apply(new, difference, reply) => {
                    let applied = self.gateway.apply(*new, &difference);
                    self.config = Arc::new(self.gateway.config().clone());
                    self.publish();
                    // The control thread may have given up waiting.
                    let _ = reply.try_send(applied);
                    let _ = shared.answered.write(1);
                }
            }
        }
        let now = self.gateway.now();
        if now >= self.next {
            self.publish();
            // Missed ticks are not made up for.
            self.next = (self.next + TICK).max(now);
        }
        // Last, so that a client that is notified finds metrics of the same time.
        self.pass_notices();
        Ok(None)
    }

    /// Hands overload notifications to the control thread, if an application may read them.
    fn pass_notices(&mut self) {
        let engine = &mut self.gateway.engine;
        let mut is_any = false;
        while let Some((at, link, overload)) = engine.shared.overloads.pop_front() {
            let Some(&direction) = Direction::BOTH.get(link as usize) else { continue };
            if self.config.notifications.is_some() {
                let (rule, packets) = engine.world.direction(direction).flows.packets(overload.flow);
                let rule = rule.and_then(|rule| Some(self.config.rules.get(rule)?.name.clone()));
                self.shared.notices.pass(Notice { at, direction, rule, packets, overload });
                is_any = true;
            }
        }
        if is_any {
            let _ = self.shared.answered.write(1);
        }
    }

    fn publish(&mut self) {
        let now = self.gateway.now();
        let lateness = self.lateness.as_ref().unwrap_or(self.gateway.engine.lateness()).clone();
        let late = self.late_since_start();
        let mut snapshot = self.gateway.snapshot(Arc::clone(&self.config), &lateness);
        snapshot.late = late;
        snapshot.events = self.shared.events.read();
        snapshot.notifications = self.shared.notices.counts();
        snapshot.thread_restarts = self.shared.restarts.load(Ordering::Relaxed);
        let snapshot = Arc::new(snapshot);
        self.watchdog.feed(now, self.shared.rounds.load(Ordering::Relaxed));
        self.log_changes(now, &snapshot.ports, snapshot.lateness.quantile(0.99).unwrap_or_default());
        self.log_faults();
        *self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
        if now >= self.window {
            self.late = late;
            self.lateness = Some(self.gateway.engine.lateness().clone());
            self.gateway.engine.forget_lateness();
            self.window = now + WINDOW;
        }
    }

    fn late_since_start(&self) -> (u64, Span) {
        let (count, sum) = self.late;
        let lateness = self.gateway.engine.lateness();
        (count + lateness.count(), sum + lateness.sum())
    }

    /// Logs when a discipline from outside the catalogue broke its contract.
    fn log_faults(&mut self) {
        for (direction, was_faulty) in Direction::BOTH.into_iter().zip(&mut self.faulty) {
            let link = self.gateway.engine.link(direction as usize);
            let fault = link.and_then(|link| link.state.queue().fault());
            if let Some(fault) = fault.filter(|_| !*was_faulty) {
                tracing::error!(direction = direction.name(), %fault, "packets are dropped; reload with another queue");
            }
            *was_faulty = fault.is_some();
        }
    }

    /// Logs changes of the interfaces, and overload.
    fn log_changes(&mut self, now: Time, ports: &[PortCounts; 2], late: Span) {
        let before = std::mem::replace(&mut self.before, *ports);
        let names = [&self.config.inside, &self.config.outside];
        for ((down, interface), (counts, before)) in
            self.down.iter_mut().zip(names).zip(ports.iter().zip(&before))
        {
            if counts.down > before.down {
                *down = true;
                tracing::warn!(interface, "the interface is down");
            } else if *down && counts.received > before.received {
                *down = false;
                tracing::info!(interface, "the interface is up again");
            }
        }
        for (interface, (counts, before)) in names.into_iter().zip(ports.iter().zip(&before)) {
            if counts.segmented > 0 && before.segmented == 0 {
                tracing::info!(
                    interface,
                    "super-packets of segmentation offload arrive and are cut into packets; rates are not affected; TSO \
                     and GSO off at the hosts that send them would save CPU time here"
                );
            }
            if counts.super_packets > 0 && before.super_packets == 0 {
                tracing::warn!(
                    interface,
                    "super-packets arrive that cannot be cut, such as those of tunnels, and are dropped; turn TSO, GSO and \
                     GRO off where they come from"
                );
            }
        }
        let missed: u64 = ports.iter().zip(&before).map(|(now, before)| now.missed - before.missed).sum();
        let total =
            Direction::BOTH.map(|direction| self.gateway.engine.world.direction(direction).shed).iter().sum();
        let shed = total - std::mem::replace(&mut self.shed, total);
        let is_due = self.warned.is_none_or(|warned| now.since(warned) >= WINDOW);
        if (missed > 0 || shed > 0 || late > TOO_LATE) && is_due {
            self.warned = Some(now);
            tracing::warn!(missed, shed, late = %late, "the gateway cannot keep up");
        }
    }
}
