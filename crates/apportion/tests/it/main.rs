//! The library as a program uses it.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]

mod arrow;
mod events;
#[cfg(all(feature = "live", target_os = "linux"))]
#[allow(dead_code, reason = "its main runs as a program")]
#[path = "../../examples/own_discipline.rs"]
mod example;
mod exercises;
mod league;
mod mutations;
mod own_congestion_control;
#[allow(dead_code, reason = "an example")]
#[path = "../../examples/own_congestion_control.rs"]
mod own_control;
mod own_crates;
mod own_discipline;
mod phase_check;
mod runs;
mod sentences;
mod uses;
mod warnings;
mod watch;
