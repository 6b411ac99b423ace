//! Which tins there are, and which of them is served next.
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
        /// Bulk, best effort and voice, by DSCP.
        Diffserv3 = "diffserv3",
        /// Bulk, best effort, video and voice, by DSCP.
        Diffserv4 = "diffserv4",
        /// Eight, by DSCP.
        Diffserv8 = "diffserv8",
        /// Eight, by the first three bits of the DSCP: the precedence of RFC 791.
        Precedence = "precedence",
    }
}

/// Codepoints of RFC 2474, 3246, 5865 and 8622. Those of RFC 2597, AFxy, are 8x + 2y.
const LE: u8 = 1;
const VA: u8 = 44;
const EF: u8 = 46;
const CS1: u8 = 8;
const CS2: u8 = 16;
const CS3: u8 = 24;
const CS4: u8 = 32;
const CS5: u8 = 40;
const CS6: u8 = 48;
const CS7: u8 = 56;

/// The whole link, in the unit of its parts.
const WHOLE: i64 = 1 << 16;
// tc-cake(8): the thresholds of bulk, video and voice
const BULK: i64 = WHOLE / 16;
const VIDEO: i64 = WHOLE / 2;
const VOICE: i64 = WHOLE / 4;
/// The least part of best effort: what these leave.
const REST: i64 = WHOLE - BULK - VIDEO - VOICE;
/// Most tins.
const MOST: usize = 8;
/// The thresholds of eight tins: each 7/8 of the one before.
// The `thresh` that tc shows of them
const EIGHTHS: [i64; MOST] = {
    let mut thresholds = [WHOLE; MOST];
    let mut tin = 1;
    while tin < MOST {
        thresholds[tin] = thresholds[tin - 1] * 7 / 8;
        tin += 1;
    }
    thresholds
};

impl Tins {
    /// The thresholds of its tins, the one that is served last first.
    fn thresholds(self) -> &'static [i64] {
        match self {
            Self::Class => &[WHOLE, VOICE],
            Self::Besteffort => &[WHOLE],
            Self::Diffserv3 => &[WHOLE, BULK, VOICE],
            Self::Diffserv4 => &[WHOLE, BULK, VIDEO, VOICE],
            Self::Diffserv8 | Self::Precedence => &EIGHTHS,
        }
    }

    /// Whether it goes by the DSCP of packets.
    pub(super) const fn go_by_dscp(self) -> bool {
        !matches!(self, Self::Class | Self::Besteffort)
    }

    /// The tin of a packet that is real-rate or not and has this codepoint.
    // tc-cake(8); of eight tins, the classes that its authors name: from background (LE) and high throughput over standard, video streaming,
    // transactions, shells and minimum latency to network control. Codepoints 2 and 4 were throughput and delay in the TOS of RFC 1349.
    pub(super) fn tin_of(self, is_real_rate: bool, dscp: u8) -> usize {
        match (self, dscp & 63) {
            (Self::Class, _) => usize::from(is_real_rate),
            (Self::Besteffort, _) => 0,
            (Self::Diffserv3 | Self::Diffserv4, LE | CS1) => 1,
            (Self::Diffserv3, CS6 | CS7 | EF | VA | 4) => 2,
            (Self::Diffserv4, CS4 | CS5 | CS6 | CS7 | EF | VA) => 3,
            (Self::Diffserv4, CS2 | 18 | 20 | 22 | CS3 | 26 | 28 | 30 | 34 | 36 | 38 | 4) => 2,
            (Self::Diffserv3 | Self::Diffserv4, _) => 0,
            (Self::Precedence, dscp) => usize::from(dscp >> 3),
            (Self::Diffserv8, dscp) => match dscp {
                LE => 0,
                CS1 | 10 | 12 | 14 | 2 => 1,
                CS3 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
                18 | 20 | 22 | 4 => 4,
                CS2 => 5,
                CS4 | CS5 | VA | EF => 6,
                CS6 | CS7 => 7,
                _ => 2,
            },
        }
    }
}

/// What is known of a tin when one is chosen.
#[derive(Clone, Debug)]
struct Share {
    threshold: i64,
    /// Its least part.
    least: i64,
    /// In 1/65536 of a byte.
    balance: i64,
}

/// The balances of tins.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    all: Vec<Share>,
    /// Whether the last is voice, or real-rate flows.
    has_voice: bool,
}

impl Shares {
    pub fn new(tins: Tins) -> Self {
        let thresholds = tins.thresholds();
        let sum = thresholds.iter().sum::<i64>();
        let are_eight = thresholds.len() == MOST;
        let least = |(tin, threshold)| match tin {
            _ if are_eight => threshold * WHOLE / sum,
            0 => REST,
            _ => threshold,
        };
        let share = |(tin, &threshold)| Share { threshold, least: least((tin, threshold)), balance: 0 };
        let has_voice = thresholds.len() > 1 && !are_eight;
        Self { all: thresholds.iter().enumerate().map(share).collect(), has_voice }
    }

    pub const fn tins(&self) -> usize {
        self.all.len()
    }

    /// The part of `rate` that a tin has.
    pub fn rate(&self, tin: usize, rate: Rate) -> Rate {
        let bit = u128::from(rate.as_bit()) * self.all[tin].threshold as u128 / WHOLE as u128;
        // No more than all of it.
        Rate::from_bit(bit as u64)
    }

    /// Forgets what tins owe: none of them has packets.
    pub fn forgive(&mut self) {
        self.all.iter_mut().for_each(|share| share.balance = share.balance.max(0));
    }

    /// The tin that is served next of those that have `queues` with packets; the first if none has.
    pub fn pick(&self, queues: impl Fn(usize) -> u64) -> usize {
        let busy = || self.all.iter().enumerate().filter(|(tin, _)| queues(*tin) > 0);
        let within = busy().rev().find(|(_, share)| share.balance >= 0);
        within.or_else(|| busy().max_by(|(_, a), (_, b)| a.lag(b))).map_or(0, |(tin, _)| tin)
    }

    /// A packet has left `served`, and of each tin so many `queues` have packets.
    pub fn pay(&mut self, served: usize, size: Bytes, queues: impl Fn(usize) -> u64) {
        // The queue that was served may be empty now.
        let parts = self.parts(|tin| queues(tin).max(u64::from(tin == served)));
        let bytes = size.get() as i64;
        for (tin, (share, part)) in self.all.iter_mut().zip(parts).enumerate() {
            if queues(tin) == 0 {
                share.balance = share.balance.min(0);
            }
            share.balance += bytes * part;
            if tin == served {
                share.balance = (share.balance - bytes * WHOLE).max(-bytes * WHOLE);
            }
        }
    }

    /// The parts of tins, of those without `queues` that have packets their thresholds.
    fn parts(&self, queues: impl Fn(usize) -> u64) -> [i64; MOST] {
        let busy = || self.all.iter().enumerate().filter(|(tin, _)| queues(*tin) > 0);
        let mut room = WHOLE - busy().map(|(_, share)| share.least).sum::<i64>();
        let voice = self.tins() - 1;
        let alike = || queues(voice) as i64 * WHOLE / busy().map(|(tin, _)| queues(tin)).sum::<u64>() as i64;
        let mut parts = [0; MOST];
        for (part, share) in parts.iter_mut().zip(&self.all) {
            *part = share.threshold;
        }
        for (tin, share) in busy().rev() {
            let is_voice = self.has_voice && tin == voice;
            let threshold = if is_voice { share.threshold.max(alike()) } else { share.threshold };
            let more = (threshold - share.least).clamp(0, room.max(0));
            parts[tin] = share.least + more;
            room -= more;
        }
        parts
    }
}

impl Share {
    /// Compares how soon two have a balance of zero.
    fn lag(&self, other: &Self) -> core::cmp::Ordering {
        let [a, b] = [(self, other), (other, self)];
        let cross = |(of, by): (&Self, &Self)| i128::from(of.balance) * i128::from(by.threshold);
        cross(a).cmp(&cross(b))
    }
}
