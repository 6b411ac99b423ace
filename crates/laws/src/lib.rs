//! The laws that every queue discipline keeps, and the laws of congestion controls, each checked by one call
//! in a test.
//!
//! ```
//! # use std::collections::VecDeque;
//! # use apportion_core::{Backlog, Queue, SimplePacket, Sink, units::Time};
//! # #[derive(Default)]
//! # struct MyQueue(VecDeque<SimplePacket>, Backlog);
//! # impl Queue<SimplePacket> for MyQueue {
//! #     fn enqueue(&mut self, _: Time, packet: SimplePacket, _: &mut dyn Sink<SimplePacket>) {
//! #         self.1.add(&packet);
//! #         self.0.push_back(packet);
//! #     }
//! #     fn dequeue(&mut self, _: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
//! #         let packet = self.0.pop_front()?;
//! #         self.1.remove(&packet);
//! #         Some(packet)
//! #     }
//! #     fn backlog(&self) -> Backlog { self.1 }
//! # }
//! apportion_laws::check(|_link| MyQueue::default());
//! ```
//!
//! A discipline is tested with random sequences of arrivals, requests and pauses, the same ones in each run
//! of the test. If a discipline breaks a law, the sequence is shortened as long as a law is still broken, and
//! the test fails with the law, the step and the sequence. [`Laws`] declares further properties of a
//! discipline: that its buffer has a limit, that it holds packets back, that it divides the link by weights.
//!
//! [`check_control`] does the same for a congestion control.

#![warn(missing_docs)]

mod control;
mod fairness;
mod multiplier;
mod sequence;

use std::fmt;

use apportion_core::limit::Limit;
use apportion_core::system::{Discipline, LinkContext};
use apportion_core::units::{Bytes, Packets, Rate, Span};
use apportion_core::{Queue, SimplePacket};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use sequence::Beyond;

pub use control::{ControlLaw, ControlOp, ControlViolation, check_control, verify_control};
pub use sequence::Op;

/// A law of queue disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Law {
    /// Every packet that arrives leaves or is dropped, exactly once and unchanged except for marks, colour
    /// and labels; `backlog` counts the packets that did neither, and [`Discipline::drain`] removes them.
    Conservation,
    /// The packets of a flow leave in the order of their arrival. Not for disciplines that
    /// [reorder](Laws::reorders) them.
    Order,
    /// A request gets a packet while packets wait. Not for disciplines that [hold packets
    /// back](Laws::holds_back).
    WorkConservation,
    /// A discipline that refuses a request while packets wait names a later time at which it returns a
    /// packet. It returns a packet at that time, and not before unless another packet arrives or a setting
    /// changes.
    WakeUp,
    /// The backlog does not exceed the [limit](Laws::limit).
    Limit,
    /// Only ECN-capable packets are reported as marked, and they leave with "congestion experienced"; the ECN
    /// field of all others stays unchanged.
    Marking,
    /// The same seed and the same sequence result in the same departures, drops and marks.
    Determinism,
    /// If [`Queue::is_transparent`] holds, a packet that bypasses the empty discipline changes nothing.
    Transparency,
    /// While two flows are backlogged, the services that they get differ by at most [a bound](Laws::fair),
    /// over any interval.
    Fairness,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conservation => "conservation",
            Self::Order => "order within a flow",
            Self::WorkConservation => "work conservation",
            Self::WakeUp => "wake-up",
            Self::Limit => "limit",
            Self::Marking => "marking",
            Self::Determinism => "determinism",
            Self::Transparency => "transparency",
            Self::Fairness => "fairness",
        })
    }
}

/// A law that a discipline broke, with the shortest sequence found that shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The law.
    pub law: Law,
    /// The step of [`ops`](Self::ops) at which the law was broken, from 0; the number of steps if it was
    /// broken at the end, when the waiting packets are removed.
    pub step: usize,
    /// A description of the violation at this step.
    pub what: String,
    /// The sequence.
    pub ops: Vec<Op>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { law, step, what, ops } = self;
        writeln!(f, "the law of {law} is broken: {what}")?;
        for (number, op) in ops.iter().enumerate() {
            let mark = if number == *step { "   <-- here" } else { "" };
            writeln!(f, "  {number:>3}: {}{mark}", op.describe(number))?;
        }
        if *step >= ops.len() {
            writeln!(f, "  {:>3}: dequeue what waits   <-- here", ops.len())?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}

/// The properties of a discipline under test, and the number of random sequences.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Laws {
    limit: Option<Limit>,
    holds_back: bool,
    reorders: bool,
    quantum: Option<Bytes>,
    cases: u32,
}

impl Default for Laws {
    /// A work-conserving discipline without a limit; 256 sequences of up to 200 steps.
    fn default() -> Self {
        Self { limit: None, holds_back: false, reorders: false, quantum: None, cases: 256 }
    }
}

impl Laws {
    /// Declares that at most `limit` packets wait.
    #[must_use]
    pub const fn limit(self, limit: Packets) -> Self {
        Self { limit: Some(Limit::Packets(limit)), ..self }
    }

    /// Declares that at most `limit` bytes wait; in sequences with changes, until a change sets a limit in
    /// packets.
    #[must_use]
    pub const fn limit_bytes(self, limit: Bytes) -> Self {
        Self { limit: Some(Limit::Bytes(limit)), ..self }
    }

    /// Declares that the discipline may refuse a request while packets wait, as a shaper does, and then names
    /// the time of the next attempt.
    #[must_use]
    pub const fn holds_back(self) -> Self {
        Self { holds_back: true, ..self }
    }

    /// Declares that packets of a flow may overtake each other.
    #[must_use]
    pub const fn reorders(self) -> Self {
        Self { reorders: true, ..self }
    }

    /// Declares that the discipline divides the link by weights: over any interval in which flows f and m are
    /// backlogged, W_f/w_f and W_m/w_m differ by at most `quantum`/w + L/w_f + L/w_m, where W are the bytes
    /// served, w the weights (the smallest for the quantum) and L the size of the largest packet. This is the
    /// bound of DRR with its quantum (Shreedhar, Varghese 1996, theorem 2), and of start-time and
    /// self-clocked fair queueing with quantum 0 (Goyal, Vin, Cheng 1997, theorem 1). The buffer must hold
    /// 600 packets.
    #[must_use]
    pub const fn fair(self, quantum: Bytes) -> Self {
        Self { quantum: Some(quantum), ..self }
    }

    /// Sets the number of sequences, which the environment variable `APPORTION_CASES` multiplies. Default:
    /// 256.
    #[must_use]
    pub const fn cases(self, cases: u32) -> Self {
        Self { cases, ..self }
    }

    /// Tests the discipline that `build` creates for a link of 10 Mb/s.
    ///
    /// # Errors
    /// The first law that is broken.
    pub fn verify<Q: Queue<SimplePacket>>(
        self,
        build: impl Fn(&LinkContext<'_>) -> Q,
    ) -> Result<(), Box<Violation>> {
        self.sequences(&build, sequence::ops(), &Beyond::NOTHING)?;
        match self.quantum {
            Some(quantum) => fairness::check(&build, quantum),
            None => Ok(()),
        }
    }

    /// Tests as [`verify`](Self::verify) does, and then with sequences in which the limit, the weights and
    /// the rate of the link change while packets wait. At the end of these, [`Discipline::drain`] removes the
    /// packets, as when a discipline is replaced.
    ///
    /// # Errors
    /// The first law that is broken.
    pub fn verify_changes<Q: Discipline<SimplePacket>>(
        self,
        build: impl Fn(&LinkContext<'_>) -> Q,
    ) -> Result<(), Box<Violation>> {
        self.verify(&build)?;
        self.sequences(&build, sequence::ops_with_changes(), &Beyond::SYSTEM)
    }

    /// Tests random sequences of `ops`.
    fn sequences<Q: Queue<SimplePacket>>(
        self,
        build: &impl Fn(&LinkContext<'_>) -> Q,
        ops: impl Strategy<Value = Vec<Op>>,
        beyond: &Beyond<Q>,
    ) -> Result<(), Box<Violation>> {
        let cases = self.cases.saturating_mul(multiplier::multiplier());
        let config = Config { cases, failure_persistence: None, ..Config::default() };
        let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
        let new = || build(&LinkContext::new(Rate::from_mbit(10), 1, "link"));
        let run = |ops: &[Op]| sequence::check(&new, beyond, ops, self);
        let found = runner.run(&ops, |ops| run(&ops).map_err(|broken| TestCaseError::fail(broken.what)));
        if let Err(TestError::Fail(reason, ops)) = found {
            let Err(broken) = run(&ops) else {
                let what = format!("a second run does not show what the first one did: {reason}");
                return Err(Box::new(Violation { law: Law::Determinism, step: ops.len(), what, ops }));
            };
            let (sequence::Broken { law, step, what }, ops) = sequence::shortest(broken, ops, &run);
            return Err(Box::new(Violation { law, step, what, ops }));
        }
        Ok(())
    }

    /// Tests as [`verify_changes`](Self::verify_changes) does, and panics on failure.
    ///
    /// # Panics
    /// If a law is broken, with the first one.
    pub fn check_changes<Q: Discipline<SimplePacket>>(self, build: impl Fn(&LinkContext<'_>) -> Q) {
        if let Err(violation) = self.verify_changes(build) {
            panic!("{violation}");
        }
    }

    /// Tests as [`verify`](Self::verify) does, and panics on failure.
    ///
    /// # Panics
    /// If a law is broken, with the first one.
    pub fn check<Q: Queue<SimplePacket>>(self, build: impl Fn(&LinkContext<'_>) -> Q) {
        if let Err(violation) = self.verify(build) {
            panic!("{violation}");
        }
    }
}

/// Checks the laws of [`Laws::default`], which hold for every discipline.
///
/// # Panics
/// If a law is broken, with the first one.
pub fn check<Q: Queue<SimplePacket>>(build: impl Fn(&LinkContext<'_>) -> Q) {
    Laws::default().check(build);
}

/// The maximum pause between two steps: three times RED's maximum wait at this rate.
const MAX_PAUSE: Span = Span::from_millis(60);
