//! Offloads of the interfaces: off while a gateway runs, and on again after it, even if it was killed.
//!
//! The settings are written to a state file next to the control socket before they are changed. The next
//! gateway of that title takes the settings in the file for the original ones, and
//! `apportion gateway restore` puts them back.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use apportion_linux::devices::Devices;
use apportion_linux::files::{Disk, Files};
use apportion_linux::netlink::{Netlink, NetlinkError, Offloads};
use serde::{Deserialize, Serialize};

use super::control::socket_name;
use super::interfaces::{Interface, merging};

/// Maximum bytes of a state file. Chosen: two interfaces take 500 bytes.
const MAX_FILE: u64 = 64 << 10;

/// The settings of an interface before a gateway changed them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Before {
    name: String,
    /// Tells apart devices that had the same name one after another, each with settings of its own.
    index: u32,
    offloads: Offloads,
    /// Zero if it was not changed, as by this version, which leaves segmentation on.
    gso_max_segs: u32,
}

/// Interfaces whose offloads are off until they are restored.
#[derive(Debug)]
pub struct Prepared<F = Disk> {
    files: F,
    path: PathBuf,
    changes: Mutex<Changes>,
}

#[derive(Debug)]
struct Changes {
    before: Vec<Before>,
    /// Whether the entries that a killed gateway left in the state file are included. Otherwise the file is
    /// not replaced.
    is_read: bool,
    /// Whether the offloads are restored; then none is turned off any more.
    is_over: bool,
}

/// Restores offloads when dropped, for whatever reason the gateway ends.
#[derive(Debug)]
pub struct RestoreAtEnd(pub Arc<Prepared>);

impl Drop for RestoreAtEnd {
    fn drop(&mut self) {
        match Netlink::open() {
            Ok(mut netlink) => self.0.restore(&mut netlink),
            Err(error) => tracing::warn!(%error, "offloads cannot be restored and stay off"),
        }
    }
}

/// Why offloads are not turned off.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The state file cannot be read or written; then nothing is changed.
    #[error("cannot read or write {}, which keeps the offloads of interface {interface} to be restored: {error}", .path.display())]
    State {
        /// The path of the state file.
        path: PathBuf,
        /// The name of the interface.
        interface: String,
        /// The error of the system call.
        error: io::Error,
    },
    /// The interface refuses to turn an offload off.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// The state file of the gateway with this control socket.
#[must_use]
pub fn state_file(socket: &Path) -> PathBuf {
    socket.with_extension("offloads.json")
}

impl<F: Files> Prepared<F> {
    /// A state without changes, except those that a killed gateway left in the state file at `path`.
    pub fn new(files: F, path: PathBuf) -> Self {
        let mut changes = Changes { before: Vec::new(), is_read: false, is_over: false };
        if let Err(error) = changes.take_left(&files, &path) {
            tracing::warn!(path = %path.display(), %error, "the offloads that a gateway left off are not known");
        }
        if !changes.before.is_empty() {
            let interfaces: Vec<_> = changes.before.iter().map(|before| before.name.as_str()).collect();
            tracing::warn!(
                interfaces = interfaces.join(", "),
                "a gateway was killed here; the offloads before it are restored at the end"
            );
        }
        Self { files, path, changes: Mutex::new(changes) }
    }

    /// Turns off offloads that merge packets. Returns the names of those that the driver refuses to turn off.
    ///
    /// # Errors
    /// If one of these is LRO, whose merged packets cannot be cut again; without CAP_NET_ADMIN; or if the
    /// state file cannot be written.
    pub fn turn_off(
        &self,
        devices: &mut impl Devices,
        interface: &Interface,
    ) -> Result<Vec<&'static str>, PrepareError> {
        // Held to the end, so that no offload is turned off while or after offloads are restored.
        let mut changes = self.changes();
        if changes.is_over {
            return Ok(Vec::new());
        }
        let state =
            |error| PrepareError::State { path: self.path.clone(), interface: interface.name.clone(), error };
        changes.take_left(&self.files, &self.path).map_err(state)?;
        let changed = &mut changes.before;
        let Interface { name, index, offloads, .. } = interface.clone();
        if !changed.iter().any(|before| (&before.name, before.index) == (&name, index)) {
            // An earlier device of the same name is gone.
            changed.retain(|before| before.name != name);
            // Segmentation is not changed here, and keeps what others set meanwhile.
            let offloads = Offloads { tso: false, gso: false, ..offloads };
            changed.push(Before { name: name.clone(), index, offloads, gso_max_segs: 0 });
            write(&self.files, &self.path, changed).map_err(|error| {
                changed.pop();
                state(error)
            })?;
        }
        let stay = merging(&devices.turn_off_merging(&name)?);
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

    /// Whether offloads were restored because the gateway ends.
    pub fn is_over(&self) -> bool {
        self.changes().is_over
    }

    /// Turns the original offloads on again; nothing is turned off after that.
    pub fn restore(&self, devices: &mut impl Devices) {
        let mut changes = self.changes();
        changes.is_over = true;
        if let Err(error) = changes.take_left(&self.files, &self.path) {
            tracing::warn!(path = %self.path.display(), %error, "what a gateway left off before this one stays off");
        }
        for (interface, result) in put_back(devices, &self.files, &self.path, &mut changes.before) {
            match result {
                Ok(()) => tracing::info!(interface, "offloads are restored"),
                Err(error) => {
                    tracing::warn!(interface, %error, "offloads cannot be restored and stay off");
                }
            }
        }
    }
}

impl Changes {
    /// Reads the entries that a killed gateway left in the state file, unless that was done. A damaged file
    /// has none.
    fn take_left(&mut self, files: &impl Files, path: &Path) -> io::Result<()> {
        if self.is_read {
            return Ok(());
        }
        match read(files, path) {
            Ok(left) => self.before.extend(left),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!(path = %path.display(), %error, "the state file is damaged and is replaced");
            }
            Err(error) => return Err(error),
        }
        self.is_read = true;
        Ok(())
    }
}

/// Restores the offloads that a killed gateway of this title left off, by its state file in one of `folders`.
/// Returns the interfaces with their errors; none if there is nothing to restore.
///
/// # Errors
/// The gateway of this title runs, or the state file cannot be read.
pub fn restore(folders: &[PathBuf], title: &str) -> Result<Vec<Restored>, RestoreError> {
    let mut netlink = Netlink::open()?;
    let mut restored = Vec::new();
    for folder in folders {
        let socket = folder.join(socket_name(title));
        if UnixStream::connect(&socket).is_ok() {
            return Err(RestoreError::Runs { title: title.to_owned(), socket });
        }
        let path = state_file(&socket);
        let mut changed =
            read(&Disk, &path).map_err(|error| RestoreError::File { path: path.clone(), error })?;
        restored.extend(put_back(&mut netlink, &Disk, &path, &mut changed));
    }
    Ok(restored)
}

/// An interface, with the error if its offloads could not be restored.
pub type Restored = (String, Result<(), NetlinkError>);

/// Why offloads cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The gateway runs.
    #[error(
        "a gateway with the title `{title}` is running and answers at {}; it restores offloads when it ends",
        socket.display()
    )]
    Runs { title: String, socket: PathBuf },
    /// Its state file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        path: PathBuf,
        #[source]
        error: io::Error,
    },
    /// The settings of devices cannot be changed.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
}

/// Restores all of `changed`; entries that fail stay in the state file. A deleted device has no settings to
/// restore.
fn put_back(
    devices: &mut impl Devices,
    files: &impl Files,
    path: &Path,
    changed: &mut Vec<Before>,
) -> Vec<Restored> {
    if changed.is_empty() {
        return Vec::new();
    }
    let mut results = Vec::new();
    changed.retain(|before| {
        let result = put_back_one(devices, before);
        let stays = result.is_err();
        results.push((before.name.clone(), result));
        stays
    });
    let written = if changed.is_empty() { files.remove(path) } else { write(files, path, changed) };
    if let Err(error) = written {
        tracing::warn!(path = %path.display(), %error, "the state file cannot be changed");
    }
    results
}

fn put_back_one(devices: &mut impl Devices, before: &Before) -> Result<(), NetlinkError> {
    match devices.device(&before.name) {
        Ok(device) if device.index == before.index => {
            devices.restore(&before.name, &before.offloads, before.gso_max_segs)
        }
        Ok(_) => Ok(()),
        Err(error) if error.is_no_device() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The entries of the file; none if there is no file.
fn read(files: &impl Files, path: &Path) -> io::Result<Vec<Before>> {
    let Some(bytes) = files.read(path, MAX_FILE)? else { return Ok(Vec::new()) };
    serde_json::from_slice(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn write(files: &impl Files, path: &Path, changed: &[Before]) -> io::Result<()> {
    files.replace(path, &serde_json::to_vec_pretty(changed)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_file_holds_what_was_written_and_one_that_is_damaged_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = state_file(&folder.path().join("apportion-x.sock"));
        assert_eq!(path, folder.path().join("apportion-x.offloads.json"));
        assert_eq!(read(&Disk, &path).unwrap(), []);
        let offloads = Netlink::open().unwrap().offloads("lo").unwrap();
        let before = [Before { name: "a".to_owned(), index: 7, offloads, gso_max_segs: 65_535 }];
        write(&Disk, &path, &before).unwrap();
        assert_eq!(read(&Disk, &path).unwrap(), before);
        std::fs::write(&path, "[{").unwrap();
        assert!(read(&Disk, &path).is_err());
    }

    #[test]
    fn an_interface_that_has_gone_leaves_nothing_to_restore() {
        let folder = tempfile::tempdir().unwrap();
        let path = state_file(&folder.path().join(socket_name("x")));
        let offloads = Netlink::open().unwrap().offloads("lo").unwrap();
        write(
            &Disk,
            &path,
            &[Before { name: "no-such-dev".to_owned(), index: 7, offloads, gso_max_segs: 1 }],
        )
        .unwrap();
        let folders = [folder.path().to_owned()];
        let restored = restore(&folders, "x").unwrap();
        assert!(matches!(&restored[..], [(name, Ok(()))] if name == "no-such-dev"), "{restored:?}");
        assert!(!path.exists());
        assert!(restore(&folders, "x").unwrap().is_empty());
    }
}
