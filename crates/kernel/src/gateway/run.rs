//! A gateway from start to end, as the command runs it.
//!
//! One thread waits for signals and clients, as in the gateway in user space
//! (`apportion_live::gateway::control`):
//!
//! | request | answer |
//! |---|---|
//! | `GET /metrics` | metrics as Prometheus text |
//! | `GET /stats.json` | metrics as JSON |
//! | `GET /healthz` | 200 if both directions are set up, or 503 and the direction that is not |
//! | `GET /config` | at the control socket: the running configuration in canonical form |
//! | `GET /file` | at the control socket: the path of the configuration file |
//! | `POST /reload` | at the control socket: 200 and the changes, or 409 and the problem |

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

/// The period of the check that the interfaces are still those that were set up, and of feeding systemd's
/// watchdog.
const PERIOD: Span = Span::from_secs(1);

/// The maximum age of counters in an answer: a reading lists all classes of both interfaces.
const FRESH: Span = Span::from_millis(100);

/// Runs the gateway of the configuration file at `path`, with the queues of `catalog`, until SIGINT or
/// SIGTERM; SIGHUP reloads the file. The control socket is in `folder`, and so are locks, unless the user is
/// root. With `fail_open`, frames are handed over undivided when the gateway ends. The process must have a
/// single thread.
///
/// # Errors
/// The reason why the gateway did not start, or ended.
pub fn run(path: &Path, folder: &Path, catalog: &Catalog, fail_open: bool) -> Result<(), GatewayError> {
    // The path as given: a symbolic link is followed at each reading of the file.
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

/// Formats the problems of the file, one per line.
fn at(path: &Path, problems: &[String]) -> String {
    problems.iter().map(|problem| format!("{}: {problem}\n", path.display())).collect()
}

fn signals() -> Result<SignalFd, GatewayError> {
    let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    set.thread_block().map_err(GatewayError::Wait)?;
    SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC).map_err(GatewayError::Wait)
}

/// Notifies systemd, if the gateway runs under it.
fn notify(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

/// Warns of keys that have no effect in the kernel.
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

/// Returns the interfaces that have an address other than link-local ones (RFC 3927, RFC 4291).
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

/// The gateway with its clients.
struct Service<'a> {
    path: &'a Path,
    catalog: &'a Catalog,
    gateway: KernelGateway,
    signals: SignalFd,
    commands: Endpoint<UnixListener>,
    /// The clients of metrics.
    readers: Endpoint<TcpListener>,
    clock: Clock,
    /// The time of the next check of the interfaces.
    due: Time,
    /// The last reading of the counters, and its time.
    counted: Option<(Time, Statistics)>,
    reloads: Reloads,
}

impl Service<'_> {
    /// Serves until a signal stops it, and returns the signal.
    fn run(&mut self) -> Result<&'static str, Errno> {
        loop {
            self.wait()?;
            while let Ok(Some(info)) = self.signals.read_signal() {
                match Signal::try_from(info.ssi_signo.cast_signed()) {
                    // The result is in the log.
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

    /// Waits for signals and clients, until the interfaces are due for a check.
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

    /// Returns the counters, read at most once per [`FRESH`] for any number of clients.
    fn statistics(&mut self) -> (&Statistics, &Reloads) {
        let now = self.clock.now();
        let fresh = self.counted.take().filter(|(read, _)| now.since(*read) < FRESH);
        let counted = fresh.unwrap_or_else(|| (now, self.gateway.statistics(now)));
        (&self.counted.insert(counted).1, &self.reloads)
    }

    /// Reloads the file and applies it. Returns the changes, or the problem: an invalid file changes nothing.
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
        // Changed first, since a failure changes nothing.
        if running.metrics != new.metrics {
            let metrics = new.metrics.map(listen).transpose().map_err(|error| format!("{error}\n"))?;
            self.readers.replace(metrics);
        }
        let mut changes = difference.to_string();
        changes.extend(new.warnings().iter().map(|warning| format!("warning: {warning}\n")));
        self.counted = None;
        // The file is in effect now; directions that could not be set up are tried again.
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
