//! The file of a paper: experiments, their runs, the paper's claims, and figures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{fs, io};

use apportion_scenario::{did_you_mean, document};
use serde::{Deserialize, Serialize};

use crate::figure::Figure;
use crate::files::{self, Files};
use crate::measure::Measure;
use crate::problems::Problems;
use crate::runs::Sweep;
use crate::value::{Numbers, text_of};
use crate::variant::{self, Variant};

/// Name of the file in a paper's folder.
const FILE: &str = "expect.toml";

/// A paper as its file describes it.
#[derive(Clone, Debug)]
pub struct Paper {
    /// The path of the file, for messages; scenarios are relative to its folder.
    pub path: PathBuf,
    /// The set of files that holds it and its scenarios.
    pub files: Files,
    /// The part of experiment ids before the slash, the same for all.
    pub key: String,
    pub content: Content,
}

/// The content of the file.
#[derive(Clone, Debug, Deserialize)]
pub struct Content {
    /// The name of the scheme.
    pub title: String,
    /// Authors, title, venue and year.
    pub paper: String,
    /// Sweeps by name.
    #[serde(rename = "sweep", default)]
    pub sweeps: BTreeMap<String, Sweep>,
    /// Experiments, in the order of the file.
    #[serde(rename = "experiment")]
    pub experiments: Vec<Experiment>,
    /// Variants of the experiments.
    #[serde(rename = "variant", default)]
    pub variants: Vec<Variant>,
    /// The columns of the table of variants.
    #[serde(rename = "column", default)]
    pub columns: Vec<variant::Column>,
}

/// One experiment of a paper.
#[derive(Clone, Debug, Deserialize)]
pub struct Experiment {
    /// Line in the file, counting from 1.
    #[serde(rename = "$line", default)]
    pub line: u32,
    /// `PAPER/NAME`.
    pub id: String,
    /// Place in the paper, for example a figure.
    pub source: String,
    /// A summary of the setup.
    pub summary: String,
    /// Runs by name.
    #[serde(rename = "run", default)]
    pub runs: BTreeMap<String, RunSpec>,
    /// The claims of the paper.
    #[serde(rename = "metric")]
    pub metrics: Vec<Metric>,
    /// Figures and tables of the page.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Figure>,
}

/// A run: a scenario file with overrides.
#[derive(Clone, Debug, Deserialize)]
pub struct RunSpec {
    /// Line in the file, counting from 1.
    #[serde(rename = "$line", default)]
    pub line: u32,
    /// The scenario file, relative to the folder of the paper.
    pub scenario: PathBuf,
    /// Overrides as paths and values, as for `--set`.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// The name of a sweep: the run is made at each of its points.
    pub sweep: Option<String>,
    /// Further overrides by the name of a control, which switch a mechanism of the scheme off.
    #[serde(default)]
    pub ablate: BTreeMap<String, BTreeMap<String, toml::Value>>,
}

impl RunSpec {
    /// Overrides as paths and texts. Those of a sweep's point come last, so that the replacement of a
    /// disabled mechanism is swept too.
    pub(crate) fn overrides(
        &self,
        control: Option<&str>,
        point: Vec<(String, String)>,
    ) -> Vec<(String, String)> {
        let texts = |set: &BTreeMap<String, toml::Value>| -> Vec<(String, String)> {
            set.iter().map(|(path, value)| (path.clone(), text_of(value))).collect()
        };
        let ablations = control.and_then(|name| self.ablate.get(name)).map(texts).unwrap_or_default();
        [texts(&self.set), ablations, point].concat()
    }
}

/// One claim.
#[derive(Clone, Debug, Deserialize)]
pub struct Metric {
    /// Line in the file, counting from 1.
    #[serde(rename = "$line", default)]
    pub line: u32,
    /// Name in results.
    pub name: String,
    /// The unit of the values.
    pub unit: String,
    /// The origin of the value.
    pub kind: Origin,
    /// The comparison of measured and published value.
    pub op: Op,
    /// The published value, or one per number; only a recorded number may have none.
    pub value: Option<Numbers>,
    /// Tolerance of `approx`, as a share of the value.
    pub tol_rel: Option<f64>,
    /// Absolute tolerance of `approx`; for other comparisons it widens the bound.
    pub tol_abs: Option<f64>,
    /// Computation of the number, for readers.
    pub def: Option<String>,
    /// A remark for readers.
    pub note: Option<String>,
    /// The controls with which the claim must fail.
    #[serde(default)]
    pub breaks: Vec<String>,
    /// Why the claim is known not to be reproduced.
    pub refuted: Option<Refutation>,
    /// Computation of the number, for programs.
    pub measure: Measure,
}

/// Why a claim is known not to be reproduced.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Refutation {
    /// Evidence against the claim.
    pub reason: String,
    /// Settings under which the claim was searched for.
    pub searched: String,
}

/// The origin of a value.
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

/// Reads all papers under `folder`, or the embedded ones if `folder` has none, and the papers that `wanted`
/// names by path: an `expect.toml` or its folder. Returns the papers with the rest of `wanted`.
///
/// # Errors
/// A file cannot be read or is not valid.
pub fn find(folder: &Path, wanted: &[String]) -> Result<(Vec<Paper>, Vec<String>), Problems> {
    let (mut chosen, mut names) = (Vec::new(), Vec::new());
    for name in wanted {
        match file_of(name) {
            Some(file) => chosen.push(read(&file, Files::Disk)?),
            None => names.push(name.clone()),
        }
    }
    let mut all = if names.is_empty() && !chosen.is_empty() { Vec::new() } else { in_folder(folder)? };
    // A path selects all experiments of its paper; a paper from another folder replaces the one with the same
    // key.
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

/// The papers under `folder`, or else the embedded ones.
fn in_folder(folder: &Path) -> Result<Vec<Paper>, Problems> {
    let mut files: Vec<PathBuf> = match fs::read_dir(folder) {
        Ok(entries) => {
            entries.flatten().map(|entry| entry.path().join(FILE)).filter(|file| file.is_file()).collect()
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => {
            return Err(Problems(vec![format!("{}: cannot look for papers: {error}", folder.display())]));
        }
    };
    files.sort();
    match files.is_empty() {
        true => files::papers().map(|file| read(Path::new(&file), Files::Embedded)).collect(),
        false => files.iter().map(|file| read(file, Files::Disk)).collect(),
    }
}

/// Reads and checks the file of a paper.
///
/// # Errors
/// All problems, with file, key path and how to mend each.
pub fn read(path: &Path, files: Files) -> Result<Paper, Problems> {
    let fail = |message: String| Problems(vec![format!("{}: {message}", path.display())]);
    let text = files.read_text(path).map_err(|error| {
        fail(format!("cannot read the experiments: {error}; name an {FILE} or its folder"))
    })?;
    parse(path, files, &text)
}

/// Reads and checks the text of a paper's file.
///
/// # Errors
/// Like [`read`].
pub fn parse(path: &Path, files: Files, text: &str) -> Result<Paper, Problems> {
    let file = path.display().to_string();
    let content: Content = document::read(text, &file)
        .map_err(|problems| Problems(problems.iter().map(ToString::to_string).collect()))?;
    let mut problems = Vec::new();
    let key =
        content.experiments.first().and_then(|first| first.id.split_once('/')).map(|(key, _)| key.to_owned());
    let Some(key) = key.filter(|key| !key.is_empty() && key.chars().all(is_plain)) else {
        let line = content.experiments.first().map_or(1, |first| first.line);
        return Err(Problems(vec![format!(
            "{file}:{line}: experiment: missing, or its id is not PAPER/NAME; write for example id = \"pps/fig4\""
        )]));
    };
    let mut seen = BTreeSet::new();
    for experiment in &content.experiments {
        let mut add = |line: u32, place: &str, message: String| {
            problems.push(format!("{file}:{line}: {}: {place}: {message}", experiment.id));
        };
        let line = experiment.line;
        if experiment.id.strip_prefix(&key).is_none_or(|rest| !rest.starts_with('/') || rest.len() < 2) {
            add(line, "id", format!("all ids of a file have the same prefix; write {key}/NAME"));
        }
        if !seen.insert(&experiment.id) {
            add(line, "id", "there are two experiments of this id; rename one".to_owned());
        }
        experiment.check(&mut add);
    }
    for (name, sweep) in &content.sweeps {
        let place = format!("{file}:{}: sweep.{name}", sweep.line);
        problems.extend(sweep.check().map(|(key, message)| format!("{place}.{key}: {message}")));
    }
    variant::check(&content, &mut |line, place, message| {
        problems.push(format!("{file}:{line}: {place}: {message}"));
    });
    if problems.is_empty() {
        Ok(Paper { path: path.to_owned(), files, key, content })
    } else {
        Err(Problems(problems))
    }
}

/// Whether a name is fit for a file name.
const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

impl Experiment {
    /// Names of the experiment's controls, in alphabetical order.
    #[must_use]
    pub fn controls(&self) -> BTreeSet<&str> {
        self.runs.values().flat_map(|run| run.ablate.keys()).map(String::as_str).collect()
    }

    fn check(&self, add: &mut dyn FnMut(u32, &str, String)) {
        let mut names = BTreeSet::new();
        if self.metrics.is_empty() {
            add(self.line, "metric", "missing; an experiment needs at least one claim".to_owned());
        }
        let controls = self.controls();
        for metric in &self.metrics {
            let place = format!("metric {}", metric.name);
            let mut add = |key: &str, message: &str| {
                let colon = if key.is_empty() { "" } else { ": " };
                add(metric.line, &format!("{place}{colon}{key}"), message.to_owned());
            };
            if !names.insert(&metric.name) {
                add("", "there are two metrics of this name; rename one");
            }
            metric.check_value(&mut add);
            metric.check_bound(&mut add);
            metric.check_controls(&controls, &mut add);
        }
    }
}

impl Metric {
    /// The published values; none if there is nothing to compare with.
    pub(crate) fn published(&self) -> &[f64] {
        self.value.as_ref().map_or(&[], Numbers::all)
    }

    fn check_value(&self, add: &mut dyn FnMut(&str, &str)) {
        match &self.value {
            None if self.op == Op::Record => (),
            None => add("value", "missing; write the number to compare with, or op = \"record\""),
            Some(value) if value.all().is_empty() => add("value", "empty; write a number or several"),
            Some(value) if !value.all().iter().all(|value| value.is_finite()) => {
                add("value", "not a number that can be compared with");
            }
            Some(_) => (),
        }
    }

    fn check_bound(&self, add: &mut dyn FnMut(&str, &str)) {
        if self.op != Op::Record && !self.measure.is_measured() {
            add("measure", "constants and entitlements are the same whatever runs do; write op = \"record\"");
        }
        for (key, tolerance) in [("tol_rel", self.tol_rel), ("tol_abs", self.tol_abs)] {
            if tolerance.is_some_and(|tolerance| !tolerance.is_finite() || tolerance < 0.0) {
                add(key, "write a number from 0, for example 0.1");
            }
        }
        match self.op {
            Op::Approx if self.tol_rel.is_some() == self.tol_abs.is_some() => {
                add("", "write either `tol_rel` or `tol_abs`, for example tol_rel = 0.1");
            }
            Op::Record => {
                let keys = [
                    ("tol_rel", self.tol_rel.is_some()),
                    ("tol_abs", self.tol_abs.is_some()),
                    ("breaks", !self.breaks.is_empty()),
                    ("refuted", self.refuted.is_some()),
                ];
                for (key, _) in keys.into_iter().filter(|(_, is_there)| *is_there) {
                    add(
                        key,
                        "a recorded number has no bound and cannot fail; choose another `op`, or leave it out",
                    );
                }
            }
            Op::Ge | Op::Gt | Op::Le | Op::Lt if self.tol_rel.is_some() => {
                add("tol_rel", "belongs to op = \"approx\"; write `tol_abs`");
            }
            _ => (),
        }
    }

    fn check_controls(&self, controls: &BTreeSet<&str>, add: &mut dyn FnMut(&str, &str)) {
        for name in self.breaks.iter().filter(|name| !controls.contains(name.as_str())) {
            let guess = did_you_mean(name, controls.iter().copied());
            let message = format!(
                "no run has a control `{name}`{guess}; write for example ablate.\"{name}\" = {{ ... }} in a run"
            );
            add("breaks", &message);
        }
        if self.refuted.is_some() && !self.breaks.is_empty() {
            add("breaks", "a refuted claim fails with the mechanism on too; leave it out");
        }
    }
}
