//! Invariants of any super-packet: the fuzzer `segment` and the tests of this crate check them.

use apportion_linux::port::segment::{NEEDS_CHECKSUM, Segments, VNET_HEADER, VnetHeader};

/// The segments of a super-packet, with the header before each of them; none if it is refused.
pub fn segments(header: &VnetHeader, frame: &[u8], longest: usize) -> Option<(VnetHeader, Vec<Vec<u8>>)> {
    let mut segments = Segments::new(header, frame, longest).ok()?;
    let mut cut = Vec::new();
    let mut buffer = vec![0; longest];
    while let Some(length) = segments.write_next(&mut buffer) {
        cut.push(buffer[..length].to_vec());
        assert!(cut.len() + segments.remaining() < 3_000);
    }
    assert_eq!(segments.remaining(), 0);
    Some((segments.header(), cut))
}

/// Panics unless the invariants hold for these bytes: a header, the longest segment, a frame.
pub fn hold(bytes: &[u8]) {
    let Some((header, rest)) = bytes.split_first_chunk::<VNET_HEADER>() else { return };
    let Some((longest, frame)) = rest.split_first_chunk::<2>() else { return };
    let header = VnetHeader::read(header);
    assert_eq!(VnetHeader::read(&header.bytes()), header);
    let longest = usize::from(u16::from_be_bytes(*longest));
    let Some((one, cut)) = segments(&header, frame, longest) else { return };
    assert!(!cut.is_empty() && cut.iter().all(|segment| segment.len() <= longest));
    assert_eq!(one.gso_type, 0);
    let (transport, end) = transport(frame);
    let payload = transport + transport_header(header.gso_type, &frame[transport..]);
    let together: Vec<u8> = cut.iter().flat_map(|segment| &segment[payload..]).copied().collect();
    assert_eq!(together, frame[payload..end]);
    assert_eq!(one.flags & NEEDS_CHECKSUM, header.flags & NEEDS_CHECKSUM);
    // The sum of the pseudo-header without its length equals that of the super-packet.
    let whole = pseudo_header(&one, header.gso_type, &frame[transport..end]);
    for segment in &cut {
        assert_eq!(pseudo_header(&one, header.gso_type, &segment[transport..]), whole);
    }
}

fn transport_header(gso_type: u8, bytes: &[u8]) -> usize {
    if gso_type & 0x7f == 5 { 8 } else { 4 * usize::from(bytes[12] >> 4) }
}

/// The sum of the pseudo-header, without its length, as the checksum implies it; zero without a checksum.
fn pseudo_header(one: &VnetHeader, gso_type: u8, bytes: &[u8]) -> u64 {
    let at = if gso_type & 0x7f == 5 { 6 } else { 16 };
    let field = word(bytes, at);
    let length = bytes.len() as u64;
    let sum = match one.flags & NEEDS_CHECKSUM {
        0 if at == 6 && field == 0 => return 0,
        0 => 0xffff - sum(bytes) % 0xffff,
        _ => field,
    };
    (sum + 2 * 0xffff - length) % 0xffff
}

/// The sum of the big-endian words modulo 2^16 - 1, which is ones' complement.
pub fn sum(bytes: &[u8]) -> u64 {
    let words =
        bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u64::from(*low)));
    words.sum::<u64>() % 0xffff
}

pub fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from(bytes[at]) << 8 | u64::from(bytes[at + 1])
}

/// Offsets of the transport header and of the end of the IP packet in a frame.
pub fn transport(frame: &[u8]) -> (usize, usize) {
    let mut at = 12;
    while matches!(word(frame, at), 0x8100 | 0x88a8) {
        at += 4;
    }
    let network = at + 2;
    if word(frame, at) == 0x0800 {
        let header = 4 * usize::from(frame[network] & 15);
        return (network + header, network + word(frame, network + 2) as usize);
    }
    let (mut at, mut next) = (network + 40, frame[network + 6]);
    while matches!(next, 0 | 43 | 60) {
        next = frame[at];
        at += 8 + 8 * usize::from(frame[at + 1]);
    }
    (at, network + 40 + word(frame, network + 4) as usize)
}
