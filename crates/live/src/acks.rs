//! Finds ACKs of TCP that a later one makes redundant.
//!
//! Cost: O(options), of which a header has at most 40 bytes; no allocation.

use crate::frame::{Parsed, Segment, parse, timestamps};

/// Bytes of the TCP header without options.
const TCP_HEADER: usize = 20;
/// The flag ACK.
const ACK: u8 = 0x10;
/// ECE and CWR, which must be equal in both ACKs, set or not.
const ECN_FLAGS: u8 = 0xc0;

/// Whether the frame `older` may be dropped when `newer` follows it. `older` must be a pure ACK of the same
/// addresses and ports whose only options are timestamps, so without SACK blocks. `newer` must acknowledge
/// more, with the same ECN flags and timestamps no earlier.
#[must_use]
pub fn supersedes(newer: &[u8], older: &[u8]) -> bool {
    decide(newer, older).unwrap_or(false)
}

fn decide(newer: &[u8], older: &[u8]) -> Option<bool> {
    let [new, old] = [parse(newer).ok()?, parse(older).ok()?];
    let [new_segment, old_segment] = [new.segment?, old.segment?];
    let [new_ack, old_ack] = [new_segment.acknowledges?, old_segment.acknowledges?];
    let ecn = |segment: Segment, frame, parsed| Some((segment.flags & ECN_FLAGS, reserved(frame, parsed)?));
    let [new_time, old_time] = [timestamps(newer, &new), timestamps(older, &old)];
    let is_later = match (new_time, old_time) {
        (None, None) => true,
        (Some(new), Some(old)) => {
            !is_before(new.value, old.value) && !is_before(new.echo.unwrap_or(0), old.echo.unwrap_or(0))
        }
        _ => false,
    };
    Some(
        new.flow()? == old.flow()?
            && old_segment.flags & !ECN_FLAGS == ACK
            && old_segment.payload.get() == 0
            && !new_segment.is_syn_or_reset()
            && ecn(new_segment, newer, &new)? == ecn(old_segment, older, &old)?
            && is_before(old_ack, new_ack)
            && is_later
            && has_timestamps_alone(older, &old)?,
    )
}

/// Whether a sequence number comes before another (RFC 9293 section 3.4).
const fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// The reserved bits of the header; the lowest is the AE flag of Accurate ECN (RFC 9768 section 3.1).
fn reserved(frame: &[u8], parsed: &Parsed) -> Option<u8> {
    Some(frame.get(parsed.transport_offset? + 12)? & 0x0f)
}

/// Whether the only options of the TCP header are timestamps and padding.
fn has_timestamps_alone(frame: &[u8], parsed: &Parsed) -> Option<bool> {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const TIMESTAMPS: u8 = 8;
    let header = frame.get(parsed.transport_offset?..)?;
    let mut options = header.get(TCP_HEADER..4 * usize::from(header.get(12)? >> 4))?;
    loop {
        options = match options {
            [] | [END, ..] => return Some(true),
            [NO_OPERATION, rest @ ..] => rest,
            [TIMESTAMPS, 10, rest @ ..] => rest.get(8..)?,
            _ => return Some(false),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 segment from this port with these flags, reserved bits, acknowledgement number, options and
    /// bytes of data.
    fn segment(port: u8, [flags, reserved]: [u8; 2], ack: u32, options: &[u8], data: usize) -> Vec<u8> {
        let header = 20 + options.len();
        let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
        frame.extend(((20 + header + data) as u16).to_be_bytes());
        frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, port, 0, 80, 0, 0, 0, 0]);
        frame.extend(ack.to_be_bytes());
        frame.extend([(header as u8 / 4) << 4 | reserved, flags, 0xff, 0xff, 0, 0, 0, 0]);
        frame.extend(options);
        frame.resize(14 + 20 + header + data, 0);
        frame
    }

    fn stamps(value: u8, echo: u8) -> [u8; 12] {
        [1, 1, 8, 10, 0, 0, 0, value, 0, 0, 0, echo]
    }

    const PURE: [u8; 2] = [ACK, 0];

    #[test]
    fn an_ack_goes_for_one_that_acknowledges_more_and_changes_nothing_else() {
        let goes = |newer: &[u8], older: &[u8]| supersedes(newer, older);
        let older = segment(1, PURE, 100, &[], 0);
        let newer = segment(1, PURE, 101, &[], 0);
        assert!(goes(&newer, &older) && goes(&segment(1, PURE, 200, &[], 500), &older));
        assert!(goes(&segment(1, PURE, 5, &[], 0), &segment(1, PURE, u32::MAX - 5, &[], 0)), "numbers wrap");
        let [early, late] = [stamps(1, 1), stamps(2, 2)];
        assert!(goes(&segment(1, PURE, 101, &late, 0), &segment(1, PURE, 100, &early, 0)));
        // A duplicate, a late one, one of another connection, a cut one, and UDP.
        assert!(
            !goes(&older, &older) && !goes(&older, &newer) && !goes(&segment(2, PURE, 101, &[], 0), &older)
        );
        assert!(!goes(&newer[..40], &older) && !goes(&newer, &older[..40]) && !goes(&[], &[]));
    }

    #[test]
    fn what_says_more_than_a_number_stays() {
        let newer = segment(1, PURE, 101, &[], 0);
        let stays = |older: Vec<u8>| assert!(!supersedes(&newer, &older), "{older:?}");
        // FIN, SYN, RST, PSH, URG, ECE, CWR, AE, and data.
        for flag in [1, 2, 4, 8, 32, 64, 128] {
            stays(segment(1, [ACK | flag, 0], 100, &[], 0));
        }
        stays(segment(1, [ACK, 1], 100, &[], 0));
        stays(segment(1, PURE, 100, &[], 1));
        // SACK, and an unknown option.
        stays(segment(1, PURE, 100, &[1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 2], 0));
        stays(segment(1, PURE, 100, &[253, 4, 0, 0], 0));
        // ECN flags that are equal in both carry no news.
        let echo = |ack| segment(1, [ACK | 64, 0], ack, &[], 0);
        assert!(
            supersedes(&echo(101), &echo(100)) && !supersedes(&echo(101), &segment(1, PURE, 100, &[], 0))
        );
        // Timestamps in only one of them, or earlier in the newer one.
        let stamped = |ack, value, echo| segment(1, PURE, ack, &stamps(value, echo), 0);
        assert!(
            !supersedes(&newer, &stamped(100, 1, 1))
                && !supersedes(&stamped(101, 1, 1), &segment(1, PURE, 100, &[], 0))
        );
        assert!(
            !supersedes(&stamped(101, 1, 2), &stamped(100, 2, 2))
                && !supersedes(&stamped(101, 2, 1), &stamped(100, 2, 2))
        );
        // A SYN or RST replaces no ACK.
        for flag in [2, 4] {
            assert!(!supersedes(&segment(1, [ACK | flag, 0], 101, &[], 0), &segment(1, PURE, 100, &[], 0)));
        }
    }
}
