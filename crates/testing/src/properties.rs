//! Number of cases that the property tests of this workspace draw.

mod multiplier {
    // `apportion-laws` reads the same variable. It is published, so it cannot depend on this crate.
    include!("../../laws/src/multiplier.rs");
}

use proptest::test_runner::Config;

/// Configuration for `cases` cases, times the environment variable `APPORTION_CASES`. Failed cases are not
/// recorded: each becomes a test.
///
/// # Panics
/// The variable is no positive integer.
#[must_use]
pub fn cases(cases: u32) -> Config {
    many(cases, multiplier::multiplier())
}

fn many(cases: u32, times: u32) -> Config {
    let default = Config::default();
    Config {
        cases: cases.saturating_mul(times),
        // More cases reject more inputs.
        max_local_rejects: default.max_local_rejects.saturating_mul(times),
        max_global_rejects: default.max_global_rejects.saturating_mul(times),
        failure_persistence: None,
        ..default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_and_refused_inputs_are_multiplied() {
        let [one, all] = [1, 20].map(|times| many(300, times));
        assert_eq!((one.cases, all.cases, many(300, u32::MAX).cases), (300, 6_000, u32::MAX));
        assert_eq!(all.max_local_rejects, 20 * one.max_local_rejects);
        assert_eq!(all.max_global_rejects, 20 * one.max_global_rejects);
        assert!(all.failure_persistence.is_none());
    }
}
