//! Quantities that are measured of each point once per replication. Each is declared once, with its name, its
//! unit, its definition, and its computation from the [rows](crate::rows).
//!
//! A [metric](crate::metrics::Metric) is a quantity of the whole point, or of a group, customer or link, whose name then follows after `/`.

use std::collections::BTreeMap;

use crate::rows::{FlowRow, LinkRow, MediaRow};
use crate::statistics::{jain, judged, mean, nearest_rank, r2_of_entitlements, sigma};

/// A quantity.
#[derive(Clone, Copy, Debug)]
pub struct Quantity {
    /// The name of its metrics, or their prefix.
    pub name: &'static str,
    /// The unit, for example `Mb/s`; empty for ratios and counts without one.
    pub unit: &'static str,
    /// The definition.
    pub doc: &'static str,
    /// The subject and computation.
    pub(crate) of: Of,
}

/// The subject of a quantity in one replication, and its computation; `None` where there was nothing to
/// measure.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Of {
    /// All flows.
    Flows(fn(&[FlowRow]) -> Option<f64>),
    /// Each customer.
    Customer(fn(&Customer<'_>) -> Option<f64>),
    /// Each group of flows.
    Group(fn(&[&FlowRow]) -> Option<f64>),
    /// Each group with video or calls.
    Media(fn(&[&MediaRow]) -> Option<f64>),
    /// Each group with finite transfers that finished: completion times, s, ascending.
    Transfers(fn(&[f64]) -> Option<f64>),
    /// Each watched link.
    Link(fn(&LinkRow) -> Option<f64>),
    /// All links.
    Links(fn(&[LinkRow]) -> Option<f64>),
    /// All flows, in a league or a comparison.
    League(fn(&LeagueFlows) -> Option<f64>),
}

impl Quantity {
    /// The name of its metric for a group, customer or link.
    pub(crate) fn at(&self, part: &str) -> String {
        format!("{}/{part}", self.name)
    }

    /// The group, customer or link of the metric with this name; `None` for a metric of another quantity, or
    /// of the whole point.
    pub(crate) fn part<'a>(&self, metric: &'a str) -> Option<&'a str> {
        metric.strip_prefix(self.name)?.strip_prefix('/')
    }

    /// The subject of its metrics.
    #[must_use]
    pub const fn each(&self) -> &'static str {
        match self.of {
            Of::Flows(_) | Of::Links(_) => "",
            Of::Customer(_) => "customer",
            Of::Group(_) | Of::Media(_) | Of::Transfers(_) => "group",
            Of::Link(_) => "watched link",
            Of::League(_) => "league or comparison",
        }
    }
}

macro_rules! quantities {
    ($($(#[doc = $doc:literal])* $constant:ident, $name:literal, $unit:literal = $scope:ident($measured:expr);)*) => {
        $($(#[doc = $doc])* pub(crate) const $constant: Quantity =
            Quantity { name: $name, unit: $unit, doc: concat!($($doc),*), of: Of::$scope($measured) };)*
        /// All quantities, in the order in which the metrics of a group, customer or link are listed.
        pub const QUANTITIES: &[Quantity] = &[$($constant),*];
    };
}

quantities! {
    /// Throughput of all flows together.
    TOTAL_THROUGHPUT, "throughput_mbps", "Mb/s" =
        Flows(|flows| Some(flows.iter().map(|flow| flow.throughput_mbps).sum()));
    /// Jain's index of throughput over entitlement of the flows that have one, or of throughput if none has.
    JAIN, "jain", "" = Flows(|flows| jain(&shares(flows)));
    /// Standard deviation of the throughputs of flows.
    SIGMA, "sigma_mbps", "Mb/s" =
        Flows(|flows| sigma(&flows.iter().map(|flow| flow.throughput_mbps).collect::<Vec<_>>()));

    /// Throughput of all flows of the customer.
    CUSTOMER_THROUGHPUT, "customer_mbps", "Mb/s" = Customer(|customer| Some(customer.throughput));
    /// Throughput over entitlement of all flows of the customer.
    CUSTOMER_SHARE, "customer_share", "" =
        Customer(|customer| Some(customer.throughput / customer.entitlement.filter(|&due| due > 0.0)?));

    /// As in the table `flows`, mean over the flows of the group.
    THROUGHPUT, "throughput_mbps", "Mb/s" = Group(|flows| mean_of(flows, |flow| Some(flow.throughput_mbps)));
    /// Throughput over entitlement of all flows of the group.
    SHARE, "share", "" = Group(share);
    /// As in the table `flows`, mean over the flows of the group.
    GOODPUT, "goodput_mbps", "Mb/s" = Group(|flows| mean_of(flows, |flow| flow.goodput_mbps));
    /// As in the table `flows`, mean over the flows of the group.
    DELAY_P50, "delay_p50_ms", "ms" = Group(|flows| mean_of(flows, |flow| flow.delay_p50_ms));
    /// As in the table `flows`, mean over the flows of the group.
    DELAY_P95, "delay_p95_ms", "ms" = Group(|flows| mean_of(flows, |flow| flow.delay_p95_ms));
    /// As in the table `flows`, mean over the flows of the group.
    RPM, "rpm", "1/min" = Group(|flows| mean_of(flows, |flow| flow.rpm));
    /// As in the table `flows`, sum over the flows of the group.
    DROPS_EARLY, "drops_early_packets", "packets" = Group(|flows| count(flows, |flow| flow.drops_early));
    /// As in the table `flows`, sum over the flows of the group.
    DROPS_FORCED, "drops_forced_packets", "packets" = Group(|flows| count(flows, |flow| flow.drops_forced));
    /// As in the table `flows`, sum over the flows of the group.
    DROPS_OVERFLOW, "drops_overflow_packets", "packets" =
        Group(|flows| count(flows, |flow| flow.drops_overflow));
    /// As in the table `flows`, sum over the flows of the group.
    DROPS_POLICY, "drops_policy_packets", "packets" = Group(|flows| count(flows, |flow| flow.drops_policy));
    /// As in the table `flows`, sum over the flows of the group.
    DROPS_PUSH_OUT, "drops_push_out_packets", "packets" =
        Group(|flows| count(flows, |flow| flow.drops_push_out));
    /// As in the table `flows`, sum over the flows of the group.
    MARKED, "marked_packets", "packets" = Group(|flows| count(flows, |flow| flow.marked_packets));

    /// As in the table `links`.
    UTILISATION, "utilisation", "" = Link(|link| Some(link.utilisation));
    /// As in the table `links`.
    QUEUE_DELAY_P50, "queue_delay_p50_ms", "ms" = Link(|link| link.queue_delay_p50_ms);
    /// As in the table `links`.
    QUEUE_DELAY_P95, "queue_delay_p95_ms", "ms" = Link(|link| link.queue_delay_p95_ms);
    /// As in the table `links`.
    QUEUE_DELAY_P99, "queue_delay_p99_ms", "ms" = Link(|link| link.queue_delay_p99_ms);
    /// As in the table `links`.
    LINK_DROPS_EARLY, "link_drops_early_packets", "packets" = Link(|link| Some(link.drops_early as f64));
    /// As in the table `links`.
    LINK_DROPS_FORCED, "link_drops_forced_packets", "packets" = Link(|link| Some(link.drops_forced as f64));
    /// As in the table `links`.
    LINK_DROPS_OVERFLOW, "link_drops_overflow_packets", "packets" =
        Link(|link| Some(link.drops_overflow as f64));
    /// As in the table `links`.
    LINK_DROPS_POLICY, "link_drops_policy_packets", "packets" = Link(|link| Some(link.drops_policy as f64));
    /// As in the table `links`.
    LINK_DROPS_PUSH_OUT, "link_drops_push_out_packets", "packets" =
        Link(|link| Some(link.drops_push_out as f64));
    /// As in the table `links`.
    LINK_MARKED, "link_marked_packets", "packets" = Link(|link| Some(link.marked_packets as f64));

    /// Packets dropped for any reason, over all links.
    TOTAL_DROPS, "drops_packets", "packets" = Links(|links| count_links(links, LinkRow::drops));
    /// Packets marked, over all links.
    TOTAL_MARKED, "marked_packets", "packets" = Links(|links| count_links(links, |link| link.marked_packets));

    /// Completion time of finite transfers: percentiles, mean.
    COMPLETION_P50, "completion_p50_s", "s" = Transfers(|took| nearest_rank(took, 0.5));
    /// Completion time of finite transfers: percentiles, mean.
    COMPLETION_P95, "completion_p95_s", "s" = Transfers(|took| nearest_rank(took, 0.95));
    /// Completion time of finite transfers: percentiles, mean.
    COMPLETION_P99, "completion_p99_s", "s" = Transfers(|took| nearest_rank(took, 0.99));
    /// Completion time of finite transfers: percentiles, mean.
    COMPLETION_MEAN, "completion_mean_s", "s" = Transfers(mean);
    /// Finite transfers that finished.
    COMPLETIONS, "completions", "" = Transfers(|took| Some(took.len() as f64));

    /// As in the table `media`, mean over the flows of the group.
    BITRATE, "bitrate_mbps", "Mb/s" = Media(|flows| mean_of(flows, |flow| flow.bitrate_mbps));
    /// As in the table `media`, mean over the flows of the group.
    STARTUP, "startup_s", "s" = Media(|flows| mean_of(flows, |flow| flow.startup_s));
    /// As in the table `media`, mean over the flows of the group.
    STALLS, "stalls", "" = Media(|flows| mean_of(flows, |flow| flow.stalls.map(|count| count as f64)));
    /// As in the table `media`, mean over the flows of the group.
    STALL_RATIO, "stall_ratio", "" = Media(|flows| mean_of(flows, |flow| flow.stall_ratio));
    /// As in the table `media`, mean over the flows of the group.
    SWITCHES, "switches", "" = Media(|flows| mean_of(flows, |flow| flow.switches.map(|count| count as f64)));
    /// As in the table `media`, mean over the flows of the group.
    MOUTH_TO_EAR, "mouth_to_ear_ms", "ms" = Media(|flows| mean_of(flows, |flow| flow.mouth_to_ear_ms));
    /// As in the table `media`, mean over the flows of the group.
    MOS, "mos", "" = Media(|flows| mean_of(flows, |flow| flow.mos));

    /// Throughput over entitlement of the worst-off and the best-off flow, without finite transfers.
    WORST_SHARE, "worst_share", "" = League(|flows| flows.shares().min_by(f64::total_cmp));
    /// Throughput over entitlement of the worst-off and the best-off flow, without finite transfers.
    BEST_SHARE, "best_share", "" = League(|flows| flows.shares().max_by(f64::total_cmp));
    /// 1 - Σ(x - e)² / Σ(e - mean e)² of throughput x and entitlement e, without finite transfers: 1 if x = e for all, about 0 if all x are equal.
    R2, "r2", "" = League(|flows| r2_of_entitlements(&flows.judged));
    /// Packets dropped or lost over packets sent.
    LOST, "lost", "" = League(|flows| (flows.sent > 0).then(|| flows.lost as f64 / flows.sent as f64));
}

/// Packets of a group dropped for each reason, in the order of
/// [`DropReason::ALL`](apportion_core::queue::DropReason::ALL), then packets marked.
pub(crate) const GROUP_DROPS: [Quantity; 6] =
    [DROPS_EARLY, DROPS_FORCED, DROPS_OVERFLOW, DROPS_POLICY, DROPS_PUSH_OUT, MARKED];
/// Like [`GROUP_DROPS`], for a watched link.
pub(crate) const LINK_DROPS: [Quantity; 6] = [
    LINK_DROPS_EARLY,
    LINK_DROPS_FORCED,
    LINK_DROPS_OVERFLOW,
    LINK_DROPS_POLICY,
    LINK_DROPS_PUSH_OUT,
    LINK_MARKED,
];

/// The mean over the rows that have a value; `None` if none has.
fn mean_of<R>(rows: &[&R], of: fn(&R) -> Option<f64>) -> Option<f64> {
    mean(&rows.iter().filter_map(|row| of(row)).collect::<Vec<_>>())
}

fn count(flows: &[&FlowRow], of: fn(&FlowRow) -> u64) -> Option<f64> {
    Some(flows.iter().map(|flow| of(flow) as f64).sum())
}

fn count_links(links: &[LinkRow], of: fn(&LinkRow) -> u64) -> Option<f64> {
    Some(links.iter().map(|link| of(link) as f64).sum())
}

/// Throughput over entitlement of these flows together; `None` if one of them has no entitlement.
fn share(flows: &[&FlowRow]) -> Option<f64> {
    let due: f64 = flows.iter().map(|flow| flow.entitlement_mbps).sum::<Option<f64>>()?;
    (due > 0.0).then(|| flows.iter().map(|flow| flow.throughput_mbps).sum::<f64>() / due)
}

/// The values for Jain's index: the ratio of throughput to entitlement of the flows that have one, or the
/// throughput of all flows if none has.
fn shares(flows: &[FlowRow]) -> Vec<f64> {
    judged(flows.iter().map(|f| f.entitlement_mbps))
        .map(|(i, entitlement)| flows[i].throughput_mbps / entitlement.unwrap_or(1.0))
        .collect()
}

/// The flows of one replication as leagues and comparisons judge them.
pub(crate) struct LeagueFlows {
    /// Entitlement and throughput, Mb/s, of flows that have an entitlement and are no finite transfers.
    pub(crate) judged: Vec<(f64, f64)>,
    /// Packets of all flows.
    pub(crate) sent: u64,
    /// Packets of these dropped by disciplines or lost on wires.
    pub(crate) lost: u64,
}

impl LeagueFlows {
    pub(crate) fn new(flows: &[FlowRow], transfers: &[String]) -> Self {
        let due = |flow: &FlowRow| flow.entitlement_mbps.filter(|due| *due > 0.0);
        let judged = flows.iter().filter(|flow| !transfers.contains(&flow.group));
        Self {
            judged: judged.filter_map(|flow| Some((due(flow)?, flow.throughput_mbps))).collect(),
            sent: flows.iter().map(|flow| flow.sent_packets).sum(),
            lost: flows.iter().map(|flow| flow.drops().saturating_add(flow.lost_packets)).sum(),
        }
    }

    /// Throughput over entitlement of each judged flow.
    pub(crate) fn shares(&self) -> impl Iterator<Item = f64> {
        self.judged.iter().map(|(due, got)| got / due)
    }
}

/// The label of flows without a customer.
pub(crate) const NO_CUSTOMER: &str = "(no customer)";

/// The throughput of a customer in one replication.
pub(crate) struct Customer<'a> {
    /// None: all flows without a customer, which count as one.
    name: Option<&'a str>,
    /// Throughput of all its flows, Mb/s.
    pub(crate) throughput: f64,
    /// Entitlement of all its flows, Mb/s; none if one of them has none.
    entitlement: Option<f64>,
}

impl Customer<'_> {
    /// The customer's name, for people.
    pub(crate) fn label(&self) -> &str {
        self.name.unwrap_or(NO_CUSTOMER)
    }
}

/// The customers of the flows of one replication, by name; none if no flow has one.
pub(crate) fn customers(flows: &[FlowRow]) -> Vec<Customer<'_>> {
    let mut customers: BTreeMap<Option<&str>, Vec<&FlowRow>> = BTreeMap::new();
    for flow in flows {
        customers.entry(flow.customer.as_deref()).or_default().push(flow);
    }
    if customers.keys().all(Option::is_none) {
        return Vec::new();
    }
    let mut shares = Vec::with_capacity(customers.len());
    for (name, flows) in customers {
        shares.push(Customer {
            name,
            throughput: flows.iter().map(|flow| flow.throughput_mbps).sum(),
            entitlement: flows.iter().map(|flow| flow.entitlement_mbps).sum(),
        });
    }
    shares
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use apportion_core::queue::DropReason;

    use super::*;

    #[test]
    fn drops_are_in_the_order_of_their_reasons() {
        for (at, reason) in DropReason::ALL.into_iter().enumerate() {
            let name = format!("drops_{}_packets", reason.name());
            assert_eq!((GROUP_DROPS[at].name, LINK_DROPS[at].name), (&*name, &*format!("link_{name}")));
        }
    }

    #[test]
    fn no_two_quantities_give_one_metric() {
        let names: BTreeSet<_> = QUANTITIES.iter().map(|of| (of.name, of.each().is_empty())).collect();
        assert_eq!(names.len(), QUANTITIES.len());
    }
}
