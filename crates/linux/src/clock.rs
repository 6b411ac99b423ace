//! Real time for disciplines: nanoseconds of the monotonic clock since the start.
//!
//! This is the only module that reads a clock (clock_gettime(2), CLOCK_MONOTONIC); all others get a [`Time`]
//! from it. Cost: 20 to 50 ns per reading.

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

    /// Time since the start.
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

/// Waits for `span`, or until a signal comes.
pub fn pause(span: Span) {
    let _ = ppoll(&mut [], Some(timespec(span)), None);
}

/// The time of day, since 1970 (CLOCK_REALTIME): for headers of files, not for measurements.
#[must_use]
pub fn time_of_day() -> Span {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).unwrap_or(TimeSpec::new(0, 0));
    Span::from_secs(now.tv_sec().try_into().unwrap_or(0)) + Span::from_nanos(now.tv_nsec() as u64)
}

/// Nanoseconds of the system's monotonic clock. All Linux machines have had it since 2.6.
fn monotonic() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap_or(TimeSpec::new(0, 0));
    // Neither part is negative: the clock starts at zero at boot.
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The span in the form of system calls.
#[must_use]
pub fn timespec(span: Span) -> TimeSpec {
    let nanos = span.as_nanos();
    // Both parts fit: 2^64 ns are 2^34 s.
    TimeSpec::new((nanos / 1_000_000_000) as i64, (nanos % 1_000_000_000) as i64)
}
