//! Who uses the links of a scenario: flows in both directions, hosts, and changes.

use apportion_runtime::ways::Way;
use apportion_scenario::model::{Scenario, Setting};

/// How many directions of ways and changes each link has to do with.
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

/// Which links the scenario changes.
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

/// Of the links that have to do with another: the first that was noted, and whether there are others. Hosts count as
/// others.
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

/// For each of so many links the one over which hosts answer what it brings them, data with acknowledgements and these
/// with data; and the link that brings hosts what they send over that one.
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

/// For each of so many links those from which packets come to it.
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
