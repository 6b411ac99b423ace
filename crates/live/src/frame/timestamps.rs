//! The timestamps option of TCP (RFC 7323 section 3.2).
//!
//! Cost: O(options), of which a header has at most 40 bytes; no allocation.

use super::{Parsed, Segment, TCP_HEADER};

/// The fields of the option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The clock of the sender, in ticks of the sender (TSval).
    pub value: u32,
    /// The latest TSval of the other side that arrived in order (TSecr); none if the segment has no ACK flag,
    /// in which case the field has no meaning.
    pub echo: Option<u32>,
}

/// The timestamps option of a parsed frame, if the frame is a whole TCP segment that has one.
#[must_use]
pub fn timestamps(frame: &[u8], parsed: &Parsed) -> Option<Timestamps> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const TIMESTAMPS: [u8; 2] = [8, 10];
    let segment = parsed.segment?;
    let header = frame.get(parsed.transport_offset?..)?;
    let length = 4 * usize::from(header.get(12)? >> 4);
    let mut options = header.get(TCP_HEADER..length)?;
    loop {
        match *options {
            [NO_OPERATION, ref rest @ ..] => options = rest,
            [kind, length, a, b, c, d, e, f, g, h, ..] if [kind, length] == TIMESTAMPS => {
                let echo = u32::from_be_bytes([e, f, g, h]);
                return Some(Timestamps {
                    value: u32::from_be_bytes([a, b, c, d]),
                    echo: (segment.flags & Segment::ACK != 0).then_some(echo),
                });
            }
            // The length includes the bytes of kind and length.
            [kind, length, ..] if kind != END && length >= 2 => options = options.get(length.into()..)?,
            _ => return None,
        }
    }
}
