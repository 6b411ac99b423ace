//! The transmission time of each packet, without drift of the rate.
//!
//! A packet's time is rounded down to nanoseconds, and the remainder is carried to the next packet: the total
//! of n packets is exact to the nanosecond. Cost: an addition and a comparison per packet; a division when
//! the size differs from the previous packet's.

use crate::units::{Bytes, Rate, Span};

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The times of packets one after another at a rate above zero.
#[derive(Clone, Debug)]
pub struct Transmission {
    rate: Rate,
    /// The remainder of rounding down, in bit-nanoseconds; below `rate`.
    remainder: u64,
    /// The last size that was divided, with the quotient and the remainder of its bit-nanoseconds by the
    /// rate. Most packets of a link have one size, and a division costs more than the rest of this module.
    divided: (Bytes, u64, u64),
}

impl Transmission {
    /// A transmitter of `rate`.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, remainder: 0, divided: (Bytes::ZERO, 0, 0) }
    }

    /// The rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// The transmission time of the next packet, which has `size`.
    ///
    /// # Panics
    /// When the rate is zero, at which no transmission ends.
    #[inline(always)]
    pub fn time(&mut self, size: Bytes) -> Span {
        let rate = self.rate.as_bit();
        if self.divided.0 != size {
            self.divide(size);
        }
        let (_, mut nanos, remainder) = self.divided;
        // Both remainders are below the rate, so their sum is below twice the rate.
        self.remainder += remainder;
        if self.remainder >= rate {
            self.remainder -= rate;
            nanos += 1;
        }
        Span::from_nanos(nanos)
    }

    #[inline(never)]
    fn divide(&mut self, size: Bytes) {
        let rate = self.rate.as_bit();
        // A packet is below 2^19 bits and 10^9 is below 2^30: no overflow.
        let bit_nanos = size.bits() * NANOS_PER_SEC;
        self.divided = (size, bit_nanos / rate, bit_nanos % rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_rounded_off_is_carried() {
        // 1 byte at 7 bit/s takes 8/7 s: 1142857142 6/7 ns; seven of them take 8 s.
        let mut transmission = Transmission::new(Rate::from_bit(7));
        let times: [u64; 7] = core::array::from_fn(|_| transmission.time(Bytes::new(1)).as_nanos());
        assert_eq!(times[0], 1_142_857_142);
        assert_eq!(times.iter().sum::<u64>(), 8_000_000_000);
    }

    #[test]
    fn packets_of_two_sizes_share_one_remainder() {
        // 1 and 2 bytes in turn at 3 bit/s: 8/3 + 16/3 = 8 s a pair.
        let mut transmission = Transmission::new(Rate::from_bit(3));
        let mut pair =
            || transmission.time(Bytes::new(1)).as_nanos() + transmission.time(Bytes::new(2)).as_nanos();
        assert_eq!((pair(), pair()), (8_000_000_000, 8_000_000_000));
    }
}
