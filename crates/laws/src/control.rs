//! The laws that every congestion control keeps.
//!
//! The tests drive a control as QUIC does: packets leave as the window allows, a loss reduces the window at
//! once, and a retransmitted packet gets a new number. Random sequences of events are tried first, with a
//! check after every call; then a path with a queue that fails for ten seconds and works again.

use std::collections::VecDeque;
use std::fmt;
use std::ops::DerefMut;

use apportion_core::congestion::{
    Ack, CongestionControl, CongestionEvent, Connection, Feedback, Phase, Response, Sent, Window,
};
use apportion_core::units::{Bytes, Span, Time};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};

use crate::multiplier;

/// A law of congestion controls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlLaw {
    /// Window and threshold are positive and not "not a number", and the window is finite.
    Finite,
    /// After a timeout the threshold is at most the larger of the window before it and two segments.
    Timeout,
    /// The same sequence results in the same windows.
    Determinism,
    /// Without an ACK the window does not exceed its previous maximum.
    Growth,
    /// Within a minute after a path has failed for ten seconds, the control uses half of its capacity.
    Outage,
}

impl fmt::Display for ControlLaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Finite => "finite windows",
            Self::Timeout => "timeouts",
            Self::Determinism => "determinism",
            Self::Growth => "no growth without an ACK",
            Self::Outage => "recovery from an outage",
        })
    }
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlOp {
    /// An ACK of this number of packets.
    Ack(u8),
    /// An ACK of a marked packet.
    Mark,
    /// The oldest packet is lost.
    Loss,
    /// All packets in flight are lost.
    Timeout,
    /// The application has no data until the next ACK.
    Pause,
    /// Time passes, in milliseconds.
    Advance(u16),
}

/// A law that a control broke, with the shortest sequence found that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ControlViolation {
    /// The law.
    pub law: ControlLaw,
    /// A description of the violation.
    pub what: String,
    /// The sequence, which ends with the violation; empty for the outage.
    pub ops: Vec<ControlOp>,
}

impl fmt::Display for ControlViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { law, what, ops } = self;
        writeln!(f, "the law of {law} is broken: {what}")?;
        ops.iter().enumerate().try_for_each(|(number, op)| writeln!(f, "  {number:>3}: {op:?}"))
    }
}

impl std::error::Error for ControlViolation {}

/// A connection that starts: ten packets of 1500 bytes.
const CONNECTION: Connection =
    Connection { initial_window: 10.0, segment: Bytes::new(1_448), wire: Bytes::new(1_500) };
/// The round-trip time of an empty path.
const RTT: Span = Span::from_millis(100);
/// Number of random sequences.
const CASES: u32 = 256;
/// The receive window, in packets.
const MOST: u64 = 10_000;

/// Checks the laws of congestion controls on the boxed controls that `build` creates.
///
/// # Panics
/// If a law is broken, with the first one.
pub fn check_control<C: DerefMut<Target: CongestionControl>>(build: impl Fn(&Connection) -> C) {
    if let Err(violation) = verify_control(build) {
        panic!("{violation}");
    }
}

/// Checks the laws as [`check_control`] does, and returns the result.
///
/// # Errors
/// The first law that is broken.
pub fn verify_control<C: DerefMut<Target: CongestionControl>>(
    build: impl Fn(&Connection) -> C,
) -> Result<(), Box<ControlViolation>> {
    let new = || build(&CONNECTION);
    let cases = CASES.saturating_mul(multiplier::multiplier());
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let run = |ops: &[ControlOp]| -> Result<(), Broken> {
        let once = || Driver::new(new()).follow(ops);
        if once()? == once()? {
            return Ok(());
        }
        Err((ControlLaw::Determinism, "two runs of one sequence have different windows".to_owned()))
    };
    let found = runner.run(&ops(), |ops| run(&ops).map_err(|(_, what)| TestCaseError::fail(what)));
    if let Err(TestError::Fail(reason, ops)) = found {
        let (law, what) = run(&ops).err().unwrap_or_else(|| {
            (ControlLaw::Determinism, format!("a second run does not show what the first one did: {reason}"))
        });
        return Err(Box::new(shortest(ControlViolation { law, what, ops }, &run)));
    }
    let outage = Path::new(new()).survive_outage();
    outage.map_err(|(law, what)| Box::new(ControlViolation { law, what, ops: Vec::new() }))
}

type Broken = (ControlLaw, String);

/// Removes steps from the sequence as long as the law is still broken.
fn shortest(
    mut broken: ControlViolation,
    run: &impl Fn(&[ControlOp]) -> Result<(), Broken>,
) -> ControlViolation {
    let law = broken.law;
    while (0..broken.ops.len()).rev().any(|at| {
        let mut ops = broken.ops.clone();
        ops.remove(at);
        match run(&ops) {
            Err((same, what)) if same == law => {
                broken = ControlViolation { law, what, ops };
                true
            }
            _ => false,
        }
    }) {}
    broken
}

fn ops() -> impl Strategy<Value = Vec<ControlOp>> {
    let op = prop_oneof![
        8 => (1..=40_u8).prop_map(ControlOp::Ack),
        1 => Just(ControlOp::Mark),
        1 => Just(ControlOp::Loss),
        1 => Just(ControlOp::Timeout),
        1 => Just(ControlOp::Pause),
        2 => (1..=2_000_u16).prop_map(ControlOp::Advance),
    ];
    proptest::collection::vec(op, 1..120)
}

/// A transport with its congestion control.
struct Driver<C> {
    control: C,
    /// Whether the control observes segments.
    observes_segments: bool,
    window: Window,
    /// The largest window so far.
    largest: f64,
    now: Time,
    phase: Phase,
    /// Numbers of the packets in flight.
    in_flight: VecDeque<u64>,
    sent: u64,
    /// Recovery ends when a packet with a larger number arrives.
    recover: u64,
    pauses: bool,
}

impl<C: DerefMut<Target: CongestionControl>> Driver<C> {
    fn new(control: C) -> Self {
        let window = Window { cwnd: CONNECTION.initial_window, ssthresh: f64::INFINITY };
        Self {
            observes_segments: control.observes_segments(),
            control,
            window,
            largest: window.cwnd,
            now: Time::from_millis(1),
            phase: Phase::Open,
            in_flight: VecDeque::new(),
            sent: 0,
            recover: 0,
            pauses: false,
        }
    }

    /// Returns the windows after each step.
    fn follow(mut self, ops: &[ControlOp]) -> Result<Vec<(u64, u64)>, Broken> {
        let mut windows = Vec::new();
        for &op in ops {
            match op {
                ControlOp::Ack(packets) => self.acknowledge(packets.into(), 0, RTT)?,
                ControlOp::Mark => self.acknowledge(1, 1, RTT)?,
                ControlOp::Loss => self.lose()?,
                ControlOp::Timeout => self.time_out()?,
                ControlOp::Pause => {
                    self.pauses = true;
                    if self.observes_segments {
                        self.control.on_app_limited(self.in_flight.len() as u32);
                    }
                }
                ControlOp::Advance(millis) => self.now += Span::from_millis(millis.into()),
            }
            if !self.pauses {
                while self.may_send() {
                    self.send()?;
                }
            }
            windows.push((self.window.cwnd.to_bits(), self.window.ssthresh.to_bits()));
        }
        Ok(windows)
    }

    fn may_send(&self) -> bool {
        let in_flight = self.in_flight.len() as u64;
        in_flight < MOST && in_flight as f64 + 1.0 <= self.window.cwnd.max(1.0)
    }

    fn send(&mut self) -> Result<(), Broken> {
        let in_flight = self.in_flight.len() as u32;
        self.sent += 1;
        self.in_flight.push_back(self.sent);
        if self.observes_segments {
            let sent = Sent { now: self.now, number: self.sent, in_flight };
            self.control.on_sent(&mut self.window, &sent);
        }
        self.check("on_sent")
    }

    /// Handles an ACK of the oldest `packets` packets, `marked` of which were marked.
    fn acknowledge(&mut self, packets: usize, marked: u32, rtt: Span) -> Result<(), Broken> {
        let prior_in_flight = self.in_flight.len();
        let acked = packets.min(prior_in_flight);
        let Some(&latest) = acked.checked_sub(1).and_then(|last| self.in_flight.get(last)) else {
            return Ok(());
        };
        (self.pauses, self.now) = (false, self.now + Span::from_millis(1));
        self.in_flight.drain(..acked);
        let (now, last_sent, delivered) = (self.now, self.sent, acked as u32);
        if self.observes_segments {
            self.control.on_feedback(&Feedback {
                now,
                number: latest,
                last_sent,
                bytes: CONNECTION.segment.get() * acked as u64,
                segments: delivered,
                marked,
                counts_marks: true,
                one_way_delay: Some(rtt.div(2)),
            });
        }
        if self.phase != Phase::Open && latest > self.recover {
            self.phase = Phase::Open;
            self.control.on_recovered(&mut self.window);
            self.check("on_recovered")?;
        }
        if marked > 0 && self.phase == Phase::Open && self.congest(C::Target::on_mark, "on_mark")? {
            (self.phase, self.recover) = (Phase::Cwr, self.sent);
        }
        let opens = matches!(self.phase, Phase::Open | Phase::Loss);
        if opens || self.control.moves_window(self.phase) {
            let is_limited = prior_in_flight as f64 + 1.0 > self.window.cwnd;
            let ack = Ack {
                now,
                phase: self.phase,
                acked: f64::from(delivered),
                counted: f64::from(delivered),
                abc_limit: None,
                delivered,
                lost: 0,
                prior_in_flight: prior_in_flight as u32,
                in_flight: self.in_flight.len() as u32,
                number: latest,
                last_sent,
                latest: Some(latest),
                rtt: Some(rtt),
                srtt: rtt,
                min_rtt: RTT,
                slow_start: self.window.is_slow_start(),
                is_limited,
                may_grow: is_limited,
            };
            self.control.on_ack(&mut self.window, &ack);
            self.largest = self.largest.max(self.window.cwnd);
        }
        self.check("on_ack")
    }

    /// Declares the oldest packet lost.
    fn lose(&mut self) -> Result<(), Broken> {
        let Some(number) = self.in_flight.pop_front() else { return Ok(()) };
        if matches!(self.phase, Phase::Open | Phase::Cwr) && self.congest(C::Target::on_loss, "on_loss")? {
            (self.phase, self.recover) = (Phase::Recovery, self.sent);
        }
        self.inform_of_loss(number);
        Ok(())
    }

    fn inform_of_loss(&mut self, number: u64) {
        if self.observes_segments {
            self.control.on_segment_lost(&self.window, self.now, number);
        }
    }

    fn event(&self) -> CongestionEvent {
        CongestionEvent {
            now: self.now,
            cwnd: self.window.cwnd,
            basis: self.window.cwnd,
            receive_window: MOST as f64,
            in_flight: self.in_flight.len() as u32,
            again: false,
        }
    }

    /// Signals congestion. Returns whether the control responds.
    fn congest(
        &mut self,
        sign: fn(&mut C::Target, &mut Window, &CongestionEvent) -> Response,
        hook: &str,
    ) -> Result<bool, Broken> {
        let event = self.event();
        let response = sign(&mut *self.control, &mut self.window, &event);
        if let Response::Reduce(left) = response {
            if left.is_nan() {
                return Err((ControlLaw::Finite, format!("{hook} leaves {left} segments")));
            }
            self.window = Window { cwnd: left.max(2.0), ssthresh: left.max(2.0) };
        }
        self.check(hook)?;
        Ok(response != Response::Ignore)
    }

    fn time_out(&mut self) -> Result<(), Broken> {
        let event = self.event();
        let left = self.control.on_timeout(&self.window, &event);
        if left.is_nan() || left > event.cwnd.max(2.0) {
            let what = format!("of a window of {} segments it leaves a threshold of {left}", event.cwnd);
            return Err((ControlLaw::Timeout, what));
        }
        self.window = Window { cwnd: 1.0, ssthresh: left.max(2.0) };
        for number in std::mem::take(&mut self.in_flight) {
            self.inform_of_loss(number);
        }
        (self.phase, self.recover) = (Phase::Loss, self.sent);
        self.check("on_timeout")
    }

    /// Checks the invariants that hold after a call of `hook`.
    fn check(&self, hook: &str) -> Result<(), Broken> {
        let Window { cwnd, ssthresh } = self.window;
        if !(cwnd > 0.0 && cwnd.is_finite() && ssthresh > 0.0) {
            let what = format!("after {hook} the window is {cwnd} and the threshold {ssthresh}");
            return Err((ControlLaw::Finite, what));
        }
        if cwnd > self.largest.max(2.0) {
            let what = format!("{hook} raised the window to {cwnd}, and the largest was {}", self.largest);
            return Err((ControlLaw::Growth, what));
        }
        Ok(())
    }
}

/// A bottleneck that sends a packet each millisecond from a queue of 100.
struct Path<C> {
    driver: Driver<C>,
    /// The time at which each packet was sent, and the time at which its ACK arrives.
    acks: VecDeque<(Time, Time)>,
    /// The time at which the bottleneck becomes idle.
    free: Time,
    /// The time at which the pacer releases the next packet.
    next: Time,
    /// The time at which the retransmission timer expires, and its timeout.
    timer: (Time, Span),
}

const QUEUE: Span = Span::from_millis(100);
const MILLISECOND: Span = Span::from_millis(1);

impl<C: DerefMut<Target: CongestionControl>> Path<C> {
    fn new(control: C) -> Self {
        let (acks, free, next) = (VecDeque::new(), Time::ZERO, Time::ZERO);
        let timer = (Time::from_secs(1), Span::from_secs(1));
        Self { driver: Driver::new(control), acks, free, next, timer }
    }

    fn survive_outage(mut self) -> Result<(), Broken> {
        let (from, to, stop) = (10_000, 20_000, 90_000);
        let mut delivered = 0;
        for millis in 1..stop {
            let now = Time::from_millis(millis);
            self.driver.now = self.driver.now.max(now);
            while let Some(&(sent, at)) = self.acks.front().filter(|(_, at)| *at <= now) {
                self.acks.pop_front();
                self.driver.acknowledge(1, 0, at.since(sent))?;
                self.timer = (now + Span::from_secs(1), Span::from_secs(1));
                delivered += u32::from(millis > stop - 10_000);
            }
            if now >= self.timer.0 {
                let patience = (self.timer.1 * 2).min(Span::from_secs(4));
                self.timer = (now + patience, patience);
                self.acks.clear();
                self.driver.time_out()?;
            }
            self.send(now, (from..to).contains(&millis))?;
        }
        if delivered < 5_000 {
            let what = format!("a minute after it {delivered} of 10000 packets arrive in ten seconds");
            return Err((ControlLaw::Outage, what));
        }
        Ok(())
    }

    /// Sends the packets that the window and the pacer allow.
    fn send(&mut self, now: Time, fails: bool) -> Result<(), Broken> {
        let rate = self.driver.control.pacing_rate(Some(RTT));
        while self.driver.may_send() && now >= self.next {
            self.driver.send()?;
            if let Some(rate) = rate {
                self.next = self.next.max(now) + rate.time_for(CONNECTION.wire);
            }
            if fails {
                continue;
            }
            self.free = self.free.max(now);
            if self.free.since(now) >= QUEUE {
                // The newest packet is dropped. The queue is in order, so the loss shows when the other
                // packets have arrived.
                let lost = self.driver.in_flight.pop_back();
                self.driver.in_flight.push_front(lost.unwrap_or_default());
                return self.driver.lose();
            }
            self.free += MILLISECOND;
            self.acks.push_back((now, self.free + RTT));
        }
        Ok(())
    }
}
