//! The start and the length of the IP packet in a frame, by the link type of its capture
//! (tcpdump.org/linktypes.html).

use apportion_core::units::Bytes;

use super::{Odd, Order};

const NULL: u16 = 0;
const ETHERNET: u16 = 1;
const LOOP: u16 = 108;
const LINUX_SLL: u16 = 113;
const LINUX_SLL2: u16 = 276;
/// Raw IP: 12 and 14 are its numbers on BSD systems, 228 and 229 are of one version only.
const RAW: [u16; 5] = [12, 14, 101, 228, 229];

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and the tag that some switches used before it.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// A session of PPPoE (RFC 2516): six bytes, then the protocol of PPP.
const PPPOE: u16 = 0x8864;

/// The shortest header of version 4 (RFC 791) and that of version 6 (RFC 8200).
const IPV4_HEADER: u64 = 20;
const IPV6_HEADER: u64 = 40;

/// The size of the IP packet in a frame of `wire` bytes, of which `data` was captured.
pub(super) fn packet_size(link: u16, wire: u64, data: &[u8]) -> Result<Bytes, Odd> {
    let begin = begin(link, data)?;
    let packet = data.get(begin..).ok_or(Odd::Headless)?;
    let room = wire.checked_sub(begin as u64).filter(|room| *room >= IPV4_HEADER).ok_or(Odd::Lengths)?;
    let (least, said) = match packet.first().map(|byte| (byte >> 4, byte & 0xf)) {
        // IP by the link type or the type field.
        None => (IPV4_HEADER, 0),
        Some((4, words)) if words < 5 => return Err(Odd::Lengths),
        Some((4, words)) => (4 * u64::from(words), Order::Big.u16(packet, 2).map_or(0, u64::from)),
        // A length of zero, which version 6 has for packets larger than 65,535 bytes, stays zero.
        Some((6, _)) => {
            let payload = Order::Big.u16(packet, 4).map_or(0, u64::from);
            (IPV6_HEADER, if payload == 0 { 0 } else { IPV6_HEADER + payload })
        }
        Some(_) => return Err(Odd::NotIp),
    };
    // Zero if the header was not captured, or if the adapter splits the packet later.
    let size = if said == 0 { room } else { said };
    if size < least || size > room { Err(Odd::Lengths) } else { Ok(Bytes::new(size)) }
}

/// The offset of the IP packet.
fn begin(link: u16, data: &[u8]) -> Result<usize, Odd> {
    match link {
        NULL | LOOP => {
            // NULL uses the byte order of the host; numbers of address families are below 256.
            match data.first_chunk().ok_or(Odd::Headless)? {
                [family, 0, 0, 0] | [0, 0, 0, family] if is_ip_family(*family) => Ok(4),
                _ => Err(Odd::NotIp),
            }
        }
        ETHERNET => behind_tags(data, 12, 14),
        LINUX_SLL => behind_tags(data, 14, 16),
        LINUX_SLL2 => behind_tags(data, 0, 20),
        _ if RAW.contains(&link) => Ok(0),
        _ => Err(Odd::LinkType(link)),
    }
}

/// `AF_INET`, and `AF_INET6` of Linux, NetBSD, FreeBSD and macOS.
fn is_ip_family(family: u8) -> bool {
    matches!(family, 2 | 10 | 24 | 28 | 30)
}

/// The offset of the packet in a frame with its type field at `kind` and its payload at `begin`.
fn behind_tags(data: &[u8], mut kind: usize, mut begin: usize) -> Result<usize, Odd> {
    loop {
        match Order::Big.u16(data, kind).ok_or(Odd::Headless)? {
            IPV4 | IPV6 => return Ok(begin),
            // The type field follows two bytes of the tag.
            tag if TAGS.contains(&tag) => (kind, begin) = (begin + 2, begin + 4),
            PPPOE => {
                return match Order::Big.u16(data, begin + 6).ok_or(Odd::Headless)? {
                    0x0021 | 0x0057 => Ok(begin + 8),
                    _ => Err(Odd::NotIp),
                };
            }
            _ => return Err(Odd::NotIp),
        }
    }
}
