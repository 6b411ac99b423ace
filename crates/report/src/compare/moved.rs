//! Whether metrics moved beyond their intervals, for scripts.

use apportion_scenario::did_you_mean;

use super::{Comparison, ComparisonRow};

/// A metric of which a comparison cannot tell whether it moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotJudged {
    /// The first run has no such metric.
    #[error("the first run has no metric `{name}`{guess}: `apportion compare` prints those that it has")]
    Unknown {
        /// The name.
        name: String,
        /// A name that is close, as text; empty if none is.
        guess: String,
    },
    /// One of the runs has a single sample.
    #[error("`{0}` has no interval: run the scenarios with at least two seeds, such as --seeds 10")]
    NoInterval(String),
}

impl Comparison {
    /// The metrics of `names` that moved: a 95 % interval is apart from that of the first run, or a run did not measure the metric.
    /// A sentence for each. A name is that of a metric, such as `share/tcp`, or of a quantity, such as `share`, for all of its groups,
    /// customers and links.
    ///
    /// # Errors
    /// If the first run has no metric with one of the names, or the metric has no interval.
    pub fn moved(&self, names: &[String]) -> Result<Vec<String>, NotJudged> {
        let rows = || self.rows.iter().chain(&self.unlisted);
        if let Some(name) = names.iter().find(|name| !rows().any(|row| is_of(row, name))) {
            let known = rows().flat_map(|row| [row.metric.as_str(), quantity(row)]);
            return Err(NotJudged::Unknown { name: name.clone(), guess: did_you_mean(name, known) });
        }
        let mut moved = Vec::new();
        for row in rows().filter(|row| names.iter().any(|name| is_of(row, name))) {
            moved.extend(moves(row)?);
        }
        Ok(moved)
    }
}

/// The quantity of a row: its metric without the group, customer or link.
fn quantity(row: &ComparisonRow) -> &str {
    row.metric.split_once('/').map_or(&row.metric, |(quantity, _)| quantity)
}

fn is_of(row: &ComparisonRow, name: &str) -> bool {
    row.metric == name || quantity(row) == name
}

/// A sentence for each run in which the metric of a row moved.
fn moves(row: &ComparisonRow) -> Result<Vec<String>, NotJudged> {
    let point = if row.point.is_empty() { String::new() } else { format!(" of {}", row.point) };
    let name = format!("{}{point}", row.metric);
    let [Some(first), others @ ..] = &row.measured[..] else { return Ok(Vec::new()) };
    let mut moved = Vec::new();
    for ((number, other), difference) in (2..).zip(others).zip(&row.differences) {
        let (Some(other), Some(difference)) = (other, difference) else {
            moved.push(format!("{name}: [{number}] did not measure it"));
            continue;
        };
        match difference.overlap {
            None => return Err(NotJudged::NoInterval(name)),
            Some(true) => {}
            Some(false) => {
                let unit = if row.unit.is_empty() { String::new() } else { format!(" {}", row.unit) };
                moved.push(format!("{name}: {first}{unit} in [1], {other}{unit} in [{number}]"));
            }
        }
    }
    Ok(moved)
}
