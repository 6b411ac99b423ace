//! RED, random early detection: arrivals are dropped or marked with a probability that grows with the average
//! queue.
//!
//! Floyd, Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM ToN 1(4), 1993,
//! section 4 and figure 2; `wait` and `gentle` are later additions by Floyd, as described for ns-2.
//!
//! Readings, where the paper leaves room:
//! - The average is taken over the queue without the arriving packet.
//! - The first arrival after the average came back above `min_th` is never dropped; it starts the count at 1.
//! - Nothing is dropped early while at most one packet waits.
//! - An idle period starts when the link asks and finds nothing, which is the end of the last transmission.
//! - Thresholds in bytes make the average one of bytes. The count in byte mode is kept in fractions of a mean
//!   packet.
//! - Only early drops become marks; above the thresholds and beyond `limit`, packets are dropped.
//!
//! Cost: O(1) per packet, one power after an idle period; no state per flow. Parameters: [`ENTRY`].

use alloc::format;

use super::tail::LIMIT;
use super::{BufferPolicy, Limit, Verdict};
use crate::catalog::{Args, Entry, Kind, Param, ParamError, Role, require};
use crate::packet::Packet;
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Bytes, Packets, Rate, Ratio, Time};

/// RED in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "red",
    role: Role::Policy,
    summary: "Random early detection: drops or marks arrivals, more the longer the average queue.",
    reference: "Floyd, Jacobson 1993",
    cost: "O(1) per packet, no state per flow",
    params: &[
        LIMIT,
        param(
            "min_th",
            "min_th",
            Kind::Limit,
            "5p",
            "ns-2 before 2002",
            "Average below which nothing is dropped early; in packets or bytes, as `max_th`.",
        ),
        param(
            "max_th",
            "max_th",
            Kind::Limit,
            "15p",
            "ns-2 before 2002",
            "Average above which everything is dropped, or from which `gentle` goes on.",
        ),
        param(
            "w_q",
            "w_q",
            Kind::Ratio,
            "0.002",
            "1993 paper, section 4; ns-2",
            "Weight of the present queue in the average.",
        ),
        param("max_p", "max_p", Kind::Ratio, "0.1", "ns-2 (linterm 10)", "Probability at `max_th`."),
        param(
            "gentle",
            "–",
            Kind::Switch,
            "false",
            "ns-2 before 2001-04",
            "Let the probability grow from `max_p` to 1 between `max_th` and twice that.",
        ),
        param(
            "wait",
            "–",
            Kind::Switch,
            "true",
            "ns-2",
            "Space drops at least 1/p_b apart; false: the uniform spacing of the 1993 paper.",
        ),
        param(
            "bytes",
            "–",
            Kind::Switch,
            "false",
            "ns-2 before 2001",
            "Drop in proportion to packet size, and count bytes.",
        ),
        param(
            "mean_pktsize",
            "s",
            Kind::Bytes,
            "500B",
            "ns-2",
            "Mean packet size: the unit of idle time and of `bytes`.",
        ),
        param(
            "ecn",
            "–",
            Kind::Switch,
            "false",
            "chosen: as the 1993 experiments",
            "Mark ECN-capable packets instead of dropping them early.",
        ),
    ],
};

const fn param(
    name: &'static str,
    symbol: &'static str,
    kind: Kind,
    default: &'static str,
    source: &'static str,
    doc: &'static str,
) -> Param {
    Param { name, symbol, kind, default: Some(default), source, doc }
}

/// Parameters of [`Red`]; [`ENTRY`] says what each does.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the catalogue entry is their only description")]
pub struct RedParams {
    pub limit: Limit,
    pub min_th: Limit,
    pub max_th: Limit,
    pub w_q: Ratio,
    pub max_p: Ratio,
    pub gentle: bool,
    pub wait: bool,
    pub bytes: bool,
    pub mean_pktsize: Bytes,
    pub ecn: bool,
}

impl RedParams {
    /// From the catalogue's values.
    ///
    /// # Errors
    /// When they contradict each other.
    pub fn from_args(args: &Args) -> Result<Self, ParamError> {
        let args = args.of(&ENTRY);
        let params = Self {
            limit: args.limit("limit"),
            min_th: args.limit("min_th"),
            max_th: args.limit("max_th"),
            w_q: args.ratio("w_q"),
            max_p: args.ratio("max_p"),
            gentle: args.switch("gentle"),
            wait: args.switch("wait"),
            bytes: args.switch("bytes"),
            mean_pktsize: args.bytes("mean_pktsize"),
            ecn: args.switch("ecn"),
        };
        params.check()?;
        Ok(params)
    }

    fn check(&self) -> Result<(), ParamError> {
        let (min_th, max_th) = (level(self.min_th), level(self.max_th));
        let same_unit = matches!(self.min_th, Limit::Packets(_)) == matches!(self.max_th, Limit::Packets(_));
        require(same_unit, "max_th", "`min_th` and `max_th` must both be in packets or both in bytes")?;
        require(
            min_th < max_th,
            "max_th",
            &format!("{} must be above `min_th`, which is {}", self.max_th, self.min_th),
        )?;
        let reachable = match (self.max_th, self.limit) {
            (Limit::Packets(max_th), Limit::Packets(limit)) => max_th <= limit,
            (Limit::Bytes(max_th), Limit::Bytes(limit)) => max_th <= limit,
            _ => true,
        };
        require(
            reachable,
            "max_th",
            &format!(
                "{} can never be reached with a `limit` of {}: raise the limit",
                self.max_th, self.limit
            ),
        )?;
        require(self.w_q > Ratio::ZERO, "w_q", "with 0 the average never moves; write for example 0.002")?;
        require(self.mean_pktsize > Bytes::ZERO, "mean_pktsize", "a packet has at least 1B")
    }
}

fn level(limit: Limit) -> f64 {
    match limit {
        Limit::Packets(packets) => packets.get() as f64,
        Limit::Bytes(bytes) => bytes.get() as f64,
    }
}

/// RED's state, with the paper's names.
#[derive(Clone, Debug)]
pub struct Red {
    params: RedParams,
    min_th: f64,
    max_th: f64,
    link_rate: Rate,
    random: Stream,
    /// Average queue, in the unit of the thresholds.
    avg: f64,
    /// Arrivals since the last drop or since the average came above `min_th`, in packets or in mean packets.
    count: f64,
    /// Whether the average was already above `min_th` at the previous arrival.
    above: bool,
    /// Start of the idle period, if the queue is idle.
    q_time: Option<Time>,
}

impl Red {
    /// RED in front of a link of `link_rate`, with an average of 0.
    #[must_use]
    pub fn new(params: &RedParams, link_rate: Rate, random: Stream) -> Self {
        Self {
            params: params.clone(),
            min_th: level(params.min_th),
            max_th: level(params.max_th),
            link_rate,
            random,
            avg: 0.0,
            count: 0.0,
            above: false,
            q_time: Some(Time::ZERO),
        }
    }

    /// The average queue, in the unit of the thresholds.
    #[must_use]
    pub const fn avg(&self) -> f64 {
        self.avg
    }

    fn update_average(&mut self, now: Time, backlog: Backlog) {
        let w_q = self.params.w_q.get();
        if let Some(q_time) = self.q_time.take() {
            // Section 11: the m small packets that could have been sent meanwhile would each have seen an
            // empty queue.
            let m = self.link_rate.bytes_in(now.since(q_time)).get() / self.params.mean_pktsize.get();
            if m > 0 {
                self.avg *= libm::pow(1.0 - w_q, m as f64);
            }
        }
        let q = match self.params.min_th {
            Limit::Packets(_) => backlog.packets.get() as f64,
            Limit::Bytes(_) => backlog.bytes.get() as f64,
        };
        // 1993 paper, eq. (1).
        self.avg = (1.0 - w_q) * self.avg + w_q * q;
    }

    /// What the average alone says of a packet of `size`.
    fn early(&mut self, size: Bytes, queued: Packets) -> Option<DropReason> {
        let step =
            if self.params.bytes { size.get() as f64 / self.params.mean_pktsize.get() as f64 } else { 1.0 };
        self.count += step;
        if self.avg < self.min_th || queued <= Packets::new(1) {
            self.above = false;
            return None;
        }
        let ceiling = if self.params.gentle { 2.0 * self.max_th } else { self.max_th };
        if self.avg >= ceiling {
            return Some(DropReason::Forced);
        }
        if !self.above {
            self.above = true;
            self.count = step;
            return None;
        }
        let p_a = spread(self.p_b(), self.count, self.params.wait);
        let p_a = if self.params.bytes { p_a * step } else { p_a };
        self.random.chance(p_a).then_some(DropReason::Early)
    }

    /// The probability before spacing.
    fn p_b(&self) -> f64 {
        let (max_p, avg) = (self.params.max_p.get(), self.avg);
        if avg >= self.max_th {
            // Gentle: from max_p to 1 over max_th to 2 max_th.
            return max_p + (1.0 - max_p) * (avg - self.max_th) / self.max_th;
        }
        // 1993 paper, eq. (2).
        max_p * (avg - self.min_th) / (self.max_th - self.min_th)
    }
}

/// Spaces drops evenly rather than at random: the probability after `count` arrivals without one.
fn spread(p_b: f64, count: f64, wait: bool) -> f64 {
    let expected = count * p_b;
    match wait {
        true if expected < 1.0 => 0.0,
        true if expected < 2.0 => p_b / (2.0 - expected),
        // 1993 paper, section 4: p_a = p_b / (1 - count p_b).
        false if expected < 1.0 => p_b / (1.0 - expected),
        _ => 1.0,
    }
}

impl<P: Packet> BufferPolicy<P> for Red {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Verdict {
        self.update_average(now, backlog);
        let early = self.early(packet.size(), backlog.packets);
        let reason =
            if self.params.limit.admits(packet, backlog) { early } else { Some(DropReason::Overflow) };
        let Some(reason) = reason else { return Verdict::Accept };
        self.count = 0.0;
        if reason == DropReason::Early && self.params.ecn && packet.ecn().is_capable() {
            return Verdict::Mark;
        }
        Verdict::Drop(reason)
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        let queued = scheduler.pop(now);
        if queued.is_none() {
            self.q_time.get_or_insert(now);
        }
        queued
    }

    fn set_limit(&mut self, limit: Limit) {
        self.params.limit = limit;
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.link_rate = rate;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;
    use crate::packet::Ecn;
    use crate::queue::Queue;
    use crate::schedule::fifo::Fifo;
    use crate::testing::{Log, TestPacket, packet};

    fn defaults() -> RedParams {
        RedParams::from_args(&Args::default()).unwrap()
    }

    fn red(params: &RedParams) -> Red {
        Red::new(params, Rate::from_mbit(4), Stream::new(1, "red"))
    }

    /// The verdict on a packet of 500 bytes that finds `packets` of 500 bytes.
    fn admit(red: &mut Red, now: Time, packets: u64) -> Verdict {
        let backlog = Backlog { packets: Packets::new(packets), bytes: Bytes::new(500 * packets) };
        BufferPolicy::<TestPacket>::admit(red, now, &mut packet(0, 0, 500), backlog)
    }

    #[test]
    fn the_average_follows_the_queue_without_the_arrival() {
        let mut red = red(&RedParams { w_q: Ratio::clamped(0.25), ..defaults() });
        let avg = [8, 4, 0].map(|q| {
            admit(&mut red, Time::ZERO, q);
            red.avg
        });
        // 0.25·8 = 2; 0.75·2 + 0.25·4 = 2.5; 0.75·2.5 + 0 = 1.875.
        assert_eq!(avg, [2.0, 2.5, 1.875]);
    }

    #[test]
    fn idle_time_counts_as_the_packets_it_had_room_for() {
        let mut red = red(&RedParams { w_q: Ratio::clamped(0.5), ..defaults() });
        red.q_time = None;
        red.avg = 8.0;
        let mut fifo = Fifo::<TestPacket>::new();
        let mut log = Log::default();
        assert!(red.dequeue(Time::from_millis(10), &mut fifo, &mut log).is_none());
        // A second question while idle does not move the start.
        assert!(red.dequeue(Time::from_millis(11), &mut fifo, &mut log).is_none());
        // 500 B take 1 ms at 4 Mbit/s: in 2.9 ms m = 2, so avg = 8·0.5³ + 0.5·0 = 1.
        admit(&mut red, Time::from_nanos(12_900_000), 0);
        assert_eq!(red.avg, 1.0);
        assert_eq!(red.q_time, None);
    }

    #[test]
    fn drops_are_spaced_as_each_mode_says() {
        // p_b = 0.1. wait: 0 below count 10, at 15 0.1/(2 - 1.5), from 20 certain.
        assert_eq!([9.0, 15.0, 20.0].map(|count| spread(0.1, count, true)), [0.0, 0.2, 1.0]);
        // Paper: at 0 plain, at 5 0.1/(1 - 0.5), from 10 certain.
        assert_eq!([0.0, 5.0, 10.0].map(|count| spread(0.1, count, false)), [0.1, 0.2, 1.0]);
    }

    #[test]
    fn the_ramp_goes_from_min_to_max_and_gently_on_to_twice_max() {
        let mut red = red(&RedParams { gentle: true, ..defaults() });
        let mut p_b = |avg| {
            red.avg = avg;
            red.p_b()
        };
        // 0.1·(10 - 5)/(15 - 5) = 0.05; at 15 0.1; at 22.5 0.1 + 0.9·7.5/15 = 0.55.
        assert_eq!([5.0, 10.0, 15.0, 22.5].map(&mut p_b), [0.0, 0.05, 0.1, 0.55]);
    }

    #[test]
    fn above_the_maximum_everything_is_dropped_unless_gentle() {
        for (gentle, avg, verdict) in [
            (false, 15.0, Verdict::Drop(DropReason::Forced)),
            (true, 15.0, Verdict::Accept), // the first arrival above min_th
            (true, 30.0, Verdict::Drop(DropReason::Forced)),
        ] {
            let w_q = Ratio::ONE;
            let mut red = red(&RedParams { gentle, w_q, ..defaults() });
            assert_eq!(admit(&mut red, Time::ZERO, avg as u64), verdict, "gentle {gentle}, avg {avg}");
        }
    }

    #[test]
    fn a_packet_of_twice_the_mean_is_dropped_twice_as_often_in_byte_mode() {
        let drops = |size: u64| {
            let params = RedParams { bytes: true, wait: false, w_q: Ratio::ONE, ..defaults() };
            let mut red = red(&params);
            let backlog = Backlog { packets: Packets::new(10), bytes: Bytes::new(5_000) };
            (0..20_000)
                .filter(|_| {
                    // The plain probability: p_b = 0.05 at count 0.
                    red.count = -(size as f64 / 500.0);
                    red.above = true;
                    BufferPolicy::<TestPacket>::admit(&mut red, Time::ZERO, &mut packet(0, 0, size), backlog)
                        != Verdict::Accept
                })
                .count() as f64
                / 20_000.0
        };
        // 4σ of a share: 4·sqrt(p(1-p)/20000).
        for (size, p) in [(500, 0.05), (1_000, 0.1)] {
            let band = 4.0 * (p * (1.0 - p) / 20_000.0_f64).sqrt();
            assert!((drops(size) - p).abs() < band, "{size} B: {} against {p} ± {band}", drops(size));
        }
    }

    #[test]
    fn marks_replace_early_drops_of_capable_packets_and_never_forced_ones() {
        let params = RedParams { ecn: true, w_q: Ratio::ONE, max_p: Ratio::ONE, ..defaults() };
        let mut queue = Buffer::new(Fifo::new(), red(&params));
        let mut log = Log::default();
        for id in 0..60 {
            let ecn = if id % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            queue.enqueue(Time::ZERO, TestPacket { ecn, ..packet(id, 0, 500) }, &mut log);
        }
        assert!(!log.marked.is_empty() && log.marked.iter().all(|(_, id)| id % 2 == 0));
        let early = |reason| reason == DropReason::Early;
        assert!(log.dropped.iter().filter(|d| early(d.2)).all(|(_, id, _)| id % 2 == 1));
        assert!(log.dropped.iter().any(|&(_, id, reason)| id % 2 == 0 && reason == DropReason::Forced));
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let packets = |n| Limit::Packets(Packets::new(n));
        let message = |params: RedParams| params.check().unwrap_err().message;
        assert_eq!(
            message(RedParams { min_th: packets(15), ..defaults() }),
            "15p must be above `min_th`, which is 15p"
        );
        assert_eq!(
            message(RedParams { max_th: packets(55), ..defaults() }),
            "55p can never be reached with a `limit` of 50p: raise the limit"
        );
        assert_eq!(
            message(RedParams { max_th: Limit::Bytes(Bytes::new(9_000)), ..defaults() }),
            "`min_th` and `max_th` must both be in packets or both in bytes"
        );
        assert_eq!(
            message(RedParams { w_q: Ratio::ZERO, ..defaults() }),
            "with 0 the average never moves; write for example 0.002"
        );
        assert_eq!(
            message(RedParams { mean_pktsize: Bytes::ZERO, ..defaults() }),
            "a packet has at least 1B"
        );
    }
}
