//! Pacing: segments leave in quanta, at a rate, rather than in bursts.
//!
//! A sender that may send more only later has a timer. It expires once for each quantum, so that a paced
//! segment costs fewer events the faster the connection is. The quantum is that of
//! draft-cardwell-iccrg-bbr-congestion-control-00 section 4.2.2. If the congestion control names no rate, it
//! is Linux's (ip-sysctl, tcp_pacing_ss_ratio and tcp_pacing_ca_ratio): the window per smoothed round trip,
//! twice in slow start and 1.2 times after it.
//!
//! A sender that paces [evenly](Pacing::Evenly) sends one window per round trip: pairs of segments, or a
//! pause of a sixth of a round trip, cross thresholds of a packet or two that the mean would not, and the
//! smaller of two flows is marked more often.

use apportion_core::congestion::{Pacing, Window};
use apportion_core::units::{Bytes, Rate, Span, Time};

/// The draft's bounds of the pacing rate, up to which a quantum is one segment, or two.
const ONE_SEGMENT: Rate = Rate::from_kbit(1_200);
const TWO_SEGMENTS: Rate = Rate::from_mbit(24);
/// The duration and the maximum size of a quantum above them.
const QUANTUM: Span = Span::from_millis(1);
const LARGEST: Bytes = Bytes::new(64_000);

/// The duration of a quantum with even pacing; at least one segment.
const EVEN_QUANTUM: Span = Span::from_micros(250);

/// Windows per round trip in slow start, and after it.
const SLOW_START: f64 = 2.0;
const AVOIDANCE: f64 = 1.2;
const EVEN: f64 = 1.0;

/// The time at which a sender may send next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    next: Time,
    /// The time of the next call, if the sender waits.
    due: Option<Time>,
}

impl Pacer {
    /// The number of segments that may leave now, in groups of `quantum`.
    #[must_use]
    pub fn quota(&mut self, now: Time, quantum: u32) -> u32 {
        self.due = None;
        if now < self.next { 0 } else { quantum }
    }

    /// Notes a segment of `size` that leaves.
    pub fn send(&mut self, now: Time, size: Bytes, rate: Rate) {
        self.next = self.next.max(now) + rate.time_for(size);
    }

    /// Notes that there is more to send.
    pub const fn wait(&mut self) {
        self.due = Some(self.next);
    }

    /// The time at which to send it.
    #[must_use]
    pub const fn due(&self) -> Option<Time> {
        self.due
    }
}

/// The number of segments of `wire` bytes that leave together.
#[must_use]
pub fn quantum(rate: Rate, wire: Bytes) -> u32 {
    if rate < ONE_SEGMENT {
        return 1;
    }
    if rate < TWO_SEGMENTS {
        return 2;
    }
    (rate.bytes_in(QUANTUM).min(LARGEST).get() / wire.get()).max(1) as u32
}

/// The number of segments of `wire` bytes that leave together with this [pacing](Pacing).
#[must_use]
pub fn quantum_of(pacing: Pacing, rate: Rate, wire: Bytes) -> u32 {
    match pacing {
        Pacing::None | Pacing::AtRate => quantum(rate, wire),
        Pacing::Evenly => (rate.bytes_in(EVEN_QUANTUM).get() / wire.get()).max(1) as u32,
    }
}

/// The rate of a sender whose congestion control names none.
#[must_use]
pub fn rate_of_window(pacing: Pacing, window: Window, srtt: Span, wire: Bytes) -> Rate {
    let gain = match pacing {
        _ if window.is_slow_start() => SLOW_START,
        Pacing::None | Pacing::AtRate => AVOIDANCE,
        Pacing::Evenly => EVEN,
    };
    Rate::from_bit((gain * window.cwnd * wire.bits() as f64 / srtt.as_secs_f64()) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantum_leaves_when_the_one_before_has_taken_its_time() {
        let wire = Bytes::new(1_500);
        for (mbit, segments) in [(1, 1), (12, 2), (120, 10), (10_000, 42)] {
            let (rate, now) = (Rate::from_mbit(mbit), Time::from_secs(1));
            let mut pacer = Pacer::default();
            assert_eq!(pacer.quota(now, quantum(rate, wire)), segments, "{mbit} Mb/s");
            (0..segments).for_each(|_| pacer.send(now, wire, rate));
            pacer.wait();
            let next = pacer.due().unwrap();
            assert_eq!(next, now + rate.time_for(wire) * u64::from(segments));
            assert_eq!(pacer.quota(now, segments), 0);
            assert_eq!((pacer.quota(next, segments), pacer.due()), (segments, None));
        }
    }

    #[test]
    fn what_leaves_evenly_leaves_one_by_one() {
        let (wire, srtt) = (Bytes::new(1_500), Span::from_millis(10));
        for (mbit, segments) in [(1, 1), (12, 1), (95, 1), (96, 2), (960, 20)] {
            assert_eq!(quantum_of(Pacing::Evenly, Rate::from_mbit(mbit), wire), segments, "{mbit} Mb/s");
        }
        // 10 segments of 12,000 bits in 10 ms.
        let window = |ssthresh| Window { cwnd: 10.0, ssthresh };
        let rate = |pacing, ssthresh| rate_of_window(pacing, window(ssthresh), srtt, wire).as_bit();
        assert_eq!(rate(Pacing::Evenly, 5.0), 12_000_000);
        assert_eq!(rate(Pacing::AtRate, 5.0), 14_400_000);
        assert_eq!(rate(Pacing::Evenly, 20.0), 24_000_000);
    }
}
