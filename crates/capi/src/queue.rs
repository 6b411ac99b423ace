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

/// A queue discipline for one link.
#[derive(Debug)]
pub struct Queue {
    state: Cell<State>,
    inner: UnsafeCell<Inner>,
}

/// Whether calls may enter the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    /// A call is under way.
    Busy,
    Panicked,
}

/// The discipline and its context, for the duration of a call.
#[derive(Debug)]
pub(crate) struct Inner {
    pub discipline: LinkQueue<Checked>,
    pub reports: Reports,
    /// The time of the caller's clock at time zero of the discipline.
    start: u64,
    latest: Time,
}

/// A queue may move between threads.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<LinkQueue<Checked>>();
};

/// The configuration of a queue and its environment. All fields may be zero except `queue` and `link_rate`.
#[derive(Debug)]
#[repr(C)]
pub struct Config {
    /// The discipline, as in a scenario's `queue` of a link: a name such as `fq_codel`, or a table such as
    /// `{ kind = "drr", limit = "110p" }`. UTF-8.
    pub queue: *const c_char,
    /// The rate of the link, in bits per second; above zero.
    pub link_rate: u64,
    /// Seed of the discipline's random decisions.
    pub seed: u64,
    /// Name of the discipline's random stream: queues with the same seed and different names make independent
    /// random decisions. UTF-8. Null: `queue`. The simulator names the stream of link `l` `link.l.queue`.
    pub name: *const c_char,
    /// The present time of the caller's clock, in nanoseconds. Disciplines that act by the clock count from
    /// this time.
    pub start: u64,
    /// The weights of customers 1, 2 and so on, for disciplines that divide the link among customers.
    /// Customer 0 has weight 1 and owns all flows that are not assigned to another customer. Null if there
    /// are no others.
    pub customer_weights: *const f64,
    /// The length of `customer_weights`.
    pub customers: usize,
    /// The functions that are told of drops, marks and overload.
    pub events: Events,
}

/// Functions of the caller that are told what a queue does to packets. Each may be null. They must return
/// normally (no exception, no `longjmp`), and their calls to the same queue are refused.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Events {
    /// The first argument of each function.
    pub context: *mut c_void,
    /// The packet was dropped, and the queue no longer knows it. It may be the packet that the current call
    /// enqueues, or another one.
    pub dropped: Option<
        unsafe extern "C" fn(context: *mut c_void, now: u64, packet: *const Packet, reason: DropReason),
    >,
    /// The packet was marked "congestion experienced" and stays in the queue or is sent.
    pub marked: Option<unsafe extern "C" fn(context: *mut c_void, now: u64, packet: *const Packet)>,
    /// The link cannot carry the rate that a flow needs, or can again (RAMP).
    pub overload: Option<unsafe extern "C" fn(context: *mut c_void, now: u64, overload: *const Overload)>,
}

/// The reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum DropReason {
    /// An early congestion signal, random or timed, before the buffer was full.
    Early,
    /// The queue exceeded a threshold above which every packet is dropped.
    Forced,
    /// The buffer was full when this packet arrived.
    Overflow,
    /// A rule about the flow or class, independent of the state of the buffer.
    Policy,
    /// Removed from the buffer to make room for another packet.
    PushOut,
}

/// A report that a flow needs a rate that the link cannot give it.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Overload {
    /// The flow.
    pub flow: u32,
    /// Whether an overload that was reported before has ended.
    pub is_over: bool,
    /// The rate that the flow seems to need, in bits per second.
    pub wanted: u64,
    /// The rate that the flow gets, in bits per second.
    pub granted: u64,
}

/// The backlog of a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Backlog {
    /// Number of packets, including those that are held back.
    pub packets: u64,
    /// Bytes of these packets on the wire.
    pub bytes: u64,
}

/// The sink of a discipline, which calls the caller's functions.
#[derive(Debug)]
pub(crate) struct Reports {
    events: Events,
    start: u64,
}

impl Reports {
    /// Converts a time of the discipline to the caller's clock.
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

/// Forgets the payload of a panic: dropping it could panic again.
pub(crate) fn discard(panic: Box<dyn Any + Send>) -> Status {
    std::mem::forget(panic);
    Status::ErrorPanicked
}

/// Enters as [`Queue::enter`] does, for a pointer from C.
///
/// # Safety
/// `queue` is null, or comes from `apportion_queue_new` and is not destroyed; no other thread is in a call
/// for it.
#[inline]
pub(crate) unsafe fn enter(queue: *const Queue, call: impl FnOnce(&mut Inner) -> Status) -> Status {
    // SAFETY: promised by the caller.
    unsafe { queue.as_ref() }.map_or(Status::ErrorNull, |queue| queue.enter(call))
}

impl Inner {
    /// Returns the discipline's time when the caller's clock shows `now`.
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

/// Creates an empty queue from `config`.
///
/// Returns null if `config` is invalid, and writes the reason into `error`: one line of UTF-8, cut to
/// `error_size` bytes including the final zero. `error` may be null. The queue keeps no pointer of `config`
/// except `events.context`.
///
/// # Safety
/// `config` is null or points to an `apportion_config` whose strings end with a zero and whose
/// `customer_weights` has `customers` numbers; `error` is null or has room for `error_size` bytes.
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
/// As for `apportion_queue_new`.
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
        // SAFETY: not null, and the caller promises `customers` numbers.
        unsafe { std::slice::from_raw_parts(config.customer_weights, config.customers) }
    };
    // The first weight is that of customer 0.
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

/// Returns the text at `pointer`, or none if `pointer` is null.
///
/// # Safety
/// `pointer` is null or points to a string that ends with a zero and lives as long as the result is used.
pub(crate) unsafe fn text<'a>(key: &str, pointer: *const c_char) -> Result<Option<&'a str>, String> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and promised by the caller.
    let text = unsafe { CStr::from_ptr(pointer) }.to_str();
    text.map(Some).map_err(|_| format!("{key} is not UTF-8"))
}

/// Writes `message` into a C buffer, cut between two characters if it is too long.
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

/// Destroys `queue` and forgets the packets in it: drain the queue first if their handles own something. Does
/// nothing if `queue` is null.
///
/// # Safety
/// `queue` is null, or comes from `apportion_queue_new` and is not destroyed; no other thread is in a call
/// for it.
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

/// Enqueues `packet` at `now`. The queue may drop this packet or others, and reports drops to `dropped`
/// before the function returns: `APPORTION_STATUS_OK` means that the queue took the packet over, not that it
/// holds it.
///
/// # Safety
/// As for `apportion_queue_destroy`; `packet` is null or points to a packet.
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

/// Dequeues the next packet to transmit at `now` into `packet`. The queue may drop packets first.
///
/// Returns `APPORTION_STATUS_NONE` if there is no packet now: the queue is empty, or it holds packets back
/// until the time that `apportion_queue_next_wakeup` returns. After the last transmission, a link should call
/// this function once more: disciplines such as RED detect by it that the link is idle.
///
/// # Safety
/// As for `apportion_queue_destroy`; `packet` is null or has room for a packet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_dequeue(queue: *mut Queue, now: u64, packet: *mut Packet) -> Status {
    let take = |inner: &mut Inner, now| inner.discipline.dequeue(now, &mut inner.reports);
    // SAFETY: promised by the caller.
    unsafe { hand_out(queue, now, packet, take) }
}

/// Dequeues the next packet into `packet` without regard to policy and shaper, to empty a queue that is to be
/// destroyed or replaced. Returns `APPORTION_STATUS_NONE` if the queue is empty.
///
/// # Safety
/// As for `apportion_queue_dequeue`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_drain(queue: *mut Queue, now: u64, packet: *mut Packet) -> Status {
    // SAFETY: promised by the caller.
    unsafe { hand_out(queue, now, packet, |inner, now| inner.discipline.drain(now)) }
}

/// # Safety
/// As for `apportion_queue_dequeue`.
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
            // SAFETY: not null, and the caller promises room for a packet.
            unsafe { packet.write(found.into()) };
            Status::Ok
        }
        Ok(None) => Status::None,
        Err(status) => status,
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// Writes into `at` the earliest time at which a dequeue that found no packet can succeed without a further
/// enqueue. Returns `APPORTION_STATUS_NONE` unless the queue holds packets back.
///
/// # Safety
/// As for `apportion_queue_destroy`; `at` is null or has room for a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_next_wakeup(queue: *const Queue, at: *mut u64) -> Status {
    if at.is_null() {
        return Status::ErrorNull;
    }
    let call = |inner: &mut Inner| match inner.discipline.next_wakeup() {
        Some(time) => {
            // SAFETY: not null, and the caller promises room for a number.
            unsafe { at.write(inner.reports.clock(time)) };
            Status::Ok
        }
        None => Status::None,
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// Writes the backlog of the queue into `backlog`.
///
/// # Safety
/// As for `apportion_queue_destroy`; `backlog` is null or has room for an `apportion_backlog`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_backlog(queue: *const Queue, backlog: *mut Backlog) -> Status {
    if backlog.is_null() {
        return Status::ErrorNull;
    }
    let call = |inner: &mut Inner| {
        let held = inner.discipline.backlog();
        // SAFETY: not null, and the caller promises room for a `Backlog`.
        unsafe { backlog.write(Backlog { packets: held.packets.get(), bytes: held.bytes.get() }) };
        Status::Ok
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, call) }
}

/// Calls `show` with each statistic that the discipline keeps, under the name that it has in results of the
/// simulator. A name is a string that lives until `show` returns.
///
/// # Safety
/// As for `apportion_queue_destroy`; `show` may be called with `context` and returns normally.
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

/// Calls `show` with each statistic that the discipline keeps per flow, as `apportion_queue_statistics` does.
///
/// # Safety
/// As for `apportion_queue_statistics`.
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

/// Returns the name of a statistic as a C string. No name contains a zero; one that did would become empty.
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
