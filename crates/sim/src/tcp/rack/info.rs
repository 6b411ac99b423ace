//! What a sender with RFC 8985 shows of itself, as the fields of `struct tcp_info` in Linux.

use apportion_core::congestion::Phase;
use apportion_core::units::Span;

use crate::tcp::accurate::Marks;
use crate::tcp::sender::Sender;

/// Counts of outstanding segments, and the state of the congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The state.
    pub phase: Phase,
    /// Segments above the cumulative acknowledgment.
    pub outstanding: u32,
    /// Number of these segments that selective acknowledgments report.
    pub sacked: u32,
    /// Segments presumed lost that are not reported to have arrived since, sent again or not.
    pub lost: u32,
    /// Segments sent again that are neither reported to have arrived nor presumed lost again.
    pub retransmitted: u32,
    /// The largest number of segments by which one arrived late, from the number of duplicate ACKs that indicates a loss on.
    pub reordering: u32,
    /// Marked segments by the peer's count, with Accurate ECN.
    pub marked: u32,
    /// The minimum round-trip time so far.
    pub min_rtt: Option<Span>,
}

impl Sender {
    /// The state at present. Meaningful with [`Rack`](apportion_scenario::tcp::SackRecovery::Rack) only. Cost:
    /// O(outstanding segments).
    #[must_use]
    pub fn info(&self) -> Info {
        let record = &self.rack.record;
        let (sacked, retransmitted) = record.marked();
        // A probe is a retransmission of a segment that is not presumed lost.
        let probes = u32::from(self.rack.probe.is_some_and(|probe| probe.is_retransmission));
        Info {
            phase: self.rack.state,
            outstanding: record.outstanding(),
            sacked,
            lost: record.lost().count() as u32 + retransmitted.saturating_sub(probes),
            retransmitted,
            reordering: (record.reordering().div_ceil(self.params.segment.get()) as u32)
                .max(self.params.dupack_threshold),
            marked: self.rack.marks.since(Marks::NONE),
            min_rtt: record.min_rtt(),
        }
    }
}
