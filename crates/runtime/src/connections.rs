//! The connections of the flows of a scenario.
//!
//! A flow is one connection, or as many as its key `connections` says, or one per arrival of a source of
//! short flows. Connections are numbered in the scenario's order. Disciplines see another number, the id. All
//! connections of a flow share one id, because papers mean an aggregate where they give ten flows of 15
//! connections one label, guarantee and weight each (Pelsser 2002); only short flows and those of web users
//! have one each. Ids follow the scenario's order too, without gaps, so that tables by id are as small as
//! possible. Without flows of several connections both numbers are equal.

use std::ops::Range;

use apportion_core::packet::FlowId;
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Span, Time};

use crate::media::Media;
use crate::source::short_flows::arrivals;
use crate::source::web::Arrivals;
use crate::source::{Generator, Write};
use apportion_scenario::model::{Flow, Scenario, ShortFlows, Source, Start};

/// The workload of a connection.
#[derive(Debug)]
pub enum Workload {
    /// An endless transfer.
    Greedy,
    /// A file of this size, at the start.
    File(Bytes),
    /// The writes of a source.
    Writes(Box<Writes>),
    /// The pages that users of this source of web pages request.
    Web(u32),
    /// A player or a call, which reacts to delay and loss.
    Media(Box<MediaWorkload>),
    /// None: the file has arrived.
    Arrived,
}

/// The writes of a source.
#[derive(Debug)]
pub struct Writes {
    /// The generator of the writes.
    pub generator: Generator,
    /// The next write.
    pub pending: Option<Write>,
    /// Whether the rest of `pending` waits for room in the send buffer.
    pub is_blocked: bool,
}

/// A player or a call.
#[derive(Debug)]
pub struct MediaWorkload {
    /// Both of its ends.
    pub media: Media,
    /// Time at which the timer of a backend's pending event fires; [`Time::MAX`] if there is none.
    pub armed: Time,
}

/// A connection to open.
#[derive(Debug)]
pub struct Planned {
    /// The index of its flow in the scenario.
    pub flow: u32,
    /// Id for disciplines, possibly shared with other connections.
    pub id: FlowId,
    pub start: Time,
    /// Time at which the source stops.
    pub stop: Time,
    /// The workload.
    pub workload: Workload,
}

/// The connections and ids of each flow.
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
            // At least one, so that every flow has a connection.
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

/// Adds the connections of `flow`, which has this number and first id.
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

/// A random stream of a connection of `flow`. The first connection has the names that the only one of a flow
/// has.
fn stream(flow: &Flow, purpose: &str, member: u32, seed: u64) -> Stream {
    match member {
        0 => Stream::named(seed, format_args!("flow.{}.{purpose}", flow.stream())),
        _ => Stream::named(seed, format_args!("flow.{}.{purpose}.{member}", flow.stream())),
    }
}

/// Time at which a connection of `flow` starts.
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
    /// The workload of a flow of the scenario. A source that writes produces its first write at the start.
    #[must_use]
    pub fn new(source: &Source, start: Time, stop: Time, stream: Stream) -> Self {
        match source {
            Source::File(file) => Self::File(file.size),
            Source::Dash(_) | Source::Voice { .. } | Source::Call(_) => {
                let of_media = |media| Self::Media(Box::new(MediaWorkload { media, armed: Time::MAX }));
                Media::new(source, start, stop).map_or(Self::Arrived, of_media)
            }
            _ => match Generator::new(source, start, stop, stream) {
                Some(generator) => {
                    Self::Writes(Box::new(Writes { generator, pending: None, is_blocked: false }))
                }
                None => Self::Greedy,
            },
        }
    }
}

impl Numbers {
    /// Notes where the next flow begins, or the end, after `all`. Returns its first id.
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

    /// The flow of the scenario with this id; none if there is none.
    #[must_use]
    pub fn flow_of(&self, id: FlowId) -> Option<usize> {
        let (&count, first) = self.first_id.split_last()?;
        // The last flow that begins at or before it.
        first.partition_point(|&first| first <= id.0).checked_sub(1).filter(|_| id.0 < count)
    }

    /// The flow of the scenario for each id.
    #[must_use]
    pub fn flows_by_id(&self) -> Vec<u32> {
        let mut all = Vec::with_capacity(self.id_count());
        for (flow, &end) in (0..).zip(self.first_id.iter().skip(1)) {
            all.resize(end as usize, flow);
        }
        all
    }

    /// The number of ids.
    #[must_use]
    pub fn id_count(&self) -> usize {
        self.first_id.last().map_or(0, |&count| count as usize)
    }

    /// Whether some connections share an id; otherwise connections and ids have the same numbers.
    #[must_use]
    pub fn are_shared(&self) -> bool {
        self.first_id.last() < self.first_connection.last()
    }

    /// Values of `of` by id, for the flow of each.
    pub fn by_id<T: Clone>(&self, scenario: &Scenario, of: impl Fn(&Flow) -> T) -> Vec<T> {
        let mut all = Vec::with_capacity(self.id_count());
        for (index, flow) in scenario.flows.iter().enumerate() {
            all.resize(self.first_id[index + 1] as usize, of(flow));
        }
        all
    }
}
