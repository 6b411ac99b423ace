//! The sets of tins, and each tin's part of the link.

use crate::choice;
use crate::units::Rate;

choice! {
    /// The set of tins.
    pub enum Tins {
        /// One for real-rate flows, one for all others.
        Class = "class",
        /// One for all flows.
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

/// Codepoints of RFC 2474, 3246, 5865 and 8622. The codepoints AFxy of RFC 2597 are 8x + 2y.
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
pub(super) const WHOLE: i64 = 1 << 16;
// tc-cake(8): the thresholds of bulk, video and voice.
const BULK: i64 = WHOLE / 16;
const VIDEO: i64 = WHOLE / 2;
const VOICE: i64 = WHOLE / 4;
/// The minimum part of best effort: the rest.
const REST: i64 = WHOLE - BULK - VIDEO - VOICE;
/// The maximum number of tins.
const MOST: usize = 8;
/// The thresholds of eight tins, 7/8 of the one before each: the `thresh` that tc shows.
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
    /// The thresholds of the tins, the one that is served last first.
    fn thresholds(self) -> &'static [i64] {
        match self {
            Self::Class => &[WHOLE, VOICE],
            Self::Besteffort => &[WHOLE],
            Self::Diffserv3 => &[WHOLE, BULK, VOICE],
            Self::Diffserv4 => &[WHOLE, BULK, VIDEO, VOICE],
            Self::Diffserv8 | Self::Precedence => &EIGHTHS,
        }
    }

    /// The share of each tin before any has packets.
    pub(super) fn shares(self) -> impl Iterator<Item = Share> {
        let thresholds = self.thresholds();
        let sum = thresholds.iter().sum::<i64>();
        let are_eight = thresholds.len() == MOST;
        thresholds.iter().enumerate().map(move |(tin, &threshold)| Share {
            threshold,
            least: match tin {
                _ if are_eight => threshold * WHOLE / sum,
                0 => REST,
                _ => threshold,
            },
            is_voice: !are_eight && tin > 0 && tin + 1 == thresholds.len(),
            balance: 0,
        })
    }

    /// Whether tins depend on the DSCP of packets.
    pub(super) const fn go_by_dscp(self) -> bool {
        !matches!(self, Self::Class | Self::Besteffort)
    }

    /// The tin of a packet by class and codepoint (tc-cake(8)). The eight tins are the classes that its
    /// authors name: from background (LE) and high throughput over standard, video streaming, transactions,
    /// shells and minimum latency to network control. Codepoints 2 and 4 were throughput and delay in the TOS
    /// of RFC 1349.
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

/// A tin's part of the link, and its balance.
#[derive(Clone, Debug)]
pub(super) struct Share {
    pub threshold: i64,
    /// The minimum part.
    pub least: i64,
    /// Whether it is the tin of voice, or of real-rate flows.
    pub is_voice: bool,
    /// The balance in 1/65536 of a byte.
    pub balance: i64,
}

impl Share {
    /// The tin's part of `rate`.
    pub fn rate(&self, rate: Rate) -> Rate {
        let bit = u128::from(rate.as_bit()) * self.threshold as u128 / WHOLE as u128;
        // The part is at most the whole.
        Rate::from_bit(bit as u64)
    }
}
