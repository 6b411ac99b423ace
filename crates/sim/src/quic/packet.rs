//! QUIC packets of this model, and the sink by which they leave.

use apportion_core::Ecn;
use apportion_core::units::{Bytes, Span};
use apportion_scenario::quic::MAX_RANGES;

/// Packet numbers begin at zero (RFC 9000 section 12.3); their lower bits are read like sequence numbers (appendix A.3).
pub(super) const ISN: u32 = 0;
/// A datagram of the handshake: 1200 bytes (RFC 9000 section 14.1) and the headers of IPv4 and UDP.
pub(super) const HANDSHAKE: Bytes = Bytes::new(1_228);

/// One packet, without the content of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet {
    /// The sender opens the connection; the number counts attempts.
    Initial(u32),
    /// The receiver answers.
    Accept(u32),
    /// Data of the stream.
    Stream(Stream),
    /// The receiver acknowledges.
    Ack(Ack),
}

/// A packet with one STREAM frame (RFC 9000 section 19.8). Without data it stands for a PING (section 19.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The lower bits of its number (RFC 9000 section 17.1).
    pub number: u32,
    /// The number of the latest packet from the receiver, in place of an ACK frame for it.
    pub heard: u32,
    /// Bytes of the stream.
    pub length: u16,
    /// The offset in the stream. Bytes in the order of the host: an aligned number would not fit a cache line
    /// with the rest.
    offset: [u8; 8],
}

impl Stream {
    /// A packet of `length` bytes from `offset` on.
    #[must_use]
    pub const fn new(number: u32, heard: u32, offset: u64, length: u16) -> Self {
        Self { number, heard, length, offset: offset.to_ne_bytes() }
    }

    /// The offset of its bytes in the stream.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        u64::from_ne_bytes(self.offset)
    }
}

/// A range of lower bits of packet numbers, its end excluded.
pub type Range = (u32, u32);

/// The number of ranges in a packet; others are stored separately.
pub const INLINE: usize = 2;

/// A packet with nothing but an ACK frame (RFC 9000 section 19.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The number of the packet itself, from 1.
    pub number: u32,
    /// ACK Delay, in units of 8 µs (ack_delay_exponent 3, RFC 9000 section 18.2).
    pub delay: u32,
    /// ECN-CE Count (section 19.3.2).
    pub ce: u32,
    /// The number of ranges.
    pub count: u8,
    /// The first ranges, the highest first.
    ranges: [Range; INLINE],
}

/// The unit of an ACK delay.
const DELAY_UNIT: Span = Span::from_micros(8);

impl Ack {
    /// An ACK of `ranges`, the highest first. The packet passes those for which it has no room separately.
    #[must_use]
    pub fn new(number: u32, delay: Span, ce: u32, ranges: &[Range]) -> (Self, &[Range]) {
        let mut inline = [(0, 0); INLINE];
        inline.iter_mut().zip(ranges).for_each(|(place, range)| *place = *range);
        let delay = u32::try_from(delay.as_nanos() / DELAY_UNIT.as_nanos()).unwrap_or(u32::MAX);
        let count = ranges.len().min(MAX_RANGES) as u8;
        (Self { number, delay, ce, count, ranges: inline }, ranges.get(INLINE..).unwrap_or_default())
    }

    /// The delay of the ACK after the arrival of the highest packet.
    #[must_use]
    pub fn delay(&self) -> Span {
        DELAY_UNIT * u64::from(self.delay)
    }

    /// The ranges in the packet.
    #[must_use]
    pub fn ranges(&self) -> &[Range] {
        &self.ranges[..usize::from(self.count).min(INLINE)]
    }

    /// Whether more ranges are stored separately.
    #[must_use]
    pub fn has_more(&self) -> bool {
        usize::from(self.count) > INLINE
    }
}

/// The encoded length of a number in bytes (RFC 9000 section 16).
const fn length(number: u64) -> u64 {
    match number {
        0..0x40 => 1,
        0x40..0x4000 => 2,
        0x4000..0x4000_0000 => 4,
        _ => 8,
    }
}

/// The size of an ACK frame (RFC 9000 section 19.3) of `ranges` of whole packet numbers, the highest first,
/// none empty. `ecn` has the number of packets that arrived with ECT(0) and with CE, if counts are reported.
#[must_use]
pub fn ack_frame(delay: Span, ranges: &[(u64, u64)], ecn: Option<(u64, u64)>) -> Bytes {
    let Some(&(from, to)) = ranges.first() else { return Bytes::ZERO };
    let delay = delay.as_nanos() / DELAY_UNIT.as_nanos();
    let head = 1 + length(to - 1) + length(delay) + length(ranges.len() as u64 - 1) + length(to - 1 - from);
    // Section 19.3.1: a gap is encoded as one less than its packets, a length as one less than those of the
    // range.
    let more = ranges.windows(2).map(|pair| {
        let ((above, _), (from, to)) = (pair[0], pair[1]);
        length(above - to - 1) + length(to - 1 - from)
    });
    // Section 19.3.2: ECT0, ECT1 and CE.
    let counts = ecn.map_or(0, |(ect0, ce)| length(ect0) + length(0) + length(ce));
    Bytes::new(head + more.sum::<u64>() + counts)
}

/// Receives the packets of an end.
pub trait PacketSink {
    /// Sends `packet`, which occupies `size` on the wire, with `ecn` in its IP header. `more` are ranges of
    /// an ACK frame for which it has no room.
    fn send(&mut self, packet: Packet, more: &[Range], size: Bytes, ecn: Ecn);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_has_the_size_of_its_numbers() {
        // Packets 0 to 9: type, largest 9, delay 1 ms = 125 units (2 bytes), count 0, range 9.
        assert_eq!(ack_frame(Span::from_millis(1), &[(0, 10)], None), Bytes::new(1 + 1 + 2 + 1 + 1));
        // 20000 to 20099, 100 missing, and 0 to 19899: 4 for the largest, 2 for 99; a gap of 99 and 19899.
        let ranges = [(20_000, 20_100), (0, 19_900)];
        assert_eq!(ack_frame(Span::ZERO, &ranges, None), Bytes::new(1 + 4 + 1 + 1 + 2 + 2 + 4));
        assert_eq!(ack_frame(Span::ZERO, &[(0, 1)], Some((500, 3))), Bytes::new(5 + 2 + 1 + 1));
    }

    #[test]
    fn a_packet_keeps_two_ranges_and_hands_the_others_on() {
        assert!(size_of::<Packet>() <= 36, "{}", size_of::<Packet>());
        let all = [(9, 10), (7, 8), (5, 6), (3, 4), (1, 2)];
        let (ack, more) = Ack::new(1, Span::from_micros(17), 0, &all);
        assert_eq!((ack.ranges(), more, ack.has_more()), (&all[..2], &all[2..], true));
        assert_eq!(ack.delay(), Span::from_micros(16));
        let (ack, more) = Ack::new(1, Span::ZERO, 0, &all[..2]);
        assert_eq!((ack.ranges(), more.len(), ack.has_more()), (&all[..2], 0, false));
    }
}
