//! Reasons of drops, and marks, of each group and at each watched link.

use super::sweeps::card;
use crate::panels::drop_panels;
use crate::run_results::RunResults;

/// Figures of drops and marks by reason; empty without drops and marks.
pub(super) fn figures(run: &RunResults) -> String {
    let points: Vec<_> = run.points.iter().map(|point| (point.name(), &point.summary().metrics)).collect();
    drop_panels(&points).iter().map(card).collect()
}
