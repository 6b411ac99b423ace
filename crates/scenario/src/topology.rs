//! Predefined topologies: a few keys that expand into links. [`crate::tables::TOPOLOGIES`] describes them.

use std::path::Path;

use apportion_core::param::Kind;
use apportion_core::units::{Rate, Span};

use crate::defaults::Defaults;
use crate::files::Files;
use crate::graph::{self, Graph, Shared};
use crate::keys::{Fields, walk, walk_variant};
use crate::network::{Network, Spec};
use crate::problem::{Place, Problems};
use crate::queue;
use crate::tables::{DEFAULT_BACK, MAX_LINKS, TOPOLOGIES};
use crate::text::Item;
use crate::{gml, graphml};

/// Expands the table `topology`; `None` if its errors leave the nodes unknown.
pub(crate) fn expand(
    item: &Item,
    files: &Files<'_>,
    defaults: &Defaults<'_>,
    problems: &mut Problems,
) -> Option<Network> {
    let (variant, fields) = walk_variant(item, "topology", TOPOLOGIES, false, problems)?;
    match variant.name {
        "dumbbell" => two_sides(&fields, "bottleneck", ["left", "right"], defaults, problems),
        "satellite" => two_sides(&fields, "satellite", ["gateway", "terminal"], defaults, problems),
        "chain" => row(&fields, false, defaults, problems),
        "parking_lot" => row(&fields, true, defaults, problems),
        "gfc" => Some(gfc(&fields, defaults, problems)),
        "fat_tree" => fat_tree(&fields, defaults, problems),
        "leaf_spine" => leaf_spine(&fields, defaults, problems),
        "graphml" => graph(&fields, graphml::parse, files, defaults, problems),
        _ => graph(&fields, gml::parse, files, defaults, problems),
    }
}

/// Both directions of a link.
#[derive(Clone)]
struct Pair {
    there: Spec,
    back: Spec,
}

impl Pair {
    fn of(self, rate: Rate, delay: Span) -> Self {
        let set = |spec| Spec { rate, trace: None, delay, ..spec };
        Self { there: set(self.there), back: set(self.back) }
    }
}

/// The link that the table under `name` describes, watched as a bottleneck.
fn bottleneck(fields: &Fields<'_>, name: &str, defaults: &Defaults<'_>, problems: &mut Problems) -> Pair {
    let mut there = watched(defaults);
    let mut back = defaults.other_way(&there, problems);
    if let Some(table) = table(fields, name, false, problems) {
        there.change(&table, 1, &defaults.catalog, defaults.files, problems);
        back = Spec { rate: there.rate, trace: there.trace.clone(), delay: there.delay, ..back };
        if let Some(item) = table.item("back")
            && let Some(changes) = walk(item, &table.path_of("back"), DEFAULT_BACK, false, problems)
        {
            back.change(&changes, 1, &defaults.catalog, defaults.files, problems);
        }
    }
    Pair { there, back }
}

/// A watched link, unless defaults change that.
fn watched(defaults: &Defaults<'_>) -> Spec {
    let spec = defaults.link(queue::default(&defaults.catalog));
    Spec { watch: spec.watch || !defaults.has("watch"), ..spec }
}

/// The table under `name`.
fn table<'a>(fields: &Fields<'a>, name: &str, indexed: bool, problems: &mut Problems) -> Option<Fields<'a>> {
    let Kind::Table(keys) = fields.kind(name)? else { return None };
    walk(fields.item(name)?, &fields.path_of(name), keys, indexed, problems)
}

/// Access links: their keys may be formulas of `i`.
struct Access<'a> {
    fields: Option<Fields<'a>>,
    plain: Pair,
}

impl<'a> Access<'a> {
    fn new(fields: &Fields<'a>, defaults: &Defaults<'_>, problems: &mut Problems) -> Self {
        let rate = (Rate::from_mbit(100), "topology.access.rate");
        let plain = access(rate, Span::from_millis(1), defaults, problems);
        Self::of(plain, fields, defaults, problems)
    }

    /// Access links like `plain`, with the keys of their table.
    fn of(mut plain: Pair, fields: &Fields<'a>, defaults: &Defaults<'_>, problems: &mut Problems) -> Self {
        let fields = table(fields, "access", true, problems);
        if let Some(item) = fields.as_ref().and_then(|fields| fields.item("queue"))
            && let Some(queue) = queue::read(&defaults.catalog, item, "topology.access.queue", problems)
        {
            plain.there.queue = queue.clone();
            plain.back.queue = queue;
        }
        Self { fields, plain }
    }

    /// The access link of host `i`.
    fn pair(&self, i: u64, problems: &mut Problems) -> Pair {
        let pair = self.plain.clone();
        let Some(fields) = &self.fields else { return pair };
        let rate = fields.get("rate", i, problems).unwrap_or(pair.there.rate);
        let delay = fields.get("delay", i, problems).unwrap_or(pair.there.delay);
        pair.of(rate, delay)
    }
}

/// A link that is not meant to be a bottleneck.
///
/// Its rate is stored with the key that sets it.
fn access(
    (rate, rate_key): (Rate, &'static str),
    delay: Span,
    defaults: &Defaults<'_>,
    problems: &mut Problems,
) -> Pair {
    let there = Spec { rate_key: Some(rate_key), ..defaults.link(queue::deep()) };
    let back = defaults.other_way(&there, problems);
    Pair { there, back }.of(rate, delay)
}

/// Hosts l1, l2, ... - router - link - router - hosts r1, r2, ...
fn two_sides(
    fields: &Fields<'_>,
    name: &str,
    routers: [&str; 2],
    defaults: &Defaults<'_>,
    problems: &mut Problems,
) -> Option<Network> {
    let place = fields.place;
    let Pair { there, back } = bottleneck(fields, name, defaults, problems);
    let access = Access::new(fields, defaults, problems);
    let pairs = fields.get("pairs", 1, problems)?;
    let mut network = Network::default();
    let [left, right] = routers.map(|router| network.node(router));
    network.two_way(name.to_owned(), (left, right), there, back, place);
    let hosts: Vec<_> = (1..=pairs).map(|i| access.pair(i, problems)).collect();
    for (i, pair) in (1..).zip(hosts.clone()) {
        let host = network.node(format!("l{i}"));
        let link = format!("l{i}-{}", routers[0]);
        network.two_way(link, (host, left), pair.there, pair.back, place);
    }
    for (i, pair) in (1..).zip(hosts) {
        let host = network.node(format!("r{i}"));
        let link = format!("{}-r{i}", routers[1]);
        network.two_way(link, (right, host), pair.there, pair.back, place);
    }
    Some(network)
}

/// Routers in a row. In a parking lot each hop has hosts of its own for cross traffic.
fn row(
    fields: &Fields<'_>,
    parking_lot: bool,
    defaults: &Defaults<'_>,
    problems: &mut Problems,
) -> Option<Network> {
    let place = fields.place;
    let Pair { there, back } = bottleneck(fields, "link", defaults, problems);
    let access = Access::new(fields, defaults, problems);
    let hops: u64 = fields.get("hops", 1, problems)?;
    let mut network = Network::default();
    let routers: Vec<_> = (1..=hops + 1).map(|k| network.node(format!("n{k}"))).collect();
    for (k, pair) in (1..).zip(routers.windows(2)) {
        network.two_way(format!("hop{k}"), (pair[0], pair[1]), there.clone(), back.clone(), place);
    }
    let mut host = |name: String, k: u64, router: usize, problems: &mut Problems| {
        let node = network.node(name.clone());
        let Pair { there, back } = access.pair(k, problems);
        network.two_way(format!("{name}-n{k}"), (node, router), there, back, place);
    };
    if parking_lot {
        host("src".to_owned(), 1, routers[0], problems);
        host("dst".to_owned(), hops + 1, routers[routers.len() - 1], problems);
        for (k, pair) in (1..).zip(routers.windows(2)) {
            host(format!("in{k}"), k, pair[0], problems);
            host(format!("out{k}"), k + 1, pair[1], problems);
        }
    } else {
        for (k, router) in (1..).zip(&routers) {
            host(format!("h{k}"), k, *router, problems);
        }
    }
    Some(network)
}

/// The generic fairness configuration, with the dimensions in which core-stateless fair queueing with minimum
/// guarantees was evaluated (Pelsser and De Cnodder 2002): rates in kbit/s, each link 10 ms.
fn gfc(fields: &Fields<'_>, defaults: &Defaults<'_>, problems: &mut Problems) -> Network {
    const LINKS: [(&str, u64); 3] = [("R1-R2", 15_600), ("R2-R3", 36_000), ("R3-R4", 22_800)];
    let place = fields.place;
    let queue = fields
        .item("queue")
        .and_then(|item| queue::read(&defaults.catalog, item, "topology.queue", problems));
    let plain = watched(defaults);
    let mut network = Network::default();
    let routers: Vec<_> = (1..=4).map(|k| network.node(format!("R{k}"))).collect();
    for ((name, rate), pair) in LINKS.into_iter().zip(routers.windows(2)) {
        let (rate, delay) = (Rate::from_kbit(rate), Span::from_millis(10));
        let mut there = plain.clone();
        if let Some(queue) = &queue {
            there.queue = queue.clone();
        }
        let back = defaults.other_way(&there, problems);
        let Pair { there, back } = Pair { there, back }.of(rate, delay);
        network.two_way(name.to_owned(), (pair[0], pair[1]), there, back, place);
    }
    let rate = fields.get("access", 1, problems).unwrap_or_default();
    for kind in ["short", "long"] {
        let delay = fields.get(kind, 1, problems).unwrap_or_default();
        for (k, router) in (1..).zip(&routers) {
            let host = network.node(format!("{kind}{k}"));
            let Pair { there, back } = access((rate, "topology.access"), delay, defaults, problems);
            network.two_way(format!("{kind}{k}-R{k}"), (host, *router), there, back, place);
        }
    }
    network
}

/// Links with the keys of `fields` in both directions.
fn alike(fields: Option<&Fields<'_>>, defaults: &Defaults<'_>, problems: &mut Problems) -> Pair {
    let there = defaults.link(queue::default(&defaults.catalog));
    let mut pair = Pair { back: defaults.change_back(there.clone(), problems), there };
    if let Some(fields) = fields {
        for spec in [&mut pair.there, &mut pair.back] {
            spec.change(fields, 1, &defaults.catalog, defaults.files, problems);
        }
    }
    pair
}

/// Layers of switches under construction.
struct Fabric<'a> {
    network: Network,
    links: Pair,
    access: Access<'a>,
    hosts: u64,
    place: Place,
}

impl<'a> Fabric<'a> {
    fn new(fields: &Fields<'a>, defaults: &Defaults<'_>, problems: &mut Problems) -> Self {
        let links = alike(table(fields, "link", false, problems).as_ref(), defaults, problems);
        let access = Access::of(links.clone(), fields, defaults, problems);
        Self { network: Network::default(), links, access, hosts: 0, place: fields.place }
    }

    /// `count` switches called `name`, from 1, each with its number.
    fn switches(&mut self, name: &str, count: u64) -> Vec<Switch> {
        let switch = |number| {
            let name = format!("{name}{number}");
            Switch { node: self.network.node(name.as_str()), name }
        };
        (1..=count).map(switch).collect()
    }

    fn link(&mut self, below: &Switch, above: &Switch) {
        let Pair { there, back } = self.links.clone();
        let name = format!("{}-{}", below.name, above.name);
        self.network.two_way(name, (below.node, above.node), there, back, self.place);
    }

    /// `count` hosts at a switch.
    fn hosts(&mut self, at: &Switch, count: u64, problems: &mut Problems) {
        for _ in 0..count {
            self.hosts += 1;
            let name = format!("h{}", self.hosts);
            let Pair { there, back } = self.access.pair(self.hosts, problems);
            let ends = (self.network.node(name.as_str()), at.node);
            self.network.two_way(format!("{name}-{}", at.name), ends, there, back, self.place);
        }
    }
}

struct Switch {
    name: String,
    node: usize,
}

/// Pods of edge and aggregation switches below core switches.
fn fat_tree(fields: &Fields<'_>, defaults: &Defaults<'_>, problems: &mut Problems) -> Option<Network> {
    let k: u64 = fields.get("k", 1, problems)?;
    let mut fabric = Fabric::new(fields, defaults, problems);
    if !k.is_multiple_of(2) {
        fields.refuse(
            "k",
            format!("half of the ports lead up, so `{k}` must be even; write for example 4"),
            problems,
        );
        return None;
    }
    let half = (k / 2) as usize;
    let [edges, aggs] = ["edge", "agg"].map(|name| fabric.switches(name, k * k / 2));
    let cores = fabric.switches("core", k * k / 4);
    for (edges, aggs) in edges.chunks(half).zip(aggs.chunks(half)) {
        for edge in edges {
            fabric.hosts(edge, k / 2, problems);
            aggs.iter().for_each(|agg| fabric.link(edge, agg));
        }
        // Each aggregation switch of a pod has core switches of its own.
        for (agg, cores) in aggs.iter().zip(cores.chunks(half)) {
            cores.iter().for_each(|core| fabric.link(agg, core));
        }
    }
    Some(fabric.network)
}

/// Leaves, each with a link to every spine.
fn leaf_spine(fields: &Fields<'_>, defaults: &Defaults<'_>, problems: &mut Problems) -> Option<Network> {
    let [leaves, spines, hosts] = ["leaves", "spines", "hosts"].map(|key| fields.get(key, 1, problems));
    let (leaves, spines, hosts): (u64, u64, u64) = (leaves?, spines?, hosts?);
    let mut fabric = Fabric::new(fields, defaults, problems);
    let links = 2 * leaves * (spines + hosts);
    if links > MAX_LINKS {
        let message = format!("{links} one-way links; at most {MAX_LINKS} are possible");
        fields.refuse("leaves", message, problems);
        return None;
    }
    let (leaves, spines) = (fabric.switches("leaf", leaves), fabric.switches("spine", spines));
    for leaf in &leaves {
        fabric.hosts(leaf, hosts, problems);
        spines.iter().for_each(|spine| fabric.link(leaf, spine));
    }
    Some(fabric.network)
}

/// A graph from a file that `parse` reads.
fn graph(
    fields: &Fields<'_>,
    parse: fn(&str) -> Result<Graph, (u32, String)>,
    files: &Files<'_>,
    defaults: &Defaults<'_>,
    problems: &mut Problems,
) -> Option<Network> {
    let link = table(fields, "link", false, problems);
    let Pair { there, back } = alike(link.as_ref(), defaults, problems);
    let has = |key| defaults.has(key) || link.as_ref().is_some_and(|link| link.item(key).is_some());
    let shared = Shared { there, back, rate: has("rate"), delay: has("delay"), link: link.as_ref() };
    let file = fields.text("file")?;
    let read = files.graph(Path::new(file)).map_err(|error| error.to_string());
    let parsed =
        read.and_then(|text| parse(&text).map_err(|(line, message)| format!("{file}:{line}: {message}")));
    let built = parsed.and_then(|parsed| graph::network(&parsed, file, &shared, fields.place));
    built.map_err(|message| fields.refuse("file", message, problems)).ok()
}
