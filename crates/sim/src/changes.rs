//! Changes that a scenario makes during the run.

use apportion_core::packet::{FlowId, LabelKind};
use apportion_core::units::{Rate, TicketRate, Time};
use apportion_runtime::connections::Workload;
use apportion_scenario::model::Setting;

use crate::packet::Packet;
use crate::simulation::Simulation;

impl Simulation<'_> {
    pub(crate) fn change(&mut self, now: Time, index: u32) {
        let scenario = self.scenario;
        match &scenario.changes[index as usize].to {
            Setting::LinkRate(link, rate) => self.links[link.index()].set_rate(now, *rate, &mut self.shared),
            // A changed link has no slack: there are no deferred transmissions.
            Setting::LinkDelay(link, delay) => self.links[link.index()].state.set_delay(*delay),
            Setting::LinkLoss(link, loss) => self.links[link.index()].set_loss(*loss),
            Setting::LinkQueue(link, params) => {
                let rate = self.links[link.index()].state.rate();
                let queue = self.tables.discipline(scenario, *link, params, rate);
                self.links[link.index()].set_queue(now, queue, &mut self.shared);
            }
            Setting::FlowRate(flow, rate) => {
                for index in self.members(*flow) {
                    self.set_rate(now, index, *rate);
                }
            }
            Setting::FlowTickets(flow, tickets) => self.issue(now, *flow, LabelKind::Tickets, *tickets),
            Setting::FlowAckTickets(flow, tickets) => {
                self.issue(now, *flow, LabelKind::AckTickets, *tickets);
            }
            Setting::LinkTickets(link, tickets) => {
                self.links[link.index()].state.issue(now, LabelKind::Tickets, *tickets);
            }
            Setting::LinkAckTickets(link, tickets) => {
                // Tickets are exchanged in the direction of acknowledgements.
                if let Some(other_way) = scenario.links[link.index()].other_way {
                    self.links[other_way.index()].state.issue(now, LabelKind::AckTickets, *tickets);
                }
            }
            to @ (Setting::FlowGuarantee(flow, _)
            | Setting::FlowClass(flow, _)
            | Setting::FlowWeight(flow, _)) => self.set_flow(now, *flow, to),
        }
    }

    /// Changes a setting of a flow in disciplines, for all its ids on every link.
    fn set_flow(&mut self, now: Time, flow: usize, to: &Setting) {
        for id in self.ids(flow).map(FlowId) {
            let Some(setting) = self.tables.change(id, to) else { continue };
            for link in 0..self.links.len() {
                self.links[link].set_flow(now, id, setting, &mut self.shared);
                self.hand_over(now);
            }
        }
    }

    /// Changes the issue of a flow; for short flows, of each one.
    fn issue(&mut self, now: Time, flow: usize, kind: LabelKind, tickets: TicketRate) {
        for id in self.ids(flow) {
            if let Some(Some(marks)) = self.marks.get_mut(id as usize) {
                marks.issue::<Packet>(now, kind, tickets);
            }
        }
    }

    fn set_rate(&mut self, now: Time, index: u32, rate: Rate) {
        let connection = &mut self.connections[index as usize];
        if let Workload::Writes(writes) = &mut connection.workload {
            writes.generator.set_rate(now, rate);
            if rate == Rate::ZERO {
                (writes.pending, writes.is_blocked) = (None, false);
            }
            // A pending write stays. The start requests the first write, also after a change at the same
            // time.
            if writes.pending.is_none() && now > connection.start {
                self.next_write(now, index);
            }
        }
    }
}
