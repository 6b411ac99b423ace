//! Programs in the kernel, without a gateway: most are compared with this project's Rust, by the same
//! packets, times and random numbers.

#![cfg(feature = "bpf")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "figures are printed")]

mod codec;
#[path = "../common/mod.rs"]
mod common;
mod csfq;
mod flows;
mod hcsfq;
mod offloads;
mod tred;
