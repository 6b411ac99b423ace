//! The applications of a scenario, on the kernel's sockets: one thread plays all of them.
//!
//! [`Driver::open`] creates every socket inside the namespace of its host, to which the socket belongs
//! whichever thread uses it; [`Driver::start`] starts the thread. The thread sleeps until a write, a start or
//! a stop is due, or until a socket is ready (epoll(7), level-triggered), and never blocks on a socket.
//!
//! - A TCP source binds its port, connects at its start, and writes from one buffer of zeros: without end, a
//!   file, or the writes of its generator at their times. Bytes that the socket does not take at once are
//!   only counted, so that a backlog takes no memory.
//! - A TCP sink discards arriving bytes without copying them (MSG_TRUNC of tcp(7)).
//! - UDP sends at the times of the generator; a write larger than a datagram is split. A late driver sends
//!   the writes that fell due meanwhile, and no more. Datagrams that the system refuses are counted, not
//!   repeated.
//! - Goodput is what sinks read: their sockets hold data only until the thread's next round.
//! - Retransmissions and timeouts are counted by the kernel. It does not count fast retransmits.
//!
//! Connections that are refused or lost are counted and named; the others continue.
//!
//! Memory: per connection some 250 bytes and two descriptors, three if its sink has its own address, besides
//! the kernel's sockets. Cost: one system call for a read or write of up to 1 MiB, for a datagram at each
//! end, and per connection for samples and totals.

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
/// Maximum of commands that wait for the driver.
const MAX_COMMANDS: usize = 4_096;

/// One end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Index of its host.
    pub host: usize,
    /// Address and port.
    pub address: SocketAddr,
}

/// A connection to play.
#[derive(Debug)]
pub struct Connection {
    /// Index of its flow in the scenario.
    pub flow: u32,
    /// The source. Two connections differ in this address or in that of the sink.
    pub source: End,
    /// The sink. TCP connections to one address have the same parameters.
    pub sink: End,
    pub start: Time,
    /// Time at which the source stops; TCP still sends data written before.
    pub stop: Time,
    /// The transport.
    pub transport: Transport,
    /// The workload of the source.
    pub workload: Workload,
}

/// The measurements of a run, and their times.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Flows of the scenario.
    pub flows: usize,
    /// Interval of samples.
    pub sample: Span,
    /// Time at which counting begins.
    pub measure_from: Time,
    /// Time at which the run ends.
    pub stop: Time,
}

/// A command to a running driver.
#[derive(Clone, Copy, Debug)]
pub enum Command {
    /// Sets the rate of each source of a flow; zero silences it.
    SetRate(u32, Rate),
    /// Notifies a flow of a queue's overload.
    Overload(u32, Overload),
    /// Ends the run.
    Stop,
}

/// Totals of a flow over the measured part.
#[derive(Clone, Debug, Default)]
pub struct FlowTotals {
    /// Payload that its sinks read.
    pub goodput: Bytes,
    /// Segments retransmitted.
    pub retransmits: u64,
    /// Retransmission timeouts; zero on kernels before 6.7.
    pub timeouts: u64,
    /// Samples at the end of each sample interval of the run, for a flow of one TCP connection.
    pub tcp: Vec<TcpSample>,
    /// Files that arrived, in order of arrival.
    pub completions: Vec<Completion>,
    /// Files that arrived before the measured part.
    pub earlier: Vec<Completion>,
}

/// A connection that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of its flow.
    pub flow: u32,
    /// Time of the failure.
    pub at: Time,
    /// The call that failed.
    pub what: &'static str,
    /// The error of the system call.
    pub error: Errno,
}

/// Results of all flows.
#[derive(Debug)]
pub struct DriverOutcome {
    /// Totals, in the scenario's order.
    pub flows: Vec<FlowTotals>,
    /// Failures, at most one for each connection.
    pub failures: Vec<Failure>,
    /// Datagrams that the system refused.
    pub unsent: u64,
    /// Lateness at which writes were handed to the system.
    pub lateness: Histogram,
    /// CPU use of the thread in the measured part; none if the kernel does not count that.
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
    /// A connection that a valid scenario cannot have.
    #[error("flow {flow}: {what}")]
    Connection {
        /// Index of the flow.
        flow: u32,
        /// Problem of the connection.
        what: &'static str,
    },
    /// The limit of descriptors is too low.
    #[error(
        "the scenario needs {needed} file descriptors and may have {limit}: raise the hard limit, for example with \
         `ulimit -Hn {needed}` as root or LimitNOFILE= of a service"
    )]
    Descriptors {
        /// Descriptors needed.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// Flows of a host require different TCP settings.
    #[error("host {host}: {conflict}")]
    Conflict {
        /// Index of the host.
        host: usize,
        /// The setting in which they differ.
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
        /// The call that failed.
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
    /// A bug in the driver.
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
    /// Sets up the namespaces of `hosts` for the TCP parameters of their flows, and opens the sockets.
    ///
    /// # Errors
    /// See [`DriverError`].
    pub fn open(hosts: &[Host], connections: Vec<Connection>, plan: Plan) -> Result<Self, DriverError> {
        sockets::open(hosts, connections, plan)
    }

    /// Starts the thread, with the time of `clock` and a lower priority than the calling thread, which moves
    /// the packets.
    ///
    /// # Errors
    /// [`DriverError::Start`].
    pub fn start(self, clock: Clock) -> Result<Running, DriverError> {
        let (commands, inbox) = sync_channel(MAX_COMMANDS);
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        let bell = EventFd::from_flags(flags).map_err(|error| DriverError::Start(error.into()))?;
        let (bell, is_over) = (Arc::new(bell), Arc::new(AtomicBool::new(false)));
        let inbox = Inbox { commands: inbox, bell: Arc::clone(&bell), is_over: Arc::clone(&is_over) };
        // Packets come first: a source that writes late sends less than its scenario says, but a link that
        // waits for a core is late for all flows.
        let play = move || run::run(self, clock, &inbox);
        let thread = spawn_behind("applications", play).map_err(DriverError::Start)?;
        Ok(Running { commands, bell, is_over, thread: Some(thread) })
    }
}

/// The queue of commands.
#[derive(Debug)]
struct Inbox {
    commands: Receiver<Command>,
    /// Signalled after each command, and after a change of `is_over`.
    bell: Arc<EventFd>,
    /// Whether the run is to end.
    is_over: Arc<AtomicBool>,
}

/// A running driver. Dropping it ends the run.
#[derive(Debug)]
pub struct Running {
    commands: SyncSender<Command>,
    bell: Arc<EventFd>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<DriverOutcome, DriverError>>>,
}

impl Running {
    /// Sends a command without waiting. Returns whether it was accepted: a driver that has ended accepts
    /// none, and a late one queues at most 4096 commands. [`Command::Stop`] is always accepted and overtakes
    /// waiting commands.
    #[must_use = "a command that was not accepted is lost"]
    pub fn send(&self, command: Command) -> bool {
        let taken = match command {
            Command::Stop => {
                self.is_over.store(true, Ordering::Relaxed);
                true
            }
            command => self.commands.try_send(command).is_ok(),
        };
        // A full counter has woken the driver already.
        let _ = self.bell.write(1);
        taken
    }

    /// Waits for the end: at the plan's stop, or after [`Command::Stop`].
    ///
    /// # Errors
    /// If the run failed.
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
            // The results are not needed any more.
            let _ = thread.join();
        }
    }
}

/// Makes a socket reset its connection when it is closed, without waiting for unsent data.
fn abandon(socket: &OwnedFd) {
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    // After a failure the socket is closed in the ordinary way.
    let _ = nix::sys::socket::setsockopt(&socket.as_fd(), nix::sys::socket::sockopt::Linger, &now);
}
