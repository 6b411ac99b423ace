//! Shares by tickets: the weight of a flow at each link is the value of its tickets there, in the link's
//! currency.
//!
//! Zhang, Wang, Peterson, Krishnamurthy, "Probabilistic packet scheduling", INFOCOM 2002: sections II-D
//! (exchange), II-E (the share at a bottleneck) and II-F (receiver-based). This is the fluid limit of the
//! scheme, which the paper computes by hand for each of its experiments.
//!
//! Tickets. in_f(l) is the rate of f's tickets that arrive at link l, in the currency of the node that l
//! leaves: at the first link the tickets issued to the source. The entity at the end of l issues Out(l) to
//! it, and out_f(l) = Out(l) in_f(l) / Σ in_g(l) over all flows g that use l; without an issue, both ends
//! share a currency and out_f(l) = in_f(l). Tickets that leave one link arrive at the next one.
//!
//! Bandwidth. In the allocation every flow has its demand or crosses a bottleneck: a full link on which no
//! flow has more for its tickets there (II-E). With one currency everywhere, this is
//! [`max_min()`](super::max_min()) with tickets as weights.
//!
//! Readings, where the paper leaves room:
//! - A flow that sends less than its share still sends all its tickets, on fewer packets. in_f therefore does
//!   not depend on the rates of flows. Only a flow with a demand of 0 has no packets to carry tickets.
//! - Links may be crossed in cycles. Ticket rates are then a fixed point, found by sweeps over all links.
//! - Receiver-based: tickets flow from the sinks backwards. Pass the links of each flow in the order in which
//!   its tickets flow, with the tickets issued for acknowledgements; the capacity is the one for data.
//!
//! Filling. A flow is *limited* where its share of the remaining capacity, by tickets, is least. If all
//! unfrozen flows on a link are limited there, they are frozen at that share. Freezing only raises the shares
//! of the others, so each frozen flow keeps its bottleneck. If weights differ from link to link, there may be
//! no such link: A may be limited at one and B at another, each with the other flow as the poorer. Then each
//! link has a price, in tickets per unit of bandwidth, a flow gets what it can pay for on all its links, and
//! prices move until each link is full or its price is zero. Convergence is not guaranteed, so the result is
//! checked against the definition, and refused as [`Infeasible::Ambiguous`] if it fails. Links that weigh the
//! same flows in opposite ways may allow a whole range of allocations; one of them is returned.
//!
//! Cost: O(path entries) for a sweep and for a round; as many sweeps as a ticket has hops unless there are
//! cycles, as many rounds as there are bottlenecks; moving prices adds O(Σ n log n) over the n flows of each
//! link, up to PATIENCE times.

use alloc::vec;
use alloc::vec::Vec;

use super::infeasible::{Infeasible, is_amount};

/// A link in terms of tickets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// The capacity, in the unit of the demands.
    pub capacity: f64,
    /// Out(l): tickets a second that the entity at the link's end issues to it. None: tickets pass unchanged.
    pub issued: Option<f64>,
}

/// A flow in terms of tickets.
#[derive(Clone, Debug, PartialEq)]
pub struct Holding {
    /// The links that the flow crosses, by number, in the order in which its tickets cross them.
    pub links: Vec<usize>,
    /// The tickets a second issued to the source, or to the sink.
    pub tickets: f64,
    /// The demand; none: unlimited.
    pub demand: Option<f64>,
}

/// The maximum number of sweeps beyond one per link, and of price moves. Chosen: convergence takes some tens,
/// so iterations that have not converged by then circle.
const PATIENCE: usize = 2_000;
/// Relative change of a ticket rate or price below which it has converged, and relative difference of equal
/// numbers. Chosen: some hundred times the rounding of a sum.
const EPSILON: f64 = 1e-12;
/// The tolerated relative deviation of a result by prices from the definition. Chosen: far above EPSILON.
const TOLERANCE: f64 = 1e-6;

/// A flow on a link that it crosses: its number, and the place of its ticket rate.
#[derive(Clone, Copy, Debug)]
struct Crossing {
    flow: usize,
    place: usize,
}

/// The crossings of flows and links, checked.
#[derive(Debug)]
struct Graph<'a> {
    links: &'a [Exchange],
    flows: &'a [Holding],
    /// The crossings by link.
    crossings: Vec<Vec<Crossing>>,
    /// The place of a flow's ticket rate at its first link, by flow. The others follow.
    first: Vec<usize>,
}

/// The share of each flow.
///
/// # Errors
/// When a number is invalid, a flow with unlimited demand crosses no link, ticket rates do not converge, or
/// the filling finds no allocation that satisfies the definition.
pub fn ticket_shares(links: &[Exchange], flows: &[Holding]) -> Result<Vec<f64>, Infeasible> {
    let graph = Graph::new(links, flows)?;
    let tickets = graph.weights(graph.ticket_rates()?);
    graph.fill(&tickets)
}

impl<'a> Graph<'a> {
    fn new(links: &'a [Exchange], flows: &'a [Holding]) -> Result<Self, Infeasible> {
        if let Some(link) = links.iter().position(|link| !is_amount(link.capacity)) {
            return Err(Infeasible::BadCapacity { link });
        }
        if let Some(link) = links.iter().position(|link| link.issued.is_some_and(|out| !is_amount(out))) {
            return Err(Infeasible::BadIssue { link });
        }
        let mut crossings = vec![Vec::new(); links.len()];
        let mut first = Vec::with_capacity(flows.len());
        let mut place = 0;
        for (flow, holding) in flows.iter().enumerate() {
            if !is_amount(holding.tickets) || holding.demand.is_some_and(|demand| !is_amount(demand)) {
                return Err(Infeasible::BadNumber { flow });
            }
            if holding.links.is_empty() && holding.demand.is_none() {
                return Err(Infeasible::Unbounded { flow });
            }
            first.push(place);
            for &link in &holding.links {
                let Some(list) = crossings.get_mut(link) else {
                    return Err(Infeasible::UnknownLink { flow, link });
                };
                list.push(Crossing { flow, place });
                place += 1;
            }
        }
        Ok(Self { links, flows, crossings, first })
    }

    /// in_f(l), by place.
    fn ticket_rates(&self) -> Result<Vec<f64>, Infeasible> {
        let mut tickets = vec![0.0; self.flows.iter().map(|flow| flow.links.len()).sum()];
        for (flow, &first) in self.flows.iter().zip(&self.first) {
            if !flow.links.is_empty() && flow.demand != Some(0.0) {
                tickets[first] = flow.tickets;
            }
        }
        // Each sweep moves the tickets at least one hop further; the last one only finds no change.
        for _ in 0..self.links.len() + PATIENCE {
            let mut settled = true;
            for (link, crossings) in self.links.iter().zip(&self.crossings) {
                let arriving: f64 = crossings.iter().map(|crossing| tickets[crossing.place]).sum();
                // PPS section II-D: XRate = OutTktRate / InTktRate.
                let rate = match link.issued {
                    Some(issued) if arriving > 0.0 => issued / arriving,
                    _ => 1.0,
                };
                for &Crossing { flow, place } in crossings {
                    if place + 1 == self.first[flow] + self.flows[flow].links.len() {
                        continue;
                    }
                    let leaving = tickets[place] * rate;
                    settled &= (tickets[place + 1] - leaving).abs() <= EPSILON * leaving;
                    tickets[place + 1] = leaving;
                }
            }
            if settled {
                return Ok(tickets);
            }
        }
        Err(Infeasible::Unsettled)
    }

    /// The weight of each flow, by place, from its ticket rates: for a flow that crosses a link more than
    /// once the smallest of its ticket rates there counts, since all crossings carry the same traffic.
    fn weights(&self, mut tickets: Vec<f64>) -> Vec<f64> {
        for crossings in &self.crossings {
            for same in crossings.chunk_by(|a, b| a.flow == b.flow) {
                let least = same.iter().map(|crossing| tickets[crossing.place]).fold(f64::INFINITY, f64::min);
                same.iter().for_each(|crossing| tickets[crossing.place] = least);
            }
        }
        tickets
    }

    fn fill(&self, tickets: &[f64]) -> Result<Vec<f64>, Infeasible> {
        let mut left: Vec<f64> = self.links.iter().map(|link| link.capacity).collect();
        let mut shares = vec![0.0; self.flows.len()];
        let mut frozen = vec![false; self.flows.len()];
        while frozen.contains(&false) {
            let levels = self.levels(tickets, &left, &frozen);
            let least: Vec<f64> =
                (0..self.flows.len()).map(|flow| self.least(flow, tickets, |link| levels[link])).collect();
            let done = self.done(tickets, &levels, &least, &frozen);
            if done.is_empty() {
                let levels = self.balance(tickets, &left, levels, &frozen);
                for flow in (0..shares.len()).filter(|&flow| !frozen[flow]) {
                    shares[flow] = self.least(flow, tickets, |link| levels[link]);
                }
                return match self.undue(tickets, &shares) {
                    Some(flow) => Err(Infeasible::Ambiguous { flow }),
                    None => Ok(shares),
                };
            }
            for flow in done {
                shares[flow] = least[flow];
                frozen[flow] = true;
                for &link in &self.flows[flow].links {
                    left[link] = (left[link] - least[flow]).max(0.0);
                }
            }
        }
        Ok(shares)
    }

    /// Moves the price of each link, in tickets per unit, half way to the price that would fill the link if
    /// the other prices stayed, until all stay. Takes and returns levels: the bandwidth that a ticket pays
    /// for.
    fn balance(&self, tickets: &[f64], left: &[f64], mut levels: Vec<f64>, frozen: &[bool]) -> Vec<f64> {
        let start: Vec<f64> = levels.iter().map(|level| level.recip()).collect();
        let mut prices = start.clone();
        for _ in 0..PATIENCE {
            let mut stays = true;
            for (link, price) in prices.iter_mut().enumerate() {
                let before = *price;
                *price = 0.5 * (before + self.filling(link, tickets, left[link], &levels, frozen));
                if *price < EPSILON * start[link] {
                    *price = 0.0;
                }
                stays &= *price == before || (*price - before).abs() <= EPSILON * before;
            }
            levels = prices.iter().map(|price| price.recip()).collect();
            if stays {
                break;
            }
        }
        levels
    }

    /// The price at which `link` is full at these `levels` of the others; 0 if it is not full at any price.
    fn filling(&self, link: usize, tickets: &[f64], left: f64, levels: &[f64], frozen: &[bool]) -> f64 {
        let elsewhere = |other: usize| if other == link { f64::INFINITY } else { levels[other] };
        let unfrozen = |crossing: &&Crossing| !frozen[crossing.flow] && tickets[crossing.place] > 0.0;
        let mut caps: Vec<(f64, f64)> = self.crossings[link]
            .iter()
            .filter(unfrozen)
            .map(|crossing| (self.least(crossing.flow, tickets, elsewhere), tickets[crossing.place]))
            .map(|(cap, weight)| (cap / weight, weight))
            .collect();
        caps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut weight: f64 = caps.iter().map(|&(_, weight)| weight).sum();
        let mut left = left;
        for (cap, own) in caps {
            if left < weight * cap {
                return weight / left;
            }
            left -= own * cap;
            weight -= own;
        }
        0.0
    }

    /// The remaining capacity of each link per ticket of its unfrozen flows.
    fn levels(&self, tickets: &[f64], left: &[f64], frozen: &[bool]) -> Vec<f64> {
        let level = |(crossings, &left): (&Vec<Crossing>, &f64)| {
            let unfrozen = crossings.iter().filter(|crossing| !frozen[crossing.flow]);
            let weight: f64 = unfrozen.map(|crossing| tickets[crossing.place]).sum();
            // Flows without tickets get no share, whatever the level.
            if weight > 0.0 { left / weight } else { 0.0 }
        };
        self.crossings.iter().zip(left).map(level).collect()
    }

    /// The least share of `flow` at these levels, or its demand if that is less.
    fn least(&self, flow: usize, tickets: &[f64], level: impl Fn(usize) -> f64) -> f64 {
        let wanted = self.flows[flow].demand.unwrap_or(f64::INFINITY);
        let share = |(place, link): (usize, usize)| match tickets[place] {
            // Zero tickets are worth zero at any level.
            tickets if tickets > 0.0 => tickets * level(link),
            _ => 0.0,
        };
        let shares = self.places(flow).map(share);
        shares.fold(wanted, f64::min)
    }

    /// The unfrozen flows that have their demand, or share a link on which all of them are limited.
    fn done(&self, tickets: &[f64], levels: &[f64], least: &[f64], frozen: &[bool]) -> Vec<usize> {
        let mut done = vec![false; self.flows.len()];
        for (crossings, level) in self.crossings.iter().zip(levels) {
            let limited = |crossing: &Crossing| {
                frozen[crossing.flow]
                    || tickets[crossing.place] * level <= least[crossing.flow] * (1.0 + EPSILON)
            };
            if crossings.iter().all(limited) {
                crossings.iter().for_each(|crossing| done[crossing.flow] = true);
            }
        }
        let met = |flow: usize| self.flows[flow].demand.is_some_and(|demand| least[flow] >= demand);
        (0..self.flows.len()).filter(|&flow| !frozen[flow] && (done[flow] || met(flow))).collect()
    }

    /// The first flow that has neither its demand nor a bottleneck, or that overfills a link.
    fn undue(&self, tickets: &[f64], shares: &[f64]) -> Option<usize> {
        let used =
            |link: usize| -> f64 { self.crossings[link].iter().map(|crossing| shares[crossing.flow]).sum() };
        let used: Vec<f64> = (0..self.links.len()).map(used).collect();
        let (below, above) = (1.0 - TOLERANCE, 1.0 + TOLERANCE);
        let is_bottleneck = |flow: usize, place: usize, link: usize| {
            let nobody_has_more = |other: &Crossing| {
                shares[other.flow] * tickets[place] <= shares[flow] * tickets[other.place] * above
                    || shares[other.flow] <= 0.0
            };
            used[link] >= self.links[link].capacity * below
                && self.crossings[link].iter().all(nobody_has_more)
        };
        (0..self.flows.len()).find(|&flow| {
            let met = self.flows[flow].demand.is_some_and(|demand| shares[flow] >= demand * below);
            // A flow without tickets is due no share.
            let due = met
                || self
                    .places(flow)
                    .any(|(place, link)| tickets[place] <= 0.0 || is_bottleneck(flow, place, link));
            let overfull = self.places(flow).any(|(_, link)| used[link] > self.links[link].capacity * above);
            overfull || !due
        })
    }

    /// The places and links of `flow`.
    fn places(&self, flow: usize) -> impl Iterator<Item = (usize, usize)> {
        (self.first[flow]..).zip(self.flows[flow].links.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Claim, max_min};
    use super::*;
    use apportion_testing::properties::cases;
    use proptest::prelude::*;
    use std::string::ToString;

    const WIDE: f64 = 10.0;

    fn issued(capacity: f64, tickets: f64) -> Exchange {
        Exchange { capacity, issued: Some(tickets) }
    }

    /// A link into an entity that issues no tickets.
    fn plain(capacity: f64) -> Exchange {
        Exchange { capacity, issued: None }
    }

    fn holding(links: &[usize], tickets: f64, demand: Option<f64>) -> Holding {
        Holding { links: links.to_vec(), tickets, demand }
    }

    #[track_caller]
    fn assert_shares(links: &[Exchange], flows: &[Holding], expected: &[f64]) {
        let shares = ticket_shares(links, flows).unwrap();
        assert_eq!(shares.len(), expected.len());
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 1e-9, "{shares:?} instead of {expected}");
        }
    }

    /// Figure 1: S0, S1 -> S3; S2 -> S4; S3, S4 -> S5 -> S6 at 1 Mb/s. S3 issues `s3` to its two links, S5
    /// 900 and 300. The links are (S0, S3), (S1, S3), (S2, S4), (S3, S5), (S4, S5), (S5, S6).
    fn figure_1(s3: [f64; 2]) -> [Exchange; 6] {
        let [a, b] = s3.map(|tickets| issued(WIDE, tickets));
        [a, b, issued(WIDE, 700.0), issued(WIDE, 900.0), issued(WIDE, 300.0), plain(1.0)]
    }

    /// Flows A, B and C of figure 1.
    fn abc(demand_of_b: Option<f64>) -> [Holding; 3] {
        [
            holding(&[0, 3, 5], 42.0, None),
            holding(&[1, 3, 5], 17.0, demand_of_b),
            holding(&[2, 4, 5], 5.0, None),
        ]
    }

    #[test]
    fn tickets_are_exchanged_at_each_hop_as_in_figure_1() {
        // S3 issued 1500 and gets 900 for them: A 1000·900/1500 = 600, B 300; C all of its 300.
        let (links, flows) = (figure_1([1_000.0, 500.0]), abc(None));
        let rates = Graph::new(&links, &flows).unwrap().ticket_rates().unwrap();
        assert_eq!(rates, [42.0, 1_000.0, 600.0, 17.0, 500.0, 300.0, 5.0, 700.0, 300.0]);
        assert_shares(&links, &flows, &[0.5, 0.25, 0.25]);
    }

    #[test]
    fn what_a_modest_flow_leaves_goes_to_the_others_by_tickets() {
        let links = figure_1([1_000.0, 500.0]);
        // B takes 0.16 and still sends its 300 tickets: A and C divide 0.84 by 600 : 300.
        assert_shares(&links, &abc(Some(0.16)), &[0.56, 0.16, 0.28]);
        // A silent B sends no tickets: A alone carries the 900 of its link, 900 : 300 of 1.
        assert_shares(&links, &abc(Some(0.0)), &[0.75, 0.0, 0.25]);
        // Figure 8 before A comes.
        assert_shares(&links, &abc(None)[1..], &[0.75, 0.25]);
    }

    #[test]
    fn what_an_entity_does_to_its_tickets_does_not_reach_other_links() {
        // Figure 9: S3 issues 600 and 900; A 900·600/1500 = 360 of 1200, B 540; C keeps its quarter.
        assert_shares(&figure_1([600.0, 900.0]), &abc(None), &[0.3, 0.45, 0.25]);
    }

    #[test]
    fn one_hop_divides_by_tickets_as_in_figure_4() {
        // 30 flows with 100 i tickets over 4.65: Σ i = 465, so 0.01 i.
        let flows: Vec<_> = (1..=30).map(|i| holding(&[0], 100.0 * f64::from(i), None)).collect();
        let expected: Vec<_> = (1..=30).map(|i| 0.01 * f64::from(i)).collect();
        assert_shares(&[plain(4.65)], &flows, &expected);
    }

    /// Figure 5: ten flows A over links 0 (P1, P3) and 2 (P3, P4), ten flows B over 1 and 2; flow i of each
    /// has 100 i tickets.
    fn figure_5(demand: impl Fn(i32) -> Option<f64>) -> Vec<Holding> {
        let group = |link: usize| {
            let demand = &demand;
            (1..=10).map(move |i| holding(&[link, 2], 100.0 * f64::from(i), demand(i)))
        };
        group(0).chain(group(1)).collect()
    }

    const TWICE: [Exchange; 3] = [
        Exchange { capacity: WIDE, issued: Some(11_000.0) },
        Exchange { capacity: WIDE, issued: Some(5_500.0) },
        Exchange { capacity: 1.65, issued: None },
    ];

    #[test]
    fn a_link_that_is_issued_twice_as_much_has_twice_as_much_as_in_figure_6() {
        // Σ i = 55 on each side: A_i has 200 i tickets, B_i 100 i, of 16500 for 1.65.
        let expected: Vec<_> =
            (1..=20).map(|i| f64::from(if i <= 10 { 2 * i } else { i - 10 }) / 100.0).collect();
        assert_shares(&TWICE, &figure_5(|_| None), &expected);
    }

    #[test]
    fn unused_capacity_is_shared_by_tickets_as_in_figure_7() {
        // Ten flows take 0.03 each, 1.35 is left for 200·15 + 100·15 = 4500 tickets: 0.0003 each.
        let expected: Vec<_> = (1..=20)
            .map(|i| match i {
                1..=5 => 0.06 * f64::from(i),
                11..=15 => 0.03 * f64::from(i - 10),
                _ => 0.03,
            })
            .collect();
        assert_shares(&TWICE, &figure_5(|i| (i > 5).then_some(0.03)), &expected);
    }

    /// Figure 10: A = S0-S9, B = S1-S8, C = S2-S9, D = S3-S9. The links are (S4, S6), (S5, S7), (S6, S7),
    /// (S6, S8), (S7, S9); S7 issues 1200 and 2400.
    fn figure_10(s7_s9: f64) -> ([Exchange; 5], [Holding; 4]) {
        let links = [plain(1.2), issued(WIDE, 1_200.0), issued(WIDE, 2_400.0), plain(WIDE), plain(s7_s9)];
        let flows = [
            holding(&[0, 2, 4], 2_000.0, None),
            holding(&[0, 3], 1_000.0, None),
            holding(&[1, 4], 1_400.0, None),
            holding(&[1, 4], 700.0, None),
        ];
        (links, flows)
    }

    #[test]
    fn several_bottlenecks_are_those_of_tables_i_and_ii() {
        // Table I: A, C, D share 0.9 by 2400 : 800 : 400; A leaves 1.2 - 0.6 to B.
        let (links, flows) = figure_10(0.9);
        assert_shares(&links, &flows, &[0.6, 0.6, 0.2, 0.1]);
        // Table II: A and B share 1.2 by 2 : 1; A leaves 1.8 - 0.8 to C and D, 2 : 1.
        let (links, flows) = figure_10(1.8);
        assert_shares(&links, &flows, &[0.8, 0.4, 2.0 / 3.0, 1.0 / 3.0]);
    }

    #[test]
    fn receivers_decide_when_tickets_flow_backwards_as_in_figure_2() {
        // Data goes S6 -> S5 -> S3 -> S0, S1 and S6 -> S5 -> S4 -> S2; tickets start at the sinks. The links
        // are those of figure 1 reversed, each with the issue of the entity that it leaves, in that entity's
        // R-currency. S3 issues 1000 and 500 to its outputs, S5 900 and 300: 600, 300 and 300 arrive at (S6,
        // S5).
        assert_shares(&figure_1([1_000.0, 500.0]), &abc(None), &[0.5, 0.25, 0.25]);
        // In the order of the data, the same numbers mean something else: those of S5 come last and have no
        // effect.
        let mut forwards = abc(None);
        forwards.iter_mut().for_each(|flow| flow.links.reverse());
        let shares = ticket_shares(&figure_1([1_000.0, 500.0]), &forwards).unwrap();
        assert!((shares[0] - 42.0 / 64.0).abs() < 1e-9, "{shares:?}");
    }

    #[test]
    fn tickets_that_go_in_a_circle_settle() {
        // Flow 0 goes over 0 and 1, flow 1 over 1 and 0, 1 ticket each, each link is issued 2. With x
        // arriving at the second link: x = 2·1/(1 + x), so x = 1, and both share both links equally.
        let links = [issued(1.0, 2.0), issued(1.0, 2.0)];
        let flows = [holding(&[0, 1], 1.0, None), holding(&[1, 0], 1.0, None)];
        let rates = Graph::new(&links, &flows).unwrap().ticket_rates().unwrap();
        assert!(rates.iter().all(|rate| (rate - 1.0).abs() < 1e-9), "{rates:?}");
        assert_shares(&links, &flows, &[0.5, 0.5]);
    }

    #[test]
    fn opposite_weights_leave_a_range_and_the_middle_of_it_is_taken() {
        // A and B weigh 2 : 1 at link 0; then A's tickets are exchanged for 1, B's for 2, so 1 : 2 at link 3.
        // Both links have 3: A could get from 1 to 2. At a price of 1 each link is full with (2, 1) and (1,
        // 2), at 2/3 both are full with (1.5, 1.5).
        let links = [plain(3.0), issued(WIDE, 1.0), issued(WIDE, 2.0), plain(3.0)];
        let flows = [holding(&[0, 1, 3], 2.0, None), holding(&[0, 2, 3], 1.0, None)];
        let shares = ticket_shares(&links, &flows).unwrap();
        assert!(shares.iter().all(|share| (share - 1.5).abs() < 1e-6), "{shares:?}");
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let message =
            |link: Exchange, flow: Holding| ticket_shares(&[link], &[flow]).unwrap_err().to_string();
        let fine = || holding(&[0], 1.0, None);
        assert_eq!(message(plain(f64::NAN), fine()), "the capacity of link 0 is negative or not finite");
        assert_eq!(
            message(issued(1.0, -1.0), fine()),
            "the tickets issued to link 0 are negative or not finite"
        );
        let refused = "flow 0 has a number that is negative or not finite";
        assert_eq!(message(plain(1.0), holding(&[0], f64::INFINITY, None)), refused);
        assert_eq!(message(plain(1.0), holding(&[0], 1.0, Some(-1.0))), refused);
        assert_eq!(
            message(plain(1.0), holding(&[7], 1.0, None)),
            "flow 0 crosses link 7, which does not exist"
        );
        assert_eq!(
            message(plain(1.0), holding(&[], 1.0, None)),
            "flow 0 wants without end and crosses no link"
        );
        assert_eq!(ticket_shares(&[], &[holding(&[], 1.0, Some(3.0))]), Ok(vec![3.0]));
    }

    /// Five nodes in a ring with links one and two further on; link 2 n + s leaves n and ends at n + s + 1. A
    /// flow starts at a node and takes up to four steps, so tickets may go in circles.
    const NODES: usize = 5;

    fn network() -> impl Strategy<Value = (Vec<Exchange>, Vec<Holding>)> {
        let link = (10u8..200, 1u8..100).prop_map(|(c, out)| issued(f64::from(c), f64::from(out)));
        let steps = prop::collection::vec(0usize..2, 1..5);
        let flow = (0..NODES, steps, 1u8..50, prop::option::of(0u8..40)).prop_map(
            |(start, steps, tickets, demand)| {
                let mut node = start;
                let link = |step: usize| {
                    let link = 2 * node + step;
                    node = (node + step + 1) % NODES;
                    link
                };
                let links: Vec<usize> = steps.into_iter().map(link).collect();
                holding(&links, f64::from(tickets), demand.map(f64::from))
            },
        );
        (prop::collection::vec(link, 2 * NODES), prop::collection::vec(flow, 1..12))
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn with_one_currency_it_is_weighted_max_min((mut links, flows) in network()) {
            links.iter_mut().for_each(|link| link.issued = None);
            let capacities: Vec<f64> = links.iter().map(|link| link.capacity).collect();
            let claim = |flow: &Holding| Claim {
                links: flow.links.clone(),
                weight: flow.tickets,
                guarantee: 0.0,
                demand: flow.demand,
            };
            let claims: Vec<Claim> = flows.iter().map(claim).collect();
            let shares = ticket_shares(&links, &flows).unwrap();
            for (ours, theirs) in shares.iter().zip(max_min(&capacities, &claims).unwrap()) {
                prop_assert!((ours - theirs).abs() < 1e-7, "{ours} against {theirs}");
            }
        }

        #[test]
        fn no_link_is_overfull_and_every_flow_has_a_bottleneck((links, flows) in network()) {
            let graph = Graph::new(&links, &flows).unwrap();
            let tickets = graph.weights(graph.ticket_rates().unwrap());
            let shares = graph.fill(&tickets);
            // In about one in ten thousand of these networks prices circle.
            prop_assume!(!matches!(shares, Err(Infeasible::Ambiguous { .. })));
            let shares = shares.unwrap();
            for (link, crossings) in links.iter().zip(&graph.crossings) {
                let used: f64 = crossings.iter().map(|crossing| shares[crossing.flow]).sum();
                prop_assert!(used <= link.capacity * (1.0 + 1e-9), "{used} of {}", link.capacity);
            }
            prop_assert_eq!(graph.undue(&tickets, &shares), None, "{:?}", shares);
        }

        #[test]
        fn the_scale_of_a_currency_is_no_matter((links, flows) in network(), node in 0..NODES, by in 1..8) {
            // Powers of two keep rounding the same, so that results are equal to the bit.
            let by = 2.0_f64.powi(by);
            let (mut scaled_links, mut scaled_flows) = (links.clone(), flows.clone());
            for (link, exchange) in scaled_links.iter_mut().enumerate() {
                if (link / 2 + link % 2 + 1) % NODES == node {
                    exchange.issued = exchange.issued.map(|issued| issued * by);
                }
            }
            for flow in scaled_flows.iter_mut().filter(|flow| flow.links[0] / 2 == node) {
                flow.tickets *= by;
            }
            prop_assert_eq!(ticket_shares(&links, &flows), ticket_shares(&scaled_links, &scaled_flows));
        }
    }
}
