//! The keys of scenario files as Markdown and as a JSON Schema, both generated from the tables that the loader
//! uses.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use apportion_core::param::{CLASS_KEY, Entry, Kind, PARENT_KEY, Param, Preset, Range, Role, Variant};
use apportion_core::system::Catalog;
use serde_json::{Map, Value, json};

use crate::direction::Direction;
use crate::key::of;
use crate::model::{Aggregate, GilbertElliott, Jitter};
use crate::plans;
use crate::quic::QuicParams;
use crate::selection::Part;
use crate::sizes::SIZES;
use crate::sweep::LISTS;
use crate::tables::{
    ACCESS, AGREEMENT, CHANGE, CUSTOMER, DEFAULT_BACK, DEFAULTS, FLOW, LINK, LINK_LOSS, LINK_RATE, LOST,
    RATE_TABLE, ROOT, SOURCES, TOPOLOGIES,
};
use crate::tcp::{PROFILES, TcpParams};
use crate::transport;

/// Every kind of source.
#[must_use]
pub const fn sources() -> &'static [Variant] {
    SOURCES
}

/// Every predefined topology.
#[must_use]
pub const fn topologies() -> &'static [Variant] {
    TOPOLOGIES
}

/// The value of an absent key, for people: "required" if it must be set, empty if its doc describes what
/// happens.
#[must_use]
pub fn if_absent(key: &Param) -> &'static str {
    if key.is_required() { "required" } else { key.default.unwrap_or_default() }
}

/// The keys of scenario files as Markdown.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(REFERENCE_HEAD);
    let tables = [
        ("The file", "", ROOT),
        ("`[defaults]`", "", DEFAULTS),
        ("`[link.NAME]`", include_str!("reference/link.md"), LINK),
        ("`rate` of a link as a table: a recorded link", "", RATE_TABLE),
        ("`jitter` of a link as a table", "", Jitter::PARAMS),
        ("`aggregate` of a link", "", Aggregate::PARAMS),
        ("`loss` of a link as a table: bursts", "", GilbertElliott::PARAMS),
        ("`lost` of a link", "", LOST),
        ("`[flow.NAME]`", include_str!("reference/flow.md"), FLOW),
        ("`[customer.NAME]`", "", CUSTOMER),
        ("`[agreement.NAME]`", "", AGREEMENT),
        ("`[[change]]`", "", CHANGE),
    ];
    for (title, example, keys) in tables {
        let _ = write!(out, "\n## {title}\n{example}");
        markdown_keys(&mut out, keys);
    }
    let explained = [
        ("Topologies", include_str!("reference/topologies.md"), topologies()),
        ("Sources", include_str!("reference/sources.md"), sources()),
    ];
    for (title, text, variants) in explained {
        let _ = write!(out, "\n## {title}\n{text}");
        for variant in variants {
            let keys: Vec<_> = variant.params.iter().map(key_in_brief).collect();
            let line = format!("- `{}`: {} {}", variant.name, variant.doc, keys.join(", "));
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out.push_str("\n## Sizes of files\n");
    for variant in SIZES {
        let _ = write!(out, "\n### `{}`\n\n{}\n", variant.name, variant.doc);
        markdown_keys(&mut out, variant.params);
    }
    out + REFERENCE_TAIL
}

/// A key whose meaning stands elsewhere, with its default.
fn key_in_brief(key: &Param) -> String {
    match if_absent(key) {
        "" => format!("`{}`", key.name),
        "required" => format!("**`{}`**", key.name),
        text => format!("`{}` ({text})", key.name),
    }
}

const REFERENCE_HEAD: &str = include_str!("reference/head.md");
const REFERENCE_TAIL: &str = include_str!("reference/how_it_works.md");

pub(crate) fn markdown_keys(out: &mut String, keys: &[Param]) {
    if !keys.is_empty() {
        out.push('\n');
    }
    for key in keys {
        let value = match if_absent(key) {
            "" => format!("`{}`", key.kind.example()),
            "required" => format!("`{}`, required", key.kind.example()),
            text => format!("default `{text}`"),
        };
        let _ = writeln!(out, "- `{}` ({value}): {}", key.name, key.doc);
    }
}

/// A JSON Schema (draft 2020-12) of scenario files with the disciplines of `catalog`.
///
/// Schemas with many variants that are used in many places are defined once, under `$defs`.
#[must_use]
pub fn schema(catalog: &Catalog) -> Value {
    let mut schema = table_schema(ROOT);
    schema["$defs"] = json!({
        "queue": part_schema(catalog, Part::Queue),
        "mark": part_schema(catalog, Part::Marker),
        "exchange": part_schema(catalog, Part::Exchange),
        "tcp": tcp_schema(catalog),
        "quic": quic_schema(catalog),
        "transport": stack_schema(catalog),
        "source": variants_schema(SOURCES),
        "sizes": variants_schema(SIZES),
        "topology": variants_schema(TOPOLOGIES),
        "back": table_schema(DEFAULT_BACK),
        "access": table_schema(ACCESS),
        "aggregate": param_schema(&of(Kind::TableOrFalse(Aggregate::PARAMS))),
        "link_rate": param_schema(&LINK_RATE),
        "link_loss": param_schema(&LINK_LOSS),
    });
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("Apportion scenario");
    schema
}

fn table_schema(keys: &[Param]) -> Value {
    object(keys.iter().map(|key| (key.name, key_schema(key))), keys)
}

fn object<'a>(properties: impl Iterator<Item = (&'a str, Value)>, keys: &[Param]) -> Value {
    let properties: Map<String, Value> = properties.map(|(name, schema)| (name.to_owned(), schema)).collect();
    let required: Vec<_> = keys.iter().filter(|key| key.is_required()).map(|key| key.name).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// A reference to the definition of this name in [`schema`].
fn defined(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

fn key_schema(key: &Param) -> Value {
    let schema = match key.kind {
        Kind::Variants(_) => defined(if key.name.ends_with("size") { "sizes" } else { key.name }),
        Kind::Table(_) if key.name == "back" => defined("back"),
        // The other tables of this name have no defaults.
        Kind::Table(keys) if key.name == "access" && keys.iter().any(|key| key.default.is_some()) => {
            defined("access")
        }
        Kind::TableOrFalse(_) if key.name == "aggregate" => defined("aggregate"),
        Kind::OrTable(..) if ["rate", "loss"].contains(&key.name) => defined(&format!("link_{}", key.name)),
        _ => param_schema(key),
    };
    let container = matches!(key.kind, Kind::Table(_) | Kind::Map(_));
    let mut schema = if LISTS.contains(&key.name) || container { schema } else { swept(&schema) };
    schema["description"] = json!(key.doc);
    if let Some(text) = key.default {
        schema["default"] =
            text.parse().map_or_else(|_| json!(text), |number: serde_json::Number| json!(number));
    }
    schema
}

/// The schema of one value of `param`, in a scenario's own tables, where an amount may be a formula of `i`.
fn param_schema(param: &Param) -> Value {
    match param.kind {
        Kind::Limit | Kind::Packets | Kind::Threshold | Kind::MeanPackets | Kind::Tvf | Kind::Own(_) => {
            plain_schema(param.kind)
        }
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
        Kind::Form(example) => {
            json!({ "type": ["string", "integer"], "examples": [example.trim_matches('"')] })
        }
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::SwitchOrTexts => {
            json!({ "anyOf": [{ "type": "boolean" }, { "type": "array", "items": { "type": "string" } }] })
        }
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Discipline(_) => plain_schema(param.kind),
        Kind::Bytes | Kind::Span | Kind::Time | Kind::Rate | Kind::Ratio | Kind::Number | Kind::Count => {
            amount_schema(param.kind, param.range)
        }
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }),
        Kind::TextLists => {
            json!({ "type": "array", "items": param_schema(&Param { kind: Kind::Texts, ..*param }) })
        }
        Kind::Ordinals => {
            json!({ "type": "array", "items": { "type": "integer", "minimum": 1 }, "minItems": 1 })
        }
        Kind::Table(keys) => table_schema(keys),
        Kind::TableOrFalse(keys) => json!({ "anyOf": [{ "const": false }, table_schema(keys)] }),
        Kind::OrTable(kind, keys) => {
            json!({ "anyOf": [amount_schema(*kind, param.range), table_schema(keys)] })
        }
        Kind::Map(keys) => json!({ "type": "object", "additionalProperties": table_schema(keys) }),
        Kind::Tables(keys) => json!({ "type": "array", "items": table_schema(keys) }),
        Kind::Variants(variants) => variants_schema(variants),
        Kind::Defined(name, _) => defined(name),
        Kind::Any => json!({}),
    }
}

fn amount_schema(kind: Kind, range: Range) -> Value {
    let text = json!({ "type": "string", "examples": [kind.example().trim_matches('"')] });
    if !matches!(kind, Kind::Ratio | Kind::Number | Kind::Count) {
        return text;
    }
    let mut number = json!({ "type": if kind == Kind::Count { "integer" } else { "number" } });
    match range {
        Range::Any => (),
        Range::FromZero => number["minimum"] = json!(0),
        Range::AboveZero => number["exclusiveMinimum"] = json!(0),
        Range::AboveOne => number["exclusiveMinimum"] = json!(1),
        Range::UpTo(most) => {
            number["minimum"] = json!(1);
            number["maximum"] = json!(most);
        }
    }
    json!({ "anyOf": [number, text] })
}

fn variants_schema(variants: &[Variant]) -> Value {
    let names: Vec<_> = variants.iter().map(|variant| variant.name).collect();
    let mut forms = vec![json!({ "enum": names })];
    for variant in variants {
        let kind = json!({ "const": variant.name, "description": variant.doc });
        let keys = variant.params.iter().map(|key| (key.name, key_schema(key)));
        let mut form = object(std::iter::once(("kind", kind)).chain(keys), variant.params);
        if let Some(required) = form["required"].as_array_mut() {
            required.push(json!("kind"));
        }
        forms.push(form);
    }
    // With a swept `kind`, the other keys depend on its values.
    forms.push(
        json!({ "type": "object", "properties": { "kind": { "type": "array" } }, "required": ["kind"] }),
    );
    json!({ "anyOf": forms })
}

/// A value of this schema, or a list of such values to sweep.
fn swept(schema: &Value) -> Value {
    json!({ "anyOf": [schema, { "type": "array", "items": schema, "minItems": 1 }] })
}

/// [`swept`], with the key's description.
fn parameter(schema: &Value, doc: &str) -> Value {
    let mut schema = swept(schema);
    schema["description"] = json!(doc);
    schema
}

fn part_schema(catalog: &Catalog, part: Part) -> Value {
    let mut properties = Map::new();
    for (key, roles) in part.selectors() {
        let doc = match *key {
            "drop" => "Buffer policy of a scheduler.",
            "shaper" => "Shaper that limits the rate.",
            _ if part == Part::Queue => "Scheduler, buffer policy or whole system.",
            _ => "Kind, by name.",
        };
        properties
            .insert((*key).to_owned(), parameter(&json!({ "enum": names_of(catalog, part, roles) }), doc));
    }
    properties.insert(Preset::KEY.to_owned(), parameter(&json!({ "enum": Preset::NAMES }), Preset::DOC));
    properties.extend(parameters(part.entries(catalog).map(|entry| (entry.name, entry.params))));
    if part == Part::Queue {
        properties.insert(CLASS_KEY.to_owned(), classes_schema(catalog));
        let ways = json!({ "enum": Direction::BOTH.map(Direction::name) });
        let doc = "Direction whose rates in the file `plans` the classes have, in place of `class`.";
        properties.insert(plans::KEY.to_owned(), parameter(&ways, doc));
    }
    let required: &[&str] = if part.implied().is_some() { &[] } else { &["kind"] };
    let table = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
    });
    json!({ "anyOf": [{ "enum": names_of(catalog, part, part.selectors()[0].1) }, table] })
}

/// Classes by name, each with the keys of any discipline that has classes.
fn classes_schema(catalog: &Catalog) -> Value {
    let mut properties = Map::new();
    let parent = parameter(&json!({ "type": "string" }), "The class above it.");
    properties.insert(PARENT_KEY.to_owned(), parent);
    let params = |entry: &Entry| Some((entry.name, entry.traits.classes?.params));
    properties.extend(parameters(catalog.disciplines().filter_map(params)));
    let class = json!({ "type": "object", "properties": properties, "additionalProperties": false });
    json!({
        "type": "object", "additionalProperties": class,
        "description": "Classes of `prio`, `htb` and `hfsc` by name; flows belong to those with the names of their customers.",
    })
}

/// The parameters of `owners`, by name. If owners of one name differ in its kind, each of these kinds is
/// allowed, because selectors may be swept; if they differ in its doc, each doc names its owner.
fn parameters<'a>(
    owners: impl Iterator<Item = (&'a str, &'static [Param])>,
) -> impl Iterator<Item = (String, Value)> {
    let mut by_name = BTreeMap::<_, (Vec<Value>, Vec<(&str, Vec<String>)>)>::new();
    for (owner, params) in owners {
        for param in params {
            let (schemas, docs) = by_name.entry(param.name).or_default();
            let schema = plain_schema(param.kind);
            if !schemas.contains(&schema) {
                schemas.push(schema);
            }
            let owner = format!("`{owner}`");
            match docs.iter_mut().find(|(doc, _)| *doc == param.doc) {
                Some((_, owners)) => owners.push(owner),
                None => docs.push((param.doc, vec![owner])),
            }
        }
    }
    by_name.into_iter().map(|(name, (schemas, docs))| {
        let schema = if let [only] = &schemas[..] { only.clone() } else { json!({ "anyOf": schemas }) };
        let doc = match &docs[..] {
            [(only, _)] => (*only).to_owned(),
            _ => {
                let of = |(doc, owners): &(&str, Vec<String>)| format!("{}: {doc}", owners.join(", "));
                docs.iter().map(of).collect::<Vec<_>>().join("\n\n")
            }
        };
        (name.to_owned(), parameter(&schema, &doc))
    })
}

fn names_of(catalog: &Catalog, part: Part, roles: &[Role]) -> Vec<&'static str> {
    part.entries(catalog).filter(|entry| roles.contains(&entry.role)).map(|entry| entry.name).collect()
}

/// The schema of one value of a discipline's or transport's parameter: no formulas.
fn plain_schema(kind: Kind) -> Value {
    match kind {
        Kind::Ratio => json!({ "type": ["number", "string"] }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Count => json!({ "type": "integer", "minimum": 0 }),
        Kind::Switch => json!({ "type": "boolean" }),
        Kind::Choice(words) => json!({ "enum": words }),
        Kind::Tvf => json!({ "type": "string" }),
        Kind::Own(_) => json!({ "type": ["string", "integer"] }),
        Kind::Discipline(place) => {
            json!({ "enum": Catalog::inside(place).map(|entry| entry.name).collect::<Vec<_>>() })
        }
        _ => json!({ "type": "string" }),
    }
}

fn tcp_schema(catalog: &Catalog) -> Value {
    let names: Vec<_> = PROFILES.iter().map(|entry| entry.name).collect();
    let mut properties = Map::new();
    properties.insert(
        "profile".to_owned(),
        parameter(&json!({ "enum": names }), "Profile with the initial values of all parameters."),
    );
    let words: Vec<_> = names.into_iter().chain(transport::algorithms(catalog, true)).collect();
    transport_schema(&words, properties, TcpParams::PARAMS)
}

/// `false`, or one of the registered stacks with its parameters.
fn stack_schema(catalog: &Catalog) -> Value {
    match catalog.stacks().next() {
        Some(_) => json!({ "anyOf": [{ "const": false }, part_schema(catalog, Part::Stack)] }),
        None => json!({ "const": false }),
    }
}

fn quic_schema(catalog: &Catalog) -> Value {
    let words: Vec<_> = transport::quic_algorithms(catalog).collect();
    transport_schema(&words, Map::new(), QuicParams::PARAMS)
}

/// One of `words`, `false`, or a table with `properties` and the parameters.
fn transport_schema(
    words: &[impl AsRef<str>],
    mut properties: Map<String, Value>,
    params: &[Param],
) -> Value {
    for param in params {
        let doc = match param.kind {
            Kind::Own(what) => format!("{} Written as {what}.", param.doc),
            _ => param.doc.to_owned(),
        };
        properties.insert(param.name.to_owned(), parameter(&plain_schema(param.kind), &doc));
    }
    let words: Vec<_> = words.iter().map(AsRef::as_ref).collect();
    let table = json!({
        "type": "object", "properties": properties, "additionalProperties": false,
    });
    json!({ "anyOf": [{ "enum": words }, { "const": false }, table] })
}

#[cfg(test)]
mod fits;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_knows_every_key_with_its_documentation() {
        let schema = schema(&Catalog::default());
        let at = |pointer: &str| schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")).clone();
        assert_eq!(at("/required"), json!(["seed", "stop"]));
        assert_eq!(at("/additionalProperties"), json!(false));
        let flow = "/properties/flow/additionalProperties/properties";
        assert_eq!(at(&format!("{flow}/count/anyOf/0/anyOf/0/maximum")), json!(1_000_000));
        assert_eq!(at(&format!("{flow}/weight/default")), json!(1));
        assert_eq!(at(&format!("{flow}/path/type")), json!("array"));
        let queue = "/properties/link/additionalProperties/properties/queue";
        assert_eq!(at(&format!("{queue}/anyOf/0/$ref")), json!("#/$defs/queue"));
        assert_eq!(at("/$defs/queue/anyOf/1/properties/quantum/anyOf/0/type"), json!("string"));
        assert!(at("/$defs/tcp").to_string().contains("\"ns2-235\""));
        for key in ROOT.iter().chain(FLOW).chain(LINK).chain(CHANGE) {
            assert!(schema.to_string().contains(&json!(key.doc).to_string()), "{}", key.name);
        }
    }

    #[test]
    fn the_schema_defines_what_it_refers_to_and_nothing_twice() {
        fn references<'a>(value: &'a Value, found: &mut std::collections::BTreeSet<&'a str>) {
            match value {
                Value::Object(map) => {
                    found.extend(map.get("$ref").and_then(Value::as_str));
                    map.values().for_each(|value| references(value, found));
                }
                Value::Array(all) => all.iter().for_each(|value| references(value, found)),
                _ => (),
            }
        }
        let schema = schema(&Catalog::default());
        let mut found = std::collections::BTreeSet::new();
        references(&schema, &mut found);
        let defined: Vec<String> = schema["$defs"]
            .as_object()
            .into_iter()
            .flat_map(|all| all.keys().map(|name| format!("#/$defs/{name}")))
            .collect();
        assert_eq!(found.into_iter().collect::<Vec<_>>(), defined);
        // Editors read the schema for every file they open. Without `$defs` it had 364 kB; each discipline
        // and marker of the catalogue adds its parameters once, some 2 kB: this limit leaves room for a few
        // more of them, and none for copies.
        let size = schema.to_string().len();
        assert!((1..152_000).contains(&size), "{size}");
    }

    #[test]
    fn every_complete_example_loads_without_a_warning() {
        let page = reference();
        let read = |path: &std::path::Path| std::fs::read(path);
        let points = page.split("```toml\n").skip(1).filter(|block| block.starts_with("seed")).map(|block| {
            let (example, _) = block.split_once("```").unwrap();
            let suite = crate::load(example, std::path::Path::new("example.toml"), &[], &read);
            let points = suite.unwrap_or_else(|problems| panic!("{problems:?}\n{example}")).points;
            for point in &points {
                assert_eq!(point.scenario.warnings(), [""; 0], "{example}");
            }
            points.len()
        });
        assert_eq!(points.collect::<Vec<_>>(), [2, 1, 1, 1, 1, 1]);
    }

    #[test]
    fn the_reference_is_the_page_in_the_documentation() {
        let page = include_str!("../../../docs/scenario.md");
        assert!(
            page == reference(),
            "write the output of `cargo run -p apportion-scenario --example reference` to docs/scenario.md"
        );
    }
}
