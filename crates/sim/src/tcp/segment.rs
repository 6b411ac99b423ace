//! The fields of a TCP header that this model uses, and the sink by which segments leave.

use std::ops::BitOr;

use apportion_core::Ecn;
use apportion_core::units::{Bytes, Span, Time};

/// One TCP segment without the content of its payload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Sequence number of the first payload byte, or of the SYN or FIN.
    pub seq: u32,
    /// The next sequence number expected, if [`Flags::ACK`].
    pub ack: u32,
    /// The advertised window, scaled except on a SYN.
    pub window: u16,
    /// Payload bytes.
    pub payload: u16,
    /// SYN, FIN, ACK and the others.
    pub flags: Flags,
    /// The window scale option on a SYN, or the receiver's one-way delay on an ACK.
    pub extra: Extra,
    /// The timestamp option (RFC 7323 section 3): TSval of data, TSecr of an ACK; zero if there is none. In
    /// milliseconds, from 1.
    pub timestamp: u32,
    /// The SACK option (RFC 2018).
    pub sack: SackBlocks,
}

impl Segment {
    /// The timestamp of a segment sent at `now`.
    #[must_use]
    pub fn timestamp_at(now: Time) -> u32 {
        // The timestamp wraps after 49 days, as the option does.
        milliseconds(now).wrapping_add(1)
    }

    /// Whether `older`, sent earlier on the same connection, may be dropped: a pure ACK without SACK blocks
    /// that acknowledges less, with the same ECN flags, and with no later timestamp. A duplicate of this ACK
    /// may not.
    #[must_use]
    pub fn supersedes(&self, older: &Self) -> bool {
        let is_pure =
            older.flags.without_ecn() == Flags::ACK && older.payload == 0 && older.sack == SackBlocks::NONE;
        is_pure
            && self.flags.has(Flags::ACK)
            && !self.flags.has(Flags::SYN)
            && !self.flags.has(Flags::RST)
            && self.flags.ace() == older.flags.ace()
            && is_before(older.ack, self.ack)
            && (self.timestamp == 0) == (older.timestamp == 0)
            && !is_before(self.timestamp, older.timestamp)
    }

    /// The transmission time of the segment whose timestamp this ACK echoes, to a millisecond; `None` without
    /// the option.
    #[must_use]
    pub fn sent_at(&self, now: Time) -> Option<Time> {
        let ago = u64::from(Self::timestamp_at(now).wrapping_sub(self.timestamp));
        let into = now.as_nanos() % Span::from_millis(1).as_nanos();
        let ago = ago * Span::from_millis(1).as_nanos() + into;
        (self.timestamp != 0).then(|| now.as_nanos().checked_sub(ago).map(Time::from_nanos)).flatten()
    }
}

/// Whether a number comes before another (RFC 9293 section 3.4).
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Options that exclude each other. With separate fields a segment would exceed a cache line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extra {
    /// No option.
    #[default]
    None,
    /// The window scale option (RFC 7323 section 2), on a SYN only.
    WindowScale(u8),
    /// TSval of an ACK minus its TSecr, in milliseconds, little-endian: the one-way delay of the data that it
    /// answers, at most 65 s. Only LEDBAT uses it.
    OneWayDelay([u8; 2]),
}

impl Extra {
    /// The shift of the window scale option.
    #[must_use]
    pub const fn window_scale(self) -> Option<u8> {
        match self {
            Self::WindowScale(shift) => Some(shift),
            Self::None | Self::OneWayDelay(_) => None,
        }
    }

    /// The delay of data sent at the time of the timestamp `echoed`, which arrived at `arrival`.
    #[must_use]
    pub fn one_way(echoed: u32, arrival: Time) -> Self {
        let delay = Segment::timestamp_at(arrival).wrapping_sub(echoed);
        Self::OneWayDelay(u16::try_from(delay).unwrap_or(u16::MAX).to_le_bytes())
    }
}

fn milliseconds(time: Time) -> u32 {
    (time.as_nanos() / Span::from_millis(1).as_nanos()) as u32
}

/// The control bits of a header (RFC 9293 section 3.1, RFC 3168 section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// No flags.
    pub const NONE: Self = Self(0);
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgment field is valid.
    pub const ACK: Self = Self(0x10);
    /// Accurate ECN (RFC 9768 section 3.1). Stored in the place of URG, which the model does not use: a
    /// segment has no room for a ninth bit.
    pub const AE: Self = Self(0x20);
    /// ECN echo: a packet arrived with congestion experienced.
    pub const ECE: Self = Self(0x40);
    /// The sender has reduced its window.
    pub const CWR: Self = Self(0x80);
    /// The three bits that form the field ACE once both ends have agreed (RFC 9768 section 3.2.2).
    pub const ACE: Self = Self(0xe0);

    /// Whether every bit of `other` is set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
    /// All flags but AE, CWR and ECE.
    #[must_use]
    pub const fn without_ecn(self) -> Self {
        Self(self.0 & !Self::ACE.0)
    }
    /// The field ACE, 0 to 7.
    #[must_use]
    pub const fn ace(self) -> u8 {
        // AE, CWR and ECE, from the highest bit of the field down.
        (self.0 & Self::AE.0) >> 3 | (self.0 & (Self::CWR.0 | Self::ECE.0)) >> 6
    }
    /// The flags for the last three bits of `ace`.
    #[must_use]
    pub const fn from_ace(ace: u8) -> Self {
        Self((ace & 4) << 3 | (ace & 3) << 6)
    }
    /// The bits as in the header: the byte, and AE above it.
    #[must_use]
    pub const fn bits(self) -> u16 {
        let ae = self.0 & Self::AE.0;
        (self.0 ^ ae) as u16 | (ae as u16) << 3
    }
}

impl BitOr for Flags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Blocks in a SACK option: as many as fit next to a timestamp option (RFC 2018 section 3), and as ns-2 sends.
const MAX_BLOCKS: usize = 3;

/// Up to three blocks of a SACK option, the most recent first, their ends excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SackBlocks {
    /// An empty block ends the list.
    blocks: [(u32, u32); MAX_BLOCKS],
}

impl SackBlocks {
    /// No option.
    pub const NONE: Self = Self { blocks: [(0, 0); MAX_BLOCKS] };

    /// The first three of `blocks`, none of which is empty.
    pub fn from_recent(blocks: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut option = Self::NONE;
        for (place, block) in option.blocks.iter_mut().zip(blocks) {
            *place = block;
        }
        option
    }

    /// Whether there are no blocks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.blocks[0].0 == self.blocks[0].1
    }

    /// The blocks, the most recent first.
    #[must_use]
    pub fn as_slice(&self) -> &[(u32, u32)] {
        let len = self.blocks.iter().take_while(|(from, to)| from != to).count();
        &self.blocks[..len]
    }
}

/// Receives the segments of an endpoint.
pub trait SegmentSink {
    /// Sends `segment`, which occupies `size` on the wire, with `ecn` in its IP header.
    fn send(&mut self, segment: Segment, size: Bytes, ecn: Ecn);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_compact_and_keeps_three_blocks() {
        assert!(size_of::<Segment>() <= 48, "{}", size_of::<Segment>());
        let blocks = SackBlocks::from_recent([(1, 2), (3, 4), (5, 6), (7, 8)].into_iter());
        assert_eq!(blocks.as_slice(), [(1, 2), (3, 4), (5, 6)]);
    }

    #[test]
    fn flags_are_the_bits_of_the_header() {
        let flags = Flags::SYN | Flags::ACK;
        assert_eq!(flags.bits(), 0x12);
        assert!(flags.has(Flags::SYN) && !flags.has(Flags::SYN | Flags::FIN));
        // Bit 7 of the two bytes is AE (RFC 9768 figure 2), and no URG is left.
        assert_eq!((Flags::AE | Flags::ACK).bits(), 0x110);
        assert_eq!(Flags::ACE.bits(), 0x1c0);
        for ace in 0..8 {
            let flags = Flags::ACK | Flags::from_ace(ace);
            assert_eq!((flags.ace(), flags.without_ecn()), (ace, Flags::ACK));
        }
        assert_eq!(Flags::from_ace(4), Flags::AE);
    }
}
