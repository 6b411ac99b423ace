//! Parameters of SF-FC and NBQ.

use alloc::format;

use super::flows;
use crate::limit::Limit;
use crate::param::{Entry, EntryArgs, Kind, Paper, Param, ParamError, Role, require};
use crate::param::{INNER, LIMIT};
use crate::units::{Ratio, Span};

/// SF-FC in the catalogue.
pub const SFFC: Entry = Entry {
    name: "sffc",
    role: Role::Policy,
    summary: "Soft fair flow control: drops early what downstream routers report as lost of unresponsive flows.",
    reference: "Tamura, Tobe, Tokuda 2000",
    cost: "O(1) per packet, O(n log n) per interval; 196 bytes per active flow, 120 per flow number where flows are recognised",
    params: &PARAMS,
};

/// NBQ in the catalogue.
pub const NBQ: Entry = Entry {
    name: "nbq",
    summary: "SF-FC's predecessor: the reports of downstream routers alone, without fairness to adaptive flows.",
    reference: "Tamura, Tobe, Tokuda 1999, as described in 2000",
    params: PARAMS.split_at(NBQ_PARAMS).0,
    ..SFFC
};

/// How many of the parameters NBQ has.
const NBQ_PARAMS: usize = 15;
static PARAMS: [Param; 22] = [
    Param {
        paper: Paper::Is("64kB"),
        source: "section 5: 64 KB on links of 10 Mbit/s, which is 50 ms; a fixed size is too short on faster links",
        doc: "Size of the buffer, without the packet in transmission; if not set 50 ms of the link, at least 64 kB.",
        ..LIMIT
    },
    Param::new(
        "interval",
        "N",
        Kind::Span,
        "50ms",
        "not stated; chosen: about the delay of a full 64 kB buffer at 10 Mb/s",
        "How often rates are measured, reports sent and discard rates set.",
    ),
    Param::new(
        "increment",
        "I",
        Kind::Ratio,
        "0.5%",
        "not stated; chosen: 10 s from nothing to the whole link",
        "Part of the link's rate by which a flow may send more after each interval without a report.",
    ),
    Param::new(
        "group",
        "–",
        Kind::Switch,
        "true",
        "the paper has I for each flow: 200 of them grow by the whole link",
        "Whether I is divided by the number of flows that reports have cut, so that together they grow by it.",
    )
    .in_paper("false"),
    Param::new(
        "alpha",
        "α",
        Kind::Ratio,
        "0.5",
        "not stated; chosen: the error halves in an interval",
        "Weight of the previous basic discard rate, against the one that a report asks for.",
    ),
    Param::new(
        "history",
        "–",
        Kind::Count,
        "3",
        "not stated; chosen",
        "Intervals over which departures are averaged, since a report describes past ones; at most 8.",
    ),
    Param::new(
        "wait",
        "–",
        Kind::Count,
        "1",
        "not stated; chosen",
        "Intervals without a report before the discard rate falls: the next one may be late.",
    ),
    Param::new(
        "regular",
        "–",
        Kind::Ratio,
        "5%",
        "\"a regular value\"; chosen",
        "Reported loss up to which the discard rate falls as if there were no report.",
    ),
    Param::new(
        "active",
        "T",
        Kind::Span,
        "500ms",
        "not stated; chosen: 10 intervals",
        "A flow counts as active, and has state, until it has been silent for this time.",
    ),
    Param::new(
        "reports",
        "–",
        Kind::Switch,
        "true",
        "the paper",
        "Whether it reports its losses to the upstream router and uses the reports of the downstream one.",
    ),
    Param::new(
        "previous",
        "–",
        Kind::Choice(&["bdr", "final"]),
        "bdr",
        "eq. 3 has v, which is final",
        "Start of eqs. 3 and 4: the previous basic discard rate, or the final one, v.",
    ),
    Param::new(
        "discard",
        "v",
        Kind::Choice(&["rate", "share"]),
        "rate",
        "the paper has a share; over several hops shares multiply",
        "What a cut is: a rate that is left of a flow, held by a token bucket; or a share of its packets, drawn by chance.",
    )
    .in_paper("share"),
    Param {
        paper: Paper::Unset,
        ..Param::new(
            "report_discards",
            "–",
            Kind::Ratio,
            "5%",
            "as `regular`; the paper reports when a link overflows only, so that cuts end at a link with room",
            "Share of a flow above what may pass here from which on it is reported, whether the link overflows or not: with what may \
             pass, or if cuts are shares with what left.",
        )
    },
    Param::new(
        "recognise",
        "–",
        Kind::Choice(&["losses", "protocol", "behaviour"]),
        "losses",
        "the paper has the protocol; section 6 asks for behaviour",
        "Which flows are adaptive: those that slow down after losses, if the `discipline` divides by flows (else as `protocol`); \
         those of TCP; or those that slow down when packets are dropped for a test.",
    )
    .in_paper("protocol"),
    Param::new(
        "trust",
        "–",
        Kind::Choice(&["full", "bounded"]),
        "full",
        "the paper; gateways are bounded unless they say otherwise",
        "How far reports of others cut a flow: to what they ask for; or only while this link is congested, and to no \
         less than the flow's fair share of it.",
    ),
    Param::new(
        "beta",
        "β",
        Kind::Ratio,
        "0.9",
        "not stated; chosen",
        "Weight of the change of adaptive arrivals so far, ρ, against the last one.",
    ),
    Param::new(
        "share",
        "W",
        Kind::Choice(&["needs", "count"]),
        "needs",
        "eq. 5 has the count: a hundred flows that hardly send make a greedy one rich",
        "What non-adaptive flows are due: their part of the max-min fair split, in which an adaptive flow wants all it can get; or \
         their part of the number of flows.",
    )
    .in_paper("count"),
    Param::new(
        "usage",
        "Ŵ",
        Kind::Choice(&["demand", "departures"]),
        "demand",
        "eq. 5 has departures, its text λ and v",
        "What non-adaptive flows are taken to use: what they would send after BDR, or what left.",
    ),
    Param::new(
        "spare",
        "–",
        Kind::Choice(&["lent", "share", "printed"]),
        "lent",
        "eq. 7 gives all that is left, and adaptive flows no room to grow",
        "What non-adaptive flows get of what adaptive ones leave: I more in each interval, and half after losses of these; all, but at \
         least their share; or all, as eq. 7 is printed.",
    )
    .in_paper("share"),
    Param::new(
        "divisor",
        "–",
        Kind::Choice(&["unsatisfied", "all"]),
        "unsatisfied",
        "figure 5 has all",
        "Among how many the fair bandwidth is divided: non-adaptive flows that want more, or adaptive ones too.",
    ),
    Param::new(
        "recount",
        "–",
        Kind::Switch,
        "false",
        "figure 5 does",
        "Whether a satisfied flow is counted again in each round of the division.",
    ),
    Param::new(
        "discipline",
        "–",
        Kind::Choice(&INNER),
        "fq_codel",
        "the paper's FIFO divides by round-trip times and sizes of segments",
        "What divides the link behind the discarder, with its defaults and the size `limit`: in place of the FIFO; another scheduler \
         that is named as `kind` stays.",
    )
    .in_paper(FIFO),
];

/// The discipline that the paper has.
pub const FIFO: &str = "fifo";

/// Parameters of [`Sffc`](super::Sffc); [`SFFC`] says what each does.
#[derive(Clone, Debug, PartialEq)]
pub struct SffcParams {
    /// Size of the buffer, in packets or bytes, without the packet in transmission. Default 50 ms of the
    /// link, at least 64 kB.
    pub limit: Option<Limit>,
    /// N: time between measurements of rates, reports and new discard rates, from 1 ms. Default 50 ms.
    pub interval: Span,
    /// I: part of the link's rate by which a flow may grow after each interval without a report. Default
    /// 0.005.
    pub increment: Ratio,
    /// Whether I is divided by the number of flows that reports have cut. Default true; the paper: false.
    pub group: bool,
    /// α: weight of the previous basic discard rate against the one that a report asks for, 0 to 1. Default
    /// 0.5.
    pub alpha: Ratio,
    /// Intervals over which departures are averaged, 1 to 8. Default 3.
    pub history: u64,
    /// Intervals without a report before the discard rate falls. Default 1.
    pub wait: u64,
    /// Reported loss up to which the discard rate falls as if there were no report, 0 to 1. Default 0.05.
    pub regular: Ratio,
    /// T: time of silence after which the state of a flow is removed. Default 500 ms.
    pub active: Span,
    /// Whether reports are sent upstream and those from downstream are used. Default true.
    pub reports: bool,
    /// Which discard rate eqs. 3 and 4 go on from. Default BDR.
    pub previous: Previous,
    /// What a cut is. Default a rate; the paper: a share.
    pub discard: Discard,
    /// Share of a flow discarded here above which it is reported even without an overflow. Default 0.05; the paper: none.
    pub report_discards: Option<Ratio>,
    /// How adaptive flows are recognised. Default by their losses; the paper: by their protocol.
    pub recognise: Recognise,
    /// How far reports of others cut a flow. Default to what they ask for.
    pub trust: Trust,
    /// What divides the link behind the discarder, by its name in the catalogue. Default `fq_codel`; the paper and NBQ: `fifo`.
    pub discipline: &'static str,
    /// The fairness term; none in NBQ.
    pub fairness: Option<FairnessParams>,
}

/// Parameters of what SF-FC adds to NBQ.
#[derive(Clone, Debug, PartialEq)]
pub struct FairnessParams {
    /// β: weight of the past in ρ, the change of adaptive arrivals, 0 to 1. Default 0.9.
    pub beta: Ratio,
    /// W: what non-adaptive flows are due. Default by their needs; the paper: by their number.
    pub share: Share,
    /// Ŵ: what non-adaptive flows are assumed to use. Default their demand.
    pub usage: Usage,
    /// What non-adaptive flows get of what adaptive ones leave. Default lent; the paper: all, and at least their share.
    pub spare: Spare,
    /// Number of flows that the fair bandwidth is divided by. Default the unsatisfied ones.
    pub divisor: Divisor,
    /// Whether a satisfied flow is counted again in each round, as in figure 5. Default false.
    pub recount: bool,
}

/// What the basic discard rate goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// Itself.
    Bdr,
    /// The final discard rate.
    Final,
}

/// What a cut is kept as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// The rate that it leaves.
    Rate,
    /// The share that it takes.
    Share,
}

/// By what adaptive flows are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognise {
    /// What they say they are.
    Protocol,
    /// What they do when packets are lost anyway.
    Losses,
    /// What they do when packets are dropped for a test.
    Behaviour,
}

/// How far reports of others cut a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// To what they ask for.
    Full,
    /// While the link is congested, to no less than the flow's fair share.
    Bounded,
}

/// What non-adaptive flows are due of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Their part of the max-min fair split.
    Needs,
    /// Their part of the number of flows.
    Count,
}

/// What non-adaptive flows are taken to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// What they would send after the basic discard rate.
    Demand,
    /// What left.
    Departures,
}

/// What non-adaptive flows get of what adaptive ones leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// Slowly more of it, and less when adaptive ones lose packets.
    Lent,
    /// While these are steady all of it, at least their share.
    Share,
    /// While these are steady all of it.
    Printed,
}

/// Among how many flows the fair bandwidth is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// Non-adaptive ones that want more.
    Unsatisfied,
    /// Adaptive ones too.
    All,
}

impl SffcParams {
    /// From the catalogue's values for `entry`, which is [`SFFC`] or [`NBQ`].
    ///
    /// # Errors
    /// When nothing could be measured, or too much would have to be kept.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let (interval, active, history) = (args.span("interval"), args.span("active"), args.count("history"));
        let measured = "in so short a time no rate can be measured; write at least \"1ms\"";
        require(interval >= Span::from_millis(1), "interval", measured)?;
        let kept =
            format!("a flow is active for at least one `interval`, {interval}, and at most 1000 of them");
        require(active >= interval && active.div(1_000) <= interval, "active", &kept)?;
        let averaged = (1..=flows::HISTORY as u64).contains(&history);
        require(averaged, "history", "an average is over 1 to 8 intervals")?;
        for name in ["alpha", "beta"].into_iter().filter(|name| args.has(name)) {
            require(args.ratio(name).get() < 1.0, name, "with 1 it never moves; write for example 0.5")?;
        }
        let rises = "a rate that was lowered must rise again; write for example \"0.5%\"";
        require(args.ratio("increment") > Ratio::ZERO, "increment", rises)?;
        let cuts_rates = args.choice("discard") == "rate";
        let shares =
            "it has no effect: only cuts that are shares, discard = \"share\", go on from a rate before";
        require(!cuts_rates || !args.is_changed("previous"), "previous", shares)?;
        Ok(Self {
            limit: args.limit_if_set("limit"),
            interval,
            increment: args.ratio("increment"),
            group: args.switch("group"),
            alpha: args.ratio("alpha"),
            history,
            wait: args.count("wait"),
            regular: args.ratio("regular"),
            active,
            reports: args.switch("reports"),
            previous: if args.choice("previous") == "final" { Previous::Final } else { Previous::Bdr },
            discard: if cuts_rates { Discard::Rate } else { Discard::Share },
            report_discards: args.ratio_if_set("report_discards"),
            recognise: match args.choice("recognise") {
                "losses" => Recognise::Losses,
                "behaviour" => Recognise::Behaviour,
                _ => Recognise::Protocol,
            },
            trust: if args.choice("trust") == "full" { Trust::Full } else { Trust::Bounded },
            discipline: if args.has("discipline") { args.choice("discipline") } else { FIFO },
            fairness: (args.is_of(&SFFC)).then(|| FairnessParams::from_args(args)),
        })
    }
}

impl FairnessParams {
    fn from_args(args: &EntryArgs<'_>) -> Self {
        Self {
            beta: args.ratio("beta"),
            share: if args.choice("share") == "count" { Share::Count } else { Share::Needs },
            usage: if args.choice("usage") == "demand" { Usage::Demand } else { Usage::Departures },
            spare: match args.choice("spare") {
                "lent" => Spare::Lent,
                "share" => Spare::Share,
                _ => Spare::Printed,
            },
            divisor: if args.choice("divisor") == "all" { Divisor::All } else { Divisor::Unsatisfied },
            recount: args.switch("recount"),
        }
    }
}
