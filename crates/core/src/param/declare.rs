//! The declaration of a component's parameters: the struct, its rows of the catalogue and its reader.

use alloc::format;
use alloc::string::String;
use core::fmt::Debug;

use super::{
    BufferSize, EntryArgs, Inside, Kind, MUST_BE_SET, Paper, Param, ParamError, Range, Threshold, Value,
};
use crate::mark::tvf::Tvf;
use crate::units::{Bytes, MeanPackets, Packets, Rate, Ratio, Span, Time};

/// A type that a parameter can have.
pub trait Setting: Sized + Debug {
    /// The kind of its values in a scenario.
    const KIND: Kind;

    /// Converts a value of that kind; none if the parameter has no value.
    fn of(value: Option<Value>) -> Option<Self>;
}

/// A word of [`Param::one_of`], or a name of [`Param::discipline`].
impl Setting for &'static str {
    const KIND: Kind = Kind::Choice(&[]);
    fn of(value: Option<Value>) -> Option<Self> {
        if let Some(Value::Choice(word)) = value { Some(word) } else { None }
    }
}

impl<T: Setting> Setting for Option<T> {
    const KIND: Kind = T::KIND;
    fn of(value: Option<Value>) -> Option<Self> {
        Some(value.and_then(|value| T::of(Some(value))))
    }
}

macro_rules! settings {
    ($($kind:ident: $type:ty;)*) => {
        $(impl Setting for $type {
            const KIND: Kind = Kind::$kind;
            fn of(value: Option<Value>) -> Option<Self> {
                if let Some(Value::$kind(value)) = value { Some(value) } else { None }
            }
        })*
    };
}
settings! {
    Limit: BufferSize;
    Packets: Packets;
    Threshold: Threshold;
    MeanPackets: MeanPackets;
    Bytes: Bytes;
    Span: Span;
    Time: Time;
    Rate: Rate;
    Ratio: Ratio;
    Number: f64;
    Count: u64;
    Switch: bool;
    Tvf: Tvf;
}

/// Larger counts saturate: a parameter with an upper bound refuses them.
macro_rules! counts {
    ($($type:ty),*) => {
        $(impl Setting for $type {
            const KIND: Kind = Kind::Count;
            fn of(value: Option<Value>) -> Option<Self> {
                u64::of(value).map(|count| Self::try_from(count).unwrap_or(Self::MAX))
            }
        })*
    };
}
counts!(u32, usize);

/// Parameters that are set and read back one by one, as texts. `params!` with `text` implements it.
pub trait ByName {
    /// All parameters.
    const PARAMS: &'static [Param];

    /// Sets the parameter `name` from `text`, or returns the error; none if there is no such parameter.
    fn put(&mut self, name: &str, text: &str) -> Option<Result<(), ParamError>>;

    /// The parameter `name` as a text that sets it; none if there is no such parameter.
    fn get(&self, name: &str) -> Option<String>;
}

/// The value of the parameter `name` of `params`. If the entry of `args` has no such parameter, its default.
///
/// # Errors
/// When a required parameter is not set.
pub fn read<T: Setting>(args: &EntryArgs<'_>, params: &'static [Param], name: &str) -> Result<T, ParamError> {
    let of_others = || params.iter().find(|param| param.name == name).and_then(|param| args.unset(param));
    let value = if args.has(name) { args.value(name) } else { of_others() };
    T::of(value).ok_or_else(|| {
        ParamError::new(name, format!("it must be set; write for example {}", T::KIND.example()))
    })
}

/// Constructors and modifiers for declarations.
impl Param {
    /// A parameter with a default and the source of the default. A field of [`params!`](crate::params)
    /// supplies its name, kind and doc.
    #[must_use]
    pub const fn of(default: &'static str, source: &'static str) -> Self {
        Self { default: Some(default), ..Self::unset(source) }
    }

    /// A parameter without a default; its doc states the effect of leaving it out.
    #[must_use]
    pub const fn unset(source: &'static str) -> Self {
        let (kind, range, paper) = (Kind::Switch, Range::Any, Paper::AsDefault);
        Self { name: "", symbol: "–", kind, range, default: None, paper, source, doc: "" }
    }

    /// A parameter that every scenario has to set.
    #[must_use]
    pub const fn required() -> Self {
        Self::unset(MUST_BE_SET)
    }

    /// Sets the paper's symbol.
    #[must_use]
    pub const fn symbol(self, symbol: &'static str) -> Self {
        Self { symbol, ..self }
    }

    /// Declares that the paper has no such parameter and thus no value.
    #[must_use]
    pub const fn not_in_paper(self) -> Self {
        Self { paper: Paper::Unset, ..self }
    }

    /// Restricts the values to `range`.
    #[must_use]
    pub const fn within(self, range: Range) -> Self {
        Self { range, ..self }
    }

    /// Sets the description for users, for a parameter that several components share.
    #[must_use]
    pub const fn doc(self, doc: &'static str) -> Self {
        Self { doc, ..self }
    }

    /// Restricts the values to `words`.
    #[must_use]
    pub const fn one_of(self, words: &'static [&'static str]) -> Self {
        Self { kind: Kind::Choice(words), ..self }
    }

    /// Sets a kind that only the type of the field can read, described by `description`.
    #[must_use]
    pub const fn own(self, description: &'static str) -> Self {
        Self { kind: Kind::Own(description), ..self }
    }

    /// Makes the values the names of the disciplines that can stand `inside` another.
    #[must_use]
    pub const fn discipline(self, inside: Inside) -> Self {
        Self { kind: Kind::Discipline(inside), ..self }
    }

    /// Sets the name, the kind and, unless it has one, the doc of the field that declares the parameter.
    #[must_use]
    pub const fn field(self, name: &'static str, kind: Kind, doc: &'static str) -> Self {
        let kind = if matches!(self.kind, Kind::Choice(_) | Kind::Discipline(_) | Kind::Own(_)) {
            self.kind
        } else {
            kind
        };
        let doc = if self.doc.is_empty() { doc.trim_ascii_start() } else { self.doc };
        Self { name, kind, doc, ..self }
    }

    /// Takes name, symbol, kind and, if missing, doc from `other`.
    #[must_use]
    pub(crate) const fn or(self, other: &Self) -> Self {
        let doc = if self.doc.is_empty() { other.doc } else { self.doc };
        Self { name: other.name, symbol: other.symbol, kind: other.kind, doc, ..self }
    }
}

/// The number of parameters in all lists.
#[must_use]
pub const fn total(lists: &[&[Param]]) -> usize {
    let (mut total, mut at) = (0, 0);
    while at < lists.len() {
        total += lists[at].len();
        at += 1;
    }
    total
}

/// Joins the lists to one of [`total`] parameters.
#[must_use]
pub const fn concat<const N: usize>(lists: &[&[Param]]) -> [Param; N] {
    assert!(total(lists) == N, "a parameter would be left out");
    let mut all = [super::LIMIT; N];
    let (mut at, mut list) = (0, 0);
    while list < lists.len() {
        let mut place = 0;
        while place < lists[list].len() {
            all[at] = lists[list][place];
            at += 1;
            place += 1;
        }
        list += 1;
    }
    all
}

/// Replaces parameters of the list by those of the same names.
#[must_use]
pub const fn replace<const N: usize>(list: &[Param], with: &[(&str, Param)]) -> [Param; N] {
    let mut all: [Param; N] = concat(&[list]);
    let mut at = 0;
    while at < with.len() {
        let mut place = 0;
        while !equal(all[place].name, with[at].0) {
            place += 1;
        }
        all[place] = with[at].1.or(&all[place]);
        at += 1;
    }
    all
}

const fn equal(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

/// Declares the parameters of a component, each once: the struct, its list `PARAMS` for the
/// [`Entry`](super::Entry), and `from_args`, which reads them, follow.
///
/// ```text
/// params! {
///     /// Parameters of [`Drr`].
///     pub struct DrrParams {
///         /// Bytes in a turn of the flow with the smallest weight.
///         quantum: Bytes = Param::of("1500B", "section IV: at least the largest packet").symbol("Q"),
///         /// The control loop: its own `params!`, whose parameters stand here, one with another default.
///         ..control: CodelControl where { ecn: Param::of("false", "RFC 8289 section 5: its pseudo-code drops") },
///     }
///     check: Self::check
/// }
/// ```
///
/// `field: Type => function,` is no parameter: `function` makes the field from the [`EntryArgs`], or returns
/// an error. `field: Type = param => function,` is a parameter whose value `function` makes from them, such
/// as one that follows another unless set.
///
/// The type of a field is a [`Setting`]: its kind in a scenario, an `Option` where a scenario may leave it
/// out without a default, or an enum of [`choice!`](crate::choice!). The doc comment of a field is its
/// description for users. A field whose [`Param`] is shared and has a `doc` of its own needs none. The
/// optional `check` gets the parameters and the [`EntryArgs`] and refuses values that contradict each other.
///
/// `text: TRAIT` in place of a check declares a struct whose parameters are set one by one as texts
/// ([`ByName`]). `TRAIT::read` and `TRAIT::write` of the field types parse and print them. There is no
/// `from_args`.
///
/// `..LIST,` adds the parameters of a list, which a function reads: for parts whose parameters do not all
/// stand in one place.
#[macro_export]
macro_rules! params {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident { $($fields:tt)* }
        $(check: $check:expr)?
    ) => {
        $crate::params!(@ [$(#[$meta])* $vis $name] [$($check)?] [] [] $($fields)*);
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident { $($fields:tt)* }
        text: $text:ident
    ) => {
        $crate::params!(@ [$(#[$meta])* $vis $name] [text: $text] [] [] $($fields)*);
    };

    // A parameter with a description for users.
    (@ $head:tt $check:tt [$($lists:tt)*] [$($done:tt)*]
        $(#[doc = $doc:literal])+ $field:ident: $type:ty = $param:expr, $($rest:tt)*) => {
        $crate::params!(@ $head $check
            [$($lists)* &[$param.field(stringify!($field), <$type as $crate::param::Setting>::KIND, concat!($($doc),+))],]
            [$($done)* {
                $(#[doc = $doc])+
                $field: $type = |args| $crate::param::read(args, Self::PARAMS, stringify!($field))?
            }]
            $($rest)*
        );
    };
    // A parameter whose value a function makes.
    (@ $head:tt $check:tt [$($lists:tt)*] [$($done:tt)*]
        $(#[doc = $doc:literal])+ $field:ident: $type:ty = $param:expr => $read:expr, $($rest:tt)*) => {
        $crate::params!(@ $head $check
            [$($lists)* &[$param.field(stringify!($field), <$type as $crate::param::Setting>::KIND, concat!($($doc),+))],]
            [$($done)* {
                $(#[doc = $doc])+
                $field: $type = |args| ($read)(args)?
            }]
            $($rest)*
        );
    };
    // A shared parameter, which has a description.
    (@ $head:tt $check:tt [$($lists:tt)*] [$($done:tt)*] $field:ident: $type:ty = $param:expr, $($rest:tt)*) => {
        $crate::params!(@ $head $check
            [$($lists)* &[$param.field(stringify!($field), <$type as $crate::param::Setting>::KIND, "")],]
            [$($done)* {
                #[doc = concat!("`", stringify!($field), "` of the catalogue.")]
                $field: $type = |args| $crate::param::read(args, Self::PARAMS, stringify!($field))?
            }]
            $($rest)*
        );
    };
    // A field that is no parameter, such as classes, made by a function of the values.
    (@ $head:tt $check:tt [$($lists:tt)*] [$($done:tt)*]
        $(#[doc = $doc:literal])* $field:ident: $type:ty => $read:expr, $($rest:tt)*) => {
        $crate::params!(@ $head $check [$($lists)*]
            [$($done)* {
                $(#[doc = $doc])*
                $field: $type = |args| ($read)(args)?
            }]
            $($rest)*
        );
    };
    // The parameters of a part.
    (@ $head:tt $check:tt [$($lists:tt)*] [$($done:tt)*]
        $(#[doc = $doc:literal])* ..$field:ident: $type:ty $(where { $($own:ident: $param:expr),* $(,)? })?, $($rest:tt)*) => {
        $crate::params!(@ $head $check
            [$($lists)* &$crate::param::replace::<{ <$type>::PARAMS.len() }>(<$type>::PARAMS, &[$($((stringify!($own), $param)),*)?]),]
            [$($done)* {
                $(#[doc = $doc])*
                $field: $type = |args| <$type>::from_args(args)?
            }]
            $($rest)*
        );
    };
    // The parameters of a list, which a function reads.
    (@ $head:tt $check:tt [$($lists:tt)*] $done:tt ..$list:expr, $($rest:tt)*) => {
        $crate::params!(@ $head $check [$($lists)* $list,] $done $($rest)*);
    };
    // Parameters that are set one by one.
    (@ [$(#[$meta:meta])* $vis:vis $name:ident] [text: $text:ident] $lists:tt
        [$({ $(#[doc = $doc:expr])* $field:ident: $type:ty = |$args:ident| $read:expr })*]) => {
        $crate::params!(@struct [$(#[$meta])* $vis $name] $lists [$({ $(#[doc = $doc])* $field: $type })*]);

        impl $crate::param::ByName for $name {
            const PARAMS: &'static [$crate::param::Param] = Self::PARAMS;

            fn put(&mut self, name: &str, text: &str) -> Option<Result<(), $crate::param::ParamError>> {
                let refuse = |message: String| $crate::param::ParamError::new(name, message);
                $(if name == stringify!($field) {
                    return Some(<$type as $text>::read(text).map(|value| self.$field = value).map_err(refuse));
                })*
                None
            }

            fn get(&self, name: &str) -> Option<String> {
                $(if name == stringify!($field) {
                    return Some(<$type as $text>::write(&self.$field));
                })*
                None
            }
        }
    };
    (@ [$(#[$meta:meta])* $vis:vis $name:ident] [$($check:expr)?] $lists:tt
        [$({ $(#[doc = $doc:expr])* $field:ident: $type:ty = |$args:ident| $read:expr })*]) => {
        $crate::params!(@struct [$(#[$meta])* $vis $name] $lists [$({ $(#[doc = $doc])* $field: $type })*]);

        impl $name {
            /// Reads the parameters from the catalogue's values.
            ///
            /// # Errors
            /// When values contradict each other.
            pub fn from_args(args: &$crate::param::EntryArgs<'_>) -> Result<Self, $crate::param::ParamError> {
                let params = Self { $($field: { let $args = args; $read },)* };
                $(($check)(&params, args)?;)?
                Ok(params)
            }
        }
    };
    (@struct [$(#[$meta:meta])* $vis:vis $name:ident] [$($lists:tt)*]
        [$({ $(#[doc = $doc:expr])* $field:ident: $type:ty })*]) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        $vis struct $name {
            $($(#[doc = $doc])* pub $field: $type,)*
        }

        impl $name {
            /// The parameters, as the catalogue lists them.
            pub const PARAMS: &'static [$crate::param::Param] = {
                const LISTS: &[&[$crate::param::Param]] = &[$($lists)*];
                const ALL: [$crate::param::Param; $crate::param::total(LISTS)] = $crate::param::concat(LISTS);
                &ALL
            };
        }
    };
}

/// Declares an enum whose variants a scenario names by a word.
///
/// ```text
/// choice! {
///     /// Which packet of the victim goes.
///     pub enum End {
///         /// The one that would be served next.
///         Front = "front",
///         /// The last.
///         Tail = "tail",
///     }
/// }
/// ```
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $variant,)+ }

        impl $crate::param::Setting for $name {
            const KIND: $crate::param::Kind = $crate::param::Kind::Choice(&[$($word),+]);
            fn of(value: Option<$crate::param::Value>) -> Option<Self> {
                match value {
                    $(Some($crate::param::Value::Choice($word)) => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}
