//! What people got of video and voice.

use apportion_core::units::{Rate, Span};
use serde::{Deserialize, Serialize};

/// What a viewer or listener got in the measured part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum MediaOutcome {
    /// Of adaptive video.
    Playback(Playback),
    Call(CallQuality),
}

/// What a viewer saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Playback {
    /// From the start of the flow to the first picture, wherever in the run that was; none if there was none.
    pub startup: Option<Span>,
    /// Video played.
    pub played: Span,
    /// Its mean rate; none if nothing was played.
    pub rate: Option<Rate>,
    /// Times that playback stopped because nothing was left to play.
    pub stalls: u64,
    /// How long it stood still.
    pub stalled: Span,
    /// Changes of the rate between a segment and the next one.
    pub switches: u64,
}

/// What a listener heard.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CallQuality {
    /// What the sender sent on average, on the wire.
    pub rate: Rate,
    /// From the mouth to the ear; none if no packet arrived.
    pub mouth_to_ear: Option<Span>,
    /// The share of packets that did not arrive in time to be played; none if there was none.
    pub lost: Option<f64>,
    /// The rating of the E-model; none likewise.
    pub r: Option<f64>,
    /// The mean opinion score, 1 to 4.5; none likewise.
    pub mos: Option<f64>,
}
