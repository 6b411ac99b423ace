//! Estimators: what has come lately, per second.
//!
//! | file | estimator | source |
//! |---|---|---|
//! | [`tsw`] | time sliding window | Clark, Fang 1998 |
//! | [`exponential`] | exponential average over gaps | Stoica, Shenker, Zhang 1998 |
//! | [`fair_share`] | the fair share of a link: CSFQ and MCSFQ | Stoica, Shenker, Zhang 1998; Pelsser, De Cnodder 2002 |
//! | [`windowed_min`] | minimum over a sliding window | – |
//! | [`least_labels`] | smallest labels of a sliding window | – |
//! | [`responsiveness`] | whether a flow sends less when its packets are lost | Tamura, Tobe, Tokuda 2000, section 6 |
//! | [`answers`] | the same, from the losses that it has anyway | – |
//! | [`tcp_friendly`] | whether a flow sends no more than TCP with its losses | Floyd, Fall 1999, section 4.1 |

pub mod answers;
pub mod exponential;
pub mod fair_share;
pub mod least_labels;
pub mod responsiveness;
pub mod tcp_friendly;
pub mod tsw;
pub mod windowed_min;

use crate::units::Time;

/// An estimator of a rate.
///
/// The amounts may be bits, packets or tickets; the rate is in the same unit per second. An estimator starts
/// with an explicit value at an explicit time. Reading does not change it, and what is read decays while
/// nothing arrives.
pub trait RateEstimator {
    /// `amount` arrived at `now`, which never decreases.
    fn update(&mut self, now: Time, amount: f64);

    /// The rate as it stands at `now`, which is not before the last update.
    fn rate(&self, now: Time) -> f64;
}
