//! RED's average queue: an exponential average over arrivals that accounts for idle time of the link.
//!
//! Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993,
//! eq. (1) and section 11. This is not a policy but the part that RED and its relatives share.
//!
//! Reading: an idle period starts when the link asks and the queue is empty, which is the end of the last
//! transmission.
//!
//! Cost: O(1), one power after an idle period; 48 bytes.

use crate::packet::Packet;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Bytes, Rate, Ratio, Time};

/// The average, in the unit of the queue.
#[derive(Clone, Debug)]
pub(crate) struct AverageQueue {
    w_q: f64,
    mean_pktsize: Bytes,
    link_rate: Rate,
    avg: f64,
    /// Start of the idle period, if the queue is idle.
    q_time: Option<Time>,
}

impl AverageQueue {
    /// An average of 0 that has been idle since the start of the run.
    pub(crate) const fn new(w_q: Ratio, mean_pktsize: Bytes, link_rate: Rate) -> Self {
        Self { w_q: w_q.get(), mean_pktsize, link_rate, avg: 0.0, q_time: Some(Time::ZERO) }
    }

    /// avg, the present average.
    pub(crate) const fn get(&self) -> f64 {
        self.avg
    }

    /// Updates the average for an arrival at `now` that finds a queue of `q`.
    pub(crate) fn update(&mut self, now: Time, q: f64) {
        self.resume(now);
        self.sample(q);
    }

    /// Ends an idle period, if there is one, at `now`.
    pub(crate) fn resume(&mut self, now: Time) {
        if let Some(q_time) = self.q_time.take() {
            // Section 11: the m small packets that could have been sent in that time would each have seen an
            // empty queue.
            let m = self.link_rate.bytes_in(now.since(q_time)).get() / self.mean_pktsize.get();
            if m > 0 {
                self.avg *= libm::pow(1.0 - self.w_q, m as f64);
            }
        }
    }

    /// Adds one observation of the queue.
    pub(crate) const fn sample(&mut self, q: f64) {
        // 1993 paper, eq. (1).
        self.avg = (1.0 - self.w_q) * self.avg + self.w_q * q;
    }

    /// Notes that the link asked at `now` and the queue was empty.
    pub(crate) fn idle(&mut self, now: Time) {
        self.q_time.get_or_insert(now);
    }

    /// Removes and returns the next packet of `scheduler`; idle time starts if there is none. Inlined: a
    /// packet returned by a call passes through memory, which costs 20 instructions.
    #[inline(always)]
    pub(crate) fn pop<P: Packet, S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
    ) -> Option<Queued<P>> {
        let queued = scheduler.pop(now);
        if queued.is_none() {
            self.idle(now);
        }
        queued
    }

    /// Sets the weight of each observation.
    pub(crate) const fn set_weight(&mut self, w_q: Ratio) {
        self.w_q = w_q.get();
    }

    /// Sets the rate at which packets could have left in idle time.
    pub(crate) const fn set_link_rate(&mut self, rate: Rate) {
        self.link_rate = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn average(w_q: f64) -> AverageQueue {
        AverageQueue::new(Ratio::clamped(w_q), Bytes::new(500), Rate::from_mbit(4))
    }

    #[test]
    fn each_arrival_moves_it_by_its_weight() {
        let mut average = average(0.25);
        let avg = [8.0, 4.0, 0.0].map(|q| {
            average.update(Time::ZERO, q);
            average.get()
        });
        // 0.25·8 = 2; 0.75·2 + 0.25·4 = 2.5; 0.75·2.5 + 0 = 1.875.
        assert_eq!(avg, [2.0, 2.5, 1.875]);
    }

    #[test]
    fn idle_time_counts_as_the_packets_it_had_room_for() {
        let mut average = average(0.5);
        average.update(Time::ZERO, 16.0);
        average.idle(Time::from_millis(10));
        // A second question while idle does not change the start.
        average.idle(Time::from_millis(11));
        // 500 B take 1 ms at 4 Mbit/s: in 2.9 ms m = 2, so avg = 8·0.5³ + 0.5·0 = 1.
        average.update(Time::from_nanos(12_900_000), 0.0);
        assert_eq!(average.get(), 1.0);
        // No longer idle: the same time again, 0.5·1 + 0.5·3 = 2.
        average.update(Time::from_millis(20), 3.0);
        assert_eq!(average.get(), 2.0);
    }
}
