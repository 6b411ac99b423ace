//! Video and voice: sources that react to delay and loss, and their quality at the other end.
//!
//! A source is a state machine of both ends. A backend carries [emissions](Emission) from one end to the
//! other, calls the timer when it is due, and announces the measured part; `now` is an argument. There are no
//! random draws.
//!
//! | module | holds |
//! |---|---|
//! | [`player`] | adaptive video over TCP: requests, the buffer, quality for the viewer |
//! | [`call`] | calls over UDP: frames, reports, delay and loss |
//! | [`probe`] | the rate of the path at the start of a call, by clusters of packets |
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

/// An emission of one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Emission {
    /// The viewer's request for the segment with this number. Sent back.
    Request(u32),
    /// A packet of a call: its number and its size on the wire. Sent forth.
    Datagram(u32, Bytes),
    /// The report with this number from the receiver of a call. Sent back.
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

    /// Time to call the timer.
    #[must_use]
    pub fn next_timer(&self) -> Option<Time> {
        match self {
            Self::Player(player) => player.next_timer(),
            Self::Call(call) => call.next_timer(),
        }
    }

    /// Handles what is due by `now`; emissions go to `out`.
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Emission>) {
        match self {
            Self::Player(player) => out.extend(player.on_timer(now).map(Emission::Request)),
            Self::Call(call) => call.on_timer(now, out),
        }
    }

    /// Begins the measured part.
    pub fn begin_measuring(&mut self, now: Time) {
        match self {
            Self::Player(player) => player.begin_measuring(now),
            Self::Call(call) => call.begin_measuring(now),
        }
    }

    /// The quality in the measured part, which ends at `now`.
    #[must_use]
    pub fn outcome(&mut self, now: Time) -> MediaOutcome {
        match self {
            Self::Player(player) => MediaOutcome::Playback(player.outcome(now)),
            Self::Call(call) => MediaOutcome::Call(call.outcome(now)),
        }
    }
}
