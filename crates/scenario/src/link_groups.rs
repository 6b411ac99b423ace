//! Groups of equal links between two nodes: `count = 4` turns a link `x` into the members `x.1` to `x.4`,
//! each with a queue, a transmitter and a wire. [`crate::ecmp`] decides which of them a connection takes.

use std::collections::BTreeSet;
use std::ops::Range;

use apportion_core::system::DisciplineParams;

use crate::keys::Fields;
use crate::model::{Change, Link, LinkGroup, Setting};
use crate::names::position;
use crate::problem::{Place, Problems};

/// The ending of the name of a link's other direction.
const BACK: &str = ".back";

/// A link as it is written.
pub(crate) struct Written<'a> {
    pub name: &'a str,
    /// Number of equal links.
    pub count: u64,
    /// Index of the other direction.
    pub other_way: Option<usize>,
}

/// A link that a written one expands to.
pub(crate) struct Member {
    /// Index of the written link.
    pub of: usize,
    pub name: String,
    /// Index of the other direction among all members.
    pub other_way: Option<usize>,
}

/// The links that written ones expand to, in order, and the indices of the members of groups, by name.
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
            // Links beyond the maximum do not exist; the scenario is refused then.
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

/// Refuses groups if routers exchange reports about flows: a report over one link is about flows that may be
/// on another.
pub(crate) fn check_reports(links: &[Link], changes: &[Change], root: &Fields<'_>, problems: &mut Problems) {
    if queues(links, changes).all(|queue| queue.report_interval().is_none()) {
        return;
    }
    let groups: BTreeSet<&str> =
        links.iter().filter_map(|link| Some(link.group.as_ref()?.name.as_str())).collect();
    // The group and its other direction were written as one.
    for name in groups.iter().filter(|name| name.strip_suffix(BACK).is_none_or(|base| !groups.contains(base)))
    {
        let written = || root.item("link")?.as_table()?.get(name)?.as_table()?.get("count");
        let place = written().map_or(Place::Line(1), |item| item.place);
        let message = "a queue `sffc` reports over one link about flows that may be on another of the group; leave `count` out";
        problems.add(place, format!("link.{name}.count"), message);
    }
}

/// All queues that links have over time.
pub(crate) fn queues<'a>(
    links: &'a [Link],
    changes: &'a [Change],
) -> impl Iterator<Item = &'a DisciplineParams> {
    let later = changes.iter().filter_map(|change| match &change.to {
        Setting::LinkQueue(_, queue) => Some(queue.as_ref()),
        _ => None,
    });
    links.iter().map(|link| &link.queue).chain(later)
}
