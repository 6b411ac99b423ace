//! The exercises of `docs/exercises.md`: each scenario runs and gives the numbers of its table.

use std::collections::BTreeSet;

use apportion::rows::FlowRow;
use apportion::{Run, Scenario};

const PAGE: &str = include_str!("../../../../docs/exercises.md");

/// Returns the cells of the first table of a text, row by row, without the line below its head.
fn table(text: &str) -> Vec<Vec<&str>> {
    let lines =
        text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let rows = lines
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect());
    rows.enumerate().filter(|(index, _)| *index != 1).map(|(_, row)| row).collect()
}

/// Returns the value of a column for a group of flows, of all flows of a point.
fn measured(column: &str, group: &[&FlowRow], all: &[&FlowRow]) -> f64 {
    let sum = |flows: &[&FlowRow]| flows.iter().map(|flow| flow.throughput_mbps).sum::<f64>();
    let delays = |of: fn(&FlowRow) -> Option<f64>| group.iter().map(move |flow| of(flow).unwrap());
    let count = f64::from(u32::try_from(group.len()).unwrap());
    match column {
        "share" => 100.0 * sum(group) / sum(all),
        "each, Mb/s" => sum(group) / count,
        "delay, mean ms" => delays(|flow| flow.delay_mean_ms).sum::<f64>() / count,
        "delay, p95 ms" => delays(|flow| flow.delay_p95_ms).fold(0.0, f64::max),
        other => panic!("unknown column: {other}"),
    }
}

/// Compares the table of an exercise with what its scenario gives, rounded as the page has it.
fn check(exercise: &str) {
    let title = exercise.lines().next().unwrap();
    let block = exercise.split("```").nth(1).unwrap_or_else(|| panic!("{title}: no scenario"));
    let (fence, scenario) = block.split_once('\n').unwrap();
    assert!(["toml", "toml predict"].contains(&fence), "{title}: {fence}");
    let results = Run::new(&Scenario::from_text(scenario).unwrap()).seeds(1).simulate().unwrap();
    let flows: Vec<FlowRow> = results.flows().collect();
    let table = table(exercise);
    let (head, rows) = table.split_first().unwrap_or_else(|| panic!("{title}: no table"));
    for row in rows {
        let all: Vec<&FlowRow> = flows.iter().filter(|flow| flow.point == row[0]).collect();
        let (name, count) = row[1].split_once(" × ").unwrap_or((row[1], "1"));
        let group: Vec<&FlowRow> = all.iter().filter(|flow| flow.group == name).copied().collect();
        assert_eq!(group.len().to_string(), count, "{title}: {row:?}");
        for (column, cell) in head.iter().zip(row).skip(2) {
            let number = cell.trim_end_matches(" %");
            let decimals = number.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let value = format!("{:.decimals$}", measured(column, &group, &all));
            assert_eq!(value, number, "{title}: {row:?}, {column}");
        }
    }
    let points = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<BTreeSet<_>>();
    let shown = points(rows.iter().map(|row| row[0]).collect());
    assert_eq!(shown, points(flows.iter().map(|flow| &*flow.point).collect()), "{title}");
}

#[test]
fn exercises_give_the_numbers_of_their_tables() {
    let exercises: Vec<&str> = PAGE.split("\n## ").skip(1).collect();
    assert_eq!(exercises.len(), 10);
    exercises.into_iter().for_each(check);
}
