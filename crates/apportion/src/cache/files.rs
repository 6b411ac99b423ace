//! Maintenance of a cache: its size, deletion of old files, and detection of damage.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::{Cache, CacheError, ENDING, LAYOUT, frames};

/// The size of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Number of keys with entries.
    pub keys: u64,
    /// Number of files.
    pub files: u64,
    /// Total size of all files in bytes.
    pub bytes: u64,
}

/// A file that cannot be read to its end.
#[derive(Debug)]
pub struct Damage {
    /// The path of the file.
    pub path: PathBuf,
    /// The error.
    pub cause: io::Error,
}

struct Entry {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Cache {
    /// Returns the size of the cache.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn usage(&self) -> Result<Usage, CacheError> {
        Ok(usage(&self.all()?))
    }

    /// Deletes the least recently used files until at most `bytes` are left, and temporary files of killed
    /// processes. Returns the remaining size.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file cannot be deleted.
    pub fn prune(&self, bytes: u64) -> Result<Usage, CacheError> {
        self.on();
        let mut files = self.all()?;
        files.sort_by(|a, b| (b.used, &b.path).cmp(&(a.used, &a.path)));
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        while total > bytes {
            let Some(oldest) = files.pop() else { break };
            total -= oldest.bytes;
            delete(&oldest.path)?;
            // The file's folder too, if it is now empty.
            oldest.path.parent().map(fs::remove_dir);
        }
        Ok(usage(&files))
    }

    /// Reads every file to its end. Returns the damaged files, and deletes them if `delete` is set.
    ///
    /// # Errors
    /// If the folder cannot be read, or a file cannot be deleted.
    pub fn verify(&self, delete: bool) -> Result<Vec<Damage>, CacheError> {
        let mut damaged = Vec::new();
        for file in self.all()? {
            let read = File::open(&file.path).and_then(|file| {
                frames::frames(file, |content| frames::items(content, &mut |_: ciborium::Value| ()))
            });
            let Err(cause) = read else { continue };
            if delete {
                self::delete(&file.path)?;
            }
            damaged.push(Damage { path: file.path, cause });
        }
        Ok(damaged)
    }

    /// Returns all files, sorted by path. Files that another process deletes meanwhile are skipped.
    fn all(&self) -> Result<Vec<Entry>, CacheError> {
        let mut files = Vec::new();
        for prefix in list(&self.folder().join(LAYOUT))? {
            for key in list(&prefix)? {
                for path in list(&key)? {
                    let Ok(about) = path.metadata() else { continue };
                    let used = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    let is_ours =
                        path.extension().is_some_and(|ending| ending == ENDING || ending == "partial");
                    if is_ours && about.is_file() {
                        files.push(Entry { path, bytes: about.len(), used });
                    }
                }
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }
}

fn usage(files: &[Entry]) -> Usage {
    let mut folders: Vec<Option<&Path>> = files.iter().map(|file| file.path.parent()).collect();
    folders.sort();
    folders.dedup();
    let bytes = files.iter().map(|file| file.bytes).sum();
    Usage { keys: folders.len() as u64, files: files.len() as u64, bytes }
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, CacheError> {
    let read =
        || -> io::Result<Vec<PathBuf>> { fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect() };
    match read() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        other => other.map_err(|cause| CacheError { path: folder.to_owned(), cause }),
    }
}

fn delete(path: &Path) -> Result<(), CacheError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(|cause| CacheError { path: path.to_owned(), cause }),
    }
}
