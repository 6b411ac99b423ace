//! The canonical text of a scenario: the scenario as the loader understood it, as TOML that loads back to the
//! same scenario.
//!
//! Tables and keys are sorted, quantities are written in one way, defaults are filled in, sweeps stay sweeps.
//! Files that differ only in order, comments and spelling have the same canonical text, and so the same hash.

use std::fmt::Write as _;

use apportion_core::param::{Kind, Param, Preset, Range, Variant};
use apportion_core::random::fnv1a;
use apportion_core::system::Catalog;

use crate::changes;
use crate::implied;
use crate::keys::{Amount, toml};
use crate::names::natural;
use crate::selection::Part;
use crate::sweep::alternatives;
use crate::tables::ROOT;
use crate::text::{Item, Table, Value, join, key_text, quoted};
use crate::transport;

/// The text, and the hash of everything except the title. `title` replaces a missing one; `files` are the
/// contents that the scenario refers to.
pub(crate) fn canonical(
    catalog: &Catalog,
    root: &Table,
    title: &str,
    files: &[(String, u64)],
) -> (String, u64) {
    // The title does not affect a run.
    let text = without(&["title"], catalog, root, files);
    let hash = fnv1a(&text);
    let title = root.get("title").map_or_else(|| quoted(title), ToString::to_string);
    (format!("title = {title}\n{text}"), hash)
}

/// The text without these keys of the root.
pub(crate) fn without(keys: &[&str], catalog: &Catalog, root: &Table, files: &[(String, u64)]) -> String {
    let root = &implied::written_out(root);
    let catalog = with_preset(catalog, root);
    let catalog = catalog.as_ref();
    let mut out = String::new();
    for (path, hash) in files {
        // A comment, so that the hash of the scenario covers the content of its files.
        let _ = writeln!(out, "# {} has the content {hash:016x}", path.escape_debug());
    }
    let mut tables = String::new();
    for key in ROOT.iter().filter(|key| !keys.contains(&key.name)) {
        let item = root.get(key.name);
        match (key.kind, item.map(|item| &item.value)) {
            (Kind::Table(keys), Some(Value::Table(table))) => {
                table_of_tables(catalog, &mut tables, key.name, table, keys);
            }
            (Kind::Map(keys), Some(Value::Table(table))) => {
                let map = key.name;
                let has_default = |key: &str| has_default(root, map, key);
                named_tables(catalog, &mut tables, key.name, table, keys, &has_default);
            }
            (Kind::Tables(keys), Some(Value::List(items))) => {
                listed_tables(catalog, &mut tables, key.name, items, keys);
            }
            (Kind::Variants(variants), Some(Value::Table(table))) => {
                let (keys, variant) = variant(table, variants);
                section(catalog, &mut tables, &format!("[{}]", key.name), table, keys, variant);
            }
            _ => {
                if let Some(text) = value(catalog, key, item) {
                    let _ = writeln!(out, "{} = {text}", key.name);
                }
            }
        }
    }
    // Entries that are not tables must come first, or they would belong to the table above.
    out.push_str(&tables);
    out
}

/// The catalogue with the scenario's preset. None if that is swept: parts then stay as written, because unset
/// values differ from point to point.
pub(crate) fn with_preset(catalog: &Catalog, root: &Table) -> Option<Catalog> {
    let preset = root.get("defaults").and_then(Item::as_table).and_then(|defaults| defaults.get(Preset::KEY));
    let preset = preset.map_or(Some(Preset::Default), |item| item.as_text()?.parse().ok())?;
    Some(catalog.with_preset(preset))
}

/// Whether `defaults` may set `key` for declarations under `map`. True if they are swept, because it is
/// unknown.
fn has_default(root: &Table, map: &str, key: &str) -> bool {
    let Some(defaults) = root.get("defaults") else { return false };
    let Some(defaults) = defaults.as_table() else { return true };
    let Some(defaults) = defaults.get(map) else { return false };
    defaults.as_table().is_none_or(|defaults| defaults.get(key).is_some())
}

fn table_of_tables(
    catalog: Option<&Catalog>,
    out: &mut String,
    name: &str,
    table: &Table,
    keys: &'static [Param],
) {
    let is_section = |key: &Param| table.get(key.name).and_then(Item::as_table);
    let inline = keys.iter().filter(|key| is_section(key).is_none());
    let inline: Vec<_> = inline
        .filter_map(|key| Some((key.name.to_owned(), value(catalog, key, table.get(key.name))?)))
        .collect();
    if !inline.is_empty() {
        lines(out, &format!("[{name}]"), &inline);
    }
    for key in keys {
        if let (Kind::Table(keys), Some(table)) = (key.kind, is_section(key)) {
            named_table(catalog, out, &join(name, key.name), table, keys, &|_| false);
        }
    }
}

fn named_tables(
    catalog: Option<&Catalog>,
    out: &mut String,
    name: &str,
    table: &Table,
    keys: &'static [Param],
    has_default: &dyn Fn(&str) -> bool,
) {
    let mut named: Vec<_> = table.entries.iter().collect();
    named.sort_by(|(a, _), (b, _)| natural(a, b));
    for (entry, item) in named {
        if let Some(table) = item.as_table() {
            named_table(catalog, out, &join(name, entry), table, keys, has_default);
        }
    }
}

fn named_table(
    catalog: Option<&Catalog>,
    out: &mut String,
    path: &str,
    table: &Table,
    keys: &'static [Param],
    has_default: &dyn Fn(&str) -> bool,
) {
    // A whole transport is too long for a line: it gets a table of its own.
    let canonical = |(name, item): &(String, Item)| {
        let key = keys.iter().find(|key| key.name == name)?;
        match key.kind {
            Kind::Defined("tcp", _) => Some((key.name, transport::canonical(catalog, item)?)),
            Kind::Defined("quic", _) => Some((key.name, transport::canonical_quic(catalog, item)?)),
            _ => None,
        }
    };
    let transports: Vec<_> = table.entries.iter().filter_map(canonical).collect();
    let mut rest = table.clone();
    rest.entries.retain(|(key, _)| transports.iter().all(|(name, _)| key != name));
    let mut entries = entries(catalog, &rest, keys, None);
    entries.retain(|(key, _)| table.get(key).is_some() || !has_default(key));
    lines(out, &format!("[{path}]"), &entries);
    for (name, transport) in transports {
        lines(out, &format!("[{path}.{name}]"), &transport);
    }
}

/// Timed changes mean the same in any order: they are sorted by their text.
fn listed_tables(
    catalog: Option<&Catalog>,
    out: &mut String,
    name: &str,
    items: &[Item],
    keys: &'static [Param],
) {
    let mut sections: Vec<String> = items
        .iter()
        .filter_map(Item::as_table)
        .map(|table| {
            let mut out = String::new();
            section(catalog, &mut out, &format!("[[{name}]]"), table, keys, None);
            out
        })
        .collect();
    sections.sort_by(|a, b| natural(a, b));
    sections.iter().for_each(|section| out.push_str(section));
}

fn section(
    catalog: Option<&Catalog>,
    out: &mut String,
    header: &str,
    table: &Table,
    keys: &'static [Param],
    variant: Option<&'static Variant>,
) {
    lines(out, header, &entries(catalog, table, keys, variant));
}

fn lines(out: &mut String, header: &str, entries: &[(String, String)]) {
    let _ = writeln!(out, "\n{header}");
    for (key, text) in entries {
        let _ = writeln!(out, "{key} = {text}");
    }
}

/// Keys with their values in the order of `keys`, defaults filled in.
fn entries(
    catalog: Option<&Catalog>,
    table: &Table,
    keys: &'static [Param],
    variant: Option<&'static Variant>,
) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if let Some(variant) = variant {
        all.push(("kind".to_owned(), quoted(variant.name)));
    }
    for key in keys {
        let text = match (key.kind, table.get("set").and_then(Item::as_text)) {
            // The changed setting decides how its value is written.
            (Kind::Any, Some(set)) => {
                table.get(key.name).map(|item| one(catalog, changes::kind_of(set), item))
            }
            _ => value(catalog, key, table.get(key.name)),
        };
        all.extend(text.map(|text| (key.name.to_owned(), text)));
    }
    // Only if `kind` itself is swept: then the keys are unknown.
    for (key, item) in &table.entries {
        let known = keys.iter().any(|known| known.name == key) || (key == "kind" && variant.is_some());
        if !known {
            all.push((key_text(key), item.to_string()));
        }
    }
    all
}

fn inline(entries: &[(String, String)]) -> String {
    let parts: Vec<_> = entries.iter().map(|(key, text)| format!("{key} = {text}")).collect();
    format!("{{ {} }}", parts.join(", "))
}

/// The variant that a table names, and its keys; none if `kind` is swept.
fn variant(table: &Table, variants: &'static [Variant]) -> (&'static [Param], Option<&'static Variant>) {
    let name = table.get("kind").and_then(Item::as_text);
    let found = variants.iter().find(|variant| Some(variant.name) == name);
    (found.map_or(&[], |variant| variant.params), found)
}

/// The value of a key, or its default; `None` if there is neither.
fn value(catalog: Option<&Catalog>, key: &Param, item: Option<&Item>) -> Option<String> {
    let Some(item) = item else {
        return Some(one(catalog, key.kind, &Item::text(key.default?, crate::problem::Place::Override)));
    };
    match (key.kind, alternatives(item)) {
        (Kind::Texts | Kind::TextLists | Kind::Ordinals | Kind::Tables(_), _) | (_, Ok(None) | Err(_)) => {
            Some(one(catalog, key.kind, item))
        }
        (_, Ok(Some(values))) => {
            let values: Vec<_> = values.iter().map(|value| one(catalog, key.kind, value)).collect();
            Some(format!("[{}]", values.join(", ")))
        }
    }
}

/// One value, written in the one way of its kind.
pub(crate) fn one(catalog: Option<&Catalog>, kind: Kind, item: &Item) -> String {
    match (kind, &item.value) {
        (Kind::Switch, Value::Text(text)) => text.clone(),
        (Kind::Table(keys) | Kind::TableOrFalse(keys) | Kind::OrTable(_, keys), Value::Table(table)) => {
            inline(&entries(catalog, table, keys, None))
        }
        (Kind::OrTable(kind, _), _) => one(catalog, *kind, item),
        (Kind::Variants(variants), Value::Table(table)) => {
            let (keys, variant) = variant(table, variants);
            inline(&entries(catalog, table, keys, variant))
        }
        (Kind::Variants(variants), Value::Text(name)) => {
            let kind = ("kind".to_owned(), item.clone());
            match variants.iter().find(|variant| variant.name == name) {
                Some(found) => {
                    inline(&entries(catalog, &Table { entries: vec![kind] }, found.params, Some(found)))
                }
                None => item.to_string(),
            }
        }
        (Kind::Defined("tcp", _), _) => {
            transport::canonical(catalog, item).map_or_else(|| item.to_string(), |all| inline(&all))
        }
        (Kind::Defined("quic", _), _) => {
            transport::canonical_quic(catalog, item).map_or_else(|| item.to_string(), |all| inline(&all))
        }
        (Kind::Defined(part, _), _) => catalog
            .zip(Part::of_key(part))
            .and_then(|(catalog, part)| part.canonical(catalog, item))
            .unwrap_or_else(|| item.to_string()),
        (Kind::Tables(keys), Value::List(items)) => {
            let mut tables: Vec<_> = items
                .iter()
                .map(|item| {
                    item.as_table().map_or_else(
                        || item.to_string(),
                        |table| inline(&entries(catalog, table, keys, None)),
                    )
                })
                .collect();
            tables.sort_by(|a, b| natural(a, b));
            format!("[{}]", tables.join(", "))
        }
        (
            Kind::Time | Kind::Span | Kind::Rate | Kind::Bytes | Kind::Ratio | Kind::Number | Kind::Count,
            _,
        ) => match Amount::read(item, kind, Range::Any, true) {
            Ok(Amount::Fixed(value)) => toml(value),
            _ => item.to_string(),
        },
        _ => item.to_string(),
    }
}
