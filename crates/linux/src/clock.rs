//! Real time as the disciplines count it: nanoseconds of the monotonic clock since the start.
//!
//! The only place that reads a clock (clock_gettime(2), CLOCK_MONOTONIC); everything else is handed a
//! [`Time`]. Cost: 20 to 50 ns for a reading.

use apportion_core::units::{Span, Time};
use nix::poll::ppoll;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// A clock that started at [`Time::ZERO`].
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: u64,
}

impl Clock {
    /// A clock that starts now.
    #[must_use]
    pub fn start() -> Self {
        Self { start: monotonic() }
    }

    /// How long it has been running.
    #[must_use]
    pub fn now(&self) -> Time {
        Time::from_nanos(monotonic().saturating_sub(self.start))
    }

    /// The time until `deadline`; zero if it has passed.
    #[must_use]
    pub fn until(&self, deadline: Time) -> Span {
        deadline.since(self.now())
    }
}

/// Waits for `span`; less if a signal comes.
pub fn pause(span: Span) {
    let _ = ppoll(&mut [], Some(timespec(span)), None);
}

/// The time of day, from 1970 on (CLOCK_REALTIME): for headers of files, and nothing that is measured.
#[must_use]
pub fn time_of_day() -> Span {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap_or(TimeSpec::new(0, 0));
    Span::from_secs(now.tv_sec().try_into().unwrap_or(0)) + Span::from_nanos(now.tv_nsec() as u64)
}

/// Nanoseconds of the system's monotonic clock. Linux has had it on every machine since 2.6.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0));
    // Neither is negative: the clock starts at zero when the machine does.
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// As system calls take it.
#[must_use]
pub fn timespec(span: Span) -> TimeSpec {
    let nanos = span.as_nanos();
    // Both fit: 2^64 ns are 2^34 s.
    TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64)
}
