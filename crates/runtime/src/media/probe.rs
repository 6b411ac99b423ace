//! Probing of a call: clusters of packets above the target rate, whose dispersion at the receiver shows the
//! rate of the path.
//!
//! Without it a call grows by 5 % a second and takes 40 s from 300 kb/s to 2.5 Mb/s. draft-ietf-rmcat-gcc-02
//! has no probing; the clusters, their rates and the estimate are those of libwebrtc (`ProbeController` and
//! `ProbeBitrateEstimator` of its `goog_cc`) at the start of a call. The later probes of libwebrtc (after the
//! application was idle, and after large drops of the rate then) have no counterpart here, because a call
//! sends at its target rate all the time.
//!
//! | here | value | from |
//! |---|---|---|
//! | `FIRST` | 3 and 6 times the first rate | libwebrtc, `first_` and `second_exponential_probe_scale` |
//! | `FURTHER` | 2 times the result | `further_exponential_probe_scale` |
//! | `FURTHER_FROM` | 0.7 of the probed rate | `further_probe_threshold` |
//! | `PACKETS`, `LASTS` | 5, 15 ms: the least of a cluster | `min_probe_packets_sent`, `min_probe_duration` |
//! | `ARRIVED` | 0.8 of the packets | `kMinReceivedProbesRatio` |
//! | `MOST_RATIO` | 2: arrival by sending rate | `kMaxValidRatio` |
//! | `SATURATED`, `USED` | 0.9, 0.95 | `kMinRatioForUnsaturatedLink`, `kTargetUtilizationFraction` |
//! | `WAIT` | 1 s for a result | `kMaxWaitingTimeForProbingResult` |
//!
//! No cluster exceeds the highest rate of the call. A cluster consists of waiting packets of frames, and of
//! padding if there are none.
//!
//! Cost: O(1) for each packet. Memory: that of one or two clusters.

use std::collections::VecDeque;

use apportion_core::units::{Bytes, Rate, Span, Time};

const FIRST: [u64; 2] = [3, 6];
const FURTHER: u64 = 2;
const FURTHER_FROM: f64 = 0.7;
const PACKETS: u32 = 5;
const LASTS: Span = Span::from_millis(15);
const ARRIVED: f64 = 0.8;
const MOST_RATIO: f64 = 2.0;
const SATURATED: f64 = 0.9;
const USED: f64 = 0.95;
const WAIT: Span = Span::from_secs(1);

/// Both ends of the probing of a call.
#[derive(Debug)]
pub struct Prober {
    highest: Rate,
    /// Rates of the clusters to come, the next one last.
    pending: Vec<Rate>,
    /// Time at which the next packet of a cluster leaves.
    next: Option<Time>,
    /// Clusters without a result, the one that is being sent last.
    clusters: VecDeque<Cluster>,
    /// Time until which a result leads to a further cluster, and the rate from which on it does.
    awaited: Option<(Time, f64)>,
}

#[derive(Debug)]
struct Cluster {
    rate: Rate,
    /// The number of its first packet.
    first: u32,
    packets: u32,
    bytes: Bytes,
    is_sent: bool,
    seen: Option<Seen>,
}

/// The receiver's view of a cluster.
#[derive(Debug)]
struct Seen {
    packets: u32,
    bytes: Bytes,
    /// Times at which the first packet was sent and arrived, and its size; then those of the last one.
    first: (Time, Time, Bytes),
    last: (Time, Time, Bytes),
}

impl Prober {
    /// A prober that begins at `start`, for a call whose first rate is `first`.
    #[must_use]
    pub fn new(first: Rate, highest: Rate, start: Time) -> Self {
        let mut pending: Vec<Rate> =
            FIRST.into_iter().rev().map(|times| faster(first, times).min(highest)).collect();
        pending.dedup();
        if first >= highest {
            pending.clear();
        }
        let next = (!pending.is_empty()).then_some(start);
        Self { highest, pending, next, clusters: VecDeque::new(), awaited: None }
    }

    /// Time at which the next packet of a cluster leaves.
    #[must_use]
    pub fn next_packet(&self) -> Option<Time> {
        self.next
    }

    /// Notes the packet with this number, which leaves when one was [due](Self::next_packet).
    pub fn on_sent(&mut self, now: Time, number: u32, size: Bytes) {
        if self.clusters.back().is_none_or(|cluster| cluster.is_sent) {
            let Some(rate) = self.pending.pop() else { return self.next = None };
            let (packets, bytes) = (0, Bytes::ZERO);
            self.clusters.push_back(Cluster {
                rate,
                first: number,
                packets,
                bytes,
                is_sent: false,
                seen: None,
            });
        }
        let Some(cluster) = self.clusters.back_mut() else { return };
        cluster.packets += 1;
        cluster.bytes += size;
        cluster.is_sent = cluster.packets >= PACKETS && cluster.bytes >= cluster.rate.bytes_in(LASTS);
        self.next = Some(now + cluster.rate.time_for(size));
        if cluster.is_sent && self.pending.is_empty() {
            self.next = None;
            let can_be_higher = cluster.rate < self.highest;
            self.awaited = can_be_higher.then(|| (now + WAIT, FURTHER_FROM * cluster.rate.as_bit() as f64));
        }
    }

    /// Handles a packet that arrives and was sent at `sent`. Returns the rate of its cluster, if it ends one
    /// and enough of that has arrived.
    pub fn on_arrival(&mut self, now: Time, number: u32, sent: Time, size: Bytes) -> Option<Rate> {
        let cluster = self.clusters.front_mut().filter(|cluster| number >= cluster.first)?;
        let is_in = !cluster.is_sent || number < cluster.first + cluster.packets;
        if is_in {
            let this = (sent, now, size);
            let seen =
                cluster.seen.get_or_insert(Seen { packets: 0, bytes: Bytes::ZERO, first: this, last: this });
            seen.packets += 1;
            seen.bytes += size;
            seen.last = this;
        }
        let ends = cluster.is_sent && number + 1 >= cluster.first + cluster.packets;
        let done = ends.then(|| self.clusters.pop_front()).flatten()?;
        let result = done.result();
        // The packet is of the next cluster if all last packets of this one are lost.
        if is_in { result } else { self.on_arrival(now, number, sent, size).or(result) }
    }

    /// Handles a result at the sender.
    pub fn on_result(&mut self, now: Time, result: Rate) {
        if let Some((until, least)) = self.awaited
            && now <= until
            && result.as_bit() as f64 > least
        {
            self.awaited = None;
            self.pending.push(faster(result, FURTHER).min(self.highest));
            self.next = Some(now);
        }
    }
}

fn faster(rate: Rate, times: u64) -> Rate {
    Rate::from_bit(rate.as_bit().saturating_mul(times))
}

impl Cluster {
    fn result(&self) -> Option<Rate> {
        let seen = self.seen.as_ref()?;
        if f64::from(seen.packets) < ARRIVED * f64::from(self.packets) {
            return None;
        }
        let rate = |but: Bytes, from: Time, to: Time| {
            let lasts = to.since(from).as_secs_f64();
            (lasts > 0.0).then(|| seen.bytes.saturating_sub(but).bits() as f64 / lasts)
        };
        let sent = rate(seen.last.2, seen.first.0, seen.last.0)?;
        let arrived = rate(seen.first.2, seen.first.1, seen.last.1)?;
        let bits = if arrived > MOST_RATIO * sent {
            return None;
        } else if arrived < SATURATED * sent {
            USED * arrived
        } else {
            arrived.min(sent)
        };
        Some(Rate::from_bit(bits as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes::new(1_200);

    /// The rate in kb/s.
    fn kbit(rate: Rate) -> u64 {
        (rate.as_bit() + 500) / 1_000
    }

    /// Runs a prober over a path of this rate, which loses the packets for which `loses` is true, until it
    /// has none to send. Returns the rates of clusters and the results.
    fn run(first: u64, highest: u64, path: u64, loses: impl Fn(u32) -> bool) -> (Vec<u64>, Vec<u64>) {
        let path = Rate::from_kbit(path);
        let mut prober = Prober::new(Rate::from_kbit(first), Rate::from_kbit(highest), Time::ZERO);
        let (mut rates, mut results, mut free, mut number) = (Vec::new(), Vec::new(), Time::ZERO, 0);
        while let Some(now) = prober.next_packet() {
            prober.on_sent(now, number, PACKET);
            if let Some(cluster) = prober.clusters.back().filter(|cluster| cluster.first == number) {
                rates.push(kbit(cluster.rate));
            }
            free = free.max(now) + path.time_for(PACKET);
            if !loses(number)
                && let Some(result) = prober.on_arrival(free, number, now, PACKET)
            {
                results.push(kbit(result));
                prober.on_result(free + Span::from_millis(20), result);
            }
            number += 1;
        }
        (rates, results)
    }

    #[test]
    fn clusters_of_three_and_six_times_and_then_twice_the_result() {
        let (rates, results) = run(300, 10_000, 100_000, |_| false);
        assert_eq!(rates, [900, 1_800, 3_600, 7_200, 10_000]);
        assert_eq!(results, [900, 1_800, 3_600, 7_200, 10_000]);
        // No cluster exceeds the highest rate, and one at that rate is the last.
        assert_eq!(run(300, 1_500, 100_000, |_| false).0, [900, 1_500]);
        assert_eq!(run(300, 800, 100_000, |_| false).0, [800]);
        assert!(run(800, 800, 100_000, |_| false).0.is_empty());
    }

    #[test]
    fn a_saturated_path_gives_95_percent_of_what_arrives() {
        let (rates, results) = run(300, 10_000, 1_000, |_| false);
        assert_eq!((rates, results), (vec![900, 1_800], vec![900, 950]));
    }

    #[test]
    fn a_cluster_of_which_too_little_arrives_has_no_result() {
        // Four of five packets are enough; the rate is that of the rest.
        assert_eq!(run(300, 800, 100_000, |number| number == 2).1, [600]);
        assert!(run(300, 800, 100_000, |number| number < 2).1.is_empty());
    }
}
