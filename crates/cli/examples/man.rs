//! Writes the man pages of `apportion` and of its subcommands into a folder, for packages: `man FOLDER`.

#![allow(clippy::print_stderr, reason = "a program for builds of packages: its messages go to their log")]

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("usage: man FOLDER, which must exist");
        return ExitCode::from(2);
    };
    match clap_mangen::generate_to(apportion_cli::command(), &folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("man: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}
