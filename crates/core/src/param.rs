//! The description of what users can choose: parameters of disciplines and transports, and keys of tables.
//!
//! An [`Entry`] stands at the top of each algorithm's file and is the only home of its name, its parameters,
//! their defaults and where the defaults come from. The [catalogue](crate::system::catalog) lists the entries.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::str::FromStr;

pub use crate::flow_setting::Heeds;
use crate::limit::{BufferSize, Limit, Threshold};
use crate::units::{Bytes, Packets, Rate, Ratio, Span};

mod declare;
mod kind;
mod traits;

pub use declare::{ByName, Setting, concat, read, replace, total};
pub use kind::{Kind, Range, Value, Variant, Written};
pub use traits::{GoesBy, Inside, Shares, Traits};

/// The role of an entry in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Decides which flow is served next; combines with any policy. Selected by `kind`.
    Scheduler,
    /// Decides which packets are dropped; combines with any scheduler. Selected by `drop`, or by `kind` in
    /// front of a FIFO.
    Policy,
    /// Scheduler and policy in one, which cannot be separated. Selected by `kind`.
    System,
    /// Delays packets in front of another discipline. Selected by `shaper`.
    Shaper,
    /// Shows hosts to a discipline as its flows. Selected by a parameter of this name.
    Isolation,
    /// A class of a classful discipline. A table under its `class`.
    Class,
    /// Writes labels or colours on the packets of a flow. Selected by a flow's `mark`.
    Marker,
    /// Rewrites the labels of packets between routers. Settings under a link's `exchange`.
    Exchange,
    /// A transport stack from outside. Selected by a flow's `transport`.
    Stack,
}

/// One discipline.
#[derive(Debug)]
pub struct Entry {
    /// The name in scenario files.
    pub name: &'static str,
    /// The role.
    pub role: Role,
    /// A summary in one sentence.
    pub summary: &'static str,
    /// The paper or standard.
    pub reference: &'static str,
    /// Time per packet and memory per flow.
    pub cost: &'static str,
    /// The parameters, the most important first.
    pub params: &'static [Param],
    /// The properties that hold with any values of the parameters.
    pub traits: Traits,
}

/// One parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// The name in scenario files.
    pub name: &'static str,
    /// The paper's symbol, or "–".
    pub symbol: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The values that are allowed.
    pub range: Range,
    /// The default as a scenario would write it. `None`: no value unless set; `doc` states the effect.
    pub default: Option<&'static str>,
    /// The value with [`Preset::Paper`].
    pub paper: Paper,
    /// The source of the default.
    pub source: &'static str,
    /// The effect of the parameter, for users.
    pub doc: &'static str,
}

/// The value that a parameter has with [`Preset::Paper`] unless it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// The default of the parameter.
    AsDefault,
    /// A value of its own, as a scenario would write it.
    Is(&'static str),
    /// No value: the paper has no such mechanism.
    Unset,
}

/// The values of parameters that are not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// The defaults: the best known values, also where the paper has no such mechanism.
    #[default]
    Default,
    /// The values of the paper, to the letter.
    Paper,
}

impl Preset {
    /// The key in a scenario's table that selects a preset.
    pub const KEY: &str = "preset";
    /// The description of the key for users.
    pub const DOC: &str = "Which values the parameters have that are not set: the defaults, or the paper's.";
    /// The names of the presets.
    pub const NAMES: [&str; 2] = ["default", "paper"];

    /// The name of the preset.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

impl FromStr for Preset {
    type Err = ParamError;
    fn from_str(text: &str) -> Result<Self, ParamError> {
        [Self::Default, Self::Paper].into_iter().find(|preset| preset.name() == text).ok_or_else(|| {
            ParamError::new(Self::KEY, format!("`{text}` is not one of {}", Self::NAMES.join(", ")))
        })
    }
}

/// The reason why a parameter is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The key that has to change.
    pub key: String,
    /// The error and how to mend it.
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

/// The error for an unknown key, called `noun`: it lists the `known` keys; `guess` may name the one that was
/// meant.
#[must_use]
pub fn unknown_key<'a>(noun: &str, guess: &str, known: impl Iterator<Item = &'a str>) -> String {
    format!("unknown {noun}{guess}; known here: {}", known.collect::<Vec<_>>().join(", "))
}

/// Refuses the value of `key` with `message` unless `holds`.
pub(crate) fn require(holds: bool, key: &str, message: &str) -> Result<(), ParamError> {
    if holds { Ok(()) } else { Err(ParamError::new(key, message)) }
}

/// The key of a queue's table that holds its classes, by name.
pub const CLASS_KEY: &str = "class";
/// The key of a class that names its parent.
pub const PARENT_KEY: &str = "parent";

/// The [`source`](Param::source) of a parameter without a default that every scenario has to set.
pub const MUST_BE_SET: &str = "must be set";

/// The size of the buffer, a parameter of every policy. Unless set, it follows the rate of the link by
/// [`LinkLimit`](crate::limit::LinkLimit). All disciplines share this default, so that comparisons by name
/// use one size.
pub const LIMIT: Param = Param {
    name: "limit",
    symbol: "B",
    kind: Kind::Limit,
    range: Range::Any,
    default: None,
    paper: Paper::Is("50p"),
    source: "chosen: a round trip of most paths, in which TCP answers; a fixed size is too short on fast links",
    doc: "Size of the buffer, without the packet in transmission; if not set 100 ms of the link, at least 96 kB.",
};

impl Param {
    /// A parameter with a default; the arguments are its fields in their order.
    #[must_use]
    pub const fn new(
        name: &'static str,
        symbol: &'static str,
        kind: Kind,
        default: &'static str,
        source: &'static str,
        doc: &'static str,
    ) -> Self {
        let paper = Paper::AsDefault;
        Self { name, symbol, kind, range: Range::Any, default: Some(default), paper, source, doc }
    }

    /// Sets the value of the paper.
    #[must_use]
    pub const fn in_paper(self, value: &'static str) -> Self {
        Self { paper: Paper::Is(value), ..self }
    }

    /// The value with `preset`, as a scenario would write it, unless the parameter is set.
    #[must_use]
    pub const fn preset(&self, preset: Preset) -> Option<&'static str> {
        match (preset, self.paper) {
            (Preset::Default, _) | (Preset::Paper, Paper::AsDefault) => self.default,
            (Preset::Paper, Paper::Is(value)) => Some(value),
            (Preset::Paper, Paper::Unset) => None,
        }
    }

    /// Whether every scenario that uses the entry has to set it.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.default.is_none() && self.source == MUST_BE_SET
    }

    /// Reads a value of this parameter; a name of a discipline is read by [`Catalog::parse`](crate::system::Catalog::parse) only.
    ///
    /// When `written` is not a value of its [`kind`](Param::kind), or is a buffer of size zero; the message
    /// says how to write one.
    pub fn parse<'a>(&self, written: impl Into<Written<'a>>) -> Result<Value, ParamError> {
        let written = written.into();
        let refuse = |message| ParamError::new(self.name, message);
        let value = self.kind.read(written).map_err(refuse)?;
        if self.range != Range::Any {
            self.range.check(self.kind, value, &written.to_string()).map_err(refuse)?;
        }
        let is_no_buffer = self.name == LIMIT.name
            && match value {
                Value::Limit(BufferSize::Fixed(Limit::Packets(limit))) | Value::Packets(limit) => {
                    limit == Packets::ZERO
                }
                Value::Limit(BufferSize::Fixed(Limit::Bytes(limit))) => limit == Bytes::ZERO,
                Value::Limit(BufferSize::Time(time)) => time == Span::ZERO,
                _ => false,
            };
        let message = "a buffer holds at least one packet; write for example \"50p\"";
        require(!is_no_buffer, self.name, message)?;
        Ok(value)
    }
}

impl Entry {
    /// The parameter called `name`.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }
}

/// An entry with the function that reads its parameters.
#[derive(Debug)]
pub struct Known<T: 'static> {
    /// The entry.
    pub entry: &'static Entry,
    /// Reads and checks the parameters.
    pub read: fn(&EntryArgs<'_>) -> Result<T, ParamError>,
    /// The default buffer policy of a scheduler; none for other roles.
    pub default_policy: Option<&'static Entry>,
}

/// The parameters of an algorithm that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoParams;

impl NoParams {
    /// Reads the parameters from the catalogue's values.
    ///
    /// # Errors
    /// Never.
    pub const fn from_args(_args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        Ok(Self)
    }
}

/// Values by parameter. A parameter that is not set has the value of the preset.
#[derive(Clone, Debug, Default)]
pub struct Args {
    preset: Preset,
    set: BTreeMap<&'static str, Value>,
    classes: Vec<ClassArgs>,
    /// The places of the classes, by name.
    places: BTreeMap<String, usize>,
}

/// A class, by its name, and the values of its parameters.
#[derive(Clone, Debug)]
struct ClassArgs {
    name: String,
    parent: Option<String>,
    args: Args,
}

/// A class as a scenario's table declares it.
#[derive(Clone, Copy, Debug)]
pub struct NamedClass<'a> {
    /// The name.
    pub name: &'a str,
    /// The name of the parent; none for a root.
    pub parent: Option<&'a str>,
    /// The values of the parameters.
    pub args: EntryArgs<'a>,
}

/// The values of one entry's parameters, or of a table's.
#[derive(Clone, Copy, Debug)]
pub struct EntryArgs<'a> {
    args: &'a Args,
    /// The name of the entry; a table has none.
    name: &'static str,
    params: &'static [Param],
}

impl Args {
    /// A set without values of its own: `preset` applies.
    #[must_use]
    pub const fn of_preset(preset: Preset) -> Self {
        Self { preset, set: BTreeMap::new(), classes: Vec::new(), places: BTreeMap::new() }
    }

    /// The values of parameters that are not set.
    #[must_use]
    pub const fn preset(&self) -> Preset {
        self.preset
    }

    /// Changes the preset. Values that are set stay.
    pub(crate) fn set_preset(&mut self, preset: Preset) {
        self.preset = preset;
        self.classes.iter_mut().for_each(|class| class.args.preset = preset);
    }

    /// The class called `name`, which is added if it is new.
    fn class(&mut self, name: &str) -> &mut ClassArgs {
        let at = match self.places.get(name) {
            Some(at) => *at,
            None => {
                let args = Self::of_preset(self.preset);
                self.places.insert(name.to_owned(), self.classes.len());
                self.classes.push(ClassArgs { name: name.to_owned(), parent: None, args });
                self.classes.len() - 1
            }
        };
        &mut self.classes[at]
    }

    /// Adds a class called `name`.
    pub(crate) fn add_class(&mut self, name: &str) {
        self.class(name);
    }

    /// Sets the parent of the class `name`.
    pub(crate) fn set_parent(&mut self, name: &str, parent: &str) {
        self.class(name).parent = Some(parent.to_owned());
    }

    /// Sets `param` of the class `name`.
    pub(crate) fn set_of_class(&mut self, name: &str, param: &'static Param, value: Value) {
        self.class(name).args.put(param, value);
    }

    /// Converts buffer sizes in bandwidth-delay products to times, with `round_trip` as the delay.
    pub fn size_by(&mut self, round_trip: Span) {
        let classes = self.classes.iter_mut().flat_map(|class| class.args.set.values_mut());
        for value in self.set.values_mut().chain(classes) {
            if let Value::Bdp(times) = *value {
                *value =
                    Value::Limit(BufferSize::Time(Span::from_secs_f64(round_trip.as_secs_f64() * times)));
            }
        }
    }

    /// The key of a buffer size in bandwidth-delay products, if there is one.
    #[must_use]
    pub fn in_bdp(&self) -> Option<String> {
        let key = |args: &Self| {
            args.set.iter().find(|(_, value)| matches!(value, Value::Bdp(_))).map(|(key, _)| *key)
        };
        let of_class = |class: &ClassArgs| Some(format!("{CLASS_KEY}.{}.{}", class.name, key(&class.args)?));
        key(self).map(ToOwned::to_owned).or_else(|| self.classes.iter().find_map(of_class))
    }

    /// Sets `param` to a value of the kind of `param`.
    pub fn put(&mut self, param: &'static Param, value: Value) {
        self.set.insert(param.name, value);
    }

    /// The values of the parameters of `entry`.
    #[must_use]
    pub const fn of(&self, entry: &'static Entry) -> EntryArgs<'_> {
        EntryArgs { args: self, name: entry.name, params: entry.params }
    }

    /// The values of the parameters of a table.
    #[must_use]
    pub const fn of_table(&self, params: &'static [Param]) -> EntryArgs<'_> {
        EntryArgs { args: self, name: "", params }
    }
}

/// Two are equal if the parameters have the same values, classes aside.
impl PartialEq for EntryArgs<'_> {
    fn eq(&self, other: &Self) -> bool {
        let same = |(own, others): (&Param, &Param)| {
            own.name == others.name && self.value(own.name) == other.value(own.name)
        };
        self.params.len() == other.params.len() && self.params.iter().zip(other.params).all(same)
    }
}

impl<'a> EntryArgs<'a> {
    /// The classes, in the order of the table, as classes of `entry`.
    pub fn classes(self, entry: &'static Entry) -> impl Iterator<Item = NamedClass<'a>> {
        self.args.classes.iter().map(move |class| NamedClass {
            name: &class.name,
            parent: class.parent.as_deref(),
            args: class.args.of(entry),
        })
    }
}

impl EntryArgs<'_> {
    /// The defaults of `entry`.
    #[must_use]
    pub const fn defaults(entry: &'static Entry) -> Self {
        static UNSET: Args = Args::of_preset(Preset::Default);
        UNSET.of(entry)
    }

    /// The values of the paper for `entry`.
    #[must_use]
    pub const fn of_paper(entry: &'static Entry) -> Self {
        static UNSET: Args = Args::of_preset(Preset::Paper);
        UNSET.of(entry)
    }

    /// Whether these are the values of `entry`.
    #[must_use]
    pub fn is_of(&self, entry: &Entry) -> bool {
        self.name == entry.name
    }

    fn param(&self, name: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.name == name)
    }

    /// Whether the entry has a parameter `name`.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.param(name).is_some()
    }

    /// Whether `name` is set to a value that differs from the preset's.
    pub(crate) fn is_changed(&self, name: &str) -> bool {
        let unset = self.param(name).and_then(|param| self.unset(param));
        self.args.set.contains_key(name) && self.value(name) != unset
    }

    /// Refuses a parameter that is set to another value than the preset's where it has no effect. Each item
    /// holds the name, whether the parameter has no effect with the values of the others, and a reason that
    /// says what to write.
    pub(crate) fn refuse_idle(&self, params: &[(&str, bool, &str)]) -> Result<(), ParamError> {
        match params.iter().find(|(name, is_idle, _)| *is_idle && self.is_changed(name)) {
            Some((name, _, message)) => Err(ParamError::new(name, *message)),
            None => Ok(()),
        }
    }

    /// The value of `name`: as set, else the preset's, else none.
    ///
    /// # Panics
    /// When the entry has no such parameter or its preset value does not parse: an error in the algorithm's
    /// own file, which the test that builds every entry finds.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        let Some(param) = self.param(name) else { unreachable!("{} has no parameter `{name}`", self.name) };
        self.args.set.get(param.name).copied().or_else(|| self.unset(param))
    }

    /// The value of a parameter that is not set: the preset's, else none.
    fn unset(&self, param: &Param) -> Option<Value> {
        let text = param.preset(self.args.preset)?;
        if let Kind::Discipline(_) = param.kind {
            return Some(Value::Choice(text));
        }
        match param.parse(text) {
            Ok(value) => Some(value),
            Err(error) => unreachable!("{} of {}: {error}", self.args.preset.name(), self.name),
        }
    }
}

/// Getters by kind: one for parameters with a default, and one for parameters without, where a kind has such
/// parameters.
macro_rules! getters {
    ($($required:ident $(, $optional:ident)?: $kind:ident -> $type:ty;)*) => {
        impl EntryArgs<'_> {
            $(
                $(
                    #[doc = concat!("The value of `name`, of kind [`Kind::", stringify!($kind), "`]: as set, else its default, else none.")]
                    #[must_use]
                    pub fn $optional(&self, name: &str) -> Option<$type> {
                        self.value(name).is_some().then(|| self.$required(name))
                    }
                )?
                #[doc = concat!("The value of `name`, of kind [`Kind::", stringify!($kind), "`], which has a default.")]
                #[must_use]
                pub fn $required(&self, name: &str) -> $type {
                    match self.value(name) {
                        Some(Value::$kind(value)) => value,
                        Some(other) => unreachable!("`{name}` of {} is {other:?}", self.name),
                        None => unreachable!("`{name}` of {} has no default", self.name),
                    }
                }
            )*
        }
    };
}
getters! {
    limit, limit_if_set: Limit -> BufferSize;
    packets: Packets -> Packets;
    threshold: Threshold -> Threshold;
    bytes, bytes_if_set: Bytes -> Bytes;
    span: Span -> Span;
    rate, rate_if_set: Rate -> Rate;
    ratio: Ratio -> Ratio;
    number: Number -> f64;
    count, count_if_set: Count -> u64;
    switch: Switch -> bool;
    choice: Choice -> &'static str;
}
