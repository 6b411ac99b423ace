//! Finds the flow of a packet and what the rules give it, in one direction of a gateway.
//!
//! Rules are looked through once for each flow; what they decided is kept with its number. When a number
//! passes to another flow, the link gets an update of all that differs, so nothing is inherited.
//!
//! Numbers: 0 is what is no IP packet; then one for each rule, for those that take all that match for one flow;
//! then those of the table of flows. Guarantees are admitted one by one against the rate of the direction, in
//! the order in which flows come; one that does not fit is not given, and counted.
//!
//! Cost: O(1) per packet, O(rules) per new flow; 150 bytes per flow.

use std::collections::VecDeque;

use apportion_core::packet::{CustomerId, Customers};
use apportion_core::packet::{FlowClass, FlowId};
use apportion_core::system::{Discipline, LinkContext};
use apportion_core::units::{Rate, Span, Time, Weight};
use apportion_scenario::gateway::classifier::{Headers, MAX_RULES, RuleSet};
use apportion_scenario::gateway::{Direction, GatewayConfig, Grouping, Treatment};

use super::marks::{FlowMarks, Maker};
use crate::flow_table::FlowTable;
use crate::frame::FlowTuple;
use crate::packet::Packet;
use apportion_runtime::link::FlowSetting;

/// The number of the first flow that has one of its own.
const FIRST: u32 = MAX_RULES as u32 + 1;
/// Flows that are looked at in one [`Classifier::release`]. Chosen: a round of 65536 flows takes 1.6 s at ten
/// calls a second.
const RELEASE_BATCH: usize = 4_096;

/// Flows of one direction.
#[derive(Debug)]
pub struct Classifier {
    direction: Direction,
    table: FlowTable,
    idle: Span,
    /// By place in the table.
    flows: Vec<Flow>,
    /// By number.
    slots: Vec<Slot>,
    rules: RuleSet,
    treatments: Vec<Given>,
    /// What a rule gives in addition, by its number.
    more: Vec<More>,
    customer_weights: Vec<Weight>,
    rate: Rate,
    /// Sum of the guarantees that were given.
    reserved: Rate,
    refused: u64,
    withdrawn: u64,
    /// Guarantees that were given so far.
    granted: u64,
    /// Where to look for silent flows next.
    hand: usize,
    maker: Maker,
    /// Whether some rule has packets marked.
    marking: bool,
}

/// What a rule gives that links need not know.
#[derive(Debug)]
struct More {
    one: bool,
    treatment: Treatment,
    account: u32,
    /// If all that match are one flow, when it was seen last.
    last_seen: Time,
    /// Whether the guarantee of that flow was taken back because it was silent for too long.
    lapsed: bool,
}

/// A flow by addresses and ports.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// What disciplines know it by; its own number, or that of the rule whose flows are one.
    id: FlowId,
    account: u32,
    /// The codepoint of its first packet, by which rules matched.
    dscp: u8,
    /// Whether its guarantee was taken back because it was silent for too long.
    lapsed: bool,
    /// The last byte that was acknowledged in the other direction.
    acknowledged: Option<u32>,
}

/// The state kept under a number.
#[derive(Debug, Default)]
struct Slot {
    given: Given,
    /// Which of all guarantees its own was, if it has one: it keeps its turn until it has none.
    turn: u64,
    marks: Option<Box<FlowMarks>>,
}

/// What a link knows of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Given {
    weight: Weight,
    class: FlowClass,
    guarantee: Rate,
    rtt: Span,
    customer: CustomerId,
}

/// The flow and the account of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// What disciplines know its flow by.
    pub flow: FlowId,
    /// Where it is counted.
    pub account: u32,
}

/// Updates of flows for links.
pub type Settings = VecDeque<(u32, FlowId, FlowSetting)>;

impl Classifier {
    /// No flows yet. `accounts` are those of the rules, by their number.
    #[must_use]
    pub fn new(direction: Direction, config: &GatewayConfig, accounts: &[u32]) -> Self {
        let most = config.flows.min(FlowId::SLOTS - FIRST as usize);
        let mut slots = Vec::new();
        slots.resize_with(FIRST as usize, Slot::default);
        let mut classifier = Self {
            direction,
            table: FlowTable::new(FlowId(FIRST), most, config.flow_idle),
            idle: config.flow_idle,
            flows: Vec::new(),
            slots,
            rules: RuleSet::default(),
            treatments: Vec::new(),
            more: Vec::new(),
            customer_weights: Vec::new(),
            rate: Rate::ZERO,
            reserved: Rate::ZERO,
            refused: 0,
            withdrawn: 0,
            granted: 0,
            hand: 0,
            maker: Maker::new(config.seed, direction),
            marking: false,
        };
        classifier.take_rules(config, accounts);
        classifier.prime();
        classifier
    }

    fn take_rules(&mut self, config: &GatewayConfig, accounts: &[u32]) {
        let own = config.direction(self.direction);
        self.rules = own.rules.clone();
        self.rate = own.rate;
        self.customer_weights = config.customer_weights();
        let given = |treatment: &Treatment| Given {
            weight: treatment.weight,
            class: treatment.class,
            guarantee: treatment.guarantee,
            rtt: treatment.rtt.unwrap_or_default(),
            customer: config.customer_of(treatment),
        };
        self.treatments = config.rules.iter().map(|rule| given(&rule.gives)).collect();
        self.marking = config.rules.iter().any(|rule| rule.gives.mark.is_some());
        let more = |(rule, account): (&apportion_scenario::gateway::RuleConfig, &u32)| More {
            one: rule.gives.flows == Grouping::One,
            treatment: rule.gives.clone(),
            account: *account,
            last_seen: Time::ZERO,
            lapsed: false,
        };
        self.more = config.rules.iter().zip(accounts).map(more).collect();
    }

    /// Notes down weight and round-trip time of each rule under its number, for a discipline to be built from:
    /// it then knows the least weight and the mean time before the first flow comes.
    fn prime(&mut self) {
        for (slot, rule) in self.slots[1..].iter_mut().zip(&self.treatments) {
            if slot.given == Given::default() {
                slot.given = Given { weight: rule.weight, rtt: rule.rtt, ..slot.given };
            }
        }
    }

    /// The queue of this direction, empty, with what is known of flows.
    pub fn discipline(&mut self, config: &GatewayConfig) -> Discipline<Packet> {
        self.prime();
        let own = config.direction(self.direction);
        fn all<T>(slots: &[Slot], of: impl Fn(&Given) -> T) -> Vec<T> {
            slots.iter().map(|slot| of(&slot.given)).collect()
        }
        own.queue.params.build(&LinkContext {
            link_rate: own.rate,
            weights: &all(&self.slots, |given| given.weight),
            rtts: &all(&self.slots, |given| given.rtt),
            guarantees: &all(&self.slots, |given| given.guarantee),
            classes: &all(&self.slots, |given| given.class),
            customers: Customers {
                of_flows: &all(&self.slots, |given| given.customer),
                weights: &self.customer_weights,
            },
            seed: config.seed,
            name: &format!("{}.queue", self.direction.name()),
        })
    }

    /// The flow of a packet of `tuple` that came in at `now`. Updates for the link go to `settings`; `other`
    /// is the account of flows that no rule matches.
    pub fn find(
        &mut self,
        now: Time,
        tuple: FlowTuple,
        headers: &Headers,
        other: u32,
        settings: &mut Settings,
    ) -> Found {
        let numbered = self.table.number(now, tuple);
        let at = (numbered.flow.0 - FIRST) as usize;
        if at >= self.flows.len() {
            self.flows.resize(at + 1, Flow::default());
            self.slots.resize_with(FIRST as usize + at + 1, Slot::default);
        }
        let Flow { id, lapsed, .. } = self.flows[at];
        if numbered.is_new || lapsed || self.group(id).is_some_and(|group| group.lapsed) {
            // What was marked under this number was another flow's, or is long ago.
            self.slots[numbered.flow.index()].marks = None;
            self.decide(now, at, headers, other, settings);
        }
        let Flow { id, account, .. } = self.flows[at];
        if let Some(group) = self.group(id) {
            (group.last_seen, group.lapsed) = (now, false);
        }
        Found { flow: id, account }
    }

    /// The rule whose flows are one under this number.
    fn group(&mut self, id: FlowId) -> Option<&mut More> {
        self.more.get_mut(id.index().checked_sub(1)?).filter(|more| more.one)
    }

    fn decide(&mut self, now: Time, at: usize, headers: &Headers, other: u32, settings: &mut Settings) {
        let own = FlowId(FIRST + at as u32);
        let rule = self.rules.first(headers);
        let given = rule.and_then(|rule| self.treatments.get(rule)).copied().unwrap_or_default();
        let more = rule.and_then(|rule| self.more.get(rule));
        let group = rule.filter(|_| more.is_some_and(|more| more.one)).map(|rule| FlowId(rule as u32 + 1));
        let id = group.unwrap_or(own);
        let account = more.map_or(other, |more| more.account);
        self.flows[at] = Flow { id, account, dscp: headers.dscp, lapsed: false, acknowledged: None };
        let slot = &mut self.slots[id.index()];
        if slot.marks.is_none()
            && let Some(more) = more
        {
            slot.marks = self.maker.make(now, id, &more.treatment, headers.protocol);
        }
        self.give(id, given, settings);
        if group.is_some() {
            self.give(own, Given::default(), settings);
        }
    }

    fn give(&mut self, id: FlowId, mut to: Given, settings: &mut Settings) {
        let Some(Slot { given, turn, .. }) = self.slots.get_mut(id.index()) else { return };
        let others = self.reserved.as_bit() - given.guarantee.as_bit();
        if to.guarantee > Rate::ZERO && others + to.guarantee.as_bit() > self.rate.as_bit() {
            to.guarantee = Rate::ZERO;
            self.refused += 1;
        }
        self.reserved = Rate::from_bit(others + to.guarantee.as_bit());
        let link = self.direction as u32;
        let from = std::mem::replace(given, to);
        if from.guarantee == Rate::ZERO && to.guarantee > Rate::ZERO {
            self.granted += 1;
            *turn = self.granted;
        }
        let mut update = |differs: bool, setting| {
            if differs {
                settings.push_back((link, id, setting));
            }
        };
        update(from.weight != to.weight, FlowSetting::Weight(to.weight));
        update(from.class != to.class, FlowSetting::Class(to.class));
        update(from.rtt != to.rtt, FlowSetting::Rtt(to.rtt));
        update(from.customer != to.customer, FlowSetting::Customer(to.customer));
        let is_guaranteed = from.guarantee != to.guarantee || to.guarantee > Rate::ZERO && from.rtt != to.rtt;
        update(is_guaranteed, FlowSetting::Guarantee(to.guarantee, to.rtt));
    }

    /// Takes back what flows are guaranteed that have been silent for too long, of some flows at each call and
    /// of all rules whose flows are one.
    pub fn release(&mut self, now: Time, settings: &mut Settings) {
        if self.reserved == Rate::ZERO {
            return;
        }
        for number in 1..=self.more.len() as u32 {
            let id = FlowId(number);
            let given = self.slots[id.index()].given;
            let idle = self.idle;
            if given.guarantee > Rate::ZERO
                && let Some(group) = self.group(id)
                && now.since(group.last_seen) >= idle
            {
                group.lapsed = true;
                self.give(id, Given { guarantee: Rate::ZERO, ..given }, settings);
            }
        }
        for _ in 0..RELEASE_BATCH.min(self.flows.len()) {
            let at = self.hand;
            self.hand = (self.hand + 1) % self.flows.len();
            let id = FlowId(FIRST + at as u32);
            let given = self.slots[id.index()].given;
            let last_seen = self.table.last_seen(id).unwrap_or(now);
            if given.guarantee > Rate::ZERO && now.since(last_seen) >= self.idle {
                self.flows[at].lapsed = true;
                self.give(id, Given { guarantee: Rate::ZERO, ..given }, settings);
            }
        }
    }

    /// Decides anew on all flows, by the rules of `config`. Markers begin again. Cost: O(flows · rules).
    pub fn set_rules(
        &mut self,
        now: Time,
        config: &GatewayConfig,
        accounts: &[u32],
        other: u32,
        settings: &mut Settings,
    ) {
        self.take_rules(config, accounts);
        self.slots.iter_mut().for_each(|slot| slot.marks = None);
        for rule in 0..MAX_RULES as u32 {
            self.give(FlowId(rule + 1), Given::default(), settings);
        }
        for at in 0..self.flows.len() {
            let Flow { dscp, lapsed, acknowledged, .. } = self.flows[at];
            let Some(tuple) = self.table.tuple(FlowId(FIRST + at as u32)).copied() else { continue };
            let headers = Headers {
                protocol: tuple.protocol(),
                source: tuple.source(),
                destination: tuple.destination(),
                ports: tuple.ports(),
                dscp,
            };
            if !lapsed {
                self.decide(now, at, &headers, other, settings);
                self.flows[at].acknowledged = acknowledged;
                let id = self.flows[at].id;
                if let Some(group) = self.group(id) {
                    group.last_seen = now;
                }
            }
        }
    }

    /// The rate that guarantees are admitted against from now on, and the silence after which flows are
    /// forgotten. Guarantees that no longer fit are taken back, the latest first. Cost: O(flows) if so.
    pub fn set_limits(&mut self, rate: Rate, idle: Span, settings: &mut Settings) {
        self.rate = rate;
        self.withdraw(settings);
        self.idle = idle;
        self.table.set_idle(idle);
    }

    fn withdraw(&mut self, settings: &mut Settings) {
        if self.reserved <= self.rate {
            return;
        }
        let numbered = (0..).map(FlowId).zip(&self.slots);
        let mut turns: Vec<(u64, FlowId)> = numbered
            .filter(|(_, slot)| slot.given.guarantee > Rate::ZERO)
            .map(|(id, slot)| (slot.turn, id))
            .collect();
        turns.sort_unstable();
        while self.reserved > self.rate
            && let Some((_, id)) = turns.pop()
        {
            let given = self.slots[id.index()].given;
            self.give(id, Given { guarantee: Rate::ZERO, ..given }, settings);
            self.withdrawn += 1;
        }
    }

    /// What marks the packets of a flow, if something does.
    pub fn marks(&mut self, flow: FlowId) -> Option<&mut FlowMarks> {
        self.slots.get_mut(flow.index())?.marks.as_deref_mut()
    }

    /// In the other direction, everything before `number` of the flow `tuple` of this one was acknowledged. The
    /// flow, if something marks it, and how many bytes are new.
    pub fn acknowledged(&mut self, tuple: &FlowTuple, number: u32) -> Option<(FlowId, u32)> {
        if !self.marking {
            return None;
        }
        let at = (self.table.find(tuple)?.0 - FIRST) as usize;
        let flow = self.flows.get_mut(at)?;
        self.slots.get(flow.id.index())?.marks.as_ref()?;
        // Numbers wrap; one that is behind by less than half of them is an old one (RFC 9293 section 3.4).
        let before = flow.acknowledged.unwrap_or(number);
        let new = number.wrapping_sub(before);
        let new = if new < 1 << 31 { new } else { 0 };
        flow.acknowledged = Some(before.wrapping_add(new));
        Some((flow.id, new))
    }

    /// The addresses and ports of a flow; none if it is an aggregate that a rule makes.
    #[must_use]
    pub fn tuple(&self, flow: FlowId) -> Option<FlowTuple> {
        let tuple = self.table.tuple(flow)?;
        (self.number(tuple) == Some(flow)).then_some(*tuple)
    }

    /// The flow of these packets; none if none was seen lately, or they are one flow with others.
    #[must_use]
    pub fn number(&self, tuple: &FlowTuple) -> Option<FlowId> {
        let own = self.table.find(tuple)?;
        let flow = self.flows.get((own.0 - FIRST) as usize)?;
        (flow.id == own).then_some(own)
    }

    /// Flows that have numbers, silent ones included.
    #[must_use]
    pub fn known(&self) -> usize {
        self.table.len()
    }

    /// Sum of the guarantees that were given.
    #[must_use]
    pub const fn reserved(&self) -> Rate {
        self.reserved
    }

    /// Guarantees that did not fit.
    #[must_use]
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Guarantees that were taken back, as the rate fell.
    #[must_use]
    pub const fn withdrawn(&self) -> u64 {
        self.withdrawn
    }
}

#[cfg(test)]
mod tests;
