//! Labels in IPv6 flow labels and IPv4 identifications, as `docs/wire-labels.md` specifies.
//!
//! A [`Label`] has 17 bits. Three bits in front of them are its kind; all twenty are the *word*:
//!
//! | kind | first three bits of the word | DSCP, code below 2^16 | DSCP, code from 2^16 |
//! |---|---|---|---|
//! | [`LabelKind::Tickets`] | 001 | 001011 = 11 | 001111 = 15 |
//! | [`LabelKind::AckTickets`] | 010 | 010011 = 19 | 010111 = 23 |
//! | [`LabelKind::Rate`] | 011 | 011011 = 27 | 011111 = 31 |
//! | [`LabelKind::Value`] | 100 | 100011 = 35 | 100111 = 39 |
//!
//! The DSCP is the first four bits of the word and then 11: a codepoint of pool 2, for experiments and local
//! use (RFC 2474 section 6). It marks the packet as labelled, because flow labels and identifications of
//! hosts are random. In IPv6 the word is the flow label; in IPv4 its last sixteen bits are the
//! identification. In IPv6 the first four bits thus stand twice, and must agree.
//!
//! - A packet has room for one label. An IPv4 packet has room only if it is atomic, so that its
//!   identification has no meaning (RFC 6864 section 4), and has no authentication header, which covers the
//!   identification.
//! - A label overwrites the DSCP, and the identification (IPv4) or flow label (IPv6). RFC 6437 section 3
//!   forbids forwarders to change flow labels. Labels are therefore for routers under one administration,
//!   whose edge removes them from packets that leave and from packets that enter. No router in between may
//!   spread traffic by flow label or DSCP, or packets of a flow overtake each other.
//! - Some devices read the first three bits of a DSCP as a precedence. They are equal in all labels of a
//!   kind. A device that clears them (RFC 9435 section 4.2) leaves 3 or 7, which mark no label: a label is
//!   lost, not changed.
//!
//! Cost: O(1), no allocation.

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;

use crate::frame::{self, IpHeader};

/// The first three bits of the word.
const fn kind_bits(kind: LabelKind) -> u8 {
    match kind {
        LabelKind::Tickets => 0b001,
        LabelKind::AckTickets => 0b010,
        LabelKind::Rate => 0b011,
        LabelKind::Value => 0b100,
    }
}

const fn kind_of(bits: u8) -> Option<LabelKind> {
    match bits {
        0b001 => Some(LabelKind::Tickets),
        0b010 => Some(LabelKind::AckTickets),
        0b011 => Some(LabelKind::Rate),
        0b100 => Some(LabelKind::Value),
        _ => None,
    }
}

/// The last two bits of every codepoint of pool 2.
const POOL_2: u8 = 0b11;
/// Bits of the word that the DSCP does not repeat.
const REST: u32 = 16;

/// The label of a packet; none if it has none.
#[must_use]
pub fn read(bytes: &[u8], ip: Option<IpHeader>) -> Option<(LabelKind, Label)> {
    let dscp = frame::dscp(bytes, ip).filter(|dscp| dscp & 0b11 == POOL_2)?;
    let kind = kind_of(dscp >> 3)?;
    let first = u32::from(dscp >> 2);
    let word = match frame::flow_label(bytes, ip) {
        Some(word) => Some(word).filter(|word| word >> REST == first)?,
        None => first << REST | u32::from(frame::atomic_identification(bytes, ip)?),
    };
    // The label drops the bits of the kind.
    Some((kind, Label::from_code(word)))
}

/// Writes a label, which replaces an older one, and returns whether the packet has room for it. A packet
/// without room is left as it is.
pub fn write(bytes: &mut [u8], ip: Option<IpHeader>, kind: LabelKind, label: Label) -> bool {
    let word = u32::from(kind_bits(kind)) << Label::BITS | label.code();
    // Four bits of the word, then the two of the pool.
    put(bytes, ip, (word >> REST) as u8 * 4 + POOL_2, word)
}

/// Removes the label, and returns whether there was one. The DSCP, and the identification or flow label,
/// become 0: their values before the label are unknown.
pub fn clear(bytes: &mut [u8], ip: Option<IpHeader>) -> bool {
    read(bytes, ip).is_some() && put(bytes, ip, 0, 0)
}

/// Writes the DSCP and the word, if there is room for one.
fn put(bytes: &mut [u8], ip: Option<IpHeader>, dscp: u8, word: u32) -> bool {
    let has_room =
        frame::atomic_identification(bytes, ip).is_some() || frame::flow_label(bytes, ip).is_some();
    if has_room {
        frame::set_dscp(bytes, ip, dscp);
        // Each call leaves packets of the other version alone; the identification has room for the last
        // sixteen bits.
        frame::set_identification(bytes, ip, word as u16);
        frame::set_flow_label(bytes, ip, word);
    }
    has_room
}
