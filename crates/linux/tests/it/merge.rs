//! Segments merged into super-packets, which yield the original frames bit for bit when they are split again.

use apportion_linux::port::merge::{CHECKSUM_VERIFIED, MAX_MERGED, Plan};
use apportion_linux::port::segment::{NEEDS_CHECKSUM, VNET_HEADER, VnetHeader};
use apportion_testing::properties::cases;
use etherparse::{TcpHeader, TcpOptionElement};
use proptest::prelude::*;

use crate::frames::{Carried, Ip, assert_checksums, frame, ipv4, ipv6};
use crate::laws::{self, segments, sum, transport};

/// A frame with the header before it.
type Frame = ([u8; VNET_HEADER], Vec<u8>);

/// Why the checksums of a train are known to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Unfinished,
    Verified,
}

/// The common properties of a train of segments.
#[derive(Clone, Copy, Debug)]
struct Train {
    tags: u8,
    is_ipv4: bool,
    has_options: bool,
    known: Known,
}

const PLAIN: Train = Train { tags: 0, is_ipv4: true, has_options: true, known: Known::Unfinished };

impl Train {
    /// The segment of this number, whose payload begins `begin` bytes after that of the first.
    fn segment(self, number: u16, begin: usize, payload: &[u8], change: impl Fn(&mut TcpHeader)) -> Vec<u8> {
        let ip: Ip = if self.is_ipv4 {
            let mut header = ipv4();
            header.identification = 0xfffd_u16.wrapping_add(number);
            header.into()
        } else {
            ipv6().into()
        };
        let carried = Carried::tcp(|header| {
            (header.acknowledgment_number, header.ack) = (77, true);
            header.sequence_number = (u32::MAX - 3_000).wrapping_add(begin as u32);
            if self.has_options {
                let stamps =
                    [TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(1, 2)];
                header.set_options(&stamps).unwrap();
            }
            change(header);
        });
        frame(self.tags, ip, &carried, payload)
    }

    /// Segments of `size` bytes and a last one of `last`.
    fn frames(self, count: usize, size: usize, last: usize) -> Vec<Vec<u8>> {
        let length = (count - 1) * size + last;
        let bytes: Vec<u8> = (0..length).map(|at| (at * 7 % 251) as u8).collect();
        let chunks = bytes.chunks(size).enumerate();
        chunks
            .map(|(at, chunk)| {
                self.segment(at as u16, at * size, chunk, |header| {
                    (header.psh, header.fin) = (at + 1 == count, at + 1 == count);
                })
            })
            .collect()
    }

    /// The frame with the header before it, and the checksum that the header announces.
    fn sent(self, mut frame: Vec<u8>) -> Frame {
        let header = match self.known {
            Known::Verified => VnetHeader { flags: CHECKSUM_VERIFIED, ..VnetHeader::default() },
            Known::Unfinished => unfinish(&mut frame),
        };
        (header.bytes(), frame)
    }
}

/// Replaces the complete checksum of TCP by the sum of the pseudo-header.
fn unfinish(frame: &mut [u8]) -> VnetHeader {
    let (start, end) = transport(frame);
    let pseudo_header = 0xffff - sum(&frame[start..end]);
    frame[start + 16..][..2].copy_from_slice(&(pseudo_header as u16).to_be_bytes());
    VnetHeader {
        flags: NEEDS_CHECKSUM,
        checksum_start: start as u16,
        checksum_offset: 16,
        ..VnetHeader::default()
    }
}

/// Computes the checksum as a device does.
fn finish(header: &VnetHeader, frame: &mut [u8]) {
    if header.flags & NEEDS_CHECKSUM != 0 {
        let start = usize::from(header.checksum_start);
        // Words that are not all zero never add up to 0 in ones' complement, but to 0xffff, whose checksum is
        // 0.
        let checksum = (0xffff - sum(&frame[start..])) % 0xffff;
        frame[start + 16..][..2].copy_from_slice(&(checksum as u16).to_be_bytes());
    }
}

/// The messages for these frames: each with the number of its frames, the header before it, and its bytes.
fn messages(limit: usize, frames: &[Frame]) -> Vec<(usize, VnetHeader, Vec<u8>)> {
    let mut plan = Plan::default();
    plan.make(limit, frames.iter().map(|(header, frame)| (header, &frame[..])), |_, _| true);
    let mut left = frames.iter();
    let planned = plan.messages.iter().map(|message| {
        let mut parts = left.by_ref().take(message.count);
        let Some(merged) = message.merged else {
            let (header, frame) = parts.next().unwrap().clone();
            assert_eq!(message.count, 1);
            return (1, VnetHeader::read(&header), frame);
        };
        let (header, bytes) = plan.headers[merged.headers].bytes().split_first_chunk().unwrap();
        let payloads = parts.flat_map(|(_, frame)| &frame[merged.payload..]);
        (message.count, VnetHeader::read(header), bytes.iter().chain(payloads).copied().collect())
    });
    let planned: Vec<_> = planned.collect();
    assert_eq!(plan.frames, planned.iter().map(|(count, ..)| count).sum::<usize>());
    planned
}

/// Number of frames in each message.
fn counts(frames: &[Frame]) -> Vec<usize> {
    messages(usize::MAX, frames).into_iter().map(|(count, ..)| count).collect()
}

fn two(train: Train) -> [Frame; 2] {
    let frames = train.frames(2, 1_000, 900);
    <[_; 2]>::try_from(frames).unwrap().map(|frame| train.sent(frame))
}

fn trains() -> impl Iterator<Item = Train> {
    (0..24).map(|at| Train {
        tags: at / 8,
        is_ipv4: at & 1 == 0,
        has_options: at & 2 == 0,
        known: if at & 4 == 0 { Known::Unfinished } else { Known::Verified },
    })
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn a_super_packet_split_again_is_what_was_merged(
        tags in 0_u8..=2,
        (is_ipv4, has_options, is_verified) in (any::<bool>(), any::<bool>(), any::<bool>()),
        count in 2_usize..100,
        size in 256_usize..1_449,
        last in 1_usize..1_449,
        limit in 1_usize..5,
    ) {
        let known = if is_verified { Known::Verified } else { Known::Unfinished };
        let train = Train { tags, is_ipv4, has_options, known };
        let whole = train.frames(count, size, last.min(size));
        let frames: Vec<_> = whole.iter().map(|frame| train.sent(frame.clone())).collect();
        let mut came = Vec::new();
        for (count, header, bytes) in messages(limit, &frames) {
            prop_assert!(count <= MAX_MERGED);
            if count == 1 {
                let mut frame = bytes;
                finish(&header, &mut frame);
                came.push(frame);
                continue;
            }
            let (start, _) = transport(&bytes);
            prop_assert_eq!(usize::from(header.header_length), start + 4 * usize::from(bytes[start + 12] >> 4));
            let longest = whole[0].len() as u16;
            laws::hold(&[&header.bytes()[..], &longest.to_be_bytes(), &bytes].concat());
            // No segment is longer than its original frame.
            let (one, cut) = segments(&header, &bytes, whole[0].len()).unwrap();
            prop_assert_eq!(cut.len(), count);
            came.extend(cut.into_iter().map(|mut segment| {
                finish(&one, &mut segment);
                segment
            }));
        }
        // As many frames as there was room for, in order.
        prop_assert!(came.len() == count || limit * MAX_MERGED.min(65_000 / size) <= came.len() + limit);
        prop_assert_eq!(&came[..], &whole[..came.len()]);
        came.iter().for_each(|frame| assert_checksums(frame));
    }

    #[test]
    fn no_bytes_cause_a_panic(
        at in 0_u8..24,
        changes in prop::collection::vec((0_usize..120, any::<u8>()), 0..4),
        cuts in (0_usize..200, 0_usize..200),
    ) {
        let mut frames = two(trains().nth(usize::from(at)).unwrap());
        for (at, byte) in changes {
            let (header, frame) = &mut frames[at & 1];
            if at / 2 < VNET_HEADER { header[at / 2] = byte } else { frame[at / 2 + 10] = byte }
        }
        for ((_, frame), cut) in frames.iter_mut().zip([cuts.0, cuts.1]) {
            let length = frame.len();
            frame.truncate(if cut > 100 { cut - 100 } else { length });
        }
        counts(&frames);
    }
}

/// Makes the checksum of an IPv4 header right again.
fn repair(train: Train, frame: &mut [u8]) {
    let network = 14 + 4 * usize::from(train.tags);
    if train.is_ipv4 {
        frame[network + 10..][..2].fill(0);
        let checksum = 0xffff - sum(&frame[network..network + 20]);
        frame[network + 10..][..2].copy_from_slice(&(checksum as u16).to_be_bytes());
    }
}

#[test]
fn a_difference_of_any_bit_of_the_headers_stops_the_merge() {
    for train in trains() {
        let frames = two(train);
        assert_eq!(counts(&frames), [2], "{train:?}");
        let (start, _) = transport(&frames[0].1);
        let payload = start + if train.has_options { 32 } else { 20 };
        for bit in 0..8 * payload {
            let (at, mask) = (bit / 8, 1 << (bit % 8));
            let mut changed = frames.clone();
            changed[1].1[at] ^= mask;
            // The frame must not be merged even if only this field differs.
            let mut repaired = changed.clone();
            repair(train, &mut repaired[1].1);
            let is_flag_of_the_last = at == start + 13 && mask & 0x09 != 0;
            let is_ip_checksum =
                train.is_ipv4 && (10..12).contains(&(at.wrapping_sub(14 + 4 * usize::from(train.tags))));
            // The device has verified the checksum.
            let is_verified = train.known == Known::Verified && (start + 16..start + 18).contains(&at);
            let merges = |frames: &[Frame; 2]| counts(frames) == [2];
            let expected = is_flag_of_the_last || is_verified;
            assert_eq!(merges(&changed), expected, "{train:?} byte {at}, {mask:#x}");
            let expected = expected || is_ip_checksum;
            assert_eq!(merges(&repaired), expected, "{train:?} byte {at}, {mask:#x}, repaired");
        }
    }
}

#[test]
fn flags_that_are_not_for_all_stop_the_merge_though_both_have_them() {
    type Change = fn(&mut TcpHeader);
    let flags: [(bool, Change); 6] = [
        (true, |header| header.ece = true),
        (false, |header| header.syn = true),
        (false, |header| header.rst = true),
        (false, |header| header.urg = true),
        (false, |header| header.cwr = true),
        (false, |header| header.ack = false),
    ];
    for (merges, change) in flags {
        let frames =
            [0, 1].map(|at| PLAIN.sent(PLAIN.segment(at, 1_000 * usize::from(at), &[3; 1_000], change)));
        assert_eq!(counts(&frames) == [2], merges);
    }
    // PSH and FIN end a super-packet.
    for change in [|header: &mut TcpHeader| header.psh = true, |header: &mut TcpHeader| header.fin = true] {
        let frames: Vec<_> = (0..4)
            .map(|at| {
                let ends = move |header: &mut TcpHeader| {
                    if at == 1 {
                        change(header);
                    }
                };
                PLAIN.sent(PLAIN.segment(at, 1_000 * usize::from(at), &[3; 1_000], ends))
            })
            .collect();
        assert_eq!(counts(&frames), [2, 2]);
    }
}

#[test]
fn payloads_are_equal_but_for_a_shorter_last_one() {
    let train = |lengths: &[usize]| {
        let mut begin = 0;
        let frame = |(at, length): (usize, &usize)| {
            let frame = PLAIN.segment(at as u16, begin, &vec![5; *length], |_| ());
            begin += length;
            PLAIN.sent(frame)
        };
        lengths.iter().enumerate().map(frame).collect::<Vec<_>>()
    };
    assert_eq!(counts(&train(&[1_000, 1_000, 400, 400, 400, 1_000])), [3, 2, 1]);
    assert_eq!(counts(&train(&[400, 1_000, 1_000])), [1, 2]);
    // Acknowledgements, and short segments.
    assert_eq!(counts(&train(&[0, 0, 100, 100])), [1, 1, 1, 1]);
    // No IP packet is longer than 65,535 bytes; headers have 52.
    assert_eq!(counts(&train(&[1_400; 60])), [46, 14]);
    assert_eq!(counts(&train(&[300; 100])), [MAX_MERGED, 36]);
}

#[test]
fn what_may_be_damaged_is_sent_alone() {
    for train in trains() {
        let good = two(train);
        assert_eq!(counts(&good), [2]);
        for at in 0..2 {
            // The state of the checksum is unknown.
            let mut frames = good.clone();
            frames[at].0 = [0; VNET_HEADER];
            assert_eq!(counts(&frames), [1, 1]);
            // The checksum is elsewhere, as in a tunnel; or the packet is a super-packet, of any kind.
            let header = VnetHeader::read(&good[at].0);
            for other in [
                VnetHeader { checksum_start: 84, flags: NEEDS_CHECKSUM, ..header },
                VnetHeader { checksum_offset: 6, flags: NEEDS_CHECKSUM, ..header },
                VnetHeader { gso_type: 1, gso_size: 500, ..header },
                VnetHeader { flags: 3, ..header },
            ] {
                frames[at].0 = other.bytes();
                assert_eq!(counts(&frames), [1, 1], "{other:?}");
            }
            // The IPv4 header has a checksum of its own, which no device has verified.
            let mut frames = good.clone();
            let network = 14 + 4 * usize::from(train.tags);
            if train.is_ipv4 {
                frames[at].1[network + 10] ^= 0x40;
                assert_eq!(counts(&frames), [1, 1]);
            }
            // Padding.
            let mut frames = good.clone();
            frames[at].1.push(0);
            assert_eq!(counts(&frames), [1, 1]);
        }
    }
}

#[test]
fn marks_and_labels_stay_with_their_packets() {
    for is_ipv4 in [true, false] {
        let train = Train { is_ipv4, ..PLAIN };
        let class = |frame: &mut Frame, bits: u8| {
            if is_ipv4 {
                frame.1[15] |= bits;
            } else {
                frame.1[15] |= bits << 4;
            }
            repair(train, &mut frame.1);
        };
        // ECN-capable both ways, and marked.
        for (bits, merges) in [(1, true), (2, true), (3, false)] {
            let mut frames = two(train);
            frames.iter_mut().for_each(|frame| class(frame, bits));
            assert_eq!(counts(&frames) == [2], merges);
        }
    }
    // A label is the identification of IPv4, equal for packets of one rate.
    let mut frames = two(PLAIN);
    for frame in &mut frames {
        frame.1[18..20].copy_from_slice(&[0x12, 0x34]);
        repair(PLAIN, &mut frame.1);
    }
    assert_eq!(counts(&frames), [1, 1]);
}

#[test]
fn other_frames_between_segments_keep_their_place() {
    let mut frames: Vec<_> =
        PLAIN.frames(4, 1_000, 1_000).into_iter().map(|frame| PLAIN.sent(frame)).collect();
    let other = ([0; VNET_HEADER], frame(0, ipv4(), &Carried::Udp, &[1; 100]));
    frames.insert(2, other.clone());
    let sent = messages(usize::MAX, &frames);
    assert_eq!(sent.iter().map(|(count, ..)| *count).collect::<Vec<_>>(), [2, 1, 2]);
    assert_eq!(sent[1].2, other.1);
    // Frames that may not be merged stay single.
    let mut plan = Plan::default();
    plan.make(10, frames.iter().map(|(header, frame)| (header, &frame[..])), |_, frame| frame.len() < 1_000);
    assert!(plan.messages.iter().all(|message| message.count == 1) && plan.messages.len() == 5);
}
