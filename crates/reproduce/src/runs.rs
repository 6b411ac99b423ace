//! The runs of an experiment by name: scenarios, outcomes, flows and samples.

use std::collections::BTreeMap;

use apportion_core::units::{TicketRate, Time};
use apportion_runtime::outcome::Outcome;
use apportion_scenario::did_you_mean;
use apportion_scenario::model::{Flow, LinkId, Scenario};
use serde::Deserialize;

use crate::value::{Length, text_of};

/// A run with its outcomes.
#[derive(Clone, Debug)]
pub struct RunOutcomes {
    pub scenario: Scenario,
    /// Outcomes of the run, one per seed.
    pub outcomes: Vec<Outcome>,
}

/// The input of a measure.
#[derive(Clone, Copy, Debug)]
pub enum Basis {
    /// The replication with this number.
    Seed(usize),
    /// Entitlements in place of throughputs.
    Entitlements,
}

/// The runs of an experiment by name.
pub type Runs<'a, T> = BTreeMap<&'a str, Points<'a, T>>;

/// A problem of a measure: the key, and a message with the correction.
pub type Fault = (&'static str, String);

/// The name of the default run.
pub(crate) fn main_run() -> String {
    "main".to_owned()
}

/// A sweep: values in which runs differ. Keys change together: point k has the kth value of each.
#[derive(Clone, Debug, Deserialize)]
pub struct Sweep {
    /// Line in the file, counting from 1.
    #[serde(rename = "$line", default)]
    pub line: u32,
    /// The label of the axis.
    pub axis: String,
    /// The positions of its points on the axis, ascending.
    pub at: Vec<f64>,
    /// Settings like `set` of a run, each with a list of values, one per point.
    pub set: BTreeMap<String, Vec<toml::Value>>,
}

impl Sweep {
    /// The settings of point `k`, as paths and texts.
    pub(crate) fn overrides(&self, k: usize) -> Vec<(String, String)> {
        self.set.iter().filter_map(|(path, values)| Some((path.clone(), text_of(values.get(k)?)))).collect()
    }

    /// A problem of the sweep: the key, and a message with the correction.
    pub(crate) fn check(&self) -> Option<(String, String)> {
        if self.at.is_empty() || self.at.windows(2).any(|pair| pair[0] >= pair[1]) {
            let message =
                "no points, or not ascending; write numbers in ascending order, for example [10, 20]";
            return Some(("at".to_owned(), message.to_owned()));
        }
        let wrong = self.set.iter().find(|(_, values)| values.len() != self.at.len());
        wrong.map(|(path, values)| {
            let message = format!("{} values for {} points; write one for each", values.len(), self.at.len());
            (format!("set.{path}"), message)
        })
    }
}

/// A single run, or a run per point of a sweep.
#[derive(Clone, Debug)]
pub struct Points<'a, T> {
    /// The runs, in the order of the sweep.
    pub all: Vec<&'a T>,
    /// The sweep; `None` for a single run.
    pub sweep: Option<&'a Sweep>,
}

impl<'a, T> Points<'a, T> {
    /// A run without a sweep.
    #[must_use]
    pub fn single(run: &'a T) -> Self {
        Self { all: vec![run], sweep: None }
    }
}

/// The sweep of these runs, all with the same points.
///
/// # Errors
/// No run is swept, or two sweeps differ.
pub fn sweep_of<'a, T>(runs: &Runs<'a, T>) -> Result<&'a Sweep, Fault> {
    let mut swept = runs.iter().filter_map(|(name, points)| Some((name, points.sweep?)));
    let Some((first, sweep)) = swept.next() else {
        return Err(("of", "no run of the experiment is swept; give one a `sweep`".to_owned()));
    };
    match swept.find(|(_, other)| other.at != sweep.at) {
        None => Ok(sweep),
        Some((other, _)) => {
            Err(("of", format!("runs `{first}` and `{other}` have different points; write the same `at`")))
        }
    }
}

/// All runs at point `k`; runs without a sweep are part of every point.
pub(crate) fn at_point<'a, T>(runs: &Runs<'a, T>, k: usize) -> Runs<'a, T> {
    let point = |(name, points): (&&'a str, &Points<'a, T>)| match points.sweep {
        None => Some((*name, Points { all: points.all.clone(), sweep: None })),
        Some(_) => Some((*name, Points::single(*points.all.get(k)?))),
    };
    runs.iter().filter_map(point).collect()
}

/// Flows with these names or in groups with these names, in this order; all flows if there are no names.
///
/// # Errors
/// A name is neither.
pub fn flows_of(scenario: &Scenario, names: &[String]) -> Result<Vec<usize>, Fault> {
    if names.is_empty() {
        return Ok((0..scenario.flows.len()).collect());
    }
    let mut all = Vec::new();
    for name in names {
        let position = |by: fn(&Flow) -> &str| {
            scenario.flows.iter().enumerate().filter(move |(_, flow)| by(flow) == name).map(|(at, _)| at)
        };
        let mut found: Vec<usize> = position(|flow| &flow.name).collect();
        if found.is_empty() {
            found = position(|flow| &flow.group).collect();
        }
        if found.is_empty() {
            let mut known: Vec<&str> = scenario.flows.iter().map(|flow| flow.group.as_str()).collect();
            known.dedup();
            let guess = did_you_mean(name, known.iter().copied());
            return Err((
                "of",
                format!("there is no flow or group `{name}`{guess}; there are {}", known.join(", ")),
            ));
        }
        all.extend(found);
    }
    Ok(all)
}

/// An attribute of each of these flows.
///
/// # Errors
/// A flow lacks it.
pub fn attributes_of(scenario: &Scenario, flows: &[usize], on: Attribute) -> Result<Vec<f64>, Fault> {
    let flows = flows.iter().filter_map(|at| scenario.flows.get(*at)).enumerate();
    let attribute = |(k, flow): (usize, &Flow)| {
        on.of(scenario, flow, k).ok_or_else(|| {
            (
                "on",
                format!("flow `{}` has no {}; give it some, or choose another `on`", flow.name, on.label()),
            )
        })
    };
    flows.map(attribute).collect()
}

pub(crate) fn link_of(scenario: &Scenario, name: &str) -> Result<usize, Fault> {
    scenario.links.iter().position(|link| link.name == name).ok_or_else(|| {
        let names = || scenario.links.iter().map(|link| link.name.as_str());
        let known: Vec<&str> = names().filter(|name| !name.ends_with(".back")).take(20).collect();
        (
            "link",
            format!(
                "there is no link `{name}`{}; there are {}",
                did_you_mean(name, names()),
                known.join(", ")
            ),
        )
    })
}

/// The run called `name`, without a sweep.
///
/// # Errors
/// There is no such run.
pub fn run_of<'a, T>(runs: &Runs<'a, T>, name: &str) -> Result<&'a T, Fault> {
    let points = runs.get(name).ok_or_else(|| {
        let known: Vec<&str> = runs.keys().copied().collect();
        let guess = did_you_mean(name, known.iter().copied());
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        ("run", format!("there is no run `{name}`{guess}; there are {known}"))
    })?;
    match (points.sweep, points.all.as_slice()) {
        (None, [one]) => Ok(one),
        _ => Err(("run", format!("`{name}` is swept; put the measure into the `of` of an `over_sweep`"))),
    }
}

/// Samples whose intervals lie within a window.
pub(crate) fn samples(
    scenario: &Scenario,
    from: Option<Length>,
    to: Option<Length>,
) -> Result<std::ops::Range<usize>, Fault> {
    let sample = scenario.sample.as_nanos().max(1);
    let stop = scenario.stop.as_nanos();
    let first = from.map_or(scenario.measure_from.as_nanos(), |from| from.0.as_nanos());
    let last = to.map_or(stop, |to| to.0.as_nanos());
    if last > stop {
        return Err(("to", format!("the run ends at {}", scenario.stop)));
    }
    let range = first.div_ceil(sample) as usize..(last / sample) as usize;
    if range.is_empty() {
        let end = Time::from_nanos(last);
        return Err(("from", format!("no sample of {} lies between it and {end}", scenario.sample)));
    }
    Ok(range)
}

/// Attributes of flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    /// Ticket rate of the flow's source, or else of its sink; tickets per second.
    Tickets,
    Weight,
    /// Position among the selected flows, from 1.
    Index,
    /// The sum of the delays of all wires in both directions, ms.
    Rtt,
}

impl Attribute {
    /// Attribute of a flow, the `index`th selected one; `None` if it lacks it.
    #[must_use]
    pub fn of(self, scenario: &Scenario, flow: &Flow, index: usize) -> Option<f64> {
        let delay = |id: &LinkId| scenario.links.get(id.index()).map(|link| link.delay.as_secs_f64() * 1e3);
        match self {
            Self::Tickets => flow.tickets.or(flow.ack_tickets).map(TicketRate::get),
            Self::Weight => Some(flow.weight.get()),
            Self::Index => Some((index + 1) as f64),
            Self::Rtt => flow.path.iter().chain(flow.back.iter()).map(delay).sum(),
        }
    }

    /// Label on an axis.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Tickets => "tickets a second",
            Self::Weight => "weight",
            Self::Index => "flow",
            Self::Rtt => "round-trip time, ms",
        }
    }
}
