//! The applications of a scenario, on the kernel's sockets: one thread that plays all of them.
//!
//! [`Driver::open`] makes every socket inside the namespace of its host, where it belongs whichever thread uses
//! it; [`Driver::start`] starts the thread. It sleeps until a write, a start or a stop is due, or until a socket
//! has something to say (epoll(7), level-triggered), and never blocks on a socket.
//!
//! - A TCP source binds its port, connects at its start, and writes from one buffer of zeros: without end, a
//!   file, or what its generator says at the time at which it says so. What the socket does not take at once is
//!   a count of bytes, so that a backlog takes no memory.
//! - A TCP sink throws away what arrives without copying it (MSG_TRUNC of tcp(7)).
//! - UDP sends at the times of the generator; a write larger than a datagram is split. A driver that is late
//!   sends what was due in the meantime and no more. What the system does not take is counted, not repeated.
//! - Goodput is what sinks read: a socket holds more only for the time that the thread takes to come round.
//! - Retransmissions and timeouts are the kernel's counts. It does not count fast retransmits.
//!
//! Connections that are refused or lost are counted and named; nothing else comes to harm.
//!
//! Cost: per connection some 250 bytes and two descriptors, three where it has an address of its own to come in
//! at, besides the kernel's sockets; a read or write of up to 1 MiB takes one system call, a datagram one at each
//! end; samples and totals one for each connection.

mod connection;
mod run;
mod sockets;

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use apportion_core::queue::Overload;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_linux::clock::Clock;
use apportion_linux::host::Host;
use apportion_linux::machine::ThreadShares;
use apportion_linux::namespace::{NamespaceError, SysctlError};
use apportion_linux::precision::spawn_behind;
use apportion_runtime::connections::Workload;
use apportion_runtime::histogram::Histogram;
use apportion_runtime::outcome::{Completion, TcpSample};
use apportion_scenario::model::Transport;
use nix::errno::Errno;
use nix::sys::eventfd::{EfdFlags, EventFd};

use super::tcp::{Conflict, OptionError};
use connection::Driven;

/// Maximum of connections of a scenario. Chosen: two or three descriptors each are far below what systemd grants.
pub(crate) const MAX_CONNECTIONS: usize = 10_000;
/// Commands that may wait for the driver.
const MAX_COMMANDS: usize = 4_096;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Index of its host.
    pub host: usize,
    /// Its address and port.
    pub address: SocketAddr,
}

/// A connection to play.
#[derive(Debug)]
pub struct Connection {
    /// Index of its flow in the scenario.
    pub flow: u32,
    /// Where data come from. No two connections have this address and that of the sink in common.
    pub source: End,
    /// Where they go. Connections of TCP to one address have the same parameters.
    pub sink: End,
    pub start: Time,
    /// When its source falls silent; TCP sends what was written before.
    pub stop: Time,
    /// What carries it.
    pub transport: Transport,
    /// What it sends.
    pub workload: Workload,
}

/// What to measure, and when.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Flows of the scenario.
    pub flows: usize,
    /// Interval of samples.
    pub sample: Span,
    /// Counts begin here.
    pub measure_from: Time,
    /// The end.
    pub stop: Time,
}

/// What happens while it runs.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// The source of each connection of a flow has this rate now; zero silences it.
    SetRate(u32, Rate),
    /// A queue has notified a flow of this overload.
    Overload(u32, Overload),
    /// End now.
    Stop,
}

/// What a flow did in the measured part.
#[derive(Clone, Debug, Default)]
pub struct FlowTotals {
    /// Payload that its sinks read.
    pub goodput: Bytes,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts; zero on kernels before 6.7.
    pub timeouts: u64,
    /// Of a flow of one TCP connection: at the end of each sample interval of the run.
    pub tcp: Vec<TcpSample>,
    /// Files that arrived, in the order in which they did.
    pub completions: Vec<Completion>,
    /// Those before the measured part.
    pub earlier: Vec<Completion>,
}

/// A connection that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of its flow.
    pub flow: u32,
    /// When.
    pub at: Time,
    /// What was tried.
    pub what: &'static str,
    /// The error of the system call.
    pub error: Errno,
}

/// What all flows did.
#[derive(Debug)]
pub struct DriverOutcome {
    /// In the scenario's order.
    pub flows: Vec<FlowTotals>,
    /// At most one for each connection.
    pub failures: Vec<Failure>,
    /// Datagrams that the system did not take from us.
    pub unsent: u64,
    /// How much later than due writes were handed to the system.
    pub lateness: Histogram,
    /// What its thread did in the measured part; none if the kernel does not count that.
    pub thread: Option<ThreadShares>,
    /// Whether the kernel reports timeouts.
    pub knows_timeouts: bool,
    pub ended: Time,
}

/// Why applications cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum DriverError {
    /// There are more connections than the driver supports.
    #[error("the scenario has {0} connections; the lab runs at most {MAX_CONNECTIONS}")]
    TooMany(usize),
    /// A connection that the scenario would not have.
    #[error("flow {flow}: {what}")]
    Connection {
        /// Index of the flow.
        flow: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The limit of descriptors is too low.
    #[error(
        "the scenario needs {needed} file descriptors and may have {limit}: raise the hard limit, for example with \
         `ulimit -Hn {needed}` as root or LimitNOFILE= of a service"
    )]
    Descriptors {
        /// How many are needed.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// Flows of a host ask for different TCPs.
    #[error("host {host}: {conflict}")]
    Conflict {
        /// Its index.
        host: usize,
        /// In what they differ.
        conflict: Conflict,
    },
    /// A namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A setting cannot be written.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// A socket option that a flow needs cannot be set.
    #[error("flow {flow}: {error}")]
    Option {
        /// Index of the flow.
        flow: u32,
        error: OptionError,
    },
    /// A socket cannot be opened.
    #[error("flow {flow}: cannot {what} {address}: {error}")]
    Socket {
        /// Index of the flow.
        flow: u32,
        /// What was tried.
        what: &'static str,
        address: SocketAddr,
        /// The error of the system call.
        error: Errno,
    },
    /// The thread cannot be started, or epoll is not available.
    #[error("cannot start the driver: {0}")]
    Start(io::Error),
    /// Waiting failed.
    #[error("the driver cannot wait for sockets: {0}")]
    Wait(Errno),
    /// A mistake in the driver.
    #[error("the driver panicked")]
    Panicked,
}

/// All sockets of a scenario, before its time begins.
#[derive(Debug)]
pub struct Driver {
    plan: Plan,
    connections: Vec<Driven>,
    listeners: Vec<sockets::Listener>,
}

impl Driver {
    /// Sets up the namespaces of `hosts` for what their flows ask of TCP, and opens the sockets.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn open(hosts: &[Host], connections: Vec<Connection>, plan: Plan) -> Result<Self, DriverError> {
        sockets::open(hosts, connections, plan)
    }

    /// Starts the thread. Its times are those of `clock`, and it runs behind the calling thread, which moves the packets.
    ///
    /// # Errors
    /// [`DriverError::Start`].
    pub fn start(self, clock: Clock) -> Result<Running, DriverError> {
        let (commands, inbox) = sync_channel(MAX_COMMANDS);
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let bell = EventFd::from_flags(flags).map_err(|error| DriverError::Start(error.into()))?;
        let (bell, is_over) = (Arc::new(bell), Arc::new(AtomicBool::new(false)));
        let inbox = Inbox { commands: inbox, bell: Arc::clone(&bell), is_over: Arc::clone(&is_over) };
        // A sender that writes late sends less than its scenario says. Packets come first: a link that waits for a core is late
        // for all flows.
        let play = move || run::run(self, clock, &inbox);
        let thread = spawn_behind("applications", play).map_err(DriverError::Start)?;
        Ok(Running { commands, bell, is_over, thread: Some(thread) })
    }
}

/// Where commands come in.
#[derive(Debug)]
struct Inbox {
    commands: Receiver<Command>,
    /// Rung after each of them, and after a change of `is_over`.
    bell: Arc<EventFd>,
    /// Whether it is to stop.
    is_over: Arc<AtomicBool>,
}

/// A driver at work. It ends when it is dropped.
#[derive(Debug)]
pub struct Running {
    commands: SyncSender<Command>,
    bell: Arc<EventFd>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<DriverOutcome, DriverError>>>,
}

impl Running {
    /// Sends a command without waiting. Whether it was accepted: a driver that has ended accepts nothing, and one
    /// that is late queues at most 4096 commands. [`Command::Stop`] is always accepted
    /// and overtakes those that wait.
    #[must_use = "a command that was not accepted is lost"]
    pub fn send(&self, command: Command) -> bool {
        let taken = match command {
            Command::Stop => {
                self.is_over.store(true, Ordering::Relaxed);
                true
            }
            command => self.commands.try_send(command).is_ok(),
        };
        // A counter that is full has rung already.
        let _ = self.bell.write(1);
        taken
    }

    /// Waits for its end: at the plan's stop, or after [`Command::Stop`].
    ///
    /// # Errors
    /// If it could not go on.
    pub fn finish(mut self) -> Result<DriverOutcome, DriverError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(outcome)) => outcome,
            Some(Err(_)) | None => Err(DriverError::Panicked),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _taken = self.send(Command::Stop);
            // Its outcome is not needed any more.
            let _ = thread.join();
        }
    }
}

/// Makes a socket reset its connection when it is closed, without waiting for data to be sent.
fn abandon(socket: &OwnedFd) {
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    // A failure leaves an ordinary close.
    let _ = nix::sys::socket::setsockopt(&socket.as_fd(), nix::sys::socket::sockopt::Linger, &now);
}
