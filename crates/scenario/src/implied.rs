//! Values that a scenario leaves out and loading fills in, written out for the canonical text.
//!
//! Only values of keys: the sample interval, a queue, the reverse direction of a link, access links, TCP.
//! Keys that `defaults` may set are left out, as everywhere in that text.

use std::collections::BTreeSet;

use crate::build;
use crate::problem::Place;
use crate::queue;
use crate::text::{Item, Table, Value};
use crate::transport;

/// The scenario with these keys. Unchanged if `defaults` themselves are swept.
pub(crate) fn written_out(root: &Table) -> Table {
    let mut root = root.clone();
    if let Some(sample) = default_sample(&root) {
        set_missing(&mut root, "sample", sample);
    }
    let Some(taken) = Taken::of(&root) else { return root };
    if is_gfc(&root) {
        fill_gfc(&mut root, &taken);
    }
    fill(&mut root, "topology", |topology| fill_topology(topology, &taken));
    for link in tables_mut(&mut root, "link").filter(|link| link.get("from").is_some()) {
        fill_link(link, &taken);
    }
    for flow in tables_mut(&mut root, "flow") {
        fill_flow(flow, &taken);
    }
    root
}

/// Whether the canonical text has a sample interval.
pub(crate) fn has_sample(root: &Table) -> bool {
    root.get("sample").is_some() || default_sample(root).is_some()
}

/// The interval of time series, which follows from the end of the run; none if that is swept, because each
/// point has its own.
fn default_sample(root: &Table) -> Option<Value> {
    let stop = root.get("stop")?.as_text()?.parse().ok()?;
    Some(Value::Text(build::default_sample(stop).to_string()))
}

fn is_gfc(root: &Table) -> bool {
    let topology = root.get("topology").and_then(Item::as_table);
    topology.and_then(|topology| topology.get("kind")?.as_text()).is_some_and(|kind| kind == "gfc")
}

/// The queues of access links and of reverse directions of `gfc`, which has no keys for them: its other links
/// have queues of their own.
fn fill_gfc(root: &mut Table, taken: &Taken) {
    let table = || Value::Table(Table::default());
    set_missing(root, "defaults", table());
    fill(root, "defaults", |defaults| {
        set_missing(defaults, "link", table());
        fill(defaults, "link", |link| {
            if !taken.has_queue() {
                set_missing(link, "queue", deep());
            }
            if !taken.has_back_queue() {
                set_missing(link, "back", table());
                fill(link, "back", |back| set_missing(back, "queue", deep()));
            }
        });
    });
}

/// The keys that `defaults` set.
struct Taken {
    /// Keys of links; those of reverse directions begin with `back.`.
    link: BTreeSet<String>,
    flow: BTreeSet<String>,
    /// The source of flows that name none.
    source: Option<Item>,
}

impl Taken {
    /// None if they differ from point to point.
    fn of(root: &Table) -> Option<Self> {
        let mut taken = Self { link: BTreeSet::new(), flow: BTreeSet::new(), source: None };
        let Some(defaults) = root.get("defaults") else { return Some(taken) };
        let defaults = defaults.as_table()?;
        let table = |name: &str| defaults.get(name).map_or(Some(None), |item| item.as_table().map(Some));
        if let Some(link) = table("link")? {
            taken.link.extend(link.entries.iter().map(|(key, _)| key.clone()));
            if let Some(back) = link.get("back") {
                let back = &back.as_table()?.entries;
                taken.link.extend(back.iter().map(|(key, _)| format!("back.{key}")));
            }
        }
        if let Some(flow) = table("flow")? {
            taken.flow.extend(flow.entries.iter().map(|(key, _)| key.clone()));
            taken.source = flow.get("source").cloned();
        }
        Some(taken)
    }

    fn has_queue(&self) -> bool {
        self.link.contains("queue")
    }

    fn has_back_queue(&self) -> bool {
        self.link.contains("back.queue")
    }
}

/// The bottleneck and the access links of a topology.
fn fill_topology(topology: &mut Table, taken: &Taken) {
    let Some(kind) = topology.get("kind").and_then(Item::as_text).map(ToOwned::to_owned) else { return };
    let bottleneck = match kind.as_str() {
        "dumbbell" => "bottleneck",
        "satellite" => "satellite",
        "chain" | "parking_lot" => "link",
        "gfc" if !taken.has_queue() => return set_missing(topology, "queue", shallow()),
        // `link` sets both directions of an edge.
        "gml" | "graphml" | "fat_tree" | "leaf_spine" if !taken.has_queue() && !taken.has_back_queue() => {
            set_missing(topology, "link", Value::Table(Table::default()));
            return fill(topology, "link", |link| set_missing(link, "queue", shallow()));
        }
        _ => return,
    };
    fill(topology, bottleneck, |link| fill_link(link, taken));
    set_missing(topology, "access", Value::Table(Table::default()));
    fill(topology, "access", |access| {
        // The queue of both directions.
        if !taken.has_queue() && !taken.has_back_queue() {
            set_missing(access, "queue", deep());
        }
    });
}

/// A link and its reverse direction.
fn fill_link(link: &mut Table, taken: &Taken) {
    if !taken.has_queue() {
        set_missing(link, "queue", shallow());
    }
    if !taken.has_back_queue() {
        set_missing(link, "back", Value::Table(Table::default()));
        fill(link, "back", |back| set_missing(back, "queue", deep()));
    }
}

/// Fills in TCP for sources that need it, unless sources are swept: some may need none.
fn fill_flow(flow: &mut Table, taken: &Taken) {
    let source = flow.get("source").or(taken.source.as_ref());
    let kind = match source.map(|source| &source.value) {
        None => Some("greedy"),
        Some(Value::Table(source)) => source.get("kind").and_then(Item::as_text),
        Some(_) => source.and_then(Item::as_text),
    };
    let is_carried = transport::KEYS
        .into_iter()
        .any(|key| flow.get(key).map_or_else(|| taken.flow.contains(key), |item| !item.is_false()));
    if kind.is_some_and(transport::is_needed_by) && !is_carried {
        set_missing(flow, "tcp", Value::Text(transport::DEFAULT.to_owned()));
    }
}

fn shallow() -> Value {
    Value::Text(queue::DEFAULT.to_owned())
}

fn deep() -> Value {
    let item = |text: &str| Item::text(text, Place::Override);
    let entries = vec![("kind".to_owned(), item(queue::DEFAULT)), ("limit".to_owned(), item(queue::DEEP))];
    Value::Table(Table { entries })
}

fn value_mut<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    table.get_mut(key).map(|item| &mut item.value)
}

/// The tables in the table under `key`.
fn tables_mut<'a>(root: &'a mut Table, key: &str) -> impl Iterator<Item = &'a mut Table> {
    let table = value_mut(root, key).and_then(|value| match value {
        Value::Table(table) => Some(table),
        _ => None,
    });
    table.into_iter().flat_map(|table| &mut table.entries).filter_map(|(_, item)| match &mut item.value {
        Value::Table(table) => Some(table),
        _ => None,
    })
}

/// Applies `to` to the table under `key`, or to each of the tables that it is swept over.
fn fill(table: &mut Table, key: &str, to: impl Fn(&mut Table)) {
    match value_mut(table, key) {
        Some(Value::Table(table)) => to(table),
        Some(Value::List(items)) => items.iter_mut().for_each(|item| {
            if let Value::Table(table) = &mut item.value {
                to(table);
            }
        }),
        _ => (),
    }
}

fn set_missing(table: &mut Table, key: &str, value: Value) {
    if table.get(key).is_none() {
        table.entries.push((key.to_owned(), Item { value, place: Place::Override }));
    }
}
