//! Sweeps: lists and ranges in place of values, and the points that they expand to.
//!
//! A list stands for its alternatives, except under keys whose values are lists by nature;
//! `"10ms..50ms step 10ms"` stands for five values. Several lists are axes of a grid: its points are visited
//! in the order of the file, the last axis fastest. Lists that `[sweep]` zips are one axis.

use std::str::FromStr;

use apportion_core::param::Kind;
use apportion_core::system::Catalog;
use apportion_core::units::{Bytes, Packets, Rate, Span};

use crate::problem::{Place, Problems};
use crate::render;
use crate::text::{Item, Table, Value, join, key_text, parse_override};
use crate::value_names;
use crate::zip;

/// Maximum of points of a grid.
const MAX_POINTS: usize = 10_000;

/// Maximum of keys in the path of an override (chosen: scenarios need six).
const DEEPEST: usize = 16;

/// Keys whose values are lists by nature.
pub(crate) const LISTS: [&str; 8] =
    ["zip", "ladder", "path", "return_path", "lost", "packets", "between", "change"];

/// One point of the grid.
#[derive(Clone, Debug)]
pub(crate) struct GridPoint {
    /// The label, for example `queue=red, rate=10Mbit`; empty without axes.
    pub label: String,
    /// Key paths and values, as axes of the grid.
    pub settings: Vec<(String, String)>,
    /// The file with this point's values in place of the lists.
    pub root: Table,
}

/// A list or a range.
pub(crate) struct Axis {
    /// Keys, with list positions as `[n]`.
    path: Vec<String>,
    pub values: Vec<Item>,
}

impl Axis {
    /// The path of the key.
    pub(crate) fn path(&self) -> String {
        path_text(&self.path)
    }

    /// The kind of its values.
    fn kind(&self, root: &Table) -> Kind {
        let Some((key, change)) = self.path.split_last() else { return Kind::Any };
        let change = item_at(root, change).and_then(Item::as_table);
        value_names::kind_of(key, change.and_then(|change| change.get("set")?.as_text()))
    }
}

/// Expands all lists and ranges; one point if there are none.
pub(crate) fn expand(catalog: &Catalog, root: &Table, problems: &mut Problems) -> Vec<GridPoint> {
    let (mut axes, mut root) = (Vec::new(), root.clone());
    let said = zip::taken_out(&mut root);
    find_in_table(&root, &mut Vec::new(), &mut axes, problems);
    let dimensions = zip::dimensions(said.as_ref(), &axes, problems);
    let lengths: Vec<usize> = dimensions.iter().map(|axis| axes[axis[0]].values.len()).collect();
    let points = lengths.iter().try_fold(1usize, |points, length| points.checked_mul(*length));
    let Some(points) = points.filter(|points| *points <= MAX_POINTS) else {
        let sizes: Vec<_> = lengths.iter().map(ToString::to_string).collect();
        let message = format!(
            "the sweep has {} points; at most {MAX_POINTS} are possible: shorten a list",
            sizes.join(" x ")
        );
        problems.add(axes[0].values[0].place, axes[0].path(), message);
        return Vec::new();
    };
    let names = short_names(&axes);
    let catalog = render::with_preset(catalog, &root);
    let names_of = |axis: &Axis| value_names::names(catalog.as_ref(), axis.kind(&root), &axis.values);
    let labels: Vec<Vec<String>> = axes.iter().map(names_of).collect();
    let point = |mut point: usize| {
        let mut chosen = vec![0; axes.len()];
        for (dimension, length) in dimensions.iter().zip(&lengths).rev() {
            dimension.iter().for_each(|axis| chosen[*axis] = point % length);
            point /= length;
        }
        grid_point(&root, &axes, &names, &labels, &chosen)
    };
    (0..points).map(point).collect()
}

fn grid_point(
    root: &Table,
    axes: &[Axis],
    names: &[String],
    labels: &[Vec<String>],
    chosen: &[usize],
) -> GridPoint {
    let mut root = root.clone();
    let (mut label, mut settings) = (Vec::new(), Vec::new());
    for (((axis, name), labels), &at) in axes.iter().zip(names).zip(labels).zip(chosen) {
        if let Some(slot) = slot(&mut root, &axis.path) {
            *slot = axis.values[at].clone();
        }
        label.push(format!("{name}={}", labels[at]));
        settings.push((axis.path(), labels[at].clone()));
    }
    GridPoint { label: label.join(", "), settings, root }
}

fn find_in_table(table: &Table, path: &mut Vec<String>, axes: &mut Vec<Axis>, problems: &mut Problems) {
    for (key, item) in &table.entries {
        path.push(key.clone());
        // A link may be called `path`: only lists are lists by nature.
        let by_nature = match &item.value {
            Value::List(items) if LISTS.contains(&key.as_str()) => Some(items),
            _ => None,
        };
        if let Some(items) = by_nature {
            // Entries of [[change]] and `lost` are tables, and their values may be swept.
            for (number, entry) in (1..).zip(items).filter(|(_, entry)| entry.as_table().is_some()) {
                path.push(format!("[{number}]"));
                find(entry, path, axes, problems);
                path.pop();
            }
        } else {
            find(item, path, axes, problems);
        }
        path.pop();
    }
}

fn find(item: &Item, path: &mut Vec<String>, axes: &mut Vec<Axis>, problems: &mut Problems) {
    match &item.value {
        Value::Table(table) => find_in_table(table, path, axes, problems),
        Value::List(_) | Value::Text(_) => match alternatives(item) {
            Ok(Some(values)) if values.is_empty() => {
                problems.add_final(item.place, path_text(path), "an empty list; write at least one value");
            }
            Ok(Some(values)) => axes.push(Axis { path: path.clone(), values }),
            Ok(None) => (),
            Err(message) => problems.add_final(item.place, path_text(path), message),
        },
        _ => (),
    }
}

/// The values that a list or a range stands for; `None` for a single value.
pub(crate) fn alternatives(item: &Item) -> Result<Option<Vec<Item>>, String> {
    match &item.value {
        Value::Text(text) => Ok(range(text, item.place)?),
        Value::List(items) => {
            let mut all = Vec::new();
            for item in items {
                match (&item.value, alternatives(item)?) {
                    (Value::Table(table), _) => all.extend(tables(table, item.place)?),
                    (_, Some(values)) => all.extend(values),
                    (_, None) => all.push(item.clone()),
                }
                if all.len() > MAX_POINTS {
                    return Err(format!("more than {MAX_POINTS} values in a sweep"));
                }
            }
            Ok(Some(all))
        }
        _ => Ok(None),
    }
}

/// An alternative that is a table with lists of its own stands for all their combinations.
fn tables(table: &Table, place: Place) -> Result<Vec<Item>, String> {
    let mut all = vec![table.clone()];
    for (key, item) in &table.entries {
        if LISTS.contains(&key.as_str()) {
            continue;
        }
        let Some(values) = alternatives(item)? else { continue };
        if all.len().saturating_mul(values.len()) > MAX_POINTS {
            return Err(format!("more than {MAX_POINTS} values in a sweep"));
        }
        let with = |table: &Table, value: &Item| {
            let mut table = table.clone();
            if let Some(slot) = table.get_mut(key) {
                *slot = value.clone();
            }
            table
        };
        all = all
            .iter()
            .flat_map(|table| values.iter().map(|value| with(table, value)).collect::<Vec<_>>())
            .collect();
    }
    Ok(all.into_iter().map(|table| Item { value: Value::Table(table), place }).collect())
}

/// The values of `"A..B step C"`; `None` for any other text.
fn range(text: &str, place: Place) -> Result<Option<Vec<Item>>, String> {
    let Some((bounds, step)) = text.split_once(" step ") else {
        return Ok(None);
    };
    let Some((first, last)) = bounds.split_once("..") else {
        return Ok(None);
    };
    let [first, last, step] = [first.trim(), last.trim(), step.trim()];
    let found = numbers(first, last, step)
        .or_else(|| quantities::<Span>(first, last, step, Span::as_nanos, Span::from_nanos))
        .or_else(|| quantities::<Rate>(first, last, step, Rate::as_bit, Rate::from_bit))
        .or_else(|| quantities::<Bytes>(first, last, step, Bytes::get, Bytes::new))
        .or_else(|| quantities::<Packets>(first, last, step, Packets::get, Packets::new))
        .ok_or_else(|| {
            format!("`{text}` is not a range; write for example \"10ms..50ms step 10ms\", from low to high in one unit")
        })?;
    let values = found.ok_or_else(|| format!("`{text}` has more than {MAX_POINTS} values"))?;
    Ok(Some(values.into_iter().map(|value| Item { value, place }).collect()))
}

/// The number of values in a range; the inner `None` if too many, the outer if it is no range.
fn length(first: u64, last: u64, step: u64) -> Option<Option<u64>> {
    let steps = last.checked_sub(first)?.checked_div(step)?;
    Some((steps < MAX_POINTS as u64).then_some(steps))
}

fn quantities<T: FromStr + ToString>(
    first: &str,
    last: &str,
    step: &str,
    get: fn(T) -> u64,
    make: fn(u64) -> T,
) -> Option<Option<Vec<Value>>> {
    let read = |text: &str| text.parse().ok().map(get);
    let (first, last, step) = (read(first)?, read(last)?, read(step)?);
    let steps = length(first, last, step)?;
    Some(steps.map(|steps| (0..=steps).map(|k| Value::Text(make(first + k * step).to_string())).collect()))
}

/// Plain numbers, as integers scaled by the largest number of decimals, so that steps of 0.1 do not drift.
fn numbers(first: &str, last: &str, step: &str) -> Option<Option<Vec<Value>>> {
    let decimals = |text: &str| text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let most = [first, last, step].map(decimals).into_iter().max().filter(|most| *most <= 9)?;
    let read = |text: &str| -> Option<u64> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        format!("{whole}{fraction:0<most$}").parse().ok()
    };
    let (first, last, step) = (read(first)?, read(last)?, read(step)?);
    let steps = length(first, last, step)?;
    let value = |n: u64| {
        let digits = format!("{n:0>width$}", width = most + 1);
        let (whole, fraction) = digits.split_at(digits.len() - most);
        match fraction {
            "" => whole.parse().map(Value::Integer).ok(),
            _ => format!("{whole}.{fraction}").parse().map(Value::Float).ok(),
        }
    };
    Some(steps.and_then(|steps| (0..=steps).map(|k| value(first + k * step)).collect()))
}

/// The item at a path.
fn item_at<'a>(root: &'a Table, path: &[String]) -> Option<&'a Item> {
    let (first, rest) = path.split_first()?;
    let step = |item: &'a Item, key: &String| match (&item.value, list_position(key)) {
        (Value::Table(table), _) => table.get(key),
        (Value::List(items), Some(at)) => items.get(at),
        _ => None,
    };
    rest.iter().try_fold(root.get(first)?, step)
}

/// The item at a path, to be changed.
fn slot<'a>(root: &'a mut Table, path: &[String]) -> Option<&'a mut Item> {
    let (first, rest) = path.split_first()?;
    let mut item = root.get_mut(first)?;
    for key in rest {
        item = match (&mut item.value, list_position(key)) {
            (Value::Table(table), _) => table.get_mut(key)?,
            (Value::List(items), Some(at)) => items.get_mut(at)?,
            _ => return None,
        };
    }
    Some(item)
}

/// The position that `[n]` means, from 1 in the text.
fn list_position(key: &str) -> Option<usize> {
    key.strip_prefix('[')?.strip_suffix(']')?.parse::<usize>().ok()?.checked_sub(1)
}

fn path_text(path: &[String]) -> String {
    path.iter().fold(String::new(), |text, key| {
        if list_position(key).is_some() { format!("{text}{key}") } else { join(&text, key) }
    })
}

/// The shortest end of each axis's path that no other axis has.
fn short_names(axes: &[Axis]) -> Vec<String> {
    let end = |axis: &Axis, keys: usize| {
        let from = axis.path.len().saturating_sub(keys);
        path_text(&axis.path[from..])
    };
    let unique = |axis: &Axis, keys: usize| {
        axes.iter().filter(|other| end(other, keys) == end(axis, keys)).count() == 1
    };
    let name = |axis: &Axis| {
        let shortest = (1..axis.path.len()).find(|keys| unique(axis, *keys));
        end(axis, shortest.unwrap_or(axis.path.len()))
    };
    axes.iter().map(name).collect()
}

/// Applies `--set PATH=VALUE` to the file before it is checked. Missing tables on the path are created, and a
/// discipline given by name becomes a table, so that its parameters can be set.
pub(crate) fn set(root: &mut Table, path: &str, text: &str, problems: &mut Problems) {
    let keys = match of_bottleneck(root, path) {
        Some(Ok(keys)) => keys,
        Some(Err(message)) => return problems.add(Place::Override, path, message),
        None => keys_of(path),
    };
    if keys.iter().any(String::is_empty) || keys.len() > DEEPEST {
        let message = "not a key path; write for example --set link.bottleneck.rate=5Mbit";
        return problems.add(Place::Override, path, message);
    }
    let mut value = Item { value: Value::Table(std::mem::take(root)), place: Place::Override };
    if let Err(message) = put(&mut value, "", &keys, parse_override(text)) {
        problems.add(Place::Override, path, message);
    }
    if let Value::Table(table) = value.value {
        *root = table;
    }
}

/// Keys that are short for those of a link, if there is only one bottleneck.
const OF_BOTTLENECK: [&str; 4] = ["rate", "delay", "queue", "loss"];

/// The full path for `path`, if it is one of [these](OF_BOTTLENECK): of the only link of a topology besides
/// access links, or of the only link. An error if there are several.
fn of_bottleneck(root: &Table, path: &str) -> Option<Result<Vec<String>, String>> {
    let key = OF_BOTTLENECK.into_iter().find(|key| *key == path)?;
    let tables = |of: &'static str| {
        let all = root.get(of).and_then(Item::as_table).into_iter().flat_map(|table| &table.entries);
        all.filter(|(name, item)| item.as_table().is_some() && name != "access")
            .map(move |(name, _)| (of, name.clone()))
    };
    let mut links: Vec<(&str, String)> = tables("topology").collect();
    if links.is_empty() {
        links = tables("link").collect();
    }
    if let [(of, name)] = &links[..] {
        return Some(Ok(vec![(*of).to_owned(), name.clone(), key.to_owned()]));
    }
    let paths = links.iter().take(MOST_PATHS).map(|(of, name)| format!("{of}.{}.{key}", key_text(name)));
    let paths = paths.collect::<Vec<_>>().join(" or ");
    let paths = if paths.is_empty() { format!("link.bottleneck.{key}") } else { paths };
    Some(Err(format!(
        "there is no single bottleneck that it could be of; write the whole path, such as {paths}"
    )))
}

/// Maximum of paths in a message.
const MOST_PATHS: usize = 3;

/// The keys of a path: separated by dots outside quotes, positions in lists as `[n]`.
fn keys_of(path: &str) -> Vec<String> {
    let mut keys = vec![String::new()];
    let mut quoted = false;
    for c in path.chars() {
        let last = keys.len() - 1;
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => keys.push(String::new()),
            '[' if !quoted => keys.push("[".to_owned()),
            c => keys[last].push(c),
        }
    }
    keys
}

/// Puts a value into `item`; `under` is the key that led to it.
fn put(item: &mut Item, under: &str, keys: &[String], value: Item) -> Result<(), String> {
    let Some((key, rest)) = keys.split_first() else {
        *item = value;
        return Ok(());
    };
    if matches!(item.value, Value::Text(_)) {
        // Only disciplines, sources and transports can be a name or a table.
        let named = match under {
            "tcp" => "profile",
            "quic" => "algorithm",
            _ => "kind",
        };
        let named = Table { entries: vec![(named.to_owned(), item.clone())] };
        item.value = Value::Table(named);
    }
    match (&mut item.value, list_position(key)) {
        (Value::Table(table), None) => {
            if table.get(key).is_none() {
                let empty = Item { value: Value::Table(Table::default()), place: Place::Override };
                table.entries.push((key.clone(), empty));
            }
            let Some(slot) = table.get_mut(key) else { return Ok(()) };
            put(slot, key, rest, value)
        }
        (Value::List(items), Some(at)) => {
            let count = items.len();
            let slot = items.get_mut(at).ok_or_else(|| format!("the list has {count} entries"))?;
            put(slot, key, rest, value)
        }
        (Value::List(_), None) => Err(format!(
            "`{key}` cannot be set: what it belongs to is a list; set the list, or its entry [1], [2], ..."
        )),
        _ => Err(format!("`{key}` cannot be set: what it belongs to is {}, not a table", item.what())),
    }
}
