//! SF-FC and NBQ: packets of an unresponsive flow that the next router could not forward are dropped at this
//! router, by default in front of a discipline that divides among flows, in the paper in front of a FIFO.
//!
//! Tamura, Tobe, Tokuda, "SF-FC: a neighbor-state based flow control with soft fairness", NOSSDAV 2000, and
//! its predecessor NBQ (ICNP 1999), which lacks the fairness term. The state belongs to one output link. This
//! file holds the discarder, `sffc/flows.rs` the estimator. The manager, which finds the previous router and
//! carries reports, is `sffc` of `apportion-runtime`; `sffc/printed.rs` is figure 5 as printed.
//!
//! At the end of each interval N, for each non-adaptive flow: the basic discard rate BDR follows the reports
//! of the next router, or falls without reports. The fair bandwidth FB, which non-adaptive flows may use next
//! to the adaptive ones, is divided max-min fairly over the rates that BDR leaves; v makes a flow fit its
//! part. Each packet of the flow is then discarded with probability v, before the queue.
//!
//! Readings, where the paper contradicts itself or leaves room; literal ones are parameters:
//! - Eqs. 3 and 4 continue from the previous BDR, not from v, which includes FB's cut (`previous`).
//! - Ŵ is the rate that flows would send after BDR. As the sum of departures it would freeze them at their
//!   present rate (`usage`).
//! - FB is divided among non-adaptive flows alone, each counted once; figure 5 divides by all flows
//!   (`divisor`) and counts a satisfied flow again in each round (`recount`).
//! - While adaptive flows are steady, non-adaptive ones get the rest of the link, but at least W (`spare`).
//! - A router reports when its own link has overflowed. A report after its own discards would make every hop
//!   forward its own cut, so that reports never end.
//! - A report of less loss than `regular` counts as none (text below eq. 3).
//!
//! Beyond the paper, and off with `preset = "paper"`:
//! - W is the part of non-adaptive flows in the max-min fair division of the link, by their demands; the
//!   demand of an adaptive flow is unlimited. Eq. 5 counts flows, so that many flows of low rate make a
//!   greedy one rich (`share`).
//! - I is divided by the number of flows that reports have cut: 200 of them would grow by the whole link in
//!   an interval (`group`).
//! - A cut is a rate, which a token bucket enforces: `sffc/rates.rs`. With a share of the packets, each
//!   router cuts again what the previous one has cut (`discard`).
//! - A router also reports a flow whose arrivals exceed its allowed rate, and states the allowed rate, which
//!   comes from reports, so that the routers upstream of an uncongested link learn it (`report_discards`). A
//!   count of departures would include the router's own cut, and each hop would cut more.
//! - The part that adaptive flows do not use is lent: I more in each interval, with room for them to grow,
//!   and half as much after an interval in which they lost packets. If all of it is given at once, they lose
//!   packets whenever they grow, and on fast or long links never reach their part (`spare`).
//! - Any discipline divides the packets that the discarder passes; the paper has a FIFO, which divides by
//!   round-trip times and segment sizes (`discipline`, in `system/sffc_fronted.rs`). A discipline that gives
//!   flows their shares enforces the fair rate, and the discarder only the rate from reports. If the buffer
//!   cannot hold a full packet of each active flow, the discarder does both.
//!
//! A neighbour can send false reports, so a report counts only as far as its sender can know. λ~ counts as at
//! most the departures here, so that a report asks for no less than its μ~, and however small μ~ is, the flow
//! keeps I of its rate. This also bounds the effect of late reports, which describe a time of higher rates.
//! With `trust = "bounded"` reports have less effect: packets of a flow that are lost further on are dropped
//! here only while this link is congested, so that others gain by it, and a flow keeps its max-min fair share
//! of the link.
//!
//! Section 6 leaves open how to recognise adaptive flows by behaviour: `recognise`, in `sffc/recognition.rs`.
//! Where flows get their shares, the losses that they have anyway show it. Then only flows that ignore their
//! losses are reported; and a flow without a verdict is not adaptive for some time after a report about it.
//!
//! With a FIFO, SF-FC is not fair among adaptive flows.
//!
//! Cost: O(1) per packet; O(n log n) per interval for n active flows; 196 bytes for each, freed when the flow
//! has been silent for `active`. With recognition, 120 bytes for each flow number up to the largest, which
//! are visited every 0.5 s. Parameters: [`SFFC`], [`NBQ`].

mod flows;
mod packets;
mod params;
mod printed;
mod rates;
mod recognition;
mod report;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use self::flows::{Flow, Flows};
pub use self::params::{
    Discard, Divisor, FIFO, FairnessParams, NBQ, Previous, Recognise, SFFC, SffcParams, Share, Spare, Trust,
    Usage,
};
use self::printed::max_min_estimate;
use self::recognition::{Method, Recognition};
pub use self::report::FlowReport;
use crate::fairness::water_filling;
use crate::limit::{Limit, LinkLimit};
use crate::packet::FlowId;
use crate::queue::Backlog;
use crate::random::Stream;
use crate::units::{Bytes, Packets, Rate, Ratio, Span, Time};

/// The part of a link that is not lent, so that adaptive flows can grow without losses. Chosen: four times
/// the default I.
const ROOM: f64 = 0.02;

/// The paper's buffer, about 51 ms of the paper's 10 Mbit/s.
const PAPER_BUFFER: Bytes = Bytes::new(64_000);
const BUFFER: Span = Span::from_millis(50);

/// The largest packet on most links.
const FULL_PACKET: Bytes = Bytes::new(1_500);

/// The state of one output link. Amounts are bytes in an interval.
#[derive(Clone, Debug)]
pub struct Sffc {
    pub(crate) params: SffcParams,
    limit: LinkLimit,
    link_rate: Rate,
    /// The end of the current interval.
    interval_ends: Time,
    /// τ, λ, μ, BDR and v of each flow.
    flows: Flows,
    /// γ, the arrivals of adaptive flows.
    gamma: u64,
    /// γ of the previous interval.
    previous_gamma: u64,
    /// The usual γ.
    usual_gamma: f64,
    /// ρ, the change of γ.
    rho: f64,
    /// FB of the last interval.
    fair_bandwidth: f64,
    /// Whether the link overflowed in this interval.
    overflowed: bool,
    /// Whether the link lost packets of adaptive flows.
    hurt: bool,
    /// The bandwidth that non-adaptive flows get above W, of the part that adaptive ones leave.
    extra: f64,
    /// The reports of the last interval.
    reports: Vec<FlowReport>,
    /// Buffers for demands and shares.
    scratch: [Vec<f64>; 2],
    random: Stream,
    /// Whether the discipline behind the discarder gives flows their fair shares.
    divided: bool,
    /// Recognises adaptive flows by their behaviour, if configured.
    recognition: Option<Recognition>,
}

impl Sffc {
    /// SF-FC for a link of `link_rate`. `random` draws the phase of its intervals, so that routers are not in
    /// step, and the packets that are discarded; `test_random` is for tests of responsiveness.
    #[must_use]
    pub fn new(params: &SffcParams, link_rate: Rate, mut random: Stream, test_random: Stream) -> Self {
        let first = random.below(params.interval.as_nanos());
        Self {
            params: params.clone(),
            limit: LinkLimit::of_time(params.limit, link_rate, BUFFER, PAPER_BUFFER),
            link_rate,
            interval_ends: Time::ZERO + params.interval + Span::from_nanos(first),
            flows: Flows::default(),
            gamma: 0,
            previous_gamma: 0,
            usual_gamma: 0.0,
            rho: 1.0,
            fair_bandwidth: 0.0,
            overflowed: false,
            hurt: false,
            extra: 0.0,
            reports: Vec::new(),
            scratch: [Vec::new(), Vec::new()],
            random,
            divided: false,
            recognition: match params.recognise {
                Recognise::Behaviour => Some(Recognition::new(Method::Tests, test_random)),
                Recognise::Pattern => Some(Recognition::new(Method::Pattern, test_random)),
                Recognise::Losses | Recognise::Protocol => None,
            },
        }
    }

    /// Declares that the discipline behind it gives flows their fair shares. SF-FC then enforces reports
    /// only, and judges responsiveness by the losses of flows.
    #[must_use]
    pub(crate) fn before_shares(mut self, random: Stream) -> Self {
        self.divided = true;
        if self.params.recognise == Recognise::Losses {
            self.recognition = Some(Recognition::new(Method::Losses, random));
        }
        self
    }

    /// The present size of the buffer.
    pub(crate) fn limit(&self) -> Limit {
        self.limit.get()
    }

    /// The end of the current interval.
    #[must_use]
    pub const fn interval_ends(&self) -> Time {
        self.interval_ends
    }

    /// Ends the intervals that are over at `now`.
    pub fn advance(&mut self, now: Time) {
        // Terminates: a flow is forgotten after at most 1000 intervals of silence, and with the last flow the
        // rest of the silence is skipped.
        while now >= self.interval_ends {
            let end = self.interval_ends;
            self.end_interval(end);
            self.interval_ends = end + self.params.interval;
            if self.flows.is_empty() && now >= self.interval_ends {
                let behind = now.since(self.interval_ends).as_nanos() / self.params.interval.as_nanos();
                self.interval_ends += Span::from_nanos(behind * self.params.interval.as_nanos());
            }
        }
    }

    /// Takes the reports of the last interval to the upstream routers.
    pub fn take_reports(&mut self) -> Vec<FlowReport> {
        core::mem::take(&mut self.reports)
    }

    /// Whether `flow` passed recently and may be unresponsive.
    #[must_use]
    pub fn carries(&self, flow: FlowId) -> bool {
        self.flows.get(flow).is_some_and(|flow| !flow.adaptive || !flow.known)
    }

    /// The rates, in bytes a second, that recently active flows want, none for adaptive flows: as much as
    /// they can get.
    pub fn demands(&self) -> impl Iterator<Item = (FlowId, Option<f64>)> {
        let (rates, seconds) = (self.cuts_rates(), self.params.interval.as_secs_f64());
        self.flows.iter().map(move |flow| {
            let sent = if rates { flow.usual } else { flow.lambda as f64 };
            (flow.id, (!flow.adaptive).then_some(sent / seconds))
        })
    }

    /// The reported loss that counts as none, if it reads the counters of routers that send no reports.
    #[must_use]
    pub fn regular_of_counters(&self) -> Option<f64> {
        self.params.counters.then_some(self.params.regular.get())
    }

    /// The rate of its link.
    #[must_use]
    pub const fn link_rate(&self) -> Rate {
        self.link_rate
    }

    /// Takes a report of the next router about a flow that this one sent to it. The latest report of an
    /// interval counts.
    pub fn on_report(&mut self, report: FlowReport) {
        let interval = report.interval.as_secs_f64();
        if !self.params.reports || interval <= 0.0 {
            return;
        }
        let per_interval = self.params.interval.as_secs_f64() / interval;
        if !self.carries(report.flow) {
            return;
        }
        if let Some(recognition) = &mut self.recognition {
            recognition.reported(report.flow);
        }
        if let Some(flow) = self.flows.get_mut(report.flow) {
            flow.become_non_adaptive();
            let [arrived, departed] =
                [report.arrived, report.departed].map(|amount| amount.get() as f64 * per_interval);
            flow.report = Some([arrived, departed]);
        }
    }

    /// The capacity of the link in bytes per interval.
    fn capacity(&self) -> f64 {
        self.link_rate.as_bit() as f64 / 8.0 * self.params.interval.as_secs_f64()
    }

    fn end_interval(&mut self, now: Time) {
        if self.cuts_rates() {
            self.flows.iter_mut().filter(|flow| !flow.adaptive).for_each(Flow::note_usual);
        }
        self.note_reports();
        let divided = self.divided;
        for flow in self.flows.iter_mut().filter(|flow| !flow.adaptive && flow.passed(divided).0 > 0) {
            flow.left.push(flow.mu);
        }
        self.set_basic_discard_rates();
        match self.params.fairness.clone() {
            Some(fairness) => self.divide(&fairness),
            None => self.flows.iter_mut().for_each(|flow| {
                flow.v = flow.bdr;
                flow.allowed = if flow.bdr > 0.0 { flow.usual * (1.0 - flow.bdr) } else { f64::INFINITY };
            }),
        }
        let divides = self.divides();
        self.flows.iter_mut().filter(|flow| !flow.adaptive).for_each(|flow| flow.hold(divides));
        self.previous_gamma = core::mem::take(&mut self.gamma);
        (self.overflowed, self.hurt) = (false, false);
        for flow in self.flows.iter_mut() {
            (flow.lambda, flow.discarded, flow.dropped, flow.mu) = (0, 0, 0, 0);
        }
        self.flows.forget_silent(now, self.params.active);
        if let Some(recognition) = &mut self.recognition {
            recognition
                .advance(now, Rate::from_bit(self.link_rate.as_bit() / self.flows.len().max(1) as u64));
        }
    }

    /// Whether the discipline behind it gives flows their shares. No discipline can if its buffer cannot hold
    /// a full packet of each active flow.
    fn divides(&self) -> bool {
        let packets = self.flows.len() as u64;
        let bytes = Bytes::new(FULL_PACKET.get() * packets);
        let of_each = Backlog { packets: Packets::new(packets), bytes };
        self.divided && !self.limit.get().is_exceeded_by(of_each)
    }

    fn cuts_rates(&self) -> bool {
        self.params.discard == Discard::Rate
    }

    fn note_reports(&mut self) {
        self.reports.clear();
        if !self.params.reports {
            return;
        }
        let (rates, divides) = (self.cuts_rates(), self.divides());
        for flow in self.flows.iter().filter(|flow| !flow.adaptive) {
            let lost_here = flow.passed(self.divided);
            if lost_here.0 == 0 {
                continue;
            }
            // A flow that may be responsive is reported only with the rate from reports.
            let accused = flow.known || !divides;
            let allowed = if accused { flow.allowed } else { f64::INFINITY };
            let found = match self.params.report_discards {
                _ if self.overflowed && accused => Some(lost_here),
                Some(most) if rates => {
                    // The rate from reports, also if it is not enforced.
                    let passes = allowed.min(flow.cap);
                    (passes < flow.usual * (1.0 - most.get())).then_some((flow.usual as u64, passes as u64))
                }
                Some(most) => (flow.discarded as f64 > most.get() * flow.lambda as f64).then_some(lost_here),
                None => None,
            };
            if let Some((arrived, departed)) = found {
                self.reports.push(FlowReport {
                    flow: flow.id,
                    arrived: Bytes::new(arrived),
                    departed: Bytes::new(departed),
                    interval: self.params.interval,
                });
            }
        }
    }

    fn set_basic_discard_rates(&mut self) {
        let increment = self.increment();
        let kept = self.kept_from_reports(increment);
        if self.cuts_rates() {
            let capacity = self.capacity();
            let params = &self.params;
            let flows = self.flows.iter_mut().filter(|flow| !flow.adaptive && flow.usual > 0.0);
            return flows.for_each(|flow| flow.set_cap(params, increment, kept, capacity));
        }
        let (params, alpha) = (&self.params, self.params.alpha.get());
        for flow in self.flows.iter_mut().filter(|flow| !flow.adaptive) {
            let report = flow.report.take();
            flow.silent = if report.is_some() { 0 } else { flow.silent.saturating_add(1) };
            if flow.lambda == 0 {
                continue;
            }
            let lambda = flow.lambda as f64;
            let previous = match params.previous {
                Previous::Bdr => flow.bdr,
                Previous::Final => flow.v,
            };
            let wanted = report.and_then(|report| flow.wanted_discard_rate(report, params));
            let bdr = match wanted {
                // Eq. (3)
                Some(wanted) => alpha * previous + (1.0 - alpha) * wanted,
                None if report.is_none() && u64::from(flow.silent) <= params.wait => flow.bdr,
                // Eq. (4)
                None => previous - increment / lambda,
            };
            // The flow keeps at least I, so that no false report can starve it.
            flow.bdr = bdr.clamp(0.0, (1.0 - kept / lambda).max(0.0));
        }
    }

    /// I, the increment of a flow.
    fn increment(&self) -> f64 {
        let increment = self.params.increment.get() * self.capacity();
        if !self.params.group {
            return increment;
        }
        let is_cut = |flow: &&Flow| !flow.adaptive && (flow.bdr > 0.0 || flow.report.is_some());
        increment / self.flows.iter().filter(is_cut).count().max(1) as f64
    }

    /// The minimum rate that reports leave to a flow.
    fn kept_from_reports(&mut self, increment: f64) -> f64 {
        if self.params.trust == Trust::Full {
            return increment;
        }
        let capacity = self.capacity();
        let arrived = self.gamma + self.flows.iter().map(|flow| flow.lambda).sum::<u64>();
        if !self.overflowed && arrived as f64 <= capacity {
            // No flow at this router gains by the drops.
            return f64::INFINITY;
        }
        let mut demands = core::mem::take(&mut self.scratch[0]);
        demands.clear();
        // Each adaptive flow uses all the rest.
        demands
            .extend(self.flows.iter().map(|flow| if flow.adaptive { capacity } else { flow.lambda as f64 }));
        let fair = water_filling::level(capacity, &mut demands);
        self.scratch[0] = demands;
        fair.max(increment)
    }

    /// Sets the final discard rates.
    fn divide(&mut self, fairness: &FairnessParams) {
        let adaptive = self.flows.iter().filter(|flow| flow.adaptive).count();
        let n_n = self.flows.len() - adaptive;
        self.note_change_of_adaptive_arrivals(fairness.beta);
        let [mut demands, mut shares] = core::mem::take(&mut self.scratch);
        demands.clear();
        let rates = self.cuts_rates();
        let sent = |flow: &Flow| if rates { flow.usual } else { flow.lambda as f64 };
        let demand = |flow: &Flow| sent(flow) * (1.0 - flow.bdr);
        demands.extend(self.flows.iter().filter(|flow| !flow.adaptive).map(demand));

        // Eq. (5)
        let w = match fairness.share {
            Share::Needs => self.part_by_needs(&demands, adaptive, &mut shares),
            Share::Count => self.capacity() * n_n as f64 / self.flows.len().max(1) as f64,
        };
        let w_hat = match fairness.usage {
            Usage::Demand => demands.iter().sum(),
            Usage::Departures => self.flows.iter().map(|flow| flow.mu as f64).sum(),
        };
        self.fair_bandwidth = self.fair_bandwidth(w, w_hat, fairness.spare);

        shares.clear();
        shares.extend_from_slice(&demands);
        let divisor = fairness.divisor;
        if divisor == Divisor::Unsatisfied && !fairness.recount {
            let level = water_filling::level(self.fair_bandwidth, &mut demands);
            shares.iter_mut().for_each(|share| *share = share.min(level));
        } else {
            let among = if divisor == Divisor::All { n_n + adaptive } else { n_n };
            max_min_estimate(self.fair_bandwidth, &demands, among, fairness.recount, &mut shares);
        }
        for (flow, share) in self.flows.iter_mut().filter(|flow| !flow.adaptive).zip(&shares) {
            if rates && flow.usual > 0.0 {
                // A flow that is not cut may grow at once.
                flow.allow(if *share < flow.usual { *share } else { f64::INFINITY });
            } else if flow.lambda > 0 {
                flow.v = (1.0 - share / flow.lambda as f64).clamp(0.0, 1.0);
            }
        }
        self.scratch = [demands, shares];
    }

    /// The part of these demands in the max-min fair division of the link next to `adaptive` flows with
    /// unlimited demand.
    fn part_by_needs(&self, demands: &[f64], adaptive: usize, scratch: &mut Vec<f64>) -> f64 {
        scratch.clear();
        scratch.extend_from_slice(demands);
        scratch.extend(core::iter::repeat_n(f64::INFINITY, adaptive));
        let level = water_filling::level(self.capacity(), scratch);
        demands.iter().map(|demand| demand.min(level)).sum()
    }

    /// Eq. (6)
    fn note_change_of_adaptive_arrivals(&mut self, beta: Ratio) {
        self.usual_gamma += (1.0 - beta.get()) * (self.gamma as f64 - self.usual_gamma);
        if self.gamma > 0 {
            let change = self.previous_gamma as f64 / self.gamma as f64;
            self.rho = beta.get() * self.rho + (1.0 - beta.get()) * change;
        }
    }

    /// Eq. (7)
    fn fair_bandwidth(&mut self, w: f64, w_hat: f64, spare: Spare) -> f64 {
        let left = (self.capacity() - self.gamma as f64).max(0.0);
        let is_steady = self.rho > 0.9 && self.rho < 1.1;
        match spare {
            _ if w_hat < w => w_hat,
            Spare::Lent => w + self.lend(self.capacity() - self.usual_gamma - w),
            Spare::Share if is_steady => left.max(w),
            Spare::Printed if is_steady => left,
            Spare::Share | Spare::Printed => w,
        }
    }

    /// The part of `left`, the bandwidth that adaptive flows do not use, for non-adaptive flows: it grows in
    /// each interval, except for some room to grow into, and is halved after an interval in which adaptive
    /// flows lost packets.
    fn lend(&mut self, left: f64) -> f64 {
        let most = (left - ROOM * self.capacity()).max(0.0);
        let step = self.params.increment.get() * self.capacity();
        self.extra = if self.hurt { self.extra / 2.0 } else { self.extra + step }.min(most);
        self.extra
    }
}

impl Flow {
    /// Eq. (2): the discard rate at which the next router would have lost nothing of the flow; none if its
    /// losses are negligible.
    fn wanted_discard_rate(&self, [arrived, departed]: [f64; 2], params: &SffcParams) -> Option<f64> {
        let mean = self.mean_left(params);
        // The next router cannot have received more than this router sent.
        let arrived = arrived.min(mean);
        let passed = if arrived > 0.0 { (departed / arrived).min(1.0) } else { 1.0 };
        (1.0 - passed > params.regular.get())
            .then(|| (1.0 - passed * mean / self.lambda as f64).clamp(0.0, 1.0))
    }

    /// Eq. (2) as a rate: the part of the flow of which the next router would have lost nothing.
    fn wanted_rate(&self, [arrived, departed]: [f64; 2], params: &SffcParams) -> Option<f64> {
        let mean = self.mean_left(params);
        let passed = (departed / arrived.max(1.0)).min(1.0);
        // A report about a time of higher rates asks for no less than the departures there.
        (1.0 - passed > params.regular.get()).then(|| passed * arrived.max(mean))
    }

    fn mean_left(&self, params: &SffcParams) -> f64 {
        self.left.mean(params.history as usize)
    }
}
