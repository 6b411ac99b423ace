//! RED's detection of congestion: the parameters of its average queue and of its drop curve.
//!
//! Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993. This
//! is not a policy but the common part of RED, TRED and CHOKe. RIO and FRED, whose thresholds differ, share
//! its average.

use super::average::AverageQueue;
use super::drop_curve::{DropCurve, DropSpacing, check_thresholds};
use crate::limit::{BufferSize, Threshold};
use crate::param::{Param, ParamError, require};
use crate::params;
use crate::units::{Bytes, Rate, Ratio};

/// The weight of the present queue in the average.
pub(crate) const W_Q: Param = Param::of("0.002", "1993 paper, section 4; ns-2")
    .symbol("w_q")
    .doc("Weight of the present queue in the average.");
/// Whether the curve continues above its maximum.
pub(crate) const GENTLE: Param = Param::of("false", "ns-2 before 2001-04")
    .doc("Let the probability grow from `max_p` to 1 between `max_th` and twice that.");
/// The spacing of drops.
pub(crate) const WAIT: Param = Param::of("true", "ns-2")
    .doc("Space drops at least 1/p_b apart; false: the uniform spacing of the 1993 paper.");
/// The assumed mean packet size.
pub(crate) const MEAN_PKTSIZE: Param = Param::of("500B", "ns-2")
    .symbol("s")
    .doc("Mean packet size: the unit of idle time, and of `bytes` where that is a switch.");

params! {
    /// Parameters of the detection of congestion and of the drop probability.
    pub struct DetectionParams {
        /// Average below which nothing is dropped early; in packets or bytes, as `max_th`.
        min_th: Threshold = Param::of("5p", "ns-2 before 2002").symbol("min_th"),
        /// Average above which everything is dropped, or from which `gentle` goes on.
        max_th: Threshold = Param::of("15p", "ns-2 before 2002").symbol("max_th"),
        w_q: Ratio = W_Q,
        /// Probability at `max_th`.
        max_p: Ratio = Param::of("0.1", "ns-2 (linterm 10)").symbol("max_p"),
        gentle: bool = GENTLE,
        wait: bool = WAIT,
    }
}

impl DetectionParams {
    /// Refuses values that contradict each other or the limit.
    pub(crate) fn check(&self, limit: Option<BufferSize>, mean_pktsize: Bytes) -> Result<(), ParamError> {
        check_thresholds(("min_th", self.min_th), ("max_th", self.max_th), limit)?;
        check_average(self.w_q, mean_pktsize)
    }

    /// The average queue for a link of `link_rate`; 0 at first.
    pub(crate) const fn average(&self, mean_pktsize: Bytes, link_rate: Rate) -> AverageQueue {
        AverageQueue::new(self.w_q, mean_pktsize, link_rate)
    }

    /// The probability as a function of the average, in the unit of the thresholds.
    pub(crate) fn curve(&self) -> DropCurve {
        let (min_th, max_th) = (self.min_th.level(), self.max_th.level());
        DropCurve { min_th, max_th, max_p: self.max_p, gentle: self.gentle }
    }

    /// The curve with its spacing of drops.
    pub(crate) fn spacing(&self) -> DropSpacing {
        DropSpacing::new(self.curve(), self.wait)
    }
}

/// Refuses an average that would never change, and packets without size.
pub(crate) fn check_average(w_q: Ratio, mean_pktsize: Bytes) -> Result<(), ParamError> {
    require(w_q > Ratio::ZERO, "w_q", "with 0 the average never moves; write for example 0.002")?;
    require(mean_pktsize > Bytes::ZERO, "mean_pktsize", "a packet has at least 1B")
}
