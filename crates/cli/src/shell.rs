//! `apportion shell`: read what is asked, run the command behind the link, print what was measured.
//!
//! Standard output is the command's. What was measured goes to standard error, and by `--json`, `--log` and
//! `--report` to files, which are opened before the command starts: with the rights and paths that the caller has.

mod print;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, anyhow};
use apportion_core::units::{Ratio, Span};
use apportion_linux::command::Group;
use apportion_live::pace::Trace;
use apportion_live::shell::{self, DirectionParams, HostAccess, Log, Shell, Speed, Summary};
use apportion_scenario::queue;

use crate::arguments::{self, Wish};
use crate::output;

/// How deep shells are nested, from one to the next.
const DEPTH: &str = "APPORTION_DEPTH";
/// The queue of a direction without one. Chosen: what Linux interfaces have.
const QUEUE: &str = "{ kind = \"fifo\", limit = \"1000p\" }";
/// The interval of series in reports.
const SAMPLE: Span = Span::from_millis(100);

pub fn shell(arguments: &arguments::Shell) -> anyhow::Result<ExitCode> {
    let both = arguments.both.wish();
    let wishes = [arguments.up.wish().or(&both), arguments.down.wish().or(&both)];
    let [up, down] = [read(&wishes[0])?, read(&wishes[1])?];
    let depth = depth()?;
    if let Some(folder) = &arguments.report {
        apportion_report::check(folder)?;
    }
    let json = arguments.json.as_deref().map(create).transpose()?;
    let log = arguments.log.as_deref().map(|path| logs(path, arguments, &wishes)).transpose()?;
    let asked = print::Asked { arguments, wishes: &wishes };
    // Before the process leaves the network of the machine.
    let outside = arguments.outside.then(HostAccess::prepare).transpose()?;
    if outside.as_ref().is_some_and(|outside| outside.nameserver.is_none()) && !arguments.quiet {
        output::note("outside: /etc/resolv.conf names no server, so names are not resolved behind the link");
    }
    let shell = Shell {
        up,
        down,
        seed: arguments.seed,
        depth,
        command: command(&arguments.command),
        group: group(),
        far: arguments.far.as_deref().map(far).transpose()?,
        limit: arguments.time_limit,
        sample: arguments.report.is_some().then_some(SAMPLE),
        log,
        outside,
    };
    // A relative path means the same inside: the mounts are those of the caller.
    shell::enter()?;
    let summary = shell.run()?;
    tell(&asked, &summary, json)?;
    Ok(ExitCode::from(summary.status()))
}

fn tell(asked: &print::Asked<'_>, summary: &Summary, json: Option<BufWriter<File>>) -> anyhow::Result<()> {
    if !asked.arguments.quiet {
        print::lines(asked, summary).iter().for_each(|line| output::note(line));
    }
    if let Some(mut json) = json {
        writeln!(json, "{}", print::json(asked, summary))
            .and_then(|()| json.flush())
            .context("cannot write the JSON file")?;
    }
    if let Some(folder) = &asked.arguments.report {
        apportion_report::write(folder, &print::record(asked, summary, SAMPLE))?;
    }
    Ok(())
}

/// The parameters of one direction.
fn read(wish: &Wish) -> anyhow::Result<DirectionParams> {
    let speed = match wish {
        Wish { rate: Some(rate), .. } => Speed::Rate(*rate),
        Wish { steps: Some(steps), .. } => Speed::parse_steps(steps).context("steps")?,
        Wish { trace: Some(file), .. } => Speed::Trace(trace(file)?),
        _ => Speed::Unlimited,
    };
    let queue =
        queue::from_text(wish.queue.as_deref().unwrap_or(QUEUE)).map_err(|message| anyhow!(message))?;
    let delay = wish.delay.unwrap_or(Span::ZERO);
    Ok(DirectionParams { speed, delay, loss: wish.loss.unwrap_or(Ratio::ZERO), queue })
}

fn trace(file: &Path) -> anyhow::Result<Trace> {
    let text = fs::read_to_string(file).with_context(|| {
        format!("{}: cannot read the trace; name a file with a time in milliseconds a line", file.display())
    })?;
    Trace::parse(&text).with_context(|| file.display().to_string())
}

/// How many shells this one is in.
fn depth() -> anyhow::Result<u8> {
    let Some(text) = std::env::var_os(DEPTH) else { return Ok(0) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| {
        anyhow!("{DEPTH} is `{}`, no number from 0 to {}; unset it", text.display(), shell::MAX_DEPTH)
    })
}

fn command(words: &[OsString]) -> Command {
    // There is at least one: the arguments require it.
    let mut command = Command::new(words.first().map_or_else(OsString::new, Clone::clone));
    command.args(words.iter().skip(1));
    command
}

/// At a terminal the command must be in the foreground, as it would be without us. Where one of the streams is
/// not the terminal, others may be in the foreground with us (`apportion shell -- ls | less`), who must stay there.
fn group() -> Group {
    match [io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal()] {
        [true, true, _] => Group::Foreground,
        [false, false, false] => Group::Own,
        _ => Group::Callers,
    }
}

/// What runs at the far end has no input, and leaves standard output to the command.
fn far(line: &str) -> anyhow::Result<Command> {
    let mut command = Command::new("sh");
    let err = io::stderr().as_fd().try_clone_to_owned().context("cannot share standard error")?;
    command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::from(err));
    Ok(command)
}

fn create(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("cannot create `{}`", path.display()))?;
    Ok(BufWriter::new(file))
}

/// The logs of both directions.
fn logs(path: &Path, arguments: &arguments::Shell, wishes: &[Wish; 2]) -> anyhow::Result<[Log; 2]> {
    let log = |ending: &str, wish: &Wish| -> anyhow::Result<Log> {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        Ok(Log {
            file: Box::new(create(&PathBuf::from(&name))?),
            name: name.display().to_string(),
            source: print::speed(wish),
            command: print::command(arguments),
            queue: wish.queue.clone().unwrap_or_else(|| QUEUE.to_owned()),
        })
    };
    Ok([log(".up", &wishes[0])?, log(".down", &wishes[1])?])
}
