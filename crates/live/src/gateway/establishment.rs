//! Established flows: they have priority when the gateway is overloaded, and hosts of their own where the
//! queue divides among hosts.
//!
//! A packet *qualifies* unless it opens or resets a TCP connection: hosts send such packets in answer to
//! forged ones. A flow is established once it is answered, that is once qualifying packets came in both
//! directions. Streams may have no answer, or one between other ports, so a flow is also established once it
//! has sent for [`TRIAL`] without a [`PAUSE`].

use apportion_core::units::{Span, Time};

/// Time after which an unanswered flow is established. Chosen: most floods overload a gateway sooner, and an
/// overloaded gateway admits few of their packets.
const TRIAL: Span = Span::from_secs(10);
/// Silence that ends the trial. Chosen: a stream sends several packets a second. Keeping 40,000 flows in
/// trial takes as many packets a second.
const PAUSE: Span = Span::from_secs(1);

/// The progress of a flow towards establishment, in one direction.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Establishment {
    /// Arrival of the first packet after the last pause.
    since: Time,
    has_qualified: bool,
    is_answered: bool,
}

impl Establishment {
    /// A flow whose first packet arrived at `now`.
    pub const fn new(now: Time) -> Self {
        Self { since: now, has_qualified: false, is_answered: false }
    }

    /// Notes a packet that arrived at `now` after this silence. Returns whether it is the first that
    /// `qualifies`.
    pub fn arrived(&mut self, now: Time, silence: Span, qualifies: bool) -> bool {
        if silence >= PAUSE {
            self.since = now;
        }
        let is_first = qualifies && !self.has_qualified;
        self.has_qualified |= qualifies;
        is_first
    }

    /// Whether a qualifying packet came.
    pub const fn has_qualified(&self) -> bool {
        self.has_qualified
    }

    /// Notes that qualifying packets came in both directions.
    pub const fn answered(&mut self) {
        self.is_answered = true;
    }

    /// Whether qualifying packets came in both directions.
    pub const fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// Whether the flow is established at `now`, with its last packet `silence` earlier.
    pub fn is_established(&self, now: Time, silence: Span) -> bool {
        self.is_answered || silence < PAUSE && now.since(self.since) >= TRIAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_answer_is_established_by_ten_seconds_without_a_pause() {
        let (mut flow, ms) = (Establishment::new(Time::ZERO), Time::from_millis);
        for at in (900..=9_900).step_by(900) {
            flow.arrived(ms(at), Span::from_millis(900), true);
            assert!(!flow.is_established(ms(at), Span::ZERO));
        }
        assert!(flow.is_established(ms(10_000), Span::from_millis(100)));
        assert!(!flow.is_established(ms(11_000), Span::from_millis(1_100)));
        flow.arrived(ms(11_000), Span::from_millis(1_100), true);
        assert!(!flow.is_established(ms(20_999), Span::ZERO) && flow.is_established(ms(21_000), Span::ZERO));
    }

    #[test]
    fn a_flow_that_is_answered_is_established_however_long_it_is_silent() {
        let mut flow = Establishment::new(Time::ZERO);
        let packets = [false, true, true, false];
        let firsts = packets.map(|qualifies| flow.arrived(Time::ZERO, Span::ZERO, qualifies));
        assert_eq!((firsts, flow.has_qualified()), ([false, true, false, false], true));
        flow.answered();
        assert!(flow.is_established(Time::from_secs(50), Span::from_secs(50)));
    }
}
