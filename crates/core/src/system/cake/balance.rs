//! Which of the tins is served next.
//!
//! Tin t has a balance b of bytes, and a part θ of the link. When a packet of L bytes leaves tin s,
//!
//! - b ← b + θ L of each tin, which was b ← min(b, 0) before if it has no packets;
//! - b ← max(b - L, -L) of tin s.
//!
//! Of the tins that have packets the last with b ≥ 0 is served; if there is none, the one with the largest b / θ. The parts of those that have
//! packets are found from the last to the first: each has its least part, and as much of what these leave as it needs for its threshold. It
//! follows that
//!
//! - a packet that comes to a tin which uses less than its part waits for the one in transmission and those of later tins;
//! - a tin that has packets gets its least part of all that leaves, whatever the rate of the link: of bulk, video and voice the threshold, of
//!   best effort beside them the rest, and of eight tins one in proportion to its threshold;
//! - a tin owes a packet at most for what it took beyond its part while others had none, and is owed one at most for what it did not take.
//!
//! Voice and real-rate flows have as threshold what their queues would have if all were in one tin, if that is more: a call that needs more
//! than a quarter of a slow link must not lose by being told apart.

use core::cmp::Ordering;

use super::tin::Tin;
use super::tins::{Share, WHOLE};
use crate::units::Bytes;

/// Forgets what tins owe: none of them has packets.
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

/// A packet has left the tin `served`, whose last one it may have been.
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

/// Compares how soon two have a balance of zero.
fn lag(a: &Share, b: &Share) -> Ordering {
    let cross = |of: &Share, by: &Share| i128::from(of.balance) * i128::from(by.threshold);
    cross(a, b).cmp(&cross(b, a))
}
