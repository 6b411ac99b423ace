//! The result of one run of a [`Scenario`](apportion_scenario::model::Scenario).
//!
//! Counts cover the measured part of the run, from [`measure_from`](apportion_scenario::model::Scenario::measure_from) on;
//! series cover all of it. Throughput is bytes on the wire that reached the sink, headers included; goodput
//! is new payload delivered in order.
//!
//! It is serialisable: times and spans as nanoseconds, rates as bits per second, sizes as bytes, each an
//! integer; reasons of drops by their [names](DropReason::name). Values that were not measured are null.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::{AddAssign, Sub};

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Packets, Rate, Span, Time};
use serde::{Deserialize, Serialize};

mod media;
pub use media::{CallQuality, MediaOutcome, Playback};

/// One replication.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// The seed of this replication.
    pub seed: u64,
    /// The length of the measured part.
    pub measured: Span,
    /// Flows in the scenario's order.
    pub flows: Vec<FlowOutcome>,
    /// Links in the scenario's order.
    pub links: Vec<LinkOutcome>,
    /// Transmissions over all links, for statements of speed.
    pub packet_hops: u64,
    /// Events the engine handled, for statements of speed.
    pub events: u64,
    /// Timekeeping of a backend that runs in real time; `None` in a simulation.
    pub timekeeping: Option<Timekeeping>,
}

/// Timekeeping of a backend that runs in real time. Its measurements are no more precise than this.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timekeeping {
    /// Lateness of packets handed to the system.
    pub lateness: Distribution,
    /// Maximum of the 99th percentile of lateness for the run to be valid.
    pub limit: Span,
    /// Maximum of the mean lateness for the run to be valid; `None` if the mean does not matter.
    pub mean_limit: Option<Span>,
    /// Frames that the system lost before they were received.
    pub missed: u64,
    /// Frames that the system refused to send.
    pub refused: u64,
    /// Frames dropped: super-packets that could not be cut into segments, frames longer than a buffer, and
    /// malformed ones.
    pub unusable: u64,
    /// Lateness of the writes of our applications; empty if there were none.
    pub writes: Distribution,
    /// Connections that failed, each with its flow, time and reason.
    pub failures: Vec<String>,
    /// Shares of CPU time in the measured part; `None` if they are unknown.
    pub cpu: Option<CpuUse>,
    /// Shares of the measured part for the thread that moved packets; `None` if they are unknown.
    pub packets: Option<ThreadUse>,
    /// Shares for the thread of our applications; `None` if they are unknown, or there was none.
    pub applications: Option<ThreadUse>,
    /// Whether the thread that moved packets had real-time scheduling.
    pub real_time: bool,
    /// Whether memory was locked.
    pub locked: bool,
    /// Number of attempts until the run was valid, or until no more were allowed; zero if it cannot be
    /// repeated.
    pub attempts: u64,
}

/// Shares of CPU time over all cores. The rest was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// The run itself.
    pub own: f64,
    /// Other programs.
    pub others: f64,
    /// Interrupts and the network code that runs after them, of the run or of others.
    pub interrupts: f64,
    /// The hypervisor, for other virtual machines.
    pub stolen: f64,
}

/// Shares of the measured part for a thread. The rest it slept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// The thread had a core.
    pub ran: f64,
    /// The thread could have run, but no core was free.
    pub waited: f64,
}

/// The cause of late packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The hypervisor, for other virtual machines.
    Hypervisor,
    /// Other programs, which made threads of the run wait for a core.
    OtherPrograms,
    /// The run itself: its load exceeds this machine.
    OwnLoad,
}

impl Timekeeping {
    /// Why the run is not valid; none if it is.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let mut faults = self.late();
        if !faults.is_empty() {
            faults.extend(self.cpu.map(|cpu| cpu.to_string()));
            faults.extend(self.waits());
        }
        let lost = [
            (self.missed, "lost by the system before they were taken in"),
            (self.refused, "not taken by the system"),
            (self.unusable, "super-packets, too long or no frames"),
        ];
        let lost = lost.into_iter().filter(|(count, _)| *count > 0);
        faults.extend(lost.map(|(count, what)| format!("{count} frames were {what}")));
        faults.extend(self.failures.iter().cloned());
        if self.attempts > 1 && !faults.is_empty() {
            faults.push(format!("no better in {} attempts", self.attempts));
        }
        (!faults.is_empty()).then(|| faults.join("; "))
    }

    /// Sentences on by how much lateness exceeds its limits.
    fn late(&self) -> Vec<String> {
        let millis = |span: Span| span.as_secs_f64() * 1e3;
        let of = |(late, what): (&Distribution, &str)| {
            let high = late.quantile(0.99).filter(|high| *high > self.limit).map(|high| {
                let (high, limit) = (millis(high), millis(self.limit));
                format!("1 % of {what} {high:.2} ms late or more, and {limit:.2} ms is the limit")
            });
            let mean = self.mean_limit.filter(|limit| late.mean > *limit).map(|limit| {
                let (mean, limit) = (millis(late.mean), millis(limit));
                format!("{what} {mean:.2} ms late on average, and {limit:.2} ms is the limit")
            });
            [high, mean]
        };
        [(&self.lateness, "packets left"), (&self.writes, "writes were")]
            .into_iter()
            .flat_map(of)
            .flatten()
            .collect()
    }

    /// Times for which threads waited for a core, as text; none if unknown.
    fn waits(&self) -> Option<String> {
        let percent = |thread: ThreadUse| format!("{:.1} %", 100.0 * thread.waited);
        let packets =
            format!("the thread of packets waited {} of the time for a core", percent(self.packets?));
        let applications =
            self.applications.map(|thread| format!(", that of applications {}", percent(thread)));
        Some(packets + &applications.unwrap_or_default())
    }

    /// The cause of the run's [lateness](Self::fault), by the CPU time of the machine and of the run's
    /// threads; none if the run was not late and lost no frame, or if the system does not report CPU time.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        let are_packets_late = self.is_late(&self.lateness) || self.missed > 0;
        let is_late = are_packets_late || self.is_late(&self.writes) || self.refused > 0;
        let cpu = self.cpu.filter(|_| is_late)?;
        // Late packets delay acknowledgements, and so the writes that wait for them.
        let thread = if are_packets_late { self.packets } else { self.applications };
        // The kernel does not count it: others can have kept the thread from a core for as long as they ran.
        let ThreadUse { ran, waited } = thread.unwrap_or(ThreadUse { ran: 0.0, waited: cpu.others });
        Some(if ran > SATURATED {
            Cause::OwnLoad
        } else if cpu.stolen > NOTABLE.max(waited) {
            Cause::Hypervisor
        } else if cpu.others.min(waited) > NOTABLE {
            Cause::OtherPrograms
        } else {
            Cause::OwnLoad
        })
    }

    /// Whether these delays exceed the limits of the run.
    fn is_late(&self, late: &Distribution) -> bool {
        late.quantile(0.99).is_some_and(|high| high > self.limit)
            || self.mean_limit.is_some_and(|limit| late.mean > limit)
    }

    /// Advice for a run that is not valid.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self.cause() {
            Some(Cause::Hypervisor) => {
                "Other virtual machines take the time of this one: repeat the run later, or on a machine of its own."
            }
            Some(Cause::OtherPrograms) => "Stop other programs, and repeat the run.",
            Some(Cause::OwnLoad) => {
                "The run itself is too much for this machine: reduce the rates of the links, or make their delays longer."
            }
            None => "Reduce the load of the machine or the rates of the links.",
        }
    }
}

/// Share of time from which on a cause is named. Chosen: for one packet in a hundred to be late, threads must
/// wait for about a hundredth of the time.
const NOTABLE: f64 = 0.01;
/// Share of time from which on a thread is overloaded. Chosen: random arrivals then wait nine times as long
/// as their service.
const SATURATED: f64 = 0.9;

impl fmt::Display for CpuUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| 100.0 * share;
        write!(
            f,
            "of the CPU time this run took {:.0} %, other programs {:.0} %, interrupts {:.0} % and the hypervisor {:.0} %",
            percent(self.own),
            percent(self.others),
            percent(self.interrupts),
            percent(self.stolen)
        )
    }
}

impl Outcome {
    /// Why the replication is not valid: the discipline of a link broke its contract, or real time was not
    /// kept. None if it is valid.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let links = self.links.iter();
        let broken = links.filter_map(|link| Some(format!("link {}: {}", link.name, link.fault.as_deref()?)));
        let late = self.timekeeping.as_ref().and_then(Timekeeping::fault);
        let faults: Vec<String> = broken.chain(late).collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

/// The results of one flow of the scenario.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// The name in the scenario.
    pub name: String,
    /// The group in the scenario.
    pub group: String,
    /// Packets that its source put on the first link, retransmissions included.
    pub sent: Count,
    /// Packets that reached the sink: the throughput.
    pub delivered: Count,
    /// New payload in order at the receiver; `None` if the backend does not see it, like the shell, whose
    /// applications are foreign.
    pub goodput: Option<Bytes>,
    /// Packets of the flow that disciplines dropped, over all links.
    pub dropped: Drops,
    /// Packets of the flow that were lost on wires.
    pub lost: u64,
    /// Packets of the flow that were marked.
    pub marked: u64,
    /// Packets of the flow with more tickets than their tags hold.
    #[serde(default)]
    pub full_tags: u64,
    /// Notifications to its sources that a queue cannot carry the flow's requirement. The paper calls them
    /// exceptions (Li, Walpole, McNamee, Pu, Steere 2001).
    pub overloads: u64,
    /// Writes that its sources left out while their send buffers were full.
    #[serde(default)]
    pub skipped: u64,
    /// Its connections that failed since the start of the run; none if none did. A transport stack from outside
    /// can close a connection before the data are delivered.
    #[serde(default)]
    pub failures: Option<Failures>,
    /// TCP: retransmitted segments; `None` if the backend cannot count them, like the shell. Without TCP: 0.
    pub retransmits: Option<u64>,
    /// TCP: retransmission timeouts; `None` as above, and in the lab on kernels before 6.7.
    pub timeouts: Option<u64>,
    /// TCP: fast retransmits; `None` as above, and in the lab: the Linux kernel does not report them.
    pub fast_retransmits: Option<u64>,
    /// One-way delay of packets that reached the sink.
    pub delay: Distribution,
    /// Finite transfers that finished, in the order of their start; for web users their pages.
    pub completions: Vec<Completion>,
    /// Transfers that finished before the measured part, in the order of their end.
    #[serde(default)]
    pub earlier: Vec<Completion>,
    /// Whether each of them is a round trip that measures the path.
    #[serde(default)]
    pub is_probe: bool,
    /// The quality for a viewer or listener; none for flows without one, and in the lab.
    #[serde(default)]
    pub media: Option<MediaOutcome>,
    /// Bytes delivered in each sample interval, from the start of the run.
    pub series: Vec<Bytes>,
    /// The state of TCP at the end of each sample interval, for a flow of one connection; empty for other
    /// flows.
    pub tcp: Vec<TcpSample>,
}

/// Connections of a flow that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// The number of connections.
    pub connections: u64,
    /// The time of the first failure.
    pub first: Time,
    /// Its reason, as the stack says it.
    pub reason: String,
}

/// The state of a TCP sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// Congestion window in segments; zero before the start and after the end.
    pub window: f64,
    /// Smoothed round-trip time; none before the first sample and after the end.
    pub srtt: Option<Span>,
}

/// One finite transfer, or one page of a web user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// Start of the transfer.
    pub start: Time,
    /// Time from the start to the last byte at the receiver.
    pub took: Span,
    /// The size of the file, or of the page's objects.
    pub size: Bytes,
}

/// The results of one link.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkOutcome {
    /// The name in the scenario.
    pub name: String,
    /// Whether the scenario watches it; only then are the distribution and series filled.
    pub watched: bool,
    /// Mean over the measured part, changes included.
    pub rate: Rate,
    /// Packets transmitted.
    pub sent: Count,
    /// Packets that its discipline dropped.
    pub dropped: Drops,
    /// Packets lost on its wire.
    pub lost: u64,
    /// Packets marked.
    pub marked: u64,
    /// Bits transmitted over bits possible.
    pub utilisation: f64,
    /// Time average of the packets in the queue, without the one in transmission.
    pub queue_mean: f64,
    /// Time in the queue of packets transmitted.
    pub queue_delay: Distribution,
    /// Packets in the queue at the end of each sample interval.
    pub backlog: Vec<u64>,
    /// Bytes transmitted in each sample interval.
    pub series: Vec<Bytes>,
    /// Allocations of its discipline to flows, if it infers their requirements; by flow.
    pub allocations: Vec<Allocation>,
    /// Statistics that the discipline reports, by name, at the end of the run.
    pub statistics: Vec<(Cow<'static, str>, f64)>,
    /// Statistics that it reports of flows, by the flow's index in the scenario; one for each connection of
    /// the flow that it distinguishes.
    pub flow_statistics: Vec<(usize, Cow<'static, str>, f64)>,
    /// The discipline's breach of its contract, as text; since then it has dropped everything. Only a
    /// discipline from outside the catalogue can break it. Default: none.
    pub fault: Option<String>,
}

/// The allocation of a link's discipline to one flow, and the flow's backlog.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// The index of the flow in the scenario.
    pub flow: usize,
    /// Time integral of the allocation over the measured part.
    pub measured: Bytes,
    /// Time integral of the allocation over each sample interval: its mean there, times the interval.
    pub series: Vec<Bytes>,
    /// Backlog in bytes at the end of each sample interval.
    pub fill: Vec<Bytes>,
}

/// Drops by reason; reasons that did not occur are absent.
pub type Drops = BTreeMap<DropReason, u64>;

/// A distribution of time spans: its count, mean and quantiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Number of samples.
    pub count: u64,
    /// Mean; zero without samples.
    pub mean: Span,
    /// (share of samples at or below, value), ascending; empty without samples.
    pub quantiles: Vec<(f64, Span)>,
}

impl Distribution {
    /// The shares at which [`quantiles`](Distribution::quantiles) are given: enough that a curve shows no
    /// steps, and closest together at both ends.
    pub const CURVE: [f64; 53] = [
        0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.225,
        0.25, 0.275, 0.3, 0.325, 0.35, 0.375, 0.4, 0.425, 0.45, 0.475, 0.5, 0.525, 0.55, 0.575, 0.6, 0.625,
        0.65, 0.675, 0.7, 0.725, 0.75, 0.775, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98,
        0.99, 0.995, 0.998, 0.999, 1.0,
    ];

    /// The shares with names in tables and claims, a subset of [`CURVE`](Distribution::CURVE).
    pub const SHARES: [f64; 13] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0];

    /// The value at one of [`CURVE`](Distribution::CURVE); `None` without samples or for another share.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Span> {
        self.quantiles.iter().find(|(s, _)| (s - share).abs() < 1e-9).map(|&(_, value)| value)
    }

    /// The share of samples above `value`, between two quantiles in a straight line; `None` without samples.
    #[must_use]
    pub fn above(&self, value: Span) -> Option<f64> {
        let at = self.quantiles.iter().position(|(_, quantile)| *quantile > value);
        let Some(at) = at else { return (!self.quantiles.is_empty()).then_some(0.0) };
        let Some(before) = at.checked_sub(1) else { return Some(1.0) };
        let [(low, from), (high, to)] = [self.quantiles[before], self.quantiles[at]];
        let part = value.saturating_sub(from).as_secs_f64() / to.saturating_sub(from).as_secs_f64();
        Some(1.0 - (low + part * (high - low)))
    }

    /// The quantiles at [`SHARES`](Distribution::SHARES).
    pub fn named(&self) -> impl Iterator<Item = (f64, Span)> {
        Self::SHARES.into_iter().filter_map(|share| Some((share, self.quantile(share)?)))
    }
}

/// A count of packets with their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub packets: Packets,
    /// Bytes on the wire.
    pub bytes: Bytes,
}

impl Count {
    /// Counts one packet of `size`.
    pub fn add(&mut self, size: Bytes) {
        self.packets += Packets::new(1);
        self.bytes += size;
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, more: Self) {
        self.packets += more.packets;
        self.bytes += more.bytes;
    }
}

impl Sub for Count {
    type Output = Self;
    fn sub(self, less: Self) -> Self {
        Self { packets: self.packets - less.packets, bytes: self.bytes - less.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run in which 1 % of the packets left 5 ms late where 3 ms are allowed. Shares of the machine's time:
    /// the run, others and the hypervisor; of a thread's time: running and waiting.
    fn late([own, others, stolen]: [f64; 3], thread: Option<[f64; 2]>) -> Timekeeping {
        let late = Span::from_millis(5);
        Timekeeping {
            lateness: Distribution { count: 1_000, mean: late, quantiles: vec![(0.99, late)] },
            limit: Span::from_millis(3),
            cpu: Some(CpuUse { own, others, interrupts: 0.0, stolen }),
            packets: thread.map(|[ran, waited]| ThreadUse { ran, waited }),
            applications: Some(ThreadUse { ran: 0.1, waited: 0.0 }).filter(|_| thread.is_some()),
            ..Timekeeping::default()
        }
    }

    #[test]
    fn the_share_above_a_value_lies_between_quantiles() {
        let of = |ms: [u64; 3]| Distribution {
            count: 3,
            mean: Span::ZERO,
            quantiles: [0.0, 0.5, 1.0].into_iter().zip(ms.map(Span::from_millis)).collect(),
        };
        let above = |ms, value| of(ms).above(Span::from_millis(value));
        assert_eq!(above([10, 20, 60], 5), Some(1.0));
        assert_eq!(above([10, 20, 60], 15), Some(0.75));
        assert_eq!(above([10, 20, 60], 30), Some(0.375));
        assert_eq!(above([10, 20, 60], 60), Some(0.0));
        assert_eq!(above([10, 10, 60], 10), Some(0.5));
        assert_eq!(Distribution::default().above(Span::ZERO), None);
    }

    #[test]
    fn the_cause_is_who_kept_threads_from_a_core() {
        let cause = |machine, thread| late(machine, thread).cause();
        // Others were busy, and threads waited for them or did not.
        assert_eq!(cause([0.2, 0.6, 0.05], Some([0.2, 0.3])), Some(Cause::OtherPrograms));
        assert_eq!(cause([0.2, 0.6, 0.05], Some([0.2, 0.002])), Some(Cause::Hypervisor));
        assert_eq!(cause([0.2, 0.6, 0.0], Some([0.2, 0.002])), Some(Cause::OwnLoad));
        // Threads of the run waited for each other.
        assert_eq!(cause([0.8, 0.005, 0.0], Some([0.7, 0.2])), Some(Cause::OwnLoad));
        // Only the late thread counts: applications waited for others, and packets did not.
        let applications = Some(ThreadUse { ran: 0.1, waited: 0.2 });
        let run = late([0.2, 0.6, 0.05], Some([0.2, 0.002]));
        let packets = Timekeeping { applications, ..run.clone() };
        assert_eq!(packets.cause(), Some(Cause::Hypervisor));
        let writes = Timekeeping { lateness: Distribution::default(), writes: run.lateness, ..packets };
        assert_eq!(writes.cause(), Some(Cause::OtherPrograms));
        // A thread that is always busy is too slow in any case.
        assert_eq!(cause([0.5, 0.4, 0.02], Some([0.95, 0.04])), Some(Cause::OwnLoad));
        // The kernel does not count threads.
        assert_eq!(cause([0.2, 0.6, 0.05], None), Some(Cause::OtherPrograms));
        assert_eq!(cause([0.2, 0.02, 0.09], None), Some(Cause::Hypervisor));
        // No lateness, or no data.
        let on_time = Timekeeping { limit: Span::from_millis(6), ..late([0.2, 0.6, 0.0], None) };
        assert_eq!((on_time.fault(), on_time.cause()), (None, None));
        assert_eq!(Timekeeping { cpu: None, ..late([0.0; 3], None) }.cause(), None);
    }

    #[test]
    fn a_fault_says_who_took_the_time_and_what_waited() {
        let fault = late([0.2, 0.6, 0.05], Some([0.2, 0.3])).fault().unwrap();
        let text = "1 % of packets left 5.00 ms late or more, and 3.00 ms is the limit; of the CPU time this run took 20 %, other \
                    programs 60 %, interrupts 0 % and the hypervisor 5 %; the thread of packets waited 30.0 % of the time for \
                    a core, that of applications 0.0 %";
        assert_eq!(fault, text);
        assert!(late([0.2, 0.6, 0.05], Some([0.2, 0.3])).hint().starts_with("Stop other programs"));
    }
}
