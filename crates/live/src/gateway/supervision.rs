//! Restarts threads that fail, and serves the watchdog of systemd.
//!
//! The thread that moves packets is the process: if it fails, the process ends with a message and a status.
//! The other threads serve it, and their failures must not cost the link.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, thread};

use apportion_core::units::{Span, Time};
use apportion_linux::clock::pause;
use sd_notify::NotifyState;

/// Pause before a thread is restarted. Chosen: long enough that one that fails at once does not occupy a
/// processor.
const PAUSE: Span = Span::from_secs(1);
/// Silence of the control thread after which the watchdog gets no keep-alive. Chosen: the thread makes a
/// round each second, and a disk may take seconds to read the configuration file.
const SILENCE: Span = Span::from_secs(20);

/// Runs `work` on a thread called `name` until it returns without an error, and restarts it when it fails or
/// panics. `restarts` counts how often.
///
/// # Errors
/// If the system has no more threads.
pub(crate) fn supervise<E: std::fmt::Display>(
    name: &'static str,
    restarts: Arc<AtomicU64>,
    work: impl FnMut() -> Result<(), E> + Send + 'static,
) -> io::Result<()> {
    let keep = move || keep_running(name, &restarts, work);
    thread::Builder::new().name(name.to_owned()).spawn(keep).map(drop)
}

/// Runs `work` on this thread until it returns without an error.
fn keep_running<E: std::fmt::Display>(
    name: &str,
    restarts: &AtomicU64,
    mut work: impl FnMut() -> Result<(), E>,
) {
    loop {
        match catch_unwind(AssertUnwindSafe(&mut work)) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => {
                tracing::error!(thread = name, %error, "a thread failed and is started again");
            }
            Err(panic) => {
                let error = message(&*panic);
                tracing::error!(thread = name, error, "a thread panicked and is started again");
            }
        }
        restarts.fetch_add(1, Ordering::Relaxed);
        pause(PAUSE);
    }
}

/// Logs panics of any thread from now on, in place of plain text on standard error.
pub fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let at = panic.location().map(ToString::to_string);
        tracing::error!(at, error = message(panic.payload()), "a defect: a thread panicked");
    }));
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// Notifies systemd, if it started this process with a notification socket (sd_notify(3)). A failure is ignored.
pub(crate) fn notify(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

/// Sends keep-alives to systemd's watchdog while the control thread works too (`WatchdogSec`,
/// systemd.service(5)).
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// Interval of keep-alives; none without a watchdog.
    period: Option<Span>,
    next: Time,
    /// The control thread's count of its rounds, and when it last changed.
    rounds: (u64, Time),
}

impl Watchdog {
    /// A watchdog by the environment, from `now` on.
    #[must_use]
    pub fn new(now: Time) -> Self {
        // sd_watchdog_enabled(3) advises half of the limit. A quarter, because the thread asks only now and
        // then.
        let period = sd_notify::watchdog_enabled().map(|limit| Span::from_nanos(limit.as_nanos() as u64 / 4));
        Self { period, next: now, rounds: (0, now) }
    }

    /// Sends a keep-alive if one is due at `now`, when the control thread has made `rounds` rounds.
    pub fn feed(&mut self, now: Time, rounds: u64) {
        if self.is_due(now, rounds) {
            notify(NotifyState::Watchdog);
        }
    }

    /// Whether a keep-alive is due at `now`; if so, it counts as sent.
    fn is_due(&mut self, now: Time, rounds: u64) -> bool {
        if rounds != self.rounds.0 {
            self.rounds = (rounds, now);
        }
        let is_due = now >= self.next && now.since(self.rounds.1) < SILENCE;
        let Some(period) = self.period.filter(|_| is_due) else { return false };
        self.next = now + period;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::log::logged;

    #[test]
    fn work_that_fails_or_panics_is_done_again_counted_and_logged() {
        let (restarts, mut runs) = (AtomicU64::new(0), 0);
        let lines = logged(|| {
            keep_running("test", &restarts, || {
                runs += 1;
                match runs {
                    1 => Err("first"),
                    2 => panic!("number {runs}"),
                    _ => Ok(()),
                }
            });
        });
        assert_eq!((runs, restarts.into_inner()), (3, 2));
        let expected = "ERROR a thread failed and is started again thread=\"test\" error=first\n\
                        ERROR a thread panicked and is started again thread=\"test\" error=\"number 2\"\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_watchdog_is_not_fed_while_the_control_thread_is_silent() {
        let start = Time::from_secs(5);
        let mut watchdog = Watchdog { period: Some(Span::from_secs(3)), next: start, rounds: (0, start) };
        let mut fed = |ms, rounds| watchdog.is_due(start + Span::from_millis(ms), rounds);
        assert!(fed(0, 7) && !fed(2_999, 8) && fed(3_000, 8));
        // The last round was seen at 2.999 s; 20 s of silence later the keep-alives end.
        assert!(fed(22_998, 8) && !fed(25_998, 8) && !fed(60_000, 8));
        assert!(fed(60_001, 9) && !fed(60_002, 10));
    }
}
