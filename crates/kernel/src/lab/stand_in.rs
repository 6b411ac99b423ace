//! Frames that represent packets in a queue of the kernel.
//!
//! The destination address is 02:01 and the number of the packet: it is not the address of the device, so
//! that the IP stack ignores the frame. The IP header has room for a label, and a protocol number for
//! experiments (RFC 3692). The source address is 10.0.0.0 plus the number of the packet's customer, from
//! which a program derives the customer. A frame is as long as its packet is charged; if that is shorter than
//! the headers, they are truncated.

use std::net::Ipv4Addr;

use apportion_core::packet::{CustomerId, LabelKind};
use apportion_core::units::Bytes;
use apportion_live::frame;
use apportion_live::lab::external::{Returned, StandIn};
use apportion_live::wire_label;

/// The size of an Ethernet header.
const LEAST: usize = 14;
/// The size of the Ethernet and IPv4 headers, which a label requires.
pub const HEADERS: usize = LEAST + 20;
/// The first bytes of destination addresses.
const MARK: [u8; 2] = [2, 1];
/// From 10.0.0.0 to 10.1.0.2, DF, protocol 253. Length, checksum and identification are set later, or are
/// irrelevant.
const TEMPLATE: [u8; HEADERS] = [
    2, 1, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 8, 0, // Ethernet
    0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 253, 0, 0, 10, 0, 0, 0, 10, 1, 0, 2, // IPv4
];

/// Returns the source address for a customer; there are fewer than 2^24 customers.
pub fn source(customer: CustomerId) -> Ipv4Addr {
    let [_, a, b, c] = customer.0.to_be_bytes();
    Ipv4Addr::new(10, a, b, c)
}

/// Writes the frame for a packet of a customer into `buffer`, with its label of this kind and zeros after the
/// headers, and returns the frame.
pub fn write<'a>(buffer: &'a mut [u8], packet: &StandIn, kind: LabelKind, customer: CustomerId) -> &'a [u8] {
    let longest = buffer.len();
    let length = usize::try_from(packet.size.get()).unwrap_or(longest).clamp(LEAST, longest);
    let head = &mut buffer[..HEADERS];
    head.copy_from_slice(&TEMPLATE);
    head[2..6].copy_from_slice(&packet.number.to_be_bytes());
    let of_ip = u16::try_from(length - LEAST).unwrap_or(u16::MAX);
    head[16..18].copy_from_slice(&of_ip.to_be_bytes());
    head[26..30].copy_from_slice(&source(customer).octets());
    let frame = &mut buffer[..length];
    if let Some(label) = packet.label {
        let ip = frame::parse(frame).ok().and_then(|parsed| parsed.ip());
        wire_label::write(frame, ip, kind, label);
    }
    frame
}

/// Returns the packet that a frame represents, with its label of this kind; none if the frame is not a
/// stand-in.
pub fn read(frame: &[u8], kind: LabelKind) -> Option<Returned> {
    let address = frame.get(..6)?;
    let number = address[2..].first_chunk().copied().map(u32::from_be_bytes)?;
    let ip = frame::parse(frame).ok().and_then(|parsed| parsed.ip());
    let label = wire_label::read(frame, ip).filter(|(found, _)| *found == kind).map(|(_, label)| label);
    address.starts_with(&MARK).then_some(Returned { number, label })
}

/// Whether packets of this size carry a label.
pub fn has_room(size: Bytes) -> bool {
    size.get() >= HEADERS as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_core::label::Label;
    use apportion_core::packet::FlowId;

    #[test]
    fn a_packet_is_read_as_it_was_written() {
        let mut buffer = vec![0; 2_000];
        let (label, customer) = (Label::new(1.5e6), CustomerId(0x01_02_03));
        let other = |kind| if kind == LabelKind::Rate { LabelKind::Tickets } else { LabelKind::Rate };
        for kind in [LabelKind::Rate, LabelKind::Tickets] {
            for (number, size, label) in [
                (7, 40, Some(label)),
                (u32::MAX, 1_500, None),
                (1 << 20, 34, Some(Label::ZERO)),
                (3, 29, None),
            ] {
                let packet = StandIn { number, flow: FlowId(3), size: Bytes::new(size), label };
                let frame = write(&mut buffer, &packet, kind, customer);
                assert_eq!(frame.len() as u64, size);
                assert_eq!(read(frame, kind), Some(Returned { number, label }), "{size}");
                assert_eq!(read(frame, other(kind)), Some(Returned { number, label: None }), "{size}");
                assert!(size < 34 || frame[26..30] == [10, 1, 2, 3]);
            }
        }
        assert!(has_room(Bytes::new(34)) && !has_room(Bytes::new(33)));
        let short = StandIn { number: 1, flow: FlowId(0), size: Bytes::new(2), label: None };
        let write = |buffer: &mut [u8]| write(buffer, &short, LabelKind::Rate, CustomerId::OTHERS).to_vec();
        let frame = write(&mut buffer);
        let read = |frame: &[u8]| read(frame, LabelKind::Rate);
        assert!(frame.len() == 14 && read(&frame).is_some() && read(&frame[..5]).is_none());
        assert!(read(&[0xff; 60]).is_none());
    }
}
