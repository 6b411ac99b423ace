//! Entitlements against slow transcripts, and their laws.

use apportion_core::fairness::{Claim, CustomerClaim, fit_guarantees, hierarchical, max_min, water_filling};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::reference;

fn network() -> impl Strategy<Value = (Vec<f64>, Vec<Claim>)> {
    let links = prop::collection::btree_set(0usize..6, 1..4);
    let claim = (links, 1u8..10, 0u8..5, prop::option::of(0u8..60)).prop_map(|(links, w, g, d)| Claim {
        links: links.into_iter().collect(),
        weight: f64::from(w),
        guarantee: f64::from(g),
        demand: d.map(f64::from),
    });
    (prop::collection::vec(60u8..200, 6), prop::collection::vec(claim, 1..12))
        .prop_map(|(capacities, claims)| (capacities.into_iter().map(f64::from).collect(), claims))
}

fn link() -> impl Strategy<Value = (Vec<f64>, Vec<CustomerClaim>)> {
    // Guarantees sum to at most 3 · 19 of 60.
    let flow = (0usize..4, 1u8..6, 0u8..4, prop::option::of(0u8..40));
    let flow = flow.prop_map(|(customer, w, g, d)| CustomerClaim {
        links: vec![0],
        customer,
        weight: f64::from(w),
        guarantee: f64::from(g),
        demand: d.map(f64::from),
    });
    let weights = prop::collection::vec((1u8..6).prop_map(f64::from), 4);
    (weights, prop::collection::vec(flow, 1..20))
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_flow_can_have_more_without_a_poorer_one_having_less((capacities, claims) in network()) {
        let shares = max_min(&capacities, &claims).unwrap();
        let load = |link: usize| -> f64 {
            let crossing = claims.iter().zip(&shares).filter(|(claim, _)| claim.links.contains(&link));
            crossing.map(|(_, share)| share).sum()
        };
        for (link, &capacity) in capacities.iter().enumerate() {
            prop_assert!(load(link) <= capacity + 1e-9);
        }
        let level = |flow: usize| (shares[flow] - claims[flow].guarantee) / claims[flow].weight;
        for (flow, claim) in claims.iter().enumerate() {
            if claim.demand.is_some_and(|demand| shares[flow] >= demand - 1e-9) {
                continue;
            }
            // Bertsekas, Gallager: a link is its bottleneck, full and with no flow at a higher level.
            let bottleneck = claim.links.iter().any(|&link| {
                let full = load(link) >= capacities[link] - 1e-9;
                full && (0..claims.len())
                    .filter(|&other| claims[other].links.contains(&link))
                    .all(|other| level(other) <= level(flow) + 1e-9)
            });
            prop_assert!(bottleneck, "flow {flow} could have more than {}", shares[flow]);
        }
    }

    #[test]
    fn guarantees_are_kept_in_parts_that_are_max_min_fair(
        (mut capacities, mut claims) in network(), scale in 1u8..40, outage in 0usize..12,
    ) {
        capacities.iter_mut().for_each(|capacity| *capacity *= f64::from(scale) / 400.0);
        capacities.get_mut(outage).into_iter().for_each(|capacity| *capacity = 0.0);
        // All guarantees rise in proportion until they are whole, or a link is full.
        let floor = |c: &Claim| c.demand.unwrap_or(f64::INFINITY).min(c.guarantee);
        let rising: Vec<_> = claims.iter().map(|c| (c.links.clone(), floor(c), 0.0, floor(c))).collect();
        fit_guarantees(&capacities, &mut claims);
        for (ours, theirs) in claims.iter().zip(reference::max_min(&capacities, &rising)) {
            prop_assert!((ours.guarantee - theirs).abs() < 1e-9, "{} against {theirs}", ours.guarantee);
        }
        prop_assert!(max_min(&capacities, &claims).is_ok());
    }

    #[test]
    fn max_min_agrees_with_filling_round_by_round((capacities, claims) in network()) {
        let shares = max_min(&capacities, &claims).unwrap();
        let flows: Vec<_> = claims
            .iter()
            .map(|c| (c.links.clone(), c.weight, c.guarantee, c.demand.unwrap_or(f64::INFINITY)))
            .collect();
        for (ours, theirs) in shares.iter().zip(reference::max_min(&capacities, &flows)) {
            prop_assert!((ours - theirs).abs() < 1e-7, "{ours} against {theirs}");
        }
    }

    #[test]
    fn hierarchical_agrees_with_halving_intervals((weights, claims) in link()) {
        let shares = hierarchical(&[60.0], &weights, &claims).unwrap();
        let flows: Vec<_> =
            claims.iter().map(|c| (c.customer, c.weight, c.guarantee, c.demand.unwrap_or(60.0))).collect();
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
            let level = (shares[flow] - claim.guarantee) / claim.weight;
            for (other, sibling) in claims.iter().enumerate().filter(own) {
                prop_assert!(shares[other] <= sibling.guarantee + sibling.weight * level + 1e-9);
            }
            let level = part(claim.customer) / weights[claim.customer];
            let floor = |n: usize| -> f64 {
                claims.iter().filter(|c| c.customer == n).map(|c| c.guarantee.min(c.demand.unwrap_or(60.0))).sum()
            };
            prop_assert!((0..4).all(|n| part(n) <= floor(n).max(weights[n] * level) + 1e-9), "of customers");
        }
    }

    #[test]
    fn opening_flows_gains_a_customer_nothing((weights, mut claims) in link(), more in 1usize..10) {
        // All demands are unlimited: a customer's part does not depend on its number of flows. There are no
        // guarantees either.
        claims.iter_mut().for_each(|claim| (claim.demand, claim.guarantee) = (None, 0.0));
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

proptest! {
    #![proptest_config(cases(10_000))]

    /// The level against one found by bisection.
    #[test]
    fn water_filling_is_the_split_of_the_reference(
        amount in 0.0..100.0,
        demands in proptest::collection::vec(prop_oneof![Just(0.0), Just(2.5), 0.0..20.0], 1..40),
    ) {
        let level = water_filling::level(amount, &mut demands.clone());
        let shares: Vec<f64> = demands.iter().map(|demand| demand.min(level)).collect();
        let reference = reference::sffc::water_filling(amount, &demands);
        for (share, due) in shares.iter().zip(&reference) {
            prop_assert!((share - due).abs() < 1e-9, "{shares:?} {reference:?}");
        }
        prop_assert!(shares.iter().sum::<f64>() <= amount * (1.0 + 1e-12) + 1e-12);
    }
}
