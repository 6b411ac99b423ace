//! Agreements: who pays whom for access, and the rights to links that follow.
//!
//! Brown et al., "Principles for Internet congestion management", SIGCOMM 2024, as we read its abstract and
//! published descriptions. Money goes up to providers: a path goes up, over at most one link between peers,
//! and down. On a link that goes up, or between peers, senders have the rights: those who pay its tail and
//! whose packets enter there are the children of the link, by the weights of their agreements; below each of
//! them those that pay it, down to the host that sends. On a link that goes down receivers have the rights:
//! those who pay its head, down to the host that receives. A node's own packets count as one more child of
//! weight 1. Links between two nodes without an agreement are between peers, which is our assumption.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::fairness::Right;
use apportion_core::packet::MAX_CUSTOMERS;
use apportion_core::system::any::SchedulerParams;
use apportion_core::system::{DisciplineKind, DisciplineParams};
use apportion_core::units::{Rate, Weight};

use crate::keys::{Fields, walk};
use crate::labels::written;
use crate::model::{Agreement, Link, LinkId, Node, NodeId, Path, Scenario, Setting};
use crate::names::position;
use crate::problem::{Place, Problems, did_you_mean};
use crate::tables::AGREEMENT;
use crate::text::join;

/// The direction of a link in which money does or does not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Its tail pays its head.
    Up,
    /// Neither pays.
    Across,
    /// Its head pays its tail.
    Down,
}

/// The rights to a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRights {
    /// The vertices below the link, each after its parent.
    pub vertices: Vec<Right>,
    /// The flows that cross the link, and the vertex of each; none: the link itself.
    pub of_flows: Vec<(usize, Option<u32>)>,
}

/// The agreements by their two nodes.
type ByPair = BTreeMap<[NodeId; 2], usize>;

/// The agreements of the file, and of nodes with one neighbour and no agreement of their own, which pay that neighbour.
pub(crate) fn read(
    fields: &Fields<'_>,
    nodes: &[Node],
    links: &[Link],
    problems: &mut Problems,
) -> Vec<Agreement> {
    let mut all = Vec::new();
    if let Some(item) = fields.item("agreement") {
        let Some(table) = item.as_table() else {
            let message = "not a table; write each of them as a table [agreement.NAME]";
            fields.refuse("agreement", message, problems);
            return all;
        };
        let mut by_pair: ByPair = BTreeMap::new();
        for (name, item) in &table.entries {
            let path = join("agreement", name);
            let Some(own) = walk(item, &path, AGREEMENT, false, problems) else { continue };
            let Some(next) = one(name, &own, nodes, links, problems) else { continue };
            let known = [[next.payer, next.provider], [next.provider, next.payer]];
            if let Some(&at) = known.iter().find_map(|pair| by_pair.get(pair)) {
                let earlier: &Agreement = &all[at];
                let message = format!("`{}` is between these nodes already; leave one out", earlier.name);
                own.refuse("payer", message, problems);
                continue;
            }
            by_pair.insert(known[0], all.len());
            all.push(next);
        }
    }
    refuse_circles(&all, nodes, fields, problems);
    all.extend(implied(&all, nodes, links));
    all
}

fn one(
    name: &str,
    own: &Fields<'_>,
    nodes: &[Node],
    links: &[Link],
    problems: &mut Problems,
) -> Option<Agreement> {
    let node = |key: &str, problems: &mut Problems| {
        let name = own.text(key)?;
        let found = position(nodes, name, |node| &node.name);
        if found.is_none() {
            let guess = did_you_mean(name, nodes.iter().take(1_000).map(|node| node.name.as_str()));
            own.refuse(key, format!("there is no node `{name}`{guess}"), problems);
        }
        found.map(|at| NodeId(at as u32))
    };
    let (payer, provider) = (node("payer", problems), node("provider", problems));
    let weight = own.get("weight", 1, problems).and_then(Weight::new);
    let (payer, provider, weight) = (payer?, provider?, weight?);
    let joins =
        |link: &Link| [link.from, link.to] == [payer, provider] || [link.to, link.from] == [payer, provider];
    if payer == provider || !links.iter().any(joins) {
        let [payer, provider] = [payer, provider].map(|node| &nodes[node.index()].name);
        let message = format!("no link joins `{payer}` and `{provider}`; name two nodes that a link joins");
        own.refuse("provider", message, problems);
        return None;
    }
    Some(Agreement { name: name.to_owned(), payer, provider, weight, is_written: true })
}

fn refuse_circles(all: &[Agreement], nodes: &[Node], fields: &Fields<'_>, problems: &mut Problems) {
    let mut left: Vec<&Agreement> = all.iter().collect();
    // Removes agreements whose provider pays no one, until only circles and what pays into them are left.
    loop {
        let paying: BTreeSet<NodeId> = left.iter().map(|one| one.payer).collect();
        let before = left.len();
        left.retain(|one| paying.contains(&one.provider));
        if left.len() == before {
            break;
        }
    }
    let Some(mut at) = left.first().copied() else { return };
    let next = |of: &Agreement| left.iter().copied().find(|one| one.payer == of.provider);
    for _ in 0..left.len() {
        at = next(at).unwrap_or(at);
    }
    let (first, mut names) = (at.payer, Vec::new());
    while names.len() < left.len() {
        names.push(nodes[at.payer.index()].name.as_str());
        match next(at) {
            Some(above) if above.payer != first => at = above,
            _ => break,
        }
    }
    let message = format!(
        "payments go in a circle: {}, {}; leave one of these agreements out",
        names.join(", "),
        nodes[first.index()].name
    );
    let place = fields.item("agreement").and_then(|item| item.as_table()?.get(&at.name));
    let place = place.map_or(Place::Line(1), |item| item.place);
    problems.add(place, join("agreement", &at.name), message);
}

/// Agreements of nodes with one neighbour that no agreement names, unless both nodes are such.
fn implied(all: &[Agreement], nodes: &[Node], links: &[Link]) -> Vec<Agreement> {
    let mut neighbours: Vec<BTreeSet<NodeId>> = vec![BTreeSet::new(); nodes.len()];
    for link in links {
        neighbours[link.from.index()].insert(link.to);
        neighbours[link.to.index()].insert(link.from);
    }
    let mut is_named = vec![false; nodes.len()];
    all.iter().for_each(|one| {
        is_named[one.payer.index()] = true;
        is_named[one.provider.index()] = true;
    });
    let only = |node: NodeId| {
        let own = &neighbours[node.index()];
        own.first().copied().filter(|_| own.len() == 1 && !is_named[node.index()])
    };
    let of = |(payer, node): (NodeId, &Node)| {
        let provider = only(payer).filter(|provider| only(*provider).is_none())?;
        Some(Agreement { name: node.name.clone(), payer, provider, weight: Weight::ONE, is_written: false })
    };
    (0..).map(NodeId).zip(nodes).filter_map(of).collect()
}

/// Whether a queue divides by agreements.
fn enforces(queue: &DisciplineParams) -> bool {
    matches!(&queue.kind, DisciplineKind::Buffered(buffer) if matches!(buffer.schedule, SchedulerParams::Rcs(_)))
}

impl Scenario {
    /// Whether a queue of this link divides by agreements, at the start or after a change.
    #[must_use]
    pub fn enforces_agreements(&self, id: LinkId) -> bool {
        let later = self.changes.iter().any(
            |change| matches!(&change.to, Setting::LinkQueue(of, queue) if *of == id && enforces(queue)),
        );
        later || enforces(&self.links[id.index()].queue)
    }

    fn any_enforces(&self) -> bool {
        (0..self.links.len() as u32).any(|at| self.enforces_agreements(LinkId(at)))
    }

    /// Whether agreements define the entitlements: if any is written, or a queue divides by them.
    pub(crate) fn has_agreements(&self) -> bool {
        self.agreements.iter().any(|one| one.is_written) || self.any_enforces()
    }

    fn by_pair(&self) -> ByPair {
        (0..).zip(&self.agreements).map(|(at, one)| ([one.payer, one.provider], at)).collect()
    }

    /// The rights to each link that divides by agreements at some time, of data and acknowledgements.
    #[must_use]
    pub fn rights(&self) -> BTreeMap<LinkId, LinkRights> {
        let enforced = |id: &LinkId| self.enforces_agreements(*id);
        let links = (0..self.links.len() as u32).map(LinkId).filter(enforced);
        let mut crossing: BTreeMap<LinkId, Vec<(usize, Vec<NodeId>)>> =
            links.map(|id| (id, Vec::new())).collect();
        if crossing.is_empty() {
            return BTreeMap::new();
        }
        let by_pair = self.by_pair();
        for (at, flow) in self.flows.iter().enumerate() {
            for path in [&flow.path, &flow.back] {
                for (place, id) in path.iter().enumerate() {
                    if let Some(chains) = crossing.get_mut(id) {
                        chains.push((at, self.chain(&by_pair, path, place)));
                    }
                }
            }
        }
        crossing.into_iter().map(|(id, chains)| (id, self.tree(&by_pair, &chains))).collect()
    }

    /// The rights to a link of the data of these flows that cross it.
    pub(crate) fn rights_of(&self, link: LinkId, flows: &[usize]) -> LinkRights {
        let by_pair = self.by_pair();
        let chain = |&flow: &usize| {
            let path = &self.flows[flow].path;
            let place = path.iter().position(|id| *id == link)?;
            Some((flow, self.chain(&by_pair, path, place)))
        };
        self.tree(&by_pair, &flows.iter().filter_map(chain).collect::<Vec<_>>())
    }

    fn pays(&self, by_pair: &ByPair, link: LinkId) -> Way {
        let Link { from, to, .. } = self.links[link.index()];
        match (by_pair.contains_key(&[from, to]), by_pair.contains_key(&[to, from])) {
            (true, _) => Way::Up,
            (_, true) => Way::Down,
            _ => Way::Across,
        }
    }

    /// The nodes from the one that has the link at this place of a path, downwards to the host.
    fn chain(&self, by_pair: &ByPair, path: &Path, place: usize) -> Vec<NodeId> {
        let link = |id: &LinkId| &self.links[id.index()];
        match self.pays(by_pair, path[place]) {
            Way::Down => path[place..].iter().map(|id| link(id).to).collect(),
            _ => path[..=place].iter().rev().map(|id| link(id).from).collect(),
        }
    }

    /// The tree of these chains, and the vertex of each.
    fn tree(&self, by_pair: &ByPair, chains: &[(usize, Vec<NodeId>)]) -> LinkRights {
        // Vertices by parent and node. The node of the parent itself stands for its own packets.
        let mut known: BTreeMap<(Option<u32>, NodeId), u32> = BTreeMap::new();
        let mut vertices: Vec<Right> = Vec::new();
        let mut vertex = |parent: Option<u32>, node: NodeId, weight: Weight| {
            *known.entry((parent, node)).or_insert_with(|| {
                let parent = parent.map(|parent| parent as usize);
                vertices.push(Right { parent, weight: weight.get() });
                vertices.len() as u32 - 1
            })
        };
        let mut is_parent: BTreeSet<Option<u32>> = BTreeSet::new();
        let mut of_flows: Vec<(usize, Option<u32>)> = Vec::with_capacity(chains.len());
        for (flow, chain) in chains {
            let mut end = None;
            for pair in chain.windows(2) {
                let agreement = by_pair.get(&[pair[1], pair[0]]).map(|&at| &self.agreements[at]);
                is_parent.insert(end);
                end = Some(vertex(end, pair[1], agreement.map_or(Weight::ONE, |one| one.weight)));
            }
            of_flows.push((*flow, end));
        }
        for ((_, end), (_, chain)) in of_flows.iter_mut().zip(chains) {
            if let Some(&host) = chain.last().filter(|_| is_parent.contains(end)) {
                *end = Some(vertex(*end, host, Weight::ONE));
            }
        }
        LinkRights { vertices, of_flows }
    }

    /// A sentence about agreements without effect, or without entitlements.
    pub(crate) fn idle_agreements(&self) -> Option<String> {
        if !self.has_agreements() {
            return None;
        }
        let written = self.agreements.iter().any(|one| one.is_written);
        if !self.any_enforces() {
            return Some(
                "agreements define the entitlements, and no queue divides by them; write queue = \"rcs\" for the links \
                 that are congested"
                    .to_owned(),
            );
        }
        if !written {
            return Some(
                "a queue `rcs` divides by agreements, and none is written, so each sending host has the same part; write \
                 for example [agreement.a] with `payer` and `provider`"
                    .to_owned(),
            );
        }
        let is_open = !self.has_classes() && !self.divides() && self.entitlements().is_none();
        is_open.then(|| {
            "results have no entitlements: by these agreements several divisions of the links are in equilibrium, or it takes \
             too long to find one"
                .to_owned()
        })
    }
}

/// Refuses paths over which agreements define no rights, and trees that are too large.
pub(crate) fn check(scenario: &Scenario, root: &Fields<'_>, problems: &mut Problems) {
    if !scenario.has_agreements() {
        return;
    }
    let by_pair = scenario.by_pair();
    let mut reported = BTreeSet::new();
    for flow in &scenario.flows {
        let valley = [&flow.path, &flow.back].into_iter().find_map(|path| scenario.valley(&by_pair, path));
        let enforced = |id: &LinkId| scenario.enforces_agreements(*id);
        let several = [&flow.path, &flow.back]
            .into_iter()
            .any(|path| scenario.chooses(flow, path) && path.all(&scenario.links).any(|id| enforced(&id)));
        let guaranteed = flow.guarantee > Rate::ZERO;
        let message = match valley {
            Some(message) => message,
            None if guaranteed => {
                "agreements divide links by weights alone; leave `guarantee` or the agreements out".to_owned()
            }
            None if several => {
                "connections of the flow may take several paths, and rights follow one; write routing = \
                                \"single\", or the `path` of the flow"
                    .to_owned()
            }
            None => continue,
        };
        if reported.insert(&flow.group) {
            let (place, path) = written(root, flow);
            problems.add(place, path, message);
        }
    }
    for (id, rights) in scenario.rights() {
        let count = rights.vertices.len();
        if count > MAX_CUSTOMERS {
            let message =
                format!("its tree of rights has {count} vertices; at most {MAX_CUSTOMERS} are supported");
            problems.add(Place::Line(1), join("link", &scenario.links[id.index()].name), message);
        }
    }
}

impl Scenario {
    /// Why a path has no rights: it goes up, or across, after it went down or across.
    fn valley(&self, by_pair: &ByPair, path: &Path) -> Option<String> {
        let mut before: Option<(Way, LinkId)> = None;
        for &id in path.iter() {
            let way = self.pays(by_pair, id);
            if let Some((earlier, first)) = before
                && way != Way::Down
            {
                let of = |id: LinkId, way: Way| {
                    let Link { name, from, to, .. } = &self.links[id.index()];
                    let [from, to] = [from, to].map(|node| &self.nodes[node.index()].name);
                    match way {
                        Way::Up => format!("`{name}`, for which `{from}` pays `{to}`"),
                        Way::Across => format!("`{name}`, for which neither `{from}` nor `{to}` pays"),
                        Way::Down => format!("`{name}`, for which `{to}` pays `{from}`"),
                    }
                };
                return Some(format!(
                    "its packets cross link {}, after link {}: the nodes in between would carry them for nothing; write \
                     an [agreement.NAME] by which one of these nodes pays, or another path",
                    of(id, way),
                    of(first, earlier)
                ));
            }
            if way != Way::Up {
                before = before.or(Some((way, id)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
