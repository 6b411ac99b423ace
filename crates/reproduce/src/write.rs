//! The folder of results: `PAPER.html` and `PAPER.jsonl` for each paper.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use apportion_report::file_name;

use crate::judge::Claim;
use crate::page::{kit, page};
use crate::plan::{Plan, PlannedPaper, Results};
use crate::table::json_lines;
use crate::variant_table::Table;

/// World of the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum World {
    Simulator,
    /// Over the TCP of this machine.
    Lab,
}

/// Why results could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write results to `{}`: {cause}; {MEND}", path.display())]
pub struct WriteError {
    path: PathBuf,
    cause: io::Error,
}

/// What to do. Windows replaces no file that another program has open.
const MEND: &str = if cfg!(windows) {
    "close it in other programs, or choose another folder with --out DIR"
} else {
    "choose another folder with --out DIR"
};

/// Creates `folder` if need be, and checks that it can be written. Cheap: call it before a long run.
///
/// # Errors
/// The folder cannot be created or written.
pub fn check(folder: &Path) -> Result<(), WriteError> {
    let probe = folder.join(".probe.partial");
    let tried = fs::create_dir_all(folder)
        .and_then(|()| fs::write(&probe, ""))
        .and_then(|()| fs::remove_file(&probe));
    tried.map_err(|cause| WriteError { path: folder.to_owned(), cause })
}

/// Writes the page and the JSON lines of each paper, and returns the paths of the pages. Each file is written
/// under a temporary name and then renamed. Names end in `-lab` for the lab, and in `-ablated` if mechanisms
/// are switched off. A table of variants has its own lines, `PAPER-variants.jsonl`. `with_kit` adds figures
/// and tables for papers, in a folder `PAPER-kit`.
///
/// # Errors
/// A file cannot be written.
pub fn write(
    folder: &Path,
    plan: &Plan,
    results: &Results,
    claims: &[Claim],
    world: World,
    with_kit: bool,
    command: &str,
) -> Result<Vec<PathBuf>, WriteError> {
    check(folder)?;
    let mut pages = Vec::new();
    for paper in &plan.papers {
        let claims = of_paper(paper, claims);
        let lab = if world == World::Lab { "-lab" } else { "" };
        let name = file_name(&paper.paper.key) + lab + if plan.ablated { "-ablated" } else { "" };
        put(&folder.join(format!("{name}.jsonl")), json_lines(claims.iter().copied()))?;
        let variants = (plan.varied && !paper.variants.is_empty()).then(|| Table::of(paper, results));
        if let Some(variants) = &variants {
            put(&folder.join(format!("{name}-variants.jsonl")), variants.json_lines())?;
        }
        let html = folder.join(format!("{name}.html"));
        put(&html, page(paper, results, &claims, variants.as_ref(), command))?;
        if with_kit {
            let folder = folder.join(format!("{name}-kit"));
            check(&folder)?;
            for (name, content) in kit(paper, results, &claims, command) {
                put(&folder.join(name), content)?;
            }
        }
        pages.push(html);
    }
    Ok(pages)
}

fn of_paper<'a>(paper: &PlannedPaper, claims: &'a [Claim]) -> Vec<&'a Claim> {
    let mine =
        |claim: &&Claim| paper.experiments.iter().any(|planned| planned.experiment.id == claim.experiment);
    claims.iter().filter(mine).collect()
}

fn put(path: &Path, content: impl AsRef<[u8]>) -> Result<(), WriteError> {
    let partial = path.with_extension("partial");
    fs::write(&partial, content).and_then(|()| fs::rename(&partial, path)).map_err(|cause| {
        let _ = fs::remove_file(&partial);
        WriteError { path: path.to_owned(), cause }
    })
}
