//! RAMP's parameters.

use super::overload::OverloadPolicy;
use super::requirement::{Tuning, Units};
use crate::limit::Limit;
use crate::packet::FlowClass;
use crate::param::{Entry, EntryArgs, Kind, LIMIT, PARTS, Paper, Param, ParamError, Role, require};
use crate::units::{Bytes, Packets, Ratio, Span};

/// RAMP in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "ramp",
    role: Role::System,
    summary: "RAMP: allocates bandwidth to real-rate flows from the fill of their queues; greedy flows get the rest.",
    reference: "Li, Walpole, McNamee, Pu, Steere 2001",
    cost: "O(log flows) per packet, O(real-rate flows that send) per sample, 300 bytes per real-rate flow",
    params: &[
        Param {
            default: Some("1000p"),
            paper: Paper::AsDefault,
            source: "chosen: above all that flows with sockets of 64 KB keep in a queue",
            doc: "Size of the queue of each real-rate flow, and of that of all greedy flows, for which the \
                  interface queue counts too.",
            ..LIMIT
        },
        Param::new(
            "target",
            "–",
            Kind::Bytes,
            "16KiB",
            "section 5",
            "What a real-rate flow's queue should hold, where there is no `target_delay`.",
        ),
        Param {
            name: "target_delay",
            symbol: "–",
            kind: Kind::Span,
            default: Some("20ms"),
            paper: Paper::Unset,
            source: "planned in section 6.2; chosen: two samples",
            doc: "What a queue should hold, in time at the flow's own rate, instead of `target`.",
        },
        Param {
            name: "patience",
            symbol: "–",
            kind: Kind::Span,
            default: Some("200ms"),
            paper: Paper::Unset,
            source: "chosen: half of the 400 ms of ITU-T G.114, which hold from mouth to ear",
            doc: "How long a packet of a real-rate flow may wait, or twice the target if that is more; then it is dropped, \
                  unless it is the last of its queue.",
        },
        Param::new(
            "sample",
            "–",
            Kind::Span,
            "10ms",
            "section 4: 100 Hz",
            "Time between samples of the queues.",
        ),
        Param::new(
            "l",
            "L",
            Kind::Ratio,
            "0.5",
            "section 4",
            "Weight of the newest sample in the low-pass filter.",
        ),
        Param::new("p", "P", Kind::Number, "0.35", "section 4", "Gain of the filtered pressure."),
        Param::new("i", "I", Kind::Number, "0.005", "section 4", "Gain of its sum, per sample."),
        Param::new("d", "D", Kind::Number, "0.01", "section 4", "Gain of its change, per sample."),
        Param::new(
            "units",
            "–",
            Kind::Choice(&["percent", "bytes", "fraction"]),
            "percent",
            "sections 3.3 and 5, by their words",
            "Units of `p`, `i` and `d`: KB to percent of the link, bytes to bytes per sample, or parts of the \
             target to parts of the link.",
        ),
        Param::new(
            "gains",
            "–",
            Kind::Choice(&["printed", "designed"]),
            "designed",
            "beyond the paper: the printed ones belong to 10 Mb/s",
            "Printed: `p`, `i`, `d` and `units` apply. Designed: gains for this loop at any rate of the link.",
        )
        .in_paper("printed"),
        Param::new(
            "feed_forward",
            "–",
            Kind::Switch,
            "true",
            "beyond the paper, which sees only the fill",
            "Whether a flow is allocated the rate at which its packets come in, and more only if its queue holds more \
             than the target. Otherwise it must hold the target.",
        )
        .in_paper("false"),
        Param::new(
            "control_delay",
            "–",
            Kind::Span,
            "0ms",
            "the paper mentions none",
            "Time until an allocation takes effect, in whole samples.",
        ),
        Param::new(
            "predictor",
            "–",
            Kind::Switch,
            "false",
            "beyond the paper",
            "Whether the controller accounts for allocations that `control_delay` still holds back.",
        ),
        Param::new(
            "floor",
            "–",
            Kind::Ratio,
            "0.02",
            "chosen: a packet of 1500 B in 60 ms at 10 Mb/s",
            "Minimum allocation of a real-rate flow; less if there are too many flows for it. With `feed_forward` it is \
             paid from what is left, and is no part of what a flow needs.",
        ),
        Param::new(
            "anti_windup",
            "–",
            Kind::Switch,
            "true",
            "beyond the paper, which does not say how it avoids it",
            "Whether the sum of pressures stays within what an allocation can be.",
        ),
        Param::new("period", "–", Kind::Span, "0.1ms", "section 4", "Time between additions to the budgets."),
        Param::new(
            "period_control",
            "–",
            Kind::Switch,
            "false",
            "section 4: further work",
            "Whether the deadlines of a flow are as far apart as its allocation takes for a packet.",
        ),
        Param::new(
            "mtu",
            "–",
            Kind::Bytes,
            "1514B",
            "chosen: one Ethernet frame",
            "Most that the budget of a silent flow accumulates, unless two periods are more.",
        ),
        Param::new(
            "greedy",
            "–",
            Kind::Choice(PARTS),
            "fq_codel",
            "beyond the paper: in one queue a flood leaves TCP nothing",
            "What divides among greedy flows, with its defaults and the size `limit`.",
        )
        .in_paper("fifo"),
        Param::new(
            "leftover",
            "–",
            Kind::Choice(&["real_rate", "greedy"]),
            "real_rate",
            "beyond the paper: bursts of a frame need not wait for an average",
            "Who comes first for what reservations leave: real-rate flows beyond their allocation, or greedy ones only.",
        )
        .in_paper("greedy"),
        Param::new(
            "greedy_minimum",
            "–",
            Kind::Ratio,
            "0.05",
            "chosen: section 3.1 gives none",
            "Part of the link that real-rate flows never get.",
        ),
        Param::new(
            "interface_queue",
            "–",
            Kind::Packets,
            "1p",
            "chosen: every packet in it goes ahead of what comes later",
            "Packets between dispatcher and link; the paper's is the device queue of Linux 2.0.",
        )
        .in_paper("100p"),
        Param::new(
            "overload",
            "–",
            Kind::Choice(&["max_min", "scale"]),
            "max_min",
            "section 3.2.1 leaves the policy open",
            "Who has less when real-rate flows want more than they may have: those that want most, down to a common \
             level, or all by the same part.",
        )
        .in_paper("scale"),
        Param::new(
            "exception_interval",
            "–",
            Kind::Span,
            "1s",
            "chosen: an application has time to act",
            "Minimum time between notifications in an overload; after this time without overload it has ended.",
        ),
    ],
};

/// Parameters of [`Ramp`](super::Ramp); [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
pub struct RampParams {
    /// Size of the queue of each real-rate flow, and of that of all greedy flows, in packets or bytes.
    /// Default 1000 packets.
    pub limit: Limit,
    /// Bytes that a real-rate flow's queue should hold. Default 16 KiB.
    pub target: Bytes,
    /// The same as a time at the flow's own rate, instead of `target`. Default 20 ms.
    pub target_delay: Option<Span>,
    /// How long a packet may wait, or twice the target if that is more. Default 200 ms; none: for ever.
    pub patience: Option<Span>,
    /// Time between samples of the queues. Default 10 ms.
    pub sample: Span,
    /// L: weight of the newest sample in the low-pass filter, 0 to 1. Default 0.5.
    pub l: Ratio,
    /// P: gain of the filtered pressure, in `units`. Default 0.35.
    pub p: f64,
    /// I: gain of the sum of pressures, per sample. Default 0.005.
    pub i: f64,
    /// D: gain of the change of pressure, per sample. Default 0.01.
    pub d: f64,
    /// Units of `p`, `i` and `d`. Default KB into percent of the link.
    pub units: Units,
    /// Whether the printed gains hold or gains designed for the loop. Default designed.
    pub gains: Tuning,
    /// Whether what comes in is allocated, and the target is an upper bound. Default true.
    pub feed_forward: bool,
    /// Time until an allocation takes effect, in whole samples. Default 0.
    pub control_delay: Span,
    /// Whether the controller accounts for allocations that `control_delay` still holds back. Default false.
    pub predictor: bool,
    /// Least allocation of a real-rate flow, as a part of the link, while there is enough. Default 0.02.
    pub floor: Ratio,
    /// Whether the sum of pressures stays within what an allocation can be. Default true.
    pub anti_windup: bool,
    /// Time between additions to the budgets. Default 0.1 ms.
    pub period: Span,
    /// Whether deadlines of a flow are as far apart as its allocation needs for a packet. Default false.
    pub period_control: bool,
    /// Bytes that the budget of a silent flow may save up, unless two periods are more. Default 1514.
    pub mtu: Bytes,
    /// What divides among greedy flows: a name of the catalogue, `fifo` for one queue. Default `fq_codel`.
    pub greedy: &'static str,
    /// Who comes first for what reservations leave. Default real-rate flows.
    pub leftover: FlowClass,
    /// Part of the link that real-rate flows never get, 0 to 1. Default 0.05.
    pub greedy_minimum: Ratio,
    /// Packets between dispatcher and link. Default 1.
    pub interface_queue: Packets,
    /// Who has less when there is not enough. Default those that want most.
    pub overload: OverloadPolicy,
    /// Least time between overload notifications to a flow. Default 1 s.
    pub exception_interval: Span,
}

/// Most samples of control delay. Chosen: 8 KB per flow.
const MAX_DELAY: u64 = 1_000;

/// RFC 791 section 3.1.
const MAX_PACKET: Bytes = Bytes::new(65_535);

impl RampParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When one of them stops a flow or the loop for ever.
    pub fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let params = Self {
            limit: args.limit("limit"),
            target: args.bytes("target"),
            target_delay: args.span_if_set("target_delay"),
            patience: args.span_if_set("patience"),
            sample: args.span("sample"),
            l: args.ratio("l"),
            p: args.number("p"),
            i: args.number("i"),
            d: args.number("d"),
            units: match args.choice("units") {
                "bytes" => Units::Bytes,
                "fraction" => Units::Fraction,
                _ => Units::Percent,
            },
            gains: if args.choice("gains") == "designed" { Tuning::Designed } else { Tuning::Printed },
            feed_forward: args.switch("feed_forward"),
            control_delay: args.span("control_delay"),
            predictor: args.switch("predictor"),
            floor: args.ratio("floor"),
            anti_windup: args.switch("anti_windup"),
            period: args.span("period"),
            period_control: args.switch("period_control"),
            mtu: args.bytes("mtu"),
            greedy: args.choice("greedy"),
            leftover: match args.choice("leftover") {
                "greedy" => FlowClass::Greedy,
                _ => FlowClass::RealRate,
            },
            greedy_minimum: args.ratio("greedy_minimum"),
            interface_queue: args.packets("interface_queue"),
            overload: match args.choice("overload") {
                "scale" => OverloadPolicy::Scale,
                _ => OverloadPolicy::MaxMin,
            },
            exception_interval: args.span("exception_interval"),
        };
        params.check()?;
        params.refuse_unused(args)?;
        Ok(params)
    }

    /// The size of what divides among greedy flows: what the interface queue leaves of `limit`, if it leaves anything.
    pub(crate) fn greedy_limit(&self) -> Option<Limit> {
        match self.limit {
            Limit::Packets(limit) => {
                let left = limit.get().saturating_sub(self.interface_queue.get());
                (left > 0).then_some(Limit::Packets(Packets::new(left)))
            }
            bytes @ Limit::Bytes(_) => Some(bytes),
        }
    }

    /// Refuses changes of parameters without effect.
    fn refuse_unused(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        let is_designed = self.gains == Tuning::Designed;
        let is_in_parts = !is_designed && self.units == Units::Fraction;
        let printed = "it belongs to gains = \"printed\"; write that too, or leave it out";
        let learned = "with `feed_forward` no sum is learned; write feed_forward = false, or leave it out";
        let target =
            "`target_delay` takes its place; write target_delay instead, for example target_delay = \"20ms\"";
        let unused = [
            ("target", self.target_delay.is_some() && !is_in_parts, target),
            ("p", is_designed, printed),
            ("i", is_designed, printed),
            ("d", is_designed, printed),
            ("units", is_designed, printed),
            ("i", self.feed_forward, learned),
            ("anti_windup", self.feed_forward, learned),
        ];
        match unused.into_iter().find(|(key, is_unused, _)| *is_unused && args.is_changed(key)) {
            Some((key, _, message)) => require(false, key, message),
            None => Ok(()),
        }
    }

    fn check(&self) -> Result<(), ParamError> {
        let takes_time = |span: Span| span > Span::ZERO;
        require(
            self.target > Bytes::ZERO,
            "target",
            "an empty queue says nothing about the need of a flow; write for example \"16KiB\"",
        )?;
        let in_time = self.target_delay.is_none_or(takes_time);
        require(
            in_time,
            "target_delay",
            "an empty queue says nothing about the need of a flow; write for example \"20ms\"",
        )?;
        let in_time = self.patience.is_none_or(takes_time);
        require(in_time, "patience", "a packet takes time to leave; write for example \"200ms\"")?;
        let often = "samples closer than 0.1ms see the same packets; write for example \"10ms\"";
        require(self.sample >= Span::from_micros(100), "sample", often)?;
        require(
            self.l > Ratio::ZERO,
            "l",
            "with 0 the controller never sees a sample; write for example 0.5",
        )?;
        for (key, gain) in [("p", self.p), ("i", self.i), ("d", self.d)] {
            require((0.0..=1e6).contains(&gain), key, "a gain lies between 0 and 1000000")?;
        }
        let samples = self.control_delay.as_nanos() / self.sample.as_nanos();
        let is_whole = self.sample * samples == self.control_delay && samples <= MAX_DELAY;
        require(is_whole, "control_delay", "it must be a multiple of `sample`, at most 1000 times it")?;
        require(
            self.floor > Ratio::ZERO,
            "floor",
            "with nothing to begin with no flow ever starts; write for example \"2%\"",
        )?;
        let period = self.period >= Span::from_micros(1) && self.period <= Span::from_secs(1);
        require(period, "period", "a period lies between 1us and 1s; write for example \"0.1ms\"")?;
        let mtu = self.mtu > Bytes::ZERO && self.mtu <= MAX_PACKET;
        require(mtu, "mtu", "a packet has at least 1B and at most 65535B")?;
        let leaves_some = self.greedy_minimum < Ratio::ONE;
        require(leaves_some, "greedy_minimum", "real-rate flows need something; write for example \"5%\"")?;
        require(self.interface_queue > Packets::ZERO, "interface_queue", "nothing passes a queue of 0p")?;
        let interval = takes_time(self.exception_interval);
        require(
            interval,
            "exception_interval",
            "exceptions without a pause are a flood; write for example \"1s\"",
        )
    }
}
