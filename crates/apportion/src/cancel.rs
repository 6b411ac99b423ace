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

/// How many simulations, or runs of the lab, have ended: replications and their [twins](crate::Run::perturb).
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
    done: Mutex<usize>,
    reused: usize,
    total: usize,
}

impl<'a> Counter<'a> {
    /// Of `total` there are `reused` already, which is reported unless there are none.
    pub(crate) fn new(report: Option<&'a OnProgress<'a>>, reused: usize, total: usize) -> Self {
        if let Some(report) = report.filter(|_| reused > 0) {
            report(Progress { done: reused, reused, total });
        }
        Self { report, done: Mutex::new(reused), reused, total }
    }

    /// One more has ended.
    pub(crate) fn step(&self) {
        // Held during the callback: reports of several threads arrive one at a time and in ascending order.
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += 1;
        if let Some(report) = self.report {
            report(Progress { done: *done, reused: self.reused, total: self.total });
        }
    }
}
