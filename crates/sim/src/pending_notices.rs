//! Overload notifications on their way from disciplines to sources: a link cannot carry a flow's required
//! rate, or can again.
//!
//! A queue of the sending host notifies the source at once. From a later queue, a notification takes the
//! delay of the wires that the flow's packets pass before that queue: a small message returns over the same
//! wires and waits in no queue (chosen: the paper does not specify its transport; ICMP would be one way).
//! Notifications about acknowledgements are discarded: their sender does not choose its rate.

use std::collections::BTreeMap;

use apportion_core::queue::Overload;
use apportion_core::units::{Rate, Span, Time};
use apportion_runtime::connections::Workload;
use apportion_scenario::model::LinkId;

use crate::events::Event;
use crate::simulation::Simulation;

/// Notifications on their way, by the time of their arrival and then in the order in which they were sent.
#[derive(Debug, Default)]
pub struct PendingNotices {
    pending: BTreeMap<(Time, u64), (u32, Overload)>,
    sent: u64,
}

impl Simulation<'_> {
    /// Sends the notifications that disciplines have issued.
    pub(crate) fn send_notices(&mut self, now: Time) {
        let mut issued = std::mem::take(&mut self.shared.overloads);
        for (at, link, overload) in issued.drain(..) {
            let Some((flow, delay)) = self.way_back(link, overload) else { continue };
            // A discipline that was called late issues them late.
            let arrival = (at + delay).max(now);
            if delay == Span::ZERO {
                self.deliver_notice(now, flow, overload);
            } else {
                self.notices.pending.insert((arrival, self.notices.sent), (flow, overload));
                self.notices.sent += 1;
                self.shared.events.schedule(at, arrival, Event::Notice);
            }
        }
        self.shared.overloads = issued;
    }

    /// The flow of the scenario, and the delay from a link back to its source; `None` if its packets do not
    /// pass the link.
    fn way_back(&self, link: u32, overload: Overload) -> Option<(u32, Span)> {
        let flow = self.numbers.flow_of(overload.flow)?;
        let of = self.scenario.flows.get(flow)?;
        let before = self.scenario.before(of, &of.path, LinkId(link))?;
        let delay = before.iter().map(|on| self.links[on.index()].state.delay());
        Some((flow as u32, delay.fold(Span::ZERO, |sum, delay| sum + delay)))
    }

    /// Delivers the notifications that have arrived.
    pub(crate) fn deliver_notices(&mut self, now: Time) {
        while let Some(first) = self.notices.pending.first_entry().filter(|first| first.key().0 <= now) {
            let (flow, overload) = first.remove();
            self.deliver_notice(now, flow, overload);
        }
    }

    /// Notifies the sources of a flow, each of its share.
    fn deliver_notice(&mut self, now: Time, flow: u32, overload: Overload) {
        if !overload.is_over {
            self.shared.counters.notified(overload.flow);
        }
        let members = self.members(flow as usize);
        let part = |rate: Rate| Rate::from_bit(rate.as_bit() / members.len().max(1) as u64);
        let overload =
            Overload { wanted: part(overload.wanted), granted: part(overload.granted), ..overload };
        for index in members {
            if let Workload::Writes(writes) = &mut self.connections[index as usize].workload {
                writes.generator.on_overload(now, &overload);
            }
        }
    }
}
