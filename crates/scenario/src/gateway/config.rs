//! A checked configuration, typed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use apportion_core::mark::MarkerParams;
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::packet::CustomerId;
use apportion_core::packet::FlowClass;
use apportion_core::system::{Catalog, DisciplineParams};
use apportion_core::units::{Bytes, Rate, Ratio, Span, TicketRate, Weight};

use super::classifier::{Rule, RuleSet};
use crate::customers;
use crate::direction::Direction;
use crate::model::Customer;
use crate::selection::Part;
use crate::text::Item;

/// A checked configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayConfig {
    /// What the user calls it.
    pub title: String,
    /// All random streams derive from it.
    pub seed: u64,
    /// The interface towards the inside.
    pub inside: String,
    /// The interface towards the outside.
    pub outside: String,
    /// Where metrics are served: a loopback address.
    pub metrics: Option<SocketAddr>,
    /// Who this gateway is for other gateways; there if a queue [sends
    /// reports](DisciplineParams::report_interval).
    pub address: Option<IpAddr>,
    /// What authenticates reports.
    pub report_key: Option<ReportKey>,
    /// A flow that was silent so long is forgotten.
    pub flow_idle: Span,
    /// Most flows kept apart; at most [`FlowId::SLOTS`](apportion_core::packet::FlowId::SLOTS).
    pub flows: usize,
    /// From the inside to the outside.
    pub up: DirectionConfig,
    /// From the outside to the inside.
    pub down: DirectionConfig,
    /// In the order of the file; their positions are the numbers that [`DirectionConfig::rules`] decide on.
    pub rules: Vec<RuleConfig>,
    /// Those that rules name, sorted by name.
    pub customers: Vec<Customer>,
}

/// What happens to packets in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionConfig {
    /// Of the transmitter.
    pub rate: Rate,
    /// Charged to each IP packet beside itself.
    pub overhead: Bytes,
    /// In front of the transmitter.
    pub queue: Written<DisciplineParams>,
    /// Added behind the transmitter, as by a long wire.
    pub delay: Span,
    /// Each packet is lost behind the transmitter with this probability.
    pub loss: Ratio,
    /// What it is issued by the router behind, in that router's currency.
    pub tickets: Option<TicketRate>,
    /// Receiver-based: what it is issued by the router before it; the other direction exchanges tickets on
    /// acknowledgements for these.
    pub ack_tickets: Option<TicketRate>,
    /// How it exchanges tickets: there if it is issued some, or acknowledgements in it say what the other
    /// direction is issued.
    pub exchange: Option<Written<ExchangeParams>>,
    /// What becomes of labels on packets.
    pub labels: Labels,
    /// Those of [`GatewayConfig::rules`] that hold in this direction.
    pub rules: RuleSet,
}

/// What becomes of labels on packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Labels {
    /// Whether those of arriving packets are believed. If not, they are as good as absent.
    pub reads: bool,
    /// Whether they stay on departing packets.
    pub writes: bool,
}

/// Parameters of something in the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub struct Written<T> {
    /// Checked.
    pub params: T,
    /// As TOML, with all of them: equal for equal parameters.
    pub text: String,
}

impl<T> Written<T> {
    /// `params` as read from `item`.
    pub(super) fn new(catalog: &Catalog, part: Part, item: &Item, params: T) -> Self {
        Self { params, text: part.canonical(catalog, item).unwrap_or_else(|| item.to_string()) }
    }
}

/// Which flows, and what each of them is given.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleConfig {
    /// Unique; "rule 3" for the third if the user gave none.
    pub name: String,
    /// The direction in which it holds; none: both.
    pub direction: Option<Direction>,
    /// What packets say.
    pub when: Rule,
    /// What flows are given that match.
    pub gives: Treatment,
}

impl RuleConfig {
    /// Whether it holds in this direction.
    #[must_use]
    pub fn is_for(&self, direction: Direction) -> bool {
        self.direction.is_none_or(|own| own == direction)
    }
}

/// What a flow is given. The default is for flows that no rule matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Treatment {
    /// Where queues keep classes apart.
    pub class: FlowClass,
    /// Where bandwidth is divided by weights.
    pub weight: Weight,
    /// Guaranteed, whether it sends or not. One flow of each rule fits; whether more do is for the gateway to
    /// decide as they come.
    pub guarantee: Rate,
    /// What it is issued, if anything is.
    pub tickets: Option<TicketRate>,
    /// Receiver-based: what its sink is issued, if anything is.
    pub ack_tickets: Option<TicketRate>,
    /// What marks its packets, or with `ack_tickets` its acknowledgements.
    pub mark: Option<Written<MarkerParams>>,
    /// Its round-trip time, if known.
    pub rtt: Option<Span>,
    /// Whose it is.
    pub customer: Option<String>,
    /// What is a flow.
    pub flows: Grouping,
}

impl Treatment {
    /// Whether tickets are written on its packets.
    #[must_use]
    pub fn writes_tickets(&self) -> bool {
        let takes = |mark: &Written<MarkerParams>| matches!(mark.params, MarkerParams::Tickets(_));
        self.ack_tickets.is_none() && (self.tickets.is_some() || self.mark.as_ref().is_some_and(takes))
    }

    /// Whether acknowledgements say how many those are.
    #[must_use]
    pub fn follows_sink(&self) -> bool {
        self.writes_tickets() && self.tickets.is_none()
    }
}

/// Which packets that match a rule are one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// Those with the same addresses, protocol and ports.
    #[default]
    Each,
    /// All of them.
    One,
}

/// A secret that gateways share; its `Debug` does not tell it.
#[derive(Clone, PartialEq, Eq)]
pub struct ReportKey(pub(super) Vec<u8>);

impl ReportKey {
    /// 16 to 64 bytes.
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

impl GatewayConfig {
    /// Whose a flow is, as disciplines number customers: those of [`GatewayConfig::customers`] from 1 on.
    #[must_use]
    pub fn customer_of(&self, flow: &Treatment) -> CustomerId {
        customers::number(&self.customers, flow.customer.as_deref())
    }

    /// Weights by that number. That of all flows without a customer is 1.
    #[must_use]
    pub fn customer_weights(&self) -> Vec<Weight> {
        customers::weights(&self.customers)
    }
}
