//! Any bytes as the configuration of a gateway: no panic, what is refused is refused with a reason, and what
//! loads survives its canonical text. Run with `cargo +nightly fuzz run gateway_config`.

#![no_main]

use std::path::Path;

use apportion_scenario::gateway::GatewayConfig;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match GatewayConfig::load(text, Path::new("fuzz.toml")) {
        Ok(config) => {
            let again = GatewayConfig::load(&config.canonical(), Path::new("fuzz.toml"));
            assert_eq!(again.as_ref(), Ok(&config), "{}", config.canonical());
        }
        Err(problems) => assert!(!problems.is_empty()),
    }
});
