//! A run that has ended and is not published yet.

use apportion_report::{WriteError, Writer};

use crate::results::Results;

/// A run whose folder is complete but does not have its final name yet. Dropping the run removes the folder.
///
/// ```
/// # let scenario = apportion::Scenario::from_text(r#"
/// #     seed = 1
/// #     stop = "1s"
/// #     link.bottleneck = { from = "a", to = "b", rate = "2Mbit", delay = "5ms" }
/// #     flow.tcp = { from = "a", to = "b", tcp = "rfc" }
/// # "#)?;
/// # let folder = tempfile::tempdir()?;
/// # let folder = folder.path();
/// let run = apportion::Run::new(&scenario).folder(folder);
/// drop(run.stage()?);
/// assert!(!folder.join("1").exists());
/// assert_eq!(run.stage()?.publish()?.folder(), Some(&*folder.join("1")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "without `publish` its folder is removed"]
pub struct StagedRun {
    results: Results,
    writer: Option<Writer>,
}

impl StagedRun {
    pub(crate) const fn new(results: Results, writer: Option<Writer>) -> Self {
        Self { results, writer }
    }

    /// Returns the results, without a folder.
    #[must_use]
    pub const fn results(&self) -> &Results {
        &self.results
    }

    /// Gives the [folder](crate::Run::folder) of the run its final name, or removes it if [no replication has
    /// ended](Results::is_empty).
    ///
    /// # Errors
    /// If a file cannot be written; there is no new folder then.
    pub fn publish(self) -> Result<Results, WriteError> {
        let Self { results, writer } = self;
        match writer.filter(|_| !results.is_empty()) {
            None => Ok(results),
            Some(writer) => {
                let folder = writer.finish(results.record(), results.provenance())?;
                Ok(results.written(folder))
            }
        }
    }
}
