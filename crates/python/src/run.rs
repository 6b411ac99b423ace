//! Runs a scenario while Python stays responsive.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use apportion::{Cache, Cancel, Results, Retain, Run, Scenario};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::discipline::Session;
use crate::errors::of_run;
use crate::events::Callbacks;

/// Interval of checks for signals and reports of progress. Chosen: an interrupt is to take effect within
/// 0.2 s.
const TICK: Duration = Duration::from_millis(50);

/// Options of a run.
pub struct Options<'py, 'a> {
    pub seeds: u64,
    pub jobs: usize,
    pub phase_check: Option<bool>,
    pub force: bool,
    /// Called with the number of finished simulations and their total.
    pub progress: Option<Bound<'py, PyAny>>,
    /// Functions called during the run.
    pub callbacks: Callbacks,
    pub folder: Option<PathBuf>,
    /// Cache from which finished simulations are taken, and in which new ones are kept.
    pub cache: Option<&'a Cache>,
    /// Whether nothing is simulated.
    pub only_cached: bool,
}

/// The part of results to hold in memory.
pub fn retain(scenario: &Scenario, seeds: u64) -> Retain {
    Retain::of(seeds.saturating_mul(scenario.points().len() as u64))
}

/// Runs a scenario. Returns the results, and whether an interrupt ended it early.
///
/// # Errors
/// The scenario cannot be run; the exception of `progress` or of a signal handler; the interrupt, if nothing
/// had ended before or on a second one.
pub fn simulate(py: Python<'_>, scenario: &Scenario, options: Options<'_, '_>) -> PyResult<(Results, bool)> {
    let Options { seeds, jobs, phase_check, force, progress, callbacks, folder, cache, only_cached } =
        options;
    let cancel = Cancel::new();
    if only_cached {
        cancel.cancel();
    }
    let counts = Counts::default();
    // Disciplines and congestion controls in Python share the interpreter's lock: a second thread would only
    // wait for it. Callbacks come one at a time.
    let in_python = scenario.has_own_code() || !callbacks.are_none();
    let jobs = if in_python { 1 } else { jobs };
    let run = Run::new(scenario)
        .seeds(seeds)
        .jobs(jobs)
        .force(force)
        .cancel(&cancel)
        .retain(retain(scenario, seeds));
    let run = phase_check.into_iter().fold(run, Run::phase_check);
    let run = folder.into_iter().fold(run, Run::folder);
    let run = cache.into_iter().fold(run, |run, cache| run.cache(cache, Cache::MOST));
    let run = run.progress(|progress| counts.set(progress));
    let session = Session::new(&cancel);
    let run = callbacks.add(run, &session);
    // Attach the thread to the interpreter for the whole run: attaching per packet would take longer than the
    // packet.
    let work = || match in_python {
        true => Python::attach(|py| py.detach(|| session.during(|| run.stage()))),
        false => run.stage(),
    };
    let (result, stopped) = watched(py, &cancel, || counts.report(progress.as_ref()), work);
    if let Some(error) = session.failure() {
        return Err(error);
    }
    let staged = result.map_err(of_run)?;
    let is_early = match stopped {
        None => false,
        Some(Stop::Interrupt(_)) if !staged.results().is_empty() => true,
        // A run that raises leaves no folder.
        Some(Stop::Interrupt(error) | Stop::Error(error)) => return Err(error),
    };
    let (results, stopped) = watched(py, &cancel, || Ok(()), || staged.publish());
    let results = results.map_err(of_run)?;
    match stopped {
        None => Ok((results, is_early)),
        Some(Stop::Interrupt(_)) if !is_early => Ok((results, true)),
        Some(stop) => Err(stop.into()),
    }
}

/// Progress, written by the threads of the run and read by the thread of Python.
#[derive(Default)]
pub struct Counts {
    done: AtomicUsize,
    total: AtomicUsize,
    /// Progress of the whole, also within simulations.
    thousandths: AtomicUsize,
    reported: AtomicUsize,
    moved: AtomicUsize,
}

impl Counts {
    pub fn set(&self, progress: apportion::Progress) {
        self.total.store(progress.total, Ordering::Relaxed);
        self.thousandths.store((progress.part() * 1e3) as usize, Ordering::Relaxed);
        self.done.store(progress.done, Ordering::Release);
    }

    /// Calls `progress` if there is something new.
    /// # Errors
    /// The exception of `progress`.
    pub fn report(&self, progress: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let done = self.done.load(Ordering::Acquire);
        let thousandths = self.thousandths.load(Ordering::Relaxed);
        let is_new = self.reported.swap(done, Ordering::Relaxed) != done;
        let has_moved = self.moved.swap(thousandths, Ordering::Relaxed) != thousandths;
        if let Some(progress) = progress.filter(|_| is_new || has_moved) {
            progress.call1((done, self.total.load(Ordering::Relaxed), thousandths as f64 / 1e3))?;
        }
        Ok(())
    }
}

/// Reason for stopping a run.
pub enum Stop {
    /// The first interrupt: finished simulations are kept.
    Interrupt(PyErr),
    /// Anything else, or a second interrupt.
    Error(PyErr),
}

impl From<Stop> for PyErr {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Interrupt(error) | Stop::Error(error) => error,
        }
    }
}

/// Runs `work` in its own thread while this one, without the interpreter's lock, handles signals and calls
/// `each`. An exception of a signal handler or of `each` cancels the work and is returned with its result.
pub fn watched<T: Send>(
    py: Python<'_>,
    cancel: &Cancel,
    each: impl Fn() -> PyResult<()>,
    work: impl FnOnce() -> T + Send,
) -> (T, Option<Stop>) {
    thread::scope(|scope| {
        let (at_end, ended) = channel::<()>();
        let worker = scope.spawn(move || {
            let result = work();
            drop(at_end);
            result
        });
        let mut stopped = None;
        let mut ended = Some(ended);
        while let Some(receiver) = ended.take() {
            ended = py.detach(move || match receiver.recv_timeout(TICK) {
                Err(RecvTimeoutError::Timeout) => Some(receiver),
                Ok(()) | Err(RecvTimeoutError::Disconnected) => None,
            });
            let raised = py.check_signals().and_then(|()| each());
            if let Err(error) = raised {
                cancel.cancel();
                let is_first = stopped.is_none() && error.is_instance_of::<PyKeyboardInterrupt>(py);
                stopped = Some(if is_first { Stop::Interrupt(error) } else { Stop::Error(error) });
            }
        }
        let result = py.detach(|| worker.join());
        (result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), stopped)
    })
}
