//! Congestion control: one file for each algorithm, and their common parts.
//!
//! An algorithm is a [`CongestionControl`](apportion_core::congestion::CongestionControl); the
//! [contract](apportion_core::congestion) defines when each hook is called. TCP with RACK, TCP with the
//! classical recoveries and QUIC drive all of them by a [`Control`](control::Control).
//!
//! | module | holds |
//! |---|---|
//! | [`reno`] | slow start and the halving of RFC 5681: Tahoe, Reno, NewReno and SACK |
//! | [`cubic`] | the window of RFC 9438 |
//! | [`dctcp`] | the share of marks of RFC 8257 |
//! | [`prague`] | DCTCP, independent of the round-trip time |
//! | [`vegas`] | a few own packets in the queue |
//! | [`ledbat`] | a queueing delay at its target |
//! | [`bbr`] | a model of the path |
//! | [`bbr3`] | a model of the path with a response to losses |
//! | [`path_model`] | the input of both models: an ACK with its sample |
//! | [`delivery_rate`] | samples of the delivery rate |
//! | [`pacing`] | segments at a rate |
//! | [`hystart`] | the end of slow start without a loss |
//! | [`control`] | the control of a connection, of any algorithm |
//! | [`window`] | the initial window, and its reduction by congestion signals |

pub mod bbr;
pub mod bbr3;
pub mod control;
pub mod cubic;
pub mod dctcp;
pub mod delivery_rate;
pub mod hystart;
pub mod ledbat;
pub mod pacing;
pub mod path_model;
pub mod prague;
pub mod reno;
pub mod vegas;
pub mod window;

#[cfg(test)]
use apportion_core::congestion::{Ack, Phase};
#[cfg(test)]
use apportion_core::units::{Span, Time};

/// An ACK of one segment.
#[cfg(test)]
const ACK: Ack = Ack {
    now: Time::ZERO,
    phase: Phase::Open,
    acked: 1.0,
    counted: 1.0,
    abc_limit: None,
    delivered: 1,
    lost: 0,
    prior_in_flight: 1,
    in_flight: 0,
    number: 1,
    last_sent: 1,
    latest: Some(1),
    rtt: None,
    srtt: Span::ZERO,
    min_rtt: Span::ZERO,
    slow_start: false,
    is_limited: true,
    may_grow: true,
};
