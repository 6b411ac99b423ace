//! What each flow of a scenario is entitled to: its weighted max-min share with guarantees.

use apportion_core::fairness::{Claim, max_min};
use apportion_core::units::{Bytes, Rate};

use crate::model::{Flow, Frames, Scenario, Setting, Source, Start};

impl Scenario {
    /// The weighted max-min share of each flow over the measured part of the run, in the order of its flows;
    /// `None` where no single rate can be said: rates or weights change, flows come and go, or guarantees
    /// exceed a link.
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
        let capacities: Vec<f64> = self.links.iter().map(|link| link.rate.as_bit() as f64).collect();
        let claim = |flow: &Flow| Claim {
            links: flow.path.iter().map(|id| id.index()).collect(),
            weight: flow.weight.get(),
            guarantee: flow.guarantee.as_bit() as f64,
            demand: demand(&flow.source),
        };
        let claims: Vec<Claim> = self.flows.iter().map(claim).collect();
        let shares = max_min(&capacities, &claims).ok()?;
        Some(shares.into_iter().map(|share| Rate::from_bit(share.round() as u64)).collect())
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
