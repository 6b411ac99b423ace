//! The `apportion` command: a client of the library `apportion`. It parses arguments, shows progress, prints what
//! the library returns, and chooses the exit status.
//!
//! Exit status: 0 done, 1 a claim of a paper failed, a run of the lab is not valid, or interrupted before it was done,
//! 2 bad usage or bad input. `apportion shell` exits as its command does.

#![forbid(unsafe_code)]

mod arguments;
mod catalogue;
mod compare;
mod gateway;
mod interrupt;
mod lab;
mod output;
mod progress;
mod reproduce;
mod run;
mod shell;

use std::process::ExitCode;

use apportion::Catalog;
use clap::{CommandFactory as _, Parser as _};

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn dispatch(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(arguments) => return run::run(&arguments),
        Command::Lab(arguments) => return lab::lab(&arguments),
        Command::Gateway(arguments) => return gateway::gateway(&arguments),
        Command::Reproduce(arguments) => return reproduce::reproduce(&arguments),
        Command::Shell(arguments) => return shell::shell(&arguments),
        Command::List { what } => output::print(&catalogue::list(&Catalog::default(), what)?)?,
        Command::Explain { name } => {
            output::print(&apportion::catalogue::explain(&Catalog::default(), &name)?)?;
        }
        Command::Schema => {
            let schema = serde_json::to_string(&apportion::catalogue::schema(&Catalog::default()))?;
            output::print(&format!("{schema}\n"))?;
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "apportion", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
        }
        Command::Compare(arguments) => return compare::compare(&arguments),
    }
    Ok(ExitCode::SUCCESS)
}
