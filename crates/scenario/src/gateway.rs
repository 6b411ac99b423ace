//! The configuration of a gateway: a bump in the wire between two network interfaces, with a queue and a rate
//! for each direction, and rules that say what flows are given.
//!
//! It is read with the machinery of scenarios, and every error is told at once. Nothing here looks at the
//! machine: whether an interface exists is the gateway's to find out.
//!
//! | file | holds |
//! |---|---|
//! | `tables` | every key, with its documentation |
//! | `forms` | addresses, ports, protocols and other values that are written as short strings |
//! | `rules` | the list `rule`: which flows, and what they are given |
//! | `directions` | the tables `up` and `down` |
//! | `checks` | what keys of different tables must agree on |
//! | `written` | a configuration as TOML, and what differs between two |
//! | `describe` | the keys as Markdown |

mod checks;
pub mod classifier;
mod describe;
mod directions;
mod forms;
mod rules;
mod tables;
mod written;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use crate::gateway::classifier::{Rule, RuleSet};
use apportion_core::mark::MarkerParams;
use apportion_core::mark::currency_exchange::ExchangeParams;
use apportion_core::packet::CustomerId;
use apportion_core::packet::FlowClass;
use apportion_core::system::{Catalog, DisciplineParams};
use apportion_core::units::{Bytes, Rate, Ratio, Span, TicketRate, Weight};

use crate::customers;
use crate::keys::{Fields, walk_root};
use crate::model::Customer;
use crate::problem::{Problem, Problems};
use crate::selection::Part;
use crate::text::{self, Item, Table};

pub use crate::direction::Direction;
pub use checks::COUNTED_APART;
pub use describe::reference;
pub use written::{Change, Difference, Pinned, Setting};

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
    fn new(catalog: &Catalog, part: Part, item: &Item, params: T) -> Self {
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
pub struct ReportKey(Vec<u8>);

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
    /// Reads and checks a configuration file; `origin` is the path that messages name.
    ///
    /// # Errors
    /// Everything that is wrong with the file, in the order of its lines.
    pub fn load(text: &str, origin: &Path) -> Result<Self, Vec<Problem>> {
        Self::load_with(&Catalog::default(), text, origin)
    }

    /// As [`load`](Self::load), with the disciplines of `catalog`.
    ///
    /// # Errors
    /// Everything that is wrong with the file, in the order of its lines.
    pub fn load_with(catalog: &Catalog, text: &str, origin: &Path) -> Result<Self, Vec<Problem>> {
        let mut problems = Problems::default();
        let root = text::parse(text, &mut problems);
        let read = problems.is_empty().then(|| read(&root, stem(origin), catalog, &mut problems)).flatten();
        match read.filter(|_| problems.is_empty()) {
            Some(config) => Ok(config),
            None => Err(problems.into_vec(&origin.display().to_string())),
        }
    }

    /// The title of a gateway whose file says this, also one that is wrong elsewhere.
    #[must_use]
    pub fn title_of(text: &str, origin: &Path) -> String {
        let root = text::parse(text, &mut Problems::default());
        root.get("title").and_then(Item::as_text).map_or_else(|| stem(origin), ToOwned::to_owned)
    }

    /// What happens in this direction.
    #[must_use]
    pub const fn direction(&self, direction: Direction) -> &DirectionConfig {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

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

/// The title of a gateway whose file has none.
fn stem(origin: &Path) -> String {
    origin.file_stem().map_or_else(|| "gateway".to_owned(), |stem| stem.to_string_lossy().into())
}

/// Checks the whole file; every slip goes to `problems`. `None` only if there were some.
fn read(root: &Table, name: String, catalog: &Catalog, problems: &mut Problems) -> Option<GatewayConfig> {
    let fields = walk_root(root, tables::ROOT, problems);
    let seed = fields.count("seed", 1, problems);
    let [inside, outside] = ["inside", "outside"].map(|key| fields.form(key, forms::interface, problems));
    if let (Some(inside), Some(outside)) = (&inside, &outside)
        && inside == outside
    {
        let message = format!("`{inside}` is the interface towards the inside already; write another one");
        fields.refuse("outside", message, problems);
    }
    let metrics = fields.form("metrics", forms::metrics, problems);
    let address = fields.form("address", forms::own_address, problems);
    let report_key = fields.form("report_key", forms::key, problems).map(ReportKey);
    let flow_idle = fields.span("flow_idle", 1, problems);
    let flows = fields.count("flows", 1, problems).and_then(|flows| usize::try_from(flows).ok());

    let rules = rules::read(&fields, problems);
    checks::rules(&rules.all, problems);
    let named = rules.all.iter().filter_map(|rule| rule.config.gives.customer.as_deref());
    // Without the rules that were refused, nobody knows whom they would have named.
    let customers =
        if rules.complete { customers::read(&fields, named, "rule", problems) } else { Vec::new() };
    let [up, down] = Direction::BOTH.map(|direction| directions::read(direction, &fields, catalog, problems));
    for direction in [&up, &down].into_iter().flatten() {
        checks::guarantees(direction, &rules.all, problems);
    }
    let (mut up, mut down) = (up?, down?);
    checks::reports(&fields, [&up, &down], problems);
    directions::pair(&mut up, &mut down, problems);
    if rules.complete {
        checks::labels([&up, &down], &rules.all, problems);
    }
    let rules: Vec<RuleConfig> = rules.all.into_iter().map(|rule| rule.config).collect();
    for direction in [&mut up, &mut down] {
        direction.config.rules = class_rules(direction.direction, &rules, &fields, problems)?;
    }
    Some(GatewayConfig {
        title: fields.text("title").map_or(name, ToOwned::to_owned),
        seed: seed?,
        inside: inside?,
        outside: outside?,
        metrics,
        address,
        report_key,
        flow_idle: flow_idle?,
        flows: flows?,
        up: up.config,
        down: down.config,
        rules,
        customers,
    })
}

fn class_rules(
    direction: Direction,
    rules: &[RuleConfig],
    root: &Fields<'_>,
    problems: &mut Problems,
) -> Option<RuleSet> {
    let own = rules.iter().enumerate().filter(|(_, rule)| rule.is_for(direction));
    let rules = RuleSet::new(own.map(|(number, rule)| (number, rule.when.clone())).collect());
    rules.map_err(|error| root.refuse("rule", error.message, problems)).ok()
}
