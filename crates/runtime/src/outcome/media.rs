//! The quality of video and voice.

use apportion_core::units::{Rate, Span};
use serde::{Deserialize, Serialize};

/// The quality for a viewer or listener in the measured part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MediaOutcome {
    /// The quality of adaptive video.
    Playback(Playback),
    Call(CallQuality),
}

/// The quality for a viewer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Playback {
    /// Time from the start of the flow to the first picture, anywhere in the run; none if there was none.
    pub startup: Option<Span>,
    /// Length of the video that was played.
    pub played: Span,
    /// The mean rate of that; none if none was played.
    pub rate: Option<Rate>,
    /// Number of stalls of playback with an empty buffer.
    pub stalls: u64,
    /// Total length of stalls.
    pub stalled: Span,
    /// Changes of the rate between a segment and the next one.
    pub switches: u64,
}

/// The quality for a listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallQuality {
    /// The mean rate of the sender, on the wire.
    pub rate: Rate,
    /// The mouth-to-ear delay; none if no packet arrived.
    pub mouth_to_ear: Option<Span>,
    /// The share of packets that did not arrive in time to be played; none if there were none.
    pub lost: Option<f64>,
    /// The rating of the E-model; none if no packet arrived.
    pub r: Option<f64>,
    /// The mean opinion score, 1 to 4.5; none if no packet arrived.
    pub mos: Option<f64>,
}
