//! Parameters of video and voice sources that do more than write: players that request segments, and calls
//! that adapt their rate.

use std::sync::Arc;

use apportion_core::param::{Kind, Param, Range};
use apportion_core::units::{Bytes, Rate, Ratio, Span};
use apportion_core::{choice, params};

use crate::key::{TEXT, of, optional};

params! {
    /// A player of adaptive video over TCP, which asks for one segment after another.
    pub struct Dash {
        /// The rates in which each segment exists, ascending, at least one: [`LADDER`] unless a file says others.
        ladder: Arc<[Rate]> => |_| Ok(LADDER.into_iter().map(Rate::from_kbit).collect()),
        ..&[LADDER_KEY],
        /// Of each segment its size in each rate, repeated from the start; all have the size of their rate if there are none.
        sizes: Arc<[Arc<[Bytes]>]> => |_| Ok(Arc::default()),
        ..&[SIZES_KEY],
        /// Playing time of a segment.
        segment: Span = Param::of("4s", "chosen").within(Range::AboveZero),
        /// Most video in the player's buffer, two segments at least.
        buffer: Span = Param::of("30s", "chosen").within(Range::AboveZero),
        /// `buffer` chooses by the buffer level (BBA-0), `throughput` by the harmonic mean of the last segments'
        /// throughput.
        algorithm: Adaptation = Param::of("buffer", "Huang et al., SIGCOMM 2014"),
        /// `buffer`: share of the buffer up to which it takes the lowest rate (its authors: 90 of 240 s).
        reservoir: Ratio = Param::of("37.5%", "Huang et al., SIGCOMM 2014, section 5").within(Range::AboveZero),
        /// `buffer`: share above the reservoir over which it rises to the highest rate (126 of 240 s).
        cushion: Ratio = Param::of("52.5%", "Huang et al., SIGCOMM 2014, section 5").within(Range::AboveZero),
        /// `throughput`: number of segments in the mean.
        window: u32 = Param::of("5", "Yin et al., SIGCOMM 2015, section 7.1").within(Range::UpTo(1_000)),
        /// `throughput`: largest share of that mean that it uses.
        safety: Ratio = Param::of("85%", "Jiang et al., CoNEXT 2012, section 4.3").within(Range::AboveZero),
    }
}

/// Netflix's ladder of rates for all videos, in kbit/s (Netflix Technology Blog, "Per-Title Encode
/// Optimization", 2015).
const LADDER: [u64; 10] = [235, 375, 560, 750, 1_050, 1_750, 2_350, 3_000, 4_300, 5_800];
const LADDER_KEY: Param = optional(
    "ladder",
    of(Kind::Texts),
    "Rates of segments, ascending, such as [\"300kbit\", \"1Mbit\"]. If absent: 235, 375, 560, 750, 1050, 1750, 2350, \
     3000, 4300 and 5800 kbit (Netflix until 2015); with `file`, the means of its columns.",
);
const SIZES_KEY: Param = optional(
    "file",
    TEXT,
    "Sizes of segments: a line per segment with its bytes in each rate, lowest first, repeated at the end. If absent, \
     sizes follow the rate.",
);

impl Dash {
    /// The size of the segment with this number, from 0, in the rate at this index of the ladder.
    #[must_use]
    pub fn size(&self, number: u32, rate: usize) -> Bytes {
        match self.sizes.len() {
            0 => self.ladder[rate].bytes_in(self.segment).max(Bytes::new(1)),
            count => self.sizes[number as usize % count][rate],
        }
    }

    /// This share of the buffer.
    #[must_use]
    pub fn part(&self, share: Ratio) -> Span {
        Span::from_nanos((self.buffer.as_nanos() as f64 * share.get()) as u64)
    }
}

choice! {
    /// How a player chooses among rates.
    pub enum Adaptation {
        /// By what it holds (BBA-0): the lowest rate up to the reservoir, the highest from the cushion above it on.
        Buffer = "buffer",
        /// By how fast the last segments came.
        Throughput = "throughput",
    }
}

params! {
    /// Voice at a constant rate.
    #[derive(Copy)]
    pub struct Voice {
        /// Codec.
        codec: Codec = Param::of("g711", "chosen"),
    }
}

choice! {
    /// How voice is coded.
    pub enum Codec {
        /// ITU-T G.711: 64 kb/s.
        G711 = "g711",
        /// ITU-T G.729 Annex A: 8 kb/s.
        G729a = "g729a",
    }
}

/// IPv4 (20, RFC 791), UDP (8, RFC 768) and RTP (12, RFC 3550).
pub const RTP_HEADERS: Bytes = Bytes::new(40);

impl Codec {
    /// Duration of a packet: 20 ms, as in RTP's profile for audio (RFC 3551 section 4.2).
    pub const FRAME: Span = Span::from_millis(20);

    /// Look-ahead of the coder beyond a frame: 5 ms in G.729.
    #[must_use]
    pub const fn look_ahead(self) -> Span {
        match self {
            Self::G711 => Span::from_millis(0),
            Self::G729a => Span::from_millis(5),
        }
    }

    /// The size of a packet on the wire.
    #[must_use]
    pub const fn packet(self) -> Bytes {
        match self {
            Self::G711 => Bytes::new(RTP_HEADERS.get() + 160),
            Self::G729a => Bytes::new(RTP_HEADERS.get() + 20),
        }
    }
}

params! {
    /// A call whose sender adapts its rate to what the receiver reports.
    pub struct AdaptiveCall {
        /// The lowest rate, on the wire.
        min: Rate = Param::of("100kbit", "chosen").within(Range::AboveZero),
        /// The highest rate.
        max: Rate = Param::of("2500kbit", "chosen").within(Range::AboveZero),
        /// The rate at the start.
        first: Rate = Param::of("300kbit", "chosen").within(Range::AboveZero),
        /// Frames per second.
        fps: f64 = Param::of("30", "chosen").within(Range::AboveZero),
        /// Largest packet on the wire; frames are cut into equal parts.
        packet: Bytes = Param::of("1200B", "chosen").within(Range::AboveZero),
    }
}

impl AdaptiveCall {
    /// The time between frames.
    #[must_use]
    pub fn interval(&self) -> Span {
        Span::from_secs_f64(1.0 / self.fps)
    }
}
