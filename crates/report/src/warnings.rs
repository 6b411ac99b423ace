//! Which links were full where the scenario does not look.

use std::collections::BTreeMap;

use crate::record::PointRecord;
use crate::rows::LinkRow;

/// Utilisation from which a link is full. Chosen: TCP keeps a bottleneck above it.
const FULL: f64 = 0.9;
/// By how much it must be fuller than any watched link: less is chance.
const MARGIN: f64 = 0.02;

/// A link that is not watched, was full, and was fuller than every watched one.
#[derive(Clone, Debug, PartialEq)]
pub struct HiddenBottleneck {
    /// Its name.
    pub link: String,
    /// Its utilisation, 0 to 1, as a mean over replications.
    pub utilisation: f64,
    /// The watched link that was fullest, and its utilisation; `None` if no link is watched.
    pub watched: Option<(String, f64)>,
}

/// How full links were in the replications of a point: the watched ones, and others that were full in each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Utilisations {
    /// By name: whether it is watched, and its sum over replications.
    links: BTreeMap<String, (bool, f64)>,
    /// How many replications there were.
    count: u32,
}

impl Utilisations {
    /// Adds a replication, unless it does not count.
    pub(crate) fn add(&mut self, rows: &[LinkRow]) {
        if rows.iter().any(|row| !row.valid) {
            return;
        }
        let mut links = BTreeMap::new();
        for row in rows.iter().filter(|row| row.watched || row.utilisation >= FULL) {
            let before = match self.links.get(&row.link) {
                Some((_, sum)) => *sum,
                None if self.count == 0 => 0.0,
                None => continue,
            };
            links.insert(row.link.clone(), (row.watched, before + row.utilisation));
        }
        self.links = links;
        self.count += 1;
    }

    /// The full links that are not watched and were fuller than every watched one, the fullest first.
    fn hidden(&self) -> Vec<HiddenBottleneck> {
        let means =
            || self.links.iter().map(|(name, (watched, sum))| (name, *watched, sum / f64::from(self.count)));
        let fullest = means().filter(|(_, watched, _)| *watched).max_by(|a, b| a.2.total_cmp(&b.2));
        let fullest = fullest.map(|(name, _, utilisation)| (name.clone(), utilisation));
        let is_fuller = |used: f64| fullest.as_ref().is_none_or(|(_, least)| used > least + MARGIN);
        let mut hidden: Vec<_> = means()
            .filter(|(_, watched, used)| !watched && is_fuller(*used))
            .map(|(link, _, utilisation)| HiddenBottleneck {
                link: link.clone(),
                utilisation,
                watched: fullest.clone(),
            })
            .collect();
        hidden.sort_by(|a, b| b.utilisation.total_cmp(&a.utilisation));
        hidden
    }
}

impl PointRecord {
    /// The links that were full in each replication and are not watched, while no watched link was as full; the fullest first.
    #[must_use]
    pub fn hidden_bottlenecks(&self) -> Vec<HiddenBottleneck> {
        self.summary().links.hidden()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of links, each with its name, whether it is watched, and its utilisation in two replications.
    fn hidden(links: &[(&str, bool, [f64; 2])]) -> Vec<(String, Option<String>)> {
        let row = |link: &str, watched: bool, seed: u64, utilisation: f64| -> LinkRow {
            let row = serde_json::json!({
                "point": "", "seed": seed, "link": link, "watched": watched, "rate_mbps": 1.0, "throughput_mbps": 1.0,
                "utilisation": utilisation, "sent_packets": 1, "sent_bytes": 1, "drops_early": 0, "drops_forced": 0,
                "drops_overflow": 0, "drops_policy": 0, "drops_push_out": 0, "lost_packets": 0, "marked_packets": 0,
                "queue_mean_packets": 0.0, "valid": seed < 9,
            });
            serde_json::from_value(row).unwrap()
        };
        let mut used = Utilisations::default();
        for (place, seed) in [(0, 1), (0, 9), (1, 2)] {
            // That of seed 9 does not count.
            let of = |(link, watched, both): &(&str, bool, [f64; 2])| {
                row(link, *watched, seed, if seed == 9 { 0.0 } else { both[place] })
            };
            used.add(&links.iter().map(of).collect::<Vec<_>>());
        }
        used.hidden().into_iter().map(|found| (found.link, found.watched.map(|(name, _)| name))).collect()
    }

    #[test]
    fn a_full_link_that_is_not_watched_is_found_with_the_fullest_that_is() {
        let wide = ("wide", true, [0.5, 0.5]);
        let found = hidden(&[
            ("a", false, [0.95, 0.97]),
            ("b", false, [0.99, 0.99]),
            wide,
            ("other", true, [0.1, 0.1]),
        ]);
        let pair = |name: &str| (name.to_owned(), Some("wide".to_owned()));
        assert_eq!(found, [pair("b"), pair("a")]);
        // Where no link is watched, a full one is enough.
        let found = hidden(&[("a", false, [0.99, 0.99]), ("wide", false, [0.5, 0.5])]);
        assert_eq!(found, [("a".to_owned(), None)]);
    }

    #[test]
    fn nothing_is_found_where_a_watched_link_is_as_full_or_no_other_is_full() {
        assert!(hidden(&[("a", false, [0.99, 0.99]), ("wide", true, [0.98, 0.98])]).is_empty());
        assert!(hidden(&[("a", false, [0.99, 0.7]), ("wide", false, [0.5, 0.5])]).is_empty());
        assert!(hidden(&[("a", false, [0.99, 0.7]), ("wide", true, [0.5, 0.5])]).is_empty());
    }
}
