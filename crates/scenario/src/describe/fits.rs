//! Checks that values which the loader accepts fit the schema.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use apportion_core::param::{Entry, Kind, Param, Preset, Role};
use apportion_core::system::Catalog;
use serde_json::{Value, json};

use super::schema;
use crate::keys::toml;
use crate::selection::Part;
use crate::text::quoted;

/// Whether `value`, at `path`, fits `schema`, a part of `root`; else the place that does not fit, the deepest
/// one of alternatives.
///
/// It supports the keywords of JSON Schema that [`schema`] uses, and panics on others.
fn fit(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    let require = |holds| if holds { Ok(()) } else { Err(path.to_owned()) };
    let below =
        |schema, key: &dyn std::fmt::Display, value| fit(root, schema, value, &format!("{path}.{key}"));
    let number = value.as_f64();
    for (word, rule) in schema.as_object().unwrap() {
        let least = || rule.as_u64().unwrap() as usize;
        let bound = || rule.as_f64().unwrap();
        match word.as_str() {
            "$defs" | "$schema" | "title" | "description" | "default" | "examples" => (),
            "$ref" => {
                let at = rule.as_str().unwrap().strip_prefix('#').unwrap();
                fit(root, root.pointer(at).unwrap(), value, path)?;
            }
            "anyOf" => {
                let schemas = rule.as_array().unwrap();
                let misfits = schemas.iter().map_while(|schema| fit(root, schema, value, path).err());
                let misfits: Vec<_> = misfits.collect();
                if misfits.len() == schemas.len() {
                    return Err(misfits.into_iter().max_by_key(String::len).unwrap());
                }
            }
            "type" => {
                let is = |name: &Value| match name.as_str().unwrap() {
                    "string" => value.is_string(),
                    "number" => value.is_number(),
                    "integer" => value.is_u64() || value.is_i64(),
                    "boolean" => value.is_boolean(),
                    "array" => value.is_array(),
                    "object" => value.is_object(),
                    other => panic!("{other}"),
                };
                require(rule.as_array().map_or_else(|| is(rule), |names| names.iter().any(is)))?;
            }
            "enum" => require(rule.as_array().unwrap().contains(value))?,
            "const" => require(rule == value)?,
            "minimum" => require(number.is_none_or(|number| number >= bound()))?,
            "maximum" => require(number.is_none_or(|number| number <= bound()))?,
            "exclusiveMinimum" => require(number.is_none_or(|number| number > bound()))?,
            "minLength" => require(value.as_str().is_none_or(|text| text.len() >= least()))?,
            "minItems" => require(value.as_array().is_none_or(|items| items.len() >= least()))?,
            "items" => {
                for (at, item) in value.as_array().into_iter().flatten().enumerate() {
                    below(rule, &at, item)?;
                }
            }
            "required" => {
                let keys = rule.as_array().unwrap().iter().map(|key| key.as_str().unwrap());
                require(
                    value.as_object().is_none_or(|table| keys.clone().all(|key| table.contains_key(key))),
                )?;
            }
            "properties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    rule.get(key).map_or(Ok(()), |schema| below(schema, key, value))?;
                }
            }
            "additionalProperties" => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    match schema.get("properties").and_then(|known| known.get(key)) {
                        None if *rule == false => return Err(format!("{path}.{key}")),
                        None => below(rule, key, value)?,
                        Some(_) => (),
                    }
                }
            }
            other => panic!("{other}"),
        }
    }
    Ok(())
}

/// A TOML file as JSON.
fn json_of(text: &str) -> Value {
    ::toml::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The example of `param`, and its values with each preset, as TOML.
fn values(param: &Param) -> BTreeSet<String> {
    let presets = [Preset::Default, Preset::Paper].map(|preset| param.preset(preset));
    let written = presets.into_iter().flatten();
    match param.kind {
        Kind::Discipline(place) => {
            let names = Catalog::inside(place).map(|entry| entry.name);
            names.chain(written).map(quoted).collect()
        }
        kind => {
            let values = written.map(|text| toml(param.parse(text).unwrap()));
            values.chain([kind.example()]).collect()
        }
    }
}

#[test]
fn examples_defaults_and_paper_values_fit_the_schema() {
    let catalog = Catalog::default();
    let root = schema(&catalog);
    let mut tables = 0;
    let mut check = |part: Part, text: String| {
        let value = &json_of(&format!("x = {text}"))["x"];
        assert_eq!(fit(&root, &root["$defs"][part.key()], value, ""), Ok(()), "{text}");
        tables += 1;
    };
    let of = |entry: &Entry, settings: &str| match entry.role {
        Role::Shaper => format!("{{ kind = \"fifo\", shaper = \"{}\", {settings} }}", entry.name),
        Role::Isolation => format!("{{ kind = \"drr\", {settings} }}"),
        _ => format!("{{ kind = \"{}\", {settings} }}", entry.name),
    };
    for part in [Part::Queue, Part::Marker, Part::Exchange] {
        for entry in part.entries(&catalog) {
            for param in entry.params {
                for value in values(param) {
                    check(part, of(entry, &format!("{} = {value}", param.name)));
                }
            }
            for param in entry.traits.classes.into_iter().flat_map(|class| class.params) {
                for value in values(param) {
                    check(part, of(entry, &format!("class = {{ a = {{ {} = {value} }} }}", param.name)));
                }
            }
        }
    }
    assert!(tables > 300, "{tables}");
}

#[test]
fn a_parameter_takes_the_kinds_of_all_its_owners() {
    let root = schema(&Catalog::default());
    let queue = |text: &str| fit(&root, &root["$defs"]["queue"], &json_of(&format!("x = {text}"))["x"], "");
    for fits in [
        "{ kind = \"csfq\", k = \"100ms\" }",
        "{ kind = \"dualpi2\", k = 2 }",
        "{ kind = \"aifo\", sample = [4, 8] }",
    ] {
        assert_eq!(queue(fits), Ok(()), "{fits}");
    }
    for (misfits, at) in [
        ("{ kind = \"csfq\", k = true }", ".k"),
        ("{ kind = \"drr\", quantum = [\"1500B\", 2] }", ".quantum.1"),
        ("{ kind = \"drr\", speed = 2 }", ".speed"),
        ("{ drop = \"red\" }", ""),
        ("\"none\"", ""),
    ] {
        assert_eq!(queue(misfits), Err(at.to_owned()), "{misfits}");
    }
    let doc = &root["$defs"]["queue"]["anyOf"][1]["properties"]["sample"]["description"];
    let docs: Vec<_> =
        doc.as_str().unwrap().split("\n\n").map(|doc| doc.split(':').next().unwrap()).collect();
    assert_eq!(docs, ["`aifo`, `packs`", "`ramp`"]);
}

#[test]
fn every_scenario_fits() {
    fn files(folder: PathBuf, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if ["scenarios/gateway", "scenarios/services", "scenarios/stacks"]
                .iter()
                .any(|folder| path.ends_with(folder))
            {
                continue;
            } else if path.is_dir() {
                files(path, found);
            } else if path.extension().is_some_and(|of| of == "toml") && !path.ends_with("expect.toml") {
                found.push(path);
            }
        }
    }
    let root = schema(&Catalog::default());
    let mut found = Vec::new();
    for folder in ["scenarios", "papers"] {
        files(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder), &mut found);
    }
    assert!(found.len() > 100, "{}", found.len());
    for path in found {
        let value = json_of(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(fit(&root, &root, &value, ""), Ok(()), "{}", path.display());
    }
    assert_eq!(fit(&root, &root, &json!({ "seed": 1 }), ""), Err(String::new()));
}
