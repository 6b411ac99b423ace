//! Every discipline of this crate, one row for each: the schedulers, the buffer policies, and the systems
//! that are both in one.
//!
//! A new discipline is a file, its `mod` line and a row here.

use alloc::boxed::Box;

use super::classes::{Classes, FIFO};
use super::classful::{ClassScheduler, Classful, Disciplines, Fifos};
use super::discipline::Discipline;
use super::{
    LinkContext, afq, aifo, cake, cebinae, choke, custom, dualpi2, fq, fq_codel, fq_pie, hfsc, htb, isolate,
    packs, ppv, prio, ramp, rifo, sffc_fronted, sfq, sp_pifo, vdq_csaqm,
};
use crate::aqm::{
    BufferPolicy, ahab, bred, cobalt, codel, csfq, fred, hcsfq, head, longest_queue, pfd, pie, pvpie,
    random_drop, red, rio, sffc, sred, tail, tred,
};
use crate::buffer::Buffer;
use crate::control::token_bucket::{self, TokenBucketParams};
use crate::limit::BufferSize;
use crate::packet::{Packet, SimplePacket};
use crate::param::{Entry, EntryArgs, Known, NoParams, Shares};
use crate::schedule::l4s_first::L4sFirst;
use crate::schedule::{
    boxed, confucius, drr, fifo, rcs, round_robin, scfq, start_time_fq, turns, wf2q_plus, wfq,
};
use crate::units::Rate;

// The default policy of schedulers that divide the link is longest queue drop: with tail drop one greedy flow
// would fill the shared buffer and keep the others from their turns.
family! {
    $ scheduler
    /// Parameters of any scheduler.
    params SchedulerParams;
    /// The schedulers. A policy alone stands in front of the first one.
    table SCHEDULERS;

    Fifo(NoParams), [fifo::ENTRY => tail::ENTRY],
        |_params, _link| fifo::Fifo::new();
    Drr(drr::DrrParams), [drr::ENTRY => longest_queue::ENTRY],
        |params, link| drr::Drr::new(params, link.smallest_weight());
    RoundRobin(NoParams), [round_robin::ENTRY => longest_queue::ENTRY],
        |_params, link| boxed(round_robin::RoundRobin::new(link.smallest_weight()));
    StartTimeFq(NoParams), [start_time_fq::ENTRY => longest_queue::ENTRY],
        |_params, link| start_time_fq::StartTimeFq::new(link.smallest_weight());
    Scfq(NoParams), [scfq::ENTRY => longest_queue::ENTRY],
        |_params, link| boxed(scfq::Scfq::new(link.smallest_weight()));
    Wf2qPlus(NoParams), [wf2q_plus::ENTRY => longest_queue::ENTRY],
        |_params, link| wf2q_plus::Wf2qPlus::new(link.smallest_weight());
    Wfq(NoParams), [wfq::WFQ => longest_queue::ENTRY],
        |_params, link| boxed(wfq::Wfq::new(wfq::Eligible::All, link.smallest_weight(), link.link_rate));
    Wf2q(NoParams), [wfq::WF2Q => longest_queue::ENTRY],
        |_params, link| boxed(wfq::Wfq::new(wfq::Eligible::Begun, link.smallest_weight(), link.link_rate));
    Confucius(confucius::ConfuciusParams), [confucius::ENTRY => longest_queue::ENTRY],
        |params, _link| boxed(confucius::Confucius::new(params));
    Rcs(rcs::RcsParams), [rcs::ENTRY => longest_queue::ENTRY],
        |params, link| boxed(rcs::Rcs::new(params, &link.rights, link.smallest_weight()));
}

family! {
    $ policy
    /// Parameters of any buffer policy.
    params PolicyParams;
    /// The buffer policies.
    table POLICIES;

    Tail(tail::TailDropParams), [tail::ENTRY],
        |params, link| tail::TailDrop::new(params, link.link_rate);
    Head(head::HeadDropParams), [head::ENTRY],
        |params, link| head::HeadDrop::new(params, link.link_rate);
    LongestQueue(longest_queue::LongestQueueDropParams), [longest_queue::ENTRY],
        |params, link| longest_queue::LongestQueueDrop::new(params, link.link_rate, link.rtts, link.stream());
    RandomDrop(random_drop::RandomDropParams), [random_drop::ENTRY],
        |params, link| random_drop::RandomDrop::new(params, link.link_rate, link.rtts, link.stream());
    Pfd(pfd::PfdParams), [pfd::ENTRY],
        |params, link| pfd::Pfd::new(params, link.link_rate, link.rtts, link.stream());
    Red(red::RedParams), [red::ENTRY],
        |params, link| red::Red::new(params, link.link_rate, link.stream());
    Rio(rio::RioParams), [rio::ENTRY],
        |params, link| rio::Rio::new(params, link.link_rate, link.stream());
    Fred(fred::FredParams), [fred::ENTRY],
        |params, link| fred::Fred::new(params, link.link_rate, link.stream());
    Sred(sred::SredParams), [sred::ENTRY],
        |params, link| sred::Sred::new(params, link.link_rate, link.stream());
    Bred(bred::BredParams), [bred::ENTRY],
        |params, link| bred::Bred::new(params, link.link_rate, link.stream());
    Tred(tred::TredParams), [tred::ENTRY],
        |params, link| tred::Tred::new(params, link.link_rate, link.stream());
    Csfq(csfq::CsfqParams), [csfq::CSFQ, csfq::MCSFQ],
        |params, link| of_csfq(params, link);
    Hcsfq(hcsfq::HcsfqParams), [hcsfq::ENTRY],
        |params, link| of_hcsfq(params, link);
    Ahab(ahab::AhabParams), [ahab::ENTRY],
        |params, link| ahab::Ahab::new(params, link.link_rate, &link.customers, link.stream());
    Sffc(sffc::SffcParams), [sffc::SFFC, sffc::NBQ],
        |params, link| sffc::Sffc::new(params, link.link_rate, link.stream(), link.stream_for("trials"));
    Codel(codel::CodelParams), [codel::ENTRY],
        |params, link| codel::Codel::new(params.limit, &params.control, link.link_rate, link.stream());
    Pie(pie::PieParams), [pie::ENTRY],
        |params, link| pie::Pie::new(params.limit, &params.control, link.link_rate, link.stream());
    PvPie(pvpie::PvPieParams), [pvpie::ENTRY],
        |params, link| pvpie::PvPie::new(params, link.link_rate, link.stream());
    Cobalt(cobalt::CobaltParams), [cobalt::ENTRY],
        |params, link| cobalt::Cobalt::new(params.limit, &params.control, link.link_rate, link.stream());
}

family! {
    $ discipline
    /// Parameters of [`BoxedDiscipline`].
    params DisciplineKind;
    /// The systems that are scheduler and policy in one.
    table SYSTEMS;

    Buffered(BufferParams), [],
        |params, link| params.build(link);
    Choke(choke::ChokeParams), [choke::ENTRY],
        |params, link| Box::new(choke::Choke::new(params, link.link_rate, link.stream()));
    Cake(cake::CakeParams), [cake::ENTRY],
        |params, link| Box::new(cake::Cake::new(params, link));
    Fq(fq::FqParams), [fq::ENTRY],
        |params, link| Box::new(fq::Fq::new(params, link.link_rate, link.smallest_weight(), link.stream()));
    FqCodel(fq_codel::FqCodelParams), [fq_codel::ENTRY],
        |params, link| Box::new(fq_codel::FqCodel::new(&params.queues, &params.control, link.link_rate, link.smallest_weight(), link.stream()));
    FqPie(fq_pie::FqPieParams), [fq_pie::ENTRY],
        |params, link| Box::new(fq_pie::FqPie::new(&params.queues, &params.control, link.link_rate, link.smallest_weight(), link.stream()));
    DualPi2(dualpi2::DualPi2Params), [dualpi2::ENTRY],
        |params, link| Box::new(dualpi2::DualPi2::new(params, link.link_rate));
    Afq(afq::AfqParams), [afq::ENTRY],
        |params, link| Box::new(afq::Afq::new(params, link.link_rate, link.smallest_weight(), link.stream()));
    SpPifo(sp_pifo::SpPifoParams), [sp_pifo::ENTRY],
        |params, link| Box::new(sp_pifo::SpPifo::new(params, link.link_rate, link.smallest_weight()));
    Aifo(aifo::AifoParams), [aifo::ENTRY],
        |params, link| Box::new(aifo::Aifo::new(params, link.link_rate, link.smallest_weight()));
    Packs(packs::PacksParams), [packs::ENTRY],
        |params, link| Box::new(packs::Packs::new(params, link.link_rate, link.smallest_weight()));
    Rifo(rifo::RifoParams), [rifo::ENTRY],
        |params, link| Box::new(rifo::Rifo::new(params, link.link_rate, link.smallest_weight()));
    Ppv(ppv::PpvParams), [ppv::ENTRY],
        |params, link| Box::new(ppv::Ppv::new(params, link.link_rate, link.stream()));
    VdqCsaqm(vdq_csaqm::VdqCsaqmParams), [vdq_csaqm::ENTRY],
        |params, link| Box::new(vdq_csaqm::VdqCsaqm::new(params, link.link_rate, link.stream()));
    Cebinae(cebinae::CebinaeParams), [cebinae::ENTRY],
        |params, link| Box::new(cebinae::Cebinae::new(params, link.link_rate, link.stream()));
    Sfq(sfq::SfqParams), [sfq::ENTRY],
        |params, link| Box::new(sfq::Sfq::new(params, link.link_rate, link.stream()));
    Prio(prio::PrioParams), [prio::ENTRY],
        |params, link| {
            let scheduler = prio::ByPriority::new(&params.class);
            of_classes(&params.class, params.limit, params.discipline, scheduler, |_| link.link_rate, link)
        };
    Htb(htb::HtbParams), [htb::ENTRY],
        |params, link| {
            let scheduler = htb::TokenBuckets::new(&params.class);
            of_classes(&params.class, params.limit, params.discipline, scheduler, |class| class.ceil, link)
        };
    Hfsc(hfsc::HfscParams), [hfsc::ENTRY],
        |params, link| {
            let queues = Fifos::new(&params.class, params.limit, link);
            Box::new(Classful::new(&params.class, queues, hfsc::ServiceCurves::new(&params.class), link))
        };
    Ramp(ramp::RampParams), [ramp::ENTRY],
        |params, link| Box::new(ramp::Ramp::new(params, link.link_rate, of_greedy(params, link)));
    SffcFronted(sffc_fronted::SffcFrontedParams), [],
        |params, link| Box::new(sffc_fronted::SffcFronted::new(params, link));
    Custom(custom::CustomParams), [],
        |params, link| Box::new(custom::Custom::new(params, link));
    Isolated(isolate::IsolatedParams), [],
        |params, link| Box::new(isolate::Isolated::new(params, link));
}

/// The shapers.
pub static SHAPERS: &[Known<TokenBucketParams>] =
    &[Known { entry: &token_bucket::ENTRY, read: TokenBucketParams::from_args, default_policy: None }];

/// Parameters of a scheduler with a buffer policy.
#[derive(Clone, Debug, PartialEq)]
pub struct BufferParams {
    /// The scheduler.
    pub schedule: SchedulerParams,
    /// The buffer policy.
    pub drop: PolicyParams,
}

/// Any discipline without a shaper.
pub type BoxedDiscipline<P> = Box<dyn Discipline<P> + Send>;

impl DisciplineKind {
    /// The catalogue entries; a buffer has those of its scheduler and its policy. Inner disciplines have
    /// their own.
    pub(super) fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        let of = match self {
            Self::Buffered(buffer) => [buffer.schedule.entry(), buffer.drop.entry()],
            Self::SffcFronted(_) => [Some(&sffc::SFFC), None],
            Self::Custom(custom) => [Some(custom.entry()), None],
            Self::Isolated(_) => [Some(&isolate::ENTRY), None],
            system => [system.entry(), None],
        };
        of.into_iter().flatten()
    }

    /// How the discipline treats the shares of flows.
    pub(super) fn shares(&self) -> Shares {
        match self {
            Self::Buffered(BufferParams { schedule, drop }) => {
                let [scheduler, policy] = [schedule.entry(), drop.entry()]
                    .map(|entry| entry.map_or(Shares::Ignored, |entry| entry.traits.shares));
                if policy == Shares::Kept { scheduler } else { policy }
            }
            Self::SffcFronted(fronted) => fronted.discipline.shares(),
            Self::Isolated(isolated) => isolated.kind.shares(),
            // The behaviour of an external discipline is unknown.
            Self::Custom(_) => Shares::Given,
            system => system.entry().map_or(Shares::Ignored, |entry| entry.traits.shares),
        }
    }

    /// An empty discipline for this link.
    pub(super) fn build<P: Packet>(&self, link: &LinkContext<'_>) -> BoxedDiscipline<P> {
        discipline!(self, link, system => system)
    }

    /// Builds the discipline for erased packets. This function is neither generic nor inlined, so it is
    /// compiled once, in this crate, and not in each crate with a packet type of its own.
    #[inline(never)]
    pub(super) fn build_simple(&self, link: &LinkContext<'_>) -> BoxedDiscipline<SimplePacket> {
        self.build(link)
    }

    /// The discipline called `name` with its defaults; none if it has no defaults.
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

impl BufferParams {
    /// An empty buffer. Each pair has its own type, so that a packet costs one virtual call.
    fn build<P: Packet>(&self, link: &LinkContext<'_>) -> BoxedDiscipline<P> {
        match (&self.schedule, &self.drop) {
            (SchedulerParams::Fifo(_), PolicyParams::Csfq(params)) => {
                of_labels(params.takes_turns(), params.marks_l4s(), link, of_csfq(params, link))
            }
            (SchedulerParams::Fifo(_), PolicyParams::Hcsfq(params)) => {
                of_labels(params.takes_turns(), params.marks_l4s(), link, of_hcsfq(params, link))
            }
            _ => scheduler!(&self.schedule, link, scheduler => {
                policy!(&self.drop, link, policy => Box::new(Buffer::new(scheduler, policy)))
            }),
        }
    }
}

/// CSFQ for this link.
fn of_csfq(params: &csfq::CsfqParams, link: &LinkContext<'_>) -> csfq::Csfq {
    csfq::Csfq::new(params, link.link_rate, link.stream(), link.stream_for("marking")).with_rtts(link.rtts)
}

/// HCSFQ for this link.
fn of_hcsfq(params: &hcsfq::HcsfqParams, link: &LinkContext<'_>) -> hcsfq::Hcsfq {
    let streams = [link.stream(), link.stream_for("root"), link.stream_for("marking")];
    hcsfq::Hcsfq::new(params, link.link_rate, &link.customers, streams).with_rtts(link.rtts)
}

/// A policy by labels, with `turns` for flows that enter the network here and a queue for L4S packets before all others.
fn of_labels<P: Packet>(
    turns: bool,
    l4s: bool,
    link: &LinkContext<'_>,
    policy: impl BufferPolicy<P> + Send + 'static,
) -> BoxedDiscipline<P> {
    let by_flow = || turns::Turns::new(link.smallest_weight());
    match (turns, l4s) {
        (true, true) => Box::new(Buffer::new(L4sFirst::new(by_flow()), policy)),
        (true, false) => Box::new(Buffer::new(boxed(by_flow()), policy)),
        (false, true) => Box::new(Buffer::new(L4sFirst::new(fifo::Fifo::new()), policy)),
        (false, false) => Box::new(Buffer::new(fifo::Fifo::new(), policy)),
    }
}

/// The discipline for the greedy flows of a RAMP; none if they share one queue.
fn of_greedy<P: Packet>(params: &ramp::RampParams, link: &LinkContext<'_>) -> Option<BoxedDiscipline<P>> {
    let is_divided = params.greedy != "fifo";
    let mut discipline = DisciplineKind::of_name(params.greedy).filter(|_| is_divided)?.build(link);
    if let Some(limit) = params.greedy_limit(params.limit.at(link.link_rate)) {
        discipline.set_limit(limit);
    }
    Some(discipline)
}

/// A classful discipline over FIFO queues, or over the discipline `name`, which gets at most `ceiling` in a
/// class.
fn of_classes<T, S: ClassScheduler + Send + 'static, P: Packet>(
    classes: &Classes<T>,
    limit: Option<BufferSize>,
    name: &str,
    scheduler: S,
    ceiling: impl Fn(&T) -> Rate,
    link: &LinkContext<'_>,
) -> BoxedDiscipline<P> {
    match DisciplineKind::of_name(name).filter(|_| name != FIFO) {
        None => Box::new(Classful::new(classes, Fifos::new(classes, limit, link), scheduler, link)),
        Some(within) => {
            let queues = Disciplines::new(classes, limit, link, ceiling, |link| within.build_simple(link));
            Box::new(Classful::new(classes, queues, scheduler, link))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::param::Inside;
    use crate::queue::Queue as _;
    use crate::system::catalog::{Catalog, Selection};
    use crate::system::ramp::RampParams;
    use crate::testing::{Log, packet};
    use crate::units::{Rate, Time};

    fn ramp(greedy: &str) -> RampParams {
        let mut selection = Selection::new("ramp", None, None).unwrap();
        selection.set("greedy", greedy).unwrap();
        selection.set("limit", "7p").unwrap();
        RampParams::from_args(&selection.kind_args()).unwrap()
    }

    #[test]
    fn what_divides_among_greedy_flows_of_ramp_has_its_size() {
        let link = LinkContext::new(Rate::from_mbit(10), 1, "link");
        for name in Catalog::inside(Inside::Part).map(|entry| entry.name) {
            let discipline: Option<BoxedDiscipline<SimplePacket>> = of_greedy(&ramp(name), &link);
            let Some(mut discipline) = discipline else {
                assert_eq!(name, "fifo");
                continue;
            };
            let mut log = Log::default();
            (0..20).for_each(|id| discipline.enqueue(Time::ZERO, packet(id, id % 2, 1_000), &mut log));
            assert!(
                (1..=7).contains(&discipline.backlog().packets.get()),
                "{name}: {:?}",
                discipline.backlog()
            );
        }
    }
}
