//! The buffers of queues that set no `limit`, as comments for the canonical text: they follow the rates of the links.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::load::Point;

/// Maximum number of lines, and of points that are looked at (chosen: what a person reads, and a fraction of a second).
const MAX_LINES: usize = 20;
const MAX_POINTS: usize = 1_000;

/// A line for each link and size, with the number of points where it holds unless these are all.
pub(crate) fn listed(points: &[Point]) -> String {
    let points = &points[..points.len().min(MAX_POINTS)];
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for link in points.iter().flat_map(|point| &point.scenario.links) {
        if let Some(limit) = link.queue.limit_of_link(link.rate) {
            *counts.entry((&link.name, limit.to_string())).or_default() += 1;
        }
    }
    let mut out = String::new();
    for ((link, limit), &count) in counts.iter().take(MAX_LINES) {
        let all = points.len();
        let part = if count < all { format!(" at {count} of {all} points") } else { String::new() };
        let _ = writeln!(out, "# Queue without `limit`: {link} holds {limit}{part}");
    }
    if counts.len() > MAX_LINES {
        let _ = writeln!(out, "# and {} more", counts.len() - MAX_LINES);
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}
