//! VDQ-CSAQM: an L4S queue and a classic one, whose packets are marked and dropped by value.
//!
//! Nádas, Gombos, Fejes, Laki, "A congestion control independent L4S scheduler", ANRW 2020, after the abstract of the
//! patent US 12500850, "Virtual dual queue core stateless active queue management": the paper's text was not at hand.
//! Two real queues, of which L4S goes first, and two virtual ones. The first virtual queue has the records of L4S
//! packets, the second those of all packets. Each has a congestion threshold value (CTV). That of the first applies to
//! L4S packets, that of the second to all. So flows share by values, whatever queue they are in.
//!
//! Readings:
//! - A virtual queue drains at `virtual_rate` of the link (the first) or at the link's rate (the second). Every packet
//!   that is sent later fills it, marked ones too.
//! - Its CTV admits, of the values that arrived within `window`, the drain less what the queue holds beyond its
//!   target, divided by `window`. The CTV follows each millisecond.
//! - L4S packets below a CTV that applies are marked. Senders that ignore marks have a bound: below three quarters of the
//!   second CTV, packets are dropped. Classic packets below the second CTV are dropped, or marked if they are ECN-capable.
//!
//! Cost: O(1) per packet, 2,048 additions per millisecond with arrivals; 32 kB per queue, no state per flow in the core.
//! Parameters: [`ENTRY`].

use alloc::collections::VecDeque;

use super::discipline::Discipline;
use crate::aqm::pvpie::{Values, is_overload, value_of};
use crate::aqm::value_edge::{TRAITS, ValueEdge, ValueEdgeParams};
use crate::flow_setting::FlowSetting;
use crate::label::Label;
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, EntryArgs, LIMIT, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason, Queue, Sink};
use crate::random::Stream;
use crate::units::{Bytes, Rate, Ratio, Span, Time, larger};

/// VDQ-CSAQM in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "vdq_csaqm",
    role: Role::System,
    summary: "Per packet value with an L4S queue and a classic one, which share by values.",
    reference: "Nádas, Gombos, Fejes, Laki 2020",
    cost: "O(1) per packet, no state per flow in the core; at the edge 72 bytes per flow, 128 more per guarantee",
    params: VdqCsaqmParams::PARAMS,
    traits: Traits { divides_set_rate: true, ..TRAITS },
};

params! {
    /// Parameters of [`VdqCsaqm`].
    pub struct VdqCsaqmParams {
        limit: Option<BufferSize> = LIMIT,
        /// Virtual delay of all packets that is aimed at.
        target: Span = Param::of("15ms", "chosen: as RFC 9332"),
        /// Virtual delay of L4S packets that is aimed at.
        l4s_target: Span = Param::of("1ms", "chosen: as RFC 9332"),
        /// Drain of the virtual L4S queue, as a part of the link.
        virtual_rate: Ratio = Param::of("95%", "chosen"),
        /// Time over which values that arrive are counted.
        window: Span = Param::of("200ms", "chosen: some round trips"),
        /// Values of packets.
        ..edge: ValueEdgeParams,
    }
    check: Self::check
}

impl VdqCsaqmParams {
    fn check(&self, _args: &EntryArgs<'_>) -> Result<(), ParamError> {
        for (key, span) in [("target", self.target), ("l4s_target", self.l4s_target), ("window", self.window)]
        {
            require(span > Span::ZERO, key, "it must be above zero; write for example \"15ms\"")?;
        }
        let part = self.virtual_rate.get();
        require(part > 0.0 && part <= 1.0, "virtual_rate", "it must be above 0 and at most 100 %")
    }
}

/// The period of the thresholds.
const PERIOD: Span = Span::from_millis(1);

/// A queue that exists as a number of bytes only.
#[derive(Clone, Debug)]
struct VirtualQueue {
    /// Its part of the link, and the delay that is aimed at, in seconds.
    part: f64,
    target: f64,
    window: f64,
    /// Bytes a second.
    drain: f64,
    bytes: f64,
    last: Time,
    arrived: Values,
    /// The code of the CTV, and the time of its next update.
    ctv: u32,
    due: Time,
}

impl VirtualQueue {
    fn new(part: f64, target: Span, window: Span, link: Rate) -> Self {
        Self {
            part,
            target: target.as_secs_f64(),
            window: window.as_secs_f64(),
            drain: part * link.as_bit() as f64 / 8.0,
            bytes: 0.0,
            last: Time::ZERO,
            arrived: Values::new(window),
            ctv: 0,
            due: Time::ZERO,
        }
    }

    fn set_link_rate(&mut self, link: Rate) {
        self.drain = self.part * link.as_bit() as f64 / 8.0;
    }

    /// Counts an arrival. Returns whether its value reaches the CTV.
    fn arrive(&mut self, now: Time, label: Label, size: Bytes) -> bool {
        self.arrived.add(now, label, size);
        self.bytes = larger(self.bytes - self.drain * now.since(self.last).as_secs_f64(), 0.0);
        self.last = now;
        if now >= self.due {
            self.due = now + PERIOD;
            let beyond = self.bytes - self.drain * self.target;
            let admitted = self.drain - beyond / self.window;
            self.ctv = self.arrived.quantile(1.0 - admitted / self.arrived.rate(now));
        }
        label.code() >= self.ctv
    }

    /// Counts a packet that will be sent.
    fn admit(&mut self, size: Bytes) {
        self.bytes += size.get() as f64;
    }
}

/// The state of a VDQ-CSAQM queue.
#[derive(Clone, Debug)]
pub struct VdqCsaqm<P> {
    limit: LinkLimit,
    edge: ValueEdge,
    l4s: VecDeque<P>,
    classic: VecDeque<P>,
    backlog: Backlog,
    /// The virtual queues of L4S packets, and of all.
    of_l4s: VirtualQueue,
    of_all: VirtualQueue,
}

impl<P: Packet> VdqCsaqm<P> {
    /// Two empty queues for a link of `link_rate`. The stream draws the values of flows that enter here.
    #[must_use]
    pub fn new(params: &VdqCsaqmParams, link_rate: Rate, random: Stream) -> Self {
        let part = params.virtual_rate.get();
        Self {
            limit: LinkLimit::new(params.limit, link_rate),
            edge: ValueEdge::new(&params.edge, random),
            l4s: VecDeque::new(),
            classic: VecDeque::new(),
            backlog: Backlog::EMPTY,
            of_l4s: VirtualQueue::new(part, params.l4s_target, params.window, link_rate),
            of_all: VirtualQueue::new(1.0, params.target, params.window, link_rate),
        }
    }

    fn pop(&mut self) -> Option<P> {
        let packet = self.l4s.pop_front().or_else(|| self.classic.pop_front())?;
        self.backlog.remove(&packet);
        Some(packet)
    }
}

impl<P: Packet> Queue<P> for VdqCsaqm<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, sink: &mut dyn Sink<P>) {
        let Some(label) = self.edge.label(now, &mut packet) else {
            return sink.dropped(now, packet, DropReason::Policy);
        };
        let (size, is_l4s) = (packet.size(), packet.ecn().is_l4s());
        let mut passes = self.of_all.arrive(now, label, size);
        if is_l4s {
            passes &= self.of_l4s.arrive(now, label, size);
        }
        if !self.limit.get().admits(&packet, self.backlog) {
            return sink.dropped(now, packet, DropReason::Overflow);
        }
        if !passes {
            if !packet.ecn().is_capable() || is_overload(label, self.of_all.ctv) {
                return sink.dropped(now, packet, DropReason::Early);
            }
            packet.set_ce();
            sink.marked(now, &packet);
        }
        self.of_all.admit(size);
        self.backlog.add(&packet);
        if is_l4s {
            self.of_l4s.admit(size);
            self.l4s.push_back(packet);
        } else {
            self.classic.push_back(packet);
        }
    }

    fn dequeue(&mut self, _now: Time, _sink: &mut dyn Sink<P>) -> Option<P> {
        self.pop()
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl<P: Packet> Discipline<P> for VdqCsaqm<P> {
    fn drain(&mut self, _now: Time) -> Option<P> {
        self.pop()
    }

    fn take(&mut self, _now: Time, flow: FlowId) -> Option<P> {
        let take = |queue: &mut VecDeque<P>| {
            let at = queue.iter().position(|packet| packet.flow().slot() == flow.slot())?;
            queue.remove(at)
        };
        let packet = take(&mut self.l4s).or_else(|| take(&mut self.classic))?;
        self.backlog.remove(&packet);
        Some(packet)
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
        self.of_l4s.set_link_rate(rate);
        self.of_all.set_link_rate(rate);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.edge.set_flow(flow, setting)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("ctv_l4s", value_of(self.of_l4s.ctv));
        show("ctv", value_of(self.of_all.ctv));
    }

    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Ecn, LabelKind, SimplePacket};
    use crate::system::catalog::Selection;
    use crate::testing::{Log, packet};

    /// A queue of 8 Mb/s to which for two seconds as much again comes: of value 1 to 1000 in turn, with these
    /// ECN codepoints.
    fn overloaded(ecn: impl Fn(u32) -> Ecn) -> Log {
        let selection = Selection::new("vdq_csaqm", None, None).unwrap();
        let params = VdqCsaqmParams::from_args(&selection.kind_args()).unwrap();
        let mut queue = VdqCsaqm::<SimplePacket>::new(&params, Rate::from_mbit(8), Stream::new(1, "vdq"));
        let mut log = Log::default();
        for id in 0..4_000 {
            let now = Time::from_nanos(500_000 * u64::from(id));
            let mut packet = SimplePacket { ecn: ecn(id), ..packet(id, 0, 1_000) };
            packet.set_label(LabelKind::Value, Label::new(f64::from(1 + id * 7 % 1_000)));
            queue.enqueue(now, packet, &mut log);
            if id % 2 == 1 {
                queue.dequeue(now, &mut log);
            }
        }
        log
    }

    #[test]
    fn the_lower_half_of_the_values_is_dropped_or_marked() {
        let value = |id: u32| 1 + id * 7 % 1_000;
        let late = |id: &u32| *id > 2_000;
        let dropped = overloaded(|_| Ecn::NotEct).dropped;
        let dropped: alloc::vec::Vec<u32> = dropped.iter().map(|(_, id, _)| *id).filter(late).collect();
        assert!((900..1_100).contains(&dropped.len()), "{}", dropped.len());
        assert!(dropped.iter().all(|id| value(*id) < 600));
        // What ignores marks is dropped below three quarters of the threshold.
        let log = overloaded(|_| Ecn::Ect1);
        assert!(!log.marked.is_empty() && log.dropped.iter().filter(|(_, id, _)| late(id)).count() > 500);
        // Both classes alike.
        let both = overloaded(|id| if id % 4 < 2 { Ecn::Ect1 } else { Ecn::NotEct });
        assert!(both.dropped.iter().all(|(_, id, _)| !late(id) || value(*id) < 700));
    }
}
