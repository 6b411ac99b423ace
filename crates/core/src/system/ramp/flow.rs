//! What RAMP knows of a flow that is or was real-rate, and what it shows of it.

use super::requirement::{Controller, Requirement};
use crate::list::PacketQueue;
use crate::packet::FlowId;
use crate::queue::Backlog;
use crate::units::{Bytes, Rate, Span, Time};

/// How long after its last packet a flow counts where the floor is divided, and is sampled at least. Chosen: longer than
/// the pauses of video, and of a TCP that waits for its first timer.
const AWAKE: Span = Span::from_secs(1);

/// A flow that is or was real-rate.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub id: FlowId,
    pub is_real_rate: bool,
    /// Whether samples look at it: while it is real-rate and not at rest.
    pub is_watched: bool,
    pub queue: PacketQueue,
    pub fill: Backlog,
    pub requirement: Requirement,
    /// The part of the link that it is to have now.
    pub wanted: f64,
    pub granted: Rate,
    /// Bits that its allocation amounted to until `Ramp::counted`.
    pub allocated: f64,
    /// When its application was last notified of an overload; none since the end of it.
    pub notified: Option<Time>,
    /// How often it was.
    pub notifications: u64,
    /// When its last packet came.
    pub seen: Time,
    /// Whether it sent since the last sample.
    pub sent: bool,
    /// What came since the last sample, dropped packets included.
    pub arrived: Bytes,
}

impl Flow {
    /// One that is greedy still.
    pub fn new(id: FlowId, controller: &Controller, now: Time) -> Self {
        Self {
            id,
            is_real_rate: false,
            is_watched: false,
            queue: PacketQueue::EMPTY,
            fill: Backlog::EMPTY,
            requirement: Requirement::new(controller),
            wanted: 0.0,
            granted: Rate::ZERO,
            allocated: 0.0,
            notified: None,
            notifications: 0,
            seen: now,
            sent: false,
            arrived: Bytes::ZERO,
        }
    }

    /// Whether it has packets or had one lately.
    pub fn is_awake(&self, now: Time) -> bool {
        !self.fill.is_empty() || now.since(self.seen) <= AWAKE
    }
}

/// What a real-rate flow has and holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowShare {
    /// What the dispatcher gives it.
    pub allocation: Rate,
    /// What its controller asks for.
    pub requirement: Rate,
    /// What its queue holds, the interface queue not counted.
    pub fill: Bytes,
    /// What its allocation amounts to since the start: differences give its mean over any time.
    pub allocated: Bytes,
    /// Overload notifications to its application, those that an overload is over included.
    pub notifications: u64,
}
