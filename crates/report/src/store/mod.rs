//! The store: a folder for each run, in the given folder: `DIR/1`, `DIR/2` and so on. Nothing is overwritten.
//!
//! A run is written to a hidden folder, which gets its name when it is complete: a write that fails or is
//! interrupted leaves nothing. Tables are Parquet files, one for each type of [rows](crate::rows). Runs that
//! are not long also have the most used tables as CSV files, for people. `run.json` describes the run.
//!
//! | module | holds |
//! |---|---|
//! | `file_name` | a name as the name of a file |
//! | `folder` | the folder of a run, which appears as a whole |
//! | [`FileSystem`] | whether the system has files |
//! | `head` | `run.json` |
//! | `lock` | whether the writer of a hidden folder lives |
//! | `parquet` | a table as a file, written and read row by row |
//! | `write` | a run that is written as it goes on |
//! | `read` | a run that is read back |

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

mod file_name;
mod file_system;
mod folder;
mod head;
mod lock;
mod parquet;
mod read;
mod write;

pub use file_name::file_name;
pub use file_system::FileSystem;
pub use folder::{check, find};
pub use head::Provenance;
pub(crate) use read::StoredPoint;
pub(crate) use read::series;
pub use read::{ExportError, StoredRun, TABLES, export, load, read};
pub use write::{Contents, Folder, Writer, csv, write};

/// Why results could not be written: where, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("cannot write results to `{}`: {cause}; {hint}", path.display())]
pub struct WriteError {
    path: PathBuf,
    cause: String,
    hint: &'static str,
}

/// Why results could not be read: where, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("cannot read results from `{}`: {cause}; {hint}", path.display())]
pub struct LoadError {
    path: PathBuf,
    cause: String,
    hint: &'static str,
}

impl WriteError {
    fn io(path: &Path, error: &io::Error) -> Self {
        let hint = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "free some space or choose a folder on another disk with --out DIR"
            }
            ErrorKind::FileTooLarge => "raise the limit of file sizes that `ulimit -f` prints",
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "make it writable or choose another folder with --out DIR"
            }
            ErrorKind::NotADirectory | ErrorKind::AlreadyExists => {
                "a file is where a folder is needed; choose another folder with --out DIR"
            }
            _ => "choose another folder with --out DIR",
        };
        Self { path: path.to_owned(), cause: error.to_string(), hint }
    }
}
