//! The arguments of `apportion league` and `apportion pairs`.

use std::path::PathBuf;

use apportion::units::{Rate, Span};
use clap::Args;

use super::{CacheUse, PhaseCheck, jobs, whole};

#[derive(Args, Debug)]
pub struct League {
    /// Disciplines, such as fifo,stfq+pfd,fq_codel+isolate or '{ kind = "pie", target = "5ms" }' [default: all of the catalogue]
    #[arg(long, value_name = "NAME,...")]
    pub disciplines: Vec<String>,
    /// Scenarios to run, by name or path of a file or a folder [default: all built-in ones]
    #[arg(long, value_name = "NAME|PATH,...")]
    pub situations: Vec<String>,
    /// Replications of each cell, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = whole(1..=10_000))]
    pub seeds: u64,
    #[command(flatten)]
    pub phase_check: PhaseCheck,
    #[command(flatten)]
    pub play: Play,
    /// Take the cells of a stored league, from its folder or its league.jsonl, and run nothing
    #[arg(long, value_name = "DIR|FILE",
          conflicts_with_all = ["seeds", "jobs", "phase_check", "no_phase_check", "no_cache", "list", "estimate", "force"])]
    pub from: Option<PathBuf>,
    /// Also write figures (SVG, PDF) and LaTeX tables, into the folder `kit`
    #[arg(long)]
    pub kit: bool,
    /// Folder in which each league writes a new folder: DIR/1, then DIR/2
    #[arg(long, value_name = "DIR", default_value = "results/league")]
    pub out: PathBuf,
    /// Print the scenarios with a line about each, and exit
    #[arg(long)]
    pub list: bool,
}

#[derive(Args, Debug)]
pub struct Pairs {
    /// Services, by name or path of a file with [flow.NAME] tables, or of a folder of such files [default: all built-in ones]
    #[arg(long, value_name = "NAME|PATH,...")]
    pub services: Vec<String>,
    /// Disciplines of the link, as in `apportion league` [default: '{ kind = "fifo", limit = "200ms" }']
    #[arg(long, value_name = "NAME,...")]
    pub disciplines: Vec<String>,
    /// Rates of the link [default: 8Mbit,50Mbit]
    #[arg(long, value_name = "RATE,...", value_delimiter = ',')]
    pub rates: Vec<Rate>,
    /// Length of a trial, of which the middle six tenths count
    #[arg(long, value_name = "TIME", default_value = "120s")]
    pub length: Span,
    /// Trials of each pair, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = whole(1..=10_000))]
    pub seeds: u64,
    #[command(flatten)]
    pub play: Play,
    /// Folder in which each result gets a new folder: DIR/1, then DIR/2
    #[arg(long, value_name = "DIR", default_value = "results/pairs")]
    pub out: PathBuf,
    /// Print the services with a line about each, and exit
    #[arg(long)]
    pub list: bool,
}

/// How a league of cells or of pairs runs, and what it prints.
#[derive(Args, Debug)]
pub struct Play {
    /// Replications that run in parallel; 0 for one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    pub jobs: usize,
    #[command(flatten)]
    pub cache: CacheUse,
    /// Print an estimate of the CPU time and memory, and exit
    #[arg(long, conflicts_with = "json")]
    pub estimate: bool,
    /// Run even if the estimate exceeds a day of CPU time or 2 GB of memory
    #[arg(long)]
    pub force: bool,
    /// Print the rows of the CSV file as JSON, one object a line, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}
