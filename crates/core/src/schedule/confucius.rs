//! Confucius: fair, but not too fast. Shares of the link move from what they were to the fair ones at the pace
//! of congestion control.
//!
//! Meng, Atre, Xu, Sherry, Apostolaki, "Confucius: achieving consistent low latency with practical queue
//! management for real-time communications", arXiv 2310.18030, 2024; Zhang, Meng,
//! draft-zhang-iccrg-confucius-00, 2025. A fair scheduler gives a burst of new flows their shares at once; a
//! video call needs several round trips to follow, and stalls meanwhile.
//!
//! From the abstract and the draft: the gradual reallocation, and weights that depend on the age of flows.
//! That flows are sorted by their occupancy of the buffer with hysteresis is second-hand. The law, its
//! constants and all that follows are our reading:
//! - A flow is *active* while it has packets, and for a `pace` after. A flow that is silent for longer
//!   loses its share at once and counts as new when it returns.
//! - A flow is *elastic* once its queue exceeds `elastic` times what the link sends in a `pace`, until its
//!   queue has been below half of that for `settle`. What the link sends is the largest amount of recent
//!   paces, so no rate is configured.
//! - A flow that has been active for `settle` and is not elastic is *settled*. Its share starts at the fair
//!   share F, its part of the weights of active flows, and follows F by ds/dt = k (F - s), with k = -ln(1 -
//!   lambda) / pace. Between two changes of F that is s(t) = F + (s(0) - F) (1 - lambda)^(t/pace).
//! - All other flows, new or elastic, divide what settled flows leave by their weights, but no less than a
//!   sixteenth of their fair share. A download thus makes room at once, and settled flows gradually.
//!
//! Shares are the weights of [start-time fair queueing](super::start_time_fq). They are set anew each fifth of
//! a pace, and what a flow is ahead of virtual time is scaled with its weight: it waits as if its packet
//! in service had always had the new one.
//!
//! Cost: O(log flows) per packet, and O(log flows) per active flow each fifth of a pace; at most 200 bytes
//! per flow.
//!
//! Statistics: `settled_flows` and `elastic_flows`.

use alloc::vec::Vec;

use super::start_time_fq::StartTimeFq;
use super::{End, Queued, Scheduler};
use crate::flow_setting::FlowSetting;
use crate::packet::{FlowId, Packet};
use crate::param::{Entry, Heeds, Inside, Param, Role, Shares, Traits, require};
use crate::params;
use crate::queue::Backlog;
use crate::units::{Span, Time, Weight};

/// Confucius in the catalogue.
pub const ENTRY: Entry = Entry {
    name: "confucius",
    role: Role::Scheduler,
    summary: "Fair queueing whose shares move to the fair ones gradually, so that calls can follow.",
    reference: "Meng et al. 2024; our reading",
    cost: "O(log flows) per packet, at most 200 bytes per flow",
    params: ConfuciusParams::PARAMS,
    traits: Traits {
        heeds: &[Heeds::Weight],
        inside: Inside::Part,
        shares: Shares::Given,
        limits: "The law and its constants are our reading of a published abstract. Next to bursts of ten transfers \
            a call of 2.5 Mb/s has no packet later than 100 ms on 10 Mb/s, where 2 to 6 % are behind `stfq`, and \
            transfers take 1.2 times as long. On 3 Mb/s 8 to 11 % are late (`stfq`: 13 to 15 %; `fq_codel`: 6 %).",
        ..Traits::NONE
    },
};

params! {
    /// Parameters of [`Confucius`].
    pub struct ConfuciusParams {
        /// Part of the distance to its fair share by which a settled flow's share moves each `pace`; 1: at once, as in fair queueing.
        lambda: f64 = Param::of("0.1", "chosen: below the cut of 15 % a round trip by which calls follow").symbol("λ"),
        /// Time of one such step, and the silence after which a flow loses its share.
        pace: Span = Param::of("50ms", "chosen: a round trip, and longer than a frame at 30 frames/s").symbol("T"),
        /// Queue of a flow beyond which it is elastic, in parts of what the link sends in a `pace`.
        elastic: f64 = Param::of("1", "chosen: a frame of a call takes less, a transfer that fills its window more"),
        /// Time that a flow must be active, and not elastic, to settle.
        settle: Span = Param::of("1s", "chosen: several round trips, so that transfers show their queues first"),
    }
    check: |params: &Self, _| {
        require(params.lambda > 0.0 && params.lambda <= 1.0, "lambda", "it must lie between 0, excluded, and 1")?;
        require(params.pace >= Span::from_millis(1), "pace", "it must be at least 1ms")?;
        require(params.elastic > 0.0 && params.elastic.is_finite(), "elastic", "it must be above 0")
    }
}

/// The least part of their fair share that flows which have not settled get together. Chosen: virtual time
/// stays exact enough, and the newcomers' first packets wait for less than a pace or two.
const LEAST: f64 = 1.0 / 16.0;
/// The weight of the whole link in the scheduler, whose smallest weight is 1. Chosen: flows with a millionth
/// of the link still differ.
const WHOLE: f64 = (1_u32 << 20) as f64;

/// A flow.
#[derive(Clone, Copy, Debug)]
struct Flow {
    weight: f64,
    /// Bytes that wait.
    held: u64,
    /// Its share of the link, if it has settled.
    share: Option<f64>,
    is_active: bool,
    is_elastic: bool,
    /// When it became active.
    since: Time,
    /// When it last had a packet.
    seen: Time,
    /// When its queue last exceeded half of the threshold.
    long: Time,
}

const NEW: Flow = Flow {
    weight: 1.0,
    held: 0,
    share: None,
    is_active: false,
    is_elastic: false,
    since: Time::ZERO,
    seen: Time::ZERO,
    long: Time::ZERO,
};

/// Fair queueing with shares that move gradually.
#[derive(Clone, Debug)]
pub struct Confucius<P> {
    params: ConfuciusParams,
    queues: StartTimeFq<P>,
    flows: Vec<Flow>,
    /// The active flows.
    active: Vec<u32>,
    /// The last time when shares were set.
    updated: Time,
    /// The share of a newcomer, by its weight.
    newcomer: f64,
    /// Bytes sent since `interval_began`, and the most in a pace, which is forgotten by a tenth in each.
    sent: u64,
    interval_began: Time,
    most: f64,
}

impl<P: Packet> Confucius<P> {
    /// An empty scheduler.
    #[must_use]
    pub fn new(params: &ConfuciusParams) -> Self {
        Self {
            params: params.clone(),
            queues: StartTimeFq::new(Weight::ONE),
            flows: Vec::new(),
            active: Vec::new(),
            updated: Time::ZERO,
            newcomer: 1.0,
            sent: 0,
            interval_began: Time::ZERO,
            most: 0.0,
        }
    }

    fn flow(&mut self, slot: usize) -> &mut Flow {
        if slot >= self.flows.len() {
            self.flows.resize(slot + 1, NEW);
        }
        &mut self.flows[slot]
    }

    /// Sets all shares anew if a fifth of a pace has passed.
    #[inline]
    fn update(&mut self, now: Time) {
        if now.since(self.updated).as_secs_f64() * 5.0 >= self.params.pace.as_secs_f64() {
            self.set_shares(now);
        }
    }

    fn set_shares(&mut self, now: Time) {
        let Self { params, flows, active, .. } = self;
        let kept = 1.0 - params.lambda;
        let intervals = |span: Span| span.as_secs_f64() / params.pace.as_secs_f64();
        let factor = libm::pow(kept, intervals(now.since(self.updated)));
        self.updated = now;
        let passed = intervals(now.since(self.interval_began));
        if passed >= 1.0 {
            self.most = (self.most * libm::pow(0.9, passed)).max(self.sent as f64 / passed);
            (self.sent, self.interval_began) = (0, now);
        }
        let threshold = self.most * params.elastic;
        active.retain(|&slot| {
            let flow = &mut flows[slot as usize];
            flow.is_active = flow.held > 0 || now.since(flow.seen) <= params.pace;
            flow.is_active
        });
        let all: f64 = active.iter().map(|&slot| flows[slot as usize].weight).sum();
        let (mut settled, mut others) = (0.0, 0.0);
        for &slot in &*active {
            let flow = &mut flows[slot as usize];
            let held = flow.held as f64;
            if held * 2.0 > threshold {
                flow.long = now;
            }
            flow.is_elastic = held > threshold || flow.is_elastic && now.since(flow.long) < params.settle;
            let fair = flow.weight / all;
            flow.share = match flow.share {
                _ if flow.is_elastic => None,
                Some(share) => Some(fair + (share - fair) * factor),
                None => (now.since(flow.since) >= params.settle).then_some(fair),
            };
            match flow.share {
                Some(share) => settled += share,
                None => others += flow.weight,
            }
        }
        let left = (1.0 - settled).max(others / all * LEAST);
        // A newcomer divides with those who are there, or gets what is left by the next update.
        self.newcomer = if others > 0.0 { left / others } else { (1.0 - settled).max(LEAST / (all + 1.0)) };
        for &slot in &self.active {
            let flow = &self.flows[slot as usize];
            let share = flow.share.unwrap_or(self.newcomer * flow.weight);
            self.queues.reweigh(FlowId(slot), of_link(share));
        }
    }
}

/// The weight of a share of the link in the scheduler.
fn of_link(share: f64) -> Weight {
    Weight::new((share * WHOLE).max(1.0)).unwrap_or(Weight::ONE)
}

impl<P: Packet> Scheduler<P> for Confucius<P> {
    fn push(&mut self, now: Time, packet: P) {
        self.update(now);
        let (slot, size, newcomer) = (packet.flow().slot(), packet.size().get(), self.newcomer);
        let flow = self.flow(slot);
        flow.held += size;
        flow.seen = now;
        if !flow.is_active {
            *flow =
                Flow { weight: flow.weight, held: flow.held, is_active: true, since: now, seen: now, ..NEW };
            let share = newcomer * flow.weight;
            self.active.push(slot as u32);
            self.queues.reweigh(FlowId(slot as u32), of_link(share));
        }
        self.queues.push(now, packet);
    }

    fn pop(&mut self, now: Time) -> Option<Queued<P>> {
        let queued = self.queues.pop(now)?;
        let size = queued.packet.size().get();
        self.sent += size;
        let flow = &mut self.flows[queued.packet.flow().slot()];
        flow.held -= size;
        flow.seen = now;
        // Afterwards, so that the packet is that of `next_flow`.
        self.update(now);
        Some(queued)
    }

    fn push_out(&mut self, now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        let queued = self.queues.push_out(now, flow, end)?;
        self.flows[flow.slot()].held -= queued.packet.size().get();
        Some(queued)
    }

    fn next_flow(&self) -> Option<FlowId> {
        self.queues.next_flow()
    }

    fn front(&self) -> Option<&Queued<P>> {
        self.queues.front()
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let count = |is: fn(&Flow) -> bool| {
            self.active.iter().filter(|&&slot| is(&self.flows[slot as usize])).count() as f64
        };
        show("settled_flows", count(|flow| flow.share.is_some()));
        show("elastic_flows", count(|flow| flow.is_elastic));
    }

    fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        let FlowSetting::Weight(weight) = setting else { return false };
        self.flow(flow.slot()).weight = weight.get();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::param::EntryArgs;
    use crate::testing::packet;

    fn confucius(change: impl FnOnce(&mut ConfuciusParams)) -> Confucius<SimplePacket> {
        let mut params = ConfuciusParams::from_args(&EntryArgs::defaults(&ENTRY)).unwrap();
        change(&mut params);
        Confucius::new(&params)
    }

    /// These flows send a packet each 10 ms, which leaves at once.
    fn steady(queue: &mut Confucius<SimplePacket>, flows: core::ops::Range<u32>, ms: core::ops::Range<u64>) {
        for now in ms.step_by(10).map(Time::from_millis) {
            for flow in flows.clone() {
                queue.push(now, packet(0, flow, 100));
                queue.pop(now);
            }
        }
    }

    #[test]
    fn the_share_of_a_settled_flow_follows_the_law() {
        for lambda in [0.1, 0.3, 1.0] {
            let mut queue = confucius(|params| params.lambda = lambda);
            steady(&mut queue, 0..1, 0..2_000);
            assert_eq!(queue.flows[0].share, Some(1.0));
            // Nine flows join: the fair share is a tenth.
            steady(&mut queue, 0..10, 2_000..2_010);
            for step in 1..=80_u64 {
                steady(&mut queue, 0..10, 2_000 + 10 * step..2_010 + 10 * step);
                let law = 0.1 + 0.9 * libm::pow(1.0 - lambda, step as f64 / 5.0);
                let share = queue.flows[0].share.unwrap();
                assert!((share - law).abs() < 1e-9, "{lambda} {step}: {share} {law}");
                let newcomer = queue.newcomer;
                assert!((newcomer * 9.0 - (1.0 - law).max(0.9 * LEAST)).abs() < 1e-9, "{newcomer}");
            }
        }
    }

    #[test]
    fn a_flow_with_a_long_queue_makes_room_at_once() {
        for (elastic, kept) in [(1.0, None), (1e6, Some(()))] {
            let mut queue = confucius(|params| params.elastic = elastic);
            steady(&mut queue, 0..1, 0..2_000);
            for id in 0..50 {
                queue.push(Time::from_millis(2_000), packet(id, 0, 100));
            }
            queue.push(Time::from_millis(2_010), packet(0, 1, 100));
            queue.push(Time::from_millis(2_020), packet(0, 1, 100));
            assert_eq!(queue.flows[0].share.map(|_| ()), kept, "{elastic}");
            assert_eq!(kept.is_none(), (queue.newcomer - 0.5).abs() < 1e-9, "{}", queue.newcomer);
        }
    }

    #[test]
    fn a_silent_flow_loses_its_share_at_once() {
        let mut queue = confucius(|_| ());
        steady(&mut queue, 0..2, 0..2_000);
        assert_eq!(queue.flows[0].share, Some(0.5));
        steady(&mut queue, 1..2, 2_000..2_050);
        assert_eq!(queue.flows[0].share, Some(0.5), "40 ms of silence are the gap between frames");
        steady(&mut queue, 1..2, 2_050..2_060);
        assert!(!queue.flows[0].is_active);
        steady(&mut queue, 0..2, 2_060..2_070);
        assert_eq!(queue.flows[0].share, None, "it is new when it returns");
    }

    #[test]
    fn settled_flows_divide_by_their_weights() {
        let mut queue = confucius(|_| ());
        queue.set_flow(FlowId(1), FlowSetting::Weight(Weight::new(3.0).unwrap()));
        steady(&mut queue, 0..2, 0..2_000);
        assert_eq!([0, 1].map(|flow| queue.flows[flow].share.unwrap()), [0.25, 0.75]);
    }
}
