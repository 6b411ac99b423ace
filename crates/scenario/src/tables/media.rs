//! Keys of sources of video and voice that react to delay and loss.

use super::{NUMBER, RATE, SIZE, key};
use crate::keys::Need::{Default, Optional};
use crate::keys::{Kind, Range, Unit, Variant};

const LENGTH: Kind = Kind::Amount(Unit::Span, Range::AboveZero);
const SHARE: Kind = Kind::Amount(Unit::Ratio, Range::AboveZero);

/// A player of adaptive video.
pub(super) const DASH: Variant = Variant {
    name: "dash",
    doc: "Adaptive video: a player that asks for one segment after another, each in the rate that it chooses, and plays them \
          while it holds some. TCP only; each request is a packet of its own on the way back.",
    keys: &[
        key(
            "ladder",
            Kind::Names,
            Optional,
            "The rates in which each segment exists, ascending, such as [\"300kbit\", \"1Mbit\"]. If absent: 235, 375, 560, 750, \
             1050, 1750, 2350, 3000, 4300 and 5800 kbit, which Netflix used for all films until 2015.",
        ),
        key("segment", LENGTH, Default("4s"), "How long a segment plays."),
        key("buffer", LENGTH, Default("30s"), "The most video that the player holds, two segments at least."),
        key(
            "algorithm",
            Kind::Word(&["buffer", "throughput"]),
            Default("buffer"),
            "How it chooses: by what it holds (BBA-0), or by the harmonic mean of the throughputs of the last segments.",
        ),
        key(
            "reservoir",
            SHARE,
            Default("37.5%"),
            "`buffer`: the share of the buffer up to which it takes the lowest rate. Default: 90 s of 240 s, as its authors have it.",
        ),
        key(
            "cushion",
            SHARE,
            Default("52.5%"),
            "`buffer`: the share of the buffer above the reservoir over which it goes from the lowest to the highest rate. Default: \
             126 s of 240 s, likewise.",
        ),
        key(
            "window",
            Kind::Amount(Unit::Count, Range::UpTo(1_000)),
            Default("5"),
            "`throughput`: the segments of which it takes the mean.",
        ),
        key("safety", SHARE, Default("85%"), "`throughput`: the share of that mean that it uses at most."),
    ],
};

/// Voice at a constant rate.
pub(super) const VOICE: Variant = Variant {
    name: "voice",
    doc: "Voice: a packet every 20 ms, of 200 bytes with `g711` and of 60 bytes with `g729a`. UDP only.",
    keys: &[key("codec", Kind::Word(&["g711", "g729a"]), Default("g711"), "How it is coded.")],
};

/// A call that adapts its rate.
pub(super) const CALL: Variant = Variant {
    name: "call",
    doc: "A video call: frames at constant intervals, of a rate that adapts to the delay and the losses that the receiver reports, \
          as Google Congestion Control does. UDP only; each report is a packet of its own on the way back.",
    keys: &[
        key("min", RATE, Default("100kbit"), "The lowest rate, on the wire."),
        key("max", RATE, Default("2500kbit"), "The highest rate."),
        key("first", RATE, Default("300kbit"), "The rate at the start."),
        key("fps", NUMBER, Default("30"), "Frames per second."),
        key(
            "packet",
            SIZE,
            Default("1200B"),
            "Size of the largest packet on the wire; frames are cut into equal parts.",
        ),
    ],
};
