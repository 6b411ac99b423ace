//! Loading configurations of gateways as `dir/x.toml`.

use std::path::Path;

use apportion_scenario::gateway::GatewayConfig;

pub const EVERYTHING: &str = include_str!("../../../../../fuzz/corpus/gateway_config/everything.toml");

/// The shortest configuration that loads, with more keys for the file and for `up`, and `rest` after it.
pub fn minimal(file: &str, up: &str, rest: &str) -> String {
    format!(
        "inside = \"eth1\"\noutside = \"eth0\"\n{file}\ndown.rate = \"10Mbit\"\n[up]\nrate = \"10Mbit\"\n{up}\n{rest}\n"
    )
}

pub fn try_load(text: &str) -> Result<GatewayConfig, Vec<String>> {
    let config = GatewayConfig::load(text, Path::new("dir/x.toml"));
    config.map_err(|problems| problems.iter().map(ToString::to_string).collect())
}

pub fn load(text: &str) -> GatewayConfig {
    try_load(text).unwrap_or_else(|problems| panic!("{problems:#?}\n{text}"))
}

/// The one error of this text.
pub fn error(text: &str) -> String {
    let mut errors = try_load(text).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors:#?}\n{text}");
    errors.remove(0)
}

/// Checks that a value, as a file, is refused with this message.
pub fn refused(text: &str, line: u32, expected: &str) {
    assert_eq!(error(text), format!("dir/x.toml:{line}: {expected}"), "{text}");
}
