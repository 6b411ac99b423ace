//! The last hour of a gateway in bounded memory: traffic of both directions and their largest flows, second
//! by second, and events. The control thread keeps it.
//!
//! Memory: 8 bytes for each flow, customer and second, and 24 bytes for each direction and second, in buffers
//! that double: 31 MB at most, and less while flows are younger than an hour. A new flow or customer replaces
//! the one that has been silent longest.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion_core::units::{Rate, Span, Time};
use apportion_scenario::gateway::Direction;
use serde_json::{Value, json};

use super::entitlement::{Sender, entitlements};
use super::snapshot::{DirectionSnapshot, Snapshot};
use super::traffic::{FlowTraffic, MAX_FLOWS, Traffic};

mod customers;
mod events;
mod series;

use customers::CustomerCourse;

pub(super) use events::Kind;
use events::{Events, changes};
use series::{SECONDS, Series};

/// Maximum of flows of each direction in the history: those of the last second and some earlier ones. Chosen:
/// half as many more.
const MAX_KEPT: usize = MAX_FLOWS + MAX_FLOWS / 2;
/// Maximum of flows of each direction, and of events, in `/stats.json`. Chosen: a screen of lines.
pub(super) const SHOWN: usize = 32;

/// The history.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// Times at which seconds ended.
    ends: Series<1>,
    directions: [Course; 2],
    events: Events,
    /// The last snapshot.
    before: Option<Arc<Snapshot>>,
    /// Flows and customers so far; each gets the next number.
    numbered: u64,
}

/// The history of one direction.
#[derive(Debug, Default)]
struct Course {
    /// Capacity, throughput, median and 95th percentile of the sojourn time in µs, packets dropped and
    /// marked.
    all: Series<6>,
    flows: BTreeMap<Key, Kept>,
    customers: CustomerCourse,
    /// The last second.
    latest: Arc<Traffic>,
    /// Entitlements of the flows of the last second, if they have any.
    entitlements: Option<Vec<f64>>,
    /// Packets dropped and marked so far.
    counts: [u64; 2],
}

/// The rule of a flow and its packets.
type Key = (Arc<str>, String);

/// A flow or a customer.
#[derive(Debug)]
struct Kept {
    number: u64,
    /// Rate and entitlement, in bytes per second.
    series: Series<2>,
}

impl Kept {
    /// An empty series with the next number.
    fn new(numbered: &mut u64) -> Self {
        *numbered += 1;
        Self { number: *numbered, series: Series::default() }
    }
}

impl History {
    /// Records a snapshot, unless it is the last one.
    pub fn hear(&mut self, latest: &Arc<Snapshot>) {
        let before = self.before.replace(Arc::clone(latest));
        let Some(before) = before else { return };
        if before.now == latest.now {
            return;
        }
        for (kind, what, count) in changes(&before, latest) {
            self.events.add(latest.now, kind, what, count);
        }
        let number = latest.directions[0].traffic.number;
        let is_new = latest.directions[0].traffic.span > Span::ZERO && self.ends.next() <= number;
        if is_new {
            self.ends.push(number, [latest.now.as_secs_f64() as f32]);
            for (course, direction) in self.directions.iter_mut().zip(Direction::BOTH) {
                course.note(latest, direction, &mut self.numbered);
            }
        }
    }

    /// Records an event that no snapshot shows.
    pub fn event(&mut self, kind: Kind, what: String) {
        let now = self.before.as_ref().map_or(Time::ZERO, |before| before.now);
        self.events.add(now, kind, what, 1);
    }

    /// The last second of both directions.
    pub fn latest(&self) -> Value {
        let of = |(direction, course): (Direction, &Course)| (direction.name().to_owned(), course.json());
        Value::Object(Direction::BOTH.into_iter().zip(&self.directions).map(of).collect())
    }

    /// The latest events, at most `most`, the oldest first.
    pub fn events(&self, most: usize) -> Value {
        self.events.json(most)
    }

    /// The history without flows and customers.
    pub fn json(&self) -> Value {
        let of = |(direction, course): (Direction, &Course)| {
            let all = |column| course.all.column(column, self.ends.range(), whole);
            let seconds = |column| course.all.column(column, self.ends.range(), from_micros);
            let value = json!({
                "rate_bytes_per_second": all(0),
                "sent_bytes_per_second": all(1),
                "sojourn_seconds": { "0.5": seconds(2), "0.95": seconds(3) },
                "dropped_packets": all(4),
                "marked_packets": all(5),
            });
            (direction.name().to_owned(), value)
        };
        let directions = Direction::BOTH.into_iter().zip(&self.directions).map(of).collect();
        json!({
            "uptime_seconds": self.before.as_ref().map_or(0.0, |before| before.now.as_secs_f64()),
            "at": self.ends(),
            "directions": Value::Object(directions),
            "events": self.events(usize::MAX),
        })
    }

    /// The series of the flow with this number; none if it is not kept.
    pub fn flow(&self, number: u64) -> Option<Value> {
        let found = Direction::BOTH.into_iter().zip(&self.directions).find_map(|(direction, course)| {
            course.flows.iter().find(|(_, kept)| kept.number == number).map(|found| (direction, found))
        });
        let (direction, ((rule, packets), kept)) = found?;
        let mut hour = self.hour(direction, kept);
        hour["rule"] = json!(**rule);
        hour["flow"] = json!(packets);
        Some(hour)
    }

    /// The series of the customer with this number; none if it is not kept.
    pub fn customer(&self, number: u64) -> Option<Value> {
        let found = Direction::BOTH
            .into_iter()
            .zip(&self.directions)
            .find_map(|(direction, course)| course.customers.find(number).map(|found| (direction, found)));
        let (direction, (name, kept)) = found?;
        let mut hour = self.hour(direction, kept);
        hour["customer"] = json!(name);
        Some(hour)
    }

    fn hour(&self, direction: Direction, kept: &Kept) -> Value {
        let column = |column| kept.series.column(column, self.ends.range(), whole);
        json!({
            "direction": direction.name(),
            "at": self.ends(),
            "bytes_per_second": column(0),
            "entitlement_bytes_per_second": column(1),
        })
    }

    /// Times at which the seconds ended, in seconds since the start.
    fn ends(&self) -> Vec<Value> {
        self.ends.column(0, self.ends.range(), |at| json!((f64::from(at) * 100.0).round() / 100.0))
    }
}

impl Course {
    /// Records the second that ended.
    fn note(&mut self, snapshot: &Snapshot, direction: Direction, numbered: &mut u64) {
        let own = &snapshot.directions[direction as usize];
        let traffic = &own.traffic;
        let config = snapshot.config.direction(direction);
        let flows: Vec<Sender> =
            traffic.flows.iter().map(|flow| (rate_of(flow, traffic), flow.terms)).collect();
        let others = total(traffic) - flows.iter().map(|(rate, _)| rate).sum::<f64>();
        let customers = snapshot.config.customer_weights();
        let rate = bytes(own.rate);
        self.entitlements = entitlements(&config.queue.params, rate, &customers, &flows, others.max(0.0));
        let counts = counts(own);
        let new = [0, 1].map(|at| counts[at].saturating_sub(self.counts[at]) as f32);
        self.counts = counts;
        let sojourn = |share| traffic.sojourn.quantile(share).unwrap_or_default().as_nanos() as f32 / 1e3;
        self.all.push(
            traffic.number,
            [rate as f32, total(traffic) as f32, sojourn(0.5), sojourn(0.95), new[0], new[1]],
        );
        for (at, (flow, (rate, _))) in traffic.flows.iter().zip(&flows).enumerate() {
            let entitlement = self.entitlement(at).map_or(f32::NAN, |share| share as f32);
            let key = (Arc::clone(&flow.rule), flow.packets.text());
            let kept = self.flows.entry(key).or_insert_with(|| Kept::new(numbered));
            kept.series.push(traffic.number, [*rate as f32, entitlement]);
        }
        let entitlements = self.entitlements.as_deref();
        self.customers.note(&snapshot.config, direction, traffic, entitlements, numbered);
        forget_silent(&mut self.flows, self.all.next(), MAX_KEPT);
        self.latest = Arc::clone(traffic);
    }

    fn entitlement(&self, at: usize) -> Option<f64> {
        self.entitlements.as_ref()?.get(at).copied()
    }

    /// The last second.
    fn json(&self) -> Value {
        let traffic = &self.latest;
        let flow = |(at, flow): (usize, &FlowTraffic)| {
            let packets = flow.packets.text();
            let kept = self.flows.get(&(Arc::clone(&flow.rule), packets.clone()));
            json!({
                "number": kept.map(|kept| kept.number),
                "rule": *flow.rule,
                "flow": packets,
                "weight": flow.terms.weight.get(),
                "guarantee_bytes_per_second": whole_number(bytes(flow.terms.guarantee)),
                "bytes_per_second": whole_number(rate_of(flow, traffic)),
                "entitlement_bytes_per_second": self.entitlement(at).map(whole_number),
            })
        };
        let quantile = |share| traffic.sojourn.quantile(share).map(Span::as_secs_f64);
        json!({
            "second": traffic.number,
            "active_flows": traffic.active,
            "sent_bytes_per_second": whole_number(total(traffic)),
            "sojourn_seconds": { "0.5": quantile(0.5), "0.95": quantile(0.95) },
            "flows": traffic.flows.iter().enumerate().take(SHOWN).map(flow).collect::<Vec<_>>(),
            "active_customers": self.customers.active(),
            "customers": self.customers.latest(),
        })
    }
}

/// Removes entries beyond `most`, those that have been silent longest first, and entries older than an hour.
/// `newest` is the second to come.
fn forget_silent<K: Ord>(all: &mut BTreeMap<K, Kept>, newest: u64, most: usize) {
    all.retain(|_, kept| kept.series.next() + SECONDS as u64 > newest);
    let excess = all.len().saturating_sub(most);
    if excess > 0 {
        let mut ages: Vec<(u64, u64)> = all.values().map(|kept| (kept.series.next(), kept.number)).collect();
        let (_, last, _) = ages.select_nth_unstable(excess - 1);
        let last = *last;
        all.retain(|_, kept| (kept.series.next(), kept.number) > last);
    }
}

fn bytes(rate: Rate) -> f64 {
    rate.as_bit() as f64 / 8.0
}

fn rate_of(flow: &FlowTraffic, traffic: &Traffic) -> f64 {
    per_second(flow.bytes.get(), traffic.span)
}

fn total(traffic: &Traffic) -> f64 {
    per_second(traffic.total.get(), traffic.span)
}

fn per_second(bytes: u64, span: Span) -> f64 {
    if span == Span::ZERO { 0.0 } else { bytes as f64 / span.as_secs_f64() }
}

/// Packets dropped and marked.
fn counts(direction: &DirectionSnapshot) -> [u64; 2] {
    let rules = direction.accounts.iter();
    rules.fold([0; 2], |[dropped, marked], (_, counts)| {
        [dropped + counts.dropped.iter().sum::<u64>(), marked + counts.marked]
    })
}

/// Rounds to a whole number.
const fn whole_number(value: f64) -> u64 {
    value.round() as u64
}

/// A whole number as JSON; null if it is unknown.
fn whole(value: f32) -> Value {
    if value.is_nan() { Value::Null } else { json!(value.round() as u64) }
}

/// Formats a time as JSON in seconds; null if it is unknown.
fn from_micros(value: f32) -> Value {
    if value.is_nan() { Value::Null } else { json!(f64::from(value.round()) / 1e6) }
}

#[cfg(test)]
mod tests;
