//! Present demands, by classes of equal flows, and the links that can limit them.

use std::collections::BTreeMap;

use apportion_core::system::DisciplineParams;
use apportion_core::units::{Bytes, TicketRate, Time};

use super::Wants;
use super::demand::{mean_demand, mean_packet, peak};
use super::due::Stay;
use crate::model::{Flow, LinkId, Scenario, Setting, Source};

/// The common properties of flows with equal entitlements.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// One of its flows: with agreements all of them cross the same links.
    pub(super) flow: usize,
    /// The links that it crosses, in order.
    pub(super) links: Vec<usize>,
    pub(super) customer: usize,
    /// The nodes at its ends, if links divide among hosts; else the same for all.
    pub(super) hosts: [u32; 2],
    /// The mean size of its packets, if queues charge more than that; else zero for all.
    pub(super) packet: Bytes,
    pub(super) weight: f64,
    /// Guarantee in bit/s.
    pub(super) guarantee: f64,
    pub(super) tickets: Option<TicketRate>,
    pub(super) ack_tickets: Option<TicketRate>,
    /// Demand in bit/s; none: infinite.
    pub(super) demand: Option<f64>,
    /// Whether it is an unknown number of concurrent connections, with this demand on average.
    pub(super) is_mean_of_many: bool,
}

/// The key of a class: the indices of its links and customer, and the bits of numbers.
type Key = (usize, usize, [u32; 2], Bytes, [u64; 2], [Option<u64>; 3], bool);

/// The flows that are present.
pub(super) struct Population {
    /// Whether the hosts of flows matter.
    by_hosts: bool,
    /// Whether packet sizes matter.
    by_size: bool,
    /// The number of each flow's path among the different ones.
    paths: Vec<usize>,
    links_of_path: Vec<Vec<usize>>,
    keys: BTreeMap<Key, usize>,
    pub(super) classes: Vec<Class>,
    /// Number of members by class.
    members: Vec<u32>,
    /// Classes with members.
    active: std::collections::BTreeSet<usize>,
    /// The demand of each flow, its class, and since when.
    wants: Vec<Wants>,
    now_in: Vec<Option<(usize, u32, Time)>>,
}

impl Population {
    /// No demands yet. `place` maps a link of the scenario to its index among those that can limit a flow.
    pub(super) fn new(scenario: &Scenario, place: &[Option<usize>]) -> Self {
        // By agreements, rights follow all links of a path, else only those that can limit a flow count.
        let whole = scenario.has_agreements();
        let mut numbers: BTreeMap<(Vec<usize>, &[LinkId]), usize> = BTreeMap::new();
        let mut paths = Vec::with_capacity(scenario.flows.len());
        let mut links_of_path: Vec<Vec<usize>> = Vec::new();
        for flow in &scenario.flows {
            let links: Vec<usize> = flow.path.iter().filter_map(|id| place[id.index()]).collect();
            let next = links_of_path.len();
            let all: &[LinkId] = if whole { &flow.path } else { &[] };
            let number = *numbers.entry((links, all)).or_insert_with_key(|(links, _)| {
                links_of_path.push(links.clone());
                next
            });
            paths.push(number);
        }
        let flows = scenario.flows.len();
        Self {
            by_hosts: queues(scenario).any(|(_, queue)| queue.isolate().is_some()),
            by_size: queues(scenario).any(|(_, queue)| queue.frames()),
            paths,
            links_of_path,
            keys: BTreeMap::new(),
            classes: Vec::new(),
            members: Vec::new(),
            active: std::collections::BTreeSet::new(),
            wants: vec![Wants::Nothing; flows],
            now_in: vec![None; flows],
        }
    }

    /// Sets the demand of a flow from `now` on. Returns whether that moves the flow, and the stay that ends.
    pub(super) fn want(
        &mut self,
        scenario: &Scenario,
        flow: usize,
        wants: Wants,
        now: Time,
    ) -> (bool, Option<Stay>) {
        self.wants[flow] = wants;
        let next = self.class_of(scenario, flow);
        let before = self.now_in[flow].map(|(class, members, _)| (class, members));
        if before == next {
            return (false, None);
        }
        let ended = self.leave(flow, now);
        self.now_in[flow] = next.map(|(class, members)| (class, members, now));
        if let Some((class, members)) = next {
            self.members[class] += members;
            self.active.insert(class);
        }
        (true, ended)
    }

    /// Reconsiders the class of a flow after a change of the scenario.
    pub(super) fn reconsider(&mut self, scenario: &Scenario, flow: usize, now: Time) -> (bool, Option<Stay>) {
        self.want(scenario, flow, self.wants[flow], now)
    }

    /// Takes a flow out of its class. Returns the stay that ends; none if it had no length.
    pub(super) fn leave(&mut self, flow: usize, now: Time) -> Option<Stay> {
        let (class, members, from) = self.now_in[flow].take()?;
        self.members[class] -= members;
        if self.members[class] == 0 {
            self.active.remove(&class);
        }
        (from < now).then_some(Stay { from, to: now, class, members })
    }

    /// The classes with members, their numbers and the numbers of members.
    pub(super) fn active(&self) -> impl Iterator<Item = (usize, &Class, u32)> {
        self.active.iter().map(|&class| (class, &self.classes[class], self.members[class]))
    }

    fn class_of(&mut self, scenario: &Scenario, at: usize) -> Option<(usize, u32)> {
        let flow: &Flow = &scenario.flows[at];
        let (demand, members) = match self.wants[at] {
            Wants::Nothing => return None,
            Wants::Everything(members) => (None, members),
            Wants::Mean => (mean_demand(flow), 1),
            Wants::Bursts(on) => (peak(&flow.source).map(|peak| peak * f64::from(on)), 1),
            Wants::Rate(rate) => (Some(rate.as_bit() as f64), 1),
        };
        if members == 0 {
            return None;
        }
        let class = Class {
            flow: at,
            links: Vec::new(),
            customer: scenario.customer_of(flow).0 as usize,
            hosts: if self.by_hosts { ends(scenario, flow) } else { [0; 2] },
            packet: if self.by_size { mean_packet(flow) } else { Bytes::ZERO },
            weight: flow.weight.get(),
            guarantee: flow.guarantee.as_bit() as f64,
            tickets: flow.tickets,
            ack_tickets: flow.ack_tickets,
            demand,
            is_mean_of_many: matches!(
                (&flow.source, self.wants[at]),
                (Source::ShortFlows { .. }, Wants::Mean)
            ),
        };
        let bits = |tickets: Option<TicketRate>| tickets.map(|tickets| tickets.get().to_bits());
        let key: Key = (
            self.paths[at],
            class.customer,
            class.hosts,
            class.packet,
            [class.weight.to_bits(), class.guarantee.to_bits()],
            [class.demand.map(f64::to_bits), bits(class.tickets), bits(class.ack_tickets)],
            class.is_mean_of_many,
        );
        let next = self.classes.len();
        let number = *self.keys.entry(key).or_insert(next);
        if number == next {
            self.classes.push(Class { links: self.links_of_path[self.paths[at]].clone(), ..class });
            self.members.push(0);
        }
        Some((number, members))
    }
}

/// The queues of all links, including those of changes.
fn queues(scenario: &Scenario) -> impl Iterator<Item = (usize, &DisciplineParams)> {
    let changed = scenario.changes.iter().filter_map(|change| match &change.to {
        Setting::LinkQueue(id, queue) => Some((id.index(), queue.as_ref())),
        _ => None,
    });
    scenario.links.iter().map(|link| &link.queue).enumerate().chain(changed)
}

/// The nodes at the ends of a flow's packets.
pub(crate) fn ends(scenario: &Scenario, flow: &Flow) -> [u32; 2] {
    let link = |id: Option<&LinkId>| id.map(|id| &scenario.links[id.index()]);
    [
        link(flow.path.first()).map_or(0, |link| link.from.0),
        link(flow.path.last()).map_or(0, |link| link.to.0),
    ]
}

/// The links that can limit a flow, by number, ascending. A link is left out if it can carry everything that
/// the narrower links of its flows let through at any time, unless its queue limits flows by itself.
///
/// Most access links are left out. Without them flows that differ in nothing else are equal. Links are
/// checked from the fastest on, and one is left out only because of links that are still in, so the remaining
/// links imply those left out.
pub(super) fn limiting_links(scenario: &Scenario) -> Vec<usize> {
    let (mut least, mut most): (Vec<u64>, Vec<u64>) =
        scenario.links.iter().map(|link| (link.rate.as_bit(), link.rate.as_bit())).unzip();
    for change in &scenario.changes {
        if let Setting::LinkRate(id, rate) = change.to {
            least[id.index()] = least[id.index()].min(rate.as_bit());
            most[id.index()] = most[id.index()].max(rate.as_bit());
        }
    }
    let mut crossing: Vec<Vec<usize>> = vec![Vec::new(); scenario.links.len()];
    for (flow, it) in scenario.flows.iter().enumerate() {
        it.path.iter().for_each(|id| crossing[id.index()].push(flow));
    }
    let mut kept: Vec<bool> = crossing.iter().map(|flows| !flows.is_empty()).collect();
    let mut limits = vec![false; kept.len()];
    for (link, queue) in queues(scenario) {
        limits[link] |= queue.frames() || queue.max_flow_rate().is_some();
    }
    // By agreements two links of one rate may weigh flows differently.
    let only_slower = scenario.has_agreements();
    let mut widest: Vec<usize> = (0..kept.len()).filter(|&link| kept[link]).collect();
    widest.sort_by_key(|&link| std::cmp::Reverse(least[link]));
    for link in widest {
        // Everything that reaches it comes through these.
        let narrow = |&flow: &usize| {
            let others = scenario.flows[flow].path.iter().map(|id| id.index());
            others.filter(|&other| other != link && kept[other]).min_by_key(|&other| most[other])
        };
        let through: Option<std::collections::BTreeSet<usize>> = crossing[link].iter().map(narrow).collect();
        let load = through.map(|through| through.iter().map(|&other| u128::from(most[other])).sum::<u128>());
        let fits = |load: u128| load + u128::from(only_slower) <= u128::from(least[link]);
        kept[link] = limits[link] || !load.is_some_and(fits);
    }
    (0..kept.len()).filter(|&link| kept[link]).collect()
}
