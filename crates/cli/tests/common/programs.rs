//! Programs that are not ours.

use std::process::{Command, Stdio};

/// Whether all of these can be run; else the test that asks says which cannot.
pub fn are_there(programs: &[&str]) -> bool {
    let is_there = |program: &&str| {
        let mut command = Command::new(program);
        command.arg("--help").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok()
    };
    match programs.iter().find(|program| !is_there(program)) {
        Some(missing) => {
            println!("skipped: there is no {missing} on this machine");
            false
        }
        None => true,
    }
}
