//! A reduction that proves needless is undone: the Eifel algorithm (RFC 3522, RFC 4015), by timestamps.
//!
//! Deviations, as in Linux: every ACK of new data until the end of recovery is looked at, not the first alone, and the
//! whole window is given back at once, not as slow start would open it.

use apportion_core::units::Time;

use super::State;
use crate::tcp::segment::Segment;
use crate::tcp::sender::Sender;

/// The window before a loss was found, until it is known whether there was one. Names as in RFC 4015 section 3.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    cwnd: f64,
    /// pipe_prev.
    ssthresh: f64,
    /// RetransmitTS: the timestamp of the first retransmission since.
    retransmit_ts: Option<u32>,
}

impl Sender {
    /// The window is about to be reduced because of a loss.
    pub(super) fn remember_window(&mut self) {
        let (cwnd, ssthresh) = (self.congestion.cwnd, self.congestion.ssthresh);
        let before = Before { cwnd, ssthresh, retransmit_ts: None };
        self.rack.before = self.params.timestamps.then(|| Box::new(before));
    }

    /// Something is sent again.
    pub(super) fn note_retransmission(&mut self, now: Time) {
        if let Some(before) = &mut self.rack.before {
            before.retransmit_ts.get_or_insert(Segment::timestamp_at(now));
        }
    }

    /// An ACK of new data. If it echoes a timestamp from before the first retransmission, what was sent first has
    /// arrived (RFC 3522 section 3.2 step (4)): nothing was lost.
    pub(super) fn undo_if_needless(&mut self, segment: &Segment) {
        let Some(Before { cwnd, ssthresh, retransmit_ts: Some(ts) }) = self.rack.before.as_deref().copied()
        else {
            return;
        };
        // Timestamps wrap (RFC 7323 section 5.2).
        let earlier = segment.timestamp.wrapping_sub(ts) > u32::MAX / 2;
        if segment.timestamp == 0 || !earlier || !self.rack.recovers() {
            return;
        }
        self.congestion.cwnd = self.congestion.cwnd.max(cwnd);
        self.congestion.ssthresh = self.congestion.ssthresh.max(ssthresh);
        self.rack.record.forget_losses();
        (self.rack.state, self.rack.before) = (State::Open, None);
    }
}
