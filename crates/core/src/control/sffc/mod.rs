//! x

use crate::packet::FlowId;
use crate::units::{Bytes, Span};

/// What a link did to one flow in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// What arrived in front of the link.
    pub arrived: Bytes,
    /// What left by it.
    pub departed: Bytes,
    /// In which time.
    pub interval: Span,
}
