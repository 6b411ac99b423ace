//! `apportion reproduce`: papers against measured.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use apportion_reproduce::text::{json_lines, tables};
use apportion_reproduce::{Plan, find, judge, write};

use crate::arguments::Reproduce;
use crate::interrupt::{self, CANCEL};
use crate::output;
use crate::progress::Progress;

/// Where a checkout has its papers.
pub const PAPERS: &str = "papers";

pub fn reproduce(arguments: &Reproduce) -> anyhow::Result<ExitCode> {
    let (papers, wanted) = find(Path::new(PAPERS), &arguments.experiments)?;
    let plan = Plan::new(papers, &wanted, arguments.ablate)?;
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
    if arguments.json {
        output::print(&json_lines(&claims))?;
    } else if !arguments.quiet {
        let mut text = tables(&claims);
        for page in pages {
            writeln!(text, "page: {}", page.display())?;
        }
        output::print(&text)?;
    }
    let failed = claims.iter().any(apportion_reproduce::Claim::condemns);
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
    command
}
