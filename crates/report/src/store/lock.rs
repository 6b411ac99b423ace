//! The lock of a hidden folder, which shows that its writer lives.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Creates a folder and its lock; no lock if folders cannot be locked.
///
/// # Errors
/// If the folder cannot be created. The kind is [`AlreadyExists`](io::ErrorKind::AlreadyExists) if there is one, or its
/// lock.
#[cfg(not(windows))]
pub(super) fn create(path: &Path) -> io::Result<Option<File>> {
    fs::create_dir(path)?;
    Ok(take(path).ok())
}

/// Takes the lock of a folder.
///
/// # Errors
/// If another writer has it, or folders cannot be locked.
#[cfg(not(windows))]
pub(super) fn take(path: &Path) -> io::Result<File> {
    let folder = File::open(path)?;
    folder.try_lock()?;
    Ok(folder)
}

/// As on other systems. The lock is there before the folder.
#[cfg(windows)]
pub(super) fn create(path: &Path) -> io::Result<Option<File>> {
    let lock = take(path)?;
    fs::create_dir(path)?;
    Ok(Some(lock))
}

/// As on other systems. Folders cannot be locked there: the lock is a file beside, which one process at a time can open,
/// and which the system deletes when that process closes it or ends.
#[cfg(windows)]
pub(super) fn take(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt as _;
    /// `FILE_FLAG_DELETE_ON_CLOSE` of `CreateFileW`.
    const DELETE_ON_CLOSE: u32 = 0x0400_0000;
    /// `ERROR_ACCESS_DENIED`: its process has ended, and another program, such as a scanner, still has it open.
    const ACCESS_DENIED: i32 = 5;
    /// `ERROR_SHARING_VIOLATION`: another process has it open.
    const SHARING_VIOLATION: i32 = 32;
    let mut options = File::options();
    options.write(true).create(true).share_mode(0).custom_flags(DELETE_ON_CLOSE);
    let lock = path.with_extension("lock");
    options.open(&lock).map_err(|error| match error.raw_os_error() {
        Some(SHARING_VIOLATION) => io::ErrorKind::AlreadyExists.into(),
        Some(ACCESS_DENIED) if lock.exists() => io::ErrorKind::AlreadyExists.into(),
        _ => error,
    })
}
