//! Scenarios: sources, settings and checked contents.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use apportion_core::system::Catalog;
use apportion_scenario::model::{self, Change, Flow, Setting, Transport};
use apportion_scenario::tcp::Algorithm;
use apportion_scenario::{Point, Problem, ReadFile, Suite};
use serde::Serialize;

use crate::cache::Key;
use crate::catalogue;
use crate::sources::{BUILD, TARGET};

/// The name in messages of a scenario without a file; files that it refers to are relative to the current
/// folder.
const UNNAMED: &str = "scenario";

/// The maximum size of a scenario file, in bytes. Chosen: a hundred thousand flows with a table each take 10
/// MB.
pub(crate) const MAX_FILE: u64 = 16 << 20;

/// A checked scenario: one point, or one for each combination of its swept values.
///
/// [`docs/scenario.md`](crate::catalogue::reference) lists every key.
///
/// ```
/// use apportion::Scenario;
///
/// let scenario = Scenario::from_text(r#"
///     seed = 1
///     stop = "2s"
///     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", queue = ["fifo", "drr"] }
///     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
/// "#)?;
/// let labels: Vec<&str> = scenario.points().iter().map(|point| point.label.as_str()).collect();
/// assert_eq!(labels, ["queue=fifo", "queue=drr"]);
/// # Ok::<(), apportion::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scenario {
    text: String,
    origin: PathBuf,
    settings: Vec<(String, String)>,
    catalog: Catalog,
    suite: Suite,
    has_own_code: bool,
    /// The key of each point, computed when it is first needed.
    keys: Vec<OnceLock<Key>>,
}

impl Scenario {
    /// Creates a scenario from a suite that was loaded from this file, with the disciplines of this project.
    pub(crate) fn of_suite(suite: Suite, origin: PathBuf) -> Self {
        let text = suite.canonical.clone();
        Self::new(text, origin, Vec::new(), catalogue::standard(), suite)
    }

    fn new(
        text: String,
        origin: PathBuf,
        settings: Vec<(String, String)>,
        catalog: Catalog,
        suite: Suite,
    ) -> Self {
        let keys = suite.points.iter().map(|_| OnceLock::new()).collect();
        let has_own_code = suite.points.iter().any(|point| has_own_code(&point.scenario));
        Self { text, origin, settings, catalog, suite, has_own_code, keys }
    }

    /// Reads and checks a scenario file. Files that it refers to are relative to its folder.
    ///
    /// ```no_run
    /// let scenario = apportion::Scenario::from_file("scenarios/quickstart.toml")?;
    /// # Ok::<(), apportion::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// If the file cannot be read, or all problems of the scenario.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScenarioError> {
        ScenarioBuilder::from_file(path).load()
    }

    /// Checks the text of a scenario. Files that it refers to are relative to the current folder.
    ///
    /// # Errors
    /// All problems of the scenario.
    pub fn from_text(text: impl Into<String>) -> Result<Self, ScenarioError> {
        ScenarioBuilder::from_text(text).load()
    }

    /// Checks a scenario given as values: a table of TOML or JSON, or a struct of the caller.
    ///
    /// ```
    /// let scenario = apportion::Scenario::from_values(&serde_json::json!({
    ///     "seed": 1,
    ///     "stop": "2s",
    ///     "link": { "bottleneck": { "from": "a", "to": "b", "rate": "2Mbit", "delay": "5ms" } },
    ///     "flow": { "tcp": { "from": "a", "to": "b", "tcp": "rfc" } },
    /// }))?;
    /// assert_eq!(scenario.points()[0].scenario.links.len(), 2);
    /// # Ok::<(), apportion::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// If the values cannot be represented in TOML, or all problems of the scenario.
    pub fn from_values(values: &impl Serialize) -> Result<Self, ScenarioError> {
        ScenarioBuilder::from_values(values)?.load()
    }

    /// Returns the scenario with the value at a key path replaced, such as `link.bottleneck.rate`. The value
    /// is written as in a scenario file; quotes around text may be omitted, and a list is a sweep. `rate`,
    /// `delay`, `queue` and `loss` without a path are those of the only bottleneck.
    ///
    /// ```
    /// # let scenario = apportion::Scenario::from_text(r#"
    /// #     seed = 1
    /// #     stop = "2s"
    /// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
    /// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
    /// # "#)?;
    /// let longer = scenario.set("stop", "20s")?;
    /// let swept = longer.set("link.bottleneck.rate", r#"["1Mbit", "2Mbit", "5Mbit"]"#)?;
    /// assert_eq!(swept.points().len(), 3);
    /// # Ok::<(), apportion::ScenarioError>(())
    /// ```
    ///
    /// # Errors
    /// All problems of the resulting scenario.
    pub fn set(&self, path: impl Into<String>, value: impl Display) -> Result<Self, ScenarioError> {
        self.edit().set(path, value).load()
    }

    /// Returns a builder of this scenario, to set several values that are valid only together.
    pub fn edit(&self) -> ScenarioBuilder {
        ScenarioBuilder {
            source: Source::Text(self.text.clone()),
            origin: self.origin.clone(),
            settings: self.settings.clone(),
            catalog: self.catalog.clone(),
        }
    }

    /// Returns the title, or the name of the file if the scenario has no title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.suite.title
    }

    /// Returns the points of the sweep, in the order of the grid: the first axis varies slowest. A scenario
    /// without a sweep has one point, without a label.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.suite.points
    }

    /// Returns the scenario in canonical form, as TOML: settings in place, defaults filled in, tables sorted.
    /// The text loads back to the same scenario.
    #[must_use]
    pub fn canonical(&self) -> &str {
        &self.suite.canonical
    }

    /// Returns a hash of the canonical text without the title: equal for scenarios with equal results.
    #[must_use]
    pub fn hash(&self) -> u64 {
        self.suite.hash
    }

    /// Returns the hash of everything except seeds that the results of the point of this number depend on.
    pub(crate) fn key(&self, at: usize) -> &Key {
        let inputs = || self.suite.inputs(&self.suite.points[at]);
        self.keys[at].get_or_init(|| Key::of(&[BUILD.as_bytes(), TARGET.as_bytes(), inputs().as_bytes()]))
    }

    /// Whether the scenario uses registered code: a queue, from the start or by a change, is a registered
    /// [discipline](Catalog::register), or a flow has a registered [congestion
    /// control](Catalog::register_control) or [transport stack](Catalog::register_stack).
    #[must_use]
    pub const fn has_own_code(&self) -> bool {
        self.has_own_code
    }

    /// Returns the files that the scenario refers to.
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let folder = self.origin.parent().unwrap_or(Path::new(""));
        self.suite.files().map(|path| folder.join(path))
    }

    /// Returns the text as it was written, and the values that were set.
    pub(crate) fn source(&self) -> (&str, &[(String, String)]) {
        (&self.text, &self.settings)
    }

    /// Returns the name of the scenario in messages: the path of its file, or `scenario`.
    #[must_use]
    pub fn origin(&self) -> &Path {
        &self.origin
    }
}

/// A scenario before it is checked.
///
/// ```
/// use apportion::ScenarioBuilder;
/// use apportion::units::Rate;
///
/// let scenario = ScenarioBuilder::from_text(r#"
///     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
///     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
/// "#)
/// .set("seed", 1)
/// .set("stop", "2s")
/// .set("link.bottleneck.rate", Rate::from_mbit(5))
/// .load()?;
/// assert!(scenario.canonical().contains("rate = \"5Mbit\""));
/// # Ok::<(), apportion::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ScenarioBuilder {
    source: Source,
    origin: PathBuf,
    settings: Vec<(String, String)>,
    catalog: Catalog,
}

#[derive(Clone, Debug)]
enum Source {
    /// The file at the origin.
    File,
    Text(String),
}

impl ScenarioBuilder {
    /// Creates a builder from a file, which [`load`](Self::load) reads.
    pub fn from_file(path: impl AsRef<Path>) -> Self {
        let catalog = catalogue::standard();
        Self { source: Source::File, origin: path.as_ref().to_owned(), settings: Vec::new(), catalog }
    }

    /// Creates a builder from one of the [examples](crate::examples()); `None` if there is none of this name.
    ///
    /// ```
    /// let quickstart = apportion::ScenarioBuilder::example("quickstart").ok_or("no such example")?;
    /// assert_eq!(quickstart.set("stop", "20s").load()?.points().len(), 4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn example(name: &str) -> Option<Self> {
        let (name, text) = crate::examples().find(|(known, _)| *known == name)?;
        Some(Self::from_text(text).origin(format!("{name}.toml")))
    }

    /// Creates a builder from text. Messages call the scenario `scenario` unless it has a
    /// [name](Self::origin).
    pub fn from_text(text: impl Into<String>) -> Self {
        let (origin, catalog) = (PathBuf::from(UNNAMED), catalogue::standard());
        Self { source: Source::Text(text.into()), origin, settings: Vec::new(), catalog }
    }

    /// Creates a builder from values.
    ///
    /// # Errors
    /// If the values cannot be represented in TOML.
    pub fn from_values(values: &impl Serialize) -> Result<Self, ScenarioError> {
        Ok(Self::from_text(toml::to_string(values).map_err(ScenarioError::Values)?))
    }

    /// Sets the disciplines, congestion controls and transport stacks that the scenario can name. Default:
    /// [`catalogue::standard`].
    pub fn catalog(mut self, catalog: &Catalog) -> Self {
        self.catalog = catalog.clone();
        self
    }

    /// Sets the path that messages name, relative to whose folder the scenario's files are found.
    pub fn origin(mut self, path: impl Into<PathBuf>) -> Self {
        self.origin = path.into();
        self
    }

    /// Replaces the value at a key path before the scenario is checked; see [`Scenario::set`].
    pub fn set(mut self, path: impl Into<String>, value: impl Display) -> Self {
        self.settings.push((path.into(), value.to_string()));
        self
    }

    /// Reads and checks the scenario.
    ///
    /// # Errors
    /// If the file cannot be read, or all problems of the scenario.
    pub fn load(self) -> Result<Scenario, ScenarioError> {
        self.load_by(&apportion_scenario::read_file)
    }

    /// Loads the scenario, with the files that it refers to from `read`.
    pub(crate) fn load_by(self, read: ReadFile<'_>) -> Result<Scenario, ScenarioError> {
        let Self { source, origin, settings, catalog } = self;
        let text = match source {
            Source::Text(text) => text,
            Source::File => apportion_scenario::read_text_file(&origin, MAX_FILE)
                .map_err(|cause| ScenarioError::Read { path: origin.clone(), cause })?,
        };
        let suite = apportion_scenario::load_with(&catalog, &text, &origin, &settings, read)
            .map_err(ScenarioError::Problems)?;
        Ok(Scenario::new(text, origin, settings, catalog, suite))
    }
}

/// The reason why a scenario could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// The scenario's file cannot be read.
    #[error(
        "{}: cannot read the scenario: {cause}{}; name a TOML file, or an example of `apportion list scenarios`",
        path.display(),
        apportion_scenario::did_you_mean(
            &path.with_extension("").to_string_lossy(),
            crate::examples().map(|(name, _)| name)
        )
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A file that the scenario refers to can no longer be read.
    #[error("{}: cannot read it any more: {cause}; load the scenario again", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// Values cannot be represented in TOML.
    #[error("these values cannot be written as a scenario: {0}")]
    Values(toml::ser::Error),
    /// All problems of the scenario, in the order of its lines. Prints one line for each.
    #[error("{}", lines(.0))]
    Problems(Vec<Problem>),
}

/// Whether a queue is a registered discipline, or a congestion control or a transport is registered.
fn has_own_code(scenario: &model::Scenario) -> bool {
    let is_own = |change: &Change| matches!(&change.to, Setting::LinkQueue(_, queue) if queue.is_custom());
    let has_own = |flow: &Flow| match &flow.transport {
        Transport::Tcp(params) => matches!(params.algorithm, Algorithm::Registered(_)),
        Transport::Quic(params) => matches!(params.algorithm, Algorithm::Registered(_)),
        Transport::Stack(_) => true,
        Transport::Udp { .. } => false,
    };
    scenario.links.iter().any(|link| link.queue.is_custom())
        || scenario.changes.iter().any(is_own)
        || scenario.flows.iter().any(has_own)
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
