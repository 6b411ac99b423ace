//! HyStart: slow start ends before it overflows the queue.
//!
//! Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011, with the constants
//! of Linux's CUBIC. Both signals are used: a train of ACKs that lasts as long as half the minimum round
//! trip, and a round trip whose minimum over its first samples exceeds the overall minimum by an eighth.
//! Paced segments return as a train however fast the path is: for them only the delay is a signal.

use apportion_core::units::{Span, Time};

/// Below this window, slow start continues whatever the signals (section 4.1).
const LOW_WINDOW: f64 = 16.0;
/// The maximum gap between ACKs of one train.
const TRAIN_GAP: Span = Span::from_millis(2);
/// The number of samples of a round trip before it is judged.
const SAMPLES: u32 = 8;
/// The minimum and the maximum increase of delay that ends slow start.
const DELAY_INCREASE: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));

/// The state of slow start in the present round trip.
#[derive(Clone, Copy, Debug)]
pub struct HyStart {
    /// The round ends when this offset is acknowledged.
    end: u64,
    start: Time,
    /// The last ACK of the train at the beginning of the round.
    train: Time,
    samples: u32,
    /// The shortest round-trip time of this round.
    shortest: Option<Span>,
}

/// An ACK in slow start.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// The arrival time.
    pub now: Time,
    /// The offset that it acknowledges.
    pub ack: u64,
    /// The end of the data sent.
    pub sent: u64,
    /// The window, in segments.
    pub cwnd: f64,
    /// The round-trip time that it measures.
    pub rtt: Span,
    /// The minimum round-trip time of the connection.
    pub min_rtt: Span,
    /// Whether segments are paced rather than sent in bursts.
    pub paced: bool,
}

impl HyStart {
    /// The state before the first round.
    pub const START: Self = Self { end: 0, start: Time::ZERO, train: Time::ZERO, samples: 0, shortest: None };

    /// Whether slow start ends with this ACK.
    #[must_use]
    pub fn ends(&mut self, ack: Sample) -> bool {
        if ack.ack > self.end {
            *self = Self { end: ack.sent, start: ack.now, train: ack.now, samples: 0, shortest: None };
        }
        if ack.cwnd < LOW_WINDOW {
            return false;
        }
        if !ack.paced && ack.now.since(self.train) <= TRAIN_GAP {
            self.train = ack.now;
            if ack.now.since(self.start) > ack.min_rtt.div(2) {
                return true;
            }
        }
        let shortest = self.shortest.map_or(ack.rtt, |shortest| shortest.min(ack.rtt));
        self.shortest = Some(shortest);
        if self.samples < SAMPLES {
            self.samples += 1;
            return false;
        }
        let (least, most) = DELAY_INCREASE;
        shortest > ack.min_rtt + ack.min_rtt.div(8).max(least).min(most)
    }
}
