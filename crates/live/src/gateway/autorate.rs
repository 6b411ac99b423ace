//! Rates that follow the link: what [`estimate`] learns, from the TCP connections that pass.
//!
//! A connection gives answers where segments leave towards the side of the link and its other end acknowledges them or echoes their
//! timestamps ([`sampler`]). Here it is each connection by itself, also where a rule makes many of them
//! one flow. The shortest answer is that of the host, so that a new connection does not take a queue for its path.
//!
//! Memory is bounded: [`MOST`] connections and as many hosts are followed on each side. Another takes the place of one that was never answered
//! before that of one that was. A flood that fills the table within a round trip keeps connections that begin during it from being measured.
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

/// A segment with its connection and its timestamps, if it has them.
pub(super) type TcpSegment = (FlowTuple, Segment, Option<Timestamps>);

/// Connections of a side that are followed.
const MOST: usize = 1_024;
/// After this silence another connection may take the place of one.
const IDLE: Span = Span::from_secs(10);
/// The same of a host. Chosen: its shortest answer is known for as long.
const IDLE_HOST: Span = Span::from_secs(600);

/// Both directions, of which one follows the link at least.
#[derive(Debug)]
pub(super) struct Autorates {
    /// By direction; one whose rate is fixed has bounds that are equal.
    rates: [Autorate; 2],
    /// Which side each of them goes by; none if it is fixed.
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
    /// What `config` asks for, with what `before` has learnt; none if both rates are fixed.
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

    /// The rate of a direction now.
    pub const fn rate(&self, direction: Direction) -> Rate {
        self.rates[direction as usize].rate()
    }

    /// What a direction goes by; none if its rate is fixed.
    pub fn findings(&self, direction: Direction) -> Option<Findings> {
        self.sides[direction as usize].map(|_| self.rates[direction as usize].findings())
    }

    /// A packet of this direction left, with this segment if it is one of TCP.
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

    /// Whether what leaves in this direction may be answered for a rate that follows.
    pub fn watches(&self, direction: Direction) -> bool {
        self.sides.contains(&Some(towards(direction)))
    }

    /// A packet of this direction came in, with this segment if it is one of TCP.
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

    /// When to look whether rates are to change.
    pub fn next_review(&self) -> Time {
        self.rates[0].next_review().min(self.rates[1].next_review())
    }

    /// Looks whether rates are to change at `now`, to what.
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

    /// What goes by this side hears of it.
    fn answered(&mut self, side: Side, answer: Answer) {
        for (rate, own) in self.rates.iter_mut().zip(self.sides) {
            if own == Some(side) {
                rate.answered(answer);
            }
        }
    }
}

/// Where a direction goes.
const fn towards(direction: Direction) -> Side {
    match direction {
        Direction::Up => Side::Outside,
        Direction::Down => Side::Inside,
    }
}

/// For a direction whose highest rate is `most`. What comes from the side of the link has gone through it.
const fn following(auto: AutoRate, direction: Direction, most: Rate) -> AutorateParams {
    let bottleneck = match (direction, auto.link) {
        (Direction::Up, Side::Outside) | (Direction::Down, Side::Inside) => Bottleneck::Behind,
        (Direction::Up, Side::Inside) | (Direction::Down, Side::Outside) => Bottleneck::Before,
    };
    AutorateParams { least: auto.least, most, threshold: auto.threshold, bottleneck }
}

/// For a direction whose rate stays.
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

    /// A segment left: what it says of one before that was not answered for too long.
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

    /// The connection `tuple` was answered by a segment.
    fn answered(
        &mut self,
        now: Time,
        tuple: &FlowTuple,
        segment: Segment,
        stamps: Option<Timestamps>,
    ) -> Option<Answer> {
        let flow = self.table.find(tuple)?;
        let took = self.samplers.get_mut(flow.index())?.answered(now, segment, stamps)?;
        // Those that are never answered take no place from it.
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
