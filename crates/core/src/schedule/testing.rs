//! Helpers that the tests of the tag-based schedulers share.

use std::vec::Vec;

use super::Scheduler;
use crate::flow_setting::FlowSetting;
use crate::packet::FlowId;
use crate::packet::SimplePacket;
use crate::testing::packet;
use crate::units::{Time, Weight};

/// Sets these weights of flows.
pub fn weighted<S: Scheduler<SimplePacket>>(mut scheduler: S, weights: &[f64]) -> S {
    for (flow, &weight) in (0..).zip(weights) {
        scheduler.set_flow(FlowId(flow), FlowSetting::Weight(Weight::new(weight).unwrap()));
    }
    scheduler
}

/// Pushes packets of these flows and sizes, numbered from `first`.
pub fn push(scheduler: &mut impl Scheduler<SimplePacket>, first: u32, packets: &[(u32, u64)]) {
    for (id, &(flow, size)) in (first..).zip(packets) {
        scheduler.push(Time::ZERO, packet(id, flow, size));
    }
}

/// Serves at most `n` packets.
pub fn serve(scheduler: &mut impl Scheduler<SimplePacket>, n: usize) -> Vec<u32> {
    (0..n).map_while(|_| scheduler.pop(Time::ZERO)).map(|queued| queued.packet.id).collect()
}

/// The order in which 122 packets of three flows leave.
pub fn order(scheduler: &mut impl Scheduler<SimplePacket>) -> Vec<u32> {
    push(scheduler, 0, &[(0, 900), (1, 333), (2, 40), (0, 40), (1, 1_500), (2, 77)].repeat(20));
    let mut order = serve(scheduler, 60);
    push(scheduler, 120, &[(1, 800), (2, 10)]);
    order.extend(serve(scheduler, 99));
    assert_eq!(order.len(), 122);
    order
}
