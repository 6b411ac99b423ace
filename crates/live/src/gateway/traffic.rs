//! Throughput of one direction, second by second: the bytes of each flow, and the sojourn times of packets
//! from port to port.
//!
//! When the number of a flow passes to another one within a second, that flow gets the bytes of the whole
//! second.
//!
//! Cost: an addition in an array and a sample of a [`Histogram`] for each packet; O(flows that sent) for each
//! second. Memory: at most 16 bytes for each flow number and customer, and 30 kB.

use std::sync::Arc;

use apportion_core::packet::{CustomerId, FlowId};
use apportion_core::units::{Bytes, Rate, Span, Time, Weight};
use apportion_runtime::histogram::Histogram;
use apportion_runtime::outcome::Distribution;

use crate::notifications::FlowPackets;

/// Length of a period. Chosen: a viewer follows no shorter one, and it holds 80 full frames at 1 Mbit/s.
pub const PERIOD: Span = Span::from_secs(1);
/// Maximum of flows in a period, the largest first. Chosen: a queue that divides among more gives each less
/// than 0.4 % of the rate.
pub const MAX_FLOWS: usize = 256;

/// Maximum of customers in a period, the largest first. Chosen: two screens of lines.
pub const MAX_CUSTOMERS: usize = 64;

/// Adds up bytes that leave.
#[derive(Debug, Default)]
pub struct Meter {
    /// Bytes by flow number.
    bytes: Vec<Bytes>,
    /// Flows with bytes.
    active: Vec<FlowId>,
    total: Bytes,
    sojourn: Histogram,
    /// Bytes by customer; all zero between periods.
    of_customers: Vec<Bytes>,
}

/// The traffic of a period.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Number of earlier periods.
    pub number: u64,
    /// Length: [`PERIOD`], or more if the thread that moves packets was late.
    pub span: Span,
    /// The largest flows, the largest first.
    pub flows: Vec<FlowTraffic>,
    /// Number of flows that sent.
    pub active: usize,
    /// The largest customers, the largest first. Flows without a customer count as one more,
    /// [`CustomerId::OTHERS`], with an empty name.
    pub customers: Vec<CustomerTraffic>,
    /// Number of customers that sent.
    pub active_customers: usize,
    /// Bytes of all flows.
    pub total: Bytes,
    /// Sojourn times from the arrival at one port to the departure from the other, without the `delay` of the
    /// direction.
    pub sojourn: Distribution,
}

/// Bytes of a flow, and its terms.
#[derive(Clone, Debug)]
pub struct FlowTraffic {
    /// The name of its rule, or of the account of flows without one.
    pub rule: Arc<str>,
    /// The packets of the flow.
    pub(crate) packets: FlowPackets,
    /// The flow's terms.
    pub terms: Terms,
    /// Bytes sent.
    pub bytes: Bytes,
}

/// Bytes of a customer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerTraffic {
    /// The customer's number at that time.
    pub id: CustomerId,
    pub name: Arc<str>,
    /// Bytes sent.
    pub bytes: Bytes,
}

/// The settings of a flow's rule that determine its share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    pub weight: Weight,
    /// The guarantee that the flow holds.
    pub guarantee: Rate,
    pub customer: CustomerId,
}

impl Meter {
    /// Counts a packet of this flow and size that leaves with this sojourn time.
    pub fn sent(&mut self, flow: FlowId, size: Bytes, sojourn: Span) {
        let at = flow.index();
        if at >= self.bytes.len() {
            self.bytes.resize(at + 1, Bytes::ZERO);
        }
        if self.bytes[at] == Bytes::ZERO && size > Bytes::ZERO {
            self.active.push(flow);
        }
        self.bytes[at] += size;
        self.total += size;
        self.sojourn.record(sojourn);
    }

    /// Ends a period of this number and length. `known` returns a flow's rule, packets and terms.
    pub(crate) fn close(
        &mut self,
        number: u64,
        span: Span,
        known: impl Fn(FlowId) -> (Arc<str>, FlowPackets, Terms),
        (customer_of, name_of): (impl Fn(FlowId) -> CustomerId, impl Fn(CustomerId) -> Arc<str>),
    ) -> Traffic {
        let (customers, active_customers) = self.close_customers(customer_of, name_of);
        let mut flows: Vec<(Bytes, FlowId)> = self
            .active
            .drain(..)
            .map(|flow| (std::mem::replace(&mut self.bytes[flow.index()], Bytes::ZERO), flow))
            .collect();
        let active = flows.len();
        let rank = |(bytes, flow): &(Bytes, FlowId)| (std::cmp::Reverse(*bytes), *flow);
        if flows.len() > MAX_FLOWS {
            // Sorting all flows would take longer than packets may wait.
            flows.select_nth_unstable_by_key(MAX_FLOWS, rank);
            flows.truncate(MAX_FLOWS);
        }
        flows.sort_unstable_by_key(rank);
        let describe = |(bytes, flow)| {
            let (rule, packets, terms) = known(flow);
            FlowTraffic { rule, packets, terms, bytes }
        };
        Traffic {
            number,
            span,
            flows: flows.into_iter().map(describe).collect(),
            active,
            customers,
            active_customers,
            total: std::mem::replace(&mut self.total, Bytes::ZERO),
            sojourn: std::mem::take(&mut self.sojourn).distribution(),
        }
    }
}

impl Meter {
    /// The largest customers, and their total number, before flows are closed.
    fn close_customers(
        &mut self,
        customer_of: impl Fn(FlowId) -> CustomerId,
        name_of: impl Fn(CustomerId) -> Arc<str>,
    ) -> (Vec<CustomerTraffic>, usize) {
        let mut seen = Vec::new();
        for flow in &self.active {
            let (id, sent) = (customer_of(*flow), self.bytes[flow.index()]);
            let at = id.0 as usize;
            if at >= self.of_customers.len() {
                self.of_customers.resize(at + 1, Bytes::ZERO);
            }
            if self.of_customers[at] == Bytes::ZERO {
                seen.push(id);
            }
            self.of_customers[at] += sent;
        }
        let take =
            |id: CustomerId| (std::mem::replace(&mut self.of_customers[id.0 as usize], Bytes::ZERO), id);
        let mut all: Vec<(Bytes, CustomerId)> = seen.into_iter().map(take).collect();
        let active = all.len();
        let rank = |(bytes, id): &(Bytes, CustomerId)| (std::cmp::Reverse(*bytes), *id);
        if all.len() > MAX_CUSTOMERS {
            all.select_nth_unstable_by_key(MAX_CUSTOMERS, rank);
            all.truncate(MAX_CUSTOMERS);
        }
        all.sort_unstable_by_key(rank);
        let named = |(bytes, id)| CustomerTraffic { id, name: name_of(id), bytes };
        (all.into_iter().map(named).collect(), active)
    }
}

/// The length of the period that began at `start`, if it is over at `now`.
#[must_use]
pub fn is_over(start: Time, now: Time) -> Option<Span> {
    let span = now.since(start);
    (span >= PERIOD).then_some(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(flow: FlowId) -> (Arc<str>, FlowPackets, Terms) {
        (flow.0.to_string().into(), FlowPackets::Rule, Terms::default())
    }

    /// Flows below 500 belong to one customer, and each other flow to its own.
    fn customer(flow: FlowId) -> CustomerId {
        CustomerId(flow.0.saturating_sub(499))
    }

    fn name(customer: CustomerId) -> Arc<str> {
        format!("customer {}", customer.0).into()
    }

    #[test]
    fn the_largest_flows_are_kept_apart_and_the_others_counted() {
        let mut meter = Meter::default();
        // Flow n sends n bytes, in two packets if n is odd.
        for flow in 1..=1_000_u32 {
            let odd = u64::from(flow % 2);
            for size in [u64::from(flow) - odd, odd] {
                meter.sent(FlowId(flow), Bytes::new(size), Span::from_millis(u64::from(flow)));
            }
        }
        let traffic = meter.close(7, PERIOD, known, (customer, name));
        assert_eq!((traffic.flows.len(), traffic.active, traffic.number), (MAX_FLOWS, 1_000, 7));
        assert_eq!(traffic.total, Bytes::new(500_500));
        let sent: Vec<u64> = traffic.flows.iter().map(|flow| flow.bytes.get()).collect();
        assert_eq!(sent, (745..=1_000).rev().collect::<Vec<_>>());
        assert_eq!(&*traffic.flows[0].rule, "1000");
        let median = traffic.sojourn.quantile(0.5).unwrap().as_secs_f64();
        assert!((median / 0.5 - 1.0).abs() < 0.01, "{median}");
        // Flows 1 to 499 in total, and then the largest flow alone.
        let customers: Vec<_> = traffic.customers.iter().map(|it| (&*it.name, it.bytes.get())).collect();
        assert_eq!((customers.len(), traffic.active_customers), (MAX_CUSTOMERS, 502));
        assert_eq!(customers[..3], [("customer 0", 124_750), ("customer 501", 1_000), ("customer 500", 999)]);
        // The next period starts from zero.
        meter.sent(FlowId(3), Bytes::new(9), Span::from_millis(1));
        let next = meter.close(8, PERIOD, known, (customer, name));
        assert_eq!((next.flows.len(), next.flows[0].bytes, next.total), (1, Bytes::new(9), Bytes::new(9)));
        assert_eq!((next.sojourn.count, next.customers.len(), next.customers[0].bytes.get()), (1, 1, 9));
    }

    #[test]
    fn packets_without_a_byte_take_no_memory() {
        let mut meter = Meter::default();
        (0..100).for_each(|_| meter.sent(FlowId(0), Bytes::ZERO, Span::ZERO));
        assert!(meter.active.is_empty());
    }
}
