//! A content-addressed cache: what was computed before, by the hash of everything that it was computed from.
//!
//! A [`Key`] is a hash of inputs: equal keys mean equal results, so nothing in the cache is ever out of date. Under a key are any
//! number of entries, each a value of the caller's type, which says itself what it is. [`Cache::append`] adds one; it is there
//! when the call returns, also if the process is killed right after it. [`Cache::read`] gives all of them.
//!
//! # On disk
//!
//! ```text
//! CACHEDIR.TAG                      says to backup programs what this is
//! 2/3f/3fa9...c0/8814-5d21e0.cborz  key 3fa9...c0, by process 8814
//! ```
//!
//! A file is a sequence of [LZ4 frames](https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md), with the size of the content and
//! checksums of blocks, which hold a sequence of CBOR items (RFC 8742). Each process writes files of its own, so that processes and hosts can share the folder without locks; what two of them compute at once is there twice.
//! [`Cache::compact`] joins the frames of this process's file, which makes it several times smaller. A frame that is cut short or
//! damaged ends its file: what follows is computed again, and [`Cache::verify`] finds it.
//!
//! The cache is trusted as far as its folder: who can write there decides what is read. It is made for its owner alone.

mod files;
mod frames;
mod key;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use files::{Damage, Usage};
pub use key::Key;

/// The folder within the cache's, whose name changes when files can no longer be read.
const LAYOUT: &str = "2";
/// The ending of files.
const ENDING: &str = "cborz";
/// <https://bford.info/cachedir/>
const TAG: &str =
    "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of apportion: it may be deleted at any time.\n";

/// A failure to read or write the cache.
#[derive(Debug, thiserror::Error)]
#[error("the cache at `{}`: {cause}", path.display())]
pub struct CacheError {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

/// Entries as a file holds them, for a cache that is elsewhere: another process makes it, and [`Cache::append_frame`] takes it.
#[derive(Clone, Debug)]
pub struct Frame(Vec<u8>);

impl Frame {
    /// Of these entries.
    ///
    /// # Errors
    /// If an entry has no form in CBOR.
    pub fn of<T: Serialize>(entries: &[T]) -> io::Result<Self> {
        frames::frame(entries).map(Self)
    }

    /// The frame with these bytes. What cannot be read in it is as if it were not in the cache.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A folder of entries.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    /// The name of this process's files.
    name: String,
}

impl Cache {
    /// Most that a user's cache takes, bytes. Chosen: tens of thousands of runs of some flows with their series.
    pub const MOST: u64 = 2 << 30;

    /// The cache in this folder, which is made when something is written.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        // Different for each process, also of different hosts and of times when a number comes again.
        let random = RandomState::new().hash_one(std::process::id());
        Self { folder: folder.into(), name: format!("{}-{random:016x}.{ENDING}", std::process::id()) }
    }

    /// Where it is unless the user says otherwise: `APPORTION_CACHE_DIR`, else `apportion` in `XDG_CACHE_HOME` or in `.cache` of
    /// the home folder; none if the environment names none of them.
    #[must_use]
    pub fn default_folder() -> Option<PathBuf> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // The XDG Base Directory Specification: all paths must be absolute; a relative one is to be ignored.
        let absolute = |name| set(name).filter(|path| path.is_absolute());
        set("APPORTION_CACHE_DIR")
            .or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("apportion")))
            .or_else(|| Some(set("HOME")?.join(".cache/apportion")))
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Calls `each` with every entry of `key` that can be read. What cannot be is as if it were not there.
    pub fn read<T: DeserializeOwned>(&self, key: &Key, mut each: impl FnMut(T)) {
        let files = self.files_of(key).unwrap_or_default();
        for path in files {
            // To open a pipe would wait for its writer.
            let Some(file) = path.is_file().then(|| File::open(&path).ok()).flatten() else { continue };
            frames::entries(&file, &mut each).ok();
            touch(&file);
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn append<T: Serialize>(&self, key: &Key, entry: &T) -> Result<(), CacheError> {
        let frame = Frame::of(&[entry]).map_err(|cause| CacheError { path: self.own_file(key), cause })?;
        self.append_frame(key, &frame)
    }

    /// Adds the entries of a frame.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn append_frame(&self, key: &Key, frame: &Frame) -> Result<(), CacheError> {
        let path = self.own_file(key);
        let write = || {
            let folder = self.folder_of(key);
            if !folder.is_dir() {
                self.make(&folder)?;
            }
            // A single write: a process that is killed leaves a whole frame, or one that is seen to be cut.
            File::options().append(true).create(true).open(&path)?.write_all(&frame.0)
        };
        write().map_err(|cause| CacheError { path: path.clone(), cause })
    }

    /// Joins the frames that this process wrote for `key`, if it wrote any.
    ///
    /// # Errors
    /// If it cannot be written. What was there stays.
    pub fn compact(&self, key: &Key) -> Result<(), CacheError> {
        let path = self.own_file(key);
        let Ok(file) = File::open(&path) else { return Ok(()) };
        let joined = path.with_extension("partial");
        let write = || {
            let mut out = File::create(&joined)?;
            frames::join(&file, &mut out)?;
            out.sync_all()?;
            fs::rename(&joined, &path)
        };
        write().map_err(|cause| {
            fs::remove_file(&joined).ok();
            CacheError { path: path.clone(), cause }
        })
    }

    fn folder_of(&self, key: &Key) -> PathBuf {
        let name = key.to_string();
        self.folder.join(LAYOUT).join(&name[..2]).join(name)
    }

    fn own_file(&self, key: &Key) -> PathBuf {
        self.folder_of(key).join(&self.name)
    }

    /// In the order of their names, so that equal caches are read equally.
    fn files_of(&self, key: &Key) -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(self.folder_of(key))? {
            files.push(entry?.path());
        }
        files.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
        files.sort();
        Ok(files)
    }

    /// Makes a folder of the cache, and the cache where it is not yet there, for its owner alone.
    fn make(&self, folder: &Path) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
        let tag = self.folder.join("CACHEDIR.TAG");
        if tag.exists() { Ok(()) } else { fs::write(tag, TAG) }
    }
}

/// Notes that a file was used: what is used stays longest. It may belong to another user, and then stays as it is.
#[expect(clippy::disallowed_methods, reason = "real time decides which files go first, no more")]
fn touch(file: &File) {
    file.set_modified(SystemTime::now()).ok();
}

impl CacheError {
    /// What the system said.
    #[must_use]
    pub fn cause(&self) -> &io::Error {
        &self.cause
    }
}
