//! Shares of flows over time: the worst second of a flow, and the time until it has its share after an event.

use std::ops::Range;

use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_runtime::due::FlowDue;
use apportion_runtime::outcome::FlowOutcome;

use crate::replication::Replication;

/// The length of a second: as many sample intervals as fill one, or one that is longer.
const SECOND: Span = Span::from_secs(1);
/// The share from which a flow counts as having its share: results give seconds to 90 %.
const REACHED: f64 = 0.9;
/// Minimum time that a flow must hold its share, after the second in which it reached it. Chosen: a single
/// second can be high by chance, or because of packets from before the event in queues and on the wire.
const HOLD: Span = Span::from_secs(3);

/// The second in which a flow had its lowest share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Worst {
    /// Throughput over entitlement.
    pub(crate) share: f64,
    /// Start of the interval.
    pub(crate) from: Time,
}

/// The response of a flow to an event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    /// Index of the event in [`Dues::events`](apportion_runtime::due::Dues::events).
    pub(crate) event: usize,
    /// Index of the flow in the scenario.
    pub(crate) flow: usize,
    /// Mean entitlement until the next event, or the end.
    pub(crate) due: Rate,
    /// Time at which the flow reached its share.
    pub(crate) reached: Reached,
}

/// Time at which a flow reached its share after an event: in the first second in which it gets 90 % of its
/// entitlement, and after which it gets 90 % on average for three seconds or more, until the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// The second began this long after the event.
    After(Span),
    /// There was no such second before the next event.
    Never,
    /// Fewer than four seconds lie between the event and the next one: too few to judge.
    Unknown,
}

impl Reached {
    /// The time after the event, if the flow had its share.
    pub(crate) const fn after(self) -> Option<Span> {
        match self {
            Self::After(time) => Some(time),
            Self::Never | Self::Unknown => None,
        }
    }
}

/// Series of a flow's throughput and entitlement, as sums over intervals.
pub(crate) struct Shares {
    sample: Span,
    /// Bits in all earlier samples.
    got: Vec<u128>,
    /// Entitlement in all earlier samples, in bit/s times samples.
    due: Vec<u128>,
    /// Number of earlier samples with an entitlement of zero.
    idle: Vec<usize>,
}

impl Shares {
    pub(crate) fn of(flow: &FlowOutcome, due: &FlowDue, sample: Span) -> Self {
        let length = flow.series.len().min(due.series.len());
        let sums = |values: &mut dyn Iterator<Item = u128>| -> Vec<u128> {
            let mut sum = 0;
            [0].into_iter()
                .chain(values.take(length).map(|value| {
                    sum += value;
                    sum
                }))
                .collect()
        };
        let got = sums(&mut flow.series.iter().map(|bytes: &Bytes| u128::from(bytes.bits())));
        let rates = sums(&mut due.series.iter().map(|rate| u128::from(rate.as_bit())));
        let mut idle = vec![0];
        idle.extend(due.series.iter().take(length).scan(0, |count, rate| {
            *count += usize::from(*rate == Rate::ZERO);
            Some(*count)
        }));
        Self { sample, got, due: rates, idle }
    }

    /// Throughput over entitlement in these samples; `None` if the entitlement is zero in one of them, or if
    /// there are none.
    pub(crate) fn share(&self, samples: &Range<usize>) -> Option<f64> {
        let (from, to) = (samples.start, samples.end);
        if from >= to || to >= self.got.len() || self.idle[to] > self.idle[from] {
            return None;
        }
        self.mean_share(samples)
    }

    /// The share over samples, some of which may have no entitlement; `None` if none has one.
    fn mean_share(&self, samples: &Range<usize>) -> Option<f64> {
        let (from, to) = (samples.start, samples.end);
        let due = (self.due[to] - self.due[from]) as f64 * self.sample.as_secs_f64();
        (due > 0.0).then(|| (self.got[to] - self.got[from]) as f64 / due)
    }

    /// The mean entitlement.
    fn due(&self, samples: &Range<usize>) -> Rate {
        let (from, to) = (samples.start, samples.end.min(self.due.len() - 1));
        let count = to.saturating_sub(from) as u128;
        let mean = (self.due[to.max(from)] - self.due[from]).checked_div(count).unwrap_or(0);
        Rate::from_bit(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// Number of sample intervals that fill this time.
    fn filling(&self, time: Span) -> usize {
        time.as_nanos().div_ceil(self.sample.as_nanos().max(1)).max(1) as usize
    }

    /// Samples that begin at or after `from` and end at or before `to`.
    fn within(&self, from: Time, to: Time) -> Range<usize> {
        let sample = self.sample.as_nanos().max(1);
        let first = from.as_nanos().div_ceil(sample) as usize;
        let last = ((to.as_nanos() / sample) as usize).min(self.got.len() - 1);
        first.min(last)..last
    }

    /// Each second within these samples that begins with a sample and has an entitlement throughout, with its
    /// share.
    fn seconds(&self, samples: Range<usize>) -> impl Iterator<Item = (usize, f64)> {
        let second = self.filling(SECOND);
        let last = (samples.end + 1).saturating_sub(second);
        (samples.start..last.max(samples.start)).filter_map(move |k| Some((k, self.share(&(k..k + second))?)))
    }

    /// The second with the lowest share; the first of several.
    fn worst(&self, from: Time, to: Time) -> Option<Worst> {
        let (k, share) = self.seconds(self.within(from, to)).min_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Worst { share, from: Time::ZERO + self.sample * k as u64 })
    }

    /// Time at which the flow reached its share after an event; `samples` are those until the next event.
    fn reached(&self, event: Time, samples: &Range<usize>) -> Reached {
        let (second, hold) = (self.filling(SECOND), self.filling(HOLD));
        if samples.len() < second + hold {
            return Reached::Unknown;
        }
        let holds =
            |k: usize| self.mean_share(&(k + second..samples.end)).is_some_and(|share| share >= REACHED);
        let mut seconds = self.seconds(samples.start..samples.end - hold);
        let first = seconds.find(|&(k, share)| share >= REACHED && holds(k));
        first.map_or(Reached::Never, |(k, _)| {
            Reached::After((Time::ZERO + self.sample * k as u64).since(event))
        })
    }
}

/// The worst second of a flow in the measured part of a replication; `None` if its entitlement or its series
/// is unknown, or if it never had an entitlement for a second.
pub(crate) fn worst_second(of: Replication<'_>, flow: usize) -> Option<Worst> {
    let shares = Shares::of(of.outcome.flows.get(flow)?, of.dues?.flows.get(flow)?, of.sample);
    shares.worst(of.measure_from, Time::MAX)
}

/// Responses of the flows of a replication to each event, by event and flow: of flows with an entitlement in
/// the second after it.
pub(crate) fn responses(of: Replication<'_>) -> Vec<Response> {
    let Replication { outcome, dues: Some(dues), sample, .. } = of else { return Vec::new() };
    let both = outcome.flows.iter().zip(&dues.flows);
    let shares: Vec<Shares> = both.map(|(flow, due)| Shares::of(flow, due, sample)).collect();
    let mut all = Vec::new();
    for (number, event) in dues.events.iter().enumerate() {
        let next = dues.events.get(number + 1).map_or(Time::MAX, |next| next.at);
        for (flow, shares) in shares.iter().enumerate() {
            let samples = shares.within(event.at, next);
            let due = shares.due(&samples);
            if due == Rate::ZERO {
                continue;
            }
            all.push(Response { event: number, flow, due, reached: shares.reached(event.at, &samples) });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples of half a second in kilobits, with entitlements in kbit/s.
    fn shares(series: &[(u64, u64)]) -> Shares {
        let flow = FlowOutcome {
            series: series.iter().map(|&(kbit, _)| Bytes::new(kbit * 125)).collect(),
            ..FlowOutcome::default()
        };
        let due = FlowDue {
            measured: Rate::ZERO,
            series: series.iter().map(|&(_, due)| Rate::from_kbit(due)).collect(),
        };
        Shares::of(&flow, &due, Span::from_millis(500))
    }

    #[test]
    fn the_worst_second_slides_and_is_due_throughout() {
        // 4 + 2 of 10 from 0.5 s on, 2 + 0 from 1 s on: the lowest; the second with 0 + 5 has no entitlement
        // throughout.
        let it = shares(&[(5, 10), (4, 10), (2, 10), (0, 10), (5, 0), (5, 10), (5, 10)]);
        let worst = it.worst(Time::ZERO, Time::MAX).unwrap();
        assert_eq!((worst.share, worst.from), (0.2, Time::from_secs(1)));
        // From 2 s on there is one second: 5 + 5 of 10.
        assert_eq!(it.worst(Time::from_secs(2), Time::MAX).unwrap().share, 1.0);
        // No second is left from 3 s on.
        assert_eq!(it.worst(Time::from_secs(3), Time::MAX), None);
        assert_eq!(shares(&[]).worst(Time::ZERO, Time::MAX), None);
    }

    #[test]
    fn a_share_is_that_of_the_integrals() {
        // 8 kbit in half a second of 10 kbit/s and half of 30: 8 / 20.
        let it = shares(&[(5, 10), (3, 30)]);
        assert_eq!((it.share(&(0..2)), it.due(&(0..2))), (Some(0.4), Rate::from_kbit(20)));
        assert_eq!((it.share(&(0..3)), it.share(&(1..1))), (None, None));
    }

    #[test]
    fn a_share_is_reached_only_if_it_is_held() {
        let after = |halves: u64| Reached::After(Span::from_millis(500) * halves);
        let of = |kbits: &[u64], from: usize| {
            let series: Vec<(u64, u64)> = kbits.iter().map(|&kbit| (kbit, 10)).collect();
            shares(&series).reached(Time::ZERO + Span::from_millis(500) * from as u64, &(from..kbits.len()))
        };
        // A queue full of packets from before the event, then 60 %.
        assert_eq!(of(&[15, 9, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3], 0), Reached::Never);
        // The share begins to be held in the third sample; a weak second does not end it, as the mean is 100 %.
        assert_eq!(of(&[1, 2, 5, 5, 3, 3, 7, 7, 5, 5, 5, 5], 0), after(2));
        // Only samples after the event count.
        assert_eq!(of(&[0, 5, 4, 5, 5, 5, 5, 5, 5, 5], 1), after(0));
        // Two seconds at the end are too few to be held.
        assert_eq!(of(&[2, 2, 2, 2, 2, 2, 2, 2, 5, 5, 5, 5], 0), Reached::Never);
        // Four seconds can be judged, 3.5 cannot.
        assert_eq!(
            (of(&[5; 8], 0), of(&[5; 8], 1), of(&[0; 8], 0)),
            (after(0), Reached::Unknown, Reached::Never)
        );
        // An event between two samples: the first sample after it counts.
        let it = shares(&[(5, 10); 12]);
        let event = Time::from_millis(1_200);
        let samples = it.within(event, Time::MAX);
        assert_eq!(it.reached(event, &samples), Reached::After(Span::from_millis(300)));
        // A flow without an entitlement for a while is judged by the rest.
        let pauses = [(5, 10), (5, 10), (5, 10), (0, 0), (0, 0), (5, 10), (5, 10), (5, 10)];
        assert_eq!(shares(&pauses).reached(Time::ZERO, &(0..8)), after(0));
    }
}
