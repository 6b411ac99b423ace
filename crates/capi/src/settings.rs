//! Changes of settings while packets wait. A change drops no packet by itself, but a discipline that acts by
//! the clock first performs the actions that are due.

use apportion_core::FlowSetting;
use apportion_core::limit::Limit;
use apportion_core::packet::{CustomerId, FlowClass as CoreFlowClass, FlowId, HostPair};
use apportion_core::units::{Bytes, Packets, Rate, Span, Time, Weight};

use crate::queue::{Inner, Queue, enter};
use crate::status::Status;

/// The class of a flow: how it uses bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum FlowClass {
    /// The flow takes all the bandwidth that it gets. Flows without a class are greedy.
    Greedy = 0,
    /// The flow needs a certain rate and has no use for more.
    RealRate = 1,
}

fn used(is_used: bool) -> Status {
    if is_used { Status::Ok } else { Status::Unused }
}

impl Inner {
    /// Lets the discipline perform the actions due until the caller's clock showed `now`, then applies
    /// `change`.
    fn change(&mut self, now: u64, change: impl FnOnce(&mut Self, Time) -> Status) -> Status {
        match self.advance(now) {
            Ok(now) => {
                self.discipline.shares(now, &mut self.reports, &mut |_, _| {});
                change(self, now)
            }
            Err(status) => status,
        }
    }
}

/// Sets the rate of the link from `now` on, in bits per second. Zero: the link is down at present.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_link_rate(queue: *mut Queue, now: u64, rate: u64) -> Status {
    let set = |inner: &mut Inner, _| {
        inner.discipline.set_link_rate(Rate::from_bit(rate));
        Status::Ok
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, |inner| inner.change(now, set)) }
}

/// Sets the rate of the shaper from `now` on, in bits per second. Unused without a shaper.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_shaper_rate(queue: *mut Queue, now: u64, rate: u64) -> Status {
    let set = |inner: &mut Inner, now| used(inner.discipline.set_shaper_rate(now, Rate::from_bit(rate)));
    // SAFETY: promised by the caller.
    unsafe { enter(queue, |inner| inner.change(now, set)) }
}

/// Sets the limit of the buffer, in packets. A buffer above the new limit drains, or later arrivals push
/// packets out.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_limit_packets(queue: *mut Queue, packets: u64) -> Status {
    // SAFETY: promised by the caller.
    unsafe { set_limit(queue, packets, Limit::Packets(Packets::new(packets))) }
}

/// Sets the limit of the buffer, in bytes. A buffer above the new limit drains, or later arrivals push
/// packets out.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_limit_bytes(queue: *mut Queue, bytes: u64) -> Status {
    // SAFETY: promised by the caller.
    unsafe { set_limit(queue, bytes, Limit::Bytes(Bytes::new(bytes))) }
}

/// # Safety
/// As for `apportion_queue_destroy`.
unsafe fn set_limit(queue: *mut Queue, amount: u64, limit: Limit) -> Status {
    if amount == 0 {
        return Status::ErrorValue;
    }
    let set = |inner: &mut Inner| {
        inner.discipline.set_limit(limit);
        Status::Ok
    };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, set) }
}

/// Sets the weight of a flow from its next turn on. Default: 1. Unused by disciplines without weights.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_weight(queue: *mut Queue, flow: u32, weight: f64) -> Status {
    let Some(weight) = Weight::new(weight) else { return Status::ErrorValue };
    // SAFETY: promised by the caller.
    unsafe {
        enter(queue, |inner| used(inner.discipline.set_flow(FlowId(flow), FlowSetting::Weight(weight))))
    }
}

/// Sets the guaranteed rate of a flow from its next packet on, in bits per second, and its round-trip time
/// without queueing, in nanoseconds. Default: no guarantee. Unused by disciplines without guarantees.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_guarantee(
    queue: *mut Queue,
    flow: u32,
    rate: u64,
    rtt: u64,
) -> Status {
    let (rate, rtt) = (Rate::from_bit(rate), Span::from_nanos(rtt));
    // SAFETY: promised by the caller.
    unsafe {
        enter(queue, |inner| used(inner.discipline.set_flow(FlowId(flow), FlowSetting::Guarantee(rate, rtt))))
    }
}

/// Sets the round-trip time of a flow without queueing, in nanoseconds. Default: zero, unknown. Unused by
/// disciplines that do not use round-trip times.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_rtt(queue: *mut Queue, flow: u32, rtt: u64) -> Status {
    let rtt = Span::from_nanos(rtt);
    // SAFETY: promised by the caller.
    unsafe { enter(queue, |inner| used(inner.discipline.set_flow(FlowId(flow), FlowSetting::Rtt(rtt)))) }
}

/// Sets the source and destination hosts of a flow from its next packet on. Sources and destinations are
/// numbered separately, with small numbers. Default: 0 at both ends. Unused by queues without `isolate`.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_hosts(
    queue: *mut Queue,
    flow: u32,
    source: u32,
    destination: u32,
) -> Status {
    let hosts = HostPair { source, destination };
    // SAFETY: promised by the caller.
    unsafe { enter(queue, |inner| used(inner.discipline.set_flow(FlowId(flow), FlowSetting::Hosts(hosts)))) }
}

/// Sets the customer of a flow from its next packet on. Default: 0. Unused by disciplines that do not divide
/// the link among customers.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_customer(queue: *mut Queue, flow: u32, customer: u32) -> Status {
    // SAFETY: promised by the caller.
    unsafe {
        enter(queue, |inner| {
            used(inner.discipline.set_flow(FlowId(flow), FlowSetting::Customer(CustomerId(customer))))
        })
    }
}

/// Sets the class of a flow from `now` on, an `apportion_flow_class`. Default: greedy. Unused by disciplines
/// without classes. Packets that the queue held back may become ready: dequeue again afterwards.
///
/// # Safety
/// As for `apportion_queue_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn apportion_queue_set_class(
    queue: *mut Queue,
    now: u64,
    flow: u32,
    class: u32,
) -> Status {
    let class = match class {
        0 => CoreFlowClass::Greedy,
        1 => CoreFlowClass::RealRate,
        _ => return Status::ErrorCode,
    };
    let set = |inner: &mut Inner, _| used(inner.discipline.set_flow(FlowId(flow), FlowSetting::Class(class)));
    // SAFETY: promised by the caller.
    unsafe { enter(queue, |inner| inner.change(now, set)) }
}
