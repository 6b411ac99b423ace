//! The pace of a transmitter: a rate, or the delivery opportunities of a recorded link.

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::transmission::Transmission;
use apportion_core::units::{Bytes, Rate, Time};
use apportion_scenario::model::Link;

/// Times at which packets can be sent.
#[derive(Clone, Debug)]
pub enum Pace {
    /// Packets one after another, at a rate; none at zero.
    Rate(Transmission),
    /// Packets at the instants of a trace.
    Trace(DeliveryTrace),
}

impl Pace {
    #[must_use]
    pub const fn rate(rate: Rate) -> Self {
        Self::Rate(Transmission::new(rate))
    }

    /// The pace of a scenario's link.
    #[must_use]
    pub fn of(link: &Link) -> Self {
        link.trace.clone().map_or_else(|| Self::rate(link.rate), Self::Trace)
    }

    /// The rate; the mean one of a trace.
    #[must_use]
    pub fn mean(&self) -> Rate {
        match self {
            Self::Rate(transmission) => transmission.rate(),
            Self::Trace(trace) => trace.mean(),
        }
    }

    /// Time at which a packet of `size` that starts at `now` is sent; none at rate zero. A packet starts when
    /// the one before is sent, or later.
    pub fn send(&mut self, now: Time, size: Bytes) -> Option<Time> {
        match self {
            Self::Rate(transmission) if transmission.rate() == Rate::ZERO => None,
            Self::Rate(transmission) => Some(now + transmission.time(size)),
            Self::Trace(trace) => Some(trace.send(now, size)),
        }
    }
}
