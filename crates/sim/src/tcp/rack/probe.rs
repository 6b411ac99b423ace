//! The tail loss probe: sends the last segment again, so that its ACK shows losses (RFC 8985 section 7).

use apportion_core::congestion::{CongestionControl, Phase, Response};
use apportion_core::units::{Span, Time};

use crate::tcp::segment::SegmentSink;
use crate::tcp::sender::Sender;

/// RFC 8985 section 7.2, TLP.max_ack_delay: the maximum delay of an ACK by the receiver.
const DELAYED_ACK: Span = Span::from_millis(200);
/// The delay of a probe beyond two round trips: two ticks of the clock, as in Linux.
const GRACE: Span = Span::from_millis(2);

/// A probe that is not yet answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    /// TLP.end_seq.
    end: u64,
    /// Whether it carried no new data.
    pub is_retransmission: bool,
}

impl Sender {
    /// Sends no tail loss probes, as Linux with `tcp_early_retrans = 0`.
    #[must_use]
    pub fn without_probes(mut self) -> Self {
        self.rack.probes = false;
        self
    }

    /// Starts or restarts the timer of the probe, or stops it (RFC 8985 section 7.2).
    pub(super) fn schedule_probe(&mut self, now: Time) {
        let record = &self.rack.record;
        let open = matches!(self.rack.state, Phase::Open | Phase::Cwr);
        let allowed = self.rack.probes
            && open
            && !record.has_sacked()
            && record.outstanding() > 0
            && self.rack.probe.is_none();
        let patience = match (self.srtt(), record.outstanding()) {
            (None, _) => self.params.initial_rto,
            (Some(srtt), 1) => srtt * 2 + DELAYED_ACK,
            (Some(srtt), _) => srtt * 2 + GRACE,
        };
        self.rack.probe_at =
            self.retransmission_timer().filter(|_| allowed).map(|rto| rto.min(now + patience));
    }

    /// The timer of the probe expired (RFC 8985 section 7.3): new data if there are any, else the last segment.
    pub(super) fn send_probe<W: SegmentSink>(&mut self, now: Time, out: &mut W) {
        let before = self.snd_max;
        let is_new = self.send_next(now, self.snd_una + self.snd_wnd, out);
        if !is_new {
            let Some((from, to)) = self.rack.record.last(self.snd_una) else { return };
            self.resend(now, from, to, out);
        }
        self.rack.probe = Some(Probe { end: self.snd_max, is_retransmission: self.snd_max == before });
        self.stats.tail_loss_probes += 1;
        self.restart_timer(now);
    }

    /// Whether the ACK answers the probe, and whether the probe repaired a loss that nothing else showed (RFC
    /// 8985 section 7.4): the window then falls at once.
    pub(super) fn settle_probe(&mut self, now: Time, ack: u64, news: bool, duplicate: bool) {
        let Some(probe) = self.rack.probe.filter(|probe| ack >= probe.end) else { return };
        if !probe.is_retransmission || duplicate || !news {
            // New data arrived, or both the segment and its probe did.
            self.rack.probe = None;
        } else if ack > probe.end {
            self.rack.probe = None;
            if self.rack.state == Phase::Open
                && let Response::Reduce(_) = self.reduce(now, CongestionControl::on_repaired_loss)
            {
                self.window.cwnd = self.window.ssthresh;
            }
        }
    }
}
