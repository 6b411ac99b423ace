//! Requests common to all transports, and QUIC connections during a run.

use std::sync::Arc;

use apportion_core::Packet as _;
use apportion_core::packet::{Ecn, Protocol};
use apportion_core::units::{Bytes, Time};

use crate::connection::{Command, Quic, TransportState};
use crate::outlet::Outlet;
use crate::packet::{Direction, Header, Packet};
use crate::quic;
use crate::simulation::Simulation;

impl Simulation<'_> {
    /// Executes the commands of a connection's application in turn, if the connection is open.
    pub(crate) fn command(&mut self, now: Time, index: u32, commands: &[Command]) {
        if let TransportState::OpenQuic(_) = self.connections[index as usize].transport {
            return self.act_quic(now, index, Direction::Forward, |quic, outlet| {
                for &command in commands {
                    match command {
                        Command::Start => quic.sender.start(now, outlet),
                        Command::Supply(bytes) => quic.sender.supply(now, bytes, outlet),
                        Command::SupplyUnlimited => quic.sender.supply_unlimited(now, outlet),
                        Command::Close => quic.sender.close(),
                    }
                }
            });
        }
        if let TransportState::OpenStack(_) = self.connections[index as usize].transport {
            self.act_stack(now, index, Direction::Forward, |source| {
                commands.iter().for_each(|&command| source.command(now, command));
            });
            if commands.contains(&Command::Start) {
                self.act_stack(now, index, Direction::Reverse, |sink| sink.command(now, Command::Start));
            }
            return;
        }
        self.act(now, index, Direction::Forward, None, |tcp, outlet| {
            for &command in commands {
                match command {
                    Command::Start => tcp.sender.start(now, outlet),
                    Command::Supply(bytes) => tcp.sender.supply(now, bytes, outlet),
                    Command::SupplyUnlimited => tcp.sender.supply_unlimited(now, outlet),
                    Command::Close => tcp.sender.close(now, outlet),
                }
            }
        });
    }

    /// The bytes in order at the receiver of a connection, if it is open and not of datagrams.
    pub(crate) fn delivered(&self, index: u32) -> Option<u64> {
        match self.connections[index as usize].transport {
            TransportState::Open(place) => Some(self.tcps.get(place)?.receiver.delivered()),
            TransportState::OpenQuic(place) => Some(self.quics.get(place)?.receiver.delivered()),
            TransportState::OpenStack(place) => Some(self.stacks.get(place)?.sink.delivered()),
            TransportState::Closed(_)
            | TransportState::ClosedQuic(_)
            | TransportState::ClosedStack(_)
            | TransportState::Ended(_)
            | TransportState::Udp { .. } => None,
        }
    }

    /// Creates both ends of a closed QUIC connection.
    pub(crate) fn open_quic(&mut self, index: u32) {
        let connection = &mut self.connections[index as usize];
        if let TransportState::ClosedQuic(params) = &connection.transport {
            let sender = quic::Sender::new(Arc::clone(params));
            let receiver = quic::Receiver::new(Arc::clone(params));
            let place = self.quics.insert(Box::new(Quic { sender, receiver }));
            connection.transport = TransportState::OpenQuic(place);
        }
    }

    /// Ends a connection whose data have all been acknowledged, and frees its state for the next one.
    pub(crate) fn end(&mut self, index: u32) {
        let totals = Box::new(self.totals(index));
        let connection = &mut self.connections[index as usize];
        match connection.transport {
            TransportState::Open(place) => self.tcps.remove(place),
            TransportState::OpenQuic(place) => self.quics.remove(place),
            TransportState::OpenStack(place) => self.stacks.remove(place),
            _ => return,
        }
        connection.transport = TransportState::Ended(totals);
    }

    /// A packet of QUIC reaches the sink of its flow.
    pub(crate) fn deliver_quic_to_sink(
        &mut self,
        now: Time,
        index: u32,
        sent: &quic::Packet,
        packet: Packet,
    ) {
        self.act_quic(now, index, Direction::Reverse, |quic, outlet| {
            quic.receiver.on_packet(now, sent, packet.ecn(), outlet);
        });
    }

    /// A packet of QUIC reaches the source of its flow.
    pub(crate) fn deliver_quic_to_source(&mut self, now: Time, index: u32, packet: Packet) {
        let Header::Quic(sent) = self.shared.store.get(packet.body()).header else { return };
        let more = match sent {
            quic::Packet::Ack(ack) if ack.has_more() => self.shared.store.remove_ack(packet.body()),
            _ => {
                self.shared.store.remove(packet.body());
                Box::default()
            }
        };
        if let quic::Packet::Ack(ack) = &sent
            && !self.marks.is_empty()
            && let Some(Some(marks)) = self.marks.get_mut(packet.flow().index())
            && let TransportState::OpenQuic(place) = self.connections[index as usize].transport
            && let Some(quic) = self.quics.get(place)
        {
            marks.acknowledged(now, &packet, quic.sender.newly_acknowledged(ack, &more));
        }
        self.act_quic(now, index, Direction::Forward, |quic, outlet| {
            quic.sender.on_packet(now, &sent, &more, outlet);
        });
    }

    /// Runs timers of a QUIC connection that are due.
    pub(crate) fn quic_timer(&mut self, now: Time, index: u32) {
        self.act_quic(now, index, Direction::Reverse, |quic, outlet| quic.receiver.on_timer(now, outlet));
        self.act_quic(now, index, Direction::Forward, |quic, outlet| quic.sender.on_timer(now, outlet));
    }

    /// Acts as [`act`](Self::act) does, for QUIC.
    fn act_quic(
        &mut self,
        now: Time,
        index: u32,
        direction: Direction,
        act: impl FnOnce(&mut Quic, &mut Outlet<'_>),
    ) {
        let connection = &self.connections[index as usize];
        let (id, hop) = (connection.id, connection.first_hop(direction));
        let TransportState::OpenQuic(place) = connection.transport else { return };
        let Some(quic) = self.quics.get_mut(place) else { return };
        let header = Packet::new(0, id, hop, Bytes::ZERO, Ecn::NotEct, direction).carrying(Protocol::Udp);
        let (store, packets) = (&mut self.shared.store, &mut self.outbox);
        act(quic, &mut Outlet { now, connection: index, header, spare: None, store, packets });
        let (due, done) = match direction {
            Direction::Forward => (quic.sender.next_timer(), quic.sender.is_done()),
            Direction::Reverse => (quic.receiver.next_timer(), false),
        };
        self.conclude(now, index, direction, due, done);
    }
}
