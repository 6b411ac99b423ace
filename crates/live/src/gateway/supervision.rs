//! Threads that are started again when they fail, and the watchdog of systemd.
//!
//! The thread that moves packets is the process: if it fails, the process ends with a message and a status. The others serve
//! it, and a failure of theirs must not cost the link.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{io, thread};

use apportion_core::units::{Span, Time};
use apportion_linux::clock::pause;
use sd_notify::NotifyState;

/// Before a thread is started again. Chosen: long enough that one that fails at once does not take a processor.
const PAUSE: Span = Span::from_secs(1);
/// Silence of the control thread after which the watchdog is not fed. Chosen: it makes a round each second, and a disk may take
/// seconds to read the configuration file.
const SILENCE: Span = Span::from_secs(20);

/// Runs `work` on a thread called `name` until it returns without an error; again when it fails or panics. `restarts`
/// counts how often.
///
/// # Errors
/// If the system has no more threads.
pub(crate) fn supervise<E: std::fmt::Display>(
    name: &'static str,
    restarts: Arc<AtomicU64>,
    mut work: impl FnMut() -> Result<(), E> + Send + 'static,
) -> io::Result<()> {
    let again = move || {
        loop {
            match catch_unwind(AssertUnwindSafe(&mut work)) {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    tracing::error!(thread = name, %error, "a thread failed and is started again");
                }
                Err(_) => tracing::error!(thread = name, "a thread panicked and is started again"),
            }
            restarts.fetch_add(1, Ordering::Relaxed);
            pause(PAUSE);
        }
    };
    thread::Builder::new().name(name.to_owned()).spawn(again).map(drop)
}

/// Notifies systemd, if it started this process with a notification socket (sd_notify(3)). A failure is ignored.
pub(crate) fn notify(state: NotifyState<'_>) {
    let _ = sd_notify::notify(&[state]);
}

/// Tells systemd's watchdog that the process works, as long as its control thread does as well (`WatchdogSec`,
/// systemd.service(5)).
#[derive(Debug)]
pub(crate) struct Watchdog {
    /// How often; none without a watchdog.
    period: Option<Span>,
    next: Time,
    /// The control thread's count of its rounds, and when it last changed.
    rounds: (u64, Time),
}

impl Watchdog {
    /// As the environment asks for, from `now` on.
    #[must_use]
    pub fn new(now: Time) -> Self {
        // Half of the limit, as sd_watchdog_enabled(3) advises.
        let period = sd_notify::watchdog_enabled().map(|limit| Span::from_nanos(limit.as_nanos() as u64 / 2));
        Self { period, next: now, rounds: (0, now) }
    }

    /// The control thread has made so many rounds at `now`.
    pub fn feed(&mut self, now: Time, rounds: u64) {
        if rounds != self.rounds.0 {
            self.rounds = (rounds, now);
        }
        let Some(period) = self.period else { return };
        if now >= self.next && now.since(self.rounds.1) < SILENCE {
            notify(NotifyState::Watchdog);
            self.next = now + period;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_fails_or_panics_is_started_again() {
        let restarts = Arc::new(AtomicU64::new(0));
        let (sender, ended) = std::sync::mpsc::channel();
        let mut runs = 0;
        supervise("test", Arc::clone(&restarts), move || {
            runs += 1;
            match runs {
                1 => Err("first"),
                2 => panic!("second"),
                _ => sender.send(runs).map_err(|_| "nobody waits"),
            }
        })
        .unwrap();
        assert_eq!(ended.recv_timeout(std::time::Duration::from_secs(10)), Ok(3));
        assert_eq!(restarts.load(Ordering::Relaxed), 2);
    }
}
