//! `apportion reproduce`: claims of papers compared with measurements.

use std::fmt::Write as _;
use std::process::ExitCode;

use apportion::{ReproduceError, Reproduction};

use crate::arguments::{Reproduce, World};
use crate::interrupt;
use crate::output;
use crate::progress::Bar;

pub fn reproduce(arguments: &Reproduce) -> anyhow::Result<ExitCode> {
    let in_lab = arguments.world == World::Lab;
    if arguments.mutants.is_some() {
        anyhow::ensure!(
            cfg!(feature = "mutants"),
            "this program has no mutants: build one that has, with `cargo build --release --features mutants`"
        );
        anyhow::ensure!(!in_lab, "mutants run in the simulator only: leave out --world lab or --mutants");
    }
    if in_lab {
        // Before there is a second thread.
        apportion::lab::enter()?;
    }
    let cancel = interrupt::listen()?;
    let bar = Bar::new(arguments.quiet || arguments.json);
    let mut reproduction = Reproduction::new(&arguments.experiments)
        .seeds(arguments.seeds)
        .jobs(arguments.jobs)
        .ablate(arguments.ablate)
        .force(arguments.force)
        .folder(&arguments.out)
        .cancel(&cancel)
        .progress(|progress| bar.show(progress));
    if let Some(names) = &arguments.variants {
        reproduction = reproduction.variants(names);
    }
    if in_lab {
        reproduction = reproduction.in_lab(arguments.late.retries);
        if !arguments.quiet && !arguments.json {
            let seconds = reproduction.real_seconds()?;
            output::note(&format!("in real time: this takes {seconds:.0} s, and more if runs are repeated"));
        }
    }
    #[cfg(feature = "mutants")]
    if let Some(names) = &arguments.mutants {
        return mutants(&reproduction, names, arguments);
    }
    let reproduced = reproduction.run();
    bar.clear();
    let reproduced = match reproduced {
        Err(error @ ReproduceError::Cancelled) => {
            output::note(&error.to_string());
            return Ok(ExitCode::from(1));
        }
        other => other?,
    };
    if arguments.json {
        output::print(&reproduced.json_lines())?;
    } else if !arguments.quiet {
        let mut text = reproduced.text();
        for page in reproduced.pages() {
            writeln!(text, "page: {}", page.display())?;
        }
        output::print(&text)?;
    }
    let faults = reproduced.faults();
    if !faults.is_empty() && !arguments.late.allow_late {
        let late = faults.len();
        output::note(&format!(
            "{late} runs of the lab are not valid, which is no verdict on a claim: {}",
            faults[0]
        ));
        return Ok(ExitCode::from(1));
    }
    Ok(if reproduced.holds() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Prints the fate of each mutant as it is known. Exit status 1 if one survives.
#[cfg(feature = "mutants")]
fn mutants(
    reproduction: &Reproduction<'_>,
    names: &[String],
    arguments: &Reproduce,
) -> anyhow::Result<ExitCode> {
    let mut printed = Ok(());
    let fates = reproduction.mutants(names, &mut |fate| {
        let text = match (arguments.json, arguments.quiet) {
            (true, _) => fate.json_line(),
            (false, true) => return,
            (false, false) => fate.text(),
        };
        if printed.is_ok() {
            printed = output::print(&text);
        }
    })?;
    printed?;
    if !arguments.json && !arguments.quiet {
        output::print(&format!("\n{}", apportion::mutants::summary(&fates)))?;
    }
    let survives = fates.iter().any(|fate| fate.killer.is_none());
    Ok(if survives { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
