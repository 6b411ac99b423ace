//! Demands of sources.

use apportion_core::units::{Bytes, Rate, Span};

use crate::media::Codec;
use crate::model::{Cbr, Flow, Frames, OnOff, Poisson, Source, Video};

/// Mean demand of a flow in bits per second; `None` for as much as it can get.
pub(crate) fn mean_demand(flow: &Flow) -> Option<f64> {
    source_demand(&flow.source).map(|each| each * f64::from(flow.connections))
}

/// Demand of one connection in bits per second while it is on, for an on-off source.
pub(super) fn peak(source: &Source) -> Option<f64> {
    match source {
        Source::OnOff(on_off) => Some(on_off.rate.as_bit() as f64),
        other => source_demand(other),
    }
}

/// Time after which a source has no more to send, whatever it gets; `None` if it does not end.
pub(super) fn length(source: &Source) -> Option<Span> {
    match source {
        Source::Replay { packets } => packets.last().map(|&(at, _)| at),
        _ => None,
    }
}

/// The mean size of a flow's packets: a write with its headers, or a full packet.
pub(super) fn mean_packet(flow: &Flow) -> Bytes {
    let full = flow.transport.packet();
    let header = full.saturating_sub(flow.transport.segment());
    match &flow.source {
        Source::Cbr(Cbr { packet, .. })
        | Source::Poisson(Poisson { packet, .. })
        | Source::OnOff(OnOff { packet, .. }) => full.min(*packet + header),
        Source::Replay { packets } => {
            let all: u64 = packets.iter().map(|(_, size)| size.get()).sum();
            all.checked_div(packets.len() as u64).map_or(full, Bytes::new)
        }
        _ => full,
    }
}

/// Mean demand of a source in bits per second; `None` for as much as it can get.
fn source_demand(source: &Source) -> Option<f64> {
    let rate = |rate: &Rate| rate.as_bit() as f64;
    let bits = |size: &Bytes| size.get() as f64 * 8.0;
    match source {
        Source::Greedy | Source::File { .. } => None,
        Source::Cbr(Cbr { rate: wanted, .. }) | Source::Poisson(Poisson { rate: wanted, .. }) => {
            Some(rate(wanted))
        }
        Source::OnOff(OnOff { rate: wanted, on, off, .. }) => {
            let (on, off) = (on.mean.as_secs_f64(), off.mean.as_secs_f64());
            Some(rate(wanted) * on / (on + off))
        }
        Source::ShortFlows(short) => Some(short.per_second * (short.sizes.mean() * 8.0)),
        // An upper bound: for pages that take no time.
        Source::Web(web) => Some(web.population() * web.page() * 8.0 / web.think.as_secs_f64()),
        Source::Video(Video { frames: Frames::Gop { mean }, .. }) => Some(rate(mean)),
        Source::Video(Video { fps, frames: Frames::Trace(frames), .. }) => {
            Some(fps * frames.iter().map(bits).sum::<f64>() / frames.len().max(1) as f64)
        }
        // A player sends as fast as possible between requests, and pauses: the highest of its rates is its
        // maximum on average.
        Source::Dash(dash) => dash.ladder.last().map(rate),
        Source::Voice(voice) => Some(bits(&voice.codec.packet()) / Codec::FRAME.as_secs_f64()),
        Source::Call(call) => Some(rate(&call.max)),
        Source::Replay { packets } => {
            let length = packets.last().map_or(0.0, |(at, _)| at.as_secs_f64());
            (length > 0.0).then(|| packets.iter().map(|(_, size)| bits(size)).sum::<f64>() / length)
        }
    }
}
