//! Frames that etherparse builds, and malformed frames.

use std::path::Path;

use apportion_core::packet::{Ecn, Protocol};
use apportion_core::units::Bytes;
use apportion_live::frame::{self, FlowTuple, Fragment, MAX_EXTENSIONS, Malformed, Network, Parsed, parse};
use apportion_runtime::sffc::message::FlowKey;
use apportion_scenario::gateway::classifier::Headers;
use apportion_testing::properties::cases;
use etherparse::{IpEcn, IpFragOffset, Ipv4Options};
use proptest::prelude::*;

use crate::common::{
    self, Carried, DESTINATION_4, DESTINATION_6, Ip, PORTS, SOURCE_4, SOURCE_6, assert_checksums, ipv4, ipv6,
};
use crate::laws;

/// Offset of the network header without tags.
const AT: usize = 14;

fn ports(parsed: &Parsed) -> Option<(u16, u16)> {
    parsed.headers.unwrap().ports
}

/// An IPv6 frame with this payload, whose first next header is `next`.
fn raw_ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = common::frame(0, ipv6(), &Carried::Udp, &[]);
    bytes.truncate(AT + 40);
    bytes[AT + 4..AT + 6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    bytes[AT + 6] = next;
    bytes.extend_from_slice(payload);
    bytes
}

/// `n` destination options of eight bytes each (60, then padding), and 4 bytes of UDP.
fn options(n: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    for left in (0..n).rev() {
        payload.extend([if left == 0 { 17 } else { 60 }, 0, 1, 4, 0, 0, 0, 0]);
    }
    payload.extend([0x13, 0x8c, 0x9c, 0x40]);
    raw_ipv6(if n == 0 { 17 } else { 60 }, &payload)
}

/// An ARP request, which is longer to build with etherparse.
fn arp() -> Vec<u8> {
    let mut bytes = vec![0xff; 12];
    bytes.extend([0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1]);
    bytes.resize(60, 0);
    bytes
}

/// The corpus of the fuzzer.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let segment = Carried::tcp(|tcp| tcp.ack = true);
    let stamped = Carried::tcp(|tcp| {
        tcp.ack = true;
        tcp.set_options(&[etherparse::TcpOptionElement::Timestamp(0x0102_0304, 0x0506_0708)]).unwrap();
    });
    let mut odd = ipv4();
    odd.options = Ipv4Options::try_from([7, 7, 4, 0, 0, 0, 0, 0].as_slice()).unwrap();
    odd.ecn = IpEcn::TWO;
    let mut first = ipv4();
    (first.dont_fragment, first.more_fragments) = (false, true);
    vec![
        ("arp", arp()),
        ("extensions6", options(3)),
        ("fragment4", common::frame(0, first, &Carried::Udp, &[0; 16])),
        // Offset 8, more follow.
        ("fragment6", raw_ipv6(44, &[17, 0, 0, 9, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8])),
        ("options4", common::frame(0, odd, &segment, b"data")),
        ("stamped4", common::frame(0, ipv4(), &stamped, b"data")),
        ("tcp6_tagged", common::frame(1, ipv6(), &segment, b"")),
        ("udp4_tagged_twice", common::frame(2, ipv4(), &Carried::Udp, b"data")),
    ]
}

#[test]
fn the_corpus_is_what_is_built_here() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/frame");
    for (name, bytes) in corpus() {
        assert!(parse(&bytes).is_ok(), "{name}");
        laws::hold(&bytes);
        let path = folder.join(name);
        let hex: String = bytes.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        let found = std::fs::read(&path).unwrap_or_default();
        assert_eq!(found, bytes, "write it with: printf '{hex}' > {}", path.display());
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), corpus().len());
}

#[test]
fn a_frame_says_what_was_built() {
    let tcp = Carried::tcp(|tcp| tcp.psh = true);
    for tags in 0..=2 {
        for (carried, number, header) in [(&Carried::Udp, 17, 8), (&tcp, 6, 20)] {
            let mut ip = ipv4();
            ip.dscp = 46.try_into().unwrap();
            let v4 = (Ip::from(ip), Network::Ipv4, 20, 46, SOURCE_4.into(), DESTINATION_4.into());
            let ip = etherparse::Ipv6Header { traffic_class: 10 << 2 | 1, ..ipv6() };
            let v6 = (Ip::from(ip), Network::Ipv6, 40, 10, SOURCE_6.into(), DESTINATION_6.into());
            for (ip, network, ip_header, dscp, source, destination) in [v4, v6] {
                let bytes = common::frame(tags, ip, carried, b"hello");
                let at = AT + 4 * usize::from(tags);
                let expected = Parsed {
                    network,
                    network_offset: at,
                    tags,
                    length: Bytes::new(ip_header + header + 5),
                    headers: Some(Headers {
                        protocol: number,
                        source,
                        destination,
                        ports: Some(PORTS),
                        dscp,
                    }),
                    ecn: if network == Network::Ipv4 { Ecn::NotEct } else { Ecn::Ect1 },
                    protocol: if number == 6 { Protocol::Tcp } else { Protocol::Udp },
                    fragment: Fragment::Whole,
                    transport_offset: Some(at + ip_header as usize),
                    // PSH.
                    segment: (number == 6).then_some(frame::Segment {
                        sequence: 1_000,
                        flags: 8,
                        payload: Bytes::new(5),
                        acknowledges: None,
                    }),
                };
                assert_eq!(parse(&bytes), Ok(expected));
            }
        }
    }
}

#[test]
fn every_ecn_codepoint_is_read_and_becomes_ce() {
    for (bits, ecn) in [(0, Ecn::NotEct), (1, Ecn::Ect1), (2, Ecn::Ect0), (3, Ecn::Ce)] {
        let v4 = etherparse::Ipv4Header { ecn: IpEcn::try_new(bits).unwrap(), ..ipv4() };
        let v6 = etherparse::Ipv6Header { traffic_class: bits, ..ipv6() };
        for ip in [Ip::from(v4), Ip::from(v6)] {
            let mut bytes = common::frame(1, ip, &Carried::Udp, b"hello");
            let parsed = parse(&bytes).unwrap();
            assert_eq!(parsed.ecn, ecn);
            frame::set_ce(&mut bytes, parsed.ip());
            assert_eq!(parse(&bytes), Ok(Parsed { ecn: Ecn::Ce, ..parsed }));
            assert_checksums(&bytes);
        }
    }
}

#[test]
fn the_checksum_is_updated_as_in_the_example_of_rfc_1624() {
    // RFC 1624 section 4: HC = 0xdd2f, m = 0x5555, m' = 0x3285. ~0xdd2f + ~0x5555 + 0x3285 = 0x22d0 + 0xaaaa
    // + 0x3285 = 0xffff, and HC' = 0. The equation of RFC 1141 gives 0xffff.
    let mut bytes = common::frame(0, ipv4(), &Carried::Udp, b"");
    bytes[AT + 4..AT + 6].copy_from_slice(&[0x55, 0x55]);
    bytes[AT + 10..AT + 12].copy_from_slice(&[0xdd, 0x2f]);
    let parsed = parse(&bytes).unwrap();
    frame::set_identification(&mut bytes, parsed.ip(), 0x3285);
    assert_eq!(bytes[AT + 4..AT + 6], [0x32, 0x85]);
    assert_eq!(bytes[AT + 10..AT + 12], [0, 0]);
}

#[test]
fn every_identification_keeps_the_checksums_right() {
    let mut bytes = common::frame(0, ipv4(), &Carried::Udp, b"hello");
    let parsed = parse(&bytes).unwrap();
    for identification in 0..=u16::MAX {
        frame::set_identification(&mut bytes, parsed.ip(), identification);
        frame::set_dscp(&mut bytes, parsed.ip(), identification as u8 & 63);
        assert_checksums(&bytes);
    }
}

#[test]
fn frames_without_ip_are_no_error() {
    let other = |ethertype| Ok(Network::Other(ethertype));
    let kind = |bytes: &[u8]| parse(bytes).map(|parsed| parsed.network);
    assert_eq!(kind(&arp()), other(0x0806));
    let mut bytes = arp();
    for (ethertype, name) in [(0x88cc_u16, "LLDP"), (0x0026, "spanning tree in IEEE 802.3")] {
        bytes[12..14].copy_from_slice(&ethertype.to_be_bytes());
        assert_eq!(kind(&bytes), other(ethertype), "{name}");
    }
    // A third tag is not skipped.
    let mut bytes = common::frame(2, ipv4(), &Carried::Udp, b"");
    bytes[20..22].copy_from_slice(&[0x81, 0]);
    let parsed = parse(&bytes).unwrap();
    assert_eq!((parsed.network, parsed.tags, parsed.network_offset), (Network::Other(0x8100), 2, 22));
    assert_eq!((parsed.headers, parsed.flow(), parsed.length), (None, None, Bytes::ZERO));
}

#[test]
fn padding_is_not_of_the_packet() {
    for ip in [Ip::from(ipv4()), Ip::from(ipv6())] {
        let bytes = common::frame(0, ip, &Carried::tcp(|tcp| tcp.ack = true), b"");
        let mut padded = bytes.clone();
        padded.resize(bytes.len() + 6, 0xaa);
        let parsed = parse(&padded).unwrap();
        assert_eq!(parse(&bytes), Ok(parsed));
        assert!(parsed.segment.unwrap().is_pure_ack());
    }
}

#[test]
fn acknowledgements_and_openings_are_distinguished_from_data() {
    let segment = |payload: &[u8], change: fn(&mut etherparse::TcpHeader)| {
        let bytes = common::frame(0, ipv4(), &Carried::tcp(change), payload);
        parse(&bytes).unwrap().segment.unwrap()
    };
    assert!(segment(b"", |tcp| tcp.ack = true).is_pure_ack());
    assert!(!segment(b"x", |tcp| tcp.ack = true).is_pure_ack());
    assert!(!segment(b"", |_| ()).is_pure_ack());
    for other in [
        segment(b"", |tcp| (tcp.ack, tcp.syn) = (true, true)),
        segment(b"", |tcp| (tcp.ack, tcp.fin) = (true, true)),
        segment(b"", |tcp| (tcp.ack, tcp.rst) = (true, true)),
    ] {
        assert!(!other.is_pure_ack());
    }
    assert!(segment(b"", |tcp| tcp.syn = true).is_syn() && !segment(b"", |tcp| tcp.fin = true).is_syn());
    // TCP options are not payload.
    let timed = segment(b"xyz", |tcp| {
        tcp.ack = true;
        tcp.set_options(&[etherparse::TcpOptionElement::Timestamp(1, 2)]).unwrap();
    });
    assert_eq!((timed.payload, timed.sequence, timed.numbers()), (Bytes::new(3), 1_000, 3));
    let opening = segment(b"", |tcp| (tcp.syn, tcp.fin) = (true, true));
    assert_eq!(opening.numbers(), 2);
}

#[test]
fn timestamps_are_found_among_options_and_nowhere_else() {
    use etherparse::TcpOptionElement::{MaximumSegmentSize, Noop, Timestamp};
    let found = |options: &[etherparse::TcpOptionElement], acknowledges| {
        let carried = Carried::tcp(|tcp| {
            tcp.ack = acknowledges;
            tcp.set_options(options).unwrap();
        });
        [common::frame(0, ipv4(), &carried, b"data"), common::frame(2, ipv6(), &carried, b"")]
            .map(|bytes| frame::timestamps(&bytes, &parse(&bytes).unwrap()))
    };
    let both = |value, echo| [Some(frame::Timestamps { value, echo }); 2];
    assert_eq!(found(&[Noop, Noop, Timestamp(7, 9)], true), both(7, Some(9)));
    assert_eq!(found(&[MaximumSegmentSize(1_460), Timestamp(u32::MAX, 0)], true), both(u32::MAX, Some(0)));
    // The echo of a segment without ACK has no meaning.
    assert_eq!(found(&[Timestamp(7, 9)], false), both(7, None));
    assert_eq!([found(&[], true), found(&[Noop, MaximumSegmentSize(9)], true)], [[None; 2]; 2]);
    // Raw options of 12 bytes: behind an end, of another length, cut, of no length.
    for options in [
        [1, 0, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        [8, 9, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1],
        [1, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0],
        [5, 0, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        [5, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        [5, 255, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2],
        [1; 12],
    ] {
        let carried = Carried::tcp(|tcp| tcp.set_options(&[Timestamp(1, 2), Noop, Noop]).unwrap());
        let mut bytes = common::frame(0, ipv4(), &carried, b"");
        bytes[AT + 40..AT + 52].copy_from_slice(&options);
        assert_eq!(frame::timestamps(&bytes, &parse(&bytes).unwrap()), None, "{options:?}");
    }
    let datagram = common::frame(0, ipv4(), &Carried::Udp, &[8; 40]);
    assert_eq!(frame::timestamps(&datagram, &parse(&datagram).unwrap()), None);
}

#[test]
fn a_packet_that_is_wrong_behind_its_ip_header_shows_less() {
    let bytes = common::frame(0, ipv4(), &Carried::tcp(|tcp| tcp.ack = true), b"");
    // The data offset: 4 words are too few for a header, 6 are beyond the end.
    for offset in [4, 6] {
        let mut bytes = bytes.clone();
        bytes[AT + 20 + 12] = offset << 4;
        let parsed = parse(&bytes).unwrap();
        assert_eq!((ports(&parsed), parsed.segment), (Some(PORTS), None));
    }
    for (left, shown, starts) in
        [(19, Some(PORTS), true), (4, Some(PORTS), true), (3, None, true), (0, None, false)]
    {
        let mut bytes = bytes.clone();
        bytes[AT + 3] = 20 + left;
        let parsed = parse(&bytes).unwrap();
        let found = (ports(&parsed), parsed.segment, parsed.transport_offset);
        assert_eq!(found, (shown, None, starts.then_some(AT + 20)), "{left}");
    }
}

#[test]
fn fragments_after_the_first_show_no_ports() {
    let built = |more, offset| {
        let mut ip = ipv4();
        (ip.dont_fragment, ip.more_fragments) = (false, more);
        ip.fragment_offset = IpFragOffset::try_new(offset).unwrap();
        parse(&common::frame(0, ip, &Carried::tcp(|_| ()), b"hello")).unwrap()
    };
    let first = built(true, 0);
    assert_eq!((first.fragment, ports(&first), first.segment), (Fragment::First, Some(PORTS), None));
    for later in [built(true, 1), built(false, 0x1fff)] {
        assert_eq!((later.fragment, ports(&later), later.transport_offset), (Fragment::Later, None, None));
        assert_eq!((later.protocol, later.segment), (Protocol::Tcp, None));
        assert_ne!(later.flow(), first.flow());
    }
    // IPv6: offset, then whether more fragments follow. One with neither is a whole packet (RFC 6946).
    for (place, more, fragment) in [
        (0, 0, Fragment::Whole),
        (0, 1, Fragment::First),
        (1, 1, Fragment::Later),
        (0x1fff, 0, Fragment::Later),
    ] {
        let [high, low] = (place << 3 | more as u16).to_be_bytes();
        let parsed = parse(&raw_ipv6(44, &[17, 0, high, low, 0, 0, 0, 1, 0x13, 0x8c, 0x9c, 0x40])).unwrap();
        assert_eq!(parsed.fragment, fragment);
        let is_shown = fragment != Fragment::Later;
        assert_eq!(ports(&parsed), is_shown.then_some(PORTS));
        assert_eq!(parsed.transport_offset, is_shown.then_some(AT + 48));
    }
}

#[test]
fn extension_headers_are_looked_behind_up_to_a_limit() {
    for n in 0..=MAX_EXTENSIONS {
        let parsed = parse(&options(n)).unwrap();
        assert_eq!(parsed.headers.unwrap().protocol, 17);
        assert_eq!((ports(&parsed), parsed.transport_offset), (Some(PORTS), Some(AT + 40 + 8 * n)));
    }
    assert_eq!(parse(&options(MAX_EXTENSIONS + 1)), Err(Malformed::ExtensionHeaders));
    // An authentication header counts in words of four bytes, minus two: 4 means 24 bytes.
    let mut payload = vec![17, 4];
    payload.resize(24, 0);
    payload.extend([0x13, 0x8c, 0x9c, 0x40]);
    let parsed = parse(&raw_ipv6(51, &payload)).unwrap();
    assert_eq!((ports(&parsed), parsed.transport_offset), (Some(PORTS), Some(AT + 40 + 24)));
    // Encrypted payload (50), and bytes behind "no next header" (59), are not parsed.
    for next in [50, 59] {
        let parsed = parse(&raw_ipv6(next, &payload)).unwrap();
        assert_eq!((parsed.headers.unwrap().protocol, ports(&parsed)), (next, None));
    }
}

#[test]
fn what_is_malformed_says_why() {
    let v4 = common::frame(0, ipv4(), &Carried::Udp, b"hello");
    let v6 = common::frame(0, ipv6(), &Carried::Udp, b"hello");
    let changed = |bytes: &[u8], at: usize, to: u8| {
        let mut bytes = bytes.to_vec();
        bytes[AT + at] = to;
        parse(&bytes).map(|_| ())
    };
    let cut = |bytes: &[u8], length: usize| parse(&bytes[..length]).map(|_| ());
    let tagged = common::frame(2, ipv4(), &Carried::Udp, b"");
    for (bytes, length) in [(&v4, 0), (&v4, 13), (&v4, AT + 19), (&v6, AT + 39), (&tagged, 17), (&tagged, 21)]
    {
        assert_eq!(cut(bytes, length), Err(Malformed::TooShort), "{length}");
    }
    assert_eq!(changed(&v4, 0, 0x65), Err(Malformed::IpVersion));
    assert_eq!(changed(&v6, 0, 0x45), Err(Malformed::IpVersion));
    assert_eq!(changed(&v4, 0, 0x44), Err(Malformed::Ipv4HeaderLength));
    // 20 + 8 + 5 bytes; a header of 15 words has 60.
    assert_eq!(changed(&v4, 0, 0x4f), Err(Malformed::Ipv4TotalLength));
    assert_eq!(changed(&v4, 3, 34), Err(Malformed::Ipv4TotalLength));
    assert_eq!(changed(&v4, 3, 19), Err(Malformed::Ipv4TotalLength));
    assert_eq!(cut(&v4, v4.len() - 1), Err(Malformed::Ipv4TotalLength));
    assert_eq!(changed(&v6, 5, 14), Err(Malformed::Ipv6PayloadLength));
    assert_eq!(cut(&v6, v6.len() - 1), Err(Malformed::Ipv6PayloadLength));
    // An extension header that is cut, one that is longer than the packet, and a jumbogram.
    let short = Err(Malformed::ExtensionHeaderLength);
    assert_eq!(parse(&raw_ipv6(60, &[17, 0, 1, 4, 0, 0, 0])), short);
    assert_eq!(parse(&raw_ipv6(60, &[17, 1, 1, 4, 0, 0, 0, 0])), short);
    assert_eq!(parse(&raw_ipv6(0, &[])), short);
}

#[test]
fn every_reason_has_a_name_of_its_own() {
    let mut names = Malformed::ALL.map(Malformed::name).to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Malformed::ALL.len());
    assert!(names.iter().all(|name| name.chars().all(|c| c.is_ascii_lowercase() || "_46".contains(c))));
}

#[test]
fn a_flow_has_a_name_between_routers() {
    let v4 = parse(&common::frame(0, ipv4(), &Carried::Udp, b"")).unwrap().flow().unwrap();
    // 17, 192.0.2.77, 198.51.100.9, 5004, 40000.
    let key = [17, 192, 0, 2, 77, 198, 51, 100, 9, 0x13, 0x8c, 0x9c, 0x40];
    assert_eq!(v4.key().unwrap().as_bytes(), key);
    let back = v4.reversed();
    assert_eq!((back.source(), back.destination()), (DESTINATION_4.into(), SOURCE_4.into()));
    assert_eq!((back.protocol(), back.ports()), (17, Some((PORTS.1, PORTS.0))));
    let v6 = parse(&common::frame(0, ipv6(), &Carried::Udp, b"")).unwrap();
    assert_eq!(v6.flow().unwrap().key().unwrap().as_bytes().len(), 37);
    let none = FlowTuple::new(&Headers { ports: None, ..v6.headers.unwrap() }).unwrap();
    assert_eq!(none.key().unwrap().as_bytes().len(), 33);
    for flow in [v4, back, v6.flow().unwrap(), none, none.reversed()] {
        assert_eq!(FlowTuple::from_key(&flow.key().unwrap()), Some(flow));
    }
    // No names of flows have other lengths.
    for length in 1..=40 {
        let key = FlowKey::from_bytes(&vec![1; length]).unwrap();
        assert_eq!(FlowTuple::from_key(&key).is_some(), [9, 13, 33, 37].contains(&length), "{length}");
    }
    let mixed = Headers { source: SOURCE_4.into(), ..v6.headers.unwrap() };
    assert_eq!(FlowTuple::new(&mixed), None);
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn any_bytes_keep_the_laws(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
        laws::hold(&bytes);
    }

    #[test]
    fn changed_and_cut_frames_keep_the_laws(
        which in 0_usize..8,
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 0..6),
        cut in proptest::option::weighted(0.3, any::<proptest::sample::Index>()),
    ) {
        let (_, mut bytes) = corpus().swap_remove(which);
        for (at, to) in changes {
            let at = at.index(bytes.len());
            bytes[at] = to;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        laws::hold(&bytes);
    }
}
