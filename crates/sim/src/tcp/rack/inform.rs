//! The hooks of the congestion control of a sender with a record of segments, and its pacing.

use apportion_core::congestion::{Ack, Feedback, Sent};
use apportion_core::units::{Bytes, Rate, Span, Time};

use super::record::{Delivery, Losses};
use crate::congestion::pacing;
use crate::tcp::segment::{Extra, Flags, Segment};
use crate::tcp::sender::Sender;

impl Sender {
    /// Whether an ACK, which shows that `segments` segments have arrived, reports a mark.
    #[inline]
    pub(super) fn reads_marks(&mut self, now: Time, ack: u64, segment: &Segment, segments: u32) -> bool {
        if self.observes_segments || self.accurate {
            return self.count_marks(now, ack, segment, segments) > 0;
        }
        self.ecn_agreed && segment.flags.has(Flags::ECE)
    }

    #[inline(never)]
    fn count_marks(&mut self, now: Time, ack: u64, segment: &Segment, segments: u32) -> u32 {
        let marked = if self.accurate {
            self.rack.marks.decode(segment.flags, segments, self.control.mark_share())
        } else if self.ecn_agreed && segment.flags.has(Flags::ECE) {
            segments.max(1)
        } else {
            0
        };
        if self.observes_segments {
            self.inform_of_feedback(now, ack, segment, segments, marked);
        }
        marked
    }

    fn inform_of_feedback(&mut self, now: Time, ack: u64, segment: &Segment, segments: u32, marked: u32) {
        let one_way_delay = match segment.extra {
            Extra::OneWayDelay(millis) => Some(Span::from_millis(u16::from_le_bytes(millis).into())),
            _ => None,
        };
        self.control.on_feedback(&Feedback {
            now,
            number: ack,
            last_sent: self.snd_max,
            bytes: ack.saturating_sub(self.snd_una),
            segments,
            marked,
            counts_marks: self.accurate,
            one_way_delay,
        });
    }

    /// Reports segments that are presumed lost.
    pub(super) fn inform_of_losses(&mut self, now: Time) {
        if self.observes_segments {
            for number in self.rack.record.lost() {
                self.control.on_segment_lost(&self.window, now, number);
            }
        }
    }

    /// Reports a processed ACK, and whether it came in slow start.
    #[inline(always)]
    pub(super) fn ack(&self, now: Time, delivery: &Delivery, losses: Losses, slow_start: bool) -> Ack {
        let (record, usage, prior) = (&self.rack.record, &self.rack.usage, &self.rack.prior);
        Ack {
            now,
            phase: self.rack.state,
            acked: f64::from(delivery.segments),
            counted: if self.params.byte_counting { f64::from(delivery.segments) } else { 1.0 },
            abc_limit: self.params.abc_limit,
            delivered: delivery.segments,
            lost: losses.segments,
            prior_in_flight: prior.in_flight,
            in_flight: record.in_flight(),
            number: self.snd_una,
            last_sent: self.snd_max,
            latest: record.latest().filter(|_| record.latest() != prior.latest).map(|(_, end)| end),
            rtt: delivery.last_sent.map(|sent| now.since(sent)),
            srtt: self.srtt().unwrap_or_default(),
            min_rtt: record.min_rtt().unwrap_or_default(),
            slow_start,
            is_limited: usage.limited,
            // RFC 7661 section 4.1: slow start continues while half of the window is used.
            may_grow: !slow_start || self.window.cwnd < 2.0 * f64::from(usage.most),
        }
    }

    /// Reports an ACK to a control that may read all of it.
    #[inline(never)]
    pub(super) fn pass_whole_ack(
        &mut self,
        now: Time,
        delivery: &Delivery,
        losses: Losses,
        slow_start: bool,
    ) {
        let ack = self.ack(now, delivery, losses, slow_start);
        self.control.on_ack(&mut self.window, &ack);
    }

    /// Reports that there is nothing more to send, and the window is not used up
    /// (draft-cheng-iccrg-delivery-rate-estimation-00 section 3.4).
    pub(super) fn inform_of_idleness(&mut self) {
        if self.observes_segments && self.snd_nxt >= self.data_end() {
            self.control.on_app_limited(self.rack.record.in_flight());
        }
    }

    /// Reports a segment of `len` bytes up to `end` that leaves.
    #[inline(never)]
    pub(super) fn inform_of_transmission(&mut self, now: Time, end: u64, len: u64) {
        if self.observes_segments {
            let in_flight = self.rack.record.in_flight();
            self.control.on_sent(&mut self.window, &Sent { now, number: end, in_flight });
        }
        let size = Bytes::new(len) + self.params.header;
        if self.rack.pacer.is_some()
            && let Some(rate) = self.pacing_rate()
            && let Some(pacer) = self.rack.pacer.as_deref_mut()
        {
            pacer.send(now, size, rate);
        }
    }

    // -----------------------------------------------------------------------------------------
    // Pacing

    /// Starts pacing with the connection.
    pub(in crate::tcp) fn start_pacing(&mut self) {
        if self.params.pacing || self.params.algorithm.entry().paces() {
            self.rack.pacer = Some(Box::default());
        }
    }

    /// Sends without pacing, as a host whose control needs a queue that paces and has none. To be called after
    /// [`start`](Self::start).
    pub fn stop_pacing(&mut self) {
        self.rack.pacer = None;
    }

    /// The pacing rate; none before a round-trip time is known.
    fn pacing_rate(&mut self) -> Option<Rate> {
        let (srtt, wire) = (self.srtt(), self.params.segment + self.params.header);
        let named = self.control.pacing_rate(srtt);
        let how = self.params.algorithm.entry().pacing;
        named.or_else(|| srtt.map(|srtt| pacing::rate_of_window(how, self.window, srtt, wire)))
    }

    /// The number of segments that may leave now.
    pub(super) fn pacing_quota(&mut self, now: Time) -> u32 {
        if self.rack.pacer.is_none() {
            return u32::MAX;
        }
        let (rate, wire) = (self.pacing_rate(), self.params.segment + self.params.header);
        match (self.rack.pacer.as_deref_mut(), rate) {
            (Some(pacer), Some(rate)) => {
                pacer.quota(now, pacing::quantum_of(self.params.algorithm.entry().pacing, rate, wire))
            }
            _ => u32::MAX,
        }
    }

    /// Notes that the quota is used up, and the window is not.
    pub(super) fn wait_to_pace(&mut self) {
        let more = self.rack.record.has_lost() || self.snd_nxt < self.end();
        if let Some(pacer) = self.rack.pacer.as_deref_mut().filter(|_| more) {
            pacer.wait();
        }
    }
}
