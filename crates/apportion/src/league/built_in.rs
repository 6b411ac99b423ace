//! The files of leagues and pairs that are part of the program.

use std::path::Path;

use apportion_report::file_name;
use apportion_scenario::{did_you_mean, read_text_file};

use crate::scenario::MAX_FILE;

/// Names with the texts of their files in a folder of the scenarios: `built_in! { "services": "cubic" "reno" }`.
macro_rules! built_in {
    ($folder:literal: $($name:literal)*) => {
        &[$(($name, include_str!(concat!(env!("APPORTION_SCENARIOS"), "/", $folder, "/", $name, ".toml")))),*]
    };
}

pub(super) use built_in;

/// The files of a folder, sorted by name; what is no folder stands for itself.
pub(super) fn files_of(name: &str) -> Vec<String> {
    let path = Path::new(name);
    let (true, Ok(entries)) = (path.is_dir(), path.read_dir()) else { return vec![name.to_owned()] };
    let mut files: Vec<_> =
        entries.filter_map(|entry| entry.ok()?.path().into_os_string().into_string().ok()).collect();
    files.retain(|file| file.ends_with(".toml"));
    files.sort();
    if files.is_empty() { vec![name.to_owned()] } else { files }
}

/// Returns the text and the short name of what `name` names, and whether it is built in; otherwise it is the path of
/// a file. `command` lists the names.
pub(super) fn text_of(
    name: &str,
    kind: &str,
    known: &[(&'static str, &'static str)],
    command: &str,
) -> Result<(String, String, bool), String> {
    let path = Path::new(name);
    match known.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Ok(((*text).to_owned(), name.to_owned(), true)),
        None if path.is_file() => {
            let text = read_text_file(path, MAX_FILE).map_err(|error| format!("cannot read it: {error}"))?;
            Ok((text, file_name(&path.file_stem().unwrap_or_default().to_string_lossy()), false))
        }
        None if path.is_dir() => Err("there is no .toml file in this folder".to_owned()),
        None => {
            let guess = did_you_mean(name, known.iter().map(|(known, _)| *known));
            Err(format!(
                "there is no such {kind} and no such file{guess}; `apportion {command} --list` prints the names"
            ))
        }
    }
}

/// The names, sorted.
#[cfg(test)]
pub(super) fn sorted(known: &[(&str, &str)]) -> Vec<String> {
    let mut names: Vec<String> = known.iter().map(|(name, _)| (*name).to_owned()).collect();
    names.sort();
    names
}

/// The names of the files in a folder of the scenarios, sorted.
#[cfg(test)]
pub(super) fn files(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(folder);
    let names =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".toml").map(str::to_owned)).collect();
    names.sort();
    names
}
