//! TCP parameters of scenarios: data only. The simulator implements all of them; the lab applies those that a
//! kernel supports.
//!
//! A [profile](PROFILES) names a complete TCP of some place and year; every parameter of it can be overridden
//! by [name](TcpParams::PARAMS). One engine implements all parameters, so a profile is only a list of values.
//!
//! | profile | what it is |
//! |---|---|
//! | `linux` | the defaults of Linux: RACK-TLP, PRR, CUBIC with HyStart, timestamps |
//! | `rfc` | the classical standards, for study: RFC 5681, 6298, 6582, 6675, 3042, 7323, 9438 |
//! | `reno-1999` | Reno as hosts ran it around 1999: initial window 1, no SACK, delayed ACK 200 ms |
//! | `ns2-235` | the defaults of ns-2.35 |
//! | `ns2-2000` | the defaults of ns-2 around the year 2000 |
//! | `ns2-full` | ns-2's two-way TCP (FullTcp) around the year 2000, with delayed ACKs |

mod profiles;
pub(crate) mod text;

pub use apportion_core::congestion::{ALGORITHMS, Algorithm, ControlEntry, LossRecovery};
use apportion_core::param::{Param, ParamError};
use apportion_core::units::{Bytes, Packets, Span};
use apportion_core::{choice, params};

use crate::params::{Params, check_delayed_ack, check_initial_window, check_sizes, fit_a_packet};
use profiles::{linux, ns2_235, ns2_2000, ns2_full, reno_1999, rfc};
use text::Text;

params! {
    /// Everything that distinguishes one TCP from another.
    pub struct TcpParams {
        /// How losses are repaired and the window grows.
        algorithm: Algorithm = Param::unset("RFC 5681, 6582, 6675, 9438"),
        /// Which SACK loss recovery `sack` and `cubic` use.
        sack_recovery: SackRecovery = Param::unset("ns-2 Sack1; RFC 6675; RFC 8985 and 6937"),
        /// Payload bytes of a full segment.
        segment: Bytes = Param::unset("RFC 9293 section 3.7.1"),
        /// What headers add to a data segment on the wire.
        header: Bytes = Param::unset("40 B: RFC 791, RFC 9293; 0: ns-2 before 2001-11"),
        /// The wire size of a segment without payload: pure ACK, SYN, FIN.
        ack: Bytes = Param::unset("RFC 791, RFC 9293"),
        /// What a SACK option adds to an ACK in addition to 8 bytes a block.
        sack_option: Bytes = Param::unset("2 B and padding: RFC 2018 section 3; 0: ns-2"),
        /// The receiver's buffer, and so the cap of the window in use.
        window: Window = Param::unset("RFC 9293 section 3.8.6; ns-2 window_"),
        /// The data that the sender holds until they are acknowledged. An application with a rate stops at a write for which there
        /// is no room, and does not make up for what it would have written meanwhile.
        send_buffer: Option<Bytes> = Param::unset("RFC 9293 section 3.9.1.2; SO_SNDBUF without overheads; Linux grows it: none").own("size or none"),
        /// Whether the window field is scaled by the smallest shift that can express `window`.
        window_scale: bool = Param::unset("RFC 7323 section 2"),
        /// The congestion window after the handshake.
        initial_window: InitialWindow = Param::unset("RFC 5681 section 3.1; ns-2 windowInit_"),
        /// Where the first slow start ends if nothing is lost.
        initial_ssthresh: InitialSsthresh = Param::unset("RFC 5681 section 3.1; ns-2"),
        /// Number of duplicate ACKs that indicates a loss.
        dupack_threshold: u32 = Param::unset("RFC 5681 section 3.2; ns-2 numdupacks_"),
        /// Whether each duplicate ACK below the threshold lets one new segment out.
        limited_transmit: bool = Param::unset("RFC 3042; ns-2 singledup_"),
        /// When the receiver acknowledges later than at once.
        delayed_ack: Option<DelayedAck> = Param::unset("RFC 5681 section 4.2; ns-2 DelAck sinks"),
        /// How many ACKs are not held back all the same, when a connection begins and after a pause.
        quick_acks: u32 = Param::unset("Linux; RFC 5681 section 4.2 allows it"),
        /// Whether a segment that is in order but below others that came early is acknowledged at once.
        ack_gap_fill: bool = Param::unset("RFC 5681 section 4.2; RFC2581_immediate_ack_"),
        /// Whether the last segment in order, when it comes once more, counts as new for delayed ACKs.
        delay_repeat: bool = Param::unset("ns-2 DelAck sinks"),
        /// The grain of RTT measurement; 0s measures exactly.
        tick: Span = Param::unset("ns-2 tcpTick_"),
        /// The lower bound of the retransmission timeout, before backoff.
        min_rto: Span = Param::unset("RFC 6298 (2.4); ns-2 minrto_"),
        /// The lower bound of what the timeout exceeds the smoothed RTT by; needs `timestamps`.
        min_variance: Span = Param::unset("RFC 6298 (2.3), its G; Linux: 200 ms"),
        /// The upper bound of the retransmission timeout.
        max_rto: Span = Param::unset("RFC 6298 (2.5); ns-2 maxrto_"),
        /// The timeout before the first RTT sample.
        initial_rto: Span = Param::unset("RFC 6298 (2.1); ns-2 rtxcur_init_"),
        /// The largest factor of exponential backoff, if other than `max_rto` bounds it.
        max_backoff: Option<u32> = Param::unset("RFC 6298 (5.5); ns-2: 64").own("whole number or none"),
        /// Whether a backoff above 8 moves the smoothed RTT into its deviation.
        forget_srtt: bool = Param::unset("ns-2; RFC 6298 section 5, last paragraph"),
        /// Whether an ACK restarts the timer with the timeout and backoff from before its own RTT sample.
        stale_rto: bool = Param::unset("ns-2 timerfix_ false"),
        /// Whether every ACK of new data ends backoff, even if it yields no RTT sample.
        ack_ends_backoff: bool = Param::unset("ns-2 FullTcp"),
        /// Whether segments carry timestamps: every ACK yields a sample of the RTT.
        timestamps: bool = Param::unset("RFC 7323 section 3"),
        /// Whether the sender opens with a SYN.
        syn: bool = Param::unset("RFC 9293 section 3.5; ns-2 syn_"),
        /// Timeouts of a SYN before they double.
        linear_syns: u32 = Param::unset("Linux tcp_syn_linear_timeouts"),
        /// Whether the sender closes with a FIN.
        fin: bool = Param::unset("RFC 9293 section 3.6"),
        /// Whether a segment smaller than full waits while data is outstanding.
        nagle: bool = Param::unset("RFC 9293 section 3.7.4"),
        /// Whether the connection uses explicit congestion notification.
        ecn: bool = Param::unset("RFC 3168 section 6.1"),
        /// Whether duplicate ACKs for data sent before the last recovery or timeout cause no second fast
        /// retransmit.
        bug_fix: bool = Param::unset("RFC 6582 section 3.2; bugFix_"),
        /// Whether a second hole of a window is retransmitted as fast as the first: `bug_fix` then guards
        /// against the last timeout alone.
        fast_again: bool = Param::unset("ns-2 FullTcp"),
        /// Which duplicate ACKs inflate the window of Reno and NewReno.
        inflate: Inflate = Param::unset("RFC 5681 section 3.2; ns-2 dupwnd_"),
        /// New segments that one ACK from the threshold on may release in NewReno.
        recovery_burst: Option<u32> = Param::unset("ns-2 Newreno: 2").own("whole number or none"),
        /// The window that is halved after a loss.
        halving: Halving = Param::unset("RFC 5681 equation (4); ns-2"),
        /// Whether the slow start threshold is cut down to whole segments.
        truncate_ssthresh: bool = Param::unset("ns-2"),
        /// Whether the congestion window is cut down to whole segments when it is halved.
        truncate_cwnd: bool = Param::unset("ns-2 precisionReduce_ false"),
        /// Whether the window grows per acknowledged byte rather than per ACK.
        byte_counting: bool = Param::unset("RFC 5681 section 3.1; false: ns-2"),
        /// Segments by which one ACK may open the window in slow start, if bytes are counted: RFC 3465's L, at least 1.
        abc_limit: Option<u32> = Param::unset("RFC 3465 section 2.2").own("whole number or none"),
        /// Which CUBIC the algorithm `cubic` is.
        cubic: CubicForm = Param::unset("RFC 9438; Linux"),
        /// Whether slow start ends when delay grows.
        hystart: bool = Param::unset("Ha and Rhee 2011"),
        /// Whether segments leave at a rate, of 1.2 windows a round trip and 2 in slow start, not in bursts; those of BBR and Prague
        /// always do (Prague: one window).
        pacing: bool = Param::unset("Linux, ip-sysctl tcp_pacing_ca_ratio, tcp_pacing_ss_ratio; bbr, bbr3 and prague always pace"),
        /// The window when fast recovery ends.
        exit: RecoveryExit = Param::unset("RFC 5681 section 3.2, RFC 6582 section 3.2; ns-2"),
        /// The window of a sender that was idle.
        idle: Idle = Param::unset("RFC 5681 section 4.1; RFC 2861; ns-2 slow_start_restart_"),
    }
    text: Text
}

choice! {
    /// How a SACK sender decides what to send in recovery.
    pub enum SackRecovery {
        /// ns-2's Sack1: a count of packets in the pipe, lowered by every duplicate ACK.
        Pipe = "pipe",
        /// RFC 6675: IsLost, SetPipe, NextSeg.
        Rfc6675 = "rfc6675",
        /// RFC 8985 and 6937: losses by time, tail loss probes, proportional rate reduction. With it every
        /// `algorithm` that halves its window has selective acknowledgments.
        Rack = "rack",
    }
}

choice! {
    /// The forms of CUBIC.
    pub enum CubicForm {
        /// RFC 9438 to the letter.
        Rfc9438 = "rfc9438",
        /// Linux's: plateau, target and window are whole segments, and acknowledged segments are saved up for each one
        /// that the window grows by; the additive increase of the Reno-friendly region stays below one segment, the
        /// target lies one shortest round trip ahead, and until the first loss the window grows by a twentieth each
        /// round trip at least.
        Linux = "linux",
    }
}

/// The size of the receiver's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// A number of full segments.
    Packets(Packets),
    /// A number of bytes.
    Bytes(Bytes),
}

/// The congestion window a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// 2 to 4 segments, by their size (RFC 5681 section 3.1).
    Rfc5681,
    /// This number of segments.
    Packets(Packets),
}

/// The slow start threshold a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSsthresh {
    /// The receiver's window.
    Window,
    /// Above every window: slow start ends with a loss.
    Unlimited,
    /// This number of segments.
    Packets(Packets),
}

/// A receiver that delays ACKs. Written `2 200ms` or `2 200ms aligned`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedAck {
    /// Number of full segments after which an ACK is sent at once.
    pub every: u32,
    /// Maximum delay of an ACK.
    pub timeout: Span,
    /// Whether the timer fires at multiples of `timeout` (BSD) rather than `timeout` after the segment.
    pub aligned: bool,
}

choice! {
    /// Which duplicate ACKs inflate the window of Reno and NewReno.
    pub enum Inflate {
        /// Those in fast recovery (RFC 5681 section 3.2).
        Recovery = "recovery",
        /// All from the threshold on, even if `bug_fix` suppressed the retransmission.
        Always = "always",
        /// Those in fast recovery, and into `cwnd` itself, as in BSD and ns-2's FullTcp: a timeout halves what
        /// they made of it; the ACK that starts recovery lets nothing out but the retransmission; if `bug_fix`
        /// suppressed that, duplicates above the threshold count still; and the first new ACK after them brings
        /// `cwnd` down to `ssthresh`.
        Cwnd = "cwnd",
    }
}

choice! {
    /// The window that is halved after a loss.
    pub enum Halving {
        /// min(cwnd, window).
        Window = "window",
        /// The bytes outstanding (RFC 5681 equation (4)).
        Flight = "flight",
    }
}

choice! {
    /// The congestion window after the ACK that ends fast recovery.
    pub enum RecoveryExit {
        /// It stays at the halved value and this ACK already makes it grow.
        Grow = "grow",
        /// It becomes the slow start threshold (RFC 5681 section 3.2 step 6).
        Ssthresh = "ssthresh",
        /// min(ssthresh, max(FlightSize, SMSS) + SMSS) (RFC 6582 section 3.2 step 3, first option).
        Flight = "flight",
    }
}

choice! {
    /// The congestion window of a sender that has nothing to send.
    pub enum Idle {
        /// It stays.
        Keep = "keep",
        /// It halves for each timeout's worth of silence, down to the initial window (RFC 2861).
        Decay = "decay",
        /// After a timeout without sending it shrinks to the initial window (RFC 5681 section 4.1).
        Restart = "restart",
        /// The timer keeps running when all is acknowledged; when it fires, cwnd is 1, ssthresh stays, no
        /// backoff.
        Timeout = "timeout",
    }
}

impl TcpParams {
    /// The profile called `name`.
    #[must_use]
    pub fn profile(name: &str) -> Option<Self> {
        PROFILES.iter().find(|entry| entry.name == name).map(|entry| (entry.params)())
    }

    /// The values of the classical standards, the profile `rfc`.
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

    /// Why a parameter that is not [used](Self::uses) has no effect, and how to mend it.
    pub(crate) const fn why_unused(&self) -> &'static str {
        match self.sack_recovery {
            SackRecovery::Rack => {
                "it has no effect: sack_recovery = \"rack\" has rules of its own for this; leave it out, or write another recovery or \
                 profile = \"rfc\""
            }
            SackRecovery::Pipe | SackRecovery::Rfc6675 => {
                "it has no effect: only sack_recovery = \"rack\", as in profile = \"linux\", has it; leave it out"
            }
        }
    }

    /// Sets the parameter called `name` from `text`.
    ///
    /// # Errors
    /// What is wrong with either, or that no TCP can run with it; then nothing changes.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), ParamError> {
        self.set_by_name(name, text)
    }

    /// Whether a TCP can run with these values.
    ///
    /// # Errors
    /// The reason why no TCP can run with the parameters, with one that has to change.
    pub fn check(&self) -> Result<(), ParamError> {
        check_sizes(self.segment, self.header, Bytes::new(self.window_bytes()))?;
        let algorithm = self.algorithm.entry();
        let counts = [
            ("dupack_threshold", Some(self.dupack_threshold)),
            ("max_backoff", self.max_backoff),
            ("recovery_burst", self.recovery_burst),
            ("abc_limit", self.abc_limit),
        ];
        let (key, why) = if self.send_buffer.is_some_and(|size| size < self.segment) {
            ("send_buffer", "it must hold at least one full segment")
        } else if !fit_a_packet(&[self.ack, self.sack_option, SACK_BLOCKS]) {
            ("ack", "an ACK with a full SACK option has at most 65535 bytes")
        } else if let Some((key, _)) = counts.iter().find(|(_, count)| *count == Some(0)) {
            (*key, "must be at least 1")
        } else if self.sack_recovery == SackRecovery::Rack && algorithm.recovery == LossRecovery::Tahoe {
            let advice = "has no recovery for RACK to guide; choose another profile, such as \"rfc\"";
            return Err(ParamError::new("algorithm", format!("{} {advice}", algorithm.name)));
        } else if self.initial_rto == Span::ZERO || self.max_rto < self.min_rto {
            let key = if self.initial_rto == Span::ZERO { "initial_rto" } else { "max_rto" };
            (key, "needs initial_rto > 0 and min_rto <= max_rto")
        } else {
            check_delayed_ack(self.delayed_ack)?;
            return match self.initial_window {
                InitialWindow::Packets(window) => check_initial_window(window, Packets::new(1), self.segment),
                InitialWindow::Rfc5681 => Ok(()),
            };
        };
        Err(ParamError::new(key, why))
    }

    /// The receiver's buffer in bytes.
    #[inline]
    #[must_use]
    pub fn window_bytes(&self) -> u64 {
        match self.window {
            Window::Packets(n) => n.get().saturating_mul(self.segment.get()),
            Window::Bytes(n) => n.get(),
        }
    }

    /// The largest window in bytes: the receiver's buffer, or the send buffer if it is smaller.
    #[must_use]
    pub fn largest_window(&self) -> u64 {
        self.window_bytes().min(self.send_buffer.map_or(u64::MAX, Bytes::get))
    }

    /// Whether the receiver reports selective acknowledgments and the sender uses them.
    #[inline]
    #[must_use]
    pub fn sack(&self) -> bool {
        self.sack_recovery == SackRecovery::Rack || self.algorithm.entry().recovery == LossRecovery::Sack
    }

    /// Whether segments carry timestamps: a congestion control by one-way delays needs them.
    #[inline]
    #[must_use]
    pub fn stamps(&self) -> bool {
        self.timestamps || self.algorithm.entry().one_way_delay
    }

    /// Whether both ends offer explicit congestion notification, without which DCTCP and Prague do not work.
    #[inline]
    #[must_use]
    pub fn offers_ecn(&self) -> bool {
        self.ecn || self.algorithm.counts_marks()
    }
}

/// Parameters of duplicate ACKs, of the window when it is cut, and of the timer, which RACK-TLP and
/// proportional rate reduction replace by rules of their own.
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
    /// The name in scenario files.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The source of its values.
    pub source: &'static str,
    params: fn() -> TcpParams,
}

/// Every profile, the default first.
pub const PROFILES: &[ProfileEntry] = &[
    ProfileEntry {
        name: "linux",
        summary: "Linux's TCP with its defaults: CUBIC with HyStart, RACK-TLP, proportional rate reduction",
        source: "RFC 8985, 6937, 9438, 7323, 6928, 2861, 2883, 3522, 4015; Ha and Rhee 2011; kernel documentation (ip-sysctl)",
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

impl Params for TcpParams {
    const TRANSPORT: &'static str = "TCP";
    fn check(&self) -> Result<(), ParamError> {
        self.check()
    }

    fn algorithm(&mut self) -> &mut Algorithm {
        &mut self.algorithm
    }
}

#[cfg(test)]
mod tests;
