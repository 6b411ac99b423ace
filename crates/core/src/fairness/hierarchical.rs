//! Hierarchical max-min fairness: a link is divided among customers, and the part of each among its flows,
//! both by weighted max-min.
//!
//! The two levels of a hierarchical link sharing structure, as in Bennett, Zhang, "Hierarchical packet fair
//! queueing algorithms", SIGCOMM 1996, in the fluid limit. Customer n of weight W_n, whose flows want D_n
//! together, has min(D_n, W_n s) with one s that fills the link; flow i of it, which wants d_i, has min(d_i,
//! w_i s_n) with one s_n for the customer.
//!
//! Only for networks with one bottleneck. Of several there is no single division: a customer may be divided
//! at one link and its flows be held back at others, and what a customer is then due depends on which of its
//! flows is counted where. Links that are no bottleneck do not matter, but what a flow wants is at most
//! what the narrowest link of its path carries.
//!
//! Cost: O(path entries + flows log flows) for each link that could be the bottleneck, at most
//! [`CANDIDATES`].

use alloc::vec;
use alloc::vec::Vec;

use super::infeasible::{Infeasible, is_amount};
use super::max_min::{Claim, max_min};

/// Links that are tried as the bottleneck, the most overloaded first. Chosen: a network where none of these
/// is the only bottleneck has several.
pub const CANDIDATES: usize = 16;

/// What a flow of a customer asks of a network. Amounts are in the unit of the capacities.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomerClaim {
    /// The links it crosses, by number, each once.
    pub links: Vec<usize>,
    /// Its customer, by number.
    pub customer: usize,
    /// Its weight among the flows of its customer, not negative.
    pub weight: f64,
    /// All that it wants; none: as much as there is.
    pub demand: Option<f64>,
}

/// The hierarchical max-min allocation: customers divide the bottleneck by `weights`, and their flows divide
/// what each has.
///
/// # Errors
/// When a claim makes no sense, or when there are several bottlenecks.
pub fn hierarchical(
    capacities: &[f64],
    weights: &[f64],
    claims: &[CustomerClaim],
) -> Result<Vec<f64>, Infeasible> {
    let wants = wants(capacities, weights, claims)?;
    let load = load(capacities, claims, &wants);
    let over = |link: &usize| load[*link] > capacities[*link] * (1.0 + ROUNDING);
    let mut bottlenecks: Vec<usize> = (0..capacities.len()).filter(over).collect();
    if bottlenecks.is_empty() {
        return Ok(wants);
    }
    let excess = |link: usize| load[link] / capacities[link].max(f64::MIN_POSITIVE);
    bottlenecks.sort_by(|&a, &b| excess(b).total_cmp(&excess(a)));
    for &link in bottlenecks.iter().take(CANDIDATES) {
        let shares = divide(link, capacities[link], weights, claims, &wants)?;
        let load = self::load(capacities, claims, &shares);
        if load.iter().zip(capacities).all(|(&load, &capacity)| load <= capacity * (1.0 + ROUNDING)) {
            return Ok(shares);
        }
    }
    Err(Infeasible::SeveralBottlenecks)
}

/// By how much sums of shares may exceed a capacity.
const ROUNDING: f64 = 1e-9;

/// What each flow would have if it were alone; nothing where a weight is zero.
fn wants(capacities: &[f64], weights: &[f64], claims: &[CustomerClaim]) -> Result<Vec<f64>, Infeasible> {
    let bad = |x: f64| !is_amount(x);
    if let Some(link) = capacities.iter().position(|&capacity| bad(capacity)) {
        return Err(Infeasible::BadCapacity { link });
    }
    let want = |(flow, claim): (usize, &CustomerClaim)| {
        let of_customer = *weights.get(claim.customer).ok_or(Infeasible::UnknownCustomer { flow })?;
        if bad(claim.weight) || bad(of_customer) || claim.demand.is_some_and(bad) {
            return Err(Infeasible::BadNumber { flow });
        }
        let mut want = claim.demand.unwrap_or(f64::INFINITY);
        for &link in &claim.links {
            want = want.min(*capacities.get(link).ok_or(Infeasible::UnknownLink { flow, link })?);
        }
        let want = if claim.weight > 0.0 && of_customer > 0.0 { want } else { 0.0 };
        if want.is_finite() { Ok(want) } else { Err(Infeasible::Unbounded { flow }) }
    };
    claims.iter().enumerate().map(want).collect()
}

/// What links carry if flows have `shares`.
fn load(capacities: &[f64], claims: &[CustomerClaim], shares: &[f64]) -> Vec<f64> {
    let mut load = vec![0.0; capacities.len()];
    for (claim, share) in claims.iter().zip(shares) {
        claim.links.iter().for_each(|&link| load[link] += share);
    }
    load
}

/// The shares where `bottleneck` is divided and no other link is a bottleneck.
fn divide(
    bottleneck: usize,
    capacity: f64,
    weights: &[f64],
    claims: &[CustomerClaim],
    wants: &[f64],
) -> Result<Vec<f64>, Infeasible> {
    let claim = |weight: f64, want: f64| Claim { links: vec![0], weight, guarantee: 0.0, demand: Some(want) };
    let mut flows: Vec<Vec<usize>> = vec![Vec::new(); weights.len()];
    for (flow, claim) in claims.iter().enumerate().filter(|(_, claim)| claim.links.contains(&bottleneck)) {
        flows[claim.customer].push(flow);
    }
    let of_customer =
        |(flows, &weight): (&Vec<usize>, &f64)| claim(weight, flows.iter().map(|&flow| wants[flow]).sum());
    let customers: Vec<Claim> = flows.iter().zip(weights).map(of_customer).collect();
    let mut shares = wants.to_vec();
    for (flows, part) in flows.iter().zip(max_min(&[capacity], &customers)?) {
        let of_flow = |&flow: &usize| claim(claims[flow].weight, wants[flow]);
        let members: Vec<Claim> = flows.iter().map(of_flow).collect();
        for (&flow, share) in flows.iter().zip(max_min(&[part], &members)?) {
            shares[flow] = share;
        }
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_reference as reference;
    use proptest::prelude::*;

    fn claim(links: &[usize], customer: usize, weight: f64, demand: Option<f64>) -> CustomerClaim {
        CustomerClaim { links: links.to_vec(), customer, weight, demand }
    }

    /// Greedy flows of weight 1 over link 0, as many of each customer as said.
    fn greedy(flows: &[usize]) -> Vec<CustomerClaim> {
        let of = |(customer, &flows): (usize, &usize)| vec![claim(&[0], customer, 1.0, None); flows];
        flows.iter().enumerate().flat_map(of).collect()
    }

    #[test]
    fn customers_divide_the_link_and_flows_their_customer() {
        // 30 by 1:2:3 are 5, 10, 15; among 1, 4 and 10 flows: 5, 2.5, 1.5.
        let shares = hierarchical(&[30.0], &[1.0, 2.0, 3.0], &greedy(&[1, 4, 10])).unwrap();
        assert_eq!((shares[0], shares[1], shares[5]), (5.0, 2.5, 1.5));
        // Ten times the flows: still 5 for the customer.
        let shares = hierarchical(&[30.0], &[1.0, 2.0, 3.0], &greedy(&[10, 4, 10])).unwrap();
        assert_eq!((shares[0], shares[10], shares[14]), (0.5, 2.5, 1.5));
    }

    #[test]
    fn what_a_customer_or_a_flow_leaves_goes_to_its_siblings_first() {
        // Customer 0 wants 4 of its 10: 26 for the others, 13 each. Of those, a flow that wants 1 leaves the
        // rest to the flows of its own customer, by weights 1:2: 4 and 8.
        let claims = [
            claim(&[0], 0, 1.0, Some(4.0)),
            claim(&[0], 1, 1.0, Some(1.0)),
            claim(&[0], 1, 1.0, None),
            claim(&[0], 1, 2.0, None),
            claim(&[0], 2, 1.0, None),
        ];
        assert_eq!(hierarchical(&[30.0], &[1.0; 3], &claims), Ok(vec![4.0, 1.0, 4.0, 8.0, 13.0]));
        // A customer without flows has nothing, and neither has one of weight zero.
        let claims = [claim(&[0], 1, 1.0, None), claim(&[0], 2, 1.0, None)];
        assert_eq!(hierarchical(&[30.0], &[1.0, 1.0, 0.0], &claims), Ok(vec![30.0, 0.0]));
    }

    #[test]
    fn links_that_limit_no_flow_do_not_matter_and_two_bottlenecks_have_no_solution() {
        // Access links 1 and 2 of 100 and 4 before a link of 10: customer 1 can have no more than 4.
        let claims = [claim(&[1, 0], 0, 1.0, None), claim(&[2, 0], 1, 1.0, None)];
        assert_eq!(hierarchical(&[10.0, 100.0, 4.0], &[1.0; 2], &claims), Ok(vec![6.0, 4.0]));
        assert_eq!(hierarchical(&[10.0, 100.0, 6.0], &[1.0; 2], &claims), Ok(vec![5.0, 5.0]));
        // No link is a bottleneck.
        let calm = [claim(&[0], 0, 1.0, Some(1.0)), claim(&[1], 1, 1.0, Some(2.0))];
        assert_eq!(hierarchical(&[10.0, 100.0], &[1.0; 2], &calm), Ok(vec![1.0, 2.0]));
        // Two flows of customer 0 share an access link of 4, and 5 of the other link are due to it.
        let both = [claim(&[1, 0], 0, 1.0, None), claim(&[1, 0], 0, 1.0, None), claim(&[0], 1, 1.0, None)];
        assert_eq!(hierarchical(&[10.0, 4.0], &[1.0; 2], &both), Err(Infeasible::SeveralBottlenecks));
    }

    #[test]
    fn claims_that_make_no_sense_are_refused() {
        let refused = |claim| hierarchical(&[10.0], &[1.0], &[claim]).unwrap_err();
        assert_eq!(refused(claim(&[0], 1, 1.0, None)), Infeasible::UnknownCustomer { flow: 0 });
        assert_eq!(refused(claim(&[0], 0, -1.0, None)), Infeasible::BadNumber { flow: 0 });
        assert_eq!(refused(claim(&[3], 0, 1.0, None)), Infeasible::UnknownLink { flow: 0, link: 3 });
        assert_eq!(refused(claim(&[], 0, 1.0, None)), Infeasible::Unbounded { flow: 0 });
        let nan = hierarchical(&[f64::NAN], &[1.0], &[]);
        assert_eq!(nan, Err(Infeasible::BadCapacity { link: 0 }));
    }

    fn link() -> impl Strategy<Value = (Vec<f64>, Vec<CustomerClaim>)> {
        let flow = (0usize..4, 1u8..6, prop::option::of(0u8..40));
        let flow = flow.prop_map(|(customer, w, d)| claim(&[0], customer, f64::from(w), d.map(f64::from)));
        let weights = prop::collection::vec((1u8..6).prop_map(f64::from), 4);
        (weights, prop::collection::vec(flow, 1..20))
    }

    proptest! {
        #[test]
        fn it_agrees_with_halving_intervals((weights, claims) in link()) {
            let shares = hierarchical(&[60.0], &weights, &claims).unwrap();
            let flows: Vec<_> =
                claims.iter().map(|c| (c.customer, c.weight, c.demand.unwrap_or(60.0))).collect();
            for (ours, theirs) in shares.iter().zip(reference::hierarchical(60.0, &weights, &flows)) {
                prop_assert!((ours - theirs).abs() < 1e-6, "{ours} against {theirs}");
            }
        }

        #[test]
        fn no_flow_can_have_more_without_a_poorer_sibling_having_less((weights, claims) in link()) {
            let shares = hierarchical(&[60.0], &weights, &claims).unwrap();
            let part = |n: usize| -> f64 {
                claims.iter().zip(&shares).filter(|(c, _)| c.customer == n).map(|(_, share)| share).sum()
            };
            let wants: f64 = claims.iter().map(|c| c.demand.unwrap_or(60.0)).sum();
            prop_assert!((shares.iter().sum::<f64>() - wants.min(60.0)).abs() < 1e-9, "the link is used");
            for (flow, claim) in claims.iter().enumerate() {
                if shares[flow] >= claim.demand.unwrap_or(60.0) - 1e-9 {
                    continue;
                }
                let own = |(_, sibling): &(usize, &CustomerClaim)| sibling.customer == claim.customer;
                for (other, sibling) in claims.iter().enumerate().filter(own) {
                    prop_assert!(shares[other] / sibling.weight <= shares[flow] / claim.weight + 1e-9);
                }
                let level = part(claim.customer) / weights[claim.customer];
                prop_assert!((0..4).all(|n| part(n) / weights[n] <= level + 1e-9), "of customers");
            }
        }

        #[test]
        fn opening_flows_gains_a_customer_nothing((weights, mut claims) in link(), more in 1usize..10) {
            // All want as much as there is: what a customer has does not depend on how many flows it has.
            claims.iter_mut().for_each(|claim| claim.demand = None);
            let part = |claims: &[CustomerClaim], n| -> f64 {
                let shares = hierarchical(&[60.0], &weights, claims).unwrap();
                claims.iter().zip(shares).filter(|(c, _)| c.customer == n).map(|(_, share)| share).sum()
            };
            let n = claims[0].customer;
            let before = part(&claims, n);
            claims.extend(vec![claims[0].clone(); more]);
            prop_assert!((part(&claims, n) - before).abs() < 1e-9);
        }
    }
}
