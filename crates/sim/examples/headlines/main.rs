//! Headline figures of papers whose disciplines are in `apportion-core`, tried in the simulator.
//!
//! ```text
//! headlines sp-pifo SEEDS SECONDS   inversions with SP-PIFO over those with a FIFO: section 4.2, appendix A
//! headlines aifo SEEDS              completion time of the smallest of three files: Fig. 12
//! headlines packs SEEDS SECONDS     inversions and drops of low ranks at a load of 1.1: PACKS' abstract; RIFO
//! headlines fct SEEDS SECONDS       completion times with the ranks of pFabric: PACKS' abstract; RIFO
//! headlines afq SEEDS SECONDS       completion times of short flows, with TCP relative to AFQ: abstract
//! ```
//! Each row has the mean over the seeds with Student's 95 % interval; docs/headlines.md has the papers' figures.

#![allow(clippy::print_stdout, reason = "a program whose output is a table")]

mod afq;
mod fct;
mod ranked;
mod run;

use run::Failure;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["sp-pifo", seeds, seconds] => sp_pifo(seeds.parse()?, seconds.parse()?),
        ["aifo", seeds] => aifo(seeds.parse()?),
        ["packs", seeds, seconds] => packs(seeds.parse()?, seconds.parse()?),
        ["fct", seeds, seconds] => fct(seeds.parse()?, seconds.parse()?),
        ["afq", seeds, seconds] => afq::table(seeds.parse()?, seconds.parse()?),
        _ => Err(
            "usage: headlines sp-pifo SEEDS SECONDS | aifo SEEDS | packs SEEDS SECONDS | fct SEEDS SECONDS | afq SEEDS SECONDS"
                .into(),
        ),
    }
}

/// Prints the means over the seeds of the values that `one` returns, with their intervals, one line per name.
fn rows<const N: usize>(
    names: [&str; N],
    seeds: u64,
    one: impl Fn(u64) -> Result<[f64; N], Failure>,
) -> Result<(), Failure> {
    let all: Vec<[f64; N]> = (1..=seeds).map(one).collect::<Result<_, _>>()?;
    let n = all.len() as f64;
    // Student's, by degrees of freedom from 1 on.
    let quantiles = [12.7, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];
    let quantile = quantiles.get(all.len().saturating_sub(2)).copied().unwrap_or(2.1);
    for (at, name) in names.into_iter().enumerate() {
        let mean = all.iter().map(|values| values[at]).sum::<f64>() / n;
        let variance = all.iter().map(|values| (values[at] - mean).powi(2)).sum::<f64>() / (n - 1.0);
        println!("{name:<44} {mean:.4} ± {:.4}", quantile * (variance / n).sqrt());
    }
    Ok(())
}

/// The ratio of inversions with SP-PIFO to those with a FIFO of the same size.
struct Inversions {
    ranks: &'static str,
    queues: u64,
    recovery: &'static str,
    per_second: f64,
    adapts: bool,
}

/// The setting that the authors vary least.
const UNIFORM: Inversions =
    Inversions { ranks: "uniform", queues: 8, recovery: ranked::SACK, per_second: 750.0, adapts: false };

impl Inversions {
    fn over_fifo(&self, seconds: f64, seed: u64) -> Result<f64, Failure> {
        let Self { ranks, queues, recovery, per_second, adapts } = *self;
        let common = format!(r#"kind = "ranked", ranks = "{ranks}", limit = "{}p""#, 10 * queues);
        let ours = format!(r#"{{ {common}, place = "sp_pifo", queues = {queues}, adapts = {adapts} }}"#);
        let fifo = ranked::inversions(&format!("{{ {common} }}"), recovery, per_second, seconds, seed)?;
        let ours = ranked::inversions(&ours, recovery, per_second, seconds, seed)?;
        // The authors' count: in a FIFO packets that arrive after a larger rank, else packets that leave
        // before a smaller one.
        Ok(ours.overtaking / fifo.behind_larger)
    }
}

fn sp_pifo(seeds: u64, seconds: f64) -> Result<(), Failure> {
    let of = |name: &str, one: Inversions| rows([name], seeds, |seed| Ok([one.over_fifo(seconds, seed)?]));
    for ranks in ["uniform", "exponential", "inverse", "poisson", "convex"] {
        of(&format!("{ranks}, 8 queues"), Inversions { ranks, ..UNIFORM })?;
    }
    for queues in [32, 16, 4, 2, 1] {
        of(&format!("uniform, {queues} queues of 10 packets"), Inversions { queues, ..UNIFORM })?;
    }
    for per_second in [225.0, 845.0] {
        of(&format!("uniform, 8 queues, {per_second} files a second"), Inversions { per_second, ..UNIFORM })?;
    }
    of("uniform, 8 queues, packets dropped adapt", Inversions { adapts: true, ..UNIFORM })?;
    let newreno = r#"algorithm = "newreno""#;
    of("uniform, 8 queues, NewReno", Inversions { recovery: newreno, ..UNIFORM })?;
    let rack = r#"algorithm = "sack", sack_recovery = "rack""#;
    of("uniform, 8 queues, RACK", Inversions { recovery: rack, ..UNIFORM })
}

fn aifo(seeds: u64) -> Result<(), Failure> {
    let places = [
        ("AIFO", r#"place = "aifo", limit = "100p""#),
        ("AIFO, window of 100", r#"place = "aifo", limit = "100p", window = 100"#),
        ("AIFO, each packet joins the window", r#"place = "aifo", limit = "100p", sample = 1"#),
        ("AIFO, k = 0.5", r#"place = "aifo", limit = "100p", headroom = 0.5"#),
        ("AIFO, k = 0.99", r#"place = "aifo", limit = "100p", headroom = 0.99"#),
        ("AIFO, 20 packets", r#"place = "aifo", limit = "20p""#),
        ("AIFO, 1000 packets", r#"place = "aifo", limit = "1000p""#),
        ("PIFO", r#"place = "pifo", limit = "100p""#),
        ("SP-PIFO, 8 queues", r#"place = "sp_pifo", limit = "80p""#),
        ("FIFO", r#"place = "fifo", limit = "97p""#),
    ];
    for (name, place) in places {
        let queue = format!(r#"{{ kind = "ranked", ranks = "remaining", {place} }}"#);
        let names = [10, 50].map(|mb| format!("{name}: {mb} MB, s"));
        rows(names.each_ref().map(String::as_str), seeds, |seed| ranked::order(&queue, "12us", seed))?;
    }
    Ok(())
}

fn packs(seeds: u64, seconds: f64) -> Result<(), Failure> {
    let window = r#"headroom = 0.0, window = 1000, sample = 1"#;
    let small = r#"headroom = 0.1, window = 20, sample = 1"#;
    let range = r#"headroom = 0.1, window = 100"#;
    let places = [
        ("FIFO", r#"place = "fifo""#.to_owned()),
        ("AIFO", format!(r#"place = "aifo", {window}"#)),
        ("SP-PIFO", r#"place = "sp_pifo""#.to_owned()),
        ("PACKS", format!(r#"place = "packs", {window}"#)),
        ("PACKS, published", format!(r#"place = "packs", {window}, rule = "published""#)),
        ("PACKS, window of 20, k = 0.1", format!(r#"place = "packs", {small}"#)),
        ("PACKS, one queue", format!(r#"place = "packs", {window}, queues = 1"#)),
        ("RIFO", format!(r#"place = "rifo", {range}"#)),
        ("RIFO, published", format!(r#"place = "rifo", {range}, rule = "published""#)),
        ("PIFO", r#"place = "pifo""#.to_owned()),
    ];
    for ranks in ["uniform", "exponential", "inverse", "poisson", "convex"] {
        for (name, place) in &places {
            let queue = format!(r#"{{ kind = "ranked", ranks = "{ranks}", {place} }}"#);
            let names = ["inversions a departure", "low ranks dropped"]
                .map(|what| format!("{ranks}, {name}: {what}"));
            rows(names.each_ref().map(String::as_str), seeds, |seed| ranked::flood(&queue, seconds, seed))?;
        }
    }
    Ok(())
}

fn fct(seeds: u64, seconds: f64) -> Result<(), Failure> {
    let places = [
        ("FIFO", r#"place = "fifo""#),
        ("AIFO", r#"place = "aifo""#),
        ("RIFO", r#"place = "rifo", window = 150"#),
        ("RIFO, published", r#"place = "rifo", window = 150, rule = "published""#),
        ("SP-PIFO", r#"place = "sp_pifo", queues = 4"#),
        ("PACKS", r#"place = "packs", queues = 4, sample = 1"#),
        ("PACKS, published", r#"place = "packs", queues = 4, sample = 1, rule = "published""#),
        ("PIFO", r#"place = "pifo""#),
    ];
    for load in [0.4, 0.6, 0.8] {
        for (name, place) in places {
            let queue = format!(r#"{{ kind = "ranked", ranks = "remaining", limit = "40p", {place} }}"#);
            let names = fct::TIMES.map(|what| format!("{load}, {name}: {what}"));
            rows(names.each_ref().map(String::as_str), seeds, |seed| {
                fct::completions(&queue, load, seconds, seed)
            })?;
        }
    }
    Ok(())
}
