//! The top of the report: the throughput of each flow at every point on a common scale, and the table of all
//! points.

use std::fmt::Write;

use apportion_core::units::{Rate, Span};

use super::{crowd, customers, drops, sweeps};
use crate::figure::{Bar, COLOURS, Drawing, Range, bars, ranges};
use crate::headline;
use crate::html::{escape, informative, table};
use crate::panels::{MAX_BARS, share_bars};
use crate::phase_sensitivity;
use crate::quantities::{
    COMPLETION_P50, COMPLETION_P95, DELAY_P50, DELAY_P95, JAIN, QUEUE_DELAY_P50, QUEUE_DELAY_P95,
    QUEUE_DELAY_P99, RPM, THROUGHPUT, TOTAL_DROPS, TOTAL_MARKED, TOTAL_THROUGHPUT, UTILISATION,
};
use crate::rows::PhaseSensitivityRow;
use crate::run_results::{PointResults, RunResults};
use crate::shares::{Keys, flow_shares, group_shares, in_order};
use crate::statistics::{judged, merge, number};

/// Number of open panels, which fill a screen or two; the others are folded.
const OPEN_PANELS: usize = 12;
/// Maximum of panels; the figures of the sweep and tables show more points.
const MAX_PANELS: usize = 60;
/// Maximum bytes of all panels. Chosen: a page has room for about a hundred.
const PANEL_BUDGET: usize = 250_000;
/// Maximum of rows. Chosen: as many as fit a figure of a screen's height.
const MAX_RANGES: usize = 32;
/// A sweep of fewer points comes after their panels.
const SWEEP_FROM: usize = 5;
/// Maximum of rows of a table; others are in the CSV files.
const MAX_ROWS: usize = 200;
/// Maximum of columns of groups and of links. Chosen: as many as fit a wide screen.
const MAX_GROUP_COLUMNS: usize = 6;
const MAX_LINK_COLUMNS: usize = 2;
/// Number of flows up to which the simulator keeps distributions and time series of each.
const DETAILED_FLOWS: usize = 2_000;
/// Maximum of watched links with figures; others are in the table `links`.
const MAX_LINK_FIGURES: usize = 12;

pub(super) fn overview(run: &RunResults, keys: &Keys) -> String {
    let mut out = String::from("<h2 id=\"shares\">Throughput and entitlement</h2>\n");
    if run.points.iter().all(|p| p.summary().seeds.is_empty()) {
        out.push_str("<p>No replication has finished.</p>\n");
        return out;
    }
    let panels = panels(run, keys);
    out.push_str(&panels.legend);
    out.push_str(&panels.cards);
    let reasons = delays(run) + &drops::figures(run);
    if !reasons.is_empty() {
        let _ = writeln!(
            out,
            "<h2 id=\"queues\">Time in queue, drops and marks</h2>\n<div class=\"plots\">\n{reasons}</div>"
        );
    }
    // Figures show a sweep; panels show a few alternatives.
    let sweep = sweeps::section(run);
    out.insert_str(if run.points.len() < SWEEP_FROM { out.len() } else { 0 }, &sweep);
    out.push_str(&numbers(run));
    out.push_str(&customers::section(run));
    out.push_str(&phase_sensitivity(run));
    out
}

// ---------------------------------------------------------------------------------------------
// Bars

struct Panels {
    legend: String,
    cards: String,
}

fn panels(run: &RunResults, keys: &Keys) -> Panels {
    let shown = &run.points[..run.points.len().min(MAX_PANELS)];
    let by_group = shown.iter().any(|p| p.flows.len() > MAX_BARS);
    let replicated = shown.iter().any(|p| p.summary().seeds.len() > 1);
    let rows: Vec<Vec<Bar>> = shown.iter().map(|p| share_bars(&flow_shares(p), keys, by_group)).collect();
    // Intervals over two or three seeds are wide: they are clipped and do not determine the scale.
    let reach = |bar: &Bar| {
        let whisker = if by_group { bar.whisker.map_or(0.0, |(_, high)| high) } else { 0.0 };
        bar.value.max(bar.entitlement.unwrap_or(0.0)).max(whisker)
    };
    let max = rows.iter().flatten().map(reach).fold(0.0, f64::max);

    let mut out = reading(shown.len(), by_group, replicated);
    let names = keys.series_names();
    let mut cards: Vec<String> = Vec::new();
    for (at, (point, rows)) in shown.iter().zip(&rows).enumerate() {
        let drawing = bars(rows, max).of(THROUGHPUT_AXIS, &names);
        let card = bar_card(run, point, at, &drawing);
        if cards.iter().map(String::len).sum::<usize>() + card.len() > PANEL_BUDGET {
            break;
        }
        cards.push(card);
    }
    let (open, folded) = cards.split_at(cards.len().min(OPEN_PANELS));
    let _ = writeln!(out, "<div class=\"bars\">\n{}</div>", open.concat());
    if !folded.is_empty() {
        let _ = writeln!(
            out,
            "<details><summary>{} more points</summary><div class=\"bars\">\n{}</div></details>",
            folded.len(),
            folded.concat()
        );
    }
    if cards.len() < run.points.len() {
        let _ = writeln!(
            out,
            "<p class=\"note\">The first {} of {} points have a panel of their own.</p>",
            cards.len(),
            run.points.len()
        );
    }
    let hidden =
        |p: &PointResults| if by_group { group_shares(&flow_shares(p)).len() > MAX_BARS } else { false };
    if shown.iter().any(hidden) {
        let _ = writeln!(
            out,
            "<p class=\"note\">The first {MAX_BARS} groups are drawn; the table <code>flows</code> holds all.</p>"
        );
    }
    Panels { legend: legend(keys, &rows), cards: out }
}

/// The name of the axis of bars.
const THROUGHPUT_AXIS: &str = "throughput, Mb/s";

fn bar_card(run: &RunResults, point: &PointResults, at: usize, drawing: &Drawing) -> String {
    let name = escape(point.name());
    // The page of a single point begins with its sentence already.
    let said = match run.points.len() {
        1 => String::new(),
        _ => format!("<div><h3>{name}</h3>\n<p>{}</p></div>\n", escape(&headline::of_point(point))),
    };
    format!(
        "<section class=\"card\">{said}\
         <figure role=\"img\" data-rows=\"{}\" aria-label=\"Throughput and entitlement: {name}\">\n{}</figure>{}</section>\n",
        super::section_id(at),
        drawing.html(),
        of_many(point)
    )
}

/// The customers of a point with more flows than bars, and the distribution of throughput over the flows.
fn of_many(point: &PointResults) -> String {
    if point.flows.len() <= MAX_BARS {
        return String::new();
    }
    let customers = customers::bars(point);
    let customers = match customers.len() {
        0 | 1 => String::new(),
        _ => format!(
            "<figure role=\"img\" aria-label=\"Customers\"><figcaption><b>Customers, Mb/s</b></figcaption>\n{}</figure>\n",
            bars(
                &customers,
                customers.iter().map(|bar| bar.value.max(bar.entitlement.unwrap_or(0.0))).fold(0.0, f64::max)
            )
            .of(THROUGHPUT_AXIS, &["customers".to_owned()])
            .html()
        ),
    };
    customers + &crowd::crowd(point, &flow_shares(point))
}

fn legend(keys: &Keys, rows: &[Vec<Bar>]) -> String {
    let mut out = format!("<ul class=\"legend\">\n{}", swatches(keys));
    if rows.iter().flatten().any(|bar| bar.entitlement.is_some()) {
        out.push_str("<li><span class=\"entitled\"></span>entitlement</li>\n");
    }
    out.push_str("</ul>\n");
    out
}

/// The note that explains the bars.
fn reading(points: usize, by_group: bool, replicated: bool) -> String {
    let unit = if by_group { "Mean throughput of a flow, Mb/s" } else { "Throughput, Mb/s" };
    let whisker = match (by_group, replicated) {
        (true, _) => "; thin line: range over the flows",
        (false, true) => "; thin line: 95 % interval, with a triangle where it goes on beyond the figure",
        (false, false) => "",
    };
    let scale = if points > 1 { "; all panels have the same scale" } else { "" };
    format!("<p class=\"note\">{unit}{whisker}{scale}.</p>\n")
}

/// The keys' colours with their names.
pub(super) fn swatches(keys: &Keys) -> String {
    let mut out = String::new();
    // The colour of the others is that of a single one, too.
    let own = if keys.names().len() == COLOURS + 1 { COLOURS + 1 } else { COLOURS };
    for (i, name) in keys.names().iter().take(own).enumerate() {
        let _ = writeln!(out, "<li><span class=\"k{i}\"></span>{}</li>", escape(name));
    }
    if let Some(more @ 1..) = keys.names().len().checked_sub(own) {
        let _ = writeln!(out, "<li><span class=\"k{COLOURS}\"></span>{more} others</li>");
    }
    out
}

// ---------------------------------------------------------------------------------------------
// Numbers

fn numbers(run: &RunResults) -> String {
    let groups = names(run, |p| p.flows.iter().map(|f| f.group.clone()).collect());
    let links = watched(run);
    let shown_groups = &groups[..groups.len().min(MAX_GROUP_COLUMNS)];
    let shown_links = &links[..links.len().min(MAX_LINK_COLUMNS)];
    // The name of the only watched link is left out.
    let of = |link: &str| if links.len() > 1 { format!(" of {link}") } else { String::new() };

    let mut head: Vec<String> = vec!["Point".into(), "Total Mb/s".into()];
    head.extend(shown_links.iter().map(|l| format!("Utilisation{}", of(l))));
    let mut bases: Vec<String> = run.points.iter().map(jain_basis).collect();
    bases.dedup();
    let common_basis = bases.len() == 1;
    head.push(if common_basis { format!("Jain index ({})", bases[0]) } else { "Jain index".into() });
    if !common_basis {
        head.push("n, window".into());
    }
    head.extend(shown_groups.iter().map(|g| format!("{g}, Mb/s each")));
    for group in shown_groups {
        head.extend(["p50", "p95"].map(|q| format!("{group} delay {q}, ms")));
    }
    for link in shown_links {
        head.extend(["p50", "p95", "p99"].map(|q| format!("Queue delay{} {q}, ms", of(link))));
    }
    let transfers = names(run, |p| p.summary().metrics.transfers().map(str::to_owned).collect());
    let shown_transfers = &transfers[..transfers.len().min(MAX_LINK_COLUMNS)];
    for group in shown_transfers {
        head.extend(["p50", "p95"].map(|q| format!("{group} completion {q}, s")));
    }
    let probes = names(run, |p| p.summary().metrics.probes().map(str::to_owned).collect());
    let shown_probes = &probes[..probes.len().min(MAX_LINK_COLUMNS)];
    head.extend(shown_probes.iter().map(|group| format!("{group} RPM")));
    head.extend(["Drops".into(), "Marks".into()]);
    head.extend(shown_links.iter().map(|l| format!("Buffer{}", of(l))));

    let row = |point: &PointResults| {
        let metrics = &point.summary().metrics;
        let show = |name: &str| metrics.show(name).unwrap_or_else(|| "–".to_owned());
        let mut row = vec![point.name().to_owned(), show(TOTAL_THROUGHPUT.name)];
        row.extend(shown_links.iter().map(|l| show(&UTILISATION.at(l))));
        row.push(show(JAIN.name));
        if !common_basis {
            row.push(jain_basis(point));
        }
        row.extend(shown_groups.iter().map(|g| show(&THROUGHPUT.at(g))));
        for group in shown_groups {
            row.extend([DELAY_P50, DELAY_P95].map(|of| show(&of.at(group))));
        }
        for link in shown_links {
            row.extend([QUEUE_DELAY_P50, QUEUE_DELAY_P95, QUEUE_DELAY_P99].map(|of| show(&of.at(link))));
        }
        for group in shown_transfers {
            row.extend([COMPLETION_P50, COMPLETION_P95].map(|of| show(&of.at(group))));
        }
        row.extend(shown_probes.iter().map(|group| show(&RPM.at(group))));
        row.extend([TOTAL_DROPS, TOTAL_MARKED].map(|of| show(of.name)));
        let buffer = |link: &String| point.buffers.get(link).map_or("–", String::as_str).to_owned();
        row.extend(shown_links.iter().map(buffer));
        row
    };
    let rows: Vec<Vec<String>> = run.points.iter().take(MAX_ROWS).map(row).collect();
    let mut out = String::from("<h2 id=\"numbers\">Results by point</h2>\n");
    let (head, cells) = informative(&head, &rows, |cell| cell == "–" && !run.is_empty());
    out.push_str(&by_point(&head, &cells));
    if run.points.iter().any(|point| point.flows.len() > DETAILED_FLOWS) {
        let _ = writeln!(
            out,
            "<p class=\"note\">Delays and curves of flows are kept of at most {DETAILED_FLOWS} flows.</p>"
        );
    }
    let mut cut = Vec::new();
    for (what, shown, all) in [
        ("points", rows.len(), run.points.len()),
        ("groups", shown_groups.len(), groups.len()),
        ("watched links", shown_links.len(), links.len()),
        ("groups of transfers", shown_transfers.len(), transfers.len()),
    ] {
        if shown < all {
            cut.push(format!("{shown} of {all} {what}"));
        }
    }
    if !cut.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"note\">Shown: {}; the tables <code>flows</code> and <code>links</code> hold all.</p>",
            cut.join(", ")
        );
    }
    out
}

/// Maximum of points as columns. Chosen: as many as a page has room for.
const MAX_ABREAST: usize = 6;
/// Maximum of columns. Chosen: the width of a printed page.
const MAX_COLUMNS: usize = 11;

/// A row for each point, in tables no wider than a page; a column for each if there are few points.
fn by_point(head: &[String], rows: &[Vec<String>]) -> String {
    if rows.len() <= MAX_ABREAST {
        let column = |c: usize| rows.iter().filter_map(move |row| row.get(c).cloned());
        let names = std::iter::once("Quantity".to_owned()).chain(column(0)).collect::<Vec<_>>();
        let of = |(c, name): (usize, &String)| std::iter::once(name.clone()).chain(column(c)).collect();
        return table(&names, &head.iter().enumerate().skip(1).map(of).collect::<Vec<_>>());
    }
    let columns: Vec<usize> = (1..head.len()).collect();
    let part = |columns: &[usize]| {
        let of = |cells: &[String]| -> Vec<String> {
            std::iter::once(&0).chain(columns).filter_map(|&c| cells.get(c).cloned()).collect()
        };
        table(&of(head), &rows.iter().map(|row| of(row)).collect::<Vec<_>>())
    };
    columns.chunks(MAX_COLUMNS).map(part).collect()
}

/// The effects of moving every delay by a microsecond.
fn phase_sensitivity(run: &RunResults) -> String {
    let sentences = phase_sensitivity::sentences(run);
    if sentences.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h2 id=\"phase-sensitivity\">Phase sensitivity</h2>\n");
    let moved = run.points.iter().flat_map(|point| &point.phase_sensitivity).filter(|row| row.significant);
    let count = moved.count();
    if count == 0 {
        sentences.iter().for_each(|sentence| {
            let _ = writeln!(out, "<p>{}</p>", escape(sentence));
        });
        return out;
    }
    out.push_str(
        "<p class=\"warn\"><b>These numbers depend on phases.</b> Perturbed copies of the replications, with every delay moved by 1 µs up \
         or down, differ from moves to moves by more than chance (F test, 5 % over all comparisons with Holm's correction). The \
         intervals do not contain that. <code>jitter</code> of flows, random starts and different delays unlock phases.</p>\n",
    );
    let head = ["Point", "What", "Value", "Mean shift", "Largest shift", "p"].map(str::to_owned);
    let named = |point: &PointResults, row: &PhaseSensitivityRow| {
        std::iter::once(point.name().to_owned()).chain(phase_sensitivity::cells(row)).collect()
    };
    let rows: Vec<Vec<String>> = run
        .points
        .iter()
        .flat_map(|point| point.phase_sensitivity.iter().map(move |row| (point, row)))
        .filter(|(_, row)| row.significant)
        .take(MAX_ROWS)
        .map(|(point, row)| named(point, row))
        .collect();
    out.push_str(&table(&head, &rows));
    if rows.len() < count {
        let _ = writeln!(
            out,
            "<p class=\"note\">Shown: {} of {count}; the table <code>phase_sensitivity</code> holds all.</p>",
            rows.len()
        );
    }
    out
}

/// The basis of Jain's index: the number of flows and the measured time.
fn jain_basis(point: &PointResults) -> String {
    let seconds = point.summary().measured.map_or(0.0, Span::as_secs_f64);
    let n = judged(point.flows.iter().map(|f| f.entitlement.map(Rate::as_mbit_f64))).count();
    format!("n = {n}, {} s", super::short(seconds))
}

/// All names that `of` lists at any point, in numeric order.
fn names(run: &RunResults, of: impl Fn(&PointResults) -> Vec<String>) -> Vec<String> {
    in_order(run.points.iter().flat_map(of))
}

fn watched(run: &RunResults) -> Vec<String> {
    names(run, |p| p.summary().metrics.watched_links().map(str::to_owned).collect())
}

// ---------------------------------------------------------------------------------------------
// Queue delay

/// Queue delay of each watched link, one row for each point.
fn delays(run: &RunResults) -> String {
    let mut figures = String::new();
    let links = watched(run);
    let cut = match links.len() {
        all if all > MAX_LINK_FIGURES => format!(" {MAX_LINK_FIGURES} of {all} watched links are drawn."),
        _ => String::new(),
    };
    for link in links.iter().take(MAX_LINK_FIGURES) {
        let rows: Vec<Range> = run.points.iter().take(MAX_RANGES).filter_map(|p| range(p, link)).collect();
        if rows.is_empty() {
            continue;
        }
        let name = escape(link);
        let points_cut = match run.points.len() {
            all if all > MAX_RANGES => format!(" The first {MAX_RANGES} of {all} points."),
            _ => String::new(),
        };
        let _ = writeln!(
            figures,
            "<figure class=\"card\" role=\"img\" aria-label=\"Queue delay at {name}\">\
             <figcaption><b>Queue delay at {name}</b><br/>Dot: median. Thick line: p25 to p75. \
             Thin line: p1 to p99. Number: p99.{points_cut}{cut}</figcaption>\n{}</figure>",
            ranges(&rows).of("median, ms", &[]).html()
        );
    }
    figures
}

fn range(point: &PointResults, link: &str) -> Option<Range> {
    let parts: Vec<_> = point
        .outcomes
        .iter()
        .filter_map(|o| o.links.iter().find(|l| l.name == link).map(|l| &l.queue_delay))
        .collect();
    let delay = merge(&parts);
    let at = |share| delay.quantile(share).map(|span| span.as_secs_f64() * 1e3);
    Some(Range {
        label: point.name().to_owned(),
        wide: (at(0.01)?, at(0.99)?),
        narrow: (at(0.25)?, at(0.75)?),
        median: at(0.5)?,
        note: format!("{} ms", number(at(0.99)?)),
    })
}
