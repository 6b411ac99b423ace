//! Entitlements while nothing changes: the allocation among the classes of flows with a demand.

use std::collections::BTreeMap;

use apportion_core::fairness::{
    Claim, CustomerClaim, Exchange, Holding, Right, RightsTree, Stake, congestion_shares, fit_guarantees,
    hierarchical, max_min, ticket_shares,
};
use apportion_core::system::isolate::Isolate;
use apportion_core::system::{DisciplineKind, DisciplineParams};
use apportion_core::units::{Bytes, TicketRate, Weight};

use super::population::Class;
use crate::agreements::LinkRights;
use crate::model::{Link, LinkId, Scenario};

/// Bits per second of one member of each class, in the order of `classes`. `links` are those that can limit a
/// flow, by their number in the scenario, ascending; classes refer to them by index. `None` if the division
/// is undefined: some flows have tickets and others have none, or an allocation does not exist.
pub(super) fn shares(
    scenario: &Scenario,
    links: &[usize],
    weights: &[Weight],
    classes: &[(&Class, u32)],
) -> Option<Vec<f64>> {
    let rates: Vec<f64> = links.iter().map(|&link| scenario.links[link].rate.as_bit() as f64).collect();
    let mut queues = links.iter().map(|&link| &scenario.links[link].queue);
    let all = if queues.any(|queue| queue.frames() || queue.max_flow_rate().is_some()) {
        as_charged(scenario, links, weights, classes, &rates)?
    } else {
        divide(scenario, links, weights, classes, &rates)?
    };
    Some(
        all.into_iter()
            .zip(classes)
            .map(|(share, &(_, members))| share / f64::from(members.max(1)))
            .collect(),
    )
}

/// Bits per second of all members of each class, at these rates of links.
fn divide(
    scenario: &Scenario,
    links: &[usize],
    weights: &[Weight],
    classes: &[(&Class, u32)],
    rates: &[f64],
) -> Option<Vec<f64>> {
    let any = |has: fn(&Class) -> bool| classes.iter().any(|(class, _)| has(class));
    if scenario.has_agreements() {
        by_agreements(scenario, links, classes, rates)
    } else if any(|class| class.ack_tickets.is_some()) {
        by_tickets(scenario, rates, classes, |class| class.ack_tickets, |link| link.ack_tickets, true)
    } else if any(|class| class.tickets.is_some()) {
        by_tickets(scenario, rates, classes, |class| class.tickets, |link| link.tickets, false)
    } else if any(|class| class.customer > 0) {
        by_customers(rates, weights, classes)
    } else if links.iter().any(|&link| scenario.links[link].queue.isolate().is_some())
        && (weigh_alike(classes) || weights_divide_hosts(scenario, links, classes))
    {
        let isolate = |link: usize| scenario.links[links[link]].queue.isolate();
        by_hosts(rates, isolate, classes)
    } else {
        let mut claims: Vec<Claim> = classes.iter().map(|&(class, members)| claim(class, members)).collect();
        fit_guarantees(rates, &mut claims);
        max_min(rates, &claims).ok()
    }
}

/// Maximum of rounds in which [`as_charged`] may converge, the round after which it moves only half way, and
/// the relative change below which it has converged. Chosen: flows with equal charges take two rounds, small
/// packets beside large ones ten to thirty.
const PATIENCE: usize = 200;
const HASTE: usize = 20;
const EPSILON: f64 = 1e-12;

/// The division if queues charge packets more than their size, or pace each flow.
///
/// The divided bytes are counted in the unit, size or charge, in which a flow has the most. CAKE's bandwidth
/// is in bytes that it charges, and the rate of a link in bytes of packets. Their ratio depends on the shares
/// of flows, so it is found in rounds. None if it does not converge.
fn as_charged(
    scenario: &Scenario,
    links: &[usize],
    weights: &[Weight],
    classes: &[(&Class, u32)],
    rates: &[f64],
) -> Option<Vec<f64>> {
    let queue = |link: usize| &scenario.links[links[link]].queue;
    let charge = |class: &Class, link: usize| {
        let charged = queue(link).charge(class.packet, Bytes::ZERO).filter(|_| class.packet > Bytes::ZERO);
        charged.map_or(1.0, |charged| charged.get() as f64 / class.packet.get() as f64)
    };
    let costs: Vec<f64> = classes
        .iter()
        .map(|&(class, _)| class.links.iter().map(|&link| charge(class, link)).fold(1.0, f64::max))
        .collect();
    let counted = |(&(class, members), cost): (&(&Class, u32), &f64)| {
        let cap = |&link: &usize| queue(link).max_flow_rate().filter(|_| !class.is_mean_of_many);
        let caps = class.links.iter().filter_map(cap).map(|rate| rate.as_bit() as f64);
        let demand = class.demand.into_iter().chain(caps).reduce(f64::min).map(|demand| demand * cost);
        (Class { guarantee: class.guarantee * cost, demand, ..class.clone() }, members)
    };
    let counted: Vec<(Class, u32)> = classes.iter().zip(&costs).map(counted).collect();
    let counted: Vec<(&Class, u32)> = counted.iter().map(|(class, members)| (class, *members)).collect();
    let bandwidths: Vec<f64> = (0..links.len())
        .map(|link| queue(link).bandwidth().map_or(f64::INFINITY, |bandwidth| bandwidth.as_bit() as f64))
        .collect();
    // The value of a byte of packets, and of a charged byte, on each link.
    let mut worth = vec![[1.0; 2]; links.len()];
    for round in 0..PATIENCE {
        let capacity =
            |(link, worth): (usize, &[f64; 2])| (rates[link] * worth[0]).min(bandwidths[link] * worth[1]);
        let capacities: Vec<f64> = worth.iter().enumerate().map(capacity).collect();
        let shares = divide(scenario, links, weights, &counted, &capacities)?;
        let mut sums = vec![[0.0; 3]; links.len()];
        for ((&(class, _), cost), share) in classes.iter().zip(&costs).zip(&shares) {
            let own = share / cost;
            for &link in &class.links {
                let add = [*share, own, own * charge(class, link)];
                sums[link].iter_mut().zip(add).for_each(|(sum, add)| *sum += add);
            }
        }
        let mut is_settled = true;
        for (worth, [counted, own, charged]) in worth.iter_mut().zip(sums) {
            for (worth, of) in worth.iter_mut().zip([own, charged]) {
                let new = if of > 0.0 { counted / of } else { *worth };
                is_settled &= (new - *worth).abs() <= EPSILON * new;
                *worth = if round < HASTE { new } else { 0.5 * (new + *worth) };
            }
        }
        if is_settled {
            return Some(shares.into_iter().zip(&costs).map(|(share, cost)| share / cost).collect());
        }
    }
    None
}

/// Members of a class are equal, so they are one claim of their number times the size.
fn claim(class: &Class, members: u32) -> Claim {
    let members = f64::from(members);
    Claim {
        links: class.links.clone(),
        weight: class.weight * members,
        guarantee: class.guarantee * members,
        demand: class.demand.map(|demand| demand * members),
    }
}

/// The division by customers, then by their flows, with guarantees within the shares of customers.
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

/// The division by who pays whom, with guarantees left out. None if several divisions are in equilibrium.
fn by_agreements(
    scenario: &Scenario,
    links: &[usize],
    classes: &[(&Class, u32)],
    rates: &[f64],
) -> Option<Vec<f64>> {
    let stake = |&(class, members): &(&Class, u32)| Stake {
        leaves: Vec::new(),
        demand: claim(class, members).demand,
    };
    let mut stakes: Vec<Stake> = classes.iter().map(stake).collect();
    let mut trees = Vec::with_capacity(links.len());
    for (link, (&id, &capacity)) in links.iter().zip(rates).enumerate() {
        let crosses = |&at: &usize| classes[at].0.links.contains(&link);
        let crossing: Vec<usize> = (0..classes.len()).filter(crosses).collect();
        let flows: Vec<usize> = crossing.iter().map(|&at| classes[at].0.flow).collect();
        let LinkRights { vertices: mut rights, of_flows } = scenario.rights_of(LinkId(id as u32), &flows);
        for (&at, (_, vertex)) in crossing.iter().zip(of_flows) {
            let weight = claim(classes[at].0, classes[at].1).weight;
            stakes[at].leaves.push((link, rights.len()));
            rights.push(Right { parent: vertex.map(|vertex| vertex as usize), weight });
        }
        trees.push(RightsTree { capacity, rights });
    }
    congestion_shares(&trees, &stakes).ok()
}

/// Whether all flows have equal weights.
fn weigh_alike(classes: &[(&Class, u32)]) -> bool {
    classes.windows(2).all(|pair| pair[0].0.weight == pair[1].0.weight)
}

/// Whether declared weights divide the share of a host or a peer anywhere. Hosts have equal weights: if
/// weights differ only between hosts, or the queue ignores them, the division among hosts is not what they
/// ask for.
fn weights_divide_hosts(scenario: &Scenario, links: &[usize], classes: &[(&Class, u32)]) -> bool {
    let mut of_hosts = BTreeMap::new();
    classes.iter().any(|(class, _)| {
        let queues = class.links.iter().map(|&link| &scenario.links[links[link]].queue);
        let isolated = queues.filter(|queue| matches!(queue.kind, DisciplineKind::Isolated(_)));
        isolated.filter_map(DisciplineParams::isolate).any(|isolate| {
            let [source, destination] = class.hosts.map(Some);
            let key = match isolate {
                Isolate::Source => [source, None],
                Isolate::Destination => [None, destination],
                Isolate::Both => [source, destination],
            };
            *of_hosts.entry(key).or_insert(class.weight) != class.weight
        })
    })
}

/// The owner of a share of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    /// The source (0) or the destination (1) of flows, a node.
    Host(usize, u32),
    /// A class itself, if links do not divide among hosts.
    Class(usize),
}

/// The division by hosts, which have equal shares, and then by their flows and weights; with
/// [`Isolate::Both`] by the peers of hosts in between. `isolate` returns how a link divides among hosts. None
/// if a flow crosses links that do so in different ways, or flows of a peer cross different links.
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
    // Flows that share a part before their host divides it: those of a peer, or a class by itself.
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

/// The claims of the classes of a group.
fn of_classes(classes: &[(&Class, u32)], group: &[usize]) -> Vec<Claim> {
    group.iter().map(|&at| claim(classes[at].0, classes[at].1)).collect()
}

/// The division by the tickets of flows and links, which flow along the data or `backwards`.
fn by_tickets(
    scenario: &Scenario,
    rates: &[f64],
    classes: &[(&Class, u32)],
    of_class: impl Fn(&Class) -> Option<TicketRate>,
    of_link: impl Fn(&Link) -> Option<TicketRate>,
    backwards: bool,
) -> Option<Vec<f64>> {
    // All links: none is left out if flows have tickets.
    let exchange =
        |(link, &capacity): (&Link, &f64)| Exchange { capacity, issued: of_link(link).map(TicketRate::get) };
    let holding = |&(class, members): &(&Class, u32)| {
        let mut links = class.links.clone();
        if backwards {
            links.reverse();
        }
        let members = f64::from(members);
        // Each connection of short flows is issued the tickets of its flow: their mean number is unknown.
        let tickets = of_class(class).filter(|_| !class.is_mean_of_many)?.get() * members;
        Some(Holding { links, tickets, demand: class.demand.map(|demand| demand * members) })
    };
    let exchanges: Vec<Exchange> = scenario.links.iter().zip(rates).map(exchange).collect();
    let holdings: Option<Vec<Holding>> = classes.iter().map(holding).collect();
    ticket_shares(&exchanges, &holdings?).ok()
}
