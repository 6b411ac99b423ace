//! A packet as C has it and as disciplines see it.

use apportion_core::label::Label;
use apportion_core::packet as core;
use apportion_core::packet::FlowId;
use apportion_core::units::Bytes;

use crate::status::Status;

/// What a discipline knows of a packet, and a handle by which the caller knows it again.
///
/// All zero but `size` is an ordinary datagram of flow 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    /// The caller's: a number or a pointer. It comes back unchanged.
    pub handle: u64,
    /// The flow, numbered by the caller. Disciplines keep tables up to the largest number seen, and apart at
    /// most 2^20 flows: numbers should be dense and small.
    pub flow: u32,
    /// Bytes on the wire, headers included: 1 to 65535.
    pub size: u32,
    /// The label, as `apportion_label_code` makes it; without meaning if `label_kind` is
    /// `APPORTION_LABEL_KIND_NONE`.
    pub label: u32,
    /// An `apportion_ecn`. A queue that marks the packet sets it to `APPORTION_ECN_CE`.
    pub ecn: u8,
    /// An `apportion_protocol`.
    pub protocol: u8,
    /// An `apportion_colour`.
    pub colour: u8,
    /// An `apportion_label_kind`.
    pub label_kind: u8,
}

/// The ECN field of an IP header (RFC 3168 section 5), as it is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Ecn {
    /// Not ECN-capable: such packets are dropped and never marked.
    NotEct = 0,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 1,
    /// ECN-capable, codepoint ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// What a packet says it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Protocol {
    /// UDP and whatever else carries data without regard for congestion.
    Udp = 0,
    /// TCP.
    Tcp = 1,
    /// Messages between routers.
    Control = 2,
}

/// The drop precedence that a marker gave a packet (RFC 2697 section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Colour {
    /// No marker has seen it. Treated as out of profile.
    Unmarked = 0,
    /// In profile.
    Green = 1,
    /// Above the committed rate, within the peak rate.
    Yellow = 2,
    /// Out of profile.
    Red = 3,
}

/// What the label of a packet says. A packet has at most one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum LabelKind {
    /// There is none.
    None = 0,
    /// Tickets of the packet.
    Tickets = 1,
    /// Tickets on an acknowledgement, about the data that it acknowledges.
    AckTickets = 2,
    /// The rate of its flow in bits per second, for a weight of 1.
    Rate = 3,
}

/// The code of the 17-bit label nearest to `value`: tickets, or bits per second. 0 for what is negative or
/// not a number.
#[unsafe(no_mangle)]
pub extern "C" fn apportion_label_code(value: f64) -> u32 {
    Label::new(value).code()
}

/// What the label with this code says: tickets, or bits per second. Bits above the 17th are ignored.
#[unsafe(no_mangle)]
pub extern "C" fn apportion_label_value(code: u32) -> f64 {
    Label::from_code(code).value()
}

/// The largest packet, as IPv4 allows (RFC 791 section 3.1).
const MAX_SIZE: u32 = u16::MAX as u32;

/// A [`Packet`] whose values are all valid, so that disciplines need no check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checked {
    handle: u64,
    flow: FlowId,
    size: u32,
    label: Label,
    ecn: core::Ecn,
    protocol: core::Protocol,
    colour: core::Colour,
    label_kind: Option<core::LabelKind>,
}

impl TryFrom<&Packet> for Checked {
    type Error = Status;

    #[inline]
    fn try_from(packet: &Packet) -> Result<Self, Status> {
        if packet.size.wrapping_sub(1) >= MAX_SIZE {
            return Err(Status::ErrorSize);
        }
        let label = Label::from_code(packet.label);
        let ecn = match packet.ecn {
            0 => core::Ecn::NotEct,
            1 => core::Ecn::Ect1,
            2 => core::Ecn::Ect0,
            3 => core::Ecn::Ce,
            _ => return Err(Status::ErrorCode),
        };
        let protocol = match packet.protocol {
            0 => core::Protocol::Udp,
            1 => core::Protocol::Tcp,
            2 => core::Protocol::Control,
            _ => return Err(Status::ErrorCode),
        };
        let colour = match packet.colour {
            0 => core::Colour::Unmarked,
            1 => core::Colour::Green,
            2 => core::Colour::Yellow,
            3 => core::Colour::Red,
            _ => return Err(Status::ErrorCode),
        };
        let label_kind = match packet.label_kind {
            0 => None,
            1 => Some(core::LabelKind::Tickets),
            2 => Some(core::LabelKind::AckTickets),
            3 => Some(core::LabelKind::Rate),
            _ => return Err(Status::ErrorCode),
        };
        if label_kind.is_some() && label.code() != packet.label {
            return Err(Status::ErrorCode);
        }
        let (handle, flow, size) = (packet.handle, FlowId(packet.flow), packet.size);
        Ok(Self { handle, flow, size, label, ecn, protocol, colour, label_kind })
    }
}

impl From<Checked> for Packet {
    #[inline]
    fn from(packet: Checked) -> Self {
        let ecn = match packet.ecn {
            core::Ecn::NotEct => Ecn::NotEct,
            core::Ecn::Ect1 => Ecn::Ect1,
            core::Ecn::Ect0 => Ecn::Ect0,
            core::Ecn::Ce => Ecn::Ce,
        };
        let protocol = match packet.protocol {
            core::Protocol::Udp => Protocol::Udp,
            core::Protocol::Tcp => Protocol::Tcp,
            core::Protocol::Control => Protocol::Control,
        };
        let colour = match packet.colour {
            core::Colour::Unmarked => Colour::Unmarked,
            core::Colour::Green => Colour::Green,
            core::Colour::Yellow => Colour::Yellow,
            core::Colour::Red => Colour::Red,
        };
        let label_kind = match packet.label_kind {
            None => LabelKind::None,
            Some(core::LabelKind::Tickets) => LabelKind::Tickets,
            Some(core::LabelKind::AckTickets) => LabelKind::AckTickets,
            Some(core::LabelKind::Rate) => LabelKind::Rate,
        };
        Self {
            handle: packet.handle,
            flow: packet.flow.0,
            size: packet.size,
            label: packet.label.code(),
            ecn: ecn as u8,
            protocol: protocol as u8,
            colour: colour as u8,
            label_kind: label_kind as u8,
        }
    }
}

impl core::Packet for Checked {
    #[inline]
    fn flow(&self) -> FlowId {
        self.flow
    }
    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    #[inline]
    fn protocol(&self) -> core::Protocol {
        self.protocol
    }
    #[inline]
    fn ecn(&self) -> core::Ecn {
        self.ecn
    }
    #[inline]
    fn set_ce(&mut self) {
        self.ecn = core::Ecn::Ce;
    }
    #[inline]
    fn colour(&self) -> core::Colour {
        self.colour
    }
    #[inline]
    fn set_colour(&mut self, colour: core::Colour) {
        self.colour = colour;
    }
    #[inline]
    fn label(&self, kind: core::LabelKind) -> Option<Label> {
        (self.label_kind == Some(kind)).then_some(self.label)
    }
    #[inline]
    fn set_label(&mut self, kind: core::LabelKind, label: Label) {
        (self.label_kind, self.label) = (Some(kind), label);
    }
    #[inline]
    fn clear_label(&mut self, kind: core::LabelKind) {
        if self.label_kind == Some(kind) {
            (self.label_kind, self.label) = (None, Label::ZERO);
        }
    }
}

/// What every packet in a queue takes.
const _: () = assert!(size_of::<Packet>() == 24 && size_of::<Option<Checked>>() == 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_and_no_other_is_taken() {
        let taken = |packet: Packet| Checked::try_from(&packet).map(Packet::from);
        let plain = Packet { size: 1, ..Packet::default() };
        for code in 0..=u8::MAX {
            for (packet, codes) in [
                (Packet { ecn: code, ..plain }, 4),
                (Packet { protocol: code, ..plain }, 3),
                (Packet { colour: code, ..plain }, 4),
                (Packet { label_kind: code, label: 5, ..plain }, 4),
            ] {
                let expected = if code < codes { Ok(packet) } else { Err(Status::ErrorCode) };
                assert_eq!(taken(packet), expected);
            }
        }
        let labelled = Packet { label_kind: LabelKind::Rate as u8, label: (1 << 17) - 1, ..plain };
        assert_eq!(taken(labelled), Ok(labelled));
        assert_eq!(taken(Packet { label: 1 << 17, ..labelled }), Err(Status::ErrorCode));
    }

    #[test]
    fn a_packet_has_a_size() {
        let sized = |size| Checked::try_from(&Packet { size, ..Packet::default() }).map(|_| ());
        assert_eq!((sized(1), sized(65_535)), (Ok(()), Ok(())));
        assert_eq!((sized(0), sized(65_536)), (Err(Status::ErrorSize), Err(Status::ErrorSize)));
        assert_eq!(sized(u32::MAX), Err(Status::ErrorSize));
    }

    #[test]
    fn labels_are_rounded_as_in_a_header() {
        assert_eq!(apportion_label_value(apportion_label_code(4_096.0)), 4_096.0);
        assert_eq!(apportion_label_code(f64::NAN), 0);
    }
}
