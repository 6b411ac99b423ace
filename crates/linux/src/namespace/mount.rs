//! Mounts of a mount namespace: nothing spreads to the rest of the system, and one file lies over another.
//!
//! Source: mount_namespaces(7), mount(2), tmpfs(5). For a `resolv.conf` or `hosts` that only the commands inside see.

use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::mount::{MntFlags, MsFlags, mount, umount2};

/// A mount that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The mounts still spread.
    #[error("cannot make the mounts private: {0}; enter a mount namespace first")]
    Private(Errno),
    /// There is no folder of one's own.
    #[error("cannot mount a folder of memory over {}: {errno}; the directory must exist (TMPDIR names it)",
            .over.display())]
    Folder {
        /// Where it should be.
        over: PathBuf,
        /// The error of the system call.
        errno: Errno,
    },
    /// The file does not lie over the other.
    #[error("cannot bind {} over {}: {errno}; both must exist, and a mount namespace be entered first",
            .file.display(), .over.display())]
    Bind {
        /// The file that should be seen.
        file: PathBuf,
        /// Where it should be seen.
        over: PathBuf,
        /// The error of the system call.
        errno: Errno,
    },
}

/// Keeps what is mounted from now on to the calling thread's mount namespace, and away from others.
///
/// # Errors
/// [`MountError::Private`] outside of a mount namespace of one's own.
pub fn make_mounts_private() -> Result<(), MountError> {
    mount(None::<&Path>, "/", None::<&Path>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&Path>)
        .map_err(MountError::Private)
}

/// Lets `file` be seen at `over`, which must exist and is followed if it is a symbolic link (systemd-resolved
/// makes `/etc/resolv.conf` one), until the mount namespace ends. After [`make_mounts_private`].
///
/// # Errors
/// [`MountError::Bind`] if one of them does not exist or it is forbidden.
pub fn bind_over(file: &Path, over: &Path) -> Result<(), MountError> {
    mount(Some(file), over, None::<&Path>, MsFlags::MS_BIND, None::<&Path>)
        .map_err(|errno| MountError::Bind { file: file.to_owned(), over: over.to_owned(), errno })
}

/// Runs `f` while `over`, a directory, is an empty folder in memory that only the calling thread's mount
/// namespace sees. Mounts of what `f` puts there stay. After [`make_mounts_private`].
///
/// # Errors
/// [`MountError::Folder`] if there is no such directory or it is forbidden: `f` does not run then; or if the
/// folder does not go away.
pub fn in_own_folder<T>(over: &Path, f: impl FnOnce(&Path) -> T) -> Result<T, MountError> {
    let failed = |errno| MountError::Folder { over: over.to_owned(), errno };
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("tmpfs"), over, Some("tmpfs"), flags, Some("mode=0755,size=1m")).map_err(failed)?;
    let done = f(over);
    umount2(over, MntFlags::MNT_DETACH).map_err(failed)?;
    Ok(done)
}
