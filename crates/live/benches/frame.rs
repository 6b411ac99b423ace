//! Time to parse a frame and the label on it, to write a label, and to mark congestion, in nanoseconds.

use std::hint::black_box;

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;
use apportion_live::{frame, wire_label};
use criterion::{Criterion, criterion_group, criterion_main};
use etherparse::PacketBuilder;

fn frames() -> [(&'static str, Vec<u8>); 2] {
    let ethernet = || PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    let built = ethernet().ipv4([192, 0, 2, 1], [198, 51, 100, 9], 64).tcp(5_004, 40_000, 1, 65_535);
    built.write_to_vec(&mut v4, &[0; 1_000]).expect("it fits");
    let built = ethernet().ipv6([1; 16], [2; 16], 64).tcp(5_004, 40_000, 1, 65_535);
    built.write_to_vec(&mut v6, &[0; 1_000]).expect("it fits");
    [("ipv4", v4), ("ipv6", v6)]
}

fn frame(c: &mut Criterion) {
    for (name, mut bytes) in frames() {
        let mut group = c.benchmark_group(name);
        let parsed = frame::parse(&bytes).expect("it is a frame");
        group.bench_function("parse", |b| b.iter(|| frame::parse(black_box(&bytes))));
        group.bench_function("parse, flow", |b| {
            b.iter(|| frame::parse(black_box(&bytes)).ok().and_then(|parsed| parsed.flow()));
        });
        let mut code = 0;
        group.bench_function("write label", |b| {
            b.iter(|| {
                code += 1;
                let label = Label::from_code(code);
                wire_label::write(black_box(&mut bytes), parsed.ip(), LabelKind::Rate, label)
            });
        });
        group.bench_function("read label", |b| b.iter(|| wire_label::read(black_box(&bytes), parsed.ip())));
        group.bench_function("set CE", |b| b.iter(|| frame::set_ce(black_box(&mut bytes), parsed.ip())));
    }
}

criterion_group!(benches, frame);
criterion_main!(benches);
