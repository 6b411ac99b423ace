//! Derived values that differ between points, as comments for the canonical text:
//!
//! - the buffers of queues without a fixed `limit`, and the times of hosts without `jitter`, which follow the
//!   rates of the links;
//! - sample intervals without `sample`, which follow the end of the run;
//! - the groups of flows with several paths of equal cost, which follow the network.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use apportion_core::units::Span;

use crate::load::Point;
use crate::model::{Link, Scenario};

/// Maximum number of lines, and of points and flows that are checked (chosen: what a person reads, and a
/// fraction of a second).
const MAX_LINES: usize = 20;
const MAX_POINTS: usize = 1_000;
const MAX_FLOWS: usize = 1_000;

/// A line for each sample interval, and for each link and size, with the number of its points unless these
/// are all.
pub(crate) fn listed(points: &[Point], is_sample_written: bool) -> String {
    let points = &points[..points.len().min(MAX_POINTS)];
    let samples = points.iter().filter(|_| !is_sample_written).map(|point| {
        let sample = point.scenario.sample;
        format!("Without `sample`: {sample}")
    });
    let of_link = |link: &Link| {
        let limit = link.queue.limit_of_link(link.rate)?;
        Some(format!("Buffer by the rate of its link: {} holds {limit}", link.name))
    };
    let limits = points.iter().flat_map(|point| &point.scenario.links).filter_map(of_link);
    let jitters = points.iter().flat_map(|point| jitters(&point.scenario));
    let paths = points.iter().flat_map(|point| paths(&point.scenario));
    let all = points.len();
    let out = lines(limits, all) + &lines(samples, all) + &lines(jitters, all) + &lines(paths, all);
    if out.is_empty() { out } else { format!("\n{out}") }
}

/// The times of hosts of each group of flows at the start, where no `jitter` sets them: each once.
fn jitters(scenario: &Scenario) -> BTreeSet<String> {
    let flows = scenario.flows.iter().take(MAX_FLOWS).filter(|flow| flow.jitter.is_none());
    let of = flows.map(|flow| {
        let [packet, answer] =
            scenario.jitter(flow).map(|steps| steps.first().map_or(Span::ZERO, |step| step.1));
        let answer =
            if answer > Span::ZERO { format!(", {answer} for an acknowledgement") } else { String::new() };
        format!("Without `jitter`: hosts of {} take up to {packet} for a packet{answer}", flow.group)
    });
    of.collect()
}

/// The groups of flows that choose among paths of equal cost.
fn paths(scenario: &Scenario) -> BTreeSet<String> {
    let flows = scenario.flows.iter().filter(|flow| flow.path.equal.is_some() || flow.back.equal.is_some());
    let of = flows
        .map(|flow| format!("Paths of equal cost: connections of {} take one each by a hash", flow.group));
    of.collect()
}

/// These facts as comments, each once with the number of its points unless these are all.
fn lines(facts: impl Iterator<Item = String>, all: usize) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    facts.for_each(|fact| *counts.entry(fact).or_default() += 1);
    let mut out = String::new();
    for (fact, &count) in counts.iter().take(MAX_LINES) {
        let part = if count < all { format!(" at {count} of {all} points") } else { String::new() };
        let _ = writeln!(out, "# {fact}{part}");
    }
    if counts.len() > MAX_LINES {
        let _ = writeln!(out, "# and {} more", counts.len() - MAX_LINES);
    }
    out
}
