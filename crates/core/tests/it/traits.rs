//! The traits in the catalogue's entries against the behaviour of the disciplines.

use apportion_core::label::Label;
use apportion_core::param::{Entry, GoesBy, Heeds, Inside, Role, Shares};
use apportion_core::random::Stream;
use apportion_core::system::{Catalog, LinkContext, LinkQueue};
use apportion_core::units::{Rate, Span, Time};
use apportion_core::{Colour, HostPair, LabelKind, Packet as _, Queue as _};

use crate::common::{Log, SimplePacket, build, packet, read};

/// Disciplines, without classes and shapers.
fn disciplines() -> impl Iterator<Item = &'static Entry> {
    let all = Catalog::default().disciplines().collect::<Vec<_>>().into_iter();
    all.filter(|entry| entry.role != Role::Shaper && entry.traits.classes.is_none())
}

/// The departures, when four flows, of which the first sends seven times as much as any other, send twice the
/// rate of a link of 10 Mb/s. `prepare` changes each packet before it arrives.
fn leaving(entry: &Entry, prepare: impl Fn(&mut SimplePacket)) -> Vec<SimplePacket> {
    let mut queue = build(entry.name, &[], &[]);
    let (mut stream, mut log, mut sent) = (Stream::new(1, "arrivals"), Log::default(), Vec::new());
    for id in 0..4_000 {
        let now = Time::ZERO + Span::from_micros(400) * u64::from(id);
        let flow = (stream.below(10) as u32).saturating_sub(6);
        let mut arriving = packet(id, flow, 1_000);
        prepare(&mut arriving);
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
        let plain = leaving(entry, |_| ());
        for kind in LabelKind::ALL {
            let writes = plain.iter().any(|packet| packet.label(kind).is_some());
            assert_eq!(entry.traits.writes == Some(kind), writes, "{} writes {kind:?}", entry.name);
            // Labels that claim equal rates, or that the last flow sends nearly everything.
            let of = |last: f64| {
                let label = |packet: &mut SimplePacket| {
                    packet.set_label(kind, Label::new(if packet.flow.0 == 3 { last } else { 2e6 }));
                };
                leaving(entry, label).iter().map(|packet| packet.id).collect::<Vec<_>>()
            };
            assert_eq!(entry.traits.reads == Some(kind), of(2e6) != of(2e7), "{} reads {kind:?}", entry.name);
        }
    }
}

#[test]
fn entries_go_by_what_they_say() {
    for entry in Catalog::default().disciplines().filter(|entry| entry.role != Role::Shaper) {
        let traits = entry.traits;
        let of = |colour| leaving(entry, |packet| packet.colour = colour);
        let ids = |colour| of(colour).iter().map(|packet| packet.id).collect::<Vec<_>>();
        let has_classes = traits.classes.is_some();
        let reports = || read(entry.name, &[]).unwrap().report_interval().is_some();
        // Other tests find the heeded settings and the labels that are read.
        for (what, does) in [
            (GoesBy::Classes, has_classes),
            (GoesBy::Customers, !has_classes && traits.heeds.contains(&Heeds::Customer)),
            (GoesBy::RealRate, traits.heeds.contains(&Heeds::Target)),
            (GoesBy::Tickets, traits.reads == Some(LabelKind::Tickets)),
            (GoesBy::Colours, !has_classes && ids(Colour::Green) != ids(Colour::Red)),
            (GoesBy::Reports, !has_classes && reports()),
        ] {
            assert_eq!(traits.goes_by == Some(what), does, "{} goes by {}", entry.name, what.words());
        }
    }
}

#[test]
fn entries_protect_small_flows_from_a_flood_as_they_say() {
    // Each of three flows sends two packets in ten ms: 2 Mb/s, less than its share of 2.5.
    let small = |entry| leaving(entry, |_| ()).iter().filter(|packet| packet.flow.0 != 0).count();
    for entry in disciplines() {
        let (least, most) = match entry.traits.shares {
            Shares::Given => (1_150, 1_200),
            Shares::Approximate => (900, 1_200),
            // The effect of drops, or of policing by reports and classes, behind a FIFO is not tested here.
            Shares::Kept => continue,
            Shares::Ignored if ["choke", "ramp", "sffc"].contains(&entry.name) => continue,
            Shares::Ignored => (0, 800),
        };
        assert!((least..=most).contains(&small(entry)), "{}: {}", entry.name, small(entry));
    }
}

/// The throughput of a host with one flow on 10 Mb/s next to one with eight, if each flow sends 9 Mb/s; none
/// if refused.
fn of_two_hosts(kind: &str, settings: &[&str]) -> Option<f64> {
    let params = read(kind, &[settings, &["isolate=source"]].concat()).ok()?;
    let hosts = |flow| HostPair { source: u32::from(flow > 0), destination: 9 };
    let hosts: Vec<HostPair> = (0..9).map(hosts).collect();
    let mut queue: LinkQueue<SimplePacket> =
        params.build(&LinkContext { hosts: &hosts, ..LinkContext::new(Rate::from_mbit(10), 1, "link") });
    let (mut log, mut sent, mut id) = (Log::default(), [0_u32; 2], 0);
    // A packet of 1500 B leaves in 1.2 ms, and each flow sends one in 1.333 ms.
    for slot in 0..8_000_u64 {
        let now = Time::ZERO + Span::from_micros(1_200) * slot;
        for flow in 0..9 {
            if slot % 10 != u64::from(flow) {
                queue.enqueue(now, packet(id, flow, 1_500), &mut log);
                id += 1;
            }
        }
        if let Some(packet) = queue.dequeue(now, &mut log).filter(|_| slot >= 3_000) {
            sent[usize::from(packet.flow.0 > 0)] += 1;
        }
    }
    Some(f64::from(sent[0]) / f64::from(sent[0] + sent[1]) * 10.0)
}

#[test]
fn what_isolation_accepts_divides_among_hosts() {
    let of = |role| move |entry: &&'static Entry| entry.role == role;
    let all: Vec<_> = disciplines().collect();
    let mut accepted = 0;
    let mut judge = |kind: &str, settings: &[&str], is_rough: bool| {
        let Some(share) = of_two_hosts(kind, settings) else { return };
        accepted += 1;
        let tolerance = if is_rough { 0.5 } else { 0.25 };
        assert!((share - 5.0).abs() <= tolerance, "{kind} {settings:?}: {share}");
    };
    for system in all.iter().copied().filter(of(Role::System)) {
        judge(system.name, &[], system.traits.shares == Shares::Approximate);
    }
    for scheduler in all.iter().copied().filter(of(Role::Scheduler)) {
        for policy in all.iter().copied().filter(of(Role::Policy)) {
            let drop = format!("drop={}", policy.name);
            judge(scheduler.name, &[&drop], policy.traits.shares == Shares::Approximate);
        }
    }
    // Five schedulers that divide, each with eight policies that keep or divide; two of these behind a FIFO; and seven systems.
    assert!(accepted >= 49, "{accepted}");
}

#[test]
fn division_of_a_set_rate_does_not_fill_a_faster_link() {
    for entry in disciplines() {
        let mut queue = build(entry.name, &[], &[]);
        let (mut log, mut sent) = (Log::default(), 0);
        // Its rate is set to 10 Mb/s. Four flows send 40 Mb/s together, over a link of 30 Mb/s.
        for id in 0..20_000_u64 {
            let now = Time::ZERO + Span::from_micros(200) * id;
            queue.enqueue(now, packet(id as u32, (id % 4) as u32, 1_000), &mut log);
            if id % 4 != 0 {
                sent += usize::from(queue.dequeue(now, &mut log).is_some());
            }
        }
        // C is a third of the link; a little more passes while there is no queue. CSFQ has to measure C first.
        let least = if entry.traits.writes == Some(LabelKind::Rate) { 13_500 } else { 14_900 };
        let expected = if entry.traits.divides_set_rate { 5_000..7_500 } else { least..15_001 };
        assert!(expected.contains(&sent), "{}: {sent} of 15000", entry.name);
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
        // A policy alone stands behind a FIFO.
        let divides = entry.traits.shares >= Shares::Approximate;
        assert_eq!(refused, entry.traits.goes_by.is_some() || !divides, "{}", entry.name);
        assert!(entry.traits.classes.is_none() || refused, "{}", entry.name);
    }
}
