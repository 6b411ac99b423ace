//! Whether a flow sends less when its packets are lost, found out by losing some of them at the fall of a coin.
//!
//! Tamura, Tobe, Tokuda, "SF-FC", NOSSDAV 2000, section 6, asks for it and has no method. Ours: time is cut into
//! epochs. In a *trial* a coin decides for each epoch whether a small dose of losses is inflicted, whatever the
//! flow does. To a flow that does not heed losses the coin means nothing, however bursty it is: bursts that are
//! lost and end by themselves are as frequent under either side. What the coin shows is added up by betting
//! (Waudby-Smith, Ramdas 2024, "Estimating means of bounded random variables by betting", section 4): by Ville's
//! inequality the capital of somebody who bets that a flow slows down ever reaches 20 with a probability of at
//! most 1/20 if it does not. Round-trip times are unknown, so half of the capital bets on the epoch of the coin and
//! half on the next one, which together cover responses after 0 to 1 s.
//!
//! That a flow does not slow down is more than that no capital is made: an application may ask for less than its
//! window allows. Who is called adaptive and makes no capital therefore sits an *exam*: a quarter of its packets
//! is lost for 3 s, in which no sender with a retransmission timeout (RFC 6298) keeps its rate. The
//! measure is the law of Padhye, Firoiu, Towsley, Kurose 1998, eq. 30, with the smallest round-trip time and
//! timeout believed.
//!
//! What a flow says of itself stands until then; a flow below half of its fair share is left in peace, since it
//! can harm nobody. A verdict holds for a pause, which doubles with each failure of a flow to show that it
//! slows down, and is shorter for adaptive flows far above their share.
//!
//! Bounds. A trial costs a flow at most 15 % of its packets in half of at most 24 epochs, an exam 25 % in 6 epochs.
//! A sender that feigns goodness is an adaptive one for a pause, 30 s, or 8 s if above twice its share, and for a
//! trial and an exam of 11 s; then it must have slowed down again.
//!
//! Cost: O(1) per packet and per epoch; 136 bytes per flow.

use crate::random::Stream;
use crate::units::{Bytes, Span};

/// Length of an epoch: as long as the longest round-trip time that is looked for.
pub const EPOCH: Span = Span::from_millis(500);

/// Epochs of a trial. Chosen: bets on Reno and CUBIC reach 20 in 10 to 20 of them.
const TRIAL: u16 = 24;
/// Epochs of a trial of a flow that is adaptive so far, which needs less proof.
const RETRIAL: u16 = 16;
/// Epochs of an exam. The first two are not judged: a round-trip time and a timeout may pass.
const EXAM: u16 = 6;
const JUDGED: u16 = 4;
/// Epochs before the first trial, in which a sender finds its rate, and at most so many more by chance.
const FIRST: u16 = 4;
/// Epochs between trials of an adaptive flow: 20 s, and by chance up to half as many more.
const PAUSE: u16 = 40;
/// The same for one above twice its share: 5.5 s, up to 8 s.
const SHORT_PAUSE: u16 = 11;
/// Epochs between trials of another one after its first failure: 5 s, doubled up to four times.
const PAUSE_OF_OTHERS: u16 = 10;
const DOUBLINGS: u16 = 4;

/// Capital at which a flow is adaptive: 1 in 20 that it is not (Ville's inequality).
const PROVED: f64 = 20.0;
/// Capital at which an adaptive flow is believed for another pause. Chosen: an unresponsive one passes one
/// trial in four at most.
const BELIEVED: f64 = 4.0;
/// Capital never falls below this, so that a flow that learns to slow down is heard; to rise from here takes
/// 400-fold gain.
const LEAST: f64 = 0.05;
/// Most that is staked of it; below 1, so that it stays positive.
const STAKE: f64 = 0.9;
/// Weight of the last bet in the averages that stakes are reckoned from, and what these start at. Chosen: an
/// effect like that of Reno in a trial.
const LATEST: f64 = 1.0 / 12.0;
const EXPECTED: [f64; 2] = [0.15, 0.1];
/// Least mean square of outcomes: those of a constant rate are nearly none.
const LEAST_SQUARE: f64 = 0.02;

/// Weight of the last epoch in a flow's usual rate and loss. Chosen: some 3 s.
const MEMORY: f64 = 1.0 / 6.0;
/// The dose of a trial is twice the usual loss within this: by the square-root law a rate falls to 58 % or less.
const DOSE: [f64; 2] = [0.05, 0.15];
/// The dose of an exam.
const EXAM_DOSE: f64 = 0.25;
/// A non-adaptive flow that loses so much anyway is told nothing by a dose. One that heeds losses will soon
/// lose less.
const PLAIN: f64 = 0.25;
/// The smallest round-trip time and retransmission timeout believed, in s. Linux has 200 ms where RFC 6298 has 1 s.
const RTT: f64 = 0.01;
const TIMEOUT: f64 = 0.2;
/// How many times as fast as the law a sender may be in an exam: with selective acknowledgements it is faster
/// than the law's Reno at such losses, and 2 s are short.
const LENIENCY: f64 = 3.0;

/// What is going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Pause,
    Trial,
    Exam,
}

/// Somebody who bets that the flow slows down after so many epochs.
#[derive(Clone, Copy, Debug)]
struct Gambler {
    capital: f64,
    /// Mean and mean square of outcomes lately.
    moments: [f64; 2],
}

impl Gambler {
    const NEW: Self = Self { capital: 1.0, moments: EXPECTED };

    /// `outcome` in [-1, 1] has a mean of 0, if the flow does not heed losses; the stake was fixed before.
    fn bet(&mut self, outcome: f64) {
        let [mean, square] = self.moments;
        let stake = (mean / square.max(LEAST_SQUARE)).clamp(0.0, STAKE);
        self.capital = (self.capital * (1.0 + stake * outcome)).clamp(LEAST, PROVED);
        self.moments = [
            mean + LATEST * (outcome - mean),
            square + LATEST * (outcome * outcome - square),
        ];
    }
}

/// One flow. Amounts are of the current epoch.
#[derive(Clone, Debug)]
pub struct Responsiveness {
    adaptive: bool,
    stage: Stage,
    /// Whether the coin of this epoch fell for a dose.
    dosed: bool,
    /// The coin of the epoch before, if there was one, and the usual rate before it.
    before: Option<(bool, f64)>,
    /// Trials in which it did not show that it slows down.
    failures: u16,
    /// Epochs left of the stage.
    left: u16,
    /// What arrived, and of that, what was lost here.
    packets: u32,
    bytes: u64,
    lost: u32,
    /// Bytes in an epoch, usually.
    usual: f64,
    /// Share of packets lost here without a dose, usually.
    loss: f64,
    /// Bytes, packets and packets lost in what was judged of an exam so far.
    judged: [u32; 3],
    gamblers: [Gambler; 2],
}

impl Responsiveness {
    /// Of a flow of which it is only known what it says of itself.
    #[must_use]
    pub const fn new(says_adaptive: bool) -> Self {
        Self {
            adaptive: says_adaptive,
            stage: Stage::Pause,
            dosed: false,
            before: None,
            failures: 0,
            left: FIRST,
            packets: 0,
            bytes: 0,
            lost: 0,
            usual: 0.0,
            loss: 0.0,
            judged: [0; 3],
            gamblers: [Gambler::NEW; 2],
        }
    }

    /// Whether it sends less when packets are lost, as far as is known.
    #[must_use]
    pub const fn is_adaptive(&self) -> bool {
        self.adaptive
    }

    /// A packet has arrived.
    pub fn arrived(&mut self, size: Bytes) {
        self.packets = self.packets.saturating_add(1);
        self.bytes = self.bytes.saturating_add(size.get());
    }

    /// The packet that arrived last was lost here, for whatever reason.
    pub fn lost(&mut self) {
        self.lost = self.lost.saturating_add(1);
    }

    /// The probability with which each packet is to be lost now.
    #[must_use]
    pub fn dose(&self) -> f64 {
        match self.stage {
            Stage::Exam => EXAM_DOSE,
            Stage::Trial if self.dosed => (2.0 * self.loss).clamp(DOSE[0], DOSE[1]),
            Stage::Trial | Stage::Pause => 0.0,
        }
    }

    /// An epoch is over; `fair` is its fair share of it. A flow has the same draws whatever it does.
    pub fn end_epoch(&mut self, fair: Bytes, random: &mut Stream) {
        let (coin, wait) = (random.chance(0.5), random.uniform());
        let rate = self.bytes as f64;
        self.left = self.left.saturating_sub(1);
        match self.stage {
            Stage::Pause => {}
            Stage::Trial => self.note_trial(rate),
            Stage::Exam => self.note_exam(),
        }
        let before = (self.stage == Stage::Trial).then_some((self.dosed, self.usual));
        self.note_usual(rate);
        self.before = before;
        self.proceed(fair.get() as f64, wait);
        self.dosed = self.stage == Stage::Trial && coin;
        (self.packets, self.bytes, self.lost) = (0, 0, 0);
    }

    fn note_trial(&mut self, rate: f64) {
        self.gamblers[0].bet(outcome(self.dosed, rate, self.usual));
        if let Some((dosed, usual)) = self.before {
            self.gamblers[1].bet(outcome(dosed, rate, usual));
        }
    }

    fn note_exam(&mut self) {
        if self.left < JUDGED {
            let bytes = u32::try_from(self.bytes).unwrap_or(u32::MAX);
            for (sum, more) in self.judged.iter_mut().zip([bytes, self.packets, self.lost]) {
                *sum = sum.saturating_add(more);
            }
        }
    }

    fn note_usual(&mut self, rate: f64) {
        if self.stage == Stage::Exam {
            return;
        }
        self.usual = if self.usual > 0.0 { self.usual + MEMORY * (rate - self.usual) } else { rate };
        if !self.dosed && self.packets > 0 {
            self.loss += MEMORY * (f64::from(self.lost) / f64::from(self.packets) - self.loss);
        }
    }

    /// What comes next. `wait` in [0, 1) is by chance.
    fn proceed(&mut self, fair: f64, wait: f64) {
        let capital = (self.gamblers[0].capital + self.gamblers[1].capital) / 2.0;
        let above = self.usual / fair.max(1.0);
        match self.stage {
            Stage::Trial if capital >= if self.adaptive { BELIEVED } else { PROVED } => {
                self.adaptive = true;
                self.pause(above, wait);
            }
            Stage::Trial if self.left == 0 && self.adaptive => self.begin(Stage::Exam, EXAM),
            Stage::Trial if self.left == 0 => {
                self.failures = self.failures.saturating_add(1);
                self.pause(above, wait);
            }
            Stage::Exam if self.left == 0 => {
                if self.fails_the_exam() {
                    self.adaptive = false;
                    self.failures = self.failures.saturating_add(1);
                }
                self.pause(above, wait);
            }
            Stage::Pause if self.left == 0 && above >= 0.5 && (self.adaptive || self.loss < PLAIN) => {
                if self.adaptive {
                    self.gamblers = [Gambler::NEW; 2];
                }
                self.begin(Stage::Trial, if self.adaptive { RETRIAL } else { TRIAL });
            }
            Stage::Pause | Stage::Trial | Stage::Exam => {}
        }
    }

    fn begin(&mut self, stage: Stage, epochs: u16) {
        (self.stage, self.left) = (stage, epochs);
        (self.before, self.judged) = (None, [0; 3]);
    }

    fn pause(&mut self, above: f64, wait: f64) {
        let epochs = match self.adaptive {
            true if above > 2.0 => SHORT_PAUSE,
            true => PAUSE,
            false => PAUSE_OF_OTHERS << self.failures.saturating_sub(1).min(DOUBLINGS),
        };
        self.gamblers = if self.adaptive { [Gambler::NEW; 2] } else { self.gamblers };
        self.begin(Stage::Pause, epochs + (wait * f64::from(epochs / 2)) as u16);
    }

    /// Whether it sent more than half of what it used to, and more than the law allows.
    fn fails_the_exam(&self) -> bool {
        let [bytes, packets, lost] = self.judged.map(f64::from);
        let seconds = f64::from(JUDGED) * EPOCH.as_secs_f64();
        bytes > f64::from(JUDGED) * self.usual / 2.0
            && packets > LENIENCY * seconds * most_packets_per_second(lost / packets.max(1.0))
    }
}

/// By how much the rate is above the usual one, from -1 to 1, with the sign of a bet that the dose lowers it.
fn outcome(dosed: bool, rate: f64, usual: f64) -> f64 {
    let change = if rate + usual > 0.0 { (rate - usual) / (rate + usual) } else { 0.0 };
    if dosed { -change } else { change }
}

/// Eq. 30 of Padhye, Firoiu, Towsley, Kurose 1998, with b = 1.
fn most_packets_per_second(loss: f64) -> f64 {
    let window = RTT * libm::sqrt(2.0 * loss / 3.0);
    let timeouts = (3.0 * libm::sqrt(3.0 * loss / 8.0)).min(1.0) * loss * (1.0 + 32.0 * loss * loss);
    1.0 / (window + TIMEOUT * timeouts)
}
