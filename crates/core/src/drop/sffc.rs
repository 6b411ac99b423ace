//! SF-FC and NBQ: what the next router could not forward of an unresponsive flow is discarded here already,
//! in front of a plain FIFO.
//!
//! Tamura, Tobe, Tokuda, "SF-FC: a neighbor-state based flow control with soft fairness", NOSSDAV 2000, and
//! its predecessor NBQ (ICNP 1999), which lacks the fairness term. The state is that of one output link. This
//! file holds the discarder, `sffc/flows.rs` the estimator; the manager, which finds the router before this
//! one and carries reports, is [`control::sffc`](crate::control::sffc), and `sffc/printed.rs` is figure 5 as
//! printed.
//!
//! At the end of each interval N, for each non-adaptive flow: the basic discard rate BDR follows the reports
//! of the next router, or falls where there are none; the fair bandwidth FB, what non-adaptive flows may have
//! beside the adaptive ones, is divided max-min fairly over what BDR leaves; v is what makes a flow fit. Each
//! packet of the flow is then discarded with probability v, before the queue.
//!
//! Readings, where the paper contradicts itself or leaves room; literal ones are parameters:
//! - Eqs. 3 and 4 go on from the BDR before, not from v, which holds FB's cut too (`previous`).
//! - Ŵ is what flows would send after BDR. As the sum of departures it would freeze them at the rate of the
//!   moment (`usage`).
//! - FB is divided among non-adaptive flows alone, each counted once; figure 5 divides by all flows
//!   (`divisor`) and counts a satisfied flow again in each round (`recount`).
//! - While adaptive flows are steady, non-adaptive ones have what these leave, yet not less than W (`spare`).
//! - A router reports when its own link overflowed. To report its own discards too would make every hop
//!   forward its own cut, so that it never ends (`report_discards`).
//! - A report about less loss than `regular` counts as none (text below eq. 3).
//!
//! A neighbour can lie, so its word is not taken for more than it can know: λ~ counts as no more than what
//! left here, so that a report asks for no less than its μ~, and however little that is, it leaves a flow I
//! of its rate. That also tames reports that are late: they are about a time when more was sent.
//!
//! Section 6 leaves open how to recognise adaptive flows by behaviour: `recognise`, see [`recognition`].
//!
//! Not fair among adaptive flows: they share what is left, as a FIFO divides it.
//!
//! Cost: O(1) per packet; O(n log n) per interval for n active flows; 132 bytes for each, which go when it
//! has been silent for `active`. Parameters: [`SFFC`], [`NBQ`].

mod flows;
mod printed;
mod recognition;
#[cfg(test)]
mod tests;

use alloc::format;
use alloc::vec::Vec;

use self::flows::{Flow, Flows};
use self::printed::max_min_estimate;
use self::recognition::Recognition;
use super::tail::LIMIT;
use super::{BufferPolicy, Limit, Verdict};
use crate::catalog::{Args, Entry, EntryArgs, Kind, Param, ParamError, Role, require};
use crate::control::sffc::FlowReport;
use crate::fairness::water_filling;
use crate::packet::{FlowId, Packet, Protocol};
use crate::queue::{Backlog, DropReason, Sink};
use crate::random::Stream;
use crate::schedule::{Queued, Scheduler};
use crate::units::{Bytes, Rate, Ratio, Span, Time};

/// SF-FC in the catalogue.
pub const SFFC: Entry = Entry {
    name: "sffc",
    role: Role::Policy,
    summary: "Soft fair flow control: discards early what routers ahead report as lost of unresponsive flows.",
    reference: "Tamura, Tobe, Tokuda 2000",
    cost: "O(1) per packet, O(n log n) per interval; 132 bytes per active flow",
    params: &PARAMS,
};

/// NBQ in the catalogue.
pub const NBQ: Entry = Entry {
    name: "nbq",
    summary: "SF-FC's predecessor: the reports of routers ahead alone, without fairness to adaptive flows.",
    reference: "Tamura, Tobe, Tokuda 1999, as told in 2000",
    params: PARAMS.split_at(NBQ_PARAMS).0,
    ..SFFC
};

/// How many of the parameters NBQ has.
const NBQ_PARAMS: usize = 12;
static PARAMS: [Param; 17] = [
    Param { default: Some("64kB"), source: "section 5: a buffer of 64 KB", ..LIMIT },
    Param::new(
        "interval",
        "N",
        Kind::Span,
        "50ms",
        "not stated; chosen: about the delay of a full 64 kB buffer at 10 Mb/s",
        "How often rates are measured, reports sent and discard rates set.",
    ),
    Param::new(
        "increment",
        "I",
        Kind::Ratio,
        "0.5%",
        "not stated; chosen: 10 s from nothing to the whole link",
        "Part of the link's rate by which a flow may send more after each interval without a report.",
    ),
    Param::new(
        "alpha",
        "α",
        Kind::Ratio,
        "0.5",
        "not stated; chosen: the error halves in an interval",
        "Weight of the basic discard rate before, against the one that a report asks for.",
    ),
    Param::new(
        "history",
        "–",
        Kind::Count,
        "3",
        "not stated; chosen",
        "Intervals over which departures are averaged, since a report is about some time ago; at most 8.",
    ),
    Param::new(
        "wait",
        "–",
        Kind::Count,
        "1",
        "not stated; chosen",
        "Intervals without a report before the discard rate falls: the next one may be late.",
    ),
    Param::new(
        "regular",
        "–",
        Kind::Ratio,
        "5%",
        "\"a regular value\"; chosen",
        "Reported loss up to which the discard rate falls as if there were no report.",
    ),
    Param::new(
        "active",
        "T",
        Kind::Span,
        "500ms",
        "not stated; chosen: 10 intervals",
        "A flow counts as active, and has state, until it has been silent for so long.",
    ),
    Param::new(
        "reports",
        "–",
        Kind::Switch,
        "true",
        "the paper",
        "Whether it tells the router before it what it lost, and heeds the one behind it.",
    ),
    Param::new(
        "previous",
        "–",
        Kind::Choice(&["bdr", "final"]),
        "bdr",
        "eq. 3 has v, which is final",
        "What eqs. 3 and 4 go on from: the basic discard rate before, or the final one, v.",
    ),
    Param {
        name: "report_discards",
        symbol: "–",
        kind: Kind::Ratio,
        default: None,
        source: "off unless set",
        doc: "Share of a flow that is discarded here above which it is reported, whether the link overflows or not.",
    },
    Param::new(
        "recognise",
        "–",
        Kind::Choice(&["protocol", "behaviour"]),
        "protocol",
        "the paper; section 6 asks for behaviour",
        "Which flows are adaptive: those that say they are TCP, or those that slow down when packets are lost.",
    ),
    Param::new(
        "beta",
        "β",
        Kind::Ratio,
        "0.9",
        "not stated; chosen",
        "Weight of the change of adaptive arrivals so far, ρ, against the last one.",
    ),
    Param::new(
        "usage",
        "Ŵ",
        Kind::Choice(&["demand", "departures"]),
        "demand",
        "eq. 5 has departures, its text λ and v",
        "What non-adaptive flows are taken to use: what they would send after BDR, or what left.",
    ),
    Param::new(
        "spare",
        "–",
        Kind::Choice(&["share", "printed"]),
        "share",
        "eq. 7 as printed",
        "What non-adaptive flows have beside steady adaptive ones: what these leave but at least their share, or \
         just what these leave.",
    ),
    Param::new(
        "divisor",
        "–",
        Kind::Choice(&["unsatisfied", "all"]),
        "unsatisfied",
        "figure 5 has all",
        "Among how many the fair bandwidth is divided: non-adaptive flows that want more, or adaptive ones too.",
    ),
    Param::new(
        "recount",
        "–",
        Kind::Switch,
        "false",
        "figure 5 does",
        "Whether a satisfied flow is counted again in each round of the division.",
    ),
];

/// Parameters of [`Sffc`]; [`SFFC`] says what each does.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the catalogue entry is their only description")]
pub struct SffcParams {
    pub limit: Limit,
    pub interval: Span,
    pub increment: Ratio,
    pub alpha: Ratio,
    pub history: u64,
    pub wait: u64,
    pub regular: Ratio,
    pub active: Span,
    pub reports: bool,
    pub previous: Previous,
    pub report_discards: Option<Ratio>,
    pub recognise: Recognise,
    /// The fairness term; none in NBQ.
    pub fairness: Option<FairnessParams>,
}

/// Parameters of what SF-FC adds to NBQ.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "the catalogue entry is their only description")]
pub struct FairnessParams {
    pub beta: Ratio,
    pub usage: Usage,
    pub spare: Spare,
    pub divisor: Divisor,
    pub recount: bool,
}

/// What the basic discard rate goes on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Previous {
    /// Itself.
    Bdr,
    /// The final discard rate.
    Final,
}

/// By what adaptive flows are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognise {
    /// What they say they are.
    Protocol,
    /// What they do when packets are lost.
    Behaviour,
}

/// What non-adaptive flows are taken to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// What they would send after the basic discard rate.
    Demand,
    /// What left.
    Departures,
}

/// What non-adaptive flows have beside steady adaptive ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spare {
    /// What these leave, at least their share.
    Share,
    /// What these leave.
    Printed,
}

/// Among how many flows the fair bandwidth is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// Non-adaptive ones that want more.
    Unsatisfied,
    /// Adaptive ones too.
    All,
}

impl SffcParams {
    /// From the catalogue's values for `entry`, which is [`SFFC`] or [`NBQ`].
    ///
    /// # Errors
    /// When nothing could be measured, or too much would have to be kept.
    pub fn from_args(args: &Args, entry: &'static Entry) -> Result<Self, ParamError> {
        let args = args.of(entry);
        let (interval, active, history) = (args.span("interval"), args.span("active"), args.count("history"));
        let measured = "in so short a time no rate can be measured; write at least \"1ms\"";
        require(interval >= Span::from_millis(1), "interval", measured)?;
        let kept =
            format!("a flow is active for at least one `interval`, {interval}, and at most 1000 of them");
        require(active >= interval && active.div(1_000) <= interval, "active", &kept)?;
        let averaged = (1..=flows::HISTORY as u64).contains(&history);
        require(averaged, "history", "an average is over 1 to 8 intervals")?;
        for name in ["alpha", "beta"].into_iter().filter(|name| entry.param(name).is_some()) {
            require(args.ratio(name).get() < 1.0, name, "with 1 it never moves; write for example 0.5")?;
        }
        let rises = "a rate that was lowered must rise again; write for example \"0.5%\"";
        require(args.ratio("increment") > Ratio::ZERO, "increment", rises)?;
        Ok(Self {
            limit: args.limit("limit"),
            interval,
            increment: args.ratio("increment"),
            alpha: args.ratio("alpha"),
            history,
            wait: args.count("wait"),
            regular: args.ratio("regular"),
            active,
            reports: args.switch("reports"),
            previous: if args.choice("previous") == "final" { Previous::Final } else { Previous::Bdr },
            report_discards: args.ratio_if_set("report_discards"),
            recognise: if args.choice("recognise") == "behaviour" {
                Recognise::Behaviour
            } else {
                Recognise::Protocol
            },
            fairness: (entry.name == SFFC.name).then(|| FairnessParams::from_args(&args)),
        })
    }
}

impl FairnessParams {
    fn from_args(args: &EntryArgs<'_>) -> Self {
        Self {
            beta: args.ratio("beta"),
            usage: if args.choice("usage") == "demand" { Usage::Demand } else { Usage::Departures },
            spare: if args.choice("spare") == "share" { Spare::Share } else { Spare::Printed },
            divisor: if args.choice("divisor") == "all" { Divisor::All } else { Divisor::Unsatisfied },
            recount: args.switch("recount"),
        }
    }
}

/// The state of one output link. Amounts are bytes in an interval.
#[derive(Clone, Debug)]
pub struct Sffc {
    params: SffcParams,
    link_rate: Rate,
    /// When the current interval ends.
    interval_ends: Time,
    /// τ, λ, μ, BDR and v of each flow.
    flows: Flows,
    /// γ, what arrived of adaptive flows.
    gamma: u64,
    /// The same of the interval before.
    previous_gamma: u64,
    /// ρ, how γ changes.
    rho: f64,
    /// FB, of the last interval.
    fair_bandwidth: f64,
    /// Whether the link overflowed in this interval.
    overflowed: bool,
    /// What the last interval has to tell.
    reports: Vec<FlowReport>,
    /// Demands and shares in the making.
    scratch: [Vec<f64>; 2],
    random: Stream,
    /// If flows are not believed.
    recognition: Option<Recognition>,
}

impl Sffc {
    /// In front of a link of `link_rate`. Its intervals are as `random` wills, not in step with others.
    /// What it tries out on flows is by `coins`.
    #[must_use]
    pub fn new(params: &SffcParams, link_rate: Rate, mut random: Stream, coins: Stream) -> Self {
        let first = random.below(params.interval.as_nanos());
        Self {
            params: params.clone(),
            link_rate,
            interval_ends: Time::ZERO + params.interval + Span::from_nanos(first),
            flows: Flows::default(),
            gamma: 0,
            previous_gamma: 0,
            rho: 1.0,
            fair_bandwidth: 0.0,
            overflowed: false,
            reports: Vec::new(),
            scratch: [Vec::new(), Vec::new()],
            random,
            recognition: (params.recognise == Recognise::Behaviour).then(|| Recognition::new(coins)),
        }
    }

    /// When the current interval ends.
    #[must_use]
    pub const fn interval_ends(&self) -> Time {
        self.interval_ends
    }

    /// Whether it tells and heeds other routers.
    #[must_use]
    pub const fn exchanges_reports(&self) -> bool {
        self.params.reports
    }

    /// Ends the intervals that are over at `now`.
    pub fn advance(&mut self, now: Time) {
        // Terminates: a flow is forgotten after at most 1000 intervals of silence, and with the last one the
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

    /// Takes what the last interval has to tell the routers before this one.
    pub fn take_reports(&mut self) -> Vec<FlowReport> {
        core::mem::take(&mut self.reports)
    }

    /// Whether `flow` passed as a non-adaptive one lately.
    #[must_use]
    pub fn carries(&self, flow: FlowId) -> bool {
        self.flows.get(flow).is_some_and(|flow| !flow.adaptive)
    }

    /// The next router says what it did to a flow that this one sent it. The latest report of an interval
    /// counts.
    pub fn heard(&mut self, report: FlowReport) {
        let interval = report.interval.as_secs_f64();
        if !self.params.reports || interval <= 0.0 {
            return;
        }
        let per_interval = self.params.interval.as_secs_f64() / interval;
        if let Some(flow) = self.flows.get_mut(report.flow) {
            let [arrived, departed] =
                [report.arrived, report.departed].map(|amount| amount.get() as f64 * per_interval);
            flow.heard = Some([arrived, departed]);
        }
    }

    /// What the link can carry in an interval.
    fn capacity(&self) -> f64 {
        self.link_rate.as_bit() as f64 / 8.0 * self.params.interval.as_secs_f64()
    }

    fn end_interval(&mut self, now: Time) {
        self.note_reports();
        for flow in self.flows.iter_mut().filter(|flow| !flow.adaptive && flow.lambda > 0) {
            flow.left.push(flow.mu);
        }
        self.set_basic_discard_rates();
        match self.params.fairness.clone() {
            Some(fairness) => self.divide(&fairness),
            None => self.flows.iter_mut().for_each(|flow| flow.v = flow.bdr),
        }
        self.previous_gamma = core::mem::take(&mut self.gamma);
        self.overflowed = false;
        for flow in self.flows.iter_mut() {
            (flow.lambda, flow.discarded, flow.mu) = (0, 0, 0);
        }
        self.flows.forget_silent(now, self.params.active);
        if let Some(recognition) = &mut self.recognition {
            recognition
                .advance(now, Rate::from_bit(self.link_rate.as_bit() / self.flows.len().max(1) as u64));
        }
    }

    fn note_reports(&mut self) {
        self.reports.clear();
        if !self.params.reports {
            return;
        }
        for flow in self.flows.iter().filter(|flow| !flow.adaptive && flow.lambda > 0) {
            let discarded = flow.discarded as f64 / flow.lambda as f64;
            if self.overflowed || self.params.report_discards.is_some_and(|most| discarded > most.get()) {
                self.reports.push(FlowReport {
                    flow: flow.id,
                    arrived: Bytes::new(flow.lambda),
                    departed: Bytes::new(flow.mu.min(flow.lambda)),
                    interval: self.params.interval,
                });
            }
        }
    }

    fn set_basic_discard_rates(&mut self) {
        let increment = self.params.increment.get() * self.capacity();
        let (params, alpha) = (&self.params, self.params.alpha.get());
        for flow in self.flows.iter_mut().filter(|flow| !flow.adaptive) {
            let heard = flow.heard.take();
            flow.silent = if heard.is_some() { 0 } else { flow.silent.saturating_add(1) };
            if flow.lambda == 0 {
                continue;
            }
            let lambda = flow.lambda as f64;
            let previous = if params.previous == Previous::Bdr { flow.bdr } else { flow.v };
            let wanted = heard.and_then(|report| flow.wanted_discard_rate(report, params));
            let bdr = match wanted {
                // Eq. (3)
                Some(wanted) => alpha * previous + (1.0 - alpha) * wanted,
                None if heard.is_none() && u64::from(flow.silent) <= params.wait => flow.bdr,
                // Eq. (4)
                None => previous - increment / lambda,
            };
            // It leaves at least I, so that nobody is starved on another's word.
            flow.bdr = bdr.clamp(0.0, (1.0 - increment / lambda).max(0.0));
        }
    }

    /// The final discard rates.
    fn divide(&mut self, fairness: &FairnessParams) {
        let adaptive = self.flows.iter().filter(|flow| flow.adaptive).count();
        let n_n = self.flows.len() - adaptive;
        self.note_change_of_adaptive_arrivals(fairness.beta);
        let [mut demands, mut shares] = core::mem::take(&mut self.scratch);
        demands.clear();
        demands.extend(self.flows.iter().filter(|flow| !flow.adaptive).map(Flow::demand));

        // Eq. (5)
        let w = self.capacity() * n_n as f64 / self.flows.len().max(1) as f64;
        let w_hat = match fairness.usage {
            Usage::Demand => demands.iter().sum(),
            Usage::Departures => self.flows.iter().map(|flow| flow.mu as f64).sum(),
        };
        self.fair_bandwidth = self.fair_bandwidth(w, w_hat, fairness.spare);

        shares.clear();
        shares.extend_from_slice(&demands);
        if fairness.divisor == Divisor::Unsatisfied && !fairness.recount {
            let level = water_filling::level(self.fair_bandwidth, &mut demands);
            shares.iter_mut().for_each(|share| *share = share.min(level));
        } else {
            let among = if fairness.divisor == Divisor::All { n_n + adaptive } else { n_n };
            max_min_estimate(self.fair_bandwidth, &demands, among, fairness.recount, &mut shares);
        }
        for (flow, share) in self.flows.iter_mut().filter(|flow| !flow.adaptive).zip(&shares) {
            if flow.lambda > 0 {
                flow.v = (1.0 - share / flow.lambda as f64).clamp(0.0, 1.0);
            }
        }
        self.scratch = [demands, shares];
    }

    /// Eq. (6)
    fn note_change_of_adaptive_arrivals(&mut self, beta: Ratio) {
        if self.gamma > 0 {
            let change = self.previous_gamma as f64 / self.gamma as f64;
            self.rho = beta.get() * self.rho + (1.0 - beta.get()) * change;
        }
    }

    /// Eq. (7)
    fn fair_bandwidth(&self, w: f64, w_hat: f64, spare: Spare) -> f64 {
        if w_hat < w {
            w_hat
        } else if self.rho > 0.9 && self.rho < 1.1 {
            let left = (self.capacity() - self.gamma as f64).max(0.0);
            if spare == Spare::Share { left.max(w) } else { left }
        } else {
            w
        }
    }
}

impl Sffc {
    /// Counts the packet and says whether it is discarded in front of the queue.
    fn discards<P: Packet>(&mut self, now: Time, packet: &P) -> bool {
        let (id, size) = (packet.flow(), packet.size());
        let says_adaptive = packet.protocol() == Protocol::Tcp;
        let adaptive = match &mut self.recognition {
            Some(recognition) => recognition.arrived(id, now, size, says_adaptive),
            None => says_adaptive,
        };
        let flow = self.flows.seen(id, now, adaptive);
        let mut discarded = false;
        if adaptive {
            self.gamma += size.get();
        } else {
            flow.lambda += size.get();
            discarded = flow.v > 0.0 && self.random.chance(flow.v);
        }
        if let Some(recognition) = &mut self.recognition {
            discarded = discarded || recognition.tests(id);
            if discarded {
                recognition.lost(id);
            }
        }
        if discarded {
            flow.discarded += size.get();
        }
        discarded
    }
}

impl Flow {
    /// Eq. (2): the discard rate with which the next router would have lost nothing of the flow; none if it
    /// lost about nothing.
    fn wanted_discard_rate(&self, [arrived, departed]: [f64; 2], params: &SffcParams) -> Option<f64> {
        let mean = self.left.mean(params.history as usize);
        // No more than this router sent can have arrived there.
        let arrived = arrived.min(mean);
        let passed = if arrived > 0.0 { (departed / arrived).min(1.0) } else { 1.0 };
        (1.0 - passed > params.regular.get())
            .then(|| (1.0 - passed * mean / self.lambda as f64).clamp(0.0, 1.0))
    }
}

impl<P: Packet> BufferPolicy<P> for Sffc {
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Verdict {
        self.advance(now);
        if packet.protocol() != Protocol::Control && self.discards(now, packet) {
            return Verdict::Drop(DropReason::Policy);
        }
        if !self.params.limit.admits(packet, backlog) {
            self.overflowed = true;
            if let Some(recognition) = &mut self.recognition {
                recognition.lost(packet.flow());
            }
            return Verdict::Drop(DropReason::Overflow);
        }
        Verdict::Accept
    }

    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        _sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        self.advance(now);
        let queued = scheduler.pop(now)?;
        if queued.packet.protocol() != Protocol::Control
            && let Some(flow) = self.flows.get_mut(queued.packet.flow())
            && !flow.adaptive
        {
            flow.mu += queued.packet.size().get();
        }
        Some(queued)
    }

    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        let adaptive = self.flows.iter().filter(|flow| flow.adaptive).count();
        show("adaptive_flows", adaptive as f64);
        show("non_adaptive_flows", (self.flows.len() - adaptive) as f64);
        if self.params.fairness.is_some() {
            let mbit = 8e-6 / self.params.interval.as_secs_f64();
            show("fair_bandwidth_mbps", self.fair_bandwidth * mbit);
            show("rho", self.rho);
        }
    }

    fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        match &self.recognition {
            Some(recognition) => recognition.statistics(show),
            None => {
                self.flows
                    .iter()
                    .for_each(|flow| show(flow.id, "adaptive", f64::from(u8::from(flow.adaptive))));
            }
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        self.params.limit = limit;
    }

    fn set_link_rate(&mut self, rate: Rate) {
        self.link_rate = rate;
    }
}
