//! The result of one run of a [`Scenario`](apportion_scenario::model::Scenario).
//!
//! Counts cover the measured part of the run, from [`measure_from`](apportion_scenario::model::Scenario::measure_from) on;
//! series cover all of it. Throughput is bytes on the wire that reached the sink, headers included; goodput
//! is new payload delivered in order.
//!
//! All of it is serialisable: times and spans as nanoseconds, rates as bits per second, sizes as bytes, each an
//! integer; reasons of drops by their [names](DropReason::name). What was not measured is null.

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
    /// In the scenario's order.
    pub flows: Vec<FlowOutcome>,
    /// In the scenario's order.
    pub links: Vec<LinkOutcome>,
    /// Transmissions over all links, for statements of speed.
    pub packet_hops: u64,
    /// Events the engine handled, for statements of speed.
    pub events: u64,
    /// How well a backend that runs in real time kept to it; `None` in a simulation.
    pub timekeeping: Option<Timekeeping>,
}

/// How well a backend that runs in real time kept to it. Its measurements are no more precise than this.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timekeeping {
    /// How much later than due packets were handed to the system.
    pub lateness: Distribution,
    /// What 99 % of packets may be late at most, for the run to count.
    pub limit: Span,
    /// What packets may be late on average, for the run to count; `None` if the average does not matter.
    pub mean_limit: Option<Span>,
    /// Frames that the system lost before they could be taken in.
    pub missed: u64,
    /// Frames that the system did not take.
    pub refused: u64,
    /// Super-packets that could not be cut into segments, longer frames than buffers, and what is no frame: all dropped.
    pub unusable: u64,
    /// How much later than due applications of our own wrote; empty if there were none.
    pub writes: Distribution,
    /// Connections that failed: of which flow, when, and why.
    pub failures: Vec<String>,
    /// Where the CPU time of the measured part went; `None` if that is not known.
    pub cpu: Option<CpuUse>,
    /// What the thread that moved packets did in the measured part; `None` if that is not known.
    pub packets: Option<ThreadUse>,
    /// What the thread of our own applications did; `None` likewise, and if there was none.
    pub applications: Option<ThreadUse>,
    /// Whether the thread that moved packets had real-time scheduling.
    pub real_time: bool,
    /// Whether memory was locked.
    pub locked: bool,
    /// How often it was run until it counted, or until no more attempts were allowed; zero if it cannot be repeated.
    pub attempts: u64,
}

/// Where CPU time went: shares of the time of all cores. The rest was idle.
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

/// What a thread did with the measured part: shares of it. The rest it slept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadUse {
    /// It had a core.
    pub ran: f64,
    /// It could have run, and no core was free for it.
    pub waited: f64,
}

/// What took the time in which packets should have left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The hypervisor, for other virtual machines.
    Hypervisor,
    /// Other programs, for whose sake threads of the run waited for a core.
    OtherPrograms,
    /// The run itself: it has more to do, or sooner, than this machine can.
    OwnLoad,
}

impl Timekeeping {
    /// Why the run does not count; none if it does.
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

    /// By how much lateness exceeds its limits.
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

    /// How long threads waited for a core, in words; none if that is not known.
    fn waits(&self) -> Option<String> {
        let percent = |thread: ThreadUse| format!("{:.1} %", 100.0 * thread.waited);
        let packets =
            format!("the thread of packets waited {} of the time for a core", percent(self.packets?));
        let applications =
            self.applications.map(|thread| format!(", that of applications {}", percent(thread)));
        Some(packets + &applications.unwrap_or_default())
    }

    /// What made the run [late](Self::fault), by where the time of the machine and of the run's threads went; none if it was not
    /// late and lost no frame, or if the system does not say where time went.
    #[must_use]
    pub fn cause(&self) -> Option<Cause> {
        let are_packets_late = self.is_late(&self.lateness) || self.missed > 0;
        let is_late = are_packets_late || self.is_late(&self.writes) || self.refused > 0;
        let cpu = self.cpu.filter(|_| is_late)?;
        // Late packets make writes late, which wait for their acknowledgements.
        let thread = if are_packets_late { self.packets } else { self.applications };
        // Where the kernel does not count it: others can have kept the thread from a core for as long as they ran.
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

    /// Whether these are later than the run may be.
    fn is_late(&self, late: &Distribution) -> bool {
        late.quantile(0.99).is_some_and(|high| high > self.limit)
            || self.mean_limit.is_some_and(|limit| late.mean > limit)
    }

    /// What to do about a run that does not count.
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

/// The share of time from which on somebody is named as the cause. Chosen: for one packet in a hundred to be late, threads are kept
/// from running for about one part in a hundred of the time.
const NOTABLE: f64 = 0.01;
/// A thread that runs for a larger share has too much to do. Chosen: what comes at random waits nine times as long as it takes.
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
    /// Why it does not count: the discipline of a link broke its contract, or real time was not kept. None if it counts.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let links = self.links.iter();
        let broken = links.filter_map(|link| Some(format!("link {}: {}", link.name, link.fault.as_deref()?)));
        let late = self.timekeeping.as_ref().and_then(Timekeeping::fault);
        let faults: Vec<String> = broken.chain(late).collect();
        (!faults.is_empty()).then(|| faults.join("; "))
    }
}

/// What one flow of the scenario got.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct FlowOutcome {
    /// As in the scenario.
    pub name: String,
    /// As in the scenario.
    pub group: String,
    /// Packets its source put on the first link, retransmissions included.
    pub sent: Count,
    /// Packets that reached the sink: the throughput.
    pub delivered: Count,
    /// New payload in order at the receiver; `None` if the backend does not see it, as the shell, whose applications are not
    /// its own.
    pub goodput: Option<Bytes>,
    /// Its packets that disciplines dropped, over all links.
    pub dropped: Drops,
    /// Its packets that were lost on wires.
    pub lost: u64,
    /// Its packets that were marked.
    pub marked: u64,
    /// Notifications to its sources that a queue cannot carry what the flow needs. Their paper calls them exceptions (Li, Walpole, McNamee,
    /// Pu, Steere 2001).
    pub overloads: u64,
    /// TCP: segments sent again; `None` if the backend cannot count them, as the shell. Without TCP: 0.
    pub retransmits: Option<u64>,
    /// TCP: retransmission timeouts; `None` likewise, and in the lab on kernels before Linux 6.7.
    pub timeouts: Option<u64>,
    /// TCP: fast retransmits; `None` likewise, and in the lab: the Linux kernel does not report them.
    pub fast_retransmits: Option<u64>,
    /// One-way delay of packets that reached the sink.
    pub delay: Distribution,
    /// Finite transfers that finished, in the order of their start; of web users their pages.
    pub completions: Vec<Completion>,
    /// Those that finished before the measured part, in the order in which they did.
    #[serde(default)]
    pub earlier: Vec<Completion>,
    /// Whether each of them is a round trip that measures the path.
    #[serde(default)]
    pub is_probe: bool,
    /// What a viewer or listener got; none of flows without one, and in the lab.
    #[serde(default)]
    pub media: Option<MediaOutcome>,
    /// Bytes delivered in each sample interval, from the start of the run.
    pub series: Vec<Bytes>,
    /// TCP of one connection: its state at the end of each sample interval; empty for other flows.
    pub tcp: Vec<TcpSample>,
}

/// The state of a TCP sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// Congestion window in segments; zero before the start and after the end.
    pub window: f64,
    /// Smoothed round-trip time; none before the first sample of it and after the end.
    pub srtt: Option<Span>,
}

/// One finite transfer, or one page of a web user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// When it began.
    pub start: Time,
    /// From its start to the last byte at the receiver.
    pub took: Span,
    /// The size of the file.
    pub size: Bytes,
}

/// What one link did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LinkOutcome {
    /// As in the scenario.
    pub name: String,
    /// Whether the scenario watches it; only then are the distribution and series filled.
    pub watched: bool,
    /// Mean over the measured part, changes included.
    pub rate: Rate,
    /// Packets transmitted.
    pub sent: Count,
    /// Packets its discipline dropped.
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
    /// What its discipline allocated to flows, where it infers what they need; by flow.
    pub allocations: Vec<Allocation>,
    /// Numbers that the discipline reports of itself, by name, at the end of the run.
    pub statistics: Vec<(Cow<'static, str>, f64)>,
    /// Numbers that it reports of flows, likewise, by the flow's place in the scenario; one for each connection of the
    /// flow that it distinguishes.
    pub flow_statistics: Vec<(usize, Cow<'static, str>, f64)>,
    /// How its discipline broke its contract, in words, since when it has dropped everything; only one from outside the
    /// catalogue can. Default: it did not.
    pub fault: Option<String>,
}

/// What the discipline of a link allocated to one flow, and what it held of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Allocation {
    /// The index of the flow in the scenario.
    pub flow: usize,
    /// Time integral of the allocation over the measured part.
    pub measured: Bytes,
    /// Time integral of the allocation over each sample interval: its mean there, times the interval.
    pub series: Vec<Bytes>,
    /// Bytes that waited at the end of each sample interval.
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
    /// The shares at which [`quantiles`](Distribution::quantiles) are given: so many that a curve of them shows no steps, closest together at
    /// both ends.
    pub const CURVE: [f64; 53] = [
        0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.125, 0.15, 0.175, 0.2, 0.225,
        0.25, 0.275, 0.3, 0.325, 0.35, 0.375, 0.4, 0.425, 0.45, 0.475, 0.5, 0.525, 0.55, 0.575, 0.6, 0.625,
        0.65, 0.675, 0.7, 0.725, 0.75, 0.775, 0.8, 0.825, 0.85, 0.875, 0.9, 0.925, 0.95, 0.96, 0.97, 0.98,
        0.99, 0.995, 0.998, 0.999, 1.0,
    ];

    /// Those of them that have names in tables and claims.
    pub const SHARES: [f64; 13] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0];

    /// The value at one of [`CURVE`](Distribution::CURVE); `None` without samples or for another share.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<Span> {
        self.quantiles.iter().find(|(s, _)| (s - share).abs() < 1e-9).map(|&(_, value)| value)
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

    /// A run of which 1 % of the packets left 5 ms late where 3 ms are allowed. Shares: of the machine's time what the run,
    /// others and the hypervisor took, of a thread's what it ran and waited.
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
    fn the_cause_is_who_kept_threads_from_a_core() {
        let cause = |machine, thread| late(machine, thread).cause();
        // Others were busy, and threads waited for them or did not.
        assert_eq!(cause([0.2, 0.6, 0.05], Some([0.2, 0.3])), Some(Cause::OtherPrograms));
        assert_eq!(cause([0.2, 0.6, 0.05], Some([0.2, 0.002])), Some(Cause::Hypervisor));
        assert_eq!(cause([0.2, 0.6, 0.0], Some([0.2, 0.002])), Some(Cause::OwnLoad));
        // Threads of the run waited for each other.
        assert_eq!(cause([0.8, 0.005, 0.0], Some([0.7, 0.2])), Some(Cause::OwnLoad));
        // Of the thread that was late: applications waited for others, and packets did not.
        let applications = Some(ThreadUse { ran: 0.1, waited: 0.2 });
        let run = late([0.2, 0.6, 0.05], Some([0.2, 0.002]));
        let packets = Timekeeping { applications, ..run.clone() };
        assert_eq!(packets.cause(), Some(Cause::Hypervisor));
        let writes = Timekeeping { lateness: Distribution::default(), writes: run.lateness, ..packets };
        assert_eq!(writes.cause(), Some(Cause::OtherPrograms));
        // A thread that is never done is too slow whatever else there is.
        assert_eq!(cause([0.5, 0.4, 0.02], Some([0.95, 0.04])), Some(Cause::OwnLoad));
        // Where the kernel counts nothing of threads.
        assert_eq!(cause([0.2, 0.6, 0.05], None), Some(Cause::OtherPrograms));
        assert_eq!(cause([0.2, 0.02, 0.09], None), Some(Cause::Hypervisor));
        // Nothing is wrong, or nothing is known.
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
