//! Unix sockets with a path.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, umask};

/// The path of a socket, which is removed when this value is dropped.
#[derive(Debug)]
pub struct SocketFile(pub PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Opens a non-blocking socket, without the permissions `without`. A socket without a listener is replaced.
///
/// # Errors
/// `AlreadyExists` if the socket has a listener; else the system's error.
pub(crate) fn bind(path: &Path, without: u32) -> io::Result<UnixListener> {
    if UnixStream::connect(path).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "another program listens there"));
    }
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        let _ = fs::remove_file(path);
    }
    let before = umask(Mode::from_bits_truncate(without));
    let bound = UnixListener::bind(path);
    umask(before);
    let listener = bound?;
    if let Err(error) = listener.set_nonblocking(true) {
        let _ = fs::remove_file(path);
        return Err(error);
    }
    Ok(listener)
}
