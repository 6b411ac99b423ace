//! The implementation of the directions of a gateway's configuration by the kernel, or the reasons why it
//! cannot.

use std::net::Ipv4Addr;

use apportion_core::limit::Limit;
use apportion_core::packet::{CustomerId, LabelKind};
use apportion_core::units::{Bytes, Ratio, Span};
use apportion_scenario::gateway::classifier::Prefix;
use apportion_scenario::gateway::{Direction, DirectionConfig, GatewayConfig, RuleConfig, TrustedSources};

use crate::classes::ClassTree;
use crate::hierarchy::HierarchySettings;
use crate::plan::{Plan, Refusal};
use crate::program::End;
use crate::settings::CoreSettings;
use crate::tickets::TicketSettings;

/// The bytes that HTB charges for a frame besides its IP packet.
const ETHERNET: Bytes = Bytes::new(14);

/// The implementation of a direction in the kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct DirectionPlan {
    /// The queue.
    pub tree: ClassTree,
    /// The program before the queue.
    pub program: Program,
}

/// A program before a queue.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// No program: all packets share one queue.
    None,
    /// The core of CSFQ.
    Core(Box<CoreSettings>),
    /// The core of HCSFQ.
    Hierarchy(Box<HierarchyPlan>),
    /// TRED, with an exchange if the direction has tickets.
    Tickets(Box<TicketSettings>),
    /// Classes of inside addresses.
    Prefixes {
        /// The end of a packet that holds the inside address.
        end: End,
        /// The prefixes, each with its class.
        of: Vec<(Prefix, u32)>,
    },
}

/// A core of HCSFQ with its customers.
#[derive(Clone, Debug, PartialEq)]
pub struct HierarchyPlan {
    /// The constants.
    pub settings: HierarchySettings,
    /// The end of a packet that holds the inside address.
    pub end: End,
    /// The prefixes, each with the number of its customer.
    pub of: Vec<(Prefix, u32)>,
    /// The names of customers, by number; all others have an empty name.
    pub names: Vec<String>,
}

impl HierarchyPlan {
    /// Whether two plans differ only in constants and weights: the same customers with the same addresses.
    #[must_use]
    pub fn has_the_customers_of(&self, other: &Self) -> bool {
        (self.end, &self.of, &self.names) == (other.end, &other.of, &other.names)
    }
}

/// Returns the implementation of both directions of `config`, up and down.
///
/// # Errors
/// All features that the kernel cannot implement, one problem each, with the key.
pub fn plan(config: &GatewayConfig) -> Result<[DirectionPlan; 2], Vec<String>> {
    let mut problems = Vec::new();
    for (rule, key) in config.rules.iter().filter_map(|rule| Some((rule, user_space_key(rule)?))) {
        problems.push(format!(
            "rule `{}`: the kernel backend has no `{key}`; leave it out, or use the user-space backend",
            rule.name
        ));
    }
    let mut planned = |direction: Direction, own: &DirectionConfig| {
        let place = direction.name();
        let found = unplanned(own).map(|message| format!("{place}.{message}"));
        problems.extend(found);
        let plan = direction_plan(config, own, direction).map_err(|why| format!("{place}.queue: {why}"));
        plan.map_err(|why| problems.push(why)).ok()
    };
    let plans = [planned(Direction::Up, &config.up), planned(Direction::Down, &config.down)];
    match plans {
        [Some(up), Some(down)] if problems.is_empty() => Ok([up, down]),
        _ => Err(problems),
    }
}

/// The key of a rule that requires user space to read each packet.
fn user_space_key(rule: &RuleConfig) -> Option<&'static str> {
    let gives = &rule.gives;
    let keys = [
        (gives.customer.is_some(), "customer"),
        (gives.guarantee.as_bit() > 0, "guarantee"),
        (gives.label_limit.is_some(), "label_limit"),
        (gives.tickets.is_some(), "tickets"),
        (gives.ack_tickets.is_some(), "ack_tickets"),
        (gives.mark.is_some(), "mark"),
    ];
    keys.into_iter().find(|(is_given, _)| *is_given).map(|(_, key)| key)
}

/// The keys of a direction that the kernel cannot implement, with alternatives.
fn unplanned(own: &DirectionConfig) -> impl Iterator<Item = &'static str> {
    let core = own.queue.params.rate_labels();
    let leaves_labels = core.is_some_and(|(_, egress)| !egress);
    let is_tred = own.queue.params.label_required() == Some(LabelKind::Tickets);
    let labels = &own.labels;
    let checks = [
        (own.auto.is_some(), "rate: only the user-space backend follows the link; write a rate"),
        (own.overhead != ETHERNET, "overhead: must be \"14B\": HTB charges Ethernet frames"),
        (own.delay > Span::ZERO, "delay: the kernel backend adds none; leave it out"),
        (own.loss > Ratio::ZERO, "loss: the kernel backend loses none; leave it out"),
        (
            own.exchange.is_some() && !(is_tred && own.tickets.is_some()),
            "tickets: in the kernel only a queue `tred` exchanges them, for `tickets`; leave them and `ack_tickets` out",
        ),
        (
            own.ack_tickets.is_some(),
            "ack_tickets: only the user-space backend follows what acknowledgements carry; leave it out",
        ),
        (
            core.is_some() && labels.reads != TrustedSources::All,
            "labels: the core in the kernel trusts all labels; write { reads = true }",
        ),
        (
            leaves_labels && !labels.writes,
            "labels: write { reads = true, writes = true }, or egress = true for the queue, which takes labels off",
        ),
        (
            is_tred && (labels.reads != TrustedSources::All || !labels.writes),
            "labels: tred in the kernel trusts all labels and leaves them on packets; write { reads = true, writes = true }",
        ),
        (
            core.is_none() && !is_tred && (labels.reads.is_any() || labels.writes),
            "labels: in the kernel only tred and a core of csfq, mcsfq or hcsfq read and write them; leave them out",
        ),
    ];
    checks.into_iter().filter(|(refused, _)| *refused).map(|(_, message)| message)
}

fn direction_plan(
    config: &GatewayConfig,
    own: &DirectionConfig,
    direction: Direction,
) -> Result<DirectionPlan, Refusal> {
    let end = match direction {
        Direction::Up => End::Source,
        Direction::Down => End::Destination,
    };
    match Plan::of(&own.queue.params, own.rate)? {
        Plan::Fifo(limit) => {
            Ok(DirectionPlan { tree: ClassTree::fifo(own.rate, limit), program: Program::None })
        }
        Plan::Core(settings) => {
            Ok(DirectionPlan { tree: behind(settings.limit(), own), program: Program::Core(settings) })
        }
        Plan::Hierarchy(settings) => {
            let tree = behind(settings.core.limit(), own);
            let customers = settings.with_customers(&config.customer_weights());
            let of = numbered(config, 0, |customer| customer.0);
            let plan = HierarchyPlan { settings: customers?, end, of, names: config.customer_names() };
            Ok(DirectionPlan { tree, program: Program::Hierarchy(Box::new(plan)) })
        }
        Plan::Tickets(settings) => {
            let tree = behind(settings.limit(), own);
            let exchange = own.exchange.as_ref().zip(own.tickets);
            let settings = match exchange {
                Some((params, issued)) => settings.with_exchange(&params.params, issued),
                None => Ok(*settings),
            };
            Ok(DirectionPlan { tree, program: Program::Tickets(Box::new(settings?)) })
        }
        Plan::Classes(tree) => {
            let of = prefixes(config, &tree);
            Ok(DirectionPlan { tree: *tree, program: Program::Prefixes { end, of } })
        }
        Plan::Weights => Err(Refusal::UnknownFlows),
    }
}

/// The queue behind a program whose virtual queue holds `limit`. The program drops what exceeds its virtual
/// queue; this queue absorbs the difference of the two clocks.
fn behind(limit: Bytes, own: &DirectionConfig) -> ClassTree {
    ClassTree::fifo(own.rate, Limit::Bytes(limit + limit))
}

/// The class of each prefix: the class of its customer or of the others, or 0 if its packets are dropped.
fn prefixes(config: &GatewayConfig, tree: &ClassTree) -> Vec<(Prefix, u32)> {
    let names = config.customer_names();
    let class = |customer: CustomerId| {
        let own = names.get(customer.0 as usize).and_then(|name| tree.class_of(name));
        own.or(tree.others()).unwrap_or(0)
    };
    numbered(config, tree.others().unwrap_or(0), class)
}

/// Numbers the prefixes. The programs treat IPv4 addresses as IPv4-mapped IPv6 addresses, so that all of IPv4
/// gets the number of the `others` unless the file says otherwise: a short IPv6 prefix such as `::/0` would
/// contain it too.
fn numbered(config: &GatewayConfig, others: u32, number: impl Fn(CustomerId) -> u32) -> Vec<(Prefix, u32)> {
    let mut all: Vec<_> =
        config.addresses.iter().map(|(prefix, customer)| (prefix, number(customer))).collect();
    if !all.iter().any(|(prefix, _)| prefix.is_ipv4() && prefix.length() == 0) {
        all.push((Prefix::around(Ipv4Addr::UNSPECIFIED.into(), 0), others));
    }
    all
}
