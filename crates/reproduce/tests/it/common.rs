//! Helpers of the tests of this repository's papers.

use std::path::{Path, PathBuf};

use apportion_reproduce::{Files, Paper, expect};

/// Folder of the papers.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers")
}

/// The paper in the folder `key`.
pub fn paper(key: &str) -> Paper {
    expect::read(&folder().join(key).join("expect.toml"), Files::Disk)
        .unwrap_or_else(|error| panic!("{error}"))
}

/// Checks that the experiments and their metrics have these names, in this order.
pub fn check_names(paper: &Paper, expected: &[(&str, &[&str])]) {
    let experiments = &paper.content.experiments;
    let found: Vec<(&str, Vec<&str>)> = experiments
        .iter()
        .map(|e| (e.id.as_str(), e.metrics.iter().map(|metric| metric.name.as_str()).collect()))
        .collect();
    let expected: Vec<(&str, Vec<&str>)> = expected.iter().map(|(id, names)| (*id, names.to_vec())).collect();
    assert_eq!(found, expected);
}
