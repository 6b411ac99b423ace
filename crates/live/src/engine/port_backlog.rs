//! Whether frames enter by a port faster than the thread can move them.
//!
//! A port that is read empty now and then keeps up, at any rate. One that has frames left after each read for
//! longer than [`PATIENCE`] lags: frames wait in the kernel's buffer, until the kernel drops frames of all
//! flows alike.

use apportion_core::units::{Span, Time};

/// Maximum time for which a port may have frames left after each read. Chosen: when the system stopped the
/// process for 15 ms, a thread that is half busy works off the backlog within this time; and the ring of a
/// port (16 MiB, some 10,000 frames) holds it at half a million frames a second.
const PATIENCE: Span = Span::from_millis(20);

/// The backlog of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortBacklog {
    /// Time at which frames were first left, in an unbroken sequence of rounds that left some, and the last
    /// of these rounds.
    left: Option<(Time, u64)>,
}

impl PortBacklog {
    /// Notes that the port was read in this round, or could not be for want of buffers. `is_left`: more
    /// frames may wait.
    pub fn note(&mut self, now: Time, round: u64, is_left: bool) {
        let since = match self.left {
            // A port that was not read in the round before had no frames.
            Some((since, last)) if round <= last + 1 => since,
            _ => now,
        };
        self.left = is_left.then_some((since, round));
    }

    /// Whether frames enter faster than they can be moved.
    pub fn lags(&self, now: Time) -> bool {
        self.left.is_some_and(|(since, _)| now.since(since) > PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_lags_that_was_not_read_empty_for_twenty_milliseconds() {
        let (mut port, ms) = (PortBacklog::default(), Time::from_millis);
        let mut round = 0;
        let mut read = |at, is_left| {
            round += 1;
            port.note(ms(at), round, is_left);
            port.lags(ms(at))
        };
        assert_eq!([0, 10, 20, 21].map(|at| read(at, true)), [false, false, false, true]);
        assert!(!read(22, false));
        assert_eq!([23, 43, 44].map(|at| read(at, true)), [false, false, true]);
    }

    #[test]
    fn a_port_that_was_not_ready_was_empty() {
        let (mut port, ms) = (PortBacklog::default(), Time::from_millis);
        port.note(ms(0), 1, true);
        port.note(ms(100), 3, true);
        assert!(!port.lags(ms(100)));
        port.note(ms(121), 4, true);
        assert!(port.lags(ms(121)));
    }
}
