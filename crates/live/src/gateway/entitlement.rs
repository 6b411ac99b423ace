//! Entitlements of a gateway's flows: the shares of the rate that the rules give them among the present
//! flows.
//!
//! They are weighted max-min with guarantees; where the queue divides among customers, by customers first
//! ([`max_min`](fn@max_min), [`hierarchical`](fn@hierarchical)). A gateway does not see how fast a sender
//! could send. It therefore assumes that a flow wants more if the flow sends at least [half](SATED) of its
//! share; a flow that sends less wants what it sends, and leaves the rest to the others. A queue that paces
//! each flow (`maxrate` of FQ) gives none more than that rate. Queues that divide among hosts or among
//! classes have no entitlements of flows here.
//!
//! Cost: O(flows log flows) for each of at most [`ROUNDS`] rounds.

use apportion_core::fairness::hierarchical::{CustomerClaim, hierarchical};
use apportion_core::fairness::max_min::{Claim, max_min};
use apportion_core::system::{DisciplineKind, DisciplineParams};
use apportion_core::units::Weight;

use super::traffic::Terms;

/// Fraction of its share below which a flow is assumed to want no more than it sends. Chosen: a Reno flow
/// alone on a queue without a buffer is at half of its share just after a loss, and one that sends less than
/// that for a second is limited elsewhere.
const SATED: f64 = 0.5;
/// Maximum of rounds in which some flows are found to want less, which raises the shares of the others.
/// Chosen: each round handles one more kind of flow.
const ROUNDS: usize = 8;

/// A flow's rate in bytes per second, and its terms by the rules.
pub type Sender = (f64, Terms);

/// Entitlements of these flows in bytes per second, at a queue of this capacity in bytes per second; none
/// where the queue has no entitlements of flows. The `customers` have these weights. Flows that are not
/// listed take `others`.
pub fn entitlements(
    queue: &DisciplineParams,
    rate: f64,
    customers: &[Weight],
    flows: &[Sender],
    others: f64,
) -> Option<Vec<f64>> {
    let is_by_class = matches!(
        queue.kind,
        DisciplineKind::Prio(_) | DisciplineKind::Htb(_) | DisciplineKind::Hfsc(_) | DisciplineKind::Ramp(_)
    );
    if queue.isolate().is_some() || is_by_class {
        return None;
    }
    let rate = (rate - others).max(0.0);
    let customers = queue.divides_among_customers().then_some(customers);
    let most = queue.max_flow_rate().map(|rate| rate.as_bit() as f64 / 8.0);
    let mut demands = vec![most; flows.len()];
    let mut shares = divide(rate, customers, flows, &demands)?;
    for _ in 0..ROUNDS {
        let mut is_changed = false;
        for ((sent, _), (demand, share)) in flows.iter().zip(demands.iter_mut().zip(&shares)) {
            if *sent < SATED * share {
                *demand = Some(*sent);
                is_changed = true;
            }
        }
        if !is_changed {
            break;
        }
        shares = divide(rate, customers, flows, &demands)?;
    }
    Some(shares)
}

/// The division of `rate` by these demands; none if guarantees exceed it, as may be for a moment after a
/// reload.
fn divide(
    rate: f64,
    customers: Option<&[Weight]>,
    flows: &[Sender],
    demands: &[Option<f64>],
) -> Option<Vec<f64>> {
    let all = flows.iter().zip(demands);
    let guarantee = |terms: &Terms| terms.guarantee.as_bit() as f64 / 8.0;
    match customers {
        None => {
            let claims: Vec<Claim> = all
                .map(|((_, terms), demand)| Claim {
                    links: vec![0],
                    weight: terms.weight.get(),
                    guarantee: guarantee(terms),
                    demand: *demand,
                })
                .collect();
            max_min(&[rate], &claims).ok()
        }
        Some(weights) => {
            let weights: Vec<f64> = weights.iter().map(|weight| weight.get()).collect();
            let claims: Vec<CustomerClaim> = all
                .map(|((_, terms), demand)| CustomerClaim {
                    links: vec![0],
                    customer: terms.customer.0 as usize,
                    weight: terms.weight.get(),
                    guarantee: guarantee(terms),
                    demand: *demand,
                })
                .collect();
            hierarchical(&[rate], &weights, &claims).ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::packet::CustomerId;
    use apportion_core::units::Rate;
    use apportion_scenario::gateway::{Direction, GatewayConfig};

    use super::*;

    /// The parameters of a queue.
    fn queue(text: &str) -> DisciplineParams {
        let text = format!(
            "inside = \"a\"\noutside = \"b\"\nup = {{ rate = \"1Mbit\", queue = {text} }}\ndown.rate = \"1Mbit\"\n"
        );
        let config =
            GatewayConfig::load(&text, "x.toml".as_ref()).unwrap_or_else(|problems| panic!("{problems:?}"));
        config.direction(Direction::Up).queue.params.clone()
    }

    fn sender(rate: f64, weight: f64, customer: u32) -> Sender {
        let weight = Weight::new(weight).unwrap();
        (rate, Terms { weight, guarantee: Rate::ZERO, customer: CustomerId(customer) })
    }

    #[test]
    fn flows_that_send_little_leave_the_rest_and_are_found_one_after_the_other() {
        // Equal shares of 100 are 20: two flows send less than half of that. The 90 that are left give 30
        // each: one flow sends less than 15.
        let flows = [7.0, 3.0, 13.0, 40.0, 37.0].map(|rate| sender(rate, 1.0, 0));
        let shares = entitlements(&queue("\"drr\""), 100.0, &[], &flows, 0.0).unwrap();
        assert_eq!(shares, [7.0, 3.0, 13.0, 38.5, 38.5]);
        // No flow has more than 12, 96 bit/s, and one that sends less than half of that wants no more.
        let paced = queue("{ kind = \"fq\", maxrate = \"96bit\" }");
        assert_eq!(entitlements(&paced, 100.0, &[], &flows, 0.0).unwrap(), [12.0, 3.0, 12.0, 12.0, 12.0]);
        // The rate of flows that are not listed counts.
        let shares = entitlements(&queue("\"drr\""), 110.0, &[], &flows, 10.0).unwrap();
        assert_eq!(shares[3], 38.5);
    }

    #[test]
    fn weights_guarantees_and_customers_count() {
        let mut flows = [sender(30.0, 1.0, 0), sender(60.0, 3.0, 1), sender(60.0, 1.0, 1)];
        let drr = entitlements(&queue("\"drr\""), 100.0, &[], &flows, 0.0).unwrap();
        assert_eq!(drr, [20.0, 60.0, 20.0]);
        let customers = [1.0, 1.0].map(|weight| Weight::new(weight).unwrap());
        let hcsfq = entitlements(&queue("\"hcsfq\""), 100.0, &customers, &flows, 0.0).unwrap();
        assert_eq!(hcsfq, [50.0, 37.5, 12.5]);
        // A guarantee of 50 bytes per second, and a fifth of the other 50.
        flows[0].1.guarantee = Rate::from_bit(400);
        assert_eq!(entitlements(&queue("\"drr\""), 100.0, &[], &flows, 0.0).unwrap()[0], 60.0);
        // For a moment after a reload that lowered the rate, guarantees exceed it.
        assert_eq!(entitlements(&queue("\"drr\""), 40.0, &[], &flows, 0.0), None);
    }

    #[test]
    fn flows_of_hosts_have_none() {
        let flows = [sender(30.0, 1.0, 0)];
        let isolated = queue("{ kind = \"drr\", isolate = \"both\" }");
        assert_eq!(entitlements(&isolated, 100.0, &[], &flows, 0.0), None);
    }
}
