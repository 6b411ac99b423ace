//! The usual packets of TCP: data that arrive in order and are acknowledged at once, and ACKs of new data
//! while nothing is missing.
//!
//! The ends of the connection decide ([`Receiver::answer`](crate::tcp::Receiver::answer),
//! [`Sender::take_predicted`](crate::tcp::Sender)), and act as for any packet. Only the steps around them are
//! shorter: the answer replaces the body of the received packet and goes to its first link at once, and
//! events that never follow such a packet are not tested for: the end of the connection, the arrival of a
//! file, additions by hosts ([`fast_path`](crate::fast_path) has the conditions).

use apportion_core::Packet as _;
use apportion_core::packet::Protocol;
use apportion_core::units::Time;

use crate::connection::{Connection, TransportState};
use crate::events::Event;
use crate::fast_path::may_answer_in_place;
use crate::packet::{Body, Direction, Header, Packet};
use crate::simulation::Simulation;

impl Simulation<'_> {
    /// A packet reaches the sink of a greedy source. Returns whether it was the next segment and is answered.
    #[inline(always)]
    pub(crate) fn answer_in_place(&mut self, now: Time, index: u32, packet: Packet) -> bool {
        let connection = &self.connections[index as usize];
        let (id, back) = (connection.id, connection.back);
        let Some(place) = may_answer_in_place(connection) else { return false };
        let body = self.shared.store.get_mut(packet.body());
        let (Header::Tcp(segment), Some(tcp)) = (&body.header, self.tcps.get_mut(place)) else {
            return false;
        };
        let Some((ack, size, ecn)) = tcp.receiver.answer(now, segment, packet.ecn()) else { return false };
        *body = Body { sent: now, queued: now, connection: index, header: Header::Tcp(ack) };
        let answer =
            Packet::new(packet.body(), id, back, size, ecn, Direction::Reverse).carrying(Protocol::Tcp);
        let link = self.routes[back as usize];
        self.links[link as usize].receive(now, answer, &mut self.shared);
        true
    }

    /// A packet reaches a greedy source. Returns whether it was an ACK of new data while nothing is missing,
    /// and the next data are sent.
    #[inline(always)]
    pub(crate) fn advance_in_place(&mut self, now: Time, index: u32, packet: Packet) -> bool {
        let connection = &mut self.connections[index as usize];
        let Connection { id, route, transport: TransportState::Open(place), armed, .. } = *connection else {
            return false;
        };
        let header = &self.shared.store.get(packet.body()).header;
        let (Header::Tcp(ack), Some(tcp)) = (header, self.tcps.get_mut(place)) else { return false };
        let Some(limit) = tcp.sender.take_predicted(now, ack) else { return false };
        if let Some(due) = tcp.sender.next_timer().filter(|&due| due < armed) {
            connection.armed = due;
            self.shared.events.schedule(now, due, Event::Timer(index));
        }
        let link = self.routes[route as usize];
        let mut spare = Some(packet.body());
        while let Some((segment, size, ecn)) = tcp.sender.next_new(now, limit) {
            let body = Body { sent: now, queued: now, connection: index, header: Header::Tcp(segment) };
            let body = self.shared.store.reuse(spare.take(), body);
            let data = Packet::new(body, id, route, size, ecn, Direction::Forward).carrying(Protocol::Tcp);
            self.shared.counters.sent(id, size);
            self.links[link as usize].receive(now, data, &mut self.shared);
        }
        if let Some(body) = spare {
            self.shared.store.remove(body);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use apportion_runtime::outcome::Outcome;
    use apportion_scenario::model::Scenario;
    use apportion_testing::net::net;

    use super::*;
    use crate::build::Detail;

    /// Losses, marks, sources that end, and each kind of TCP over one full link.
    const TEXT: &str = "
        stop = 6s
        [topology] kind = dumbbell, pairs = 2, access = { rate = 100Mbit, delay = 1ms },
            bottleneck = { rate = 10Mbit, delay = 9ms,
                queue = { kind = red, limit = 60p, min_th = 5p, max_th = 30p, ecn = true } }
        [defaults.flow] jitter = 0s
        flow at-once: l1 -> r1, count = 3, tcp = ns2-2000
        flow sack: l1 -> r1, tcp = { profile = rfc, delayed_ack = off }
        flow delayed: l1 -> r1, tcp = reno-1999, stop = 4s
        flow marked: l1 -> r1, tcp = { profile = ns2-235, ecn = true }
        flow recorded: l2 -> r2, tcp = linux
    ";

    fn outcome(scenario: &Scenario, fast: bool) -> Outcome {
        let mut simulation = Simulation::new(scenario, 1, Detail::Full, &mut |_| None).unwrap();
        assert!(simulation.answers_in_place);
        simulation.answers_in_place = fast;
        assert!(simulation.run(&AtomicBool::new(false)));
        simulation.outcome()
    }

    #[test]
    fn answers_in_place_give_what_others_give() {
        let suite =
            apportion_scenario::load(&net(TEXT), Path::new("x"), &[], &|path| std::fs::read(path)).unwrap();
        let scenario = &suite.points[0].scenario;
        let [fast, slow] = [true, false].map(|fast| outcome(scenario, fast));
        assert_eq!(serde_json::to_string(&fast).unwrap(), serde_json::to_string(&slow).unwrap());
        assert!(fast.flows.iter().all(|flow| flow.sent.packets.get() > 50), "{:?}", fast.flows);
    }
}
