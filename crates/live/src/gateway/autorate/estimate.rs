//! The rate of a shaper in front of a link of unknown rate, from how long answers take: what users of cake-autorate script.
//!
//! A link that is slower than its shaper has the queue, where no discipline divides it. Its delay is seen in round trips: a packet
//! that departs at d is answered after its shortest round trip and the queue q(d). From that follows what the link passes:
//!
//! - [`Bottleneck::Behind`] the shaper, which sends R: the queue grows by dq/dt = R/C - 1 while there is one, so
//!   C = R / (1 + dq/dt), and what was sent since d tells how long the queue is now.
//! - [`Bottleneck::Before`] the shaper, such as the downlink of a home: what comes in while there is a queue is C.
//!
//! While q is above the threshold, the rate is C (1 - q/D), so that the queue is gone after D, 200 ms (before the shaper 100 ms). Once it is
//! gone, the rate is 0.92 C (0.85 C). While q is below half of the threshold and the shaper is busy, the rate grows: by 1 % a review around
//! the last C, elsewhere by twice as much each time, up to 10 %. Well below the last C it takes twice the threshold to lower the rate.
//!
//! A queue that stays as long as it is for 3 s, within a quarter, although the rate has been halved is not of this shaper: the path is
//! longer than it was, or others fill the link. It counts as part of the path, and the rate is what it was before, unless what counts so
//! is longer than 250 ms by then.
//!
//! The delay of a review is the lower quartile of its answers, of which one connection has 32 at most, since an answer can wait for
//! more than the link (RFC 9293 section 3.8.6.3). So hosts that answer late decide where they give three quarters of the answers. Those
//! that claim to have received what they have not answer first while a queue grows, so one of eight connections can hide it: then the
//! rate stays too high, as a fixed one would. It stays within its bounds in any case.
//!
//! Limits: without answers the rate stays as it is. A link that drops and does not queue (a policer) is not seen. A queue that was
//! there when a host was first heard of counts as part of its path until it has been shorter once.
//!
//! Cost: O(1) per packet; a sort of at most 256 answers per review; 14 kB.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use apportion_core::units::{Bytes, Rate, Span, Time};

/// How often there may be a review.
pub const REVIEW: Span = Span::from_millis(25);
/// The shortest and the longest time from one review to the next, if there are enough answers; between them it is a round trip.
const PERIOD: (Span, Span) = (Span::from_millis(50), Span::from_millis(300));
/// After this long a review does with fewer.
const LATE: Span = Span::from_secs(1);
/// Answers of a review: least, unless it is late, and most.
const LEAST: usize = 4;
const MOST: usize = 256;
/// Answers of one connection in a review at most.
const MOST_OF_ONE: usize = 32;
/// An answer that takes so long is not waited for. Chosen: the longest round trip without a queue that there is, by a satellite in
/// a geostationary orbit, and some.
pub const GIVE_UP: Span = Span::from_secs(1);
/// In what time a queue is to be gone. Chosen: above the round trip over which the rate takes effect, on most paths.
const DRAIN: Span = Span::from_millis(200);
/// The same where the queue is before the shaper: what senders put into it depends on what comes out of the shaper and is lost there.
const DRAIN_BEFORE: Span = Span::from_millis(100);
/// How far below C the rate is while a queue is there, at most.
const DEEPEST: f64 = 0.4;
const DEEPEST_BEFORE: f64 = 0.2;
/// The part of C that is used once the queue is gone, at most. Before the shaper less, as senders put what it drops into the queue once
/// more.
const SAFE: f64 = 0.92;
const SAFE_BEFORE: f64 = 0.85;
/// Growth of the rate from one review to the next: first, and at most.
const GROWTH: (f64, f64) = (0.01, 0.1);
/// Where the rate grows by the least: from this part of C to that. Above it the link is faster than it was.
const NEAR: (f64, f64) = (0.9, 1.1);
/// By which part C changes at most from one review to the next: while the queue is short and the rate near C, and while the queue
/// gets shorter.
const STEADY: f64 = 0.1;
const DRAINING: f64 = 0.25;
/// The part of the rate that comes to a shaper if that and no link before it is the bottleneck: what it drops comes as well.
const OWN: RangeInclusive<f64> = 0.97..=1.1;
/// A shaper is busy that sends this part of its rate.
const BUSY: f64 = 0.75;
/// After how long a queue that stays as long as it is, is not of this shaper; and the longest that may be so, all together.
const PATIENCE: Span = Span::from_secs(3);
const FOREIGN: Span = Span::from_millis(250);
/// Packets of a full size that may wait in any case.
const PACKETS: u64 = 3;
const FULL_SIZE: Bytes = Bytes::new(1_514);
/// What has been sent is known for so long, in steps of this.
const STEP: Span = Span::from_millis(10);
const STEPS: usize = 256;

/// Where the queue of the link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// What the shaper sends goes through it.
    Behind,
    /// What comes to the shaper has gone through it.
    Before,
}

/// Parameters of [`Autorate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutorateParams {
    /// The lowest rate; above zero.
    pub least: Rate,
    /// The highest rate, with which it begins; not below `least`.
    pub most: Rate,
    /// The queueing delay above which the link is slower than the rate; two thirds of it before the shaper, where it takes longer to
    /// get rid of it. Three full packets may wait in any case.
    pub threshold: Span,
    /// Where that queue is.
    pub bottleneck: Bottleneck,
}

/// A packet was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Tells connections apart.
    pub connection: u32,
    /// When the packet left the shaper.
    pub departed: Time,
    /// How long the answer took, or how long nothing has come by now.
    pub took: Span,
    /// The shortest that answers of this path took lately.
    pub shortest: Span,
}

/// What [`Autorate`] goes by, for those who watch it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The queueing delay at the last review.
    pub delay: Span,
    /// What the link passes, when it had a queue last; none if it never had.
    pub capacity: Option<Rate>,
    /// Answers so far.
    pub answers: u64,
    /// Reviews that lowered the rate.
    pub lowered: u64,
    /// Reviews that raised it.
    pub raised: u64,
    /// How often a queue was found not to be of this shaper.
    pub foreign: u64,
}

/// The rate of a shaper.
#[derive(Clone, Debug)]
pub struct Autorate {
    params: AutorateParams,
    rate: Rate,
    moved: Moved,
    answers: Vec<Answer>,
    /// Since the last review.
    begun: Time,
    /// When to look whether there is to be one.
    next: Time,
    growth: f64,
    /// Delay that is part of the path.
    foreign: Span,
    /// The rate when there was no queue last.
    good: Rate,
    /// The queue since this time, within a quarter.
    steady: (Span, Time),
    /// While there is a queue.
    episode: Option<Episode>,
    findings: Findings,
}

/// From when the queue was above the threshold until it was gone.
#[derive(Clone, Copy, Debug, Default)]
struct Episode {
    /// What the link passed, in bit/s, as far as that is known of this episode.
    capacity: Option<f64>,
}

/// A queue, from the answers of a review.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// In the earlier and in the later half of departures: the delay, and the median of when these were.
    halves: [(Span, Time); 2],
    /// Whether it is longer, as nothing has come yet.
    is_given_up: bool,
}

impl Autorate {
    /// Begins at `now`, with the highest rate.
    #[must_use]
    pub fn new(now: Time, params: AutorateParams) -> Self {
        Self {
            params,
            rate: params.most,
            moved: Moved::new(now),
            answers: Vec::new(),
            begun: now,
            next: now + REVIEW,
            growth: GROWTH.0,
            foreign: Span::ZERO,
            good: params.most,
            steady: (Span::ZERO, now),
            episode: None,
            findings: Findings::default(),
        }
    }

    /// Other parameters, from now on: what was learnt stays, within the new bounds.
    pub fn set_params(&mut self, params: AutorateParams) {
        self.params = params;
        self.rate = self.rate.max(params.least).min(params.most);
    }

    /// The rate of the shaper.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Where the queue of the link is.
    #[must_use]
    pub const fn bottleneck(&self) -> Bottleneck {
        self.params.bottleneck
    }

    /// What it goes by.
    #[must_use]
    pub const fn findings(&self) -> Findings {
        self.findings
    }

    /// The shaper sent `size`, or with [`Bottleneck::Before`] it came in, at `now`.
    #[inline]
    pub fn moved(&mut self, now: Time, size: Bytes) {
        self.moved.add(now, size);
    }

    /// A packet was answered.
    pub fn answered(&mut self, answer: Answer) {
        self.findings.answers += 1;
        let of_one = || self.answers.iter().filter(|it| it.connection == answer.connection).count();
        let answer = Answer { took: answer.took.min(GIVE_UP), ..answer };
        if self.answers.len() < MOST && (self.answers.len() < MOST_OF_ONE || of_one() < MOST_OF_ONE) {
            self.answers.push(answer);
        }
    }

    /// When to call [`review`](Self::review) next.
    #[must_use]
    pub const fn next_review(&self) -> Time {
        self.next
    }

    /// The part of the rate that was used since the last review.
    #[must_use]
    pub fn load(&self, now: Time) -> f64 {
        let sent = self.moved.rate(self.begun, now);
        sent.as_bit() as f64 / self.rate.as_bit().max(1) as f64
    }

    /// Looks at the answers that came, at `now`, while the other direction used `other_load` of its rate. The rate, if it is another
    /// one than before.
    pub fn review(&mut self, now: Time, other_load: f64) -> Option<Rate> {
        self.next = now + REVIEW;
        let span = now.since(self.begun);
        if span < self.period() || self.answers.len() < LEAST && span < LATE {
            return None;
        }
        let load = self.load(now);
        let found = Queue::of(&mut self.answers);
        self.begun = now;
        self.answers.clear();
        let found = found?;
        self.foreign = self.foreign.min(found.delay());
        let queue = found.without(self.foreign);
        let (before, delay) = (self.rate, if self.is_bottleneck(load) { Span::ZERO } else { queue.delay() });
        self.findings.delay = delay;
        let threshold = self.threshold();
        let is_short = delay <= threshold.div(2);
        if is_short {
            self.good = before;
        }
        let is_foreign = self.is_foreign(now, delay) && !is_short;
        let is_drained = self.episode.is_some() && self.is_low() && delay <= threshold;
        if is_foreign {
            self.foreign += delay;
            self.findings.foreign += 1;
            self.rate = self.good.max(self.params.least).min(self.params.most);
            self.episode = None;
        } else if is_drained || is_short {
            self.raise(load);
        } else if delay > threshold && load >= BUSY.min(other_load) {
            // Otherwise the other direction fills it.
            self.lower(now, queue, threshold);
        }
        let is_lower = self.rate < before;
        self.findings.lowered += u64::from(is_lower);
        self.findings.raised += u64::from(self.rate > before);
        (self.rate != before).then_some(self.rate)
    }

    /// The delay above which the rate is lowered. Well below what the link passed last there is none, so it takes more to believe it.
    fn threshold(&self) -> Span {
        let own = match self.params.bottleneck {
            Bottleneck::Behind => self.params.threshold,
            Bottleneck::Before => self.params.threshold.div(3) * 2,
        };
        let threshold = own.max(self.rate.time_for(FULL_SIZE) * PACKETS);
        if self.episode.is_none() && self.is_low() { threshold * 2 } else { threshold }
    }

    /// Whether what comes in is what the shaper sends, and less than the link passed last: then the link has no queue before it, and
    /// answers are late for another reason.
    fn is_bottleneck(&self, load: f64) -> bool {
        self.params.bottleneck == Bottleneck::Before && self.is_low() && OWN.contains(&load)
    }

    /// Whether the rate is well below what the link passed last.
    fn is_low(&self) -> bool {
        let last = self.findings.capacity.map_or(0.0, |last| last.as_bit() as f64);
        (self.rate.as_bit() as f64) < NEAR.0 * last
    }

    /// The time from one review to the next: that of a round trip, within bounds.
    fn period(&self) -> Span {
        let sum: u64 = self.answers.iter().map(|answer| answer.took.as_nanos()).sum();
        let mean = Span::from_nanos(sum.checked_div(self.answers.len() as u64).unwrap_or(0));
        mean.max(PERIOD.0).min(PERIOD.1)
    }

    /// There is a queue: what the link passes, less what it takes to get rid of it.
    fn lower(&mut self, now: Time, queue: Queue, threshold: Span) {
        self.growth = GROWTH.0;
        let episode = self.episode.get_or_insert_default();
        let known = episode.capacity;
        let capacity = self.believed(now, queue, known, queue.delay() <= threshold * 2);
        self.findings.capacity = Some(Rate::from_bit(capacity as u64));
        if let Some(episode) = &mut self.episode {
            episode.capacity = Some(capacity);
        }
        let (waiting, drain, deepest) = match self.params.bottleneck {
            Bottleneck::Behind => (self.waiting(now, queue, capacity), DRAIN, DEEPEST),
            Bottleneck::Before => (queue.delay().as_secs_f64(), DRAIN_BEFORE, DEEPEST_BEFORE),
        };
        let left = 1.0 - waiting / drain.as_secs_f64();
        self.set(capacity * left.clamp(deepest, SAFE));
    }

    /// Whether the queue has stayed as long as it is, although the rate is much lower than when there was none.
    fn is_foreign(&mut self, now: Time, delay: Span) -> bool {
        let steady = self.steady.0;
        if steady.max(delay).saturating_sub(steady.min(delay)) > steady.div(4) {
            self.steady = (delay, now);
        }
        let is_halved = self.rate.as_bit() <= self.good.as_bit() / 2 || self.rate == self.params.least;
        is_halved && self.foreign + delay <= FOREIGN && now.since(self.steady.1) >= PATIENCE
    }

    /// What the link passes, in bit/s; none if answers take too long to tell, or nothing was sent meanwhile.
    fn capacity(&self, now: Time, queue: Queue) -> Option<f64> {
        let [(early, begin), (late, end)] = queue.halves;
        let since = now - now.since(begin).min(LATE).max(STEP);
        let sent = |from, to| Some(self.moved.rate(from, to).as_bit() as f64).filter(|sent| *sent > 0.0);
        if self.params.bottleneck == Bottleneck::Before {
            return sent(since, now);
        }
        if queue.is_given_up {
            return None;
        }
        let span = end.since(begin);
        if span < STEP {
            // In so short a time jitter is all that differs. The link is slower than what was sent since.
            return sent(since, now).map(|sent| sent * SAFE);
        }
        let growth = late.as_secs_f64() - early.as_secs_f64();
        // A queue cannot shrink faster than time passes, but jitter can.
        sent(begin, end).map(|sent| sent / (1.0 + growth / span.as_secs_f64()).max(0.1))
    }

    /// The same as far as it is believed, after what was `known` in this episode. While the queue is short or gets shorter, a little
    /// jitter of answers is a large part of it.
    fn believed(&self, now: Time, queue: Queue, known: Option<f64>, is_short: bool) -> f64 {
        let Some(capacity) = self.capacity(now, queue) else {
            return known.unwrap_or(self.rate.as_bit() as f64) / 2.0;
        };
        let within = |last: f64, part: f64| capacity.clamp(last * (1.0 - part), last * (1.0 + part));
        let last = self.findings.capacity.map(|last| last.as_bit() as f64).filter(|last| self.is_near(*last));
        match (last.filter(|_| is_short), known) {
            (Some(last), _) => within(last, STEADY),
            (None, Some(known)) if queue.halves[1].0 <= queue.halves[0].0 => within(known, DRAINING),
            (None, Some(known)) => capacity.min(known * (1.0 + DRAINING)),
            (None, None) => capacity,
        }
    }

    /// How long the queue is by now, in seconds: as long as it was, and what was sent since, less the time since.
    fn waiting(&self, now: Time, queue: Queue, capacity: f64) -> f64 {
        let (delay, at) = queue.halves[1];
        let since = now.since(at).as_secs_f64();
        let sent = self.moved.rate(at, now).as_bit() as f64 * since;
        (delay.as_secs_f64() + sent / capacity.max(1.0) - since).max(0.0)
    }

    /// There is no queue: most of what the link passed, or more than it has now if it is busy.
    fn raise(&mut self, load: f64) {
        if self.episode.take().is_some() {
            let part = if self.params.bottleneck == Bottleneck::Behind { SAFE } else { SAFE_BEFORE };
            let safe = self.findings.capacity.map_or(0.0, |capacity| capacity.as_bit() as f64 * part);
            self.set(safe.max(self.rate.as_bit() as f64));
            return;
        }
        if load >= BUSY {
            let is_near = self.findings.capacity.is_some_and(|last| self.is_near(last.as_bit() as f64));
            self.growth = if is_near { GROWTH.0 } else { (self.growth * 2.0).min(GROWTH.1) };
            self.set(self.rate.as_bit() as f64 * (1.0 + self.growth));
        }
    }

    /// Whether the rate is about what the link passed last.
    fn is_near(&self, last: f64) -> bool {
        (NEAR.0 * last..NEAR.1 * last).contains(&(self.rate.as_bit() as f64))
    }

    fn set(&mut self, bits: f64) {
        // From float to integer saturates.
        self.rate = Rate::from_bit(bits as u64).max(self.params.least).min(self.params.most);
    }
}

impl Queue {
    /// From the answers of a review; none without answers.
    fn of(answers: &mut [Answer]) -> Option<Self> {
        answers.sort_unstable_by_key(|answer| answer.departed);
        let (early, late) = answers.split_at(answers.len() / 2);
        let early = if early.is_empty() { late } else { early };
        let half = |answers: &[Answer]| {
            let delay =
                |answer: &Answer| (answer.took.saturating_sub(answer.shortest), answer.took >= GIVE_UP);
            let mut delays: Vec<(Span, bool)> = answers.iter().map(delay).collect();
            delays.sort_unstable();
            let (delay, is_given_up) = *delays.get(answers.len().checked_sub(1)? / 4)?;
            // The median: one that left long ago and is given up now says nothing of when the others left.
            let departed = answers.get(answers.len() / 2)?.departed;
            Some(((delay, departed), is_given_up))
        };
        let ((early, is_given_up), (late, is_given_up_later)) = (half(early)?, half(late)?);
        Some(Self { halves: [early, late], is_given_up: is_given_up || is_given_up_later })
    }

    /// The same, less what is part of the path.
    fn without(self, foreign: Span) -> Self {
        Self { halves: self.halves.map(|(delay, at)| (delay.saturating_sub(foreign), at)), ..self }
    }

    const fn delay(self) -> Span {
        self.halves[1].0
    }
}

/// What has passed, for the last seconds.
#[derive(Clone, Debug)]
struct Moved {
    /// At these times so many bytes had passed.
    steps: VecDeque<(Time, u64)>,
    /// When the last ones did.
    last: Time,
    total: u64,
}

impl Moved {
    fn new(now: Time) -> Self {
        Self { steps: VecDeque::from([(now, 0)]), last: now, total: 0 }
    }

    #[inline]
    fn add(&mut self, now: Time, size: Bytes) {
        let now = now.max(self.last);
        if self.steps.back().is_none_or(|(at, _)| now.since(*at) >= STEP) {
            if self.steps.len() == STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back((now, self.total));
        }
        self.last = now;
        self.total = self.total.saturating_add(size.get());
    }

    /// The mean rate from one time to another; zero if no time lies between them.
    fn rate(&self, from: Time, to: Time) -> Rate {
        let span = to.since(from).as_secs_f64();
        if span <= 0.0 {
            return Rate::ZERO;
        }
        Rate::from_bit((8.0 * (self.until(to) - self.until(from)) / span) as u64)
    }

    /// Bytes that had passed at `at`: within a step as much as of its time.
    fn until(&self, at: Time) -> f64 {
        let behind = self.steps.partition_point(|(step, _)| *step <= at);
        let (begin, before) = match behind.checked_sub(1).and_then(|step| self.steps.get(step)) {
            Some(step) => *step,
            None => return self.steps.front().map_or(0.0, |(_, bytes)| *bytes as f64),
        };
        let (end, after) = self.steps.get(behind).copied().unwrap_or((self.last, self.total));
        let span = end.since(begin).as_secs_f64();
        let part = if span > 0.0 { (at.since(begin).as_secs_f64() / span).min(1.0) } else { 1.0 };
        before as f64 + (after - before) as f64 * part
    }
}

#[cfg(test)]
mod tests;
