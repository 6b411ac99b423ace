//! Results of reloads and of changes from the page, for metrics and as JSON.

use serde_json::{Value, json};

use super::metrics::Metrics;

/// Results of reloads and of changes from the page.
#[derive(Clone, Debug, Default)]
pub struct Reloads {
    pub from_file: Results,
    /// Changes from the page that were confirmed.
    pub from_page: Results,
    /// The changes or problems of the last one; none before the first.
    pub last: Option<Result<String, String>>,
}

/// Counts of applied and refused configurations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Results {
    /// Applied.
    pub applied: u64,
    /// Refused.
    pub refused: u64,
}

impl Results {
    /// Counts by their names in metrics.
    const fn named(self) -> [(&'static str, u64); 2] {
        [("applied", self.applied), ("refused", self.refused)]
    }
}

impl Reloads {
    pub fn add_to(&self, metrics: &mut Metrics) {
        for (name, help, results) in [
            ("reloads_total", "Reloads, by result.", self.from_file),
            ("changes_total", "Changes from the page, by result.", self.from_page),
        ] {
            let results = results.named().map(|(result, count)| (vec![("result", result)], count as f64));
            metrics.counter(name, help, results);
        }
        let is_applied = !matches!(self.last, Some(Err(_)));
        let help = "Whether the last reload was applied; 1 before the first.";
        metrics.gauge("last_reload_successful", help, [(Vec::new(), f64::from(u8::from(is_applied)))]);
    }

    /// The counts and the last result, of reloads from the file, as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        json!({
            "applied": self.from_file.applied,
            "refused": self.from_file.refused,
            "last": match &self.last {
                None => Value::Null,
                Some(Ok(changes)) => json!({ "applied": changes }),
                Some(Err(problems)) => json!({ "refused": problems }),
            },
        })
    }
}
