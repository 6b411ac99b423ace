//! Hierarchical max-min fairness: a link is divided among customers, and the part of each among its flows,
//! both by weighted max-min.
//!
//! The two levels of a hierarchical link sharing structure, as in Bennett, Zhang, "Hierarchical packet fair
//! queueing algorithms", SIGCOMM 1996, in the fluid limit. Customer n of weight W_n, whose flows want D_n
//! together, gets min(D_n, W_n s) with one s that fills the link; its flow i, which wants d_i, gets min(d_i,
//! w_i s_n) with one s_n for the customer.
//!
//! A flow with a guarantee g_i uses min(d_i, g_i) of it. Guarantees are served within the part of their
//! customer, and raise that part only if it is too small for them: with the sum G_n of guarantees customer n
//! gets min(D_n, max(W_n s, G_n)), and a flow gets min(d_i, g_i + w_i s_n).
//!
//! Each of several bottlenecks divides its own capacity, as a queue would. At each link a flow wants what it
//! could use if that link were wide: at most what the other links of its path leave it. Customers and their
//! flows divide the link by these wants. The allocation is a fixed point: every flow gets its demand, or
//! crosses a full link where no flow of its customer gets more for its weight and no customer that is limited
//! there gets more for its own. With one bottleneck this is the division above. The iteration starts from
//! links without limits, like advertised rates of switches in distributed max-min algorithms (Bertsekas,
//! Gallager 1992, section 6.5.2). Convergence is not guaranteed, so the result is checked.
//!
//! Cost: O(path entries + flows log flows) for each link that could be the only bottleneck, at most
//! [`CANDIDATES`], then for each round over the links, at most PATIENCE; usually one round for each level of
//! bottlenecks. With guarantees O(customers log² customers) more for each of these.

use alloc::vec;
use alloc::vec::Vec;

use super::infeasible::{Infeasible, is_amount};
use super::max_min::{Claim, max_min, oversubscribed};

/// The number of links that are tried as the only bottleneck, the most overloaded first. Chosen: a network
/// where none of these is the only bottleneck has several.
pub const CANDIDATES: usize = 16;

/// The claim of a customer's flow on a network. Amounts are in the unit of the capacities.
#[derive(Clone, Debug, PartialEq)]
pub struct CustomerClaim {
    /// The links that the flow crosses, by number, each once.
    pub links: Vec<usize>,
    /// The customer of the flow, by number.
    pub customer: usize,
    /// The weight among the flows of the customer, not negative.
    pub weight: f64,
    /// The guaranteed amount, up to the demand; it counts in the customer's part.
    pub guarantee: f64,
    /// The demand; none: unlimited.
    pub demand: Option<f64>,
}

/// The hierarchical max-min allocation: customers divide the bottleneck by `weights`, and their flows divide
/// the part of each.
///
/// # Errors
/// When the guarantees do not fit, a claim is invalid, or the division of several bottlenecks does not
/// converge.
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
    settle(capacities, weights, claims, &wants)
}

/// The tolerated excess of sums of shares over a capacity.
const ROUNDING: f64 = 1e-9;

/// The amount that each flow would get if it were alone; with a weight of zero, at most its guarantee.
fn wants(capacities: &[f64], weights: &[f64], claims: &[CustomerClaim]) -> Result<Vec<f64>, Infeasible> {
    let bad = |x: f64| !is_amount(x);
    if let Some(link) = capacities.iter().position(|&capacity| bad(capacity)) {
        return Err(Infeasible::BadCapacity { link });
    }
    let want = |(flow, claim): (usize, &CustomerClaim)| {
        let of_customer = *weights.get(claim.customer).ok_or(Infeasible::UnknownCustomer { flow })?;
        if bad(claim.weight) || bad(of_customer) || bad(claim.guarantee) || claim.demand.is_some_and(bad) {
            return Err(Infeasible::BadNumber { flow });
        }
        let mut want = claim.demand.unwrap_or(f64::INFINITY);
        for &link in &claim.links {
            want = want.min(*capacities.get(link).ok_or(Infeasible::UnknownLink { flow, link })?);
        }
        let has_share = claim.weight > 0.0 && of_customer > 0.0;
        let want = if has_share { want } else { want.min(claim.guarantee) };
        if want.is_finite() { Ok(want) } else { Err(Infeasible::Unbounded { flow }) }
    };
    let wants: Vec<f64> = claims.iter().enumerate().map(want).collect::<Result<_, _>>()?;
    let guarantees = claims
        .iter()
        .zip(&wants)
        .flat_map(|(claim, want)| claim.links.iter().map(move |&link| (link, claim.guarantee.min(*want))));
    match oversubscribed(capacities, guarantees).first() {
        Some(&(link, guaranteed)) => {
            Err(Infeasible::Oversubscribed { link, guaranteed, capacity: capacities[link] })
        }
        None => Ok(wants),
    }
}

/// The load of each link if flows have `shares`.
fn load(capacities: &[f64], claims: &[CustomerClaim], shares: &[f64]) -> Vec<f64> {
    let mut load = vec![0.0; capacities.len()];
    for (claim, share) in claims.iter().zip(shares) {
        claim.links.iter().for_each(|&link| load[link] += share);
    }
    load
}

/// The shares if `bottleneck` is divided and no other link is a bottleneck.
fn divide(
    bottleneck: usize,
    capacity: f64,
    weights: &[f64],
    claims: &[CustomerClaim],
    wants: &[f64],
) -> Result<Vec<f64>, Infeasible> {
    let mut flows: Vec<Vec<usize>> = vec![Vec::new(); weights.len()];
    for (flow, claim) in claims.iter().enumerate().filter(|(_, claim)| claim.links.contains(&bottleneck)) {
        flows[claim.customer].push(flow);
    }
    let member = |&flow: &usize| Claim {
        links: vec![0],
        weight: claims[flow].weight,
        guarantee: claims[flow].guarantee.min(wants[flow]),
        demand: Some(wants[flow]),
    };
    let members: Vec<Vec<Claim>> = flows.iter().map(|flows| flows.iter().map(member).collect()).collect();
    let of_customer = |(members, &weight): (&Vec<Claim>, &f64)| Ask {
        amount: members.iter().filter_map(|member| member.demand).sum(),
        floor: members.iter().map(|member| member.guarantee).sum(),
        weight,
    };
    let customers: Vec<Ask> = members.iter().zip(weights).map(of_customer).collect();
    let top = level(capacity, &customers);
    let mut shares = wants.to_vec();
    for ((flows, members), customer) in flows.iter().zip(&members).zip(&customers) {
        for (&flow, share) in flows.iter().zip(max_min(&[customer.at(top)], members)?) {
            shares[flow] = share;
        }
    }
    Ok(shares)
}

/// The want of a customer, or of a flow beyond its guarantee, on a link.
#[derive(Clone, Copy, Debug)]
struct Ask {
    amount: f64,
    /// The guaranteed amount, at most `amount`.
    floor: f64,
    weight: f64,
}

impl Ask {
    /// The amount at the level that gives `level` to a weight of 1.
    fn at(&self, level: f64) -> f64 {
        if self.weight > 0.0 { self.amount.min(self.floor.max(self.weight * level)) } else { self.floor }
    }

    /// Whether the floor exceeds the share.
    fn is_above(&self, level: f64) -> bool {
        self.weight <= 0.0 || self.weight * level < self.floor
    }
}

/// The level at which `asks` take `amount` together; infinite if they want less.
///
/// The asks whose floor applies are those with the largest floor for their weight. As long as one of them is
/// missing, the level is below its floor, so bisection finds their number.
fn level(amount: f64, asks: &[Ask]) -> f64 {
    let (mut with_floor, without): (Vec<Ask>, Vec<Ask>) = asks.iter().partition(|ask| ask.floor > 0.0);
    with_floor.sort_by(|a, b| (b.floor / b.weight).total_cmp(&(a.floor / a.weight)));
    let above = |count: usize| {
        let (above, below) = with_floor.split_at(count);
        let left = amount - above.iter().map(|ask| ask.floor).sum::<f64>();
        let pair = |ask: &Ask| (ask.amount, ask.weight);
        fill(left.max(0.0), without.iter().chain(below).map(pair).collect())
    };
    let (mut few, mut many) = (0, with_floor.len());
    while few < many {
        let middle = few.midpoint(many);
        if with_floor[middle].is_above(above(middle)) { few = middle + 1 } else { many = middle }
    }
    above(few)
}

/// The maximum number of rounds over all links. Chosen as for tickets: convergence takes some tens.
const PATIENCE: usize = 2_000;
/// From this round on offers move half way only, so that an oscillation between two values is damped.
const HASTE: usize = 100;
/// Relative change below which an offer has converged. Chosen: some hundred times the rounding of a sum.
const EPSILON: f64 = 1e-12;
/// The tolerated relative excess of the load of links by converged offers. Chosen: far above EPSILON.
const TOLERANCE: f64 = 1e-9;

/// A flow on a link: its number, and the place of this link on its path.
type Crossing = (usize, usize);

/// The shares if several links are divided: rounds over the links until the offer of each stays.
fn settle(
    capacities: &[f64],
    weights: &[f64],
    claims: &[CustomerClaim],
    wants: &[f64],
) -> Result<Vec<f64>, Infeasible> {
    let mut crossings: Vec<Vec<Crossing>> = vec![Vec::new(); capacities.len()];
    for (flow, claim) in claims.iter().enumerate() {
        for (hop, &link) in claim.links.iter().enumerate() {
            crossings[link].push((flow, hop));
        }
    }
    let mut offers: Vec<Vec<f64>> =
        claims.iter().map(|claim| vec![f64::INFINITY; claim.links.len()]).collect();
    let left = |flow: usize, but: Option<usize>, offers: &[Vec<f64>]| {
        let others = offers[flow].iter().enumerate().filter(|&(hop, _)| Some(hop) != but);
        others.map(|(_, &offer)| offer).fold(wants[flow], f64::min)
    };
    let mut settled = false;
    for round in 0..PATIENCE {
        settled = true;
        for (link, crossings) in crossings.iter().enumerate().filter(|(_, crossings)| !crossings.is_empty()) {
            let asks: Vec<f64> =
                crossings.iter().map(|&(flow, hop)| left(flow, Some(hop), &offers)).collect();
            let new = offer(capacities[link], weights, claims, crossings, &asks);
            for (&(flow, hop), new) in crossings.iter().zip(new) {
                let old = offers[flow][hop];
                let finite = old.is_finite() && new.is_finite();
                let moved = old != new && !(finite && (new - old).abs() <= EPSILON * old);
                let damped = round >= HASTE && finite;
                offers[flow][hop] = if damped { 0.5 * (old + new) } else { new };
                settled &= !moved;
            }
        }
        if settled {
            break;
        }
    }
    let shares: Vec<f64> = (0..claims.len()).map(|flow| left(flow, None, &offers)).collect();
    let load = load(capacities, claims, &shares);
    let fits = load.iter().zip(capacities).all(|(&load, &capacity)| load <= capacity * (1.0 + TOLERANCE));
    if settled && fits { Ok(shares) } else { Err(Infeasible::SeveralBottlenecks) }
}

/// The offer of one link to each of the flows that cross it, for these wants: infinite if neither the
/// customer nor the flow is limited.
fn offer(
    capacity: f64,
    weights: &[f64],
    claims: &[CustomerClaim],
    crossings: &[Crossing],
    asks: &[f64],
) -> Vec<f64> {
    let mut of_customer: Vec<Vec<usize>> = vec![Vec::new(); weights.len()];
    for (at, &(flow, _)) in crossings.iter().enumerate() {
        of_customer[claims[flow].customer].push(at);
    }
    let guarantee = |at: usize| claims[crossings[at].0].guarantee.min(asks[at]);
    let of_flows = |(flows, &weight): (&Vec<usize>, &f64)| Ask {
        amount: flows.iter().map(|&at| asks[at]).sum(),
        floor: flows.iter().map(|&at| guarantee(at)).sum(),
        weight,
    };
    let customers: Vec<Ask> = of_customer.iter().zip(weights).map(of_flows).collect();
    let top = level(capacity, &customers);
    let mut offers = vec![f64::INFINITY; crossings.len()];
    for (flows, customer) in of_customer.iter().zip(&customers) {
        let part = customer.at(top);
        if customer.amount <= part {
            continue;
        }
        let weight_of = |at: usize| claims[crossings[at].0].weight;
        let excess = flows.iter().map(|&at| (asks[at] - guarantee(at), weight_of(at))).collect();
        let own = fill((part - customer.floor).max(0.0), excess);
        for &at in flows {
            let beyond = if weight_of(at) > 0.0 { weight_of(at) * own } else { 0.0 };
            offers[at] = guarantee(at) + beyond;
        }
    }
    offers
}

/// The level up to which these (amount, weight) are filled so that they take `amount`; infinite if they want
/// less. Asks of weight zero get nothing.
pub(super) fn fill(amount: f64, mut asks: Vec<(f64, f64)>) -> f64 {
    asks.retain(|&(_, weight)| weight > 0.0);
    asks.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let mut weight: f64 = asks.iter().map(|&(_, weight)| weight).sum();
    let mut left = amount;
    for (ask, own) in asks {
        if ask * weight > left * own {
            return left / weight;
        }
        left = (left - ask).max(0.0);
        weight -= own;
    }
    f64::INFINITY
}

#[cfg(test)]
mod tests {
    use super::*;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;

    fn claim(links: &[usize], customer: usize, weight: f64, demand: Option<f64>) -> CustomerClaim {
        CustomerClaim { links: links.to_vec(), customer, weight, guarantee: 0.0, demand }
    }

    fn guaranteed(guarantee: f64, claim: CustomerClaim) -> CustomerClaim {
        CustomerClaim { guarantee, ..claim }
    }

    /// Greedy flows of weight 1 over link 0: for each customer the number in `flows`.
    fn greedy(flows: &[usize]) -> Vec<CustomerClaim> {
        let of = |(customer, &flows): (usize, &usize)| vec![claim(&[0], customer, 1.0, None); flows];
        flows.iter().enumerate().flat_map(of).collect()
    }

    #[test]
    fn customers_divide_the_link_and_flows_their_customer() {
        // 30 by 1:2:3 are 5, 10, 15; among 1, 4 and 10 flows: 5, 2.5, 1.5.
        let shares = hierarchical(&[30.0], &[1.0, 2.0, 3.0], &greedy(&[1, 4, 10])).unwrap();
        assert_eq!((shares[0], shares[1], shares[5]), (5.0, 2.5, 1.5));
        // Ten times the flows: the customer still gets 5.
        let shares = hierarchical(&[30.0], &[1.0, 2.0, 3.0], &greedy(&[10, 4, 10])).unwrap();
        assert_eq!((shares[0], shares[10], shares[14]), (0.5, 2.5, 1.5));
    }

    #[test]
    fn what_a_customer_or_a_flow_leaves_goes_to_its_siblings_first() {
        // Customer 0 wants 4 of its 10: 26 for the others, 13 each. In one of these, a flow that wants 1
        // leaves the rest to the flows of its own customer, by weights 1:2: 4 and 8.
        let claims = [
            claim(&[0], 0, 1.0, Some(4.0)),
            claim(&[0], 1, 1.0, Some(1.0)),
            claim(&[0], 1, 1.0, None),
            claim(&[0], 1, 2.0, None),
            claim(&[0], 2, 1.0, None),
        ];
        assert_eq!(hierarchical(&[30.0], &[1.0; 3], &claims), Ok(vec![4.0, 1.0, 4.0, 8.0, 13.0]));
        // A customer without flows gets nothing, and neither does one of weight zero.
        let claims = [claim(&[0], 1, 1.0, None), claim(&[0], 2, 1.0, None)];
        assert_eq!(hierarchical(&[30.0], &[1.0, 1.0, 0.0], &claims), Ok(vec![30.0, 0.0]));
    }

    #[test]
    fn a_guarantee_is_served_in_the_part_of_its_customer_and_raises_it_where_that_is_too_small() {
        // 30 among three customers: 10 each. A flow of the first has a guarantee of 4, and divides the rest
        // with its sibling: 3 each.
        let flows = |g: f64, demand| {
            let own = [guaranteed(g, claim(&[0], 0, 1.0, demand)), claim(&[0], 0, 1.0, None)];
            let others = [claim(&[0], 1, 1.0, None), claim(&[0], 2, 1.0, Some(5.0))];
            hierarchical(&[30.0], &[1.0; 3], &own.into_iter().chain(others).collect::<Vec<_>>()).unwrap()
        };
        assert_eq!(flows(0.0, None), [6.25, 6.25, 12.5, 5.0]);
        assert_eq!(flows(4.0, None), [8.25, 4.25, 12.5, 5.0]);
        // A guarantee of 16 of 30: nothing is left for the sibling, and 9 for customer 1.
        assert_eq!(flows(16.0, None), [16.0, 0.0, 9.0, 5.0]);
        // A guarantee beyond the demand is not served.
        assert_eq!(flows(16.0, Some(2.0)), [2.0, 10.5, 12.5, 5.0]);
        assert_eq!(flows(16.0, Some(13.0)), [13.0, 0.0, 12.0, 5.0]);
        // A guarantee beyond the capacity is refused.
        let over =
            [guaranteed(9.0, claim(&[0], 0, 1.0, None)), guaranteed(2.0, claim(&[0], 1, 1.0, Some(3.0)))];
        let refused = hierarchical(&[10.0], &[1.0; 2], &over);
        assert_eq!(refused, Err(Infeasible::Oversubscribed { link: 0, guaranteed: 11.0, capacity: 10.0 }));
        // A flow without weight gets only its guarantee, and so does its customer.
        let bare = [guaranteed(2.0, claim(&[0], 0, 1.0, None)), guaranteed(1.0, claim(&[0], 1, 0.0, None))];
        assert_eq!(hierarchical(&[10.0], &[0.0, 1.0], &bare), Ok(vec![2.0, 1.0]));
    }

    #[test]
    fn links_that_limit_no_flow_do_not_matter() {
        // Access links 1 and 2 of 100 and 4 before a link of 10: customer 1 can get no more than 4.
        let claims = [claim(&[1, 0], 0, 1.0, None), claim(&[2, 0], 1, 1.0, None)];
        assert_eq!(hierarchical(&[10.0, 100.0, 4.0], &[1.0; 2], &claims), Ok(vec![6.0, 4.0]));
        assert_eq!(hierarchical(&[10.0, 100.0, 6.0], &[1.0; 2], &claims), Ok(vec![5.0, 5.0]));
        // No link is a bottleneck.
        let calm = [claim(&[0], 0, 1.0, Some(1.0)), claim(&[1], 1, 1.0, Some(2.0))];
        assert_eq!(hierarchical(&[10.0, 100.0], &[1.0; 2], &calm), Ok(vec![1.0, 2.0]));
    }

    #[test]
    fn each_of_several_bottlenecks_divides_what_flows_can_use() {
        // Two flows of customer 0 share an access link of 4: 2 each. Customer 1 gets the rest of the other
        // link.
        let both = [claim(&[1, 0], 0, 1.0, None), claim(&[1, 0], 0, 1.0, None), claim(&[0], 1, 1.0, None)];
        assert_eq!(hierarchical(&[10.0, 4.0], &[1.0; 2], &both), Ok(vec![2.0, 2.0, 6.0]));
        // A customer over two bottlenecks. Link 1 of 4 is divided 2:2 between the long flow of customer 0 and
        // a flow of customer 1. Link 0 of 12: 4 for each of the customers 0, 1 and 2; the long flow of
        // customer 0 can use 2 of its 4, so the short one gets 2 as well; two flows of customer 2 get 2 each.
        let claims = [
            claim(&[0, 1], 0, 1.0, None),
            claim(&[0], 0, 1.0, None),
            claim(&[0], 1, 1.0, None),
            claim(&[1], 1, 1.0, None),
            claim(&[0], 2, 1.0, None),
            claim(&[0], 2, 1.0, None),
        ];
        let shares = hierarchical(&[12.0, 4.0], &[1.0; 3], &claims);
        assert_eq!(shares, Ok(vec![2.0, 2.0, 4.0, 2.0, 2.0, 2.0]));
        // Customer 1 of weight 3: 3 of link 1, so the long flow gets 1. Customer 0 gets 12/5 of link 0: 1.4
        // are left for its short flow. Customer 1 gets 36/5, customer 2 12/5.
        let shares = hierarchical(&[12.0, 4.0], &[1.0, 3.0, 1.0], &claims).unwrap();
        for (share, due) in shares.iter().zip([1.0, 1.4, 7.2, 3.0, 1.2, 1.2]) {
            assert!((share - due).abs() < 1e-9, "{shares:?}");
        }
    }

    #[test]
    fn a_flow_held_back_on_one_link_leaves_the_rest_of_another() {
        let claim = |links: &[usize], customer| claim(links, customer, 1.0, None);
        let claims = [claim(&[2], 0), claim(&[0, 2], 0), claim(&[2], 0), claim(&[2], 0), claim(&[0], 1)];
        let shares = hierarchical(&[10.0; 3], &[1.0; 2], &claims);
        assert_eq!(shares, Ok(vec![2.5, 2.5, 2.5, 2.5, 7.5]));
    }

    #[test]
    fn bottlenecks_that_do_not_settle_are_refused() {
        let flows = [(&[2][..], 0), (&[3], 1), (&[3], 0), (&[2], 0), (&[2, 3], 2), (&[2, 3], 3), (&[2], 1)];
        let claims = flows.map(|(links, customer)| claim(links, customer, 1.0, None));
        let shares = hierarchical(&[25.0, 34.0, 44.0, 44.0], &[1.0, 2.0, 4.0, 2.0], &claims);
        assert_eq!(shares, Err(Infeasible::SeveralBottlenecks));
    }

    #[test]
    fn claims_that_make_no_sense_are_refused() {
        let refused = |claim| hierarchical(&[10.0], &[1.0], &[claim]).unwrap_err();
        assert_eq!(refused(claim(&[0], 1, 1.0, None)), Infeasible::UnknownCustomer { flow: 0 });
        assert_eq!(refused(claim(&[0], 0, -1.0, None)), Infeasible::BadNumber { flow: 0 });
        let negative = guaranteed(-1.0, claim(&[0], 0, 1.0, None));
        assert_eq!(refused(negative), Infeasible::BadNumber { flow: 0 });
        assert_eq!(refused(claim(&[3], 0, 1.0, None)), Infeasible::UnknownLink { flow: 0, link: 3 });
        assert_eq!(refused(claim(&[], 0, 1.0, None)), Infeasible::Unbounded { flow: 0 });
        let nan = hierarchical(&[f64::NAN], &[1.0], &[]);
        assert_eq!(nan, Err(Infeasible::BadCapacity { link: 0 }));
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Over several links: nothing is overfilled, and a flow that gets less than it wants is limited at a
        /// full link, where no flow of its customer gets more for its weight.
        #[test]
        fn of_several_bottlenecks_each_holds_back_whom_it_should(
            weights in prop::collection::vec((1u8..6).prop_map(f64::from), 4),
            capacities in prop::collection::vec((10u8..80).prop_map(f64::from), 4),
            flows in prop::collection::vec(
                (prop::collection::btree_set(0usize..4, 1..4), 0usize..4, 1u8..6, 0u8..5, prop::option::of(0u8..40)), 1..16),
        ) {
            // Guarantees sum to at most 15 · 4 · 0.15 of 10.
            let claims: Vec<CustomerClaim> = flows.iter().map(|(links, customer, weight, guarantee, demand)| {
                let links: Vec<usize> = links.iter().copied().collect();
                let claim = claim(&links, *customer, f64::from(*weight), demand.map(f64::from));
                guaranteed(f64::from(*guarantee) * 0.15, claim)
            }).collect();
            let wants = wants(&capacities, &weights, &claims).unwrap();
            // A few rare networks do not converge, and are refused.
            let settled = settle(&capacities, &weights, &claims, &wants);
            prop_assume!(settled != Err(Infeasible::SeveralBottlenecks));
            let shares = settled.unwrap();
            let load = load(&capacities, &claims, &shares);
            prop_assert!(load.iter().zip(&capacities).all(|(load, capacity)| *load <= capacity + 1e-6));
            for (flow, own) in claims.iter().enumerate().filter(|(flow, _)| shares[*flow] < wants[*flow] - 1e-6) {
                let held = own.links.iter().any(|&link| {
                    let siblings = claims.iter().enumerate()
                        .filter(|(_, other)| other.customer == own.customer && other.links.contains(&link));
                    let level = (shares[flow] - own.guarantee) / own.weight;
                    let mut beyond = siblings.map(|(other, claim)| shares[other] - claim.guarantee - claim.weight * level);
                    load[link] >= capacities[link] - 1e-6 && beyond.all(|beyond| beyond <= 1e-6)
                });
                prop_assert!(held, "flow {flow} could have more than {}: {shares:?}", shares[flow]);
            }
            // If one link is the only bottleneck, both methods agree.
            if let Ok(single) = hierarchical(&capacities[..1], &weights, &claims.iter().filter(|c| c.links == [0])
                .cloned().collect::<Vec<_>>()) {
                let alone: Vec<_> = claims.iter().filter(|c| c.links == [0]).cloned().collect();
                let wants = super::wants(&capacities[..1], &weights, &alone).unwrap();
                let settled = settle(&capacities[..1], &weights, &alone, &wants).unwrap();
                prop_assert!(single.iter().zip(settled).all(|(a, b)| (a - b).abs() < 1e-9));
            }
        }
    }
}
