//! Which tins there are, and which of them is served next.
//!
//! Tin t has a threshold θ, its part of the link, and a balance b of bytes. When a packet of L bytes leaves tin s,
//!
//! - b ← b + θ L of each tin, which was b ← min(b, 0) before if it has no packets;
//! - b ← max(b - L, -L) of tin s.
//!
//! A tin with b ≥ 0 is within its threshold. The last tin that has packets and is within its threshold is served; if none is, the one
//! with the largest b / θ, which is the first that will be. It follows that
//!
//! - a packet that comes to a tin within its threshold waits for the one in transmission and those of later tins;
//! - a tin that has packets gets θ of all that leaves, whatever later tins send, since what these may have adds up to 13/16 at most. Best
//!   effort, which is always within its threshold of 1, has the rest;
//! - a tin owes a packet at most for what it took beyond its threshold while others had none, and is owed θ of one at most for what
//!   it did not take.
//!
//! The last tin may have as much as its queues would have if all were in one tin, if that is more than its threshold and best effort
//! keeps 3/16: a call that needs more than a quarter of a slow link must not lose by being told apart.

use alloc::vec::Vec;

use crate::choice;
use crate::units::{Bytes, Rate};

choice! {
    /// Which tins there are.
    pub enum Tins {
        /// One for real-rate flows, one for all others.
        Class = "class",
        /// One for all.
        Besteffort = "besteffort",
    }
}

/// The whole link, in the unit of its parts.
const WHOLE: i64 = 1 << 16;
/// What bulk, video and voice may have together: best effort keeps the rest.
// tc-cake(8), diffserv4: 6.25 %, 50 % and 25 %
const MOST: i64 = WHOLE * 13 / 16;

impl Tins {
    /// The thresholds of its tins, the one that is served last first.
    // tc-cake(8)
    fn thresholds(self) -> &'static [i64] {
        match self {
            Self::Class => &[WHOLE, WHOLE / 4],
            Self::Besteffort => &[WHOLE],
        }
    }
}

/// What is known of a tin when one is chosen.
#[derive(Clone, Debug)]
struct Share {
    threshold: i64,
    /// In 1/65536 of a byte.
    balance: i64,
}

/// The balances of tins.
#[derive(Clone, Debug)]
pub(super) struct Shares(Vec<Share>);

impl Shares {
    pub fn new(tins: Tins) -> Self {
        Self(tins.thresholds().iter().map(|&threshold| Share { threshold, balance: 0 }).collect())
    }

    pub const fn tins(&self) -> usize {
        self.0.len()
    }

    /// The part of `rate` that a tin has.
    pub fn rate(&self, tin: usize, rate: Rate) -> Rate {
        let bit = u128::from(rate.as_bit()) * self.0[tin].threshold as u128 / WHOLE as u128;
        // No more than all of it.
        Rate::from_bit(bit as u64)
    }

    /// Forgets what tins owe: none of them has packets.
    pub fn forgive(&mut self) {
        self.0.iter_mut().for_each(|share| share.balance = share.balance.max(0));
    }

    /// The tin that is served next of those that have queues with packets; the first if none has.
    pub fn pick(&self, queues: impl Fn(usize) -> u64) -> usize {
        let busy = || self.0.iter().enumerate().filter(|(tin, _)| queues(*tin) > 0);
        let within = busy().rev().find(|(_, share)| share.balance >= 0);
        let (tin, _) = within.or_else(|| busy().max_by(|(_, a), (_, b)| a.lag(b))).unwrap_or((0, &self.0[0]));
        tin
    }

    /// A packet has left `served`, and of each tin so many `queues` had packets.
    pub fn pay(&mut self, served: usize, size: Bytes, queues: impl Fn(usize) -> u64) {
        let last = self.tins() - 1;
        let of_last = self.part_of_last(&queues);
        let bytes = size.get() as i64;
        for (tin, share) in self.0.iter_mut().enumerate() {
            if queues(tin) == 0 {
                share.balance = share.balance.min(0);
            }
            share.balance += bytes * if tin == last { of_last } else { share.threshold };
            if tin == served {
                share.balance = (share.balance - bytes * WHOLE).max(-bytes * WHOLE);
            }
        }
    }

    fn part_of_last(&self, queues: &impl Fn(usize) -> u64) -> i64 {
        let Some((last, [_, others @ ..])) = self.0.split_last() else { return WHOLE };
        let taken = (1..).zip(others).filter(|(tin, _)| queues(*tin) > 0).map(|(_, share)| share.threshold);
        let room = MOST - taken.sum::<i64>();
        let all: u64 = (0..self.tins()).map(queues).sum();
        let fair = queues(self.tins() - 1) as i64 * WHOLE / all.max(1) as i64;
        fair.min(room).max(last.threshold)
    }
}

impl Share {
    /// Compares how soon two reach their thresholds.
    fn lag(&self, other: &Self) -> core::cmp::Ordering {
        let [a, b] = [(self, other), (other, self)];
        let cross = |(of, by): (&Self, &Self)| i128::from(of.balance) * i128::from(by.threshold);
        cross(a).cmp(&cross(b))
    }
}
