//! `apportion reproduce`: claims of papers compared with measurements.

use std::fmt::Write as _;

use apportion::{ReproduceError, Reproduction};

use crate::arguments::{Reproduce, World};
use crate::interrupt;
use crate::output;
use crate::progress::Bar;
use crate::status::Status;

pub fn reproduce(arguments: &Reproduce) -> anyhow::Result<Status> {
    let in_lab = arguments.world == World::Lab;
    check(arguments, in_lab)?;
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
        reproduction = reproduction.in_lab(arguments.late.retries());
        if !arguments.quiet && !arguments.json {
            let seconds = reproduction.real_seconds()?;
            output::note_real_time(seconds);
        }
    }
    let ran = match &arguments.mutants {
        #[cfg(feature = "mutants")]
        Some(names) => mutants(&reproduction, names, arguments),
        _ => claims(&reproduction, &bar, arguments),
    };
    match ran {
        Err(error) if matches!(error.downcast_ref(), Some(ReproduceError::Cancelled)) => {
            output::note(&error.to_string());
            Ok(Status::from(1))
        }
        other => other,
    }
}

/// Refuses arguments that contradict each other.
fn check(arguments: &Reproduce, in_lab: bool) -> anyhow::Result<()> {
    let about_lab = arguments.late.retries.is_some() || arguments.late.allow_late;
    anyhow::ensure!(
        in_lab || !about_lab,
        "--retries and --allow-late are about runs of the lab: add --world lab, or leave them out"
    );
    if arguments.mutants.is_some() {
        anyhow::ensure!(
            cfg!(feature = "mutants"),
            "this program has no mutants: build one that has, with `cargo build --release --features mutants`"
        );
        anyhow::ensure!(!in_lab, "mutants run in the simulator only: leave out --world lab or --mutants");
    }
    Ok(())
}

/// Runs the experiments and prints their claims. Exit status 1 if one fails.
fn claims(reproduction: &Reproduction<'_>, bar: &Bar, arguments: &Reproduce) -> anyhow::Result<Status> {
    let reproduced = reproduction.run();
    bar.clear();
    let reproduced = reproduced?;
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
        return Ok(Status::from(1));
    }
    Ok(if reproduced.holds() { Status::SUCCESS } else { Status::from(1) })
}

/// Prints the fate of each mutant as it is known. Exit status 1 if one survives.
#[cfg(feature = "mutants")]
fn mutants(
    reproduction: &Reproduction<'_>,
    names: &[String],
    arguments: &Reproduce,
) -> anyhow::Result<Status> {
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
    Ok(if survives { Status::from(1) } else { Status::SUCCESS })
}
