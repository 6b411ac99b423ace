//! A checked configuration, typed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use apportion_core::mark::MarkerParams;
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::packet::{CustomerId, FillTarget, FlowClass};
use apportion_core::system::{Catalog, DisciplineParams};
use apportion_core::units::{Bytes, Rate, Ratio, Span, TicketRate, Weight};

use super::addresses::Addresses;
use super::classifier::{Prefix, Rule, RuleSet};
use crate::customers;
use crate::direction::Direction;
use crate::model::Customer;
use crate::plans::Plans;
use crate::selection::Part;
use crate::text::{Item, quoted};

/// A checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// The title.
    pub title: String,
    /// The seed of all random streams.
    pub seed: u64,
    /// The interface towards the inside.
    pub inside: String,
    /// The interface towards the outside.
    pub outside: String,
    /// The loopback address that serves metrics, if any.
    pub metrics: Option<SocketAddr>,
    /// The Unix socket for overload notifications to applications, if any.
    pub notifications: Option<PathBuf>,
    /// Whether changes are accepted at [`metrics`](Self::metrics); needs an address there and a file with a
    /// token.
    pub control: bool,
    /// The file with the token that changes need.
    pub control_token: Option<PathBuf>,
    /// Identifies this gateway to others; present if a queue [sends
    /// reports](DisciplineParams::report_interval).
    pub address: Option<IpAddr>,
    /// The key that authenticates reports.
    pub report_key: Option<ReportKey>,
    /// Whether reports are sent without a key.
    pub insecure: bool,
    /// Idle time after which a flow is forgotten.
    pub flow_idle: Span,
    /// Maximum number of flows per direction, up to [`FlowId::SLOTS`](apportion_core::packet::FlowId::SLOTS).
    pub flows: usize,
    /// From the inside to the outside.
    pub up: DirectionConfig,
    /// From the outside to the inside.
    pub down: DirectionConfig,
    /// Rules in the order of the file; their indices are the numbers that [`DirectionConfig::rules`] return.
    pub rules: Vec<RuleConfig>,
    /// The file of plans, relative to that of the configuration, if there is one.
    pub plans: Option<String>,
    /// The content of this file.
    pub(crate) nodes: Option<Plans>,
    /// The directions in that file whose rates the classes of the queues up and down have, if they come from
    /// it.
    pub(crate) classes_of: [Option<Direction>; 2],
    /// The customers of inside addresses, by these plans. A rule that names a customer takes precedence.
    pub addresses: Addresses,
    /// The customers that rules and plans name, sorted by name.
    pub customers: Vec<Customer>,
}

/// The settings of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionConfig {
    /// Rate of the transmitter; the maximum if it follows the link.
    pub rate: Rate,
    /// How the rate follows the link, if it does.
    pub auto: Option<AutoRate>,
    /// Layer 2 overhead charged for each IP packet in addition to its own size.
    pub overhead: Bytes,
    /// Queue discipline in front of the transmitter.
    pub queue: Written<DisciplineParams>,
    /// Delay added behind the transmitter, as by a long wire.
    pub delay: Span,
    /// Probability that a packet is lost behind the transmitter.
    pub loss: Ratio,
    /// Tickets that the next router issues to it, in that router's currency.
    pub tickets: Option<TicketRate>,
    /// Receiver-based: tickets that the previous router issues to it; the other direction exchanges tickets on
    /// acknowledgements for these.
    pub ack_tickets: Option<TicketRate>,
    /// Ticket exchange: present if the direction is issued tickets, or if acknowledgements in it carry the tickets
    /// of the other direction.
    pub exchange: Option<Written<ExchangeParams>>,
    /// Treatment of labels on packets.
    pub labels: Labels,
    /// The rules of [`GatewayConfig::rules`] that apply in this direction.
    pub rules: RuleSet,
}

/// How the rate of a direction follows the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AutoRate {
    /// The lowest rate.
    pub least: Rate,
    /// Queueing delay of the link above which the rate is too high.
    pub threshold: Span,
    /// The side of the link.
    pub link: Side,
}

/// A side of a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side of the interface `outside`.
    Outside,
    /// The side of the interface `inside`.
    Inside,
}

impl DirectionConfig {
    /// The rate that is available at all times.
    #[must_use]
    pub fn least_rate(&self) -> Rate {
        self.auto.map_or(self.rate, |auto| auto.least)
    }
}

/// Treatment of labels on packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// The sources whose labels are trusted. Others are ignored.
    pub reads: TrustedSources,
    /// Whether labels stay on departing packets.
    pub writes: bool,
}

/// The sources whose labels are trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum TrustedSources {
    /// No address.
    #[default]
    None,
    /// All addresses.
    All,
    /// These addresses; at least one prefix and at most [`MAX_TRUSTED`](super::MAX_TRUSTED).
    Of(Vec<Prefix>),
}

impl TrustedSources {
    /// Whether any source is trusted.
    #[must_use]
    pub const fn is_any(&self) -> bool {
        !matches!(self, Self::None)
    }

    /// Whether packets with this source address are trusted.
    #[must_use]
    pub fn trusts(&self, source: IpAddr) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Of(prefixes) => prefixes.iter().any(|prefix| prefix.contains(source)),
        }
    }
}

/// Formats as TOML.
impl fmt::Display for TrustedSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("false"),
            Self::All => f.write_str("true"),
            Self::Of(prefixes) => {
                let prefixes: Vec<_> = prefixes.iter().map(|prefix| quoted(&prefix.to_string())).collect();
                write!(f, "[{}]", prefixes.join(", "))
            }
        }
    }
}

/// Parameters of an entry of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// The checked parameters.
    pub params: T,
    /// The parameters as TOML, all of them: equal for equal parameters.
    pub text: String,
}

impl<T> Written<T> {
    /// `params` as read from `item`.
    pub(super) fn new(catalog: &Catalog, part: Part, item: &Item, params: T) -> Self {
        Self { params, text: part.canonical(catalog, item).unwrap_or_else(|| item.to_string()) }
    }
}

/// A rule: its conditions, and the parameters of the flows that match.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleConfig {
    /// The name, unique; "rule 3" for the third rule without a name.
    pub name: String,
    /// The direction in which it applies; none: both.
    pub direction: Option<Direction>,
    /// The conditions.
    pub when: Rule,
    /// The parameters of flows that match.
    pub gives: Treatment,
}

impl RuleConfig {
    /// Whether it applies in this direction.
    #[must_use]
    pub fn is_for(&self, direction: Direction) -> bool {
        self.direction.is_none_or(|own| own == direction)
    }
}

/// The parameters of a flow. The default is for flows that no rule matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Treatment {
    /// Class, for queues that distinguish classes.
    pub class: FlowClass,
    /// Target of the queue of each flow, if it is real-rate; none: the target of the queue.
    pub target: Option<FillTarget>,
    /// Weight where bandwidth is divided by weights.
    pub weight: Weight,
    /// Guaranteed rate. One flow of each rule fits; the gateway decides on further flows while it runs.
    pub guarantee: Rate,
    /// Maximum sum of guarantees under the rule; the rate of the direction if absent.
    pub guarantee_limit: Option<Rate>,
    /// Maximum sum of guarantees for the flows of one inside host; four guarantees if absent.
    pub guarantee_limit_per_host: Option<Rate>,
    /// Maximum rate of all packets of the rule whose labels are trusted, if any.
    pub label_limit: Option<Rate>,
    /// Tickets issued to it, if any.
    pub tickets: Option<TicketRate>,
    /// Receiver-based: tickets issued to its sink, if any.
    pub ack_tickets: Option<TicketRate>,
    /// The marker of its packets, or with `ack_tickets` of its acknowledgements.
    pub mark: Option<Written<MarkerParams>>,
    /// Round-trip time, if known.
    pub rtt: Option<Span>,
    /// Name of its customer.
    pub customer: Option<String>,
    /// The packets that count as one flow.
    pub flows: Grouping,
}

impl Treatment {
    /// Whether tickets are written on its packets.
    #[must_use]
    pub fn writes_tickets(&self) -> bool {
        let takes = |mark: &Written<MarkerParams>| matches!(mark.params, MarkerParams::Tickets(_));
        self.ack_tickets.is_none() && (self.tickets.is_some() || self.mark.as_ref().is_some_and(takes))
    }

    /// Whether acknowledgements carry the number of these tickets.
    #[must_use]
    pub fn follows_sink(&self) -> bool {
        self.writes_tickets() && self.tickets.is_none()
    }
}

/// The packets of a rule that count as one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Packets with the same addresses, protocol and ports.
    #[default]
    Each,
    /// All packets.
    One,
    /// Packets whose inside addresses begin with the same bits: their sources in the direction up, and their
    /// destinations in the direction down.
    Network(NetworkLengths),
}

/// The number of bits of an address that belong to its network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkLengths {
    /// Bits of an IPv4 address, 0 to 32.
    pub ipv4: u8,
    /// Bits of an IPv6 address, 0 to 128.
    pub ipv6: u8,
}

impl NetworkLengths {
    /// The network of `address`, which may be one address.
    #[must_use]
    pub fn network(self, address: IpAddr) -> Prefix {
        Prefix::around(address, if address.is_ipv4() { self.ipv4 } else { self.ipv6 })
    }
}

/// A secret that gateways share; its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct ReportKey(pub(super) Vec<u8>);

impl ReportKey {
    /// The key's bytes, 16 to 64.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ReportKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReportKey(..)")
    }
}

/// IP packets whose charges are shown: an acknowledgement, a small and a full one.
const SHOWN: [Bytes; 3] = [Bytes::new(40), Bytes::new(100), Bytes::new(1_500)];

impl GatewayConfig {
    /// The customer of a flow, as disciplines number customers: those of [`GatewayConfig::customers`] from 1
    /// on.
    #[must_use]
    pub fn customer_of(&self, flow: &Treatment) -> CustomerId {
        customers::number(&self.customers, flow.customer.as_deref())
    }

    /// The charge of IP packets: by their own size and `overhead` for `rate`, and for the `bandwidth` of
    /// CAKE, a line for each direction.
    #[must_use]
    pub fn charges(&self) -> String {
        let line = |way: Direction| {
            let own = self.direction(way);
            let of = |charge: &dyn Fn(Bytes) -> Bytes| {
                let [ack, small, full] = SHOWN.map(|ip| charge(ip).get());
                format!("{ack}, {small} and {full} B")
            };
            let size = of(&|ip| ip + own.overhead);
            let apart = own.queue.params.charge(Bytes::ZERO, own.overhead).is_some();
            let cake = of(&|ip| own.queue.params.charge(ip, own.overhead).unwrap_or_default());
            format!(
                "{}: {size}{}\n",
                way.name(),
                if apart { format!(", and by `cake` {cake}") } else { String::new() }
            )
        };
        Direction::BOTH.map(line).concat()
    }

    /// The content of the file of plans, a line for each node; empty without one.
    /// [`canonical`](Self::canonical) only names that file.
    #[must_use]
    pub fn plan_text(&self) -> String {
        self.nodes.as_ref().map(Plans::text).unwrap_or_default()
    }

    /// The assured rate and the ceiling of each node of the file of plans, a line for each; empty without
    /// plans.
    #[must_use]
    pub fn plan_rates(&self) -> String {
        self.nodes.as_ref().map(Plans::rates_text).unwrap_or_default()
    }

    /// Whether `other` has the same file of plans, with the same nodes; comments do not count.
    #[must_use]
    pub fn has_plans_of(&self, other: &Self) -> bool {
        (&self.plans, &self.nodes) == (&other.plans, &other.nodes)
    }

    /// Whether weights of customers count. They do not if queues have classes, which set the shares
    /// themselves, and none divides among customers by weights.
    #[must_use]
    pub fn weighs_customers(&self) -> bool {
        let queues = [&self.up, &self.down].map(|direction| &direction.queue.params);
        weighs_customers(queues)
    }

    /// Weights by number of the customer. All flows without a customer have weight 1 together.
    #[must_use]
    pub fn customer_weights(&self) -> Vec<Weight> {
        customers::weights(&self.customers)
    }

    /// Names by number of the customer, which classes may refer to. The name for flows without a customer is
    /// empty.
    #[must_use]
    pub fn customer_names(&self) -> Vec<String> {
        customers::names(&self.customers)
    }
}

/// Whether weights of customers count at these queues, up and down.
pub(super) fn weighs_customers(queues: [&DisciplineParams; 2]) -> bool {
    queues.iter().any(|queue| queue.divides_among_customers())
        || queues.iter().all(|queue| !queue.has_classes())
}
