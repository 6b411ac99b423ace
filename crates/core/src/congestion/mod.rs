//! Congestion control: the contract between an algorithm and the transport that it works for.
//!
//! A [`CongestionControl`] belongs to one connection. The transport calls its hooks as things happen, with the [`Window`] that it sends
//! by; the control moves the window and keeps what it has to remember. Time is an argument, so that the same calls give the same window.
//!
//! # Units
//! Windows, flights and counts are in segments of full size, which QUIC calls full packets. Windows are real numbers, and what is sent is
//! bounded by their whole part. Rates are in bits per second on the wire, headers included. Numbers of segments, such as
//! [`Sent::number`], grow with each new segment; they are offsets of bytes in TCP and counts of packets in QUIC.
//!
//! # Who does what
//! The transport finds losses and repairs them, keeps the window within what the receiver allows, paces, restarts after an idle time,
//! ends slow start early where it has HyStart, and takes a reduction back that proves needless. The control says what growth, losses,
//! marks and timeouts do to the window. A control with a model of the path [moves the window](CongestionControl::moves_window) in
//! recovery too, where the transport would lower it in proportion to what arrives (RFC 6937).
//!
//! # When each hook is called
//!
//! | hook | RACK | the classical recoveries | QUIC |
//! |---|---|---|---|
//! | [`on_sent`](CongestionControl::on_sent) | each segment, also again | – | each packet |
//! | [`on_feedback`](CongestionControl::on_feedback) | each ACK | – | each ACK of new packets |
//! | [`on_ack`](CongestionControl::on_ack) | each ACK of new data outside reduction and fast recovery | the same | the same, for packets sent outside recovery |
//! | [`on_loss`](CongestionControl::on_loss) | recovery begins | the same | the same |
//! | [`on_repaired_loss`](CongestionControl::on_repaired_loss) | a tail loss probe repaired a loss | – | – |
//! | [`on_segment_lost`](CongestionControl::on_segment_lost) | each segment | – | each packet |
//! | [`on_mark`](CongestionControl::on_mark) | the first mark of a window | the same | the same |
//! | [`on_timeout`](CongestionControl::on_timeout) | the retransmission timer expires | the same | persistent congestion |
//! | [`on_recovered`](CongestionControl::on_recovered) | reduction, recovery or repair ends | – | recovery ends |
//! | [`on_undone`](CongestionControl::on_undone) | after it, if nothing had been lost | – | – |
//! | [`on_app_limited`](CongestionControl::on_app_limited) | no more data, and room in the window | – | the same |
//! | [`on_restart`](CongestionControl::on_restart) | the window restarts after an idle time | the same | – |
//! | [`observes_segments`](CongestionControl::observes_segments) | the connection begins | – | the same |
//!
//! `on_sent`, `on_feedback`, `on_segment_lost` and `on_app_limited` are for a control that observes segments: where it says that it does
//! not, as Reno and CUBIC do, no transport calls them.
//!
//! The classical recoveries (RFC 5681, 6582, 6675) keep no record of segments. A control that measures by one says so in its
//! [`ControlEntry::needs_rack`]; of any other, [`ControlEntry::recovery`] says which of them it has.

mod algorithms;

use core::fmt;

pub use algorithms::{ALGORITHMS, Algorithm, ControlEntry, LossRecovery, Marks, Pacing, Registered};

use crate::units::{Bytes, Rate, Span, Time};

/// What a connection sends by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Window {
    /// The congestion window, in segments.
    pub cwnd: f64,
    /// Slow start below so many segments, congestion avoidance from there on.
    pub ssthresh: f64,
}

impl Window {
    /// Whether it is in slow start.
    #[must_use]
    pub const fn is_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows as Reno's does (RFC 5681 section 3.1) with an ACK that counts as so many segments: by these in slow start, at most by RFC
    /// 3465's limit L if there is one, and by one for each window in avoidance.
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

/// Where a transport stands between a sign of congestion and its end. Names as in Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All is well.
    Open,
    /// The window falls because of a mark.
    Cwr,
    /// The window falls because of a loss, which is being repaired.
    Recovery,
    /// The retransmission timer expired; slow start repairs what is lost.
    Loss,
}

/// A segment that leaves.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When it leaves.
    pub now: Time,
    /// Which it is. One that is sent again has the number of the first time in TCP and a new one in QUIC.
    pub number: u64,
    /// Segments in the network before it.
    pub in_flight: u32,
}

/// What an ACK reports, before it means anything for losses, marks and the window.
#[derive(Clone, Copy, Debug)]
pub struct Feedback {
    /// When it came.
    pub now: Time,
    /// All segments up to this number have arrived; in QUIC the highest of those acknowledged.
    pub number: u64,
    /// The number of the last segment sent.
    pub last_sent: u64,
    /// Bytes that are acknowledged in order for the first time; in QUIC all for the first time.
    pub bytes: u64,
    /// Segments that are known to have arrived for the first time.
    pub segments: u32,
    /// How many were marked. Where the receiver only echoes marks, all or none of those of this ACK.
    pub marked: u32,
    /// The receiver counts marks: RFC 9768, or QUIC. If not it echoes one until the sender answers (RFC 3168), or each (RFC 8257).
    pub counts_marks: bool,
    /// The receiver's clock at the arrival less the sender's at the transmission, where the receiver says it.
    pub one_way_delay: Option<Span>,
}

/// What an ACK means for the window.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it came.
    pub now: Time,
    /// Where the transport stands.
    pub phase: Phase,
    /// Segments that it acknowledges. In QUIC those sent outside recovery.
    pub acked: f64,
    /// What Reno counts it as, by the profile: those segments, or one.
    pub counted: f64,
    /// RFC 3465's L: by so many segments one ACK may open the window in slow start.
    pub abc_limit: Option<u32>,
    /// Segments that are known to have arrived for the first time.
    pub delivered: u32,
    /// Segments found lost with it.
    pub lost: u32,
    /// Segments in the network before it.
    pub prior_in_flight: u32,
    /// And after it.
    pub in_flight: u32,
    /// All segments up to this number have arrived; in QUIC the first that is outstanding.
    pub number: u64,
    /// The number of the last segment sent.
    pub last_sent: u64,
    /// The segment sent last of those that are known to have arrived, if this ACK shows that.
    pub latest: Option<u64>,
    /// The round-trip time of the last segment that it acknowledges, if that was sent once.
    pub rtt: Option<Span>,
    /// The smoothed round-trip time, zero before one is known.
    pub srtt: Span,
    /// The shortest round-trip time of the connection; the smoothed one where the transport does not keep it.
    pub min_rtt: Span,
    /// The window was below the threshold when it came, which HyStart may have changed since.
    pub slow_start: bool,
    /// The window, rather than the application or the receiver, limited what was sent.
    pub is_limited: bool,
    /// The window was used enough for Reno's to grow (RFC 7661; RFC 9002 section 7.8), by the rule of the transport.
    pub may_grow: bool,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug)]
pub struct CongestionEvent {
    /// When it was seen.
    pub now: Time,
    /// The window that it met. RACK counts whole segments.
    pub cwnd: f64,
    /// What Reno takes half of, in segments: that window within what the receiver allows, or what is outstanding (RFC 5681 equation (4)).
    pub basis: f64,
    /// The window that the receiver allows, in segments; infinite in QUIC.
    pub receive_window: f64,
    /// Segments in the network.
    pub in_flight: u32,
    /// A timeout for data for which the threshold was lowered already (RFC 5681 section 3.1): it stays.
    pub again: bool,
}

/// What a control makes of a sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Response {
    /// Nothing: after a loss the window stays while that is repaired, and a mark has no effect but that the classical recoveries open no
    /// window until the receiver knows of it. With RACK the receiver goes on echoing it.
    Ignore,
    /// The threshold falls to so many segments, at least 2, and the transport lowers the window to it.
    Reduce(f64),
    /// It has set the window itself. Unless it [moves the window](CongestionControl::moves_window) in recovery, the threshold is that.
    Done,
}

/// A connection that begins.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// The window that it begins with, in segments.
    pub initial_window: f64,
    /// Payload of a full segment.
    pub segment: Bytes,
    /// The same on the wire.
    pub wire: Bytes,
}

/// A congestion control of one connection. The [module](self) says who calls it when.
pub trait CongestionControl: fmt::Debug + Send {
    /// An ACK opens the window. With [`moves_window`](Self::moves_window) every ACK of such a phase comes here.
    fn on_ack(&mut self, window: &mut Window, ack: &Ack);

    /// A loss begins recovery.
    fn on_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response;

    /// A loss was noticed when it had been repaired: the last segment sent, and sent again as a probe (RFC 8985 section 7.4). Default: as any
    /// loss.
    fn on_repaired_loss(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        self.on_loss(window, event)
    }

    /// A mark, once a window (RFC 3168 section 6.1.2). Default: as a loss.
    fn on_mark(&mut self, window: &mut Window, event: &CongestionEvent) -> Response {
        self.on_loss(window, event)
    }

    /// The retransmission timer expired. Returns the threshold, which is used unless [`again`](CongestionEvent::again). The transport sets
    /// the window to one segment more than is in the network, to 2 in QUIC. Default: half of the basis.
    fn on_timeout(&mut self, window: &Window, event: &CongestionEvent) -> f64 {
        let _ = window;
        event.basis / 2.0
    }

    /// A segment leaves.
    fn on_sent(&mut self, window: &mut Window, sent: &Sent) {
        let _ = (window, sent);
    }

    /// An ACK has come, of which nothing else is known yet.
    fn on_feedback(&mut self, feedback: &Feedback) {
        let _ = feedback;
    }

    /// The segment of this number is taken for lost. One that waits to be sent again may be named more than once.
    fn on_segment_lost(&mut self, window: &Window, now: Time, number: u64) {
        let _ = (window, now, number);
    }

    /// What was outstanding at the sign of congestion has arrived. Unless it [moves the window](Self::moves_window), that is at the
    /// threshold, or after a timeout where slow start has brought it.
    fn on_recovered(&mut self, window: &mut Window) {
        let _ = window;
    }

    /// The recovery that has just ended was needless; window and threshold are at least what they were before it.
    fn on_undone(&mut self) {}

    /// The application has no more data while the window has room, with so many segments in the network.
    fn on_app_limited(&mut self, in_flight: u32) {
        let _ = in_flight;
    }

    /// The connection was idle, and begins again with the initial window or a lower one.
    fn on_restart(&mut self) {}

    /// The rate at which segments leave, if it names one, by the smoothed round-trip time. Default: none. A connection that paces then
    /// sends at 1.2 windows a round trip, 2 in slow start; one that paces [evenly](Pacing::Evenly) at one.
    fn pacing_rate(&mut self, srtt: Option<Span>) -> Option<Rate> {
        let _ = srtt;
        None
    }

    /// Whether it moves the window by itself in this phase: the transport then neither lowers it in proportion to what arrives nor
    /// restarts it after an idle time, and calls [`on_ack`](Self::on_ack) for every ACK. Default: it does not.
    fn moves_window(&self, phase: Phase) -> bool {
        let _ = phase;
        false
    }

    /// Whether it observes single segments. If not, [`on_sent`](Self::on_sent), [`on_feedback`](Self::on_feedback),
    /// [`on_segment_lost`](Self::on_segment_lost) and [`on_app_limited`](Self::on_app_limited) are never called, which saves their time.
    /// Default: it does.
    fn observes_segments(&self) -> bool {
        true
    }

    /// Whether it has the slow start of RFC 5681, which HyStart may end. Default: it has.
    fn has_slow_start(&self) -> bool {
        true
    }

    /// The share of segments that it takes for marked, 0 to 1: by it the transport reads a counter of marks that may have come round (RFC 9768
    /// appendix A.2.1). Default: all.
    fn mark_share(&self) -> f64 {
        1.0
    }
}
