//! The command line of `apportion shell`.
//!
//! Options of the link apply to both directions; the same ones with `up-` and `down-` before their names apply to
//! one of them and take precedence.

use std::ffi::OsString;
use std::path::PathBuf;

use apportion::shell::{LinkOptions, TraceColumns};
use apportion::units::{Rate, Ratio, Span};
use clap::Args;

use super::whole;

#[derive(Args, Debug)]
pub struct Shell {
    /// Server to run at the far end of the link, by `sh -c`; its output goes to standard error. The command starts
    /// when the server listens, or after 5 s
    #[arg(long, value_name = "SERVER")]
    pub far: Option<String>,
    /// Let the command reach the network and the loopback services of this machine through the link; $APPORTION_FAR
    /// is this machine
    #[arg(long, conflicts_with = "far")]
    pub outside: bool,
    /// Flows that a `ramp` queue treats as real-rate, selected as by a gateway rule, such as
    /// '{ protocol = "udp", to_port = 5004 }'; can be repeated. All others are greedy
    #[arg(long, value_name = "RULE")]
    pub real_rate: Vec<String>,
    /// Unix socket from which applications read overload notifications of `ramp` as lines of JSON
    #[arg(long, value_name = "PATH")]
    pub notifications: Option<PathBuf>,
    /// Kill the command after this time, with exit status 124
    #[arg(long, value_name = "TIME")]
    pub time_limit: Option<Span>,
    /// Log packets to PATH.up and PATH.down, in the format of mahimahi's mm-link
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
    /// Write results as one JSON object to a file (standard output belongs to the command)
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Folder for results and a report, as `apportion run` writes them
    #[arg(long, value_name = "DIR")]
    pub report: Option<PathBuf>,
    /// The run is invalid if more than 1 % of packets leave later than this
    #[arg(long, value_name = "TIME", default_value = "5ms")]
    pub max_lateness: Span,
    /// Seed of random losses and of the random decisions of disciplines
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(0..=u64::MAX))]
    pub seed: u64,
    /// Print errors only
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub both: Both,
    #[command(flatten)]
    pub up: Up,
    #[command(flatten)]
    pub down: Down,
    /// The command; $APPORTION_FAR is the address of the far end
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

macro_rules! direction {
    ($name:ident, $heading:literal, $long:literal: $rate:literal, $steps:literal, $trace:literal, $columns:literal,
     $delay:literal, $loss:literal, $queue:literal) => {
        #[derive(Args, Debug)]
        #[command(next_help_heading = $heading)]
        pub struct $name {
            #[arg(
                help = concat!("Rate counted at layer 2, such as 10Mbit", $long, " [default: no limit]"),
                id = $rate, long = $rate, value_name = "RATE", conflicts_with_all = [$steps, $trace]
            )]
            rate: Option<Rate>,
            #[arg(
                help = concat!("Rates that change, such as \"0s 10Mbit, 5s 2Mbit\"", $long),
                id = $steps, long = $steps, value_name = "STEPS", conflicts_with = $trace
            )]
            steps: Option<String>,
            #[arg(
                help = concat!("A recorded link: a file of delivery opportunities in the format of mahimahi", $long),
                id = $trace, long = $trace, value_name = "FILE"
            )]
            trace: Option<PathBuf>,
            #[arg(
                help = concat!("The trace is a table of times and rates with columns of these units, such as \"s Mbit\"", $long),
                id = $columns, long = $columns, value_name = "UNITS", requires = $trace
            )]
            trace_columns: Option<TraceColumns>,
            #[arg(
                help = concat!("One-way delay, such as 20ms", $long),
                id = $delay, long = $delay, value_name = "TIME"
            )]
            delay: Option<Span>,
            #[arg(
                help = concat!("Random loss on the wire, such as 1%", $long),
                id = $loss, long = $loss, value_name = "SHARE"
            )]
            loss: Option<Ratio>,
            #[arg(
                help = concat!("Discipline by name or as a table, such as pfd or '{ kind = \"red\", limit = \"50p\" }'", $long),
                id = $queue, long = $queue, value_name = "QUEUE"
            )]
            queue: Option<String>,
        }

        impl $name {
            pub fn options(&self) -> LinkOptions {
                let Self { rate, steps, trace, trace_columns, delay, loss, queue } = self;
                LinkOptions {
                    rate: *rate,
                    steps: steps.clone(),
                    trace: trace.clone(),
                    trace_columns: trace_columns.clone(),
                    delay: *delay,
                    loss: *loss,
                    queue: queue.clone(),
                }
            }
        }
    };
}

direction!(Both, "Link", "": "rate", "steps", "trace", "trace-columns", "delay", "loss", "queue");
direction!(Up, "From the command to the far end", ", upwards":
    "up-rate", "up-steps", "up-trace", "up-trace-columns", "up-delay", "up-loss", "up-queue");
direction!(Down, "From the far end to the command", ", downwards":
    "down-rate", "down-steps", "down-trace", "down-trace-columns", "down-delay", "down-loss", "down-queue");
