//! From experiments to verdicts, and the experiments of the papers in this repository.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod bars;
mod bounds;
mod common;
mod csfq;
mod over_time;
mod pfd;
mod pps;
mod ramp;
mod sffc;
mod simulated;
mod sweeps;
mod verdicts;
