//! TCP parameters of scenarios: data only. The simulator implements all of them; the lab applies those that a
//! kernel supports.
//!
//! A [profile](PROFILES) names a whole TCP of some place and year; every parameter of it can be overridden by
//! [name](PARAMS). One engine obeys all parameters, so a profile is a list of values and nothing else.
//!
//! | profile | what it is |
//! |---|---|
//! | `linux` | what Linux does by default: RACK-TLP, PRR, CUBIC with HyStart, timestamps |
//! | `rfc` | the classical standards, for study: RFC 5681, 6298, 6582, 6675, 3042, 7323, 9438 |
//! | `reno-1999` | Reno as hosts ran it around 1999: initial window 1, no SACK, delayed ACK 200 ms |
//! | `ns2-235` | the defaults of ns-2.35 |
//! | `ns2-2000` | the defaults of ns-2 around the year 2000 |
//! | `ns2-full` | ns-2's two-way TCP (FullTcp) around the year 2000, with delayed ACKs |

mod profiles;
pub(crate) mod text;

pub use apportion_core::congestion::{ALGORITHMS, Algorithm, Entry as AlgorithmEntry};
use apportion_core::units::{Bytes, Packets, Span};

pub use crate::params::ParamEntry;
use crate::params::{check_delayed_ack, check_initial_window, check_sizes, fit_a_packet, params};
use profiles::{linux, ns2_235, ns2_2000, ns2_full, reno_1999, rfc};

/// Everything that distinguishes one TCP from another.
#[derive(Clone, Debug, PartialEq)]
pub struct TcpParams {
    /// How losses are repaired and how the window grows.
    pub algorithm: Algorithm,
    /// Which SACK loss recovery [`Algorithm::Sack`] and [`Algorithm::Cubic`] use.
    pub sack_recovery: SackRecovery,
    /// Payload bytes of a full segment.
    pub segment: Bytes,
    /// What headers add to a data segment on the wire.
    pub header: Bytes,
    /// The wire size of a segment without payload: pure ACK, SYN, FIN.
    pub ack: Bytes,
    /// What a SACK option adds to an ACK in addition to 8 bytes a block.
    pub sack_option: Bytes,
    /// The receiver's buffer, and so the cap of the window in use.
    pub window: Window,
    /// Whether the window field is scaled by the smallest shift that can express `window`.
    pub window_scale: bool,
    /// The congestion window after the handshake.
    pub initial_window: InitialWindow,
    /// Where the first slow start ends if nothing is lost.
    pub initial_ssthresh: InitialSsthresh,
    /// Number of duplicate ACKs that indicates a loss.
    pub dupack_threshold: u32,
    /// Whether each duplicate ACK below the threshold lets one new segment out.
    pub limited_transmit: bool,
    /// When the receiver acknowledges later than at once.
    pub delayed_ack: Option<DelayedAck>,
    /// How many ACKs are not held back all the same, when a connection begins and after a pause.
    pub quick_acks: u32,
    /// Whether a segment that is in order but below others that came early is acknowledged at once.
    pub ack_gap_fill: bool,
    /// Whether the last segment in order, when it comes once more, counts as new for delayed ACKs.
    pub delay_repeat: bool,
    /// The grain of RTT measurement; zero measures exactly.
    pub tick: Span,
    /// The lower bound of the retransmission timeout, before backoff.
    pub min_rto: Span,
    /// The lower bound of what the timeout exceeds the smoothed RTT by; needs `timestamps`.
    pub min_variance: Span,
    /// The upper bound of the retransmission timeout.
    pub max_rto: Span,
    /// The timeout before the first RTT sample.
    pub initial_rto: Span,
    /// The largest factor of exponential backoff, if other than `max_rto` bounds it.
    pub max_backoff: Option<u32>,
    /// Whether a backoff above 8 moves the smoothed RTT into its deviation.
    pub forget_srtt: bool,
    /// Whether an ACK restarts the timer with the timeout and backoff from before its own RTT sample.
    pub stale_rto: bool,
    /// Whether every ACK of new data ends backoff, even if it yields no RTT sample.
    pub ack_ends_backoff: bool,
    /// Whether segments carry timestamps: every ACK yields a sample of the RTT.
    pub timestamps: bool,
    /// Whether the sender opens with a SYN.
    pub syn: bool,
    /// Timeouts of a SYN before they double.
    pub linear_syns: u32,
    /// Whether the sender closes with a FIN.
    pub fin: bool,
    /// Whether a segment smaller than full waits while data is outstanding.
    pub nagle: bool,
    /// Whether the connection uses explicit congestion notification.
    pub ecn: bool,
    /// Whether duplicate ACKs for data sent before the last recovery or timeout cause no second fast
    /// retransmit.
    pub bug_fix: bool,
    /// Whether a second hole of a window is retransmitted as fast as the first: `bug_fix` then guards
    /// against the last timeout alone.
    pub fast_again: bool,
    /// Which duplicate ACKs inflate the window of Reno and NewReno.
    pub inflate: Inflate,
    /// New segments that one ACK from the threshold on may release in NewReno.
    pub recovery_burst: Option<u32>,
    /// The window that is halved after a loss.
    pub halving: Halving,
    /// Whether the slow start threshold is cut down to whole segments.
    pub truncate_ssthresh: bool,
    /// Whether the congestion window is cut down to whole segments when it is halved.
    pub truncate_cwnd: bool,
    /// Whether the window grows per acknowledged byte rather than per ACK.
    pub byte_counting: bool,
    /// Segments by which one ACK may open the window in slow start, if bytes are counted: RFC 3465's L, at least 1.
    pub abc_limit: Option<u32>,
    /// Which CUBIC [`Algorithm::Cubic`] is.
    pub cubic: CubicForm,
    /// Whether slow start ends when delay grows.
    pub hystart: bool,
    /// Whether segments leave at a rate, not in bursts; those of BBR and Prague always do.
    pub pacing: bool,
    /// The window when fast recovery ends.
    pub exit: RecoveryExit,
    /// The window of a sender that was idle.
    pub idle: Idle,
}

/// How a SACK sender decides what to send in recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SackRecovery {
    /// ns-2's Sack1: a count of packets in the pipe, lowered by every duplicate ACK.
    Pipe,
    /// RFC 6675: IsLost, SetPipe, NextSeg.
    Rfc6675,
    /// RFC 8985 and 6937: losses by time, tail loss probes, proportional rate reduction. With it every
    /// `algorithm` that halves its window has selective acknowledgments.
    Rack,
}

/// The forms of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicForm {
    /// RFC 9438 to the letter.
    Rfc9438,
    /// Linux's: plateau, target and window are whole segments, and acknowledged segments are saved up for each one
    /// that the window grows by; the additive increase of the Reno-friendly region stays below one segment, the
    /// target lies one shortest round trip ahead, and until the first loss the window grows by a twentieth each
    /// round trip at least.
    Linux,
}

/// The size of the receiver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// In full segments.
    Packets(Packets),
    /// In bytes.
    Bytes(Bytes),
}

/// The congestion window a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// 2 to 4 segments, by their size (RFC 5681 section 3.1).
    Rfc5681,
    /// So many segments.
    Packets(Packets),
}

/// The slow start threshold a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSsthresh {
    /// The receiver's window.
    Window,
    /// Above every window: slow start ends with a loss.
    Unlimited,
    /// So many segments.
    Packets(Packets),
}

/// A receiver that holds ACKs back. Written `2 200ms` or `2 200ms aligned`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Full segments that may wait before an ACK is sent at once.
    pub every: u32,
    /// The longest an ACK is held back.
    pub timeout: Span,
    /// Whether the timer fires at multiples of `timeout` (BSD) rather than `timeout` after the segment.
    pub aligned: bool,
}

/// Which duplicate ACKs inflate the window of Reno and NewReno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inflate {
    /// Those in fast recovery (RFC 5681 section 3.2).
    Recovery,
    /// All from the threshold on, even if `bug_fix` suppressed the retransmission.
    Always,
    /// Those in fast recovery, and into `cwnd` itself, as in BSD and ns-2's FullTcp: a timeout halves what
    /// they made of it; the ACK that starts recovery lets nothing out but the retransmission; if `bug_fix`
    /// suppressed that, duplicates above the threshold count still; and the first new ACK after them brings
    /// `cwnd` down to `ssthresh`.
    Cwnd,
}

/// The window that is halved after a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halving {
    /// min(cwnd, window).
    Window,
    /// The bytes outstanding (RFC 5681 equation (4)).
    Flight,
}

/// The congestion window after the ACK that ends fast recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryExit {
    /// It stays at the halved value and this ACK already makes it grow.
    Grow,
    /// It becomes the slow start threshold (RFC 5681 section 3.2 step 6).
    Ssthresh,
    /// min(ssthresh, max(FlightSize, SMSS) + SMSS) (RFC 6582 section 3.2 step 3, first option).
    Flight,
}

/// The congestion window of a sender that has nothing to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It stays.
    Keep,
    /// It halves for each timeout's worth of silence, down to the initial window (RFC 2861).
    Decay,
    /// After a timeout without sending it shrinks to the initial window (RFC 5681 section 4.1).
    Restart,
    /// The timer keeps running when all is acknowledged; when it fires, cwnd is 1, ssthresh stays, no
    /// backoff.
    Timeout,
}

impl TcpParams {
    /// The profile called `name`.
    #[must_use]
    pub fn profile(name: &str) -> Option<Self> {
        PROFILES.iter().find(|entry| entry.name == name).map(|entry| (entry.params)())
    }

    /// The values of the classical standards, the profile "rfc".
    pub(crate) fn classical() -> Self {
        rfc()
    }

    /// Whether the parameter called `name` has an effect with this [`sack_recovery`](Self::sack_recovery).
    #[must_use]
    pub fn uses(&self, name: &str) -> bool {
        match (self.sack_recovery, name) {
            // With timestamps every ACK of new data yields a sample, which ends backoff.
            (SackRecovery::Rack, "ack_ends_backoff") => !self.timestamps,
            (SackRecovery::Rack, _) => !UNUSED_BY_RACK.contains(&name),
            (SackRecovery::Pipe | SackRecovery::Rfc6675, _) => !["hystart", "pacing"].contains(&name),
        }
    }

    /// Why no TCP can run with these values, if so.
    pub fn check(&self) -> Result<(), String> {
        let fail = |why: &str| Err(why.to_owned());
        check_sizes(self.segment, self.header, Bytes::new(self.window_bytes()))?;
        if !fit_a_packet(&[self.ack, self.sack_option, SACK_BLOCKS]) {
            return fail("an ACK with a full SACK option has at most 65535 bytes");
        }
        if self.dupack_threshold == 0
            || [self.max_backoff, self.recovery_burst, self.abc_limit].contains(&Some(0))
        {
            return fail("must be at least 1");
        }
        if self.sack_recovery == SackRecovery::Rack && self.algorithm == Algorithm::Tahoe {
            return fail("tahoe has no recovery for RACK to guide; choose another profile, such as \"rfc\"");
        }
        if self.initial_rto == Span::ZERO || self.max_rto < self.min_rto {
            return fail("needs initial_rto > 0 and min_rto <= max_rto");
        }
        check_delayed_ack(self.delayed_ack)?;
        if let InitialWindow::Packets(window) = self.initial_window {
            check_initial_window(window, Packets::new(1), self.segment)?;
        }
        Ok(())
    }

    /// The receiver's buffer in bytes.
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        match self.window {
            Window::Packets(n) => n.get().saturating_mul(self.segment.get()),
            Window::Bytes(n) => n.get(),
        }
    }

    /// Whether the receiver reports selective acknowledgments and the sender uses them.
    #[must_use]
    pub fn sack(&self) -> bool {
        !matches!(self.algorithm, Algorithm::Tahoe | Algorithm::Reno | Algorithm::NewReno)
            || self.sack_recovery == SackRecovery::Rack
    }

    /// Whether segments carry timestamps: a control by one-way delays measures by them.
    #[must_use]
    pub fn stamps(&self) -> bool {
        self.timestamps || self.algorithm.entry().one_way_delay
    }

    /// Whether both ends offer explicit congestion notification: DCTCP and Prague are nothing without it.
    #[must_use]
    pub fn offers_ecn(&self) -> bool {
        self.ecn || self.algorithm.counts_marks()
    }
}

/// Parameters of duplicate ACKs, of the window when it is cut, and of the timer, for which RACK-TLP and proportional rate
/// reduction have rules of their own.
const UNUSED_BY_RACK: &[&str] = &[
    "limited_transmit",
    "stale_rto",
    "bug_fix",
    "fast_again",
    "inflate",
    "recovery_burst",
    "truncate_cwnd",
    "exit",
];

/// RFC 2018 section 3: 8 bytes per block, and three blocks in addition to a timestamp.
const SACK_BLOCKS: Bytes = Bytes::new(3 * 8);

/// A named TCP.
#[derive(Debug)]
pub struct ProfileEntry {
    /// The name scenario files use.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where its values come from.
    pub source: &'static str,
    params: fn() -> TcpParams,
}

/// Every profile, the default first.
pub const PROFILES: &[ProfileEntry] = &[
    ProfileEntry {
        name: "linux",
        summary: "Linux's TCP with its defaults: CUBIC with HyStart, RACK-TLP, proportional rate reduction",
        source: "RFC 8985, 6937, 9438, 7323, 6928, 2861, 2883; Ha and Rhee 2011; kernel documentation (ip-sysctl)",
        params: linux,
    },
    ProfileEntry {
        name: "rfc",
        summary: "NewReno by the classical standards, for study; set `algorithm` for sack or cubic",
        source: "RFC 5681, 6298, 6582, 6675, 3042, 7323, 9438",
        params: rfc,
    },
    ProfileEntry {
        name: "reno-1999",
        summary: "Reno hosts around 1999: initial window 1, no SACK, delayed ACK 200 ms",
        source: "RFC 2581, 2988; Stevens, TCP/IP Illustrated vol. 2 (delayed ACK timer)",
        params: reno_1999,
    },
    ProfileEntry {
        name: "ns2-235",
        summary: "Agent/TCP/Reno with the defaults of ns-2.35",
        source: "class variables of ns-2.35; forced-loss traces (validation/forced-loss)",
        params: ns2_235,
    },
    ProfileEntry {
        name: "ns2-2000",
        summary: "Agent/TCP/Reno with the defaults of ns-2 around 2000",
        source: "dated comments in ns-2's default files; forced-loss traces (validation/forced-loss)",
        params: ns2_2000,
    },
    ProfileEntry {
        name: "ns2-full",
        summary: "Agent/TCP/FullTcp of ns-2 around 2000: BSD's Reno in bytes, delayed ACK 100 ms",
        source: "as ns2-2000; forced-loss traces of ns-2.35 (validation/forced-loss)",
        params: ns2_full,
    },
];

params! {
    "TCP", TcpParams:
    algorithm: Algorithm, "how losses are repaired and the window grows", "RFC 5681, 6582, 6675, 9438";
    sack_recovery: SackRecovery, "how a SACK sender chooses what to send in recovery", "ns-2 Sack1; RFC 6675; RFC 8985 and 6937";
    segment: Bytes, "payload of a full segment", "RFC 9293 section 3.7.1";
    header: Bytes, "added to a data segment on the wire", "40 B: RFC 791, RFC 9293; 0: ns-2 before 2001-11";
    ack: Bytes, "wire size of a segment without payload", "RFC 791, RFC 9293";
    sack_option: Bytes, "what a SACK option adds to an ACK, without its 8 bytes a block",
        "2 B and padding: RFC 2018 section 3; 0: ns-2";
    window: Window, "the receiver's buffer: cap of the window in use", "RFC 9293 section 3.8.6; ns-2 window_";
    window_scale: bool, "scale the window field", "RFC 7323 section 2";
    initial_window: InitialWindow, "congestion window at the start", "RFC 5681 section 3.1; ns-2 windowInit_";
    initial_ssthresh: InitialSsthresh, "slow start threshold at the start", "RFC 5681 section 3.1; ns-2";
    dupack_threshold: u32, "duplicate ACKs taken for a loss", "RFC 5681 section 3.2; ns-2 numdupacks_";
    limited_transmit: bool, "a new segment per duplicate ACK below the threshold",
        "RFC 3042; ns-2 singledup_";
    delayed_ack: Option<DelayedAck>, "how long ACKs are held back", "RFC 5681 section 4.2; ns-2 DelAck sinks";
    quick_acks: u32, "ACKs at the start and after a pause that are not held back", "Linux; RFC 5681 section 4.2 allows it";
    ack_gap_fill: bool, "acknowledge at once what fills part of a gap",
        "RFC 5681 section 4.2; RFC2581_immediate_ack_";
    delay_repeat: bool, "the last segment in order may come again without an ACK at once",
        "ns-2 DelAck sinks";
    tick: Span, "grain of RTT measurement, 0s for exact", "ns-2 tcpTick_";
    min_rto: Span, "smallest timeout before backoff", "RFC 6298 (2.4); ns-2 minrto_";
    min_variance: Span, "least excess of the timeout over the smoothed RTT", "RFC 6298 (2.3), its G; Linux: 200 ms";
    max_rto: Span, "largest timeout", "RFC 6298 (2.5); ns-2 maxrto_";
    initial_rto: Span, "timeout before the first sample", "RFC 6298 (2.1); ns-2 rtxcur_init_";
    max_backoff: Option<u32>, "largest factor of backoff", "RFC 6298 (5.5); ns-2: 64";
    forget_srtt: bool, "a backoff above 8 moves srtt into rttvar", "ns-2; RFC 6298 section 5, last paragraph";
    stale_rto: bool, "an ACK restarts the timer before its RTT sample counts", "ns-2 timerfix_ false";
    ack_ends_backoff: bool, "an ACK of new data ends backoff without an RTT sample", "ns-2 FullTcp";
    timestamps: bool, "timestamp option: a sample of the RTT with every ACK", "RFC 7323 section 3";
    syn: bool, "open with a SYN", "RFC 9293 section 3.5; ns-2 syn_";
    linear_syns: u32, "timeouts of a SYN before they double", "Linux tcp_syn_linear_timeouts";
    fin: bool, "close with a FIN", "RFC 9293 section 3.6";
    nagle: bool, "hold back a small segment while data is outstanding", "RFC 9293 section 3.7.4";
    ecn: bool, "explicit congestion notification", "RFC 3168 section 6.1";
    bug_fix: bool, "no second fast retransmit for the window of the last loss",
        "RFC 6582 section 3.2; bugFix_";
    fast_again: bool, "a second hole of one window is fast retransmitted despite bug_fix", "ns-2 FullTcp";
    inflate: Inflate, "duplicate ACKs that inflate the window", "RFC 5681 section 3.2; ns-2 dupwnd_";
    recovery_burst: Option<u32>, "new segments an ACK may release in fast recovery", "ns-2 Newreno: 2";
    halving: Halving, "the window that is halved", "RFC 5681 equation (4); ns-2";
    truncate_ssthresh: bool, "ssthresh is a whole number of segments", "ns-2";
    truncate_cwnd: bool, "a halved cwnd is a whole number of segments", "ns-2 precisionReduce_ false";
    byte_counting: bool, "the window grows per byte acknowledged", "RFC 5681 section 3.1; false: ns-2";
    abc_limit: Option<u32>, "segments by which one ACK may open the window in slow start", "RFC 3465 section 2.2";
    cubic: CubicForm, "which details of CUBIC", "RFC 9438; Linux";
    hystart: bool, "slow start ends when delay grows", "Ha and Rhee 2011";
    pacing: bool, "send at a rate of 1.2 windows a round trip, 2 in slow start", "Linux, ip-sysctl tcp_pacing_ca_ratio, tcp_pacing_ss_ratio; bbr, bbr3 and prague always pace";
    exit: RecoveryExit, "cwnd when fast recovery ends", "RFC 5681 section 3.2, RFC 6582 section 3.2; ns-2";
    idle: Idle, "cwnd of a sender that was idle", "RFC 5681 section 4.1; RFC 2861; ns-2 slow_start_restart_";
}

#[cfg(test)]
mod tests;
