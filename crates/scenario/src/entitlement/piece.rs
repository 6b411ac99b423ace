//! What is due while nothing changes: the allocation among the classes of flows that want something.

use std::collections::BTreeMap;

use apportion_core::fairness::{
    Claim, CustomerClaim, Exchange, Holding, fit_guarantees, hierarchical, max_min, ticket_shares,
};
use apportion_core::system::isolate::Isolate;
use apportion_core::units::{TicketRate, Weight};

use super::population::Class;
use crate::model::{Link, Scenario};

/// Bits per second of one member of each class, in the order of `classes`. `links` are those that can limit a
/// flow, by their number in the scenario, ascending; classes name them by their place there. `None` where nothing
/// says how flows divide: some have tickets and others have none, or an allocation does not exist.
pub(super) fn shares(
    scenario: &Scenario,
    links: &[usize],
    weights: &[Weight],
    classes: &[(&Class, u32)],
) -> Option<Vec<f64>> {
    let capacities: Vec<f64> = links.iter().map(|&link| scenario.links[link].rate.as_bit() as f64).collect();
    let any = |has: fn(&Class) -> bool| classes.iter().any(|(class, _)| has(class));
    let all = if any(|class| class.ack_tickets.is_some()) {
        by_tickets(scenario, classes, |class| class.ack_tickets, |link| link.ack_tickets, true)?
    } else if any(|class| class.tickets.is_some()) {
        by_tickets(scenario, classes, |class| class.tickets, |link| link.tickets, false)?
    } else if any(|class| class.customer > 0) {
        by_customers(&capacities, weights, classes)?
    } else if links.iter().any(|&link| scenario.links[link].queue.isolate().is_some()) && weigh_alike(classes)
    {
        let isolate = |link: usize| scenario.links[links[link]].queue.isolate();
        by_hosts(&capacities, isolate, classes)?
    } else {
        let mut claims: Vec<Claim> = classes.iter().map(|&(class, members)| claim(class, members)).collect();
        fit_guarantees(&capacities, &mut claims);
        max_min(&capacities, &claims).ok()?
    };
    Some(
        all.into_iter()
            .zip(classes)
            .map(|(share, &(_, members))| share / f64::from(members.max(1)))
            .collect(),
    )
}

/// Members of a class are alike, so together they are one claim of as many times the size.
fn claim(class: &Class, members: u32) -> Claim {
    let members = f64::from(members);
    Claim {
        links: class.links.clone(),
        weight: class.weight * members,
        guarantee: class.guarantee * members,
        demand: class.demand.map(|demand| demand * members),
    }
}

/// By customers, then by their flows, with guarantees in the parts of customers.
fn by_customers(capacities: &[f64], weights: &[Weight], classes: &[(&Class, u32)]) -> Option<Vec<f64>> {
    let mut claims: Vec<Claim> = classes.iter().map(|&(class, members)| claim(class, members)).collect();
    fit_guarantees(capacities, &mut claims);
    let of_customer = |(claim, &(class, _)): (Claim, &(&Class, u32))| CustomerClaim {
        links: claim.links,
        customer: class.customer,
        weight: claim.weight,
        guarantee: claim.guarantee,
        demand: claim.demand,
    };
    let claims: Vec<CustomerClaim> = claims.into_iter().zip(classes).map(of_customer).collect();
    let weights: Vec<f64> = weights.iter().copied().map(Weight::get).collect();
    hierarchical(capacities, &weights, &claims).ok()
}

/// Whether all flows weigh alike. Hosts do, so weights that are declared say of their division that it is not what is wanted.
fn weigh_alike(classes: &[(&Class, u32)]) -> bool {
    classes.windows(2).all(|pair| pair[0].0.weight == pair[1].0.weight)
}

/// Who has a part of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// The source (0) or the destination (1) of flows, a node.
    Host(usize, u32),
    /// A class itself, where links do not divide among hosts.
    Class(usize),
}

/// By hosts, which weigh alike, and then by their flows; with [`Isolate::Both`] by the peers of hosts in between. `isolate` says how a
/// link divides among hosts. None if a flow crosses links that do so in different ways, or
/// flows of a peer go over different links.
fn by_hosts(
    capacities: &[f64],
    isolate: impl Fn(usize) -> Option<Isolate>,
    classes: &[(&Class, u32)],
) -> Option<Vec<f64>> {
    let way = |class: &Class| {
        let mut all = class.links.iter().map(|&link| isolate(link));
        let first = all.next().flatten();
        all.all(|isolate| isolate == first).then_some(first)
    };
    let ways: Vec<Option<Isolate>> = classes.iter().map(|(class, _)| way(class)).collect::<Option<_>>()?;
    let mut of_pair: BTreeMap<[u32; 2], Vec<usize>> = BTreeMap::new();
    for (at, (class, _)) in classes.iter().enumerate().filter(|(at, _)| ways[*at] == Some(Isolate::Both)) {
        of_pair.entry(class.hosts).or_default().push(at);
    }
    let mut peers: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    for (end, host) in of_pair.keys().flat_map(|hosts| hosts.iter().copied().enumerate()) {
        *peers.entry((end, host)).or_default() += 1;
    }
    let owner = |at: usize| {
        let hosts = classes[at].0.hosts;
        match ways[at] {
            None => Owner::Class(at),
            Some(Isolate::Source) => Owner::Host(0, hosts[0]),
            Some(Isolate::Destination) => Owner::Host(1, hosts[1]),
            Some(Isolate::Both) => {
                let end = usize::from(peers[&(1, hosts[1])] > peers[&(0, hosts[0])]);
                Owner::Host(end, hosts[end])
            }
        }
    };
    // What shares a part before its host divides that among its flows: those of a peer, or a class by itself.
    let alone = (0..classes.len()).filter(|&at| ways[at] != Some(Isolate::Both)).map(|at| vec![at]);
    let groups: Vec<Vec<usize>> = of_pair.values().cloned().chain(alone).collect();
    let mut numbers: BTreeMap<Owner, usize> = BTreeMap::new();
    let (mut weights, mut claims) = (Vec::new(), Vec::with_capacity(groups.len()));
    for group in &groups {
        let owner = owner(group[0]);
        let mut of_group = of_classes(classes, group);
        let mut whole = of_group.pop()?;
        if of_group.iter().any(|claim| claim.links != whole.links) {
            return None;
        }
        for claim in of_group {
            whole.guarantee += claim.guarantee;
            whole.demand = whole.demand.zip(claim.demand).map(|(all, one)| all + one);
        }
        let customer = *numbers.entry(owner).or_insert(weights.len());
        if customer == weights.len() {
            weights.push(if matches!(owner, Owner::Class(_)) { whole.weight } else { 1.0 });
        }
        let weight = if ways[group[0]] == Some(Isolate::Both) { 1.0 } else { whole.weight };
        let Claim { links, guarantee, demand, .. } = whole;
        claims.push(CustomerClaim { links, customer, weight, guarantee, demand });
    }
    let mut all = vec![0.0; classes.len()];
    for (group, part) in groups.iter().zip(hierarchical(capacities, &weights, &claims).ok()?) {
        if let [alone] = group[..] {
            all[alone] = part;
            continue;
        }
        let within = of_classes(classes, group).into_iter().map(|claim| Claim { links: vec![0], ..claim });
        for (&at, share) in group.iter().zip(max_min(&[part], &within.collect::<Vec<_>>()).ok()?) {
            all[at] = share;
        }
    }
    Some(all)
}

/// What the classes of a group claim.
fn of_classes(classes: &[(&Class, u32)], group: &[usize]) -> Vec<Claim> {
    group.iter().map(|&at| claim(classes[at].0, classes[at].1)).collect()
}

/// By the tickets of flows and links, which flow along the data or `backwards`.
fn by_tickets(
    scenario: &Scenario,
    classes: &[(&Class, u32)],
    of_class: impl Fn(&Class) -> Option<TicketRate>,
    of_link: impl Fn(&Link) -> Option<TicketRate>,
    backwards: bool,
) -> Option<Vec<f64>> {
    let exchange = |link: &Link| Exchange {
        capacity: link.rate.as_bit() as f64,
        issued: of_link(link).map(TicketRate::get),
    };
    let holding = |&(class, members): &(&Class, u32)| {
        let mut links = class.links.clone();
        if backwards {
            links.reverse();
        }
        let members = f64::from(members);
        // Each connection of short flows is issued the tickets of its flow: how many there are on average is unknown.
        let tickets = of_class(class).filter(|_| !class.is_mean_of_many)?.get() * members;
        Some(Holding { links, tickets, demand: class.demand.map(|demand| demand * members) })
    };
    let exchanges: Vec<Exchange> = scenario.links.iter().map(exchange).collect();
    let holdings: Option<Vec<Holding>> = classes.iter().map(holding).collect();
    ticket_shares(&exchanges, &holdings?).ok()
}
