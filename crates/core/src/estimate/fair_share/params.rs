//! Parameters of the estimate of a fair share, and the readings of the papers that they choose.

use crate::param::{EntryArgs, Param, ParamError, require};
use crate::units::{Rate, Ratio, Span};
use crate::{choice, params};

choice! {
    /// The meaning of a queue at or below the threshold on an uncongested link.
    pub enum BelowThreshold {
        /// The share is unknown.
        Unknown = "unknown",
        /// The link stays uncongested whatever arrives.
        Uncongested = "uncongested",
    }
}

choice! {
    /// The packets over which FR is averaged.
    pub enum AcceptedRate {
        /// All arrivals; an early drop counts as 0 bits.
        Arrivals = "arrivals",
        /// Accepted packets only.
        Accepted = "accepted",
    }
}

choice! {
    /// The label that an uncongested window notes.
    pub enum NotedLabel {
        /// The label with which the packet arrived.
        Original = "original",
        /// The label with which the packet leaves, at most the fair share.
        Relabelled = "relabelled",
    }
}

params! {
    /// Parameters of a [`FairShareEstimator`](super::FairShareEstimator).
    pub struct FairShareParams {
        /// Time constant of the rates that arrive and are accepted.
        k_alpha: Span = Param::of("100ms", "1998 paper, simulations").symbol("K_α"),
        /// Window after which the fair share is estimated anew.
        k_c: Span = Param::of("100ms", "1998 paper, simulations").symbol("K_c"),
        /// Queueing delay above which the share falls; above 96 Mb/s less, and shorter windows with it. 0s: the share follows the rate of arrivals.
        target_delay: Span = Param::of("20ms", "chosen, as for RAMP").in_paper("0s"),
        /// Whether what guaranteed packets use is estimated and set aside before the rest is divided.
        aggregate_guarantee: bool = Param::of("true", "2002 paper, section 4; figure 7 by itself says false").symbol("G"),
        /// Fair share at the start; unknown if not set, and then nothing is dropped until the queue grows.
        initial: Option<Rate> = Param::unset("1998 code; the 2002 paper starts at 1 bit/s, which drops the first window")
            .symbol("FS"),
        /// What a queue up to the threshold means on an uncongested link: that its share is unknown, or that it is uncongested still.
        below_threshold: BelowThreshold = Param::of("unknown", "1998 code"),
        /// Part of the fair share that an uncongested window takes, down to the largest label seen.
        decay: Ratio = Param::of("1", "1998 paper, figure 3: the share is the largest label of the window"),
        /// When the accepted rate is averaged: at every arrival, or when a packet is accepted.
        accepted_rate: AcceptedRate = Param::of("arrivals", "1998 code; figures 2 and 3 of 2002 say accepted").symbol("FR"),
        /// Which labels an uncongested window takes the largest of: those that came, or those that leave.
        noted_label: NotedLabel = Param::of("original", "1998 code; figure 1 of 2002 says relabelled"),
        /// Whether the packet that ends an uncongested window counts for it.
        own_label: bool = Param::of("true", "1998 code; figures 2 and 3 of 2002 say false"),
        /// Part of the fair share that each overflow of the buffer takes, up to 30 times per period of congestion.
        overflow_decrease: Ratio = Param::of("1%", "1998 paper, simulations"),
        /// Whether the onset of congestion lowers the fair share at once: to what was seen, and to what fits.
        onset: bool = Param::of("false", "2002 paper, section 5, as further work"),
    }
    check: |params: &Self, _| params.check()
}

impl FairShareParams {
    /// Whether the capacity to divide is measured, or the set rate of the link as in the papers.
    pub(crate) fn measures_rate(&self) -> bool {
        self.target_delay > Span::ZERO
    }

    fn check(&self) -> Result<(), ParamError> {
        let nothing =
            "a share of nothing lets nothing through that could raise it; leave it out if it is unknown";
        require(self.initial.is_none_or(|rate| rate > Rate::ZERO), "initial", nothing)?;
        let all = "an overflow that takes all leaves nothing to grow from; write for example \"1%\"";
        require(self.overflow_decrease.get() < 1.0, "overflow_decrease", all)?;
        for (key, span) in [("k_alpha", self.k_alpha), ("k_c", self.k_c)] {
            require(span > Span::ZERO, key, "it must be above zero; write for example \"100ms\"")?;
        }
        Ok(())
    }
}

/// Refuses parameters of the papers' law next to a `target_delay`, which replaces it.
///
/// # Errors
/// When one of them has another value than its default.
pub(crate) fn refuse_unused(args: &EntryArgs<'_>, target_delay: Span) -> Result<(), ParamError> {
    let unused = ["threshold", "below_threshold", "decay", "noted_label", "own_label", "onset", "avoidance"];
    let message = "it belongs to the papers' way to estimate the share, which `target_delay` replaces; write \
                   preset = \"paper\" or target_delay = \"0s\", or leave it out";
    args.refuse_idle(&unused.map(|key| (key, target_delay > Span::ZERO, message)))
}
