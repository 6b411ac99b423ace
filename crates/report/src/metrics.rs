//! The metrics of a run, common to tables, the summary, JSON lines and comparisons: [quantities](crate::quantities), with a sample for each
//! replication.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::quantities::{
    COMPLETION_P95, GROUP_DROPS, JAIN, LINK_DROPS, LeagueFlows, Of, QUANTITIES, QUEUE_DELAY_P95, Quantity,
    RPM, UTILISATION, customers,
};
use crate::replication_rows::ReplicationRows;
use crate::rows::{FlowRow, MediaRow};
use crate::statistics::{Estimate, jain, mean, number};

/// A number measured once per replication.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Metric {
    /// The name, for example `throughput_mbps/tcp`: the quantity, then the group or link unless it is over
    /// all.
    pub name: String,
    /// The unit, for example `Mb/s`.
    pub unit: &'static str,
    /// Samples, one per replication.
    pub samples: Vec<f64>,
}

impl Metric {
    /// The mean and its interval.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.samples)
    }
}

/// All metrics of one point, in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    all: Vec<Metric>,
    /// Indices in `all`, by name.
    places: BTreeMap<String, usize>,
}

impl Metrics {
    /// Adds the samples of one replication.
    pub(crate) fn add(&mut self, of: &ReplicationRows) {
        self.add_each(None, |how| match how {
            Of::Flows(how) => how(&of.flows),
            _ => None,
        });
        for customer in customers(&of.flows) {
            self.add_each(Some(customer.label()), |how| match how {
                Of::Customer(how) => how(&customer),
                _ => None,
            });
        }
        let mut groups: BTreeMap<&str, Vec<&FlowRow>> = BTreeMap::new();
        for flow in &of.flows {
            groups.entry(&flow.group).or_default().push(flow);
        }
        for (group, members) in &groups {
            self.add_each(Some(group), |how| match how {
                Of::Group(how) => how(members),
                _ => None,
            });
        }
        for link in of.links.iter().filter(|link| link.watched) {
            self.add_each(Some(&link.link), |how| match how {
                Of::Link(how) => how(link),
                _ => None,
            });
        }
        self.add_each(None, |how| match how {
            Of::Links(how) => how(&of.links),
            _ => None,
        });
        for (group, took) in times(of) {
            self.add_each(Some(group), |how| match how {
                Of::Transfers(how) => how(&took),
                _ => None,
            });
        }
        let mut groups: BTreeMap<&str, Vec<&MediaRow>> = BTreeMap::new();
        for row in &of.media {
            groups.entry(&row.group).or_default().push(row);
        }
        for (group, members) in &groups {
            self.add_each(Some(group), |how| match how {
                Of::Media(how) => how(members),
                _ => None,
            });
        }
        self.add_statistics(of);
    }

    /// Adds a sample of each quantity that has one, for a group, customer or link, or for the whole point.
    fn add_each(&mut self, part: Option<&str>, sample: impl Fn(&Of) -> Option<f64>) {
        for quantity in QUANTITIES {
            if let Some(sample) = sample(&quantity.of) {
                let name = part.map_or_else(|| quantity.name.to_owned(), |part| quantity.at(part));
                self.push(name, quantity.unit, sample);
            }
        }
    }

    /// All metrics, except drops and marks by reasons that never occurred: these would bury the others.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Metric> {
        self.all.iter().filter(|metric| is_shown(metric))
    }

    /// All metrics, listed or not.
    pub(crate) fn all(&self) -> &[Metric] {
        &self.all
    }

    /// The metric called `name`, listed or not, with whether it is.
    pub(crate) fn find(&self, name: &str) -> Option<(Estimate, bool)> {
        let metric = &self.all[*self.places.get(name)?];
        Some((metric.estimate()?, is_shown(metric)))
    }

    /// The metric called `name`, if it is listed.
    fn shown(&self, name: &str) -> Option<&Metric> {
        self.places.get(name).map(|&at| &self.all[at]).filter(|metric| is_shown(metric))
    }

    /// The metric called `name`, if it was measured.
    pub(crate) fn get(&self, name: &str) -> Option<Estimate> {
        self.shown(name)?.estimate()
    }

    /// The metric called `name` as text; counts of a single replication are whole numbers.
    pub(crate) fn show(&self, name: &str) -> Option<String> {
        let metric = self.shown(name)?;
        let estimate = metric.estimate()?;
        Some(match estimate.ci95 {
            None if metric.unit != "packets" => number(estimate.mean),
            _ => estimate.to_string(),
        })
    }

    /// The metrics of a quantity: the group, customer or link, and the samples.
    pub(crate) fn of_each(&self, quantity: Quantity) -> impl Iterator<Item = (&str, &[f64])> {
        self.iter().filter_map(move |metric| Some((quantity.part(&metric.name)?, metric.samples.as_slice())))
    }

    /// The links that are watched.
    pub(crate) fn watched_links(&self) -> impl Iterator<Item = &str> {
        self.of_each(UTILISATION).map(|(link, _)| link)
    }

    /// The groups whose finite transfers have completed.
    pub(crate) fn transfers(&self) -> impl Iterator<Item = &str> {
        self.of_each(COMPLETION_P95).map(|(group, _)| group)
    }

    /// The groups that measure round trips.
    pub(crate) fn probes(&self) -> impl Iterator<Item = &str> {
        self.of_each(RPM).map(|(group, _)| group)
    }

    /// The samples of the metric called `name`; none if it was not measured.
    pub(crate) fn samples(&self, name: &str) -> &[f64] {
        self.places.get(name).map_or(&[], |&at| &self.all[at].samples)
    }

    /// Removes Jain's index, which [`add_jain`](Self::add_jain) adds over fewer flows.
    pub(crate) fn forget_jain(&mut self) {
        if let Some(&at) = self.places.get(JAIN.name) {
            self.all[at].samples.clear();
        }
    }

    /// Adds Jain's index of one replication over the flows that are no finite transfers.
    pub(crate) fn add_jain(&mut self, of: &LeagueFlows) {
        if let Some(index) = jain(&of.shares().collect::<Vec<_>>()) {
            self.push(JAIN.name.to_owned(), JAIN.unit, index);
        }
    }

    /// Adds what leagues and comparisons measure of one replication's flows.
    pub(crate) fn add_shares(&mut self, of: &LeagueFlows) {
        self.add_each(None, |how| match how {
            Of::League(how) => how(of),
            _ => None,
        });
    }

    fn push(&mut self, name: String, unit: &'static str, sample: f64) {
        match self.places.get(&name) {
            Some(&at) => self.all[at].samples.push(sample),
            None => {
                self.places.insert(name.clone(), self.all.len());
                self.all.push(Metric { name, unit, samples: vec![sample] });
            }
        }
    }

    /// Adds the statistics that the queues of one replication's watched links report.
    fn add_statistics(&mut self, replication: &ReplicationRows) {
        let watched: BTreeSet<&str> =
            replication.links.iter().filter(|link| link.watched).map(|link| link.link.as_str()).collect();
        for row in &replication.statistics {
            if watched.contains(row.link.as_str()) {
                self.push(format!("queue_{}/{}", row.statistic, row.link), "", row.value);
            }
        }
    }
}

/// Completion times of one replication's finite transfers, s, ascending, by group.
fn times(replication: &ReplicationRows) -> BTreeMap<&str, Vec<f64>> {
    let group_of: BTreeMap<&str, &str> =
        replication.flows.iter().map(|f| (f.flow.as_str(), f.group.as_str())).collect();
    let mut times: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for row in &replication.completions {
        let Some(group) = group_of.get(row.flow.as_str()) else { continue };
        times.entry(group).or_default().push(row.took_s);
    }
    times.values_mut().for_each(|took| took.sort_by(f64::total_cmp));
    times
}

/// One watched link that stands for all watched links of some points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlowestLink<'a> {
    pub(crate) name: &'a str,
    /// Whether it is the only watched link, so that its name adds nothing.
    pub(crate) is_only: bool,
}

impl<'a> SlowestLink<'a> {
    /// The watched link with the largest 95th percentile of queue delay at any of these points, as a mean
    /// over replications; the first of several equal ones.
    pub(crate) fn of(points: impl Iterator<Item = &'a Metrics> + Clone) -> Option<Self> {
        let mut delays: BTreeMap<&str, f64> = BTreeMap::new();
        for link in points.clone().flat_map(Metrics::watched_links) {
            delays.entry(link).or_default();
        }
        for (link, samples) in points.flat_map(|metrics| metrics.of_each(QUEUE_DELAY_P95)) {
            if let (Some(longest), Some(delay)) = (delays.get_mut(link), mean(samples)) {
                *longest = longest.max(delay);
            }
        }
        let is_only = delays.len() == 1;
        // The first of equal ones is the last in reverse order.
        let (name, _) = delays.into_iter().rev().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Self { name, is_only })
    }
}

/// Whether to list a metric: counts by reason that are zero in all replications are left out.
fn is_shown(metric: &Metric) -> bool {
    let mut by_reason = GROUP_DROPS.iter().chain(&LINK_DROPS);
    metric.samples.iter().any(|count| *count > 0.0)
        || !by_reason.any(|quantity| quantity.part(&metric.name).is_some())
}
