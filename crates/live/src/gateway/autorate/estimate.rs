//! Estimates the rate of a shaper in front of a link of unknown capacity from the delay of answers, as
//! scripts of cake-autorate do.
//!
//! A link that is slower than its shaper holds the queue, where no discipline schedules it. Round trips show
//! its delay: the answer to a packet that departs at d takes the shortest round trip of the path plus the
//! queueing delay q(d). The capacity C of the link follows from it:
//!
//! - [`Bottleneck::Behind`] the shaper, which sends at R: while there is a queue it grows by dq/dt = R/C - 1,
//!   so C = R / (1 + dq/dt), and the bytes sent since d give the present length of the queue.
//! - [`Bottleneck::Before`] the shaper, for example the downlink of a home: while there is a queue, the
//!   arrival rate is C.
//!
//! While q is above the threshold, the rate is C (1 - q/D), so that the queue is gone after D, 200 ms (100 ms
//! before the shaper). Once it is gone, the rate is 0.92 C (0.85 C). While q is below half of the threshold
//! and the shaper is busy, the rate grows: by 1 % per review around the last C, elsewhere by twice as much
//! each time, up to 10 %. Well below the last C, only a delay above twice the threshold lowers the rate.
//!
//! A queue that keeps its length for 3 s, within a quarter, although the rate has been halved is not caused
//! by this shaper: the path is longer than before, or others fill the link. Its delay then counts as part of
//! the path, and the rate returns to its earlier value, unless more than 250 ms would count so.
//!
//! The delay of a review is the lower quartile of its answers, because other causes than the link can delay
//! an answer (RFC 9293 section 3.8.6.3); one connection counts with at most 32 of them. Hosts that answer
//! late therefore decide only if they give three quarters of the answers. Hosts that acknowledge data before
//! they receive it answer first while a queue grows, so one of eight connections can hide the queue: then the
//! rate stays too high, as a fixed one would. The rate stays within its bounds in any case.
//!
//! Limits: without answers the rate stays as it is. A link that drops instead of queueing (a policer) is not
//! detected. A queue that existed when a host was first seen counts as part of its path until the queue has
//! been shorter once.
//!
//! Cost: O(1) per packet; a sort of at most 256 answers per review; 14 kB.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use apportion_core::units::{Bytes, Rate, Span, Time};

/// The least interval of calls of [`Autorate::review`].
pub const REVIEW: Span = Span::from_millis(25);
/// The shortest and the longest time between reviews with enough answers; between these bounds it is a round
/// trip.
const PERIOD: (Span, Span) = (Span::from_millis(50), Span::from_millis(300));
/// Time after which a review takes fewer answers.
const LATE: Span = Span::from_secs(1);
/// Answers of a review: the minimum, unless it is late, and the maximum.
const LEAST: usize = 4;
const MOST: usize = 256;
/// Maximum of answers of one connection in a review.
const MOST_OF_ONE: usize = 32;
/// Time after which an answer is no longer waited for. Chosen: more than the longest round trip without a
/// queue, that of a geostationary satellite.
pub const GIVE_UP: Span = Span::from_secs(1);
/// Time in which a queue should drain. Chosen: above the round trip after which a new rate takes effect, on
/// most paths.
const DRAIN: Span = Span::from_millis(200);
/// Time in which a queue before the shaper should drain: its growth depends on the departures and drops of
/// the shaper.
const DRAIN_BEFORE: Span = Span::from_millis(100);
/// The lowest fraction of C that the rate takes while there is a queue.
const DEEPEST: f64 = 0.4;
const DEEPEST_BEFORE: f64 = 0.2;
/// The highest fraction of C that the rate takes once the queue is gone. Before the shaper it is smaller,
/// because senders repeat the shaper's drops through the queue.
const SAFE: f64 = 0.92;
const SAFE_BEFORE: f64 = 0.85;
/// Growth of the rate from one review to the next: the first, and the largest.
const GROWTH: (f64, f64) = (0.01, 0.1);
/// The range of fractions of C in which the rate grows slowest. Above it the link is faster than it was.
const NEAR: (f64, f64) = (0.9, 1.1);
/// The largest relative change of C from one review to the next: while the queue is short and the rate near
/// C, and while the queue gets shorter.
const STEADY: f64 = 0.1;
const DRAINING: f64 = 0.25;
/// Arrival rate over the rate of the shaper if the shaper and no link before it is the bottleneck. Arrivals
/// include the shaper's drops.
const OWN: RangeInclusive<f64> = 0.97..=1.1;
/// The fraction of its rate from which a shaper is busy.
const BUSY: f64 = 0.75;
/// Time after which a queue of constant length is not caused by this shaper, and the largest total delay that
/// counts so.
const PATIENCE: Span = Span::from_secs(3);
const FOREIGN: Span = Span::from_millis(250);
/// Full-size packets that may wait without lowering the rate.
const PACKETS: u64 = 3;
const FULL_SIZE: Bytes = Bytes::new(1_514);
/// Length of the record of bytes, and its resolution.
const STEP: Span = Span::from_millis(10);
const STEPS: usize = 256;

/// Place of the queue of the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bottleneck {
    /// Behind the shaper, which feeds it.
    Behind,
    /// Before the shaper, whose arrivals have passed it.
    Before,
}

/// Parameters of [`Autorate`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutorateParams {
    /// The lowest rate; above zero.
    pub least: Rate,
    /// The highest rate, with which it begins; not below `least`.
    pub most: Rate,
    /// The queueing delay above which the link is slower than the rate; two thirds of it before the shaper,
    /// where the queue takes longer to drain. Three full packets may wait in any case.
    pub threshold: Span,
    /// Place of that queue.
    pub bottleneck: Bottleneck,
}

/// An answer to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the connection.
    pub connection: u32,
    /// Time at which the packet left the shaper.
    pub departed: Time,
    /// The time to the answer, or the time so far if there is none yet.
    pub took: Span,
    /// The shortest recent time to an answer on this path.
    pub shortest: Span,
}

/// Measurements of [`Autorate`], for display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// The queueing delay at the last review.
    pub delay: Span,
    /// The capacity of the link when it last had a queue; none if it never had one.
    pub capacity: Option<Rate>,
    /// Answers so far.
    pub answers: u64,
    /// Reviews that lowered the rate.
    pub lowered: u64,
    /// Reviews that raised it.
    pub raised: u64,
    /// Number of times that a queue was found not to be caused by this shaper.
    pub foreign: u64,
}

/// The estimated rate of a shaper.
#[derive(Clone, Debug)]
pub struct Autorate {
    params: AutorateParams,
    rate: Rate,
    moved: Moved,
    answers: Vec<Answer>,
    /// Time of the last review.
    begun: Time,
    /// Time to check whether a review is due.
    next: Time,
    growth: f64,
    /// Delay that is part of the path.
    foreign: Span,
    /// The rate when there was last no queue.
    good: Rate,
    /// The length of the queue within a quarter, and since when.
    steady: (Span, Time),
    /// Present while there is a queue.
    episode: Option<Episode>,
    findings: Findings,
}

/// The time from when the queue exceeded the threshold until it is gone.
#[derive(Clone, Copy, Debug, Default)]
struct Episode {
    /// The capacity of the link in bit/s, as far as this episode has shown it.
    capacity: Option<f64>,
}

/// The queue, estimated from the answers of a review.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// Delay and median departure, of the earlier and the later half of departures.
    halves: [(Span, Time); 2],
    /// Whether its length is a lower bound, because answers are missing.
    is_given_up: bool,
}

impl Autorate {
    /// Starts at `now`, with the highest rate.
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

    /// Changes the parameters and keeps the estimates, within the new bounds.
    pub fn set_params(&mut self, params: AutorateParams) {
        self.params = params;
        self.rate = self.rate.max(params.least).min(params.most);
    }

    /// The rate of the shaper.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Place of the queue of the link.
    #[must_use]
    pub const fn bottleneck(&self) -> Bottleneck {
        self.params.bottleneck
    }

    /// The measurements so far.
    #[must_use]
    pub const fn findings(&self) -> Findings {
        self.findings
    }

    /// Notes that at `now` the shaper sent `size`, or that `size` arrived there with [`Bottleneck::Before`].
    #[inline]
    pub fn moved(&mut self, now: Time, size: Bytes) {
        self.moved.add(now, size);
    }

    /// Notes an answer.
    pub fn answered(&mut self, answer: Answer) {
        self.findings.answers += 1;
        let of_one = || self.answers.iter().filter(|it| it.connection == answer.connection).count();
        let answer = Answer { took: answer.took.min(GIVE_UP), ..answer };
        if self.answers.len() < MOST && (self.answers.len() < MOST_OF_ONE || of_one() < MOST_OF_ONE) {
            self.answers.push(answer);
        }
    }

    /// Time to call [`review`](Self::review) next.
    #[must_use]
    pub const fn next_review(&self) -> Time {
        self.next
    }

    /// The fraction of the rate used since the last review.
    #[must_use]
    pub fn load(&self, now: Time) -> f64 {
        let sent = self.moved.rate(self.begun, now);
        sent.as_bit() as f64 / self.rate.as_bit().max(1) as f64
    }

    /// Reviews the answers so far at `now`, while the other direction used `other_load` of its rate. Returns
    /// the rate if it changed.
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
            // Otherwise the other direction fills the link.
            self.lower(now, queue, threshold);
        }
        let is_lower = self.rate < before;
        self.findings.lowered += u64::from(is_lower);
        self.findings.raised += u64::from(self.rate > before);
        (self.rate != before).then_some(self.rate)
    }

    /// The delay above which the rate is lowered. Well below the last capacity no queue is expected, so the
    /// threshold is higher.
    fn threshold(&self) -> Span {
        let own = match self.params.bottleneck {
            Bottleneck::Behind => self.params.threshold,
            Bottleneck::Before => self.params.threshold.div(3) * 2,
        };
        let threshold = own.max(self.rate.time_for(FULL_SIZE) * PACKETS);
        if self.episode.is_none() && self.is_low() { threshold * 2 } else { threshold }
    }

    /// Whether arrivals match what the shaper sends, and are below the last capacity: then the link has no
    /// queue before the shaper, and answers are late for another reason.
    fn is_bottleneck(&self, load: f64) -> bool {
        self.params.bottleneck == Bottleneck::Before && self.is_low() && OWN.contains(&load)
    }

    /// Whether the rate is well below the last capacity.
    fn is_low(&self) -> bool {
        let last = self.findings.capacity.map_or(0.0, |last| last.as_bit() as f64);
        (self.rate.as_bit() as f64) < NEAR.0 * last
    }

    /// The time from one review to the next: a round trip, within bounds.
    fn period(&self) -> Span {
        let sum: u64 = self.answers.iter().map(|answer| answer.took.as_nanos()).sum();
        let mean = Span::from_nanos(sum.checked_div(self.answers.len() as u64).unwrap_or(0));
        mean.max(PERIOD.0).min(PERIOD.1)
    }

    /// Lowers the rate because of a queue: to the capacity, less what drains the queue.
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

    /// Whether the queue has kept its length, although the rate is much lower than without it.
    fn is_foreign(&mut self, now: Time, delay: Span) -> bool {
        let steady = self.steady.0;
        if steady.max(delay).saturating_sub(steady.min(delay)) > steady.div(4) {
            self.steady = (delay, now);
        }
        let is_halved = self.rate.as_bit() <= self.good.as_bit() / 2 || self.rate == self.params.least;
        is_halved && self.foreign + delay <= FOREIGN && now.since(self.steady.1) >= PATIENCE
    }

    /// The capacity in bit/s; none if answers take too long to show it, or no bytes were sent meanwhile.
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
            // Over so short a time the delays differ only by jitter. The link is slower than the rate sent
            // since.
            return sent(since, now).map(|sent| sent * SAFE);
        }
        let growth = late.as_secs_f64() - early.as_secs_f64();
        // A queue cannot shrink faster than time passes, but jitter can.
        sent(begin, end).map(|sent| sent / (1.0 + growth / span.as_secs_f64()).max(0.1))
    }

    /// The capacity, limited in its change from the one `known` in this episode. While the queue is short or
    /// gets shorter, the jitter of answers is a large part of it.
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

    /// The present length of the queue in seconds: its last length, plus the bytes sent since, minus the time
    /// since.
    fn waiting(&self, now: Time, queue: Queue, capacity: f64) -> f64 {
        let (delay, at) = queue.halves[1];
        let since = now.since(at).as_secs_f64();
        let sent = self.moved.rate(at, now).as_bit() as f64 * since;
        (delay.as_secs_f64() + sent / capacity.max(1.0) - since).max(0.0)
    }

    /// Raises the rate because there is no queue: to most of the last capacity, or step by step while the
    /// shaper is busy.
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

    /// Whether the rate is close to the last capacity.
    fn is_near(&self, last: f64) -> bool {
        (NEAR.0 * last..NEAR.1 * last).contains(&(self.rate.as_bit() as f64))
    }

    fn set(&mut self, bits: f64) {
        // From float to integer saturates.
        self.rate = Rate::from_bit(bits as u64).max(self.params.least).min(self.params.most);
    }
}

impl Queue {
    /// A queue by the answers of a review; none without answers.
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
            // The median, because one that departed long ago and is given up now says nothing of the others'
            // departures.
            let departed = answers.get(answers.len() / 2)?.departed;
            Some(((delay, departed), is_given_up))
        };
        let ((early, is_given_up), (late, is_given_up_later)) = (half(early)?, half(late)?);
        Some(Self { halves: [early, late], is_given_up: is_given_up || is_given_up_later })
    }

    /// The queue without the delay that is part of the path.
    fn without(self, foreign: Span) -> Self {
        Self { halves: self.halves.map(|(delay, at)| (delay.saturating_sub(foreign), at)), ..self }
    }

    const fn delay(self) -> Span {
        self.halves[1].0
    }
}

/// Bytes that have passed, over the last seconds.
#[derive(Clone, Debug)]
struct Moved {
    /// Times, and the bytes that had passed by then.
    steps: VecDeque<(Time, u64)>,
    /// Time at which the last bytes passed.
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

    /// Bytes that had passed at `at`, interpolated within a step.
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
