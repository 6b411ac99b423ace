//! Keys of sources of video and voice that react to delay and loss.

use super::{NUMBER, RATE, SIZE, SPAN, default, of, optional};
use apportion_core::param::{Kind, Param, Range, Variant};

const SHARE: Param = of(Kind::Ratio).within(Range::AboveZero);

/// A player of adaptive video.
pub(super) const DASH: Variant = Variant {
    name: "dash",
    doc: "Adaptive video: a player that asks for one segment after another, each in the rate that it chooses, and plays them \
          while it holds some. TCP only; each request is a packet of its own on the way back.",
    params: &[
        optional(
            "ladder",
            of(Kind::Texts),
            "The rates in which each segment exists, ascending, such as [\"300kbit\", \"1Mbit\"]. If absent: 235, 375, 560, 750, \
             1050, 1750, 2350, 3000, 4300 and 5800 kbit, which Netflix used for all films until 2015.",
        ),
        default("segment", SPAN, "4s", "How long a segment plays."),
        default("buffer", SPAN, "30s", "The most video that the player holds, two segments at least."),
        default(
            "algorithm",
            of(Kind::Choice(&["buffer", "throughput"])),
            "buffer",
            "How it chooses: by what it holds (BBA-0), or by the harmonic mean of the throughputs of the last segments.",
        ),
        default(
            "reservoir",
            SHARE,
            "37.5%",
            "`buffer`: the share of the buffer up to which it takes the lowest rate. Default: 90 s of 240 s, as its authors have it.",
        ),
        default(
            "cushion",
            SHARE,
            "52.5%",
            "`buffer`: the share of the buffer above the reservoir over which it goes from the lowest to the highest rate. Default: \
             126 s of 240 s, likewise.",
        ),
        default(
            "window",
            of(Kind::Count).within(Range::UpTo(1_000)),
            "5",
            "`throughput`: the segments of which it takes the mean.",
        ),
        default("safety", SHARE, "85%", "`throughput`: the share of that mean that it uses at most."),
    ],
};

/// Voice at a constant rate.
pub(super) const VOICE: Variant = Variant {
    name: "voice",
    doc: "Voice: a packet every 20 ms, of 200 bytes with `g711` and of 60 bytes with `g729a`. UDP only.",
    params: &[default("codec", of(Kind::Choice(&["g711", "g729a"])), "g711", "How it is coded.")],
};

/// A call that adapts its rate.
pub(super) const CALL: Variant = Variant {
    name: "call",
    doc: "A video call: frames at constant intervals, of a rate that adapts to the delay and the losses that the receiver reports, \
          as Google Congestion Control does. UDP only; each report is a packet of its own on the way back.",
    params: &[
        default("min", RATE, "100kbit", "The lowest rate, on the wire."),
        default("max", RATE, "2500kbit", "The highest rate."),
        default("first", RATE, "300kbit", "The rate at the start."),
        default("fps", NUMBER, "30", "Frames per second."),
        default(
            "packet",
            SIZE,
            "1200B",
            "Size of the largest packet on the wire; frames are cut into equal parts.",
        ),
    ],
};
