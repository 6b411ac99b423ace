//! RAMP's parameters.

use super::overload::OverloadPolicy;
use super::requirement::{Tuning, Units};
use crate::limit::{BufferSize, Limit};
use crate::packet::FlowClass;
use crate::param::{Entry, EntryArgs, GoesBy, Heeds, Inside, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::units::{Bytes, Packets, Ratio, Span};

/// RAMP in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "ramp",
    role: Role::System,
    summary: "RAMP: allocates bandwidth to real-rate flows from the fill of their queues; greedy flows get the rest.",
    reference: "Li, Walpole, McNamee, Pu, Steere 2001",
    cost: "O(log flows) per packet, O(real-rate flows that send) per sample, 300 bytes per real-rate flow",
    params: RampParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Class, Heeds::Target, Heeds::Weight],
        goes_by: Some(GoesBy::RealRate),
        limits: "Flows without a class are recognised by their behaviour after 2 s; transfers by packets below \
            1250 B that another link paces look like calls. With recognise = false declared flows that want \
            more than the link leave greedy flows 5 % of it. After a change of the link's rate allocations converge anew. ACKs of real-rate flows are \
            real-rate too at the `ramp` queues that they cross. With `preset = \"paper\"` gains suit 10 Mb/s \
            only.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Ramp`](super::Ramp).
    pub struct RampParams {
        /// Size of the queue of each real-rate flow, and of that of all greedy flows, for which the interface queue counts too.
        limit: BufferSize = Param::of("1000p", "chosen: above all that flows with sockets of 64 KB keep in a queue").symbol("B"),
        /// What a real-rate flow's queue should hold, where there is no `target_delay`.
        target: Bytes = Param::of("16KiB", "section 5"),
        /// What a queue should hold, in time at the flow's own rate, instead of `target`.
        target_delay: Option<Span> = Param::of("20ms", "planned in section 6.2; chosen: two samples").not_in_paper(),
        /// How long a packet of a real-rate flow may wait, or twice the target if that is more; then it is dropped, unless it is
        /// the last of its queue.
        patience: Option<Span> = Param::of("200ms", "chosen: half of the 400 ms of ITU-T G.114, which hold from mouth to ear")
            .not_in_paper(),
        /// Time between samples of the queues.
        sample: Span = Param::of("10ms", "section 4: 100 Hz"),
        /// Weight of the newest sample in the low-pass filter.
        l: Ratio = Param::of("0.5", "section 4").symbol("L"),
        /// Gain of the filtered pressure.
        p: f64 = Param::of("0.35", "section 4").symbol("P"),
        /// Gain of its sum, per sample.
        i: f64 = Param::of("0.005", "section 4").symbol("I"),
        /// Gain of its change, per sample.
        d: f64 = Param::of("0.01", "section 4").symbol("D"),
        /// Units of `p`, `i` and `d`: KB to percent of the link, bytes to bytes per sample, or parts of the target to parts of the
        /// link.
        units: Units = Param::of("percent", "sections 3.3 and 5, by their words"),
        /// Printed: `p`, `i`, `d` and `units` apply. Designed: gains for this loop at any rate of the link.
        gains: Tuning = Param::of("designed", "beyond the paper: the printed ones belong to 10 Mb/s").in_paper("printed"),
        /// Whether a flow is allocated the rate at which its packets come in, and more only if its queue holds more than the
        /// target. Otherwise it must hold the target.
        feed_forward: bool = Param::of("true", "beyond the paper, which sees only the fill").in_paper("false"),
        /// Time until an allocation takes effect, in whole samples.
        control_delay: Span = Param::of("0ms", "the paper mentions none"),
        /// Whether the controller accounts for allocations that `control_delay` still holds back.
        predictor: bool = Param::of("false", "beyond the paper"),
        /// Minimum allocation of a real-rate flow; less if there are too many flows for it. With `feed_forward` it is paid from
        /// what is left, and is no part of what a flow needs.
        floor: Ratio = Param::of("0.02", "chosen: a packet of 1500 B in 60 ms at 10 Mb/s"),
        /// Whether the sum of pressures stays within what an allocation can be.
        anti_windup: bool = Param::of("true", "beyond the paper, which does not say how it avoids it"),
        /// Time between additions to the budgets.
        period: Span = Param::of("0.1ms", "section 4"),
        /// Whether the deadlines of a flow are as far apart as its allocation takes for a packet.
        period_control: bool = Param::of("false", "section 4: further work"),
        /// Most that the budget of a silent flow accumulates, unless two periods are more.
        mtu: Bytes = Param::of("1514B", "chosen: one Ethernet frame"),
        /// What divides among greedy flows, with its defaults and the size `limit`.
        greedy: &'static str = Param::of("fq_codel", "beyond the paper: in one queue a flood leaves TCP nothing")
            .discipline(Inside::Part)
            .in_paper("fifo"),
        /// Who comes first for what reservations leave: real-rate flows beyond their allocation, or greedy ones only.
        leftover: FlowClass = Param::of("real_rate", "beyond the paper: bursts of a frame need not wait for an average")
            .in_paper("greedy"),
        /// Whether flows without a class are real-rate while they behave so, and declared ones greedy while they do not.
        recognise: bool = Param::of("true", "beyond the paper, which has declarations alone").in_paper("false"),
        /// Part of the link that real-rate flows never get.
        greedy_minimum: Ratio = Param::of("0.05", "chosen: section 3.1 gives none"),
        /// Packets between dispatcher and link; the paper's is the device queue of Linux 2.0.
        interface_queue: Packets = Param::of("1p", "chosen: every packet in it goes ahead of what comes later").in_paper("100p"),
        /// Who has less when real-rate flows want more than they may have: those that want most, down to a common level, or all
        /// by the same part.
        overload: OverloadPolicy = Param::of("max_min", "section 3.2.1 leaves the policy open").in_paper("scale"),
        /// Minimum time between notifications in an overload; after this time without overload it has ended.
        exception_interval: Span = Param::of("1s", "chosen: an application has time to act"),
    }
    check: Self::check
}

/// The maximum number of samples of control delay. Chosen: 8 KB per flow.
const MAX_DELAY: u64 = 1_000;

/// The largest packet of IPv4 (RFC 791 section 3.1).
const MAX_PACKET: Bytes = Bytes::new(65_535);

impl RampParams {
    /// The size of the greedy discipline: the size of a queue minus the interface queue; none if nothing is
    /// left.
    pub(crate) fn greedy_limit(&self, of_queue: Limit) -> Option<Limit> {
        match of_queue {
            Limit::Packets(limit) => {
                let left = limit.get().saturating_sub(self.interface_queue.get());
                (left > 0).then_some(Limit::Packets(Packets::new(left)))
            }
            bytes @ Limit::Bytes(_) => Some(bytes),
        }
    }

    /// Refuses changes of parameters that have no effect.
    fn refuse_unused(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
        let is_designed = self.gains == Tuning::Designed;
        let is_in_parts = !is_designed && self.units == Units::Fraction;
        let printed = "it belongs to gains = \"printed\"; write that too, or leave it out";
        let learned = "with `feed_forward` no sum is learned; write feed_forward = false, or leave it out";
        let in_time =
            "it has no effect: with control_delay = \"0ms\" nothing is held back; set that, or leave it out";
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
            ("predictor", self.control_delay == Span::ZERO, in_time),
        ];
        args.refuse_idle(&unused)
    }

    fn check(&self, args: &EntryArgs<'_>) -> Result<(), ParamError> {
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
        )?;
        self.refuse_unused(args)
    }
}
