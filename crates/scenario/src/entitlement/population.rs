//! Who wants what at present, by classes of flows that are alike, and which links can limit them.

use std::collections::BTreeMap;

use apportion_core::system::DisciplineParams;
use apportion_core::units::{Bytes, TicketRate, Time};

use super::Wants;
use super::demand::{mean_demand, mean_packet, peak};
use super::due::Stay;
use crate::model::{Flow, LinkId, Scenario, Setting, Source};

/// What flows have in common that are due the same.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// That it crosses, in order.
    pub(super) links: Vec<usize>,
    pub(super) customer: usize,
    /// The nodes at its ends, where links divide among hosts; else the same for all.
    pub(super) hosts: [u32; 2],
    /// The mean size of its packets, where queues charge them more than that; else zero for all.
    pub(super) packet: Bytes,
    pub(super) weight: f64,
    /// Bit/s.
    pub(super) guarantee: f64,
    pub(super) tickets: Option<TicketRate>,
    pub(super) ack_tickets: Option<TicketRate>,
    /// Bit/s; without one, as much as there is.
    pub(super) demand: Option<f64>,
    /// Whether it is an unknown number of connections at a time, which want this on average.
    pub(super) is_mean_of_many: bool,
}

/// What distinguishes classes: the place of their links and customer, and the bits of numbers.
type Key = (usize, usize, [u32; 2], Bytes, [u64; 2], [Option<u64>; 3], bool);

/// Who is there.
pub(super) struct Population {
    /// Whether it matters between which hosts flows go.
    by_hosts: bool,
    /// Whether it matters how large packets are.
    by_size: bool,
    /// By flow: the number of its path among those that differ.
    paths: Vec<usize>,
    links_of_path: Vec<Vec<usize>>,
    keys: BTreeMap<Key, usize>,
    pub(super) classes: Vec<Class>,
    /// By class.
    members: Vec<u32>,
    /// Classes with members.
    active: std::collections::BTreeSet<usize>,
    /// By flow: what it wants, and where it is in, since when.
    wants: Vec<Wants>,
    now_in: Vec<Option<(usize, u32, Time)>>,
}

impl Population {
    /// No claims yet. `place` gives the place of a link of the scenario among those that can limit a flow.
    pub(super) fn new(scenario: &Scenario, place: &[Option<usize>]) -> Self {
        let mut numbers: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
        let mut paths = Vec::with_capacity(scenario.flows.len());
        let mut links_of_path: Vec<Vec<usize>> = Vec::new();
        for flow in &scenario.flows {
            let links: Vec<usize> = flow.path.iter().filter_map(|id| place[id.index()]).collect();
            let next = links_of_path.len();
            let number = *numbers.entry(links).or_insert_with_key(|links| {
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

    /// From `now` on a flow wants this. Returns whether that moves it, and the stay that it ends.
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

    /// After a change of the scenario that touches this flow.
    pub(super) fn reconsider(&mut self, scenario: &Scenario, flow: usize, now: Time) -> (bool, Option<Stay>) {
        self.want(scenario, flow, self.wants[flow], now)
    }

    /// A flow leaves its class: the stay that ends; none if it lasted no time.
    pub(super) fn leave(&mut self, flow: usize, now: Time) -> Option<Stay> {
        let (class, members, from) = self.now_in[flow].take()?;
        self.members[class] -= members;
        if self.members[class] == 0 {
            self.active.remove(&class);
        }
        (from < now).then_some(Stay { from, to: now, class, members })
    }

    /// The classes that have members, with their number and how many these are.
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

/// The queues of all links, with those that they are given later.
fn queues(scenario: &Scenario) -> impl Iterator<Item = (usize, &DisciplineParams)> {
    let changed = scenario.changes.iter().filter_map(|change| match &change.to {
        Setting::LinkQueue(id, queue) => Some((id.index(), queue.as_ref())),
        _ => None,
    });
    scenario.links.iter().map(|link| &link.queue).enumerate().chain(changed)
}

/// The nodes where packets of a flow come from and where they go.
pub(crate) fn ends(scenario: &Scenario, flow: &Flow) -> [u32; 2] {
    let link = |id: Option<&LinkId>| id.map(|id| &scenario.links[id.index()]);
    [
        link(flow.path.first()).map_or(0, |link| link.from.0),
        link(flow.path.last()).map_or(0, |link| link.to.0),
    ]
}

/// The links that can limit a flow, by number, ascending: not those that carry everything which the narrower links of
/// their flows let through at any time, unless their queue limits flows by itself.
///
/// Access links are such. Without them flows that differ in nothing else are alike. Links are tried from the widest
/// on, and one is left out only for links that are still there, so what remains implies what was left out.
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
    let mut widest: Vec<usize> = (0..kept.len()).filter(|&link| kept[link]).collect();
    widest.sort_by_key(|&link| std::cmp::Reverse(least[link]));
    for link in widest {
        // What reaches it comes through these.
        let narrow = |&flow: &usize| {
            let others = scenario.flows[flow].path.iter().map(|id| id.index());
            others.filter(|&other| other != link && kept[other]).min_by_key(|&other| most[other])
        };
        let through: Option<std::collections::BTreeSet<usize>> = crossing[link].iter().map(narrow).collect();
        let load = through.map(|through| through.iter().map(|&other| u128::from(most[other])).sum::<u128>());
        kept[link] = limits[link] || load.is_none_or(|load| load > u128::from(least[link]));
    }
    (0..kept.len()).filter(|&link| kept[link]).collect()
}
