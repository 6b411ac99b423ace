//! `apportion compare`: compares runs with the first of them, as text and as a page.

use std::io::Write as _;

use anyhow::Context as _;
use serde::Serialize;

use crate::arguments::Compare;
use crate::export::to_file;
use crate::output;
use crate::status::Status;

pub fn compare(arguments: &Compare) -> anyhow::Result<Status> {
    #[cfg(target_os = "linux")]
    if let Some(scenario) = &arguments.parity {
        return crate::parity::parity(scenario, arguments);
    }
    if let Some(option) = arguments.option_of_runs() {
        anyhow::bail!(
            "nothing is run when results are compared: leave out {option}, or name a scenario with --parity"
        );
    }
    let page = arguments.out.as_deref();
    if let Some(file) = page.filter(|file| file.extension().is_none_or(|ending| ending != "html")) {
        anyhow::bail!(
            "`{}` does not end in .html: --out of runs is the file of a page; that of --parity is a folder",
            file.display()
        );
    }
    let runs = arguments.runs.iter().map(apportion::load).collect::<Result<Vec<_>, _>>()?;
    let invalid = runs.iter().find(|run| !run.faults.is_empty() && !arguments.late.allow_late);
    if let Some(run) = invalid {
        note_faults(&run.faults);
        anyhow::bail!(
            "the results in `{}` are not valid: run them again, or compare them all the same with --allow-late",
            run.folder.display()
        );
    }
    let comparison = apportion::compare(&runs)?;
    let moved = comparison.moved(&arguments.fail_on)?;
    if let Some(file) = page {
        to_file(file, arguments.force, |out| Ok(out.write_all(comparison.page(&runs).as_bytes())?))?;
    }
    print(arguments.json, &comparison.rows, &comparison)?;
    if let Some(file) = page.filter(|_| !arguments.json) {
        output::print(&format!("page: {}\n", file.display()))?;
    }
    moved.iter().for_each(|text| output::note(&format!("moved: {text}")));
    Ok(if moved.is_empty() { Status::SUCCESS } else { Status::FAILURE })
}

/// Reports why results are not valid.
pub fn note_faults(faults: &[String]) {
    faults.iter().for_each(|fault| output::note(&format!("NOT VALID: {fault}")));
}

/// Prints rows as JSON lines, or everything as text.
pub fn print(json: bool, rows: &[impl Serialize], text: &impl ToString) -> anyhow::Result<()> {
    if !json {
        return Ok(output::print(&text.to_string())?);
    }
    for row in rows {
        let line = serde_json::to_string(row).context("cannot print a row as JSON")?;
        output::print(&format!("{line}\n"))?;
    }
    Ok(())
}
