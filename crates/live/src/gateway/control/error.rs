//! Errors of the control of a gateway.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use nix::errno::Errno;

/// Why the control thread cannot start, or does not answer.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The folder for sockets cannot be created.
    #[error("cannot create the folder {} for the control socket: {error}; set XDG_RUNTIME_DIR to a folder of yours", .path.display())]
    Folder {
        /// The path of the folder.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// Another gateway answers at the socket.
    #[error("a gateway with this title is already running and answers at {}; stop it, or choose another `title`", .0.display())]
    Runs(PathBuf),
    /// The socket cannot be opened.
    #[error("cannot open the control socket {}: {error}", .path.display())]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// The port for metrics cannot be opened.
    #[error("metrics = \"{address}\": cannot listen there: {error}; choose another port")]
    Metrics {
        /// The address for metrics.
        address: SocketAddr,
        /// The error of the system call.
        error: io::Error,
    },
    /// The file with the token that changes need is missing or wrong.
    #[error("{0}")]
    Token(String),
    /// The socket for overload notifications cannot be opened.
    #[error("notifications = \"{}\": cannot listen there: {error}; name a new file in a folder that exists", .path.display())]
    Notifications {
        /// The path of the socket.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// No gateway answers under this title.
    #[error("no gateway with the title `{title}` answers; is it running, and is it yours?{tried}")]
    Silent {
        /// The title.
        title: String,
        /// The sockets that were tried, one a line, with the error.
        tried: String,
    },
    /// A gateway runs under this title, but does not answer.
    #[error("a gateway with the title `{title}` runs, but did not answer at {}: {why}", .path.display())]
    NoAnswer {
        /// The title.
        title: String,
        /// The path of its socket.
        path: PathBuf,
        /// Event in place of an answer.
        why: String,
    },
    /// Signals or the wake-up descriptor cannot be opened.
    #[error("cannot receive signals: {0}")]
    Signals(Errno),
}

/// Opens the port for metrics.
///
/// # Errors
/// If the address cannot be bound.
pub fn listen(address: SocketAddr) -> Result<TcpListener, ControlError> {
    TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| ControlError::Metrics { address, error })
}
