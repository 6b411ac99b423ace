//! Web pages: carries out the actions of [users](apportion_runtime::source::web).
//!
//! The first request that reaches the server over a seat's connection opens it. It is forgotten when its user
//! leaves, with all packets on their way: the next one begins far from its sequence numbers, so both ends
//! ignore late packets.

use std::sync::Arc;

use apportion_core::packet::{Ecn, Protocol};
use apportion_core::units::Time;
use apportion_runtime::connections::Workload;
use apportion_runtime::source::web::Act;
use apportion_scenario::model::Source;

use crate::connection::TransportState;
use crate::events::Event;
use crate::packet::{Body, Direction, Header, Packet};
use crate::simulation::Simulation;

impl Simulation<'_> {
    /// A user arrives, or the flow starts, with its first connection.
    pub(crate) fn start_users(&mut self, now: Time, index: u32, web: u32) {
        let flow = &mut self.webs[web as usize];
        if index == flow.first {
            flow.users.arrive(now);
            self.carry_out(now, web);
        }
    }

    /// The time has come for which the users of a connection wait.
    pub(crate) fn wake_users(&mut self, now: Time, index: u32, web: u32) {
        let flow = &mut self.webs[web as usize];
        flow.users.wake(now, index - flow.first);
        self.carry_out(now, web);
    }

    /// A request that was sent at `sent` reaches the server of a connection.
    #[inline(never)]
    pub(crate) fn answer_request(&mut self, now: Time, index: u32, sent: Time) {
        let Workload::Web(web) = self.connections[index as usize].workload else { return };
        let flow = &mut self.webs[web as usize];
        let member = index - flow.first;
        let isn = flow.isn(index);
        let Some(size) = flow.users.answer(sent, member) else { return };
        let connection = &mut self.connections[index as usize];
        if matches!(connection.transport, TransportState::Closed(_)) {
            connection.transport = TransportState::Closed(Arc::clone(&flow.tcp));
            self.open(index, isn);
        }
        self.act(now, index, Direction::Forward, None, |tcp, outlet| {
            tcp.sender.start(now, outlet);
            tcp.sender.supply(now, size.get(), outlet);
        });
    }

    /// The receiver of a connection may have more data.
    #[inline(never)]
    pub(crate) fn receive_objects(&mut self, now: Time, index: u32) {
        if let Workload::Web(web) = self.connections[index as usize].workload
            && let Some(delivered) = self.delivered(index)
        {
            let flow = &mut self.webs[web as usize];
            flow.users.receive(now, index - flow.first, delivered);
            self.carry_out(now, web);
        }
    }

    fn carry_out(&mut self, now: Time, web: u32) {
        let flow = &mut self.webs[web as usize];
        if flow.users.acts.is_empty() {
            return;
        }
        let first = flow.first;
        let mut acts = std::mem::take(&mut flow.users.acts);
        for act in acts.drain(..) {
            match act {
                Act::Ask(member) => self.ask(now, first + member),
                Act::Wake(member, at) => self.shared.events.schedule(now, at, Event::Write(first + member)),
                Act::Await(at) => self.shared.events.schedule(now, at, Event::Start(first)),
                Act::Close(member) => self.forget(first + member, web),
                Act::Loaded(page) => {
                    self.completions.push((self.connections[first as usize].flow, page));
                }
            }
        }
        // No request is answered at once, so nothing was added meanwhile.
        self.webs[web as usize].users.acts = acts;
    }

    /// Sends a request from the sink of a connection to its source.
    fn ask(&mut self, now: Time, index: u32) {
        let connection = &self.connections[index as usize];
        let Source::Web(web) = &self.scenario.flows[connection.flow as usize].source else { return };
        let (id, hop) = (connection.id, connection.first_hop(Direction::Reverse));
        let body = Body { sent: now, queued: now, connection: index, header: Header::Request };
        let body = self.shared.store.insert(body);
        let packet = Packet::new(body, id, hop, web.request, Ecn::NotEct, Direction::Reverse);
        self.inject(now, index, packet.carrying(Protocol::Tcp));
    }

    /// Ends a connection whose user has left.
    fn forget(&mut self, index: u32, web: u32) {
        let TransportState::Open(place) = self.connections[index as usize].transport else { return };
        let totals = self.transport_totals(index);
        let flow = &mut self.webs[web as usize];
        flow.end(index, totals);
        self.tcps.remove(place);
        self.connections[index as usize].transport = TransportState::Closed(Arc::clone(&flow.tcp));
    }
}
