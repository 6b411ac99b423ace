//! Finds the flow of a packet and its settings by the rules, in one direction of a gateway.
//!
//! Rules are matched once for each flow; the result is kept with its number. When a number passes to another
//! flow, the link gets an update of every setting that differs, so nothing is inherited.
//!
//! Numbers: 0 is for frames that are not IP. Then each rule has one, for rules that make all their packets
//! one flow. Then come the numbers of the table of flows; a network has one too if a rule makes its packets
//! one flow. [`guarantees`](super::guarantees) decides on guarantees.
//!
//! Cost: O(1) per packet, O(rules) per new flow; 150 bytes per flow.

use std::collections::{BTreeSet, VecDeque};
use std::net::IpAddr;

use apportion_core::FlowSetting;
use apportion_core::packet::{CustomerId, Customers, FillTarget, FlowClass, FlowId, HostPair};
use apportion_core::schedule::rcs::Rights;
use apportion_core::system::{LinkContext, LinkQueue};
use apportion_core::units::{Bytes, Rate, Span, Time, Weight};
use apportion_scenario::gateway::classifier::{Headers, MAX_RULES, Prefix, RuleSet};
use apportion_scenario::gateway::{Addresses, Direction, GatewayConfig, Grouping, Treatment};

use super::accounts::Accounts;
use super::establishment::Establishment;
use super::guarantees::{Claim, Guarantees, Holder};
use super::hosts::{End, Ends, HostNumbers};
use super::label_limit::Labelled;
use super::marks::{FlowMarks, Maker};
use super::round_trip::RoundTrips;
use crate::flow_table::{FlowTable, Numbered};
use crate::frame::FlowTuple;
use crate::packet::Packet;

mod described;
mod established;
mod guaranteed;
mod measured;

/// The first number of the table of flows.
const FIRST: u32 = MAX_RULES as u32 + 1;

/// Flows of one direction.
#[derive(Debug)]
pub struct Classifier {
    direction: Direction,
    table: FlowTable<Key>,
    /// Present if the queue divides among hosts.
    hosts: Option<HostNumbers>,
    /// Flows by index in the table.
    flows: Vec<Flow>,
    /// Slots by number of the flow.
    slots: Vec<Slot>,
    rules: RuleSet,
    treatments: Vec<Given>,
    /// Other settings of rules, by number of the rule.
    more: Vec<More>,
    customer_weights: Vec<Weight>,
    customer_names: Vec<String>,
    /// Customers by address, for flows whose rule names none.
    addresses: Addresses,
    guarantees: Guarantees,
    maker: Maker,
    /// Whether any flow was answered: the gateway then sees both directions.
    has_answers: bool,
    /// Whether a rule needs acknowledgements: it marks packets, or guarantees a rate.
    follows_acknowledgements: bool,
    /// Whether the queue divides its buffer by round-trip times.
    uses_rtts: bool,
    round_trips: RoundTrips,
}

/// A key of the table of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// A flow by addresses and ports.
    Tuple(FlowTuple),
    /// An inside network whose packets the rule with this number makes one flow.
    Network(u16, Prefix),
}

/// Settings of a rule that links need not know.
#[derive(Debug)]
struct More {
    treatment: Treatment,
    account: u32,
    /// The only addresses that the rule matches, as sources and as destinations.
    addresses: [Option<IpAddr>; 2],
}

/// A flow by addresses and ports.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    /// The number that disciplines see: the flow's own, or that of the aggregate that its rule makes.
    id: FlowId,
    account: u32,
    /// The rule that matched, if any.
    rule: Option<u16>,
    /// The codepoint of its first packet, by which rules matched.
    dscp: u8,
    /// The last acknowledgement number of the other direction.
    acknowledged: Option<u32>,
    establishment: Establishment,
}

/// The state kept under a number.
#[derive(Debug, Default)]
struct Slot {
    given: Given,
    /// Present if the rule has a guarantee.
    claim: Option<Box<Claim>>,
    marks: Option<Box<FlowMarks>>,
    /// Counts if the rule limits labels and the number is that of a network or of the rule.
    labelled: Labelled,
}

/// Settings of a flow that its link knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Given {
    weight: Weight,
    class: FlowClass,
    target: Option<FillTarget>,
    guarantee: Rate,
    /// The round-trip time that the rule states; zero: unknown.
    rtt: Span,
    /// The measured round-trip time; zero: unknown.
    measured_rtt: Span,
    customer: CustomerId,
    hosts: HostPair,
}

/// The flow and the account of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The number that disciplines see.
    pub flow: FlowId,
    /// The account that counts the packet.
    pub account: u32,
    /// Whether the packet is the first of its flow that [qualifies](super::establishment).
    pub is_first: bool,
}

/// Updates of flows for links.
pub type Settings = VecDeque<(u32, FlowId, FlowSetting)>;

impl Classifier {
    /// A classifier without flows. `accounts` are those of the rules, by their number.
    #[must_use]
    pub fn new(direction: Direction, config: &GatewayConfig, accounts: &[u32]) -> Self {
        let most = config.flows.min(FlowId::SLOTS - FIRST as usize);
        let mut slots = Vec::new();
        slots.resize_with(FIRST as usize, Slot::default);
        let mut classifier = Self {
            direction,
            table: FlowTable::new(FlowId(FIRST), most, config.flow_idle),
            hosts: None,
            flows: Vec::new(),
            slots,
            rules: RuleSet::default(),
            treatments: Vec::new(),
            more: Vec::new(),
            customer_weights: Vec::new(),
            customer_names: Vec::new(),
            addresses: Addresses::default(),
            guarantees: Guarantees::default(),
            maker: Maker::new(config.seed, direction),
            has_answers: false,
            follows_acknowledgements: false,
            uses_rtts: false,
            round_trips: RoundTrips::default(),
        };
        classifier.take_rules(config, accounts);
        classifier.guarantees.set_rate(config.direction(direction).rate);
        classifier.isolate(config);
        classifier.slots[0].given.hosts = HostNumbers::NO_FLOW;
        classifier.prime();
        classifier
    }

    /// Takes the rules of `config`. Returns the flows that had guarantees, the oldest guarantee first.
    fn take_rules(&mut self, config: &GatewayConfig, accounts: &[u32]) -> Vec<(u64, FlowId)> {
        self.rules = config.direction(self.direction).rules.clone();
        self.customer_weights = config.customer_weights();
        self.customer_names = config.customer_names();
        self.addresses.clone_from(&config.addresses);
        let given = |treatment: &Treatment| Given {
            weight: treatment.weight,
            class: treatment.class,
            target: treatment.target,
            guarantee: Rate::ZERO,
            rtt: treatment.rtt.unwrap_or_default(),
            measured_rtt: Span::ZERO,
            customer: config.customer_of(treatment),
            hosts: HostPair::default(),
        };
        let treatments = || config.rules.iter().map(|rule| &rule.gives);
        self.treatments = treatments().map(given).collect();
        self.follows_acknowledgements =
            treatments().any(|gives| gives.mark.is_some() || gives.guarantee > Rate::ZERO);
        let more = |(rule, account): (&apportion_scenario::gateway::RuleConfig, &u32)| More {
            treatment: rule.gives.clone(),
            account: *account,
            addresses: [rule.when.from, rule.when.to].map(|prefix| prefix?.address()),
        };
        self.more = config.rules.iter().zip(accounts).map(more).collect();
        self.guarantees.begin_again(treatments())
    }

    /// Sets weight and round-trip time of each rule under its number, so that a discipline knows the least
    /// weight and the mean time before the first flow comes.
    fn prime(&mut self) {
        for (slot, rule) in self.slots[1..].iter_mut().zip(&self.treatments) {
            if slot.given == Given::default() {
                slot.given = Given { weight: rule.weight, rtt: rule.rtt, ..slot.given };
            }
        }
    }

    /// The queue of this direction, empty, with the settings of flows.
    pub fn discipline(&mut self, config: &GatewayConfig) -> LinkQueue<Packet> {
        self.prime();
        let own = config.direction(self.direction);
        fn all<T>(slots: &[Slot], of: impl Fn(&Given) -> T) -> Vec<T> {
            slots.iter().map(|slot| of(&slot.given)).collect()
        }
        let mut queue = own.queue.params.build(&LinkContext {
            link_rate: own.rate,
            weights: &all(&self.slots, |given| given.weight),
            smallest_weight: None,
            rtts: &all(&self.slots, Given::rtt_for_queue),
            guarantees: &all(&self.slots, |given| given.guarantee),
            classes: &all(&self.slots, |given| given.class),
            targets: &all(&self.slots, |given| given.target),
            customers: Customers {
                of_flows: &all(&self.slots, |given| given.customer),
                weights: &self.customer_weights,
                names: &self.customer_names,
            },
            rights: Rights::default(),
            hosts: &all(&self.slots, |given| given.hosts),
            layer2: own.overhead,
            seed: config.seed,
            name: &format!("{}.queue", self.direction.name()),
        });
        self.uses_rtts = queue.set_flow(FlowId(0), FlowSetting::Rtt(Span::ZERO));
        queue
    }

    /// The flow of a packet of `tuple` that arrived at `now`. `qualifies`: it neither opens nor resets a
    /// connection. Updates for the link go to `settings`.
    pub fn find(
        &mut self,
        now: Time,
        (tuple, qualifies): (FlowTuple, bool),
        headers: &Headers,
        accounts: &mut Accounts,
        settings: &mut Settings,
    ) -> Found {
        let numbered = self.number_of(now, Key::Tuple(tuple), settings);
        let at = (numbered.flow.0 - FIRST) as usize;
        if numbered.is_new {
            self.flows[at] = Flow { establishment: Establishment::new(now), ..Flow::default() };
        }
        if numbered.is_new || !self.note_network(now, at, headers) {
            self.decide(now, at, headers, false, accounts, settings);
        }
        let is_first = self.flows[at].establishment.arrived(now, numbered.silence, qualifies);
        self.note_hosts(now, at, &tuple, settings);
        let Flow { id, account, .. } = self.flows[at];
        Found { flow: id, account, is_first }
    }

    /// The number of `key` in the table of flows, with the state kept under it.
    fn number_of(&mut self, now: Time, key: Key, settings: &mut Settings) -> Numbered {
        let numbered = self.table.number(now, key);
        let count = numbered.flow.index() + 1;
        if count > self.slots.len() {
            self.flows.resize(count - FIRST as usize, Flow::default());
            self.slots.resize_with(count, Slot::default);
        }
        if numbered.is_new {
            // State under this number is of another flow, or of long ago.
            let slot = &mut self.slots[numbered.flow.index()];
            (slot.marks, slot.labelled) = (None, Labelled::default());
            self.round_trips.forget(numbered.flow.index() - FIRST as usize);
            self.take_back(numbered.flow, settings);
            self.slots[numbered.flow.index()].claim = None;
        }
        numbered
    }

    /// The network that the rule makes one flow, for packets with these headers.
    fn network(&self, rule: u16, headers: &Headers) -> Option<Key> {
        let Grouping::Network(lengths) = self.more.get(usize::from(rule))?.treatment.flows else {
            return None;
        };
        Some(Key::Network(rule, lengths.network(inside(self.direction, headers))))
    }

    /// Notes a packet of the network that a flow belongs to. Returns false if another flow has the number of
    /// that network now.
    fn note_network(&mut self, now: Time, at: usize, headers: &Headers) -> bool {
        let Flow { id, rule, .. } = self.flows[at];
        let network = rule.and_then(|rule| self.network(rule, headers));
        network.is_none_or(|network| self.table.note(now, id, &network))
    }

    /// Gives the flow at this index of the table the numbers of its hosts, if the queue divides among hosts.
    /// Flows and networks without an answer share one host, so that forged addresses are one host and no
    /// more.
    fn note_hosts(&mut self, now: Time, at: usize, tuple: &FlowTuple, settings: &mut Settings) {
        if self.hosts.is_none() {
            return;
        }
        let id = self.flows[at].id;
        let given = self.slots[id.index()].given;
        let hosts = if self.has_hosts(now, id) {
            let ends = self.ends(id, tuple);
            let Some(numbers) = &mut self.hosts else { return };
            if numbers.note(now, ends, given.hosts) { given.hosts } else { numbers.pair(now, ends) }
        } else {
            HostPair::default()
        };
        if hosts != given.hosts {
            self.give(id, Given { hosts, ..given }, settings);
        }
    }

    /// The ends of a flow. An aggregate that a rule makes is a host of its own, unless the rule names one
    /// address.
    fn ends(&self, id: FlowId, tuple: &FlowTuple) -> Ends {
        let own = [tuple.source(), tuple.destination()];
        let (rule, network) = match self.table.key(id) {
            Some(Key::Tuple(_)) => return own.map(End::Address),
            Some(Key::Network(rule, network)) => (Some(usize::from(*rule)), network.address()),
            None => (id.index().checked_sub(1), None),
        };
        let mut addresses =
            rule.and_then(|rule| self.more.get(rule)).map_or([None; 2], |more| more.addresses);
        let inside = &mut addresses[self.direction as usize];
        *inside = inside.or(network);
        addresses.map(|address| address.map_or(End::Group(id), End::Address))
    }

    /// Numbers hosts if the queue of `config` divides among them, and stops if not.
    fn isolate(&mut self, config: &GatewayConfig) {
        let isolates = config.direction(self.direction).queue.params.isolate().is_some();
        self.hosts = match self.hosts.take() {
            Some(hosts) if isolates => Some(hosts),
            _ => isolates.then(|| HostNumbers::new(config.flow_idle)),
        };
    }

    /// Numbers the hosts of all flows if the queue of `config` needs that and the one before did not, or
    /// forgets them. Cost: O(flows) if numbering begins.
    pub fn set_isolation(&mut self, now: Time, config: &GatewayConfig, settings: &mut Settings) {
        let before = self.hosts.is_some();
        self.isolate(config);
        let given = Given { hosts: HostNumbers::NO_FLOW, ..self.slots[0].given };
        self.give(FlowId(0), given, settings);
        for at in 0..if before { 0 } else { self.flows.len() } {
            if let Some(Key::Tuple(tuple)) = self.table.key(FlowId(FIRST + at as u32)).copied() {
                self.note_hosts(now, at, &tuple, settings);
            }
        }
    }

    /// Whether the label of a packet of this size that arrived at `now` counts: whether it is within the
    /// limit of its rule, or of each network if the rule makes each network one flow.
    pub fn admits_label(&mut self, now: Time, id: FlowId, size: Bytes) -> bool {
        let (rule, all) = match self.table.key(id) {
            Some(Key::Network(rule, _)) => (Some(usize::from(*rule)), id),
            Some(Key::Tuple(_)) => {
                let rule = self.flows[(id.0 - FIRST) as usize].rule;
                (rule.map(usize::from), FlowId(rule.map_or(0, |rule| u32::from(rule) + 1)))
            }
            None => (id.index().checked_sub(1), id),
        };
        let limit = rule.and_then(|rule| self.more.get(rule)?.treatment.label_limit);
        let labelled = self.slots.get_mut(all.index()).map(|slot| &mut slot.labelled);
        limit.zip(labelled).is_none_or(|(rate, labelled)| labelled.admits(rate, now, size))
    }

    /// Decides the settings of the flow at this index of the table by the rules. `keeps`: it had a guarantee,
    /// and needs no trial for another one.
    fn decide(
        &mut self,
        now: Time,
        at: usize,
        headers: &Headers,
        keeps: bool,
        accounts: &mut Accounts,
        settings: &mut Settings,
    ) {
        let own = FlowId(FIRST + at as u32);
        let rule = self.rules.first(headers);
        let mut given = rule.and_then(|rule| self.treatments.get(rule)).copied().unwrap_or_default();
        let grouping =
            rule.and_then(|rule| self.more.get(rule)).map_or(Grouping::Each, |more| more.treatment.flows);
        // There are at most 1000 rules.
        let number = rule.map(|rule| rule as u16);
        let network = number.and_then(|rule| self.network(rule, headers));
        let id = match (grouping, rule, network) {
            (Grouping::One, Some(rule), _) => FlowId(rule as u32 + 1),
            (_, _, Some(network)) => {
                let Numbered { flow, is_new, .. } = self.number_of(now, network, settings);
                if is_new {
                    self.flows[(flow.0 - FIRST) as usize].establishment = Establishment::new(now);
                }
                flow
            }
            _ => own,
        };
        let more = rule.and_then(|rule| self.more.get(rule));
        let mut account = more.map_or(Accounts::unmatched(self.direction), |more| more.account);
        // An aggregate of a rule has no address of its own.
        if given.customer == CustomerId::OTHERS
            && grouping != Grouping::One
            && let Some(customer) = self.addresses.customer_of(inside(self.direction, headers))
            && let Some(name) = self.customer_names.get(customer.0 as usize)
        {
            given.customer = customer;
            account = accounts.of_customer(account, name, self.direction);
        }
        let before = self.flows[at];
        self.flows[at] = Flow { id, account, rule: number, dscp: headers.dscp, ..before };
        let slot = &mut self.slots[id.index()];
        if slot.marks.is_none()
            && let Some(more) = more
        {
            slot.marks = self.maker.make(now, id, &more.treatment, headers.protocol);
        }
        // The claim of an aggregate exists since its first flow.
        if id == own || slot.claim.is_none() {
            let holder = match grouping {
                Grouping::One => Holder::Rule,
                Grouping::Network(_) => Holder::Network,
                Grouping::Each => Holder::FlowOf(inside(self.direction, headers)),
            };
            let guarantee = more.map_or(Rate::ZERO, |more| more.treatment.guarantee);
            slot.claim = rule
                .filter(|_| guarantee > Rate::ZERO)
                .map(|rule| Box::new(Claim::new(now, rule, guarantee, holder)));
            if keeps && !slot.claim.as_mut().is_some_and(|claim| self.guarantees.admit(now, id, claim)) {
                self.guarantees.counts_mut().withdrawn += 1;
            }
        }
        if let Some(claim) = slot.claim.as_ref().filter(|claim| claim.is_held()) {
            given.guarantee = claim.rate();
        }
        // Hosts are set with each packet, and the round-trip time is measured.
        given.hosts = slot.given.hosts;
        given.measured_rtt = if id == own { self.round_trips.rtt(at) } else { Span::ZERO };
        self.give(id, given, settings);
        if id != own {
            self.slots[own.index()].claim = None;
            self.give(own, Given::default(), settings);
        }
    }

    /// Sends the link an update of each setting that differs.
    fn give(&mut self, id: FlowId, to: Given, settings: &mut Settings) {
        let Some(Slot { given, .. }) = self.slots.get_mut(id.index()) else { return };
        let link = self.direction as u32;
        let from = std::mem::replace(given, to);
        let mut update = |differs: bool, setting| {
            if differs {
                settings.push_back((link, id, setting));
            }
        };
        update(from.weight != to.weight, FlowSetting::Weight(to.weight));
        update(from.class != to.class, FlowSetting::Class(to.class));
        update(from.target != to.target, FlowSetting::Target(to.target));
        update(from.rtt_for_queue() != to.rtt_for_queue(), FlowSetting::Rtt(to.rtt_for_queue()));
        update(from.customer != to.customer, FlowSetting::Customer(to.customer));
        update(from.hosts != to.hosts, FlowSetting::Hosts(to.hosts));
        let is_guaranteed = from.guarantee != to.guarantee || to.guarantee > Rate::ZERO && from.rtt != to.rtt;
        update(is_guaranteed, FlowSetting::Guarantee(to.guarantee, to.rtt));
    }

    /// Decides anew on all flows, by the rules of `config`. Flows that have a guarantee keep it as far as the rules allow,
    /// the oldest guarantees first; trials and markers begin again. Cost: O(flows · rules).
    pub fn set_rules(
        &mut self,
        now: Time,
        config: &GatewayConfig,
        of_rules: &[u32],
        accounts: &mut Accounts,
        settings: &mut Settings,
    ) {
        let mut turns = self.take_rules(config, of_rules);
        turns.retain(|&(turn, id)| self.holder(turn, id).is_some());
        self.slots.iter_mut().for_each(|slot| *slot = Slot { given: slot.given, ..Slot::default() });
        let rules = (1..FIRST).map(FlowId);
        let networks = (FIRST..self.slots.len() as u32).map(FlowId);
        let networks: Vec<FlowId> = networks.filter(|id| self.is_network(*id)).collect();
        for id in rules.chain(networks) {
            self.give(id, Given::default(), settings);
        }
        let mut held: BTreeSet<FlowId> =
            turns.iter().map(|(_, id)| *id).filter(|id| self.is_network(*id)).collect();
        for at in turns.into_iter().filter_map(|(_, id)| id.0.checked_sub(FIRST)) {
            self.decide_anew(now, at as usize, true, accounts, settings);
        }
        for at in 0..self.flows.len() {
            let slot = &self.slots[FIRST as usize + at];
            if !slot.claim.as_ref().is_some_and(|claim| claim.is_held()) {
                // The first flow of a network keeps the guarantee for all.
                let keeps = held.remove(&self.flows[at].id);
                self.decide_anew(now, at, keeps, accounts, settings);
            }
        }
    }

    fn is_network(&self, id: FlowId) -> bool {
        matches!(self.table.key(id), Some(Key::Network(..)))
    }

    /// [`Self::decide`] for a known flow, by the headers of its first packet.
    fn decide_anew(
        &mut self,
        now: Time,
        at: usize,
        keeps: bool,
        accounts: &mut Accounts,
        settings: &mut Settings,
    ) {
        let Flow { dscp, .. } = self.flows[at];
        let Some(Key::Tuple(tuple)) = self.table.key(FlowId(FIRST + at as u32)).copied() else { return };
        let headers = Headers {
            protocol: tuple.protocol(),
            source: tuple.source(),
            destination: tuple.destination(),
            ports: tuple.ports(),
            dscp,
        };
        self.decide(now, at, &headers, keeps, accounts, settings);
    }

    /// The markers of a flow's packets, if it has any.
    pub fn marks(&mut self, flow: FlowId) -> Option<&mut FlowMarks> {
        self.slots.get_mut(flow.index())?.marks.as_deref_mut()
    }

    /// Handles an acknowledgement from the other direction: a segment acknowledged everything before `number`
    /// of the flow `tuple`. Returns the flow, if it has markers, and how many bytes are new.
    /// `opens_or_resets`: the segment does so, and acknowledges no data.
    pub fn acknowledged(
        &mut self,
        tuple: &FlowTuple,
        number: u32,
        opens_or_resets: bool,
    ) -> Option<(FlowId, u32)> {
        if !self.follows_acknowledgements {
            return None;
        }
        let at = (self.table.find(&Key::Tuple(*tuple))?.0 - FIRST) as usize;
        let flow = self.flows.get_mut(at)?;
        let slot = self.slots.get_mut(flow.id.index())?;
        if slot.marks.is_none() && slot.claim.is_none() {
            return None;
        }
        // Sequence numbers wrap: one that is behind by less than half of their range is old (RFC 9293 section
        // 3.4).
        let before = flow.acknowledged.unwrap_or(number);
        let new = number.wrapping_sub(before);
        let new = if new < 1 << 31 { new } else { 0 };
        flow.acknowledged = Some(before.wrapping_add(new));
        if let Some(claim) = slot.claim.as_mut().filter(|_| new > 0 && !opens_or_resets) {
            claim.acknowledge();
        }
        slot.marks.as_ref().map(|_| (flow.id, new))
    }

    /// The addresses and ports of a flow; none if it is an aggregate.
    #[must_use]
    pub fn tuple(&self, flow: FlowId) -> Option<FlowTuple> {
        let Key::Tuple(tuple) = self.table.key(flow)? else { return None };
        (self.number(tuple) == Some(flow)).then_some(*tuple)
    }

    /// The flow of these packets; none if none was seen lately, or they belong to an aggregate.
    #[must_use]
    pub fn number(&self, tuple: &FlowTuple) -> Option<FlowId> {
        let own = self.table.find(&Key::Tuple(*tuple))?;
        let flow = self.flows.get((own.0 - FIRST) as usize)?;
        (flow.id == own).then_some(own)
    }

    /// Flows that have numbers, silent ones included.
    #[must_use]
    pub fn count(&self) -> usize {
        self.table.len()
    }

    /// The guarantees of this direction's flows.
    #[must_use]
    pub const fn guarantees(&self) -> &Guarantees {
        &self.guarantees
    }
}

/// The inside address of packets with these headers.
const fn inside(direction: Direction, headers: &Headers) -> IpAddr {
    match direction {
        Direction::Up => headers.source,
        Direction::Down => headers.destination,
    }
}

#[cfg(test)]
mod tests;
