//! The interface between an engine and its world: the class and route of frames, and messages between
//! routers.

use apportion_core::FlowSetting;
use apportion_core::aqm::sffc::Sffc;
use apportion_core::packet::FlowId;
use apportion_core::units::Time;
use apportion_linux::port::Received;
use apportion_runtime::outcome::Count;
use apportion_runtime::routers::Links;

use crate::frame::Parsed;
use crate::link::Link;
use crate::packet::{Description, Packet};

/// A hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hop {
    /// Into this link; the next entry of the table comes after it.
    Link(u32),
    /// Out by this port.
    Port(u32),
    /// The end of the route: the world [receives](World::on_control) the packet.
    World,
}

/// Place of a message between routers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// It entered by this port.
    Port(u32),
    /// It has reached the end of this link.
    Link(u32),
}

/// A message between routers.
#[derive(Debug)]
pub struct ControlFrame<'a> {
    /// Place of the message.
    pub place: Place,
    /// Whether its route ends there.
    pub is_end: bool,
    /// The bytes of the frame.
    pub frame: &'a mut [u8],
    /// The parsed frame.
    pub parsed: &'a Parsed,
    /// Whether its transport checksum is not computed yet, because it comes from a host of this machine.
    pub is_unfinished: bool,
}

/// A frame that the world sends.
#[derive(Debug)]
pub struct Outgoing {
    /// The bytes of the frame.
    pub frame: Vec<u8>,
    /// Classification of the message; the engine adds the IP header.
    pub description: Description,
    /// Start of its route in the table of routes.
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
    fn counts(&self, link: u32) -> Option<(Count, u64)> {
        self.0.get(link as usize).map(|link| link.state.sent_and_dropped())
    }
}

/// A frame that entered.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The port by which it entered.
    pub port: u32,
    /// The bytes of the frame.
    pub frame: &'a mut [u8],
    /// The parsed frame.
    pub parsed: &'a Parsed,
    /// Whether frames enter by the port faster than they can be moved: the world should then consume less
    /// important ones.
    pub port_lags: bool,
    /// Place of the frame.
    pub(super) received: Received,
}

impl Arrival<'_> {
    /// The packet of this frame, whose route begins at `hop` of the table of routes.
    #[must_use]
    pub fn packet(&self, now: Time, description: &Description, hop: u32) -> Packet {
        let Received { buffer, start, length } = self.received;
        Packet::new((buffer, start, length), description, hop, now)
    }
}

/// What the engine does with a frame that entered.
#[derive(Debug)]
pub enum Disposition {
    /// Sends this packet on its route; the world has marked its frame where needed.
    Forward(Packet),
    /// Drops the frame: it was for the world itself, or has no route.
    Consume,
}

/// Classifies frames and knows their routes.
pub trait World {
    /// Classifies a frame that entered at `now`, and marks it.
    fn classify(&mut self, now: Time, arrival: Arrival<'_>) -> Disposition;

    /// A setting that the link of this number must apply before the packet that was just classified enters.
    /// Called until it returns none.
    fn poll_flow_update(&mut self) -> Option<(u32, FlowId, FlowSetting)> {
        None
    }

    /// A packet leaves by `port`, due at `now`: the last chance to edit its bytes.
    fn egress(&mut self, _now: Time, _port: u32, _packet: &Packet, _frame: &mut [u8]) {}

    /// A message between routers, a packet of [`apportion_core::packet::Protocol::Control`], entered by a
    /// port or reached the end of a link. Returns whether to forward it; it is not forwarded where its route
    /// ends.
    fn on_control(&mut self, _now: Time, _control: ControlFrame<'_>, _links: &mut LinkStates<'_>) -> bool {
        true
    }

    /// Time to call [`on_timer`](World::on_timer).
    fn next_timer(&self) -> Time {
        Time::MAX
    }

    /// Called at the time of [`next_timer`](World::next_timer), which must be later afterwards.
    fn on_timer(&mut self, _now: Time, _links: &mut LinkStates<'_>) {}

    /// A frame to send. Called after [`on_control`](World::on_control) and [`on_timer`](World::on_timer)
    /// until it returns none. Its route may be added to `routes`, the table.
    fn poll_transmit(&mut self, _routes: &mut Vec<Hop>) -> Option<Outgoing> {
        None
    }
}
