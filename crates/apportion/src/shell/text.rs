//! The measurements of a shell as lines of text, as JSON, and as a run for tables and report.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use apportion_core::random::fnv1a;
use apportion_core::units::{Rate, Ratio, Span, Time};
use apportion_linux::command::End;
use apportion_live::host_proxy::{Counts, ListenerCounts};
use apportion_live::shell::{DirectionSummary, Summary};
use apportion_report::{FlowInfo, PointResults, RunResults};
use apportion_runtime::outcome::{Distribution, Drops, Outcome};
use serde_json::{Value, json};

use super::{LinkOptions, Shell};
use crate::provenance::versions;

/// The directions by name.
fn links(shell: &Shell) -> [(&'static str, &LinkOptions); 2] {
    [("up", &shell.up), ("down", &shell.down)]
}

/// Describes the rate of a direction in words.
pub(super) fn speed(link: &LinkOptions) -> String {
    match link {
        LinkOptions { rate: Some(rate), .. } => rate.to_string(),
        LinkOptions { steps: Some(steps), .. } => steps.clone(),
        LinkOptions { trace: Some(trace), trace_columns: Some(columns), .. } => {
            format!("{} ({columns})", trace.display())
        }
        LinkOptions { trace: Some(trace), .. } => trace.display().to_string(),
        _ => "no limit".to_owned(),
    }
}

/// Returns the command line behind the link.
pub(super) fn command(shell: &Shell) -> String {
    shell.command.iter().map(|word| word.display().to_string()).collect::<Vec<_>>().join(" ")
}

/// Returns the lines for standard error.
pub(super) fn lines(shell: &Shell, summary: &Summary) -> Vec<String> {
    let mut lines =
        vec![format!("shell: {} {} after {:.2} s", program(shell), summary.end, secs(summary.lasted))];
    if let Some(far) = summary.far {
        lines.push(format!("far: {far} before the command did"));
    }
    for ((name, link), direction) in links(shell).into_iter().zip(&summary.directions) {
        lines.push(format!("{name:4}: {}", direction_line(direction, link, summary.lasted)));
        lines.extend(direction.link.fault.as_ref().map(|fault| format!("INVALID: {name}: {fault}")));
    }
    lines.extend(summary.outside.as_ref().map(outside_line));
    lines.extend(summary.doors.as_ref().and_then(doors_line));
    lines.push(system_line(summary));
    let super_packets = summary.at_ports(|port| port.super_packets);
    if super_packets > 0 {
        lines.push(format!(
            "{super_packets} super-packets were dropped: they hold many segments as one packet and could not be cut; \
             turn segmentation offload off where they come from"
        ));
    }
    if !summary.kept_up(shell.max_lateness) {
        lines.push(format!(
            "INVALID: more than 1 of 100 packets left over {} late; the machine was too busy for this rate",
            shell.max_lateness
        ));
    }
    lines
}

fn program(shell: &Shell) -> String {
    shell.command.first().map_or_else(String::new, |word| format!("`{}`", word.display()))
}

fn direction_line(direction: &DirectionSummary, link: &LinkOptions, lasted: Span) -> String {
    let measured = &direction.link;
    if measured.sent.packets.get() == 0 && measured.dropped.is_empty() {
        return "nothing was sent".to_owned();
    }
    let mut line = format!("{} packets", measured.sent.packets.get());
    let mbit = |rate: Option<Rate>| rate.map_or(0.0, Rate::as_mbit_f64);
    let _ = write!(line, ", {:.3} Mbit/s over all", mbit(direction.over(lasted)));
    if !direction.is_unlimited {
        let _ = write!(
            line,
            ", {:.3} Mbit/s while busy ({:.2} s), asked {:.3} Mbit/s ({})",
            mbit(direction.while_busy()),
            secs(direction.busy),
            measured.rate.as_mbit_f64(),
            speed(link),
        );
    }
    let _ =
        write!(line, "; delay {} (asked {})", quantiles(&direction.delay), link.delay.unwrap_or(Span::ZERO));
    let _ = write!(line, "; {}", drops_line(&measured.dropped));
    if measured.lost > 0 {
        let _ = write!(line, ", {} lost on the wire", measured.lost);
    }
    if measured.marked > 0 {
        let _ = write!(line, ", {} marked", measured.marked);
    }
    line
}

fn drops_line(drops: &Drops) -> String {
    if drops.is_empty() {
        return "none dropped".to_owned();
    }
    let each: Vec<_> = drops.iter().map(|(reason, count)| format!("{count} {}", reason.name())).collect();
    format!("dropped: {}", each.join(", "))
}

fn outside_line(counts: &Counts) -> String {
    let refused = counts.refused().filter(|(_, count)| *count > 0);
    let refused: Vec<_> = refused.map(|(reason, count)| format!("{count} {}", reason.name())).collect();
    let refused = if refused.is_empty() { "none".to_owned() } else { refused.join(", ") };
    format!(
        "outside: {} connections, {} datagrams; refused: {refused}",
        counts.connections,
        counts.datagrams.up + counts.datagrams.down,
    )
}

/// Returns a line if there were too few ports.
fn doors_line(doors: &ListenerCounts) -> Option<String> {
    (doors.failed + doors.closed > 0).then(|| {
        format!(
            "outside: {} packets met a port that could not be opened, {} ports were closed for others; \
             `ulimit -n` allows more",
            doors.failed, doors.closed,
        )
    })
}

fn outside_json(counts: &Counts, doors: &ListenerCounts) -> Value {
    let refused: BTreeMap<_, _> = counts.refused().map(|(reason, count)| (reason.name(), count)).collect();
    json!({
        "connections": counts.connections,
        "broken_off": counts.broken_off,
        "bytes": {"up": counts.bytes.up, "down": counts.bytes.down},
        "datagrams": {"up": counts.datagrams.up, "down": counts.datagrams.down},
        "datagrams_lost": counts.datagrams_lost,
        "refused": refused,
        "ports": {"opened": doors.opened, "closed": doors.closed, "failed": doors.failed},
    })
}

fn system_line(summary: &Summary) -> String {
    format!(
        "{} flows; frames lost by the kernel {}, refused by it {}, malformed {}; lateness {}",
        summary.flows_seen,
        summary.at_ports(|port| port.missed),
        summary.at_ports(|port| port.unsent + port.oversize),
        summary.malformed,
        quantiles(&summary.lateness),
    )
}

/// Formats quantiles as `p50 20.1 p95 20.3 p99 20.9 ms`.
fn quantiles(distribution: &Distribution) -> String {
    let of = |share| {
        distribution.quantile(share).map_or_else(|| "-".to_owned(), |span| format!("{:.3}", ms(span)))
    };
    format!("p50 {} p95 {} p99 {} ms", of(0.5), of(0.95), of(0.99))
}

fn ms(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}

fn secs(span: Span) -> f64 {
    span.as_secs_f64()
}

/// Returns the results as a JSON object.
pub(super) fn json(shell: &Shell, summary: &Summary) -> Value {
    let directions: BTreeMap<_, _> = links(shell)
        .into_iter()
        .zip(&summary.directions)
        .map(|((name, link), direction)| (name, direction_json(direction, link, summary.lasted)))
        .collect();
    let outside = summary.outside.as_ref().zip(summary.doors.as_ref());
    let outside = outside.map(|(counts, doors)| outside_json(counts, doors));
    json!({
        "command": command(shell),
        "status": summary.status(),
        "timed_out": summary.end == End::TimedOut,
        "far": summary.far.map(|end| end.to_string()),
        "seconds": secs(summary.lasted),
        "seed": shell.seed,
        "valid": summary.kept_up(shell.max_lateness),
        "max_lateness_ms": ms(shell.max_lateness),
        "lateness_ms": quantiles_json(&summary.lateness),
        "directions": directions,
        "flows": summary.flows_seen,
        "outside": outside,
        "missed_frames": summary.at_ports(|port| port.missed),
        "refused_frames": summary.at_ports(|port| port.unsent),
        "oversize_frames": summary.at_ports(|port| port.oversize),
        "segmented_super_packets": summary.at_ports(|port| port.segmented),
        "super_packets": summary.at_ports(|port| port.super_packets),
        "malformed_frames": summary.malformed,
    })
}

fn direction_json(direction: &DirectionSummary, link: &LinkOptions, lasted: Span) -> Value {
    let measured = &direction.link;
    let mbit = |rate: Option<Rate>| rate.map(Rate::as_mbit_f64);
    let dropped: BTreeMap<_, _> =
        measured.dropped.iter().map(|(reason, count)| (reason.name(), count)).collect();
    json!({
        "speed": speed(link),
        "queue": link.queue(),
        "asked_delay_ms": ms(link.delay.unwrap_or(Span::ZERO)),
        "asked_mbps": (!direction.is_unlimited).then(|| measured.rate.as_mbit_f64()),
        "busy_mbps": (!direction.is_unlimited).then(|| mbit(direction.while_busy())),
        "busy_seconds": (!direction.is_unlimited).then(|| secs(direction.busy)),
        "mbps": mbit(direction.over(lasted)),
        "packets": measured.sent.packets.get(),
        "bytes": measured.sent.bytes.get(),
        "delay_ms": quantiles_json(&direction.delay),
        "queue_delay_ms": quantiles_json(&measured.queue_delay),
        "dropped": dropped,
        "lost": measured.lost,
        "marked": measured.marked,
    })
}

fn quantiles_json(distribution: &Distribution) -> Value {
    let of = |share| distribution.quantile(share).map(ms);
    json!({"p50": of(0.5), "p95": of(0.95), "p99": of(0.99), "max": of(1.0)})
}

/// Returns the results as a run for tables and report, with the largest flows.
pub(super) fn record(shell: &Shell, summary: &Summary, sample: Span) -> RunResults {
    let text = settings(shell);
    let flow = |flow: &apportion_runtime::outcome::FlowOutcome| FlowInfo {
        name: flow.name.clone(),
        group: flow.group.clone(),
        customer: None,
        entitlement: None,
    };
    let outcome = Outcome {
        seed: shell.seed,
        measured: summary.lasted,
        flows: summary.flows.clone(),
        links: summary.directions.iter().map(|direction| direction.link.clone()).collect(),
        packet_hops: summary.directions.iter().map(|direction| direction.link.sent.packets.get()).sum(),
        events: 0,
        timekeeping: Some(summary.timekeeping(shell.max_lateness)),
    };
    let flows = summary.flows.iter().map(flow).collect();
    let mut point = PointResults::new(String::new(), Vec::new(), Time::ZERO, sample, flows);
    point.outcomes.push(outcome);
    RunResults {
        title: format!("apportion shell: {}", command(shell)),
        hash: format!("{:016x}", fnv1a(&text)),
        scenario: text,
        versions: versions(true),
        seeds: vec![shell.seed],
        complete: true,
        warnings: Vec::new(),
        points: vec![point],
    }
}

/// Returns the options as TOML.
fn settings(shell: &Shell) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut text = format!("command = {}\nseed = {}\n", quoted(&command(shell)), shell.seed);
    for (name, link) in links(shell) {
        let delay = link.delay.unwrap_or(Span::ZERO);
        let loss = link.loss.map_or(0.0, Ratio::get);
        let queue = link.queue();
        let _ = write!(
            text,
            "\n[{name}]\nspeed = {}\ndelay = \"{delay}\"\nloss = {loss}\nqueue = {}\n",
            quoted(&speed(link)),
            quoted(queue),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_named_with_its_columns() {
        let mut link = LinkOptions { trace: Some("lte.csv".into()), ..LinkOptions::default() };
        assert_eq!(speed(&link), "lte.csv");
        link.trace_columns = "s Mbit".parse().ok();
        assert_eq!(speed(&link), "lte.csv (s Mbit)");
    }

    #[test]
    fn ports_are_listed_only_if_there_were_too_few() {
        let doors = |failed, closed| ListenerCounts { opened: 9, closed, failed };
        assert_eq!(doors_line(&doors(0, 0)), None);
        let line = doors_line(&doors(3, 2)).unwrap();
        assert!(
            line.starts_with("outside: 3 packets met a port that could not be opened, 2 ports"),
            "{line}"
        );
        let json = outside_json(&Counts::default(), &doors(3, 2));
        assert_eq!(json["ports"], json!({"opened": 9, "closed": 2, "failed": 3}));
    }
}
