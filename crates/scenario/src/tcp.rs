//! TCP profiles.

/// Placeholder until the profiles land.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpParams;
