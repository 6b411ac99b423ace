//! A shaper in deficit mode, and what a packet is on the wire.

use crate::choice;
use crate::units::{Bytes, Span, Time};

choice! {
    /// How the link layer frames packets.
    pub enum Framing {
        /// Not at all.
        None = "none",
        /// In cells of 53 bytes that hold 48.
        Atm = "atm",
        /// In 64b/65b: a byte more for 64.
        Ptm = "ptm",
    }
}

/// What the link layer makes of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkLayer {
    /// What the size of a packet includes already.
    pub less: Bytes,
    pub overhead: Bytes,
    pub mpu: Bytes,
    pub framing: Framing,
}

impl LinkLayer {
    /// What a packet of `size` takes.
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

/// How far behind a clock may be. Chosen: the precision of timers.
const MOST_LATE: Span = Span::from_millis(1);

/// The virtual clock of the shaper: a packet is due when those before it have been paid for at a rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    due: Time,
    /// What was rounded off `due`, in bit-nanoseconds per second, so that the rate has no error in the long run.
    rest: u64,
}

impl Clock {
    pub const fn due(&self) -> Time {
        self.due
    }

    pub fn is_due(&self, now: Time) -> bool {
        self.due <= now
    }

    /// Does not owe anything for the time until `now`.
    pub fn start(&mut self, now: Time) {
        if self.due < now {
            *self = Self { due: now, rest: 0 };
        }
    }

    /// Pays for a packet at a rate in bits per second.
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
