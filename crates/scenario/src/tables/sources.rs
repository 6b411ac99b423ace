//! Keys of traffic sources.

use super::{LOSS, NUMBER, RATE, SIZE, key, media};
use crate::keys::Need::{Default, Optional, Required};
use crate::keys::{Key, Kind, Range, Unit, Variant};
use crate::web::MAX_PARALLEL;

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

/// Distributions of sizes.
pub(crate) const SIZES: &[Variant] = &[
    Variant {
        name: "web_search",
        doc: "Flows of a cluster that answers web searches (Alizadeh et al., SIGCOMM 2010): half are below 73 kB, 3 % above 10 MB; \
              the mean is 1.7 MB.",
        keys: &[],
    },
    Variant {
        name: "data_mining",
        doc: "Flows of a cluster that mines data (Greenberg et al., SIGCOMM 2009): half are below 1.1 kB, 2 % above 100 MB; the mean is \
              12.7 MB.",
        keys: &[],
    },
    Variant { name: "constant", doc: "All alike.", keys: &[key("size", SIZE, Required, "The size.")] },
    Variant {
        name: "bounded_pareto",
        doc: "Pareto between two bounds.",
        keys: &[
            key("alpha", NUMBER, Default("1.2"), "Shape parameter; the smaller, the heavier the tail."),
            key("least", SIZE, Required, "Smallest size."),
            key("most", SIZE, Required, "Largest size."),
        ],
    },
    Variant {
        name: "lognormal",
        doc: "Lognormal; what lies outside the bounds is left out.",
        keys: &[
            key("median", SIZE, Required, "Median, as it is without bounds."),
            key("sigma", NUMBER, Required, "Standard deviation of the natural logarithm."),
            key("least", SIZE, Optional, "Smallest size."),
            key("most", SIZE, Optional, "Largest size."),
        ],
    },
    Variant {
        name: "cdf",
        doc: "A cumulative distribution by its points.",
        keys: &[key(
            "file",
            Kind::Text,
            Required,
            "One point a line: a size in bytes, and the share of files that are not larger, up to 1. Between two points sizes are \
             uniform.",
        )],
    },
];

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
            key("mean_size", SIZE, Optional, "Mean size of a file."),
            key("shape", SHAPE, Default("pareto"), "Distribution of sizes with that mean."),
            ALPHA,
            key(
                "sizes",
                Kind::Variants(SIZES),
                Optional,
                "Another distribution of sizes, in place of `mean_size`.",
            ),
        ],
    },
    Variant {
        name: "web",
        doc: "Users who load pages: a main object, then embedded ones over parallel connections, which they keep, then time to read. \
              Each connection is a flow of its own for queues; `completions` has the pages. What is not set is the web model of 3GPP2 \
              C.R1002. Simulator and TCP only.",
        keys: &[
            key(
                "main_size",
                Kind::Variants(SIZES),
                Optional,
                "Sizes of main objects, as `sizes` below; if absent, lognormal with median 4230B and sigma 1.37, 100B to 2MB.",
            ),
            key(
                "objects",
                Kind::Amount(Unit::Count, Range::FromZero),
                Optional,
                "Embedded objects of a page; if absent, 0 to 53 of a Pareto distribution, 5.64 on average.",
            ),
            key(
                "object_size",
                Kind::Variants(SIZES),
                Optional,
                "Sizes of embedded objects; if absent, lognormal with median 478B and sigma 2.36, 50B to 2MB.",
            ),
            key(
                "parallel",
                Kind::Amount(Unit::Count, Range::UpTo(MAX_PARALLEL)),
                Default("6"),
                "Most connections of a user, as browsers have them to a server over HTTP/1.1.",
            ),
            key(
                "think",
                Kind::Amount(Unit::Span, Range::AboveZero),
                Default("30s"),
                "Mean of the exponential time from the end of a page to the next.",
            ),
            key("request", SIZE, Default("350B"), "Size of a request on the wire."),
            key(
                "users_per_second",
                NUMBER,
                Optional,
                "Mean number of users who come in a second; if absent, there is one all the time.",
            ),
            key(
                "life",
                Kind::Amount(Unit::Span, Range::AboveZero),
                Optional,
                "Mean of the exponential time that such a user stays.",
            ),
        ],
    },
    Variant {
        name: "probe",
        doc: "Requests of a byte over one connection, each when the last was answered and a random time has passed: how many round trips \
              would fit a minute (`rpm`), as draft-ietf-ippm-responsiveness asks of a loaded path. Simulator and TCP only.",
        keys: &[
            key(
                "per_second",
                NUMBER,
                Default("10"),
                "Mean number of requests in a second, were answers to take no time.",
            ),
            key("request", SIZE, Default("100B"), "Size of a request on the wire."),
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
    media::DASH,
    media::VOICE,
    media::CALL,
    Variant {
        name: "replay",
        doc: "Replays the times and sizes of a packet capture, those without payload too. UDP only.",
        keys: &[key("file", Kind::Text, Required, "A pcap file; its packets have 28 to 65535 bytes.")],
    },
];
