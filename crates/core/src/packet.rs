//! What a discipline may know of a packet. Nothing else of it is visible to core.

use crate::units::Bytes;

/// The flow a packet belongs to: a small dense number that the world hands out and reuses.
///
/// The simulator numbers its flows; a live classifier keeps a bounded table from addresses to numbers.
/// Disciplines can therefore index per-flow state and need no hashing per packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub u32);

impl FlowId {
    /// The position of this flow in per-flow tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The ECN field of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable: congestion is signalled by dropping.
    #[default]
    NotEct,
    /// ECN-capable transport, codepoint ECT(0).
    Ect0,
    /// ECN-capable transport, codepoint ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

impl Ecn {
    /// Whether congestion can be signalled by marking.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// What a discipline may read and write of a packet.
pub trait Packet {
    /// The flow it belongs to.
    fn flow(&self) -> FlowId;
    /// Its size on the wire, headers included.
    fn size(&self) -> Bytes;
    /// Its ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to "congestion experienced". Called only when [`Ecn::is_capable`].
    fn set_ce(&mut self);
}
