//! Commands to a gateway that runs, its metrics, and signals: the second thread.
//!
//! Commands come by HTTP over a Unix socket that only its owner can open; metrics are read by HTTP over
//! loopback. Both get the same answers, but only commands may reload or read the configuration. Changes from
//! the page need a token (`change`).
//!
//! | request | answer |
//! |---|---|
//! | `GET /` | a page that shows the rest |
//! | `GET /metrics` | for Prometheus |
//! | `GET /stats.json` | the same as JSON, with the largest flows |
//! | `GET /history` | the last hour of both directions; of one flow with `?flow=` and its number |
//! | `GET /config` | the running configuration, canonical |
//! | `GET /control` | settings that the page can change, if the configuration allows it |
//! | `POST /change` | at the address of metrics: the changes that it would make, or 200 once applied |
//! | `GET /healthz` | 200 if frames can pass, or 503 and why they cannot |
//! | `GET /file` | the path of the configuration file |
//! | `POST /reload` | 200 and the changes, or 409 and the problems |
//!
//! SIGHUP reloads; SIGTERM and SIGINT stop. Several connections are served at once, within the limits of
//! `http.rs`, which each socket has for itself.
//!
//! This thread never waits for the thread that moves packets: a reload is an order to it, whose answer is
//! polled in each round. There is one order at a time: until its answer comes, another `POST /reload` is
//! refused, and after a SIGHUP the file is read once more.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use apportion_core::system::Catalog;
use apportion_core::units::{Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::port::Port;
use apportion_scenario::gateway::{Difference, GatewayConfig};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use sd_notify::NotifyState;

use super::events::Events;
use super::history::{History, Kind};
use super::notifications::Notices;
use super::snapshot::{Reloads, Snapshot};
use super::supervision::notify;
use crate::endpoint::Endpoint;
use crate::http::{Answer, Request};
use crate::notifications::Readers;

mod answers;
mod change;
mod error;
mod socket;
mod token;

use answers::starting;
pub use error::ControlError;
pub use error::listen;
pub use socket::{bind, request, socket_name};
pub use token::Token;

/// Silence of the thread that moves packets after which frames are assumed not to pass. Chosen: twenty of its
/// snapshots.
const STALLED: Span = Span::from_secs(2);
/// Maximum time for the thread that moves packets to apply a configuration before the reload counts as
/// refused. Chosen: some hundred times as long as the maximum of flows and rules takes.
const TO_APPLY: Span = Span::from_secs(10);
/// The longest wait for requests, so that the watchdog sees this thread alive and the history misses no
/// second of traffic.
const ROUND: Span = Span::from_millis(500);
/// Prefix of a warning in the answer to a reload.
const WARNING: &str = "warning: ";
/// Maximum bytes of a configuration file. Chosen: a thousand rules take 200 kB.
const MAX_FILE: u64 = 4 << 20;

/// Orders to the thread that moves packets.
#[derive(Debug)]
pub(crate) enum Order<S = Port> {
    /// Apply this configuration, which differs by this difference, and send the result.
    Apply(Box<GatewayConfig>, Difference, SyncSender<Result<(), String>>),
    /// The port of this number has another socket, or none because its interface has gone.
    Attach(u32, Option<S>),
    /// Stop, for this reason.
    Stop(&'static str),
}

/// State that the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The latest snapshot; none before the first.
    pub snapshot: Mutex<Option<Arc<Snapshot>>>,
    /// Readable when there is an order.
    pub wake: EventFd,
    /// Readable when an order was answered, or there is a notification.
    pub answered: EventFd,
    /// Overload notifications of queues.
    pub notices: Notices,
    /// Events of the interfaces.
    pub events: Events,
    /// Rounds of the control thread, at least one a second.
    pub rounds: AtomicU64,
    /// Number of times that the threads that serve the gateway were restarted.
    pub restarts: Arc<AtomicU64>,
}

impl Shared {
    /// Shared state of a gateway that has not started.
    pub fn new() -> Result<Self, Errno> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self {
            snapshot: Mutex::new(None),
            wake: EventFd::from_value_and_flags(0, flags)?,
            answered: EventFd::from_value_and_flags(0, flags)?,
            notices: Notices::new(),
            events: Events::default(),
            rounds: AtomicU64::new(0),
            restarts: Arc::default(),
        })
    }
}

/// The control thread.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    catalog: Catalog,
    shared: Arc<Shared>,
    orders: Sender<Order>,
    commands: Endpoint<UnixListener>,
    /// Clients of the page and of metrics.
    readers: Endpoint<TcpListener>,
    notifications: Option<Readers>,
    signals: SignalFd,
    reloads: Reloads,
    /// The order that is not answered yet.
    ordered: Option<Ordered>,
    /// Whether a SIGHUP came since the order.
    again: bool,
    clock: Clock,
    /// The time in the latest snapshot, and when it was first seen.
    heard: Option<(Time, Time)>,
    history: History,
    /// The token for changes from the page; none if the page can change nothing.
    token: Option<Token>,
    guard: token::Guard,
    /// The last running configuration, and its revision for clients.
    revision: Option<(Arc<GatewayConfig>, String)>,
    /// `/stats.json` as last written, its snapshot, and the age of that in whole seconds.
    written: Option<(Arc<Snapshot>, u64, String)>,
}

/// The origin of a new configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    File,
    /// The page, which changes the running one.
    Page,
}

/// State of the control thread that changes once a configuration is applied.
#[derive(Debug, Default)]
struct Takeover {
    /// The listener for metrics, if it changes.
    metrics: Option<Option<TcpListener>>,
    /// The token, or none, if the file was read again.
    token: Option<Option<Token>>,
}

/// An order: a reload or a change.
#[derive(Debug)]
struct Ordered {
    /// Receives the answer of the other thread.
    answer: Receiver<Result<(), String>>,
    /// The changes, and warnings, one a line.
    changes: String,
    /// The number of changes.
    count: usize,
    takeover: Takeover,
    origin: Origin,
    /// Time at which the order is reported as not applied; [`Time::MAX`] once that was reported.
    deadline: Time,
}

impl Control {
    /// Opens the sockets of a gateway that runs by `config`, read from `path` with the disciplines of
    /// `catalog`, and takes over the signals. Call it before the first thread starts. Orders come by
    /// `orders`.
    ///
    /// # Errors
    /// If a socket, the signals or the token cannot be opened.
    pub fn open(
        path: &Path,
        catalog: &Catalog,
        config: &GatewayConfig,
        folder: &Path,
        orders: Sender<Order>,
    ) -> Result<(Self, Arc<Shared>), ControlError> {
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        set.thread_block().map_err(ControlError::Signals)?;
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let signals = SignalFd::with_flags(&set, flags).map_err(ControlError::Signals)?;
        let shared = Arc::new(Shared::new().map_err(ControlError::Signals)?);
        let token = token_of(config)?;
        let metrics = config.metrics.map(listen).transpose()?;
        let open = |path: &PathBuf| {
            let fail = |error| ControlError::Notifications { path: path.clone(), error };
            Readers::open(path, &config.title).map_err(fail)
        };
        let notifications = config.notifications.as_ref().map(open).transpose()?;
        let commands = bind(folder, &config.title).inspect_err(|_| {
            // The only file that would be left behind.
            let _ = config.notifications.as_deref().map(fs::remove_file);
        })?;
        let control = Self {
            path: path.to_owned(),
            catalog: catalog.clone(),
            shared: Arc::clone(&shared),
            orders,
            commands: Endpoint::new(Some(commands)),
            readers: Endpoint::new(metrics),
            notifications,
            signals,
            reloads: Reloads::default(),
            ordered: None,
            again: false,
            clock: Clock::start(),
            heard: None,
            history: History::default(),
            token,
            guard: token::Guard::default(),
            revision: None,
            written: None,
        };
        Ok((control, shared))
    }

    /// Serves requests until a signal stops the gateway.
    ///
    /// # Errors
    /// If requests cannot be polled.
    pub fn run(&mut self) -> Result<(), Errno> {
        loop {
            self.shared.rounds.fetch_add(1, Ordering::Relaxed);
            self.wait()?;
            if !self.round(self.clock.now()) {
                return Ok(());
            }
        }
    }

    /// Proceeds as far as possible without blocking. Returns whether to go on.
    fn round(&mut self, now: Time) -> bool {
        if !self.take_signals() {
            let answer = "the gateway stops; whether the reload is applied is not known\n";
            let answer = Answer::text(503, answer);
            self.commands.answer_waiting(now, &answer);
            self.readers.answer_waiting(now, &answer);
            return false;
        }
        self.hear(now);
        self.follow_reload(now);
        self.serve_commands(now);
        self.serve_readers(now);
        if let Some(readers) = &mut self.notifications {
            self.shared.notices.serve(now, readers);
        }
        true
    }

    /// Notes whether the other thread has published another snapshot.
    fn hear(&mut self, now: Time) {
        if let Some(latest) = self.snapshot()
            && self.heard.is_none_or(|(before, _)| before != latest.now)
        {
            self.heard = Some((latest.now, now));
            self.history.hear(&latest);
            self.written = None;
        }
    }

    /// Time for which the other thread has published no snapshot that was seen: too short by at most
    /// [`ROUND`].
    fn silence(&self, now: Time) -> Span {
        self.heard.map_or(Span::ZERO, |(_, heard)| now.since(heard))
    }

    /// Why frames cannot pass, one reason a line; empty if they can.
    fn obstacles(&self, now: Time, snapshot: &Snapshot) -> String {
        let silence = self.silence(now);
        let mut obstacles = snapshot.obstacles();
        if silence > STALLED {
            let whole = Span::from_millis(silence.as_nanos() / 1_000_000);
            obstacles += &format!("the thread that moves packets has not reported for {whole}\n");
        }
        obstacles
    }

    /// Waits for signals, clients and the answer of the other thread.
    fn wait(&self) -> Result<(), Errno> {
        let own = [self.signals.as_fd(), self.shared.answered.as_fd()].into_iter();
        let clients = self.commands.interests().chain(self.readers.interests());
        let clients = clients.chain(self.notifications.iter().flat_map(Readers::interests));
        let mut watched: Vec<PollFd<'_>> = own
            .map(|own| (own, PollFlags::POLLIN))
            .chain(clients)
            .map(|(fd, flags)| PollFd::new(fd, flags))
            .collect();
        let deadlines = [self.commands.deadline(), self.readers.deadline()].into_iter().flatten();
        let deadlines = deadlines.chain(self.notifications.as_ref().and_then(Readers::deadline));
        let deadline = deadlines.chain(self.ordered.as_ref().map(|ordered| ordered.deadline)).min();
        let until = deadline.map_or(ROUND, |deadline| self.clock.until(deadline).min(ROUND));
        // Rounded up, and below the limit, which fits.
        match poll(&mut watched, PollTimeout::from(until.as_nanos().div_ceil(1_000_000) as u16)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Handles signals. Returns whether to go on.
    fn take_signals(&mut self) -> bool {
        while let Ok(Some(info)) = self.signals.read_signal() {
            let stop = match Signal::try_from(info.ssi_signo as i32) {
                Ok(Signal::SIGHUP) => {
                    self.again = true;
                    continue;
                }
                Ok(Signal::SIGINT) => "SIGINT",
                _ => "SIGTERM",
            };
            self.send(Order::Stop(stop));
            return false;
        }
        true
    }

    fn serve_commands(&mut self, now: Time) {
        let mut commands = std::mem::take(&mut self.commands);
        commands.serve(now, |request| self.answer_command(now, request));
        self.commands = commands;
    }

    fn serve_readers(&mut self, now: Time) {
        let mut readers = std::mem::take(&mut self.readers);
        readers.serve(now, |request| self.answer_reader(now, request));
        self.readers = readers;
    }

    /// The answer to a command; none if it is not known yet.
    fn answer_command(&mut self, now: Time, request: &Request<'_>) -> Option<Answer> {
        let Request { method, target: path, .. } = *request;
        Some(match (method, path) {
            ("POST", "/reload") => Answer::text(409, self.begin_reload(now).err()?),
            ("GET", "/config") => match self.snapshot() {
                Some(snapshot) => Answer::text(200, snapshot.config.canonical()),
                None => starting(),
            },
            ("GET", "/file") => Answer::text(200, format!("{}\n", self.path.display())),
            _ => self.answer(now, method, path),
        })
    }

    /// The answer to a client of the page or of metrics; none if it is not known yet.
    fn answer_reader(&mut self, now: Time, request: &Request<'_>) -> Option<Answer> {
        match (request.method, request.target) {
            ("POST", "/change") => self.answer_change(now, request),
            (method, target) => Some(self.answer(now, method, target)),
        }
    }

    fn snapshot(&self) -> Option<Arc<Snapshot>> {
        self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn send(&self, order: Order) {
        // Without the other thread this one ends as well.
        if self.orders.send(order).is_ok() {
            let _ = self.shared.wake.write(1);
        }
    }

    /// Reads the configuration again and orders the other thread to apply it; [`Self::follow_reload`] reports the result.
    ///
    /// # Errors
    /// The problems of the configuration, or that another reload is under way.
    fn begin_reload(&mut self, now: Time) -> Result<(), String> {
        if let Some(busy) = self.busy() {
            self.record(Origin::File, 0, Err(busy.to_owned()));
            return Err(busy.to_owned());
        }
        notify(NotifyState::Reloading);
        let ordered = self.order(now).map(|ordered| self.ordered = Some(ordered));
        if let Err(problems) = &ordered {
            self.record(Origin::File, 0, Err(problems.clone()));
            notify(NotifyState::Ready);
        }
        ordered
    }

    /// Why no order is possible now.
    fn busy(&self) -> Option<&'static str> {
        Some(match self.ordered.as_ref()?.deadline {
            Time::MAX => "an earlier reload is not applied yet; restart the gateway if this lasts\n",
            _ => "another reload is being applied; try again\n",
        })
    }

    fn order(&mut self, now: Time) -> Result<Ordered, String> {
        let snapshot = self.snapshot().ok_or("the gateway is starting; try again\n")?;
        let new = load(&self.path, &self.catalog)?;
        let difference = snapshot.config.difference(&new).map_err(|pinned| {
            let file = self.path.display();
            pinned.iter().map(|pinned| format!("{file}: {pinned}\n")).collect::<String>()
        })?;
        // The only steps that can fail come first.
        let token = token_of(&new).map_err(|why| format!("{}: {why}\n", self.path.display()))?;
        let metrics = (snapshot.config.metrics != new.metrics)
            .then(|| new.metrics.map(listen).transpose())
            .transpose()
            .map_err(|error| format!("{}: {error}\n", self.path.display()))?;
        let (mut changes, count) = (difference.to_string(), difference.changes.len());
        changes.extend(new.warnings().iter().map(|warning| format!("{WARNING}{warning}\n")));
        let (reply, answer) = sync_channel(1);
        self.send(Order::Apply(Box::new(new), difference, reply));
        let takeover = Takeover { metrics, token: Some(token) };
        Ok(Ordered { answer, changes, count, takeover, origin: Origin::File, deadline: now + TO_APPLY })
    }

    /// Reports the result of the order if it is applied or late, and begins the next reload if a signal asked
    /// for it.
    fn follow_reload(&mut self, now: Time) {
        // The descriptor need not be readable.
        let _ = self.shared.answered.read();
        if let Some((origin, count, result)) = self.take_result(now) {
            if origin == Origin::File {
                let answer = match &result {
                    Ok(changes) => Answer::text(200, changes.as_str()),
                    Err(problems) => Answer::text(409, problems.as_str()),
                };
                self.commands.answer_waiting(now, &answer);
            } else {
                let answer = self.changed(&result);
                self.readers.answer_waiting(now, &answer);
            }
            self.record(origin, count, result);
            if origin == Origin::File {
                notify(NotifyState::Ready);
            }
        }
        if self.ordered.is_none() && std::mem::take(&mut self.again) {
            // The log has the result.
            let _ = self.begin_reload(now);
        }
    }

    /// The origin, number of changes and result of the order, if there is a result to report.
    fn take_result(&mut self, now: Time) -> Option<(Origin, usize, Result<String, String>)> {
        let ordered = self.ordered.as_mut()?;
        let (origin, count) = (ordered.origin, ordered.count);
        let result = match ordered.answer.try_recv() {
            Err(TryRecvError::Empty) if now < ordered.deadline => None,
            Err(TryRecvError::Empty) => {
                // It may still be applied.
                ordered.deadline = Time::MAX;
                let limit = TO_APPLY.as_secs_f64();
                Some(Err(format!(
                    "not applied within {limit} s; `apportion gateway show --running` shows whether it was applied later\n"
                )))
            }
            Err(TryRecvError::Disconnected) => {
                self.ordered = None;
                Some(Err("the gateway stops, and does not apply it\n".to_owned()))
            }
            Ok(applied) => {
                let Ordered { changes, takeover, .. } = self.ordered.take()?;
                if let Some(metrics) = takeover.metrics {
                    self.readers.replace(metrics);
                }
                if let Some(token) = takeover.token {
                    self.token = token;
                }
                Some(outcome(changes, applied))
            }
        };
        result.map(|result| (origin, count, result))
    }

    /// Counts and logs the result of a reload or change; `count` is the number of changes.
    fn record(&mut self, origin: Origin, count: usize, result: Result<String, String>) {
        self.written = None;
        let (kinds, done) = match origin {
            Origin::File => ([Kind::Reload, Kind::ReloadRefused], ["reloaded", "the reload is refused"]),
            Origin::Page => {
                ([Kind::Change, Kind::ChangeRefused], ["changed from the page", "the change is refused"])
            }
        };
        let counts = match origin {
            Origin::File => &mut self.reloads.from_file,
            Origin::Page => &mut self.reloads.from_page,
        };
        match &result {
            Ok(changes) => {
                self.history.event(kinds[0], changes.clone());
                counts.applied += 1;
                let warnings = changes.lines().filter(|line| line.starts_with(WARNING)).count();
                tracing::info!(changes = count, warnings, "{}", done[0]);
                for line in changes.lines() {
                    match line.strip_prefix(WARNING) {
                        Some(warning) => tracing::warn!("{warning}"),
                        None => tracing::info!(change = line, "changed"),
                    }
                }
            }
            Err(problems) => {
                self.history.event(kinds[1], problems.clone());
                counts.refused += 1;
                problems.lines().for_each(|error| tracing::error!(error, "{}", done[1]));
            }
        }
        if origin == Origin::File {
            self.reloads.last = Some(result);
        }
    }
}

/// Checks the file of the token that changes from the page need, if the page can change anything.
///
/// # Errors
/// The problem with the file, and how to mend it.
pub fn check_token(config: &GatewayConfig) -> Result<(), ControlError> {
    token_of(config).map(drop)
}

/// The token for changes from the page by this configuration; none if the page can change nothing.
fn token_of(config: &GatewayConfig) -> Result<Option<Token>, ControlError> {
    config.control_token.as_deref().filter(|_| config.control).map(Token::read).transpose()
}

/// The answer to a reload with these changes, some of which may read back differently.
fn outcome(changes: String, applied: Result<(), String>) -> Result<String, String> {
    match applied {
        Ok(()) => Ok(changes),
        Err(differs) => Err(format!(
            "the running configuration differs from the file; restart the gateway\n{differs}applied:\n{changes}"
        )),
    }
}

/// Reads and checks a configuration file, with queues of `catalog`.
///
/// # Errors
/// All problems of the file, one a line.
pub fn load(path: &Path, catalog: &Catalog) -> Result<GatewayConfig, String> {
    GatewayConfig::load_with(catalog, &text(path)?, path, &read_plans)
        .map_err(|problems| problems.iter().map(|problem| format!("{problem}\n")).collect())
}

/// Reads a file of plans, with the limit of a configuration file and for the same reason: a running gateway
/// has no memory to spare for a mistake.
fn read_plans(path: &Path) -> io::Result<Vec<u8>> {
    apportion_scenario::read_text_file(path, MAX_FILE).map(String::into_bytes)
}

/// The title of the gateway of this file, even if the file is wrong or gone: commands address a running
/// gateway by it.
#[must_use]
pub fn title(path: &Path) -> String {
    GatewayConfig::title_of(&text(path).unwrap_or_default(), path)
}

fn text(path: &Path) -> Result<String, String> {
    let fail = |error: &dyn std::fmt::Display| {
        format!(
            "{}: cannot read the configuration: {error}; name a TOML file, such as scenarios/gateway/home.toml\n",
            path.display()
        )
    };
    // A running gateway reads its file again, and has no memory to spare for a mistake.
    apportion_scenario::read_text_file(path, MAX_FILE).map_err(|error| fail(&error))
}

/// Takes the waiting orders, and resets the wake-up.
pub(crate) fn take_orders<S>(shared: &Shared, orders: &Receiver<Order<S>>) -> Vec<Order<S>> {
    // The descriptor need not be readable.
    let _ = shared.wake.read();
    orders.try_iter().collect()
}

#[cfg(test)]
mod tests;
