// The environment variable that multiplies the cases of every property; `apportion-testing` includes this file.

/// The name of the environment variable.
const VARIABLE: &str = "APPORTION_CASES";

/// Returns the factor by which the number of cases is multiplied.
///
/// # Panics
/// If the variable is not a positive integer.
pub(crate) fn multiplier() -> u32 {
    let Some(value) = std::env::var_os(VARIABLE) else { return 1 };
    let value = value.to_string_lossy();
    read(&value)
        .unwrap_or_else(|| panic!("{VARIABLE} is {value:?}; it must be a positive integer, such as 20"))
}

fn read(value: &str) -> Option<u32> {
    value.parse().ok().filter(|times| *times > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplier_is_a_positive_integer() {
        assert_eq!(["1", "20", "4294967295"].map(read), [Some(1), Some(20), Some(u32::MAX)]);
        assert_eq!(["", "0", "-1", "1.5", "20x", " 2", "4294967296"].map(read), [None; 7]);
    }
}
