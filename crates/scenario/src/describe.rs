//! The keys of scenario files as Markdown and as a JSON Schema, both generated from the tables that the loader
//! uses.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use apportion_core::param::{CLASS_KEY, Entry, Kind, PARENT_KEY, Param, Preset, Range, Role, Variant};
use apportion_core::system::Catalog;
use serde_json::{Map, Value, json};

use crate::direction::Direction;
use crate::key::of;
use crate::model::{Aggregate, GilbertElliott, Jitter};
use crate::plans;
use crate::quic::QuicParams;
use crate::selection::Part;
use crate::sizes::SIZES;
use crate::sweep::LISTS;
use crate::tables::{
    ACCESS, BACK, CHANGE, CUSTOMER, DEFAULT_BACK, DEFAULTS, FLOW, LINK, LINK_LOSS, LINK_RATE, LOST,
    RATE_TABLE, ROOT, SOURCES, TOPOLOGIES,
};
use crate::tcp::{PROFILES, TcpParams};
use crate::transport;

/// Every kind of source.
#[must_use]
pub const fn sources() -> &'static [Variant] {
    SOURCES
}

/// Every predefined topology.
#[must_use]
pub const fn topologies() -> &'static [Variant] {
    TOPOLOGIES
}

/// The value of a key that is absent, for people: "required" if it must be set, empty if its doc describes what happens.
#[must_use]
pub fn if_absent(key: &Param) -> &'static str {
    if key.is_required() { "required" } else { key.default.unwrap_or_default() }
}

/// The keys of scenario files as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(REFERENCE_HEAD);
    let tables = [
        ("The file", ROOT),
        ("`[defaults]`", DEFAULTS),
        ("`[link.NAME]`", LINK),
        ("`back` of a link: the reverse direction", BACK),
        ("`rate` of a link as a table: a recorded link", RATE_TABLE),
        ("`jitter` of a link as a table: a delay that varies", Jitter::PARAMS),
        ("`aggregate` of a link: several packets at a time", Aggregate::PARAMS),
        ("`loss` of a link as a table: losses in bursts", GilbertElliott::PARAMS),
        ("`lost` of a link", LOST),
        ("`[flow.NAME]`", FLOW),
        ("`[customer.NAME]`", CUSTOMER),
        ("`[[change]]`", CHANGE),
    ];
    for (title, keys) in tables {
        let _ = write!(out, "\n## {title}\n");
        markdown_keys(&mut out, keys);
    }
    let variants = [
        ("Topologies", "topology", topologies()),
        ("Sources", "source", sources()),
        ("Sizes of files", "sizes", SIZES),
    ];
    for (title, key, variants) in variants {
        let _ = write!(out, "\n## {title}\n");
        for variant in variants {
            let _ = write!(out, "\n### `{key} = {{ kind = \"{}\" }}`\n\n{}\n", variant.name, variant.doc);
            markdown_keys(&mut out, variant.params);
        }
    }
    out
}

const REFERENCE_HEAD: &str = "# Scenario files

A scenario is a TOML file. Quantities are written with their unit: `\"10Mbit\"` (per second), `\"20ms\"`, `\"64kB\"`, `\"50p\"`
(packets), `\"1%\"`. Unknown keys are refused. Every error message names the file, the line, the key and the fix.

- **Sweeps.** A list in place of a value runs the scenario once for each entry; `\"10ms..50ms step 10ms\"` is short for a list.
  Several lists make a grid. Those that `[sweep]` names vary together, the first value of one with the first of the other:
  `zip = [[\"rate\", \"delay\"]]` for `[topology.bottleneck]` with `rate = [\"5Mbit\", \"50Mbit\"]` and `delay = [\"40ms\", \"4ms\"]` makes two points.
- **Formulas.** In a group of flows (`count = 30`) and in access links, `i` is the number of the member or host:
  `\"100 * i\"`, `\"2ms * i\"`, and in names `\"l{i}\"`, `\"in{ceil(i / 2)}\"`. Operators, lowest precedence first: `+ -`;
  `* / %`, evaluated from the left (`6 * 5 % 4` is 2); a leading `-`; `^`, evaluated from the right (`-2 ^ 2` is -4). A
  remainder `a % b` is never negative. Functions are `min(a, b)`, `max(a, b)`, `floor(a)` and `ceil(a)`.
- **Aggregates.** `connections = 15` makes one flow of 15 connections, for papers that count aggregates. Queues see one flow, and its
  weight, guarantee, round-trip time, tickets and marker apply to all connections together. With a fixed `start` all
  connections begin in the same instant and may stay synchronised; `start = { between = [\"0s\", \"1s\"] }` draws a start for
  each. `count` sets the number of flows, `connections` the number of connections in each of them.
- **Buffers.** A queue that sets no `limit` holds what its link sends in 100 ms, the bandwidth-delay product of such a path, and at least
  96 kB (64 full packets). That is so for every discipline and every link, so that disciplines compared by name have the same buffer, whether they
  are alternatives in one file or in two runs, and whatever flows there are. It follows the rate of the link, and that of a shaper that is slower.
  A buffer that is part of an algorithm stays what it is: `sffc` and `nbq` hold 50 ms, at least 64 kB; `tred` grows with its thresholds, from 110
  packets; the `limit` of `ramp` is one for each real-rate flow, that of `prio`, `htb` and `hfsc` one for each class. `preset = \"paper\"` has the sizes of the papers. `limit = \"50p\"` and `\"64kB\"` are fixed. `limit = \"200ms\"` is what the link sends in that time, in
  whole bytes and at least 1500 B: it follows the rate in the same way, on a recorded link it goes by the mean, and while the link sends nothing it stays.
  `limit = \"0.5bdp\"` is half a bandwidth-delay product: the rate of the link times the longest round trip among the flows that cross it, by the delays of
  links both ways at the start. Where flows have different round trips, write the time that you mean. Access links and reverse
  directions have a FIFO of 1000 packets. `apportion run FILE --show-config` and the report list the buffers.
- **Names and chance.** Random draws come from streams that the seed and the names of links and flows select: what is added, or renamed,
  leaves the draws of all others as they are, but a flow with a new name draws anew, and its results differ by chance. Through a queue
  that they share, those of the other flows then differ too. With `stream = \"old\"` a flow or group that was called `old` keeps its
  draws; results are then the same, byte for byte, as long as the order of the flows by name is. Streams must differ.
- **Guarantees.** On each link, the guarantees of the flows that cross it may add up to at most the link's rate. This is checked at
  the start and at each change that raises a guarantee, with the rates at that moment; silent flows count. A link that becomes
  slower later is accepted, since a scenario may want to show what happens then. Queues without guarantees ignore them, but
  the entitlements of flows include them. Where flows have customers, a guarantee is served within the part of its customer,
  which has more than its part only if its guarantees are more: that is how a queue `hcsfq` divides.
- **Classes.** A queue `ramp` infers what flows of `class = \"real_rate\"` need, reserves that for them, and gives the rest to
  greedy flows. On the first link of a path it acts as the queue of the sending host, elsewhere as that of a router. Results
  contain its allocations over time where a link has `watch = true`. A flow says by `target` or `target_delay` what its own queue
  should hold in place of the queue's parameter; by default that is what it may hold while there is not enough for all. When it cannot carry what flows need, the queue
  notifies their sources: at once in the sending host, else after the delay of the wires in between. An `adaptive` `video`
  source reacts.
- **Groups of links.** `count = 4` in a link `core` makes four equal links `core.1` to `core.4` between its two nodes, each with the rate of the table and
  a queue of its own, and `core.1.back` to `core.4.back`. Each connection takes one of them by a hash of the seed, its flow's name and its number, and keeps it, so its
  packets stay in order; the two directions choose independently, seeds choose anew, and the perturbed copy of a replication as the replication does. Results
  have the members one by one. A path or a change that names `core` means the group, one that names `core.2` that member alone; a group has one `queue`.
  Routes are static: a member whose rate changes to zero holds its connections. Flows are due their shares of the links that they take; nothing says what a flow
  over a group is due that consists of several connections (`connections`, short flows, web pages). All that is guaranteed over a group must fit on one member. [`elephants.toml`](../scenarios/elephants.toml) shows
  flows that collide.
- **Paths.** A flow without `path` takes the path of least delay, and of those as short the one of fewest links. Where several are left, as in a `fat_tree`, a
  `leaf_spine` or over parallel edges of a graph, nodes divide connections among their next hops (ECMP): each node takes one of them by a hash of the seed, the flow's name, the connection's number, the node
  that it goes to and the node that chooses. What holds of groups of links holds of these paths: packets of a connection stay in order, the two directions choose
  independently, seeds choose anew, and dues are those on the links that flows take. All that is guaranteed must fit on each link that its flows may take. Rates are no
  cost: a slow link is taken as often as a fast one of the same delay. `routing = \"single\"` has all flows take the path of the first names; `path` names one for a flow.
  [`fat-tree.toml`](../scenarios/fat-tree.toml) compares the two.
- **Graphs.** Of nodes with the same label in a graph file (`gml`, `graphml`) all but the first have their id added: `BBN (1)`. Parallel edges become links of their own, `a-b-2`, `a-b-3`, ...
  A link has what its edge says: its rate by `rate`, `bandwidth`, `LinkSpeedRaw` in bit/s, `LinkSpeed` with `LinkSpeedUnits` or a `LinkLabel` that is a rate, such as `1 Gbps`; its delay by
  `delay` or `latency`; `loss` or `packet_loss`; `jitter`. What an edge lacks it has from `link`, then from `[defaults.link]`. Where these give no delay either, it is that of light in
  fibre, 2/3 of the speed in vacuum, over the great circle between the `Latitude` and `Longitude` of its nodes; where they give no rate, it is the smaller of
  `host_bandwidth_up` of the node it leaves and `host_bandwidth_down` of the other. Tables under `link` change links by name. Warnings name the attributes that are not used, edges
  from a node to itself, which are left out, and what follows from nodes.
- **Frame aggregation.** `aggregate = { packets = 64, airtime = \"4ms\" }` makes a link send as Wi-Fi does (802.11n and later): each time it gets the medium, which is at once if it
  is idle, it takes packets from the queue up to a number, a size and an airtime, spends a fixed time for access and then the time of their bytes with headers, and all
  of them arrive together. n packets of l bytes take T = `overhead` + 8 n (l + `header`) / `rate`, so a queue that never empties is served at n l / T. Flows are due shares of that rate for
  packets of 1500 bytes; utilisation and defaults of queues are of `rate`. With `retry` an aggregate is sent again as a whole. `aggregate = false` takes a default
  back; the reverse direction has none unless `back` says so. [`wifi.toml`](../scenarios/wifi.toml) shows what it is worth.
- **Labels.** A queue `csfq` or `mcsfq` labels packets that have no label, so the first one on a path is the edge. With
  `role = \"core\"` it drops unlabelled packets. Every path to a core, also that of acknowledgements, must first cross a queue that
  labels, with no `egress` in between. A discipline of your own counts as one that labels.
- **Classes of a queue.** `prio`, `htb` and `hfsc` have classes, in a table `class` of the queue: `[link.x.queue.class.voice]`, or
  `{ kind = \"htb\", class = { all = { rate = \"20Mbit\" }, voice = { parent = \"all\", rate = \"1Mbit\" } } }`; `apportion explain htb` has
  their keys. A flow belongs to the class with the name of its `customer`; flows over the link that belong to none are refused
  unless a class has `others = true`. Only classes without children have packets. They wait in a FIFO, or with
  `discipline = \"fq_codel\"` of the queue (`prio` and `htb`) in a discipline of each class, by the weights of the flows of the class. What
  flows are entitled to is not known then.
  [`classes.toml`](../scenarios/classes.toml) shows all three.
- **Hosts.** With `isolate` a queue that divides among flows divides the link among hosts first, and the part of each host among its
  flows by their weights: `{ kind = \"drr\", isolate = \"source\" }`. Hosts are the nodes at the ends of flows: their `source`,
  their `destination`, or `both`, where a flow belongs to the end with more peers (hosts at other ends of its backlogged flows), and the part of
  a host is divided among its peers, which weigh alike, before it is divided among their flows. Refused are queues that go by what
  hosts do not have (real-rate classes, customers, tickets, colours, reports) or divide nothing among flows (FIFO with tail drop, RED,
  CoDel), and guarantees of flows that cross such a link. Flows without customers
  are then entitled to what such a division leaves them, unless weights differ between hosts alone; nothing is known where a flow crosses links that divide in different ways.
- **Disciplines** (`queue`) are a name or a table: `{ kind = \"drr\", drop = \"red\", limit = \"110p\" }`; `apportion explain drr`
  lists the parameters. With a scheduler that divides by flows, `codel`, `pie` and `cobalt` as `drop` control the queue of each flow.
  A buffer policy as `kind` is in front of a FIFO: `\"red\"` is short for
  `{ kind = \"fifo\", drop = \"red\" }`. A shaper in front of any of them,
  `{ kind = \"ramp\", shaper = \"token_bucket\", rate = \"4Mbit\" }`, makes it compute with the shaper's rate if that is lower than the link's.
  **Markers** (`mark`) and **exchanges** (`exchange`) are written in the same way.
  **TCP** (`tcp`) is a profile (`\"rfc\"`), a congestion control of the default profile `linux` (`\"reno\"`), or a table:
  `{ profile = \"rfc\", algorithm = \"cubic\" }`. Greedy sources, files and short flows need none: they have `linux`, with CUBIC.
  **QUIC** (`quic`, in place of `tcp`) is a congestion control (`\"cubic\"`) or a table of parameters: `{ algorithm = \"bbr\", ecn = true }`;
  `apportion explain quic` lists them. Its packets are UDP for queues. In the simulator only.
- **Presets.** A plain `kind` has the best parameters and mechanisms that are known. `preset = \"paper\"` in a queue, marker or exchange is the
  discipline as its paper has it; `preset = \"paper\"` under `[defaults]` says so for the whole scenario. Parameters that are set
  hold with either.
- **Defaults.** `[defaults.link]` and `[defaults.flow]` set values for all links and flows. A key that a link or flow sets itself
  replaces the default as a whole. Keys of a single link or flow have no default: its ends, `count`, paths and `lost`.
  Links of a predefined topology, also access links, use the defaults for what their tables in `topology` do not set. The
  reverse directions of links use the keys under `back` in `[defaults.link]`.
- **Overrides.** `apportion run FILE --set link.bottleneck.rate=5Mbit` sets a value before the file is checked.

`apportion run FILE --show-config` prints a scenario with all values filled in, and those that follow from others as comments; `apportion schema` prints a JSON Schema for editors.
This page is generated from the tables that the loader reads.
";

pub(crate) fn markdown_keys(out: &mut String, keys: &[Param]) {
    if keys.is_empty() {
        return;
    }
    out.push_str("\n| key | for example | default | |\n|---|---|---|---|\n");
    for key in keys {
        let default = match if_absent(key) {
            word @ ("" | "required") => word.to_owned(),
            text => format!("`{text}`"),
        };
        let _ = writeln!(out, "| `{}` | `{}` | {default} | {} |", key.name, key.kind.example(), key.doc);
    }
}

/// A JSON Schema (draft 2020-12) of scenario files with the disciplines of `catalog`.
///
/// Schemas with many variants that are used in many places are defined once, under `$defs`.
#[must_use]
pub fn schema(catalog: &Catalog) -> Value {
    let mut schema = table_schema(ROOT);
    schema["$defs"] = json!({
        "queue": part_schema(catalog, Part::Queue),
        "mark": part_schema(catalog, Part::Marker),
        "exchange": part_schema(catalog, Part::Exchange),
        "tcp": tcp_schema(catalog),
        "quic": quic_schema(catalog),
        "source": variants_schema(SOURCES),
        "sizes": variants_schema(SIZES),
        "topology": variants_schema(TOPOLOGIES),
        "back": table_schema(DEFAULT_BACK),
        "access": table_schema(ACCESS),
        "aggregate": param_schema(&of(Kind::TableOrFalse(Aggregate::PARAMS))),
        "link_rate": param_schema(&LINK_RATE),
        "link_loss": param_schema(&LINK_LOSS),
    });
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Apportion scenario");
    schema
}

fn table_schema(keys: &[Param]) -> Value {
    object(keys.iter().map(|key| (key.name, key_schema(key))), keys)
}

fn object<'a>(properties: impl Iterator<Item = (&'a str, Value)>, keys: &[Param]) -> Value {
    let properties: Map<String, Value> = properties.map(|(name, schema)| (name.to_owned(), schema)).collect();
    let required: Vec<_> = keys.iter().filter(|key| key.is_required()).map(|key| key.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A reference to the definition of this name in [`schema`].
fn defined(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn key_schema(key: &Param) -> Value {
    let schema = match key.kind {
        Kind::Variants(_) => defined(if key.name.ends_with("size") { "sizes" } else { key.name }),
        Kind::Table(_) if key.name == "back" => defined("back"),
        // The other tables of this name have no defaults.
        Kind::Table(keys) if key.name == "access" && keys.iter().any(|key| key.default.is_some()) => {
            defined("access")
        }
        Kind::TableOrFalse(_) if key.name == "aggregate" => defined("aggregate"),
        Kind::OrTable(..) if ["rate", "loss"].contains(&key.name) => defined(&format!("link_{}", key.name)),
        _ => param_schema(key),
    };
    let container = matches!(key.kind, Kind::Table(_) | Kind::Map(_));
    let mut schema = if LISTS.contains(&key.name) || container { schema } else { swept(&schema) };
    schema["description"] = json!(key.doc);
    if let Some(text) = key.default {
        schema["default"] =
            text.parse().map_or_else(|_| json!(text), |number: serde_json::Number| json!(number));
    }
    schema
}

/// What one value of `param` is, in a scenario's own tables, where an amount may be a formula of `i`.
fn param_schema(param: &Param) -> Value {
    match param.kind {
        Kind::Limit | Kind::Packets | Kind::Threshold | Kind::MeanPackets | Kind::Own(_) => {
            plain_schema(param.kind)
        }
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Form(example) => {
            json!({ "type": ["string", "integer"], "examples": [example.trim_matches('"')] })
        }
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::SwitchOrTexts => {
            json!({ "anyOf": [{ "type": "boolean" }, { "type": "array", "items": { "type": "string" } }] })
        }
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Discipline(_) => plain_schema(param.kind),
        Kind::Bytes | Kind::Span | Kind::Time | Kind::Rate | Kind::Ratio | Kind::Number | Kind::Count => {
            amount_schema(param.kind, param.range)
        }
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        Kind::TextLists => {
            json!({ "type": "array", "items": param_schema(&Param { kind: Kind::Texts, ..*param }) })
        }
        Kind::Ordinals => {
            json!({ "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 1 })
        }
        Kind::Table(keys) => table_schema(keys),
        Kind::TableOrFalse(keys) => json!({ "anyOf": [{ "const": false }, table_schema(keys)] }),
        Kind::OrTable(kind, keys) => {
            json!({ "anyOf": [amount_schema(*kind, param.range), table_schema(keys)] })
        }
        Kind::Map(keys) => json!({ "type": "object", "additionalProperties": table_schema(keys) }),
        Kind::Tables(keys) => json!({ "type": "array", "items": table_schema(keys) }),
        Kind::Variants(variants) => variants_schema(variants),
        Kind::Defined(name, _) => defined(name),
        Kind::Any => json!({}),
    }
}

fn amount_schema(kind: Kind, range: Range) -> Value {
    let text = json!({ "type": "string", "examples": [kind.example().trim_matches('"')] });
    if !matches!(kind, Kind::Ratio | Kind::Number | Kind::Count) {
        return text;
    }
    let mut number = json!({ "type": if kind == Kind::Count { "integer" } else { "number" } });
    match range {
        Range::Any => (),
        Range::FromZero => number["minimum"] = json!(0),
        Range::AboveZero => number["exclusiveMinimum"] = json!(0),
        Range::AboveOne => number["exclusiveMinimum"] = json!(1),
        Range::UpTo(most) => {
            number["minimum"] = json!(1);
            number["maximum"] = json!(most);
        }
    }
    json!({ "anyOf": [number, text] })
}

fn variants_schema(variants: &[Variant]) -> Value {
    let names: Vec<_> = variants.iter().map(|variant| variant.name).collect();
    let mut forms = vec![json!({ "enum": names })];
    for variant in variants {
        let kind = json!({ "const": variant.name, "description": variant.doc });
        let keys = variant.params.iter().map(|key| (key.name, key_schema(key)));
        let mut form = object(std::iter::once(("kind", kind)).chain(keys), variant.params);
        if let Some(required) = form["required"].as_array_mut() {
            required.push(json!("kind"));
        }
        forms.push(form);
    }
    // With a swept `kind`, the other keys depend on its values.
    forms.push(
        json!({ "type": "object", "properties": { "kind": { "type": "array" } }, "required": ["kind"] }),
    );
    json!({ "anyOf": forms })
}

/// A value of this schema, or a list of such values to sweep.
fn swept(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "array", "items": schema, "minItems": 1 }] })
}

/// [`swept`], with the key's description.
fn parameter(schema: &Value, doc: &str) -> Value {
    let mut schema = swept(schema);
    schema["description"] = json!(doc);
    schema
}

fn part_schema(catalog: &Catalog, part: Part) -> Value {
    let mut properties = Map::new();
    for (key, roles) in part.selectors() {
        let doc = match *key {
            "drop" => "Buffer policy of a scheduler.",
            "shaper" => "Shaper that limits the rate.",
            _ if part == Part::Queue => "Scheduler, buffer policy or whole system.",
            _ => "Kind, by name.",
        };
        properties
            .insert((*key).to_owned(), parameter(&json!({ "enum": names_of(catalog, part, roles) }), doc));
    }
    properties.insert(Preset::KEY.to_owned(), parameter(&json!({ "enum": Preset::NAMES }), Preset::DOC));
    properties.extend(parameters(part.entries(catalog).map(|entry| (entry.name, entry.params))));
    if part == Part::Queue {
        properties.insert(CLASS_KEY.to_owned(), classes_schema(catalog));
        let ways = json!({ "enum": Direction::BOTH.map(Direction::name) });
        let doc = "Direction whose rates in the file `plans` the classes have, in place of `class`.";
        properties.insert(plans::KEY.to_owned(), parameter(&ways, doc));
    }
    let required: &[&str] = if part.implied().is_some() { &[] } else { &["kind"] };
    let table = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    json!({ "anyOf": [{ "enum": names_of(catalog, part, part.selectors()[0].1) }, table] })
}

/// Classes by name, each with the keys of any discipline that has classes.
fn classes_schema(catalog: &Catalog) -> Value {
    let mut properties = Map::new();
    let parent = parameter(&json!({ "type": "string" }), "The class above it.");
    properties.insert(PARENT_KEY.to_owned(), parent);
    let params = |entry: &Entry| Some((entry.name, entry.traits.classes?.params));
    properties.extend(parameters(catalog.disciplines().filter_map(params)));
    let class = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    json!({
        "type": "object", "additionalProperties": class,
        "description": "Classes of `prio`, `htb` and `hfsc` by name; flows belong to those with the names of their customers.",
    })
}

/// The parameters of `owners`, by name. Where owners of one name differ in its kind, each of these kinds will do, since selectors
/// may be swept; where they differ in its doc, each doc says whose it is.
fn parameters<'a>(
    owners: impl Iterator<Item = (&'a str, &'static [Param])>,
) -> impl Iterator<Item = (String, Value)> {
    let mut by_name = BTreeMap::<_, (Vec<Value>, Vec<(&str, Vec<String>)>)>::new();
    for (owner, params) in owners {
        for param in params {
            let (schemas, docs) = by_name.entry(param.name).or_default();
            let schema = plain_schema(param.kind);
            if !schemas.contains(&schema) {
                schemas.push(schema);
            }
            let owner = format!("`{owner}`");
            match docs.iter_mut().find(|(doc, _)| *doc == param.doc) {
                Some((_, owners)) => owners.push(owner),
                None => docs.push((param.doc, vec![owner])),
            }
        }
    }
    by_name.into_iter().map(|(name, (schemas, docs))| {
        let schema = if let [only] = &schemas[..] { only.clone() } else { json!({ "anyOf": schemas }) };
        let doc = match &docs[..] {
            [(only, _)] => (*only).to_owned(),
            _ => {
                let of = |(doc, owners): &(&str, Vec<String>)| format!("{}: {doc}", owners.join(", "));
                docs.iter().map(of).collect::<Vec<_>>().join("\n\n")
            }
        };
        (name.to_owned(), parameter(&schema, &doc))
    })
}

fn names_of(catalog: &Catalog, part: Part, roles: &[Role]) -> Vec<&'static str> {
    part.entries(catalog).filter(|entry| roles.contains(&entry.role)).map(|entry| entry.name).collect()
}

/// What one value of a parameter of a discipline or transport is: no formulas.
fn plain_schema(kind: Kind) -> Value {
    match kind {
        Kind::Ratio => json!({ "type": ["number", "string"] }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Count => json!({ "type": "integer", "minimum": 0 }),
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Own(_) => json!({ "type": ["string", "integer"] }),
        Kind::Discipline(place) => {
            json!({ "enum": Catalog::inside(place).map(|entry| entry.name).collect::<Vec<_>>() })
        }
        _ => json!({ "type": "string" }),
    }
}

fn tcp_schema(catalog: &Catalog) -> Value {
    let names: Vec<_> = PROFILES.iter().map(|entry| entry.name).collect();
    let mut properties = Map::new();
    properties.insert(
        "profile".to_owned(),
        parameter(&json!({ "enum": names }), "Profile with the initial values of all parameters."),
    );
    let words: Vec<_> = names.into_iter().chain(transport::algorithms(catalog, true)).collect();
    transport_schema(&words, properties, TcpParams::PARAMS)
}

fn quic_schema(catalog: &Catalog) -> Value {
    let words: Vec<_> = transport::quic_algorithms(catalog).collect();
    transport_schema(&words, Map::new(), QuicParams::PARAMS)
}

/// One of `words`, `false`, or a table with `properties` and the parameters.
fn transport_schema(
    words: &[impl AsRef<str>],
    mut properties: Map<String, Value>,
    params: &[Param],
) -> Value {
    for param in params {
        let doc = match param.kind {
            Kind::Own(what) => format!("{} Written as {what}.", param.doc),
            _ => param.doc.to_owned(),
        };
        properties.insert(param.name.to_owned(), parameter(&plain_schema(param.kind), &doc));
    }
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    let table = json!({
        "type": "object", "properties": properties, "additionalProperties": false,
    });
    json!({ "anyOf": [{ "enum": words }, { "const": false }, table] })
}

#[cfg(test)]
mod fits;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_knows_every_key_with_its_documentation() {
        let schema = schema(&Catalog::default());
        let at = |pointer: &str| schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")).clone();
        assert_eq!(at("/required"), json!(["seed", "stop"]));
        assert_eq!(at("/additionalProperties"), json!(false));
        let flow = "/properties/flow/additionalProperties/properties";
        assert_eq!(at(&format!("{flow}/count/anyOf/0/anyOf/0/maximum")), json!(1_000_000));
        assert_eq!(at(&format!("{flow}/weight/default")), json!(1));
        assert_eq!(at(&format!("{flow}/path/type")), json!("array"));
        let queue = "/properties/link/additionalProperties/properties/queue";
        assert_eq!(at(&format!("{queue}/anyOf/0/$ref")), json!("#/$defs/queue"));
        assert_eq!(at("/$defs/queue/anyOf/1/properties/quantum/anyOf/0/type"), json!("string"));
        assert!(at("/$defs/tcp").to_string().contains("\"ns2-235\""));
        for key in ROOT.iter().chain(FLOW).chain(LINK).chain(CHANGE) {
            assert!(schema.to_string().contains(&json!(key.doc).to_string()), "{}", key.name);
        }
    }

    #[test]
    fn the_schema_defines_what_it_refers_to_and_nothing_twice() {
        fn references<'a>(value: &'a Value, found: &mut std::collections::BTreeSet<&'a str>) {
            match value {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str));
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(all) => all.iter().for_each(|value| references(value, found)),
                _ => (),
            }
        }
        let schema = schema(&Catalog::default());
        let mut found = std::collections::BTreeSet::new();
        references(&schema, &mut found);
        let defined: Vec<String> = schema["$defs"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.keys().map(|name| format!("#/$defs/{name}")))
            .collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), defined);
        // Editors read it for every file they open. Without `$defs` it had 364 kB; each discipline and marker of
        // the catalogue adds its parameters once, some 2 kB: this leaves room for a few more of them, and none for copies.
        let size = schema.to_string().len();
        assert!((1..146_000).contains(&size), "{size}");
    }

    #[test]
    fn the_reference_is_the_page_in_the_documentation() {
        let page = include_str!("../../../docs/scenario.md");
        assert!(
            page == reference(),
            "write the output of `cargo run -p apportion-scenario --example reference` to docs/scenario.md"
        );
    }
}
