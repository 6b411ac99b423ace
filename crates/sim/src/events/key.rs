//! Keys of events: numbers that define the order of events.

use apportion_core::units::Time;

/// The maximum time of a run, 2^56 ns or some 2.2 years.
pub const MAX_TIME: Time = Time::from_nanos((1 << 56) - 1);
/// The bits of a key below its time.
const TIME_BITS: u32 = 72;
/// A key above that of every event.
pub(super) const NOTHING: u128 = u128::MAX;

/// 56 bits of time, 40 of order, 32 of event. Causes more than 2^40 ns ago, some 18 minutes, are equal.
#[inline]
pub(super) fn key(cause: Time, at: Time, event: u32) -> u128 {
    const MAX_AGE: u64 = (1 << 40) - 1;
    let order = MAX_AGE - at.since(cause).as_nanos().min(MAX_AGE);
    u128::from(at.as_nanos()) << TIME_BITS | u128::from(order) << 32 | u128::from(event)
}

/// The largest key of events up to `end`; all later events, and no event, have larger keys.
pub(super) fn last_key(end: Time) -> u128 {
    (u128::from(end.min(MAX_TIME).as_nanos()) << TIME_BITS | ((1 << TIME_BITS) - 1)).min(NOTHING - 1)
}

pub(super) fn time_of(key: u128) -> Time {
    Time::from_nanos((key >> TIME_BITS) as u64)
}
