//! Recursive congestion shares: each link is divided by a tree of weights of its own.
//!
//! Brown et al., "Principles for Internet Congestion Management", SIGCOMM 2024: bandwidth is
//! allocated independently of congestion control, and consistently with who pays whom: a congested link is
//! divided by a hierarchy of weights. After the abstract; the full text could not be had, so that the
//! definition below is our reading. The trees are given: agreements between domains are not read here.
//!
//! Each child of a vertex is due a part of its amount by weight. What a child does not use goes to its
//! siblings, and up. The leaves are flows. The offer of a link to a flow is what it would get there with
//! unlimited demand, while each other flow wants its share. In an *equilibrium* each flow has the least of its
//! offers and its demand.
//!
//! Trees of different links may weigh the same flows differently. Then several equilibria may exist, or a
//! whole range. The iteration therefore starts from [`STARTS`] random allocations. Results that differ by more
//! than [`AGREEMENT`] are refused. Equilibria that no start leads to are not found.
//!
//! Cost: O(k log k) for each family of k children, in each round, at most PATIENCE rounds, [`STARTS`] times.

use alloc::vec;
use alloc::vec::Vec;

use super::infeasible::{Infeasible, is_amount};
use crate::random::Stream;

/// The number of random starts. Chosen.
pub const STARTS: usize = 20;
/// The tolerated relative difference of allocations from different starts. Chosen.
pub const AGREEMENT: f64 = 0.01;

/// A vertex of a [`RightsTree`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Right {
    /// The vertex above, with a smaller number; none: the link.
    pub parent: Option<usize>,
    /// The weight among the children of the parent, above zero.
    pub weight: f64,
}

/// A link and the rights to it.
#[derive(Clone, Debug, PartialEq)]
pub struct RightsTree {
    /// The capacity, in the unit of the demands.
    pub capacity: f64,
    /// The vertices, each after its parent.
    pub rights: Vec<Right>,
}

/// A flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Stake {
    /// The links that the flow crosses, each with its leaf there, which no other flow has.
    pub leaves: Vec<(usize, usize)>,
    /// The demand; none: unlimited.
    pub demand: Option<f64>,
}

/// The maximum number of rounds. Chosen: convergence takes some hundred.
const PATIENCE: usize = 5_000;
/// The part of the difference by which a share moves in a round. Chosen: at 1, links in cycles oscillate.
const DAMPING: f64 = 0.3;
/// Relative difference of share and offer below which a share has converged.
const STILL: f64 = 1e-9;

/// The allocation by congestion shares.
///
/// # Errors
/// When an argument is invalid, a flow wants without end, the iteration does not converge, or starts lead to
/// different equilibria ([`Infeasible::Ambiguous`]).
pub fn congestion_shares(links: &[RightsTree], flows: &[Stake]) -> Result<Vec<f64>, Infeasible> {
    check(links, flows)?;
    let mut random = Stream::new(0, "starts");
    let first = settle(links, flows, &mut random)?;
    for _ in 1..STARTS {
        let other = settle(links, flows, &mut random)?;
        let differs = |(a, b): (&f64, &f64)| (a - b).abs() > AGREEMENT * a.max(*b);
        if let Some(flow) = first.iter().zip(&other).position(differs) {
            return Err(Infeasible::Ambiguous { flow });
        }
    }
    Ok(first)
}

fn check(links: &[RightsTree], flows: &[Stake]) -> Result<(), Infeasible> {
    let mut taken: Vec<Vec<bool>> = Vec::with_capacity(links.len());
    for (link, tree) in links.iter().enumerate() {
        if !is_amount(tree.capacity) {
            return Err(Infeasible::BadCapacity { link });
        }
        let mut is_parent = vec![false; tree.rights.len()];
        for (at, right) in tree.rights.iter().enumerate() {
            let is_weight = right.weight > 0.0 && right.weight.is_finite();
            if !is_weight || right.parent.is_some_and(|parent| parent >= at) {
                return Err(Infeasible::BadTree { link });
            }
            right.parent.iter().for_each(|&parent| is_parent[parent] = true);
        }
        taken.push(is_parent);
    }
    for (flow, stake) in flows.iter().enumerate() {
        for &(link, leaf) in &stake.leaves {
            let vertex = taken.get_mut(link).and_then(|taken| taken.get_mut(leaf));
            let vertex = vertex.ok_or(Infeasible::UnknownLink { flow, link })?;
            if core::mem::replace(vertex, true) {
                return Err(Infeasible::BadTree { link });
            }
        }
        match stake.demand {
            None if stake.leaves.is_empty() => return Err(Infeasible::Unbounded { flow }),
            Some(demand) if !is_amount(demand) => return Err(Infeasible::BadNumber { flow }),
            _ => (),
        }
    }
    Ok(())
}

/// The equilibrium that one random start leads to.
fn settle(links: &[RightsTree], flows: &[Stake], random: &mut Stream) -> Result<Vec<f64>, Infeasible> {
    let mut leaves: Vec<Vec<(usize, usize)>> = vec![Vec::new(); links.len()];
    for (flow, stake) in flows.iter().enumerate() {
        stake.leaves.iter().for_each(|&(link, leaf)| leaves[link].push((flow, leaf)));
    }
    let start = |stake: &Stake| {
        let widths = stake.leaves.iter().map(|&(link, _)| links[link].capacity);
        random.uniform() * widths.fold(stake.demand.unwrap_or(f64::INFINITY), f64::min)
    };
    let mut shares: Vec<f64> = flows.iter().map(start).collect();
    let mut moved = 0;
    for _ in 0..PATIENCE {
        let mut offered: Vec<f64> = flows.iter().map(|flow| flow.demand.unwrap_or(f64::INFINITY)).collect();
        for (tree, leaves) in links.iter().zip(&leaves) {
            let offers = offers(tree, leaves, &shares);
            leaves.iter().for_each(|&(flow, leaf)| offered[flow] = offered[flow].min(offers[leaf]));
        }
        let differs = |(share, offer): (&f64, &f64)| (offer - share).abs() > STILL * share.max(*offer);
        let Some(flow) = shares.iter().zip(&offered).position(differs) else { return Ok(offered) };
        moved = flow;
        shares.iter_mut().zip(offered).for_each(|(share, offer)| *share += DAMPING * (offer - *share));
    }
    Err(Infeasible::Ambiguous { flow: moved })
}

/// What each vertex would get with unlimited demand, if the flows at `leaves` want their `shares`.
fn offers(tree: &RightsTree, leaves: &[(usize, usize)], shares: &[f64]) -> Vec<f64> {
    let count = tree.rights.len();
    let mut wants = vec![0.0; count];
    leaves.iter().for_each(|&(flow, leaf)| wants[leaf] = shares[flow]);
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); count + 1];
    for (at, right) in tree.rights.iter().enumerate().rev() {
        if let Some(parent) = right.parent {
            wants[parent] += wants[at];
        }
        children[right.parent.unwrap_or(count)].push(at);
    }
    let mut offers = vec![0.0; count];
    for at in [count].into_iter().chain(0..count) {
        let amount = offers.get(at).copied().unwrap_or(tree.capacity);
        let family = Family::new(children[at].iter().map(|&child| (wants[child], tree.rights[child].weight)));
        for (offer, &child) in family.offers(amount).into_iter().zip(&children[at]) {
            offers[child] = offer;
        }
    }
    offers
}

/// Children that divide an amount, by the level up to which each is filled.
struct Family {
    /// Wants and weights.
    asks: Vec<(f64, f64)>,
    /// The places in `asks`, those that are filled first in front.
    order: Vec<usize>,
    /// For each place of `order` and the end: what those in front want, and the weights of the others.
    sums: Vec<(f64, f64)>,
}

impl Family {
    fn new(asks: impl Iterator<Item = (f64, f64)>) -> Self {
        let asks: Vec<(f64, f64)> = asks.collect();
        let full = |at: usize| asks[at].0 / asks[at].1;
        let mut order: Vec<usize> = (0..asks.len()).collect();
        order.sort_by(|&a, &b| full(a).total_cmp(&full(b)));
        let mut sums = vec![(0.0, 0.0); asks.len() + 1];
        for (place, &at) in order.iter().enumerate() {
            sums[place + 1].0 = sums[place].0 + asks[at].0;
        }
        for (place, &at) in order.iter().enumerate().rev() {
            sums[place].1 = sums[place + 1].1 + asks[at].1;
        }
        Self { asks, order, sums }
    }

    /// The level at which all take `amount`. The child at a place of `order`, if any, wants without end.
    fn level(&self, amount: f64, greedy: Option<usize>) -> f64 {
        // What those in front of `place` take, and the weights of all others.
        let sums = |place: usize| {
            let (wants, weights) = self.sums[place];
            let (want, weight) =
                greedy.filter(|&at| at < place).map_or((0.0, 0.0), |at| self.asks[self.order[at]]);
            (wants - want, weights + weight)
        };
        let (mut from, mut to) = (0, self.order.len());
        while from < to {
            let place = from.midpoint(to);
            let (want, weight) = self.asks[self.order[place]];
            let (wants, weights) = sums(place);
            if wants + want / weight * weights <= amount { from = place + 1 } else { to = place }
        }
        let (wants, weights) = sums(from);
        if weights > 0.0 { (amount - wants).max(0.0) / weights } else { f64::INFINITY }
    }

    /// What each child would get of `amount` if it wanted without end.
    fn offers(&self, amount: f64) -> Vec<f64> {
        let common = self.level(amount, None);
        let mut offers = vec![0.0; self.asks.len()];
        for (place, &at) in self.order.iter().enumerate() {
            // More demand of a child that is limited already does not change the level.
            let (want, weight) = self.asks[at];
            let is_limited = common * weight < want;
            offers[at] = weight * if is_limited { common } else { self.level(amount, Some(place)) };
        }
        offers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(capacity: f64, rights: &[(Option<usize>, f64)]) -> RightsTree {
        let right = |&(parent, weight): &(Option<usize>, f64)| Right { parent, weight };
        RightsTree { capacity, rights: rights.iter().map(right).collect() }
    }

    fn flow(leaves: &[(usize, usize)], demand: Option<f64>) -> Stake {
        Stake { leaves: leaves.to_vec(), demand }
    }

    fn near(shares: Result<Vec<f64>, Infeasible>, due: &[f64]) {
        let shares = shares.unwrap();
        let fits = |(share, due): (&f64, &f64)| (share - due).abs() <= 1e-6 * due;
        assert!(shares.len() == due.len() && shares.iter().zip(due).all(fits), "{shares:?} {due:?}");
    }

    #[test]
    fn an_operator_gets_its_part_whatever_its_flows() {
        // Operators of weight 1 and 2 on a link of 9. The first has one host of one flow, the second hosts of
        // weight 1 and 3, with 1 and 2 flows: 3; 6/4, 18/4 divided by two.
        let link = tree(
            9.0,
            &[
                (None, 1.0),
                (None, 2.0),
                (Some(0), 1.0),
                (Some(1), 1.0),
                (Some(1), 3.0),
                (Some(2), 1.0),
                (Some(3), 1.0),
                (Some(4), 1.0),
                (Some(4), 1.0),
            ],
        );
        let flows = [5, 6, 7, 8].map(|leaf| flow(&[(0, leaf)], None));
        near(congestion_shares(&[link], &flows), &[3.0, 1.5, 2.25, 2.25]);
    }

    #[test]
    fn unused_rights_pass_to_siblings_then_up() {
        // Operators a and b, two flows each, on 12. A flow of a wants 1: its sibling gets the other 5 of a.
        // If that wants only 2, the rest goes to b: 9, 4.5 each.
        let link = tree(
            12.0,
            &[(None, 1.0), (None, 1.0), (Some(0), 1.0), (Some(0), 1.0), (Some(1), 1.0), (Some(1), 1.0)],
        );
        let flows = |second| {
            [(2, Some(1.0)), (3, second), (4, None), (5, None)]
                .map(|(leaf, demand)| flow(&[(0, leaf)], demand))
        };
        near(congestion_shares(core::slice::from_ref(&link), &flows(None)), &[1.0, 5.0, 3.0, 3.0]);
        near(congestion_shares(&[link], &flows(Some(2.0))), &[1.0, 2.0, 4.5, 4.5]);
    }

    #[test]
    fn uphill_by_senders_and_downhill_by_receivers() {
        // Uphill 8: senders p (flows 0, 1) and q (flow 2) of equal weight. Downhill 4: receivers r (flow 0)
        // and s (flow 1 and another, 3). Downhill r gets 2, s 1 + 1. Uphill flow 2 takes the rest, 8 - 3.
        let up = tree(8.0, &[(None, 1.0), (None, 1.0), (Some(0), 1.0), (Some(0), 1.0), (Some(1), 1.0)]);
        let down = tree(4.0, &[(None, 1.0), (None, 1.0), (Some(0), 1.0), (Some(1), 1.0), (Some(1), 1.0)]);
        let flows = [
            flow(&[(0, 2), (1, 2)], None),
            flow(&[(0, 3), (1, 3)], None),
            flow(&[(0, 4)], None),
            flow(&[(1, 4)], None),
        ];
        near(congestion_shares(&[up, down], &flows), &[2.0, 1.0, 5.0, 1.0]);
    }

    #[test]
    fn several_equilibria_are_refused() {
        // Senders weigh the flows 2:1, receivers 1:2, on equal links: each (a, 3 - a) with 1 <= a <= 2 holds.
        let links = [tree(3.0, &[(None, 2.0), (None, 1.0)]), tree(3.0, &[(None, 1.0), (None, 2.0)])];
        let flows = [0, 1].map(|leaf| flow(&[(0, leaf), (1, leaf)], None));
        assert_eq!(congestion_shares(&links, &flows), Err(Infeasible::Ambiguous { flow: 0 }));
        // A narrower uphill link decides alone: 2, 1 of 3, which leaves each its part downhill of 6.
        let links = [links[0].clone(), tree(6.0, &[(None, 1.0), (None, 2.0)])];
        near(congestion_shares(&links, &flows), &[2.0, 1.0]);
    }

    #[test]
    fn offers_are_those_of_filling_with_an_endless_want() {
        let mut random = Stream::new(5, "asks");
        for count in 1..40 {
            let asks: Vec<(f64, f64)> =
                (0..count).map(|_| (random.uniform(), 0.1 + random.uniform())).collect();
            let amount = random.uniform() * f64::from(count);
            let offers = Family::new(asks.iter().copied()).offers(amount);
            for (at, offer) in offers.into_iter().enumerate() {
                let mut endless = asks.clone();
                endless[at].0 = f64::INFINITY;
                let due = asks[at].1 * crate::fairness::hierarchical::fill(amount, endless);
                assert!((offer - due).abs() <= 1e-9 * due, "{offer} {due} of {amount} in {asks:?}");
            }
        }
    }

    #[test]
    fn what_is_invalid_is_refused() {
        let link = tree(3.0, &[(None, 1.0)]);
        let refused = |link: RightsTree, flows: &[Stake]| congestion_shares(&[link], flows).unwrap_err();
        assert_eq!(refused(link.clone(), &[flow(&[], None)]), Infeasible::Unbounded { flow: 0 });
        assert_eq!(
            refused(link.clone(), &[flow(&[(0, 1)], None)]),
            Infeasible::UnknownLink { flow: 0, link: 0 }
        );
        let nan = flow(&[(0, 0)], Some(f64::NAN));
        assert_eq!(refused(link.clone(), &[nan]), Infeasible::BadNumber { flow: 0 });
        let twice = [flow(&[(0, 0)], None), flow(&[(0, 0)], None)];
        assert_eq!(refused(link, &twice), Infeasible::BadTree { link: 0 });
        let zero = tree(3.0, &[(None, 0.0)]);
        assert_eq!(refused(zero, &[flow(&[(0, 0)], None)]), Infeasible::BadTree { link: 0 });
        assert_eq!(
            refused(tree(3.0, &[(Some(0), 1.0)]), &[flow(&[(0, 0)], None)]),
            Infeasible::BadTree { link: 0 }
        );
    }

    #[test]
    fn random_trees_fill_every_bottleneck_and_exceed_none() {
        // Ten operators of random weights, ten flows each, over two of six links.
        let mut random = Stream::new(3, "trees");
        let mut links: Vec<RightsTree> = Vec::new();
        for _ in 0..6 {
            let operators = (0..10).map(|_| Right { parent: None, weight: 1.0 + random.uniform() });
            links.push(RightsTree { capacity: 10.0, rights: operators.collect() });
        }
        let mut flows = Vec::new();
        for operator in 0..100 {
            let first = random.below(6) as usize;
            let leaves = [first, (first + 1) % 6].map(|link| {
                links[link].rights.push(Right { parent: Some(operator % 10), weight: 1.0 });
                (link, links[link].rights.len() - 1)
            });
            flows.push(flow(&leaves, None));
        }
        let shares = settle(&links, &flows, &mut random).unwrap();
        let load = |link| {
            let own =
                flows.iter().zip(&shares).filter(|(flow, _)| flow.leaves.iter().any(|leaf| leaf.0 == link));
            own.map(|(_, share)| share).sum::<f64>()
        };
        let loads: Vec<f64> = (0..6).map(load).collect();
        assert!(loads.iter().all(|load| *load <= 10.0 * (1.0 + 1e-6)), "{loads:?}");
        let is_bound = |flow: &Stake| flow.leaves.iter().any(|leaf| loads[leaf.0] >= 10.0 * (1.0 - 1e-6));
        assert!(flows.iter().all(is_bound), "{loads:?}");
    }
}
