//! Any bytes as a scenario file, and as every file that it refers to: no panic, and what loads survives its canonical
//! text. Run with `cargo +nightly fuzz run load`.

#![no_main]

use std::path::Path;

use apportion_scenario::load;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // What follows the first zero byte is the content of files.
    let (text, file) = match data.iter().position(|byte| *byte == 0) {
        Some(at) => (&data[..at], &data[at + 1..]),
        None => (data, &[][..]),
    };
    let Ok(text) = std::str::from_utf8(text) else { return };
    let read = |_: &Path| Ok(file.to_vec());
    if let Ok(suite) = load(text, Path::new("fuzz.toml"), &[], &read) {
        let again = load(&suite.canonical, Path::new("fuzz.toml"), &[], &read).expect("canonical text loads");
        assert_eq!(again.hash, suite.hash, "{}", suite.canonical);
    }
});
