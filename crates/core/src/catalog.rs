//! The catalogue: every discipline with its parameters, as data.
//!
//! An [`Entry`] stands at the top of each algorithm's file and is the only home of its name, its parameters,
//! their defaults and where the defaults come from. Scenario files, `list`, `explain` and the JSON schema
//! read the catalogue; nothing repeats it.
//!
//! A loader turns a table such as `{ kind = "drr", drop = "red", limit = "110p", quantum = "1500B" }` into a
//! discipline in three steps: [`Selection::new`] finds the entries, [`Selection::set`] checks and reads each
//! remaining key, and
//! [`DisciplineParams::from_args`](crate::system::DisciplineParams::from_args) checks the whole.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

use crate::drop::{Limit, tail};
use crate::exchange::currency;
use crate::mark::MARKERS;
use crate::system::{POLICIES, SCHEDULERS, SHAPERS, SYSTEMS};
use crate::units::{Bytes, Packets, Rate, Ratio, Span};

/// What an entry can be used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Decides who is served next; combines with any policy. Selected by `kind`.
    Scheduler,
    /// Decides who is dropped; combines with any scheduler. Selected by `drop`, or by `kind` in front of a
    /// FIFO.
    Policy,
    /// Both at once, in a way that cannot be taken apart. Selected by `kind`.
    System,
    /// Delays packets in front of any of the others. Selected by `shaper`.
    Shaper,
    /// Writes labels or colours on the packets of a flow. Selected by a flow's `mark`.
    Marker,
    /// Rewrites the labels of packets between routers. Settings under a link's `exchange`.
    Exchange,
}

/// One discipline.
#[derive(Debug)]
pub struct Entry {
    /// Its name in scenario files.
    pub name: &'static str,
    /// What it can be used as.
    pub role: Role,
    /// One sentence.
    pub summary: &'static str,
    /// The paper or standard.
    pub reference: &'static str,
    /// Time per packet and memory per flow.
    pub cost: &'static str,
    /// Its parameters, in the order in which people look for them.
    pub params: &'static [Param],
}

/// One parameter.
#[derive(Debug)]
pub struct Param {
    /// Its name in scenario files.
    pub name: &'static str,
    /// The paper's symbol, or "–".
    pub symbol: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// The default as a scenario would write it. `None`: nothing unless set; `doc` says what that means.
    pub default: Option<&'static str>,
    /// Where the default comes from.
    pub source: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// What the values of a parameter are, and so how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Packets or bytes: `"50p"`, `"64kB"`.
    Limit,
    /// `"50p"`.
    Packets,
    /// `"1500B"`.
    Bytes,
    /// `"5ms"`.
    Span,
    /// `"10Mbit"`.
    Rate,
    /// `0.02` or `"2%"`.
    Ratio,
    /// A finite number.
    Number,
    /// A whole number, not negative.
    Count,
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the value of the kind of the same name")]
pub enum Value {
    Limit(Limit),
    Packets(Packets),
    Bytes(Bytes),
    Span(Span),
    Rate(Rate),
    Ratio(Ratio),
    Number(f64),
    Count(u64),
    Switch(bool),
    Choice(&'static str),
}

/// Why a parameter was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The key that has to change.
    pub key: String,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl ParamError {
    /// Refuses the value of `key`.
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into() }
    }
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: {}", self.key, self.message)
    }
}
impl core::error::Error for ParamError {}

/// Refuses the value of `key` with `message` unless `holds`.
pub(crate) fn require(holds: bool, key: &str, message: &str) -> Result<(), ParamError> {
    if holds { Ok(()) } else { Err(ParamError::new(key, message)) }
}

impl Param {
    /// A parameter with a default; the arguments are its fields in their order.
    pub(crate) const fn new(
        name: &'static str,
        symbol: &'static str,
        kind: Kind,
        default: &'static str,
        source: &'static str,
        doc: &'static str,
    ) -> Self {
        Self { name, symbol, kind, default: Some(default), source, doc }
    }

    /// Reads a value of this parameter.
    ///
    /// # Errors
    /// When `text` is not a value of its [`kind`](Param::kind), or a buffer of nothing; the message says how
    /// to write one.
    pub fn parse(&self, text: &str) -> Result<Value, ParamError> {
        let value = self.read(text).map_err(|message| ParamError::new(self.name, message))?;
        let is_no_buffer = self.name == tail::LIMIT.name
            && match value {
                Value::Limit(Limit::Packets(limit)) | Value::Packets(limit) => limit == Packets::ZERO,
                Value::Limit(Limit::Bytes(limit)) => limit == Bytes::ZERO,
                _ => false,
            };
        let mend = "a buffer holds at least one packet; write for example \"50p\"";
        require(!is_no_buffer, self.name, mend)?;
        Ok(value)
    }

    fn read(&self, text: &str) -> Result<Value, String> {
        let finite = |number: &f64| number.is_finite();
        Ok(match self.kind {
            Kind::Limit => Value::Limit(unit(text)?),
            Kind::Packets => Value::Packets(unit(text)?),
            Kind::Bytes => Value::Bytes(unit(text)?),
            Kind::Span => Value::Span(unit(text)?),
            Kind::Rate => Value::Rate(unit(text)?),
            Kind::Ratio => Value::Ratio(unit(text)?),
            Kind::Number => text
                .parse()
                .ok()
                .filter(finite)
                .map(Value::Number)
                .ok_or_else(|| format!("`{text}` is not a number; write for example 0.5"))?,
            Kind::Count => Value::Count(
                text.parse().map_err(|_| format!("`{text}` is not a whole number; write for example 64"))?,
            ),
            Kind::Switch => {
                Value::Switch(text.parse().map_err(|_| format!("`{text}` is neither true nor false"))?)
            }
            Kind::Choice(words) => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Choice(word))
                .ok_or_else(|| format!("`{text}` is not one of {}", words.join(", ")))?,
        })
    }
}

fn unit<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

impl Entry {
    /// Its parameter called `name`.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }
}

/// Every entry: disciplines, then markers and exchanges.
pub fn all() -> impl Iterator<Item = &'static Entry> {
    disciplines().chain(MARKERS.iter().map(|known| known.entry)).chain([&currency::ENTRY])
}

/// What a queue can be made of, schedulers first.
pub fn disciplines() -> impl Iterator<Item = &'static Entry> {
    let schedulers = SCHEDULERS.iter().map(|known| known.entry);
    let policies = POLICIES.iter().map(|known| known.entry);
    let systems = SYSTEMS.iter().map(|known| known.entry);
    let shapers = SHAPERS.iter().map(|known| known.entry);
    schedulers.chain(policies).chain(systems).chain(shapers)
}

/// The entry called `name`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    all().find(|entry| entry.name == name)
}

/// Values by parameter. What is not set has its default.
#[derive(Clone, Debug, Default)]
pub struct Args(BTreeMap<&'static str, Value>);

/// The values of one entry's parameters.
#[derive(Clone, Copy, Debug)]
pub struct EntryArgs<'a> {
    args: &'a Args,
    entry: &'static Entry,
}

impl Args {
    /// The values of the parameters of `entry`.
    #[must_use]
    pub const fn of(&self, entry: &'static Entry) -> EntryArgs<'_> {
        EntryArgs { args: self, entry }
    }
}

impl EntryArgs<'_> {
    /// The value of `name`: as set, else the default, else none.
    ///
    /// # Panics
    /// When the entry has no such parameter or its default does not parse: a slip in the algorithm's own
    /// file, which the test that builds every entry finds.
    fn value(&self, name: &str) -> Option<Value> {
        let Some(param) = self.entry.param(name) else {
            unreachable!("{} has no parameter `{name}`", self.entry.name)
        };
        let default = || match param.parse(param.default?) {
            Ok(value) => Some(value),
            Err(error) => unreachable!("default of {}: {error}", self.entry.name),
        };
        self.args.0.get(param.name).copied().or_else(default)
    }
}

/// One getter for parameters with a default and one for those without, per kind.
macro_rules! getters {
    ($($required:ident, $optional:ident: $kind:ident -> $type:ty;)*) => {
        #[expect(missing_docs, reason = "each reads the parameter of the kind it is named after")]
        impl EntryArgs<'_> {
            $(
                #[must_use]
                pub fn $optional(&self, name: &str) -> Option<$type> {
                    match self.value(name)? {
                        Value::$kind(value) => Some(value),
                        other => unreachable!("`{name}` of {} is {other:?}", self.entry.name),
                    }
                }
                #[must_use]
                pub fn $required(&self, name: &str) -> $type {
                    match self.$optional(name) {
                        Some(value) => value,
                        None => unreachable!("`{name}` of {} has no default", self.entry.name),
                    }
                }
            )*
        }
    };
}
getters! {
    limit, limit_if_set: Limit -> Limit;
    packets, packets_if_set: Packets -> Packets;
    bytes, bytes_if_set: Bytes -> Bytes;
    span, span_if_set: Span -> Span;
    rate, rate_if_set: Rate -> Rate;
    ratio, ratio_if_set: Ratio -> Ratio;
    number, number_if_set: Number -> f64;
    count, count_if_set: Count -> u64;
    switch, switch_if_set: Switch -> bool;
    choice, choice_if_set: Choice -> &'static str;
}

/// The entries that one scenario table asks for, and the values it gives them.
#[derive(Clone, Debug)]
pub struct Selection {
    /// The scheduler, system, marker or exchange.
    pub kind: &'static Entry,
    /// The buffer policy; none beside a system.
    pub drop: Option<&'static Entry>,
    /// The shaper in front, if any.
    pub shaper: Option<&'static Entry>,
    /// The values set so far.
    pub args: Args,
}

impl Selection {
    /// Finds the entries for the keys `kind`, `drop` and `shaper`.
    ///
    /// A policy as `kind` is that policy in front of a FIFO. A scheduler without `drop` has the policy that
    /// its paper or common practice gives it.
    ///
    /// # Errors
    /// When a name is unknown or does not fit its key.
    pub fn new(kind: &str, drop: Option<&str>, shaper: Option<&str>) -> Result<Self, ParamError> {
        let entry = known("kind", kind, &[Role::Scheduler, Role::Policy, Role::System])?;
        let drop = drop.map(|name| known("drop", name, &[Role::Policy])).transpose()?;
        let shaper = shaper.map(|name| known("shaper", name, &[Role::Shaper])).transpose()?;
        let refuse = |why| Err(ParamError::new("drop", format!("`{kind}` {why}; leave `drop` out")));
        let (kind, drop) = match entry.role {
            Role::System if drop.is_some() => return refuse("has its own buffer policy"),
            Role::System => (entry, None),
            Role::Policy if drop.is_some() => {
                return refuse("is a buffer policy already, in front of a FIFO");
            }
            Role::Policy => (SCHEDULERS[0].entry, Some(entry)),
            Role::Scheduler | Role::Shaper | Role::Marker | Role::Exchange => {
                (entry, drop.or_else(|| default_policy(entry)))
            }
        };
        Ok(Self { kind, drop, shaper, args: Args::default() })
    }

    /// The entry called `name`, if it has this role, by itself.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(role: Role, name: &str) -> Result<Self, ParamError> {
        Ok(Self { kind: known("kind", name, &[role])?, drop: None, shaper: None, args: Args::default() })
    }

    /// The entries selected.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        [Some(self.kind), self.drop, self.shaper].into_iter().flatten()
    }

    /// Sets `key` to the value that `text` stands for.
    ///
    /// # Errors
    /// When none of the entries has such a parameter, or `text` is not a value of it.
    pub fn set(&mut self, key: &str, text: &str) -> Result<(), ParamError> {
        let Some(param) = self.entries().find_map(|entry| entry.param(key)) else {
            let names: Vec<_> =
                self.entries().flat_map(|entry| entry.params).map(|param| param.name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(ParamError::new(key, format!("unknown parameter (known here: {known})")));
        };
        self.args.0.insert(param.name, param.parse(text)?);
        Ok(())
    }
}

fn known(key: &str, name: &str, roles: &[Role]) -> Result<&'static Entry, ParamError> {
    find(name).filter(|entry| roles.contains(&entry.role)).ok_or_else(|| {
        let names: Vec<_> =
            all().filter(|entry| roles.contains(&entry.role)).map(|entry| entry.name).collect();
        ParamError::new(key, format!("`{name}` is not known here (known: {})", names.join(", ")))
    })
}

fn default_policy(scheduler: &Entry) -> Option<&'static Entry> {
    let known = SCHEDULERS.iter().find(|known| known.entry.name == scheduler.name)?;
    Some(known.default_policy)
}
