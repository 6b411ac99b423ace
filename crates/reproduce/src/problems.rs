//! What is wrong with a request or with the files of papers.

/// Everything that is wrong, a line each: file, key path and mend.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Problems(pub Vec<String>);
