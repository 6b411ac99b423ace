//! The `apportion` command: a client of the library `apportion`. It parses arguments, shows progress, prints what
//! the library returns, and chooses the exit status.
//!
//! Exit status: 0, done; 1, a claim of a paper failed, a run of the lab is not valid, or the command was
//! interrupted; 2, bad usage or bad input. `apportion shell` exits with the status of its command.
//!
//! It is a library so that the Python package has the same command without a second program.

#![forbid(unsafe_code)]

mod arguments;
mod cache;
mod catalogue;
mod cluster;
mod compare;
mod export;
#[cfg(target_os = "linux")]
mod flow_rules;
#[cfg(target_os = "linux")]
mod gateway;
mod import;
mod interrupt;
#[cfg(target_os = "linux")]
mod lab;
mod league;
mod output;
mod pairs;
#[cfg(target_os = "linux")]
mod parity;
mod plot;
mod progress;
mod reproduce;
mod run;
#[cfg(target_os = "linux")]
mod shell;
mod status;
mod sweep;
mod top;
#[cfg(target_os = "linux")]
mod watch;

use std::ffi::OsString;

use apportion::catalogue::standard;

use crate::arguments::Command;
#[cfg(target_os = "linux")]
use crate::arguments::OnLinux;
pub use crate::cluster::{Cluster, OnCluster};
pub use crate::status::Status;

/// Runs the command line `words`; the first word is the name of the program. Exits the process on a usage
/// error or a request for help. The process must have a single thread, which commands on real packets check.
pub fn main(words: impl IntoIterator<Item = OsString>) -> Status {
    main_with(words, None)
}

/// Like [`main()`], with a way to simulate on a cluster.
pub fn main_with(words: impl IntoIterator<Item = OsString>, cluster: Option<Cluster<'_>>) -> Status {
    outlive_file_limits();
    match arguments::parse(words).and_then(|arguments| dispatch(arguments.command, cluster)) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => Status::SUCCESS,
        Err(error) => {
            output::error(&format!("{error:#}"));
            Status::from(2)
        }
    }
}

/// The command line as data, for completions and for the man pages that packages install.
#[must_use]
pub fn command() -> clap::Command {
    arguments::command()
}

/// Blocks SIGXFSZ: a file at its size limit (`ulimit -f`) then fails the write instead of ending the process.
fn outlive_file_limits() {
    #[cfg(unix)]
    {
        use nix::sys::signal::{SigSet, Signal};
        // Fails on invalid arguments only.
        let _ = SigSet::from(Signal::SIGXFSZ).thread_block();
    }
}

fn dispatch(command: Command, cluster: Option<Cluster<'_>>) -> anyhow::Result<Status> {
    match command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Sweep(arguments) => return sweep::sweep(&arguments, cluster),
        #[cfg(target_os = "linux")]
        Command::OnLinux(command) => {
            return match command {
                OnLinux::Lab(arguments) => lab::lab(&arguments),
                OnLinux::Shell(arguments) => shell::shell(&arguments),
                OnLinux::Gateway(arguments) => gateway::gateway(&arguments),
            };
        }
        Command::Reproduce(arguments) => return reproduce::reproduce(&arguments, cluster),
        Command::League(arguments) => return league::league(&arguments),
        Command::Pairs(arguments) => return pairs::pairs(&arguments),
        Command::Import(arguments) => return import::import(&arguments),
        Command::List { what } => output::print(&catalogue::list(&standard(), what)?)?,
        Command::Explain { name } => {
            output::print(&apportion::catalogue::explain(&standard(), &name)?)?;
        }
        Command::Schema => {
            let schema = serde_json::to_string(&apportion::catalogue::schema(&standard()))?;
            output::print(&format!("{schema}\n"))?;
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut crate::command(), "apportion", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
        }
        Command::Cache { command } => return cache::run(&command),
        Command::Compare(arguments) => return compare::compare(&arguments),
        Command::Export(arguments) => return export::export(&arguments),
        Command::Plot(arguments) => return plot::plot(&arguments),
        Command::Top(arguments) => return top::top(&arguments),
    }
    Ok(Status::SUCCESS)
}
