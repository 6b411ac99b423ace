//! The round-trip time: RFC 9002 section 5, in whole nanoseconds.

use apportion_core::units::{Span, Time};

/// RFC 9002 section 6.2.2, kInitialRtt.
const INITIAL: Span = Span::from_millis(333);
/// Section 6.1.2, kGranularity.
pub const GRANULARITY: Span = Span::from_millis(1);

/// The round-trip time of a path as a sender knows it. Names as in RFC 9002 appendix A.3.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    latest_rtt: Span,
    min_rtt: Span,
    smoothed_rtt: Span,
    rttvar: Span,
    first_rtt_sample: Option<Time>,
}

impl Rtt {
    /// The state before the first sample.
    pub const START: Self = Self {
        latest_rtt: Span::ZERO,
        min_rtt: Span::ZERO,
        smoothed_rtt: INITIAL,
        rttvar: Span::from_nanos(INITIAL.as_nanos() / 2),
        first_rtt_sample: None,
    };

    /// A packet was acknowledged after `latest`; the receiver delayed the ACK by `ack_delay`, at most
    /// `max_ack_delay`.
    pub fn sample(&mut self, now: Time, latest: Span, ack_delay: Span, max_ack_delay: Span) {
        self.latest_rtt = latest;
        if self.first_rtt_sample.is_none() {
            (self.min_rtt, self.smoothed_rtt, self.rttvar) = (latest, latest, latest.div(2));
            self.first_rtt_sample = Some(now);
            return;
        }
        self.min_rtt = self.min_rtt.min(latest);
        // Section 5.3: an excess over the maximum delay belongs to the path, and no sample falls below the
        // minimum.
        let ack_delay = ack_delay.min(max_ack_delay);
        let adjusted = if latest >= self.min_rtt + ack_delay { latest - ack_delay } else { latest };
        // Appendix A.7: the deviation is from the mean before this sample.
        let deviation = self.smoothed_rtt.as_nanos().abs_diff(adjusted.as_nanos());
        self.rttvar = Span::from_nanos((3 * self.rttvar.as_nanos() + deviation) / 4);
        self.smoothed_rtt = Span::from_nanos((7 * self.smoothed_rtt.as_nanos() + adjusted.as_nanos()) / 8);
    }

    /// Section 5.2: forgets the minimum, and takes the newest sample as the minimum.
    pub const fn forget_min(&mut self) {
        self.min_rtt = self.latest_rtt;
    }

    /// Section 6.1.2: the time threshold of losses.
    #[must_use]
    pub fn loss_delay(&self) -> Span {
        // kTimeThreshold, 9/8.
        (self.smoothed_rtt.max(self.latest_rtt) * 9).div(8).max(GRANULARITY)
    }

    /// Section 6.2.1, before backoff. In the handshake no ACK is delayed: `max_ack_delay` is zero.
    #[must_use]
    pub fn pto(&self, max_ack_delay: Span) -> Span {
        self.smoothed_rtt + (self.rttvar * 4).max(GRANULARITY) + max_ack_delay
    }

    /// The smoothed round-trip time, once measured.
    #[must_use]
    pub fn srtt(&self) -> Option<Span> {
        self.first_rtt_sample.map(|_| self.smoothed_rtt)
    }

    /// The last sample.
    #[must_use]
    pub const fn latest(&self) -> Span {
        self.latest_rtt
    }

    /// The minimum round-trip time.
    #[must_use]
    pub const fn min(&self) -> Span {
        self.min_rtt
    }

    /// The time of the first sample.
    #[must_use]
    pub const fn first_sample(&self) -> Option<Time> {
        self.first_rtt_sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(span: Span) -> f64 {
        span.as_secs_f64() * 1e3
    }

    #[test]
    fn samples_are_adjusted_for_the_delay_that_the_receiver_names() {
        let (mut rtt, most) = (Rtt::START, Span::from_millis(25));
        // Section 6.2.2: 333 + 4 · 166.5 ms.
        assert_eq!(rtt.pto(Span::ZERO), Span::from_millis(999));
        assert_eq!(rtt.srtt(), None);
        // The first sample counts unchanged.
        rtt.sample(Time::from_secs(1), Span::from_millis(100), Span::from_millis(20), most);
        assert_eq!((rtt.srtt(), rtt.pto(most)), (Some(Span::from_millis(100)), Span::from_millis(325)));
        // 140 - 20 = 120: rttvar 3/4 · 50 + 1/4 · 20 = 42.5, smoothed 100 + 20/8 = 102.5.
        rtt.sample(Time::from_secs(2), Span::from_millis(140), Span::from_millis(20), most);
        assert_eq!((millis(rtt.smoothed_rtt), millis(rtt.rttvar)), (102.5, 42.5));
        // 110 - 20 would be below the minimum, 100: 110 counts. Deviation 7.5: 31.875 + 1.875.
        rtt.sample(Time::from_secs(3), Span::from_millis(110), Span::from_millis(20), most);
        assert_eq!((millis(rtt.smoothed_rtt), millis(rtt.rttvar)), (103.4375, 33.75));
        // 25 of 60 ms of delay count: 155.
        rtt.sample(Time::from_secs(4), Span::from_millis(180), Span::from_millis(60), most);
        // (7 · 103.4375 + 155) / 8 = 109.8828125, in whole nanoseconds.
        assert_eq!(rtt.smoothed_rtt, Span::from_nanos(109_882_812));
        assert_eq!((rtt.min(), rtt.first_sample()), (Span::from_millis(100), Some(Time::from_secs(1))));
    }

    #[test]
    fn a_loss_takes_nine_eighths_of_the_longer_round_trip_and_a_millisecond_at_least() {
        let mut rtt = Rtt::START;
        rtt.sample(Time::ZERO, Span::from_millis(80), Span::ZERO, Span::ZERO);
        assert_eq!(rtt.loss_delay(), Span::from_millis(90));
        // The last sample is longer than the mean, 90.
        rtt.sample(Time::ZERO, Span::from_millis(160), Span::ZERO, Span::ZERO);
        assert_eq!(rtt.loss_delay(), Span::from_millis(180));
        let mut short = Rtt::START;
        short.sample(Time::ZERO, Span::from_micros(100), Span::ZERO, Span::ZERO);
        assert_eq!((short.loss_delay(), short.pto(Span::ZERO)), (GRANULARITY, Span::from_micros(1_100)));
    }
}
