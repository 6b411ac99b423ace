//! The Manager among honest, absent and lying neighbours.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use super::message::{Answer, FlowState, Proof, Report};
use super::*;

/// A port through which nothing of interest leaves.
const UP: Port = Port(0);
/// The port by which flows leave.
const DOWN: Port = Port(1);

/// What surrounds a Manager: which flows leave where, and what it heard.
#[derive(Default)]
struct Around {
    carried: BTreeMap<u32, Port>,
    heard: Vec<(Port, FlowReport)>,
}

impl Around {
    fn carrying(flows: impl IntoIterator<Item = u32>) -> Self {
        Self { carried: flows.into_iter().map(|flow| (flow, DOWN)).collect(), heard: Vec::new() }
    }

    /// Flows heard of, in order.
    fn heard(&self) -> Vec<u32> {
        self.heard.iter().map(|(_, report)| report.flow.0).collect()
    }
}

fn key(flow: u32) -> FlowKey {
    FlowKey::from_bytes(&flow.to_be_bytes()).unwrap()
}

impl Forwarding for Around {
    fn key(&self, flow: FlowId) -> Option<FlowKey> {
        self.carried.contains_key(&flow.0).then(|| key(flow.0))
    }
    fn flow(&self, key: &FlowKey) -> Option<FlowId> {
        let flow = u32::from_be_bytes(key.as_bytes().try_into().ok()?);
        self.carried.contains_key(&flow).then_some(FlowId(flow))
    }
    fn carries(&self, port: Port, flow: FlowId) -> bool {
        self.carried.get(&flow.0) == Some(&port)
    }
    fn heard(&mut self, port: Port, report: FlowReport) {
        self.heard.push((port, report));
    }
}

/// A router: its Manager with what surrounds it.
struct Node {
    manager: Manager,
    around: Around,
}

fn node(id: u128, key: Option<&[u8]>, flows: impl IntoIterator<Item = u32>) -> Node {
    node_with(id, key, flows, |_| ())
}

fn node_with(
    id: u128,
    key: Option<&[u8]>,
    flows: impl IntoIterator<Item = u32>,
    change: impl FnOnce(&mut ManagerParams),
) -> Node {
    let mut params = ManagerParams::default();
    change(&mut params);
    let manager = Manager::new(RouterId(id), &params, key, Stream::new(id as u64, "sffc"));
    Node { manager, around: Around::carrying(flows) }
}

/// Half of 1000 B left in 50 ms.
fn report_of(flow: u32) -> FlowReport {
    let (arrived, departed) = (Bytes::new(1_000), Bytes::new(500));
    FlowReport { flow: FlowId(flow), arrived, departed, interval: Span::from_millis(50) }
}

impl Node {
    fn report(&mut self, now: Time, flows: impl IntoIterator<Item = u32>) {
        let reports: Vec<_> = flows.into_iter().map(report_of).collect();
        self.manager.report(now, &reports, &self.around);
    }

    fn receive(&mut self, now: Time, port: Port, bytes: &[u8]) -> Handled {
        self.manager.receive(now, port, bytes, &mut self.around)
    }

    fn on_timer(&mut self, now: Time) {
        self.manager.on_timer(now, &self.around);
    }

    fn sent(&mut self) -> Vec<Transmit> {
        core::iter::from_fn(|| self.manager.transmit()).collect()
    }

    /// The destinations and messages that wait to be sent.
    fn said(&mut self) -> Vec<(Destination, Message)> {
        let key = self.manager.key.clone();
        let read = |out: Transmit| (out.to, Message::decode(&out.bytes, key.as_ref()).unwrap());
        self.sent().into_iter().map(read).collect()
    }

    fn count(&self, name: &str) -> f64 {
        let mut found = None;
        self.manager.statistics(&mut |shown, value| {
            if shown == name {
                found = Some(value);
            }
        });
        found.unwrap_or_else(|| panic!("no statistic {name}"))
    }
}

/// Carries messages between an upstream router and the one behind its port `DOWN`, without delay, until both are
/// silent.
fn exchange(now: Time, upstream: &mut Node, downstream: &mut Node) {
    for _ in 0..10 {
        for out in downstream.sent() {
            upstream.receive(now, DOWN, &out.bytes);
        }
        for out in upstream.sent() {
            downstream.receive(now, UP, &out.bytes);
        }
    }
}

fn ms(ms: u64) -> Time {
    Time::from_millis(ms)
}

#[test]
fn a_neighbour_is_found_by_broadcast_and_hears_the_report_that_waited() {
    let (mut up, mut down) = (node(1, None, [7]), node(2, None, [7]));
    down.report(ms(0), [7]);
    exchange(ms(0), &mut up, &mut down);
    assert_eq!(up.around.heard, [(DOWN, report_of(7))]);
    // The second goes there at once.
    down.report(ms(50), [7]);
    let said = down.said();
    assert!(matches!(&said[..], [(Destination::Router(RouterId(1)), Message::Report(_))]), "{said:?}");
    assert_eq!(down.manager.next_timer(), None);
}
