//! The one walker that checks a table against its keys.
//!
//! The lists of keys are in [`crate::tables`]. The loader, the JSON schema and the canonical text all read them.

mod amount;

use std::rc::Rc;

use apportion_core::param::{Args, EntryArgs, Kind, Param, ParamError, Setting, Variant};
use apportion_core::units::TicketRate;

use crate::problem::{Place, Problems, missing_kind, unknown_key, unknown_word};
use crate::text::{Item, Table, Value, join};

pub(crate) use amount::{Amount, toml};

/// A table that was checked against its keys.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// The key path of the table.
    pub path: String,
    /// The place of the table in the file.
    pub place: Place,
    keys: &'static [Param],
    found: Vec<Found<'a>>,
}

#[derive(Clone, Debug)]
struct Found<'a> {
    key: &'static Param,
    item: Option<&'a Item>,
    amount: Option<Amount>,
    /// The table that it comes from, if it was taken from another one.
    lent_by: Option<Rc<str>>,
}

/// Checks `item`, which must be a table, against `keys`; every error is added to `problems`.
pub(crate) fn walk<'a>(
    item: &'a Item,
    path: &str,
    keys: &'static [Param],
    indexed: bool,
    problems: &mut Problems,
) -> Option<Fields<'a>> {
    let Some(table) = item.as_table() else {
        problems.add(item.place, path, format!("`{}` is {}, not a table", item.plain(), item.what()));
        return None;
    };
    Some(walk_table(table, item.place, path, keys, indexed, problems))
}

/// Checks `item` against the variant that it names; every error is added to `problems`.
pub(crate) fn walk_variant<'a>(
    item: &'a Item,
    path: &str,
    variants: &'static [Variant],
    indexed: bool,
    problems: &mut Problems,
) -> Option<(&'static Variant, Fields<'a>)> {
    static EMPTY: Table = Table { entries: Vec::new() };
    let names = variants.iter().map(|variant| variant.name);
    let (table, kind) = match &item.value {
        Value::Table(table) => (table, table.get("kind")),
        _ => (&EMPTY, Some(item)),
    };
    let Some(kind) = kind else {
        problems.add(item.place, join(path, "kind"), missing_kind(&names.collect::<Vec<_>>()));
        return None;
    };
    let Some(variant) = variants.iter().find(|variant| kind.as_text() == Some(variant.name)) else {
        problems.add(kind.place, path, unknown_word(&kind.plain(), names));
        return None;
    };
    let known = |name: &str| name == "kind" || variant.params.iter().any(|key| key.name == name);
    refuse_unknown(table, path, variant.params, &known, problems);
    Some((variant, read_keys(table, item.place, path, variant.params, indexed, problems)))
}

/// Checks the whole file.
pub(crate) fn walk_root<'a>(table: &'a Table, keys: &'static [Param], problems: &mut Problems) -> Fields<'a> {
    walk_table(table, Place::Line(1), "", keys, false, problems)
}

fn walk_table<'a>(
    table: &'a Table,
    place: Place,
    path: &str,
    keys: &'static [Param],
    indexed: bool,
    problems: &mut Problems,
) -> Fields<'a> {
    refuse_unknown(table, path, keys, &|name| keys.iter().any(|key| key.name == name), problems);
    read_keys(table, place, path, keys, indexed, problems)
}

fn refuse_unknown(
    table: &Table,
    path: &str,
    keys: &'static [Param],
    is_known: &dyn Fn(&str) -> bool,
    problems: &mut Problems,
) {
    for (name, item) in table.entries.iter().filter(|(name, _)| !is_known(name)) {
        let message = unknown_key("key", name, keys.iter().map(|key| key.name));
        problems.add(item.place, join(path, name), message);
    }
}

fn read_keys<'a>(
    table: &'a Table,
    place: Place,
    path: &str,
    keys: &'static [Param],
    indexed: bool,
    problems: &mut Problems,
) -> Fields<'a> {
    let found = keys.iter().map(|key| {
        let item = table.get(key.name);
        let amount = check(key, item, place, path, indexed, problems);
        Found { key, item, amount, lent_by: None }
    });
    Fields { path: path.to_owned(), place, keys, found: found.collect() }
}

/// Checks one key: its presence if it is required, and its value as far as this level goes.
fn check(
    key: &'static Param,
    item: Option<&Item>,
    place: Place,
    path: &str,
    indexed: bool,
    problems: &mut Problems,
) -> Option<Amount> {
    let path = || join(path, key.name);
    let Some(item) = item else {
        if key.is_required() {
            let example = key.kind.example();
            problems.add(place, path(), format!("missing; write for example {} = {example}", key.name));
        }
        // Defaults are constants of the tables; a test reads every one.
        let (kind, default) = (scalar(key.kind)?, key.default?);
        return Amount::read(&Item::text(default, place), kind, key.range, false).ok();
    };
    if let Some(kind) = scalar(key.kind)
        && (kind == key.kind || item.as_table().is_none())
    {
        return Amount::read(item, kind, key.range, indexed)
            .map_err(|message| problems.add(item.place, path(), message))
            .ok();
    }
    match key.kind {
        Kind::Text if item.as_text().is_none_or(str::is_empty) => {
            let message =
                format!("`{}` is not a name; write for example {}", item.plain(), key.kind.example());
            problems.add(item.place, path(), message);
        }
        Kind::Switch if !matches!(item.value, Value::Flag(_)) => {
            problems.add(item.place, path(), format!("`{}` is neither true nor false", item.plain()));
        }
        Kind::SwitchOrTexts if !matches!(item.value, Value::Flag(_) | Value::List(_)) => {
            let message = format!("`{}` is neither true nor false nor a list", item.plain());
            problems.add(item.place, path(), message);
        }
        Kind::Choice(words) if !item.as_text().is_some_and(|text| words.contains(&text)) => {
            problems.add(item.place, path(), unknown_word(&item.plain(), words.iter().copied()));
        }
        _ => (),
    }
    None
}

/// The kind of the amounts that may stand for a key of this kind, if any.
fn scalar(kind: Kind) -> Option<Kind> {
    match kind {
        Kind::Time | Kind::Span | Kind::Rate | Kind::Bytes | Kind::Ratio | Kind::Number | Kind::Count => {
            Some(kind)
        }
        Kind::OrTable(kind, _) => Some(*kind),
        _ => None,
    }
}

impl<'a> Fields<'a> {
    fn found(&self, name: &str) -> Option<&Found<'a>> {
        self.found.iter().find(|found| found.key.name == name)
    }

    /// Takes keys that are not set here from `defaults`. Messages about them name where they were written.
    pub(crate) fn or(mut self, defaults: &Self) -> Self {
        let lent_by: Rc<str> = defaults.path.as_str().into();
        for found in self.found.iter_mut().filter(|found| found.item.is_none()) {
            if let Some(default) = defaults.found(found.key.name).filter(|found| found.item.is_some()) {
                (found.item, found.amount) = (default.item, default.amount.clone());
                found.lent_by = Some(Rc::clone(&lent_by));
            }
        }
        self
    }

    /// Drops values of `keys` that come from the defaults. The keys have no value if absent.
    pub(crate) fn without_lent(mut self, keys: &[&str]) -> Self {
        for found in self.found.iter_mut().filter(|found| found.lent_by.is_some()) {
            if keys.contains(&found.key.name) {
                *found = Found { key: found.key, item: None, amount: None, lent_by: None };
            }
        }
        self
    }

    /// The value as written; `None` if absent.
    pub(crate) fn item(&self, name: &str) -> Option<&'a Item> {
        self.found(name)?.item
    }

    /// Whether the value comes from the defaults.
    pub(crate) fn is_lent(&self, name: &str) -> bool {
        self.found(name).is_some_and(|found| found.lent_by.is_some())
    }

    /// The kind of `name`.
    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        self.found(name).map(|found| found.key.kind)
    }

    /// The place of `name`, or else of its table.
    pub(crate) fn place_of(&self, name: &str) -> Place {
        self.item(name).map_or(self.place, |item| item.place)
    }

    /// The path of `name`.
    pub(crate) fn path_of(&self, name: &str) -> String {
        let lent_by = self.found(name).and_then(|found| found.lent_by.as_deref());
        join(lent_by.unwrap_or(&self.path), name)
    }

    /// Notes that `name` is wrong.
    pub(crate) fn refuse(&self, name: &str, message: impl Into<String>, problems: &mut Problems) {
        problems.add(self.place_of(name), self.path_of(name), message);
    }

    /// Notes that a part of `name` is not used.
    pub(crate) fn note(&self, name: &str, message: impl Into<String>, problems: &mut Problems) {
        problems.note(self.place_of(name), self.path_of(name), message);
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let found = self.found(name)?;
        found.item.map_or(found.key.default, Item::as_text)
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let found = self.found(name)?;
        match found.item.map(|item| &item.value) {
            Some(Value::Flag(flag)) => Some(*flag),
            Some(_) => None,
            None => found.key.default.map(|text| text == "true"),
        }
    }

    /// The value of a [`Kind::Form`] as `read` returns it; `None` if absent or refused.
    pub(crate) fn form<T>(
        &self,
        name: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
        problems: &mut Problems,
    ) -> Option<T> {
        let found = self.found(name)?;
        let item = found.item?;
        let value = match item.value {
            Value::Text(_) | Value::Integer(_) | Value::Huge(_) => read(&item.plain()),
            _ => {
                let example = found.key.kind.example();
                Err(format!("`{}` is {}; write for example {example}", item.plain(), item.what()))
            }
        };
        value.map_err(|message| self.refuse(name, message, problems)).ok()
    }

    /// The strings of a list; `None` if absent.
    pub(crate) fn names(&self, name: &str, problems: &mut Problems) -> Option<Vec<&'a str>> {
        let item = self.item(name)?;
        let names = match &item.value {
            Value::List(items) => items.iter().map(Item::as_text).collect(),
            _ => None,
        };
        if names.as_ref().is_none_or(Vec::is_empty) {
            let message =
                format!("`{}` is not a list of names; write for example [\"a\", \"b\"]", item.plain());
            self.refuse(name, message, problems);
        }
        names
    }

    /// The amount of `name` for member `i`; `None` if it is absent without a default, or was refused.
    pub(crate) fn get<T: Setting>(&self, name: &str, i: u64, problems: &mut Problems) -> Option<T> {
        match self.found(name)?.amount.as_ref()?.at(i) {
            Ok(amount) => T::of(Some(amount)),
            Err(message) => {
                self.refuse(name, message, problems);
                None
            }
        }
    }

    /// The result of `read` for the values of member `i`; `None` if any was refused.
    pub(crate) fn read<T>(
        &self,
        read: fn(&EntryArgs<'_>) -> Result<T, ParamError>,
        i: u64,
        problems: &mut Problems,
    ) -> Option<T> {
        let mut args = Args::default();
        let mut is_whole = true;
        for found in &self.found {
            let value = match (&found.amount, found.item) {
                (Some(amount), _) => {
                    amount.at(i).map_err(|message| self.refuse(found.key.name, message, problems)).ok()
                }
                // Keys that hold no single value are read separately.
                (None, Some(_)) if matches!(found.key.kind, Kind::Text | Kind::Texts | Kind::Variants(_)) => {
                    continue;
                }
                (None, Some(item)) => item.written().and_then(|written| found.key.parse(written).ok()),
                (None, None) if found.key.is_required() => None,
                (None, None) => continue,
            };
            match value {
                Some(value) => args.put(found.key, value),
                None => is_whole = false,
            }
        }
        let refuse = |error: ParamError| self.refuse(&error.key, error.message, problems);
        is_whole.then(|| read(&args.of_table(self.keys)).map_err(refuse).ok())?
    }

    /// Tickets per second.
    pub(crate) fn tickets(&self, name: &str, i: u64, problems: &mut Problems) -> Option<TicketRate> {
        self.get(name, i, problems).and_then(TicketRate::new)
    }
}
