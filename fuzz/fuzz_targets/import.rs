//! Run with `cargo +nightly fuzz run import`; see the function.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../targets.rs"]
mod targets;

fuzz_target!(|data: &[u8]| targets::import(data));
