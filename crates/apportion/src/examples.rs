//! The example scenarios, so that programs have them without a checkout. `scenarios` next to `src` is a link
//! to the project's folder, whose files are included in a package.

macro_rules! examples {
    ($($name:literal)*) => {
        /// The names of the examples with the texts of their files, sorted by name.
        const EXAMPLES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!(env!("APPORTION_SCENARIOS"), "/", $name, ".toml")))),*];
    };
}

examples! {
    "approximate-fairness" "asymmetric" "bufferbloat" "bursty-loss" "classes" "core-stateless" "customers" "elephants"
    "fat-tree" "gfc" "hosts" "household" "jitter" "l4s-shares" "neighbours" "parking-lot" "queueing-delay" "quic"
    "quickstart" "rate-matching" "rtt-unfairness" "satellite" "short-flows" "tickets" "unresponsive" "variable-rate"
    "video-calls" "video-vs-bulk" "web" "wifi"
}

/// Returns the example scenarios, as names and texts, sorted by name. `apportion run NAME` and
/// [`ScenarioBuilder::example`](crate::ScenarioBuilder::example) run them.
///
/// ```
/// assert!(apportion::examples().any(|(name, text)| name == "quickstart" && text.contains("[flow.")));
/// ```
pub fn examples() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_folder_is_built_in() {
        let files = std::fs::read_dir(env!("APPORTION_SCENARIOS"))
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> =
            files.filter_map(|file| file.strip_suffix(".toml").map(str::to_owned)).collect();
        files.sort();
        assert_eq!(examples().map(|(name, _)| name).collect::<Vec<_>>(), files);
    }
}
