//! The report: one self-contained page.
//!
//! It needs no network access, and uses only fonts of the system. All of it shows without a script; with one its figures can be
//! explored. The first screen shows the
//! throughput of each flow at every point; numbers, details and the command to reproduce the run follow.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::explore;
use crate::figure::style_sheet;
use crate::headline;
use crate::html::escape;
use crate::playground;
use crate::run_results::{PointResults, RunResults};
use crate::shares::Keys;

mod crowd;
mod customers;
mod detail;
mod drops;
mod overview;
mod series;
mod sweeps;

pub(crate) use sweeps::card;

/// Maximum bytes of sections. Chosen: keeps the page below 1.5 MB, which opens at once on a phone.
const BUDGET: usize = 1_430_000;
/// Maximum of points with sections; others are left to the tables.
const MAX_DETAILED: usize = 24;
/// The sections of the first points are open, the others folded.
const OPEN: usize = 4;

/// The report of `run` as HTML.
#[must_use]
pub fn page(run: &RunResults) -> String {
    let keys = Keys::of(run);
    let mut out = header(run);
    out.push_str(&overview::overview(run, &keys));
    let footer = footer(run);
    // The bytes of the document around the sections.
    let frame = explorable("", "", "", "").len() + escape(&run.title).len();
    let room = BUDGET.saturating_sub(frame + out.len() + footer.len());
    out.push_str(&details(run, &keys, room));
    out.push_str(&footer);
    explorable(&run.title, "", &out, "")
}

/// An HTML page with this title and the HTML `main` as its content.
#[must_use]
pub fn document(title: &str, main: &str) -> String {
    document_with(title, "", main, "")
}

/// An HTML page whose figures can be explored, with a style sheet and a script of its own.
pub(crate) fn explorable(title: &str, style: &str, main: &str, script: &str) -> String {
    document_with(title, &(explore::style() + style), main, &(explore::script() + script))
}

/// The foot of a page about many runs: how to run them again, and what its numbers mean.
pub(crate) fn reproduce(
    command: &str,
    commit: &str,
    versions: &BTreeMap<String, String>,
    meaning: &str,
) -> String {
    let mut versions: Vec<String> =
        versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    if !commit.is_empty() {
        versions.push(format!("commit {commit}"));
    }
    format!(
        "<footer>\n<h2 id=\"reproduce\">Reproduce</h2>\n<p><code>{}</code>. The same version gives identical results: {}.</p>\n{meaning}\
         </footer>\n",
        escape(command),
        escape(&versions.join(", "))
    )
}

fn document_with(title: &str, style: &str, main: &str, script: &str) -> String {
    let script = if script.is_empty() { String::new() } else { format!("<script>\n{script}</script>\n") };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>{}</title>\n<style>\n{}{}{style}</style>\n</head>\n<body>\n<main{}>\n{main}</main>\n{script}</body>\n</html>\n",
        escape(title),
        include_str!("style.css"),
        style_sheet(),
        playground::address(),
    )
}

fn header(run: &RunResults) -> String {
    let points = match run.points.len() {
        1 => String::new(),
        n => format!("{n} points · "),
    };
    let seeds = match run.seeds.as_slice() {
        [only] => format!("seed {only}"),
        all => format!("{} seeds", all.len()),
    };
    let mut out = format!(
        "<h1>{}</h1>\n<p class=\"sub\" data-opens=\"scenario\">{points}{seeds}{}</p>\n",
        escape(&run.title),
        window(run)
    );
    if !run.complete {
        let planned = run.seeds.len() * run.points.len();
        let done: usize = run.points.iter().map(|p| p.summary().seeds.len()).sum();
        // All points have finished, but perturbed copies have not.
        let rest = if let Some(cut) = run.cut() {
            format!(
                "Results are partial: the replication was cut at {cut}, and they cover the time until then."
            )
        } else if done < planned {
            format!("Only {done} of {planned} replications finished; means and intervals are over these.")
        } else {
            "Some of the perturbed copies that show how results depend on phases are missing.".to_owned()
        };
        let _ = writeln!(out, "<p class=\"warn\"><b>This run was interrupted.</b> {rest}</p>");
    }
    for warning in &run.warnings {
        let _ = writeln!(out, "<p class=\"warn\">{}</p>", escape(warning));
    }
    let only = run.points.first().filter(|_| run.points.len() == 1).map(headline::of_point);
    if let Some(lead) = headline::lead(run).or(only) {
        let _ = writeln!(out, "<p class=\"lead\">{}</p>", escape(&lead));
    }
    for point in &run.points {
        let of = if run.points.len() > 1 { format!("{}: ", point.name()) } else { String::new() };
        let faults = headline::faults(point).into_iter().map(|text| (false, text));
        for (is_valid, text) in faults.chain(headline::timekeeping(point)) {
            let class = if is_valid { "note" } else { "warn" };
            let _ = writeln!(out, "<p class=\"{class}\">{}{}</p>", escape(&of), escape(&text));
        }
    }
    out
}

/// The measured interval, if it is the same for all points.
fn window(run: &RunResults) -> String {
    let of = |p: &PointResults| {
        let measured = p.summary().measured?;
        Some((p.measure_from.as_secs_f64(), (p.measure_from + measured).as_secs_f64()))
    };
    let mut windows = run.points.iter().filter_map(of);
    let Some(first) = windows.next() else { return String::new() };
    if windows.any(|w| w != first) {
        return String::new();
    }
    format!(" · measured from {} s to {} s", short(first.0), short(first.1))
}

/// Seconds without trailing zeros.
fn short(x: f64) -> String {
    let text = format!("{x:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The id of the section of the point at this place.
fn section_id(at: usize) -> String {
    format!("point-{}", at + 1)
}

/// The sections of single points, as many as the size limit of the page allows.
fn details(run: &RunResults, keys: &Keys, room: usize) -> String {
    let shown = &run.points[..run.points.len().min(MAX_DETAILED)];
    if shown.iter().all(|p| p.outcomes.is_empty()) {
        return String::new();
    }
    let scales = detail::Scales::of(shown, keys);
    let mut out = String::from("<h2 id=\"details\">Details by point</h2>\n");
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
             the tables of the folder hold all points.</p>",
            run.points.len()
        );
    }
    out
}

fn footer(run: &RunResults) -> String {
    let seeds: Vec<String> = run.seeds.iter().map(u64::to_string).collect();
    let mut facts = vec![("Scenario hash", run.hash.clone()), ("Seeds", seeds.join(", "))];
    let versions: Vec<String> =
        run.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    facts.push(("Versions", versions.join(", ")));
    let facts: String =
        facts.iter().map(|(name, value)| format!("<dt>{name}</dt><dd>{}</dd>\n", escape(value))).collect();
    let (command, promise, link) = match run.is_in_real_time() {
        true => ("lab", "Runs in real time are statistically similar but not identical", String::new()),
        false => {
            let link = playground::seeds(&run.scenario, run.seeds.len());
            ("run", "The same version gives identical results", link)
        }
    };
    format!(
        "<footer>\n<h2 id=\"reproduce\">Reproduce</h2>\n\
         <p>Save the scenario below as <code>scenario.toml</code> and run\n\
         <code>apportion {command} scenario.toml --seeds {}</code>. {promise}.</p>\n\
         <dl>\n{facts}</dl>\n\
         <details><summary>Scenario</summary><div><pre id=\"scenario\"{link}>{}</pre></div></details>\n\
         {MEANING}</footer>\n",
        run.seeds.len(),
        escape(&run.scenario),
    )
}

const MEANING: &str = "<h2 id=\"meaning\">What the numbers mean</h2>
<dl>
<dt>Throughput</dt><dd>Bytes on the wire that reached the receiver during the measured time, headers included.</dd>
<dt>Goodput</dt><dd>New payload delivered in order during the measured time.</dd>
<dt>Entitlement</dt><dd>The flow's weighted max-min fair share, guarantees included (or its share by tickets or customers), among the
flows that have data to send at the time; mean over the measured time. A finite transfer is entitled to its share until it completes.</dd>
<dt>Worst second</dt><dd>The lowest throughput over entitlement in any second throughout which the flow is entitled to something, and
when that second began; over all seeds. A second is the fewest sample intervals that fill one: longer than a second if <code>sample</code>
does not divide it.</dd>
<dt>Seconds to 90 %</dt><dd>The time from an event until the first second begins in which the flow gets 90 % of its entitlement and
after which its mean until the next event is 90 %, for three seconds or more. Intervals of less than four seconds are too short to judge.
Samples after the one that contains the event count, so the time can be too long by one sample interval.</dd>
<dt>Jain index</dt><dd>(Σx)² / (n Σx²) of throughput over entitlement of the n flows that have one (of throughput if none
has): 1 if all ratios are equal, 1/n if one flow has all the throughput.</dd>
<dt>± and intervals</dt><dd>95 % confidence interval of the mean over seeds (Student). A single seed has none.</dd>
<dt>Shift by phases</dt><dd>The mean over the perturbed copies less the mean over the replications. A copy repeats a replication with
every delay moved by 1 µs, up or down; two copies share each choice of moves. The largest shift over these choices is shown. p: F test of the
analysis of variance, with the replications and the copies of each choice as groups.</dd>
<dt>Queue delay</dt><dd>Sojourn time of transmitted packets in the queue of the named link.</dd>
<dt>Notifications</dt><dd>Messages from a queue to the source of a flow that the link cannot carry the rate that the flow needs.</dd>
<dt>Allocation</dt><dd>The rate that the queue of the named link allocates to a flow, if its discipline infers what flows
need; the table <code>statistics</code> has its mean over the measured time.</dd>
<dt>Delay of a group</dt><dd>One-way delay from the queue of the first link to the receiver: the quantile over the packets of each
flow, then the mean over the flows.</dd>
<dt>Drops</dt><dd>Data and acknowledgements, at all links. early: a congestion signal before the buffer is full; forced: above the
threshold beyond which the policy admits nothing; overflow: the buffer was full when the packet arrived; policy: a rule about the flow or its
class; push-out: removed from the buffer to make room for another packet.</dd>
</dl>
";
