//! Packets as C passes them and as disciplines see them.

use std::mem::offset_of;
use std::num::NonZeroU32;

use apportion_core::label::Label;
use apportion_core::packet as core;
use apportion_core::packet::FlowId;
use apportion_core::units::Bytes;

use crate::status::Status;

/// The fields of a packet that a discipline reads, and a handle by which the caller recognizes the packet.
///
/// A packet with all fields zero except `size` is an ordinary datagram of flow 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Packet {
    /// The caller's handle: a number or a pointer. The queue returns it unchanged.
    pub handle: u64,
    /// The flow, numbered by the caller. Disciplines keep tables up to the largest number seen, and
    /// distinguish at most 2^20 flows: numbers should be dense and small.
    pub flow: u32,
    /// Size on the wire in bytes, including headers: 1 to 65535.
    pub size: u32,
    /// The label, as encoded by `apportion_label_code`; ignored if `label_kind` is
    /// `APPORTION_LABEL_KIND_NONE`.
    pub label: u32,
    /// The ECN codepoint, an `apportion_ecn`. A queue that marks the packet sets it to `APPORTION_ECN_CE`.
    pub ecn: u8,
    /// The protocol, an `apportion_protocol`.
    pub protocol: u8,
    /// The drop precedence, an `apportion_colour`.
    pub colour: u8,
    /// The kind of the label, an `apportion_label_kind`.
    pub label_kind: u8,
}

/// The ECN field of an IP header (RFC 3168 section 5), with the values it has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Ecn {
    /// Not ECN-capable: the packet is dropped and never marked.
    NotEct = 0,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 1,
    /// ECN-capable, codepoint ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

/// The protocol that a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Protocol {
    /// UDP and any other data traffic without congestion control.
    Udp = 0,
    /// TCP.
    Tcp = 1,
    /// Routing protocol messages.
    Control = 2,
}

/// The drop precedence that a marker gave a packet (RFC 2697 section 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Colour {
    /// No marker has seen the packet. Treated as out of profile.
    Unmarked = 0,
    /// In profile.
    Green = 1,
    /// Above the committed rate, within the peak rate.
    Yellow = 2,
    /// Out of profile.
    Red = 3,
}

/// The kind of a packet's label. A packet has at most one label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum LabelKind {
    /// No label.
    None = 0,
    /// Tickets of the packet.
    Tickets = 1,
    /// Tickets on an ACK, for the data that it acknowledges.
    AckTickets = 2,
    /// The rate of the flow in bits per second, for a weight of 1.
    Rate = 3,
    /// The value of the packet.
    Value = 4,
}

/// Returns the code of the 17-bit label nearest to `value`: tickets, or bits per second. Returns 0 if `value`
/// is negative or not a number.
#[unsafe(no_mangle)]
pub extern "C" fn apportion_label_code(value: f64) -> u32 {
    Label::new(value).code()
}

/// Returns the value of the label with this code: tickets, or bits per second. Bits above the 17th are
/// ignored.
#[unsafe(no_mangle)]
pub extern "C" fn apportion_label_value(code: u32) -> f64 {
    Label::from_code(code).value()
}

/// The largest packet that IPv4 allows (RFC 791 section 3.1), in bytes.
const MAX_SIZE: u32 = u16::MAX as u32;

/// A [`Packet`] whose values are all valid, so that disciplines need no check.
///
/// The layout is that of [`Packet`], so that one converts to the other without taking the fields apart and
/// putting them together again: wide loads would wait for narrow stores, which costs as much as a FIFO.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Checked {
    handle: u64,
    flow: u32,
    /// Never zero, so that an `Option` of this type takes no more space.
    size: NonZeroU32,
    label: u32,
    codes: [u8; 4],
}

/// [`Packet`] and [`Checked`] have the same layout.
const _: () = {
    assert!(size_of::<Packet>() == size_of::<Checked>() && align_of::<Packet>() == align_of::<Checked>());
    assert!(offset_of!(Packet, handle) == offset_of!(Checked, handle));
    assert!(offset_of!(Packet, flow) == offset_of!(Checked, flow));
    assert!(offset_of!(Packet, size) == offset_of!(Checked, size));
    assert!(offset_of!(Packet, label) == offset_of!(Checked, label));
    let codes = offset_of!(Checked, codes);
    assert!(offset_of!(Packet, ecn) == codes + Code::Ecn as usize);
    assert!(offset_of!(Packet, protocol) == codes + Code::Protocol as usize);
    assert!(offset_of!(Packet, colour) == codes + Code::Colour as usize);
    assert!(offset_of!(Packet, label_kind) == codes + Code::LabelKind as usize);
};

/// The position of a code in its enumeration.
#[derive(Clone, Copy)]
enum Code {
    Ecn,
    Protocol,
    Colour,
    LabelKind,
}

impl Checked {
    /// Returns `packet` itself if all its values are valid. The copy into a queue then reads from where C
    /// wrote the packet: a copy made here in narrow stores would stall the wide load.
    ///
    /// # Errors
    /// The kind of the value that is not valid.
    #[inline]
    pub(crate) fn check(packet: &Packet) -> Result<&Self, Status> {
        let Packet { size, label, ecn, protocol, colour, label_kind, .. } = *packet;
        if size == 0 || size > MAX_SIZE {
            return Err(Status::ErrorSize);
        }
        // The ECN codepoint, the protocol and the colour are each below 4, the kind of label below 8 ...
        let are_low = u32::from_ne_bytes([ecn, protocol, colour, label_kind >> 1]) & 0xfcfc_fcfc == 0;
        let has_label = label_kind != LabelKind::None as u8;
        // ... and the protocol is below 3, the kind below 5.
        let are_codes =
            are_low && protocol <= Protocol::Control as u8 && label_kind <= LabelKind::Value as u8;
        if !are_codes || has_label && label >> Label::BITS != 0 {
            return Err(Status::ErrorCode);
        }
        // SAFETY: the layouts are the same, as asserted above, and the only value of a `Packet` that is
        // invalid for a `Checked` is a size of zero.
        Ok(unsafe { &*std::ptr::from_ref(packet).cast::<Self>() })
    }

    #[inline]
    const fn code(&self, of: Code) -> u8 {
        self.codes[of as usize]
    }
    #[inline]
    const fn set_code(&mut self, of: Code, code: u8) {
        self.codes[of as usize] = code;
    }
}

impl From<Checked> for Packet {
    #[inline]
    fn from(packet: Checked) -> Self {
        // SAFETY: the layouts are the same, as asserted above, and a `Packet` may have any value.
        unsafe { std::mem::transmute::<Checked, Self>(packet) }
    }
}

/// The code of a kind of label.
const fn code_of(kind: core::LabelKind) -> u8 {
    match kind {
        core::LabelKind::Tickets => LabelKind::Tickets as u8,
        core::LabelKind::AckTickets => LabelKind::AckTickets as u8,
        core::LabelKind::Rate => LabelKind::Rate as u8,
        core::LabelKind::Value => LabelKind::Value as u8,
    }
}

impl core::Packet for Checked {
    #[inline]
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    #[inline]
    fn size(&self) -> Bytes {
        Bytes::new(u64::from(self.size.get()))
    }
    #[inline]
    fn protocol(&self) -> core::Protocol {
        match self.code(Code::Protocol) {
            1 => core::Protocol::Tcp,
            2 => core::Protocol::Control,
            _ => core::Protocol::Udp,
        }
    }
    #[inline]
    fn ecn(&self) -> core::Ecn {
        match self.code(Code::Ecn) {
            1 => core::Ecn::Ect1,
            2 => core::Ecn::Ect0,
            3 => core::Ecn::Ce,
            _ => core::Ecn::NotEct,
        }
    }
    #[inline]
    fn set_ce(&mut self) {
        self.set_code(Code::Ecn, Ecn::Ce as u8);
    }
    #[inline]
    fn colour(&self) -> core::Colour {
        match self.code(Code::Colour) {
            1 => core::Colour::Green,
            2 => core::Colour::Yellow,
            3 => core::Colour::Red,
            _ => core::Colour::Unmarked,
        }
    }
    #[inline]
    fn set_colour(&mut self, colour: core::Colour) {
        let code = match colour {
            core::Colour::Unmarked => Colour::Unmarked,
            core::Colour::Green => Colour::Green,
            core::Colour::Yellow => Colour::Yellow,
            core::Colour::Red => Colour::Red,
        };
        self.set_code(Code::Colour, code as u8);
    }
    #[inline]
    fn label(&self, kind: core::LabelKind) -> Option<Label> {
        (self.code(Code::LabelKind) == code_of(kind)).then(|| Label::from_code(self.label))
    }
    #[inline]
    fn set_label(&mut self, kind: core::LabelKind, label: Label) {
        self.set_code(Code::LabelKind, code_of(kind));
        self.label = label.code();
    }
    #[inline]
    fn clear_label(&mut self, kind: core::LabelKind) {
        if self.code(Code::LabelKind) == code_of(kind) {
            self.set_code(Code::LabelKind, LabelKind::None as u8);
            self.label = 0;
        }
    }
}

/// The memory that each packet in a queue takes, in bytes.
const _: () = assert!(size_of::<Packet>() == 24 && size_of::<Option<Checked>>() == 24);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_comes_back_and_no_other_is_taken() {
        let taken = |packet: Packet| Checked::check(&packet).map(|packet| Packet::from(*packet));
        let plain = Packet { size: 1, ..Packet::default() };
        for code in 0..=u8::MAX {
            for (packet, codes) in [
                (Packet { ecn: code, ..plain }, 4),
                (Packet { protocol: code, ..plain }, 3),
                (Packet { colour: code, ..plain }, 4),
                (Packet { label_kind: code, label: 5, ..plain }, 5),
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
    fn disciplines_read_what_c_wrote() {
        use apportion_core::Packet as _;
        let read = |packet: Packet| *Checked::check(&packet).map_err(|status| format!("{status:?}")).unwrap();
        let plain = Packet { size: 9, flow: 4, ..Packet::default() };
        let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].map(|ecn| ecn as u8);
        let ecn = ecn.map(|ecn| read(Packet { ecn, ..plain }).ecn());
        assert_eq!(ecn, [core::Ecn::NotEct, core::Ecn::Ect1, core::Ecn::Ect0, core::Ecn::Ce]);
        let protocol = [Protocol::Udp, Protocol::Tcp, Protocol::Control].map(|protocol| protocol as u8);
        let protocol = protocol.map(|protocol| read(Packet { protocol, ..plain }).protocol());
        assert_eq!(protocol, [core::Protocol::Udp, core::Protocol::Tcp, core::Protocol::Control]);
        for colour in [core::Colour::Unmarked, core::Colour::Green, core::Colour::Yellow, core::Colour::Red] {
            let mut packet = read(plain);
            packet.set_colour(colour);
            assert_eq!((packet.colour(), read(Packet::from(packet)).colour()), (colour, colour));
        }
        for kind in core::LabelKind::ALL {
            let mut packet = read(plain);
            packet.set_label(kind, Label::new(77.0));
            assert_eq!(read(Packet::from(packet)).label(kind), Some(Label::new(77.0)));
            packet.clear_label(kind);
            assert_eq!((packet.label(kind), Packet::from(packet)), (None, plain));
        }
        assert_eq!((read(plain).flow(), read(plain).size()), (FlowId(4), Bytes::new(9)));
    }

    #[test]
    fn a_packet_has_a_size() {
        let sized = |size| Checked::check(&Packet { size, ..Packet::default() }).map(|_| ());
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
