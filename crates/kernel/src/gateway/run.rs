//! A gateway from its start to its end: what the command runs.
//!
//! One thread waits for signals and for clients, as those of the gateway in user space (`apportion_live::gateway::control`):
//!
//! | request | answer |
//! |---|---|
//! | `GET /metrics` | for Prometheus |
//! | `GET /stats.json` | the same as JSON |
//! | `GET /healthz` | 200 if both directions are set up, or 503 and which is not |
//! | `GET /config` | at the control socket: the configuration that runs, canonical |
//! | `GET /file` | at the control socket: the path of the file that it was read from |
//! | `POST /reload` | at the control socket: 200 and what changed, or 409 and what is wrong |

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixListener;
use std::path::Path;

use apportion_core::system::Catalog;
use apportion_core::units::{Span, Time};
use apportion_linux::capabilities::{Capability, keep_capabilities};
use apportion_linux::clock::Clock;
use apportion_live::endpoint::{Answer, Endpoint, Request};
use apportion_live::gateway::capabilities::to_read_again;
use apportion_live::gateway::control::{self, bind, listen, socket_name};
use apportion_live::gateway::interface_lock;
use apportion_live::gateway::metrics::Metrics;
use apportion_live::gateway::offloads::state_file;
use apportion_live::gateway::snapshot::Reloads;
use apportion_live::gateway::supervision::log_panics;
use apportion_live::unix_socket::SocketFile;
use apportion_scenario::gateway::GatewayConfig;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::socket::SockaddrStorage;
use sd_notify::NotifyState;

use super::statistics::Statistics;
use super::{GatewayError, KernelGateway, plan};

/// How often it is looked whether the interfaces are still those that were set up, and systemd's watchdog is fed.
const PERIOD: Span = Span::from_secs(1);

/// How old counters may be that are given out: to read them lists all classes of both interfaces.
const FRESH: Span = Span::from_millis(100);

/// Runs the gateway of the configuration file at `path`, whose queues are of `catalog`, until SIGINT or SIGTERM stops it; SIGHUP reloads
/// the file. Its control socket is in `folder`, and so are locks, unless root's. With `fail_open` frames are handed over
/// undivided when it ends. Called with a single thread.
///
/// # Errors
/// Why it did not start, or ended.
pub fn run(path: &Path, folder: &Path, catalog: &Catalog, fail_open: bool) -> Result<(), GatewayError> {
    // As it was named: a link is followed each time that the file is read.
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    log_panics();
    let signals = signals()?;
    let config = control::load(&path, catalog).map_err(GatewayError::Config)?;
    let plans = plan(&config).map_err(|problems| GatewayError::Config(at(&path, &problems)))?;
    let title = config.title.clone();
    warn(&config);
    let commands = bind(folder, &title)?;
    let socket = SocketFile(folder.join(socket_name(&title)));
    let metrics = config.metrics.map(listen).transpose()?;
    let state = state_file(&socket.0);
    let gateway = KernelGateway::start(config, plans, &interface_lock::folder(folder), state, fail_open)?;
    keep_capabilities(&[Capability::NetAdmin, Capability::Bpf, Capability::Perfmon])
        .map_err(GatewayError::Capabilities)?;
    if let Some(problem) = to_read_again(&path) {
        tracing::warn!("{problem}");
    }
    let mut service = Service {
        path: &path,
        catalog,
        gateway,
        signals,
        commands: Endpoint::new(Some(commands)),
        readers: Endpoint::new(metrics),
        clock: Clock::start(),
        due: Time::ZERO,
        counted: None,
        reloads: Reloads::default(),
    };
    notify(NotifyState::Ready);
    tracing::info!(title, socket = %socket.0.display(), "the gateway is running, in the kernel");
    let why = service.run().map_err(GatewayError::Wait)?;
    notify(NotifyState::Stopping);
    tracing::info!(why, "the gateway stops; packets that wait are dropped");
    Ok(())
}

/// Problems of the file, one a line.
fn at(path: &Path, problems: &[String]) -> String {
    problems.iter().map(|problem| format!("{}: {problem}\n", path.display())).collect()
}

fn signals() -> Result<SignalFd, GatewayError> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    set.thread_block().map_err(GatewayError::Wait)?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(GatewayError::Wait)
}

/// Notifies systemd; it may run without.
fn notify(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

/// Says which keys have no effect here.
fn warn(config: &GatewayConfig) {
    let keys = [("notifications", config.notifications.is_some()), ("control", config.control)];
    for (key, _) in keys.into_iter().filter(|(_, is_set)| *is_set) {
        tracing::warn!(key, "has no effect in the kernel backend");
    }
    config.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    for interface in addressed([&config.inside, &config.outside]) {
        tracing::warn!(
            interface,
            "it has an address, at which this host is not reached while the gateway runs: all that arrives there crosses"
        );
    }
}

/// Those of these interfaces that have an address which is not only of the link (RFC 3927, RFC 4291).
fn addressed(names: [&String; 2]) -> BTreeSet<String> {
    let is_routable = |address: &SockaddrStorage| match (address.as_sockaddr_in(), address.as_sockaddr_in6())
    {
        (Some(four), _) => !four.ip().is_link_local(),
        (_, Some(six)) => !six.ip().is_unicast_link_local(),
        _ => false,
    };
    let all = getifaddrs().into_iter().flatten();
    all.filter(|found| names.contains(&&found.interface_name))
        .filter(|found| found.address.as_ref().is_some_and(is_routable))
        .map(|found| found.interface_name)
        .collect()
}

/// The gateway with those whom it answers.
struct Service<'a> {
    path: &'a Path,
    catalog: &'a Catalog,
    gateway: KernelGateway,
    signals: SignalFd,
    commands: Endpoint<UnixListener>,
    /// Of metrics.
    readers: Endpoint<TcpListener>,
    clock: Clock,
    /// When the interfaces are looked at next.
    due: Time,
    /// What was last counted, and when.
    counted: Option<(Time, Statistics)>,
    reloads: Reloads,
}

impl Service<'_> {
    /// Serves until a signal stops it: which one.
    fn run(&mut self) -> Result<&'static str, Errno> {
        loop {
            self.wait()?;
            while let Ok(Some(info)) = self.signals.read_signal() {
                match Signal::try_from(info.ssi_signo.cast_signed()) {
                    // The log has the result.
                    Ok(Signal::SIGHUP) => drop(self.reload()),
                    Ok(signal) => return Ok(signal.as_str()),
                    Err(_) => (),
                }
            }
            let now = self.clock.now();
            if now >= self.due {
                self.gateway.mend();
                notify(NotifyState::Watchdog);
                self.due = now + PERIOD;
            }
            self.serve(now);
        }
    }

    /// Waits for signals and clients, until the interfaces are to be looked at.
    fn wait(&self) -> Result<(), Errno> {
        let clients = self.commands.interests().chain(self.readers.interests());
        let mut watched: Vec<PollFd<'_>> = std::iter::once((self.signals.as_fd(), PollFlags::POLLIN))
            .chain(clients)
            .map(|(fd, flags)| PollFd::new(fd, flags))
            .collect();
        let deadlines = [self.commands.deadline(), self.readers.deadline()].into_iter().flatten();
        let until = self.clock.until(deadlines.fold(self.due, Time::min));
        let millis = u16::try_from(until.as_nanos().div_ceil(1_000_000)).unwrap_or(u16::MAX);
        match poll(&mut watched, PollTimeout::from(millis)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn serve(&mut self, now: Time) {
        let mut commands = std::mem::take(&mut self.commands);
        commands.serve(now, |request| Some(self.answer_command(request)));
        self.commands = commands;
        let mut readers = std::mem::take(&mut self.readers);
        readers.serve(now, |request| Some(self.answer(request)));
        self.readers = readers;
    }

    fn answer_command(&mut self, request: &Request<'_>) -> Answer {
        match (request.method, request.target) {
            ("POST", "/reload") => match self.reload() {
                Ok(changes) => Answer::text(200, changes),
                Err(problems) => Answer::text(409, problems),
            },
            ("GET", "/config") => Answer::text(200, self.gateway.config().canonical()),
            ("GET", "/file") => Answer::text(200, format!("{}\n", self.path.display())),
            _ => self.answer(request),
        }
    }

    fn answer(&mut self, request: &Request<'_>) -> Answer {
        let target = request.target.split('?').next().unwrap_or_default();
        match (request.method, target) {
            ("GET", "/metrics") => {
                let (statistics, reloads) = self.statistics();
                Metrics::answer(statistics.prometheus(reloads))
            }
            ("GET", "/stats.json") => {
                let (statistics, reloads) = self.statistics();
                Answer::json(format!("{:#}\n", statistics.json(reloads)))
            }
            ("GET", "/healthz") => {
                let obstacles: String =
                    self.gateway.obstacles().iter().map(|obstacle| format!("{obstacle}\n")).collect();
                if obstacles.is_empty() {
                    Answer::text(200, "frames pass\n")
                } else {
                    Answer::text(503, obstacles)
                }
            }
            ("GET", _) => {
                Answer::text(404, "the kernel backend has /metrics, /stats.json and /healthz, and no page\n")
            }
            _ => Answer::text(405, "only GET is answered here\n"),
        }
    }

    /// What is counted: read at most once in [`FRESH`], however many ask.
    fn statistics(&mut self) -> (&Statistics, &Reloads) {
        let now = self.clock.now();
        let fresh = self.counted.take().filter(|(read, _)| now.since(*read) < FRESH);
        let counted = fresh.unwrap_or_else(|| (now, self.gateway.statistics(now)));
        (&self.counted.insert(counted).1, &self.reloads)
    }

    /// Reads the file again and applies it; what changed, or what is wrong: a file that is wrong changes nothing.
    fn reload(&mut self) -> Result<String, String> {
        notify(NotifyState::Reloading);
        let result = self.read_again();
        match &result {
            Ok(changes) => {
                self.reloads.from_file.applied += 1;
                tracing::info!(changes = changes.lines().count(), "reloaded");
                changes.lines().for_each(|change| tracing::info!(change, "changed"));
            }
            Err(problems) => {
                self.reloads.from_file.refused += 1;
                problems.lines().for_each(|error| tracing::error!(error, "the reload is refused"));
            }
        }
        self.reloads.last = Some(result.clone());
        notify(NotifyState::Ready);
        result
    }

    fn read_again(&mut self) -> Result<String, String> {
        let new = control::load(self.path, self.catalog)?;
        let plans = plan(&new).map_err(|problems| at(self.path, &problems))?;
        let running = self.gateway.config();
        let difference = running
            .difference(&new)
            .map_err(|pinned| at(self.path, &pinned.iter().map(ToString::to_string).collect::<Vec<_>>()))?;
        // First, since it changes nothing if it fails.
        if running.metrics != new.metrics {
            let metrics = new.metrics.map(listen).transpose().map_err(|error| format!("{error}\n"))?;
            self.readers.replace(metrics);
        }
        let mut changes = difference.to_string();
        changes.extend(new.warnings().iter().map(|warning| format!("warning: {warning}\n")));
        self.counted = None;
        // The file is what runs now, and what could not be set up is tried again.
        for (direction, error) in self.gateway.apply(new, plans).err().into_iter().flatten() {
            let direction = direction.name();
            let problem =
                format!("{direction}: {error}; its frames pass undivided, and it is tried again each second");
            tracing::error!(problem, "not set up yet");
            changes.extend([&problem, "\n"]);
        }
        Ok(changes)
    }
}
