//! Cancellation and progress of a run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use apportion_core::units::{Span, Time};

/// A token that cancels runs. Clones share the same state: keep one, give the other to a run.
///
/// A cancelled run ends at once with the finished replications. If a point has none, it has the measurements
/// of its first replication up to the cancellation.
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

    /// Cancels all runs that hold this token. The call only sets a flag, so a signal handler may make it.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether the token was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}

/// The simulated time, by point, at which the first replication was cut because the run was cancelled before
/// any replication had ended. It is measured up to this time unless the measured part had not begun.
#[derive(Debug, Default)]
pub(crate) struct Cuts(Mutex<BTreeMap<usize, Time>>);

impl Cuts {
    pub(crate) fn note(&self, point: usize, at: Time) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(point, at);
    }

    pub(crate) fn of(&self, point: usize) -> Option<Time> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&point).copied()
    }
}

/// The number of finished simulations, or runs of the lab: replications and their [perturbed
/// copies](crate::Run::phase_check).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Number of finished simulations over all points, including those from the cache.
    pub done: usize,
    /// Number of simulations taken from the [cache](crate::Run::cache).
    pub reused: usize,
    /// Number of all simulations of the run, over all points.
    pub total: usize,
    /// The completed fraction of running simulations, as a number of simulations: 0.5 for one that is halfway
    /// through its simulated time.
    pub partly: f64,
}

impl Progress {
    /// Returns the progress of a run of `total` simulations that has just begun.
    pub(crate) const fn none_of(total: usize) -> Self {
        Self { done: 0, reused: 0, total, partly: 0.0 }
    }

    /// Returns the completed fraction of the whole run, 0 to 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        if self.total == 0 { 1.0 } else { ((self.done as f64 + self.partly) / self.total as f64).min(1.0) }
    }
}

/// A callback for progress.
pub(crate) type OnProgress<'a> = Box<dyn Fn(Progress) + Send + Sync + 'a>;

/// Counts finished simulations and reports each one, and occasionally the progress of the running ones.
pub(crate) struct Counter<'a> {
    report: Option<&'a OnProgress<'a>>,
    /// The progress, and the fraction last reported.
    progress: Mutex<(Progress, f64)>,
}

/// The fraction of the whole run between reports. Chosen: a progress bar moves, and a terminal is not
/// flooded.
const STEP: f64 = 1e-3;

impl<'a> Counter<'a> {
    pub(crate) fn new(report: Option<&'a OnProgress<'a>>, total: usize) -> Self {
        Self { report, progress: Mutex::new((Progress::none_of(total), 0.0)) }
    }

    /// Counts `count` simulations from the cache.
    pub(crate) fn reuse(&self, count: usize) {
        if count > 0 {
            self.change(|progress| {
                progress.done += count;
                progress.reused += count;
            });
        }
    }

    /// Counts a finished simulation, `partly` of which was counted as [partly](Progress::partly) done.
    pub(crate) fn step(&self, partly: f64) {
        self.change(|progress| {
            progress.done += 1;
            progress.partly -= partly;
        });
    }

    /// Counts further progress of a running simulation.
    pub(crate) fn advance(&self, more: f64) {
        let mut guard = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (progress, reported) = &mut *guard;
        progress.partly += more;
        if let Some(report) = self.report.filter(|_| progress.part() >= *reported + STEP) {
            *reported = progress.part();
            report(*progress);
        }
    }

    /// Whether no simulation has ended so far.
    pub(crate) fn is_at_none(&self) -> bool {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).0.done == 0
    }

    /// Returns the number of simulations from the cache so far.
    pub(crate) fn reused(&self) -> usize {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).0.reused
    }

    fn change(&self, change: impl FnOnce(&mut Progress)) {
        // Held during the callback: reports of several threads arrive one at a time and in ascending order.
        let mut guard = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (progress, reported) = &mut *guard;
        change(progress);
        if let Some(report) = self.report {
            *reported = progress.part();
            report(*progress);
        }
    }
}

/// The progress of one simulation.
pub(crate) struct Course<'a> {
    counter: &'a Counter<'a>,
    /// The duration of the simulation, in simulated time.
    length: Span,
    /// The simulated time reached, in nanoseconds.
    reached: AtomicU64,
}

impl<'a> Course<'a> {
    pub(crate) const fn new(counter: &'a Counter<'a>, length: Span) -> Self {
        Self { counter, length, reached: AtomicU64::new(0) }
    }

    fn part(&self, nanos: u64) -> f64 {
        nanos as f64 / self.length.as_nanos().max(1) as f64
    }

    /// Records that the simulation has reached `now`.
    pub(crate) fn reach(&self, now: Time) {
        let before = self.reached.swap(now.as_nanos(), Ordering::Relaxed);
        self.counter.advance(self.part(now.as_nanos().saturating_sub(before)));
    }

    /// Records that the simulation has ended.
    pub(crate) fn end(&self) {
        self.counter.step(self.part(self.reached.load(Ordering::Relaxed)));
    }
}
