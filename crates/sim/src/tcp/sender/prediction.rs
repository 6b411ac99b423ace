//! Header prediction: a short way for the ACK that nearly all are, of new data while nothing is missing.
//!
//! Jacobson, "4BSD TCP header prediction", Computer Communication Review 20(2), 1990.

use apportion_core::units::Time;

use super::Sender;
use crate::tcp::segment::{Flags, Segment, Wire};

impl Sender {
    /// Header prediction, as in the [receiver](crate::tcp::receiver): an ACK of some of the data that are outstanding, while none of them
    /// is missing or sent again.
    #[inline]
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

    /// A [predicted](Self::is_predicted) ACK. What follows for other ACKs does the same for these.
    #[inline(never)]
    pub(super) fn on_predicted<W: Wire>(&mut self, now: Time, ack: u64, wire: &mut W) {
        let (bytes, flight, cwnd) = (ack - self.snd_una, self.flight(), self.congestion.cwnd);
        self.stats.bytes_acked += bytes;
        self.snd_una = ack;
        self.time_ack(now, ack);
        self.grow_window(now, bytes, flight, cwnd);
        self.send_new(now, wire);
    }

    /// As [`send_available`](Self::send_available) for an open connection with data outstanding of which nothing is missing.
    #[inline(always)]
    fn send_new<W: Wire>(&mut self, now: Time, wire: &mut W) {
        let len = self.params.segment.get();
        let limit = self.limit(self.congestion.cwnd);
        while self.snd_nxt + len <= limit && self.snd_nxt + len < self.data_end {
            let from = self.snd_nxt;
            let to = from + len;
            let mut flags = Flags::ACK;
            let ecn = self.mark(&mut flags, true);
            self.stats.segments += 1;
            self.timed.get_or_insert((to, now));
            (self.snd_nxt, self.snd_max, self.last_send) = (to, to, now);
            self.emit(now, from, len, flags, ecn, wire);
        }
        if self.snd_nxt + len >= self.data_end {
            self.send_available(now, u32::MAX, wire);
        }
    }
}
