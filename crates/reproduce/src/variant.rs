//! Variants: the experiments of a paper with other settings, reported in addition and never judged.
//!
//! A variant is written once and applied to many scenarios. `set` holds paths as `--set` takes them; `params`
//! holds parameters by owner (`tred.n`, `tickets.decay`, `tcp.segment`), and applies wherever a scenario has
//! this owner.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::{Table, Value};

use crate::expect::Content;
use crate::measure::Measure;
use crate::value::text_of;

/// The changed settings, and the experiments to which they apply.
#[derive(Clone, Debug, Deserialize)]
pub struct Variant {
    /// Line in the file, counting from 1.
    #[serde(rename = "$line", default)]
    pub line: u32,
    /// Name for `--variants` and in results.
    pub name: String,
    /// A sentence for readers.
    pub about: String,
    /// Overrides of every run. A table under the name of a scenario file or the id of an experiment holds
    /// overrides of these runs alone.
    #[serde(default)]
    pub set: BTreeMap<String, Value>,
    /// Values of parameters by owner and name, for example `tred.n`: of every discipline, marker, exchange
    /// and source with this name; `tcp` stands for every TCP.
    #[serde(default)]
    pub params: BTreeMap<String, Value>,
    /// Replacements of scenario files.
    #[serde(default)]
    pub replace: BTreeMap<String, String>,
    /// Experiments of the variant; if empty, those of the columns, or all for a variant that belongs to every
    /// run.
    #[serde(default)]
    pub experiments: Vec<String>,
    /// Whether the variant belongs to every run: tables then have a column with its numbers.
    #[serde(default)]
    pub beside: bool,
}

/// A column of the table of variants.
#[derive(Clone, Debug, Deserialize)]
pub struct Column {
    /// Line in the file, counting from 1.
    #[serde(rename = "$line", default)]
    pub line: u32,
    /// Heading of the column.
    pub title: String,
    /// Experiment of the column, or `EXPERIMENT:METRIC`.
    pub of: String,
    /// The measure; the metric's own if absent.
    pub measure: Option<Measure>,
    /// Reduction to one number.
    pub give: Reduction,
}

/// Reduction of a claim or measure to one number. Errors are those of means over seeds: systematic errors,
/// not the variance of single runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reduction {
    /// The mean over seeds.
    Measured,
    /// √(mean of (measured / published - 1)²) over the numbers of a claim.
    RmsPublished,
    /// Like [`Self::RmsPublished`], against entitlements.
    RmsIdeal,
    /// The largest |measured / ideal - 1|.
    WorstIdeal,
}

impl Column {
    /// Id of the column's experiment, and name of its metric if any.
    pub(crate) fn place(&self) -> (&str, Option<&str>) {
        match self.of.split_once(':') {
            Some((experiment, metric)) => (experiment, Some(metric)),
            None => (&self.of, None),
        }
    }
}

/// Parts of a variant that apply to at least one run.
pub(crate) type Used = BTreeSet<String>;

/// Entry in [`Used`] for one of `params` that changed a run.
pub(crate) fn change(param: &str) -> String {
    format!("change by params.{param}")
}

impl Variant {
    /// Whether the variant changes anything in the runs of an experiment.
    pub(crate) fn covers(&self, id: &str, content: &Content) -> bool {
        let column = |column: &Column| column.place().0 == id;
        match self.experiments.is_empty() {
            false => self.experiments.iter().any(|named| named == id),
            true => self.beside || content.columns.is_empty() || content.columns.iter().any(column),
        }
    }

    /// File of a run of `scenario`, with the overrides of `set`.
    pub(crate) fn overrides(
        &self,
        experiment: &str,
        scenario: &str,
        used: &mut Used,
    ) -> (String, Vec<(String, String)>) {
        let file = self.replace.get(scenario).map(String::as_str);
        if file.is_some() {
            used.insert(format!("replace.{scenario}"));
        }
        let file = file.unwrap_or(scenario);
        let mut overrides = Vec::new();
        for (key, value) in &self.set {
            match value.as_table().filter(|_| is_place(key)) {
                Some(own) if key == experiment || key == file => {
                    used.insert(format!("set.{key}"));
                    overrides.extend(own.iter().map(|(path, value)| (path.clone(), text_of(value))));
                }
                Some(_) => (),
                None => overrides.push((key.clone(), text_of(value))),
            }
        }
        (file.to_owned(), overrides)
    }

    /// Overrides that apply each of `params` to a scenario, given as its canonical text.
    pub(crate) fn spread(&self, canonical: &str, used: &mut Used) -> Vec<(&str, Vec<(String, String)>)> {
        let Ok(root) = canonical.parse::<Table>() else { return Vec::new() };
        let mut spread = Vec::new();
        for (param, value) in &self.params {
            let Some((owner, name)) = param.split_once('.') else { continue };
            let put = |path| (format!("{path}.{name}"), text_of(value));
            let overrides: Vec<_> = owners(&root, owner).into_iter().map(put).collect();
            if !overrides.is_empty() {
                used.insert(format!("params.{param}"));
                spread.push((param.as_str(), overrides));
            }
        }
        spread
    }

    /// Parts that apply to no run: the key, and a message with the correction.
    pub(crate) fn unused(&self, used: &Used) -> Vec<(String, String)> {
        let (mut all, mut inert) = (Vec::new(), Vec::new());
        for key in
            self.set.iter().filter(|(key, value)| is_place(key) && value.is_table()).map(|(key, _)| key)
        {
            all.push((format!("set.{key}"), "is no scenario file or experiment of its runs".to_owned()));
        }
        for key in self.params.keys() {
            let owner = key.split('.').next().unwrap_or_default();
            let place = format!("params.{key}");
            if !used.contains(&place) {
                all.push((place, format!("no scenario of its runs has a `{owner}`")));
            } else if !used.contains(&change(key)) {
                let hint = if key == "tcp.profile" { " (they name each parameter of it)" } else { "" };
                inert.push((place, format!("it changes nothing in the scenarios of its runs{hint}")));
            }
        }
        for key in self.replace.keys() {
            all.push((format!("replace.{key}"), "is no scenario file of its runs".to_owned()));
        }
        all.retain(|(key, _)| !used.contains(key));
        all.into_iter()
            .chain(inert)
            .map(|(key, message)| (key, format!("{message}; correct it or leave it out")))
            .collect()
    }
}

/// Whether a key of `set` names a scenario or an experiment; no path of a scenario has a slash or this end.
fn is_place(key: &str) -> bool {
    key.contains('/') || key.ends_with(".toml")
}

/// Paths of the tables that hold the parameters of `owner`.
fn owners(root: &Table, owner: &str) -> Vec<String> {
    /// Keys whose values name entries of the catalogue, or sources.
    const HOLDERS: [&str; 4] = ["queue", "mark", "exchange", "source"];
    fn walk(table: &Table, path: &str, owner: &str, found: &mut Vec<String>) {
        for (key, value) in table {
            let Some(inner) = value.as_table() else { continue };
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{}", quoted(key)) };
            let is = |selector: &str| inner.get(selector).and_then(Value::as_str) == Some(owner);
            let of_catalogue = HOLDERS.contains(&key.as_str()) && (is("kind") || is("drop"));
            // A group of flows may be called `tcp`; only a TCP has a profile.
            let of_tcp = key == "tcp" && owner == "tcp" && inner.contains_key("profile");
            if of_catalogue || of_tcp {
                found.push(path.clone());
            }
            walk(inner, &path, owner, found);
        }
    }
    let mut found = Vec::new();
    walk(root, "", owner, &mut found);
    found
}

/// A key as part of a path.
fn quoted(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if key.chars().all(bare) { key.to_owned() } else { format!("\"{key}\"") }
}

/// Checks the variants and columns of a file; reports problems by place.
pub(crate) fn check(content: &Content, add: &mut dyn FnMut(u32, &str, String)) {
    let ids = || content.experiments.iter().map(|experiment| experiment.id.as_str());
    let unknown = |id: &str| {
        let guess = apportion_scenario::did_you_mean(id, ids());
        format!("the file has no experiment `{id}`{guess}")
    };
    let mut names = BTreeSet::new();
    for variant in &content.variants {
        let place = format!("variant {}", variant.name);
        if !names.insert(&variant.name) {
            add(variant.line, &place, "there are two variants of this name; rename one".to_owned());
        }
        for id in variant.experiments.iter().filter(|id| ids().all(|known| known != id.as_str())) {
            add(variant.line, &format!("{place}: experiments"), unknown(id));
        }
        for param in variant.params.keys().filter(|param| !param.contains('.')) {
            let message = "its owner is missing; write for example \"tred.n\"".to_owned();
            add(variant.line, &format!("{place}: params.{param}"), message);
        }
    }
    for column in &content.columns {
        let place = format!("column {}: of", column.title);
        let (id, metric) = column.place();
        let Some(experiment) = content.experiments.iter().find(|experiment| experiment.id == id) else {
            add(column.line, &place, unknown(id));
            continue;
        };
        let found = metric.and_then(|name| experiment.metrics.iter().find(|metric| metric.name == name));
        match (metric, &column.measure) {
            (Some(name), None) if found.is_none() => {
                let guess = apportion_scenario::did_you_mean(
                    name,
                    experiment.metrics.iter().map(|metric| metric.name.as_str()),
                );
                add(column.line, &place, format!("{id} has no metric `{name}`{guess}"));
            }
            (Some(_), None) | (None, Some(_)) => (),
            _ => add(
                column.line,
                &place,
                "write either EXPERIMENT:METRIC, or EXPERIMENT and a `measure`".to_owned(),
            ),
        }
        if column.give == Reduction::RmsPublished && column.measure.is_some() {
            add(column.line, &place, "a `measure` has no published numbers; take a metric".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = r#"
[topology]
bottleneck = { rate = "1Mbit", queue = { kind = "drr", drop = "tred", n = 3.0 } }
[link."a.b"]
queue = { kind = "tred" }
[link.plain]
queue = { kind = "red" }
[flow.tcp]
mark = { kind = "tickets" }
[flow.tcp.tcp]
profile = "rfc"
"#;

    fn variant(text: &str) -> Variant {
        apportion_scenario::document::read(&format!("name = \"x\"\nabout = \"y\"\n{text}"), "x.toml")
            .unwrap_or_else(|problems| panic!("{problems:?}"))
    }

    #[test]
    fn a_parameter_is_put_wherever_its_owner_is() {
        let variant = variant("params = { \"tred.n\" = 1, \"tcp.window\" = \"10p\", \"fred.x\" = 1 }");
        let mut used = Used::new();
        let pair = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        assert_eq!(
            variant.spread(SCENARIO, &mut used).into_iter().flat_map(|(_, put)| put).collect::<Vec<_>>(),
            [
                pair("flow.tcp.tcp.window", "10p"),
                pair("link.\"a.b\".queue.n", "1"),
                pair("topology.bottleneck.queue.n", "1"),
            ]
        );
        let unused =
            |used: &Used| -> Vec<String> { variant.unused(used).into_iter().map(|(key, _)| key).collect() };
        used.insert(change("tred.n"));
        assert_eq!(unused(&used), ["params.fred.x", "params.tcp.window"]);
        used.insert(change("tcp.window"));
        assert_eq!(unused(&used), ["params.fred.x"]);
    }

    #[test]
    fn overrides_go_to_the_files_and_experiments_they_name() {
        let variant = variant(
            "replace = { \"a.toml\" = \"b.toml\" }\n[set]\nseed = 5\n\"b.toml\" = { stop = \"1s\" }\n\
             \"p/x\" = { sample = \"2s\" }",
        );
        let mut used = Used::new();
        let pair = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        let (file, overrides) = variant.overrides("p/y", "a.toml", &mut used);
        assert_eq!((file.as_str(), overrides), ("b.toml", vec![pair("stop", "1s"), pair("seed", "5")]));
        let (file, overrides) = variant.overrides("p/x", "c.toml", &mut used);
        assert_eq!((file.as_str(), overrides), ("c.toml", vec![pair("sample", "2s"), pair("seed", "5")]));
        assert!(variant.unused(&used).is_empty());
    }
}
