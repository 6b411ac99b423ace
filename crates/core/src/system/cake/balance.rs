//! The choice of the tin that is served next.
//!
//! Tin t has a balance b of bytes, and a part θ of the link. When a packet of L bytes leaves tin s,
//!
//! - b ← b + θ L for each tin; for a tin without packets b ← min(b, 0) first;
//! - b ← max(b - L, -L) for tin s.
//!
//! Among the tins with packets the last one with b ≥ 0 is served; without such a tin, the one with the
//! largest b / θ. The parts of tins with packets are determined from the last to the first: each has its
//! minimum part, and as much of the rest as it needs for its threshold. It follows that
//!
//! - a packet that arrives at a tin below its part waits for the packet in transmission and for those of
//!   later tins;
//! - a tin with packets gets its minimum part of all departures, whatever the rate of the link: bulk, video
//!   and voice their thresholds, best effort beside them the rest, and each of eight tins a part proportional
//!   to its threshold;
//! - a tin's debt for service beyond its part while others had no packets is at most one packet, and so is
//!   its credit for unused service.
//!
//! The threshold of voice and real-rate flows is the part that their queues would get if all were in one tin,
//! if that is more: a call that needs more than a quarter of a slow link must not lose by the distinction.

use core::cmp::Ordering;

use super::tin::Tin;
use super::tins::{Share, WHOLE};
use crate::units::Bytes;

/// Clears the debts of all tins, none of which has packets.
pub(super) fn forgive(tins: &mut [Tin]) {
    tins.iter_mut().for_each(|tin| tin.share.balance = tin.share.balance.max(0));
}

/// The tin that is served next; the first if none has packets.
pub(super) fn pick(tins: &[Tin]) -> usize {
    let within = tins.iter().rposition(|tin| tin.waiting() > 0 && tin.share.balance >= 0);
    let soonest = || {
        let busy = tins.iter().enumerate().filter(|(_, tin)| tin.waiting() > 0);
        busy.max_by(|(_, a), (_, b)| lag(&a.share, &b.share)).map(|(index, _)| index)
    };
    within.or_else(soonest).unwrap_or(0)
}

/// Notes the departure of a packet, perhaps the last one, from the tin `served`.
pub(super) fn pay(tins: &mut [Tin], served: usize, size: Bytes) {
    let bytes = size.get() as i64;
    let (mut room, mut all_queues) = (WHOLE, 0);
    for tin in tins.iter().filter(|tin| tin.waiting() > 0) {
        room -= tin.share.least;
        all_queues += tin.waiting();
    }
    if tins[served].waiting() == 0 {
        room -= tins[served].share.least;
        all_queues += 1;
    }
    for (index, tin) in tins.iter_mut().enumerate().rev() {
        let (waiting, share) = (tin.waiting(), &mut tin.share);
        let mut part = share.threshold;
        if waiting > 0 || index == served {
            if share.is_voice {
                part = part.max(waiting.max(1) as i64 * WHOLE / all_queues as i64);
            }
            part = part.min(share.least + room);
            room -= part - share.least;
        }
        if waiting == 0 {
            share.balance = share.balance.min(0);
        }
        share.balance += bytes * part;
    }
    let balance = &mut tins[served].share.balance;
    *balance = (*balance - bytes * WHOLE).max(-bytes * WHOLE);
}

/// Compares how soon two tins reach a balance of zero.
fn lag(a: &Share, b: &Share) -> Ordering {
    let cross = |of: &Share, by: &Share| i128::from(of.balance) * i128::from(by.threshold);
    cross(a, b).cmp(&cross(b, a))
}
