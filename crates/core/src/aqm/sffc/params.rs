//! Parameters of SF-FC and NBQ.

use alloc::format;

use super::flows;
use crate::limit::BufferSize;
use crate::param::{
    Entry, EntryArgs, GoesBy, Heeds, Inside, LIMIT, Param, ParamError, Role, Traits, concat, require, total,
};
use crate::units::{Ratio, Span};
use crate::{choice, params};

/// SF-FC in the catalogue.
pub const SFFC: Entry = Entry {
    name: "sffc",
    role: Role::Policy,
    summary: "Soft fair flow control: drops early what downstream routers report as dropped of unresponsive flows.",
    reference: "Tamura, Tobe, Tokuda 2000",
    cost: "O(1) per packet, O(n log n) per interval; 196 bytes per active flow, 120 per flow number where flows are recognised",
    params: &concat::<{ total(LISTS) }>(LISTS),
    traits: Traits {
        heeds: &[Heeds::Weight, Heeds::Guarantee],
        goes_by: Some(GoesBy::Reports),
        limits: "It divides among flows only if its `discipline` does, as `fq_codel`, the default. As the `drop` \
            of another scheduler it recognises unresponsive flows by their protocol only. Routers accept \
            reports only from the side by which a flow leaves. Floods in pulses shorter than a second leave \
            13 % of a link idle. `recognise = \"behaviour\"` takes half a minute, and misses some flows. With \
            `preset = \"paper\"` its constants work in a narrow range only.",
        ..Traits::NONE
    },
};

/// NBQ in the catalogue.
pub const NBQ: Entry = Entry {
    name: "nbq",
    summary: "Predecessor of SF-FC: reports of downstream routers only, without fairness to adaptive flows.",
    reference: "Tamura, Tobe, Tokuda 1999, as described in 2000",
    params: SffcParams::PARAMS,
    traits: Traits {
        heeds: &[],
        limits: "Behind a fair scheduler a flood fills the buffer: use `lqd`, `pfd`, `codel` or `pie` there.",
        ..SFFC.traits
    },
    ..SFFC
};

const LISTS: &[&[Param]] = &[SffcParams::PARAMS, FairnessParams::PARAMS];

/// The discipline of the paper.
pub const FIFO: &str = "fifo";

params! {
    /// Parameters of [`Sffc`](super::Sffc).
    pub struct SffcParams {
        limit: Option<BufferSize> =
            Param::unset("section 5: 64 KB on links of 10 Mbit/s, which is 50 ms; a fixed size is too short on faster links")
                .in_paper("64kB")
                .doc("Size of the buffer, without the packet in transmission; if not set 50 ms of the link, at least 64 kB.")
                .or(&LIMIT),
        /// How often rates are measured, reports sent and discard rates set.
        interval: Span = Param::of("50ms", "not stated; chosen: about the delay of a full 64 kB buffer at 10 Mb/s").symbol("N"),
        /// Part of the link's rate by which a flow may send more after each interval without a report.
        increment: Ratio = Param::of("0.5%", "not stated; chosen: 10 s from nothing to the whole link").symbol("I"),
        /// Whether I is divided by the number of flows that reports have cut, so that together they grow by it.
        group: bool = Param::of("true", "the paper has I for each flow: 200 of them grow by the whole link").in_paper("false"),
        /// Weight of the previous basic discard rate, against the one that a report asks for.
        alpha: Ratio = Param::of("0.5", "not stated; chosen: the error halves in an interval").symbol("α"),
        /// Intervals over which departures are averaged, since a report describes past ones; at most 8.
        history: u64 = Param::of("3", "not stated; chosen"),
        /// Intervals without a report before the discard rate falls: the next one may be late.
        wait: u64 = Param::of("1", "not stated; chosen"),
        /// Reported loss up to which the discard rate falls as if there were no report.
        regular: Ratio = Param::of("5%", "\"a regular value\"; chosen"),
        /// A flow counts as active, and has state, until it has been silent for this time.
        active: Span = Param::of("500ms", "not stated; chosen: 10 intervals").symbol("T"),
        /// Whether it reports its losses to the upstream router and uses the reports of the downstream one; without, `trust`,
        /// `counters` and `report_discards` have no effect.
        reports: bool = Param::of("true", "the paper"),
        /// Start of eqs. 3 and 4: the previous basic discard rate, or the final one, v.
        previous: Previous = Param::of("bdr", "eq. 3 has v, which is final"),
        /// What a cut is: a rate that is left of a flow, held by a token bucket; or a share of its packets, drawn by chance.
        discard: Discard = Param::of("rate", "the paper has a share; over several hops shares multiply")
            .symbol("v")
            .in_paper("share"),
        /// Share of a flow above what may pass here from which on it is reported, whether the link overflows or not: with what may
        /// pass, or if cuts are shares with what left.
        report_discards: Option<Ratio> =
            Param::of("5%", "as `regular`; the paper reports when a link overflows only, so that cuts end at a link with room")
                .not_in_paper(),
        /// Whether it reads the counters of links further on whose routers send no reports, once a second, and takes losses there for reports.
        counters: bool = Param::of("true", "the paper has reports only").in_paper("false"),
        /// Which flows are adaptive: those that slow down after losses, if the `discipline` divides by flows (else as `protocol`);
        /// those of TCP; those that slow down when packets are dropped for a test; or those that inter-arrival times, duration and
        /// throughput do not show to be unresponsive.
        recognise: Recognise = Param::of("losses", "the paper has the protocol; section 6 asks for behaviour").in_paper("protocol"),
        /// How far reports of others cut a flow: to what they ask for; or only while this link is congested, and to no less than the
        /// flow's fair share of it.
        trust: Trust = Param::of("full", "the paper; gateways are bounded unless they say otherwise"),
        /// The parameters of SF-FC's extension; none in NBQ.
        fairness: Option<FairnessParams> => FairnessParams::of_sffc,
    }
    check: Self::check
}

params! {
    /// Parameters of what SF-FC adds to NBQ.
    pub struct FairnessParams {
        /// Weight of the change of adaptive arrivals so far, ρ, against the last one.
        beta: Ratio = Param::of("0.9", "not stated; chosen").symbol("β"),
        /// What non-adaptive flows are due: their part of the max-min fair split, in which an adaptive flow wants all it can get; or
        /// their part of the number of flows.
        share: Share = Param::of("needs", "eq. 5 has the count: a hundred flows that hardly send make a greedy one rich")
            .symbol("W")
            .in_paper("count"),
        /// What non-adaptive flows are taken to use: what they would send after BDR, or what left.
        usage: Usage = Param::of("demand", "eq. 5 has departures, its text λ and v").symbol("Ŵ"),
        /// What non-adaptive flows get of what adaptive ones leave: I more in each interval, and half after losses of these; all, but at
        /// least their share; or all, as eq. 7 is printed.
        spare: Spare = Param::of("lent", "eq. 7 gives all that is left, and adaptive flows no room to grow").in_paper("share"),
        /// Among how many the fair bandwidth is divided: non-adaptive flows that want more, or adaptive ones too.
        divisor: Divisor = Param::of("unsatisfied", "figure 5 has all"),
        /// Whether a satisfied flow is counted again in each round of the division.
        recount: bool = Param::of("false", "figure 5 does"),
        /// What divides the link behind the discarder, with its defaults and the size `limit`: in place of the FIFO; another scheduler
        /// that is named as `kind` stays.
        discipline: &'static str =
            Param::of("fq_codel", "with the paper's FIFO, shares depend on round-trip times and segment sizes")
                .discipline(Inside::Queue)
                .in_paper(FIFO),
    }
}

choice! {
    /// The value from which the basic discard rate continues.
    pub enum Previous {
        /// The basic discard rate itself.
        Bdr = "bdr",
        /// The final discard rate.
        Final = "final",
    }
}

choice! {
    /// The representation of a cut.
    pub enum Discard {
        /// The rate that passes.
        Rate = "rate",
        /// The share that is discarded.
        Share = "share",
    }
}

choice! {
    /// The criterion by which adaptive flows are recognised.
    pub enum Recognise {
        /// Their reaction to losses that they have anyway.
        Losses = "losses",
        /// The protocol that they declare.
        Protocol = "protocol",
        /// Their reaction to packets dropped for a test.
        Behaviour = "behaviour",
        /// Their inter-arrival times, duration and throughput.
        Pattern = "pattern",
    }
}

choice! {
    /// The limit to cuts by other routers' reports.
    pub enum Trust {
        /// No limit.
        Full = "full",
        /// Cuts while the link is congested only, and to no less than the flow's fair share.
        Bounded = "bounded",
    }
}

choice! {
    /// The part of a link that is due to non-adaptive flows.
    pub enum Share {
        /// Their part of the max-min fair division.
        Needs = "needs",
        /// Their part of the number of flows.
        Count = "count",
    }
}

choice! {
    /// The estimate of the bandwidth that non-adaptive flows use.
    pub enum Usage {
        /// The rate that they would send after the basic discard rate.
        Demand = "demand",
        /// Their departures.
        Departures = "departures",
    }
}

choice! {
    /// The part of the bandwidth unused by adaptive flows that non-adaptive flows get.
    pub enum Spare {
        /// A slowly growing part, halved when adaptive flows lose packets.
        Lent = "lent",
        /// All of it while adaptive flows are steady, and at least their share.
        Share = "share",
        /// All of it while adaptive flows are steady.
        Printed = "printed",
    }
}

choice! {
    /// The flows among which the fair bandwidth is divided.
    pub enum Divisor {
        /// Non-adaptive flows that want more.
        Unsatisfied = "unsatisfied",
        /// Adaptive flows too.
        All = "all",
    }
}

impl SffcParams {
    fn check(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        let (interval, active) = (self.interval, self.active);
        let measured = "in so short a time no rate can be measured; write at least \"1ms\"";
        require(interval >= Span::from_millis(1), "interval", measured)?;
        let kept =
            format!("a flow is active for at least one `interval`, {interval}, and at most 1000 of them");
        require(active >= interval && active.div(1_000) <= interval, "active", &kept)?;
        let averaged = (1..=flows::HISTORY as u64).contains(&self.history);
        require(averaged, "history", "an average is over 1 to 8 intervals")?;
        let beta = self.fairness.iter().map(|fairness| ("beta", fairness.beta));
        for (name, weight) in [("alpha", self.alpha)].into_iter().chain(beta) {
            require(weight.get() < 1.0, name, "with 1 it never moves; write for example 0.5")?;
        }
        let rises = "a rate that was lowered must rise again; write for example \"0.5%\"";
        require(self.increment > Ratio::ZERO, "increment", rises)?;
        let shares =
            "it has no effect: only cuts that are shares, discard = \"share\", go on from a rate before";
        args.refuse_idle(&[("previous", self.discard == Discard::Rate, shares)])
    }

    /// The discipline that divides the link behind the discarder, by its name in the catalogue.
    #[must_use]
    pub fn discipline(&self) -> &'static str {
        self.fairness.as_ref().map_or(FIFO, |fairness| fairness.discipline)
    }
}

impl FairnessParams {
    fn of_sffc(args: &EntryArgs<'_>) -> Result<Option<Self>, ParamError> {
        args.is_of(&SFFC).then(|| Self::from_args(args)).transpose()
    }
}
