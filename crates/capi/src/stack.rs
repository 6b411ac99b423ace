//! Transport stacks of the caller: what C gives, and the ends of connections that the simulator runs.

use std::ffi::{CStr, c_char, c_void};
use std::fmt::{self, Display};
use std::sync::{Arc, Mutex, PoisonError};

use apportion::Cancel;
use apportion_core::packet as core;
use apportion_core::stack as outside;
use apportion_core::stack::{Command, Counts, Datagram, Endpoint, Ends, Sizes};
use apportion_core::units::{Bytes, Span, Time};

use crate::packet::{Ecn, Protocol};

/// A transport stack of the caller that reads no clock and opens no socket (*sans-I/O*), for
/// `apportion_simulate`.
///
/// A connection has two ends, the source of the data and the sink, and both are of this stack. The functions
/// must return normally (no exception, no `longjmp`). Times are in nanoseconds since the start of the run and
/// never go back. A stack that reads a clock, or draws from an entropy source other than
/// `apportion_stack_end.seed`, makes runs that cannot be repeated.
///
/// After calls of `start`, `supply` and `finish`, and after each of `receive` or `on_timer`, the simulator
/// calls `transmit` until it returns 0, at most 1024 times, then `next_timer` and `progress`.
///
/// A value that is not allowed ends the run with a message. After that only `close` is called.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Stack {
    /// The name, which is the value of `transport` in the scenario. UTF-8.
    pub name: *const c_char,
    /// The first argument of `open`.
    pub context: *mut c_void,
    /// The largest packet on the wire in bytes, with the headers of IP and UDP: at most 65535.
    pub packet: u32,
    /// Bytes of the application in such a packet, for estimates and for units of results.
    pub payload: u32,
    /// A usual acknowledgement on the wire in bytes, for estimates.
    pub ack: u32,
    /// Memory of a connection in bytes, both ends together, for estimates.
    pub memory: u32,
    /// The protocol of its packets, `APPORTION_PROTOCOL_UDP` or `APPORTION_PROTOCOL_TCP`. With UDP a datagram
    /// is the payload of UDP, and the simulator adds 28 bytes of headers; with TCP it is a whole IPv4 packet.
    pub protocol: u8,
    /// Non-zero if the stack sets the ECN field.
    pub sets_ecn: u8,
    /// Non-zero if it counts `apportion_stack_progress.lost`. The columns of what it does not count are empty.
    pub counts_lost: u8,
    /// Non-zero if it counts `apportion_stack_progress.timeouts`.
    pub counts_timeouts: u8,
    /// Non-zero if it counts `apportion_stack_progress.reductions`.
    pub counts_reductions: u8,
    /// Creates an end of a connection, which is the first argument of the other functions; not null. `end`
    /// lives until the function returns.
    pub open: Option<unsafe extern "C" fn(context: *mut c_void, end: *const StackEnd) -> *mut c_void>,
    /// Destroys an end; called once. May be null.
    pub close: Option<unsafe extern "C" fn(endpoint: *mut c_void)>,
    /// The connection starts: both ends may send. May be null.
    pub start: Option<unsafe extern "C" fn(endpoint: *mut c_void, now: u64)>,
    /// The application of the source supplies this number of further bytes; `UINT64_MAX`: data without end.
    pub supply: Option<unsafe extern "C" fn(endpoint: *mut c_void, now: u64, bytes: u64)>,
    /// The application of the source supplies nothing more: the connection ends when everything has been
    /// acknowledged. May be null.
    pub finish: Option<unsafe extern "C" fn(endpoint: *mut c_void, now: u64)>,
    /// A datagram of the other end arrives, with this ECN field, an `apportion_ecn`. `bytes` live until the
    /// function returns.
    pub receive: Option<
        unsafe extern "C" fn(endpoint: *mut c_void, now: u64, ecn: u8, bytes: *const u8, length: usize),
    >,
    /// Writes the next datagram into `buffer` and returns its length; 0: there is none now. `capacity` is
    /// `packet` without the headers that the simulator adds. `ecn` is `APPORTION_ECN_NOT_ECT` unless the
    /// function writes another `apportion_ecn`.
    pub transmit: Option<
        unsafe extern "C" fn(
            endpoint: *mut c_void,
            now: u64,
            buffer: *mut u8,
            capacity: usize,
            ecn: *mut u8,
        ) -> usize,
    >,
    /// Returns the time of the next call of `on_timer`; `UINT64_MAX`: none. A time that has passed counts as
    /// 1 µs from now.
    pub next_timer: Option<unsafe extern "C" fn(endpoint: *mut c_void) -> u64>,
    /// The time of the timer has come.
    pub on_timer: Option<unsafe extern "C" fn(endpoint: *mut c_void, now: u64)>,
    /// Writes the totals so far into `progress`, whose fields are zero before.
    pub progress: Option<unsafe extern "C" fn(endpoint: *mut c_void, progress: *mut StackProgress)>,
}

/// An end of a connection.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StackEnd {
    /// Seed of this end's random decisions.
    pub seed: u64,
    /// The number of the connection in its run. Both ends have the same.
    pub number: u32,
    /// Whether it is the source of the data.
    pub is_source: bool,
}

/// The totals of an end since the start of the connection, which never fall and are at most 2^53.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct StackProgress {
    /// Bytes of the application that arrived in order at this end.
    pub delivered: u64,
    /// Packets with data that this end presumed lost.
    pub lost: u64,
    /// Expiries of the retransmission timer; in QUIC, of the probe timer.
    pub timeouts: u64,
    /// Signals of congestion, loss or mark, to which the window responded.
    pub reductions: u64,
    /// The congestion window in bytes; 0 if unknown. It may fall.
    pub window: u64,
    /// The smoothed round-trip time in nanoseconds; 0 if unknown. It may fall.
    pub srtt: u64,
    /// Non-zero if the source has ended: its supply is finished and acknowledged. The simulator then closes
    /// both ends.
    pub is_done: u8,
    /// Why the connection has failed: aborted, reset, timed out or closed for an error, by this end or the other
    /// one, before the supply was acknowledged. Null: it has not. UTF-8; it lives until the next call for this
    /// end. The results name the flow with the first reason of a connection.
    pub failure: *const c_char,
}

impl Default for StackProgress {
    fn default() -> Self {
        Self {
            delivered: 0,
            lost: 0,
            timeouts: 0,
            reductions: 0,
            window: 0,
            srtt: 0,
            is_done: 0,
            failure: std::ptr::null(),
        }
    }
}

/// Headers of IPv4 and UDP, in bytes.
const HEADERS: usize = 28;
/// The largest packet of IPv4 (RFC 791 section 3.1), in bytes.
const MAX_PACKET: u32 = u16::MAX as u32;
/// The largest total: sums of thousands of them fit, and each is exact in JSON.
const MAX_TOTAL: u64 = 1 << 53;

/// The failure that the ends of a run share: the first one stops all of them.
#[derive(Debug, Default)]
pub(crate) struct Session {
    pub cancel: Cancel,
    failure: Mutex<Option<String>>,
}

impl Session {
    fn fail(&self, message: String) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(message);
        self.cancel.cancel();
    }

    /// The first failure, if any.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The functions of a [`Stack`] that are not null.
#[derive(Clone, Copy, Debug)]
struct Functions {
    open: unsafe extern "C" fn(*mut c_void, *const StackEnd) -> *mut c_void,
    close: Option<unsafe extern "C" fn(*mut c_void)>,
    start: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    supply: unsafe extern "C" fn(*mut c_void, u64, u64),
    finish: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    receive: unsafe extern "C" fn(*mut c_void, u64, u8, *const u8, usize),
    transmit: unsafe extern "C" fn(*mut c_void, u64, *mut u8, usize, *mut u8) -> usize,
    next_timer: unsafe extern "C" fn(*mut c_void) -> u64,
    on_timer: unsafe extern "C" fn(*mut c_void, u64),
    progress: unsafe extern "C" fn(*mut c_void, *mut StackProgress),
}

impl Functions {
    fn of(stack: &Stack) -> Result<Self, String> {
        fn given<T>(function: Option<T>, name: &str) -> Result<T, String> {
            function.ok_or_else(|| format!("its function {name} is null"))
        }
        Ok(Self {
            open: given(stack.open, "open")?,
            close: stack.close,
            start: stack.start,
            supply: given(stack.supply, "supply")?,
            finish: stack.finish,
            receive: given(stack.receive, "receive")?,
            transmit: given(stack.transmit, "transmit")?,
            next_timer: given(stack.next_timer, "next_timer")?,
            on_timer: given(stack.on_timer, "on_timer")?,
            progress: given(stack.progress, "progress")?,
        })
    }
}

/// A checked stack of a run.
#[derive(Debug)]
struct Checked {
    name: String,
    context: *mut c_void,
    functions: Functions,
    sizes: Sizes,
    counts: Counts,
    protocol: core::Protocol,
    sets_ecn: bool,
    session: Arc<Session>,
}

// SAFETY: nothing here looks behind `context`. It is for the caller's functions, which run on one thread unless
// the caller sets `jobs`, and with it promises that they may run on several.
unsafe impl Send for Checked {}
// SAFETY: as for `Send`.
unsafe impl Sync for Checked {}

/// A stack of C in the simulator.
#[derive(Clone, Debug)]
pub(crate) struct Host(Arc<Checked>);

impl Host {
    /// Checks a stack.
    ///
    /// # Errors
    /// The first mistake in it.
    pub fn new(name: &str, stack: &Stack, session: &Arc<Session>) -> Result<Self, String> {
        let protocol = match stack.protocol {
            code if code == Protocol::Udp as u8 => core::Protocol::Udp,
            code if code == Protocol::Tcp as u8 => core::Protocol::Tcp,
            code => return Err(format!("its protocol is {code}; set APPORTION_PROTOCOL_UDP or _TCP")),
        };
        let least = HEADERS as u32 + 1;
        let Stack { packet, payload, ack, memory, .. } = *stack;
        for (key, size, range) in [
            ("packet", packet, least..=MAX_PACKET),
            ("payload", payload, 1..=packet),
            ("ack", ack, 1..=MAX_PACKET),
        ] {
            if !range.contains(&size) {
                return Err(format!("its {key} is {size}; set {} to {} bytes", range.start(), range.end()));
            }
        }
        let [packet, payload, ack, memory] =
            [packet, payload, ack, memory].map(|size| Bytes::new(size.into()));
        Ok(Self(Arc::new(Checked {
            name: name.to_owned(),
            context: stack.context,
            functions: Functions::of(stack)?,
            sizes: Sizes { packet, payload, ack, memory: memory + packet + packet },
            counts: Counts {
                lost: stack.counts_lost != 0,
                timeouts: stack.counts_timeouts != 0,
                reductions: stack.counts_reductions != 0,
            },
            protocol,
            sets_ecn: stack.sets_ecn != 0,
            session: Arc::clone(session),
        })))
    }
}

impl outside::Stack for Host {
    fn sizes(&self) -> Sizes {
        self.0.sizes
    }
    fn counts(&self) -> Counts {
        self.0.counts
    }
    fn protocol(&self) -> core::Protocol {
        self.0.protocol
    }
    fn offers_ecn(&self) -> bool {
        self.0.sets_ecn
    }
    fn connect(&self, ends: &Ends) -> [Box<dyn Endpoint>; 2] {
        [true, false].map(|is_source| Box::new(End::new(&self.0, ends, is_source)) as Box<dyn Endpoint>)
    }
}

/// One end of a connection.
struct End {
    stack: Arc<Checked>,
    /// The pointer that `open` returned.
    object: *mut c_void,
    number: u32,
    is_source: bool,
    /// The time of the last call.
    now: Time,
    progress: outside::Progress,
    is_done: bool,
    /// The first reason for which the connection has failed.
    failure: Option<String>,
    /// Where `transmit` writes.
    buffer: Box<[u8]>,
}

// SAFETY: as for `Checked`: nothing here looks behind `object`.
unsafe impl Send for End {}

impl End {
    fn new(stack: &Arc<Checked>, ends: &Ends, is_source: bool) -> Self {
        let headers = if stack.protocol == core::Protocol::Udp { HEADERS } else { 0 };
        let mut end = Self {
            stack: Arc::clone(stack),
            object: std::ptr::null_mut(),
            number: ends.number,
            is_source,
            now: Time::ZERO,
            progress: outside::Progress::default(),
            is_done: false,
            failure: None,
            buffer: vec![0; stack.sizes.packet.get() as usize - headers].into(),
        };
        if !stack.session.cancel.is_cancelled() {
            let which =
                StackEnd { seed: ends.seeds[usize::from(!is_source)], number: ends.number, is_source };
            // SAFETY: the caller of `apportion_simulate` gave a function of this type; the end lives until it
            // returns.
            end.object = unsafe { (stack.functions.open)(stack.context, &which) };
            if end.object.is_null() {
                end.fail("open returned null");
            }
        }
        end
    }

    /// The functions and the end to call them with, unless the run has failed.
    fn live(&self) -> Option<(Functions, *mut c_void)> {
        let is_live = !self.object.is_null() && !self.stack.session.cancel.is_cancelled();
        is_live.then_some((self.stack.functions, self.object))
    }

    fn fail(&self, what: impl Display) {
        let end = if self.is_source { "source" } else { "sink" };
        let (name, number, now) = (&self.stack.name, self.number, self.now);
        let at = if now == Time::ZERO { String::new() } else { format!(" at {now}") };
        self.stack.session.fail(format!("transport `{name}`: {what} ({end} of connection {number}{at})"));
    }

    /// Reads the totals.
    fn refresh(&mut self, functions: Functions, object: *mut c_void) {
        let mut now = StackProgress::default();
        // SAFETY: as in `new`; `open` returned the object, and `now` lives until the function returns.
        unsafe { (functions.progress)(object, &mut now) };
        let before = self.progress;
        for (name, before, now) in [
            ("delivered", before.delivered, now.delivered),
            ("lost", before.lost, now.lost),
            ("timeouts", before.timeouts, now.timeouts),
            ("reductions", before.reductions, now.reductions),
        ] {
            if now < before {
                return self.fail(format_args!("progress.{name} fell from {before} to {now}"));
            }
            if now > MAX_TOTAL {
                return self.fail(format_args!("progress.{name} is {now}; it is at most 2^53"));
            }
        }
        self.progress = outside::Progress {
            delivered: now.delivered,
            lost: now.lost,
            timeouts: now.timeouts,
            reductions: now.reductions,
            window: now.window,
            srtt: (now.srtt != 0).then(|| Span::from_nanos(now.srtt)),
        };
        self.is_done = now.is_done != 0;
        if self.failure.is_none() && !now.failure.is_null() {
            // SAFETY: not null, and the caller of `apportion_simulate` promised a string that ends with a zero.
            let reason = unsafe { CStr::from_ptr(now.failure) };
            self.failure = Some(reason.to_string_lossy().into_owned());
        }
    }
}

impl Endpoint for End {
    fn command(&mut self, now: Time, command: Command) {
        self.now = now;
        let Some((functions, object)) = self.live() else { return };
        let now = now.as_nanos();
        // SAFETY: as in `refresh`.
        unsafe {
            match command {
                Command::Start => functions.start.map_or((), |start| start(object, now)),
                Command::Supply(bytes) => (functions.supply)(object, now, bytes),
                Command::SupplyUnlimited => (functions.supply)(object, now, u64::MAX),
                Command::Close => functions.finish.map_or((), |finish| finish(object, now)),
            }
        }
    }

    fn receive(&mut self, now: Time, ecn: core::Ecn, payload: Vec<u8>) {
        self.now = now;
        let Some((functions, object)) = self.live() else { return };
        let ecn = match ecn {
            core::Ecn::NotEct => Ecn::NotEct,
            core::Ecn::Ect1 => Ecn::Ect1,
            core::Ecn::Ect0 => Ecn::Ect0,
            core::Ecn::Ce => Ecn::Ce,
        };
        // SAFETY: as in `refresh`; the bytes live until the function returns.
        unsafe { (functions.receive)(object, now.as_nanos(), ecn as u8, payload.as_ptr(), payload.len()) };
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Datagram> {
        self.now = now;
        let (functions, object) = self.live()?;
        let (capacity, mut ecn) = (self.buffer.len(), Ecn::NotEct as u8);
        // SAFETY: as in `refresh`; the buffer has `capacity` bytes, all initialised.
        let length = unsafe {
            (functions.transmit)(object, now.as_nanos(), self.buffer.as_mut_ptr(), capacity, &mut ecn)
        };
        if length == 0 {
            return None;
        }
        let Some(bytes) = self.buffer.get(..length) else {
            self.fail(format_args!("transmit returned {length}; its buffer has {capacity} bytes"));
            return None;
        };
        let ecn = match ecn {
            0 => core::Ecn::NotEct,
            1 => core::Ecn::Ect1,
            2 => core::Ecn::Ect0,
            3 => core::Ecn::Ce,
            code => {
                self.fail(format_args!("transmit wrote ECN {code}; an apportion_ecn is at most 3"));
                return None;
            }
        };
        payload.extend_from_slice(bytes);
        let headers = self.stack.sizes.packet.get() as usize - capacity;
        // Cannot fail: the length is at most `packet`, which is at most 65,535.
        Some(Datagram { size: (length + headers) as u16, ecn })
    }

    fn next_timer(&mut self) -> Option<Time> {
        let (functions, object) = self.live()?;
        // SAFETY: as in `refresh`.
        let at = unsafe { (functions.next_timer)(object) };
        self.refresh(functions, object);
        (at != u64::MAX).then(|| Time::from_nanos(at))
    }

    fn on_timer(&mut self, now: Time) {
        self.now = now;
        let Some((functions, object)) = self.live() else { return };
        // SAFETY: as in `refresh`.
        unsafe { (functions.on_timer)(object, now.as_nanos()) };
    }

    fn progress(&self) -> outside::Progress {
        self.progress
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(close) = self.stack.functions.close.filter(|_| !self.object.is_null()) {
            // SAFETY: as in `refresh`; no other function is called for this object after that.
            unsafe { close(self.object) };
        }
    }
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").field("progress", &self.progress).finish_non_exhaustive()
    }
}
