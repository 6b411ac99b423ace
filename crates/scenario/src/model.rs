//! A checked scenario: everything a backend needs to run it, with every name resolved and every quantity typed.
//!
//! Nodes, links and flows are sorted by name, so a file with its declarations permuted is the same scenario.
//! Lists are indexed by the ids declared here.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use apportion_core::delivery_trace::DeliveryTrace;
use apportion_core::mark::MarkerParams;
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::packet::{Ecn, FillTarget, FlowClass, Protocol};
use apportion_core::param::{Param, Range};
use apportion_core::stack::StackParams;
use apportion_core::system::DisciplineParams;
use apportion_core::units::{Bytes, Rate, Ratio, Span, TicketRate, Time, Weight};
use apportion_core::{choice, params};

pub use crate::aggregate::Aggregate;
pub use crate::packet_size::{MAX_PACKET, UDP_HEADER};
use crate::quic::QuicParams;
pub use crate::sizes::{Cdf, Shape, Sizes};
pub use crate::source::{Cbr, DurationDistribution, File, Frames, OnOff, Poisson, ShortFlows, Source, Video};
use crate::tcp::TcpParams;
pub use crate::web::{Objects, Users, Web};

/// One run's worth of scenario: sweeps are already resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// The title.
    pub title: String,
    /// The seed all random streams derive from.
    pub seed: u64,
    /// When the run ends.
    pub stop: Time,
    /// When the measured part begins; the time before is warm-up.
    pub measure_from: Time,
    /// The interval of time series.
    pub sample: Span,
    /// Nodes, sorted by name.
    pub nodes: Vec<Node>,
    /// Links, sorted by name; each is one direction.
    pub links: Vec<Link>,
    /// Flows, sorted by name.
    pub flows: Vec<Flow>,
    /// The customers that flows name, sorted by name.
    pub customers: Vec<Customer>,
    /// Who pays whom, by payer and provider each once.
    pub agreements: Vec<Agreement>,
    /// Changes, sorted by time, then by setting.
    pub changes: Vec<Change>,
    /// Notes on files whose content was not read as written, one line each, for [warnings](Self::warnings).
    pub notes: Vec<String>,
}

/// The index of a node in [`Scenario::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Position in [`Scenario::nodes`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The index of a link in [`Scenario::links`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkId(pub u32);

impl LinkId {
    /// Position in [`Scenario::links`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A host or router.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name, unique.
    pub name: String,
}

/// One direction of a link: a queue, a transmitter and a wire.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The name, unique. The other direction of a two-way link `x` is called `x.back`.
    pub name: String,
    /// The node where packets enter.
    pub from: NodeId,
    /// The node where packets leave.
    pub to: NodeId,
    /// The group of equal links that it belongs to, if any.
    pub group: Option<Arc<LinkGroup>>,
    /// The rate of the transmitter; the mean of a recorded link.
    pub rate: Rate,
    /// The opportunities of a recorded link.
    pub trace: Option<DeliveryTrace>,
    /// The key that sets the rate of all access links of a topology, unless this link has a rate of its own.
    pub rate_key: Option<&'static str>,
    /// The delay of the wire; the minimum if it varies.
    pub delay: Span,
    /// Random delay of packets in addition.
    pub jitter: Option<Jitter>,
    /// Aggregation of packets, if any.
    pub aggregate: Option<Aggregate>,
    /// The queue in front of the transmitter, which does not hold the packet in transmission.
    pub queue: DisciplineParams,
    /// Random losses of the wire.
    pub loss: Loss,
    /// Packets that are lost by their ordinal.
    pub lost: Vec<ListedLoss>,
    /// Whether the queue is watched: it gets time series, distributions and figures in results.
    pub watched: bool,
    /// Whether to write its packets to a capture file.
    pub pcap: bool,
    /// The other direction, if it is one of two.
    pub other_way: Option<LinkId>,
    /// Tickets that the router at its end issues to it, in that router's currency; labels pass unchanged if
    /// `None`.
    pub tickets: Option<TicketRate>,
    /// Receiver-based: tickets that the router at its beginning issues to it, in that router's currency. The
    /// other direction exchanges tickets on acknowledgements for these, and the tickets that arrive there are
    /// issued to this link for data.
    pub ack_tickets: Option<TicketRate>,
    /// The exchange of tickets.
    pub exchange: Arc<ExchangeParams>,
}

/// Equal links between the same two nodes, each with a queue; [each connection takes one](Scenario::way).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkGroup {
    /// The name, unique; member `k` of a group `x` is called `x.k`, in the other direction `x.k.back` of
    /// `x.back`.
    pub name: String,
    /// The links, ascending; two or more.
    pub members: Vec<LinkId>,
}

/// Random losses of a wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    /// Each packet is lost with this probability.
    Chance(Ratio),
    /// The probability is higher in the wire's bad state than in its good one.
    GilbertElliott(GilbertElliott),
}

impl Loss {
    pub const NONE: Self = Self::Chance(Ratio::ZERO);

    /// The long-run share of lost packets.
    #[must_use]
    pub fn mean(&self) -> Ratio {
        match self {
            Self::Chance(chance) => *chance,
            Self::GilbertElliott(GilbertElliott { p, r, h, k }) => {
                let [p, r, h, k] = [p, r, h, k].map(|ratio| ratio.get());
                Ratio::clamped((r * (1.0 - k) + p * (1.0 - h)) / (p + r))
            }
        }
    }
}

params! {
    /// A wire that turns from good to bad and back: Gilbert, Bell System Technical Journal 39(5), 1960, and Elliott, 42(5), 1963, with
    /// the letters of Haßlinger and Hohlfeld, "The Gilbert-Elliott model for packet loss in real time services on the Internet", MMB 2008.
    #[derive(Copy)]
    pub struct GilbertElliott {
        /// Probability per packet that the wire turns bad.
        p: Ratio = Param::required().within(Range::FromZero),
        /// Probability per packet that it turns good.
        r: Ratio = Param::required().within(Range::AboveZero),
        /// Probability that a packet passes a bad wire.
        h: Ratio = Param::of("0", "Gilbert: a bad wire loses all").within(Range::FromZero),
        /// Probability that a packet passes a good wire.
        k: Ratio = Param::of("1", "Gilbert: a good wire loses none").within(Range::FromZero),
    }
}

params! {
    /// A random time that each packet takes on a wire beyond its delay.
    #[derive(Copy)]
    pub struct Jitter {
        /// Longest time beyond `delay`; each packet draws its own.
        max: Span = Param::required(),
        /// `uniform` from 0 to `max`; `normal` with mean `max`/2 and deviation `max`/6, redrawn outside.
        distribution: JitterDistribution = Param::of("uniform", "chosen"),
        /// Whether packets may overtake. If not, bursts gather behind a slow packet.
        reorder: bool = Param::of("false", "chosen"),
    }
}

choice! {
    /// How a random time is distributed between zero and its maximum.
    pub enum JitterDistribution {
        /// All times are as likely.
        Uniform = "uniform",
        /// Normal around half the maximum; the range is three standard deviations to both sides, and what is outside is drawn anew.
        Normal = "normal",
    }
}

/// Listed losses of one flow on one link.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedLoss {
    /// The index of the flow in [`Scenario::flows`].
    pub flow: usize,
    /// Ordinals of its packets over this link, counting from 1, ascending. They are lost on the wire.
    pub packets: Vec<u64>,
}

/// One flow from a source to a sink.
///
/// Members of a group mostly differ in the fields here. The others are in [`FlowSettings`], to which a flow
/// dereferences.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// The name, unique; member `i` of a group `g` is called `g.i`.
    pub name: String,
    /// The path of its packets.
    pub path: Path,
    /// The path of acknowledgements.
    pub back: Path,
    pub start: Start,
    /// Settings, which flows with equal ones share; a flow that is changed gets its own copy.
    pub settings: Arc<FlowSettings>,
}

/// The links from one node to another, in order; it dereferences to them. Where connections choose among several, it has the first by name
/// in place of those that [each of them takes](Scenario::way).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The first of paths of equal cost, with the first link of each [group](LinkGroup).
    pub first: Arc<[LinkId]>,
    /// Links of all paths of equal cost, if there are several: from where the first two part to where the
    /// last two meet, sorted by the node that they leave; of each group its first link.
    pub equal: Option<Arc<[LinkId]>>,
}

impl From<Arc<[LinkId]>> for Path {
    /// The only path.
    fn from(first: Arc<[LinkId]>) -> Self {
        Self { first, equal: None }
    }
}

impl Deref for Path {
    type Target = [LinkId];
    fn deref(&self) -> &[LinkId] {
        &self.first
    }
}

/// Settings of a flow besides its name, its paths and its start.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSettings {
    /// The name of its random streams, unique; `None`: the flow's name.
    pub stream: Option<Box<str>>,
    /// The table of the file that it comes from.
    pub group: String,
    /// Class, for disciplines that distinguish classes.
    pub class: FlowClass,
    /// The target of its queue while it is real-rate; none: the target of each discipline.
    pub target: Option<FillTarget>,
    /// Weight, if a discipline or the entitlement divides by weights.
    pub weight: Weight,
    /// Round-trip time without queueing, if disciplines divide by that; `None`: that of the network, see
    /// [`Scenario::base_rtt`].
    pub rtt: Option<Span>,
    /// The maximum time that its hosts take for a packet; `None`: the default, see [`Scenario::jitter`].
    pub jitter: Option<Span>,
    /// The rate it is guaranteed, for the entitlement and for disciplines that know guarantees.
    pub guarantee: Rate,
    /// The name of its customer; all flows without one count as one more customer.
    pub customer: Option<Arc<str>>,
    /// Tickets issued to its source, in the currency of the node where the first link starts.
    pub tickets: Option<TicketRate>,
    /// Receiver-based: tickets issued to its sink.
    pub ack_tickets: Option<TicketRate>,
    /// The marker of its packets at the source.
    pub mark: Option<Arc<MarkerParams>>,
    /// Members of groups that its paths name: it takes these, not one by a hash.
    pub pinned: Vec<LinkId>,
    pub transport: Transport,
    /// The protocol that its packets declare, acknowledgements included.
    pub protocol: Protocol,
    /// The ECN field of its datagrams; TCP sets its own.
    pub ecn: Ecn,
    /// Number of its connections, each with a transport, a source and a random start of its own. Disciplines
    /// see one flow. Always 1 for [`Source::ShortFlows`] and [`Source::Web`], which open their own.
    pub connections: u32,
    /// The source of each connection.
    pub source: Source,
    /// When its source stops writing, or starting short flows; the end of the run if `None`. A file is written as a whole at its start.
    pub stop: Option<Time>,
}

impl Flow {
    /// The name of its random streams.
    #[must_use]
    pub fn stream(&self) -> &str {
        self.settings.stream.as_deref().unwrap_or(&self.name)
    }
}

impl Deref for Flow {
    type Target = FlowSettings;
    fn deref(&self) -> &FlowSettings {
        &self.settings
    }
}

impl DerefMut for Flow {
    fn deref_mut(&mut self) -> &mut FlowSettings {
        Arc::make_mut(&mut self.settings)
    }
}

/// A customer: bandwidth is divided among customers first, then among the flows of each.
#[derive(Clone, Debug, PartialEq)]
pub struct Customer {
    /// The name, unique.
    pub name: String,
    /// The weight among customers.
    pub weight: Weight,
}

/// A node pays another, next to it, for access.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// The name, unique among those of the file.
    pub name: String,
    /// The node that pays.
    pub payer: NodeId,
    /// The node that is paid.
    pub provider: NodeId,
    /// The weight among the agreements of the provider.
    pub weight: Weight,
    /// Whether the file has it; else it follows from the place of the payer at the edge.
    pub is_written: bool,
}

/// When a flow starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    At(Time),
    /// Uniformly at random between the two times.
    Between(Time, Time),
}

/// The transport of a flow.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// TCP. Many flows share one table of parameters.
    Tcp(Arc<TcpParams>),
    /// QUIC. Many flows share one table of parameters. For the simulator only.
    Quic(Arc<QuicParams>),
    /// A transport stack from outside. For the simulator only.
    Stack(Arc<StackParams>),
    /// Datagrams of at most `packet` bytes on the wire, without feedback.
    Udp {
        /// Wire size of a full datagram.
        packet: Bytes,
        /// The headers' part of it.
        header: Bytes,
    },
}

impl Transport {
    /// The size of a full packet on the wire.
    #[must_use]
    pub fn packet(&self) -> Bytes {
        match self {
            Self::Tcp(tcp) => tcp.segment + tcp.header,
            Self::Quic(quic) => quic.packet(),
            Self::Stack(params) => params.stack().sizes().packet,
            Self::Udp { packet, .. } => *packet,
        }
    }

    /// Whether both ends offer explicit congestion notification.
    #[must_use]
    pub fn offers_ecn(&self) -> bool {
        match self {
            Self::Tcp(tcp) => tcp.offers_ecn(),
            Self::Quic(quic) => quic.ecn,
            Self::Stack(params) => params.stack().offers_ecn(),
            Self::Udp { .. } => false,
        }
    }

    /// The size of an acknowledgement on the wire; `None` for datagrams, which have none.
    #[must_use]
    pub fn ack(&self) -> Option<Bytes> {
        match self {
            Self::Tcp(tcp) => Some(tcp.ack),
            Self::Quic(quic) => Some(quic.usual_ack()),
            Self::Stack(params) => Some(params.stack().sizes().ack),
            Self::Udp { .. } => None,
        }
    }

    /// The payload of a full packet; for datagrams, its size with headers.
    #[must_use]
    pub fn segment(&self) -> Bytes {
        match self {
            Self::Tcp(tcp) => tcp.segment,
            Self::Quic(quic) => quic.segment,
            Self::Stack(params) => params.stack().sizes().payload,
            Self::Udp { packet, .. } => *packet,
        }
    }

    /// Whether its packets are acknowledged.
    #[must_use]
    pub const fn is_acknowledged(&self) -> bool {
        !matches!(self, Self::Udp { .. })
    }
}

/// A change of the scenario while it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// When it happens.
    pub at: Time,
    /// The new value.
    pub to: Setting,
}

/// A parameter with its new value.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// The rate of a link; zero holds packets in the queue. A packet in transmission finishes at the old
    /// rate.
    LinkRate(LinkId, Rate),
    /// The delay of a link. A wire is FIFO: no packet overtakes an earlier one.
    LinkDelay(LinkId, Span),
    /// The random loss of a link.
    LinkLoss(LinkId, Ratio),
    /// The discipline of a link. Packets in the old queue move into the new one in the order in which they
    /// would be served.
    LinkQueue(LinkId, Box<DisciplineParams>),
    /// The rate of each connection's source of a flow (index in [`Scenario::flows`]); zero silences it.
    FlowRate(usize, Rate),
    /// The class of a flow.
    FlowClass(usize, FlowClass),
    /// The weight of a flow.
    FlowWeight(usize, Weight),
    /// The guarantee of a flow; zero takes it back.
    FlowGuarantee(usize, Rate),
    /// The tickets issued to the source of a flow.
    FlowTickets(usize, TicketRate),
    /// The tickets issued to the sink of a flow.
    FlowAckTickets(usize, TicketRate),
    /// The tickets issued to a link for data.
    LinkTickets(LinkId, TicketRate),
    /// The tickets issued to a link for acknowledgements.
    LinkAckTickets(LinkId, TicketRate),
}

/// Maximum of connections of one [`Source::ShortFlows`], and of users of one [`Source::Web`] (chosen: a
/// thousand a second for 1000 s), so that a typing error in a rate does not exhaust the machine's memory.
pub const MAX_ARRIVALS: u32 = 1_000_000;
