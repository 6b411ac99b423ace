//! Stopping a run from outside, and following it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use apportion_core::units::{Span, Time};

/// A token that stops runs. Clones are the same token: keep one, give the other to a run.
///
/// A cancelled run ends at once with what is finished; a simulation of which nothing is, with what its first replication measured until then.
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

/// Where the first replication of points was cut, since the run was cancelled when none had ended: in simulated time, by the point. It
/// is measured up to there unless that is before the measured part.
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

/// How many simulations, or runs of the lab, have ended: replications and their [perturbed copies](crate::Run::phase_check).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Those that have ended, over all points, and those that were there before.
    pub done: usize,
    /// Those that were there before, in the [cache](crate::Run::cache).
    pub reused: usize,
    /// Those of the whole run, over all points.
    pub total: usize,
    /// What is done of those that have begun and not ended, as a number of simulations: 0.5 of one that is halfway through its simulated
    /// time.
    pub partly: f64,
}

impl Progress {
    /// Of so many, none has ended.
    pub(crate) const fn none_of(total: usize) -> Self {
        Self { done: 0, reused: 0, total, partly: 0.0 }
    }

    /// The part of the whole run that is done, 0 to 1.
    #[must_use]
    pub fn part(&self) -> f64 {
        if self.total == 0 { 1.0 } else { ((self.done as f64 + self.partly) / self.total as f64).min(1.0) }
    }
}

/// A callback for progress.
pub(crate) type OnProgress<'a> = Box<dyn Fn(Progress) + Send + Sync + 'a>;

/// Counts them and reports each, and now and then how far those are that run.
pub(crate) struct Counter<'a> {
    report: Option<&'a OnProgress<'a>>,
    /// And the part of which was reported.
    progress: Mutex<(Progress, f64)>,
}

/// Part of the whole run after which there is another report. Chosen: a bar moves, and a terminal is not flooded.
const STEP: f64 = 1e-3;

impl<'a> Counter<'a> {
    pub(crate) fn new(report: Option<&'a OnProgress<'a>>, total: usize) -> Self {
        Self { report, progress: Mutex::new((Progress::none_of(total), 0.0)) }
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

    /// One more has ended, of which so much was counted as [partly](Progress::partly) done.
    pub(crate) fn step(&self, partly: f64) {
        self.change(|progress| {
            progress.done += 1;
            progress.partly -= partly;
        });
    }

    /// So much more of one is done.
    pub(crate) fn advance(&self, more: f64) {
        let mut guard = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (progress, reported) = &mut *guard;
        progress.partly += more;
        if let Some(report) = self.report.filter(|_| progress.part() >= *reported + STEP) {
            *reported = progress.part();
            report(*progress);
        }
    }

    /// Whether none has ended so far.
    pub(crate) fn is_at_none(&self) -> bool {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).0.done == 0
    }

    /// How many were there before, so far.
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

/// How far one simulation is.
pub(crate) struct Course<'a> {
    counter: &'a Counter<'a>,
    /// Its simulated time.
    length: Span,
    /// Nanoseconds.
    reached: AtomicU64,
}

impl<'a> Course<'a> {
    pub(crate) const fn new(counter: &'a Counter<'a>, length: Span) -> Self {
        Self { counter, length, reached: AtomicU64::new(0) }
    }

    fn part(&self, nanos: u64) -> f64 {
        nanos as f64 / self.length.as_nanos().max(1) as f64
    }

    /// Its simulated time is that far.
    pub(crate) fn reach(&self, now: Time) {
        let before = self.reached.swap(now.as_nanos(), Ordering::Relaxed);
        self.counter.advance(self.part(now.as_nanos().saturating_sub(before)));
    }

    /// It has ended.
    pub(crate) fn end(&self) {
        self.counter.step(self.part(self.reached.load(Ordering::Relaxed)));
    }
}
