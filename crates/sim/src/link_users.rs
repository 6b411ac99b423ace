//! The users of a scenario's links: flows in both directions, hosts, and changes.

use apportion_runtime::ways::Way;
use apportion_scenario::model::{Scenario, Setting};

/// For each link the number of directions of ways, and of changes, that concern it.
pub(crate) fn users(scenario: &Scenario, ways: &[Way]) -> Vec<usize> {
    let mut users = vec![0; scenario.links.len()];
    for path in ways.iter().flat_map(|way| [&way.path, &way.back]) {
        path.iter().for_each(|link| users[link.index()] += 1);
    }
    for (users, is_changed) in users.iter_mut().zip(changed_links(scenario)) {
        *users += usize::from(is_changed);
    }
    users
}

/// The links that the scenario changes.
pub(crate) fn changed_links(scenario: &Scenario) -> Vec<bool> {
    let mut changed = vec![false; scenario.links.len()];
    for change in &scenario.changes {
        if let Setting::LinkRate(link, _)
        | Setting::LinkDelay(link, _)
        | Setting::LinkLoss(link, _)
        | Setting::LinkQueue(link, _)
        | Setting::LinkTickets(link, _)
        | Setting::LinkAckTickets(link, _) = &change.to
        {
            changed[link.index()] = true;
        }
    }
    changed
}

/// The links related to another one: the first noted, and whether there are others. Hosts count as others.
#[derive(Clone, Copy, Default)]
pub(crate) struct Noted {
    pub(crate) link: Option<u32>,
    pub(crate) others: bool,
}

impl Noted {
    fn note(&mut self, link: Option<u32>) {
        match (self.link, link) {
            (None, Some(_)) => self.link = link,
            (known, _) => self.others |= link.is_none() || known != link,
        }
    }
}

/// For each of `links` links: the link over which hosts answer its packets, data with acknowledgements and
/// acknowledgements with data, and the link whose packets hosts answer over it.
pub(crate) fn answering_links(links: usize, ways: &[Way]) -> Vec<[Noted; 2]> {
    let mut answering = vec![Noted::default(); links];
    let mut origins = answering.clone();
    let both = ways.iter().flat_map(|way| [(&way.path, &way.back), (&way.back, &way.path)]);
    for (there, back) in both {
        back.iter().skip(1).for_each(|link| origins[link.index()].note(None));
        if let Some(first) = back.first() {
            origins[first.index()].note(there.last().map(|last| last.0));
            there.last().into_iter().for_each(|last| answering[last.index()].note(Some(first.0)));
        }
    }
    let with_origins =
        |answering: Noted| [answering, answering.link.map_or(Noted::default(), |by| origins[by as usize])];
    answering.into_iter().map(with_origins).collect()
}

/// For each of `links` links the links from which its packets come.
pub(crate) fn feeders(links: usize, ways: &[Way]) -> Vec<Noted> {
    let mut origins = vec![Noted::default(); links];
    for path in ways.iter().flat_map(|way| [&way.path, &way.back]) {
        let mut from = None;
        for link in path.iter() {
            origins[link.index()].note(from);
            from = Some(link.0);
        }
    }
    origins
}
