//! Our TCP against ns-2's, over one link that loses chosen packets: `validation/forced-loss/check` calls it.
//!
//! ```text
//! forced_loss CASES TRACE          compare with ns-2's trace; one line of a table per case
//! forced_loss CASES TRACE golden   print what ns-2 did: timeouts, packets, time:cwnd of every reduction
//! forced_loss CASES                print our own trace in the same form
//! ```
//! A line of CASES: name, profile, algorithm, delayed ACK (0 or 1), window in packets, packets to send (0:
//! endless; `3@0.5`: 3 every 0.5 s), seconds to run, ordinals of the lost packets (or `-`).

#![allow(clippy::print_stdout, reason = "a program whose output is a table")]

#[path = "../tests/it/tcp/pipe.rs"]
#[allow(dead_code, unreachable_pub, reason = "shared with the tests, which use more of it")]
mod pipe;

#[path = "../tests/it/tcp/forced.rs"]
#[allow(unreachable_pub, reason = "shared with the tests")]
mod forced;

use std::collections::BTreeMap;
use std::process::ExitCode;

use apportion_scenario::tcp::TcpParams;

use forced::{Case, Failure, Run, read_cases, simulate};

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cases, rest @ ..] = arguments.as_slice() else {
        return Err("usage: forced_loss CASES [TRACE]".into());
    };
    let cases = read_cases(&std::fs::read_to_string(cases)?)?;
    if let [trace, rest @ ..] = rest {
        let theirs = read_traces(&std::fs::read_to_string(trace)?)?;
        return if rest.is_empty() { compare(&cases, &theirs) } else { Ok(summarise(&theirs)) };
    }
    for case in &cases {
        for (at, event, value) in simulate(case)?.lines {
            println!("{} {at:.5} {event} {value:.3}", case.name);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// ns-2's runs by case, from lines `CASE time EVENT value`.
fn read_traces(text: &str) -> Result<BTreeMap<String, Run>, Failure> {
    let mut readers: BTreeMap<String, Reader> = BTreeMap::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, at, event, value] = words[..] else { return Err(format!("not a trace: {line}").into()) };
        let reader = readers.entry(name.to_owned()).or_insert_with(Reader::new);
        reader.line(at.parse()?, event, value.parse()?);
    }
    Ok(readers.into_iter().map(|(name, reader)| (name, reader.finish())).collect())
}

/// Combines the lines of one instant.
struct Reader {
    run: Run,
    instants: Vec<Instant>,
    backoff: f64,
}

struct Instant {
    at: f64,
    cwnd_before: f64,
    cwnd: f64,
    timeout: bool,
}

impl Reader {
    fn new() -> Self {
        // Both presets begin with a window of one segment.
        Self { run: Run { last_cwnd: 1.0, ..Run::default() }, instants: Vec::new(), backoff: 1.0 }
    }

    fn line(&mut self, at: f64, event: &str, value: f64) {
        if event == "send" {
            self.run.sent.push((at, value as u64));
            return;
        }
        let before = self.run.last_cwnd;
        if self.instants.last().is_none_or(|instant| instant.at < at) {
            self.instants.push(Instant { at, cwnd_before: before, cwnd: before, timeout: false });
        }
        let Some(instant) = self.instants.last_mut() else { return };
        match event {
            "cwnd" => {
                instant.cwnd = value;
                self.run.last_cwnd = value;
            }
            // A timeout doubles the backoff; a sample puts it back to 1.
            "backoff" => {
                instant.timeout |= value > self.backoff;
                self.backoff = value;
            }
            // At its largest it stays, but halving a window of one segment still shows before the floor of
            // two.
            "ssthresh" => instant.timeout |= value < 2.0 && self.backoff == 64.0,
            _ => {}
        }
    }

    fn finish(mut self) -> Run {
        self.run.timeouts = self.instants.iter().filter(|instant| instant.timeout).count() as u64;
        let cuts =
            self.instants.iter().filter(|instant| instant.timeout || instant.cwnd < instant.cwnd_before);
        self.run.events = cuts.map(|instant| (instant.at, instant.cwnd)).collect();
        self.run
    }
}

/// Prints ns-2's results, for the tests that run without ns-2.
fn summarise(runs: &BTreeMap<String, Run>) -> ExitCode {
    for (name, run) in runs {
        print!("{name} {} {}", run.timeouts, run.sent.len());
        run.events.iter().for_each(|(at, cwnd)| print!(" {at:.5}:{cwnd:.3}"));
        println!();
    }
    ExitCode::SUCCESS
}

/// Prints the table. Succeeds if every case is within its bounds.
fn compare(cases: &[Case], theirs: &BTreeMap<String, Run>) -> Result<ExitCode, Failure> {
    println!(
        "{:<28} {:<8} {:<8} {:>6} {:>9} {:>7} {:>9} {:>9} {:>9}  ok",
        "case", "profile", "algo", "delack", "timeouts", "events", "cwnd diff", "time diff", "packets"
    );
    let mut all = true;
    for case in cases {
        let ours = simulate(case)?;
        let Some(theirs) = theirs.get(&case.name) else {
            return Err(format!("ns-2's trace has no case {}", case.name).into());
        };
        // Bounds: a segment of window; 1 % or a clock tick in time.
        let tick = TcpParams::profile(&case.profile).map_or(0.0, |params| params.tick.as_secs_f64());
        let pairs = || ours.events.iter().zip(&theirs.events);
        // FullTcp's window stops where the receiver's ends, where the others let it grow without effect.
        let cap = if case.profile == "ns2-full" { f64::from(case.window) } else { f64::INFINITY };
        let last = (ours.last_cwnd.min(cap) - theirs.last_cwnd.min(cap)).abs();
        let cwnd = pairs().map(|(a, b)| (a.1 - b.1).abs()).fold(last, f64::max);
        let time = pairs().map(|(a, b)| (a.0 - b.0).abs()).fold(0.0, f64::max);
        let timely = pairs().all(|(a, b)| (a.0 - b.0).abs() <= (b.0 / 100.0).max(tick));
        let ok = ours.timeouts == theirs.timeouts
            && ours.events.len() == theirs.events.len()
            && cwnd <= 1.0
            && timely;
        all &= ok;
        println!(
            "{:<28} {:<8} {:<8} {:>6} {:>9} {:>7} {:>9.3} {:>8.5}s {:>9}  {}",
            case.name,
            case.profile,
            case.algorithm,
            if case.delayed_ack { "on" } else { "off" },
            format!("{}/{}", ours.timeouts, theirs.timeouts),
            format!("{}/{}", ours.events.len(), theirs.events.len()),
            cwnd,
            time,
            differing(&ours.sent, &theirs.sent),
            if ok { "yes" } else { "NO" }
        );
    }
    Ok(if all { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How many packets, in order, differ in number or by more than 20 microseconds, of how many.
fn differing(ours: &[(f64, u64)], theirs: &[(f64, u64)]) -> String {
    let same = |(a, b): &(&(f64, u64), &(f64, u64))| a.1 == b.1 && (a.0 - b.0).abs() < 2e-5;
    let alike = ours.iter().zip(theirs).filter(same).count();
    format!("{}/{}", ours.len().max(theirs.len()) - alike, theirs.len())
}
