//! Utilisation of links over the replications of a point, and whether their queues rejected packets.

use std::collections::BTreeMap;

use apportion_core::units::Rate;

use crate::point_summary::{Failure, FullTags};
use crate::rows::LinkRow;
use crate::run_results::PointResults;

/// Utilisation from which a link may limit flows. Chosen: TCP keeps a bottleneck above it.
pub const FULL: f64 = 0.9;

/// The use of a link, as a mean over replications.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkUse {
    /// The link's name.
    pub link: String,
    /// Whether the scenario watches it.
    pub watched: bool,
    /// Bits transmitted over bits possible at its rate, 0 to 1.
    pub utilisation: f64,
    /// The mean rate, changes included.
    pub rate: Rate,
    /// Whether the queue dropped or marked packets in each replication.
    pub rejects: bool,
}

/// The watched links, and the others that were full or rejected packets in each replication.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkUses {
    /// Links by name, with sums over replications.
    links: BTreeMap<String, Sums>,
    /// Number of replications.
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct Sums {
    watched: bool,
    utilisation: f64,
    rate_mbps: f64,
    rejects: bool,
}

impl LinkUses {
    /// Adds a replication, unless it is not valid.
    pub(crate) fn add(&mut self, rows: &[LinkRow]) {
        if rows.iter().any(|row| !row.valid) {
            return;
        }
        let mut links = BTreeMap::new();
        for row in rows {
            let rejects = row.drops() > 0 || row.marked_packets > 0;
            let start = Sums { watched: row.watched, utilisation: 0.0, rate_mbps: 0.0, rejects: true };
            let before = match self.links.get(&row.link) {
                _ if !(row.watched || rejects || row.utilisation >= FULL) => continue,
                Some(before) => *before,
                None if self.count == 0 => start,
                None => continue,
            };
            let sums = Sums {
                utilisation: before.utilisation + row.utilisation,
                rate_mbps: before.rate_mbps + row.rate_mbps,
                rejects: before.rejects && rejects,
                ..before
            };
            links.insert(row.link.clone(), sums);
        }
        self.links = links;
        self.count += 1;
    }
}

impl PointResults {
    /// The watched links, and the others whose utilisation was at least [`FULL`] or whose queues dropped or
    /// marked packets in each replication; by name. Replications that are not valid are left out.
    #[must_use]
    pub fn link_uses(&self) -> Vec<LinkUse> {
        let LinkUses { links, count } = &self.summary().links;
        let mean = |sum: f64| sum / f64::from(*count);
        let of = |(link, sums): (&String, &Sums)| LinkUse {
            link: link.clone(),
            watched: sums.watched,
            utilisation: mean(sums.utilisation),
            rate: Rate::from_bit((mean(sums.rate_mbps) * 1e6).round() as u64),
            rejects: sums.rejects,
        };
        links.iter().map(of).collect()
    }

    /// The largest share of packets with more tickets than their tags hold; `None` if there were none.
    #[must_use]
    pub fn full_tags(&self) -> Option<&FullTags> {
        self.summary().full_tags.as_ref()
    }

    /// The first flow of each group with a connection that failed.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        &self.summary().failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(link: &str, watched: bool, utilisation: f64, drops: u64, marks: u64, valid: bool) -> LinkRow {
        let row = serde_json::json!({
            "point": "", "seed": 1, "link": link, "watched": watched, "rate_mbps": 8.0, "throughput_mbps": 1.0,
            "utilisation": utilisation, "sent_packets": 1, "sent_bytes": 1, "drops_early": 0, "drops_forced": 0,
            "drops_overflow": drops, "drops_policy": 0, "drops_push_out": 0, "lost_packets": 7, "marked_packets": marks,
            "queue_mean_packets": 0.0, "valid": valid,
        });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_link_that_is_not_watched_is_there_if_it_was_full_or_rejected_packets_each_time() {
        let mut uses = LinkUses::default();
        let replication = |second: bool, valid: bool| {
            let some = u64::from(!second);
            [
                row("watched", true, 0.5, some, 0, valid),
                row("full", false, 0.95, 0, some, valid),
                row("once", false, if second { 0.5 } else { 0.95 }, 0, 0, valid),
                row("drops", false, 0.3, 1, 0, valid),
                row("marks", false, 0.3, 0, 1, valid),
                row("loses on the wire", false, 0.3, 0, 0, valid),
            ]
        };
        uses.add(&replication(false, true));
        uses.add(&[row("watched", true, 0.0, 0, 0, false)]);
        uses.add(&replication(true, true));
        let found: Vec<(&str, bool)> =
            uses.links.iter().map(|(name, sums)| (name.as_str(), sums.rejects)).collect();
        assert_eq!(found, [("drops", true), ("full", false), ("marks", true), ("watched", false)]);
        assert_eq!(
            (uses.count, uses.links["full"].utilisation, uses.links["full"].rate_mbps),
            (2, 1.9, 16.0)
        );
    }
}
