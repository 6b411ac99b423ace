//! The delivery rate of the network: a sample for each ACK.
//!
//! draft-cheng-iccrg-delivery-rate-estimation-00 sections 2 and 3, in segments. An ACK gives no sample if
//! none of its segments was sent later than those delivered before. Cost: 56 bytes for each outstanding
//! segment; O(log segments) to find one.

use std::collections::VecDeque;

use apportion_core::units::{Span, Time};

/// The state recorded for an outstanding segment (section 3.1.2, P).
#[derive(Clone, Copy, Debug)]
struct Sent {
    end: u64,
    at: Time,
    delivered: u64,
    delivered_time: Time,
    first_sent_time: Time,
    is_app_limited: bool,
    again: bool,
    in_flight: u32,
    lost: u64,
    is_lost: bool,
}

/// The delivered count and the outstanding segments (section 3.1.1, C).
#[derive(Clone, Debug, Default)]
pub struct DeliveryRate {
    sent: VecDeque<Sent>,
    delivered: u64,
    delivered_time: Time,
    first_sent_time: Time,
    /// The delivered count up to which samples are application-limited; zero if none are.
    app_limited: u64,
    /// The number of lost segments.
    lost: u64,
    transit: Transit,
}

/// The conditions that a segment met: the one sent last among those delivered, or a lost one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transit {
    /// Segments in flight when it was sent, itself included.
    pub in_flight: u32,
    /// Segments lost since it was sent.
    pub lost: u64,
    /// Whether the application limited sending then.
    pub is_app_limited: bool,
}

/// A rate sample (section 3.1.3, rs).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// The delivered count at the transmission of the segment sent last among those that the ACK delivers.
    pub prior_delivered: u64,
    /// Segments delivered since then.
    pub delivered: u64,
    /// The duration of the sample.
    pub interval: Span,
    /// Whether the sample is application-limited.
    pub is_app_limited: bool,
    /// The round-trip time of that segment, if it was sent once.
    pub rtt: Option<Span>,
}

impl Sent {
    /// The conditions that it met, when `lost` segments are lost.
    const fn transit(&self, lost: u64) -> Transit {
        Transit { in_flight: self.in_flight, lost: lost - self.lost, is_app_limited: self.is_app_limited }
    }
}

impl DeliveryRate {
    /// Segments delivered so far.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Segments lost so far, counted once for each loss.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether the application leaves the path idle.
    #[must_use]
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited > 0
    }

    /// Notes that the application has no more data, with `in_flight` segments in flight (section 3.4).
    pub fn limit(&mut self, in_flight: u32) {
        self.app_limited = (self.delivered + u64::from(in_flight)).max(1);
    }

    /// Notes that the segment that ends at `end` is sent, or again, after `in_flight` others (section 3.2).
    pub fn send(&mut self, now: Time, end: u64, in_flight: u32) {
        if in_flight == 0 {
            (self.first_sent_time, self.delivered_time) = (now, now);
        }
        let again = self.sent.back().is_some_and(|last| end <= last.end);
        let sent = Sent {
            end,
            at: now,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            is_app_limited: self.app_limited > 0,
            again,
            in_flight: in_flight + 1,
            lost: self.lost,
            is_lost: false,
        };
        if again {
            let at = self.sent.partition_point(|other| other.end < end);
            self.sent[at] = sent;
        } else {
            self.sent.push_back(sent);
        }
    }

    /// Notes that the segment that ends at `end` is lost. Returns the conditions that it met, and whether the
    /// segment before it is not lost; none if the loss is known already.
    pub fn lose(&mut self, end: u64) -> Option<(Transit, bool)> {
        let at = self.sent.partition_point(|sent| sent.end < end);
        let begins = at.checked_sub(1).is_none_or(|before| !self.sent[before].is_lost);
        let sent = self.sent.get_mut(at).filter(|sent| !sent.is_lost)?;
        sent.is_lost = true;
        self.lost += 1;
        Some((sent.transit(self.lost), begins))
    }

    /// The conditions that the segment of the last sample met.
    #[must_use]
    pub const fn transit(&self) -> Transit {
        self.transit
    }

    /// Notes that an ACK delivers `segments`. The one that ends at `latest` was sent last of those, if later
    /// than all before. All below `una` has arrived (section 3.3).
    pub fn deliver(&mut self, now: Time, segments: u32, latest: Option<u64>, una: u64) -> Option<RateSample> {
        if segments > 0 {
            self.delivered += u64::from(segments);
            self.delivered_time = now;
        }
        let at = |end: u64| self.sent.partition_point(|sent| sent.end < end);
        let latest = latest.and_then(|end| self.sent.get(at(end)).copied());
        while self.sent.front().is_some_and(|sent| sent.end <= una) {
            self.sent.pop_front();
        }
        if self.app_limited > 0 && self.delivered > self.app_limited {
            self.app_limited = 0;
        }
        let latest = latest?;
        self.first_sent_time = latest.at;
        self.transit = latest.transit(self.lost);
        let send_elapsed = latest.at.since(latest.first_sent_time);
        let ack_elapsed = now.since(latest.delivered_time);
        Some(RateSample {
            prior_delivered: latest.delivered,
            delivered: self.delivered - latest.delivered,
            interval: send_elapsed.max(ack_elapsed),
            is_app_limited: latest.is_app_limited,
            rtt: (!latest.again).then(|| now.since(latest.at)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn an_outstanding_segment_takes_56_bytes() {
        assert_eq!(size_of::<Sent>(), 56);
    }

    #[test]
    fn acks_that_come_in_a_bunch_do_not_raise_the_rate_above_that_of_sending() {
        // One segment each 10 ms, delivered 100 ms later; ACKs of four come at once, 130 ms after the first.
        let mut rate = DeliveryRate::default();
        (0..20).for_each(|n| rate.send(at(10 * n), n + 1, n as u32));
        // The first four were sent when nothing was delivered: 130 ms since the first transmission.
        let first = rate.deliver(at(130), 4, Some(4), 4).unwrap();
        assert_eq!((first.prior_delivered, first.delivered, first.interval), (0, 4, Span::from_millis(130)));
        assert_eq!(first.rtt, Some(Span::from_millis(100)));
        // The next are sent over 40 ms and delivered at once, 40 ms after the first.
        (20..24).for_each(|n| rate.send(at(10 * n), n + 1, 16));
        rate.deliver(at(290), 16, Some(20), 20);
        let sample = rate.deliver(at(330), 4, Some(24), 24).unwrap();
        // 21 to 24 were sent from 200 to 230 ms, after 4 were delivered at 130 ms.
        assert_eq!((sample.prior_delivered, sample.delivered), (4, 20));
        assert_eq!(sample.interval, Span::from_millis(200));
    }

    #[test]
    fn what_is_sent_while_the_application_is_idle_is_limited_by_it() {
        let mut rate = DeliveryRate::default();
        rate.send(at(0), 1, 0);
        rate.limit(1);
        rate.send(at(5), 2, 1);
        assert!(!rate.deliver(at(100), 1, Some(1), 1).unwrap().is_app_limited);
        assert!(rate.deliver(at(105), 1, Some(2), 2).unwrap().is_app_limited);
        assert!(!rate.is_app_limited());
        // A retransmission gives no round-trip time; a segment older than delivered ones gives no sample.
        rate.send(at(110), 3, 0);
        rate.send(at(111), 4, 1);
        rate.send(at(310), 3, 1);
        assert_eq!(rate.deliver(at(410), 1, Some(3), 3).unwrap().rtt, None);
        assert_eq!(rate.deliver(at(420), 1, None, 4), None);
    }
}
