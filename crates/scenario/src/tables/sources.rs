//! Keys of traffic sources.

use apportion_core::param::Variant;

use crate::key::{NUMBER, SIZE, TEXT, default, required};
use crate::media::{AdaptiveCall, Dash, Voice};
use crate::source::{Cbr, File, OnOff, Poisson, ShortFlows, Video};
use crate::web::Web;

/// Traffic sources.
pub(crate) const SOURCES: &[Variant] = &[
    Variant { name: "greedy", doc: "Always has data to send. TCP only.", params: &[] },
    Variant { name: "file", doc: "One file, then silence. TCP only.", params: File::PARAMS },
    Variant { name: "cbr", doc: "Packets at a constant bit rate.", params: Cbr::PARAMS },
    Variant { name: "poisson", doc: "Packets that arrive as a Poisson process.", params: Poisson::PARAMS },
    Variant {
        name: "on_off",
        doc: "Constant rate during on periods, silence during off periods.",
        params: OnOff::PARAMS,
    },
    Variant {
        name: "short_flows",
        doc: "A Poisson process of short connections, each with one file. TCP only.",
        params: ShortFlows::PARAMS,
    },
    Variant {
        name: "web",
        doc: "Users who load pages: a main object, then embedded ones over parallel connections, which they keep, then time to read. \
              Each connection is a flow of its own for queues; `completions` has the pages. What is not set is the web model of 3GPP2 \
              C.R1002. Simulator and TCP only.",
        params: Web::PARAMS,
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
        params: Video::PARAMS,
    },
    Variant {
        name: "dash",
        doc: "Adaptive video: a player that asks for one segment after another, each in the rate that it chooses, and plays them \
              while it holds some. TCP only; each request is a packet of its own on the way back.",
        params: Dash::PARAMS,
    },
    Variant {
        name: "voice",
        doc: "Voice: a packet every 20 ms, of 200 bytes with `g711` and of 60 bytes with `g729a`. UDP only.",
        params: Voice::PARAMS,
    },
    Variant {
        name: "call",
        doc: "A video call: frames at constant intervals, of a rate that adapts to the delay and the losses that the receiver reports, \
              as Google Congestion Control does. UDP only; each report is a packet of its own on the way back.",
        params: AdaptiveCall::PARAMS,
    },
    Variant {
        name: "replay",
        doc: "Replays the times and sizes of a packet capture, those without payload too. UDP only.",
        params: &[required(
            "file",
            TEXT,
            "A pcap or pcapng file: of Ethernet, also with tags or PPPoE, of raw IP, of loopback, or of `tcpdump -i any`. Sizes are those of IP \
             packets, 28B to 65535B; packets are in the order of their times. A warning counts frames that are left out.",
        )],
    },
];
