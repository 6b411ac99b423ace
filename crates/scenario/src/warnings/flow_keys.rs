//! Keys of flows that no queue on their paths uses.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::mark::MarkerParams;
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::packet::{FillTarget, FlowClass, LabelKind};
use apportion_core::param::{GoesBy, Heeds};
use apportion_core::system::DisciplineParams;
use apportion_core::system::isolate::Isolate;
use apportion_core::units::{Rate, Span, Weight};

use super::labels::named;
use crate::entitlement::ends;
use crate::model::{Flow, FlowSettings, Link, LinkId, Scenario, Setting};

/// A key of a flow or of a rule that a queue may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FlowKey {
    Weight,
    Guarantee,
    Class,
    Target,
    Rtt,
    Colours,
    Values,
}

/// The parameters of a flow, or of flows that match a rule.
pub(crate) struct Given<'a> {
    pub weight: Weight,
    pub guarantee: Rate,
    pub class: FlowClass,
    pub target: Option<FillTarget>,
    pub rtt: Option<Span>,
    pub mark: Option<&'a MarkerParams>,
}

impl FlowKey {
    /// All keys, in the order in which they are named.
    pub(crate) const ALL: [Self; 7] =
        [Self::Weight, Self::Guarantee, Self::Class, Self::Target, Self::Rtt, Self::Colours, Self::Values];

    /// The property of queues that use it.
    const fn does(self) -> &'static str {
        match self {
            Self::Weight => "shares bandwidth by weights, as \"drr\" does",
            Self::Guarantee => "keeps guarantees, as \"csfq\" does",
            Self::Class => "knows classes, as \"ramp\" does",
            Self::Target => "has a queue for each real-rate flow, as \"ramp\" does",
            Self::Rtt => "shares buffer space by round-trip times, as \"lqd\" does with thresholds = \"rtt\"",
            Self::Colours => "goes by colours, as \"rio\" does",
            Self::Values => "goes by values, as \"ppv\" does",
        }
    }

    /// Whether a queue with these parameters uses it, or may: an external one is unknown.
    pub(crate) fn may_count(self, queue: &DisciplineParams) -> bool {
        match self {
            Self::Weight => queue.may_heed(Heeds::Weight),
            Self::Guarantee => queue.may_heed(Heeds::Guarantee),
            Self::Class => queue.may_heed(Heeds::Class),
            Self::Target => queue.may_heed(Heeds::Target),
            Self::Rtt => queue.may_heed(Heeds::Rtt),
            Self::Colours => queue.is_custom() || queue.goes_by(GoesBy::Colours),
            Self::Values => queue.is_custom() || queue.label_required() == Some(LabelKind::Value),
        }
    }

    /// The name of the key, if `given` is not the default.
    pub(crate) fn name_in(self, given: &Given<'_>) -> Option<&'static str> {
        let (is_given, name) = match self {
            Self::Weight => (given.weight != Weight::ONE, "weight"),
            Self::Guarantee => (given.guarantee > Rate::ZERO, "guarantee"),
            Self::Class => (given.class == FlowClass::RealRate, "class"),
            Self::Target => match given.target {
                Some(FillTarget::Delay(_)) => (true, "target_delay"),
                target => (target.is_some(), "target"),
            },
            // The bucket of a guarantee is as deep as a round trip.
            Self::Rtt => (given.rtt.is_some() && given.guarantee == Rate::ZERO, "rtt"),
            Self::Colours => (matches!(given.mark, Some(MarkerParams::Tsw3cm(_))), "mark"),
            Self::Values => (matches!(given.mark, Some(MarkerParams::Value(_))), "mark"),
        };
        is_given.then_some(name)
    }

    /// The warning that the key `name` of `whom` and of `others` more has no effect, because no queue `place`
    /// uses it; `mend` is the remedy.
    pub(crate) fn unheeded(self, name: &str, whom: &str, others: usize, place: &str, mend: &str) -> String {
        unheeded(name, whom, others, &format!("{place} {}", self.does()), mend)
    }
}

/// The warning that `key` of `whom` and of `others` more has no effect, because no queue `does` what would
/// need it.
pub(crate) fn unheeded(key: &str, whom: &str, others: usize, does: &str, mend: &str) -> String {
    let others = and_of_more(others);
    format!(
        "`{key}` of {whom}{others} does not change what it gets: no queue {does}; write {mend}, or leave it out"
    )
}

/// Text for the ones that are not named.
fn and_of_more(others: usize) -> String {
    if others == 0 { String::new() } else { format!(" and of {others} more") }
}

impl Scenario {
    /// Parameters of flows, or from changes, that no queue on their paths uses, one line for each key.
    pub(super) fn unheeded(&self) -> Vec<String> {
        let are_alike = self.flows.windows(2).all(|pair| pair[0].weight == pair[1].weight);
        let changes = self.changes.iter().filter(|change| change.at < self.stop);
        let changed = changes.filter_map(|change| match change.to {
            Setting::FlowWeight(flow, _) => Some(((FlowKey::Weight, flow), "weight")),
            Setting::FlowGuarantee(flow, rate) if rate > Rate::ZERO => {
                Some(((FlowKey::Guarantee, flow), "guarantee"))
            }
            Setting::FlowClass(flow, FlowClass::RealRate) => Some(((FlowKey::Class, flow), "class")),
            _ => None,
        });
        let changed: BTreeMap<(FlowKey, usize), &str> = changed.collect();
        let name_in = |key: FlowKey, at: usize, flow: &Flow| {
            let says_nothing = key == FlowKey::Weight && are_alike;
            let own = key.name_in(&given(flow)).filter(|_| !says_nothing);
            own.or_else(|| changed.get(&(key, at)).copied())
        };
        let lines = FlowKey::ALL.into_iter().filter_map(|key| {
            let having = self.flows.iter().enumerate();
            let having = having.filter_map(|(at, flow)| Some((name_in(key, at, flow)?, flow)));
            let mut counts = self.memoized(|queue| key.may_count(queue));
            let mut idle = having.filter(|(_, flow)| !self.meets(flow, &mut counts));
            let (name, first) = idle.next()?;
            Some(key.unheeded(name, &named(first), idle.count(), "on its path", "such a queue"))
        });
        lines.collect()
    }

    /// Tickets of flows that reach no queue that uses them.
    pub(super) fn idle_tickets(&self) -> Option<String> {
        let mut reads =
            self.memoized(|queue| queue.is_custom() || queue.label_required() == Some(LabelKind::Tickets));
        let having = self.flows.iter().filter(|flow| flow.tickets.is_some() || flow.ack_tickets.is_some());
        let mut idle = having.filter(|flow| !self.meets(flow, &mut reads));
        let first = idle.next()?;
        let key = if first.tickets.is_some() { "tickets" } else { "ack_tickets" };
        Some(unheeded(
            key,
            &named(first),
            idle.count(),
            "on its path goes by tickets, as \"tred\" does",
            "such a queue",
        ))
    }

    /// Weights of customers whose flows reach no queue that divides among customers.
    pub(super) fn idle_customers(&self) -> Option<String> {
        let mut divides = self.memoized(|queue| queue.has_classes() || queue.may_heed(Heeds::Customer));
        // Several customers with one weight expect no difference.
        let alike = self.customers.len() > 1
            && self.customers.windows(2).all(|pair| pair[0].weight == pair[1].weight);
        let mut idle = self.customers.iter().filter(|customer| {
            let is_own = |flow: &&Flow| flow.customer.as_deref() == Some(customer.name.as_str());
            let mut flows = self.flows.iter().filter(is_own).peekable();
            !alike
                && customer.weight != Weight::ONE
                && flows.peek().is_some()
                && !flows.any(|flow| self.meets(flow, &mut divides))
        });
        let first = format!("customer `{}`", idle.next()?.name);
        let does = "on the paths of its flows shares bandwidth among customers, as \"hcsfq\" does";
        Some(unheeded("weight", &first, idle.count(), does, "such a queue"))
    }

    /// Weights that no queue on the path of a flow compares with different ones: wherever weights count,
    /// those over the link, or of its host, are equal.
    pub(super) fn weights_alone(&self) -> Option<String> {
        let changes_weights = |setting: &Setting| matches!(setting, Setting::FlowWeight(..));
        let weighs = |flow: &Flow| flow.weight != Weight::ONE;
        if !self.flows.iter().any(weighs) || self.changes.iter().any(|change| changes_weights(&change.to)) {
            return None;
        }
        let mut counts = self.memoized(|queue| queue.may_heed(Heeds::Weight));
        let mut unlike: BTreeMap<LinkId, Option<BTreeSet<Group>>> = BTreeMap::new();
        let mut is_weighed = |flow: &Flow, id: LinkId| {
            let unlike = unlike.entry(id).or_insert_with(|| self.unlike(id)).as_ref();
            unlike.is_none_or(|unlike| unlike.contains(&self.group_of(&self.links[id.index()].queue, flow)))
        };
        let mut over = |flow: &Flow, way: &[LinkId]| -> Vec<LinkId> {
            let links = way.iter().flat_map(|hop| self.choices(flow, hop));
            links.copied().filter(|id| counts(*id)).collect()
        };
        let mut alone = self.flows.iter().filter(|flow| {
            let there = over(flow, &flow.path);
            let may_be_alone = weighs(flow) && !there.is_empty() && over(flow, &flow.back).is_empty();
            may_be_alone && !there.into_iter().any(|id| is_weighed(flow, id))
        });
        // If all are equal everywhere, that is intended.
        let are_alike = self.flows.windows(2).all(|pair| pair[0].weight == pair[1].weight);
        let first = alone.next().filter(|_| !are_alike)?;
        Some(format!(
            "`weight` of {}{} does not change what it gets: wherever weights count on its path, the flows that it shares a host with, \
             or the link, weigh alike; leave it out",
            named(first),
            and_of_more(alone.count())
        ))
    }

    /// The groups of flows with different weights, among which a link divides; none if that is unknown.
    fn unlike(&self, id: LinkId) -> Option<BTreeSet<Group>> {
        let link = &self.links[id.index()];
        let is_changed = self.queues_of(id, link).nth(1).is_some();
        // Another router reads the labels of this one.
        if is_changed || link.queue.is_custom() || link.queue.label_written().is_some() {
            return None;
        }
        let mut weights: BTreeMap<Group, Weight> = BTreeMap::new();
        let mut unlike = BTreeSet::new();
        for flow in &self.flows {
            let [there, back] = [&flow.path, &flow.back].map(|way| self.may_cross(flow, way, id));
            // The hosts of acknowledgements are swapped.
            if back && link.queue.isolate().is_some() {
                return None;
            }
            let group = self.group_of(&link.queue, flow);
            if (there || back) && *weights.entry(group).or_insert(flow.weight) != flow.weight {
                unlike.insert(group);
            }
        }
        Some(unlike)
    }

    /// The flows whose weights are compared with that of a flow.
    fn group_of(&self, queue: &DisciplineParams, flow: &Flow) -> Group {
        let [source, destination] = ends(self, flow).map(Some);
        match queue.isolate() {
            None => [None; 2],
            Some(Isolate::Source) => [source, None],
            Some(Isolate::Destination) => [None, destination],
            Some(Isolate::Both) => [source, destination],
        }
    }

    /// Tickets of a link without flows with tickets, and settings of its exchange, other than `default`,
    /// without tickets.
    pub(super) fn idle_exchange(&self, id: LinkId, link: &Link, default: &ExchangeParams) -> Option<String> {
        let is_set = *link.exchange != *default;
        let other = link.other_way.map(|other| &self.links[other.index()]);
        let is_issued = |link: &Link| link.tickets.is_some() || link.ack_tickets.is_some();
        if !is_issued(link)
            && is_set
            && !other.is_some_and(is_issued)
            && link.other_way.is_none_or(|other| id < other)
        {
            return Some(format!(
                "`exchange` of link `{}` does nothing: the link is issued no tickets to exchange for; write for example tickets = 100, or \
                 leave it out",
                link.name
            ));
        }
        let key = match (link.tickets, link.ack_tickets) {
            (Some(_), _) => "tickets",
            (_, Some(_)) => "ack_tickets",
            _ => return None,
        };
        let has = |flow: &&Flow| flow.tickets.is_some() || flow.ack_tickets.is_some();
        let crosses =
            |flow: &Flow| [&flow.path, &flow.back].into_iter().any(|way| self.may_cross(flow, way, id));
        let is_idle = !self.flows.iter().filter(has).any(crosses);
        is_idle.then(|| {
            format!(
                "`{key}` of link `{}` does nothing: no flow over it has tickets; write for example tickets = 100 for flows, or leave it out",
                link.name
            )
        })
    }
}

/// The source and the destination of flows among which weights count, if a queue divides among these first.
type Group = [Option<u32>; 2];

/// The parameters of a flow, as queues see them.
fn given(flow: &Flow) -> Given<'_> {
    let FlowSettings { weight, guarantee, class, target, rtt, ref mark, .. } = *flow.settings;
    Given { weight, guarantee, class, target, rtt, mark: mark.as_deref() }
}
