//! Policies that push out of a shared buffer: LQD, RND and PFD.
//!
//! All arrivals join; then packets may have to leave. A `Rule` decides when, `occupancy.rs` decides of which
//! flow.

use super::dimensioning::Dimensioning;
use super::occupancy::Occupancy;
use super::{Admission, BufferPolicy, Victim};
use crate::flow_setting::FlowSetting;
use crate::limit::{Limit, LinkLimit};
use crate::packet::{Ecn, FlowId, Packet};
use crate::queue::{Backlog, DropReason, Sink};
use crate::schedule::{End, Queued, Scheduler};
use crate::units::{Rate, Span, Time};

/// A departing L4S packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    /// The flow of the packet.
    pub flow: FlowId,
    /// The sojourn time of the packet.
    pub sojourn: Span,
    /// The remaining backlog of the flow.
    pub held: Backlog,
    /// Whether the scheduler has a queue for each flow.
    pub is_apart: bool,
}

/// Decides when a flow loses a packet, and which packet.
pub(crate) trait Rule {
    /// Notes a packet that has joined.
    fn arrived(&mut self, _flow: FlowId, _ecn: Ecn) {}

    /// The reason why a packet must leave, if one must. `is_exceeded` means that the buffer holds too much.
    fn reason(&mut self, now: Time, occupancy: &Occupancy, is_exceeded: bool) -> Option<DropReason>;

    /// Whether `flow`, which holds `held` and was selected to lose a packet for this reason, keeps it after
    /// all.
    fn spares(&mut self, _reason: DropReason, _flow: FlowId, _held: Backlog) -> bool {
        false
    }

    /// Whether the rule marks departing packets.
    fn may_mark(&self) -> bool {
        false
    }

    /// Whether a departing L4S packet is marked.
    fn marks(&mut self, _leaving: Departure) -> bool {
        false
    }

    /// A number in [0, 1) for a random choice of flow.
    fn uniform(&mut self) -> f64;

    /// The end of the flow's queue that loses the packet.
    fn end(&self) -> End {
        End::Head
    }

    /// Reports statistics as [`BufferPolicy::statistics`] does, in addition to the number of active flows.
    fn statistics(&self, _show: &mut dyn FnMut(&'static str, f64)) {}

    /// Sets the rate of the link, as [`BufferPolicy::set_link_rate`] does.
    fn set_link_rate(&mut self, _rate: Rate) {}

    /// Sets the mean of the known round-trip times, if thresholds follow them.
    fn set_mean_rtt(&mut self, _rtt: Span) {}
}

/// A policy that pushes out by the rule `R`.
#[derive(Clone, Debug)]
pub struct PushOut<R> {
    limit: LinkLimit,
    pub(super) occupancy: Occupancy,
    pub(super) rule: R,
    /// The round-trip times, if thresholds follow them.
    dimensioning: Option<Dimensioning>,
}

impl<R> PushOut<R> {
    /// An empty buffer with the size that `limit` gives at present.
    pub(super) const fn with(
        limit: LinkLimit,
        occupancy: Occupancy,
        dimensioning: Option<Dimensioning>,
        rule: R,
    ) -> Self {
        Self { limit, occupancy, rule, dimensioning }
    }
}

/// Passes on a departing L4S packet, perhaps with a mark. Not inlined: marks are rare.
#[inline(never)]
fn mark<P: Packet, R: Rule>(
    policy: &mut PushOut<R>,
    now: Time,
    mut queued: Queued<P>,
    is_apart: bool,
    sink: &mut dyn Sink<P>,
) -> Queued<P> {
    let flow = queued.packet.flow();
    let held = policy.occupancy.held_by(flow);
    if policy.rule.marks(Departure { flow, sojourn: queued.sojourn(now), held, is_apart }) {
        queued.packet.set_ce();
        sink.marked(now, &queued.packet);
    }
    queued
}

impl<P: Packet, R: Rule> BufferPolicy<P> for PushOut<R> {
    // Inlined always: each of the few schedulers has one `enqueue`, which otherwise passes the packet on and
    // compares the answer.
    #[inline(always)]
    fn admit(&mut self, now: Time, packet: &mut P, _backlog: Backlog) -> Admission {
        let flow = packet.flow();
        if let Some(rtt) = self.dimensioning.as_mut().and_then(|of| of.arrived(now, flow)) {
            self.occupancy.set_rtt(flow, rtt);
        }
        if !self.occupancy.fits(packet) {
            return Admission::Drop(DropReason::Overflow);
        }
        self.occupancy.add(packet);
        self.rule.arrived(flow, packet.ecn());
        Admission::Accept
    }

    #[inline]
    fn victim<S: Scheduler<P>>(&mut self, now: Time, scheduler: &S) -> Option<Victim> {
        let is_exceeded = self.occupancy.is_exceeded(scheduler.backlog());
        let reason = self.rule.reason(now, &self.occupancy, is_exceeded)?;
        let flow = self.occupancy.choose(|| self.rule.uniform())?;
        if self.rule.spares(reason, flow, self.occupancy.held_by(flow)) {
            return None;
        }
        Some(Victim { flow, end: self.rule.end(), reason })
    }

    fn taken_out(&mut self, packet: &P) {
        self.occupancy.remove(packet.flow(), packet);
    }

    fn pushed_out(&mut self, packet: &P) {
        self.occupancy.remove(packet.flow(), packet);
        if let Some(dimensioning) = &mut self.dimensioning {
            dimensioning.dropped(packet.flow());
        }
    }

    #[inline]
    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        // Called before the packet is fetched, so that the flow's backlog is fetched in parallel.
        let flow = scheduler.next_flow();
        let queued = scheduler.pop(now)?;
        let flow = flow.unwrap_or(queued.packet.flow());
        self.occupancy.remove(flow, &queued.packet);
        if self.rule.may_mark() && queued.packet.ecn().is_l4s() {
            return Some(mark(self, now, queued, scheduler.keeps_flows_apart(), sink));
        }
        Some(queued)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("active_flows", self.occupancy.active() as f64);
        if let Some(unfriendly) = self.dimensioning.as_ref().and_then(Dimensioning::unfriendly) {
            show("unfriendly_flows", unfriendly as f64);
        }
        self.rule.statistics(show);
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
        self.occupancy.set_limit(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
        self.occupancy.set_limit(self.limit.get());
        self.rule.set_link_rate(rate);
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let (rtt, dimensioning) = match (setting, &mut self.dimensioning) {
            (FlowSetting::Weight(weight), _) => return self.occupancy.set_weight(flow, weight),
            (FlowSetting::Rtt(rtt), Some(dimensioning)) => (rtt, dimensioning),
            _ => return false,
        };
        dimensioning.set_rtt(flow, rtt, |flow, rtt| {
            self.occupancy.set_rtt(flow, rtt);
        });
        self.occupancy.set_unknown_rtt(dimensioning.mean());
        self.rule.set_mean_rtt(dimensioning.mean());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::queue::Queue;
    use crate::system::catalog::Selection;
    use crate::system::{DisciplineParams, LinkContext, LinkQueue};
    use crate::testing::{Log, packet};
    use crate::units::{Bytes, Packets};

    #[test]
    fn a_buffer_without_a_size_of_its_own_is_100_ms_of_its_link() {
        for name in ["lqd", "random_drop", "pfd"] {
            let selection = Selection::new(name, None, None).unwrap();
            let link = LinkContext::new(Rate::from_mbit(16), 1, "link");
            let mut queue: LinkQueue<SimplePacket> =
                DisciplineParams::from_args(&selection).unwrap().build(&link);
            // The backlog never exceeds 100 ms of the link, and early drops leave it above thresh of that,
            // 0.65.
            let filled = |queue: &mut LinkQueue<SimplePacket>, bytes| {
                for id in 0..1_000 {
                    queue.enqueue(Time::ZERO, packet(id, id % 2, 1_000), &mut Log::default());
                }
                let held = queue.backlog().bytes;
                assert!(held <= Bytes::new(bytes), "{name}: {held}");
                assert!(held >= Bytes::new(bytes * 65 / 100), "{name}: {held}");
            };
            filled(&mut queue, 200_000);
            queue.set_link_rate(Rate::from_mbit(40));
            filled(&mut queue, 500_000);
            // 80 kB are less than 64 full packets.
            queue.set_link_rate(Rate::from_mbit(6));
            filled(&mut queue, 96_000);
            queue.set_limit(Limit::Packets(Packets::new(30)));
            filled(&mut queue, 30_000);
            queue.set_link_rate(Rate::from_mbit(40));
            filled(&mut queue, 30_000);
        }
    }
}
