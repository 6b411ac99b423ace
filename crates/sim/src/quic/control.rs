//! The congestion window and the rate of sending: RFC 9002 section 7, with CUBIC (RFC 9438) or BBR in place of NewReno.
//!
//! In full packets, as [`tcp`](crate::tcp) counts segments. A loss takes its part of the window at once, and lets one packet out
//! (section 7.3.2). The rate is that of [`pacing`](crate::tcp::pacing): twice the window in a smoothed round trip in slow start and 1.2 times after it,
//! the N of section 7.7; BBR has its own.

use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::quic::{MINIMUM_WINDOW, QuicParams};
use apportion_scenario::tcp::{Algorithm, TcpParams};

use super::rtt::Rtt;
use crate::tcp::congestion::{Congestion, Growth, initial_window};
use crate::tcp::hystart::{HyStart, Sample};
use crate::tcp::model::{Model, Version};
use crate::tcp::pacing::rate_of_window;
use crate::tcp::{bbr, bbr3};

/// The congestion control of a connection.
#[derive(Clone, Debug)]
pub struct Control {
    /// What the code that is TCP's too is to do.
    rules: Box<TcpParams>,
    congestion: Congestion,
    model: Option<Box<Model>>,
    hystart: HyStart,
    /// When the last recovery period began: congestion_recovery_start_time.
    recovery_start: Option<Time>,
    /// It goes on: no packet sent after that is acknowledged.
    recovers: bool,
    /// The wire size of a full packet.
    wire: Bytes,
}

/// What an ACK frame says, in packets.
#[derive(Clone, Copy, Debug)]
pub struct AckSummary {
    /// When it came.
    pub now: Time,
    /// For the first time acknowledged.
    pub acked: u32,
    /// Those of them that were sent outside recovery, in full packets.
    pub grown: f64,
    /// Found lost with it.
    pub lost: u32,
    /// In flight before it.
    pub prior_in_flight: u32,
    /// And after it.
    pub in_flight: u32,
    /// The highest acknowledged, if higher than all before.
    pub latest: Option<u64>,
    /// All below are acknowledged or lost.
    pub first_outstanding: u64,
    /// The next to be sent.
    pub next: u64,
    /// Whether it yielded a sample of the round-trip time.
    pub is_sample: bool,
    /// Section 7.8: whether the window was used.
    pub is_utilised: bool,
}

impl Control {
    /// At the start of a connection.
    #[must_use]
    pub fn new(params: &QuicParams) -> Self {
        let (rules, wire) = (Box::new(params.congestion()), params.packet());
        let model = Model::new(params.algorithm, initial_window(&rules), wire).map(Box::new);
        let congestion = Congestion::new(&rules);
        Self {
            rules,
            congestion,
            model,
            hystart: HyStart::START,
            recovery_start: None,
            recovers: false,
            wire,
        }
    }

    /// The window, in full packets.
    #[must_use]
    pub const fn cwnd(&self) -> f64 {
        self.congestion.cwnd
    }

    /// The slow start threshold, in full packets.
    #[must_use]
    pub const fn ssthresh(&self) -> f64 {
        self.congestion.ssthresh
    }

    /// The rate at which packets leave; none before a round-trip time is known.
    #[must_use]
    pub fn pacing_rate(&mut self, srtt: Option<Span>) -> Option<Rate> {
        if let Some(model) = &mut self.model {
            return Some(model.version.pacing_rate(srtt));
        }
        let Congestion { cwnd, ssthresh, .. } = self.congestion;
        srtt.map(|srtt| rate_of_window(cwnd, cwnd < ssthresh, srtt, self.wire))
    }

    /// The packet with this number leaves, after `in_flight` others.
    pub fn send(&mut self, now: Time, number: u64, in_flight: u32) {
        let Some(Model { version, rate, .. }) = self.model.as_deref_mut() else { return };
        if in_flight == 0 && rate.is_app_limited() {
            self.congestion.cwnd = version.restart_from_idle(now, self.congestion.cwnd, rate.delivered());
        }
        rate.send(now, number + 1, in_flight);
    }

    /// There is nothing more to send, and the window is not spent (draft-cheng-iccrg-delivery-rate-estimation-00 section 3.4).
    pub fn note_idleness(&mut self, in_flight: u32) {
        if let Some(model) = &mut self.model {
            model.rate.limit(in_flight);
        }
    }

    /// InCongestionRecovery: whether a packet sent at `at` says nothing new of congestion.
    #[must_use]
    pub fn is_in_recovery(&self, at: Time) -> bool {
        self.recovery_start.is_some_and(|start| at <= start)
    }

    /// A packet sent at `at` is acknowledged: recovery ends if that was during it.
    pub fn note_acknowledged(&mut self, at: Time) {
        if !self.recovers || self.is_in_recovery(at) {
            return;
        }
        self.recovers = false;
        if let Some(model) = &mut self.model {
            self.congestion.cwnd = model.version.leave_recovery(self.congestion.cwnd);
        }
    }

    /// A packet sent at `at` is lost, or came with a mark (OnCongestionEvent). Returns whether a recovery period begins.
    pub fn congest(&mut self, now: Time, at: Time, in_flight: u32, is_mark: bool) -> bool {
        if self.is_in_recovery(at) || (is_mark && self.model.is_some()) {
            return false;
        }
        (self.recovery_start, self.recovers) = (Some(now), true);
        if let Some(Model { version, rate, .. }) = self.model.as_deref_mut() {
            self.congestion.cwnd = version.enter_recovery(self.congestion.cwnd, in_flight, rate.delivered());
        } else {
            self.congestion.cut(&self.rules, f64::INFINITY, f64::from(in_flight));
            // Both are at least kMinimumWindow.
            self.congestion.cwnd = self.congestion.ssthresh;
        }
        true
    }

    /// The packet with this number is lost. Only BBR's version 3 asks what it met.
    pub fn lose(&mut self, now: Time, number: u64) {
        let cwnd = self.congestion.cwnd;
        let Some(Model { version, rate, .. }) = self.model.as_deref_mut() else { return };
        if let (Some((transit, begins)), Version::Three(bbr)) = (rate.lose(number + 1), version) {
            bbr.lose(now, cwnd, rate.delivered(), transit, begins);
        }
    }

    /// Section 7.6.2: everything for a long time is lost.
    pub fn collapse(&mut self, now: Time, in_flight: u32) {
        if let Some(model) = &mut self.model {
            model.version.time_out(self.congestion.cwnd);
        }
        self.congestion.time_out(&self.rules, f64::INFINITY, f64::from(in_flight), true);
        self.congestion.cwnd = MINIMUM_WINDOW.get() as f64;
        // BBR gives the window back when what is sent from now on arrives.
        self.recovers = self.model.is_some();
        self.recovery_start = Some(now).filter(|_| self.recovers);
    }

    /// OnPacketsAcked: the window grows, or follows the model.
    pub fn acknowledge(&mut self, summary: &AckSummary, rtt: &Rtt) {
        if self.model.is_some() {
            self.follow_model(summary);
            return;
        }
        // Of CUBIC, time in which the window is not used does not count (RFC 9438 section 5.8).
        let is_slow_start = self.congestion.cwnd < self.congestion.ssthresh;
        let has_clock = self.rules.algorithm == Algorithm::Cubic && !is_slow_start;
        if summary.grown == 0.0 || !(summary.is_utilised || has_clock) {
            return;
        }
        if self.rules.hystart && summary.is_sample && is_slow_start {
            let (ack, sent, cwnd) =
                (summary.latest.map_or(0, |latest| latest + 1), summary.next, self.congestion.cwnd);
            let sample = Sample {
                now: summary.now,
                ack,
                sent,
                cwnd,
                rtt: rtt.latest(),
                min_rtt: rtt.min(),
                paced: true,
            };
            if self.hystart.ends(sample) {
                self.congestion.ssthresh = cwnd;
            }
        }
        let (now, acked, srtt) = (summary.now, summary.grown, rtt.srtt().unwrap_or_default());
        self.congestion.grow(&self.rules, Growth { now, acked, srtt, limited: summary.is_utilised });
    }

    fn follow_model(&mut self, summary: &AckSummary) {
        let Some(Model { version, rate, .. }) = self.model.as_deref_mut() else { return };
        let latest = summary.latest.map(|latest| latest + 1);
        let sample = rate.deliver(summary.now, summary.acked, latest, summary.first_outstanding);
        let seen = bbr::Ack {
            now: summary.now,
            total: rate.delivered(),
            delivered: summary.acked,
            lost: summary.lost,
            total_lost: rate.lost(),
            prior_in_flight: summary.prior_in_flight,
            in_flight: summary.in_flight,
            sample,
        };
        let ack = bbr3::Ack { seen, transit: rate.transit(), is_cwnd_limited: summary.is_utilised };
        self.congestion.cwnd = version.on_ack(self.congestion.cwnd, ack);
        if version.probes_rtt() {
            rate.limit(summary.in_flight);
        }
    }
}
