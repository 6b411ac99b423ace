//! What is due while nothing changes: the allocation among the classes of flows that want something.

use apportion_core::fairness::{
    Claim, CustomerClaim, Exchange, Holding, fit_guarantees, hierarchical, max_min, ticket_shares,
};
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
