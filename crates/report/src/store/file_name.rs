//! Names of files that every system accepts, so that results can be copied from one system to another.

/// Names that Windows takes for devices, also with an extension.
const DEVICES: [&str; 4] = ["CON", "PRN", "AUX", "NUL"];
/// The same, with a digit behind them.
const PORTS: [&str; 2] = ["COM", "LPT"];

/// Returns a name as the name of a file, without extension. Letters, digits, `-`, `_`, and blanks and dots within it stay;
/// every other character becomes `_`. A `_` before it marks the name of a device of Windows.
#[must_use]
pub fn file_name(name: &str) -> String {
    let safe = |c: char| if c.is_alphanumeric() || "-_. ".contains(c) { c } else { '_' };
    let mut safe: String = name.chars().map(safe).collect();
    if safe.ends_with(['.', ' ']) {
        safe.pop();
        safe.push('_');
    }
    let stem = safe.split('.').next().unwrap_or_default().to_uppercase();
    let is_port =
        |port| stem.strip_prefix(port).is_some_and(|rest| rest.len() == 1 && rest.parse::<u8>().is_ok());
    if DEVICES.contains(&&*stem) || PORTS.into_iter().any(is_port) { format!("_{safe}") } else { safe }
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn names_are_file_names_on_every_system() {
        for (name, file) in [
            ("bottleneck", "bottleneck"),
            ("v1.2-a_b", "v1.2-a_b"),
            ("Straße 3", "Straße 3"),
            ("a:b", "a_b"),
            ("../a\\b", ".._a_b"),
            ("what?*", "what__"),
            ("end.", "end_"),
            ("nul", "_nul"),
            ("Com1.x", "_Com1.x"),
            ("console", "console"),
            ("com10", "com10"),
        ] {
            assert_eq!(file_name(name), file);
        }
    }
}
