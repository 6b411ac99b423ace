//! Figures with groups of bars.

use apportion_report::figure::{Group, groups};
use apportion_report::statistics::Estimate;

use crate::figure::BarFigure;
use crate::measure::Measure;
use crate::runs::{RunOutcomes, Runs};

use super::card::Card;

/// Bars, with their numbers in a folded table.
pub(super) fn bars(figure: &BarFigure, runs: &Runs<'_, RunOutcomes>, seeds: usize) -> Card {
    let estimates = |measure: &Measure| figure.estimates(measure, runs, seeds);
    // (series, group)
    let series: Vec<Vec<Option<Estimate>>> =
        figure.series.iter().map(|series| estimates(&series.measure)).collect();
    // Runs whose settings change have no constant target.
    let ideal = figure.ideal.as_ref().map(estimates).filter(|ideal| ideal.iter().any(Option::is_some));
    let at = |all: &[Option<Estimate>], k: usize| all.get(k).copied().flatten();
    let group = |(k, name): (usize, &String)| {
        let bar = |all: &Vec<Option<Estimate>>| at(all, k).map(|found| (found.mean, found.ci95));
        Group {
            name: name.clone(),
            bars: series.iter().map(bar).collect(),
            ideal: ideal.as_ref().and_then(|all| at(all, k)).map(|found| found.mean),
        }
    };
    let all: Vec<Group> = figure.groups.iter().enumerate().map(group).collect();
    let names: Vec<String> = figure.series.iter().map(|series| series.label.clone()).collect();
    let dashed = ideal.as_ref().map(|_| IDEAL);
    let caption =
        if seeds > 1 { format!("{}; thin lines: 95 % intervals.", figure.y) } else { figure.y.clone() };
    let heads =
        [vec!["Group".to_owned()], names.clone(), dashed.map(str::to_owned).into_iter().collect()].concat();
    let row = |(k, name): (usize, &String)| {
        let shown = |all: &Vec<Option<Estimate>>| {
            at(all, k).map_or_else(|| "–".to_owned(), |found| found.to_string())
        };
        std::iter::once(name.clone()).chain(series.iter().chain(&ideal).map(shown)).collect()
    };
    let rows: Vec<Vec<String>> = figure.groups.iter().enumerate().map(row).collect();
    Card {
        title: figure.title.clone(),
        caption,
        names,
        dashed,
        drawing: groups(&all),
        numbers: Some((heads, rows)),
    }
}

/// Label of the line across a group.
const IDEAL: &str = "ideal";
