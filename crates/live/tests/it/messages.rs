//! Messages between routers in frames, checked against etherparse and `docs/sffc-messages.md`.

use std::net::IpAddr;
use std::path::Path;

use apportion_live::frame;
use apportion_live::router::frames::{
    Envelope, LONGEST, NEIGHBOURS_4, NEIGHBOURS_6, PORT, is_from_link, is_intact, multicast, read, write,
};

use crate::common;

/// Bytes of this length that begin like a message.
fn message(length: usize) -> Vec<u8> {
    b"SFFC".iter().copied().chain((4..).map(|at: usize| at as u8 ^ 0x5a)).take(length).collect()
}

fn envelope(source: &str, destination: &str) -> Envelope {
    let destination: IpAddr = destination.parse().unwrap();
    let to = if destination.is_multicast() { multicast(destination) } else { [2, 0, 0, 0, 0, 1] };
    Envelope { from: [2, 0, 0, 0, 0, 2], to, source: source.parse().unwrap(), destination }
}

const WAYS: [(&str, &str); 4] = [
    ("192.0.2.2", "198.51.100.1"),
    ("192.0.2.2", "224.0.0.254"),
    ("2001:db8::2", "2001:db8::1"),
    ("2001:db8::2", "ff02::114"),
];

#[test]
fn frames_have_the_checksums_and_fields_of_another_writer() {
    for (source, destination) in WAYS {
        for length in [4, 5, 98, 99, 1_232] {
            let (envelope, message) = (envelope(source, destination), message(length));
            let frame = write(&envelope, &message).unwrap();
            common::assert_checksums(&frame);
            let parsed = frame::parse(&frame).unwrap();
            let headers = parsed.headers.unwrap();
            assert_eq!((headers.source, headers.destination), (envelope.source, envelope.destination));
            assert_eq!((headers.ports, headers.dscp), (Some((PORT, PORT)), 48));
            assert_eq!((&frame[..6], &frame[6..12]), (&envelope.to[..], &envelope.from[..]));
            // RFC 791: the byte at 8 of the header; RFC 8200: at 7.
            let hops = frame[14 + if envelope.source.is_ipv4() { 8 } else { 7 }];
            assert_eq!(hops, 255);
            assert!(is_from_link(&frame, &parsed));
            assert_eq!(read(&frame, &parsed), Some(&message[..]));
            assert!(is_intact(&frame, &parsed, false));
        }
    }
}

#[test]
fn the_longest_message_fits_the_least_mtu_and_a_longer_one_is_not_sent() {
    let envelope = envelope("2001:db8::2", "2001:db8::1");
    // IPv6 40, UDP 8, message 1232: the 1280 bytes that every link carries; plus 14 of Ethernet.
    assert_eq!(write(&envelope, &message(1_232)).unwrap().len(), LONGEST);
    assert_eq!((LONGEST, write(&envelope, &message(1_233))), (14 + 1_280, None));
    let mixed = Envelope { destination: NEIGHBOURS_4.into(), ..envelope };
    assert_eq!(write(&mixed, &message(98)), None);
}

#[test]
fn groups_have_the_hardware_addresses_of_their_standards() {
    // RFC 1112: 23 bits behind 01-00-5e. RFC 2464: 32 bits behind 33-33.
    assert_eq!(multicast(NEIGHBOURS_4.into()), [0x01, 0, 0x5e, 0, 0, 254]);
    assert_eq!(multicast(NEIGHBOURS_6.into()), [0x33, 0x33, 0, 0, 0x01, 0x14]);
}

#[test]
fn padding_is_not_read_and_others_datagrams_are_no_messages() {
    for (source, destination) in WAYS {
        let frame = write(&envelope(source, destination), &message(4)).unwrap();
        let padded = [&frame[..], &[7; 20]].concat();
        let parsed = frame::parse(&padded).unwrap();
        assert_eq!(read(&padded, &parsed), Some(&b"SFFC"[..]));
        assert!(is_intact(&padded, &parsed, false));
        let begin = parsed.transport_offset.unwrap();
        // Another port of either end, another protocol identifier, a length beyond the packet or below 12.
        for (at, byte) in [(1, 0), (3, 0), (8, b's'), (4, 1), (5, 11)] {
            let mut other = frame.clone();
            other[begin + at] = byte;
            assert_eq!(read(&other, &frame::parse(&other).unwrap()), None, "byte {at}");
        }
    }
    let udp = common::frame(0, common::ipv4(), &common::Carried::Udp, &message(98));
    assert_eq!(read(&udp, &frame::parse(&udp).unwrap()), None);
}

#[test]
fn every_changed_bit_of_what_checksums_cover_is_noticed() {
    for (source, destination) in WAYS {
        let frame = write(&envelope(source, destination), &message(98)).unwrap();
        let begin = frame::parse(&frame).unwrap().transport_offset.unwrap();
        for bit in begin * 8..frame.len() * 8 {
            let mut changed = frame.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            let parsed = frame::parse(&changed).unwrap();
            assert!(!is_intact(&changed, &parsed, false), "bit {bit}");
        }
    }
}

#[test]
fn a_checksum_that_is_still_to_be_made_is_not_looked_at() {
    for (source, destination) in WAYS {
        let mut frame = write(&envelope(source, destination), &message(98)).unwrap();
        let parsed = frame::parse(&frame).unwrap();
        frame[parsed.transport_offset.unwrap() + 6] ^= 1;
        assert_eq!([false, true].map(|it| is_intact(&frame, &parsed, it)), [false, true]);
        // The IPv4 header is verified all the same; IPv6 has no checksum.
        frame[parsed.network_offset + 1] ^= 4;
        let parsed = frame::parse(&frame).unwrap();
        assert_eq!(is_intact(&frame, &parsed, true), source.contains(':'));
    }
}

/// The bytes of the example under this heading of the page.
fn example(heading: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sffc-messages.md");
    let page = std::fs::read_to_string(path).unwrap();
    let section = page.split(heading).nth(1).unwrap();
    let block = section.split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
    let digits = block.lines().flat_map(|line| line.split(';').next().unwrap().split_whitespace());
    digits.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
}

#[test]
fn the_page_shows_what_is_sent() {
    let message = example("\n## Example\n");
    let frame = write(&envelope("2001:db8::2", "2001:db8::1"), &message).unwrap();
    let headers = frame.len() - message.len();
    assert_eq!(frame[headers..], message);
    let shown = example("\n## On the wire\n");
    assert_eq!(shown, frame[..headers], "{:02x?}", &frame[..headers]);
    assert_eq!(PORT.to_be_bytes(), shown[54..56]);
}
