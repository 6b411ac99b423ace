//! Selections of scenario files from the catalogue: a name, or a table with `kind` and parameters.

use apportion_core::mark::currency_exchange;
use apportion_core::mark::ticket;
use apportion_core::param::{
    CLASS_KEY, Entry, EntryArgs, Kind, NamedClass, PARENT_KEY, Param, ParamError, Preset, Role, Written,
};
use apportion_core::system::catalog::{Catalog, Selection};

use crate::keys::toml;
use crate::plans;
use crate::problem::{Problems, did_you_mean, unknown_key};
use crate::text::{Item, Table, Value, join, quoted};

/// The kind of part that is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The discipline of a link.
    Queue,
    /// The marker of a flow.
    Marker,
    /// The exchange of a link.
    Exchange,
    /// The transport of a flow, if a stack from outside.
    Stack,
}

impl Part {
    /// The key that holds it.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Marker => "mark",
            Self::Exchange => "exchange",
            Self::Stack => "transport",
        }
    }

    /// The kind of its key.
    pub(crate) const fn kind(self) -> Kind {
        Kind::Defined(
            self.key(),
            match self {
                Self::Queue => "\"fifo\"",
                Self::Marker => "\"tickets\"",
                Self::Exchange => "{ }",
                Self::Stack => "\"quinn\"",
            },
        )
    }

    /// The part that `key` holds, if any.
    pub(crate) fn of_key(key: &str) -> Option<Self> {
        [Self::Queue, Self::Marker, Self::Exchange, Self::Stack].into_iter().find(|part| part.key() == key)
    }

    /// The noun with its article.
    const fn noun(self) -> &'static str {
        match self {
            Self::Queue => "a discipline",
            Self::Marker => "a marker",
            Self::Exchange => "an exchange",
            Self::Stack => "a transport stack",
        }
    }

    /// A name to show.
    pub(crate) const fn example(self) -> &'static str {
        match self {
            Self::Queue => "fifo",
            Self::Marker => ticket::ENTRY.name,
            Self::Exchange => currency_exchange::ENTRY.name,
            Self::Stack => "quinn",
        }
    }

    /// The entry that a table without `kind` selects.
    pub(crate) const fn implied(self) -> Option<&'static str> {
        match self {
            Self::Queue | Self::Stack => None,
            Self::Marker | Self::Exchange => Some(self.example()),
        }
    }

    /// The keys that select, before the parameters of the selected entries, with the roles of these.
    pub(crate) const fn selectors(self) -> &'static [(&'static str, &'static [Role])] {
        match self {
            Self::Queue => &[
                ("kind", &[Role::Scheduler, Role::Policy, Role::System]),
                ("drop", &[Role::Policy]),
                ("shaper", &[Role::Shaper]),
            ],
            Self::Marker => &[("kind", &[Role::Marker])],
            Self::Exchange => &[("kind", &[Role::Exchange])],
            Self::Stack => &[("kind", &[Role::Stack])],
        }
    }

    /// Every entry that can be a part of it.
    pub(crate) fn entries(self, catalog: &Catalog) -> impl Iterator<Item = &'static Entry> {
        let fits = move |entry: &&Entry| {
            self.selectors().iter().any(|(_, roles)| roles.contains(&entry.role))
                || (self == Self::Queue && entry.role == Role::Isolation)
        };
        catalog.all().filter(fits)
    }

    fn is_parameter(self, key: &str) -> bool {
        self.selectors().iter().all(|(selector, _)| *selector != key)
    }

    /// Reads a selection and builds it; every error is added to `problems`.
    pub(crate) fn read<T>(
        self,
        catalog: &Catalog,
        item: &Item,
        path: &str,
        build: impl FnOnce(&Selection) -> Result<T, ParamError>,
        problems: &mut Problems,
    ) -> Option<T> {
        let mut refuse = |error: ParamError| {
            // The key of a class is in the class's table, which is in the table of all classes.
            let inner = error.key.split('.').scan(Some(item), |at, key| {
                *at = at.and_then(|item| item.as_table()?.get(key));
                *at
            });
            let inner = inner.last().filter(|_| item.as_table().is_some());
            // A name stands for a table with this `kind`.
            let is_name = item.as_table().is_none() && error.key == "kind";
            let keys = error.key.split('.').filter(|_| !is_name);
            let path = keys.fold(path.to_owned(), |path, key| join(&path, key));
            problems.add(inner.map_or(item.place, |inner| inner.place), path, error.message);
        };
        let (selection, errors) = match self.select(catalog, item) {
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
        build(&selection).map_err(refuse).ok()
    }

    /// The entries that `item` selects and its values, with every value that was refused.
    fn select(self, catalog: &Catalog, item: &Item) -> Result<(Selection, Vec<ParamError>), ParamError> {
        let (noun, example) = (self.noun(), self.example());
        let table = match &item.value {
            Value::Text(kind) => return Ok((self.selection(catalog, kind, None, None)?, Vec::new())),
            Value::Table(table) => table,
            _ => {
                let message =
                    format!("`{item}` is {}, not {noun}; write for example \"{example}\"", item.what());
                return Err(ParamError::new("kind", message));
            }
        };
        let name = |key: &str| match table.get(key).filter(|_| !self.is_parameter(key)) {
            Some(item) => item.as_text().map(Some).ok_or_else(|| {
                ParamError::new(key, format!("`{item}` is {}, not the name of {noun}", item.what()))
            }),
            None => Ok(None),
        };
        let Some(kind) = name("kind")?.or(self.implied()) else {
            let message = format!("missing; write for example kind = \"{example}\"");
            return Err(ParamError::new("kind", message));
        };
        let mut selection = self.selection(catalog, kind, name("drop")?, name("shaper")?)?;
        let errors = self.parameters(table);
        let mut errors: Vec<_> =
            errors.filter_map(|(key, item)| set(&mut selection, key, item).err()).collect();
        if let Some(classes) = table.get(CLASS_KEY).filter(|_| self == Self::Queue) {
            set_classes(&mut selection, classes, &mut errors);
        }
        Ok((selection, errors))
    }

    fn parameters(self, table: &Table) -> impl Iterator<Item = (&str, &Item)> {
        let entries = table.entries.iter().map(|(key, item)| (key.as_str(), item));
        let is_class = move |key| self == Self::Queue && key == CLASS_KEY;
        entries.filter(move |(key, _)| self.is_parameter(key) && !is_class(*key))
    }

    fn selection(
        self,
        catalog: &Catalog,
        kind: &str,
        drop: Option<&str>,
        shaper: Option<&str>,
    ) -> Result<Selection, ParamError> {
        let found = match self {
            Self::Queue => catalog.select(kind, drop, shaper),
            Self::Marker => catalog.select_alone(Role::Marker, kind),
            Self::Exchange => catalog.select_alone(Role::Exchange, kind),
            Self::Stack => catalog.select_alone(Role::Stack, kind),
        };
        found.map_err(|mut error| {
            let shapes = error.key == "shaper";
            let selector = self.selectors().iter().position(|(key, _)| *key == error.key).unwrap_or(0);
            let name = [Some(kind), drop, shaper][selector];
            let fits = |entry: &&Entry| match entry.role {
                Role::Isolation => false,
                role => (role == Role::Shaper) == shapes,
            };
            let candidates = self.entries(catalog).filter(fits);
            if let Some(name) = name.filter(|name| catalog.find(name).is_none()) {
                let guess = did_you_mean(name, candidates.map(|entry| entry.name));
                // The list of known names is long.
                let at = error.message.find(" (known: ").unwrap_or(error.message.len());
                error.message.insert_str(at, &guess);
            }
            error
        })
    }

    /// The selection as TOML with all its parameters, set or not; `None` if it is refused or contains a
    /// sweep.
    pub(crate) fn canonical(self, catalog: &Catalog, item: &Item) -> Option<String> {
        let (item, plans) = plans::taken_out(item);
        let (selection, errors) = self.select(catalog, &item).ok()?;
        if !errors.is_empty() {
            return None;
        }
        let given = item.as_table();
        // A policy as `kind` stays one, so that sweeps keep their labels.
        let kind = match given.map_or(Some(&*item), |table| table.get("kind")) {
            Some(kind) => kind.as_text()?,
            None => self.implied()?,
        };
        let mut parts = vec![format!("kind = {}", quoted(kind))];
        let drop = selection.drop.filter(|drop| drop.name != kind);
        parts.extend(drop.map(|entry| format!("drop = {}", quoted(entry.name))));
        parts.extend(selection.shaper.map(|entry| format!("shaper = {}", quoted(entry.name))));
        let preset = selection.args.preset();
        let says_so = given.is_some_and(|table| table.get(Preset::KEY).is_some());
        if says_so || preset != Preset::Default {
            parts.push(format!("{} = {}", Preset::KEY, quoted(preset.name())));
        }
        for part in selection.entries().flat_map(|entry| settings(selection.args.of(entry), entry)) {
            // Entries of one selection may share a parameter, for example the limit.
            if !parts.contains(&part) {
                parts.push(part);
            }
        }
        parts.extend(plans.map(|plans| format!("{} = {plans}", plans::KEY)));
        if let Some(class) = selection.class()
            && given.is_some_and(|table| table.get(CLASS_KEY).is_some())
        {
            let classes = selection.kind_args().classes(class).map(|NamedClass { name, parent, args }| {
                let parent = parent.map(|parent| format!("{} = {}", PARENT_KEY, quoted(parent)));
                let parts: Vec<_> = parent.into_iter().chain(settings(args, class)).collect();
                format!("{} = {{ {} }}", quoted(name), parts.join(", "))
            });
            let classes = classes.collect::<Vec<_>>().join(", ");
            parts.push(format!("{} = {{ {classes} }}", CLASS_KEY));
        }
        Some(format!("{{ {} }}", parts.join(", ")))
    }
}

/// Every parameter of `entry` that has a value in `args`, as TOML.
fn settings<'a>(args: EntryArgs<'a>, entry: &'static Entry) -> impl Iterator<Item = String> + use<'a> {
    let value = move |param: &Param| Some(format!("{} = {}", param.name, toml(args.value(param.name)?)));
    entry.params.iter().filter_map(value)
}

/// Gives a discipline its classes: a table of tables.
fn set_classes(selection: &mut Selection, item: &Item, errors: &mut Vec<ParamError>) {
    let key = CLASS_KEY;
    let table_of = |key: &str, item: &Item| match item.as_table() {
        Some(table) => Ok(table.clone()),
        None => {
            let message =
                format!("`{item}` is {}, not a table; write for example {key} = {{ .. }}", item.what());
            Err(ParamError::new(key, message))
        }
    };
    let classes = match table_of(key, item) {
        Ok(classes) => classes,
        Err(error) => return errors.push(error),
    };
    for (name, item) in &classes.entries {
        let path = join(key, name);
        if name.is_empty() || name.contains('.') {
            errors.push(ParamError::new(key, format!("`{name}` cannot name a class; leave points out")));
            continue;
        }
        let own = selection.add_class(name).and_then(|()| table_of(&path, item));
        let own = match own {
            Ok(own) => own,
            Err(error) => {
                errors.push(error);
                continue;
            }
        };
        for (key, item) in &own.entries {
            let of_class = join(&path, key);
            let value = match written(&of_class, item) {
                Ok(value) => value,
                Err(error) => {
                    errors.push(error);
                    continue;
                }
            };
            let known = selection.class().into_iter().flat_map(|class| class.params).map(|param| param.name);
            let known: Vec<_> = known.chain([PARENT_KEY]).collect();
            let set = match known.contains(&key.as_str()) {
                true => selection.set_of_class(name, key, value),
                false => Err(unknown(&of_class, key, &known)),
            };
            errors.extend(set.err());
        }
    }
}

/// The value of `key` for a parameter.
fn written<'a>(key: &str, item: &'a Item) -> Result<Written<'a>, ParamError> {
    let message = || format!("`{item}` is {}, not the value of a parameter", item.what());
    item.written().ok_or_else(|| ParamError::new(key, message()))
}

fn set(selection: &mut Selection, key: &str, item: &Item) -> Result<(), ParamError> {
    let value = written(key, item)?;
    let known: Vec<_> = selection.keys().collect();
    if known.contains(&key) { selection.set(key, value) } else { Err(unknown(key, key, &known)) }
}

/// The error for an unknown parameter `name` at `path`.
fn unknown(path: &str, name: &str, known: &[&str]) -> ParamError {
    ParamError::new(path, unknown_key("parameter", name, known.iter().copied()))
}
