//! Queues for packets with arbitrary ranks: SP-PIFO, AIFO, PACKS and RIFO as evaluated in their papers.
//!
//! Packets of the simulator have no ranks, while in both papers hosts assign them. [`Ranked`] gives each
//! packet a rank when it arrives: a random draw, as the hosts of SP-PIFO's authors do, or the remaining bytes
//! of its flow, as pFabric's hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use apportion_core::limit::Limit;
use apportion_core::param::{Entry, EntryArgs, Kind, Param, ParamError, Role, Traits};
use apportion_core::random::Stream;
use apportion_core::system::aifo::{AifoParams, Window};
use apportion_core::system::packs::{Bound, PacksParams, Quantiles};
use apportion_core::system::rank_queues::{Admission, Levels, Room};
use apportion_core::system::rifo::{Range, RifoParams, Rule};
use apportion_core::system::sp_pifo::Bounds;
use apportion_core::system::{Catalog, Discipline, LinkContext};
use apportion_core::units::{Packets, Time};
use apportion_core::{Backlog, DropReason, Packet, Queue, SimplePacket, Sink};
use apportion_runtime::outcome::LinkOutcome;

use super::run::{Failure, simulate};

/// The figures of SP-PIFO's authors have ranks below this; of `inverse` one packet in 25 has a larger one.
const SHOWN: u64 = 100;

/// The queue of the packets.
enum Place {
    /// Packets by rank, then by arrival. A full queue drops the largest rank.
    Pifo(BTreeMap<(u64, u64), SimplePacket>),
    /// FIFOs in strict priority, with equal parts of the buffer.
    Queues(Levels<SimplePacket>, Admit),
}

/// The choice of a FIFO.
enum Admit {
    /// The first one.
    All,
    /// Whether a packet that finds its queue full adapts the bounds.
    SpPifo {
        bounds: Bounds,
        adapts: bool,
    },
    Packs(Quantiles),
    Aifo(Window),
    Rifo(Range),
}

impl Admit {
    /// None: the packet is dropped.
    fn place(&mut self, rank: u64, room: &Room<'_, SimplePacket>) -> Option<usize> {
        match self {
            Self::All => room.fits(0).then_some(0),
            Self::SpPifo { bounds, adapts } => {
                let index = bounds.map(rank);
                let fits = room.fits(index);
                if *adapts || fits {
                    bounds.adapt(index, rank);
                }
                fits.then_some(index)
            }
            Self::Packs(quantiles) => quantiles.place(rank, room).ok(),
            Self::Aifo(window) => window.place(rank, room).ok(),
            Self::Rifo(range) => range.place(rank, room).ok(),
        }
    }
}

/// Ranks of packets.
#[derive(Clone, Copy)]
enum Ranks {
    /// Whole numbers below 100.
    Uniform,
    /// Exponential with mean 25, below 100.
    Exponential,
    /// 100 minus an exponential rank.
    Inverse,
    /// Poisson with mean 50.
    Poisson,
    /// Poisson with mean 100, modulo 100: peaks at both ends.
    Convex,
    /// The remaining bytes of the file, by flow.
    Remaining,
}

impl Ranks {
    /// The rank below which four fifths lie: a PIFO drops none of these at a load of 1.1.
    fn low(self) -> u64 {
        match self {
            Self::Uniform => 80,
            Self::Exponential => 39,
            Self::Inverse | Self::Convex => 95,
            Self::Poisson => 56,
            Self::Remaining => 0,
        }
    }
}

/// A queue for ranked packets that counts inversions.
struct Ranked {
    place: Place,
    limit: Packets,
    ranks: Ranks,
    random: Stream,
    /// The bytes of files with headers, by flow.
    sizes: Arc<[u64]>,
    /// Bytes that have left, by flow.
    sent: Vec<u64>,
    backlog: Backlog,
    arrived: u64,
    served: u64,
    /// Packets of smaller rank that waited, summed over departures.
    inversions: u64,
    /// Packets of [low](Ranks::low) rank that were dropped.
    low_drops: u64,
    /// Packets that left while a smaller rank waited.
    overtaking: u64,
    /// Packets that were admitted while a larger rank waited.
    behind_larger: u64,
}

impl Ranked {
    fn rank(&mut self, packet: &SimplePacket) -> u64 {
        let poisson = |random: &mut Stream, mean: f64| {
            let (mut time, mut events) = (random.exponential(1.0), 0);
            while time < mean {
                time += random.exponential(1.0);
                events += 1;
            }
            events
        };
        let random = &mut self.random;
        let exponential = |random: &mut Stream| {
            std::iter::repeat_with(|| random.exponential(25.0))
                .find(|&it| it < 100.0)
                .map_or(0, |it| it as u64)
        };
        match self.ranks {
            Ranks::Uniform => random.below(100),
            Ranks::Exponential => exponential(random),
            Ranks::Inverse => 100 - exponential(random),
            Ranks::Poisson => poisson(random, 50.0),
            Ranks::Convex => poisson(random, 100.0) % 100,
            Ranks::Remaining => {
                let flow = packet.flow().index();
                let sent = self.sent.get(flow).copied().unwrap_or(0);
                self.sizes.get(flow).map_or(0, |size| size.saturating_sub(sent))
            }
        }
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.place {
            Place::Pifo(queue) => Box::new(queue.keys().map(|(rank, _)| *rank)),
            Place::Queues(levels, _) => Box::new(levels.ranks()),
        }
    }

    fn serve(&mut self) -> Option<SimplePacket> {
        let (packet, rank) = match &mut self.place {
            Place::Pifo(queue) => queue.pop_first().map(|((rank, _), packet)| (packet, rank))?,
            Place::Queues(levels, _) => levels.pop()?,
        };
        self.backlog.remove(&packet);
        self.served += 1;
        let smaller = self.waiting().filter(|&other| other < rank).count() as u64;
        self.inversions += smaller;
        self.overtaking += u64::from(rank < SHOWN && smaller > 0);
        let flow = packet.flow().index();
        if flow >= self.sent.len() {
            self.sent.resize(flow + 1, 0);
        }
        self.sent[flow] += packet.size().get();
        Some(packet)
    }
}

impl Queue<SimplePacket> for Ranked {
    fn enqueue(&mut self, now: Time, packet: SimplePacket, sink: &mut dyn Sink<SimplePacket>) {
        self.arrived += 1;
        let rank = self.rank(&packet);
        let is_full = self.backlog.packets >= self.limit;
        let joins = match &mut self.place {
            Place::Pifo(queue) => {
                let is_larger = is_full && queue.last_key_value().is_some_and(|(last, _)| last.0 <= rank);
                (!is_larger).then_some(0)
            }
            Place::Queues(levels, admit) => {
                let limit = Limit::Packets(self.limit);
                admit.place(rank, &Room { levels, packet: &packet, backlog: self.backlog, limit })
            }
        };
        let Some(index) = joins else {
            self.low_drops += u64::from(rank < self.ranks.low());
            return sink.dropped(now, packet, DropReason::Overflow);
        };
        self.behind_larger += u64::from(rank < SHOWN && self.waiting().any(|other| other > rank));
        self.backlog.add(&packet);
        match &mut self.place {
            Place::Queues(levels, _) => levels.push(index, packet, rank),
            Place::Pifo(queue) => {
                queue.insert((rank, self.arrived), packet);
                if let Some((_, last)) = is_full.then(|| queue.pop_last()).flatten() {
                    self.backlog.remove(&last);
                    sink.dropped(now, last, DropReason::PushOut);
                }
            }
        }
    }
    fn dequeue(&mut self, _: Time, _: &mut dyn Sink<SimplePacket>) -> Option<SimplePacket> {
        self.serve()
    }
    fn backlog(&self) -> Backlog {
        self.backlog
    }
}

impl Discipline<SimplePacket> for Ranked {
    fn drain(&mut self, _: Time) -> Option<SimplePacket> {
        self.serve()
    }
    fn set_limit(&mut self, _: Limit) {}
    fn statistics(&self, show: &mut dyn FnMut(&'static str, f64)) {
        show("overtaking", self.overtaking as f64);
        show("behind_larger", self.behind_larger as f64);
        show("served", self.served as f64);
        show("inversions", self.inversions as f64 / self.served as f64);
        show("low_drops", self.low_drops as f64 / self.arrived as f64);
    }
}

static ENTRY: Entry = Entry {
    name: "ranked",
    role: Role::System,
    summary: "Schedulers for packets of any ranks, which they are given here.",
    reference: "Alcoz, Dietmüller, Vanbever 2020; Yu, Hu, Wu, Jin 2021; Gran Alcoz et al. 2025; Mostafaei, Pacut, Schmid 2023",
    cost: "O(packets that wait) per packet",
    params: &[
        Param::new(
            "place",
            "–",
            Kind::Choice(&["fifo", "pifo", "sp_pifo", "aifo", "packs", "rifo"]),
            "fifo",
            "–",
            "The scheduler.",
        ),
        Param::new(
            "ranks",
            "–",
            Kind::Choice(&["uniform", "exponential", "inverse", "poisson", "convex", "remaining"]),
            "uniform",
            "–",
            "Ranks of packets.",
        ),
        Param::new("limit", "–", Kind::Packets, "80p", "SP-PIFO's authors", "Size of the buffer."),
        Param::new(
            "queues",
            "n",
            Kind::Count,
            "8",
            "SP-PIFO's authors",
            "SP-PIFO and PACKS: queues, with equal parts of the buffer.",
        ),
        Param::new(
            "adapts",
            "–",
            Kind::Switch,
            "false",
            "SP-PIFO's authors",
            "SP-PIFO: whether packets that are dropped adapt bounds.",
        ),
        Param::new(
            "headroom",
            "k",
            Kind::Ratio,
            "0.1",
            "AIFO's authors",
            "AIFO, PACKS and RIFO: part of the buffer for all ranks.",
        ),
        Param::new(
            "window",
            "|W|",
            Kind::Count,
            "20",
            "AIFO's authors",
            "AIFO and PACKS: ranks in the window; RIFO: packets until the range starts anew.",
        ),
        Param::new(
            "sample",
            "–",
            Kind::Count,
            "15",
            "AIFO's authors",
            "AIFO and PACKS: packets of which one joins the window.",
        ),
        Param::new(
            "rule",
            "–",
            Kind::Choice(&["text", "published"]),
            "text",
            "–",
            "PACKS and RIFO: whose rule, that of the text or of the published programs.",
        ),
    ],
    traits: Traits::NONE,
};

/// How to build a [`Ranked`].
struct Setup {
    place: String,
    ranks: Ranks,
    limit: Packets,
    queues: u32,
    adapts: bool,
    published: bool,
    aifo: AifoParams,
}

impl Setup {
    fn read(args: &EntryArgs<'_>) -> Result<Self, ParamError> {
        let queues =
            u32::try_from(args.count("queues")).map_err(|_| ParamError::new("queues", "too many"))?;
        let ranks = match args.choice("ranks") {
            "exponential" => Ranks::Exponential,
            "inverse" => Ranks::Inverse,
            "poisson" => Ranks::Poisson,
            "convex" => Ranks::Convex,
            "remaining" => Ranks::Remaining,
            _ => Ranks::Uniform,
        };
        Ok(Self {
            place: args.choice("place").to_owned(),
            ranks,
            limit: args.packets("limit"),
            queues: queues.max(1),
            adapts: args.switch("adapts"),
            published: args.choice("rule") == "published",
            aifo: AifoParams {
                limit: None,
                headroom: args.ratio("headroom"),
                window: args.count("window"),
                sample: args.count("sample"),
            },
        })
    }

    fn build(&self, link: &LinkContext<'_>, sizes: &Arc<[u64]>) -> Ranked {
        let AifoParams { limit, headroom, window, sample } = self.aifo;
        let admit = match self.place.as_str() {
            "sp_pifo" => Admit::SpPifo { bounds: Bounds::new(self.queues), adapts: self.adapts },
            "packs" => {
                let bound = if self.published { Bound::Total } else { Bound::Ahead };
                let queues = self.queues;
                Admit::Packs(Quantiles::new(&PacksParams { limit, queues, headroom, window, sample, bound }))
            }
            "aifo" => Admit::Aifo(Window::new(&self.aifo)),
            "rifo" => {
                let admission = if self.published { Rule::Published } else { Rule::Sound };
                Admit::Rifo(Range::new(&RifoParams { limit, headroom, reset: window, admission }))
            }
            _ => Admit::All,
        };
        let queues = if matches!(admit, Admit::SpPifo { .. } | Admit::Packs(_)) { self.queues } else { 1 };
        let place = match self.place.as_str() {
            "pifo" => Place::Pifo(BTreeMap::new()),
            _ => Place::Queues(Levels::new(queues), admit),
        };
        Ranked {
            place,
            limit: self.limit,
            ranks: self.ranks,
            random: link.stream(),
            sizes: Arc::clone(sizes),
            sent: Vec::new(),
            backlog: Backlog::EMPTY,
            arrived: 0,
            served: 0,
            inversions: 0,
            low_drops: 0,
            overtaking: 0,
            behind_larger: 0,
        }
    }
}

/// The queue, for files of these bytes with headers, by flow.
pub fn catalog(sizes: &[u64]) -> Result<Catalog, Failure> {
    let mut catalog = Catalog::default();
    let sizes: Arc<[u64]> = sizes.into();
    catalog.register(&ENTRY, Setup::read, move |setup: &Setup, link| setup.build(link, &sizes))?;
    Ok(catalog)
}

/// How hosts of the authors repair losses: by selective acknowledgements, from the third duplicate on.
pub const SACK: &str = r#"algorithm = "sack""#;

/// Returns the TCP of the hosts in both papers: headers of 120 bytes, a window of 65535 bytes, no bounds on
/// the timeout, and loss recovery by `recovery`. AIFO's hosts start with the window at which slow start ends,
/// and with a timeout of three round-trip times of their network.
pub fn tcp(recovery: &str, initial: &str, initial_rto: &str) -> String {
    format!(
        r#"{{
            profile = "rfc", {recovery}, segment = "1380B", header = "120B", ack = "120B", window = "65535B", window_scale = false,
            delayed_ack = "off", initial_window = "{initial}", initial_ssthresh = "30p", initial_rto = "{initial_rto}", min_rto = "0s",
            fin = false, nagle = false
        }}"#
    )
}

/// The counters of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Counted {
    /// Packets that left while a smaller rank waited.
    pub overtaking: f64,
    /// Packets that were admitted while a larger rank waited.
    pub behind_larger: f64,
}

/// Files of 1 MB both ways over 10 Gb/s, `per_second` starting each way, with `queue` at either end.
pub fn inversions(
    queue: &str,
    recovery: &str,
    per_second: f64,
    seconds: f64,
    seed: u64,
) -> Result<Counted, Failure> {
    let tcp = tcp(recovery, "3p", "300us");
    let text = format!(
        r#"
        seed = 1
        stop = "{seconds}s"
        defaults.flow.jitter = "0s"
        defaults.flow.tcp = {tcp}
        defaults.flow.source = {{ kind = "short_flows", per_second = {per_second}, mean_size = "1MB", shape = "constant" }}
        link.wire = {{ from = "a", to = "b", rate = "10Gbit", delay = "20ns", queue = {queue}, back.queue = {queue} }}
        flow.there = {{ from = "a", to = "b" }}
        flow.back = {{ from = "b", to = "a" }}
        "#
    );
    let outcome = simulate(&catalog(&[])?, &text, seed)?;
    let link = outcome.links.iter().find(|link| link.name == "wire").ok_or("no link")?;
    Ok(Counted { overtaking: statistic(link, "overtaking"), behind_larger: statistic(link, "behind_larger") })
}

/// A statistic of the queue; not a number if it has none of this name.
pub fn statistic(link: &LinkOutcome, name: &str) -> f64 {
    link.statistics.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, value)| *value)
}

/// One source of 11 Gb/s into 10 Gb/s behind `queue`: inversions for each departure, and the part of arrivals
/// that are dropped with a [low](Ranks::low) rank.
pub fn flood(queue: &str, seconds: f64, seed: u64) -> Result<[f64; 2], Failure> {
    let text = format!(
        r#"
        seed = 1
        stop = "{seconds}s"
        defaults.flow.jitter = "0s"
        link.wire = {{ from = "a", to = "b", rate = "10Gbit", delay = "1us", queue = {queue} }}
        flow.flood = {{ from = "a", to = "b", source = {{ kind = "cbr", rate = "11Gbit", packet = "1500B" }} }}
        "#
    );
    let outcome = simulate(&catalog(&[])?, &text, seed)?;
    let link = outcome.links.iter().find(|link| link.name == "wire").ok_or("no link")?;
    Ok(["inversions", "low_drops"].map(|name| statistic(link, name)))
}

/// The completion times of the files of 10 MB and of 50 MB, from hosts that start at once with 100, 50 and 10
/// MB over 1 Gb/s; hosts take up to `jitter` for a packet.
pub fn order(queue: &str, jitter: &str, seed: u64) -> Result<[f64; 2], Failure> {
    let tcp = tcp(SACK, "30p", "96us");
    let text = format!(
        r#"
        seed = 1
        stop = "1s"
        defaults.flow.jitter = "{jitter}"
        defaults.flow.tcp = {tcp}
        defaults.link = {{ rate = "1Gbit", delay = "20ns" }}
        link.in1 = {{ from = "h1", to = "switch" }}
        link.in2 = {{ from = "h2", to = "switch" }}
        link.in3 = {{ from = "h3", to = "switch" }}
        link.out = {{ from = "switch", to = "sink", queue = {queue} }}
        flow.large = {{ from = "h1", to = "sink", source = {{ kind = "file", size = "100MB" }} }}
        flow.medium = {{ from = "h2", to = "sink", source = {{ kind = "file", size = "50MB" }} }}
        flow.small = {{ from = "h3", to = "sink", source = {{ kind = "file", size = "10MB" }} }}
        "#
    );
    let sizes = [100_000_000, 50_000_000, 10_000_000].map(|size| size * 1_500 / 1_380);
    let outcome = simulate(&catalog(&sizes)?, &text, seed)?;
    let ends = |name: &str| {
        let flow = outcome.flows.iter().find(|flow| flow.name == name);
        let done = flow.and_then(|flow| flow.completions.first());
        done.map_or(f64::NAN, |done| done.start.as_secs_f64() + done.took.as_secs_f64())
    };
    Ok([ends("small"), ends("medium")])
}
