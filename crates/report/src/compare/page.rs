//! The comparison of stored runs as a page: differences of their scenarios, figures with all runs, and the
//! table of the terminal.

use std::fmt::Write as _;

use apportion_scenario::{Difference as Key, differences};

use super::{Comparison, are_single, cells, header, matching};
use crate::figure::{COLOURS, Panel, bars};
use crate::html::{escape, table};
use crate::page::{card, explorable};
use crate::panels::{MAX_BARS, Point, share_bars, sweep_panels_by};
use crate::playground;
use crate::run_results::name;
use crate::shares::{FlowShare, Keys, shares_of};
use crate::store::{StoredPoint, StoredRun};

/// Maximum of keys; others are in the texts of the scenarios.
const MAX_KEYS: usize = 60;
/// More keys than these are folded.
const FOLDED_FROM: usize = 12;
/// Maximum of points whose flows are drawn.
const MAX_POINTS: usize = 12;
/// The tables of the first points are open, those of others folded.
const OPEN: usize = 4;
/// Maximum of points with tables; others are printed by the terminal.
const MAX_TABLES: usize = 100;
/// Maximum bytes of figures. Chosen: a phone opens the page at once.
const BUDGET: usize = 900_000;
/// Maximum bytes of texts of scenarios, a third of that.
const MAX_TEXTS: usize = BUDGET / 3;
/// The name of the parameter that tells runs apart.
const RUN: &str = "run";

impl Comparison {
    /// The page of this comparison of `runs`.
    #[must_use]
    pub fn page(&self, runs: &[StoredRun]) -> String {
        let names: Vec<String> =
            (1..).zip(&self.runs).map(|(number, run)| format!("[{number}] {}", run.folder)).collect();
        let mut out = self.head(runs, &names);
        out.push_str(&self.scenarios(runs));
        out.push_str(&over_parameters(runs, &names));
        out.push_str(&flows(runs, &names));
        out.push_str(&self.numbers());
        explorable("Comparison of runs", "", &out, "")
    }

    fn head(&self, runs: &[StoredRun], names: &[String]) -> String {
        let mut out = String::from("<h1>Comparison of runs</h1>\n<ul class=\"legend\">\n");
        for (key, (name, run)) in names.iter().zip(runs).enumerate() {
            let seeds = match run.seeds.len() {
                1 => "1 seed".to_owned(),
                seeds => format!("{seeds} seeds"),
            };
            let state = if run.complete { "" } else { " (interrupted: incomplete)" };
            let _ = writeln!(
                out,
                "<li data-opens=\"scenario-{}\"><span class=\"k{}\"></span>{}: {}, {seeds}, scenario {}{state}</li>",
                key + 1,
                key.min(COLOURS),
                escape(name),
                escape(&run.title),
                run.hash
            );
        }
        out.push_str("</ul>\n");
        for (name, fault) in
            names.iter().zip(runs).flat_map(|(name, run)| run.faults.iter().map(move |f| (name, f)))
        {
            let _ = writeln!(out, "<p class=\"warn\">{}: NOT VALID: {}</p>", escape(name), escape(fault));
        }
        let _ = writeln!(out, "<p class=\"lead\">{}</p>", self.sentence());
        out
    }

    /// The sentence about how many metrics differ by more than their intervals.
    fn sentence(&self) -> String {
        let all = || self.rows.iter().flat_map(|row| &row.differences).flatten();
        let count = |verdict| all().filter(|difference| difference.overlap == verdict).count();
        let (apart, alike, unknown) = (count(Some(false)), count(Some(true)), count(None));
        match (apart + alike, unknown) {
            (0, 0) => "No metric was measured in all runs.".to_owned(),
            (0, _) => {
                "One of the runs has a single seed, so nothing is known of chance: run both with --seeds 5."
                    .to_owned()
            }
            (known, _) => format!(
                "{apart} of {known} metrics differ from those of [1] by more than their 95 % intervals; {alike} are not distinguishable."
            ),
        }
    }

    /// The keys in which the scenarios differ from the first.
    fn scenarios(&self, runs: &[StoredRun]) -> String {
        let mut out = String::from("<h2 id=\"scenarios\">What differs in the scenarios</h2>\n");
        let Some((first, others)) = runs.split_first() else { return out };
        for (number, other) in (2..).zip(others) {
            let keys = differences(&first.scenario, &other.scenario);
            if keys.is_empty() {
                let _ = writeln!(out, "<p>[1] and [{number}] are runs of the same scenario.</p>");
                continue;
            }
            let head = ["Key".to_owned(), "[1]".to_owned(), format!("[{number}]")];
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "–".to_owned());
            let row = |key: &Key| vec![key.path.clone(), shown(&key.from), shown(&key.to)];
            let rows: Vec<Vec<String>> = keys.iter().take(MAX_KEYS).map(row).collect();
            let table = table(&head, &rows);
            match keys.len() {
                many if many > FOLDED_FROM => {
                    let _ =
                        writeln!(out, "<details><summary>{many} keys</summary><div>{table}</div></details>");
                }
                _ => out.push_str(&table),
            }
            if keys.len() > MAX_KEYS {
                let more = keys.len() - MAX_KEYS;
                let _ = writeln!(out, "<p class=\"note\">{more} more keys differ.</p>");
            }
        }
        for text in (0..runs.len()).filter_map(|number| alone(runs, number)) {
            let _ = writeln!(out, "<p>{}</p>", escape(&text));
        }
        out + &texts(runs)
    }

    /// The rows of the terminal, a table for each point.
    fn numbers(&self) -> String {
        let mut out = String::from(
            "<h2 id=\"numbers\">Metrics</h2>\n<p class=\"note\">Means over seeds ± 95 % intervals; a difference is \
             “not distinguishable” where the intervals overlap.</p>\n",
        );
        let head = header(self.runs.len());
        let points: Vec<_> = self.rows.chunk_by(|a, b| a.point == b.point).collect();
        for (at, rows) in points.iter().enumerate().take(MAX_TABLES) {
            let open = if at < OPEN { " open=\"open\"" } else { "" };
            let label = rows.first().map_or("", |row| name(&row.point));
            let rows: Vec<Vec<String>> = rows.iter().map(|row| cells(row, "–")).collect();
            let _ = writeln!(
                out,
                "<details{open}><summary>{}</summary><div>\n{}</div></details>",
                escape(label),
                table(&head, &rows)
            );
        }
        if points.len() > MAX_TABLES {
            let more = points.len() - MAX_TABLES;
            let _ = writeln!(
                out,
                "<p class=\"note\">{more} more points: <code>apportion compare</code> prints all.</p>"
            );
        }
        out
    }
}

/// The scenarios, as far as there is room.
fn texts(runs: &[StoredRun]) -> String {
    let (mut out, mut left_out) = (String::new(), 0);
    for (number, run) in (1..).zip(runs) {
        let link = match run.is_in_real_time {
            true => String::new(),
            false => playground::seeds(&run.scenario, run.seeds.len()),
        };
        let text = format!(
            "<details><summary>Scenario of [{number}]</summary><div><pre id=\"scenario-{number}\"{link}>{}</pre></div></details>\n",
            escape(&run.scenario)
        );
        if out.len() + text.len() > MAX_TEXTS {
            left_out += 1;
            continue;
        }
        out.push_str(&text);
    }
    if left_out > 0 {
        let _ = writeln!(
            out,
            "<p class=\"note\">{left_out} more scenarios are in the folders of their runs.</p>"
        );
    }
    out
}

/// The points that several runs have, in each of them.
fn in_common(runs: &[StoredRun]) -> impl Iterator<Item = Vec<Option<&StoredPoint>>> {
    matching(runs).filter(|points| points.iter().flatten().count() > 1)
}

/// The sentence about points that only one run has, which no figure shows.
fn alone(runs: &[StoredRun], number: usize) -> Option<String> {
    let has = |run: &StoredRun, label: &str| run.points.iter().any(|point| point.label == label);
    let others = || runs.iter().enumerate().filter(|(other, _)| *other != number).map(|(_, run)| run);
    let points = runs.get(number)?.points.iter().filter(|_| !are_single(runs));
    let labels: Vec<&str> = points
        .filter(|point| !others().any(|run| has(run, &point.label)))
        .map(|point| name(&point.label))
        .collect();
    let more = if labels.len() > MAX_POINTS { " and others" } else { "" };
    let shown = &labels[..labels.len().min(MAX_POINTS)];
    (!labels.is_empty()).then(|| format!("Only [{}] has {}{more}.", number + 1, shown.join("; ")))
}

/// A figure for each quantity with all runs, each in its colour: over the parameters of their sweep, if they
/// share one.
fn over_parameters(runs: &[StoredRun], names: &[String]) -> String {
    let mut settings = Vec::new();
    for points in in_common(runs) {
        // Single points are matched whatever their labels.
        let own = points.first().copied().flatten().filter(|_| runs.iter().any(|run| run.points.len() > 1));
        for (point, name) in points.iter().zip(names) {
            let Some(point) = point else { continue };
            let mut all = own.map_or_else(Vec::new, |own| own.settings.clone());
            all.push((RUN.to_owned(), name.clone()));
            settings.push((all, &point.summary.metrics));
        }
    }
    let points: Vec<Point<'_>> =
        settings.iter().map(|(settings, metrics)| Point { settings, metrics }).collect();
    let panels = sweep_panels_by(&points, RUN).panels;
    section("Quantities", "Means over seeds; thin lines: 95 % intervals. Dashed: 1.", &[panels])
}

/// Throughput and entitlement of flows, the runs next to each other.
fn flows(runs: &[StoredRun], names: &[String]) -> String {
    let points: Vec<_> = in_common(runs).collect();
    let shown = &points[..points.len().min(MAX_POINTS)];
    let shares = |point: &Option<&StoredPoint>| point.map(|point| shares_of(&point.summary));
    let all: Vec<Vec<Option<Vec<FlowShare>>>> =
        shown.iter().map(|runs| runs.iter().map(shares).collect()).collect();
    let flows = || all.iter().flatten().flatten();
    let by_group = flows().any(|flows| flows.len() > MAX_BARS);
    let keys = Keys::of_names(flows().flatten().map(|flow| (flow.name.as_str(), flow.group.as_str())));
    let drawn: Vec<Vec<_>> = all
        .iter()
        .map(|runs| runs.iter().map(|flows| flows.as_ref().map(|f| share_bars(f, &keys, by_group))).collect())
        .collect();
    let bars_of = || drawn.iter().flatten().flatten().flatten();
    let max = bars_of().map(|bar| bar.value.max(bar.entitlement.unwrap_or(0.0))).fold(0.0, f64::max);
    let what = if by_group { "Mean throughput of a flow, Mb/s" } else { "Throughput, Mb/s" };
    let due = if bars_of().any(|bar| bar.entitlement.is_some()) { " (line: entitlement)" } else { "" };
    let mut panels = Vec::new();
    for (runs, points) in drawn.iter().zip(shown) {
        let label = points.iter().flatten().next().map_or("", |point| point.label.as_str());
        let mut of_point = Vec::new();
        for (rows, run) in runs.iter().zip(names) {
            let Some(rows) = rows else { continue };
            let note = if label.is_empty() { run.clone() } else { format!("{run}, {label}") };
            of_point.push(Panel {
                title: format!("{what}{due}"),
                note,
                legend: Vec::new(),
                drawing: bars(rows, max).of("throughput, Mb/s", &keys.series_names()),
            });
        }
        panels.push(of_point);
    }
    let note = match points.len() {
        all if all > MAX_POINTS => {
            format!("The first {MAX_POINTS} of {all} points. All panels have the same scale.")
        }
        _ => "All panels have the same scale.".to_owned(),
    };
    section("Flows", &note, &panels)
}

/// Figures below a heading; those of a row stand next to each other if there is room.
fn section(title: &str, note: &str, rows: &[Vec<Panel>]) -> String {
    let (mut figures, mut drawn) = (String::new(), 0);
    for panels in rows {
        let cards: String = panels.iter().map(card).collect();
        if figures.len() + cards.len() > BUDGET / 2 {
            break;
        }
        drawn += panels.len();
        let _ = writeln!(figures, "<div class=\"plots\">\n{cards}</div>");
    }
    let all: usize = rows.iter().map(Vec::len).sum();
    let cut = if drawn < all { format!(" {drawn} of {all} figures are shown.") } else { String::new() };
    if all == 0 {
        return String::new();
    }
    format!("<h2>{title}</h2>\n<p class=\"note\">{note}{cut}</p>\n{figures}")
}
