//! A reduction that proves needless is undone: the Eifel algorithm (RFC 3522, RFC 4015), by timestamps.
//!
//! Deviations, as in Linux: every ACK of new data until the end of recovery is examined, not only the first,
//! and the whole window is restored at once, not as slow start would open it.

use apportion_core::units::Time;

use crate::tcp::segment::Segment;

/// The window before a loss was found, until it is known whether the loss was real. Names as in RFC 4015
/// section 3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub cwnd: f64,
    /// pipe_prev.
    pub ssthresh: f64,
    /// RetransmitTS: the timestamp of the first retransmission since then.
    retransmit_ts: Option<u32>,
}

impl Before {
    /// Stores a window that is about to be reduced because of a loss.
    pub(super) const fn new(cwnd: f64, ssthresh: f64) -> Self {
        Self { cwnd, ssthresh, retransmit_ts: None }
    }

    /// Notes a retransmission.
    pub(super) fn note_retransmission(&mut self, now: Time) {
        self.retransmit_ts.get_or_insert(Segment::timestamp_at(now));
    }

    /// Whether an ACK of new data shows that nothing was lost: it echoes a timestamp from before the first
    /// retransmission, so the first transmission has arrived (RFC 3522 section 3.2 step (4)).
    pub(super) fn was_needless(&self, segment: &Segment) -> bool {
        // Timestamps wrap (RFC 7323 section 5.2).
        let earlier = |ts| segment.timestamp.wrapping_sub(ts) > u32::MAX / 2;
        segment.timestamp != 0 && self.retransmit_ts.is_some_and(earlier)
    }
}
