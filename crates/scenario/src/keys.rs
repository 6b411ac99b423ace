//! Keys as data: what a table may hold, and the one walker that checks a table against it.
//!
//! The lists themselves are in [`crate::tables`]. The loader, the JSON schema and the canonical text all read
//! them.

mod amount;

use std::rc::Rc;

use apportion_core::units::{Bytes, Rate, Ratio, Span, TicketRate, Time};

use crate::problem::{Place, Problems, did_you_mean};
use crate::selection::Part;
use crate::text::{Item, Table, Value, join, quoted};

pub(crate) use amount::{Amount, Quantity, Range, Unit};

/// One key of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    pub name: &'static str,
    pub kind: Kind,
    pub need: Need,
    pub doc: &'static str,
}

/// What happens when a key is absent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Need {
    /// The scenario is refused.
    Required,
    /// Nothing is set; the key's documentation says what that means.
    Optional,
    /// This value, written without the quotes of TOML.
    Default(&'static str),
}

/// What the values of a key are.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Any string.
    Text,
    /// A name with formulas in braces, such as `"l{i}"`.
    Pattern,
    /// A string, or a whole number, of a form that its reader knows; written for example like this.
    Form(&'static str),
    /// `true` or `false`.
    Flag,
    /// `true`, `false`, or a list of strings of a form that its reader knows.
    FlagOrForms,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A number with its unit, or a formula of `i` where there is an `i`.
    Amount(Unit, Range),
    /// A list of strings.
    Names,
    /// A list of whole numbers from 1.
    Ordinals,
    /// A table with these keys.
    Table(&'static [Key]),
    /// `false`, or a table with these keys.
    TableOrFalse(&'static [Key]),
    /// A number with its unit, or a formula of `i` where there is an `i`; or a table with these keys.
    AmountOrTable(Unit, Range, &'static [Key]),
    /// A table of tables with these keys, each under a name.
    Map(&'static [Key]),
    /// A list of tables with these keys.
    Tables(&'static [Key]),
    /// A table whose key `kind` names one of these; or just the name as a string.
    Variants(&'static [Variant]),
    /// A part that the catalogue describes: a queue discipline, a marker or an exchange.
    Part(Part),
    /// A TCP profile with its parameters.
    Tcp,
    /// A congestion control of QUIC with its parameters.
    Quic,
    /// What another key of the scenario would take.
    Any,
}

/// One of several forms of a table.
#[derive(Debug)]
pub(crate) struct Variant {
    pub name: &'static str,
    pub doc: &'static str,
    pub keys: &'static [Key],
}

/// A table that was checked against its keys.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    /// The key path of the table.
    pub path: String,
    /// The place of the table in the file.
    pub place: Place,
    found: Vec<Found<'a>>,
}

#[derive(Clone, Debug)]
struct Found<'a> {
    key: &'static Key,
    item: Option<&'a Item>,
    amount: Option<Amount>,
    /// The table that it comes from, where that is another one.
    lent_by: Option<Rc<str>>,
}

/// Checks `item`, which must be a table, against `keys`; every error is added to `problems`.
pub(crate) fn walk<'a>(
    item: &'a Item,
    path: &str,
    keys: &'static [Key],
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
    let names = || variants.iter().map(|variant| variant.name);
    let (table, kind) = match &item.value {
        Value::Table(table) => (table, table.get("kind")),
        _ => (&EMPTY, Some(item)),
    };
    let listed = names().collect::<Vec<_>>().join(", ");
    let Some(kind) = kind else {
        let example = format!("missing; write for example kind = \"{}\" (known: {listed})", variants[0].name);
        problems.add(item.place, join(path, "kind"), example);
        return None;
    };
    let Some(variant) = variants.iter().find(|variant| kind.as_text() == Some(variant.name)) else {
        let name = kind.plain();
        let guess = did_you_mean(&name, names());
        problems.add(kind.place, path, format!("`{name}` is not known here{guess}; known: {listed}"));
        return None;
    };
    let known = |name: &str| name == "kind" || variant.keys.iter().any(|key| key.name == name);
    refuse_unknown(table, path, variant.keys, &known, problems);
    Some((variant, read_keys(table, item.place, path, variant.keys, indexed, problems)))
}

/// Checks the whole file.
pub(crate) fn walk_root<'a>(table: &'a Table, keys: &'static [Key], problems: &mut Problems) -> Fields<'a> {
    walk_table(table, Place::Line(1), "", keys, false, problems)
}

fn walk_table<'a>(
    table: &'a Table,
    place: Place,
    path: &str,
    keys: &'static [Key],
    indexed: bool,
    problems: &mut Problems,
) -> Fields<'a> {
    refuse_unknown(table, path, keys, &|name| keys.iter().any(|key| key.name == name), problems);
    read_keys(table, place, path, keys, indexed, problems)
}

fn refuse_unknown(
    table: &Table,
    path: &str,
    keys: &'static [Key],
    is_known: &dyn Fn(&str) -> bool,
    problems: &mut Problems,
) {
    for (name, item) in table.entries.iter().filter(|(name, _)| !is_known(name)) {
        let names = || keys.iter().map(|key| key.name);
        let guess = did_you_mean(name, names());
        let known = names().collect::<Vec<_>>().join(", ");
        problems.add(item.place, join(path, name), format!("unknown key{guess}; known here: {known}"));
    }
}

fn read_keys<'a>(
    table: &'a Table,
    place: Place,
    path: &str,
    keys: &'static [Key],
    indexed: bool,
    problems: &mut Problems,
) -> Fields<'a> {
    let found = keys.iter().map(|key| {
        let item = table.get(key.name);
        let amount = check(key, item, place, path, indexed, problems);
        Found { key, item, amount, lent_by: None }
    });
    Fields { path: path.to_owned(), place, found: found.collect() }
}

/// Checks one key: that it is there if it must be, and what it holds as far as this level goes.
fn check(
    key: &'static Key,
    item: Option<&Item>,
    place: Place,
    path: &str,
    indexed: bool,
    problems: &mut Problems,
) -> Option<Amount> {
    let path = || join(path, key.name);
    let Some(item) = item else {
        return match (key.kind, key.need) {
            (_, Need::Required) => {
                let example = key.kind.example();
                problems.add(place, path(), format!("missing; write for example {} = {example}", key.name));
                None
            }
            // Defaults are constants of the tables; a test reads every one.
            (Kind::Amount(unit, range) | Kind::AmountOrTable(unit, range, _), Need::Default(text)) => {
                Amount::read(&Item::text(text, place), unit, range, false).ok()
            }
            _ => None,
        };
    };
    match key.kind {
        Kind::AmountOrTable(..) if item.as_table().is_some() => (),
        Kind::Amount(unit, range) | Kind::AmountOrTable(unit, range, _) => {
            match Amount::read(item, unit, range, indexed) {
                Ok(amount) => return Some(amount),
                Err(message) => problems.add(item.place, path(), message),
            }
        }
        Kind::Text | Kind::Pattern if item.as_text().is_none_or(str::is_empty) => {
            let message =
                format!("`{}` is not a name; write for example {}", item.plain(), key.kind.example());
            problems.add(item.place, path(), message);
        }
        Kind::Flag if !matches!(item.value, Value::Flag(_)) => {
            problems.add(item.place, path(), format!("`{}` is neither true nor false", item.plain()));
        }
        Kind::FlagOrForms if !matches!(item.value, Value::Flag(_) | Value::List(_)) => {
            let message = format!("`{}` is neither true nor false nor a list", item.plain());
            problems.add(item.place, path(), message);
        }
        Kind::Word(words) if !item.as_text().is_some_and(|text| words.contains(&text)) => {
            let guess = did_you_mean(&item.plain(), words.iter().copied());
            let known = words.join(", ");
            problems.add(
                item.place,
                path(),
                format!("`{}` is not known here{guess}; known: {known}", item.plain()),
            );
        }
        _ => (),
    }
    None
}

impl Kind {
    /// A value to show, as TOML.
    pub(crate) fn example(self) -> String {
        match self {
            Self::Text | Self::Pattern | Self::Any => "\"name\"".to_owned(),
            Self::Form(example) => example.to_owned(),
            Self::Flag | Self::FlagOrForms => "true".to_owned(),
            Self::Word(words) => quoted(words.first().unwrap_or(&"")),
            Self::Amount(unit, _) | Self::AmountOrTable(unit, ..) => unit.example().to_owned(),
            Self::Names => "[\"a\", \"b\"]".to_owned(),
            Self::Ordinals => "[20, 22]".to_owned(),
            Self::Table(keys) => {
                let required = keys.iter().filter(|key| key.need == Need::Required);
                let required = required.map(|key| format!("{} = {}", key.name, key.kind.example()));
                let required = required.collect::<Vec<_>>().join(", ");
                if required.is_empty() { "{ }".to_owned() } else { format!("{{ {required} }}") }
            }
            Self::TableOrFalse(_) | Self::Map(_) => "{ }".to_owned(),
            Self::Tables(_) => "[{ }]".to_owned(),
            Self::Variants(variants) => quoted(variants.first().map_or("", |variant| variant.name)),
            Self::Part(Part::Exchange) => "{ }".to_owned(),
            Self::Part(part) => quoted(part.example()),
            Self::Tcp => "\"rfc\"".to_owned(),
            Self::Quic => "\"cubic\"".to_owned(),
        }
    }
}

impl<'a> Fields<'a> {
    fn found(&self, name: &str) -> Option<&Found<'a>> {
        self.found.iter().find(|found| found.key.name == name)
    }

    /// Takes from `defaults` what is not set here. Messages about it name where it was written.
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

    /// The value as written; `None` if absent.
    pub(crate) fn item(&self, name: &str) -> Option<&'a Item> {
        self.found(name)?.item
    }

    /// Whether the value comes from the defaults.
    pub(crate) fn is_lent(&self, name: &str) -> bool {
        self.found(name).is_some_and(|found| found.lent_by.is_some())
    }

    /// What `name` takes.
    pub(crate) fn kind(&self, name: &str) -> Option<Kind> {
        self.found(name).map(|found| found.key.kind)
    }

    /// Where `name` was written, or else its table.
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

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        let found = self.found(name)?;
        match (found.item, found.key.need) {
            (Some(item), _) => item.as_text(),
            (None, Need::Default(text)) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        let found = self.found(name)?;
        match (found.item.map(|item| &item.value), found.key.need) {
            (Some(Value::Flag(flag)), _) => Some(*flag),
            (None, Need::Default(text)) => Some(text == "true"),
            _ => None,
        }
    }

    /// What `read` makes of a [`Kind::Form`]; `None` if absent or refused.
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

    /// The amount of `name` for member `i`; `None` if it is absent or was refused.
    pub(crate) fn amount(&self, name: &str, i: u64, problems: &mut Problems) -> Option<Quantity> {
        match self.found(name)?.amount.as_ref()?.at(i) {
            Ok(quantity) => Some(quantity),
            Err(message) => {
                self.refuse(name, message, problems);
                None
            }
        }
    }

    fn whole(&self, name: &str, i: u64, problems: &mut Problems) -> Option<u64> {
        match self.amount(name, i, problems)? {
            Quantity::Whole(n) => Some(n),
            Quantity::Real(_) => None,
        }
    }

    fn real(&self, name: &str, i: u64, problems: &mut Problems) -> Option<f64> {
        match self.amount(name, i, problems)? {
            Quantity::Whole(_) => None,
            Quantity::Real(x) => Some(x),
        }
    }
}

/// A getter per type: `None` if the key is absent without a default, or was refused.
macro_rules! getters {
    ($($name:ident: $via:ident -> $type:ty = $make:expr;)*) => {
        impl Fields<'_> {
            $(pub(crate) fn $name(&self, name: &str, i: u64, problems: &mut Problems) -> Option<$type> {
                self.$via(name, i, problems).map($make)
            })*
        }
    };
}
getters! {
    time: whole -> Time = Time::from_nanos;
    span: whole -> Span = Span::from_nanos;
    rate: whole -> Rate = Rate::from_bit;
    bytes: whole -> Bytes = Bytes::new;
    count: whole -> u64 = |n| n;
    ratio: real -> Ratio = Ratio::clamped;
    number: real -> f64 = |x| x;
}

impl Fields<'_> {
    /// Tickets per second.
    pub(crate) fn tickets(&self, name: &str, i: u64, problems: &mut Problems) -> Option<TicketRate> {
        self.number(name, i, problems).and_then(TicketRate::new)
    }
}
