//! SRED, stabilised RED: estimates the number of active flows from the frequency with which an arrival
//! matches the flow of an earlier one, and drops by this number and the queue.
//!
//! Ott, Lakshman, Wong, "SRED: stabilized RED", INFOCOM 1999. Each arrival is compared with one random place
//! of a list of recent flows, the zombies. A hit belongs to a flow with many packets; the inverse of the
//! frequency of hits is the number of flows, if they are alike. There is no average queue and no state per
//! flow.
//!
//! Readings, where the outline of the algorithm in later literature leaves room:
//! - While the list fills, arrivals join it and are compared with nothing: P stays at 0, the first term is at
//!   most 1, and only the queue decides.
//! - An arrival updates P before P judges it, so P is above 0 after a hit.
//! - The queue is the present one without the arriving packet, in the unit of `limit`.
//! - The counts and time stamps of the paper's zombies serve its search for misbehaving flows, not its drops;
//!   they are left out.
//! - The paper's constant 256 is a parameter, `crowd`: with far fewer flows SRED has hardly any early drops
//!   and is tail drop.
//!
//! Cost: O(1) per packet, 4 bytes per zombie. Parameters: [`ENTRY`].

use alloc::vec::Vec;

use super::{Admission, BufferPolicy};
use crate::limit::{BufferSize, Limit, LinkLimit};
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Inside, LIMIT, Param, ParamError, Role, Traits, require};
use crate::params;
use crate::queue::{Backlog, DropReason};
use crate::random::Stream;
use crate::units::{Rate, Ratio, Time};

/// The maximum number of zombies, which take 4 MB. Chosen: far above any useful length.
const MAX_ZOMBIES: u64 = 1 << 20;

/// SRED in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "sred",
    role: Role::Policy,
    summary: "Stabilised RED: drops by queue length and an estimated number of active flows.",
    reference: "Ott, Lakshman, Wong 1999",
    cost: "O(1) per packet, 4 bytes per zombie, no state per flow",
    params: SredParams::PARAMS,
    traits: Traits {
        inside: Inside::Part,
        limits: "Behind a fair scheduler a flood fills the buffer: use `lqd`, `pfd`, `codel` or `pie` there.",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Sred`].
    pub struct SredParams {
        limit: Option<BufferSize> = LIMIT,
        /// Length of the list of flows seen lately.
        zombies: u64 = Param::of("1000", "1999 paper").symbol("M"),
        /// Probability that an arrival takes the place of the zombie it did not match.
        overwrite: Ratio = Param::of("0.25", "1999 paper").symbol("p"),
        /// Probability from a third of the buffer on; a quarter of it from a sixth on.
        p_max: Ratio = Param::of("0.15", "1999 paper").symbol("p_max"),
        /// Number of flows from which these probabilities hold; below, they fall with its square.
        crowd: u64 = Param::of("256", "1999 paper").symbol("256"),
        /// Drop hits more often, since their flows hold more packets; false: simple SRED.
        full: bool = Param::of("true", "chosen: the paper's complete form"),
    }
    check: |params: &Self, _| params.check()
}

impl SredParams {
    fn check(&self) -> Result<(), ParamError> {
        let zombies = (1..=MAX_ZOMBIES).contains(&self.zombies);
        require(zombies, "zombies", "it must lie between 1 and 1048576")?;
        require(self.overwrite > Ratio::ZERO, "overwrite", "with 0 the list never learns of new flows")?;
        require(self.crowd > 0, "crowd", "it must be at least 1")
    }
}

/// SRED's state, with the paper's names.
#[derive(Clone, Debug)]
pub struct Sred {
    params: SredParams,
    limit: LinkLimit,
    /// The flows seen last.
    zombies: Vec<FlowId>,
    /// P(t): the frequency of hits.
    p: f64,
    random: Stream,
}

impl Sred {
    /// SRED with an empty list.
    #[must_use]
    pub fn new(params: &SredParams, link_rate: Rate, random: Stream) -> Self {
        let limit = LinkLimit::new(params.limit, link_rate);
        Self { params: params.clone(), limit, zombies: Vec::new(), p: 0.0, random }
    }

    /// Compares an arrival of `flow` with a zombie. Returns whether it is a hit.
    fn compare(&mut self, flow: FlowId) -> bool {
        if (self.zombies.len() as u64) < self.params.zombies {
            self.zombies.push(flow);
            return false;
        }
        let drawn = self.random.below(self.params.zombies) as usize;
        let hit = self.zombies[drawn] == flow;
        if !hit && self.random.chance(self.params.overwrite.get()) {
            self.zombies[drawn] = flow;
        }
        // P(t) = (1 - alpha) P(t - 1) + alpha Hit(t), with alpha = p/M.
        let alpha = self.params.overwrite.get() / self.params.zombies as f64;
        self.p = (1.0 - alpha) * self.p + alpha * f64::from(u8::from(hit));
        hit
    }

    /// p_sred: the probability from the queue alone.
    fn p_sred(&self, backlog: Backlog) -> f64 {
        let (q, limit) = self.limit.get().measure(backlog);
        let p_max = self.params.p_max.get();
        match q {
            _ if q.saturating_mul(3) >= limit => p_max,
            _ if q.saturating_mul(6) >= limit => p_max / 4.0,
            _ => 0.0,
        }
    }

    /// p_zap: the probability that an arrival is dropped.
    fn p_zap(&self, backlog: Backlog, hit: bool) -> f64 {
        let few = self.params.crowd as f64 * self.p;
        // With P = 0 the quotient is infinite, and the minimum is 1.
        let p = self.p_sred(backlog) * (1.0 / (few * few)).min(1.0);
        // Full SRED. P is above 0 after a hit.
        if self.params.full && hit { (p * (1.0 + 1.0 / self.p)).min(1.0) } else { p }
    }
}

impl<P: Packet> BufferPolicy<P> for Sred {
    fn admit(&mut self, _now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        let hit = self.compare(packet.flow());
        let p_zap = self.p_zap(backlog, hit);
        let early = self.random.chance(p_zap);
        match (self.limit.get().admits(packet, backlog), early) {
            (false, _) => Admission::Drop(DropReason::Overflow),
            (true, true) => Admission::Drop(DropReason::Early),
            (true, false) => Admission::Accept,
        }
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("hit_frequency", self.p);
        if self.p > 0.0 {
            show("estimated_flows", 1.0 / self.p);
        }
    }

    fn limit(&self) -> Option<Limit> {
        Some(self.limit.get())
    }

    fn set_limit(&mut self, limit: Limit) {
        self.limit.set(limit);
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.limit.set_link_rate(rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::testing::packet;
    use crate::units::{Bytes, Packets};

    fn sred(change: impl FnOnce(&mut SredParams)) -> Sred {
        let mut params = SredParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        params.limit = Some(Limit::Packets(Packets::new(60)).into());
        change(&mut params);
        Sred::new(&params, Rate::from_mbit(10), Stream::new(1, "sred"))
    }

    fn backlog(packets: u64) -> Backlog {
        Backlog { packets: Packets::new(packets), bytes: Bytes::new(500 * packets) }
    }

    #[test]
    fn the_queue_alone_gives_steps_at_a_sixth_and_a_third_of_the_buffer() {
        // P = 0: p_zap is p_sred. 60/6 = 10, 60/3 = 20; 0.15/4 = 0.0375.
        let sred = sred(|_| {});
        assert_eq!(
            [9, 10, 19, 20, 59].map(|q| sred.p_zap(backlog(q), false)),
            [0.0, 0.0375, 0.0375, 0.15, 0.15]
        );
    }

    #[test]
    fn few_flows_are_dropped_less_and_hits_more() {
        for full in [true, false] {
            let mut sred = sred(|params| params.full = full);
            // 512 flows: 256/512 = 0.5, above 1 when squared and turned over. 128 flows: (128/256)² = 0.25.
            sred.p = 1.0 / 512.0;
            assert_eq!(sred.p_zap(backlog(20), false), 0.15);
            sred.p = 1.0 / 128.0;
            assert_eq!(sred.p_zap(backlog(20), false), 0.15 * 0.25);
            // A hit counts 1 + 128 times: 0.0375·129 = 4.8, certain. At a sixth, with 16 flows:
            // 0.0375/256·17.
            let expected = if full { [1.0, 0.0375 / 256.0 * 17.0] } else { [0.15 * 0.25, 0.0375 / 256.0] };
            let certain = sred.p_zap(backlog(20), true);
            sred.p = 1.0 / 16.0;
            assert_eq!([certain, sred.p_zap(backlog(10), true)], expected, "full {full}");
        }
    }

    #[test]
    fn hits_and_misses_move_the_frequency_by_the_memory_of_the_list() {
        let mut sred = sred(|params| (params.zombies, params.overwrite) = (2, Ratio::clamped(0.5)));
        // The list fills; then alpha = 0.5/2 = 0.25: hits give 0.25, then 0.75·0.25 + 0.25 = 0.4375.
        let hits = [0, 0, 0, 0].map(|flow| sred.compare(FlowId(flow)));
        assert_eq!((hits, sred.p), ([false, false, true, true], 0.4375));
        // A flow not seen before is a miss: 0.75·0.4375.
        assert!(!sred.compare(FlowId(1)));
        assert_eq!(sred.p, 0.328_125);
    }

    #[test]
    fn a_miss_takes_the_place_of_the_zombie_as_often_as_it_should() {
        let mut sred = sred(|params| params.zombies = 1);
        let taken = (0..20_000).filter(|_| {
            sred.zombies = [FlowId(0)].to_vec();
            sred.compare(FlowId(1));
            sred.zombies == [FlowId(1)]
        });
        let share = taken.count() as f64 / 20_000.0;
        let band = 4.0 * (0.25 * 0.75 / 20_000.0_f64).sqrt();
        assert!((share - 0.25).abs() < band, "{share} against 0.25 ± {band}");
    }

    #[test]
    fn the_number_of_flows_is_found_if_they_are_alike() {
        // 50 flows at random: whatever the list holds, an arrival matches with probability 1/50. An
        // exponential average of weight alpha has the variance of its input times alpha/(2 - alpha); alpha =
        // 0.25/1000.
        let (mut sred, mut random) = (sred(|_| {}), Stream::new(1, "flows"));
        for _ in 0..100_000 {
            sred.compare(FlowId(random.below(50) as u32));
        }
        let sigma = (0.02 * 0.98 * 0.000_25 / 1.999_75_f64).sqrt();
        assert!((sred.p - 0.02).abs() < 4.0 * sigma, "{} against 0.02 ± {}", sred.p, 4.0 * sigma);
        let mut shown = Vec::new();
        BufferPolicy::<SimplePacket>::statistics(&sred, &mut |name, value| shown.push((name, value)));
        assert_eq!(shown, [("hit_frequency", sred.p), ("estimated_flows", 1.0 / sred.p)]);
    }

    #[test]
    fn arrivals_are_dropped_with_p_zap_and_at_the_limit_for_certain() {
        let mut sred = sred(|params| params.full = false);
        let mut verdict = |queued| {
            sred.p = 0.0;
            sred.zombies.clear();
            sred.admit(Time::ZERO, &mut packet(0, 0, 500), backlog(queued))
        };
        let drops = (0..20_000).filter(|_| verdict(20) == Admission::Drop(DropReason::Early));
        let share = drops.count() as f64 / 20_000.0;
        let band = 4.0 * (0.15 * 0.85 / 20_000.0_f64).sqrt();
        assert!((share - 0.15).abs() < band, "{share} against 0.15 ± {band}");
        assert_eq!(verdict(60), Admission::Drop(DropReason::Overflow));
    }
}
