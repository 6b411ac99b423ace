//! Messages between routers as Ethernet frames.
//!
//! A message is the payload of one UDP datagram (RFC 768) in IPv4 (RFC 791) or IPv6 (RFC 8200), from and to
//! [`PORT`], with a checksum in IPv4 too. Packets are atomic (RFC 6864): messages fit every IPv6 link. They
//! have the codepoint of routing protocols, CS6 (RFC 4594 section 3.2). They are sent with the largest hop
//! limit, and any other is ignored: the sender must be on the link (RFC 5082 section 3).
//!
//! Messages to all neighbours go to the link-local multicast addresses for experiments (RFC 4727 sections
//! 2.4.2 and 3.4): no host listens there, and no router forwards them.
//!
//! `docs/sffc-messages.md` has an example. Cost: O(bytes).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use apportion_runtime::sffc::message::{MAX_SIZE, is_message};

use crate::frame::{Fragment, Network, Parsed, protocol};

/// Source and destination port of messages in UDP. Chosen: from the ports that are never assigned (RFC 6335
/// section 6); on a telephone the last four digits spell the messages' identifier.
pub const PORT: u16 = 57_332;
/// Destination of messages to all neighbours.
pub const NEIGHBOURS_4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 254);
/// Destination of messages to all neighbours, in IPv6.
pub const NEIGHBOURS_6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x114);
/// Bytes of the largest frame with a message.
pub const LONGEST: usize = ETHERNET + IPV6 + UDP + MAX_SIZE;

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const IPV6: usize = 40;
const UDP: usize = 8;
/// The hop limit of messages: a router on the way would lower it (RFC 5082 section 3).
const HOPS: u8 = 255;
/// The traffic class with this codepoint, not ECN-capable.
const CS6: u8 = 48 << 2;

/// A hardware address.
pub type Hardware = [u8; 6];

/// Sources and destinations of a frame. Both IP addresses are of one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The interface that sends the frame.
    pub from: Hardware,
    /// The interface that receives the frame.
    pub to: Hardware,
    /// The router that sends the message.
    pub source: IpAddr,
    /// The destination of the message.
    pub destination: IpAddr,
}

/// The address of all neighbours, of the same version as this address.
#[must_use]
pub(crate) const fn neighbours(source: IpAddr) -> IpAddr {
    match source {
        IpAddr::V4(_) => IpAddr::V4(NEIGHBOURS_4),
        IpAddr::V6(_) => IpAddr::V6(NEIGHBOURS_6),
    }
}

/// The hardware address of a multicast address (RFC 1112 section 6.4, RFC 2464 section 7).
#[must_use]
pub const fn multicast(group: IpAddr) -> Hardware {
    match group {
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}

/// The frame that carries a message; none if the addresses are of different versions, or the message is too
/// long.
#[must_use]
pub fn write(envelope: &Envelope, message: &[u8]) -> Option<Vec<u8>> {
    if message.len() > MAX_SIZE {
        return None;
    }
    // At most MAX_SIZE plus the header.
    let length = ((UDP + message.len()) as u16).to_be_bytes();
    let mut frame = Vec::with_capacity(LONGEST);
    frame.extend(envelope.to);
    frame.extend(envelope.from);
    match (envelope.source, envelope.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let total = ((IPV4 + UDP + message.len()) as u16).to_be_bytes();
            frame.extend([0x08, 0x00, 0x45, CS6, total[0], total[1]]);
            // Do not fragment; the checksum follows.
            frame.extend([0, 0, 0x40, 0, HOPS, protocol::UDP, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
            let checksum = (!sum(0, &frame[ETHERNET..])).to_be_bytes();
            frame[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&checksum);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x86, 0xdd, 0x60 | CS6 >> 4, CS6 << 4, 0, 0]);
            frame.extend([length[0], length[1], protocol::UDP, HOPS]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        _ => return None,
    }
    let begin = frame.len();
    for port in [PORT, PORT] {
        frame.extend(port.to_be_bytes());
    }
    frame.extend([length[0], length[1], 0, 0]);
    frame.extend(message);
    let checksum = match !sum(
        pseudo_header(envelope.source, envelope.destination, frame.len() - begin),
        &frame[begin..],
    ) {
        // RFC 768: a transmitted zero means no checksum; all ones is the other zero.
        0 => 0xffff,
        checksum => checksum,
    };
    frame[begin + 6..begin + 8].copy_from_slice(&checksum.to_be_bytes());
    Some(frame)
}

/// The message in a frame, right or wrong; none if there is none. [`is_intact`] checks its checksums.
#[must_use]
pub fn read<'a>(frame: &'a [u8], parsed: &Parsed) -> Option<&'a [u8]> {
    let headers = parsed.headers.as_ref()?;
    let is_ours = headers.protocol == protocol::UDP
        && headers.ports == Some((PORT, PORT))
        && parsed.fragment == Fragment::Whole;
    let datagram = frame.get(parsed.transport_offset.filter(|_| is_ours)?..end(parsed))?;
    let length = usize::from(u16::from_be_bytes([*datagram.get(4)?, *datagram.get(5)?]));
    // RFC 768 does not use bytes after the datagram; a length below that of the header is invalid.
    datagram.get(UDP..length).filter(|message| is_message(message))
}

/// Whether the sender of a frame with a message is on the link: no router lowered its hop limit.
#[must_use]
pub fn is_from_link(frame: &[u8], parsed: &Parsed) -> bool {
    // RFC 791 section 3.1: the ninth byte; RFC 8200 section 3: the eighth.
    let at = if parsed.network == Network::Ipv6 { 7 } else { 8 };
    frame.get(parsed.network_offset + at) == Some(&HOPS)
}

/// Whether the checksums of a frame with a message are right. The datagram's checksum is skipped if the frame
/// `is_unfinished`.
#[must_use]
pub fn is_intact(frame: &[u8], parsed: &Parsed, is_unfinished: bool) -> bool {
    let (Some(headers), Some(begin)) = (&parsed.headers, parsed.transport_offset) else { return false };
    let Some(network) = frame.get(parsed.network_offset..begin) else { return false };
    let Some(datagram) = frame.get(begin..end(parsed)) else { return false };
    let Some(&[_, _, _, _, high, low, ..]) = datagram.first_chunk::<UDP>() else { return false };
    let Some(datagram) = datagram.get(..usize::from(u16::from_be_bytes([high, low]))) else { return false };
    let header_is_right = parsed.network == Network::Ipv6 || sum(0, network) == 0xffff;
    // A datagram with its checksum adds up to all ones.
    let pseudo = pseudo_header(headers.source, headers.destination, datagram.len());
    header_is_right && (is_unfinished || sum(pseudo, datagram) == 0xffff)
}

/// Offset of the end of the IP packet in the frame.
fn end(parsed: &Parsed) -> usize {
    // Not beyond the frame.
    parsed.network_offset + parsed.length.get() as usize
}

/// The sum of the pseudo header of a datagram of `length` bytes (RFC 768, RFC 8200 section 8.1).
fn pseudo_header(source: IpAddr, destination: IpAddr, length: usize) -> u32 {
    let mut words = u32::from(protocol::UDP) + length as u32;
    for address in [source, destination] {
        words = match address {
            IpAddr::V4(address) => u32::from(sum(words, &address.octets())),
            IpAddr::V6(address) => u32::from(sum(words, &address.octets())),
        };
    }
    words
}

/// Adds the words of `bytes`, which has less than 2^16, to `first` in ones' complement (RFC 1071).
fn sum(first: u32, bytes: &[u8]) -> u16 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    let mut sum = first + bytes.chunks(2).map(word).sum::<u32>();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
