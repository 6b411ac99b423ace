//! The tables of flows: results of each, its finite transfers, and its responses to events.

use std::cell::OnceCell;

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Rate, Span};
use apportion_runtime::due::Event;
use apportion_runtime::outcome::{Completion, FlowOutcome};
use serde::{Deserialize, Serialize};

use super::column::{Cell, Column, Field, Row};
use crate::due::{self, Reached, Response, Worst, worst_second};
use crate::replication::{FlowInfo, Replication};
use crate::statistics::{mean, nearest_rank};
use crate::units::{drops, mbps, mean_ms, quantile_ms, sorted_times};

row! {
    /// Results of one flow in the measured part of one replication.
    FlowRow of "flows" from FlowAt<'_> as flow {
        /// The label of the sweep point, such as `queue=red, rate=10Mbit`; empty without a sweep.
        point: String, "" = flow.replication.point.to_owned();
        /// The seed of the replication.
        seed: u64, "" = flow.replication.outcome.seed;
        /// The flow; member `i` of a group `g` is `g.i`.
        flow: String, "" = flow.outcome.name.clone();
        /// The table of the scenario that the flow comes from.
        group: String, "" = flow.outcome.group.clone();
        /// The customer of the flow; missing without one.
        customer: Option<String>, "" = flow.info.and_then(|info| info.customer.clone());
        /// Weighted max-min fair share (or share by tickets or customers) among the flows with data to send, mean over time; missing where
        /// the scenario defines none.
        entitlement_mbps: Option<f64>, "Mb/s" = flow.entitlement().map(Rate::as_mbit_f64);
        /// Mean rate of bytes on the wire that reached the sink, headers included.
        throughput_mbps: f64, "Mb/s" = flow.mbps(flow.outcome.delivered.bytes);
        /// Mean rate of new payload delivered in order; missing in the shell.
        goodput_mbps: Option<f64>, "Mb/s" = flow.outcome.goodput.map(|goodput| flow.mbps(goodput));
        /// Packets that the source sent, retransmissions included.
        sent_packets: u64, "packets" = flow.outcome.sent.packets.get();
        /// The same in bytes on the wire.
        sent_bytes: u64, "bytes" = flow.outcome.sent.bytes.get();
        /// Packets that reached the sink.
        delivered_packets: u64, "packets" = flow.outcome.delivered.packets.get();
        /// The same in bytes on the wire.
        delivered_bytes: u64, "bytes" = flow.outcome.delivered.bytes.get();
        /// The same in bytes.
        goodput_bytes: Option<u64>, "bytes" = flow.outcome.goodput.map(Bytes::get);
        /// Packets dropped as an early signal of congestion (RED, CoDel).
        drops_early: u64, "packets" = Self::drops_at(flow, DropReason::Early);
        /// Packets dropped above a threshold that admits none (RED above its maximum).
        drops_forced: u64, "packets" = Self::drops_at(flow, DropReason::Forced);
        /// Arriving packets dropped because a buffer was full.
        drops_overflow: u64, "packets" = Self::drops_at(flow, DropReason::Overflow);
        /// Packets dropped by a rule about the flow or its class.
        drops_policy: u64, "packets" = Self::drops_at(flow, DropReason::Policy);
        /// Packets removed from a buffer to make room for others.
        drops_push_out: u64, "packets" = Self::drops_at(flow, DropReason::PushOut);
        /// Packets lost on wires.
        lost_packets: u64, "packets" = flow.outcome.lost;
        /// Packets marked instead of dropped.
        marked_packets: u64, "packets" = flow.outcome.marked;
        /// TCP segments sent again, or QUIC packets with data sent before; missing in the shell.
        retransmits: Option<u64>, "segments" = flow.outcome.retransmits;
        /// TCP retransmission timeouts, or probe timeouts of QUIC; missing in the shell, and in the lab before Linux 6.7.
        timeouts: Option<u64>, "" = flow.outcome.timeouts;
        /// TCP fast retransmits, or recovery periods of QUIC after a loss; missing in the shell and in the lab.
        fast_retransmits: Option<u64>, "" = flow.outcome.fast_retransmits;
        /// One-way delay of packets that reached the sink, ms: mean, percentiles, largest.
        delay_mean_ms: Option<f64>, "ms" = mean_ms(&flow.outcome.delay);
        /// One-way delay of packets that reached the sink, ms: mean, percentiles, largest.
        delay_p50_ms: Option<f64>, "ms" = quantile_ms(&flow.outcome.delay, 0.5);
        /// One-way delay of packets that reached the sink, ms: mean, percentiles, largest.
        delay_p95_ms: Option<f64>, "ms" = quantile_ms(&flow.outcome.delay, 0.95);
        /// One-way delay of packets that reached the sink, ms: mean, percentiles, largest.
        delay_p99_ms: Option<f64>, "ms" = quantile_ms(&flow.outcome.delay, 0.99);
        /// One-way delay of packets that reached the sink, ms: mean, percentiles, largest.
        delay_max_ms: Option<f64>, "ms" = quantile_ms(&flow.outcome.delay, 1.0);
        /// Finite transfers that completed; for web users, complete pages.
        completions: u64, "" = flow.outcome.completions.len() as u64;
        /// Completion time of finite transfers, s: percentiles, mean.
        completion_p50_s: Option<f64>, "s" = nearest_rank(flow.took(), 0.5);
        /// Completion time of finite transfers, s: percentiles, mean.
        completion_p95_s: Option<f64>, "s" = nearest_rank(flow.took(), 0.95);
        /// Completion time of finite transfers, s: percentiles, mean.
        completion_mean_s: Option<f64>, "s" = mean(flow.took());
        /// Round trips per minute of a probe: 60 s over the mean round-trip time.
        rpm: Option<f64>, "1/min" = mean(flow.took()).filter(|&took| flow.outcome.is_probe && took > 0.0).map(|took| 60.0 / took);
        /// Packets with more tickets than their tags hold; missing if none.
        full_tags: Option<u64>, "packets" = Some(flow.outcome.full_tags).filter(|&count| count > 0);
        /// Notifications from queues that cannot carry the rate that the flow needs; missing if none.
        notifications: Option<u64>, "" = Some(flow.outcome.overloads).filter(|&count| count > 0);
        /// Writes that the application left out while its send buffer was full; missing if none.
        skipped_writes: Option<u64>, "" = Some(flow.outcome.skipped).filter(|&count| count > 0);
        /// Connections that a transport stack aborted, or whose other end did, since the start of the run; missing if none.
        failed_connections: Option<u64>, "" = flow.outcome.failures.as_ref().map(|failures| failures.connections);
        /// Time of the first of these failures, s from the start of the run.
        failure_s: Option<f64>, "s" = flow.outcome.failures.as_ref().map(|failures| failures.first.as_secs_f64());
        /// Its reason, as the stack says it.
        failure: Option<String>, "" = flow.outcome.failures.as_ref().map(|failures| failures.reason.clone());
        /// Lowest throughput over entitlement in any second (or sample interval, if longer) throughout which the flow had an entitlement;
        /// missing without an entitlement or a series.
        worst_second_share: Option<f64>, "" = flow.worst().map(|worst| worst.share);
        /// Start of that second, s.
        worst_second_s: Option<f64>, "s" = flow.worst().map(|worst| worst.from.as_secs_f64());
        /// Whether the replication counts: false if real time was not kept, or if a discipline broke its contract.
        valid: bool, "" = flow.valid;
    }
}
drops!(FlowRow from FlowAt<'_>);

/// A flow of a replication.
pub(crate) struct FlowAt<'a> {
    replication: Replication<'a>,
    place: usize,
    pub(crate) outcome: &'a FlowOutcome,
    info: Option<&'a FlowInfo>,
    valid: bool,
    worst: OnceCell<Option<Worst>>,
    took: OnceCell<Vec<f64>>,
}

impl<'a> FlowAt<'a> {
    /// The flows of a replication, in the scenario's order.
    pub(crate) fn all(replication: Replication<'a>) -> impl Iterator<Item = Self> {
        let valid = replication.outcome.fault().is_none();
        replication.outcome.flows.iter().enumerate().map(move |(place, outcome)| Self {
            replication,
            place,
            outcome,
            info: replication.flows.get(place).filter(|info| info.name == outcome.name),
            valid,
            worst: OnceCell::new(),
            took: OnceCell::new(),
        })
    }

    /// The entitlement: in this replication, or else by the scenario.
    fn entitlement(&self) -> Option<Rate> {
        let due = self.replication.dues.and_then(|dues| Some(dues.flows.get(self.place)?.measured));
        due.or_else(|| self.info?.entitlement)
    }

    fn mbps(&self, bytes: Bytes) -> f64 {
        mbps(bytes, self.replication.outcome.measured)
    }

    fn worst(&self) -> Option<Worst> {
        *self.worst.get_or_init(|| worst_second(self.replication, self.place))
    }

    /// Times of its finite transfers, s, ascending.
    fn took(&self) -> &[f64] {
        self.took.get_or_init(|| sorted_times(self.outcome.completions.iter().map(|done| done.took)))
    }
}

/// The rows of a replication by flow.
pub(crate) fn flows(of: Replication<'_>) -> impl Iterator<Item = FlowRow> {
    FlowAt::all(of).map(|flow| FlowRow::measured(&flow))
}

row! {
    /// One finite transfer that completed, or one complete page of a web user.
    CompletionRow of "completions" from CompletionAt<'_> as done {
        /// The label of the sweep point; empty without a sweep.
        point: String, "" = done.replication.point.to_owned();
        /// The seed of the replication.
        seed: u64, "" = done.replication.outcome.seed;
        /// The flow.
        flow: String, "" = done.flow.name.clone();
        /// Start of the transfer, s from the start of the run.
        start_s: f64, "s" = done.outcome.start.as_secs_f64();
        /// Size of the file, or of all objects of the page, bytes.
        size_bytes: u64, "bytes" = done.outcome.size.get();
        /// Time from its start to the last byte at the receiver, s.
        took_s: f64, "s" = done.outcome.took.as_secs_f64();
    }
}

/// A finite transfer of a replication.
pub(crate) struct CompletionAt<'a> {
    replication: Replication<'a>,
    pub(crate) flow: &'a FlowOutcome,
    outcome: &'a Completion,
}

impl<'a> CompletionAt<'a> {
    /// The finite transfers of a replication, by flow.
    pub(crate) fn all(replication: Replication<'a>) -> impl Iterator<Item = Self> {
        replication.outcome.flows.iter().flat_map(move |flow| {
            flow.completions.iter().map(move |outcome| Self { replication, flow, outcome })
        })
    }
}

/// The rows of a replication by flow.
pub(crate) fn completions(of: Replication<'_>) -> impl Iterator<Item = CompletionRow> {
    CompletionAt::all(of).map(|done| CompletionRow::measured(&done))
}

row! {
    /// Response of one flow to one event of the measured part that changes entitlements: flows join or leave; the rate of a
    /// link or source, a weight, tickets or a guarantee changes. Flows with an entitlement afterwards. At most 100 events of a
    /// replication; with more, joins and leaves are left out.
    ResponseRow of "responses" from ResponseAt<'_> as at {
        /// The label of the sweep point; empty without a sweep.
        point: String, "" = at.replication.point.to_owned();
        /// The seed of the replication.
        seed: u64, "" = at.replication.outcome.seed;
        /// Time of the event, s from the start of the run.
        t_s: f64, "s" = at.event.at.as_secs_f64();
        /// The event, such as `film joins` or `link wire: 5 Mb/s`.
        event: String, "" = at.event.what.clone();
        /// The flow that responds.
        flow: String, "" = at.flow.to_owned();
        /// Mean entitlement until the next event or the end.
        due_mbps: f64, "Mb/s" = at.response.due.as_mbit_f64();
        /// Whether the next event or the end is four seconds away or more.
        judged: bool, "" = at.response.reached != Reached::Unknown;
        /// Time from the event to the first second in which the flow got 90 % of its entitlement and after which its mean until the next
        /// event was 90 %, for three seconds or more, s; missing without one, or if not judged. Up to a sample interval too long.
        to_90_percent_s: Option<f64>, "s" = at.response.reached.after().map(Span::as_secs_f64);
    }
}

/// The response of a flow of a replication to an event.
pub(crate) struct ResponseAt<'a> {
    replication: Replication<'a>,
    event: &'a Event,
    flow: &'a str,
    response: Response,
}

/// The rows of a replication by event and flow.
pub(crate) fn responses(replication: Replication<'_>) -> impl Iterator<Item = ResponseRow> {
    let events = replication.dues.map_or(&[][..], |dues| &dues.events);
    due::responses(replication).into_iter().filter_map(move |response| {
        let (event, flow) = (events.get(response.event)?, replication.outcome.flows.get(response.flow)?);
        Some(ResponseRow::measured(&ResponseAt { replication, event, flow: &flow.name, response }))
    })
}
