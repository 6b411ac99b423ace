//! Whether a flow answers to losses, judged by losses that it has anyway.
//!
//! For a link whose discipline gives each flow its fair share and drops what exceeds it. There, a flow that
//! reduces its rate on losses soon sends little more than its share, and an unresponsive flow keeps losing
//! all that exceeds it. No packet is dropped for a test, unlike in [`responsiveness`](super::responsiveness).
//!
//! Packets are counted over *periods* of at least a second and six packets. A flow *ignores* the losses of a
//! period if it loses more than a tenth and sends more than three times the rate that the law of Padhye,
//! Firoiu, Towsley, Kurose 1998, eq. 30, allows at the smallest plausible round-trip time and timeout: at
//! such losses TCP mostly waits for its timer, whatever its round-trip time. Three periods in a row prove
//! that a flow ignores losses; a starting TCP flow loses much in one or two. In all other periods the flow
//! *follows* its share. Five of these in a row, with at least two losses, prove that it answers.
//!
//! While other routers limit a flow it loses little here whatever it does. Periods with reports about the
//! flow therefore prove nothing in its favour, and a verdict against it lasts 20 s, then 40 s, at most 160 s,
//! after which nothing is known. If the flow declares itself unresponsive, the verdict lasts 160 s at once.
//!
//! Without a verdict, a flow is what it declares itself to be, but not adaptive for 20 s after the last
//! report about it: its packets may be lost further on only.
//!
//! Limits: a flow that exceeds its share by up to a tenth passes as one that answers. So does a slow flow at
//! larger losses, as the law is lenient to slow flows: at 10 packets per second up to a fifth. Several
//! connections that form one flow here may fail.
//!
//! Cost: O(1) per packet and per epoch; 32 bytes per flow.

use super::responsiveness::{EPOCH, most_packets_per_second};
use crate::units::Span;

/// The shortest period, in epochs: longer than the longest round trip with its queues.
const EPOCHS: u16 = (Span::from_secs(1).as_nanos() / EPOCH.as_nanos()) as u16;
/// The minimum number of packets in a period. Chosen: with fewer, one or two losses decide.
const PACKETS: u32 = 6;
/// The loss rate above which a flow ignores losses. Chosen: twice the rate that counts as regular in reports;
/// TCP with windows of a few packets loses about half of this rate.
const MUCH: f64 = 0.1;
/// The tolerated ratio of the sending rate to the law. Chosen as in exams: with selective acknowledgements a
/// sender is faster than the law's Reno.
const LENIENCY: f64 = 3.0;
/// The periods in a row that prove that a flow ignores losses.
const IGNORED: u16 = 3;
/// The periods in a row that prove that a flow answers, and the losses in them.
const FOLLOWED: u16 = 5;
const LOSSES: u32 = 2;
/// The duration of a verdict of ignoring, in epochs: 20 s, doubled up to three times. Chosen: the flow then
/// goes unchecked for some 3 s, an eighth of the time at most.
const TERM: u16 = 40;
const DOUBLINGS: u16 = 3;

/// The verdict on a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    /// None; its declaration counts.
    Nothing,
    /// The flow reduces its rate on losses.
    Answers,
    /// The flow does not reduce its rate on losses.
    Ignores,
}

/// The state of one flow.
#[derive(Clone, Debug)]
pub struct Answers {
    says_adaptive: bool,
    known: Known,
    /// The epochs left of a verdict of ignoring.
    left: u16,
    /// Whether other routers reported the flow in this period.
    reported: bool,
    /// The epochs left of the suspicion after such a report.
    suspected: u16,
    /// The period so far: epochs, packets that arrived, and packets of these that were lost here.
    epochs: u16,
    packets: u32,
    lost: u32,
    /// The number of periods in a row with ignored losses.
    ignored: u16,
    /// The number of periods in a row without ignored losses, and the flow's losses in them.
    followed: u16,
    followed_losses: u32,
    /// The number of verdicts of ignoring so far.
    times: u16,
}

impl Answers {
    /// A flow for which only its declaration is known.
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

    /// Whether the flow reduces its rate on losses, as far as is known.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        match self.known {
            Known::Nothing => self.says_adaptive && self.suspected == 0,
            Known::Answers => true,
            Known::Ignores => false,
        }
    }

    /// Whether there is a verdict.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        !matches!(self.known, Known::Nothing)
    }

    /// Counts a packet that arrived.
    #[inline]
    pub const fn arrived(&mut self) {
        self.packets = self.packets.saturating_add(1);
    }

    /// Counts the loss of a packet that has been counted as arrived.
    pub const fn lost(&mut self) {
        self.lost = self.lost.saturating_add(1);
    }

    /// Notes that a downstream router has reported losses of the flow.
    pub const fn reported(&mut self) {
        self.reported = true;
        self.suspected = TERM;
    }

    /// Ends an epoch.
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

    /// Ends a period.
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

    /// One epoch with `packets` packets, of which `lost` are lost.
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
        // A flow whose TCP overshoots in slow start has two such periods at most.
        let mut flow = Answers::new(true);
        for _ in 0..10 {
            epochs(&mut flow, 4, 500, 150);
            assert_eq!(epochs(&mut flow, 2, 50, 0), (true, false));
        }
    }

    #[test]
    fn losses_that_tcp_has_prove_nothing_against_it() {
        // A loss rate of a tenth.
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
        // No verdict without losses, if others limit the flow, or after a period with many losses.
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
        // The verdict lasts 20 s, 40 s, and so on.
        [40, 80, 160, 320, 320].into_iter().for_each(|term| proved(6, term));
        // A flow that declares itself unresponsive: 160 s.
        let mut flow = Answers::new(false);
        epochs(&mut flow, 6, 50, 15);
        assert_eq!(epochs(&mut flow, 319, 50, 0), (false, true));
        assert_eq!(epoch(&mut flow, 50, 0), (false, false));
        // A flow that answered and stops doing so.
        assert_eq!(epochs(&mut flow, 10, 50, 1), (true, true));
        assert_eq!(epochs(&mut flow, 6, 50, 15), (false, true));
    }

    #[test]
    fn a_period_has_at_least_six_packets() {
        // One packet in an epoch, always lost: three periods are 18 epochs.
        let mut flow = Answers::new(true);
        assert_eq!(epochs(&mut flow, 17, 1, 1), (true, false));
        assert_eq!(epoch(&mut flow, 1, 1), (false, true));
        // Silence before the period does not count, and proves nothing.
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
