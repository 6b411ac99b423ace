//! Sources of video and voice that react to delay and loss: `dash`, `voice` and `call`.

use std::sync::Arc;

use apportion_core::param::Args;
use apportion_core::units::{Bytes, Rate, Span};

use std::ops::RangeInclusive;

use crate::keys::Fields;
use crate::media::{Adaptation, AdaptiveCall, Dash, RTP_HEADERS, Voice};
use crate::model::Source;
use crate::packet_size::MAX_PACKET;
use crate::problem::Problems;

/// Frame rates of videos. Chosen: slower ones are no video, and a frame is written in one piece, which the
/// host must hold.
const FRAMES_PER_SECOND: RangeInclusive<f64> = 0.1..=10_000.0;

/// Maximum of rates. Chosen: no video has more, and a player checks all of them for each segment.
const MAX_RATES: usize = 100;
/// Shortest segment. Chosen: no shorter segments are used, and each costs a request.
const SHORTEST_SEGMENT: Span = Span::from_millis(100);

/// Whether a source of this kind is one of these and sends datagrams.
pub(crate) fn sends_datagrams(kind: &str) -> bool {
    matches!(kind, "voice" | "call")
}

/// Whether one connection belongs to one person, with results of its own.
pub(crate) fn is_personal(kind: &str) -> bool {
    matches!(kind, "dash" | "voice" | "call")
}

/// The source of this kind for member `i`, with the sizes of segments from a file.
pub(crate) fn read(
    kind: &str,
    fields: &Fields<'_>,
    sizes: Option<&Arc<[Arc<[Bytes]>]>>,
    i: u64,
    problems: &mut Problems,
) -> Option<Source> {
    match kind {
        "dash" => dash(fields, sizes, i, problems).map(|dash| Source::Dash(Arc::new(dash))),
        "voice" => fields.read(Voice::from_args, i, problems).map(Source::Voice),
        _ => call(fields, i, problems).map(|call| Source::Call(Arc::new(call))),
    }
}

/// The largest packet of a source that sends datagrams.
pub(crate) fn packet(kind: &str, fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<Bytes> {
    match kind {
        "voice" => fields.read(Voice::from_args, i, problems).map(|voice| voice.codec.packet()),
        _ => fields.get("packet", i, problems),
    }
}

fn dash(
    fields: &Fields<'_>,
    sizes: Option<&Arc<[Arc<[Bytes]>]>>,
    i: u64,
    problems: &mut Problems,
) -> Option<Dash> {
    let ladder = fields.item("ladder").map(|_| ladder(fields, problems));
    let mut dash = fields.read(Dash::from_args, i, problems)?;
    if let Some(ladder) = ladder {
        dash.ladder = ladder?;
    }
    if let Some(sizes) = sizes {
        let means = of_means(sizes, dash.segment);
        let (is_written, count) = (fields.item("ladder").is_some(), means.len());
        if is_written && let Some(message) = disagreement(&dash.ladder, &means, fields.text("file")?) {
            fields.refuse("ladder", message, problems);
            return None;
        }
        if !is_written && (count > MAX_RATES || !means.windows(2).all(|pair| pair[0] < pair[1])) {
            let message = format!(
                "the lines of `{}` have not 1 to {MAX_RATES} sizes that are larger from rate to rate on average; put the lowest rate first",
                fields.text("file")?
            );
            fields.refuse("file", message, problems);
            return None;
        }
        dash.sizes = Arc::clone(sizes);
        if !is_written {
            dash.ladder = means;
        }
    }
    if let Some((key, algorithm)) = idle(&dash) {
        let message = format!(
            "it has no effect: only algorithm = \"{algorithm}\" goes by it; write that too, or leave it out"
        );
        fields.refuse(key, message, problems);
        return None;
    }
    let (segment, buffer) = (dash.segment, dash.buffer);
    let (key, message) = if segment < SHORTEST_SEGMENT {
        ("segment", format!("{segment} is too short; write {SHORTEST_SEGMENT} or more"))
    } else if segment > buffer.div(2) {
        (
            "buffer",
            format!("{buffer} is less than two segments of {segment}; write more, or shorter segments"),
        )
    } else if dash.algorithm == Adaptation::Buffer && dash.reservoir.get() + dash.cushion.get() > 1.0 {
        ("cushion", "`reservoir` and `cushion` are more than the buffer together; write less".to_owned())
    } else {
        return Some(dash);
    };
    fields.refuse(key, message, problems);
    None
}

/// A key that the algorithm does not use and whose value is not its default, and the algorithm that uses it.
fn idle(dash: &Dash) -> Option<(&'static str, &'static str)> {
    let default = Dash::from_args(&Args::default().of_table(Dash::PARAMS)).ok()?;
    let of_buffer =
        [("reservoir", dash.reservoir != default.reservoir), ("cushion", dash.cushion != default.cushion)];
    let of_throughput =
        [("window", dash.window != default.window), ("safety", dash.safety != default.safety)];
    let (keys, other) = match dash.algorithm {
        Adaptation::Buffer => (of_throughput, "throughput"),
        Adaptation::Throughput => (of_buffer, "buffer"),
    };
    keys.into_iter().find(|(_, is_set)| *is_set).map(|(key, _)| (key, other))
}

/// The disagreement between a ladder and the mean rates of the sizes in `file`. Chosen: a video has segments
/// between half and twice its rate.
fn disagreement(ladder: &[Rate], means: &[Rate], file: &str) -> Option<String> {
    if ladder.len() != means.len() {
        return Some(format!("the lines of `{file}` have {} sizes; write as many rates", means.len()));
    }
    let is_far = |(said, mean): &(&Rate, &Rate)| {
        let (said, mean) = (said.as_bit() as f64, mean.as_bit() as f64);
        mean > 2.0 * said || said > 2.0 * mean
    };
    let (said, mean) = ladder.iter().zip(means).find(is_far)?;
    Some(format!(
        "the sizes in `{file}` of the rate {said} are those of {mean} on average; write that, or leave `ladder` out for the means"
    ))
}

/// The mean rate of each column of sizes.
fn of_means(sizes: &[Arc<[Bytes]>], segment: Span) -> Arc<[Rate]> {
    let seconds = segment.as_secs_f64() * sizes.len() as f64;
    let rate = |column: usize| {
        let all: u64 = sizes.iter().map(|sizes| sizes[column].bits()).sum();
        Rate::from_bit((all as f64 / seconds) as u64)
    };
    (0..sizes.first().map_or(0, |first| first.len())).map(rate).collect()
}

fn ladder(fields: &Fields<'_>, problems: &mut Problems) -> Option<Arc<[Rate]>> {
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
    let call = fields.read(AdaptiveCall::from_args, i, problems)?;
    let AdaptiveCall { min, max, first, packet, .. } = call;
    frames_per_second(fields, i, problems)?;
    let (key, message) = if !(min..=max).contains(&first) {
        ("first", format!("{first} is not between `min`, {min}, and `max`, {max}"))
    } else if min.bytes_in(call.interval()) <= RTP_HEADERS {
        ("min", format!("a frame at {min} has no room for its {RTP_HEADERS} of headers; write more"))
    } else if packet < RTP_HEADERS + RTP_HEADERS + Bytes::new(2) || packet > MAX_PACKET {
        // The parts of a frame differ by at most a byte, so each is larger than half of a packet.
        ("packet", format!("packets of a call have 82B to {MAX_PACKET}"))
    } else {
        return Some(call);
    };
    fields.refuse(key, message, problems);
    None
}

pub(crate) fn frames_per_second(fields: &Fields<'_>, i: u64, problems: &mut Problems) -> Option<f64> {
    let fps = fields.get("fps", i, problems)?;
    if !FRAMES_PER_SECOND.contains(&fps) {
        fields.refuse("fps", "a video has 0.1 to 10000 frames a second; write for example 25", problems);
    }
    Some(fps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ladder_may_not_contradict_the_sizes() {
        let rates = |mbit: &[u64]| mbit.iter().map(|mbit| Rate::from_mbit(*mbit)).collect::<Vec<_>>();
        let said = |ladder: &[u64], means: &[u64]| disagreement(&rates(ladder), &rates(means), "film.csv");
        assert_eq!(said(&[1, 4], &[2, 3]), None);
        assert_eq!(
            said(&[1, 4], &[1, 9]).as_deref(),
            Some(
                "the sizes in `film.csv` of the rate 4Mbit are those of 9Mbit on average; write that, or leave `ladder` out for the means"
            )
        );
        assert_eq!(said(&[4, 1], &[1, 4]).map(|text| text.contains("of the rate 4Mbit")), Some(true));
        assert_eq!(
            said(&[1], &[1, 4]).as_deref(),
            Some("the lines of `film.csv` have 2 sizes; write as many rates")
        );
    }
}
