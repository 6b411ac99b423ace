//! Run with `cargo +nightly fuzz run capture`; see the function.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets.rs"]
mod targets;

fuzz_target!(|data: &[u8]| targets::capture(data));
