//! The codec of labels, and labels on frames, in the kernel: bit for bit the same as in this project's Rust.

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;
use apportion_core::random::Stream;
use apportion_kernel::program::{Object, program};
use apportion_live::{frame, wire_label};
use aya::Ebpf;

use crate::common::{frame_v4, frame_v6, is_possible, run};

/// Values and codes of one run: 16 B each after a header of 16 B.
const ITEMS: usize = 200;

/// Encodes values in Q16 and decodes codes in the kernel.
fn coded(object: &mut Ebpf, items: &[(u64, u32)]) -> Vec<(u32, u64)> {
    let codec = program(object, "codec").unwrap();
    let mut all = Vec::new();
    for items in items.chunks(ITEMS) {
        let mut data = vec![0; 16];
        for (value, code) in items {
            data.extend(value.to_ne_bytes());
            data.extend(u64::from(*code).to_ne_bytes());
        }
        let (_, out, _) = run(codec, &data, [0; 3], 1);
        let word = |at: usize| u64::from_ne_bytes(*out[at..].first_chunk().unwrap());
        all.extend((0..items.len()).map(|i| (u32::try_from(word(16 + 16 * i)).unwrap(), word(24 + 16 * i))));
    }
    all
}

#[test]
fn a_million_labels_are_those_of_the_core_bit_for_bit() {
    if !is_possible() {
        return;
    }
    let mut items = Vec::new();
    // Each value of a label, the midpoint to the next one, and the neighbours of both, in Q16.
    for code in 0..1 << Label::BITS {
        let [at, next] = [code, code + 1].map(|code| (Label::from_code(code).value() * 65_536.0) as u64);
        let middle = if next > at { at + (next - at) / 2 } else { at + 1 };
        for value in [at, middle] {
            items.extend([value.saturating_sub(1), value, value + 1].map(|value| (value, code)));
        }
    }
    let mut random = Stream::new(7, "labels");
    while items.len() < 1_200_000 {
        // Uniform over the number of bits, truncated to the 53 bits that an f64 holds.
        let bits = (random.uniform() * 64.0) as u32;
        let value = (random.uniform() * 18_446_744_073_709_551_615.0) as u64 >> (63 - bits.min(63));
        items.push((value, (random.uniform() * 131_072.0) as u32));
    }
    let cut = |value: u64| {
        let low = (u64::BITS - value.leading_zeros()).saturating_sub(53);
        value >> low << low
    };
    items.iter_mut().for_each(|(value, _)| *value = cut(*value));
    let mut object = Object::Check.load(false).unwrap();
    for ((value, code), (encoded, decoded)) in items.iter().zip(coded(&mut object, &items)) {
        assert_eq!(encoded, Label::new(*value as f64 / 65_536.0).code(), "{value} in Q16");
        assert_eq!(decoded as f64, Label::from_code(*code).value(), "{code:#x}");
    }
    println!("{} labels were written and read alike", items.len());
}

const KINDS: [(LabelKind, u32); 4] =
    [(LabelKind::Tickets, 1), (LabelKind::AckTickets, 2), (LabelKind::Rate, 3), (LabelKind::Value, 4)];

/// Frames with and without room, with and without tags, and cut at each length.
fn frames() -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    for tags in 0..=2 {
        frames.extend([frame_v4(0x4000, 17, tags), frame_v6(tags)]);
        // May be fragmented; is a fragment; has an authentication header.
        frames.extend([(0, 17), (0x2000, 6), (0x4000, 51), (0xc000, 6)].map(|(f, p)| frame_v4(f, p, tags)));
    }
    frames
}

#[test]
fn labels_on_frames_are_those_of_the_engine() {
    if !is_possible() {
        return;
    }
    let mut object = Object::Check.load(false).unwrap();
    let wire = program(&mut object, "wire").unwrap();
    let mut random = Stream::new(8, "frames");
    let (mut with_room, mut labelled) = (0, 0);
    for mut bytes in frames().into_iter().cycle().take(20_000) {
        // With and without a previous label, and with random bits in the header.
        let parsed = frame::parse(&bytes).unwrap();
        let mut draw = |below: u32| (random.uniform() * f64::from(below)) as u32;
        let (kind, bits) = KINDS[draw(3) as usize];
        let label = Label::from_code(draw(1 << 17));
        if draw(2) == 1 {
            wire_label::write(&mut bytes, parsed.ip(), kind, Label::from_code(draw(1 << 17)));
        }
        let flipped = parsed.network_offset + [1, 4, 5][draw(3) as usize];
        bytes[flipped] ^= draw(256) as u8;
        let before = wire_label::read(&bytes, parsed.ip());
        let removes = draw(4) == 0;
        let mark = if removes { 1 << 31 } else { bits << 17 | label.code() };
        let (verdict, out, _) = run(wire, &bytes, [mark, 0, 0], 1);
        let has_room = if removes {
            wire_label::clear(&mut bytes, parsed.ip());
            verdict >> 31 == 1
        } else {
            wire_label::write(&mut bytes, parsed.ip(), kind, label)
        };
        assert_eq!(out, bytes, "{parsed:?}, {mark:#x}");
        assert_eq!(verdict >> 31 == 1, has_room, "{parsed:?}");
        let word = verdict & 0xf_ffff;
        let read = KINDS
            .iter()
            .find(|(_, bits)| word >> 17 == *bits)
            .map(|(kind, _)| (*kind, Label::from_code(word)));
        assert_eq!(read, before, "{parsed:?}");
        with_room += usize::from(has_room);
        labelled += usize::from(before.is_some());
    }
    assert!(with_room > 4_000 && labelled > 2_000, "{with_room} with room, {labelled} labelled");
}

#[test]
fn frames_that_are_cut_are_left_alone() {
    if !is_possible() {
        return;
    }
    let mut object = Object::Check.load(false).unwrap();
    let wire = program(&mut object, "wire").unwrap();
    for whole in [frame_v4(0x4000, 17, 2), frame_v6(2)] {
        for length in 14..whole.len() {
            let cut = &whole[..length];
            let (verdict, out, _) = run(wire, cut, [3 << 17 | 77, 0, 0], 1);
            let header = if whole[22] >> 4 == 4 { 42 } else { 62 };
            assert_eq!((verdict >> 31 == 1, out == cut), (length >= header, length < header), "{length}");
        }
    }
}
