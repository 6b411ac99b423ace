//! Cuts as rates: a token bucket enforces the rate of a flow that may pass.
//!
//! The paper represents a cut by the share of packets that is discarded. A share keeps cutting a flow that
//! has slowed down because another router cuts it too, so over several hops the cuts multiply. Shares of the
//! few packets of an interval are also random, which costs a flow some packets at every hop. A rate cuts only
//! the excess, and a flow that has been cut to it once passes the next router with the same limit.

use super::flows::Flow;
use super::params::SffcParams;
use crate::units::{Bytes, Span, Time};

/// The minimum depth of a bucket: a full packet, without which a flow of few packets passes less than its
/// rate.
const PACKET: f64 = super::FULL_PACKET.get() as f64;
/// The usual rate, in bytes per interval, from which on an interval counts in full in it; the weight is in
/// proportion below, and at least an eighth. Chosen: eight full packets are representative, few are random.
const FULL: f64 = 8.0 * PACKET;
const LEAST: f64 = 0.125;

impl Flow {
    /// Updates the usual rate at the end of an interval.
    pub(super) fn note_usual(&mut self) {
        let lambda = self.lambda as f64;
        let weight = if self.usual > 0.0 { (self.usual / FULL).clamp(LEAST, 1.0) } else { 1.0 };
        self.usual += weight * (lambda - self.usual);
    }

    /// Eqs. 2 to 4 with the rate that is left instead of the share that is discarded. The rate may grow by
    /// `increment` and is at least `kept`. A rate above `capacity` is not remembered.
    pub(super) fn set_cap(&mut self, params: &SffcParams, increment: f64, kept: f64, capacity: f64) {
        let report = self.report.take();
        self.silent = if report.is_some() { 0 } else { self.silent.saturating_add(1) };
        let wanted = report.and_then(|report| self.wanted_rate(report, params));
        let alpha = params.alpha.get();
        if let Some(wanted) = wanted {
            self.cap = alpha * self.cap.min(self.usual) + (1.0 - alpha) * wanted;
        } else if (report.is_some() || u64::from(self.silent) > params.wait) && self.mu > 0 {
            // No report about a flow without departures means nothing.
            self.cap += increment;
        }
        self.cap = if self.cap < capacity { self.cap.max(increment) } else { f64::INFINITY };
        self.bdr = (1.0 - self.cap.max(kept) / self.usual).clamp(0.0, 1.0);
    }

    /// Sets the bytes that may pass in an interval.
    pub(super) fn allow(&mut self, allowed: f64) {
        self.allowed = allowed;
        self.v = (1.0 - allowed / self.usual).clamp(0.0, 1.0);
    }

    /// Enforces the allowed rate from here on; if the discipline behind it `divides` the link fairly, only
    /// the rate from reports.
    pub(super) fn hold(&mut self, divides: bool) {
        if divides {
            self.v = self.bdr;
            self.held = if self.bdr > 0.0 { self.usual * (1.0 - self.bdr) } else { f64::INFINITY };
        } else {
            self.held = self.allowed;
        }
    }

    /// Whether a packet of this size exceeds the bytes that may pass.
    pub(super) fn exceeds(&mut self, now: Time, size: Bytes, interval: Span) -> bool {
        if self.held.is_infinite() {
            return false;
        }
        let passed = now.since(self.filled).as_secs_f64() / interval.as_secs_f64();
        self.filled = now;
        self.credit = (self.credit + passed * self.held).min(self.held.max(PACKET));
        if self.credit <= 0.0 {
            return true;
        }
        self.credit -= size.get() as f64;
        false
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::super::tests::{Bench, near};
    use super::super::{FlowReport, Sffc};
    use super::*;
    use crate::packet::FlowId;
    use crate::packet::Protocol::{self, Tcp, Udp};

    /// A [`Bench`] with the defaults.
    fn bench(pairs: &[(&str, &str)]) -> Bench {
        let defaults = [("discard", "rate"), ("report_discards", "5%")];
        Bench::new(&[&defaults, pairs].concat())
    }

    /// The reports after an interval with this traffic.
    fn reports(bench: &mut Bench, flows: &[(u32, Protocol, u64)]) -> Vec<FlowReport> {
        bench.interval(flows);
        bench.queue.policy_mut().take_reports()
    }

    /// The part of `bytes` of flow 0 that passes in an interval.
    fn passes(bench: &mut Bench, bytes: u64) -> f64 {
        bench.interval(&[(0, Udp, bytes)]);
        bench.flow(0).left.mean(1)
    }

    #[test]
    fn a_report_moves_what_may_pass_to_what_the_next_router_could_forward() {
        let mut bench = bench(&[]);
        bench.interval(&[(0, Udp, 50_000)]);
        near(bench.flow(0).bdr, 0.0);
        // 20,000 of 50,000 departed: half the way.
        bench.on_report(0, 50_000, 20_000);
        bench.interval(&[(0, Udp, 50_000)]);
        near(bench.flow(0).cap, 35_000.0);
        near(bench.flow(0).bdr, 0.3);
        near(bench.flow(0).v, 0.3);
        // An interval of patience, then I, 312.5.
        bench.interval(&[(0, Udp, 50_000)]);
        near(bench.flow(0).cap, 35_000.0);
        bench.interval(&[(0, Udp, 50_000)]);
        near(bench.flow(0).cap, 35_312.5);
        // A loss below the regular rate lets it grow as well.
        bench.on_report(0, 35_000, 33_600);
        bench.interval(&[(0, Udp, 50_000)]);
        near(bench.flow(0).cap, 35_625.0);
        // A rate above the link rate is not remembered.
        (0..90).for_each(|_| bench.interval(&[(0, Udp, 50_000)]));
        assert!(bench.flow(0).cap.is_infinite() && bench.flow(0).allowed.is_infinite());
    }

    #[test]
    fn a_rate_cuts_only_what_exceeds_it() {
        // If 30,000 of 60,000 may pass, then 30,000 pass also when only 30,000 arrive, since another router
        // cuts the flow too, and so in each interval: the bucket takes the due bytes, to a packet.
        let mut bench = bench(&[]);
        bench.interval(&[(0, Udp, 60_000)]);
        bench.on_report(0, 60_000, 0);
        bench.interval(&[(0, Udp, 60_000)]);
        // All arrive at once, and the bucket holds an interval's worth.
        near(passes(&mut bench, 60_000), 30_000.0);
        near(passes(&mut bench, 29_900), 29_900.0);
        near(passes(&mut bench, 29_900), 29_900.0);
    }

    #[test]
    fn a_flow_of_few_packets_passes_its_rate_over_time() {
        // A packet of 100 bytes in each interval, of which 12.5 may pass by report, and 0.5 more after each
        // interval without one.
        let mut bench = bench(&[("increment", "0.000001%"), ("active", "10s")]);
        (0..20).for_each(|_| bench.interval(&[(0, Udp, 100)]));
        for _ in 0..3 {
            bench.on_report(0, 100, 0);
            bench.interval(&[(0, Udp, 100)]);
        }
        near(bench.flow(0).usual, 100.0);
        assert!((bench.flow(0).cap - 12.5).abs() < 0.01, "{}", bench.flow(0).cap);
        let passed: f64 = (0..2_000).map(|_| passes(&mut bench, 100)).sum();
        // 12.5 in each interval, plus the 1,500 of a full bucket.
        assert!((25_000.0..=26_500.0).contains(&passed), "{passed}");
    }

    #[test]
    fn a_flow_of_which_nothing_passes_does_not_grow() {
        let mut bench = bench(&[("active", "10s")]);
        (0..20).for_each(|_| bench.interval(&[(0, Udp, 10_000)]));
        for _ in 0..10 {
            bench.on_report(0, 10_000, 0);
            bench.interval(&[(0, Udp, 10_000)]);
        }
        // I is left, 312.5: it grows with each packet of 10,000 bytes that passes, not with each interval.
        near(bench.flow(0).cap, 312.5);
        (0..20).for_each(|_| bench.interval(&[(1, Udp, 10_000)]));
        near(bench.flow(0).cap, 312.5);
    }

    #[test]
    fn what_is_reported_late_asks_for_no_less_than_it_says_has_left() {
        // 50,000 left in the last interval; of 100,000 before 30,000 departed.
        let mut bench = bench(&[]);
        bench.interval(&[(0, Udp, 50_000)]);
        bench.on_report(0, 100_000, 30_000);
        bench.interval(&[(0, Udp, 50_000)]);
        near(bench.flow(0).cap, 40_000.0);
        // No report can starve a flow.
        for _ in 0..100 {
            bench.on_report(0, 50_000, 0);
            bench.interval(&[(0, Udp, 50_000)]);
        }
        near(bench.flow(0).cap, 312.5);
    }

    #[test]
    fn a_router_with_room_passes_on_what_it_heard() {
        let mut bench = bench(&[]);
        assert_eq!(reports(&mut bench, &[(0, Udp, 50_000)]), []);
        bench.on_report(0, 50_000, 20_000);
        assert_eq!(reports(&mut bench, &[(0, Udp, 50_000)]), [], "35,000 from now on");
        let [report] = reports(&mut bench, &[(0, Udp, 50_000)])[..] else { panic!("one report") };
        // The report does not contain the departures of this interval, which are partly random.
        assert_eq!(
            (report.flow, report.arrived, report.departed),
            (FlowId(0), Bytes::new(50_000), Bytes::new(35_000))
        );
        // The reports end when the upstream router discards the excess.
        (0..3).for_each(|_| bench.interval(&[(0, Udp, 36_000)]));
        bench.queue.policy_mut().take_reports();
        assert_eq!(reports(&mut bench, &[(0, Udp, 36_000)]), []);
    }

    #[test]
    fn what_is_heard_goes_on_even_if_it_is_not_enforced() {
        // On an uncongested link, with bounded trust.
        let mut bench = bench(&[("trust", "bounded")]);
        bench.interval(&[(0, Udp, 50_000)]);
        bench.on_report(0, 50_000, 20_000);
        bench.interval(&[(0, Udp, 50_000)]);
        near(bench.flow(0).bdr, 0.0);
        near(passes(&mut bench, 50_000), 50_000.0);
        let sffc: &mut Sffc = bench.queue.policy_mut();
        assert_eq!(sffc.take_reports()[0].departed, Bytes::new(35_000));
    }

    #[test]
    fn flows_share_by_their_usual_rates() {
        // One flow sends 6,000 in every second interval, usually 3,000, which is what the other leaves.
        let mut bench = bench(&[]);
        for _ in 0..40 {
            bench.interval(&[(0, Udp, 6_000), (1, Udp, 100_000), (2, Tcp, 100)]);
            bench.interval(&[(1, Udp, 100_000), (2, Tcp, 100)]);
        }
        let usual = bench.flow(0).usual;
        assert!((2_000.0..4_000.0).contains(&usual), "{usual}");
        assert!(bench.flow(1).allowed > 55_000.0, "{}", bench.flow(1).allowed);
    }
}
