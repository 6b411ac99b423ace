//! `apportion lab` and `apportion compare --parity` over the TCP of this machine, with queues of user space and of the kernel.
//!
//! A program of its own, whose tests run one at a time: each measures in real time. They are skipped, with
//! the reason, where the system forbids user namespaces or the rights that kernel queues need.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
#![allow(clippy::print_stdout, reason = "what is measured is printed")]

#[path = "../common/mod.rs"]
mod common;
#[cfg(feature = "bpf")]
mod kernel;
mod place;
mod under_way;
mod user_space;
