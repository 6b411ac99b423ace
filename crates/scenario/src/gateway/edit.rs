//! A configuration with other weights, rates or queues, for changes from the page of a running gateway.
//!
//! Keys are written as in a [difference](super::Difference): `up.rate`, `down.queue`, `rule.calls.weight`,
//! `customer.smith.weight`. The resulting text is loaded and checked like any other.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::tables::{AUTO, FASTEST, LINK, SLOWEST, THRESHOLD};
use super::written::{Entry, Section, number, text_of};
use super::{GatewayConfig, Setting};
use crate::problem::{Place, did_you_mean};
use crate::text::{Item, Table, Value, join, parse_value, quoted};

/// Maximum of keys in one change. Chosen: an operator reads the difference of all of them before it is
/// applied.
pub const MAX_SET: usize = 64;

/// Whether this key can be set while the gateway runs.
fn is_settable(entry: &Entry) -> bool {
    matches!(entry.setting, Setting::Rate(_) | Setting::Queue(_)) || entry.key == "weight"
}

impl GatewayConfig {
    /// The keys that [`edited`](Self::edited) accepts and their values as TOML, in the order of the file.
    /// Weights of customers are included if they [count](Self::weighs_customers).
    #[must_use]
    pub fn settable(&self) -> Vec<(String, String)> {
        let of = |section: Section| {
            let own = section.entries.into_iter().filter(is_settable);
            own.map(|entry| (join(&section.path, entry.key), entry.text)).collect::<Vec<_>>()
        };
        self.sections().into_iter().flat_map(of).collect()
    }

    /// The text of this configuration with these values of keys. A rate is a string with its unit, a weight a
    /// number. A queue is the name of a discipline, a table, or the text of a table in TOML. Only the keys
    /// are checked, and that values are TOML.
    ///
    /// # Errors
    /// Each key that cannot be set, with the reason and how to mend it.
    pub fn edited(&self, set: &Map<String, Json>) -> Result<String, Vec<String>> {
        if set.is_empty() || set.len() > MAX_SET {
            let message = format!(
                "set: {} keys; write 1 to {MAX_SET}, for example {{ \"up.rate\": \"20Mbit\" }}",
                set.len()
            );
            return Err(vec![message]);
        }
        let mut sections = self.sections();
        let mut entries = BTreeMap::new();
        for Section { path, entries: own, .. } in &mut sections {
            let own = own.iter_mut().filter(|entry| is_settable(entry));
            entries.extend(own.map(|entry| (join(path, entry.key), entry)));
        }
        let mut wrong = Vec::new();
        for (key, value) in set {
            let Some(entry) = entries.get_mut(key) else {
                wrong.push(unknown(key, entries.keys()));
                continue;
            };
            match written(value, matches!(entry.setting, Setting::Queue(_))) {
                Ok(text) => entry.text = text,
                Err(why) => wrong.push(format!("{key}: {why}")),
            }
        }
        sections.iter_mut().for_each(|section| {
            forget_bounds(section, set);
            forget_weights(section, set);
        });
        if wrong.is_empty() { Ok(text_of(&sections)) } else { Err(wrong) }
    }

    /// The path of a key with the name of its rule, as in [`settable`](Self::settable), if a problem names
    /// the rule by its position.
    #[must_use]
    pub fn path_by_name(&self, path: &str) -> String {
        let of_rule = || {
            let (position, key) = path.strip_prefix("rule[")?.split_once(']')?;
            let rule = self.rules.get(position.parse::<usize>().ok()?.checked_sub(1)?)?;
            Some(join("rule", &rule.name) + key)
        };
        of_rule().unwrap_or_else(|| path.to_owned())
    }
}

/// A rate that no longer follows the link has no bounds, unless the change names them too: then they are refused.
fn forget_bounds(Section { path, entries, .. }: &mut Section, set: &Map<String, Json>) {
    let is_fixed = |entry: &Entry| entry.key == "rate" && entry.text != quoted(AUTO);
    if entries.iter().any(is_fixed) {
        let is_bound = |entry: &Entry| [FASTEST, SLOWEST, THRESHOLD, LINK].contains(&entry.key);
        entries.retain(|entry| !is_bound(entry) || set.contains_key(&join(path, entry.key)));
    }
}

/// A new queue may have classes, which exclude weights of customers: a customer's default weight is left out.
fn forget_weights(Section { path, entries, .. }: &mut Section, set: &Map<String, Json>) {
    if set.keys().any(|key| key.ends_with(".queue")) {
        let is_given = |entry: &Entry| set.contains_key(&join(path, entry.key));
        let is_default = |entry: &Entry| entry.setting == Setting::Customers && entry.text == number(1.0);
        entries.retain(|entry| is_given(entry) || !is_default(entry));
    }
}

/// Refuses a key that is not one of `known`.
fn unknown<'a>(key: &str, known: impl Iterator<Item = &'a String> + Clone) -> String {
    // Other keys first, because customers may be thousands.
    let of_customers = |key: &&String| key.starts_with("customer.");
    let known = known.clone().filter(|key| !of_customers(key)).chain(known.filter(of_customers));
    let guess = did_you_mean(key, known.take(1_000).map(String::as_str));
    format!(
        "{key}: cannot be set while the gateway runs{guess}; write `up.rate`, `down.rate`, `up.queue`, `down.queue`, \
         `rule.NAME.weight` or `customer.NAME.weight`, or change the file and reload"
    )
}

/// A value as TOML.
fn written(value: &Json, is_queue: bool) -> Result<String, String> {
    let item = match value {
        Json::String(text) if is_queue && text.trim_start().starts_with('{') => parse_value(text.trim())
            .map_err(|why| {
                format!("{why}; write for example {{ kind = \"fq_codel\", limit = \"1000p\" }}")
            })?,
        value => item(value)?,
    };
    Ok(item.to_string())
}

fn item(value: &Json) -> Result<Item, String> {
    let value = match value {
        Json::Null => return Err("null is no value; write one, or leave the key out".to_owned()),
        Json::Bool(flag) => Value::Flag(*flag),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Value::Integer(whole),
            (None, Some(float)) if float.is_finite() => Value::Float(float),
            _ => Value::Huge(number.to_string()),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(item).collect::<Result<_, _>>()?),
        Json::Object(entries) => {
            let entry = |(key, value): (&String, &Json)| item(value).map(|item| (key.clone(), item));
            Value::Table(Table { entries: entries.iter().map(entry).collect::<Result<_, _>>()? })
        }
    };
    Ok(Item { value, place: Place::Override })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    const TEXT: &str = "inside = \"a\"\noutside = \"b\"\nup = { rate = \"1Mbit\", queue = \"drr\" }\ndown.rate = \"1Mbit\"\n\
                        [[rule]]\nname = \"a \\\"b\\\" = 1\"\ncustomer = \"smith\"\nto_port = 5\n[[rule]]\n";

    fn load(text: &str) -> GatewayConfig {
        GatewayConfig::load(text, Path::new("x.toml"))
            .unwrap_or_else(|problems| panic!("{problems:?}\n{text}"))
    }

    /// The changes if this is set.
    fn changes(set: &Json) -> String {
        let config = load(TEXT);
        let text = config.edited(set.as_object().unwrap()).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        config.difference(&load(&text)).unwrap().to_string()
    }

    #[test]
    fn what_is_set_changes_and_nothing_else() {
        for (set, expected) in [
            (json!({ "up.rate": "2Mbit" }), "up.rate: 1Mbit -> 2Mbit\n"),
            (json!({ "down.rate": "1Mbit" }), ""),
            (json!({ "customer.smith.weight": 3 }), "customer.smith.weight: 1.0 -> 3.0\n"),
            (
                json!({ "rule.\"a \\\"b\\\" = 1\".weight": 2.5, "rule.\"rule 2\".weight": 7 }),
                "rule.\"a \\\"b\\\" = 1\".weight: 1.0 -> 2.5\nrule.\"rule 2\".weight: 1.0 -> 7.0\n",
            ),
        ] {
            assert_eq!(changes(&set), expected, "{set}");
        }
        let one = changes(&json!({ "up.queue": { "kind": "fifo", "limit": "9p" } }));
        assert!(one.starts_with("up.queue: { kind = \"drr\"") && one.contains("limit = \"9p\""), "{one}");
        assert_eq!(changes(&json!({ "up.queue": " { kind = \"fifo\", limit = \"9p\" }" })), one);
        assert_eq!(changes(&json!({ "up.queue": "drr" })), "");
    }

    #[test]
    fn what_cannot_be_set_is_named_with_the_mend() {
        let config = load(TEXT);
        let wrong = |set: Json| config.edited(set.as_object().unwrap()).unwrap_err().join("\n");
        for (set, expected) in [
            (json!({}), "set: 0 keys; write 1 to 64"),
            (
                json!({ "up.rat": "1Mbit" }),
                "up.rat: cannot be set while the gateway runs (did you mean `up.rate`?); write",
            ),
            (json!({ "inside": "x" }), "inside: cannot be set while"),
            (json!({ "rule.nobody.weight": 1 }), "rule.nobody.weight: cannot be set"),
            (json!({ "up.rate": null }), "up.rate: null is no value"),
            (json!({ "up.queue": "{ kind = \"fifo\" }\nloss = 1" }), "up.queue: not valid TOML: "),
            (json!({ "up.queue": "{" }), "up.queue: not valid TOML: "),
        ] {
            let said = wrong(set.clone());
            assert!(said.starts_with(expected), "{set}: {said}");
        }
        let many: Map<String, Json> = (0..65).map(|at| (at.to_string(), json!(1))).collect();
        assert!(config.edited(&many).unwrap_err()[0].starts_with("set: 65 keys"));
    }

    #[test]
    fn a_rate_that_is_fixed_has_no_bounds_any_more() {
        let config = load(&TEXT.replace(
            "down.rate = \"1Mbit\"",
            "down = { rate = \"auto\", rate_max = \"9Mbit\", rate_delay = \"7ms\" }",
        ));
        let edited = |set: Json| config.edited(set.as_object().unwrap()).unwrap();
        let fixed = load(&edited(json!({ "down.rate": "5Mbit" })));
        assert_eq!((fixed.down.rate.to_string().as_str(), fixed.down.auto), ("5Mbit", None));
        let said = config.difference(&fixed).unwrap().to_string();
        assert!(
            said.starts_with("down.rate: auto -> 5Mbit\n") && said.contains("down.rate_max: 9Mbit -> none\n"),
            "{said}"
        );
        // Bounds change while the rate follows the link, and are refused if the same change fixes it.
        let other = load(&edited(json!({ "down.rate_max": "8Mbit" })));
        assert_eq!(config.difference(&other).unwrap().to_string(), "down.rate_max: 9Mbit -> 8Mbit\n");
        let both = edited(json!({ "down.rate": "5Mbit", "down.rate_max": "8Mbit" }));
        let problems = GatewayConfig::load(&both, Path::new("x.toml")).unwrap_err();
        assert!(problems.iter().any(|problem| problem.path == "down.rate_max"), "{problems:?}");
    }

    /// With classes a weight of a customer is refused, even the default one.
    #[test]
    fn a_queue_with_classes_takes_the_place_of_one_that_weighs_customers() {
        let classes =
            "{ kind = \"prio\", class = { smith = { prio = 0 }, rest = { prio = 1, others = true } } }";
        let said = changes(&json!({ "up.queue": classes, "down.queue": classes }));
        assert!(said.contains("up.queue: "), "{said}");
        let config = load(&TEXT.replace("[[rule]]\nname", "[customer.smith]\nweight = 3\n[[rule]]\nname"));
        let text = config.edited(json!({ "up.queue": classes }).as_object().unwrap()).unwrap();
        let problems = GatewayConfig::load(&text, Path::new("x.toml")).unwrap_err();
        assert!(problems.iter().any(|problem| problem.path == "customer.smith.weight"), "{problems:?}");
    }

    #[test]
    fn a_rule_is_named_as_it_was_set() {
        let config = load(TEXT);
        assert_eq!(config.path_by_name("rule[2].weight"), "rule.\"rule 2\".weight");
        for path in ["rule[0].weight", "rule[3].weight", "rule[x]", "up.rate"] {
            assert_eq!(config.path_by_name(path), path);
        }
    }

    #[test]
    fn a_value_is_a_value_whatever_is_in_it() {
        let config = load(TEXT);
        let text = config.edited(json!({ "up.rate": "1\"\ninside = \"x" }).as_object().unwrap()).unwrap();
        let problems = GatewayConfig::load(&text, Path::new("x.toml")).unwrap_err();
        assert!(problems.len() == 1 && problems[0].path == "up.rate", "{problems:?}");
    }

    #[test]
    fn every_value_that_is_offered_can_be_set() {
        let provider = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/gateway/provider.toml");
        let text = std::fs::read_to_string(&provider).unwrap();
        let config = GatewayConfig::load(&text, &provider).unwrap();
        let offered = config.settable();
        assert!(load(TEXT).settable().iter().any(|(key, _)| key == "customer.smith.weight"));
        assert!(!offered.iter().any(|(key, _)| key.starts_with("customer.")), "{offered:?}");
        let set: Map<String, Json> = offered
            .into_iter()
            .take(MAX_SET)
            .map(|(key, text)| {
                let value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
                (key, value)
            })
            .collect();
        let again = GatewayConfig::load(&config.edited(&set).unwrap(), &provider).unwrap();
        assert_eq!(config.difference(&again).unwrap().to_string(), "");
    }
}
