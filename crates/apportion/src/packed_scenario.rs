//! Scenarios packed for other machines.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::scenario::{Scenario, ScenarioBuilder, ScenarioError};

/// A scenario with all files that are needed to load it elsewhere, where its points have the same order and
/// the same results.
///
/// ```
/// # let scenario = apportion::Scenario::from_text(r#"
/// #     seed = 1
/// #     stop = "1s"
/// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms", queue = ["fifo", "drr"] }
/// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
/// # "#)?;
/// let bundle = scenario.pack()?;
/// assert_eq!(bundle.load()?.canonical(), scenario.canonical());
/// # Ok::<(), apportion::ScenarioError>(())
/// ```
#[derive(Clone, Debug)]
pub struct PackedScenario {
    /// The text of the scenario as written.
    pub text: String,
    /// The name of the scenario in messages.
    pub origin: PathBuf,
    /// Values that were set, by key path.
    pub settings: Vec<(String, String)>,
    /// The contents of the files that it refers to.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Scenario {
    /// Packs the scenario, with the present contents of the files that it refers to.
    ///
    /// # Errors
    /// If one of these files cannot be read any more.
    pub fn pack(&self) -> Result<PackedScenario, ScenarioError> {
        let read = |path: PathBuf| match apportion_scenario::read_file(&path) {
            Ok(content) => Ok((path, content)),
            Err(cause) => Err(ScenarioError::File { path, cause }),
        };
        let (text, settings) = self.source();
        Ok(PackedScenario {
            text: text.to_owned(),
            origin: self.origin().to_owned(),
            settings: settings.to_vec(),
            files: self.files().map(read).collect::<Result<_, _>>()?,
        })
    }
}

impl PackedScenario {
    /// Loads the scenario, with the disciplines of this project and without reading this machine's disk.
    ///
    /// # Errors
    /// All problems of the scenario.
    pub fn load(&self) -> Result<Scenario, ScenarioError> {
        let read = |path: &Path| {
            self.files.get(path).cloned().ok_or_else(|| Error::new(ErrorKind::NotFound, "it was not packed"))
        };
        let builder = ScenarioBuilder::from_text(&self.text).origin(&self.origin);
        let set = |builder: ScenarioBuilder, (path, value): &(String, String)| builder.set(path, value);
        self.settings.iter().fold(builder, set).load_by(&read)
    }
}
