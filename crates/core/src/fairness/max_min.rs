//! Weighted max-min fairness with guarantees: no flow gets more at the cost of one that gets less for its
//! weight.
//!
//! Bertsekas, Gallager, "Data networks", 1992, section 6.5.2, extended by weights and guarantees: unfrozen
//! flows stand at x_f = g_f + w_f s; the level s rises until a link is full or a demand is met, the flows
//! concerned are frozen, and so on.
//!
//! Cost: the level jumps from event to event, so O((path entries + flows) log (links + flows)).

use alloc::collections::BinaryHeap;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Ordering;

use super::infeasible::{Infeasible, is_amount};

/// The tolerated relative excess of sums over a capacity: the rounding of thousands of additions.
const ROUNDING: f64 = 1e-12;

/// The claim of one flow on a network. Amounts are in the unit of the capacities.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The links that it crosses, by number. A link that it crosses twice is listed twice.
    pub links: Vec<usize>,
    /// The weight in the excess, not negative.
    pub weight: f64,
    /// The guaranteed amount, up to the demand.
    pub guarantee: f64,
    /// The demand; none: unlimited.
    pub demand: Option<f64>,
}

/// The level at which a link is full or the demand of a flow is met.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Event {
    level: f64,
    subject: Subject,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Flow(usize),
    Link(usize),
}

impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    /// The lowest level is the greatest event, since [`BinaryHeap`] returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.level.total_cmp(&self.level).then(other.subject.cmp(&self.subject))
    }
}

/// One link during filling.
#[derive(Clone, Debug, Default)]
struct Link {
    /// Capacity beyond all guarantees and the excess of frozen flows.
    left: f64,
    /// Sum of the weights of the unfrozen flows, and their number: the sum alone would keep rounding errors.
    weight: f64,
    unfrozen: usize,
    flows: Vec<usize>,
}

impl Link {
    fn event(&self, link: usize) -> Option<Event> {
        let level = self.left.max(0.0) / self.weight;
        (self.unfrozen > 0).then_some(Event { level, subject: Subject::Link(link) })
    }
}

/// The weighted max-min allocation with guarantees: no flow can get more unless another gets less whose
/// excess over its guarantee is, for its weight, no larger.
///
/// A flow with a demand below its guarantee leaves the rest to others.
///
/// # Errors
/// When the guarantees do not fit or a claim is invalid; both are checked before the division.
pub fn max_min(capacities: &[f64], claims: &[Claim]) -> Result<Vec<f64>, Infeasible> {
    let mut links = admit(capacities, claims)?;
    let mut shares: Vec<f64> = claims.iter().map(floor).collect();
    let mut frozen = vec![false; claims.len()];
    let mut events = BinaryHeap::new();

    for (flow, claim) in claims.iter().enumerate() {
        let excess = claim.demand.map_or(f64::INFINITY, |demand| demand - shares[flow]);
        frozen[flow] = claim.weight <= 0.0 || excess <= 0.0;
        if frozen[flow] {
            continue;
        }
        for &link in &claim.links {
            links[link].weight += claim.weight;
            links[link].unfrozen += 1;
            links[link].flows.push(flow);
        }
        if excess.is_finite() {
            events.push(Event { level: excess / claim.weight, subject: Subject::Flow(flow) });
        }
    }
    events.extend(links.iter().enumerate().filter_map(|(link, state)| state.event(link)));

    while let Some(event) = events.pop() {
        let concerned = match event.subject {
            Subject::Flow(flow) => vec![flow],
            Subject::Link(link) => match links[link].event(link) {
                // Flows frozen since then have left more to the others: the link fills at a higher level.
                Some(now) if now.level > event.level => {
                    events.push(now);
                    continue;
                }
                _ => core::mem::take(&mut links[link].flows),
            },
        };
        for flow in concerned {
            if core::mem::replace(&mut frozen[flow], true) {
                continue;
            }
            let excess = claims[flow].weight * event.level;
            shares[flow] += excess;
            for &link in &claims[flow].links {
                links[link].left -= excess;
                links[link].weight -= claims[flow].weight;
                links[link].unfrozen -= 1;
            }
        }
    }
    Ok(shares)
}

/// The amount that a flow gets before the division.
fn floor(claim: &Claim) -> f64 {
    claim.demand.map_or(claim.guarantee, |demand| claim.guarantee.min(demand))
}

/// Reduces guarantees until they fit: each to its flow's demand, and where the guarantees on a link exceed
/// its capacity, all that are not yet reduced in proportion. The link that can keep the smallest part of its
/// guarantees comes first; the capacity that its flows leave on other links goes to the others there. The
/// parts that are kept are thus max-min fair: no guarantee can be raised without lowering another that keeps
/// no greater part. Guarantees that fit stay as they are. Claims on links that do not exist are left to
/// [`max_min`].
///
/// Cost: O(path entries + links) for each link on which guarantees do not fit.
pub fn fit_guarantees(capacities: &[f64], claims: &mut [Claim]) {
    for claim in claims.iter_mut() {
        claim.guarantee = floor(claim);
    }
    let mut reduced = vec![false; claims.len()];
    // Each round reduces the guarantees of a link. No later round reduces them again.
    while let Some((tightest, kept)) = least_kept(capacities, claims, &reduced) {
        for (claim, reduced) in claims.iter_mut().zip(&mut reduced) {
            if !*reduced && claim.links.contains(&tightest) {
                claim.guarantee *= kept;
                *reduced = true;
            }
        }
    }
}

/// The link that can keep the smallest part of the guarantees that are not `reduced` yet, and that part;
/// `None` if all fit.
fn least_kept(capacities: &[f64], claims: &[Claim], reduced: &[bool]) -> Option<(usize, f64)> {
    let entries = |wanted: bool| {
        let claims = claims.iter().zip(reduced).filter(move |&(_, &reduced)| reduced == wanted);
        claims.flat_map(|(claim, _)| claim.links.iter().map(|&link| (link, claim.guarantee)))
    };
    let mut left = capacities.to_vec();
    for (link, guarantee) in entries(true) {
        if let Some(left) = left.get_mut(link) {
            *left = (*left - guarantee).max(0.0);
        }
    }
    // Sums of reduced guarantees may have rounding errors in proportion to the whole capacity.
    let over = oversubscribed(&left, entries(false)).into_iter();
    let over = over.filter(|&(link, sum)| sum - left[link] > capacities[link] * ROUNDING);
    over.map(|(link, sum)| (link, left[link] / sum)).min_by(|a, b| a.1.total_cmp(&b.1))
}

/// Checks the claims and sets the guarantees aside.
fn admit(capacities: &[f64], claims: &[Claim]) -> Result<Vec<Link>, Infeasible> {
    let bad = |x: f64| !is_amount(x);
    if let Some(link) = capacities.iter().position(|&capacity| bad(capacity)) {
        return Err(Infeasible::BadCapacity { link });
    }
    let mut links: Vec<Link> = capacities.iter().map(|&left| Link { left, ..Link::default() }).collect();
    for (flow, claim) in claims.iter().enumerate() {
        if bad(claim.weight) || bad(claim.guarantee) || claim.demand.is_some_and(bad) {
            return Err(Infeasible::BadNumber { flow });
        }
        if claim.links.is_empty() && claim.demand.is_none() && claim.weight > 0.0 {
            return Err(Infeasible::Unbounded { flow });
        }
        for &link in &claim.links {
            let Some(state) = links.get_mut(link) else { return Err(Infeasible::UnknownLink { flow, link }) };
            state.left -= floor(claim);
        }
    }
    let guarantees = claims.iter().flat_map(|claim| claim.links.iter().map(|&link| (link, claim.guarantee)));
    match oversubscribed(capacities, guarantees).first() {
        Some(&(link, guaranteed)) => {
            Err(Infeasible::Oversubscribed { link, guaranteed, capacity: capacities[link] })
        }
        None => Ok(links),
    }
}

/// Admission control: the links whose guarantees exceed their capacity, with the sums. `guarantees` holds one
/// entry for each guarantee and link that it crosses; links that do not exist are skipped.
#[must_use]
pub fn oversubscribed(
    capacities: &[f64],
    guarantees: impl IntoIterator<Item = (usize, f64)>,
) -> Vec<(usize, f64)> {
    let mut sums = vec![0.0; capacities.len()];
    for (link, guarantee) in guarantees {
        if let Some(sum) = sums.get_mut(link) {
            *sum += guarantee;
        }
    }
    // Guarantees that add up to the capacity exactly may exceed it by rounding.
    let over = |(link, sum): &(usize, f64)| *sum > capacities[*link] * (1.0 + ROUNDING);
    sums.into_iter().enumerate().filter(over).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Stream;
    use std::string::ToString;

    fn claim(links: &[usize], weight: f64, guarantee: f64, demand: Option<f64>) -> Claim {
        Claim { links: links.to_vec(), weight, guarantee, demand }
    }

    #[test]
    fn a_single_link_has_a_closed_form() {
        // g + w (A - Σg)/Σw with A = 100, g = 10, 0, 30, w = 1, 2, 3: 60/6 = 10 a unit: 20, 20, 60.
        let claims =
            [claim(&[0], 1.0, 10.0, None), claim(&[0], 2.0, 0.0, None), claim(&[0], 3.0, 30.0, None)];
        assert_eq!(max_min(&[100.0], &claims), Ok(vec![20.0, 20.0, 60.0]));
    }

    #[test]
    fn the_parking_lot_and_a_modest_demand() {
        // A long flow and a short one on each of two links, 10 and 4: link 1 fills at 2; the short flow on
        // link 0 gets 8, unless it wants only 3.
        let claims = |demand| {
            [claim(&[0, 1], 1.0, 0.0, None), claim(&[0], 1.0, 0.0, demand), claim(&[1], 1.0, 0.0, None)]
        };
        assert_eq!(max_min(&[10.0, 4.0], &claims(None)), Ok(vec![2.0, 8.0, 2.0]));
        assert_eq!(max_min(&[10.0, 4.0], &claims(Some(3.0))), Ok(vec![2.0, 3.0, 2.0]));
    }

    #[test]
    fn an_unused_guarantee_is_left_to_others_and_weight_zero_has_no_excess() {
        let claims =
            [claim(&[0], 1.0, 8.0, Some(1.0)), claim(&[0], 1.0, 0.0, None), claim(&[0], 0.0, 2.0, None)];
        assert_eq!(max_min(&[10.0], &claims), Ok(vec![1.0, 7.0, 2.0]));
    }

    #[test]
    fn what_cannot_be_met_is_refused_by_name() {
        let message = |claims: &[Claim]| max_min(&[10.0, 4.0], claims).unwrap_err().to_string();
        let over = [claim(&[0, 1], 1.0, 3.0, None), claim(&[1], 1.0, 2.0, None)];
        assert_eq!(message(&over), "link 1 carries 4 but 5 is guaranteed on it");
        assert_eq!(message(&[claim(&[], 1.0, 0.0, None)]), "flow 0 wants without end and crosses no link");
        assert_eq!(message(&[claim(&[7], 1.0, 0.0, None)]), "flow 0 crosses link 7, which does not exist");
        let nan = [claim(&[0], f64::NAN, 0.0, None)];
        assert_eq!(message(&nan), "flow 0 has a number that is negative or not finite");
        let refused = max_min(&[1.0, f64::INFINITY], &[]).unwrap_err().to_string();
        assert_eq!(refused, "the capacity of link 1 is negative or not finite");
    }

    #[test]
    fn a_link_is_oversubscribed_from_the_first_bit_beyond_it() {
        // Three times a tenth exceeds 0.3 only by rounding; 10 + 6 of 15 is too much, 10 + 5 is not.
        let guarantees = [(0, 0.1), (0, 0.1), (0, 0.1), (1, 10.0), (1, 6.0), (2, 10.0), (2, 5.0), (7, 1.0)];
        assert_eq!(oversubscribed(&[0.3, 15.0, 15.0], guarantees), [(1, 16.0)]);
    }

    #[test]
    fn guarantees_that_do_not_fit_are_reduced_in_proportion() {
        // 6 + 3 on a link of 3: a third of each, 2 and 1. The second also crosses a link of 0.5: it keeps
        // 0.5, and the rest of its part on the first link is guaranteed to the other.
        let reduced = |second: &[usize], capacities: &[f64]| {
            let mut claims = [claim(&[0], 1.0, 6.0, None), claim(second, 1.0, 3.0, None)];
            fit_guarantees(capacities, &mut claims);
            (claims[0].guarantee, claims[1].guarantee, max_min(capacities, &claims).unwrap())
        };
        assert_eq!(reduced(&[0], &[3.0]), (2.0, 1.0, vec![2.0, 1.0]));
        assert_eq!(reduced(&[0, 1], &[3.0, 0.5]), (2.5, 0.5, vec![2.5, 0.5]));
        // An outage leaves nothing, and guarantees that fit stay.
        assert_eq!(reduced(&[0], &[0.0]), (0.0, 0.0, vec![0.0, 0.0]));
        assert_eq!(reduced(&[0], &[9.0]), (6.0, 3.0, vec![6.0, 3.0]));
        // The demand is only 1 of the 6: the guarantees fit.
        let mut claims = [claim(&[0], 1.0, 6.0, Some(1.0)), claim(&[0], 1.0, 2.0, None)];
        fit_guarantees(&[3.0], &mut claims);
        assert_eq!((claims[0].guarantee, claims[1].guarantee), (1.0, 2.0));
    }

    #[test]
    fn what_a_reduced_guarantee_leaves_on_another_link_stays_guaranteed() {
        // Link 0 keeps half of the first guarantee; then 1 + 2 fit on link 1, and nothing is left to the third flow.
        let mut claims =
            [claim(&[0, 1], 1.0, 2.0, None), claim(&[1], 1.0, 2.0, None), claim(&[1], 10.0, 0.0, None)];
        fit_guarantees(&[1.0, 3.0], &mut claims);
        assert_eq!(max_min(&[1.0, 3.0], &claims), Ok(vec![1.0, 2.0, 0.0]));
    }

    #[test]
    fn ten_thousand_flows_over_three_hundred_links_fill_every_bottleneck() {
        let mut random = Stream::new(1, "network");
        let capacities: Vec<f64> = (0..300).map(|_| 1e3 + random.uniform() * 1e6).collect();
        let claims: Vec<Claim> = (0..10_000)
            .map(|_| claim(&[0; 4].map(|_| random.below(300) as usize), 1.0 + random.uniform(), 0.0, None))
            .collect();
        let shares = max_min(&capacities, &claims).unwrap();
        let mut load = vec![0.0; 300];
        for (claim, share) in claims.iter().zip(&shares) {
            claim.links.iter().for_each(|&link| load[link] += share);
        }
        assert!(load.iter().zip(&capacities).all(|(load, capacity)| *load <= capacity * (1.0 + 1e-9)));
        let full = |link: &usize| load[*link] >= capacities[*link] * (1.0 - 1e-9);
        assert!(claims.iter().all(|claim| claim.links.iter().any(full)));
    }
}
