//! How the kernel carries out the queue of a link of a scenario, or why it cannot.

use apportion_core::limit::Limit;
use apportion_core::packet::FlowId;
use apportion_core::system::DisciplineParams;
use apportion_core::units::{Bytes, Rate, Weight};
use apportion_linux::netlink::{Netlink, NetlinkError};
use apportion_runtime::connections::Numbers;
use apportion_scenario::model::{Flow, Link, LinkId, Scenario, Setting};

use super::stand_in;
use crate::classes::ClassTree;
use crate::plan::Plan;
use crate::settings::CoreSettings;
use crate::weights::{self, WeightsError};

/// The links that the kernel carries out.
pub fn watched(scenario: &Scenario) -> impl Iterator<Item = (LinkId, &Link)> {
    (0..).map(LinkId).zip(&scenario.links).filter(|(_, link)| link.watched)
}

/// Whether packets of a flow, or what acknowledges them, cross a link.
fn crosses(flow: &Flow, link: LinkId) -> bool {
    flow.path.contains(&link) || flow.back.contains(&link)
}

/// Checks all links that the kernel is to carry out.
pub fn check(scenario: &Scenario) -> Result<(), (String, String)> {
    if watched(scenario).next().is_none() {
        let why =
            "the kernel carries out the queues of watched links, and no link is watched; write watch = true";
        return Err(("link".to_owned(), why.to_owned()));
    }
    watched(scenario).try_for_each(|(id, link)| check_link(scenario, id, link))?;
    let link_of = |id: &LinkId| scenario.links.get(id.index()).filter(|link| link.watched);
    for change in &scenario.changes {
        match &change.to {
            Setting::LinkQueue(id, _) => {
                if let Some(link) = link_of(id) {
                    let why = "a queue of the kernel cannot be replaced while packets wait; leave the change out, or use \
                               the user-space backend";
                    return Err((format!("link.{}.queue", link.name), why.to_owned()));
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

/// The program of HCSFQ knows customers by their addresses only.
const NO_CUSTOMERS: &str = "the kernel backend of the lab cannot carry out `hcsfq`: its program knows customers by addresses, which \
     packets of the lab do not have; use the user-space backend";

/// Packets between the devices of the lab have labels of rates only.
const NO_TICKETS: &str = "the kernel backend of the lab cannot carry out `tred`: what it sends through the kernel has no tickets; use \
     the user-space backend";

fn check_link(scenario: &Scenario, id: LinkId, link: &Link) -> Result<(), (String, String)> {
    let refuse = |key: &str, why: String| Err((format!("link.{}.{key}", link.name), why));
    if link.trace.is_some() {
        let why = "HTB sends at a rate, not at the instants of a trace; write `rate`, or use the user-space backend";
        return refuse("trace", why.to_owned());
    }
    check_rate(link, link.rate)?;
    let flows = || scenario.flows.iter().filter(|flow| crosses(flow, id));
    let plan = Plan::of(&link.queue, link.rate);
    let weights: Vec<Weight> = flows().map(|flow| flow.weight).collect();
    let planned = match plan {
        Ok(Plan::Core(_)) => {
            let least = |flow: &Flow| flow.transport.ack().map_or(flow.transport.packet(), |ack| ack);
            match flows().map(least).find(|size| !stand_in::has_room(*size)) {
                Some(size) => Err(format!(
                    "packets of {size} have no room for a label in the kernel, which takes {} B; make them longer",
                    stand_in::HEADERS
                )),
                None => Ok(()),
            }
        }
        Ok(Plan::Weights) => {
            weights::Tree::new(link.rate, &weights).map(drop).map_err(|error| error.to_string())
        }
        Ok(Plan::Classes(_) | Plan::Fifo(_)) => Ok(()),
        Ok(Plan::Tickets(_)) => {
            Err(format!("{NO_TICKETS}, or leave `watch` out, so that the queue is of user space"))
        }
        Ok(Plan::Hierarchy(_)) => {
            Err(format!("{NO_CUSTOMERS}, or leave `watch` out, so that the queue is of user space"))
        }
        Err(refusal) => Err(format!("{refusal}, or leave `watch` out, so that the queue is of user space")),
    };
    planned.or_else(|why| refuse("queue", why))
}

fn check_rate(link: &Link, rate: Rate) -> Result<(), (String, String)> {
    let refuse = |why: String| Err((format!("link.{}.rate", link.name), why));
    // HTB computes in bytes a second.
    if rate < Rate::from_kbit(8) {
        return refuse(format!("{rate} is too little for HTB of the kernel; write 8kbit or more"));
    }
    // Of those that it cannot carry out at any rate, the check of the link says so.
    match (Plan::of(&link.queue, rate), Plan::of(&link.queue, link.rate)) {
        (Err(refusal), Ok(_)) => refuse(refusal.to_string()),
        _ => Ok(()),
    }
}

/// A tree of HTB.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// One for all, or the classes of a file.
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

    /// Gives the queue `before` of a device these numbers.
    pub fn change(&self, before: &Self, netlink: &mut Netlink, device: u32) -> Result<(), NetlinkError> {
        match (self, before) {
            (Self::Classes(tree), Self::Classes(before)) => tree.change(before, netlink, device),
            (Self::Weights(tree), Self::Weights(before)) => {
                tree.change(before, netlink, device).or_else(of_kernel)
            }
            // One queue keeps its kind.
            _ => Ok(()),
        }
    }
}

/// The kernel's part of an error of weights; the others are of making a tree.
fn of_kernel(error: WeightsError) -> Result<(), NetlinkError> {
    match error {
        WeightsError::Kernel(error) => Err(error),
        WeightsError::TooMany(_) | WeightsError::TooSlow { .. } => Ok(()),
    }
}

/// How a link is carried out.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPlan {
    params: DisciplineParams,
    pub rate: Rate,
    pub tree: Tree,
    pub core: Option<CoreSettings>,
    /// The class of each flow by its id; none: its packets are dropped.
    pub classes: Vec<Option<u32>>,
    /// The ids that have leaves by weight, and their weights.
    weighted: Vec<(FlowId, Weight)>,
    smallest_weight: Weight,
}

impl LinkPlan {
    /// That of link `id`, for flows of these numbers.
    pub fn of(scenario: &Scenario, id: LinkId, numbers: &Numbers) -> Result<Self, String> {
        let link = &scenario.links[id.index()];
        let crossing = || scenario.flows.iter().enumerate().filter(|(_, flow)| crosses(flow, id));
        let ids =
            |(at, flow): (usize, &Flow)| numbers.ids(at).map(FlowId).map(|id| (id, flow.weight)).collect();
        let weighted: Vec<(FlowId, Weight)> = crossing().flat_map::<Vec<_>, _>(ids).collect();
        // Later ones too: a core in the kernel hears of no change.
        let later = scenario.changes.iter().filter_map(|change| match change.to {
            Setting::FlowWeight(_, weight) => Some(weight),
            _ => None,
        });
        let smallest = weighted.iter().map(|(_, weight)| *weight).chain(later);
        let smallest = smallest.reduce(|least, weight| if weight < least { weight } else { least });
        let params = link.queue.clone();
        let smallest_weight = smallest.unwrap_or(Weight::ONE);
        let (tree, core) = carried_out(&params, link.rate, &weighted, smallest_weight)?;
        let classes = match &tree {
            Tree::Weights(tree) => {
                let mut classes = vec![None; numbers.id_count()];
                for (at, (id, _)) in weighted.iter().enumerate() {
                    classes[id.index()] = tree.class(at);
                }
                classes
            }
            Tree::Classes(tree) => numbers.by_id(scenario, |flow| {
                let own = flow.customer.as_deref().and_then(|name| tree.class_of(name));
                own.or(tree.others())
            }),
        };
        Ok(Self { params, rate: link.rate, tree, core, classes, weighted, smallest_weight })
    }

    /// The size of the buffer, as the discipline of the link would have it.
    pub fn limit(&self) -> Option<Limit> {
        self.params.limit_at(self.rate)
    }

    /// The same for another rate of the link.
    pub fn at(&self, rate: Rate) -> Result<Self, String> {
        let (tree, core) = carried_out(&self.params, rate, &self.weighted, self.smallest_weight)?;
        Ok(Self { rate, tree, core, ..self.clone() })
    }

    /// The same with another weight of a flow; none if it has no weights or not this flow.
    pub fn with_weight(&self, flow: FlowId, weight: Weight) -> Option<Result<Self, String>> {
        if !matches!(self.tree, Tree::Weights(_)) {
            return None;
        }
        let at = self.weighted.iter().position(|(id, _)| *id == flow)?;
        let mut plan = self.clone();
        plan.weighted[at].1 = weight;
        Some(plan.at(self.rate))
    }
}

fn carried_out(
    params: &DisciplineParams,
    rate: Rate,
    weighted: &[(FlowId, Weight)],
    smallest_weight: Weight,
) -> Result<(Tree, Option<CoreSettings>), String> {
    match Plan::of(params, rate).map_err(|refusal| refusal.to_string())? {
        Plan::Fifo(limit) => Ok((Tree::Classes(ClassTree::fifo(rate, limit)), None)),
        Plan::Classes(tree) => Ok((Tree::Classes(*tree), None)),
        Plan::Core(settings) => {
            let mut settings = *settings;
            settings.smallest_weight = smallest_weight;
            // A stand-in is as long as its packet is charged.
            settings.overhead = Bytes::ZERO;
            // The program drops what its virtual queue does not hold: this one is for the difference of the two clocks.
            let limit = Limit::Bytes(settings.limit() + settings.limit());
            Ok((Tree::Classes(ClassTree::fifo(rate, limit)), Some(settings)))
        }
        Plan::Hierarchy(_) => Err(NO_CUSTOMERS.to_owned()),
        Plan::Tickets(_) => Err(NO_TICKETS.to_owned()),
        Plan::Weights => {
            let weights: Vec<Weight> = weighted.iter().map(|(_, weight)| *weight).collect();
            let tree = weights::Tree::new(rate, &weights).map_err(|error| error.to_string())?;
            let limit = params.limit_at(rate);
            Ok((Tree::Weights(limit.into_iter().fold(tree, weights::Tree::limited)), None))
        }
    }
}
