//! Throughput and entitlement of each flow and each group of a point.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::figure::COLOURS;
use crate::point_summary::{FlowSummary, PointSummary};
use crate::run_results::{PointResults, RunResults};
use crate::statistics::{Estimate, mean};

/// The throughput of one flow over all replications, and its entitlement.
#[derive(Clone, Debug)]
pub(crate) struct FlowShare {
    pub(crate) name: String,
    pub(crate) group: String,
    /// Throughput, Mb/s.
    pub(crate) throughput: Estimate,
    /// Entitlement, Mb/s.
    pub(crate) entitlement: Option<f64>,
}

/// The throughput and entitlement of a group, per flow.
#[derive(Clone, Debug)]
pub(crate) struct GroupShare {
    pub(crate) name: String,
    pub(crate) members: usize,
    /// Mean throughput of the flows, Mb/s.
    pub(crate) throughput: f64,
    /// The lowest and the highest throughput of a flow, Mb/s.
    pub(crate) range: (f64, f64),
    /// Mean entitlement of the flows, Mb/s; `None` if one has none.
    pub(crate) entitlement: Option<f64>,
}

impl FlowShare {
    /// Throughput over entitlement.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.entitlement.filter(|&e| e > 0.0).map(|e| self.throughput.mean / e)
    }
}

impl FlowShare {
    /// Throughput over entitlement over the replications.
    pub(crate) fn share(&self) -> Option<Estimate> {
        let entitlement = self.entitlement.filter(|&e| e > 0.0)?;
        let Estimate { mean, ci95, n } = self.throughput;
        Some(Estimate { mean: mean / entitlement, ci95: ci95.map(|half| half / entitlement), n })
    }
}

impl GroupShare {
    /// Throughput over entitlement.
    pub(crate) fn ratio(&self) -> Option<f64> {
        self.entitlement.filter(|&e| e > 0.0).map(|e| self.throughput / e)
    }
}

/// The flows of a point in numeric order: `tcp.2` before `tcp.10`.
pub(crate) fn flow_shares(point: &PointResults) -> Vec<FlowShare> {
    shares_of(point.summary())
}

/// The flows of the summary of a point, in numeric order.
pub(crate) fn shares_of(summary: &PointSummary) -> Vec<FlowShare> {
    let share = |flow: &FlowSummary| {
        Some(FlowShare {
            name: flow.name.clone(),
            group: flow.group.clone(),
            throughput: Estimate::of(&flow.throughput)?,
            entitlement: flow.entitlement(),
        })
    };
    let mut shares: Vec<FlowShare> = summary.flows.iter().filter_map(share).collect();
    shares.sort_by(|a, b| natural(&a.name, &b.name));
    shares
}

/// The groups of these flows, in numeric order.
pub(crate) fn group_shares(flows: &[FlowShare]) -> Vec<GroupShare> {
    let mut groups: BTreeMap<&str, Vec<&FlowShare>> = BTreeMap::new();
    for flow in flows {
        groups.entry(&flow.group).or_default().push(flow);
    }
    let share = |(name, members): (&str, Vec<&FlowShare>)| {
        let throughputs: Vec<f64> = members.iter().map(|f| f.throughput.mean).collect();
        let entitlements: Option<Vec<f64>> = members.iter().map(|f| f.entitlement).collect();
        let least = throughputs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = throughputs.iter().copied().fold(0.0, f64::max);
        GroupShare {
            name: name.to_owned(),
            members: members.len(),
            throughput: mean(&throughputs).unwrap_or(0.0),
            range: (least.min(most), most),
            entitlement: entitlements.and_then(|e| mean(&e)),
        }
    };
    let mut shares: Vec<GroupShare> = groups.into_iter().map(share).collect();
    shares.sort_by(|a, b| natural(&a.name, &b.name));
    shares
}

/// Compares names by the numbers in them: `tcp.2` is before `tcp.10`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    parts(a).cmp(parts(b)).then_with(|| a.cmp(b))
}

/// Each of these names once, in [`natural`] order.
pub(crate) fn in_order(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by(|a, b| natural(a, b));
    names.dedup();
    names
}

/// The parts of a name: text without digits, and the number after it.
fn parts(mut rest: &str) -> impl Iterator<Item = (&str, u64)> {
    std::iter::from_fn(move || {
        let is_digit = |c: char| c.is_ascii_digit();
        let (text, from) = rest.split_at(rest.find(is_digit).unwrap_or(rest.len()));
        let (number, after) = from.split_at(from.find(|c| !is_digit(c)).unwrap_or(from.len()));
        let is_end = rest.is_empty();
        rest = after;
        (!is_end).then(|| (text, number.parse().unwrap_or(0)))
    })
}

/// The names that have a colour in figures: the groups, or the flows if there is one group of few flows.
pub(crate) struct Keys {
    by_group: bool,
    names: Vec<String>,
    /// Indices in `names`.
    places: BTreeMap<String, usize>,
}

/// Maximum of flows with colours of their own. Chosen: as many lines as a reader can distinguish.
const MAX_FLOW_KEYS: usize = 8;

impl Keys {
    /// The keys of all points of a run, so that a key has the same colour everywhere.
    pub(crate) fn of(run: &RunResults) -> Self {
        let flows = run.points.iter().flat_map(|p| &p.flows);
        Self::of_names(flows.map(|flow| (flow.name.as_str(), flow.group.as_str())))
    }

    /// The keys of flows by name and group.
    pub(crate) fn of_names<'a>(flows: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut flows: Vec<(&str, &str)> = flows.collect();
        flows.sort_by(|a, b| natural(a.0, b.0));
        let mut groups: Vec<String> = flows.iter().map(|flow| flow.1.to_owned()).collect();
        groups.dedup();
        let mut names: Vec<String> = flows.iter().map(|flow| flow.0.to_owned()).collect();
        names.dedup();
        let by_group = groups.len() > 1 || names.len() > MAX_FLOW_KEYS;
        if by_group {
            names = in_order(groups);
        }
        let places = names.iter().cloned().zip(0..).collect();
        Self { by_group, names, places }
    }

    /// The names in the order of their colours.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The name of each colour: all keys beyond the palette have one together.
    pub(crate) fn series_names(&self) -> Vec<String> {
        let (own, others) = self.names.split_at(self.names.len().min(COLOURS));
        let others = (!others.is_empty()).then(|| format!("{} others", others.len()));
        own.iter().cloned().chain(others).collect()
    }

    /// The key of a flow: an index of [`names`](Keys::names).
    pub(crate) fn of_flow(&self, name: &str, group: &str) -> usize {
        let key = if self.by_group { group } else { name };
        self.places.get(key).copied().unwrap_or(self.names.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_by_number() {
        let mut names = ["udp", "tcp.10", "tcp.2", "tcp.x", "tcp.1", "tcp", "l10-left", "l9-left", "tcp.01"];
        names.sort_by(|a, b| natural(a, b));
        let expected = ["l9-left", "l10-left", "tcp", "tcp.01", "tcp.1", "tcp.2", "tcp.10", "tcp.x", "udp"];
        assert_eq!(names, expected);
    }
}
