//! Invariants of the frame module on any bytes: the fuzzer `frame` and the tests of this crate check them.

use apportion_core::label::Label;
use apportion_core::packet::{Ecn, LabelKind};
use apportion_live::frame::{self, FlowTuple, Network, Parsed};
use apportion_live::wire_label;

/// Panics unless the invariants hold for these bytes.
pub fn hold(bytes: &[u8]) {
    let Ok(parsed) = frame::parse(bytes) else { return };
    let end = parsed.network_offset + parsed.length.get() as usize;
    assert!(end <= bytes.len());
    assert!(parsed.transport_offset.is_none_or(|at| parsed.network_offset < at && at < end));
    assert_eq!(parsed.headers.is_some(), !matches!(parsed.network, Network::Other(_)));
    assert_eq!(parsed.headers.map(|headers| headers.dscp), frame::dscp(bytes, parsed.ip()));
    if let Some(flow) = parsed.flow() {
        assert_eq!(flow.key().and_then(|key| FlowTuple::from_key(&key)), Some(flow));
        assert_eq!(flow.reversed().reversed(), flow);
    }
    // Fields read again when a frame leaves equal those read when it entered.
    let ports = parsed.headers.and_then(|headers| headers.ports);
    let number = parsed.segment.and_then(|segment| segment.acknowledges);
    let read = ports.zip(number).map(|((_, to), number)| (to, number));
    assert_eq!(frame::acknowledgement(bytes, parsed.acknowledgement()), read);
    let echo = frame::timestamps(bytes, &parsed).and_then(|stamps| stamps.echo);
    assert!(echo.is_none() || parsed.segment.is_some_and(|segment| segment.acknowledges.is_some()));
    edits(bytes, &parsed);
    labels(bytes, &parsed);
    // The parse of another frame, here of a longer one, must not cause a panic.
    for length in [0, parsed.network_offset, parsed.network_offset + 19, bytes.len() / 2] {
        let mut cut = bytes[..length.min(bytes.len())].to_vec();
        let _ = frame::timestamps(&cut, &parsed);
        change_everything(&mut cut, &parsed);
    }
}

fn change_everything(bytes: &mut [u8], parsed: &Parsed) {
    frame::set_ce(bytes, parsed.ip());
    frame::set_dscp(bytes, parsed.ip(), 46);
    frame::set_identification(bytes, parsed.ip(), 0x1234);
    frame::set_flow_label(bytes, parsed.ip(), 0x5_4321);
    wire_label::write(bytes, parsed.ip(), LabelKind::Rate, Label::from_code(77));
    wire_label::clear(bytes, parsed.ip());
}

/// Bits of the IP header: the byte, and a mask of its bits.
type Bits = &'static [(usize, u8)];

const CHECKSUM: Bits = &[(10, 0xff), (11, 0xff)];
const IDENTIFICATION: Bits = &[(4, 0xff), (5, 0xff)];
const FLOW_LABEL: Bits = &[(1, 0x0f), (2, 0xff), (3, 0xff)];
const DSCP_4: Bits = &[(1, 0xfc)];
const DSCP_6: Bits = &[(0, 0x0f), (1, 0xc0)];
const ECN_4: Bits = &[(1, 0x03)];
const ECN_6: Bits = &[(1, 0x30)];

/// The bits of these that may change in a packet of this version.
fn allowed(network: Network, of_4: &[Bits], of_6: &[Bits]) -> Vec<(usize, u8)> {
    match network {
        Network::Ipv4 => [of_4, &[CHECKSUM]].concat().concat(),
        Network::Ipv6 => of_6.concat(),
        Network::Other(_) => Vec::new(),
    }
}

/// The sum of an IPv4 header's words in ones' complement, where both zeros are equal: 0 for a right checksum,
/// and unchanged by an edit for a wrong one.
fn wrong_by(bytes: &[u8], parsed: &Parsed) -> u32 {
    let header = &bytes[parsed.network_offset..];
    let header = &header[..4 * usize::from(header[0] & 0xf)];
    header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum::<u32>() % 0xffff
}

/// The frame after an edit that may change only `bits`; it must then parse to `expected`.
fn edited(
    bytes: &[u8],
    parsed: &Parsed,
    expected: &Parsed,
    bits: &[(usize, u8)],
    edit: impl Fn(&mut [u8], &Parsed),
) -> Vec<u8> {
    let mut after = bytes.to_vec();
    edit(&mut after, parsed);
    assert_eq!(frame::parse(&after).as_ref(), Ok(expected));
    for (at, (old, new)) in bytes.iter().zip(&after).enumerate() {
        let free = bits.iter().filter(|(place, _)| parsed.network_offset + place == at).map(|(_, bits)| bits);
        let free = free.fold(0, |all, bits| all | bits);
        assert_eq!((old ^ new) & !free, 0, "byte {at}: {old:#x} became {new:#x}");
    }
    if parsed.network == Network::Ipv4 {
        assert_eq!(wrong_by(bytes, parsed), wrong_by(&after, parsed));
    }
    let mut twice = after.clone();
    edit(&mut twice, parsed);
    assert_eq!(twice, after, "the same edit again changes nothing");
    after
}

fn with_dscp(parsed: &Parsed, dscp: u8) -> Parsed {
    let mut parsed = *parsed;
    if let Some(headers) = &mut parsed.headers {
        headers.dscp = dscp;
    }
    parsed
}

fn edits(bytes: &[u8], parsed: &Parsed) {
    let network = parsed.network;
    let mut marked = *parsed;
    if parsed.headers.is_some() {
        marked.ecn = Ecn::Ce;
    }
    edited(bytes, parsed, &marked, &allowed(network, &[ECN_4], &[ECN_6]), |bytes, parsed| {
        frame::set_ce(bytes, parsed.ip());
    });
    for dscp in [0, 46, 63] {
        let (expected, bits) = (with_dscp(parsed, dscp), allowed(network, &[DSCP_4], &[DSCP_6]));
        let after = edited(bytes, parsed, &expected, &bits, |bytes, parsed| {
            frame::set_dscp(bytes, parsed.ip(), dscp);
        });
        assert_eq!(frame::dscp(&after, parsed.ip()), parsed.headers.map(|_| dscp));
    }
    for value in [0, 1, 0xa_5a5a, 0xf_ffff] {
        let was_atomic = frame::atomic_identification(bytes, parsed.ip()).is_some();
        let bits = allowed(network, &[IDENTIFICATION], &[]);
        let after = edited(bytes, parsed, parsed, &bits, |bytes, parsed| {
            frame::set_identification(bytes, parsed.ip(), value as u16);
        });
        assert_eq!(frame::atomic_identification(&after, parsed.ip()), was_atomic.then_some(value as u16));
        let bits = allowed(network, &[], &[FLOW_LABEL]);
        let after = edited(bytes, parsed, parsed, &bits, |bytes, parsed| {
            frame::set_flow_label(bytes, parsed.ip(), value);
        });
        assert_eq!(frame::flow_label(&after, parsed.ip()), (network == Network::Ipv6).then_some(value));
    }
}

fn labels(bytes: &[u8], parsed: &Parsed) {
    let is_atomic = frame::atomic_identification(bytes, parsed.ip()).is_some();
    let has_room = is_atomic || parsed.network == Network::Ipv6;
    let bits = allowed(parsed.network, &[DSCP_4, IDENTIFICATION], &[DSCP_6, FLOW_LABEL]);
    let found = wire_label::read(bytes, parsed.ip());
    assert!(has_room || found.is_none());
    let mut before = bytes.to_vec();
    for kind in [LabelKind::Tickets, LabelKind::AckTickets, LabelKind::Rate] {
        for code in [0, 1, 0xffff, 0x1_0000, 0x1_a5a5, 0x1_ffff] {
            let label = Label::from_code(code);
            if !has_room {
                assert!(!wire_label::write(&mut before, parsed.ip(), kind, label));
                assert!(!wire_label::clear(&mut before, parsed.ip()));
                assert_eq!(before, bytes);
                continue;
            }
            // The second label replaces the first one.
            let mut after = before.clone();
            assert!(wire_label::write(&mut after, parsed.ip(), kind, label));
            let dscp = frame::dscp(&after, parsed.ip()).unwrap_or_default();
            let expected = with_dscp(parsed, dscp);
            let written = edited(&before, parsed, &expected, &bits, |bytes, parsed| {
                wire_label::write(bytes, parsed.ip(), kind, label);
            });
            assert_eq!(written, after);
            assert_eq!(wire_label::read(&after, parsed.ip()), Some((kind, label)));
            let cleared = edited(&after, parsed, &with_dscp(parsed, 0), &bits, |bytes, parsed| {
                wire_label::clear(bytes, parsed.ip());
            });
            assert_eq!(wire_label::read(&cleared, parsed.ip()), None);
            before = after;
        }
    }
}
