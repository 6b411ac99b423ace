//! Creation, enqueue, dequeue, wake-ups, statistics, destruction.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use apportion_core::packet::{Customers, FlowId};
use apportion_core::queue::{self as core, Queue as _, Sink};
use apportion_core::system::{LinkContext, LinkQueue};
use apportion_core::units::{Rate, Time, Weight};

use crate::packet::{Checked, Packet};
use crate::status::Status;

/// A queue discipline in front of one link.
#[derive(Debug)]
pub struct Queue {
    state: Cell<State>,
    inner: UnsafeCell<Inner>,
}

/// Whether calls may enter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// A call is under way.
    Busy,
    Panicked,
}

/// What a call works on.
#[derive(Debug)]
pub(crate) struct Inner {
    pub discipline: LinkQueue<Checked>,
    pub reports: Reports,
    /// What the caller's clock showed at time zero of the discipline.
    start: u64,
    latest: Time,
}

/// A queue may move between threads.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<LinkQueue<Checked>>();
};

/// What a queue is and where it stands. All zero but `queue` and `link_rate` is a good start.
#[derive(Debug)]
#[repr(C)]
pub struct Config {
    /// The discipline, as a scenario has it for the queue of a link: a name such as `fq_codel`, or a table
    /// such as `{ kind = "drr", limit = "110p" }`. UTF-8.
    pub queue: *const c_char,
    /// The rate of the link behind it, in bits per second; above zero.
    pub link_rate: u64,
    /// Seed of the discipline's random decisions.
    pub seed: u64,
    /// Name of the discipline's random stream: queues with one seed and different names decide independently.
    /// UTF-8. Null: `queue`. The simulator calls that of link `l` `link.l.queue`.
    pub name: *const c_char,
    /// What the caller's clock shows now, in nanoseconds. Disciplines that act by the clock count from here.
    pub start: u64,
    /// The weights of customers 1, 2 and so on, for disciplines that divide among customers. Customer 0 has
    /// all flows that are given to no other, and weight 1. Null if there are none.
    pub customer_weights: *const f64,
    /// How many there are.
    pub customers: usize,
    /// Where to report what happens to packets.
    pub events: Events,
}

/// Functions of the caller that learn what a queue does to packets. Each may be null. They must return
/// normally (no exception, no `longjmp`), and calls for the same queue from within are refused.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Events {
    /// Handed to each of them.
    pub context: *mut c_void,
    /// The packet was dropped; the queue has forgotten it. It may be one that the present call brought, or
    /// another one.
    pub dropped: Option<
        unsafe extern "C" fn(context: *mut c_void, now: u64, packet: *const Packet, reason: DropReason),
    >,
    /// The packet was marked "congestion experienced" and goes on.
    pub marked: Option<unsafe extern "C" fn(context: *mut c_void, now: u64, packet: *const Packet)>,
    /// The link cannot carry what a flow needs, or can again (RAMP).
    pub overload: Option<unsafe extern "C" fn(context: *mut c_void, now: u64, overload: *const Overload)>,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum DropReason {
    /// A random or timed signal of congestion, before the buffer was full.
    Early,
    /// A threshold that admits nothing above it.
    Forced,
    /// The buffer was full and this was the arriving packet.
    Overflow,
    /// A rule about this flow or class, whatever the state of the buffer.
    Policy,
    /// Removed from the buffer to make room for another packet.
    PushOut,
}

/// A flow needs a rate that the link cannot give it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Overload {
    /// The flow.
    pub flow: u32,
    /// Whether an overload reported before has ended.
    pub is_over: bool,
    /// What the flow seems to need, in bits per second.
    pub wanted: u64,
    /// What it has, in bits per second.
    pub granted: u64,
}

/// What a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Backlog {
    /// Packets, with those that are held back.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// The sink of a discipline: passes on to the caller's functions.
#[derive(Debug)]
pub(crate) struct Reports {
    events: Events,
    start: u64,
}

impl Reports {
    /// A time of the discipline on the caller's clock.
    fn clock(&self, now: Time) -> u64 {
        now.as_nanos().saturating_add(self.start)
    }
}

impl Sink<Checked> for Reports {
    fn dropped(&mut self, now: Time, packet: Checked, reason: core::DropReason) {
        let reason = match reason {
            core::DropReason::Early => DropReason::Early,
            core::DropReason::Forced => DropReason::Forced,
            core::DropReason::Overflow => DropReason::Overflow,
            core::DropReason::Policy => DropReason::Policy,
            core::DropReason::PushOut => DropReason::PushOut,
        };
        if let Some(dropped) = self.events.dropped {
            // SAFETY: the caller of `apportion_queue_new` gave a function of this type; the packet lives until
            // it returns.
            unsafe { dropped(self.events.context, self.clock(now), &Packet::from(packet), reason) };
        }
    }

    fn marked(&mut self, now: Time, packet: &Checked) {
        if let Some(marked) = self.events.marked {
            // SAFETY: as in `dropped`.
            unsafe { marked(self.events.context, self.clock(now), &Packet::from(*packet)) };
        }
    }

    fn overload(&mut self, now: Time, overload: core::Overload) {
        if let Some(report) = self.events.overload {
            let (wanted, granted) = (overload.wanted.as_bit(), overload.granted.as_bit());
            let overload = Overload { flow: overload.flow.0, is_over: overload.is_over, wanted, granted };
            // SAFETY: as in `dropped`.
            unsafe { report(self.events.context, self.clock(now), &overload) };
        }
    }
}

impl Queue {
    /// Runs `call` unless another call is under way, and lets no panic out.
    #[inline]
    fn enter(&self, call: impl FnOnce(&mut Inner) -> Status) -> Status {
        match self.state.get() {
            State::Ready => self.state.set(State::Busy),
            State::Busy => return Status::ErrorBusy,
            State::Panicked => return Status::ErrorPanicked,
        }
        // SAFETY: `state` was not `Busy` and is now, so no other reference to `inner` exists until this one is
        // gone: callbacks cannot enter, and the caller promises not to call from two threads at once.
        let inner = unsafe { &mut *self.inner.get() };
        match catch_unwind(AssertUnwindSafe(|| call(inner))) {
            Ok(status) => {
                self.state.set(State::Ready);
                status
            }
            Err(panic) => {
                self.state.set(State::Panicked);
                discard(panic)
            }
        }
    }
}

/// Forgets what a panic carried: to drop it could panic again.
fn discard(panic: Box<dyn Any + Send>) -> Status {
    std::mem::forget(panic);
    Status::ErrorPanicked
}

/// As [`Queue::enter`], for a pointer from C.
///
/// # Safety
/// `queue` is null, or from `apportion_queue_new` and not destroyed; no other thread is in a call for it.
#[inline]
pub(crate) unsafe fn enter(queue: *const Queue, call: impl FnOnce(&mut Inner) -> Status) -> Status {
    // SAFETY: promised by the caller.
    unsafe { queue.as_ref() }.map_or(Status::ErrorNull, |queue| queue.enter(call))
}

impl Inner {
    /// The discipline's time when the caller's clock shows `now`.
    #[inline]
    pub fn advance(&mut self, now: u64) -> Result<Time, Status> {
        let time = now.checked_sub(self.start).map(Time::from_nanos).ok_or(Status::ErrorTime)?;
        if time < self.latest {
            return Err(Status::ErrorTime);
        }
        self.latest = time;
        Ok(time)
    }
}

/// Creates the queue that `config` describes, empty.
///
/// Returns null if that is wrong, and writes why into `error`: one line of UTF-8, cut to `error_size` bytes
/// with the final zero. `error` may be null. Nothing that `config` points to is kept, but `events.context`.
///
/// # Safety
/// `config` is null or points to an `apportion_config` whose strings end with a zero and whose `customer_weights` has
/// `customers` numbers; `error` is null or has room for `error_size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_new(
    config: *const Config,
    error: *mut c_char,
    error_size: usize,
) -> *mut Queue {
    // SAFETY: promised by the caller.
    let created = catch_unwind(AssertUnwindSafe(|| unsafe { create(config) }));
    let created = created.unwrap_or_else(|panic| {
        discard(panic);
        Err("the discipline panicked, which is a defect of the library".to_owned())
    });
    match created {
        Ok(queue) => Box::into_raw(Box::new(queue)),
        Err(message) => {
            // SAFETY: promised by the caller.
            unsafe { write(&message, error, error_size) };
            std::ptr::null_mut()
        }
    }
}

/// # Safety
/// As of `apportion_queue_new`.
unsafe fn create(config: *const Config) -> Result<Queue, String> {
    // SAFETY: promised by the caller.
    let config = unsafe { config.as_ref() }.ok_or("config is null")?;
    // SAFETY: promised by the caller.
    let queue = unsafe { text("queue", config.queue) }?.ok_or("queue is null; write for example \"fifo\"")?;
    // SAFETY: promised by the caller.
    let name = unsafe { text("name", config.name) }?.unwrap_or("queue");
    if config.link_rate == 0 {
        return Err("link_rate is zero; give the rate of the link in bits per second".to_owned());
    }
    let params = apportion_scenario::queue::from_text(queue).map_err(|error| error.to_string())?;
    params.refuse_ack_filter().map_err(|error| format!("queue.{}: {}", error.key, error.message))?;
    let weights = if config.customer_weights.is_null() {
        &[]
    } else {
        // SAFETY: not null, and the caller promises as many.
        unsafe { std::slice::from_raw_parts(config.customer_weights, config.customers) }
    };
    // The first is that of customer 0.
    let weights: Option<Vec<_>> =
        std::iter::once(&1.0).chain(weights).map(|&weight| Weight::new(weight)).collect();
    let weights = weights.ok_or("customer_weights: a weight must be finite and above zero")?;
    let customers = if config.customers == 0 {
        Customers::default()
    } else {
        Customers { of_flows: &[], weights: &weights, names: &[] }
    };
    let link =
        LinkContext { customers, ..LinkContext::new(Rate::from_bit(config.link_rate), config.seed, name) };
    Ok(Queue {
        state: Cell::new(State::Ready),
        inner: UnsafeCell::new(Inner {
            discipline: params.build(&link),
            reports: Reports { events: config.events, start: config.start },
            start: config.start,
            latest: Time::ZERO,
        }),
    })
}

/// The text at `pointer`, none if that is null.
///
/// # Safety
/// `pointer` is null or a string that ends with a zero and lives as long as the result is used.
unsafe fn text<'a>(key: &str, pointer: *const c_char) -> Result<Option<&'a str>, String> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and promised by the caller.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(Some).map_err(|_| format!("{key} is not UTF-8"))
}

/// Writes `message` into a buffer of C, cut between two characters.
///
/// # Safety
/// `buffer` is null or has room for `size` bytes.
unsafe fn write(message: &str, buffer: *mut c_char, size: usize) {
    if buffer.is_null() || size == 0 {
        return;
    }
    let message = message.replace('\0', "");
    let room = message.len().min(size - 1);
    let length = (0..=room).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
    // SAFETY: `length` bytes and the zero fit, as the caller promises; the two do not overlap.
    unsafe {
        std::ptr::copy_nonoverlapping(message.as_ptr().cast(), buffer, length);
        buffer.add(length).write(0);
    }
}

/// Destroys `queue`. The packets in it are forgotten: drain it first if their handles own something.
/// Nothing happens if it is null.
///
/// # Safety
/// `queue` is null, or from `apportion_queue_new` and not destroyed; no other thread is in a call for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_destroy(queue: *mut Queue) -> Status {
    // SAFETY: promised by the caller.
    match unsafe { queue.as_ref() } {
        None => return Status::Ok,
        Some(queue) if queue.state.get() == State::Busy => return Status::ErrorBusy,
        Some(_) => {}
    }
    // SAFETY: `apportion_queue_new` made it from a box, and no call uses it.
    let queue = unsafe { Box::from_raw(queue) };
    catch_unwind(AssertUnwindSafe(|| drop(queue))).map_or_else(discard, |()| Status::Ok)
}

/// Gives `packet` to the queue at `now`. The queue may drop it, or others, and reports that to `dropped`
/// before it returns: `APPORTION_STATUS_OK` says that the queue took it over, not that it holds it.
///
/// # Safety
/// As of `apportion_queue_destroy`; `packet` is null or points to a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_enqueue(
    queue: *mut Queue,
    now: u64,
    packet: *const Packet,
) -> Status {
    // SAFETY: promised by the caller.
    let packet = match unsafe { packet.as_ref() }.map(Checked::check) {
        Some(Ok(packet)) => packet,
        Some(Err(status)) => return status,
        None => return Status::ErrorNull,
    };
    let call = |inner: &mut Inner| match inner.advance(now) {
        Ok(now) => {
            inner.discipline.enqueue(now, *packet, &mut inner.reports);
            Status::Ok
        }
        Err(status) => status,
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// Writes the next packet to transmit at `now` into `packet`. It may drop some first.
///
/// `APPORTION_STATUS_NONE` if there is none now: the queue is empty, or holds packets back, and then
/// `apportion_queue_next_wakeup` says until when. A link that finishes a transmission should always ask once
/// more, or disciplines such as RED do not see that it is idle.
///
/// # Safety
/// As of `apportion_queue_destroy`; `packet` is null or has room for a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_dequeue(queue: *mut Queue, now: u64, packet: *mut Packet) -> Status {
    let take = |inner: &mut Inner, now| inner.discipline.dequeue(now, &mut inner.reports);
    // SAFETY: promised by the caller.
    unsafe { hand_out(queue, now, packet, take) }
}

/// Writes the next packet into `packet`, whatever policy and shaper would say: to empty a queue that is to be
/// destroyed or replaced. `APPORTION_STATUS_NONE` if there is none.
///
/// # Safety
/// As of `apportion_queue_dequeue`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_drain(queue: *mut Queue, now: u64, packet: *mut Packet) -> Status {
    // SAFETY: promised by the caller.
    unsafe { hand_out(queue, now, packet, |inner, now| inner.discipline.drain(now)) }
}

/// # Safety
/// As of `apportion_queue_dequeue`.
#[inline]
unsafe fn hand_out(
    queue: *mut Queue,
    now: u64,
    packet: *mut Packet,
    take: impl FnOnce(&mut Inner, Time) -> Option<Checked>,
) -> Status {
    if packet.is_null() {
        return Status::ErrorNull;
    }
    let call = |inner: &mut Inner| match inner.advance(now).map(|now| take(inner, now)) {
        Ok(Some(found)) => {
            // SAFETY: not null, and the caller promises room.
            unsafe { packet.write(found.into()) };
            Status::Ok
        }
        Ok(None) => Status::None,
        Err(status) => status,
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// Writes into `at` the earliest time at which a `dequeue` that found nothing can succeed without a further
/// `enqueue`. `APPORTION_STATUS_NONE` unless the queue holds packets back.
///
/// # Safety
/// As of `apportion_queue_destroy`; `at` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_next_wakeup(queue: *const Queue, at: *mut u64) -> Status {
    if at.is_null() {
        return Status::ErrorNull;
    }
    let call = |inner: &mut Inner| match inner.discipline.next_wakeup() {
        Some(time) => {
            // SAFETY: not null, and the caller promises room.
            unsafe { at.write(inner.reports.clock(time)) };
            Status::Ok
        }
        None => Status::None,
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// Writes into `backlog` what the queue holds.
///
/// # Safety
/// As of `apportion_queue_destroy`; `backlog` is null or has room for one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_backlog(queue: *const Queue, backlog: *mut Backlog) -> Status {
    if backlog.is_null() {
        return Status::ErrorNull;
    }
    let call = |inner: &mut Inner| {
        let held = inner.discipline.backlog();
        // SAFETY: not null, and the caller promises room.
        unsafe { backlog.write(Backlog { packets: held.packets.get(), bytes: held.bytes.get() }) };
        Status::Ok
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// Calls `show` with the numbers that the discipline keeps about itself, under the names that results of the
/// simulator have for them. A name is a string that lives until `show` returns.
///
/// # Safety
/// As of `apportion_queue_destroy`; `show` may be called with `context` and returns normally.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_statistics(
    queue: *const Queue,
    context: *mut c_void,
    show: Option<unsafe extern "C" fn(context: *mut c_void, name: *const c_char, value: f64)>,
) -> Status {
    let Some(show) = show else { return Status::ErrorNull };
    let call = |inner: &mut Inner| {
        inner.discipline.statistics(&mut |name, value| {
            let name = c_name(name);
            // SAFETY: promised by the caller; the name lives until it returns.
            unsafe { show(context, name.as_ptr(), value) };
        });
        Status::Ok
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// As `apportion_queue_statistics`, with the numbers that the discipline keeps about flows.
///
/// # Safety
/// As of `apportion_queue_statistics`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_flow_statistics(
    queue: *const Queue,
    context: *mut c_void,
    show: Option<unsafe extern "C" fn(context: *mut c_void, flow: u32, name: *const c_char, value: f64)>,
) -> Status {
    let Some(show) = show else { return Status::ErrorNull };
    let call = |inner: &mut Inner| {
        inner.discipline.flow_statistics(&mut |FlowId(flow), name, value| {
            let name = c_name(name);
            // SAFETY: promised by the caller; the name lives until it returns.
            unsafe { show(context, flow, name.as_ptr(), value) };
        });
        Status::Ok
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// The name of a number. None has a zero inside; one that had would be empty.
fn c_name(name: &str) -> CString {
    CString::new(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::apportion_queue_set_link_rate;

    #[test]
    fn a_panic_stays_inside_and_is_remembered() {
        let events = Events { context: std::ptr::null_mut(), dropped: None, marked: None, overload: None };
        let config = Config {
            queue: c"fifo".as_ptr(),
            link_rate: 1,
            seed: 0,
            name: std::ptr::null(),
            start: 0,
            customer_weights: std::ptr::null(),
            customers: 0,
            events,
        };
        let packet = Packet { size: 1, ..Packet::default() };
        // SAFETY: the configuration is complete, and the queue is used by this thread until it is destroyed.
        unsafe {
            let queue = apportion_queue_new(&config, std::ptr::null_mut(), 0);
            assert_eq!(apportion_queue_enqueue(queue, 0, &packet), Status::Ok);
            assert_eq!(enter(queue, |_| panic!("a defect, for the test")), Status::ErrorPanicked);
            assert_eq!(apportion_queue_enqueue(queue, 0, &packet), Status::ErrorPanicked);
            assert_eq!(apportion_queue_set_link_rate(queue, 0, 1), Status::ErrorPanicked);
            assert_eq!(apportion_queue_destroy(queue), Status::Ok);
        }
    }
}
