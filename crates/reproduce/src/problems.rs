//! Errors in a request or in the files of papers.

/// All problems, one line each: file, key path and correction.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Problems(pub Vec<String>);
