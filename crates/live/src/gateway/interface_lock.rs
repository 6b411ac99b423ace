//! A lock for each interface of a gateway: two gateways on one interface would send each frame twice.
//!
//! The locks of root's gateways are files in a folder that only root can write to, so that no other user can
//! keep a gateway from starting. The kernel releases a lock when the process ends for any reason (flock(2)).

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use apportion_core::units::Span;
use apportion_linux::clock::pause;
use apportion_linux::netlink::{Netlink, NetlinkError};
use apportion_scenario::gateway::GatewayConfig;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::geteuid;

use super::interfaces::Interface;

/// The folder of root's locks, on a file system that is empty after a boot (file-hierarchy(7)).
const FOLDER_OF_ROOT: &str = "/run/apportion";
/// Number of tries for a lock that another process holds: a killed process may take a moment to end.
const TRIES: u32 = 20;
const PAUSE: Span = Span::from_millis(100);

/// The lock of one interface, until it is dropped. The file is removed too, because an interface that is
/// created again a thousand times has a thousand indices.
#[derive(Debug)]
pub struct InterfaceLock {
    path: PathBuf,
    /// Released after the file has been removed.
    _lock: Flock<File>,
}

/// Why an interface cannot be claimed.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another gateway runs on the interface.
    #[error("interface `{0}`: a gateway is already running on it; stop that one, or name another interface")]
    Taken(String),
    /// The lock file cannot be created or locked.
    #[error("interface `{name}`: cannot check whether another gateway uses it: {error}")]
    File {
        name: String,
        #[source]
        error: io::Error,
    },
    /// Interfaces cannot be looked up.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

impl Drop for InterfaceLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder of locks: for root one that only root can write to; for others, or if that cannot be created,
/// `folder`.
#[must_use]
pub fn folder(folder: &Path) -> PathBuf {
    let of_root = Path::new(FOLDER_OF_ROOT);
    let is_safe = || {
        let _ = fs::create_dir(of_root);
        let found = fs::symlink_metadata(of_root).ok()?;
        Some(found.is_dir() && found.uid() == 0 && found.mode() & 0o022 == 0)
    };
    if geteuid().is_root() && is_safe() == Some(true) { of_root.to_owned() } else { folder.to_owned() }
}

impl InterfaceLock {
    /// Locks an interface by a file in `folder`.
    ///
    /// # Errors
    /// If another gateway runs on the interface, or the file cannot be locked.
    pub fn take(folder: &Path, interface: &Interface) -> Result<Self, LockError> {
        Self::take_within(TRIES, folder, interface)
    }

    /// Like [`take`](Self::take), without waiting for a gateway that ends.
    ///
    /// # Errors
    /// Like [`take`](Self::take).
    pub fn try_take(folder: &Path, interface: &Interface) -> Result<Self, LockError> {
        Self::take_within(1, folder, interface)
    }

    fn take_within(tries: u32, folder: &Path, interface: &Interface) -> Result<Self, LockError> {
        let Interface { name, index, .. } = interface;
        let cannot = |error| LockError::File { name: name.clone(), error };
        let path = path(folder, *index).map_err(cannot)?;
        for tried in 1.. {
            let file = open(&path).map_err(cannot)?;
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                // The previous holder may have removed the file between the two calls, and another gateway
                // created it again.
                Ok(lock) if is_at(&lock, &path) => return Ok(Self { path, _lock: lock }),
                Ok(_) | Err((_, Errno::EWOULDBLOCK)) if tried < tries => (),
                Ok(_) | Err((_, Errno::EWOULDBLOCK)) => break,
                Err((_, error)) => return Err(cannot(error.into())),
            }
            pause(PAUSE);
        }
        Err(LockError::Taken(name.clone()))
    }
}

/// Claims both interfaces of a gateway.
///
/// # Errors
/// Each interface that is taken, one problem each.
pub fn take_both(folder: &Path, interfaces: &[Interface; 2]) -> Result<[InterfaceLock; 2], Vec<String>> {
    match interfaces.each_ref().map(|interface| InterfaceLock::take(folder, interface)) {
        [Ok(inside), Ok(outside)] => Ok([inside, outside]),
        results => Err(results.into_iter().filter_map(Result::err).map(|error| error.to_string()).collect()),
    }
}

/// Claims those interfaces of `config` that exist, without waiting for a gateway that ends.
///
/// # Errors
/// If another gateway runs on one of them.
pub fn take_those_there(folder: &Path, config: &GatewayConfig) -> Result<Vec<InterfaceLock>, LockError> {
    let mut netlink = Netlink::open()?;
    let found = [&config.inside, &config.outside].map(|name| Interface::look(&mut netlink, name).ok());
    found.iter().flatten().map(|interface| InterfaceLock::try_take(folder, interface)).collect()
}

/// The lock file of the interface with this index in the network namespace of the calling thread.
fn path(folder: &Path, index: u32) -> io::Result<PathBuf> {
    let namespace = fs::metadata("/proc/thread-self/ns/net")?.ino();
    fs::create_dir_all(folder)?;
    Ok(folder.join(format!("interface-{namespace}-{index}.lock")))
}

fn open(path: &Path) -> io::Result<File> {
    File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// Whether this is the file that the path leads to.
fn is_at(file: &File, path: &Path) -> bool {
    let same = |a: fs::Metadata, b: fs::Metadata| (a.dev(), a.ino()) == (b.dev(), b.ino());
    file.metadata().and_then(|own| Ok(same(own, fs::symlink_metadata(path)?))).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use apportion_core::units::Bytes;
    use apportion_linux::netlink::Netlink;

    use super::*;

    #[test]
    fn an_interface_is_of_one_gateway() {
        let folder = tempfile::tempdir().unwrap();
        let offloads = Netlink::open().unwrap().offloads("lo").unwrap();
        let interface = |index| Interface {
            name: format!("x{index}"),
            index,
            mtu: Bytes::ZERO,
            is_running: false,
            offloads,
        };
        let take = |index| InterfaceLock::try_take(folder.path(), &interface(index));
        let (a, b) = (take(7).unwrap(), take(8).unwrap());
        let error = take(7).unwrap_err().to_string();
        assert!(error.contains("`x7`: a gateway is already running"), "{error}");
        drop(a);
        drop(take(7).unwrap());
        drop(b);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
