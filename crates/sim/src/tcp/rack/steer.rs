//! What a [`Control`] learns from the sender, and what it does with the window and with sending.

use apportion_core::units::{Bytes, Rate, Time};

use super::State;
use super::control::{Control, Law};
use super::record::{Delivery, Losses};
use crate::tcp::model::{Model, Version};
use crate::tcp::segment::{Extra, Flags, Segment};
use crate::tcp::sender::Sender;
use crate::tcp::{bbr, bbr3, dctcp, pacing, prague, vegas};

impl Sender {
    /// The connection begins.
    pub(in crate::tcp) fn start_control(&mut self) {
        let control = Control::new(&self.params);
        if control.is_some() {
            self.rack.control = control;
        }
    }

    fn law(&mut self) -> Option<&mut Law> {
        self.rack.control.as_deref_mut().map(|control| &mut control.law)
    }

    fn model(&mut self) -> Option<&mut Model> {
        match self.law() {
            Some(Law::Bbr(model)) => Some(model),
            _ => None,
        }
    }

    /// Whether the window follows from a model of the path, and not from losses and marks.
    pub(super) fn has_model(&self) -> bool {
        self.rack.control.as_deref().is_some_and(|control| matches!(control.law, Law::Bbr(_)))
    }

    /// An ACK comes; nothing of it has been taken yet.
    #[inline(never)]
    pub(super) fn inform_control(&mut self, now: Time, ack: u64, segment: &Segment) {
        let (una, sent) = (self.snd_una, self.snd_max);
        let (in_flight, latest) = (self.rack.record.in_flight(), self.rack.record.latest());
        let marked = self.ecn_agreed && segment.flags.has(Flags::ECE);
        match self.law() {
            Some(Law::Dctcp(dctcp)) => dctcp.on_ack(ack, ack.saturating_sub(una), marked, sent),
            Some(Law::Ledbat(ledbat)) => {
                if let Extra::OneWayDelay(millis) = segment.extra {
                    ledbat.sample(now, u16::from_le_bytes(millis).into());
                }
            }
            Some(Law::Bbr(model)) => (model.prior_in_flight, model.latest) = (in_flight, latest),
            // Prague has to know what of it is new.
            Some(Law::Window | Law::Vegas(_) | Law::Prague(_)) | None => {}
        }
    }

    /// Whether an ACK, by which so many segments are known to have arrived, says that any was marked.
    #[inline]
    pub(super) fn reads_marks(&mut self, now: Time, ack: u64, segment: &Segment, segments: u32) -> bool {
        if self.accurate {
            self.counts_marks(now, ack, segment, segments)
        } else {
            self.ecn_agreed && segment.flags.has(Flags::ECE)
        }
    }

    #[inline(never)]
    fn counts_marks(&mut self, now: Time, ack: u64, segment: &Segment, segments: u32) -> bool {
        let sent = self.snd_max;
        let Some(Law::Prague(prague)) = self.law() else { return false };
        prague.on_ack(now, ack, segment.flags, segments, sent) > 0
    }

    // -----------------------------------------------------------------------------------------
    // The window

    /// What a mark leaves of a window of `cwnd` segments, where that is not what a loss leaves, and whether the window falls at once
    /// and not over a round trip.
    pub(super) fn marks_leave(&self, cwnd: f64) -> Option<(f64, bool)> {
        match &self.rack.control.as_deref()?.law {
            Law::Dctcp(dctcp) => Some((dctcp.leaves(cwnd), false)),
            Law::Prague(prague) => Some((prague.leaves() * cwnd, true)),
            _ => None,
        }
    }

    /// An ACK opens or lowers the window. Returns whether the control decides how, and not Reno or CUBIC.
    #[inline(never)]
    pub(super) fn control_window(
        &mut self,
        now: Time,
        advanced: bool,
        delivery: &Delivery,
        losses: Losses,
    ) -> bool {
        let (una, sent) = (self.snd_una, self.snd_max);
        let (acked, limited) = (f64::from(delivery.segments), self.rack.usage.limited);
        let (cwnd, ssthresh) = (self.congestion.cwnd, self.congestion.ssthresh);
        let flight = f64::from(self.rack.record.in_flight() + delivery.segments);
        let (state, opens) = (self.rack.state, advanced && !self.rack.is_lowering());
        match self.law() {
            Some(Law::Vegas(vegas)) if opens => {
                let rtt = delivery.last_sent.map(|sent| now.since(sent));
                let ack = vegas::Ack { acked, una, sent, rtt, limited };
                (self.congestion.cwnd, self.congestion.ssthresh) = vegas.grow(cwnd, ssthresh, ack);
                true
            }
            Some(Law::Ledbat(ledbat)) if opens => {
                self.congestion.cwnd = ledbat.grow(cwnd, acked, flight);
                true
            }
            Some(Law::Dctcp(_)) if opens && cwnd >= ssthresh => {
                self.congestion.cwnd = dctcp::grow(cwnd, acked);
                true
            }
            // The mark has lowered it.
            Some(Law::Prague(_)) if state == State::Cwr => true,
            Some(Law::Prague(_)) if opens && cwnd >= ssthresh => {
                self.congestion.cwnd = prague::grow(cwnd, acked, self.srtt().unwrap_or_default());
                true
            }
            Some(Law::Bbr(_)) => self.model_window(now, delivery, losses),
            _ => false,
        }
    }

    /// A model learns from an ACK, and the window follows. Returns whether there is one.
    fn model_window(&mut self, now: Time, delivery: &Delivery, losses: Losses) -> bool {
        let (una, cwnd) = (self.snd_una, self.congestion.cwnd);
        let (in_flight, latest) = (self.rack.record.in_flight(), self.rack.record.latest());
        let is_cwnd_limited = self.rack.usage.limited;
        let Some(Model { version, rate, prior_in_flight, latest: before }) = self.model() else {
            return false;
        };
        let latest = latest.filter(|_| latest != *before).map(|(_, end)| end);
        let sample = rate.deliver(now, delivery.segments, latest, una);
        let seen = bbr::Ack {
            now,
            total: rate.delivered(),
            delivered: delivery.segments,
            lost: losses.segments,
            total_lost: rate.lost(),
            prior_in_flight: *prior_in_flight,
            in_flight,
            sample,
        };
        let cwnd = version.on_ack(cwnd, bbr3::Ack { seen, transit: rate.transit(), is_cwnd_limited });
        if version.probes_rtt() {
            rate.limit(in_flight);
        }
        self.congestion.cwnd = cwnd;
        true
    }

    /// A loss is found. Returns whether a model decides what that does to the window.
    pub(super) fn model_recovers(&mut self) -> bool {
        let (cwnd, in_flight) = (self.congestion.cwnd, self.rack.record.in_flight());
        let Some(Model { version, rate, .. }) = self.model() else { return false };
        self.congestion.cwnd = version.enter_recovery(cwnd, in_flight, rate.delivered());
        true
    }

    /// Segments are taken for lost. Only version 3 asks what they met.
    pub(super) fn model_loses(&mut self, now: Time) {
        let (cwnd, rack) = (self.congestion.cwnd, &mut *self.rack);
        let Some(Law::Bbr(model)) = rack.control.as_deref_mut().map(|control| &mut control.law) else {
            return;
        };
        let Model { version, rate, .. } = &mut **model;
        for end in rack.record.lost() {
            let lost = rate.lose(end);
            if let (Version::Three(bbr), Some((transit, begins))) = (&mut *version, lost) {
                bbr.lose(now, cwnd, rate.delivered(), transit, begins);
            }
        }
    }

    /// The last recovery was needless.
    pub(super) fn model_undoes(&mut self) {
        if let Some(Model { version: Version::Three(bbr), rate, .. }) = self.model() {
            bbr.undo(rate.delivered());
        }
    }

    /// The retransmission timer expired.
    pub(super) fn model_times_out(&mut self) {
        let cwnd = self.congestion.cwnd;
        if let Some(model) = self.model() {
            model.version.time_out(cwnd);
        }
    }

    /// Recovery ends. Returns whether a model decides what the window is then.
    pub(super) fn model_recovered(&mut self) -> bool {
        let cwnd = self.congestion.cwnd;
        let Some(model) = self.model() else { return false };
        self.congestion.cwnd = model.version.leave_recovery(cwnd);
        true
    }

    // -----------------------------------------------------------------------------------------
    // Sending

    /// The rate at which segments leave; none before a round-trip time is known, and without pacing.
    fn pacing_rate(&mut self) -> Option<Rate> {
        let (srtt, wire) = (self.srtt(), self.params.segment + self.params.header);
        let (cwnd, slow_start) = (self.congestion.cwnd, self.congestion.cwnd < self.congestion.ssthresh);
        match self.law()? {
            Law::Bbr(model) => Some(model.version.pacing_rate(srtt)),
            _ => srtt.map(|srtt| pacing::rate_of_window(cwnd, slow_start, srtt, wire)),
        }
    }

    /// How many segments may leave now.
    pub(super) fn pacing_quota(&mut self, now: Time) -> u32 {
        let (rate, wire) = (self.pacing_rate(), self.params.segment + self.params.header);
        let pacer = self.rack.control.as_deref_mut().and_then(|control| control.pacer.as_mut());
        match (pacer, rate) {
            (Some(pacer), Some(rate)) => pacer.quota(now, rate, wire),
            _ => u32::MAX,
        }
    }

    /// The quota is spent, and the window is not.
    pub(super) fn wait_to_pace(&mut self) {
        let more = self.rack.record.has_lost() || self.snd_nxt < self.data_end();
        if let Some(pacer) = self.rack.control.as_deref_mut().and_then(|control| control.pacer.as_mut())
            && more
        {
            pacer.wait();
        }
    }

    /// There is nothing more to send, and the window is not spent (draft-cheng-iccrg-delivery-rate-estimation-00 section 3.4).
    pub(super) fn note_idleness(&mut self) {
        let (in_flight, idle) = (self.rack.record.in_flight(), self.snd_nxt >= self.data_end());
        if let Some(model) = self.model()
            && idle
        {
            model.rate.limit(in_flight);
        }
    }

    /// A segment of `len` bytes up to `end` leaves.
    #[inline(never)]
    pub(super) fn inform_of_transmission(&mut self, now: Time, end: u64, len: u64) {
        let (in_flight, mut cwnd) = (self.rack.record.in_flight(), self.congestion.cwnd);
        if let Some(Model { version, rate, .. }) = self.model() {
            if in_flight == 0 && rate.is_app_limited() {
                cwnd = version.restart_from_idle(now, cwnd, rate.delivered());
            }
            rate.send(now, end, in_flight);
            self.congestion.cwnd = cwnd;
        }
        let (rate, size) = (self.pacing_rate(), Bytes::new(len) + self.params.header);
        let pacer = self.rack.control.as_deref_mut().and_then(|control| control.pacer.as_mut());
        if let (Some(pacer), Some(rate)) = (pacer, rate) {
            pacer.send(now, size, rate);
        }
    }
}
