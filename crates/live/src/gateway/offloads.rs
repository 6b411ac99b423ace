//! Offloads of the interfaces: off while a gateway runs, and on again after it, also after one that was killed.
//!
//! What is about to be turned off is first written to a state file next to the control socket. The next gateway of that
//! title takes what it finds there for the settings before, and `apportion gateway restore` puts them back.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apportion_linux::netlink::{Netlink, NetlinkError, Offloads};
use serde::{Deserialize, Serialize};

use super::control::socket_name;
use super::interfaces::{Interface, merging};

/// Longest state file that is read. Chosen: two interfaces take 500 bytes.
const MAX_FILE: u64 = 64 << 10;

/// The settings of an interface before a gateway changed them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    name: String,
    /// A device that was made anew under the same name has another one, and settings of its own.
    index: u32,
    offloads: Offloads,
    gso_max_segs: u32,
}

/// Interfaces whose offloads are off until they are restored.
#[derive(Debug)]
pub(crate) struct Prepared {
    path: PathBuf,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    before: Vec<Before>,
    /// They are restored, and nothing is to be turned off any more.
    is_over: bool,
}

/// Restores offloads when it is dropped, however the gateway ends.
#[derive(Debug)]
pub(crate) struct RestoreAtEnd(pub Arc<Prepared>);

impl Drop for RestoreAtEnd {
    fn drop(&mut self) {
        self.0.restore();
    }
}

/// Why offloads are not turned off.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The state file cannot be written, without which nothing is changed.
    #[error("cannot write {}, which keeps the offloads of interface {interface} to be restored: {error}", .path.display())]
    State {
        /// Where.
        path: PathBuf,
        /// Its name.
        interface: String,
        /// The error of the system call.
        error: io::Error,
    },
    /// The interface does not let go of an offload.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// The state file of the gateway with this control socket.
#[must_use]
pub(crate) fn state_file(socket: &Path) -> PathBuf {
    socket.with_extension("offloads.json")
}

impl Prepared {
    /// Nothing is changed yet, but for what a gateway that was killed left in the state file at `path`.
    pub fn new(path: PathBuf) -> Self {
        let left = read(&path).unwrap_or_else(|error| {
            tracing::warn!(path = %path.display(), error, "the offloads that a gateway left off are not known");
            Vec::new()
        });
        if !left.is_empty() {
            let interfaces: Vec<_> = left.iter().map(|before| before.name.as_str()).collect();
            tracing::warn!(
                interfaces = interfaces.join(", "),
                "a gateway was killed here; the offloads before it are restored at the end"
            );
        }
        Self { path, changes: Mutex::new(Changes { before: left, is_over: false }) }
    }

    /// Turns off offloads that merge packets. The names of those that the driver does not let go of.
    ///
    /// # Errors
    /// If one of these is LRO, which does not say what it merged; for want of CAP_NET_ADMIN; or if the state file cannot be
    /// written.
    pub fn turn_off(
        &self,
        netlink: &mut Netlink,
        interface: &Interface,
    ) -> Result<Vec<&'static str>, PrepareError> {
        // Held to the end, so that nothing is turned off while or after offloads are restored.
        let mut changes = self.changes();
        if changes.is_over {
            return Ok(Vec::new());
        }
        let changed = &mut changes.before;
        let Interface { name, index, offloads, segments, .. } = interface.clone();
        if !changed.iter().any(|before| (&before.name, before.index) == (&name, index)) {
            // One of the same name is gone.
            changed.retain(|before| before.name != name);
            changed.push(Before { name: name.clone(), index, offloads, gso_max_segs: segments });
            write(&self.path, changed).map_err(|error| {
                changed.pop();
                PrepareError::State { path: self.path.clone(), interface: name.clone(), error }
            })?;
        }
        let stay = merging(&netlink.turn_off_segmentation(&name)?);
        if !stay.is_empty() {
            tracing::warn!(
                interface = name,
                stay = stay.join(", "),
                "offloads cannot be turned off; super-packets are cut into packets, which costs CPU time"
            );
        }
        let off: Vec<_> = interface.to_turn_off().into_iter().filter(|it| !stay.contains(it)).collect();
        if !off.is_empty() {
            tracing::info!(
                interface = name,
                off = off.join(", "),
                "offloads are turned off while the gateway runs"
            );
        }
        Ok(stay)
    }

    fn changes(&self) -> MutexGuard<'_, Changes> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Turns offloads on again that were on before; nothing is turned off after that.
    fn restore(&self) {
        let mut changes = self.changes();
        changes.is_over = true;
        for (interface, result) in put_back(&self.path, &mut changes.before) {
            match result {
                Ok(()) => tracing::info!(interface, "offloads are restored"),
                Err(error) => {
                    tracing::warn!(interface, error, "offloads cannot be restored and stay off");
                }
            }
        }
    }
}

/// Restores what the gateway of this title left off when it was killed, by its state file in one of `folders`. The
/// interfaces, with what went wrong; none if there is nothing to restore.
///
/// # Errors
/// If that gateway runs, or the state file cannot be read.
pub fn restore(folders: &[PathBuf], title: &str) -> Result<Vec<Restored>, String> {
    let mut restored = Vec::new();
    for folder in folders {
        let socket = folder.join(socket_name(title));
        if UnixStream::connect(&socket).is_ok() {
            return Err(format!(
                "a gateway with the title `{title}` is running and answers at {}; it restores offloads when it ends",
                socket.display()
            ));
        }
        let path = state_file(&socket);
        let mut changed = read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        restored.extend(put_back(&path, &mut changed));
    }
    Ok(restored)
}

/// An interface, and why its offloads could not be restored.
pub type Restored = (String, Result<(), String>);

/// Restores all of `changed`; what cannot be restored stays in the state file. A device that is gone took its settings
/// with it.
fn put_back(path: &Path, changed: &mut Vec<Before>) -> Vec<Restored> {
    if changed.is_empty() {
        return Vec::new();
    }
    let mut results = Vec::new();
    changed.retain(|before| {
        let result = put_back_one(before).map_err(|error| error.to_string());
        let stays = result.is_err();
        results.push((before.name.clone(), result));
        stays
    });
    let written = if changed.is_empty() { remove(path) } else { write(path, changed) };
    if let Err(error) = written {
        tracing::warn!(path = %path.display(), %error, "the state file cannot be changed");
    }
    results
}

fn put_back_one(before: &Before) -> Result<(), NetlinkError> {
    let mut netlink = Netlink::open()?;
    match netlink.device(&before.name) {
        Ok(device) if device.index == before.index => {
            netlink.restore(&before.name, &before.offloads, before.gso_max_segs)
        }
        Ok(_) => Ok(()),
        Err(error) if error.is_no_device() => Ok(()),
        Err(error) => Err(error),
    }
}

fn read(path: &Path) -> Result<Vec<Before>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error.to_string()),
    };
    serde_json::from_reader(io::Read::take(file, MAX_FILE)).map_err(|error| error.to_string())
}

/// Replaces the file as a whole, on the disk before this returns.
fn write(path: &Path, changed: &[Before]) -> io::Result<()> {
    let beside = path.with_extension("json.new");
    let mut file = File::create(&beside)?;
    file.write_all(&serde_json::to_vec_pretty(changed)?)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_file_holds_what_was_written_and_one_that_is_damaged_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = state_file(&folder.path().join("apportion-x.sock"));
        assert_eq!(path, folder.path().join("apportion-x.offloads.json"));
        assert_eq!(read(&path).unwrap(), []);
        let offloads = Netlink::open().unwrap().offloads("lo").unwrap();
        let before = [Before { name: "a".to_owned(), index: 7, offloads, gso_max_segs: 65_535 }];
        write(&path, &before).unwrap();
        assert_eq!(read(&path).unwrap(), before);
        fs::write(&path, "[{").unwrap();
        assert!(read(&path).is_err());
        remove(&path).unwrap();
        remove(&path).unwrap();
    }

    #[test]
    fn an_interface_that_has_gone_leaves_nothing_to_restore() {
        let folder = tempfile::tempdir().unwrap();
        let path = state_file(&folder.path().join(socket_name("x")));
        let offloads = Netlink::open().unwrap().offloads("lo").unwrap();
        write(&path, &[Before { name: "no-such-dev".to_owned(), index: 7, offloads, gso_max_segs: 1 }])
            .unwrap();
        let folders = [folder.path().to_owned()];
        assert_eq!(restore(&folders, "x").unwrap(), [("no-such-dev".to_owned(), Ok(()))]);
        assert!(!path.exists());
        assert_eq!(restore(&folders, "x").unwrap(), []);
    }
}
