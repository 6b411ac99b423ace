//! The `apportion` command: parsing and printing. What it prints is computed by the other crates.
//!
//! Exit status: 0 done, 1 a claim of a paper failed or interrupted before it was done, 2 bad usage or bad
//! input.

#![forbid(unsafe_code)]

mod arguments;
mod catalogue;
mod gateway;
mod interrupt;
mod output;
mod progress;
mod reproduce;
mod run;

use std::process::ExitCode;

use anyhow::Context as _;
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
        Command::Gateway(arguments) => return gateway::gateway(&arguments),
        Command::Reproduce(arguments) => return reproduce::reproduce(&arguments),
        Command::List { what } => output::print(&catalogue::list(what)?)?,
        Command::Explain { name } => output::print(&catalogue::explain(&name)?)?,
        Command::Schema => {
            let schema = serde_json::to_string(&apportion_scenario::describe::schema())?;
            output::print(&format!("{schema}\n"))?;
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "apportion", &mut script);
            output::print(&String::from_utf8_lossy(&script))?;
        }
        Command::Compare { runs, json } => {
            let runs: Result<Vec<_>, _> = runs.iter().map(|folder| apportion_report::load(folder)).collect();
            let comparison = apportion_report::compare(&runs?);
            if json {
                for row in &comparison.rows {
                    let line = serde_json::to_string(row).context("cannot print a row as JSON")?;
                    output::print(&format!("{line}\n"))?;
                }
            } else {
                output::print(&comparison.to_string())?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
