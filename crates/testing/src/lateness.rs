//! Whether the machine has time for tests that judge rates and times.
//!
//! A thread repeatedly sleeps for a millisecond, and sums up how late it wakes. The gateways, senders and
//! receivers of a test are as late. Those that need a core for longer wait for it even if a sleeping thread
//! wakes in time: when no core is idle.
#![expect(clippy::disallowed_methods, reason = "how late threads wake is a matter of real time")]

use std::fmt;
use std::fs;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Length of a sleep.
const SLEEP: Duration = Duration::from_millis(1);
/// Lateness not counted. Timers of an idle machine are late by up to a tenth of it.
const GRACE: Duration = Duration::from_millis(1);
/// Limits of mean and maximum lateness, above which a machine is busy. An idle machine with one case at a
/// time reaches a tenth of the first, and 6 ms.
const BUSY: (f64, Duration) = (0.02, Duration::from_millis(20));
/// Minimum idle fraction of the cores' time, below which a machine is busy.
const LEAST_IDLE: f64 = 0.1;

/// Lateness of threads, and idleness of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Lateness {
    /// Fraction of the time that passed beyond [`GRACE`] before the thread woke.
    share: f64,
    /// Maximum time beyond the sleep.
    worst: Duration,
    /// Fraction of the time of all cores in which nothing ran.
    idle: f64,
}

impl Lateness {
    /// Whether the machine was too busy for bounds on rates and times.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.share > BUSY.0 || self.worst > BUSY.1 || self.idle < LEAST_IDLE
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { share, worst, idle } = self;
        write!(
            f,
            "threads woke up to {} ms late, {:.1} % of the time, and cores were idle for {:.0} %",
            worst.as_millis(),
            100.0 * share,
            100.0 * idle
        )
    }
}

/// The sleeping thread.
#[derive(Debug)]
pub struct Watch {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Lateness>,
}

impl Watch {
    /// Starts to measure.
    #[must_use]
    pub fn start() -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let thread = thread::spawn({
            let ends = Arc::clone(&ends);
            move || until(&ends)
        });
        Self { ends, thread }
    }

    /// Lateness since the start.
    #[must_use]
    pub fn end(self) -> Lateness {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic))
    }
}

fn until(ends: &AtomicBool) -> Lateness {
    let (since, before) = (Instant::now(), Cores::now());
    let (mut late, mut worst) = (Duration::ZERO, Duration::ZERO);
    while !ends.load(Ordering::Relaxed) {
        let begun = Instant::now();
        thread::sleep(SLEEP);
        let over = begun.elapsed().saturating_sub(SLEEP);
        late += over.saturating_sub(GRACE);
        worst = worst.max(over);
    }
    let share = late.as_secs_f64() / since.elapsed().as_secs_f64();
    Lateness { share, worst, idle: Cores::now().idle_since(before) }
}

/// Ticks of all cores since boot.
#[derive(Clone, Copy, Debug, Default)]
struct Cores {
    idle: u64,
    all: u64,
}

impl Cores {
    /// Reads the ticks; zeros where the system does not tell.
    fn now() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, steal; the first includes guests (proc_stat(5)).
        let ticks =
            stat.lines().next().into_iter().flat_map(|line| line.split_ascii_whitespace().skip(1).take(8));
        let ticks: Vec<u64> = ticks.filter_map(|ticks| ticks.parse().ok()).collect();
        Self { idle: ticks.iter().skip(3).take(2).sum(), all: ticks.iter().sum() }
    }

    fn idle_since(self, before: Self) -> f64 {
        let (idle, all) = (self.idle.saturating_sub(before.idle), self.all.saturating_sub(before.all));
        if all == 0 { 1.0 } else { idle as f64 / all as f64 }
    }
}
