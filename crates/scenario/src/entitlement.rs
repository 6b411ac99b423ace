//! What each flow of a scenario is entitled to: by weights and guarantees, or by tickets where flows have
//! them.

use apportion_core::fairness::{Claim, Exchange, Holding, max_min, ticket_shares};
use apportion_core::units::{Bytes, Rate, TicketRate};

use crate::model::{Flow, Frames, Link, Scenario, Setting, Source, Start};

impl Scenario {
    /// The share of each flow over the measured part of the run, in the order of its flows: by tickets if
    /// flows have tickets, else weighted max-min with guarantees.
    ///
    /// `None` where no single rate can be said: rates, weights or tickets change, flows come and go,
    /// guarantees exceed a link, or flows with tickets share a network with flows without, which nothing
    /// divides by.
    ///
    /// Tickets on acknowledgements flow from the sinks backwards over the way of the data, as receiver-based
    /// tickets assume; whoever issues some then decides instead of the source.
    ///
    /// Finite files count as greedy, other sources want their mean rate. Headers that TCP adds to
    /// application-limited sources and acknowledgements on their way back are not counted.
    #[must_use]
    pub fn entitlements(&self) -> Option<Vec<Rate>> {
        let steady = |setting: &Setting| {
            matches!(setting, Setting::LinkDelay(..) | Setting::LinkLoss(..) | Setting::LinkQueue(..))
        };
        let measured = |flow: &Flow| {
            let (Start::At(latest) | Start::Between(_, latest)) = flow.start;
            latest <= self.measure_from && flow.stop.is_none_or(|stop| stop >= self.stop)
        };
        if !self.changes.iter().all(|change| steady(&change.to)) || !self.flows.iter().all(measured) {
            return None;
        }
        let shares = if self.flows.iter().any(|flow| flow.ack_tickets.is_some()) {
            self.ticket_shares(|flow| flow.ack_tickets, |link| link.ack_tickets, true)
        } else if self.flows.iter().any(|flow| flow.tickets.is_some()) {
            self.ticket_shares(|flow| flow.tickets, |link| link.tickets, false)
        } else {
            self.weighted_shares()
        }?;
        Some(shares.into_iter().map(|share| Rate::from_bit(share.round() as u64)).collect())
    }

    fn weighted_shares(&self) -> Option<Vec<f64>> {
        let capacities: Vec<f64> = self.links.iter().map(|link| link.rate.as_bit() as f64).collect();
        let claim = |flow: &Flow| Claim {
            links: flow.path.iter().map(|id| id.index()).collect(),
            weight: flow.weight.get(),
            guarantee: flow.guarantee.as_bit() as f64,
            demand: demand(&flow.source),
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
        let exchange = |link: &Link| Exchange {
            capacity: link.rate.as_bit() as f64,
            issued: of_link(link).map(TicketRate::get),
        };
        let holding = |flow: &Flow| {
            let mut links: Vec<usize> = flow.path.iter().map(|id| id.index()).collect();
            if backwards {
                links.reverse();
            }
            Some(Holding { links, tickets: of_flow(flow)?.get(), demand: demand(&flow.source) })
        };
        let exchanges: Vec<Exchange> = self.links.iter().map(exchange).collect();
        let holdings: Option<Vec<Holding>> = self.flows.iter().map(holding).collect();
        ticket_shares(&exchanges, &holdings?).ok()
    }
}

/// Bits per second that a source wants on average; `None` for as much as it can get.
fn demand(source: &Source) -> Option<f64> {
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
        Source::Video { fps, frames: Frames::Trace(frames) } => {
            Some(fps * frames.iter().map(bits).sum::<f64>() / frames.len().max(1) as f64)
        }
        Source::Replay { packets } => {
            let length = packets.last().map_or(0.0, |(at, _)| at.as_secs_f64());
            (length > 0.0).then(|| packets.iter().map(|(_, size)| bits(size)).sum::<f64>() / length)
        }
    }
}
