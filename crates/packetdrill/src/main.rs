//! Judges the simulator's TCP by the scripts of folders, and prints a table.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program of the command line")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use apportion_packetdrill::{Verdict, judge, parse};
use clap::Parser;

/// Judges the simulator's TCP by scripts of packetdrill.
///
/// Prints each script with its verdict, then a table. Exit status: 0 if all verdicts are as expected, 1 if not, 2 if a
/// file cannot be read.
#[derive(Parser)]
struct Args {
    /// Scripts, and folders with scripts (*.pkt) at any depth.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// A list of expected verdicts: `pass NAME`, `part NAME` or `fail NAME`, one a line; others must not apply. Without
    /// it no script may fail.
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::from(2)
        }
    }
}

fn run(args: &Args) -> Result<bool, String> {
    let list = match &args.expected {
        Some(path) => Some(expectations(&String::from_utf8_lossy(&read(path)?))?),
        None => None,
    };
    let mut scripts = Vec::new();
    for path in &args.paths {
        collect(path, &mut scripts)?;
    }
    scripts.sort();
    let mut table = Table::default();
    for path in &scripts {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let verdict = judge(&String::from_utf8_lossy(&read(path)?));
        let expected = list.as_ref().map(|list| list.get(name.as_ref()).map_or("n/a", String::as_str));
        table.add(&name, &verdict, expected);
    }
    table.print();
    Ok(table.others.is_empty())
}

/// Names and expected verdicts.
fn expectations(text: &str) -> Result<BTreeMap<String, String>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| match line.split_once(' ') {
            Some((word @ ("pass" | "part" | "fail"), name)) => Ok((name.trim().to_owned(), word.to_owned())),
            _ => Err(format!("expected `pass NAME`, `part NAME` or `fail NAME`, not `{line}`")),
        })
        .collect()
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    // One byte more than a script may have shows that it is too long.
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    std::io::Read::read_to_end(&mut std::io::Read::take(file, parse::MOST as u64 + 1), &mut bytes)
        .map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(bytes)
}

fn collect(path: &Path, scripts: &mut Vec<PathBuf>) -> Result<(), String> {
    if !path.is_dir() {
        scripts.push(path.to_owned());
        return Ok(());
    }
    let entries = std::fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink())) {
        let path = entry.path();
        if path.is_dir() || path.extension().is_some_and(|ext| ext == "pkt") {
            collect(&path, scripts)?;
        }
    }
    Ok(())
}

/// The verdicts so far.
#[derive(Default)]
struct Table {
    verdicts: BTreeMap<&'static str, u32>,
    reasons: BTreeMap<&'static str, u32>,
    /// Scripts with another verdict than expected.
    others: Vec<String>,
}

impl Table {
    fn add(&mut self, name: &str, verdict: &Verdict, expected: Option<&str>) {
        let word = verdict.word();
        *self.verdicts.entry(word).or_default() += 1;
        if let Verdict::NotApplicable(reason) | Verdict::Part(_, reason) = verdict {
            *self.reasons.entry(reason.kind).or_default() += 1;
        }
        println!("{}", format!("{word:<10}  {name:<50}  {verdict}").trim_end());
        let is_right = match expected {
            Some(expected) => expected == word,
            None => !matches!(verdict, Verdict::Fail(_) | Verdict::Unreadable(_)),
        };
        if !is_right {
            self.others.push(format!("{name}: {word}, not {}", expected.unwrap_or("pass")));
        }
    }

    fn print(&self) {
        println!();
        for word in ["pass", "fail", "part", "n/a", "unreadable"] {
            println!("{:>5}  {word}", self.verdicts.get(word).copied().unwrap_or(0));
        }
        let mut reasons: Vec<_> = self.reasons.iter().collect();
        reasons.sort_by_key(|&(kind, count)| (std::cmp::Reverse(*count), *kind));
        println!("\nReasons of part and n/a:");
        for (kind, count) in reasons {
            println!("{count:>5}  {kind}");
        }
        if !self.others.is_empty() {
            println!("\nNot as expected:\n  {}", self.others.join("\n  "));
        }
    }
}
