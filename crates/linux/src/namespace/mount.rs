//! Mounts of a mount namespace: they do not propagate to the rest of the system, and a file can be bound over
//! another.
//!
//! Source: mount_namespaces(7), mount(2), tmpfs(5). For a `resolv.conf` or `hosts` that only the commands inside see.

use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// Why a mount fails.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The mounts still propagate.
    #[error("cannot make the mounts private: {0}; enter a mount namespace first")]
    Private(Errno),
    /// The folder in memory cannot be mounted.
    #[error("cannot mount a folder of memory over {}: {errno}; the directory must exist (TMPDIR names it)",
            .over.display())]
    Folder {
        /// The directory that it should cover.
        over: PathBuf,
        /// The error of the system call.
        errno: Errno,
    },
    /// The file cannot be bound.
    #[error("cannot bind {} over {}: {errno}; both must exist, and a mount namespace be entered first",
            .file.display(), .over.display())]
    Bind {
        /// The file to bind.
        file: PathBuf,
        /// The file that it should cover.
        over: PathBuf,
        /// The error of the system call.
        errno: Errno,
    },
}

/// Keeps further mounts in the calling thread's mount namespace, and away from others.
///
/// # Errors
/// [`MountError::Private`] outside a mount namespace of one's own.
pub fn make_mounts_private() -> Result<(), MountError> {
    mount(None::<&Path>, "/", None::<&Path>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&Path>)
        .map_err(MountError::Private)
}

/// Binds `file` over `over` until the mount namespace ends. `over` must exist, and is followed if it is a
/// symbolic link (systemd-resolved makes `/etc/resolv.conf` one). Call it after [`make_mounts_private`].
///
/// # Errors
/// [`MountError::Bind`] if one of them does not exist or the mount is forbidden.
pub fn bind_over(file: &Path, over: &Path) -> Result<(), MountError> {
    mount(Some(file), over, None::<&Path>, MsFlags::MS_BIND, None::<&Path>)
        .map_err(|errno| MountError::Bind { file: file.to_owned(), over: over.to_owned(), errno })
}

/// Runs `f` while `over`, a directory, is an empty folder in memory that only the calling thread's mount
/// namespace sees. Mounts of files in it stay. Call it after [`make_mounts_private`].
///
/// # Errors
/// [`MountError::Folder`] if there is no such directory or the mount is forbidden, in which case `f` does not
/// run; or if the folder cannot be unmounted.
pub fn in_own_folder<T>(over: &Path, f: impl FnOnce(&Path) -> T) -> Result<T, MountError> {
    let failed = |errno| MountError::Folder { over: over.to_owned(), errno };
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), over, Some("tmpfs"), flags, Some("mode=0755,size=1m")).map_err(failed)?;
    let done = f(over);
    umount2(over, MntFlags::MNT_DETACH).map_err(failed)?;
    Ok(done)
}
