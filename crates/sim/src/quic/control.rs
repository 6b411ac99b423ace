//! The congestion window and the sending rate: RFC 9002 section 7, with the controls of
//! [`congestion`](crate::congestion).
//!
//! In full packets, as [`tcp`](crate::tcp) counts segments. A loss reduces the window at once, and lets one
//! packet out (section 7.3.2). The rate is that of [`pacing`](crate::congestion::pacing): twice the window
//! per smoothed round trip in slow start and 1.2 times after it, the N of section 7.7; BBR has its own.

use apportion_core::congestion::{Ack, CongestionEvent, Feedback, Pacing, Phase, Response, Sent, Window};
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::quic::{MINIMUM_WINDOW, QuicParams};
use apportion_scenario::tcp::TcpParams;

use super::rtt::Rtt;
use crate::congestion::control::{Control, Sign};
use crate::congestion::hystart::{HyStart, Sample};
use crate::congestion::pacing::rate_of_window;
use crate::congestion::window::{basis, first_window, reduce, time_out};

/// The congestion control of a connection, with its recovery periods.
#[derive(Debug)]
pub struct Controller {
    /// The parameters for code shared with TCP.
    rules: Box<TcpParams>,
    window: Window,
    control: Control,
    /// Whether the control [observes
    /// segments](apportion_core::congestion::CongestionControl::observes_segments).
    observes_segments: bool,
    hystart: HyStart,
    /// The start of the last recovery period: congestion_recovery_start_time.
    recovery_start: Option<Time>,
    /// Whether recovery continues: no packet sent after its start is acknowledged.
    recovers: bool,
    /// The wire size of a full packet.
    wire: Bytes,
}

/// The content of an ACK frame, in packets.
#[derive(Clone, Copy, Debug)]
pub struct AckSummary {
    /// The arrival time.
    pub now: Time,
    /// Newly acknowledged packets.
    pub acked: u32,
    /// Number of these packets that were sent outside recovery, in full packets.
    pub grown: f64,
    /// Packets found lost with it.
    pub lost: u32,
    /// Packets in flight before it.
    pub prior_in_flight: u32,
    /// Packets in flight after it.
    pub in_flight: u32,
    /// The highest acknowledged number, if higher than all before.
    pub latest: Option<u64>,
    /// The first number that is neither acknowledged nor lost.
    pub first_outstanding: u64,
    /// The next number to be sent.
    pub next: u64,
    /// Whether it yielded a sample of the round-trip time.
    pub is_sample: bool,
    /// Section 7.8: whether the window was used.
    pub is_utilised: bool,
}

impl Controller {
    /// The control of a new connection.
    #[must_use]
    pub fn new(params: &QuicParams) -> Self {
        let rules = Box::new(params.congestion());
        let control = Control::new(&rules);
        Self {
            window: first_window(&rules),
            observes_segments: control.observes_segments(),
            control,
            rules,
            hystart: HyStart::START,
            recovery_start: None,
            recovers: false,
            wire: params.packet(),
        }
    }

    /// The window and the threshold, in full packets.
    #[must_use]
    pub const fn window(&self) -> Window {
        self.window
    }

    /// The pacing rate; none before a round-trip time is known.
    #[must_use]
    pub fn pacing_rate(&mut self, srtt: Option<Span>) -> Option<Rate> {
        let named = self.control.pacing_rate(srtt);
        named.or_else(|| srtt.map(|srtt| rate_of_window(Pacing::AtRate, self.window, srtt, self.wire)))
    }

    /// Notes that the packet with this number leaves, after `in_flight` others.
    pub fn send(&mut self, now: Time, number: u64, in_flight: u32) {
        if self.observes_segments {
            self.control.on_sent(&mut self.window, &Sent { now, number: number + 1, in_flight });
        }
    }

    /// Notes that there is nothing more to send, and the window is not used up
    /// (draft-cheng-iccrg-delivery-rate-estimation-00 section 3.4).
    pub fn note_idleness(&mut self, in_flight: u32) {
        if self.observes_segments {
            self.control.on_app_limited(in_flight);
        }
    }

    /// Notes an ACK frame before its content is processed.
    pub fn note_feedback(&mut self, feedback: &Feedback) {
        if self.observes_segments {
            self.control.on_feedback(feedback);
        }
    }

    /// InCongestionRecovery: whether a packet sent at `at` gives no new information about congestion.
    #[must_use]
    pub fn is_in_recovery(&self, at: Time) -> bool {
        self.recovery_start.is_some_and(|start| at <= start)
    }

    /// Notes the acknowledgement of a packet sent at `at`: recovery ends if it was sent during recovery.
    pub fn note_acknowledged(&mut self, at: Time) {
        if self.recovers && !self.is_in_recovery(at) {
            self.recovers = false;
            self.control.on_recovered(&mut self.window);
        }
    }

    /// Notes that a packet sent at `at` is lost, or was marked (OnCongestionEvent). Returns whether a
    /// recovery period begins.
    pub fn congest(&mut self, now: Time, at: Time, in_flight: u32, sign: Sign) -> bool {
        if self.is_in_recovery(at) {
            return false;
        }
        let event = self.event(now, in_flight);
        match sign(&mut *self.control, &mut self.window, &event) {
            Response::Ignore => return false,
            Response::Reduce(left) => {
                reduce(&self.rules, &mut self.window, left);
                // Both are at least kMinimumWindow.
                self.window.cwnd = self.window.ssthresh;
            }
            Response::Done => {}
        }
        (self.recovery_start, self.recovers) = (Some(now), true);
        true
    }

    fn event(&self, now: Time, in_flight: u32) -> CongestionEvent {
        let (cwnd, receive_window) = (self.window.cwnd, f64::INFINITY);
        let basis = basis(&self.rules, cwnd, receive_window, f64::from(in_flight));
        CongestionEvent { now, cwnd, basis, receive_window, in_flight, again: false }
    }

    /// Notes that the packet with this number is lost.
    pub fn lose(&mut self, now: Time, number: u64) {
        if self.observes_segments {
            self.control.on_segment_lost(&self.window, now, number + 1);
        }
    }

    /// Section 7.6.2: everything over a long time is lost.
    pub fn collapse(&mut self, now: Time, in_flight: u32) {
        let event = CongestionEvent { again: true, ..self.event(now, in_flight) };
        time_out(&self.rules, &mut self.window, &mut *self.control, &event);
        self.window.cwnd = MINIMUM_WINDOW.get() as f64;
        // BBR restores the window when packets sent from here on arrive.
        self.recovers = self.control.moves_window(Phase::Recovery);
        self.recovery_start = Some(now).filter(|_| self.recovers);
    }

    /// OnPacketsAcked: the window grows, or the control sets it.
    pub fn acknowledge(&mut self, summary: &AckSummary, rtt: &Rtt) {
        let phase = if self.recovers { Phase::Recovery } else { Phase::Open };
        if summary.grown == 0.0 && !self.control.moves_window(phase) {
            return;
        }
        let number = |packet: u64| packet + 1;
        let ack = Ack {
            now: summary.now,
            phase,
            acked: summary.grown,
            counted: summary.grown,
            abc_limit: None,
            delivered: summary.acked,
            lost: summary.lost,
            prior_in_flight: summary.prior_in_flight,
            in_flight: summary.in_flight,
            number: summary.first_outstanding,
            last_sent: summary.next,
            latest: summary.latest.map(number),
            rtt: summary.is_sample.then(|| rtt.latest()),
            srtt: rtt.srtt().unwrap_or_default(),
            min_rtt: rtt.min(),
            slow_start: self.window.is_slow_start(),
            is_limited: summary.is_utilised,
            may_grow: summary.is_utilised,
        };
        if self.rules.hystart && self.control.has_slow_start() && ack.slow_start && ack.may_grow {
            self.end_slow_start(summary, &ack);
        }
        self.control.on_ack(&mut self.window, &ack);
    }

    /// Ends slow start if the ACK is a signal of HyStart.
    fn end_slow_start(&mut self, summary: &AckSummary, ack: &Ack) {
        let Some(rtt) = ack.rtt else { return };
        let (number, sent) = (ack.latest.unwrap_or_default(), summary.next);
        let (cwnd, min_rtt, paced) = (self.window.cwnd, ack.min_rtt, true);
        if self.hystart.ends(Sample { now: ack.now, ack: number, sent, cwnd, rtt, min_rtt, paced }) {
            self.window.ssthresh = cwnd;
        }
    }
}
