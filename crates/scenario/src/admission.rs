//! Admission control: a guarantee is admitted only if every link on the path can keep it.
//!
//! Pelsser, De Cnodder 2002, section 4: the sum of guarantees of the flows that cross a link is at most its
//! rate. The check takes place when guarantees are given, at the present rates: at the start, and whenever a
//! change raises one. A guarantee counts whether or not the flow sends at the time. A link that slows down
//! later breaks guarantees that were possible when they were given; a scenario may study that. Links whose
//! queues do not know guarantees count as well, because entitlements hold for every queue.

use std::collections::{BTreeMap, BTreeSet};

use apportion_core::fairness::oversubscribed;
use apportion_core::units::Rate;

use crate::changes::Placed;
use crate::keys::Fields;
use crate::model::{Change, Flow, Link, Setting};
use crate::problem::{Place, Problems};
use crate::text::join;

/// Maximum number of groups of flows that a message lists.
const LISTED: usize = 5;

/// Refuses guarantees of flows that cross a link whose queue isolates hosts, at the start or later: such a
/// queue divides among hosts, which have no guarantees.
pub(crate) fn check_isolation(
    links: &[Link],
    flows: &[Flow],
    changes: &[Change],
    root: &Fields<'_>,
    problems: &mut Problems,
) {
    let mut isolates: Vec<bool> = links.iter().map(|link| link.queue.isolate().is_some()).collect();
    for change in changes {
        if let Setting::LinkQueue(id, queue) = &change.to {
            isolates[id.index()] |= queue.isolate().is_some();
        }
    }
    let given = |at: usize, flow: &Flow| {
        let raised = |change: &Change| matches!(change.to, Setting::FlowGuarantee(of, rate) if of == at && rate > Rate::ZERO);
        flow.guarantee > Rate::ZERO || changes.iter().any(raised)
    };
    let mut reported = BTreeSet::new();
    for (at, flow) in flows.iter().enumerate() {
        let Some(id) = flow.path.all(links).find(|id| isolates[id.index()]).filter(|_| given(at, flow))
        else {
            continue;
        };
        if reported.insert(&flow.group) {
            let (place, path) = written(root, flow, "guarantee");
            let message = format!(
                "the queue of link `{}` is fair among hosts, and a guarantee is of a flow; leave `guarantee` out, or \
                 `isolate` of that queue",
                links[id.index()].name
            );
            problems.add(place, path, message);
        }
    }
}

/// Refuses guarantees that exceed the rates of links at the start. `root` is the file, to name the key with
/// the largest guarantee.
pub(crate) fn check(links: &[Link], flows: &[Flow], root: &Fields<'_>, problems: &mut Problems) {
    let rates: Vec<Rate> = links.iter().map(|link| link.rate).collect();
    let guarantees: Vec<Rate> = flows.iter().map(|flow| flow.guarantee).collect();
    for (link, sum) in exceeded(links, &rates, flows, &guarantees) {
        let crossing = Crossing::of(links, link, flows, &guarantees);
        let Some(largest) = crossing.largest else { continue };
        let (place, path) = written(root, largest, "guarantee");
        problems.add(place, path, crossing.message(&links[link].name, rates[link], sum));
    }
}

/// Refuses changes that raise a guarantee beyond the present rate of a link. All changes of one instant
/// count, so that a guarantee can pass from one flow to another.
pub(crate) fn check_changes(links: &[Link], flows: &[Flow], changes: &[Placed], problems: &mut Problems) {
    let mut rates: Vec<Rate> = links.iter().map(|link| link.rate).collect();
    let mut guarantees: Vec<Rate> = flows.iter().map(|flow| flow.guarantee).collect();
    for instant in changes.chunk_by(|a, b| a.at == b.at) {
        let mut raised = BTreeMap::new();
        for change in instant {
            match change.to {
                Setting::LinkRate(id, rate) => rates[id.index()] = rate,
                Setting::FlowGuarantee(flow, guarantee) => {
                    let before = std::mem::replace(&mut guarantees[flow], guarantee);
                    if guarantee > before {
                        raised.extend(flows[flow].path.all(links).map(|id| (id.index(), change)));
                    }
                }
                _ => (),
            }
        }
        if raised.is_empty() {
            continue;
        }
        for (link, sum) in exceeded(links, &rates, flows, &guarantees) {
            let Some(change) = raised.get(&link) else { continue };
            let message =
                Crossing::of(links, link, flows, &guarantees).message(&links[link].name, rates[link], sum);
            let path = format!("change[{}].to", change.number);
            problems.add(change.place, path, format!("at {}, {message}", change.at));
        }
    }
}

/// The links whose guarantees exceed their rates, with the sums.
fn exceeded(links: &[Link], rates: &[Rate], flows: &[Flow], guarantees: &[Rate]) -> Vec<(usize, Rate)> {
    let rates: Vec<f64> = rates.iter().map(|rate| rate.as_bit() as f64).collect();
    let given = flows.iter().zip(guarantees).filter(|(_, guarantee)| **guarantee > Rate::ZERO);
    let on_links = given
        .flat_map(|(flow, guarantee)| flow.path.all(links).map(|id| (id.index(), guarantee.as_bit() as f64)));
    let exceeded = oversubscribed(&rates, on_links).into_iter();
    exceeded.map(|(link, sum)| (link, Rate::from_bit(sum as u64))).collect()
}

/// The guarantees on a link.
struct Crossing<'a> {
    /// The first flow of the group with the largest guarantee.
    largest: Option<&'a Flow>,
    /// Sums by group, largest first.
    groups: Vec<(&'a str, Rate)>,
}

impl<'a> Crossing<'a> {
    fn of(links: &[Link], link: usize, flows: &'a [Flow], guarantees: &[Rate]) -> Self {
        let mut groups: BTreeMap<&str, (Rate, &Flow)> = BTreeMap::new();
        for (flow, guarantee) in flows.iter().zip(guarantees) {
            if *guarantee > Rate::ZERO && flow.path.all(links).any(|id| id.index() == link) {
                let (sum, _) = groups.entry(&flow.group).or_insert((Rate::ZERO, flow));
                *sum = Rate::from_bit(sum.as_bit().saturating_add(guarantee.as_bit()));
            }
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, (sum, _))| std::cmp::Reverse(*sum));
        let largest = groups.first().map(|(_, (_, flow))| *flow);
        Self { largest, groups: groups.into_iter().map(|(name, (sum, _))| (name, sum)).collect() }
    }

    fn message(&self, link: &str, rate: Rate, sum: Rate) -> String {
        let over = Rate::from_bit(sum.as_bit().saturating_sub(rate.as_bit()));
        format!(
            "link `{link}` carries {rate}, but {sum} is guaranteed to the flows that cross it ({}); guarantee \
             {over} less, or give the link a rate of {sum}",
            listed(&self.groups)
        )
    }
}

/// The guarantees as text, for example "6Mbit to `video`, 5Mbit to `bulk`".
pub(crate) fn listed(given: &[(&str, Rate)]) -> String {
    let mut whom: Vec<String> =
        given.iter().take(LISTED).map(|(name, sum)| format!("{sum} to `{name}`")).collect();
    if given.len() > LISTED {
        whom.push("the rest to others".to_owned());
    }
    whom.join(", ")
}

/// Place at which this key of `flow` was written: in its own table, in that of its group, or in the defaults.
pub(crate) fn written(root: &Fields<'_>, flow: &Flow, key: &str) -> (Place, String) {
    let tables = [("flow", &flow.name[..]), ("flow", &flow.group), ("defaults", "flow")];
    let mut found = tables.into_iter().filter_map(|(table, name)| {
        let item = root.item(table)?.as_table()?.get(name)?.as_table()?.get(key)?;
        Some((item.place, join(&join(table, name), key)))
    });
    found.next().unwrap_or_else(|| (Place::Line(1), join(&join("flow", &flow.group), key)))
}
