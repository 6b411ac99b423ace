//! Flow rules: cuts for an upstream router that does not answer, to be loaded into it as rate limits of single
//! flows (Linux `tc`, nftables, BGP flow specifications of RFC 8955).
//!
//! A rule limits a flow to the rate that departs here, plus a twentieth: the small loss that is left shows
//! that the rule is still needed. Reports of larger losses renew it. Without them its rate grows by a tenth a
//! second, and it ends after its lifetime. A flow of an upstream router that answers gets reports instead.
//!
//! Only flows that this router reports get rules: they do not respond to losses, and exceed what passes.
//! What departs here is at least the flow's fair share of this link, or what a router further on lets pass.
//!
//! The number of rules is bounded. A rule that is in force keeps its place, since it prevents losses here;
//! new ones go to the flows that lose most.
//!
//! Cost: O(log n) for a report of a flow, O(n) if there is no room, and O(n) a second, for n rules.

use std::collections::BTreeMap;

use apportion_core::units::{Rate, Span, Time};

use super::{FlowKey, FlowReport};

/// The time for which a rule lasts unless reports renew it. Chosen: longer than a [pause](super::ManagerParams::pause) of searches.
pub const LIFETIME: Span = Span::from_secs(10);
/// Maximum of rules. Chosen: routers keep some hundred flow rules in hardware.
pub const MAX_RULES: usize = 256;
/// The time between changes of rates. Chosen: routers take as long to install a rule.
const UPDATE: Span = Span::from_secs(1);
/// The ratio of a rule's rate to what departs here. Chosen: as the losses that SF-FC counts as regular.
const SLACK: f64 = 1.05;
/// The growth of a rule's rate in an update without reports. Chosen: a rule doubles within its lifetime.
const GROWTH: f64 = 1.1;
/// The lowest rate, in bytes a second. Chosen: a full packet a second shows that the flow still sends.
const LEAST: f64 = 1_500.0;

/// A limit of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowRule {
    /// The flow.
    pub key: FlowKey,
    /// The limit.
    pub rate: Rate,
    /// The time after which the rule ends unless it is renewed.
    pub left: Span,
}

/// The rules of one router.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    rules: BTreeMap<FlowKey, Rule>,
    next_update: Time,
}

#[derive(Clone, Copy, Debug)]
struct Rule {
    /// The rate, in bytes a second; none before the first update.
    rate: Option<f64>,
    /// The sums of departures and of losses, in bytes a second, in the reports since the last update, and
    /// their number.
    departed: f64,
    lost: f64,
    reports: u32,
    reported: Time,
}

impl Rules {
    /// Takes a report about a flow whose upstream router does not answer.
    pub fn report(&mut self, now: Time, key: FlowKey, report: &FlowReport) {
        self.advance(now);
        let [arrived, departed] = [report.arrived, report.departed].map(|amount| amount.get() as f64);
        let seconds = report.interval.as_secs_f64();
        if arrived <= SLACK * departed || seconds <= 0.0 {
            return;
        }
        let lost = (arrived - departed) / seconds;
        if !self.rules.contains_key(&key) && !self.make_room(lost) {
            return;
        }
        let new = Rule { rate: None, departed: 0.0, lost: 0.0, reports: 0, reported: now };
        let rule = self.rules.entry(key).or_insert(new);
        rule.departed += departed / seconds;
        rule.lost += lost;
        rule.reports += 1;
        rule.reported = now;
    }

    /// Whether this flow has a rule.
    pub fn has(&self, key: &FlowKey) -> bool {
        self.rules.contains_key(key)
    }

    /// Withdraws the rule of a flow, if it has one.
    pub fn withdraw(&mut self, key: &FlowKey) {
        self.rules.remove(key);
    }

    /// Whether there is room for the rule of a flow with these losses. A rule that is not yet in force, of a
    /// flow with smaller losses, makes room.
    fn make_room(&mut self, lost: f64) -> bool {
        if self.rules.len() < MAX_RULES {
            return true;
        }
        let mean = |rule: &Rule| rule.lost / f64::from(rule.reports.max(1));
        let waiting = self.rules.iter().filter(|(_, rule)| rule.rate.is_none());
        let least = waiting.min_by(|(_, one), (_, other)| mean(one).total_cmp(&mean(other)));
        let Some((&key, _)) = least.filter(|(_, rule)| mean(rule) < lost) else { return false };
        self.rules.remove(&key);
        true
    }

    /// The rules in force at `now`, by key.
    pub fn in_force(&mut self, now: Time) -> impl Iterator<Item = FlowRule> {
        self.advance(now);
        self.rules.iter().filter_map(move |(&key, rule)| {
            let rate = Rate::from_bit((8.0 * rule.rate?).ceil() as u64);
            let left = (rule.reported + LIFETIME).since(now);
            (left > Span::ZERO).then_some(FlowRule { key, rate, left })
        })
    }

    /// Applies the updates that are due. Terminates: all rules end within their lifetime.
    fn advance(&mut self, now: Time) {
        while now >= self.next_update && !self.rules.is_empty() {
            let at = self.next_update;
            self.rules.retain(|_, rule| at.since(rule.reported) < LIFETIME);
            self.rules.values_mut().for_each(Rule::update);
            self.next_update = at + UPDATE;
        }
        if self.rules.is_empty() {
            self.next_update = self.next_update.max(now + UPDATE);
        }
    }
}

impl Rule {
    /// Sets the rate for the time until the next update.
    fn update(&mut self) {
        let wanted = SLACK * self.departed / f64::from(self.reports.max(1));
        let rate = match self.rate {
            None => wanted,
            Some(rate) if self.reports == 0 => GROWTH * rate,
            Some(rate) => f64::midpoint(rate, wanted),
        };
        (self.departed, self.lost, self.reports) = (0.0, 0.0, 0);
        self.rate = Some(rate.max(LEAST));
    }
}

#[cfg(test)]
mod tests {
    use apportion_core::packet::FlowId;
    use apportion_core::units::Bytes;

    use super::*;
    use crate::sffc::tests::key;

    fn report(arrived: u64, departed: u64) -> FlowReport {
        let [arrived, departed] = [arrived, departed].map(Bytes::new);
        FlowReport { flow: FlowId(0), arrived, departed, interval: Span::from_millis(50) }
    }

    /// The rules in the next second after these reports of flows, in kb/s.
    fn after(rules: &mut Rules, now: &mut Time, reports: &[(u32, FlowReport)]) -> Vec<(FlowKey, u64)> {
        *now += UPDATE;
        reports.iter().for_each(|(flow, report)| rules.report(*now, key(*flow), report));
        *now += UPDATE;
        rules.in_force(*now).map(|rule| (rule.key, rule.rate.as_bit() / 1000)).collect()
    }

    #[test]
    fn a_rule_lasts_while_reports_do_and_its_lifetime() {
        let (mut rules, mut now) = (Rules::default(), Time::ZERO);
        // 50 kB a second depart: 400 kb/s, and a twentieth.
        let cut = (1, report(10_000, 2_500));
        assert_eq!(after(&mut rules, &mut now, &[cut, cut]), [(key(1), 420)]);
        assert_eq!(rules.in_force(now).next().unwrap().left, LIFETIME - UPDATE);
        // A loss of a twentieth does not renew it.
        for _ in 0..8 {
            now += UPDATE;
            rules.report(now, key(1), &report(2_600, 2_500));
            assert_eq!(rules.in_force(now).count(), 1, "{now:?}");
        }
        assert!(rules.in_force(now).next().unwrap().rate > Rate::from_kbit(800));
        now += UPDATE;
        assert_eq!(rules.in_force(now).count(), 0);
    }

    #[test]
    fn a_renewed_rule_outlives_its_first_lifetime() {
        let (mut rules, mut now) = (Rules::default(), Time::ZERO);
        for _ in 0..20 {
            assert_eq!(after(&mut rules, &mut now, &[(1, report(10_000, 2_500))]).len(), 1);
        }
        rules.withdraw(&key(1));
        assert_eq!(rules.in_force(now).count(), 0);
    }

    #[test]
    fn rules_are_bounded_and_go_to_the_largest_losses() {
        let (mut rules, now) = (Rules::default(), Time::from_secs(1));
        for flow in 0..2 * MAX_RULES as u32 {
            rules.report(now, key(flow), &report(3_000 + u64::from(flow), 2_000));
        }
        let kept: Vec<_> = rules.in_force(now + UPDATE).map(|rule| rule.key).collect();
        let most = MAX_RULES as u32;
        assert_eq!(kept, (most..2 * most).map(key).collect::<Vec<_>>());
        // Rules in force keep their places.
        rules.report(now + UPDATE, key(0), &report(1 << 20, 2_000));
        assert!(!rules.has(&key(0)));
    }

    #[test]
    fn a_long_silence_ends_all_rules_at_once() {
        let (mut rules, mut now) = (Rules::default(), Time::ZERO);
        after(&mut rules, &mut now, &[(1, report(10_000, 0))]);
        now += Span::from_secs(1 << 30);
        assert_eq!(rules.in_force(now).count(), 0);
        assert_eq!(after(&mut rules, &mut now, &[(1, report(10_000, 0))]), [(key(1), 12)]);
    }
}
