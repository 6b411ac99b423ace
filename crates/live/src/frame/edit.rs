//! Edits the few fields of a frame that routers change, and reads fields of a frame that leaves.
//!
//! Edits update the checksum of the IPv4 header incrementally (RFC 1624 equation 3). IPv6 has none, and the
//! checksums of TCP and UDP do not cover the changed fields (RFC 9293 section 3.1).
//!
//! Cost: O(1); no allocation, and no panic on any input.

use std::num::NonZeroU8;

use super::{ECN_BITS, IPV4_HEADER, IPV6_HEADER, TCP_HEADER, ipv6_class, protocol};

/// The codepoint "congestion experienced".
const CE: u8 = 0b11;

/// The position of the IP header in a parsed frame; its first four bits are the version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpHeader(NonZeroU8);

impl IpHeader {
    /// The header at this offset of the frame.
    pub(super) fn at(offset: usize) -> Option<Self> {
        u8::try_from(offset).ok().and_then(NonZeroU8::new).map(Self)
    }
}

/// The acknowledgement number and the destination port of the segment whose TCP header begins at `at` of a
/// frame. `at` comes from [`Parsed::acknowledgement`](super::Parsed::acknowledgement).
#[must_use]
pub fn acknowledgement(bytes: &[u8], at: u16) -> Option<(u16, u32)> {
    let header: &[u8; TCP_HEADER] = bytes.get(usize::from(at)..).filter(|_| at > 0)?.first_chunk()?;
    let port = u16::from_be_bytes([header[2], header[3]]);
    Some((port, u32::from_be_bytes([header[8], header[9], header[10], header[11]])))
}

/// Sets the ECN field to "congestion experienced" (RFC 3168 section 5). The caller checks that the frame is
/// ECN-capable. Without IP nothing happens.
pub fn set_ce(bytes: &mut [u8], ip: Option<IpHeader>) {
    set_class(bytes, ip, CE, CE);
}

/// Sets the differentiated services codepoint to the lower six bits of `dscp`. Without IP nothing happens.
pub fn set_dscp(bytes: &mut [u8], ip: Option<IpHeader>, dscp: u8) {
    set_class(bytes, ip, !CE, dscp << ECN_BITS);
}

/// Sets the identification of an IPv4 packet; leaves other packets alone.
///
/// Only hosts may change packets that are or may become fragments (RFC 6864 section 4): check
/// [`atomic_identification`] first.
pub fn set_identification(bytes: &mut [u8], ip: Option<IpHeader>, identification: u16) {
    if let Some(header) = header_mut::<IPV4_HEADER>(bytes, ip, 4) {
        replace(header, 4, identification.to_be_bytes());
    }
}

/// Sets the flow label of an IPv6 packet to the lower twenty bits of `flow_label`; leaves other packets
/// alone.
pub fn set_flow_label(bytes: &mut [u8], ip: Option<IpHeader>, flow_label: u32) {
    if let Some(header) = header_mut::<IPV6_HEADER>(bytes, ip, 6) {
        let [_, high, middle, low] = flow_label.to_be_bytes();
        header[1] = header[1] & 0xf0 | high & 0x0f;
        header[2] = middle;
        header[3] = low;
    }
}

/// The current differentiated services codepoint; none without IP.
#[must_use]
pub fn dscp(bytes: &[u8], ip: Option<IpHeader>) -> Option<u8> {
    let class = match header::<IPV4_HEADER>(bytes, ip, 4) {
        Some(header) => header[1],
        None => ipv6_class(header(bytes, ip, 6)?),
    };
    Some(class >> ECN_BITS)
}

/// The identification of an atomic IPv4 packet: neither a fragment nor allowed to become one, so that the
/// field has no meaning (RFC 6864 section 4). None for other packets, and where an authentication header
/// covers the field (RFC 4302 section 3.3.3.1.1).
#[must_use]
pub fn atomic_identification(bytes: &[u8], ip: Option<IpHeader>) -> Option<u16> {
    let header = header::<IPV4_HEADER>(bytes, ip, 4)?;
    // Above the 13 bits of the offset stand a reserved bit, DF, and MF.
    let is_atomic = u16::from_be_bytes([header[6], header[7]]) & 0x7fff == 0x4000;
    (is_atomic && header[9] != protocol::AUTHENTICATION).then(|| u16::from_be_bytes([header[4], header[5]]))
}

/// The flow label of an IPv6 packet; none for other packets.
#[must_use]
pub fn flow_label(bytes: &[u8], ip: Option<IpHeader>) -> Option<u32> {
    let header = header::<IPV6_HEADER>(bytes, ip, 6)?;
    Some(u32::from_be_bytes([0, header[1] & 0x0f, header[2], header[3]]))
}

/// Replaces the bits `mask` of the traffic class by those of `class`.
fn set_class(bytes: &mut [u8], ip: Option<IpHeader>, mask: u8, class: u8) {
    if let Some(header) = header_mut::<IPV4_HEADER>(bytes, ip, 4) {
        let class = header[1] & !mask | class & mask;
        replace(header, 0, [header[0], class]);
    } else if let Some(header) = header_mut::<IPV6_HEADER>(bytes, ip, 6) {
        let class = ipv6_class(header) & !mask | class & mask;
        header[0] = header[0] & 0xf0 | class >> 4;
        header[1] = class << 4 | header[1] & 0x0f;
    }
}

/// Writes a word at an even offset of an IPv4 header, except the checksum, and adds the difference to the
/// checksum: HC' = ~(~HC + ~m + m') (RFC 1624 equation 3).
fn replace(header: &mut [u8; IPV4_HEADER], at: usize, new: [u8; 2]) {
    let old = [header[at], header[at + 1]];
    // Keeps which of the two zeros of ones' complement the checksum has if nothing changes.
    if old == new {
        return;
    }
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let parts = [!checksum, !u16::from_be_bytes(old), u16::from_be_bytes(new)];
    let sum: u32 = parts.into_iter().map(u32::from).sum();
    // The sum of three words carries 2 at most, which is then added once more.
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    [header[at], header[at + 1]] = new;
    [header[10], header[11]] = (!(sum as u16)).to_be_bytes();
}

/// The fixed part of the header of this version. The version is checked again: a caller may pass the `ip` of
/// another frame by mistake.
fn header<const N: usize>(bytes: &[u8], ip: Option<IpHeader>, version: u8) -> Option<&[u8; N]> {
    bytes.get(usize::from(ip?.0.get())..)?.first_chunk().filter(|header| header[0] >> 4 == version)
}

fn header_mut<const N: usize>(bytes: &mut [u8], ip: Option<IpHeader>, version: u8) -> Option<&mut [u8; N]> {
    bytes.get_mut(usize::from(ip?.0.get())..)?.first_chunk_mut().filter(|header| header[0] >> 4 == version)
}
