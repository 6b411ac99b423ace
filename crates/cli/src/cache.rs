//! `apportion cache`: shows, prunes and checks the cache of simulations.

use anyhow::{Context as _, bail};
use apportion::{Cache, Usage};

use crate::arguments::{CacheCommand, CacheUse};
use crate::output;
use crate::status::Status;

/// Message where there is no cache.
pub const NO_PLACE: &str = "there is no place for a cache; set APPORTION_CACHE_DIR to a folder";

/// Returns this user's cache; none if the environment names no place for it.
pub fn default() -> Option<Cache> {
    Cache::default_folder().map(Cache::at)
}

impl CacheUse {
    /// Returns this user's cache, if it is to be used.
    pub fn chosen(self) -> Option<Cache> {
        default().filter(|_| !self.no_cache)
    }

    /// Reports that the cache was not used, if it was asked for.
    pub fn note_unused(self, reason: Option<&str>) {
        if let Some(reason) = reason.filter(|_| self.cache) {
            output::note(&format!("warning: --cache: {reason}"));
        }
    }
}

/// Reports that simulations could not be kept.
pub fn note_failure(failure: Option<&str>) {
    if let Some(failure) = failure {
        output::note(&format!("warning: {failure}; results are not cached"));
    }
}

pub fn run(command: &CacheCommand) -> anyhow::Result<Status> {
    let cache = default().context(NO_PLACE)?;
    let mend = "set APPORTION_CACHE_DIR to a folder that can be read and written";
    match command {
        CacheCommand::Show => {
            let usage = cache.usage().context(mend)?;
            output::print(&format!("{}\n{}\n", cache.folder().display(), text(usage)))?;
        }
        CacheCommand::Prune { to } => {
            let left = cache.prune(to.get()).context(mend)?;
            output::print(&format!("left: {}\n", text(left)))?;
        }
        CacheCommand::Verify { delete } => {
            let damaged = cache.verify(*delete).context(mend)?;
            for damage in &damaged {
                output::print(&format!("{}: {}\n", damage.path.display(), damage.cause))?;
            }
            if !delete && !damaged.is_empty() {
                let files =
                    if damaged.len() == 1 { "1 file is" } else { &format!("{} files are", damaged.len()) };
                bail!("{files} damaged; delete them with --delete");
            }
        }
    }
    Ok(Status::SUCCESS)
}

fn text(Usage { keys, files, bytes }: Usage) -> String {
    let megabytes = bytes as f64 / 1e6;
    format!("{megabytes:.1} of at most {:.0} MB, {keys} points, {files} files", Cache::MOST as f64 / 1e6)
}
