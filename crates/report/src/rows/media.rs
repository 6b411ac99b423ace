//! The table of the quality of video and calls.

use apportion_core::units::{Rate, Span};
use apportion_runtime::outcome::{CallQuality, FlowOutcome, MediaOutcome, Playback};
use serde::{Deserialize, Serialize};

use super::column::{Cell, Column, Field, Row};
use crate::replication::Replication;
use crate::units::ms;

row! {
    /// Quality of a flow of source `dash`, `voice` or `call` in the measured part of one replication.
    MediaRow of "media" from MediaAt<'_> as at {
        /// The label of the sweep point; empty without a sweep.
        point: String, "" = at.replication.point.to_owned();
        /// The seed of the replication.
        seed: u64, "" = at.replication.outcome.seed;
        /// The flow.
        flow: String, "" = at.flow.name.clone();
        /// The table of the scenario that the flow comes from.
        group: String, "" = at.flow.group.clone();
        /// Video: mean bit rate played; calls: mean bit rate sent, on the wire, Mb/s.
        bitrate_mbps: Option<f64>, "Mb/s" = at.rate().map(Rate::as_mbit_f64);
        /// Video: time from the start of the flow, also before the measured part, to the first picture, s.
        startup_s: Option<f64>, "s" = at.seen().and_then(|seen| seen.startup).map(Span::as_secs_f64);
        /// Video: length of what was played, s.
        played_s: Option<f64>, "s" = at.seen().map(|seen| seen.played.as_secs_f64());
        /// Video: stalls after playback began.
        stalls: Option<u64>, "" = at.seen().map(|seen| seen.stalls);
        /// Video: total time of stalls, s.
        stalled_s: Option<f64>, "s" = at.seen().map(|seen| seen.stalled.as_secs_f64());
        /// Video: time of stalls over the time that it played or stalled, 0 to 1.
        stall_ratio: Option<f64>, "" = at.seen().and_then(stall_ratio);
        /// Video: changes of the bit rate between played segments.
        switches: Option<u64>, "" = at.seen().map(|seen| seen.switches);
        /// Calls: mouth-to-ear delay, ms: the 95th percentile of the network's delay, 20 ms of jitter buffer, 20 ms of a packet,
        /// and 5 ms of G.729.
        mouth_to_ear_ms: Option<f64>, "ms" = at.heard().and_then(|heard| heard.mouth_to_ear).map(ms);
        /// Calls: share of packets lost or late.
        lost_share: Option<f64>, "" = at.heard().and_then(|heard| heard.lost);
        /// Calls: rating R of the E-model, at most 93.2.
        r_factor: Option<f64>, "" = at.heard().and_then(|heard| heard.r);
        /// Calls: mean opinion score from R, 1 (bad) to 4.5.
        mos: Option<f64>, "" = at.heard().and_then(|heard| heard.mos);
        /// Whether the replication counts: false if real time was not kept, or if a discipline broke its contract.
        valid: bool, "" = at.valid;
    }
}

/// A flow of a replication with video or voice.
pub(crate) struct MediaAt<'a> {
    replication: Replication<'a>,
    flow: &'a FlowOutcome,
    outcome: &'a MediaOutcome,
    valid: bool,
}

impl<'a> MediaAt<'a> {
    /// The quality of video, for a video flow.
    const fn seen(&self) -> Option<&'a Playback> {
        match self.outcome {
            MediaOutcome::Playback(seen) => Some(seen),
            MediaOutcome::Call(_) => None,
        }
    }

    /// The quality of a call, for a call.
    const fn heard(&self) -> Option<&'a CallQuality> {
        match self.outcome {
            MediaOutcome::Playback(_) => None,
            MediaOutcome::Call(heard) => Some(heard),
        }
    }

    fn rate(&self) -> Option<Rate> {
        match self.outcome {
            MediaOutcome::Playback(seen) => seen.rate,
            MediaOutcome::Call(heard) => Some(heard.rate).filter(|&rate| rate > Rate::ZERO),
        }
    }
}

/// The fraction of a viewer's time in which the picture stood still.
fn stall_ratio(seen: &Playback) -> Option<f64> {
    let watched = seen.played + seen.stalled;
    (watched > Span::ZERO).then(|| seen.stalled.as_secs_f64() / watched.as_secs_f64())
}

/// The rows of a replication by flow; none for flows without video or voice.
pub(crate) fn media(replication: Replication<'_>) -> impl Iterator<Item = MediaRow> {
    let valid = replication.outcome.fault().is_none();
    replication.outcome.flows.iter().filter_map(move |flow| {
        let outcome = flow.media.as_ref()?;
        Some(MediaRow::measured(&MediaAt { replication, flow, outcome, valid }))
    })
}
