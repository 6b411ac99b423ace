//! Guarantees in one direction of a gateway: admission, and who holds one.
//!
//! A guarantee keeps bandwidth from others, so a flow earns a rate of its own first. Headers can be forged, a
//! sustained rate cannot:
//! - On *trial* a flow sends for [`TRIAL`] without a gap above [`GAP`], and at least half of its guarantee. A
//!   sender therefore keeps from others at most twice what it sends. Losses slow TCP down below that half, so
//!   TCP only needs an acknowledgement of new data from the other direction, which a forger on one side
//!   cannot produce. Its gaps may be as long as those of a holder, since a retransmission timeout is one.
//! - A *holder* keeps its guarantee until it is silent for [`SILENCE`], or sends less than a quarter of the
//!   guarantee in [`WINDOW`] without an acknowledgement of new data. Otherwise only a lower rate of the
//!   direction or other rules end it.
//! - *Limits*: the sum of guarantees in the direction, under a rule, and of an inside host under a rule. A
//!   flow that passed its trial and exceeds a limit is refused, and tries again after the next trial.
//!
//! The guarantee of an aggregate that a rule makes belongs to the rule. It needs no trial, ends with silence,
//! and begins again with the next packet. If the rule makes each network one flow, each network has a
//! guarantee of its own, and no other.
//!
//! Cost: O(1) per packet of a flow with a claim, O(log holders) to give and take back, O(holders) per tick. Memory: 120
//! bytes for each flow with a claim, within the bound of the table of flows, and 100 bytes for each holder.

use std::collections::BTreeMap;
use std::net::IpAddr;

use apportion_core::packet::FlowId;
use apportion_core::units::{Bytes, Rate, Span, Time};
use apportion_scenario::gateway::Treatment;

/// Length of a trial. Chosen: long enough that a burst of datagrams is no rate, short enough that a call gets
/// its guarantee while it rings.
const TRIAL: Span = Span::from_secs(1);
/// Longest gap of a trial. Chosen: some twelve packets of a call, which sends one every 20 ms.
const GAP: Span = Span::from_millis(250);
/// Silence after which a guarantee is taken back. Chosen: with a tick every 100 ms this happens within 2 s.
const SILENCE: Span = Span::from_millis(1_900);
/// Window in which a holder must use a part of its guarantee. Chosen: as long as it may be silent.
const WINDOW: Span = Span::from_secs(2);
/// Divisor of the guarantee: the part that a flow on trial must send. Chosen: calls and videos vary their
/// rate by less.
const EARNED: u64 = 2;
/// Divisor of the guarantee: the part that a holder must send. Chosen: larger than in the trial, so that a
/// rate near the bound does not alternate.
const KEPT: u64 = 4;
/// Maximum of guarantees of one inside host under a rule, unless the rule sets another. Chosen: the calls and
/// videos of a few people.
const PER_HOST: u64 = 4;

/// A limit that a guarantee would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    /// The rate of the direction.
    Rate,
    /// The limit of the rule.
    Rule,
    /// The limit of an inside host under the rule.
    Host,
}

impl Exceeded {
    /// Every limit, in the order in which metrics list them.
    pub const ALL: [Self; 3] = [Self::Rate, Self::Rule, Self::Host];

    /// The limit's name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Rule => "rule",
            Self::Host => "host",
        }
    }
}

/// The owner of a guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A flow of this inside host, which may own others.
    FlowOf(IpAddr),
    /// A network: all its packets under the rule.
    Network,
    /// A rule: all packets that match it.
    Rule,
}

/// Bytes that a flow has sent since `begun`.
#[derive(Clone, Copy, Debug)]
struct Activity {
    begun: Time,
    last: Time,
    bytes: Bytes,
    /// Whether the other direction acknowledged new data.
    acknowledged: bool,
}

impl Activity {
    const fn begin(now: Time) -> Self {
        Self { begun: now, last: now, bytes: Bytes::ZERO, acknowledged: false }
    }

    /// Whether the flow sent at least `1 / parts` of `rate` until `now`, or TCP data arrived.
    fn uses(&self, now: Time, rate: Rate, parts: u64) -> bool {
        self.acknowledged
            || self.bytes.get().saturating_mul(parts) >= rate.bytes_in(now.since(self.begun)).get()
    }
}

/// A flow's claim to a guarantee by its rule.
#[derive(Clone, Debug)]
pub struct Claim {
    rule: usize,
    rate: Rate,
    holder: Holder,
    activity: Activity,
    /// The ordinal of the guarantee, if it is given.
    turn: Option<u64>,
    /// Whether a refusal was counted.
    is_refused: bool,
}

impl Claim {
    /// The claim of a flow whose first packet arrives at `now`, by the rule with this number.
    #[must_use]
    pub const fn new(now: Time, rule: usize, rate: Rate, holder: Holder) -> Self {
        Self { rule, rate, holder, activity: Activity::begin(now), turn: None, is_refused: false }
    }

    /// The guaranteed rate.
    #[must_use]
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Whether the flow holds the guarantee.
    #[must_use]
    pub const fn is_held(&self) -> bool {
        self.turn.is_some()
    }

    /// Whether the flow holds the guarantee of this ordinal.
    #[must_use]
    pub fn is_turn(&self, turn: u64) -> bool {
        self.turn == Some(turn)
    }

    /// Notes that the other direction acknowledged new data of the flow.
    pub const fn acknowledge(&mut self) {
        self.activity.acknowledged = true;
    }

    /// Notes a packet of this size. Returns whether a guarantee that is not given is due now.
    pub fn arrived(&mut self, now: Time, size: Bytes) -> bool {
        let gap = now.since(self.activity.last);
        let longest = if self.activity.acknowledged { SILENCE } else { GAP };
        if !self.is_held() && gap > longest {
            self.activity = Activity::begin(now);
        } else {
            self.activity.last = now;
            // Packets at the very beginning took no time to send.
            if now > self.activity.begun {
                self.activity.bytes += size;
            }
        }
        if self.is_held() {
            return false;
        }
        if self.holder == Holder::Rule {
            return true;
        }
        if now.since(self.activity.begun) < TRIAL {
            return false;
        }
        let is_earned = self.activity.uses(now, self.rate, EARNED);
        self.activity = Activity::begin(now);
        is_earned
    }

    /// Whether a holder keeps its guarantee.
    pub fn is_kept(&mut self, now: Time) -> bool {
        if now.since(self.activity.last) >= SILENCE {
            return false;
        }
        if self.holder == Holder::Rule || now.since(self.activity.begun) < WINDOW {
            return true;
        }
        let is_kept = self.activity.uses(now, self.rate, KEPT);
        self.activity = Activity { last: self.activity.last, ..Activity::begin(now) };
        is_kept
    }
}

/// The limits of a rule, and the sum of its guarantees.
#[derive(Clone, Copy, Debug)]
struct RuleSum {
    /// The limit; none: the rate of the direction.
    limit: Option<Rate>,
    per_host: Rate,
    given: Rate,
}

/// The guarantees that are given.
#[derive(Debug, Default)]
pub struct Guarantees {
    /// The rate of the direction.
    rate: Rate,
    reserved: Rate,
    rules: Vec<RuleSum>,
    /// Sums of inside hosts, by rule and address.
    hosts: BTreeMap<(usize, IpAddr), Rate>,
    /// Ordinals and flows, in ascending order. Some guarantees were taken back since.
    turns: Vec<(u64, FlowId)>,
    /// Number of guarantees given so far.
    granted: u64,
    holders: usize,
    counts: Counts,
}

/// Counts of refused and ended guarantees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Flows that were refused, by [`Exceeded`].
    pub refused: [u64; Exceeded::ALL.len()],
    /// Guarantees taken back because the rate fell or the rules changed.
    pub withdrawn: u64,
    /// Guarantees taken back from flows that did not use them.
    pub unused: u64,
}

impl Guarantees {
    /// Takes back all guarantees, and admits those of these rules from now on. Returns the former holders, as
    /// [`holders`](Self::holders) lists them.
    pub fn begin_again<'a>(&mut self, rules: impl Iterator<Item = &'a Treatment>) -> Vec<(u64, FlowId)> {
        self.rules = rules.map(RuleSum::new).collect();
        self.hosts.clear();
        (self.reserved, self.holders) = (Rate::ZERO, 0);
        std::mem::take(&mut self.turns)
    }

    /// Sets the rate against which guarantees are admitted.
    pub const fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Gives the flow its guarantee, unless that exceeds a limit. Returns whether it did.
    pub fn admit(&mut self, now: Time, id: FlowId, claim: &mut Claim) -> bool {
        if let Some(exceeded) = self.exceeded(claim) {
            // Counted once, since a flow tries again and again.
            if !std::mem::replace(&mut claim.is_refused, true) {
                self.counts.refused[exceeded as usize] += 1;
            }
            return false;
        }
        self.granted += 1;
        claim.turn = Some(self.granted);
        claim.is_refused = false;
        claim.activity = Activity::begin(now);
        self.turns.push((self.granted, id));
        self.holders += 1;
        self.reserved = sum(self.reserved, claim.rate);
        if let Some(rule) = self.rules.get_mut(claim.rule) {
            rule.given = sum(rule.given, claim.rate);
        }
        if let Holder::FlowOf(host) = claim.holder {
            let given = self.hosts.entry((claim.rule, host)).or_default();
            *given = sum(*given, claim.rate);
        }
        true
    }

    fn exceeded(&self, claim: &Claim) -> Option<Exceeded> {
        let rule = self.rules.get(claim.rule)?;
        if sum(self.reserved, claim.rate) > self.rate {
            return Some(Exceeded::Rate);
        }
        if claim.holder == Holder::Rule {
            return None;
        }
        if rule.limit.is_some_and(|limit| sum(rule.given, claim.rate) > limit) {
            return Some(Exceeded::Rule);
        }
        let Holder::FlowOf(host) = claim.holder else { return None };
        let given = self.hosts.get(&(claim.rule, host)).copied().unwrap_or_default();
        (sum(given, claim.rate) > rule.per_host).then_some(Exceeded::Host)
    }

    /// Takes the guarantee back, if the flow has it: it is on trial again.
    pub fn take_back(&mut self, claim: &mut Claim) {
        if claim.turn.take().is_none() {
            return;
        }
        self.holders -= 1;
        self.reserved = difference(self.reserved, claim.rate);
        if let Some(rule) = self.rules.get_mut(claim.rule) {
            rule.given = difference(rule.given, claim.rate);
        }
        if let Holder::FlowOf(host) = claim.holder
            && let Some(given) = self.hosts.get_mut(&(claim.rule, host))
        {
            *given = difference(*given, claim.rate);
            if *given == Rate::ZERO {
                self.hosts.remove(&(claim.rule, host));
            }
        }
    }

    /// Takes out all ordinals in order; those that are still held are [put back](Self::put_turns).
    pub fn take_turns(&mut self) -> Vec<(u64, FlowId)> {
        std::mem::take(&mut self.turns)
    }

    /// Puts back ordinals in order.
    pub fn put_turns(&mut self, turns: Vec<(u64, FlowId)>) {
        self.turns = turns;
    }

    /// Takes out the latest ordinal while the sum of guarantees exceeds the rate.
    pub fn pop_excess(&mut self) -> Option<(u64, FlowId)> {
        if self.reserved > self.rate { self.turns.pop() } else { None }
    }

    /// The sum of the guarantees that are given.
    #[must_use]
    pub const fn reserved(&self) -> Rate {
        self.reserved
    }

    /// Flows that have a guarantee.
    #[must_use]
    pub const fn holders(&self) -> usize {
        self.holders
    }

    /// The counts so far.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The counts so far, to add to.
    pub const fn counts_mut(&mut self) -> &mut Counts {
        &mut self.counts
    }
}

impl RuleSum {
    fn new(treatment: &Treatment) -> Self {
        let per_host = Rate::from_bit(treatment.guarantee.as_bit().saturating_mul(PER_HOST));
        Self {
            limit: treatment.guarantee_limit,
            per_host: treatment.guarantee_limit_per_host.unwrap_or(per_host),
            given: Rate::ZERO,
        }
    }
}

const fn sum(a: Rate, b: Rate) -> Rate {
    Rate::from_bit(a.as_bit().saturating_add(b.as_bit()))
}

const fn difference(a: Rate, b: Rate) -> Rate {
    Rate::from_bit(a.as_bit().saturating_sub(b.as_bit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Rate = Rate::from_kbit(160);

    fn claim() -> Claim {
        Claim::new(Time::ZERO, 0, G, Holder::FlowOf("192.0.2.1".parse().unwrap()))
    }

    /// Time at which a flow that sends `bytes` every `every` ms first earns 160 kb/s; none if it does not
    /// within 5 s.
    fn earned_at(claim: &mut Claim, bytes: u64, every: u64) -> Option<u64> {
        let mut times = (0..5_000).step_by(every as usize);
        times.find(|ms| claim.arrived(Time::from_millis(*ms), Bytes::new(bytes)))
    }

    #[test]
    fn half_of_the_guarantee_for_a_second_earns_it() {
        // 80 kb/s are 10,000 B/s.
        for (bytes, every, expected) in [
            (200, 20, Some(1_000)),
            (199, 20, None),
            (2_500, 250, Some(1_000)),
            (60_000, 251, None),
            (1_500, 7, Some(1_001)),
        ] {
            assert_eq!(earned_at(&mut claim(), bytes, every), expected, "{bytes} B every {every} ms");
        }
    }

    #[test]
    fn a_burst_that_begins_a_trial_is_no_sustained_rate() {
        let mut claim = claim();
        assert!((0..1_000).all(|_| !claim.arrived(Time::ZERO, Bytes::new(1_500))));
        assert_eq!(earned_at(&mut claim, 40, 200), None);
    }

    #[test]
    fn acknowledged_data_earns_at_any_rate_and_with_timeouts() {
        let mut claim = claim();
        let mut send = |ms, acknowledges: bool| {
            if acknowledges {
                claim.acknowledge();
            }
            claim.arrived(Time::from_millis(ms), Bytes::new(100))
        };
        assert!(!send(0, false) && !send(200, true) && !send(900, false));
        assert!(send(1_300, false), "a gap of 700 ms, but data was acknowledged");
        assert!(!send(1_500, false) && !send(1_900, false) && !send(2_400, false), "nothing since");
    }

    /// Guarantees of two rules, the second of which has limits.
    fn guarantees() -> Guarantees {
        let limits = |limit, per_host| Treatment {
            guarantee: G,
            guarantee_limit: limit,
            guarantee_limit_per_host: per_host,
            ..Treatment::default()
        };
        let rules = [limits(None, None), limits(Some(Rate::from_kbit(480)), Some(Rate::from_kbit(320)))];
        let mut guarantees = Guarantees::default();
        guarantees.begin_again(rules.iter());
        guarantees.set_rate(Rate::from_kbit(1_600));
        guarantees
    }

    /// Whether another flow of this host gets its guarantee, and its claim.
    fn give(all: &mut Guarantees, rule: usize, host: u8) -> (bool, Claim) {
        let mut claim = Claim::new(Time::ZERO, rule, G, Holder::FlowOf([10, 0, 0, host].into()));
        (all.admit(Time::ZERO, FlowId(5), &mut claim), claim)
    }

    #[test]
    fn each_limit_refuses_what_exceeds_it_and_counts_each_flow_once() {
        let mut all = guarantees();
        let mut given = |rule, host| give(&mut all, rule, host).0;
        assert_eq!([1, 1, 1, 2, 3].map(|host| given(1, host)), [true, true, false, true, false]);
        assert_eq!(
            [1, 1, 1, 1, 1].map(|host| given(0, host)),
            [true, true, true, true, false],
            "four of a host"
        );
        assert_eq!([2, 2, 2, 3].map(|host| given(0, host)), [true, true, true, false]);
        assert_eq!((all.reserved(), all.holders()), (Rate::from_kbit(1_600), 10));
        assert_eq!(all.counts().refused, [1, 1, 2]);
        let (_, mut waits) = give(&mut all, 0, 3);
        assert!(!all.admit(Time::ZERO, FlowId(5), &mut waits));
        assert_eq!(all.counts().refused, [2, 1, 2]);
    }

    #[test]
    fn what_is_taken_back_can_be_given_to_another() {
        let mut all = guarantees();
        let (_, mut first) = give(&mut all, 1, 1);
        assert!(give(&mut all, 1, 1).0 && !give(&mut all, 1, 1).0);
        all.take_back(&mut first);
        all.take_back(&mut first);
        assert_eq!((all.reserved(), all.holders(), first.is_held()), (G, 1, false));
        assert!(give(&mut all, 1, 1).0 && !give(&mut all, 1, 1).0);
    }
}
