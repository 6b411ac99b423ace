//! The hash that distinguishes flows in disciplines without a flow table.

use crate::packet::FlowId;
use crate::random::mix;

/// The bucket of `flow`, below `buckets`, by a hash with `salt`.
#[inline]
pub(super) fn bucket(flow: FlowId, salt: u64, buckets: u32) -> usize {
    // The high half of hash × buckets lies in 0..buckets, without a division.
    ((u128::from(mix(u64::from(flow.0) ^ salt)) * u128::from(buckets)) >> 64) as usize
}
