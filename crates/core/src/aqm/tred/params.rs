//! What TRED can be set to.

use crate::aqm::detection::{self, DetectionParams};
use crate::aqm::l4s::L4S;
use crate::estimate::least_labels::MAX_RANKS;
use crate::limit::Limit;
use crate::mark::ticket_policer::WINDOW;
use crate::param::LIMIT;
use crate::param::{Entry, EntryArgs, Kind, Paper, Param, ParamError, Role, require};
use crate::units::{Ratio, Span};

const PAPER: &str = "the paper, section III";

/// TRED in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "tred",
    role: Role::Policy,
    summary: "Ticket-based RED: drops more of flows whose packets carry fewer tickets than the link expects.",
    reference: "Zhang et al. 2002, section II-C",
    cost: "O(1) per packet, no state per flow",
    params: &[
        Param {
            default: None,
            paper: Paper::Is("110p"),
            source: "chosen: 100 ms of the link and twice max_th, so that the average can reach it",
            doc: "Size of the buffer. If none of limit, min_th, max_th and w_q is set: 110 packets, and 100 ms of full packets on a \
                  faster link, where thresholds are as many times the paper's and w_q a part of it; else 110 packets.",
            ..LIMIT
        },
        Param {
            symbol: "MinThresh",
            default: None,
            paper: Paper::Is("5p"),
            source: "the paper, section III, on links of 1 Mbit/s",
            doc: "Average below which nothing is dropped early; if not set 5 packets, or as `limit` says.",
            ..detection::MIN_TH
        },
        Param {
            symbol: "MaxThresh",
            default: None,
            paper: Paper::Is("55p"),
            source: "the paper, section III, on links of 1 Mbit/s",
            doc: "Average from which on all is dropped; if not set 55 packets, or as `limit` says.",
            ..detection::MAX_TH
        },
        Param { symbol: "MaxP", default: Some("0.2"), source: PAPER, ..detection::MAX_P },
        Param {
            default: None,
            paper: Paper::Is("0.002"),
            doc: "Weight of the present queue in the average; if not set 0.002, or as `limit` says.",
            ..detection::W_Q
        },
        Param { source: "the paper: all packets are dropped from MaxThresh on", ..detection::GENTLE },
        detection::WAIT,
        detection::MEAN_PKTSIZE,
        WINDOW,
        Param {
            name: "factor",
            symbol: "–",
            kind: Kind::Switch,
            default: Some("true"),
            paper: Paper::AsDefault,
            source: "the paper, section II-C.1",
            doc: "Whether tickets count; false: plain RED.",
        },
        Param {
            name: "n",
            symbol: "n",
            kind: Kind::Number,
            default: Some("6"),
            paper: Paper::Is("3"),
            source: "chosen: with 3 a flow with a tenth of another's tickets has a fifth too much; the paper, section II-C.1",
            doc: "Exponent of ExpectTkt / InTkt.",
        },
        Param {
            name: "stage",
            symbol: "–",
            kind: Kind::Choice(&["before", "after", "none"]),
            default: Some("before"),
            paper: Paper::AsDefault,
            source: "chosen: the only one that shows the paper's Tables I and II",
            doc: "Whether the factor multiplies p before the count that spaces drops, after it, or there is no count.",
        },
        Param {
            name: "per",
            symbol: "–",
            kind: Kind::Choice(&["byte", "packet"]),
            default: Some("byte"),
            paper: Paper::Is("packet"),
            source: "chosen: shares are of bits; the paper: of packets",
            doc: "Whether tickets are compared for their bytes, so that small packets need fewer, or packet by packet.",
        },
        Param {
            name: "expect",
            symbol: "–",
            kind: Kind::Choice(&["share", "mean"]),
            default: Some("share"),
            paper: Paper::Is("mean"),
            source: "chosen: a mean follows floods; the paper: the mean, section II-C.1",
            doc: "ExpectTkt: what a packet carries whose flow has its share of what is accepted, or the mean below K × MinTkt.",
        },
        Param {
            name: "keep",
            symbol: "–",
            kind: Kind::Ratio,
            default: Some("0.9"),
            paper: Paper::Is("0"),
            source: "chosen: most of its share, and less than flows that answer to drops; the paper has no bound",
            doc: "p is at most 1 - this × InTkt / ExpectTkt, so that a flood keeps this part of its share; 0: no bound.",
        },
        Param {
            name: "relabel",
            symbol: "–",
            kind: Kind::Switch,
            default: Some("true"),
            paper: Paper::Is("false"),
            source: "chosen: a flow keeps its tickets at the next link; the paper has no such thing",
            doc: "Whether a packet that was spared with probability 1 - p leaves with 1 / (1 - p) times its tickets.",
        },
        Param {
            name: "k",
            symbol: "K",
            kind: Kind::Number,
            default: Some("2"),
            paper: Paper::AsDefault,
            source: "the paper, section II-C.1",
            doc: "With `expect = \"mean\"`: packets with K × MinTkt or more, of rich flows, do not count for ExpectTkt; 0: all count.",
        },
        Param {
            name: "min_tkt_window",
            symbol: "\"some interval\"",
            kind: Kind::Span,
            default: Some("1s"),
            paper: Paper::AsDefault,
            source: "chosen: a hundred packets at 1 Mbit/s; 0.1 s to 5 s make no visible difference",
            doc: "Window of MinTkt.",
        },
        Param {
            name: "min_tkt_rank",
            symbol: "–",
            kind: Kind::Count,
            default: Some("1"),
            paper: Paper::AsDefault,
            source: "the paper: the least",
            doc: "MinTkt is the smallest number of tickets in the window, or that of this rank, up to 4: ignores outliers.",
        },
        Param {
            name: "adaptive",
            symbol: "–",
            kind: Kind::Switch,
            default: Some("false"),
            paper: Paper::AsDefault,
            source: "the paper; true: Floyd, Gummadi, Shenker 2001",
            doc: "Let max_p move so that the average stays around its `target`.",
        },
        Param {
            name: "target",
            symbol: "–",
            kind: Kind::Choice(&["low", "middle"]),
            default: Some("low"),
            paper: Paper::Is("middle"),
            source: "chosen: 30 packets of queue are more than windows of 20 packets fill; Floyd, Gummadi, Shenker 2001 have max_th = 3 min_th",
            doc: "With `adaptive`: the middle between min_th and at most 3 min_th, or between min_th and max_th.",
        },
        L4S,
    ],
};

/// Where the factor comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Before the count that spaces drops.
    Before,
    /// After it.
    After,
    /// There is no count: each packet is judged by itself.
    None,
}

/// What tickets are compared for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// A byte: shares are of bits.
    Byte,
    /// A packet, whatever its size.
    Packet,
}

/// What ExpectTkt is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// What a packet carries whose flow has its share of what is accepted.
    Share,
    /// The mean of packets with fewer than K × MinTkt.
    Mean,
}

/// Where adaptive RED keeps the average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// In the middle between `min_th` and three times that, or `max_th` if it is less.
    Low,
    /// In the middle between `min_th` and `max_th`.
    Middle,
}

/// Parameters of [`Tred`](super::Tred); [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
pub struct TredParams {
    /// Size of the buffer, in packets or bytes, without the packet in transmission. Default 110 packets.
    pub limit: Limit,
    /// Whether buffer and thresholds grow, and w_q falls, with the rate of a fast link. Default true, unless one of them is set.
    pub follows_link: bool,
    /// RED's average queue and drop curve. Defaults: see [`DetectionParams`].
    pub detection: DetectionParams,
    /// Window of the average number of tickets on a packet. Default 5 s.
    pub window: Span,
    /// Whether tickets count; false: plain RED. Default true.
    pub factor: bool,
    /// n: exponent of ExpectTkt / InTkt, 0 to 16. Default 6.
    pub n: f64,
    /// What tickets are compared for. Default bytes.
    pub per: Per,
    /// What ExpectTkt is. Default that of a flow with its share.
    pub expect: Expect,
    /// p is at most 1 - this × InTkt / ExpectTkt; 0: no bound. Default 0.9.
    pub keep: Ratio,
    /// Whether a packet that was spared with probability 1 - p has 1 / (1 - p) times its tickets. Default true.
    pub relabel: bool,
    /// Where the factor multiplies the drop probability: before the count that spaces drops, after it, or
    /// without one. Default before.
    pub stage: Stage,
    /// K: packets with K × MinTkt tickets or more do not count for ExpectTkt; above 1, or 0: all count.
    /// Default 2.
    pub k: f64,
    /// Window of MinTkt. Default 1 s.
    pub min_tkt_window: Span,
    /// Rank among the least tickets of the window that MinTkt is, 1 to 4. Default 1.
    pub min_tkt_rank: usize,
    /// Whether max_p adapts so that the average stays around `target`. Default false.
    pub adaptive: bool,
    /// Where it stays then. Default low.
    pub target: Target,
    /// Whether L4S packets are marked where others are dropped. Default false.
    pub l4s: bool,
}

impl TredParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let rank = args.count("min_tkt_rank");
        require((1..=MAX_RANKS as u64).contains(&rank), "min_tkt_rank", "write a rank from 1 to 4")?;
        let sizes = ["limit", "min_th", "max_th", "w_q"];
        let follows_link = sizes.iter().all(|name| args.value(name).is_none());
        let paper = EntryArgs::of_paper(&ENTRY);
        let threshold = |name| args.threshold_if_set(name).unwrap_or_else(|| paper.threshold(name));
        let limit = args.limit_if_set("limit").unwrap_or_else(|| paper.limit("limit"));
        let w_q = args.ratio_if_set("w_q").unwrap_or_else(|| paper.ratio("w_q"));
        let thresholds = [threshold("min_th"), threshold("max_th")];
        let params = Self {
            limit,
            follows_link,
            detection: DetectionParams::with_sizes(args, Some(limit), thresholds, w_q)?,
            window: args.span("window"),
            factor: args.switch("factor"),
            n: args.number("n"),
            stage: match args.choice("stage") {
                "after" => Stage::After,
                "none" => Stage::None,
                _ => Stage::Before,
            },
            per: if args.choice("per") == "byte" { Per::Byte } else { Per::Packet },
            expect: if args.choice("expect") == "share" { Expect::Share } else { Expect::Mean },
            keep: args.ratio("keep"),
            relabel: args.switch("relabel"),
            k: args.number("k"),
            min_tkt_window: args.span("min_tkt_window"),
            min_tkt_rank: rank as usize,
            adaptive: args.switch("adaptive"),
            target: if args.choice("target") == "low" { Target::Low } else { Target::Middle },
            l4s: args.switch("l4s"),
        };
        let (n, k) = (params.n, params.k);
        require((0.0..=16.0).contains(&n), "n", "an exponent lies between 0 and 16; the paper has 3")?;
        let above_one = "K is above 1, or no packet counts; 0 counts all; the paper has 2";
        require(k == 0.0 || k > 1.0, "k", above_one)?;
        params.refuse_unused(args)?;
        Ok(params)
    }

    /// Refuses changes of parameters without effect.
    fn refuse_unused(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        let unused = [
            (
                "k",
                self.expect == Expect::Share,
                "it has no effect: only expect = \"mean\" leaves out packets of rich flows",
            ),
            ("target", !self.adaptive, "it has no effect: only adaptive = true moves the average to it"),
        ];
        match unused.into_iter().find(|(key, is_unused, _)| *is_unused && args.is_changed(key)) {
            Some((key, _, message)) => require(false, key, message),
            None => Ok(()),
        }
    }
}
