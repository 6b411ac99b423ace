//! The cost of the event loop on one scenario, for comparisons of speed.
//!
//! `event_loop FILE.toml` prints `packet_hops N cpu_seconds S setup_seconds B events E peak_bytes M`: S is
//! processor time of the event loop without loading and set-up, B that of the set-up. Linux only.

#![expect(clippy::print_stdout, reason = "its output is what it is for")]

use std::path::Path;
use std::sync::atomic::AtomicBool;

use apportion_sim::{Detail, Simulation};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: event_loop FILE.toml")?;
    let text = std::fs::read_to_string(&path)?;
    let suite = apportion_scenario::load(&text, Path::new(&path), &[], &|path| std::fs::read(path))
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    for point in &suite.points {
        let loaded = cpu_seconds()?;
        let mut simulation =
            Simulation::new(&point.scenario, point.scenario.seed, Detail::Counts, &mut |_| None)?;
        let built = cpu_seconds()?;
        simulation.run(&AtomicBool::new(false));
        let done = cpu_seconds()?;
        let outcome = simulation.outcome();
        println!(
            "packet_hops {} cpu_seconds {:.6} setup_seconds {:.6} events {} peak_bytes {}",
            outcome.packet_hops,
            done - built,
            built - loaded,
            outcome.events,
            peak_bytes()?
        );
    }
    Ok(())
}

/// Processor time of this process. The first field of schedstat is in nanoseconds.
fn cpu_seconds() -> Result<f64, Box<dyn std::error::Error>> {
    let stat = std::fs::read_to_string("/proc/self/schedstat")?;
    let nanos: f64 = stat.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(nanos * 1e-9)
}

fn peak_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
