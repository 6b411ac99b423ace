//! A router's report to another one about a flow.

use crate::packet::FlowId;
use crate::units::{Bytes, Span};

/// What a link did to one flow in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// What came for the link.
    pub arrived: Bytes,
    /// What left by the link; of a valid report not more than arrived.
    pub departed: Bytes,
    /// The time in which this was counted.
    pub interval: Span,
}
