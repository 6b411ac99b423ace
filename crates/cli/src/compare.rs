//! `apportion compare`: compares runs with the first of them, as text and as a page, or the simulator with
//! the TCP of this machine.

use std::io::Write as _;

use anyhow::Context as _;
use serde::Serialize;

use crate::arguments::{Backend, Compare, Wanted};
use crate::export::to_file;
use crate::lab::RealTime;
use crate::output;
use crate::run::load;
use crate::status::Status;

pub fn compare(arguments: &Compare) -> anyhow::Result<Status> {
    if let Some(scenario) = &arguments.parity {
        let (seeds, out, set) = (arguments.seeds.unwrap_or(1), arguments.out.clone(), arguments.set.clone());
        let quiet = arguments.json;
        let wanted =
            Wanted { scenario: scenario.clone(), seeds, out, set, json: quiet, quiet, show_config: false };
        return parity(&wanted, arguments);
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

/// Runs a scenario in the lab and in the simulator, writes the results of both, and compares them.
fn parity(wanted: &Wanted, arguments: &Compare) -> anyhow::Result<Status> {
    let late = arguments.late;
    let scenario = load(wanted)?;
    let folder = wanted.folder("-parity");
    ["lab", "sim"].iter().try_for_each(|backend| apportion::check_folder(folder.join(backend)))?;
    let backend = arguments.backend.unwrap_or(Backend::UserSpace).into();
    apportion::lab::check_parity(&scenario, backend)?;
    let run = |run: apportion::Run<'_>| {
        run.retries(late.retries()).force(arguments.force).backend(backend).parity()
    };
    let results = RealTime::enter(&scenario, wanted, backend, None)?.run(&scenario, wanted, &folder, run);
    let Some(parity) = results?.parity else {
        output::note("interrupted before all runs were done: nothing is compared");
        return Ok(Status::from(1));
    };
    if !parity.invalid.is_empty() && !late.allow_late {
        note_faults(&parity.invalid);
        output::note("nothing is compared; --allow-late compares results that are not valid");
        return Ok(Status::from(1));
    }
    print(wanted.json, &parity.rows, &parity)?;
    if wanted.json {
        note_faults(&parity.faults);
        note_faults(&parity.invalid);
    }
    Ok(if parity.agrees() { Status::SUCCESS } else { Status::from(1) })
}

/// Reports why results are not valid.
pub fn note_faults(faults: &[String]) {
    faults.iter().for_each(|fault| output::note(&format!("NOT VALID: {fault}")));
}

/// Prints rows as JSON lines, or everything as text.
fn print(json: bool, rows: &[impl Serialize], text: &impl ToString) -> anyhow::Result<()> {
    if !json {
        return Ok(output::print(&text.to_string())?);
    }
    for row in rows {
        let line = serde_json::to_string(row).context("cannot print a row as JSON")?;
        output::print(&format!("{line}\n"))?;
    }
    Ok(())
}
