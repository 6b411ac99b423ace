//! Packet captures of a run, in its folder of results.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use apportion_report::file_name;
use apportion_scenario::Point;
use apportion_sim::capture::LinkCapture;

use crate::RunError;

/// The capture files of a run, in a folder that appears with its results.
pub(crate) struct Captures {
    folder: PathBuf,
    /// The names of the files that were opened, in lower case.
    names: Mutex<Vec<String>>,
    /// The first file that could not be opened.
    failed: Mutex<Option<RunError>>,
}

impl Captures {
    pub(crate) fn new(folder: PathBuf) -> Self {
        Self { folder, names: Mutex::default(), failed: Mutex::default() }
    }

    /// Returns the error of the first file that could not be opened, if any.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        // Some systems do not distinguish case.
        let key = name.to_lowercase();
        if names.contains(&key) {
            return Err(io::Error::other("two links write to it; give one of them another name"));
        }
        names.push(key);
        File::create(self.folder.join(name))
    }

    /// Returns a function that opens the captures of one point by the index of a link: `bottleneck.pcap`, or
    /// `2-bottleneck.pcap` for the second of several points.
    pub(crate) fn opener(
        &self,
        at: usize,
        points: &[Point],
    ) -> impl Fn(usize) -> Option<Box<LinkCapture>> + Sync {
        let prefix = if points.len() > 1 { format!("{}-", at + 1) } else { String::new() };
        move |link| {
            let link = points[at].scenario.links.get(link).filter(|link| link.pcap)?;
            let name = format!("{prefix}{}.pcap", file_name(&link.name.replace(' ', "_")));
            let capture = self
                .open(&name)
                .and_then(|file| LinkCapture::new(Box::new(BufWriter::new(file))).map_err(io::Error::other));
            match capture {
                Ok(capture) => Some(Box::new(capture)),
                Err(cause) => {
                    let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
                    failed.get_or_insert(RunError::Capture { path: name.into(), cause });
                    None
                }
            }
        }
    }
}
