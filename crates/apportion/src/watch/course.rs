//! One replication as displayed: its watched links, and the largest flows over each of them.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::queue::DropReason;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_runtime::probe::LinkSample;
use apportion_scenario::Point;
use apportion_scenario::entitlement::Due;
use apportion_scenario::model::{Link, Scenario};
use serde_json::{Value, json};

use super::series::{Scale, Series};

/// The maximum number of links whose course is kept. Chosen: a list that can still be read.
const MAX_LINKS: usize = 16;
/// The maximum number of displayed flows over each link, the largest ones. Chosen: a screen of lines.
const SHOWN: usize = 16;
/// The maximum number of flows whose course is kept. With more flows, the largest of each link in a sample
/// interval are kept, and a new one replaces the flow that was least recently among them. Chosen: all that
/// links can display, plus half as many.
const MAX_FLOWS: usize = MAX_LINKS * SHOWN * 3 / 2;

/// The values of a sample interval that outlive it.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub at: Time,
    /// The bytes that have reached the sink of each flow.
    pub delivered: Vec<Bytes>,
    /// The watched links, by index in the scenario.
    pub links: Vec<(usize, LinkSample)>,
}

/// The state of a replication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    Running,
    Ended,
    /// The replication ended early: it was cancelled, or failed.
    Cut,
    /// The replication was late, and is run again.
    Late,
}

impl Stand {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Cut => "cut",
            Self::Late => "late",
        }
    }
}

/// One replication.
#[derive(Debug)]
pub(super) struct Course {
    pub number: u64,
    pub point: String,
    pub seed: u64,
    pub stand: Stand,
    at: Time,
    stop: Time,
    measure_from: Time,
    sample: Span,
    scale: Scale,
    links: Vec<LinkCourse>,
    links_left_out: usize,
    /// The bytes that had reached the sink of each flow by the last sample, and those of the last interval.
    delivered: Vec<Bytes>,
    latest: Vec<Bytes>,
    /// The bytes that had reached the sinks when the measured part began; none before.
    start: Option<Vec<Bytes>>,
    /// The entitlements of the flows, while the replication runs.
    due: Option<Due>,
    /// The flows, by index.
    flows: BTreeMap<usize, FlowCourse>,
    samples: u64,
}

/// A watched link.
#[derive(Debug)]
struct LinkCourse {
    place: usize,
    name: String,
    /// The indices of the flows that cross the link.
    members: Vec<usize>,
    latest: Option<LinkSample>,
    /// Packets since the start of the run: dropped by reason, lost, marked.
    dropped: [u64; DropReason::ALL.len()],
    lost: u64,
    marked: u64,
    /// The capacity, the rate transmitted, and the rate of all its flows, in bytes per second.
    rate: Series,
    sent: Series,
    got: Series,
    /// The backlog in packets, and the delay in seconds.
    backlog: Series,
    delay: Series,
    /// Drops and losses, and marks, in packets per second.
    drops: Series,
    marks: Series,
}

/// A flow whose course is kept.
#[derive(Debug)]
struct FlowCourse {
    name: String,
    /// The rate at its sink, in bytes per second.
    rate: Series,
    /// The entitlements in the last interval and in the measured part so far.
    entitled: [Option<Rate>; 2],
    /// The last sample in which the flow was among the largest of a link.
    last: u64,
}

impl Course {
    pub fn new(number: u64, point: &Point, seed: u64, due: Option<Due>) -> Self {
        let scenario = &point.scenario;
        let watched = || scenario.links.iter().enumerate().filter(|(_, link)| link.watched);
        let count = scenario.flows.len();
        let course = |(place, link): (usize, &Link)| LinkCourse::new(place, link, scenario, seed);
        let mut flows = BTreeMap::new();
        if count <= MAX_FLOWS {
            flows.extend((0..count).map(|flow| (flow, FlowCourse::new(scenario, flow, 0))));
        }
        Self {
            number,
            point: point.label.clone(),
            seed,
            stand: Stand::Running,
            at: Time::ZERO,
            stop: scenario.stop,
            measure_from: scenario.measure_from,
            sample: scenario.sample,
            scale: Scale::new(),
            links: watched().take(MAX_LINKS).map(course).collect(),
            links_left_out: watched().count().saturating_sub(MAX_LINKS),
            delivered: vec![Bytes::ZERO; count],
            latest: vec![Bytes::ZERO; count],
            start: (scenario.measure_from == Time::ZERO).then(|| vec![Bytes::ZERO; count]),
            due,
            flows,
            samples: 0,
        }
    }

    /// Adds a sample interval of the replication of this scenario.
    pub fn add(&mut self, scenario: &Scenario, sample: Sample) {
        let seconds = sample.at.since(self.at).as_secs_f64();
        // An empty sample, or one of another scenario, would be a bug of the caller.
        if seconds <= 0.0 || sample.delivered.len() != self.delivered.len() {
            return;
        }
        let before = std::mem::replace(&mut self.at, sample.at);
        self.samples += 1;
        for ((latest, before), after) in self.latest.iter_mut().zip(&self.delivered).zip(&sample.delivered) {
            *latest = *after - *before;
        }
        self.delivered = sample.delivered;
        for link in &mut self.links {
            let got: Bytes = link.members.iter().map(|flow| self.latest[*flow]).sum();
            link.got.add(Some(got.get() as f64 / seconds));
            if let Some((_, own)) = sample.links.iter().find(|(place, _)| *place == link.place) {
                link.add(own, seconds);
            }
        }
        self.keep_largest(scenario);
        for (flow, kept) in &mut self.flows {
            kept.rate.add(Some(self.latest[*flow].get() as f64 / seconds));
            kept.entitled = [before, self.measure_from].map(|from| {
                let span = self.at.since(from);
                let due = self.due.as_ref().filter(|_| span > Span::ZERO)?;
                Some(due.amount(*flow, from, self.at).over(span))
            });
        }
        let links = self.links.iter_mut().flat_map(LinkCourse::series);
        self.scale.end_sample(links.chain(self.flows.values_mut().map(|flow| &mut flow.rate)));
        if self.start.is_none() && self.at >= self.measure_from {
            self.start = Some(self.delivered.clone());
        }
    }

    /// Ends the replication in this state. Its entitlements so far are known.
    pub fn stop(&mut self, stand: Stand) {
        self.stand = stand;
        self.due = None;
    }

    /// Keeps the courses of the largest flows of each link in the last interval.
    fn keep_largest(&mut self, scenario: &Scenario) {
        if self.latest.len() <= MAX_FLOWS {
            return;
        }
        let mut largest = BTreeSet::new();
        for link in &self.links {
            largest.extend(most(&link.members, SHOWN, |flow| self.latest[flow]));
        }
        for flow in largest {
            let points = self.scale.points;
            let kept = self.flows.entry(flow).or_insert_with(|| FlowCourse::new(scenario, flow, points));
            kept.last = self.samples;
        }
        while self.flows.len() > MAX_FLOWS {
            let oldest = self.flows.iter().min_by_key(|(_, kept)| kept.last).map(|(flow, _)| *flow);
            oldest.map(|flow| self.flows.remove(&flow));
        }
    }

    /// Returns the data for the page, with the link at this index among those that are kept.
    pub fn json(&self, link: usize) -> Value {
        let chosen = self.links.get(link).or(self.links.first());
        let seconds = |time: Time| time.as_secs_f64();
        let mut value = json!({
            "number": self.number,
            "point": self.point,
            "seed": self.seed.to_string(),
            "state": self.stand.name(),
            "at_seconds": seconds(self.at),
            "stop_seconds": seconds(self.stop),
            "measure_from_seconds": seconds(self.measure_from),
            "point_seconds": self.sample.as_secs_f64() * f64::from(self.scale.step),
            "links": self.links.iter().map(|link| &link.name).collect::<Vec<_>>(),
            "links_left_out": self.links_left_out,
            "link_states": self.links.iter().map(|link| link.state(self.sample)).collect::<Vec<_>>(),
        });
        value["link"] = chosen.map_or(Value::Null, |link| link.json(self));
        value
    }

    /// Returns the bytes that have reached the sink of a flow in the measured part so far.
    fn measured(&self, flow: usize) -> Bytes {
        self.start.as_ref().map_or(Bytes::ZERO, |start| self.delivered[flow] - start[flow])
    }
}

impl FlowCourse {
    /// Creates the course of a flow with `points` unknown points.
    fn new(scenario: &Scenario, flow: usize, points: usize) -> Self {
        Self {
            name: scenario.flows[flow].name.clone(),
            rate: Series::unknown(points),
            entitled: [None; 2],
            last: 0,
        }
    }
}

impl LinkCourse {
    fn new(place: usize, link: &Link, scenario: &Scenario, seed: u64) -> Self {
        // The first of equal links represents all of them in paths.
        let named = link.group.as_ref().and_then(|group| group.members.first());
        let named = named.map_or(place, |first| first.index());
        let passes = |flow: &usize| {
            let flow = &scenario.flows[*flow];
            scenario.route(flow, &flow.path, 0, seed).iter().any(|on| on.index() == named)
        };
        Self {
            place,
            name: link.name.clone(),
            members: (0..scenario.flows.len()).filter(passes).collect(),
            latest: None,
            dropped: Default::default(),
            lost: 0,
            marked: 0,
            rate: Series::default(),
            sent: Series::default(),
            got: Series::default(),
            backlog: Series::default(),
            delay: Series::default(),
            drops: Series::default(),
            marks: Series::default(),
        }
    }

    fn add(&mut self, sample: &LinkSample, seconds: f64) {
        self.latest = Some(*sample);
        self.dropped.iter_mut().zip(sample.dropped).for_each(|(all, more)| *all += more);
        self.lost += sample.lost;
        self.marked += sample.marked;
        self.rate.add(Some(sample.rate.as_bit() as f64 / 8.0));
        self.sent.add(Some(sample.sent.get() as f64 / seconds));
        self.backlog.add(Some(sample.backlog.get() as f64));
        self.delay.add(sample.delay.map(Span::as_secs_f64));
        let drops = sample.dropped.iter().sum::<u64>() + sample.lost;
        self.drops.add(Some(drops as f64 / seconds));
        self.marks.add(Some(sample.marked as f64 / seconds));
    }

    fn series(&mut self) -> [&mut Series; 7] {
        let Self { rate, sent, got, backlog, delay, drops, marks, .. } = self;
        [rate, sent, got, backlog, delay, drops, marks]
    }

    /// The last interval, and packets since the start.
    fn state(&self, interval: Span) -> Value {
        let latest = self.latest;
        let dropped: BTreeMap<&str, u64> =
            DropReason::ALL.map(DropReason::name).into_iter().zip(self.dropped).collect();
        json!({
            "name": self.name,
            "bytes_per_second": latest.map(|latest| per(latest.sent, interval.as_secs_f64())),
            "rate_bytes_per_second": latest.map(|latest| bytes(latest.rate)),
            "backlog_packets": latest.map(|latest| latest.backlog.get()),
            "delay_seconds": latest.and_then(|latest| latest.delay).map(Span::as_secs_f64),
            "dropped_packets": dropped,
            "lost_packets": self.lost,
            "marked_packets": self.marked,
            "flow_count": self.members.len(),
        })
    }

    fn json(&self, course: &Course) -> Value {
        let of_measured: Bytes = self.members.iter().map(|flow| course.measured(*flow)).sum();
        let of_latest: Bytes = self.members.iter().map(|flow| course.latest[*flow]).sum();
        let kept: Vec<usize> =
            self.members.iter().copied().filter(|flow| course.flows.contains_key(flow)).collect();
        let key = |flow| (course.measured(flow), course.delivered[flow]);
        let shown: Vec<usize> = most(&kept, SHOWN, key);
        let seconds = course.at.since(course.measure_from).as_secs_f64();
        let interval = course.sample.as_secs_f64();
        let flow = |flow: &usize| {
            let (measured, latest) = (course.measured(*flow), course.latest[*flow]);
            course.flows.get(flow).map(|kept| {
                let [entitled, measured_entitled] = kept.entitled.map(|rate| rate.map(bytes));
                json!({
                    "place": flow,
                    "flow": kept.name,
                    "bytes_per_second": per(latest, interval),
                    "entitlement_bytes_per_second": entitled,
                    "share": part(latest, of_latest),
                    "measured_bytes_per_second": per(measured, seconds),
                    "measured_entitlement_bytes_per_second": measured_entitled,
                    "measured_share": part(measured, of_measured),
                    "series": kept.rate.json(BYTES_PER_KBIT),
                })
            })
        };
        let mut value = self.state(course.sample);
        let more = json!({
            "rate_kbit_per_second": self.rate.json(BYTES_PER_KBIT),
            "sent_kbit_per_second": self.sent.json(BYTES_PER_KBIT),
            "flows_kbit_per_second": self.got.json(BYTES_PER_KBIT),
            "backlog": self.backlog.json(1.0),
            "delay_ms": self.delay.json(1e-3),
            "dropped_per_second": self.drops.json(1.0),
            "marked_per_second": self.marks.json(1.0),
            "flows_bytes_per_second": per(of_latest, interval),
            "flows_measured_bytes_per_second": per(of_measured, seconds),
            "flows": shown.iter().filter_map(flow).collect::<Vec<_>>(),
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut value, more) {
            all.extend(more);
        }
        value
    }
}

/// Bytes in a thousand bits.
const BYTES_PER_KBIT: f64 = 125.0;

/// Returns at most `count` elements of `all` with the largest keys, in descending order; of equal ones the
/// first.
fn most<K: Ord + Copy>(all: &[usize], count: usize, key: impl Fn(usize) -> K) -> Vec<usize> {
    let mut keyed: Vec<_> = all.iter().map(|flow| (std::cmp::Reverse(key(*flow)), *flow)).collect();
    if keyed.len() > count {
        keyed.select_nth_unstable(count);
        keyed.truncate(count);
    }
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, flow)| flow).collect()
}

/// A rate in bytes per second.
fn bytes(rate: Rate) -> u64 {
    rate.as_bit() / 8
}

fn per(bytes: Bytes, seconds: f64) -> u64 {
    if seconds > 0.0 { (bytes.get() as f64 / seconds).round() as u64 } else { 0 }
}

/// Rounds a fraction to six decimals, as in tables.
fn part(bytes: Bytes, all: Bytes) -> f64 {
    if all == Bytes::ZERO { 0.0 } else { (bytes.get() as f64 / all.get() as f64 * 1e6).round() / 1e6 }
}
