//! Whether more comes in by a port than the thread can move.
//!
//! A port that is read empty now and then keeps up, however much comes. One that has frames left after each read for longer
//! than [`PATIENCE`] does not: what waits in the kernel's buffer grows until the kernel drops frames of all flows alike.

use apportion_core::units::{Span, Time};

/// Chosen: what came while the system did not run the process for 15 ms is worked off within it by a thread that is half
/// busy; and the ring of a port (16 MiB, some 10,000 frames) takes half a million frames a second for as long.
const PATIENCE: Span = Span::from_millis(20);

/// Of one port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortBacklog {
    /// The first and the last of the rounds in succession after which frames were left, and when the first was.
    left: Option<(Time, u64)>,
}

impl PortBacklog {
    /// Notes that the port was read in this round, or could not be for want of buffers. `is_left`: more may wait.
    pub fn note(&mut self, now: Time, round: u64, is_left: bool) {
        let since = match self.left {
            // A port that was not read in the round before had nothing to read.
            Some((since, last)) if round <= last + 1 => since,
            _ => now,
        };
        self.left = is_left.then_some((since, round));
    }

    /// Whether more comes in than can be moved.
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
