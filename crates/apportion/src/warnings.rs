//! Warnings about a run: keys of the scenario without effect, unwatched links that limit flows, and connections that
//! failed.

use std::collections::BTreeMap;

use apportion_core::label::Label;
use apportion_report::link_use::FULL;
use apportion_report::{Failure, FullTags, PointResults};
use apportion_scenario::{Point, model};

use crate::bottlenecks::{self, Hidden};
use crate::scenario::Scenario;

/// Maximum number of lines (chosen: what a person reads).
const MAX_LINES: usize = 20;

/// Returns the warnings about a run with the results `records`, each once, with the number of points that it
/// is about unless it is about all.
pub(crate) fn of(scenario: &Scenario, records: &[PointResults]) -> Vec<String> {
    let mut all: Vec<Repeated> = Vec::new();
    for (point, record) in scenario.points().iter().zip(records) {
        let hidden = bottlenecks::hidden(&point.scenario, &record.link_uses());
        let of_scenario =
            point.scenario.warnings().into_iter().map(|text| Warning { key: without_numbers(&text), text });
        let full = record.full_tags().and_then(of_full_tags);
        let failures = record.failures().iter().map(of_failure);
        for warning in of_scenario.chain(of_links(&point.scenario, &hidden)).chain(full).chain(failures) {
            match all.iter_mut().find(|known| known.first.key == warning.key) {
                Some(known) => {
                    known.count += 1;
                    known.is_same &= known.first.text == warning.text;
                }
                None => all.push(Repeated { first: warning, count: 1, is_same: true }),
            }
        }
    }
    let points = scenario.points().len();
    let mut lines = without_effect(scenario.points());
    lines.extend(all.into_iter().map(|warning| warning.line(points)));
    let more = lines.len().saturating_sub(MAX_LINES);
    let lines = lines.into_iter().take(MAX_LINES);
    lines.chain((more > 0).then(|| format!("{more} more warnings"))).collect()
}

/// Returns the swept keys without effect, since another key of the file overrides them.
fn without_effect(points: &[Point]) -> Vec<String> {
    let keys = points.first().map_or(0, |point| point.settings.len());
    let idle = (0..keys).filter(|&key| {
        let mut first_with: BTreeMap<Vec<&str>, &model::Scenario> = BTreeMap::new();
        let is_swept = points.iter().any(|point| point.settings[key] != points[0].settings[key]);
        let is_idle = is_swept
            && points.iter().all(|point| {
                let others = point.settings.iter().enumerate().filter(|(at, _)| *at != key);
                let others = others.map(|(_, (_, value))| value.as_str()).collect();
                *first_with.entry(others).or_insert(&point.scenario) == &point.scenario
            });
        // No two points differ only in one of several keys that vary together.
        is_idle && first_with.len() < points.len()
    });
    let line = |key: usize| {
        format!(
            "the values of `{}` make no difference, so points that differ in it are the same run; another key of the \
             file, or of --set, takes precedence",
            points[0].settings[key].0
        )
    };
    idle.map(line).collect()
}

/// A line of text, and the key by which it is the same at two points, though numbers in it may differ.
struct Warning {
    key: String,
    text: String,
}

/// A warning, and the points that it is about.
struct Repeated {
    first: Warning,
    count: usize,
    /// Whether the numbers are the same at all points.
    is_same: bool,
}

impl Repeated {
    /// Returns the warning with the number of points that it is about, unless these are all of the run's
    /// `points` with the same numbers.
    fn line(self, points: usize) -> String {
        let Self { first: Warning { text, .. }, count, is_same } = self;
        match (count == points, is_same) {
            (true, true) => text,
            (false, true) => format!("{text} ({count} of {points} points)"),
            (_, false) => format!("{text} ({count} of {points} points; the numbers are those of the first)"),
        }
    }
}

/// Returns a warning's text without the numbers outside of quoted names: `5.5` and `10` both become `#`.
fn without_numbers(text: &str) -> String {
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => part
            .split(' ')
            .map(|word| if is_number(&word) { "#" } else { word })
            .collect::<Vec<_>>()
            .join(" "),
        _ => part.to_owned(),
    };
    text.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

/// Returns the direction of a reverse link; empty for other links, whose names usually tell it.
fn way(scenario: &model::Scenario, link: &model::Link) -> String {
    let node = |node: model::NodeId| &scenario.nodes[node.index()].name;
    match link.name.ends_with(".back") {
        true => format!(" (from `{}` to `{}`)", node(link.from), node(link.to)),
        false => String::new(),
    }
}

/// Share of packets from which full tags are mentioned. Chosen: those of a flow that starts, whose rate is not known
/// yet, are fewer.
const MENTIONED: f64 = 0.01;

/// Returns a warning about tags that were too narrow for their tickets.
fn of_full_tags(full: &FullTags) -> Option<Warning> {
    let (writer, key) = match full.is_link {
        true => ("link", "exchange"),
        false => ("flow", "mark"),
    };
    let text = format!(
        "{:.0} % of the packets of {writer} `{}` had more tickets than their tags hold, which were lost, so shares do not follow \
         tickets; write {key} = {{ bits = {} }}, or issue fewer tickets to all",
        (100.0 * full.share).ceil(),
        full.writer,
        Label::BITS
    );
    (full.share >= MENTIONED).then(|| Warning { key: format!("full tags of {}", full.writer), text })
}

/// Returns a warning about connections of a flow that failed.
fn of_failure(failure: &Failure) -> Warning {
    let Failure { flow, connections, first_s, reason, .. } = failure;
    let text = match connections {
        1 => format!("a connection of flow `{flow}` failed at {first_s:.3} s: {reason}"),
        more => format!("{more} connections of flow `{flow}` failed, the first at {first_s:.3} s: {reason}"),
    };
    Warning { key: format!("failure of {}", failure.group), text }
}

/// Returns a warning about access links of a topology, which have the same rate, and one about other links.
fn of_links(scenario: &model::Scenario, hidden: &[Hidden<'_>]) -> Vec<Warning> {
    let (access, others): (Vec<_>, Vec<_>) = hidden.iter().partition(|of| of.link.rate_key.is_some());
    let is_any_watched = scenario.links.iter().any(|link| link.watched);
    let of = |links: &[&Hidden<'_>]| {
        let first = links.first()?;
        let others = if links.len() > 1 { format!(" (and {} more)", links.len() - 1) } else { String::new() };
        let about = format!(
            "link `{}`{}{others} was {:.0} % full and limits `{}`",
            first.link.name,
            way(scenario, first.link),
            100.0 * first.used,
            first.flow.name
        );
        let (watched, text) = match first.watched {
            Some(watched) => {
                let rate = first.link.rate_key.map_or("rate".to_owned(), |key| format!("`{key}`"));
                let idle = if watched.used >= FULL && !watched.limits { " without loss" } else { "" };
                let text = format!(
                    "{about}, and `{}`{}, the fullest on its way that is watched, {:.0} %{idle}; write a higher {rate}, or \
                     watch = true if it is meant as a bottleneck",
                    watched.link.name,
                    way(scenario, watched.link),
                    100.0 * watched.used
                );
                (watched.link.name.as_str(), text)
            }
            None => {
                let place = if is_any_watched { " on its way" } else { "" };
                ("", format!("{about}, and no link{place} is watched; write `watch = true` to see its queue"))
            }
        };
        Some(Warning { key: format!("{} {watched}", first.link.name), text })
    };
    of(&access).into_iter().chain(of(&others)).collect()
}
