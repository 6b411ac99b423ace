//! Sources of video and voice that react to delay and loss: `dash`, `voice` and `call`.

use std::sync::Arc;

use apportion_core::units::{Bytes, Rate, Ratio, Span};

use std::ops::RangeInclusive;

use crate::keys::Fields;
use crate::media::{Adaptation, AdaptiveCall, Codec, Dash, RTP_HEADERS};
use crate::model::Source;
use crate::packet_size::MAX_PACKET;
use crate::problem::Problems;

/// Of videos. Chosen: slower ones are no video, and a frame is written in one piece, which the host must hold.
const FRAMES_PER_SECOND: RangeInclusive<f64> = 0.1..=10_000.0;

/// Netflix's rates of one set for all films (Netflix Technology Blog, "Per-Title Encode Optimization", 2015).
const LADDER: [u64; 10] = [235, 375, 560, 750, 1_050, 1_750, 2_350, 3_000, 4_300, 5_800];
/// Chosen: no film has more, and a player looks at all of them for each segment.
const MAX_RATES: usize = 100;
/// Chosen: no shorter segments are used, and each costs a request.
const SHORTEST_SEGMENT: Span = Span::from_millis(100);

/// Whether a source of this kind is one of these that send datagrams.
pub(crate) fn sends_datagrams(kind: &str) -> bool {
    matches!(kind, "voice" | "call")
}

/// Whether one connection is one person's, who has numbers of her own.
pub(crate) fn is_personal(kind: &str) -> bool {
    matches!(kind, "dash" | "voice" | "call")
}

/// The source of this kind for member `i`.
pub(crate) fn read(kind: &str, fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Source> {
    match kind {
        "dash" => dash(fields, i, problems).map(|dash| Source::Dash(Arc::new(dash))),
        "voice" => codec(fields).map(|codec| Source::Voice { codec }),
        _ => call(fields, i, problems).map(|call| Source::Call(Arc::new(call))),
    }
}

/// The largest packet of a source that sends datagrams.
pub(crate) fn packet(kind: &str, fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Bytes> {
    if kind == "voice" { codec(fields).map(Codec::packet) } else { fields.get("packet", i, problems) }
}

fn codec(fields: &Fields<'_>) -> Option<Codec> {
    let name = fields.text("codec")?;
    Codec::ALL.into_iter().find(|&(known, _)| known == name).map(|(_, codec)| codec)
}

fn dash(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Dash> {
    let ladder = ladder(fields, problems)?;
    let segment = fields.get("segment", i, problems)?;
    let buffer: Span = fields.get("buffer", i, problems)?;
    if segment < SHORTEST_SEGMENT {
        let message = format!("{segment} is too short; write {SHORTEST_SEGMENT} or more");
        fields.refuse("segment", message, problems);
        return None;
    }
    if segment > buffer.div(2) {
        let message =
            format!("{buffer} is less than two segments of {segment}; write more, or shorter segments");
        fields.refuse("buffer", message, problems);
        return None;
    }
    let part = |share: f64| Span::from_nanos((buffer.as_nanos() as f64 * share) as u64);
    let adaptation = if fields.text("algorithm")? == "buffer" {
        let (reservoir, cushion): (Ratio, Ratio) =
            (fields.get("reservoir", i, problems)?, fields.get("cushion", i, problems)?);
        if reservoir.get() + cushion.get() > 1.0 {
            let message = "`reservoir` and `cushion` are more than the buffer together; write less";
            fields.refuse("cushion", message, problems);
            return None;
        }
        Adaptation::Buffer { reservoir: part(reservoir.get()), cushion: part(cushion.get()) }
    } else {
        Adaptation::Throughput {
            window: fields.get("window", i, problems)?,
            safety: fields.get("safety", i, problems)?,
        }
    };
    Some(Dash { ladder, segment, buffer, adaptation })
}

fn ladder(fields: &Fields<'_>, problems: &mut Problems) -> Option<Arc<[Rate]>> {
    if fields.item("ladder").is_none() {
        return Some(LADDER.into_iter().map(Rate::from_kbit).collect());
    }
    let names = fields.names("ladder", problems)?;
    let rates: Result<Vec<Rate>, String> =
        names.iter().map(|name| name.parse().map_err(|error| format!("{error}"))).collect();
    let checked = rates.and_then(|rates| {
        let ascends = rates.windows(2).all(|pair| pair[0] < pair[1]);
        if rates.len() > MAX_RATES {
            Err(format!("{} rates are more than {MAX_RATES}", rates.len()))
        } else if rates.first().is_none_or(|&first| first == Rate::ZERO) || !ascends {
            Err("the rates of a ladder ascend from above zero; write for example [\"300kbit\", \"1Mbit\"]"
                .into())
        } else {
            Ok(rates.into())
        }
    });
    checked.map_err(|message| fields.refuse("ladder", message, problems)).ok()
}

fn call(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<AdaptiveCall> {
    let [min, max, first] = ["min", "max", "first"].map(|name| fields.get::<Rate>(name, i, problems));
    let (min, max, first) = (min?, max?, first?);
    let packet = fields.get("packet", i, problems)?;
    let fps = frames_per_second(fields, i, problems)?;
    let interval = Span::from_secs_f64(1.0 / fps);
    if !(min..=max).contains(&first) {
        let message = format!("{first} is not between `min`, {min}, and `max`, {max}");
        fields.refuse("first", message, problems);
        return None;
    }
    if min.bytes_in(interval) <= RTP_HEADERS {
        let message = format!("a frame at {min} has no room for its {RTP_HEADERS} of headers; write more");
        fields.refuse("min", message, problems);
        return None;
    }
    // The parts of a frame differ by a byte at most, so each has more than half of a packet.
    if packet < RTP_HEADERS + RTP_HEADERS + Bytes::new(2) || packet > MAX_PACKET {
        let message = format!("packets of a call have 82B to {MAX_PACKET}");
        fields.refuse("packet", message, problems);
        return None;
    }
    Some(AdaptiveCall { min, max, first, interval, packet })
}

pub(crate) fn frames_per_second(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<f64> {
    let fps = fields.get("fps", i, problems)?;
    if !FRAMES_PER_SECOND.contains(&fps) {
        fields.refuse("fps", "a video has 0.1 to 10000 frames a second; write for example 25", problems);
    }
    Some(fps)
}
