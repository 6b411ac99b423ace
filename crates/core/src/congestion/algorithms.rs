//! The congestion controls that scenarios can name: one row for each.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::{CongestionControl, Connection};
use crate::param::{Kind, Setting, Value};

/// The use that a control makes of marks (explicit congestion notification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// One mark per window, if the connection has ECN: the receiver echoes it until the sender answers (RFC
    /// 3168).
    One,
    /// Every mark: the receiver echoes each one. The connection always has ECN, and every packet is
    /// ECN-capable, including SYNs (RFC 8257 section 3.6), ACKs and retransmissions (section 4.1): "Linux
    /// DCTCP asserts ECT on all packets, including SYN" (Linux commit 843c2fdf7a12). A queue that marks above
    /// its threshold drops packets that are not capable.
    Echoed,
    /// Every mark: the receiver counts them (RFC 9768), and packets are ECT(1) (RFC 9331). The connection
    /// always has ECN.
    Counted,
}

/// How the classical recoveries, those of TCP without RACK, repair a loss. RACK and QUIC have their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// Fast retransmit, then slow start from one segment (RFC 5681 section 3.1 without fast recovery). RACK
    /// does not apply.
    Tahoe,
    /// Fast recovery, which ends with the first new ACK (RFC 5681 section 3.2).
    Reno,
    /// Fast recovery, which ends when everything sent before it is acknowledged (RFC 6582).
    NewReno,
    /// The recovery of [`NewReno`](Self::NewReno) with selective acknowledgments, which TCP uses with none of
    /// the others (RFC 2018, 6675).
    Sack,
}

/// How segments within the window leave. The classical recoveries send all of them at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// At once; as `AtRate` if the connection is set to pace.
    None,
    /// At the control's pacing rate. Without one: twice the window per round trip in slow start and 1.2 times
    /// after it, Linux's defaults. Segments leave in small groups, so that a fast connection costs few
    /// events.
    AtRate,
    /// Evenly: one window per round trip after slow start, in groups of at most 250 µs at that rate, like
    /// Linux's Prague.
    Evenly,
}

/// The static description of a congestion control: its name and its requirements on the transport.
#[derive(Debug, PartialEq, Eq)]
pub struct ControlEntry {
    /// The name in scenario files.
    pub name: &'static str,
    /// A summary in one sentence.
    pub summary: &'static str,
    /// The paper or standard.
    pub reference: &'static str,
    /// The loss recovery in TCP without RACK.
    pub recovery: LossRecovery,
    /// The pacing of segments.
    pub pacing: Pacing,
    /// Whether it needs RACK, whose record of segments it measures by.
    pub needs_rack: bool,
    /// Whether it needs the one-way delay, which TCP's receiver then reports; the classical recoveries do not
    /// pass it on.
    pub one_way_delay: bool,
    /// Whether QUIC has it too.
    pub quic: bool,
    /// The use of marks. The classical recoveries report one mark per window, however the receiver reports
    /// them.
    pub marks: Marks,
}

impl ControlEntry {
    /// A control without requirements, for TCP only, that repairs its losses by [selective
    /// acknowledgments](LossRecovery::Sack).
    #[must_use]
    pub const fn new(name: &'static str, summary: &'static str, reference: &'static str) -> Self {
        Self {
            name,
            summary,
            reference,
            recovery: LossRecovery::Sack,
            pacing: Pacing::None,
            needs_rack: false,
            one_way_delay: false,
            quic: false,
            marks: Marks::One,
        }
    }

    /// Whether segments are paced even if the connection is not set to pace.
    #[must_use]
    #[inline]
    pub fn paces(&self) -> bool {
        self.pacing != Pacing::None
    }
}

/// Builds the control of a connection.
type Build = dyn Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync;

/// A congestion control that a program has [registered](crate::system::Catalog::register_control). Two are
/// equal if they are one registration.
#[derive(Clone)]
pub struct Registered {
    entry: &'static ControlEntry,
    build: Arc<Build>,
}

impl Registered {
    pub(crate) fn new<C: CongestionControl + 'static>(
        entry: &'static ControlEntry,
        build: impl Fn(&Connection) -> C + Send + Sync + 'static,
    ) -> Self {
        Self { entry, build: Arc::new(move |connection| Box::new(build(connection))) }
    }

    /// The description of the control.
    #[must_use]
    pub const fn entry(&self) -> &'static ControlEntry {
        self.entry
    }

    /// The control of a new connection.
    #[must_use]
    pub fn build(&self, connection: &Connection) -> Box<dyn CongestionControl> {
        (self.build)(connection)
    }
}

impl PartialEq for Registered {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.build, &other.build)
    }
}

impl fmt::Debug for Registered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registered").field(&self.entry.name).finish()
    }
}

/// Generates the type of all controls and their table, from one row for each.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $summary:literal, $reference:literal $(, $key:ident: $value:expr)*;)*) => {
        /// A sender's congestion control.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Algorithm {
            $($(#[$doc])* $variant,)*
            /// A control that a program has registered.
            Registered(Registered),
        }

        /// The congestion controls of this project, in the order of [`Algorithm`].
        pub static ALGORITHMS: &[ControlEntry] =
            &[$(ControlEntry { $($key: $value,)* ..ControlEntry::new($name, $summary, $reference) }),*];

        impl Setting for Algorithm {
            const KIND: Kind = Kind::Choice(&[$($name),*]);
            fn of(value: Option<Value>) -> Option<Self> {
                if let Some(Value::Choice(name)) = value { Self::named(name) } else { None }
            }
        }

        impl Algorithm {
            /// The control of this project with this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The description of the control.
            #[must_use]
            #[inline]
            pub const fn entry(&self) -> &'static ControlEntry {
                match self {
                    $(Self::$variant => {
                        static ENTRY: ControlEntry = ControlEntry { $($key: $value,)* ..ControlEntry::new($name, $summary, $reference) };
                        &ENTRY
                    })*
                    Self::Registered(registered) => registered.entry(),
                }
            }
        }
    };
}

algorithms! {
    /// Fast retransmit, then slow start.
    Tahoe = "tahoe", "Fast retransmit after duplicate ACKs, then slow start from one segment.",
        "Jacobson, Congestion avoidance and control (SIGCOMM 1988); RFC 5681 section 3.1 without fast recovery",
        recovery: LossRecovery::Tahoe;
    /// Fast recovery that ends with the first new ACK.
    Reno = "reno", "Fast retransmit and fast recovery, which ends with the first new ACK: one loss a round trip.",
        "RFC 5681 section 3.2", recovery: LossRecovery::Reno;
    /// Fast recovery that ends when everything sent before it is acknowledged (RFC 6582).
    NewReno = "newreno", "Reno whose fast recovery lasts until all data sent before the loss is acknowledged.",
        "RFC 6582", recovery: LossRecovery::NewReno, quic: true;
    /// Reno with selective acknowledgments.
    Sack = "sack", "Reno with selective acknowledgments: many losses are repaired in one round trip.",
        "RFC 2018, 6675 (`sack_recovery` selects RFC 6675 or ns-2's Sack1)";
    /// CUBIC growth (RFC 9438) over selective acknowledgments.
    Cubic = "cubic", "The window grows as a cubic function of the time since the last loss, over selective acknowledgments.",
        "RFC 9438", quic: true;
    /// Paces by a model of the path (version 1).
    Bbr = "bbr", "Paces by the bottleneck bandwidth and round-trip time that it measures, not by losses.",
        "Cardwell et al., BBR: congestion-based congestion control (ACM Queue 14(5), 2016); draft-cardwell-iccrg-bbr-congestion-control-00",
        pacing: Pacing::AtRate, needs_rack: true, quic: true;
    /// Paces by a model of the path that heeds losses (version 3).
    Bbr3 = "bbr3", "BBR that bounds inflight data where losses exceed 2 %, and leaves headroom between its probes.",
        "draft-ietf-ccwg-bbr-05", pacing: Pacing::AtRate, needs_rack: true, quic: true;
    /// Cuts in proportion to the marks of a window (RFC 8257).
    Dctcp = "dctcp", "Cuts the window in proportion to the share of marked bytes; for queues with a low marking threshold.",
        "RFC 8257; Alizadeh et al., Data center TCP (SIGCOMM 2010)", needs_rack: true, marks: Marks::Echoed;
    /// Keeps a few packets of its own in the queue (Brakmo and Peterson 1995).
    Vegas = "vegas",
        "Keeps 2 to 4 of its packets in the queue, inferred from the round-trip time; halves its window at a loss.",
        "Brakmo and Peterson, TCP Vegas: end to end congestion avoidance on a global Internet (IEEE JSAC 13(8), 1995)",
        needs_rack: true;
    /// Keeps the queueing delay at a target (RFC 6817).
    Ledbat = "ledbat",
        "Background transport: its window follows the one-way delay, up to 100 ms of queueing; yields to others.",
        "RFC 6817", needs_rack: true, one_way_delay: true;
    /// DCTCP for the Internet: ECT(1), paced, whatever the round trip (draft-briscoe-iccrg-prague-congestion-control).
    Prague = "prague",
        "DCTCP for the Internet: paced ECT(1) packets for queues such as `dualpi2`, and rates that short round trips do not raise.",
        "draft-briscoe-iccrg-prague-congestion-control; RFC 9331; RFC 9768",
        pacing: Pacing::Evenly, needs_rack: true, marks: Marks::Counted;
}

impl Algorithm {
    /// Whether each mark counts, echoed or counted by the receiver, rather than one per window.
    #[must_use]
    #[inline]
    pub fn counts_marks(&self) -> bool {
        self.entry().marks != Marks::One
    }

    /// Whether every packet is ECN-capable, as with [`Marks::Echoed`].
    #[must_use]
    #[inline]
    pub fn is_wholly_capable(&self) -> bool {
        self.entry().marks == Marks::Echoed
    }

    /// Whether packets are L4S packets, whose marks are counted, as with [`Marks::Counted`].
    #[must_use]
    #[inline]
    pub fn is_l4s(&self) -> bool {
        self.entry().marks == Marks::Counted
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().name)
    }
}
