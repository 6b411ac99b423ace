//! Any bytes as an Ethernet frame: no panic, and an edit changes its field, the checksum and nothing else.
//! Run with `cargo +nightly fuzz run frame`.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../crates/live/tests/common/laws.rs"]
mod laws;

fuzz_target!(|data: &[u8]| laws::hold(data));
