//! Stopping a run from outside, and following it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A token that stops runs. Clones are the same token: keep one, give the other to a run.
///
/// A cancelled run ends at once with what is finished.
///
/// ```
/// let cancel = apportion::Cancel::new();
/// let other = cancel.clone();
/// std::thread::spawn(move || other.cancel()).join().unwrap();
/// assert!(cancel.is_cancelled());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// A token that is not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels all runs that hold this token. It only sets a flag, so a signal handler may call it.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// How many simulations, or runs of the lab, have ended: replications and their [perturbed copies](crate::Run::phase_check).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Those that have ended, over all points, and those that were there before.
    pub done: usize,
    /// Those that were there before, in the [cache](crate::Run::cache).
    pub reused: usize,
    /// Those of the whole run, over all points.
    pub total: usize,
}

/// A callback for progress.
pub(crate) type OnProgress<'a> = Box<dyn Fn(Progress) + Send + Sync + 'a>;

/// Counts them and reports each.
pub(crate) struct Counter<'a> {
    report: Option<&'a OnProgress<'a>>,
    progress: Mutex<Progress>,
}

impl<'a> Counter<'a> {
    pub(crate) fn new(report: Option<&'a OnProgress<'a>>, total: usize) -> Self {
        Self { report, progress: Mutex::new(Progress { done: 0, reused: 0, total }) }
    }

    /// So many were there before.
    pub(crate) fn reuse(&self, count: usize) {
        if count > 0 {
            self.change(|progress| {
                progress.done += count;
                progress.reused += count;
            });
        }
    }

    /// One more has ended.
    pub(crate) fn step(&self) {
        self.change(|progress| progress.done += 1);
    }

    /// How many were there before, so far.
    pub(crate) fn reused(&self) -> usize {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).reused
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        // Held during the callback: reports of several threads arrive one at a time and in ascending order.
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut progress);
        if let Some(report) = self.report {
            report(*progress);
        }
    }
}
