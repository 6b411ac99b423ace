//! Labels on frames that etherparse builds; and the examples of `docs/wire-labels.md`.

use std::path::Path;

use apportion_core::label::Label;
use apportion_core::packet::{Ecn, LabelKind};
use apportion_live::frame::{self, Parsed, parse};
use apportion_live::wire_label::{clear, read, write};
use apportion_testing::properties::cases;
use proptest::prelude::*;

use crate::common::{self, Carried, Ip, assert_checksums, ipv4, ipv6};

const KINDS: [LabelKind; 3] = [LabelKind::Tickets, LabelKind::AckTickets, LabelKind::Rate];
/// The largest code.
const MAX: u32 = (1 << 17) - 1;
/// The codepoints that mark labels.
const MARKERS: [u8; 8] = [11, 15, 19, 23, 27, 31, 35, 39];

fn parsed(bytes: &[u8]) -> Parsed {
    parse(bytes).unwrap()
}

#[test]
fn every_label_is_read_as_it_was_written() {
    let tcp = Carried::tcp(|tcp| tcp.ack = true);
    for (ip, tags) in [(Ip::from(ipv4()), 0), (ipv6().into(), 0), (ipv4().into(), 1), (ipv6().into(), 2)] {
        let ip_bytes = |carried| match &ip {
            Ip::V4(header) => common::frame(tags, header.clone(), carried, b"hello"),
            Ip::V6(header) => common::frame(tags, header.clone(), carried, b"hello"),
        };
        for plain in [ip_bytes(&tcp), ip_bytes(&Carried::Udp)] {
            let said = parsed(&plain);
            let mut bytes = plain.clone();
            for kind in KINDS {
                for code in [0, 1, 0xffff, 0x1_0000, MAX] {
                    // The second label replaces the first one.
                    let label = Label::from_code(code);
                    assert!(write(&mut bytes, said.ip(), kind, label));
                    assert_eq!(read(&bytes, parsed(&bytes).ip()), Some((kind, label)));
                    assert!(MARKERS.contains(&frame::dscp(&bytes, said.ip()).unwrap()));
                    assert_checksums(&bytes);
                    let once = bytes.clone();
                    assert!(write(&mut bytes, said.ip(), kind, label));
                    assert_eq!(bytes, once);
                }
            }
            assert!(clear(&mut bytes, said.ip()));
            assert_checksums(&bytes);
            assert_eq!((read(&bytes, said.ip()), clear(&mut bytes, said.ip())), (None, false));
            // The fields that held the label: the DSCP, and the identification or the flow label.
            let mut expected = plain;
            frame::set_dscp(&mut expected, said.ip(), 0);
            frame::set_identification(&mut expected, said.ip(), 0);
            frame::set_flow_label(&mut expected, said.ip(), 0);
            assert_eq!(bytes, expected);
        }
    }
}

#[test]
fn a_label_and_congestion_experienced_leave_each_other_alone() {
    let v4 = etherparse::Ipv4Header { ecn: etherparse::IpEcn::TWO, ..ipv4() };
    let v6 = etherparse::Ipv6Header { traffic_class: 2, ..ipv6() };
    for ip in [Ip::from(v4), v6.into()] {
        let mut bytes = common::frame(0, ip, &Carried::Udp, b"");
        let said = parsed(&bytes);
        let label = Label::new(2.5e9);
        assert!(write(&mut bytes, said.ip(), LabelKind::Rate, label));
        assert_eq!(parsed(&bytes).ecn, Ecn::Ect0);
        frame::set_ce(&mut bytes, said.ip());
        assert_eq!(read(&bytes, said.ip()), Some((LabelKind::Rate, label)));
        assert!(write(&mut bytes, said.ip(), LabelKind::Rate, Label::ZERO) && clear(&mut bytes, said.ip()));
        assert_eq!(parsed(&bytes).ecn, Ecn::Ce);
        assert_checksums(&bytes);
    }
}

#[test]
fn packets_without_room_are_left_as_they_are() {
    let with = |change: fn(&mut etherparse::Ipv4Header)| {
        let mut ip = ipv4();
        ip.dscp = 11.try_into().unwrap();
        change(&mut ip);
        common::frame(0, ip, &Carried::Udp, b"hello")
    };
    let mut authenticated = with(|_| ());
    // Protocol 51: the authentication header covers the identification.
    authenticated[14 + 9] = 51;
    let mut arp = with(|_| ());
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    for mut bytes in [
        with(|ip| ip.dont_fragment = false),
        with(|ip| ip.more_fragments = true),
        with(|ip| ip.fragment_offset = etherparse::IpFragOffset::try_new(1).unwrap()),
        authenticated,
        arp,
    ] {
        let (before, said) = (bytes.clone(), parsed(&bytes));
        assert_eq!(read(&bytes, said.ip()), None);
        assert!(!write(&mut bytes, said.ip(), LabelKind::Tickets, Label::from_code(5)));
        assert!(!clear(&mut bytes, said.ip()));
        assert_eq!(bytes, before);
    }
}

#[test]
fn ipv6_whose_flow_label_and_codepoint_disagree_has_no_label() {
    let mut bytes = common::frame(0, ipv6(), &Carried::Udp, b"");
    let said = parsed(&bytes);
    // One of sixteen beginnings of a flow label agrees with each codepoint.
    for dscp in MARKERS {
        frame::set_dscp(&mut bytes, said.ip(), dscp);
        let agree = |first: &u32| {
            let mut bytes = bytes.clone();
            frame::set_flow_label(&mut bytes, said.ip(), first << 16 | 0x1234);
            read(&bytes, said.ip()).is_some()
        };
        assert_eq!((0..16).filter(agree).collect::<Vec<_>>(), [u32::from(dscp >> 2)]);
    }
}

#[test]
fn a_codepoint_whose_precedence_was_cleared_marks_no_label() {
    for dscp in MARKERS {
        assert!(!MARKERS.contains(&(dscp & 0b111)));
        // Pool 2 of RFC 2474 section 6.
        assert_eq!(dscp & 0b11, 0b11);
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn unmarked_packets_are_never_read_as_labelled(identification: u16, flow_label in 0_u32..1 << 20) {
        for dscp in (0..64).filter(|dscp| !MARKERS.contains(dscp)) {
            for ip in [Ip::from(ipv4()), ipv6().into()] {
                let mut bytes = common::frame(0, ip, &Carried::Udp, b"");
                let said = parsed(&bytes);
                frame::set_dscp(&mut bytes, said.ip(), dscp);
                frame::set_identification(&mut bytes, said.ip(), identification);
                frame::set_flow_label(&mut bytes, said.ip(), flow_label);
                let before = bytes.clone();
                prop_assert_eq!(read(&bytes, said.ip()), None);
                prop_assert!(!clear(&mut bytes, said.ip()));
                prop_assert_eq!(bytes, before);
            }
        }
    }
}

/// The page, and the bytes of its examples.
fn page() -> (String, Vec<Vec<u8>>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/wire-labels.md");
    let page = std::fs::read_to_string(path).unwrap();
    let bytes = |block: &str| {
        // Text after `;` is a remark.
        let digits: String = block.lines().flat_map(|line| line.split(';').next()).collect();
        let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(&String::from_iter(pair), 16).unwrap()).collect()
    };
    let blocks = page.split("```hex\n").skip(1).map(|rest| bytes(rest.split("```").next().unwrap()));
    let blocks = blocks.collect();
    (page, blocks)
}

#[test]
fn the_page_shows_what_the_writer_makes() {
    let (page, examples) = page();
    let label = Label::new(2.5e9);
    assert!(page.contains(&format!("0x{:05x}", label.code())) && page.contains("2,500,000,000"));
    let mut headers = Vec::new();
    for (ip, length) in [(Ip::from(ipv4()), 20), (ipv6().into(), 40)] {
        let mut bytes = common::frame(0, ip, &Carried::Udp, &[0; 100]);
        let said = parsed(&bytes);
        headers.push(bytes[14..14 + length].to_vec());
        assert!(write(&mut bytes, said.ip(), LabelKind::Rate, label));
        headers.push(bytes[14..14 + length].to_vec());
    }
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
    assert_eq!(
        examples.iter().map(|bytes| hex(bytes)).collect::<Vec<_>>(),
        headers.iter().map(|bytes| hex(bytes)).collect::<Vec<_>>()
    );
}

#[test]
fn the_table_of_the_page_is_what_the_writer_makes() {
    let (page, _) = page();
    for (kind, name) in KINDS.into_iter().zip(["tickets", "tickets of an acknowledgement", "rate"]) {
        let mut bytes = common::frame(0, ipv6(), &Carried::Udp, b"");
        let said = parsed(&bytes);
        let mut dscp = |code| {
            assert!(write(&mut bytes, said.ip(), kind, Label::from_code(code)));
            frame::dscp(&bytes, said.ip()).unwrap()
        };
        let (low, high) = (dscp(0), dscp(MAX));
        let row = format!("| {name} | {:03b} | {low:06b} = {low} | {high:06b} = {high} |", low >> 3);
        assert!(page.contains(&row), "{row}");
    }
}
