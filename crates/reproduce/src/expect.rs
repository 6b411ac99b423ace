//! The file of a paper: experiments, the runs they need, what the paper claims of them, and figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::measure::Measure;
use crate::problems::Problems;
use crate::runs::Sweep;
use crate::value::{Numbers, text_of};
use crate::variant::{self, Variant};

/// The name of the file in a paper's folder.
const FILE: &str = "expect.toml";

/// A paper as its file describes it.
#[derive(Clone, Debug)]
pub struct Paper {
    /// The file, as messages name it; scenarios are relative to its folder.
    pub path: PathBuf,
    /// The part before the slash of all its experiments' ids.
    pub key: String,
    /// What it says.
    pub content: Content,
}

/// What the file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// What the scheme is called.
    pub title: String,
    /// Authors, title, venue and year.
    pub paper: String,
    /// Values along which runs differ, by name.
    #[serde(rename = "sweep", default)]
    pub sweeps: BTreeMap<String, Sweep>,
    /// In the order of the file.
    #[serde(rename = "experiment")]
    pub experiments: Vec<Experiment>,
    /// The same with something else changed.
    #[serde(rename = "variant", default)]
    pub variants: Vec<Variant>,
    /// What the table of variants shows.
    #[serde(rename = "column", default)]
    pub columns: Vec<variant::Column>,
}

/// One experiment of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// `PAPER/NAME`.
    pub id: String,
    /// Where in the paper.
    pub source: String,
    /// What is done.
    pub summary: String,
    /// Runs by name.
    #[serde(rename = "run", default)]
    pub runs: BTreeMap<String, RunSpec>,
    /// What the paper claims.
    #[serde(rename = "metric")]
    pub metrics: Vec<Metric>,
    /// In the form of the paper's own.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Figure>,
}

/// A scenario file with what is different in this run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Relative to the file.
    pub scenario: PathBuf,
    /// As `--set`.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// The name of a sweep: the run is made at each of its points.
    pub sweep: Option<String>,
    /// What further switches the scheme's mechanism off.
    #[serde(default)]
    pub ablate: BTreeMap<String, toml::Value>,
}

impl RunSpec {
    /// Overrides as paths and texts, last those of a point of its sweep: what stands in for a mechanism that is
    /// switched off is swept too.
    pub(crate) fn overrides(&self, ablate: bool, point: Vec<(String, String)>) -> Vec<(String, String)> {
        let texts = |set: &BTreeMap<String, toml::Value>| -> Vec<(String, String)> {
            set.iter().map(|(path, value)| (path.clone(), text_of(value))).collect()
        };
        let ablations = if ablate { texts(&self.ablate) } else { Vec::new() };
        [texts(&self.set), ablations, point].concat()
    }
}

/// One claim.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// As results call it.
    pub name: String,
    /// Of the values.
    pub unit: String,
    /// Where the value comes from.
    pub kind: Origin,
    /// How measured and value are compared.
    pub op: Op,
    /// What the paper says.
    pub value: Numbers,
    /// Of `approx`: a share of the value.
    pub tol_rel: Option<f64>,
    /// Of `approx`; for other comparisons it widens the bound.
    pub tol_abs: Option<f64>,
    /// How the number is computed, for readers.
    pub def: Option<String>,
    /// What readers should know beside.
    pub note: Option<String>,
    /// Whether the claim must fail with the mechanism switched off.
    #[serde(default)]
    pub breaks: bool,
    /// Why it is known not to be reproduced.
    pub refuted: Option<String>,
    /// How the number is computed, for programs.
    pub measure: Measure,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// Printed in the paper.
    PublishedNumber,
    /// A sentence of the paper turned into a number.
    StatedClaim,
    /// Computed from the paper's parameters.
    Derived,
}

/// A comparison: measured OP value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Within the tolerance.
    Approx,
    /// At least.
    Ge,
    /// At most.
    Le,
    /// Above.
    Gt,
    /// Below.
    Lt,
    /// Reported only.
    Record,
}

// ---------------------------------------------------------------------------------------------
// Reading

/// Reads all papers under `folder`, which is `papers/` in a checkout, and those that `wanted` names by path:
/// an `expect.toml` or its folder. Gives them with the rest of `wanted`. If only paths are wanted, the folder
/// need not be there.
///
/// # Errors
/// Names what cannot be read or understood.
pub fn find(folder: &Path, wanted: &[String]) -> Result<(Vec<Paper>, Vec<String>), Problems> {
    let (mut files, mut names) = (BTreeSet::new(), Vec::new());
    let mut chosen = Vec::new();
    for name in wanted {
        match file_of(name) {
            Some(file) => chosen.push(file),
            None => names.push(name.clone()),
        }
    }
    if !names.is_empty() || chosen.is_empty() {
        files = in_folder(folder)?;
    }
    let papers = |files: &mut dyn Iterator<Item = &PathBuf>| -> Result<Vec<Paper>, Problems> {
        files.map(|file| read(file)).collect()
    };
    let chosen = papers(&mut chosen.iter())?;
    let mut all = papers(&mut files.iter())?;
    // A path means all of its experiments; one from elsewhere stands for the paper of that key.
    names.extend(chosen.iter().map(|paper| paper.key.clone()));
    all.retain(|paper| chosen.iter().all(|other| other.key != paper.key));
    all.extend(chosen);
    all.sort_by(|a, b| a.key.cmp(&b.key));
    if let Some(pair) = all.windows(2).find(|pair| pair[0].key == pair[1].key) {
        let [one, other] = [&pair[0], &pair[1]].map(|paper| paper.path.display());
        let message =
            format!("{other}: experiment: ids begin with `{}/` as in {one}; rename one", pair[0].key);
        return Err(Problems(vec![message]));
    }
    Ok((all, names))
}

/// The file that an argument names by path.
fn file_of(name: &str) -> Option<PathBuf> {
    let path = Path::new(name);
    if name.ends_with(".toml") {
        return Some(path.to_owned());
    }
    Some(path.join(FILE)).filter(|file| file.is_file())
}

fn in_folder(folder: &Path) -> Result<BTreeSet<PathBuf>, Problems> {
    let entries = fs::read_dir(folder).map_err(|error| {
        Problems(vec![format!(
            "{}: cannot look for papers: {error}; run this in a checkout of apportion, or name an {FILE} or its \
             folder",
            folder.display()
        )])
    })?;
    let files: BTreeSet<_> =
        entries.flatten().map(|entry| entry.path().join(FILE)).filter(|file| file.is_file()).collect();
    if files.is_empty() {
        let message = format!(
            "{}: there is no paper here: no folder has an {FILE}; name one, or its folder",
            folder.display()
        );
        return Err(Problems(vec![message]));
    }
    Ok(files)
}

/// Reads and checks the file of a paper.
///
/// # Errors
/// Names file, key path and mend.
pub fn read(path: &Path) -> Result<Paper, Problems> {
    let fail = |message: String| Problems(vec![format!("{}: {message}", path.display())]);
    let text = fs::read_to_string(path).map_err(|error| {
        fail(format!("cannot read the experiments: {error}; name an {FILE} or its folder"))
    })?;
    parse(path, &text)
}

/// Reads and checks the text of a paper's file.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Paper, Problems> {
    let fail = |place: &str, message: &str| {
        let place = if place.is_empty() || place == "." { String::new() } else { format!("{place}: ") };
        Problems(vec![format!("{}: {place}{}", path.display(), message.replace('\n', " "))])
    };
    let document = toml::Deserializer::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        fail(&format!("line {line}"), error.message())
    })?;
    let content: Content = serde_path_to_error::deserialize(document)
        .map_err(|error| fail(&error.path().to_string(), error.inner().message()))?;
    let mut problems = Vec::new();
    let key =
        content.experiments.first().and_then(|first| first.id.split_once('/')).map(|(key, _)| key.to_owned());
    let Some(key) = key.filter(|key| !key.is_empty() && key.chars().all(is_plain)) else {
        return Err(fail(
            "experiment",
            "there is none, or its id is not PAPER/NAME; write for example id = \"pps/fig4\"",
        ));
    };
    let mut seen = BTreeSet::new();
    for experiment in &content.experiments {
        let mut add = |place: &str, message: String| {
            let place = if place.is_empty() { String::new() } else { format!(": {place}") };
            problems.push(format!("{}: {}{place}: {message}", path.display(), experiment.id));
        };
        if experiment.id.strip_prefix(&key).is_none_or(|rest| !rest.starts_with('/') || rest.len() < 2) {
            add("id", format!("all ids of a file begin alike; write {key}/NAME"));
        }
        if !seen.insert(&experiment.id) {
            add("id", "there are two experiments of this id; rename one".to_owned());
        }
        experiment.check(&mut add);
    }
    for (name, sweep) in &content.sweeps {
        let place = format!("{}: sweep.{name}", path.display());
        problems.extend(sweep.check().map(|(key, message)| format!("{place}.{key}: {message}")));
    }
    variant::check(&content, &mut |place, message| {
        problems.push(format!("{}: {place}: {message}", path.display()));
    });
    if problems.is_empty() {
        Ok(Paper { path: path.to_owned(), key, content })
    } else {
        Err(Problems(problems))
    }
}

/// Fit for a file name.
const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

impl Experiment {
    /// Whether it says how to switch its mechanism off.
    #[must_use]
    pub fn has_ablation(&self) -> bool {
        self.runs.values().any(|run| !run.ablate.is_empty())
    }

    fn check(&self, add: &mut dyn FnMut(&str, String)) {
        let mut names = BTreeSet::new();
        if self.metrics.is_empty() {
            add("metric", "there is none; an experiment needs a claim to hold it to".to_owned());
        }
        for metric in &self.metrics {
            let place = format!("metric {}", metric.name);
            if !names.insert(&metric.name) {
                add(&place, "there are two metrics of this name; rename one".to_owned());
            }
            if metric.value.all().is_empty() {
                add(&format!("{place}: value"), "empty; write a number or several".to_owned());
            }
            if !metric.value.all().iter().all(|value| value.is_finite()) {
                add(&format!("{place}: value"), "not a number that can be compared with".to_owned());
            }
            for (key, tolerance) in [("tol_rel", metric.tol_rel), ("tol_abs", metric.tol_abs)] {
                if tolerance.is_some_and(|tolerance| !tolerance.is_finite() || tolerance < 0.0) {
                    add(&format!("{place}: {key}"), "write a number from 0, for example 0.1".to_owned());
                }
            }
            if metric.op == Op::Approx && metric.tol_rel.is_some() == metric.tol_abs.is_some() {
                add(&place, "write either `tol_rel` or `tol_abs`, for example tol_rel = 0.1".to_owned());
            }
            if metric.op != Op::Approx && metric.tol_rel.is_some() {
                add(&format!("{place}: tol_rel"), "belongs to op = \"approx\"; write `tol_abs`".to_owned());
            }
            if metric.breaks && !self.has_ablation() {
                let message = "nothing is switched off: give a run `ablate`, or leave `breaks` out";
                add(&format!("{place}: breaks"), message.to_owned());
            }
        }
    }
}
