//! The size of a buffer, and levels of its average.

use core::fmt;
use core::str::FromStr;

use crate::packet::Packet;
use crate::queue::Backlog;
use crate::units::{Bytes, MeanPackets, Packets, Rate, Ratio, Span, UnitError, float};

/// The size of a buffer, in packets or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// At most this many packets.
    Packets(Packets),
    /// At most this many bytes.
    Bytes(Bytes),
}

impl Limit {
    /// The limit in bytes; none if it is in packets.
    #[must_use]
    pub const fn bytes(self) -> Option<Bytes> {
        match self {
            Self::Bytes(limit) => Some(limit),
            Self::Packets(_) => None,
        }
    }

    /// Whether `backlog` is above the limit.
    #[must_use]
    #[inline]
    pub fn is_exceeded_by(self, backlog: Backlog) -> bool {
        match self {
            Self::Packets(limit) => backlog.packets > limit,
            Self::Bytes(limit) => backlog.bytes > limit,
        }
    }

    /// How full `backlog` makes the buffer, 1 at its limit.
    #[must_use]
    pub fn filled_by(self, backlog: Backlog) -> f64 {
        let (queued, limit) = self.measure(backlog);
        float(queued) / float(limit)
    }

    /// `backlog` and the limit, in the unit of the limit.
    #[must_use]
    #[inline]
    pub const fn measure(self, backlog: Backlog) -> (u64, u64) {
        match self {
            Self::Packets(limit) => (backlog.packets.get(), limit.get()),
            Self::Bytes(limit) => (backlog.bytes.get(), limit.get()),
        }
    }

    /// Whether `backlog` fills at most `part` of the buffer.
    #[must_use]
    #[inline]
    pub fn is_filled_up_to(self, backlog: Backlog, at_most: Ratio) -> bool {
        let (queued, limit) = self.measure(backlog);
        float(queued) <= at_most.get() * float(limit)
    }

    /// Whether `packet` still fits into a buffer that holds `backlog`.
    #[must_use]
    #[inline]
    pub fn admits<P: Packet>(self, packet: &P, mut backlog: Backlog) -> bool {
        backlog.add(packet);
        !self.is_exceeded_by(backlog)
    }
}

/// The size of a buffer as it is set: fixed, or the time in which its link sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BufferSize {
    /// Packets or bytes, whatever the rate of the link.
    Fixed(Limit),
    /// The bytes that the link sends in this time, rounded down, and at least a full packet.
    Time(Span),
}

impl BufferSize {
    /// Returns the size for a link of `rate`.
    #[must_use]
    pub fn at(self, rate: Rate) -> Limit {
        match self {
            Self::Fixed(limit) => limit,
            Self::Time(time) => Limit::Bytes(rate.bytes_in(time).max(FULL_PACKET)),
        }
    }

    /// The fixed size; none if the size follows the rate of the link.
    #[must_use]
    pub const fn fixed(self) -> Option<Limit> {
        match self {
            Self::Fixed(limit) => Some(limit),
            Self::Time(_) => None,
        }
    }
}

impl From<Limit> for BufferSize {
    fn from(limit: Limit) -> Self {
        Self::Fixed(limit)
    }
}

/// A full packet of Ethernet.
const FULL_PACKET: Bytes = Bytes::new(1_500);

/// The size of a buffer for a link: fixed, or a time of the link's rate. Default: 100 ms, at least 96 kB.
///
/// Every discipline has the same default, so that a comparison of disciplines is not one of buffer sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkLimit {
    set: Option<BufferSize>,
    now: Limit,
    /// The time that applies if no size is set.
    time: Span,
    least: Bytes,
}

impl LinkLimit {
    /// The default: the bandwidth-delay product of a path of this round-trip time. Chosen: covers most
    /// paths. The round-trip times of the flows would make the buffer depend on which flows a scenario has.
    const TIME: Span = Span::from_millis(100);
    /// The lower bound: 64 full packets of Ethernet.
    const LEAST: Bytes = Bytes::new(64 * FULL_PACKET.get());

    /// `set`, or 100 ms of a link of `rate` and at least 96 kB.
    #[must_use]
    pub fn new(set: Option<BufferSize>, rate: Rate) -> Self {
        Self::of_time(set, rate, Self::TIME, Self::LEAST)
    }

    /// `set`, or the bytes that a link of `rate` sends in `time`, at least `least`.
    #[must_use]
    pub fn of_time(set: Option<BufferSize>, rate: Rate, time: Span, least: Bytes) -> Self {
        let now = set.map_or(Limit::Bytes(least), |set| set.at(rate));
        let mut limit = Self { set, now, time, least };
        limit.set_link_rate(rate);
        limit
    }

    /// The size for a link of `rate`.
    pub(crate) fn bytes_of(rate: Rate) -> Bytes {
        rate.bytes_in(Self::TIME).max(Self::LEAST)
    }

    /// Fixes the size, whatever the rate.
    pub const fn set(&mut self, limit: Limit) {
        (self.set, self.now) = (Some(BufferSize::Fixed(limit)), limit);
    }

    /// Sets the rate of the link. A buffer that follows the rate keeps its size while the rate is zero.
    pub fn set_link_rate(&mut self, rate: Rate) {
        self.now = match self.set {
            None => Limit::Bytes(rate.bytes_in(self.time).max(self.least)),
            Some(BufferSize::Time(_)) if rate == Rate::ZERO => self.now,
            Some(set) => set.at(rate),
        };
    }

    /// The present size.
    #[must_use]
    #[inline]
    pub const fn get(self) -> Limit {
        self.now
    }
}

impl fmt::Display for BufferSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(limit) => limit.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

impl FromStr for BufferSize {
    type Err = UnitError;
    /// Reads `50p`, `64kB` or `100ms`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let fixed = text.parse().map(Self::Fixed);
        fixed.or_else(|_| text.parse().map(Self::Time)).map_err(|_| {
            UnitError::new(alloc::format!(
                "`{text}` is not a size in packets, bytes or time of the link; write for example \"50p\", \"64kB\" or \"100ms\""
            ))
        })
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(limit) => limit.fmt(f),
            Self::Bytes(limit) => limit.fmt(f),
        }
    }
}

impl FromStr for Limit {
    type Err = UnitError;
    /// Reads `50p` or `64kB`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let packets = text.parse().map(Self::Packets);
        packets.or_else(|_| text.parse().map(Self::Bytes)).map_err(|_| {
            UnitError::new(alloc::format!(
                "`{text}` is not a limit in packets or bytes; write for example \"50p\" or \"64kB\""
            ))
        })
    }
}

/// A level of an average queue, in packets or in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// This many packets on average.
    Packets(MeanPackets),
    /// This many bytes.
    Bytes(Bytes),
}

impl Threshold {
    /// The number, in the unit of the threshold.
    #[must_use]
    pub const fn level(self) -> f64 {
        match self {
            Self::Packets(packets) => packets.get(),
            Self::Bytes(bytes) => bytes.get() as f64,
        }
    }

    /// `backlog` in the unit of the threshold.
    #[must_use]
    #[inline]
    pub const fn measure(self, backlog: Backlog) -> f64 {
        match self {
            Self::Packets(_) => backlog.packets.get() as f64,
            Self::Bytes(_) => backlog.bytes.get() as f64,
        }
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Packets(packets) => packets.fmt(f),
            Self::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for Threshold {
    type Err = UnitError;
    /// Reads `2.5p` or `64kB`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let packets = text.parse().map(Self::Packets);
        packets.or_else(|_| text.parse().map(Self::Bytes)).map_err(|_| {
            UnitError::new(alloc::format!(
                "`{text}` is not a level in packets or bytes; write for example \"2.5p\" or \"64kB\""
            ))
        })
    }
}
