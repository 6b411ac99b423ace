//! Parses Ethernet frames, and edits the few fields that routers change.
//!
//! It reads Ethernet II with up to two VLAN tags (IEEE 802.1Q, 802.1ad), IPv4 (RFC 791), and IPv6 with its
//! extension headers (RFC 8200 section 4); of TCP (RFC 9293) and UDP only the fields that identify flows and
//! acknowledgements.
//!
//! A frame is malformed only if an error makes the position of a field doubtful. The checksum of an IPv4
//! header is not verified, although RFC 1812 section 5.2.2 asks forwarders to: an edit keeps a wrong checksum
//! wrong, and the next router refuses the packet. Errors in TCP and UDP headers are left to hosts: such
//! packets merely have fewer parsed fields. Jumbograms (RFC 2675), which no Ethernet carries, are malformed.
//!
//! Cost: O(extension headers), of which there are at most [`MAX_EXTENSIONS`]; some ns for a frame without; no
//! allocation, and no panic on any input.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use apportion_core::packet::{Ecn, Protocol};
use apportion_core::units::Bytes;
use apportion_scenario::gateway::classifier::Headers;

mod edit;
mod flow;
mod timestamps;

pub use edit::{
    IpHeader, acknowledgement, atomic_identification, dscp, flow_label, set_ce, set_dscp, set_flow_label,
    set_identification,
};
pub use flow::FlowTuple;
pub use timestamps::{Timestamps, timestamps};

/// Maximum of VLAN tags that are skipped: a service tag and a customer tag (IEEE 802.1ad).
pub(crate) const MAX_TAGS: u8 = 2;
/// Maximum of extension headers that are skipped. Chosen: one of each kind, and destination options twice, as
/// RFC 8200 section 4.1 recommends, are eight.
pub const MAX_EXTENSIONS: usize = 8;

/// EtherTypes (IEEE 802 numbers of IANA).
mod ethertype {
    pub const IPV4: u16 = 0x0800;
    pub const CUSTOMER_TAG: u16 = 0x8100;
    pub const IPV6: u16 = 0x86dd;
    pub const SERVICE_TAG: u16 = 0x88a8;
}

/// Protocol numbers (RFC 5237). All but the last are extension headers of IPv6.
pub(crate) mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const AUTHENTICATION: u8 = 51;
    pub const DESTINATION: u8 = 60;
    pub const MOBILITY: u8 = 135;
    pub const HOST_IDENTITY: u8 = 139;
    pub const SHIM6: u8 = 140;

    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const DCCP: u8 = 33;
    pub const SCTP: u8 = 132;
    pub const UDP_LITE: u8 = 136;
}

/// Bytes of the IPv4 header without options.
const IPV4_HEADER: usize = 20;
/// Bytes of the IPv6 header without extensions.
const IPV6_HEADER: usize = 40;
/// Bytes of the TCP header without options.
const TCP_HEADER: usize = 20;

/// Why a frame cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The frame ends within the Ethernet header, a VLAN tag, or the fixed part of the IP header.
    TooShort,
    /// The version in the IP header does not match the EtherType.
    IpVersion,
    /// The IPv4 header length field is below 20 bytes.
    Ipv4HeaderLength,
    /// The IPv4 total length ends within the header, or beyond the frame.
    Ipv4TotalLength,
    /// The IPv6 payload length goes beyond the frame.
    Ipv6PayloadLength,
    /// An extension header of IPv6 ends beyond the packet.
    ExtensionHeaderLength,
    /// More than [`MAX_EXTENSIONS`] extension headers of IPv6.
    ExtensionHeaders,
}

impl Malformed {
    /// Every reason, in the order in which results list them.
    pub const ALL: [Self; 7] = [
        Self::TooShort,
        Self::IpVersion,
        Self::Ipv4HeaderLength,
        Self::Ipv4TotalLength,
        Self::Ipv6PayloadLength,
        Self::ExtensionHeaderLength,
        Self::ExtensionHeaders,
    ];

    /// The reason's name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TooShort => "too_short",
            Self::IpVersion => "ip_version",
            Self::Ipv4HeaderLength => "ipv4_header_length",
            Self::Ipv4TotalLength => "ipv4_total_length",
            Self::Ipv6PayloadLength => "ipv6_payload_length",
            Self::ExtensionHeaderLength => "extension_header_length",
            Self::ExtensionHeaders => "extension_headers",
        }
    }
}

/// The network protocol of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// An IPv4 packet.
    Ipv4,
    /// An IPv6 packet.
    Ipv6,
    /// Another protocol, by EtherType: ARP, LLDP, a third VLAN tag. Below 0x0600 the value is the length of
    /// an IEEE 802.3 frame.
    Other(u16),
}

/// Whether a packet is a fragment. Ordered by how little the packet shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fragment {
    /// The packet is whole.
    #[default]
    Whole,
    /// The first fragment.
    First,
    /// A fragment after the first, which has no transport header.
    Later,
}

/// Fields of a whole TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// CWR, ECE, URG, ACK, PSH, RST, SYN, FIN, from the highest bit (RFC 9293 section 3.1).
    pub flags: u8,
    /// The sequence number of its first byte, or of its SYN.
    pub sequence: u32,
    /// Bytes of data.
    pub payload: Bytes,
    /// The acknowledgement number, the next byte that the sender expects; none without the ACK flag.
    pub acknowledges: Option<u32>,
}

impl Segment {
    const FIN: u8 = 1;
    const SYN: u8 = 1 << 1;
    const RST: u8 = 1 << 2;
    const ACK: u8 = 1 << 4;

    /// Whether the segment opens a connection, from either side.
    #[must_use]
    pub const fn is_syn(self) -> bool {
        self.flags & Self::SYN != 0
    }

    /// Whether the segment resets a connection.
    #[must_use]
    pub const fn is_reset(self) -> bool {
        self.flags & Self::RST != 0
    }

    /// Whether the segment opens a connection or resets one. It then acknowledges no data, though the field
    /// may hold a number.
    #[must_use]
    pub const fn is_syn_or_reset(self) -> bool {
        self.flags & (Self::SYN | Self::RST) != 0
    }

    /// The sequence numbers that the segment occupies: its data, and one each for SYN and FIN (RFC 9293
    /// section 3.4).
    #[must_use]
    pub const fn numbers(self) -> u32 {
        // No segment has more than 65535 bytes.
        self.payload.get() as u32
            + (self.flags & Self::FIN).count_ones()
            + (self.flags & Self::SYN).count_ones()
    }

    /// Whether the segment is a pure ACK.
    #[must_use]
    pub const fn is_pure_ack(self) -> bool {
        let all = Self::FIN | Self::SYN | Self::RST | Self::ACK;
        self.flags & all == Self::ACK && self.payload.get() == 0
    }
}

/// The protocol number of ICMP for IPv6 (RFC 4443 section 1).
const ICMPV6: u8 = 58;

/// A parsed frame. It describes the frame as it arrived: edits do not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The network protocol.
    pub network: Network,
    /// Offset of the network header in the frame.
    pub network_offset: usize,
    /// Number of VLAN tags.
    pub tags: u8,
    /// Bytes of the IP packet, by its header; 0 for other frames. The frame may be longer, by padding.
    pub length: Bytes,
    /// Fields of the IP header, and ports; none if the frame has no IP packet.
    pub headers: Option<Headers>,
    /// The ECN field; not capable if the frame has no IP packet.
    pub ecn: Ecn,
    /// The transport protocol, as far as disciplines distinguish it. Parsing never sets
    /// [`Protocol::Control`]: callers know which messages are those of routers.
    pub protocol: Protocol,
    /// Part of a packet that the frame holds.
    pub fragment: Fragment,
    /// Offset of the transport header in the frame, if the frame holds any of it.
    pub transport_offset: Option<usize>,
    /// The TCP header, if it is complete and the packet no fragment.
    pub segment: Option<Segment>,
}

impl Parsed {
    /// Whether this frame, of which `self` is the parsed form, is neighbour discovery of IPv6 that no router
    /// forwarded (RFC 4861 section 4).
    #[must_use]
    pub fn is_neighbour_discovery(&self, frame: &[u8]) -> bool {
        const HOP_LIMIT: usize = 7;
        let has = |at, fits: fn(u8) -> bool| frame.get(at).copied().is_some_and(fits);
        self.network == Network::Ipv6
            && self.headers.is_some_and(|headers| headers.protocol == ICMPV6)
            && has(self.network_offset + HOP_LIMIT, |hops| hops == u8::MAX)
            && self.transport_offset.is_some_and(|at| has(at, |kind| (133..=137).contains(&kind)))
    }

    /// The IP header, for edits; none if the frame has no IP packet.
    #[must_use]
    pub fn ip(&self) -> Option<IpHeader> {
        self.headers.and(IpHeader::at(self.network_offset))
    }

    /// Offset of the TCP header of a whole segment with an acknowledgement; 0 for other frames.
    #[must_use]
    pub fn acknowledgement(&self) -> u16 {
        let acknowledges = self.segment.is_some_and(|segment| segment.acknowledges.is_some());
        // No frame is longer than 65535 bytes.
        self.transport_offset.filter(|_| acknowledges).map_or(0, |at| at as u16)
    }

    /// The flow of the packet; none if the frame has no IP packet. Fragments after the first show no ports,
    /// and therefore belong to another flow than the first.
    #[must_use]
    pub fn flow(&self) -> Option<FlowTuple> {
        FlowTuple::new(self.headers.as_ref()?)
    }
}

/// Parses a frame, which begins with the destination address and has no check sequence.
///
/// # Errors
/// If the frame is cut, or its length fields contradict each other. Frames without an IP packet are no error.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Parsed, Malformed> {
    // Two addresses of six bytes.
    let mut at = 12;
    let mut tags = 0;
    let mut found = word(bytes, at).ok_or(Malformed::TooShort)?;
    while matches!(found, ethertype::CUSTOMER_TAG | ethertype::SERVICE_TAG) && tags < MAX_TAGS {
        tags += 1;
        at += 4;
        found = word(bytes, at).ok_or(Malformed::TooShort)?;
    }
    let network_offset = at + 2;
    let packet = bytes.get(network_offset..).unwrap_or_default();
    let ethernet = EthernetHeader { network_offset, tags };
    match found {
        ethertype::IPV4 => ipv4(ethernet, packet),
        ethertype::IPV6 => ipv6(ethernet, packet),
        _ => Ok(Parsed {
            network: Network::Other(found),
            network_offset,
            tags,
            length: Bytes::ZERO,
            headers: None,
            ecn: Ecn::NotEct,
            protocol: Protocol::Udp,
            fragment: Fragment::Whole,
            transport_offset: None,
            segment: None,
        }),
    }
}

/// The part of a frame before the network header.
#[derive(Clone, Copy)]
struct EthernetHeader {
    network_offset: usize,
    tags: u8,
}

/// The big-endian word at this offset.
#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

#[inline]
fn ipv4(ethernet: EthernetHeader, bytes: &[u8]) -> Result<Parsed, Malformed> {
    let header: &[u8; IPV4_HEADER] = bytes.first_chunk().ok_or(Malformed::TooShort)?;
    if header[0] >> 4 != 4 {
        return Err(Malformed::IpVersion);
    }
    let at = 4 * usize::from(header[0] & 0xf);
    if at < IPV4_HEADER {
        return Err(Malformed::Ipv4HeaderLength);
    }
    let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let packet = bytes.get(..length).filter(|_| at <= length).ok_or(Malformed::Ipv4TotalLength)?;
    // Above the 13 bits of the offset stands MF.
    let place = u16::from_be_bytes([header[6], header[7]]);
    let fragment = fragment(place & 0x1fff != 0, place & 0x2000 != 0);
    let [.., a, b, c, d, e, f, g, h] = *header;
    let inside = Inside { at, protocol: header[9], fragment };
    let source = Ipv4Addr::new(a, b, c, d).into();
    Ok(inside.complete(ethernet, packet, source, Ipv4Addr::new(e, f, g, h).into(), header[1]))
}

#[inline]
fn ipv6(ethernet: EthernetHeader, bytes: &[u8]) -> Result<Parsed, Malformed> {
    let header: &[u8; IPV6_HEADER] = bytes.first_chunk().ok_or(Malformed::TooShort)?;
    if header[0] >> 4 != 6 {
        return Err(Malformed::IpVersion);
    }
    let length = IPV6_HEADER + usize::from(u16::from_be_bytes([header[4], header[5]]));
    let packet = bytes.get(..length).ok_or(Malformed::Ipv6PayloadLength)?;
    let inside = behind_extensions(packet, header[6])?;
    let (source, destination) = ipv6_addresses(header);
    Ok(inside.complete(ethernet, packet, source.into(), destination.into(), ipv6_class(header)))
}

#[inline]
fn ipv6_addresses(header: &[u8; IPV6_HEADER]) -> (Ipv6Addr, Ipv6Addr) {
    let address = |at: usize| {
        let bytes: [u8; 16] = std::array::from_fn(|byte| header[at + byte]);
        Ipv6Addr::from(bytes)
    };
    (address(8), address(24))
}

/// Skips the extension headers of an IPv6 packet whose first next header is `next`, and returns what follows.
#[inline]
fn behind_extensions(packet: &[u8], mut next: u8) -> Result<Inside, Malformed> {
    let mut at = IPV6_HEADER;
    let mut part = Fragment::Whole;
    // One round more than headers, to see that none follows the last.
    for _ in 0..=MAX_EXTENSIONS {
        let is_extension = matches!(
            next,
            protocol::HOP_BY_HOP
                | protocol::ROUTING
                | protocol::FRAGMENT
                | protocol::AUTHENTICATION
                | protocol::DESTINATION
                | protocol::MOBILITY
                | protocol::HOST_IDENTITY
                | protocol::SHIM6
        );
        if !is_extension || part == Fragment::Later {
            return Ok(Inside { at, protocol: next, fragment: part });
        }
        let short = Malformed::ExtensionHeaderLength;
        // The smallest extension header has eight bytes.
        let header: &[u8; 8] = packet.get(at..).and_then(<[u8]>::first_chunk).ok_or(short)?;
        let length = match next {
            protocol::FRAGMENT => 8,
            // RFC 4302 section 2.2: in words of four bytes, minus two.
            protocol::AUTHENTICATION => 4 * (usize::from(header[1]) + 2),
            _ => 8 * (usize::from(header[1]) + 1),
        };
        if next == protocol::FRAGMENT {
            // 13 bits of offset, two reserved bits, M.
            let place = u16::from_be_bytes([header[2], header[3]]);
            part = part.max(fragment(place & 0xfff8 != 0, place & 1 != 0));
        }
        at += length;
        if at > packet.len() {
            return Err(short);
        }
        next = header[0];
    }
    Err(Malformed::ExtensionHeaders)
}

const fn fragment(is_behind: bool, more_follow: bool) -> Fragment {
    match (is_behind, more_follow) {
        (true, _) => Fragment::Later,
        (false, true) => Fragment::First,
        (false, false) => Fragment::Whole,
    }
}

/// The payload of an IP packet.
struct Inside {
    /// Offset of the payload from the IP header on.
    at: usize,
    /// Protocol number of the payload.
    protocol: u8,
    fragment: Fragment,
}

impl Inside {
    /// Completes the parsed frame with the fields of the transport header of `packet`.
    #[inline]
    fn complete(
        &self,
        ethernet: EthernetHeader,
        packet: &[u8],
        source: IpAddr,
        destination: IpAddr,
        class: u8,
    ) -> Parsed {
        let shown = if self.fragment == Fragment::Later { None } else { packet.get(self.at..) };
        let transport = shown.unwrap_or_default();
        let is_tcp = self.protocol == protocol::TCP;
        // All of these protocols begin with the ports.
        let has_ports = is_tcp
            || matches!(self.protocol, protocol::UDP | protocol::DCCP | protocol::SCTP | protocol::UDP_LITE);
        let ports = if has_ports { word(transport, 0).zip(word(transport, 2)) } else { None };
        Parsed {
            network: if source.is_ipv4() { Network::Ipv4 } else { Network::Ipv6 },
            network_offset: ethernet.network_offset,
            tags: ethernet.tags,
            length: Bytes::new(packet.len() as u64),
            headers: Some(Headers {
                protocol: self.protocol,
                source,
                destination,
                ports,
                dscp: class >> ECN_BITS,
            }),
            ecn: ecn(class),
            protocol: if is_tcp { Protocol::Tcp } else { Protocol::Udp },
            fragment: self.fragment,
            transport_offset: (!transport.is_empty()).then_some(ethernet.network_offset + self.at),
            segment: if is_tcp && self.fragment == Fragment::Whole { segment(transport) } else { None },
        }
    }
}

#[inline]
fn segment(transport: &[u8]) -> Option<Segment> {
    let header: &[u8; TCP_HEADER] = transport.first_chunk()?;
    let length = 4 * usize::from(header[12] >> 4);
    let payload = transport.len().checked_sub(length).filter(|_| length >= TCP_HEADER)?;
    let flags = header[13];
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let acknowledges = (flags & Segment::ACK != 0).then_some(word(8));
    Some(Segment { flags, sequence: word(4), payload: Bytes::new(payload as u64), acknowledges })
}

/// Bits of the ECN field, the lowest of the traffic class (RFC 3168 section 5); the others are the DSCP.
const ECN_BITS: u32 = 2;
const fn ecn(class: u8) -> Ecn {
    match class & 0b11 {
        0b00 => Ecn::NotEct,
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        _ => Ecn::Ce,
    }
}

const fn ipv6_class(header: &[u8; IPV6_HEADER]) -> u8 {
    header[0] << 4 | header[1] >> 4
}
