//! The packets of a host, one by one.

use std::vec::Vec;

use super::hosts::Hosts;
use super::*;
use crate::aqm::tail::TailDropParams;
use crate::packet::Ecn;
use crate::packet::HostPair;
use crate::param::NoParams;
use crate::system::any::SchedulerParams;
use crate::system::any::{BufferParams, PolicyParams};
use crate::testing::{Log, packet};
use crate::units::Weight;
use crate::units::{Bytes, Packets};

fn fifo(isolate: Isolate, limit: u64) -> Isolated<SimplePacket> {
    let kind = DisciplineKind::Buffered(BufferParams {
        schedule: SchedulerParams::Fifo(NoParams),
        drop: PolicyParams::Tail(TailDropParams { limit: Some(Limit::Packets(Packets::new(limit)).into()) }),
    });
    // Scenarios refuse this combination, but it shows the order in which packets of a host stand for its
    // tokens.
    let params = IsolatedParams { isolate, kind: Box::new(kind) };
    Isolated::new(&params, &LinkContext::new(Rate::from_mbit(10), 1, "link"))
}

fn served(queue: &mut Isolated<SimplePacket>) -> Vec<u32> {
    let mut log = Log::default();
    core::iter::from_fn(|| queue.dequeue(Time::ZERO, &mut log)).map(|packet| packet.id).collect()
}

#[test]
fn a_small_flow_keeps_its_packet_when_its_host_has_to_drop_one() {
    let (mut queue, mut log) = (fifo(Isolate::Source, 3), Log::default());
    // All flows belong to one host: flow 1 fills the buffer, flow 2 arrives.
    for (id, flow) in [(1, 1), (2, 1), (3, 1), (4, 2)] {
        queue.enqueue(Time::ZERO, packet(id, flow, 1_000), &mut log);
    }
    assert_eq!(log.dropped, [(Time::ZERO, 3, DropReason::Overflow)]);
    assert_eq!(served(&mut queue), [1, 4, 2]);
}

#[test]
fn a_light_flow_with_one_packet_does_not_lose_each() {
    let (mut queue, mut log) = (fifo(Isolate::Source, 2), Log::default());
    queue.set_flow(FlowId(1), FlowSetting::Weight(Weight::new(4.0).unwrap()));
    let mut left = [0; 3];
    for id in 0..100 {
        // An AQM has this effect: the host never has more than two packets.
        for flow in [1, 2] {
            queue.enqueue(Time::from_millis(id), packet(0, flow, 1_000), &mut log);
        }
        let packet = queue.dequeue(Time::from_millis(id), &mut log).unwrap();
        left[packet.flow.slot()] += 1;
    }
    assert!(left[2] >= 20, "{left:?}");
}

#[test]
fn a_turn_is_worth_the_largest_packet_times_the_weight() {
    let (mut queue, mut log) = (fifo(Isolate::Source, 99), Log::default());
    queue.set_flow(FlowId(2), FlowSetting::Weight(Weight::new(2.0).unwrap()));
    // Flow 1 has 600 B a turn, flow 2 1200 B.
    for (id, flow, size) in
        [(1, 1, 400), (2, 1, 400), (3, 1, 400), (4, 2, 600), (5, 2, 300), (6, 2, 300), (7, 2, 100)]
    {
        queue.enqueue(Time::ZERO, packet(id, flow, size), &mut log);
    }
    assert_eq!(served(&mut queue), [1, 4, 5, 6, 2, 3, 7]);
}

#[test]
fn a_mark_goes_to_the_next_packet_of_the_host_that_can_be_marked() {
    let mut hosts = Hosts::new(Isolate::Source, Weight::ONE);
    let capable = SimplePacket { ecn: Ecn::Ect1, ..packet(2, 1, 100) };
    let tokens = [packet(1, 1, 100), capable, capable].map(|packet| hosts.admit(Time::ZERO, packet));
    assert_eq!(tokens.map(|token| token.ecn), [Ecn::NotEct, Ecn::Ect1, Ecn::Ect1]);
    // The discipline marks the second token and serves it first.
    let marked = [SimplePacket { ecn: Ecn::Ce, ..tokens[1] }, tokens[0], tokens[2]];
    let marks = marked.map(|token| {
        let packet = hosts.serve(&token).unwrap();
        hosts.marks(&token, &packet)
    });
    assert_eq!(marks, [false, true, false]);
    // A packet that arrived with a mark does not count as marked by the discipline.
    let came = hosts.admit(Time::ZERO, SimplePacket { ecn: Ecn::Ce, ..capable });
    assert_eq!(came.ecn, Ecn::Ect0);
}

#[test]
fn a_token_pays_for_what_was_dropped_by_another_of_another_size() {
    let mut hosts = Hosts::new(Isolate::Source, Weight::ONE);
    let [large, _, small] = [(1, 1, 1_500), (2, 1, 1_500), (3, 2, 40)].map(|(id, flow, size)| {
        let token = hosts.admit(Time::ZERO, packet(id, flow, size));
        assert_eq!(token.size, Bytes::new(size));
        token
    });
    // The small token is dropped, and with it a large packet: the next tokens cost 1460 B less, but at least
    // 40.
    assert_eq!(hosts.drop_for(&small).map(|packet| packet.id), Some(2));
    let sizes = [1_000, 1_000, 1_000].map(|size| hosts.admit(Time::ZERO, packet(4, 3, size)).size.get());
    assert_eq!(sizes, [40, 500, 1_000]);
    assert_eq!(hosts.serve(&large).map(|packet| packet.id), Some(1));
}

#[test]
fn memory_is_bounded_by_flows_hosts_and_packets() {
    let mut hosts = Hosts::new(Isolate::Both, Weight::ONE);
    let count = 10_000;
    for host in 0..3 {
        for flow in 0..count {
            hosts.set_hosts(FlowId(flow), HostPair { source: host, destination: 100 + flow });
        }
        let tokens: Vec<_> =
            (0..count).map(|flow| hosts.admit(Time::ZERO, packet(flow, flow, 100))).collect();
        for token in tokens {
            hosts.serve(&token);
        }
    }
    // 256 bytes per flow, 160 per host, 480 per pair of hosts: each flow has a destination, and destinations
    // double the numbers of hosts. Pairs are stored for the maximum number with packets at the same time,
    // whichever they were.
    let (flows, ends) = (count as usize, 2 * (count as usize + 100));
    assert!(hosts.bytes() <= 256 * flows + 160 * ends + 480 * flows, "{}", hosts.bytes());
}

#[test]
fn peers_take_turns_and_that_with_the_most_bytes_loses_a_packet() {
    let (mut queue, mut log) = (fifo(Isolate::Both, 5), Log::default());
    for (flow, source) in [(1, 1), (2, 2), (3, 2), (4, 2)] {
        queue.set_flow(FlowId(flow), FlowSetting::Hosts(HostPair { source, destination: 0 }));
    }
    // The first packet belongs to its source, all others to the destination, which has two peers by then.
    for (id, flow) in [(1, 2), (2, 1), (3, 2), (4, 3), (5, 4), (6, 1)] {
        queue.enqueue(Time::ZERO, packet(id, flow, 1_000), &mut log);
    }
    // Each flow of the other peer has one packet: the flow whose turn is furthest loses it.
    assert_eq!(log.dropped, [(Time::ZERO, 5, DropReason::Overflow)]);
    assert_eq!(served(&mut queue), [1, 2, 3, 6, 4]);
}
