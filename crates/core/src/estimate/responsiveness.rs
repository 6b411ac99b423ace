//! Whether a flow sends less when its packets are lost, found out by losing some of them.
//!
//! Tamura, Tobe, Tokuda, "SF-FC", NOSSDAV 2000, section 6, asks for it and has no method. Ours has two tests.
//!
//! An *exam*: a quarter of the packets is lost for 3 s, in which no sender with a retransmission timeout (RFC 6298)
//! keeps its rate. It fails who sends, after the first second, more than half of what it did before and more than
//! the law of Padhye, Firoiu, Towsley, Kurose 1998, eq. 30, allows at the smallest round-trip time and timeout
//! believed. Losses to others count as well. To fail is proof that a flow does not slow down; to pass may be chance,
//! since bursts end by themselves.
//!
//! A *trial*: of ten blocks of 1.5 s five are drawn by lot, and in these a quarter of the packets is lost, whatever
//! the flow does. To a flow that does not heed losses the lot means nothing, however bursty it is, so every order of
//! its ten rates is as likely (a permutation test: Fisher 1935; Mann, Whitney 1947, for the statistic): with a
//! probability of at most 7/252 only are the rates of dosed blocks so low that it passes. Round-trip times are
//! unknown, so the first 0.5 s of a block, in which a sender may not know of its losses yet, are not counted.
//!
//! What a flow says of itself stands until then. An adaptive flow sits an exam now and then and is no longer adaptive
//! if it fails. Another one must pass an exam, which spares plain ones the trial, and the trial. A flow far below
//! its fair share is left in peace, since it can harm nobody. Between tests there are pauses, longer after
//! each success of an adaptive flow and each failure of another.
//!
//! What it costs: an adaptive flow loses a quarter of its packets for 3 s in every 23, 43, 83, then 163 s, or in
//! every 23 s if above twice its share; another one a quarter for at most 10.5 s, first in 23 s, then in twice as
//! much time each time until 163 s. What a sender gains that feigns to slow down: it is adaptive for a pause, which is
//! 30 s at most if it takes more than twice its share, and then must slow down again; caught, it has to show
//! for 22 s at least, after a pause of 20 s or more, that it slows down.
//!
//! Cost: O(1) per packet and per epoch; 120 bytes per flow.

use crate::random::Stream;
use crate::units::{Bytes, Span};

/// Length of an epoch: as long as the longest round-trip time that is looked for.
pub const EPOCH: Span = Span::from_millis(500);

/// Epochs before the first exam, in which a sender finds its rate, and at most so many more by chance.
const FIRST: u16 = 4;
/// Epochs of an exam. The first two are not judged: a round-trip time and a timeout may pass.
const EXAM: u16 = 6;
const JUDGED: u16 = 4;
/// Epochs after an exam until a trial. Chosen: a sender finds its rate again.
const RECOVERY: u16 = 4;
/// Blocks of a trial, half of them dosed, and epochs of each, of which the first is not judged. Chosen: with
/// fewer blocks there is no proof, with more it takes longer.
const BLOCKS: usize = 10;
const BLOCK: u16 = 3;
/// Of the 25 pairs of a dosed block and another, as many may have the higher rate in the dosed one; of all 252
/// orders, 1 + 1 + 2 + 3 have so few.
const CONTRARY: usize = 3;
/// Epochs of a pause, 20 s, and by chance up to half as many more; doubled up to three times.
const PAUSE: u16 = 40;
const DOUBLINGS: u16 = 3;

/// Share of packets lost for a test. Chosen: Reno with a window of 4 segments mostly times out.
const DOSE: f64 = 0.25;
/// Weight of the last epoch in a flow's usual rate and loss. Chosen: some 3 s.
const MEMORY: f64 = 1.0 / 6.0;
/// Share of its fair share below which a flow is left in peace: one that is not adaptive, and one that is. An exam
/// of the latter can only be to its harm.
const HARMLESS: [f64; 2] = [0.25, 0.5];
/// A non-adaptive flow that loses so much anyway is told nothing by a dose. One that heeds losses will soon
/// lose less.
const PLAIN: f64 = 0.25;
/// The smallest round-trip time and retransmission timeout believed, in s. Linux has 200 ms where RFC 6298 has 1 s.
const RTT: f64 = 0.01;
const TIMEOUT: f64 = 0.2;
/// How many times as fast as the law a sender may be in an exam. Chosen: with selective acknowledgements it is faster
/// than the law's Reno at such losses, and 2 s are short.
const LENIENCY: f64 = 3.0;

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Pause,
    Exam,
    Recovery,
    Trial,
}

/// One flow. Amounts are of the current epoch.
#[derive(Clone, Debug)]
pub struct Responsiveness {
    adaptive: bool,
    stage: Stage,
    /// Epochs left of the stage, in a trial of the block.
    left: u16,
    /// Tests in a row after which it stayed what it was.
    same: u16,
    /// Bytes and packets that arrived, and packets of these that were lost here.
    now: [u32; 3],
    /// The sum over what was judged of an exam or a block so far.
    judged: [u32; 3],
    /// Bytes in an epoch, usually.
    usual: f64,
    /// Share of packets lost here without a dose, usually.
    loss: f64,
    /// Bytes of each block of a trial.
    blocks: [u32; BLOCKS],
    /// Which of them are dosed, by bits, the current one too.
    dosed: u16,
    /// Blocks that are over.
    over: u16,
}

impl Responsiveness {
    /// Of a flow of which it is only known what it says of itself.
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

    /// Whether it sends less when packets are lost, as far as is known.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    /// A packet has arrived.
    pub fn arrived(&mut self, size: Bytes) {
        let size = u32::try_from(size.get()).unwrap_or(u32::MAX);
        add(&mut self.now, [size, 1, 0]);
    }

    /// The packet that arrived last was lost here, for whatever reason.
    pub fn lost(&mut self) {
        add(&mut self.now, [0, 0, 1]);
    }

    /// The probability with which each packet is to be lost now.
    #[must_use]
    pub fn dose(&self) -> f64 {
        match self.stage {
            Stage::Exam => DOSE,
            Stage::Trial if self.dosed >> self.over & 1 == 1 => DOSE,
            Stage::Trial | Stage::Pause | Stage::Recovery => 0.0,
        }
    }

    /// An epoch is over; `fair` is its fair share of it. A flow draws once whatever it does.
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
        if self.left == 0 {
            self.proceed(self.usual / (fair.get() as f64).max(1.0), chance);
        }
    }

    fn note_usual(&mut self) {
        let [bytes, packets, lost] = self.now.map(f64::from);
        self.usual = if self.usual > 0.0 { self.usual + MEMORY * (bytes - self.usual) } else { bytes };
        if packets > 0.0 {
            self.loss += MEMORY * (lost / packets - self.loss);
        }
    }

    /// A stage is over. The flow has usually `above` times its fair share; `chance` is in [0, 1).
    fn proceed(&mut self, above: f64, chance: f64) {
        match self.stage {
            Stage::Pause if self.is_worth_a_test(above) => self.begin(Stage::Exam, EXAM),
            Stage::Pause => {}
            Stage::Exam if self.fails_the_exam() => self.is_found(false, above, chance),
            Stage::Exam if self.adaptive => self.is_found(true, above, chance),
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
                    self.is_found(self.passes_the_trial(), above, chance);
                }
            }
        }
    }

    fn begin(&mut self, stage: Stage, epochs: u16) {
        (self.stage, self.left, self.judged) = (stage, epochs, [0; 3]);
    }

    /// Draws whether it is dosed, as from an urn, so that half of all are.
    fn begin_block(&mut self, chance: f64) {
        let blocks_left = BLOCKS as u16 - self.over;
        let doses_left = BLOCKS as u16 / 2 - self.dosed.count_ones() as u16;
        let dosed = chance * f64::from(blocks_left) < f64::from(doses_left);
        self.dosed |= u16::from(dosed) << self.over;
        self.begin(Stage::Trial, BLOCK);
    }

    /// At `above` times its fair share.
    fn is_worth_a_test(&self, above: f64) -> bool {
        above >= HARMLESS[usize::from(self.adaptive)] && (self.adaptive || self.loss < PLAIN)
    }

    fn is_found(&mut self, adaptive: bool, above: f64, chance: f64) {
        self.same = if adaptive == self.adaptive { self.same.saturating_add(1) } else { 1 };
        self.adaptive = adaptive;
        let doublings = if adaptive && above > 2.0 { 0 } else { (self.same - 1).min(DOUBLINGS) };
        let epochs = PAUSE << doublings;
        self.begin(Stage::Pause, epochs + (chance * f64::from(epochs / 2)) as u16);
    }

    /// Whether it sent more than half of what it used to, and more than the law allows.
    fn fails_the_exam(&self) -> bool {
        let [bytes, packets, lost] = self.judged.map(f64::from);
        let seconds = f64::from(JUDGED) * EPOCH.as_secs_f64();
        bytes > f64::from(JUDGED) * self.usual / 2.0
            && packets > LENIENCY * seconds * most_packets_per_second(lost / packets.max(1.0))
    }

    /// Whether its rates were lower in dosed blocks, but for few pairs.
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
fn most_packets_per_second(loss: f64) -> f64 {
    let window = RTT * libm::sqrt(2.0 * loss / 3.0);
    let timeouts = (3.0 * libm::sqrt(3.0 * loss / 8.0)).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    1.0 / (window + TIMEOUT * timeouts)
}
