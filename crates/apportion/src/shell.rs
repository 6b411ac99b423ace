//! A command behind an emulated link, on real packets, as an ordinary user.
//!
//! ```no_run
//! use apportion::shell::{LinkOptions, Shell};
//! use apportion::units::{Rate, Span};
//!
//! let link = LinkOptions {
//!     rate: Some(Rate::from_mbit(10)),
//!     delay: Some(Span::from_millis(20)),
//!     queue: Some("fq_codel".to_owned()),
//!     ..LinkOptions::default()
//! };
//! let shell = Shell { far: Some("iperf3 -s -1".to_owned()), ..Shell::new(["sh", "-c", "iperf3 -c $APPORTION_FAR"]) };
//! let results = Shell { up: link.clone(), down: link, ..shell }.prepare()?.run()?;
//! results.lines().iter().for_each(|line| println!("{line}"));
//! # Ok::<(), apportion::shell::ShellError>(())
//! ```

mod text;

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::system::{Catalog, DisciplineKind};
use apportion_core::units::{Rate, Ratio, Span};
use apportion_linux::command::Group;
use apportion_live::shell::{
    self, DirectionParams, HostAccess, Log, MAX_DEPTH, NotificationSocket, Speed, StepsError,
};
use apportion_report::Provenance;
use apportion_scenario::gateway::{Direction, RuleConfig, real_rate_rule};
use apportion_scenario::{FileError, TextError, queue};
use serde_json::Value;

use crate::provenance::Begun;
use crate::results::Results;

pub use apportion_live::shell::Summary;
pub use apportion_scenario::TraceColumns;

/// The environment variable with the nesting depth of a shell.
const DEPTH: &str = "APPORTION_DEPTH";
/// The default queue of a direction. Chosen: the default of Linux interfaces.
const QUEUE: &str = "{ kind = \"fifo\", limit = \"1000p\" }";
/// The interval of series in results.
const SAMPLE: Span = Span::from_millis(100);

/// One direction of the link. At most one of `rate`, `steps` and `trace` is used, in this order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkOptions {
    /// Rate, counted at layer 2. Default: no limit.
    pub rate: Option<Rate>,
    /// Steps of the rate, such as `0s 10Mbit, 5s 2Mbit`. Default: none.
    pub steps: Option<String>,
    /// A recorded link: a file in mahimahi's format, with the time of one delivery opportunity in ms per
    /// line. Default: none.
    pub trace: Option<PathBuf>,
    /// The columns of the trace, if it is a table. Default: mahimahi's format.
    pub trace_columns: Option<TraceColumns>,
    /// One-way delay of the wire. Default: 0.
    pub delay: Option<Span>,
    /// Random loss of each packet on the wire. Default: 0.
    pub loss: Option<Ratio>,
    /// The discipline, by name or as a table of a scenario. Default: a FIFO of 1000 packets.
    pub queue: Option<String>,
}

impl LinkOptions {
    /// Fills options that are not set from those of `both` directions. A rate, steps and a trace replace each
    /// other.
    #[must_use]
    pub fn or(self, both: &Self) -> Self {
        let has_speed = self.rate.is_some() || self.steps.is_some() || self.trace.is_some();
        let (rate, steps, trace, trace_columns) = if has_speed {
            (self.rate, self.steps, self.trace, self.trace_columns)
        } else {
            (both.rate, both.steps.clone(), both.trace.clone(), both.trace_columns.clone())
        };
        Self {
            rate,
            steps,
            trace,
            trace_columns,
            delay: self.delay.or(both.delay),
            loss: self.loss.or(both.loss),
            queue: self.queue.or_else(|| both.queue.clone()),
        }
    }

    fn params(&self, catalog: &Catalog) -> Result<DirectionParams, ShellError> {
        let speed = match self {
            Self { rate: Some(rate), .. } => Speed::Rate(*rate),
            Self { steps: Some(steps), .. } => Speed::parse_steps(steps)?,
            Self { trace: Some(file), .. } => Speed::Trace(read_trace(file, self.trace_columns.as_ref())?),
            _ => Speed::Unlimited,
        };
        let queue = queue::from_text_with(catalog, self.queue()).map_err(ShellError::Queue)?;
        let (delay, loss) = (self.delay.unwrap_or(Span::ZERO), self.loss.unwrap_or(Ratio::ZERO));
        Ok(DirectionParams { speed, delay, loss, queue })
    }

    fn queue(&self) -> &str {
        self.queue.as_deref().unwrap_or(QUEUE)
    }
}

/// The maximum size of a trace, in bytes. Chosen: ten million lines, the maximum of a trace, with 12
/// characters each.
const MAX_TRACE: u64 = 128 << 20;

fn read_trace(file: &Path, columns: Option<&TraceColumns>) -> Result<DeliveryTrace, ShellError> {
    let text = apportion_scenario::read_text_file(file, MAX_TRACE)
        .map_err(|cause| ShellError::ReadTrace { path: file.to_owned(), cause })?;
    apportion_scenario::delivery_trace(&text, columns)
        .map_err(|cause| ShellError::Trace { path: file.to_owned(), cause })
}

/// A command behind an emulated link, and the options of link and recording.
#[derive(Clone, Debug)]
pub struct Shell {
    /// The command with its arguments, which gets the far end of the link as `$APPORTION_FAR`.
    pub command: Vec<OsString>,
    /// The direction from the command to the far end. Default: no limit, no delay, no loss.
    pub up: LinkOptions,
    /// The direction from the far end to the command. Default: no limit, no delay, no loss.
    pub down: LinkOptions,
    /// Selectors of real-rate flows, for queues with flow classes (`ramp`): conditions as in a rule of a
    /// gateway and optionally a target, such as `{ protocol = "udp", to_port = 5004 }`. Default: none, all
    /// flows are greedy.
    pub real_rate: Vec<String>,
    /// The path of a Unix socket from which applications read overload notifications of `ramp`. Default:
    /// none.
    pub notifications: Option<PathBuf>,
    /// A command at the far end, run by `sh -c` with its output on standard error. The main command starts
    /// when this one listens, or after 5 s. Default: none.
    pub far: Option<String>,
    /// Whether the command reaches the network and the loopback services of this machine through the link.
    /// Not together with [`far`](Self::far). Default: false.
    pub outside: bool,
    /// The time after which the command is killed. Default: none.
    pub time_limit: Option<Span>,
    /// The path of the packet logs, to which `.up` and `.down` are appended, in the format of mahimahi's
    /// mm-link. Default: none.
    pub log: Option<PathBuf>,
    /// Whether to sample time series, every 100 ms. Default: false.
    pub series: bool,
    /// The maximum lateness: the run is invalid if more than 1 of 100 packets leaves later than this after it
    /// was due. Default: 5 ms.
    pub max_lateness: Span,
    /// The seed of losses and of random decisions of disciplines. Default: 1.
    pub seed: u64,
    /// The disciplines that queues can name. Default: those of this project.
    pub catalog: Catalog,
}

impl Shell {
    /// Creates a shell for this command behind a link without limits.
    #[must_use]
    pub fn new<S: Into<OsString>>(command: impl IntoIterator<Item = S>) -> Self {
        Self {
            command: command.into_iter().map(Into::into).collect(),
            up: LinkOptions::default(),
            down: LinkOptions::default(),
            real_rate: Vec::new(),
            notifications: None,
            far: None,
            outside: false,
            time_limit: None,
            log: None,
            series: false,
            max_lateness: Span::from_millis(5),
            seed: 1,
            catalog: Catalog::default(),
        }
    }

    /// Reads traces, opens logs and, for access to the outside, starts a helper process, with the rights and
    /// paths of the caller. The process must have a single thread.
    ///
    /// # Errors
    /// If an option is invalid, or a file cannot be read or written.
    pub fn prepare(self) -> Result<PreparedShell, ShellError> {
        let [up, down] = [self.up.params(&self.catalog)?, self.down.params(&self.catalog)?];
        let real_rate = self.real_rate([&up, &down])?;
        let notifications =
            self.notifications.as_deref().map(|path| notifications(path, [&up, &down])).transpose()?;
        let depth = depth()?;
        let log = self.log.as_deref().map(|path| self.logs(path)).transpose()?;
        let outside = self.outside.then(HostAccess::prepare).transpose()?;
        let shell = shell::Shell {
            up,
            down,
            real_rate,
            seed: self.seed,
            depth,
            command: command(&self.command),
            group: group(),
            far: self.far.as_deref().map(far).transpose()?,
            limit: self.time_limit,
            sample: self.series.then_some(SAMPLE),
            log,
            notifications,
            outside,
        };
        Ok(PreparedShell { options: self, shell })
    }

    /// Returns the rules for real-rate flows, each of which has a direction whose queue has flow classes.
    fn real_rate(&self, [up, down]: [&DirectionParams; 2]) -> Result<Vec<RuleConfig>, ShellError> {
        let read = |text: &String| {
            let rule = real_rate_rule(text).map_err(|error| ShellError::RealRate(error.to_string()))?;
            let knows = |(way, params): (Direction, &DirectionParams)| {
                rule.is_for(way) && params.queue.knows_classes()
            };
            if !Direction::BOTH.into_iter().zip([up, down]).any(knows) {
                let way = rule.direction.map_or(String::new(), |way| format!(" {}", way.name()));
                return Err(ShellError::RealRate(format!(
                    "`{text}`: the queue{way} does not distinguish classes of flows; write --queue ramp, or leave it out"
                )));
            }
            Ok(rule)
        };
        self.real_rate.iter().map(read).collect()
    }

    /// Opens the logs of both directions.
    fn logs(&self, path: &Path) -> Result<[Log; 2], ShellError> {
        let log = |ending: &str, link: &LinkOptions| -> Result<Log, ShellError> {
            let mut name = path.as_os_str().to_owned();
            name.push(ending);
            let path = PathBuf::from(&name);
            let file = File::create(&path).map_err(|cause| ShellError::Create { path, cause })?;
            Ok(Log {
                file: Box::new(BufWriter::new(file)),
                name: name.display().to_string(),
                source: text::speed(link),
                command: text::command(self),
                queue: link.queue().to_owned(),
            })
        };
        Ok([log(".up", &self.up)?, log(".down", &self.down)?])
    }
}

/// A shell whose files are open.
#[derive(Debug)]
pub struct PreparedShell {
    options: Shell,
    shell: shell::Shell,
}

impl PreparedShell {
    /// Whether names cannot be resolved behind the link although it leads outside: `/etc/resolv.conf` names
    /// no server.
    #[must_use]
    pub fn lacks_nameserver(&self) -> bool {
        self.shell.outside.as_ref().is_some_and(|outside| outside.nameserver.is_none())
    }

    /// Whether a queue is RAMP although no rule selects real-rate flows: all flows are greedy there.
    #[must_use]
    pub fn lacks_real_rate(&self) -> bool {
        self.shell.real_rate.is_empty() && (is_ramp(&self.shell.up) || is_ramp(&self.shell.down))
    }

    /// Moves the process out of the networks and mounts of the system for good, and runs the command to its
    /// end. The process must have a single thread.
    ///
    /// # Errors
    /// If the system forbids or refuses an operation. The command is killed if it was running.
    pub fn run(self) -> Result<ShellResults, ShellError> {
        // A relative path means the same inside: the mounts are those of the caller.
        shell::enter()?;
        let begun = Begun::now();
        Ok(ShellResults { summary: self.shell.run()?, options: self.options, made: begun.end(0) })
    }
}

/// The measurements of a shell.
#[derive(Clone, Debug)]
pub struct ShellResults {
    options: Shell,
    summary: Summary,
    made: Provenance,
}

impl ShellResults {
    /// Returns all measurements, by direction.
    #[must_use]
    pub const fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Returns the exit status of the command; 128 plus the number of the signal that ended it; 124 at the
    /// time limit.
    #[must_use]
    pub fn status(&self) -> u8 {
        self.summary.status()
    }

    /// Whether at least 99 of 100 packets left within [`max_lateness`](Shell::max_lateness).
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.summary.kept_up(self.options.max_lateness)
    }

    /// Returns the results as lines of text.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        text::lines(&self.options, &self.summary)
    }

    /// Returns the results as one JSON object.
    #[must_use]
    pub fn json(&self) -> Value {
        text::json(&self.options, &self.summary)
    }

    /// Returns the results with the tables and the report of a run; the largest flows appear separately, the
    /// others as one flow for each direction.
    #[must_use]
    pub fn results(&self) -> Results {
        let record = text::record(&self.options, &self.summary, SAMPLE);
        Results::new(record, self.made.clone(), None, None)
    }
}

fn is_ramp(params: &DirectionParams) -> bool {
    matches!(params.queue.kind, DisciplineKind::Ramp(_))
}

/// Opens the socket for overload notifications, which requires a queue that issues them.
fn notifications(path: &Path, directions: [&DirectionParams; 2]) -> Result<NotificationSocket, ShellError> {
    let path = path.to_owned();
    if !directions.into_iter().any(is_ramp) {
        return Err(ShellError::NoNotifications { path });
    }
    NotificationSocket::open(&path).map_err(|cause| ShellError::Notifications { path, cause })
}

/// Returns the nesting depth of this shell.
fn depth() -> Result<u8, ShellError> {
    let Some(text) = std::env::var_os(DEPTH) else { return Ok(0) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| ShellError::Depth(text.display().to_string()))
}

fn command(words: &[OsString]) -> Command {
    let mut command = Command::new(words.first().map_or_else(OsString::new, Clone::clone));
    command.args(words.iter().skip(1));
    command
}

/// At a terminal the command must be in the foreground, as it would be without a link. If one of the streams
/// is not the terminal, other programs may be in the foreground with this one
/// (`apportion shell -- ls | less`) and must stay there.
fn group() -> Group {
    match [io::stdin().is_terminal(), io::stdout().is_terminal(), io::stderr().is_terminal()] {
        [true, true, _] => Group::Foreground,
        [false, false, false] => Group::Own,
        _ => Group::Callers,
    }
}

/// Creates the command at the far end, which has no input and leaves standard output to the command behind
/// the link.
fn far(line: &str) -> Result<Command, ShellError> {
    let mut command = Command::new("sh");
    let err = io::stderr().as_fd().try_clone_to_owned().map_err(ShellError::StandardError)?;
    command.args(["-c", line]).stdin(Stdio::null()).stdout(Stdio::from(err));
    Ok(command)
}

/// The reason why a shell did not start, or failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ShellError {
    /// A queue is invalid.
    #[error("{0}")]
    Queue(TextError),
    /// A selector of real-rate flows is invalid.
    #[error("real-rate: {0}")]
    RealRate(String),
    /// No queue issues overload notifications.
    #[error("notifications: {}: no queue notifies of overloads; write --queue ramp, or leave it out", path.display())]
    NoNotifications {
        /// The socket.
        path: PathBuf,
    },
    /// The socket for overload notifications cannot be opened.
    #[error("notifications: {}: cannot listen there: {cause}; name a new file in a folder that exists", path.display())]
    Notifications {
        /// The socket.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The steps of a rate are invalid.
    #[error("steps: {0}")]
    Steps(StepsError),
    /// A trace cannot be read.
    #[error(
        "{}: cannot read the trace; name a file with a time in milliseconds a line: {cause}",
        path.display()
    )]
    ReadTrace {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// A trace is invalid.
    #[error("{}: {cause}", path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// The problem.
        cause: FileError,
    },
    /// The environment variable of nested shells has an invalid value.
    #[error("{DEPTH} is `{0}`, no number from 0 to {MAX_DEPTH}; unset it")]
    Depth(String),
    /// A log cannot be created.
    #[error("cannot create `{}`: {cause}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The command at the far end cannot use standard error.
    #[error("cannot share standard error: {0}")]
    StandardError(io::Error),
    /// The link failed.
    #[error(transparent)]
    Link(Box<shell::ShellError>),
}

impl From<shell::ShellError> for ShellError {
    fn from(error: shell::ShellError) -> Self {
        Self::Link(Box::new(error))
    }
}

impl From<StepsError> for ShellError {
    fn from(error: StepsError) -> Self {
        Self::Steps(error)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
mod tests {
    use super::*;

    #[test]
    fn a_directions_own_speed_replaces_that_of_both_whatever_its_kind() {
        let both = LinkOptions {
            rate: Some(Rate::from_mbit(10)),
            delay: Some(Span::from_millis(5)),
            ..LinkOptions::default()
        };
        let own = LinkOptions { steps: Some("0s 1Mbit".to_owned()), ..LinkOptions::default() };
        let merged = own.or(&both);
        assert_eq!((merged.rate, merged.steps.as_deref()), (None, Some("0s 1Mbit")));
        assert_eq!(merged.delay, both.delay);
        assert_eq!(LinkOptions::default().or(&both).rate, both.rate);
    }
}
