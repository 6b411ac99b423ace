//! Every discipline of this crate, one row for each: the schedulers, the buffer policies, and the systems that are
//! both at once.
//!
//! A new discipline is a file, its `mod` line and a row here.

use super::contract::System;
use super::{
    LinkContext, afq, aifo, choke, custom, dualpi2, fq_codel, fq_pie, guarded, isolate, ramp, sp_pifo,
    stochastic_fq,
};
use crate::aqm::{Admission, BufferPolicy, Victim};
use crate::aqm::{
    bred, codel, csfq, fred, hcsfq, head, longest_queue, pfd, pie, random_queue, red, rio, sffc, sred, tail,
    tred,
};
use crate::buffer::Buffer;
use crate::control::token_bucket::{self, TokenBucketParams};
use crate::limit::Limit;
use crate::mutant::Mutant;
use crate::packet::{CustomerId, FillTarget, FlowClass, FlowId, HostPair, Packet};
use crate::param::{EntryArgs, Known, NoParams};
use crate::queue::{Backlog, Queue, Sink};
use crate::schedule::{End, Queued, Scheduler};
use crate::schedule::{drr, fifo, round_robin, scfq, start_time_fq, wf2q_plus};
use crate::units::{Rate, Span, Time, Weight};

// Schedulers that divide the link have longest queue drop as their policy: tail drop would let one greedy flow
// fill the shared buffer and keep the others from their turns.
family! {
    $ scheduler
    /// Parameters of any scheduler.
    params SchedulerParams;
    /// Any scheduler.
    any AnyScheduler<P>;
    /// The schedulers. A policy alone stands in front of the first one.
    table SCHEDULERS;
    context &LinkContext<'_>;

    Fifo(fifo::Fifo<P>, NoParams), [fifo::ENTRY => tail::ENTRY],
        |_params, _link| fifo::Fifo::new(),
        same |_scheduler, _params| true;
    Drr(drr::Drr<P>, drr::DrrParams), [drr::ENTRY => longest_queue::ENTRY],
        |params, link| drr::Drr::new(params, link.smallest_weight()),
        same |_scheduler, _params| true;
    RoundRobin(round_robin::RoundRobin<P>, NoParams), [round_robin::ENTRY => longest_queue::ENTRY],
        |_params, link| round_robin::RoundRobin::new(link.smallest_weight()),
        same |_scheduler, _params| true;
    StartTimeFq(start_time_fq::StartTimeFq<P>, NoParams), [start_time_fq::ENTRY => longest_queue::ENTRY],
        |_params, link| start_time_fq::StartTimeFq::new(link.smallest_weight()),
        same |_scheduler, _params| true;
    Scfq(scfq::Scfq<P>, NoParams), [scfq::ENTRY => longest_queue::ENTRY],
        |_params, link| scfq::Scfq::new(link.smallest_weight()),
        same |_scheduler, _params| true;
    Wf2qPlus(wf2q_plus::Wf2qPlus<P>, NoParams), [wf2q_plus::ENTRY => longest_queue::ENTRY],
        |_params, link| wf2q_plus::Wf2qPlus::new(link.smallest_weight()),
        same |_scheduler, _params| true;
}

family! {
    $ policy
    /// Parameters of any buffer policy.
    params PolicyParams;
    /// Any buffer policy.
    any AnyPolicy;
    /// The buffer policies.
    table POLICIES;
    context &LinkContext<'_>;

    Tail(tail::TailDrop, tail::TailDropParams), [tail::ENTRY],
        |params, link| tail::TailDrop::new(params, link.link_rate);
    Head(head::HeadDrop, head::HeadDropParams), [head::ENTRY],
        |params, link| head::HeadDrop::new(params, link.link_rate);
    LongestQueue(longest_queue::LongestQueueDrop, longest_queue::LongestQueueDropParams), [longest_queue::ENTRY],
        |params, link| longest_queue::LongestQueueDrop::new(params, link.link_rate, link.rtts),
        same |_policy, _params| true;
    RandomQueue(random_queue::RandomQueueDrop, random_queue::RandomQueueDropParams), [random_queue::ENTRY],
        |params, link| random_queue::RandomQueueDrop::new(params, link.link_rate, link.rtts, link.stream()),
        same |_policy, _params| true;
    Pfd(pfd::Pfd, pfd::PfdParams), [pfd::ENTRY],
        |params, link| pfd::Pfd::new(params, link.link_rate, link.rtts, link.stream()),
        same |_policy, _params| true;
    Red(red::Red, red::RedParams), [red::ENTRY],
        |params, link| red::Red::new(params, link.link_rate, link.stream());
    Rio(rio::Rio, rio::RioParams), [rio::ENTRY],
        |params, link| rio::Rio::new(params, link.link_rate, link.stream());
    Fred(fred::Fred, fred::FredParams), [fred::ENTRY],
        |params, link| fred::Fred::new(params, link.link_rate, link.stream());
    Sred(sred::Sred, sred::SredParams), [sred::ENTRY],
        |params, link| sred::Sred::new(params, link.link_rate, link.stream());
    Bred(bred::Bred, bred::BredParams), [bred::ENTRY],
        |params, link| bred::Bred::new(params, link.link_rate, link.stream());
    Tred(tred::Tred, tred::TredParams), [tred::ENTRY],
        |params, link| tred::Tred::new(params, link.link_rate, link.stream());
    Csfq(csfq::Csfq, csfq::CsfqParams), [csfq::CSFQ, csfq::MCSFQ],
        |params, link| csfq::Csfq::new(params, link.link_rate, link.stream(), link.stream_for("marking")),
        same |_policy, _params| true;
    Hcsfq(hcsfq::Hcsfq, hcsfq::HcsfqParams), [hcsfq::ENTRY],
        |params, link| {
            let streams = [link.stream(), link.stream_for("root"), link.stream_for("marking")];
            hcsfq::Hcsfq::new(params, link.link_rate, &link.customers, streams)
        },
        same |_policy, _params| true;
    Sffc(sffc::Sffc, sffc::SffcParams), [sffc::SFFC, sffc::NBQ],
        |params, link| sffc::Sffc::new(params, link.link_rate, link.stream(), link.stream_for("trials"));
    Codel(codel::Codel, codel::CodelParams), [codel::ENTRY],
        |params, link| codel::Codel::new(params, link.link_rate);
    Pie(pie::Pie, pie::PieParams), [pie::ENTRY],
        |params, link| pie::Pie::new(params, link.link_rate, link.stream());
}

family! {
    $ core
    /// Parameters of [`Core`].
    params CoreParams;
    /// Any discipline without a shaper.
    any Core<P>;
    /// The systems that are scheduler and policy at once.
    table SYSTEMS;
    context &LinkContext<'_>;

    Buffered(Buffer<AnyScheduler<P>, AnyPolicy>, BufferParams), [],
        |params, link| Buffer::new(AnyScheduler::new(&params.schedule, link), AnyPolicy::new(&params.drop, link)),
        same |buffer, params| {
            buffer.scheduler().has_params(&params.schedule) && buffer.policy().has_params(&params.drop)
        };
    Choke(choke::Choke<P>, choke::ChokeParams), [choke::ENTRY],
        |params, link| choke::Choke::new(params, link.link_rate, link.stream());
    FqCodel(fq_codel::FqCodel<P>, fq_codel::FqCodelParams), [fq_codel::ENTRY],
        |params, link| fq_codel::FqCodel::new(params, link.link_rate, link.smallest_weight(), link.stream());
    FqPie(fq_pie::FqPie<P>, fq_pie::FqPieParams), [fq_pie::ENTRY],
        |params, link| fq_pie::FqPie::new(params, link.link_rate, link.smallest_weight(), link.stream());
    DualPi2(dualpi2::DualPi2<P>, dualpi2::DualPi2Params), [dualpi2::ENTRY],
        |params, link| dualpi2::DualPi2::new(params, link.link_rate);
    Afq(afq::Afq<P>, afq::AfqParams), [afq::ENTRY],
        |params, link| afq::Afq::new(params, link.link_rate, link.smallest_weight(), link.stream());
    SpPifo(sp_pifo::SpPifo<P>, sp_pifo::SpPifoParams), [sp_pifo::ENTRY],
        |params, link| sp_pifo::SpPifo::new(params, link.link_rate, link.smallest_weight());
    Aifo(aifo::Aifo<P>, aifo::AifoParams), [aifo::ENTRY],
        |params, link| aifo::Aifo::new(params, link.link_rate, link.smallest_weight());
    StochasticFq(stochastic_fq::StochasticFq<P>, stochastic_fq::StochasticFqParams), [stochastic_fq::ENTRY],
        |params, link| stochastic_fq::StochasticFq::new(params, link.link_rate, link.stream());
    Ramp(ramp::Ramp<P, Core<P>>, ramp::RampParams), [ramp::ENTRY],
        |params, link| ramp::Ramp::new(params, link.link_rate, Core::of_greedy(params, link));
    Guarded(guarded::Guarded<P>, guarded::GuardedParams), [],
        |params, link| guarded::Guarded::new(params, link),
        same |guarded, params| guarded.has_params(params);
    Custom(custom::Custom<P>, custom::CustomParams), [],
        |params, link| custom::Custom::new(params, link);
    Isolated(isolate::Isolated<P>, isolate::IsolatedParams), [],
        |params, link| isolate::Isolated::new(params, link),
        same |isolated, params| isolated.has_params(params);
}

/// The shapers.
pub static SHAPERS: &[Known<TokenBucketParams>] =
    &[Known { entry: &token_bucket::ENTRY, read: TokenBucketParams::from_args, default_policy: None }];

/// Parameters of a scheduler with a buffer policy.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferParams {
    /// The scheduler: who is served next.
    pub schedule: SchedulerParams,
    /// The buffer policy: who is dropped.
    pub drop: PolicyParams,
}

impl CoreParams {
    /// The defaults of a discipline, by its name; none if it has no defaults.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        fn find<T>(table: &'static [Known<T>], name: &str) -> Option<&'static Known<T>> {
            table.iter().find(|known| known.entry.name == name)
        }
        fn read<T>(known: &Known<T>) -> Option<T> {
            (known.read)(&EntryArgs::defaults(known.entry)).ok()
        }
        if let Some(system) = find(SYSTEMS, name) {
            return read(system);
        }
        let (scheduler, policy) = match find(SCHEDULERS, name) {
            Some(scheduler) => (scheduler, scheduler.default_policy?.name),
            None => (SCHEDULERS.first()?, name),
        };
        let drop = read(find(POLICIES, policy)?)?;
        Some(Self::Buffered(BufferParams { schedule: read(scheduler)?, drop }))
    }
}

impl<P: Packet> Core<P> {
    /// What divides among the greedy flows of a RAMP; none if they share its own queue.
    fn of_greedy(params: &ramp::RampParams, link: &LinkContext<'_>) -> Option<Self> {
        let is_divided = params.greedy != "fifo" && !Mutant::RampGreedyFifo.is_on();
        let own = CoreParams::of_name(params.greedy).filter(|_| is_divided)?;
        let mut core = Self::new(&own, link);
        if let Some(limit) = params.greedy_limit() {
            core.set_limit(limit);
        }
        Some(core)
    }

    /// How a discipline from outside broke its contract, if it did.
    pub(super) fn fault(&self) -> Option<&custom::Fault> {
        match self {
            Self::Custom(custom) => custom.fault(),
            Self::Isolated(isolated) => isolated.inner().fault(),
            _ => None,
        }
    }
}

impl AnyPolicy {
    /// Its part in exchanging reports, if it has one.
    pub(super) fn reporter(&self) -> Option<&sffc::Sffc> {
        match self {
            Self::Sffc(sffc) if sffc.exchanges_reports() => Some(sffc),
            _ => None,
        }
    }
    /// Its part in exchanging reports, if it has one.
    pub(super) fn reporter_mut(&mut self) -> Option<&mut sffc::Sffc> {
        match self {
            Self::Sffc(sffc) if sffc.exchanges_reports() => Some(sffc),
            _ => None,
        }
    }
}

// Always inlined: a packet that is handed up through calls by way of memory costs more than FIFO does, about
// 10 ns.
impl<P: Packet> Scheduler<P> for AnyScheduler<P> {
    #[inline(always)]
    fn push(&mut self, now: Time, packet: P) {
        scheduler!(self, it => it.push(now, packet));
    }
    #[inline(always)]
    fn pop(&mut self, now: Time) -> Option<Queued<P>> {
        scheduler!(self, it => it.pop(now))
    }
    fn push_out(&mut self, now: Time, flow: FlowId, end: End) -> Option<Queued<P>> {
        scheduler!(self, it => it.push_out(now, flow, end))
    }
    #[inline]
    fn next_flow(&self) -> Option<FlowId> {
        scheduler!(self, it => it.next_flow())
    }
    #[inline(always)]
    fn is_transparent(&self) -> bool {
        scheduler!(self, it => Scheduler::<P>::is_transparent(it))
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        scheduler!(self, it => it.backlog())
    }
    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        scheduler!(self, it => it.set_weight(flow, weight))
    }
}

impl<P: Packet> BufferPolicy<P> for AnyPolicy {
    #[inline(always)]
    fn admit(&mut self, now: Time, packet: &mut P, backlog: Backlog) -> Admission {
        policy!(self, it => it.admit(now, packet, backlog))
    }
    #[inline(always)]
    fn victim<S: Scheduler<P>>(&mut self, now: Time, scheduler: &S) -> Option<Victim> {
        policy!(self, it => it.victim(now, scheduler))
    }
    fn pushed_out(&mut self, packet: &P) {
        policy!(self, it => it.pushed_out(packet));
    }
    fn taken_out(&mut self, packet: &P) {
        policy!(self, it => it.taken_out(packet));
    }
    #[inline(always)]
    fn dequeue<S: Scheduler<P>>(
        &mut self,
        now: Time,
        scheduler: &mut S,
        sink: &mut dyn Sink<P>,
    ) -> Option<Queued<P>> {
        policy!(self, it => it.dequeue(now, scheduler, sink))
    }
    fn is_transparent(&self) -> bool {
        policy!(self, it => BufferPolicy::<P>::is_transparent(it))
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        policy!(self, it => BufferPolicy::<P>::statistics(it, show));
    }
    fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        policy!(self, it => BufferPolicy::<P>::flow_statistics(it, show));
    }
    fn limit(&self) -> Option<Limit> {
        policy!(self, it => BufferPolicy::<P>::limit(it))
    }
    fn set_limit(&mut self, limit: Limit) {
        policy!(self, it => BufferPolicy::<P>::set_limit(it, limit));
    }
    fn set_link_rate(&mut self, rate: Rate) {
        policy!(self, it => BufferPolicy::<P>::set_link_rate(it, rate));
    }
    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        policy!(self, it => BufferPolicy::<P>::set_weight(it, flow, weight))
    }
    fn set_rtt(&mut self, flow: FlowId, rtt: Span) -> bool {
        policy!(self, it => BufferPolicy::<P>::set_rtt(it, flow, rtt))
    }
    fn set_customer(&mut self, flow: FlowId, customer: CustomerId) -> bool {
        policy!(self, it => BufferPolicy::<P>::set_customer(it, flow, customer))
    }
    fn set_guarantee(&mut self, flow: FlowId, guarantee: Rate, rtt: Span) -> bool {
        policy!(self, it => BufferPolicy::<P>::set_guarantee(it, flow, guarantee, rtt))
    }
}

impl<P: Packet> Core<P> {
    #[inline(never)]
    fn enqueue_system(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        core!(self, it => it.enqueue(now, packet, sink));
    }
    #[inline(never)]
    fn dequeue_system(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        core!(self, it => it.dequeue(now, sink))
    }
}

// A buffer first, and alone: a function that holds the calls for the large systems as well saves all registers.
impl<P: Packet> Queue<P> for Core<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Time, packet: P, sink: &mut dyn Sink<P>) {
        match self {
            Self::Buffered(buffer) => buffer.enqueue(now, packet, sink),
            _ => self.enqueue_system(now, packet, sink),
        }
    }
    #[inline(always)]
    fn dequeue(&mut self, now: Time, sink: &mut dyn Sink<P>) -> Option<P> {
        match self {
            Self::Buffered(buffer) => buffer.dequeue(now, sink),
            _ => self.dequeue_system(now, sink),
        }
    }
    fn is_transparent(&self) -> bool {
        core!(self, it => Queue::<P>::is_transparent(it))
    }
    fn next_wakeup(&self) -> Option<Time> {
        core!(self, it => Queue::<P>::next_wakeup(it))
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        core!(self, it => it.backlog())
    }
}

impl<P: Packet> System<P> for Core<P> {
    fn drain(&mut self, now: Time) -> Option<P> {
        core!(self, it => it.drain(now))
    }
    fn take(&mut self, now: Time, flow: FlowId) -> Option<P> {
        core!(self, it => it.take(now, flow))
    }
    fn limit(&self) -> Option<Limit> {
        core!(self, it => System::<P>::limit(it))
    }
    fn set_limit(&mut self, limit: Limit) {
        core!(self, it => it.set_limit(limit));
    }
    fn set_link_rate(&mut self, rate: Rate) {
        core!(self, it => it.set_link_rate(rate));
    }
    fn set_weight(&mut self, flow: FlowId, weight: Weight) -> bool {
        core!(self, it => it.set_weight(flow, weight))
    }
    fn set_rtt(&mut self, flow: FlowId, rtt: Span) -> bool {
        core!(self, it => it.set_rtt(flow, rtt))
    }
    fn set_customer(&mut self, flow: FlowId, customer: CustomerId) -> bool {
        core!(self, it => it.set_customer(flow, customer))
    }
    fn set_guarantee(&mut self, flow: FlowId, guarantee: Rate, rtt: Span) -> bool {
        core!(self, it => it.set_guarantee(flow, guarantee, rtt))
    }
    fn set_class(&mut self, flow: FlowId, class: FlowClass) -> bool {
        core!(self, it => it.set_class(flow, class))
    }
    fn set_target(&mut self, flow: FlowId, target: Option<FillTarget>) -> bool {
        core!(self, it => it.set_target(flow, target))
    }
    fn set_hosts(&mut self, flow: FlowId, hosts: HostPair) -> bool {
        core!(self, it => it.set_hosts(flow, hosts))
    }
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        core!(self, it => it.statistics(show));
    }
    fn flow_statistics(&self, show: &mut dyn FnMut(FlowId, &'static str, f64)) {
        core!(self, it => it.flow_statistics(show));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::SimplePacket;
    use crate::system::catalog::Selection;
    use crate::system::ramp::RampParams;
    use crate::system::ramp::params::GREEDY;
    use crate::testing::{Log, packet};

    fn ramp(greedy: &str) -> RampParams {
        let mut selection = Selection::new("ramp", None, None).unwrap();
        selection.set("greedy", greedy).unwrap();
        selection.set("limit", "7p").unwrap();
        RampParams::from_args(&selection.kind_args()).unwrap()
    }

    #[test]
    fn what_divides_among_greedy_flows_of_ramp_has_its_size() {
        let link = LinkContext::new(Rate::from_mbit(10), 1, "link");
        for &name in GREEDY {
            let core: Option<Core<SimplePacket>> = Core::of_greedy(&ramp(name), &link);
            let Some(mut core) = core else {
                assert_eq!(name, "fifo");
                continue;
            };
            let mut log = Log::default();
            (0..20).for_each(|id| core.enqueue(Time::ZERO, packet(id, id % 2, 1_000), &mut log));
            assert!((1..=7).contains(&core.backlog().packets.get()), "{name}: {:?}", core.backlog());
        }
    }
}
