//! The report of a router to an upstream router about a flow.

use crate::packet::FlowId;
use crate::units::{Bytes, Span};

/// The treatment of one flow by a link in one interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// The bytes that arrived for the link.
    pub arrived: Bytes,
    /// The bytes that left by the link; at most those that arrived in a valid report.
    pub departed: Bytes,
    /// The time over which the bytes were counted.
    pub interval: Span,
}
