//! What a backend asks of a whole discipline beyond [`Queue`]: changes while packets wait, and statistics.

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

/// A whole discipline, scheduler and buffer policy at once. No change drops a packet.
pub trait Discipline<P: Packet>: Queue<P> {
    /// The next packet in the order of service, without drops and delays: moves the packets of a discipline that is
    /// replaced.
    fn drain(&mut self, now: Time) -> Option<P>;

    /// Takes out the packet of `flow` that would be served first, without serving it: moves a flow to another
    /// discipline. All others keep their places. None if the flow has none here.
    ///
    /// By default always none: such a discipline cannot give a flow away.
    fn take(&mut self, _now: Time, _flow: FlowId) -> Option<P> {
        None
    }

    /// The size of the buffer now; none if the discipline does not say. What is configured for each flow, as RAMP's, is that
    /// of one of its queues.
    fn limit(&self) -> Option<Limit> {
        None
    }

    /// Sets the size of the buffer. A fuller buffer drains, or is pushed out by the next arrivals.
    fn set_limit(&mut self, limit: Limit);

    /// Sets the rate of the link.
    fn set_link_rate(&mut self, _rate: Rate) {}

    /// Changes what the discipline knows of `flow`. Whether it was [heeded](FlowSetting); by default nothing is.
    fn set_flow(&mut self, _flow: FlowId, _setting: FlowSetting) -> bool {
        false
    }

    /// Whether a `dequeue` with a backlog always gives a packet and concerns the link alone: no packet is held back, no
    /// source is notified, and no external program is called. Such a call may be made late, with the time at which it was due.
    /// By default not.
    fn allows_deferred_dequeue(&self) -> bool {
        false
    }

    /// Reports named counters and gauges.
    fn statistics(&self, _show: &mut dyn FnMut(&'static str, f64)) {}

    /// Reports named counters and gauges of flows.
    fn flow_statistics(&self, _show: &mut dyn FnMut(FlowId, &'static str, f64)) {}

    /// Does what was due until `now`.
    fn advance(&mut self, _now: Time, _sink: &mut dyn Sink<P>) {}

    /// Reports the share and the queue of each real-rate flow, if the discipline infers what flows need.
    fn shares(&self, _show: &mut dyn FnMut(FlowId, FlowShare)) {}

    /// Its part in exchanging reports with other routers, if it has one.
    fn reporter(&self) -> Option<&Sffc> {
        None
    }

    /// The same, to change it.
    fn reporter_mut(&mut self) -> Option<&mut Sffc> {
        None
    }

    /// How an external discipline broke its contract, if it did.
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
