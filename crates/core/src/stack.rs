//! Transport stacks from outside: the contract between a stack and the host that runs it.
//!
//! A [`Stack`] makes connections. A connection has two [`Endpoint`]s: the source, which has the data, and the
//! sink. Both are of one stack, and exchange datagrams of real bytes through the network of a scenario. Such
//! stacks are called sans-I/O: the host passes them what arrives and the present time, asks what they send and
//! when their next timer expires, and owns clock and network.
//!
//! # Rules
//! - `now` never goes back. A stack that reads a clock, or draws from an entropy source other than
//!   [`Ends::seeds`], makes runs that cannot be repeated.
//! - After calls of [`command`](Endpoint::command), and after each of [`receive`](Endpoint::receive) or
//!   [`on_timer`](Endpoint::on_timer), the host calls [`transmit`](Endpoint::transmit) until it returns none,
//!   at most [`MAX_BURST`] times, then [`next_timer`](Endpoint::next_timer).
//! - A timer that is due, or earlier, expires [`TICK`] later, and so does what exceeds the burst: an end that
//!   asks for the present time again and again delays its run, but does not stop it.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use crate::packet::{Ecn, Protocol};
use crate::param::{Args, Entry, EntryArgs, ParamError};
use crate::units::{Bytes, Span, Time};

/// The maximum number of datagrams that an end sends in one call.
pub const MAX_BURST: usize = 1_024;
/// The minimum time from a call to the next timer.
pub const TICK: Span = Span::from_micros(1);

/// A request of the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Open the connection. Both ends get it, and may send.
    Start,
    /// Supply this number of further bytes.
    Supply(u64),
    /// Supply data without end.
    SupplyUnlimited,
    /// End the supply: the connection ends when everything has been acknowledged.
    Close,
}

/// The fields of a datagram beside its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Bytes on the wire, with the headers of IP and, for QUIC, UDP; 0 counts as 1.
    pub size: u16,
    /// The ECN field.
    pub ecn: Ecn,
}

/// The totals of an end since the start of the connection, which never fall. A stack that does not know one
/// leaves it 0 and [says so](Stack::counts).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the application that arrived in order at this end.
    pub delivered: u64,
    /// Packets with data that this end presumed lost.
    pub lost: u64,
    /// Expiries of the retransmission timer; in QUIC, of the probe timer.
    pub timeouts: u64,
    /// Signals of congestion, loss or mark, to which the window responded.
    pub reductions: u64,
    /// The congestion window in bytes; zero if unknown.
    pub window: u64,
    /// The smoothed round-trip time; none if unknown.
    pub srtt: Option<Span>,
}

/// One end of a connection.
pub trait Endpoint: fmt::Debug + Send {
    /// The application requests something. A sink gets [`Command::Start`] only.
    fn command(&mut self, now: Time, command: Command);

    /// A datagram of the other end arrives, with this ECN field.
    fn receive(&mut self, now: Time, ecn: Ecn, payload: Vec<u8>);

    /// The next datagram to send; its bytes are appended to `payload`, which is empty.
    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Datagram>;

    /// The time of the next call of [`on_timer`](Self::on_timer).
    fn next_timer(&mut self) -> Option<Time>;

    /// The time of the timer has come.
    fn on_timer(&mut self, now: Time);

    /// The totals so far.
    fn progress(&self) -> Progress;

    /// The bytes of the application that arrived in order at this end, which the host of some sources reads
    /// after each packet. Default: [`Progress::delivered`].
    fn delivered(&self) -> u64 {
        self.progress().delivered
    }

    /// Whether the source has ended: its supply is closed and acknowledged. The host then forgets both ends.
    fn is_done(&self) -> bool;

    /// Why the connection has failed, if it has: aborted, reset, timed out or closed for an error, by this end or
    /// the other one, with data that were not acknowledged. The host records the first reason of a connection,
    /// and goes on calling. Default: none.
    fn failure(&self) -> Option<&str> {
        None
    }
}

/// A connection that a stack makes.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// The number of the connection in the run.
    pub number: u32,
    /// Seeds of the source and the sink.
    pub seeds: [u64; 2],
}

/// Sizes, for estimates before a run and for units of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// A full packet on the wire.
    pub packet: Bytes,
    /// Bytes of the application in it.
    pub payload: Bytes,
    /// A usual acknowledgement on the wire.
    pub ack: Bytes,
    /// Memory of a connection, both ends together.
    pub memory: Bytes,
}

/// The totals of [`Progress`] that a stack knows. The columns of others stay empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Whether it knows [`Progress::lost`].
    pub lost: bool,
    /// Whether it knows [`Progress::timeouts`].
    pub timeouts: bool,
    /// Whether it knows [`Progress::reductions`].
    pub reductions: bool,
}

/// A stack with its parameters.
pub trait Stack: fmt::Debug + Send + Sync {
    /// The sizes of its packets.
    fn sizes(&self) -> Sizes;

    /// The totals that it knows. Default: all.
    fn counts(&self) -> Counts {
        Counts { lost: true, timeouts: true, reductions: true }
    }

    /// The protocol of its packets, as queues see it. With UDP, the default, the bytes of a datagram are its
    /// payload; with TCP a whole IPv4 packet.
    fn protocol(&self) -> Protocol {
        Protocol::Udp
    }

    /// Whether it sets the ECN field.
    fn offers_ecn(&self) -> bool;

    /// The source and the sink of a new connection.
    fn connect(&self, ends: &Ends) -> [Box<dyn Endpoint>; 2];
}

type Read = dyn Fn(&EntryArgs<'_>) -> Result<Arc<dyn Stack>, ParamError> + Send + Sync;

/// A registered stack: its entry, and the function that reads its parameters.
#[derive(Clone)]
pub(crate) struct Registration {
    pub entry: &'static Entry,
    read: Arc<Read>,
}

impl Registration {
    pub fn new<S: Stack + 'static>(
        entry: &'static Entry,
        read: impl Fn(&EntryArgs<'_>) -> Result<S, ParamError> + Send + Sync + 'static,
    ) -> Self {
        let read = move |args: &EntryArgs<'_>| Ok(Arc::new(read(args)?) as Arc<dyn Stack>);
        Self { entry, read: Arc::new(read) }
    }

    /// Reads and checks the parameters.
    pub fn read(&self, args: &Args) -> Result<StackParams, ParamError> {
        let stack = (self.read)(&args.of(self.entry))?;
        Ok(StackParams { entry: self.entry, args: args.clone(), stack })
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.entry.name).finish()
    }
}

/// A registered stack with checked parameters. Two are equal if the entry and all values are.
#[derive(Clone, Debug)]
pub struct StackParams {
    entry: &'static Entry,
    args: Args,
    stack: Arc<dyn Stack>,
}

impl StackParams {
    /// The entry of the stack.
    #[must_use]
    pub const fn entry(&self) -> &'static Entry {
        self.entry
    }

    /// The stack.
    #[must_use]
    pub fn stack(&self) -> &dyn Stack {
        &*self.stack
    }
}

impl PartialEq for StackParams {
    fn eq(&self, other: &Self) -> bool {
        self.entry.name == other.entry.name && self.args.of(self.entry) == other.args.of(other.entry)
    }
}

/// The error for a stack that is not registered, with those that are.
pub(crate) fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> ParamError {
    let known: Vec<_> = known.collect();
    let known = match known.is_empty() {
        true => "this program has none".to_owned(),
        false => format!("known: {}", known.join(", ")),
    };
    ParamError::new("kind", format!("`{name}` is not a transport stack here ({known})"))
}
