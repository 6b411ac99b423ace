//! The files of LibreQoS: circuits of `ShapedDevices.csv` in the tree of `network.json`, with the interfaces and rates of `lqos.conf`.
//!
//! LibreQoS assures a circuit its minimum, and divides the rest by maximums. Here a plan without a minimum
//! has a share by its maximum, and one with a minimum has that in place of its share. Minimums below the
//! share are therefore left out, because they would lower it.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::units::Rate;
use serde_json::{Map, Value};

use super::file::{File, comment_text};
use super::report::Report;
use super::shaped_devices::{self, Circuit, plain};
use crate::direction::Direction;
use crate::gateway::interface;
use crate::problem::Problems;
use crate::text::{self, Item, Table, quoted};

/// Interfaces if no file names them.
const INTERFACES: [&str; 2] = ["lan0", "wan0"];
/// The name in files of plans that takes packets without a customer.
const OTHERS: &str = "others";
/// The node above all others, and above circuits without a node.
const UPLINK: &str = "uplink";
/// Divisor: the part of the link that is assured to addresses without a circuit. Chosen: LibreQoS assures
/// them a quarter, and here each assured rate counts while all want more.
const OTHERS_PART: u64 = 100;

/// The message about a file that is none of these.
const NO_FILE: &str = "neither ShapedDevices.csv, whose first line has `Circuit ID`, nor network.json, nor lqos.conf with [bridge] or [queues]";

/// A node of the tree, or a circuit.
#[derive(Default)]
struct Node {
    name: String,
    parent: Option<usize>,
    addresses: String,
    /// Ceilings by direction, up first; none: that of the parent.
    most: [Option<Rate>; 2],
    least: [Option<Rate>; 2],
    /// The origin.
    comment: String,
    line: u32,
    file: usize,
}

impl Node {
    fn new(name: &str, parent: Option<usize>, comment: String) -> Self {
        Self { name: name.to_owned(), parent, comment, line: 1, ..Self::default() }
    }
}

fn is_devices(file: &File) -> bool {
    let first = file.text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| plain(line).contains("circuitid"))
}

fn is_network(file: &File) -> bool {
    file.text.trim_start().starts_with('{')
}

/// Whether the file is one of these.
pub(super) fn is_one(file: &File) -> bool {
    is_devices(file) || is_network(file) && plain(&file.text).contains("downloadbandwidth")
}

/// The configuration of a gateway, and its file of plans.
pub(super) fn import(files: &[File], plans: &str, report: &mut Report) -> Option<(String, Option<String>)> {
    let Some(devices) = files.iter().position(is_devices) else {
        report.in_file(files.first().map_or("", |file| file.name.as_str()));
        report.refuse(1, "there are no circuits; name ShapedDevices.csv, whose first line has `Circuit ID`, before network.json");
        return None;
    };
    let mut tree = Tree::new();
    let mut settings = Settings::default();
    for (number, file) in files.iter().enumerate() {
        report.in_file(&file.name);
        if number == devices {
            continue;
        }
        if is_network(file) {
            tree.read(number, &file.text, report);
        } else if is_devices(file) {
            report.refuse(1, "a second list of circuits; put all into one");
        } else {
            settings.read(&file.text, report);
        }
    }
    report.in_file(&files[devices].name);
    report.note(1, "sqm of LibreQoS, mostly `cake diffserv4`: each customer has fq_codel, since classes of htb have no cake");
    let circuits = shaped_devices::read(&files[devices].text, report);
    tree.add_circuits(devices, &circuits, report);
    if report.has_refused() {
        return None;
    }
    if tree.nodes.iter().all(|node| node.addresses.is_empty()) {
        let mend = "fill the columns IPv4 or IPv6";
        report
            .refuse(1, format!("no circuit has an address, and packets are told apart by addresses; {mend}"));
        return None;
    }
    tree.drop_bare(files, report);
    if let Some([old, new]) = &tree.first_renamed {
        let count = tree.renamed;
        report.in_file(&files[devices].name);
        report.note(1, format!("names that are taken, or that plans cannot have: {count} changed, the first from `{old}` to `{new}`"));
    }
    report.in_file(&files[devices].name);
    let rates = Direction::BOTH.map(|way| settings.rates[way as usize].unwrap_or_else(|| tree.sum(way)));
    for way in Direction::BOTH.into_iter().filter(|way| settings.rates[*way as usize].is_none()) {
        let sum = rates[way as usize];
        report.note(1, format!("{}: no lqos.conf says what the uplink carries; the sum of what is below it, {sum}, stands for that", way.name()));
    }
    if settings.interfaces.contains(&None) {
        let [inside, outside] = INTERFACES;
        report.note(1, format!("no lqos.conf names the interfaces; {inside} and {outside} stand for them"));
    }
    report.note(1, format!("addresses without a circuit have what others leave, at least a part in {OTHERS_PART} of the link; LibreQoS has a quarter"));
    tree.add_uplink(rates);
    tree.assure(files, report);
    Some((configuration(plans, &settings, rates), Some(tree.csv(files, report)?)))
}

fn configuration(plans: &str, settings: &Settings, rates: [Rate; 2]) -> String {
    let [inside, outside] =
        [0, 1].map(|at| settings.interfaces[at].clone().unwrap_or_else(|| INTERFACES[at].to_owned()));
    let direction = |way: Direction| {
        let (name, rate) = (way.name(), rates[way as usize]);
        format!(
            "\n[{name}]\nrate = \"{rate}\"\nqueue = {{ kind = \"htb\", discipline = \"fq_codel\", plans = \"{name}\" }}\n"
        )
    };
    format!(
        "inside = {}\noutside = {}\nmetrics = \"127.0.0.1:9617\"\nplans = {}\n{}{}",
        quoted(&inside),
        quoted(&outside),
        quoted(plans),
        direction(Direction::Up),
        direction(Direction::Down)
    )
}

/// The content of `lqos.conf`.
#[derive(Default)]
struct Settings {
    /// The interfaces towards the inside and the outside.
    interfaces: [Option<String>; 2],
    /// Rates by direction, up first.
    rates: [Option<Rate>; 2],
}

impl Settings {
    fn read(&mut self, text: &str, report: &mut Report) {
        let mut problems = Problems::default();
        let root = text::parse(text, &mut problems);
        if !problems.is_empty() {
            report.refuse(1, NO_FILE);
            return;
        }
        let of = |table: &str, key: &str| -> Option<Item> {
            root.get(table).and_then(Item::as_table)?.get(key).cloned()
        };
        self.interfaces = ["to_network", "to_internet"].map(|key| {
            let name = of("bridge", key)?;
            report.or_refuse(1, interface(&name.plain()))
        });
        let rate = |key: &str| match of("queues", key)?.value {
            text::Value::Integer(mbps) => {
                u64::try_from(mbps).ok().filter(|mbps| (1..=1_000_000).contains(mbps)).map(Rate::from_mbit)
            }
            _ => None,
        };
        self.rates = [rate("uplink_bandwidth_mbps"), rate("downlink_bandwidth_mbps")];
        if self.interfaces == [None, None] && self.rates == [None, None] {
            report.refuse(1, NO_FILE);
        }
        if self.interfaces.contains(&None)
            && root.get("single_interface").is_some_and(|item: &Item| item.as_table().is_some_and(is_full))
        {
            report.note(1, "single_interface: a gateway stands between two interfaces");
        }
    }
}

fn is_full(table: &Table) -> bool {
    !table.entries.is_empty()
}

/// The nodes, each after its parent: the uplink, then those of `network.json`, then circuits.
struct Tree {
    nodes: Vec<Node>,
    /// Nodes by the names and ids that circuits refer to.
    by_name: BTreeMap<String, usize>,
    taken: BTreeSet<String>,
    /// The number of renamed nodes, and the first of them.
    renamed: usize,
    first_renamed: Option<[String; 2]>,
}

impl Tree {
    fn new() -> Self {
        let mut tree = Self {
            nodes: Vec::new(),
            by_name: BTreeMap::new(),
            taken: BTreeSet::new(),
            renamed: 0,
            first_renamed: None,
        };
        tree.push(Node::new(UPLINK, None, "what the gateway divides".to_owned()));
        tree
    }

    /// Sets the rates of the uplink, and adds the node of addresses without a circuit.
    fn add_uplink(&mut self, rates: [Rate; 2]) {
        self.nodes[0].most = rates.map(Some);
        let least = rates.map(|rate| Some(Rate::from_bit((rate.as_bit() / OTHERS_PART).max(1))));
        let others = Node::new(OTHERS, Some(0), "addresses without a circuit".to_owned());
        self.nodes.push(Node { most: rates.map(Some), least, ..others });
    }

    /// Reads `network.json`.
    fn read(&mut self, file: usize, text: &str, report: &mut Report) {
        match serde_json::from_str::<Map<String, Value>>(text.trim_start_matches('\u{feff}')) {
            Ok(map) => {
                let lines = lines_of_names(text);
                self.read_nodes(file, &map, 0, &lines, report);
            }
            Err(why) => {
                let line = u32::try_from(why.line()).unwrap_or(1);
                report.refuse(line, format!("not a network.json: {why}"));
            }
        }
    }

    fn read_nodes(
        &mut self,
        file: usize,
        map: &Map<String, Value>,
        parent: usize,
        lines: &BTreeMap<&str, u32>,
        report: &mut Report,
    ) {
        for (name, value) in map {
            let line = lines.get(name.as_str()).copied().unwrap_or(1);
            let Some(fields) = value.as_object() else {
                // A value of the parent, for example its rate, is read with it.
                if parent == 0 {
                    report.refuse(
                        line,
                        format!("`{name}` is no node; a node is an object with downloadBandwidthMbps"),
                    );
                }
                continue;
            };
            let own = self.read_node(file, name, fields, parent, line, report);
            let id = fields.get("id").and_then(Value::as_str);
            for known in [Some(name.as_str()), id].into_iter().flatten() {
                if self.by_name.insert(known.to_owned(), own).is_some() {
                    report
                        .note(line, format!("another node is called `{known}` too: circuits go to the last"));
                }
            }
            if let Some(children) = fields.get("children").and_then(Value::as_object) {
                self.read_nodes(file, children, own, lines, report);
            }
        }
    }

    /// Reads a node; a virtual one is replaced by its parent.
    fn read_node(
        &mut self,
        file: usize,
        name: &str,
        fields: &Map<String, Value>,
        parent: usize,
        line: u32,
        report: &mut Report,
    ) -> usize {
        let is_virtual = fields.get("virtual").and_then(Value::as_bool).unwrap_or(false)
            || fields
                .get("type")
                .and_then(Value::as_str)
                .is_some_and(|kind| kind.eq_ignore_ascii_case("virtual"));
        if is_virtual {
            report.note(
                line,
                format!("`{name}` is virtual: what is under it is under its parent, as LibreQoS has it"),
            );
            return parent;
        }
        let known = [
            "id",
            "name",
            "type",
            "children",
            "virtual",
            "latitude",
            "longitude",
            "active_attachment_name",
            "uisp_site",
            "uisp_device",
        ];
        let [mut most, mut least] = [[None; 2]; 2];
        for (key, value) in fields {
            let plain = plain(key);
            let way = usize::from(plain.contains("down"));
            let is_rate = ["bandwidth", "mbps", "maxdownload", "maxupload", "mindownload", "minupload"]
                .iter()
                .any(|part| plain.contains(part));
            if (plain.contains("down") || plain.contains("up")) && is_rate {
                let slot =
                    if plain.starts_with("min") || plain.ends_with("min") { &mut least } else { &mut most };
                match rate_of(value) {
                    Ok(rate) => slot[way] = rate,
                    Err(why) => report.refuse(line, format!("{name}: {key}: {why}")),
                }
            } else if !known.contains(&key.as_str()) {
                report.note(line, format!("{name}: `{key}`: there is no word for it here"));
            }
        }
        let comment = format!("{}: {name}", report.place(line));
        self.push(Node { most, least, line, file, ..Node::new(name, Some(parent), comment) })
    }

    /// Adds a node under a unique name that is valid in files of plans.
    fn push(&mut self, mut node: Node) -> usize {
        let keeps = |c: char| c.is_alphanumeric() || " -_+/:@()".contains(c);
        let name: String = node.name.chars().map(|c| if keeps(c) { c } else { '-' }).collect();
        let name = Some(name.trim().to_owned())
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| "unnamed".to_owned());
        let free = |name: &String| name != OTHERS && !self.taken.contains(name);
        // There are fewer names than candidates, so one is free.
        let numbered = (2..=self.nodes.len() + 3).map(|number| format!("{name}-{number}"));
        let own = std::iter::once(name.clone()).chain(numbered).find(free).unwrap_or(name);
        if own != node.name {
            self.renamed += 1;
            self.first_renamed.get_or_insert_with(|| [node.name.clone(), own.clone()]);
        }
        node.name = own;
        self.taken.insert(node.name.clone());
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn add_circuits(&mut self, file: usize, circuits: &[Circuit], report: &mut Report) {
        let named = circuits.iter().find(|circuit| !circuit.parents.is_empty());
        if let Some(circuit) = named.filter(|_| self.by_name.is_empty()) {
            report.note(
                circuit.line,
                format!(
                    "circuits have nodes, and there are none in a network.json: all are under `{UPLINK}`"
                ),
            );
        }
        for Circuit { line, id, name, parents, prefixes, least, most } in circuits {
            let line = *line;
            if prefixes.is_empty() {
                report.note(line, format!("circuit {id}: it has no address: left out"));
                continue;
            }
            let parent = parents.iter().find_map(|name| self.by_name.get(name).copied());
            if parent.is_none() && !parents.is_empty() && !self.by_name.is_empty() {
                report.note(
                    line,
                    format!(
                        "circuit {id}: network.json has no node `{}`: it is under `{UPLINK}`",
                        parents.join(", ")
                    ),
                );
            }
            let addresses: Vec<_> = prefixes.iter().map(ToString::to_string).collect();
            let comment = format!("{}: {name}", report.place(line));
            let node = Node::new(id, Some(parent.unwrap_or(0)), comment);
            self.push(Node {
                addresses: addresses.join(" "),
                most: most.map(Some),
                least: *least,
                line,
                file,
                ..node
            });
        }
    }

    /// Leaves out nodes without circuits: their packets cannot be recognized.
    fn drop_bare(&mut self, files: &[File], report: &mut Report) {
        let mut has_circuits = vec![false; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            if !node.addresses.is_empty() {
                has_circuits[at] = true;
            }
            if let Some(parent) = node.parent.filter(|_| has_circuits[at]) {
                has_circuits[parent] = true;
            }
        }
        let mut places = vec![0; self.nodes.len()];
        let mut kept: Vec<Node> = Vec::new();
        for (at, mut node) in std::mem::take(&mut self.nodes).into_iter().enumerate() {
            if has_circuits[at] {
                node.parent = node.parent.map(|parent| places[parent]);
                places[at] = kept.len();
                kept.push(node);
            } else {
                report.in_file(&files[node.file].name);
                report.note(node.line, format!("`{}` has no circuits: left out", node.name));
            }
        }
        self.nodes = kept;
    }

    /// The sum of rates below the uplink.
    fn sum(&self, way: Direction) -> Rate {
        let of = |at: usize| self.nodes.iter().filter(move |node| node.parent == Some(at));
        let mut sum = 0_u64;
        let mut next = vec![0];
        while let Some(at) = next.pop() {
            for (child, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.parent == Some(at)) {
                match node.most[way as usize] {
                    Some(most) => sum = sum.saturating_add(most.as_bit()),
                    // A node without a rate carries the sum below it.
                    None if of(child).next().is_some() => next.push(child),
                    None => (),
                }
            }
        }
        Rate::from_bit(sum.clamp(1, 1 << 50))
    }

    /// Leaves out minimums below the share of a plan, and those of siblings that exceed their parent
    /// together.
    fn assure(&mut self, files: &[File], report: &mut Report) {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                children[parent].push(at);
            }
        }
        let mut lower = 0_usize;
        for way in Direction::BOTH {
            let mut ceilings = vec![0_u128; self.nodes.len()];
            let mut assured = vec![0_u128; self.nodes.len()];
            let most = |node: &Node| node.most[way as usize].map_or(u128::MAX, |rate| rate.as_bit().into());
            // Parents come before their children.
            for (at, node) in self.nodes.iter().enumerate() {
                ceilings[at] = most(node).min(node.parent.map_or(u128::MAX, |parent| ceilings[parent]));
            }
            assured[0] = ceilings[0];
            for at in 0..self.nodes.len() {
                let divided = self.divide(assured[at], &children[at], way, &ceilings, &mut assured);
                lower += divided.unwrap_or_else(|| {
                    let node = &self.nodes[at];
                    report.in_file(&files[node.file].name);
                    let (name, way_name) = (&node.name, way.name());
                    report.note(node.line, format!("what is under `{name}` is promised more {way_name} than that is assured: these minimums are left out"));
                    for child in &children[at] {
                        let child = &mut self.nodes[*child];
                        if child.name != OTHERS {
                            child.least[way as usize] = None;
                        }
                    }
                    self.divide(assured[at], &children[at], way, &ceilings, &mut assured).unwrap_or_default()
                });
            }
        }
        if lower > 0 {
            report.in_file(
                &files[self.nodes.iter().find(|node| !node.addresses.is_empty()).map_or(0, |node| node.file)]
                    .name,
            );
            report.note(1, format!("{lower} minimums are at most the part that the plan has by its maximum: left empty, or they would lower it"));
        }
    }

    /// Divides the assured rate of a node among its children, those with the largest minimum over ceiling
    /// first. Returns the number of minimums that are not above the share and left out; none, without a
    /// change, if the minimums exceed the rate.
    fn divide(
        &mut self,
        assured: u128,
        children: &[usize],
        way: Direction,
        ceilings: &[u128],
        of: &mut [u128],
    ) -> Option<usize> {
        let least = |at: usize| {
            self.nodes[at].least[way as usize].map_or(0, |rate| u128::from(rate.as_bit())).min(ceilings[at])
        };
        let mut order: Vec<(usize, u128)> = children.iter().map(|child| (*child, least(*child))).collect();
        // By a / b in descending order; products are below 2^100.
        order.sort_by(|(a, least_a), (b, least_b)| (least_b * ceilings[*a]).cmp(&(least_a * ceilings[*b])));
        order.sort_by_key(|(at, _)| self.nodes[*at].name != OTHERS);
        let mut left = assured;
        let mut wanted: u128 = children.iter().map(|child| ceilings[*child]).sum();
        let mut kept = Vec::new();
        let mut rest = order.iter().copied().peekable();
        while let Some((child, own)) = rest.peek().copied() {
            let is_others = self.nodes[child].name == OTHERS;
            let part = if wanted <= left { ceilings[child] } else { ceilings[child] * left / wanted };
            if own <= part && !is_others {
                break;
            }
            rest.next();
            kept.push((child, own));
            wanted -= ceilings[child];
            left = left.checked_sub(own)?;
        }
        let mut lower = 0;
        for (child, own) in rest {
            let ceiling = ceilings[child];
            of[child] = if wanted <= left { ceiling } else { ceiling * left / wanted };
            self.nodes[child].least[way as usize] = None;
            lower += usize::from(own > 0);
        }
        for (child, own) in kept {
            of[child] = own;
            self.nodes[child].least[way as usize] = Some(Rate::from_bit(own as u64));
        }
        Some(lower)
    }

    /// The file of plans.
    fn csv(&self, files: &[File], report: &mut Report) -> Option<String> {
        let mut out = "name,parent,addresses,down,up,down_min,up_min\n".to_owned();
        for node in &self.nodes {
            let rate = |rate: Option<Rate>| rate.map_or_else(String::new, |rate| rate.to_string());
            let parent = node.parent.map_or("", |parent| self.nodes[parent].name.as_str());
            let mut writer = csv::Writer::from_writer(Vec::new());
            let [up, down] = node.most.map(rate);
            let [up_min, down_min] = node.least.map(rate);
            let written = writer.write_record([
                node.name.as_str(),
                parent,
                &node.addresses,
                &down,
                &up,
                &down_min,
                &up_min,
            ]);
            let line = written
                .ok()
                .and_then(|()| writer.into_inner().ok())
                .and_then(|line| String::from_utf8(line).ok());
            let Some(line) = line else {
                report.in_file(&files[node.file].name);
                report.refuse(node.line, "it cannot be written as CSV");
                return None;
            };
            out += &format!("# {}\n{line}", comment_text(&node.comment));
        }
        Some(out)
    }
}

/// A rate in Mb/s, as a number or as text; none for 0.
fn rate_of(value: &Value) -> Result<Option<Rate>, String> {
    let mbps = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    let mbps = mbps.filter(|mbps| (0.0..=1e6).contains(mbps));
    let mbps = mbps.ok_or_else(|| format!("`{value}` is not a number of Mb/s up to 1000000"))?;
    let bit = (mbps * 1e6).round() as u64;
    Ok((bit > 0).then(|| Rate::from_bit(bit)))
}

/// The first line of each name in a JSON text.
fn lines_of_names(text: &str) -> BTreeMap<&str, u32> {
    let mut lines = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        // Text between two quotes; names that contain quotes are not found.
        for name in line.split('"').skip(1).step_by(2) {
            lines.entry(name).or_insert(number);
        }
    }
    lines
}
