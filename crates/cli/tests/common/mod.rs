//! The command under test.

use std::path::Path;

use assert_cmd::Command;

pub struct Run {
    pub status: i32,
    pub out: String,
    pub err: String,
}

/// Runs the command in `folder`.
pub fn apportion(folder: &Path, arguments: &[&str]) -> Run {
    let output =
        Command::cargo_bin("apportion").unwrap().current_dir(folder).args(arguments).output().unwrap();
    Run {
        status: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
