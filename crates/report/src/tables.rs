//! The tables of a run: from outcomes to [rows](crate::rows).

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Span};
use apportion_runtime::outcome::{Completion, Distribution, Drops, FlowOutcome, LinkOutcome, Outcome};

use crate::due::{Reached, responses, worst_second};
pub(crate) use crate::media::rows as media;
use crate::replication::Replication;
use crate::rows::{AllocationRow, CompletionRow, FlowRow, LinkRow, ResponseRow, SeriesRow, StatisticRow};
use crate::statistics::{mean, nearest_rank};

/// Six decimals: a bit per second of a Mb/s, a nanosecond of a millisecond.
pub(crate) fn round6(x: f64) -> f64 {
    (x * 1e6).round() / 1e6
}

/// The mean rate at which `bytes` passed within `span`; zero within no time.
#[must_use]
pub fn mbps(bytes: Bytes, span: Span) -> f64 {
    if span == Span::ZERO { 0.0 } else { bytes.bits() as f64 / span.as_secs_f64() / 1e6 }
}

pub(crate) fn ms(span: Span) -> f64 {
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

/// By flow.
pub(crate) fn flows(of: Replication<'_>) -> impl Iterator<Item = FlowRow> {
    let Replication { point, outcome, dues, .. } = of;
    let valid = outcome.fault().is_none();
    outcome.flows.iter().enumerate().map(move |(i, flow)| {
        let info = of.flows.get(i).filter(|info| info.name == flow.name);
        let due = dues.and_then(|dues| Some(dues.flows.get(i)?.measured));
        let entitlement = due.or_else(|| info?.entitlement);
        let worst = worst_second(of, i);
        FlowRow {
            valid,
            customer: info.and_then(|info| info.customer.clone()),
            entitlement_mbps: entitlement.map(|rate| round6(rate.as_mbit_f64())),
            worst_second_share: worst.map(|worst| round6(worst.share)),
            worst_second_s: worst.map(|worst| round6(worst.from.as_secs_f64())),
            ..flow_row(point, outcome, flow)
        }
    })
}

fn flow_row(point: &str, outcome: &Outcome, flow: &FlowOutcome) -> FlowRow {
    let took = sorted_times(flow.completions.iter());
    let delay = |share| flow.delay.quantile(share).map(ms);
    FlowRow {
        point: point.to_owned(),
        seed: outcome.seed,
        flow: flow.name.clone(),
        group: flow.group.clone(),
        customer: None,
        entitlement_mbps: None,
        throughput_mbps: round6(mbps(flow.delivered.bytes, outcome.measured)),
        goodput_mbps: flow.goodput.map(|goodput| round6(mbps(goodput, outcome.measured))),
        sent_packets: flow.sent.packets.get(),
        sent_bytes: flow.sent.bytes.get(),
        delivered_packets: flow.delivered.packets.get(),
        delivered_bytes: flow.delivered.bytes.get(),
        goodput_bytes: flow.goodput.map(Bytes::get),
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
        completion_mean_s: mean(&took).map(round6),
        rpm: mean(&took).filter(|&took| flow.is_probe && took > 0.0).map(|took| round6(60.0 / took)),
        notifications: (flow.overloads > 0).then_some(flow.overloads),
        worst_second_share: None,
        worst_second_s: None,
        valid: true,
    }
}

/// By link.
pub(crate) fn links(of: Replication<'_>) -> impl Iterator<Item = LinkRow> {
    let Replication { point, outcome, .. } = of;
    let valid = outcome.fault().is_none();
    outcome.links.iter().map(move |link| LinkRow { valid, ..link_row(point, outcome, link) })
}

fn link_row(point: &str, outcome: &Outcome, link: &LinkOutcome) -> LinkRow {
    let delay = |share| link.queue_delay.quantile(share).map(ms);
    LinkRow {
        point: point.to_owned(),
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
        valid: true,
    }
}

/// Flows first, then watched links.
pub(crate) fn series(of: Replication<'_>) -> impl Iterator<Item = SeriesRow> {
    let Replication { outcome, dues, .. } = of;
    let dues = dues.map_or(&[][..], |dues| &dues.flows);
    let flows = outcome.flows.iter().enumerate().flat_map(move |(i, flow)| {
        let due = dues.get(i).map_or(&[][..], |due| &due.series);
        series_of(of, "flow", &flow.name, &flow.series).enumerate().map(move |(k, row)| {
            let tcp = flow.tcp.get(k);
            let due_mbps = due.get(k).map(|rate| rate.as_mbit_f64());
            SeriesRow {
                due_mbps: due_mbps.map(round6),
                share: due_mbps.filter(|&due| due > 0.0).map(|due| round6(row.throughput_mbps / due)),
                window_segments: tcp.map(|tcp| round6(tcp.window)),
                srtt_ms: tcp.and_then(|tcp| tcp.srtt).map(ms),
                ..row
            }
        })
    });
    let links = outcome.links.iter().flat_map(move |link| {
        let rows = series_of(of, "link", &link.name, &link.series).enumerate();
        rows.map(|(k, row)| SeriesRow { backlog_packets: link.backlog.get(k).copied(), ..row })
    });
    flows.chain(links)
}

/// The throughput of a flow or link over time.
fn series_of<'a>(
    of: Replication<'a>,
    kind: &'a str,
    name: &'a str,
    series: &'a [Bytes],
) -> impl Iterator<Item = SeriesRow> + 'a {
    series.iter().enumerate().map(move |(k, &bytes)| SeriesRow {
        point: of.point.to_owned(),
        seed: of.outcome.seed,
        kind: kind.to_owned(),
        name: name.to_owned(),
        t_s: round6((of.sample * (k as u64 + 1)).as_secs_f64()),
        throughput_mbps: round6(mbps(bytes, of.sample)),
        due_mbps: None,
        share: None,
        backlog_packets: None,
        window_segments: None,
        srtt_ms: None,
    })
}

/// By event and flow.
pub(crate) fn response_rows(of: Replication<'_>) -> impl Iterator<Item = ResponseRow> {
    let Replication { point, outcome, dues, .. } = of;
    let events = dues.map_or(&[][..], |dues| &dues.events);
    responses(of).into_iter().filter_map(move |response| {
        let event = events.get(response.event)?;
        let reached = match response.reached {
            Reached::After(time) => Some(round6(time.as_secs_f64())),
            Reached::Never | Reached::Unknown => None,
        };
        Some(ResponseRow {
            point: point.to_owned(),
            seed: outcome.seed,
            t_s: round6(event.at.as_secs_f64()),
            event: event.what.clone(),
            flow: outcome.flows.get(response.flow)?.name.clone(),
            due_mbps: round6(response.due.as_mbit_f64()),
            judged: response.reached != Reached::Unknown,
            to_90_percent_s: reached,
        })
    })
}

/// By link and flow.
pub(crate) fn allocations(of: Replication<'_>) -> impl Iterator<Item = AllocationRow> {
    let Replication { point, outcome, sample, .. } = of;
    let all = outcome.links.iter().flat_map(|link| link.allocations.iter().map(move |of| (link, of)));
    all.flat_map(move |(link, of)| {
        let flow = outcome.flows.get(of.flow).map_or("", |flow| &flow.name);
        of.series.iter().zip(&of.fill).enumerate().map(move |(k, (&bytes, fill))| AllocationRow {
            point: point.to_owned(),
            seed: outcome.seed,
            link: link.name.clone(),
            flow: flow.to_owned(),
            t_s: round6((sample * (k as u64 + 1)).as_secs_f64()),
            allocation_mbps: round6(mbps(bytes, sample)),
            fill_bytes: fill.get(),
        })
    })
}

/// By link.
pub(crate) fn statistics(of: Replication<'_>) -> impl Iterator<Item = StatisticRow> {
    let Replication { point, outcome, .. } = of;
    outcome.links.iter().flat_map(move |link| {
        let own = link.statistics.iter().map(|(name, value)| (name.to_string(), *value));
        let allocations = link.allocations.iter().filter_map(|of| {
            let flow = outcome.flows.get(of.flow)?;
            Some((format!("allocation_mbps.{}", flow.name), mbps(of.measured, outcome.measured)))
        });
        own.chain(allocations).map(move |(statistic, value)| StatisticRow {
            point: point.to_owned(),
            seed: outcome.seed,
            link: link.name.clone(),
            statistic,
            value: round6(value),
        })
    })
}

/// By flow.
pub(crate) fn completions(of: Replication<'_>) -> impl Iterator<Item = CompletionRow> {
    let Replication { point, outcome, .. } = of;
    outcome.flows.iter().flat_map(move |flow| {
        flow.completions.iter().map(move |done| CompletionRow {
            point: point.to_owned(),
            seed: outcome.seed,
            flow: flow.name.clone(),
            start_s: round6(done.start.as_secs_f64()),
            size_bytes: done.size.get(),
            took_s: round6(done.took.as_secs_f64()),
        })
    })
}
