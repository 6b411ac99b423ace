//! What a [`Control`] learns from the sender, and what it does with the window.

use apportion_core::units::Time;

use super::control::Control;
use super::record::Delivery;
use crate::tcp::segment::{Extra, Flags, Segment};
use crate::tcp::sender::Sender;
use crate::tcp::vegas;

impl Sender {
    /// The connection begins.
    pub(in crate::tcp) fn start_control(&mut self) {
        if let Some(control) = Control::new(&self.params) {
            self.rack.control = Some(control);
        }
    }

    /// An ACK comes; nothing of it has been taken yet.
    pub(super) fn inform_control(&mut self, now: Time, ack: u64, segment: &Segment) {
        let (una, sent) = (self.snd_una, self.snd_max);
        let marked = self.ecn_agreed && segment.flags.has(Flags::ECE);
        let Some(control) = self.rack.control.as_deref_mut() else { return };
        match control {
            Control::Dctcp(dctcp) => dctcp.on_ack(ack, ack.saturating_sub(una), marked, sent),
            Control::Ledbat(ledbat) => {
                if let Extra::OneWayDelay(millis) = segment.extra {
                    ledbat.sample(now, u16::from_le_bytes(millis).into());
                }
            }
            Control::Vegas(_) => {}
        }
    }

    /// A mark leaves so much of the window, where that is not what a loss leaves.
    pub(super) fn marks_leave(&self) -> Option<f64> {
        match self.rack.control.as_deref()? {
            Control::Dctcp(dctcp) => Some(dctcp.leaves()),
            Control::Vegas(_) | Control::Ledbat(_) => None,
        }
    }

    /// An ACK of new data opens the window, or not. Returns whether the control decides that.
    pub(super) fn control_window(&mut self, now: Time, delivery: &Delivery) -> bool {
        let (una, sent) = (self.snd_una, self.snd_max);
        let (acked, limited) = (f64::from(delivery.segments), self.rack.usage.limited);
        let (cwnd, ssthresh) = (self.congestion.cwnd, self.congestion.ssthresh);
        let flight = f64::from(self.rack.record.in_flight() + delivery.segments);
        match self.rack.control.as_deref_mut() {
            Some(Control::Vegas(vegas)) => {
                let rtt = delivery.last_sent.map(|sent| now.since(sent));
                let ack = vegas::Ack { acked, una, sent, rtt, limited };
                (self.congestion.cwnd, self.congestion.ssthresh) = vegas.grow(cwnd, ssthresh, ack);
                true
            }
            Some(Control::Ledbat(ledbat)) => {
                self.congestion.cwnd = ledbat.grow(cwnd, acked, flight);
                true
            }
            Some(Control::Dctcp(_)) | None => false,
        }
    }
}
