//! Several packets for one access to the medium: what [`Aggregate`] says of a link.
//!
//! A packet is known once it is taken from the queue, so one that does not fit any more is kept, out of the queue, as the
//! first of the next aggregate: what is in hand is one packet at most.
//!
//! Cost: O(1) for each packet; over a recorded link, O(opportunities of the aggregate) for each packet of it.

use apportion_core::Packet as _;
use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::random::Stream;
use apportion_core::transmission::Transmission;
use apportion_core::units::{Bytes, Rate, Time};
use apportion_scenario::model::Aggregate;

use crate::packet::Packet;

/// How a transmitter aggregates, and the packets of its next aggregate.
#[derive(Debug)]
pub struct Aggregation {
    params: Aggregate,
    random: Stream,
    /// Did not fit the last one.
    kept: Option<Packet>,
    packets: Vec<Packet>,
    /// Bytes of these on the air.
    size: Bytes,
}

impl Aggregation {
    /// With what is sent again by chance from `random`.
    #[must_use]
    pub const fn new(params: Aggregate, random: Stream) -> Self {
        Self { params, random, kept: None, packets: Vec::new(), size: Bytes::ZERO }
    }

    /// Whether a packet waits here.
    #[must_use]
    pub const fn keeps_one(&self) -> bool {
        self.kept.is_some()
    }

    /// Takes packets for an aggregate that begins at `now`, at `rate` or as `trace` says.
    pub fn fill(
        &mut self,
        now: Time,
        rate: Rate,
        trace: Option<&DeliveryTrace>,
        take: &mut dyn FnMut() -> Option<Packet>,
    ) {
        self.size = Bytes::ZERO;
        while self.packets.len() < self.params.packets as usize {
            let Some(packet) = self.kept.take().or_else(&mut *take) else { return };
            let size = self.size + self.on_air(packet);
            if !self.packets.is_empty() && !self.fits(now, size, rate, trace) {
                self.kept = Some(packet);
                return;
            }
            self.size = size;
            self.packets.push(packet);
        }
    }

    /// Whether there is no packet in the next aggregate.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    fn on_air(&self, packet: Packet) -> Bytes {
        packet.size() + self.params.header
    }

    fn fits(&self, now: Time, size: Bytes, rate: Rate, trace: Option<&DeliveryTrace>) -> bool {
        if size > self.params.bytes {
            return false;
        }
        let begin = now + self.params.overhead;
        let airtime = match trace {
            Some(trace) => trace.clone().send(begin, size).since(begin),
            None => rate.time_for(size),
        };
        airtime <= self.params.airtime
    }

    /// When the aggregate has been sent that begins at `now`, with what has to be sent again.
    pub fn end(
        &mut self,
        now: Time,
        times: &mut Transmission,
        mut trace: Option<&mut DeliveryTrace>,
    ) -> Time {
        let mut at = now;
        loop {
            let begin = at + self.params.overhead;
            at = match &mut trace {
                Some(trace) => trace.send(begin, self.size),
                None => begin + times.time(self.size),
            };
            // Ends: the probability is 90 % at most.
            if !self.random.chance(self.params.retry.get()) {
                return at;
            }
        }
    }

    /// As [`end`](Self::end), of an aggregate of one packet that went past the queue.
    pub fn end_of_one(
        &mut self,
        now: Time,
        packet: Packet,
        times: &mut Transmission,
        trace: Option<&mut DeliveryTrace>,
    ) -> Time {
        self.size = self.on_air(packet);
        self.end(now, times, trace)
    }

    /// Takes the packets out, in their order.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Packet> {
        self.packets.drain(..)
    }
}
