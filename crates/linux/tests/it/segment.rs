//! Super-packets cut into segments, with frames and checksums by etherparse.

use apportion_linux::port::segment::{NEEDS_CHECKSUM, Refusal, Segments, VnetHeader};
use apportion_testing::properties::cases;
use etherparse::{Ipv4Options, NetSlice, SlicedPacket, TcpHeader, TcpOptionElement, TransportSlice};
use proptest::prelude::*;

use crate::frames::{Carried, Ip, assert_checksums, frame, ipv4, ipv6};
use crate::laws::{self, segments, sum, transport};

const TCP4: u8 = 1;
const TCP6: u8 = 4;
const DATAGRAMS: u8 = 5;
/// Chosen for headers of every kind plus 1,448 bytes.
const LONGEST: usize = 1_600;

fn payload(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 % 251) as u8).collect()
}

fn header(gso_type: u8, gso_size: u16) -> VnetHeader {
    VnetHeader { gso_type, gso_size, ..VnetHeader::default() }
}

/// Replaces the complete checksum, at `offset` of the transport header, by the sum of the pseudo-header.
fn unfinish(header: VnetHeader, frame: &mut [u8], offset: usize) -> VnetHeader {
    let (start, end) = transport(frame);
    // The field, the bytes that it covers and the pseudo-header add up to zero.
    let pseudo_header = 0xffff - sum(&frame[start..end]);
    frame[start + offset..][..2].copy_from_slice(&(pseudo_header as u16).to_be_bytes());
    VnetHeader {
        flags: NEEDS_CHECKSUM,
        checksum_start: start as u16,
        checksum_offset: offset as u16,
        ..header
    }
}

/// Computes the checksum as a device does.
fn finish(header: &VnetHeader, frame: &mut [u8]) {
    if header.flags & NEEDS_CHECKSUM != 0 {
        let start = usize::from(header.checksum_start);
        // Words that are not all zero never add up to 0 in ones' complement, but to 0xffff, whose checksum is
        // 0. UDP then writes 0xffff, because zero means that there is no checksum (RFC 768).
        let zero = if header.checksum_offset == 16 { 0 } else { 0xffff };
        let checksum = match 0xffff - sum(&frame[start..]) {
            0xffff => zero,
            other => other,
        };
        let at = start + usize::from(header.checksum_offset);
        frame[at..at + 2].copy_from_slice(&(checksum as u16).to_be_bytes());
    }
}

/// IPv4 with and without options, and IPv6.
fn headers() -> [(bool, Ip); 3] {
    let mut options = ipv4();
    options.options = Ipv4Options::from([1, 1, 1, 0]);
    [(true, ipv4().into()), (true, options.into()), (false, ipv6().into())]
}

/// Cuts a super-packet with a complete and with an unfinished checksum. Returns the segments with complete
/// ones.
fn both_ways(header: VnetHeader, frame: &[u8], offset: usize) -> Vec<Vec<u8>> {
    let (one, complete) = segments(&header, frame, LONGEST).unwrap();
    assert_eq!(one, VnetHeader::default());
    let mut frame = frame.to_vec();
    let header = unfinish(header, &mut frame, offset);
    let (one, mut cut) = segments(&header, &frame, LONGEST).unwrap();
    assert_eq!(one.flags, NEEDS_CHECKSUM);
    cut.iter_mut().for_each(|segment| finish(&one, segment));
    assert_eq!(cut, complete);
    complete
}

fn tcp(change: impl Fn(&mut TcpHeader)) -> Carried {
    Carried::tcp(|header| {
        header.acknowledgment_number = 77;
        header.ack = true;
        change(header);
    })
}

#[test]
fn tcp_is_cut_at_the_segment_size_and_each_segment_is_whole() {
    let timestamps = [TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(1, 2)];
    for tags in 0..=2 {
        for (is_ipv4, ip) in headers() {
            let carried = tcp(|header| {
                header.sequence_number = u32::MAX - 1_000;
                (header.fin, header.psh, header.cwr, header.ece) = (true, true, true, true);
                header.set_options(&timestamps).unwrap();
            });
            let (kind, sent) = (if is_ipv4 { TCP4 } else { TCP6 }, payload(5_000));
            let frame = frame(tags, ip, &carried, &sent);
            let cut = both_ways(header(kind | 0x80, 1_448), &frame, 16);
            assert_eq!(cut.len(), 4);
            let mut came: Vec<u8> = Vec::new();
            for (number, segment) in cut.iter().enumerate() {
                assert_checksums(segment);
                let packet = SlicedPacket::from_ethernet(segment).unwrap();
                let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("{packet:?}") };
                let before = (u32::MAX - 1_000).wrapping_add(1_448 * number as u32);
                assert_eq!((tcp.sequence_number(), tcp.acknowledgment_number()), (before, 77));
                let is_last = number == 3;
                assert_eq!((tcp.fin(), tcp.psh(), tcp.ack(), tcp.ece()), (is_last, is_last, true, true));
                assert_eq!(tcp.cwr(), number == 0);
                assert_eq!(tcp.options().len(), 12);
                if let Some(NetSlice::Ipv4(ip)) = &packet.net {
                    assert_eq!(ip.header().identification(), 0xbeef + number as u16);
                    assert!(ip.header().dont_fragment());
                }
                came.extend(tcp.payload());
            }
            assert_eq!(came, sent);
        }
    }
}

#[test]
fn each_datagram_of_udp_has_its_own_length() {
    for tags in 0..=2 {
        for (_, ip) in headers() {
            let sent = payload(3_333);
            let cut = both_ways(header(DATAGRAMS, 1_000), &frame(tags, ip, &Carried::Udp, &sent), 6);
            let mut lengths = Vec::new();
            let mut came: Vec<u8> = Vec::new();
            for segment in &cut {
                assert_checksums(segment);
                let packet = SlicedPacket::from_ethernet(segment).unwrap();
                let Some(TransportSlice::Udp(udp)) = packet.transport else { panic!("{packet:?}") };
                assert_eq!(usize::from(udp.length()), 8 + udp.payload().len());
                lengths.push(udp.payload().len());
                came.extend(udp.payload());
            }
            assert_eq!((lengths, came), (vec![1_000, 1_000, 1_000, 333], sent));
        }
    }
}

#[test]
fn a_datagram_without_a_checksum_stays_without() {
    let mut frame = frame(0, ipv4(), &Carried::Udp, &payload(2_000));
    frame[40..42].fill(0);
    let (_, cut) = segments(&header(DATAGRAMS, 1_000), &frame, LONGEST).unwrap();
    assert!(cut.len() == 2 && cut.iter().all(|segment| segment[40..42] == [0, 0]));
}

#[test]
fn a_wrong_checksum_is_wrong_in_every_segment() {
    let mut frame = frame(0, ipv6(), &tcp(|_| ()), &payload(3_000));
    *frame.last_mut().unwrap() ^= 1;
    let (_, cut) = segments(&header(TCP6, 1_000), &frame, LONGEST).unwrap();
    for segment in cut {
        assert!(std::panic::catch_unwind(|| assert_checksums(&segment)).is_err());
    }
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let good = frame(0, ipv4(), &tcp(|_| ()), &payload(4_000));
    let refusal = |header: VnetHeader, frame: &[u8]| Segments::new(&header, frame, LONGEST).err();
    let changed = |at: usize, byte: u8| {
        let mut frame = good.clone();
        frame[at] = byte;
        frame
    };
    let tcp4 = header(TCP4, 1_448);
    assert_eq!(refusal(tcp4, &good), None);
    // UFO, which packet sockets do not deliver.
    assert_eq!(refusal(header(3, 1_448), &good), Some(Refusal::Kind));
    assert_eq!(refusal(header(TCP4, 0), &good), Some(Refusal::Size));
    assert_eq!(refusal(header(TCP4, 1), &good), Some(Refusal::Many));
    assert_eq!(refusal(header(TCP4, 1_600), &good), Some(Refusal::Long));
    assert_eq!(refusal(header(TCP6, 1_448), &good), Some(Refusal::Network));
    assert_eq!(refusal(header(DATAGRAMS, 1_448), &good), Some(Refusal::Transport));
    // EtherType; version; header length; total length of "big TCP", and beyond the frame; a fragment.
    for (at, byte) in [(12, 9), (14, 0x55), (14, 0x44), (16, 0xff), (20, 0x20)] {
        let refused = refusal(tcp4, &changed(at, byte));
        assert!(matches!(refused, Some(Refusal::Network | Refusal::Transport)), "{at} {refused:?}");
    }
    assert_eq!(refusal(tcp4, &good[..good.len() - 1]), Some(Refusal::Network));
    // The data offset of TCP.
    assert_eq!(refusal(tcp4, &changed(46, 0x40)), Some(Refusal::Transport));
    // As in a tunnel, the checksum covers an inner header.
    let inner = VnetHeader { flags: NEEDS_CHECKSUM, checksum_start: 84, checksum_offset: 16, ..tcp4 };
    assert_eq!(refusal(inner, &good), Some(Refusal::Checksum));
}

#[test]
fn extension_headers_are_passed_over() {
    let mut frame = frame(0, ipv6(), &tcp(|_| ()), &payload(3_000));
    // Hop-by-hop options of eight bytes of padding.
    frame[20] = 0;
    frame[18..20].copy_from_slice(&(3_000_u16 + 20 + 8).to_be_bytes());
    frame.splice(54..54, [6, 0, 1, 4, 0, 0, 0, 0]);
    let (_, cut) = segments(&header(TCP6, 1_400), &frame, LONGEST).unwrap();
    assert_eq!(cut.len(), 3);
    for segment in &cut {
        assert_eq!(segment[54..62], frame[54..62]);
        assert_checksums(segment);
    }
}

/// The longest segment has this payload.
#[test]
fn a_checksum_of_zero_is_zero_in_tcp() {
    let mut frame = frame(0, ipv6(), &tcp(|_| ()), &payload(6_882));
    let header = unfinish(header(TCP6, 2_294), &mut frame, 16);
    let (one, mut cut) = segments(&header, &frame, 9_100).unwrap();
    for segment in &mut cut {
        finish(&one, segment);
        assert_checksums(segment);
    }
    assert!(cut.iter().any(|segment| segment[70..72] == [0, 0]));
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn segments_are_the_payload_again(
        (tags, is_ipv4, is_tcp, is_unfinished) in (0_u8..=2, any::<bool>(), any::<bool>(), any::<bool>()),
        length in 0_usize..40_000,
        size in 48_u16..9_000,
    ) {
        let ip: Ip = if is_ipv4 { ipv4().into() } else { ipv6().into() };
        let carried = if is_tcp { tcp(|_| ()) } else { Carried::Udp };
        let (kind, offset) = match (is_tcp, is_ipv4) {
            (false, _) => (DATAGRAMS, 6),
            (true, true) => (TCP4, 16),
            (true, false) => (TCP6, 16),
        };
        let mut frame = frame(tags, ip, &carried, &payload(length));
        let mut header = header(kind, size);
        if is_unfinished {
            header = unfinish(header, &mut frame, offset);
        }
        let (one, mut cut) = segments(&header, &frame, 9_100).unwrap();
        prop_assert_eq!(cut.len(), length.div_ceil(usize::from(size)).max(1));
        for segment in &mut cut {
            finish(&one, segment);
            assert_checksums(segment);
        }
        laws::hold(&[&header.bytes()[..], &9_100_u16.to_be_bytes(), &frame].concat());
    }

    #[test]
    fn no_bytes_cause_a_panic(
        (tags, is_ipv4, is_tcp) in (0_u8..=2, any::<bool>(), any::<bool>()),
        header in any::<[u8; 10]>(),
        kind in 0_u8..=6,
        longest in any::<u16>(),
        length in 0_usize..3_000,
        changes in prop::collection::vec((0_usize..100, any::<u8>()), 0..4),
        cut in 0_usize..200,
    ) {
        let ip: Ip = if is_ipv4 { ipv4().into() } else { ipv6().into() };
        let carried = if is_tcp { tcp(|_| ()) } else { Carried::Udp };
        let frame = frame(tags, ip, &carried, &payload(length));
        let mut bytes = [&header[..], &longest.to_be_bytes(), &frame].concat();
        bytes[1] = kind;
        // An unfinished checksum would seldom be at the right offset.
        bytes[0] &= 2;
        for (at, byte) in changes {
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
        }
        laws::hold(&bytes);
        laws::hold(&bytes[..bytes.len().saturating_sub(cut)]);
        laws::hold(&bytes[..cut.min(bytes.len())]);
    }
}
