//! Keys of traffic sources.

use apportion_core::param::{Kind, Param, Range, Variant};

use super::{LOSS, NUMBER, RATE, SIZE, SPAN, SWITCH, TEXT, default, media, of, optional, required};
use crate::web::MAX_PARALLEL;

const PACKET: Param =
    default("packet", SIZE, "1000B", "Size of a datagram on the wire; over TCP, of one write.");
const BIT_RATE: Param = required("rate", RATE, "Rate of the bytes written; over UDP, on the wire.");
const SHAPE: Param = of(Kind::Choice(&["constant", "exponential", "pareto"]));
const ALPHA: Param = default(
    "alpha",
    of(Kind::Number).within(Range::AboveOne),
    "1.5",
    "Shape parameter of the Pareto distribution.",
);

/// Distributions of sizes.
pub(crate) const SIZES: &[Variant] = &[
    Variant {
        name: "web_search",
        doc: "Flows of a cluster that answers web searches (Alizadeh et al., SIGCOMM 2010): half are below 73 kB, 3 % above 10 MB; \
              the mean is 1.7 MB.",
        params: &[],
    },
    Variant {
        name: "data_mining",
        doc: "Flows of a cluster that mines data (Greenberg et al., SIGCOMM 2009): half are below 1.1 kB, 2 % above 100 MB; the mean is \
              12.7 MB.",
        params: &[],
    },
    Variant { name: "constant", doc: "All alike.", params: &[required("size", SIZE, "The size.")] },
    Variant {
        name: "bounded_pareto",
        doc: "Pareto between two bounds.",
        params: &[
            default("alpha", NUMBER, "1.2", "Shape parameter; the smaller, the heavier the tail."),
            required("least", SIZE, "Smallest size."),
            required("most", SIZE, "Largest size."),
        ],
    },
    Variant {
        name: "lognormal",
        doc: "Lognormal; what lies outside the bounds is left out.",
        params: &[
            required("median", SIZE, "Median, as it is without bounds."),
            required("sigma", NUMBER, "Standard deviation of the natural logarithm."),
            optional("least", SIZE, "Smallest size."),
            optional("most", SIZE, "Largest size."),
        ],
    },
    Variant {
        name: "cdf",
        doc: "A cumulative distribution by its points.",
        params: &[required(
            "file",
            TEXT,
            "One point a line: a size in bytes, and the share of files that are not larger, up to 1. Between two points sizes are \
             uniform.",
        )],
    },
];

/// Traffic sources.
pub(crate) const SOURCES: &[Variant] = &[
    Variant { name: "greedy", doc: "Always has data to send. TCP only.", params: &[] },
    Variant {
        name: "file",
        doc: "One file, then silence. TCP only.",
        params: &[required("size", SIZE, "Size of the file.")],
    },
    Variant {
        name: "cbr",
        doc: "Packets at a constant bit rate.",
        params: &[
            BIT_RATE,
            PACKET,
            default(
                "jitter",
                LOSS,
                "0",
                "Maximum variation of each gap between packets, up or down, as a share of the gap.",
            ),
        ],
    },
    Variant {
        name: "poisson",
        doc: "Packets that arrive as a Poisson process.",
        params: &[BIT_RATE, PACKET],
    },
    Variant {
        name: "on_off",
        doc: "Constant rate during on periods, silence during off periods.",
        params: &[
            required("rate", RATE, "Rate during on periods."),
            PACKET,
            required("on", SPAN, "Mean length of on periods."),
            required("off", SPAN, "Mean length of off periods."),
            default("shape", SHAPE, "exponential", "Distribution of both lengths."),
            ALPHA,
        ],
    },
    Variant {
        name: "short_flows",
        doc: "A Poisson process of short connections, each with one file. TCP only.",
        params: &[
            required("per_second", NUMBER, "Mean number of new connections per second."),
            optional("mean_size", SIZE, "Mean size of a file."),
            default("shape", SHAPE, "pareto", "Distribution of sizes with that mean."),
            ALPHA,
            optional(
                "sizes",
                of(Kind::Variants(SIZES)),
                "Another distribution of sizes, in place of `mean_size`.",
            ),
        ],
    },
    Variant {
        name: "web",
        doc: "Users who load pages: a main object, then embedded ones over parallel connections, which they keep, then time to read. \
              Each connection is a flow of its own for queues; `completions` has the pages. What is not set is the web model of 3GPP2 \
              C.R1002. Simulator and TCP only.",
        params: &[
            optional(
                "main_size",
                of(Kind::Variants(SIZES)),
                "Sizes of main objects, as `sizes` below; if absent, lognormal with median 4230B and sigma 1.37, 100B to 2MB.",
            ),
            optional(
                "objects",
                of(Kind::Count).within(Range::FromZero),
                "Embedded objects of a page; if absent, 0 to 53 of a Pareto distribution, 5.64 on average.",
            ),
            optional(
                "object_size",
                of(Kind::Variants(SIZES)),
                "Sizes of embedded objects; if absent, lognormal with median 478B and sigma 2.36, 50B to 2MB.",
            ),
            default(
                "parallel",
                of(Kind::Count).within(Range::UpTo(MAX_PARALLEL)),
                "6",
                "Most connections of a user, as browsers have them to a server over HTTP/1.1.",
            ),
            default("think", SPAN, "30s", "Mean of the exponential time from the end of a page to the next."),
            default("request", SIZE, "350B", "Size of a request on the wire."),
            optional(
                "users_per_second",
                NUMBER,
                "Mean number of users who come in a second; if absent, there is one all the time.",
            ),
            optional("life", SPAN, "Mean of the exponential time that such a user stays."),
        ],
    },
    Variant {
        name: "probe",
        doc: "Requests of a byte over one connection, each when the last was answered and a random time has passed: how many round trips \
              would fit a minute (`rpm`), as draft-ietf-ippm-responsiveness asks of a loaded path. Simulator and TCP only.",
        params: &[
            default(
                "per_second",
                NUMBER,
                "10",
                "Mean number of requests in a second, were answers to take no time.",
            ),
            default("request", SIZE, "100B", "Size of a request on the wire."),
        ],
    },
    Variant {
        name: "video",
        doc: "Video frames, each sent at its display time: from the trace `file`, or synthetic MPEG of \
              rate `mean`.",
        params: &[
            default("fps", NUMBER, "25", "Frames per second."),
            optional(
                "file",
                TEXT,
                "Trace of frame sizes in bytes, one per line; repeated from the start at its end.",
            ),
            optional("mean", RATE, "Mean rate of a synthetic group of pictures IBBPBBPBBPBB."),
            default(
                "adaptive",
                SWITCH,
                "false",
                "Whether frames shrink when a queue signals overload, and grow again afterwards.",
            ),
            default(
                "least",
                of(Kind::Ratio).within(Range::AboveZero),
                "0.1",
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
        params: &[required("file", TEXT, "A pcap file; its packets have 28 to 65535 bytes.")],
    },
];
