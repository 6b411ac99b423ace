//! The queue of a link: any discipline, with or without a shaper, behind one type; and its parameters.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::any::{
    BoxedDiscipline, BufferParams, DisciplineKind, POLICIES, PolicyParams, SCHEDULERS, SHAPERS, SYSTEMS,
};
use super::cake::{AckFilter, Hosts};
use super::catalog::Selection;
use super::classes::{ByteLimit, ClassNames};
use super::context::LinkContext;
use super::custom::Fault;
use super::discipline::Discipline;
use super::isolate::{Isolate, IsolatedParams};
use super::ramp::FlowShare;
use super::sffc_fronted::SffcFrontedParams;
use crate::aqm::csfq::RouterRole;
use crate::aqm::sffc::{NBQ, Sffc, SffcParams, Trust};
use crate::aqm::value_edge::ValueEdgeParams;
use crate::control::token_bucket::{TokenBucket, TokenBucketParams};
use crate::flow_setting::FlowSetting;
use crate::limit::Limit;
use crate::mark::rate_label::RateLabelParams;
use crate::packet::{FlowId, LabelKind, Packet, SimplePacket};
use crate::param::{Args, Entry, GoesBy, Heeds, Known, LIMIT, ParamError, Shares, require};
use crate::queue::{Backlog, Queue, Sink};
use crate::units::{Bytes, Rate, Span, Time};

/// The checked parameters of a discipline in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct DisciplineParams {
    /// The discipline, with its parameters.
    pub kind: DisciplineKind,
    /// The shaper around it, if there is one.
    pub shaper: Option<TokenBucketParams>,
}

impl DisciplineParams {
    /// Checks the values of a selection against each other.
    ///
    /// # Errors
    /// When a value is invalid or contradicts another; the error names the key.
    pub fn from_args(selection: &Selection) -> Result<Self, ParamError> {
        let args = &selection.args;
        if let Some(key) = args.in_bdp() {
            let message = "a bandwidth-delay product needs the round-trip times of flows, which a scenario knows; write a time here, \
                           for example \"100ms\"";
            return Err(ParamError::new(&key, message));
        }
        let kind = match (&selection.custom, selection.drop) {
            (Some(custom), _) => DisciplineKind::Custom(custom.read(args)?),
            (None, Some(drop)) => DisciplineKind::Buffered(BufferParams {
                schedule: read(SCHEDULERS, args, "kind", selection.kind)?,
                drop: read(POLICIES, args, "drop", drop)?,
            }),
            (None, None) => read(SYSTEMS, args, "kind", selection.kind)?,
        };
        let kind = SffcFrontedParams::of(kind);
        let kind = match Isolate::from_args(args) {
            Some(isolate) => DisciplineKind::Isolated(IsolatedParams::new(isolate, kind)?),
            None => kind,
        };
        let shaper = match selection.shaper {
            Some(shaper) => Some(read(SHAPERS, args, "shaper", shaper)?),
            None => None,
        };
        Ok(Self { kind, shaper })
    }

    /// The hosts among which it divides before it divides among flows; none if it does not.
    #[must_use]
    pub const fn isolate(&self) -> Option<Isolate> {
        match &self.kind {
            DisciplineKind::Isolated(isolated) => Some(isolated.isolate),
            DisciplineKind::Cake(cake) => match cake.hosts {
                Hosts::Triple => Some(Isolate::Both),
                Hosts::Source => Some(Isolate::Source),
                Hosts::Destination => Some(Isolate::Destination),
                Hosts::None => None,
            },
            _ => None,
        }
    }

    /// Whether it treats classes of flows differently, or may: the behaviour of an external discipline is
    /// unknown.
    #[must_use]
    pub fn knows_classes(&self) -> bool {
        matches!(self.kind, DisciplineKind::Custom(_)) || self.heeds(Heeds::Class)
    }

    /// Whether it heeds this setting of flows, with the values of its parameters, or may: the behaviour of an
    /// external discipline is unknown. Cost: as an empty discipline.
    #[must_use]
    pub fn may_heed(&self, kind: Heeds) -> bool {
        let own = || self.build_simple(&LinkContext::new(Rate::from_mbit(1), 0, ""));
        self.is_custom() || own().set_flow(FlowId(0), kind.default_setting())
    }

    fn heeds(&self, kind: Heeds) -> bool {
        self.kind.entries().any(|entry| entry.traits.heeds.contains(&kind))
    }

    /// Whether it is an external discipline, or contains one.
    #[must_use]
    pub fn is_custom(&self) -> bool {
        matches!(self.dividing(), DisciplineKind::Custom(_))
    }

    /// Whether it divides among customers before it divides among flows.
    #[must_use]
    pub fn divides_among_customers(&self) -> bool {
        self.heeds(Heeds::Customer) && !self.has_classes()
    }

    /// Whether it has classes to which flows are assigned.
    #[must_use]
    pub fn has_classes(&self) -> bool {
        self.kind.entries().any(|entry| entry.traits.classes.is_some())
    }

    /// The classes to which its flows are assigned, if it has classes. Cost: proportional to their number.
    #[must_use]
    pub fn classes(&self) -> Option<ClassNames<'_>> {
        match &self.kind {
            DisciplineKind::Prio(params) => Some(params.class.names()),
            DisciplineKind::Htb(params) => Some(params.class.names()),
            DisciplineKind::Hfsc(params) => Some(params.class.names()),
            _ => None,
        }
    }

    /// The discipline that divides, among hosts or among flows.
    fn dividing(&self) -> &DisciplineKind {
        match &self.kind {
            DisciplineKind::Isolated(isolated) => &isolated.kind,
            DisciplineKind::SffcFronted(fronted) => &fronted.discipline,
            kind => kind,
        }
    }

    /// Returns the parameters for exchanging reports with other routers, if any.
    const fn reporting(&self) -> Option<&SffcParams> {
        let sffc = match &self.kind {
            DisciplineKind::Buffered(BufferParams { drop: PolicyParams::Sffc(sffc), .. }) => sffc,
            DisciplineKind::SffcFronted(fronted) => &fronted.sffc,
            _ => return None,
        };
        if sffc.reports { Some(sffc) } else { None }
    }

    /// The kind of label that it writes on packets, if any.
    #[must_use]
    pub fn label_written(&self) -> Option<LabelKind> {
        self.dividing().entries().find_map(|entry| entry.traits.writes)
    }

    /// The kind of label that it reads, if any.
    #[must_use]
    pub fn label_required(&self) -> Option<LabelKind> {
        self.dividing().entries().find_map(|entry| entry.traits.reads)
    }

    /// A scheduler that divides, with a policy that does not preserve its shares: a flow that sends more gets
    /// more of the buffer.
    #[must_use]
    pub fn undone_division(&self) -> Option<[&'static str; 2]> {
        let DisciplineKind::Buffered(buffer) = &self.kind else { return None };
        let policy = match &buffer.drop {
            // SF-FC limits unresponsive flows; its predecessor only follows reports.
            PolicyParams::Sffc(params) if params.fairness.is_some() => return None,
            PolicyParams::Sffc(_) => &NBQ,
            policy => policy.entry()?,
        };
        let scheduler = buffer.schedule.entry()?;
        let is_undone = scheduler.traits.shares == Shares::Given && policy.traits.shares == Shares::Ignored;
        is_undone.then_some([scheduler.name, policy.name])
    }

    /// The discipline behind SF-FC, if it heeds weights: SF-FC limits unresponsive flows to equal parts
    /// before it. None if the discipline gives each flow its share, so that SF-FC does not limit them.
    #[must_use]
    pub fn equal_in_front(&self) -> Option<&'static str> {
        let DisciplineKind::SffcFronted(fronted) = &self.kind else { return None };
        (!fronted.gives_shares() && self.may_heed(Heeds::Weight)).then(|| fronted.sffc.discipline())
    }

    /// Whether a full buffer drops from the flow that holds most for its weight, so that each flow's part
    /// needs room for a packet.
    #[must_use]
    pub fn divides_buffer_by_weights(&self) -> bool {
        let divides = self.dividing();
        // Label-based disciplines drop before the buffer is full.
        let is_labelled = divides.entries().any(|entry| entry.traits.writes.is_some());
        divides.shares() == Shares::Given && !is_labelled && self.may_heed(Heeds::Weight)
    }

    /// Whether it divides the configured rate of its link, which is the mean of a recorded link.
    #[must_use]
    pub fn divides_set_rate(&self) -> bool {
        match self.policy() {
            Some(PolicyParams::Csfq(params)) => !params.fair_share.measures_rate(),
            Some(PolicyParams::Hcsfq(params)) => !params.fair_share.measures_rate(),
            _ => self.dividing().entries().any(|entry| entry.traits.divides_set_rate),
        }
    }

    /// Returns the treatment of the rate labels of packets, if any: the labels that it writes, and whether
    /// packets leave without them.
    #[must_use]
    pub fn rate_labels(&self) -> Option<(RouterRole, bool)> {
        match self.policy()? {
            PolicyParams::Csfq(params) => Some((params.role, params.egress)),
            PolicyParams::Hcsfq(params) => Some((params.role, params.egress)),
            _ => None,
        }
    }

    /// The kind of label that it writes and reads, which packets it labels, and whether they leave without: for queues
    /// with a role.
    #[must_use]
    pub fn label_role(&self) -> Option<(LabelKind, RouterRole, bool)> {
        let value = |edge: &ValueEdgeParams| Some((LabelKind::Value, edge.role, edge.egress));
        match (self.dividing(), self.policy()) {
            (DisciplineKind::Ppv(params), _) => value(&params.edge),
            (DisciplineKind::VdqCsaqm(params), _) => value(&params.edge),
            (_, Some(PolicyParams::PvPie(params))) => value(&params.edge),
            _ => self.rate_labels().map(|(role, egress)| (LabelKind::Rate, role, egress)),
        }
    }

    /// The buffer policy, if there is one.
    fn policy(&self) -> Option<&PolicyParams> {
        if let DisciplineKind::Buffered(buffer) = self.dividing() { Some(&buffer.drop) } else { None }
    }

    /// The format of its rate labels, if it writes any.
    #[must_use]
    pub fn rate_label_params(&self) -> Option<&RateLabelParams> {
        match self.policy()? {
            PolicyParams::Csfq(params) => Some(&params.edge),
            PolicyParams::Hcsfq(params) => Some(&params.edge),
            _ => None,
        }
    }

    /// The interval between its reports to other routers; none if it sends none.
    #[must_use]
    pub fn report_interval(&self) -> Option<Span> {
        self.reporting().map(|sffc| sffc.interval)
    }

    /// Whether it reads the counters of routers that send no reports.
    #[must_use]
    pub fn reads_counters(&self) -> bool {
        self.reporting().is_some_and(|sffc| sffc.counters)
    }

    /// Returns the trust in the reports of other routers; none if it uses none.
    #[must_use]
    pub fn report_trust(&self) -> Option<Trust> {
        self.reporting().map(|sffc| sffc.trust)
    }

    /// The size of the buffer for a link of `rate` if it follows that rate; none if it is set, and for an
    /// external discipline.
    #[must_use]
    pub fn limit_of_link(&self, rate: Rate) -> Option<Limit> {
        let of = |rate| self.limit_at(rate);
        if of(Rate::from_mbit(1)) == of(Rate::from_mbit(1_000_000)) { None } else { of(rate) }
    }

    /// The size of the buffer for a link of `rate`, or of each queue if sizes are per queue; none for an
    /// external discipline.
    #[must_use]
    pub fn limit_at(&self, rate: Rate) -> Option<Limit> {
        if self.is_custom() {
            return None;
        }
        self.build::<SimplePacket>(&LinkContext::new(rate, 0, "")).limit()
    }

    /// The sizes in bytes of its buffers for a link of `rate`; none for an external discipline. Cost: as an
    /// empty discipline, plus time proportional to its classes.
    #[must_use]
    pub fn byte_limits(&self, rate: Rate) -> Vec<ByteLimit<'_>> {
        let whole = |key| move |size| ByteLimit { key, size, class: None };
        let memory = match self.dividing() {
            DisciplineKind::FqCodel(params) => params.queues.memory_limit,
            DisciplineKind::FqPie(params) => params.queues.memory_limit,
            _ => None,
        };
        let of_classes = match &self.kind {
            DisciplineKind::Prio(params) => params.class.byte_limits(rate),
            DisciplineKind::Htb(params) => params.class.byte_limits(rate),
            DisciplineKind::Hfsc(params) => params.class.byte_limits(rate),
            _ => Vec::new(),
        };
        let limit = self.limit_at(rate).and_then(Limit::bytes).map(whole(LIMIT.name));
        limit.into_iter().chain(memory.map(whole("memory_limit"))).chain(of_classes).collect()
    }

    /// The rate at which packets leave on a link of `rate`, counted as they are [charged](Self::charge): a
    /// shaper or CAKE's `bandwidth` may lower it.
    #[must_use]
    pub fn capacity(&self, rate: Rate) -> Rate {
        let shaped = self.shaped(rate);
        self.bandwidth().map_or(shaped, |bandwidth| bandwidth.min(shaped))
    }

    /// CAKE's `bandwidth`, in bytes as [charged](Self::charge), if set; none for other disciplines.
    #[must_use]
    pub fn bandwidth(&self) -> Option<Rate> {
        if let DisciplineKind::Cake(cake) = self.dividing() { cake.bandwidth } else { None }
    }

    /// FQ's `maxrate`, if set; none for other disciplines.
    #[must_use]
    pub fn max_flow_rate(&self) -> Option<Rate> {
        if let DisciplineKind::Fq(fq) = self.dividing() { fq.maxrate } else { None }
    }

    /// Whether it [charges](Self::charge) packets more than their size, which only CAKE does.
    #[must_use]
    pub fn frames(&self) -> bool {
        matches!(self.dividing(), DisciplineKind::Cake(cake) if cake.frames())
    }

    /// CAKE's charge for an IP packet of this size if packet sizes include `layer2`; none for other
    /// disciplines.
    #[must_use]
    pub fn charge(&self, ip: Bytes, layer2: Bytes) -> Option<Bytes> {
        let DisciplineKind::Cake(cake) = self.dividing() else { return None };
        Some(cake.charge(ip, layer2))
    }

    /// Refuses disciplines that depend on the DSCP, for packets without one.
    ///
    /// # Errors
    /// When it depends on the DSCP; the message says what to change.
    pub fn refuse_dscp(&self) -> Result<(), ParamError> {
        let message = "packets have no DSCP here, only those of gateways do; write \"class\", and class = \"real_rate\" for flows";
        require(!self.goes_by_dscp(), "tins", message)
    }

    /// Whether its decisions depend on `what`, whatever its parameters.
    #[must_use]
    pub fn goes_by(&self, what: GoesBy) -> bool {
        self.dividing().entries().any(|entry| entry.traits.goes_by == Some(what))
    }

    /// Whether it has tins by the DSCP of packets.
    #[must_use]
    pub fn goes_by_dscp(&self) -> bool {
        matches!(self.dividing(), DisciplineKind::Cake(cake) if cake.goes_by_dscp())
    }

    /// Refuses disciplines that depend on TCP headers, for packets whose headers cannot be read.
    ///
    /// # Errors
    /// When it depends on TCP headers; the message says what to change.
    pub fn refuse_ack_filter(&self) -> Result<(), ParamError> {
        let filters =
            matches!(self.dividing(), DisciplineKind::Cake(cake) if cake.ack_filter != AckFilter::None);
        require(!filters, "ack_filter", "TCP headers of packets cannot be read here; leave it out")
    }

    fn shaped(&self, rate: Rate) -> Rate {
        self.shaper.as_ref().map_or(rate, |shaper| rate.min(shaper.rate))
    }

    /// Builds it for [`SimplePacket`]s, like [`build`](Self::build). This function is not generic, so it is
    /// compiled in this crate alone; every crate that calls `build` compiles all disciplines for its packet.
    #[must_use]
    #[inline(never)]
    pub fn build_simple(&self, setup: &LinkContext<'_>) -> LinkQueue<SimplePacket> {
        self.build(setup)
    }

    /// Builds an empty discipline for a link. Behind a shaper its link rate is the rate at which packets
    /// leave: the shaper's, or the link's if that is slower.
    #[must_use]
    pub fn build<P: Packet>(&self, setup: &LinkContext<'_>) -> LinkQueue<P> {
        let link_rate = self.shaped(setup.link_rate);
        let mut discipline = self.kind.build(&LinkContext { link_rate, ..*setup });
        for (flow, setting) in setup.settings() {
            discipline.set_flow(flow, setting);
        }
        let queue = match &self.shaper {
            Some(shaper) => Shape::Shaped(Box::new((TokenBucket::new(shaper, discipline), setup.link_rate))),
            None => Shape::Plain(discipline),
        };
        LinkQueue { queue, params: Box::new(self.kind.clone()) }
    }
}

/// Reads the parameters of `entry`, which `key` names, by its row of `table`.
fn read<T>(table: &[Known<T>], args: &Args, key: &str, entry: &'static Entry) -> Result<T, ParamError> {
    let known = table.iter().find(|known| known.entry.name == entry.name);
    let known = known.ok_or_else(|| ParamError::new(key, "it does not fit here"))?;
    (known.read)(&args.of(known.entry))
}

/// The queue of a link: any discipline, with or without a shaper.
pub struct LinkQueue<P> {
    queue: Shape<P>,
    /// The parameters from which it was built.
    params: Box<DisciplineKind>,
}

/// A discipline, with or without a shaper.
enum Shape<P> {
    Plain(BoxedDiscipline<P>),
    /// A discipline behind a shaper, and the rate of the link.
    Shaped(Box<(TokenBucket<P, BoxedDiscipline<P>>, Rate)>),
}

impl<P> fmt::Debug for LinkQueue<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkQueue").field("params", &self.params).finish_non_exhaustive()
    }
}

impl<P: Packet> LinkQueue<P> {
    /// A discipline that a backend implements by other means, such as a queue of the kernel, in place of
    /// `params`' own. It is identified by `params`, and `queue` does the work.
    #[must_use]
    pub fn external(params: &DisciplineParams, queue: BoxedDiscipline<P>) -> Self {
        Self { queue: Shape::Plain(queue), params: Box::new(params.kind.clone()) }
    }

    fn discipline(&self) -> &dyn Discipline<P> {
        match &self.queue {
            Shape::Plain(discipline) => &**discipline,
            Shape::Shaped(shaped) => &**shaped.0.inner(),
        }
    }

    /// Whether it was built from these parameters; a shaper, whether it has them at present. For checks of a
    /// running queue.
    #[must_use]
    pub fn has_params(&self, params: &DisciplineParams) -> bool {
        let shaped = match (&self.queue, &params.shaper) {
            (Shape::Plain(_), None) => true,
            (Shape::Shaped(shaped), Some(params)) => shaped.0.has_params(params),
            _ => false,
        };
        shaped && *self.params == params.kind
    }

    /// Whether a `dequeue` may be made late; see [`Discipline::allows_deferred_dequeue`].
    #[must_use]
    pub fn allows_deferred_dequeue(&self) -> bool {
        matches!(&self.queue, Shape::Plain(discipline) if discipline.allows_deferred_dequeue())
    }

    /// Reports named counters and gauges.
    pub fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        self.discipline().statistics(show);
    }

    /// Reports named counters and gauges of flows.
    pub fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        self.discipline().flow_statistics(show);
    }
}

/// Failure.
impl<P: Packet> LinkQueue<P> {
    /// The breach of its contract by an external discipline, if there was one.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        self.discipline().fault()
    }
}

/// Shares of flows.
impl<P: Packet> LinkQueue<P> {
    /// Reports the share and the queue of each real-rate flow at `now`, if this discipline infers
    /// requirements. Work due until `now` is done first.
    pub fn shares(&mut self, now: Time, sink: &mut dyn Sink<P>, show: &mut dyn FnMut(FlowId, FlowShare)) {
        let discipline = self.discipline_mut();
        discipline.advance(now, sink);
        discipline.shares(show);
    }

    /// Reports shares as [`shares`](Self::shares) does, at the time of the last call with a time.
    pub fn latest_shares(&self, show: &mut dyn FnMut(FlowId, FlowShare)) {
        self.discipline().shares(show);
    }
}

/// Reports exchanged with other routers.
impl<P: Packet> LinkQueue<P> {
    /// Returns the part that exchanges reports, if any.
    #[must_use]
    pub fn reporter(&self) -> Option<&Sffc> {
        self.discipline().reporter()
    }

    /// Returns the part as [`reporter`](Self::reporter) does, for changes.
    pub fn reporter_mut(&mut self) -> Option<&mut Sffc> {
        self.discipline_mut().reporter_mut()
    }
}

/// Changes while packets wait. None of them drops a packet.
impl<P: Packet> LinkQueue<P> {
    fn discipline_mut(&mut self) -> &mut dyn Discipline<P> {
        match &mut self.queue {
            Shape::Plain(discipline) => &mut **discipline,
            Shape::Shaped(shaped) => &mut **shaped.0.inner_mut(),
        }
    }

    /// Removes and returns the next packet, whatever policy and shaper would decide, when a discipline is
    /// replaced.
    pub fn drain(&mut self, now: Time) -> Option<P> {
        let held = match &mut self.queue {
            Shape::Plain(_) => None,
            Shape::Shaped(shaped) => shaped.0.take_held(),
        };
        held.or_else(|| self.discipline_mut().drain(now))
    }

    /// Changes a setting of `flow`. Returns whether it is [heeded](FlowSetting).
    pub fn set_flow(&mut self, flow: FlowId, setting: FlowSetting) -> bool {
        self.discipline_mut().set_flow(flow, setting)
    }

    /// The present size of the buffer, or of each queue if sizes are per queue; none if an external
    /// discipline does not report it.
    #[must_use]
    pub fn limit(&self) -> Option<Limit> {
        self.discipline().limit()
    }

    /// Sets the size of the buffer. A buffer above the new size drains, or the next arrivals push packets
    /// out.
    pub fn set_limit(&mut self, limit: Limit) {
        self.discipline_mut().set_limit(limit);
    }

    /// Sets the rate of the link.
    pub fn set_link_rate(&mut self, rate: Rate) {
        let rate = match &mut self.queue {
            Shape::Plain(_) => rate,
            Shape::Shaped(shaped) => {
                shaped.1 = rate;
                rate.min(shaped.0.rate())
            }
        };
        self.discipline_mut().set_link_rate(rate);
    }

    /// Sets the rate of the shaper from `now` on. Returns whether there is one.
    pub fn set_shaper_rate(&mut self, now: Time, rate: Rate) -> bool {
        let Shape::Shaped(shaped) = &mut self.queue else { return false };
        let (shaper, link) = &mut **shaped;
        shaper.set_rate(now, rate);
        shaper.inner_mut().set_link_rate(rate.min(*link));
        true
    }
}

impl<P: Packet> Queue<P> for LinkQueue<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        match &mut self.queue {
            Shape::Plain(queue) => queue.enqueue(now, packet, sink),
            Shape::Shaped(shaped) => shaped.0.enqueue(now, packet, sink),
        }
    }
    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        match &mut self.queue {
            Shape::Plain(queue) => queue.dequeue(now, sink),
            Shape::Shaped(shaped) => shaped.0.dequeue(now, sink),
        }
    }
    fn is_transparent(&self) -> bool {
        match &self.queue {
            Shape::Plain(queue) => queue.is_transparent(),
            Shape::Shaped(_) => false,
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        match &self.queue {
            Shape::Plain(queue) => queue.next_wakeup(),
            Shape::Shaped(shaped) => shaped.0.next_wakeup(),
        }
    }
    #[inline(always)]
    fn backlog(&self) -> Backlog {
        match &self.queue {
            Shape::Plain(queue) => queue.backlog(),
            Shape::Shaped(shaped) => shaped.0.backlog(),
        }
    }
    fn upcoming(&self, others: usize) -> Option<&P> {
        match &self.queue {
            Shape::Plain(queue) => queue.upcoming(others),
            Shape::Shaped(_) => None,
        }
    }
}
