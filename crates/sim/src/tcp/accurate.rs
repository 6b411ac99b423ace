//! Accurate ECN: the receiver counts marked packets, and each of its segments carries the count.
//!
//! Briscoe, Kühlewind, Scheffenegger, "More accurate ECN feedback in TCP", RFC 9768: negotiation in the
//! handshake (section 3.1), the counter of marked packets, r.cep, and its last three bits in the flags AE,
//! CWR and ECE, which then form the field ACE (3.2.2), the times at which a receiver acknowledges
//! (3.2.2.5.1), and a sender's interpretation of the field (3.2.2.5.2 and appendix A.2). A lost ACK loses no
//! information, since the next one repeats the count.
//!
//! Readings:
//! - *The safest likely case.* The field is ambiguous if more than seven marks may lie between two ACKs that
//!   arrive. Appendix A.2.1 takes the maximum number of marks that the field allows for the number of
//!   acknowledged segments, and proposes to multiply it by the prevailing share of marks p. That is done
//!   here, since with half of the ACKs lost a path would otherwise look wholly marked:
//!
//! ```text
//! d.cep  = (ACE - s.cep) mod 8
//! likely = p newlyAckedPkt + 2 sqrt(p (1 - p) newlyAckedPkt)
//! dSafer = d.cep + 8 floor((likely - d.cep) / 8), if likely >= d.cep + 8
//! ```
//!
//! with two standard deviations above the mean, where the appendix has only the mean. With half of the ACKs
//! lost, and delayed ACKs, the mean alone misses up to 13 % of the marks, the maximum of the field invents up
//! to 25 times as many, and this formula is within 1 %. Before the first mark p is 0: what a congestion control
//! assumes at first, such as Prague's alpha of 1, is no share that prevails.
//! - Segments have one size, so packets stand for bytes (appendix A.3).
//! - An ACK that acknowledges nothing new is taken for superseded; timestamps are not examined. The next one
//!   repeats its content.
//!
//! Left out: the option of byte counters (3.2.3), which is optional for a sender; tests for a mangled ECN field
//! and for a counter that is zeroed after the handshake (3.2.2.3, 3.2.2.4), which no network of the model does;
//! a client's pure ACK of the SYN/ACK (3.2.2.1), since data follow at once. A server reads it
//! ([`Sender::confirm`](super::Sender::confirm)).
//!
//! Cost: O(1) per ACK; 4 bytes at the sender; 8 and a flag at the receiver, which stores the count that it
//! last sent.

use apportion_core::Ecn;

use super::segment::Flags;

/// Section 3.2.1: the initial count of both ends.
const INITIAL: u32 = 5;
/// Appendix A.2.1.
const DIVACE: u32 = 8;

/// Section 3.1.1: the flags of a SYN that requests it.
pub const OFFER: Flags = Flags::ACE;

/// Table 2: the flags of a SYN/ACK that grants it, which report the ECN field of the SYN.
#[must_use]
pub fn grant(syn: Ecn) -> Flags {
    match syn {
        Ecn::NotEct => Flags::CWR,
        Ecn::Ect1 => Flags::CWR | Flags::ECE,
        Ecn::Ect0 => Flags::AE,
        Ecn::Ce => Flags::AE | Flags::CWR,
    }
}

/// The result of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feedback {
    /// No ECN.
    None,
    /// RFC 3168.
    Classic,
    /// RFC 9768.
    Accurate,
}

impl Feedback {
    /// Table 2: the result of a SYN/ACK with these flags, in answer to a SYN that requested accurate
    /// feedback.
    #[must_use]
    pub fn granted(answer: Flags) -> Self {
        match (answer.has(Flags::AE), answer.has(Flags::CWR), answer.has(Flags::ECE)) {
            (false, false, false) => Self::None,
            (false, false, true) => Self::Classic,
            // A server that reflects unknown flags.
            (true, true, true) => Self::None,
            // (1, 0, 1) is reserved: section 3.1.3.
            _ => Self::Accurate,
        }
    }
}

/// Table 4: s.cep of a server whose SYN/ACK is acknowledged by a pure ACK with these flags, which report the ECN
/// field of the SYN/ACK; none if the client has no Accurate ECN, or the network clears the flags.
#[must_use]
pub fn confirmed(ack: Flags) -> Option<Marks> {
    let mut marks = Marks::NONE;
    if ack.ace() == grant(Ecn::Ce).ace() {
        marks.count();
    }
    (ack.ace() != 0).then_some(marks)
}

/// r.cep: the number of marked packets that arrived, modulo 2^32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks(u32);

impl Default for Marks {
    fn default() -> Self {
        Self(INITIAL)
    }
}

impl Marks {
    /// The field of an end that receives no markable packets.
    pub const NONE: Self = Self(INITIAL);

    /// Counts a marked packet.
    pub fn count(&mut self) {
        self.0 = self.0.wrapping_add(1);
    }

    /// The number of marks since `before`.
    #[must_use]
    pub fn since(self, before: Self) -> u32 {
        self.0.wrapping_sub(before.0)
    }

    /// Section 3.2.2.2: ACE.
    #[must_use]
    pub fn field(self) -> Flags {
        Flags::from_ace((self.0 % DIVACE) as u8)
    }

    /// Updates s.cep of the sender with an ACK with these flags, which newly acknowledges `segments`
    /// segments, and returns the number of new marks. `prevailing` is the recent share of marks, 0 to 1.
    pub fn decode(&mut self, flags: Flags, segments: u32, prevailing: f64) -> u32 {
        if segments == 0 {
            return 0;
        }
        let prevailing = if *self == Self::NONE { 0.0 } else { prevailing };
        let least = (u32::from(flags.ace()) + DIVACE - self.0 % DIVACE) % DIVACE;
        let marks = least + DIVACE * cycles(least, segments, prevailing);
        self.0 = self.0.wrapping_add(marks);
        marks
    }
}

/// The number of times that the field has likely wrapped around, if it shows at least `least` of `segments`
/// segments.
fn cycles(least: u32, segments: u32, prevailing: f64) -> u32 {
    if segments < least + DIVACE {
        return 0;
    }
    let (n, p) = (f64::from(segments), prevailing.clamp(0.0, 1.0));
    let likely = (p * n + 2.0 * (p * (1.0 - p) * n).sqrt()).min(n);
    // Rounded down, and none if it is below `least`.
    ((likely - f64::from(least)) / f64::from(DIVACE)) as u32
}

#[cfg(test)]
mod tests {
    use apportion_core::random::Stream;

    use super::*;

    /// One decoding from a count of 13, after eight marks.
    fn decoded(ace: u8, segments: u32, prevailing: f64) -> u32 {
        Marks(INITIAL + DIVACE).decode(Flags::from_ace(ace), segments, prevailing)
    }

    #[test]
    fn the_field_counts_from_five_and_comes_round() {
        let mut marks = Marks::default();
        let fields: Vec<u8> = (0..10)
            .map(|_| {
                marks.count();
                marks.field().ace()
            })
            .collect();
        assert_eq!(fields, [6, 7, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert_eq!((Marks::NONE.field().ace(), Marks::NONE.field()), (5, Flags::AE | Flags::ECE));
        assert_eq!(marks.since(Marks::default()), 10);
    }

    #[test]
    fn the_examples_of_the_appendix_where_all_is_marked() {
        // 9 segments and 2 more: 2 are safe; of 10, all could have been marked.
        assert_eq!([decoded(7, 9, 1.0), decoded(7, 10, 1.0)], [2, 10]);
        // 9 segments, of which the field shows one: 9.
        assert_eq!(decoded(6, 9, 1.0), 9);
        // More marks than segments: the field is right.
        assert_eq!(decoded(4, 2, 1.0), 7);
        // Nothing new: superseded.
        assert_eq!(decoded(7, 0, 1.0), 0);
    }

    #[test]
    fn a_jump_that_is_unlikely_is_not_assumed() {
        // 12 segments at 10 %: 1.2 + 2.1 marks at most, not 9. At 60 %: 7.2 + 3.4, so 9.
        assert_eq!([decoded(6, 12, 0.1), decoded(6, 12, 0.6)], [1, 9]);
        assert_eq!([decoded(5, 40, 0.0), decoded(5, 40, 0.5)], [0, 24]);
    }

    #[test]
    fn before_the_first_mark_none_is_assumed() {
        let mut marks = Marks::NONE;
        let mut decoded = |ace, segments| marks.decode(Flags::from_ace(ace), segments, 1.0);
        assert_eq!([decoded(5, 16), decoded(6, 10), decoded(6, 16)], [0, 1, 16]);
    }

    #[test]
    fn a_server_grants_what_the_table_says() {
        let granted = |bits: &[Flags]| Feedback::granted(bits.iter().fold(Flags::ACK, |all, &bit| all | bit));
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            assert_eq!(granted(&[grant(ecn)]), Feedback::Accurate, "{ecn:?}");
        }
        assert_eq!(granted(&[]), Feedback::None);
        assert_eq!(granted(&[Flags::ECE]), Feedback::Classic);
        assert_eq!(granted(&[Flags::AE, Flags::ECE]), Feedback::Accurate);
        assert_eq!(granted(&[Flags::AE, Flags::CWR, Flags::ECE]), Feedback::None);
    }

    #[test]
    fn an_ack_of_a_syn_ack_says_how_it_arrived() {
        let marks = |ace| confirmed(Flags::ACK | Flags::from_ace(ace)).map(|marks| marks.since(Marks::NONE));
        assert_eq!(
            [0, 1, 2, 3, 4, 5, 6, 7].map(marks),
            [None, Some(0), Some(0), Some(0), Some(0), Some(0), Some(1), Some(0)]
        );
    }

    /// Segments with these marks arrive at a receiver that acknowledges each `every`th, over a path that
    /// loses the share `lost` of the ACKs. Returns the marked segments and the sender's count, up to the last
    /// ACK that arrived, and whether each count was right.
    fn model(share: f64, every: u32, lost: f64, seed: u64) -> (u32, u32, bool) {
        let mut random = Stream::new(seed, "accurate");
        let (mut receiver, mut sender) = (Marks::default(), Marks::default());
        let (mut sent, mut seen, mut was_right) = (0, 0, true);
        let (mut segments, mut marked) = (0, 0);
        for n in 1..=100_000 {
            segments += 1;
            if random.chance(share) {
                receiver.count();
                marked += 1;
            }
            if n % every == 0 && !random.chance(lost) {
                let decoded = sender.decode(receiver.field(), segments, share);
                // Brute force: among all counts that the field allows, one is right.
                was_right &= decoded == marked || marked >= DIVACE || segments >= DIVACE;
                assert_eq!(decoded % DIVACE, marked % DIVACE, "{decoded} for {marked}");
                (sent, seen) = (sent + marked, seen + decoded);
                (segments, marked) = (0, 0);
            }
        }
        (sent, seen, was_right)
    }

    #[test]
    fn the_count_survives_delayed_and_lost_acks() {
        for share in [0.01, 0.1, 0.5, 0.9, 1.0] {
            for every in [1, 2, 4] {
                for lost in [0.0, 0.5, 0.8] {
                    let (marked, seen, was_right) = model(share, every, lost, 7);
                    let off = f64::from(seen) / f64::from(marked) - 1.0;
                    assert!(was_right, "{share} {every} {lost}: wrong without a jump of eight segments");
                    // With four of five ACKs lost the field wraps around between two of them more often than
                    // not.
                    let may_be_off = if lost > 0.5 { 0.08 } else { 0.015 };
                    assert!(off.abs() < may_be_off, "{share} {every} {lost}: {off}");
                }
            }
        }
    }
}
