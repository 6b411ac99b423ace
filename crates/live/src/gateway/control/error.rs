//! Why a gateway cannot be controlled.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use nix::errno::Errno;

/// Why the control thread cannot start, or cannot be asked.
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
    /// The file with the token that changes need is missing or wrong.
    #[error("{0}")]
    Token(String),
    /// The socket for overload notifications cannot be opened.
    #[error("notifications = \"{}\": cannot listen there: {error}; name a new file in a folder that exists", .path.display())]
    Notifications {
        /// Where.
        path: PathBuf,
        /// The error of the system call.
        error: io::Error,
    },
    /// Nothing answers under this title.
    #[error("no gateway with the title `{title}` answers; is it running, and is it yours?{tried}")]
    Silent {
        /// Of the gateway that was asked.
        title: String,
        /// Each on a line of its own, with the error.
        tried: String,
    },
    /// A gateway runs under this title, and does not answer.
    #[error("a gateway with the title `{title}` runs, but did not answer at {}: {why}", .path.display())]
    NoAnswer {
        /// Of the gateway that was asked.
        title: String,
        /// Where it listens.
        path: PathBuf,
        /// What it did instead.
        why: String,
    },
    /// Signals or the wake-up descriptor cannot be opened.
    #[error("cannot receive signals: {0}")]
    Signals(Errno),
}

/// Opens the port of metrics.
///
/// # Errors
/// If it cannot be had.
pub fn listen(address: SocketAddr) -> Result<TcpListener, ControlError> {
    TcpListener::bind(address)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener))
        .map_err(|error| ControlError::Metrics { address, error })
}
