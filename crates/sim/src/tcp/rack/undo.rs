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
}

/// The retransmissions since the last time at which no outstanding segment had been sent again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resent {
    /// RetransmitTS of RFC 3522 section 3.2: the timestamp of the first of them. A later reduction keeps it, so
    /// that the arrival of an older retransmission is not taken for that of a first transmission.
    retransmit_ts: u32,
    /// The highest end of them.
    pub end: u64,
}

impl Resent {
    /// These retransmissions, if there are any, and one more, up to `end`.
    pub(super) fn with(others: Option<Self>, now: Time, end: u64) -> Self {
        let this = Self { retransmit_ts: Segment::timestamp_at(now), end };
        others.map_or(this, |others| Self { end: others.end.max(end), ..others })
    }

    /// Whether an ACK of new data shows that nothing was lost: it echoes a timestamp from before the first
    /// retransmission, so the first transmission has arrived (RFC 3522 section 3.2 step (4)).
    pub(super) fn is_after(&self, segment: &Segment) -> bool {
        // Timestamps wrap (RFC 7323 section 5.2).
        segment.timestamp != 0 && segment.timestamp.wrapping_sub(self.retransmit_ts) > u32::MAX / 2
    }
}
