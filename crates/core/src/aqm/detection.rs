//! RED's detection of congestion: the parameters of its average queue and of its drop curve.
//!
//! Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993. Not a
//! policy: what RED, TRED and CHOKe have in common. RIO and FRED, whose thresholds differ, share its average.

use super::average::AverageQueue;
use super::drop_curve::{DropCurve, DropSpacing, check_thresholds};
use crate::limit::{Limit, Threshold};
use crate::param::{EntryArgs, Kind, Param, ParamError, require};
use crate::units::{Bytes, Rate, Ratio};

pub(crate) const MIN_TH: Param = Param::new(
    "min_th",
    "min_th",
    Kind::Threshold,
    "5p",
    "ns-2 before 2002",
    "Average below which nothing is dropped early; in packets or bytes, as `max_th`.",
);
pub(crate) const MAX_TH: Param = Param::new(
    "max_th",
    "max_th",
    Kind::Threshold,
    "15p",
    "ns-2 before 2002",
    "Average above which everything is dropped, or from which `gentle` goes on.",
);
pub(crate) const W_Q: Param = Param::new(
    "w_q",
    "w_q",
    Kind::Ratio,
    "0.002",
    "1993 paper, section 4; ns-2",
    "Weight of the present queue in the average.",
);
pub(crate) const MAX_P: Param =
    Param::new("max_p", "max_p", Kind::Ratio, "0.1", "ns-2 (linterm 10)", "Probability at `max_th`.");
pub(crate) const GENTLE: Param = Param::new(
    "gentle",
    "–",
    Kind::Switch,
    "false",
    "ns-2 before 2001-04",
    "Let the probability grow from `max_p` to 1 between `max_th` and twice that.",
);
pub(crate) const WAIT: Param = Param::new(
    "wait",
    "–",
    Kind::Switch,
    "true",
    "ns-2",
    "Space drops at least 1/p_b apart; false: the uniform spacing of the 1993 paper.",
);
pub(crate) const MEAN_PKTSIZE: Param = Param::new(
    "mean_pktsize",
    "s",
    Kind::Bytes,
    "500B",
    "ns-2",
    "Mean packet size: the unit of idle time, and of `bytes` where that is a switch.",
);

/// When there is congestion, and how many arrivals are dropped then.
#[derive(Clone, Debug, PartialEq)]
pub struct DetectionParams {
    /// Average queue below which nothing is dropped early; in packets or bytes. Default 5 packets.
    pub min_th: Threshold,
    /// Average queue above which everything is dropped, or from which `gentle` goes on; in the unit of `min_th`.
    /// Default 15 packets (TRED: 55).
    pub max_th: Threshold,
    /// Weight of the present queue in the average, 0 to 1. Default 0.002.
    pub w_q: Ratio,
    /// Drop probability at `max_th`, 0 to 1. Default 0.1 (TRED: 0.2).
    pub max_p: Ratio,
    /// Whether the probability grows from `max_p` to 1 between `max_th` and twice that. Default false.
    pub gentle: bool,
    /// Whether drops are at least 1/p_b arrivals apart; otherwise the uniform spacing of the 1993 paper. Default
    /// true.
    pub wait: bool,
    /// Mean packet size in bytes: the unit of idle time. Default 500.
    pub mean_pktsize: Bytes,
}

impl DetectionParams {
    /// From the catalogue's values, for a buffer of `limit`.
    ///
    /// # Errors
    /// When they contradict each other or the limit.
    pub(crate) fn from_args(args: &EntryArgs<'_>, limit: Option<Limit>) -> Result<Self, ParamError> {
        Self::with_sizes(args, limit, [args.threshold("min_th"), args.threshold("max_th")], args.ratio("w_q"))
    }

    /// The same with these thresholds and this weight.
    pub(crate) fn with_sizes(
        args: &EntryArgs<'_>,
        limit: Option<Limit>,
        [min_th, max_th]: [Threshold; 2],
        w_q: Ratio,
    ) -> Result<Self, ParamError> {
        let params = Self {
            min_th,
            max_th,
            w_q,
            max_p: args.ratio("max_p"),
            gentle: args.switch("gentle"),
            wait: args.switch("wait"),
            mean_pktsize: args.bytes("mean_pktsize"),
        };
        params.check(limit)?;
        Ok(params)
    }

    pub(crate) fn check(&self, limit: Option<Limit>) -> Result<(), ParamError> {
        check_thresholds(("min_th", self.min_th), ("max_th", self.max_th), limit)?;
        check_average(self.w_q, self.mean_pktsize)
    }

    /// The average queue in front of a link of `link_rate`, 0 at first.
    pub(crate) const fn average(&self, link_rate: Rate) -> AverageQueue {
        AverageQueue::new(self.w_q, self.mean_pktsize, link_rate)
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

/// Refuses an average that would never move and packets without size.
pub(crate) fn check_average(w_q: Ratio, mean_pktsize: Bytes) -> Result<(), ParamError> {
    require(w_q > Ratio::ZERO, "w_q", "with 0 the average never moves; write for example 0.002")?;
    require(mean_pktsize > Bytes::ZERO, "mean_pktsize", "a packet has at least 1B")
}
