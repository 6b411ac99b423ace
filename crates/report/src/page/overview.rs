//! The top of the report: who got what at every point, side by side on one scale, and the table of all points.

use std::fmt::Write;

use crate::figure::{Bar, COLOURS, Range, bars, ranges};
use crate::headline;
use crate::html::{escape, table};
use crate::metrics::Metrics;
use crate::record::{PointRecord, Run};
use crate::shares::{FlowShare, GroupShare, Keys, flow_shares, group_shares};
use crate::statistics::{Estimate, merge, number};

/// Chosen: more bars than this in a panel are shown by group.
const MAX_BARS: usize = 24;
/// Chosen: as many panels as can be taken in by scrolling once or twice.
const MAX_PANELS: usize = 24;
/// Chosen: longer tables are read from the CSV files.
const MAX_ROWS: usize = 200;
/// Chosen: as many columns of groups and of links as fit a wide screen.
const MAX_GROUP_COLUMNS: usize = 6;
const MAX_LINK_COLUMNS: usize = 2;

pub(super) fn overview(run: &Run, keys: &Keys) -> String {
    let mut out = String::from("<h2 id=\"shares\">Who got what</h2>\n");
    if run.points.iter().all(|p| p.outcomes.is_empty()) {
        out.push_str("<p>No replication has finished.</p>\n");
        return out;
    }
    out.push_str(&panels(run, keys));
    out.push_str(&numbers(run));
    out.push_str(&delays(run));
    out
}

// ---------------------------------------------------------------------------------------------
// Bars

fn panels(run: &Run, keys: &Keys) -> String {
    let shown = &run.points[..run.points.len().min(MAX_PANELS)];
    let by_group = shown.iter().any(|p| p.flows.len() > MAX_BARS);
    let replicated = shown.iter().any(|p| p.outcomes.len() > 1);
    let rows: Vec<Vec<Bar>> = shown.iter().map(|p| rows(p, keys, by_group)).collect();
    let reach = |bar: &Bar| {
        bar.value.max(bar.entitlement.unwrap_or(0.0)).max(bar.whisker.map_or(0.0, |(_, high)| high))
    };
    let max = rows.iter().flatten().map(reach).fold(0.0, f64::max);

    let mut out = legend(keys, &rows, by_group, replicated);
    out.push_str("<div class=\"bars\">\n");
    for (point, rows) in shown.iter().zip(&rows) {
        let name = escape(point.name(run));
        let _ = writeln!(
            out,
            "<section class=\"card\"><div><h3>{name}</h3>\n<p>{}</p></div>\n\
             <figure role=\"img\" aria-label=\"Throughput against entitlement: {name}\">\n{}</figure></section>",
            escape(&sentence(&headline::of_point(point))),
            bars(rows, max)
        );
    }
    out.push_str("</div>\n");
    if shown.len() < run.points.len() {
        let _ = writeln!(
            out,
            "<p class=\"note\">The first {} of {} points are drawn.</p>",
            shown.len(),
            run.points.len()
        );
    }
    let hidden =
        |p: &PointRecord| if by_group { group_shares(&flow_shares(p)).len() > MAX_BARS } else { false };
    if shown.iter().any(hidden) {
        let _ = writeln!(
            out,
            "<p class=\"note\">The first {MAX_BARS} groups are drawn; <code>flows.csv</code> holds all.</p>"
        );
    }
    out
}

/// `text` with a capital first letter.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

fn rows(point: &PointRecord, keys: &Keys, by_group: bool) -> Vec<Bar> {
    let flows = flow_shares(point);
    if by_group {
        group_shares(&flows).iter().take(MAX_BARS).map(|g| group_bar(g, keys)).collect()
    } else {
        flows.iter().map(|f| flow_bar(f, keys)).collect()
    }
}

fn flow_bar(flow: &FlowShare, keys: &Keys) -> Bar {
    let Estimate { mean, ci95, .. } = flow.throughput;
    Bar {
        label: flow.name.clone(),
        key: keys.of_flow(&flow.name, &flow.group),
        value: mean,
        whisker: ci95.map(|half| (mean - half, mean + half)),
        entitlement: flow.entitlement,
        note: number(mean),
    }
}

fn group_bar(group: &GroupShare, keys: &Keys) -> Bar {
    Bar {
        label: match group.members {
            1 => group.name.clone(),
            n => format!("{} ×{n}", group.name),
        },
        key: keys.of_flow(&group.name, &group.name),
        value: group.throughput,
        whisker: (group.members > 1).then_some(group.range),
        entitlement: group.entitlement,
        note: number(group.throughput),
    }
}

fn legend(keys: &Keys, rows: &[Vec<Bar>], by_group: bool, replicated: bool) -> String {
    let mut out = String::from("<ul class=\"legend\">\n");
    out.push_str(&swatches(keys));
    if rows.iter().flatten().any(|bar| bar.entitlement.is_some()) {
        out.push_str("<li><span class=\"entitled\"></span>entitlement</li>\n");
    }
    let unit = if by_group { "mean throughput of a flow, Mb/s" } else { "throughput, Mb/s" };
    let whisker = match (by_group, replicated) {
        (true, _) => "; thin line: from the flow with least to the flow with most",
        (false, true) => "; thin line: 95 % interval",
        (false, false) => "",
    };
    let scale = if rows.len() > 1 { "; the same scale everywhere" } else { "" };
    let _ = writeln!(out, "<li>{unit}{whisker}{scale}</li>\n</ul>");
    out
}

/// The keys' colours with their names.
pub(super) fn swatches(keys: &Keys) -> String {
    let mut out = String::new();
    for (i, name) in keys.names().iter().take(COLOURS).enumerate() {
        let _ = writeln!(out, "<li><span class=\"k{i}\"></span>{}</li>", escape(name));
    }
    if let Some(more @ 1..) = keys.names().len().checked_sub(COLOURS) {
        let _ = writeln!(out, "<li><span class=\"k{COLOURS}\"></span>{more} others</li>");
    }
    out
}

// ---------------------------------------------------------------------------------------------
// Numbers

fn numbers(run: &Run) -> String {
    let groups = names(run, |p| p.flows.iter().map(|f| f.group.clone()).collect());
    let links = watched(run);
    let shown_groups = &groups[..groups.len().min(MAX_GROUP_COLUMNS)];
    let shown_links = &links[..links.len().min(MAX_LINK_COLUMNS)];
    // With one watched link its name goes without saying.
    let of = |link: &str| if links.len() > 1 { format!(" of {link}") } else { String::new() };

    let mut head: Vec<String> = vec!["Point".into(), "Total Mb/s".into()];
    head.extend(shown_links.iter().map(|l| format!("Utilisation{}", of(l))));
    head.push("Jain index".into());
    head.push("n, window".into());
    head.extend(shown_groups.iter().map(|g| format!("{g}, Mb/s each")));
    for link in shown_links {
        head.extend(["p50", "p95", "p99"].map(|q| format!("Queue delay{} {q}, ms", of(link))));
    }
    head.extend(["Drops".into(), "Marks".into()]);

    let row = |point: &PointRecord| {
        let metrics = Metrics::of(point);
        let show = |name: &str| metrics.get(name).map_or_else(|| "–".to_owned(), |e| e.to_string());
        let mut row = vec![point.name(run).to_owned(), show("throughput_mbps")];
        row.extend(shown_links.iter().map(|l| show(&format!("utilisation/{l}"))));
        row.push(show("jain"));
        let seconds = point.outcomes.first().map_or(0.0, |o| o.measured.as_secs_f64());
        row.push(format!("{}, {} s", point.flows.len(), super::short(seconds)));
        row.extend(shown_groups.iter().map(|g| show(&format!("throughput_mbps/{g}"))));
        for link in shown_links {
            row.extend(["p50", "p95", "p99"].map(|q| show(&format!("queue_delay_{q}_ms/{link}"))));
        }
        row.extend([show("drops_packets"), show("marked_packets")]);
        row
    };
    let rows: Vec<Vec<String>> = run.points.iter().take(MAX_ROWS).map(row).collect();
    let mut out = String::from("<h2 id=\"numbers\">In numbers</h2>\n");
    out.push_str(&table(&head, &rows));
    let mut cut = Vec::new();
    for (what, shown, all) in [
        ("points", rows.len(), run.points.len()),
        ("groups", shown_groups.len(), groups.len()),
        ("watched links", shown_links.len(), links.len()),
    ] {
        if shown < all {
            cut.push(format!("{shown} of {all} {what}"));
        }
    }
    if !cut.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"note\">Shown: {}; <code>flows.csv</code> and <code>links.csv</code> hold all.</p>",
            cut.join(", ")
        );
    }
    out
}

/// What `of` lists at any point, sorted.
fn names(run: &Run, of: impl Fn(&PointRecord) -> Vec<String>) -> Vec<String> {
    let mut names: Vec<String> = run.points.iter().flat_map(of).collect();
    names.sort();
    names.dedup();
    names
}

fn watched(run: &Run) -> Vec<String> {
    let of = |p: &PointRecord| {
        let links = p.outcomes.iter().flat_map(|o| &o.links);
        links.filter(|l| l.watched).map(|l| l.name.clone()).collect()
    };
    names(run, of)
}

// ---------------------------------------------------------------------------------------------
// Queue delay

/// Queue delay of each watched link, point under point.
fn delays(run: &Run) -> String {
    let mut figures = String::new();
    for link in watched(run).iter().take(MAX_LINK_COLUMNS) {
        let rows: Vec<Range> =
            run.points.iter().take(MAX_PANELS).filter_map(|p| range(run, p, link)).collect();
        if rows.is_empty() {
            continue;
        }
        let name = escape(link);
        let _ = writeln!(
            figures,
            "<figure class=\"card\" role=\"img\" aria-label=\"Queue delay at {name}\">\
             <figcaption><b>Queue delay at {name}</b><br/>Dot: median (beside the line: p99). \
             Thick: middle half. Thin: p1 to p99.</figcaption>\n{}</figure>",
            ranges(&rows)
        );
    }
    if figures.is_empty() { figures } else { format!("<div class=\"plots\">\n{figures}</div>\n") }
}

fn range(run: &Run, point: &PointRecord, link: &str) -> Option<Range> {
    let parts: Vec<_> = point
        .outcomes
        .iter()
        .filter_map(|o| o.links.iter().find(|l| l.name == link).map(|l| &l.queue_delay))
        .collect();
    let delay = merge(&parts);
    let at = |share| delay.quantile(share).map(|span| span.as_secs_f64() * 1e3);
    Some(Range {
        label: point.name(run).to_owned(),
        wide: (at(0.01)?, at(0.99)?),
        narrow: (at(0.25)?, at(0.75)?),
        median: at(0.5)?,
        note: format!("{} ms", number(at(0.99)?)),
    })
}
