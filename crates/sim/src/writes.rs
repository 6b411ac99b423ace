//! Writes of sources, and send buffers that block them.

use apportion_core::packet::Ecn;
use apportion_core::units::{Bytes, Time};
use apportion_runtime::connections::Workload;
use apportion_runtime::source::Write;

use crate::connection::{Command, Connection, TransportState};
use crate::events::Event;
use crate::packet::{Body, Direction, Header, Packet};
use crate::simulation::Simulation;

impl Simulation<'_> {
    /// Asks the source of a connection for its next write, at `now` or later.
    pub(crate) fn next_write(&mut self, now: Time, index: u32) {
        let Connection { workload, id, .. } = &mut self.connections[index as usize];
        let Workload::Writes(writes) = workload else { return };
        writes.pending = writes.generator.next();
        // An application that was blocked does not make up for the time.
        while writes.pending.is_some_and(|write| write.at < now) {
            self.shared.counters.skipped(*id);
            writes.pending = writes.generator.next();
        }
        if let Some(write) = &writes.pending {
            self.shared.events.schedule(now, write.at, Event::Write(index));
        }
    }

    /// The time of a connection's pending write has come.
    pub(crate) fn write(&mut self, now: Time, index: u32) {
        let connection = &mut self.connections[index as usize];
        if let Workload::Web(web) = connection.workload {
            return self.wake_users(now, index, web);
        }
        let Workload::Writes(writes) = &mut connection.workload else { return };
        // A rate of zero cancels the pending write and leaves its event behind.
        let due = writes.pending.take_if(|write| write.at == now && !writes.is_blocked);
        let Some(Write { size, .. }) = due else { return };
        if let TransportState::Udp { packet, ecn } = connection.transport {
            self.send_datagrams(now, index, size, (packet, ecn));
            return self.next_write(now, index);
        }
        self.write_stream(now, index, size);
    }

    /// Continues a write that waits, if an acknowledgement has made room.
    #[inline(never)]
    pub(crate) fn unblock(&mut self, now: Time, index: u32) {
        if let Workload::Writes(writes) = &mut self.connections[index as usize].workload
            && std::mem::take(&mut writes.is_blocked)
            && let Some(Write { size, .. }) = writes.pending.take()
        {
            self.write_stream(now, index, size);
        }
    }

    /// Writes `size` bytes to TCP or QUIC, and waits with what the send buffer cannot hold.
    fn write_stream(&mut self, now: Time, index: u32, size: Bytes) {
        let room = match self.connections[index as usize].transport {
            TransportState::Open(place) => self.tcps.get(place).map_or(u64::MAX, |tcp| tcp.sender.room()),
            _ => u64::MAX,
        };
        let (fits, rest) = (size.get().min(room), size.get().saturating_sub(room));
        if fits > 0 {
            self.command(now, index, &[Command::Supply(fits)]);
        }
        if rest == 0 {
            return self.next_write(now, index);
        }
        if let Workload::Writes(writes) = &mut self.connections[index as usize].workload {
            writes.pending = Some(Write { at: now, size: Bytes::new(rest) });
            writes.is_blocked = true;
        }
    }

    fn send_datagrams(&mut self, now: Time, index: u32, size: Bytes, (largest, ecn): (Bytes, Ecn)) {
        let connection = &self.connections[index as usize];
        let (flow, hop) = (connection.id, connection.first_hop(Direction::Forward));
        let mut left = size;
        while left > Bytes::ZERO {
            let part = left.min(largest);
            let body = Body { sent: now, queued: now, connection: index, header: Header::Udp };
            let body = self.shared.store.insert(body);
            let packet = Packet::new(body, flow, hop, part, ecn, Direction::Forward);
            self.inject(now, index, packet);
            left -= part;
        }
    }
}
