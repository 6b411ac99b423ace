//! Queues for packets with arbitrary ranks: SP-PIFO and AIFO as evaluated in their papers.
//!
//! Packets of the simulator have no ranks, while in both papers hosts assign them. [`Ranked`] gives each
//! packet a rank when it arrives: a random draw, as the hosts of SP-PIFO's authors do, or the remaining bytes
//! of its flow, as pFabric's hosts.

use std::collections::{BTreeMap, VecDeque};

use apportion_core::limit::Limit;
use apportion_core::param::{Entry, EntryArgs, Kind, Param, ParamError, Role, Traits};
use apportion_core::random::Stream;
use apportion_core::system::aifo::{AifoParams, Window};
use apportion_core::system::sp_pifo::Levels;
use apportion_core::system::{Catalog, Discipline, LinkContext};
use apportion_core::units::{Packets, Time};
use apportion_core::{Backlog, DropReason, Packet, Queue, SimplePacket, Sink};

use super::run::{Failure, simulate};

/// The figures of SP-PIFO's authors have ranks below this; of `inverse` one packet in 25 has a larger one.
const SHOWN: u64 = 100;

/// The queue of the packets.
enum Place {
    Fifo(VecDeque<(SimplePacket, u64)>),
    /// Packets by rank, then by arrival. A full queue drops the largest rank.
    Pifo(BTreeMap<(u64, u64), SimplePacket>),
    /// Queues with equal parts of the buffer; whether a packet that finds its queue full adapts the bounds.
    SpPifo {
        levels: Levels<SimplePacket>,
        part: Packets,
        adapts: bool,
    },
    Aifo(VecDeque<(SimplePacket, u64)>, Window),
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
    /// The remaining bytes of 100, 50 and 10 MB, by flow.
    Remaining,
}

/// A queue for ranked packets that counts inversions.
struct Ranked {
    place: Place,
    limit: Packets,
    ranks: Ranks,
    random: Stream,
    /// Bytes that have left, by flow.
    sent: Vec<u64>,
    backlog: Backlog,
    arrived: u64,
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
                let sizes = [100_000_000, 50_000_000, 10_000_000];
                let flow = packet.flow().index();
                let sent = self.sent.get(flow).copied().unwrap_or(0);
                // With headers, as bytes that have left.
                sizes.get(flow).map_or(0, |size: &u64| (size * 1_500 / 1_380).saturating_sub(sent))
            }
        }
    }

    fn waiting(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match &self.place {
            Place::Fifo(queue) | Place::Aifo(queue, _) => Box::new(queue.iter().map(|(_, rank)| *rank)),
            Place::Pifo(queue) => Box::new(queue.keys().map(|(rank, _)| *rank)),
            Place::SpPifo { levels, .. } => Box::new(levels.ranks()),
        }
    }

    fn serve(&mut self) -> Option<SimplePacket> {
        let (packet, rank) = match &mut self.place {
            Place::Fifo(queue) | Place::Aifo(queue, _) => queue.pop_front()?,
            Place::Pifo(queue) => queue.pop_first().map(|((rank, _), packet)| (packet, rank))?,
            Place::SpPifo { levels, .. } => levels.pop()?,
        };
        self.backlog.remove(&packet);
        self.overtaking += u64::from(rank < SHOWN && self.waiting().any(|other| other < rank));
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
        let taken = self.backlog.packets.get() as f64 / self.limit.get() as f64;
        // Where it joins: the queue of SP-PIFO, else 0.
        let joins = match &mut self.place {
            Place::Fifo(_) => (!is_full).then_some(0),
            Place::Pifo(queue) => {
                let is_larger = is_full && queue.last_key_value().is_some_and(|(last, _)| last.0 <= rank);
                (!is_larger).then_some(0)
            }
            Place::SpPifo { levels, part, adapts } => {
                let index = levels.place(rank);
                let has_room = levels.held(index).packets < *part;
                if *adapts || has_room {
                    levels.adapt(index, rank);
                }
                has_room.then_some(index)
            }
            Place::Aifo(_, window) => {
                let is_low = window.is_low(rank, 1.0 - taken);
                window.note(rank);
                (is_low && !is_full).then_some(0)
            }
        };
        let Some(index) = joins else {
            return sink.dropped(now, packet, DropReason::Overflow);
        };
        self.behind_larger += u64::from(rank < SHOWN && self.waiting().any(|other| other > rank));
        self.backlog.add(&packet);
        match &mut self.place {
            Place::Fifo(queue) | Place::Aifo(queue, _) => queue.push_back((packet, rank)),
            Place::SpPifo { levels, .. } => levels.push(index, packet, rank),
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
    }
}

static ENTRY: Entry = Entry {
    name: "ranked",
    role: Role::System,
    summary: "Schedulers for packets of any ranks, which they are given here.",
    reference: "Alcoz, Dietmüller, Vanbever 2020; Yu, Hu, Wu, Jin 2021",
    cost: "O(packets that wait) per packet",
    params: &[
        Param::new(
            "place",
            "–",
            Kind::Choice(&["fifo", "pifo", "sp_pifo", "aifo"]),
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
            "SP-PIFO: queues, with equal parts of the buffer.",
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
            "AIFO: part of the buffer for all ranks.",
        ),
        Param::new("window", "|W|", Kind::Count, "20", "AIFO's authors", "AIFO: ranks in the window."),
        Param::new(
            "sample",
            "–",
            Kind::Count,
            "15",
            "AIFO's authors",
            "AIFO: packets of which one joins the window.",
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
            aifo: AifoParams {
                limit: None,
                headroom: args.ratio("headroom"),
                window: args.count("window"),
                sample: args.count("sample"),
            },
        })
    }

    fn build(&self, link: &LinkContext<'_>) -> Ranked {
        let place = match self.place.as_str() {
            "pifo" => Place::Pifo(BTreeMap::new()),
            "sp_pifo" => Place::SpPifo {
                levels: Levels::new(self.queues),
                part: Packets::new(self.limit.get() / u64::from(self.queues)),
                adapts: self.adapts,
            },
            "aifo" => Place::Aifo(VecDeque::new(), Window::new(&self.aifo)),
            _ => Place::Fifo(VecDeque::new()),
        };
        Ranked {
            place,
            limit: self.limit,
            ranks: self.ranks,
            random: link.stream(),
            sent: Vec::new(),
            backlog: Backlog::EMPTY,
            arrived: 0,
            overtaking: 0,
            behind_larger: 0,
        }
    }
}

fn catalog() -> Result<Catalog, Failure> {
    let mut catalog = Catalog::default();
    catalog.register(&ENTRY, Setup::read, Setup::build)?;
    Ok(catalog)
}

/// How hosts of the authors repair losses: by selective acknowledgements, from the third duplicate on.
pub const SACK: &str = r#"algorithm = "sack""#;

/// Returns the TCP of the hosts in both papers: headers of 120 bytes, a window of 65535 bytes, no bounds on
/// the timeout, and loss recovery by `recovery`. AIFO's hosts start with the window at which slow start ends,
/// and with a timeout of three round-trip times of their network.
fn tcp(recovery: &str, initial: &str, initial_rto: &str) -> String {
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
    let outcome = simulate(&catalog()?, &text, seed)?;
    let link = outcome.links.iter().find(|link| link.name == "wire").ok_or("no link")?;
    let of =
        |name| link.statistics.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, value)| *value);
    Ok(Counted { overtaking: of("overtaking"), behind_larger: of("behind_larger") })
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
    let outcome = simulate(&catalog()?, &text, seed)?;
    let ends = |name: &str| {
        let flow = outcome.flows.iter().find(|flow| flow.name == name);
        let done = flow.and_then(|flow| flow.completions.first());
        done.map_or(f64::NAN, |done| done.start.as_secs_f64() + done.took.as_secs_f64())
    };
    Ok([ends("small"), ends("medium")])
}
