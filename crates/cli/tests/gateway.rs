//! `apportion gateway` as a user meets it, between two veths of a namespace. A program of its own: each test
//! is a process that enters namespaces.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "what is measured is printed")]

#[cfg(target_os = "linux")]
#[path = "gateway/cases.rs"]
mod cases;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    cases::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
