//! Paths through the network: least delay, then fewest links; all paths that are equal in this, and among
//! them the first by name.
//!
//! Costs are computed once per destination and paths once per pair of nodes. A host with a single link adds
//! that link to the path of its router, so ten thousand hosts behind one router need one computation, and
//! share the paths between two routers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::sync::Arc;

use crate::model::{Link, LinkId, NodeId, Path};

/// Delay in nanoseconds, then number of links. Delays add up to less than 2^128.
type Cost = (u128, u32);

/// Finds and remembers paths.
#[derive(Debug)]
pub struct Routing<'a> {
    links: &'a [Link],
    /// Links that leave each node, and links that enter it, in the order of their names.
    out: Vec<Vec<LinkId>>,
    into: Vec<Vec<LinkId>>,
    /// Cost from every node, by destination.
    costs: BTreeMap<NodeId, Vec<Option<Cost>>>,
    paths: BTreeMap<(NodeId, NodeId), Option<Path>>,
    /// The links of all paths of equal cost between two nodes, if there are several.
    equal: BTreeMap<(NodeId, NodeId), Option<Arc<[LinkId]>>>,
}

impl<'a> Routing<'a> {
    /// Routes of a network of `nodes` nodes. Links are in the order of their names.
    #[must_use]
    pub fn new(nodes: usize, links: &'a [Link]) -> Self {
        let (mut out, mut into) = (vec![Vec::new(); nodes], vec![Vec::new(); nodes]);
        for (id, link) in (0..).map(LinkId).zip(links) {
            out[index(link.from)].push(id);
            into[index(link.to)].push(id);
        }
        Self { links, out, into, costs: BTreeMap::new(), paths: BTreeMap::new(), equal: BTreeMap::new() }
    }

    fn link(&self, id: LinkId) -> &'a Link {
        &self.links[id.0 as usize]
    }

    /// The link from one node to its neighbour: the one of least delay, then of the first name.
    #[must_use]
    pub fn direct(&self, from: NodeId, to: NodeId) -> Option<LinkId> {
        let fits = self.out[index(from)].iter().copied().filter(|id| self.link(*id).to == to);
        fits.min_by_key(|id| self.link(*id).delay)
    }

    /// The paths from one node to another; `None` if there is none. Empty from a node to itself.
    pub fn path(&mut self, from: NodeId, to: NodeId) -> Option<Path> {
        if let Some(path) = self.paths.get(&(from, to)) {
            return path.clone();
        }
        let path = self.find(from, to);
        self.paths.insert((from, to), path.clone());
        path
    }

    fn find(&mut self, from: NodeId, to: NodeId) -> Option<Path> {
        let (mut head, mut tail) = (Vec::new(), Vec::new());
        let (mut at, mut end) = (from, to);
        // A path has at most as many links as there are nodes; more means a loop.
        while at != end
            && let [only] = self.out[index(at)][..]
        {
            if head.len() > self.out.len() {
                return None;
            }
            head.push(only);
            at = self.link(only).to;
        }
        while at != end
            && let [only] = self.into[index(end)][..]
        {
            if tail.len() > self.out.len() {
                return None;
            }
            tail.push(only);
            end = self.link(only).from;
        }
        let equal = self.equal(at, end)?;
        self.walk(at, end, &mut head)?;
        head.extend(tail.into_iter().rev());
        Some(Path { first: head.into(), equal })
    }

    /// The links on paths of least cost from `at` to `end`, sorted by the node that they leave, with the
    /// first of each group; `Some(None)` if there is one path, `None` if there is none.
    fn equal(&mut self, at: NodeId, end: NodeId) -> Option<Option<Arc<[LinkId]>>> {
        if at == end {
            return Some(None);
        }
        if let Some(equal) = self.equal.get(&(at, end)) {
            return Some(equal.clone());
        }
        if !self.costs.contains_key(&end) {
            let costs = self.costs_to(end);
            self.costs.insert(end, costs);
        }
        let costs = self.costs.get(&end)?;
        costs[index(at)]?;
        let (mut links, mut seen, mut next) = (Vec::new(), BTreeSet::new(), vec![at]);
        while let Some(node) = next.pop() {
            for id in self.out[index(node)].iter().copied().filter(|id| self.is_first(*id)) {
                let link = self.link(id);
                if costs[index(link.to)].map(|rest| extend(rest, link)) == costs[index(node)] {
                    links.push(id);
                    if seen.insert(link.to) && link.to != end {
                        next.push(link.to);
                    }
                }
            }
        }
        // On a single path each node but the last has one next hop.
        let is_single = links.len() == seen.len();
        links.sort_unstable_by_key(|id| (self.link(*id).from, *id));
        let equal = (!is_single).then(|| Arc::from(links));
        self.equal.insert((at, end), equal.clone());
        Some(equal)
    }

    /// Whether a link is in no group, or the first of one.
    fn is_first(&self, id: LinkId) -> bool {
        self.link(id).group.as_ref().is_none_or(|group| group.members.first() == Some(&id))
    }

    /// Adds the links from `at` to `end` to `path`: at each node the first by name that is on a path of least
    /// cost.
    fn walk(&self, mut at: NodeId, end: NodeId, path: &mut Vec<LinkId>) -> Option<()> {
        if at == end {
            return Some(());
        }
        let costs = self.costs.get(&end)?;
        while at != end {
            let cost = costs[index(at)]?;
            let best = self.out[index(at)].iter().copied().find(|id| {
                let link = self.link(*id);
                costs[index(link.to)].is_some_and(|rest| extend(rest, link) == cost)
            })?;
            path.push(best);
            at = self.link(best).to;
        }
        Some(())
    }

    /// Dijkstra's algorithm against the direction of the links.
    fn costs_to(&self, end: NodeId) -> Vec<Option<Cost>> {
        let mut costs = vec![None; self.out.len()];
        let mut frontier = BinaryHeap::from([Reverse(((0, 0), end))]);
        while let Some(Reverse((cost, node))) = frontier.pop() {
            if costs[index(node)].is_some() {
                continue;
            }
            costs[index(node)] = Some(cost);
            for id in &self.into[index(node)] {
                let link = self.link(*id);
                if costs[index(link.from)].is_none() {
                    frontier.push(Reverse((extend(cost, link), link.from)));
                }
            }
        }
        costs
    }
}

fn extend((delay, hops): Cost, link: &Link) -> Cost {
    (delay + u128::from(link.delay.as_nanos()), hops + 1)
}

const fn index(node: NodeId) -> usize {
    node.0 as usize
}

#[cfg(test)]
mod tests {
    use apportion_core::units::{Rate, Span};

    use super::*;
    use crate::model::Loss;
    use crate::queue;

    /// Links named by their position, from (from, to, delay in ms).
    fn links(ends: &[(u32, u32, u64)]) -> Vec<Link> {
        let link = |(at, &(from, to, ms)): (usize, &(u32, u32, u64))| Link {
            name: at.to_string(),
            from: NodeId(from),
            to: NodeId(to),
            group: None,
            rate: Rate::from_mbit(1),
            trace: None,
            delay: Span::from_millis(ms),
            rate_key: None,
            queue: queue::deep().params.clone(),
            jitter: None,
            aggregate: None,
            loss: Loss::NONE,
            lost: Vec::new(),
            watched: false,
            pcap: false,
            other_way: None,
            tickets: None,
            ack_tickets: None,
            exchange: crate::marking::default_exchange(&apportion_core::system::Catalog::default()),
        };
        ends.iter().enumerate().map(link).collect()
    }

    fn path(nodes: usize, ends: &[(u32, u32, u64)], from: u32, to: u32) -> Option<Vec<u32>> {
        let links = links(ends);
        let path = Routing::new(nodes, &links).path(NodeId(from), NodeId(to));
        path.map(|path| path.iter().map(|id| id.0).collect())
    }

    #[test]
    fn least_delay_comes_first_then_fewest_links_then_names() {
        // 0 - 1 - 3 takes 2 + 2 ms, 0 - 2 - 3 takes 1 + 2 ms.
        assert_eq!(path(4, &[(0, 1, 2), (1, 3, 2), (0, 2, 1), (2, 3, 2)], 0, 3), Some(vec![2, 3]));
        // 0 - 1 - 2 takes 1 + 1 ms in two links, 0 - 2 takes 2 ms in one.
        assert_eq!(path(3, &[(0, 1, 1), (1, 2, 1), (0, 2, 2)], 0, 2), Some(vec![2]));
        // Two paths that differ only in names; the first link decides, whatever the second is called.
        assert_eq!(path(4, &[(1, 3, 1), (0, 2, 1), (0, 1, 1), (2, 3, 1)], 0, 3), Some(vec![1, 3]));
        // Without delay, a loop still costs links.
        assert_eq!(path(3, &[(0, 1, 0), (1, 0, 0), (1, 2, 0), (2, 1, 0)], 0, 2), Some(vec![0, 2]));
    }

    #[test]
    fn hosts_with_one_link_add_it_to_the_path_of_their_router() {
        // Hosts 0 and 5; routers 1 - 4 with a longer and a shorter path.
        let ends = [(0, 1, 1), (1, 2, 5), (2, 4, 5), (1, 3, 1), (3, 4, 1), (4, 5, 1), (4, 1, 1)];
        assert_eq!(path(6, &ends, 0, 5), Some(vec![0, 3, 4, 5]));
        assert_eq!(path(6, &ends, 0, 0), Some(vec![]));
    }

    #[test]
    fn what_cannot_be_reached_has_no_path() {
        assert_eq!(path(3, &[(0, 1, 1)], 0, 2), None);
        assert_eq!(path(3, &[(0, 1, 1)], 1, 0), None);
        // A loop that never reaches node 3: single links on both sides, followed no further than there are
        // nodes.
        assert_eq!(path(5, &[(0, 1, 1), (1, 2, 1), (2, 0, 1), (4, 3, 1), (3, 4, 1)], 0, 3), None);
    }
}
