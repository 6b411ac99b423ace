//! PVPIE: PIE decides how much is to be dropped, and the values of packets which.
//!
//! Laki, Gombos, Nádas, Turányi, "Take your own share of the PIE", ANRW 2017, after the published sources: the
//! paper's text was not at hand. With p the probability of [PIE](super::pie), the congestion threshold value (CTV) is
//! the p-quantile of the values that arrived lately, by bytes. An arrival of a lower value is dropped.
//!
//! Readings:
//! - The CTV follows with each update of p. Arrivals count in two halves of `window`, of which the older one
//!   is complete: the quantile is one of a half to all of it.
//! - Values are counted in 1,024 bins of 1.6 to 3.1 %, and evenly within a bin.
//! - PIE takes seconds to follow a flood. A full buffer, which would hit all flows, raises p at once to the excess of
//!   arrivals over departures within `window`.
//! - The exceptions of PIE hold: no drop within `max_burst`, or while the queue is short.
//! - ECN-capable packets below the CTV are marked, but dropped if their value is below three quarters of it. A sender
//!   of [FAIR](crate::mark::tvf::Tvf::FAIR) value that ignores marks thus keeps 4/3 of its share.
//!
//! Cost: O(1) per packet, 1,024 additions per update; 16 kB per queue, no state per flow in the core. Parameters:
//! [`ENTRY`].

use alloc::boxed::Box;

use super::per_queue::Control as _;
use super::pie::{PieControl, PieLaw, PieState};
use super::value_edge::{TRAITS, ValueEdge, ValueEdgeParams};
use super::{Admission, BufferPolicy};
use crate::flow_setting::FlowSetting;
use crate::label::Label;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, EntryArgs, LIMIT, Param, ParamError, Role, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Bytes, Rate, Ratio, Span, Time};

/// PVPIE in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "pvpie",
    role: Role::Policy,
    summary: "Per packet value with PIE: drops arrivals whose value is below a threshold that keeps the delay near a target.",
    reference: "Laki, Gombos, Nádas, Turányi 2017",
    cost: "O(1) per packet, no state per flow in the core; at the edge 40 bytes per flow, 128 more per guarantee",
    params: PvPieParams::PARAMS,
    traits: TRAITS,
};

params! {
    /// Parameters of [`PvPie`].
    pub struct PvPieParams {
        limit: Option<BufferSize> = LIMIT,
        /// The controller of the dropped share.
        ..law: PieLaw where {
            target: Param::of("20ms", "published program"),
            tupdate: Param::of("32ms", "published program"),
            max_burst: Param::of("100ms", "published program"),
        },
        /// Time over which values that arrive are counted.
        window: Span = Param::of("1s", "published program"),
        /// Mark ECN-capable packets instead of dropping them.
        ecn: bool = Param::of("true", "chosen: as the published program of PPV"),
        /// Values of packets.
        ..edge: ValueEdgeParams,
    }
    check: Self::check
}

impl PvPieParams {
    fn check(&self, _args: &EntryArgs<'_>) -> Result<(), ParamError> {
        require(self.window > Span::ZERO, "window", "it must be above zero; write for example \"1s\"")
    }

    fn control(&self) -> PieControl {
        PieControl {
            law: self.law.clone(),
            mean_pktsize: Bytes::new(1_500),
            derandomize: false,
            ecn: false,
            mark_ecnth: Ratio::ZERO,
        }
    }
}

/// Codes of a label in a bin: five bits of mantissa remain.
const BIN: u32 = 1 << 7;
const BINS: usize = 1 << (Label::BITS - 7);
/// The part of the CTV below which ECN-capable packets are dropped. Chosen: as in CSFQ with `l4s`, whose labels at 4/3
/// of the share start to be dropped.
const OVERLOAD: f64 = 0.75;

/// The value of a congestion threshold, a code that may be beyond all.
pub(crate) fn value_of(ctv: u32) -> f64 {
    Label::from_code(ctv.min((1 << Label::BITS) - 1)).value()
}

/// Whether `label` is so far below the threshold that a mark is not enough.
pub(crate) fn is_overload(label: Label, ctv: u32) -> bool {
    label.value() < OVERLOAD * value_of(ctv)
}

/// The bytes that arrived lately, by value.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    half: Span,
    /// The end of the half that is being counted.
    until: Time,
    /// This half and the one before.
    bytes: Box<[[u64; 2]; BINS]>,
    total: [u64; 2],
    /// The bytes that left meanwhile.
    left: [u64; 2],
}

impl Values {
    pub(crate) fn new(window: Span) -> Self {
        let half = Span::from_nanos((window.as_nanos() / 2).max(1));
        Self { half, until: Time::ZERO + half, bytes: Box::new([[0; 2]; BINS]), total: [0; 2], left: [0; 2] }
    }

    /// Counts an arrival.
    #[inline]
    pub(crate) fn add(&mut self, now: Time, label: Label, size: Bytes) {
        if now >= self.until {
            self.turn(now);
        }
        self.bytes[(label.code() / BIN) as usize][0] += size.get();
        self.total[0] += size.get();
    }

    #[cold]
    #[inline(never)]
    fn turn(&mut self, now: Time) {
        let is_recent = now < self.until + self.half;
        let next = |[this, _]: [u64; 2]| [0, if is_recent { this } else { 0 }];
        self.bytes.iter_mut().for_each(|bin| *bin = next(*bin));
        (self.total, self.left) = (next(self.total), next(self.left));
        self.until = now + self.half;
    }

    /// The part of what arrived that did not leave.
    fn excess(&self) -> f64 {
        let [arrived, left] = [self.total, self.left].map(|bytes| bytes.iter().sum::<u64>() as f64);
        if arrived > 0.0 { 1.0 - left / arrived } else { 0.0 }
    }

    /// The bytes that arrived in a second. What came before the start counts as nothing.
    pub(crate) fn rate(&self, now: Time) -> f64 {
        let span = now + self.half + self.half;
        self.total.iter().sum::<u64>() as f64 / span.since(self.until).as_secs_f64()
    }

    /// The code of the value below which the part `p` of the bytes arrived: 0 for none of them, or less.
    pub(crate) fn quantile(&self, p: f64) -> u32 {
        let mut left = p * self.total.iter().sum::<u64>() as f64;
        for (bin, bytes) in (0..).zip(self.bytes.iter()) {
            let bytes = bytes.iter().sum::<u64>() as f64;
            if left <= bytes {
                let part = if bytes > 0.0 { left / bytes } else { 0.0 };
                return bin * BIN + (part * f64::from(BIN)) as u32;
            }
            left -= bytes;
        }
        BINS as u32 * BIN
    }
}

/// The state of a PVPIE queue.
#[derive(Clone, Debug)]
pub struct PvPie {
    limit: LinkLimit,
    control: PieControl,
    state: PieState,
    ecn: bool,
    edge: ValueEdge,
    arrived: Values,
    /// The code of the congestion threshold value, and the time of its next update.
    ctv: u32,
    due: Time,
}

impl PvPie {
    /// PVPIE for a link of `link_rate`. The stream draws the values of flows that enter here.
    #[must_use]
    pub fn new(params: &PvPieParams, link_rate: Rate, random: Stream) -> Self {
        Self {
            limit: LinkLimit::new(params.limit, link_rate),
            control: params.control(),
            state: PieState::default(),
            ecn: params.ecn,
            edge: ValueEdge::new(&params.edge, random),
            arrived: Values::new(params.window),
            ctv: 0,
            due: Time::ZERO,
        }
    }
}

impl<P: Packet> BufferPolicy<P> for PvPie {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let Some(label) = self.edge.label(now, packet) else {
            return Admission::Drop(DropReason::Policy);
        };
        self.arrived.add(now, label, packet.size());
        self.state.arrive(&self.control.law, now, backlog);
        let fits = self.limit.get().admits(packet, backlog);
        if !fits {
            self.state.raise(self.arrived.excess());
        }
        if now >= self.due || !fits && label.code() >= self.ctv {
            self.due = now + self.control.law.tupdate;
            self.ctv = self.arrived.quantile(self.state.drop_prob());
        }
        if !fits {
            return Admission::Drop(DropReason::Overflow);
        }
        if label.code() >= self.ctv || self.state.is_spared(&self.control, backlog.bytes) {
            return Admission::Accept;
        }
        if self.ecn && packet.ecn().is_capable() && !is_overload(label, self.ctv) {
            return Admission::Mark;
        }
        Admission::Drop(DropReason::Early)
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let queued = scheduler.pop(now)?;
        self.arrived.left[0] += queued.packet.size().get();
        let is_last = scheduler.backlog().is_empty();
        self.control.departed(&mut self.state, now, queued.sojourn(now), is_last);
        Some(queued)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("drop_prob", self.state.drop_prob());
        show("ctv", value_of(self.ctv));
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.edge.set_flow(flow, setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_the_quantile_of_the_values_that_came_lately() {
        let mut values = Values::new(Span::from_secs(1));
        assert_eq!(values.quantile(0.5), 0, "nothing has arrived");
        let label = |n: u64| Label::new(1e6 * n as f64);
        for n in 1..=100 {
            values.add(Time::from_millis(n), label(n), Bytes::new(1_000));
        }
        for p in [0.1, 0.5, 0.9] {
            let (found, exact) = (Label::from_code(values.quantile(p)).value(), 1e8 * p);
            assert!((found / exact - 1.0).abs() < 0.04, "{p}: {found} against {exact}");
        }
        assert_eq!(values.quantile(0.0), 0, "none of the bytes is dropped");
        // The half before still counts, with a whole half of silence it does not.
        values.add(Time::from_millis(700), label(1), Bytes::new(1));
        assert!(values.total == [1, 100_000]);
        values.add(Time::from_millis(1_800), label(1), Bytes::new(1));
        assert_eq!(values.total, [1, 0]);
    }
}
