//! The rows of the tables of a run: one struct a table, its fields are the columns.
//!
//! A table is written as a CSV file of the same columns, and [`Row::COLUMNS`] gives their units. A cell is missing
//! where there was nothing to measure. Times, rates and shares are rounded to six decimals: a bit per second of a
//! Mb/s, a nanosecond of a millisecond.

use apportion_core::queue::DropReason;
use serde::{Deserialize, Serialize};

/// A row of a table.
pub trait Row: Serialize + Sized {
    /// The name of the table, which its CSV file has before `.csv`.
    const TABLE: &'static str;
    /// Its columns, in the order of the fields.
    const COLUMNS: &'static [Column];

    /// The cells of the row, in the order of [`COLUMNS`](Self::COLUMNS).
    fn cells(&self) -> Vec<Cell<'_>>;

    /// The row with these cells; `None` unless there are as many as columns, each of its kind.
    fn of_cells(cells: &[Cell<'_>]) -> Option<Self>;
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the field.
    pub name: &'static str,
    /// The unit, such as `Mb/s`; empty for names, flags and ratios.
    pub unit: &'static str,
    /// What its cells hold.
    pub kind: Kind,
    /// Whether cells may be missing.
    pub optional: bool,
    /// What it is.
    pub doc: &'static str,
}

/// What the cells of a column hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name.
    Text,
    /// A whole number from 0.
    Integer,
    /// A real number.
    Number,
    /// True or false.
    Flag,
}

/// One cell of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// A name.
    Text(&'a str),
    /// A whole number from 0.
    Integer(u64),
    /// A real number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// There was nothing to measure.
    Missing,
}

/// A type that fields of rows have.
trait Field: Sized {
    const KIND: Kind;
    const OPTIONAL: bool = false;
    fn cell(&self) -> Cell<'_>;
    fn of_cell(cell: Cell<'_>) -> Option<Self>;
}

impl Field for String {
    const KIND: Kind = Kind::Text;
    fn cell(&self) -> Cell<'_> {
        Cell::Text(self)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }
}

impl Field for u64 {
    const KIND: Kind = Kind::Integer;
    fn cell(&self) -> Cell<'_> {
        Cell::Integer(*self)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Integer(number) => Some(number),
            _ => None,
        }
    }
}

impl Field for f64 {
    const KIND: Kind = Kind::Number;
    fn cell(&self) -> Cell<'_> {
        Cell::Number(*self)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Number(number) => Some(number),
            _ => None,
        }
    }
}

impl Field for bool {
    const KIND: Kind = Kind::Flag;
    fn cell(&self) -> Cell<'_> {
        Cell::Flag(*self)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        match cell {
            Cell::Flag(flag) => Some(flag),
            _ => None,
        }
    }
}

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const OPTIONAL: bool = true;
    fn cell(&self) -> Cell<'_> {
        self.as_ref().map_or(Cell::Missing, Field::cell)
    }
    fn of_cell(cell: Cell<'_>) -> Option<Self> {
        if cell == Cell::Missing { Some(None) } else { T::of_cell(cell).map(Some) }
    }
}

/// A table's columns, each written once: name, type and unit.
macro_rules! row {
    ($(#[$meta:meta])* $name:ident of $table:literal {
        $($(#[doc = $doc:literal])* $field:ident: $type:ty, $unit:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[doc = $doc])* pub $field: $type,)* }
        impl Row for $name {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [Column] = &[$(Column {
                name: stringify!($field),
                unit: $unit,
                kind: <$type as Field>::KIND,
                optional: <$type as Field>::OPTIONAL,
                doc: concat!($($doc),*),
            }),*];
            fn cells(&self) -> Vec<Cell<'_>> {
                vec![$(self.$field.cell()),*]
            }
            fn of_cells(cells: &[Cell<'_>]) -> Option<Self> {
                let mut cells = cells.iter();
                let row = Self { $($field: <$type as Field>::of_cell(*cells.next()?)?,)* };
                cells.next().is_none().then_some(row)
            }
        }
    };
}

row! {
    /// What one flow got in the measured part of one replication.
    FlowRow of "flows" {
        /// The label of the sweep point, such as `queue=red, rate=10Mbit`; empty without a sweep.
        point: String, "";
        /// The seed of the replication.
        seed: u64, "";
        /// The flow; member `i` of a group `g` is `g.i`.
        flow: String, "";
        /// The table of the scenario that the flow comes from.
        group: String, "";
        /// Its customer; missing for flows without one.
        customer: Option<String>, "";
        /// What the flow was due in the measured part, Mb/s: the mean over time of its weighted max-min share (or that by tickets or
        /// customers) among the flows that had something to send; missing where the scenario defines none.
        entitlement_mbps: Option<f64>, "Mb/s";
        /// Bytes on the wire that reached the sink, headers included, over the measured time, Mb/s.
        throughput_mbps: f64, "Mb/s";
        /// New payload delivered in order over the measured time, Mb/s; missing if it was not measured, as in the shell.
        goodput_mbps: Option<f64>, "Mb/s";
        /// Packets that the source put on the first link, retransmissions included.
        sent_packets: u64, "packets";
        /// The same in bytes on the wire.
        sent_bytes: u64, "bytes";
        /// Packets that reached the sink.
        delivered_packets: u64, "packets";
        /// The same in bytes on the wire.
        delivered_bytes: u64, "bytes";
        /// New payload delivered in order, bytes; missing likewise.
        goodput_bytes: Option<u64>, "bytes";
        /// Packets dropped as an early signal of congestion, before a buffer was full (RED, CoDel), over all links.
        drops_early: u64, "packets";
        /// Packets dropped above a threshold that admits none, such as RED above its maximum.
        drops_forced: u64, "packets";
        /// Arriving packets dropped because a buffer was full.
        drops_overflow: u64, "packets";
        /// Packets dropped by a rule about the flow or its class, whatever the state of the buffer.
        drops_policy: u64, "packets";
        /// Packets removed from a buffer to make room for others.
        drops_push_out: u64, "packets";
        /// Packets lost on wires.
        lost_packets: u64, "packets";
        /// Packets marked with congestion experienced instead of dropped.
        marked_packets: u64, "packets";
        /// TCP segments sent again, or packets of QUIC with data sent before; missing if they were not measured, as in the shell.
        retransmits: Option<u64>, "segments";
        /// TCP retransmission timeouts, or probe timeouts of QUIC; missing likewise, and in the lab on kernels before Linux 6.7.
        timeouts: Option<u64>, "";
        /// TCP fast retransmits, or recovery periods of QUIC that a loss began; missing if they were not measured, as in the shell and in the lab.
        fast_retransmits: Option<u64>, "";
        /// Mean one-way delay of packets that reached the sink, ms.
        delay_mean_ms: Option<f64>, "ms";
        /// Median of the same, ms.
        delay_p50_ms: Option<f64>, "ms";
        /// 95th percentile of the same, ms.
        delay_p95_ms: Option<f64>, "ms";
        /// 99th percentile of the same, ms.
        delay_p99_ms: Option<f64>, "ms";
        /// Largest of the same, ms.
        delay_max_ms: Option<f64>, "ms";
        /// Finite transfers that finished; of web users the pages that were complete.
        completions: u64, "";
        /// Median time that they took, s; of a page from its first request to its last byte.
        completion_p50_s: Option<f64>, "s";
        /// 95th percentile of the same, s.
        completion_p95_s: Option<f64>, "s";
        /// Mean of the same, s.
        completion_mean_s: Option<f64>, "s";
        /// Of a probe, 60 s over the mean time of a round trip: responsiveness under working conditions; missing for other flows.
        rpm: Option<f64>, "1/min";
        /// Notifications from queues that they cannot carry the rate that the flow needs; missing if there were
        /// none.
        notifications: Option<u64>, "";
        /// The lowest throughput over what the flow was due in any second of the measured part throughout which it was due
        /// something, of the seconds that begin with a sample interval (in any interval, if these are longer); missing
        /// without an entitlement or a series, and if there is no such second.
        worst_second_share: Option<f64>, "";
        /// When that second began, s from the start of the run.
        worst_second_s: Option<f64>, "s";
        /// Whether the replication counts: false if real time was not kept, or if a discipline broke its contract.
        valid: bool, "";
    }
}
row! {
    /// What one link carried in the measured part of one replication.
    LinkRow of "links" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The seed of the replication.
        seed: u64, "";
        /// The link; the other direction of a two-way link `x` is `x.back`.
        link: String, "";
        /// Whether the scenario watches it; only then there are delays and series.
        watched: bool, "";
        /// Its mean rate, changes included, Mb/s.
        rate_mbps: f64, "Mb/s";
        /// Bytes transmitted over the measured time, Mb/s.
        throughput_mbps: f64, "Mb/s";
        /// Bits transmitted over bits possible, 0 to 1; above 1 by at most a packet, whose transmission began before the end.
        utilisation: f64, "";
        /// Packets transmitted.
        sent_packets: u64, "packets";
        /// The same in bytes on the wire.
        sent_bytes: u64, "bytes";
        /// Packets dropped as an early signal of congestion, before the buffer was full (RED, CoDel).
        drops_early: u64, "packets";
        /// Packets dropped above a threshold that admits none, such as RED above its maximum.
        drops_forced: u64, "packets";
        /// Arriving packets dropped because the buffer was full.
        drops_overflow: u64, "packets";
        /// Packets dropped by a rule about their flow or class, whatever the state of the buffer.
        drops_policy: u64, "packets";
        /// Packets removed from the buffer to make room for others.
        drops_push_out: u64, "packets";
        /// Packets lost on the wire.
        lost_packets: u64, "packets";
        /// Packets marked with congestion experienced instead of dropped.
        marked_packets: u64, "packets";
        /// Time average of the packets in the queue, without the one in transmission.
        queue_mean_packets: f64, "packets";
        /// Mean time in the queue of packets transmitted, ms.
        queue_delay_mean_ms: Option<f64>, "ms";
        /// Median of the same, ms.
        queue_delay_p50_ms: Option<f64>, "ms";
        /// 95th percentile of the same, ms.
        queue_delay_p95_ms: Option<f64>, "ms";
        /// 99th percentile of the same, ms.
        queue_delay_p99_ms: Option<f64>, "ms";
        /// Largest of the same, ms.
        queue_delay_max_ms: Option<f64>, "ms";
        /// Whether the replication counts: false if real time was not kept, or if a discipline broke its contract.
        valid: bool, "";
    }
}
row! {
    /// One sample interval of one flow or watched link, from the start of the run.
    SeriesRow of "series" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The seed of the replication.
        seed: u64, "";
        /// `flow` or `link`.
        kind: String, "";
        /// The flow or link.
        name: String, "";
        /// The end of the interval, s from the start of the run.
        t_s: f64, "s";
        /// Bytes delivered to the sink of a flow, or transmitted by a link, over the interval, Mb/s.
        throughput_mbps: f64, "Mb/s";
        /// Flows: what the flow was due on average in the interval, Mb/s; missing without an entitlement.
        due_mbps: Option<f64>, "Mb/s";
        /// Throughput over that: the share of its entitlement that it got; missing also where nothing was due.
        share: Option<f64>, "";
        /// Links: packets in the queue at the end of the interval.
        backlog_packets: Option<u64>, "packets";
        /// TCP flows of one connection: the congestion window at the end of the interval, segments.
        window_segments: Option<f64>, "segments";
        /// The same flows: the smoothed round-trip time then, ms.
        srtt_ms: Option<f64>, "ms";
    }
}
row! {
    /// How one flow answered to one event of the measured part that changes what flows are due: others or the flow itself
    /// join or leave; the rate of a link or source, a weight, tickets or a guarantee changes. Flows to which something is due
    /// afterwards; at most 100 events of a replication, and of more only changes.
    ResponseRow of "responses" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The seed of the replication.
        seed: u64, "";
        /// When it happened, s from the start of the run.
        t_s: f64, "s";
        /// What happened, such as `film joins` or `link wire: 5 Mb/s`.
        event: String, "";
        /// The flow that answers.
        flow: String, "";
        /// What it was due on average from then until the next event or the end, Mb/s.
        due_mbps: f64, "Mb/s";
        /// Whether four seconds or more lie between it and the next event or the end: fewer are too short to judge the answer.
        judged: bool, "";
        /// From the event until the first second began in which the flow got 90 % of what it was due, and after which it got 90 % on
        /// average until the next event, for three seconds or more, s; missing if there was none, or if it is not judged. Too long by up
        /// to one sample interval where the event lies within one.
        to_90_percent_s: Option<f64>, "s";
    }
}
row! {
    /// One sample interval of what a watched link allocates to one flow, and of what it holds of it.
    AllocationRow of "allocations" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The seed of the replication.
        seed: u64, "";
        /// The link.
        link: String, "";
        /// The flow.
        flow: String, "";
        /// The end of the interval, s from the start of the run.
        t_s: f64, "s";
        /// The mean allocation in the interval, Mb/s.
        allocation_mbps: f64, "Mb/s";
        /// Bytes of the flow in the queue at the end of the interval.
        fill_bytes: u64, "bytes";
    }
}
row! {
    /// One finite transfer that finished, or one page of a web user that was complete.
    CompletionRow of "completions" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The seed of the replication.
        seed: u64, "";
        /// The flow.
        flow: String, "";
        /// When it started, s from the start of the run.
        start_s: f64, "s";
        /// Size of the file, or of all objects of the page, bytes.
        size_bytes: u64, "bytes";
        /// From its start to the last byte at the receiver, s.
        took_s: f64, "s";
    }
}
row! {
    /// What a person saw or heard of a flow of source `dash`, `voice` or `call` in the measured part of one replication.
    MediaRow of "media" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The seed of the replication.
        seed: u64, "";
        /// The flow.
        flow: String, "";
        /// The table of the scenario that the flow comes from.
        group: String, "";
        /// Of video, the mean rate of what was played; of a call, what was sent on average, on the wire, Mb/s; missing if nothing was played.
        bitrate_mbps: Option<f64>, "Mb/s";
        /// Video: from the start of the flow to the first picture, also where that was before the measured part, s; missing if there was none.
        startup_s: Option<f64>, "s";
        /// Video: how much of it was played, s.
        played_s: Option<f64>, "s";
        /// Video: times that it stopped because nothing was left to play, after it had begun.
        stalls: Option<u64>, "";
        /// Video: how long it stood still in all, after it had begun, s.
        stalled_s: Option<f64>, "s";
        /// Video: this over the time that it played or stood still, 0 to 1; missing if it did neither.
        stall_ratio: Option<f64>, "";
        /// Video: changes of the rate between a segment that was played and the next one.
        switches: Option<u64>, "";
        /// Calls: delay from mouth to ear, ms: the 95th percentile of the network's delay, 20 ms that the receiver holds, 20 ms of a packet,
        /// and 5 ms of G.729; missing if no packet arrived.
        mouth_to_ear_ms: Option<f64>, "ms";
        /// Calls: the share of packets that were lost, or came too late to be played.
        lost_share: Option<f64>, "";
        /// Calls: rating R of the E-model, at most 93.2.
        r_factor: Option<f64>, "";
        /// Calls: mean opinion score that follows from it, 1 (bad) to 4.5.
        mos: Option<f64>, "";
        /// Whether the replication counts: false if real time was not kept, or if a discipline broke its contract.
        valid: bool, "";
    }
}
row! {
    /// A number that the discipline of a link, or its exchange of labels, reports at the end of a replication.
    StatisticRow of "statistics" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The seed of the replication.
        seed: u64, "";
        /// The link.
        link: String, "";
        /// The name of the number, as the discipline calls it.
        statistic: String, "";
        /// Its value, in the unit that its name gives.
        value: f64, "";
    }
}
row! {
    /// How a number of a point moves if every delay of the scenario is moved by 1 µs, up or down: each replication against its perturbed copy, the same
    /// with those delays. Two replications in succession have the same moves. Rows of flows in the order of the scenario, then of the point; none if there were no perturbed copies.
    PhaseSensitivityRow of "phase_sensitivity" {
        /// The label of the sweep point; empty without a sweep.
        point: String, "";
        /// The flow; empty for a number of all flows.
        flow: String, "";
        /// `throughput_mbps` of the flow, or of all flows together, in Mb/s, or `jain`, as in the report.
        metric: String, "";
        /// Replications that finished, with their perturbed copies.
        seeds: u64, "";
        /// The mean over these replications.
        mean: f64, "";
        /// Half the width of its 95 % interval; missing with a single seed.
        half_width: Option<f64>, "";
        /// The mean over the perturbed copies, less the mean over the replications.
        shift: f64, "";
        /// The mean over the perturbed copies with the moves that shift it most, less that over their replications.
        largest_shift: f64, "";
        /// How likely it is by chance that the number differs as much from moves to moves: F test of the analysis of variance, with
        /// the replications as one group and the perturbed copies of each moves as another, for this row alone; missing with a single seed. 0 if moves
        /// change the number and no seed does.
        p: Option<f64>, "";
        /// Whether that is more than chance at 5 % over all rows of the run (Holm's correction).
        significant: bool, "";
    }
}
row! {
    /// One metric of one cell of a league: of a discipline in a situation. A cell that is empty has a row without a metric.
    LeagueRow of "cells" {
        /// The situation.
        situation: String, "";
        /// The discipline.
        discipline: String, "";
        /// The metric, such as `worst_share`, `jain` or `delay_p95_ms/call`: the quantity, then the group or link unless it is over all.
        metric: String, "";
        /// Its unit.
        unit: String, "";
        /// Replications in which it was measured.
        seeds: u64, "";
        /// The mean over these.
        mean: Option<f64>, "";
        /// Half the width of its 95 % interval; missing with a single seed.
        half_width: Option<f64>, "";
        /// Why the discipline cannot play; missing if it played.
        reason: Option<String>, "";
    }
}

macro_rules! drops {
    ($row:ident) => {
        impl $row {
            /// Packets dropped for this reason.
            #[must_use]
            pub const fn drops_by(&self, reason: DropReason) -> u64 {
                match reason {
                    DropReason::Early => self.drops_early,
                    DropReason::Forced => self.drops_forced,
                    DropReason::Overflow => self.drops_overflow,
                    DropReason::Policy => self.drops_policy,
                    DropReason::PushOut => self.drops_push_out,
                }
            }

            /// Packets dropped for any reason. Saturates, since a file can hold any numbers.
            #[must_use]
            pub fn drops(&self) -> u64 {
                DropReason::ALL.iter().fold(0, |sum, reason| sum.saturating_add(self.drops_by(*reason)))
            }
        }
    };
}
drops!(FlowRow);
drops!(LinkRow);
