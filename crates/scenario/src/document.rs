//! Reads a hand-written TOML file into a type that derives [`Deserialize`].
//!
//! Errors are those of scenario files: file, line, key, "did you mean", and all of them at once. A refused
//! value is replaced by a placeholder and the file is read again, until no new error is found; a result with
//! placeholders is discarded.
//!
//! - Keys that a struct does not have are refused, with or without `deny_unknown_fields`.
//! - An enum is written as the name of a unit variant, or as a table whose key `kind` names the variant, with the
//!   fields of the variant in the same table.
//! - Elements of lists count from 1 in messages.
//! - A field called [`LINE`] receives the line of its table.
//!
//! It is separate from the lists of keys because the files of experiments have fifty types, enums in tables
//! in lists. A [`Param`](apportion_core::param::Param) holds one value, so each of these types would need a
//! list of keys and a hand-written reader. `Deserialize` needs neither, and the purposes of the lists, the
//! catalogue, the schema and the canonical text, do not concern these files. Places and messages come from
//! the same functions as those of scenarios.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;

use serde::de::value::{MapDeserializer, SeqDeserializer, U32Deserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use crate::problem::{Place, Problem, Problems, missing_kind, unknown_key, unknown_word};
use crate::text::{self, Item, Table, Value, join};

#[cfg(doc)]
use serde::Deserialize;

/// The name of a field of type `u32` that receives the line of its table, counting from 1.
pub const LINE: &str = "$line";

/// The key that names the variant of an enum.
const KIND: &str = "kind";

/// Reads `text`; messages call it `file`.
///
/// # Errors
/// All problems of the text, in the order of its lines.
pub fn read<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, Vec<Problem>> {
    let mut problems = Problems::default();
    let root = text::parse(text, &mut problems);
    if !problems.is_empty() {
        return Err(problems.into_vec(file));
    }
    let root = Item { value: Value::Table(root), place: Place::Line(1) };
    let state = State { problems: RefCell::new(problems), refused: RefCell::default() };
    loop {
        let refused = state.refused.borrow().len();
        let result = T::deserialize(Reader { item: &root, path: "", state: &state });
        if let Err(Refused::Because(message)) = &result {
            state.refuse(&root, "", message);
        }
        match result {
            Ok(value) if state.problems.borrow().is_empty() => return Ok(value),
            Err(_) if state.refused.borrow().len() > refused => (),
            _ => return Err(state.problems.into_inner().into_vec(file)),
        }
    }
}

struct State {
    problems: RefCell<Problems>,
    /// Paths of values that are replaced by a placeholder.
    refused: RefCell<BTreeSet<String>>,
}

impl State {
    /// Notes that the value of `path` is wrong.
    fn refuse(&self, item: &Item, path: &str, message: &str) {
        self.problems.borrow_mut().add(item.place, path, message);
        self.refused.borrow_mut().insert(path.to_owned());
    }

    /// Reads the value of a field or an element of a list.
    fn value<'de, S: DeserializeSeed<'de>>(
        &self,
        item: &Item,
        path: &str,
        seed: S,
    ) -> Result<S::Value, Refused> {
        if self.refused.borrow().contains(path) {
            return seed.deserialize(Placeholder).map_err(|_| Refused::Noted);
        }
        seed.deserialize(Reader { item, path, state: self }).map_err(|error| self.note(item, path, error))
    }

    /// Notes why the value of `path` was refused.
    fn note(&self, item: &Item, path: &str, error: Refused) -> Refused {
        match error {
            Refused::Noted => (),
            Refused::Because(message) => self.refuse(item, path, &message),
            Refused::NotA(expected) => {
                let message = format!("`{}` is {}, not {expected}", item.plain(), item.what());
                self.refuse(item, path, &message);
            }
            Refused::Missing(field) => self.refuse(item, &join(path, field), "missing"),
        }
        Refused::Noted
    }
}

/// Why a value is refused.
#[derive(Debug)]
enum Refused {
    /// The problem was noted at its place.
    Noted,
    Because(String),
    /// A description of the expected value.
    NotA(String),
    /// A field without a value.
    Missing(&'static str),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Noted => f.write_str("refused"),
            Self::Because(message) => f.write_str(message),
            Self::NotA(expected) => write!(f, "not {expected}"),
            Self::Missing(field) => write!(f, "`{field}` is missing"),
        }
    }
}

impl std::error::Error for Refused {}

impl serde::de::Error for Refused {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Because(message.to_string())
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected.to_string();
        Self::NotA(match expected.as_str() {
            "f64" => "a number".to_owned(),
            "a boolean" => "true or false".to_owned(),
            "a sequence" => "a list".to_owned(),
            "a map" => "a table".to_owned(),
            text if text.starts_with("struct ") => "a table".to_owned(),
            text if text.starts_with("an array of ") => "a list of that length".to_owned(),
            _ => expected,
        })
    }

    fn invalid_value(value: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(value, expected)
    }

    fn unknown_variant(variant: &str, known: &'static [&'static str]) -> Self {
        Self::Because(unknown_word(variant, known.iter().copied()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::Missing(field)
    }
}

/// Reads the value of an item.
#[derive(Clone, Copy)]
struct Reader<'a> {
    item: &'a Item,
    path: &'a str,
    state: &'a State,
}

impl<'a> Reader<'a> {
    fn table<'de, V: Visitor<'de>>(
        self,
        table: &'a Table,
        fields: Option<&'static [&'static str]>,
        ignored: Option<&str>,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let entries = self.entries(table, fields, ignored).into_iter();
        let line = fields.is_some_and(|fields| fields.contains(&LINE));
        visitor
            .visit_map(Entries { of: self, entries, value: None, line })
            .map_err(|error| self.note_missing(error))
    }

    /// The entries of `table` for a visitor; keys that are not in `fields` are noted as problems.
    ///
    /// Not part of [`table`](Reader::table), which is compiled again for every type that is read.
    fn entries(
        self,
        table: &'a Table,
        fields: Option<&'static [&'static str]>,
        ignored: Option<&str>,
    ) -> Vec<(&'a str, &'a Item)> {
        let is_known = |name: &str| fields.is_none_or(|fields| name != LINE && fields.contains(&name));
        let mut entries: Vec<(&str, &Item)> = Vec::new();
        for (name, item) in &table.entries {
            if ignored == Some(name) {
                continue;
            }
            if is_known(name) {
                entries.push((name, item));
                continue;
            }
            let known = fields.unwrap_or_default().iter().copied().filter(|field| *field != LINE);
            let message = unknown_key("key", name, known);
            self.state.problems.borrow_mut().add(item.place, join(self.path, name), message);
        }
        // Missing required fields are noted, and get a placeholder.
        for field in fields.unwrap_or_default() {
            if table.get(field).is_none() && self.state.refused.borrow().contains(&join(self.path, field)) {
                entries.push((field, self.item));
            }
        }
        entries
    }

    /// Notes a field that the table lacks; other errors belong to the table's own key.
    fn note_missing(self, error: Refused) -> Refused {
        let Refused::Missing(field) = error else { return error };
        self.state.refuse(self.item, &join(self.path, field), "missing");
        Refused::Noted
    }
}

impl<'de> Deserializer<'de> for Reader<'_> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        match &self.item.value {
            Value::Text(text) => visitor.visit_str(text),
            Value::Integer(integer) => visitor.visit_i64(*integer),
            Value::Float(float) => visitor.visit_f64(*float),
            Value::Flag(flag) => visitor.visit_bool(*flag),
            Value::List(items) => visitor.visit_seq(Elements { of: self, items: (1..).zip(items) }),
            Value::Table(table) => self.table(table, None, None, visitor),
            Value::Huge(_) => Err(Refused::Because(format!(
                "`{}` is out of range; whole numbers are between {} and {}",
                self.item.plain(),
                i64::MIN,
                i64::MAX
            ))),
            Value::Date(_) => Err(Refused::Because(format!(
                "`{}` is a date, which no key takes; write it in quotes if it is text",
                self.item.plain()
            ))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        match &self.item.value {
            Value::Table(table) => self.table(table, Some(fields), None, visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        let Value::Table(table) = &self.item.value else {
            return match self.item.as_text() {
                Some(name) if variants.contains(&name) => visitor.visit_enum(Variant { of: self, name }),
                _ => {
                    let message = unknown_word(&self.item.plain(), variants.iter().copied());
                    Err(Refused::Because(message))
                }
            };
        };
        let path = join(self.path, KIND);
        let Some(kind) = table.get(KIND) else {
            self.state.refuse(self.item, &path, &missing_kind(variants));
            self.state.refused.borrow_mut().insert(self.path.to_owned());
            return Err(Refused::Noted);
        };
        match kind.as_text().filter(|name| variants.contains(name)) {
            Some(name) => visitor.visit_enum(Variant { of: self, name }),
            None => {
                let message = unknown_word(&kind.plain(), variants.iter().copied());
                self.state.refuse(kind, &path, &message);
                self.state.refused.borrow_mut().insert(self.path.to_owned());
                Err(Refused::Noted)
            }
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

struct Elements<'a> {
    of: Reader<'a>,
    /// Items with their numbers.
    items: std::iter::Zip<std::ops::RangeFrom<usize>, std::slice::Iter<'a, Item>>,
}

impl<'de> SeqAccess<'de> for Elements<'_> {
    type Error = Refused;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refused> {
        let Some((number, item)) = self.items.next() else { return Ok(None) };
        self.of.state.value(item, &format!("{}[{number}]", self.of.path), seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.size_hint().0)
    }
}

struct Entries<'a> {
    of: Reader<'a>,
    entries: std::vec::IntoIter<(&'a str, &'a Item)>,
    /// The value of the last key; none for the line.
    value: Option<(&'a str, &'a Item)>,
    /// Whether the line is still to be given.
    line: bool,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = Refused;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Refused> {
        self.value = self.entries.next();
        let key = match self.value {
            Some((key, _)) => key,
            None if std::mem::take(&mut self.line) => LINE,
            None => return Ok(None),
        };
        seed.deserialize(key.into_deserializer()).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refused> {
        match self.value {
            Some((key, item)) => self.of.state.value(item, &join(self.of.path, key), seed),
            None => {
                let line = match self.of.item.place {
                    Place::Line(line) => line,
                    Place::Override => 0,
                };
                seed.deserialize(U32Deserializer::new(line))
            }
        }
    }
}

/// An enum: the table of the variant that `name` names, or just its name.
struct Variant<'a> {
    of: Reader<'a>,
    name: &'a str,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Refused> {
        Ok((seed.deserialize(self.name.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        match &self.of.item.value {
            Value::Table(_) => self.struct_variant(&[], serde::de::IgnoredAny).map(|_| ()),
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refused> {
        seed.deserialize(Tagged(self.of))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Refused> {
        Err(Refused::custom("cannot be written in a file"))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        Tagged(self.of).deserialize_struct("", fields, visitor)
    }
}

/// The struct of a variant: a table, without its key `kind`.
struct Tagged<'a>(Reader<'a>);

impl<'de> Deserializer<'de> for Tagged<'_> {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        static EMPTY: Table = Table { entries: Vec::new() };
        let table = self.0.item.as_table().unwrap_or(&EMPTY);
        self.0.table(table, Some(fields), Some(KIND), visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any option newtype_struct enum
    }
}

/// Stands in for a value that was refused, so that the rest of the file is checked.
#[derive(Clone, Copy)]
struct Placeholder;

impl<'de> IntoDeserializer<'de, Refused> for Placeholder {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// A placeholder for each of `fields`.
fn placeholders<'de>(fields: &'static [&'static str]) -> impl MapAccess<'de, Error = Refused> {
    MapDeserializer::new(fields.iter().map(|field| (*field, Placeholder)))
}

impl<'de> Deserializer<'de> for Placeholder {
    type Error = Refused;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_i64(1)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_bool(false)
    }

    /// A text that also reads as a length of time.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_str("1s")
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_str("1s")
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_none()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        self.deserialize_tuple(0, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_seq(SeqDeserializer::new(std::iter::repeat_n(self, len)))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refused> {
        visitor.visit_map(placeholders(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_map(placeholders(fields))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_enum(PlaceholderVariant(variants[0]))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct
        tuple_struct identifier ignored_any
    }
}

/// The first variant of an enum.
struct PlaceholderVariant(&'static str);

impl<'de> EnumAccess<'de> for PlaceholderVariant {
    type Error = Refused;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Refused> {
        Ok((seed.deserialize(self.0.into_deserializer())?, self))
    }
}

impl<'de> VariantAccess<'de> for PlaceholderVariant {
    type Error = Refused;

    fn unit_variant(self) -> Result<(), Refused> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Refused> {
        seed.deserialize(Placeholder)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, Refused> {
        Placeholder.deserialize_tuple(len, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Refused> {
        visitor.visit_map(placeholders(fields))
    }
}
