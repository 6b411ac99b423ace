//! Markers at the ends of a flow, on the simulator's packets.

use std::path::Path;

use apportion_core::Packet as _;
use apportion_core::packet::{Ecn, FlowId, LabelKind};
use apportion_core::random::Stream;
use apportion_core::units::{Bytes, Time};
use apportion_runtime::marks::Marks;
use apportion_sim::packet::{Direction, Packet};

/// Returns the tickets of a flow of 1000 t/s after 60 s in which half of the packets, sent every 10 ms, are
/// acknowledged, with one ACK for two.
fn tag(tcp: &str) -> f64 {
    let text = format!(
        "seed = 1\nstop = \"1s\"\nlink.x = {{ from = \"a\", to = \"b\", rate = \"1Mbit\", delay = \"1ms\" }}\n\
         flow.f = {{ from = \"a\", to = \"b\", tickets = 1000, tcp = {tcp} }}\n"
    );
    let suite = apportion_scenario::load(&text, Path::new("x.toml"), &[], &|path| std::fs::read(path));
    let scenario = &suite.expect("a valid scenario").points[0].scenario;
    let stream = |purpose: &str| Stream::new(1, purpose);
    let mut marks = Marks::new(&scenario.flows[0], Time::ZERO, &stream).expect("it is marked");
    let packet = |direction| Packet::new(0, FlowId(0), 0, Bytes::new(500), Ecn::NotEct, direction);
    let mut last = packet(Direction::Forward);
    for i in 1..6_000 {
        let now = Time::from_millis(10 * i);
        if i % 2 == 0 {
            marks.acknowledged(now, &packet(Direction::Reverse), 2 * 500);
        }
        last = packet(Direction::Forward);
        marks.mark(now, &mut last);
    }
    last.label(LabelKind::Tickets).expect("a label").value()
}

#[test]
fn a_delayed_acknowledgement_counts_for_all_that_it_acknowledges() {
    // 100 packets per second: 10 tickets each. If each packet's ACK counted for one, AvgRate would be half:
    // 20, which policing reduces to 14, because x = 2 T · T/x.
    let profile = |more: &str| format!("{{ profile = \"ns2-2000\", segment = \"500B\"{more} }}");
    assert!((tag(&profile(", delayed_ack = \"2 100ms\"")) - 10.0).abs() <= 1.0);
    assert!((tag(&profile("")) - 14.0).abs() <= 1.0);
}
