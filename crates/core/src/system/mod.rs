//! Whole disciplines: every combination that a scenario can name, behind one type.
//!
//! | file | holds | source |
//! |---|---|---|
//! | [`any`] | the schedulers and the policies as one enum each; the tables behind the catalogue | – |
//! | [`choke`] | RED that drops pairs of the same flow | Pan, Prabhakar, Psounis 2000 |
//! | [`fq_codel`] | flow queueing with CoDel | RFC 8290 |
//! | [`ramp`] | real-rate flows get what they seem to need | Li, Walpole, McNamee, Pu, Steere 2001 |
//!
//! Algorithms are generic; here, at the edge, they become the enum [`Discipline`], so that a world can hold
//! any of them without a box and a virtual call per packet.

pub mod any;
pub mod catalog;
pub mod choke;
pub mod fq_codel;
pub mod ramp;

pub use any::{POLICIES, SCHEDULERS, SHAPERS, SYSTEMS};

use self::any::{AnyPolicy, AnyScheduler, PolicyParams, SchedulerParams};
use self::catalog::Selection;
use self::choke::{Choke, ChokeParams};
use self::fq_codel::{FqCodel, FqCodelParams};
use self::ramp::{FlowShare, Ramp, RampParams};
use crate::aqm::BufferPolicy;
use crate::aqm::csfq::RouterRole;
use crate::aqm::sffc::Sffc;
use crate::buffer::Buffer;
use crate::control::token_bucket::{TokenBucket, TokenBucketParams};
use crate::limit::Limit;
use crate::packet::{CustomerId, Customers, FlowClass, FlowId, LabelKind, Packet};
use crate::param::ParamError;
use crate::queue::{Backlog, Queue, Sink};
use crate::random::Stream;
use crate::schedule::Scheduler;
use crate::units::{Rate, Span, Time, Weight};

/// What a discipline learns of the place it is built into.
#[derive(Clone, Copy, Debug)]
pub struct LinkContext<'a> {
    /// Rate of the link behind it.
    pub link_rate: Rate,
    /// Weights by flow number. Flows beyond have weight 1.
    pub weights: &'a [Weight],
    /// Round-trip times without queueing, by flow number. Zero, or beyond the end: unknown.
    pub rtts: &'a [Span],
    /// Guaranteed rates by flow number. Flows beyond have none.
    pub guarantees: &'a [Rate],
    /// Classes by flow number. Flows beyond are greedy.
    pub classes: &'a [FlowClass],
    /// Whose flows are whose.
    pub customers: Customers<'a>,
    /// Seed of the run.
    pub seed: u64,
    /// Name of the queue's random stream, unlike that of any other component.
    pub name: &'a str,
}

impl<'a> LinkContext<'a> {
    /// Of a place where nothing is known of flows: they have one weight, and no guarantee.
    #[must_use]
    pub fn new(link_rate: Rate, seed: u64, name: &'a str) -> Self {
        let customers = Customers::default();
        Self { link_rate, weights: &[], rtts: &[], guarantees: &[], classes: &[], customers, seed, name }
    }
}

impl LinkContext<'_> {
    /// The weight that earns one quantum.
    fn smallest_weight(&self) -> Weight {
        let smallest = |a: Weight, b: &Weight| if *b < a { *b } else { a };
        self.weights.split_first().map_or(Weight::ONE, |(first, rest)| rest.iter().fold(*first, smallest))
    }

    fn stream(&self) -> Stream {
        Stream::new(self.seed, self.name)
    }

    /// A second stream, for decisions of another kind.
    fn stream_for(&self, purpose: &str) -> Stream {
        Stream::new(self.seed, &alloc::format!("{}.{purpose}", self.name))
    }
}

/// Everything a scenario says of a discipline, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct DisciplineParams {
    /// What queues.
    pub core: CoreParams,
    /// What holds back, if anything does.
    pub shaper: Option<TokenBucketParams>,
}

/// Parameters of [`Core`].
#[derive(Clone, Debug, PartialEq)]
pub enum CoreParams {
    /// A scheduler with a buffer policy.
    Buffered {
        /// Who is served next.
        schedule: SchedulerParams,
        /// Who is dropped.
        drop: PolicyParams,
    },
    /// CHOKe.
    Choke(ChokeParams),
    /// FQ-CoDel.
    FqCodel(FqCodelParams),
    /// RAMP.
    Ramp(RampParams),
}

impl DisciplineParams {
    /// Checks the values of a selection against each other.
    ///
    /// # Errors
    /// When a value makes no sense or contradicts another; the error names the key.
    pub fn from_args(selection: &Selection) -> Result<Self, ParamError> {
        let args = &selection.args;
        let unknown = |key| ParamError::new(key, "it does not fit here");
        let core = match selection.drop {
            Some(drop) => CoreParams::Buffered {
                schedule: any::scheduler(selection.kind).ok_or_else(|| unknown("kind"))?(args)?,
                drop: any::reader(POLICIES, drop).ok_or_else(|| unknown("drop"))?(args)?,
            },
            None => any::reader(SYSTEMS, selection.kind).ok_or_else(|| unknown("kind"))?(args)?,
        };
        if let (CoreParams::Ramp(_), Some(_)) = (&core, selection.shaper) {
            let message = "RAMP reckons in the rate of its link and would not know of a shaper's; give the link the \
                           rate, or shape on the next one";
            return Err(ParamError::new("shaper", message));
        }
        let shaper = match selection.shaper {
            Some(shaper) => Some(any::reader(SHAPERS, shaper).ok_or_else(|| unknown("shaper"))?(args)?),
            None => None,
        };
        Ok(Self { core, shaper })
    }

    /// The kind of label that it writes on packets, if it writes any.
    #[must_use]
    pub const fn label_written(&self) -> Option<LabelKind> {
        match self.core {
            CoreParams::Buffered { drop: PolicyParams::Csfq(_) | PolicyParams::Hcsfq(_), .. } => {
                Some(LabelKind::Rate)
            }
            _ => None,
        }
    }

    /// The kind of label that it goes by, if it reads any.
    #[must_use]
    pub const fn label_required(&self) -> Option<LabelKind> {
        match self.core {
            CoreParams::Buffered { drop: PolicyParams::Tred(_), .. } => Some(LabelKind::Tickets),
            _ => self.label_written(),
        }
    }

    /// What it does about the rate labels of packets, if anything: which it writes, and whether they leave
    /// without.
    #[must_use]
    pub const fn rate_labels(&self) -> Option<(RouterRole, bool)> {
        match &self.core {
            CoreParams::Buffered { drop: PolicyParams::Csfq(params), .. } => {
                Some((params.role, params.egress))
            }
            CoreParams::Buffered { drop: PolicyParams::Hcsfq(params), .. } => {
                Some((params.role, params.egress))
            }
            _ => None,
        }
    }

    /// How often it sends reports to other routers; none if it does not take part in that.
    #[must_use]
    pub const fn report_interval(&self) -> Option<Span> {
        match &self.core {
            CoreParams::Buffered { drop: PolicyParams::Sffc(params), .. } if params.reports => {
                Some(params.interval)
            }
            _ => None,
        }
    }

    /// An empty discipline in its place.
    #[must_use]
    pub fn build<P: Packet>(&self, setup: &LinkContext<'_>) -> Discipline<P> {
        let core = Core::new(&self.core, setup);
        match &self.shaper {
            Some(shaper) => Discipline::Shaped(TokenBucket::new(shaper, core)),
            None => Discipline::Plain(core),
        }
    }
}

/// Any discipline without a shaper.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "one for each link; a box costs each packet a step")]
pub enum Core<P> {
    /// A scheduler with a buffer policy.
    Buffered(Buffer<AnyScheduler<P>, AnyPolicy>),
    /// CHOKe.
    Choke(Choke<P>),
    /// FQ-CoDel.
    FqCodel(FqCodel<P>),
    /// RAMP.
    Ramp(Ramp<P>),
}

/// Any discipline.
#[derive(Clone, Debug)]
pub enum Discipline<P> {
    /// As fast as the link asks.
    Plain(Core<P>),
    /// Held back to a rate.
    Shaped(TokenBucket<P, Core<P>>),
}

impl<P: Packet> Core<P> {
    fn new(params: &CoreParams, setup: &LinkContext<'_>) -> Self {
        let mut core = match params {
            CoreParams::Buffered { schedule, drop } => {
                Self::Buffered(Buffer::new(AnyScheduler::new(schedule, setup), AnyPolicy::new(drop, setup)))
            }
            CoreParams::Choke(params) => Self::Choke(Choke::new(params, setup.link_rate, setup.stream())),
            CoreParams::FqCodel(params) => {
                Self::FqCodel(FqCodel::new(params, setup.smallest_weight(), setup.stream()))
            }
            CoreParams::Ramp(params) => Self::Ramp(Ramp::new(params, setup.link_rate)),
        };
        for (flow, &weight) in (0..).map(FlowId).zip(setup.weights) {
            core.set_weight(flow, weight);
        }
        for (flow, &guarantee) in (0..).map(FlowId).zip(setup.guarantees) {
            if guarantee > Rate::ZERO {
                core.set_guarantee(
                    flow,
                    guarantee,
                    setup.rtts.get(flow.index()).copied().unwrap_or_default(),
                );
            }
        }
        for (flow, &class) in (0..).map(FlowId).zip(setup.classes) {
            core.set_class(flow, class);
        }
        core
    }

    fn has_params(&self, params: &CoreParams) -> bool {
        match (self, params) {
            (Self::Buffered(buffer), CoreParams::Buffered { schedule, drop }) => {
                buffer.scheduler().has_params(schedule) && buffer.policy().has_params(drop)
            }
            (Self::Choke(it), CoreParams::Choke(params)) => it.params == *params,
            (Self::FqCodel(it), CoreParams::FqCodel(params)) => it.params == *params,
            (Self::Ramp(it), CoreParams::Ramp(params)) => it.params == *params,
            _ => false,
        }
    }

    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        match self {
            Self::Buffered(buffer) => {
                let scheduled = buffer.scheduler_mut().set_weight(flow, weight);
                let dropped = BufferPolicy::<P>::set_weight(buffer.policy_mut(), flow, weight);
                scheduled || dropped
            }
            Self::Choke(_) | Self::Ramp(_) => false,
            Self::FqCodel(fq_codel) => fq_codel.set_weight(flow, weight),
        }
    }

    fn set_guarantee(&mut self, flow: FlowId, guarantee: Rate, rtt: Span) -> bool {
        match self {
            Self::Buffered(buffer) => {
                BufferPolicy::<P>::set_guarantee(buffer.policy_mut(), flow, guarantee, rtt)
            }
            Self::Choke(_) | Self::FqCodel(_) | Self::Ramp(_) => false,
        }
    }

    fn set_rtt(&mut self, flow: FlowId, rtt: Span) -> bool {
        match self {
            Self::Buffered(buffer) => BufferPolicy::<P>::set_rtt(buffer.policy_mut(), flow, rtt),
            Self::Choke(_) | Self::FqCodel(_) | Self::Ramp(_) => false,
        }
    }

    fn set_customer(&mut self, flow: FlowId, customer: CustomerId) -> bool {
        match self {
            Self::Buffered(buffer) => BufferPolicy::<P>::set_customer(buffer.policy_mut(), flow, customer),
            Self::Choke(_) | Self::FqCodel(_) | Self::Ramp(_) => false,
        }
    }

    fn set_class(&mut self, flow: FlowId, class: FlowClass) -> bool {
        match self {
            Self::Buffered(_) | Self::Choke(_) | Self::FqCodel(_) => false,
            Self::Ramp(ramp) => {
                ramp.set_class(flow, class);
                true
            }
        }
    }

    fn drain(&mut self, now: Time) -> Option<P> {
        match self {
            Self::Buffered(buffer) => buffer.scheduler_mut().pop(now).map(|queued| queued.packet),
            Self::Choke(choke) => choke.drain(),
            Self::FqCodel(fq_codel) => fq_codel.drain(),
            Self::Ramp(ramp) => ramp.drain(),
        }
    }

    fn set_limit(&mut self, limit: Limit) {
        match self {
            Self::Buffered(buffer) => BufferPolicy::<P>::set_limit(buffer.policy_mut(), limit),
            Self::Choke(choke) => choke.set_limit(limit),
            Self::FqCodel(fq_codel) => fq_codel.set_limit(limit),
            Self::Ramp(ramp) => ramp.set_limit(limit),
        }
    }

    fn set_link_rate(&mut self, rate: Rate) {
        match self {
            Self::Buffered(buffer) => BufferPolicy::<P>::set_link_rate(buffer.policy_mut(), rate),
            Self::Choke(choke) => choke.set_link_rate(rate),
            Self::FqCodel(_) => {}
            Self::Ramp(ramp) => ramp.set_link_rate(rate),
        }
    }
}

impl<P: Packet> Discipline<P> {
    fn core(&self) -> &Core<P> {
        match self {
            Self::Plain(core) => core,
            Self::Shaped(shaper) => shaper.inner(),
        }
    }

    /// Whether it has the parts that `params` name, and in those that keep their parameters whole these: for
    /// whoever reads back what runs. Schedulers, longest and random queue drop, PFD, CSFQ and HCSFQ tell
    /// their kind only.
    #[must_use]
    pub fn has_params(&self, params: &DisciplineParams) -> bool {
        let shaped = match (self, &params.shaper) {
            (Self::Plain(_), None) => true,
            (Self::Shaped(shaper), Some(params)) => shaper.has_params(params),
            _ => false,
        };
        shaped && self.core().has_params(&params.core)
    }

    /// Shows numbers by name that say what it has done or stands at, for results.
    pub fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        match self.core() {
            Core::Buffered(buffer) => BufferPolicy::<P>::statistics(buffer.policy(), show),
            Core::Choke(choke) => choke.statistics(show),
            Core::FqCodel(_) => {}
            Core::Ramp(ramp) => ramp.statistics(show),
        }
    }

    /// The same of the flows it knows.
    pub fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        if let Core::Buffered(buffer) = self.core() {
            BufferPolicy::<P>::flow_statistics(buffer.policy(), show);
        }
    }
}

/// What it divides among flows.
impl<P: Packet> Discipline<P> {
    /// Shows what each real-rate flow has and holds at `now`, if this discipline infers what flows need. What
    /// was due until `now` is done first.
    pub fn shares(&mut self, now: Time, sink: &mut dyn Sink<P>, show: &mut dyn FnMut(FlowId, FlowShare)) {
        if let Core::Ramp(ramp) = self.core_mut() {
            ramp.advance(now, sink);
            ramp.shares().for_each(|(flow, share)| show(flow, share));
        }
    }
}

/// Of disciplines that exchange reports with those of other routers.
impl<P: Packet> Discipline<P> {
    /// Its part in that, if it has one.
    #[must_use]
    pub fn link_state(&self) -> Option<&Sffc> {
        match self.core() {
            Core::Buffered(buffer) => buffer.policy().link_state(),
            Core::Choke(_) | Core::FqCodel(_) | Core::Ramp(_) => None,
        }
    }

    /// Its part in that, if it has one.
    pub fn link_state_mut(&mut self) -> Option<&mut Sffc> {
        match self.core_mut() {
            Core::Buffered(buffer) => buffer.policy_mut().link_state_mut(),
            Core::Choke(_) | Core::FqCodel(_) | Core::Ramp(_) => None,
        }
    }
}

/// Changes while packets wait. None of them drops a packet.
impl<P: Packet> Discipline<P> {
    fn core_mut(&mut self) -> &mut Core<P> {
        match self {
            Self::Plain(core) => core,
            Self::Shaped(shaper) => shaper.inner_mut(),
        }
    }

    /// The next packet, whatever policy and shaper would say: to move the packets of a discipline that is
    /// replaced.
    pub fn drain(&mut self, now: Time) -> Option<P> {
        match self {
            Self::Plain(core) => core.drain(now),
            Self::Shaped(shaper) => shaper.take_held().or_else(|| shaper.inner_mut().drain(now)),
        }
    }

    /// The weight of `flow` from its next turn on. Whether this discipline has use for it.
    pub fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        self.core_mut().set_weight(flow, weight)
    }

    /// What `flow` is guaranteed from its next packet on, with its round-trip time; nothing if zero. Whether
    /// this discipline knows guarantees.
    pub fn set_guarantee(&mut self, flow: FlowId, guarantee: Rate, rtt: Span) -> bool {
        self.core_mut().set_guarantee(flow, guarantee, rtt)
    }

    /// The round-trip time of `flow` without queueing, zero if unknown. Whether this discipline has use for
    /// it.
    pub fn set_rtt(&mut self, flow: FlowId, rtt: Span) -> bool {
        self.core_mut().set_rtt(flow, rtt)
    }

    /// Whose `flow` is from its next packet on. Whether this discipline divides among customers.
    pub fn set_customer(&mut self, flow: FlowId, customer: CustomerId) -> bool {
        self.core_mut().set_customer(flow, customer)
    }

    /// The class of `flow` from its next packet on. Whether this discipline knows classes.
    pub fn set_class(&mut self, flow: FlowId, class: FlowClass) -> bool {
        self.core_mut().set_class(flow, class)
    }

    /// The size of the buffer from now on. A fuller buffer drains, or is pushed out by the next arrivals.
    pub fn set_limit(&mut self, limit: Limit) {
        self.core_mut().set_limit(limit);
    }

    /// The rate of the link behind it from now on.
    pub fn set_link_rate(&mut self, rate: Rate) {
        self.core_mut().set_link_rate(rate);
    }

    /// The rate of the shaper from `now` on. Whether there is one.
    pub fn set_shaper_rate(&mut self, now: Time, rate: Rate) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Shaped(shaper) => {
                shaper.set_rate(now, rate);
                true
            }
        }
    }
}

impl<P: Packet> Queue<P> for Core<P> {
    #[inline]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        match self {
            Self::Buffered(queue) => queue.enqueue(now, packet, sink),
            Self::Choke(queue) => queue.enqueue(now, packet, sink),
            Self::FqCodel(queue) => queue.enqueue(now, packet, sink),
            Self::Ramp(queue) => queue.enqueue(now, packet, sink),
        }
    }
    #[inline]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        match self {
            Self::Buffered(queue) => queue.dequeue(now, sink),
            Self::Choke(queue) => queue.dequeue(now, sink),
            Self::FqCodel(queue) => queue.dequeue(now, sink),
            Self::Ramp(queue) => queue.dequeue(now, sink),
        }
    }
    fn is_transparent(&self) -> bool {
        match self {
            Self::Buffered(queue) => Queue::<P>::is_transparent(queue),
            Self::Choke(_) | Self::FqCodel(_) | Self::Ramp(_) => false,
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        match self {
            Self::Buffered(_) | Self::Choke(_) | Self::FqCodel(_) => None,
            Self::Ramp(queue) => queue.next_wakeup(),
        }
    }
    fn backlog(&self) -> Backlog {
        match self {
            Self::Buffered(queue) => queue.backlog(),
            Self::Choke(queue) => queue.backlog(),
            Self::FqCodel(queue) => queue.backlog(),
            Self::Ramp(queue) => queue.backlog(),
        }
    }
}

impl<P: Packet> Queue<P> for Discipline<P> {
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        match self {
            Self::Plain(queue) => queue.enqueue(now, packet, sink),
            Self::Shaped(queue) => queue.enqueue(now, packet, sink),
        }
    }
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        match self {
            Self::Plain(queue) => queue.dequeue(now, sink),
            Self::Shaped(queue) => queue.dequeue(now, sink),
        }
    }
    fn is_transparent(&self) -> bool {
        match self {
            Self::Plain(queue) => queue.is_transparent(),
            Self::Shaped(_) => false,
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        match self {
            Self::Plain(queue) => queue.next_wakeup(),
            Self::Shaped(queue) => queue.next_wakeup(),
        }
    }
    fn backlog(&self) -> Backlog {
        match self {
            Self::Plain(queue) => queue.backlog(),
            Self::Shaped(queue) => queue.backlog(),
        }
    }
}
