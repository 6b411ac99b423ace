//! Any bytes as a super-packet: no panic, and its segments hold its payload.
//! Run with `cargo +nightly fuzz run segment`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/linux/tests/common/segments.rs"]
mod laws;

fuzz_target!(|data: &[u8]| laws::hold(data));
