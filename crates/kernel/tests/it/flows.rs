//! The classifiers that assign classes to flows and prefixes, without a device.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use apportion_kernel::program::{End, FlowBy, FlowClasses, FlowKey, PrefixClasses};

use crate::common::{frame_v4, frame_v6, is_possible, priority, run};

const V4: FlowKey = FlowKey {
    addresses: [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 77)), IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9))],
    ports: [0x1f90, 0x2382],
    protocol: 17,
};
const V6: FlowKey = FlowKey {
    addresses: [IpAddr::V6(Ipv6Addr::from_bits(0x2020_2020_2020_2020_2020_2020_2020_2020)); 2],
    ..V4
};

/// Returns the class that a frame gets if `flow` has the class 7.
fn class(by: FlowBy, flow: &FlowKey, frame: &[u8]) -> u32 {
    let mut classes = FlowClasses::load(by).unwrap();
    classes.set(flow, 7).unwrap();
    let class = priority(classes.program().unwrap(), frame);
    assert!(classes.forget(flow) && !classes.forget(flow));
    assert_eq!(priority(classes.program().unwrap(), frame), 0, "a flow that is forgotten");
    class
}

#[test]
fn flows_are_known_by_the_fields_that_count() {
    if !is_possible() {
        return;
    }
    for tags in 0..=2 {
        let (v4, v6) = (frame_v4(0x4000, 17, tags), frame_v6(tags));
        for by in [FlowBy::Five, FlowBy::Source, FlowBy::Destination] {
            assert_eq!([class(by, &V4, &v4), class(by, &V6, &v6)], [7, 7], "{by:?}");
            assert_eq!([class(by, &V6, &v4), class(by, &V4, &v6)], [0, 0], "{by:?}");
        }
    }
    let v4 = frame_v4(0x4000, 17, 0);
    let other = [FlowKey { ports: [1, 2], ..V4 }, FlowKey { protocol: 6, ..V4 }];
    assert_eq!(other.map(|flow| class(FlowBy::Five, &flow, &v4)), [0, 0]);
    assert_eq!(other.map(|flow| class(FlowBy::Source, &flow, &v4)), [7, 7]);
    // Another destination.
    let turned = FlowKey { addresses: [V4.addresses[0], V4.addresses[0]], ..V4 };
    assert_eq!([FlowBy::Source, FlowBy::Destination].map(|by| class(by, &turned, &v4)), [7, 0]);
}

#[test]
fn fragments_have_no_ports() {
    if !is_possible() {
        return;
    }
    let without = FlowKey { ports: [0, 0], ..V4 };
    for (fragment, classes) in [(0x4000, [7, 0]), (0x2000, [0, 7]), (0x00b9, [0, 7])] {
        let frame = frame_v4(fragment, 17, 0);
        assert_eq!([V4, without].map(|flow| class(FlowBy::Five, &flow, &frame)), classes, "{fragment:#x}");
    }
    let other = frame_v4(0x4000, 89, 0);
    assert_eq!(
        class(FlowBy::Five, &FlowKey { protocol: 89, ..without }, &other),
        7,
        "a protocol without ports"
    );
}

#[test]
fn the_longest_prefix_of_the_right_end_decides() {
    if !is_possible() {
        return;
    }
    // Source and destination of the IPv4 frames, each with a shorter and a longer prefix, and both addresses
    // of IPv6.
    let prefixes = [
        ("192.0.0.0", 8, 1),
        ("192.0.2.64", 27, 2),
        ("192.0.2.78", 32, 3),
        ("198.51.100.0", 24, 4),
        ("198.51.100.9", 32, 5),
        ("2020::", 16, 6),
        ("2020:2020::", 33, 7),
    ];
    let load = |end, others| {
        let mut classes = PrefixClasses::load(end, others).unwrap();
        for (address, length, class) in prefixes {
            classes.set(address.parse().unwrap(), length, class).unwrap();
        }
        classes
    };
    let (mut source, mut destination) = (load(End::Source, Some(9)), load(End::Destination, Some(9)));
    for tags in 0..=2 {
        let [v4, v6] = [frame_v4(0x4000, 17, tags), frame_v6(tags)];
        let mut of = |frame: &[u8]| {
            [&mut source, &mut destination].map(|classes| priority(classes.program().unwrap(), frame))
        };
        // Fragments get classes too, since only addresses count.
        assert_eq!([of(&v4), of(&frame_v4(0x00b9, 6, tags)), of(&v6)], [[2, 5], [2, 5], [7, 7]], "{tags}");
        let mut other = v4;
        other[14 + 4 * tags + 12] = 193;
        assert_eq!(of(&other), [9, 5]);
        let arp = [&[2; 12][..], &[8, 6], &[0; 46]].concat();
        assert_eq!(of(&arp), [9, 9]);
    }
    // Without a class for the others, packets outside all prefixes are dropped, and so are those of a prefix
    // with class 0.
    let mut strict = load(End::Source, None);
    strict.set("192.0.2.64".parse().unwrap(), 27, 0).unwrap();
    let verdict =
        |classes: &mut PrefixClasses, frame: &[u8]| run(classes.program().unwrap(), frame, [0; 3], 1).0;
    const SHOT: u32 = 2;
    let [v4, v6] = [frame_v4(0x4000, 17, 0), frame_v6(0)];
    let arp = [&[2; 12][..], &[8, 6], &[0; 46]].concat();
    assert_eq!([&v4, &v6, &arp].map(|frame| verdict(&mut strict, frame)), [SHOT, 0, SHOT]);
    assert_eq!((strict.dropped().unwrap(), source.dropped().unwrap()), (2, 0));
}

#[test]
fn a_device_that_is_not_there_is_named() {
    if !is_possible() {
        return;
    }
    let error = FlowClasses::load(FlowBy::Five).unwrap().attach("no-such-device").unwrap_err();
    assert!(error.to_string().contains("`no-such-device`"), "{error}");
}
