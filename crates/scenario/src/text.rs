//! The text of a scenario as a tree of values that know the line they were written on.
//!
//! Only this module reads TOML; every later step works on [`Item`]s.

use std::fmt;

use apportion_core::param::Written;
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use crate::problem::{Place, Problems};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub value: Value,
    pub place: Place,
}

/// A TOML value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Text(String),
    Integer(i64),
    Float(f64),
    Flag(bool),
    List(Vec<Item>),
    Table(Table),
    /// An integer beyond 64 bits with a sign, as decimal digits.
    Huge(String),
    /// A date or a time of day: no key accepts one, so only its text is kept, for the message.
    Date(String),
}

impl PartialEq for Item {
    /// Ignores the place.
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

/// A TOML table, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub entries: Vec<(String, Item)>,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Item> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, item)| item)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Item> {
        self.entries.iter_mut().find(|(name, _)| name == key).map(|(_, item)| item)
    }
}

impl Item {
    /// Whether it is the value `false`.
    pub(crate) fn is_false(&self) -> bool {
        self.value == Value::Flag(false)
    }

    pub(crate) fn text(text: &str, place: Place) -> Self {
        Self { value: Value::Text(text.to_owned()), place }
    }

    pub(crate) fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The value as a user would write it in a sentence: text without quotes, tables inline.
    pub(crate) fn plain(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            _ => self.to_string(),
        }
    }

    /// The value for a parameter; none if it is not a single value.
    pub(crate) fn written(&self) -> Option<Written<'_>> {
        Some(match &self.value {
            // Too large for a number here; a parameter may still accept its digits.
            Value::Text(text) | Value::Huge(text) => Written::Text(text),
            Value::Integer(integer) => Written::Integer(*integer),
            Value::Float(float) => Written::Float(*float),
            Value::Flag(flag) => Written::Switch(*flag),
            Value::List(_) | Value::Table(_) | Value::Date(_) => return None,
        })
    }

    /// "a list", "a string" and so on, for messages.
    pub(crate) const fn what(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a string",
            Value::Integer(_) | Value::Huge(_) => "an integer",
            Value::Float(_) => "a number",
            Value::Flag(_) => "a boolean",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Date(_) => "a date",
        }
    }
}

/// Formats as TOML.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Text(text) => f.write_str(&quoted(text)),
            Value::Huge(text) | Value::Date(text) => f.write_str(text),
            Value::Integer(integer) => write!(f, "{integer}"),
            Value::Float(float) => write!(f, "{float:?}"),
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Value::Table(table) => {
                let entry = |(key, item): &(String, Self)| format!("{} = {item}", key_text(key));
                let entries: Vec<_> = table.entries.iter().map(entry).collect();
                write!(f, "{{ {} }}", entries.join(", "))
            }
        }
    }
}

/// A string as TOML.
pub(crate) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key as TOML and in key paths: without quotes if possible.
pub(crate) fn key_text(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { quoted(key) }
}

/// `path.key`, with the key quoted where it must be.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key_text(key) } else { format!("{path}.{}", key_text(key)) }
}

/// Maximum bytes of a file (chosen: a hundred times the longest that people write).
const LONGEST: usize = 16 << 20;

/// Reads a whole file.
pub(crate) fn parse(text: &str, problems: &mut Problems) -> Table {
    if text.len() > LONGEST {
        problems.add(Place::Line(1), "", format!("longer than {LONGEST} bytes"));
        return Table::default();
    }
    let lines = Lines::new(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    if let Some((line, other)) = other_language(text).filter(|_| !errors.is_empty()) {
        let message = format!(
            "this looks like {other}, and TOML is read here: key = value, and [link.NAME] above the keys of a table"
        );
        problems.add(Place::Line(line), "", message);
        return Table::default();
    }
    for error in &errors {
        let place = lines.place(error.span().map_or(0, |span| span.start));
        let message = error.message().trim().replace('\n', "; ");
        problems.add(place, "", format!("not valid TOML: {message}"));
    }
    lines.table(table.get_ref())
}

/// The probable format of a text that is not TOML, by its first line that is neither empty nor a comment, and
/// that line's number.
fn other_language(text: &str) -> Option<(u32, &'static str)> {
    let mut lines = (1..).zip(text.lines().map(str::trim));
    let (number, line) = lines.find(|(_, line)| !line.is_empty() && !line.starts_with('#'))?;
    let is_key =
        |key: &str| !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || "_-.\"' ".contains(c));
    let is_mapping = || {
        line.split_once(':')
            .is_some_and(|(key, rest)| is_key(key) && (rest.is_empty() || rest.starts_with(' ')))
    };
    if line.starts_with('{') || line == "[" || line.starts_with("[{") {
        Some((number, "JSON"))
    } else if line.starts_with("---") || line.starts_with("%YAML") || line.starts_with("- ") || is_mapping() {
        Some((number, "YAML"))
    } else {
        line.starts_with('<').then_some((number, "XML"))
    }
}

/// Reads the value of a `--set`: TOML, or else a bare string.
pub(crate) fn parse_override(text: &str) -> Item {
    let item = parse_value(text).ok().filter(|item| !matches!(item.value, Value::Date(_)));
    item.unwrap_or_else(|| Item::text(text, Place::Override))
}

/// Reads a value that stands by itself on a command line.
///
/// # Errors
/// The reason why the text is not TOML.
pub(crate) fn parse_value(text: &str) -> Result<Item, String> {
    let value = DeValue::parse(text)
        .map_err(|error| format!("not valid TOML: {}", error.message().trim().replace('\n', "; ")))?;
    let mut item = Lines::default().item(&value);
    item.set_place(Place::Override);
    Ok(item)
}

impl Item {
    fn set_place(&mut self, place: Place) {
        self.place = place;
        match &mut self.value {
            Value::List(items) => items.iter_mut().for_each(|item| item.set_place(place)),
            Value::Table(table) => table.entries.iter_mut().for_each(|(_, item)| item.set_place(place)),
            _ => (),
        }
    }
}

/// The offsets at which lines start.
#[derive(Default)]
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect())
    }

    fn place(&self, offset: usize) -> Place {
        let line = self.0.partition_point(|start| *start <= offset);
        Place::Line(u32::try_from(line).unwrap_or(u32::MAX))
    }

    fn item(&self, value: &Spanned<DeValue<'_>>) -> Item {
        let place = self.place(value.span().start);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(integer) => whole(integer),
            DeValue::Float(float) => {
                Value::Float(float.as_str().replace('_', "").parse().unwrap_or(f64::NAN))
            }
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Datetime(date) => Value::Date(date.to_string()),
            DeValue::Array(items) => Value::List(items.iter().map(|item| self.item(item)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Item { value, place }
    }

    /// The table in the order of the file: the parser sorts by key.
    fn table(&self, table: &DeTable<'_>) -> Table {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, &Spanned<_>)| {
            let mut item = self.item(value);
            // The place of a table [a.b] is its header; a key is at its own line even if its value starts
            // later.
            item.place = item.place.min(self.place(key.span().start));
            (ToString::to_string(key.get_ref()), item)
        };
        Table { entries: entries.into_iter().map(entry).collect() }
    }
}

fn whole(integer: &DeInteger<'_>) -> Value {
    let (digits, radix) = (integer.as_str().replace('_', ""), integer.radix());
    i64::from_str_radix(&digits, radix).map_or_else(
        |_| Value::Huge(i128::from_str_radix(&digits, radix).map_or(digits, |whole| whole.to_string())),
        Value::Integer,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Table {
        let mut problems = Problems::default();
        let table = parse(text, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        table
    }

    #[test]
    fn items_keep_the_order_and_lines_of_the_file() {
        let table = read("stop = \"9s\"\nseed = 1_0\n\n[link.b]\nrate = [1.5,\n  true]\n[link.a]\n");
        let keys: Vec<_> = table.entries.iter().map(|(key, item)| (key.as_str(), item.place)).collect();
        assert_eq!(keys, [("stop", Place::Line(1)), ("seed", Place::Line(2)), ("link", Place::Line(4))]);
        let links = table.get("link").and_then(Item::as_table).unwrap();
        assert_eq!(links.entries[0].0, "b");
        let rate = links.entries[0].1.as_table().unwrap().get("rate").unwrap();
        assert_eq!(
            rate.value,
            Value::List(vec![
                Item { value: Value::Float(1.5), place: Place::Override },
                Item { value: Value::Flag(true), place: Place::Override },
            ])
        );
        let Value::List(items) = &rate.value else { panic!() };
        assert_eq!(items[1].place, Place::Line(6));
    }

    #[test]
    fn every_syntax_error_is_reported_with_its_line() {
        let mut problems = Problems::default();
        parse("a = 1\nb = = 2\nc = 3\nd = [1\n", &mut problems);
        let found: Vec<_> = problems.into_vec("x.toml").iter().map(|problem| problem.place).collect();
        assert!(found.contains(&Place::Line(2)) && found.len() >= 2, "{found:?}");
    }

    #[test]
    fn what_is_printed_reads_back() {
        let table = read(r#"a = { "b.c" = ["x\"\\\n\u0001", 1, 2.0, false], d = {} }"#);
        let item = table.get("a").unwrap();
        assert_eq!(read(&format!("a = {item}")).get("a"), Some(item));
    }

    #[test]
    fn an_override_is_toml_or_a_bare_string() {
        assert_eq!(parse_override("10Mbit").value, Value::Text("10Mbit".into()));
        assert_eq!(parse_override("60").value, Value::Integer(60));
        assert_eq!(parse_override("[\"a\", \"b\"]").what(), "a list");
        assert_eq!(parse_override("2026-01-01").value, Value::Text("2026-01-01".into()));
    }
}
