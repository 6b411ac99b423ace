//! Frames, and runs of programs in the kernel without a device (BPF_PROG_TEST_RUN).
#![allow(dead_code, reason = "each test uses a part")]

pub mod hosts;
pub mod labelled;
pub mod sequences;

use std::sync::{Mutex, MutexGuard, PoisonError};

use apportion_kernel::program::{Object, program};
use apportion_testing::skip;
use aya::programs::{SchedClassifier, TestRun as _, TestRunOptions};

/// Whether programs can be loaded here; if not, prints a message.
pub fn is_possible() -> bool {
    // If even the empty program fails, rights or the build are missing.
    let loaded = Object::Check.load(false).and_then(|mut check| program(&mut check, "empty").map(drop));
    if let Err(error) = &loaded {
        let is_built = !error.to_string().contains("not part of this build");
        skip::because(format!("{error}{}", if is_built { "" } else { " (package clang)" }));
    }
    loaded.is_ok()
}

/// Held by each test that measures in real time: another concurrent one would take its processors.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Builds a `struct __sk_buff` of linux/bpf.h with the fields that a test may set: mark at 8, cb at 48.
fn context(mark: u32, cb: &[u32]) -> [u8; 192] {
    let mut context = [0; 192];
    context[8..12].copy_from_slice(&mark.to_ne_bytes());
    for (i, word) in cb.iter().enumerate() {
        context[48 + 4 * i..][..4].copy_from_slice(&word.to_ne_bytes());
    }
    context
}

/// Runs a program on a frame. Returns its verdict, the resulting frame, and nanoseconds per run. `words` are
/// both mark and cb.
pub fn run(program: &SchedClassifier, data: &[u8], words: [u32; 3], repeat: u32) -> (u32, Vec<u8>, u64) {
    let (verdict, out, _, time) = run_with(program, data, words, repeat);
    (verdict, out, time)
}

/// Runs a program as [`run`] does, and returns the resulting cb[0..2] as well.
pub fn run_with(
    program: &SchedClassifier,
    data: &[u8],
    words: [u32; 3],
    repeat: u32,
) -> (u32, Vec<u8>, [u32; 3], u64) {
    run_in(program, data, &context(words[0], &words), repeat)
}

/// Runs a program as [`run`] does, with cb[0..4].
pub fn run_with_four(program: &SchedClassifier, data: &[u8], cb: [u32; 4]) -> (u32, Vec<u8>) {
    let (verdict, out, ..) = run_in(program, data, &context(0, &cb), 1);
    (verdict, out)
}

/// Runs a program as [`run`] does, on a packet of `segments` segments: gso_segs at 164, gso_size at 176.
pub fn run_super(program: &SchedClassifier, data: &[u8], words: [u32; 3], segments: u32) -> (u32, Vec<u8>) {
    let mut context = context(words[0], &words);
    context[164..168].copy_from_slice(&segments.to_ne_bytes());
    context[176..180].copy_from_slice(&100_u32.to_ne_bytes());
    let (verdict, out, ..) = run_in(program, data, &context, 1);
    (verdict, out)
}

/// Runs a program repeatedly on a frame while a setting changes again and again. Returns the number of
/// changes.
pub fn run_while(
    program: &SchedClassifier,
    data: &[u8],
    repeat: u32,
    mut change: impl FnMut(usize),
) -> usize {
    std::thread::scope(|scope| {
        let runs = scope.spawn(|| run(program, data, [0; 3], repeat));
        (0..).take_while(|_| !runs.is_finished()).inspect(|i| change(*i)).count()
    })
}

fn run_in(
    program: &SchedClassifier,
    data: &[u8],
    context: &[u8; 192],
    repeat: u32,
) -> (u32, Vec<u8>, [u32; 3], u64) {
    let (mut out, mut after) = (vec![0; data.len() + 64], [0; 192]);
    let options = TestRunOptions {
        data_in: Some(data),
        data_out: Some(&mut out),
        ctx_in: Some(context),
        ctx_out: Some(&mut after),
        repeat,
        ..TestRunOptions::new()
    };
    let result = program.test_run(options).unwrap();
    let length = result.data_size_out as usize;
    out.truncate(length);
    let cb = [0, 1, 2].map(|i| u32::from_ne_bytes(*after[48 + 4 * i..].first_chunk().unwrap()));
    (verdict(result.return_value), out, cb, result.duration.as_nanos() as u64)
}

/// TC_ACT_UNSPEC passes a packet on to further programs; without any it is accepted: 0.
fn verdict(returned: u32) -> u32 {
    if returned == u32::MAX { 0 } else { returned }
}

fn ethernet(tags: usize, ethertype: u16) -> Vec<u8> {
    let mut frame = vec![2; 12];
    for tag in 0..tags {
        frame.extend(if tag == 0 { [0x88, 0xa8] } else { [0x81, 0] });
        frame.extend([0, 5]);
    }
    frame.extend(ethertype.to_be_bytes());
    frame
}

/// Builds an IPv4 frame with these flags and fragment offset.
pub fn frame_v4(fragment: u16, protocol: u8, tags: usize) -> Vec<u8> {
    let mut frame = ethernet(tags, 0x0800);
    let [high, low] = fragment.to_be_bytes();
    let mut header =
        [0x45, 0, 0, 60, 0xbe, 0xef, high, low, 64, protocol, 0, 0, 192, 0, 2, 77, 198, 51, 100, 9];
    let sum: u32 = header.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    frame.extend(header);
    // Ports, as in UDP; and data.
    frame.extend([0x1f, 0x90, 0x23, 0x82, 0, 40, 0, 0]);
    frame.extend([7; 32]);
    frame
}

/// Builds an IPv6 frame.
pub fn frame_v6(tags: usize) -> Vec<u8> {
    let mut frame = ethernet(tags, 0x86dd);
    frame.extend([0x60, 0x0a, 0xbc, 0xde, 0, 40, 17, 64]);
    frame.extend([0x20; 32]);
    frame.extend([0x1f, 0x90, 0x23, 0x82, 0, 40, 0, 0]);
    frame.extend([7; 32]);
    frame
}

/// Returns the priority that a program assigns to a frame without one: at 32 of `struct __sk_buff`.
pub fn priority(program: &SchedClassifier, data: &[u8]) -> u32 {
    let (context, mut after) = ([0; 192], [0; 192]);
    let options = TestRunOptions {
        data_in: Some(data),
        ctx_in: Some(&context),
        ctx_out: Some(&mut after),
        ..TestRunOptions::new()
    };
    assert_eq!(verdict(program.test_run(options).unwrap().return_value), 0);
    u32::from_ne_bytes(*after[32..].first_chunk().unwrap())
}
