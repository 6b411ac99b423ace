//! A content-addressed cache of earlier results, by the hash of all their inputs.
//!
//! A [`Key`] is a hash of inputs: equal keys mean equal results, so entries never become stale. A key holds
//! any number of entries, each a self-describing value of the caller's type. [`Cache::append`] adds an entry,
//! which is durable when the call returns, even if the process is killed right after it. [`Cache::read`]
//! returns all entries.
//!
//! # On disk
//!
//! ```text
//! CACHEDIR.TAG                      says to backup programs what this is
//! 2/3f/3fa9...c0/8814-5d21e0.cborz  key 3fa9...c0, by process 8814
//! ```
//!
//! A file is a sequence of [LZ4 frames](https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md), with
//! the size of the content and checksums of blocks, which hold a sequence of CBOR items (RFC 8742). Each
//! process writes its own files, so that processes and hosts can share the folder without locks; results
//! that two of them compute concurrently are stored twice. [`Cache::compact`] joins the frames of this
//! process's file, which makes it several times smaller. A frame that is truncated or damaged ends its file:
//! the rest is computed again, and [`Cache::verify`] finds the file.
//!
//! The cache is as trustworthy as its folder: a process that can write there determines what is read. The
//! folder is created for its owner only.

mod files;
mod frames;
mod key;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use apportion_report::store::FileSystem;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use files::{Damage, Usage};
pub use key::Key;

/// The subfolder of the cache, whose name changes when the format of files becomes incompatible.
const LAYOUT: &str = "2";
/// The extension of files.
const ENDING: &str = "cborz";
/// <https://bford.info/cachedir/>
const TAG: &str =
    "Signature: 8a477f597d28d172789f06886806bc55\n# A cache of apportion: it may be deleted at any time.\n";

/// An error when reading or writing the cache.
#[derive(Debug, thiserror::Error)]
#[error("the cache at `{}`: {cause}", path.display())]
pub struct CacheError {
    path: PathBuf,
    #[source]
    cause: io::Error,
}

/// Encoded entries for a cache elsewhere: one process creates the frame, and [`Cache::append_frame`] stores
/// it.
#[derive(Clone, Debug)]
pub struct Frame(Vec<u8>);

impl Frame {
    /// Encodes entries.
    ///
    /// # Errors
    /// If an entry cannot be represented in CBOR.
    pub fn of<T: Serialize>(entries: &[T]) -> io::Result<Self> {
        frames::frame(entries).map(Self)
    }

    /// Creates a frame from its bytes. Unreadable parts are treated as absent from the cache.
    #[must_use]
    pub const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the frame.
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
    on: FileSystem,
}

impl Cache {
    /// The maximum size of a user's cache, in bytes. Chosen: tens of thousands of runs of a few flows with
    /// their series.
    pub const MOST: u64 = 2 << 30;

    /// Returns the cache in this folder, which is created on the first write. Absent in the browser, which has no
    /// files.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        use std::hash::{BuildHasher as _, RandomState};
        // Different for each process, including processes on other hosts and later processes with the same
        // number.
        let random = RandomState::new().hash_one(std::process::id());
        Self {
            folder: folder.into(),
            name: format!("{}-{random:016x}.{ENDING}", std::process::id()),
            on: FileSystem,
        }
    }

    /// Returns the default folder: `APPORTION_CACHE_DIR`, or else `apportion` in `XDG_CACHE_HOME` or in
    /// `.cache` of the home folder, on Windows `apportion\\cache` in `LOCALAPPDATA`; none if the environment sets
    /// none of them.
    #[must_use]
    pub fn default_folder() -> Option<PathBuf> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // XDG Base Directory Specification: paths must be absolute; relative ones are ignored.
        let absolute = |name| set(name).filter(|path| path.is_absolute());
        set("APPORTION_CACHE_DIR").or_else(|| Some(absolute("XDG_CACHE_HOME")?.join("apportion"))).or_else(
            || match cfg!(windows) {
                true => Some(absolute("LOCALAPPDATA")?.join("apportion").join("cache")),
                false => Some(set("HOME")?.join(".cache/apportion")),
            },
        )
    }

    /// The file system that it is on: nothing follows a call where there is none.
    pub(super) const fn on(&self) -> FileSystem {
        self.on
    }

    /// Returns the folder of the cache.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Calls `each` with every readable entry of `key`. Unreadable entries are treated as absent.
    pub fn read<T: DeserializeOwned>(&self, key: &Key, mut each: impl FnMut(T)) {
        self.on();
        let files = self.files_of(key).unwrap_or_default();
        for path in files {
            // Opening a pipe would wait for its writer.
            let Some(file) = path.is_file().then(|| File::open(&path).ok()).flatten() else { continue };
            frames::entries(&file, &mut each).ok();
            touch(&path);
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If the entry cannot be written.
    pub fn append<T: Serialize>(&self, key: &Key, entry: &T) -> Result<(), CacheError> {
        self.on();
        let frame = Frame::of(&[entry]).map_err(|cause| CacheError { path: self.own_file(key), cause })?;
        self.append_frame(key, &frame)
    }

    /// Adds the entries of a frame.
    ///
    /// # Errors
    /// If the entries cannot be written.
    pub fn append_frame(&self, key: &Key, frame: &Frame) -> Result<(), CacheError> {
        self.on();
        let path = self.own_file(key);
        let write = || {
            let folder = self.folder_of(key);
            if !folder.is_dir() {
                self.make(&folder)?;
            }
            // A single write: a killed process leaves a whole frame, or one that is detected as truncated.
            File::options().append(true).create(true).open(&path)?.write_all(&frame.0)
        };
        write().map_err(|cause| CacheError { path: path.clone(), cause })
    }

    /// Joins the frames that this process wrote for `key`, if any.
    ///
    /// # Errors
    /// If the joined file cannot be written. The previous file then stays.
    pub fn compact(&self, key: &Key) -> Result<(), CacheError> {
        self.on();
        let path = self.own_file(key);
        let Ok(file) = File::open(&path) else { return Ok(()) };
        let joined = path.with_extension("partial");
        let write = || {
            let mut out = File::create(&joined)?;
            frames::join(&file, &mut out)?;
            out.sync_all()?;
            // Windows renames over no file that is open.
            drop((file, out));
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

    /// Returns the files of a key sorted by name, so that equal caches are read in the same order.
    fn files_of(&self, key: &Key) -> io::Result<Vec<PathBuf>> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(self.folder_of(key))? {
            files.push(entry?.path());
        }
        files.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
        files.sort();
        Ok(files)
    }

    /// Creates a folder of the cache, and the cache itself if absent, for its owner only.
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

/// Marks a file as used: the least recently used are deleted first. A file of another user stays unchanged.
#[expect(clippy::disallowed_methods, reason = "real time decides which files go first, no more")]
fn touch(path: &Path) {
    // Opened for appending, since a file that is open for reading alone has no time to set on Windows.
    let file = File::options().append(true).open(path);
    file.and_then(|file| file.set_modified(SystemTime::now())).ok();
}

impl CacheError {
    /// Returns the system's error.
    #[must_use]
    pub fn cause(&self) -> &io::Error {
        &self.cause
    }
}
