//! Floods of small packets through a gateway process, and the goodput that remains for a real TCP connection.

#![allow(clippy::unwrap_used, reason = "in tests a panic is the message")]
#![allow(clippy::print_stdout, reason = "what the connection gets is of interest")]

#[cfg(target_os = "linux")]
#[path = "floods/cases.rs"]
mod cases;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    cases::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
