use apportion_testing::properties::cases;
use proptest::prelude::*;

use super::*;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// An IPv4 packet of this length, with only the header captured.
fn ip(length: u16) -> Vec<u8> {
    let mut header = vec![0; 20];
    header[0] = 0x45;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header
}

/// An IPv6 packet with a payload of this length, with only the header captured.
fn ip6(length: u16) -> Vec<u8> {
    let mut header = vec![0; 40];
    header[0] = 0x60;
    header[4..6].copy_from_slice(&length.to_be_bytes());
    header
}

/// A frame with the bytes before the packet, a type field at the end of these, and the packet.
fn framed(before: &[u8], packet: &[u8]) -> Vec<u8> {
    [before, packet].concat()
}

fn ethernet(kind: u16, packet: &[u8]) -> Vec<u8> {
    framed(&[&[2; 12], &kind.to_be_bytes()[..]].concat(), packet)
}

/// A frame: seconds, the fraction, its size on the wire, and the captured bytes.
type Frame = (u32, u32, u32, Vec<u8>);

fn words(order: Order, words: &[u32]) -> Vec<u8> {
    let bytes =
        |word: &u32| if matches!(order, Order::Big) { word.to_be_bytes() } else { word.to_le_bytes() };
    words.iter().flat_map(bytes).collect()
}

/// A pcap file.
fn file(order: Order, magic: u32, link: u32, frames: &[Frame]) -> Vec<u8> {
    let version = if matches!(order, Order::Big) { 2 << 16 | 4 } else { 4 << 16 | 2 };
    let mut bytes = words(order, &[magic, version, 0, 0, 65_535, link]);
    for (seconds, fraction, wire, data) in frames {
        bytes.extend(words(order, &[*seconds, *fraction, data.len() as u32, *wire]));
        bytes.extend(data);
    }
    bytes
}

/// A little-endian file with microseconds.
fn micro(link: u32, frames: &[Frame]) -> Vec<u8> {
    file(Order::Little, 0xa1b2_c3d4, link, frames)
}

/// A block of a pcapng file.
fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = (12 + body.len() + padding) as u32;
    [words(order, &[kind, length]), body.to_vec(), vec![0; padding], words(order, &[length])].concat()
}

fn section(order: Order) -> Vec<u8> {
    let version = if matches!(order, Order::Big) { 1 << 16 } else { 1 };
    block(order, SECTION, &words(order, &[0x1a2b_3c4d, version, u32::MAX, u32::MAX]))
}

/// An interface with options: code and value.
fn interface(order: Order, link: u16, snap: u32, options: &[(u16, &[u8])]) -> Vec<u8> {
    let pair = |a: u16, b: u16| match order {
        Order::Big => words(order, &[u32::from(a) << 16 | u32::from(b)]),
        Order::Little => words(order, &[u32::from(b) << 16 | u32::from(a)]),
    };
    let mut body = [pair(link, 0), words(order, &[snap])].concat();
    for (code, value) in options {
        body.extend(pair(*code, value.len() as u16));
        body.extend(*value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    block(order, INTERFACE, &body)
}

/// An enhanced packet.
fn enhanced(order: Order, interface: u32, time: u64, wire: u32, data: &[u8]) -> Vec<u8> {
    let header = [interface, (time >> 32) as u32, time as u32, data.len() as u32, wire];
    block(order, ENHANCED_PACKET, &[words(order, &header), data.to_vec()].concat())
}

/// Times in nanoseconds and sizes.
fn packets(bytes: &[u8]) -> Vec<(u64, u64)> {
    let capture = Capture::parse(bytes).unwrap();
    assert_eq!(capture.remarks, [""; 0]);
    times(&capture)
}

fn times(capture: &Capture) -> Vec<(u64, u64)> {
    capture.packets.iter().map(|(at, size)| (at.as_nanos(), size.get())).collect()
}

fn remarks(bytes: &[u8]) -> Vec<String> {
    Capture::parse(bytes).unwrap().remarks
}

fn error(bytes: &[u8]) -> String {
    Capture::parse(bytes).unwrap_err().to_string()
}

#[test]
fn pcap_is_read_in_both_byte_orders_and_units() {
    let frames = [(7, 999, 1_514, ethernet(IPV4, &ip(1_500))), (8, 5, 114, ethernet(IPV6, &ip6(60)))];
    for order in [Order::Little, Order::Big] {
        // 8.000005 - 7.000999 s; in nanoseconds the fraction counts a thousandth of that.
        assert_eq!(packets(&file(order, 0xa1b2_c3d4, 1, &frames)), [(0, 1_500), (999_006_000, 100)]);
        assert_eq!(packets(&file(order, 0xa1b2_3c4d, 1, &frames)), [(0, 1_500), (999_999_006, 100)]);
    }
    // The upper half of the link type declares a frame check sequence of four bytes.
    assert_eq!(packets(&micro(0x2400_0001, &frames[..1])), [(0, 1_500)]);
}

#[test]
fn the_size_is_what_the_ip_header_says_of_every_link_type() {
    let tagged = |tags: &[u8]| framed(&[&[2; 12], tags].concat(), &ip(44));
    let sll2 = [&[8, 0][..], &[0; 18]].concat();
    let sll = [&[0; 14][..], &[8, 0]].concat();
    let frames = [
        (1, ethernet(IPV4, &ip(44))),
        (1, tagged(&[0x81, 0, 0, 7, 8, 0])),
        (1, tagged(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 7, 8, 0])),
        (1, tagged(&[0x88, 0x64, 0x11, 0, 0, 1, 0, 42, 0, 0x21])),
        (0, framed(&[2, 0, 0, 0], &ip(44))),
        (0, framed(&[0, 0, 0, 2], &ip(44))),
        (0, framed(&[30, 0, 0, 0], &ip6(4))),
        (108, framed(&[0, 0, 0, 24], &ip6(4))),
        (12, ip(44)),
        (101, ip6(4)),
        (228, ip(44)),
        (229, ip6(4)),
        (113, framed(&sll, &ip(44))),
        (276, framed(&sll2, &ip(44))),
    ];
    for (link, data) in frames {
        // Padded, as short frames are on Ethernet.
        let data = [data, vec![0; 6]].concat();
        assert_eq!(
            packets(&micro(link, &[(1, 0, data.len() as u32 + 20, data.clone())])),
            [(0, 44)],
            "{data:?}"
        );
    }
}

#[test]
fn where_the_header_was_not_kept_the_size_is_that_of_the_frame() {
    let cut = |link: u32, wire, data: &[u8]| packets(&micro(link, &[(1, 0, wire, data.to_vec())]));
    assert_eq!(cut(1, 1_514, &ethernet(IPV4, &[])), [(0, 1_500)]);
    assert_eq!(cut(1, 1_514, &ethernet(IPV4, &[0x45, 0])), [(0, 1_500)]);
    assert_eq!(cut(101, 40, &[]), [(0, 40)]);
    // The adapter splits it after the capture, which leaves the length zero.
    assert_eq!(cut(1, 9_014, &ethernet(IPV4, &ip(0))), [(0, 9_000)]);
}

#[test]
fn odd_frames_are_skipped_and_counted() {
    let whole = (1, 0, 54, ethernet(IPV4, &ip(40)));
    let arp = (1, 0, 42, ethernet(0x0806, &[0; 28]));
    let mut frames = vec![whole.clone(), arp.clone(), arp];
    // Too short for an IP header, captured without its type, longer than the frame, shorter than its own
    // header, version 5.
    frames.push((1, 0, 20, ethernet(IPV4, &[0x45; 6])));
    frames.push((1, 0, 60, vec![2; 13]));
    frames.push((1, 0, 60, ethernet(IPV4, &ip(47))));
    frames.push((1, 0, 60, ethernet(IPV4, &ip(19))));
    frames.push((1, 0, 60, ethernet(IPV4, &[0x55; 20])));
    frames.push((1, 0, 60, ethernet(IPV4, &ip(27))));
    frames.push(whole);
    let capture = Capture::parse(&micro(1, &frames)).unwrap();
    assert_eq!(times(&capture), [(0, 40), (0, 40)]);
    assert_eq!(
        capture.remarks,
        [
            "8 of 10 frames are skipped: 3 not IP (first frame 2), 1 with less than the 28B of headers that a datagram has \
             (first frame 9), 3 with lengths of which one is false (first frame 4), 1 kept only in part, without what says \
             whether they are IP (first frame 5)"
        ]
    );
    assert!(error(&micro(1, &frames[1..2])).starts_with("there are no packets in it; 1 of 1 frames"));
}

#[test]
fn whole_packets_of_a_cut_file_are_used() {
    let frame = (1, 0, 54, ethernet(IPV4, &ip(40)));
    let bytes = micro(1, &[frame.clone(), frame]);
    let one = bytes.len() - 50;
    for end in one + 1..bytes.len() {
        let capture = Capture::parse(&bytes[..end]).unwrap();
        assert_eq!(times(&capture), [(0, 40)]);
        assert_eq!(capture.remarks, ["the file was cut: what follows frame 1 is not whole"]);
    }
    assert_eq!(remarks(&bytes[..one]), [""; 0]);
    assert_eq!(
        error(&bytes[..one - 1]),
        "there are no packets in it; the file was cut: what follows frame 0 is not whole"
    );
    // A length beyond the captured maximum is damage, not a longer frame that was cut.
    let mut damaged = bytes;
    damaged[one + 8..one + 12].copy_from_slice(&300_000_u32.to_le_bytes());
    assert_eq!(remarks(&damaged), ["the file is damaged behind frame 1, and no more is read"]);
}

#[test]
fn pcapng_has_interfaces_with_units_of_their_own() {
    for order in [Order::Little, Order::Big] {
        let offset = 100_u64;
        let offset = if matches!(order, Order::Big) { offset.to_be_bytes() } else { offset.to_le_bytes() };
        let bytes = [
            section(order),
            interface(order, 1, 0, &[(2, b"eth0")]),
            // Nanoseconds, 100 s later; 2^-10 s; with an option that has no effect here.
            interface(order, 101, 0, &[(9, &[9]), (14, &offset)]),
            interface(order, 276, 0, &[(1, b"odd"), (9, &[0x8a])]),
            // A block of another kind.
            block(order, 0x8000_0001, &[1, 2, 3]),
            enhanced(order, 0, 200_000_000, 54, &ethernet(IPV4, &ip(40))),
            enhanced(order, 1, 100_000_000_007, 60, &ip(50)),
            enhanced(order, 2, 201 << 10, 80, &framed(&[&[8, 0][..], &[0; 18]].concat(), &ip(60))),
        ];
        assert_eq!(packets(&bytes.concat()), [(0, 40), (7, 50), (1_000_000_000, 60)]);
    }
}

#[test]
fn sections_of_pcapng_have_their_own_byte_orders_and_interfaces() {
    let part = |order, link, time| {
        [section(order), interface(order, link, 0, &[]), enhanced(order, 0, time, 40, &ip(40))].concat()
    };
    let both = [part(Order::Big, 101, 5), part(Order::Little, 12, 6)].concat();
    assert_eq!(packets(&both), [(0, 40), (1_000, 40)]);
}

#[test]
fn simple_packets_are_sent_with_the_one_before() {
    let order = Order::Little;
    let simple = |wire: u32, data: &[u8]| {
        block(order, SIMPLE_PACKET, &[words(order, &[wire]), data.to_vec()].concat())
    };
    let bytes = [
        section(order),
        interface(order, 101, 20, &[]),
        simple(50, &ip(50)),
        enhanced(order, 0, 1_000, 40, &ip(40)),
        enhanced(order, 0, 1_003, 40, &ip(40)),
        simple(60, &ip(60)),
    ];
    let capture = Capture::parse(&bytes.concat()).unwrap();
    assert_eq!(times(&capture), [(0, 50), (0, 40), (3_000, 40), (3_000, 60)]);
    assert_eq!(
        capture.remarks,
        ["2 packets have no time (simple packet blocks); each is sent with the one before it"]
    );
    // Without any time.
    assert_eq!(times(&Capture::parse(&bytes[..3].concat()).unwrap()), [(0, 50)]);
}

#[test]
fn packets_are_sorted_by_time() {
    let bytes = micro(101, &[(7, 3, 40, ip(40)), (7, 1, 41, ip(41)), (7, 2, 42, ip(42))]);
    let capture = Capture::parse(&bytes).unwrap();
    assert_eq!(times(&capture), [(0, 41), (1_000, 42), (2_000, 40)]);
    assert_eq!(capture.remarks, ["times that go back: 1; packets are sent in the order of their times"]);
}

#[test]
fn a_bad_capture_is_refused_with_the_reason() {
    assert!(error(b"hello").starts_with("not a pcap or pcapng file"), "{}", error(b"hello"));
    assert_eq!(error(&micro(1, &[])), "there are no packets in it");
    let large = error(&micro(101, &[(0, 0, 40, ip(40)), (0, 1, 65_536, ip(0))]));
    assert!(large.starts_with("packet 2 has 65536B") && large.contains("ethtool"), "{large}");
    let radio = error(&micro(105, &[(0, 0, 14, vec![0; 14])]));
    assert!(radio.contains("of link type 105, which is not supported"), "{radio}");
    // The length at the end of a block differs from that at its beginning.
    let mut bytes = [section(Order::Little), interface(Order::Little, 1, 0, &[])].concat();
    let last = bytes.len() - 4;
    bytes[last] += 4;
    assert_eq!(
        error(&bytes),
        "there are no packets in it; the file is damaged behind frame 0, and no more is read"
    );
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn no_bytes_panic(ng: bool, head in 0usize..200, tail in proptest::collection::vec(any::<u8>(), 0..80)) {
        let order = Order::Little;
        let mut bytes = if ng {
            let parts = [section(order), interface(order, 1, 0, &[(9, &[9])]), enhanced(order, 0, 7, 54, &ethernet(IPV4, &ip(40)))];
            parts.concat()
        } else {
            micro(1, &[(1, 2, 54, ethernet(IPV4, &ip(40))), (2, 3, 54, ethernet(IPV6, &ip6(0)))])
        };
        bytes.truncate(head);
        bytes.extend(tail);
        let _ = Capture::parse(&bytes);
    }
}
