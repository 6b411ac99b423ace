//! A congestion control that goes by a model of the path: BBR of either version, with what it measures by.

use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::tcp::Algorithm;

use super::bbr::Bbr;
use super::bbr3::{self, Bbr3};
use super::delivery_rate::DeliveryRate;

/// BBR with what it measures by.
#[derive(Clone, Debug)]
pub struct Model {
    /// What it knows of the path, by its version.
    pub version: Version,
    /// Its samples.
    pub rate: DeliveryRate,
    /// Segments in the network before the ACK under way.
    pub prior_in_flight: u32,
    /// The segment sent last of those delivered before it.
    pub latest: Option<(Time, u64)>,
}

/// A version of BBR, with its model.
#[derive(Clone, Debug)]
pub enum Version {
    /// Version 1.
    One(Bbr),
    /// Version 3.
    Three(Bbr3),
}

impl Model {
    /// That of `algorithm`, if it has one, for a connection that begins with `window` segments of `wire` bytes.
    #[must_use]
    pub fn new(algorithm: Algorithm, window: f64, wire: Bytes) -> Option<Self> {
        let version = match algorithm {
            Algorithm::Bbr => Version::One(Bbr::new(window, wire)),
            Algorithm::Bbr3 => Version::Three(Bbr3::new(window, wire)),
            _ => return None,
        };
        Some(Self { version, rate: DeliveryRate::default(), prior_in_flight: 0, latest: None })
    }
}

impl Version {
    /// An ACK; returns the window.
    #[must_use]
    pub fn on_ack(&mut self, cwnd: f64, ack: bbr3::Ack) -> f64 {
        match self {
            Self::One(bbr) => bbr.on_ack(cwnd, ack.seen),
            Self::Three(bbr) => bbr.on_ack(cwnd, ack),
        }
    }

    /// The rate at which segments leave.
    #[must_use]
    pub fn pacing_rate(&mut self, srtt: Option<Span>) -> Rate {
        match self {
            Self::One(bbr) => bbr.pacing_rate(srtt),
            Self::Three(bbr) => bbr.pacing_rate(srtt),
        }
    }

    /// Whether the pipe is deliberately left empty, so that samples say nothing of the path.
    #[must_use]
    pub fn probes_rtt(&self) -> bool {
        match self {
            Self::One(bbr) => bbr.probes_rtt(),
            Self::Three(bbr) => bbr.probes_rtt(),
        }
    }

    /// Data are sent while none are in the network, of `total` delivered so far; returns the window.
    #[must_use]
    pub fn restart_from_idle(&mut self, now: Time, cwnd: f64, total: u64) -> f64 {
        match self {
            Self::One(bbr) => {
                bbr.restart_from_idle();
                cwnd
            }
            Self::Three(bbr) => bbr.restart_from_idle(now, cwnd, total),
        }
    }

    /// A loss is found; returns the window.
    #[must_use]
    pub fn enter_recovery(&mut self, cwnd: f64, in_flight: u32, total: u64) -> f64 {
        match self {
            Self::One(bbr) => bbr.enter_recovery(cwnd, in_flight, total),
            Self::Three(bbr) => {
                bbr.enter_recovery(cwnd);
                cwnd
            }
        }
    }

    /// Everything outstanding is taken for lost.
    pub fn time_out(&mut self, cwnd: f64) {
        match self {
            Self::One(bbr) => bbr.time_out(cwnd),
            Self::Three(bbr) => bbr.time_out(cwnd),
        }
    }

    /// What was outstanding at the loss has arrived; returns the window.
    #[must_use]
    pub fn leave_recovery(&mut self, cwnd: f64) -> f64 {
        match self {
            Self::One(bbr) => bbr.leave_recovery(cwnd),
            Self::Three(bbr) => bbr.leave_recovery(cwnd),
        }
    }
}
