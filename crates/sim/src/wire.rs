//! Packets between the ends of a link.

use apportion_core::units::Time;

use crate::packet::Packet;

/// A packet on a wire.
#[derive(Clone, Copy, Debug)]
pub struct OnWire {
    /// When its transmission began.
    pub begun: Time,
    /// When it arrives.
    pub at: Time,
    /// It.
    pub packet: Packet,
}

/// A packet whose transmission over `link` has begun.
// In this order, so that it is copied by whole words.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HandedOver {
    /// It.
    pub sent: OnWire,
    /// The link.
    pub link: u32,
}
