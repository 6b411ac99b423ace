//! What applications of video and voice do, besides writing: players that ask for segments, and calls that adapt their rate.

use std::sync::Arc;

use apportion_core::units::{Bytes, Rate, Ratio, Span};

/// A player of adaptive video over TCP, which asks for one segment after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Dash {
    /// The rates in which each segment exists, ascending, at least one.
    pub ladder: Arc<[Rate]>,
    /// How long a segment plays.
    pub segment: Span,
    /// The most video that the player holds, two segments at least.
    pub buffer: Span,
    /// How it chooses the rate of the next segment.
    pub adaptation: Adaptation,
}

/// How a player chooses among rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Adaptation {
    /// By what it holds (BBA-0).
    Buffer {
        /// The lowest rate as long as it holds no more than this.
        reservoir: Span,
        /// The highest rate from when it holds this much more.
        cushion: Span,
    },
    /// By how fast the last segments came.
    Throughput {
        /// How many of them count.
        window: u32,
        /// The share of what they promise that is used.
        safety: Ratio,
    },
}

/// How voice is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// ITU-T G.711: 64 kb/s.
    G711,
    /// ITU-T G.729 Annex A: 8 kb/s.
    G729a,
}

/// IPv4 (20, RFC 791), UDP (8, RFC 768) and RTP (12, RFC 3550).
pub const RTP_HEADERS: Bytes = Bytes::new(40);

impl Codec {
    /// All of them, by name.
    pub const ALL: [(&'static str, Self); 2] = [("g711", Self::G711), ("g729a", Self::G729a)];

    /// What one packet carries: 20 ms, as RTP's profile for audio has it (RFC 3551 section 4.2).
    pub const FRAME: Span = Span::from_millis(20);

    /// What it looks ahead of a frame before it codes it: 5 ms in G.729.
    #[must_use]
    pub const fn look_ahead(self) -> Span {
        match self {
            Self::G711 => Span::from_millis(0),
            Self::G729a => Span::from_millis(5),
        }
    }

    /// A packet of it on the wire.
    #[must_use]
    pub const fn packet(self) -> Bytes {
        match self {
            Self::G711 => Bytes::new(RTP_HEADERS.get() + 160),
            Self::G729a => Bytes::new(RTP_HEADERS.get() + 20),
        }
    }
}

/// A call whose sender adapts its rate to what the receiver reports.
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptiveCall {
    /// The lowest rate, on the wire.
    pub min: Rate,
    /// The highest rate.
    pub max: Rate,
    /// The rate at the start, between them.
    pub first: Rate,
    /// From frame to frame.
    pub interval: Span,
    /// The largest packet on the wire.
    pub packet: Bytes,
}
