//! The ends of flows and the links between them, as written or the shortest.

use super::{Builder, Group};
use crate::expression::Pattern;
use crate::keys::Fields;
use crate::link_groups;
use crate::model::{Link, LinkId, NodeId, Path};
use crate::names::position;
use crate::problem::{Problems, did_you_mean};

impl Builder<'_> {
    /// The node that a key names for member `i`; none if it is refused.
    pub(super) fn node(
        &self,
        pattern: &Pattern,
        i: u64,
        fields: &Fields<'_>,
        key: &str,
        problems: &mut Problems,
    ) -> Option<NodeId> {
        let found = pattern.at(i).and_then(|name| self.find_node(&name));
        found.map_err(|message| fields.refuse(key, message, problems)).ok()
    }

    fn find_node(&self, name: &str) -> Result<NodeId, String> {
        let at = position(self.nodes, name, |node| &node.name).and_then(|at| u32::try_from(at).ok());
        at.map(NodeId).ok_or_else(|| {
            let names = self.nodes.iter().map(|node| node.name.as_str());
            let guess = did_you_mean(name, names.take(1_000));
            format!(
                "there is no node `{name}`{guess}; nodes are the ends of links and the hosts of the topology"
            )
        })
    }

    /// The links from one end to the other: as listed, else the shortest path.
    pub(super) fn path(
        &mut self,
        flow: &str,
        (from, to): (NodeId, NodeId),
        listed: Option<&[Pattern]>,
        i: u64,
        (fields, key): (&Fields<'_>, &str),
        problems: &mut Problems,
    ) -> Option<Path> {
        let name = |node: NodeId| &self.nodes[node.0 as usize].name;
        let found = match listed {
            Some(listed) => self.listed_path((from, to), listed, i),
            None => self.shortest(from, to).ok_or_else(|| {
                let (from, to) = (name(from), name(to));
                format!("flow `{flow}`: no path leads from `{from}` to `{to}`; add a link between them")
            }),
        };
        let key = if listed.is_some() || key == "return_path" { key } else { "to" };
        found.map_err(|message| fields.refuse(key, message, problems)).ok()
    }

    /// The paths of least cost, or the first of them if only one is wanted.
    pub(super) fn shortest(&mut self, from: NodeId, to: NodeId) -> Option<Path> {
        let path = self.routing.path(from, to)?;
        Some(if self.is_single { Path { equal: None, ..path } } else { path })
    }

    fn listed_path(&self, (from, to): (NodeId, NodeId), listed: &[Pattern], i: u64) -> Result<Path, String> {
        let names: Vec<String> = listed.iter().map(|pattern| pattern.at(i)).collect::<Result<_, _>>()?;
        let links = self.find_links(&names);
        let mut nodes = Vec::with_capacity(names.len() + 2);
        let links = match links {
            Some(links) => {
                nodes.push(self.links[links[0]].from);
                nodes.extend(links.iter().map(|at| self.links[*at].to));
                let ids = links.iter().map(|at| LinkId(u32::try_from(*at).unwrap_or(u32::MAX)));
                self.check_joints(&links)?;
                let mut all: Vec<LinkId> = ids.collect();
                if nodes[0] != from {
                    all.insert(0, self.joint(from, nodes[0])?);
                    nodes.insert(0, from);
                }
                let last = nodes[nodes.len() - 1];
                if last != to {
                    all.push(self.joint(last, to)?);
                    nodes.push(to);
                }
                all
            }
            None => {
                for name in &names {
                    nodes.push(self.find_node(name)?);
                }
                if nodes[0] != from {
                    nodes.insert(0, from);
                }
                if nodes[nodes.len() - 1] != to {
                    nodes.push(to);
                }
                nodes.windows(2).map(|pair| self.joint(pair[0], pair[1])).collect::<Result<_, _>>()?
            }
        };
        let mut sorted = nodes.clone();
        sorted.sort_unstable();
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            let name = &self.nodes[pair[0].0 as usize].name;
            return Err(format!("the path has a loop: it visits node `{name}` twice"));
        }
        Ok(Path { first: links.into(), equal: None })
    }

    /// The links with these names, with the first of each group; none if one of the names is not of a link.
    fn find_links(&self, names: &[String]) -> Option<Vec<usize>> {
        let link = |name: &String| {
            let group = || link_groups::find(self.links, name).map(|group| group.members[0].index());
            position(self.links, name, |link| &link.name).or_else(group)
        };
        names.iter().map(link).collect()
    }

    /// The members of groups that the paths of a flow name.
    pub(super) fn pinned(&self, group: &Group<'_>, i: u64) -> Vec<LinkId> {
        let mut all = Vec::new();
        for listed in [&group.path, &group.return_path].into_iter().flatten() {
            let names: Result<Vec<String>, _> = listed.iter().map(|pattern| pattern.at(i)).collect();
            let Ok(names) = names else { continue };
            for (at, name) in self.find_links(&names).into_iter().flatten().zip(&names) {
                let link = &self.links[at];
                let id =
                    link.group.as_ref().and_then(|group| group.members.iter().find(|id| id.index() == at));
                all.extend(id.filter(|_| link.name == *name));
            }
        }
        all
    }

    fn check_joints(&self, links: &[usize]) -> Result<(), String> {
        for pair in links.windows(2) {
            let (first, second) = (&self.links[pair[0]], &self.links[pair[1]]);
            if first.to != second.from {
                let node = |node: NodeId| &self.nodes[node.0 as usize].name;
                let way =
                    |link: &Link| format!("`{}` (`{}` to `{}`)", link.name, node(link.from), node(link.to));
                return Err(format!("link {} does not start where link {} ends", way(second), way(first)));
            }
        }
        Ok(())
    }

    fn joint(&self, from: NodeId, to: NodeId) -> Result<LinkId, String> {
        self.routing.direct(from, to).ok_or_else(|| {
            let name = |node: NodeId| &self.nodes[node.0 as usize].name;
            format!("no link leads from `{}` to `{}`", name(from), name(to))
        })
    }
}
