//! Merges consecutive segments of one TCP connection into super-packets, which the sending device cuts again.
//!
//! The opposite of [`segment`](super::segment), with the same header before the frame (virtio 1.2 section
//! 5.1.6, "Packet Transmission"): a packet socket costs more per frame than per byte. A device that segments
//! (TSO) gives each segment the headers of the super-packet, except for lengths, checksums, the sequence
//! number, an IPv4 identification that counts up by one, and PSH and FIN, which only the last one keeps.
//! Frames are therefore merged exactly if the device restores them bit for bit:
//!
//! - all other bytes of their headers are equal, and sequence numbers and identifications are consecutive.
//!   ACK is set, and none of SYN, RST, URG and CWR; PSH or FIN end a super-packet;
//! - payloads are equally long, except for a last one that may be shorter, so no segment is longer than its
//!   original frame;
//! - there are no options or extension headers of IP, no fragments, no bytes behind the packet; and no CE, so
//!   that a mark stays with its packet;
//! - their checksums are known to be right. The device computes new ones for all, so a damaged frame would
//!   arrive as if it were intact. The checksum of the IPv4 header is verified here. A TCP checksum counts as
//!   right if a receiving device verified it ([`CHECKSUM_VERIFIED`]), or if it is unfinished, with the right
//!   sum of the pseudo-header (RFC 9293 section 3.1): then the frame came from a host of this machine.
//!
//! Only headers are copied and changed: a super-packet is sent from a block of headers and from the payloads
//! where they lie.
//!
//! A device may refuse super-packets: a port then sends their frames one by one.
//!
//! Cost: O(1) for each frame, to check its header; two passes over headers for a segment that may be merged.
//! No allocation once the vectors have grown.

use super::segment::{
    CWR, GSO_TCP, IPV4_HEADER, IPV6_HEADER, Layout, NEEDS_CHECKSUM, PSH_FIN, TCP_HEADER, VNET_HEADER,
    Version, VnetHeader, add, get, protocol, put, sum,
};

/// `VIRTIO_NET_HDR_F_DATA_VALID`: the device that received the frame found its checksum right.
pub const CHECKSUM_VERIFIED: u8 = 2;
/// Maximum of segments in one super-packet. Chosen: 64 KB of full segments are 45.
pub const MAX_MERGED: usize = 64;
/// Least payload of segments that are merged, except for the last. Chosen: shorter ones are rare, and below
/// 64 bytes some devices cannot cut.
const LEAST_SEGMENT: usize = 256;
/// Bytes of the longest headers that are merged: Ethernet, two VLAN tags, IPv6, TCP with all its options.
const LONGEST_HEADERS: usize = 14 + 2 * 4 + IPV6_HEADER + 60;
/// The longest IP packet (RFC 791 section 3.1).
const LONGEST_PACKET: usize = 65_535;
/// Offset of the checksum in the TCP header.
const CHECKSUM: usize = 16;
const FLAGS: usize = 13;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
const URG: u8 = 0x20;
const CE: u8 = 0x03;

/// A frame that may be part of a super-packet.
#[derive(Clone, Copy, Debug)]
struct Candidate<'a> {
    vnet: VnetHeader,
    frame: &'a [u8],
    version: Version,
    network: usize,
    transport: usize,
    /// Offset of the payload.
    payload: usize,
}

impl<'a> Candidate<'a> {
    /// The frame with `vnet` before it; none if it must be sent as it is, which also `may_merge` decides by
    /// its kind and bytes.
    fn of(
        vnet: &[u8; VNET_HEADER],
        frame: &'a [u8],
        may_merge: impl Fn(Kind, &[u8]) -> bool,
    ) -> Option<Self> {
        // The cheapest checks first: most frames are no candidates, or all are.
        if vnet[1] != 0 || !matches!(vnet[0], NEEDS_CHECKSUM | CHECKSUM_VERIFIED) {
            return None;
        }
        let Layout { version, network, transport, end, protocol: carried } = Layout::of(frame)?;
        let (fixed, class) = match version {
            Version::V4 => (IPV4_HEADER, frame[network + 1]),
            Version::V6 => (IPV6_HEADER, frame[network + 1] >> 4),
        };
        let is_plain = carried == protocol::TCP && transport == network + fixed && end == frame.len();
        // Before the checksums, which cost most.
        if !is_plain || class & CE == CE || !may_merge(Kind::of(version, network), frame) {
            return None;
        }
        if version == Version::V4 && sum(&frame[network..transport]) != u16::MAX {
            return None;
        }
        let tcp = frame[transport..].first_chunk::<TCP_HEADER>()?;
        let length = 4 * usize::from(tcp[12] >> 4);
        let payload = transport + length;
        let is_data = length >= TCP_HEADER && payload < frame.len();
        if !is_data || tcp[FLAGS] & (SYN | RST | URG | CWR | ACK) != ACK {
            return None;
        }
        let candidate = Self { vnet: VnetHeader::read(vnet), frame, version, network, transport, payload };
        candidate.has_right_checksum().then_some(candidate)
    }

    fn has_right_checksum(&self) -> bool {
        let VnetHeader { flags, checksum_start, checksum_offset, .. } = self.vnet;
        if flags == CHECKSUM_VERIFIED {
            return true;
        }
        let place = (usize::from(checksum_start), usize::from(checksum_offset));
        let length = (self.frame.len() - self.transport) as u16;
        place == (self.transport, CHECKSUM)
            && get(&self.frame[self.transport..], CHECKSUM) == self.pseudo_header(length)
    }

    /// The sum of the pseudo-header of a segment of `length` bytes.
    fn pseudo_header(&self, length: u16) -> u16 {
        let addresses = match self.version {
            Version::V4 => &self.frame[self.network + 12..self.transport],
            Version::V6 => &self.frame[self.network + 8..self.transport],
        };
        add(add(sum(addresses), u16::from(protocol::TCP)), length)
    }

    const fn payload_length(&self) -> usize {
        self.frame.len() - self.payload
    }

    fn sequence(&self) -> u32 {
        let tcp = &self.frame[self.transport..];
        u32::from(get(tcp, 4)) << 16 | u32::from(get(tcp, 6))
    }

    fn ends_a_super_packet(&self) -> bool {
        self.frame[self.transport + FLAGS] & PSH_FIN != 0
    }

    /// Whether the headers are equal where a device keeps them equal. Both have the lengths of `self`.
    fn has_headers_of(&self, other: &Self) -> bool {
        let same = |from: usize, to: usize| self.frame[from..to] == other.frame[from..to];
        let (ip, tcp) = (self.network, self.transport);
        let is_same_ip = match self.version {
            // All but length, identification and checksum.
            Version::V4 => same(0, ip + 2) && same(ip + 6, ip + 10) && same(ip + 12, tcp),
            Version::V6 => same(0, ip + 4) && same(ip + 6, tcp),
        };
        let flags = self.frame[tcp + FLAGS] ^ other.frame[tcp + FLAGS];
        // All but sequence number and checksum.
        is_same_ip
            && same(tcp, tcp + 4)
            && same(tcp + 8, tcp + FLAGS)
            && flags & !PSH_FIN == 0
            && same(tcp + 14, tcp + CHECKSUM)
            && same(tcp + 18, self.payload)
    }
}

/// The kind of super-packet that a frame could be part of: devices may take some kinds and refuse others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind(u8);

impl Kind {
    /// Number of kinds: two versions of IP, with and without tags.
    pub const COUNT: usize = 4;

    /// The kind of a frame whose IP header of this version begins at `network`.
    const fn of(version: Version, network: usize) -> Self {
        let is_tagged = network > 14;
        Self((matches!(version, Version::V6) as u8) << 1 | is_tagged as u8)
    }

    /// The kind's number, below [`Kind::COUNT`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A super-packet that grows.
#[derive(Clone, Copy, Debug)]
struct Growing<'a> {
    first: Candidate<'a>,
    last: Candidate<'a>,
    count: usize,
    /// Bytes of payload.
    payload: usize,
}

impl<'a> Growing<'a> {
    const fn new(first: Candidate<'a>) -> Self {
        Self { first, last: first, count: 1, payload: first.payload_length() }
    }

    /// Whether `next` is the segment that follows.
    fn is_followed_by(&self, next: &Candidate<'_>) -> bool {
        let Self { first, last, count, payload } = self;
        let size = first.payload_length();
        let has_room = *count < MAX_MERGED
            && first.payload - first.network + payload + next.payload_length() <= LONGEST_PACKET;
        let place = |of: &Candidate<'_>| (of.version, of.network, of.transport, of.payload);
        let identification = |of: &Candidate<'_>| get(&of.frame[of.network..], 4);
        // A shorter segment is the last.
        has_room
            && size >= LEAST_SEGMENT
            && last.payload_length() == size
            && next.payload_length() <= size
            && !last.ends_a_super_packet()
            && first.vnet == next.vnet
            && place(first) == place(next)
            && next.sequence() == first.sequence().wrapping_add(*payload as u32)
            && (first.version == Version::V6
                || identification(next) == identification(first).wrapping_add(*count as u16))
            && first.has_headers_of(next)
    }

    fn push(&mut self, next: Candidate<'a>) {
        self.last = next;
        self.count += 1;
        self.payload += next.payload_length();
    }

    /// The headers of the super-packet, with the one before the frame.
    fn headers(&self) -> Headers {
        let Candidate { frame, version, network, transport, payload, .. } = self.first;
        let header = VnetHeader {
            flags: NEEDS_CHECKSUM,
            gso_type: GSO_TCP[usize::from(version == Version::V6)],
            header_length: payload as u16,
            gso_size: self.first.payload_length() as u16,
            checksum_start: transport as u16,
            checksum_offset: CHECKSUM as u16,
        };
        let mut headers = Headers { bytes: [0; Headers::MAX], length: VNET_HEADER + payload };
        let (before, bytes) = headers.bytes.split_at_mut(VNET_HEADER);
        before.copy_from_slice(&header.bytes());
        let bytes = &mut bytes[..payload];
        bytes.copy_from_slice(&frame[..payload]);
        let (ip, tcp) = bytes[network..].split_at_mut(transport - network);
        let segment = tcp.len() + self.payload;
        match version {
            Version::V4 => {
                put(ip, 2, (ip.len() + segment) as u16);
                put(ip, 10, 0);
                let checksum = !sum(ip);
                put(ip, 10, checksum);
            }
            Version::V6 => put(ip, 4, segment as u16),
        }
        tcp[FLAGS] |= self.last.frame[transport + FLAGS] & PSH_FIN;
        put(tcp, CHECKSUM, self.first.pseudo_header(segment as u16));
        headers
    }
}

/// The headers of a super-packet.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    bytes: [u8; Self::MAX],
    length: usize,
}

impl Headers {
    const MAX: usize = VNET_HEADER + LONGEST_HEADERS;

    /// The header before the frame, and those of the frame.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// A message: a frame as it is, or several as a super-packet.
#[derive(Clone, Copy, Debug)]
pub struct Message {
    /// Number of frames.
    pub count: usize,
    /// The properties of a super-packet; none for one frame.
    pub merged: Option<Merged>,
}

/// The properties of a super-packet.
#[derive(Clone, Copy, Debug)]
pub struct Merged {
    pub kind: Kind,
    /// Offset of the payload in each of its frames.
    pub payload: usize,
    /// Index of its headers in the plan.
    pub headers: usize,
}

/// The messages in which frames are sent, in order.
#[derive(Debug, Default)]
pub struct Plan {
    /// The messages in order.
    pub messages: Vec<Message>,
    /// Headers of super-packets.
    pub headers: Vec<Headers>,
    /// Number of frames in all messages.
    pub frames: usize,
}

impl Plan {
    /// Plans at most `limit` messages for the first of `frames`, each of which is the header before it and
    /// its bytes. `may_merge` decides by kind and length whether a frame may be merged.
    pub fn make<'a>(
        &mut self,
        limit: usize,
        frames: impl Iterator<Item = (&'a [u8; VNET_HEADER], &'a [u8])>,
        may_merge: impl Fn(Kind, &[u8]) -> bool,
    ) {
        (self.frames, _) = (0, (self.messages.clear(), self.headers.clear()));
        let mut growing: Option<Growing<'a>> = None;
        for (vnet, frame) in frames {
            let candidate = Candidate::of(vnet, frame, &may_merge);
            if let (Some(growing), Some(next)) = (&mut growing, &candidate)
                && growing.is_followed_by(next)
            {
                growing.push(*next);
                continue;
            }
            self.close(growing.take());
            if self.messages.len() == limit {
                return;
            }
            match candidate {
                Some(first) => growing = Some(Growing::new(first)),
                None => self.push(Message { count: 1, merged: None }),
            }
            // The growing super-packet will be a message too.
            if growing.is_none() && self.messages.len() == limit {
                return;
            }
        }
        self.close(growing);
    }

    fn close(&mut self, growing: Option<Growing<'_>>) {
        let Some(growing) = growing else { return };
        let merged = (growing.count > 1).then(|| {
            self.headers.push(growing.headers());
            let headers = self.headers.len() - 1;
            let Candidate { version, network, payload, .. } = growing.first;
            Merged { kind: Kind::of(version, network), payload, headers }
        });
        self.push(Message { count: growing.count, merged });
    }

    fn push(&mut self, message: Message) {
        self.frames += message.count;
        self.messages.push(message);
    }
}
