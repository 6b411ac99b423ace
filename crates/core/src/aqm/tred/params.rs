//! The parameters of TRED.

use crate::aqm::detection::{DetectionParams, MEAN_PKTSIZE, W_Q, WAIT};
use crate::aqm::l4s::L4S;
use crate::estimate::least_labels::MAX_RANKS;
use crate::limit::{BufferSize, Threshold};
use crate::mark::ticket_policer::WINDOW;
use crate::packet::LabelKind;
use crate::param::{Entry, EntryArgs, GoesBy, Param, ParamError, Role, Traits, require};
use crate::units::{Bytes, Ratio, Span};
use crate::{choice, params};

/// TRED in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "tred",
    role: Role::Policy,
    summary: "Ticket-based RED: drops more of flows whose packets carry fewer tickets than the link expects.",
    reference: "Zhang et al. 2002, section II-C",
    cost: "O(1) per packet, no state per flow",
    params: TredParams::PARAMS,
    traits: Traits {
        reads: Some(LabelKind::Tickets),
        goes_by: Some(GoesBy::Tickets),
        limits: "Issue at least one ticket for each packet. Packets without tickets are judged by RED alone. \
            TCP over long round trips does not fill the gaps between pulses of a flood. With `l4s` a flood gets 3.7 times its due.",
        ..Traits::NONE
    },
};

choice! {
    /// The place of the factor.
    pub enum Stage {
        /// Before the count that spaces drops.
        Before = "before",
        /// After the count.
        After = "after",
        /// Without a count: each packet is judged by itself.
        None = "none",
    }
}

choice! {
    /// The unit for which tickets are compared.
    pub enum Per {
        /// A byte: shares are of bits.
        Byte = "byte",
        /// A packet, whatever its size.
        Packet = "packet",
    }
}

choice! {
    /// The definition of ExpectTkt.
    pub enum Expect {
        /// The tickets on a packet of a flow whose share of the accepted rate is its due.
        Share = "share",
        /// The mean of packets with fewer than K × MinTkt.
        Mean = "mean",
    }
}

choice! {
    /// The level at which adaptive RED keeps the average.
    pub enum Target {
        /// The middle between `min_th` and three times `min_th`, or `max_th` if that is less.
        Low = "low",
        /// The middle between `min_th` and `max_th`.
        Middle = "middle",
    }
}

params! {
    /// Parameters of [`Tred`](super::Tred).
    pub struct TredParams {
        /// Size of the buffer. If none of limit, min_th, max_th and w_q is set: 110 packets, and 100 ms of full packets on a
        /// faster link, where thresholds are as many times the paper's and w_q a part of it; else 110 packets.
        limit: Option<BufferSize> =
            Param::unset("chosen: 100 ms of the link and twice max_th, so that the average can reach it").symbol("B").in_paper("110p"),
        /// Average below which nothing is dropped early; if not set 5 packets, or as `limit` says.
        min_th: Option<Threshold> =
            Param::unset("the paper, section III, on links of 1 Mbit/s").symbol("MinThresh").in_paper("5p"),
        /// Average from which on all is dropped; if not set 55 packets, or as `limit` says.
        max_th: Option<Threshold> =
            Param::unset("the paper, section III, on links of 1 Mbit/s").symbol("MaxThresh").in_paper("55p"),
        /// Probability at `max_th`.
        max_p: Ratio = Param::of("0.2", "the paper, section III").symbol("MaxP"),
        /// Weight of the present queue in the average; if not set 0.002, or as `limit` says.
        w_q: Option<Ratio> = Param::unset(W_Q.source).symbol(W_Q.symbol).in_paper("0.002"),
        /// Whether p_b rises from `max_p` to 1 between `max_th` and twice that, by tickets; false: all is dropped from `max_th` on.
        gentle: bool = Param::of(
            "true",
            "chosen: a hard edge drops whatever the tickets; the paper: all packets are dropped from MaxThresh on",
        )
        .in_paper("false"),
        wait: bool = WAIT,
        mean_pktsize: Bytes = MEAN_PKTSIZE,
        window: Span = WINDOW,
        /// Whether tickets count; false: plain RED, to compare with, where `n` has no effect.
        factor: bool = Param::of("true", "the paper, section II-C.1"),
        /// Exponent of ExpectTkt / InTkt.
        n: f64 =
            Param::of("6", "chosen: with 3 a flow with a tenth of another's tickets has a fifth too much; the paper, section II-C.1")
                .symbol("n")
                .in_paper("3"),
        /// Whether the factor multiplies p before the count that spaces drops, after it, or there is no count.
        stage: Stage = Param::of("before", "chosen: the only one that shows the paper's Tables I and II"),
        /// Whether tickets are compared for their bytes, so that small packets need fewer, or packet by packet.
        per: Per = Param::of("byte", "chosen: shares are of bits; the paper: of packets").in_paper("packet"),
        /// ExpectTkt: what a packet carries whose flow has its share of what is accepted, or the mean below K × MinTkt.
        expect: Expect = Param::of("share", "chosen: a mean follows floods; the paper: the mean, section II-C.1").in_paper("mean"),
        /// p is at most 1 - this × InTkt / ExpectTkt, so that a flood keeps this part of its share; less above `max_th`. 0: no bound.
        keep: Ratio =
            Param::of("0.9", "chosen: most of its share, and less than flows that answer to drops; the paper has no bound").in_paper("0"),
        /// Whether a packet that was spared with probability 1 - p leaves with 1 / (1 - p) times its tickets.
        relabel: bool =
            Param::of("true", "chosen: a flow keeps its tickets at the next link; the paper has no such thing").in_paper("false"),
        /// With `expect = "mean"`: packets with K × MinTkt or more, of rich flows, do not count for ExpectTkt; 0: all count.
        k: f64 = Param::of("2", "the paper, section II-C.1").symbol("K"),
        /// Window of MinTkt.
        min_tkt_window: Span =
            Param::of("1s", "chosen: a hundred packets at 1 Mbit/s; 0.1 s to 5 s make no visible difference")
                .symbol("\"some interval\""),
        /// MinTkt is the smallest number of tickets in the window, or that of this rank, up to 4: ignores outliers.
        min_tkt_rank: usize = Param::of("1", "the paper: the least"),
        /// Whether max_p moves so that the average stays around its `target`; if not set, where sizes follow the link (`limit`).
        adaptive: Option<bool> = Param::unset("Floyd, Gummadi, Shenker 2001: large windows need a small max_p").in_paper("false"),
        /// With `adaptive`: the middle between min_th and at most 3 min_th, or between min_th and max_th.
        target: Target = Param::of(
            "low",
            "chosen: 30 packets of queue are more than windows of 20 packets fill; Floyd, Gummadi, Shenker 2001 have max_th = 3 min_th",
        )
        .in_paper("middle"),
        l4s: bool = L4S,
    }
    check: Self::check
}

impl TredParams {
    fn check(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        require((1..=MAX_RANKS).contains(&self.min_tkt_rank), "min_tkt_rank", "write a rank from 1 to 4")?;
        self.detection().check(Some(self.limit()), self.mean_pktsize)?;
        let (n, k) = (self.n, self.k);
        require((0.0..=16.0).contains(&n), "n", "an exponent lies between 0 and 16; the paper has 3")?;
        let above_one = "K is above 1, or no packet counts; 0 counts all; the paper has 2";
        require(k == 0.0 || k > 1.0, "k", above_one)?;
        let all = "it has no effect: only expect = \"mean\" leaves out packets of rich flows";
        args.refuse_idle(&[
            ("k", self.expect == Expect::Share, all),
            (
                "target",
                !self.adaptive.unwrap_or(self.follows_link()),
                "it has no effect: only adaptive = true moves the average to it",
            ),
        ])
    }

    /// Whether buffer and thresholds grow, and w_q falls, with the rate of a fast link: unless one of them is
    /// set.
    #[must_use]
    pub const fn follows_link(&self) -> bool {
        let Self { limit, min_th, max_th, w_q, .. } = self;
        limit.is_none() && min_th.is_none() && max_th.is_none() && w_q.is_none()
    }

    /// The size of the buffer, the paper's if none is set; for a link that it [follows](Self::follows_link) a
    /// part of it.
    #[must_use]
    pub fn limit(&self) -> BufferSize {
        self.limit.unwrap_or_else(|| EntryArgs::of_paper(&ENTRY).limit("limit"))
    }

    /// RED's average queue and drop curve, with the paper's values for parameters that are not set.
    #[must_use]
    pub fn detection(&self) -> DetectionParams {
        let paper = EntryArgs::of_paper(&ENTRY);
        let Self { max_p, gentle, wait, .. } = *self;
        DetectionParams {
            min_th: self.min_th.unwrap_or_else(|| paper.threshold("min_th")),
            max_th: self.max_th.unwrap_or_else(|| paper.threshold("max_th")),
            w_q: self.w_q.unwrap_or_else(|| paper.ratio("w_q")),
            max_p,
            gentle,
            wait,
        }
    }
}
