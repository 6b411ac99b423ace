//! Sequences of packets for programs in the kernel, and for this project's queues in Rust with which they are
//! compared.
#![allow(dead_code, reason = "each test uses a part")]

use std::thread;

use apportion_core::label::Label;
use apportion_core::packet::LabelKind;
use apportion_core::random::Stream;
use apportion_core::system::any::PolicyParams;
use apportion_core::system::{BufferParams, Catalog, DisciplineKind, DisciplineParams};
use apportion_core::units::Rate;
use apportion_live::{frame, wire_label};
use aya::programs::SchedClassifier;

use super::{frame_v4, run};

/// The rate at which a byte takes a microsecond, so that times in whole microseconds result in queues of
/// whole bytes.
pub const RATE: Rate = Rate::from_mbit(8);
/// The keys of a core, with the values of the papers where they differ from this project's.
pub const CORE: [(&str, &str); 3] = [("role", "core"), ("target_delay", "0s"), ("limit", "64kB")];

/// Returns the policy of a discipline of the catalogue with these keys and `more` keys.
pub fn policy(kind: &str, keys: &[(&str, &str)], more: &[(&str, &str)]) -> PolicyParams {
    let mut selection = Catalog::default().select(kind, None, None).unwrap();
    for (key, value) in keys.iter().chain(more) {
        selection.set(key, value).unwrap();
    }
    match DisciplineParams::from_args(&selection).unwrap().kind {
        DisciplineKind::Buffered(BufferParams { drop, .. }) => drop,
        other => panic!("{other:?}"),
    }
}

/// Returns the times at which a flow at `rate` sends packets of 1000 B until `seconds`, in µs. Packets of
/// different flows never coincide, since their order would then matter.
pub fn sending_times(flow: usize, rate: u64, seconds: u64) -> impl Iterator<Item = u64> {
    let gap = 8_000_000_000 / rate;
    (1..).map(move |i| i * gap + flow as u64 * 7).take_while(move |t| *t < seconds * 1_000_000)
}

/// Builds a frame of this size to 198.51.100.`last`, with the label.
pub fn labelled(
    size: usize,
    last: u8,
    label: Option<(LabelKind, Label)>,
) -> (Vec<u8>, Option<frame::IpHeader>) {
    let mut bytes = frame_v4(0x4000, 17, 0);
    bytes.resize(size, 7);
    bytes[16..18].copy_from_slice(&((size - 14) as u16).to_be_bytes());
    bytes[33] = last;
    let ip = frame::parse(&bytes).unwrap().ip();
    if let Some((kind, label)) = label {
        assert!(wire_label::write(&mut bytes, ip, kind, label));
    }
    (bytes, ip)
}

/// Draws a random number in the format of the programs.
pub fn draw(stream: &mut Stream) -> u32 {
    (stream.uniform() * 4_294_967_296.0) as u32
}

/// Encodes a time in the format of the programs.
pub fn words(nanos: u64) -> [u32; 2] {
    [nanos as u32, (nanos >> 32) as u32]
}

/// Runs a program on all frames concurrently, `repeat` times each.
pub fn at_once(program: &SchedClassifier, frames: &[Vec<u8>], repeat: u32) {
    thread::scope(|scope| {
        for bytes in frames {
            scope.spawn(|| run(program, bytes, [0; 3], repeat));
        }
    });
}

/// Returns the time of each program per frame, in ns: the median of seven runs, taken in turn so that other
/// load affects all programs alike.
pub fn times<const N: usize>(programs: [&SchedClassifier; N], bytes: &[u8], repeat: u32) -> [u64; N] {
    let mut all = [const { Vec::new() }; N];
    for _ in 0..7 {
        for (times, program) in all.iter_mut().zip(programs) {
            times.push(run(program, bytes, [0; 3], repeat).2);
        }
    }
    all.map(|mut times| {
        times.sort_unstable();
        times[3]
    })
}
