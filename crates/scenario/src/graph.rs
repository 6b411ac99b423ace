//! Networks from graphs in files: the names of nodes, and attributes of edges as keys of links.
//!
//! | key of the link | attributes of the edge, the first that exists | else, if the scenario sets none |
//! |---|---|---|
//! | `rate` | `rate`; `bandwidth` (Shadow); `LinkSpeedRaw` in bit/s, `LinkSpeed` with `LinkSpeedUnits`, `LinkLabel` (Topology Zoo) | `host_bandwidth_up` of the node it leaves and `host_bandwidth_down` of the other, the smaller (Shadow) |
//! | `delay` | `delay`; `latency` (Shadow) | the distance of the coordinates of its nodes, `Latitude` and `Longitude` (Topology Zoo) |
//! | `loss` | `loss`; `packet_loss` (Shadow) | |
//! | `jitter` | `jitter` | |
//!
//! Attributes of an edge take precedence over keys that the scenario sets for all edges, and these over
//! attributes of nodes. A warning names unused attributes.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use apportion_core::units::{Rate, Ratio, Span};

use crate::keys::Fields;
use crate::model::{Jitter, JitterDistribution, Loss};
use crate::network::{Network, Spec};
use crate::problem::Place;
use crate::warnings::MOST_NAMED;

/// Mean radius of the Earth in km (Moritz, Geodetic Reference System 1980, Journal of Geodesy 74, 2000).
const EARTH_RADIUS: f64 = 6_371.008_8;
/// Speed of light in fibre, in km/s: 2/3 of that in vacuum, for a refractive index of 1.5.
const LIGHT_IN_FIBRE: f64 = 299_792.458 * 2.0 / 3.0;
/// Names of the degrees north of a node.
const LATITUDE: [&str; 3] = ["Latitude", "latitude", "lat"];

/// The content of a file.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Graph {
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Node {
    /// The id, unique in the file.
    pub id: String,
    /// The label, if it is not empty.
    pub label: Option<String>,
    pub line: u32,
    pub attributes: Attributes,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Edge {
    /// The ids of its nodes.
    pub source: String,
    pub target: String,
    /// Whether the edge is one way only.
    pub directed: bool,
    pub line: u32,
    pub attributes: Attributes,
}

/// Names with values; none for a value that has parts.
pub(crate) type Attributes = Vec<(String, Option<String>)>;

/// A name with two values.
pub(crate) fn twice(attributes: &Attributes) -> Option<&str> {
    let mut values = BTreeMap::new();
    for (name, value) in attributes {
        if *values.entry(name).or_insert(value) != value {
            return Some(name);
        }
    }
    None
}

/// The first value of this name.
fn value<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.iter().find(|(known, _)| known == name)?.1.as_deref()
}

/// The keys that the scenario sets for all edges.
pub(crate) struct Shared<'a> {
    /// The settings of both directions.
    pub there: Spec,
    pub back: Spec,
    /// Whether the scenario sets the rate of edges.
    pub rate: bool,
    /// Whether the scenario sets the delay of edges.
    pub delay: bool,
    /// The table `topology.link`.
    pub link: Option<&'a Fields<'a>>,
}

/// The network of the graph in `file`, declared at `place`. An error is one message with the line.
pub(crate) fn network(
    graph: &Graph,
    file: &str,
    shared: &Shared<'_>,
    place: Place,
) -> Result<Network, String> {
    let mut network = Network::default();
    let mut ids = BTreeMap::new();
    for node in &graph.nodes {
        if ids.insert(node.id.as_str(), ids.len()).is_some() {
            return Err(format!(
                "{file}:{}: there are two nodes with the id {}; number one anew",
                node.line, node.id
            ));
        }
    }
    let (names, renamed) = names(&graph.nodes);
    names.iter().for_each(|name| {
        network.node(name.as_str());
    });
    let mut reader = Reader { graph, shared, taken: Taken::default() };
    let (mut loops, mut links) = (Vec::new(), LinkNames::default());
    for edge in &graph.edges {
        let at = |message: String| format!("{file}:{}: {message}", edge.line);
        let find = |id: &str| {
            ids.get(id).copied().ok_or_else(|| at(format!("edge to node {id}, which is not declared")))
        };
        let ends = (find(&edge.source)?, find(&edge.target)?);
        let [from, to] = [ends.0, ends.1].map(|end| names[end].as_str());
        if ends.0 == ends.1 {
            loops.push(from);
            continue;
        }
        let [there, back] = reader
            .specs(edge, ends)
            .map_err(|message| at(message.replacen("the edge", &format!("the edge {from}-{to}"), 1)))?;
        let name = links.name(from, to, ends);
        if edge.directed {
            network.one_way(name, ends, there, place);
        } else {
            network.two_way(name, ends, there, back, place);
        }
    }
    let renamed: Vec<&str> = renamed.into_iter().map(|at| names[at].as_str()).collect();
    network.notes = notes(file, &renamed, &loops);
    network.notes.extend(reader.notes(file));
    Ok(network)
}

/// The names of nodes, their label or else their id, and the indices of those that differ from these: if
/// several have the same name, all except the first in the file get their id appended.
fn names(nodes: &[Node]) -> (Vec<String>, Vec<usize>) {
    let written = |node: &Node| node.label.clone().unwrap_or_else(|| node.id.clone());
    let mut taken: BTreeSet<String> = nodes.iter().map(written).collect();
    let (mut used, mut renamed) = (BTreeSet::new(), Vec::new());
    let name = |(at, node): (usize, &Node)| {
        let mut name = written(node);
        if used.insert(name.clone()) {
            return name;
        }
        renamed.push(at);
        while !taken.insert(name.clone()) {
            name = format!("{name} ({})", node.id);
        }
        name
    };
    (nodes.iter().enumerate().map(name).collect(), renamed)
}

/// Names of links: `a-b`, and `a-b-2`, `a-b-3`, ... for further parallel edges.
#[derive(Default)]
struct LinkNames {
    counts: BTreeMap<(usize, usize), u32>,
    taken: BTreeSet<String>,
}

impl LinkNames {
    fn name(&mut self, from: &str, to: &str, ends: (usize, usize)) -> String {
        let count = self.counts.entry(ends).or_insert(0);
        loop {
            *count += 1;
            let number = if *count > 1 { format!("-{count}") } else { String::new() };
            let name = format!("{from}-{to}{number}");
            // With node names like `b-2` and `b.back` two links could get the same name.
            let back = format!("{name}.back");
            if !self.taken.contains(&name) && !self.taken.contains(&back) {
                self.taken.extend([name.clone(), back]);
                return name;
            }
        }
    }
}

/// Reads attributes, and records which were used.
struct Reader<'a> {
    graph: &'a Graph,
    shared: &'a Shared<'a>,
    taken: Taken,
}

#[derive(Default)]
struct Taken {
    of_edges: BTreeSet<&'static str>,
    of_nodes: BTreeSet<&'static str>,
    /// Attributes with numbers that lack a unit.
    without_unit: BTreeSet<&'static str>,
    /// Edges that have a rate although the scenario sets one, and its position.
    rates: BTreeMap<&'static str, usize>,
    /// Number of edges with the rate of their hosts.
    host_rates: usize,
    /// Delays from coordinates.
    distances: Vec<Span>,
}

impl Reader<'_> {
    /// Both directions of an edge between these nodes.
    fn specs(&mut self, edge: &Edge, ends: (usize, usize)) -> Result<[Spec; 2], String> {
        let mut specs = [self.shared.there.clone(), self.shared.back.clone()];
        let rate = self.rate(edge)?;
        let delay = self.quantity(edge, "delay", "latency")?;
        let loss: Option<Ratio> = match self.own(edge, "loss")? {
            None => self.own(edge, "packet_loss")?,
            loss => loss,
        };
        let jitter: Option<Span> = self.with_unit(edge, "jitter")?;
        for (spec, (from, to)) in specs.iter_mut().zip([ends, (ends.1, ends.0)]) {
            if let Some(rate) = rate {
                (spec.rate, spec.trace) = (rate, None);
            } else if !self.shared.rate {
                spec.rate = self.host_rate(from, to)?.ok_or_else(|| lacks("rate"))?;
            }
            if spec.rate == Rate::ZERO {
                return Err("the edge has rate zero; a rate must be above zero".to_owned());
            }
            if let Some(delay) = delay {
                spec.delay = delay;
            } else if !self.shared.delay {
                spec.delay = self.distance(from, to).ok_or_else(|| self.lacks_delay(ends))?;
            }
            if let Some(loss) = loss {
                spec.loss = Loss::Chance(loss);
            }
            if let Some(max) = jitter {
                let jitter = Jitter { max, distribution: JitterDistribution::Uniform, reorder: false };
                spec.jitter = (max > Span::ZERO).then_some(jitter);
            }
        }
        if rate.is_none() && !self.shared.rate {
            self.taken.host_rates += 1;
        }
        if delay.is_none() && !self.shared.delay {
            self.taken.distances.push(specs[0].delay);
        }
        Ok(specs)
    }

    fn rate(&mut self, edge: &Edge) -> Result<Option<Rate>, String> {
        if let Some(rate) = self.quantity(edge, "rate", "bandwidth")? {
            return Ok(Some(rate));
        }
        let get = |name: &str| value(&edge.attributes, name);
        let found = match (get("LinkSpeedRaw"), get("LinkSpeed"), get("LinkSpeedUnits"), get("LinkLabel")) {
            (Some(raw), ..) => Some((
                "LinkSpeedRaw",
                bits(raw, "")
                    .ok_or_else(|| format!("the edge: LinkSpeedRaw: `{raw}` is not a rate in bit/s"))?,
            )),
            (_, Some(speed), Some(units), _) if bits(speed, units).is_some() => {
                bits(speed, units).map(|rate| ("LinkSpeed", rate))
            }
            (.., Some(label)) => labelled(label).map(|rate| ("LinkLabel", rate)),
            _ => None,
        };
        let Some((name, rate)) = found else { return Ok(None) };
        self.taken.of_edges.insert(name);
        if name != "LinkLabel" {
            self.taken.of_edges.extend(["LinkSpeed", "LinkSpeedUnits"]);
        }
        if self.shared.link.is_some_and(|link| link.item("rate").is_some()) {
            *self.taken.rates.entry(name).or_default() += 1;
        }
        Ok(Some(rate))
    }

    /// The edge's attribute of our name, which must be valid, else another one.
    fn quantity<T: FromStr<Err: ToString>>(
        &mut self,
        edge: &Edge,
        own: &'static str,
        other: &'static str,
    ) -> Result<Option<T>, String> {
        match self.own(edge, own)? {
            None => self.with_unit(edge, other),
            found => Ok(found),
        }
    }

    fn own<T: FromStr<Err: ToString>>(
        &mut self,
        edge: &Edge,
        name: &'static str,
    ) -> Result<Option<T>, String> {
        let Some(text) = value(&edge.attributes, name) else { return Ok(None) };
        self.taken.of_edges.insert(name);
        text.parse().map(Some).map_err(|error: T::Err| format!("the edge: {name}: {}", error.to_string()))
    }

    /// None for a bare number: programs write numbers of many units under such names.
    fn with_unit<T: FromStr<Err: ToString>>(
        &mut self,
        edge: &Edge,
        name: &'static str,
    ) -> Result<Option<T>, String> {
        if value(&edge.attributes, name).is_some_and(is_number) {
            self.taken.without_unit.insert(name);
            return Ok(None);
        }
        self.own(edge, name)
    }

    /// The rates at which two hosts can send and receive.
    fn host_rate(&mut self, from: usize, to: usize) -> Result<Option<Rate>, String> {
        let mut of = |node: usize, name: &'static str| {
            let Some(text) = value(&self.graph.nodes[node].attributes, name) else { return Ok(None) };
            if is_number(text) {
                self.taken.without_unit.insert(name);
                return Ok(None);
            }
            self.taken.of_nodes.insert(name);
            let rate: Result<Rate, _> = text.parse();
            rate.map(Some).map_err(|error| format!("the edge: {name}: {error}"))
        };
        let (up, down) = (of(from, "host_bandwidth_up")?, of(to, "host_bandwidth_down")?);
        Ok(up.into_iter().chain(down).min())
    }

    /// The time of light in fibre between two nodes; none without coordinates.
    fn distance(&mut self, from: usize, to: usize) -> Option<Span> {
        let mut place = |node: usize| {
            let attributes = &self.graph.nodes[node].attributes;
            let mut degrees = |names: [&'static str; 3], most: f64| {
                let (name, text) =
                    names.into_iter().find_map(|name| Some((name, value(attributes, name)?)))?;
                let degrees: f64 = text.trim().parse().ok()?;
                self.taken.of_nodes.insert(name);
                (degrees.abs() <= most).then(|| degrees.to_radians())
            };
            Some((degrees(LATITUDE, 90.0)?, degrees(["Longitude", "longitude", "lon"], 180.0)?))
        };
        let (from, to) = (place(from)?, place(to)?);
        let square = |angle: f64| {
            let sine = libm::sin(angle / 2.0);
            sine * sine
        };
        // The haversine formula, which is exact also for near points (Sinnott, Sky and Telescope 68, 1984).
        let half = square(to.0 - from.0) + libm::cos(from.0) * libm::cos(to.0) * square(to.1 - from.1);
        let km = 2.0 * EARTH_RADIUS * libm::asin(half.min(1.0).sqrt());
        Some(Span::from_nanos((km / LIGHT_IN_FIBRE * 1e9) as u64))
    }

    /// Names the end without coordinates, if any node has them.
    fn lacks_delay(&self, ends: (usize, usize)) -> String {
        let has = |node: &Node| LATITUDE.iter().any(|name| value(&node.attributes, name).is_some());
        let nodes = [ends.0, ends.1].map(|end| &self.graph.nodes[end]);
        match nodes.into_iter().find(|node| !has(node)) {
            Some(node) if self.graph.nodes.iter().any(has) => format!(
                "the edge has no `delay`, and node {} no coordinates; give it one, or set topology.link.delay",
                node.id
            ),
            _ => lacks("delay"),
        }
    }

    /// Notes on surprising sources of values, and on unused attributes.
    fn notes(&self, file: &str) -> Vec<String> {
        let mut notes = Vec::new();
        let all = self.graph.edges.len();
        if let (Some(least), Some(most)) =
            (self.taken.distances.iter().min(), self.taken.distances.iter().max())
        {
            let (count, ms) = (self.taken.distances.len(), |span: &Span| 1e3 * span.as_secs_f64());
            notes.push(format!(
                "{count} of {all} edges of `{file}` have the delay of light in fibre between the coordinates of their nodes, {:.2} to \
                 {:.2} ms; `topology.link.delay` sets another",
                ms(least),
                ms(most)
            ));
        }
        if self.taken.host_rates > 0 {
            notes.push(format!(
                "{} of {all} edges of `{file}` have the rate that their nodes have as host_bandwidth_up and host_bandwidth_down; \
                 `topology.link.rate` sets another",
                self.taken.host_rates
            ));
        }
        for (name, count) in &self.taken.rates {
            notes.push(format!(
                "{count} of {all} edges of `{file}` have their rate from {name}; `topology.link.rate` is for those without"
            ));
        }
        notes.extend(self.ignored(file));
        notes
    }

    /// The attributes that no edge or node needed.
    fn ignored(&self, file: &str) -> Option<String> {
        let unused = |all: &mut dyn Iterator<Item = &Attributes>, used: &BTreeSet<&'static str>| {
            let names: BTreeSet<&str> = all.flatten().map(|(name, _)| name.as_str()).collect();
            let without = |name: &str| self.taken.without_unit.contains(name);
            let names = names.into_iter().filter(|name| without(name) || !used.contains(name));
            let named = names.map(|name| match without(name) {
                true => format!("{name} (without a unit)"),
                false => name.to_owned(),
            });
            named.collect::<Vec<_>>().join(", ")
        };
        let of_edges =
            unused(&mut self.graph.edges.iter().map(|edge| &edge.attributes), &self.taken.of_edges);
        let of_nodes =
            unused(&mut self.graph.nodes.iter().map(|node| &node.attributes), &self.taken.of_nodes);
        let of = |what: &str, names: &str| (!names.is_empty()).then(|| format!("of {what} {names}"));
        let parts: Vec<String> = of("edges", &of_edges).into_iter().chain(of("nodes", &of_nodes)).collect();
        (!parts.is_empty()).then(|| format!("attributes in `{file}` that are not used: {}", parts.join("; ")))
    }
}

fn lacks(key: &str) -> String {
    format!("the edge has no `{key}`; give it one, or set topology.link.{key}")
}

fn is_number(text: &str) -> bool {
    text.trim().parse::<f64>().is_ok()
}

/// A rate of `number` times `units` bit/s.
fn bits(number: &str, units: &str) -> Option<Rate> {
    let unit = match units {
        "" => 1.0,
        "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        _ => return None,
    };
    let bits = number.trim().parse::<f64>().ok()? * unit;
    (0.0..=1e18).contains(&bits).then(|| Rate::from_bit(bits.round() as u64))
}

/// The rate in a label that is only a rate, for example `2.5 Gbps`: `< 1 Gbps`, `2x10Gb/s` and `1 GB/s` are
/// ambiguous.
fn labelled(label: &str) -> Option<Rate> {
    let amount = ["bps", "bit/s", "b/s"].into_iter().find_map(|unit| label.trim().strip_suffix(unit))?;
    let prefix = amount.chars().next_back().filter(char::is_ascii_alphabetic)?;
    let units = prefix.to_ascii_uppercase().to_string();
    bits(amount.strip_suffix(prefix)?, &units)
}

/// Notes on renamed nodes and on loops.
fn notes(file: &str, renamed: &[&str], loops: &[&str]) -> Vec<String> {
    let listed = |names: &[&str]| {
        let named: Vec<String> = names.iter().take(MOST_NAMED).map(|name| format!("`{name}`")).collect();
        let more = names.len() - named.len();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{}{more}", named.join(", "))
    };
    let mut notes = Vec::new();
    if !renamed.is_empty() {
        notes.push(format!(
            "`{file}` has nodes of the same label; all but the first have their id added: {}",
            listed(renamed)
        ));
    }
    if !loops.is_empty() {
        notes.push(format!(
            "edges of `{file}` that lead from a node to itself carry nothing: {}",
            listed(loops)
        ));
    }
    notes
}
