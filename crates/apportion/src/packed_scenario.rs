//! Scenarios on their way to other machines.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use crate::scenario::{Scenario, ScenarioBuilder, ScenarioError};

/// A scenario with all that it takes to load it elsewhere: its points have the same order and the same results there.
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
    /// Its text, as it was written.
    pub text: String,
    /// Its name in messages.
    pub origin: PathBuf,
    /// Values that were set, by key path.
    pub settings: Vec<(String, String)>,
    /// What the files hold that it refers to.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Scenario {
    /// Packs it, with the files that it refers to as they are now.
    ///
    /// # Errors
    /// If one of these cannot be read any more.
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
    /// Loads it, with nothing from this machine's disk and the disciplines of this project.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(&self) -> Result<Scenario, ScenarioError> {
        let read = |path: &Path| {
            self.files.get(path).cloned().ok_or_else(|| Error::new(ErrorKind::NotFound, "it was not packed"))
        };
        let builder = ScenarioBuilder::from_text(&self.text).origin(&self.origin);
        let set = |builder: ScenarioBuilder, (path, value): &(String, String)| builder.set(path, value);
        self.settings.iter().fold(builder, set).load_by(&read)
    }
}
