//! The section of one point: figures over time, distributions and tables.

use std::collections::BTreeMap;
use std::fmt::Write;

use apportion_core::queue::DropReason;
use apportion_core::units::Rate;
use apportion_runtime::due::{Event, FlowDue};
use apportion_runtime::outcome::LinkOutcome;

use super::overview::swatches;
use super::series;
use crate::due::{Reached, Response, Worst, responses};
use crate::figure::{COLOURS, Curve, Drawing, Level, Plot, XAxis, curves, curves_with_events};
use crate::html::{escape, informative, table, table_about};
use crate::quantities::{BITRATE, MOS, MOUTH_TO_EAR, Quantity, STALL_RATIO, STALLS, STARTUP, SWITCHES};
use crate::rows::{CompletionAt, CompletionRow, Field, FlowAt, FlowRow, LinkAt, LinkRow};
use crate::run_results::{PointResults, RunResults};
use crate::shares::{FlowShare, Keys, flow_shares, in_order, natural};
use crate::statistics::{Estimate, mean, nearest_rank, number};

/// Maximum of flows in a table; others are in the CSV files.
const MAX_FLOWS: usize = 120;
/// A table longer than this is folded.
const FOLDED_FROM: usize = 16;
/// Maximum of links; others are in the table `links`.
const MAX_LINKS: usize = 8;

/// The ranges of the vertical axes and of the axes of delays, common to all points so that figures are comparable.
pub(super) struct Scales {
    throughput: f64,
    window: f64,
    allocation: f64,
    backlog: f64,
    one_way: XAxis,
    in_queue: XAxis,
}

impl Scales {
    pub(super) fn of(points: &[PointResults], keys: &Keys) -> Self {
        let (one_way, in_queue) =
            (points.iter().flat_map(|point| series::one_way_delay(point, keys)), queue_delays(points));
        let (one_way, in_queue) = (delay_axis(one_way), delay_axis(in_queue));
        let mut all = Self { throughput: 0.0, window: 0.0, allocation: 0.0, backlog: 0.0, one_way, in_queue };
        for point in points {
            let reach = |c: &Curve| {
                let line = c.line.iter().map(|p| p.1);
                line.chain(c.band.iter().map(|b| b.2)).fold(0.0, f64::max)
            };
            let top = series::throughput(point, keys).iter().map(reach).fold(0.0, f64::max);
            all.throughput = all.throughput.max(top).max(levels(point).into_iter().fold(0.0, f64::max));
            all.window = series::windows(point, keys).iter().map(reach).fold(all.window, f64::max);
            let step = point.sample.as_secs_f64();
            for link in watched(point) {
                let allocations = series::allocations(point, link, keys);
                all.allocation = allocations.iter().map(reach).fold(all.allocation, f64::max);
                all.backlog = all.backlog.max(reach(&series::backlog(link, step)));
            }
        }
        // Leaves room for the label in the shaded part.
        all.throughput *= 1.12;
        all.window = (all.window * 1.12).max(1.0);
        all.allocation *= 1.12;
        all.backlog = (all.backlog * 1.12).max(1.0);
        all
    }
}

/// The axis of these distributions, from the least delay to the longest: logarithmic if the delay that nearly
/// all packets exceed is less than a tenth of the longest. Chosen: a linear axis is readable up to that, and
/// a logarithmic one over three decades.
fn delay_axis(curves: impl Iterator<Item = Curve>) -> XAxis {
    let (mut least, mut low, mut high) = (f64::INFINITY, f64::INFINITY, 0.0_f64);
    for (x, share) in curves.flat_map(|curve| curve.line) {
        (least, high) = (least.min(x), high.max(x));
        if share >= 0.01 && x > 0.0 {
            low = low.min(x);
        }
    }
    let low = low.max(high / 1e3);
    match high > 10.0 * low {
        true => XAxis::LogDelay { low, high },
        false => XAxis::Delay { low: least.min(high), high: high.max(0.001) },
    }
}

/// Watched links, in the first replication.
fn watched(point: &PointResults) -> impl Iterator<Item = &LinkOutcome> {
    point.outcomes.iter().take(1).flat_map(|o| &o.links).filter(|l| l.watched).take(MAX_LINKS)
}

fn queue_delays(points: &[PointResults]) -> impl Iterator<Item = Curve> {
    points.iter().flat_map(|of| watched(of).filter_map(|link| series::queue_delay(of, &link.name)))
}

/// Times of events in the first replication, in seconds.
fn event_times(point: &PointResults) -> Vec<f64> {
    let events = point.replication(0).and_then(|of| of.dues).map_or(&[][..], |dues| &dues.events);
    events.iter().map(|event| event.at.as_secs_f64()).collect()
}

/// The responses of flows to the events of the first replication.
fn event_table(point: &PointResults) -> String {
    let Some(first) = point.replication(0) else { return String::new() };
    let (outcome, events) = (first.outcome, first.dues.map_or(&[][..], |dues| &dues.events));
    if events.is_empty() {
        return String::new();
    }
    let all = responses(first);
    let row = |(at, event): (usize, &Event)| {
        let of_event = || all.iter().filter(|response| response.event == at);
        let name = |flow: usize| outcome.flows.get(flow).map_or("", |flow| flow.name.as_str());
        let time = |response: &Response| Some((response.reached.after()?, response.flow));
        let last = of_event().filter_map(time).max();
        let never: Vec<usize> =
            of_event().filter(|response| response.reached == Reached::Never).map(|r| r.flow).collect();
        let is_short = of_event().any(|response| response.reached == Reached::Unknown);
        let never = match never[..] {
            [] => "–".to_owned(),
            [only] => name(only).to_owned(),
            _ => format!("{} flows", never.len()),
        };
        let last = match last {
            Some((time, flow)) => format!("{} ({})", number(time.as_secs_f64()), name(flow)),
            None if is_short => "too short to judge".to_owned(),
            None => "–".to_owned(),
        };
        vec![number(event.at.as_secs_f64()), event.what.clone(), last, never]
    };
    let rows: Vec<Vec<String>> = events.iter().enumerate().take(MAX_FLOWS).map(row).collect();
    let head =
        heads(["At s", "Event", "Seconds to 90 % of entitlement (slowest)", "Not before the next event"]);
    format!("<h4>Events, seed {}</h4>\n{}", outcome.seed, table(&head, &rows))
}

/// Whether the entitlement of a flow changes within the measured part of the first replication.
fn is_due_varying(point: &PointResults) -> bool {
    let Some(dues) = point.replication(0).and_then(|of| of.dues) else { return false };
    let begin = (point.measure_from.as_nanos().div_ceil(point.sample.as_nanos().max(1))) as usize;
    let varies = |due: &FlowDue| {
        due.series.get(begin..).is_some_and(|all| all.windows(2).any(|pair| pair[0] != pair[1]))
    };
    dues.flows.iter().any(varies)
}

/// The distinct entitlements of a point, unless they vary in time or there are too many to draw as lines.
fn levels(point: &PointResults) -> Vec<f64> {
    if is_due_varying(point) {
        return Vec::new();
    }
    let mut levels: Vec<f64> =
        point.flows.iter().filter_map(|f| f.entitlement).map(Rate::as_mbit_f64).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup_by(|a, b| (*a - *b).abs() <= 0.005 * b.abs());
    if levels.len() > COLOURS { Vec::new() } else { levels }
}

pub(super) fn legend(points: &[PointResults], keys: &Keys) -> String {
    let mut out = format!("<ul class=\"legend\">\n{}", swatches(keys));
    if points.iter().any(|p| !levels(p).is_empty()) {
        out.push_str("<li><span class=\"level\"></span>entitlement</li>\n");
    }
    if points.iter().any(|p| watched(p).next().is_some()) {
        out.push_str("<li><span class=\"line\"></span>queue length and queue delay</li>\n");
    }
    let seed = points.iter().find_map(|p| p.outcomes.first()).map_or(0, |o| o.seed);
    let scale = if points.len() > 1 { "; all points have the same scales" } else { "" };
    let _ = writeln!(
        out,
        "<li>Coloured delays are one way. Over time: seed {seed}, shaded from lowest to highest. \
         Delays and tables: all seeds{scale}.</li>\n</ul>"
    );
    out
}

/// The section of one point; `index` makes its id.
pub(super) fn section(
    run: &RunResults,
    point: &PointResults,
    keys: &Keys,
    scales: &Scales,
    index: usize,
    open: bool,
) -> String {
    let mut out = format!(
        "<details class=\"point\" id=\"{}\"{}><summary>{}</summary><div>\n",
        super::section_id(index),
        if open { " open=\"open\"" } else { "" },
        escape(point.name())
    );
    if !point.settings.is_empty() {
        let settings: Vec<String> = point.settings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        let _ = writeln!(out, "<p class=\"note\"><code>{}</code></p>", escape(&settings.join(", ")));
    }
    if point.outcomes.is_empty() {
        out.push_str("<p>No replication has finished.</p>\n</div></details>\n");
        return out;
    }
    out.push_str(&figures(point, keys, scales));
    out.push_str(&event_table(point));
    out.push_str(&flow_table(point, run.points.len() > 1));
    out.push_str(&link_table(point));
    out.push_str(&completion_table(point));
    out.push_str(&media_table(point));
    out.push_str("</div></details>\n");
    out
}

fn figures(point: &PointResults, keys: &Keys, scales: &Scales) -> String {
    let name = escape(point.name());
    let mut out = String::from("<div class=\"plots\">\n");
    let names = keys.series_names();
    let mut figure = |title: &str, quantity: &str, drawing: Drawing| {
        let _ = writeln!(
            out,
            "<figure class=\"card\" role=\"img\" aria-label=\"{title}: {name}\">\
             <figcaption><b>{title}</b></figcaption>\n{}</figure>",
            drawing.of(quantity, &names).html()
        );
    };
    let step = point.sample.as_secs_f64();
    // Many flows have no series, but links have.
    let of_flows = point.outcomes.iter().take(1).flat_map(|o| o.flows.iter().map(|f| f.series.len()));
    let samples = of_flows.chain(watched(point).map(|l| l.backlog.len())).max().unwrap_or(0);
    let time = XAxis::Time { end: samples as f64 * step, warm_up: point.measure_from.as_secs_f64() };
    let flow_curves = series::throughput(point, keys);
    if flow_curves.iter().any(|curve| !curve.line.is_empty()) {
        let plot = Plot {
            x: time.clone(),
            y_min: 0.0,
            y_max: scales.throughput,
            levels: levels(point).into_iter().map(|at| Level { at, span: None }).collect(),
        };
        figure("Throughput of a flow, Mb/s", "throughput, Mb/s", curves(&plot, &flow_curves));
    }
    let shares = series::shares(point, keys);
    if !shares.is_empty() {
        let all = Level { at: 1.0, span: None };
        let plot = Plot { x: time.clone(), y_min: 0.0, y_max: series::MAX_SHARE, levels: vec![all] };
        let title = "Throughput over entitlement at the time (cut at 2; thin lines: events)";
        let drawing = curves_with_events(&plot, &shares, &event_times(point));
        figure(title, "throughput over entitlement", drawing);
    }
    let windows = series::windows(point, keys);
    if !windows.is_empty() {
        let plot = Plot { x: time.clone(), y_min: 0.0, y_max: scales.window, levels: Vec::new() };
        figure(
            "Congestion window of a flow, segments",
            "congestion window, segments",
            curves(&plot, &windows),
        );
    }
    for link in watched(point).filter(|l| !l.allocations.is_empty()) {
        let plot = Plot { x: time.clone(), y_min: 0.0, y_max: scales.allocation, levels: Vec::new() };
        let title = format!("Allocation at {} (shaded: difference to throughput), Mb/s", escape(&link.name));
        let drawing = curves(&plot, &series::allocations(point, link, keys));
        figure(&title, "allocation, Mb/s", drawing);
    }
    for link in watched(point).filter(|l| !l.backlog.is_empty()) {
        let plot = Plot { x: time.clone(), y_min: 0.0, y_max: scales.backlog, levels: Vec::new() };
        let title = format!("Queue at {}, packets", escape(&link.name));
        let drawing = curves(&plot, &[series::backlog(link, step)]).with_rows(|_| link.name.clone());
        figure(&title, "queue, packets", drawing);
    }
    let mut delay = |title: &str, axis: &XAxis, all: Vec<Curve>, row: &str| {
        let plot = Plot { x: axis.clone(), y_min: 0.0, y_max: 1.0, levels: Vec::new() };
        figure(title, "share of packets", curves(&plot, &all).with_rows(|_| row.to_owned()));
    };
    let one_way = series::one_way_delay(point, keys);
    if !one_way.is_empty() {
        delay("Distribution of one-way delay (share of packets)", &scales.one_way, one_way, "");
    }
    for link in watched(point) {
        if let Some(curve) = series::queue_delay(point, &link.name) {
            let title =
                format!("Distribution of time in the queue at {} (share of packets)", escape(&link.name));
            delay(&title, &scales.in_queue, vec![curve], &link.name);
        }
    }
    out.push_str("</div>\n");
    out
}

/// A row of a table: its subject, with its data in each replication that has it.
type SeedsOf<'a, T, S> = (T, Vec<&'a S>);

/// The cell of a column in each row.
type CellOf<'a, T, S> = Box<dyn Fn(&SeedsOf<'a, T, S>) -> String>;

/// The columns of a table, each with its head.
struct Columns<'a, T, S>(Vec<(String, CellOf<'a, T, S>)>);

impl<'a, T, S> Columns<'a, T, S> {
    /// Adds a column about the subjects of rows.
    fn about(mut self, head: &str, cell: impl Fn(&T) -> String + 'static) -> Self {
        self.0.push((head.to_owned(), Box::new(move |(of, _)| cell(of))));
        self
    }

    /// Adds a column of a number of each replication: the mean and interval over those that have it.
    fn measured<N: Field>(mut self, head: &str, of: impl Fn(&S) -> N + 'static) -> Self {
        let cell = move |(_, seeds): &SeedsOf<'a, T, S>| {
            let numbers: Vec<f64> = seeds.iter().filter_map(|seed| of(seed).cell().number()).collect();
            Estimate::of(&numbers).map_or_else(|| "–".to_owned(), |estimate| estimate.to_string())
        };
        self.0.push((head.to_owned(), Box::new(cell)));
        self
    }

    /// Adds a column for each reason of drops.
    fn drops(self, of: impl Fn(&S, DropReason) -> u64 + Copy + 'static) -> Self {
        DropReason::ALL.into_iter().fold(self, |columns, reason| {
            let head = format!("Drops {}", reason.name().replace('_', "-"));
            columns.measured(&head, move |seed| of(seed, reason))
        })
    }

    /// The table of these rows and their groups, without the columns whose cells are all 0 or empty.
    fn table(&self, rows: &[SeedsOf<'a, T, S>], groups: &[&str]) -> String {
        let head: Vec<String> = self.0.iter().map(|(head, _)| head.clone()).collect();
        let cells = |row| self.0.iter().map(|(_, cell)| cell(row)).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(cells).collect();
        let (head, rows) = informative(&head, &rows, |cell| cell == "0" || cell == "–");
        table_about(&head, &rows, groups)
    }
}

fn heads<const N: usize>(names: [&str; N]) -> Vec<String> {
    names.map(str::to_owned).to_vec()
}

fn flow_table(point: &PointResults, folded: bool) -> String {
    let shares = flow_shares(point);
    let by_name = point
        .replications()
        .map(|of| FlowAt::all(of).map(|flow| (flow.outcome.name.as_str(), flow)).collect());
    let seeds: Vec<BTreeMap<&str, FlowAt<'_>>> = by_name.collect();
    let worst_of: BTreeMap<&str, Worst> =
        point.summary().flows.iter().filter_map(|of| Some((of.name.as_str(), of.worst?))).collect();
    let columns = Columns::<(&FlowShare, Option<Worst>), FlowAt<'_>>(Vec::new())
        .about("Flow", |(share, _)| share.name.clone())
        .about("Throughput Mb/s", |(share, _)| share.throughput.to_string())
        .about("Entitlement Mb/s", |(share, _)| share.entitlement.map_or_else(|| "–".to_owned(), number))
        .about("Share of entitlement", |(share, _)| {
            share.ratio().map_or_else(|| "–".to_owned(), |r| format!("{:.0} %", r * 100.0))
        })
        .about("Worst second", |(_, of)| of.as_ref().map_or_else(|| "–".to_owned(), worst))
        .measured("Goodput Mb/s", FlowRow::goodput_mbps)
        .measured("Delay p50 ms", FlowRow::delay_p50_ms)
        .measured("Delay p95 ms", FlowRow::delay_p95_ms)
        .measured("Sent packets", FlowRow::sent_packets)
        .drops(FlowRow::drops_at)
        .measured("Lost", FlowRow::lost_packets)
        .measured("Marks", FlowRow::marked_packets)
        .measured("Retransmits", FlowRow::retransmits)
        .measured("Timeouts", FlowRow::timeouts)
        .measured("Full tags", |flow| FlowRow::full_tags(flow).unwrap_or(0))
        .measured("Notifications", |flow| FlowRow::notifications(flow).unwrap_or(0))
        .measured("Skipped writes", |flow| FlowRow::skipped_writes(flow).unwrap_or(0))
        .measured("Failed connections", |flow| FlowRow::failed_connections(flow).unwrap_or(0));
    let rows = shares.iter().take(MAX_FLOWS).map(|share| {
        let name = share.name.as_str();
        let about = (share, worst_of.get(name).copied());
        (about, seeds.iter().filter_map(|flows| flows.get(name)).collect())
    });
    let rows: Vec<_> = rows.collect();
    let groups: Vec<&str> = rows.iter().map(|((share, _), _)| share.group.as_str()).collect();
    let mut body = columns.table(&rows, &groups);
    if rows.len() < shares.len() {
        let _ = writeln!(
            body,
            "<p class=\"note\">{} of {} flows; the table <code>flows</code> holds all.</p>",
            rows.len(),
            shares.len()
        );
    }
    if folded || rows.len() > FOLDED_FROM {
        format!("<details><summary>Flows ({})</summary><div>\n{body}</div></details>\n", shares.len())
    } else {
        format!("<h4>Flows</h4>\n{body}")
    }
}

/// The worst second of a flow as text.
fn worst(worst: &Worst) -> String {
    format!("{:.0} % at {} s", worst.share * 100.0, number(worst.from.as_secs_f64()))
}

/// Watched links, and links that dropped, lost or marked packets, with drops by reason.
fn link_table(point: &PointResults) -> String {
    let seeds: Vec<Vec<LinkAt<'_>>> = point.replications().map(|of| LinkAt::all(of).collect()).collect();
    let Some(first) = seeds.first() else { return String::new() };
    let eventful = |i: usize| {
        seeds.iter().filter_map(|links| links.get(i)).any(|link| {
            LinkRow::watched(link)
                || LinkRow::lost_packets(link) > 0
                || LinkRow::marked_packets(link) > 0
                || !link.outcome.dropped.is_empty()
        })
    };
    let name = |i: usize| first[i].outcome.name.as_str();
    let mut links: Vec<usize> = (0..first.len()).filter(|&i| eventful(i)).collect();
    links.sort_by(|&a, &b| natural(name(a), name(b)));
    if links.is_empty() {
        return String::new();
    }
    let columns = Columns::<(&str, &str), LinkAt<'_>>(Vec::new())
        .about("Link", |(name, _)| (*name).to_owned())
        .measured("Rate Mb/s", LinkRow::rate_mbps)
        .about("Buffer", |(_, buffer)| (*buffer).to_owned())
        .measured("Utilisation", LinkRow::utilisation)
        .measured("Mean queue packets", LinkRow::queue_mean_packets)
        .measured("Sent packets", LinkRow::sent_packets)
        .drops(LinkRow::drops_at)
        .measured("Lost", LinkRow::lost_packets)
        .measured("Marks", LinkRow::marked_packets);
    let row = |&i: &usize| {
        let about = (name(i), point.buffers.get(name(i)).map_or("–", String::as_str));
        (about, seeds.iter().filter_map(|links| links.get(i)).collect())
    };
    let rows: Vec<_> = links.iter().take(MAX_FLOWS).map(row).collect();
    let cut = match links.len() {
        all if all > MAX_FLOWS => {
            format!(
                "<p class=\"note\">{MAX_FLOWS} of {all} links; the table <code>links</code> holds all.</p>\n"
            )
        }
        _ => String::new(),
    };
    format!("<h4>Links</h4>\n{}{cut}", columns.table(&rows, &[]))
}

/// Classes of file sizes by decade: (below, name).
const SIZES: [(u64, &str); 4] = [
    (10_000, "below 10 kB"),
    (100_000, "10 to 100 kB"),
    (1_000_000, "0.1 to 1 MB"),
    (u64::MAX, "1 MB and more"),
];

fn completion_table(point: &PointResults) -> String {
    let mut groups: BTreeMap<&str, Vec<CompletionAt<'_>>> = BTreeMap::new();
    for done in point.replications().flat_map(CompletionAt::all) {
        groups.entry(&done.flow.group).or_default().push(done);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|a, b| natural(a.0, b.0));
    let mut rows = Vec::new();
    for (group, done) in groups {
        let mut from = 0;
        for (below, size) in SIZES {
            let class = done.iter().filter(|done| (from..below).contains(&CompletionRow::size_bytes(done)));
            let mut took: Vec<f64> = class.map(CompletionRow::took_s).collect();
            took.sort_by(f64::total_cmp);
            from = below;
            let at = |share| nearest_rank(&took, share).map_or_else(|| "–".to_owned(), number);
            if !took.is_empty() {
                let name = format!("{group}, {size}");
                let mean = mean(&took).map_or_else(|| "–".to_owned(), number);
                rows.push(vec![
                    name,
                    took.len().to_string(),
                    mean,
                    at(0.5),
                    at(0.9),
                    at(0.95),
                    at(0.99),
                    at(1.0),
                ]);
            }
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    let head =
        heads(["Completion times", "Transfers", "Mean s", "p50 s", "p90 s", "p95 s", "p99 s", "max s"]);
    format!("<h4>Finite transfers, all seeds</h4>\n{}", table(&head, &rows))
}

/// The quality of media by group: means over its flows and all seeds.
fn media_table(point: &PointResults) -> String {
    let metrics = &point.summary().metrics;
    let shown = [BITRATE, STARTUP, STALLS, STALL_RATIO, SWITCHES, MOUTH_TO_EAR, MOS];
    // Every video has a number of stalls, and every call a score.
    let all = metrics.of_each(STALLS).chain(metrics.of_each(MOS));
    let groups = in_order(all.map(|(group, _)| group.to_owned()));
    let cell = |of: Quantity, group: &str| metrics.show(&of.at(group)).unwrap_or_else(|| "–".to_owned());
    let row = |group: &String| {
        let cells = shown.map(|of| cell(of, group));
        [group.clone()].into_iter().chain(cells).collect::<Vec<_>>()
    };
    let rows: Vec<_> = groups.iter().map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let head = heads([
        "Video and calls",
        "Rate Mb/s",
        "Startup s",
        "Stalls",
        "Stalled, share",
        "Switches",
        "Mouth to ear ms",
        "Opinion score",
    ]);
    format!("<h4>Video and calls, mean of each group</h4>\n{}", table(&head, &rows))
}
