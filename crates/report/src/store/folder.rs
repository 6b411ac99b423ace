//! The folder of a run: a number in the given folder, which appears when the run is written.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use apportion_scenario::read_text_file;

use super::file_system::{FileSystem, file_system};
use super::{LoadError, WriteError, lock};

/// The ending of a hidden folder.
const PARTIAL: &str = ".partial";
/// The name of a link to the last run; on Windows, where links take a right, of a file with its number.
const LATEST: &str = "latest";

/// Checks that runs can be written below `dir`, and creates it if needed. Cheap: call it before a long run.
///
/// # Errors
/// If `dir` cannot be created or written, is not a folder, or is the folder of a run.
pub fn check(dir: &Path) -> Result<(), WriteError> {
    let refuse = |cause: &str| {
        let hint = "choose another folder with --out DIR";
        Err(WriteError { path: dir.to_owned(), cause: cause.to_owned(), hint })
    };
    if dir.exists() && !dir.is_dir() {
        return refuse("it is a file, not a folder");
    }
    if is_run(dir) {
        return refuse("it is the folder of a run");
    }
    fs::create_dir_all(dir).map_err(|error| WriteError::io(dir, &error))?;
    let probe = dir.join(format!(".probe-{}{PARTIAL}", std::process::id()));
    File::create(&probe).map_err(|error| WriteError::io(dir, &error))?;
    match fs::remove_file(&probe) {
        // Another thread of this process had the same probe.
        Err(error) if error.kind() != ErrorKind::NotFound => Err(WriteError::io(dir, &error)),
        _ => Ok(()),
    }
}

/// The folder of a run: `dir` itself if it is one, else the complete run in it that ended last, else the last one.
///
/// # Errors
/// If `dir` is no run and holds none.
pub fn find(dir: &Path) -> Result<PathBuf, LoadError> {
    if is_run(dir) {
        return Ok(dir.to_owned());
    }
    if let Some(latest) = pointed(&dir.join(LATEST)).map(|name| dir.join(name)).filter(|of| is_run(of)) {
        return Ok(latest);
    }
    // For copies without it.
    let is_there = |number: &u64| is_run(&dir.join(number.to_string()));
    let last = numbers(dir)
        .and_then(|all| all.into_iter().rev().find(is_there).ok_or_else(|| ErrorKind::NotFound.into()));
    let fail = |error: io::Error| LoadError {
        path: dir.to_owned(),
        cause: match error.kind() {
            ErrorKind::NotFound if dir.is_dir() => "it holds no run".to_owned(),
            _ if dir.is_file() => "it is a file, not the folder of a run".to_owned(),
            ErrorKind::NotFound => "there is no such folder".to_owned(),
            _ => error.to_string(),
        },
        hint: "name a folder that `apportion run` wrote, such as results/quickstart",
    };
    last.map(|number| dir.join(number.to_string())).map_err(fail)
}

/// Whether a folder holds a run, and not runs.
fn is_run(dir: &Path) -> bool {
    dir.join("run.json").exists()
}

/// The names in a folder that are numbers, ascending.
fn numbers(dir: &Path) -> io::Result<Vec<u64>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        let digits = name.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
        all.extend(digits.and_then(|name| name.parse::<u64>().ok()));
    }
    all.sort_unstable();
    Ok(all)
}

/// The hidden folder of a run that is being written. It is removed unless it is [published](Self::publish).
#[derive(Debug)]
pub(super) struct Staging {
    parent: PathBuf,
    number: u64,
    /// Held while its writer lives; none if folders cannot be locked.
    lock: Option<File>,
    /// Whether it was published; then another writer may have a hidden folder of this number.
    is_published: bool,
    on: FileSystem,
}

impl Staging {
    /// Creates one in `parent`, which is created if needed. Removes leftovers of killed writers there.
    pub(super) fn create(parent: &Path) -> Result<Self, WriteError> {
        check(parent)?;
        let fail = |error: io::Error| WriteError::io(parent, &error);
        let on = file_system().map_err(fail)?;
        // One writer at a time: it must not remove the folder of another writer, which exists but is not
        // locked yet, as a leftover. If folders cannot be locked, no folder counts as a leftover. On Windows no
        // folder exists before its lock.
        let section = File::open(parent).ok();
        let _ = section.as_ref().map(File::lock);
        remove_leftovers(parent).map_err(fail)?;
        let last = numbers(parent).map_err(fail)?.last().copied().unwrap_or(0);
        // The folder itself reserves the number: only one of two writers creates it.
        for number in last.saturating_add(1).. {
            let path = hidden(parent, number);
            match lock::create(&path) {
                Ok(lock) => {
                    let parent = parent.to_owned();
                    return Ok(Self { parent, number, lock, is_published: false, on });
                }
                Err(error) if error.kind() == ErrorKind::AlreadyExists => (),
                Err(error) => return Err(WriteError::io(parent, &error)),
            }
        }
        Err(fail(io::Error::other("there are too many runs in it")))
    }

    /// The file system that it is on: nothing follows a call where there is none.
    pub(super) const fn on(&self) -> FileSystem {
        self.on
    }

    /// The given folder.
    pub(super) fn parent(&self) -> &Path {
        &self.parent
    }

    /// The hidden folder.
    pub(super) fn path(&self) -> PathBuf {
        hidden(&self.parent, self.number)
    }

    /// Gives the folder its name, which is returned. A run that is not complete does not become the latest.
    pub(super) fn publish(mut self, is_complete: bool) -> Result<PathBuf, WriteError> {
        let from = self.path();
        let fail = |error: io::Error| WriteError::io(&self.parent, &error);
        // The content is on the disk before it is visible. Elsewhere than on Unix a folder cannot be opened for that.
        if cfg!(unix) {
            File::open(&from).and_then(|folder| folder.sync_all()).map_err(fail)?;
        }
        let mut number = self.number;
        let path = loop {
            let path = self.parent.join(number.to_string());
            match fs::rename(&from, &path) {
                Ok(()) => break path,
                // Another writer had this number and was faster.
                Err(_) if path.exists() => number += 1,
                Err(error) => return Err(fail(error)),
            }
        };
        self.lock = None;
        self.is_published = true;
        if is_complete {
            link_latest(&self.parent, number);
        }
        Ok(path)
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.is_published {
            // The write has failed already; the next writer removes the rest.
            let _ = fs::remove_dir_all(self.path());
        }
    }
}

fn hidden(parent: &Path, number: u64) -> PathBuf {
    parent.join(format!(".{number}{PARTIAL}"))
}

/// Removes hidden folders whose writers have gone.
fn remove_leftovers(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_ours = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(PARTIAL));
        if is_ours.is_some_and(|number| number.parse::<u64>().is_ok())
            && let Ok(_lock) = lock::take(&path)
        {
            // A writer that may not remove it takes another number.
            let _ = fs::remove_dir_all(&path);
        }
    }
    Ok(())
}

/// Points `latest` to a run, unless something else has that name.
fn link_latest(parent: &Path, number: u64) {
    let link = parent.join(LATEST);
    let is_other = fs::symlink_metadata(&link).is_ok() && pointed(&link).is_none();
    let partial = parent.join(format!(".{LATEST}-{}{PARTIAL}", std::process::id()));
    #[cfg(unix)]
    let point = |to: String| std::os::unix::fs::symlink(to, &partial);
    #[cfg(not(unix))]
    let point = |to: String| fs::write(&partial, to);
    if !is_other && point(number.to_string()).is_ok() && fs::rename(&partial, &link).is_err() {
        let _ = fs::remove_file(&partial);
    }
}

/// Where a link, or a file with a number, points to.
fn pointed(link: &Path) -> Option<PathBuf> {
    let number = || read_text_file(link, 20).ok().filter(|text| text.parse::<u64>().is_ok());
    fs::read_link(link).ok().or_else(|| number().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publish(parent: &Path) -> String {
        let staging = Staging::create(parent).unwrap();
        fs::write(staging.path().join("run.json"), "").unwrap();
        staging.publish(true).unwrap().file_name().unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn each_run_has_a_number_and_two_at_once_have_two() {
        let dir = tempfile::tempdir().unwrap();
        let out = dir.path().join("new/folder");
        assert_eq!((publish(&out), publish(&out)), ("1".into(), "2".into()));
        let (first, second) = (Staging::create(&out).unwrap(), Staging::create(&out).unwrap());
        assert_eq!((first.number, second.number), (3, 4));
        for staging in [&first, &second] {
            fs::write(staging.path().join("run.json"), "").unwrap();
        }
        assert!(second.publish(true).unwrap().ends_with("4"));
        // A run that began earlier and ends later keeps its own number; the last to end is the latest.
        assert!(first.publish(true).unwrap().ends_with("3"));
        assert_eq!(pointed(&out.join(LATEST)).unwrap(), Path::new("3"));
        assert!(find(&out).unwrap().ends_with("3"));
    }

    #[test]
    fn the_latest_run_is_the_last_complete_one() {
        let dir = tempfile::tempdir().unwrap();
        let interrupted = || {
            let staging = Staging::create(dir.path()).unwrap();
            fs::write(staging.path().join("run.json"), "").unwrap();
            staging.publish(false).unwrap()
        };
        // If there is no other run, an interrupted one is found.
        assert!(interrupted().ends_with("1") && find(dir.path()).unwrap().ends_with("1"));
        publish(dir.path());
        assert!(interrupted().ends_with("3") && find(dir.path()).unwrap().ends_with("2"));
        assert_eq!(pointed(&dir.path().join(LATEST)).unwrap(), Path::new("2"));
    }

    #[test]
    fn without_the_link_the_last_run_has_the_highest_number() {
        let dir = tempfile::tempdir().unwrap();
        publish(dir.path());
        publish(dir.path());
        fs::remove_file(dir.path().join(LATEST)).unwrap();
        for other in ["77", "+5"] {
            fs::create_dir(dir.path().join(other)).unwrap();
        }
        assert!(find(dir.path()).unwrap().ends_with("2"));
        // The next run does not take an existing name.
        assert_eq!(publish(dir.path()), "78");
    }

    #[test]
    fn no_run_is_written_into_the_folder_of_another() {
        let dir = tempfile::tempdir().unwrap();
        publish(dir.path());
        let message = Staging::create(&dir.path().join("1")).unwrap_err().to_string();
        assert!(message.contains("it is the folder of a run"), "{message}");
    }

    #[test]
    fn a_number_that_was_taken_meanwhile_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let staging = Staging::create(dir.path()).unwrap();
        fs::write(staging.path().join("run.json"), "ours").unwrap();
        fs::create_dir(dir.path().join("1")).unwrap();
        fs::write(dir.path().join("1/run.json"), "theirs").unwrap();
        assert!(staging.publish(true).unwrap().ends_with("2"));
        assert_eq!(fs::read_to_string(dir.path().join("1/run.json")).unwrap(), "theirs");
    }

    #[test]
    fn what_a_killed_writer_left_is_removed_and_that_of_a_living_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let living = Staging::create(dir.path()).unwrap();
        let killed = dir.path().join(".7.partial");
        fs::create_dir(&killed).unwrap();
        fs::write(killed.join("flows.parquet"), "half").unwrap();
        let other = Staging::create(dir.path()).unwrap();
        assert!(living.path().exists() && !killed.exists());
        drop(other);
        assert!(!dir.path().join(".2.partial").exists());
    }

    #[test]
    fn many_writers_at_once_all_have_a_folder() {
        let dir = tempfile::tempdir().unwrap();
        let publish = || (0..25).for_each(|_| drop(publish(dir.path())));
        std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(publish))));
        assert_eq!(numbers(dir.path()).unwrap(), (1..=200).collect::<Vec<_>>());
    }

    #[test]
    fn a_folder_without_runs_is_said_to_hold_none() {
        let dir = tempfile::tempdir().unwrap();
        let message = find(dir.path()).unwrap_err().to_string();
        assert!(message.contains("it holds no run"), "{message}");
        let message = find(&dir.path().join("none")).unwrap_err().to_string();
        assert!(message.contains("there is no such folder; name a folder"), "{message}");
    }
}
