//! `apportion compare --parity`: the simulator against the TCP of this machine.

use std::path::Path;

use crate::arguments::{Backend, Compare, Wanted};
use crate::compare::{note_faults, print};
use crate::lab::RealTime;
use crate::output;
use crate::run::load;
use crate::status::Status;

/// Runs a scenario in the lab and in the simulator, writes the results of both, and compares them.
pub fn parity(scenario: &Path, arguments: &Compare) -> anyhow::Result<Status> {
    let (seeds, out, set) = (arguments.seeds.unwrap_or(1), arguments.out.clone(), arguments.set.clone());
    let (scenario, quiet) = (scenario.to_owned(), arguments.json);
    let wanted = &Wanted { scenario, seeds, out, set, json: quiet, quiet, show_config: false };
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
