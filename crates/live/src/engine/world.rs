//! What an engine needs from a world: the class and route of frames, and messages between routers.

use apportion_core::FlowSetting;
use apportion_core::aqm::sffc::Sffc;
use apportion_core::packet::FlowId;
use apportion_core::units::Time;
use apportion_linux::port::Received;
use apportion_runtime::routers::Links;

use crate::frame::Parsed;
use crate::link::Link;
use crate::packet::{Description, Packet};

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Into this link; the next entry of the table comes after it.
    Link(u32),
    /// Out by this port.
    Port(u32),
    /// It ends here: the world [receives](World::on_control) it.
    World,
}

/// Where a message between routers is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It came in by this port.
    Port(u32),
    /// It has come to the end of this link.
    Link(u32),
}

/// A message between routers.
#[derive(Debug)]
pub struct ControlFrame<'a> {
    /// Where it is.
    pub place: Place,
    /// Whether its route ends there.
    pub is_end: bool,
    /// Its bytes.
    pub frame: &'a mut [u8],
    /// The parsed bytes.
    pub parsed: &'a Parsed,
    /// Whether the checksum of its transport header is still to be made: it comes from a host of this machine.
    pub is_unfinished: bool,
}

/// A frame that the world sends.
#[derive(Debug)]
pub struct Outgoing {
    /// Its bytes.
    pub frame: Vec<u8>,
    /// What it is; the engine adds its IP header.
    pub description: Description,
    /// The place of the table of routes at which its route begins.
    pub hop: u32,
}

/// The state that queues of links share with other routers, by the number of the link. Changes to it move no packet.
#[derive(Debug)]
pub struct LinkStates<'a>(pub(super) &'a mut [Link]);

impl Links for LinkStates<'_> {
    fn reporter(&self, link: u32) -> Option<&Sffc> {
        self.0.get(link as usize).and_then(|link| link.state.reporter())
    }
    fn reporter_mut(&mut self, link: u32) -> Option<&mut Sffc> {
        self.0.get_mut(link as usize).and_then(|link| link.state.reporter_mut())
    }
}

/// A frame that came in.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The port by which it came in.
    pub port: u32,
    /// Its bytes.
    pub frame: &'a mut [u8],
    /// The parsed bytes.
    pub parsed: &'a Parsed,
    /// Whether more comes in by the port than can be moved: what matters less should go no further.
    pub port_lags: bool,
    /// Where they lie.
    pub(super) received: Received,
}

impl Arrival<'_> {
    /// The packet that it is, whose route begins at this place of the table of routes.
    #[must_use]
    pub fn packet(&self, now: Time, description: &Description, hop: u32) -> Packet {
        let Received { buffer, start, length } = self.received;
        Packet::new((buffer, start, length), description, hop, now)
    }
}

/// What to do with a frame that came in.
#[derive(Debug)]
pub enum Disposition {
    /// It is this packet, marked where it is to be: send it on its route.
    Forward(Packet),
    /// It goes no further: it was for the world itself, or has no route.
    Consume,
}

/// Classifies frames and knows their routes.
pub trait World {
    /// Says what a frame is that came in at `now`, and marks it.
    fn classify(&mut self, now: Time, arrival: Arrival<'_>) -> Disposition;

    /// What the link of this number must know of a flow before the packet that was just classified enters. Called until it
    /// gives none.
    fn poll_flow_update(&mut self) -> Option<(u32, FlowId, FlowSetting)> {
        None
    }

    /// A packet leaves by `port`, due at `now`: the last chance to change its bytes.
    fn egress(&mut self, _now: Time, _port: u32, _packet: &Packet, _frame: &mut [u8]) {}

    /// A message between routers, a packet of [`apportion_core::packet::Protocol::Control`], came in by a port or to the end of a link. Whether to
    /// forward it; it is not forwarded where its route ends.
    fn on_control(&mut self, _now: Time, _control: ControlFrame<'_>, _links: &mut LinkStates<'_>) -> bool {
        true
    }

    /// When [`on_timer`](World::on_timer) is to be called.
    fn next_timer(&self) -> Time {
        Time::MAX
    }

    /// Called at the time of [`next_timer`](World::next_timer), which must be later afterwards.
    fn on_timer(&mut self, _now: Time, _links: &mut LinkStates<'_>) {}

    /// A frame to send. Called after [`on_control`](World::on_control) and [`on_timer`](World::on_timer) until it gives none.
    /// Its route may be added to `routes`, the table.
    fn poll_transmit(&mut self, _routes: &mut Vec<Hop>) -> Option<Outgoing> {
        None
    }
}
