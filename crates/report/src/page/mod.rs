//! The report: one self-contained page.
//!
//! It needs no network, no script and no font but the reader's own. The first screen says who got what at
//! every point; numbers, details and how to reproduce follow.

use std::fmt::Write;

use crate::figure::style_sheet;
use crate::headline;
use crate::html::escape;
use crate::record::{PointRecord, Run};
use crate::shares::Keys;

mod detail;
mod overview;
mod series;

/// Chosen: keeps the page below 1.5 MB, which opens at once on a phone.
const BUDGET: usize = 1_300_000;
/// Chosen: more points than this are a table's business.
const MAX_DETAILED: usize = 24;
/// Chosen: sections of the first points are open, the others a touch away.
const OPEN: usize = 4;

/// The report of `run` as HTML.
#[must_use]
pub fn page(run: &Run) -> String {
    let keys = Keys::of(run);
    let mut out = header(run);
    out.push_str(&overview::overview(run, &keys));
    let footer = footer(run);
    // What a document adds around this.
    let frame = document("", "").len() + escape(&run.title).len();
    let room = BUDGET.saturating_sub(frame + out.len() + footer.len());
    out.push_str(&details(run, &keys, room));
    out.push_str(&footer);
    document(&run.title, &out)
}

/// A page with this title around `main`, which is HTML.
#[must_use]
pub fn document(title: &str, main: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n{main}</main>\n</body>\n</html>\n",
        escape(title),
        include_str!("style.css"),
        style_sheet(),
    )
}

fn header(run: &Run) -> String {
    let points = match run.points.len() {
        1 => String::new(),
        n => format!("{n} points · "),
    };
    let seeds = match run.seeds.as_slice() {
        [only] => format!("seed {only}"),
        all => format!("{} seeds", all.len()),
    };
    let mut out =
        format!("<h1>{}</h1>\n<p class=\"sub\">{points}{seeds}{}</p>\n", escape(&run.title), window(run));
    if !run.complete {
        let planned = run.seeds.len() * run.points.len();
        let done: usize = run.points.iter().map(|p| p.outcomes.len()).sum();
        let _ = writeln!(
            out,
            "<p class=\"warn\"><b>This run was interrupted.</b> It holds {done} of {planned} replications; \
             means and intervals are over those that finished.</p>"
        );
    }
    let only = run.points.first().filter(|_| run.points.len() == 1).map(headline::of_point);
    if let Some(lead) = headline::lead(run).or(only) {
        let _ = writeln!(out, "<p class=\"lead\">{}</p>", escape(&lead));
    }
    for point in &run.points {
        let Some((is_valid, text)) = headline::timekeeping(point) else { continue };
        let class = if is_valid { "note" } else { "warn" };
        let of = if run.points.len() > 1 { format!("{}: ", point.name()) } else { String::new() };
        let _ = writeln!(out, "<p class=\"{class}\">{}{}</p>", escape(&of), escape(&text));
    }
    out
}

/// The measured part of the run, if it is the same for all points.
fn window(run: &Run) -> String {
    let of = |p: &PointRecord| {
        let measured = p.outcomes.first()?.measured;
        Some((p.measure_from.as_secs_f64(), (p.measure_from + measured).as_secs_f64()))
    };
    let mut windows = run.points.iter().filter_map(of);
    let Some(first) = windows.next() else { return String::new() };
    if windows.any(|w| w != first) {
        return String::new();
    }
    format!(" · measured from {} s to {} s", short(first.0), short(first.1))
}

/// Seconds without needless decimals.
fn short(x: f64) -> String {
    let text = format!("{x:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The sections of single points, as many as the page has room for.
fn details(run: &Run, keys: &Keys, room: usize) -> String {
    let shown = &run.points[..run.points.len().min(MAX_DETAILED)];
    if shown.iter().all(|p| p.outcomes.is_empty()) {
        return String::new();
    }
    let scales = detail::Scales::of(shown, keys);
    let mut out = String::from("<h2 id=\"details\">In detail</h2>\n");
    out.push_str(&detail::legend(shown, keys));
    let mut count = 0;
    for (i, point) in shown.iter().enumerate() {
        let section = detail::section(run, point, keys, &scales, i, i < OPEN);
        if out.len() + section.len() > room {
            break;
        }
        out.push_str(&section);
        count += 1;
    }
    if count < run.points.len() {
        let _ = writeln!(
            out,
            "<p class=\"note\">Details of {count} of {} points are shown to keep this page small; \
             <code>flows.csv</code>, <code>links.csv</code>, <code>series.csv</code> and \
             <code>allocations.csv</code> hold all of them.</p>",
            run.points.len()
        );
    }
    out
}

fn footer(run: &Run) -> String {
    let seeds: Vec<String> = run.seeds.iter().map(u64::to_string).collect();
    let mut facts = vec![("Scenario hash", run.hash.clone()), ("Seeds", seeds.join(", "))];
    let versions: Vec<String> =
        run.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    facts.push(("Versions", versions.join(", ")));
    let facts: String =
        facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(value))).collect();
    let (command, promise) = match run.is_in_real_time() {
        true => ("lab", "Real time passes differently each time: numbers come out alike, not the same"),
        false => ("run", "The same version gives the same bytes"),
    };
    format!(
        "<footer>\n<h2 id=\"reproduce\">Reproduce</h2>\n\
         <p>Save the scenario below as <code>scenario.toml</code> and run\n\
         <code>apportion {command} scenario.toml --seeds {}</code>. {promise}.</p>\n\
         <dl>\n{facts}</dl>\n\
         <details><summary>Scenario</summary><div><pre>{}</pre></div></details>\n\
         {MEANING}</footer>\n",
        run.seeds.len(),
        escape(&run.scenario),
    )
}

const MEANING: &str = "<h2 id=\"meaning\">What the numbers mean</h2>
<dl>
<dt>Throughput</dt><dd>Bytes on the wire that reached the receiver, headers included, over the
measured time.</dd>
<dt>Goodput</dt><dd>New payload delivered in order, over the measured time.</dd>
<dt>Entitlement</dt><dd>The flow's weighted max-min fair share, guarantees included.</dd>
<dt>Jain index</dt><dd>(Σx)² / (n Σx²) of throughput over entitlement of the n flows that have one (of plain
throughput if none has): 1 if all flows are served alike, 1/n if one has everything.</dd>
<dt>± and intervals</dt><dd>95 % confidence of the mean over seeds (Student). A single seed has none.</dd>
<dt>Queue delay</dt><dd>Time in the queue of packets that were transmitted, in front of the named link.</dd>
<dt>Exceptions</dt><dd>Times that a queue told the flow's source that it cannot carry what the flow needs.</dd>
<dt>Allocation</dt><dd>What a queue that infers the needs of flows gives each of them in front of the named link;
the mean over the measured time is in statistics.csv.</dd>
<dt>Delay of a group</dt><dd>One way, from the first link's queue to the receiver: the quantile of each flow's packets,
then the mean of the flows.</dd>
<dt>Drops</dt><dd>Data and acknowledgements alike, at all links. early: a signal before the buffer is full; forced: above a threshold that admits nothing;
overflow: the arriving packet found no room; policy: a rule about the flow; push-out: removed to make
room.</dd>
</dl>
";
