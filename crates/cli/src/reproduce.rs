//! `apportion reproduce`: papers against measured.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use apportion_reproduce::table::{json_lines, tables};
use apportion_reproduce::{Plan, Scope, find, judge, variant_table, write};

use crate::arguments::Reproduce;
use crate::interrupt::{self, CANCEL};
use crate::output;
use crate::progress::Progress;

/// Where a checkout has its papers.
pub const PAPERS: &str = "papers";

pub fn reproduce(arguments: &Reproduce) -> anyhow::Result<ExitCode> {
    let (papers, wanted) = find(Path::new(PAPERS), &arguments.experiments)?;
    let scope = match &arguments.variants {
        Some(names) => Scope::Variants(names),
        None if arguments.ablate => Scope::Ablated,
        None => Scope::Usual,
    };
    let plan = Plan::new(papers, &wanted, scope)?;
    write::check(&arguments.out)?;
    interrupt::listen()?;

    let runs = plan.distinct_runs() * usize::try_from(arguments.seeds)?;
    let progress = Progress::new(runs, arguments.quiet || arguments.json);
    let results = plan.execute(arguments.seeds, arguments.jobs, &|| progress.step(), &CANCEL);
    progress.finish();
    let Some(results) = results? else {
        output::note("interrupted before all runs were done: nothing is judged or written");
        return Ok(ExitCode::from(1));
    };
    let claims = judge(&plan, &results);
    let pages = write::write(&arguments.out, &plan, &results, &claims, &command(arguments))?;
    let variants = if plan.varied { variant_table::tables(&plan, &results) } else { Vec::new() };
    if arguments.json {
        let lines: String = variants.iter().map(variant_table::Table::json_lines).collect();
        output::print(&(json_lines(&claims) + &lines))?;
    } else if !arguments.quiet {
        let mut text = tables(&claims);
        for table in variants {
            write!(text, "\n{}", table.markdown())?;
        }
        for page in pages {
            writeln!(text, "page: {}", page.display())?;
        }
        output::print(&text)?;
    }
    let failed = claims.iter().any(apportion_reproduce::Claim::fails_run);
    Ok(if failed { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// What to type to get the same page.
fn command(arguments: &Reproduce) -> String {
    let mut command = "apportion reproduce".to_owned();
    for name in &arguments.experiments {
        command.push(' ');
        command.push_str(name);
    }
    let _ = write!(command, " --seeds {}", arguments.seeds);
    if arguments.ablate {
        command.push_str(" --ablate");
    }
    if let Some(names) = &arguments.variants {
        command.push_str(" --variants");
        for name in names {
            let _ = write!(command, " \"{name}\"");
        }
    }
    command
}
