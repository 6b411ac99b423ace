//! Players and calls: the packets that their ends send and receive.
//!
//! A viewer's requests and the reports of a call's receiver are packets of their own on the way back: they
//! wait in queues, and are dropped and lost, like acknowledgements.

use apportion_core::packet::{Ecn, Protocol};
use apportion_core::stack::Sizes;
use apportion_core::units::{Bytes, Time};
use apportion_runtime::connections::Workload;
use apportion_runtime::media::call::REPORT_SIZE;
use apportion_runtime::media::{Emission, Media};
use apportion_runtime::outcome::MediaOutcome;
use apportion_scenario::model::{MAX_PACKET, Transport};

use crate::connection::Command;
use crate::events::Event;
use crate::packet::{Body, Direction, Header, Packet, REQUEST_PAYLOAD};
use crate::simulation::Simulation;

/// The payload of a request.
const REQUEST: Bytes = Bytes::new(REQUEST_PAYLOAD as u64);
/// A request on the wire, behind IPv4 and TCP.
const REQUEST_SIZE: Bytes = Bytes::new(40 + REQUEST_PAYLOAD as u64);

impl Simulation<'_> {
    fn media(&mut self, index: u32) -> Option<&mut Media> {
        match &mut self.connections[index as usize].workload {
            Workload::Media(of_media) => Some(&mut of_media.media),
            _ => None,
        }
    }

    /// Runs a player or a call that is due, if any is.
    pub(crate) fn media_timer(&mut self, now: Time, index: u32) {
        let mut out = Vec::new();
        let Workload::Media(of_media) = &mut self.connections[index as usize].workload else { return };
        if of_media.armed <= now {
            of_media.armed = Time::MAX;
        }
        let media = &mut of_media.media;
        if media.next_timer().is_some_and(|at| at <= now) {
            media.on_timer(now, &mut out);
        }
        for emission in out {
            self.emit(now, index, emission);
        }
        self.arm_media(now, index);
    }

    /// Schedules the next timer of a player or a call. An event that comes too early has no effect.
    fn arm_media(&mut self, now: Time, index: u32) {
        let Workload::Media(of_media) = &mut self.connections[index as usize].workload else { return };
        if let Some(at) = of_media.media.next_timer().filter(|&at| at < of_media.armed) {
            of_media.armed = at;
            self.shared.events.schedule(now, at, Event::Media(index));
        }
    }

    /// Sends a packet of one end.
    fn emit(&mut self, now: Time, index: u32, emission: Emission) {
        let (header, size, direction, protocol) = match emission {
            Emission::Request(number) => {
                let flow = self.connections[index as usize].flow;
                let (size, protocol) = match &self.scenario.flows[flow as usize].transport {
                    // A packet with a STREAM frame, like packets with data.
                    Transport::Quic(params) => ((params.header + REQUEST).min(MAX_PACKET), Protocol::Udp),
                    Transport::Stack(params) => {
                        let Sizes { packet, payload, .. } = params.stack().sizes();
                        let size = packet.saturating_sub(payload) + REQUEST;
                        (size.min(MAX_PACKET), params.stack().protocol())
                    }
                    _ => (REQUEST_SIZE, Protocol::Tcp),
                };
                (Header::SegmentRequest(number), size, Direction::Reverse, protocol)
            }
            Emission::Datagram(number, size) => {
                (Header::Rtp(number), size, Direction::Forward, Protocol::Udp)
            }
            Emission::Report(number) => {
                (Header::Rtcp(number), REPORT_SIZE, Direction::Reverse, Protocol::Udp)
            }
        };
        let connection = &self.connections[index as usize];
        let (flow, hop) = (connection.id, connection.first_hop(direction));
        let body = self.shared.store.insert(Body { sent: now, queued: now, connection: index, header });
        let packet = Packet::new(body, flow, hop, size, Ecn::NotEct, direction).carrying(protocol);
        self.inject(now, index, packet);
    }

    /// A packet of a call reaches its receiver.
    pub(crate) fn receive_rtp(&mut self, now: Time, index: u32, number: u32, sent: Time, size: Bytes) {
        if let Some(Media::Call(call)) = self.media(index) {
            call.on_datagram(now, number, sent, size);
            self.media_timer(now, index);
        }
    }

    /// A packet other than an acknowledgement, sent at `sent`, reaches the source of a connection.
    pub(crate) fn receive_feedback(&mut self, now: Time, index: u32, sent: Time, header: Header) {
        if let Header::Request = header {
            return self.answer_request(now, index, sent);
        }
        match (header, self.media(index)) {
            (Header::Rtcp(number), Some(Media::Call(call))) => call.on_report(now, number),
            (Header::SegmentRequest(number), Some(Media::Player(player))) => {
                let Some(size) = player.on_request(number) else { return };
                self.command(now, index, &[Command::Supply(size.get())]);
            }
            _ => (),
        }
    }

    /// Notes that the viewer may have more bytes in order.
    pub(crate) fn note_delivered(&mut self, now: Time, index: u32) {
        let Some(bytes) = self.delivered(index) else { return };
        if let Some(Media::Player(player)) = self.media(index) {
            player.on_delivered(now, bytes);
            self.media_timer(now, index);
        }
    }

    /// Begins the measured part.
    pub(crate) fn begin_measuring_media(&mut self, now: Time) {
        for connection in &mut self.connections {
            if let Workload::Media(of_media) = &mut connection.workload {
                of_media.media.begin_measuring(now);
            }
        }
    }

    /// The media outcome of a flow of the scenario at the end of the run.
    pub(crate) fn media_outcome(&mut self, flow: usize) -> Option<MediaOutcome> {
        let stop = self.end;
        // Short flows that start after the end of the run have no connection.
        let first = self.numbers.members(flow).next()?;
        self.media(first).map(|media| media.outcome(stop))
    }
}
