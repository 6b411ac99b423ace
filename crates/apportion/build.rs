//! Derives a name of the build from the sources that results depend on, so that a cache never mixes results
//! of different sources.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates, besides this one, whose sources affect the outcome of a simulation.
const CRATES: [&str; 4] = ["core", "scenario", "runtime", "sim"];
/// Other folders of sources that affect it.
const FOLDERS: [&str; 1] = ["../report/src/rows"];
/// Other files that affect it: rows and the comparison of perturbed copies, which the cache stores too, and
/// the versions of libraries.
const FILES: [&str; 7] = [
    "../report/src/due.rs",
    "../report/src/phase_sensitivity.rs",
    "../report/src/replication_rows.rs",
    "../report/src/sample.rs",
    "../report/src/statistics.rs",
    "../report/src/units.rs",
    "../../Cargo.lock",
];

fn main() -> io::Result<()> {
    let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
    // A published version has a single set of sources, and the other crates are not next to it.
    let mut build = version.clone();
    if Path::new("../core/src").is_dir() {
        let mut files: Vec<PathBuf> = FILES.iter().map(PathBuf::from).filter(|file| file.is_file()).collect();
        let crates = CRATES.iter().map(|name| PathBuf::from("..").join(name).join("src"));
        for folder in crates.chain(FOLDERS.iter().map(PathBuf::from)) {
            println!("cargo::rerun-if-changed={}", folder.display());
            add_files(&folder, &mut files)?;
        }
        FILES.iter().for_each(|file| println!("cargo::rerun-if-changed={file}"));
        files.sort();
        let mut hash = 0xcbf2_9ce4_8422_2325;
        for file in files {
            hash = fnv1a(hash, file.to_string_lossy().replace('\\', "/").as_bytes());
            hash = fnv1a(hash, &fs::read(file)?);
        }
        build = format!("{version}-{hash:016x}");
    }
    println!("cargo::rustc-env=APPORTION_SCENARIOS={}", linked("scenarios")?.display());
    println!("cargo::rustc-env=APPORTION_INSTRUCTIONS={}", linked("instructions.txt")?.display());
    println!("cargo::rustc-env=APPORTION_COMMIT={}", commit());
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-env=APPORTION_BUILD={build}");
    println!("cargo::rustc-env=APPORTION_TARGET={}", env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=APPORTION_PROFILE={}", env::var("PROFILE").unwrap_or_default());
    Ok(())
}

/// Returns the path of a link in this package to what is elsewhere in the project, and in a package to the thing itself. Where
/// git makes no links, as on Windows, a file with the path is in its place.
fn linked(name: &str) -> io::Result<PathBuf> {
    let here = env::current_dir()?;
    let target = fs::read_to_string(name).map(|path| here.join(path)).ok().filter(|path| path.exists());
    Ok(target.unwrap_or_else(|| here.join(name)))
}

/// Returns the commit, with `+` if files were changed after it; empty outside of a repository.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
        String::from_utf8(output.stdout).ok().map(|text| text.trim().to_owned())
    };
    // The log of HEAD grows with each commit and checkout. It is absent in a package, but then this file is
    // not part of a repository either.
    let of_head = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]);
    let (Some(log), true) = (of_head, Path::new("../core/src").is_dir()) else { return String::new() };
    println!("cargo::rerun-if-changed={log}");
    let is_changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_some_and(|text| !text.is_empty());
    git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default() + if is_changed { "+" } else { "" }
}

fn add_files(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            add_files(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

/// The 64-bit FNV-1a hash.
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
