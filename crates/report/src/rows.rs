//! The tables of a results folder, one struct a table: its fields are the columns, units in their names.

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Span};
use apportion_runtime::outcome::{Completion, Distribution, Drops, FlowOutcome, LinkOutcome, Outcome};
use serde::{Deserialize, Serialize};

use crate::record::{FlowInfo, PointRecord};
use crate::statistics::nearest_rank;

/// A row of a table.
pub(crate) trait Row: Serialize {
    /// The names of its columns.
    const COLUMNS: &'static [&'static str];
}

/// A table's columns, each written once.
macro_rules! row {
    ($(#[$meta:meta])* $name:ident { $($field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub(crate) struct $name { $(pub $field: $type,)* }
        impl Row for $name {
            const COLUMNS: &'static [&'static str] = &[$(stringify!($field)),*];
        }
    };
}

row! {
    /// What one flow got in one replication.
    FlowRow {
        point: String, seed: u64, flow: String, group: String,
        entitlement_mbps: Option<f64>, throughput_mbps: f64, goodput_mbps: f64,
        sent_packets: u64, sent_bytes: u64, delivered_packets: u64, delivered_bytes: u64, goodput_bytes: u64,
        drops_early: u64, drops_forced: u64, drops_overflow: u64, drops_policy: u64, drops_push_out: u64,
        lost_packets: u64, marked_packets: u64, retransmits: u64, timeouts: u64, fast_retransmits: u64,
        delay_mean_ms: Option<f64>, delay_p50_ms: Option<f64>, delay_p95_ms: Option<f64>,
        delay_p99_ms: Option<f64>, delay_max_ms: Option<f64>,
        completions: u64, completion_p50_s: Option<f64>, completion_p95_s: Option<f64>,
        exceptions: Option<u64>,
    }
}
row! {
    /// What one link did in one replication.
    LinkRow {
        point: String, seed: u64, link: String, watched: bool,
        rate_mbps: f64, throughput_mbps: f64, utilisation: f64,
        sent_packets: u64, sent_bytes: u64,
        drops_early: u64, drops_forced: u64, drops_overflow: u64, drops_policy: u64, drops_push_out: u64,
        lost_packets: u64, marked_packets: u64, queue_mean_packets: f64,
        queue_delay_mean_ms: Option<f64>, queue_delay_p50_ms: Option<f64>, queue_delay_p95_ms: Option<f64>,
        queue_delay_p99_ms: Option<f64>, queue_delay_max_ms: Option<f64>,
    }
}
row! {
    /// One sample interval of one flow or watched link; `t_s` is its end.
    SeriesRow {
        point: String, seed: u64, kind: String, name: String, t_s: f64, throughput_mbps: f64,
        backlog_packets: Option<u64>, window_segments: Option<f64>, srtt_ms: Option<f64>,
    }
}
row! {
    /// One sample interval of what a watched link allocates to one flow and holds of it; `t_s` is its end.
    AllocationRow {
        point: String, seed: u64, link: String, flow: String, t_s: f64, allocation_mbps: f64, fill_bytes: u64,
    }
}
row! {
    /// One finite transfer.
    CompletionRow { point: String, seed: u64, flow: String, start_s: f64, size_bytes: u64, took_s: f64, }
}

row! {
    /// A number that the discipline of a link, or its exchange of labels, shows of itself at the end of a replication.
    StatisticRow { point: String, seed: u64, link: String, statistic: String, value: f64, }
}

/// Six decimals: a bit per second of a Mb/s, a nanosecond of a millisecond.
fn round6(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

/// The mean rate at which `bytes` passed within `span`; zero within no time.
#[must_use]
pub fn mbps(bytes: Bytes, span: Span) -> f64 {
    if span == Span::ZERO { 0.0 } else { bytes.bits() as f64 / span.as_secs_f64() / 1e6 }
}

fn ms(span: Span) -> f64 {
    round6(span.as_secs_f64() * 1e3)
}

fn drops(of: &Drops, reason: DropReason) -> u64 {
    of.get(&reason).copied().unwrap_or(0)
}

fn mean_ms(of: &Distribution) -> Option<f64> {
    (of.count > 0).then(|| ms(of.mean))
}

/// Completion times in seconds, ascending.
pub(crate) fn sorted_times<'a>(completions: impl Iterator<Item = &'a Completion>) -> Vec<f64> {
    let mut took: Vec<f64> = completions.map(|c| c.took.as_secs_f64()).collect();
    took.sort_by(f64::total_cmp);
    took
}

/// The rows of one point, all replications.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) flows: Vec<FlowRow>,
    pub(crate) links: Vec<LinkRow>,
    pub(crate) completions: Vec<CompletionRow>,
    pub(crate) statistics: Vec<StatisticRow>,
}

impl Rows {
    pub(crate) fn of(point: &PointRecord) -> Self {
        Self {
            flows: flows(point).collect(),
            links: links(point).collect(),
            completions: completions(point).collect(),
            statistics: statistics(point).collect(),
        }
    }
}

/// The rows of [`FlowRow`] for one point, by seed and flow.
pub(crate) fn flows(point: &PointRecord) -> impl Iterator<Item = FlowRow> {
    point.outcomes.iter().flat_map(move |outcome| {
        outcome.flows.iter().enumerate().map(move |(i, flow)| {
            let info = point.flows.get(i).filter(|info| info.name == flow.name);
            flow_row(point, outcome, flow, info)
        })
    })
}

fn flow_row(point: &PointRecord, outcome: &Outcome, flow: &FlowOutcome, info: Option<&FlowInfo>) -> FlowRow {
    let took = sorted_times(flow.completions.iter());
    let delay = |share| flow.delay.quantile(share).map(ms);
    FlowRow {
        point: point.label.clone(),
        seed: outcome.seed,
        flow: flow.name.clone(),
        group: flow.group.clone(),
        entitlement_mbps: info.and_then(|i| i.entitlement).map(|rate| round6(rate.as_mbit_f64())),
        throughput_mbps: round6(mbps(flow.delivered.bytes, outcome.measured)),
        goodput_mbps: round6(mbps(flow.goodput, outcome.measured)),
        sent_packets: flow.sent.packets.get(),
        sent_bytes: flow.sent.bytes.get(),
        delivered_packets: flow.delivered.packets.get(),
        delivered_bytes: flow.delivered.bytes.get(),
        goodput_bytes: flow.goodput.get(),
        drops_early: drops(&flow.dropped, DropReason::Early),
        drops_forced: drops(&flow.dropped, DropReason::Forced),
        drops_overflow: drops(&flow.dropped, DropReason::Overflow),
        drops_policy: drops(&flow.dropped, DropReason::Policy),
        drops_push_out: drops(&flow.dropped, DropReason::PushOut),
        lost_packets: flow.lost,
        marked_packets: flow.marked,
        retransmits: flow.retransmits,
        timeouts: flow.timeouts,
        fast_retransmits: flow.fast_retransmits,
        delay_mean_ms: mean_ms(&flow.delay),
        delay_p50_ms: delay(0.5),
        delay_p95_ms: delay(0.95),
        delay_p99_ms: delay(0.99),
        delay_max_ms: delay(1.0),
        completions: took.len() as u64,
        completion_p50_s: nearest_rank(&took, 0.5).map(round6),
        completion_p95_s: nearest_rank(&took, 0.95).map(round6),
        exceptions: (flow.exceptions > 0).then_some(flow.exceptions),
    }
}

/// The rows of [`LinkRow`] for one point, by seed and link.
pub(crate) fn links(point: &PointRecord) -> impl Iterator<Item = LinkRow> {
    point
        .outcomes
        .iter()
        .flat_map(move |outcome| outcome.links.iter().map(move |link| link_row(point, outcome, link)))
}

fn link_row(point: &PointRecord, outcome: &Outcome, link: &LinkOutcome) -> LinkRow {
    let delay = |share| link.queue_delay.quantile(share).map(ms);
    LinkRow {
        point: point.label.clone(),
        seed: outcome.seed,
        link: link.name.clone(),
        watched: link.watched,
        rate_mbps: round6(link.rate.as_mbit_f64()),
        throughput_mbps: round6(mbps(link.sent.bytes, outcome.measured)),
        utilisation: round6(link.utilisation),
        sent_packets: link.sent.packets.get(),
        sent_bytes: link.sent.bytes.get(),
        drops_early: drops(&link.dropped, DropReason::Early),
        drops_forced: drops(&link.dropped, DropReason::Forced),
        drops_overflow: drops(&link.dropped, DropReason::Overflow),
        drops_policy: drops(&link.dropped, DropReason::Policy),
        drops_push_out: drops(&link.dropped, DropReason::PushOut),
        lost_packets: link.lost,
        marked_packets: link.marked,
        queue_mean_packets: round6(link.queue_mean),
        queue_delay_mean_ms: mean_ms(&link.queue_delay),
        queue_delay_p50_ms: delay(0.5),
        queue_delay_p95_ms: delay(0.95),
        queue_delay_p99_ms: delay(0.99),
        queue_delay_max_ms: delay(1.0),
    }
}

impl LinkRow {
    /// Drops for every reason.
    pub(crate) fn drops(&self) -> u64 {
        self.drops_early + self.drops_forced + self.drops_overflow + self.drops_policy + self.drops_push_out
    }
}

/// The rows of [`SeriesRow`] for one point, by seed; flows first, then watched links.
pub(crate) fn series(point: &PointRecord) -> impl Iterator<Item = SeriesRow> {
    point.outcomes.iter().flat_map(move |outcome| {
        let flows = outcome.flows.iter().map(|f| ("flow", &f.name, &f.series, &[][..], &f.tcp[..]));
        let links = outcome.links.iter().map(|l| ("link", &l.name, &l.series, &l.backlog[..], &[][..]));
        flows.chain(links).flat_map(move |(kind, name, bytes, backlog, tcp)| {
            bytes.iter().enumerate().map(move |(k, &bytes)| SeriesRow {
                point: point.label.clone(),
                seed: outcome.seed,
                kind: kind.to_owned(),
                name: name.clone(),
                t_s: round6((point.sample * (k as u64 + 1)).as_secs_f64()),
                throughput_mbps: round6(mbps(bytes, point.sample)),
                backlog_packets: backlog.get(k).copied(),
                window_segments: tcp.get(k).map(|tcp| round6(tcp.window)),
                srtt_ms: tcp.get(k).and_then(|tcp| tcp.srtt).map(ms),
            })
        })
    })
}

/// The rows of [`AllocationRow`] for one point, by seed, link and flow.
pub(crate) fn allocations(point: &PointRecord) -> impl Iterator<Item = AllocationRow> {
    point.outcomes.iter().flat_map(move |outcome| {
        let all = outcome.links.iter().flat_map(|link| link.allocations.iter().map(move |of| (link, of)));
        all.flat_map(move |(link, of)| {
            let flow = outcome.flows.get(of.flow).map_or("", |flow| &flow.name);
            of.series.iter().zip(&of.fill).enumerate().map(move |(k, (&bytes, fill))| AllocationRow {
                point: point.label.clone(),
                seed: outcome.seed,
                link: link.name.clone(),
                flow: flow.to_owned(),
                t_s: round6((point.sample * (k as u64 + 1)).as_secs_f64()),
                allocation_mbps: round6(mbps(bytes, point.sample)),
                fill_bytes: fill.get(),
            })
        })
    })
}

/// The rows of [`StatisticRow`] for one point, by seed and link.
pub(crate) fn statistics(point: &PointRecord) -> impl Iterator<Item = StatisticRow> {
    point.outcomes.iter().flat_map(move |outcome| {
        outcome.links.iter().flat_map(move |link| {
            let own = link.statistics.iter().map(|&(name, value)| (name.to_owned(), value));
            let allocations = link.allocations.iter().filter_map(|of| {
                let flow = outcome.flows.get(of.flow)?;
                Some((format!("allocation_mbps.{}", flow.name), mbps(of.measured, outcome.measured)))
            });
            own.chain(allocations).map(move |(statistic, value)| StatisticRow {
                point: point.label.clone(),
                seed: outcome.seed,
                link: link.name.clone(),
                statistic,
                value: round6(value),
            })
        })
    })
}

/// The rows of [`CompletionRow`] for one point, by seed and flow.
pub(crate) fn completions(point: &PointRecord) -> impl Iterator<Item = CompletionRow> {
    point.outcomes.iter().flat_map(move |outcome| {
        outcome.flows.iter().flat_map(move |flow| {
            flow.completions.iter().map(move |done| CompletionRow {
                point: point.label.clone(),
                seed: outcome.seed,
                flow: flow.name.clone(),
                start_s: round6(done.start.as_secs_f64()),
                size_bytes: done.size.get(),
                took_s: round6(done.took.as_secs_f64()),
            })
        })
    })
}
