//! Estimators of rates, minima, fair shares and the behaviour of flows.
//!
//! | file | estimator | source |
//! |---|---|---|
//! | [`tsw`] | time sliding window | Clark, Fang 1998 |
//! | [`exponential`] | exponential average over gaps | Stoica, Shenker, Zhang 1998 |
//! | [`fair_share`] | the fair share of a link: CSFQ and MCSFQ | Stoica, Shenker, Zhang 1998; Pelsser, De Cnodder 2002 |
//! | [`windowed_min`] | minimum over a sliding window | – |
//! | [`least_labels`] | smallest labels of a sliding window | – |
//! | [`responsiveness`] | whether a flow sends less when its packets are lost | Tamura, Tobe, Tokuda 2000, section 6 |
//! | [`pattern`] | whether a flow is adaptive, by inter-arrival times, duration and throughput | Tamura, Tobe, Tokuda 2000, section 6 |
//! | [`answers`] | responsiveness to the losses that the flow has anyway | – |
//! | [`tcp_friendly`] | whether a flow sends no more than TCP with its losses | Floyd, Fall 1999, section 4.1 |
//! | [`reserved`] | the rate that flows have reserved, without state of flows | Stoica, Zhang 1999 |

pub mod answers;
pub mod exponential;
pub mod fair_share;
pub mod least_labels;
pub mod pattern;
pub mod reserved;
pub mod responsiveness;
pub mod tcp_friendly;
pub mod tsw;
pub mod windowed_min;

use crate::units::Time;

/// An estimator of a rate.
///
/// The amounts may be bits, packets or tickets; the rate has the same unit per second. An estimator starts
/// with an explicit value at an explicit time. A reading does not change it, and readings decay while nothing
/// arrives.
pub trait RateEstimator {
    /// Counts `amount`, which arrived at `now`. `now` never decreases.
    fn update(&mut self, now: Time, amount: f64);

    /// The rate at `now`, which is not before the last update.
    fn rate(&self, now: Time) -> f64;
}
