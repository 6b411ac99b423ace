//! Commands to a gateway that runs, its metrics, and signals: the second thread.
//!
//! Commands come by HTTP over a Unix socket that only its owner can open, metrics are read by HTTP over loopback:
//! the same answers, but only the former may change something or read the configuration.
//!
//! | request | answer |
//! |---|---|
//! | `GET /metrics` | for Prometheus |
//! | `GET /stats.json` | the same as JSON |
//! | `GET /config` | the configuration that runs, canonical |
//! | `GET /healthz` | 200 if frames can pass, or 503 and why they cannot |
//! | `GET /file` | the path of the file that it was read from |
//! | `POST /reload` | 200 and what changed, or 409 and what is wrong |
//!
//! SIGHUP reloads; SIGTERM and SIGINT stop. Several connections are served at once, within the limits of `http.rs`, and those
//! of one socket take no place from those of the other.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use apportion_core::system::Catalog;
use apportion_core::units::Span;
use apportion_linux::clock::Clock;
use apportion_linux::port::Port;
use apportion_scenario::gateway::{Difference, GatewayConfig};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{Mode, umask};
use sd_notify::NotifyState;

use super::attachment::Events;
use super::http::{self, Answer, Clients};
use super::snapshot::{Reloads, Snapshot};
use super::supervision::notify;

/// How long the thread that moves packets may take to apply a configuration.
const TO_APPLY: Duration = Duration::from_secs(10);
/// How long it waits for requests at most, so that it is seen to be alive.
const ROUND: Span = Span::from_secs(1);
/// Connections that are accepted before signals and other clients have their turn.
const ACCEPTS: usize = 128;
/// Longest configuration file. Chosen: a thousand rules take 200 kB.
const MAX_FILE: u64 = 4 << 20;

/// Orders to the thread that moves packets.
#[derive(Debug)]
pub(crate) enum Order<S = Port> {
    /// Apply this configuration, which differs by that, and send the result.
    Apply(Box<GatewayConfig>, Difference, SyncSender<Result<(), String>>),
    /// The port of this number has another socket from now on, or none because its interface has gone.
    Attach(u32, Option<S>),
    /// Stop, because of this.
    Stop(&'static str),
}

/// What both threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The latest; none before the first.
    pub snapshot: Mutex<Option<Arc<Snapshot>>>,
    /// Readable when there is an order.
    pub wake: EventFd,
    /// What happened to the interfaces.
    pub events: Events,
    /// Rounds of the control thread, at least one a second.
    pub rounds: AtomicU64,
    /// How often the threads that serve the gateway were started again.
    pub restarts: Arc<AtomicU64>,
}

impl Shared {
    /// Nothing has happened yet.
    pub fn new() -> Result<Self, Errno> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(Self {
            snapshot: Mutex::new(None),
            wake: EventFd::from_value_and_flags(0, flags)?,
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
    commands: UnixListener,
    metrics: Option<TcpListener>,
    signals: SignalFd,
    reloads: Reloads,
    clock: Clock,
    /// Of the control socket, and those of metrics.
    commanders: Clients,
    readers: Clients,
}

/// Why the control thread cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The folder for sockets cannot be created.
    #[error("cannot create the folder {} for the control socket: {error}; set XDG_RUNTIME_DIR to a folder of yours", .path.display())]
    Folder {
        /// Where.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// Another gateway answers there.
    #[error("a gateway with this title is already running and answers at {}; stop it, or choose another `title`", .0.display())]
    Runs(PathBuf),
    /// The socket cannot be opened.
    #[error("cannot open the control socket {}: {error}", .path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The port for metrics cannot be opened.
    #[error("metrics = \"{address}\": cannot listen there: {error}; choose another port")]
    Metrics {
        /// Where.
        address: SocketAddr,
        /// The error of the system call.
        error: io::Error,
    },
    /// Signals or the wake-up descriptor cannot be opened.
    #[error("cannot receive signals: {0}")]
    Signals(Errno),
}

/// Maximum of characters of a title that stand in the name of its socket: sun_path has room for 108 bytes (unix(7)).
const MAX_TITLE: usize = 40;

/// The name of the control socket of a gateway with this title. A title with other characters, or a long one, is
/// distinguished by its hash.
#[must_use]
pub(crate) fn socket_name(title: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let written: String = title.chars().map(safe).take(MAX_TITLE).collect();
    if written == title {
        return format!("apportion-{title}.sock");
    }
    // FNV-1a, as a gateway and its commands may be of different builds.
    let hash = title
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("apportion-{written}-{hash:016x}.sock")
}

/// Asks the gateway of this title, whose socket is in one of `folders`.
///
/// # Errors
/// If none answers: which sockets were tried, and what they said.
pub fn request(folders: &[PathBuf], title: &str, method: &str, path: &str) -> Result<(u16, String), String> {
    let mut tried = format!("no gateway with the title `{title}` answers; is it running, and is it yours?");
    for folder in folders {
        let socket = folder.join(socket_name(title));
        let stream = match UnixStream::connect(&socket) {
            Ok(stream) => stream,
            Err(error) => {
                tried += &format!("\n  {}: {error}", socket.display());
                continue;
            }
        };
        let limit = TO_APPLY + TO_APPLY;
        let asked = stream
            .set_read_timeout(Some(limit))
            .and_then(|()| stream.set_write_timeout(Some(limit)))
            .and_then(|()| http::request(stream, method, path));
        return asked.map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!("not within {} s; it may have executed the command", limit.as_secs())
                }
                _ => error.to_string(),
            };
            format!(
                "a gateway with the title `{title}` runs, but did not answer at {}: {why}",
                socket.display()
            )
        });
    }
    Err(tried)
}

/// Opens the socket for commands, which only its owner can use.
fn bind(folder: &Path, title: &str) -> Result<UnixListener, ControlError> {
    fs::create_dir_all(folder).map_err(|error| ControlError::Folder { path: folder.to_owned(), error })?;
    let path = folder.join(socket_name(title));
    if UnixStream::connect(&path).is_ok() {
        return Err(ControlError::Runs(path));
    }
    // Left behind by one that was killed. If there is none, nothing is removed.
    let _ = fs::remove_file(&path);
    let before = umask(Mode::from_bits_truncate(0o177));
    let bound = UnixListener::bind(&path);
    umask(before);
    let fail = |error| ControlError::Socket { path: path.clone(), error };
    let listener = bound.map_err(fail)?;
    listener.set_nonblocking(true).map_err(|error| {
        let _ = fs::remove_file(&path);
        fail(error)
    })?;
    Ok(listener)
}

fn listen(address: SocketAddr) -> Result<TcpListener, ControlError> {
    TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| ControlError::Metrics { address, error })
}

impl Control {
    /// Opens the sockets of the gateway that runs by `config`, read from `path` with the disciplines of `catalog`, and takes the signals. Before
    /// the first thread is started. Orders come by `orders`.
    ///
    /// # Errors
    /// If one of them cannot be had.
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
        let metrics = config.metrics.map(listen).transpose()?;
        let control = Self {
            path: path.to_owned(),
            catalog: catalog.clone(),
            shared: Arc::clone(&shared),
            orders,
            // Last, as what fails after that would leave a socket behind.
            commands: bind(folder, &config.title)?,
            metrics,
            signals,
            reloads: Reloads::default(),
            clock: Clock::start(),
            commanders: Clients::default(),
            readers: Clients::default(),
        };
        Ok((control, shared))
    }

    /// Serves requests until a signal stops it.
    ///
    /// # Errors
    /// If requests cannot be waited for.
    pub fn run(&mut self) -> Result<(), Errno> {
        loop {
            self.shared.rounds.fetch_add(1, Ordering::Relaxed);
            self.wait()?;
            if !self.take_signals() {
                return Ok(());
            }
            self.serve_commands();
            self.serve_metrics();
        }
    }

    /// Waits for signals and clients.
    fn wait(&self) -> Result<(), Errno> {
        let listeners = [self.signals.as_fd(), self.commands.as_fd()].into_iter();
        let listeners = listeners.chain(self.metrics.iter().map(|metrics| metrics.as_fd()));
        let clients = self.commanders.interests().chain(self.readers.interests());
        let mut watched: Vec<PollFd<'_>> = listeners
            .map(|listener| (listener, PollFlags::POLLIN))
            .chain(clients)
            .map(|(fd, flags)| PollFd::new(fd, flags))
            .collect();
        let deadline = [&self.commanders, &self.readers].into_iter().filter_map(Clients::deadline).min();
        let until = deadline.map_or(ROUND, |deadline| self.clock.until(deadline).min(ROUND));
        // Rounded up, and below the limit, which fits.
        match poll(&mut watched, PollTimeout::from(until.as_nanos().div_ceil(1_000_000) as u16)) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether to go on.
    fn take_signals(&mut self) -> bool {
        while let Ok(Some(info)) = self.signals.read_signal() {
            let stop = match Signal::try_from(info.ssi_signo as i32) {
                Ok(Signal::SIGHUP) => {
                    // The log has the result.
                    let _ = self.reload();
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

    fn serve_commands(&mut self) {
        let mut clients = std::mem::take(&mut self.commanders);
        for _ in 0..ACCEPTS {
            let Ok((stream, _)) = self.commands.accept() else { break };
            if stream.set_nonblocking(true).is_ok() {
                clients.add(self.clock.now(), stream, |method, path| self.answer_command(method, path));
            }
        }
        clients.serve(self.clock.now(), |method, path| self.answer_command(method, path));
        self.commanders = clients;
    }

    fn serve_metrics(&mut self) {
        let mut clients = std::mem::take(&mut self.readers);
        for _ in 0..ACCEPTS {
            let Some(Ok((stream, _))) = self.metrics.as_ref().map(TcpListener::accept) else { break };
            if stream.set_nonblocking(true).is_ok() {
                clients.add(self.clock.now(), stream, |method, path| self.answer(method, path));
            }
        }
        clients.serve(self.clock.now(), |method, path| self.answer(method, path));
        self.readers = clients;
    }

    fn answer_command(&mut self, method: &str, path: &str) -> Answer {
        match (method, path) {
            ("POST", "/reload") => match self.reload() {
                Ok(changes) => Answer::text(200, changes),
                Err(problems) => Answer::text(409, problems),
            },
            ("GET", "/config") => match self.snapshot() {
                Some(snapshot) => Answer::text(200, snapshot.config.canonical()),
                None => starting(),
            },
            ("GET", "/file") => Answer::text(200, format!("{}\n", self.path.display())),
            _ => self.answer(method, path),
        }
    }

    fn answer(&self, method: &str, path: &str) -> Answer {
        let Some(snapshot) = self.snapshot() else { return starting() };
        match (method, path) {
            ("GET", "/metrics") => Answer {
                status: 200,
                kind: "text/plain; version=0.0.4; charset=utf-8",
                body: snapshot.prometheus(&self.reloads),
            },
            ("GET", "/stats.json") => Answer {
                status: 200,
                kind: "application/json",
                body: format!("{:#}\n", snapshot.json(&self.reloads)),
            },
            ("GET", "/healthz") => match snapshot.obstacles() {
                obstacles if obstacles.is_empty() => Answer::text(200, "frames pass\n"),
                obstacles => Answer::text(503, obstacles),
            },
            ("GET", _) => Answer::text(404, "there are /metrics, /stats.json and /healthz\n"),
            _ => Answer::text(405, "only GET is answered here\n"),
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

    /// Reads the configuration again and has it applied; what changed, or why nothing did.
    fn reload(&mut self) -> Result<String, String> {
        notify(NotifyState::Reloading);
        let result = self.try_reload();
        match &result {
            Ok(changes) => {
                self.reloads.applied += 1;
                tracing::info!(changes = changes.lines().count(), "reloaded");
                changes.lines().for_each(|change| tracing::info!(change, "changed"));
            }
            Err(problems) => {
                self.reloads.refused += 1;
                problems.lines().for_each(|error| tracing::error!(error, "the reload is refused"));
            }
        }
        self.reloads.last = Some(result.clone());
        notify(NotifyState::Ready);
        result
    }

    fn try_reload(&mut self) -> Result<String, String> {
        let snapshot = self.snapshot().ok_or("the gateway is starting; try again\n")?;
        let new = load(&self.path, &self.catalog)?;
        let difference = snapshot.config.difference(&new).map_err(|pinned| {
            let file = self.path.display();
            pinned.iter().map(|pinned| format!("{file}: {pinned}\n")).collect::<String>()
        })?;
        // The only step that can fail, so it comes first.
        let metrics = (snapshot.config.metrics != new.metrics)
            .then(|| new.metrics.map(listen).transpose())
            .transpose()
            .map_err(|error| format!("{}: {error}\n", self.path.display()))?;
        let changes = difference.to_string();
        let (reply, answer) = sync_channel(1);
        self.send(Order::Apply(Box::new(new), difference, reply));
        let applied = answer.recv_timeout(TO_APPLY).map_err(|_| {
            let limit = TO_APPLY.as_secs();
            format!(
                "not applied within {limit} s; `apportion gateway show --running` shows whether it was applied later\n"
            )
        })?;
        if let Some(metrics) = metrics {
            self.metrics = metrics;
        }
        outcome(changes, applied)
    }
}

/// The answer to a reload that made these changes, of which some may read back differently.
fn outcome(changes: String, applied: Result<(), String>) -> Result<String, String> {
    match applied {
        Ok(()) => Ok(changes),
        Err(differs) => Err(format!(
            "the running configuration differs from the file; restart the gateway\n{differs}applied:\n{changes}"
        )),
    }
}

/// Reads and checks a configuration file, whose queues are of `catalog`; all that is wrong with it, one problem a line.
///
/// # Errors
/// What is wrong.
pub fn load(path: &Path, catalog: &Catalog) -> Result<GatewayConfig, String> {
    GatewayConfig::load_with(catalog, &text(path)?, path)
        .map_err(|problems| problems.iter().map(|problem| format!("{problem}\n")).collect())
}

/// The title of the gateway of this file, also of one that is wrong or gone: what runs is asked for by it.
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
    // A gateway that runs reads its file again, and has no memory to spare for a mistake.
    apportion_scenario::read_text_file(path, MAX_FILE).map_err(|error| fail(&error))
}

fn starting() -> Answer {
    Answer::text(500, "the gateway is starting; try again\n")
}

/// Orders that wait, and the wake-up is taken back.
pub(crate) fn take_orders<S>(shared: &Shared, orders: &Receiver<Order<S>>) -> Vec<Order<S>> {
    // It may not have been woken.
    let _ = shared.wake.read();
    orders.try_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_that_look_alike_have_sockets_of_their_own() {
        assert_eq!(socket_name("home-1.a_b"), "apportion-home-1.a_b.sock");
        let long = "x".repeat(41);
        let names = ["a_b", "a b", "a/b", &long, &long[1..], "\u{e4}"].map(socket_name);
        for (at, name) in names.iter().enumerate() {
            assert!(!names[..at].contains(name) && name.len() <= 72 && name.is_ascii(), "{name}");
            assert!(!name.contains('/') && !name.contains(' '), "{name}");
        }
    }

    #[test]
    fn one_that_does_not_start_leaves_no_socket_behind() {
        let folder = tempfile::tempdir().unwrap();
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\nup.rate = \"1Mbit\"\ndown.rate = \"1Mbit\"\nmetrics = \"{}\"\n",
            taken.local_addr().unwrap()
        );
        let path = folder.path().join("x.toml");
        let config = GatewayConfig::load(&text, &path).unwrap();
        let error =
            Control::open(&path, &Catalog::default(), &config, folder.path(), std::sync::mpsc::channel().0)
                .unwrap_err();
        assert!(matches!(error, ControlError::Metrics { .. }), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_gateway_that_does_not_answer_is_distinguished_from_one_that_does_not_run() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let paths = [folders[0].path().to_owned(), folders[1].path().to_owned()];
        let error = request(&paths, "x", "GET", "/").unwrap_err();
        for path in &paths {
            let line = format!("  {}/apportion-x.sock: No such file", path.display());
            assert!(error.contains(&line), "{error}");
        }
        let listener = UnixListener::bind(paths[1].join("apportion-x.sock")).unwrap();
        let dropping = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let error = request(&paths, "x", "GET", "/").unwrap_err();
        assert!(error.contains("runs, but did not answer at") && !error.contains("No such file"), "{error}");
        dropping.join().unwrap();
    }

    #[test]
    fn what_was_applied_is_reported_even_if_something_else_is_read_back() {
        let changes = "up.rate: 1Mbit -> 2Mbit\nup.delay: 0s -> 1ms\n".to_owned();
        assert_eq!(outcome(changes.clone(), Ok(())), Ok(changes.clone()));
        let said = outcome(changes.clone(), Err("up.rate is 1Mbit, not 2Mbit\n".to_owned())).unwrap_err();
        let lines: Vec<_> = said.lines().collect();
        assert_eq!((lines.len(), lines[1], lines[2]), (5, "up.rate is 1Mbit, not 2Mbit", "applied:"));
        assert!(said.ends_with(&changes), "{said}");
    }
}
