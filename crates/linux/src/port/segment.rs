//! Cuts super-packets of segmentation offload into the packets that a wire carries.
//!
//! A host behind a virtual device, or a kernel that merged received packets, hands over up to 64 KB with one
//! header. The header before the frame (virtio 1.2 section 5.1.6, "Packet Transmission") says how to cut such
//! a packet:
//!
//! | kind | made by | each packet |
//! |---|---|---|
//! | `TCPV4`, `TCPV6` | TSO, GSO, GRO | sequence number moved on; CWR only in the first (RFC 3168 section 6.1.2), FIN and PSH only in the last |
//! | `UDP_L4` | `UDP_SEGMENT`, GRO | a datagram of its own |
//!
//! Packet sockets deliver no other kind since Linux 4.14: datagrams that a device should cut into IP
//! fragments (UFO) make the system call fail, and so do datagrams of `UDP_SEGMENT` before Linux 6.2.
//!
//! If the checksum of the super-packet is unfinished, so are those of its segments: the checksum field holds
//! the sum of the pseudo-header, and the header before each frame says so. If it is complete, each segment
//! gets a complete one. Neither way reads addresses: the sum of the pseudo-header follows from the fields of
//! the super-packet, so routing headers do not matter, and the segments of a super-packet with a wrong
//! checksum have wrong ones.
//!
//! `hdr_len` is a hint of the sender and is not read. A header that contradicts its frame is refused, see
//! [`Refusal`], and so are tunnels (another transport header before the checksum), packets above 64 KB ("big
//! TCP"), and authentication headers.
//!
//! Cost: one copy of each byte; one more pass, and another over each segment, where the checksum is complete.
//! No allocation, and no panic on any input.

/// Bytes of the header before a frame, `struct virtio_net_hdr`: flags, gso_type, hdr_len, gso_size, csum_start,
/// csum_offset.
pub const VNET_HEADER: usize = 10;
/// The longest frame of a super-packet: Ethernet, two VLAN tags, an IPv6 header, and the maximum of its
/// length field.
pub const LONGEST_SUPER_PACKET: usize = 14 + 2 * 4 + 40 + 65_535;
/// Maximum of segments in one super-packet. Chosen: 64 KB in segments of 48 bytes, the least that Linux sends
/// (`net.ipv4.tcp_min_snd_mss`), are 1365.
const MAX_SEGMENTS: usize = 2_048;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`.
pub const NEEDS_CHECKSUM: u8 = 1;
/// `VIRTIO_NET_HDR_GSO_ECN`, set with the kind: the header has CWR, as its flags show too.
const ECN: u8 = 0x80;

const ADDRESSES: usize = 12;
const TAG: usize = 4;
const MAX_TAGS: usize = 2;
pub(super) const IPV4_HEADER: usize = 20;
pub(super) const IPV6_HEADER: usize = 40;
pub(super) const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;
/// Maximum of extension headers that are skipped, equal to that of `frame` of the crate live.
const MAX_EXTENSIONS: usize = 8;
/// MF and the offset in their word of an IPv4 header, which are zero unless the packet is a fragment.
const FRAGMENT: u16 = 0x3fff;
pub(super) const CWR: u8 = 0x80;
pub(super) const PSH_FIN: u8 = 0x09;

/// `VIRTIO_NET_HDR_GSO_TCPV4` and `VIRTIO_NET_HDR_GSO_TCPV6`.
pub(super) const GSO_TCP: [u8; 2] = [1, 4];

/// EtherTypes (IEEE 802 numbers of IANA).
mod ethertype {
    pub(super) const IPV4: u16 = 0x0800;
    pub(super) const CUSTOMER_TAG: u16 = 0x8100;
    pub(super) const IPV6: u16 = 0x86dd;
    pub(super) const SERVICE_TAG: u16 = 0x88a8;
}

/// Protocol numbers (RFC 5237).
pub(super) mod protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(crate) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const DESTINATION: u8 = 60;
}

/// The header before a frame, in the machine's byte order (packet(7), PACKET_VNET_HDR).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VnetHeader {
    /// [`NEEDS_CHECKSUM`] and others.
    pub flags: u8,
    /// Type of segmentation of a super-packet; 0 for other frames.
    pub gso_type: u8,
    /// Bytes of all headers, by the sender: a hint.
    pub header_length: u16,
    /// Bytes of payload in each segment.
    pub gso_size: u16,
    /// Offset in the frame at which an unfinished checksum begins to count.
    pub checksum_start: u16,
    /// Offset of that checksum, from there.
    pub checksum_offset: u16,
}

impl VnetHeader {
    /// Parses the header.
    #[must_use]
    pub const fn read(bytes: &[u8; VNET_HEADER]) -> Self {
        let [flags, gso_type, length, length_, size, size_, start, start_, offset, offset_] = *bytes;
        Self {
            flags,
            gso_type,
            header_length: u16::from_ne_bytes([length, length_]),
            gso_size: u16::from_ne_bytes([size, size_]),
            checksum_start: u16::from_ne_bytes([start, start_]),
            checksum_offset: u16::from_ne_bytes([offset, offset_]),
        }
    }

    /// The header as bytes.
    #[must_use]
    pub const fn bytes(&self) -> [u8; VNET_HEADER] {
        let [length, length_] = self.header_length.to_ne_bytes();
        let [size, size_] = self.gso_size.to_ne_bytes();
        let [start, start_] = self.checksum_start.to_ne_bytes();
        let [offset, offset_] = self.checksum_offset.to_ne_bytes();
        [self.flags, self.gso_type, length, length_, size, size_, start, start_, offset, offset_]
    }
}

/// Why a super-packet is not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The kind is unknown.
    Kind,
    /// Segments would have no payload.
    Size,
    /// There is no whole IP packet of the kind's version behind at most two VLAN tags; or it is a fragment.
    Network,
    /// There is no whole header of the kind's protocol directly in that packet.
    Transport,
    /// The unfinished checksum is not at the transport header.
    Checksum,
    /// A segment is longer than the buffers.
    Long,
    /// There are too many segments.
    Many,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tcp,
    Udp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
}

impl Kind {
    /// The kind that virtio's number means, and the version of IP if the kind fixes that.
    const fn of(gso_type: u8) -> Option<(Self, Option<Version>)> {
        match gso_type & !ECN {
            1 => Some((Self::Tcp, Some(Version::V4))),
            4 => Some((Self::Tcp, Some(Version::V6))),
            5 => Some((Self::Udp, None)),
            _ => None,
        }
    }

    const fn protocol(self) -> u8 {
        match self {
            Self::Tcp => protocol::TCP,
            Self::Udp => protocol::UDP,
        }
    }

    /// Offset of the checksum in the transport header.
    const fn checksum_offset(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }

    /// The length of the transport header; none if it is cut.
    fn header(self, transport: &[u8]) -> Option<usize> {
        let length = match self {
            Self::Tcp => 4 * usize::from(transport.get(12)? >> 4),
            Self::Udp => UDP_HEADER,
        };
        let least = if self == Self::Tcp { TCP_HEADER } else { UDP_HEADER };
        (least <= length && length <= transport.len()).then_some(length)
    }

    /// The state of the checksum of `segment`, whose transport header begins at `transport`.
    fn checksum(self, header: &VnetHeader, segment: &[u8], transport: usize) -> Result<Checksum, Refusal> {
        if header.flags & NEEDS_CHECKSUM == 0 {
            let is_absent = self != Self::Tcp && get(segment, self.checksum_offset()) == 0;
            return Ok(if is_absent { Checksum::Absent } else { Checksum::Complete });
        }
        let place = (usize::from(header.checksum_start), usize::from(header.checksum_offset));
        if place == (transport, self.checksum_offset()) {
            Ok(Checksum::Unfinished)
        } else {
            Err(Refusal::Checksum)
        }
    }

    /// The sum of the pseudo-header without its length.
    fn seed(self, checksum: Checksum, segment: &[u8]) -> u16 {
        let length = segment.len() as u16;
        match checksum {
            Checksum::Absent => 0,
            Checksum::Unfinished => add(get(segment, self.checksum_offset()), !length),
            // With its checksum, a segment and its pseudo-header add up to zero.
            Checksum::Complete => add(!sum(segment), !length),
        }
    }
}

/// The state of the checksum of the transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checksum {
    /// The field holds the sum of the pseudo-header.
    Unfinished,
    Complete,
    /// The sender computed none (RFC 768).
    Absent,
}

/// Offsets in a frame.
pub(super) struct Layout {
    pub version: Version,
    pub network: usize,
    pub transport: usize,
    /// End of the IP packet.
    pub end: usize,
    pub protocol: u8,
}

/// The packets of a super-packet, one after the other.
#[derive(Debug)]
pub struct Segments<'a> {
    /// Everything before the payload, copied to each packet.
    headers: &'a [u8],
    payload: &'a [u8],
    kind: Kind,
    version: Version,
    network: usize,
    transport: usize,
    /// Payload of each packet except the last.
    size: usize,
    checksum: Checksum,
    /// The sum of the pseudo-header without its length.
    seed: u16,
    count: usize,
    next: usize,
}

impl<'a> Segments<'a> {
    /// The segments of `frame` with `header` before it, none longer than `longest` bytes.
    ///
    /// # Errors
    /// The reason why the super-packet cannot be cut.
    pub fn new(header: &VnetHeader, frame: &'a [u8], longest: usize) -> Result<Self, Refusal> {
        let (kind, version) = Kind::of(header.gso_type).ok_or(Refusal::Kind)?;
        let layout = Layout::of(frame).ok_or(Refusal::Network)?;
        if version.is_some_and(|version| version != layout.version) {
            return Err(Refusal::Network);
        }
        let Layout { version, network, transport, end, .. } = layout;
        let segment = &frame[transport..end];
        let transport_header =
            kind.header(segment).filter(|_| layout.protocol == kind.protocol()).ok_or(Refusal::Transport)?;
        let checksum = kind.checksum(header, segment, transport)?;
        let (headers, payload) = frame[..end].split_at(transport + transport_header);
        let size = usize::from(header.gso_size);
        if size == 0 {
            return Err(Refusal::Size);
        }
        let count = payload.len().div_ceil(size).max(1);
        if count > MAX_SEGMENTS {
            return Err(Refusal::Many);
        }
        if headers.len() + size.min(payload.len()) > longest {
            return Err(Refusal::Long);
        }
        Ok(Self {
            headers,
            payload,
            kind,
            version,
            network,
            transport,
            size,
            checksum,
            seed: kind.seed(checksum, segment),
            count,
            next: 0,
        })
    }

    /// Number of segments left.
    #[must_use]
    pub const fn remaining(&self) -> usize {
        self.count - self.next
    }

    /// The header before each of the frames.
    #[must_use]
    pub fn header(&self) -> VnetHeader {
        if self.checksum != Checksum::Unfinished {
            return VnetHeader::default();
        }
        VnetHeader {
            flags: NEEDS_CHECKSUM,
            // The value comes from a field of 16 bits.
            checksum_start: self.transport as u16,
            checksum_offset: self.kind.checksum_offset() as u16,
            ..VnetHeader::default()
        }
    }

    /// Writes the next frame to the beginning of `to`, and returns its length. None if no segment is left, or
    /// `to` is shorter than the longest one.
    pub fn write_next(&mut self, to: &mut [u8]) -> Option<usize> {
        let begin = self.next * self.size;
        let payload = self.payload.get(begin..).filter(|_| self.next < self.count)?;
        let payload = &payload[..payload.len().min(self.size)];
        let length = self.headers.len() + payload.len();
        let frame = to.get_mut(..length)?;
        let (headers, rest) = frame.split_at_mut(self.headers.len());
        headers.copy_from_slice(self.headers);
        rest.copy_from_slice(payload);
        self.finish(frame, begin as u32);
        self.next += 1;
        Some(length)
    }

    const fn is_last(&self) -> bool {
        self.next + 1 == self.count
    }

    /// Writes the fields that differ between packets into the headers; `begin` is the offset of the payload.
    fn finish(&self, frame: &mut [u8], begin: u32) {
        let ip = &mut frame[self.network..];
        // At most the length of the super-packet, which this field held.
        let length = ip.len();
        match self.version {
            Version::V4 => {
                put(ip, 2, length as u16);
                let identification = get(ip, 4).wrapping_add(self.next as u16);
                put(ip, 4, identification);
                put(ip, 10, 0);
                let checksum = !sum(&ip[..self.transport - self.network]);
                put(ip, 10, checksum);
            }
            Version::V6 => put(ip, 4, (length - IPV6_HEADER) as u16),
        }
        let transport = &mut frame[self.transport..];
        let length = transport.len() as u16;
        if self.kind == Kind::Tcp {
            let number = u32::from(get(transport, 4)) << 16 | u32::from(get(transport, 6));
            transport[4..8].copy_from_slice(&number.wrapping_add(begin).to_be_bytes());
            let is_first = self.next == 0;
            let cleared = if is_first { 0 } else { CWR } | if self.is_last() { 0 } else { PSH_FIN };
            transport[13] &= !cleared;
        } else {
            put(transport, 4, length);
        }
        let at = self.kind.checksum_offset();
        let pseudo_header = add(self.seed, length);
        match self.checksum {
            Checksum::Unfinished => put(transport, at, pseudo_header),
            Checksum::Complete => {
                put(transport, at, 0);
                let checksum = !add(pseudo_header, sum(transport));
                put(transport, at, if self.kind == Kind::Tcp { checksum } else { not_absent(checksum) });
            }
            Checksum::Absent => (),
        }
    }
}

impl Layout {
    /// The layout of a frame with a whole IP packet that is no fragment.
    pub fn of(frame: &[u8]) -> Option<Self> {
        let mut at = ADDRESSES;
        for _ in 0..MAX_TAGS {
            if matches!(word(frame, at)?, ethertype::CUSTOMER_TAG | ethertype::SERVICE_TAG) {
                at += TAG;
            }
        }
        let kind = word(frame, at)?;
        let network = at + 2;
        let packet = frame.get(network..)?;
        match kind {
            ethertype::IPV4 => Self::ipv4(network, packet),
            ethertype::IPV6 => Self::ipv6(network, packet),
            _ => None,
        }
    }

    fn ipv4(network: usize, packet: &[u8]) -> Option<Self> {
        let header: &[u8; IPV4_HEADER] = packet.first_chunk()?;
        let (length, total) = (4 * usize::from(header[0] & 0xf), usize::from(get(header, 2)));
        let is_whole = get(header, 6) & FRAGMENT == 0;
        let is_right =
            header[0] >> 4 == 4 && IPV4_HEADER <= length && length <= total && total <= packet.len();
        (is_whole && is_right).then_some(Self {
            version: Version::V4,
            network,
            transport: network + length,
            end: network + total,
            protocol: header[9],
        })
    }

    fn ipv6(network: usize, packet: &[u8]) -> Option<Self> {
        let header: &[u8; IPV6_HEADER] = packet.first_chunk().filter(|header| header[0] >> 4 == 6)?;
        let packet = packet.get(..IPV6_HEADER + usize::from(get(header, 4)))?;
        let (mut at, mut next) = (IPV6_HEADER, header[6]);
        for _ in 0..MAX_EXTENSIONS {
            if !matches!(next, protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION) {
                break;
            }
            let extension: &[u8; 8] = packet.get(at..)?.first_chunk()?;
            next = extension[0];
            at += 8 * (usize::from(extension[1]) + 1);
        }
        (at <= packet.len()).then_some(Self {
            version: Version::V6,
            network,
            transport: network + at,
            end: network + packet.len(),
            protocol: next,
        })
    }
}

/// The big-endian word at this offset.
fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().copied().map(u16::from_be_bytes)
}

/// The big-endian word at this offset of a header that is known to be whole.
pub(super) fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(super) fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// Adds in ones' complement (RFC 1071).
pub(super) const fn add(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    // With a carry the sum is below 2^16 - 1.
    sum + carry as u16
}

/// The sum of the words of at most 2^16 bytes, in ones' complement.
pub(super) fn sum(bytes: &[u8]) -> u16 {
    let (words, rest) = bytes.as_chunks::<2>();
    let last = rest.first().map_or(0, |byte| u32::from(*byte) << 8);
    // At most 2^15 words of 16 bits: below 2^31.
    let sum = words.iter().map(|word| u32::from(u16::from_be_bytes(*word))).sum::<u32>() + last;
    add((sum >> 16) as u16, sum as u16)
}

/// A UDP checksum, in which zero means that there is none (RFC 768).
const fn not_absent(checksum: u16) -> u16 {
    if checksum == 0 { 0xffff } else { checksum }
}
