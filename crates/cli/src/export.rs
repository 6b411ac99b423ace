//! `apportion export`: a table of a run as CSV, its metrics as tables of LaTeX, or a run as a data file of Flent.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;

use crate::arguments::Export;
use crate::output;
use crate::status::Status;

pub fn export(arguments: &Export) -> anyhow::Result<Status> {
    let Export { run, table, latex: _, point, out, force } = arguments;
    let write = |out: &mut dyn io::Write| -> anyhow::Result<()> {
        let Some(table) = table else {
            let table = apportion::latex(&apportion::load(run)?);
            return Ok(out.write_all(table.as_bytes())?);
        };
        if table == FLENT {
            return apportion::export_flent(run, point.as_deref(), out).map_err(|error| match error {
                apportion::FlentError::Write(error) => error.into(),
                other => other.into(),
            });
        }
        anyhow::ensure!(point.is_none(), "a table has all points; leave --point out, or export `{FLENT}`");
        // A reader that closes the pipe is no failure of the export.
        apportion::export(run, table, out).map_err(|error| match error {
            apportion::ExportError::Write(error) => error.into(),
            other => other.into(),
        })
    };
    match out {
        None => {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out)?;
            out.flush()?;
        }
        Some(path) => {
            to_file(path, *force, |file| write(file))?;
            output::print(&format!(
                "{}: {}\n",
                if table.as_deref() == Some(FLENT) { "file" } else { "table" },
                path.display()
            ))?;
        }
    }
    Ok(Status::SUCCESS)
}

/// The export that is no table.
const FLENT: &str = "flent";

/// Writes a file as a whole or not at all; overwrites one with `force` only.
pub fn to_file(
    path: &Path,
    force: bool,
    fill: impl FnOnce(&mut BufWriter<File>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let place = || format!("cannot write `{}`", path.display());
    anyhow::ensure!(
        force || !path.exists(),
        "`{}` is there already; overwrite it with --force",
        path.display()
    );
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let partial = path.with_file_name(format!(".{name}-{}.partial", std::process::id()));
    let mut file = BufWriter::new(File::create(&partial).with_context(place)?);
    let written = fill(&mut file).and_then(|()| {
        file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all().with_context(place)?;
        fs::rename(&partial, path).with_context(|| match cfg!(windows) {
            true => place() + "; close it in other programs",
            false => place(),
        })
    });
    if written.is_err() {
        fs::remove_file(&partial).ok();
    }
    written
}
