//! Sources of flows: each with its keys in a scenario file, except for settings from a file or another table.

use std::sync::Arc;

use apportion_core::param::{EntryArgs, Kind, Param, ParamError, Range, Setting, Value, read};
use apportion_core::params;
use apportion_core::units::{Bytes, Rate, Ratio, Span};

use crate::key::{RATE, SIZE, SWITCH, TEXT, default, of, optional};
use crate::media::{AdaptiveCall, Dash, Voice};
use crate::sizes::{Shape, Sizes};
use crate::web::Web;

/// The source of a flow: writes to its transport.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// Always has data to send. Over TCP or QUIC only.
    Greedy,
    /// A file, written as a whole at the start. Over TCP or QUIC only.
    File(File),
    /// Over UDP this is CBR traffic; over TCP an application-limited flow.
    Cbr(Cbr),
    /// Writes at random instants.
    Poisson(Poisson),
    /// CBR during on periods, silent during off periods.
    OnOff(OnOff),
    /// A Poisson process of short TCP connections, each sending one file and counted as a flow of its own.
    ShortFlows(ShortFlows),
    /// Users who load web pages over connections that they open, each counted as a flow of its own.
    Web(Arc<Web>),
    /// One write per frame at the frame's display time.
    Video(Video),
    /// A player of adaptive video. Not over UDP.
    Dash(Arc<Dash>),
    /// Voice at a constant rate. UDP only.
    Voice(Voice),
    /// A call that adapts its rate to the receiver's reports. UDP only.
    Call(Arc<AdaptiveCall>),
    /// The sizes and times of a packet capture, from its first packet on. UDP only.
    Replay {
        /// Offset from the start and wire size of each packet, ascending in time.
        packets: Arc<[(Span, Bytes)]>,
    },
}

impl Source {
    /// Whether it opens connections on demand, each a flow of its own for queues.
    #[must_use]
    pub const fn opens_connections(&self) -> bool {
        matches!(self, Self::ShortFlows { .. } | Self::Web(_))
    }
}

/// The sizes of video frames.
#[derive(Clone, Debug, PartialEq)]
pub enum Frames {
    /// One size per frame, repeated from the start at the end.
    Trace(Arc<[Bytes]>),
    /// A synthetic MPEG-1 group of pictures IBBPBBPBBPBB, scaled to this mean rate.
    Gop {
        /// The mean rate of the stream.
        mean: Rate,
    },
}

const POSITIVE: Param = Param::required().within(Range::AboveZero);
const BIT_RATE: Param = POSITIVE.doc("Rate of the bytes written; over UDP, on the wire.");
const PACKET: Param = Param::of("1000B", "chosen")
    .within(Range::AboveZero)
    .doc("Size of a datagram on the wire; over TCP, of one write.");

params! {
    /// One file.
    #[derive(Copy)]
    pub struct File {
        /// Size of the file.
        size: Bytes = POSITIVE,
    }
}

params! {
    /// One write after another, evenly spaced for the rate.
    #[derive(Copy)]
    pub struct Cbr {
        rate: Rate = BIT_RATE,
        packet: Bytes = PACKET,
        /// Largest variation of each gap, up or down, as a share of the gap.
        jitter: Ratio = Param::of("0", "chosen").within(Range::FromZero),
    }
}

params! {
    /// Writes at the instants of a Poisson process.
    #[derive(Copy)]
    pub struct Poisson {
        rate: Rate = BIT_RATE,
        packet: Bytes = PACKET,
    }
}

params! {
    /// CBR that comes and goes.
    #[derive(Copy)]
    pub struct OnOff {
        /// Rate during on periods.
        rate: Rate = POSITIVE,
        packet: Bytes = PACKET,
        /// Mean length of on periods.
        on: DurationDistribution = POSITIVE => |args| DurationDistribution::of_mean("on", args),
        /// Mean length of off periods.
        off: DurationDistribution = POSITIVE => |args| DurationDistribution::of_mean("off", args),
        ..&shape("exponential", "Distribution of both lengths."),
    }
}

/// A random length of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DurationDistribution {
    pub mean: Span,
    pub shape: Shape,
}

impl DurationDistribution {
    fn of_mean(key: &str, args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        Ok(Self { mean: read(args, OnOff::PARAMS, key)?, shape: Shape::from_args(args)? })
    }
}

/// Its mean as a quantity; the shape has a key of its own.
impl Setting for DurationDistribution {
    const KIND: Kind = Kind::Span;
    fn of(_: Option<Value>) -> Option<Self> {
        None
    }
}

/// The keys of a shape, which [`Shape::from_args`] reads.
const fn shape(word: &'static str, doc: &'static str) -> [Param; 2] {
    let alpha = of(Kind::Number).within(Range::AboveOne);
    [
        default("shape", of(Kind::Choice(&["constant", "exponential", "pareto"])), word, doc),
        default("alpha", alpha, "1.5", "Shape parameter of the Pareto distribution."),
    ]
}

params! {
    /// Short TCP connections that begin as a Poisson process.
    pub struct ShortFlows {
        /// Mean number of new connections per second.
        per_second: f64 = POSITIVE,
        ..&[optional("mean_size", SIZE, "Mean size of a file.")],
        ..&shape("pareto", "Distribution of sizes."),
        /// A distribution in place of `mean_size`.
        sizes: Sizes = Param::unset("chosen") => Sizes::of_mean,
    }
}

impl Sizes {
    /// Without `mean_size`, sizes are empty; the key is required unless `sizes` replaces it.
    fn of_mean(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let mean = args.bytes_if_set("mean_size").unwrap_or(Bytes::ZERO);
        Ok(Self::Shaped { mean, shape: Shape::from_args(args)? })
    }
}

params! {
    /// Video frames.
    pub struct Video {
        /// Frames per second.
        fps: f64 = Param::of("25", "chosen").within(Range::AboveZero),
        ..&VIDEO_FRAMES,
        /// Where frame sizes come from, unless from a file.
        frames: Frames => |args: &EntryArgs<'_>| Ok(Frames::Gop { mean: args.rate_if_set("mean").unwrap_or(Rate::ZERO) }),
        /// Smallest size of adaptive frames, as a share of the full size.
        least: Option<Ratio> = Param::of("0.1", "chosen").within(Range::AboveZero) => |args: &EntryArgs<'_>| Ok(args.switch("adaptive").then(|| args.ratio("least"))),
        ..&[PACKET.field("packet", Kind::Bytes, "")],
    }
}

const VIDEO_FRAMES: [Param; 3] = [
    optional("file", TEXT, "Frame sizes in bytes, one per line, repeated at the end."),
    optional("mean", RATE, "Mean rate of a synthetic group of pictures IBBPBBPBBPBB."),
    default(
        "adaptive",
        SWITCH,
        "false",
        "Whether frames shrink when a queue signals overload, and grow afterwards.",
    ),
];

impl Shape {
    fn from_args(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        Ok(match args.choice("shape") {
            "constant" => Self::Constant,
            "exponential" => Self::Exponential,
            _ => Self::Pareto(args.number("alpha")),
        })
    }
}
