//! Parameters of the estimate of a fair share, and the readings of the papers that they choose.

use crate::param::{EntryArgs, Kind, Paper, Param, ParamError, require};
use crate::units::{Rate, Ratio, Span};

/// K_α, and the window that follows it.
pub(crate) const K_ALPHA: Param = Param::new(
    "k_alpha",
    "K_α",
    Kind::Span,
    "100ms",
    "1998 paper, simulations",
    "Time constant of the rates that arrive and are accepted.",
);
/// K_c.
pub(crate) const K_C: Param = Param {
    name: "k_c",
    symbol: "K_c",
    doc: "Window after which the fair share is estimated anew.",
    ..K_ALPHA
};
/// See [`by_delay`](super::by_delay).
pub(crate) const TARGET_DELAY: Param = Param::new(
    "target_delay",
    "–",
    Kind::Span,
    "20ms",
    "chosen, as for RAMP",
    "Queueing delay above which the share falls; 0s: it follows the rate of arrivals.",
)
.in_paper("0s");
/// FS at the start.
pub(crate) const INITIAL: Param = Param {
    name: "initial",
    symbol: "FS",
    kind: Kind::Rate,
    default: None,
    paper: Paper::AsDefault,
    source: "1998 code; the 2002 paper starts at 1 bit/s, which drops the first window",
    doc: "Fair share at the start; unknown if not set, and then nothing is dropped until the queue grows.",
};
/// See [`BelowThreshold`].
pub(crate) const BELOW_THRESHOLD: Param = Param {
    name: "below_threshold",
    symbol: "–",
    kind: Kind::Choice(&["unknown", "uncongested"]),
    default: Some("unknown"),
    paper: Paper::AsDefault,
    source: "1998 code",
    doc: "What a queue up to the threshold means on an uncongested link: that its share is unknown, or that it \
          is uncongested still.",
};
/// How much of FS an uncongested window takes.
pub(crate) const DECAY: Param = Param {
    name: "decay",
    symbol: "–",
    kind: Kind::Ratio,
    default: Some("1"),
    paper: Paper::AsDefault,
    source: "1998 paper, figure 3: the share is the largest label of the window",
    doc: "Part of the fair share that an uncongested window takes, down to the largest label seen.",
};
/// See [`AcceptedRate`].
pub(crate) const ACCEPTED_RATE: Param = Param {
    name: "accepted_rate",
    symbol: "FR",
    kind: Kind::Choice(&["arrivals", "accepted"]),
    default: Some("arrivals"),
    paper: Paper::AsDefault,
    source: "1998 code; figures 2 and 3 of 2002 say accepted",
    doc: "When the accepted rate is averaged: at every arrival, or when a packet is accepted.",
};
/// Which label is noted.
pub(crate) const NOTED_LABEL: Param = Param {
    name: "noted_label",
    symbol: "–",
    kind: Kind::Choice(&["original", "relabelled"]),
    default: Some("original"),
    paper: Paper::AsDefault,
    source: "1998 code; figure 1 of 2002 says relabelled",
    doc: "Which labels an uncongested window takes the largest of: those that came, or those that leave.",
};
/// Whether the packet that ends a window is part of it.
pub(crate) const OWN_LABEL: Param = Param::new(
    "own_label",
    "–",
    Kind::Switch,
    "true",
    "1998 code; figures 2 and 3 of 2002 say false",
    "Whether the packet that ends an uncongested window counts for it.",
);
/// Whether G is estimated.
pub(crate) const AGGREGATE_GUARANTEE: Param = Param::new(
    "aggregate_guarantee",
    "G",
    Kind::Switch,
    "true",
    "2002 paper, section 4; figure 7 by itself says false",
    "Whether what guaranteed packets use is estimated and set aside before the rest is divided.",
);
/// What an overflow takes.
pub(crate) const OVERFLOW_DECREASE: Param = Param::new(
    "overflow_decrease",
    "–",
    Kind::Ratio,
    "1%",
    "1998 paper, simulations",
    "Part of the fair share that each overflow of the buffer takes, up to 30 times per period of congestion.",
);
/// What the onset of congestion does.
pub(crate) const ONSET: Param = Param::new(
    "onset",
    "–",
    Kind::Switch,
    "false",
    "2002 paper, section 5, as further work",
    "Whether the onset of congestion lowers the fair share at once: to what was seen, and to what fits.",
);

/// What a queue at or below the threshold means for an uncongested link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BelowThreshold {
    /// Its share is unknown.
    Unknown,
    /// It stays uncongested whatever arrives.
    Uncongested,
}

/// What FR averages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AcceptedRate {
    /// Every arrival, an early drop as 0 bits.
    Arrivals,
    /// Accepted packets only.
    Accepted,
}

/// Which label an uncongested window notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotedLabel {
    /// As the packet came.
    Original,
    /// At most the fair share, as the packet leaves.
    Relabelled,
}

/// Parameters of a [`FairShareEstimator`](super::FairShareEstimator).
#[derive(Clone, Debug, PartialEq)]
pub struct FairShareParams {
    /// K_α: time constant of the arrival and acceptance rates. Default 100 ms.
    pub k_alpha: Span,
    /// K_c: window after which the fair share is estimated anew. Default 100 ms.
    pub k_c: Span,
    /// Queueing delay above which the fair share falls; zero: as in the papers. Default 20 ms.
    pub target_delay: Span,
    /// Fair share at the start in bits per second; none: unknown, and nothing is dropped until the queue
    /// grows. Default none.
    pub initial: Option<Rate>,
    /// Meaning of a queue below the threshold on an uncongested link. Default: the share is unknown (CSFQ).
    pub below_threshold: BelowThreshold,
    /// When the accepted rate is averaged. Default at every arrival.
    pub accepted_rate: AcceptedRate,
    /// Which labels an uncongested window takes the largest of. Default those that came.
    pub noted_label: NotedLabel,
    /// Whether the packet that ends an uncongested window counts for it. Default true.
    pub own_label: bool,
    /// Whether what guaranteed packets use is estimated and set aside first. Default true.
    pub aggregate_guarantee: bool,
    /// Part of the fair share that each overflow takes, below 1, up to 30 times per congestion. Default 0.01.
    pub overflow_decrease: Ratio,
    /// Part of the fair share that an uncongested window takes, 0 to 1, down to the largest label seen.
    /// Default 1 (CSFQ).
    pub decay: Ratio,
    /// Whether the onset of congestion lowers the fair share at once. Default false.
    pub onset: bool,
}

impl FairShareParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When they contradict each other.
    pub(crate) fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let (initial, overflow_decrease) = (args.rate_if_set("initial"), args.ratio("overflow_decrease"));
        let nothing =
            "a share of nothing lets nothing through that could raise it; leave it out if it is unknown";
        require(initial.is_none_or(|rate| rate > Rate::ZERO), "initial", nothing)?;
        let all = "an overflow that takes all leaves nothing to grow from; write for example \"1%\"";
        require(overflow_decrease.get() < 1.0, "overflow_decrease", all)?;
        Ok(Self {
            initial,
            below_threshold: match args.choice("below_threshold") {
                "unknown" => BelowThreshold::Unknown,
                _ => BelowThreshold::Uncongested,
            },
            accepted_rate: match args.choice("accepted_rate") {
                "arrivals" => AcceptedRate::Arrivals,
                _ => AcceptedRate::Accepted,
            },
            noted_label: match args.choice("noted_label") {
                "original" => NotedLabel::Original,
                _ => NotedLabel::Relabelled,
            },
            own_label: args.switch("own_label"),
            aggregate_guarantee: args.switch("aggregate_guarantee"),
            overflow_decrease,
            decay: args.ratio("decay"),
            onset: args.switch("onset"),
            ..Self::of_1998(args)?
        })
    }

    /// The readings of 1998, with time constants from the catalogue's values.
    ///
    /// # Errors
    /// When a time constant is zero.
    pub(crate) fn of_1998(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let (k_alpha, k_c) = (args.span("k_alpha"), args.span("k_c"));
        for (key, span) in [("k_alpha", k_alpha), ("k_c", k_c)] {
            require(span > Span::ZERO, key, "it must be above zero; write for example \"100ms\"")?;
        }
        Ok(Self {
            k_alpha,
            k_c,
            target_delay: args.span("target_delay"),
            initial: None,
            below_threshold: BelowThreshold::Unknown,
            accepted_rate: AcceptedRate::Arrivals,
            noted_label: NotedLabel::Original,
            own_label: true,
            aggregate_guarantee: false,
            overflow_decrease: Ratio::clamped(0.01),
            decay: Ratio::ONE,
            onset: false,
        })
    }
}

/// Refuses parameters of the papers' law next to a `target_delay`, which replaces it.
///
/// # Errors
/// When one of them is changed.
pub(crate) fn refuse_unused(args: &EntryArgs<'_>) -> Result<(), ParamError> {
    let unused = [
        "threshold",
        BELOW_THRESHOLD.name,
        DECAY.name,
        NOTED_LABEL.name,
        OWN_LABEL.name,
        ONSET.name,
        "avoidance",
    ];
    let changed = unused.into_iter().find(|key| args.is_changed(key));
    let message = "it belongs to the papers' way to estimate the share, which `target_delay` replaces; write \
                   preset = \"paper\" or target_delay = \"0s\", or leave it out";
    require(
        changed.is_none() || args.span(TARGET_DELAY.name) == Span::ZERO,
        changed.unwrap_or_default(),
        message,
    )
}
