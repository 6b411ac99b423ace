//! Queue disciplines in scenario files: a name, or a table with `kind`, `drop`, `shaper` and parameters, read
//! by the catalogue of disciplines.

use std::rc::Rc;

use apportion_core::catalog::{self, ParamError, Role, Selection};
use apportion_core::system::DisciplineParams;

use crate::problem::{Problems, did_you_mean};
use crate::text::{Item, Table, Value, join, quoted};

/// The keys that select, before the parameters of what they select.
const SELECTORS: [&str; 3] = ["kind", "drop", "shaper"];

/// The queue of a link that nobody gave one.
pub(crate) fn default() -> Rc<DisciplineParams> {
    fifo(None)
}

/// A queue that does not drop what ordinary use puts into it: 1000 packets, as Linux interfaces have
/// (`txqueuelen`).
pub(crate) fn deep() -> Rc<DisciplineParams> {
    fifo(Some("1000p"))
}

/// # Panics
/// When the catalogue has no FIFO with a limit in packets: a slip in the program that every test finds.
fn fifo(limit: Option<&str>) -> Rc<DisciplineParams> {
    let built = Selection::new("fifo", None, None).and_then(|mut selection| {
        limit.map_or(Ok(()), |limit| selection.set("limit", limit))?;
        DisciplineParams::from_args(&selection)
    });
    match built {
        Ok(params) => Rc::new(params),
        Err(error) => unreachable!("the catalogue refuses a FIFO: {error}"),
    }
}

/// Reads a discipline; every slip goes to `problems`.
pub(crate) fn read(item: &Item, path: &str, problems: &mut Problems) -> Option<Rc<DisciplineParams>> {
    let mut refuse = |error: ParamError| {
        let inner = item.as_table().and_then(|table| table.get(&error.key));
        let path = if item.as_table().is_some() { join(path, &error.key) } else { path.to_owned() };
        problems.add(inner.map_or(item.place, |inner| inner.place), path, error.message);
    };
    let (selection, errors) = match select(item) {
        Ok(selected) => selected,
        Err(error) => {
            refuse(error);
            return None;
        }
    };
    if !errors.is_empty() {
        errors.into_iter().for_each(refuse);
        return None;
    }
    DisciplineParams::from_args(&selection).map(Rc::new).map_err(refuse).ok()
}

/// The entries that `item` asks for and its values, with every value that was refused.
fn select(item: &Item) -> Result<(Selection, Vec<ParamError>), ParamError> {
    let table = match &item.value {
        Value::Text(kind) => return Ok((selection(kind, None, None)?, Vec::new())),
        Value::Table(table) => table,
        _ => {
            let message =
                format!("`{}` is {}, not a discipline; write for example \"fifo\"", item, item.what());
            return Err(ParamError::new("kind", message));
        }
    };
    let name = |key: &str| match table.get(key) {
        Some(item) => item.as_text().map(Some).ok_or_else(|| {
            ParamError::new(key, format!("`{item}` is {}, not the name of a discipline", item.what()))
        }),
        None => Ok(None),
    };
    let Some(kind) = name("kind")? else {
        return Err(ParamError::new("kind", "missing; write for example kind = \"fifo\""));
    };
    let mut selection = selection(kind, name("drop")?, name("shaper")?)?;
    let errors = parameters(table).filter_map(|(key, item)| set(&mut selection, key, item).err()).collect();
    Ok((selection, errors))
}

fn parameters(table: &Table) -> impl Iterator<Item = (&str, &Item)> {
    let entries = table.entries.iter().map(|(key, item)| (key.as_str(), item));
    entries.filter(|(key, _)| !SELECTORS.contains(key))
}

fn selection(kind: &str, drop: Option<&str>, shaper: Option<&str>) -> Result<Selection, ParamError> {
    Selection::new(kind, drop, shaper).map_err(|mut error| {
        let shapes = error.key == "shaper";
        let name =
            [Some(kind), drop, shaper][SELECTORS.iter().position(|key| *key == error.key).unwrap_or(0)];
        let candidates = catalog::disciplines().filter(|entry| (entry.role == Role::Shaper) == shapes);
        if let Some(name) = name.filter(|name| catalog::find(name).is_none()) {
            error.message.push_str(&did_you_mean(name, candidates.map(|entry| entry.name)));
        }
        error
    })
}

fn set(selection: &mut Selection, key: &str, item: &Item) -> Result<(), ParamError> {
    if matches!(item.value, Value::Table(_) | Value::List(_) | Value::Other(_)) {
        return Err(ParamError::new(
            key,
            format!("`{item}` is {}, not the value of a parameter", item.what()),
        ));
    }
    let known: Vec<_> = selection.entries().flat_map(|entry| entry.params).map(|param| param.name).collect();
    let unknown = !known.contains(&key);
    selection.set(key, &item.plain()).map_err(|mut error| {
        if unknown {
            error.message.push_str(&did_you_mean(key, known));
        }
        error
    })
}

/// The discipline as TOML with every parameter that it has, set or not; `None` if it is refused or swept
/// inside.
pub(crate) fn canonical(item: &Item) -> Option<String> {
    let (selection, errors) = select(item).ok()?;
    if !errors.is_empty() {
        return None;
    }
    let given = item.as_table();
    // A policy as `kind` stays one, so that sweeps keep their labels.
    let kind = given.map_or(Some(item), |table| table.get("kind"))?.as_text()?;
    let mut parts = vec![format!("kind = {}", quoted(kind))];
    let drop = selection.drop.filter(|drop| drop.name != kind);
    parts.extend(drop.map(|entry| format!("drop = {}", quoted(entry.name))));
    parts.extend(selection.shaper.map(|entry| format!("shaper = {}", quoted(entry.name))));
    for param in selection.entries().flat_map(|entry| entry.params) {
        let given = given.and_then(|table| table.get(param.name)).map(Item::plain);
        let Some(text) = given.or_else(|| param.default.map(str::to_owned)) else { continue };
        let part = format!("{} = {}", param.name, print(param.parse(&text).ok()?));
        // Entries of one selection may share a parameter, such as the limit.
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    Some(format!("{{ {} }}", parts.join(", ")))
}

fn print(value: catalog::Value) -> String {
    use catalog::Value as V;
    match value {
        V::Limit(value) => quoted(&value.to_string()),
        V::Packets(value) => quoted(&value.to_string()),
        V::Bytes(value) => quoted(&value.to_string()),
        V::Span(value) => quoted(&value.to_string()),
        V::Rate(value) => quoted(&value.to_string()),
        V::Ratio(value) => format!("{:?}", value.get()),
        V::Number(value) => format!("{value:?}"),
        V::Count(value) => value.to_string(),
        V::Switch(value) => value.to_string(),
        V::Choice(value) => quoted(value),
    }
}
