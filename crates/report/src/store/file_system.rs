//! Whether the system has files.

use std::io;

/// A part of each value that can only exist where there are files. In the browser there are none: such values
/// cannot exist there, and the compiler leaves out their code, which is a third of all.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
#[derive(Clone, Copy, Debug)]
pub struct FileSystem;

/// As on other systems.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
#[derive(Clone, Copy, Debug)]
pub enum FileSystem {}

/// The file system.
///
/// # Errors
/// The system has none.
pub(super) fn file_system() -> io::Result<FileSystem> {
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    return Ok(FileSystem);
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    Err(io::ErrorKind::Unsupported.into())
}
