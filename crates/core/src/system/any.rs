//! The schedulers and the policies as one enum each, and the tables that tie them to the catalogue.
//!
//! A new scheduler or policy is a file, a row in its table and an arm in each match below; the compiler asks
//! for the arms.

use super::choke::{self, ChokeParams};
use super::fq_codel::{self, FqCodelParams};
use super::ramp::{self, RampParams};
use super::{CoreParams, LinkContext};
use crate::aqm::bred::{self, Bred, BredParams};
use crate::aqm::codel::{self, Codel, CodelParams};
use crate::aqm::csfq::{self, Csfq, CsfqParams};
use crate::aqm::fred::{self, Fred, FredParams};
use crate::aqm::hcsfq::{self, Hcsfq, HcsfqParams};
use crate::aqm::head::{self, HeadDrop, HeadDropParams};
use crate::aqm::longest_queue::{self, LongestQueueDrop, LongestQueueDropParams};
use crate::aqm::pfd::{self, Pfd, PfdParams};
use crate::aqm::random_queue::{self, RandomQueueDrop, RandomQueueDropParams};
use crate::aqm::red::{self, Red, RedParams};
use crate::aqm::rio::{self, Rio, RioParams};
use crate::aqm::sffc::{self, Sffc, SffcParams};
use crate::aqm::sred::{self, Sred, SredParams};
use crate::aqm::tail::{self, TailDrop, TailDropParams};
use crate::aqm::tred::{self, Tred, TredParams};
use crate::aqm::{Admission, BufferPolicy, Victim};
use crate::control::token_bucket::{self, TokenBucketParams};
use crate::limit::Limit;
use crate::packet::{CustomerId, FlowId, Packet};
use crate::param::{Args, Entry, ParamError};
use crate::queue::{Backlog, Sink};
use crate::schedule::drr::{self, Drr, DrrParams};
use crate::schedule::fifo::{self, Fifo};
use crate::schedule::round_robin::{self, RoundRobin};
use crate::schedule::scfq::{self, Scfq};
use crate::schedule::start_time_fq::{self, StartTimeFq};
use crate::schedule::wf2q_plus::{self, Wf2qPlus};
use crate::schedule::{End, Queued, Scheduler};
use crate::units::{Rate, Span, Time, Weight};

/// Reads the parameters of an entry.
pub type Read<T> = fn(&Args) -> Result<T, ParamError>;

/// An entry of the catalogue and how to read its parameters.
#[derive(Debug)]
pub struct Known<T: 'static> {
    /// The entry.
    pub entry: &'static Entry,
    /// Reads its parameters.
    pub read: Read<T>,
}

/// A scheduler of the catalogue.
#[derive(Debug)]
pub struct KnownScheduler {
    /// The entry.
    pub entry: &'static Entry,
    /// Reads its parameters.
    pub read: Read<SchedulerParams>,
    /// Its policy unless a scenario names another.
    pub default_policy: &'static Entry,
}

/// The schedulers; the first is what a policy alone stands in front of.
pub static SCHEDULERS: &[KnownScheduler] = &[
    KnownScheduler { entry: &fifo::ENTRY, read: |_| Ok(SchedulerParams::Fifo), default_policy: &tail::ENTRY },
    KnownScheduler {
        entry: &drr::ENTRY,
        read: |args| DrrParams::from_args(args).map(SchedulerParams::Drr),
        // Tail drop would let one greedy flow fill the shared buffer and keep the others from their turns.
        default_policy: &longest_queue::ENTRY,
    },
    KnownScheduler {
        entry: &round_robin::ENTRY,
        read: |_| Ok(SchedulerParams::RoundRobin),
        default_policy: &longest_queue::ENTRY,
    },
    KnownScheduler {
        entry: &start_time_fq::ENTRY,
        read: |_| Ok(SchedulerParams::StartTimeFq),
        default_policy: &longest_queue::ENTRY,
    },
    KnownScheduler {
        entry: &scfq::ENTRY,
        read: |_| Ok(SchedulerParams::Scfq),
        default_policy: &longest_queue::ENTRY,
    },
    KnownScheduler {
        entry: &wf2q_plus::ENTRY,
        read: |_| Ok(SchedulerParams::Wf2qPlus),
        default_policy: &longest_queue::ENTRY,
    },
];

/// The buffer policies.
pub static POLICIES: &[Known<PolicyParams>] = &[
    Known { entry: &tail::ENTRY, read: |args| TailDropParams::from_args(args).map(PolicyParams::Tail) },
    Known { entry: &head::ENTRY, read: |args| HeadDropParams::from_args(args).map(PolicyParams::Head) },
    Known {
        entry: &longest_queue::ENTRY,
        read: |args| LongestQueueDropParams::from_args(args).map(PolicyParams::LongestQueue),
    },
    Known {
        entry: &random_queue::ENTRY,
        read: |args| RandomQueueDropParams::from_args(args).map(PolicyParams::RandomQueue),
    },
    Known { entry: &pfd::ENTRY, read: |args| PfdParams::from_args(args).map(PolicyParams::Pfd) },
    Known { entry: &red::ENTRY, read: |args| RedParams::from_args(args).map(PolicyParams::Red) },
    Known { entry: &rio::ENTRY, read: |args| RioParams::from_args(args).map(PolicyParams::Rio) },
    Known { entry: &fred::ENTRY, read: |args| FredParams::from_args(args).map(PolicyParams::Fred) },
    Known { entry: &sred::ENTRY, read: |args| SredParams::from_args(args).map(PolicyParams::Sred) },
    Known { entry: &bred::ENTRY, read: |args| BredParams::from_args(args).map(PolicyParams::Bred) },
    Known { entry: &tred::ENTRY, read: |args| TredParams::from_args(args).map(PolicyParams::Tred) },
    Known {
        entry: &csfq::CSFQ,
        read: |args| CsfqParams::from_args(args, &csfq::CSFQ).map(PolicyParams::Csfq),
    },
    Known {
        entry: &csfq::MCSFQ,
        read: |args| CsfqParams::from_args(args, &csfq::MCSFQ).map(PolicyParams::Csfq),
    },
    Known { entry: &hcsfq::ENTRY, read: |args| HcsfqParams::from_args(args).map(PolicyParams::Hcsfq) },
    Known {
        entry: &sffc::SFFC,
        read: |args| SffcParams::from_args(args, &sffc::SFFC).map(PolicyParams::Sffc),
    },
    Known { entry: &sffc::NBQ, read: |args| SffcParams::from_args(args, &sffc::NBQ).map(PolicyParams::Sffc) },
    Known { entry: &codel::ENTRY, read: |args| CodelParams::from_args(args).map(PolicyParams::Codel) },
];

/// The systems that are scheduler and policy at once.
pub static SYSTEMS: &[Known<CoreParams>] = &[
    Known { entry: &choke::ENTRY, read: |args| ChokeParams::from_args(args).map(CoreParams::Choke) },
    Known { entry: &fq_codel::ENTRY, read: |args| FqCodelParams::from_args(args).map(CoreParams::FqCodel) },
    Known { entry: &ramp::ENTRY, read: |args| RampParams::from_args(args).map(CoreParams::Ramp) },
];

/// The shapers.
pub static SHAPERS: &[Known<TokenBucketParams>] =
    &[Known { entry: &token_bucket::ENTRY, read: TokenBucketParams::from_args }];

pub(super) fn reader<T>(table: &[Known<T>], entry: &Entry) -> Option<Read<T>> {
    table.iter().find(|known| known.entry.name == entry.name).map(|known| known.read)
}

pub(super) fn scheduler(entry: &Entry) -> Option<Read<SchedulerParams>> {
    SCHEDULERS.iter().find(|known| known.entry.name == entry.name).map(|known| known.read)
}

/// Parameters of any scheduler.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the algorithm of the same name")]
pub enum SchedulerParams {
    Fifo,
    Drr(DrrParams),
    RoundRobin,
    StartTimeFq,
    Scfq,
    Wf2qPlus,
}

/// Parameters of any policy.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is the algorithm of the same name")]
pub enum PolicyParams {
    Tail(TailDropParams),
    Head(HeadDropParams),
    LongestQueue(LongestQueueDropParams),
    RandomQueue(RandomQueueDropParams),
    Pfd(PfdParams),
    Red(RedParams),
    Rio(RioParams),
    Fred(FredParams),
    Sred(SredParams),
    Bred(BredParams),
    Tred(TredParams),
    Csfq(CsfqParams),
    Hcsfq(HcsfqParams),
    Sffc(SffcParams),
    Codel(CodelParams),
}

/// Any scheduler.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant is the algorithm of the same name")]
pub enum AnyScheduler<P> {
    Fifo(Fifo<P>),
    Drr(Drr<P>),
    RoundRobin(RoundRobin<P>),
    StartTimeFq(StartTimeFq<P>),
    Scfq(Scfq<P>),
    Wf2qPlus(Wf2qPlus<P>),
}

/// Any policy.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each variant is the algorithm of the same name")]
pub enum AnyPolicy {
    Tail(TailDrop),
    Head(HeadDrop),
    LongestQueue(LongestQueueDrop),
    RandomQueue(RandomQueueDrop),
    Pfd(Pfd),
    Red(Red),
    Rio(Rio),
    Fred(Fred),
    Sred(Sred),
    Bred(Bred),
    Tred(Tred),
    Csfq(Csfq),
    Hcsfq(Hcsfq),
    Sffc(Sffc),
    Codel(Codel),
}

impl<P: Packet> AnyScheduler<P> {
    pub(super) fn new(params: &SchedulerParams, setup: &LinkContext<'_>) -> Self {
        match params {
            SchedulerParams::Fifo => Self::Fifo(Fifo::new()),
            SchedulerParams::Drr(params) => Self::Drr(Drr::new(params, setup.smallest_weight())),
            SchedulerParams::RoundRobin => Self::RoundRobin(RoundRobin::new(setup.smallest_weight())),
            SchedulerParams::StartTimeFq => Self::StartTimeFq(StartTimeFq::new(setup.smallest_weight())),
            SchedulerParams::Scfq => Self::Scfq(Scfq::new(setup.smallest_weight())),
            SchedulerParams::Wf2qPlus => Self::Wf2qPlus(Wf2qPlus::new(setup.smallest_weight())),
        }
    }
}

impl<P> AnyScheduler<P> {
    /// As [`Discipline::has_params`](super::Discipline::has_params).
    pub(super) const fn has_params(&self, params: &SchedulerParams) -> bool {
        matches!(
            (self, params),
            (Self::Fifo(_), SchedulerParams::Fifo)
                | (Self::Drr(_), SchedulerParams::Drr(_))
                | (Self::RoundRobin(_), SchedulerParams::RoundRobin)
                | (Self::StartTimeFq(_), SchedulerParams::StartTimeFq)
                | (Self::Scfq(_), SchedulerParams::Scfq)
                | (Self::Wf2qPlus(_), SchedulerParams::Wf2qPlus)
        )
    }
}

impl AnyPolicy {
    pub(super) fn new(params: &PolicyParams, setup: &LinkContext<'_>) -> Self {
        match params {
            PolicyParams::Tail(params) => Self::Tail(TailDrop::new(params)),
            PolicyParams::Head(params) => Self::Head(HeadDrop::new(params)),
            PolicyParams::LongestQueue(params) => {
                Self::LongestQueue(LongestQueueDrop::new(params, setup.rtts))
            }
            PolicyParams::RandomQueue(params) => {
                Self::RandomQueue(RandomQueueDrop::new(params, setup.rtts, setup.stream()))
            }
            PolicyParams::Pfd(params) => {
                Self::Pfd(Pfd::new(params, setup.link_rate, setup.rtts, setup.stream()))
            }
            PolicyParams::Red(params) => Self::Red(Red::new(params, setup.link_rate, setup.stream())),
            PolicyParams::Rio(params) => Self::Rio(Rio::new(params, setup.link_rate, setup.stream())),
            PolicyParams::Fred(params) => Self::Fred(Fred::new(params, setup.link_rate, setup.stream())),
            PolicyParams::Sred(params) => Self::Sred(Sred::new(params, setup.stream())),
            PolicyParams::Bred(params) => Self::Bred(Bred::new(params, setup.stream())),
            PolicyParams::Tred(params) => Self::Tred(Tred::new(params, setup.link_rate, setup.stream())),
            PolicyParams::Csfq(params) => {
                Self::Csfq(Csfq::new(params, setup.link_rate, setup.stream(), setup.stream_for("marking")))
            }
            PolicyParams::Hcsfq(params) => {
                let (random, root) = (setup.stream(), setup.stream_for("root"));
                Self::Hcsfq(Hcsfq::new(params, setup.link_rate, &setup.customers, random, root))
            }
            PolicyParams::Sffc(params) => {
                Self::Sffc(Sffc::new(params, setup.link_rate, setup.stream(), setup.stream_for("trials")))
            }
            PolicyParams::Codel(params) => Self::Codel(Codel::new(params)),
        }
    }
}

impl AnyPolicy {
    /// As [`Discipline::has_params`](super::Discipline::has_params).
    pub(super) fn has_params(&self, params: &PolicyParams) -> bool {
        match (self, params) {
            (Self::Tail(it), PolicyParams::Tail(params)) => it.limit == params.limit,
            (Self::Head(it), PolicyParams::Head(params)) => it.limit == params.limit,
            (Self::Red(it), PolicyParams::Red(params)) => it.params == *params,
            (Self::Rio(it), PolicyParams::Rio(params)) => it.params == *params,
            (Self::Fred(it), PolicyParams::Fred(params)) => it.params == *params,
            (Self::Sred(it), PolicyParams::Sred(params)) => it.params == *params,
            (Self::Bred(it), PolicyParams::Bred(params)) => it.params == *params,
            (Self::Tred(it), PolicyParams::Tred(params)) => it.params == *params,
            (Self::Sffc(it), PolicyParams::Sffc(params)) => it.params == *params,
            (Self::Codel(it), PolicyParams::Codel(params)) => it.params == *params,
            (Self::LongestQueue(_), PolicyParams::LongestQueue(_))
            | (Self::RandomQueue(_), PolicyParams::RandomQueue(_))
            | (Self::Pfd(_), PolicyParams::Pfd(_))
            | (Self::Csfq(_), PolicyParams::Csfq(_))
            | (Self::Hcsfq(_), PolicyParams::Hcsfq(_)) => true,
            _ => false,
        }
    }

    /// Its part in exchanging reports, if it has one.
    pub(super) fn link_state(&self) -> Option<&Sffc> {
        match self {
            Self::Sffc(sffc) if sffc.exchanges_reports() => Some(sffc),
            _ => None,
        }
    }
    /// Its part in exchanging reports, if it has one.
    pub(super) fn link_state_mut(&mut self) -> Option<&mut Sffc> {
        match self {
            Self::Sffc(sffc) if sffc.exchanges_reports() => Some(sffc),
            _ => None,
        }
    }
}

/// The same expression for whichever scheduler it is.
macro_rules! scheduler {
    ($any:expr, $it:ident => $body:expr) => {
        match $any {
            AnyScheduler::Fifo($it) => $body,
            AnyScheduler::Drr($it) => $body,
            AnyScheduler::RoundRobin($it) => $body,
            AnyScheduler::StartTimeFq($it) => $body,
            AnyScheduler::Scfq($it) => $body,
            AnyScheduler::Wf2qPlus($it) => $body,
        }
    };
}

/// The same expression for whichever policy it is.
macro_rules! policy {
    ($any:expr, $it:ident => $body:expr) => {
        match $any {
            AnyPolicy::Tail($it) => $body,
            AnyPolicy::Head($it) => $body,
            AnyPolicy::LongestQueue($it) => $body,
            AnyPolicy::RandomQueue($it) => $body,
            AnyPolicy::Pfd($it) => $body,
            AnyPolicy::Red($it) => $body,
            AnyPolicy::Rio($it) => $body,
            AnyPolicy::Fred($it) => $body,
            AnyPolicy::Sred($it) => $body,
            AnyPolicy::Bred($it) => $body,
            AnyPolicy::Tred($it) => $body,
            AnyPolicy::Csfq($it) => $body,
            AnyPolicy::Hcsfq($it) => $body,
            AnyPolicy::Sffc($it) => $body,
            AnyPolicy::Codel($it) => $body,
        }
    };
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
    fn next_flow(&self) -> Option<FlowId> {
        scheduler!(self, it => it.next_flow())
    }
    #[inline(always)]
    fn is_transparent(&self) -> bool {
        scheduler!(self, it => Scheduler::<P>::is_transparent(it))
    }
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
