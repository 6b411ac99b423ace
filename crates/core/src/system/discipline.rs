//! The interface of whole disciplines beyond [`Queue`]: changes while packets wait, and statistics.

use super::custom::Fault;
use super::ramp::FlowShare;
use crate::aqm::BufferPolicy;
use crate::aqm::sffc::Sffc;
use crate::buffer::Buffer;
use crate::flow_setting::FlowSetting;
use crate::limit::Limit;
use crate::packet::{FlowId, Packet};
use crate::queue::{Queue, Sink};
use crate::schedule::{End, Scheduler};
use crate::units::{Rate, Time};

/// A whole discipline, scheduler and buffer policy in one. No change drops a packet.
pub trait Discipline<P: Packet>: Queue<P> {
    /// Removes and returns the next packet in the order of service, without drops and delays, when a
    /// discipline is replaced.
    fn drain(&mut self, now: Time) -> Option<P>;

    /// Removes the packet of `flow` that would be served first, without serving it, when a flow moves to
    /// another discipline. All others keep their places. None if the flow has no packet here.
    ///
    /// Default: none. Such a discipline cannot release a flow.
    fn take(&mut self, _now: Time, _flow: FlowId) -> Option<P> {
        None
    }

    /// The present size of the buffer; none if the discipline does not report it. If the size is configured
    /// per flow, as in RAMP, this is the size of one queue.
    fn limit(&self) -> Option<Limit> {
        None
    }

    /// Sets the size of the buffer. A buffer above the new size drains, or the next arrivals push packets
    /// out.
    fn set_limit(&mut self, limit: Limit);

    /// Sets the rate of the link.
    fn set_link_rate(&mut self, _rate: Rate) {}

    /// Changes a setting of `flow`. Returns whether it is [heeded](FlowSetting). Default: no.
    fn set_flow(&mut self, _flow: FlowId, _setting: FlowSetting) -> bool {
        false
    }

    /// Whether a `dequeue` with a backlog always returns a packet and affects the link alone: no packet is
    /// held back, no source is notified, and no external program is called. Such a call may be made late,
    /// with the time at which it was due. Default: no.
    fn allows_deferred_dequeue(&self) -> bool {
        false
    }

    /// Reports named counters and gauges.
    fn statistics(&self, _show: &mut dyn FnMut(&'static str, f64)) {}

    /// Reports named counters and gauges of flows.
    fn flow_statistics(&self, _show: &mut dyn FnMut(FlowId, &'static str, f64)) {}

    /// Does the work that is due until `now`.
    fn advance(&mut self, _now: Time, _sink: &mut dyn Sink<P>) {}

    /// Reports the share and the queue of each real-rate flow, if the discipline infers requirements.
    fn shares(&self, _show: &mut dyn FnMut(FlowId, FlowShare)) {}

    /// Returns the part that exchanges reports with other routers, if any.
    fn reporter(&self) -> Option<&Sffc> {
        None
    }

    /// Returns the part as [`reporter`](Self::reporter) does, for changes.
    fn reporter_mut(&mut self) -> Option<&mut Sffc> {
        None
    }

    /// The breach of its contract by an external discipline, if there was one.
    fn fault(&self) -> Option<&Fault> {
        None
    }
}

impl<P: Packet, S: Scheduler<P>, B: BufferPolicy<P>> Discipline<P> for Buffer<S, B> {
    fn drain(&mut self, now: Time) -> Option<P> {
        self.scheduler_mut().pop(now).map(|queued| queued.packet)
    }
    fn take(&mut self, now: Time, flow: FlowId) -> Option<P> {
        let queued = self.scheduler_mut().push_out(now, flow, End::Head)?;
        self.policy_mut().taken_out(&queued.packet);
        Some(queued.packet)
    }
    fn limit(&self) -> Option<Limit> {
        self.policy().limit()
    }
    fn set_limit(&mut self, limit: Limit) {
        self.policy_mut().set_limit(limit);
    }
    fn set_link_rate(&mut self, rate: Rate) {
        self.scheduler_mut().set_link_rate(rate);
        self.policy_mut().set_link_rate(rate);
    }
    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        // Either may heed it.
        self.scheduler_mut().set_flow(flow, setting) | self.policy_mut().set_flow(flow, setting)
    }
    fn allows_deferred_dequeue(&self) -> bool {
        true
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.scheduler().statistics(show);
        self.policy().statistics(show);
    }
    fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        self.policy().flow_statistics(show);
    }
    fn reporter(&self) -> Option<&Sffc> {
        self.policy().reporter()
    }
    fn reporter_mut(&mut self) -> Option<&mut Sffc> {
        self.policy_mut().reporter_mut()
    }
}
