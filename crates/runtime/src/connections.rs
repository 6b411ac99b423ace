//! The connections of the flows of a scenario.
//!
//! A flow is one connection, or as many as it has `connections`, or one per arrival of a source of short
//! flows. Connections are numbered in the scenario's order. What disciplines see is another number, the id:
//! all connections of a flow share one, since papers mean an aggregate where they give ten flows of 15
//! connections one label, guarantee and weight each (Pelsser 2002); only short flows and those of web users have one each. Ids
//! follow the scenario's order too, without gaps, so that tables by id are as small as they can be. Without
//! flows of several connections both numbers are the same.

use std::ops::Range;

use apportion_core::packet::FlowId;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};

use crate::media::Media;
use crate::source::short_flows::arrivals;
use crate::source::web::Arrivals;
use crate::source::{Generator, Write};
use apportion_scenario::model::{Flow, Scenario, ShortFlows, Source, Start};

/// What a connection sends.
#[derive(Debug)]
pub enum Workload {
    /// Without end.
    Greedy,
    /// This many bytes, at the start.
    File(Bytes),
    /// What its source writes.
    Writes(Box<Writes>),
    /// What the users of the source of web pages with this number ask for.
    Web(u32),
    /// What it takes for a player or a call, which react to delay and loss.
    Media(Box<MediaWorkload>),
    /// Nothing more: its file has arrived.
    Arrived,
}

/// The writes of a source.
#[derive(Debug)]
pub struct Writes {
    /// Makes them.
    pub generator: Generator,
    /// The one that comes next.
    pub pending: Option<Write>,
}

/// A player or a call.
#[derive(Debug)]
pub struct MediaWorkload {
    /// Both of its ends.
    pub media: Media,
    /// When the timer is called for which a backend has an event; [`Time::MAX`] if there is none.
    pub armed: Time,
}

/// A connection to be made.
#[derive(Debug)]
pub struct Planned {
    /// The index of its flow in the scenario.
    pub flow: u32,
    /// Its id for disciplines, perhaps shared with others.
    pub id: FlowId,
    pub start: Time,
    /// When its source falls silent.
    pub stop: Time,
    /// What it sends.
    pub workload: Workload,
}

/// Which connections and ids a flow has.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// The first connection of each flow of the scenario, and the number of connections.
    first_connection: Vec<u32>,
    /// The first id of each flow of the scenario, and the number of ids.
    first_id: Vec<u32>,
}

/// The connections of a scenario with `seed`, in their order, and their numbers.
#[must_use]
pub fn connections(scenario: &Scenario, seed: u64) -> (Vec<Planned>, Numbers) {
    let (mut all, mut numbers) = (Vec::with_capacity(scenario.flows.len()), Numbers::default());
    let mut webs = 0;
    for (number, flow) in (0..).zip(&scenario.flows) {
        let first_id = numbers.enter(&all);
        if let Source::Web(web) = &flow.source {
            // One at least, so that every flow has a connection.
            let seats = Arrivals::of(flow, web, scenario.stop, seed).seats().max(1);
            let start = start(flow, 0, seed);
            let stop = flow.stop.unwrap_or(scenario.stop);
            all.extend((0..seats * web.parallel).map(|member| Planned {
                flow: number,
                id: FlowId(first_id + member),
                start,
                stop,
                workload: Workload::Web(webs),
            }));
            webs += 1;
        } else {
            add(&mut all, flow, (number, first_id), scenario.stop, seed);
        }
    }
    numbers.enter(&all);
    (all, numbers)
}

/// Adds those of `flow`, which has this number and first id.
fn add(all: &mut Vec<Planned>, flow: &Flow, (number, first_id): (u32, u32), end: Time, seed: u64) {
    let stream = |purpose: &str, member: u32| stream(flow, purpose, member, seed);
    let start = |member: u32| start(flow, member, seed);
    let stop = flow.stop.unwrap_or(end);
    let planned = |id: u32, start: Time, workload: Workload| Planned {
        flow: number,
        id: FlowId(id),
        start,
        stop,
        workload,
    };
    if let Source::ShortFlows(ShortFlows { per_second, sizes }) = &flow.source {
        let starts = arrivals(*per_second, sizes, start(0), stop, stream("source", 0));
        all.extend((first_id..).zip(starts).map(|(id, (at, size))| planned(id, at, Workload::File(size))));
    } else {
        all.extend((0..flow.connections).map(|member| {
            let start = start(member);
            planned(first_id, start, Workload::new(&flow.source, start, stop, stream("source", member)))
        }));
    }
}

/// A stream of a connection of `flow`. The first connection has the names that the only one of a flow has.
fn stream(flow: &Flow, purpose: &str, member: u32, seed: u64) -> Stream {
    match member {
        0 => Stream::named(seed, format_args!("flow.{}.{purpose}", flow.stream())),
        _ => Stream::named(seed, format_args!("flow.{}.{purpose}.{member}", flow.stream())),
    }
}

/// When a connection of `flow` starts.
pub(crate) fn start(flow: &Flow, member: u32, seed: u64) -> Time {
    match flow.start {
        Start::At(at) => at,
        Start::Between(from, to) => {
            let share = stream(flow, "start", member, seed).uniform();
            from + Span::from_secs_f64(to.since(from).as_secs_f64() * share)
        }
    }
}

impl Workload {
    /// For a flow of the scenario. A source that writes is asked for its first write when it starts.
    #[must_use]
    pub fn new(source: &Source, start: Time, stop: Time, stream: Stream) -> Self {
        match source {
            Source::File(file) => Self::File(file.size),
            Source::Dash(_) | Source::Voice { .. } | Source::Call(_) => {
                let of_media = |media| Self::Media(Box::new(MediaWorkload { media, armed: Time::MAX }));
                Media::new(source, start, stop).map_or(Self::Arrived, of_media)
            }
            _ => match Generator::new(source, start, stop, stream) {
                Some(generator) => Self::Writes(Box::new(Writes { generator, pending: None })),
                None => Self::Greedy,
            },
        }
    }
}

impl Numbers {
    /// Notes where the next flow begins, or the end, behind `all`. Its first id.
    fn enter(&mut self, all: &[Planned]) -> u32 {
        let id = all.last().map_or(0, |connection| connection.id.0 + 1);
        self.first_connection.push(all.len() as u32);
        self.first_id.push(id);
        id
    }

    /// The connections of a flow of the scenario.
    #[must_use]
    pub fn members(&self, flow: usize) -> Range<u32> {
        self.first_connection[flow]..self.first_connection[flow + 1]
    }

    /// The ids of a flow of the scenario.
    #[must_use]
    pub fn ids(&self, flow: usize) -> Range<u32> {
        self.first_id[flow]..self.first_id[flow + 1]
    }

    /// The flow of the scenario that has this id; none if no flow does.
    #[must_use]
    pub fn flow_of(&self, id: FlowId) -> Option<usize> {
        let (&count, first) = self.first_id.split_last()?;
        // The last flow that does not begin after it.
        first.partition_point(|&first| first <= id.0).checked_sub(1).filter(|_| id.0 < count)
    }

    /// The flow of the scenario, by id.
    #[must_use]
    pub fn flows_by_id(&self) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.id_count());
        for (flow, &end) in (0..).zip(self.first_id.iter().skip(1)) {
            all.resize(end as usize, flow);
        }
        all
    }

    /// How many ids there are.
    #[must_use]
    pub fn id_count(&self) -> usize {
        self.first_id.last().map_or(0, |&count| count as usize)
    }

    /// Whether some connections share an id; if none do, connections and ids have the same numbers.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        self.first_id.last() < self.first_connection.last()
    }

    /// Of each id what its flow of the scenario has.
    pub fn by_id<T: Clone>(&self, scenario: &Scenario, of: impl Fn(&Flow) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.id_count());
        for (index, flow) in scenario.flows.iter().enumerate() {
            all.resize(self.first_id[index + 1] as usize, of(flow));
        }
        all
    }
}
