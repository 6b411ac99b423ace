//! Packet captures: pcap (draft-ietf-opsawg-pcap) and pcapng (draft-ietf-opsawg-pcapng), in either byte order.
//!
//! The time and the size of each frame with an IP packet are kept. Frames that cannot be replayed are left
//! out, counted and named. Lengths are checked against the bytes of the file, so that its size bounds the
//! memory.

mod link;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use apportion_core::units::{Bytes, Span};

use crate::files::{FileError, MAX_RECORDS};
use crate::packet_size::{MAX_PACKET, UDP_HEADER};

/// Maximum captured bytes of a frame: MAXIMUM_SNAPLEN of libpcap. A larger length means damage.
const MAX_KEPT: usize = 262_144;
/// Latest time, in nanoseconds since 1970: in the year 2116, so that sums with times of a run fit 64 bits.
const LATEST: u64 = 1 << 62;

/// The packets of a capture that can be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// Time since the first packet and size of each packet from the network layer on, ascending in time.
    pub packets: Arc<[(Span, Bytes)]>,
    /// Packets that were left out, and assumptions about missing data: one sentence each.
    pub remarks: Vec<String>,
}

impl Capture {
    /// Reads a capture. The size of a packet is the length in its IP header, or, if the header was not
    /// captured or offloading left it zero, the length of the frame on the wire without its link-layer
    /// header.
    ///
    /// # Errors
    /// The bytes are no capture, or hold no packet that can be replayed, or one larger than a packet can be.
    pub fn parse(bytes: &[u8]) -> Result<Self, FileError> {
        let mut frames = Frames::default();
        let order = |magic| order_of(bytes, magic);
        let end = if bytes.starts_with(&SECTION.to_le_bytes()) {
            pcapng(bytes, &mut frames)?
        } else if let Some(order) = order(0xa1b2_c3d4) {
            pcap(bytes, order, 1_000, &mut frames)?
        } else if let Some(order) = order(0xa1b2_3c4d) {
            pcap(bytes, order, 1, &mut frames)?
        } else {
            let message = "not a pcap or pcapng file; other captures are converted by `editcap in out.pcap`";
            return Err(FileError::new(None, message));
        };
        frames.into_capture(end)
    }
}

/// The byte order in which the first four bytes are this number.
fn order_of(bytes: &[u8], magic: u32) -> Option<Order> {
    [Order::Little, Order::Big].into_iter().find(|order| order.u32(bytes, 0) == Some(magic))
}

#[derive(Clone, Copy)]
enum Order {
    Little,
    Big,
}

impl Order {
    fn u16(self, bytes: &[u8], at: usize) -> Option<u16> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if matches!(self, Self::Big) { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    fn u32(self, bytes: &[u8], at: usize) -> Option<u32> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if matches!(self, Self::Big) { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(self, bytes: &[u8], at: usize) -> Option<u64> {
        let bytes = *bytes.get(at..)?.first_chunk()?;
        Some(if matches!(self, Self::Big) { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }

    /// A length, as an index.
    fn len(self, bytes: &[u8], at: usize) -> Option<usize> {
        usize::try_from(self.u32(bytes, at)?).ok()
    }
}

/// The end of a capture.
#[derive(Clone, Copy)]
enum End {
    Whole,
    /// The file ends within a record.
    Cut,
    /// A length is invalid for a record, so the records after it cannot be found.
    Damaged,
}

/// Reads the records of a pcap file, with fractions of seconds in units of this many nanoseconds.
fn pcap(bytes: &[u8], order: Order, unit: u64, frames: &mut Frames) -> Result<End, FileError> {
    // The upper half of the word holds the length of the frame check sequence.
    let Some(link) = order.u32(bytes, 20).map(|word| word as u16) else { return Ok(End::Cut) };
    let mut rest = &bytes[24..];
    while !rest.is_empty() {
        let word = |at| order.u32(rest, at).map(u64::from);
        let (Some(seconds), Some(fraction), Some(kept), Some(wire)) =
            (word(0), word(4), order.len(rest, 8), order.u32(rest, 12))
        else {
            return Ok(End::Cut);
        };
        if kept > MAX_KEPT {
            return Ok(End::Damaged);
        }
        let Some(data) = rest.get(16..16 + kept) else { return Ok(End::Cut) };
        frames.add(Some(seconds * 1_000_000_000 + fraction * unit), link, wire, data)?;
        rest = &rest[16 + kept..];
    }
    Ok(End::Whole)
}

/// Block types of pcapng, draft-ietf-opsawg-pcapng section 11.1. The type of sections is the same in both
/// byte orders.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

/// Reads the blocks of a pcapng file. Blocks without packets are skipped.
fn pcapng(bytes: &[u8], frames: &mut Frames) -> Result<End, FileError> {
    let mut order = Order::Little;
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let Some(kind) = order.u32(rest, 0) else { return Ok(End::Cut) };
        if kind == SECTION {
            if rest.len() < 12 {
                return Ok(End::Cut);
            }
            let Some(of_section) = order_of(&rest[8..], 0x1a2b_3c4d) else { return Ok(End::Damaged) };
            order = of_section;
            interfaces.clear();
        }
        let Some(length) = order.len(rest, 4) else { return Ok(End::Cut) };
        // Like Wireshark: some writers leave the padding out of the length.
        let Some(padded) = length.checked_next_multiple_of(4).filter(|_| length >= 12) else {
            return Ok(End::Damaged);
        };
        let Some(block) = rest.get(..padded) else { return Ok(End::Cut) };
        if order.len(block, padded - 4) != Some(length) {
            return Ok(End::Damaged);
        }
        let body = &block[8..padded - 4];
        match kind {
            INTERFACE => interfaces.push(Interface::read(body, order)),
            ENHANCED_PACKET | OBSOLETE_PACKET => {
                let index = match kind {
                    ENHANCED_PACKET => order.len(body, 0),
                    _ => order.u16(body, 0).map(usize::from),
                };
                let header =
                    (order.u32(body, 4), order.u32(body, 8), order.len(body, 12), order.u32(body, 16));
                let (Some(index), (Some(high), Some(low), Some(kept), Some(wire))) = (index, header) else {
                    return Ok(End::Damaged);
                };
                let Some(data) = body[20..].get(..kept) else { return Ok(End::Damaged) };
                match interfaces.get(index) {
                    Some(interface) => {
                        let time = interface.time(u64::from(high) << 32 | u64::from(low));
                        // A time that does not fit is refused like others that are too late.
                        frames.add(Some(time.unwrap_or(u64::MAX)), interface.link, wire, data)?;
                    }
                    None => frames.skip(Odd::NoInterface),
                }
            }
            SIMPLE_PACKET => {
                let Some(wire) = order.u32(body, 0) else { return Ok(End::Damaged) };
                match interfaces.first() {
                    Some(interface) => {
                        let kept = wire.min(interface.snap) as usize;
                        // The bytes beyond are padding.
                        let data = &body[4..];
                        frames.add(None, interface.link, wire, &data[..kept.min(data.len())])?;
                    }
                    None => frames.skip(Odd::NoInterface),
                }
            }
            _ => (),
        }
        rest = &rest[padded..];
    }
    Ok(End::Whole)
}

/// An interface of a section.
struct Interface {
    link: u16,
    /// Maximum captured bytes of a frame.
    snap: u32,
    /// `if_tsresol`: the unit of times as a negative power of two, if the highest bit is set, else of ten.
    resolution: u8,
    /// `if_tsoffset`, in seconds.
    offset: i64,
}

impl Interface {
    fn read(body: &[u8], order: Order) -> Self {
        let link = order.u16(body, 0).unwrap_or(u16::MAX);
        let snap = order.u32(body, 4).filter(|snap| *snap > 0).unwrap_or(u32::MAX);
        let mut interface = Self { link, snap, resolution: 6, offset: 0 };
        let mut rest = body.get(8..).unwrap_or_default();
        while let (Some(code @ 1..), Some(length)) = (order.u16(rest, 0), order.u16(rest, 2)) {
            let length = usize::from(length);
            let Some(value) = rest[4..].get(..length) else { break };
            match (code, value) {
                (9, [resolution]) => interface.resolution = *resolution,
                (14, _) => interface.offset = order.u64(value, 0).map_or(0, u64::cast_signed),
                _ => (),
            }
            rest = rest[4..].get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        interface
    }

    /// Nanoseconds since 1970; none before, or beyond 64 bits.
    fn time(&self, stamp: u64) -> Option<u64> {
        const NANOS: i128 = 1_000_000_000;
        let exponent = u32::from(self.resolution & 0x7f);
        let stamp = i128::from(stamp) * NANOS;
        let since = if self.resolution & 0x80 > 0 {
            stamp >> exponent
        } else {
            10_i128.checked_pow(exponent).map_or(0, |per_second| stamp / per_second)
        };
        u64::try_from(since + i128::from(self.offset) * NANOS).ok()
    }
}

/// Why a frame cannot be replayed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Odd {
    NotIp,
    LinkType(u16),
    Short,
    Lengths,
    Headless,
    NoInterface,
    Time,
}

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotIp => f.write_str("not IP"),
            Self::LinkType(link) => {
                write!(
                    f,
                    "of link type {link}, which is not supported; capture on Ethernet, raw IP or `-i any`"
                )
            }
            Self::Short => write!(f, "with less than the {UDP_HEADER} of headers that a datagram has"),
            Self::Lengths => f.write_str("with lengths of which one is false"),
            Self::Headless => f.write_str("kept only in part, without what says whether they are IP"),
            Self::NoInterface => f.write_str("of an interface that is not described"),
            Self::Time => f.write_str("with a time before 1970 or after 2115"),
        }
    }
}

/// The frames of a capture so far.
#[derive(Default)]
struct Frames {
    /// Nanoseconds since 1970 and size, in the order of the file.
    packets: Vec<(u64, Bytes)>,
    /// Number of frames, including those that are skipped.
    count: usize,
    /// Number of skipped frames of each kind, and the number of the first.
    odd: BTreeMap<Odd, (usize, usize)>,
    /// Number of packets with a time before that of their predecessor.
    back: usize,
    /// Packets without a time.
    timeless: usize,
    /// Number of these before the first packet with a time.
    leading: usize,
}

impl Frames {
    fn skip(&mut self, odd: Odd) {
        self.count += 1;
        self.odd.entry(odd).or_insert((0, self.count)).0 += 1;
    }

    /// Adds a frame of `wire` bytes, of which `data` was captured.
    fn add(&mut self, time: Option<u64>, link: u16, wire: u32, data: &[u8]) -> Result<(), FileError> {
        // Captured bytes existed, whatever the length field says.
        let wire = u64::from(wire).max(data.len() as u64);
        let size = match link::packet_size(link, wire, data) {
            Ok(size) if size < UDP_HEADER => Err(Odd::Short),
            Ok(_) if time.is_some_and(|time| time > LATEST) => Err(Odd::Time),
            read => read,
        };
        let size = match size {
            Ok(size) => size,
            Err(odd) => {
                self.skip(odd);
                return Ok(());
            }
        };
        self.count += 1;
        if size > MAX_PACKET {
            let message = format!(
                "packet {} has {size}, and a packet at most {MAX_PACKET}; capture with offloads off, for example \
                 `ethtool -K eth0 gro off lro off tso off`",
                self.count
            );
            return Err(FileError::new(None, message));
        }
        if self.packets.len() >= MAX_RECORDS {
            return Err(FileError::new(None, format!("more than {MAX_RECORDS} packets")));
        }
        let before = self.packets.last().map(|(time, _)| *time);
        match (time, before) {
            (Some(time), Some(before)) if time < before => self.back += 1,
            (None, _) => {
                self.leading += usize::from(self.timeless == self.packets.len());
                self.timeless += 1;
            }
            _ => (),
        }
        self.packets.push((time.or(before).unwrap_or(0), size));
        Ok(())
    }

    fn into_capture(mut self, end: End) -> Result<Capture, FileError> {
        let mut remarks: Vec<String> = Vec::from_iter(self.left_out());
        let count = self.count;
        match end {
            End::Whole => (),
            End::Cut => remarks.push(format!("the file was cut: what follows frame {count} is not whole")),
            End::Damaged => {
                remarks.push(format!("the file is damaged behind frame {count}, and no more is read"));
            }
        }
        if self.packets.is_empty() {
            remarks.insert(0, "there are no packets in it".to_owned());
            return Err(FileError::new(None, remarks.join("; ")));
        }
        if self.timeless > 0 {
            remarks.push(format!(
                "{} packets have no time (simple packet blocks); each is sent with the one before it",
                self.timeless
            ));
        }
        if self.back > 0 {
            remarks.push(format!(
                "times that go back: {}; packets are sent in the order of their times",
                self.back
            ));
        }
        if let Some((leading, [(time, _), ..])) = self.packets.split_at_mut_checked(self.leading) {
            leading.iter_mut().for_each(|packet| packet.0 = *time);
        }
        self.packets.sort_by_key(|(time, _)| *time);
        let first = self.packets.first().map_or(0, |(time, _)| *time);
        let packets = self.packets.into_iter().map(|(time, size)| (Span::from_nanos(time - first), size));
        Ok(Capture { packets: packets.collect(), remarks })
    }

    /// The sentence about skipped frames.
    fn left_out(&self) -> Option<String> {
        let skipped: usize = self.odd.values().map(|(count, _)| count).sum();
        let each =
            |(odd, (count, first)): (&Odd, &(usize, usize))| format!("{count} {odd} (first frame {first})");
        let kinds: Vec<_> = self.odd.iter().map(each).collect();
        (skipped > 0).then(|| format!("{skipped} of {} frames are skipped: {}", self.count, kinds.join(", ")))
    }
}

#[cfg(test)]
mod tests;
