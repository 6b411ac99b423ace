//! Whether a flow answers to losses, from those that it has anyway.
//!
//! For a link whose discipline gives each flow its fair share and drops what exceeds it. There a flow that sends less when
//! packets are lost soon sends little more than its share, and one that does not goes on losing all that it sends above. No
//! packet is dropped for a test, unlike in [`responsiveness`](super::responsiveness).
//!
//! Packets are counted over *periods* of at least a second and six packets. A flow *ignores* the losses of a period if it
//! loses more than a tenth and sends more than three times what the law of Padhye, Firoiu, Towsley, Kurose 1998, eq. 30,
//! allows at the smallest plausible round-trip time and timeout: with such losses TCP mostly waits for its timer, whatever
//! its round-trip time. Three periods in a row prove that it does not answer; TCP that starts loses much in one or two.
//! It *follows* its share in a period in which it does not. Five in a row, in which it lost packets at least twice, prove that it
//! answers.
//!
//! While other routers hold a flow it loses little whatever it does. So periods in which reports about it came prove nothing for it, and
//! what was proved against it stands for 20 s, then 40 s, at most 160 s, and then nothing is known of it. If the flow says of itself that it does not answer, it stands
//! for 160 s at once.
//!
//! What nothing is proved of is what it says, or not adaptive for 20 s after the last report about it, as what it sends may be lost
//! further on only.
//!
//! Limits: one that exceeds its share by up to a tenth passes for one that answers, and so does
//! a slow one at larger losses, as the law is lenient to slow flows: at 10 packets per second up to a fifth. Several
//! connections that are one flow here may fail.
//!
//! Cost: O(1) per packet and per epoch; 32 bytes per flow.

use super::responsiveness::{EPOCH, most_packets_per_second};
use crate::units::Span;

/// The shortest period, in epochs: longer than the longest round trip with its queues.
const EPOCHS: u16 = (Span::from_secs(1).as_nanos() / EPOCH.as_nanos()) as u16;
/// The fewest packets of a period. Chosen: with fewer, a loss or two decide.
const PACKETS: u32 = 6;
/// Share of its packets that a flow loses which does not answer. Chosen: twice what counts as regular in reports; TCP with windows
/// of some packets loses about half of it.
const MUCH: f64 = 0.1;
/// How many times as fast as the law a sender may be. Chosen as in exams: with selective acknowledgements it is
/// faster than the law's Reno.
const LENIENCY: f64 = 3.0;
/// Periods in a row that prove that it does not answer.
const IGNORED: u16 = 3;
/// Periods in a row that prove that it answers, and the losses in them.
const FOLLOWED: u16 = 5;
const LOSSES: u32 = 2;
/// Epochs for which it counts as one that does not, 20 s, doubled up to three times. Chosen: it goes unchecked for some 3 s
/// afterwards, an eighth of the time at most.
const TERM: u16 = 40;
const DOUBLINGS: u16 = 3;

/// What is known of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// Nothing but what it says.
    Nothing,
    /// It sends less when packets are lost.
    Answers,
    /// It does not.
    Ignores,
}

/// One flow.
#[derive(Clone, Debug)]
pub struct Answers {
    says_adaptive: bool,
    known: Known,
    /// Epochs left of the time for which it counts as one that ignores losses.
    left: u16,
    /// Whether other routers reported it in this period.
    reported: bool,
    /// Epochs left of the time after such a report.
    suspected: u16,
    /// The period so far: epochs, packets that arrived, packets of these that were lost here.
    epochs: u16,
    packets: u32,
    lost: u32,
    /// Periods in a row in which it ignored losses.
    ignored: u16,
    /// Periods in a row in which it did not, and its losses in them.
    followed: u16,
    followed_losses: u32,
    /// How often it was found to ignore losses.
    times: u16,
}

impl Answers {
    /// Of a flow of which it is only known what it says of itself.
    #[must_use]
    pub const fn new(says_adaptive: bool) -> Self {
        Self {
            says_adaptive,
            known: Known::Nothing,
            left: 0,
            reported: false,
            suspected: 0,
            epochs: 0,
            packets: 0,
            lost: 0,
            ignored: 0,
            followed: 0,
            followed_losses: 0,
            times: 0,
        }
    }

    /// Whether it sends less when packets are lost, as far as is known.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        match self.known {
            Known::Nothing => self.says_adaptive && self.suspected == 0,
            Known::Answers => true,
            Known::Ignores => false,
        }
    }

    /// Whether more is known than what it says.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        !matches!(self.known, Known::Nothing)
    }

    /// A packet has arrived.
    #[inline]
    pub const fn arrived(&mut self) {
        self.packets = self.packets.saturating_add(1);
    }

    /// One that has arrived was lost here.
    pub const fn lost(&mut self) {
        self.lost = self.lost.saturating_add(1);
    }

    /// A router further on has reported what it lost of the flow.
    pub const fn reported(&mut self) {
        self.reported = true;
        self.suspected = TERM;
    }

    /// An epoch is over.
    pub fn end_epoch(&mut self) {
        self.suspected = self.suspected.saturating_sub(1);
        if self.known == Known::Ignores {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                *self = Self { times: self.times, ..Self::new(self.says_adaptive) };
            }
            self.begin_period();
            return;
        }
        if self.packets == 0 {
            return;
        }
        self.epochs = self.epochs.saturating_add(1);
        if self.epochs >= EPOCHS && self.packets >= PACKETS {
            self.judge();
            self.begin_period();
        }
    }

    const fn begin_period(&mut self) {
        (self.epochs, self.packets, self.lost, self.reported) = (0, 0, 0, false);
    }

    /// A period is over.
    fn judge(&mut self) {
        let share = (f64::from(self.lost) / f64::from(self.packets)).min(1.0);
        let seconds = f64::from(self.epochs) * EPOCH.as_secs_f64();
        let allowed = LENIENCY * seconds * most_packets_per_second(share);
        if share > MUCH && f64::from(self.packets) > allowed {
            (self.followed, self.followed_losses) = (0, 0);
            self.ignored += 1;
            if self.ignored == IGNORED {
                self.known = Known::Ignores;
                self.left = TERM << if self.says_adaptive { self.times.min(DOUBLINGS) } else { DOUBLINGS };
                self.times = self.times.saturating_add(1);
            }
            return;
        }
        self.ignored = 0;
        if self.reported {
            (self.followed, self.followed_losses) = (0, 0);
            return;
        }
        self.followed = self.followed.saturating_add(1);
        self.followed_losses = self.followed_losses.saturating_add(self.lost);
        if self.followed >= FOLLOWED && self.followed_losses >= LOSSES {
            self.known = Known::Answers;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One epoch with so many packets, of which some are lost.
    fn epoch(flow: &mut Answers, packets: u32, lost: u32) -> (bool, bool) {
        (0..packets).for_each(|_| flow.arrived());
        (0..lost).for_each(|_| flow.lost());
        flow.end_epoch();
        (flow.is_adaptive(), flow.is_known())
    }

    fn epochs(flow: &mut Answers, count: u32, packets: u32, lost: u32) -> (bool, bool) {
        (0..count).fold((false, false), |_, _| epoch(flow, packets, lost))
    }

    #[test]
    fn three_periods_of_much_loss_prove_that_it_does_not_answer() {
        let mut flow = Answers::new(true);
        assert_eq!(epochs(&mut flow, 5, 50, 15), (true, false));
        assert_eq!(epoch(&mut flow, 50, 15), (false, true), "after 3 s");
        // One that TCP's slow start overshoots has two at most.
        let mut flow = Answers::new(true);
        for _ in 0..10 {
            epochs(&mut flow, 4, 500, 150);
            assert_eq!(epochs(&mut flow, 2, 50, 0), (true, false));
        }
    }

    #[test]
    fn losses_that_tcp_has_prove_nothing_against_it() {
        // A tenth.
        assert!(epochs(&mut Answers::new(true), 100, 500, 50).0);
        // 40 % of 3 packets in an epoch: 3 · 2.0 a second are allowed, 6 a period.
        assert!(epochs(&mut Answers::new(true), 100, 3, 1).0);
        assert!(!epochs(&mut Answers::new(true), 100, 30, 12).0);
    }

    #[test]
    fn five_periods_with_few_losses_prove_that_it_answers() {
        let mut flow = Answers::new(false);
        assert_eq!(epochs(&mut flow, 9, 50, 1), (false, false));
        assert_eq!(epoch(&mut flow, 50, 1), (true, true));
        // Not without losses, nor if others hold it, nor after a period with many.
        assert_eq!(epochs(&mut Answers::new(false), 100, 50, 0), (false, false));
        let mut flow = Answers::new(false);
        for _ in 0..100 {
            flow.reported();
            assert_eq!(epochs(&mut flow, 2, 50, 1), (false, false));
        }
        for _ in 0..100 {
            epochs(&mut flow, 8, 50, 1);
            assert_eq!(epochs(&mut flow, 2, 50, 20), (false, false));
        }
    }

    #[test]
    fn what_is_proved_is_not_for_ever() {
        let mut flow = Answers::new(true);
        let mut proved = |epochs_needed: u32, term: u32| {
            assert!(!epochs(&mut flow, epochs_needed, 50, 15).0);
            assert!(!epochs(&mut flow, term - 1, 50, 0).0);
            assert_eq!(epoch(&mut flow, 50, 0), (true, false));
        };
        // 20 s, 40 s, and so on.
        [40, 80, 160, 320, 320].into_iter().for_each(|term| proved(6, term));
        // Who says so of itself: 160 s.
        let mut flow = Answers::new(false);
        epochs(&mut flow, 6, 50, 15);
        assert_eq!(epochs(&mut flow, 319, 50, 0), (false, true));
        assert_eq!(epoch(&mut flow, 50, 0), (false, false));
        // One that answered and stops to do so.
        assert_eq!(epochs(&mut flow, 10, 50, 1), (true, true));
        assert_eq!(epochs(&mut flow, 6, 50, 15), (false, true));
    }

    #[test]
    fn a_period_has_at_least_six_packets() {
        // One packet in an epoch, always lost: three periods are 18 epochs.
        let mut flow = Answers::new(true);
        assert_eq!(epochs(&mut flow, 17, 1, 1), (true, false));
        assert_eq!(epoch(&mut flow, 1, 1), (false, true));
        // Silence before it is no part of it, and proves nothing.
        let mut flow = Answers::new(false);
        assert_eq!(epochs(&mut flow, 100, 0, 0), (false, false));
    }

    #[test]
    fn a_report_makes_it_a_suspect_for_a_time() {
        let mut flow = Answers::new(true);
        flow.reported();
        assert_eq!(epochs(&mut flow, 39, 50, 0), (false, false));
        assert_eq!(epoch(&mut flow, 50, 0), (true, false));
    }

    #[test]
    fn the_state_is_as_small_as_it_says() {
        assert!(size_of::<Answers>() <= 32, "{}", size_of::<Answers>());
    }
}
