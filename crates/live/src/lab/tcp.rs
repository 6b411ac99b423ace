//! Sets the parameters of a scenario's TCP in the kernel: per socket, and per namespace.
//!
//! Source: tcp(7), socket(7), Documentation/networking/ip-sysctl. `docs/lab.md` is the page for users. The
//! kernel has one TCP, with a choice of congestion controls; a scenario's profile is applied as far as the
//! kernel has options for it, and [`unsupported`] lists the rest.
//!
//! - TCP_CONGESTION, TCP_MAXSEG, TCP_NODELAY and TCP_WINDOW_CLAMP are options of sockets, so flows of one
//!   host may differ in them.
//! - Timestamps, SACK, ECN, window scaling, bounds of the timeout and the rest are settings of namespaces:
//!   flows of one host must agree, see [`settings`].
//! - The receive window is the clamp. The buffer behind it is much larger and comes from `tcp_rmem`, because
//!   `net.core.rmem_max` of the machine bounds SO_RCVBUF; it does not grow by itself (`tcp_moderate_rcvbuf`),
//!   because that would move the clamp.

use std::io;
use std::ops::RangeInclusive;
use std::os::fd::BorrowedFd;

use apportion_core::units::{Bytes, Packets, Span};
use apportion_linux::namespace::{SysctlError, set_sysctl};
use apportion_linux::tcp::{set_congestion, set_not_sent_low_water, set_window_clamp};
use apportion_scenario::tcp::{
    Algorithm, DelayedAck, Halving, Idle, InitialSsthresh, InitialWindow, LossRecovery, RecoveryExit,
    SackRecovery, TcpParams,
};
use nix::sys::socket::{setsockopt, sockopt};

/// Bytes of headers of IPv4 and TCP without options, and with timestamps (RFC 7323 section 3.2) and padding.
const BARE: Bytes = Bytes::new(40);
const WITH_TIMESTAMPS: Bytes = Bytes::new(52);
/// Payload sizes that Linux supports (`TCP_MIN_MSS`, `MAX_TCP_WINDOW`); with timestamps they are 12 bytes
/// smaller.
const SEGMENTS: RangeInclusive<u64> = 88..=32_755;
/// Linux starts with ten segments (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Maximum of unsent segments in a socket. Chosen: a millisecond at 400 Mbit/s, which is how late the driver
/// may be without a gap, and little for a source to send after its stop.
const UNSENT_SEGMENTS: u64 = 32;
/// Receive buffer over window. A buffer holds whole pages for each segment, so it needs more room than the
/// window has bytes.
const ROOM: u64 = 8;
/// Delayed ACKs of Linux, after the quick ones at the start.
const DELAYED_ACK: DelayedAck = DelayedAck { every: 2, timeout: Span::from_millis(40), aligned: false };
/// The range of `tcp_rto_max_ms`.
const MAX_TIMEOUT_MS: RangeInclusive<u64> = 1_000..=120_000;

/// The kernel's name of an algorithm's congestion control.
#[must_use]
pub const fn control(algorithm: &Algorithm) -> &'static str {
    match algorithm {
        Algorithm::Tahoe | Algorithm::Reno | Algorithm::NewReno | Algorithm::Sack => "reno",
        // The name of the kernel's own algorithm, or of a module.
        other => other.entry().name,
    }
}

/// A socket option that cannot be set.
#[derive(Debug, thiserror::Error)]
pub enum OptionError {
    /// The kernel has no such congestion control, or forbids it.
    #[error(
        "the congestion control `{name}` is not available: {source}; load it with `modprobe \
         tcp_{name}`, or allow it in /proc/sys/net/ipv4/tcp_allowed_congestion_control"
    )]
    Congestion {
        /// The kernel's name of it.
        name: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
    /// The kernel does not support segments of this size.
    #[error("the kernel has no TCP segments of {0}: they have between 88 and 32755 bytes")]
    Segment(Bytes),
    /// Another option was refused.
    #[error("cannot set {what}: {source}")]
    Other {
        /// The name of the option.
        what: &'static str,
        /// The error of the system call.
        source: io::Error,
    },
}

/// Whether the kernel supports segments with this payload.
#[must_use]
pub fn has_segments(segment: Bytes) -> bool {
    SEGMENTS.contains(&segment.get())
}

/// Sets the options of an unconnected socket by `params`. Sockets that a listener accepts inherit them.
///
/// # Errors
/// See [`OptionError`].
pub fn configure_socket(socket: BorrowedFd<'_>, params: &TcpParams) -> Result<(), OptionError> {
    let name = control(&params.algorithm);
    set_congestion(socket, name).map_err(|source| OptionError::Congestion { name, source })?;
    if !has_segments(params.segment) {
        return Err(OptionError::Segment(params.segment));
    }
    let other = |what| move |source: io::Error| OptionError::Other { what, source };
    // In range, so it fits. The kernel's value includes the options of every segment, as RFC 6691 says.
    let options = if has_timestamps(params) { WITH_TIMESTAMPS - BARE } else { Bytes::ZERO };
    setsockopt(&socket, sockopt::TcpMaxSeg, &((params.segment + options).get() as u32))
        .map_err(|error| other("TCP_MAXSEG")(error.into()))?;
    setsockopt(&socket, sockopt::TcpNoDelay, &!params.nagle)
        .map_err(|error| other("TCP_NODELAY")(error.into()))?;
    clamp_window(socket, params).map_err(other("TCP_WINDOW_CLAMP"))?;
    let unsent = params.segment.get() * UNSENT_SEGMENTS;
    set_not_sent_low_water(socket, unsent as u32).map_err(other("TCP_NOTSENT_LOWAT"))
}

/// Limits the window that a socket advertises to that of `params`.
///
/// The kernel may move the clamp when it learns how much room segments take; so call this again when the
/// socket has received some.
///
/// # Errors
/// The error of the system call.
pub fn clamp_window(socket: BorrowedFd<'_>, params: &TcpParams) -> io::Result<()> {
    set_window_clamp(socket, window(params))
}

/// The window to set in the kernel.
#[must_use]
pub fn window(params: &TcpParams) -> u32 {
    let scaled = if params.window_scale { params.window_bytes() } else { params.window_bytes().min(65_535) };
    // At most 2^30, see `TcpParams::check`.
    scaled.min(1 << 30) as u32
}

/// A setting of a namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The name, below `net/ipv4/`.
    pub name: &'static str,
    /// The text to write.
    pub value: String,
}

/// Flows of one host that need different settings of its namespace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "flows of one host differ in {parameter}, which the kernel has once for each host ({name}: {values:?}); let \
     them start and end at hosts of their own"
)]
pub struct Conflict {
    /// The parameter of the scenario.
    pub parameter: &'static str,
    /// The setting.
    pub name: &'static str,
    /// Two of the values.
    pub values: [String; 2],
}

/// The settings of a namespace whose flows, in and out, have these parameters.
///
/// # Errors
/// If the parameters conflict.
pub fn settings(flows: &[&TcpParams]) -> Result<Vec<Setting>, Conflict> {
    let mut all: Vec<Setting> = Vec::new();
    for params in flows {
        for (parameter, name, value) in asked(params) {
            match all.iter().find(|setting| setting.name == name) {
                Some(Setting { value: other, .. }) if *other != value => {
                    return Err(Conflict { parameter, name, values: [other.clone(), value] });
                }
                Some(_) => (),
                None => all.push(Setting { name, value }),
            }
        }
    }
    // A window of 2^30 needs no larger buffer: the values of `tcp_rmem` are ints.
    let largest = flows.iter().map(|params| u64::from(window(params))).max().unwrap_or(0);
    let buffer = (largest * ROOM).clamp(1 << 20, (1 << 31) - 1);
    let constant = |name, value: &str| Setting { name, value: value.to_owned() };
    all.extend([
        constant("tcp_rmem", &format!("4096 {buffer} {buffer}")),
        constant("tcp_wmem", &format!("4096 65536 {buffer}")),
        constant("tcp_moderate_rcvbuf", "0"),
        // Each run begins without metrics of an earlier connection.
        constant("tcp_no_metrics_save", "1"),
        // Written data leave at once unless Nagle's rule holds them back.
        constant("tcp_autocorking", "0"),
    ]);
    Ok(all)
}

/// The settings that these parameters need: parameter, setting, value.
fn asked(params: &TcpParams) -> Vec<(&'static str, &'static str, String)> {
    let flag = |on: bool| u8::from(on).to_string();
    let longest = millis(params.max_rto).clamp(*MAX_TIMEOUT_MS.start(), *MAX_TIMEOUT_MS.end());
    vec![
        ("header", "tcp_timestamps", flag(has_timestamps(params))),
        ("algorithm", "tcp_sack", flag(params.sack())),
        ("algorithm", "tcp_dsack", flag(params.sack())),
        ("ecn", "tcp_ecn", flag(params.ecn)),
        ("window_scale", "tcp_window_scaling", flag(params.window_scale)),
        ("idle", "tcp_slow_start_after_idle", flag(params.idle != Idle::Keep)),
        ("dupack_threshold", "tcp_reordering", params.dupack_threshold.to_string()),
        ("min_rto", "tcp_rto_min_us", (params.min_rto.as_nanos() / 1_000).clamp(1, 60_000_000).to_string()),
        ("max_rto", "tcp_rto_max_ms", longest.to_string()),
    ]
}

/// Writes settings in the namespace of the calling thread, except those that this kernel does not have.
///
/// # Errors
/// The system's error for a setting that it has.
pub fn configure_namespace(settings: &[Setting]) -> Result<(), SysctlError> {
    for Setting { name, value } in settings {
        match set_sysctl(&format!("net/ipv4/{name}"), value) {
            Err(SysctlError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => {}
            written => written?,
        }
    }
    Ok(())
}

fn millis(span: Span) -> u64 {
    span.as_nanos() / 1_000_000
}

fn has_timestamps(params: &TcpParams) -> bool {
    params.timestamps || params.header == WITH_TIMESTAMPS
}

/// A parameter that the kernel does not support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Name in the scenario.
    pub parameter: &'static str,
    /// The behaviour of the kernel.
    pub instead: &'static str,
}

/// The parameters that the kernel does not support with these values, in order. Parameters without any
/// counterpart in the kernel's TCP, for example how ns-2 truncates windows, appear once, as `algorithm`.
#[must_use]
pub fn unsupported(params: &TcpParams) -> Vec<Unsupported> {
    let rules = [
        (
            "algorithm",
            !params.sack() && params.algorithm.entry().recovery != LossRecovery::NewReno,
            "fast recovery goes on until all losses of the window are repaired, as in NewReno",
        ),
        (
            "sack_recovery",
            params.sack() && params.sack_recovery != SackRecovery::Rack,
            "losses are found by time (RACK-TLP, RFC 8985) and repaired with proportional rate reduction (RFC 6937)",
        ),
        (
            "header",
            params.header != BARE && params.header != WITH_TIMESTAMPS,
            "headers are 40 bytes in IPv4 and 60 in IPv6",
        ),
        ("ack", params.ack != params.header, "an acknowledgement has the header of a segment"),
        (
            "window",
            !params.window_scale && params.window_bytes() > 65_535,
            "without scaling the window is at most 65535 bytes",
        ),
        ("send_buffer", params.send_buffer.is_some(), "send buffers grow as far as net.ipv4.tcp_wmem allows"),
        (
            "initial_window",
            params.initial_window != InitialWindow::Packets(Packets::new(INITIAL_WINDOW)),
            "the window begins with 10 segments (RFC 6928)",
        ),
        (
            "initial_ssthresh",
            params.initial_ssthresh != InitialSsthresh::Unlimited,
            "slow start ends with a loss, or earlier where CUBIC's hybrid start says so",
        ),
        ("limited_transmit", !params.limited_transmit, "duplicate ACKs let new segments out (RFC 3042)"),
        (
            "delayed_ack",
            params.delayed_ack != Some(DELAYED_ACK) || params.quick_acks == 0,
            "ACKs wait for a second segment, at most 40 to 200 ms; at the start of a connection they do not",
        ),
        ("tick", params.tick > Span::ZERO, "round-trip times are measured in microseconds"),
        ("min_rto", params.min_rto < Span::from_millis(1), "timeouts are at least some milliseconds"),
        (
            "max_rto",
            !MAX_TIMEOUT_MS.contains(&millis(params.max_rto)),
            "the longest timeout is between 1 s and 120 s",
        ),
        ("initial_rto", params.initial_rto != Span::from_secs(1), "the first timeout is 1 s (RFC 6298)"),
        ("syn", !params.syn, "a connection opens with a handshake"),
        ("fin", !params.fin, "a connection closes with a FIN"),
        (
            "halving",
            params.halving != Halving::Window,
            "thresholds are a part of the window, not of what is outstanding (RFC 9438 section 4.6 leaves it open)",
        ),
        (
            "abc_limit",
            params.byte_counting && params.abc_limit.is_some(),
            "slow start opens the window by all that is acknowledged",
        ),
        (
            "hystart",
            params.algorithm == Algorithm::Cubic && !params.hystart,
            "slow start of CUBIC ends when delay grows (HyStart)",
        ),
        (
            "pacing",
            params.pacing && !params.algorithm.entry().paces(),
            "only BBR paces, unless the queue of the host is `fq`",
        ),
        ("exit", params.exit != RecoveryExit::Ssthresh, "the window is the threshold when recovery ends"),
        (
            "idle",
            matches!(params.idle, Idle::Timeout | Idle::Restart),
            "the window of an idle sender halves with each timeout, down to the initial window (RFC 2861)",
        ),
    ];
    let listed =
        |(parameter, differs, instead): (_, bool, _)| differs.then_some(Unsupported { parameter, instead });
    rules.into_iter().filter_map(listed).collect()
}

#[cfg(test)]
mod tests;
