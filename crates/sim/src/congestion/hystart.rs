//! HyStart: slow start ends before it overflows the queue.
//!
//! Ha and Rhee, "Taming the elephants: new TCP slow start", Computer Networks 55(9), 2011, with the constants of
//! Linux's CUBIC: both of its signs, a train of ACKs that lasts as long as half the shortest round trip, and a
//! round trip whose shortest of the first samples is longer than the shortest of all by an eighth. Segments that leave at a rate
//! come back as a train however fast the path is: of paced ones the delay alone is a sign.

use apportion_core::units::{Span, Time};

/// Below this window, slow start goes on whatever the signs (section 4.1).
const LOW_WINDOW: f64 = 16.0;
/// ACKs that are further apart do not belong to one train.
const TRAIN_GAP: Span = Span::from_millis(2);
/// Samples of a round trip before it is judged.
const SAMPLES: u32 = 8;
/// The least and the largest increase of delay that ends slow start.
const DELAY_INCREASE: (Span, Span) = (Span::from_millis(4), Span::from_millis(16));

/// What slow start has seen of the round trip under way.
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
    /// When it came.
    pub now: Time,
    /// What it acknowledges.
    pub ack: u64,
    /// The end of what was sent.
    pub sent: u64,
    /// The window, in segments.
    pub cwnd: f64,
    /// The round-trip time that it measures.
    pub rtt: Span,
    /// The shortest round-trip time of the connection.
    pub min_rtt: Span,
    /// Whether segments leave at a rate, and not in bursts.
    pub paced: bool,
}

impl HyStart {
    /// Before the first round.
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
