//! The arguments of `apportion top`.

use std::time::Duration;

use clap::Args;

use crate::top::address::{Address, read};

#[derive(Args, Debug)]
pub struct Top {
    /// Address of the page of a run or a gateway on this machine [default: 127.0.0.1:9617, a gateway, else 127.0.0.1:9618, a run]
    #[arg(value_parser = read)]
    pub address: Option<Address>,
    /// Print all tables as text, and exit [default if standard output is no terminal]
    #[arg(long)]
    pub once: bool,
    /// Time between two requests, 0.1 to 60 [default: that of the page, 0.4 while a run goes on, else 1]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "once")]
    pub interval: Option<Duration>,
}

/// Reads a time between two requests.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.1..=60.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "write a number of seconds from 0.1 to 60".to_owned())
}
