//! AFQ next to drop-tail and DCTCP: completion times of short flows among long ones.

use apportion_core::system::Catalog;

use super::rows;
use super::run::{Failure, simulate};

const HOSTS: usize = 8;
/// Most bytes of a short flow.
const SHORT: u64 = 100_000;

/// Eight hosts around a switch of 1 Gb/s ports with `queue`, and files of web search sizes between any two of
/// them, at a rate that uses `load` of the ports. Returns the completion times of files below 100 kB, in s,
/// ascending.
fn short_flows(queue: &str, tcp: &str, load: f64, seconds: f64, seed: u64) -> Result<Vec<f64>, Failure> {
    // The mean of the distribution `web_search`.
    let mean_bytes = 1.711e6;
    let pairs = (HOSTS * (HOSTS - 1)) as f64;
    let per_second = load * 1e9 / 8.0 * HOSTS as f64 / mean_bytes / pairs;
    let mut text = format!(
        r#"
        seed = 1
        stop = "{seconds}s"
        defaults.link = {{ rate = "1Gbit", delay = "10us" }}
        defaults.flow.tcp = {tcp}
        defaults.flow.source = {{ kind = "short_flows", per_second = {per_second}, sizes = "web_search" }}
        "#
    );
    for to in 1..=HOSTS {
        text += &format!("link.port{to} = {{ from = \"switch\", to = \"h{to}\", queue = {queue} }}\n");
        for from in (1..=HOSTS).filter(|&from| from != to) {
            text += &format!("flow.f{from}t{to} = {{ from = \"h{from}\", to = \"h{to}\" }}\n");
        }
    }
    let outcome = simulate(&Catalog::default(), &text, seed)?;
    let files = outcome.flows.iter().flat_map(|flow| &flow.completions);
    let short = files.filter(|file| file.size.get() < SHORT);
    let mut times: Vec<f64> = short.map(|file| file.took.as_secs_f64()).collect();
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Linux's TCP, with both timeouts of a data centre: Linux's timeouts for SYNs and for data would dominate
/// the tail.
fn tcp(algorithm: &str, rto: &str) -> String {
    format!(r#"{{ profile = "linux", algorithm = "{algorithm}", min_rto = "{rto}", initial_rto = "{rto}" }}"#)
}

/// Ratios of completion times, on average and at 99 %: of TCP and of DCTCP over AFQ with TCP.
pub fn table(seeds: u64, seconds: f64) -> Result<(), Failure> {
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let late = |times: &[f64]| times.get(times.len() * 99 / 100).copied().unwrap_or(f64::NAN);
    // Marks from 50 packets on; twice as many are its limit.
    let marking = r#"{
        kind = "fifo", drop = "red", limit = "150kB", ecn = true, w_q = 1.0, min_th = "49p", max_th = "50p", max_p = 1.0, gentle = true,
        wait = false
    }"#;
    for (load, rto, queues, limit) in [
        (0.6, "10ms", 32, "150kB"),
        (0.6, "1ms", 32, "150kB"),
        (0.8, "10ms", 32, "150kB"),
        (0.6, "10ms", 1024, "150kB"),
    ] {
        let afq = format!(r#"{{ kind = "afq", limit = "{limit}", queues = {queues} }}"#);
        let fifo = format!(r#"{{ kind = "fifo", limit = "{limit}" }}"#);
        let (reno, dctcp) = (tcp("reno", rto), tcp("dctcp", rto));
        let name = format!("{load}, RTO {rto}, {limit}, {queues} queues:");
        let names =
            ["TCP, mean", "TCP, 99 %", "DCTCP, mean", "DCTCP, 99 %"].map(|what| format!("{name} {what}"));
        rows(names.each_ref().map(String::as_str), seeds, |seed| {
            let of = |queue: &str, tcp: &str| short_flows(queue, tcp, load, seconds, seed);
            let (ours, drops, marks) = (of(&afq, &reno)?, of(&fifo, &reno)?, of(marking, &dctcp)?);
            let [mean_of, late_of] = [mean(&ours), late(&ours)];
            Ok([
                mean(&drops) / mean_of,
                late(&drops) / late_of,
                mean(&marks) / mean_of,
                late(&marks) / late_of,
            ])
        })?;
    }
    Ok(())
}
