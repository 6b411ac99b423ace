//! Equal-cost multi-path: which of several next hops a connection takes.
//!
//! A node that has several next hops of equal cost, links of a [group](crate::model::LinkGroup) or to
//! different nodes, chooses one by a hash of the five-tuple. Packets of a connection thus stay in order (RFC
//! 2992 section 1), and connections spread at random: some hops get more than others. Here the five-tuple of
//! a connection is the name of its flow, its number and its destination node; the hash is over the seed,
//! these and the node or group that chooses. The choices of connections are therefore independent and
//! uniform; they differ between replications and between successive nodes (no polarization); and each
//! direction of a connection chooses separately. Worse hashes are not modelled. A group counts as many times
//! as it has members.
//!
//! Checks of scenarios consider all links that a flow may take: guarantees must fit on each of them, since a
//! hash may put all flows there. Round-trip times are those of the [first](Path::first) path: delays are the
//! same on all.
//!
//! Cost: for each connection and node on its path the time to find the links that leave the node, at the
//! start of a run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use apportion_core::random::Stream;

use crate::keys::Fields;
use crate::model::{Change, Flow, Link, LinkId, NodeId, Path, Scenario};
use crate::problem::Problems;

/// Values of the key `routing`: all paths of equal cost, or the first by name alone.
pub(crate) const ROUTING: &[&str] = &["ecmp", SINGLE];
pub(crate) const SINGLE: &str = "single";

/// Refuses paths of equal cost if routers exchange reports: a report over one link is about flows that may be
/// on another.
pub(crate) fn check(
    links: &[Link],
    flows: &[Flow],
    changes: &[Change],
    root: &Fields<'_>,
    problems: &mut Problems,
) {
    let choose = |flow: &&Flow| flow.path.equal.is_some() || flow.back.equal.is_some();
    let Some(flow) = flows.iter().find(choose) else { return };
    let mut refuse = |flow: &Flow, what: &str| {
        let message = format!(
            "{what} over one link and is about flows on others: flow `{}` has several paths of equal cost; write routing = \
             \"single\"",
            flow.name
        );
        root.refuse("routing", message, problems);
    };
    if crate::link_groups::queues(links, changes).any(|queue| queue.report_interval().is_some()) {
        refuse(flow, "a queue `sffc` reports");
    }
    if links.iter().any(|link| link.ack_tickets.is_some())
        && let Some(flow) = flows.iter().find(|flow| flow.ack_tickets.is_some() && choose(flow))
    {
        refuse(flow, "`ack_tickets` of links come back");
    }
}

impl Path {
    /// The links that packets may take, each once; the first of each group. `links` are those of the
    /// scenario.
    pub fn all<'a>(&'a self, links: &'a [Link]) -> impl Iterator<Item = LinkId> + 'a {
        let equal = self.equal.as_deref().unwrap_or_default();
        let elsewhere = |id: &LinkId| self.next_hops(links, links[id.index()].from).is_empty();
        let certain = self.first.iter().filter(move |id| equal.is_empty() || elsewhere(id));
        certain.chain(equal).copied()
    }

    /// The next hops at a node among which a connection chooses; empty if it has no further choice.
    fn next_hops(&self, links: &[Link], node: NodeId) -> &[LinkId] {
        let Some(equal) = &self.equal else { return &[] };
        let begin = equal.partition_point(|id| links[id.index()].from < node);
        let count = equal[begin..].iter().take_while(|id| links[id.index()].from == node).count();
        &equal[begin..begin + count]
    }
}

impl Scenario {
    /// The links that packets of `flow` may take in place of `link` on a path: that one, or the members of
    /// its group.
    #[must_use]
    pub fn choices<'a>(&'a self, flow: &Flow, link: &'a LinkId) -> &'a [LinkId] {
        match &self.links[link.index()].group {
            Some(group) if !flow.pinned.contains(link) => &group.members,
            _ => std::slice::from_ref(link),
        }
    }

    /// The links that packets of `flow` may cross on one of its two paths, each once.
    pub fn crossed<'a>(&'a self, flow: &'a Flow, path: &'a Path) -> impl Iterator<Item = LinkId> + 'a {
        let members = |id: LinkId| match &self.links[id.index()].group {
            Some(group) if !flow.pinned.contains(&id) => group.members.clone(),
            _ => vec![id],
        };
        path.all(&self.links).flat_map(members)
    }

    /// Whether packets of `flow` may cross `link` on one of its two paths.
    #[must_use]
    pub fn may_cross(&self, flow: &Flow, path: &Path, link: LinkId) -> bool {
        let Link { from, group, .. } = &self.links[link.index()];
        let first = group.as_ref().map_or(link, |group| group.members[0]);
        let is_there = |id: &LinkId| path.contains(id) || path.next_hops(&self.links, *from).contains(id);
        [link, first].iter().any(|id| is_there(id) && self.choices(flow, id).contains(&link))
    }

    /// Whether a connection has a choice at its first hop on one of its two paths.
    #[must_use]
    pub fn chooses_first(&self, flow: &Flow, path: &Path) -> bool {
        let Some(first) = path.first() else { return false };
        let from = self.links[first.index()].from;
        self.choices(flow, first).len() > 1 || path.next_hops(&self.links, from).len() > 1
    }

    /// Whether connections of `flow` may take different links on one of its two paths.
    #[must_use]
    pub fn chooses(&self, flow: &Flow, path: &Path) -> bool {
        path.equal.is_some() || path.iter().any(|id| self.choices(flow, id).len() > 1)
    }

    /// The links that packets of connection `member` of `flow`, counting from 0, take on one of its two paths in a run with
    /// `seed`.
    #[must_use]
    pub fn way(&self, flow: &Flow, path: &Path, member: u32, seed: u64) -> Arc<[LinkId]> {
        let route = self.route(flow, path, member, seed);
        if route.iter().all(|id| self.choices(flow, id).len() == 1) {
            return route;
        }
        let link = |id: &LinkId| match &self.links[id.index()].group {
            Some(group) if !flow.pinned.contains(id) => {
                let name = format!("flow.{}.ecmp.{}.{member}", flow.stream(), group.name);
                group.members[Stream::new(seed, &name).below(group.members.len() as u64) as usize]
            }
            _ => *id,
        };
        route.iter().map(link).collect()
    }

    /// Like [`way`](Self::way), with the first of each group.
    #[must_use]
    pub fn route(&self, flow: &Flow, path: &Path, member: u32, seed: u64) -> Arc<[LinkId]> {
        let (Some(_), Some(first), Some(last)) = (&path.equal, path.first.first(), path.first.last()) else {
            return Arc::clone(&path.first);
        };
        let node = |node: NodeId| &self.nodes[node.index()].name;
        let to = node(self.links[last.index()].to);
        let mut at = self.links[first.index()].from;
        let next = |at: NodeId| {
            let hops = path.next_hops(&self.links, at);
            let weight = |id: &LinkId| self.choices(flow, id).len() as u64;
            let mut left = match hops {
                [] => return path.first.iter().find(|id| self.links[id.index()].from == at).copied(),
                [only] => return Some(*only),
                several => {
                    let name = format!("flow.{}.ecmp.{}.{to}.{member}", flow.stream(), node(at));
                    Stream::new(seed, &name).below(several.iter().map(weight).sum())
                }
            };
            hops.iter().copied().find(|id| {
                let is_it = left < weight(id);
                left = left.saturating_sub(weight(id));
                is_it
            })
        };
        let hops = std::iter::from_fn(|| {
            let id = next(at)?;
            at = self.links[id.index()].to;
            Some(id)
        });
        hops.collect()
    }

    /// The links before `link` on a path of `flow` that crosses it; `None` if none does. Of several such
    /// paths the first: the delays to that link are equal.
    #[must_use]
    pub fn before(&self, flow: &Flow, path: &Path, link: LinkId) -> Option<Vec<LinkId>> {
        if let Some(at) = path.iter().position(|id| self.choices(flow, id).contains(&link)) {
            return Some(path[..at].to_vec());
        }
        if !self.may_cross(flow, path, link) {
            return None;
        }
        let start = self.links[path.first()?.index()].from;
        let (mut arriving, mut next) = (BTreeMap::new(), vec![start]);
        while let Some(node) = next.pop() {
            for id in path.all(&self.links).filter(|id| self.links[id.index()].from == node) {
                let to = self.links[id.index()].to;
                arriving.entry(to).or_insert_with(|| {
                    next.push(to);
                    id
                });
            }
        }
        let mut at = self.links[link.index()].from;
        let mut links = Vec::new();
        while at != start {
            let id = *arriving.get(&at)?;
            links.push(id);
            at = self.links[id.index()].from;
        }
        links.reverse();
        Some(links)
    }

    /// Whether the data of any flow may take one of several links.
    pub(crate) fn divides(&self) -> bool {
        // Only the path of data counts: acknowledgements have no share.
        self.flows.iter().any(|flow| self.chooses(flow, &flow.path))
    }

    /// The scenario in a run with `seed`: each flow on the links that its packets take there, without groups.
    /// `None` if the data of a flow's connections may take different links. Acknowledgements take those of
    /// its first connection.
    #[must_use]
    pub fn hashed(&self, seed: u64) -> Option<Cow<'_, Self>> {
        let is_alone = |flow: &Flow| !self.chooses(flow, &flow.path) && !self.chooses(flow, &flow.back);
        if self.links.iter().all(|link| link.group.is_none()) && self.flows.iter().all(is_alone) {
            return Some(Cow::Borrowed(self));
        }
        let mut hashed = self.clone();
        for (flow, to) in self.flows.iter().zip(&mut hashed.flows) {
            let is_several = flow.connections > 1 || flow.source.opens_connections();
            if is_several && self.chooses(flow, &flow.path) {
                return None;
            }
            to.path = self.way(flow, &flow.path, 0, seed).into();
            to.back = self.way(flow, &flow.back, 0, seed).into();
        }
        hashed.links.iter_mut().for_each(|link| link.group = None);
        Some(Cow::Owned(hashed))
    }
}
