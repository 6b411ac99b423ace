//! RED, random early detection: arrivals are dropped or marked with a probability that grows with the average
//! queue.
//!
//! Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993,
//! section 4 and figure 2; `wait` and `gentle` are later additions by Floyd, as described for ns-2.
//!
//! Readings, where the paper leaves room:
//! - The average is taken over the queue without the arriving packet.
//! - `drop_curve.rs` has the readings of the count, `average.rs` those of idle time. RED's relatives share
//!   these two halves of the algorithm.
//! - Thresholds in bytes make the average one of bytes. The count in byte mode is kept in fractions of a mean
//!   packet.
//! - Only early drops become marks; above the thresholds and beyond `limit`, packets are dropped.
//!
//! Cost: O(1) per packet, one power after an idle period; no state per flow. Parameters: [`ENTRY`].

use super::average::AverageQueue;
use super::detection::{DetectionParams, MEAN_PKTSIZE};
use super::drop_curve::DropSpacing;
use super::{Admission, BufferPolicy};
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::Packet;
use crate::param::{Entry, Inside, LIMIT, Param, Role, Traits};
use crate::params;
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Bytes, Packets, Rate, Time};

/// RED in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "red",
    role: Role::Policy,
    summary: "Random early detection: drops or marks arrivals, the more the longer the average queue.",
    reference: "Floyd, Jacobson 1993",
    cost: "O(1) per packet, no state per flow",
    params: RedParams::PARAMS,
    traits: Traits {
        inside: Inside::Part,
        limits: "Behind a fair scheduler a flood fills the buffer: use `lqd`, `pfd`, `codel` or `pie` there.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Red`].
    pub struct RedParams {
        limit: Option<BufferSize> = LIMIT,
        /// The average queue and the drop curve.
        ..detection: DetectionParams,
        /// Drop in proportion to packet size, and count bytes.
        bytes: bool = Param::of("false", "ns-2 before 2001"),
        mean_pktsize: Bytes = MEAN_PKTSIZE,
        /// Mark ECN-capable packets instead of dropping them early.
        ecn: bool = Param::of("false", "chosen: as the 1993 experiments"),
    }
    check: |params: &Self, _| params.detection.check(params.limit, params.mean_pktsize)
}

/// RED's state.
#[derive(Clone, Debug)]
pub struct Red {
    params: RedParams,
    limit: LinkLimit,
    /// Average queue, in the unit of the thresholds.
    average: AverageQueue,
    spacing: DropSpacing,
    random: Stream,
}

impl Red {
    /// RED for a link of `link_rate`, with an average of 0.
    #[must_use]
    pub fn new(params: &RedParams, link_rate: Rate, random: Stream) -> Self {
        Self {
            average: params.detection.average(params.mean_pktsize, link_rate),
            spacing: params.detection.spacing(),
            limit: LinkLimit::new(params.limit, link_rate),
            params: params.clone(),
            random,
        }
    }

    /// The average queue, in the unit of the thresholds.
    #[must_use]
    pub const fn avg(&self) -> f64 {
        self.average.get()
    }

    /// The early decision on a packet of `size`, by the average alone.
    fn early(&mut self, size: Bytes, queued: Packets) -> Option<DropReason> {
        let step =
            if self.params.bytes { size.get() as f64 / self.params.mean_pktsize.get() as f64 } else { 1.0 };
        self.spacing.early(self.average.get(), queued, step, &mut self.random)
    }
}

impl<P: Packet> BufferPolicy<P> for Red {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        self.average.update(now, self.params.detection.min_th.measure(backlog));
        let early = self.early(packet.size(), backlog.packets);
        let reason =
            if self.limit.get().admits(packet, backlog) { early } else { Some(DropReason::Overflow) };
        let Some(reason) = reason else { return Admission::Accept };
        self.spacing.dropped();
        if reason == DropReason::Early && self.params.ecn && packet.ecn().is_capable() {
            return Admission::Mark;
        }
        Admission::Drop(reason)
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        self.average.pop(now, scheduler)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("avg", self.avg());
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
        self.average.set_link_rate(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::limit::Threshold;
    use crate::packet::Ecn;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, packet};
    use crate::units::{MeanPackets, Ratio};

    fn defaults() -> RedParams {
        RedParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap()
    }

    fn red(params: &RedParams) -> Red {
        Red::new(params, Rate::from_mbit(4), Stream::new(1, "red"))
    }

    /// The decision on a packet of 500 bytes that finds `packets` of 500 bytes.
    fn admit(red: &mut Red, now: Time, packets: u64) -> Admission {
        let backlog = Backlog { packets: Packets::new(packets), bytes: Bytes::new(500 * packets) };
        BufferPolicy::<SimplePacket>::admit(red, now, &mut packet(0, 0, 500), backlog)
    }

    #[test]
    fn the_average_follows_the_queue_without_the_arrival_and_decays_while_the_link_finds_nothing() {
        let mut red = red(&RedParams {
            detection: DetectionParams { w_q: Ratio::clamped(0.5), ..defaults().detection },
            ..defaults()
        });
        admit(&mut red, Time::ZERO, 16);
        assert_eq!(red.avg(), 8.0);
        assert!(
            red.dequeue(Time::from_millis(10), &mut Fifo::<SimplePacket>::new(), &mut Log::default())
                .is_none()
        );
        // 500 B take 1 ms at 4 Mbit/s: in 2 ms m = 2, so avg = 8·0.5³ + 0.5·0 = 1.
        admit(&mut red, Time::from_millis(12), 0);
        assert_eq!(red.avg(), 1.0);
    }

    #[test]
    fn above_the_maximum_everything_is_dropped_unless_gentle() {
        for (gentle, avg, verdict) in [
            (false, 15.0, Admission::Drop(DropReason::Forced)),
            (true, 15.0, Admission::Accept), // the first arrival above min_th
            (true, 30.0, Admission::Drop(DropReason::Forced)),
        ] {
            let w_q = Ratio::ONE;
            let mut red = red(&RedParams {
                detection: DetectionParams { gentle, w_q, ..defaults().detection },
                ..defaults()
            });
            assert_eq!(admit(&mut red, Time::ZERO, avg as u64), verdict, "gentle {gentle}, avg {avg}");
        }
    }

    #[test]
    fn a_threshold_may_be_a_fraction_of_a_packet() {
        let level = |text: &str| text.parse().unwrap();
        // The average equals the queue: everything is dropped from 3 packets on, and nothing at 2.
        for (max_th, queued, verdict) in [
            ("2.5p", 2, Admission::Accept),
            ("2.5p", 3, Admission::Drop(DropReason::Forced)),
            ("3.001p", 3, Admission::Accept),
        ] {
            let detection = DetectionParams {
                max_th: level(max_th),
                min_th: level("1.5p"),
                w_q: Ratio::ONE,
                ..defaults().detection
            };
            let mut red = red(&RedParams { detection, ..defaults() });
            assert_eq!(admit(&mut red, Time::ZERO, queued), verdict, "{queued} packets, {max_th}");
        }
    }

    #[test]
    fn a_packet_of_twice_the_mean_counts_and_is_dropped_twice_as_often_in_byte_mode() {
        let drops = |size: u64| {
            let params = RedParams {
                detection: DetectionParams { wait: false, w_q: Ratio::ONE, ..defaults().detection },
                bytes: true,
                ..defaults()
            };
            let mut red = red(&params);
            let backlog = Backlog { packets: Packets::new(10), bytes: Bytes::new(5_000) };
            let mut drop = || {
                // Each packet is the first after a drop.
                red.spacing.dropped();
                BufferPolicy::<SimplePacket>::admit(&mut red, Time::ZERO, &mut packet(0, 0, size), backlog)
                    != Admission::Accept
            };
            assert!(!drop(), "the first above min_th");
            (0..20_000).filter(|_| drop()).count() as f64 / 20_000.0
        };
        // 4σ of a share: 4·sqrt(p(1-p)/20000).
        // p_b = 0.05. Counts of 1 and 2 mean packets: 0.05/(1 - 0.05)·1 and 0.05/(1 - 2·0.05)·2.
        for (size, p) in [(500, 0.05 / 0.95), (1_000, 0.1 / 0.9)] {
            let band = 4.0 * (p * (1.0 - p) / 20_000.0_f64).sqrt();
            assert!((drops(size) - p).abs() < band, "{size} B: {} against {p} ± {band}", drops(size));
        }
    }

    #[test]
    fn marks_replace_early_drops_of_capable_packets_and_never_forced_ones() {
        let params = RedParams {
            detection: DetectionParams { w_q: Ratio::ONE, max_p: Ratio::ONE, ..defaults().detection },
            ecn: true,
            ..defaults()
        };
        let mut queue = Buffer::new(Fifo::new(), red(&params));
        let mut log = Log::default();
        for id in 0..60 {
            let ecn = if id % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            queue.enqueue(Time::ZERO, SimplePacket { ecn, ..packet(id, 0, 500) }, &mut log);
        }
        assert!(!log.marked.is_empty() && log.marked.iter().all(|(_, id)| id % 2 == 0));
        let early = |reason| reason == DropReason::Early;
        assert!(log.dropped.iter().filter(|d| early(d.2)).all(|(_, id, _)| id % 2 == 1));
        assert!(log.dropped.iter().any(|&(_, id, reason)| id % 2 == 0 && reason == DropReason::Forced));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let packets = |n| Threshold::Packets(MeanPackets::new(n));
        let message = |params: RedParams| {
            params.detection.check(params.limit, params.mean_pktsize).unwrap_err().message
        };
        assert_eq!(
            message(RedParams {
                detection: DetectionParams { min_th: packets(15), ..defaults().detection },
                ..defaults()
            }),
            "15p must be above `min_th`, which is 15p"
        );
        assert_eq!(
            message(RedParams {
                detection: DetectionParams { max_th: packets(55), ..defaults().detection },
                limit: Some(Limit::Packets(Packets::new(50)).into()),
                ..defaults()
            }),
            "55p can never be reached with a `limit` of 50p: raise the limit"
        );
        assert_eq!(
            message(RedParams {
                detection: DetectionParams {
                    max_th: Threshold::Bytes(Bytes::new(9_000)),
                    ..defaults().detection
                },
                ..defaults()
            }),
            "`min_th` and `max_th` must both be in packets or both in bytes"
        );
        assert_eq!(
            message(RedParams {
                detection: DetectionParams { w_q: Ratio::ZERO, ..defaults().detection },
                ..defaults()
            }),
            "with 0 the average never moves; write for example 0.002"
        );
        assert_eq!(
            message(RedParams { mean_pktsize: Bytes::ZERO, ..defaults() }),
            "a packet has at least 1B"
        );
    }
}
