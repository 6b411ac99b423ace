//! Labels in IPv6 flow labels and IPv4 identifications: the page is `docs/wire-labels.md`.
//!
//! A [`Label`] is 17 bits. Before them stand three that say its kind, and these twenty are the *word*:
//!
//! | kind | first three bits of the word | DSCP, code below 2^16 | DSCP, code from 2^16 |
//! |---|---|---|---|
//! | [`LabelKind::Tickets`] | 001 | 001011 = 11 | 001111 = 15 |
//! | [`LabelKind::AckTickets`] | 010 | 010011 = 19 | 010111 = 23 |
//! | [`LabelKind::Rate`] | 011 | 011011 = 27 | 011111 = 31 |
//!
//! The DSCP is the first four bits of the word and then 11: of pool 2, which is left to experiments and local
//! use (RFC 2474 section 6). It marks the packet as labelled, for flow labels and identifications of hosts
//! are random. The word itself is the flow label of IPv6, or its last sixteen bits are the identification of
//! IPv4. In IPv6 the first four bits thus stand twice, and must agree.
//!
//! - A packet has room for one label. An IPv4 packet has none unless it is atomic, so that its identification
//!   says nothing (RFC 6864 section 4), and without an authentication header, which covers the
//!   identification.
//! - What stood there is lost: of IPv4 the DSCP and the identification, of IPv6 the DSCP and the flow label.
//!   RFC 6437 section 3 lets forwarders change no flow label. Labels are therefore for routers under one
//!   administration, whose edge takes them off packets that leave, and off those that come in; and no router
//!   between may spread traffic by flow label or DSCP, or packets of a flow overtake each other.
//! - The first three bits of a DSCP are a precedence to some devices. They are alike in all labels of a kind.
//!   And a device that clears them (RFC 9435 section 4.2) leaves 3 or 7, which mark no label: a label is
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
    }
}

const fn kind_of(bits: u8) -> Option<LabelKind> {
    match bits {
        0b001 => Some(LabelKind::Tickets),
        0b010 => Some(LabelKind::AckTickets),
        0b011 => Some(LabelKind::Rate),
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

/// Writes a label over whatever stands there, an older one included, and says whether the packet has room for
/// one. One without room is left as it is.
pub fn write(bytes: &mut [u8], ip: Option<IpHeader>, kind: LabelKind, label: Label) -> bool {
    let word = u32::from(kind_bits(kind)) << Label::BITS | label.code();
    // Four bits, then two.
    put(bytes, ip, (word >> REST) as u8 * 4 + POOL_2, word)
}

/// Takes the label off, and says whether there was one: then DSCP and identification, or DSCP and flow label,
/// are 0, for what stood there before the label is not known.
pub fn clear(bytes: &mut [u8], ip: Option<IpHeader>) -> bool {
    read(bytes, ip).is_some() && put(bytes, ip, 0, 0)
}

/// Writes the DSCP and the word, if there is room for one.
fn put(bytes: &mut [u8], ip: Option<IpHeader>, dscp: u8, word: u32) -> bool {
    let has_room =
        frame::atomic_identification(bytes, ip).is_some() || frame::flow_label(bytes, ip).is_some();
    if has_room {
        frame::set_dscp(bytes, ip, dscp);
        // Each leaves packets of the other kind alone; the identification has room for the last sixteen bits.
        frame::set_identification(bytes, ip, word as u16);
        frame::set_flow_label(bytes, ip, word);
    }
    has_room
}
