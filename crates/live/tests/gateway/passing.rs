//! Frames that pass a gateway, and frames that do not.

use apportion_core::random::Stream;

use crate::common::{Wire, enter, host, metrics, open, snapshot, start, udp};

const PLAIN: &str = "inside = \"near\"\noutside = \"far\"\nup.rate = \"100Mbit\"\ndown.rate = \"100Mbit\"\n";

/// An Ethernet frame of this type.
fn frame(kind: [u8; 2], rest: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1][..], &kind, rest].concat()
}

fn frames() -> Vec<Vec<u8>> {
    let mut icmp = Vec::new();
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .icmpv4_echo_reply(1, 2)
        .write(&mut icmp, b"echo")
        .unwrap();
    let mut six = Vec::new();
    etherparse::PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 1])
        .vlan(etherparse::VlanHeader::Single(etherparse::SingleVlanHeader {
            vlan_id: etherparse::VlanId::try_new(7).unwrap(),
            ..Default::default()
        }))
        .ipv6([0xfd; 16], [0xfe; 16], 64)
        .udp(1, 2)
        .write(&mut six, &[3; 100])
        .unwrap();
    // A local experimental EtherType; ARP behind a tag; the longest frame.
    vec![
        frame([0x88, 0xb5], &[1; 50]),
        frame([0x81, 0], &[&[0, 5, 8, 6][..], &[9; 28]].concat()),
        icmp,
        six,
        udp((1, 2), &[4; 1_472]),
    ]
}

pub fn what_is_no_ip_passes_and_so_do_tags_and_both_versions_of_ip() {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    let running = start(open(PLAIN), |_| ());
    let mut a = near.namespace.run(Wire::open).unwrap();
    let mut b = far.namespace.run(Wire::open).unwrap();
    for frame in frames() {
        a.send(&frame);
        assert_eq!(b.next(2_000).as_ref(), Some(&frame));
        b.send(&frame);
        assert_eq!(a.next(2_000), Some(frame));
    }
    // No frame returns to its sender.
    assert_eq!((a.next(20), b.next(20)), (None, None));
    let text = metrics(&mut running.stop());
    for direction in ["up", "down"] {
        for (rule, packets) in [("not IP", 2), ("unmatched", 3)] {
            let line = format!(
                "apportion_gateway_sent_packets_total{{direction=\"{direction}\",rule=\"{rule}\"}} {packets}\n"
            );
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}

pub fn what_is_malformed_is_counted_and_dropped() {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    let running = start(open(PLAIN), |_| ());
    let mut a = near.namespace.run(Wire::open).unwrap();
    let mut b = far.namespace.run(Wire::open).unwrap();
    let whole = udp((1, 2), &[5; 20]);
    // A frame that is cut, and one with another version.
    a.send(&whole[..40]);
    a.send(&frame([0x86, 0xdd], &whole[14..]));
    a.send(&whole);
    assert_eq!(b.next(2_000), Some(whole));
    assert_eq!(b.next(20), None);
    let text = metrics(&mut running.stop());
    for (reason, count) in [("ipv4_total_length", 1), ("ip_version", 1), ("too_short", 0)] {
        let line = format!("apportion_gateway_malformed_frames_total{{reason=\"{reason}\"}} {count}\n");
        assert!(text.contains(&line), "{text}");
    }
}

pub fn whatever_comes_is_forwarded_or_counted() {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    let running = start(open(PLAIN), |_| ());
    let mut a = near.namespace.run(Wire::open).unwrap();
    let mut b = far.namespace.run(Wire::open).unwrap();
    let (whole, mut random) = (frames(), Stream::new(1, "frames"));
    let mut below = |most: usize| (random.uniform() * most as f64) as usize;
    for _ in 0..5_000 {
        // Cut, and changed behind the addresses.
        let mut frame = whole[below(whole.len())].clone();
        frame.truncate(14 + below(frame.len() - 13));
        for _ in 0..below(4) {
            let at = 12 + below(frame.len() - 12).min(60);
            frame[at] = below(256) as u8;
        }
        a.send(&frame);
        while b.next(0).is_some() {}
    }
    // This frame arrives after all others.
    a.send(&whole[4]);
    while b.next(2_000).expect("it goes on") != whole[4] {}
    let text = snapshot(&mut running.stop());
    let malformed: u64 = text.malformed.iter().map(|(_, count)| count).sum();
    let [came, went]: [u64; 2] =
        text.directions[0].accounts.iter().fold([0, 0], |[came, went], (_, counts)| {
            [came + counts.sent.packets.get(), went + counts.delivered.packets.get()]
        });
    // The kernel keeps some frames to itself, for example those that end within a VLAN tag.
    assert!(text.ports[0].received > 4_000 && malformed > 1_000 && came > 1_000, "{text:?}");
    assert_eq!((text.ports[0].received, went), (malformed + came, came), "{text:?}");
}

pub fn an_interface_goes_down_and_comes_back() {
    enter();
    let (near, far) = (host("near", 11), host("far", 12));
    let mut gateway = open(PLAIN);
    let mut netlink = apportion_linux::netlink::Netlink::open().unwrap();
    let index = netlink.index_of("near").unwrap();
    let mut a = near.namespace.run(Wire::open).unwrap();
    let mut b = far.namespace.run(Wire::open).unwrap();
    let run = |gateway: &mut apportion_live::gateway::Gateway| {
        let until = gateway.now() + apportion_core::units::Span::from_millis(50);
        gateway.run_until(until, None).unwrap();
    };
    netlink.set_down(index).unwrap();
    run(&mut gateway);
    // The frame is dropped, and counted.
    b.send(&udp((1, 2), &[1; 100]));
    run(&mut gateway);
    let text = metrics(&mut gateway);
    assert!(text.contains("port_down_total{interface=\"near\"} 1\n"), "{text}");
    assert!(text.contains("port_unsent_frames_total{interface=\"near\"} 1\n"), "{text}");
    netlink.set_up(index).unwrap();
    netlink.wait_until_running("near", apportion_core::units::Span::from_secs(5)).unwrap();
    let frame = udp((3, 4), &[6; 20]);
    a.send(&frame);
    run(&mut gateway);
    assert_eq!(b.next(2_000), Some(frame));
}
