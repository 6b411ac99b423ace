//! Aggregation: several packets for one access to the medium, with the settings in [`Aggregate`].
//!
//! The size of a packet is known once it is taken from the queue, so a packet that no longer fits is kept
//! outside the queue, as the first of the next aggregate: at most one packet is kept.
//!
//! Cost: O(1) for each packet; over a recorded link, O(opportunities of the aggregate) for each of its
//! packets.

use apportion_core::Packet as _;
use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::random::Stream;
use apportion_core::transmission::Transmission;
use apportion_core::units::{Bytes, Rate, Time};
use apportion_scenario::model::Aggregate;

use crate::packet::Packet;

/// The aggregation of a transmitter, and the packets of its next aggregate.
#[derive(Debug)]
pub struct Aggregation {
    params: Aggregate,
    random: Stream,
    /// The packet that did not fit the last aggregate.
    kept: Option<Packet>,
    packets: Vec<Packet>,
    /// The bytes of these packets on the air.
    size: Bytes,
}

impl Aggregation {
    /// An empty aggregate; `random` decides about retransmissions.
    #[must_use]
    pub const fn new(params: Aggregate, random: Stream) -> Self {
        Self { params, random, kept: None, packets: Vec::new(), size: Bytes::ZERO }
    }

    /// Whether a packet is kept here.
    #[must_use]
    pub const fn keeps_one(&self) -> bool {
        self.kept.is_some()
    }

    /// Takes packets for an aggregate that begins at `now`, at `rate` or by the opportunities of `trace`.
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

    /// Whether the next aggregate is empty.
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

    /// The time at which the aggregate that begins at `now` has been sent, with retransmissions.
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
            // Terminates: the probability is at most 90 %.
            if !self.random.chance(self.params.retry.get()) {
                return at;
            }
        }
    }

    /// Returns the end as [`end`](Self::end) does, for an aggregate of one packet that bypassed the queue.
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

    /// Removes and returns the packets, in order.
    pub fn drain(&mut self) -> std::vec::Drain<'_, Packet> {
        self.packets.drain(..)
    }
}
