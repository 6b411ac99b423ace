//! What each flow of a scenario is entitled to: by weights and guarantees, or by customers or tickets where
//! flows have them.

use apportion_core::fairness::{
    Claim, CustomerClaim, Exchange, Holding, hierarchical, max_min, ticket_shares,
};
use apportion_core::units::{Bytes, Rate, TicketRate, Time, Weight};

use crate::model::{Flow, Frames, Link, Scenario, Setting, Source, Start};

impl Scenario {
    /// The share of each flow over the measured part of the run, in the order of its flows: by tickets if
    /// flows have tickets, else weighted max-min with guarantees; where flows have customers, weighted max-min
    /// of customers and then of their flows.
    ///
    /// `None` where no single rate can be said: rates, weights or tickets change meanwhile, flows come and
    /// go, guarantees exceed a link, or flows with tickets share a network with flows without, which
    /// nothing divides by; flows with customers are held back at more than one link, or share a network with
    /// flows that are guaranteed something.
    ///
    /// Tickets on acknowledgements flow from the sinks backwards over the way of the data, as receiver-based
    /// tickets assume; sinks that issue tickets then decide instead of the source.
    ///
    /// Finite files count as greedy, other sources want their mean rate. Headers that TCP adds to
    /// application-limited sources and acknowledgements on their way back are not counted.
    #[must_use]
    pub fn entitlements(&self) -> Option<Vec<Rate>> {
        self.entitlements_between(self.measure_from, self.stop)
    }

    /// As [`entitlements`](Self::entitlements), between two times: changes up to the first have happened, and
    /// flows that are not there at all in between get nothing.
    #[must_use]
    pub fn entitlements_between(&self, from: Time, to: Time) -> Option<Vec<Rate>> {
        let steady = |setting: &Setting| {
            matches!(setting, Setting::LinkDelay(..) | Setting::LinkLoss(..) | Setting::LinkQueue(..))
        };
        let mut then = self.clone();
        for change in self.changes.iter().take_while(|change| change.at < to) {
            if change.at <= from {
                then.apply(&change.to);
            } else if !steady(&change.to) {
                return None;
            }
        }
        let starts = |flow: &Flow| match flow.start {
            Start::At(at) => (at, at),
            Start::Between(earliest, latest) => (earliest, latest),
        };
        let away = |flow: &Flow| starts(flow).0 >= to || flow.stop.is_some_and(|stop| stop <= from);
        let there: Vec<bool> = self.flows.iter().map(|flow| !away(flow)).collect();
        then.flows.retain(|flow| !away(flow));
        if then.flows.iter().any(|flow| starts(flow).1 > from || flow.stop.is_some_and(|stop| stop < to)) {
            return None;
        }
        let mut shares = then.shares()?.into_iter().map(|share| Rate::from_bit(share.round() as u64));
        Some(
            there
                .iter()
                .map(|there| if *there { shares.next().unwrap_or_default() } else { Rate::ZERO })
                .collect(),
        )
    }

    /// Puts a change in place that matters to entitlements.
    fn apply(&mut self, setting: &Setting) {
        match *setting {
            Setting::LinkRate(id, rate) => self.links[id.index()].rate = rate,
            Setting::LinkTickets(id, tickets) => {
                self.links[id.index()].tickets = Some(tickets);
            }
            Setting::LinkAckTickets(id, tickets) => {
                self.links[id.index()].ack_tickets = Some(tickets);
            }
            Setting::FlowTickets(at, tickets) => self.flows[at].tickets = Some(tickets),
            Setting::FlowAckTickets(at, tickets) => {
                self.flows[at].ack_tickets = Some(tickets);
            }
            Setting::FlowWeight(at, weight) => self.flows[at].weight = weight,
            Setting::FlowGuarantee(at, guarantee) => self.flows[at].guarantee = guarantee,
            Setting::FlowRate(at, to) => {
                if let Source::Cbr { rate, .. } | Source::Poisson { rate, .. } | Source::OnOff { rate, .. } =
                    &mut self.flows[at].source
                {
                    *rate = to;
                }
            }
            Setting::LinkDelay(..)
            | Setting::LinkLoss(..)
            | Setting::LinkQueue(..)
            | Setting::FlowClass(..) => (),
        }
    }

    /// Bits per second.
    fn shares(&self) -> Option<Vec<f64>> {
        if self.flows.iter().any(|flow| flow.ack_tickets.is_some()) {
            self.ticket_shares(|flow| flow.ack_tickets, |link| link.ack_tickets, true)
        } else if self.flows.iter().any(|flow| flow.tickets.is_some()) {
            self.ticket_shares(|flow| flow.tickets, |link| link.tickets, false)
        } else if self.flows.iter().any(|flow| flow.customer.is_some()) {
            self.customer_shares()
        } else {
            self.weighted_shares()
        }
    }

    fn customer_shares(&self) -> Option<Vec<f64>> {
        // What is guaranteed to a flow, is it the customer's?
        if self.flows.iter().any(|flow| flow.guarantee > Rate::ZERO) {
            return None;
        }
        let capacities: Vec<f64> = self.links.iter().map(|link| link.rate.as_bit() as f64).collect();
        let weights: Vec<f64> = self.customer_weights().into_iter().map(Weight::get).collect();
        let claim = |flow: &Flow| CustomerClaim {
            links: flow.path.iter().map(|id| id.index()).collect(),
            customer: self.customer_of(flow).0 as usize,
            weight: flow.weight.get(),
            demand: demand(flow),
        };
        let claims: Vec<CustomerClaim> = self.flows.iter().map(claim).collect();
        hierarchical(&capacities, &weights, &claims).ok()
    }

    fn weighted_shares(&self) -> Option<Vec<f64>> {
        let capacities: Vec<f64> = self.links.iter().map(|link| link.rate.as_bit() as f64).collect();
        let claim = |flow: &Flow| Claim {
            links: flow.path.iter().map(|id| id.index()).collect(),
            weight: flow.weight.get(),
            guarantee: flow.guarantee.as_bit() as f64,
            demand: demand(flow),
        };
        let claims: Vec<Claim> = self.flows.iter().map(claim).collect();
        max_min(&capacities, &claims).ok()
    }

    /// Shares by the tickets of flows and links, which flow along the data or `backwards`.
    fn ticket_shares(
        &self,
        of_flow: impl Fn(&Flow) -> Option<TicketRate>,
        of_link: impl Fn(&Link) -> Option<TicketRate>,
        backwards: bool,
    ) -> Option<Vec<f64>> {
        // Each connection of short flows is issued the tickets of its flow, so their total is unknown.
        let short = |flow: &Flow| matches!(flow.source, Source::ShortFlows { .. });
        if self.flows.iter().any(short) {
            return None;
        }
        let exchange = |link: &Link| Exchange {
            capacity: link.rate.as_bit() as f64,
            issued: of_link(link).map(TicketRate::get),
        };
        let holding = |flow: &Flow| {
            let mut links: Vec<usize> = flow.path.iter().map(|id| id.index()).collect();
            if backwards {
                links.reverse();
            }
            Some(Holding { links, tickets: of_flow(flow)?.get(), demand: demand(flow) })
        };
        let exchanges: Vec<Exchange> = self.links.iter().map(exchange).collect();
        let holdings: Option<Vec<Holding>> = self.flows.iter().map(holding).collect();
        ticket_shares(&exchanges, &holdings?).ok()
    }
}

/// Bits per second that a flow wants on average; `None` for as much as it can get.
fn demand(flow: &Flow) -> Option<f64> {
    source_demand(&flow.source).map(|each| each * f64::from(flow.connections))
}

/// Bits per second that a source wants on average; `None` for as much as it can get.
fn source_demand(source: &Source) -> Option<f64> {
    let rate = |rate: &Rate| rate.as_bit() as f64;
    let bits = |size: &Bytes| size.get() as f64 * 8.0;
    match source {
        Source::Greedy | Source::File { .. } => None,
        Source::Cbr { rate: wanted, .. } | Source::Poisson { rate: wanted, .. } => Some(rate(wanted)),
        Source::OnOff { rate: wanted, on, off, .. } => {
            let (on, off) = (on.mean.as_secs_f64(), off.mean.as_secs_f64());
            Some(rate(wanted) * on / (on + off))
        }
        Source::ShortFlows { per_second, mean_size, .. } => Some(per_second * bits(mean_size)),
        Source::Video { frames: Frames::Gop { mean }, .. } => Some(rate(mean)),
        Source::Video { fps, frames: Frames::Trace(frames), .. } => {
            Some(fps * frames.iter().map(bits).sum::<f64>() / frames.len().max(1) as f64)
        }
        Source::Replay { packets } => {
            let length = packets.last().map_or(0.0, |(at, _)| at.as_secs_f64());
            (length > 0.0).then(|| packets.iter().map(|(_, size)| bits(size)).sum::<f64>() / length)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn mbps(text: &str, from: u64, to: u64) -> Option<Vec<f64>> {
        let suite = crate::load(text, Path::new("x.toml"), &[], &|path| std::fs::read(path)).unwrap();
        let shares =
            suite.points[0].scenario.entitlements_between(Time::from_secs(from), Time::from_secs(to));
        shares.map(|shares| shares.into_iter().map(Rate::as_mbit_f64).collect())
    }

    #[test]
    fn shares_follow_changes_and_arrivals() {
        let text = r#"
            seed = 1
            stop = "30s"
            link.x = { from = "a", to = "b", rate = "6Mbit", delay = "1ms" }
            flow.early = { from = "a", to = "b", tcp = "rfc" }
            flow.late = { from = "a", to = "b", tcp = "rfc", weight = 2, start = "10s" }
            change = [{ at = "20s", set = "link.x.rate", to = "3Mbit" }, { at = "20s", set = "link.x.delay", to = "2ms" }]
        "#;
        assert_eq!(mbps(text, 0, 10), Some(vec![6.0, 0.0]));
        assert_eq!(mbps(text, 10, 20), Some(vec![2.0, 4.0]));
        assert_eq!(mbps(text, 20, 30), Some(vec![1.0, 2.0]));
        // Half of the 3 Mb/s is guaranteed to the late one; the rest is divided 1 : 2.
        let guaranteed = format!(
            "{}{{ at = \"20s\", set = \"flow.late.guarantee\", to = \"1.5Mbit\" }},]",
            text.trim_end().trim_end_matches(']').to_owned() + ", "
        );
        assert_eq!(mbps(&guaranteed, 20, 30), Some(vec![0.5, 2.5]));
        // Somebody arrives, or the rate changes, in between.
        assert_eq!((mbps(text, 5, 15), mbps(text, 15, 25)), (None, None));
    }
}
