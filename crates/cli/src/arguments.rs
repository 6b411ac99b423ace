//! The command line as data.

#[cfg(any(test, not(target_os = "linux")))]
mod elsewhere;
mod import;
mod league;
#[cfg(target_os = "linux")]
mod on_linux;
#[cfg(target_os = "linux")]
mod shell;
mod top;

pub use import::Import;
pub use league::{League, Pairs, Play};
#[cfg(target_os = "linux")]
pub use on_linux::{Gateway, GatewayCommand, Lab, LogFormat, OnLinux, RuleFormat};
#[cfg(target_os = "linux")]
pub use shell::Shell;
pub use top::Top;

use std::any::TypeId;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use apportion::plot::Kind;
use apportion::units::Bytes;
use clap::builder::{PathBufValueParser, PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

/// The command line of this system as data.
pub fn command() -> clap::Command {
    let command = Arguments::command();
    #[cfg(not(target_os = "linux"))]
    let command = elsewhere::hide(command);
    if cfg!(windows) {
        command.mut_subcommands(|command| command.mut_args(paths_of_windows))
    } else {
        command
    }
}

/// Parses the command line `words`. Exits the process on a usage error or a request for help; names the new
/// option in place of a renamed one.
///
/// # Errors
/// The command or an option needs another system.
pub fn parse(words: impl IntoIterator<Item = OsString>) -> anyhow::Result<Arguments> {
    let words: Vec<OsString> = words.into_iter().collect();
    let matches = command().try_get_matches_from(&words).unwrap_or_else(|error| exit(error, &words));
    #[cfg(not(target_os = "linux"))]
    if let Some(refusal) = elsewhere::refusal(&matches) {
        anyhow::bail!(refusal);
    }
    Ok(Arguments::from_arg_matches(&matches)
        .unwrap_or_else(|error| exit(error.format(&mut command()), &words)))
}

/// Prints a usage error in the command line `words`, or the help that was asked for, and exits.
fn exit(mut error: clap::Error, words: &[OsString]) -> ! {
    let command = command();
    let used = words.iter().skip(1).find_map(|word| command.find_subcommand(word));
    let options = used.into_iter().flat_map(clap::Command::get_arguments);
    let options: Vec<String> =
        options.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    if let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg)
        && let Some(new) = apportion::renamed(unknown, &options)
    {
        let tip = format!("'{unknown}' is called '{new}'").into();
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error.exit()
}

/// Divide a link's bandwidth among the flows that share it, and see who gets what.
#[derive(Debug, Parser)]
#[command(name = "apportion", version, arg_required_else_help = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a scenario in the simulator, and write results and a report
    Run(Run),
    /// Run a scenario in the simulator on a Dask cluster, and write results and a report here
    Sweep(Sweep),
    #[cfg(target_os = "linux")]
    #[command(flatten)]
    OnLinux(OnLinux),
    /// Watch a run or a gateway in this terminal: shares, delay, drops
    Top(Top),
    /// Compare the claims of papers with measurements
    Reproduce(Reproduce),
    /// Compare disciplines in a set of scenarios, on one page
    League(League),
    /// Run each service next to each other on one link, and compare what they get with their fair shares
    Pairs(Pairs),
    /// Convert a configuration of LibreQoS, sqm-scripts, tc or containerlab to a scenario or a gateway
    Import(Import),
    /// List disciplines, markers, TCP profiles, sources, topologies, example scenarios and experiments
    List {
        /// Which list [default: all]
        what: Option<What>,
    },
    /// Explain a discipline, marker, TCP profile, source or topology with its parameters
    Explain {
        /// A name from `apportion list`, other than of an example scenario or an experiment
        name: String,
    },
    /// Print a JSON Schema of scenario files, for editors
    Schema,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Show, prune or check the cache of simulations
    Cache {
        #[command(subcommand)]
        command: CacheCommand,
    },
    /// Compare runs with the first of them, or the simulator with the TCP stack of this machine
    Compare(Compare),
    /// Print a table of a run as CSV
    Export(Export),
    /// Draw a figure of a run for a paper, as SVG or PDF, or write its numbers as CSV
    Plot(Plot),
}

#[derive(Args, Debug)]
pub struct Run {
    #[command(flatten)]
    pub wanted: Wanted,
    #[command(flatten)]
    pub page: Page,
    /// Replications that run in parallel; 0 for one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    pub jobs: usize,
    #[command(flatten)]
    pub phase_check: PhaseCheck,
    #[command(flatten)]
    pub cache: CacheUse,
    /// Write the time series (`series`, `allocations`) even with more than 1000 replications
    #[arg(long)]
    pub series: bool,
    /// Print an estimate of the CPU time and memory that the run takes, and exit
    #[arg(long, conflicts_with_all = ["show_config", "json", "watch"])]
    pub estimate: bool,
    /// Run even if the estimate exceeds a day of CPU time or 2 GB of memory
    #[arg(long)]
    pub force: bool,
}

#[derive(Args, Debug)]
pub struct Sweep {
    #[command(flatten)]
    pub wanted: Wanted,
    /// Address of the scheduler, such as tcp://node1:8786
    #[arg(long, value_name = "ADDRESS")]
    pub cluster: Option<String>,
    #[command(flatten)]
    pub phase_check: PhaseCheck,
    /// Run even if the estimate exceeds a day of CPU time or 2 GB of memory
    #[arg(long)]
    pub force: bool,
}

/// Whether the cache is used.
#[derive(Args, Clone, Copy, Debug)]
pub struct CacheUse {
    /// Take replications from the cache, and store new ones there as each ends: an interrupted or killed run resumes [default]
    #[arg(long, overrides_with = "no_cache")]
    pub cache: bool,
    /// Neither read nor write the cache
    #[arg(long, overrides_with = "cache")]
    pub no_cache: bool,
}

/// The page in the browser.
#[derive(Args, Clone, Copy, Debug)]
pub struct Page {
    /// Show the run live in a browser, one replication at a time, at a loopback address, until Ctrl-C [without ADDRESS:
    /// 127.0.0.1:9618; port 0 takes a free one]. Does not read the cache
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, value_parser = address, conflicts_with = "show_config")]
    #[expect(clippy::option_option, reason = "the option may be there without an address")]
    pub watch: Option<Option<SocketAddr>>,
}

/// Whether replications have perturbed copies.
#[derive(Args, Clone, Copy, Debug)]
pub struct PhaseCheck {
    /// Run each replication twice, the second time with every delay moved by 1 µs, and say where results depend on it
    /// (table `phase_sensitivity`) [default with more than one seed]
    #[arg(long, overrides_with = "no_phase_check")]
    pub phase_check: bool,
    /// Run each replication once, in half the time
    #[arg(long, overrides_with = "phase_check")]
    pub no_phase_check: bool,
}

impl PhaseCheck {
    /// Returns whether each replication has one, given the number of seeds.
    pub const fn of(self, seeds: u64) -> bool {
        self.phase_check || seeds > 1 && !self.no_phase_check
    }
}

/// What to do about runs that were too late to be valid.
#[derive(Args, Clone, Copy, Debug)]
pub struct Late {
    /// How often an invalid run of the lab is repeated [default: 3]
    #[arg(long, value_name = "N", value_parser = whole(0..=100))]
    pub retries: Option<u64>,
    /// Accept invalid runs of the lab
    #[arg(long)]
    pub allow_late: bool,
}

/// A scenario to run, and what to do with its results.
#[derive(Args, Debug)]
pub struct Wanted {
    /// A scenario file, or the name of an example from `apportion list scenarios`
    pub scenario: PathBuf,
    /// Replications of each point, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1..=10_000))]
    pub seeds: u64,
    /// Folder in which each run writes a new folder: DIR/1, then DIR/2 [default: results/SCENARIO; of `apportion lab`:
    /// results/SCENARIO-lab]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Set a value of the scenario, such as link.bottleneck.rate=5Mbit; rate, delay, queue and loss alone refer to the only bottleneck
    #[arg(long, value_name = "PATH=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    /// Print results as JSON, one object a line, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
    /// Print the scenario with defaults filled in, and exit
    #[arg(long)]
    pub show_config: bool,
}

#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// Print the path and size of the cache
    Show,
    /// Delete the least recently used entries
    Prune {
        /// Size that may be left, such as 500MB; 0B deletes everything
        #[arg(long, value_name = "SIZE", default_value = "0B")]
        to: Bytes,
    },
    /// Read every entry, and list damaged files
    Verify {
        /// Delete damaged files
        #[arg(long)]
        delete: bool,
    },
}

#[derive(Args, Debug)]
pub struct Export {
    /// A folder that `apportion run` or `apportion lab` wrote: DIR for the last run, DIR/1 for the first
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// The table: flows, links, completions, media, statistics, responses, series, allocations or phase_sensitivity; or flent, for a data
    /// file of Flent
    #[arg(required_unless_present = "latex")]
    pub table: Option<String>,
    /// Print the metrics of all points instead, as LaTeX tables (package booktabs): means with 95 % intervals
    #[arg(long, conflicts_with_all = ["table", "point"])]
    pub latex: bool,
    /// The point of a sweep that the Flent file holds, such as `queue=red`
    #[arg(long, value_name = "LABEL")]
    pub point: Option<String>,
    /// Write it to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long, requires = "out")]
    pub force: bool,
}

#[derive(Args, Debug)]
pub struct Plot {
    /// A folder that `apportion run` or `apportion lab` wrote: DIR for the last run, DIR/1 for the first
    #[arg(value_name = "RUN")]
    pub run: PathBuf,
    /// What the figure shows
    #[arg(long, value_parser = kinds())]
    pub kind: Kind,
    /// The file; its extension, .svg, .pdf or .csv, sets the format
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Draw this point of a sweep alone, such as `rate=5Mbit, queue=red`
    #[arg(long, value_name = "LABEL")]
    pub point: Option<String>,
    /// Draw this metric of a sweep alone, such as jain, share or queue_delay_p95_ms
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Overwrite the file
    #[arg(long)]
    pub force: bool,
}

/// Kinds of figures by name.
fn kinds() -> impl TypedValueParser<Value = Kind> {
    let known = Kind::ALL.map(|kind| PossibleValue::new(kind.name()).help(kind.describe()));
    PossibleValuesParser::new(known).try_map(|name| name.parse::<Kind>())
}

#[derive(Args, Debug)]
pub struct Compare {
    /// Two or more folders that `apportion run` or `apportion lab` wrote: DIR for the last run, DIR/1 for the first
    #[arg(required_unless_present = "parity", num_args = 2.., value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Run this scenario in the simulator and in the lab instead, and compare their results with the tolerances of
    /// docs/parity.md
    #[arg(long, value_name = "SCENARIO", conflicts_with = "runs")]
    pub parity: Option<PathBuf>,
    /// Replications of each point in the lab; the simulator runs at least 10 [default: 1]
    #[arg(long, value_name = "N", value_parser = whole(1..=1_000))]
    pub seeds: Option<u64>,
    /// Also write the comparison to this .html file; with --parity, the folder for the results of both
    /// [default: results/SCENARIO-parity]
    #[arg(long, value_name = "FILE|DIR")]
    pub out: Option<PathBuf>,
    /// Set a value of the scenario
    #[arg(long, value_name = "PATH=VALUE", value_parser = setting)]
    pub set: Vec<(String, String)>,
    #[command(flatten)]
    pub late: Late,
    /// Overwrite the page; with --parity, run even if the estimate exceeds a day or 2 GB of memory
    #[arg(long)]
    pub force: bool,
    /// What runs the queues of watched links in the lab; `kernel` needs root and a build with the feature `bpf`
    /// [default: user-space]
    #[arg(long, value_enum)]
    pub backend: Option<Backend>,
    /// Exit with status 1 if one of these metrics moved beyond its 95 % interval: a metric such as share/tcp, or a
    /// quantity such as share, for all of its groups
    #[arg(long, value_name = "METRIC,...", value_delimiter = ',', conflicts_with = "parity")]
    pub fail_on: Vec<String>,
    /// Print rows as JSON, one object a line, and nothing else
    #[arg(long)]
    pub json: bool,
}

impl Compare {
    /// Name of the first option that says how a scenario is run.
    pub fn option_of_runs(&self) -> Option<&'static str> {
        let options = [
            ("--seeds", self.seeds.is_some()),
            ("--set", !self.set.is_empty()),
            ("--retries", self.late.retries.is_some()),
            ("--force", self.force && self.out.is_none()),
            ("--backend", self.backend.is_some()),
        ];
        options.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// This process; runs every discipline
    UserSpace,
    /// The kernel; runs some disciplines
    Kernel,
}

#[derive(Args, Debug)]
pub struct Reproduce {
    /// An experiment such as pps/fig4-onehop, a paper such as pps, or a path to an expect.toml or its folder
    /// [default: all papers]. Papers are those in papers/ of the current folder, else those built into the program
    #[arg(value_name = "ID|PAPER")]
    pub experiments: Vec<String>,
    /// Replications of each run, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = whole(1..=10_000))]
    pub seeds: u64,
    /// Replications that run in parallel; 0 for one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = jobs)]
    pub jobs: usize,
    /// Where experiments run: in the simulator, or in real time over the TCP stack of this machine
    #[arg(long, value_enum, default_value_t = World::Simulator)]
    pub world: World,
    #[command(flatten)]
    pub late: Late,
    #[command(flatten)]
    pub cache: CacheUse,
    /// Simulate on the Dask cluster with this scheduler, such as tcp://node1:8786
    #[arg(long, value_name = "ADDRESS", conflicts_with = "no_cache")]
    pub cluster: Option<String>,
    /// Folder for a page and a file of JSON lines for each paper
    #[arg(long, value_name = "DIR", default_value = "results/reproduce")]
    pub out: PathBuf,
    /// Also write figures (SVG, PDF) and LaTeX tables, into a folder PAPER-kit for each paper
    #[arg(long)]
    pub kit: bool,
    /// Run each experiment with each of its controls, which disable a mechanism: claims that depend on it must fail
    #[arg(long)]
    pub ablate: bool,
    /// Also run the named variants of experiments; all variants if no name is given
    #[arg(long, value_name = "NAME", num_args = 0.., conflicts_with = "ablate")]
    pub variants: Option<Vec<String>>,
    /// Run even if the estimate exceeds a day of CPU time or 2 GB of memory
    #[arg(long)]
    pub force: bool,
    /// Print verdicts as JSON, one object a line, and nothing else
    #[arg(long)]
    pub json: bool,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
}

/// Where experiments run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum World {
    Simulator,
    Lab,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    Disciplines,
    Markers,
    Tcp,
    Sources,
    Topologies,
    Scenarios,
    Experiments,
}

/// Reads an address and a port.
fn address(text: &str) -> Result<SocketAddr, String> {
    let numbered = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    numbered.as_deref().unwrap_or(text).parse().map_err(|_| {
        let mend = "write an address with a port, such as --watch 127.0.0.1:9618, or --watch alone behind the scenario";
        format!("this is no address; {mend}")
    })
}

/// Reads a whole number in this range.
fn whole(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("write a whole number from {} to {}", range.start(), range.end()))
    }
}

/// Reads a number of jobs.
fn jobs(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| "write a whole number, 0 for one per core".to_owned())
}

/// Makes an option or argument that is a path read it as on Windows.
fn paths_of_windows(argument: Arg) -> Arg {
    let is_path = argument.get_value_parser().type_id() == TypeId::of::<PathBuf>();
    let read = PathBufValueParser::new().try_map(|path| path_of_windows(&path));
    if is_path { argument.value_parser(read) } else { argument }
}

/// The path with one kind of separators, as it is in messages. What is behind a `:` in a name would be hidden in the
/// file of the name before it.
fn path_of_windows(path: &Path) -> Result<PathBuf, String> {
    let is_hidden = |part| matches!(part, Component::Normal(name) if name.to_string_lossy().contains(':'));
    if path.components().any(is_hidden) {
        return Err("on Windows no name of a file has a `:`; leave it out".to_owned());
    }
    Ok(path.components().collect())
}

/// Splits `PATH=VALUE`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (path, value) =
        text.split_once('=').ok_or("there is no `=`; write for example link.bottleneck.rate=5Mbit")?;
    Ok((path.trim().to_owned(), value.trim().to_owned()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_command_line_is_consistent() {
        super::command().debug_assert();
    }

    #[test]
    fn paths_of_windows_have_no_streams() {
        let read = |path: &str| super::path_of_windows(Path::new(path));
        assert_eq!(read("results//a/1"), Ok(Path::new("results").join("a").join("1")));
        assert!(read("results/a:b").unwrap_err().contains("no name of a file has a `:`"));
        let command = super::command().mut_subcommands(|command| command.mut_args(super::paths_of_windows));
        command.clone().debug_assert();
        let matches =
            |out: &str| command.clone().try_get_matches_from(["apportion", "run", "x", "--out", out]);
        assert!(matches("x/a:b").is_err() && matches("a/b").is_ok());
    }
}
