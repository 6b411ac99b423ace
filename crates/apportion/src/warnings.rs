//! Warnings of a run: what of its scenario does nothing, and which links were full where it does not look.

use apportion_report::PointRecord;
use apportion_report::warnings::HiddenBottleneck;
use apportion_scenario::Point;

use crate::scenario::Scenario;

/// Maximum number of lines (chosen: what a person reads).
const MAX_LINES: usize = 20;

/// The warnings of a run whose results are `records`, each once, with the number of points that it is about unless these are all.
pub(crate) fn of(scenario: &Scenario, records: &[PointRecord]) -> Vec<String> {
    let mut all: Vec<Repeated> = Vec::new();
    for (point, record) in scenario.points().iter().zip(records) {
        let hidden = record.hidden_bottlenecks();
        let of_scenario =
            point.scenario.warnings().into_iter().map(|text| Warning { key: without_numbers(&text), text });
        for warning in of_scenario.chain(of_links(point, &hidden)) {
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
    let more = all.len().saturating_sub(MAX_LINES);
    let lines = all.into_iter().take(MAX_LINES).map(|warning| warning.line(points));
    lines.chain((more > 0).then(|| format!("{more} more warnings"))).collect()
}

/// A line for people, and what makes it the same at two points, though numbers in it may differ.
struct Warning {
    key: String,
    text: String,
}

/// A warning, and the points that it is about.
struct Repeated {
    first: Warning,
    count: usize,
    /// Whether numbers are the same at all of them.
    is_same: bool,
}

impl Repeated {
    /// The warning with the number of points that it is about, unless these are all of the run's `points` with the same numbers.
    fn line(self, points: usize) -> String {
        let Self { first: Warning { text, .. }, count, is_same } = self;
        match (count == points, is_same) {
            (true, true) => text,
            (false, true) => format!("{text} ({count} of {points} points)"),
            (_, false) => format!("{text} ({count} of {points} points; the numbers are those of the first)"),
        }
    }
}

/// A warning's text without the numbers outside of quoted names: `5.5` and `10` are both `#`.
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

/// A warning about access links of a topology, which have one rate, and one about other links.
fn of_links(point: &Point, hidden: &[HiddenBottleneck]) -> Vec<Warning> {
    let key_of = |hidden: &HiddenBottleneck| {
        let link = point.scenario.links.iter().find(|link| link.name == hidden.link);
        link.and_then(|link| link.rate_key)
    };
    let (access, others): (Vec<_>, Vec<_>) = hidden.iter().partition(|link| key_of(link).is_some());
    let of = |links: &[&HiddenBottleneck]| {
        let first = links.first()?;
        let about = about(first, links.len() - 1);
        let (watched, text) = match &first.watched {
            Some((watched, least)) => {
                let rate = key_of(first).map_or("rate".to_owned(), |key| format!("`{key}`"));
                let least = 100.0 * least;
                let text = format!(
                    "{about}, and `{watched}`, the fullest that is watched, {least:.0} %; write a higher {rate}, or \
                     watch = true if it is meant as a bottleneck"
                );
                (watched.as_str(), text)
            }
            None => ("", format!("{about}, and no link is watched; write `watch = true` to see its queue")),
        };
        Some(Warning { key: format!("{} {watched}", first.link), text })
    };
    of(&access).into_iter().chain(of(&others)).collect()
}

/// How full a link was, and of how many others the same is true.
fn about(HiddenBottleneck { link, utilisation, .. }: &HiddenBottleneck, more: usize) -> String {
    let others = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    format!("link `{link}`{others} was {:.0} % full", 100.0 * utilisation)
}
