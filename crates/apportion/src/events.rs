//! Events of a run, reported by callbacks while it runs: drops, marks and samples.

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Packets, Rate, Span, Time};
use apportion_runtime::outcome::TcpSample;
use apportion_runtime::probe::{self, FlowProbe, Samples};
use apportion_scenario::Point;
use apportion_sim::observer::Observer;

#[cfg(all(feature = "live", target_os = "linux"))]
use crate::watch::{Follower, Stand, Watch};

/// A packet was dropped by a discipline, or lost on a wire.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Dropped<'a> {
    /// The label of the point; empty without a sweep.
    pub point: &'a str,
    /// The seed of the replication.
    pub seed: u64,
    /// The time since the start of the run.
    pub at: Time,
    /// The name of the link.
    pub link: &'a str,
    /// The name of the flow; none for a routing protocol message.
    pub flow: Option<&'a str>,
    /// The size of the packet on the wire.
    pub size: Bytes,
    /// The discipline's reason for the drop; none if the wire lost the packet.
    pub reason: Option<DropReason>,
}

/// A packet was marked by a discipline.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Marked<'a> {
    /// The label of the point; empty without a sweep.
    pub point: &'a str,
    /// The seed of the replication.
    pub seed: u64,
    /// The time since the start of the run.
    pub at: Time,
    /// The name of the link.
    pub link: &'a str,
    /// The name of the flow; none for a routing protocol message.
    pub flow: Option<&'a str>,
    /// The size of the packet on the wire.
    pub size: Bytes,
}

/// The end of a sample interval (the key `sample` of the scenario), with the values that the table
/// [`series`](crate::Results::series) has for it, except for the rates due to flows, which are known only at
/// the end of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sampled<'a> {
    /// The label of the point; empty without a sweep.
    pub point: &'a str,
    /// The seed of the replication.
    pub seed: u64,
    /// The time since the start of the run.
    pub at: Time,
    /// All flows, in the order of the scenario; empty if they are too many for the table.
    pub flows: &'a [FlowSample<'a>],
    /// The watched links, in the order of the scenario.
    pub links: &'a [LinkSample<'a>],
}

/// A sample interval of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlowSample<'a> {
    /// The flow.
    pub name: &'a str,
    /// The rate of the data that reached the sink during the interval.
    pub throughput: Rate,
    /// The state of TCP at the end of the interval; none for UDP, and for flows with several connections.
    pub tcp: Option<TcpSample>,
}

/// A sample interval of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkSample<'a> {
    /// The link.
    pub name: &'a str,
    /// The rate transmitted during the interval.
    pub throughput: Rate,
    /// The mean capacity during the interval, including changes.
    pub rate: Rate,
    /// The backlog at the end of the interval.
    pub backlog: Packets,
    /// The mean sojourn time of packets transmitted in the interval; none if there were none.
    pub queue_delay: Option<Span>,
    /// Number of packets dropped by the discipline in the interval, by reason in the order of
    /// [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Number of packets lost on the wire in the interval.
    pub lost: u64,
    /// Number of packets marked by the discipline in the interval.
    pub marked: u64,
}

type OnDrop<'a> = Box<dyn Fn(&Dropped<'_>) + Send + Sync + 'a>;
type OnMark<'a> = Box<dyn Fn(&Marked<'_>) + Send + Sync + 'a>;
type OnSample<'a> = Box<dyn Fn(&Sampled<'_>) + Send + Sync + 'a>;

/// The callbacks of a run.
#[derive(Default)]
pub(crate) struct Events<'a> {
    pub on_drop: Option<OnDrop<'a>>,
    pub on_mark: Option<OnMark<'a>>,
    pub on_sample: Option<OnSample<'a>>,
    #[cfg(all(feature = "live", target_os = "linux"))]
    pub watch: Option<&'a Watch>,
}

impl Events<'_> {
    pub(crate) const fn are_none(&self) -> bool {
        self.on_drop.is_none() && self.on_mark.is_none() && self.on_sample.is_none() && !self.are_watched()
    }

    /// Whether a page shows the run.
    pub(crate) const fn are_watched(&self) -> bool {
        #[cfg(all(feature = "live", target_os = "linux"))]
        return self.watch.is_some();
        #[cfg(not(all(feature = "live", target_os = "linux")))]
        false
    }

    /// Notes that a run of `_replications` replications begins.
    pub(crate) fn begin(&self, _title: &str, _replications: usize) {
        #[cfg(all(feature = "live", target_os = "linux"))]
        if let Some(watch) = self.watch {
            watch.begin(_title, _replications);
        }
    }

    /// Notes that a replication has ended.
    pub(crate) fn step(&self) {
        #[cfg(all(feature = "live", target_os = "linux"))]
        if let Some(watch) = self.watch {
            watch.step();
        }
    }

    /// Notes that the run has ended.
    pub(crate) fn end(&self, _is_complete: bool) {
        #[cfg(all(feature = "live", target_os = "linux"))]
        if let Some(watch) = self.watch {
            watch.end(_is_complete);
        }
    }
}

/// Reports the events of one replication.
pub(crate) struct Observing<'a> {
    events: &'a Events<'a>,
    point: &'a Point,
    seed: u64,
    #[cfg(all(feature = "live", target_os = "linux"))]
    follower: Option<Follower<'a>>,
}

impl<'a> Observing<'a> {
    pub fn new(events: &'a Events<'a>, point: &'a Point, seed: u64) -> Self {
        Self {
            events,
            point,
            seed,
            #[cfg(all(feature = "live", target_os = "linux"))]
            follower: events.watch.map(|watch| watch.follower(point, seed)),
        }
    }

    /// Notes that the replication has ended.
    pub fn end(&self, _is_complete: bool) {
        #[cfg(all(feature = "live", target_os = "linux"))]
        if let Some(follower) = &self.follower {
            follower.end(if _is_complete { Stand::Ended } else { Stand::Cut });
        }
        if _is_complete {
            self.events.step();
        }
    }

    fn flow(&self, at: usize) -> &str {
        self.point.scenario.flows.get(at).map_or("", |flow| &flow.name)
    }

    fn link(&self, at: usize) -> &str {
        self.point.scenario.links.get(at).map_or("", |link| &link.name)
    }
}

impl Observer for Observing<'_> {
    fn dropped(&self, at: Time, link: usize, flow: Option<usize>, size: Bytes, reason: Option<DropReason>) {
        if let Some(report) = &self.events.on_drop {
            let (link, flow) = (self.link(link), flow.map(|flow| self.flow(flow)));
            report(&Dropped { point: &self.point.label, seed: self.seed, at, link, flow, size, reason });
        }
    }

    fn marked(&self, at: Time, link: usize, flow: Option<usize>, size: Bytes) {
        if let Some(report) = &self.events.on_mark {
            let (link, flow) = (self.link(link), flow.map(|flow| self.flow(flow)));
            report(&Marked { point: &self.point.label, seed: self.seed, at, link, flow, size });
        }
    }

    fn sampled(&self, samples: &Samples<'_>) {
        #[cfg(all(feature = "live", target_os = "linux"))]
        if let Some(follower) = &self.follower {
            follower.sampled(samples);
        }
        let &Samples { at, flows, links, .. } = samples;
        let Some(report) = &self.events.on_sample else { return };
        let interval = self.point.scenario.sample;
        let flow = |(place, probe): (usize, &FlowProbe)| FlowSample {
            name: self.flow(place),
            throughput: rate(probe.series.last().copied().unwrap_or_default(), interval),
            tcp: probe.tcp.last().copied(),
        };
        let link = |(place, sample): &(usize, probe::LinkSample)| LinkSample {
            name: self.link(*place),
            throughput: rate(sample.sent, interval),
            rate: sample.rate,
            backlog: sample.backlog,
            queue_delay: sample.delay,
            dropped: sample.dropped,
            lost: sample.lost,
            marked: sample.marked,
        };
        let flows: Vec<_> = flows.iter().enumerate().map(flow).collect();
        let links: Vec<_> = links.iter().map(link).collect();
        report(&Sampled { point: &self.point.label, seed: self.seed, at, flows: &flows, links: &links });
    }
}

/// Returns the mean rate of `bytes` over `interval`.
fn rate(bytes: Bytes, interval: Span) -> Rate {
    Rate::from_bit((1e6 * apportion_report::mbps(bytes, interval)).round() as u64)
}
