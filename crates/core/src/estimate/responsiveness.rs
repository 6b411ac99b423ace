//! Whether a flow reduces its rate when its packets are lost, tested by dropping some of them.
//!
//! Tamura, Tobe, Tokuda, "SF-FC", NOSSDAV 2000, section 6, asks for such a test and gives no method. This one
//! has two parts.
//!
//! An *exam*: 35 % of the packets are dropped for 3 s, in which no sender with a retransmission timeout (RFC
//! 6298) keeps its rate. A flow fails if it sends, after the first second, more than half of its rate before,
//! more than is harmless, and more than three times the rate that the law of Padhye, Firoiu, Towsley, Kurose
//! 1998, eq. 30, allows at the smallest plausible round-trip time and timeout. Losses for other reasons count
//! as well. A failure proves that a flow does not slow down; a pass may be chance, since bursts end by
//! themselves.
//!
//! A *trial*: five of ten blocks of 1.5 s are drawn at random, and in these 20 % of the packets are dropped,
//! whatever the flow does. The draw does not affect a flow that does not react to losses, however bursty the
//! flow is, so every order of its ten rates is equally likely (a permutation test: Fisher 1935; Mann, Whitney
//! 1947, for the statistic): with a probability of at most 7/252 the rates in dosed blocks are so low that it
//! passes. Round-trip times are unknown, so the first 0.5 s of a block, in which a sender may not have
//! noticed its losses yet, are not counted.
//!
//! Until a test decides, a flow is what its protocol field says. An adaptive flow sits an exam at intervals
//! and is no longer adaptive if it fails. A non-adaptive flow must pass an exam, which spares constant-rate
//! flows the trial, and then a trial. A flow far below its fair share is not tested, since it harms no other
//! flow: whether it reacts to losses stays unknown. Tests are separated by pauses, which grow with each test
//! that changes nothing.
//!
//! Cost of a test: an adaptive flow loses 35 % for 3 s, again after 20 to 30 s, then 40 to 60 s, up to 160 to
//! 240 s, and at most 20 s after it exceeded twice its share; after the exam it needs time to recover. A
//! non-adaptive flow loses 35 % for 3 s and 20 % for 7.5 s, with the same pauses.
//!
//! Gain of a sender that slows down only in tests: it counts as adaptive for a pause of at most 240 s, or for
//! some 20 s once it takes more than twice its share. After it is caught it is not adaptive for a pause of at
//! least 20 s and tests of 21 s, in which it must slow down with every dose.
//!
//! Cost: O(1) per packet and per epoch; 96 bytes per flow.

use crate::random::Stream;
use crate::units::{Bytes, Span};

/// Length of an epoch: the longest round-trip time that the test allows for.
pub const EPOCH: Span = Span::from_millis(500);

/// Epochs before the first exam. Chosen: a sender reaches its rate.
const FIRST: u16 = 6;
/// Epochs of an exam. The first two do not count: a round-trip time and a timeout may pass.
const EXAM: u16 = 6;
const JUDGED: u16 = 4;
/// Epochs between an exam and a trial. Chosen: a sender reaches its rate again.
const RECOVERY: u16 = 6;
/// Blocks of a trial, half of them dosed, and epochs of each block; the first epoch does not count. Chosen:
/// fewer blocks are no proof, and more take longer.
const BLOCKS: usize = 10;
const BLOCK: u16 = 3;
/// The maximum number of pairs, of the 25 that combine a dosed block with another, in which the dosed block
/// has the higher rate. Of all 252 orders, 1 + 1 + 2 + 3 have no more.
const CONTRARY: usize = 3;
/// Epochs of a pause, 20 s. Chosen: an exam is at most an eighth of the time. A pause is extended at random
/// by up to a half and doubled up to three times.
const PAUSE: u16 = 40;
const DOUBLINGS: u16 = 3;

/// Share of packets dropped in an exam, and in the dosed blocks of a trial. Chosen: at 35 % Reno mostly waits
/// for timeouts; a trial is longer and detects smaller effects.
const EXAM_DOSE: f64 = 0.35;
const DOSE: f64 = 0.2;
/// Weight of the last epoch in a flow's usual rate and loss. Chosen: some 3 s.
const MEMORY: f64 = 1.0 / 6.0;
/// The fraction of its fair share below which a flow is not tested: a non-adaptive one, and an adaptive one.
/// An exam can only harm the latter.
const HARMLESS: [f64; 2] = [0.25, 0.5];
/// The loss rate above which a dose shows nothing in a non-adaptive flow. A flow that reacts to losses will
/// soon lose less.
const PLAIN: f64 = 0.25;
/// The smallest plausible round-trip time and retransmission timeout, in s. Linux uses 200 ms where RFC 6298
/// requires 1 s.
const RTT: f64 = 0.01;
const TIMEOUT: f64 = 0.2;
/// The tolerated ratio of the sending rate to the law in an exam. Chosen: with selective acknowledgements a
/// sender is faster than the law's Reno at such losses, and 2 s are short.
const LENIENCY: f64 = 3.0;

/// The stage of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Pause,
    Exam,
    Recovery,
    Trial,
}

/// The state of one flow. Amounts belong to the current epoch.
#[derive(Clone, Debug)]
pub struct Responsiveness {
    adaptive: bool,
    stage: Stage,
    /// Epochs left of the stage; in a trial, of the block.
    left: u16,
    /// The number of tests in a row that changed nothing.
    same: u16,
    /// Bytes and packets that arrived, and packets of these that were lost here.
    now: [u32; 3],
    /// The sum over the epochs that count of an exam or a block so far.
    judged: [u32; 3],
    /// The usual number of bytes in an epoch.
    usual: f64,
    /// The usual share of packets lost here without a dose.
    loss: f64,
    /// Bytes of each block of a trial.
    blocks: [u32; BLOCKS],
    /// The dosed blocks as a bit set, the current one included.
    dosed: u16,
    /// The number of blocks that have ended.
    over: u16,
}

impl Responsiveness {
    /// A flow for which only its declaration is known.
    #[must_use]
    pub const fn new(says_adaptive: bool) -> Self {
        Self {
            adaptive: says_adaptive,
            stage: Stage::Pause,
            left: FIRST,
            same: 0,
            now: [0; 3],
            judged: [0; 3],
            usual: 0.0,
            loss: 0.0,
            blocks: [0; BLOCKS],
            dosed: 0,
            over: 0,
        }
    }

    /// Whether the flow reduces its rate on losses, as far as is known.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    /// Counts a packet that arrived.
    pub fn arrived(&mut self, size: Bytes) {
        let size = u32::try_from(size.get()).unwrap_or(u32::MAX);
        add(&mut self.now, [size, 1, 0]);
    }

    /// Counts the loss of the packet that arrived last, whatever the reason.
    pub fn lost(&mut self) {
        add(&mut self.now, [0, 0, 1]);
    }

    /// The drop probability that the test asks for now.
    #[must_use]
    pub fn dose(&self) -> f64 {
        match self.stage {
            Stage::Exam => EXAM_DOSE,
            Stage::Trial if self.dosed >> self.over & 1 == 1 => DOSE,
            Stage::Trial | Stage::Pause | Stage::Recovery => 0.0,
        }
    }

    /// Ends an epoch; `fair` is the flow's fair share of it. Each flow draws one random number in every
    /// epoch, whatever its stage.
    pub fn end_epoch(&mut self, fair: Bytes, random: &mut Stream) {
        let chance = random.uniform();
        self.left = self.left.saturating_sub(1);
        match self.stage {
            Stage::Pause | Stage::Recovery => self.note_usual(),
            Stage::Exam if self.left < JUDGED => add(&mut self.judged, self.now),
            Stage::Trial if self.left < BLOCK - 1 => add(&mut self.judged, self.now),
            Stage::Exam | Stage::Trial => {}
        }
        self.now = [0; 3];
        let fair = (fair.get() as f64).max(1.0);
        if self.stage == Stage::Pause && self.adaptive && self.usual > 2.0 * fair {
            self.left = self.left.min(PAUSE);
        }
        if self.left == 0 {
            self.proceed(fair, chance);
        }
    }

    fn note_usual(&mut self) {
        let [bytes, packets, lost] = self.now.map(f64::from);
        self.usual = if self.usual > 0.0 { self.usual + MEMORY * (bytes - self.usual) } else { bytes };
        if packets > 0.0 {
            self.loss += MEMORY * (lost / packets - self.loss);
        }
    }

    /// Ends a stage; `chance` is in [0, 1).
    fn proceed(&mut self, fair: f64, chance: f64) {
        let above = self.usual / fair;
        match self.stage {
            Stage::Pause if self.is_worth_a_test(above) => self.begin(Stage::Exam, EXAM),
            Stage::Pause => {}
            Stage::Exam if self.fails_the_exam(fair) => self.is_found(false, chance),
            Stage::Exam if self.adaptive => self.is_found(true, chance),
            Stage::Exam => self.begin(Stage::Recovery, RECOVERY),
            Stage::Recovery => {
                (self.dosed, self.over) = (0, 0);
                self.begin_block(chance);
            }
            Stage::Trial => {
                self.blocks[usize::from(self.over)] = self.judged[0];
                self.over += 1;
                if usize::from(self.over) < BLOCKS {
                    self.begin_block(chance);
                } else {
                    self.is_found(self.passes_the_trial(), chance);
                }
            }
        }
    }

    fn begin(&mut self, stage: Stage, epochs: u16) {
        (self.stage, self.left, self.judged) = (stage, epochs, [0; 3]);
    }

    /// Draws whether the block is dosed, without replacement, so that half of all blocks are.
    fn begin_block(&mut self, chance: f64) {
        let blocks_left = BLOCKS as u16 - self.over;
        let doses_left = BLOCKS as u16 / 2 - self.dosed.count_ones() as u16;
        let dosed = chance * f64::from(blocks_left) < f64::from(doses_left);
        self.dosed |= u16::from(dosed) << self.over;
        self.begin(Stage::Trial, BLOCK);
    }

    /// Whether the flow sends more than `above` times its fair share.
    fn is_worth_a_test(&self, above: f64) -> bool {
        above >= HARMLESS[usize::from(self.adaptive)] && (self.adaptive || self.loss < PLAIN)
    }

    fn is_found(&mut self, adaptive: bool, chance: f64) {
        self.same = if adaptive == self.adaptive { self.same.saturating_add(1) } else { 1 };
        self.adaptive = adaptive;
        let epochs = PAUSE << (self.same - 1).min(DOUBLINGS);
        self.begin(Stage::Pause, epochs + (chance * f64::from(epochs / 2)) as u16);
    }

    /// Whether the flow sent more than half of its usual rate, more than would be harmless, and more than the
    /// law allows.
    fn fails_the_exam(&self, fair: f64) -> bool {
        let [bytes, packets, lost] = self.judged.map(f64::from);
        let seconds = f64::from(JUDGED) * EPOCH.as_secs_f64();
        let harmless = fair * HARMLESS[usize::from(self.adaptive)];
        bytes > f64::from(JUDGED) * harmless.max(self.usual / 2.0)
            && packets > LENIENCY * seconds * most_packets_per_second(lost / packets.max(1.0))
    }

    /// Whether its rates were lower in dosed blocks, with few exceptions among the pairs.
    fn passes_the_trial(&self) -> bool {
        let rates = |dosed: bool| {
            let blocks = self.blocks.iter().enumerate();
            blocks.filter(move |(at, _)| (self.dosed >> at & 1 == 1) == dosed).map(|(_, &bytes)| bytes)
        };
        let contrary = rates(true).map(|dosed| rates(false).filter(|&other| other <= dosed).count());
        contrary.sum::<usize>() <= CONTRARY
    }
}

fn add(sums: &mut [u32; 3], more: [u32; 3]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum = sum.saturating_add(more);
    }
}

/// Eq. 30 of Padhye, Firoiu, Towsley, Kurose 1998, with b = 1.
pub(super) fn most_packets_per_second(loss: f64) -> f64 {
    let window = RTT * libm::sqrt(2.0 * loss / 3.0);
    let timeouts = (3.0 * libm::sqrt(3.0 * loss / 8.0)).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    1.0 / (window + TIMEOUT * timeouts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1 Mb/s in one epoch.
    const FAIR: Bytes = Bytes::new(62_500);
    /// The moments of an epoch at which a source decides.
    const STEPS: u32 = 10;

    /// A flow whose source returns at each moment the number of packets of 500 bytes that it sends. Other
    /// links lose some of them. The source gets the number of its packets lost at each moment so far.
    struct Bench<S> {
        flow: Responsiveness,
        source: S,
        losses: Vec<u32>,
        random: Stream,
        doses: u32,
    }

    use std::vec::Vec;

    impl<S: FnMut(&[u32], &mut Stream) -> u32> Bench<S> {
        fn new(says_adaptive: bool, seed: u64, source: S) -> Self {
            let random = Stream::new(seed, "bench");
            Self { flow: Responsiveness::new(says_adaptive), source, losses: Vec::new(), random, doses: 0 }
        }

        fn epoch(&mut self, room: u32) {
            let mut doses = 0;
            for _ in 0..STEPS {
                let packets = (self.source)(&self.losses, &mut self.random);
                let mut lost = 0;
                for at in 0..packets {
                    self.flow.arrived(Bytes::new(500));
                    let dosed = self.random.chance(self.flow.dose());
                    if dosed || at >= room {
                        self.flow.lost();
                        lost += 1;
                    }
                    doses += u32::from(dosed);
                }
                self.losses.push(lost);
            }
            self.doses += doses;
            self.flow.end_epoch(FAIR, &mut self.random);
        }

        /// The first epoch after which the flow counts as `adaptive`.
        fn found(&mut self, adaptive: bool, epochs: u32) -> Option<u32> {
            (0..epochs).find(|_| {
                self.epoch(u32::MAX);
                self.flow.is_adaptive() == adaptive
            })
        }
    }

    /// Grows by a tenth of a packet in each moment, up to 20; halves after a loss `delay` moments ago.
    fn responsive(delay: usize) -> impl FnMut(&[u32], &mut Stream) -> u32 {
        let (mut rate, mut owed) = (10.0f64, 0.0);
        move |losses, _| {
            let lost = losses.len().checked_sub(delay).and_then(|at| losses.get(at)).is_some_and(|&n| n > 0);
            rate = if lost { (rate / 2.0).max(0.1) } else { (rate + 0.1).min(20.0) };
            owed += rate;
            let now = owed as u32;
            owed -= f64::from(now);
            now
        }
    }

    /// 20 packets a moment in bursts, of which those above 15 overflow, alternating with silences of equal
    /// length.
    fn bursty() -> impl FnMut(&[u32], &mut Stream) -> u32 {
        let mut on = false;
        move |_, random| {
            on ^= random.chance(0.05);
            if on { 20 } else { 0 }
        }
    }

    #[test]
    fn a_constant_rate_that_says_it_is_adaptive_is_caught_in_its_first_exam() {
        for seed in 0..50 {
            // After 6 epochs, an exam of 6.
            assert_eq!(Bench::new(true, seed, |_: &[u32], _: &mut Stream| 20).found(false, 100), Some(11));
        }
    }

    #[test]
    fn a_flow_that_halves_its_rate_stays_adaptive_and_is_tested_again() {
        for delay in [1, 10] {
            let mut bench = Bench::new(true, 1, responsive(delay));
            assert_eq!(bench.found(false, 2_000), None, "after {delay} moments");
            // 1000 s: exams after 20, 40, 80, then every 160 to 240 s.
            assert!((4..=8).contains(&bench.flow.same), "{} exams", bench.flow.same);
        }
    }

    #[test]
    fn a_flow_that_halves_its_rate_but_says_it_does_not_is_found_adaptive() {
        for delay in [1, 10] {
            let found =
                (0..40).filter(|&seed| Bench::new(false, seed, responsive(delay)).found(true, 60).is_some());
            assert!(found.count() >= 36, "after {delay} moments");
        }
    }

    #[test]
    fn bursts_that_lose_packets_and_end_by_themselves_are_no_response() {
        // In 500 s there are at most 6 tests, of which some end with the exam: the bound is 6·7/252 = 17 %.
        let mut passed = 0;
        for seed in 0..200 {
            let mut bench = Bench::new(false, seed, bursty());
            let mut was = false;
            for _ in 0..1_000 {
                bench.epoch(15);
                was |= bench.flow.is_adaptive();
            }
            passed += u32::from(was);
        }
        // At most 34 of 200 expected, with a standard error of 5.3.
        assert!(passed <= 34 + 11, "{passed} of 200");
    }

    #[test]
    fn a_flow_far_below_its_share_is_not_tested() {
        // 4 · 10 · 500 bytes are 0.32 of the fair share; 2 · 10 · 500 are 0.16.
        for (says_adaptive, packets) in [(true, 4), (false, 2)] {
            let mut bench = Bench::new(says_adaptive, 1, |_: &[u32], _: &mut Stream| packets);
            assert_eq!(bench.found(!says_adaptive, 1_000), None);
            assert_eq!(bench.doses, 0);
        }
    }

    #[test]
    fn a_flow_that_stops_slowing_down_once_adaptive_is_caught_after_a_pause() {
        // The flow slows down for 40 s, and sends 20 packets a moment, 1.6 times its share, from then on.
        let (mut moments, mut good) = (0, responsive(1));
        let mut bench = Bench::new(true, 3, move |losses: &[u32], random: &mut Stream| {
            moments += 1;
            if moments <= 800 { good(losses, random) } else { 20 }
        });
        let caught = bench.found(false, 1_000).unwrap();
        // Caught after a pause of up to 120 s and an exam.
        assert!((80..80 + 240 + 6).contains(&caught), "{caught}");
    }

    #[test]
    fn above_twice_its_share_it_is_caught_sooner() {
        // As before, but after 400 s, when pauses are 160 s or more, with 40 packets, 3.2 times its share.
        let (mut moments, mut good) = (0, responsive(1));
        let mut bench = Bench::new(true, 3, move |losses: &[u32], random: &mut Stream| {
            moments += 1;
            if moments <= 8_000 { good(losses, random) } else { 40 }
        });
        let caught = bench.found(false, 2_000).unwrap();
        // Some epochs until the rate is usual, 40 of a pause, 6 of an exam.
        assert!((800..800 + 10 + 40 + 6).contains(&caught), "{caught}");
    }

    #[test]
    fn half_of_the_blocks_are_drawn_for_losses_and_few_orders_pass() {
        let mut orders = [0, 0];
        for dosed in 0..1u16 << BLOCKS {
            if dosed.count_ones() == 5 {
                let blocks = core::array::from_fn(|at| at as u32);
                let flow = Responsiveness { dosed, blocks, ..Responsiveness::new(false) };
                orders[usize::from(flow.passes_the_trial())] += 1;
            }
        }
        assert_eq!(orders, [245, 7]);
        let mut random = Stream::new(1, "lots");
        for _ in 0..100 {
            let mut flow = Responsiveness::new(false);
            for over in 0..BLOCKS as u16 {
                flow.over = over;
                flow.begin_block(random.uniform());
            }
            assert_eq!(flow.dosed.count_ones(), 5);
        }
    }

    #[test]
    fn equal_rates_prove_nothing() {
        let flow = Responsiveness { dosed: 0b11111, blocks: [7; BLOCKS], ..Responsiveness::new(false) };
        assert!(!flow.passes_the_trial());
    }

    #[test]
    fn the_law_at_the_dose_of_an_exam() {
        // 0.01·√(0.2333) = 0.00483; 0.2 · 1 · 0.35 · (1 + 32·0.1225) = 0.3444: 2.86 packets a second.
        assert!((most_packets_per_second(0.35) - 2.863).abs() < 0.001);
    }

    #[test]
    fn the_state_is_as_small_as_it_says() {
        assert_eq!(size_of::<Responsiveness>(), 96);
    }
}
