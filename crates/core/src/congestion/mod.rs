//! Congestion control: the contract between an algorithm and its transport.
//!
//! A [`CongestionControl`] belongs to one connection. The transport calls its hooks on events and passes the
//! [`Window`] that limits sending; the control changes the window and keeps its own state. Time is an
//! argument, so that the same calls give the same window.
//!
//! # Units
//! Windows, flights and counts are in segments of full size, which QUIC calls full packets. Windows are real
//! numbers; their whole part limits sending. Rates are in bits per second on the wire, headers included.
//! Numbers of segments, such as [`Sent::number`], grow with each new segment; they are offsets of bytes in
//! TCP and counts of packets in QUIC.
//!
//! # Division of work
//! The transport detects losses and repairs them, keeps the window within the receiver's, paces, restarts
//! after an idle time, ends slow start early where it has HyStart, and undoes a needless reduction. The
//! control decides how growth, losses, marks and timeouts change the window. A control with a model of the
//! path [moves the window](CongestionControl::moves_window) in recovery too, where the transport would lower
//! it in proportion to arrivals (RFC 6937).
//!
//! # When each hook is called
//!
//! | hook | RACK | the classical recoveries | QUIC |
//! |---|---|---|---|
//! | [`on_sent`](CongestionControl::on_sent) | each segment, including retransmissions | – | each packet |
//! | [`on_feedback`](CongestionControl::on_feedback) | each ACK | – | each ACK of new packets |
//! | [`on_ack`](CongestionControl::on_ack) | each ACK of new data outside reduction and fast recovery | the same | the same, for packets sent outside recovery |
//! | [`on_loss`](CongestionControl::on_loss) | recovery begins | the same | the same |
//! | [`on_repaired_loss`](CongestionControl::on_repaired_loss) | a tail loss probe repaired a loss | – | – |
//! | [`on_segment_lost`](CongestionControl::on_segment_lost) | each segment | – | each packet |
//! | [`on_mark`](CongestionControl::on_mark) | the first mark of a window | the same | the same |
//! | [`on_timeout`](CongestionControl::on_timeout) | the retransmission timer expires | the same | persistent congestion |
//! | [`on_recovered`](CongestionControl::on_recovered) | reduction, recovery or repair ends | – | recovery ends |
//! | [`on_undone`](CongestionControl::on_undone) | after `on_recovered`, if nothing had been lost | – | – |
//! | [`on_app_limited`](CongestionControl::on_app_limited) | no more data, and room in the window | – | the same |
//! | [`on_restart`](CongestionControl::on_restart) | the window restarts after an idle time | the same | – |
//! | [`observes_segments`](CongestionControl::observes_segments) | the connection begins | – | the same |
//!
//! `on_sent`, `on_feedback`, `on_segment_lost` and `on_app_limited` serve controls that observe segments. For
//! other controls, such as Reno and CUBIC, no transport calls them.
//!
//! The classical recoveries (RFC 5681, 6582, 6675) keep no record of segments. A control that measures by
//! such a record sets [`ControlEntry::needs_rack`]; for any other, [`ControlEntry::recovery`] selects the
//! recovery.

mod algorithms;

use core::fmt;

pub use algorithms::{ALGORITHMS, Algorithm, ControlEntry, LossRecovery, Marks, Pacing, Registered};

use crate::units::{Bytes, Rate, Span, Time};

/// The window that limits a connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The congestion window, in segments.
    pub cwnd: f64,
    /// The slow start threshold, in segments: slow start below it, congestion avoidance from there on.
    pub ssthresh: f64,
}

impl Window {
    /// Whether the connection is in slow start.
    #[must_use]
    pub const fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows like Reno's window (RFC 5681 section 3.1) with an ACK that counts as `counted` segments: by
    /// these in slow start, at most by RFC 3465's limit L if there is one, and by one segment per window in
    /// avoidance.
    #[inline(always)]
    pub fn grow_as_reno(&mut self, counted: f64, abc_limit: Option<u32>) {
        // Equations (2) and (3).
        self.cwnd = if self.cwnd >= self.ssthresh {
            self.cwnd + counted / self.cwnd
        } else if let Some(limit) = abc_limit {
            self.cwnd + counted.min(f64::from(limit))
        } else {
            // One ACK could carry slow start far beyond its end.
            (self.cwnd + counted).min(self.ssthresh.max(self.cwnd + 1.0))
        };
    }
}

/// The state of a transport with respect to congestion signals. Names as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No congestion.
    Open,
    /// The window falls because of a mark.
    Cwr,
    /// The window falls because of a loss, which is being repaired.
    Recovery,
    /// The retransmission timer expired; slow start repairs what is lost.
    Loss,
}

/// A transmission of a segment.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The time of the transmission.
    pub now: Time,
    /// The number of the segment. A retransmission has the number of the original in TCP and a new one in
    /// QUIC.
    pub number: u64,
    /// Segments in flight before it.
    pub in_flight: u32,
}

/// The raw content of an ACK, before losses, marks and the window are derived from it.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// The arrival time of the ACK.
    pub now: Time,
    /// All segments up to this number have arrived; in QUIC the highest acknowledged one.
    pub number: u64,
    /// The number of the last segment sent.
    pub last_sent: u64,
    /// Bytes newly acknowledged in order; in QUIC all newly acknowledged bytes.
    pub bytes: u64,
    /// Segments newly known to have arrived.
    pub segments: u32,
    /// The number of marked segments. A receiver that only echoes marks reports all segments of the ACK or
    /// none.
    pub marked: u32,
    /// Whether the receiver counts marks: RFC 9768, or QUIC. Otherwise it echoes one until the sender answers
    /// (RFC 3168), or each (RFC 8257).
    pub counts_marks: bool,
    /// The receiver's clock at the arrival minus the sender's at the transmission, if the receiver reports
    /// it.
    pub one_way_delay: Option<Span>,
}

/// The effect of an ACK on the window.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// The arrival time of the ACK.
    pub now: Time,
    /// The state of the transport.
    pub phase: Phase,
    /// Segments acknowledged. In QUIC those sent outside recovery.
    pub acked: f64,
    /// The number of segments that Reno counts, by the profile: the acknowledged ones, or one.
    pub counted: f64,
    /// RFC 3465's L: the maximum number of segments by which one ACK opens the window in slow start.
    pub abc_limit: Option<u32>,
    /// Segments newly known to have arrived.
    pub delivered: u32,
    /// Segments found lost with this ACK.
    pub lost: u32,
    /// Segments in flight before the ACK.
    pub prior_in_flight: u32,
    /// Segments in flight after the ACK.
    pub in_flight: u32,
    /// All segments up to this number have arrived; in QUIC the first outstanding one.
    pub number: u64,
    /// The number of the last segment sent.
    pub last_sent: u64,
    /// The segment sent last among those known to have arrived, if this ACK shows it.
    pub latest: Option<u64>,
    /// The round-trip time of the last segment acknowledged, if it was sent once.
    pub rtt: Option<Span>,
    /// The smoothed round-trip time; zero while unknown.
    pub srtt: Span,
    /// The minimum round-trip time of the connection; the smoothed one if the transport does not keep the
    /// minimum.
    pub min_rtt: Span,
    /// Whether the window was below the threshold when the ACK came; HyStart may have changed that since.
    pub slow_start: bool,
    /// Whether the window, rather than the application or the receiver, limited sending.
    pub is_limited: bool,
    /// Whether the window was used enough for Reno's to grow (RFC 7661; RFC 9002 section 7.8), by the rule of
    /// the transport.
    pub may_grow: bool,
}

/// A congestion signal.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// The time of the signal.
    pub now: Time,
    /// The window at that time. RACK counts whole segments.
    pub cwnd: f64,
    /// The basis that Reno halves, in segments: the window within the receiver's, or the outstanding data
    /// (RFC 5681 equation (4)).
    pub basis: f64,
    /// The receive window, in segments; infinite in QUIC.
    pub receive_window: f64,
    /// Segments in flight.
    pub in_flight: u32,
    /// Whether this is a repeated timeout for data for which the threshold was lowered already (RFC 5681
    /// section 3.1): it stays.
    pub again: bool,
}

/// The response of a control to a congestion signal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Response {
    /// No response. After a loss the window stays while the loss is repaired. A mark has no effect, except
    /// that the classical recoveries do not open the window until the receiver has been informed. With RACK
    /// the receiver goes on echoing the mark.
    Ignore,
    /// The threshold falls to this many segments, at least 2, and the transport lowers the window to it.
    Reduce(f64),
    /// The control has set the window itself. Unless it [moves the window](CongestionControl::moves_window)
    /// in recovery, the threshold takes the same value.
    Done,
}

/// A new connection.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The initial window, in segments.
    pub initial_window: f64,
    /// Payload of a full segment.
    pub segment: Bytes,
    /// Size of a full segment on the wire.
    pub wire: Bytes,
}

/// A congestion control of one connection. The [module](self) lists the callers of each hook.
pub trait CongestionControl: fmt::Debug + Send {
    /// An ACK opens the window. With [`moves_window`](Self::moves_window), called for every ACK of such a
    /// phase.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// A loss begins recovery.
    fn on_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response;

    /// A loss was noticed after its repair: the last segment sent, which a probe has sent again (RFC 8985
    /// section 7.4). Default: as [`on_loss`](Self::on_loss).
    fn on_repaired_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        self.on_loss(window, event)
    }

    /// A mark, once a window (RFC 3168 section 6.1.2). Default: as [`on_loss`](Self::on_loss).
    fn on_mark(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        self.on_loss(window, event)
    }

    /// The retransmission timer expired. Returns the threshold, which is used unless
    /// [`again`](CongestionEvent::again). The transport sets the window to one segment more than in flight,
    /// to 2 in QUIC. Default: half of the basis.
    fn on_timeout(&mut self, window: &Window, event: &CongestionEvent) -> f64 {
        let _ = window;
        event.basis / 2.0
    }

    /// A segment leaves.
    fn on_sent(&mut self, window: &mut Window, sent: &Sent) {
        let _ = (window, sent);
    }

    /// An ACK has come; its effects are not derived yet.
    fn on_feedback(&mut self, feedback: &Feedback) {
        let _ = feedback;
    }

    /// The segment of this number is presumed lost. A segment that waits for retransmission may be named more
    /// than once.
    fn on_segment_lost(&mut self, window: &Window, now: Time, number: u64) {
        let _ = (window, now, number);
    }

    /// The data outstanding at the congestion signal has arrived. Unless it [moves the
    /// window](Self::moves_window), the window is at the threshold, or after a timeout at the value that slow
    /// start reached.
    fn on_recovered(&mut self, window: &mut Window) {
        let _ = window;
    }

    /// The recovery that has just ended was needless; window and threshold are at least their values before
    /// it.
    fn on_undone(&mut self) {}

    /// The application has no more data, the window has room, and `in_flight` segments are in the network.
    fn on_app_limited(&mut self, in_flight: u32) {
        let _ = in_flight;
    }

    /// The connection was idle, and restarts with the initial window or a lower one.
    fn on_restart(&mut self) {}

    /// The pacing rate, for the smoothed round-trip time. Default: none. A connection that paces then sends
    /// at 1.2 windows per round trip, 2 in slow start; one that paces [evenly](Pacing::Evenly) at one.
    fn pacing_rate(&mut self, srtt: Option<Span>) -> Option<Rate> {
        let _ = srtt;
        None
    }

    /// Whether the control moves the window itself in this phase. The transport then neither lowers it in
    /// proportion to arrivals nor restarts it after an idle time, and calls [`on_ack`](Self::on_ack) for
    /// every ACK. Default: no.
    fn moves_window(&self, phase: Phase) -> bool {
        let _ = phase;
        false
    }

    /// Whether the control observes single segments. If not, [`on_sent`](Self::on_sent),
    /// [`on_feedback`](Self::on_feedback), [`on_segment_lost`](Self::on_segment_lost) and
    /// [`on_app_limited`](Self::on_app_limited) are never called, which saves time. Default: yes.
    fn observes_segments(&self) -> bool {
        true
    }

    /// Whether the control has the slow start of RFC 5681, which HyStart may end. Default: yes.
    fn has_slow_start(&self) -> bool {
        true
    }

    /// The share of segments that the control assumes to be marked, 0 to 1. With it the transport reads a
    /// counter of marks that may have wrapped around (RFC 9768 appendix A.2.1). Default: 1, all.
    fn mark_share(&self) -> f64 {
        1.0
    }
}
