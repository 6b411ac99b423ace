//! Names of the values of a sweep's axis, for the labels of its points.
//!
//! A table is named by its `kind` or `profile`, and by each setting in which the values of the axis differ,
//! unless it has the value that it would have if it were not set. Labels therefore contain every difference
//! between points, and leave out, for example, a limit that all queues share. The [canonical](crate::render)
//! text, which sets everything, has the same labels as its file.

use std::collections::BTreeMap;

use apportion_core::param::Kind;
use apportion_core::system::Catalog;

use crate::changes;
use crate::render;
use crate::tables::{FLOW, LINK, ROOT};
use crate::text::{Item, Table, Value, join, parse_override};

/// Names for the values of an axis, all different. Cost: O(n s log(n s)) for n values with s settings, and
/// two canonical texts of a value for each setting in which values differ.
pub(crate) fn names(catalog: Option<&Catalog>, kind: Kind, values: &[Item]) -> Vec<String> {
    let plain = || values.iter().map(Item::plain).collect();
    let texts = if values.iter().any(|item| item.as_table().is_some()) {
        among(&values.iter().map(|item| Named::of(catalog, kind, item)).collect::<Vec<_>>())
    } else {
        plain()
    };
    let mut seen = BTreeMap::new();
    let distinct = |text: String| {
        let same = seen.entry(text.clone()).or_insert(0);
        *same += 1;
        if *same > 1 { format!("{text} ({same})") } else { text }
    };
    texts.into_iter().map(distinct).collect()
}

/// The kind of the value at a path, by its last key; `set` is the setting that an entry of `change` changes.
pub(crate) fn kind_of(key: &str, set: Option<&str>) -> Kind {
    match set.filter(|_| key == "to") {
        Some(set) => changes::kind_of(set),
        None => {
            let known = LINK.iter().chain(FLOW).chain(ROOT).find(|param| param.name == key);
            known.map_or(Kind::Any, |param| param.kind)
        }
    }
}

/// A value of an axis.
struct Named<'a> {
    catalog: Option<&'a Catalog>,
    kind: Kind,
    item: &'a Item,
    /// The value with everything that it leaves out filled in.
    full: Item,
    /// The `kind` or `profile` of the value, or the whole value if it is no table; none for a table that has
    /// neither.
    name: Option<String>,
    /// The settings of the full value.
    settings: Vec<Setting>,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Setting {
    /// The keys: several if the setting is in an inner table, for example a class.
    path: Vec<String>,
    value: String,
}

impl<'a> Named<'a> {
    fn of(catalog: Option<&'a Catalog>, kind: Kind, item: &'a Item) -> Self {
        let full = parse_override(&render::one(catalog, kind, item));
        let table = item.as_table();
        let said = table.and_then(|table| table.entries.iter().find(|(key, _)| is_kind(key)));
        let name = said.map(|(_, item)| item.plain()).or_else(|| table.is_none().then(|| item.plain()));
        let mut settings = Vec::new();
        full.as_table().into_iter().for_each(|table| settings_of(table, &[], &mut settings));
        Self { catalog, kind, item, full, name, settings }
    }

    /// The values that a setting tells apart: all, or, for settings of inner tables, those of the same kind,
    /// because others have other tables.
    fn group(&self, setting: &Setting) -> Option<&Option<String>> {
        (setting.path.len() > 1).then_some(&self.name)
    }

    /// Whether the value would differ without this setting. A value without a kind is named by its settings
    /// only.
    fn needs(&self, setting: &Setting) -> bool {
        if self.name.is_none() {
            return true;
        }
        let mut without = self.full.clone();
        remove(&mut without, &setting.path);
        let written = |item: &Item| render::one(self.catalog, self.kind, item);
        written(&without) != written(&self.full)
    }
}

/// The names of values that are listed together.
fn among(all: &[Named<'_>]) -> Vec<String> {
    // The number of values in a group, and the number of these with a setting.
    let (mut sizes, mut counts) = (BTreeMap::new(), BTreeMap::new());
    for named in all {
        for group in [None, Some(&named.name)] {
            *sizes.entry(group).or_insert(0) += 1;
        }
        for setting in &named.settings {
            *counts.entry((named.group(setting), setting)).or_insert(0) += 1;
        }
    }
    let name = |named: &Named<'_>| {
        let distinguishes = |setting: &&Setting| {
            let group = named.group(setting);
            counts.get(&(group, *setting)) < sizes.get(&group)
        };
        let settings = named.settings.iter().filter(|_| named.item.as_table().is_some());
        let settings = settings.filter(distinguishes).filter(|setting| named.needs(setting));
        let settings = settings.map(|Setting { path, value }| {
            format!("{}={value}", path.iter().fold(String::new(), |path, key| join(&path, key)))
        });
        let parts: Vec<String> = named.name.clone().into_iter().chain(settings).collect();
        if parts.is_empty() { named.item.plain() } else { parts.join(" ") }
    };
    all.iter().map(name).collect()
}

/// Whether a key names the kind of a table.
fn is_kind(key: &str) -> bool {
    key == "kind" || key == "profile"
}

/// The settings of a table at `path`; the kind of an inner table counts as the value of its key.
fn settings_of(table: &Table, path: &[String], all: &mut Vec<Setting>) {
    for (key, item) in &table.entries {
        let mut path = path.to_vec();
        if !is_kind(key) {
            path.push(key.clone());
        } else if path.is_empty() {
            continue;
        }
        match item.as_table() {
            Some(table) => settings_of(table, &path, all),
            None => {
                let value = match item.value {
                    Value::Float(value) => value.to_string(),
                    _ => item.plain(),
                };
                all.push(Setting { path, value });
            }
        }
    }
}

/// Takes what is at a path out of a value.
fn remove(item: &mut Item, path: &[String]) {
    let (Value::Table(table), Some((key, rest))) = (&mut item.value, path.split_first()) else { return };
    match table.get_mut(key) {
        Some(within) if !rest.is_empty() => remove(within, rest),
        _ => table.entries.retain(|(name, _)| name != key),
    }
}
