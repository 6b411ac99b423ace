//! The vocabulary in which a discipline describes its parameters.
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

use crate::limit::{Limit, Threshold};

mod declare;

pub use declare::{Setting, concat, read, replace, total};

use crate::units::{Bytes, MeanPackets, Packets, Rate, Ratio, Span, Time};

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
    /// Shows hosts to a discipline as its flows. Selected by a parameter of the same name.
    Isolation,
    /// A class of a discipline that has classes. A table under its `class`.
    Class,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name in scenario files.
    pub name: &'static str,
    /// The paper's symbol, or "–".
    pub symbol: &'static str,
    /// What its values are.
    pub kind: Kind,
    /// Which of them are allowed.
    pub range: Range,
    /// The default as a scenario would write it. `None`: nothing unless set; `doc` says what that means.
    pub default: Option<&'static str>,
    /// The value with [`Preset::Paper`].
    pub paper: Paper,
    /// Where the default comes from.
    pub source: &'static str,
    /// What it does.
    pub doc: &'static str,
}

/// The value that a parameter has with [`Preset::Paper`] unless it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Its default.
    AsDefault,
    /// This, as a scenario would write it.
    Is(&'static str),
    /// None: the paper has nothing of the kind.
    Unset,
}

/// Which values the parameters have that are not set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// Their defaults: the best that is known, also where the paper has no such mechanism.
    #[default]
    Default,
    /// What the paper has, to the letter.
    Paper,
}

impl Preset {
    /// The key of a scenario's table that selects one.
    pub const KEY: &str = "preset";
    /// What it does, for people.
    pub const DOC: &str = "Which values the parameters have that are not set: the defaults, or the paper's.";
    /// Their names.
    pub const NAMES: [&str; 2] = ["default", "paper"];

    /// Its name.
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

/// What the values of a parameter are, and so how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Packets or bytes: `"50p"`, `"64kB"`.
    Limit,
    /// `"50p"`.
    Packets,
    /// A level of an average queue in packets or bytes: `"2.5p"`, `"64kB"`.
    Threshold,
    /// `"2.5p"`.
    MeanPackets,
    /// `"1500B"`.
    Bytes,
    /// `"5ms"`.
    Span,
    /// A time since the start: `"5s"`.
    Time,
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
    /// A string that is not empty.
    Text,
    /// A string, or a whole number, of a form that its reader knows; written for example like this.
    Form(&'static str),
    /// A list of strings.
    Texts,
    /// A list of whole numbers from 1.
    Ordinals,
    /// `true`, `false`, or a list of strings of a form that its reader knows.
    SwitchOrTexts,
    /// A table with these keys.
    Table(&'static [Param]),
    /// `false`, or a table with these keys.
    TableOrFalse(&'static [Param]),
    /// A value of this kind, or a table with these keys.
    OrTable(&'static Self, &'static [Param]),
    /// Tables with these keys, each under a name.
    Map(&'static [Param]),
    /// A list of tables with these keys.
    Tables(&'static [Param]),
    /// A table whose key `kind` names one of these, or just the name as a string.
    Variants(&'static [Variant]),
    /// What is described elsewhere under the first, such as `queue`; written for example like the second.
    Defined(&'static str, &'static str),
    /// What another key would take.
    Any,
}

/// One of several forms of a table.
#[derive(Debug, PartialEq, Eq)]
pub struct Variant {
    /// The value of its key `kind`.
    pub name: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Its other keys.
    pub params: &'static [Param],
}

/// Which values of its kind a parameter allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Range {
    /// All.
    Any,
    /// Zero or more.
    FromZero,
    /// Above zero.
    AboveZero,
    /// Above one.
    AboveOne,
    /// From one to this.
    UpTo(u64),
}

impl Range {
    /// Whether it has `value`, of `kind`, which was written as `text`.
    ///
    /// # Errors
    /// When it has not; the message says what it has.
    pub fn check(self, kind: Kind, value: Value, text: &str) -> Result<(), String> {
        let number = match value {
            Value::Bytes(bytes) => bytes.get() as f64,
            Value::Span(span) => span.as_nanos() as f64,
            Value::Time(time) => time.as_nanos() as f64,
            Value::Rate(rate) => rate.as_bit() as f64,
            Value::Ratio(ratio) => ratio.get(),
            Value::Number(number) => number,
            Value::Count(count) => count as f64,
            _ => return Ok(()),
        };
        let (holds, allowed) = match self {
            Self::Any => return Ok(()),
            Self::FromZero => (number >= 0.0, "zero or more".to_owned()),
            Self::AboveZero => (number > 0.0, "above zero".to_owned()),
            Self::AboveOne => (number > 1.0, "above one".to_owned()),
            Self::UpTo(most) => ((1.0..=most as f64).contains(&number), format!("between 1 and {most}")),
        };
        if holds {
            return Ok(());
        }
        Err(format!("`{text}`: {} must be {allowed} here; write for example {}", kind.noun(), kind.example()))
    }
}

impl Kind {
    /// What one value is, with its article.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Limit | Self::Threshold => "a number of packets or a size",
            Self::Packets | Self::MeanPackets => "a number of packets",
            Self::Bytes => "a size",
            Self::Span | Self::Time => "a time",
            Self::Rate => "a rate",
            Self::Ratio => "a share",
            Self::Number => "a number",
            Self::Count => "a whole number",
            _ => "a value",
        }
    }

    /// A value, as TOML.
    #[must_use]
    pub fn example(self) -> String {
        let example = match self {
            Self::Limit | Self::Packets => "\"50p\"",
            Self::Threshold | Self::MeanPackets => "\"2.5p\"",
            Self::Bytes => "\"64kB\"",
            Self::Span | Self::Time => "\"20ms\"",
            Self::Rate => "\"10Mbit\"",
            Self::Ratio => "0.01",
            Self::Number => "2.5",
            Self::Count => "10",
            Self::Switch | Self::SwitchOrTexts => "true",
            Self::Choice(words) => return format!("\"{}\"", words.first().unwrap_or(&"name")),
            Self::Text | Self::Any => "\"name\"",
            Self::Form(example) | Self::Defined(_, example) => example,
            Self::Texts => "[\"a\", \"b\"]",
            Self::Ordinals => "[20, 22]",
            Self::Table(params) => {
                let required = params.iter().filter(|param| param.is_required());
                let required: Vec<_> =
                    required.map(|param| format!("{} = {}", param.name, param.kind.example())).collect();
                return if required.is_empty() {
                    "{ }".to_owned()
                } else {
                    format!("{{ {} }}", required.join(", "))
                };
            }
            Self::OrTable(kind, _) => return kind.example(),
            Self::TableOrFalse(_) | Self::Map(_) => "{ }",
            Self::Tables(_) => "[{ }]",
            Self::Variants(variants) => {
                return format!("\"{}\"", variants.first().map_or("name", |variant| variant.name));
            }
        };
        example.to_owned()
    }
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// A buffer size in packets or bytes.
    Limit(Limit),
    /// A number of packets.
    Packets(Packets),
    /// A level of an average queue in packets or bytes.
    Threshold(Threshold),
    /// A mean number of packets.
    MeanPackets(MeanPackets),
    /// A number of bytes.
    Bytes(Bytes),
    /// A time span, in nanoseconds.
    Span(Span),
    /// A time since the start, in nanoseconds.
    Time(Time),
    /// A rate in bits per second.
    Rate(Rate),
    /// A share, 0 to 1.
    Ratio(Ratio),
    /// A finite number without unit.
    Number(f64),
    /// A whole number, 0 or more.
    Count(u64),
    /// On or off.
    Switch(bool),
    /// One of the words of [`Kind::Choice`].
    Choice(&'static str),
}

/// A value as a file has it, before a parameter says what it stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Written<'a> {
    /// A string, such as `"50p"`.
    Text(&'a str),
    /// A whole number.
    Integer(i64),
    /// A number with a point or an exponent.
    Float(f64),
    /// `true` or `false`.
    Switch(bool),
}

impl<'a, T: AsRef<str> + ?Sized> From<&'a T> for Written<'a> {
    fn from(text: &'a T) -> Self {
        Self::Text(text.as_ref())
    }
}

/// As it was written, a string without quotes.
impl fmt::Display for Written<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Integer(integer) => write!(f, "{integer}"),
            Self::Float(float) => write!(f, "{float:?}"),
            Self::Switch(on) => write!(f, "{on}"),
        }
    }
}

/// Why a parameter was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamError {
    /// The key that has to change.
    pub key: String,
    /// What is wrong and how to fix it.
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

/// The key of a queue's table under which its classes stand, by their names.
pub const CLASS_KEY: &str = "class";
/// The key of a class that names its parent.
pub const PARENT_KEY: &str = "parent";

/// The [`source`](Param::source) of a parameter without a default that every scenario has to set.
pub const MUST_BE_SET: &str = "must be set";

/// The size of the buffer: the one parameter that every policy has. Unless it is set, it follows the rate of the
/// link: [`LinkLimit`](crate::limit::LinkLimit), one for all, so that disciplines that are compared by name have the same.
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

/// What can stand inside another discipline, by the names of the catalogue. The last two write labels, for which only the
/// discipline of a whole queue is asked.
pub(crate) const INNER: [&str; 22] = [
    "fifo",
    "drr",
    "rr",
    "stfq",
    "scfq",
    "wf2q_plus",
    "fq_codel",
    "choke",
    "head",
    "lqd",
    "rnd",
    "pfd",
    "red",
    "fred",
    "sred",
    "codel",
    "pie",
    "cobalt",
    "fq_pie",
    "stochastic_fq",
    "csfq",
    "mcsfq",
];

/// What can divide a part of a queue: all that needs no labels, customers, guarantees or classes, which what divides the whole does not
/// pass on.
pub(crate) const PARTS: &[&str] = INNER.split_at(20).0;

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

    /// The same parameter, with another value in the paper.
    #[must_use]
    pub const fn in_paper(self, value: &'static str) -> Self {
        Self { paper: Paper::Is(value), ..self }
    }

    /// The value with `preset`, as a scenario would write it, unless it is set.
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

    /// Reads a value of this parameter.
    ///
    /// # Errors
    /// When `written` is not a value of its [`kind`](Param::kind), or a buffer of nothing; the message says how
    /// to write one.
    pub fn parse<'a>(&self, written: impl Into<Written<'a>>) -> Result<Value, ParamError> {
        let written = written.into();
        let refuse = |message| ParamError::new(self.name, message);
        let value = self.kind.read(written).map_err(refuse)?;
        if self.range != Range::Any {
            self.range.check(self.kind, value, &written.to_string()).map_err(refuse)?;
        }
        let is_no_buffer = self.name == LIMIT.name
            && match value {
                Value::Limit(Limit::Packets(limit)) | Value::Packets(limit) => limit == Packets::ZERO,
                Value::Limit(Limit::Bytes(limit)) => limit == Bytes::ZERO,
                _ => false,
            };
        let message = "a buffer holds at least one packet; write for example \"50p\"";
        require(!is_no_buffer, self.name, message)?;
        Ok(value)
    }
}

impl Kind {
    /// What `written` stands for.
    ///
    /// # Errors
    /// When it is not of this kind, or a kind of more than one value; the message says how to write one.
    pub fn read(self, written: Written<'_>) -> Result<Value, String> {
        Ok(match (self, written) {
            (Self::Switch, Written::Switch(on)) => Value::Switch(on),
            (Self::Count, Written::Integer(count)) if count >= 0 => Value::Count(count.unsigned_abs()),
            (Self::Number, Written::Integer(number)) => Value::Number(number as f64),
            (Self::Number, Written::Float(number)) if number.is_finite() => Value::Number(number),
            (_, Written::Text(text)) => self.read_text(text)?,
            (_, other) => self.read_text(&other.to_string())?,
        })
    }

    fn read_text(self, text: &str) -> Result<Value, String> {
        let finite = |number: &f64| number.is_finite();
        Ok(match self {
            Self::Limit => Value::Limit(unit(text)?),
            Self::Packets => Value::Packets(unit(text)?),
            Self::Threshold => Value::Threshold(unit(text)?),
            Self::MeanPackets => Value::MeanPackets(unit(text)?),
            Self::Bytes => Value::Bytes(unit(text)?),
            Self::Span => Value::Span(unit(text)?),
            Self::Time => Value::Time(unit(text)?),
            Self::Rate => Value::Rate(unit(text)?),
            Self::Ratio => Value::Ratio(unit(text)?),
            Self::Number => text
                .parse()
                .ok()
                .filter(finite)
                .map(Value::Number)
                .ok_or_else(|| format!("`{text}` is not a number; write for example 2.5"))?,
            Self::Count => Value::Count(text.parse().map_err(|_| {
                format!("`{text}` is not a whole number from 0 to 2^64 - 1; write for example 64")
            })?),
            Self::Switch => {
                Value::Switch(text.parse().map_err(|_| format!("`{text}` is neither true nor false"))?)
            }
            Self::Choice(words) => words
                .iter()
                .find(|word| **word == text)
                .map(|word| Value::Choice(word))
                .ok_or_else(|| format!("`{text}` is not one of {}", words.join(", ")))?,
            _ => return Err(format!("`{text}` is not such a value; write for example {}", self.example())),
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

/// An entry and how its parameters are read.
#[derive(Debug)]
pub struct Known<T: 'static> {
    /// The entry.
    pub entry: &'static Entry,
    /// Reads and checks its parameters.
    pub read: fn(&EntryArgs<'_>) -> Result<T, ParamError>,
    /// The buffer policy of a scheduler unless a scenario names another; none for everything else.
    pub default_policy: Option<&'static Entry>,
}

/// Parameters of an algorithm that has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoParams;

impl NoParams {
    /// From the catalogue's values, of which there are none.
    ///
    /// # Errors
    /// Never.
    pub const fn from_args(_args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        Ok(Self)
    }
}

/// Values by parameter. What is not set has that of the preset.
#[derive(Clone, Debug, Default)]
pub struct Args {
    preset: Preset,
    set: BTreeMap<&'static str, Value>,
    classes: Vec<ClassArgs>,
    /// Of the classes, by name.
    places: BTreeMap<String, usize>,
}

/// A class, by its name, and the values of its parameters.
#[derive(Clone, Debug)]
struct ClassArgs {
    name: String,
    parent: Option<String>,
    args: Args,
}

/// A class as a table names it.
#[derive(Clone, Copy, Debug)]
pub struct NamedClass<'a> {
    /// Its name.
    pub name: &'a str,
    /// The name of its parent; none of a root.
    pub parent: Option<&'a str>,
    /// The values of its parameters.
    pub args: EntryArgs<'a>,
}

/// The values of one entry's parameters, or of a table's.
#[derive(Clone, Copy, Debug)]
pub struct EntryArgs<'a> {
    args: &'a Args,
    /// Of the entry; a table has none.
    name: &'static str,
    params: &'static [Param],
}

impl Args {
    /// No values but those of `preset`.
    #[must_use]
    pub const fn of_preset(preset: Preset) -> Self {
        Self { preset, set: BTreeMap::new(), classes: Vec::new(), places: BTreeMap::new() }
    }

    /// Which values the parameters have that are not set.
    #[must_use]
    pub const fn preset(&self) -> Preset {
        self.preset
    }

    /// Changes it; what is set stays.
    pub(crate) fn set_preset(&mut self, preset: Preset) {
        self.preset = preset;
        self.classes.iter_mut().for_each(|class| class.args.preset = preset);
    }

    /// The class called `name`, which may be new, for its values to be set.
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

    /// Makes a class called `name`.
    pub(crate) fn add_class(&mut self, name: &str) {
        self.class(name);
    }

    /// Gives the class `name` its parent.
    pub(crate) fn set_parent(&mut self, name: &str, parent: &str) {
        self.class(name).parent = Some(parent.to_owned());
    }

    /// Sets `param` of the class `name`.
    ///
    /// # Errors
    /// When `written` is not a value of it.
    pub(crate) fn set_of_class(
        &mut self,
        name: &str,
        param: &'static Param,
        written: Written<'_>,
    ) -> Result<(), ParamError> {
        self.class(name).args.set(param, written)
    }

    /// Sets `param`.
    ///
    /// # Errors
    /// When `written` is not a value of it.
    pub(crate) fn set(&mut self, param: &'static Param, written: Written<'_>) -> Result<(), ParamError> {
        self.put(param, param.parse(written)?);
        Ok(())
    }

    /// Sets `param` to a value of its kind.
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

    /// The values of the paper of `entry`.
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

    /// Whether `name` is set to another value than that of the preset.
    pub(crate) fn is_changed(&self, name: &str) -> bool {
        let unset = self.param(name).and_then(|param| self.unset(param));
        self.args.set.contains_key(name) && self.value(name) != unset
    }

    /// The value of `name`: as set, else that of the preset, else none.
    ///
    /// # Panics
    /// When the entry has no such parameter or its value in the preset does not parse: a slip in the algorithm's own
    /// file, which the test that builds every entry finds.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<Value> {
        let Some(param) = self.param(name) else { unreachable!("{} has no parameter `{name}`", self.name) };
        self.args.set.get(param.name).copied().or_else(|| self.unset(param))
    }

    /// The value of a parameter that is not set: that of the preset, else none.
    fn unset(&self, param: &Param) -> Option<Value> {
        match param.parse(param.preset(self.args.preset)?) {
            Ok(value) => Some(value),
            Err(error) => unreachable!("{} of {}: {error}", self.args.preset.name(), self.name),
        }
    }
}

/// One getter for parameters with a default and one for those without, per kind.
macro_rules! getters {
    ($($required:ident, $optional:ident: $kind:ident -> $type:ty;)*) => {
        impl EntryArgs<'_> {
            $(
                #[doc = concat!("The value of `name`, of kind [`Kind::", stringify!($kind), "`]: as set, else its default, else none.")]
                #[must_use]
                pub fn $optional(&self, name: &str) -> Option<$type> {
                    match self.value(name)? {
                        Value::$kind(value) => Some(value),
                        other => unreachable!("`{name}` of {} is {other:?}", self.name),
                    }
                }
                #[doc = concat!("The value of `name`, of kind [`Kind::", stringify!($kind), "`], which has a default.")]
                #[must_use]
                pub fn $required(&self, name: &str) -> $type {
                    match self.$optional(name) {
                        Some(value) => value,
                        None => unreachable!("`{name}` of {} has no default", self.name),
                    }
                }
            )*
        }
    };
}
getters! {
    limit, limit_if_set: Limit -> Limit;
    packets, packets_if_set: Packets -> Packets;
    threshold, threshold_if_set: Threshold -> Threshold;
    mean_packets, mean_packets_if_set: MeanPackets -> MeanPackets;
    bytes, bytes_if_set: Bytes -> Bytes;
    span, span_if_set: Span -> Span;
    rate, rate_if_set: Rate -> Rate;
    ratio, ratio_if_set: Ratio -> Ratio;
    number, number_if_set: Number -> f64;
    count, count_if_set: Count -> u64;
    switch, switch_if_set: Switch -> bool;
    choice, choice_if_set: Choice -> &'static str;
}
