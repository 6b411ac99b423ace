//! The timestamps option of TCP (RFC 7323 section 3.2).
//!
//! Cost: O(options), of which a header has at most 40 bytes; no allocation.

use super::{Parsed, Segment, TCP_HEADER};

/// What the option says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamps {
    /// The clock of the sender, in ticks of its own (TSval).
    pub value: u32,
    /// The latest such value of the other side that arrived in order (TSecr); none if the segment does not acknowledge, and
    /// it means nothing.
    pub echo: Option<u32>,
}

/// The timestamps in a frame, which was parsed, if it is a whole TCP segment that has them.
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
            // The length counts both bytes.
            [kind, length, ..] if kind != END && length >= 2 => options = options.get(length.into()..)?,
            _ => return None,
        }
    }
}
