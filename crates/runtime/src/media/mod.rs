//! Video and voice as people feel them: sources that react to delay and loss, and what is measured at the other end.
//!
//! A source is a state machine of both ends. A backend carries what one end [sends](Emission) to the other, calls the timer when it
//! is due, and says when the measured part begins; `now` is an argument. Nothing is drawn at random.
//!
//! | module | holds |
//! |---|---|
//! | [`player`] | adaptive video over TCP: requests, the buffer, what the viewer sees |
//! | [`call`] | calls over UDP: frames, reports, delay and loss |
//! | [`probe`] | what the path carries at the start of a call, by clusters of packets |
//! | [`rate_control`] | the rate of a call, by the gradient of delay and by loss |
//! | [`e_model`] | the quality of a call from delay and loss |

pub mod call;
pub mod e_model;
pub mod player;
pub mod probe;
pub mod rate_control;

use apportion_core::units::{Bytes, Time};
use apportion_scenario::model::Source;

use crate::outcome::MediaOutcome;
use call::Call;
use player::Player;

/// A source of video or voice, with both of its ends.
#[derive(Debug)]
pub enum Media {
    /// Adaptive video.
    Player(Player),
    Call(Call),
}

/// What an end sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Emission {
    /// The viewer asks for the segment with this number. Sent back.
    Request(u32),
    /// A packet of a call: its number and its size on the wire. Sent forth.
    Datagram(u32, Bytes),
    /// The report with this number of the receiver of a call. Sent back.
    Report(u32),
}

impl Media {
    /// The source of a flow of the scenario between `start` and `stop`; `None` if it is of another kind.
    #[must_use]
    pub fn new(source: &Source, start: Time, stop: Time) -> Option<Self> {
        Some(match source {
            Source::Dash(dash) => Self::Player(Player::new(dash.clone(), start, stop)),
            Source::Voice(voice) => Self::Call(Call::voice(voice.codec, start, stop)),
            Source::Call(call) => Self::Call(Call::adaptive(call, start, stop)),
            _ => return None,
        })
    }

    /// When the timer is to be called.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        match self {
            Self::Player(player) => player.next_timer(),
            Self::Call(call) => call.next_timer(),
        }
    }

    /// Does what is due by `now`; what is sent goes to `out`.
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Emission>) {
        match self {
            Self::Player(player) => out.extend(player.on_timer(now).map(Emission::Request)),
            Self::Call(call) => call.on_timer(now, out),
        }
    }

    /// The measured part begins.
    pub fn begin_measuring(&mut self, now: Time) {
        match self {
            Self::Player(player) => player.begin_measuring(now),
            Self::Call(call) => call.begin_measuring(now),
        }
    }

    /// What the measured part came to, which ends at `now`.
    #[must_use]
    pub fn outcome(&mut self, now: Time) -> MediaOutcome {
        match self {
            Self::Player(player) => MediaOutcome::Playback(player.outcome(now)),
            Self::Call(call) => MediaOutcome::Call(call.outcome(now)),
        }
    }
}
