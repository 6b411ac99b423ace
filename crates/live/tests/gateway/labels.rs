//! Two gateways in a row: the edge writes labels, the core goes by them.

use apportion_core::units::Span;
use apportion_live::frame;
use apportion_live::wire_label;

use crate::common::{Wire, enter, host, open, pause, start, udp, wire_between};

const EDGE: &str = "inside = \"near\"\noutside = \"m1\"\ndown.rate = \"100Mbit\"\n[up]\nrate = \"100Mbit\"\n\
    queue = { kind = \"csfq\", role = \"edge\" }\nlabels = { writes = true }\n\
    [[rule]]\nname = \"two\"\nfrom_port = 1002\nweight = 2\n[[rule]]\nname = \"three\"\nfrom_port = 1003\nweight = 3\n";
const CORE: &str = "inside = \"m2\"\noutside = \"far\"\ndown.rate = \"100Mbit\"\n[up]\nrate = \"6Mbit\"\n\
    queue = { kind = \"csfq\", role = \"core\", egress = true }\nlabels = { reads = true }\n";

/// An atomic packet of UDP.
fn atomic(port: u16, length: usize) -> Vec<u8> {
    let mut frame = udp((port, 9), &vec![0; length]);
    assert_eq!(frame[20] & 0x40, 0x40, "etherparse sets DF");
    frame[18..20].fill(0);
    let sum: u32 = (14..34)
        .step_by(2)
        .filter(|at| *at != 24)
        .map(|at| u32::from(u16::from_be_bytes([frame[at], frame[at + 1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    frame[24..26].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    frame
}

/// Three flows of 6 Mb/s each for `milliseconds`; packets of each that come out in the second half.
fn shares(edge: &str, milliseconds: u64) -> [u64; 3] {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    wire_between();
    let gateways = [start(open(edge), |_| ()), start(open(CORE), |_| ())];
    let sender = near.namespace.spawn("sender", move || {
        let mut wire = Wire::open();
        let clock = apportion_live::clock::Clock::start();
        let frames = [1_001, 1_002, 1_003].map(|port| atomic(port, 958));
        // 1000 B each: 750 packets a second.
        for round in 0..milliseconds * 3 / 4 {
            for frame in &frames {
                wire.send(frame);
            }
            let due = apportion_core::units::Time::from_nanos((round + 1) * 4_000_000 / 3);
            while clock.until(due) > Span::ZERO {
                pause(1);
            }
        }
    });
    let receiver = far.namespace.spawn("receiver", move || {
        let mut wire = Wire::open();
        let clock = apportion_live::clock::Clock::start();
        let mut counts = [0; 3];
        let end = apportion_core::units::Time::from_millis(milliseconds);
        let half = apportion_core::units::Time::from_millis(milliseconds / 2);
        while clock.until(end) > Span::ZERO {
            let Some(frame) = wire.next(100) else { continue };
            let parsed = frame::parse(&frame).unwrap();
            assert_eq!(wire_label::read(&frame, &parsed), None, "the core takes labels off");
            let port = u16::from_be_bytes([frame[34], frame[35]]);
            if clock.until(half) == Span::ZERO {
                counts[usize::from(port - 1_001)] += 1;
            }
        }
        counts
    });
    sender.unwrap().join().unwrap();
    let counts = receiver.unwrap().join().unwrap();
    for gateway in gateways {
        gateway.stop();
    }
    counts
}

pub fn an_edge_and_a_core_divide_by_weights() {
    // 6 Mb/s by 1 : 2 : 3, over 3 s: 1, 2 and 3 Mb/s, that is 375, 750 and 1125 packets of 1000 B. Estimates take
    // a part of a second to settle, and drops are by chance.
    let counts = shares(EDGE, 6_000);
    let sum: u64 = counts.iter().sum();
    for (count, weight) in counts.into_iter().zip([1.0, 2.0, 3.0]) {
        let share = count as f64 / sum as f64 * 6.0;
        assert!((share / weight - 1.0).abs() < 0.25, "{counts:?}");
    }
    assert!(sum > 1_800, "{counts:?}");
}

pub fn a_label_from_outside_is_not_believed() {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    let mut gateway = open(
        &EDGE.replace("outside = \"m1\"", "outside = \"far\"").replace("writes = true", "reads = false"),
    );
    let mut a = near.namespace.run(Wire::open).unwrap();
    let mut b = far.namespace.run(Wire::open).unwrap();
    let mut frame = atomic(1_001, 100);
    let parsed = frame::parse(&frame).unwrap();
    let plain = frame.clone();
    let spoofed = apportion_core::label::Label::new(1.0);
    assert!(wire_label::write(&mut frame, &parsed, apportion_core::packet::LabelKind::Rate, spoofed));
    a.send(&frame);
    let until = gateway.now() + Span::from_millis(200);
    gateway.run_until(until, None).unwrap();
    // Off, with a checksum that is right: as it was before the label.
    assert_eq!(b.next(1_000), Some(plain));
    let told = crate::common::metrics(&mut gateway);
    assert!(told.contains("labels_disbelieved_total{direction=\"up\"} 1\n"), "{told}");
}
