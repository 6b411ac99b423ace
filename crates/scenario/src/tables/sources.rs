//! Keys of traffic sources.

use super::{LOSS, NUMBER, RATE, SIZE, key};
use crate::keys::Need::{Default, Optional, Required};
use crate::keys::{Key, Kind, Range, Unit, Variant};

const PACKET: Key =
    key("packet", SIZE, Default("1000B"), "Size of a datagram on the wire; over TCP, of one write.");
const BIT_RATE: Key = key("rate", RATE, Required, "Rate of the bytes written; over UDP, on the wire.");
const SHAPE: Kind = Kind::Word(&["constant", "exponential", "pareto"]);
const ALPHA: Key = key(
    "alpha",
    Kind::Amount(Unit::Number, Range::AboveOne),
    Default("1.5"),
    "Shape parameter of the Pareto distribution.",
);

/// Traffic sources.
pub(crate) const SOURCES: &[Variant] = &[
    Variant { name: "greedy", doc: "Always has data to send. TCP only.", keys: &[] },
    Variant {
        name: "file",
        doc: "One file, then silence. TCP only.",
        keys: &[key("size", SIZE, Required, "Size of the file.")],
    },
    Variant {
        name: "cbr",
        doc: "Packets at a constant bit rate.",
        keys: &[
            BIT_RATE,
            PACKET,
            key(
                "jitter",
                LOSS,
                Default("0"),
                "Maximum variation of each gap between packets, up or down, as a share of the gap.",
            ),
        ],
    },
    Variant { name: "poisson", doc: "Packets that arrive as a Poisson process.", keys: &[BIT_RATE, PACKET] },
    Variant {
        name: "on_off",
        doc: "Constant rate during on periods, silence during off periods.",
        keys: &[
            key("rate", RATE, Required, "Rate during on periods."),
            PACKET,
            key("on", Kind::Amount(Unit::Span, Range::AboveZero), Required, "Mean length of on periods."),
            key("off", Kind::Amount(Unit::Span, Range::AboveZero), Required, "Mean length of off periods."),
            key("shape", SHAPE, Default("exponential"), "Distribution of both lengths."),
            ALPHA,
        ],
    },
    Variant {
        name: "short_flows",
        doc: "A Poisson process of short connections, each with one file. TCP only.",
        keys: &[
            key("per_second", NUMBER, Required, "Mean number of new connections per second."),
            key("mean_size", SIZE, Required, "Mean size of a file."),
            key("shape", SHAPE, Default("pareto"), "Distribution of sizes."),
            ALPHA,
        ],
    },
    Variant {
        name: "video",
        doc: "Video frames, each sent at its display time: from the trace `file`, or synthetic MPEG of \
              rate `mean`.",
        keys: &[
            key("fps", NUMBER, Default("25"), "Frames per second."),
            key(
                "file",
                Kind::Text,
                Optional,
                "Trace of frame sizes in bytes, one per line; repeated from the start at its end.",
            ),
            key("mean", RATE, Optional, "Mean rate of a synthetic group of pictures IBBPBBPBBPBB."),
            key(
                "adaptive",
                Kind::Flag,
                Default("false"),
                "Whether frames shrink when a queue signals overload, and grow again afterwards.",
            ),
            key(
                "least",
                Kind::Amount(Unit::Ratio, Range::AboveZero),
                Default("0.1"),
                "Smallest size of the frames of an adaptive video, as a share of their full size.",
            ),
            PACKET,
        ],
    },
    Variant {
        name: "replay",
        doc: "Replays the times and sizes of a packet capture, those without payload too. UDP only.",
        keys: &[key("file", Kind::Text, Required, "A pcap file; its packets have 28 to 65535 bytes.")],
    },
];
