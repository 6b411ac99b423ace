//! The socket for commands: its name, the gateway's end and the client's.

use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::ControlError;
use crate::http;
use crate::unix_socket;

/// Time that a client waits for its answer. Chosen: more than the time after which the gateway reports that a
/// reload was not applied.
const TO_ANSWER: Duration = Duration::from_secs(20);
/// Maximum of characters of a title in the name of its socket: sun_path has room for 108 bytes (unix(7)).
const MAX_TITLE: usize = 40;

/// The name of the control socket of a gateway with this title. A title with other characters, or a long one, is
/// distinguished by its hash.
#[must_use]
pub fn socket_name(title: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let written: String = title.chars().map(safe).take(MAX_TITLE).collect();
    if written == title {
        return format!("apportion-{title}.sock");
    }
    // FNV-1a, because a gateway and its commands may come from different builds.
    let hash = title
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("apportion-{written}-{hash:016x}.sock")
}

/// Sends a request to the gateway of this title, whose socket is in one of `folders`.
///
/// # Errors
/// No socket answers: the sockets that were tried, with their errors.
pub fn request(
    folders: &[PathBuf],
    title: &str,
    method: &str,
    path: &str,
) -> Result<(u16, String), ControlError> {
    let (title, mut tried) = (title.to_owned(), String::new());
    for folder in folders {
        let socket = folder.join(socket_name(&title));
        let stream = match UnixStream::connect(&socket) {
            Ok(stream) => stream,
            Err(error) => {
                tried += &format!("\n  {}: {error}", socket.display());
                continue;
            }
        };
        let asked = stream
            .set_read_timeout(Some(TO_ANSWER))
            .and_then(|()| stream.set_write_timeout(Some(TO_ANSWER)))
            .and_then(|()| http::request(stream, method, path));
        return asked.map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    format!("not within {} s; it may have executed the command", TO_ANSWER.as_secs())
                }
                _ => error.to_string(),
            };
            ControlError::NoAnswer { title, path: socket, why }
        });
    }
    Err(ControlError::Silent { title, tried })
}

/// Opens the socket for commands to the gateway of this title in `folder`, for its owner only. It is called
/// [`socket_name`] and stays until it is removed.
///
/// # Errors
/// If the socket cannot be opened, for example because another gateway answers there.
pub fn bind(folder: &Path, title: &str) -> Result<UnixListener, ControlError> {
    fs::create_dir_all(folder).map_err(|error| ControlError::Folder { path: folder.to_owned(), error })?;
    let path = folder.join(socket_name(title));
    unix_socket::bind(&path, 0o177).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => ControlError::Runs(path),
        _ => ControlError::Socket { path, error },
    })
}
