//! A folder, and the machine for one test.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long what should happen at once may take on a busy machine. Nothing here ends by itself before.
pub const PATIENCE: Duration = Duration::from_secs(10);

pub struct Place {
    folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    /// Waits until no other test has one: two runs in real time disturb each other.
    pub fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        // A test that failed leaves no disorder.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self { folder: tempfile::tempdir().unwrap(), _alone: alone }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Waits until it is so.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(5));
    }
}
