//! Rates that follow the capacity of a link, which [`estimate`] estimates from the TCP connections that pass.
//!
//! A connection yields samples where its segments leave towards the side of the link and its other end
//! acknowledges them or echoes their timestamps ([`sampler`]). Each connection counts by itself here, even
//! where a rule makes many of them one flow. The shortest round-trip time is kept for each host, so that a
//! new connection does not mistake a queue for its path.
//!
//! Memory is bounded: [`MOST`] connections and as many hosts on each side. A new connection takes the place
//! of one without samples before that of one with samples. A flood that fills the table within a round trip
//! keeps connections that begin during it from being sampled.
//!
//! Cost: O(1) per TCP segment: a parse of the header as it leaves, two lookups; 1.2 kB per connection, 80 bytes per host.

mod estimate;
mod sampler;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use apportion_core::packet::FlowId;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::gateway::{AutoRate, Direction, GatewayConfig, Side};

use self::estimate::{Answer, Autorate, AutorateParams, Bottleneck};
use self::sampler::Sampler;
use super::round_trip::Shortest;
use crate::flow_table::FlowTable;
use crate::frame::{FlowTuple, Segment, Timestamps};

pub use self::estimate::Findings;

/// A segment with its connection and its timestamps, if it has any.
pub(super) type TcpSegment = (FlowTuple, Segment, Option<Timestamps>);

/// Maximum of connections of a side that are followed.
const MOST: usize = 1_024;
/// Silence after which another connection may take a connection's place.
const IDLE: Span = Span::from_secs(10);
/// Silence after which another host may take a host's place. Chosen: the time for which the shortest
/// round-trip time is kept.
const IDLE_HOST: Span = Span::from_secs(600);

/// The rates of both directions, at least one of which follows the link.
#[derive(Debug)]
pub(super) struct Autorates {
    /// Rates by direction; for a fixed rate both bounds are equal.
    rates: [Autorate; 2],
    /// The side of the link that each direction follows; none if its rate is fixed.
    sides: [Option<Side>; 2],
    outside: Connections,
    inside: Connections,
}

/// Connections whose segments leave towards one side, and the hosts there.
#[derive(Debug)]
struct Connections {
    table: FlowTable<FlowTuple>,
    samplers: Vec<Sampler>,
    hosts: FlowTable<IpAddr>,
    shortest: Vec<Shortest>,
}

impl Autorates {
    /// Autorates by `config`, with the state of `before`; none if both rates are fixed.
    pub fn after(before: Option<Box<Self>>, config: &GatewayConfig, now: Time) -> Option<Box<Self>> {
        let directions = Direction::BOTH.map(|direction| (direction, config.direction(direction)));
        let sides = directions.map(|(_, own)| own.auto.map(|auto| auto.link));
        sides.iter().any(Option::is_some).then(|| {
            let params = directions.map(|(direction, own)| match &own.auto {
                Some(auto) => following(*auto, direction, own.rate),
                None => fixed(own.rate),
            });
            match before {
                Some(mut before) => {
                    for (rate, params) in before.rates.iter_mut().zip(params) {
                        rate.set_params(params);
                    }
                    before.sides = sides;
                    before
                }
                None => Box::new(Self {
                    rates: params.map(|params| Autorate::new(now, params)),
                    sides,
                    outside: Connections::new(),
                    inside: Connections::new(),
                }),
            }
        })
    }

    /// The current rate of a direction.
    pub const fn rate(&self, direction: Direction) -> Rate {
        self.rates[direction as usize].rate()
    }

    /// The measurements behind the rate of a direction; none if the rate is fixed.
    pub fn findings(&self, direction: Direction) -> Option<Findings> {
        self.sides[direction as usize].map(|_| self.rates[direction as usize].findings())
    }

    /// Notes a packet of this direction that left, with its segment if it is TCP.
    pub fn departed(&mut self, now: Time, direction: Direction, size: Bytes, segment: Option<TcpSegment>) {
        let rate = &mut self.rates[direction as usize];
        if rate.bottleneck() == Bottleneck::Behind {
            rate.moved(now, size);
        }
        let side = towards(direction);
        if let Some((tuple, segment, stamps)) = segment
            && self.sides.contains(&Some(side))
            && let Some(answer) = self.connections(side).departed(now, tuple, segment, stamps)
        {
            self.answered(side, answer);
        }
    }

    /// Whether packets of this direction may yield samples.
    pub fn watches(&self, direction: Direction) -> bool {
        self.sides.contains(&Some(towards(direction)))
    }

    /// Notes a packet of this direction that arrived, with its segment if it is TCP.
    pub fn arrived(&mut self, now: Time, direction: Direction, size: Bytes, segment: Option<TcpSegment>) {
        let rate = &mut self.rates[direction as usize];
        if rate.bottleneck() == Bottleneck::Before {
            rate.moved(now, size);
        }
        let side = towards(direction.other());
        if let Some((tuple, segment, stamps)) = segment
            && self.sides.contains(&Some(side))
            && let Some(answer) = self.connections(side).answered(now, &tuple.reversed(), segment, stamps)
        {
            self.answered(side, answer);
        }
    }

    /// Time to review the rates next.
    pub fn next_review(&self) -> Time {
        self.rates[0].next_review().min(self.rates[1].next_review())
    }

    /// Reviews the rates at `now`. Returns those that change.
    pub fn review(&mut self, now: Time) -> [Option<Rate>; 2] {
        let [up, down] = [0, 1].map(|way: usize| self.rates[way].load(now));
        let [of_up, of_down] = &mut self.rates;
        [of_up.review(now, down), of_down.review(now, up)]
    }

    const fn connections(&mut self, side: Side) -> &mut Connections {
        match side {
            Side::Outside => &mut self.outside,
            Side::Inside => &mut self.inside,
        }
    }

    /// Passes a sample to the directions that follow this side.
    fn answered(&mut self, side: Side, answer: Answer) {
        for (rate, own) in self.rates.iter_mut().zip(self.sides) {
            if own == Some(side) {
                rate.answered(answer);
            }
        }
    }
}

/// The side to which packets of a direction leave.
const fn towards(direction: Direction) -> Side {
    match direction {
        Direction::Up => Side::Outside,
        Direction::Down => Side::Inside,
    }
}

/// Parameters of a direction that follows the link, with `most` as the highest rate. Packets that come from
/// the side of the link have passed it.
const fn following(auto: AutoRate, direction: Direction, most: Rate) -> AutorateParams {
    let bottleneck = match (direction, auto.link) {
        (Direction::Up, Side::Outside) | (Direction::Down, Side::Inside) => Bottleneck::Behind,
        (Direction::Up, Side::Inside) | (Direction::Down, Side::Outside) => Bottleneck::Before,
    };
    AutorateParams { least: auto.least, most, threshold: auto.threshold, bottleneck }
}

/// Parameters of a direction with a fixed rate.
const fn fixed(rate: Rate) -> AutorateParams {
    AutorateParams { least: rate, most: rate, threshold: Span::MAX, bottleneck: Bottleneck::Behind }
}

impl Connections {
    fn new() -> Self {
        Self {
            table: FlowTable::new(FlowId(0), MOST, IDLE),
            samplers: Vec::new(),
            hosts: FlowTable::new(FlowId(0), MOST, IDLE_HOST),
            shortest: Vec::new(),
        }
    }

    /// A segment left. Returns a sample if an earlier one has waited for an answer for too long.
    fn departed(
        &mut self,
        now: Time,
        tuple: FlowTuple,
        segment: Segment,
        stamps: Option<Timestamps>,
    ) -> Option<Answer> {
        let numbered = self.table.number(now, tuple);
        let at = numbered.flow.index();
        if self.samplers.len() <= at {
            self.samplers.resize(at + 1, Sampler::default());
        }
        if numbered.is_new {
            self.samplers[at] = Sampler::default();
        }
        let took = self.samplers[at].departed(now, segment, stamps)?;
        self.answer(now, numbered.flow, &tuple, took)
    }

    /// Handles a segment that answers the connection `tuple`.
    fn answered(
        &mut self,
        now: Time,
        tuple: &FlowTuple,
        segment: Segment,
        stamps: Option<Timestamps>,
    ) -> Option<Answer> {
        let flow = self.table.find(tuple)?;
        let took = self.samplers.get_mut(flow.index())?.answered(now, segment, stamps)?;
        // Connections without answers take no place from this one.
        self.table.keep(flow);
        self.answer(now, flow, tuple, took)
    }

    fn answer(&mut self, now: Time, flow: FlowId, tuple: &FlowTuple, took: Span) -> Option<Answer> {
        let host = self.hosts.number(now, tuple.destination());
        let at = host.flow.index();
        if self.shortest.len() <= at {
            self.shortest.resize(at + 1, Shortest::default());
        }
        let shortest = &mut self.shortest[at];
        if host.is_new {
            *shortest = Shortest::default();
        }
        shortest.note(now, took);
        let shortest = shortest.get(now)?;
        Some(Answer { connection: flow.0, departed: now - took, took, shortest })
    }
}
