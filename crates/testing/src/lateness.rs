//! Whether the machine wakes threads in time, for tests that judge rates and times.
//!
//! A thread sleeps for a millisecond again and again, and sums up how late it wakes. What is so late delays the gateways, senders and
//! receivers of a test as much.
#![expect(clippy::disallowed_methods, reason = "how late threads wake is a matter of real time")]

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long the thread sleeps.
const SLEEP: Duration = Duration::from_millis(1);
/// Timers of an idle machine are late by up to a tenth of it.
const GRACE: Duration = Duration::from_millis(1);
/// A machine that is later than either is busy. An idle one with one case at a time reaches a tenth of the first, and 6 ms.
const BUSY: (f64, Duration) = (0.02, Duration::from_millis(20));

/// How late threads woke.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    /// The part of the time that passed beyond [`GRACE`] before the thread woke.
    share: f64,
    /// The longest time beyond what it slept for.
    worst: Duration,
}

impl Lateness {
    /// Whether the machine was too busy for bounds on rates and times.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.share > BUSY.0 || self.worst > BUSY.1
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { share, worst } = self;
        write!(f, "threads woke up to {} ms late, {:.1} % of the time", worst.as_millis(), 100.0 * share)
    }
}

/// The thread.
#[derive(Debug)]
pub struct Watch {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Lateness>,
}

impl Watch {
    /// From now on it is seen how late threads wake.
    #[must_use]
    pub fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let ends = Arc::clone(&ends);
            move || until(&ends)
        });
        Self { ends, thread }
    }

    /// How late threads woke since it was started.
    #[must_use]
    pub fn end(self) -> Lateness {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

fn until(ends: &AtomicBool) -> Lateness {
    let (since, mut late, mut worst) = (Instant::now(), Duration::ZERO, Duration::ZERO);
    while !ends.load(Ordering::Relaxed) {
        let begun = Instant::now();
        thread::sleep(SLEEP);
        let over = begun.elapsed().saturating_sub(SLEEP);
        late += over.saturating_sub(GRACE);
        worst = worst.max(over);
    }
    Lateness { share: late.as_secs_f64() / since.elapsed().as_secs_f64(), worst }
}
