//! The tables of links: results of each, and the statistics of its discipline.

use std::borrow::Cow;

use apportion_core::queue::DropReason;
use apportion_runtime::outcome::LinkOutcome;
use serde::{Deserialize, Serialize};

use super::column::{Cell, Column, Field, Row};
use crate::replication::Replication;
use crate::units::{drops, mbps, mean_ms, quantile_ms};

row! {
    /// Results of one link in the measured part of one replication.
    LinkRow of "links" from LinkAt<'_> as link {
        /// The label of the sweep point; empty without a sweep.
        point: String, "" = link.replication.point.to_owned();
        /// The seed of the replication.
        seed: u64, "" = link.replication.outcome.seed;
        /// The link; the other direction of a two-way link `x` is `x.back`.
        link: String, "" = link.outcome.name.clone();
        /// Whether the scenario watches the link; delays and series need it.
        watched: bool, "" = link.outcome.watched;
        /// Mean rate of the link, changes included, Mb/s.
        rate_mbps: f64, "Mb/s" = link.outcome.rate.as_mbit_f64();
        /// Mean rate of transmitted bytes.
        throughput_mbps: f64, "Mb/s" = mbps(link.outcome.sent.bytes, link.replication.outcome.measured);
        /// Bits transmitted over bits possible, 0 to 1; above 1 by at most a packet.
        utilisation: f64, "" = link.outcome.utilisation;
        /// Packets transmitted.
        sent_packets: u64, "packets" = link.outcome.sent.packets.get();
        /// The same in bytes on the wire.
        sent_bytes: u64, "bytes" = link.outcome.sent.bytes.get();
        /// Packets dropped, for the reason in the name, as in the table `flows`.
        drops_early: u64, "packets" = Self::drops_at(link, DropReason::Early);
        /// Packets dropped, for the reason in the name, as in the table `flows`.
        drops_forced: u64, "packets" = Self::drops_at(link, DropReason::Forced);
        /// Packets dropped, for the reason in the name, as in the table `flows`.
        drops_overflow: u64, "packets" = Self::drops_at(link, DropReason::Overflow);
        /// Packets dropped, for the reason in the name, as in the table `flows`.
        drops_policy: u64, "packets" = Self::drops_at(link, DropReason::Policy);
        /// Packets dropped, for the reason in the name, as in the table `flows`.
        drops_push_out: u64, "packets" = Self::drops_at(link, DropReason::PushOut);
        /// Packets lost on the wire.
        lost_packets: u64, "packets" = link.outcome.lost;
        /// Packets marked instead of dropped.
        marked_packets: u64, "packets" = link.outcome.marked;
        /// Backlog in packets, without the one in transmission, mean over time.
        queue_mean_packets: f64, "packets" = link.outcome.queue_mean;
        /// Sojourn time of transmitted packets, ms: mean, percentiles, largest.
        queue_delay_mean_ms: Option<f64>, "ms" = mean_ms(&link.outcome.queue_delay);
        /// Sojourn time of transmitted packets, ms: mean, percentiles, largest.
        queue_delay_p50_ms: Option<f64>, "ms" = quantile_ms(&link.outcome.queue_delay, 0.5);
        /// Sojourn time of transmitted packets, ms: mean, percentiles, largest.
        queue_delay_p95_ms: Option<f64>, "ms" = quantile_ms(&link.outcome.queue_delay, 0.95);
        /// Sojourn time of transmitted packets, ms: mean, percentiles, largest.
        queue_delay_p99_ms: Option<f64>, "ms" = quantile_ms(&link.outcome.queue_delay, 0.99);
        /// Sojourn time of transmitted packets, ms: mean, percentiles, largest.
        queue_delay_max_ms: Option<f64>, "ms" = quantile_ms(&link.outcome.queue_delay, 1.0);
        /// Whether the replication counts: false if real time was not kept, or if a discipline broke its contract.
        valid: bool, "" = link.valid;
    }
}
drops!(LinkRow from LinkAt<'_>);

/// A link of a replication.
pub(crate) struct LinkAt<'a> {
    replication: Replication<'a>,
    pub(crate) outcome: &'a LinkOutcome,
    valid: bool,
}

impl<'a> LinkAt<'a> {
    /// The links of a replication, in the scenario's order.
    pub(crate) fn all(replication: Replication<'a>) -> impl Iterator<Item = Self> {
        let valid = replication.outcome.fault().is_none();
        replication.outcome.links.iter().map(move |outcome| Self { replication, outcome, valid })
    }
}

/// The rows of a replication by link.
pub(crate) fn links(of: Replication<'_>) -> impl Iterator<Item = LinkRow> {
    LinkAt::all(of).map(|link| LinkRow::measured(&link))
}

row! {
    /// A statistic that the discipline of a link, or its exchange of labels, reports at the end of a replication.
    StatisticRow of "statistics" from StatisticAt<'_> as at {
        /// The label of the sweep point; empty without a sweep.
        point: String, "" = at.replication.point.to_owned();
        /// The seed of the replication.
        seed: u64, "" = at.replication.outcome.seed;
        /// The link.
        link: String, "" = at.link.to_owned();
        /// The name of the statistic, as the discipline calls it.
        statistic: String, "" = at.name.to_string();
        /// The value, in the unit that the name gives.
        value: f64, "" = at.value;
    }
}

/// A number that the discipline of a link reports.
pub(crate) struct StatisticAt<'a> {
    replication: Replication<'a>,
    link: &'a str,
    name: Cow<'a, str>,
    value: f64,
}

/// The rows of a replication by link.
pub(crate) fn statistics(replication: Replication<'_>) -> impl Iterator<Item = StatisticRow> {
    let outcome = replication.outcome;
    outcome.links.iter().flat_map(move |link| {
        let own = link.statistics.iter().map(|(name, value)| (Cow::Borrowed(name.as_ref()), *value));
        let allocations = link.allocations.iter().filter_map(move |of| {
            let flow = outcome.flows.get(of.flow)?;
            Some((Cow::Owned(format!("allocation_mbps.{}", flow.name)), mbps(of.measured, outcome.measured)))
        });
        let at = move |(name, value)| StatisticAt { replication, link: &link.name, name, value };
        own.chain(allocations).map(move |of| StatisticRow::measured(&at(of)))
    })
}
