//! Whether a flow is adaptive, judged by its inter-arrival times, its duration and its throughput.
//!
//! Tamura, Tobe, Tokuda, "SF-FC", NOSSDAV 2000, section 6, names these three characteristics, and no method.
//! This one watches a flow for two seconds (its duration), and then gives a verdict in each epoch in which the
//! flow sends, from the last four seconds or so. A flow is not adaptive if
//!
//! - it sends more than three times the rate that the law of Padhye, Firoiu, Towsley, Kurose 1998, eq. 30,
//!   allows at its losses, the smallest plausible round-trip time and timeout, or
//! - it loses more than a tenth and its throughput is steady: TCP at such losses waits for its timer, or
//! - it uses less than half of its fair share and its packets arrive at regular intervals: an application
//!   sets its rate, and not its losses.
//!
//! All other flows are adaptive. Two verdicts in a row change the class. Until the first, a flow is what it
//! declares itself to be.
//!
//! No packet is dropped for a test, and a flow without losses gets a verdict too: unlike
//! [`answers`](super::answers) it does not wait for proof. So it errs more: bursts below a fair share look like
//! TCP, and so does a datagram flow that loses little. A sender that varies its rate and its intervals passes
//! the second and third test, but not the first.
//!
//! Cost: O(1) per packet, two roots per flow and epoch; 64 bytes per flow.

use super::responsiveness::{EPOCH, most_packets_per_second};
use crate::units::{Bytes, Time};

/// The epochs in which a flow has sent before its first verdict. Chosen: 2 s, longer than slow start on most paths.
const DURATION: u8 = 4;
/// The weight of the past in each epoch. Chosen: the last 4 s count.
const PAST: f32 = 7.0 / 8.0;
/// The tolerated ratio of the sending rate to the law, as in [`answers`](super::answers).
const LENIENCY: f64 = 3.0;
/// The loss rate above which a steady throughput ignores losses, as in [`answers`](super::answers): where the link
/// divides fairly, TCP with a window of a few packets loses half of this, at a steady throughput.
const MUCH: f32 = 0.1;
/// The coefficient of variation of a steady throughput. Chosen: half of that of a window between W/2 and W in a
/// sawtooth, 0.19.
const STEADY: f32 = 0.1;
/// The coefficient of variation of regular intervals. Chosen: half of that of random ones.
const REGULAR: f32 = 0.5;
/// The fraction of its fair share below which an application may set the rate of a flow.
const LITTLE: f32 = 0.5;
/// The verdicts in a row that change the class.
const CONTRARY: u8 = 2;

/// A count, a sum and a sum of squares.
#[derive(Clone, Copy, Debug, Default)]
struct Moments([f32; 3]);

impl Moments {
    fn add(&mut self, value: f32) {
        self.0 = [self.0[0] + 1.0, self.0[1] + value, self.0[2] + value * value];
    }

    fn fade(&mut self) {
        self.0 = self.0.map(|sum| PAST * sum);
    }

    fn mean(&self) -> f32 {
        self.0[1] / self.0[0].max(f32::MIN_POSITIVE)
    }

    /// The ratio of the standard deviation to the mean.
    fn variation(&self) -> f32 {
        let [count, sum, squares] = self.0;
        libm::sqrtf((count * squares / (sum * sum).max(f32::MIN_POSITIVE) - 1.0).max(0.0))
    }
}

/// The state of one flow.
#[derive(Clone, Debug)]
pub struct Pattern {
    last: Option<Time>,
    /// Bytes, packets and lost packets of this epoch.
    now: [u32; 3],
    /// Packets and lost packets of the past.
    past: [f32; 2],
    /// Inter-arrival times in ms.
    gaps: Moments,
    /// Bytes of an epoch.
    throughput: Moments,
    adaptive: bool,
    /// Epochs in which the flow has sent, up to [`DURATION`].
    epochs: u8,
    contrary: u8,
}

impl Pattern {
    /// A flow for which only its declaration is known.
    #[must_use]
    pub fn new(says_adaptive: bool) -> Self {
        Self {
            last: None,
            now: [0; 3],
            past: [0.0; 2],
            gaps: Moments::default(),
            throughput: Moments::default(),
            adaptive: says_adaptive,
            epochs: 0,
            contrary: 0,
        }
    }

    /// Whether the flow is adaptive, as far as is known.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    /// Whether there is a verdict.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        self.epochs >= DURATION
    }

    /// Counts a packet that arrived at `now`. A pause of an epoch is no inter-arrival time.
    pub fn arrived(&mut self, now: Time, size: Bytes) {
        if let Some(gap) = self.last.map(|last| now.since(last)).filter(|gap| *gap < EPOCH) {
            self.gaps.add(gap.as_secs_f64() as f32 * 1e3);
        }
        self.last = Some(now);
        self.now[0] = self.now[0].saturating_add(u32::try_from(size.get()).unwrap_or(u32::MAX));
        self.now[1] = self.now[1].saturating_add(1);
    }

    /// Counts the loss of the packet that arrived last, whatever the reason.
    pub const fn lost(&mut self) {
        self.now[2] = self.now[2].saturating_add(1);
    }

    /// Ends an epoch; `fair` is the flow's fair share of it.
    pub fn end_epoch(&mut self, fair: Bytes) {
        let [bytes, packets, lost] = core::mem::take(&mut self.now).map(|count| count as f32);
        if packets == 0.0 {
            return;
        }
        self.throughput.add(bytes);
        self.past = [self.past[0] + packets, self.past[1] + lost];
        self.epochs = (self.epochs + 1).min(DURATION);
        if self.is_known() {
            let found = self.looks_adaptive(fair.get() as f32);
            self.contrary = if found == self.adaptive { 0 } else { self.contrary + 1 };
            if self.contrary == CONTRARY {
                (self.adaptive, self.contrary) = (found, 0);
            }
        }
        self.gaps.fade();
        self.throughput.fade();
        self.past = self.past.map(|sum| PAST * sum);
    }

    fn looks_adaptive(&self, fair: f32) -> bool {
        let [packets, lost] = self.past;
        let loss = lost / packets;
        let rate = f64::from(packets / self.throughput.0[0]) / EPOCH.as_secs_f64();
        let exceeds = loss > 0.0 && rate > LENIENCY * most_packets_per_second(f64::from(loss));
        let ignores = loss > MUCH && self.throughput.variation() < STEADY;
        let is_set = self.throughput.mean() < LITTLE * fair && self.gaps.variation() < REGULAR;
        !(exceeds || ignores || is_set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use crate::units::Span;

    /// 1 Mb/s in one epoch.
    const FAIR: Bytes = Bytes::new(62_500);

    /// Ten seconds of a flow of packets of 500 bytes; `gap` gives the next interval in ms and whether the packet is lost.
    fn judged(says_adaptive: bool, mut next: impl FnMut(f64) -> (f64, bool)) -> Pattern {
        let (mut flow, mut ms, mut ends) = (Pattern::new(says_adaptive), 0.0, EPOCH);
        while ms < 10_000.0 {
            while Span::from_secs_f64(ms / 1e3) >= ends {
                flow.end_epoch(FAIR);
                ends += EPOCH;
            }
            flow.arrived(Time::ZERO + Span::from_secs_f64(ms / 1e3), Bytes::new(500));
            let (gap, is_lost) = next(ms);
            if is_lost {
                flow.lost();
            }
            ms += gap;
        }
        flow
    }

    #[test]
    fn a_flow_that_exceeds_the_law_is_not_adaptive() {
        // 2 Mb/s with random gaps, of which every third packet is lost.
        let mut random = Stream::new(1, "gaps");
        let mut count = 0;
        let flow = judged(true, |_| {
            count += 1;
            (4.0 * random.uniform(), count % 3 == 0)
        });
        assert!(!flow.is_adaptive());
    }

    #[test]
    fn a_steady_flow_with_losses_is_not_adaptive() {
        // 30 packets a second, and as many on average; every sixth packet is lost, which the law allows.
        let mut count = 0;
        let mut lost = move || {
            count += 1;
            count % 6 == 0
        };
        assert!(!judged(true, |_| (33.0, lost())).is_adaptive());
        let sawtooth = |ms: f64| 20.0 + 25.0 * (1.0 - (ms % 2_000.0) / 2_000.0);
        let mut random = Stream::new(1, "gaps");
        assert!(judged(false, |ms| (sawtooth(ms) * 2.0 * random.uniform(), lost())).is_adaptive());
    }

    #[test]
    fn a_regular_flow_below_its_share_is_not_adaptive() {
        assert!(!judged(true, |_| (20.0, false)).is_adaptive());
        let mut random = Stream::new(1, "gaps");
        assert!(judged(false, |_| (40.0 * random.uniform(), false)).is_adaptive());
        // At its share, regular gaps are those of the link.
        assert!(judged(false, |_| (4.0, false)).is_adaptive());
    }

    #[test]
    fn a_flow_is_what_it_says_for_two_seconds_and_in_pauses() {
        for says_adaptive in [true, false] {
            let mut flow = Pattern::new(says_adaptive);
            for epoch in 0..100 {
                if epoch % 30 == 0 {
                    flow.arrived(Time::ZERO + EPOCH * epoch, Bytes::new(500));
                }
                assert!(!flow.is_known() && flow.is_adaptive() == says_adaptive);
                if epoch < 90 {
                    flow.end_epoch(FAIR);
                }
            }
        }
    }

    #[test]
    fn the_state_is_as_small_as_it_says() {
        assert_eq!(size_of::<Pattern>(), 64);
    }
}
