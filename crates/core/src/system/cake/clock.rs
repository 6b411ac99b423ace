//! A shaper in deficit mode, and the size of packets on the wire.

use crate::choice;
use crate::units::{Bytes, Span, Time};

choice! {
    /// The framing of packets by the link layer.
    pub enum Framing {
        /// No framing.
        None = "none",
        /// Cells of 53 bytes that hold 48.
        Atm = "atm",
        /// 64b/65b: one more byte for each 64.
        Ptm = "ptm",
    }
}

/// The conversion from packet sizes to sizes on the wire.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkLayer {
    /// The part of packet sizes that is not the IP packet.
    pub less: Bytes,
    pub overhead: Bytes,
    pub mpu: Bytes,
    pub framing: Framing,
}

impl LinkLayer {
    /// The size on the wire of a packet of `size`.
    #[inline]
    pub fn size(self, size: Bytes) -> Bytes {
        let size = (size.saturating_sub(self.less) + self.overhead).max(self.mpu).get();
        Bytes::new(match self.framing {
            Framing::None => size,
            Framing::Atm => size.div_ceil(48) * 53,
            Framing::Ptm => size + size.div_ceil(64),
        })
    }
}

/// The maximum lag of a clock. Chosen: the precision of timers.
const MOST_LATE: Span = Span::from_millis(1);

/// The virtual clock of the shaper: a packet is due when those before it have been paid for at a rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    due: Time,
    /// The rounding remainder of `due`, in bit-nanoseconds per second, so that the rate has no long-term
    /// error.
    rest: u64,
}

impl Clock {
    pub const fn due(&self) -> Time {
        self.due
    }

    pub fn is_due(&self, now: Time) -> bool {
        self.due <= now
    }

    /// Starts at `now` without debt.
    pub fn start(&mut self, now: Time) {
        if self.due < now {
            *self = Self { due: now, rest: 0 };
        }
    }

    /// Charges a packet at a rate in bits per second.
    pub fn pay(&mut self, now: Time, size: Bytes, rate: u64) {
        if self.due + MOST_LATE < now {
            self.start(now);
        }
        let rate = u128::from(rate.max(1));
        let work = u128::from(size.bits()) * 1_000_000_000 + u128::from(self.rest);
        self.due += Span::from_nanos(u64::try_from(work / rate).unwrap_or(u64::MAX >> 1));
        self.rest = (work % rate) as u64;
    }
}
