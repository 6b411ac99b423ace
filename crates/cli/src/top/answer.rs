//! The data of both pages as they come: names without control characters, numbers that are finite and not
//! negative. Keys that are not needed are skipped.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::output::is_unprintable;

/// Maximum of characters of a name. Chosen: more than fits a line.
const MAX_NAME: usize = 200;

/// A name to print.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(from = "String")]
pub struct Name(pub String);

impl From<String> for Name {
    fn from(text: String) -> Self {
        Self(clean(&text))
    }
}

/// The start of a text, with a sign for each character that a terminal would obey rather than print, or that
/// would reorder others.
pub fn clean(text: &str) -> String {
    text.chars()
        .take(MAX_NAME)
        .map(|c| if is_unprintable(c) { char::REPLACEMENT_CHARACTER } else { c })
        .collect()
}

/// A number, if it is known.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(from = "Option<f64>")]
pub struct Number(pub Option<f64>);

impl From<Option<f64>> for Number {
    fn from(number: Option<f64>) -> Self {
        Self(number.filter(|number| number.is_finite() && *number >= 0.0))
    }
}

/// The sum of the known numbers; 0 of none, where the sum of floats would be -0.
pub fn sum(numbers: impl Iterator<Item = Option<f64>>) -> f64 {
    numbers.flatten().fold(0.0, |sum, number| sum + number)
}

/// Counts of packets by reason.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Reasons(BTreeMap<String, Number>);

impl Reasons {
    pub fn sum(&self) -> Option<f64> {
        Some(sum(self.0.values().map(|count| count.0)))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answer {
    title: Name,
    state: Option<Name>,
    replications: Number,
    replications_done: Number,
    course: Option<Course>,
    uptime_seconds: Number,
    obstacles: Vec<Name>,
    directions: Option<BTreeMap<String, Direction>>,
    traffic: Option<BTreeMap<String, Traffic>>,
}

/// The data of the page of a run.
pub struct RunAnswer {
    pub title: Name,
    pub state: Name,
    /// Replications done, and all.
    pub replications: [Number; 2],
    pub course: Option<Course>,
}

/// The data of the page of a gateway.
pub struct GatewayAnswer {
    pub title: Name,
    pub uptime: Number,
    pub obstacles: Vec<Name>,
    pub directions: BTreeMap<String, Direction>,
    pub traffic: BTreeMap<String, Traffic>,
}

/// The data of either page.
pub enum Page {
    Run(RunAnswer),
    Gateway(GatewayAnswer),
}

/// Reads the JSON of either page.
///
/// # Errors
/// The data are those of neither page.
pub fn read(json: &[u8]) -> Result<Page, String> {
    let answer: Answer = serde_json::from_slice(json).map_err(|error| {
        format!("its answer is not JSON of a run or a gateway: {}", clean(&error.to_string()))
    })?;
    let Answer { title, state, replications, replications_done, course, uptime_seconds, obstacles, .. } =
        answer;
    match (answer.directions, answer.traffic, state) {
        (Some(directions), Some(traffic), _) => {
            let uptime = uptime_seconds;
            Ok(Page::Gateway(GatewayAnswer { title, uptime, obstacles, directions, traffic }))
        }
        (_, _, Some(state)) if replications.0.is_some() => {
            let replications = [replications_done, replications];
            Ok(Page::Run(RunAnswer { title, state, replications, course }))
        }
        _ => Err("it is no page of a run or a gateway".to_owned()),
    }
}

/// A replication.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Course {
    pub point: Name,
    pub seed: Name,
    pub at_seconds: Number,
    pub stop_seconds: Number,
    pub links_left_out: Number,
    pub link_states: Vec<LinkState>,
    pub link: Option<RunLink>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct LinkState {
    pub name: Name,
    pub bytes_per_second: Number,
    pub rate_bytes_per_second: Number,
    pub backlog_packets: Number,
    pub delay_seconds: Number,
    pub dropped_packets: Reasons,
    pub lost_packets: Number,
    pub marked_packets: Number,
    pub flow_count: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RunLink {
    pub name: Name,
    pub flow_count: Number,
    pub flows: Vec<RunFlow>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct RunFlow {
    pub flow: Name,
    pub bytes_per_second: Number,
    pub entitlement_bytes_per_second: Number,
    pub measured_bytes_per_second: Number,
    pub measured_entitlement_bytes_per_second: Number,
    pub share: Number,
    pub measured_share: Number,
}

/// A direction of a gateway since its start.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Direction {
    pub rate_bytes_per_second: Number,
    pub backlog_packets: Number,
    pub rules: BTreeMap<Name, Counts>,
    pub customers: BTreeMap<Name, Counts>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Counts {
    pub sent_bytes: Number,
    pub marked_packets: Number,
    pub dropped_packets: Reasons,
}

/// The last second of a direction.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Traffic {
    pub active_flows: Number,
    pub sent_bytes_per_second: Number,
    pub sojourn_seconds: Quantiles,
    pub flows: Vec<GatewayFlow>,
    pub customers: Vec<GatewayCustomer>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Quantiles {
    #[serde(rename = "0.5")]
    pub median: Number,
    #[serde(rename = "0.95")]
    pub high: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GatewayFlow {
    pub rule: Name,
    pub flow: Name,
    pub weight: Number,
    pub bytes_per_second: Number,
    pub entitlement_bytes_per_second: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct GatewayCustomer {
    pub customer: Name,
    pub bytes_per_second: Number,
    pub plan_bytes_per_second: Number,
    pub entitlement_bytes_per_second: Number,
}
