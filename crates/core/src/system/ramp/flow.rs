//! The state of a flow that is or has been real-rate, and its statistics.

use super::requirement::{Controller, Requirement};
use crate::list::PacketQueue;
use crate::packet::FlowId;
use crate::queue::Backlog;
use crate::units::{Bytes, Rate, Span, Time};

/// The time after its last packet for which a flow shares in the floor and is sampled. Chosen: longer than
/// the pauses of video, and of a TCP that waits for its first timer.
const AWAKE: Span = Span::from_secs(1);

/// A flow that is or has been real-rate.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub id: FlowId,
    pub is_real_rate: bool,
    /// Whether it is sampled: while it is real-rate and not at rest.
    pub is_watched: bool,
    pub queue: PacketQueue,
    pub fill: Backlog,
    pub requirement: Requirement,
    /// The part of the link wanted for it at present.
    pub wanted: f64,
    pub granted: Rate,
    /// The bits of its allocation until `Ramp::counted`.
    pub allocated: f64,
    /// The time of the last overload notification; none once the overload has ended.
    pub notified: Option<Time>,
    /// The number of notifications.
    pub notifications: u64,
    /// The arrival time of its last packet.
    pub seen: Time,
    /// Whether it has sent since the last sample.
    pub sent: bool,
    /// The bytes that arrived since the last sample, dropped packets included.
    pub arrived: Bytes,
}

impl Flow {
    /// A flow that is still greedy.
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

    /// Whether the flow has packets, or had one recently.
    pub fn is_awake(&self, now: Time) -> bool {
        !self.fill.is_empty() || now.since(self.seen) <= AWAKE
    }
}

/// The allocation and the queue of a real-rate flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowShare {
    /// The rate that the dispatcher gives it.
    pub allocation: Rate,
    /// The rate that its controller asks for.
    pub requirement: Rate,
    /// The bytes in its queue, without the interface queue.
    pub fill: Bytes,
    /// The sum of its allocation since the start: differences give the mean over any time.
    pub allocated: Bytes,
    /// The number of overload notifications, including those that an overload is over.
    pub notifications: u64,
}
