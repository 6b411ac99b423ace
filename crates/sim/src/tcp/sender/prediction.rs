//! Header prediction: a fast path for the usual ACK, of new data while nothing is missing.
//!
//! Jacobson, "4BSD TCP header prediction", Computer Communication Review 20(2), 1990.

use apportion_core::Ecn;
use apportion_core::units::{Bytes, Time};

use super::{Phase, Sender, UNLIMITED};
use crate::tcp::segment::{Flags, Segment, SegmentSink};
use crate::tcp::seq::unwrap;

impl Sender {
    /// Header prediction, as in the [receiver](crate::tcp::receiver): an ACK of some of the outstanding data,
    /// while none of them is missing or sent again.
    #[inline(always)]
    pub(super) fn is_predicted(&self, ack: u64, segment: &Segment) -> bool {
        segment.flags == Flags::ACK
            && self.snd_una < ack
            && ack < self.snd_max
            && self.snd_nxt == self.snd_max
            && self.recovery.is_at_rest()
            && self.scoreboard.is_empty()
            && segment.sack.is_empty()
            && !self.uses_rack()
    }

    /// Handles a [predicted](Self::is_predicted) ACK. The general code has the same effect for these ACKs.
    #[inline(never)]
    pub(super) fn on_predicted<W: SegmentSink>(&mut self, now: Time, ack: u64, out: &mut W) {
        self.take_new(now, ack);
        self.send_new(now, out);
    }

    /// Some of the outstanding data are acknowledged, and none is missing.
    #[inline(always)]
    fn take_new(&mut self, now: Time, ack: u64) {
        let (bytes, flight, cwnd) = (ack - self.snd_una, self.flight(), self.window.cwnd);
        self.stats.bytes_acked += bytes;
        self.snd_una = ack;
        self.time_ack(now, ack);
        self.grow_window(now, bytes, flight, cwnd);
    }

    /// Acts as [`on_segment`](Self::on_segment) does, for an ACK that is [predicted](Self::is_predicted) and
    /// a sender with unlimited data: returns the limit up to which [new segments](Self::next_new) are sent
    /// now. If not, does nothing.
    #[inline(always)]
    pub(crate) fn take_predicted(&mut self, now: Time, segment: &Segment) -> Option<u64> {
        let ack = unwrap(self.isn, segment.ack, self.snd_una)?;
        let is_endless = self.phase == Phase::Open && self.data_end == UNLIMITED;
        if !is_endless || !self.is_predicted(ack, segment) {
            return None;
        }
        self.note_window(segment);
        self.take_new(now, ack);
        Some(self.limit_beyond(self.window.cwnd, 0))
    }

    /// Sends as [`send_available`](Self::send_available) does for an open connection with outstanding data,
    /// none of it missing.
    #[inline(always)]
    fn send_new<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        let limit = self.limit_beyond(self.window.cwnd, 0);
        while let Some((segment, size, ecn)) = self.next_new(now, limit) {
            out.send(segment, size, ecn);
        }
        if self.snd_nxt + self.params.segment.get() >= self.data_end {
            self.send_available(now, u32::MAX, out);
        }
    }

    /// Sends a full segment of new data, if it ends at or below `limit` and before the end of all data:
    /// returns it, with its size on the wire and its ECN field.
    #[inline(always)]
    pub(crate) fn next_new(&mut self, now: Time, limit: u64) -> Option<(Segment, Bytes, Ecn)> {
        let (from, len) = (self.snd_nxt, self.params.segment.get());
        let to = from + len;
        if to > limit || to >= self.data_end {
            return None;
        }
        let mut flags = Flags::ACK;
        let ecn = self.mark(&mut flags, true);
        self.stats.segments += 1;
        self.timed.get_or_insert((to, now));
        (self.snd_nxt, self.snd_max, self.last_send) = (to, to, now);
        let (segment, size) = self.segment(now, from, len, flags);
        Some((segment, size, ecn))
    }
}
