//! Events of a run as calls while it goes on: drops, marks and samples.

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
    /// When, from the start of the run.
    pub at: Time,
    /// The name of the link.
    pub link: &'a str,
    /// The name of its flow; none for a message between routers.
    pub flow: Option<&'a str>,
    /// Its size on the wire.
    pub size: Bytes,
    /// Why the discipline dropped it; none if the wire lost it.
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
    /// When, from the start of the run.
    pub at: Time,
    /// The name of the link.
    pub link: &'a str,
    /// The name of its flow; none for a message between routers.
    pub flow: Option<&'a str>,
    /// Its size on the wire.
    pub size: Bytes,
}

/// A sample interval, the key `sample` of the scenario, has ended: what the table [`series`](crate::Results::series) has of it. What
/// flows were due is known at the end of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Sampled<'a> {
    /// The label of the point; empty without a sweep.
    pub point: &'a str,
    /// The seed of the replication.
    pub seed: u64,
    /// When, from the start of the run.
    pub at: Time,
    /// All flows, in the order of the scenario; none if they are too many for the table.
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
    /// What reached its sink over the interval.
    pub throughput: Rate,
    /// The state of its TCP at the end of the interval; none for UDP, and for flows of several connections.
    pub tcp: Option<TcpSample>,
}

/// A sample interval of a link.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkSample<'a> {
    /// The link.
    pub name: &'a str,
    /// What it transmitted over the interval.
    pub throughput: Rate,
    /// What it could have transmitted over the interval: its mean rate, changes included.
    pub rate: Rate,
    /// What waits at the end of the interval.
    pub backlog: Packets,
    /// The mean time in the queue of packets transmitted in the interval; none if there were none.
    pub queue_delay: Option<Span>,
    /// Packets that its discipline dropped in the interval, by reason in the order of [`DropReason::ALL`].
    pub dropped: [u64; DropReason::ALL.len()],
    /// Packets that its wire lost in the interval.
    pub lost: u64,
    /// Packets that its discipline marked in the interval.
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

    /// Whether a page shows them.
    pub(crate) const fn are_watched(&self) -> bool {
        #[cfg(all(feature = "live", target_os = "linux"))]
        return self.watch.is_some();
        #[cfg(not(all(feature = "live", target_os = "linux")))]
        false
    }

    /// A run of so many replications begins.
    pub(crate) fn begin(&self, _title: &str, _replications: usize) {
        #[cfg(all(feature = "live", target_os = "linux"))]
        if let Some(watch) = self.watch {
            watch.begin(_title, _replications);
        }
    }

    /// One more is done.
    pub(crate) fn step(&self) {
        #[cfg(all(feature = "live", target_os = "linux"))]
        if let Some(watch) = self.watch {
            watch.step();
        }
    }

    /// It is over.
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

    /// The replication is over.
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

/// The mean rate at which `bytes` passed within `interval`.
fn rate(bytes: Bytes, interval: Span) -> Rate {
    Rate::from_bit((1e6 * apportion_report::mbps(bytes, interval)).round() as u64)
}
