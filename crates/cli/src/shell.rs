//! `apportion shell`: reads options, runs the command behind the link, prints the measurements.
//!
//! Standard output belongs to the command. Results go to standard error, and with `--json`, `--log` and
//! `--report` to files. These are opened before the command starts, with the rights and paths of the caller.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::Context as _;
use apportion::shell::{Shell, ShellResults};

use crate::arguments;
use crate::output;
use crate::status::Status;

pub fn shell(arguments: &arguments::Shell) -> anyhow::Result<Status> {
    let both = arguments.both.options();
    let shell = Shell {
        up: arguments.up.options().or(&both),
        down: arguments.down.options().or(&both),
        real_rate: arguments.real_rate.clone(),
        notifications: arguments.notifications.clone(),
        far: arguments.far.clone(),
        outside: arguments.outside,
        time_limit: arguments.time_limit,
        log: arguments.log.clone(),
        series: arguments.report.is_some(),
        max_lateness: arguments.max_lateness,
        seed: arguments.seed,
        ..Shell::new(&arguments.command)
    };
    if let Some(folder) = &arguments.report {
        apportion::check_folder(folder)?;
    }
    let json = arguments.json.as_deref().map(create).transpose()?;
    let shell = shell.prepare()?;
    if shell.lacks_nameserver() && !arguments.quiet {
        output::note("outside: /etc/resolv.conf names no server, so names are not resolved behind the link");
    }
    if shell.lacks_real_rate() && !arguments.quiet {
        output::note(
            "warning: no flow is real-rate, so `ramp` divides what it has among greedy flows alone; name those that need a \
             rate, for example --real-rate '{ protocol = \"udp\", to_port = 5004 }'",
        );
    }
    let results = shell.run()?;
    publish(arguments, &results, json)?;
    Ok(Status::from(results.status()))
}

fn publish(
    arguments: &arguments::Shell,
    results: &ShellResults,
    json: Option<BufWriter<File>>,
) -> anyhow::Result<()> {
    if !arguments.quiet {
        results.lines().iter().for_each(|line| output::note(line));
    }
    if let Some(mut json) = json {
        writeln!(json, "{}", results.json())
            .and_then(|()| json.flush())
            .context("cannot write the JSON file")?;
    }
    if let Some(folder) = &arguments.report {
        let folder = results.results().write(folder)?;
        if !arguments.quiet {
            output::note(&format!("report: {}", folder.join("report.html").display()));
        }
    }
    Ok(())
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot create `{}`", path.display()))?;
    Ok(BufWriter::new(file))
}
