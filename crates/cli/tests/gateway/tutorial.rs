//! The tutorial of a gateway, followed literally.

use std::fs;
use std::path::Path;
use std::process::Command;

use apportion_testing::child;
use apportion_testing::{processes, skip};

/// Printed behind each block.
const END: &str = "--- the block has ended ---\n";

/// The mean round-trip time that `ping` wrote to this file, in ms.
fn mean(file: &Path) -> f64 {
    let said = fs::read_to_string(file).unwrap();
    let times = said.split_once("mdev = ").unwrap_or_else(|| panic!("{said}")).1;
    times.split('/').nth(1).unwrap().parse().unwrap()
}

pub fn it_is_followed_in_namespaces_of_its_own() {
    if !skip::unless_found(&["bash", "curl", "ip", "iperf3", "ping", "unshare"]) {
        return;
    }
    processes::judge_by_time();
    processes::enter();
    let folder = tempfile::tempdir().unwrap();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tutorials/gateway.md");
    let page = fs::read_to_string(page).unwrap();
    let (mut enter, mut script, mut shown) = ("", String::new(), Vec::new());
    for block in page.split("```").skip(1).step_by(2) {
        match block.split_once('\n').unwrap() {
            ("sh enter", command) => enter = command.trim(),
            ("sh", commands) => script += &format!("{commands}printf '%s' '{END}'\n"),
            ("text", lines) => shown.push((script.matches(END).count() - 1, lines)),
            (words, text) => {
                let (_, name) = words.split_once("title=").unwrap();
                fs::write(folder.path().join(name.trim_matches('"')), text).unwrap();
            }
        }
    }
    fs::write(folder.path().join("script"), script).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_apportion")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &format!("exec {enter} -eu script")]).env("PATH", path).current_dir(folder.path());
    let output = child::output(&mut shell);
    let [said, error] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{said}{error}");
    let said: Vec<_> = said.split(END).collect();
    for (block, lines) in shown {
        assert!(said[block].contains(lines), "{lines} is not in {}", said[block]);
    }
    let [fifo, fq_codel] = ["fifo", "fq_codel"].map(|file| mean(&folder.path().join(file)));
    assert!(fifo > 60.0 && fq_codel < fifo / 2.0, "{fifo} ms, {fq_codel} ms");
}
