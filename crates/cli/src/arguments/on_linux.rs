//! Commands on real packets, which need Linux.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{Backend, Late, Page, Shell, Wanted};

#[derive(Debug, Subcommand)]
pub enum OnLinux {
    /// Run a scenario over the TCP stack of this machine, in real time, and write results and a report
    Lab(Lab),
    /// Run a command behind an emulated link, on real packets, as an ordinary user
    Shell(Box<Shell>),
    /// Run a gateway between two network interfaces, or query one that runs
    Gateway(Gateway),
}

#[derive(Args, Debug)]
pub struct Lab {
    #[command(flatten)]
    pub wanted: Wanted,
    #[command(flatten)]
    pub page: Page,
    #[command(flatten)]
    pub late: Late,
    /// Run even if the estimate exceeds a day or 2 GB of memory
    #[arg(long)]
    pub force: bool,
    /// What runs the queues of watched links; `kernel` needs root and a build with the feature `bpf`
    #[arg(long, value_enum, default_value_t = Backend::UserSpace)]
    pub backend: Backend,
}

impl Late {
    /// Number of times that a run of the lab is repeated.
    pub fn retries(self) -> u64 {
        self.retries.unwrap_or(apportion::lab::RETRIES)
    }
}

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, arg_required_else_help = true)]
pub struct Gateway {
    #[command(subcommand)]
    pub command: Option<GatewayCommand>,
    /// Run the gateway of this configuration file until a signal stops it
    #[arg(value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// Format of the log
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
    /// Least severe level that is logged
    #[arg(long, value_enum, default_value_t = LogLevel::Info)]
    pub log_level: LogLevel,
    /// When the gateway ends, let the kernel forward all frames, unshaped
    #[arg(long)]
    pub fail_open: bool,
    /// What moves packets; `kernel` needs a build with the feature `bpf`
    #[arg(long, value_enum, default_value_t = Backend::UserSpace)]
    pub backend: Backend,
}

#[derive(Debug, Subcommand)]
pub enum GatewayCommand {
    /// Check a configuration file and its interfaces, and change nothing
    Check {
        /// The configuration file
        config: PathBuf,
        /// What would move packets
        #[arg(long, value_enum, default_value_t = Backend::UserSpace)]
        backend: Backend,
    },
    /// Print a configuration with defaults filled in
    Show {
        /// The configuration file
        config: PathBuf,
        /// Print the configuration of the running gateway instead; only the title of the file is read
        #[arg(long)]
        running: bool,
    },
    /// Print the statistics of a running gateway as JSON
    Stats {
        /// Its configuration file; only the title is read
        config: PathBuf,
    },
    /// Print flow rules for a router before a running gateway that does not speak SF-FC, until the gateway stops
    Rules {
        /// Its configuration file; only the title is read
        #[arg(value_hint = clap::ValueHint::FilePath)]
        config: PathBuf,
        /// Program that reads the rules
        #[arg(long, value_enum)]
        format: RuleFormat,
        /// Interface of the router towards the gateway, for `tc`
        #[arg(long, required_if_eq("format", "tc"), value_parser = interface)]
        device: Option<String>,
    },
    /// Restore the offloads that a gateway left off when it was killed
    Restore {
        /// The configuration file; only the title is read
        #[arg(value_hint = clap::ValueHint::FilePath)]
        config: PathBuf,
    },
    /// Let the kernel forward all frames, unshaped, while no gateway runs
    Bypass {
        /// The configuration file; only title and interfaces are read
        #[arg(value_hint = clap::ValueHint::FilePath)]
        config: PathBuf,
        /// End the bypass
        #[arg(long)]
        off: bool,
    },
    /// Make a running gateway read its configuration file again
    Reload {
        /// Its configuration file
        config: PathBuf,
    },
}

/// The name of an interface: it becomes part of commands.
fn interface(name: &str) -> Result<String, &'static str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-@".contains(c);
    // IFNAMSIZ is 16, with the terminating zero.
    let is_name = (1..16).contains(&name.len()) && name.chars().all(is_plain) && !name.starts_with('-');
    if is_name { Ok(name.to_owned()) } else { Err("it is not the name of an interface") }
}

/// The program that reads flow rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RuleFormat {
    /// Linux: `tc -force -batch -`
    Tc,
    /// Linux: `nft`, a line each
    Nft,
    /// BGP: a process of ExaBGP
    Exabgp,
}

impl From<Backend> for apportion::gateway::Backend {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::UserSpace => Self::UserSpace,
            Backend::Kernel => Self::Kernel,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
}

impl From<LogLevel> for tracing_subscriber::filter::LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
        }
    }
}
