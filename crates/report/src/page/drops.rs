//! Why packets were dropped or marked: by reason, of each group and at each watched link.

use super::sweeps::card;
use crate::panels::drop_panels;
use crate::run_results::RunResults;

/// Figures of drops and marks by reason; empty if nothing was dropped or marked.
pub(super) fn figures(run: &RunResults) -> String {
    let points: Vec<_> = run.points.iter().map(|point| (point.name(), &point.summary().metrics)).collect();
    drop_panels(&points).iter().map(card).collect()
}
