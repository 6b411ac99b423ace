//! PACKS, RIFO, SP-PIFO and AIFO with the ranks of pFabric's hosts: completion times of files.

use apportion_core::random::Stream;
use apportion_core::system::Catalog;
use apportion_scenario::model::{ShortFlows, Sizes, Source};

use super::ranked::{SACK, catalog, statistic, tcp};
use super::run::{Failure, load, simulate};

/// Most bytes of a short file.
const SHORT: u64 = 100_000;
/// Least bytes of a long one.
const LONG: u64 = 1_000_000;

/// The times of files, in ms: mean and 99 % of the short ones, mean of the long ones; then the part of packets that
/// were dropped, and inversions for each departure.
pub const TIMES: [&str; 5] =
    ["short, ms", "short, 99 %, ms", "long, ms", "packets dropped", "inversions a departure"];

/// Files of web search sizes from 16 hosts to one over 10 Gb/s each, which start by Poisson at a rate that uses `load`
/// of its link, with the rank of pFabric's hosts, what is left of the file. Files that start within `seconds` count
/// if they end within 10 s more.
pub fn completions(queue: &str, load: f64, seconds: f64, seed: u64) -> Result<[f64; 5], Failure> {
    const RATE: f64 = 10e9;
    /// Headers take 120 of 1,500 bytes.
    const WITH_HEADERS: f64 = 1_500.0 / 1_380.0;
    let web_search = web_search()?;
    let mut random = Stream::new(seed, "files");
    let mut text = format!(
        r#"
        seed = 1
        stop = "{}s"
        defaults.flow.jitter = "0s"
        defaults.flow.tcp = {}
        defaults.link = {{ rate = "10Gbit", delay = "1us" }}
        link.out = {{ from = "switch", to = "sink", queue = {queue} }}
        "#,
        seconds + 10.0,
        tcp(SACK, "12p", "300us"),
    );
    for host in 0..16 {
        text += &format!("link.in{host} = {{ from = \"h{host}\", to = \"switch\" }}\n");
    }
    let mut sizes = Vec::new();
    let mut start = 0.0;
    loop {
        start += random.exponential(web_search.mean() * 8.0 * WITH_HEADERS / (load * RATE));
        if start > seconds {
            break;
        }
        let (size, at) = (web_search.quantile(random.uniform()).max(1.0) as u64, sizes.len());
        let source = format!("{{ kind = \"file\", size = \"{size}B\" }}");
        text += &format!(
            "flow.f{at:05} = {{ from = \"h{}\", to = \"sink\", start = \"{:.0}ns\", source = {source} }}\n",
            at % 16,
            start * 1e9
        );
        sizes.push(size);
    }
    let on_wire: Vec<u64> = sizes.iter().map(|size| (*size as f64 * WITH_HEADERS) as u64).collect();
    let outcome = simulate(&catalog(&on_wire)?, &text, seed)?;
    let files = outcome.flows.iter().flat_map(|flow| &flow.completions);
    let took: Vec<(u64, f64)> = files.map(|file| (file.size.get(), file.took.as_secs_f64() * 1e3)).collect();
    if took.len() < sizes.len() {
        return Err(format!("{} of {} files end", took.len(), sizes.len()).into());
    }
    let times = |is: &dyn Fn(u64) -> bool| {
        let mut times: Vec<f64> = took.iter().filter(|(size, _)| is(*size)).map(|(_, time)| *time).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let short = times(&|size| size < SHORT);
    let late = short.get(short.len() * 99 / 100).copied().unwrap_or(f64::NAN);
    let link = outcome.links.iter().find(|link| link.name == "out").ok_or("no link")?;
    let (drops, sent) = (link.dropped.values().sum::<u64>() as f64, statistic(link, "served"));
    let long = times(&|size| size >= LONG);
    Ok([mean(&short), late, mean(&long), drops / (drops + sent), statistic(link, "inversions")])
}

/// The sizes of files in a cluster that answers searches.
fn web_search() -> Result<Sizes, Failure> {
    let text = r#"
        seed = 1
        stop = "1s"
        link.l = { from = "a", to = "b", rate = "1Gbit", delay = "1ms" }
        flow.f = { from = "a", to = "b", source = { kind = "short_flows", per_second = 1, sizes = "web_search" } }
    "#;
    let suite = load(&Catalog::default(), text)?;
    match suite.points.first().map(|point| &point.scenario.flows[0].source) {
        Some(Source::ShortFlows(ShortFlows { sizes, .. })) => Ok(sizes.clone()),
        _ => Err("no sizes of a web search".into()),
    }
}
