//! Packet captures of a run, in its folder of results.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use apportion_scenario::Point;
use apportion_sim::capture::LinkCapture;

use crate::RunError;

/// Capture files of a run. They are written under a hidden name and renamed by [`publish`](Self::publish), so that
/// a run that fails leaves those of an earlier one unchanged.
pub(crate) struct Captures<'a> {
    folder: &'a Path,
    /// Names of files under way.
    staged: Mutex<Vec<String>>,
    /// The first file that could not be opened.
    failed: Mutex<Option<RunError>>,
}

impl<'a> Captures<'a> {
    pub(crate) fn new(folder: &'a Path) -> Self {
        Self { folder, staged: Mutex::default(), failed: Mutex::default() }
    }

    /// The hidden name, with the ending that marks what an interrupted write left in a folder of results.
    fn partial(&self, name: &str) -> PathBuf {
        self.folder.join(format!(".{name}.partial"))
    }

    /// The first file that could not be opened, if one could not.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    /// Gives all files their names.
    pub(crate) fn publish(&self) -> Result<(), RunError> {
        for name in self.take_staged() {
            let path = self.folder.join(&name);
            fs::rename(self.partial(&name), &path).map_err(|cause| RunError::Capture { path, cause })?;
        }
        Ok(())
    }

    fn stage(&self, name: String) -> io::Result<()> {
        let mut staged = self.staged.lock().unwrap_or_else(PoisonError::into_inner);
        if staged.contains(&name) {
            return Err(io::Error::other("two links write to it; give one of them another name"));
        }
        staged.push(name);
        Ok(())
    }

    fn take_staged(&self) -> Vec<String> {
        std::mem::take(&mut *self.staged.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the captures of one point by the index of a link: `bottleneck.pcap`, or `2-bottleneck.pcap` for the
    /// second of several points.
    pub(crate) fn opener(
        &self,
        at: usize,
        points: &[Point],
    ) -> impl Fn(usize) -> Option<Box<LinkCapture>> + Sync {
        let prefix = if points.len() > 1 { format!("{}-", at + 1) } else { String::new() };
        move |link| {
            let link = points[at].scenario.links.get(link).filter(|link| link.pcap)?;
            let safe = |c: char| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' };
            let name = format!("{prefix}{}.pcap", link.name.chars().map(safe).collect::<String>());
            let path = self.folder.join(&name);
            let partial = self.partial(&name);
            let capture = self
                .stage(name)
                .and_then(|()| File::create(partial))
                .and_then(|file| LinkCapture::new(Box::new(BufWriter::new(file))).map_err(io::Error::other));
            match capture {
                Ok(capture) => Some(Box::new(capture)),
                Err(cause) => {
                    let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(RunError::Capture { path, cause });
                    None
                }
            }
        }
    }
}

impl Drop for Captures<'_> {
    /// Removes the files of a run that failed.
    fn drop(&mut self) {
        for name in self.take_staged() {
            // One that could not be created cannot be removed.
            let _ = fs::remove_file(self.partial(&name));
        }
    }
}
