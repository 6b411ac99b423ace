//! `apportion shell` on the kernel of this machine: real packets behind an emulated link.
//!
//! A program of its own: it measures in real time.
//!
//! This program also runs behind the link and at its far end, see [`cases::tests::part`]. Tests are skipped, with
//! the reason, where the system forbids user namespaces.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::disallowed_methods, reason = "what is measured here is real time")]
#![allow(clippy::print_stdout, reason = "parts of tests talk by it")]

#[cfg(target_os = "linux")]
#[path = "cases.rs"]
mod cases;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    cases::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
