//! Keys of traffic sources.

use apportion_core::param::Variant;

use crate::key::{NUMBER, SIZE, TEXT, default, required};
use crate::media::{AdaptiveCall, Dash, Voice};
use crate::source::{Cbr, File, OnOff, Poisson, ShortFlows, Video};
use crate::web::Web;

/// Traffic sources.
pub(crate) const SOURCES: &[Variant] = &[
    Variant { name: "greedy", doc: "Always has data to send. Not over UDP.", params: &[] },
    Variant { name: "file", doc: "One file, then silence. Not over UDP.", params: File::PARAMS },
    Variant { name: "cbr", doc: "Packets at a constant bit rate.", params: Cbr::PARAMS },
    Variant { name: "poisson", doc: "Packets that arrive as a Poisson process.", params: Poisson::PARAMS },
    Variant {
        name: "on_off",
        doc: "Constant rate during on periods, silence during off periods.",
        params: OnOff::PARAMS,
    },
    Variant {
        name: "short_flows",
        doc: "A Poisson process of short connections, each with one file. Not over UDP.",
        params: ShortFlows::PARAMS,
    },
    Variant {
        name: "web",
        doc: "Users who load pages: a main object, embedded objects over parallel persistent connections, then reading \
             time. For queues each connection is a flow; `completions` has the pages. Defaults are the web model of \
             3GPP2 C.R1002. Simulator and TCP only.",
        params: Web::PARAMS,
    },
    Variant {
        name: "probe",
        doc: "Requests of a byte over one connection, each after an answer and a random time: measures `rpm`, round \
             trips per minute under load (draft-ietf-ippm-responsiveness). Simulator and TCP only.",
        params: &[
            default(
                "per_second",
                NUMBER,
                "10",
                "Mean number of requests per second if answers took no time.",
            ),
            default("request", SIZE, "100B", "Size of a request on the wire."),
        ],
    },
    Variant {
        name: "video",
        doc: "Video frames, sent at display times: from the trace `file`, or synthetic MPEG of rate `mean`.",
        params: Video::PARAMS,
    },
    Variant {
        name: "dash",
        doc: "Adaptive video: a player requests segments, chooses the rate of each, and plays from its buffer. Not over UDP; \
             requests are packets on the way back.",
        params: Dash::PARAMS,
    },
    Variant {
        name: "voice",
        doc: "Voice: a packet each 20 ms, 200 bytes with `g711`, 60 with `g729a`. UDP only.",
        params: Voice::PARAMS,
    },
    Variant {
        name: "call",
        doc: "Video call: frames at constant intervals; the rate adapts to delay and loss as in Google Congestion \
             Control. UDP only; reports are packets on the way back.",
        params: AdaptiveCall::PARAMS,
    },
    Variant {
        name: "replay",
        doc: "Replays times and sizes of a packet capture, packets without payload included. UDP only.",
        params: &[required(
            "file",
            TEXT,
            "pcap or pcapng: Ethernet (also with tags or PPPoE), raw IP, loopback, or `tcpdump -i any`. Sizes are those \
             of IP packets, 28B to 65535B, by time. A warning counts omitted frames.",
        )],
    },
];
