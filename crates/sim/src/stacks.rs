//! Stacks [from outside](apportion_core::stack) during a run: what arrives, what leaves, timers, measurements.

use std::sync::Arc;

use apportion_core::Packet as _;
use apportion_core::packet::Ecn;
use apportion_core::random::Stream;
use apportion_core::stack::{self, Endpoint, MAX_BURST, TICK};
use apportion_core::units::{Bytes, Time};
use apportion_runtime::outcome::{Failures, TcpSample};

use crate::connection::{Ends, Totals, TransportState};
use crate::packet::{Body, Direction, Header, Packet};
use crate::simulation::Simulation;

impl Ends {
    /// The end that sends in `direction`.
    fn sender(&mut self, direction: Direction) -> &mut dyn Endpoint {
        match direction {
            Direction::Forward => &mut *self.source,
            Direction::Reverse => &mut *self.sink,
        }
    }

    /// The totals so far.
    pub(crate) fn totals(&self) -> Totals {
        let source = self.source.progress();
        Totals {
            goodput: self.sink.delivered(),
            retransmits: source.lost,
            timeouts: source.timeouts,
            fast_retransmits: source.reductions,
        }
    }

    /// The present state of the source.
    pub(crate) fn sample(&self) -> TcpSample {
        let source = self.source.progress();
        TcpSample { window: source.window as f64 / self.payload.get().max(1) as f64, srtt: source.srtt }
    }
}

impl Simulation<'_> {
    /// Creates both ends of a closed connection.
    pub(crate) fn open_stack(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        let TransportState::ClosedStack(params) = &connection.transport else { return };
        let (params, flow) = (Arc::clone(params), &self.scenario.flows[connection.flow as usize]);
        let member = index - self.numbers.members(connection.flow as usize).start;
        let seeds = ["source", "sink"].map(|end| {
            Stream::named(self.seed, format_args!("flow.{}.stack.{member}.{end}", flow.stream()))
                .below(u64::MAX)
        });
        let [source, sink] = params.stack().connect(&stack::Ends { number: index, seeds });
        let payload = params.stack().sizes().payload;
        let ends = Ends { source, sink, payload, has_failed: false };
        connection.transport = TransportState::OpenStack(self.stacks.insert(ends));
    }

    /// A packet reaches the end of its connection that did not send it.
    #[inline(never)]
    pub(crate) fn deliver_to_stack(&mut self, now: Time, index: u32, packet: Packet) {
        let payload = self.shared.store.remove_with(packet.body());
        let answers = match packet.direction() {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        };
        self.act_stack(now, index, answers, |end| end.receive(now, packet.ecn(), payload));
    }

    /// Runs timers of both ends that are due.
    pub(crate) fn stack_timer(&mut self, now: Time, index: u32) {
        for direction in [Direction::Reverse, Direction::Forward] {
            self.act_stack(now, index, direction, |end| {
                if end.next_timer().is_some_and(|at| at <= now) {
                    end.on_timer(now);
                }
            });
        }
    }

    /// Lets the end that sends in `direction` act, if the connection is open: its packets leave, and its timer
    /// is armed.
    pub(crate) fn act_stack(
        &mut self,
        now: Time,
        index: u32,
        direction: Direction,
        act: impl FnOnce(&mut dyn Endpoint),
    ) {
        let connection = &self.connections[index as usize];
        let (id, hop) = (connection.id, connection.first_hop(direction));
        let TransportState::OpenStack(place) = connection.transport else { return };
        let Some(ends) = self.stacks.get_mut(place) else { return };
        let protocol = self.scenario.flows[connection.flow as usize].protocol;
        let header = Packet::new(0, id, hop, Bytes::ZERO, Ecn::NotEct, direction).carrying(protocol);
        let has_failed = ends.has_failed;
        let end = ends.sender(direction);
        act(end);
        let mut is_full = true;
        for _ in 0..MAX_BURST {
            let mut payload = Vec::new();
            let Some(datagram) = end.transmit(now, &mut payload) else {
                is_full = false;
                break;
            };
            let body = Body { sent: now, queued: now, connection: index, header: Header::Stack };
            let body = self.shared.store.insert_with(body, payload);
            let size = Bytes::new(datagram.size.max(1).into());
            self.outbox.push(header.with(body, size, datagram.ecn));
        }
        let due = end.next_timer().into_iter().chain(is_full.then_some(now)).min();
        let due = due.map(|due| due.max(now + TICK));
        let done = direction == Direction::Forward && end.is_done();
        if !has_failed && let Some(reason) = end.failure() {
            let reason = reason.to_owned();
            ends.has_failed = true;
            let flow = self.connections[index as usize].flow;
            let failures = self.failures.entry(flow);
            failures.or_insert(Failures { connections: 0, first: now, reason }).connections += 1;
        }
        self.conclude(now, index, direction, due, done);
    }
}
