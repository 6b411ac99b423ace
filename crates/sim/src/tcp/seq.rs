//! Sequence numbers: 32 bits on the wire, 64-bit offsets from the initial sequence number inside.

/// The sequence number on the wire of `offset` bytes after the initial sequence number.
#[must_use]
pub const fn wrap(isn: u32, offset: u64) -> u32 {
    isn.wrapping_add(offset as u32)
}

/// The offset of the sequence number `seq` that is nearest to `near`; `None` before the initial sequence
/// number.
///
/// Correct while sequence numbers in flight span less than 2^31 bytes, which a window of at most 2^30 ensures
/// (RFC 7323 section 2.3).
#[must_use]
pub const fn unwrap(isn: u32, seq: u32, near: u64) -> Option<u64> {
    let distance = seq.wrapping_sub(wrap(isn, near)).cast_signed();
    near.checked_add_signed(distance as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_the_wrap_of_sequence_numbers() {
        // ISN 2^32 - 2: offset 2 is sequence number 0.
        let isn = u32::MAX - 1;
        assert_eq!(wrap(isn, 2), 0);
        for near in [0_u64, 1, 2, 5_000, (1 << 32) - 1, 1 << 32, 5 << 32] {
            for distance in [-70_000_i64, -1, 0, 1, 70_000, (1 << 30)] {
                let offset = near.checked_add_signed(distance);
                let seq = wrap(isn, near.wrapping_add_signed(distance));
                assert_eq!(unwrap(isn, seq, near), offset);
            }
        }
    }
}
