//! `apportion import`: converts the configurations of other programs.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use anyhow::Context as _;
use apportion::import::{self, File, LONGEST, Options};

use crate::arguments::Import;
use crate::export::to_file;
use crate::output;
use crate::status::Status;

/// Name that stands for standard input.
const STANDARD_INPUT: &str = "-";

pub fn import(arguments: &Import) -> anyhow::Result<Status> {
    let Import { files, from, gateway, out, force } = arguments;
    let files: Vec<File> = files.iter().map(|path| read(path)).collect::<anyhow::Result<_>>()?;
    let beside = out.as_ref().map(|out| out.with_extension("csv"));
    let name = beside.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let options = Options { kind: *from, gateway: *gateway, plans: name.unwrap_or_default() };
    let imported = import::import(&files, &options).map_err(|problems| {
        let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow::anyhow!(lines.join("\n"))
    })?;
    match (out, &imported.plans) {
        (None, Some(_)) => anyhow::bail!(
            "it takes two files, with the plans of customers beside; write them with --out provider.toml"
        ),
        (None, None) => output::print(&imported.text)?,
        (Some(out), plans) => {
            let mut written = String::new();
            let plans = plans.as_ref().zip(beside.as_ref());
            if let Some((text, path)) = plans {
                anyhow::ensure!(
                    path != out,
                    "`{}` is for the plans of customers; write for example --out provider.toml",
                    out.display()
                );
                // Write both files or neither.
                anyhow::ensure!(
                    *force || !out.exists(),
                    "`{}` is there already; overwrite it with --force",
                    out.display()
                );
                to_file(path, *force, |file| Ok(file.write_all(text.as_bytes())?))?;
                written = format!("plans: {}\n", path.display());
            }
            to_file(out, *force, |file| Ok(file.write_all(imported.text.as_bytes())?))?;
            let what = if imported.is_gateway { "gateway" } else { "scenario" };
            output::print(&format!("{what}: {}\n{written}", out.display()))?;
        }
    }
    imported.notes.iter().for_each(|note| output::note(&format!("note: {note}")));
    Ok(Status::SUCCESS)
}

fn read(path: &Path) -> anyhow::Result<File> {
    if path.as_os_str() == STANDARD_INPUT {
        let mut text = String::new();
        let read = io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text);
        read.context("standard input cannot be read")?;
        let text = text.trim_start_matches('\u{feff}').to_owned();
        return Ok(File { name: "standard input".to_owned(), text });
    }
    let text = import::read(path).with_context(|| format!("{}: cannot be read", path.display()))?;
    Ok(File { name: path.display().to_string(), text })
}
