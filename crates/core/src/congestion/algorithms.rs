//! The congestion controls that scenarios can name: one row each.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::{CongestionControl, Connection};
use crate::param::{Kind, Setting, Value};

/// What a control makes of marks (explicit congestion notification).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// One in a window, if the connection has ECN: the receiver echoes it until the sender answers (RFC 3168).
    One,
    /// Each: the receiver echoes them one by one. The connection always has ECN, and every packet is capable of it, SYNs (RFC 8257 section
    /// 3.6), ACKs and what is sent again (section 4.1) too: "Linux DCTCP asserts ECT on all packets, including SYN" (Linux commit
    /// 843c2fdf7a12). A queue that marks others above its threshold drops what is not.
    Echoed,
    /// Each: the receiver counts them (RFC 9768), and packets are ECT(1) (RFC 9331). The connection always has ECN.
    Counted,
}

/// How the classical recoveries, those of TCP without RACK, repair a loss. RACK and QUIC have a repair of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossRecovery {
    /// Fast retransmit, then slow start from one segment (RFC 5681 section 3.1 without fast recovery). It has nothing for RACK to guide.
    Tahoe,
    /// Fast recovery, which ends with the first new ACK (RFC 5681 section 3.2).
    Reno,
    /// Fast recovery, which ends when everything sent before it is acknowledged (RFC 6582).
    NewReno,
    /// The same by selective acknowledgments, which TCP has with no other of these (RFC 2018, 6675).
    Sack,
}

/// How segments leave, as far as the window allows them. The classical recoveries send all of that at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// At once, unless the connection is set to pace, which is then as `AtRate`.
    None,
    /// At the rate that it names, or else twice the window in a round trip in slow start and 1.2 times after it, as Linux's defaults are;
    /// some at a time, so that a fast connection costs few events.
    AtRate,
    /// As evenly as it goes: one window in a round trip after slow start, and at a time no more than 250 µs at that rate, as Linux's Prague.
    Evenly,
}

/// A congestion control as data: what it is called, and what it asks of the transport.
#[derive(Debug, PartialEq, Eq)]
pub struct ControlEntry {
    /// The name scenario files use.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// The paper or standard.
    pub reference: &'static str,
    /// How it repairs losses where TCP is without RACK.
    pub recovery: LossRecovery,
    /// How segments leave.
    pub pacing: Pacing,
    /// It is over RACK only, whose record of segments it measures by.
    pub needs_rack: bool,
    /// It needs the delay of one way, which TCP's receiver then says, and the classical recoveries do not pass on.
    pub one_way_delay: bool,
    /// QUIC has it too.
    pub quic: bool,
    /// What it makes of marks. The classical recoveries tell of one in a window, however the receiver reports them.
    pub marks: Marks,
}

impl ControlEntry {
    /// One that asks for nothing and is for TCP alone, which repairs its losses by [selective acknowledgments](LossRecovery::Sack).
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

    /// Whether segments leave at a rate though the connection is not set to pace.
    #[must_use]
    #[inline]
    pub fn paces(&self) -> bool {
        self.pacing != Pacing::None
    }
}

/// What makes the control of a connection.
type Build = dyn Fn(&Connection) -> Box<dyn CongestionControl> + Send + Sync;

/// A congestion control that a program has [registered](crate::system::Catalog::register_control). Equal if it is the same registration.
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

    /// What it is.
    #[must_use]
    pub const fn entry(&self) -> &'static ControlEntry {
        self.entry
    }

    /// The control of a connection that begins.
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

/// The type of all controls and their table, from one row each.
macro_rules! algorithms {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $summary:literal, $reference:literal $(, $key:ident: $value:expr)*;)*) => {
        /// A sender's congestion control.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Algorithm {
            $($(#[$doc])* $variant,)*
            /// One that a program has registered.
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
            /// The one of this project with this name.
            #[must_use]
            pub fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// What it is.
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
    NewReno = "newreno", "Reno whose fast recovery goes on until everything sent before the loss is acknowledged.",
        "RFC 6582", recovery: LossRecovery::NewReno, quic: true;
    /// Reno with selective acknowledgments.
    Sack = "sack", "Reno with selective acknowledgments: many losses are repaired in one round trip.",
        "RFC 2018, 6675 (`sack_recovery` selects RFC 6675 or ns-2's Sack1)";
    /// CUBIC growth (RFC 9438) over selective acknowledgments.
    Cubic = "cubic", "The window grows as a cubic function of the time since the last loss, over selective acknowledgments.",
        "RFC 9438", quic: true;
    /// Paces by a model of the path (version 1).
    Bbr = "bbr", "Paces by the bottleneck's rate and the round-trip time that it measures, whatever is lost.",
        "Cardwell et al., BBR: congestion-based congestion control (ACM Queue 14(5), 2016); draft-cardwell-iccrg-bbr-congestion-control-00",
        pacing: Pacing::AtRate, needs_rack: true, quic: true;
    /// Paces by a model of the path that heeds losses (version 3).
    Bbr3 = "bbr3", "BBR that keeps in the network what it loses less than 2 % of, and leaves room for others between its probes.",
        "draft-ietf-ccwg-bbr-05", pacing: Pacing::AtRate, needs_rack: true, quic: true;
    /// Cuts in proportion to the marks of a window (RFC 8257).
    Dctcp = "dctcp", "Cuts the window in proportion to the share of bytes that were marked; for queues that mark from a low threshold on.",
        "RFC 8257; Alizadeh et al., Data center TCP (SIGCOMM 2010)", needs_rack: true, marks: Marks::Echoed;
    /// Keeps a few packets of its own in the queue (Brakmo and Peterson 1995).
    Vegas = "vegas",
        "Keeps 2 to 4 packets of its own in the queue, which it infers from the round-trip time; halves its window for a loss.",
        "Brakmo and Peterson, TCP Vegas: end to end congestion avoidance on a global Internet (IEEE JSAC 13(8), 1995)",
        needs_rack: true;
    /// Keeps the queueing delay at a target (RFC 6817).
    Ledbat = "ledbat",
        "Background traffic: the window follows the one-way delay, so that alone it queues for 100 ms and yields to others.",
        "RFC 6817", needs_rack: true, one_way_delay: true;
    /// DCTCP for the Internet: ECT(1), paced, whatever the round trip (draft-briscoe-iccrg-prague-congestion-control).
    Prague = "prague",
        "DCTCP for the Internet: paced ECT(1) packets for queues such as `dualpi2`, and rates that short round trips do not raise.",
        "draft-briscoe-iccrg-prague-congestion-control; RFC 9331; RFC 9768",
        pacing: Pacing::Evenly, needs_rack: true, marks: Marks::Counted;
}

impl Algorithm {
    /// Whether each mark counts, so that the receiver echoes it by itself or counts it, rather than that there is one in a window.
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

    /// Whether packets are those of L4S, whose marks are counted, as with [`Marks::Counted`].
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
