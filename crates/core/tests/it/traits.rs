//! What entries of the catalogue say of themselves against what they do.

use apportion_core::label::Label;
use apportion_core::param::{Entry, Heeds, Inside, Role};
use apportion_core::random::Stream;
use apportion_core::system::Catalog;
use apportion_core::units::{Span, Time};
use apportion_core::{LabelKind, Packet as _, Queue as _};

use crate::common::{Log, SimplePacket, build, packet, read};

/// Those without classes and shapers.
fn disciplines() -> impl Iterator<Item = &'static Entry> {
    let all = Catalog::default().disciplines().collect::<Vec<_>>().into_iter();
    all.filter(|entry| entry.role != Role::Shaper && entry.traits.classes.is_none())
}

/// What leaves of arrivals of four flows, the first of which sends seven times as much as another, in twice what a link of
/// 10 Mb/s carries. `label` is on the packets of a flow.
fn leaving(entry: &Entry, label: impl Fn(u32) -> Option<(LabelKind, Label)>) -> Vec<SimplePacket> {
    let mut queue = build(entry.name, &[], &[]);
    let (mut stream, mut log, mut sent) = (Stream::new(1, "arrivals"), Log::default(), Vec::new());
    for id in 0..4_000 {
        let now = Time::ZERO + Span::from_micros(400) * u64::from(id);
        let flow = (stream.below(10) as u32).saturating_sub(6);
        let mut arriving = packet(id, flow, 1_000);
        if let Some((kind, label)) = label(flow) {
            arriving.set_label(kind, label);
        }
        queue.enqueue(now, arriving, &mut log);
        if id % 2 == 0 {
            sent.extend(queue.dequeue(now, &mut log));
        }
    }
    sent
}

#[test]
fn labels_are_written_and_read_as_entries_say() {
    for entry in disciplines() {
        let plain = leaving(entry, |_| None);
        for kind in LabelKind::ALL {
            let writes = plain.iter().any(|packet| packet.label(kind).is_some());
            assert_eq!(entry.traits.writes == Some(kind), writes, "{} writes {kind:?}", entry.name);
            // Labels that say that all flows send alike, or that the last sends nearly all.
            let of = |last: f64| {
                let label = |flow| Some((kind, Label::new(if flow == 3 { last } else { 2e6 })));
                leaving(entry, label).iter().map(|packet| packet.id).collect::<Vec<_>>()
            };
            assert_eq!(entry.traits.reads == Some(kind), of(2e6) != of(2e7), "{} reads {kind:?}", entry.name);
        }
    }
}

#[test]
fn what_gives_shares_keeps_a_flood_from_the_packets_of_small_flows() {
    // A flow of two packets in ten ms has 2 Mb/s, less than its share of 2.5.
    let small = |entry| leaving(entry, |_| None).iter().filter(|packet| packet.flow.0 != 0).count();
    let (all, fifo) = (1_150, small(Catalog::default().find("fifo").unwrap()));
    assert!(fifo < 700, "a FIFO gives them {fifo}");
    for entry in disciplines().filter(|entry| entry.traits.gives_shares) {
        assert!(small(entry) > all, "{}: {}", entry.name, small(entry));
    }
}

#[test]
fn what_divides_a_part_needs_nothing_that_the_whole_does_not_pass_on() {
    for entry in Catalog::default().disciplines().filter(|entry| entry.traits.inside == Inside::Part) {
        let traits = entry.traits;
        assert!(traits.heeds.iter().all(|kind| [Heeds::Weight, Heeds::Rtt].contains(kind)), "{}", entry.name);
        assert!(
            traits.reads.is_none() && traits.writes.is_none() && traits.classes.is_none(),
            "{}",
            entry.name
        );
    }
}

#[test]
fn what_has_classes_refuses_isolation_as_does_what_goes_by_flows() {
    for entry in Catalog::default().disciplines().filter(|entry| entry.role != Role::Shaper) {
        let refused = read(entry.name, &["isolate=source"]).is_err();
        assert_eq!(refused, entry.traits.goes_by.is_some(), "{}", entry.name);
        assert!(entry.traits.classes.is_none() || refused, "{}", entry.name);
    }
}
