//! The `apportion` command: see the library of this package.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(u8::from(apportion_cli::main(std::env::args_os())))
}
