//! The implementation of the queue of a scenario's link by the kernel, or the reasons why it cannot.

use apportion_core::limit::Limit;
use apportion_core::packet::{CustomerId, FlowId, LabelKind};
use apportion_core::param::ParamError;
use apportion_core::system::DisciplineParams;
use apportion_core::units::{Bytes, Rate, Weight};
use apportion_linux::netlink::{Netlink, NetlinkError};
use apportion_runtime::connections::Numbers;
use apportion_scenario::model::{Flow, Link, LinkId, Scenario, Setting};

use super::stand_in;
use crate::classes::ClassTree;
use crate::hierarchy::HierarchySettings;
use crate::plan::{Plan, Refusal};
use crate::settings::CoreSettings;
use crate::tickets::TicketSettings;
use crate::weights::{self, WeightsError};

/// The links that the kernel implements.
pub fn watched(scenario: &Scenario) -> impl Iterator<Item = (LinkId, &Link)> {
    (0..).map(LinkId).zip(&scenario.links).filter(|(_, link)| link.watched)
}

/// Whether packets of a flow or their ACKs cross a link.
fn crosses(scenario: &Scenario, flow: &Flow, link: LinkId) -> bool {
    [&flow.path, &flow.back].into_iter().any(|path| scenario.may_cross(flow, path, link))
}

/// Checks all links that the kernel is to implement.
pub fn check(scenario: &Scenario) -> Result<(), ParamError> {
    if watched(scenario).next().is_none() {
        let why =
            "the kernel carries out the queues of watched links, and no link is watched; write watch = true";
        return Err(ParamError::new("link", why));
    }
    watched(scenario).try_for_each(|(id, link)| check_link(scenario, id, link))?;
    let link_of = |id: &LinkId| scenario.links.get(id.index()).filter(|link| link.watched);
    for change in &scenario.changes {
        match &change.to {
            Setting::LinkQueue(id, _) => {
                if let Some(link) = link_of(id) {
                    let why = "a queue of the kernel cannot be replaced while packets wait; leave the change out, or use \
                               the user-space backend";
                    return Err(ParamError::new(&format!("link.{}.queue", link.name), why));
                }
            }
            Setting::LinkRate(id, rate) => {
                if let Some(link) = link_of(id) {
                    check_rate(link, *rate)?;
                }
            }
            _ => (),
        }
    }
    Ok(())
}

fn check_link(scenario: &Scenario, id: LinkId, link: &Link) -> Result<(), ParamError> {
    let refuse = |key: &str, why: String| Err(ParamError::new(&format!("link.{}.{key}", link.name), why));
    if link.trace.is_some() {
        let why = "HTB sends at a rate, not at the instants of a trace; write `rate`, or use the user-space backend";
        return refuse("trace", why.to_owned());
    }
    check_rate(link, link.rate)?;
    let flows = || scenario.flows.iter().filter(|flow| crosses(scenario, flow, id));
    let plan = Plan::of(&link.queue, link.rate);
    let weights: Vec<Weight> = flows().map(|flow| flow.weight).collect();
    let planned = match plan {
        Ok(Plan::Core(_) | Plan::Hierarchy(_) | Plan::Tickets(_)) => {
            let least = |flow: &Flow| flow.transport.ack().map_or(flow.transport.packet(), |ack| ack);
            match flows().map(least).find(|size| !stand_in::has_room(*size)) {
                Some(size) => Err(format!(
                    "packets of {size} have no room for a label in the kernel, which takes {} B; make them longer",
                    stand_in::HEADERS
                )),
                None => carried_out(&link.queue, link.rate, &Parts::of(scenario, Vec::new())).map(drop),
            }
        }
        Ok(Plan::Weights) => {
            weights::Tree::new(link.rate, &weights).map(drop).map_err(|error| error.to_string())
        }
        Ok(Plan::Classes(_) | Plan::Fifo(_)) => Ok(()),
        Err(refusal) => Err(format!("{refusal}, or leave `watch` out, so that the queue is of user space")),
    };
    planned.or_else(|why| refuse("queue", why))
}

fn check_rate(link: &Link, rate: Rate) -> Result<(), ParamError> {
    let refuse = |why: String| Err(ParamError::new(&format!("link.{}.rate", link.name), why));
    // HTB computes in bytes per second.
    if rate < Rate::from_kbit(8) {
        return refuse(format!("{rate} is too little for HTB of the kernel; write 8kbit or more"));
    }
    // If the queue cannot be implemented at any rate, the check of the link reports it.
    match (Plan::of(&link.queue, rate), Plan::of(&link.queue, link.rate)) {
        (Err(refusal), Ok(_)) => refuse(refusal.to_string()),
        _ => Ok(()),
    }
}

/// A tree of HTB.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A single FIFO, or the classes of a file.
    Classes(ClassTree),
    /// One leaf for each flow.
    Weights(weights::Tree),
}

impl Tree {
    pub fn install(&self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        match self {
            Self::Classes(tree) => tree.install(netlink, device),
            Self::Weights(tree) => tree.install(netlink, device).or_else(of_kernel),
        }
    }

    /// Changes the numbers of the queue of a device that has the tree `before`.
    pub fn change(&self, before: &Self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        match (self, before) {
            (Self::Classes(tree), Self::Classes(before)) => tree.change(before, netlink, device),
            (Self::Weights(tree), Self::Weights(before)) => {
                tree.change(before, netlink, device).or_else(of_kernel)
            }
            // The kind of a queue does not change.
            _ => Ok(()),
        }
    }
}

/// Extracts the kernel's error; the other errors occur only when a tree is created.
fn of_kernel(error: WeightsError) -> Result<(), NetlinkError> {
    match error {
        WeightsError::Kernel(error) => Err(error),
        WeightsError::TooMany(_) | WeightsError::TooSlow { .. } => Ok(()),
    }
}

/// A program before a tree.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    None,
    /// The core of CSFQ.
    Core(CoreSettings),
    /// The core of HCSFQ.
    Hierarchy(HierarchySettings),
    /// TRED. Tickets are exchanged after the queue, by the same code as at other links.
    Tickets(TicketSettings),
}

/// The flows and customers of a link.
#[derive(Clone, Debug, PartialEq)]
struct Parts {
    /// The ids of the flows that cross the link, and their weights.
    weighted: Vec<(FlowId, Weight)>,
    smallest_weight: Weight,
    /// The weights of customers, by number.
    customers: Vec<Weight>,
}

impl Parts {
    /// Returns the parts of a scenario, for these flows.
    fn of(scenario: &Scenario, weighted: Vec<(FlowId, Weight)>) -> Self {
        // Later weights too: a core in the kernel is not notified of changes.
        let later = scenario.changes.iter().filter_map(|change| match change.to {
            Setting::FlowWeight(_, weight) => Some(weight),
            _ => None,
        });
        let smallest = weighted.iter().map(|(_, weight)| *weight).chain(later);
        let smallest = smallest.reduce(|least, weight| if weight < least { weight } else { least });
        Self {
            weighted,
            smallest_weight: smallest.unwrap_or(Weight::ONE),
            customers: scenario.customer_weights(),
        }
    }
}

/// The implementation of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    params: DisciplineParams,
    pub rate: Rate,
    pub tree: Tree,
    pub program: Program,
    /// The class of each flow by its id; none: its packets are dropped.
    pub classes: Vec<Option<u32>>,
    /// The customer of each flow by its id.
    pub customers: Vec<CustomerId>,
    parts: Parts,
}

impl LinkPlan {
    /// Returns the plan of link `id`, for flows of these numbers.
    pub fn of(scenario: &Scenario, id: LinkId, numbers: &Numbers) -> Result<Self, String> {
        let link = &scenario.links[id.index()];
        let crossing = || scenario.flows.iter().enumerate().filter(|(_, flow)| crosses(scenario, flow, id));
        let ids =
            |(at, flow): (usize, &Flow)| numbers.ids(at).map(FlowId).map(|id| (id, flow.weight)).collect();
        let parts = Parts::of(scenario, crossing().flat_map::<Vec<_>, _>(ids).collect());
        let params = link.queue.clone();
        let (tree, program) = carried_out(&params, link.rate, &parts)?;
        let classes = match &tree {
            Tree::Weights(tree) => {
                let mut classes = vec![None; numbers.id_count()];
                for (at, (id, _)) in parts.weighted.iter().enumerate() {
                    classes[id.index()] = tree.class(at);
                }
                classes
            }
            Tree::Classes(tree) => numbers.by_id(scenario, |flow| {
                let own = flow.customer.as_deref().and_then(|name| tree.class_of(name));
                own.or(tree.others())
            }),
        };
        let customers = numbers.by_id(scenario, |flow| scenario.customer_of(flow));
        Ok(Self { params, rate: link.rate, tree, program, classes, customers, parts })
    }

    /// The size of the buffer, as in the discipline of the link.
    pub fn limit(&self) -> Option<Limit> {
        self.params.limit_at(self.rate)
    }

    /// The kind of label that the program reads.
    pub const fn kind(&self) -> LabelKind {
        match self.program {
            Program::Tickets(_) => LabelKind::Tickets,
            Program::None | Program::Core(_) | Program::Hierarchy(_) => LabelKind::Rate,
        }
    }

    /// Returns the same plan for another rate of the link.
    pub fn at(&self, rate: Rate) -> Result<Self, String> {
        let (tree, program) = carried_out(&self.params, rate, &self.parts)?;
        Ok(Self { rate, tree, program, ..self.clone() })
    }

    /// Returns the same plan with another weight of a flow; none if the plan has no weights or not this flow.
    pub fn with_weight(&self, flow: FlowId, weight: Weight) -> Option<Result<Self, String>> {
        if !matches!(self.tree, Tree::Weights(_)) {
            return None;
        }
        let at = self.parts.weighted.iter().position(|(id, _)| *id == flow)?;
        let mut plan = self.clone();
        plan.parts.weighted[at].1 = weight;
        Some(plan.at(self.rate))
    }
}

fn carried_out(params: &DisciplineParams, rate: Rate, parts: &Parts) -> Result<(Tree, Program), String> {
    match Plan::of(params, rate).map_err(|refusal| refusal.to_string())? {
        Plan::Fifo(limit) => Ok((Tree::Classes(ClassTree::fifo(rate, limit)), Program::None)),
        Plan::Classes(tree) => Ok((Tree::Classes(*tree), Program::None)),
        Plan::Core(settings) => {
            let settings = of_link(*settings, parts);
            Ok((behind(rate, settings.limit()), Program::Core(settings)))
        }
        Plan::Hierarchy(settings) => {
            let settings = settings.with_customers(&parts.customers);
            let mut settings = settings.map_err(|why| Refusal::from(why).to_string())?;
            settings.core = of_link(settings.core, parts);
            Ok((behind(rate, settings.core.limit()), Program::Hierarchy(settings)))
        }
        Plan::Tickets(settings) => {
            let mut settings = *settings;
            settings.overhead = Bytes::ZERO;
            Ok((behind(rate, settings.limit()), Program::Tickets(settings)))
        }
        Plan::Weights => {
            let weights: Vec<Weight> = parts.weighted.iter().map(|(_, weight)| *weight).collect();
            let tree = weights::Tree::new(rate, &weights).map_err(|error| error.to_string())?;
            let limit = params.limit_at(rate);
            Ok((Tree::Weights(limit.into_iter().fold(tree, weights::Tree::limited)), Program::None))
        }
    }
}

/// Adapts the settings of a core to these flows. A stand-in is as long as its packet is charged.
fn of_link(mut settings: CoreSettings, parts: &Parts) -> CoreSettings {
    settings.smallest_weight = parts.smallest_weight;
    settings.overhead = Bytes::ZERO;
    settings
}

/// The queue behind a program, which drops what exceeds its virtual queue of `limit`; this queue absorbs the
/// difference of the two clocks.
fn behind(rate: Rate, limit: Bytes) -> Tree {
    Tree::Classes(ClassTree::fifo(rate, Limit::Bytes(limit + limit)))
}
