//! Groups of equal links between two nodes, and which of them a connection takes.
//!
//! `count = 4` makes of a link `x` the members `x.1` to `x.4`, each with a queue, a transmitter and a wire. A node that has
//! several equal next hops chooses one by a hash of the five-tuple, so that packets of a connection stay in order (RFC 2992
//! section 1), and one of many by chance, so that some members have more of them than others. Here the five-tuple of a
//! connection is the name of its flow and its number, and the hash is that of the seed, that name and the group: the choices
//! of connections are independent and uniform, they differ between replications, and the two directions of a connection
//! choose each for itself. A hash that is worse than that, or the same at successive nodes, is not modelled.
//!
//! A flow's [path](Flow::path) has the first member of a group in place of all. Checks of scenarios go by that: members are
//! equal, and what is guaranteed must fit on one of them, since a hash may put all there.
//!
//! Cost: O(1) for each connection and group on its way, at the start of a run.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use apportion_core::random::Stream;

use crate::keys::Fields;
use crate::model::{Change, Flow, Link, LinkGroup, LinkId, Scenario, Setting};
use crate::names::position;
use crate::problem::{Place, Problems};

/// Ends the name of a link's other direction.
const BACK: &str = ".back";

/// A link as it is written.
pub(crate) struct Written<'a> {
    pub name: &'a str,
    /// How many equal links it makes.
    pub count: u64,
    /// The place of the other direction.
    pub other_way: Option<usize>,
}

/// A link that a written one makes.
pub(crate) struct Member {
    /// The place of that which is written.
    pub of: usize,
    pub name: String,
    /// The place of the other direction among all members.
    pub other_way: Option<usize>,
}

/// What written links make, in their order, and the places of the members of groups, by name.
pub(crate) fn members(written: &[Written<'_>]) -> (Vec<Member>, Vec<(String, Range<usize>)>) {
    let place = |next: &mut usize, link: &Written<'_>| {
        let first = *next;
        *next += link.count as usize;
        Some(first)
    };
    let firsts: Vec<usize> = written.iter().scan(0, place).collect();
    let (mut all, mut groups) = (Vec::new(), Vec::new());
    for (of, (link, &first)) in written.iter().zip(&firsts).enumerate() {
        if link.count > 1 {
            groups.push((link.name.to_owned(), first..first + link.count as usize));
        }
        let there = link.other_way.and_then(|other| Some(written.get(other)?.name));
        let base = link.name.strip_suffix(BACK).filter(|base| Some(*base) == there);
        for number in 0..link.count as usize {
            let name = match base {
                _ if link.count == 1 => link.name.to_owned(),
                Some(base) => format!("{base}.{}{BACK}", number + 1),
                None => format!("{}.{}", link.name, number + 1),
            };
            // Beyond the most links there are none; the scenario is refused then.
            let other_way = |other: usize| firsts.get(other).map_or(usize::MAX, |first| first + number);
            all.push(Member { of, name, other_way: link.other_way.map(other_way) });
        }
    }
    (all, groups)
}

/// The group with this name.
pub(crate) fn find<'a>(links: &'a [Link], name: &str) -> Option<&'a LinkGroup> {
    let back = name.strip_suffix(BACK).map(|base| format!("{base}.1{BACK}"));
    let mut firsts = back.into_iter().chain([format!("{name}.1")]);
    firsts.find_map(|first| {
        let at = position(links, &first, |link| &link.name)?;
        links[at].group.as_deref().filter(|group| group.name == name)
    })
}

/// Refuses groups where routers exchange reports about flows: a report comes over one link and is about flows that may be on
/// another.
pub(crate) fn check_reports(links: &[Link], changes: &[Change], root: &Fields<'_>, problems: &mut Problems) {
    let later = changes.iter().filter_map(|change| match &change.to {
        Setting::LinkQueue(_, queue) => Some(queue.as_ref()),
        _ => None,
    });
    let mut queues = links.iter().map(|link| &link.queue).chain(later);
    if queues.all(|queue| queue.report_interval().is_none()) {
        return;
    }
    let groups: BTreeSet<&str> =
        links.iter().filter_map(|link| Some(link.group.as_ref()?.name.as_str())).collect();
    // With its other direction it was written as one.
    for name in groups.iter().filter(|name| name.strip_suffix(BACK).is_none_or(|base| !groups.contains(base)))
    {
        let written = || root.item("link")?.as_table()?.get(name)?.as_table()?.get("count");
        let place = written().map_or(Place::Line(1), |item| item.place);
        let message = "a queue `sffc` reports over one link about flows that may be on another of the group; leave `count` out";
        problems.add(place, format!("link.{name}.count"), message);
    }
}

impl Scenario {
    /// The links that packets of `flow` may take where its path has `link`: that one, or the members of its group.
    #[must_use]
    pub fn choices<'a>(&'a self, flow: &Flow, link: &'a LinkId) -> &'a [LinkId] {
        match &self.links[link.index()].group {
            Some(group) if !flow.pinned.contains(link) => &group.members,
            _ => std::slice::from_ref(link),
        }
    }

    /// Whether packets of `flow` may cross `link` on one of its two paths.
    #[must_use]
    pub fn may_cross(&self, flow: &Flow, path: &[LinkId], link: LinkId) -> bool {
        path.iter().any(|id| self.choices(flow, id).contains(&link))
    }

    /// The links that packets of connection `member` of `flow`, counting from 0, take on one of its two paths in a run with
    /// `seed`.
    #[must_use]
    pub fn way(&self, flow: &Flow, path: &Arc<[LinkId]>, member: u32, seed: u64) -> Arc<[LinkId]> {
        if path.iter().all(|id| self.choices(flow, id).len() == 1) {
            return Arc::clone(path);
        }
        let link = |id: &LinkId| match &self.links[id.index()].group {
            Some(group) if !flow.pinned.contains(id) => {
                let name = format!("flow.{}.ecmp.{}.{member}", flow.stream(), group.name);
                group.members[Stream::new(seed, &name).below(group.members.len() as u64) as usize]
            }
            _ => *id,
        };
        path.iter().map(link).collect()
    }

    /// Whether data of some flow may take one of several links.
    pub(crate) fn divides(&self) -> bool {
        self.flows.iter().any(|flow| self.may_choose(flow))
    }

    /// By the way of its data: acknowledgements have no share.
    fn may_choose(&self, flow: &Flow) -> bool {
        flow.path.iter().any(|id| self.choices(flow, id).len() > 1)
    }

    /// The scenario as it is in a run with `seed`: each flow on the links that its packets take there, and no groups. `None` if
    /// data of the connections of a flow may take different ones. Acknowledgements take those of its first connection.
    #[must_use]
    pub fn hashed(&self, seed: u64) -> Option<Cow<'_, Self>> {
        if self.links.iter().all(|link| link.group.is_none()) {
            return Some(Cow::Borrowed(self));
        }
        let mut hashed = self.clone();
        for (flow, to) in self.flows.iter().zip(&mut hashed.flows) {
            if self.may_choose(flow) && (flow.connections > 1 || flow.source.opens_connections()) {
                return None;
            }
            (to.path, to.back) = (self.way(flow, &flow.path, 0, seed), self.way(flow, &flow.back, 0, seed));
        }
        hashed.links.iter_mut().for_each(|link| link.group = None);
        Some(Cow::Owned(hashed))
    }
}
