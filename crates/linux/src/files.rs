//! Small files that are read, replaced and removed as a whole.
//!
//! [`Files`] is the file system as a gateway uses it; [`Disk`] is that of this machine, and tests use one
//! that is full.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

/// Files that are read, replaced and removed as a whole.
pub trait Files {
    /// At most the first `most` bytes of a file; none if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>>;

    /// Replaces a file atomically: it then holds either its old bytes or `bytes`. These are on the disk
    /// before this returns.
    ///
    /// # Errors
    /// The bytes cannot be written; the file is unchanged then.
    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;

    /// Removes a file, if it exists.
    ///
    /// # Errors
    /// The file exists and cannot be removed.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The file system of this machine.
#[derive(Clone, Copy, Debug)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        let replaced = written.and_then(|()| fs::rename(&beside, path));
        if replaced.is_err() {
            // The part that a full disk took.
            let _ = fs::remove_file(&beside);
        }
        replaced
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_or_stays_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state.json");
        assert_eq!(Disk.read(&path, 10).unwrap(), None);
        Disk.replace(&path, b"first").unwrap();
        Disk.replace(&path, b"second").unwrap();
        assert_eq!(Disk.read(&path, 10).unwrap().unwrap(), b"second");
        assert_eq!(Disk.read(&path, 3).unwrap().unwrap(), b"sec");
        // A file cannot replace a folder.
        let blocked = folder.path().join("folder");
        fs::create_dir_all(blocked.join("x")).unwrap();
        assert!(Disk.replace(&blocked, b"text").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        Disk.remove(&path).unwrap();
        Disk.remove(&path).unwrap();
    }
}
