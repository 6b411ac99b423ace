//! A folder and exclusive use of the machine for one test.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Timeout on a busy machine for steps that are immediate. No process here ends by itself before.
pub const PATIENCE: Duration = Duration::from_secs(10);

pub struct Place {
    folder: TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Place {
    /// Waits for the other tests: two runs in real time disturb each other.
    pub fn new() -> Self {
        static ALONE: Mutex<()> = Mutex::new(());
        // A failed test leaves no inconsistent state.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Self { folder: tempfile::tempdir().unwrap(), _alone: alone }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Waits until `is_so` holds.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        sleep(Duration::from_millis(5));
    }
}
